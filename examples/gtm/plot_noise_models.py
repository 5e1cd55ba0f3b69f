"""
Noise models
============

How rows scatter about a surface is a choice of its own. Each of the noises below is shown where it helps, beside the
isotropic noise that a GTM has by default.
"""

# %%
# Columns measured differently
# ----------------------------
#
# A curve in six columns, each measured as well or as badly as it is. Isotropic noise takes the mean of all; diagonal
# noise finds the deviation of each column, and gives new rows a higher likelihood.

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.collections import EllipseCollection

from prinfold import GTM, SemiLinearGTM, datasets


def show(ax, model, X):
    """Rows, the curve, and the noise at its nodes."""
    sizes, axes = np.linalg.eigh(model.noise_covariance())
    angles = np.degrees(np.arctan2(axes[:, 1, 1], axes[:, 0, 1]))
    where = {"units": "xy", "offset_transform": ax.transData}
    centers = model.inverse_transform(model.latent_.nodes)
    ax.add_collection(
        EllipseCollection(
            4 * np.sqrt(sizes[:, 1]),
            4 * np.sqrt(sizes[:, 0]),
            angles,
            offsets=centers,
            fc="#e08e4555",
            ec="none",
            **where,
        )
    )
    ax.plot(*X.T, ".", ms=4, color="#1f6f8b")
    ax.plot(*model.mesh().vertices.T, color="black", lw=1)
    ax.plot(*centers.T, "+", color="black", ms=5)
    ax.set_title(f"{model.noise}: {model.score(X):.2f} nats a row")
    ax.set_aspect("equal")


def curve(n, rng):
    """Rows about a curve in six columns."""
    u = rng.uniform(-1, 1, n)
    clean = np.stack([2 * u, u**2 + u, np.sin(2 * u), 1.5 * u, -u, u**3], axis=1)
    return clean + truth * rng.standard_normal(clean.shape)


truth = np.array([0.1, 0.3, 0.2, 0.1, 0.15, 0.4])
rows, new = curve(500, np.random.default_rng(0)), curve(500, np.random.default_rng(1))
figure, ax = plt.subplots(figsize=(8, 3.5), layout="constrained")
ax.bar(np.arange(6), truth, 0.8, color="0.85", label="as measured")
for noise, marker in (("isotropic", "_"), ("diagonal", "x")):
    model = GTM(1, nodes=40, basis=6, noise=noise, regularization=1e-2).fit(rows)
    found = np.sqrt(np.diagonal(model.noise_covariance()[0]))
    ax.plot(found, marker, ms=14, mew=2, label=f"{noise}: {model.score(new):.2f} nats a new row")
ax.set_xlabel("column")
ax.set_ylabel("standard deviation of the noise")
ax.legend()

# %%
# Few nodes, far apart
# --------------------
#
# Noise has to bridge the gaps between nodes. Isotropic noise does so in all directions and is then too wide across the
# curve; aligned noise (section 6.2 of Svensén's thesis) reaches along it, the further the more it is stretched.

X = datasets.make_thesis_curve(rng=1).X
figure, axes = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
for ax, noise in zip(axes, ("isotropic", "aligned"), strict=True):
    show(ax, GTM(1, nodes=10, basis=5, noise=noise, regularization=1e-3).fit(X), X)

# %%
# Curved one way, straight the other
# ----------------------------------
#
# A sheet bent along one direction only needs nodes along that one. The other is a direction in which rows scatter, the
# same at every node (section 6.4, the semi-linear model): twenty nodes instead of hundreds. The curve is found where
# the sheet is bent, and the coordinate along the straight direction follows the latent one.

data = datasets.make_semilinear_sheet(noise=0.05, rng=0)
model = SemiLinearGTM(GTM(1, nodes=20, basis=5, regularization=1e-3)).fit(data.X)
Z = model.transform(data.X)
curve, along = model.gtm_.mesh().vertices, model.linear_axes_[0]

figure = plt.figure(figsize=(11, 4.8), layout="constrained")
ax = figure.add_subplot(1, 2, 1, projection="3d")
ax.scatter(*data.X.T, s=5, c=Z[:, 1], cmap="viridis")
ax.plot(*curve.T, color="black", lw=2)
for place in model.gtm_.inverse_transform(model.gtm_.latent_.nodes[::3]):
    ax.plot(*np.stack([place - 2 * along, place + 2 * along], axis=1), color="black", lw=0.6)
ax.set_title("curve and straight direction; colour: linear coordinate")
ax = figure.add_subplot(1, 2, 2)
shown = ax.scatter(*data.latent.T, s=12, c=Z[:, 0], cmap="viridis")
ax.set_title("the sheet laid flat; colour: latent coordinate")
ax.set_xlabel("x, bent")
ax.set_ylabel("y, straight")
figure.colorbar(shown, ax=ax)

plt.show()
