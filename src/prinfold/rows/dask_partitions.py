"""Rows of a Dask array or frame: read partition by partition, or added up where they lie.

A sum is a graph of tasks: one for each partition, then additions by the same binary tree as threads and blocks use, so
that what comes back is one sum, equal to the last bit to that of blocks with the same cuts. Parameters travel within
the graph, which the scheduler keeps: a worker that dies takes nothing along that cannot be computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from math import isnan
from typing import Any, NamedTuple, TypeVar

import numpy as np

from prinfold._typing import IntArray
from prinfold.exceptions import InvalidDataError, WorkersLostError
from prinfold.rows.column_selection import length_of
from prinfold.rows.tree_sums import Summable
from prinfold.validation.dask_verbs import is_dask, refuse_other_axes
from prinfold.validation.tables import rows_of

S = TypeVar("S", bound=Summable)
T = TypeVar("T")


class LabelledPiece(NamedTuple):
    """A partition, and that of labels of its rows."""

    table: Any
    labels: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns of the table."""
        return tuple(self.table.shape)


class DaskPartitions:
    """The partitions of a Dask array or frame, each with all of its columns."""

    def __init__(self, collection: Any) -> None:
        if hasattr(collection, "rechunk"):  # an array: several chunks of columns become one
            refuse_other_axes(collection)
            collection = collection.rechunk({1: -1}) if collection.numblocks[1] > 1 else collection
            parts = collection.to_delayed()[:, 0].tolist()
            known = [None if isnan(size) else int(size) for size in collection.chunks[0]]
        else:
            parts = collection.to_delayed()
            known = [None] * len(parts)
        self.parts: list[Any] = list(parts)
        self.lengths: list[int | None] = known

    def read(self) -> Iterator[Any]:
        """Every partition that has rows, one after the other, brought here."""
        for i, part in enumerate(self.parts):
            if self.lengths[i] != 0:
                found = _compute([part])[0]
                self.lengths[i] = length_of(found)
                if self.lengths[i]:
                    yield found

    def with_labels(self, labels: Any) -> DaskPartitions:
        """Each partition as a :class:`LabelledPiece`, with that of a Dask array or series of as many partitions."""
        from dask import delayed

        beside = labels.to_delayed()
        if hasattr(labels, "rechunk"):  # an array, which can be cut as the rows are
            known = tuple(size for size in self.lengths if size is not None)
            same = len(known) == len(self.parts) and sum(known) == labels.shape[0]
            cuts = ({0: known} if same else {}) | dict.fromkeys(range(1, labels.ndim), -1)
            beside = labels.rechunk(cuts).to_delayed().ravel().tolist()
        if len(beside) != len(self.parts):
            raise InvalidDataError(
                f"X has {len(self.parts)} partitions and y {len(beside)}; both must be cut in the same places, so "
                "repartition one of them, or make y a column of X and give its name"
            )
        found, task = copy(self), delayed(_labelled, pure=False)
        found.parts = [task(part, own) for part, own in zip(self.parts, beside, strict=True)]
        return found

    def choose(self, rows: list[IntArray], *, inside: bool) -> DaskPartitions:
        """Some rows of each partition, by their numbers within it; or all others."""
        from dask import delayed

        found, task = copy(self), delayed(_rows_by_number, pure=False)
        found.parts = [task(part, own, inside) for part, own in zip(self.parts, rows, strict=True)]
        found.lengths = [None] * len(rows)
        return found

    def look_at_each(self, work: Callable[[Any], T]) -> list[T]:
        """Results of ``work`` on each partition, computed where it lies."""
        from dask import delayed

        task, given = delayed(_call, pure=False), delayed(work, pure=False, traverse=False)
        return list(_compute([task(given, part) for part in self.parts]))

    def sum_numbered(self, work: Callable[[tuple[int, Any]], S | None]) -> S:
        """Σ work(number, partition), computed where partitions lie; those of which work makes None do not count."""
        from dask import delayed

        task, total = delayed(_work_on, pure=False), delayed(add_found, pure=False)
        given = delayed(work, pure=False, traverse=False)  # once in the graph, not once for each task
        terms = [task(given, i, part) for i, part in enumerate(self.parts) if self.lengths[i] != 0]
        while len(terms) > 1:
            pairs = [total(terms[i], terms[i + 1]) for i in range(0, len(terms) - 1, 2)]
            terms = pairs + terms[2 * len(pairs) :]
        found: S | None = _compute(terms[:1])[0] if terms else None
        if found is None:
            raise InvalidDataError("the Dask collection has no rows; there is nothing to fit")
        return found


def _compute(tasks: list[Any]) -> Any:
    """The results of tasks; one that ended every worker it was given to is an error with a name."""
    from dask import compute

    try:
        return compute(*tasks)
    except Exception as error:
        if type(error).__name__ != "KilledWorker":
            raise
        raise WorkersLostError(
            "a partition ended every worker that it was given to, most often because it does not fit in their memory; "
            "make partitions smaller, by X.rechunk or X.repartition, or give workers more memory"
        ) from error


def add_found(first: Any, second: Any) -> Any:
    """The sum of two sums, either of which may be None, the sum of nothing."""
    return second if first is None else first if second is None else first + second


def _labelled(table: Any, labels: Any) -> LabelledPiece:
    if len(labels) != length_of(table):
        raise InvalidDataError(
            f"a partition of X has {length_of(table)} rows, and that of y {len(labels)}; both must be cut in the same "
            "places, so repartition one of them, or make y a column of X and give its name"
        )
    return LabelledPiece(table, labels)


def _rows_by_number(piece: Any, rows: IntArray, inside: bool) -> Any:
    chosen = np.zeros(length_of(piece), dtype=bool)
    chosen[rows] = True
    return rows_of(piece, np.flatnonzero(chosen == inside))


def _call(work: Callable[[Any], Any], piece: Any) -> Any:
    return work(piece)


def _work_on(work: Callable[[Any], Any], number: int, piece: Any) -> Any:
    return work((number, piece)) if length_of(piece) else None


def partitions_of(source: Any) -> DaskPartitions | None:
    """The partitions of a Dask collection of rows; None for everything else."""
    return DaskPartitions(source) if is_dask(source) else None
