"""Rows of a Dask array or frame: read partition by partition, or added up where they lie.

A sum is a graph of tasks: one for each partition, then additions by the same binary tree as threads and blocks use, so
that what comes back is one sum, equal to the last bit to that of blocks with the same cuts. Parameters travel within
the graph, which the scheduler keeps: a worker that dies takes nothing along that cannot be computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isnan
from typing import Any, TypeVar

from prinfold.exceptions import InvalidDataError, WorkersLostError
from prinfold.rows.column_selection import length_of
from prinfold.rows.tree_sums import Summable
from prinfold.validation.dask_verbs import is_dask, refuse_other_axes

S = TypeVar("S", bound=Summable)
T = TypeVar("T")


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


def _call(work: Callable[[Any], Any], piece: Any) -> Any:
    return work(piece)


def _work_on(work: Callable[[Any], Any], number: int, piece: Any) -> Any:
    return work((number, piece)) if length_of(piece) else None


def partitions_of(source: Any) -> DaskPartitions | None:
    """The partitions of a Dask collection of rows; None for everything else."""
    return DaskPartitions(source) if is_dask(source) else None
