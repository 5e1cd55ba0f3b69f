"""
Classes told apart by kernel densities
======================================

A kernel density for each class makes a classifier that needs one number, the bandwidth, and the training rows
themselves say which. It shows where classes lie in a map, and measures how much of them a map keeps.
"""

# %%
# Too narrow, likeliest, too wide
# -------------------------------
#
# Handwritten threes, fives and eights, 8 × 8 pixels, in the plane of their first two principal components. Colours
# show the likeliest class at each place, the paler the less sure. Narrow kernels follow single rows; wide ones know
# little more than where the classes have their means. The bandwidth in the middle makes each training row as likely as
# possible by the other rows of its class.

import numpy as np
from matplotlib import pyplot as plt
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split

from prinfold import GTM, KernelDensityClassifier, datasets

digits = datasets.load_digits()
some = np.isin(digits.labels, (3, 5, 8))
X, X_new, y, y_new = train_test_split(digits.X[some], digits.labels[some], test_size=0.5, random_state=0)
plane = PCA(2).fit(X)
Z, Z_new = plane.transform(X), plane.transform(X_new)

COLORS = np.array([[0.12, 0.47, 0.71], [0.93, 0.49, 0.10], [0.20, 0.60, 0.25]])


def draw(ax, model, Z, labels, names):
    """The likeliest class at each place of a plane, and the rows."""
    low, high = Z.min(axis=0), Z.max(axis=0)
    low, high = low - 0.15 * (high - low), high + 0.15 * (high - low)
    places = np.stack(np.meshgrid(*np.linspace(low, high, 200).T), axis=-1)
    shares = model.predict_proba(places.reshape(-1, 2))
    sure = (shares.max(axis=1, keepdims=True) - 1 / 3) * 1.5
    ink = 1 - 0.5 * sure * (1 - COLORS[shares.argmax(axis=1)])
    box = (low[0], high[0], low[1], high[1])
    ax.imshow(ink.reshape(200, 200, 3), extent=box, origin="lower", aspect="auto")
    for color, label, name in zip(COLORS, model.classes_, names, strict=True):
        ax.plot(*Z[labels == label].T, ".", ms=3.5, color=0.75 * color, label=name)
    ax.set_xticks([])
    ax.set_yticks([])


likeliest = KernelDensityClassifier().fit(Z, y).bandwidth_[0]
figure, axes = plt.subplots(1, 3, figsize=(11, 4), layout="constrained")
for ax, factor, word in zip(axes, (0.1, 1.0, 8.0), ("too narrow", "likeliest", "too wide"), strict=True):
    model = KernelDensityClassifier(bandwidth=factor * likeliest).fit(Z, y)
    draw(ax, model, Z, y, "358")
    ax.set_title(f"{word}: bandwidth {model.bandwidth_[0]:.2g}\n{1 - model.score(Z_new, y_new):.0%} of new rows wrong")
axes[0].legend(markerscale=3)

# %%
# How the bandwidth is found
# --------------------------
#
# Left, the log-likelihood of the training rows, each by the others of its class, for many bandwidths; it knows nothing
# of the new rows. Right, how many of those come out wrong. The likeliest bandwidth is meant to describe the densities,
# not to make the fewest errors: here kernels two to three times as wide do a little better.

bandwidths = np.geomspace(0.05, 20, 40) * likeliest
gap = ((Z[:, None] - Z[None]) ** 2).sum(axis=2)
others = (y[:, None] == y[None]) & ~np.eye(len(y), dtype=bool)
likelihood = [
    np.mean(np.log((np.exp(-0.5 * gap / h**2) * others).sum(axis=1) / others.sum(axis=1) / h**2 + 1e-300))
    for h in bandwidths
]
errors = [1 - KernelDensityClassifier(bandwidth=h).fit(Z, y).score(Z_new, y_new) for h in bandwidths]

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
left.plot(bandwidths, likelihood)
highest = max(likelihood)
left.set(xscale="log", xlabel="bandwidth", ylabel="log-likelihood of a row", ylim=(highest - 2, highest + 0.1))
right.plot(bandwidths, np.multiply(errors, 100))
right.set(xscale="log", xlabel="bandwidth", ylabel="new rows wrong, per cent", ylim=(0, None))
for ax in (left, right):
    ax.axvline(likeliest, color="0.5", lw=1, ls="--")
left.annotate("chosen", (likeliest, highest - 1.9), xytext=(5, 0), textcoords="offset points", color="0.4")

# %%
# What a map keeps
# ----------------
#
# Oil, water and gas flow through a pipe in one of three ways (simulated, twelve columns). Classifying new rows by
# where a map puts them says how much of that it has kept: here the principal plane beside a generative topographic
# mapping, neither of which was told the classes.

seen, new = (datasets.make_pipe_flow(1000, rng=seed) for seed in (0, 1))
maps = {
    "principal plane": PCA(2).fit(seen.X),
    "generative topographic mapping": GTM(nodes=20, basis=8, random_state=0).fit(seen.X),
}
figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
for ax, (name, map_) in zip(axes, maps.items(), strict=True):
    Z, Z_new = map_.transform(seen.X), map_.transform(new.X)
    model = KernelDensityClassifier().fit(Z, seen.labels)
    draw(ax, model, Z, seen.labels, seen.class_names)
    ax.set_title(f"{name}\n{1 - model.score(Z_new, new.labels):.0%} of new rows wrong")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, markerscale=3)

plt.show()
