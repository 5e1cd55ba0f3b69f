"""Latent coordinates of the nodes of a ridge, in which lengths are about those along it.

Each piece begins where classical scaling of the lengths of ways along it puts it (Isomap, on landmarks). Then turns R_j
of the tangent planes and coordinates z_j are found, one after the other and again, that make

    Σ_jk w_jk ‖z_k − z_j − R_j u_jk‖²

small, with u_jk the way from node j to its neighbour k as the tangent plane of j has it. For a ridge that can be laid
out flat without stretching, that is how it comes to lie, and others are stretched as little as may be.

A closed surface has no such coordinates: laid flat, two layers of it lie one upon the other, or it is much strained.
Where that is so a piece is cut in two by one of the coordinates that classical scaling gives it, with one more than are
wanted: by that which leaves halves with the least strain.
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
from prinfold.density.ridges.chart_nodes import Links, Sheet, thin

GAP_SPACINGS = 6.0
"""Spacings between pieces that lie side by side: more than any kernel reaches."""

_MOST_LANDMARKS = 400
_MOST_ITERATIONS, _SETTLED_SHARE = 200, 1e-7
"""Most turns of the alignment, and the share of the spacing by which coordinates then still move."""

_NEIGHBOR_WEIGHT = 0.1
"""Weight of the neighbours' turns, so that a node whose neighbours lie on a line has one too."""

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

    def rotate(self, turn: FloatArray) -> EmbeddedNodes:
        """Coordinates and frames with axes turned by an orthogonal matrix."""
        return EmbeddedNodes(self.latent @ turn, self.frame @ turn)


class Embedding(NamedTuple):
    """Nodes ``node`` (m,) with coordinates and frames ``placed``, and the ``piece`` (m,) that each belongs to."""

    placed: EmbeddedNodes
    node: IntArray
    piece: IntArray


def embed(sheet: Sheet) -> Embedding:
    """Lay out all pieces, the largest first, side by side along the first axis."""
    todo, done = _lay_pieces_flat(sheet, np.arange(len(sheet.points))), list[tuple[EmbeddedNodes, IntArray]]()
    while todo:
        nodes, laid = todo.pop()
        if laid.whole:
            done.append((_orient_axes(laid.placed, sheet, nodes), nodes))
        else:
            todo += _cut(sheet, nodes, laid.start)
    done.sort(key=lambda each: (-len(each[1]), -float(np.ptp(each[0].latent, axis=0)[0]), each[1][0]))
    return _join_pieces(sheet, done)


def _cut(sheet: Sheet, nodes: IntArray, start: FloatArray) -> list[tuple[IntArray, _FlatPiece]]:
    """The nodes in two halves or more, by the coordinate (m, ≤ d + 1) that leaves the least strain."""
    ways = list[list[tuple[IntArray, _FlatPiece]]]()
    for along in start.T:
        ahead = np.argsort(np.argsort(along, kind="stable")) >= len(along) // 2
        ways.append(_lay_pieces_flat(sheet, nodes[ahead]) + _lay_pieces_flat(sheet, nodes[~ahead]))
    return min(ways, key=lambda way: sum(len(part) * laid.strain**2 for part, laid in way))


def _lay_pieces_flat(sheet: Sheet, nodes: IntArray) -> list[tuple[IntArray, _FlatPiece]]:
    """Pieces that hang together, each laid flat."""
    count, name = connected_components(_graph(sheet.only(nodes)), directed=False)
    pieces = [nodes[name == i] for i in range(count)]
    return [(piece, _lay_flat(sheet.only(piece))) for piece in pieces]


def _graph(sheet: Sheet) -> csr_matrix:
    first, second = sheet.pairs.T
    length = np.linalg.norm(sheet.points[second] - sheet.points[first], axis=1)
    return csr_matrix((length, (first, second)), shape=(len(sheet.points), len(sheet.points)))


def _join_pieces(sheet: Sheet, pieces: list[tuple[EmbeddedNodes, IntArray]]) -> Embedding:
    """Put pieces one after the other along the first axis, and point each axis where the data columns along it rise."""
    start, laid = 0.0, list[FloatArray]()
    for (Z, _), _ in pieces:
        low, high = Z[:, 0].min(), Z[:, 0].max()
        laid.append(Z + np.eye(1, Z.shape[1])[0] * (start - low))
        start += high - low + GAP_SPACINGS * sheet.spacing
    latent, node = np.concatenate(laid), np.concatenate([nodes for _, nodes in pieces])
    latent -= 0.5 * (latent.min(axis=0) + latent.max(axis=0))
    gap = sheet.points[node] - sheet.points[node].mean(axis=0)
    signs = np.diag(leading_signs((latent - latent.mean(axis=0)).T @ gap))
    placed = EmbeddedNodes(latent, np.concatenate([each.frame for each, _ in pieces])).rotate(signs)
    return Embedding(placed, node, np.repeat(np.arange(len(pieces)), [len(nodes) for _, nodes in pieces]))


