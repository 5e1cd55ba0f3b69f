"""
The polygonal line
==================

A principal curve of straight segments, which gains one vertex after another; each time all vertices move to lower the
squared distance of the rows and a penalty on corners.
"""

# %%
# Growing
# -------
#
# The published start is a piece of the first principal component. On a zig-zag the line has found all strokes when it
# has as many segments. More of them follow until the rule says that there are enough for the number of rows and for
# their noise.

import warnings

from matplotlib import pyplot as plt

from prinfold import PolygonalCurve, datasets
from prinfold.exceptions import StructureWarning

warnings.simplefilter("ignore", StructureWarning)  # a single segment through a zig-zag is no curve along it
zigzag = datasets.make_zigzag(400, rng=0)
figure, axes = plt.subplots(1, 4, figsize=(12, 2.6), layout="constrained")
for ax, n_segments in zip(axes, (1, 4, 8, None), strict=True):
    model = PolygonalCurve(init="pca", n_segments=n_segments).fit(zigzag.X)
    ax.scatter(*zigzag.X.T, s=4, color="#c9ced6")
    ax.plot(*model.vertices_.T, "o-", ms=3, lw=1.4, color="#0072B2")
    ax.set(aspect="equal", title=f"{model.n_segments_} segment{'s' * (model.n_segments_ > 1)}", xticks=[], yticks=[])

# %%
# Turns
# -----
#
# From that start the line follows one turn of a spiral. On two turns it ends in a local minimum, where it jumps from
# turn to turn, so far from the rows that the rule asks for no more segments. By default the line starts along a
# smooth curve, the best of several starts.

figure, axes = plt.subplots(1, 3, figsize=(11, 3.9), layout="constrained")
one, two = (datasets.make_spiral(600, rng=0, whorls=whorls) for whorls in (1.0, 2.0))
panels = {
    "one turn, published start": (one, "pca", "#0072B2"),
    "two turns, published start: fails": (two, "pca", "#D55E00"),
    "two turns, default start": (two, "auto", "#0072B2"),
}
for ax, (title, (data, init, color)) in zip(axes, panels.items(), strict=True):
    model = PolygonalCurve(init=init).fit(data.X)
    ax.scatter(*data.X.T, s=4, color="#c9ced6")
    ax.plot(*model.vertices_.T, "o-", ms=3, lw=1.4, color=color)
    ax.set(aspect="equal", title=title, xticks=[], yticks=[])

# %%
# As long as it may be
# --------------------
#
# The definition behind the algorithm bounds the length of the curve: it minimises the squared distance among all
# curves of at most that length. With ``length=`` there is no penalty on corners.

arc = datasets.make_half_circle(200, rng=1)
figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.scatter(*arc.X.T, s=6, color="#c9ced6")
for length, color in zip((1.0, 2.0, 3.0), ("#56B4E9", "#0072B2", "#009E73"), strict=True):
    model = PolygonalCurve(length=length).fit(arc.X)
    ax.plot(*model.vertices_.T, "o-", ms=3, color=color, label=f"no longer than {length:g}")
ax.set(aspect="equal")
ax.legend(frameon=False, loc="lower center")

plt.show()
