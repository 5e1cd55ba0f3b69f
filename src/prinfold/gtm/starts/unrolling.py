"""Rows placed in latent space by distances along the data, so that what is rolled up is laid out flat.

Isomap (Tenenbaum, de Silva & Langford 2000) with two changes that matter where rows are few or noisy. Neighbours are
few, and what they leave apart is joined by the shortest tree through all rows instead of by more neighbours, which
would also be short cuts. And rows are first moved towards the middle of the data: noise across a surface makes
neighbours of rows that lie far apart along it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree, shortest_path
from scipy.spatial import cKDTree

from prinfold._typing import FloatArray, IntArray
from prinfold.base.starting_points import EmbeddedRows, evenly_by_radius, fit_to_domain
from prinfold.latent import LatentSpace
from prinfold.numerics.distances import squared_distances
from prinfold.numerics.linalg import largest_eigenpairs

_NEIGHBORS = {1: (3,), 2: (5, 9)}
_NEIGHBORS_BEYOND = (9,)
"""Neighbours of a row in the graph, by the dimension of the surface: few where rows are few and sheets lie close, more
for smoother distances. On curves no other number did better on average; on surfaces it is the one or the other."""

_LANDMARKS, _LANDMARKS_ON_CURVES = 100, 30
"""Rows from which the ways to all others are found. With 40 three swiss rolls in six stay a little rolled."""

_LOCAL_ROWS, _LOCAL_SHARE = 8, 0.02
"""Rows about each that make a local plane, at least, and share of all rows: of many rows the nearest few lie within the
noise. More where the plane has more than three dimensions; no more than the least where columns are many."""

_NUMBERS_AT_ONCE = 2**20
"""Numbers of neighbours that are held at a time: 8 megabytes, however many columns there are."""

_ROUNDS = 3
"""How often rows are moved to their local planes."""

_FEW_COLUMNS = 12
"""Columns up to which a tree finds neighbours faster than all distances do."""

_PLANE_ROWS, _CANDIDATES, _PICKS = 10, 4, 2
"""Where ways along local planes are preferred: nearest rows that make a plane, candidates for each neighbour that is
wanted, and how often the nearest are picked anew."""


class Graphs(NamedTuple):
    """Graphs of so many ``neighbors`` each, of rows moved ``rounds`` times to their local planes.

    ``along`` prefers neighbours that lie along the local planes to those across them.
    """

    neighbors: tuple[int, ...]
    rounds: int = _ROUNDS
    along: bool = False


ALONG_PLANES = (Graphs((4, 5, 6), 0, along=True),)
OTHERS = Graphs((4, 5, 6), 0), Graphs((4, 5, 6), along=True)
"""Of 300 rows of a swiss roll some of these have no short cut from arm to arm where the usual graphs do. Which of them
it is changes from table to table."""


class LinkedRows(NamedTuple):
    """Different rows (n, D) with their weights (n,), the same in ``few_columns``, and lengths of links between them."""

    rows: FloatArray
    weight: FloatArray
    few_columns: FloatArray
    links: csr_matrix

    def places(self, latent: LatentSpace, n_marks: int | None = None) -> EmbeddedRows:
        """Latent coordinates by the ways along the links, from so many landmarks; the usual number unless given."""
        usual = _LANDMARKS_ON_CURVES if latent.dimension == 1 else _LANDMARKS
        marks = evenly_by_radius(self.few_columns, self.weight, n_marks or usual)
        ways = shortest_path(self.links, method="D", indices=marks)
        found = fit_to_domain(latent, scaled_distances(ways, marks, latent.n_embedded))
        return EmbeddedRows(found, self.rows, self.weight)


def link_rows(dimension: int, X: FloatArray, weight: FloatArray, several: Sequence[Graphs] = ()) -> list[LinkedRows]:
    """Different rows X (n, D) with links to their neighbours, once for each graph, fewest neighbours first.

    Without graphs by the usual ones of the dimension.
    """
    given = in_few_columns(X)
    found = []
    for graphs in several or (Graphs(_NEIGHBORS.get(dimension, _NEIGHBORS_BEYOND)),):
        Y = on_local_planes(given, dimension, graphs.rounds)
        sizes = sorted({min(k, len(Y) - 1) for k in graphs.neighbors})
        near, far = neighbors_along(Y, sizes[-1], dimension) if graphs.along else neighbors(Y, sizes[-1])
        graph = _link_lengths(near, far)
        if len(sizes) == 1 and _n_islands(graph) == 1:  # the tree is a part of it
            links = [graph]
        else:
            tree = shortest_tree(Y, graph)
            links = [_link_lengths(near[:, :k], far[:, :k], tree) for k in sizes]
        found += [LinkedRows(X, weight, given, each) for each in links]
    return found


def in_few_columns(X: FloatArray) -> FloatArray:
    """(n, min(n, D)) rows in coordinates with the same distances between them."""
    if X.shape[1] <= len(X):
        return np.asarray(X, dtype=np.float64)
    centered = X - X.mean(axis=0, dtype=np.float64)
    value, vector = eigh(centered @ centered.T)
    return np.asarray(vector * np.sqrt(np.maximum(value, 0.0)))


def on_local_planes(X: FloatArray, dimension: int, rounds: int = _ROUNDS) -> FloatArray:
    """Rows (n, D) moved to the plane through their neighbours, a few times: noise across a surface is taken off."""
    share = _LOCAL_SHARE if X.shape[1] <= _FEW_COLUMNS else 0.0
    n_near = min(max(_LOCAL_ROWS, 2 * dimension + 2, int(share * len(X))), len(X) - 1)
    n_parts = -(-X.size * (n_near + 1) // _NUMBERS_AT_ONCE)
    for _ in range(rounds):
        near = np.column_stack([np.arange(len(X)), neighbors(X, n_near)[0]])
        X = np.concatenate([_move_to_planes(X, part, dimension) for part in np.array_split(near, max(n_parts, 1))])
    return X


def _move_to_planes(X: FloatArray, near: IntArray, dimension: int) -> FloatArray:
    """Rows near[:, 0] of X on the planes through the rows ``near`` them, themselves among these."""
    gap = X[near]
    middle = gap.mean(axis=1)
    gap -= middle[:, None]
    axes = _local_axes(gap, dimension)
    return np.asarray(middle + np.einsum("nqd,nq->nd", axes, np.einsum("nqd,nd->nq", axes, gap[:, 0])))


def _local_axes(gap: FloatArray, rank: int) -> FloatArray:
    """(n, rank, D) principal directions of the neighbours of each row, which lie at ``gap`` (n, k, D) from their mean.

    By the smaller of two problems: products between columns, or between neighbours.
    """
    if gap.shape[2] <= gap.shape[1]:
        return np.swapaxes(np.linalg.eigh(np.swapaxes(gap, 1, 2) @ gap)[1][:, :, -rank:], 1, 2)
    value, vector = np.linalg.eigh(gap @ np.swapaxes(gap, 1, 2))
    scale = np.sqrt(np.maximum(value[:, None, -rank:], np.finfo(float).tiny))
    return np.asarray(np.swapaxes(vector[:, :, -rank:] / scale, 1, 2) @ gap)


def neighbors(X: FloatArray, k: int) -> tuple[IntArray, FloatArray]:
    """(n, k) the nearest other rows of each, the nearest first, and (n, k) their distances."""
    if X.shape[1] <= _FEW_COLUMNS:
        far, near = (np.asarray(each) for each in cKDTree(X).query(X, k=k + 1))
        itself = near == np.arange(len(X))[:, None]
        itself[~itself.any(axis=1), -1] = True  # among more equal rows than were asked for
        return near[~itself].reshape(len(X), k), far[~itself].reshape(len(X), k)
    square = squared_distances(X, X)
    np.fill_diagonal(square, np.inf)
    near = np.argpartition(square, k - 1, axis=1)[:, :k]
    near = np.take_along_axis(near, np.argsort(np.take_along_axis(square, near, axis=1), axis=1), axis=1)
    return near, np.sqrt(np.maximum(np.take_along_axis(square, near, axis=1), 0.0))


def neighbors_along(X: FloatArray, k: int, dimension: int) -> tuple[IntArray, FloatArray]:
    """(n, k) neighbours of each row, and (n, k) how far they are, where what lies across the local planes counts twice.

    Of a row's and its neighbour's plane, both through their nearest rows, the one that says more counts.
    """
    near, far = neighbors(X, min(_CANDIDATES * k, len(X) - 1))
    own = np.arange(len(X))[:, None]
    for _ in range(_PICKS):
        gap = X[np.hstack([own, near[:, :_PLANE_ROWS]])]
        axes = _local_axes(gap - gap.mean(axis=1, keepdims=True), dimension)
        link = X[near] - X[:, None]
        square = np.einsum("nkd,nkd->nk", link, link)
        along = [np.einsum("nqd,nkd->nkq", axes, link), np.einsum("nkqd,nkd->nkq", axes[near], link)]
        across = square - np.minimum(*(np.square(each).sum(axis=2) for each in along))
        far = np.sqrt(square + np.maximum(across, 0.0))
        order = np.argsort(far, axis=1, kind="stable")
        near, far = (np.take_along_axis(each, order, axis=1) for each in (near, far))
    return near[:, :k], far[:, :k]


def _n_islands(graph: csr_matrix) -> int:
    count, _ = connected_components(graph, directed=False)
    return int(count)


def shortest_tree(X: FloatArray, graph: csr_matrix) -> csr_matrix:
    """Links that join all rows, as short as a graph of neighbours allows; its islands by the shortest links."""
    tree = csr_matrix(minimum_spanning_tree(graph))
    n_islands, island = connected_components(graph, directed=False)
    if n_islands == 1:
        return tree
    order = np.argsort(island, kind="stable")
    first = np.searchsorted(island[order], np.arange(n_islands))
    square = squared_distances(X[order], X[order])
    gap = np.minimum.reduceat(np.minimum.reduceat(square, first, axis=0), first, axis=1)
    gap = np.clip(np.sqrt(gap), 1e-150, 1e150)  # what is nil or endless would be no link
    np.fill_diagonal(gap, 0.0)
    pairs = zip(*minimum_spanning_tree(csr_matrix(gap)).nonzero(), strict=True)
    ends = [_nearest_pair(square, first, int(a), int(b)) for a, b in pairs]
    a, b = order[np.array(ends).T]
    length = np.maximum(np.linalg.norm(X[a] - X[b], axis=1), np.finfo(float).tiny)
    return csr_matrix(tree + csr_matrix((length, (a, b)), shape=tree.shape))


def _nearest_pair(square: FloatArray, first: IntArray, a: int, b: int) -> tuple[int, int]:
    """Rows of two islands, which begin at ``first``, with the least of all squared distances between them."""
    last = np.append(first[1:], len(square))
    between = square[first[a] : last[a], first[b] : last[b]]
    i, j = divmod(int(between.argmin()), between.shape[1])
    return int(first[a]) + i, int(first[b]) + j


def _link_lengths(near: IntArray, far: FloatArray, tree: csr_matrix | None = None) -> csr_matrix:
    """Lengths of the links between each row and its neighbours and of those of a tree, both ways alike."""
    n, k = near.shape
    length = np.maximum(far.ravel(), np.finfo(float).tiny)  # rows may come to lie in one place, and nil is no link
    links = csr_matrix((length, (np.repeat(np.arange(n), k), near.ravel())), shape=(n, n))
    links = links.maximum(links.T)
    return links if tree is None else links.maximum(tree).maximum(tree.T)


def scaled_distances(distance: FloatArray, marks: IntArray, n_components: int) -> FloatArray:
    """(n, Q) coordinates from distances (l, n) of all rows to landmarks (de Silva & Tenenbaum 2003).

    Landmarks are placed by classical scaling, other rows by their distances to them.
    """
    square = np.square(distance)
    middle = square[:, marks].mean(axis=1)
    between = -0.5 * (square[:, marks] - middle - middle[:, None] + middle.mean())
    value, vector = largest_eigenpairs(between, min(n_components, len(marks)))
    scale = np.sqrt(np.maximum(value, np.finfo(float).tiny))
    return np.asarray(-0.5 * (square - middle[:, None]).T @ (vector / scale))
