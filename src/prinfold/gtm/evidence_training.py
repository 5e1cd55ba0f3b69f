"""Training that finds the prior and the noise by their evidence, thesis 5.3.1: α by (5.20), β by (5.24).

Each iteration re-estimates α and the number γ of weights that the data determine, by the approximate Hessian, then
takes an EM step with them. Where it comes to rest the weights are at their mode and α and β are stationary points of
the evidence, as they are where the thesis's three nested loops end. Where cells have errors of their own (5.24) is no
more than near: γ then counts weights that are determined by cells of unequal precision, and β may end some percent off.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np

from prinfold.basis_maps.bases import carries_prior
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.exceptions import Advice, InvalidParameterError, Message
from prinfold.gtm import model as gtm
from prinfold.gtm.evidence import (
    Curvature,
    Prior,
    curvature_of_sums,
    log_evidence,
    prior_along,
    prior_of,
    refuse_dependent_cells,
)
from prinfold.gtm.node_selection import Hint
from prinfold.gtm.noise.protocol import AnyNoise, AnyStatistics, Parameters
from prinfold.gtm.penalties import ConstantPenalty, Penalty, PriorPenalty
from prinfold.gtm.recipe import Recipe, with_start_step
from prinfold.gtm.starts.first_parameters import Start, warm_start
from prinfold.rows.rows import Rows

FIRST_STRENGTH = 0.1
"""λ = α/β of the plain EM steps, and of the first steps by evidence."""

_PLAIN_STEPS = 10
"""EM steps before α is first estimated, since weights of a surface that does not follow the data yet are no guide."""

_MOST_PRIOR_FACTOR = 10.0
"""Factor by which α may change in one iteration; the fixed point is the same, but it is reached without jumps."""

_MOST_PRIOR_RATIO = 1e3
"""α is at most so many times the largest eigenvalue of H_T: weights are then a thousandth of what the data ask for, and
of data without any structure the evidence has no maximum short of infinity."""


@dataclass(frozen=True)
class EvidencePenalty(PriorPenalty):
    """A Gaussian prior whose γ = ``effective`` weights are taken from the degrees of freedom of the noise (5.24).

    β = (ND − γ)/E. With fewer values than weights γ may exceed ND at the present β, though not at a smaller one, so
    that no step takes β below ``least``.
    """

    effective: float
    least: float

    def precision(self, n_values: float, error: float, roughness: float) -> float:
        return max(super().precision(n_values - self.effective, error, roughness), self.least)


@dataclass(frozen=True)
class EvidenceStrength(ConstantPenalty):
    """A prior by evidence for columns with noise of their own, which it follows: α_d = λβ_d.

    Then |H_d| = β_d^M |ΦᵀGΦ + λM|, and of the weights only those that are free take from the degrees of freedom:
    β_d = (N − free)/(E_d + λ‖w_d‖²). ``share`` is 1 − free/N.
    """

    share: float

    def precision(self, n_values: float, error: float, roughness: float) -> float:
        return super().precision(self.share * n_values, error, roughness)


class EvidenceState(NamedTuple):
    """Parameters, the sums of the data under them, the hint for the next E-step, α and the curvature there."""

    parameters: Parameters
    statistics: AnyStatistics
    hint: Hint
    prior_precision: float
    bent: Curvature


@dataclass(frozen=True)
class EvidenceModel(gtm.GTMModel):
    """A GTM whose prior and noise follow the evidence; its objective is the log evidence per row.

    Steps need not go uphill: γ is taken at the present α and β, and the weights' mode moves with them.
    """

    def __post_init__(self) -> None:
        refuse_dependent_cells(self)

    @property
    def by_column(self) -> bool:
        """Whether columns have noise of their own."""
        return self.noise.capabilities.columns is not None

    @property
    def monotone(self) -> bool:
        return False

    def begin(self, rows: Rows, parameters: Parameters) -> EvidenceState:
        """State after a first E-step, with a weak prior."""
        return self._e_step_with_prior(rows, parameters, FIRST_STRENGTH * parameters.level, Hint())

    def step(self, rows: Rows, state: EvidenceState, relaxation: float = 1.0) -> EvidenceState:
        """New α and γ, an EM step with them, and the sums under its parameters; steps are not stretched."""
        penalty = self._penalty(self._estimate_prior(state), state)
        proposed = self.noise.m_step(self.surface, state.statistics, penalty, state.parameters)
        return self._e_step_with_prior(rows, proposed, penalty.strength(proposed.level) * proposed.level, state.hint)

    def measure(self, state: EvidenceState) -> dict[str, float]:
        """Log evidence per row by the approximate Hessian; log-likelihood, noise, α and γ."""
        alpha, sums = state.prior_precision, state.statistics
        roughness = prior_along(alpha, state.parameters).roughness(self.surface, state.parameters.weights)
        return {
            "objective": log_evidence(sums.log_likelihood, alpha, roughness, state.bent) / sums.total,
            "log_likelihood": sums.log_likelihood / sums.total,
            "noise": 1.0 / state.parameters.level,
            "prior_precision": alpha,
            "effective": state.bent.effective(alpha),
        }

    def _e_step_with_prior(self, rows: Rows, parameters: Parameters, alpha: float, hint: Hint) -> EvidenceState:
        statistics, hint = gtm.e_step(self, rows, parameters, hint)
        bent = curvature_of_sums(self.surface, statistics, parameters, prior_along(alpha, parameters))
        return EvidenceState(parameters, statistics, hint, alpha, bent)

    def _penalty(self, alpha: float, state: EvidenceState) -> Penalty:
        beta = state.parameters.level
        if not self.by_column:
            return EvidencePenalty(alpha, state.bent.effective(alpha), 0.5 * beta)
        n_free = int(np.sum(self.surface.penalty_mask == 0))
        return EvidenceStrength(alpha / beta, max(1.0 - n_free / state.statistics.total, 0.5))

    def _estimate_prior(self, state: EvidenceState) -> float:
        """α = γ/‖W‖² (5.20), no further than a factor from the present one and below the cap."""
        old, bent = state.prior_precision, state.bent
        square = prior_along(old, state.parameters).roughness(self.surface, state.parameters.weights)
        wanted = bent.determined(old) / square if square > 0 else np.inf
        near = np.clip(wanted, old / _MOST_PRIOR_FACTOR, old * _MOST_PRIOR_FACTOR)
        largest = float(bent.eigenvalues.max(initial=0.0))
        return float(min(near, _MOST_PRIOR_RATIO * largest) if largest > 0 else old)


def after_plain_steps(start: Start) -> Start:
    """The start followed by a few EM steps with a weak penalty: from a random surface α could run to 1e28."""

    def start_with_prior(model: gtm.GTMModel, rows: Rows, rng: np.random.Generator) -> Parameters:
        plain = gtm.GTMModel(model.surface, model.noise, ConstantPenalty(FIRST_STRENGTH))
        state = plain.begin(rows, warm_start(start, plain, rows, rng))
        for _ in range(_PLAIN_STEPS):
            state = plain.step(rows, state)
        return cast(Parameters, state.parameters)

    return start_with_prior


def first_penalty(regularization: float | None) -> Penalty:
    """The weak penalty that training by the evidence begins with."""
    if regularization is not None:
        raise InvalidParameterError(
            Message("the evidence finds the penalty itself", Advice("regularization", words="leave {} at None"))
        )
    return ConstantPenalty(FIRST_STRENGTH)


def with_evidence(recipe: Recipe, basis: Any) -> Recipe:
    """The recipe whose prior and noise follow the evidence; the prior of a process does that anyway."""
    if carries_prior(basis):
        return replace(recipe, make_model=independent_cells)
    if not recipe.trainer.whole:
        raise InvalidParameterError(
            Message(
                "a penalty that follows the evidence needs all rows at once, and this trainer holds the penalty fixed",
                Advice("trainer", "batch"),
                "give prior_precision or regularization as a number",
            )
        )
    return with_start_step(replace(recipe, make_model=EvidenceModel, most_doublings=0), after_plain_steps)


def independent_cells(surface: BasisMap, noise: AnyNoise, penalty: Penalty) -> gtm.GTMModel:
    """The model of a process, which follows the evidence anyway, with a noise of independent cells."""
    model = gtm.GTMModel(surface, noise, penalty)
    refuse_dependent_cells(model, instead="give the process its numbers")
    return model


# ------------------------------------------------------------------------------------- the prior of a fitted model


def found_precision(model: gtm.GTMModel, parameters: Parameters, history: dict[str, list[float]]) -> float:
    """Precision α of the prior on the weights, given or found."""
    if "prior_precision" in history:
        return float(history["prior_precision"][-1])
    return float(model.penalty.strength(parameters.level) * parameters.level)


def found_prior(model: gtm.GTMModel, parameters: Parameters, history: dict[str, list[float]]) -> Prior:
    """The prior of the weights; one that was found follows the noise where columns have their own."""
    if "prior_precision" in history:
        return prior_along(found_precision(model, parameters, history), parameters)
    return prior_of(model, parameters)


def with_found_prior(model: gtm.GTMModel, parameters: Parameters, history: dict[str, list[float]]) -> gtm.GTMModel:
    """The model with the prior that training came to, where that was found on the way."""
    if "prior_precision" not in history:
        return model
    strength = found_precision(model, parameters, history) / parameters.level
    return gtm.GTMModel(model.surface, model.noise, ConstantPenalty(strength))
