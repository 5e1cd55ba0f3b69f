"""
Surfaces of a density
=====================

A ridge of dimension two is a surface. The ridge points are thinned to nodes, which are laid out flat with as little
stretching as possible. Small patches about them, each with the tangent plane of the ridge there, make up a smooth map
back to the data.
"""

# %%
# A roll, unrolled
# ----------------
#
# Rows scatter about a roll. Left the ridge of their density as a surface; right the rows on its chart, coloured by how
# far along the roll they truly are. Lengths on the chart are lengths on the roll.

import numpy as np
from matplotlib import pyplot as plt

from prinfold import DensityRidge, datasets, plot

roll = datasets.make_swiss_roll(2500, noise=0.4, rng=0, sampling="area")
model = DensityRidge(2).fit(roll.X)
turn = roll.latent[:, 0]
figure = plt.figure(figsize=(12, 4.2), layout="constrained")
plot.surface(model, roll.X, values=turn, value_name="angle", ax=figure.add_subplot(1, 2, 1, projection="3d"))
plot.latent_map(model, roll.X, values=turn, value_name="angle", ax=figure.add_subplot(1, 2, 2))

length = 0.5 * (turn * np.hypot(1.0, turn) + np.arcsinh(turn))
along, height = model.transform(roll.X).T
print(f"along the chart against along the roll:   {abs(np.polyfit(length, along, 1)[0]):.3f}")
print(f"across the chart against across the roll: {abs(np.polyfit(roll.latent[:, 1], height, 1)[0]):.3f}")

# %%
# How near it is
# --------------
#
# Root mean square distances to the true roll, of the rows, of where they end, and of the surface everywhere.

for name, points in (
    ("rows", roll.X),
    ("ridge points", model.ridge_.points),
    ("surface", model.mesh().vertices),
):
    print(f"{name:13} {np.sqrt(np.mean(roll.surface.distance(points) ** 2)):.3f}")

# %%
# What cannot be laid flat
# ------------------------
#
# A sphere has no chart of its own. It is cut where that leaves the least strain, and the pieces lie side by side; no
# part of the surface is lost between them. Colour is the height of a row.

ball = datasets.make_sphere(2000, noise=0.05, rng=0)
closed = DensityRidge(2, bandwidth=0.25).fit(ball.X)
figure = plt.figure(figsize=(12, 4.2), layout="constrained")
marks = {"values": ball.X[:, 2], "value_name": "height"}
plot.surface(closed, ball.X, **marks, ax=figure.add_subplot(1, 2, 1, projection="3d"))
plot.latent_map(closed, ball.X, **marks, ax=figure.add_subplot(1, 2, 2))
away = np.linalg.norm(ball.X - closed.project(ball.X), axis=1)
print(f"the farthest row is {away.max():.2f} from the surface")
