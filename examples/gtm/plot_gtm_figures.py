"""
The figures of the GTM thesis
=============================

Chapter 3 of Svensén's thesis shows a GTM learning a curve and laying out measurements of the flow in a pipe. Here are
the same pictures, from data simulated in the same way.
"""

import warnings

from matplotlib import pyplot as plt

from prinfold import GTM, datasets, plot
from prinfold.exceptions import PrinfoldWarning

# The fits below are stopped on purpose before they settle, and such surfaces may well be ambiguous or folded.
warnings.simplefilter("ignore", PrinfoldWarning)

# %%
# A curve learns (figure 3.2)
# ---------------------------
# The curve starts on the first principal component. Discs of two standard deviations of the noise surround the
# nodes; as the curve finds the data, they shrink.

curve = datasets.make_thesis_curve(80, rng=1)
figure, panels = plt.subplots(2, 3, figsize=(10, 6), layout="constrained", sharex=True, sharey=True)
for ax, steps in zip(panels.flat, (0, 1, 2, 4, 8, 15), strict=True):
    model = GTM(1, nodes=20, basis=5, max_iter=steps, tol=0).fit(curve.X)
    plot.surface(model, curve.X, noise=True, show_nodes=True, ax=ax)
    ax.set(title=f"iteration {steps}", xlim=(-0.3, 3.6), ylim=(-0.4, 3.4))
    ax.label_outer()

# %%
# A map of pipe flow, before and after (figure 3.6)
# -------------------------------------------------
# Twelve measurements on each of 1000 flows, laid out in two dimensions: on the principal plane, and after training.
# Below, lines join the posterior mean and mode of 100 rows, a long one warning that a row has several likely places;
# and the surface is shaded by its magnification factor, dark where it is stretched over few rows.

pipe = datasets.make_pipe_flow(1000, rng=0)
flow = pipe.names
settings = {"nodes": 20, "basis": 9, "width": 2.0, "prior_precision": 0.1}
start = GTM(**settings, max_iter=0, tol=0).fit(pipe.X)
trained = GTM(**settings, max_iter=40, tol=0).fit(pipe.X)

figure, ((above, trained_map), (doubts, shaded)) = plt.subplots(2, 2, figsize=(9.4, 9.2), layout="constrained")
plain = {"background": None, "show_nodes": True}
plot.latent_map(start, pipe.X, labels=flow, ax=above, **plain)
plot.latent_map(trained, pipe.X, labels=flow, ax=trained_map, **plain)
plot.latent_map(trained, pipe.X[:100], labels=flow[:100], mode_lines=True, ax=doubts, **plain)
plot.latent_map(trained, pipe.X, labels=flow, ax=shaded)

# %%
# One row makes up its mind (figures 3.7 and 3.8)
# -----------------------------------------------
# The posterior of the row whose mean and mode end up farthest apart.

doubtful = pipe.X[int(trained.mode_distance(pipe.X).argmax())]
figure, panels = plt.subplots(2, 2, figsize=(9.4, 8.2), layout="constrained")
figure.get_layout_engine().set(w_pad=0.15)
for ax, steps in zip(panels.flat, (0, 2, 4, 40), strict=True):
    plot.posterior(GTM(**settings, max_iter=steps, tol=0).fit(pipe.X), doubtful, ax=ax)
    ax.set(xlabel=f"iteration {steps}", ylabel="")

# %%
# Where the surface is stretched (figures 4.6 and 4.7)
# ----------------------------------------------------
# A ridge in space: the slope in its middle takes up little of the map, so the surface is stretched there. It is bent at
# the foot and at the top of the slope, which the angles between neighbouring tangent planes show.

ridge = datasets.make_ridge(400, rng=0)
model = GTM(nodes=10, basis=6, random_state=0).fit(ridge.X)
figure = plt.figure(figsize=(9.4, 8.2), layout="constrained")
figure.get_layout_engine().set(w_pad=0.15)
plot.surface(model, ridge.X[::4], ax=figure.add_subplot(2, 2, 1, projection="3d"))
plot.latent_map(model, ridge.X, ax=figure.add_subplot(2, 2, 2))
plot.magnification(model, ax=figure.add_subplot(2, 2, 3))
plot.folds(model, ax=figure.add_subplot(2, 2, 4))
plt.show()
