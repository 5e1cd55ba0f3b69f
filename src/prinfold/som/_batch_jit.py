"""Winners of many rows and their sums, in one compiled call: threads need not wait for the interpreter meanwhile.

This module imports numba: import it only where there is much to do. ``som.model`` does the same in NumPy.
"""

from __future__ import annotations

import numpy as np

from prinfold._typing import FloatArray
from prinfold.numerics._compiled import centered, compiled, heaviest

_AT_ONCE = 64
"""Rows whose scores are held at a time, in a core's cache."""


@compiled
def add_rows_won(
    table: FloatArray,
    offset: FloatArray,
    weight: FloatArray,
    loading: FloatArray,
    mass: FloatArray,
    sums: FloatArray,
) -> float:
    """Add rows of a table, less its offset, to the ``mass`` (K, 1) and ``sums`` (K, D) of the node that wins each.

    Scores are products with ``loading`` (K, D + 1), the last column of which is added. ``weight`` may be empty, for
    rows that all count once. Returned is the sum of squared distances from winners.
    """
    D, error = table.shape[1], 0.0
    rows, squares = np.ones((_AT_ONCE, D + 1), table.dtype), np.empty(_AT_ONCE)
    scores = np.empty((_AT_ONCE, len(loading)), table.dtype)
    for begin in range(0, len(table), _AT_ONCE):
        n = min(_AT_ONCE, len(table) - begin)
        for i in range(n):
            squares[i] = centered(table[begin + i], offset, rows[i, :D])
        np.dot(rows[:n], loading.T, scores[:n])
        for i in range(n):
            k, w = heaviest(scores[i]), weight[begin + i] if len(weight) else 1.0
            for c in range(D):
                sums[k, c] += w * rows[i, c]
            mass[k, 0] += w
            error += w * max(squares[i] - 2.0 * np.float64(scores[i, k]), 0.0)
    return error
