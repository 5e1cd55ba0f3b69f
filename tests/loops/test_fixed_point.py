"""The loop: why it stops, what it remembers, what an interrupt leaves."""

from __future__ import annotations

import signal
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prinfold import GTM
from prinfold.exceptions import InterruptedWarning
from prinfold.gtm import model as gtm
from prinfold.gtm.starts import first_parameters as starts
from prinfold.loops import Iteration, Listeners, StopReason, fixed_point, run_fixed_point

DATA = np.random.default_rng(0).normal(size=(60, 4)) * [3, 1, 0.3, 0.3]


def climb(values, **settings):
    """Walk along a list of objectives; the state is the place in the list."""
    settings = {"max_iter": len(values) - 1, "tol": 1e-3} | settings
    return run_fixed_point(lambda: 0, lambda i: i + 1, lambda i: {"objective": values[i], "place": i}, **settings)


def test_it_stops_when_the_objective_settles():
    outcome = climb([0.0, 1.0, 1.5, 1.5005, 9.0])
    assert outcome.reason is StopReason.CONVERGED
    assert outcome.converged
    assert (outcome.n_iter, outcome.state) == (3, 3)
    assert outcome.history["objective"] == [0.0, 1.0, 1.5, 1.5005]


def test_it_stops_at_the_limit():
    outcome = climb([0.0, 1.0, 2.0, 3.0])
    assert outcome.reason is StopReason.MAX_ITER
    assert not outcome.converged
    assert (outcome.n_iter, outcome.state) == (3, 3)


def test_no_iterations_at_all():
    outcome = climb([5.0], max_iter=0)
    assert (outcome.n_iter, outcome.state, outcome.reason) == (0, 0, StopReason.MAX_ITER)
    assert outcome.history["objective"] == [5.0]


@given(st.lists(st.sampled_from([1.0, 1.0, 1.0, 2.0]), min_size=1, max_size=30))
def test_a_tolerance_of_zero_never_stops_early(values):
    outcome = climb(values, tol=0)
    assert outcome.n_iter == len(values) - 1
    assert outcome.reason is StopReason.MAX_ITER


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=30), st.floats(0, 1))
def test_the_best_is_kept_and_histories_have_equal_length(values, tol):
    outcome = climb(values, tol=tol)
    lengths = {name: len(series) for name, series in outcome.history.items()}
    assert set(lengths) == {"objective", "place", "seconds"}
    assert set(lengths.values()) == {outcome.n_iter + 1}
    assert values[outcome.state] == max(outcome.history["objective"])
    assert np.all(np.diff(outcome.history["seconds"]) >= 0)


def test_the_later_of_two_equally_good_states_is_kept():
    assert climb([0.0, 1.0, 1.0], tol=0).state == 2


@pytest.mark.parametrize("values", [[np.nan, 1.0, 2.0], [1.0, 2.0, np.nan], [-np.inf, 2.0, -np.inf]])
def test_an_objective_that_is_no_number_is_never_the_best(values):
    assert values[climb(values).state] == 2.0


def test_a_listener_may_stop_the_loop_and_every_listener_hears_of_it():
    heard = {"a": [], "b": []}

    def listener(name, stop_at):
        def listen(iteration: Iteration) -> bool:
            heard[name].append((iteration.index, iteration.state, iteration.max_iter, iteration.measures["objective"]))
            return iteration.index == stop_at

        return listen

    outcome = climb(
        [0.0, 1.0, 2.0, 3.0, 4.0],
        listeners=Listeners(
            (
                listener("a", 2),
                listener("b", 99),
            )
        ),
    )
    assert outcome.reason is StopReason.CALLBACK
    assert outcome.n_iter == 2
    assert heard["a"] == heard["b"] == [(0, 0, 4, 0.0), (1, 1, 4, 1.0), (2, 2, 4, 2.0)]


def test_a_listener_hears_of_the_last_iteration_too():
    heard = []
    climb([0.0, 1.0, 1.0], listeners=Listeners((lambda iteration: heard.append(iteration.index),)))
    assert heard == [0, 1, 2]


@pytest.mark.parametrize("where", ["step", "measure", "listener"])
@pytest.mark.parametrize("at", [1, 3])
def test_an_interrupt_keeps_the_best_so_far(where, at):
    values = [0.0, 5.0, 4.0, 3.0, 9.0]

    def interrupt(place, index):
        if place == where and index == at:
            raise KeyboardInterrupt

    def step(i):
        interrupt("step", i + 1)
        return i + 1

    def measure(i):
        interrupt("measure", i)
        return {"objective": values[i]}

    outcome = run_fixed_point(
        lambda: 0, step, measure, max_iter=4, tol=0, listeners=Listeners((lambda it: interrupt("listener", it.index),))
    )
    done = at if where == "listener" else at - 1
    assert outcome.reason is StopReason.INTERRUPTED
    assert outcome.n_iter == done
    assert outcome.state == int(np.argmax(values[: done + 1]))
    assert {len(series) for series in outcome.history.values()} == {done + 1}


