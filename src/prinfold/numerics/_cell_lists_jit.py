"""Sums over the pairs of latent points within reach of each other, compiled.

Pairs are listed row by row: ``near[cuts[i]:cuts[i + 1]]`` are the neighbours of the i-th row of a part. The
work for each pair is so little that function calls, temporaries and checks for negative indices would outweigh it:
indices of neighbours are unsigned, and loops run over slices from 0. Predictions are those of UKR (2) and (10), and
``near_drift`` is their gradient, UKR (29) and (30), with weights of the rows. This module imports numba:
import it only where there is much to do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload

from prinfold._typing import FloatArray, IntArray
from prinfold.numerics._compiled import compiled


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

    ``points`` (Q, n) are sorted by cell, and ``order`` holds their original indices. Fills ``cuts``, and as much of
    ``near`` and of the squared distances ``s`` as there are pairs. A point is no neighbour of itself, but of others at
    its place.
    """
    longest = 0
    for i in range(len(cell)):
        for r in range(starts.shape[1]):
            longest = max(longest, stops[cell[i], r] - starts[cell[i], r])
    room, square, at = np.empty(longest), reach * reach, np.uint64(0)
    cuts[0] = 0
    for i in range(len(cell)):
        p = first + i
        for r in range(starts.shape[1]):
            start, stop = starts[cell[i], r], stops[cell[i], r]
            apart, names, itself = room[: stop - start], order[start:stop], p - start
            for q in range(points.shape[0]):
                here, there = points[q, p], points[q][start:stop]
                for j in range(len(apart)):
                    apart[j] = (here - there[j]) ** 2 + (apart[j] if q > 0 else 0.0)
            for j in range(len(apart)):
                # Written in any case, and kept by advancing the index: a branch could not be predicted.
                near[at], s[at] = names[j], apart[j]
                at += np.uint64((apart[j] < square) & (j != itself))
        cuts[i + 1] = at


@compiled
def count_near(points: FloatArray, every: int, cell: IntArray, starts: IntArray, stops: IntArray, reach: float) -> int:
    """Total number of neighbours of every ``every``-th point, itself counted."""
    square, found = reach * reach, 0
    for p in range(0, len(cell), every):
        for r in range(starts.shape[1]):
            for j in range(starts[cell[p], r], stops[cell[p], r]):
                apart = 0.0
                for q in range(points.shape[0]):
                    apart += (points[q, p] - points[q, j]) ** 2
                found += int(apart < square)
    return found


@compiled
def list_runs(key: IntArray, steps: IntArray, cell: IntArray, starts: IntArray, stops: IntArray) -> int:
    """Number the cells of sorted keys (n,), list the runs (cells, steps) about each, and return how many there are.

    Each of ``steps`` leads to the middle one of three cells that follow each other. Runs of one step begin and end the
    later, the later the cell, so that no search is needed: ``searchsorted`` takes two to ten times as long.
    """
    n = 0
    for i in range(len(key)):
        n += int(i == 0 or key[i] != key[i - 1])
        cell[i] = n - 1
    for r in range(len(steps)):
        start, stop = 0, 0
        for i in range(len(key)):
            if i == 0 or key[i] != key[i - 1]:
                while start < len(key) and key[start] < key[i] + steps[r] - 1:
                    start += 1
                while stop < len(key) and key[stop] <= key[i] + steps[r] + 1:
                    stop += 1
                starts[cell[i], r], stops[cell[i], r] = start, stop
    return n


# Sums in any order and fused products; nothing that would assume away rounding, infinities or what is no number.
_REASSOCIATE: Any = {"fastmath": {"reassoc", "contract"}}


def _add_eight(out: FloatArray, k: FloatArray, near: IntArray, p: int, table: FloatArray) -> None:
    """Add the eight rows of a table that the pairs from p on name, times their k."""
    raise NotImplementedError


@overload(_add_eight, jit_options=_REASSOCIATE)
def _add_eight_jit(out: Any, k: Any, near: Any, p: Any, table: Any) -> Any:
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
    """Add two rows of a table that the pairs from p on name, times their k."""
    raise NotImplementedError


@overload(_add_two, jit_options=_REASSOCIATE)
def _add_two_jit(out: Any, k: Any, near: Any, p: Any, table: Any) -> Any:
    def add(out: Any, k: Any, near: Any, p: Any, table: Any) -> Any:
        a, b, ka, kb = table[near[p]], table[near[p + 1]], k[p], k[p + 1]
        for i in range(len(out)):
            out[i] += ka * a[i] + kb * b[i]

    return add


def _add_all(out: FloatArray, k: FloatArray, near: IntArray, p: int, last: int, table: FloatArray) -> None:
    """Write the sum of the rows of a table that pairs name, times their k."""
    raise NotImplementedError


@overload(_add_all, jit_options=_REASSOCIATE)
def _add_all_jit(out: Any, k: Any, near: Any, p: Any, last: Any, table: Any) -> Any:
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


