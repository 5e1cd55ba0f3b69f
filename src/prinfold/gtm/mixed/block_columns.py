"""Mixed columns (thesis 6.8) that are read block by block: a first pass finds their kinds, then blocks are encoded.

The kinds and levels are those of all rows, as of a table in memory. Wherever numbers are read afterwards, the encoded
blocks stand for the source, so that everything else is that of numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from prinfold._typing import FloatArray
from prinfold.exceptions import InvalidDataError
from prinfold.gtm.mixed.column_kinds import Columns, encode, library_of, read_columns
from prinfold.gtm.mixed.column_summaries import RawColumn, TableSummary, summarize_all
from prinfold.rows.blocks import Blocks
from prinfold.rows.column_selection import Key, Numbers, PieceColumns, take_columns
from prinfold.validation.refusals import refuse_dates

_MOST_LEVELS = 10_000
"""Different values of a column that are kept over all blocks; each level would be a predictor."""


def summarize_blocks(blocks: Blocks) -> TableSummary:
    """Summaries of the columns over all rows of a source: one pass, where the rows are."""
    found: TableSummary = blocks.sum_pieces(_LookAtColumns(blocks.columns, blocks.weight))
    return found


@dataclass(frozen=True)
class _LookAtColumns:
    """Summarises the columns of a piece; it can be sent to where the rows are."""

    columns: tuple[Key, ...] | None
    weight: Key | None

    def __call__(self, piece: Any) -> TableSummary:
        taken = take_columns(piece, self.columns, self.weight)
        return summarize_all(_raw(taken), library_of(taken.table), taken.weight, _MOST_LEVELS)


def _raw(taken: PieceColumns) -> list[RawColumn]:
    refuse_dates(taken.table)
    return list(read_columns(taken.table))


@dataclass(frozen=True)
class EncodedColumns:
    """Pieces of a source as numbers: levels by their place among the levels of all rows.

    It stands where :class:`~prinfold.rows.column_selection.ColumnSelection` does for numbers.
    """

    columns: Columns
    unseen: str
    keys: tuple[Key, ...]
    weight: Key | None
    dtype: np.dtype[Any]

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns, where they have some."""
        return tuple(self.columns.names) if self.columns.frame else None

    def read(self, piece: Any) -> Numbers:
        """A piece in numbers."""
        taken = take_columns(piece, self.keys, self.weight)
        raw = _raw(taken)
        if len(raw) != len(self.columns):
            raise InvalidDataError(
                f"blocks of a source must have the same columns: there were {len(self.columns)} at first, then a block "
                f"of {len(raw)} came"
            )
        cells = [
            encode(each, column, self.unseen, " of a block") for each, column in zip(raw, self.columns, strict=True)
        ]
        table: FloatArray = np.stack(cells, axis=1).astype(self.dtype, copy=False)
        return Numbers(table, taken.weight)


def encoded_blocks(blocks: Blocks, columns: Columns, unseen: str) -> Blocks:
    """A source of blocks with its columns encoded as numbers."""
    if columns.frame:
        keys: tuple[Key, ...] = tuple(columns.names)
    else:
        keys = tuple(int(name) for name in columns.names) if blocks.columns is None else blocks.columns
    return blocks.read_by(EncodedColumns(columns, unseen, keys, blocks.weight, np.dtype(np.float64)))
