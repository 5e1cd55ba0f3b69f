"""
The polygonal line
==================

A principal curve of straight segments. It begins with a piece of the first principal component and gains one vertex
after another; each time all vertices move to lower the squared distance of the rows and a penalty on corners.
"""

# %%
# Growing
# -------
#
# On a zig-zag the line has found all strokes when it has as many segments. More of them follow until the published rule
# says that there are enough for the number of rows and for their noise.

import numpy as np
from matplotlib import pyplot as plt

from prinfold import PolygonalCurve, PrincipalCurve, datasets

zigzag = datasets.make_zigzag(400, rng=0)
figure, axes = plt.subplots(1, 4, figsize=(12, 2.6), layout="constrained")
for ax, n_segments in zip(axes, (1, 4, 8, None), strict=True):
    model = PolygonalCurve(n_segments=n_segments).fit(zigzag.X)
    ax.scatter(*zigzag.X.T, s=4, color="#c9ced6")
    ax.plot(*model.vertices_.T, "o-", ms=3, lw=1.4, color="#0072B2")
    ax.set(aspect="equal", title=f"{model.n_segments_} segment{'s' * (model.n_segments_ > 1)}", xticks=[], yticks=[])

# %%
# Turns
# -----
#
# The start is straight. Round one whorl of a spiral the line follows; on one with two it ends in a local minimum, where
# it cuts across. Begun along the rows, it stays there.

figure, axes = plt.subplots(1, 3, figsize=(11, 3.9), layout="constrained")
one, two = (datasets.make_spiral(600, rng=0, whorls=whorls) for whorls in (1.0, 2.0))
curve = PrincipalCurve().fit(two.X)
along = curve.inverse_transform(np.linspace(0, curve.length_, 30)[:, None])
panels = {
    "one whorl": (one, PolygonalCurve()),
    "two whorls": (two, PolygonalCurve()),
    "two, begun along another curve": (two, PolygonalCurve(init=along)),
}
for ax, (title, (data, model)) in zip(axes, panels.items(), strict=True):
    model.fit(data.X)
    ax.scatter(*data.X.T, s=4, color="#c9ced6")
    ax.plot(*model.vertices_.T, "o-", ms=3, lw=1.4, color="#D55E00")
    ax.set(aspect="equal", title=title, xticks=[], yticks=[])

# %%
# As long as it may be
# --------------------
#
# The definition that the algorithm stands on bounds the length of the curve: among all that are no longer, it has the
# least squared distance. With ``length=`` there is no penalty on corners.

arc = datasets.make_half_circle(200, rng=1)
figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.scatter(*arc.X.T, s=6, color="#c9ced6")
for length, color in zip((1.0, 2.0, 3.0), ("#56B4E9", "#0072B2", "#D55E00"), strict=True):
    model = PolygonalCurve(length=length).fit(arc.X)
    ax.plot(*model.vertices_.T, "o-", ms=3, color=color, label=f"no longer than {length:g}")
ax.set(aspect="equal")
ax.legend(frameon=False, loc="lower center")

plt.show()
