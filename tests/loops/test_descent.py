"""Ways downhill: they arrive, some of them never climb, and none of them cares for the order of rows."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import rosen, rosen_der

from prinfold.exceptions import InvalidDataError
from prinfold.loops import DESCENTS, StopReason, run_fixed_point
from prinfold.loops.descent import LBFGS, Change, DescentState, GradientDescent, Rprop, _two_loops

MONOTONE = {"lbfgs", "gradient"}
NAMES = sorted(DESCENTS)


class Evaluation(NamedTuple):
    """Value and gradient, and something more that a caller may want to read later."""

    value: float
    gradient: np.ndarray
    note: float = 0.0


def quadratic(curvature, center):
    """½ Σ c (x − centre)²."""

    def evaluate(x):
        return Evaluation(0.5 * float((curvature * (x - center) ** 2).sum()), curvature * (x - center), x.sum())

    return evaluate


def valley(x):
    """Rosenbrock's bent valley, its lowest point at (1, 1)."""
    return Evaluation(float(rosen(x.ravel())), rosen_der(x.ravel()).reshape(x.shape))


def waves(x):
    """Not convex, with rows that pull at each other: Σ (1 − exp(−‖x_i − x_j‖²)) + 0.05 Σ‖x‖⁴."""
    gap = x[:, None] - x[None]
    pull = np.exp(-(gap**2).sum(axis=2))
    size = (x**2).sum(axis=1)
    value = float((1 - pull).sum() + 0.05 * (size**2).sum())
    return Evaluation(value, 4 * np.einsum("ij,ijq->iq", pull, gap) + 0.2 * size[:, None] * x)


def walled(x):
    """A slope towards a wall at 1, beyond which there is nothing."""
    if x.max() > 1:
        return Evaluation(np.inf, np.full(x.shape, np.nan))
    return Evaluation(-float(x.sum()), -np.ones(x.shape))


def follow(descent, x, evaluate, n_steps):
    states = [descent.begin(x, evaluate)]
    for _ in range(n_steps):
        states.append(descent.step(states[-1], evaluate))
    return states


def run(name, x, evaluate, **settings):
    descent = DESCENTS[name]
    return run_fixed_point(
        lambda: descent.begin(x, evaluate),
        lambda state: descent.step(state, evaluate),
        lambda state: {"objective": -state.evaluation.value, "note": state.evaluation.note},
        **settings,
    )


START = np.random.default_rng(0).normal(size=(7, 2))


# ------------------------------------------------------------------------------------------------- they arrive


@pytest.mark.parametrize(("name", "n_steps"), [("rprop", 300), ("lbfgs", 60), ("gradient", 300)])
def test_the_lowest_point_of_a_quadratic_is_found(name, n_steps):
    """Curvatures from 1 to 100, so that no single length suits all coordinates."""
    curvature, center = np.geomspace(1, 100, 14).reshape(7, 2), START[::-1]
    last = follow(DESCENTS[name], START, quadratic(curvature, center), n_steps)[-1]
    assert_allclose(last.x, center, atol=1e-6)


@pytest.mark.parametrize(("name", "n_steps"), [("rprop", 5000), ("lbfgs", 45), ("gradient", 5000)])
def test_the_end_of_a_bent_valley_is_found(name, n_steps):
    last = follow(DESCENTS[name], np.array([[-1.2, 1.0]]), valley, n_steps)[-1]
    assert_allclose(last.x, 1.0, atol=1e-3)


def test_lbfgs_beats_gradient_steps_where_curvatures_differ():
    curvature = np.geomspace(1, 1e4, 14).reshape(7, 2)
    ends = {
        name: follow(DESCENTS[name], START, quadratic(curvature, 0.0), 40)[-1].evaluation.value for name in MONOTONE
    }
    assert ends["lbfgs"] < 0.2 * ends["gradient"]


@pytest.mark.parametrize("name", NAMES)
def test_units_of_the_value_do_not_matter(name):
    """Scaling the value by a power of two leaves the whole path as it is, to the bit."""

    def scaled(x):
        found = waves(x)
        return Evaluation(2.0**40 * found.value, 2.0**40 * found.gradient)

    assert_array_equal(follow(DESCENTS[name], START, scaled, 25)[-1].x, follow(DESCENTS[name], START, waves, 25)[-1].x)


def test_the_two_loops_are_the_inverse_of_bfgs():
    """Against the update of the whole matrix: H ← (I − ρ s yᵀ) H (I − ρ y sᵀ) + ρ s sᵀ."""
    rng = np.random.default_rng(1)
    A = rng.normal(size=(6, 6))
    A = A @ A.T + np.eye(6)
    past = tuple(Change(s, A @ s) for s in rng.normal(size=(4, 6)))
    s, y = past[-1]
    H = (s @ y) / (y @ y) * np.eye(6)
    for s, y in past:
        turn = np.eye(6) - np.outer(s, y) / (s @ y)
        H = turn @ H @ turn.T + np.outer(s, s) / (s @ y)
    g = rng.normal(size=6)
    assert_allclose(_two_loops(g, past), H @ g)


