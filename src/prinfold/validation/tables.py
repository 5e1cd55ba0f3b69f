"""Checks of the arguments of verbs: tables, weights, classes, latent coordinates.

The only file that touches scikit-learn's private helpers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import InvalidDataError, PrinfoldError, UnsupportedInputError, join_names
from prinfold.validation.named_block import NamedBlock
from prinfold.validation.refusals import (
    SHOWN,
    column_names,
    refuse_cells,
    refuse_containers,
    refuse_dates,
    refuse_non_finite,
    refuse_other_names,
    refuse_ragged,
    refuse_scale,
    refuse_text,
    to_narwhals,
)


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
    X = fill_masked(X)
    with named_misfits(X), np.errstate(over="ignore"):  # what a float cannot hold becomes infinite, and is refused
        table: Any = _validate(
            estimator,
            X,
            reset=reset,
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            ensure_min_samples=min_rows,
            accept_sparse="csr" if accept_sparse else False,
        )
    # NaN and infinity show in the extremes, which cost no temporaries.
    low, high = float(table.min()), float(table.max())
    if not np.isfinite(high - low):
        names = column_names(estimator)
        if not accept_missing or scipy.sparse.issparse(table):
            refuse_non_finite(table, names)
        low, high = _extremes(table, names)
    refuse_scale(table.dtype, low, high, fitting=reset)
    if isinstance(X, np.memmap) and np.may_share_memory(table, X):  # the same rows, as an array that hides the file
        return cast(FloatArray, X)
    return cast(FloatArray, table) if scipy.sparse.issparse(table) else np.asarray(table)


def fill_masked(values: Any) -> Any:
    """Values as they are, but cells of a masked array that are masked are missing, not whatever lies beneath."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    kept = values if values.dtype.kind not in "biuf" else values.astype(np.result_type(values.dtype, np.float32))
    if kept.dtype.kind in "fcO" or not np.ma.is_masked(kept):
        return np.ma.filled(kept, np.nan) if kept.dtype.kind in "fcO" else kept.data
    raise InvalidDataError(f"a masked array of {kept.dtype} cannot say which of its values are missing; leave them out")


@contextmanager
def named_misfits(X: Any) -> Iterator[None]:
    """Raise errors of conversion to an array that name the row or column at fault, or repeat the library's message."""
    try:
        yield
    except (PrinfoldError, MemoryError):
        raise
    except Exception as error:  # libraries of tables have errors of their own for what they cannot turn into an array
        for refuse in (refuse_ragged, refuse_text, refuse_cells):
            refuse(X)
        kind = UnsupportedInputError if isinstance(error, TypeError) else InvalidDataError
        raise kind(str(error)) from error


def _validate(estimator: Any, X: Any, *, reset: bool, **options: Any) -> Any:
    """A table validated by scikit-learn, which sees names of frames only; those of blocks are checked here."""
    names = X.names if isinstance(X, NamedBlock) else None
    if names is None:
        return validate_data(estimator, X, reset=reset, **options)
    table = check_array(np.asarray(X), estimator=estimator, input_name="X", **options)
    if reset:
        estimator.feature_names_in_ = np.asarray(names, dtype=object)
    refuse_other_names(estimator, names)
    _check_n_features(estimator, table, reset=reset)
    return table


def check_cells(table: Any, names: Any, *, fitting: bool) -> None:
    """Refuse infinite numbers, and such as are too large or vary too little, in a table with missing cells."""
    entries: Any = table
    if scipy.sparse.issparse(table) and np.isinf(entries.data).any():
        entries = entries.copy()
        entries.data = np.where(np.isnan(entries.data), 0.0, entries.data)
        refuse_non_finite(entries, names)
    low, high = _extremes(np.atleast_2d(entries.data) if scipy.sparse.issparse(table) else table, names)
    refuse_scale(table.dtype, low, high, fitting=fitting)


