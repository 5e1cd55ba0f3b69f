"""Coordinates of rows in the feature space of a kernel: section 3 of Meinicke et al. (2005).

A kernel k on data stands for inner products in some feature space. Centred at the mean feature the training rows span
at most n − 1 dimensions of it, so that an eigendecomposition of their kernel matrix gives each a row of ordinary
coordinates with the same inner products, and kernel evaluations give those of any other row. A method for tables then
works in feature space as it stands. Centring makes conditionally positive definite kernels serve as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy.linalg import eigh

from prinfold._typing import FloatArray
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.files import storable
from prinfold.files.kinds import Kinds, numbers

Kernel = Callable[[FloatArray, FloatArray], FloatArray]
"""Kernel values (n, m) between the rows of two tables."""

_NEGATIVE_EIGENVALUE_SHARE = 1e-6
"""Eigenvalues below minus this share of the largest are no rounding: the kernel is not positive definite."""

_LEAST_EIGENVALUE_SHARE = 1e-12
"""Eigenvalues below this share of the largest are left out: coordinates of rounding."""


class Features(Protocol):
    """Coordinates of rows in which Euclidean distances are those of the model."""

    @property
    def origin(self) -> FloatArray:
        """(r,) origin of the coordinates in the columns of the table; zeros in feature space."""

    @property
    def span(self) -> Span | None:
        """The space that training rows span in feature space; None for columns themselves."""

    def coordinates(self, table: FloatArray) -> FloatArray:
        """(n, r) coordinates of rows, the mean of the training rows at the origin, float64."""

    def beyond(self, table: FloatArray) -> FloatArray:
        """(n,) squared distance of rows from the space that the training rows span."""


@dataclass(frozen=True, eq=False)
class PlainFeatures:
    """The columns themselves, about ``origin`` (D,)."""

    origin: FloatArray
    span: None = None

    def coordinates(self, table: FloatArray) -> FloatArray:
        return np.subtract(table, self.origin, dtype=np.float64)

    def beyond(self, table: FloatArray) -> FloatArray:
        return np.zeros(len(table))


@storable
@dataclass(frozen=True, eq=False)
class Span:
    """The space that training rows span in feature space, by numbers alone.

    Parameters
    ----------
    rows : (n, D) array
        Training rows, against which kernels are evaluated.
    column_mean : (n,) array
        Mean kernel value of each training row with all of them.
    share : (n,) array
        Shares of the training rows in those means, which sum to one.
    basis : (n, r) array
        U Λ^(−½), with U Λ Uᵀ the centred kernel matrix of the training rows.
    """

    _kinds: ClassVar[Kinds] = {
        "rows": numbers("n", "D"),
        "column_mean": numbers("n"),
        "share": numbers("n", least=0),
        "basis": numbers("n", "r"),
    }

    rows: FloatArray
    column_mean: FloatArray
    share: FloatArray
    basis: FloatArray

    def centered(self, values: FloatArray) -> FloatArray:
        """Kernel values (m, n) against the training rows, about the mean feature."""
        own = values @ self.share
        return np.asarray(values - own[:, None] - self.column_mean + self.share @ self.column_mean)


@dataclass(frozen=True, eq=False)
class KernelFeatures:
    """Coordinates Φ(x) = k̃(x, ·) U Λ^(−½), k̃ the centred kernel; without a kernel, tables hold its values already."""

    kernel: Kernel | None
    span: Span

    @property
    def origin(self) -> FloatArray:
        return np.zeros(self.span.basis.shape[1])

    def coordinates(self, table: FloatArray) -> FloatArray:
        return self.span.centered(self._values(table)) @ self.span.basis

    def beyond(self, table: FloatArray) -> FloatArray:
        if self.kernel is None:  # a row's kernel value with itself is not among those given
            return np.zeros(len(table))
        span, values = self.span, self._values(table)
        itself = np.array([float(np.squeeze(self.kernel(row, row))) for row in table[:, None]])
        length = itself - 2.0 * values @ span.share + span.share @ span.column_mean
        within = np.square(span.centered(values) @ span.basis).sum(axis=1)
        return np.asarray(np.maximum(length - within, 0.0))

    def _values(self, table: FloatArray) -> FloatArray:
        if self.kernel is None:
            return np.asarray(table, dtype=np.float64)
        return kernel_values(self.kernel, table, self.span.rows)


def kernel_features(kernel: Kernel | None, rows: FloatArray, weight: FloatArray) -> KernelFeatures:
    """Coordinates from a kernel on training rows, or from their kernel matrix (n, n) where ``kernel`` is None."""
    values = np.asarray(rows, dtype=np.float64) if kernel is None else kernel_values(kernel, rows, rows)
    if len(values) != values.shape[1]:
        raise InvalidDataError(
            f"a precomputed kernel of n training rows must have shape (n, n), got {values.shape}; for a kernel that is "
            "to be computed give its name or a function as feature_kernel"
        )
    asymmetry = float(np.abs(values - values.T).max())
    if asymmetry > 1e-8 * float(np.abs(values).max()):
        raise InvalidDataError(
            f"the kernel matrix is not symmetric: two entries differ by {asymmetry:.3g}. Give a symmetric kernel"
        )
    share = weight / weight.sum()
    flat = Span(rows, values @ share, share, np.empty((len(values), 0)))
    spectrum, vectors = eigh(flat.centered(0.5 * (values + values.T)))
    largest = float(max(spectrum[-1], 0.0))
    if spectrum[0] < -_NEGATIVE_EIGENVALUE_SHARE * max(largest, np.finfo(float).tiny):
        raise InvalidDataError(
            f"the kernel is not conditionally positive definite: centred, its matrix has eigenvalues from "
            f"{spectrum[0]:.3g} to {largest:.3g}; use another feature_kernel, or raise its smallest eigenvalues"
        )
    real = spectrum > _LEAST_EIGENVALUE_SHARE * largest
    return KernelFeatures(kernel, replace(flat, basis=vectors[:, real] / np.sqrt(spectrum[real])))


def kernel_values(kernel: Kernel, A: FloatArray, B: FloatArray) -> FloatArray:
    """(n, m) kernel values in float64; raises where shape or values are wrong."""
    values = np.asarray(kernel(A, B), dtype=np.float64)
    if values.shape != (len(A), len(B)) or not np.isfinite(values).all():
        raise InvalidParameterError(
            f"feature_kernel must return finite values of shape (n, m) for tables of n and m rows; for {len(A)} and "
            f"{len(B)} it returned shape {values.shape}"
        )
    return values


def l1_kernel(A: FloatArray, B: FloatArray) -> FloatArray:
    """½(‖a‖₁ + ‖b‖₁ − ‖a − b‖₁), UKR's (17): squared distances in feature space are L1 distances of the data."""
    from scipy.spatial.distance import cdist  # deferred: most fits have no feature kernel

    far = cdist(np.asarray(A, dtype=np.float64), np.asarray(B, dtype=np.float64), "cityblock")
    return np.asarray(0.5 * (np.abs(A).sum(axis=1)[:, None] + np.abs(B).sum(axis=1) - far))


