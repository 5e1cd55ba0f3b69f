"""Latent coordinates of the nodes of a ridge, in which distances are about the geodesic ones along it.

Each connected piece starts from classical scaling of its geodesic distances from landmarks (Isomap, Tenenbaum, de Silva
and Langford 2000; de Silva and Tenenbaum 2004). Then rotations R_j of the tangent planes and coordinates z_j are found
in turn that minimise

    Σ_jk w_jk ‖z_k − z_j − R_j u_jk‖²,

the energy of Sorkine and Alexa (2007), with u_jk the step from node j to its neighbour k in the tangent plane of j. A
ridge that is isometric to a flat region is unrolled; others are stretched as little as possible.

A closed surface has no such coordinates: laid flat, two layers of it overlap, or it is much strained. Then a piece is
cut in two at the median of one of its first d + 1 classical coordinates: that which leaves halves with the least
strain. This cut is ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.sparse import csc_matrix, csr_matrix
from scipy.sparse.csgraph import breadth_first_order, connected_components, dijkstra
from scipy.sparse.linalg import splu
from scipy.spatial import cKDTree

from prinfold._typing import FloatArray, IntArray
from prinfold.base.starting_points import leading_signs
from prinfold.density.ridges.chart_nodes import Links, NeighborGraph, thin

GAP_SPACINGS = 6.0
"""Spacings between pieces that lie side by side: more than any kernel reaches."""

_MOST_LANDMARKS = 400
_MOST_ITERATIONS, _CONVERGED_SHARE = 200, 1e-7
"""Most iterations of the alignment, and the share of the spacing by which coordinates move at convergence."""

_NEIGHBOR_WEIGHT = 0.1
"""Weight of the neighbours' rotations, so that that of a node whose neighbours lie on a line is determined."""

_MOST_STRAIN = 0.25
"""Root mean square of (z_k − z_j − R_j u_jk) over that of u_jk from which on a piece is cut; a half sphere has 0.1."""

_NEAR_SPACINGS, _TORN_RATIO, _MOST_TORN_SHARE = 2.0, 2.0, 0.01
"""Nodes within two spacings in the chart that are twice as far from each other in the data, and two spacings at least,
lie in two layers; a hundredth of all nodes may, at sharp bends."""

_OTHERS_WEIGHT, _LEAST_SKEW = 1e-6, 1e-3
"""Weight of the other pieces in the axes of one, and third moment over that of sizes below which it has no tail."""

_FLAT_SHARE = 1e-3
"""Share of the widest extent below which a piece has none along an axis."""


class EmbeddedNodes(NamedTuple):
    """Coordinates ``latent`` (m, d) of nodes, and the orthonormal ``frame`` (m, D, d) of steps along these axes."""

    latent: FloatArray
    frame: FloatArray

    def rotate(self, rotation: FloatArray) -> EmbeddedNodes:
        """Coordinates and frames with axes rotated by an orthogonal matrix."""
        return EmbeddedNodes(self.latent @ rotation, self.frame @ rotation)


class Embedding(NamedTuple):
    """Nodes ``node`` (m,) with coordinates and frames ``placed``, and the ``piece`` (m,) that each belongs to."""

    placed: EmbeddedNodes
    node: IntArray
    piece: IntArray


def embed(graph: NeighborGraph) -> Embedding:
    """Embed all connected pieces, and put them side by side along the first axis, the largest first."""
    todo, done = _lay_pieces_flat(graph, np.arange(len(graph.points))), list[tuple[EmbeddedNodes, IntArray]]()
    while todo:
        nodes, laid = todo.pop()
        if laid.whole:
            done.append((_orient_axes(laid.placed, graph, nodes), nodes))
        else:
            todo += _cut(graph, nodes, laid.start)
    done.sort(key=lambda each: (-len(each[1]), -float(np.ptp(each[0].latent, axis=0)[0]), each[1][0]))
    return _join_pieces(graph, done)


def _cut(graph: NeighborGraph, nodes: IntArray, start: FloatArray) -> list[tuple[IntArray, _FlatPiece]]:
    """The nodes in two halves or more, by the coordinate (m, ≤ d + 1) that leaves the least strain."""
    ways = list[list[tuple[IntArray, _FlatPiece]]]()
    for along in start.T:
        ahead = np.argsort(np.argsort(along, kind="stable")) >= len(along) // 2
        ways.append(_lay_pieces_flat(graph, nodes[ahead]) + _lay_pieces_flat(graph, nodes[~ahead]))
    return min(ways, key=lambda way: sum(len(part) * laid.strain**2 for part, laid in way))


def _lay_pieces_flat(graph: NeighborGraph, nodes: IntArray) -> list[tuple[IntArray, _FlatPiece]]:
    """The connected components of some nodes, each laid flat."""
    count, name = connected_components(_adjacency(graph.only(nodes)), directed=False)
    pieces = [nodes[name == i] for i in range(count)]
    return [(piece, _lay_flat(graph.only(piece))) for piece in pieces]


