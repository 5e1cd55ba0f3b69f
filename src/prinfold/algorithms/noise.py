"""Noise models of the GTM family: how data scatter about the surface.

A noise model has four verbs. ``prepare`` turns parameters into what the rows of a block need of the
nodes; ``log_density`` gives log p(t | node) for a block; ``statistics`` sums what the M-step needs;
``m_step`` turns sums into parameters. A new noise is a new class: nothing else changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from prinfold._typing import FloatArray
from prinfold.algorithms.maps import BasisMap


class Parameters(NamedTuple):
    """What training changes: weights (M, D) of the map about the data's centre, and noise precision β."""

    weights: FloatArray
    precision: float


@dataclass(frozen=True)
class Statistics:
    """Sums over rows that one M-step needs. They form a vector space: ``+`` joins blocks, ``scale`` forgets.

    ``mass`` (K,) is the diagonal of G (3.14), ``moment`` (K, D) is RᵀT, ``square`` is Σ w‖t‖²,
    ``log_likelihood`` is Σ w log p(t) and ``total`` is Σ w, all under the parameters of the E-step.
    """

    mass: FloatArray
    moment: FloatArray
    square: float
    log_likelihood: float
    total: float

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(
            self.mass + other.mass,
            self.moment + other.moment,
            self.square + other.square,
            self.log_likelihood + other.log_likelihood,
            self.total + other.total,
        )

    def scale(self, factor: float) -> Statistics:
        """All sums times ``factor``."""
        return Statistics(
            factor * self.mass,
            factor * self.moment,
            factor * self.square,
            factor * self.log_likelihood,
            factor * self.total,
        )


class Penalty(Protocol):
    """A weight penalty: how strong it is at a given β, what it costs, and which β is then best."""

    def strength(self, precision: float) -> float:
        """λ in the weight solve (3.15)."""

    def value(self, precision: float, roughness: float) -> float:
        """What is taken off the log-likelihood."""

    def precision(self, n_values: float, error: float, roughness: float) -> float:
        """β that maximises ½ n ln β − ½ β error − value."""


@dataclass(frozen=True)
class ConstantPenalty:
    """½ λβ‖W‖² with λ constant, so that the prior tightens with the noise.

    The printed noise update (3.12) ignores that the penalty depends on β and can then lower the
    penalised objective; β = ND / (E + λ‖W‖²) maximises it.
    """

    regularization: float

    def strength(self, precision: float) -> float:
        return self.regularization

    def value(self, precision: float, roughness: float) -> float:
        return 0.5 * self.regularization * precision * roughness

    def precision(self, n_values: float, error: float, roughness: float) -> float:
        return _ratio(n_values, error + self.regularization * roughness)


@dataclass(frozen=True)
class PriorPenalty:
    """½ α‖W‖²: a Gaussian prior of precision α on the weights (3.16), so that λ = α/β."""

    prior_precision: float

    def strength(self, precision: float) -> float:
        return self.prior_precision / precision

    def value(self, precision: float, roughness: float) -> float:
        return 0.5 * self.prior_precision * roughness

    def precision(self, n_values: float, error: float, roughness: float) -> float:
        return _ratio(n_values, error)


class IsotropicNodes(NamedTuple):
    """Nodes as the E-step wants them: centres (K, D), ½β‖y‖² (K,), β, and the log of the normalisers."""

    centres: FloatArray
    half_square: FloatArray
    precision: float
    log_normaliser: float


@dataclass(frozen=True)
class IsotropicNoise:
    """The same Gaussian noise of variance 1/β in every direction, thesis (3.1) with its sign put right.

    ``floor`` is the smallest variance allowed: with more nodes than rows β would otherwise run away.
    """

    floor: float

    def prepare(self, surface: BasisMap, parameters: Parameters, dtype: type = np.float64) -> IsotropicNodes:
        """Centres and constants for a pass over the rows."""
        centres = surface.nodes(parameters.weights)
        beta = parameters.precision
        half_square = 0.5 * beta * np.einsum("kd,kd->k", centres, centres)
        log_normaliser = 0.5 * centres.shape[1] * np.log(beta / (2 * np.pi))
        return IsotropicNodes(centres.astype(dtype), half_square.astype(dtype), beta, float(log_normaliser))

    def log_density(self, block: FloatArray, nodes: IsotropicNodes) -> tuple[FloatArray, FloatArray]:
        """log p(t | node) split in two: (n, K) the part that differs between nodes, (n,) the rest.

        −½β‖t − y‖² = β t·y − ½β‖y‖² − ½β‖t‖²; the last term is the row's own.
        """
        varying = block @ nodes.centres.T
        varying *= block.dtype.type(nodes.precision)
        varying -= nodes.half_square
        square = np.einsum("nd,nd->n", block, block, dtype=np.float64)
        return varying, nodes.log_normaliser - 0.5 * nodes.precision * square

    def statistics(
        self, block: FloatArray, weight: FloatArray | None, posterior: FloatArray, log_likelihood: FloatArray
    ) -> Statistics:
        """Sums over one block; row weights multiply whole rows."""
        square = np.einsum("nd,nd->n", block, block, dtype=np.float64)
        if weight is None:
            total, weighted = float(len(block)), posterior
            square_sum, likelihood_sum = square.sum(), log_likelihood.sum()
        else:
            total, weighted = float(weight.sum()), posterior * weight[:, None].astype(posterior.dtype)
            square_sum, likelihood_sum = weight @ square, weight @ log_likelihood
        return Statistics(
            weighted.sum(axis=0, dtype=np.float64),
            (weighted.T @ block).astype(np.float64),
            float(square_sum),
            float(likelihood_sum),
            total,
        )

    def m_step(self, surface: BasisMap, sums: Statistics, penalty: Penalty, parameters: Parameters) -> Parameters:
        """New weights (3.15), then the new noise with those weights (3.12).

        The weighted squared distance is Σ g‖y‖² − 2⟨Y, RᵀT⟩ + Σ‖t‖², so no second pass is needed.
        """
        strength = penalty.strength(parameters.precision)
        weights = surface.solve(sums.mass, sums.moment, strength, parameters.weights)
        centres = surface.nodes(weights)
        error = sums.mass @ np.einsum("kd,kd->k", centres, centres) - 2 * np.vdot(centres, sums.moment) + sums.square
        n_values = sums.total * centres.shape[1]
        precision = penalty.precision(n_values, max(error, 0.0), surface.roughness(weights))
        return Parameters(weights, min(precision, 1.0 / self.floor))


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator > 0 else np.inf
