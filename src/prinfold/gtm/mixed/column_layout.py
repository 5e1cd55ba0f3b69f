"""Kinds of columns of a mixed table, one object each, and the predictors that the columns of a table have (thesis 6.8).

A kind says in its fields what differs between columns: the family of its cells, how levels are coded, which cells it
takes. Nothing else asks for the name of a kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import softmax

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.files import storable
from prinfold.files.kinds import Kinds, sequence_of
from prinfold.gtm.mixed.exponential_families import BERNOULLI, CATEGORICAL, POISSON, Family
from prinfold.validation.settings import integer, one_of


class LevelCoding(NamedTuple):
    """Levels of a column in predictors.

    ``predicted`` are the levels that have a predictor; ``shares`` (n, levels) those of all levels at predictors η, and
    ``complete`` (n, levels) the same of expectations of cells. ``most`` is the largest number of levels.
    """

    predicted: Callable[[Sequence[Any]], Sequence[Any]]
    shares: Callable[[FloatArray], FloatArray]
    complete: Callable[[FloatArray], FloatArray]
    most: float = inf


def _two_shares(eta: FloatArray) -> FloatArray:
    """(n, 2) shares of two levels, each by itself so that neither is lost to rounding."""
    return np.asarray(softmax(np.hstack([np.zeros_like(eta), eta]), axis=1))


def _both_shares(share: FloatArray) -> FloatArray:
    return np.hstack([1.0 - share, share])


def _last_level(levels: Sequence[Any]) -> Sequence[Any]:
    return levels[-1:]


def _every_level(levels: Sequence[Any]) -> Sequence[Any]:
    return levels


def _shares(eta: FloatArray) -> FloatArray:
    return np.asarray(softmax(eta, axis=1))


def _as_they_are(shares: FloatArray) -> FloatArray:
    return shares


TWO_LEVELS = LevelCoding(_last_level, _two_shares, _both_shares, most=2)
ALL_LEVELS = LevelCoding(_every_level, _shares, _as_they_are)


class CellRule(NamedTuple):
    """Cells (n,) that a kind does not take, and what it needs, in words."""

    refused: Callable[[FloatArray], BoolArray]
    needed: str


def _no_counts(values: FloatArray) -> BoolArray:
    return np.asarray(~np.isnan(values) & ((values < 0) | (values != np.floor(values))))


def _no_factors(values: FloatArray) -> BoolArray:
    return np.asarray(~(values > 0) | np.isinf(values))


@dataclass(frozen=True)
class ColumnKind:
    """Everything in which columns of one kind differ from those of another.

    ``family`` is that of its cells, None where they are Gaussian or not modelled; ``levels`` how these are coded, None
    of numbers. ``counts`` are of a rate times the size factor of the row, and where they are ``scattered`` that rate
    varies by a gamma variable: negative binomial counts are Poisson counts given that variable.
    A column ``gives_factors`` if it says how much was looked at for the counts of a row; it has no gaps.
    """

    name: str
    family: Family | None = None
    levels: LevelCoding | None = None
    gaussian: bool = False
    counts: bool = False
    scattered: bool = False
    gives_factors: bool = False
    cells: CellRule | None = None

    def width(self, levels: Sequence[Any]) -> int:
        """Number of predictors of a column with these levels."""
        return 1 - self.gives_factors if self.levels is None else len(self.levels.predicted(levels))


def _counts(name: str, **own: Any) -> ColumnKind:
    rule = CellRule(_no_counts, f"{name} counts must be whole numbers of at least 0")
    return ColumnKind(name, POISSON, counts=True, cells=rule, **own)


GAUSSIAN = ColumnKind("gaussian", gaussian=True)
TWO_SIDED = ColumnKind("bernoulli", BERNOULLI, TWO_LEVELS)
MANY_SIDED = ColumnKind("categorical", CATEGORICAL, ALL_LEVELS)
COUNTS, SCATTERED_COUNTS = _counts("poisson"), _counts("negative_binomial", scattered=True)
SIZE_FACTOR = ColumnKind(
    "size_factor", gives_factors=True, cells=CellRule(_no_factors, "size factors must be finite and above zero")
)

KINDS = {kind.name: kind for kind in (GAUSSIAN, TWO_SIDED, MANY_SIDED, COUNTS, SCATTERED_COUNTS)}
"""Kinds that a column can be asked to be of."""

ALL_KINDS = KINDS | {SIZE_FACTOR.name: SIZE_FACTOR}


@storable
@dataclass(frozen=True)
class Layout:
    """The predictors of each column: its kind, in ``kinds``, and how many predictors it has, in ``widths``."""

    _kinds: ClassVar[Kinds] = {
        "kinds": sequence_of(one_of(tuple(ALL_KINDS)), "D"),
        "widths": sequence_of(integer(0), "D"),
    }

    kinds: tuple[str, ...]
    widths: tuple[int, ...]

    @cached_property
    def columns(self) -> tuple[ColumnKind, ...]:
        """(D,) the kind of each column."""
        return tuple(ALL_KINDS[name] for name in self.kinds)

    @cached_property
    def source(self) -> IntArray:
        """(D',) the column of each predictor."""
        return np.repeat(np.arange(len(self.kinds)), self.widths)

    @cached_property
    def starts(self) -> IntArray:
        """(D,) the first predictor of each column."""
        return np.concatenate([[0], np.cumsum(self.widths)[:-1]]).astype(np.int64)

    @property
    def n_predictors(self) -> int:
        return int(sum(self.widths))

    @cached_property
    def factor_column(self) -> int | None:
        """The column of size factors, if there is one."""
        return next((j for j, kind in enumerate(self.columns) if kind.gives_factors), None)

    def part(self, column: int) -> slice:
        """The predictors of a column."""
        return slice(int(self.starts[column]), int(self.starts[column]) + self.widths[column])

    @cached_property
    def gaussian_columns(self) -> IntArray:
        """Columns of numbers with Gaussian noise."""
        return np.flatnonzero([kind.gaussian for kind in self.columns])

    @cached_property
    def gaussian(self) -> IntArray:
        """Predictors of the Gaussian columns."""
        return self._predictors_of([kind.gaussian for kind in self.columns])

    @cached_property
    def levels(self) -> IntArray:
        """Predictors of levels."""
        return self._predictors_of([kind.levels is not None for kind in self.columns])

    @cached_property
    def exclusive(self) -> IntArray:
        """Predictors of columns with one for each level."""
        return self._predictors_of([kind.family is not None and kind.family.exclusive for kind in self.columns])

    @cached_property
    def scattered(self) -> IntArray:
        """Predictors of negative binomial columns."""
        return self._predictors_of([kind.scattered for kind in self.columns])

    def _predictors_of(self, chosen: Sequence[bool]) -> IntArray:
        return np.flatnonzero([chosen[column] for column in self.source])

    @cached_property
    def counted(self) -> IntArray:
        """Columns of counts."""
        return np.flatnonzero([kind.counts for kind in self.columns])

    @cached_property
    def with_family(self) -> list[tuple[int, slice, Family]]:
        """Columns of which an exponential family is fitted, with their predictors."""
        return [(j, self.part(j), kind.family) for j, kind in enumerate(self.columns) if kind.family is not None]
