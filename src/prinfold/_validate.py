"""What comes in: tables, weights, latent coordinates, parameters.

The only file that touches scikit-learn's private helpers.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import narwhals.stable.v1 as nw
import numpy as np
import scipy.sparse
from sklearn.utils.validation import _check_sample_weight, validate_data

from prinfold._typing import FloatArray, RandomState
from prinfold.exceptions import InvalidDataError, InvalidParameterError, UnsupportedInputError

_SHOWN = 5
"""How many offending rows or columns an error names."""


# ---------------------------------------------------------------------------------------------- tables


def check_table(estimator: Any, X: Any, *, reset: bool, min_rows: int = 1, accept_sparse: bool = False) -> FloatArray:
    """A finite (n, D) float array in the table's own precision and memory order, without copying if possible.

    A sparse matrix, where it is accepted, comes back in CSR form.
    """
    refuse_containers(X, accept_sparse)
    if isinstance(X, np.ma.MaskedArray):  # what is masked is missing, not whatever lies beneath
        X = np.ma.filled(X.astype(np.result_type(X.dtype, np.float32)), np.nan)
    try:
        table: Any = validate_data(
            estimator,
            X,
            reset=reset,
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            ensure_min_samples=min_rows,
            accept_sparse="csr" if accept_sparse else False,
        )
    except ValueError as error:
        raise InvalidDataError(str(error)) from error
    # NaN and infinity show in the extremes, which cost no temporaries.
    low, high = float(table.min()), float(table.max())
    if not np.isfinite(high - low):
        refuse_non_finite(table, getattr(estimator, "feature_names_in_", None))
    refuse_scale(table.dtype, low, high, fitting=reset)
    as_it_is = isinstance(table, np.memmap) or scipy.sparse.issparse(table)
    return cast(FloatArray, table) if as_it_is else np.asarray(table)


def refuse_containers(X: Any, accept_sparse: bool = False) -> None:
    """Name the fix for containers that would fail obscurely or be pulled into memory silently."""
    kind = f"{type(X).__module__.partition('.')[0]}.{type(X).__name__}"
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
    if nw.dependencies.is_into_dataframe(X):
        return
    if hasattr(X, "collect") and hasattr(X, "lazy"):
        raise UnsupportedInputError(f"got {kind}, a query that has not run yet; pass X.collect()")


def refuse_non_finite(table: FloatArray, names: Any) -> None:
    """Raise an error that names the rows and columns of NaN and infinity."""
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
        f"{_listed(rows[:_SHOWN], len(rows))} and column(s) {_listed(labels, len(columns))}. "
        "Drop those rows or fill the values first, for example with sklearn.impute.SimpleImputer."
    )


def refuse_scale(dtype: np.dtype[Any], low: float, high: float, *, fitting: bool) -> None:
    """Raise an error for numbers whose squares, or the inverse of whose variance, the type cannot hold."""
    largest = 0.01 * float(np.finfo(dtype).max) ** 0.5
    if max(-low, high) > largest:
        raise InvalidDataError(
            f"Input X holds values up to {max(-low, high):.3g}, whose squares overflow {dtype}; scale its columns "
            "first, for example with sklearn.preprocessing.StandardScaler"
        )
    smallest = 1e4 / float(np.finfo(dtype).max) ** 0.5
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


def check_latent(Z: Any, n_columns: int) -> FloatArray:
    """(n, Q) finite latent coordinates in float64."""
    try:
        latent: FloatArray = np.asarray(Z, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidDataError(f"latent coordinates must be numbers: {error}") from error
    if latent.ndim != 2 or latent.shape[1] != n_columns:
        raise InvalidDataError(f"latent coordinates must have shape (n, {n_columns}), got {latent.shape}")
    if not np.isfinite(latent).all():
        raise InvalidDataError("latent coordinates contain NaN or infinity")
    return latent


# ------------------------------------------------------------------------------------------ parameters


@dataclass(frozen=True)
class Constraint:
    """What a parameter may be: a test and the words that describe it."""

    test: Callable[[Any], bool]
    words: str

    def __or__(self, other: Constraint) -> Constraint:
        return Constraint(lambda v: self.test(v) or other.test(v), f"{self.words} or {other.words}")


def _is_number(value: Any, kind: type) -> bool:
    """Whether a value is a number of some kind; booleans are not numbers here."""
    return isinstance(value, kind) and not isinstance(value, bool)


def integer(minimum: int) -> Constraint:
    """A whole number, at least ``minimum``."""
    return Constraint(
        lambda v: _is_number(v, numbers.Integral) and v >= minimum, f"a whole number of at least {minimum}"
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
    return Constraint(lambda v: isinstance(v, str) and v in options, "one of " + ", ".join(map(repr, options)))


def instance_of(*types: type, words: str) -> Constraint:
    """An instance of a class."""
    return Constraint(lambda v: isinstance(v, types), words)


nothing = Constraint(lambda v: v is None, "None")
flag = Constraint(lambda v: isinstance(v, bool | np.bool_), "True or False")
axis_counts = integer(1) | Constraint(
    lambda v: isinstance(v, tuple | list) and len(v) > 0 and all(integer(1).test(i) for i in v),
    "a tuple of such numbers, one per latent axis",
)
random_state = Constraint(
    lambda v: v is None or integer(0).test(v) or isinstance(v, np.random.RandomState | np.random.Generator),
    "None, a whole number of at least 0, a RandomState or a Generator",
)


def check_parameters(estimator: Any, constraints: Mapping[str, Constraint]) -> None:
    """Check every parameter of an estimator against its table."""
    for name, value in estimator.get_params(deep=False).items():
        if not constraints[name].test(value):
            raise InvalidParameterError(
                f"{type(estimator).__name__}: {name}={value!r} is not {constraints[name].words}"
            )


def as_generator(random_state: RandomState) -> np.random.Generator:
    """A NumPy generator from whatever scikit-learn's users pass as ``random_state``."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    return np.random.default_rng(random_state)
