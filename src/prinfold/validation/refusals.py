"""Errors for tables that cannot be used, which name rows and columns and say what to do about them."""

from __future__ import annotations

import datetime as dt
import inspect
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from itertools import zip_longest
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import scipy.sparse
from narwhals.exceptions import DuplicateError

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import InvalidDataError, UnsupportedInputError, join_names, shown
from prinfold.methods import METHODS
from prinfold.validation.sparse_structure import refuse_broken_structure

SHOWN = 5
"""How many offending rows or columns an error names."""


def column_names(estimator: Any) -> Any:
    """(D,) names of the columns that an estimator was fitted to, as scikit-learn keeps them; None if they had none."""
    return getattr(estimator, "feature_names_in_", None)


def column_labels(estimator: Any, n_columns: int) -> list[str]:
    """Names of the columns that an estimator was fitted to; "column 1" and so on if they had none."""
    names = column_names(estimator)
    return [f"column {j + 1}" for j in range(n_columns)] if names is None else [str(name) for name in names]


def refuse_other_names(estimator: Any, names: Sequence[str] | None) -> None:
    """Raise an error where columns have other names than those of the fit."""
    own = column_names(estimator)
    if own is None or names is None or list(own) == list(names):
        return
    at = next(i for i, (new, old) in enumerate(zip_longest(names, own)) if new != old)
    new, old = (repr(str(each[at])) if at < len(each) else "missing" for each in (names, own))
    raise InvalidDataError(
        "The feature names should match those that were passed during fit, in the same order: "
        f"column {at} is {new}, but was {old}; choose columns by columns="
    )


def refuse_empty_columns(table: FloatArray, names: Any) -> None:
    """Raise an error that names the columns of a table in which nothing was measured."""
    refuse_columns_without_values(np.flatnonzero(np.isnan(table).all(axis=0)), names)


def refuse_columns_without_values(empty: IntArray, names: Any) -> None:
    """Raise an error naming columns in which nothing was measured; ``empty`` are their numbers, or there are none."""
    if len(empty):
        raise InvalidDataError(
            f"Input X: column(s) {_labels(empty, names)} hold no value in any row that counts (all are NaN); drop them"
        )


def _labels(columns: Iterable[Any], names: Any) -> str:
    """Columns by their names, or by their numbers where they have none."""
    return join_names(columns if names is None else [names[c] for c in columns], SHOWN)


def refuse_containers(X: Any, accept_sparse: bool = False) -> None:
    """Name the fix for containers that would fail obscurely or be pulled into memory silently."""
    _refuse_other_objects(X)
    _refuse_odd_columns(X)
    kind = f"{type(X).__module__.partition('.')[0]}.{type(X).__name__}"
    if scipy.sparse.issparse(X) and not accept_sparse:
        raise UnsupportedInputError(
            f"got a sparse matrix ({type(X).__name__}) but dense data is required; pass X.toarray(), "
            "or reduce the columns first, for example with sklearn.decomposition.TruncatedSVD"
        )
    refuse_broken_structure(X)
    if hasattr(X, "obsm") and hasattr(X, "uns"):
        raise UnsupportedInputError(
            f"got {kind}, an annotated data object; pass one of its arrays, such as adata.obsm['X_pca'] or adata.X"
        )
    if hasattr(X, "dask") or kind.startswith("dask"):
        raise UnsupportedInputError(
            f"got {kind}, a Dask collection, which would be pulled into memory whole here; pass X.compute() if it "
            "fits, or a NumPy memory map"
        )
    if kind == "prinfold.Blocks":
        fitted = join_names(each.name for each in METHODS.values() if each.takes_blocks)
        raise UnsupportedInputError(
            "got Blocks, a table that is read block by block, which this does not do; call it for each block "
            "(for block in blocks: ...), or join the blocks if they fit in memory: numpy.concatenate(list(blocks)). "
            f"Fitted to blocks as they are can be {fitted}"
        )
    if not nw.dependencies.is_into_dataframe(X) and hasattr(X, "collect") and hasattr(X, "lazy"):
        raise UnsupportedInputError(f"got {kind}, a query that has not run yet; pass X.collect()")


