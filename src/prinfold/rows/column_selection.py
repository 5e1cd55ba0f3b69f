"""Columns taken from a source, and pieces of it as arrays of numbers.

A piece is whatever a source gives at a time: an array, a sparse matrix, a frame or an Arrow table. The first piece
decides what the columns are; all others, of this pass and of later ones, must have the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import narwhals.stable.v1 as nw
import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import InvalidDataError, InvalidParameterError, UnsupportedInputError, join_names
from prinfold.rows.rows import dense
from prinfold.validation.refusals import refuse_dates, refuse_text
from prinfold.validation.sparse_structure import refuse_broken_structure
from prinfold.validation.tables import fill_masked, rows_of

Key = str | int
"""A column by name, or by number, from 0 on."""

_NUMBERS = "biufO"
"""Kinds of arrays that may be numbers; objects are converted, which fails where they are not."""


class ColumnReader(Protocol):
    """Turns pieces of a source into numbers."""

    @property
    def keys(self) -> tuple[Key, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def names(self) -> tuple[str, ...] | None: ...
    def read(self, piece: Any) -> Numbers: ...


class Numbers(NamedTuple):
    """Rows as numbers (n, D), and their weights (n,) where they have some."""

    table: FloatArray
    weight: FloatArray | None

    def part(self, rows: slice | IntArray) -> Numbers:
        """Some of the rows."""
        return Numbers(self.table[rows], None if self.weight is None else self.weight[rows])

    @classmethod
    def join(cls, blocks: Sequence[Numbers]) -> Numbers:
        """The rows of several blocks, one after the other."""
        if len(blocks) == 1:
            return blocks[0]
        weights = [each.weight for each in blocks if each.weight is not None]
        return cls(np.concatenate([each.table for each in blocks]), np.concatenate(weights) if weights else None)


@dataclass(frozen=True)
class ColumnSelection:
    """Columns to take from each piece of a table: by name in frames, by number in arrays.

    ``width`` is how many columns a piece without names has.
    """

    keys: tuple[Key, ...]
    weight: Key | None
    dtype: np.dtype[Any]
    width: int | None

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns, where they have some."""
        return None if self.width is not None else tuple(map(str, self.keys))

    def read(self, piece: Any) -> Numbers:
        """A piece in numbers."""
        columns = _Columns.of(piece)
        self._refuse_others(columns)
        found = columns.numbers(self.keys)
        table = found.astype(self.dtype, copy=False) if found.dtype != np.float64 else self._cast_to_first_block(found)
        return Numbers(table, columns.weights(self.weight))

    def _cast_to_first_block(self, found: FloatArray) -> FloatArray:
        """Double precision in that of the first block, where nothing is lost: whole numbers, for example."""
        with np.errstate(over="ignore"):
            table = found.astype(self.dtype, copy=False)
        lost = (table != found) & ~np.isnan(found)
        if lost.any():
            raise InvalidDataError(
                "blocks of a source must have one precision: the first were float32, then one came that holds "
                f"{found[lost][0]!r}, which float32 would round; turn all of them into the same, for example by "
                "block.astype('float32')"
            )
        return table

    def _refuse_others(self, columns: _Columns) -> None:
        """Raise an error where the columns of a piece are not those of the first."""
        if (columns.names is None) != (self.width is not None):
            kinds = ("with names", "without") if self.width is None else ("without names", "with them")
            raise InvalidDataError(
                f"blocks of a source must be alike: the first had columns {kinds[0]}, then a block {kinds[1]} came"
            )
        if columns.names is None and columns.width != self.width:
            raise InvalidDataError(
                f"blocks of a source must have the same columns: the first had {self.width}, then a block of "
                f"{columns.width} came"
            )
        missing = [key for key in (*self.keys, self.weight) if columns.lacks(key)]
        if missing:
            raise InvalidDataError(
                f"a block has no column {missing[0]!r}, which the first block had; it has {_quoted(columns.names)}"
            )


def select_columns(piece: Any, columns: Sequence[Key] | None, weight: Key | None) -> ColumnSelection:
    """The columns to take, found from the first piece of a source."""
    found = _Columns.of(piece)
    kept, own = found.chosen(columns, weight)
    dtype = found.numbers(kept).dtype
    return ColumnSelection(kept, own, dtype, found.width if found.names is None else None)


class PieceColumns(NamedTuple):
    """Some columns of a piece as they came, and the weights of its rows (n,) where they have some."""

    table: Any
    weight: FloatArray | None


def take_columns(piece: Any, columns: Sequence[Key] | None, weight: Key | None) -> PieceColumns:
    """Some columns of a piece and its weights, before they are turned into numbers."""
    found = _Columns.of(piece)
    kept, own = found.chosen(columns, weight)
    if found.names is not None:
        return PieceColumns(found.piece.select(list(kept)).to_native(), found.weights(own))
    taken: Any = found.piece if kept == found.keys else found.piece[:, list(kept)]
    return PieceColumns(taken, found.weights(own))


def keys_apart(
    piece: Any, columns: Sequence[Key] | None, weight: Key | None, taken: Sequence[Key], what: str
) -> tuple[tuple[Key, ...], tuple[Key, ...]]:
    """Keys of the chosen columns but for those ``taken``, and the keys of these; errors name the argument ``what``."""
    found = _Columns.of(piece)
    own = tuple(found.key(each, what) for each in taken)
    kept = tuple(key for key in found.chosen(columns, weight)[0] if key not in own)
    if not kept:
        raise InvalidDataError("there is no column left beside those that were named")
    return kept, own


