"""Components that can matter to the rows of balls, compiled: the bounds of ``gtm.node_bounds`` for jobs that are swept.

This module imports numba: import it only where there is much to do.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba.extending import overload, register_jitable

from prinfold._typing import FloatArray, IntArray
from prinfold.numerics._compiled import centered, compiled, heaviest, longest, with_room
from prinfold.numerics._small_products_jit import multiply, turn, up_to_lanes

_BINS = 64

_BOUNDS_AT_ONCE = 2**15
"""Bounds that are held at a time, in a core's cache."""

_AT_ONCE = 64
"""Rows whose products with all anchors are held at a time, in a core's cache."""


def _bin_of(bound: float, lowest: float, width: float) -> int:
    """Bin 0 is all below ``lowest``, bin 1 begins there, and the last is all that holds more than may be lost.

    What is no number bounds nothing, and belongs there too.
    """
    if math.isnan(bound):
        return _BINS + 1
    # Held within the bins before it becomes an integer: which one a number out of range becomes is left to chance.
    return int(min(max(np.floor((bound - lowest) / width) + 1.0, 0.0), _BINS + 1.0))


def _larger(a: float, b: float) -> float:
    """The larger of two, or whichever is no number."""
    return a if a > b or math.isnan(a) else b


bin_of, larger = register_jitable(_bin_of), register_jitable(_larger)


def _square_of(row: FloatArray) -> float:
    """‖row‖²."""
    raise NotImplementedError


@overload(_square_of, jit_options={"fastmath": {"reassoc", "contract"}})
def _square_of_row(row: Any) -> Any:
    def square_of(row: Any) -> Any:
        total = 0.0
        for c in range(len(row)):
            total += row[c] * row[c]
        return total

    return square_of


@compiled
def nearest_anchors(
    table: FloatArray,
    offset: FloatArray,
    frame: FloatArray,
    anchors: FloatArray,
    unit: float,
    label: IntArray,
    distance: FloatArray,
) -> None:
    """Anchor nearest to each row of a table less an offset, and the square of the distance to it.

    Anchors (A, q) are places along the axes of ``frame`` (D, q), beside which they hardly differ; without axes they
    have all columns. Products are in single precision and in a ``unit``: they only sort rows.
    """
    (n_anchors, q), D = anchors.shape, table.shape[1]
    rows, squares = np.empty((_AT_ONCE, D)), np.empty(_AT_ONCE)
    axes = np.zeros((D, up_to_lanes(frame.shape[1], 8)))
    axes[:, : frame.shape[1]] = frame
    along, place = np.empty((_AT_ONCE, axes.shape[1])), np.ones((_AT_ONCE, q + 1), np.float32)
    loading = np.zeros((q + 1, up_to_lanes(n_anchors, 4)), np.float32)
    closeness = np.empty((_AT_ONCE, loading.shape[1]), np.float32)
    for a in range(n_anchors):
        for c in range(q):
            loading[c, a] = anchors[a, c] / unit
        loading[q, a] = -0.5 * _square_of(anchors[a]) / unit / unit
    for begin in range(0, len(table), _AT_ONCE):
        n = min(_AT_ONCE, len(table) - begin)
        for i in range(n):
            squares[i] = centered(table[begin + i], offset, rows[i]) / unit / unit
        if frame.shape[1]:
            multiply(rows[:n], axes, along[:n])
        places = along if frame.shape[1] else rows
        for i in range(n):
            for c in range(q):
                place[i, c] = places[i, c] / unit
        multiply(place[:n], loading, closeness[:n])
        for i in range(n):
            label[begin + i] = heaviest(closeness[i, :n_anchors])
            distance[begin + i] = squares[i] - 2.0 * closeness[i, label[begin + i]]


