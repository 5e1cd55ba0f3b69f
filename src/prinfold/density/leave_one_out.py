"""Bandwidth of maximum leave-one-out likelihood, with a share of the rows allowed to be outliers.

Leave-one-out likelihood (Habbema, Hermans and van den Broek 1974) is fragile: three outliers in 500 rows can make the
bandwidth eight times as wide. A uniform component for outliers, as Banfield and Raftery (1993) add one to mixtures,
prevents that; its use here and the EM step below are ours. Here a row comes from the kernels of the others with
probability 1 − ε, and else from anywhere in the ball about all rows:

    L(h, ε) = Σ_i w_i log[(1 − ε) p_{−i}(x_i; h) + ε / |ball|] / Σ_i w_i,    0 ≤ ε ≤ ½.

A row far from all others then costs what the ball does, whatever the bandwidth. EM has its fixed point where

    h² = Σ_i w_i r_i Σ_j b_ij ‖x_i − x_j‖² / (D Σ_i w_i r_i),

with r the share that the kernels have in a row and b the shares of the kernels in that, and no step of it lowers L.
Only distances between rows are needed, which rings hold for every bandwidth at once; see ``density.ring_counts``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf, lgamma, log, pi

import numpy as np
from scipy.spatial import cKDTree

from prinfold._typing import FloatArray
from prinfold.base.starting_points import evenly_by_radius
from prinfold.density.kernel_widths import least_loss_bandwidth
from prinfold.density.ring_counts import Rings, make_rings

MOST_SAMPLED_ROWS = 2048
"""Most rows whose likelihood given all others is computed; of more rows, a sample at even steps of the radius."""

_NEIGHBORS, _LEAST_SHARE_OF_DISTANCE = 5, 0.1
"""No bandwidth is below a tenth of the median distance to the fifth neighbour, divided by √D.

Rows that come in pairs with next to nothing between them, as when a table was rounded in two ways, would otherwise have
a likelihood without bound."""

_GRID_RATIO = 1.15
"""Between bandwidths tried before the best is refined: the likelihood may have several maxima."""

_MOST_OUTLIERS = 0.5
"""Largest share ε of outliers."""

_SHARE_STEPS = 30
"""Steps of EM on ε alone: from 5 %, to three digits where it matters."""


@dataclass(frozen=True, eq=False)
class LeaveOneOutLikelihood:
    """Leave-one-out likelihood of bandwidths, from ``rings`` about some rows with weights ``weight`` (m,).

    ``others`` (m,) is the weight of all rows but the one sampled; ``log_anywhere`` is −log |ball|, −inf for no
    outliers; ``least`` and ``most`` bound the bandwidth. Densities are over ``dimension`` columns.
    """

    rings: Rings
    weight: FloatArray
    others: FloatArray
    dimension: int
    log_anywhere: float
    least: float
    most: float

    @classmethod
    def of(
        cls,
        X: FloatArray,
        weight: FloatArray,
        *,
        robust: bool = True,
        sampled: int = MOST_SAMPLED_ROWS,
        dimension: int | None = None,
    ) -> LeaveOneOutLikelihood:
        """The likelihood of at least two different rows (n, D), centred and of order 1, with positive weights.

        Where rows lie on a surface, such as a sphere, and the density is one on that, ``dimension`` is the surface's.
        """
        n, D = len(X), dimension or X.shape[1]
        some = evenly_by_radius(X, weight, sampled)
        rings = make_rings(X, weight, some)
        k = min(_NEIGHBORS, n - 1)
        near = np.asarray(cKDTree(X).query(X[some], k=[k + 1])[0])
        least = max(_LEAST_SHARE_OF_DISTANCE * float(np.median(near)) / D**0.5, 1e-14)
        most = float(rings.squared.max() / D) ** 0.5
        others = weight.sum() - weight[some]
        # Weights that differ by more than rounding holds leave nothing beside the heaviest row.
        others = np.maximum(others, rings.weight.sum(axis=1))
        anywhere = _log_ball(np.linalg.norm(X, axis=1).max(), D) if robust else inf
        return cls(rings, weight[some] / weight[some].sum(), others, D, -anywhere, least, max(most, least))

    def log_density(self, bandwidth: float) -> FloatArray:
        """(m,) log p_{−i}(x_i; h)."""
        s = self.rings.squared / bandwidth**2
        base = self._nearest / bandwidth**2
        k = self.rings.weight * np.exp(-0.5 * np.maximum(s - base[:, None], 0.0))
        volume = self.dimension * (log(bandwidth) + 0.5 * log(2.0 * pi))
        return np.asarray(np.log(k.sum(axis=1)) - 0.5 * base - np.log(self.others) - volume)

    def shares(self, log_density: FloatArray, outlier_share: float) -> FloatArray:
        """(m,) r = (1 − ε) p / ((1 − ε) p + ε / |ball|)."""
        if outlier_share == 0.0 or self.log_anywhere == -inf:
            return np.ones(len(log_density))
        odds = self.log_anywhere + log(outlier_share / (1.0 - outlier_share)) - log_density
        return np.asarray(1.0 / (1.0 + np.exp(np.minimum(odds, 700.0))))

    def outlier_share(self, log_density: FloatArray) -> float:
        """ε at which L is largest for a bandwidth, by EM: ε ← Σ w (1 − r)."""
        outlier_share = 0.05 if self.log_anywhere > -inf else 0.0
        for _ in range(_SHARE_STEPS):
            outlier_share = min(float(self.weight @ (1.0 - self.shares(log_density, outlier_share))), _MOST_OUTLIERS)
        return outlier_share

    def log_likelihood(self, bandwidth: float, outlier_share: float | None = None) -> float:
        """L; at the best ε where none is given."""
        each = self.log_density(bandwidth)
        outlier_share = self.outlier_share(each) if outlier_share is None else outlier_share
        if outlier_share == 0.0:
            return float(self.weight @ each)
        return float(
            self.weight @ np.logaddexp(log(1.0 - outlier_share) + each, log(outlier_share) + self.log_anywhere)
        )

    def bandwidth(self) -> float:
        """The bandwidth of largest likelihood."""
        n_tried = max(2, ceil(log(self.most / self.least) / log(_GRID_RATIO)) + 1)
        return least_loss_bandwidth(lambda h: -self.log_likelihood(h), self.least, self.most, n_tried, tol=1e-5)

    @cached_property
    def _nearest(self) -> FloatArray:
        """(m,) squared distance of the nearest ring."""
        return np.asarray(np.where(self.rings.weight > 0, self.rings.squared, inf).min(axis=1))


def _log_ball(radius: float, dimension: int) -> float:
    """log of the volume of a ball."""
    return 0.5 * dimension * log(pi) + dimension * log(radius) - lgamma(0.5 * dimension + 1.0)
