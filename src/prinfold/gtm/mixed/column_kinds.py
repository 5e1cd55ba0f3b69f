"""The kind of each column of a table and its levels, and columns encoded as numbers (thesis 6.8)."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import narwhals.stable.v1 as nw
import numpy as np
import scipy.sparse

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import Advice, InvalidDataError, InvalidParameterError, Message, join_names
from prinfold.files import storable
from prinfold.files.kinds import Kinds, part, sequence_of, text
from prinfold.gtm.mixed.column_layout import ALL_KINDS, SIZE_FACTOR, ColumnKind, Layout, LevelCoding
from prinfold.gtm.mixed.column_summaries import ColumnSummary, RawColumn, summarize
from prinfold.validation.memory_limits import require_memory
from prinfold.validation.refusals import declared_levels, to_narwhals
from prinfold.validation.settings import Constraint, flag, one_of

_SHOWN = 6
"""Levels that a text names."""

_FEWEST_NAME_LEVELS = 10
"""Levels from which text of which more than half the values differ is taken for names of rows."""

_NEGATIVE_BINOMIAL_RATIO = 1.5
"""Variance over mean from which counts are negative binomial."""


_LEVEL = Constraint(lambda v: isinstance(v, str | int | float | bool), "text or a number")


@storable
@dataclass(frozen=True)
class Column:
    """A column as it was taken: its kind, the levels it has, why, and the type it had in a frame."""

    _kinds: ClassVar[Kinds] = {
        "name": text,
        "kind": one_of(tuple(ALL_KINDS)),
        "levels": sequence_of(_LEVEL),
        "why": text,
        "dtype": text,
        "whole": flag,
    }

    name: str
    kind: str
    levels: tuple[Any, ...] = ()
    why: str = ""
    dtype: str = ""
    whole: bool = False

    @property
    def traits(self) -> ColumnKind:
        """The kind as an object."""
        return ALL_KINDS[self.kind]

    @property
    def width(self) -> int:
        """Number of predictors."""
        return self.traits.width(self.levels)

    @property
    def value_names(self) -> list[str]:
        """Names of the values of :meth:`MixedGTM.inverse_transform`."""
        coding = self.traits.levels
        if coding is not None:
            return [f"{self.name}={level}" for level in coding.predicted(self.levels)]
        return [self.name] * self.width


@storable
@dataclass(frozen=True, repr=False)
class Columns:
    """The columns of a table, in order; ``frame`` is the library of the frame that they came in, if they did."""

    _kinds: ClassVar[Kinds] = {"columns": sequence_of(part("Column")), "frame": text}

    columns: tuple[Column, ...]
    frame: str = ""

    def __repr__(self) -> str:
        wide = max(len(column.name) for column in self.columns)
        lines = []
        for column in self.columns:
            levels = f" [{join_names(column.levels, _SHOWN)}]" if column.levels else ""
            lines.append(f"{column.name:<{wide}}  {column.kind}{levels}: {column.why}")
        return "\n".join(lines)

    def __len__(self) -> int:
        return len(self.columns)

    def __iter__(self) -> Any:
        return iter(self.columns)

    def __getitem__(self, key: int | str) -> Column:
        return self.columns[key if isinstance(key, int) else self.names.index(key)]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @cached_property
    def layout(self) -> Layout:
        """The predictors of each column."""
        return Layout(tuple(c.kind for c in self.columns), tuple(c.width for c in self.columns))

    @property
    def sound(self) -> bool:
        """Whether these can be columns of a model, wherever they come from."""
        found: tuple[Any, ...] = self.columns
        known = all(isinstance(c, Column) and c.kind in ALL_KINDS for c in found)
        return known and all(bool(c.levels) == (c.traits.levels is not None) for c in self.columns)


# ----------------------------------------------------------------------------------------------- reading


def read_columns(X: Any) -> Sequence[RawColumn]:
    """The columns of a frame or of a two-dimensional array."""
    if nw.dependencies.is_into_dataframe(X):
        frame = to_narwhals(X)
        return [_from_series(str(series.name), series) for series in frame.iter_columns()]
    if scipy.sparse.issparse(X):
        return _SparseColumns(X)
    what = _NUMBERS.get(X.dtype.kind)
    if what:
        return [RawColumn(str(j), np.asarray(X[:, j], dtype=np.float64), what) for j in range(X.shape[1])]
    return [_from_objects(str(j), X[:, j].tolist()) for j in range(X.shape[1])]


_NUMBERS = {"b": "boolean", "i": "integer", "u": "integer", "f": "float"}


_NUMBERS_PER_CELL = 4
"""Numbers that are held for each cell of one column: itself, those that are there, and these in order."""


class _SparseColumns(Sequence[RawColumn]):
    """Columns of a sparse matrix, filled in one at a time."""

    def __init__(self, X: Any) -> None:
        n_rows = int(X.shape[0])
        require_memory(f"a column of {n_rows} rows", _NUMBERS_PER_CELL * n_rows, "give fewer rows")
        self.matrix = X.tocsc()

    def __len__(self) -> int:
        return int(self.matrix.shape[1])

    def __getitem__(self, j: Any) -> Any:
        if not 0 <= j < len(self):
            raise IndexError(j)
        values = self.matrix[:, [j]].toarray()[:, 0].astype(np.float64)
        return RawColumn(str(j), values, _NUMBERS[self.matrix.dtype.kind])


def library_of(X: Any) -> str:
    """The library of a frame; nothing of an array."""
    return str(to_narwhals(X).implementation) if nw.dependencies.is_into_dataframe(X) else ""


def _from_series(name: str, series: Any) -> RawColumn:
    kind = series.dtype
    if kind == nw.Boolean or kind.is_integer():
        what = "boolean" if kind == nw.Boolean else "integer"
        return RawColumn(name, _numbers(series), what, (False, True) if what == "boolean" else None, str(kind))
    if kind.is_numeric():
        return RawColumn(name, _numbers(series), "float", None, str(kind))
    levels = declared_levels(series)
    declared = None if levels is None else tuple(levels)
    return _from_objects(name, series.to_list(), declared, str(kind).partition("(")[0])


def _numbers(series: Any) -> FloatArray:
    found: FloatArray = np.array(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    found[series.is_null().to_numpy()] = np.nan
    return found


def _from_objects(name: str, values: list[Any], declared: Any = None, dtype: str = "") -> RawColumn:
    """A column of Python values: booleans or numbers where all of them are, else text."""
    values = [value if type(value) is str else None if _is_missing(value) else value for value in values]
    present = [value for value in values if value is not None]
    if declared is None and present and all(isinstance(value, bool | np.bool_) for value in present):
        return RawColumn(name, _floats(values), "boolean", (False, True), dtype)
    if declared is None and present and not any(isinstance(value, str | bool) for value in present):
        try:
            return RawColumn(name, _floats(values), "float", None, dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidDataError(f"column {name!r} holds neither numbers nor text: {error}") from error
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return RawColumn(name, column, "text", declared, dtype)


def _floats(values: list[Any]) -> FloatArray:
    return np.array([np.nan if value is None else float(value) for value in values])


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in {"NAType", "NaTType"} or _is_nan(value)


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


# ------------------------------------------------------------------------------------------------ typing


def choose_columns(
    raw: Sequence[RawColumn],
    wanted: Any,
    size_factor: Any = None,
    frame: str = "",
    weight: FloatArray | None = None,
    kept: IntArray | None = None,
) -> Columns:
    """Kinds of all columns of a table, by all rows or those ``kept``: as ``wanted``, or by :func:`automatic_kind`."""
    found = choose_kinds([summarize(each, weight, kept=kept) for each in raw], wanted, size_factor, frame)
    for each, column in zip(raw, found, strict=True):
        if not column.levels:
            _refuse_cells(each, column.traits)
    return found


def choose_kinds(columns: Sequence[ColumnSummary], wanted: Any, size_factor: Any = None, frame: str = "") -> Columns:
    """Kinds of all columns from their summaries."""
    names = [column.name for column in columns]
    given = {"auto": {}}.get(wanted) if isinstance(wanted, str) else {_place(k, names): v for k, v in wanted.items()}
    if given is None:
        given = dict.fromkeys(range(len(columns)), wanted)
    if size_factor is not None:
        given[_place(size_factor, names)] = SIZE_FACTOR.name
    return Columns(tuple(_as_column(column, given.get(j)) for j, column in enumerate(columns)), frame)


def _place(key: Any, names: Sequence[str]) -> int:
    """The position of the column that a name or number stands for."""
    if isinstance(key, str):
        if names.count(key) == 1:
            return names.index(key)
        near = difflib.get_close_matches(key, names, 1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; there are {join_names(names, _SHOWN)}"
        raise InvalidParameterError(f"there is no column {key!r}{hint}")
    if not -len(names) <= key < len(names):
        raise InvalidParameterError(f"there is no column {key}: the table has {len(names)}")
    return int(key) % len(names)


def _as_column(found: ColumnSummary, wanted: str | None) -> Column:
    if not found.n:
        raise InvalidDataError(f"column {found.name!r} holds no value in any row; drop it")
    if found.infinite >= 0:
        raise InvalidDataError(
            f"column {found.name!r} contains infinity (inf) in row {found.infinite}; mark what is not known as missing"
        )
    kind, why = (wanted, "as asked for") if wanted else automatic_kind(found)
    coding = ALL_KINDS[kind].levels
    levels = () if coding is None else _levels(found, coding)
    return Column(found.name, kind, levels, why, found.dtype, found.what in {"integer", "boolean"})


def automatic_kind(found: ColumnSummary) -> tuple[str, str]:
    """The kind of a column by its type and values, with the reason.

    Booleans and columns of two levels or whole numbers are Bernoulli, as are floats of nothing but 0 and 1; text and
    categories are categorical; whole numbers from 0 up are counts, Poisson or, where their variance is
    over 1.5 times their mean, negative binomial; all other numbers are Gaussian.
    """
    if found.what == "boolean":
        return "bernoulli", "true or false"
    if found.is_text:
        return _kind_of_text(found)
    if found.what == "float":
        if found.distinct is not None and found.distinct.tolist() == [0.0, 1.0]:
            return "bernoulli", "0 and 1 only"
        return "gaussian", "numbers"
    if found.distinct is not None and len(found.distinct) == 2:
        return "bernoulli", "two whole numbers only"
    _refuse_row_numbers(found)
    if found.low != 0.0:
        return "gaussian", "whole numbers that do not start at 0"
    assert found.moments is not None
    mean, variance = float(found.moments.mean[0]), float(found.moments.variance[0])
    if variance > _NEGATIVE_BINOMIAL_RATIO * mean:
        return "negative_binomial", f"whole numbers from 0 up, variance {variance / mean:.3g} times the mean"
    return "poisson", "whole numbers from 0 up"


def _refuse_row_numbers(found: ColumnSummary) -> None:
    """Raise an error for whole numbers that run from 0 or 1 up, each of them once."""
    if found.n > _FEWEST_NAME_LEVELS and found.low in {0.0, 1.0} and found.looks_numbered:
        raise InvalidDataError(
            Message(
                f"column {found.name!r} holds the numbers {found.low:.0f} to {found.high:.0f}, each once: it looks "
                "like numbers of rows.",
                "drop it",
                Advice("columns", {found.name: "gaussian"}, "say {}"),
            )
        )


def _kind_of_text(found: ColumnSummary) -> tuple[str, str]:
    n, distinct = found.n, math.inf if found.distinct is None else len(found.distinct)
    if (distinct == n > 2 or distinct > max(_FEWEST_NAME_LEVELS, n / 2)) and not found.declared:
        raise InvalidDataError(
            Message(
                f"column {found.name!r} has {_number_of(found)} different values in {n} rows, such as "
                f"{found.first!r}: it looks like names of rows rather than levels.",
                "drop it",
                Advice("columns", {found.name: "categorical"}, "say {}"),
            )
        )
    n_levels = len(found.declared) if found.declared else int(distinct)
    return ("bernoulli", "two levels") if n_levels == 2 else ("categorical", f"{n_levels} level{'s' * (n_levels > 1)}")


def _number_of(found: ColumnSummary) -> str:
    """Number of different values, in words."""
    return f"more than {found.most:.0f}" if found.distinct is None else str(len(found.distinct))


def _levels(found: ColumnSummary, coding: LevelCoding) -> tuple[Any, ...]:
    """The levels of a column: those its type declares, else those that occur, in order."""
    if found.declared:
        levels = tuple(found.declared)
    elif found.distinct is None:
        raise InvalidDataError(
            f"column {found.name!r} has {_number_of(found)} different values, which are too many for levels; drop it, "
            "or join values that are rare"
        )
    else:
        whole = found.what == "integer"
        distinct = found.distinct if found.is_text else found.distinct.tolist()
        levels = tuple(
            sorted(map(int, distinct) if whole else distinct, key=lambda value: (type(value).__name__, value))
        )
        if coding.most == 2 and not found.is_text and set(levels) <= {0, 1}:  # one of which may be missing
            levels = (0, 1) if whole else (0.0, 1.0)
    odd = next((level for level in levels if not isinstance(level, str | bool | int | float)), None)
    if odd is not None:
        raise InvalidDataError(f"column {found.name!r} has the level {odd!r}, which is neither text nor a number")
    if len(levels) > coding.most:
        raise InvalidDataError(
            f"column {found.name!r} has {len(levels)} levels ({join_names(levels, _SHOWN)}), but a bernoulli column "
            "has two; call it 'categorical'"
        )
    return levels


# ---------------------------------------------------------------------------------------------- encoding


def encode(raw: RawColumn, column: Column, unseen: str, of: str = "") -> FloatArray:
    """(n,) numbers of a column, levels by their place among the levels; NaN where a cell is missing.

    ``of`` says to errors what rows are counted in.
    """
    if not len(raw.present) and not column.traits.gives_factors:  # of what type is a column of nothing?
        return np.full(len(raw.values), np.nan)
    if not column.levels:
        _refuse_cells(raw._replace(name=column.name), column.traits, of)
        return np.asarray(raw.values, dtype=np.float64)
    place: dict[Any, float] = {level: float(i) for i, level in enumerate(column.levels)}
    place[None] = np.nan
    values = raw.values.tolist()
    if not raw.is_text:
        values = [None if _is_missing(value) else value for value in values]
    codes = np.array([place.get(value, -1.0) for value in values])
    strange = codes < 0
    if strange.any() and unseen == "error":
        row = int(np.argmax(strange))
        raise InvalidDataError(
            Message(
                f"column {column.name!r} holds the level {values[row]!r} in row {row}{of}, which the model has not "
                f"seen; it knows {join_names(column.levels, _SHOWN)}.",
                Advice("unseen", "missing", "set {} to treat such cells as missing"),
            )
        )
    return np.where(strange, np.nan, codes)


def _refuse_cells(raw: RawColumn, kind: ColumnKind, of: str = "") -> None:
    """Raise an error for a column whose values its kind cannot have."""
    name, values = raw.name, raw.values
    if raw.is_text:
        row = next((i for i, value in enumerate(values) if value is not None), 0)
        raise InvalidDataError(
            f"column {name!r} holds text, such as {values[row]!r} in row {row}{of}, but was to be {kind.name}; it "
            "can be 'categorical' or 'bernoulli'"
        )
    if kind.cells is not None and (bad := kind.cells.refused(values)).any():
        row = int(np.argmax(bad))
        raise InvalidDataError(f"column {name!r} holds {values[row]:g} in row {row}{of}, but {kind.cells.needed}")
