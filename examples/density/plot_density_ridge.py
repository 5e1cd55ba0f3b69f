"""
Density ridges
==============

A ridge of a density is where it is highest across: along a ridge of dimension one there is a curve, and nothing is
assumed about its ends, crossings or loops. Rows are carried there by mean shift, held to the directions across.
"""

# %%
# From rows to a ridge
# --------------------
#
# Every row moves uphill across the ridge, never along it, until the mean shift across is zero.

import numpy as np
from matplotlib import pyplot as plt

from prinfold import DensityRidge, datasets, plot
from prinfold.density.ridges.mean_shift import Status

spiral = datasets.make_spiral(500, noise=0.04, rng=0)
model = DensityRidge().fit(spiral.X)
print(f"bandwidth {model.bandwidth_:.3f}, at most {model.n_iter_} steps: {model.stop_reason_}")
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
ends = model.flow(spiral.X).points
left.plot(*np.stack([spiral.X, ends]).transpose(2, 0, 1), color="#6fa8d0", lw=0.8)
left.plot(*spiral.X.T, ".", color="#6e7781", ms=3)
left.plot(*ends.T, ".", color="#D55E00", ms=3)
left.set(aspect="equal", title="rows and where they end")
plot.ridge(model, spiral.X, ax=right)
right.set_title("the ridge as a curve, on its density")

# %%
# Crossings, corners and loops
# ----------------------------
#
# The ridge points become a graph: branches with arc length between ends (open circles) and junctions (filled).

shapes = (
    datasets.make_epitrochoid(1000, rng=0),
    datasets.make_star(1200, rng=1),
    datasets.make_zigzag(400, rng=0),
)
figure, axes = plt.subplots(1, 3, figsize=(14, 4.8), layout="constrained")
for data, ax in zip(shapes, axes, strict=True):
    fitted = DensityRidge().fit(data.X)
    plot.ridge(fitted, data.X, ax=ax)
    away = np.sqrt(np.mean(data.surface.distance(fitted.ridge_.points) ** 2))
    ax.set_title(f"{len(fitted.graph_.ends)} branches, {away:.3f} from the true curve")

# %%
# What is no ridge
# ----------------
#
# Rows that are alone have no direction of their own. A clump has ridges, but by chance only: their p-values, against
# samples from a density without ridges, are large. Every row has a status.

rng = np.random.default_rng(0)
X = np.concatenate([spiral.X, rng.normal([2.2, 0.9], 0.12, (60, 2)), rng.uniform([-2, -2], [3.5, 2.5], (12, 2))])
cluttered = DensityRidge(bandwidth=model.bandwidth_).fit(X)
for status, count in zip(*np.unique(cluttered.status_, return_counts=True), strict=True):
    print(f"{count:4d}  {Status(status).sentence}")
chance = cluttered.significance(40, random_state=0)
print(f"p-values of the branches: {chance.branch_p_value.round(2).tolist()}")
figure, ax = plt.subplots(figsize=(6.4, 5.6), layout="constrained")
plot.ridge(cluttered, X, ax=ax)
ax.set_title("a clump and outliers beside a spiral, shaded by density")

# %%
# The edge of a survey
# --------------------
#
# Where a window cuts off the data, kernels reach beyond the edge, and the density falls off as if there were a ridge
# along it. A mask says where rows could have been observed.

x = rng.uniform(0, 1, 400)
filament = np.stack([x, 0.5 + 0.15 * np.sin(5 * x) + rng.normal(0, 0.012, 400)], axis=1)
window = np.concatenate([rng.uniform(0, 1, (1500, 2)), filament])
figure, axes = plt.subplots(1, 2, figsize=(11, 5.2), layout="constrained")
for ax, mask in zip(axes, (None, lambda rows: ((rows > 0) & (rows < 1)).all(axis=1)), strict=True):
    seen = DensityRidge(bandwidth=0.05, mask=mask, min_gap=0.12).fit(window)
    plot.ridge(seen, window, ax=ax)
    ax.set_title("with a mask" if mask else "without a mask")

# %%
# On a sphere
# -----------
#
# Longitude and latitude are no flat coordinates. A belt around the pole closes, and its length is in degrees along
# great circles.

longitude = rng.uniform(-180, 180, 600)
belt = np.stack([longitude, 60 + 8 * np.sin(np.radians(3 * longitude)) + rng.normal(0, 1.5, 600)], axis=1)
globe = DensityRidge(space="sphere").fit(belt)
print(f"closed: {globe.graph_.latent.closed.tolist()}, length {globe.graph_.latent.lengths.round(1).tolist()} degrees")
_, ax = plt.subplots(figsize=(8, 2.2), layout="constrained")
plot.ridge(globe, belt, ax=ax).set_title("A belt around the pole, shaded by density")

plt.show()