@compiled
def measure_balls(
    table: FloatArray,
    chosen: IntArray,
    offset: FloatArray,
    cuts: IntArray,
    frame: FloatArray,
    rounding: float,
    unit: float,
    center: FloatArray,
    radii: FloatArray,
    seen: FloatArray,
) -> None:
    """Middles (G, D) of groups of rows, and how far these reach: ``gtm.node_bounds.split_radii``, with what is seen.

    Group g holds rows ``chosen[cuts[g]:cuts[g + 1]]`` of a table, less its offset.
    """
    n_most = longest(cuts)
    n_axes, axes = frame.shape[1], np.zeros((frame.shape[0], up_to_lanes(frame.shape[1], 8)))
    axes[:, :n_axes] = frame
    along, block = np.empty((n_most, axes.shape[1])), np.empty((n_most, table.shape[1]))
    for g in range(len(cuts) - 1):
        some, middle, reach = chosen[cuts[g] : cuts[g + 1]], center[g], radii[:, g]
        rows = block[: len(some)]
        middle[:], reach[:] = 0.0, 0.0
        for i in range(len(rows)):
            centered(table[some[i]], offset, rows[i])
            for c in range(len(middle)):
                middle[c] += rows[i, c]
        for c in range(len(middle)):
            middle[c] /= len(rows)
        for i in range(len(rows)):
            for c in range(len(middle)):
                rows[i, c] -= middle[c]
        within = along[: len(rows)]
        multiply(rows, axes, within)
        for i in range(len(rows)):
            square, inside = _square_of(rows[i]), _square_of(within[i, :n_axes])
            # What is no number has to stay one: it bounds nothing.
            reach[0] = larger(square, reach[0])
            reach[1] = larger(inside, reach[1])
            reach[2] = larger(larger(square - inside, 0.0) + rounding * square, reach[2])
            for q in range(n_axes):
                seen[cuts[g] + i, q] = within[i, q] / unit
        for j in range(3):
            reach[j] = np.sqrt(reach[j])


def _keep_of(bound: FloatArray, K: int, lost: float, held: FloatArray, kept: IntArray, n_kept: int) -> IntArray:
    """Write the components that a group keeps behind ``n_kept`` others, by bounds on the log of each one's share.

    Those with the least bounds are left out, in bins of bounds, for as long as all that are left out cannot hold more
    than ``lost``:

        Σ exp(bound) ≤ K · lost / 2K  over bin 0, below log(lost / 2K),  +  lost / 2  over the bins above it.

    Returned is the list ``kept``, and in ``held[0]`` how many entries it has.
    """
    lowest = math.log(lost / (2 * K))
    width = (math.log(lost) - lowest) / _BINS
    for i in range(_BINS + 2):
        held[i] = 0.0
    most = 0
    for k in range(K):
        if not bound[k] < lowest:
            held[bin_of(bound[k], lowest, width)] += math.exp(min(bound[k], 0.0))
            most += 1
    first_kept, left = 1, 0.5 * lost
    while first_kept <= _BINS and held[first_kept] <= left:
        left -= held[first_kept]
        first_kept += 1
    kept = with_room(kept, n_kept + most)
    for k in range(K):
        if not bound[k] < lowest and bin_of(bound[k], lowest, width) >= first_kept:
            kept[n_kept] = k
            n_kept += 1
    held[0] = n_kept
    return kept


keep_of = register_jitable(_keep_of)


@compiled
def keep_near(bound: FloatArray, lost: float) -> tuple[IntArray, IntArray]:
    """Components that each group keeps, one group after the other, and (G,) how many those are; see ``_keep_of``."""
    n_groups, K = bound.shape
    kept, counts, held, at = np.empty(16 * n_groups, np.int64), np.empty(n_groups, np.int64), np.empty(_BINS + 2), 0
    for g in range(n_groups):
        kept = keep_of(bound[g], K, lost, held, kept, at)
        counts[g], at = int(held[0]) - at, int(held[0])
    return kept[:at], counts


