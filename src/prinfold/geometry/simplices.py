"""Exact nearest points on a soup of simplices: points, segments, triangles, tetrahedra, in any dimension.

The foot of a point on one simplex is its projection on the simplex's own flat when that falls inside, and otherwise the
best of the feet on the facets. Which simplices to try at all is settled by bounding balls (a search of ours): nothing
in a ball of centre c and radius r is nearer to x than ‖x − c‖ − r.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.exceptions import InvalidDataError
from prinfold.geometry.point_groups import Groups
from prinfold.numerics.distances import squared_distances, squared_norms
from prinfold.numerics.finite_checks import LARGEST
from prinfold.rows.rows import row_slices

# A tree beats brute force in few dimensions and loses to one matrix product in many.
_TREE_DIMENSIONS = 16
# Numbers held at once by a block of candidate pairs, and by a block of distances to all centres.
_PAIR_NUMBERS = 2**21
_DISTANCE_NUMBERS = 2**22
# Share of all groups of faces from which on a row is compared with all faces at once.
_FAR_SHARE = 0.1
# Faces whose edges are nearer to linear dependence than this are replaced by their facets.
_RANK_TOLERANCE = 1e-13


class Foot(NamedTuple):
    """Nearest points on a soup of simplices.

    ``points`` (n, D); ``face`` (n,) the row of ``faces`` each lies on; ``barycentric`` (n, q + 1) its
    weights of that face's corners, non-negative with sum 1; ``squared_distance`` (n,).
    """

    points: FloatArray
    face: IntArray
    barycentric: FloatArray
    squared_distance: FloatArray


def nearest_on_simplices(X: FloatArray, vertices: FloatArray, faces: IntArray) -> Foot:
    """Foot of every row of X on the union of simplices.

    That is the argmin of ‖x − Σ_j λ_j v_{f,j}‖² over faces f and weights λ ≥ 0 with Σλ_j = 1. Memory is
    bounded whatever the number of rows and faces.
    """
    return Soup(vertices, faces).nearest(X)


class Soup:
    """A union of simplices, made ready for many projections on it."""

    def __init__(self, vertices: FloatArray, faces: IntArray) -> None:
        self.vertices, self.faces = _check_soup(vertices, faces)
        # Far from the origin products of coordinates swamp differences: everything happens about the centre.
        self.center = self.vertices.mean(axis=0)
        self.corners = (self.vertices - self.center)[self.faces]
        self.by_products = self.vertices.shape[1] > max(_TREE_DIMENSIONS, self.faces.shape[1])
        self.layers, self.groups = list[_Layer](), None
        if not _within_reach(self.vertices):
            return  # which is an error once there are rows
        if (self.vertices == self.vertices[0]).all():
            return  # a single point: every face is as near as the first
        if self.by_products:
            centers, radii = _balls(self.corners)
            self.groups = Groups(centers, radii)
        else:
            self.layers = _layers(self.corners)

    def nearest(self, X: FloatArray) -> Foot:
        """Foot of every row."""
        rows = _check_rows(X, self.vertices) - self.center
        best, face = np.full(len(rows), np.inf), np.zeros(len(rows), dtype=np.intp)
        if self.groups is not None:
            self._search_groups(self.groups, rows, face)
        for layer in self.layers:
            _search(rows, self.corners, layer, best, face)
        barycentric, points, squared = _feet_in_blocks(rows, self.corners, face)
        return Foot(points + self.center, face, barycentric, squared)

    def _search_groups(self, groups: Groups, rows: FloatArray, face: IntArray) -> None:
        """Fill in ``face`` in many dimensions: a row far from all faces, which rules out few groups, by products."""
        bound = groups.bound(rows) * (1 + 1e-12)
        far = groups.share(rows, bound) > _FAR_SHARE
        near = np.flatnonzero(~far)
        i, f, _ = groups.within(rows[near], bound[near])
        face[near] = _decide(rows[near], self.corners, i, f)
        if far.any():
            found = np.zeros(int(far.sum()), dtype=np.intp)
            _search_products(rows[far], self.vertices - self.center, self.faces, found)
            face[far] = found


def nearest_on_simplices_reference(X: FloatArray, vertices: FloatArray, faces: IntArray) -> Foot:
    """The slow obvious twin of :func:`nearest_on_simplices`: every row against every face."""
    vertices, faces = _check_soup(vertices, faces)
    X = _check_rows(X, vertices)
    corners = vertices[faces]
    rows, every = np.repeat(np.arange(len(X)), len(faces)), np.tile(np.arange(len(faces)), len(X))
    barycentric, points, squared = foot_on_each(X[rows], corners[every])
    table = squared.reshape(len(X), len(faces))
    face = table.argmin(axis=1)
    pick = np.arange(len(X)) * len(faces) + face
    return Foot(points[pick], face, barycentric[pick], squared[pick])


def foot_on_each(x: FloatArray, corners: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Feet of m points on m simplices, one each: x (m, D), corners (m, q + 1, D).

    Returns barycentric weights (m, q + 1), points (m, D) and squared distances (m,). A foot that is not inside lies on
    a facet that the point sees: one with a negative coordinate of the corner across. A degenerate simplex is the union
    of its facets (Carathéodory), so leaving its own flat out loses nothing.
    """
    weights, regular = _flat_coordinates(x, corners)
    seen = (weights < 0) | ~regular[:, None]
    points = np.matmul(weights[:, None, :], corners)[:, 0]
    squared = np.where(seen.any(axis=1), np.inf, squared_norms(x - points))
    for dropped in range(corners.shape[1]):
        outside = np.flatnonzero(seen[:, dropped])
        if len(outside) == 0:
            continue
        kept = [j for j in range(corners.shape[1]) if j != dropped]
        facet_weights, facet_points, facet_squared = foot_on_each(x[outside], corners[outside][:, kept])
        better = facet_squared < squared[outside]
        rows = outside[better]
        weights[rows] = 0.0
        weights[rows[:, None], kept] = facet_weights[better]
        points[rows], squared[rows] = facet_points[better], facet_squared[better]
    return weights, points, squared


