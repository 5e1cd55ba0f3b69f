"""Where rows lie in latent space under isotropic noise, many groups of rows in each compiled call."""

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
        """(n, e) means of what the nodes have in the rows of ``embedded`` (e, K), and (n,) the heaviest nodes."""
        from prinfold.gtm._pieces_jit import means_of_groups  # loads numba, which small jobs never need

        return means_of_groups(loaded, *groups, sound_sums(loaded.dtype), self.loading, embedded)

    def pieces(
        self, loaded: FloatArray, groups: Groups, least: FloatArray, points: FloatArray
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """Cells with a share of ``least`` (K,) of each row's weights, and the weights of the points in them.

        ``points`` (K, M, D + 1) are those of :func:`points_of_cells`.
        """
        from prinfold.gtm._pieces_jit import cells_that_matter, weigh_points

        starts, cell = cells_that_matter(loaded, *groups, sound_sums(loaded.dtype), self.loading, least)
        return starts, cell, weigh_points(loaded, starts, cell, points)


def points_of_cells(centers: FloatArray, precision: float, per_cell: int) -> FloatArray:
    """(K, M, D + 1) β y and −½β‖y‖² of the points of each cell, in double precision."""
    n_points, n_columns = centers.shape
    found = np.empty((n_points, n_columns + 1))
    np.multiply(centers, precision, out=found[:, :-1])
    found[:, -1] = -0.5 * np.einsum("kd,kd->k", found[:, :-1], centers)
    return found.reshape(-1, per_cell, n_columns + 1)