def _adjacency(graph: NeighborGraph) -> csr_matrix:
    first, second = graph.pairs.T
    length = np.linalg.norm(graph.points[second] - graph.points[first], axis=1)
    return csr_matrix((length, (first, second)), shape=(len(graph.points), len(graph.points)))


def _join_pieces(graph: NeighborGraph, pieces: list[tuple[EmbeddedNodes, IntArray]]) -> Embedding:
    """Put pieces one after the other along the first axis, and point each axis where the data columns along it rise."""
    start, laid = 0.0, list[FloatArray]()
    for (Z, _), _ in pieces:
        low, high = Z[:, 0].min(), Z[:, 0].max()
        laid.append(Z + np.eye(1, Z.shape[1])[0] * (start - low))
        start += high - low + GAP_SPACINGS * graph.spacing
    latent, node = np.concatenate(laid), np.concatenate([nodes for _, nodes in pieces])
    latent -= 0.5 * (latent.min(axis=0) + latent.max(axis=0))
    gap = graph.points[node] - graph.points[node].mean(axis=0)
    signs = np.diag(leading_signs((latent - latent.mean(axis=0)).T @ gap))
    placed = EmbeddedNodes(latent, np.concatenate([each.frame for each, _ in pieces])).rotate(signs)
    return Embedding(placed, node, np.repeat(np.arange(len(pieces)), [len(nodes) for _, nodes in pieces]))


def _orient_axes(placed: EmbeddedNodes, graph: NeighborGraph, nodes: IntArray) -> EmbeddedNodes:
    """Coordinates about the mean along the principal axes, each with its longer tail ahead.

    One node has no axes, and two have no longer tail; then the places of all other nodes as seen from the piece decide.
    Nothing here changes when the data are moved or rotated.
    """
    Z, unit = placed.latent - placed.latent.mean(axis=0), graph.spacing
    others = (graph.points - graph.points[nodes].mean(axis=0)) @ placed.frame.mean(axis=0)
    own, seen = Z.T @ Z / (len(Z) * unit**2), others.T @ others / max(float(np.square(others).sum()), unit**2)
    axes = np.linalg.eigh(own + _OTHERS_WEIGHT * seen)[1][:, ::-1]
    rotated, others = EmbeddedNodes(Z, placed.frame).rotate(axes), others @ axes
    skew, size = (rotated.latent**3).sum(axis=0), (np.abs(rotated.latent) ** 3).sum(axis=0)
    ahead = np.where(np.abs(skew) > _LEAST_SKEW * size, skew, others.sum(axis=0))
    return rotated.rotate(np.diag(np.where(ahead < 0, -1.0, 1.0)))


# ---------------------------------------------------------------------------------------------------- one piece


class _FlatPiece(NamedTuple):
    """A connected piece laid flat, its ``strain``, where it began (m, ≤ d + 1), and whether it may stay ``whole``."""

    placed: EmbeddedNodes
    strain: float
    start: FloatArray
    whole: bool


def _lay_flat(graph: NeighborGraph) -> _FlatPiece:
    """Lay a connected piece flat: classical scaling, then alignment of the tangent planes."""
    d, m = graph.tangent.shape[2], len(graph.points)
    start, rotation = _classical_scaling(graph, d + 1) if m > d + 1 else np.zeros((m, 0)), None
    extent = np.ptp(start, axis=0)
    if len(extent) < d or extent[d - 1] < _FLAT_SHARE * extent[0]:
        plane = _mean_frame(graph)
        start = (graph.points - graph.points.mean(axis=0)) @ plane
        rotation = _nearest_rotation(plane.T @ graph.tangent)
    placed, strain = _align(graph, start[:, :d], rotation)
    return _FlatPiece(placed, strain, start, m == 1 or not (strain > _MOST_STRAIN or _overlaps(graph, placed.latent)))


def _classical_scaling(graph: NeighborGraph, n_axes: int) -> FloatArray:
    """(m, ≤ n_axes) classical scaling of the geodesic distances from landmarks to all nodes (Isomap)."""
    adjacency = _adjacency(graph)
    spacing = graph.spacing
    marks: IntArray = np.arange(len(graph.points))
    while len(marks) > _MOST_LANDMARKS:
        spacing *= 1.25
        marks = thin(graph.points, spacing, _MOST_LANDMARKS)
    squared = np.square(dijkstra(adjacency, directed=False, indices=marks))
    mean = squared[:, marks].mean(axis=1)
    gram = -0.5 * (squared[:, marks] - mean[:, None] - mean[None] + mean.mean())
    values, vectors = np.linalg.eigh(gram)
    values, vectors = values[::-1][:n_axes], vectors[:, ::-1][:, :n_axes]
    real = values > 1e-9 * max(float(values[0]), np.finfo(float).tiny)
    vectors = vectors[:, real] / np.sqrt(values[real])
    return np.asarray(-0.5 * (squared - mean[:, None]).T @ vectors)


