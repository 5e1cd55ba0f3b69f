"""Noise with factors: rows scatter in all directions, and further in a few.

    t = y_k + U_k f + e,   f ~ N(0, I),   e independent from cell to cell

so that Σ_k = I/β + U_k U_kᵀ. What U is, a *loading* says: the tangents of the surface (thesis 6.2) or directions that
all nodes share (6.4). With P the precisions of the cells of e, and S = I + UᵀPU of as many rows as there are factors,

    ln|Σ| = ln|S| − ln|P|,   dᵀΣ⁻¹d = dᵀPd − bᵀS⁻¹b,   b = UᵀPd,   f | t, k ~ N(S⁻¹b, S⁻¹)

so that no D×D matrix is needed. Training is EM with the factors f as missing data, as for factor analysis (Rubin &
Thayer, 1982): exact maximum likelihood. The update (3.12) of β, with which the scatter along U would be counted twice,
does not come into it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.gtm.noise.factor_loadings import FactorParameters, Loading
from prinfold.gtm.noise.factor_sums import FactorStatistics, solve_factors
from prinfold.gtm.noise.protocol import Precision
from prinfold.gtm.penalties import Penalty
from prinfold.numerics.linalg import solve_symmetric

WORDS = "noise with factors (aligned or of low rank)"


@dataclass(frozen=True)
class FactorModel:
    """Noise with factors, whatever the rows: parameters, M-step, rows drawn from it."""

    floor: float
    loading: Loading

    def initial(self, weights: FloatArray, precision: Precision) -> FactorParameters:
        return self._make_parameters(weights, float(precision), self.loading.initial(weights))

    def restore(self, weights: FloatArray, variance: float, arrays: dict[str, Any]) -> FactorParameters:
        return self._make_parameters(weights, 1.0 / variance, self.loading.restore(arrays, weights.shape[1]))

    def _make_parameters(self, weights: FloatArray, precision: float, factors: FloatArray) -> FactorParameters:
        return FactorParameters(weights, precision, factors, self.loading, ceiling=1.0 / self.floor)

    def m_step(
        self, surface: BasisMap, sums: FactorStatistics, penalty: Penalty, parameters: FactorParameters
    ) -> FactorParameters:
        """Weights and directions by one regression, then the units of the factors, then the noise.

        Each is the best for those before it, so that none lowers the objective. Where errors are known, the noise takes
        one step of EM as in :class:`~prinfold.gtm.noise.per_cell.CellNoise`.
        """
        design, before, penalized = self.loading.regression(surface, parameters)
        decay = penalty.strength(parameters.level) * penalized
        coefficients = solve_factors(sums, design, decay, before, solve_symmetric)
        new = self.loading.update(coefficients, design @ coefficients, sums, parameters)
        error = sums.residual(new.means) + (sums.seen - sums.trusted) / parameters.level
        precision = penalty.precision(sums.seen, error, surface.roughness(new.weights))
        return self._make_parameters(new.weights, min(precision, 1.0 / self.floor), new.factors)


def draw_rows(
    centers: FloatArray, factors: FloatArray, precision: float, node: IntArray, rng: np.random.Generator
) -> FloatArray:
    """(n, D) one row from each node named, of centres (K, D) and factors (q, K, D)."""
    apart = rng.standard_normal((len(node), centers.shape[1])) / np.sqrt(precision)
    for U in factors:
        apart += rng.standard_normal((len(node), 1)) * U[node]
    return np.asarray(centers[node] + apart)


def covariances(factors: FloatArray, precision: float, axes: FloatArray) -> FloatArray:
    """(K, a, a) covariance of the noise at each node of factors (q, K, D), seen along axes (D, a)."""
    seen = factors @ axes
    return np.asarray(np.einsum("qka,qkb->kab", seen, seen) + axes.T @ axes / precision)
