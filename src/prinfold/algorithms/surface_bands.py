"""How sure a surface is: the posterior of its weights about their mode (Laplace), and what follows at any place.

    p(W | T) ≈ N(Ŵ, H⁻¹),   H = H_T + αM,        cov y(z) = φ(z) H⁻¹ φ(z)ᵀ

with H_T the Hessian of −ln p(T | W), approximate (A.11) or exact (A.13), and M the penalty mask. The approximate one
takes the node of each row as known: it is the same for every column, and all it needs of the rows are the masses of
the nodes. The exact one knows that moving the surface along itself can be made up for by moving the rows with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import eigh

from prinfold._arrays import Rows, blas_on_one_thread
from prinfold._typing import FloatArray
from prinfold.algorithms import gtm
from prinfold.algorithms.evidence import approximate_block, exact_hessian
from prinfold.algorithms.noise import Parameters
from prinfold.exceptions import InvalidParameterError

_ROUNDING = 1e-13
"""Share of the largest curvature below which one is rounding; what has none is as unsure as this leaves it."""

_MOST_WEIGHTS = 4000
"""Weights of all columns together whose joint Hessian is decomposed: a minute, and 128 MB."""


class WeightPosterior(Protocol):
    """A Gaussian posterior of the weights of a map."""

    def covariance(self, features: FloatArray) -> FloatArray:
        """(n, D, D) covariance of y(z) = φ(z) W between columns, from features (n, M)."""

    def variance(self, features: FloatArray) -> FloatArray:
        """(n, D) its diagonals."""


@dataclass(frozen=True)
class EqualColumns:
    """Columns that are independent and alike: ``root`` (M, M) times its transpose is the covariance of each."""

    root: FloatArray
    n_columns: int

    def covariance(self, features: FloatArray) -> FloatArray:
        return np.asarray(self._of_one(features)[:, None, None] * np.eye(self.n_columns))

    def variance(self, features: FloatArray) -> FloatArray:
        return np.repeat(self._of_one(features)[:, None], self.n_columns, axis=1)

    def _of_one(self, features: FloatArray) -> FloatArray:
        seen = features @ self.root
        return np.asarray(np.einsum("nr,nr->n", seen, seen))


@dataclass(frozen=True)
class JointColumns:
    """Columns that vary together: ``root`` (D, M, r); the covariance of weights i, j of columns d, e is Σ_r of both."""

    root: FloatArray

    def covariance(self, features: FloatArray) -> FloatArray:
        seen = np.einsum("nm,dmr->ndr", features, self.root, optimize=True)
        return np.asarray(seen @ np.swapaxes(seen, 1, 2))

    def variance(self, features: FloatArray) -> FloatArray:
        seen = np.einsum("nm,dmr->ndr", features, self.root, optimize=True)
        return np.asarray(np.einsum("ndr,ndr->nd", seen, seen))


def approximate_posterior(model: gtm.GTMModel, mass: FloatArray, parameters: Parameters) -> EqualColumns:
    """The posterior by the approximate Hessian, H = βΦᵀGΦ + αM for each column."""
    hessian, alpha = approximate_block(model.surface, mass, parameters.level), prior_precision(model, parameters)
    hessian[np.diag_indices_from(hessian)] += alpha * model.surface.penalty_mask
    return EqualColumns(inverse_root(hessian, alpha), parameters.weights.shape[1])


def exact_posterior(model: gtm.GTMModel, rows: Rows, parameters: Parameters) -> JointColumns:
    """The posterior by the exact Hessian. Where that bends the wrong way, as it may off the mode, the prior decides."""
    n_features, n_columns = parameters.weights.shape
    if n_features * n_columns > _MOST_WEIGHTS:
        raise InvalidParameterError(
            f"the exact Hessian of {n_features} × {n_columns} weights is too large, at most {_MOST_WEIGHTS} are "
            'taken; use hessian="approximate", or fewer basis functions or columns'
        )
    hessian, alpha = exact_hessian(model, rows, parameters), prior_precision(model, parameters)
    hessian[np.diag_indices_from(hessian)] += alpha * np.tile(model.surface.penalty_mask, n_columns)
    return JointColumns(inverse_root(hessian, alpha).reshape(n_columns, n_features, -1))


def prior_precision(model: gtm.GTMModel, parameters: Parameters) -> float:
    """α = λβ of whatever penalty."""
    return float(model.penalty.strength(parameters.level) * parameters.level)


def left_by_nodes(model: gtm.GTMModel, parameters: Parameters, Z: FloatArray) -> FloatArray:
    """(n,) variance at z of a process whose value at every node is known; none for basis functions."""
    basis = model.surface.basis
    if not hasattr(basis, "unexplained"):
        return np.zeros(len(Z))
    precision = prior_precision(model, parameters)
    unexplained: FloatArray = basis.unexplained(Z)
    return unexplained / max(precision, float(np.finfo(float).tiny))


def inverse_root(A: FloatArray, least: float) -> FloatArray:
    """R with RRᵀ = A⁻¹ of a symmetric A; eigenvalues that are rounding or negative are taken for ``least``."""
    with blas_on_one_thread():
        value, vector = eigh(A)
    rounding = max(_ROUNDING * float(value[-1]), float(np.finfo(float).tiny))
    return np.asarray(vector / np.sqrt(np.where(value > rounding, value, max(least, rounding))))