def _orient_axes(placed: EmbeddedNodes, sheet: Sheet, nodes: IntArray) -> EmbeddedNodes:
    """Coordinates about the mean along the principal axes, each with its longer tail ahead.

    One node has no axes, and two have no longer tail; then the places of all other nodes as seen from the piece decide.
    Nothing here changes when the data are moved or turned.
    """
    Z, unit = placed.latent - placed.latent.mean(axis=0), sheet.spacing
    others = (sheet.points - sheet.points[nodes].mean(axis=0)) @ placed.frame.mean(axis=0)
    own, seen = Z.T @ Z / (len(Z) * unit**2), others.T @ others / max(float(np.square(others).sum()), unit**2)
    axes = np.linalg.eigh(own + _OTHERS_WEIGHT * seen)[1][:, ::-1]
    turned, others = EmbeddedNodes(Z, placed.frame).rotate(axes), others @ axes
    skew, size = (turned.latent**3).sum(axis=0), (np.abs(turned.latent) ** 3).sum(axis=0)
    ahead = np.where(np.abs(skew) > _LEAST_SKEW * size, skew, others.sum(axis=0))
    return turned.rotate(np.diag(np.where(ahead < 0, -1.0, 1.0)))


# ---------------------------------------------------------------------------------------------------- one piece


class _FlatPiece(NamedTuple):
    """A connected piece laid flat, its ``strain``, where it began (m, ≤ d + 1), and whether it may stay ``whole``."""

    placed: EmbeddedNodes
    strain: float
    start: FloatArray
    whole: bool


def _lay_flat(sheet: Sheet) -> _FlatPiece:
    """Lay a connected piece flat: classical scaling, then alignment of the tangent planes."""
    d, m = sheet.tangent.shape[2], len(sheet.points)
    start, turn = _classical_scaling(sheet, d + 1) if m > d + 1 else np.zeros((m, 0)), None
    extent = np.ptp(start, axis=0)
    if len(extent) < d or extent[d - 1] < _FLAT_SHARE * extent[0]:
        plane = _mean_frame(sheet)
        start = (sheet.points - sheet.points.mean(axis=0)) @ plane
        turn = _nearest_turn(plane.T @ sheet.tangent)
    placed, strain = _align(sheet, start[:, :d], turn)
    return _FlatPiece(placed, strain, start, m == 1 or not (strain > _MOST_STRAIN or _overlaps(sheet, placed.latent)))


def _classical_scaling(sheet: Sheet, n_axes: int) -> FloatArray:
    """(m, ≤ n_axes) classical scaling of the lengths of ways along the ridge, from landmarks to all nodes."""
    graph = _graph(sheet)
    spacing = sheet.spacing
    marks: IntArray = np.arange(len(sheet.points))
    while len(marks) > _MOST_LANDMARKS:
        spacing *= 1.25
        marks = thin(sheet.points, spacing, _MOST_LANDMARKS)
    squared = np.square(dijkstra(graph, directed=False, indices=marks))
    mean = squared[:, marks].mean(axis=1)
    gram = -0.5 * (squared[:, marks] - mean[:, None] - mean[None] + mean.mean())
    values, vectors = np.linalg.eigh(gram)
    values, vectors = values[::-1][:n_axes], vectors[:, ::-1][:, :n_axes]
    real = values > 1e-9 * max(float(values[0]), np.finfo(float).tiny)
    vectors = vectors[:, real] / np.sqrt(values[real])
    return np.asarray(-0.5 * (squared - mean[:, None]).T @ vectors)


def _mean_frame(sheet: Sheet) -> FloatArray:
    """(D, d) the plane nearest to all tangent planes."""
    d = sheet.tangent.shape[2]
    stacked = np.swapaxes(sheet.tangent, 1, 2).reshape(-1, sheet.points.shape[1])
    vectors = np.linalg.svd(stacked, full_matrices=False)[2][:d].T
    return np.asarray(vectors)


