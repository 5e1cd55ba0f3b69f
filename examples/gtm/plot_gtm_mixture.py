"""
Mixtures of maps
================

Where data come from several manifolds, one map has to bridge the gaps between them. A mixture gives each its own map,
and every row a degree to which it belongs to each.
"""

# %%
# Several curves
# --------------
#
# A ring, an arc and a line, each with some noise. One curve runs through all of them in turn and has to cross the gaps.
# Three do not; each may be of its own kind.

import numpy as np
from matplotlib import pyplot as plt

from prinfold import GTM, GTMHierarchy, GTMMixture, choose, datasets, plot

rng = np.random.default_rng(0)
t = rng.uniform(-np.pi, np.pi, 450)
ring = np.stack([np.cos(t), np.sin(t)], axis=1)[:150]
arc = np.stack([2.6 + 1.2 * np.cos(t / 2), 1.4 * np.sin(t / 2) - 0.4], axis=1)[150:300]
line = np.stack([0.8 * t - 0.4, 0.25 * t + 2.2], axis=1)[300:]
X = np.concatenate([ring, arc, line]) + 0.06 * rng.standard_normal((450, 2))

one = GTM(1, random_state=0).fit(X)
kinds = [GTM(1, latent="circle"), GTM(1), GTM(1)]
three = GTMMixture(3, kinds, random_state=0).fit(X)

figure, axes = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained", sharex=True, sharey=True)
plot.surface(one, X, ax=axes[0])
plot.surface(three, X, labels=three.memberships(X).argmax(axis=1), ax=axes[1])
axes[0].set_title(f"one map: {one.score(X):.2f} nats a row", loc="left")
axes[1].set_title(f"three maps: {three.score(X):.2f}", loc="right")

# %%
# How many maps
# -------------
#
# Rows held out decide: of the arc and the line alone, one map is too few, and a third gains nothing.

recipe = GTMMixture(gtm=GTM(1), random_state=0)
choice = choose(X[150:], {"n_maps": (1, 2, 3, 4)}, model=recipe, by="held-out", folds=4, simplest=True)
print(choice)
ax = plot.choice(choice)

# %%
# Maps side by side
# -----------------
#
# Twelve measurements of a pipeline in which oil, water and gas flow in one of three configurations. Every row is drawn
# on each map, with an opacity given by its membership; shading is the magnification factor, on one scale.

data = datasets.make_pipe_flow(1000, rng=0)
recipe = GTM(nodes=20, basis=5)
mixture = GTMMixture(4, recipe, random_state=0).fit(data.X)
ax = plot.mixture(mixture, data.X, labels=data.names)

# %%
# Looking closer
# --------------
#
# Bishop and Tipping's way: begin with one map of everything, look into it with a mixture, and into a map of that again.
# Rows are handed down by their memberships, and lines lead from each map to what was found in it.

tree = GTMHierarchy(GTMMixture(1, recipe)).fit(data.X)
tree.drill_down(data.X, (0,), GTMMixture(3, recipe, random_state=0))
tree.drill_down(data.X, (0, 0), GTMMixture(2, recipe, random_state=0))
tree.drill_down(data.X, (0, 1), GTMMixture(2, recipe, random_state=0))
for name, score in (("root", tree.node(()).score(data.X)), ("all leaves", tree.score(data.X))):
    print(f"{name}: {score:.2f} nats a row")
ax = tree.plot(data.X, labels=data.names)

# %%
# One may also point at the places to look into: here three on the first map, each of which becomes the beginning of a
# map of its own.

places = [[-0.7, -0.5], [0.7, -0.5], [0.0, 0.8]]
child = tree.node(()).drill_down(data.X, 0, GTMMixture(gtm=recipe, max_iter=500), places=places)
ax = plot.mixture(child, data.X, values=data.fractions[:, 2], value_name="fraction of water")