@pytest.mark.parametrize("line", range(1, 100, 3))
def test_an_interrupt_at_any_moment_leaves_a_whole_outcome(line):
    """Ctrl-C may strike between any two lines of the loop itself."""
    seen, began = 0, False

    def trace(frame, event, arg):
        nonlocal seen, began
        if frame.f_code.co_filename != fixed_point.__file__:
            return None
        if event == "line" and began:
            seen += 1
            if seen == line:
                raise KeyboardInterrupt
        return trace

    def hear(iteration):
        nonlocal began
        began = True  # there is a state to keep from here on

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        outcome = run_fixed_point(
            lambda: 0,
            lambda i: i + 1,
            lambda i: {"objective": float(i)},
            max_iter=12,
            tol=0,
            listeners=Listeners((hear,)),
        )
    finally:
        sys.settrace(previous)
    assert {len(series) for series in outcome.history.values()} == {outcome.n_iter + 1}
    assert outcome.state in (outcome.n_iter, outcome.n_iter - 1, outcome.n_iter + 1)
    assert outcome.reason is StopReason.INTERRUPTED


def test_an_interrupt_before_there_is_any_state_is_passed_on():
    def begin():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_fixed_point(begin, lambda s: s, lambda s: {"objective": 0.0}, max_iter=3, tol=0)


@pytest.mark.parametrize("where", ["step", "listener"])
def test_errors_pass_through(where):
    def fail(*_):
        raise RuntimeError("broken")

    step, listeners = (fail, Listeners()) if where == "step" else (lambda i: i, Listeners((fail,)))
    with pytest.raises(RuntimeError, match="broken"):
        run_fixed_point(lambda: 0, step, lambda i: {"objective": 0.0}, max_iter=3, tol=0, listeners=listeners)


def test_reasons_are_sentences():
    for reason in StopReason:
        assert str(reason) == reason.value
        assert reason.value.endswith(".")


# ---------------------------------------------------------------------------------------- through the GTM


def interrupted_fit(monkeypatch, at, signal_=False):
    """Fit a GTM whose E-step is interrupted at a given pass over the data."""

    original, calls = gtm.e_step, []

    def e_step(*args):
        calls.append(None)
        if len(calls) == at + 1:
            if signal_:
                signal.raise_signal(signal.SIGINT)
            raise KeyboardInterrupt
        return original(*args)

    monkeypatch.setattr(gtm, "e_step", e_step)
    return GTM(nodes=5, basis=3, max_iter=20, tol=0).fit(DATA)


def test_an_interrupted_fit_says_so_and_is_usable(monkeypatch):
    with pytest.warns(InterruptedWarning, match=r"interrupted after 6 iterations; the best model so far was kept"):
        model = interrupted_fit(monkeypatch, 7)
    assert model.stop_reason_ is StopReason.INTERRUPTED
    assert not model.converged_
    assert model.n_iter_ == 6
    assert {len(series) for series in model.history_.values()} == {7}
    monkeypatch.undo()
    whole = GTM(nodes=5, basis=3, max_iter=6, tol=0).fit(DATA)
    np.testing.assert_array_equal(model.transform(DATA), whole.transform(DATA))


def test_a_signal_from_the_keyboard_is_an_interrupt(monkeypatch):
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.warns(InterruptedWarning, match="after 3 iterations"):
            interrupted_fit(monkeypatch, 4, signal_=True)
    finally:
        signal.signal(signal.SIGINT, handler)


def test_a_fit_interrupted_before_its_first_pass_is_passed_on(monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        interrupted_fit(monkeypatch, 0)


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.FoldWarning")
@pytest.mark.parametrize("looks", [1, 4])
def test_a_fit_interrupted_while_it_warms_up_keeps_what_it_had_come_to(monkeypatch, looks):
    """Training then consists of one look at the rows, of the whole grid."""
    monkeypatch.setattr(starts, "_WARM_UP_FROM", 0)
    with pytest.warns(InterruptedWarning, match="after 0 iterations"):
        model = interrupted_fit(monkeypatch, looks)
    assert model.stop_reason_ is StopReason.INTERRUPTED
    assert model.n_iter_ == 0
    monkeypatch.undo()
    cold = GTM(nodes=5, basis=3, max_iter=0, tol=0).fit(DATA)
    assert model.score(DATA) >= cold.score(DATA)
    assert np.isfinite(model.transform(DATA)).all()


@pytest.mark.parametrize("max_iter", [0, 2, 100])
def test_a_warm_up_takes_no_more_iterations_than_are_asked_for(monkeypatch, max_iter):
    steps = []
    original = gtm.step
    monkeypatch.setattr(gtm, "step", lambda model, *more: steps.append(model.surface.latent) or original(model, *more))
    monkeypatch.setattr(starts, "_WARM_UP_FROM", 0)
    GTM(nodes=6, basis=3, max_iter=max_iter, tol=0).fit(DATA)
    coarse = sum(latent.n_nodes < 36 for latent in steps)
    assert coarse <= min(max_iter, 30)
    assert (coarse > 0) == (max_iter > 0)


def test_every_reason_reaches_the_estimator():
    settled = GTM(nodes=5, basis=3, tol=0.5, max_iter=50).fit(DATA)
    assert settled.stop_reason_ is StopReason.CONVERGED
    assert settled.converged_
    assert settled.n_iter_ < 50
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        never = GTM(nodes=5, basis=3, tol=0, max_iter=3).fit(DATA)
        start = GTM(nodes=5, basis=3, tol=0, max_iter=0).fit(DATA)
    assert (never.stop_reason_, never.n_iter_) == (StopReason.MAX_ITER, 3)
    assert (start.n_iter_, len(start.history_["objective"])) == (0, 1)
    from sklearn.exceptions import ConvergenceWarning

    with pytest.warns(ConvergenceWarning, match=r"Raise max_iter \(now 2\), or raise tol"):
        GTM(nodes=5, basis=3, max_iter=2).fit(DATA)
