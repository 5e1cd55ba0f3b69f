"""Nearest points on a polyline, compiled. This module imports numba: import it only where there is much to do."""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from prinfold._typing import FloatArray, IntArray
from prinfold.numerics._compiled import compiled


@register_jitable
def _foot(x: FloatArray, begin: FloatArray, step: FloatArray, size: float) -> tuple[float, float]:
    """Share of one segment at which its nearest point lies, and the squared distance."""
    along = 0.0
    for d in range(len(x)):
        along += (x[d] - begin[d]) * step[d]
    t = min(max(along / size, 0.0), 1.0) if size > 0 else 0.0
    away = 0.0
    for d in range(len(x)):
        away += (x[d] - begin[d] - t * step[d]) ** 2
    return t, away


_GROUP_ROWS = 16
"""Rows that are looked at together: those that follow each other in a table may be neighbours."""


@register_jitable
def _candidates(
    X: FloatArray,
    begin: FloatArray,
    step: FloatArray,
    size: FloatArray,
    center: FloatArray,
    away: FloatArray,
    near: IntArray,
) -> int:
    """Number of segments that may be nearest to a group of rows; their indices come first in ``near``, in order."""
    n, D = X.shape
    for d in range(D):
        center[d] = 0.0
        for i in range(n):
            center[d] += X[i, d] / n
    widest, least = 0.0, np.inf
    for i in range(n):
        apart = 0.0
        for d in range(D):
            apart += (X[i, d] - center[d]) ** 2
        widest = max(widest, apart)
    for j in range(len(begin)):
        away[j] = _foot(center, begin[j], step[j], size[j])[1]
        least = min(least, away[j])
    limit = (np.sqrt(least) + 2.0 * np.sqrt(widest)) ** 2 * (1.0 + 1e-9)
    count = 0
    for j in range(len(begin)):
        if away[j] <= limit:
            near[count] = j
            count += 1
    return count


@compiled
def sweep(
    X: FloatArray, begin: FloatArray, step: FloatArray, segment: IntArray, share: FloatArray, squared: FloatArray
) -> None:
    """Fill in the feet of rows on segments; as the twin beside it.

    Most segments are passed over. Let a group of rows be no farther than ρ from their middle, and d the distance of
    the middle to the nearest segment: then no row is farther than d + ρ from that, and none is nearer to a segment at
    a distance d' of the middle than d' − ρ, so that those with d' > d + 2ρ do not count. Of the others, the feet on one
    are no nearer than its middle, less half its length.
    """
    n_segments, D = begin.shape
    size, reach, middle = np.empty(n_segments), np.empty(n_segments), np.empty((n_segments, D))
    for j in range(n_segments):
        size[j] = 0.0
        for d in range(D):
            size[j] += step[j, d] * step[j, d]
            middle[j, d] = begin[j, d] + 0.5 * step[j, d]
        reach[j] = 0.5 * np.sqrt(size[j]) * (1.0 + 1e-9)
    # 0 before anything is found: whatever the numbers are, each index is that of a segment.
    near, away, center = np.zeros(n_segments, dtype=np.int64), np.empty(n_segments), np.empty(D)
    for low in range(0, len(X), _GROUP_ROWS):
        high = min(low + _GROUP_ROWS, len(X))
        count = _candidates(X[low:high], begin, step, size, center, away, near)
        guess = near[0]
        for i in range(low, high):
            share[i], squared[i] = _foot(X[i], begin[guess], step[guess], size[guess])
            segment[i] = guess
            root = np.sqrt(squared[i])
            for c in range(count):
                j = near[c]
                limit, apart = root + reach[j], 0.0
                for d in range(D):
                    apart += (X[i, d] - middle[j, d]) ** 2
                if apart > limit * limit * (1.0 + 1e-9):
                    continue
                t, found = _foot(X[i], begin[j], step[j], size[j])
                if found < squared[i] or (found == squared[i] and j < segment[i]):
                    segment[i], share[i], squared[i] = j, t, found
                    root = np.sqrt(found)
            guess = segment[i]
