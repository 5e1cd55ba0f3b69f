"""Directions in which rows scatter more than elsewhere: tangents of the surface, or some that all nodes share.

A row is t = y_k + U_k f + e with f ~ N(0, I). A *loading* says what U_k is. For the M-step it writes the mean of a row
as linear in coefficients Θ, y_k + U_k f = gᵀ B_k Θ with g = (1, f), so that weights and directions are found together
by one regression:

- aligned: U_k = √η J_k, and both y and J are linear in the weights: Θ = W and B_k = [φ_k; √η ψ_k];
- shared: U_k = V, Θ = [W; Vᵀ] and B_k = [φ_k 0; 0 I].

``update`` then takes the units of f from the rows: where f is found to scatter by Ω instead of I, U is multiplied by
the root of Ω. What f is measured in does not matter to the density, so that this is a step of EM with one parameter
more (Liu, Rubin & Wu, 1998): the objective rises as surely, and faster.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from prinfold._typing import FloatArray
from prinfold.base.starting_points import leading_signs
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.gtm.noise.factor_sums import FactorStatistics
from prinfold.gtm.noise.protocol import Parameters
from prinfold.numerics.small_matrices import at, pairs

_FIRST_REACH = 0.5
_MOST_REACH = 1.0
"""Node spacings over which noise reaches along the surface, to begin with and at most where it is learned.

