"""
Clusters by modes
=================

Every row moves uphill to a mode of the density, and rows that reach the same mode are a cluster. The bandwidth
determines their number, and a cluster may have any shape with a single mode.
"""

# %%
# Climbing
# --------

import numpy as np
from matplotlib import pyplot as plt

from prinfold import ModeClustering
from prinfold.plot.style import PALETTE

rng = np.random.default_rng(0)
angle = rng.uniform(0, 2 * np.pi, 300)
X = np.concatenate(
    [
        rng.normal([0, 0], [0.5, 0.5], (200, 2)),
        rng.normal([4, 0], [0.4, 1.2], (250, 2)),
        rng.normal([1.5, 4.5], [1.2, 0.4], (150, 2)),
    ]
)
model = ModeClustering().fit(X)
print(f"bandwidth {model.bandwidth_:.2f}: {len(model.modes_)} clusters of weight {model.mode_weight_.tolist()}")
figure, left = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
ends = model.flow(X).points
left.plot(*np.stack([X, ends]).transpose(2, 0, 1), color="#c9ced6", lw=0.6, zorder=0)
left.scatter(*X.T, c=[PALETTE[label] for label in model.labels_], s=8)
left.plot(*model.modes_.T, "k*", ms=13)
left.set(aspect="equal", title="rows, and the modes they climb to")

# %%
# How many
# --------
#
# A wider bandwidth has fewer modes. Modes with little weight can be left out: their rows are labelled −1.

bandwidths = np.geomspace(0.15, 2.5, 20)
counts = [len(ModeClustering(bandwidth=h).fit(X).modes_) for h in bandwidths]
heavy = [len(ModeClustering(bandwidth=h, min_weight=20).fit(X).modes_) for h in bandwidths]
figure, right = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
right.semilogx(bandwidths, counts, "o-", ms=4, color="#0072B2", label="all modes")
right.semilogx(bandwidths, heavy, "o-", ms=4, color="#D55E00", label="with 20 rows or more")
right.axvline(model.bandwidth_, color="0.6", ls="--", lw=1, label="the default")
right.set(xlabel="bandwidth", ylabel="modes", xticks=[0.2, 0.5, 1, 2], yscale="log")
right.set_yticks([1, 2, 5, 10, 20, 50])
for axis in (right.xaxis, right.yaxis):
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter("")
right.legend(frameon=False)

plt.show()
