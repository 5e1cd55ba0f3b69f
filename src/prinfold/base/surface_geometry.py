"""A smooth surface that is known by its map and Jacobian: its mesh, and nearest points on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from prinfold._typing import BoolArray, FloatArray, Mesh
from prinfold.geometry.column_span import ColumnSpan
from prinfold.geometry.projection import Bend, Projection, project_to_surface
from prinfold.geometry.projection_starts import MeshStarts
from prinfold.latent import LatentSpace
from prinfold.numerics.distances import squared_distances
from prinfold.rows.rows import blas_on_one_thread, dense, for_each_block

_MESH_PER_AXIS = {1: (400, 20_000), 2: (50, 250), 3: (13, 40)}
"""Fewest and most mesh vertices along each axis by latent dimension; beyond three a mesh is too large to use."""

_VERTICES_PER_DETAIL = {1: 8.0, 2: 8.0, 3: 4.0}
"""Mesh vertices over the latent length in which the map changes, so that no fold falls between them. With half as many
in three dimensions a search takes a third of the time. Of 400 rows about two sheets nine came out up to 3 %
farther from a kernel manifold, and none from surfaces on a lattice."""

_N_STARTS = 6
_BLOCK_ROWS = 1024

Map = Callable[[FloatArray], FloatArray]
NodeStarts = Callable[[FloatArray, FloatArray, LatentSpace], FloatArray]


def near_nodes(rows: FloatArray, nodes: FloatArray, latent: LatentSpace) -> FloatArray:
    """(n, S, Q) latent coordinates of the nodes nearest to each row."""
    n_near = min(_N_STARTS, len(nodes))
    return latent.nodes[np.argpartition(squared_distances(rows, nodes), n_near - 1, axis=1)[:, :n_near]]


def over_all_columns(squared: FloatArray, seen: BoolArray, dimension: int) -> FloatArray:
    """(n,) squared distances from a surface over the cells ``seen`` (n, D), as they would be over all D columns.

    At its nearest point a row lies across the surface, in D − q directions of which the cells show m − q, q being the
    dimension: noise as wide in every column makes (D − q) / (m − q) times as much of the whole. Rows with no more
    cells than dimensions lie on the surface whatever they hold, so that they have no distance: NaN.
    """
    n_columns, count = seen.shape[1], seen.sum(axis=1)
    known = count > dimension
    scale = (n_columns - dimension) / np.where(known, count - dimension, 1.0)
    return np.asarray(np.where(count == n_columns, squared, np.where(known, scale * squared, np.nan)))


@dataclass(frozen=True)
class SurfaceGeometry:
    """A surface by its map and Jacobian, with its mesh and nearest points.

    ``detail`` is the latent length over which the map changes, ``bend`` its curvature. Where the surface moves in fewer
    columns than there are, ``inside`` is the same surface in the coordinates of ``span``. ``node_starts`` says where to
    look for nearest points when there is no mesh. ``kept`` holds the mesh and its starts from one call to the next.
    """

    latent: LatentSpace
    point: Map
    jacobian: Map
    detail: float = np.inf
    bend: Bend | None = None
    span: ColumnSpan = field(default_factory=lambda: ColumnSpan(None))
    inside: SurfaceGeometry | None = None
    node_starts: NodeStarts = near_nodes
    kept: dict[str, Any] | None = None

    @blas_on_one_thread()
    def mesh(self, resolution: int | None = None) -> Mesh:
        """The surface cut into simplices; without a resolution, as fine as its detail asks for."""
        if resolution is None:
            return cast(Mesh, self._keep("mesh", lambda: self._cut(self._resolution())))
        return self._cut(resolution)

    @blas_on_one_thread()
    def nearest(self, table: FloatArray) -> Projection:
        """Exact nearest points of rows, block by block, started from the mesh."""
        narrow = self.inside or self
        mesh_starts, nodes = narrow.mesh_starts(), narrow.point(self.latent.nodes)
        n, (Q, D) = table.shape[0], (self.latent.n_columns, table.shape[1])
        found = Projection(np.empty((n, Q)), np.empty((n, D)), np.empty(n), np.empty(n, dtype=bool))

        def one_block(part: slice) -> None:
            rows = dense(table[part]).astype(float)
            block = narrow._nearest_block(self.span.inside(rows), mesh_starts, nodes)
            squared = block.squared_distance + self.span.outside(rows)
            block = block._replace(points=self.span.from_coordinates(block.points), squared_distance=squared)
            for whole, some in zip(found, block, strict=True):
                whole[part] = some

        for_each_block(one_block, [slice(i, i + _BLOCK_ROWS) for i in range(0, n, _BLOCK_ROWS)])
        return found

    @blas_on_one_thread()
    def nearest_measured(self, table: FloatArray) -> Projection:
        """Nearest points over the cells that were measured, of rows with gaps (NaN); distances are over those cells.

        Descents begin at the vertices of the mesh that are nearest in these cells.
        """
        mesh = self.mesh()
        seen = ~np.isnan(table)
        rows = np.where(seen, table, 0.0).astype(float)
        starts = np.empty((len(rows), min(_N_STARTS, len(mesh.vertices)), self.latent.n_columns))

        def one_block(part: slice) -> None:
            # Σ over seen cells of (x − y)², but for Σ x², which all vertices share.
            away = seen[part] @ np.square(mesh.vertices).T - 2.0 * rows[part] @ mesh.vertices.T
            near = np.argpartition(away, starts.shape[1] - 1, axis=1)[:, : starts.shape[1]]
            starts[part] = mesh.latent[near]

        for_each_block(one_block, [slice(i, i + _BLOCK_ROWS) for i in range(0, len(rows), _BLOCK_ROWS)])
        domain = self.latent.domain
        return project_to_surface(rows, self.point, self.jacobian, domain, starts, bend=self.bend, seen=seen)

    def mesh_starts(self) -> MeshStarts | None:
        """The mesh to start projections from; beyond three dimensions it would have too many simplices to search."""

        def make() -> MeshStarts | None:
            mesh = self.mesh()
            return MeshStarts(mesh) if len(mesh.faces) and self.latent.dimension in _MESH_PER_AXIS else None

        return cast("MeshStarts | None", self._keep("mesh_starts", make))

    def _keep(self, name: str, make: Callable[[], Any]) -> Any:
        if self.kept is None:
            return make()
        if name not in self.kept:
            self.kept[name] = make()
        return self.kept[name]

    def _cut(self, resolution: int | None) -> Mesh:
        fine = self.latent.refined(resolution) if resolution else self.latent
        return Mesh(self.point(fine.nodes), fine.nodes, fine.faces)

    def _resolution(self) -> int | None:
        dimension = self.latent.dimension
        if dimension not in _MESH_PER_AXIS:
            return None
        per_length = _VERTICES_PER_DETAIL[dimension] / self.detail
        return int(np.clip(1 + per_length * self.latent.domain.extent.length, *_MESH_PER_AXIS[dimension]))

    def _nearest_block(self, rows: FloatArray, mesh_starts: MeshStarts | None, nodes: FloatArray) -> Projection:
        squared = squared_distances(rows, nodes)
        if mesh_starts is not None:
            starts = mesh_starts.starts(rows, self.latent.domain, _N_STARTS)
        else:
            starts = self.node_starts(rows, nodes, self.latent)
        found = self._descend(rows, starts)
        # A mesh may overlook a narrow fold. What is farther than the nearest node has not been found yet.
        missed = np.flatnonzero(squared.min(axis=1) < found.squared_distance)
        if len(missed):
            start = self.latent.nodes[squared[missed].argmin(axis=1)][:, None]
            again = self._descend(rows[missed], start)
            for whole, better in zip(found, again, strict=True):
                whole[missed] = better
        return found

    def _descend(self, rows: FloatArray, starts: FloatArray) -> Projection:
        """Nearest points by Newton's method, the best over starts (n, S, Q)."""
        return project_to_surface(rows, self.point, self.jacobian, self.latent.domain, starts, bend=self.bend)
