"""
Probabilistic principal surfaces
================================

The GTM puts round noise around every node. A principal surface wants noise that stands *across* the surface: a row then
belongs to the place onto which it projects. One number, the clamping, leads from one to the other and beyond.
"""

# %%
# From across to along
# --------------------
#
# A noisy half circle, and the same curve with four clampings. The ellipses hold two standard deviations of the noise of
# each node. Below 1 the noise stands across the curve, at 1 it is round and the model is the GTM, above 1 it lies along
# the curve. For a given noise the variance over all columns is the same: what is taken from one direction is given to
# the others. The noise itself is fitted, and has to be larger where it stands across nodes that are far apart.

import warnings

import numpy as np
from matplotlib import pyplot as plt

from prinfold import PPS, NearestSurfaceClassifier, datasets, plot
from prinfold.exceptions import PrinfoldWarning

curve = datasets.make_half_circle(150, noise=0.12, rng=1)
figure, axes = plt.subplots(2, 2, figsize=(9, 5.6), layout="constrained", sharex=True, sharey=True)
for ax, clamping in zip(axes.flat, (0.1, 0.5, 1.0, 1.8), strict=True):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrinfoldWarning)  # fifteen nodes are few, so that the noise can be seen
        model = PPS(1, clamping=clamping, nodes=15, basis=6, random_state=0).fit(curve.X)
    plot.surface(model, curve.X, noise=True, show_nodes=True, ax=ax)
    ax.set_title(f"clamping {clamping:g}" + (", the GTM" if clamping == 1 else ""))
    ax.label_outer()

# %%
# Nearer to the projection
# ------------------------
#
# ``reconstruct`` takes each row to the posterior mean of its place and back to the curve; ``project`` takes it to the
# nearest point. With round noise the two differ, because rows far off a bend have weight on both of its arms. As the
# clamping falls, they come together: the curve becomes self-consistent.

figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
clampings = [1.0, 0.7, 0.5, 0.35, 0.25, 0.18]
apart = []
for clamping in clampings:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrinfoldWarning)  # the noise spans many of so many nodes
        model = PPS(1, clamping=clamping, nodes=150, basis=8, max_iter=300, tol=1e-3).fit(curve.X)
    apart.append(np.sqrt(np.mean(np.square(model.reconstruct(curve.X) - model.project(curve.X)))))
ax.plot(clampings, apart, "o-", color="#0072B2")
ax.set(xlabel="clamping", ylabel="root mean square of\nreconstruct − project", ylim=(0, None))
ax.spines[["top", "right"]].set_visible(False)

# %%
# Unrolling
# ---------
#
# A swiss roll cannot be reached from the principal plane. Rows placed by an Isomap embedding, and weights by least
# squares on those places, make a start from which it can.

roll = datasets.make_swiss_roll(1000, rng=0)
figure = plt.figure(figsize=(9, 4.6), layout="constrained")
for column, init in enumerate(("pca", "isomap"), start=1):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrinfoldWarning)  # the first is meant to fail
        model = PPS(init=init, max_iter=300, tol=1e-3, random_state=0).fit(roll.X)
    ax = figure.add_subplot(1, 2, column, projection="3d")
    plot.surface(model, roll.X, values=roll.latent[:, 0], ax=ax)
    ax.set_title(f"init={init!r}: mean squared distance {model.projection_error(roll.X):.2f}")
    ax.view_init(elev=8, azim=-80)

# %%
# A sphere of poses
# -----------------
#
# Pictures of a body in all its poses lie near a closed surface without an edge. A spherical PPS for each of three
# bodies tells new pictures apart by the nearest surface.

bodies = ("bottle", "mushroom", "shuttlecock")
seen, new = (datasets.make_poses(300, noise=0.1, body=bodies, rng=seed) for seed in (0, 1))
surfaces = PPS(clamping=0.8, latent="sphere", max_iter=300, tol=1e-3, random_state=0)
with warnings.catch_warnings():
    warnings.simplefilter("ignore", PrinfoldWarning)  # some poses look alike through the noise, and it says so
    classifier = NearestSurfaceClassifier(surfaces).fit(seen.X, seen.names)
found = classifier.locate(new.X)
print(f"{np.mean(found.labels == new.names):.1%} of the new pictures are of the body that is named")
