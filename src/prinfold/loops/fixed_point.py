"""Repeat a step until its objective settles: stopping reasons, history, interruption."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Generic, TypeVar

from prinfold.exceptions import WorkersLostError
from prinfold.loops.stopping_rules import StoppingRule, StopReason
from prinfold.loops.training_log import LoopProgress, Stage, TrainingLog

S = TypeVar("S")


@dataclass(frozen=True)
class Iteration(Generic[S]):
    """One iteration, as listeners receive it; index 0 is the start."""

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
    failure: WorkersLostError | None = None
    """The error that ended it early; the state is that of the last iteration."""

    @property
    def converged(self) -> bool:
        """Whether the loop ended because there was no more to do."""
        return self.reason not in (StopReason.MAX_ITER, StopReason.CALLBACK, StopReason.INTERRUPTED)


Listener = Callable[[Iteration[S]], bool]


@dataclass(frozen=True)
class Listeners:
    """Functions that are called at each iteration of a training, and the file that keeps the training, if any."""

    each: tuple[Listener[Any], ...] = ()
    log: TrainingLog | None = None

    def tell(self, iteration: Iteration[Any]) -> bool:
        """Call every listener with an iteration; returns whether any of them asks to stop."""
        # A plain loop in a function of its own: from Python 3.12 on an interrupt that strikes within a
        # comprehension can slip past the handler around it.
        stop = False
        for listen in self.each:
            stop = bool(listen(iteration)) or stop
        return stop

    def after(self, n_iter: int, max_iter: int) -> Listeners:
        """The listeners of a loop that continues after ``n_iter`` iterations of another, without its iteration 0."""

        def shifted(listen: Listener[Any]) -> Listener[Any]:
            return lambda now: now.index > 0 and listen(replace(now, index=now.index + n_iter, max_iter=max_iter))

        return replace(self, each=tuple(shifted(listen) for listen in self.each))


NO_LISTENERS = Listeners()


def run_fixed_point(
    begin: Callable[[], S],
    step: Callable[[S], S],
    measure: Callable[[S], Mapping[str, float]],
    *,
    max_iter: int,
    tol: float,
    listeners: Listeners = NO_LISTENERS,
    rule: StoppingRule | None = None,
) -> Outcome[S]:
    """Iterate ``step`` from ``begin()`` while ``measure(state)["objective"]`` changes by ``tol`` or more.

    ``rule`` says which state is kept, by default the best, and when there is enough. ``tol=0`` never stops early,
    whatever the rule, which then only keeps. A listener that returns True stops the loop. An interrupt from the
    keyboard stops it too, and so does the loss of all workers; one that comes before there is any state is passed on.
    Where the training is kept in a file, the loop goes on from what is there.
    """
    clock = perf_counter()
    state = best = begin()
    # One append records an iteration whole, so that an interrupt never leaves lists of unequal length.
    records = [_record(measure(state), clock)]
    kept, reason, rule, failure = 0, StopReason.MAX_ITER, rule or StoppingRule(), None
    stage = None if listeners.log is None else listeners.log.open_stage(state, records[0])
    if stage is not None and stage.found is not None:
        state, best, kept, records, ended = stage.found
        if ended is not None:
            return _outcome(best, records, ended)
        clock = perf_counter() - records[-1]["seconds"]
    try:
        while True:
            index = len(records) - 1
            if rule.better(records, kept):
                kept, best = index, state
            _note(stage, LoopProgress(state, best, kept, records))
            if listeners.tell(Iteration(index, max_iter, state, records[-1])):
                reason = StopReason.CALLBACK
                break
            ending = rule.ending(records, tol)
            if ending is not None or index >= max_iter:
                reason = ending or reason
                break
            state = step(state)
            records.append(_record(measure(state), clock))
    except KeyboardInterrupt:
        reason = StopReason.INTERRUPTED
    except WorkersLostError as error:
        reason, failure = StopReason.INTERRUPTED, error
    if stage is not None:
        stage.end(LoopProgress(None, best, kept, records, reason))
    return replace(_outcome(best, records, reason), failure=failure)


def _note(stage: Stage | None, progress: LoopProgress) -> None:
    if stage is not None:
        stage.note(progress)


def _outcome(best: S, records: Sequence[Mapping[str, float]], reason: StopReason) -> Outcome[S]:
    history = {name: [record[name] for record in records] for name in records[0]}
    return Outcome(best, len(records) - 1, reason, history)


def go_on(
    before: Outcome[S],
    loop: Callable[..., Outcome[S]],
    *,
    more: int,
    max_iter: int,
    tol: float,
    listeners: Listeners = NO_LISTENERS,
) -> Outcome[S]:
    """The outcome of at most ``more`` iterations of another loop, which begins where the first had settled.

    The objective of the other loop is another one, so that its history begins anew; iterations of both are counted.
    It may end anywhere, since the first had settled, and then says that it was a refinement.
    """
    left = min(more, max_iter - before.n_iter)
    after = loop(max_iter=left, tol=tol, listeners=listeners.after(before.n_iter, max_iter))
    reason = StopReason.REFINED if after.reason is StopReason.MAX_ITER else after.reason
    clock = before.history["seconds"][-1]
    history = after.history | {"seconds": [clock + each for each in after.history["seconds"]]}
    return replace(after, n_iter=before.n_iter + after.n_iter, history=history, reason=reason)


def _record(measures: Mapping[str, float], clock: float) -> dict[str, float]:
    """Record of one iteration for the history: all measures and the seconds since the start."""
    return {name: float(value) for name, value in measures.items()} | {"seconds": perf_counter() - clock}
