"""Online steps of a self-organising map, one row after the other, in one compiled call.

Each row x pulls the node c whose codebook vector is nearest and its neighbours towards itself:

    w_k ← w_k + η h(‖p_k − p_c‖² / σ²) (x − w_k)   over the columns that x has.

This is step 3 of section 2.3.1 of the GTM thesis (Kohonen 1995), which by a misprint subtracts w_c in place of w_k.
The codebook is held column by column: distances and steps are then sums over nodes side by side, which become vector
instructions as they are. This module imports numba: import it only where steps are to be made.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numba.extending import register_jitable

from prinfold._typing import FloatArray, IntArray
from prinfold.numerics._compiled import compiled

if TYPE_CHECKING:
    from prinfold.som.neighborhoods import Neighborhood

COMPILED_KINDS = {"gaussian": 0, "bubble": 1, "epanechnikov": 2}
"""Neighbourhoods that are compiled, by name."""

_FARTHEST_SQUARE = 80.0
"""Squared widths from which on a Gaussian, exp(−40), moves nothing by as much as rounding does."""


@register_jitable
def _gaussian(s: FloatArray, rate: float) -> None:
    """Write η exp(−s/2) over s, by the 64th power of a series: vector instructions, unlike ``math.exp``."""
    for k in range(len(s)):
        x = -min(s[k], _FARTHEST_SQUARE) / 128.0
        p = 1.0 + x * (1.0 / 11.0)
        p = 1.0 + x * (1.0 / 10.0) * p
        p = 1.0 + x * (1.0 / 9.0) * p
        p = 1.0 + x * (1.0 / 8.0) * p
        p = 1.0 + x * (1.0 / 7.0) * p
        p = 1.0 + x * (1.0 / 6.0) * p
        p = 1.0 + x * (1.0 / 5.0) * p
        p = 1.0 + x * (1.0 / 4.0) * p
        p = 1.0 + x * (1.0 / 3.0) * p
        p = 1.0 + x * (1.0 / 2.0) * p
        p = 1.0 + x * p
        p = p * p * (p * p)
        p = p * p * (p * p)
        s[k] = rate * (p * p * (p * p))


@register_jitable
def _bubble(s: FloatArray, rate: float) -> None:
    for k in range(len(s)):
        s[k] = rate if s[k] <= 1.0 + 1e-9 else 0.0


@register_jitable
def _epanechnikov(s: FloatArray, rate: float) -> None:
    for k in range(len(s)):
        s[k] = rate * max(1.0 - s[k], 0.0)


@compiled
def sweep(
    X: FloatArray,
    order: IntArray,
    places: FloatArray,
    columns: FloatArray,
    width: FloatArray,
    rate: FloatArray,
    kind: int,
) -> float:
    """Take rows X (n, D) in ``order`` (m,), and move ``columns`` (D, K), in place.

    ``places`` (e, K) are nodes in node spacings, ``width`` and ``rate`` (m,) σ and η of each step. Returns the sum of
    squared distances of the rows from their winners, each before it was learned from.
    """
    (D, K), total = columns.shape, 0.0
    gap, pull = np.empty(K), np.empty(K)
    for step in range(len(order)):
        x = X[order[step]]
        gap[:] = 0.0
        for d in range(D):
            value, column = x[d], columns[d]
            if not math.isnan(value):
                for k in range(K):
                    gap[k] += (value - column[k]) * (value - column[k])
        best = 0
        for k in range(K):
            if gap[k] < gap[best]:
                best = k
        total += gap[best]
        pull[:] = 0.0
        for e in range(len(places)):
            here, place, scale = places[e, best], places[e], 1.0 / (width[step] * width[step])
            for k in range(K):
                pull[k] += (place[k] - here) * (place[k] - here) * scale
        if kind == 0:
            _gaussian(pull, rate[step])
        elif kind == 1:
            _bubble(pull, rate[step])
        else:
            _epanechnikov(pull, rate[step])
        for d in range(D):
            value, column = x[d], columns[d]
            if not math.isnan(value):
                for k in range(K):
                    column[k] += pull[k] * (value - column[k])
    return total


def sweep_reference(
    X: FloatArray,
    order: IntArray,
    places: FloatArray,
    columns: FloatArray,
    width: FloatArray,
    rate: FloatArray,
    neighborhood: Neighborhood,
) -> float:
    """The same, node by node as the formula has it, for any neighbourhood."""
    total = 0.0
    for step, row in enumerate(order):
        seen = ~np.isnan(X[row])
        gap = X[row][seen, None] - columns[seen]
        apart = np.square(gap).sum(axis=0)
        best = int(np.argmin(apart))
        total += float(apart[best])
        s = np.square(places - places[:, [best]]).sum(axis=0) / width[step] ** 2
        columns[seen] += rate[step] * neighborhood.value(s) * gap
    return total
