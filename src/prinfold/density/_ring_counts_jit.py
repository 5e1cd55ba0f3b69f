"""Weights of rows in rings of distance about sampled rows, compiled; the method is that of ``density.ring_counts``.

This module imports numba: import it only where there is much to do.
"""

from __future__ import annotations

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.numerics._compiled import compiled


@compiled
def count_rings(
    columns: FloatArray, weight: FloatArray, sampled: IntArray, first: int, mass: FloatArray, squares: FloatArray
) -> None:
    """Add to ``mass`` and ``squares`` (m, B) the Σ w and Σ w s of every ring; ``columns`` (D, n) are the rows.

    As the twin beside it: the exponent and the first four bits of the mantissa of s number the rings.
    """
    n, last = columns.shape[1], mass.shape[1] - 1
    size = min(n, 4096)
    s = np.empty(size)
    bits = s.view(np.int64)
    for start in range(0, n, size):
        stop = min(start + size, n)
        for i in range(len(sampled)):
            here = sampled[i]
            for j in range(stop - start):
                s[j] = (columns[0, here] - columns[0, start + j]) ** 2
            for q in range(1, len(columns)):
                for j in range(stop - start):
                    s[j] += (columns[q, here] - columns[q, start + j]) ** 2
            for j in range(stop - start):
                if start + j == here:
                    continue
                ring = min(max((bits[j] >> 48) - first, 0), last)
                mass[i, ring] += weight[start + j]
                squares[i, ring] += weight[start + j] * s[j]
