"""Posterior means and modes of rows under isotropic noise (thesis 3.3), many groups of rows in a compiled call."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.gtm.noise.protocol import Groups, Parameters
from prinfold.gtm.softmax import sound_sums
from prinfold.rows.rows import row_slices

_POINTS_AT_ONCE = 1024


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


def points_of_cells(surface: BasisMap, parameters: Parameters, per_cell: int) -> FloatArray:
    """(K, M, D + 1) β y and −½β‖y‖² of the nodes of a surface, as many to a cell, in double precision.

    Some at a time: the features and images of all of them would take several times the memory of what is made.
    """
    Z, weights, beta = surface.latent.nodes, parameters.weights, float(parameters.precision)
    found = np.empty((len(Z), weights.shape[1] + 1))
    for part in row_slices(len(Z), _POINTS_AT_ONCE):
        centers = surface.point(Z[part], weights)
        np.multiply(centers, beta, out=found[part, :-1])
        found[part, -1] = -0.5 * np.einsum("kd,kd->k", found[part, :-1], centers)
    return found.reshape(-1, per_cell, found.shape[1])
