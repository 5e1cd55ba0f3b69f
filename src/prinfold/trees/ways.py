"""Lengths of the shortest ways along a graph of branches."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from prinfold._typing import FloatArray, IntArray
from prinfold.density.ridges.graph import RidgeGraph


def ways_between(graph: RidgeGraph, A: FloatArray, B: FloatArray) -> FloatArray:
    """(m, n) shortest ways along a graph from coordinates (m, 1) to others (n, 1); inf where none leads."""
    (a, from_start), (b, to_start) = _places(graph, A), _places(graph, B)
    length, closed = graph.latent.lengths, graph.latent.closed
    apart = np.abs(from_start[:, None] - to_start)
    round_it = np.where(closed[b], np.minimum(apart, length[b] - apart), apart)
    found = np.where(a[:, None] == b, round_it, np.inf)
    between = _ways_between_places(graph)
    for i in (0, 1):
        for j in (0, 1):
            start, end = graph.ends[a, i], graph.ends[b, j]
            out = from_start if i == 0 else length[a] - from_start
            back = to_start if j == 0 else length[b] - to_start
            way = out[:, None] + back + between[start][:, end]  # that of a closed branch, −1, is the last: no way
            found = np.minimum(found, way)
    return np.asarray(found)


def name_forks(graph: RidgeGraph, Z: FloatArray) -> FloatArray:
    """Coordinates (n, 1) with every fork named by the first branch that meets there, not by the one that came to it."""
    domain, ends = graph.latent.domain, graph.ends
    edges = np.stack([domain.low, domain.high], axis=1)
    name = np.full(len(graph.places), np.inf)
    np.minimum.at(name, ends[ends >= 0], edges[ends >= 0])
    branch = domain.piece(Z)
    found = Z[:, 0].copy()
    for side in (0, 1):
        place = ends[branch, side]
        here = (place >= 0) & (Z[:, 0] == edges[branch, side])
        found[here] = name[place[here]]
    return found[:, None]


def _places(graph: RidgeGraph, Z: FloatArray) -> tuple[IntArray, FloatArray]:
    """Branch (n,) and arc length on it (n,)."""
    branch = graph.latent.domain.piece(Z)
    return branch, Z[:, 0] - graph.latent.domain.low[branch]


def _ways_between_places(graph: RidgeGraph) -> FloatArray:
    """(V + 1, V + 1) shortest ways between ends and forks; none to the last, which stands for a closed branch."""
    V, joined = len(graph.places), graph.ends[:, 0] >= 0
    ways = np.full((V + 1, V + 1), np.inf)
    length = np.maximum(graph.latent.lengths[joined], np.finfo(float).tiny)
    pair = np.sort(graph.ends[joined], axis=1)
    shortest = np.full((V, V), np.inf)
    np.minimum.at(shortest, (pair[:, 0], pair[:, 1]), length)  # of two branches between the same places
    matrix = np.where(np.isfinite(shortest), shortest, 0.0)
    ways[:V, :V] = dijkstra(coo_array(matrix).tocsr(), directed=False)
    return ways