def make_kernel(name: str | Kernel, options: Mapping[str, Any] | None) -> Kernel:
    """A kernel by name, ours or one of scikit-learn's, or one that was given."""
    options = dict(options or {})
    if callable(name):
        return partial(_given_kernel, name, options)
    if name == "l1":
        return l1_kernel
    return partial(_library_kernel, name, options)


def _given_kernel(kernel: Kernel, options: Mapping[str, Any], A: FloatArray, B: FloatArray) -> FloatArray:
    try:
        return kernel(A, B, **options)
    except TypeError as error:
        raise InvalidParameterError(
            f"feature_kernel must be a function of two tables (n, D) and (m, D) that returns (n, m) numbers: {error}"
        ) from error


def _library_kernel(name: str, options: Mapping[str, Any], A: FloatArray, B: FloatArray) -> FloatArray:
    from sklearn.metrics.pairwise import pairwise_kernels

    try:
        return np.asarray(pairwise_kernels(A, B, metric=name, **options))
    except (TypeError, ValueError) as error:
        raise InvalidDataError(
            f"the kernel {name!r} cannot be computed for these rows: {str(error).rstrip('.')}. Take another "
            "feature_kernel, such as 'rbf', or correct its options"
        ) from error


KERNEL_NAMES = ("l1", "linear", "rbf", "laplacian", "polynomial", "cosine", "sigmoid", "chi2", "additive_chi2")
"""Kernels known by name: the L1 kernel of the paper, and scikit-learn's."""
