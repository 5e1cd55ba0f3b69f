"""Sums of Gaussian kernels over the points within reach of groups of query points, compiled; the formulas are ours.

Query points come in groups that lie close together, each about an origin o. With y = x − o, e = c − o of a centre
and h = log w − ‖e‖²/2, the kernel is

    w exp(−‖c − x‖²/2) = exp(−‖y‖²/2) a,    a = exp(h + y·e),

and what is added up is Σ a, Σ a e and Σ a e eᵀ. Merged points with second moment S about their mean count by Taylor's
expansion to second order about it: with u = y − e, v = S u and f = (u·v − tr S)/2,

    a → a (1 + f),    a e → a ((1 + f) e + v),    a e eᵀ → a ((1 + f) e eᵀ + v eᵀ + e vᵀ + S).

Points whose kernels are narrower than one bandwidth, exp(−τ ‖c − x‖²/2) with τ ≥ 1, are points with one coordinate
more: with Y = (y, −‖y‖²/2), E = (τ e, τ) and h = log w − τ ‖e‖²/2, their kernel is exp(h + Y·E), and Σ a E and
Σ a E Eᵀ hold all that derivatives need.

The points of a group's ball are copied side by side first: short runs would leave vector instructions nothing to do,
and all places of the group use the copy. This module imports numba: import it only where there is much to do.
"""

from __future__ import annotations

from math import inf, log, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit
from numba.extending import register_jitable

from prinfold._typing import FloatArray, IntArray
from prinfold.numerics._compiled import compiled, exp64

if TYPE_CHECKING:
    from prinfold.density.strips import QueryCells, Strips

_CHUNK = 1024
"""Points copied at once: with three columns they fit into a core's nearest cache."""

_LANES = 32
"""Chunks are filled up to a multiple of this by points of no weight: what is left over of one would be done singly."""

_LEAST_EXPONENT = -700.0
"""Exponent of points of no weight; smaller ones would not be numbers of full precision."""

# Sums in any order and fused products; nothing that would assume away rounding, infinities or what is no number.
_any_order = njit(nogil=True, fastmath={"reassoc", "contract"})


# ------------------------------------------------------------------------------------------ points in a ball


