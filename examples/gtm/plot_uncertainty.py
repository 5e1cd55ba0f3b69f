"""
How sure is the map?
====================

Two things are uncertain: where a row lies on the map, and where the surface lies among the rows. The posterior of a row
says the first, the posterior of the weights the second.
"""

# %%
# Where a row lies
# ----------------
#
# The posterior of each row as an ellipse, half of it the standard deviation in every direction. Rows far apart from
# others, at the edge, or between two parts of the surface are less sure.

import numpy as np
from matplotlib import pyplot as plt

from prinfold import GTM, GaussianProcess, datasets, plot

sheet = datasets.make_thesis_surface(289, noise=0.15, rng=0)
model = GTM(nodes=25, basis=GaussianProcess(), max_iter=500).fit(sheet.X)

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
plot.uncertainty(model, sheet.X, ax=left)
plot.surface_band(model, sheet.X, ax=right)
left.set_title("the places of rows", fontsize=10)
right.set_title("the surface itself", fontsize=10)

# %%
# Where a curve lies
# ------------------
#
# Rows of a wave, with a gap in them. Two standard deviations on either side hold the curve at each place with a
# probability of 95 %. The approximate Hessian takes the node of each row as known; the exact one does not, and is
# wider.

rng = np.random.default_rng(0)
z = rng.uniform(-1, 1, 140)
z = z[(z < -0.15) | (z > 0.25)]
X = np.stack([2 * z, np.sin(3 * z)], axis=1) + 0.15 * rng.standard_normal((len(z), 2))
curve = GTM(1, nodes=80, basis=GaussianProcess(), init=z[:, None], max_iter=500).fit(X)

figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
for ax, hessian in zip(axes, ("approximate", "exact"), strict=True):
    plot.surface_band(curve, X, hessian=hessian, ax=ax)
    ax.plot(2 * np.linspace(-1, 1, 200), np.sin(3 * np.linspace(-1, 1, 200)), "k--", lw=1, label="truth")
    ax.set_title(f"{hessian} Hessian", fontsize=10)
    ax.legend(frameon=False)

# %%
# Does the band keep its word?
# ----------------------------
#
# Tables are drawn about a curve that is known, and the places are counted at which the band holds it. By the exact
# Hessian it does so about as often as it says.

places, nodes = np.linspace(-0.9, 0.9, 25)[:, None], np.linspace(-1, 1, 60)
truth = np.stack([2 * places[:, 0], np.sin(3 * places[:, 0])], axis=1)
held: dict[str, list[float]] = {"approximate": [], "exact": []}
for seed in range(25):
    draw = np.random.default_rng(seed)
    u = draw.choice(nodes, 300)
    rows = np.stack([2 * u, np.sin(3 * u)], axis=1) + 0.15 * draw.standard_normal((300, 2))
    fitted = GTM(1, nodes=60, basis=8, init=u[:, None], max_iter=500).fit(rows)
    error = np.abs(fitted.inverse_transform(places) - truth)
    for hessian, counts in held.items():
        counts.append(np.mean(error < 1.96 * fitted.surface_std(places, X=rows, hessian=hessian)))

for hessian, counts in held.items():
    print(f"{hessian}: {np.mean(counts):.0%} of the places are within the 95 % band, column by column")
