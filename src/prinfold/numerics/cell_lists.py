"""Latent points in cells as wide as a kernel reaches, so that neighbours are found without looking at all pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import InvalidParameterError
from prinfold.numerics.finite_checks import require_finite

_MOST_AXES = 4
"""Cells are cut along so many axes at most, the longest ones: each more takes three times as many runs. With five axes
this finds 10 000 to 50 000 points' neighbours about as fast as a k-d tree, which would have to list all pairs at once,
and with eight at less than half that speed."""

_MOST_COUNTED_POINTS = 128
"""Points whose neighbours are counted to tell how many there are."""

_MOST_KEYS = 2**62
"""Cells are numbered up to here."""


class CellPairs(NamedTuple):
    """Pairs within reach of each other, row by row: ``near[cuts[i]:cuts[i + 1]]`` belongs to ``rows[i]``."""

    rows: IntArray
    cuts: IntArray
    near: IntArray


class PairBuffers:
    """Buffers for the pairs of a part, used again for the next: paging in new ones would cost more than the sums."""

    def __init__(self, n_pairs: int) -> None:
        n_pairs += 1  # the search writes one more than it keeps
        self.near = np.empty(n_pairs, np.uint32)
        self.numbers = np.empty((3, n_pairs))


@dataclass(frozen=True)
class CellList:
    """Points sorted by cell: the points within reach of a cell lie in a few runs, one for each row of cells."""

    points: FloatArray
    """(Q, n)."""
    order: IntArray
    cell: IntArray
    """(n,) of each sorted point."""
    starts: IntArray
    stops: IntArray
    """(cells, runs)."""
    reach: float

    @property
    def counts(self) -> IntArray:
        """(n,) how many pairs each sorted point has at most."""
        return np.asarray((self.stops - self.starts).sum(axis=1)[self.cell])

    @property
    def share(self) -> float:
        """Approximate share of all pairs that is within reach, counted for a hundred or so points."""
        from prinfold.numerics._cell_lists_jit import count_near

        n = len(self.order)
        every = max(1, n // _MOST_COUNTED_POINTS)
        found = count_near(self.points, every, self.cell, self.starts, self.stops, self.reach)
        return found / (len(range(0, n, every)) * n)

    def pairs(self, part: slice, room: PairBuffers) -> tuple[CellPairs, FloatArray]:
        """Pairs of some of the sorted points, and their squared distances; both lie in ``room``."""
        from prinfold.numerics._cell_lists_jit import find_near

        cuts, s = np.empty(part.stop - part.start + 1, np.int64), room.numbers[0]
        runs = self.cell[part], self.starts, self.stops
        find_near(self.points, self.order, part.start, *runs, self.reach, cuts, room.near, s)
        return CellPairs(self.order[part], cuts, room.near[: cuts[-1]]), s[: cuts[-1]]


def sort_into_cells(X: FloatArray, reach: float) -> CellList:
    """Cells of points (n, Q), numbered so that those beside each other along the last axis follow each other."""
    from prinfold.numerics._cell_lists_jit import list_runs

    _require_cells(X, reach)
    key, stride = _number_cells(X, _side(reach))
    order = np.argsort(key)
    steps = _steps(stride)
    cell, starts, stops = np.empty(len(X), np.int64), *np.empty((2, len(X), len(steps)), np.int64)
    n_cells = list_runs(key[order], steps, cell, starts, stops)
    return CellList(np.ascontiguousarray(X[order].T), order, cell, starts[:n_cells], stops[:n_cells], reach)


def _number_cells(X: FloatArray, side: float) -> tuple[IntArray, IntArray]:
    """(n,) keys of the cells of points, and how far apart the keys of cells beside each other are along each axis."""
    at = _cell_numbers(X[:, _cut_axes(X)], side)
    if np.prod(at.max(axis=0) + 3.0) > _MOST_KEYS:
        at = np.column_stack([_close_gaps(axis) for axis in at.T])
    while np.prod(at.max(axis=0) + 3.0) > _MOST_KEYS:  # tens of thousands of points, all far apart
        at = at[:, 1:]
    stride = _strides(at.max(axis=0))
    return _keys(at, stride), stride


@dataclass(frozen=True, eq=False)
class Grid:
    """Points in cells of one width, for places that are none of the points to find their own cell among them."""

    axes: IntArray
    low: FloatArray
    last: FloatArray
    """The last cell with a point along each axis."""
    side: float
    stride: IntArray
    order: IntArray
    """(n,) original indices of the points, cell by cell."""
    keys: IntArray
    """Of the cells that hold points, rising."""
    firsts: IntArray
    """Where the points of each of them begin, and where all end."""

    def runs(self, Z: FloatArray) -> tuple[IntArray, IntArray]:
        """(n, runs) where the runs of sorted points in the cells about places (n, Q) begin and end.

        Each run lies in three cells that follow each other. A place outside is in the nearest empty cell at the rim.
        """
        at = np.clip(np.floor((Z[:, self.axes] - self.low) / self.side), -1.0, self.last + 1.0)
        middle = _keys(at, self.stride)[:, None] + _steps(self.stride)
        starts, stops = (self.firsts[np.searchsorted(self.keys, middle + step)] for step in (-1, 2))
        return starts, stops


def make_grid(X: FloatArray, reach: float) -> Grid | None:
    """The grid of points (n, Q), or None where they lie so far apart that its cells cannot be numbered."""
    _require_cells(X, reach)
    axes, side = _cut_axes(X), _side(reach)
    at = _cell_numbers(X[:, axes], side)
    low, last = X[:, axes].min(axis=0), at.max(axis=0)
    if np.prod(last + 3.0) > _MOST_KEYS:
        return None
    stride = _strides(last)
    key = _keys(at, stride)
    order = np.argsort(key, kind="stable")
    keys, firsts = np.unique(key[order], return_index=True)
    return Grid(axes, low, last, side, stride, order, keys, np.append(firsts, len(X)))


def _require_cells(X: FloatArray, reach: float) -> None:
    """Raise an error for points that no cells can be made for."""
    if not (reach > 0 and len(X) and X.shape[1]):
        raise InvalidParameterError(
            f"cells need points and a reach above 0, got a table of shape {X.shape} and a reach of {reach!r}"
        )
    require_finite("latent points", X, "take a larger bandwidth, or rescale the columns of X")


def _cut_axes(X: FloatArray) -> IntArray:
    if X.shape[1] <= _MOST_AXES:
        return np.arange(X.shape[1])
    return np.sort(np.argsort(-np.ptp(X, axis=0), kind="stable")[:_MOST_AXES])


def _side(reach: float) -> float:
    return reach * (1.0 + 1e-9)  # two that are only just within reach must not be rounded into cells two apart


def _cell_numbers(X: FloatArray, side: float) -> FloatArray:
    """(n, Q) cells along each axis between the lowest point and every other; floats, as there may be very many."""
    return np.asarray(np.floor((X - X.min(axis=0)) / side))


def _strides(last: FloatArray) -> IntArray:
    strides = [1]
    for axis in last[:0:-1].tolist():
        strides.append(strides[-1] * (int(axis) + 3))  # two more: steps beyond either end lead to keys of no cell
    return np.array(strides[::-1], dtype=np.int64)


def _keys(at: FloatArray, stride: IntArray) -> IntArray:
    return np.asarray((at.astype(np.int64) + 1) @ stride)


def _steps(stride: IntArray) -> IntArray:
    steps = [0]
    for across in stride[:-1].tolist():
        steps = [step + side for step in steps for side in (-across, 0, across)]
    return np.array(steps, dtype=np.int64)


def _close_gaps(axis: FloatArray) -> FloatArray:
    """Cell numbers along an axis with wide gaps closed to one empty cell: neighbours stay such, and no others are."""
    found, inverse = np.unique(axis, return_inverse=True)
    return np.asarray(np.append(0.0, np.cumsum(np.minimum(np.diff(found), 2.0)))[inverse])


def share_within(X: FloatArray, reach: float) -> float:
    """About which share of all pairs is within reach, from some 64 points and 1024 that they may be near to."""
    n = len(X)
    return float((cdist(X[:: max(1, n // 64)], X[:: max(1, n // 1024)], "sqeuclidean") < reach**2).mean())


def cut_by_count(counts: IntArray, about: int) -> tuple[list[slice], int]:
    """Rows cut into parts of about equal numbers of pairs, and the most pairs of any part."""
    if (total := int(counts.sum())) <= about:
        return [slice(0, len(counts))], total
    before = np.append(0, np.cumsum(counts))
    ends = np.unique(np.append(np.searchsorted(before, np.arange(about, before[-1], about)), len(counts))).tolist()
    parts = [slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True)]
    return parts, int(max(before[part.stop] - before[part.start] for part in parts))