def _first_from(sorted_: FloatArray, low: int, high: int, value: float) -> int:
    """The first index from ``low`` on at which the sorted numbers reach ``value``; ``high`` if none does."""
    while low < high:
        middle = (low + high) // 2
        if sorted_[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


first_from = register_jitable(_first_from)


def _list_runs(
    strips: Strips, center: FloatArray, half: float, square: float, starts: IntArray, stops: IntArray
) -> int:
    """List runs of points that hold all within √``square`` of a box about ``center``; returns how many."""
    D, side = len(center), strips.side
    last = min(D, 3) - 1
    along = strips.columns[1 + last]
    here = strips.corner[0] if last == 1 else center[0]
    reach, found = sqrt(square) + half, 0
    s = first_from(strips.slab_at, 0, len(strips.slab_at), np.floor((here - reach - strips.corner[0]) / side))
    while s < len(strips.slab_at):
        edge = strips.corner[0] + strips.slab_at[s] * side - here
        left = square - max(edge - half, -half - edge - side, 0.0) ** 2
        if edge > reach:
            break
        if left >= 0.0:
            begin, end, across = strips.slab_first[s], strips.slab_first[s + 1], sqrt(left) + half
            low = np.floor((center[last - 1] - across - strips.corner[1]) / side)
            for t in range(first_from(strips.strip_at, begin, end, low), end):
                edge = strips.corner[1] + strips.strip_at[t] * side - center[last - 1]
                if edge > across:
                    break
                rest = left - max(edge - half, -half - edge - side, 0.0) ** 2
                if rest >= 0.0:
                    first, stop, far = strips.strip_first[t], strips.strip_first[t + 1], sqrt(rest) + half
                    first = first_from(along, first, stop, center[last] - far)
                    stop = first_from(along, first, stop, center[last] + far)
                    if first < stop:
                        starts[found], stops[found] = first, stop
                        found += 1
        s += 1
    return found


def _copy_points(columns: FloatArray, at: int, n: int, origin: FloatArray, chunk: FloatArray, held: int) -> None:
    """Copy points ``at`` and following, with two or three coordinates, to a chunk: h, e and further columns."""
    D = len(origin)
    if D == 2:
        for j in range(n):
            e0, e1 = columns[1, at + j] - origin[0], columns[2, at + j] - origin[1]
            chunk[0, held + j] = columns[0, at + j] - 0.5 * (e0 * e0 + e1 * e1)
            chunk[1, held + j], chunk[2, held + j] = e0, e1
    else:
        for j in range(n):
            e0, e1, e2 = columns[1, at + j] - origin[0], columns[2, at + j] - origin[1], columns[3, at + j] - origin[2]
            chunk[0, held + j] = columns[0, at + j] - 0.5 * (e0 * e0 + e1 * e1 + e2 * e2)
            chunk[1, held + j], chunk[2, held + j], chunk[3, held + j] = e0, e1, e2
    for c in range(1 + D, columns.shape[0]):
        for j in range(n):
            chunk[c, held + j] = columns[c, at + j]


def _select_points(
    columns: FloatArray,
    at: int,
    n: int,
    center: FloatArray,
    half: float,
    square: float,
    apart: FloatArray,
    kept: IntArray,
) -> int:
    """List in ``kept`` which of n points, ``at`` and following, are within √``square`` of the box; returns how many.

    With more axes than strips are cut along, most points of a run may be far away.
    """
    n_kept = 0
    for j in range(n):
        apart[j] = 0.0
    for q in range(len(center)):
        for j in range(n):
            apart[j] += max(abs(columns[1 + q, at + j] - center[q]) - half, 0.0) ** 2
    for j in range(n):
        # Written in any case, and kept by moving on: the branch would be as good as random.
        kept[n_kept] = at + j
        n_kept += int(apart[j] <= square)
    return n_kept


def _copy_selected(
    columns: FloatArray, kept: IntArray, n: int, origin: FloatArray, chunk: FloatArray, held: int
) -> None:
    """Copy the first n of the points kept, of any dimension, to a chunk; as E where there is a column of τ."""
    D = len(origin)
    scaled = columns.shape[0] == D + 2
    for k in range(n):
        chunk[0, held + k] = columns[0, kept[k]]
    for q in range(D):
        for k in range(n):
            e = columns[1 + q, kept[k]] - origin[q]
            scale = columns[1 + D, kept[k]] if scaled else 1.0
            chunk[1 + q, held + k] = scale * e
            chunk[0, held + k] -= 0.5 * scale * e * e
    if scaled:
        for k in range(n):
            chunk[1 + D, held + k] = columns[1 + D, kept[k]]


def _pad_chunk(chunk: FloatArray, held: int, n_columns: int) -> int:
    """Append points of no weight up to a multiple of the lanes; returns how many points there are then."""
    whole = (held + _LANES - 1) // _LANES * _LANES
    for j in range(held, whole):
        chunk[0, j] = _LEAST_EXPONENT
        for c in range(1, n_columns):
            chunk[c, j] = 0.0
    return whole


list_runs, pad_chunk = register_jitable(_list_runs), register_jitable(_pad_chunk)
copy_points, select_points, copy_selected = (
    register_jitable(_copy_points),
    register_jitable(_select_points),
    register_jitable(_copy_selected),
)


# ------------------------------------------------------------------------------------- sums over a chunk
#
# Each adds the sums over the first n points of a chunk at places Y (p, D) to ``into`` (p, 1 + D + D (D + 1)/2): Σ a,
# Σ a e and the upper triangle of Σ a e eᵀ. They are written out for two and three axes, because a loop over axes within
# that over points would not become vector instructions; more axes go one after the other over a chunk that stays in the
# nearest cache.


def _add_up(into: FloatArray, sums: tuple[float, ...]) -> None:
    for c in range(len(sums)):
        into[c] += sums[c]


add_up = register_jitable(_add_up)


@_any_order
def _add_total(chunk: FloatArray, n: int, Y: FloatArray, into: FloatArray) -> None:
    """Add Σ a alone, over points with two or three coordinates."""
    for i in range(len(Y)):
        s = 0.0
        if Y.shape[1] == 2:
            y0, y1 = Y[i, 0], Y[i, 1]
            for j in range(n):
                s += exp64(max(chunk[0, j] + y0 * chunk[1, j] + y1 * chunk[2, j], _LEAST_EXPONENT))
        else:
            y0, y1, y2 = Y[i, 0], Y[i, 1], Y[i, 2]
            for j in range(n):
                s += exp64(max(chunk[0, j] + y0 * chunk[1, j] + y1 * chunk[2, j] + y2 * chunk[3, j], _LEAST_EXPONENT))
        into[i, 0] += s


@_any_order
def _add_points_2(chunk: FloatArray, n: int, Y: FloatArray, into: FloatArray) -> None:
    """Add the sums over points with two coordinates."""
    for i in range(len(Y)):
        y0, y1 = Y[i, 0], Y[i, 1]
        s = s0 = s1 = s00 = s01 = s11 = 0.0
        for j in range(n):
            e0, e1 = chunk[1, j], chunk[2, j]
            a = exp64(max(chunk[0, j] + y0 * e0 + y1 * e1, _LEAST_EXPONENT))
            a0, a1 = a * e0, a * e1
            s += a
            s0 += a0
            s1 += a1
            s00 += a0 * e0
            s01 += a0 * e1
            s11 += a1 * e1
        add_up(into[i], (s, s0, s1, s00, s01, s11))


@_any_order
def _add_points_3(chunk: FloatArray, n: int, Y: FloatArray, into: FloatArray) -> None:
    """Add the sums over points with three coordinates."""
    for i in range(len(Y)):
        y0, y1, y2 = Y[i, 0], Y[i, 1], Y[i, 2]
        s = s0 = s1 = s2 = s00 = s01 = s02 = s11 = s12 = s22 = 0.0
        for j in range(n):
            e0, e1, e2 = chunk[1, j], chunk[2, j], chunk[3, j]
            a = exp64(max(chunk[0, j] + y0 * e0 + y1 * e1 + y2 * e2, _LEAST_EXPONENT))
            a0, a1, a2 = a * e0, a * e1, a * e2
            s += a
            s0 += a0
            s1 += a1
            s2 += a2
            s00 += a0 * e0
            s01 += a0 * e1
            s02 += a0 * e2
            s11 += a1 * e1
            s12 += a1 * e2
            s22 += a2 * e2
        add_up(into[i], (s, s0, s1, s2, s00, s01, s02, s11, s12, s22))


@_any_order
def _add_merged_2(chunk: FloatArray, n: int, Y: FloatArray, into: FloatArray) -> None:
    """Add the sums over merged points with two coordinates."""
    for i in range(len(Y)):
        y0, y1 = Y[i, 0], Y[i, 1]
        s = s0 = s1 = s00 = s01 = s11 = 0.0
        for j in range(n):
            e0, e1, S00, S01, S11 = chunk[1, j], chunk[2, j], chunk[3, j], chunk[4, j], chunk[5, j]
            a = exp64(max(chunk[0, j] + y0 * e0 + y1 * e1, _LEAST_EXPONENT))
            u0, u1 = y0 - e0, y1 - e1
            v0, v1 = S00 * u0 + S01 * u1, S01 * u0 + S11 * u1
            b = a + 0.5 * a * (u0 * v0 + u1 * v1 - S00 - S11)
            v0, v1 = a * v0, a * v1
            b0, b1 = b * e0 + v0, b * e1 + v1
            s += b
            s0 += b0
            s1 += b1
            s00 += b0 * e0 + v0 * e0 + a * S00
            s01 += b0 * e1 + v1 * e0 + a * S01
            s11 += b1 * e1 + v1 * e1 + a * S11
        add_up(into[i], (s, s0, s1, s00, s01, s11))


@_any_order
def _add_merged_3(chunk: FloatArray, n: int, Y: FloatArray, into: FloatArray) -> None:
    """Add the sums over merged points with three coordinates."""
    for i in range(len(Y)):
        y0, y1, y2 = Y[i, 0], Y[i, 1], Y[i, 2]
        s = s0 = s1 = s2 = s00 = s01 = s02 = s11 = s12 = s22 = 0.0
        for j in range(n):
            e0, e1, e2, S00, S01 = chunk[1, j], chunk[2, j], chunk[3, j], chunk[4, j], chunk[5, j]
            S02, S11, S12, S22 = chunk[6, j], chunk[7, j], chunk[8, j], chunk[9, j]
            a = exp64(max(chunk[0, j] + y0 * e0 + y1 * e1 + y2 * e2, _LEAST_EXPONENT))
            u0, u1, u2 = y0 - e0, y1 - e1, y2 - e2
            v0 = S00 * u0 + S01 * u1 + S02 * u2
            v1 = S01 * u0 + S11 * u1 + S12 * u2
            v2 = S02 * u0 + S12 * u1 + S22 * u2
            b = a + 0.5 * a * (u0 * v0 + u1 * v1 + u2 * v2 - S00 - S11 - S22)
            v0, v1, v2 = a * v0, a * v1, a * v2
            b0, b1, b2 = b * e0 + v0, b * e1 + v1, b * e2 + v2
            s += b
            s0 += b0
            s1 += b1
            s2 += b2
            s00 += b0 * e0 + v0 * e0 + a * S00
            s01 += b0 * e1 + v1 * e0 + a * S01
            s02 += b0 * e2 + v2 * e0 + a * S02
            s11 += b1 * e1 + v1 * e1 + a * S11
            s12 += b1 * e2 + v2 * e1 + a * S12
            s22 += b2 * e2 + v2 * e2 + a * S22
        add_up(into[i], (s, s0, s1, s2, s00, s01, s02, s11, s12, s22))


@_any_order
def _add_points(chunk: FloatArray, n: int, Y: FloatArray, whole: bool, into: FloatArray, room: FloatArray) -> None:
    """Add the sums over points with any number of coordinates; only Σ a unless the ``whole`` is wanted."""
    D, a, b = Y.shape[1], room[0], room[1]
    for i in range(len(Y)):
        for j in range(n):
            a[j] = chunk[0, j]
        for q in range(D):
            for j in range(n):
                a[j] += Y[i, q] * chunk[1 + q, j]
        total, at = 0.0, 1 + D
        for j in range(n):
            a[j] = exp64(max(a[j], _LEAST_EXPONENT))
            total += a[j]
        into[i, 0] += total
        for q in range(D if whole else 0):
            for j in range(n):
                b[j] = a[j] * chunk[1 + q, j]
            total = 0.0
            for j in range(n):  # by itself, as in _compiled.centered
                total += b[j]
            into[i, 1 + q] += total
            for r in range(q, D):
                total = 0.0
                for j in range(n):
                    total += b[j] * chunk[1 + r, j]
                into[i, at] += total
                at += 1


def _add_chunk(
    chunk: FloatArray, n: int, Y: FloatArray, merged: bool, whole: bool, into: FloatArray, room: FloatArray
) -> None:
    """Add the sums over a chunk; of points, only the first unless the ``whole`` of them is wanted."""
    D = Y.shape[1]
    if D > 3:
        _add_points(chunk, n, Y, whole, into, room)
    elif D == 2 and merged:
        _add_merged_2(chunk, n, Y, into)
    elif merged:
        _add_merged_3(chunk, n, Y, into)
    elif not whole:
        _add_total(chunk, n, Y, into)
    elif D == 2:
        _add_points_2(chunk, n, Y, into)
    else:
        _add_points_3(chunk, n, Y, into)


add_chunk = register_jitable(_add_chunk)


# ------------------------------------------------------------------------------------------------ all groups


class _Workspace(NamedTuple):
    """Memory of one thread: ``starts`` and ``stops`` of runs, a ``chunk``, two ``rows`` of it, indices ``kept``."""

    starts: IntArray
    stops: IntArray
    chunk: FloatArray
    rows: FloatArray
    kept: IntArray


def _add_ball(
    strips: Strips,
    origin: FloatArray,
    center: FloatArray,
    half: float,
    square: float,
    Y: FloatArray,
    merged: bool,
    whole: bool,
    sums: FloatArray,
    room: _Workspace,
) -> int:
    """Add to the ``sums`` of the places of a group what strips have within their reach; returns how many pairs."""
    D, chunk, held, pairs = len(origin), room.chunk, 0, 0
    n_runs = list_runs(strips, center, half, square, room.starts, room.stops)
    for r in range(n_runs):
        at, stop = room.starts[r], room.stops[r]
        while at < stop:
            n = min(stop - at, _CHUNK - held)
            at += n
            if Y.shape[1] > D or D > 3:
                n = select_points(strips.columns, at - n, n, center, half, square, room.rows[0], room.kept)
                copy_selected(strips.columns, room.kept, n, origin, chunk, held)
            else:
                copy_points(strips.columns, at - n, n, origin, chunk, held)
            held += n
            if held == _CHUNK or (held and r == n_runs - 1 and at == stop):
                pairs += held * len(Y)
                held = pad_chunk(chunk, held, strips.columns.shape[0])
                add_chunk(chunk, held, Y, merged, whole, sums, room.rows)
                held = 0
    return pairs


def _write_moments(
    sums: FloatArray,
    y: FloatArray,
    axes: IntArray,
    row: int,
    log_sum: FloatArray,
    shift: FloatArray,
    spread: FloatArray,
) -> None:
    """Write the moments of a place: log Σ w k, Σ w k d / Σ w k, and the covariance of d by the weights w k."""
    D, at, level = len(y), 1 + len(y), 0.0
    total = sums[0] if sums[0] > 0.0 else 1.0
    for q in range(D):
        level -= 0.5 * y[q] * y[q]
    log_sum[row] = level + log(total) if sums[0] > 0.0 else -inf
    if len(shift) == 0:
        return
    for q in range(D):
        sums[1 + q] /= total
        shift[row, axes[q]] = sums[1 + q] - y[q]
    for q in range(D):
        for r in range(q, D):
            value = sums[at] / total - sums[1 + q] * sums[1 + r]
            spread[row, axes[q], axes[r]] = value
            spread[row, axes[r], axes[q]] = value
            at += 1


add_ball, write_moments = register_jitable(_add_ball), register_jitable(_write_moments)


@compiled
def sum_balls(
    Y: FloatArray,
    groups: QueryCells,
    plain: Strips,
    merged: Strips,
    axes: IntArray,
    log_sum: FloatArray,
    shift: FloatArray,
    spread: FloatArray,
) -> int:
    """Write log sums (n,) at places Y (n, D) and, if there is room for them, shifts (n, D) and spreads (n, D, D).

    Column q of the places and points is axis ``axes[q]`` of what is filled. Where nothing is in reach the log sum is
    −inf, and the rest says nothing. Returns how many pairs were looked at.
    """
    D = Y.shape[1]
    n_sums = 1 + D + D * (D + 1) // 2
    n_strips, largest, whole, pairs = max(len(plain.strip_at), len(merged.strip_at)), 0, len(shift) > 0, 0
    for g in range(len(groups.cuts) - 1):
        largest = max(largest, groups.cuts[g + 1] - groups.cuts[g])
    runs = np.empty(n_strips, np.int64), np.empty(n_strips, np.int64)
    room = _Workspace(*runs, np.empty((n_sums, _CHUNK)), np.empty((2, _CHUNK)), np.empty(_CHUNK, np.int64))
    places, sums = np.empty((largest, D)), np.empty((largest, n_sums))
    for g in range(len(groups.cuts) - 1):
        first, n = groups.cuts[g], groups.cuts[g + 1] - groups.cuts[g]
        origin, ball = groups.origin[g], (groups.origin[g], groups.center[g], groups.half[g], groups.square[g])
        for i in range(n):
            for q in range(D):
                places[i, q] = Y[groups.rows[first + i], q] - origin[q]
            for c in range(n_sums):
                sums[i, c] = 0.0
        pairs += add_ball(plain, *ball, places[:n], False, whole, sums[:n], room)
        if len(merged.strip_at):
            pairs += add_ball(merged, *ball, places[:n], True, whole, sums[:n], room)
        for i in range(n):
            write_moments(sums[i], places[i], axes, groups.rows[first + i], log_sum, shift, spread)
    return pairs


def _triangle_index(q: int, r: int, L: int) -> int:
    """Index of Σ a e_q e_r among the sums over points with L coordinates, q ≤ r."""
    return 1 + L + q * L - q * (q - 1) // 2 + r - q


triangle_index = register_jitable(_triangle_index)


def _unscale(sums: FloatArray, y: FloatArray, axes: IntArray, unit: float, out: FloatArray) -> None:
    """Add Σ a, Σ a τ, Σ a τ d and Σ a τ² d dᵀ, row by row, from sums over E; 1 / ``unit`` is what lengths are in."""
    D, L = len(y), len(y) + 1
    total, square = sums[L], sums[triangle_index(D, D, L)]
    out[0] += sums[0]
    out[1] += total * unit * unit
    for q in range(D):
        out[2 + axes[q]] += unit * (sums[1 + q] - y[q] * total)
        for r in range(D):
            value = sums[triangle_index(min(q, r), max(q, r), L)] + square * y[q] * y[r]
            value -= sums[triangle_index(q, D, L)] * y[r] + sums[triangle_index(r, D, L)] * y[q]
            out[2 + D + axes[q] * D + axes[r]] += unit * unit * value


unscale = register_jitable(_unscale)


@compiled
def sum_scaled(Y: FloatArray, groups: QueryCells, strips: Strips, axes: IntArray, unit: float, out: FloatArray) -> None:
    """Add to ``out`` (n, 2 + D + D²) the sums over kernels of many widths at places Y (n, D): see ``_unscale``.

    Points have a last column of τ. Column q of the places and points is axis ``axes[q]`` of what is added to.
    """
    D = Y.shape[1]
    n_sums, largest = 2 + D + (D + 1) * (D + 2) // 2, 0
    for g in range(len(groups.cuts) - 1):
        largest = max(largest, groups.cuts[g + 1] - groups.cuts[g])
    runs = np.empty(len(strips.strip_at), np.int64), np.empty(len(strips.strip_at), np.int64)
    room = _Workspace(*runs, np.empty((n_sums, _CHUNK)), np.empty((2, _CHUNK)), np.empty(_CHUNK, np.int64))
    places, sums = np.empty((largest, D + 1)), np.empty((largest, n_sums))
    for g in range(len(groups.cuts) - 1):
        first, n = groups.cuts[g], groups.cuts[g + 1] - groups.cuts[g]
        origin, ball = groups.origin[g], (groups.origin[g], groups.center[g], groups.half[g], groups.square[g])
        for i in range(n):
            places[i, D] = 0.0
            for q in range(D):
                places[i, q] = Y[groups.rows[first + i], q] - origin[q]
                places[i, D] -= 0.5 * places[i, q] * places[i, q]
            for c in range(n_sums):
                sums[i, c] = 0.0
        add_ball(strips, *ball, places[:n], False, True, sums[:n], room)
        for i in range(n):
            unscale(sums[i], places[i, :D], axes, unit, out[groups.rows[first + i]])
