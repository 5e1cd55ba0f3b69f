"""
Choosing a GTM
==============

How wide the basis functions should be, how strong the penalty and how many dimensions there are, by the evidence for
each and by rows held out.
"""

# %%
# Three ways to ask
# -----------------
#
# A bent sheet with noise. Each width is fitted with a prior and a noise that follow their evidence; then the evidence
# is computed exactly or approximately, or rows are held out. All three in nats per row.

import warnings

import numpy as np
from matplotlib import pyplot as plt

from prinfold import GTM, choose, datasets, plot
from prinfold.exceptions import PrinfoldWarning
from prinfold.latent import grid

data = datasets.make_thesis_surface(rng=0)
model = GTM(nodes=15, basis=5, prior_precision="evidence")
widths = {"width": (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)}

figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
titles = {"exact": "evidence, exact", "approximate": "evidence, approximate", "held-out": "rows held out"}
for ax, (by, title) in zip(axes, titles.items(), strict=True):
    choice = choose(data.X, widths, model=model, by=by)
    plot.choice(choice, ax=ax)
    ax.set_title(title)
    print(choice, end="\n\n")

# %%
# Too flexible, too stiff, and what was chosen
# --------------------------------------------
#
# The same rows with narrow basis functions and no penalty, with the width that has the most evidence, and with wide
# ones and a heavy penalty. The number is the root mean squared distance of the projected rows to the true sheet.

chosen = choose(data.X, widths, model=model).model
with warnings.catch_warnings():
    warnings.simplefilter("ignore", PrinfoldWarning)  # neither is a good map, and they say so
    flexible = GTM(nodes=15, basis=5, width=0.25, regularization=0.0, max_iter=500).fit(data.X)
    stiff = GTM(nodes=15, basis=5, width=2.0, prior_precision=50.0, max_iter=500).fit(data.X)

fine = grid(40, 40)
figure, axes = plt.subplots(1, 3, figsize=(12, 4.2), subplot_kw={"projection": "3d"})
for ax, (name, each) in zip(
    axes, {"too flexible": flexible, "chosen": chosen, "too stiff": stiff}.items(), strict=True
):
    sheet = each.inverse_transform(fine.nodes).reshape(40, 40, 3)
    ax.plot_surface(*np.moveaxis(sheet, 2, 0), cmap="viridis", alpha=0.9)
    ax.scatter(*data.X.T, s=2, color="0.4", depthshade=False)
    ax.set(xlabel="x", ylabel="y", zlabel="z", zlim=(-1.2, 1.2), xticks=(-1, 0, 1), zticks=(-1, 0, 1))
    ax.set_box_aspect((2, 4, 2), zoom=1.05)
    off = np.sqrt(np.mean(data.surface.distance(each.project(data.X)) ** 2))
    ax.set_title(f"{name}: {off:.3f}")
figure.subplots_adjust(left=0.02, right=0.96, bottom=0.02, top=0.98, wspace=0.12)

# %%
# How many dimensions
# -------------------
#
# The noise precision β rises as long as a further dimension explains something; a sheet has two. The evidence says
# the same.

choice = choose(data.X, {"n_components": (1, 2, 3)})
print(choice)
figure, axes = plt.subplots(1, 2, figsize=(8.5, 3.6), layout="constrained")
plot.choice(choice, values="precision", ax=axes[0])
plot.choice(choice, ax=axes[1])

# %%
# Widths and numbers of basis functions together
# ----------------------------------------------
#
# The more there are, the wider they may be: widths are in units of their spacing. The model that is chosen is fitted
# and ready for use.

choice = choose(data.X, {"width": (0.5, 0.7, 1.0, 1.4, 2.0, 2.8), "basis": (3, 4, 5, 7), "nodes": 15})
print(choice)
plot.choice(choice)
plt.show()
