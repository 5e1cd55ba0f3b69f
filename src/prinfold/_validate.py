"""What comes in: tables, weights, latent coordinates, parameters.

The only file that touches scikit-learn's private helpers.
"""

from __future__ import annotations

import datetime as dt
import difflib
import inspect
import numbers
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, cast

import narwhals.stable.v1 as nw
import numpy as np
import scipy.sparse
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_n_features,
    _check_sample_weight,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from prinfold._arrays import NamedBlock
from prinfold._typing import FloatArray, IntArray, RandomState
from prinfold.exceptions import InvalidDataError, InvalidParameterError, UnsupportedInputError

_SHOWN = 5
"""How many offending rows or columns an error names."""


# ---------------------------------------------------------------------------------------------- tables


def check_table(
    estimator: Any,
    X: Any,
    *,
    reset: bool,
    min_rows: int = 1,
    accept_sparse: bool = False,
    accept_missing: bool = False,
) -> FloatArray:
    """A finite (n, D) float array in the table's own precision and memory order, without copying if possible.

    A sparse matrix, where it is accepted, comes back in CSR form. Where missing cells are accepted they are NaN.
    """
    refuse_containers(X, accept_sparse)
    refuse_dates(X)
    if isinstance(X, np.ma.MaskedArray):  # what is masked is missing, not whatever lies beneath
        X = np.ma.filled(X.astype(np.result_type(X.dtype, np.float32)), np.nan)
    try:
        table: Any = _validated(
            estimator,
            X,
            reset=reset,
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            ensure_min_samples=min_rows,
            accept_sparse="csr" if accept_sparse else False,
        )
    except (TypeError, ValueError) as error:
        refuse_text(X)
        if isinstance(error, TypeError):
            raise
        raise InvalidDataError(str(error)) from error
    # NaN and infinity show in the extremes, which cost no temporaries.
    low, high = float(table.min()), float(table.max())
    if not np.isfinite(high - low):
        names = getattr(estimator, "feature_names_in_", None)
        if not accept_missing or scipy.sparse.issparse(table):
            refuse_non_finite(table, names)
        low, high = _extremes(table, names)
    refuse_scale(table.dtype, low, high, fitting=reset)
    if isinstance(X, np.memmap) and np.may_share_memory(table, X):  # the same rows, as an array that hides the file
        return cast(FloatArray, X)
    return cast(FloatArray, table) if scipy.sparse.issparse(table) else np.asarray(table)


def _validated(estimator: Any, X: Any, *, reset: bool, **options: Any) -> Any:
    """What scikit-learn makes of a table; it sees names of frames only, so that those of blocks are checked here."""
    names = X.names if isinstance(X, NamedBlock) else None
    if names is None:
        return validate_data(estimator, X, reset=reset, **options)
    table = check_array(np.asarray(X), estimator=estimator, input_name="X", **options)
    if reset:
        estimator.feature_names_in_ = np.asarray(names, dtype=object)
    refuse_other_names(estimator, names)
    _check_n_features(estimator, table, reset=reset)
    return table


def refuse_other_names(estimator: Any, names: Sequence[str] | None) -> None:
    """Raise an error where columns have other names than those of the fit."""
    own = getattr(estimator, "feature_names_in_", None)
    if own is None or names is None or list(own) == list(names):
        return
    at = next(i for i, (new, old) in enumerate(zip_longest(names, own)) if new != old)
    new, old = (repr(str(each[at])) if at < len(each) else "missing" for each in (names, own))
    raise InvalidDataError(
        "The feature names should match those that were passed during fit, in the same order: "
        f"column {at} is {new}, but was {old}; choose columns by columns="
    )


def check_cells(table: Any, names: Any, *, fitting: bool) -> None:
    """Refuse infinite numbers, and such as are too large or vary too little, in a table with missing cells."""
    entries: Any = table
    low, high = _extremes(np.atleast_2d(entries.data) if scipy.sparse.issparse(table) else table, names)
    refuse_scale(table.dtype, low, high, fitting=fitting)


def _extremes(table: FloatArray, names: Any) -> tuple[float, float]:
    """Smallest and largest number of a table with missing cells; infinite ones are refused."""
    if np.isinf(table).any():
        refuse_non_finite(np.where(np.isnan(table), 0.0, table), names)
    if np.isnan(table).all():
        return 0.0, 0.0
    return float(np.fmin.reduce(table, axis=None)), float(np.fmax.reduce(table, axis=None))


