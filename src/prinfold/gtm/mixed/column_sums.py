"""Parts of the E-step of mixed columns: blocks of rows, nodes, and the sums that one M-step needs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma, polygamma

from prinfold._typing import FloatArray
from prinfold.gtm.mixed.column_kinds import Layout

LEAST_DISPERSION, MOST_DISPERSION = 1e-3, 1e6
"""Beyond the one the variance of a count is a thousand squared means; beyond the other it is Poisson's."""


@dataclass(frozen=True)
class MixedBlock:
    """A block of rows: ``values`` (n, D') and their ``exposure`` (n, D'), both nil where a cell is missing.

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


class MixedNodes(NamedTuple):
    """Nodes as the E-step wants them: ``loading`` (2D', K) goes with [t, s]; ``centres`` (K, D') are predictors."""

    loading: FloatArray
    centres: FloatArray
    precision: FloatArray
    dispersion: FloatArray


@dataclass(frozen=True)
class MixedStatistics:
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

    def __add__(self, other: MixedStatistics) -> MixedStatistics:
        return MixedStatistics(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def scale(self, factor: float) -> MixedStatistics:
        """All sums times ``factor``."""
        return MixedStatistics(*(factor * getattr(self, f.name) for f in fields(self)))


@dataclass
class MixedSums:
    """Sums under way: ``products`` (2D' + 1, K) of t, s and 1; ``scattered`` (K, D'') of s g."""

    nodes: MixedNodes
    layout: Layout
    products: FloatArray
    scattered: FloatArray
    square: FloatArray
    seen: FloatArray
    slack: FloatArray
    log_likelihood: float = 0.0
    total: float = 0.0

    def statistics(self) -> MixedStatistics:
        """The sums so far."""
        D = self.layout.n_predictors
        moment, masses, mass = self.products[:D].T.copy(), self.products[D:-1].T.copy(), self.products[-1].copy()
        # Where a Gaussian column has no gaps its masses are the nodes' own to the last bit, and it shares their system.
        gaussian = self.layout.predictors("gaussian")
        whole = self.seen[self.layout.columns("gaussian")] >= self.total
        masses[:, gaussian] = np.where(whole, mass[:, None], masses[:, gaussian])
        masses[:, self.layout.predictors("negative_binomial")] = self.scattered
        of_columns = self.square.copy(), self.seen.copy(), self.slack.copy()
        return MixedStatistics(mass, masses, moment, *of_columns, self.log_likelihood, self.total)


def best_dispersion(slack: Any) -> Any:
    """The root r of ln r − ψ(r) = −1 − slack, slack being the mean of ln g − g."""
    y = np.maximum(-1.0 - np.asarray(slack, dtype=np.float64), 1e-12)
    r = (3.0 - y + np.sqrt(np.square(y - 3.0) + 24.0 * y)) / (12.0 * y)  # within 2 % everywhere
    for _ in range(4):
        excess = np.log(r) - digamma(r) - y
        r = r * np.exp(np.clip(-excess / (1.0 - r * polygamma(1, r)), -1.0, 1.0))
    return np.clip(r, LEAST_DISPERSION, MOST_DISPERSION)