def _refuse_other_objects(X: Any) -> None:
    if X is None:
        raise UnsupportedInputError("got None rather than a table of numbers")
    if isinstance(X, str | bytes | os.PathLike):
        name = X if isinstance(X, str | bytes) else str(X)
        raise UnsupportedInputError(
            f"got {name!r}, the name of something rather than a table of numbers; read the file first, "
            f"for example with pandas.read_csv({name!r})"
        )
    named = isinstance(X, Mapping) and not scipy.sparse.issparse(X)  # one kind of sparse matrix is a dictionary too
    inside = X.values() if named else X if isinstance(X, list | tuple) else ()
    if _is_model(X) or any(map(_is_model, inside)):
        raise UnsupportedInputError(
            "got a model where a table of numbers is expected; the table comes first, as in model.fit(X) or "
            "compare(X, models)"
        )
    if named:
        raise UnsupportedInputError("got a dictionary rather than a table of numbers; pass pandas.DataFrame(X)")
    if isinstance(X, Iterator) or inspect.isfunction(X):
        raise UnsupportedInputError(
            f"got a {type(X).__name__}, which is no table; a GTM reads what a function returns block by block: "
            "fit(Blocks(function)), with a function that returns a fresh iterator each time"
        )


def _refuse_odd_columns(X: Any) -> None:
    """Refuse frames without columns, Arrow tables in which a name does not tell a column, and arrays of fields."""
    if isinstance(X, np.ndarray) and X.dtype.names:
        raise UnsupportedInputError(
            f"got a structured array with the fields {join_names(X.dtype.names, SHOWN)}; turn it into a plain one, "
            "for example with numpy.lib.recfunctions.structured_to_unstructured(X)"
        )
    if not nw.dependencies.is_into_dataframe(X):
        return
    if X.shape[1] == 0:
        raise InvalidDataError(f"Input X has no columns (shape={X.shape}); at least one is needed")
    names = X.column_names if nw.dependencies.is_pyarrow_table(X) else []
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise InvalidDataError(f"Input X has two columns of the name {twice[0]!r}; rename one of them")


def to_narwhals(X: Any, *, pass_through: bool = False) -> Any:
    """A frame as narwhals sees it; one in which a name does not tell a column is refused."""
    try:
        return nw.from_native(X, eager_only=True, pass_through=pass_through)
    except DuplicateError as error:
        raise InvalidDataError("a table has two columns of one name; rename one of them") from error


def column_values(column: Any) -> Any:
    """The values of a column of a frame as NumPy has them; whole numbers of 128 bits as those of Python."""
    return np.array(column.to_list()) if column.dtype in {nw.Int128, nw.UInt128} else column.to_numpy()


def declared_levels(series: Any) -> list[Any] | None:
    """The categories that the type of a series names, in their order; None where it names none."""
    if series.dtype not in {nw.Categorical, nw.Enum}:
        return None
    try:
        found: list[Any] = series.cat.get_categories().to_list()
    except AttributeError:  # a dictionary of Arrow's in a pandas frame, which keeps its levels to itself
        return None
    return found


def _is_model(value: Any) -> bool:
    return hasattr(value, "get_params") or (isinstance(value, type) and hasattr(value, "fit"))


_TEMPORAL = {"dates": ("M", (nw.Date, nw.Datetime)), "durations": ("m", (nw.Duration,))}
"""Letters that NumPy has for kinds of time, and their types of columns."""

_ADVICE = {
    "text": "drop it or encode it as numbers, for example with sklearn.preprocessing.OneHotEncoder, or use MixedGTM, "
    "which takes text unchanged; "
    "to colour a plot by it, pass it as labels=",
    "dates": "drop it or turn it into a number, such as the days since a fixed one",
    "durations": "drop it or turn it into a number, such as a count of seconds",
}


