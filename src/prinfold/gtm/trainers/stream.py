"""Rows that are never all at hand: what a first pass finds of them, and every later one.

The first pass finds what stays fixed in training: how many rows count, the mean and the variances of the columns, gaps,
and a sample that stands for all rows wherever some are enough. Every later pass adds up the sums of an E-step, block by
block, so that memory does not depend on the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from prinfold._typing import FloatArray
from prinfold.exceptions import InvalidDataError
from prinfold.rows.blocks import Blocks
from prinfold.rows.column_selection import Numbers
from prinfold.rows.rows import Rows, as_rows
from prinfold.rows.tree_sums import S
from prinfold.validation.refusals import refuse_columns_without_values, refuse_non_finite, refuse_scale

_SAMPLE_ROWS = 65_536
_SAMPLE_BYTES = 2**26
_FEWEST_IN_SAMPLE = 4096
"""Rows of the sample: at most so many, and fewer where they would take more memory, but not fewer than the last."""


@dataclass(frozen=True)
class StreamMoments:
    """Weight, mean and sum of squared deviations of each column (D,), over what is there of it.

    They add up by Chan, Golub & LeVeque's rule, which keeps all digits of data far from the origin.
    """

    weight: FloatArray
    mean: FloatArray
    square: FloatArray

    def __add__(self, other: StreamMoments) -> StreamMoments:
        total = self.weight + other.weight
        share = other.weight / np.where(total > 0, total, 1.0)
        gap = other.mean - self.mean
        square = self.square + other.square + self.weight * share * np.square(gap)
        return StreamMoments(total, self.mean + share * gap, square)

    @property
    def variance(self) -> FloatArray:
        return np.asarray(self.square / np.where(self.weight > 0, self.weight, 1.0))


def moments_of(table: FloatArray, weight: FloatArray | None) -> StreamMoments:
    """Those of a few rows."""
    block = table.astype(np.float64, copy=False)
    seen = ~np.isnan(block)
    counts = (seen if weight is None else weight[:, None] * seen).astype(np.float64, copy=False)
    total = counts.sum(axis=0)
    some = np.where(total > 0, total, 1.0)
    # A value of each column is taken off first, or the squares of a large mean would swamp the rest.
    anchor = np.nan_to_num(block[seen.argmax(axis=0), np.arange(block.shape[1])])
    gap = np.where(seen, block - anchor, 0.0)
    shift = (counts * gap).sum(axis=0) / some
    return StreamMoments(total, anchor + shift, (counts * np.square(gap - shift)).sum(axis=0))


class StreamSample:
    """Rows kept of a stream: all of them, in order, while they are few; else as many as fit, each as likely as another.

    Every row draws a number and those with the smallest are kept, so that the sample depends on the seed and on the
    order of the rows, but not on how they are cut into blocks. No number is drawn before it is needed.
    """

    def __init__(self, make_rng: Callable[[], np.random.Generator]) -> None:
        self._make_rng = make_rng
        self._rng: np.random.Generator | None = None
        self._kept: list[Numbers] = []
        self._draws = np.empty(0)
        self.n_rows = 0
        self.most = _SAMPLE_ROWS

    def add(self, rows: Numbers) -> None:
        """Take in the next rows."""
        if self.n_rows == 0:
            row_bytes = rows.table.shape[1] * rows.table.dtype.itemsize
            self.most = int(np.clip(_SAMPLE_BYTES // row_bytes, _FEWEST_IN_SAMPLE, _SAMPLE_ROWS))
        before, self.n_rows = self.n_rows, self.n_rows + len(rows.table)
        if self.n_rows <= self.most:
            self._kept.append(Numbers(rows.table.copy(), rows.weight))  # a view would hold on to all of its table
            return
        if self._rng is None:
            self._rng = self._make_rng()
            self._draws = self._rng.random(before)
        self._replace(rows, self._rng.random(len(rows.table)))

    def _replace(self, rows: Numbers, draws: FloatArray) -> None:
        limit = np.inf if len(self._draws) < self.most else self._draws.max()
        promising = np.flatnonzero(draws < limit)
        joined = Numbers.join([*self._kept, rows.part(promising)])
        all_draws = np.concatenate([self._draws, draws[promising]])
        if len(all_draws) > self.most:
            kept = np.sort(np.argpartition(all_draws, self.most - 1)[: self.most])
            joined, all_draws = joined.part(kept), all_draws[kept]
        self._kept, self._draws = [joined], all_draws

    def rows(self) -> Numbers:
        """The rows that were kept, in the order in which they came."""
        return Numbers.join(self._kept)


@dataclass
class Survey:
    """Result of a first pass over a source. ``n_read`` rows were read; those that count are ``n_rows``."""

    blocks: Blocks
    accept_missing: bool
    sample: StreamSample
    n_read: int = 0
    total: float = 0.0
    gaps: bool = False
    low: float = np.inf
    high: float = -np.inf
    n_unseen: int = 0
    first_unseen: int = -1
    """Rows that have no value."""
    moments: StreamMoments | None = None

    @property
    def n_rows(self) -> int:
        return self.sample.n_rows

    def add(self, rows: Numbers) -> None:
        """Take in the next rows as they were read."""
        low, high = extremes(rows.table, self.blocks.names, self.n_read, accept_missing=self.accept_missing)
        self.low, self.high = min(self.low, low), max(self.high, high)
        self.gaps |= bool(np.isnan(rows.table.min()))
        if self.gaps:
            self._count_unseen(rows.table)
        self.n_read += len(rows.table)
        rows = rows_with_values(rows)
        if len(rows.table):
            with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused in the end
                self._add_up(rows)
            self.sample.add(rows)

    def _add_up(self, rows: Numbers) -> None:
        self.total += len(rows.table) if rows.weight is None else float(rows.weight.sum())
        for part in as_rows(rows.table).slices:
            found = moments_of(rows.table[part], None if rows.weight is None else rows.weight[part])
            self.moments = found if self.moments is None else self.moments + found

    def _count_unseen(self, table: FloatArray) -> None:
        nothing = np.flatnonzero(np.isnan(table).all(axis=1))
        if len(nothing) and not self.n_unseen:
            self.first_unseen = self.n_read + int(nothing[0])
        self.n_unseen += len(nothing)

    def check(self, min_rows: int) -> None:
        """Refuse what cannot be fitted."""
        if self.n_rows < min_rows or self.moments is None:
            raise InvalidDataError(
                f"the source has {self.n_read} row(s), of which {self.n_rows} have a value and a weight, but at least "
                f"{min_rows} are needed"
            )
        if not np.isfinite(self.total):
            raise InvalidDataError("the sum of the weights overflows; divide them by their largest")
        refuse_columns_without_values(np.flatnonzero(self.moments.weight == 0), self.blocks.names)
        refuse_scale(self.sample.rows().table.dtype, self.low, self.high, fitting=True)


def survey(
    blocks: Blocks, make_rng: Callable[[], np.random.Generator], *, accept_missing: bool, min_rows: int
) -> Survey:
    """A first pass over a source."""
    found = Survey(blocks, accept_missing, StreamSample(make_rng))
    for block in blocks.weighted():
        found.add(block)
    found.check(min_rows)
    return found


@dataclass(frozen=True)
class BlockStream(Rows):
    """Rows that come block by block. Where some are enough, those of the sample are here like any other rows.

    ``portions`` reads the source once more, and gives its rows one block at a time.
    """

    blocks: Blocks | None = None
    n_read: int = 0
    at_hand: ClassVar[bool] = False

    @property
    def sample(self) -> Rows:
        return Rows(**{each.name: getattr(self, each.name) for each in fields(Rows)})

    def portions(self) -> Iterator[Rows]:
        """The rows of each block that count; the source must give as many rows as the first time."""
        assert self.blocks is not None
        n_read, make = 0, self._portion_maker
        for block in self.blocks.weighted():
            n_read += len(block.table)
            if n_read > self.n_read:
                break
            found = make(block)
            if found is not None:
                yield found
        if n_read != self.n_read:
            now = f"more than {self.n_read}" if n_read > self.n_read else str(n_read)
            raise InvalidDataError(
                f"the source changed while it was trained on: it gave {self.n_read} rows at first and {now} now; a "
                "function must return a fresh iterator over the same rows each time it is called"
            )

    def sum_portions(self, work: Callable[[Rows], S]) -> S:
        """Σ work(portion); where partitions of a Dask collection lie elsewhere, it is done there."""
        assert self.blocks is not None
        if self.blocks.partitions is None:
            return super().sum_portions(work)
        found: S = self.blocks.sum_partitions(_PortionWork(self._portion_maker, work))
        return found

    @property
    def _portion_maker(self) -> PortionMaker:
        return PortionMaker(self.offset, self.block_rows, self.gaps, self.scale)


@dataclass(frozen=True)
class PortionMaker:
    """Makes rows of a block: those that count, about the mean of all."""

    offset: FloatArray
    block_rows: int
    gaps: bool
    scale: FloatArray | None

    def __call__(self, block: Numbers) -> Rows | None:
        """The rows of a block; None where none of them counts."""
        kept = rows_with_values(block)
        if not len(kept.table):
            return None
        return Rows(kept.table, self.offset, kept.weight, self.block_rows, self.gaps, scale=self.scale)


@dataclass(frozen=True)
class _PortionWork:
    """Work on portions as work on blocks; it can be sent to another process."""

    make: PortionMaker
    work: Callable[[Rows], Any]

    def __call__(self, block: Numbers) -> Any:
        rows = self.make(block)
        return None if rows is None else self.work(rows)


def stream_of(found: Survey, width: int) -> BlockStream:
    """The rows that were surveyed, with ``width`` derived numbers for each."""
    assert found.moments is not None
    kept = found.sample.rows()
    weight = kept.weight
    if found.n_rows > len(kept.table):  # the sample weighs as much as all rows, or penalties would weigh more beside it
        own = np.ones(len(kept.table)) if weight is None else weight
        weight = own * (found.total / own.sum())
    moments = found.moments
    block_rows = as_rows(kept.table, width=width).block_rows
    known: dict[str, Any] = {"gaps": found.gaps, "variances": moments.variance}
    return BlockStream(kept.table, moments.mean, weight, block_rows, **known, blocks=found.blocks, n_read=found.n_read)


def rows_with_values(rows: Numbers) -> Numbers:
    """Rows that have a weight and of which something was measured."""
    seen = np.ones(len(rows.table), dtype=bool) if rows.weight is None else rows.weight > 0
    if np.isnan(rows.table.min()):
        seen &= ~np.isnan(rows.table).all(axis=1)
    return rows if seen.all() else rows.part(np.flatnonzero(seen))


def extremes(table: FloatArray, names: Any, first_row: int, *, accept_missing: bool) -> tuple[float, float]:
    """Smallest and largest number of a block; what is not finite is refused, and NaN unless it may be missing."""
    low, high = float(table.min()), float(table.max())
    if np.isfinite(high - low):
        return low, high
    if not accept_missing or np.isinf(table).any():
        refuse_non_finite(np.where(np.isnan(table), 0.0, table) if accept_missing else table, names, first_row)
    if np.isnan(table).all():
        return np.inf, -np.inf
    return float(np.fmin.reduce(table, axis=None)), float(np.fmax.reduce(table, axis=None))
