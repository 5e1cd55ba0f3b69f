"""Descent methods, each a step for :func:`~prinfold.loops.fixed_point.run_fixed_point`.

A descent minimises a value over an array x of any shape. It asks for ``evaluate(x)`` alone, which returns the value
and its gradient, and whatever else the caller wants to measure later: the state keeps the last evaluation whole. All
of them treat a value or gradient that is not finite as a step that failed, and none of them draws random numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from prinfold._typing import FloatArray
from prinfold.exceptions import InvalidDataError

_ARMIJO = 1e-4
"""Share of the descent promised by the slope that a step must achieve (Armijo, 1966)."""

_CURVATURE = 0.9
"""Share of the slope at the start that may be left at the end of a step of L-BFGS; with more, the step was short."""

_MOST_TRIALS = 30
"""Lengths that a line search tries before it gives up: halving so often leaves nothing but rounding."""

_FLAT_SLOPE = 1e-150
"""Slope below which a place counts as flat: dividing by less would overflow."""

_MOST_LENGTHENING = 1e3
"""How much longer than the last a length of Barzilai and Borwein may be: where nothing bends it is unbounded."""


class ValueAndGradient(Protocol):
    """Value and gradient of the objective at a place, and anything else that the caller measures."""

    @property
    def value(self) -> float:
        """The number to be minimised; not finite where x is out of bounds."""

    @property
    def gradient(self) -> Any:
        """Its derivative by x, an array of the shape of x; any type, for evaluations that may go without."""


E = TypeVar("E", bound=ValueAndGradient)
Evaluate = Callable[[FloatArray], E]


@dataclass(frozen=True)
class DescentState(Generic[E]):
    """State of a descent: the place, its evaluation, and what the descent remembers of earlier steps."""

    x: FloatArray
    evaluation: E
    memory: Any
    settled: bool = False
    """Whether no step from here leads down any more; further steps then leave the state as it is."""


class Descent(Protocol):
    """A descent method."""

    def begin(self, x: FloatArray, evaluate: Evaluate[E]) -> DescentState[E]:
        """The state at x, without any history."""

    def step(self, state: DescentState[E], evaluate: Evaluate[E]) -> DescentState[E]:
        """One step down from a state, or the state itself where there is none."""


# ------------------------------------------------------------------------------------------------------ RPROP


class RpropState(NamedTuple):
    """Length of the last move of each coordinate, and the gradient before it, 0 where the coordinate waited."""

    length: FloatArray
    gradient: FloatArray


@dataclass(frozen=True)
class Rprop:
    """Resilient propagation (Riedmiller & Braun 1993) without backtracking, as improved by Igel & Hüsken (2003).

    Each coordinate moves by its own length Δ against the sign of its slope g, whatever the size of g:

        Δ ← Δ · (η⁺ if g·g_before > 0, η⁻ if g·g_before < 0, else 1),   x ← x − sign(g) Δ.

    A coordinate whose slope changed sign waits for one step and starts afresh (g_before = 0); in narrow valleys of
    quadratics that led 10 to 200 times lower in 500 steps. If all had to wait at once none does, since a step that
    changes nothing looks like convergence to a loop. A step may climb; the loop keeps the best state.

    ``first`` is the first length, in units of x. Latent points have the bandwidth for a unit, and a first length of
    one bandwidth tears neighbours apart before they have moved together.
    """

    first: float = 0.02
    grow: float = 1.2
    shrink: float = 0.5
    smallest: float = 1e-9
    largest: float = 1.0

    def begin(self, x: FloatArray, evaluate: Evaluate[E]) -> DescentState[E]:
        x, evaluation = _evaluate_start(x, evaluate)
        return DescentState(x, evaluation, RpropState(np.full_like(x, self.first), np.zeros_like(x)))

    def step(self, state: DescentState[E], evaluate: Evaluate[E]) -> DescentState[E]:
        gradient, (length, before) = state.evaluation.gradient, state.memory
        if state.settled or not gradient.any():
            return replace(state, settled=True)
        # Signs alone are multiplied: the product of two small slopes may vanish.
        turn = np.sign(gradient) * np.sign(before)
        length = length * np.where(turn > 0, self.grow, np.where(turn < 0, self.shrink, 1.0))
        length = np.clip(length, self.smallest, self.largest)
        going = np.where(turn < 0, 0.0, gradient)
        going = going if going.any() else gradient
        while (length > self.smallest).any():
            x = state.x - np.sign(going) * length
            evaluation = evaluate(x)
            if _is_finite(evaluation):
                return DescentState(x, evaluation, RpropState(length, going))
            length = np.maximum(self.shrink * length, self.smallest)
        return replace(state, settled=True)


# ------------------------------------------------------------------------------------------- descents by line search


@dataclass(frozen=True)
class GradientDescent:
    """Steps along the negative gradient that never climb: x ← x − t g.

    A search begins at the length of Barzilai and Borwein (1988), t = s·s / s·y with s and y the last changes of x and
    of g, and halves it until the value falls by a share of what the slope promises. Where s·y is not positive the
    last length is doubled. The first search begins where the largest change of a coordinate is ``first``.
    """

    first: float = 0.02

    def begin(self, x: FloatArray, evaluate: Evaluate[E]) -> DescentState[E]:
        x, evaluation = _evaluate_start(x, evaluate)
        return DescentState(x, evaluation, _first_length(evaluation.gradient, self.first))

    def step(self, state: DescentState[E], evaluate: Evaluate[E]) -> DescentState[E]:
        if state.settled:
            return state
        gradient = state.evaluation.gradient
        found = _line_search(state, -gradient, state.memory, evaluate, curvature=np.inf)
        if found is None:
            return replace(state, settled=True)
        length, x, evaluation = found
        s, y = x - state.x, evaluation.gradient - gradient
        bend = _dot(s, y)
        longest = _MOST_LENGTHENING * length
        return DescentState(
            x, evaluation, min(_dot(s, s) / max(bend, _FLAT_SLOPE), longest) if bend > 0 else 2.0 * length
        )


class Change(NamedTuple):
    """Changes of x and of the gradient in one step: s and y of the quasi-Newton equation."""

    x: FloatArray
    gradient: FloatArray


@dataclass(frozen=True)
class LBFGS:
    """Quasi-Newton steps from the last few changes (Nocedal 1980), which never climb.

    The direction −H g comes from the two-loop recursion over the last ``memory`` changes, and its length from a
    search that begins at 1 and ends where the value has fallen enough and the slope has flattened enough (the weak
    conditions of Wolfe). Changes with s·y ≤ 0 would make H indefinite and are not remembered. Where a direction
    leads nowhere the past is forgotten and steepest descent tried, its largest change of a coordinate ``first``.
    """

    memory: int = 10
    first: float = 0.02

    def begin(self, x: FloatArray, evaluate: Evaluate[E]) -> DescentState[E]:
        return DescentState(*_evaluate_start(x, evaluate), ())

    def step(self, state: DescentState[E], evaluate: Evaluate[E]) -> DescentState[E]:
        if state.settled:
            return state
        gradient = state.evaluation.gradient
        # Without a past the direction is steepest descent, so that there is nothing else to try.
        for past in (state.memory, ())[not state.memory :]:
            start = 1.0 if past else _first_length(gradient, self.first)
            found = _line_search(state, -_two_loops(gradient, past), start, evaluate, _CURVATURE)
            if found is not None:
                _, x, evaluation = found
                last = Change(x - state.x, evaluation.gradient - gradient)
                return DescentState(x, evaluation, (*past, last)[-self.memory :] if _is_convex(last) else past)
        return replace(state, settled=True)


def _two_loops(gradient: FloatArray, past: tuple[Change, ...]) -> FloatArray:
    """H g, with H from the changes of the past, the oldest first; g itself where there are none."""
    q, shares = gradient, list[float]()
    for s, y in reversed(past):
        shares.append(_dot(s, q) / _dot(s, y))
        q = q - shares[-1] * y
    if past:
        s, y = past[-1]
        q = q * (_dot(s, y) / _dot(y, y))
    for (s, y), share in zip(past, reversed(shares), strict=True):
        q = q + (share - _dot(y, q) / _dot(s, y)) * s
    return q


def _is_convex(change: Change) -> bool:
    """Whether the slope rose along the step, by more than rounding."""
    s, y = change
    return bool(_dot(s, y) > np.finfo(float).eps * np.sqrt(_dot(s, s) * _dot(y, y)))


class _LinePoint(NamedTuple, Generic[E]):
    """A place on a line at some length, and its evaluation."""

    length: float
    x: FloatArray
    evaluation: E


def _line_search(
    state: DescentState[E], direction: FloatArray, length: float, evaluate: Evaluate[E], curvature: float
) -> _LinePoint[E] | None:
    """Line search: a place along ``direction`` that is lower by Armijo's rule, or None where there is none.

    Lengths are doubled while the slope is still below ``curvature`` times that at the start, and halved, or taken
    midway between the last two bounds, where the value is too high. If the trials run out, the longest length that
    went low enough will do.
    """
    value, slope = state.evaluation.value, _dot(state.evaluation.gradient, direction)
    if not -np.inf < slope < 0:
        return None
    best, too_short, too_long = None, 0.0, np.inf
    for _ in range(_MOST_TRIALS):
        x = state.x + length * direction
        evaluation = evaluate(x)
        # A fall of less than rounding can hold is none: without the first test such steps would never end.
        fell = evaluation.value < value and evaluation.value <= value + _ARMIJO * length * slope
        if not (fell and _is_finite(evaluation)):
            too_long = length
        else:
            best, too_short = _LinePoint(length, x, evaluation), length
            if _dot(evaluation.gradient, direction) >= curvature * slope:
                break
        length = 0.5 * (too_short + too_long) if np.isfinite(too_long) else 2.0 * length
    return best


# -------------------------------------------------------------------------------------------------------- shared


def _evaluate_start(x: FloatArray, evaluate: Evaluate[E]) -> tuple[FloatArray, E]:
    x = np.array(x, dtype=np.float64)
    evaluation = evaluate(x)
    if not _is_finite(evaluation):
        raise InvalidDataError(
            f"a descent cannot start where the value is {evaluation.value} or its gradient is not finite. Choose "
            "another start, or rescale the columns"
        )
    return x, evaluation


def _is_finite(evaluation: ValueAndGradient) -> bool:
    return bool(np.isfinite(evaluation.value) and np.isfinite(evaluation.gradient).all())


def _first_length(gradient: FloatArray, first: float) -> float:
    """The length along the gradient that changes no coordinate by more than ``first``."""
    return first / max(float(np.abs(gradient).max(initial=0.0)), _FLAT_SLOPE)


def _dot(a: FloatArray, b: FloatArray) -> float:
    return float(np.vdot(a, b))


DESCENTS: dict[str, Descent] = {"rprop": Rprop(), "lbfgs": LBFGS(), "gradient": GradientDescent()}
