"""
Principal oriented points
=========================

Through every point there is a hyperplane on which the rows near it scatter least. Where the point is the mean of those
rows it is a principal oriented point; the curve walks from one to the next (Delicado, 2001).
"""

# %%
# Points and directions
# ---------------------
#
# The walk begins in the middle and goes to both ends. At each point the variance across is known: here the noise grows
# along the curve.

import warnings

import numpy as np
from matplotlib import pyplot as plt

from prinfold import OrientedPointsCurve, datasets

rng = np.random.default_rng(0)
t = rng.uniform(0, 3.5, 500)
X = np.stack([t, np.sin(2 * t)], axis=1) + (0.03 + 0.05 * t)[:, None] * rng.standard_normal((500, 2))
model = OrientedPointsCurve().fit(X)
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained", width_ratios=(1.6, 1))
left.scatter(*X.T, s=4, color="#c9ced6")
left.plot(*model.points_.T, "o-", ms=3, color="#0072B2")
across = np.stack([-model.directions_[:, 1], model.directions_[:, 0]], axis=1) * np.sqrt(model.variances_)[:, None]
left.plot(*np.stack([model.points_ - across, model.points_ + across]).transpose(2, 0, 1), color="#D55E00", lw=0.8)
left.set(aspect="equal", title="points, and one deviation across")
right.plot(model.transform(model.points_), np.sqrt(model.variances_), "o", ms=3, color="#D55E00")
right.set(xlabel="arc length", ylabel="deviation across")

# %%
# Turns, rings and corners
# ------------------------
#
# Steps are local, so that a walk goes round a spiral however often it winds, and notices when it has come round. At a
# sharp corner a walk with a narrow kernel ends, and the fit warns of rows that are left out; left to itself the walk
# takes a wider kernel then, which rounds the corners off.

zigzag = datasets.make_zigzag(400, rng=1).X
panels = {
    "spiral": (datasets.make_spiral(1000, rng=0).X, None),
    "ring, closed": (datasets.make_circle(300, rng=0).X, None),
    "zig-zag, narrow: fails": (zigzag, 0.14),
    "zig-zag, default": (zigzag, None),
}
figure, axes = plt.subplots(1, 4, figsize=(12, 3.2), layout="constrained")
for ax, (title, (rows, bandwidth)) in zip(axes, panels.items(), strict=True):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = OrientedPointsCurve(bandwidth=bandwidth).fit(rows)
    line = model.mesh(400)
    ax.scatter(*rows.T, s=3, color="#c9ced6")
    ax.plot(*line.vertices[line.faces].transpose(2, 1, 0), color="#D55E00" if "fails" in title else "#0072B2", lw=1.6)
    ax.set(aspect="equal", title=title, xticks=[], yticks=[])
    said = f"; a warning: {str(caught[0].message).split(':')[0]}" if caught else ""
    print(f"{title}: bandwidth {model.bandwidth_:.2f}, ends: {model.ends_[0]}; {model.ends_[1]}{said}")

plt.show()