def test_rprop_moves_by_signs_and_paces():
    """By hand: the first length, 1.2 times it while the slope keeps its sign; after a turn a wait, then half of it."""
    path = follow(Rprop(first=0.1), np.array([[0.25, -5.0]]), quadratic(np.array([1.0, 1e-9]), 0.0), 5)
    left = [0.25, 0.15, 0.03, -0.114, -0.114, -0.042]
    right = [-5.0, -4.9, -4.78, -4.636, -4.4632, -4.25584]
    assert_allclose([state.x[0] for state in path], np.transpose([left, right]), atol=1e-12)


def test_coordinates_that_turn_all_at_once_do_not_wait():
    """Else the step would change nothing, and a loop would take that for convergence."""
    x = np.array([state.x[0, 0] for state in follow(Rprop(first=0.1), np.array([[0.25]]), quadratic(1.0, 0.0), 30)])
    assert (np.diff(x) != 0).all()
    outcome = run("rprop", np.array([[0.25]]), quadratic(1.0, 0.0), max_iter=200, tol=1e-15)
    assert abs(outcome.state.x[0, 0]) < 1e-6


def test_paces_stay_within_their_limits():
    descent = Rprop(first=0.5, largest=0.6, smallest=0.01)
    ways = np.array([s.x[0] for s in follow(descent, np.array([[40.0, 0.3]]), quadratic(1.0, 0.0), 40)])
    moves = np.abs(np.diff(ways, axis=0))
    assert_allclose(moves.max(), 0.6)
    assert moves[moves > 0].min() >= 0.01 - 1e-12


# ------------------------------------------------------------------------------------------- they never climb


@pytest.mark.parametrize("name", sorted(MONOTONE))
@pytest.mark.parametrize("evaluate", [valley, waves])
def test_the_value_falls_with_every_step_until_it_stays(name, evaluate):
    states = follow(DESCENTS[name], START, evaluate, 200)
    values = [state.evaluation.value for state in states]
    ends = next((i for i, state in enumerate(states) if state.settled), len(states))
    assert all(after < before for before, after in pairwise(values[:ends]))
    assert len(set(values[ends - 1 :])) == 1 or ends == len(states)


def test_a_step_that_overshoots_to_nearly_the_same_height_is_halved():
    """Across a parabola from 1 to −(1 − 2e-6): lower, but by far less than its slope promised."""
    state = DescentState(np.ones((1, 1)), quadratic(1.0, 0.0)(np.ones((1, 1))), 2 - 2e-6)
    assert_allclose(GradientDescent().step(state, quadratic(1.0, 0.0)).x, 1e-6, rtol=1e-6)


@pytest.mark.parametrize("name", sorted(MONOTONE))
def test_a_fall_below_rounding_is_none(name):
    """On a level of 1e15 a fall of less than 0.1 cannot be seen; steps that go by the slope alone would never end."""

    def high(x):
        found = waves(x)
        return Evaluation(1e15 + found.value, found.gradient)

    for before, after in pairwise(follow(DESCENTS[name], START, high, 60)):
        assert after.settled or after.evaluation.value < before.evaluation.value
    assert after.settled


def test_a_change_that_bends_down_is_not_remembered():
    """From the top of a hill the slope steepens on the way down, s·y < 0."""

    def hill(x):
        return Evaluation(float(np.cos(x).sum()), -np.sin(x))

    first, second = follow(LBFGS(first=1e-3), np.array([[0.3, 0.4]]), hill, 1)
    assert second.evaluation.value < first.evaluation.value
    changed = second.evaluation.gradient - first.evaluation.gradient
    kept = np.vdot(second.x - first.x, changed) > 0
    assert len(second.memory) == kept
    assert_allclose(np.cos(follow(LBFGS(), np.array([[0.3, 0.4]]), hill, 30)[-1].x), -1, atol=1e-9)


def test_no_more_changes_are_remembered_than_asked_for():
    states = follow(LBFGS(memory=3), START, waves, 12)
    assert [len(state.memory) for state in states[:6]] == sorted(len(state.memory) for state in states[:6])
    assert max(len(state.memory) for state in states) == 3


def test_a_direction_that_fails_is_replaced_by_steepest_descent():
    """A past that points uphill: it is forgotten, and the step goes down all the same."""
    evaluate = quadratic(1.0, 0.0)
    lies = (Change(np.array([[1.0, 0.0]]), np.array([[-1.0, 0.0]])),)
    state = LBFGS().begin(np.array([[2.0, 0.0]]), evaluate)
    after = LBFGS().step(DescentState(state.x, state.evaluation, lies), evaluate)
    assert after.evaluation.value < state.evaluation.value
    assert len(after.memory) == 1
    assert np.vdot(after.memory[0].x, after.memory[0].gradient) > 0


