"""Training of a map on a Gaussian process (thesis 6.9) while its length scale and variance are chosen by evidence.

Blocks of EM steps under fixed numbers alternate with choosing the numbers anew for the sums of the last step. Within a
block the objective never falls; between two blocks it is another objective, and the history, which has both numbers in
each of its entries, says where. A choice is taken only where it raises the evidence by something, it moves each number
by no more than a factor, and after so many choices, or once one changes next to nothing, the numbers stay.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import FloatArray, RandomState
from prinfold.base.starting_points import column_variances
from prinfold.basis_maps.bases import carries_prior
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.basis_maps.gaussian_process import BoundProcess, GaussianProcess
from prinfold.basis_maps.process_evidence import Spectrum, golden_section_maximum, spectrum
from prinfold.exceptions import Advice, InvalidParameterError, Message
from prinfold.gtm.model import FittedState, GTMModel
from prinfold.gtm.noise.protocol import AnyStatistics, Parameters, in_words
from prinfold.gtm.penalties import PriorPenalty
from prinfold.gtm.recipe import Recipe, TrainingJob
from prinfold.gtm.trainers.trainers import AnyTraining, Trainer
from prinfold.numerics.distances import nearest_squared_distance
from prinfold.rows.rows import Rows

_STEPS_BETWEEN_CHOICES = 10
"""EM steps between two choices, or fewer where EM has settled before."""

_MOST_CHOICES = 25

_LOG_LENGTH_DIFFERENCE = 0.15
"""Change of the logarithm of the length scale by which the slope and curvature of the evidence are estimated."""

_MOST_LOG_LENGTH_CHANGE = np.log(1.6)
"""Most by which one choice changes that logarithm: the responsibilities are still those of the old one."""

_FIRST_LOG_LENGTH_STEP = np.log(1.4)
"""Steps in which shorter length scales are tried at the start."""

_MOST_LOG_VARIANCE_CHANGE = np.log(30.0)
_LEAST_LOG_CHANGE = 0.005
"""Changes of both logarithms below this are none."""

_LONGEST_LENGTH_SCALE = 4.0
"""Longest length scale: an axis of two is all but a parabola by then."""

_SHORTEST_IN_SPACINGS = 1.2
"""Shortest length scale, in node spacings: below that each node is fitted almost by itself."""

_VARIANCE_BOUNDS = (1e-8, 1e6)
"""Least and largest variance of the process, in units of the mean variance of a column."""

_MOST_DETERMINED_SHARE = 0.5
"""Largest share of the degrees of freedom that weights may take: near 1, (5.24) divides by almost 0."""

_CARRY_OVER_RIDGE = 1e-9
"""Per node, for a surface carried over from one length scale to the next: only enough to be well posed."""


@dataclass(frozen=True)
class ProcessPrior(PriorPenalty):
    """The prior of a process of variance v = 1/α, as opposed to one that the user set beside it.

    ``unit`` is the mean variance of a column, in which a variance that is chosen has its bounds. ``freedom`` is the
    number of weights that the data decide, of all columns together. They fit some of the noise, which is then
    β = (ND − γ)/E (5.24): the maximum once ½ γ ln β, which stands for integrating those weights out, is taken off.
    """

    unit: float = 1.0
    freedom: float = 0.0

    def value(self, precision: float, roughness: float) -> float:
        return super().value(precision, roughness) + 0.5 * self.freedom * float(np.log(precision))

    def precision(self, n_values: float, error: float, roughness: float) -> float:
        return super().precision(n_values - self.freedom, error, roughness)


def with_process_prior(model: GTMModel, basis: GaussianProcess, unit: float, *, penalized: bool) -> GTMModel:
    """The model with the prior that its process brings along, if it does.

    ``penalized`` says that the user set a penalty, which then takes the place of the variance. Columns with noise of
    their own may have units of their own too, in which no one variance makes sense; there the constant λ that the
    model has anyway does.
    """
    if penalized and basis.variance is None:
        return model
    if basis.variance is None and model.noise.capabilities.columns is not None:
        return model
    if penalized:
        raise InvalidParameterError(
            "a Gaussian process of a given variance has its penalty already; leave regularization and "
            "prior_precision at None, or variance at None"
        )
    unit = unit or 1.0  # rows that are all the same have no unit, and no surface either
    variance = unit if basis.variance is None else basis.variance
    return replace(model, penalty=ProcessPrior(1.0 / variance, unit))


def has_open_numbers(basis: Any, *, penalized: bool) -> bool:
    """Whether a basis is a process whose length scale or variance is to be chosen by evidence."""
    if not carries_prior(basis):
        return False
    return basis.length_scale is None or (basis.variance is None and not penalized)


def with_process(
    recipe: Recipe, process: GaussianProcess, regularization: float | None, prior_precision: float | str | None
) -> Recipe:
    """The recipe with the prior of a process, whose numbers are chosen on the way where they are open.

    A penalty that the user set takes the place of the variance; the evidence is that of the process itself.
    """
    penalized = regularization is not None or prior_precision not in (None, "evidence")

    def with_prior(model: GTMModel, rows: Rows) -> GTMModel:
        return with_process_prior(model, process, float(column_variances(rows).mean()), penalized=penalized)

    def attributes(job: TrainingJob, tuned: TunedState) -> dict[str, Any]:
        return recipe.attributes(job._replace(model=tuned.model, basis=tuned.process), tuned.state)

    return replace(
        recipe,
        trainer=ProcessTrainer(recipe.trainer, process, recipe.tol),
        attributes=attributes,
        model_steps=(*recipe.model_steps, with_prior),
        most_doublings=0,
    )


@dataclass(frozen=True)
class ProcessTrainer:
    """A trainer of a model on a process, together with the choice of the numbers that were left open."""

    trainer: Trainer
    process: GaussianProcess
    tol: float

    @property
    def whole(self) -> bool:
        return self.trainer.whole

    def training(self, model: GTMModel, seed: RandomState = None) -> TunedModel:
        """The model as the trainer trains it, with the choice of numbers between steps."""
        by_evidence = isinstance(model.penalty, ProcessPrior) and self.process.variance is None
        inner = self.trainer.training(model, seed)
        tuned = TunedModel(model, inner, self.tol, self.process.length_scale is None, by_evidence)
        if not (self.whole or tuned.fixed):
            raise InvalidParameterError(
                Message(
                    "a GaussianProcess that estimates its length_scale and variance needs all rows at once, and this "
                    "trainer holds the map fixed",
                    Advice("trainer", "batch"),
                    "give both as numbers",
                )
            )
        return tuned


class TunedState(NamedTuple):
    """The model with its present process, the state of its training, and the numbers of steps and choices so far."""

    model: GTMModel
    state: FittedState
    age: int = 0
    choices: int = 0
    settled: bool = False

    @property
    def parameters(self) -> Parameters:
        return self.state.parameters

    @property
    def statistics(self) -> AnyStatistics:
        return self.state.statistics

    @property
    def process(self) -> GaussianProcess:
        """The process with its numbers."""
        recipe: GaussianProcess = self.model.surface.basis.recipe  # type: ignore[attr-defined]
        if not isinstance(self.model.penalty, ProcessPrior):
            return recipe
        return replace(recipe, variance=_variance(self.model, self.parameters))


@dataclass(frozen=True)
class TunedModel:
    """A model on a process, whose length scale, variance or both are chosen on the way.

    ``training`` is the model as it is trained where both numbers were given; where not, steps see all rows at once, and
    each choice makes a model of its own.
    """

    model: GTMModel
    training: AnyTraining
    tol: float
    open_length: bool
    open_variance: bool

    @property
    def monotone(self) -> bool:
        """Whether training never lowers the objective; between two choices it does not."""
        return self.fixed and self.training.monotone

    @property
    def fixed(self) -> bool:
        """Whether both numbers were given."""
        return not (self.open_length or self.open_variance)

    def begin(self, rows: Rows, parameters: Parameters) -> TunedState:
        """State after a first E-step."""
        state = self.training.begin(rows, parameters)
        if not self.fixed and self.model.noise.capabilities.factors is not None:
            raise InvalidParameterError(
                f"length_scale and variance of a process cannot be estimated with {in_words(self.model.noise)}; give "
                "both as numbers"
            )
        begun = TunedState(self.model, state, settled=self.fixed)
        return self._shorten_first_length(rows, begun) if self.open_length else begun

    def step(self, rows: Rows, tuned: TunedState, relaxation: float = 1.0) -> TunedState:
        """One more EM step, and a choice where a block of them is over or nothing moves any more."""
        training = self._training(tuned)
        state = training.step(rows, tuned.state, relaxation)
        after = tuned._replace(state=state, age=tuned.age + 1)
        if tuned.settled:
            return after
        gain = training.measure(state)["objective"] - training.measure(tuned.state)["objective"]
        at_rest = abs(gain) < self.tol
        if not at_rest and after.age < _STEPS_BETWEEN_CHOICES:
            return after
        found = self._choose(after)
        if found is None:
            over = at_rest or after.choices >= _MOST_CHOICES
            return after._replace(age=0, choices=after.choices + 1, settled=over)
        model, start = found
        fresh = model.begin(rows, start)
        return TunedState(model, fresh, 0, after.choices + 1, after.choices + 1 >= _MOST_CHOICES)

    def measure(self, tuned: TunedState) -> dict[str, float]:
        """Entries of the history for a state, with the two numbers under which it was reached."""
        numbers = {"length_scale": _length(tuned.model), "variance": _variance(tuned.model, tuned.parameters)}
        return self._training(tuned).measure(tuned.state) | numbers

    def finish(self, rows: Rows, tuned: TunedState) -> TunedState:
        """The state that training ends with."""
        return tuned._replace(state=self._training(tuned).finish(rows, tuned.state))

    def _training(self, tuned: TunedState) -> AnyTraining:
        return self.training if self.fixed else tuned.model

    def _shorten_first_length(self, rows: Rows, begun: TunedState) -> TunedState:
        """State with a shorter length scale where the evidence prefers it, so that sharp turns of the start are kept.

        Longer ones are not tried: if the start is a plane, the evidence says nothing of length scales yet.
        """
        search = self._search(begun)
        low, now = search.lengths()[0], float(np.log(_length(begun.model)))
        here = search.at(now)
        tried = [search.at(x) for x in np.arange(now - _FIRST_LOG_LENGTH_STEP, low, -_FIRST_LOG_LENGTH_STEP)]
        best = max(tried, key=lambda each: each.log_evidence, default=here)
        if best.log_evidence <= here.log_evidence:
            return begun
        model, start = self._carry_over(begun, best)
        return TunedState(model, model.begin(rows, start))

    def _choose(self, tuned: TunedState) -> tuple[GTMModel, Parameters] | None:
        """A model of higher evidence, and parameters to continue from; None where the evidence would hardly rise."""
        search = self._search(tuned)
        length, variance = _length(tuned.model), _variance(tuned.model, tuned.parameters)
        best = search.best_length() if self.open_length else search.at(np.log(length))
        change = abs(np.log(best.length / length)), abs(np.log(best.variance / variance))
        return None if max(change) < _LEAST_LOG_CHANGE else self._carry_over(tuned, best)

    def _search(self, tuned: TunedState) -> _Search:
        model, parameters = tuned.model, tuned.parameters
        return _Search(model, *regression(model, parameters, tuned.statistics), parameters, self.open_variance)

    def _carry_over(self, tuned: TunedState, best: ProcessChoice) -> tuple[GTMModel, Parameters]:
        """The model of a choice, and the surface so far as one of its own."""
        model, parameters, sums = tuned.model, tuned.parameters, tuned.statistics
        penalty = model.penalty
        if self.open_variance:
            penalty = replace(penalty, prior_precision=1.0 / best.variance, freedom=self._freedom(best, sums))  # type: ignore[type-var]
        new = replace(model, surface=best.surface, penalty=penalty)
        Phi, images = best.surface.node_features, model.surface.nodes(parameters.weights)
        carried = replace(parameters, weights=best.surface.regress(Phi, images, _CARRY_OVER_RIDGE * len(Phi)))
        return new, new.noise.m_step(new.surface, sums, penalty, carried)

    def _freedom(self, best: ProcessChoice, sums: AnyStatistics) -> float:
        """Weights that the data decide, those of the mean among them, of all columns."""
        if self.model.noise.capabilities.cells is None:  # others know nothing of (5.24)
            return 0.0
        n_free = len(best.surface.penalty_mask) - best.surface.penalty_mask.sum()
        n_columns = sums.moment.shape[1]
        return float(n_columns * min(best.freedom + n_free, _MOST_DETERMINED_SHARE * sums.total))


def regression(model: GTMModel, parameters: Parameters, sums: AnyStatistics) -> tuple[FloatArray, FloatArray]:
    """Mass (K,) and moment (K, D) of a regression in which every column has the noise of the average one.

    Where columns were measured differently well, all are taken to be as the best of them is, and of what a column lacks
    there is what is expected of it: the image of the node itself. Columns with noise of their own are divided by it.
    """
    mass, moment = sums.mass, sums.moment
    if sums.masses is not None:
        mass = sums.masses.max(axis=1)
        moment = moment + (mass[:, None] - sums.masses) * model.surface.nodes(parameters.weights)
    return mass, moment * np.sqrt(np.asarray(parameters.precision) / parameters.level)


class ProcessChoice(NamedTuple):
    """A length scale with the variance that suits it, the map that goes with it, their evidence, and γ of a column."""

    length: float
    variance: float
    surface: BasisMap
    log_evidence: float
    freedom: float


@dataclass(frozen=True)
class _Search:
    """The evidence about a model, for the sums of an E-step."""

    model: GTMModel
    mass: FloatArray
    moment: FloatArray
    parameters: Parameters
    open_variance: bool

    def at(self, log_length: float) -> ProcessChoice:
        """The best that can be had with a length scale."""
        surface, length = self.model.surface, float(np.exp(log_length))
        if length != _length(self.model):
            surface = _with_length(surface, length)
        found = spectrum(surface, self.mass, self.moment, self.parameters.level)
        variance = self._best_variance(found) if self.open_variance else _variance(self.model, self.parameters)
        return ProcessChoice(length, variance, surface, found.log_evidence(variance), found.freedom(variance))

    def best_length(self) -> ProcessChoice:
        """The maximum of the parabola through three length scales, or the best of these where it is lower."""
        now = np.log(_length(self.model))
        low, high = self.lengths()
        tried = [
            self.at(x) for x in np.clip([now - _LOG_LENGTH_DIFFERENCE, now, now + _LOG_LENGTH_DIFFERENCE], low, high)
        ]
        below, here, above = (each.log_evidence for each in tried)
        slope, bend = (
            0.5 * (above - below) / _LOG_LENGTH_DIFFERENCE,
            (above - 2.0 * here + below) / _LOG_LENGTH_DIFFERENCE**2,
        )
        step = -slope / bend if bend < 0 else np.sign(slope) * _MOST_LOG_LENGTH_CHANGE
        target = np.clip(now + np.clip(step, -_MOST_LOG_LENGTH_CHANGE, _MOST_LOG_LENGTH_CHANGE), low, high)
        ahead = self.at(target)
        return ahead if ahead.log_evidence >= here else max(tried, key=lambda each: each.log_evidence)

    def lengths(self) -> tuple[float, float]:
        """Logarithms of the shortest and the longest length scale allowed."""
        E = self.model.surface.latent.embed(self.model.surface.latent.nodes)
        apart = np.sqrt(np.median(nearest_squared_distance(E))) if len(E) > 1 else 0.0
        return float(np.log(min(max(_SHORTEST_IN_SPACINGS * apart, 1e-3), _LONGEST_LENGTH_SCALE))), float(
            np.log(_LONGEST_LENGTH_SCALE)
        )

    def _best_variance(self, found: Spectrum) -> float:
        now = np.log(_variance(self.model, self.parameters))
        unit = np.log(self.model.penalty.unit)  # type: ignore[attr-defined]
        low = max(now - _MOST_LOG_VARIANCE_CHANGE, unit + np.log(_VARIANCE_BOUNDS[0]))
        high = min(now + _MOST_LOG_VARIANCE_CHANGE, unit + np.log(_VARIANCE_BOUNDS[1]))
        if not low < high:
            return float(np.exp(now))
        return float(
            np.exp(
                golden_section_maximum(lambda x: found.log_evidence(np.exp(x)), low, high, 0.1 * _LEAST_LOG_CHANGE)[0]
            )
        )


def _length(model: GTMModel) -> float:
    bound: BoundProcess = model.surface.basis  # type: ignore[assignment]
    return bound.length


def _variance(model: GTMModel, parameters: Parameters) -> float:
    """v = 1/(λβ), of whatever penalty."""
    if isinstance(model.penalty, ProcessPrior):
        return 1.0 / model.penalty.prior_precision
    strength = model.penalty.strength(parameters.level) * parameters.level
    return 1.0 / strength if strength > 0 else float(np.finfo(float).max)


def _with_length(surface: BasisMap, length: float) -> BasisMap:
    """The map on the same process with another length scale."""
    bound: BoundProcess = surface.basis  # type: ignore[assignment]
    return replace(surface, basis=replace(bound.recipe, length_scale=length, pivots=None).bind(surface.latent))
