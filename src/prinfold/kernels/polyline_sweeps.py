"""Nearest points on a polyline, compiled. This module imports numba: import it only where there is much to do."""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from prinfold._typing import FloatArray, IntArray
from prinfold.kernels.sweeps import compiled


@register_jitable
def _foot(x: FloatArray, begin: FloatArray, step: FloatArray, size: float) -> tuple[float, float]:
    """Where on one segment the foot is, and how far away squared."""
    along = 0.0
    for d in range(len(x)):
        along += (x[d] - begin[d]) * step[d]
    t = min(max(along / size, 0.0), 1.0) if size > 0 else 0.0
    away = 0.0
    for d in range(len(x)):
        away += (x[d] - begin[d] - t * step[d]) ** 2
    return t, away


@compiled
def sweep(
    X: FloatArray, begin: FloatArray, step: FloatArray, segment: IntArray, share: FloatArray, squared: FloatArray
) -> None:
    """Fill in the feet of rows on segments; as the twin beside it.

    Most segments are passed over: the feet on one are no nearer than its middle, less half its length.
    """
    n_segments, D = begin.shape
    size, reach, middle = np.empty(n_segments), np.empty(n_segments), np.empty((n_segments, D))
    for j in range(n_segments):
        size[j] = 0.0
        for d in range(D):
            size[j] += step[j, d] * step[j, d]
            middle[j, d] = begin[j, d] + 0.5 * step[j, d]
        reach[j] = 0.5 * np.sqrt(size[j]) * (1.0 + 1e-9)
    guess = 0
    for i in range(len(X)):
        share[i], squared[i] = _foot(X[i], begin[guess], step[guess], size[guess])
        segment[i] = guess
        root = np.sqrt(squared[i])
        for j in range(n_segments):
            limit, away = root + reach[j], 0.0
            for d in range(D):
                away += (X[i, d] - middle[j, d]) ** 2
            if away > limit * limit * (1.0 + 1e-9):
                continue
            t, near = _foot(X[i], begin[j], step[j], size[j])
            if near < squared[i] or (near == squared[i] and j < segment[i]):
                segment[i], share[i], squared[i] = j, t, near
                root = np.sqrt(near)
        guess = segment[i]  # a neighbour in the table may be one on the curve
