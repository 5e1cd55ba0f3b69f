"""Sums and solves of penalised splines, compiled; see :mod:`prinfold.numerics.penalized_splines`.

This module imports numba: import it only where there is much to do.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from prinfold._typing import FloatArray, IntArray
from prinfold.numerics._compiled import compiled


@compiled
def add_moments(
    u: FloatArray,
    X: FloatArray,
    weight: FloatArray,
    n_cells: int,
    place: IntArray,
    gram: FloatArray,
    products: FloatArray,
) -> None:
    """Add Σ w b bᵀ to the band ``gram`` and Σ w b xᵀ to ``products``, b being the four B-splines at a place."""
    m, basis, names = len(place), np.empty(4), np.empty(4, dtype=np.int64)
    for i in range(len(u)):
        cell = int(min(max(u[i] * n_cells, 0.0), n_cells - 1.0))
        t = u[i] * n_cells - cell
        basis[0], basis[3] = (1.0 - t) ** 3 / 6.0, t**3 / 6.0
        basis[1] = (3.0 * t**3 - 6.0 * t**2 + 4.0) / 6.0
        basis[2] = (-3.0 * t**3 + 3.0 * t**2 + 3.0 * t + 1.0) / 6.0
        for a in range(4):
            names[a] = place[(cell + a) % m]
        for a in range(4):
            heavy = weight[i] * basis[a]
            for d in range(X.shape[1]):
                products[names[a], d] += heavy * X[i, d]
            for b in range(4):
                if names[a] >= names[b]:
                    gram[names[a] - names[b], names[b]] += heavy * basis[b]


@register_jitable
def _factor(band: FloatArray) -> None:
    """Cholesky factor L of a band, in its place."""
    reach, m = band.shape[0] - 1, band.shape[1]
    for j in range(m):
        root = np.sqrt(max(band[0, j], 1e-300))
        band[0, j] = root
        last = min(reach, m - 1 - j)
        for k in range(1, last + 1):
            band[k, j] /= root
        for k in range(1, last + 1):
            for i in range(k, last + 1):
                band[i - k, j + k] -= band[i, j] * band[k, j]


@register_jitable
def _solve(band: FloatArray, right: FloatArray) -> None:
    """L⁻ᵀL⁻¹ times ``right`` (m, D), in its place."""
    reach, m = band.shape[0] - 1, band.shape[1]
    for j in range(m):
        for d in range(right.shape[1]):
            right[j, d] /= band[0, j]
        for k in range(1, min(reach, m - 1 - j) + 1):
            for d in range(right.shape[1]):
                right[j + k, d] -= band[k, j] * right[j, d]
    for j in range(m - 1, -1, -1):
        for k in range(1, min(reach, m - 1 - j) + 1):
            for d in range(right.shape[1]):
                right[j, d] -= band[k, j] * right[j + k, d]
        for d in range(right.shape[1]):
            right[j, d] /= band[0, j]


@register_jitable
def _inverse(band: FloatArray, inverse: FloatArray) -> None:
    """The band of (LLᵀ)⁻¹, from the last column to the first (Hutchinson & de Hoog, 1985)."""
    reach, m = band.shape[0] - 1, band.shape[1]
    for j in range(m - 1, -1, -1):
        last = min(reach, m - 1 - j)
        for i in range(last, -1, -1):
            total = 1.0 / band[0, j] if i == 0 else 0.0
            for k in range(1, last + 1):
                high, low = max(i, k), min(i, k)
                total -= band[k, j] * inverse[high - low, j + low] if i > 0 else band[k, j] * inverse[k, j]
            inverse[i, j] = total / band[0, j]


@compiled
def score_penalties(
    gram: FloatArray,
    roughness: FloatArray,
    products: FloatArray,
    penalties: FloatArray,
    residual: FloatArray,
    trace: FloatArray,
) -> None:
    """Fill in the mean squared residual, less that of nothing, and the trace of the hat matrix at each penalty."""
    reach, m = gram.shape[0] - 1, gram.shape[1]
    inverse = np.empty_like(gram)
    for p in range(len(penalties)):
        band, C = gram + penalties[p] * roughness, products.copy()
        _factor(band)
        _solve(band, C)
        _inverse(band, inverse)
        residual[p], trace[p] = 0.0, 0.0
        for j in range(m):
            trace[p] += gram[0, j] * inverse[0, j]
            for d in range(C.shape[1]):
                residual[p] += C[j, d] * (gram[0, j] * C[j, d] - 2.0 * products[j, d])
            for k in range(1, min(reach, m - 1 - j) + 1):
                trace[p] += 2.0 * gram[k, j] * inverse[k, j]
                for d in range(C.shape[1]):
                    residual[p] += 2.0 * gram[k, j] * C[j, d] * C[j + k, d]


@compiled
def solve_band(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """(m, D) the solution of a banded system."""
    band, C = matrix.copy(), right.copy()
    _factor(band)
    _solve(band, C)
    return C
