"""Sums over rows with factors: moments of (1, f) at every node, alone and with the rows.

With r the responsibility of a node and f the factors of a row, all sums are of r E[g gᵀ] and r E[g] tᵀ over rows, g
being the vector (1, f): the sufficient statistics of factor analysis (Rubin & Thayer, 1982; thesis 2.2.1) at each node.
Symmetric matrices in g are packed as in :mod:`prinfold.numerics.small_matrices`, so that entry
0 is r itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from prinfold._typing import FloatArray
from prinfold.files import storable
from prinfold.files.kinds import ANY, Kinds, number, numbers
from prinfold.gtm.noise.protocol import RowStatistics
from prinfold.numerics.small_matrices import at, pairs, unpacked
from prinfold.validation.settings import real


@storable
@dataclass(frozen=True)
class FactorStatistics(RowStatistics):
    """Sums over rows, under the parameters of the E-step; ρ is the share of a cell's variance that is noise.

    ``moments`` (F, K) are Σ r E[g gᵀ], packed. ``second`` (P, F, C, K) are the same times ρ, for each column where rows
    have gaps or errors and for all of them together (C = 1) where they have not; ``first`` (P, 1 + q, D, K) are
    Σ r ρ E[g] tᵀ. Where errors are known P is 2, and what comes second is with ρ² in place of ρ. ``square`` is
    Σ ρ² t², ``seen`` counts what was measured, and ``trusted`` is Σ ρ.
    """

    _kinds: ClassVar[Kinds] = {
        "moments": numbers("pairs", "K"),
        "second": numbers("groups", "pairs", ANY, "K"),
        "first": numbers("groups", "factors", "D", "K"),
        "square": number,
        "seen": number,
        "trusted": number,
        "log_likelihood": number,
        "total": real(0),
    }

    masses: ClassVar[None] = None

    moments: FloatArray
    second: FloatArray
    first: FloatArray
    square: float
    seen: float
    trusted: float
    log_likelihood: float
    total: float

    @property
    def mass(self) -> FloatArray:
        """(K,) Σ r."""
        return np.asarray(self.moments[0])

    @property
    def moment(self) -> FloatArray:
        """(K, D) Σ r ρ t."""
        return np.asarray(self.first[0, 0].T)

    @property
    def n_factors(self) -> int:
        return int(self.first.shape[1]) - 1

    def residual(self, means: FloatArray) -> float:
        """Σ r E‖ρ (t − gᵀM)‖² for the means M (K, 1 + q, D) of (1, f) at each node."""
        M = np.moveaxis(means, 0, 2)  # (1 + q, D, K)
        found = self.square - 2.0 * float(np.vdot(self.first[-1], M))
        for a, b in pairs(len(M)):
            found += (1.0 if a == b else 2.0) * float(np.sum(self.second[-1, at(a, b)] * (M[a] * M[b])))
        return max(found, 0.0)

    def spread_of_factors(self) -> FloatArray:
        """(q, q) the mean of E[f fᵀ] over rows."""
        whole = self.moments.sum(axis=1)[unpacked(1 + self.n_factors)]
        return np.asarray(whole[1:, 1:] / self.total)


def solve_factors(
    sums: FactorStatistics, design: FloatArray, decay: FloatArray, coefficients: FloatArray, solve: Any
) -> FloatArray:
    """Coefficients Θ (M, D) that minimise Σ r ρ E‖t − gᵀBΘ‖² + Σ decay Θ², for the design B (K, 1 + q, M).

    Solved for the change from ``coefficients``, as :meth:`BasisMap.solve` is; columns with equal masses share a system.
    """
    second, first = sums.second[0], sums.first[0]
    index, width = unpacked(design.shape[1]), second.shape[1]
    flat = second.transpose(0, 2, 1).reshape(-1, width)
    kinds, kind = (flat, np.zeros(1, dtype=int)) if width == 1 else np.unique(flat, axis=1, return_inverse=True)
    new, rows = np.empty_like(coefficients), design.reshape(-1, design.shape[2])
    for j, column in enumerate(kinds.T):
        chosen = slice(None) if width == 1 else np.flatnonzero(kind.reshape(-1) == j)
        A = np.moveaxis(column.reshape(len(second), -1)[index], 2, 0)  # (K, 1 + q, 1 + q)
        now = coefficients[:, chosen]
        pull = np.moveaxis(first[:, chosen], 2, 0) - A @ (design @ now)
        right = rows.T @ pull.reshape(len(rows), -1) - decay[:, None] * now
        gram = rows.T @ (A @ design).reshape(rows.shape)
        gram = 0.5 * (gram + gram.T)
        gram.flat[:: len(gram) + 1] += decay
        new[:, chosen] = now + solve(gram, right)
    return new
