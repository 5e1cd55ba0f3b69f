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


# Sums in any order and fused products; nothing that would assume away rounding, infinities or what is no number.
_LOOSELY: Any = {"fastmath": {"reassoc", "contract"}}


def _add_eight(out: FloatArray, k: FloatArray, near: IntArray, p: int, table: FloatArray) -> None:
    """Add the eight rows of a table that the pairs from p on name, times their k."""
    raise NotImplementedError


@overload(_add_eight, jit_options=_LOOSELY)
def _eight_at_once(out: Any, k: Any, near: Any, p: Any, table: Any) -> Any:
    def add(out: Any, k: Any, near: Any, p: Any, table: Any) -> Any:
        # So many at a time that sums are read and written far less often than these.
        a, b, c, d = table[near[p]], table[near[p + 1]], table[near[p + 2]], table[near[p + 3]]
        e, f, g, h = table[near[p + 4]], table[near[p + 5]], table[near[p + 6]], table[near[p + 7]]
        ka, kb, kc, kd, ke, kf, kg, kh = k[p], k[p + 1], k[p + 2], k[p + 3], k[p + 4], k[p + 5], k[p + 6], k[p + 7]
        for i in range(len(out)):
            first = (ka * a[i] + kb * b[i]) + (kc * c[i] + kd * d[i])
            out[i] += first + ((ke * e[i] + kf * f[i]) + (kg * g[i] + kh * h[i]))

    return add


def _add_two(out: FloatArray, k: FloatArray, near: IntArray, p: int, table: FloatArray) -> None:
    """The same for two pairs."""
    raise NotImplementedError


@overload(_add_two, jit_options=_LOOSELY)
def _two_at_once(out: Any, k: Any, near: Any, p: Any, table: Any) -> Any:
    def add(out: Any, k: Any, near: Any, p: Any, table: Any) -> Any:
        a, b, ka, kb = table[near[p]], table[near[p + 1]], k[p], k[p + 1]
        for i in range(len(out)):
            out[i] += ka * a[i] + kb * b[i]

    return add


def _add_all(out: FloatArray, k: FloatArray, near: IntArray, p: int, last: int, table: FloatArray) -> None:
    """Write the sum of the rows of a table that pairs name, times their k."""
    raise NotImplementedError


@overload(_add_all, jit_options=_LOOSELY)
def _all_of_a_row(out: Any, k: Any, near: Any, p: Any, last: Any, table: Any) -> Any:
    def add(out: Any, k: Any, near: Any, p: Any, last: Any, table: Any) -> Any:
        out[:] = 0.0
        while p + 8 <= last:
            _add_eight(out, k, near, p, table)
            p += 8
        while p + 2 <= last:
            _add_two(out, k, near, p, table)
            p += 2
        if p < last:
            for i in range(len(out)):
                out[i] += k[p] * table[near[p], i]

    return add


def _dot(a: FloatArray, b: FloatArray) -> float:
    """a·b."""
    raise NotImplementedError


@overload(_dot, jit_options=_LOOSELY)
def _dot_in_any_order(a: Any, b: Any) -> Any:
    def dot(a: Any, b: Any) -> Any:
        total = 0.0
        for c in range(len(a)):
            total += a[c] * b[c]
        return total

    return dot


def _dots(a: FloatArray, near: IntArray, p: int, last: int, table: FloatArray, out: FloatArray) -> None:
    """Write a·table_j of the pairs of one row."""
    raise NotImplementedError


@overload(_dots, jit_options=_LOOSELY)
def _dots_of_a_row(a: Any, near: Any, p: Any, last: Any, table: Any, out: Any) -> Any:
    def dots(a: Any, near: Any, p: Any, last: Any, table: Any, out: Any) -> Any:
        while p + 4 <= last:  # what is on the left is read once for four
            b, c, d, e = table[near[p]], table[near[p + 1]], table[near[p + 2]], table[near[p + 3]]
            tb, tc, td, te = 0.0, 0.0, 0.0, 0.0
            for i in range(len(a)):
                tb += a[i] * b[i]
                tc += a[i] * c[i]
                td += a[i] * d[i]
                te += a[i] * e[i]
            out[p], out[p + 1], out[p + 2], out[p + 3] = tb, tc, td, te
            p += 4
        while p < last:
            out[p] = _dot(a, table[near[p]])
            p += 1

    return dots


@compiled
def near_products(k: FloatArray, cuts: IntArray, near: IntArray, table: FloatArray, out: FloatArray) -> None:
    """(b, C) Σ_j k_ij table_j over the neighbours of each row."""
    for i in range(len(cuts) - 1):
        _add_all(out[i], k, near, cuts[i], cuts[i + 1], table)


@compiled
def near_dots(A: FloatArray, cuts: IntArray, near: IntArray, table: FloatArray, out: FloatArray) -> None:
    """(P,) A_i·table_j of each pair."""
    for i in range(len(cuts) - 1):
        _dots(A[i], near, cuts[i], cuts[i + 1], table, out)


def _residual(row: FloatArray, share: float, y: FloatArray) -> tuple[float, float]:
    """Turn sums into r = share · sums − y, and return ‖r‖² and r·(r + y)."""
    raise NotImplementedError


@overload(_residual, jit_options=_LOOSELY)
def _residual_of_a_row(row: Any, share: Any, y: Any) -> Any:
    def residual(row: Any, share: Any, y: Any) -> Any:
        error, along = 0.0, 0.0
        for c in range(len(row)):
            predicted = share * row[c]
            r = predicted - y[c]
            error += r * r
            along += r * predicted
            row[c] = r
        return error, along

    return residual


@compiled
def near_fits(
    k: FloatArray,
    rows: IntArray,
    cuts: IntArray,
    near: IntArray,
    table: FloatArray,
    Y: FloatArray,
    weight: FloatArray,
    alone: bool,
    residual: FloatArray,
    numbers: FloatArray,
) -> None:
    """Predict some rows: (b, D) residuals ŷ_i − y_i, and (4, b) mass, sum of weights, ‖r_i‖² and r_i·ŷ_i.

    ``table`` holds w_j y_j. All of a row is done while it is at hand.
    """
    for i in range(len(rows)):
        row, out = rows[i], residual[i]
        _add_all(out, k, near, cuts[i], cuts[i + 1], table)
        mass = 0.0
        for p in range(cuts[i], cuts[i + 1]):
            mass += k[p] * weight[near[p]]
        total = mass
        if not alone:
            total += weight[row]
            for c in range(len(out)):
                out[c] += table[row, c]
        share = 1.0 / total if total > 0 else 0.0
        error, along = _residual(out, share, Y[row])
        numbers[0, i], numbers[1, i], numbers[2, i], numbers[3, i] = mass, total, error, along


@compiled
def near_pulls(
    residual: FloatArray,
    scale: FloatArray,
    shift: FloatArray,
    cuts: IntArray,
    near: IntArray,
    table: FloatArray,
    weight: FloatArray,
    out: FloatArray,
) -> None:
    """(P,) scale_i r_i·table_j + shift_i w_j of each pair."""
    for i in range(len(cuts) - 1):
        _dots(residual[i], near, cuts[i], cuts[i + 1], table, out)
        for p in range(cuts[i], cuts[i + 1]):
            out[p] = scale[i] * out[p] + shift[i] * weight[near[p]]


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