def _reach_of(
    products: FloatArray,
    inner: FloatArray,
    half_square: FloatArray,
    inner_half_square: FloatArray,
    best: IntArray,
    radii: FloatArray,
    rounding: float,
    slack: tuple[float, float],
) -> None:
    """Reach of rows towards components, as ``gtm.node_bounds`` has it, from y_j·y_k and the same along the axes.

    Of each ball ``radii`` (3, G) are its own, that within and that beside the axes. ``inner`` becomes the reach, and
    ``products`` what is beside, with a share of what is within and a constant as ``slack``. Their K columns are
    followed by more, up to whole lanes.
    """
    share, constant = slack
    for g in range(len(best)):
        own, own_inner = half_square[best[g]], inner_half_square[best[g]]
        radius, within, beside = radii[0, g], radii[1, g], radii[2, g]
        row, inner_row = products[g], inner[g]
        for k in range(len(half_square)):
            apart = 2.0 * (max(half_square[k] - row[k] + own, 0.0) + rounding)
            inside = 2.0 * (max(inner_half_square[k] - inner_row[k] + own_inner, 0.0) + rounding)
            across = beside * np.sqrt(max(apart - inside, 0.0) + rounding)
            along = within * np.sqrt(inside)
            inner_row[k] = min(radius * np.sqrt(apart), along + across)
            row[k] = across + share * along + constant


def _tighten(
    Z: FloatArray,
    best: IntArray,
    seen: FloatArray,
    starts: IntArray,
    within: FloatArray,
    rise: FloatArray,
    beside: FloatArray,
    least: float,
    unit: float,
    reach: FloatArray,
) -> None:
    """Lower ``reach`` (G, K) to what the rows of each ball have, where ``rise`` + ``reach`` is above ``least``.

    That is the largest product of a row's place along some axes, ``seen`` (n, q), with z_k − z_j, ``best`` telling j,
    and what is ``beside``. Places and differences are in single precision and in a ``unit``; a ball with rows too far
    away for that, by its radius ``within`` the axes, stays as it is.
    """
    K, q = Z.shape
    chosen, most, all_wide = np.empty(K, np.int64), np.empty(K, seen.dtype), up_to_lanes(K, seen.itemsize)
    gathered, room = np.empty(q * all_wide, seen.dtype), np.empty(longest(starts) * all_wide, seen.dtype)
    for g in range(len(best)):
        if not within[g] < 1e30 * unit:
            continue
        k = 0
        for i in range(K):
            chosen[k] = i
            k += int(rise[g, i] + reach[g, i] > least)
        rows, wide = seen[starts[g] : starts[g + 1]], up_to_lanes(k, seen.itemsize)
        local, product = gathered[: q * wide].reshape(q, wide), room[: len(rows) * wide].reshape(len(rows), wide)
        for c in range(q):
            local[c, k:] = 0.0
            for j in range(k):
                local[c, j] = (Z[chosen[j], c] - Z[best[g], c]) / unit
        multiply(rows, local, product)
        farthest = most[:k]
        farthest[:] = -np.inf
        for i in range(len(rows)):
            row = product[i, :k]
            for j in range(k):
                farthest[j] = max(farthest[j], row[j])
        for j in range(k):
            i = chosen[j]
            reach[g, i] = min(reach[g, i], unit * unit * np.float64(farthest[j]) + beside[g, i])


reach_of, tighten = register_jitable(_reach_of), register_jitable(_tighten)


