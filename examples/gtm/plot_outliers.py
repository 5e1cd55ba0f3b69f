"""
Outliers, and noise that is not the same everywhere
===================================================

A row that lies far off pulls at a surface with the square of its distance. Noise with heavy tails lets it lie where it
is; and noise that varies along a curve says where rows can be trusted.
"""

# %%
# A tenth of the rows are wrong
# -----------------------------
#
# The same half circle fitted twice: with normal noise and with a Student t about every node. Colours are the weights
# with which rows counted in the end.

import warnings

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.colors import LogNorm

from prinfold import GTM, VaryingNoise, datasets, plot
from prinfold.exceptions import PrinfoldWarning

data = datasets.make_half_circle(400, noise=0.1, rng=1)
rng = np.random.default_rng(0)
X, wrong = data.X.copy(), np.arange(400) < 40
X[wrong] += 2.5 * rng.standard_normal((40, 2))
truth = data.surface.point(np.linspace(data.latent.min(), data.latent.max(), 200)[:, None])

with warnings.catch_warnings():
    warnings.simplefilter("ignore", PrinfoldWarning)  # noise that spans the whole curve is warned of
    plain = GTM(1, nodes=40).fit(X)
student = GTM(1, nodes=40, noise="student").fit(X)
weight = student.outlier_weights(X)


def off(model):
    """Root mean square distance of the curve from the true one."""
    curve = model.mesh().vertices
    return np.sqrt(np.mean(np.square(data.surface.distance(curve))))


figure, axes = plt.subplots(1, 2, figsize=(9.6, 3.9), layout="constrained", sharex=True, sharey=True)
for ax, model, words in zip(axes, (plain, student), ("normal noise", "Student noise"), strict=True):
    color = weight if model is student else np.full(400, 1.0)
    dots = ax.scatter(*X.T, c=color, s=9, cmap="viridis", norm=LogNorm(1e-3, 3))
    ax.plot(*truth.T, color="0.6", lw=4, label="truth")
    ax.plot(*model.mesh().vertices.T, color="#D55E00", lw=2, label="fitted")
    ax.set(title=f"{words}: off by {off(model):.2f}", aspect="equal", xlim=(-4, 4), ylim=(-3, 4))
axes[0].legend(frameon=False)
figure.colorbar(dots, ax=axes, label="weight of a row")

# %%
# Which rows are wrong?
# ---------------------
#
# Weights fall with the square of the distance from the curve, so that rows which are plainly wrong stand apart, while
# those that were moved by little cannot be told from the rest, and need not be.

figure, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
bins = np.geomspace(weight.min(), weight.max(), 40)
ax.hist(
    [weight[~wrong], weight[wrong]], bins=bins, stacked=True, color=["#0072B2", "#D55E00"], label=["right", "wrong"]
)
ax.set(xscale="log", xlabel="weight of a row", ylabel="rows")
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)

# %%
# Noise that grows along a curve
# ------------------------------
#
# About this curve the noise grows from 0.03 to 0.33. Its standard deviation is found at every place, as a smooth
# function; discs hold two of it.

u = rng.uniform(-1, 1, 1500)
clean = np.stack([2 * u, np.sin(2.5 * u)], axis=1)
Y = clean + 0.03 * np.exp(1.2 * (u + 1))[:, None] * rng.standard_normal((1500, 2))
with warnings.catch_warnings():
    warnings.simplefilter("ignore", PrinfoldWarning)  # where the noise is wide it spans many nodes
    varying = GTM(1, nodes=40, noise=VaryingNoise(mixing=False)).fit(Y)
    constant = GTM(1, nodes=40).fit(Y)

figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.6), layout="constrained")
plot.surface(varying, Y, noise=True, ax=left)
left.set_title(f"{varying.score(Y) - constant.score(Y):.2f} nats per row above constant noise")
place = varying.inverse_transform(varying.latent_.nodes)[:, 0] / 2
right.plot(place, 0.03 * np.exp(1.2 * (place + 1)), color="0.6", lw=4, label="truth")
right.plot(place, varying.noise_parameters_["node_precisions"] ** -0.5, color="#D55E00", lw=2, label="varying noise")
right.axhline(constant.noise_variance_**0.5, color="#0072B2", lw=2, label="constant noise")
right.set(xlabel="place along the curve", ylabel="standard deviation", yscale="log")
right.legend(frameon=False)
right.spines[["top", "right"]].set_visible(False)
plt.show()