# ------------------------------------------------------------------------------------------ symmetries, repeats


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_rows_changes_nothing_but_the_order(name):
    order = np.random.default_rng(3).permutation(len(START))
    plain, mixed = (follow(DESCENTS[name], x, waves, 15) for x in (START, START[order]))
    for a, b in zip(plain, mixed, strict=True):
        assert_allclose(b.x, a.x[order], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_start_gives_the_same_path_and_leaves_its_arrays_alone(name):
    start = START.copy()
    once, again = (follow(DESCENTS[name], start, waves, 20) for _ in range(2))
    for a, b in zip(once, again, strict=True):
        assert_array_equal(a.x, b.x)
    assert_array_equal(start, START)
    assert_array_equal(once[0].x, START)


@pytest.mark.parametrize("name", NAMES)
def test_the_evaluation_belongs_to_the_place(name):
    for state in follow(DESCENTS[name], START, waves, 10):
        assert state.evaluation.value == waves(state.x).value


# ---------------------------------------------------------------------------------------------------- the edges


@pytest.mark.parametrize("name", NAMES)
def test_at_a_stationary_point_nothing_moves(name):
    evaluate = quadratic(1.0, START)
    first, *rest = follow(DESCENTS[name], START, evaluate, 3)
    for state in rest:
        assert_array_equal(state.x, first.x)
        assert state.settled


@pytest.mark.parametrize("name", NAMES)
def test_a_settled_descent_asks_for_no_more_evaluations(name):
    calls = []

    def counted(x):
        calls.append(x)
        return quadratic(1.0, START)(x)

    states = follow(DESCENTS[name], START, counted, 5)
    assert states[-1].settled
    n_calls = len(calls)
    DESCENTS[name].step(states[-1], counted)
    assert len(calls) == n_calls


@pytest.mark.parametrize("name", NAMES)
def test_a_wall_is_approached_and_never_crossed(name):
    start = np.array([[0.0, 0.5], [-0.3, 0.9]])
    states = follow(DESCENTS[name], start, walled, 200)
    assert all(np.isfinite(state.evaluation.value) and state.x.max() <= 1 for state in states)
    assert states[-1].x.max() > 1 - 1e-6
    assert states[-1].settled


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_start_that_is_no_number_is_refused(name, bad):
    with pytest.raises(InvalidDataError, match="cannot start where the value is"):
        DESCENTS[name].begin(START, lambda x: Evaluation(bad, np.zeros_like(x)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_trials_that_are_no_numbers_fail_even_if_they_look_low(name, bad):
    """Beyond 1 the value is bad, below it there is somewhere to go."""

    def evaluate(x):
        return Evaluation(-float(x.sum()) if x.max() <= 1 else bad, -np.ones(x.shape))

    last = follow(DESCENTS[name], np.zeros((2, 1)), evaluate, 200)[-1]
    assert np.isfinite(last.evaluation.value)
    assert_allclose(last.x, 1.0, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_slopes_of_any_size_are_survived(name):
    for size in (1e-200, 1e200):
        evaluate = quadratic(size, 0.0)
        states = follow(DESCENTS[name], START, evaluate, 5)
        assert np.isfinite(states[-1].x).all()
        assert states[-1].evaluation.value <= states[0].evaluation.value


def test_no_bend_at_all_gives_longer_steps_and_no_infinite_ones():
    def plane(x):
        return Evaluation(-float(x.sum()), -np.ones_like(x))

    states = follow(GradientDescent(first=0.1), np.zeros((1, 1)), plane, 20)
    moves = np.diff([state.x[0, 0] for state in states])
    assert_allclose(moves[1:] / moves[:-1], 2.0)


# ------------------------------------------------------------------------------------------------ in the loop


@pytest.mark.parametrize("name", NAMES)
def test_the_loop_converges_and_keeps_the_history(name):
    outcome = run(name, START, waves, max_iter=3000, tol=1e-9)
    assert outcome.reason is StopReason.CONVERGED
    history = outcome.history["objective"]
    assert len(history) == outcome.n_iter + 1 == len(outcome.history["note"])
    assert -outcome.state.evaluation.value == max(history)
    assert history[0] == -waves(START).value
    if name in MONOTONE:
        assert history == sorted(history)


@pytest.mark.parametrize("name", sorted(MONOTONE))
def test_where_there_is_no_way_down_the_loop_says_converged(name):
    outcome = run(name, np.zeros((2, 2)), walled, max_iter=500, tol=1e-300)
    assert outcome.reason is StopReason.CONVERGED
    assert outcome.state.x.max() > 1 - 1e-6


def test_measures_may_read_what_else_was_evaluated():
    outcome = run("lbfgs", START, quadratic(1.0, 0.0), max_iter=3, tol=0)
    assert outcome.history["note"][0] == START.sum()
    assert outcome.history["note"][-1] == pytest.approx(0, abs=1e-9)
