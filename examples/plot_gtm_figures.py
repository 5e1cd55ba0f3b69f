"""
The figures of the GTM thesis
=============================

Chapter 3 of Svensén's thesis shows a GTM learning a curve and laying out measurements of the flow in a pipe. Here are
the same pictures, from data simulated in the same way.
"""

import warnings

from matplotlib import pyplot as plt

from prinfold import GTM, datasets, plot

# The fits below are stopped on purpose before they settle, which would otherwise be remarked on.
warnings.simplefilter("ignore")

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
# Twelve measurements on each of 1000 flows, laid out in two dimensions: on the principal plane, and after training. On
# the right, lines join the posterior mean and mode of 100 rows. A long line warns that a row has several likely places.

pipe = datasets.make_pipe_flow(1000, rng=0)
flow = pipe.names
settings = {"nodes": 20, "basis": 9, "width": 2.0, "prior_precision": 0.1, "regularization": None}
start = GTM(**settings, max_iter=0).fit(pipe.X)
trained = GTM(**settings, max_iter=40, tol=0).fit(pipe.X)

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4.6), layout="constrained")
plot.latent_map(start, pipe.X, labels=flow, background=None, show_nodes=True, ax=left)
plot.latent_map(trained, pipe.X, labels=flow, background=None, show_nodes=True, ax=middle)
plot.latent_map(trained, pipe.X[:100], labels=flow[:100], background=None, show_nodes=True, mode_lines=True, ax=right)

# %%
# One row makes up its mind (figures 3.7 and 3.8)
# -----------------------------------------------
# The posterior of the row whose mean and mode end up farthest apart.

doubtful = pipe.X[int(trained.mode_distance(pipe.X).argmax())]
figure, panels = plt.subplots(1, 4, figsize=(14, 3.4), layout="constrained")
for ax, steps in zip(panels, (0, 2, 4, 40), strict=True):
    plot.posterior(GTM(**settings, max_iter=steps, tol=0).fit(pipe.X), doubtful, ax=ax)
    ax.set_xlabel(f"iteration {steps}")

# %%
# Where the surface is stretched (figures 4.6 and 4.7)
# ----------------------------------------------------
# A ridge in space: the slope in its middle takes up little of the map, so the surface is stretched there.

ridge = datasets.make_ridge(400, rng=0)
model = GTM(nodes=10, basis=6, random_state=0).fit(ridge.X)
figure = plt.figure(figsize=(14, 4.6), layout="constrained")
plot.surface(model, ridge.X, ax=figure.add_subplot(1, 3, 1, projection="3d"))
plot.latent_map(model, ridge.X, ax=figure.add_subplot(1, 3, 2))
plot.magnification(model, ax=figure.add_subplot(1, 3, 3))
plt.show()
