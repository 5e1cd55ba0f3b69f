"""
Closed and spherical maps
=========================

Cycles have no ends, directions no edge. A GTM on a circle, a cylinder, a torus or a sphere has none either: its map may
be cut open to be drawn, but nothing happens at the cut.
"""

# %%
# A knot
# ------
#
# A trefoil is a closed curve that no plane shows without crossings. A start from the principal plane takes short cuts
# and never gets loose; one that follows the loop which persists in the rows (``init="cycles"``, one of those that the
# default tries) lies in the knot from the beginning. Colour is the angle that generated the rows.

import warnings

import numpy as np
from matplotlib import pyplot as plt

from prinfold import GTM, datasets, plot
from prinfold.exceptions import PrinfoldWarning
from prinfold.metrics import align

knot = datasets.make_knot(500, noise=0.06, rng=0)
figure, axes = plt.subplots(1, 2, figsize=(10, 5), layout="constrained", subplot_kw={"projection": "3d"})
for ax, init in zip(axes, ("pca", "cycles"), strict=True):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrinfoldWarning)
        model = GTM(latent="circle", init=init, random_state=0).fit(knot.X)
    left = align(model.transform(knot.X), knot.latent, model.latent_.domain)
    ring = model.inverse_transform(np.linspace(-np.pi, np.pi, 400)[:, None])
    ax.scatter(*knot.X.T, c=knot.latent[:, 0], cmap="twilight", s=6)
    ax.plot(*ring.T, color="#d1495b", lw=2.5)
    ax.set_title(f'init="{init}": {np.median(left.degrees):.0f}° off')
    ax.set_axis_off()
    ax.view_init(60, -60)
    ax.set_box_aspect((3, 3, 1), zoom=1.5)

# %%
# The map of a knot is a ring, and its magnification factor the speed at which the curve is run through.

ax = plot.latent_map(model, knot.X, values=np.degrees(knot.latent[:, 0]), value_name="generating angle in degrees")

# %%
# A torus
# -------
#
# Two angles, and two seams. Where the map is cut open the shading goes on at the opposite edge, and ellipses at the cut
# show on both sides.

ring = datasets.make_torus(1000, rng=0)
torus = GTM(latent="torus", random_state=0).fit(ring.X)
ax = plot.surface(torus, ring.X)

# %%

ax = plot.magnification(torus)

# %%
# A row at a seam has its posterior on both sides of the cut, and its mean between them, not in the middle of the map.

at_the_seam = ring.X[np.argmax(np.abs(torus.transform(ring.X)[:, 0]))]
ax = plot.posterior(torus, at_the_seam)

# %%
# A sphere
# --------
#
# Directions in ten columns. The map of the sphere is drawn by longitude and height, which keeps areas. Beside it, a
# plane was fitted to the same rows: it has to tear them somewhere. Lines join neighbours that lie apart on the map.

ball = datasets.make_sphere(600, n_features=10, noise=0.03, rng=0)
round_map = GTM(latent="sphere", random_state=0).fit(ball.X)
flat_map = GTM(random_state=0).fit(ball.X)
near = np.argsort(((ball.X[:, None] - ball.X[None]) ** 2).sum(axis=2), axis=1)[:, 1:5]
figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained", width_ratios=(1.7, 1))
for ax, model in zip(axes, (round_map, flat_map), strict=True):
    Z = model.transform(ball.X)
    gap = model.latent_.distance(np.repeat(Z, 4, axis=0), Z[near.ravel()]).reshape(near.shape)
    torn = np.argwhere(gap > 5 * np.median(gap))
    place = model.latent_.chart(Z)
    for i, j in torn:
        ax.plot(*place[[i, near[i, j]]].T, color="#d1495b", lw=0.6, zorder=0)
    ax.scatter(*place.T, c=ball.latent[:, 2], cmap="viridis", s=8)
    ax.set_title(f"{len(torn)} of {gap.size} neighbours torn apart")
    ax.set_xticks([])
    ax.set_yticks([])

# %%
# The coordinates that generated the rows come back up to a turn or a reflection of the sphere.

left = align(round_map.transform(ball.X), ball.latent, round_map.latent_.domain)
figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.hist(left.degrees, bins=40, color="#1f6f8b")
ax.set_xlabel("error in degrees")
ax.set_ylabel("rows")
ax.set_title(f"half of the rows within {np.median(left.degrees):.1f}°")
plt.show()
