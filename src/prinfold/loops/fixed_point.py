"""Repeat a step until its objective settles: stopping reasons, history, interruption."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from time import perf_counter
from typing import Generic, TypeVar

from prinfold.files import storable

S = TypeVar("S")


@storable
class StopReason(Enum):
    """Why training ended; the value is a sentence."""

    CONVERGED = "The objective changed by less than tol."
    MAX_ITER = "The iteration limit max_iter was reached before the objective settled."
    CALLBACK = "A callback asked to stop."
    INTERRUPTED = "Training was interrupted; the best model so far was kept."

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True)
class Iteration(Generic[S]):
    """What a listener is told after each iteration; index 0 is the start."""

    index: int
    max_iter: int
    state: S
    measures: Mapping[str, float]


@dataclass(frozen=True)
class Outcome(Generic[S]):
    """Result of a loop: the best state, how it got there and why it stopped."""

    state: S
    n_iter: int
    reason: StopReason
    history: dict[str, list[float]]

    @property
    def converged(self) -> bool:
        return self.reason is StopReason.CONVERGED


Listener = Callable[[Iteration[S]], bool]


def run_fixed_point(
    begin: Callable[[], S],
    step: Callable[[S], S],
    measure: Callable[[S], Mapping[str, float]],
    *,
    max_iter: int,
    tol: float,
    listeners: Sequence[Listener[S]] = (),
    keep_last: bool = False,
) -> Outcome[S]:
    """Iterate ``step`` from ``begin()`` while ``measure(state)["objective"]`` still rises by ``tol``.

    ``tol=0`` never stops early. The best state is returned, or with ``keep_last`` the last, for steps that need not go
    uphill. A listener that returns True stops the loop. An interrupt from the keyboard stops it too; one that comes
    before there is any state is passed on.
    """
    clock = perf_counter()
    state = best = begin()
    # One append records an iteration whole, so that an interrupt never leaves lists of unequal length.
    records = [measures := _record(measure(state), clock)]
    highest, reason, index = -float("inf"), StopReason.MAX_ITER, 0
    try:
        while True:
            if keep_last or measures["objective"] >= highest:
                highest, best = measures["objective"], state
            if _tell(listeners, Iteration(index, max_iter, state, measures)):
                reason = StopReason.CALLBACK
                break
            if index and tol > 0 and abs(measures["objective"] - records[-2]["objective"]) < tol:
                reason = StopReason.CONVERGED
                break
            if index == max_iter:
                break
            state = step(state)
            measures = _record(measure(state), clock)
            records.append(measures)
            index += 1
    except KeyboardInterrupt:
        reason = StopReason.INTERRUPTED
    history = {name: [record[name] for record in records] for name in records[0]}
    return Outcome(best, len(records) - 1, reason, history)


def _tell(listeners: Sequence[Listener[S]], iteration: Iteration[S]) -> bool:
    """Tell every listener of an iteration, and return whether any of them asks to stop."""
    # A plain loop in a function of its own: from Python 3.12 on an interrupt that strikes within a
    # comprehension can slip past the handler around it.
    stop = False
    for listen in listeners:
        stop = bool(listen(iteration)) or stop
    return stop


def _record(measures: Mapping[str, float], clock: float) -> dict[str, float]:
    """What the history keeps of one iteration."""
    return {name: float(value) for name, value in measures.items()} | {"seconds": perf_counter() - clock}
