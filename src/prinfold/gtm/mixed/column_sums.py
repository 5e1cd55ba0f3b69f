"""Blocks of rows of mixed columns (thesis 6.8), their statistics for an M-step, and the best dispersion for those."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import digamma, polygamma

from prinfold._typing import FloatArray
from prinfold.gtm.noise.protocol import RowStatistics

LEAST_DISPERSION, MOST_DISPERSION = 1e-3, 1e6
"""Beyond the one the variance of a count is a thousand squared means; beyond the other it is Poisson's."""


@dataclass(frozen=True)
class MixedBlock:
    """A block of rows: ``values`` (n, D') and their ``exposure`` (n, D'), both 0 where a cell is missing.

    ``seen`` (n, D) tells which cells are there, ``factor`` (n,) is the size factor, and ``own`` (n,) what the log
    density has that no parameter changes.
    """

    values: FloatArray
    exposure: FloatArray
    seen: FloatArray
    factor: FloatArray
    own: FloatArray

    def __len__(self) -> int:
        return len(self.values)

    def shapes(self, d: int, r: float) -> tuple[FloatArray, FloatArray]:
        """(n,) negative binomial counts t, and t + r: the shape of their gamma variable, 0 where none is."""
        counts = self.values[:, d].astype(np.float64, copy=False)
        return counts, np.where(self.exposure[:, d] > 0, counts + r, 0.0)


@dataclass(frozen=True)
class MixedStatistics(RowStatistics):
    """Sums over rows, under the parameters of the E-step.

    ``mass`` (K,) is Σ r, ``masses`` and ``moment`` (K, D') are Σ r s and Σ r t, of negative binomial counts Σ r s g
    with g the scatter expected of a row's rate; ``square`` are Σ t² of the Gaussian columns; ``seen`` (D,) counts
    cells; ``slack`` is Σ r (ln g − g) of the negative binomial ones.
    """

    mass: FloatArray
    masses: FloatArray
    moment: FloatArray
    square: FloatArray
    seen: FloatArray
    slack: FloatArray
    log_likelihood: float
    total: float


def best_dispersion(slack: Any) -> Any:
    """The root r of ln r − ψ(r) = −1 − slack, slack being the mean of ln g − g: the shape of a gamma (Minka, 2002)."""
    y = np.maximum(-1.0 - np.asarray(slack, dtype=np.float64), 1e-12)
    r = (3.0 - y + np.sqrt(np.square(y - 3.0) + 24.0 * y)) / (12.0 * y)  # within 2 % everywhere
    for _ in range(4):
        excess = np.log(r) - digamma(r) - y
        r = r * np.exp(np.clip(-excess / (1.0 - r * polygamma(1, r)), -1.0, 1.0))
    return np.clip(r, LEAST_DISPERSION, MOST_DISPERSION)