def refuse_dates(X: Any) -> None:
    """Raise an error for columns of dates or durations, which NumPy would silently turn into nanoseconds."""
    for kind, (letter, types) in _TEMPORAL.items():
        if isinstance(X, np.ndarray) and X.dtype.kind == letter:
            advice = _ADVICE[kind].replace(" it", " them")
            raise InvalidDataError(f"Input X holds {kind} ({X.dtype}); {advice}.")
        if found := _columns_of_time(X, letter, types):
            raise InvalidDataError(_column_refusal([repr(str(name)) for name in found], kind, ""))


def _columns_of_time(X: Any, letter: str, types: Any) -> list[Any]:
    if nw.dependencies.is_pandas_dataframe(X):  # whose columns may share a name, which narwhals refuses
        return [name for name, kind in zip(X.columns, X.dtypes, strict=True) if getattr(kind, "kind", "") == letter]
    if nw.dependencies.is_into_dataframe(X):
        schema = to_narwhals(X).schema
        return [name for name, kind in schema.items() if isinstance(kind, types)]
    return []


def refuse_text(X: Any) -> None:
    """Raise an error that names the columns of a table that hold text, dates or durations; return if there are none."""
    kinds: dict[str, Any] = {"text": str, "dates": (dt.date, dt.time, np.datetime64), "durations": dt.timedelta}
    for kind, test in kinds.items():
        found, example = [], ""
        for name, values in _columns(X):
            row = next((i for i, value in enumerate(values) if isinstance(value, test) and not _reads(value)), None)
            if row is not None:
                example = example or f", such as {str(values[row])!r} in row {row}"
                found.append(name)
        if found:
            raise InvalidDataError(_column_refusal(found, kind, example))


def refuse_cells(X: Any) -> None:
    """Raise an error that names a column with a cell that is no number, or one too large; return where there is none.

    Periods, intervals, lists and other objects are such cells, and of those that only mark what is missing the first.
    """
    missing = ""
    for name, values in _columns(X):
        for row, value in enumerate(values):
            try:
                float(value if value is not None else np.nan)
            except OverflowError:
                raise InvalidDataError(
                    f"Input X: column {name} holds a number that is too large for float64, {shown(value, _CELL_WIDTH)} "
                    f"in row {row}; scale the column, or mark the cell as missing, by NaN"
                ) from None
            except (TypeError, ValueError) as error:
                if isinstance(value, complex):  # for which scikit-learn has words of its own
                    continue
                if _is_missing(value):
                    missing = missing or f"column {name} holds {value} among other objects, in row {row}"
                    continue
                kind = UnsupportedInputError if isinstance(error, TypeError) else InvalidDataError
                raise kind(
                    f"Input X: column {name} holds what is no number, such as {shown(value, _CELL_WIDTH)} of type "
                    f"{type(value).__name__} in row {row} ({error}); drop it or turn it into numbers"
                ) from None
    if missing:
        raise InvalidDataError(f"Input X: {missing}; turn the column into numbers, with NaN for what is missing")


_CELL_WIDTH = 40
"""How many characters of a cell an error shows."""


def _is_missing(value: Any) -> bool:
    return type(value).__name__ in {"NAType", "NaTType"}


def refuse_ragged(X: Any) -> None:
    """Raise an error that names the first row of a list that is not as long as the one before it."""
    if not isinstance(X, list | tuple):
        return
    lengths = [len(row) if isinstance(row, Sized) else None for row in X]
    odd = next((i for i, length in enumerate(lengths) if length != lengths[0]), None)
    if odd is not None:
        long = [f"has {each} entries" if each is not None else "is no row" for each in (lengths[odd], lengths[0])]
        raise InvalidDataError(
            f"Input X is a {type(X).__name__} of rows of unequal length: row {odd} {long[0]}, but row 0 {long[1]}; "
            "give every row as many numbers as there are columns, NaN where one is missing"
        )


