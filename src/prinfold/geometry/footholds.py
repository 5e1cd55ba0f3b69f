"""Where to begin looking for the nearest point of a surface: the foot on its mesh, and other basins that may be deeper.

These are vertices no farther than all their neighbours, nearest first, so that each fold has its say. A vertex whose
faces cannot reach as near as the foot is no rival.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from prinfold._typing import FloatArray, IntArray, Mesh
from prinfold.exceptions import InvalidParameterError
from prinfold.geometry.domain import Domain
from prinfold.geometry.simplices import Soup

# Numbers held at once by a block of distances.
_BLOCK_NUMBERS = 2**21
# How much farther than its edges the surface around a vertex may reach.
_BULGE = 1.2
# Points in a group, whose ball says whether any of them need be looked at.
_GROUP = 32
# Distances to the centres of groups are good to this share of the extent, if taken by products.
_ROUNDING = 1e-7


def surface_starts(X: FloatArray, mesh: Mesh, domain: Domain, n_starts: int) -> FloatArray:
    """(n, n_starts, Q) places to start from: the exact foot on the mesh, then vertices in other basins.

    Rows with fewer rivals repeat the foot.
    """
    if n_starts < 1:
        raise InvalidParameterError(f"n_starts must be at least 1, got {n_starts}.")
    return Footholds(mesh).starts(np.asarray(X, dtype=float), domain, n_starts)


class Footholds:
    """A mesh, made ready for many rows to look for places to start from."""

    def __init__(self, mesh: Mesh) -> None:
        vertices, faces = np.asarray(mesh.vertices, dtype=float), np.asarray(mesh.faces)
        self.mesh, self.latent = mesh, np.asarray(mesh.latent, dtype=float)
        self.soup, self.basins = Soup(vertices, faces), Basins(vertices, faces)

    def starts(self, X: FloatArray, domain: Domain, n_starts: int) -> FloatArray:
        """(n, n_starts, Q), as :func:`surface_starts` has them."""
        foot = self.soup.nearest(X)
        first = foot_latent(self.mesh, domain, foot.face, foot.barycentric)
        starts = np.repeat(first[:, None], n_starts, axis=1)
        if n_starts > 1:
            row, rank, vertex = self.basins.rivals(X, np.sqrt(foot.squared_distance), n_starts - 1)
            starts[row, 1 + rank] = self.latent[vertex]
        return starts


def graph_starts(X: FloatArray, points: FloatArray, latent: FloatArray, edges: IntArray, n_starts: int) -> FloatArray:
    """(n, n_starts, Q) places to start from where there is no mesh: the nearest of K surface points, then other basins.

    Neighbours are those along ``edges`` (E, 2). Rows with fewer rivals repeat the first.
    """
    distance, nearest = map(np.asarray, cKDTree(points).query(X))
    starts = np.repeat(latent[nearest][:, None], n_starts, axis=1)
    row, rank, vertex = Basins(points, edges).rivals(X, distance, n_starts)
    starts[row, rank] = latent[vertex]
    return starts


def foot_latent(mesh: Mesh, domain: Domain, face: IntArray, barycentric: FloatArray) -> FloatArray:
    """Latent coordinates of points of a mesh: z₀ + Σ λ_j (z_j − z₀), differences taken the short way round."""
    corners = np.asarray(mesh.latent, dtype=float)[np.asarray(mesh.faces)[face]]
    base = corners[:, 0]
    z = base.copy()
    for j in range(1, corners.shape[1]):
        z += barycentric[:, j, None] * domain.difference(corners[:, j], base)
    return domain.retract(z)


class Basins:
    """Points (V, D) with neighbours, in groups of near ones, to find those that are nearer than all their neighbours.

    With ρ the radius of a group about its centre c and r the farthest that its points reach, none of them is within
    d + r of x unless ‖x − c‖ ≤ d + r + ρ.
    """

    def __init__(self, points: FloatArray, faces: IntArray) -> None:
        self.centre = points.mean(axis=0)
        self.points = points - self.centre
        self.neighbours = _neighbour_table(len(points), faces)
        # The surface bulges out of its mesh, so that faces reach a little farther than their edges.
        self.reach = _BULGE * np.sqrt(_farthest(self.points, self.neighbours))
        order = np.asarray(cKDTree(self.points, leafsize=_GROUP).indices)
        # The last group is filled up with its last member, which is then looked at more than once.
        self.groups = np.pad(order, (0, -len(order) % _GROUP), mode="edge").reshape(-1, _GROUP)
        self.middle = self.points[self.groups].mean(axis=1)
        radius = np.sqrt(_square(self.points[self.groups] - self.middle[:, None]).max(axis=1))
        self.extent = radius + self.reach[self.groups].max(axis=1)
        self.rounding = _ROUNDING * float(np.sqrt(_square(self.middle).max()))

    def rivals(self, X: FloatArray, distance: FloatArray, wanted: int) -> tuple[IntArray, IntArray, IntArray]:
        """Rows, ranks and names of the points in basins, nearest first, that may lead nearer than ``distance`` (n,)."""
        X = X - self.centre
        size = max(1, _BLOCK_NUMBERS // len(self.middle))
        found = [self._rivals(X[i : i + size], distance[i : i + size], wanted) for i in range(0, len(X), size)]
        rows = [part[0] + i for part, i in zip(found, range(0, len(X), size), strict=True)]
        none = np.empty(0, dtype=np.intp)
        return (
            np.concatenate([*rows, none]),
            np.concatenate([*(part[1] for part in found), none]),
            np.concatenate([*(part[2] for part in found), none]),
        )

    def _rivals(self, X: FloatArray, distance: FloatArray, wanted: int) -> tuple[IntArray, IntArray, IntArray]:
        row, vertex, value = self._near(X, distance)
        lowest = np.ones(len(row), dtype=bool)
        for beside in self.neighbours[vertex].T:
            lowest &= self._squared(X, row, beside) >= value
        row, vertex, value = row[lowest], vertex[lowest], value[lowest]
        order = np.lexsort((vertex, value, row))
        row, vertex = row[order], vertex[order]
        fresh = np.ones(len(row), dtype=bool)
        fresh[1:] = (row[1:] != row[:-1]) | (vertex[1:] != vertex[:-1])
        row, vertex = row[fresh], vertex[fresh]
        rank = np.arange(len(row)) - np.searchsorted(row, row)
        first = rank < wanted
        return row[first], rank[first], vertex[first]

    def _near(self, X: FloatArray, distance: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Rows and points that are within the row's distance and the point's reach, and their squared distances."""
        apart = X @ (-2.0 * self.middle.T)
        apart += _square(X)[:, None]
        apart += _square(self.middle)
        slack = self.rounding + _ROUNDING * np.sqrt(_square(X))
        row, group = np.nonzero(apart <= np.square((distance + slack)[:, None] + self.extent))
        found = []
        size = max(1, _BLOCK_NUMBERS // (_GROUP * X.shape[1]))
        for i in range(0, len(row), size):
            rows = np.repeat(row[i : i + size], _GROUP)
            vertex = self.groups[group[i : i + size]].ravel()
            value = self._squared(X, rows, vertex)
            near = value < np.square(distance[rows] + self.reach[vertex])
            found.append((rows[near], vertex[near], value[near]))
        if not found:
            return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp), np.empty(0)
        rows, vertices, values = (np.concatenate(part) for part in zip(*found, strict=True))
        return rows, vertices, values

    def _squared(self, X: FloatArray, row: IntArray, vertex: IntArray) -> FloatArray:
        """Squared distances of pairs by differences: the same to the last bit wherever a pair comes up."""
        out = np.empty(len(row))
        size = max(1, _BLOCK_NUMBERS // X.shape[1])
        for i in range(0, len(row), size):
            out[i : i + size] = _square(X[row[i : i + size]] - self.points[vertex[i : i + size]])
        return out


def _farthest(points: FloatArray, neighbours: IntArray) -> FloatArray:
    """(V,) largest squared distance to a neighbour."""
    out = np.zeros(len(points))
    for beside in neighbours.T:
        np.maximum(out, _square(points[beside] - points), out=out)
    return out


def _neighbour_table(n_vertices: int, faces: IntArray) -> IntArray:
    """(V, most) neighbours of each vertex along the edges of faces; short rows are filled with the vertex itself."""
    q1 = faces.shape[1]
    pairs = np.concatenate([faces[:, [i, j]] for i in range(q1) for j in range(q1) if i != j] or [faces[:0, [0, 0]]])
    # One number for each pair sorts many times faster than pairs do.
    pairs = np.stack(np.divmod(np.unique(pairs[:, 0].astype(np.int64) * n_vertices + pairs[:, 1]), n_vertices), axis=1)
    count = np.bincount(pairs[:, 0], minlength=n_vertices)
    table = np.repeat(np.arange(n_vertices)[:, None], max(1, count.max(initial=0)), axis=1)
    place = np.arange(len(pairs)) - np.repeat(np.cumsum(count) - count, count)
    table[pairs[:, 0], place] = pairs[:, 1]
    return table


def _square(A: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("...d,...d->...", A, A))
