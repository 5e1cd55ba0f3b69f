"""Starts for the nearest point of a surface: the nearest point of its mesh, and other local minima of the distance.

These are vertices no farther than all their neighbours, nearest first, so that each fold has its say. A vertex whose
faces cannot reach as near as the foot is no rival.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from prinfold._typing import FloatArray, IntArray, Mesh
from prinfold.exceptions import InvalidParameterError
from prinfold.geometry.domain import Domain
from prinfold.geometry.point_groups import Groups
from prinfold.geometry.simplices import Soup
from prinfold.numerics.distances import squared_norms
from prinfold.numerics.distinct_numbers import distinct_numbers

# How much farther than its edges the surface around a vertex may reach.
_MOST_BULGE = 1.2


def surface_starts(X: FloatArray, mesh: Mesh, domain: Domain, n_starts: int) -> FloatArray:
    """(n, n_starts, Q) places to start from: the exact foot on the mesh, then vertices in other basins.

    Rows with fewer rivals repeat the foot.
    """
    if n_starts < 1:
        raise InvalidParameterError(f"n_starts must be at least 1, got {n_starts}.")
    return MeshStarts(mesh).starts(np.asarray(X, dtype=float), domain, n_starts)


class MeshStarts:
    """Starting points of projections onto a surface: the nearest places of a mesh of it to each row."""

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
    """Points (V, D) with neighbours, to find those that are nearer to a row than all their neighbours."""

    def __init__(self, points: FloatArray, faces: IntArray) -> None:
        self.center = points.mean(axis=0)
        self.neighbors = _neighbor_table(len(points), faces)
        # The surface bulges out of its mesh, so that faces reach a little farther than their edges.
        reach = _MOST_BULGE * np.sqrt(_farthest(points, self.neighbors))
        self.groups = Groups(points - self.center, reach)

    def rivals(self, X: FloatArray, distance: FloatArray, wanted: int) -> tuple[IntArray, IntArray, IntArray]:
        """Rows, ranks and names of the points in basins, nearest first, that may lead nearer than ``distance`` (n,)."""
        X = X - self.center
        row, vertex, value = self.groups.within(X, distance)
        lowest = np.ones(len(row), dtype=bool)
        for beside in self.neighbors[vertex].T:
            lowest &= self.groups.squared(X, row, beside) >= value
        row, vertex, value = row[lowest], vertex[lowest], value[lowest]
        order = np.lexsort((vertex, value, row))
        row, vertex = row[order], vertex[order]
        rank = np.arange(len(row)) - np.searchsorted(row, row)
        first = rank < wanted
        return row[first], rank[first], vertex[first]


def _farthest(points: FloatArray, neighbors: IntArray) -> FloatArray:
    """(V,) largest squared distance to a neighbour."""
    out = np.zeros(len(points))
    for beside in neighbors.T:
        np.maximum(out, squared_norms(points[beside] - points), out=out)
    return out


def _neighbor_table(n_vertices: int, faces: IntArray) -> IntArray:
    """(V, most) neighbours of each vertex along the edges of faces; short rows are filled with the vertex itself."""
    q1 = faces.shape[1]
    pairs = np.concatenate([faces[:, [i, j]] for i in range(q1) for j in range(q1) if i != j] or [faces[:0, [0, 0]]])
    # One number for each pair sorts many times faster than pairs do.
    names = distinct_numbers(pairs[:, 0].astype(np.int64) * n_vertices + pairs[:, 1])
    pairs = np.stack(np.divmod(names, n_vertices), axis=1)
    count = np.bincount(pairs[:, 0], minlength=n_vertices)
    table = np.repeat(np.arange(n_vertices)[:, None], max(1, count.max(initial=0)), axis=1)
    place = np.arange(len(pairs)) - np.repeat(np.cumsum(count) - count, count)
    table[pairs[:, 0], place] = pairs[:, 1]
    return table
