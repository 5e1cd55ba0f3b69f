"""Sequences as they are handed in: rows with lengths or with names, lists of tables, arrays of three axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import DegenerateWarning, InvalidDataError, InvalidParameterError, warn_caller
from prinfold.validation.refusals import column_values, to_narwhals
from prinfold.validation.tables import check_weight, has_gaps


class Paths(NamedTuple):
    """Likeliest paths: ``latent`` (n, Q) coordinates and ``nodes`` (n,) of the nodes that each row's path is at."""

    latent: Any
    nodes: Any


class Order(NamedTuple):
    """Bounds ``cuts`` (S + 1,) of the sequences among rows taken in the order ``rows`` (n,), or as they are."""

    cuts: IntArray
    rows: IntArray | None

    @property
    def lengths(self) -> IntArray:
        return np.diff(self.cuts)

    def sorted(self, values: Any) -> Any:
        """Values of rows, or None, in the order of the sequences."""
        return values if values is None or self.rows is None else values[self.rows]

    def unsorted(self, values: Any) -> Any:
        """Values of rows in the order of the sequences, put back into the order in which the rows were given."""
        return values if self.rows is None else values[np.argsort(self.rows, kind="stable")]


@dataclass(frozen=True)
class Arranged:
    """A table ``X`` of all rows, with the lengths or names of their sequences; see :func:`arrange`.

    ``kind`` is ``"table"``, ``"list"`` or ``"array"``, as which results that belong to rows are handed back.
    """

    X: Any
    lengths: Any = None
    names: Any = None
    kind: str = "table"

    @property
    def plain(self) -> bool:
        """Whether nothing is said of sequences, so that each row is one."""
        return self.lengths is None and self.names is None

    def order(self, n_rows: int) -> Order:
        """The order of the sequences among ``n_rows`` rows."""
        if self.names is not None:
            return _order_by_name(self.names, n_rows)
        lengths = np.ones(n_rows, dtype=np.int64) if self.lengths is None else check_lengths(self.lengths, n_rows)
        return Order(np.append(0, np.cumsum(lengths)), None)

    def stacked(self, values: Any) -> Any:
        """Errors of rows, given in the form in which the rows were, as one array."""
        if values is None or self.kind == "table":
            return values
        parts = [np.asarray(part, dtype=np.float64) for part in values]
        if [len(part) for part in parts] != list(self.lengths):
            raise InvalidDataError(
                f"errors come in parts of {_first([len(part) for part in parts])} rows, but the sequences of X have "
                f"{_first(self.lengths)}; give the errors of each sequence"
            )
        return np.concatenate(parts)

    def in_given_form(self, found: Any, order: Order) -> Any:
        """Values of rows, (n, …), in the form in which the rows were given."""
        if isinstance(found, Paths):
            return Paths(*(self.in_given_form(each, order) for each in found))
        if self.kind == "list":
            return [found[a:b] for a, b in zip(order.cuts[:-1], order.cuts[1:], strict=True)]
        if self.kind == "array" and isinstance(found, np.ndarray):
            return found.reshape(len(order.cuts) - 1, -1, *found.shape[1:])
        return order.unsorted(found)


def arrange(X: Any, lengths: Any = None, groups: Any = None) -> Arranged:
    """One table of all rows, with the lengths or names of their sequences.

    ``X`` is a table, with ``lengths`` of sequences that follow each other, or with ``groups``, names of the sequences
    that rows belong to or the column that has them; or a list of tables or an array (S, T, D), a sequence each.
    """
    if _is_several(X):
        if lengths is not None or groups is not None:
            raise InvalidDataError(
                "X is several sequences already, which have lengths of their own; leave out lengths and groups"
            )
        return _join_sequences(X)
    if groups is None:
        return Arranged(X, lengths)
    if lengths is not None:
        raise InvalidDataError("lengths and groups say the same; give one of them")
    return Arranged(*_split_off_column(X, groups)) if isinstance(groups, str) else Arranged(X, names=groups)


def column_of_names(lengths: Any, groups: Any) -> str | int:
    """The column that names the sequences of a source whose rows are never all here."""
    if lengths is not None or not isinstance(groups, str | int) or isinstance(groups, bool):
        raise InvalidParameterError(
            "with Blocks and Dask frames groups is the name or number of the column that names the sequence of each "
            "row, and lengths are not given"
        )
    return groups


def check_lengths(lengths: Any, n_rows: int) -> IntArray:
    """(S,) rows of each sequence, which add up to all rows."""
    found = np.asarray(lengths)
    if found.ndim != 1 or found.dtype.kind not in "iu" or not len(found):
        raise InvalidDataError(
            f"lengths must be whole numbers, the rows of each sequence, got {lengths!r}; one sequence of all rows is "
            f"lengths=[{n_rows}]"
        )
    empty = np.flatnonzero(found < 1)
    if len(empty):
        raise InvalidDataError(
            f"sequence {empty[0]} has a length of {found[empty[0]]}, but a sequence has at least one row; leave it out"
        )
    total = int(found.sum(dtype=np.int64))
    if total != n_rows:
        raise InvalidDataError(
            f"the {len(found)} lengths add up to {total}, but X has {n_rows} rows; each row belongs to one sequence"
        )
    return found.astype(np.int64)