def refuse_empty_columns(table: FloatArray, names: Any) -> None:
    """Raise an error that names the columns of a table in which nothing was measured."""
    refuse_columns_of_nothing(np.flatnonzero(np.isnan(table).all(axis=0)), names)


def refuse_columns_of_nothing(empty: IntArray, names: Any) -> None:
    """Raise an error naming columns in which nothing was measured; ``empty`` are their numbers, or there are none."""
    if len(empty):
        labels = [str(names[c]) if names is not None else str(c) for c in empty[:_SHOWN]]
        raise InvalidDataError(
            f"Input X: column(s) {_listed(labels, len(empty))} hold no value in any row that counts (all are NaN); "
            "drop them"
        )


def has_gaps(table: Any) -> bool:
    """Whether cells of a checked table are missing."""
    return not scipy.sparse.issparse(table) and bool(np.isnan(table.min()))


def check_errors(errors: Any, table: FloatArray, estimator: Any = None) -> FloatArray | None:
    """(n, D) or (n, 1) standard deviations of the cells of a table, or None where they are not known.

    Where the estimator or the table knows names of columns and the errors have some, they must be the same, in the same
    order.
    """
    if errors is None:
        return None
    names = getattr(estimator, "feature_names_in_", getattr(table, "columns", None))
    own = [str(name) for name in getattr(errors, "columns", ())]
    if names is not None and len(own) == len(names) > 1 and own != [str(name) for name in names]:
        raise InvalidDataError(
            f"errors has the columns {_listed(own[:_SHOWN], len(own))}, but the table has "
            f"{_listed(names[:_SHOWN], len(names))}; give them the same names in the same order"
        )
    try:
        found: FloatArray = np.asarray(errors, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidDataError(f"errors must be numbers: {error}") from error
    n, D = table.shape
    found = found[:, None] if found.shape == (n,) else found
    if found.shape not in {(n, D), (n, 1)}:
        raise InvalidDataError(
            f"errors has shape {np.shape(errors)}; give a standard deviation for each cell, ({n}, {D}), "
            f"or for each row, ({n},)"
        )
    if scipy.sparse.issparse(table):
        raise UnsupportedInputError("errors of a sparse table are not supported; pass X.toarray()")
    bad = ~(np.isfinite(found) & (found >= 0))
    if bad.shape == table.shape:
        bad &= ~np.isnan(np.asarray(table, dtype=np.float64))  # what was not measured needs no error
    if bad.any():
        row, column = (int(each[0]) for each in np.nonzero(bad))
        raise InvalidDataError(
            f"errors must be finite and not negative, got {found[row, column]} in row {row}, column {column}; "
            "mark a cell that tells nothing as missing, by NaN in X"
        )
    return np.where(bad | ~np.isfinite(found), 0.0, found) if found.shape == table.shape else found


def check_frame(estimator: Any, X: Any, *, reset: bool) -> Any:
    """A table as it is, for those who hand it on to others that read it; names and number of its columns are kept."""
    refuse_containers(X, accept_sparse=True)
    try:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    except ValueError as error:
        raise InvalidDataError(str(error)) from error
    return X if hasattr(X, "shape") else np.asarray(X, dtype=object)  # or numbers beside text would become text


def rows_of(table: Any, rows: slice | IntArray) -> Any:
    """Some rows of a table of any kind, as a table of that kind."""
    if nw.dependencies.is_into_dataframe(table):
        return nw.from_native(table, eager_only=True)[rows].to_native()
    return table[rows]


def refuse_containers(X: Any, accept_sparse: bool = False) -> None:
    """Name the fix for containers that would fail obscurely or be pulled into memory silently."""
    kind = f"{type(X).__module__.partition('.')[0]}.{type(X).__name__}"
    if isinstance(X, str | bytes | os.PathLike):
        name = X if isinstance(X, str | bytes) else str(X)
        raise UnsupportedInputError(
            f"got {name!r}, the name of something rather than a table of numbers; read the file first, "
            f"for example with pandas.read_csv({name!r})"
        )
    if scipy.sparse.issparse(X) and not accept_sparse:
        raise UnsupportedInputError(
            f"got a sparse matrix ({type(X).__name__}) but dense data is required; pass X.toarray(), "
            "or reduce the columns first, for example with sklearn.decomposition.TruncatedSVD"
        )
    if hasattr(X, "obsm") and hasattr(X, "uns"):
        raise UnsupportedInputError(
            f"got {kind}, an annotated data object; pass one of its arrays, such as adata.obsm['X_pca'] or adata.X"
        )
    if hasattr(X, "dask") or kind.startswith("dask"):
        raise UnsupportedInputError(
            f"got {kind}, a Dask collection, which would be pulled into memory whole; pass X.compute() if it fits, "
            "or a NumPy memory map"
        )
    if kind == "prinfold.Blocks":
        raise UnsupportedInputError(
            "got Blocks, a table that is read block by block, which this does not do; call it for each block "
            "(for block in blocks: ...), or join the blocks if they fit in memory: numpy.concatenate(list(blocks)). "
            "Fitted to blocks as they are can be GTM, SemiLinearGTM and PPS"
        )
    if isinstance(X, Iterator) or inspect.isfunction(X):
        raise UnsupportedInputError(
            f"got a {type(X).__name__}, which is no table; a GTM reads what a function returns block by block: "
            "fit(Blocks(function)), with a function that returns a fresh iterator each time"
        )
    if nw.dependencies.is_into_dataframe(X):
        return
    if hasattr(X, "collect") and hasattr(X, "lazy"):
        raise UnsupportedInputError(f"got {kind}, a query that has not run yet; pass X.collect()")


_TEMPORAL = (nw.Date, nw.Datetime, nw.Duration)
_ADVICE = {
    "text": "drop it or encode it as numbers, for example with sklearn.preprocessing.OneHotEncoder, or use MixedGTM, "
    "which takes text unchanged; "
    "to colour a plot by it, pass it as labels=",
    "dates": "drop it or turn it into a number, such as the days since a fixed one",
}


def refuse_dates(X: Any) -> None:
    """Raise an error for columns of dates, which NumPy would silently turn into nanoseconds."""
    if isinstance(X, np.ndarray) and X.dtype.kind in "mM":
        raise InvalidDataError(f"Input X holds dates ({X.dtype}); {_ADVICE['dates'].replace(' it', ' them')}.")
    dated = []
    if nw.dependencies.is_pandas_dataframe(X):  # whose columns may share a name, which narwhals refuses
        dated = [name for name, kind in zip(X.columns, X.dtypes, strict=True) if getattr(kind, "kind", "") in {*"mM"}]
    elif nw.dependencies.is_into_dataframe(X):
        schema = nw.from_native(X, eager_only=True).schema
        dated = [name for name, kind in schema.items() if isinstance(kind, _TEMPORAL)]
    if dated:
        raise InvalidDataError(_about_columns([repr(str(name)) for name in dated], "dates", ""))


def refuse_text(X: Any) -> None:
    """Raise an error that names the columns of a table that hold text or dates; return where there are none."""
    for kind, test in (("text", str), ("dates", (dt.date, dt.time, dt.timedelta, np.datetime64))):
        found, example = [], ""
        for name, values in _columns(X):
            row = next((i for i, value in enumerate(values) if isinstance(value, test) and not _reads(value)), None)
            if row is not None:
                example = example or f", such as {str(values[row])!r} in row {row}"
                found.append(name)
        if found:
            raise InvalidDataError(_about_columns(found, kind, example))


def _columns(X: Any) -> Iterator[tuple[str, Sequence[Any]]]:
    """Columns of whatever may be a table, each with what to call it."""
    if nw.dependencies.is_pandas_dataframe(X):
        yield from ((repr(str(name)), X.iloc[:, j].tolist()) for j, name in enumerate(X.columns))
        return
    if nw.dependencies.is_into_dataframe(X):
        frame = nw.from_native(X, eager_only=True)
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
    except (TypeError, ValueError):
        return False
    return True


def _about_columns(names: Sequence[str], kind: str, example: str) -> str:
    one = len(names) == 1
    advice = _ADVICE[kind] if one else _ADVICE[kind].replace(" it", " them")
    subject = "column" if one else "columns"
    listed = _listed(names[:_SHOWN], len(names))
    return f"Input X: {subject} {listed} {'holds' if one else 'hold'} {kind}{example}; {advice}."


def refuse_non_finite(table: FloatArray, names: Any, first_row: int = 0) -> None:
    """Raise an error that names the rows, counted from ``first_row``, and columns of NaN and infinity."""
    entries = scipy.sparse.coo_matrix(table) if scipy.sparse.issparse(table) else None
    values = table if entries is None else entries.data
    bad = ~np.isfinite(values)
    if not bad.any():
        return
    where = np.nonzero(bad) if entries is None else (entries.row[bad], entries.col[bad])
    rows, columns = (np.unique(each) for each in where)
    kind = "NaN" if np.isnan(values).any() else "infinity (inf)"
    labels = [str(names[c]) if names is not None else str(c) for c in columns[:_SHOWN]]
    raise InvalidDataError(
        f"Input X contains {kind}: {int(bad.sum())} of its values are not finite, in row(s) "
        f"{_listed(first_row + rows[:_SHOWN], len(rows))} and column(s) {_listed(labels, len(columns))}. "
        "Drop those rows or fill the values first, for example with GTM().fit(X).impute(X) or "
        "sklearn.impute.SimpleImputer."
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


def _listed(shown: Any, total: int) -> str:
    more = f" and {total - len(shown)} more" if total > len(shown) else ""
    return ", ".join(map(str, shown)) + more


def check_weight(sample_weight: Any, table: FloatArray) -> FloatArray | None:
    """(n,) non-negative float64 weights with a positive sum, or None for equal ones."""
    if sample_weight is None:
        return None
    try:
        weight = _check_sample_weight(sample_weight, table, dtype=np.float64, ensure_non_negative=True)
    except ValueError as error:
        raise InvalidDataError(f"sample_weight cannot be used: {error}") from error
    with np.errstate(over="ignore"):
        total = weight.sum()
    if not np.isfinite(total):
        raise InvalidDataError("the sum of sample_weight overflows; divide the weights by their largest")
    if not total > 0:
        raise InvalidDataError("all sample weights are zero; at least one row must have a positive weight")
    return np.asarray(weight)


def check_labels(estimator: Any, y: Any, table: FloatArray) -> Any:
    """(n,) the class of each row, as numbers or text."""
    if y is None:
        name = type(estimator).__name__
        raise InvalidDataError(f"{name} requires y to be passed, but the target y is None; give the class of each row")
    try:
        labels = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_consistent_length(table, labels)
        check_classification_targets(labels)
    except ValueError as error:
        words = str(error).replace(
            "Input contains NaN", "Input y contains NaN: leave out rows whose class is not known"
        )
        raise InvalidDataError(words) from error
    return labels


def check_targets(estimator: Any, y: Any, table: FloatArray) -> FloatArray:
    """(n,) or (n, m) numbers of each row in float64; NaN where one is not known, but not for all rows."""
    if y is None:
        name = type(estimator).__name__
        raise InvalidDataError(f"{name} requires y to be passed, but the target y is None; give a number for each row")
    try:
        targets = check_array(y, dtype=np.float64, ensure_2d=False, ensure_all_finite="allow-nan", input_name="y")
        check_consistent_length(table, targets)
    except ValueError as error:
        raise InvalidDataError(str(error)) from error
    if np.isnan(targets).all(axis=0).any():
        raise InvalidDataError(
            "Input y contains NaN only, in at least one of its columns; give the numbers that are known"
        )
    return np.asarray(targets)


def weighty_rows(weight: FloatArray | None, min_rows: int) -> IntArray | None:
    """Which rows have a weight, or None for all: the others must not count, not even in how rounding falls."""
    if weight is None or (weight > 0).all():
        return None
    kept = np.flatnonzero(weight)
    if len(kept) < min_rows:
        raise InvalidDataError(f"only {len(kept)} row(s) have a positive weight, but at least {min_rows} are needed")
    return kept


def check_latent(Z: Any, n_columns: int) -> FloatArray:
    """(n, Q) finite latent coordinates in float64."""
    try:
        latent: FloatArray = np.asarray(Z, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidDataError(f"latent coordinates must be numbers: {error}") from error
    if latent.ndim != 2 or latent.shape[1] != n_columns:
        hint = (
            "; one place is [[z]], several numbers are Z.reshape(-1, 1)" if n_columns == 1 and latent.ndim < 2 else ""
        )
        raise InvalidDataError(f"latent coordinates must have shape (n, {n_columns}), got {latent.shape}{hint}")
    if not np.isfinite(latent).all():
        raise InvalidDataError("latent coordinates contain NaN or infinity")
    return latent


# ------------------------------------------------------------------------------------------ parameters


@dataclass(frozen=True)
class Constraint:
    """What a parameter may be: a test, the words that describe it, and the names among its values."""

    test: Callable[[Any], bool]
    words: str
    names: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    """The words of each alternative, where there are several."""

    def __or__(self, other: Constraint) -> Constraint:
        parts = (*(self.parts or (self.words,)), *(other.parts or (other.words,)))
        return Constraint(lambda v: self.test(v) or other.test(v), _either(parts), self.names + other.names, parts)

    def refusal(self, name: str, value: Any) -> str:
        """What to say of a value that cannot be, with the name that was probably meant."""
        near = difflib.get_close_matches(value.lower(), self.names, 1) if isinstance(value, str) else []
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"{name} must be {self.words}, got {value!r}{hint}"


def _either(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}"


def _is_number(value: Any, kind: type) -> bool:
    """Whether a value is a number of some kind; booleans are not numbers here."""
    return isinstance(value, kind) and not isinstance(value, bool)


def integer(minimum: int, maximum: int | None = None) -> Constraint:
    """A whole number, at least ``minimum`` and at most ``maximum``."""
    words = f"of at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
    return Constraint(
        lambda v: _is_number(v, numbers.Integral) and minimum <= v <= (v if maximum is None else maximum),
        f"a whole number {words}",
    )


def real(minimum: float, *, above: bool = False) -> Constraint:
    """A finite number, at least (or above) ``minimum``."""

    def test(value: Any) -> bool:
        # Compared rather than asked whether finite: a whole number may be too large to become a float.
        if not _is_number(value, numbers.Real) or not -np.inf < value < np.inf:
            return False
        return bool(value > minimum if above else value >= minimum)

    return Constraint(test, f"a finite number {'above' if above else 'of at least'} {minimum:g}")


def one_of(options: Mapping[str, Any] | Sequence[str]) -> Constraint:
    """One of a few names."""
    shown = tuple(map(repr, options))
    return Constraint(lambda v: isinstance(v, str) and v in options, _either(shown), tuple(options), shown)


def several(each: Constraint, words: str) -> Constraint:
    """A tuple or list, not empty, of what ``each`` allows."""
    return Constraint(
        lambda value: isinstance(value, tuple | list) and len(value) > 0 and all(map(each.test, value)),
        f"a tuple of {words}",
    )


def instance_of(*types: type, words: str) -> Constraint:
    """An instance of a class."""
    return Constraint(lambda v: isinstance(v, types), words)


nothing = Constraint(lambda v: v is None, "None")
flag = Constraint(lambda v: isinstance(v, bool | np.bool_), "True or False")
axis_counts = integer(1) | Constraint(
    lambda v: isinstance(v, tuple | list) and len(v) > 0 and all(integer(1).test(i) for i in v),
    "a tuple of such numbers (one per latent axis)",
)
random_state = Constraint(
    lambda v: v is None or integer(0).test(v) or isinstance(v, np.random.RandomState | np.random.Generator),
    "None, a whole number of at least 0, a RandomState or a Generator",
)


def check_parameters(estimator: Any, constraints: Mapping[str, Constraint]) -> None:
    """Check every parameter of an estimator against its table."""
    for name, value in estimator.get_params(deep=False).items():
        if not constraints[name].test(value):
            raise InvalidParameterError(f"{type(estimator).__name__}: {constraints[name].refusal(name, value)}")


def forget(estimator: Any) -> None:
    """Drop what an earlier fit left, so that one that fails now leaves no mixture of the two."""
    for name in [name for name in vars(estimator) if name.endswith("_")]:
        delattr(estimator, name)


def gives_frames(estimator: Any) -> bool:
    """Whether ``set_output`` asks that what ``transform`` returns be made into a frame."""
    return bool(_get_output_config("transform", estimator)["dense"] != "default")


def as_generator(random_state: RandomState) -> np.random.Generator:
    """A NumPy generator from whatever scikit-learn's users pass as ``random_state``."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    return np.random.default_rng(random_state)
