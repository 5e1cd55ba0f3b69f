"""Latent points in cells as wide as a kernel reaches, so that neighbours are found without looking at all pairs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from prinfold._typing import FloatArray, IntArray

_MOST_AXES = 4
"""Cells are cut along so many axes at most, the longest ones: each more takes three times as many runs. With five axes
this finds 10 000 to 50 000 points' neighbours about as fast as a k-d tree, which would have to list all pairs at once,
and with eight at less than half that speed."""

_KEYS = 2**62
"""Cells are numbered up to here."""


class Pairs(NamedTuple):
    """Pairs within reach of each other, row by row: ``near[cuts[i]:cuts[i + 1]]`` belongs to ``rows[i]``."""

    rows: IntArray
    cuts: IntArray
    near: IntArray


class Room:
    """Buffers for the pairs of a part: new ones for each would cost more in pages than what is done with them."""

    def __init__(self, n_pairs: int) -> None:
        n_pairs += 1  # the search writes one more than it keeps
        self.near = np.empty(n_pairs, np.int64)
        self.numbers = np.empty((3, n_pairs))


@dataclass(frozen=True)
class Cells:
    """Points sorted by cell: what is within reach of a cell's lies in a few runs of them, one for each row of cells."""

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

    def pairs(self, part: slice, room: Room) -> tuple[Pairs, FloatArray]:
        """Of some of the sorted points, and their squared distances; both lie in ``room``."""
        from prinfold.kernels.near_pairs import find_near

        cuts, s = np.empty(part.stop - part.start + 1, np.int64), room.numbers[0]
        runs = self.cell[part], self.starts, self.stops
        find_near(self.points, self.order, part.start, *runs, self.reach, cuts, room.near, s)
        return Pairs(self.order[part], cuts, room.near[: cuts[-1]]), s[: cuts[-1]]


def sort_into_cells(X: FloatArray, reach: float) -> Cells:
    """Cells of points (n, Q), numbered so that those beside each other along the last axis follow each other."""
    cut = np.sort(np.argsort(-np.ptp(X, axis=0), kind="stable")[:_MOST_AXES])
    side = reach * (1.0 + 1e-9)  # two that are only just within reach must not be rounded into cells two apart
    at = np.floor((X[:, cut] - X[:, cut].min(axis=0)) / side)
    size = at.max(axis=0) + 3.0  # two more, so that steps beyond either end lead to keys of no cell
    if np.prod(size) > _KEYS:
        at = np.column_stack([_without_gaps(axis) for axis in at.T])
        size = at.max(axis=0) + 3.0
    stride = np.append(np.cumprod(size[:0:-1])[::-1], 1.0).astype(np.int64)
    key = (at.astype(np.int64) + 1) @ stride
    order = np.argsort(key)
    key = key[order]
    first = np.append(True, key[1:] != key[:-1])
    keys, cell = key[first], np.cumsum(first) - 1
    ends = [np.array(step) @ stride[:-1] for step in product((-1, 0, 1), repeat=len(cut) - 1)]
    starts = np.column_stack([np.searchsorted(key, keys + end - 1) for end in ends])
    stops = np.column_stack([np.searchsorted(key, keys + end + 1, side="right") for end in ends])
    return Cells(np.ascontiguousarray(X[order].T), order, cell, starts, stops, reach)


def _without_gaps(axis: FloatArray) -> FloatArray:
    """Cell numbers along an axis with wide gaps closed to one empty cell: neighbours stay such, and no others are."""
    found, inverse = np.unique(axis, return_inverse=True)
    return np.asarray(np.append(0.0, np.cumsum(np.minimum(np.diff(found), 2.0)))[inverse])


def share_within(X: FloatArray, reach: float) -> float:
    """About which share of all pairs is within reach, from some 64 points and 1024 that they may be near to."""
    n = len(X)
    some, many = X[:: max(1, n // 64)], X[:: max(1, n // 1024)]
    s = np.zeros((len(some), len(many)))
    for a, b in zip(some.T, many.T, strict=True):
        s += np.square(a[:, None] - b)
    return float((s < reach**2).mean())


def cut_by_count(counts: IntArray, about: int) -> tuple[list[slice], int]:
    """Parts of rows that have about so many pairs, and the most that any of them has."""
    before = np.append(0, np.cumsum(counts))
    ends = np.unique(np.append(np.searchsorted(before, np.arange(about, before[-1], about)), len(counts))).tolist()
    parts = [slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True)]
    return parts, int(max(before[part.stop] - before[part.start] for part in parts))
