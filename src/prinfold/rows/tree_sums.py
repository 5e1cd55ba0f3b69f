"""Sums over blocks by one fixed binary tree, so that no number depends on who computed which block, or when.

Blocks 0, 1, 2, … are the leaves. Neighbours 2i and 2i + 1 are added, then neighbours among those sums, and so on; one
that has no neighbour goes up as it is. Addition of rounded numbers is not associative: with the tree fixed by the
numbers of the blocks alone, one thread, many threads and many processes round alike.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from prinfold._typing import FloatArray, IntArray

_MOST_LEAVES = 256
"""Runs into which many parts are cut: enough for the threads of a large machine to end at about the same time."""


class Summable(Protocol):
    """Anything that forms sums: numbers, arrays, EM statistics."""

    def __add__(self, other: Any, /) -> Any: ...


S = TypeVar("S", bound=Summable)


class TreeSum(Generic[S]):
    """The sum of what is put in for the numbers 0, 1, 2, …, in whichever order that comes, from any thread.

    Neighbours are added as soon as both are there. If numbers are handed out in order, what waits for a neighbour is a
    logarithmic number of sums for each thread. ``add`` may be ``operator.iadd`` where what is put in belongs to nobody
    else: fresh memory for every sum costs more than the additions.
    """

    def __init__(self, add: Callable[[Any, Any], Any] = operator.add) -> None:
        self._waiting: dict[tuple[int, int], S] = {}
        self._lock, self._add = Lock(), add

    def put(self, index: int, value: S) -> None:
        """Add the value of one leaf; sums are formed by whoever completes a pair, beside the other threads."""
        level = 0
        while True:
            with self._lock:
                other = self._waiting.pop((level, index ^ 1), None)
                if other is None:
                    self._waiting[level, index] = value
                    return
            value = self._add(value, other) if index & 1 == 0 else self._add(other, value)
            level, index = level + 1, index >> 1

    @property
    def n_waiting(self) -> int:
        """Number of sums that wait for a neighbour."""
        return len(self._waiting)

    def total(self) -> S:
        """The sum of all; every number below the largest must have come."""
        # What is left has no neighbour. From the last on, each goes up until it meets the sum before it.
        *before, last = (self._waiting[key] for key in sorted(self._waiting, reverse=True))
        for each in reversed(before):
            last = self._add(each, last)
        return last


def tree_sum(values: Iterable[S]) -> S:
    """The sum of values that come one after another; at no time more than a logarithmic number of sums is held."""
    found: TreeSum[S] = TreeSum()
    for index, value in enumerate(values):
        found.put(index, value)
    return found.total()


def cut_into_leaves(sizes: Sequence[int] | IntArray | FloatArray, least: float = 0.0) -> list[slice]:
    """Runs of parts that follow each other, about even in size, of about ``least`` or more; sizes alone decide."""
    ends = np.cumsum(np.asarray(sizes, dtype=np.float64))
    if len(ends) == 0:
        return []
    wanted = max(least, ends[-1] / _MOST_LEAVES)
    n_leaves = max(1, int(ends[-1] // wanted)) if wanted > 0 else 1
    # A run ends with the part in which its share is full.
    cuts = np.searchsorted(ends, ends[-1] * np.arange(1, n_leaves) / n_leaves, side="left") + 1
    edges = np.unique(np.concatenate([[0], cuts, [len(ends)]]))
    return [slice(int(a), int(b)) for a, b in pairwise(edges)]
