"""Uncertainty of a surface: the posterior of its weights about their mode (Laplace), and its variance at any place.

    p(W | T) ≈ N(Ŵ, H⁻¹),   H = H_T + αM,        cov y(z) = φ(z) H⁻¹ φ(z)ᵀ

with H_T the Hessian of −ln p(T | W), approximate (A.11) or exact (A.13) of the thesis, and M the penalty mask. The
approximate one takes the node of each row as known, and all it needs of the rows are the masses of the nodes: the same
for every column, or its own where cells are missing or known with an error. The exact one knows that moving the surface
along itself can be made up for by moving the rows with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import eigh

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import Advice, InvalidParameterError, Message
from prinfold.gtm import model as gtm
from prinfold.gtm.evidence import approximate_block, check_hessian, exact_hessian, refuse_dependent_cells
from prinfold.gtm.node_selection import Hint
from prinfold.gtm.noise.protocol import Parameters, in_words, node_masses
from prinfold.rows.rows import Rows, blas_on_one_thread

_CURVATURE_ROUNDING = 1e-13
"""Share of the largest curvature below which one is rounding; smaller ones are taken for this."""

_MOST_WEIGHTS = 4000
"""Weights of all columns together whose joint Hessian is decomposed: a minute, and 128 MB."""

_PLACES_AT_ONCE = 512
"""Places for which the covariance is found at once."""


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
class OwnColumns:
    """Columns that are independent, each of a kind: ``roots`` of the kinds, and the ``kind`` (D,) of each column."""

    roots: tuple[FloatArray, ...]
    kind: IntArray

    def covariance(self, features: FloatArray) -> FloatArray:
        return np.asarray(self.variance(features)[:, :, None] * np.eye(len(self.kind)))

    def variance(self, features: FloatArray) -> FloatArray:
        of_kinds = [EqualColumns(root, 1).variance(features)[:, 0] for root in self.roots]
        return np.stack(of_kinds, axis=1)[:, self.kind]


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


def approximate_posterior(model: gtm.GTMModel, mass: FloatArray, parameters: Parameters) -> WeightPosterior:
    """The posterior by the approximate Hessian, H = β_d ΦᵀG_dΦ + α_d M for column d.

    Masses (K,) are those of every column; where cells are missing, (K, D) are their own. So may the noise be.
    """
    n_columns, precision = parameters.weights.shape[1], np.asarray(parameters.precision, dtype=float)
    if mass.ndim == 1 and precision.ndim == 0:
        return EqualColumns(_root_of_column(model, mass, float(precision)), n_columns)
    own = np.broadcast_to(mass.reshape(len(mass), -1), (len(mass), n_columns))
    kinds, kind = np.unique(np.vstack([own, np.broadcast_to(precision, n_columns)]), axis=1, return_inverse=True)
    roots = tuple(_root_of_column(model, column[:-1], float(column[-1])) for column in kinds.T)
    return OwnColumns(roots, kind.reshape(-1))


def _root_of_column(model: gtm.GTMModel, mass: FloatArray, precision: float) -> FloatArray:
    hessian, alpha = approximate_block(model.surface, mass, precision), prior_precision(model, precision)
    hessian[np.diag_indices_from(hessian)] += alpha * model.surface.penalty_mask
    return inverse_root(hessian, alpha)


def exact_posterior(model: gtm.GTMModel, rows: Rows, parameters: Parameters) -> JointColumns:
    """The posterior by the exact Hessian. Where that bends the wrong way, as it may off the mode, the prior decides."""
    n_features, n_columns = parameters.weights.shape
    if n_features * n_columns > _MOST_WEIGHTS:
        raise InvalidParameterError(
            f"the exact Hessian of {n_features} × {n_columns} weights is too large, at most {_MOST_WEIGHTS} are "
            'taken; use hessian="approximate", or fewer basis functions or columns'
        )
    hessian, precision = exact_hessian(model, rows, parameters), np.broadcast_to(parameters.precision, n_columns)
    alpha = np.array([prior_precision(model, float(each)) for each in precision])
    hessian[np.diag_indices_from(hessian)] += np.outer(alpha, model.surface.penalty_mask).ravel()
    return JointColumns(inverse_root(hessian, float(alpha.min())).reshape(n_columns, n_features, -1))


def prior_precision(model: gtm.GTMModel, precision: float) -> float:
    """α = λβ of whatever penalty."""
    return float(model.penalty.strength(precision) * precision)


def variance_given_nodes(model: gtm.GTMModel, parameters: Parameters, Z: FloatArray) -> FloatArray:
    """(n, D) variance at z of a Gaussian process whose value at every node is known; none for basis functions."""
    unexplained, n_columns = model.surface.capabilities.unexplained, parameters.weights.shape[1]
    if unexplained is None:
        return np.zeros((len(Z), n_columns))
    precision = np.broadcast_to(np.asarray(parameters.precision, dtype=float), n_columns)
    prior = np.array([prior_precision(model, float(each)) for each in precision])
    return np.asarray(unexplained(Z)[:, None] / np.maximum(prior, np.finfo(float).tiny))


def inverse_root(A: FloatArray, least: float) -> FloatArray:
    """R with RRᵀ = A⁻¹ of a symmetric A; eigenvalues that are rounding or negative are taken for ``least``."""
    with blas_on_one_thread():
        value, vector = eigh(A)
    rounding = max(_CURVATURE_ROUNDING * float(value[-1]), float(np.finfo(float).tiny))
    return np.asarray(vector / np.sqrt(np.where(value > rounding, value, max(least, rounding))))


# ---------------------------------------------------------------------------------------- bands about a surface


class PosteriorRule(NamedTuple):
    """A way to the posterior of the weights: whom it refuses, and what it finds from rows or from masses of nodes."""

    refuse: Callable[[gtm.GTMModel], None]
    of_rows: Callable[[gtm.GTMModel, Rows, Parameters], WeightPosterior]
    of_masses: Callable[[gtm.GTMModel, FloatArray | None, Parameters], WeightPosterior]


def _refuse_inexact(model: gtm.GTMModel) -> None:
    refuse_dependent_cells(model, "the exact Hessian", 'hessian="approximate"')


def _refuse_masses(model: gtm.GTMModel, mass: FloatArray | None, parameters: Parameters) -> WeightPosterior:
    raise InvalidParameterError("the exact Hessian is a sum over rows; pass those of the fit as X=")


def _refuse_unknown(model: gtm.GTMModel) -> None:
    if model.noise.capabilities.cells is None:
        raise InvalidParameterError(
            Message(
                f"the posterior of a surface is not known for {in_words(model.noise)}",
                Advice("noise", "isotropic", "fit with {}"),
                Advice("noise", "diagonal", "{}"),
                Advice("noise", "student", "{}"),
            )
        )


def _approximate_of_rows(model: gtm.GTMModel, rows: Rows, parameters: Parameters) -> WeightPosterior:
    sums = gtm.e_step(model, rows, parameters, Hint())[0]
    return approximate_posterior(model, node_masses(sums), parameters)


def _approximate_of_masses(model: gtm.GTMModel, mass: FloatArray | None, parameters: Parameters) -> WeightPosterior:
    if mass is None:
        raise InvalidParameterError(
            "the model comes from a file of an older prinfold, which kept no masses of its nodes; pass the "
            "rows of the fit as X="
        )
    return approximate_posterior(model, mass, parameters)


RULES = {
    "exact": PosteriorRule(_refuse_inexact, exact_posterior, _refuse_masses),
    "approximate": PosteriorRule(_refuse_unknown, _approximate_of_rows, _approximate_of_masses),
}
"""Posteriors of the weights by the name of the Hessian."""


def refuse_unknown_posterior(model: gtm.GTMModel, hessian: str) -> None:
    """Refuse a Hessian of another name, and a noise whose posterior is not known."""
    check_hessian(hessian)
    RULES[hessian].refuse(model)


@blas_on_one_thread()
def posterior_of_rows(model: gtm.GTMModel, rows: Rows, parameters: Parameters, hessian: str) -> WeightPosterior:
    """The posterior of the weights given the rows of the fit."""
    return RULES[hessian].of_rows(model, rows, parameters)


def posterior_of_masses(
    model: gtm.GTMModel, mass: FloatArray | None, parameters: Parameters, hessian: str
) -> WeightPosterior:
    """The posterior of the weights given the masses that the fit left at the nodes."""
    return RULES[hessian].of_masses(model, mass, parameters)


def surface_variance(
    model: gtm.GTMModel, posterior: WeightPosterior, parameters: Parameters, Z: FloatArray
) -> FloatArray:
    """(n, D) posterior variance of the surface at places."""
    found = np.empty((len(Z), parameters.weights.shape[1]))
    for part, features, beyond in _in_parts(model, parameters, Z):
        found[part] = posterior.variance(features) + beyond
    return found


def surface_covariance(
    model: gtm.GTMModel, posterior: WeightPosterior, parameters: Parameters, Z: FloatArray
) -> FloatArray:
    """(n, D, D) posterior covariance of the surface at places."""
    n_columns = parameters.weights.shape[1]
    found = np.empty((len(Z), n_columns, n_columns))
    for part, features, beyond in _in_parts(model, parameters, Z):
        found[part] = posterior.covariance(features) + beyond[:, :, None] * np.eye(n_columns)
    return found


def _in_parts(
    model: gtm.GTMModel, parameters: Parameters, Z: FloatArray
) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    """Blocks of places with their features, and the variance that a process has beyond its nodes."""
    for i in range(0, len(Z), _PLACES_AT_ONCE):
        part = slice(i, i + _PLACES_AT_ONCE)
        yield part, model.surface.basis.features(Z[part]), variance_given_nodes(model, parameters, Z[part])