def _columns(X: Any) -> Iterator[tuple[str, Sequence[Any]]]:
    """Columns of anything that may be a table, each with its name for messages."""
    if nw.dependencies.is_pandas_dataframe(X):
        yield from ((repr(str(name)), X.iloc[:, j].tolist()) for j, name in enumerate(X.columns))
        return
    if nw.dependencies.is_into_dataframe(X):
        frame = to_narwhals(X)
        yield from ((repr(name), frame[name].to_list()) for name in frame.columns)
        return
    try:
        table = np.asarray(X, dtype=object)
    except ValueError:  # rows of unequal length
        return
    if table.ndim == 2:
        yield from ((str(j), column.tolist()) for j, column in enumerate(table.T))


def _reads(value: Any) -> bool:
    """Whether text is a number all the same."""
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _column_refusal(names: Sequence[str], kind: str, example: str) -> str:
    one = len(names) == 1
    advice = _ADVICE[kind] if one else _ADVICE[kind].replace(" it", " them")
    subject = "column" if one else "columns"
    return f"Input X: {subject} {join_names(names, SHOWN)} {'holds' if one else 'hold'} {kind}{example}; {advice}."


def refuse_non_finite(table: FloatArray, names: Any, first_row: int = 0) -> None:
    """Raise an error that names the rows, counted from ``first_row``, and columns of NaN and infinity."""
    entries = scipy.sparse.coo_matrix(table) if scipy.sparse.issparse(table) else None
    values = table if entries is None else entries.data
    bad = ~np.isfinite(values)
    if not bad.any():
        return
    where = np.nonzero(bad) if entries is None else (entries.row[bad], entries.col[bad])
    rows, columns = (np.unique(each) for each in where)
    missing = bool(np.isnan(values).any())
    kind = "NaN" if missing else "infinity (inf)"
    fill = (
        "fill the values first: of a dense table with GTM().fit(X).impute(X) or sklearn.impute.SimpleImputer"
        if missing
        else "mark the values as missing, by NaN, where they were not measured, and look at what made them"
    )
    raise InvalidDataError(
        f"Input X contains {kind}: {int(bad.sum())} of its values are not finite, in row(s) "
        f"{join_names(first_row + rows, SHOWN)} and column(s) {_labels(columns, names)}. "
        f"Drop those rows, or {fill}."
    )


_SMALLEST_RANGE = 1e-143
"""How little numbers may differ, of whatever type they are."""


def refuse_scale(dtype: np.dtype[Any], low: float, high: float, *, fitting: bool) -> None:
    """Raise an error for numbers whose squares, or the inverse of whose variance, the type cannot hold."""
    largest = 0.01 * float(np.finfo(dtype).max) ** 0.5
    if max(-low, high) > largest:
        raise InvalidDataError(
            f"Input X holds values up to {max(-low, high):.3g}, whose squares overflow {dtype}; scale its columns "
            "first, for example with sklearn.preprocessing.StandardScaler"
        )
    # Sums are in double precision, where one over the variance of the noise, a millionth of theirs, is to be held too.
    smallest = max(1e4 / float(np.finfo(dtype).max) ** 0.5, _SMALLEST_RANGE)
    if fitting and 0 < high - low < smallest:
        raise InvalidDataError(
            f"Input X varies by {high - low:.3g} only, and one over its variance overflows {dtype}; scale its columns "
            "first, for example with sklearn.preprocessing.StandardScaler"
        )


_LARGEST, _SMALLEST = 1e75, 1e-70
"""Between which numbers have fourth powers, and shares of those, that double precision holds."""


def refuse_fourth_powers(table: FloatArray) -> None:
    """Raise an error for numbers so large, or so much alike, that products of two squares leave double precision."""
    low, high = float(table.min()), float(table.max())
    if max(-low, high) > _LARGEST or 0 < high - low < _SMALLEST:
        raise InvalidDataError(
            f"Input X holds values from {low:.3g} to {high:.3g}, and here their squares are multiplied, which float64 "
            "cannot hold; scale its columns first, for example with sklearn.preprocessing.StandardScaler"
        )
