"""Test of the residuals across a surface: noise, or structure in more dimensions than the surface has; ours.

Rules that end training at the level of the noise take rows for a surface plus noise. Rows of images, or of several
groups, are not: what a plane through neighbours leaves of a row is mostly its place along further directions that its
neighbours share. Planes of more dimensions tell the two apart. Noise is the same in every direction, so that it leaves
as much per direction whatever the plane; structure leaves less and less.
"""

from __future__ import annotations

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.kernel_manifolds.noise_level import typical_mean
from prinfold.numerics.distances import squared_distances

_N_NEIGHBORS = 40
_MOST_ROWS = 300
"""Neighbours that make a local plane, and the most rows whose residuals are averaged."""

_FURTHER_DIMENSIONS = 6
"""Dimensions by which the larger planes exceed the surface."""

_MOST_NOISE_RATIO = 0.8
"""Ratio of residuals per direction below which they are structure. Surfaces with noise had 0.83 to 1.24 on 28 simulated
tables in 6 to 20 columns, digits 0.71, wine 0.73, breast cancer 0.46, oil flow below 0.01."""


def has_structure_across(Y: FloatArray, weight: FloatArray, n_components: int) -> bool:
    """Whether rows Y (n, D) vary across a Q-dimensional surface by more than noise.

    That is r(Q + 6) / r(Q + 1) < 0.8, with r of :func:`plane_residuals`; of few columns Q + 6 is D − 2 at most. One
    dimension beyond Q is allowed for the bend of the surface among neighbours. Too few rows or columns tell nothing,
    and count as noise.
    """
    n, D = Y.shape
    largest = min(n_components + _FURTHER_DIMENSIONS, D - 2)
    if largest < n_components + 2 or n < 2 * _N_NEIGHBORS or largest > _N_NEIGHBORS // 2:
        return False
    few, many = plane_residuals(Y, weight, (n_components + 1, largest))
    return bool(many < _MOST_NOISE_RATIO * few)


def plane_residuals(Y: FloatArray, weight: FloatArray, dimensions: tuple[int, ...]) -> FloatArray:
    """r(q) for each q of ``dimensions``: the mean squared distance of rows from local planes, for each direction left.

    The plane of a row is that of the q leading principal axes of its 40 nearest neighbours, the row itself left out:
    r(q) = mean_i ‖(I − V_i V_iᵀ)(y_i − m_i)‖² / (D − q).
    """
    rows = np.unique(np.linspace(0, len(Y) - 1, min(len(Y), _MOST_ROWS)).astype(np.intp))
    square = squared_distances(Y[rows], Y)
    square[np.arange(len(rows)), rows] = np.inf
    near = np.argpartition(square, _N_NEIGHBORS, axis=1)[:, :_N_NEIGHBORS]
    found = np.array([_squares_beyond(Y, i, js, weight, dimensions) for i, js in zip(rows, near, strict=True)])
    means = [typical_mean(squares, weight[rows]) for squares in found.T]
    return np.asarray(np.array(means) / (Y.shape[1] - np.array(dimensions)))


def _squares_beyond(
    Y: FloatArray, row: int, near: IntArray, weight: FloatArray, dimensions: tuple[int, ...]
) -> FloatArray:
    """Squared distances of a row from the principal planes of its neighbours, one for each dimension."""
    share = weight[near] / weight[near].sum()
    mean = share @ Y[near]
    axes = np.linalg.svd(np.sqrt(share)[:, None] * (Y[near] - mean), full_matrices=False)[2]
    left = Y[row] - mean
    along = np.append(0.0, np.cumsum(np.square(axes @ left)))
    return np.asarray(np.maximum(left @ left - along[list(dimensions)], 0.0))
