"""Posterior means and modes of rows under isotropic noise (thesis 3.3), many groups of rows in a compiled call."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.gtm.noise.protocol import Groups
from prinfold.gtm.softmax import sound_sums


@dataclass(frozen=True)
class LoadedNodes:
    """Nodes as compiled code reads them: ``loading`` (K, D + 2), whose products with loaded rows are log weights."""

    loading: FloatArray

    def means(self, loaded: FloatArray, groups: Groups, embedded: FloatArray) -> tuple[FloatArray, IntArray]:
        """(n, e) posterior means of node coordinates ``embedded`` (e, K), and (n,) the nodes of largest weight."""
        from prinfold.gtm._latent_posterior_jit import means_of_groups  # loads numba, which small jobs never need

        return means_of_groups(loaded, *groups, sound_sums(loaded.dtype), self.loading, embedded)

    def pieces(
        self, loaded: FloatArray, groups: Groups, least: FloatArray, points: FloatArray
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """Cells that hold at least the share ``least`` (K,) of a row's weight, and the weights of the points in them.

        ``points`` (K, M, D + 1) are those of :func:`points_of_cells`.
        """
        from prinfold.gtm._latent_posterior_jit import cells_that_matter, weigh_points

        starts, cell = cells_that_matter(loaded, *groups, sound_sums(loaded.dtype), self.loading, least)
        return starts, cell, weigh_points(loaded, starts, cell, points)


def points_of_cells(centers: FloatArray, precision: float, per_cell: int) -> FloatArray:
    """(K, M, D + 1) β y and −½β‖y‖² of the points of each cell, in double precision."""
    n_points, n_columns = centers.shape
    found = np.empty((n_points, n_columns + 1))
    np.multiply(centers, precision, out=found[:, :-1])
    found[:, -1] = -0.5 * np.einsum("kd,kd->k", found[:, :-1], centers)
    return found.reshape(-1, per_cell, n_columns + 1)