def _mean_frame(graph: NeighborGraph) -> FloatArray:
    """(D, d) the plane nearest to all tangent planes."""
    d = graph.tangent.shape[2]
    stacked = np.swapaxes(graph.tangent, 1, 2).reshape(-1, graph.points.shape[1])
    vectors = np.linalg.svd(stacked, full_matrices=False)[2][:d].T
    return np.asarray(vectors)


def _overlaps(graph: NeighborGraph, Z: FloatArray) -> bool:
    """Whether parts of the ridge that are far apart overlap in the embedding."""
    first, second = cKDTree(Z).query_pairs(_NEAR_SPACINGS * graph.spacing, output_type="ndarray").T
    shown, apart = (np.linalg.norm(x[second] - x[first], axis=1) for x in (Z, graph.points))
    torn = apart > _TORN_RATIO * np.maximum(shown, graph.spacing)
    return len(np.unique(np.concatenate([first[torn], second[torn]]))) > _MOST_TORN_SHARE * len(Z)


def _align(graph: NeighborGraph, Z: FloatArray, rotation: FloatArray | None = None) -> tuple[EmbeddedNodes, float]:
    """Minimise the energy above from coordinates (m, d); returns coordinates with frames, and the strain left.

    ``rotation`` (m, d, d) are the first rotations of the tangent planes; by default the best for the coordinates.
    """
    m, d = Z.shape
    if m == 1:
        return EmbeddedNodes(np.zeros((1, d)), graph.tangent), 0.0
    links = graph.links
    here, there = links.here, links.there
    seen = np.einsum("edq,ed->eq", graph.tangent[here], links.way)
    # A chord is nearer in length to the geodesic than its projection on the tangent plane is.
    seen *= (np.linalg.norm(links.way, axis=1) / np.linalg.norm(seen, axis=1))[:, None]
    carried = graph.tangent[there].swapaxes(1, 2) @ graph.tangent[here]
    solve, half = _solver(links), len(graph.pairs)
    if rotation is None:
        rotation = _nearest_rotation(links.collect(_outer(Z[there] - Z[here], seen)))
    side = _orientations(graph, links, carried)
    if side is not None:
        side *= 1.0 if (np.linalg.det(rotation) * side).sum() >= 0 else -1.0
    for _ in range(_MOST_ITERATIONS):
        smooth = _NEIGHBOR_WEIGHT * graph.spacing**2 * rotation[there] @ carried
        rotation = _nearest_rotation(links.collect(_outer(Z[there] - Z[here], seen) + smooth), side)
        wanted = np.einsum("eij,ej->ei", rotation[here], seen)
        wanted = 0.5 * (wanted - np.concatenate([wanted[half:], wanted[:half]]))
        new = solve(-links.collect(wanted))
        moved = np.abs(new - Z + (Z - new).mean(axis=0)).max()
        Z = new
        if moved < _CONVERGED_SHARE * graph.spacing:
            break
    wanted = np.einsum("eij,ej->ei", rotation[here], seen)
    left, whole = (float(links.weight @ np.square(x).sum(axis=1)) for x in (Z[there] - Z[here] - wanted, seen))
    return EmbeddedNodes(Z, graph.tangent @ rotation.swapaxes(1, 2)), float(np.sqrt(left / whole))


def _solver(links: Links) -> Callable[[FloatArray], FloatArray]:
    """A function that solves Σ_k w_jk (z_j − z_k) = b_j with the first z zero."""
    m = links.n_nodes
    every = np.arange(m)
    entries = np.concatenate([links.total, -links.weight])
    places = np.concatenate([every, links.here]), np.concatenate([every, links.there])
    factors = splu(csc_matrix((entries, places), shape=(m, m))[1:, 1:])
    return lambda b: np.concatenate([np.zeros((1, b.shape[1])), factors.solve(b[1:])])


def _nearest_rotation(M: FloatArray, side: FloatArray | None = None) -> FloatArray:
    """(m, d, d) orthogonal matrices nearest to given ones, with determinants ``side`` (m,) where they are wanted."""
    U, _, Vt = np.linalg.svd(M)
    if side is not None:
        U[:, :, -1] *= (side * np.sign(np.linalg.det(U @ Vt)))[:, None]
    return np.asarray(U @ Vt)


def _outer(A: FloatArray, B: FloatArray) -> FloatArray:
    return np.asarray(A[:, :, None] * B[:, None, :])


def _orientations(graph: NeighborGraph, links: Links, carried: FloatArray) -> FloatArray | None:
    """(m,) signs that give tangent frames of neighbours the same orientation; None where no signs do.

    Without it a flap that is connected by a few nodes may be embedded upside down.
    """
    same = np.sign(np.linalg.det(carried))
    order, before = breadth_first_order(_adjacency(graph), 0, directed=False)
    table = csr_matrix((same, (links.here, links.there)), shape=(len(graph.points),) * 2)
    side = np.ones(len(graph.points))
    later = order[1:]
    for node, sign in zip(later, np.asarray(table[before[later], later]).ravel(), strict=True):
        side[node] = side[before[node]] * sign
    return side if (side[links.here] * side[links.there] == same).all() else None
