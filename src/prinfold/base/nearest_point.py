"""A smooth surface that is known by its map and Jacobian: its mesh, and nearest points on it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

import numpy as np

from prinfold._typing import FloatArray, Mesh
from prinfold.geometry.column_span import Span
from prinfold.geometry.domain import Box
from prinfold.geometry.projection import Projection, project_to_surface
from prinfold.geometry.projection_starts import Footholds
from prinfold.geometry.region import Region
from prinfold.latent import LatentSpace
from prinfold.numerics.distances import squared_distances
from prinfold.rows.rows import dense, for_each_block

_MESH_PER_AXIS = {1: (400, 20_000), 2: (50, 250), 3: (13, 40)}
"""Fewest and most mesh vertices along each axis by latent dimension; beyond three a mesh is too large to use."""

_VERTICES_PER_DETAIL = 8.0
"""Mesh vertices over the latent length in which the map changes, so that no fold falls between them."""

_N_STARTS = 6
_PROJECT_ROWS = 1024


class MeshedSurface:
    """What every manifold asks of its map, whatever else it does."""

    latent_: LatentSpace

    @abstractmethod
    def _point(self, Z: FloatArray) -> FloatArray:
        """Points of the surface at valid latent coordinates, float64."""

    @abstractmethod
    def _jacobian(self, Z: FloatArray) -> FloatArray:
        """Derivative of :meth:`_point`, float64."""

    def _detail(self) -> float:
        """Latent length over which the map changes; a method that knows says so."""
        return np.inf

    def _resolution(self) -> int | None:
        limits = _MESH_PER_AXIS.get(self.latent_.dimension)
        if limits is None:
            return None
        domain = self.latent_.domain
        # A sphere of r² vertices has them √(4π)/r apart.
        extent = max(np.subtract(domain.high, domain.low)) if isinstance(domain, Box | Region) else np.sqrt(4 * np.pi)
        return int(np.clip(1 + _VERTICES_PER_DETAIL * extent / self._detail(), *limits))

    def _mesh(self, resolution: int | None = None) -> Mesh:
        """The surface cut into simplices, where ``_point`` has it."""
        resolution = resolution or self._resolution()
        fine = self.latent_.refined(resolution) if resolution else self.latent_
        return Mesh(self._point(fine.nodes), fine.nodes, fine.faces)

    def _nearest(self, table: FloatArray) -> Projection:
        """Exact projection in row blocks, started from the mesh."""
        narrow, within = self._narrowed()
        footholds, nodes = narrow._footholds(), narrow._point(self.latent_.nodes)
        n, (Q, D) = table.shape[0], (self.latent_.n_columns, table.shape[1])
        found = Projection(np.empty((n, Q)), np.empty((n, D)), np.empty(n), np.empty(n, dtype=bool))

        def one_block(part: slice) -> None:
            rows = dense(table[part]).astype(float)
            block = narrow._nearest_block(within.inside(rows), footholds, nodes)
            squared = block.squared_distance + within.outside(rows)
            block = block._replace(points=within.restored(block.points), squared_distance=squared)
            for whole, some in zip(found, block, strict=True):
                whole[part] = some

        for_each_block(one_block, [slice(i, i + _PROJECT_ROWS) for i in range(0, n, _PROJECT_ROWS)])
        return found

    def _narrowed(self) -> tuple[Self, Span]:
        """The same surface in the columns that it moves in, where it knows of fewer, and which those are."""
        return self, Span(None)

    def _footholds(self) -> Footholds | None:
        """The mesh to start projections from; beyond three dimensions it would have too many simplices to search."""
        mesh = self._mesh()
        return Footholds(mesh) if len(mesh.faces) and self.latent_.dimension in _MESH_PER_AXIS else None

    def _nearest_block(self, rows: FloatArray, footholds: Footholds | None, nodes: FloatArray) -> Projection:
        domain = self.latent_.domain
        squared = squared_distances(rows, nodes)
        if footholds is not None:
            starts = footholds.starts(rows, domain, _N_STARTS)
        else:  # a few near nodes stand in
            n_near = min(_N_STARTS, len(nodes))
            starts = self.latent_.nodes[np.argpartition(squared, n_near - 1, axis=1)[:, :n_near]]
        found = self._descend(rows, starts)
        # A mesh may overlook a narrow fold. What is farther than the nearest node has not been found yet.
        missed = np.flatnonzero(squared.min(axis=1) < found.squared_distance)
        if len(missed):
            start = self.latent_.nodes[squared[missed].argmin(axis=1)][:, None]
            again = self._descend(rows[missed], start)
            for whole, better in zip(found, again, strict=True):
                whole[missed] = better
        return found

    def _descend(self, rows: FloatArray, starts: FloatArray) -> Projection:
        """The best that Newton's method finds from starts (n, S, Q); a method that knows its curvature says so."""
        return project_to_surface(rows, self._point, self._jacobian, self.latent_.domain, starts)
