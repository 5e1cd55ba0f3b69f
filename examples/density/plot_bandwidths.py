"""
Bandwidths: how wide kernels should be for a ridge
==================================================

The bandwidth decides about a ridge more than all else. Too narrow, and noise has ridges of its own; too wide, and bends
are cut short and branches run together. The default is found from the rows, and how sure the ridge is can be seen.
"""

# %%
# Too narrow, found from the rows, too wide
# -----------------------------------------
#
# A noisy zig-zag, and the points that rows are carried to. In the title is their distance from the true curve, and that
# of the curve from them.

import warnings

import numpy as np
from matplotlib import pyplot as plt
from scipy.spatial import cKDTree

from prinfold import DensityRidge, datasets, plot

data = datasets.make_zigzag(500, noise=0.06, rng=0)
curve = data.surface.mesh(2000).vertices


def errors(model):
    """Root mean squared distance of the ridge from the true curve, and of the curve from the ridge."""
    points = model.ridge_.points
    there, back = data.surface.distance(points), cKDTree(points).query(curve)[0]
    return np.sqrt(np.mean(there**2)), np.sqrt(np.mean(back**2))


def fit(X, bandwidth):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # very narrow kernels leave many rows on no ridge, which is the point here
        return DensityRidge(bandwidth=bandwidth, tol=1e-3).fit(X)


chosen = DensityRidge().fit(data.X)
h = chosen.bandwidth_
figure, axes = plt.subplots(1, 3, figsize=(13, 3.1), layout="constrained")
for ax, factor, words in zip(axes, (0.3, 1.0, 3.0), ("too narrow", "found from the rows", "too wide"), strict=True):
    model = fit(data.X, factor * h)
    there, back = errors(model)
    ax.plot(*data.X.T, ".", ms=2.5, color="0.75")
    ax.plot(*curve.T, lw=1, color="#0072B2", zorder=1)
    ax.plot(*model.ridge_.points.T, ".", ms=4, color="#D55E00")
    ax.set(
        aspect="equal", xticks=[], yticks=[], title=f"{words}: h = {factor * h:.3f}\n{there:.3f} there, {back:.3f} back"
    )

# %%
# Where rules land
# ----------------
#
# The same for many bandwidths, with those of the rules. The likeliest bandwidth suits the density, whose ridge wants
# wider kernels; rules of thumb take the zig-zag for a round cloud.

grid = h * np.geomspace(0.3, 4.0, 17)
there, back = np.array([errors(fit(data.X, each)) for each in grid]).T
figure, ax = plt.subplots(figsize=(7.5, 4), layout="constrained")
ax.plot(grid, there, color="#0072B2", label="ridge to curve")
ax.plot(grid, back, color="#D55E00", label="curve to ridge")
top = 1.05 * max(there.max(), back.max())
for rule in ("likelihood", "auto", "plugin", "silverman"):
    at = fit(data.X, rule).bandwidth_
    ax.axvline(at, color="0.6", lw=1, ls="--")
    ax.annotate(rule, (at, top), xytext=(3, -3), textcoords="offset points", rotation=90, va="top", color="0.35")
ax.set(xscale="log", xlabel="bandwidth", ylabel="root mean squared distance", ylim=(0, top))
ax.legend(loc="center left")

# %%
# How sure is it?
# ---------------
#
# Rows are drawn anew a hundred times, with replacement, and each time the ridge is looked for again. The band holds
# it in nine cases of ten. Left 150 rows of the zig-zag; the ends are the least sure. Right, rows from a square
# without any curve: kernels find ridges there too, but samples of a smooth density have ridges just as strong, as
# p-values tell.

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
few = datasets.make_zigzag(150, noise=0.06, rng=1)
sure = DensityRidge().fit(few.X)
plot.ridge_bands(sure.bands(random_state=0), few.X, ax=left)
left.set_title(f"zig-zag, p = {sure.significance(50, random_state=0).branch_p_value.min():.2f}")

square = np.random.default_rng(0).uniform(size=(150, 2))
chance = DensityRidge().fit(square)
result = chance.significance(50, random_state=0)
plot.ridge_bands(chance.bands(30, random_state=0), square, ax=right)
right.set_title(f"square, p of the strongest branch = {result.branch_p_value.min():.2f}", loc="right")

plt.show()