def _extremes(table: FloatArray, names: Any) -> tuple[float, float]:
    """Smallest and largest number of a table with missing cells; infinite ones are refused."""
    if np.isinf(table).any():
        refuse_non_finite(np.where(np.isnan(table), 0.0, table), names)
    if np.isnan(table).all():
        return 0.0, 0.0
    return float(np.fmin.reduce(table, axis=None)), float(np.fmax.reduce(table, axis=None))


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
    known = column_names(estimator)
    names = getattr(table, "columns", None) if known is None else known
    own = [str(name) for name in getattr(errors, "columns", ())]
    if names is not None and len(own) == len(names) > 1 and own != [str(name) for name in names]:
        raise InvalidDataError(
            f"errors has the columns {join_names(own, SHOWN)}, but the table has "
            f"{join_names(names, SHOWN)}; give them the same names in the same order"
        )
    found = as_numbers("errors", errors)
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
    """A table as it is, for estimators that pass it on to others; the names and number of its columns are recorded."""
    refuse_containers(X, accept_sparse=True)
    try:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    except (TypeError, ValueError) as error:
        raise InvalidDataError(str(error)) from error
    return X if hasattr(X, "shape") else np.asarray(X, dtype=object)  # or numbers beside text would become text


def rows_of(table: Any, rows: slice | IntArray) -> Any:
    """Some rows of a table of any kind, as a table of that kind."""
    if nw.dependencies.is_into_dataframe(table):
        return to_narwhals(table)[rows].to_native()
    return table[rows]


def check_weight(sample_weight: Any, table: FloatArray) -> FloatArray | None:
    """(n,) non-negative float64 weights with a positive sum, or None for equal ones."""
    if sample_weight is None:
        return None
    try:
        given = fill_masked(sample_weight)
        _refuse_other_numbers("sample_weight", _array_of(given).dtype)
        weight = _check_sample_weight(given, table, dtype=np.float64, ensure_non_negative=True)
    except PrinfoldError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidDataError(f"sample_weight cannot be used: {_bad_weight(given, table) or error}") from error
    if not weight.max() > 0:
        raise InvalidDataError("all sample weights are zero; at least one row must have a positive weight")
    return weights_within_reach(np.asarray(weight))


def _bad_weight(given: Any, table: FloatArray) -> str | None:
    """The first row whose weight cannot be one, in words; None where weights are wrong in another way."""
    try:
        weight = np.asarray(_array_of(given), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    if weight.shape != (table.shape[0],):
        return None
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if not len(bad):
        return None
    value = f"{weight[bad[0]]:g}".replace("nan", "NaN")
    more = f" (one of {len(bad)} such rows)" if len(bad) > 1 else ""
    return f"row {bad[0]} has {value}{more}; weights are finite numbers, none of them negative"


_HEAVIEST, _LIGHTEST = 1e50, 1e-50
"""Range into which the largest weight is brought, so that squares and inverses of weights stay in double precision."""

_LEAST_WEIGHT_SHARE = 1e-100
"""Smallest weight above zero, as a share of the largest: far below rounding, so that its row changes no sum."""


def weights_within_reach(weight: FloatArray) -> FloatArray:
    """Weights (n,) in the same proportions but for rounding, with squares and inverses that double precision holds."""
    largest = weight.max()
    least = weight.min(where=weight > 0, initial=largest)
    if _LIGHTEST <= largest <= _HEAVIEST and least >= _LEAST_WEIGHT_SHARE * largest:
        return weight
    share = np.where(weight > 0, np.maximum(weight / largest, _LEAST_WEIGHT_SHARE), 0.0)
    return np.asarray(share * np.clip(largest, _LIGHTEST, _HEAVIEST))


def _array_of(values: Any) -> Any:
    """Values as an array; what the library that they come from cannot turn into one is a ValueError."""
    filled = fill_masked(values)
    try:
        return np.asarray(filled)
    except (TypeError, ValueError, OverflowError, MemoryError):
        raise
    except Exception as error:  # such libraries have errors of their own
        raise ValueError(str(error)) from error


def as_entries(name: str, values: Any) -> Any:
    """Values as an array of whatever they are; an error that calls them by ``name`` where their shape has no end."""
    try:
        return _array_of(values)
    except ValueError as error:  # rows of unequal length
        raise InvalidDataError(f"{name} must be a sequence or rows of equal length: {error}") from error


def as_numbers(name: str, values: Any) -> FloatArray:
    """Values as a float64 array of any shape; an error that calls them by ``name`` where they are no real numbers."""
    try:
        given = _array_of(values)
        _refuse_other_numbers(name, given.dtype)
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, PrinfoldError):
            raise
        raise InvalidDataError(f"{name} must be numbers: {error}") from error