def _overlaps(sheet: Sheet, Z: FloatArray) -> bool:
    """Whether parts of the ridge that are far apart lie one upon the other."""
    first, second = cKDTree(Z).query_pairs(_NEAR_SPACINGS * sheet.spacing, output_type="ndarray").T
    shown, apart = (np.linalg.norm(x[second] - x[first], axis=1) for x in (Z, sheet.points))
    torn = apart > _TORN_RATIO * np.maximum(shown, sheet.spacing)
    return len(np.unique(np.concatenate([first[torn], second[torn]]))) > _MOST_TORN_SHARE * len(Z)


def _align(sheet: Sheet, Z: FloatArray, turn: FloatArray | None = None) -> tuple[EmbeddedNodes, float]:
    """Coordinates that tangent planes agree upon best, from a start (m, d), and the strain that is left.

    ``turn`` (m, d, d) is where tangent planes start from; without it, as they suit the coordinates.
    """
    m, d = Z.shape
    if m == 1:
        return EmbeddedNodes(np.zeros((1, d)), sheet.tangent), 0.0
    links = sheet.links
    here, there = links.here, links.there
    seen = np.einsum("edq,ed->eq", sheet.tangent[here], links.way)
    # A chord is nearer to the way along the ridge than its shadow on the tangent plane.
    seen *= (np.linalg.norm(links.way, axis=1) / np.linalg.norm(seen, axis=1))[:, None]
    carried = sheet.tangent[there].swapaxes(1, 2) @ sheet.tangent[here]
    solve, half = _solver(links), len(sheet.pairs)
    if turn is None:
        turn = _nearest_turn(links.collect(_outer(Z[there] - Z[here], seen)))
    side = _orientations(sheet, links, carried)
    if side is not None:
        side *= 1.0 if (np.linalg.det(turn) * side).sum() >= 0 else -1.0
    for _ in range(_MOST_ITERATIONS):
        smooth = _NEIGHBOR_WEIGHT * sheet.spacing**2 * turn[there] @ carried
        turn = _nearest_turn(links.collect(_outer(Z[there] - Z[here], seen) + smooth), side)
        wanted = np.einsum("eij,ej->ei", turn[here], seen)
        wanted = 0.5 * (wanted - np.concatenate([wanted[half:], wanted[:half]]))
        new = solve(-links.collect(wanted))
        moved = np.abs(new - Z + (Z - new).mean(axis=0)).max()
        Z = new
        if moved < _SETTLED_SHARE * sheet.spacing:
            break
    wanted = np.einsum("eij,ej->ei", turn[here], seen)
    left, whole = (float(links.weight @ np.square(x).sum(axis=1)) for x in (Z[there] - Z[here] - wanted, seen))
    return EmbeddedNodes(Z, sheet.tangent @ turn.swapaxes(1, 2)), float(np.sqrt(left / whole))


def _solver(links: Links) -> Callable[[FloatArray], FloatArray]:
    """A function that solves Σ_k w_jk (z_j − z_k) = b_j with the first z zero."""
    m = links.n_nodes
    every = np.arange(m)
    entries = np.concatenate([links.total, -links.weight])
    places = np.concatenate([every, links.here]), np.concatenate([every, links.there])
    factors = splu(csc_matrix((entries, places), shape=(m, m))[1:, 1:])
    return lambda b: np.concatenate([np.zeros((1, b.shape[1])), factors.solve(b[1:])])


def _nearest_turn(M: FloatArray, side: FloatArray | None = None) -> FloatArray:
    """(m, d, d) orthogonal matrices nearest to given ones, with determinants ``side`` (m,) where they are wanted."""
    U, _, Vt = np.linalg.svd(M)
    if side is not None:
        U[:, :, -1] *= (side * np.sign(np.linalg.det(U @ Vt)))[:, None]
    return np.asarray(U @ Vt)


def _outer(A: FloatArray, B: FloatArray) -> FloatArray:
    return np.asarray(A[:, :, None] * B[:, None, :])


def _orientations(sheet: Sheet, links: Links, carried: FloatArray) -> FloatArray | None:
    """(m,) ±1 such that tangent frames of neighbours, so turned, have the same orientation; None where none fits all.

    Without it a flap that hangs on by a few nodes may come to lie upside down.
    """
    same = np.sign(np.linalg.det(carried))
    order, before = breadth_first_order(_graph(sheet), 0, directed=False)
    table = csr_matrix((same, (links.here, links.there)), shape=(len(sheet.points),) * 2)
    side = np.ones(len(sheet.points))
    later = order[1:]
    for node, sign in zip(later, np.asarray(table[before[later], later]).ravel(), strict=True):
        side[node] = side[before[node]] * sign
    return side if (side[links.here] * side[links.there] == same).all() else None