@overload(_dot, jit_options=_REASSOCIATE)
def _dot_jit(a: Any, b: Any) -> Any:
    def dot(a: Any, b: Any) -> Any:
        total = 0.0
        for c in range(len(a)):
            total += a[c] * b[c]
        return total

    return dot


def _dots(a: FloatArray, near: IntArray, p: int, last: int, table: FloatArray, out: FloatArray) -> None:
    """Write a·table_j of the pairs of one row."""
    raise NotImplementedError


@overload(_dots, jit_options=_REASSOCIATE)
def _dots_jit(a: Any, near: Any, p: Any, last: Any, table: Any, out: Any) -> Any:
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


@overload(_residual, jit_options=_REASSOCIATE)
def _residual_jit(row: Any, share: Any, y: Any) -> Any:
    def residual(row: Any, share: Any, y: Any) -> Any:
        error, along = 0.0, 0.0
        for c in range(len(row)):  # by itself, as in _compiled.centered
            predicted = share * row[c]
            r = predicted - y[c]
            error += r * r
            along += r * predicted
        for c in range(len(row)):
            row[c] = share * row[c] - y[c]
        return error, along

    return residual


@compiled
def near_fits(
    v: FloatArray,
    rows: IntArray,
    cuts: IntArray,
    near: IntArray,
    Y: FloatArray,
    own: FloatArray,
    wanted: bool,
    numbers: FloatArray,
    products: FloatArray,
) -> None:
    """Predict some rows: (4, b) mass, sum of weights, ‖r_i‖² and r_i·ŷ_i, and (P,) r_i·y_j of each pair if wanted.

    ``v`` are kernel values times weights, and ``own`` (b,) the weight of the row itself. All of a row is done while it
    and its neighbours are at hand.
    """
    r = np.empty(Y.shape[1])
    for i in range(len(rows)):
        row, first, last = rows[i], cuts[i], cuts[i + 1]
        _add_all(r, v, near, first, last, Y)
        mass = 0.0
        for p in range(first, last):
            mass += v[p]
        total = mass + own[i]
        if own[i] > 0:
            for c in range(len(r)):
                r[c] += own[i] * Y[row, c]
        share = 1.0 / total if total > 0 else 0.0
        error, along = _residual(r, share, Y[row])
        numbers[0, i], numbers[1, i], numbers[2, i], numbers[3, i] = mass, total, error, along
        if wanted:
            _dots(r, near, first, last, Y, products)


@compiled
def near_gram_fits(
    v: FloatArray,
    rows: IntArray,
    cuts: IntArray,
    near: IntArray,
    G: FloatArray,
    own: FloatArray,
    numbers: FloatArray,
    products: FloatArray,
) -> None:
    """Predict some rows as :func:`near_fits` does, from the inner products G of rows; all products are written."""
    for i in range(len(rows)):
        row, part = rows[i], slice(cuts[i], cuts[i + 1])
        w, name, out, mine = v[part], near[part], products[part], G[rows[i]]
        mass, itself = 0.0, own[i] * mine[row]
        for p in range(len(w)):
            mass += w[p]
            itself += w[p] * mine[name[p]]
            out[p] = w[p] * G[name[p], name[p]] + own[i] * mine[name[p]]
        # Each entry of the symmetric matrix is far away in memory: fetched once, used twice.
        for l in range(len(w)):
            theirs, weight, total = G[name[l]], w[l], 0.0
            for p in range(l + 1, len(w)):
                product = theirs[name[p]]
                out[p] += weight * product
                total += w[p] * product
            out[l] += total
        total = mass + own[i]
        share = 1.0 / total if total > 0 else 0.0
        itself = share * itself - mine[row]
        along = own[i] * itself
        for p in range(len(w)):
            out[p] = share * out[p] - mine[name[p]]
            along += w[p] * out[p]
        along *= share
        numbers[0, i], numbers[1, i], numbers[2, i], numbers[3, i] = mass, total, max(along - itself, 0.0), along


@compiled
def near_drift(
    g: FloatArray,
    products: FloatArray,
    scale: FloatArray,
    shift: FloatArray,
    rows: IntArray,
    cuts: IntArray,
    near: IntArray,
    weight: FloatArray,
    X: FloatArray,
    gradient: FloatArray,
) -> None:
    """Add 2 V_ij (x_i − x_j) to each pair's i, and take it from its j; V_ij = g_ij w_j (scale_i r_i·y_j + shift_i)."""
    for i in range(len(rows)):
        part = slice(cuts[i], cuts[i + 1])
        V, name, product = g[part], near[part], products[part]
        for p in range(len(V)):
            V[p] *= 2.0 * weight[name[p]] * (scale[i] * product[p] + shift[i])
        for q in range(X.shape[1]):
            here, total = X[rows[i], q], 0.0
            for p in range(len(V)):
                push = V[p] * (here - X[name[p], q])
                total += push
                gradient[name[p], q] -= push
            gradient[rows[i], q] += total
