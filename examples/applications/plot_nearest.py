"""
Which body, and which way does it point?
========================================

Pictures of three bodies in all their poses, with noise. Each body's pictures form a sphere in the space of
pictures, so a sphere is fitted to each. A new picture belongs to the sphere that it is nearest to, and its place
there is its pose.
"""

# %%
# The data
# --------
#
# Pictures of 12 × 12 pixels, 144 columns. The axis of a body points anywhere; light fades with distance, so
# that towards us and away from us look different.

import warnings

import numpy as np
from matplotlib import pyplot as plt
from scipy.linalg import orthogonal_procrustes
from sklearn.metrics import ConfusionMatrixDisplay

from prinfold import GTM, NearestSurfaceClassifier, datasets
from prinfold.exceptions import PrinfoldWarning

bodies = ("bottle", "mushroom", "shuttlecock")
seen = datasets.make_poses(600, noise=0.15, body=bodies, rng=0)
new = datasets.make_poses(600, noise=0.15, body=bodies, rng=1)

figure, axes = plt.subplots(3, 9, figsize=(9, 3.4), layout="constrained")
for row, label, body in zip(axes, range(3), bodies, strict=True):
    for ax, picture in zip(row, seen.X[seen.labels == label], strict=False):
        ax.imshow(picture.reshape(12, 12), cmap="inferno", vmin=0, vmax=2)
        ax.set_xticks([])
        ax.set_yticks([])
    row[0].set_ylabel(body)

# %%
# Which body?
# -----------
#
# One spherical GTM for each body; the nearest surface decides.

with warnings.catch_warnings():
    warnings.simplefilter("ignore", PrinfoldWarning)  # some poses look alike through the noise, and it says so
    model = NearestSurfaceClassifier(GTM(latent="sphere")).fit(seen.X, seen.names)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
found = model.locate(new.X)
ConfusionMatrixDisplay.from_predictions(new.names, found.labels, ax=left, colorbar=False, cmap="Blues")
left.set(title=f"{np.mean(found.labels == new.names):.1%} of new pictures are right")

distance = model.distances(new.X)
for label, body in enumerate(bodies):
    rows = new.labels == label
    right.plot(distance[rows, 0], distance[rows, 1], ".", ms=4, label=body)
right.axline((distance.mean(), distance.mean()), slope=1, color="0.5", lw=1)
right.set(xlabel="distance to the surface of bottles", ylabel="distance to that of mushrooms", aspect="equal")
right.legend(fontsize=8)

# %%
# Which way does it point?
# ------------------------
#
# Nobody told the model what a direction is, so that its sphere is the true one up to a turn or a reflection. Fitting
# that one rotation for each body (by orthogonal Procrustes) is the only thing the true poses are used for. A
# point of these maps is a pose: longitude runs round the camera's line of sight, height points to the camera. A line
# leads from the true pose of each picture to the one found; the colour is the angle between them.

figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained", sharey=True)
for ax, body in zip(axes, bodies, strict=True):
    rows = (new.names == body) & (found.labels == body)
    true = new.latent[rows]
    turn, _ = orthogonal_procrustes(found.latent[rows], true)
    pose = found.latent[rows] @ turn
    angle = np.degrees(np.arccos(np.clip(np.einsum("ij,ij->i", pose, true), -1, 1)))
    longitude = np.degrees(np.arctan2(true[:, 1], true[:, 0]))
    # The short way round: a line across the edge of the map would mean nothing.
    ahead = np.degrees(np.arctan2(pose[:, 1], pose[:, 0])) - longitude
    ahead -= 360 * np.round(ahead / 360)
    ax.plot([longitude, longitude + ahead], [true[:, 2], pose[:, 2]], color="0.75", lw=0.8)
    dots = ax.scatter(longitude, true[:, 2], c=angle, s=12, vmin=0, vmax=45, cmap="viridis", zorder=2)
    ax.set(title=f"{body}: half within {np.median(angle):.0f}°", xlabel="longitude", xlim=(-180, 180))
    ax.set_xticks([-180, -90, 0, 90, 180], ["−180°", "−90°", "0°", "90°", "180°"])
axes[0].set_ylabel("height: towards the camera")
figure.colorbar(dots, ax=axes, label="error of the pose in degrees", extend="max")

# %%
# The surfaces themselves
# -----------------------
#
# What a surface has learnt is seen by walking over it: pictures at evenly spaced longitudes, at three heights. No
# training picture is among them, and there is no noise.

surface = model.surfaces_[list(model.classes_).index("mushroom")]
rows = new.names == "mushroom"
turn, _ = orthogonal_procrustes(surface.transform(new.X[rows]), new.latent[rows])
figure, axes = plt.subplots(3, 9, figsize=(9, 3.2), layout="constrained")
for row, height in zip(axes, (0.8, 0.0, -0.8), strict=True):
    for ax, longitude in zip(row, np.radians(np.arange(0, 360, 40)), strict=True):
        ring = np.sqrt(1 - height**2)
        direction = np.array([[ring * np.cos(longitude), ring * np.sin(longitude), height]])
        picture = surface.inverse_transform(direction @ turn.T)
        ax.imshow(picture.reshape(12, 12), cmap="inferno", vmin=0, vmax=2)
        ax.set_xticks([])
        ax.set_yticks([])
    row[0].set_ylabel({0.8: "towards us", 0.0: "aside", -0.8: "away"}[height], fontsize=8)

plt.show()