Beyond, each node does the work of its neighbours, and where weights are penalised a surface that shrinks to a point
with noise that reaches as much further would cost nothing.
"""


@dataclass(frozen=True)
class FactorParameters(Parameters):
    """Weights, precision β, and the factors of which a ``loading`` makes U: √η (), or Vᵀ (q, D)."""

    factors: FloatArray
    loading: Loading

    def extrapolate(self, new: Self, factor: float) -> Self:
        factors = new.loading.extrapolate(self.factors, new.factors, factor)
        return replace(super().extrapolate(new, factor), factors=factors)

    def to_arrays(self) -> dict[str, Any]:
        return self.loading.to_arrays(self.factors)


class Regression(NamedTuple):
    """B (K, 1 + q, M), Θ (M, D), and (M,) 1 where a coefficient is penalised, 0 where it is free."""

    design: FloatArray
    coefficients: FloatArray
    penalized: FloatArray


class UpdatedLoading(NamedTuple):
    """Weights, what U is made of, and the means (K, 1 + q, D) of (1, f) at the nodes in the units of the E-step."""

    weights: FloatArray
    factors: FloatArray
    means: FloatArray


class Loading(Protocol):
    """The verbs of a loading; see the head of this file."""

    @property
    def n_factors(self) -> int:
        """Directions in which rows scatter further."""

    def initial(self, weights: FloatArray) -> FloatArray:
        """First factors, of which U is made."""

    def factors(self, surface: BasisMap, parameters: FactorParameters) -> FloatArray:
        """(q, K, D) Uᵀ at the nodes."""

    def regression(self, surface: BasisMap, parameters: FactorParameters) -> Regression:
        """The mean of a row as linear in coefficients, and those as they are."""

    def update(
        self, coefficients: FloatArray, means: FloatArray, sums: FactorStatistics, parameters: FactorParameters
    ) -> UpdatedLoading:
        """Parameters with new coefficients."""

    def extrapolate(self, old: FloatArray, new: FloatArray, factor: float) -> FloatArray:
        """The step from ``old`` to ``new``, ``factor`` times as far."""

    def to_arrays(self, factors: FloatArray) -> dict[str, float | FloatArray]:
        """Fitted attributes by name."""

    def restore(self, arrays: dict[str, Any], n_columns: int) -> FloatArray:
        """Factors from stored arrays; a ValueError where they do not fit."""


@dataclass(frozen=True)
class AlignedLoading:
    """U_k = √η J_k, thesis 6.2, with J in orthonormal latent directions.

    ``reach`` is √η in units of ``spacing``, the distance of nodes in latent space; None is to be learned.
    """

    n_factors: int
    spacing: float
    reach: float | None = None

    def initial(self, weights: FloatArray) -> FloatArray:
        return np.asarray(self.spacing * (_FIRST_REACH if self.reach is None else self.reach))

    def factors(self, surface: BasisMap, parameters: FactorParameters) -> FloatArray:
        return np.asarray(parameters.factors * np.moveaxis(surface.node_jacobian(parameters.weights), 2, 0))

    def regression(self, surface: BasisMap, parameters: FactorParameters) -> Regression:
        slopes = parameters.factors * np.swapaxes(surface.node_gradients, 1, 2)
        design = np.concatenate([surface.node_features[:, None], slopes], axis=1)
        return Regression(design, parameters.weights, surface.penalty_mask)

    def update(
        self, coefficients: FloatArray, means: FloatArray, sums: FactorStatistics, parameters: FactorParameters
    ) -> UpdatedLoading:
        """√η: the slope of the regression of residuals on J f, times the root of the scatter of f."""
        if self.reach is not None or parameters.factors == 0:
            return UpdatedLoading(coefficients, parameters.factors, means)
        M = np.moveaxis(means, 0, 2)  # (1 + q, D, K)
        along, size = float(np.vdot(sums.first[0, 1:], M[1:])), 0.0
        for a in range(1, len(M)):
            along -= float(np.sum(sums.second[0, at(a, 0)] * (M[a] * M[0])))
        for a, b in pairs(len(M)):
            if b > 0:
                size += (1.0 if a == b else 2.0) * float(np.sum(sums.second[0, at(a, b)] * (M[a] * M[b])))
        slope = along / size if size > 0 else 1.0
        root, most = float(np.sqrt(np.trace(sums.spread_of_factors()) / self.n_factors)), _MOST_REACH * self.spacing
        before = float(parameters.factors)
        if before * abs(slope) * root > most:  # as far as allowed with the units as they are: uphill too
            slope, root = min(slope, most / before), 1.0
        longer = np.concatenate([means[:, :1], slope * means[:, 1:]], axis=1)
        return UpdatedLoading(coefficients, np.asarray(before * abs(slope) * root), longer)

    def extrapolate(self, old: FloatArray, new: FloatArray, factor: float) -> FloatArray:
        """√η extrapolated by its logarithm."""
        if old <= 0 or new <= 0 or self.reach is not None:
            return new
        before, after = float(old), float(new)
        return np.asarray(min(before * (after / before) ** factor, _MOST_REACH * self.spacing))

    def to_arrays(self, factors: FloatArray) -> dict[str, float | FloatArray]:
        return {"reach": float(factors) / self.spacing}

    def restore(self, arrays: dict[str, Any], n_columns: int) -> FloatArray:
        reach = arrays.get("reach")
        if not isinstance(reach, float) or not 0 <= reach < np.inf:
            raise ValueError("the reach of the noise along the surface, finite and not negative")
        return np.asarray(reach * self.spacing)


@dataclass(frozen=True)
class SharedLoading:
    """U_k = V for all nodes, thesis 6.4.

    ``axes`` are the principal axes in which the surface is to begin, None being whichever do best.
    """

    n_factors: int
    axes: tuple[int, ...] | None = None

    def initial(self, weights: FloatArray) -> FloatArray:
        """Zeros; the directions come from the rows, see :mod:`prinfold.gtm.noise.factor_starts`."""
        return np.zeros((self.n_factors, weights.shape[1]))

    def factors(self, surface: BasisMap, parameters: FactorParameters) -> FloatArray:
        shape = (self.n_factors, surface.latent.n_nodes, parameters.weights.shape[1])
        return np.broadcast_to(parameters.factors[:, None], shape)

    def regression(self, surface: BasisMap, parameters: FactorParameters) -> Regression:
        (K, M), q = surface.node_features.shape, self.n_factors
        design = np.zeros((K, 1 + q, M + q))
        design[:, 0, :M] = surface.node_features
        design[:, 1:, M:] = np.eye(q)
        both = np.concatenate([parameters.weights, parameters.factors])
        return Regression(design, both, np.append(surface.penalty_mask, np.zeros(q)))

    def update(
        self, coefficients: FloatArray, means: FloatArray, sums: FactorStatistics, parameters: FactorParameters
    ) -> UpdatedLoading:
        """V times the symmetric root of the scatter of f, which turns it the least."""
        weights, V = coefficients[: -self.n_factors], coefficients[-self.n_factors :]
        size, turned = np.linalg.eigh(sums.spread_of_factors())
        root = (turned * np.sqrt(np.maximum(size, 0.0))) @ turned.T
        return UpdatedLoading(np.ascontiguousarray(weights), root @ V, means)

    def extrapolate(self, old: FloatArray, new: FloatArray, factor: float) -> FloatArray:
        return np.asarray(old + factor * (new - old))

    def to_arrays(self, factors: FloatArray) -> dict[str, float | FloatArray]:
        """Along principal axes, the longest first: any turn of V is the same noise."""
        _, size, axes = np.linalg.svd(factors, full_matrices=False)
        return {"loadings": (size * leading_signs(axes))[:, None] * axes}

    def restore(self, arrays: dict[str, Any], n_columns: int) -> FloatArray:
        found, shape = np.asarray(arrays.get("loadings")), (self.n_factors, n_columns)
        if found.dtype.kind != "f" or found.shape != shape or not np.isfinite(found).all():
            raise ValueError(f"finite loadings of the noise, of shape {shape}")
        return found