def _check_soup(vertices: FloatArray, faces: IntArray) -> tuple[FloatArray, IntArray]:
    vertices, faces = np.asarray(vertices, dtype=float), np.asarray(faces)
    if faces.ndim != 2 or len(faces) == 0:
        raise InvalidDataError(
            f"faces must be a table of corner indices with at least one row, got shape {faces.shape}."
        )
    return vertices, faces


def _check_rows(X: FloatArray, vertices: FloatArray) -> FloatArray:
    X = np.asarray(X, dtype=float)
    if X.ndim != 2 or vertices.ndim != 2 or X.shape[1] != vertices.shape[1]:
        raise InvalidDataError(
            f"X and vertices must be tables with equally many columns, got shapes {X.shape} and {vertices.shape}."
        )
    if not (_within_reach(X) and _within_reach(vertices)):
        raise InvalidDataError(
            f"X and vertices must be finite and less than {LARGEST:g} in size; drop or fill rows with NaN or infinity "
            "first, or rescale the columns."
        )
    return X


def _within_reach(points: FloatArray) -> bool:
    """Whether squared distances between points are finite."""
    return bool((np.abs(points) < LARGEST).all())


def _flat_coordinates(x: FloatArray, corners: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Barycentric coordinates of the projection on the simplex's flat, and whether the simplex is not degenerate.

    Modified Gram–Schmidt on the edges E = QR from the first corner, then Rt = Qᵀ(x − v₀): squaring the
    condition number through EᵀE would lose thin triangles.
    """
    m, q1, _ = corners.shape
    edges = corners[:, 1:] - corners[:, :1]
    rest, q = x - corners[:, 0], q1 - 1
    R, y = np.zeros((m, q, q)), np.zeros((m, q))
    regular = np.ones(m, dtype=bool)
    for i in range(q):
        before = np.sqrt(squared_norms(edges[:, i]))
        for j in range(i):
            R[:, j, i] = np.einsum("md,md->m", edges[:, j], edges[:, i])
            edges[:, i] -= R[:, j, i, None] * edges[:, j]
        length = np.sqrt(squared_norms(edges[:, i]))
        regular &= (length > _RANK_TOLERANCE * before) & (length > 0)
        R[:, i, i] = np.where(length > 0, length, 1.0)
        edges[:, i] /= R[:, i, i, None]
        y[:, i] = np.einsum("md,md->m", edges[:, i], rest)
        rest = rest - y[:, i, None] * edges[:, i]
    t = np.zeros((m, q))
    for i in range(q - 1, -1, -1):
        t[:, i] = (y[:, i] - np.einsum("mj,mj->m", R[:, i, i + 1 :], t[:, i + 1 :])) / R[:, i, i]
    weights = np.concatenate([1.0 - t.sum(axis=1, keepdims=True), t], axis=1)
    return weights, regular


def _feet_in_blocks(rows: FloatArray, corners: FloatArray, face: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Feet of rows on their nearest faces, with weights and points, in blocks."""
    weights, points, squared = np.empty((len(rows), corners.shape[1])), np.empty_like(rows), np.empty(len(rows))
    size = max(1, _PAIR_NUMBERS // (corners.shape[1] * max(1, corners.shape[2])))
    for block in row_slices(len(rows), size):
        weights[block], points[block], squared[block] = foot_on_each(rows[block], corners[face[block]])
    return weights, points, squared


class _Layer(NamedTuple):
    """Faces of similar size with their bounding balls, the balls' centres in a tree."""

    members: IntArray
    radii: FloatArray
    largest: float
    tree: cKDTree


def _balls(corners: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Centres and radii of balls around the faces."""
    centers = corners.mean(axis=1)
    # Radii are rounded up: too small a ball could rule out the nearest face.
    return centers, np.sqrt(squared_norms(corners - centers[:, None]).max(axis=1)) * (1 + 1e-12)


def _layers(corners: FloatArray) -> list[_Layer]:
    """Faces sorted into layers by octaves of size: one huge face must not loosen the bound of all small ones."""
    centers, radii = _balls(corners)
    top = radii.max()
    octave = np.zeros(len(radii)) if top == 0 else np.floor(-np.log2(np.maximum(radii / top, 2.0**-8)) / 2)
    layers = []
    for level in np.unique(octave)[::-1]:
        index = np.flatnonzero(octave == level)
        layers.append(_Layer(index, radii[index], float(radii[index].max()), cKDTree(centers[index])))
    return layers


def _search(rows: FloatArray, corners: FloatArray, layer: _Layer, best: FloatArray, face: IntArray) -> None:
    """Improve ``best`` and ``face`` in place by the faces of one layer, nearest centres first.

    Rounds of 8, 32, 128, … centres; a row leaves once the next centre's ball cannot hold anything nearer.
    """
    active, seen, wanted, total = np.arange(len(rows)), 0, 8, len(layer.members)
    while len(active) and seen < total:
        wanted = min(wanted, total)
        size = _PAIR_NUMBERS // (wanted * corners.shape[1] * max(1, corners.shape[2]))
        blocks = np.array_split(active, -(-len(active) // max(1, size)))
        active = np.concatenate(
            [_search_round(rows, corners, layer, best, face, b, slice(seen, wanted)) for b in blocks]
        )
        seen, wanted = wanted, wanted * 4


def _search_round(
    rows: FloatArray,
    corners: FloatArray,
    layer: _Layer,
    best: FloatArray,
    face: IntArray,
    block: IntArray,
    turn: slice,
) -> IntArray:
    """Try the next centres for one block of rows; returns the rows whose nearest face is not certain yet."""
    distance, near = (np.asarray(a) for a in layer.tree.query(rows[block], k=np.arange(1, turn.stop + 1)))
    last, distance, near = distance[:, -1], distance[:, turn], near[:, turn]
    i, j = np.nonzero(distance - layer.radii[near] <= np.sqrt(best[block])[:, None])
    squared = np.full(near.shape, np.inf)
    squared[i, j] = foot_on_each(rows[block[i]], corners[layer.members[near[i, j]]])[2]
    column = squared.argmin(axis=1)
    value = squared[np.arange(len(block)), column]
    better = value < best[block]
    best[block[better]] = value[better]
    face[block[better]] = layer.members[near[better, column[better]]]
    return block[last - layer.largest <= np.sqrt(best[block])]


class _FlattenedFaces(NamedTuple):
    """Faces in q coordinates of their own, in which distances to the corners give the distance to the face.

    With edges E = QR from the first corner, Rᵀ Qᵀ(x − v₀) = Eᵀ(x − v₀) = ½(‖x − v₀‖² + ‖e_j‖² − ‖x − v_j‖²).
    """

    corners: FloatArray
    inverse: FloatArray
    edges: FloatArray
    thin: BoolArray


def _flatten(corners: FloatArray, scale: float) -> _FlattenedFaces:
    edges = np.swapaxes(corners[:, 1:] - corners[:, :1], 1, 2)
    R = np.asarray(np.linalg.qr(edges, mode="r"))
    # Rounding in products is of the order ε·scale² and dividing by a thin face's height would blow it up.
    thin = np.abs(np.diagonal(R, axis1=1, axis2=2)).min(axis=1, initial=np.inf) <= 1e-5 * scale
    R[thin] = np.eye(R.shape[2])
    local = np.concatenate([np.zeros((len(R), 1, R.shape[1])), np.swapaxes(R, 1, 2)], axis=1)
    return _FlattenedFaces(local, np.linalg.inv(np.swapaxes(R, 1, 2)), squared_norms(np.swapaxes(edges, 1, 2)), thin)


def _search_products(rows: FloatArray, vertices: FloatArray, faces: IntArray, face: IntArray) -> None:
    """Fill in ``face`` in many dimensions, where trees fail: distances by matrix products, in blocks of rows."""
    # A vertex of no face is not on the soup and bounds nothing.
    used, names = np.unique(faces, return_inverse=True)
    vertices, faces = vertices[used], names.reshape(faces.shape)
    corners = vertices[faces]
    centers = corners.mean(axis=1)
    radii = np.sqrt(squared_norms(corners - centers[:, None]).max(axis=1))
    scale = float(np.sqrt(squared_norms(vertices).max()))
    flat = _flatten(corners, scale)
    size = max(1, _DISTANCE_NUMBERS // (len(vertices) + len(faces)))
    for block in row_slices(len(rows), size):
        x = rows[block]
        # Product distances err by some ε(‖x‖² + ‖v‖²); what they cannot tell apart is decided by differences.
        slack = 1e-9 * (squared_norms(x) + scale**2)
        to_vertices = squared_distances(x, vertices)
        reach = np.sqrt(to_vertices.min(axis=1) + slack)
        i, f = np.nonzero(squared_distances(x, centers) <= (reach[:, None] + radii) ** 2 + slack[:, None])
        estimate = _estimates(to_vertices, faces, flat, i, f)
        lowest = reach**2
        # The estimate for a thin face is −inf, so that it is computed exactly; it must not rule out other faces.
        np.minimum.at(lowest, i, np.where(flat.thin[f], np.inf, estimate))
        close = estimate <= (lowest + slack)[i]
        face[block] = _decide(x, corners, i[close], f[close])


def _estimates(to_vertices: FloatArray, faces: IntArray, flat: _FlattenedFaces, i: IntArray, f: IntArray) -> FloatArray:
    """Squared distances of pairs (row i, face f) from the squared distances to the face's corners."""
    estimate = np.empty(len(i))
    for pair in row_slices(len(i), _PAIR_NUMBERS // 16):
        apart = to_vertices[i[pair, None], faces[f[pair]]]
        products = 0.5 * (apart[:, :1] + flat.edges[f[pair]] - apart[:, 1:])
        local = np.einsum("mij,mj->mi", flat.inverse[f[pair]], products)
        _, _, inside = foot_on_each(local, flat.corners[f[pair]])
        estimate[pair] = inside + apart[:, 0] - squared_norms(local)
    estimate[flat.thin[f]] = -np.inf
    return estimate


def _decide(x: FloatArray, corners: FloatArray, i: IntArray, f: IntArray) -> IntArray:
    """The nearest face of each row among pairs (i, f) sorted by row, every row having at least one."""
    squared = np.empty(len(i))
    size = max(1, _PAIR_NUMBERS // (corners.shape[1] * corners.shape[2]))
    for pair in row_slices(len(i), size):
        squared[pair] = foot_on_each(x[i[pair]], corners[f[pair]])[2]
    order = np.lexsort((f, squared, i))
    first = np.searchsorted(i[order], np.arange(len(x)))
    return np.asarray(f[order[first]])
