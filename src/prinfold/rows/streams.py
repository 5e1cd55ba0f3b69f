"""Rows that are never all at hand: what a first pass finds of them, and every later one.

The first pass finds what stays fixed in training: how many rows count, the mean and the variances of the columns, gaps,
and a sample that stands for all rows wherever some are enough. Every later pass adds up the sums of an E-step, block by
block, so that memory does not depend on the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, fields, replace
from functools import cached_property, reduce
from typing import Any, ClassVar

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import InvalidDataError
from prinfold.rows.blocks import Blocks
from prinfold.rows.column_selection import Numbers
from prinfold.rows.dask_partitions import add_found
from prinfold.rows.rows import Rows, as_rows
from prinfold.rows.sent_portions import SentPortions
from prinfold.rows.tree_sums import S, TreeSum
from prinfold.validation.refusals import refuse_columns_without_values, refuse_non_finite, refuse_scale

_SAMPLE_ROWS = 65_536
_SAMPLE_BYTES = 2**24
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
        self._few: list[Numbers] = []
        self._drawn: _KeptByDraws | None = None
        self.n_rows = 0
        self.most = _SAMPLE_ROWS

    def add(self, rows: Numbers) -> None:
        """Take in the next rows."""
        if self.n_rows == 0:
            self.most = most_in_sample(rows.table.shape[1] * rows.table.dtype.itemsize)
        self.n_rows += len(rows.table)
        if self.n_rows <= self.most:
            self._few.append(Numbers(rows.table.copy(), rows.weight))  # a view would hold on to all of its table
            return
        if self._drawn is None:
            self._drawn = _KeptByDraws.like(rows, self.most, self._make_rng())
            while self._few:
                self._drawn.add(self._few.pop(0))
        self._drawn.add(rows)

    def rows(self) -> Numbers:
        """The rows that were kept, in the order in which they came."""
        return Numbers.join(self._few) if self._drawn is None else self._drawn.in_order()


@dataclass
class _KeptByDraws:
    """As many rows as there are places, those with the smallest draws; a row that is drawn takes the place of another.

    So memory is taken once, where joining those that stay with those that come would take it anew for every block.
    ``draws`` and ``numbers`` are those of the rows in the places, of which the first ``n_seen`` are taken.
    """

    places: Numbers
    draws: FloatArray
    numbers: IntArray
    rng: np.random.Generator
    n_seen: int = 0

    @classmethod
    def like(cls, rows: Numbers, most: int, rng: np.random.Generator) -> _KeptByDraws:
        """So many empty places for rows like some."""
        table = np.empty((most, rows.table.shape[1]), dtype=rows.table.dtype)
        places = Numbers(table, None if rows.weight is None else np.empty(most, dtype=rows.weight.dtype))
        return cls(places, np.full(most, np.inf), np.arange(most), rng)

    def add(self, rows: Numbers) -> None:
        """Draw a number for each of the next rows, and keep those with the smallest of all."""
        draws = self.rng.random(len(rows.table))
        most, chosen = len(self.draws), np.flatnonzero(draws < self.draws.max())
        all_draws = np.concatenate([self.draws, draws[chosen]])
        kept = np.argpartition(all_draws, most - 1)[:most]
        left = np.ones(most, dtype=bool)
        left[kept[kept < most]] = False
        free, new = np.flatnonzero(left), chosen[np.sort(kept[kept >= most]) - most]
        self.places.table[free], self.draws[free], self.numbers[free] = rows.table[new], draws[new], self.n_seen + new
        if self.places.weight is not None and rows.weight is not None:
            self.places.weight[free] = rows.weight[new]
        self.n_seen += len(draws)

    def in_order(self) -> Numbers:
        """The rows in the order in which they came."""
        return self.places.part(np.argsort(self.numbers))


def most_in_sample(row_bytes: int) -> int:
    """Rows of a sample at most, by the bytes of each."""
    return int(np.clip(_SAMPLE_BYTES // row_bytes, _FEWEST_IN_SAMPLE, _SAMPLE_ROWS))


@dataclass(frozen=True)
class BlockFindings:
    """Counts, sums and extremes of some rows as they were read, in the order of the source; neighbours add up.

    ``unseen`` holds how many rows have no value, and the number of the first of them.
    """

    n_read: int
    total: float
    gaps: bool
    low: float
    high: float
    unseen: tuple[int, int]
    moments: StreamMoments | None

    def __add__(self, other: BlockFindings) -> BlockFindings:
        first = self.unseen[1] if self.unseen[0] else other.unseen[1]
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused in the end
            total, moments = self.total + other.total, add_found(self.moments, other.moments)
        return BlockFindings(
            self.n_read + other.n_read,
            total,
            self.gaps or other.gaps,
            min(self.low, other.low),
            max(self.high, other.high),
            (self.unseen[0] + other.unseen[0], first),
            moments,
        )


@dataclass(frozen=True)
class BlockReader:
    """Looks at a block; it can be sent to where the rows are."""

    names: tuple[str, ...] | None
    accept_missing: bool

    def look(self, rows: Numbers, first_row: int) -> tuple[BlockFindings, Numbers]:
        """Findings of a block that begins with that row of the source, and the rows of it that count."""
        low, high = extremes(rows.table, self.names, first_row, accept_missing=self.accept_missing)
        gaps = bool(np.isnan(rows.table.min()))
        nothing = np.flatnonzero(np.isnan(rows.table).all(axis=1)) if gaps else np.empty(0, dtype=np.intp)
        unseen = (len(nothing), first_row + int(nothing[0])) if len(nothing) else (0, -1)
        kept = rows_with_values(rows)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused in the end
            total = float(len(kept.table) if kept.weight is None else kept.weight.sum())
            moments = _moments_in_parts(kept) if len(kept.table) else None
        return BlockFindings(len(rows.table), total, gaps, low, high, unseen, moments), kept


def _moments_in_parts(rows: Numbers) -> StreamMoments:
    parts = as_rows(rows.table).slices
    return reduce(
        lambda found, more: found + more,
        (moments_of(rows.table[part], None if rows.weight is None else rows.weight[part]) for part in parts),
    )


@dataclass(frozen=True)
class Survey:
    """Result of a first pass over a source: what was found, how many rows count, and a sample of these."""

    blocks: Blocks
    found: BlockFindings
    n_rows: int
    sample: Numbers

    @property
    def moments(self) -> StreamMoments:
        assert self.found.moments is not None
        return self.found.moments


def survey(
    blocks: Blocks, make_rng: Callable[[], np.random.Generator], *, accept_missing: bool, min_rows: int
) -> Survey:
    """A first pass over a source, where its rows are."""
    if blocks.partitions is not None:
        return survey_partitions(blocks, make_rng, accept_missing, min_rows)
    sample, tree, n_read = StreamSample(make_rng), TreeSum[BlockFindings](), 0
    for i, block in enumerate(blocks.weighted()):
        found, kept = BlockReader(blocks.names, accept_missing).look(block, n_read)
        tree.put(i, found)
        n_read += found.n_read
        if len(kept.table):
            sample.add(kept)
    _require_rows(n_read, sample.n_rows, min_rows)
    return _checked(Survey(blocks, tree.total(), sample.n_rows, sample.rows()))


def _require_rows(n_read: int, n_rows: int, min_rows: int) -> None:
    if n_rows < min_rows:
        raise InvalidDataError(
            f"the source has {n_read} row(s), of which {n_rows} have a value and a weight, but at least "
            f"{min_rows} are needed"
        )


def _checked(survey: Survey) -> Survey:
    """The survey, if its rows can be fitted."""
    found, names = survey.found, survey.blocks.names
    if not np.isfinite(found.total):
        raise InvalidDataError("the sum of the weights overflows; divide them by their largest")
    refuse_columns_without_values(np.flatnonzero(survey.moments.weight == 0), names)
    refuse_scale(survey.sample.table.dtype, found.low, found.high, fitting=True)
    return survey


# ------------------------------------------------------------------------------- a survey where the partitions lie


def survey_partitions(
    blocks: Blocks, make_rng: Callable[[], np.random.Generator], accept_missing: bool, min_rows: int
) -> Survey:
    """The same of a Dask collection: rows are counted where they lie, then looked at; only the sample comes here.

    With the number of the first row of each partition known, it draws what one pass over all rows would draw for it.
    """
    counts = np.array(blocks.count_partitions(_count_rows), dtype=np.intp)
    ends = np.cumsum(counts, axis=0)
    n_read, n_rows = map(int, ends[-1])
    _require_rows(n_read, n_rows, min_rows)
    most = most_in_sample(blocks.row_bytes)
    rng = make_rng() if n_rows > most else None
    look = _PartitionLook(BlockReader(blocks.names, accept_missing), rng, most, ends - counts)
    found: _PartitionSummary = blocks.sum_numbered_partitions(look)
    return _checked(Survey(blocks, found.found, n_rows, found.rows))


def _count_rows(block: Numbers) -> tuple[int, int]:
    """Number of rows that were read, and how many count."""
    return len(block.table), len(rows_with_values(block).table)


@dataclass(frozen=True)
class _PartitionSummary:
    """Findings of some partitions, and their part of the sample, with the numbers drawn for its rows."""

    found: BlockFindings
    rows: Numbers
    draws: FloatArray | None
    most: int

    def __add__(self, other: _PartitionSummary) -> _PartitionSummary:
        rows = Numbers.join([self.rows, other.rows])
        draws = None if self.draws is None or other.draws is None else np.concatenate([self.draws, other.draws])
        return _PartitionSummary(self.found + other.found, *_smallest(rows, draws, self.most), self.most)


def _smallest(rows: Numbers, draws: FloatArray | None, most: int) -> tuple[Numbers, FloatArray | None]:
    """The rows with the smallest numbers, in their order; all of them where no number is drawn."""
    if draws is None or len(draws) <= most:
        return rows, draws
    kept = np.sort(np.argpartition(draws, most - 1)[:most])
    return rows.part(kept), draws[kept]


@dataclass(frozen=True)
class _PartitionLook:
    """Looks at one partition; ``first`` has the numbers of its first row, of all and of those that count."""

    reader: BlockReader
    rng: np.random.Generator | None
    most: int
    first: IntArray

    def __call__(self, numbered: tuple[int, Numbers]) -> _PartitionSummary:
        i, block = numbered
        found, kept = self.reader.look(block, int(self.first[i, 0]))
        draws = None if self.rng is None else _draws_from(self.rng, int(self.first[i, 1]), len(kept.table))
        return _PartitionSummary(found, *_smallest(kept, draws, self.most), self.most)


def _draws_from(rng: np.random.Generator, start: int, n: int) -> FloatArray:
    """(n,) numbers of a generator after the first ``start``, which is left as it is."""
    own = deepcopy(rng)
    if isinstance(own.bit_generator, np.random.PCG64 | np.random.PCG64DXSM):
        own.bit_generator.advance(start)  # one step for each number
        return own.random(n)
    for begin in range(0, start, _SAMPLE_ROWS):
        own.random(min(_SAMPLE_ROWS, start - begin))
    return own.random(n)


@dataclass(frozen=True)
class BlockStream(Rows):
    """Rows that come block by block. Where some are enough, those of the sample are here like any other rows.

    ``portions`` reads the source once more, and gives its rows one block at a time.
    """

    blocks: Blocks | None = None
    n_read: int = 0
    n_counted: int = 0
    at_hand: ClassVar[bool] = False

    @property
    def sample(self) -> Rows:
        return Rows(**{each.name: getattr(self, each.name) for each in fields(Rows)})

    def portions(self) -> Iterator[Rows]:
        """The rows of each block that count; the source must give as many rows as the first time."""
        return self._portions(self._portion_maker)

    def _portions(self, make: PortionMaker) -> Iterator[Rows]:
        assert self.blocks is not None
        n_read, n_counted = 0, 0
        for block in self.blocks.weighted():
            n_read += len(block.table)
            if n_read > self.n_read:
                break
            found = make(block)
            if found is not None:
                n_counted += len(found.table)
                yield found
        self._refuse_change(n_read, n_counted)

    def _refuse_change(self, n_read: int, n_counted: int) -> None:
        """Refuse a source that gives another number of rows than at first, or has lost cells or weights."""
        _refuse_other_count(self.n_read, n_read, "rows")
        _refuse_other_count(self.n_counted, n_counted, "rows with a value and a weight")

    def sum_portions(self, work: Callable[[Rows], S]) -> S:
        """Σ work(portion); where partitions of a Dask collection lie elsewhere, it is done there."""
        assert self.blocks is not None
        if self.device is not None and not self.gaps:
            measured = replace(self._portion_maker, measured=True)  # what is missing by now shows on the device
            return self._sent.sum(lambda: self._portions(measured), work, self.portions)
        if self.blocks.partitions is None:
            return super().sum_portions(work)
        found: S = self.blocks.sum_partitions(_PortionWork(self._portion_maker, work))
        return found

    @cached_property
    def _sent(self) -> SentPortions:
        assert self.device is not None
        return SentPortions(self.device, 4 * self.n_read * (self.n_columns + 1))

    @property
    def _portion_maker(self) -> PortionMaker:
        return PortionMaker(self.offset, self.block_rows, self.gaps, self.scale)


def _refuse_other_count(n_before: int, n_now: int, what: str) -> None:
    if n_now != n_before:
        now = f"more than {n_before}" if n_now > n_before else str(n_now)
        raise InvalidDataError(
            f"the source changed while it was trained on: it gave {n_before} {what} at first and {now} now; a "
            "function must return a fresh iterator over the same rows each time it is called"
        )


def _refuse_lost_cells(table: FloatArray) -> None:
    """Refuse rows of a source without gaps that has some by now, or numbers that are not finite."""
    if not np.isfinite(float(table.min()) + float(table.max())):
        raise InvalidDataError(
            "the source changed while it was trained on: all of its cells were finite numbers at first, and some are "
            "missing or infinite now; a function must return a fresh iterator over the same rows each time it is called"
        )


@dataclass(frozen=True)
class PortionMaker:
    """Makes rows of a block: those that count, about the mean of all."""

    offset: FloatArray
    block_rows: int
    gaps: bool
    scale: FloatArray | None
    measured: bool = False
    """Whether no cell is looked at to find rows without a value."""

    def __call__(self, block: Numbers) -> Rows | None:
        """The rows of a block; None where none of them counts."""
        kept = rows_with_weight(block) if self.measured else rows_with_values(block)
        if not self.gaps and not self.measured and len(kept.table):
            _refuse_lost_cells(kept.table)
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
    kept = found.sample
    weight = kept.weight
    if found.n_rows > len(kept.table):  # the sample weighs as much as all rows, or penalties would weigh more beside it
        own = np.ones(len(kept.table)) if weight is None else weight
        weight = own * (found.found.total / own.sum())
    moments = found.moments
    block_rows = as_rows(kept.table, width=width).block_rows
    known: dict[str, Any] = {"gaps": found.found.gaps, "variances": moments.variance}
    counts: dict[str, Any] = {"n_read": found.found.n_read, "n_counted": found.n_rows}
    return BlockStream(kept.table, moments.mean, weight, block_rows, **known, **counts, blocks=found.blocks)


def rows_with_values(rows: Numbers) -> Numbers:
    """Rows that have a weight and of which something was measured."""
    if np.isnan(rows.table.min()):
        rows = rows.part(np.flatnonzero(~np.isnan(rows.table).all(axis=1)))
    return rows_with_weight(rows)


def rows_with_weight(rows: Numbers) -> Numbers:
    """Rows that have a weight."""
    if rows.weight is None or rows.weight.all():
        return rows
    return rows.part(np.flatnonzero(rows.weight))


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
