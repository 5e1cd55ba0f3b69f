"""Noise with factors: rows scatter in all directions, and further in a few.

    t = y_k + U_k f + e,   f ~ N(0, I),   e independent from cell to cell

so that Σ_k = I/β + U_k U_kᵀ. What U is, a *loading* says: the tangents of the surface (thesis 6.2) or directions that
all nodes share (6.4). With P the precisions of the cells of e, and S = I + UᵀPU of as many rows as there are factors,

    ln|Σ| = ln|S| − ln|P|,   dᵀΣ⁻¹d = dᵀPd − bᵀS⁻¹b,   b = UᵀPd,   f | t, k ~ N(S⁻¹b, S⁻¹)

so that no D×D matrix is needed. Training is EM with f as what is not known: exact maximum likelihood. The update (3.12)
of β, with which the scatter along U would be counted twice, does not come into it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.gtm.noise.factor_loadings import FactorParameters, Loading
from prinfold.gtm.noise.factor_sums import FactorStatistics, solve_factors
from prinfold.gtm.penalties import Penalty
from prinfold.numerics.linalg import solve_symmetric


@dataclass(frozen=True)
class FactorModel:
    """Noise with factors, whatever the rows: parameters, M-step, rows drawn from it."""

    floor: float
    loading: Loading

    @property
    def n_factors(self) -> int:
        return self.loading.n_factors

    def first(self, weights: FloatArray, precision: float) -> FactorParameters:
        return FactorParameters(weights, precision, self.loading.first(weights))

    def pooled(self, parameters: FactorParameters) -> FactorParameters:
        return parameters

    def floored(self, parameters: FactorParameters) -> bool:
        return bool(1.0 / parameters.precision <= self.floor)

    def keep(self, parameters: FactorParameters) -> dict[str, Any]:
        return self.loading.keep(parameters.factors)

    def recall(self, weights: FloatArray, variance: float, kept: dict[str, Any]) -> FactorParameters:
        return FactorParameters(weights, 1.0 / variance, self.loading.recall(kept, weights.shape[1]))

    def m_step(
        self, surface: BasisMap, sums: FactorStatistics, penalty: Penalty, parameters: FactorParameters
    ) -> FactorParameters:
        """Weights and directions by one regression, then the units of the factors, then the noise.

        Each is the best for those before it, so that none lowers the objective. Where errors are known, the noise takes
        one step of EM as in :class:`~prinfold.gtm.noise.per_cell.CellNoise`.
        """
        design, strength = self.loading.design(surface, parameters), penalty.strength(parameters.precision)
        decay = strength * self.loading.penalised(surface)
        before = self.loading.coefficients(parameters)
        coefficients = solve_factors(sums, design, decay, before, solve_symmetric)
        new = self.loading.finished(coefficients, design @ coefficients, sums, parameters)
        error = sums.residual(new.means) + (sums.seen - sums.trusted) / parameters.precision
        precision = penalty.precision(sums.seen, error, surface.roughness(new.weights))
        return FactorParameters(new.weights, min(precision, 1.0 / self.floor), new.factors)

    def stretched(self, old: FactorParameters, new: FactorParameters, factor: float) -> FactorParameters:
        """The step from ``old`` to ``new``, ``factor`` times as far; the noise by its logarithm."""
        weights = old.weights + factor * (new.weights - old.weights)
        precision = min(float(old.precision * (new.precision / old.precision) ** factor), 1.0 / self.floor)
        return FactorParameters(weights, precision, self.loading.stretched(old.factors, new.factors, factor))

    def draw(
        self, surface: BasisMap, parameters: FactorParameters, node: IntArray, rng: np.random.Generator
    ) -> FloatArray:
        """(n, D) one row from each node named."""
        centres = surface.nodes(parameters.weights)[node]
        apart = rng.standard_normal(centres.shape) / np.sqrt(parameters.precision)
        for U in self.loading.factors(surface, parameters):
            apart += rng.standard_normal((len(node), 1)) * U[node]
        return np.asarray(centres + apart)

    def covariance(self, surface: BasisMap, parameters: FactorParameters, axes: FloatArray) -> FloatArray:
        """(K, a, a) covariance of the noise at each node, seen along axes (D, a)."""
        seen = self.loading.factors(surface, parameters) @ axes
        return np.asarray(np.einsum("qka,qkb->kab", seen, seen) + axes.T @ axes / parameters.precision)
