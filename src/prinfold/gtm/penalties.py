"""Penalties on the weights of a map (thesis 3.2), and the noise that is best under each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np


class Penalty(Protocol):
    """A weight penalty: how strong it is at a given β, what it costs, and which β is then best."""

    @property
    def freedom(self) -> float:
        """Number of weights that the rows decide, where they are taken off the degrees of freedom of the noise."""

    def strength(self, precision: float) -> float:
        """λ in the weight solve (3.15)."""

    def value(self, precision: float, roughness: float) -> float:
        """Penalty, to be taken off the log-likelihood."""

    def tie(self, roughness: float) -> float:
        """Factor of β/2 in the penalty; 0 where it does not depend on β."""

    def precision(self, n_values: float, error: float, roughness: float) -> float:
        """β that maximises ½ n ln β − ½ β error − value."""


@dataclass(frozen=True)
class ConstantPenalty:
    """½ λβ‖W‖² with λ constant, so that the prior tightens with the noise.

    The printed noise update (3.12) ignores that the penalty depends on β and can then lower the
    penalised objective; β = ND / (E + λ‖W‖²) maximises it.
    """

    regularization: float
    freedom = 0.0

    def strength(self, precision: float) -> float:
        return self.regularization

    def value(self, precision: float, roughness: float) -> float:
        return 0.5 * self.regularization * precision * roughness

    def tie(self, roughness: float) -> float:
        return self.regularization * roughness

    def precision(self, n_values: float, error: float, roughness: float) -> float:
        return _ratio(n_values, error + self.regularization * roughness)


@dataclass(frozen=True)
class PriorPenalty:
    """½ α‖W‖²: a Gaussian prior of precision α on the weights (3.16), so that λ = α/β."""

    prior_precision: float
    freedom = 0.0

    def strength(self, precision: float) -> float:
        return self.prior_precision / precision

    def value(self, precision: float, roughness: float) -> float:
        return 0.5 * self.prior_precision * roughness

    def tie(self, roughness: float) -> float:
        return 0.0

    def precision(self, n_values: float, error: float, roughness: float) -> float:
        return _ratio(n_values, error)


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator > 0 else np.inf
