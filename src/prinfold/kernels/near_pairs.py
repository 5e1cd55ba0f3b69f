"""Sums over the pairs of latent points within reach of each other, compiled.

Pairs are listed row by row: ``near[cuts[i]:cuts[i + 1]]`` are the neighbours of the i-th row of a part. What is done to
each pair is little, so that calls and temporaries would outweigh it. This module imports numba: import it only where
there is much to do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload

from prinfold._typing import FloatArray, IntArray
from prinfold.kernels.sweeps import compiled


@compiled
def find_near(
    points: FloatArray,
    order: IntArray,
    first: int,
    cell: IntArray,
    starts: IntArray,
    stops: IntArray,
    reach: float,
    cuts: IntArray,
    near: IntArray,
    s: FloatArray,
) -> None:
    """List the neighbours of points from ``first`` on, each in the runs of points that its ``cell`` has about it.

    ``points`` (Q, n) are sorted by cell, and ``order`` tells their names. Fills ``cuts``, and as much of ``near`` and
    of the squared distances ``s`` as there are pairs. A point is no neighbour of itself, but of others at its place.
    """
    longest = 0
    for i in range(len(cell)):
        for r in range(starts.shape[1]):
            longest = max(longest, stops[cell[i], r] - starts[cell[i], r])
    apart, square, at = np.empty(longest), reach * reach, 0
    cuts[0] = 0
    for i in range(len(cell)):
        p = first + i
        for r in range(starts.shape[1]):
            start, stop = starts[cell[i], r], stops[cell[i], r]
            for j in range(stop - start):
                apart[j] = (points[0, p] - points[0, start + j]) ** 2
            for q in range(1, points.shape[0]):
                for j in range(stop - start):
                    apart[j] += (points[q, p] - points[q, start + j]) ** 2
            for j in range(stop - start):
                # Written in any case, and kept by moving on: the branch would be as good as random.
                near[at], s[at] = order[start + j], apart[j]
                at += int(apart[j] < square) & int(start + j != p)
        cuts[i + 1] = at


@compiled
def near_products(k: FloatArray, cuts: IntArray, near: IntArray, table: FloatArray, out: FloatArray) -> None:
    """(b, C) Σ_j k_ij table_j over the neighbours of each row."""
    C = table.shape[1]
    for i in range(len(cuts) - 1):
        for c in range(C):
            out[i, c] = 0.0
        p, last = cuts[i], cuts[i + 1]
        while p + 4 <= last:  # four at a time: sums are read and written as often as one of these
            a, b, d, e = near[p], near[p + 1], near[p + 2], near[p + 3]
            ka, kb, kd, ke = k[p], k[p + 1], k[p + 2], k[p + 3]
            for c in range(C):
                out[i, c] += (ka * table[a, c] + kb * table[b, c]) + (kd * table[d, c] + ke * table[e, c])
            p += 4
        while p < last:
            for c in range(C):
                out[i, c] += k[p] * table[near[p], c]
            p += 1


def _dot(A: FloatArray, i: int, B: FloatArray, j: int) -> float:
    """Σ_c A_ic B_jc."""
    raise NotImplementedError


# Sums in any order and fused products; nothing that would assume away rounding, infinities or what is no number.
@overload(_dot, jit_options={"fastmath": {"reassoc", "contract"}})
def _dot_in_any_order(A: Any, i: Any, B: Any, j: Any) -> Any:
    def dot(A: Any, i: Any, B: Any, j: Any) -> Any:
        total = 0.0
        for c in range(A.shape[1]):
            total += A[i, c] * B[j, c]
        return total

    return dot


@compiled
def near_dots(A: FloatArray, cuts: IntArray, near: IntArray, table: FloatArray, out: FloatArray) -> None:
    """(P,) A_i·table_j of each pair."""
    for i in range(len(cuts) - 1):
        for p in range(cuts[i], cuts[i + 1]):
            out[p] = _dot(A, i, table, near[p])


@compiled
def near_gram(
    k: FloatArray, rows: IntArray, cuts: IntArray, near: IntArray, G: FloatArray, out: FloatArray, own: FloatArray
) -> None:
    """(P,) Σ_l k_il G_lj over the neighbours l of each pair's row i, and (b,) the same with the row itself as j."""
    for i in range(len(cuts) - 1):
        first, last = cuts[i], cuts[i + 1]
        own[i] = 0.0
        for p in range(first, last):
            own[i] += k[p] * G[near[p], rows[i]]
            out[p] = k[p] * G[near[p], near[p]]
        # Each entry of the symmetric matrix is far away in memory: fetched once, used twice.
        for l in range(first, last):
            weight, row, total = k[l], near[l], 0.0
            for p in range(l + 1, last):
                out[p] += weight * G[row, near[p]]
                total += k[p] * G[row, near[p]]
            out[l] += total


@compiled
def near_totals(values: FloatArray, cuts: IntArray, out: FloatArray) -> None:
    """(b,) the sum of each row's pairs."""
    for i in range(len(cuts) - 1):
        out[i] = 0.0
        for p in range(cuts[i], cuts[i + 1]):
            out[i] += values[p]


@compiled
def near_drift(
    V: FloatArray, rows: IntArray, cuts: IntArray, near: IntArray, X: FloatArray, gradient: FloatArray
) -> None:
    """Add 2 V_ij (x_i − x_j) to each pair's i, and take it from its j."""
    for i in range(len(cuts) - 1):
        for q in range(X.shape[1]):
            here, total = X[rows[i], q], 0.0
            for p in range(cuts[i], cuts[i + 1]):
                push = 2.0 * V[p] * (here - X[near[p], q])
                total += push
                gradient[near[p], q] -= push
            gradient[rows[i], q] += total