def sequence_weight(sample_weight: Any, order: Order) -> FloatArray | None:
    """(S,) weights of the sequences, or None for equal ones."""
    n_rows, n = int(order.cuts[-1]), len(order.cuts) - 1
    if sample_weight is not None and n != n_rows and np.shape(sample_weight) == (n_rows,):
        raise InvalidDataError(
            f"sample_weight has a number for each of the {n_rows} rows, but rows of one sequence cannot weigh "
            f"differently; give one for each of the {n} sequences"
        )
    return check_weight(sample_weight, np.empty((n, 1)))


def sequences_with_weight(weight: FloatArray | None, order: Order) -> tuple[IntArray, IntArray]:
    """Rows of the sequences that have a weight, in their order, and where those begin and end."""
    rows = np.arange(order.cuts[-1]) if order.rows is None else order.rows
    if weight is None:
        return rows, order.cuts
    lengths = order.lengths[weight > 0]
    return rows[np.repeat(weight > 0, order.lengths)], np.append(0, np.cumsum(lengths))


def refuse_empty_sequences(table: FloatArray, fewest: int) -> None:
    """Steps may be missing, but not all of them."""
    seen = table.shape[0]
    if seen and has_gaps(table):
        seen = int((~np.isnan(table)).any(axis=1).sum())
    if seen < fewest:
        raise InvalidDataError(f"only {seen} row(s) have a value, but at least {fewest} are needed")


def seen_weight(weight: FloatArray | None, table: FloatArray, order: Order) -> FloatArray | None:
    """(S,) weights of the sequences, none for those without a value: they would only hold up the learning of steps."""
    unseen = warn_about_empty_steps(order.sorted(table), order.cuts) if has_gaps(table) else ()
    if not len(unseen):
        return weight
    found = np.ones(len(order.lengths)) if weight is None else weight.copy()
    found[unseen] = 0.0
    return found


def warn_about_empty_steps(table: FloatArray, cuts: IntArray) -> IntArray:
    """Numbers of the sequences that have no value at all, of which it warns; (n, D) rows are in their order."""
    unseen = np.flatnonzero(np.logical_and.reduceat(np.isnan(table).all(axis=1), cuts[:-1]))
    if len(unseen):
        warn_caller(
            f"{len(unseen)} sequence(s) have no value in any row, the first being sequence {unseen[0]}; a fit ignores "
            "them, and results for them are those that the model expects of any sequence",
            DegenerateWarning,
        )
    return unseen


def _is_several(X: Any) -> bool:
    """Whether X is sequences rather than a table: a list of tables, or an array of three axes."""
    if isinstance(X, np.ndarray):
        return X.ndim == 3
    return isinstance(X, list | tuple) and len(X) > 0 and all(map(_is_table, X))


def _is_table(item: Any) -> bool:
    if isinstance(item, list | tuple):
        return len(item) > 0 and isinstance(item[0], list | tuple | np.ndarray)
    return len(getattr(item, "shape", ())) == 2


def _join_sequences(X: Any) -> Arranged:
    """All sequences one below the other."""
    if isinstance(X, np.ndarray):
        if 0 in X.shape:
            raise InvalidDataError(f"X has shape {X.shape}, but sequences have at least one row and one column")
        return Arranged(X.reshape(-1, X.shape[2]), np.full(len(X), X.shape[1]), kind="array")
    frames = [to_narwhals(each, pass_through=True) for each in X]
    framed = all(isinstance(each, nw.DataFrame) for each in frames)
    parts: list[Any] = frames if framed else [np.asarray(each) for each in X]
    lengths = [int(part.shape[0]) for part in parts]
    if 0 in lengths:
        raise InvalidDataError(f"sequence {lengths.index(0)} of X has no rows; leave it out")
    columns = [tuple(part.columns) if framed else part.shape[1:] for part in parts]
    odd = next((i for i, each in enumerate(columns) if each != columns[0]), None)
    if odd is not None:
        raise InvalidDataError(
            f"sequence {odd} of X has the columns {columns[odd]}, but the first has {columns[0]}; all need the same"
        )
    stacked = nw.concat(parts).to_native() if framed else np.concatenate(parts)
    return Arranged(stacked, np.asarray(lengths), kind="list")


def _split_off_column(X: Any, name: str) -> tuple[Any, None, FloatArray]:
    """A frame without a column, and that column."""
    frame = to_narwhals(X, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        raise InvalidDataError(
            f"groups={name!r} names a column, but X is {type(X).__name__}, whose columns have no names; "
            "give the names of the sequences themselves, one for each row"
        )
    if name not in frame.columns:
        raise InvalidDataError(f"groups={name!r} is none of the columns of X: {_first(frame.columns)}")
    return frame.drop(name).to_native(), None, column_values(frame[name])


def _order_by_name(names: Any, n_rows: int) -> Order:
    """Sequences in the order in which their names turn up, each with its rows in the order in which they come."""
    found = np.asarray(names)
    if found.shape != (n_rows,):
        raise InvalidDataError(
            f"groups has shape {found.shape}, but X has {n_rows} rows; name the sequence of each row"
        )
    missing = [i for i, each in enumerate(found.tolist()) if each is None or (isinstance(each, float) and isnan(each))]
    if missing:
        raise InvalidDataError(f"row {missing[0]} belongs to no sequence: groups has {found[missing[0]]!r} there")
    first: dict[Any, int] = {}
    codes = np.array([first.setdefault(each, len(first)) for each in found.tolist()])
    return Order(np.append(0, np.cumsum(np.bincount(codes))), np.argsort(codes, kind="stable"))


def _first(values: Sequence[Any]) -> str:
    """The first few of many values."""
    return ", ".join(map(str, list(values)[:8])) + (" …" if len(values) > 8 else "")