@compiled
def images_of_nodes(Y: FloatArray, frame: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Components (K, D) for the bounds of many balls: turned (D, K …), along the axes (K, q), these turned, ½‖y‖².

    The last are those in all columns, and those along the axes of ``frame`` (D, q).
    """
    (K, D), q = Y.shape, frame.shape[1]
    axes, along = np.zeros((D, up_to_lanes(q, 8))), np.empty((K, up_to_lanes(q, 8)))
    axes[:, :q] = frame
    multiply(Y, axes, along)
    Z, turned, inner = along[:, :q].copy(), np.empty((D, up_to_lanes(K, 8))), np.empty((q, up_to_lanes(K, 8)))
    turn(Y, np.arange(K), turned)
    turn(Z, np.arange(K), inner)
    half_squares = np.empty((2, K))
    for k in range(K):
        half_squares[0, k], half_squares[1, k] = 0.5 * _square_of(Y[k]), 0.5 * _square_of(Z[k])
    return turned, Z, inner, half_squares


def _rise_of(
    Y: FloatArray,
    images: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    center: FloatArray,
    radii: FloatArray,
    seen: FloatArray,
    starts: IntArray,
    rounding: float,
    slack: tuple[float, float],
    least: float,
    unit: float,
    room: tuple[FloatArray, FloatArray, FloatArray],
) -> FloatArray:
    """(G, K …) bounds as ``gtm.node_bounds.rise_bounds`` has them, of balls whose rows are known along some axes."""
    turned, Z, inner, (half_square, inner_half_square) = images
    n_balls, (K, D) = len(center), Y.shape
    rise, beside, reach = room[0][:n_balls], room[1][:n_balls], room[2][:n_balls]
    multiply(center, turned, rise)
    best = np.empty(n_balls, np.int64)
    near, inner_near = np.empty((n_balls, D)), np.empty((n_balls, Z.shape[1]))
    for g in range(n_balls):
        row = rise[g, :K]
        for k in range(K):
            row[k] -= half_square[k]
        best[g] = heaviest(row)
        highest = row[best[g]]
        for k in range(K):
            row[k] -= highest
        near[g], inner_near[g] = Y[best[g]], Z[best[g]]
    multiply(near, turned, beside)
    multiply(inner_near, inner, reach)
    reach_of(beside, reach, half_square, inner_half_square, best, radii, rounding * half_square.max(), slack)
    if Z.shape[1]:
        tighten(Z, best, seen, starts, radii[1], rise, beside, least, unit, reach)
    for g in range(n_balls):
        for k in range(K):
            reach[g, k] += rise[g, k]
    return reach


rise_of = register_jitable(_rise_of)


@compiled
def bounds_of_balls(
    Y: FloatArray,
    images: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    center: FloatArray,
    radii: FloatArray,
    seen: FloatArray,
    starts: IntArray,
    rounding: float,
    slack: tuple[float, float],
    least: float,
    unit: float,
) -> FloatArray:
    """(G, K) bounds as ``gtm.node_bounds.rise_bounds`` has them, of balls whose rows are known along some axes."""
    shape = len(center), images[0].shape[1]
    room = np.empty(shape), np.empty(shape), np.empty(shape)
    found = rise_of(Y, images, center, radii, seen, starts, rounding, slack, least, unit, room)
    return found[:, : len(Y)].copy()


@compiled
def near_of_balls(
    Y: FloatArray,
    images: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    center: FloatArray,
    radii: FloatArray,
    seen: FloatArray,
    starts: IntArray,
    rounding: float,
    slack: tuple[float, float],
    unit: float,
    precision: float,
    lost: float,
) -> tuple[IntArray, IntArray]:
    """The components that each of many balls keeps, and (G,) how many those are, some balls at a time.

    Bounds are ``precision`` times those of ``bounds_of_balls``; what they leave out is what ``keep_near`` does.
    """
    n_balls, K, wide = len(center), len(Y), images[0].shape[1]
    at_once = max(1, min(n_balls, _BOUNDS_AT_ONCE // K))
    room = np.empty((at_once, wide)), np.empty((at_once, wide)), np.empty((at_once, wide))
    kept: IntArray = np.empty(16 * n_balls, np.int64)
    counts, held, at = np.empty(n_balls, np.int64), np.empty(_BINS + 2), 0
    least = math.log(lost / (2 * K)) / precision  # left out whatever the others are
    for begin in range(0, n_balls, at_once):
        end = min(begin + at_once, n_balls)
        own = radii[:, begin:end], seen, starts[begin : end + 1]
        found = rise_of(Y, images, center[begin:end], *own, rounding, slack, least, unit, room)
        for g in range(end - begin):
            for k in range(K):
                found[g, k] *= precision
            kept = keep_of(found[g], K, lost, held, kept, at)
            counts[begin + g], at = int(held[0]) - at, int(held[0])
    return kept[:at], counts
