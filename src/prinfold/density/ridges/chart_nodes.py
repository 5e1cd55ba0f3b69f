"""Nodes on a ridge of any dimension, evenly spaced, with the graph of their neighbours; the method is ours.

No two nodes are nearer to each other than the spacing, and no ridge point is farther from the nearest node. Nodes are
taken from the outermost inwards, by distance from the mean, so that neither the order of the points nor where they lie
and how they are turned matters. Where neighbours are so far apart that a node would fit between them, their
midpoint is carried to the ridge and added.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from scipy.spatial import cKDTree

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.density.ridges.mean_shift import Flow, FlowResult, Status

SPACING = 0.5
"""Bandwidths between nodes: over half of one, a density hardly changes."""

REACH = 3.0
"""Spacings within which nodes are neighbours; farther ridge points are connected only through others between them."""

_MOST_NODES = {1: 3000, 2: 3000, 3: 2000}
"""Most nodes by dimension; to have no more, they are put farther apart. 1000 from four dimensions on, where each has
hundreds of neighbours."""

_WIDEN_FACTOR = 1.25
"""Factor of the spacing while there are too many nodes."""

_MOST_ROUNDS = 4
"""Most times that gaps are looked for: half the way between neighbours, then a quarter, and once more beside them."""

_LEAST_COSINE = 0.7
"""Cosine of the angle with the tangent up to which a neighbour lies along the ridge, and not on another layer of it."""


class NeighborGraph(NamedTuple):
    """Nodes ``points`` (m, D) with ``tangent`` (m, D, d), about one ``spacing`` apart, and pairs of neighbours.

    ``pairs`` (E, 2) are neighbours, each once, the smaller index first.
    """

    points: FloatArray
    tangent: FloatArray
    pairs: IntArray
    spacing: float

    def only(self, nodes: IntArray) -> NeighborGraph:
        """The subgraph of some nodes, in the order given."""
        place = np.full(len(self.points), -1)
        place[nodes] = np.arange(len(nodes))
        pairs = place[self.pairs]
        pairs = pairs[(pairs >= 0).all(axis=1)]
        return NeighborGraph(self.points[nodes], self.tangent[nodes], pairs, self.spacing)

    @property
    def links(self) -> Links:
        """All pairs both ways, those of the second half being those of the first turned round."""
        here, there = np.concatenate([self.pairs, self.pairs[:, ::-1]]).T
        way = self.points[there] - self.points[here]
        share = np.square(way).sum(axis=1) / (REACH * self.spacing * (1.0 + 1e-9)) ** 2
        return Links(here, there, way, np.square(1.0 - share), len(self.points))


@dataclass(frozen=True, eq=False)
class Links:
    """Steps ``way`` (E, D) from nodes ``here`` (E,) to neighbours ``there`` (E,), with weights, zero at reach."""

    here: IntArray
    there: IntArray
    way: FloatArray
    weight: FloatArray
    n_nodes: int

    def collect(self, values: FloatArray) -> FloatArray:
        """(m, …) Σ w v over the links of each node."""
        flat = values.reshape(len(values), prod(values.shape[1:]))
        return np.asarray(self._sums @ flat).reshape(self.n_nodes, *values.shape[1:])

    @property
    def total(self) -> FloatArray:
        """(m,) Σ w."""
        return np.bincount(self.here, self.weight, self.n_nodes).astype(np.float64)

    @cached_property
    def _sums(self) -> csr_matrix:
        every = np.arange(len(self.here))
        return csr_matrix((self.weight, (self.here, every)), shape=(self.n_nodes, len(every)))


def make_neighbor_graph(flow: Flow, ridge: FlowResult, most: int | None = None) -> NeighborGraph:
    """Nodes for kept ridge points, of which there is at least one; half a bandwidth apart, or more if they are many."""
    most = _MOST_NODES.get(flow.dimension, 1000) if most is None else most
    ridge = ridge.only(np.lexsort(ridge.points.T))
    spacing = SPACING * float(np.median(flow.density.length(ridge.points)))
    while True:
        chosen = thin(ridge.points, spacing, most)
        if len(chosen) <= most:
            graph = _fill_gaps(flow, _graph_with_pairs(ridge.points[chosen], ridge.tangent[chosen], spacing))
            if len(graph.points) <= most:
                return graph
        spacing *= _WIDEN_FACTOR


def _graph_with_pairs(points: FloatArray, tangent: FloatArray, spacing: float) -> NeighborGraph:
    graph = NeighborGraph(points, tangent, np.empty((0, 2), np.intp), spacing)
    return graph._replace(pairs=neighbors(graph))


def _fill_gaps(flow: Flow, graph: NeighborGraph) -> NeighborGraph:
    """Add nodes in the gaps between neighbours."""
    for _ in range(_MOST_ROUNDS):
        added = _gap_points(flow, graph)
        if len(added.points) == 0:
            break
        points = np.concatenate([graph.points, added.points])
        graph = _graph_with_pairs(points, np.concatenate([graph.tangent, added.tangent]), graph.spacing)
    return graph


def thin(points: FloatArray, spacing: float, most: int | None = None) -> IntArray:
    """(k,) rows that are ``spacing`` apart, with none farther from all of them; ``most`` + 1 where they are more."""
    if len(points) == 0:
        return np.empty(0, dtype=np.intp)
    gap = points - points.mean(axis=0)
    order = np.argsort(-np.einsum("nd,nd->n", gap, gap), kind="stable")
    tree, covered, chosen = cKDTree(points), np.zeros(len(points), dtype=bool), list[int]()
    for i in order:
        if covered[i]:
            continue
        chosen.append(int(i))
        if most is not None and len(chosen) > most:
            break
        covered[tree.query_ball_point(points[i], spacing)] = True
    return np.asarray(chosen, dtype=np.intp)


def neighbors(graph: NeighborGraph) -> IntArray:
    """(E, 2) pairs of nodes within reach of each other that lie along the ridge as seen from both."""
    pairs = cKDTree(graph.points).query_pairs(REACH * graph.spacing, output_type="ndarray").astype(np.intp)
    pairs = np.sort(pairs, axis=1)
    pairs = pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    return pairs[_along_tangents(graph, pairs)]


def _along_tangents(graph: NeighborGraph, pairs: IntArray) -> BoolArray:
    """(E,) whether the step between two nodes is along the tangent planes of both."""
    first, second = pairs.T
    way = graph.points[second] - graph.points[first]
    length = np.linalg.norm(way, axis=1)
    kept = np.ones(len(pairs), dtype=bool)
    for end in (first, second):
        kept &= np.linalg.norm(np.einsum("edq,ed->eq", graph.tangent[end], way), axis=1) >= _LEAST_COSINE * length
    return kept


def _gap_points(flow: Flow, graph: NeighborGraph) -> FlowResult:
    """Ridge points in the gaps between neighbours, a spacing or more from all nodes and from each other."""
    first, second = graph.pairs.T
    middle = 0.5 * (graph.points[first] + graph.points[second])
    tree = cKDTree(graph.points)
    middle = middle[np.asarray(tree.query(middle)[0]) >= graph.spacing]
    middle = middle[thin(middle, 0.5 * graph.spacing)]
    found = flow(middle)
    near = np.linalg.norm(found.points - middle, axis=1) <= graph.spacing
    found = found.only((found.status == Status.CONVERGED) & near)
    found = found.only(np.asarray(tree.query(found.points)[0]) >= graph.spacing)
    return found.only(thin(found.points, graph.spacing))
