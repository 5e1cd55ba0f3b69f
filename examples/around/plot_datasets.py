"""
Data to try methods on
======================

Every simulator returns noisy rows together with the curve or surface they came from, so that a fitted
surface can be judged against the truth. Here they all are.
"""

# %%
# Curves in the plane
# -------------------
# Dots are rows, the line is the true curve. The last panel has no curve: two Gaussians, which a single
# sheet cannot describe well.

import matplotlib.pyplot as plt
import numpy as np

from prinfold import datasets

curves = [
    datasets.make_spiral,
    datasets.make_zigzag,
    datasets.make_half_circle,
    datasets.make_circle,
    datasets.make_star,
    datasets.make_epitrochoid,
    datasets.make_thesis_curve,
    datasets.make_two_gaussians,
]
fig, axes = plt.subplots(2, 4, figsize=(9, 5), layout="constrained")
for ax, make in zip(axes.flat, curves, strict=True):
    data = make(rng=0)
    ax.plot(*data.X.T, ".", ms=3, alpha=0.6)
    if data.surface is not None:
        mesh = data.surface.mesh(600)
        ax.plot(*np.swapaxes(mesh.vertices[mesh.faces], 0, 2), "k", lw=1)
    ax.set_title(make.__name__.removeprefix("make_"), fontsize=9)
    ax.set_aspect("equal")
    ax.set_axis_off()

# %%
# Surfaces in space
# -----------------
# Colour is the first latent coordinate (height on the sphere), drawn on the true surface; dots are rows.

sheets = [
    datasets.make_corkscrew,
    datasets.make_swiss_roll,
    datasets.make_ridge,
    datasets.make_thesis_surface,
    datasets.make_semilinear_sheet,
    datasets.make_sphere,
    datasets.make_torus,
]
fig, axes = plt.subplots(2, 4, figsize=(9, 5), layout="constrained", subplot_kw={"projection": "3d"})
axes.flat[-1].remove()
for ax, make in zip(axes.flat, sheets, strict=False):
    data = make(rng=0)
    mesh = data.surface.mesh(24)
    tone = mesh.latent[mesh.faces[:, 0], -1 if make is datasets.make_sphere else 0]
    patch = ax.plot_trisurf(*mesh.vertices.T, triangles=mesh.faces, alpha=0.5, lw=0, cmap="viridis")
    patch.set_array(tone)
    patch.autoscale()
    ax.scatter(*data.X.T, s=2, c="k", alpha=0.4)
    ax.set_title(make.__name__.removeprefix("make_"), fontsize=9)
    ax.set_box_aspect(np.ptp(mesh.vertices, axis=0), zoom=1.4)
    ax.set_axis_off()

# %%
# Distances to the truth
# ----------------------
# ``surface.distance`` is exact. With noise along the normal it is the noise itself, wherever the noise is
# small against the curvature; with isotropic noise part of it slides along the curve.

fig, ax = plt.subplots(figsize=(5, 3), layout="constrained")
for kind in ("normal", "isotropic"):
    data = datasets.make_spiral(3000, noise=0.02, noise_kind=kind, rng=0)
    ax.plot(np.linalg.norm(data.X - data.clean, axis=1), data.surface.distance(data.X), ".", ms=2, label=kind)
ax.set(xlabel="length of the noise", ylabel="distance to the true curve")
ax.legend(markerscale=5)

# %%
# Oil, water and gas in a pipe
# ----------------------------
# Six gamma beams cross a pipe; the twelve columns are the lengths of water and oil that each meets. The
# three flows, seen in the first two principal components: homogeneous flow is a flat triangle, annular flow
# a bent one, stratified flow falls to pieces because a level beam is either in a layer or not.

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
beams = datasets.Beams()
left.add_patch(plt.Circle((0, 0), 1, fill=False, lw=2))
for x, half in zip(beams.vertical, beams.chords[:3] / 2, strict=True):
    left.annotate("", (x, half + 0.15), (x, -half - 0.15), arrowprops={"arrowstyle": "->", "color": "C3"})
for y, half in zip(beams.horizontal, beams.chords[3:] / 2, strict=True):
    left.annotate("", (half + 0.15, y), (-half - 0.15, y), arrowprops={"arrowstyle": "->", "color": "C3"})
left.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), aspect="equal", title="beams")
left.set_axis_off()

data = datasets.make_pipe_flow(rng=0)
centered = data.X - data.X.mean(axis=0)
plane = centered @ np.linalg.svd(centered, full_matrices=False)[2][:2].T
for label, name in enumerate(data.class_names):
    right.plot(*plane[data.labels == label].T, ".", ms=3, label=name)
right.set(xlabel="first component", ylabel="second component")
right.legend()

# %%
# Bodies in all their poses
# -------------------------
# A body of revolution is seen by a camera that stands still. Its pose is the direction of its axis: aside, aslant
# towards the camera, straight at it, aslant away from it, straight away. Light fades with distance, so that towards
# and away differ. The last column has noise of 0.1.

poses = np.array([[1.0, 0, 0], [0, 1, 0], [0.7, 0, 0.7], [0, 0, 1], [0.7, 0, -0.7], [0, 0, -1]])
poses /= np.linalg.norm(poses, axis=1, keepdims=True)
bodies = ("bottle", "mushroom", "shuttlecock")
fig, axes = plt.subplots(3, 7, figsize=(9, 4.2), layout="constrained")
for row, body in zip(axes, bodies, strict=True):
    data = datasets.make_poses(1, body=body, rng=0)
    for ax, picture in zip(row, [*data.surface.point(poses), data.X], strict=True):
        ax.imshow(picture.reshape(12, 12), cmap="inferno", vmin=0, vmax=2)
        ax.set_xticks([])
        ax.set_yticks([])
    row[0].set_ylabel(body)
for ax, words in zip(axes[0], ("right", "up", "towards", "at us", "away", "from us", "any, noisy"), strict=True):
    ax.set_title(words, fontsize=9)

plt.show()