def length_of(piece: Any) -> int:
    """Number of rows of a piece."""
    shape = getattr(piece, "shape", None)
    if shape is None or len(shape) == 0:
        raise UnsupportedInputError(
            f"a block of a source must be a table of numbers, an array or a frame; got {type(piece).__name__}"
        )
    return int(shape[0])


def cut(piece: Any, most: int) -> Iterator[Any]:
    """A piece in pieces of at most so many rows."""
    refuse_broken_structure(piece)
    n_rows = length_of(piece)
    if n_rows <= most:
        yield piece
        return
    piece = piece.tocsr() if hasattr(piece, "tocsr") else piece
    for start in range(0, n_rows, most):
        yield rows_of(piece, slice(start, min(start + most, n_rows)))


@dataclass(frozen=True)
class _Columns:
    """The columns of a piece: ``names`` where it is a frame."""

    piece: Any
    width: int
    names: tuple[str, ...] | None

    @classmethod
    def of(cls, piece: Any) -> _Columns:
        piece = fill_masked(piece)
        if nw.dependencies.is_into_dataframe(piece):
            names = tuple(getattr(piece, "column_names", piece.columns))
            if not all(isinstance(name, str) for name in names):
                return cls.of(piece.to_numpy())  # names that are numbers are no names, as for scikit-learn
            twice = [name for i, name in enumerate(names) if name in names[:i]]
            if twice:
                raise InvalidDataError(f"a block has two columns of the name {twice[0]!r}; rename one of them")
            return cls(nw.from_native(piece, eager_only=True), len(names), names)
        if len(piece.shape) != 2:
            raise InvalidDataError(
                f"a block must have two dimensions, rows and columns; got shape {tuple(piece.shape)}. Reshape it: "
                "block.reshape(-1, 1) if it is one column, block.reshape(1, -1) if it is one row"
            )
        return cls(piece, int(piece.shape[1]), None)

    @property
    def keys(self) -> tuple[Key, ...]:
        return tuple(range(self.width)) if self.names is None else self.names

    def key(self, wanted: Key, what: str) -> Key:
        """The key under which the piece holds a column."""
        if isinstance(wanted, str):
            if self.names is None:
                raise InvalidParameterError(
                    f"{what} names {wanted!r}, but the source is of arrays, whose columns have no names; give its "
                    "number, from 0 on"
                )
            if wanted not in self.names:
                raise InvalidParameterError(f"{what} names {wanted!r}, but the source has {_quoted(self.names)}")
            return wanted
        if not -self.width <= wanted < self.width:
            raise InvalidParameterError(
                f"{what} asks for column {wanted}, but the source has {self.width} columns, from 0 on"
            )
        return self.keys[wanted]

    def chosen(self, columns: Sequence[Key] | None, weight: Key | None) -> tuple[tuple[Key, ...], Key | None]:
        """The keys of the columns to take, and that of the weights."""
        own = None if weight is None else self.key(weight, "weight")
        wanted = self.keys if columns is None else tuple(self.key(each, "columns") for each in columns)
        kept = tuple(key for key in wanted if key != own) if columns is None else wanted
        if not kept:
            raise InvalidDataError("there is no column left: the source has none but that of the weights")
        if own in kept:
            raise InvalidParameterError(f"column {own!r} cannot be both among the columns and the weight")
        return kept, own

    def weights(self, key: Key | None) -> FloatArray | None:
        """(n,) weights of the rows, where a column holds them."""
        if key is None:
            return None
        weight = self.numbers((key,))[:, 0].astype(np.float64)
        if not (np.isfinite(weight) & (weight >= 0)).all():
            bad = weight[~(np.isfinite(weight) & (weight >= 0))][0]
            raise InvalidDataError(f"weights must be finite and not negative, but column {key!r} holds {bad:g}")
        return weight

    def lacks(self, key: Key | None) -> bool:
        return isinstance(key, str) and self.names is not None and key not in self.names

    def numbers(self, keys: Sequence[Key]) -> FloatArray:
        """(n, len(keys)) those columns in single precision where they all are, else in double."""
        if self.names is None:
            whole = tuple(keys) == tuple(range(self.width))
            taken: Any = self.piece if whole else self.piece[:, list(keys)]
            return _as_floats(dense(taken), taken)
        columns = [_as_floats(_values(self.piece[key]), self.piece.select(key).to_native()) for key in keys]
        out = np.empty((len(columns[0]), len(columns)), dtype=np.result_type(*(each.dtype for each in columns)))
        for j, column in enumerate(columns):
            out[:, j] = column
        return out


def _values(column: Any) -> Any:
    """A column of a frame; True, False and nothing as numbers, or they would be objects, and so what NumPy has not."""
    return (column.cast(nw.Float64) if column.dtype in {nw.Boolean, nw.Int128, nw.UInt128} else column).to_numpy()


def _as_floats(values: Any, native: Any) -> FloatArray:
    """Numbers in single precision where they are, else in double; an error names a value that is no number."""
    if values.dtype in (np.float32, np.float64) and values.dtype.isnative:
        found: FloatArray = values
        return found
    refuse_dates(native)
    try:
        if values.dtype.kind not in _NUMBERS:
            raise ValueError(f"a block holds {values.dtype}, which are no numbers.")
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        words = str(error)
        try:
            refuse_text(native)
        except InvalidDataError as known:
            words = str(known)
        raise InvalidDataError(f"{words} Or leave a column out: say by columns= which to read.") from error


def _quoted(names: Sequence[str] | None) -> str:
    return join_names(map(repr, names or ()), 8)
