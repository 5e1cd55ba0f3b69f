"""From centres and edges to branches: what is too short is left out, and paths, rings, loops and pieces are made.

A spanning tree of centres has spurs. A branch with a free end must be ``shortest`` bandwidths long, and so must the way
between two forks. What is left keeps its edges, and its centres move once more along these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from prinfold._typing import FloatArray, IntArray
from prinfold.base.starting_points import evenly_by_radius
from prinfold.density.ridges.graph import RidgeGraph
from prinfold.density.ridges.graph_branches import Path, degrees, paths, simplify
from prinfold.density.ridges.graph_nodes import RidgeNodes
from prinfold.geometry.column_span import ColumnSpan
from prinfold.numerics.distances import squared_distances
from prinfold.numerics.polylines import nearest_on_segments
from prinfold.trees.soft_tree import TreeProblem, TreeState

_FINE_STEPS, _FINE_TOL = 50, 1e-6


class BridgeRule(NamedTuple):
    """The rule by which edges close a loop.

    Most length in ``bandwidths``, or in usual edges where these are longer, as ends of a tree shrink by some of them;
    least way between its ends along the tree, in units of it (``detour``); and rows by length on it, as a ``share`` of
    what is usual.
    """

    bandwidths: float
    detour: float
    share: float


_BRIDGES = BridgeRule(6.0, 3.0, 0.25)

_CLEAR_BRIDGES = BridgeRule(4.0, 4.5, 0.5)
"""Bridges that are told of where none is asked for: those of rings and lassos are 2 to 3.5 bandwidths long, with 0.57
of the usual rows or more; two branches of blood cells come near each other with 5, 3.3 and 0.3."""

_LOOP_ROWS = 4000
"""Rows by which it is judged whether there is a loop."""

_CENTER_STEP, _FEWEST_STEPS = 0.4, 3
"""Step between centres along the branches of another tree, in bandwidths, and steps of a branch at the least."""

_SAME_BANDWIDTHS = 1e-6
"""Distance between neighbouring centres, in bandwidths, below which they are one."""


class TreeShape(NamedTuple):
    """Centres (K, q) and paths of them: branches, of which a closed one ends with the centre that it begins with."""

    centers: FloatArray
    paths: list[Path]


class Skeleton(NamedTuple):
    """Centres (K, q) and edges (E, 2) between them."""

    centers: FloatArray
    edges: IntArray


def find_shape(topology: str, problem: TreeProblem, state: TreeState, shortest: float) -> TreeShape:
    """The branches of a tree of centres, or of the shape that is asked for."""
    if len(state.centers) < 2:
        return TreeShape(state.centers, [[0]])
    skeleton = TOPOLOGIES[topology](problem, state, shortest)
    found = _simplify(skeleton, state.assigned.mass, problem.bandwidth, shortest)
    return _halve_lone_edges(_drop_repeats(refine(problem, found), problem.bandwidth))


def branches_with_loop(problem: TreeProblem, state: TreeState, shortest: float) -> int:
    """Number of branches where clear loops are closed; 0 where there is none."""
    if len(state.centers) < 3 or np.isfinite(problem.reach):
        return 0
    some = problem.on(evenly_by_radius(problem.rows, problem.weight, _LOOP_ROWS))
    found = _simplify(
        _graph(some, state, shortest, _CLEAR_BRIDGES), state.assigned.mass, problem.bandwidth, shortest
    ).paths
    edges = edges_of(found)
    return len(found) if len(edges) >= len(np.unique(edges)) else 0


def without_ends(problem: TreeProblem, shape: TreeShape, tips: FloatArray) -> TreeShape:
    """The shape without the branches that end freely at one of the tips (t, q), but for the longest of all."""
    count = degrees(shape.paths)
    near = np.sqrt(squared_distances(shape.centers, tips).min(axis=1)) <= _SAME_BANDWIDTHS * problem.bandwidth
    longest = max(shape.paths, key=lambda path: _length(shape.centers, path))
    kept = [
        path
        for path in shape.paths
        if path is longest or not any(near[end] and count[end] == 1 for end in (path[0], path[-1]))
    ]
    mass = problem.begin(shape.centers).assigned.mass
    found = _simplify(Skeleton(shape.centers, edges_of(kept)), mass, problem.bandwidth, 0.0)
    return _halve_lone_edges(_drop_repeats(refine(problem, found), problem.bandwidth))


def shape_of_graph(problem: TreeProblem, graph: RidgeGraph, span: ColumnSpan, shortest: float) -> TreeShape:
    """The branches of another tree, moved to the middle of the rows."""
    moved = refine(problem, centers_along(graph, span, problem.bandwidth))
    mass = problem.begin(moved.centers).assigned.mass
    kept = _simplify(Skeleton(moved.centers, edges_of(moved.paths)), mass, problem.bandwidth, shortest)
    return _halve_lone_edges(_drop_repeats(refine(problem, kept), problem.bandwidth))


def centers_along(graph: RidgeGraph, span: ColumnSpan, bandwidth: float) -> TreeShape:
    """Even steps of centres along the branches of a tree, in the coordinates of a span."""
    centers, found = list(span.inside(graph.places)), list[Path]()
    low, high = graph.latent.domain.low, graph.latent.domain.high
    for b, (start, end) in enumerate(graph.ends.tolist()):
        steps = max(_FEWEST_STEPS, int(np.ceil((high[b] - low[b]) / (_CENTER_STEP * bandwidth))))
        ways = np.linspace(low[b], high[b], steps + 1)[:, None]
        inner = span.inside(graph.point(ways))
        first = len(centers)
        if start < 0:
            centers.extend(inner[:-1])
            found.append([*range(first, len(centers)), first])
            continue
        centers.extend(inner[1:-1])
        found.append([start, *range(first, len(centers)), end])
    return TreeShape(np.asarray(centers), found)


def edges_of(found: list[Path]) -> IntArray:
    """(E, 2) steps of all paths."""
    steps = [pair for path in found for pair in pairwise(path)]
    return np.asarray(steps, dtype=np.int64).reshape(-1, 2)


def net_of(centers: FloatArray, log_density: FloatArray, bandwidth: float) -> RidgeNodes:
    """Centres as the nodes of a graph, with the bandwidth as their unit of length."""
    tangent = np.zeros_like(centers)
    tangent[:, 0] = 1.0  # of a single centre, whose branch has no length
    n = len(centers)
    return RidgeNodes(centers, tangent, log_density, np.full(n, bandwidth), np.ones(n, dtype=bool))


# ------------------------------------------------------------------------------------------------- topologies


def _tree(problem: TreeProblem, state: TreeState, shortest: float) -> Skeleton:
    return Skeleton(state.centers, state.edges)


def _path(problem: TreeProblem, state: TreeState, shortest: float) -> Skeleton:
    return _chain(problem, state, shortest, closed=False)


def _ring(problem: TreeProblem, state: TreeState, shortest: float) -> Skeleton:
    return _chain(problem, state, shortest, closed=True)


def _chain(problem: TreeProblem, state: TreeState, shortest: float, *, closed: bool) -> Skeleton:
    """As many centres along the longest way through the tree, one after another, moved to the middle of the rows."""
    shape = _simplify(Skeleton(state.centers, state.edges), state.assigned.mass, problem.bandwidth, shortest)
    way = spread_evenly(shape.centers[longest_way(shape)], len(state.centers))
    first = np.arange(len(way))
    edges = np.stack([first, np.mod(first + 1, len(way))], axis=1)
    edges = edges if closed and len(way) > 2 else edges[:-1]
    moved = replace(problem, edges=edges).run(way, 2 * _FINE_STEPS, _FINE_TOL)
    return Skeleton(moved.centers, edges)


def _graph(problem: TreeProblem, state: TreeState, shortest: float, rule: BridgeRule = _BRIDGES) -> Skeleton:
    """The tree and edges that close loops: short, with a long way round, and with rows along them."""
    shape = _simplify(Skeleton(state.centers, state.edges), state.assigned.mass, problem.bandwidth, shortest)
    edges, usual = edges_of(shape.paths), _rows_by_length(problem, state.centers, edges_of(shape.paths))
    used = np.unique(edges)
    free = [end for end, count in degrees(shape.paths).items() if count == 1]
    apart = np.sqrt(squared_distances(state.centers, state.centers))
    ways = sorted((apart[a, b], a, int(b)) for a in free for b in used if a != b)
    unit = max(problem.bandwidth, float(np.median(apart[edges[:, 0], edges[:, 1]])))
    for length, a, b in ways:
        if length > rule.bandwidths * unit:
            break
        if np.bincount(edges.ravel(), minlength=len(state.centers))[a] > 1:
            continue  # a bridge leads there already
        if _path_lengths_from(state.centers, edges, a)[b] < rule.detour * length:
            continue
        more = np.vstack([edges, [a, b]])
        if _rows_by_length(problem, state.centers, more)[-1] > rule.share * np.median(usual):
            edges = more
    return Skeleton(state.centers, edges)


TOPOLOGIES: dict[str, Callable[[TreeProblem, TreeState, float], Skeleton]] = {
    "tree": _tree,
    "path": _path,
    "ring": _ring,
    "graph": _graph,
    "forest": _tree,  # whose pieces were apart from the start
}
"""Shapes by name."""

NO_FORKS = ("path", "ring")
"""Shapes whose ends are given, so that rows drawn anew can tell of none."""


# --------------------------------------------------------------------------------------------------- plumbing


def _simplify(skeleton: Skeleton, mass: FloatArray, bandwidth: float, shortest: float) -> TreeShape:
    """Branches of a skeleton without spurs, fragments, small loops and forks that are one."""
    centers, edges = skeleton
    links: list[list[int]] = [[] for _ in centers]
    for a, b in edges.tolist():
        links[a].append(b)
        links[b].append(a)
    weight = mass if len(mass) == len(centers) else np.ones(len(centers))
    net = net_of(centers, np.log(np.maximum(weight, np.finfo(float).tiny)), bandwidth)
    used = np.unique(edges) if len(edges) else np.arange(1)
    return TreeShape(centers, simplify(paths(links, used), net, shortest, shortest))


def refine(problem: TreeProblem, shape: TreeShape) -> TreeShape:
    """The centres that are used, moved along edges that stay."""
    used = np.unique(np.concatenate([np.asarray(path) for path in shape.paths]))
    number = {int(node): i for i, node in enumerate(used)}
    found = [[number[node] for node in path] for path in shape.paths]
    edges = edges_of(found)
    if len(edges) == 0:
        return TreeShape(shape.centers[used], found)
    return TreeShape(replace(problem, edges=edges).run(shape.centers[used], _FINE_STEPS, _FINE_TOL).centers, found)


def _drop_repeats(shape: TreeShape, bandwidth: float) -> TreeShape:
    """Paths without centres that repeat the one before."""
    kept = list[Path]()
    for path in shape.paths:
        way = path[:1]
        for node in path[1:-1]:
            if np.linalg.norm(shape.centers[node] - shape.centers[way[-1]]) > _SAME_BANDWIDTHS * bandwidth:
                way.append(node)
        if len(path) > 1:
            while len(way) > 1 and (
                np.linalg.norm(shape.centers[path[-1]] - shape.centers[way[-1]]) <= _SAME_BANDWIDTHS * bandwidth
            ):
                way.pop()
            way.append(path[-1])
        kept.append(way)
    lone = [way for way in kept if _length(shape.centers, way) > _SAME_BANDWIDTHS * bandwidth]
    return TreeShape(shape.centers, lone or [kept[0][:1]])


def _halve_lone_edges(shape: TreeShape) -> TreeShape:
    """Paths of two centres with a third between, so that which half of a branch is denser can be told."""
    centers, found = list(shape.centers), list[Path]()
    for path in shape.paths:
        if len(path) != 2:
            found.append(path)
            continue
        found.append([path[0], len(centers), path[1]])
        centers.append(0.5 * (shape.centers[path[0]] + shape.centers[path[1]]))
    return TreeShape(np.asarray(centers), found)


def _length(centers: FloatArray, way: Path) -> float:
    return float(np.linalg.norm(np.diff(centers[way], axis=0), axis=1).sum())


def longest_way(shape: TreeShape) -> IntArray:
    """Centres along the longest of the shortest ways between any two."""
    edges = edges_of(shape.paths)
    if len(edges) == 0:
        return np.asarray(shape.paths[0])
    graph = _lengths(shape.centers, edges)
    distance, before = dijkstra(graph, directed=False, return_predecessors=True)
    distance = np.where(np.isfinite(distance), distance, -1.0)
    a, b = np.unravel_index(int(distance.argmax()), distance.shape)
    way = [int(b)]
    while way[-1] != a:
        way.append(int(before[a, way[-1]]))
    return np.asarray(way)


def _path_lengths_from(centers: FloatArray, edges: IntArray, a: int) -> FloatArray:
    """(K,) ways along edges from one centre to all."""
    return np.asarray(dijkstra(_lengths(centers, edges), directed=False, indices=[a])[0])


def _lengths(centers: FloatArray, edges: IntArray) -> Any:
    """(K, K) sparse lengths of the edges."""
    length = np.linalg.norm(centers[edges[:, 0]] - centers[edges[:, 1]], axis=1)
    length = np.maximum(length, np.finfo(float).tiny)  # an edge of no length would be none
    return coo_array((length, (edges[:, 0], edges[:, 1])), shape=(len(centers), len(centers))).tocsr()


def _rows_by_length(problem: TreeProblem, centers: FloatArray, edges: IntArray) -> FloatArray:
    """(E,) weight of the rows nearest to the middle half of each edge, by its length."""
    start = centers[edges[:, 0]]
    step = centers[edges[:, 1]] - start
    feet = nearest_on_segments(problem.rows, start, step)
    inside = np.abs(feet.share - 0.5) < 0.25
    weight = np.bincount(feet.segment, problem.weight * inside, minlength=len(edges))
    return np.asarray(weight / np.maximum(np.linalg.norm(step, axis=1), np.finfo(float).tiny))


def spread_evenly(way: FloatArray, count: int) -> FloatArray:
    """(count, q) points even steps apart along a polyline."""
    place = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(way, axis=0), axis=1))])
    wanted = np.linspace(0.0, place[-1], count)
    return np.stack([np.interp(wanted, place, column) for column in way.T], axis=1)
