"""Sequences that are read block by block, or lie in partitions: whole ones at a time, whatever the source is cut into.

A column holds the names of the sequences, whose rows follow each other. Blocks are put together until a sequence ends;
the partitions of a Dask collection must hold whole sequences. What a pass finds of some sequences adds up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import DegenerateWarning, InvalidDataError, warn_caller
from prinfold.gtm.sequence.model import SequenceRows, in_sequences
from prinfold.rows.blocks import Blocks
from prinfold.rows.column_selection import ColumnReader, Key, Numbers, take_columns
from prinfold.rows.rows import Rows
from prinfold.rows.streams import BlockFindings, BlockReader, BlockStream, Survey, most_in_sample, stream_of
from prinfold.rows.tree_sums import S, TreeSum
from prinfold.validation.refusals import refuse_columns_without_values, refuse_other_names, refuse_scale


class Chunk(NamedTuple):
    """Whole sequences: their rows, ``cuts`` (S + 1,) between them, the ``first`` and ``last`` name, and ``n_read``.

    Sequences without a weight or without a value are left out; ``unseen`` are those without a value.
    """

    rows: Numbers
    cuts: IntArray
    first: Any
    last: Any
    n_read: int
    unseen: int


@dataclass(frozen=True)
class SequenceReader:
    """Reads pieces of a source as rows with the names of their sequences; it can be sent to where the rows are."""

    columns: ColumnReader
    group: Key

    def read(self, piece: Any) -> tuple[Numbers, Any]:
        """Rows, and the name of the sequence that each belongs to."""
        names = take_columns(piece, (self.group,), None).table
        found = np.empty(len(names), dtype=object)
        found[:] = _values(names)
        missing = next((i for i, each in enumerate(found) if each is None or each != each), None)  # noqa: PLR0124
        if missing is not None:
            raise InvalidDataError(
                f"row {missing} of a block belongs to no sequence: column {self.group!r} has {found[missing]!r} there"
            )
        return self.columns.read(piece), found

    def chunk(self, rows: Numbers, names: Any) -> Chunk:
        """Rows as whole sequences, those that count."""
        begins = np.flatnonzero(np.append(True, names[1:] != names[:-1]))
        cuts = np.append(begins, len(names))
        weighty = np.ones(len(begins), dtype=bool)
        if rows.weight is not None:
            lengths = np.diff(cuts)
            if (rows.weight != np.repeat(rows.weight[begins], lengths)).any():
                odd = int(np.argmax(rows.weight != np.repeat(rows.weight[begins], lengths)))
                raise InvalidDataError(
                    f"rows of one sequence cannot weigh differently, but those of {names[odd]!r} do; give all of its "
                    "rows the same weight"
                )
            weighty = rows.weight[begins] > 0
        empty = np.logical_and.reduceat(np.isnan(rows.table).all(axis=1), begins)
        kept = weighty & ~empty
        found = rows if kept.all() else rows.part(np.flatnonzero(np.repeat(kept, np.diff(cuts))))
        own = np.append(0, np.cumsum(np.diff(cuts)[kept]))
        return Chunk(found, own, names[0], names[-1], len(names), int((empty & weighty).sum()))

    def whole(self, piece: Any) -> Chunk:
        """A piece that holds whole sequences."""
        return self.chunk(*self.read(piece))

    def chunks(self, source: Blocks) -> Iterator[Chunk]:
        """All sequences of a source, about a block of rows at a time."""
        waiting: list[tuple[Numbers, Any]] = []
        n_waiting = 0
        for piece in source.pieces():
            waiting.append(self.read(piece))
            n_waiting += len(waiting[-1][1])
            if n_waiting < source.rows and source.partitions is None:
                continue
            rows, names = _join(waiting)
            ends = np.flatnonzero(names[1:] != names[:-1])
            end = int(ends[-1]) + 1 if len(ends) else 0
            if end:
                yield self.chunk(rows.part(slice(end)), names[:end])
            waiting, n_waiting = [(rows.part(slice(end, None)), names[end:])], len(names) - end
        if waiting:
            yield self.chunk(*_join(waiting))


def _join(waiting: list[tuple[Numbers, Any]]) -> tuple[Numbers, Any]:
    return Numbers.join([rows for rows, _ in waiting]), np.concatenate([names for _, names in waiting])


def _values(names: Any) -> list[Any]:
    """The values of a table of one column."""
    if hasattr(names, "to_pydict"):  # of Arrow
        column: list[Any] = names.column(0).to_pylist()
        return column
    values = np.asarray(names.to_numpy() if hasattr(names, "to_numpy") else names)
    found: list[Any] = values.reshape(-1).tolist()
    return found


# ------------------------------------------------------------------------------------------------ a first pass


@dataclass(frozen=True)
class _Summary:
    """Findings of some sequences, and a sample of whole ones: those with the smallest numbers drawn."""

    found: BlockFindings
    rows: Numbers
    lengths: IntArray
    draws: FloatArray
    most: int
    n_rows: int
    unseen: int
    ends: tuple[Any, Any]

    def __add__(self, other: _Summary) -> _Summary:
        if self.ends[1] == other.ends[0]:
            raise InvalidDataError(
                f"sequence {self.ends[1]!r} goes on in the next partition, but each partition must hold whole "
                "sequences; set_index by the column of their names, or repartition where they end"
            )
        kept = _keep_smallest(
            Numbers.join([self.rows, other.rows]),
            np.concatenate([self.lengths, other.lengths]),
            np.concatenate([self.draws, other.draws]),
            self.most,
        )
        n_rows, unseen = self.n_rows + other.n_rows, self.unseen + other.unseen
        return _Summary(self.found + other.found, *kept, self.most, n_rows, unseen, (self.ends[0], other.ends[1]))


def _keep_smallest(
    rows: Numbers, lengths: IntArray, draws: FloatArray, most: int
) -> tuple[Numbers, IntArray, FloatArray]:
    """Sequences with the smallest numbers, as many as ``most`` rows hold; of a longer one its beginning."""
    if lengths.sum() <= most:
        return rows, lengths, draws
    order = np.argsort(draws, kind="stable")
    fits = np.cumsum(lengths[order]) <= most
    if not fits[0]:
        first, start = order[:1], int(lengths[: order[0]].sum())
        return rows.part(slice(start, start + most)), np.array([most]), draws[first]
    chosen = np.sort(order[fits])
    taken = np.zeros(len(lengths), dtype=bool)
    taken[chosen] = True
    return rows.part(np.flatnonzero(np.repeat(taken, lengths))), lengths[chosen], draws[chosen]


@dataclass(frozen=True)
class _SequenceLook:
    """Looks at whole sequences; numbers are drawn by the number of their chunk."""

    reader: SequenceReader
    blocks: BlockReader
    seed: int
    most: int
    first_rows: IntArray | None = None

    def __call__(self, numbered: tuple[int, Any]) -> _Summary:
        """The summary of a partition, given with its number."""
        assert self.first_rows is not None
        return self.at(numbered[0], self.reader.whole(numbered[1]), int(self.first_rows[numbered[0]]))

    def at(self, i: int, chunk: Chunk, first_row: int) -> _Summary:
        """The summary of a chunk, by its number and that of its first row."""
        rows, lengths = chunk.rows, np.diff(chunk.cuts)
        if len(rows.table):
            found = replace(self.blocks.look(rows, first_row)[0], unseen=(0, -1), n_read=chunk.n_read)
        else:
            found = BlockFindings(chunk.n_read, 0.0, False, np.inf, -np.inf, (0, -1), None)
        draws = np.random.default_rng([self.seed, i]).random(len(lengths))
        kept = _keep_smallest(Numbers(rows.table.copy(), rows.weight), lengths, draws, self.most)
        return _Summary(found, *kept, self.most, len(rows.table), chunk.unseen, (chunk.first, chunk.last))


class SequenceSurvey(NamedTuple):
    """A first pass over sequences: findings, the lengths of those in the sample, and how to read them again."""

    survey: Survey
    lengths: IntArray
    source: Blocks
    reader: SequenceReader


def survey_sequences(
    source: Blocks, group: Key, make_rng: Callable[[], np.random.Generator], *, accept_missing: bool, min_rows: int
) -> SequenceSurvey:
    """A first pass over a source whose column ``group`` names the sequence of each row."""
    features, (key,) = source.without([group], "groups")
    reader = SequenceReader(features.reader, key)
    blocks = BlockReader(features.names, accept_missing)
    look = _SequenceLook(reader, blocks, int(make_rng().integers(2**31 - 1)), most_in_sample(features.row_bytes))
    if features.partitions is not None and source.partitions is not None:
        lengths = np.array(features.partitions.lengths, dtype=np.int64)
        source.partitions.lengths = features.partitions.lengths
        found = source.partitions.sum_numbered(replace(look, first_rows=np.cumsum(lengths) - lengths))
    else:
        tree, n_read = TreeSum[_Summary](), 0
        for i, chunk in enumerate(reader.chunks(source)):
            tree.put(i, look.at(i, chunk, n_read))
            n_read += chunk.n_read
        found = tree.total()
    _refuse(found, features.names, min_rows)
    if found.unseen:
        warn_caller(f"{found.unseen} sequence(s) have no value in any row; a fit ignores them", DegenerateWarning)
    survey = Survey(features, found.found, found.n_rows, found.rows)
    return SequenceSurvey(survey, found.lengths, source, reader)


def _refuse(found: _Summary, names: Any, min_rows: int) -> None:
    """Refuse sequences that cannot be fitted."""
    if found.n_rows < min_rows or found.found.moments is None:
        raise InvalidDataError(
            f"the source has {found.found.n_read} row(s), of which {found.n_rows} are in a sequence with a value and a "
            f"weight, but at least {min_rows} are needed"
        )
    if not np.isfinite(found.found.total):
        raise InvalidDataError("the sum of the weights overflows; divide them by their largest")
    refuse_columns_without_values(np.flatnonzero(found.found.moments.weight == 0), names)
    refuse_scale(found.rows.table.dtype, found.found.low, found.found.high, fitting=True)


def mean_over_sequences(estimator: Any, source: Blocks, group: Key, of_rows: Callable[[Rows], FloatArray]) -> float:
    """Weighted mean over all rows of the numbers that ``of_rows`` gives for each, given its sequence."""
    features, (key,) = source.without([group], "groups")
    refuse_other_names(estimator, features.names)
    reader, sums = SequenceReader(features.reader, key), np.zeros(2)
    for chunk in reader.chunks(source):
        table, weight = chunk.rows
        if len(table):
            own = np.ones(len(table)) if weight is None else weight
            sums += own @ of_rows(in_sequences(estimator._rows(table), chunk.cuts)).astype(np.float64), own.sum()
    if not sums[1] > 0:
        raise InvalidDataError("no sequence of the source has a weight and a value; there is nothing to score")
    return float(sums[0] / sums[1])


# ----------------------------------------------------------------------------------------------- every later one


@dataclass(frozen=True)
class SequenceStream(BlockStream):
    """Sequences that come some at a time; those of the sample, between ``cuts``, are here like any others."""

    cuts: IntArray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    source: Blocks | None = None
    reader: SequenceReader | None = None

    @property
    def sample(self) -> SequenceRows:
        return in_sequences(Rows(**{each.name: getattr(self, each.name) for each in fields(Rows)}), self.cuts)

    def portions(self) -> Iterator[Rows]:
        """Whole sequences, about a block of rows at a time; the source must give as many rows as the first time."""
        assert self.source is not None
        assert self.reader is not None
        n_read, n_counted, make = 0, 0, self._maker
        for chunk in self.reader.chunks(self.source):
            n_read += chunk.n_read
            rows = make(chunk)
            if rows is not None:
                n_counted += len(rows.table)
                yield rows
        self._refuse_change(n_read, n_counted)

    def sum_portions(self, work: Callable[[Rows], S]) -> S:
        """Σ work(portion); where partitions of a Dask collection lie elsewhere, it is done there."""
        assert self.source is not None
        assert self.reader is not None
        if self.source.partitions is None:
            return Rows.sum_portions(self, work)
        found: S = self.source.partitions.sum_numbered(_OfPartition(self.reader, self._maker, work))
        return found

    @property
    def _maker(self) -> _ChunkMaker:
        return _ChunkMaker(self.offset, self.block_rows, self.gaps, self.scale)


@dataclass(frozen=True)
class _ChunkMaker:
    """Makes rows in sequences of a chunk, about the mean of all."""

    offset: FloatArray
    block_rows: int
    gaps: bool
    scale: FloatArray | None

    def __call__(self, chunk: Chunk) -> SequenceRows | None:
        """The sequences of a chunk; None where none of them counts."""
        if len(chunk.cuts) < 2:
            return None
        table, weight = chunk.rows
        rows = Rows(table, self.offset, weight, self.block_rows, self.gaps, scale=self.scale)
        return in_sequences(rows, chunk.cuts)


@dataclass(frozen=True)
class _OfPartition:
    """Work on sequences as work on numbered partitions; it can be sent to another process."""

    reader: SequenceReader
    make: _ChunkMaker
    work: Callable[[Rows], Any]

    def __call__(self, numbered: tuple[int, Any]) -> Any:
        rows = self.make(self.reader.whole(numbered[1]))
        return None if rows is None else self.work(rows)


def stream_of_sequences(found: SequenceSurvey, width: int) -> SequenceStream:
    """The sequences that were surveyed, with ``width`` derived numbers for each row."""
    plain = stream_of(found.survey, width)
    known = {each.name: getattr(plain, each.name) for each in fields(BlockStream)}
    cuts = np.append(0, np.cumsum(found.lengths))
    return SequenceStream(**known, cuts=cuts, source=found.source, reader=found.reader)
