"""Rules: which state a loop keeps, and when it has done enough."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prinfold.loops import (
    Discrepancy,
    Done,
    Last,
    Plateau,
    Scheduled,
    StoppingRule,
    StopReason,
    Validation,
    run_fixed_point,
)


def walk(errors, rule, *, validation=None, tol=1e-12):
    """Walk along a list of errors; the state is the place in the list."""
    seen = validation or errors

    def measure(i):
        return {"objective": -errors[i], "typical": errors[i], "validation": seen[i]}

    return run_fixed_point(lambda: 0, lambda i: i + 1, measure, max_iter=len(errors) - 1, tol=tol, rule=rule)


def test_discrepancy_keeps_the_first_state_at_the_level_and_ends_there():
    outcome = walk([5.0, 3.0, 1.9, 1.0, 0.1], Discrepancy(2.0))
    assert (outcome.state, outcome.n_iter, outcome.reason) == (2, 2, StopReason.NOISE)
    assert outcome.converged


def test_discrepancy_takes_one_step_from_a_start_that_is_at_the_level():
    outcome = walk([1.0, 0.5, 0.1], Discrepancy(2.0))
    assert (outcome.state, outcome.n_iter, outcome.reason) == (1, 1, StopReason.NOISE)
    assert walk([1.0, 0.5, 0.1], Discrepancy(2.0), tol=0).state == 1
    assert walk([1.0, 1.5, 1.2], Discrepancy(2.0)).state == 0, "a step that climbs is not kept"


def test_discrepancy_above_the_level_keeps_the_best():
    outcome = walk([5.0, 3.0, 4.0, 3.5], Discrepancy(2.0))
    assert (outcome.state, outcome.reason) == (1, StopReason.MAX_ITER)


def test_without_a_tolerance_a_rule_keeps_but_never_ends():
    outcome = walk([5.0, 1.9, 1.0, 0.1], Discrepancy(2.0), tol=0)
    assert (outcome.state, outcome.n_iter, outcome.reason) == (1, 3, StopReason.MAX_ITER)


def test_validation_waits_as_long_as_it_was_told_and_keeps_the_lowest():
    errors = [9.0 - i for i in range(9)]
    outcome = walk(errors, Validation(patience=3), validation=[5, 4, 3, 3.5, 3.2, 3.1, 1, 1, 1])
    assert (outcome.state, outcome.n_iter, outcome.reason) == (2, 5, StopReason.VALIDATION)


@given(st.lists(st.floats(0, 10), min_size=2, max_size=20), st.integers(1, 5))
def test_what_validation_keeps_is_the_lowest_of_what_it_saw(seen, patience):
    outcome = walk([30.0 - i for i in range(len(seen))], Validation(patience), validation=seen)
    assert seen[outcome.state] == min(outcome.history["validation"])


@pytest.mark.parametrize(("rule", "kept"), [(StoppingRule(), 1), (Last(), 3)])
def test_the_highest_or_the_last(rule, kept):
    assert walk([5.0, 1.0, 4.0, 3.0], rule).state == kept


def test_before_its_schedule_is_over_nothing_settles():
    still = [5.0, 5.0, 5.0, 4.0, 4.0, 3.0]
    outcome = walk(still, Scheduled(3))
    assert (outcome.state, outcome.n_iter, outcome.reason) == (4, 4, StopReason.CONVERGED)
    outcome = walk(still, Scheduled(3, settles=False))
    assert (outcome.state, outcome.n_iter, outcome.reason) == (3, 3, StopReason.SCHEDULE)
    assert walk(still, Scheduled(3, settles=False), tol=0).n_iter == 5


def test_a_training_that_goes_round_after_its_schedule_ends():
    round_ = [9.0, 8.0, *([3.0, 2.0] * 20)]
    outcome = walk(round_, Scheduled(2, tol=1e-3))
    assert (outcome.n_iter, outcome.reason) == (13, StopReason.STALLED)
    assert outcome.converged
    falling = [40.0 - i for i in range(30)]
    assert walk(falling, Scheduled(2, tol=1e-3)).reason is StopReason.MAX_ITER


def test_done_ends_when_all_is_done_and_not_when_nothing_changed():
    def measure(i):
        return {"objective": -1.0, "done": float(i == 3)}

    outcome = run_fixed_point(lambda: 0, lambda i: i + 1, measure, max_iter=9, tol=1e-3, rule=Done())
    assert (outcome.state, outcome.n_iter, outcome.reason) == (3, 3, StopReason.CONVERGED)
    assert run_fixed_point(lambda: 0, lambda i: i + 1, measure, max_iter=9, tol=0.0, rule=Done()).n_iter == 9


def test_a_fall_that_is_too_small_is_none():
    """Errors that fall by 2 % a step: over three steps that is more than 5 % and less than 7 %."""
    seen = [100.0 * 0.98**i for i in range(20)]
    steady, ended = (walk(seen, Validation(3, least_fall=least), validation=seen) for least in (0.05, 0.07))
    assert (steady.n_iter, steady.reason) == (19, StopReason.MAX_ITER)
    assert (ended.n_iter, ended.reason) == (3, StopReason.VALIDATION)


def test_a_plateau_ends_after_the_steps_of_its_trial():
    outcome = walk([9.0 - i for i in range(9)], Plateau(4))
    assert (outcome.state, outcome.n_iter, outcome.reason) == (4, 4, StopReason.PLATEAU)