def _refuse_other_numbers(name: str, dtype: np.dtype[Any]) -> None:
    """Refuse types that NumPy would turn into real numbers without a word."""
    if dtype.kind == "c":
        raise InvalidDataError(f"{name} must be real numbers, got complex ones; give their real part or their size")
    if dtype.kind in "mM":
        raise InvalidDataError(f"{name} must be numbers, got times ({dtype}); give a count of days or seconds")


def require_classes(labels: Any) -> None:
    """Raise a ValueError for labels (n,) that look like measurements rather than classes."""
    check_classification_targets(labels)


def check_labels(estimator: Any, y: Any, table: FloatArray) -> Any:
    """(n,) the class of each row, as numbers or text."""
    if y is None:
        name = type(estimator).__name__
        raise InvalidDataError(f"{name} requires y to be passed, but the target y is None; give the class of each row")
    try:
        _array_of(y)
        labels = column_or_1d(fill_masked(y), warn=True)
        assert_all_finite(labels, input_name="y")
        check_consistent_length(table, labels)
        require_classes(labels)
    except (TypeError, ValueError, OverflowError) as error:
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
        y = fill_masked(y)
        _refuse_other_numbers("y", _array_of(y).dtype)
        targets = check_array(y, dtype=np.float64, ensure_2d=False, ensure_all_finite="allow-nan", input_name="y")
        check_consistent_length(table, targets)
    except PrinfoldError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidDataError(f"y cannot be used: {error}") from error
    if np.isnan(targets).all(axis=0).any():
        raise InvalidDataError(
            "Input y contains NaN only, in at least one of its columns; give the numbers that are known"
        )
    return np.asarray(targets)


def rows_with_weight(weight: FloatArray | None, min_rows: int) -> IntArray | None:
    """Indices of rows with a weight, or None for all: the others must not count, not even in how rounding falls."""
    if weight is None or (weight > 0).all():
        return None
    kept = np.flatnonzero(weight)
    if len(kept) < min_rows:
        raise InvalidDataError(f"only {len(kept)} row(s) have a positive weight, but at least {min_rows} are needed")
    return kept


_FARTHEST = 1e150
"""Latent coordinates up to this have squares that double precision holds."""


def check_latent(Z: Any, n_columns: int) -> FloatArray:
    """(n, Q) finite latent coordinates in float64."""
    latent = as_numbers("latent coordinates", Z)
    if latent.ndim != 2 or latent.shape[1] != n_columns:
        hint = (
            "; one place is [[z]], several numbers are Z.reshape(-1, 1)" if n_columns == 1 and latent.ndim < 2 else ""
        )
        raise InvalidDataError(f"latent coordinates must have shape (n, {n_columns}), got {latent.shape}{hint}")
    if not np.isfinite(latent).all():
        raise InvalidDataError("latent coordinates contain NaN or infinity")
    if (np.abs(latent) > _FARTHEST).any():
        raise InvalidDataError(
            f"latent coordinates hold values up to {np.abs(latent).max():.3g}, whose squares overflow; a map says "
            f"nothing so far out, so stay within {_FARTHEST:g}"
        )
    return latent


def forget(estimator: Any) -> None:
    """Delete the fitted attributes of an earlier fit, so that a fit that fails does not leave a mixture of both."""
    for name in [name for name in vars(estimator) if name.endswith("_") or name == "_model"]:
        delattr(estimator, name)


def gives_frames(estimator: Any) -> bool:
    """Whether ``set_output`` makes ``transform`` return a frame."""
    return bool(_get_output_config("transform", estimator)["dense"] != "default")
