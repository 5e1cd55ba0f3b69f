"""
From ridge to coordinates
=========================

Mean shift leaves points on a ridge, but no curve: nothing says which point comes after which. Here they become a graph
of branches with ends and junctions, on which every row has a place.
"""

# %%
# Points, nodes, chains, branches
# -------------------------------
#
# A roundabout with three roads. Rows come to rest on the ridge of their density (first picture). Of these points some
# are chosen as nodes, a quarter of a bandwidth apart, and where there are none ahead the ridge is followed further
# (green). Nodes that are nearest to each other along the ridge are linked, and loose ends are joined to what lies ahead
# (red); both pictures show one corner. Short pieces are removed, and a smooth curve is drawn through each chain.

import numpy as np
from matplotlib import pyplot as plt

from prinfold import DensityRidge, datasets, plot
from prinfold.density.ridges.graph_branches import joints, link_chains
from prinfold.density.ridges.graph_nodes import make_nodes

BLUE, ORANGE, GREEN, RED = "#0072B2", "#D55E00", "#009E73", "#CC3311"


def roundabout(n=700, noise=0.035, seed=3):
    """Rows on a circle and on three roads that end at it."""
    rng = np.random.default_rng(seed)
    t, road = rng.uniform(size=n), rng.integers(0, 5, n)
    angle = 2 * np.pi * t
    out = np.radians([90, 210, 330])[road % 3]
    length = np.where(road < 3, 0.5 + t, 0.5)
    angle = np.where(road < 3, out, angle)
    return length[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1) + noise * rng.normal(size=(n, 2))


X = roundabout()
model = DensityRidge(bandwidth=0.08).fit(X)
nodes = make_nodes(model.flow_, model.places_)
links = link_chains(nodes)

figure, axes = plt.subplots(1, 4, figsize=(16, 4.4), layout="constrained")
for ax in axes[:3]:
    ax.plot(*X.T, ".", color="0.8", ms=4)
axes[0].plot(*model.ridge_.points.T, ".", color=BLUE, ms=4)
axes[0].set_title(f"{len(model.ridge_.points)} ridge points")
axes[1].plot(*nodes.points[nodes.given].T, ".", color=BLUE, ms=5)
axes[1].plot(*nodes.points[~nodes.given].T, ".", color=GREEN, ms=5)
axes[1].set_title(f"{len(nodes.points)} nodes")
for a, beside in enumerate(links):
    for b in beside:
        axes[2].plot(*nodes.points[[a, b]].T, color=BLUE, lw=2)
for a, b in joints(model.flow_, nodes, links):
    axes[2].plot(*nodes.points[[a, b]].T, color=RED, lw=2)
axes[2].set_title("chains, and what joins them")
plot.ridge(model, X, ax=axes[3])
axes[3].set_title(f"{len(model.graph_.ends)} branches")
for ax in axes:
    ax.set_aspect("equal")
for ax in axes[1:3]:
    ax.set(xlim=(-0.85, -0.05), ylim=(-0.65, 0.15))

# %%
# Where rows are
# --------------
#
# ``locate`` names the branch that a row is nearest to, how far along it, and how far off: positive to the left. That
# unrolls a spiral. ``transform`` gives the same arc length as a coordinate, in which branches come one after another.

spiral = datasets.make_spiral(800, noise=0.04, rng=0)
curve = DensityRidge().fit(spiral.X)
where = curve.locate(spiral.X)
figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6), width_ratios=(1, 1.6), layout="constrained")
for ax, place in ((left, spiral.X), (right, np.stack([where.arc_length, where.distance], axis=1))):
    dots = ax.scatter(*place.T, c=where.arc_length, s=8, cmap="viridis")
left.set(aspect="equal", title="rows by arc length")
right.set(xlabel="arc length", ylabel="distance", title="unrolled")
right.axhline(0.0, color="0.5", lw=0.8)
length = np.linalg.norm(np.diff(spiral.surface.mesh(4000).vertices, axis=0), axis=1).sum()
print(f"length {curve.graph_.latent.lengths[0]:.2f}, of the true curve {length:.2f}")

# %%
# What is short
# -------------
#
# With a narrow bandwidth clumps of noise have ridges of their own. Those that lead nowhere are spurs, and
# ``min_length`` says how long they must be, in bandwidths, to be kept.

figure, axes = plt.subplots(1, 3, figsize=(14, 4.8), layout="constrained")
for ax, min_length in zip(axes, (0.0, 3.0, 6.0), strict=True):
    narrow = DensityRidge(bandwidth=0.035, min_length=min_length).fit(X)
    plot.ridge(narrow, X, ax=ax)
    ax.set_title(f"min_length={min_length:g}: {len(narrow.graph_.ends)} branches")

# %%
# The way along it
# ----------------
#
# With NetworkX the ridge is a graph like any other: here the shortest path from one point of a star to another.

from itertools import pairwise

import networkx as nx

star = datasets.make_star(1500, rng=0)
drawn = DensityRidge(bandwidth=0.06).fit(star.X)
graph = drawn.to_networkx()
ends = [node for node, kind in graph.nodes(data="kind") if kind == "end"]
top = max(ends, key=lambda node: graph.nodes[node]["position"][1])
low = min(ends, key=lambda node: graph.nodes[node]["position"][1])
length, way = nx.single_source_dijkstra(graph, top, low, weight="length")
figure, ax = plt.subplots(figsize=(6.4, 5.6), layout="constrained")
plot.ridge(drawn, star.X, ax=ax)
for a, b in pairwise(way):
    branch = min(graph[a][b].values(), key=lambda edge: edge["length"])
    ax.plot(*branch["points"].T, color=RED, lw=5, zorder=10)
ax.set_title(f"the shortest path, {length:.2f} long; shaded by density")

plt.show()
