"""
Kernel map manifolds
====================

Two maps by kernel regression: coordinates of any row from the data, and points of the surface from coordinates. An
embedding gives a start, and parameters move until the round trip of a row ends near the row.
"""

# %%
# A swiss roll, unrolled
# ----------------------
#
# Rows lie around a roll; colour is the true angle. Coordinates begin as those of Isomap, and the round trip g(f(y))
# puts the rows back on the surface.

import numpy as np
from matplotlib import pyplot as plt

from prinfold import KMM, datasets, plot, select_kmm

data = datasets.make_swiss_roll(800, noise=0.4, rng=0)
model = KMM().fit(data.X)
print(model.candidates_)
print(model.stop_reason_, "after", model.n_iter_, "steps")

figure = plt.figure(figsize=(10, 3.6), layout="constrained")
titles = ("rows", "round trip g(f(y))")
for i, (points, title) in enumerate(zip((data.X, model.reconstruct(data.X)), titles, strict=True)):
    ax = figure.add_subplot(1, 3, i + 1, projection="3d")
    ax.scatter(*points.T, c=data.latent[:, 0], s=5)
    ax.set_title(title)
ax = figure.add_subplot(1, 3, 3)
ax.scatter(*model.embedding_.T, c=data.latent[:, 0], s=5)
ax.set_title("coordinates f(y)")

before, after = (np.square(each - data.clean).sum(axis=1).mean() for each in (data.X, model.reconstruct(data.X)))
print(f"squared distance to the true points: {before:.3f} of the rows, {after:.3f} after the round trip")

# %%
# How many dimensions
# -------------------
#
# Residuals before training, by dimension and number of neighbours. They fall steeply up to the dimension of the
# surface. Lines that lie high in two dimensions are numbers of neighbours for which Isomap folds the roll.

table = select_kmm(data.X, dimensions=(1, 2, 3), n_neighbors=(6, 10, 15))
plot.residuals(table)

# %%
# Images without their noise
# --------------------------
#
# The digits of scikit-learn with noise, learned from noisy images alone, and others that take the round trip.

digits = datasets.load_digits()
rng = np.random.default_rng(0)
clean = digits.X / 16.0
noisy = clean + 0.25 * rng.standard_normal(clean.shape)
order = rng.permutation(len(clean))
train, test = order[:800], order[800:]
images = KMM(3, n_neighbors=10).fit(noisy[train])
back = images.reconstruct(noisy[test])

shown = [int(np.flatnonzero(digits.labels[test] == digit)[0]) for digit in range(10)]
figure, axes = plt.subplots(3, 10, figsize=(9, 2.9), layout="constrained")
for row, pictures in zip(axes, (clean[test], noisy[test], back), strict=True):
    for ax, i in zip(row, shown, strict=True):
        ax.imshow(pictures[i].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        ax.set_axis_off()

before, after = (np.square(each - clean[test]).sum(axis=1).mean() for each in (noisy[test], back))
print(f"squared distance to the clean images: {before:.2f} with noise, {after:.2f} after the round trip")
