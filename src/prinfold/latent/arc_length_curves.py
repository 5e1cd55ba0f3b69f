"""Smooth curves laid end to end with arc length as their coordinate: the map, and exact nearest points."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from prinfold._typing import FloatArray, Mesh
from prinfold.geometry.curves import Cells
from prinfold.geometry.projection import Projection, project_to_surface
from prinfold.geometry.projection_starts import MeshStarts
from prinfold.latent import Branches
from prinfold.rows.rows import for_each_block

_N_STARTS = 6
_BLOCK_ROWS = 1024


@dataclass(frozen=True, eq=False)
class BranchCurves:
    """One curve for each of the branches of ``latent``, with ``points`` and unit ``tangents`` (K, D) at its nodes."""

    latent: Branches
    points: FloatArray
    tangents: FloatArray

    def point(self, Z: FloatArray) -> FloatArray:
        """(n, D) points at coordinates (n, 1); beyond the end of a branch straight on."""
        cells, t, past = self._cells(Z)
        return np.asarray(cells.at(t) + past[:, None] * cells.slope(t))

    def jacobian(self, Z: FloatArray) -> FloatArray:
        """(n, D, 1) derivative of :meth:`point`."""
        cells, t, _ = self._cells(Z)
        return cells.slope(t)[:, :, None]

    def bend(self, Z: FloatArray, directions: FloatArray) -> FloatArray:
        """(n, 1, 1) second derivative of r·y with r the directions (n, D)."""
        cells, t, past = self._cells(Z)
        bend = np.where(past[:, None] == 0, cells.bend(t), 0.0)
        return np.asarray(np.einsum("nd,nd->n", bend, directions)[:, None, None])

    def mesh(self, resolution: int | None = None) -> Mesh:
        """The branches cut into segments, between their nodes or between about ``resolution`` even ones."""
        if resolution is None:
            return Mesh(self.points, self.latent.nodes, self.latent.faces)
        coarse = self.latent.refined(resolution)
        return Mesh(self.point(coarse.nodes), coarse.nodes, coarse.faces)

    def nearest(self, X: FloatArray) -> Projection:
        """The nearest point of any branch to each row, exactly."""
        X = np.asarray(X, dtype=float)
        n, D = X.shape
        found = Projection(np.empty((n, 1)), np.empty((n, D)), np.empty(n), np.empty(n, dtype=bool))

        def one(part: slice) -> None:
            starts = self._mesh_starts.starts(X[part], self.latent.domain, _N_STARTS)
            block = project_to_surface(X[part], self.point, self.jacobian, self.latent.domain, starts, bend=self.bend)
            for whole, rows in zip(found, block, strict=True):
                whole[part] = rows

        for_each_block(one, [slice(i, i + _BLOCK_ROWS) for i in range(0, n, _BLOCK_ROWS)])
        return found

    def _cells(self, Z: FloatArray) -> tuple[Cells, FloatArray, FloatArray]:
        """The cells that coordinates lie in, where in them (n,), and how far beyond the end of the branch (n,)."""
        latent, domain = self.latent, self.latent.domain
        branch = domain.piece(Z)
        inside = domain.retract(Z)[:, 0]
        past = np.where(latent.closed[branch], 0.0, Z[:, 0] - inside)
        step = latent.steps[branch]
        # A branch of no length still has a direction.
        share = (inside - domain.low[branch]) / np.where(step > 0, step, 1.0)
        cell = np.clip(share.astype(np.int64), 0, latent.cells[branch] - 1)
        first = latent.first[branch]
        a, b = first + cell, first + np.mod(cell + 1, latent.counts[branch])
        width = np.where(step > 0, step, latent.gap)
        start, end = self.points[a], self.points[b]
        end = np.where(step[:, None] > 0, end, start + width[:, None] * self.tangents[a])
        return Cells(start, end, self.tangents[a], self.tangents[b], width), share - cell, past

    @cached_property
    def _mesh_starts(self) -> MeshStarts:
        return MeshStarts(self.mesh())
