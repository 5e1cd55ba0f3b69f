"""Mixtures of normal densities, and ratios of two densities, with their gradients, Hessians and mean shifts.

Gradient, Hessian and the fixed-point step on a mixture are those of Carreira-Perpiñán (2000), in logarithms. The
length over which a mixture changes, and the ratio with the mean shift of its numerator, are ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import log, pi
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from scipy.linalg import solve_triangular

from prinfold._typing import FloatArray
from prinfold.density.densities import IS_DERIVATIVES, STORED_DENSITY, Density, Derivatives, KernelDensity, resampled
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.files import storable
from prinfold.files.kinds import Kinds, numbers
from prinfold.validation.object_verbs import check_verbs

_NUMBERS_AT_ONCE = 2**20
"""Numbers in the largest array of a block of rows."""

_FARTHEST_COORDINATE = 1e100
"""Coordinates are clipped to this: their squares would be infinite."""


class _MixtureParts(NamedTuple):
    """log p (n,), shares b (n, K), and v = Σ_j⁻¹ (μ_j − x) (n, K, D) at a block of places."""

    log_density: FloatArray
    share: FloatArray
    pull: FloatArray


@storable
@check_verbs({"X": attrgetter("n_columns")}, at=IS_DERIVATIVES)
@dataclass(frozen=True, eq=False)
class MixtureDensity:
    """A mixture of normal densities.

    p(x) = Σ_j π_j N(x; μ_j, Σ_j)

    Parameters
    ----------
    weights : array (K,)
        π, none negative; scaled to add up to one.
    means : array (K, D)
        μ.
    covariances : array (K, D, D)
        Σ, symmetric and positive definite.
    """

    _kinds: ClassVar[Kinds] = {
        "weights": numbers("K", above=0),
        "means": numbers("K", "D"),
        "covariances": numbers("K", "D", "D"),
    }

    weights: FloatArray
    means: FloatArray
    covariances: FloatArray

    @property
    def n_columns(self) -> int:
        """Columns of a place."""
        return int(self.means.shape[1])

    @classmethod
    def of(cls, fitted: Any) -> MixtureDensity:
        """The density that a fitted ``GaussianMixture`` or ``BayesianGaussianMixture`` of scikit-learn has found.

        Parameters
        ----------
        fitted : estimator
            Of any ``covariance_type``.

        Returns
        -------
        MixtureDensity
            The same density.
        """
        if not all(hasattr(fitted, name) for name in ("weights_", "means_", "covariances_", "covariance_type")):
            raise InvalidParameterError(
                f"expected a fitted GaussianMixture of scikit-learn, got {type(fitted).__name__}; call its fit first"
            )
        means = np.asarray(fitted.means_, dtype=np.float64)
        widen = _COVARIANCES[fitted.covariance_type]
        return cls(np.asarray(fitted.weights_), means, widen(np.asarray(fitted.covariances_), *means.shape))

    def __post_init__(self) -> None:
        K, D = np.shape(self.means) if np.ndim(self.means) == 2 else (0, 0)
        if not K or not D or not np.isfinite(self.means).all():
            raise InvalidDataError(f"means must be finite numbers (K, D), got an array of shape {np.shape(self.means)}")
        if np.shape(self.weights) != (K,) or not (np.min(self.weights) >= 0 and 0 < np.sum(self.weights) < np.inf):
            raise InvalidDataError(f"expected {K} weights, none negative and not all zero, got {self.weights!r}")
        if np.shape(self.covariances) != (K, D, D):
            raise InvalidDataError(f"expected covariances ({K}, {D}, {D}), got shape {np.shape(self.covariances)}")
        S = np.asarray(self.covariances)
        if not (np.isfinite(S).all() and np.allclose(S, np.swapaxes(S, 1, 2)) and (np.linalg.eigvalsh(S) > 0).all()):
            raise InvalidDataError("covariances must be finite, symmetric and positive definite")

    def log_density(self, X: FloatArray) -> FloatArray:
        return np.concatenate([self._parts(block).log_density for block in self._blocks(X)])

    def derivatives(self, X: FloatArray) -> Derivatives:
        """log p, g = Σ b v and ∇² log p = Σ b (v − g)(v − g)ᵀ − Σ b Σ_j⁻¹, with shares b and v = Σ_j⁻¹ (μ_j − x)."""
        found = []
        for block in self._blocks(X):
            value, share, pull = self._parts(block)
            gradient = np.einsum("nk,nkd->nd", share, pull)
            pull = pull - gradient[:, None]
            hessian = np.einsum("nk,nkd,nke->nde", share, pull, pull) - self._mean_precision(share)
            found.append((value, gradient, hessian))
        return Derivatives._make(np.concatenate(each) for each in zip(*found, strict=True))

    def shift(self, X: FloatArray, at: Derivatives) -> FloatArray:
        """m = (Σ b_j Σ_j⁻¹)⁻¹ ∇ log p: the step to the fixed point of x for constant shares b."""
        precision = np.concatenate([self._mean_precision(self._parts(block).share) for block in self._blocks(X)])
        return np.linalg.solve(precision, at.gradient[:, :, None])[:, :, 0]

    def length(self, X: FloatArray) -> FloatArray:
        """(n,) (tr Σ b_j Σ_j⁻¹ / D)^(−1/2)."""
        share = np.concatenate([self._parts(block).share for block in self._blocks(X)])
        return np.asarray((np.einsum("nk,kdd->n", share, self._precision) / self.means.shape[1]) ** -0.5)

    def _blocks(self, X: FloatArray) -> list[FloatArray]:
        X = np.clip(np.asarray(X, dtype=np.float64), -_FARTHEST_COORDINATE, _FARTHEST_COORDINATE)
        size = max(1, _NUMBERS_AT_ONCE // self.means.size)
        return [X[i : i + size] for i in range(0, max(len(X), 1), size)]

    def _parts(self, X: FloatArray) -> _MixtureParts:
        d = np.asarray(self.means) - X[:, None]
        pull = np.einsum("kde,nke->nkd", self._precision, d)
        exponent = self._level - 0.5 * np.einsum("nkd,nkd->nk", d, pull)
        most = exponent.max(axis=1)
        share = np.exp(exponent - most[:, None])
        total = share.sum(axis=1)
        return _MixtureParts(np.log(total) + most, share / total[:, None], pull)

    def _mean_precision(self, share: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("nk,kde->nde", share, self._precision))

    @cached_property
    def _factor(self) -> FloatArray:
        """(K, D, D) inverses of Cholesky factors."""
        unit = np.eye(self.means.shape[1])
        return np.stack([solve_triangular(np.linalg.cholesky(S), unit, lower=True) for S in self.covariances])

    @cached_property
    def _precision(self) -> FloatArray:
        return np.asarray(np.swapaxes(self._factor, 1, 2) @ self._factor)

    @cached_property
    def _level(self) -> FloatArray:
        """(K,) log π − ½ log det 2πΣ."""
        volume = 0.5 * self.means.shape[1] * log(2.0 * pi)
        with np.errstate(divide="ignore"):
            share = np.log(self.weights / np.sum(self.weights))
        return np.asarray(share + np.log(np.einsum("kdd->kd", self._factor)).sum(axis=1) - volume)


_COVARIANCES: dict[str, Callable[[FloatArray, int, int], FloatArray]] = {
    "full": lambda S, K, D: S,
    "tied": lambda S, K, D: np.broadcast_to(S, (K, D, D)).copy(),
    "diag": lambda S, K, D: np.asarray(S[:, :, None] * np.eye(D)),
    "spherical": lambda S, K, D: np.asarray(S[:, None, None] * np.eye(D)),
}
"""(K, D, D) covariances from what scikit-learn keeps of each ``covariance_type``."""


@storable
@check_verbs({"X": None, "rows": None}, at=IS_DERIVATIVES)
@dataclass(frozen=True, eq=False)
class RatioDensity:
    """One density relative to another: log p = log p_top − log p_bottom, which need not integrate to 1.

    With the bottom that of random points all over a survey, under its mask, an edge of the survey is no ridge.

    Parameters
    ----------
    top, bottom : density
        Any two with the four verbs of :class:`~prinfold.density.densities.Density`. Kernels of the bottom should be
        no narrower than those of the top.
    """

    _kinds: ClassVar[Kinds] = {"top": STORED_DENSITY, "bottom": STORED_DENSITY}

    top: Density
    bottom: Density

    @property
    def n_columns(self) -> int:
        """Columns of a place."""
        return int(cast(Any, self.top).n_columns)  # as every density of a file has them

    def __post_init__(self) -> None:
        for name in ("top", "bottom"):
            if not isinstance(getattr(self, name), Density):
                raise InvalidParameterError(
                    f"{name} must be a density with the methods log_density, derivatives, shift and length, "
                    f"got {type(getattr(self, name)).__name__}"
                )

    def log_density(self, X: FloatArray) -> FloatArray:
        return np.asarray(self.top.log_density(X) - self.bottom.log_density(X))

    def derivatives(self, X: FloatArray) -> Derivatives:
        return Derivatives._make(
            a - b for a, b in zip(self.top.derivatives(X), self.bottom.derivatives(X), strict=True)
        )

    def shift(self, X: FloatArray, at: Derivatives) -> FloatArray:
        """Mean shift of the numerator with this gradient: h² times it, or the matrix H of the kernels times it."""
        return self.top.shift(X, at)

    def length(self, X: FloatArray) -> FloatArray:
        """(n,) length over which the top changes."""
        return self.top.length(X)

    def kernels(self) -> KernelDensity:
        return resampled(self.top).kernels()

    def on_rows(self, rows: FloatArray, weight: FloatArray) -> RatioDensity:
        return RatioDensity(resampled(self.top).on_rows(rows, weight), self.bottom)
