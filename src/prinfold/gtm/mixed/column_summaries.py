"""Summaries of columns by which their kind is chosen, of all rows at once or block by block: those of blocks add up."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import InvalidDataError
from prinfold.rows.streams import StreamMoments, moments_of

_TEXT = "text"


class RawColumn(NamedTuple):
    """A column as it came: ``values`` are float64 with NaN, or objects with None, where cells are missing.

    ``what`` is "boolean", "integer", "float" or "text"; ``declared`` are the levels that its type names, if any;
    ``dtype`` is the name of that type in a frame.
    """

    name: str
    values: Any
    what: str
    declared: tuple[Any, ...] | None = None
    dtype: str = ""

    @property
    def is_text(self) -> bool:
        """Whether cells are text; all others are numbers."""
        return self.what == _TEXT

    @property
    def there(self) -> Any:
        """(n,) which values are there."""
        return ~np.isnan(self.values) if not self.is_text else np.array([v is not None for v in self.values], bool)

    @property
    def present(self) -> Any:
        """The values that are there."""
        return self.values[self.there]


@dataclass(frozen=True)
class ColumnSummary:
    """Cells of a column: ``n`` of them, the ``first``, and the different ones.

    ``distinct`` are a sorted array of numbers or a set of anything else; None where there are more than ``most``. Of
    numbers ``moments`` are weighted, ``low`` and ``high`` are
    the extremes, and ``infinite`` is the first of the ``n_rows`` rows in which a number is infinite, -1 without one.
    """

    name: str
    what: str
    declared: tuple[Any, ...] | None
    dtype: str
    n: int
    first: Any
    distinct: Any
    most: float
    low: float = math.inf
    high: float = -math.inf
    moments: StreamMoments | None = None
    n_rows: int = 0
    infinite: int = -1

    @property
    def is_text(self) -> bool:
        """Whether cells are text; all others are numbers."""
        return self.what == _TEXT

    def __add__(self, other: ColumnSummary) -> ColumnSummary:
        n_rows = self.n_rows + other.n_rows
        infinite = self.n_rows + other.infinite if self.infinite < 0 <= other.infinite else self.infinite
        if not other.n or not self.n:  # of what type is a column of nothing?
            filled = self if self.n else other
            declared = _join_levels(self.declared, other.declared) if filled.declared else None
            return replace(filled, declared=declared, n_rows=n_rows, infinite=infinite)
        of_type = self if self.what == other.what else self._as_float_with(other)
        both = None if self.distinct is None or other.distinct is None else _union(self.distinct, other.distinct)
        return replace(
            of_type,
            declared=_join_levels(self.declared, other.declared),
            n=self.n + other.n,
            first=self.first,
            distinct=both if both is not None and len(both) <= self.most else None,
            low=min(self.low, other.low),
            high=max(self.high, other.high),
            moments=None if self.moments is None or other.moments is None else self.moments + other.moments,
            n_rows=n_rows,
            infinite=infinite,
        )

    def _as_float_with(self, other: ColumnSummary) -> ColumnSummary:
        """Whole numbers in one block and others in the next are numbers."""
        if {self.what, other.what} != {"integer", "float"}:
            raise InvalidDataError(
                f"column {self.name!r} is {self.what} in one block, such as {self.first!r}, and {other.what} in "
                f"another, such as {other.first!r}; give all blocks of a source the same types"
            )
        return self if self.what == "float" else other

    @property
    def looks_numbered(self) -> bool:
        """Whether values run from the lowest in steps of one, each once; of more than ``most`` by their mean square."""
        if self.high - self.low != self.n - 1:
            return False
        if self.distinct is not None:
            return len(self.distinct) == self.n
        even, found = (self.n**2 - 1) / 12, self.moments
        middle = 0.5 * (self.low + self.high)
        return found is not None and bool(
            abs(float(found.mean[0]) - middle) < 1e-9 * self.n and abs(float(found.variance[0]) / even - 1) < 1e-9
        )


def _union(one: Any, other: Any) -> Any:
    return one | other if isinstance(one, frozenset) else np.union1d(one, other)


def _join_levels(one: tuple[Any, ...] | None, other: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
    """Levels that types name, in the order in which blocks name them."""
    if one is None or other is None:
        return one if other is None else other
    return one if one == other else tuple(dict.fromkeys((*one, *other)))


def summarize(
    raw: RawColumn, weight: FloatArray | None = None, most: float = math.inf, kept: IntArray | None = None
) -> ColumnSummary:
    """The summary of a column, with at most so many different values, over all rows or those ``kept``."""
    there = raw.there
    if kept is not None:
        there &= np.isin(np.arange(len(there)), kept)
    present = raw.values[there]
    distinct = frozenset(present.tolist()) if raw.is_text else np.unique(present)
    first = next(iter(present[:1].tolist()), None)
    some = distinct if len(distinct) <= most else None
    found = ColumnSummary(
        raw.name, raw.what, raw.declared, raw.dtype, len(present), first, some, most, n_rows=len(there)
    )
    if raw.is_text or not len(present):
        return found
    with np.errstate(over="ignore", invalid="ignore"):  # infinities are refused later
        moments = moments_of(present[:, None], None if weight is None else weight[there])
    low, high, infinite = float(present.min()), float(present.max()), -1
    if math.isinf(max(high, -low)):
        infinite = int(np.flatnonzero(there)[np.isinf(present).argmax()])
    return replace(found, low=low, high=high, moments=moments, infinite=infinite)


@dataclass(frozen=True)
class TableSummary:
    """Summaries of the columns of some rows, and the library of the frame that these came in."""

    columns: tuple[ColumnSummary, ...]
    frame: str

    def __add__(self, other: TableSummary) -> TableSummary:
        return replace(self, columns=tuple(a + b for a, b in zip(self.columns, other.columns, strict=True)))


def summarize_all(raw: Iterable[RawColumn], frame: str, weight: FloatArray | None, most: float) -> TableSummary:
    """Summaries of all columns; rows without weight are not looked at."""
    kept = None if weight is None or (weight > 0).all() else np.flatnonzero(weight > 0)
    return TableSummary(tuple(summarize(each, weight, most, kept) for each in raw), frame)
