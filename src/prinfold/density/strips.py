"""Points sorted into strips about one bandwidth wide, so that those in a ball are a few runs; dense cells merged.

Coordinates are in bandwidths. Strips run along the widest axis and are cut across the next two; along a strip points
are sorted, so that what a ball needs of it lies between two of them. Where many points lie within a cell much smaller
than the bandwidth, their weight, mean and second moment stand for them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import log, sqrt
from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.rows.rows import for_each_block

_MOST_CELLS = 2.0**62
"""Most cells that integers can number; beyond that cells are sorted by their coordinates."""

_MOST_PLACES_IN_GROUP = 4096
"""Most places of a group, so that threads have something to share."""

_ROWS_ON_THREADS, _ROWS_PER_PART = 2**14, 2**12
"""Places from which parts go to threads (fewer come from a pass that is on threads itself), and places of a part."""


class Strips(NamedTuple):
    """Points sorted by slab, by strip in the slab, and along the strip.

    ``columns`` (C, m) hold the logarithm of the weight, the coordinates and what else belongs to a point: of merged
    ones the upper triangle of the second moment. Slab s has the strips from ``slab_first[s]`` on, and strip t the
    points from ``strip_first[t]`` on; ``slab_at`` and ``strip_at`` are their numbers along the axes across, counted
    from ``corner`` (2,) in steps of ``side``. With one axis across there is one slab, and where it lies is of no
    account.
    """

    columns: FloatArray
    slab_at: FloatArray
    slab_first: IntArray
    strip_at: FloatArray
    strip_first: IntArray
    corner: FloatArray
    side: float


class MergedPoints(NamedTuple):
    """Moments of the points of dense cells: ``weight`` (k,), ``mean`` (k, D) and ``moment`` (k, D (D + 1)/2).

    The last is the upper triangle of the second moment about the mean, per weight. ``third`` is Σ w ‖δ‖³ over all
    points that are stood for, δ being what they are off the mean: its bounds are in
    :mod:`prinfold.density.kernel_sums`. ``lone`` (m,) says which points stay on their own.
    """

    weight: FloatArray
    mean: FloatArray
    moment: FloatArray
    third: float
    lone: BoolArray


class QueryCells(NamedTuple):
    """Places at which sums are wanted, in groups by cells.

    ``rows`` (n,) is their order, and ``cuts`` (G + 1,) where each group begins. All places of a group are within
    ``half`` (G,) of ``center`` (G, D) along every axis, and need what is within the root of ``square`` (G,) of them.
    Sums are relative to ``origin`` (G, D).
    """

    rows: IntArray
    cuts: IntArray
    origin: FloatArray
    center: FloatArray
    half: FloatArray
    square: FloatArray

    def part(self, some: slice) -> QueryCells:
        """The groups of a slice."""
        of_each = (values[some] for values in (self.origin, self.center, self.half, self.square))
        return QueryCells(self.rows, self.cuts[some.start : some.stop + 1], *of_each)

    def for_each_part(self, work: Callable[[QueryCells], Any]) -> None:
        """Do the work for all groups, in parts of about 4096 places, on threads if there are many places."""
        if len(self.rows) < _ROWS_ON_THREADS:
            work(self)
            return
        ends = np.searchsorted(self.cuts, np.arange(_ROWS_PER_PART, self.cuts[-1], _ROWS_PER_PART))
        parts = pairwise([0, *np.unique(ends).tolist(), len(self.half)])
        for_each_block(lambda part: work(self.part(part)), [slice(a, b) for a, b in parts if a < b])


def reach_within(weight: FloatArray, tolerance: float) -> float:
    """R = √(2 log(W / (ε w_min))): all kernels farther than R weigh less than ε of one lone kernel's peak.

    >>> round(reach_within(np.ones(10_000), 1e-6), 2)
    6.79
    """
    return sqrt(2.0 * log(float(weight.sum()) / (tolerance * float(weight.min()))))


def strip_axes(X: FloatArray) -> IntArray:
    """Axes in the order of strips: the three widest, rising, then the others. See :func:`reorder_axes`."""
    if X.shape[1] == 1:
        return np.array([1, 0])
    falling = np.argsort(-np.ptp(X, axis=0), kind="stable")
    return np.concatenate([falling[:3][::-1], falling[3:]])


def reorder_axes(Z: FloatArray, axes: IntArray) -> FloatArray:
    """Columns in the order of ``axes``; a single one gets a second beside it that is always zero."""
    if Z.shape[1] == 1:
        Z = np.column_stack([Z, np.zeros(len(Z))])
    return np.ascontiguousarray(Z[:, axes])


def make_strips(
    log_weight: FloatArray, points: FloatArray, more: FloatArray, side: float, middle: FloatArray
) -> Strips:
    """Strips of points (m, D), D ≥ 2, along the last of their first three axes, with ``more`` (m, k) columns."""
    m, D = points.shape
    last = min(D, 3) - 1
    # Numbers count from the middle of the data, so that a point far away does not cost the others their last digits;
    # they are no integers, which would overflow.
    at = np.floor((points[:, :last] - middle[:last]) / side)
    slab = at[:, 0] if last == 2 else np.zeros(m)
    strip = at[:, last - 1]
    order = np.lexsort((points[:, last], strip, slab))
    slab, strip = slab[order], strip[order]
    new_slab = np.append(True, slab[1:] != slab[:-1])[:m]
    new_strip = new_slab | np.append(True, strip[1:] != strip[:-1])[:m]
    strip_first, slab_first = np.flatnonzero(new_strip), np.flatnonzero(new_slab)
    columns = [log_weight[order], *points[order].T, *more[order].T]
    corner = middle[:2] if last == 2 else np.append(0.0, middle[:1])
    return Strips(
        np.ascontiguousarray(columns),
        slab[slab_first],
        np.append(np.searchsorted(strip_first, slab_first), len(strip_first)),
        strip[strip_first],
        np.append(strip_first, m),
        corner.astype(np.float64),
        side,
    )


def compress(points: FloatArray, weight: FloatArray, side: float, least: int) -> MergedPoints:
    """Replace the points (m, D) of each cell of a ``side`` that holds at least ``least`` by their moments."""
    m, D = points.shape
    order, first = sort_by_cell(np.floor((points - np.median(points, axis=0)) / side))
    counts = np.diff(np.append(first, m))
    crowded = np.repeat(counts >= least, counts)
    lone = np.ones(m, dtype=bool)
    lone[order[crowded]] = False
    cuts = np.append(0, np.cumsum(counts[counts >= least]))
    if cuts[-1] == 0:
        return MergedPoints(np.empty(0), np.empty((0, D)), np.empty((0, D * (D + 1) // 2)), 0.0, lone)
    inside, w = points[order[crowded]], weight[order[crowded]]
    total = np.add.reduceat(w, cuts[:-1])
    mean = np.add.reduceat(w[:, None] * inside, cuts[:-1]) / total[:, None]
    delta = inside - np.repeat(mean, np.diff(cuts), axis=0)
    pairs = zip(*np.triu_indices(D), strict=True)
    moment = [np.add.reduceat(w * delta[:, a] * delta[:, b], cuts[:-1]) / total for a, b in pairs]
    third = float(w @ np.linalg.norm(delta, axis=1) ** 3)
    return MergedPoints(total, mean, np.stack(moment, axis=1), third, lone)


def make_query_cells(Y: FloatArray, rows: IntArray, side: float, square: float, middle: FloatArray) -> QueryCells:
    """Groups of some rows of Y (n, D) by cells of that side; which one a place is in does not depend on the others."""
    at = np.floor((Y[rows] - middle) / side)
    order, first = sort_by_cell(at)
    first = _split_large(first, len(rows), _MOST_PLACES_IN_GROUP)
    n, origin = len(first), middle + side * (at[order[first]] + 0.5)
    # A place at the rim of its cell may be rounded out of it.
    half = np.full(n, 0.5 * side * (1.0 + 1e-9))
    return QueryCells(rows[order], np.append(first, len(rows)), origin, origin, half, np.full(n, square))


def _split_large(first: IntArray, n: int, most: int) -> IntArray:
    """Beginnings of groups after those that begin at ``first`` are split to hold ``most`` of the n rows each."""
    return np.union1d(first, np.arange(0, n, most)) if n else first


def sort_by_cell(at: FloatArray) -> tuple[IntArray, IntArray]:
    """Indices of rows sorted by cell ``at`` (n, D), first axis first, and where each cell begins among them."""
    n = len(at)
    if n == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    span = np.ptp(at, axis=0) + 1.0
    if np.prod(span) < _MOST_CELLS:
        key = np.zeros(n, dtype=np.int64)
        for axis, size in zip((at - at.min(axis=0)).T, span, strict=True):
            key = key * np.int64(size) + axis.astype(np.int64)
        order = np.argsort(key)
        new = key[order[1:]] != key[order[:-1]]
    else:
        order = np.lexsort(at.T[::-1])
        new = (at[order[1:]] != at[order[:-1]]).any(axis=1)
    return order, np.flatnonzero(np.append(True, new))
