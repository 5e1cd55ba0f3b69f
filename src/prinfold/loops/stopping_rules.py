"""Stopping rules: which state of a loop is kept, and when the loop ends.

A rule looks at what was measured at each iteration. Where a loop minimises an error that goes on falling long after
the surface has begun to follow the noise, the rule is what keeps the surface smooth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import inf, isnan

from prinfold.exceptions import quantity
from prinfold.files import storable

Measures = Mapping[str, float]


@storable
class StopReason(Enum):
    """Reasons for which training ended; the value is a sentence."""

    CONVERGED = "The objective changed by less than tol."
    REFINED = "The objective settled; then the nodes were doubled, and a few more iterations followed."
    ARRIVED = "No row moves any more."
    NOISE = "The error has come down to the level of the noise."
    GROWN = "The line has converged with as many segments as the rule asks for."
    CAPPED = "The line has converged with the most segments allowed; the rule asks for more."
    WALKED = "The walk has reached both ends of the curve, or its own beginning."
    SCHEDULE = "All steps of the training schedule are done."
    STALLED = "The objective has not risen by tol for ten iterations."
    VALIDATION = "The error of held-out rows has stopped falling."
    PLATEAU = (
        "The deviations from the surface are structure, not noise; further steps hardly improved the error of held-out "
        "rows."
    )
    MAX_ITER = "The iteration limit max_iter was reached before the objective settled."
    CALLBACK = "A callback asked to stop."
    OPEN = "Training goes on with every block of rows that partial_fit is given."
    INTERRUPTED = "Training was interrupted; the best model so far was kept."

    def __str__(self) -> str:
        return str(self.value)

    @property
    def plain(self) -> str:
        """The sentence without names of settings, for people who do not write Python."""
        return _PLAIN_SENTENCES.get(self.name, str(self))

    @property
    def brief(self) -> str:
        """Short phrase for a page: that training finished, or why it did not."""
        return _SHORT_PHRASES.get(self.name, "training finished")

    def after(self, n_iter: int) -> str:
        """The end of training and its time, as a heading: "Converged after 72 iterations"."""
        return _HEADINGS.get(self.name, "Converged after {}").format(quantity(n_iter, "iteration"))


_PLAIN_SENTENCES = {
    "CONVERGED": "Finished: more iterations would hardly change the result.",
    "REFINED": "Finished: the fit had settled, and was refined with more nodes.",
    "STALLED": "Finished: ten more iterations have not made it better.",
    "MAX_ITER": "The iteration limit was reached before the fit had settled.",
    "OPEN": "Training goes on with every block of rows.",
}
"""Sentences that name settings or methods, said without."""

_HEADINGS = {
    "REFINED": "Converged after {}; shown are the last, with more nodes",
    "CAPPED": "Stopped after {} with the most segments allowed",
    "SCHEDULE": "Finished the schedule of {}",
    "STALLED": "No further gain after {}",
    "MAX_ITER": "Not converged after {}, the limit",
    "CALLBACK": "Stopped by a callback after {}",
    "OPEN": "{} so far",
    "INTERRUPTED": "Interrupted after {}",
}
"""Headings of training that did not end by converging."""

_SHORT_PHRASES = {
    "MAX_ITER": "training reached its iteration limit (max_iter) before it settled",
    "CALLBACK": "training was stopped by a callback",
    "OPEN": "training goes on with every block of rows",
    "INTERRUPTED": "training was interrupted; this is the best model so far",
}
"""Endings after which a model may still change."""


@dataclass(frozen=True)
class StoppingRule:
    """A rule for keeping a state and for stopping; this one keeps the highest objective, and stops once it has settled.

    ``least`` iterations are taken before an objective that stands still has settled. ``level`` is the typical error at
    which the rule ends, 0 where it does not look at that.
    """

    least: float = field(default=0, kw_only=True)
    level: float = field(default=0.0, kw_only=True)

    def better(self, records: Sequence[Measures], kept: int) -> bool:
        """Whether the newest state takes the place of the one that is kept; NaN is lower than any number."""
        new, old = records[-1]["objective"], records[kept]["objective"]
        return new >= old or isnan(old)

    def ending(self, records: Sequence[Measures], tol: float) -> StopReason | None:
        """Reason to end the loop after the newest record: the rule's own, or that the objective has settled."""
        if not tol > 0:
            return None
        reason = self.stop(records)
        if len(records) < 2 + self.least:  # two to compare, once a schedule is over
            return reason
        if reason is None and abs(records[-1]["objective"] - records[-2]["objective"]) < tol:
            reason = StopReason.CONVERGED
        return reason

    def stop(self, records: Sequence[Measures]) -> StopReason | None:
        """The rule's own reason to stop here, given all that was measured; None to go on."""
        return None


@dataclass(frozen=True)
class Last(StoppingRule):
    """Keep the last state, for steps that need not raise the objective."""

    def better(self, records: Sequence[Measures], kept: int) -> bool:
        return True


@dataclass(frozen=True)
class Scheduled(Last):
    """Keep the last state of a training whose steps follow a schedule of ``least`` iterations.

    Before its end an objective that stands still has not settled. After it training ends, or where ``settles`` says
    so goes on until the objective has settled. Steps among finitely many states may go round for ever instead, so
    that ten of them in which it is not higher by ``tol`` than it was before are enough.
    """

    least: int
    settles: bool = True
    tol: float = 0.0
    patience: int = 10

    def stop(self, records: Sequence[Measures]) -> StopReason | None:
        if not self.settles:
            return StopReason.SCHEDULE if len(records) > self.least else None
        since = [record["objective"] for record in records[self.least :]]
        if len(since) <= self.patience:
            return None
        late, early = max(since[-self.patience :]), max(since[: -self.patience])
        return StopReason.STALLED if late < early + self.tol else None


@dataclass(frozen=True)
class Arrived(Last):
    """Keep the last state, and end when nothing is ``moving`` any more."""

    def stop(self, records: Sequence[Measures]) -> StopReason | None:
        return StopReason.ARRIVED if records[-1]["moving"] == 0 else None


@dataclass(frozen=True)
class Done(Last):
    """Keep the last state, and end when the step reports ``done``, however little the objective changes before."""

    least: float = inf
    reason: StopReason = StopReason.CONVERGED

    def stop(self, records: Sequence[Measures]) -> StopReason | None:
        return self.reason if records[-1]["done"] else None


@dataclass(frozen=True)
class Discrepancy(StoppingRule):
    """Go on until the typical error is down to ``level``, and keep the first state where it is.

    Morozov's principle: what is left once the error equals the noise is noise, and only a surface that follows it
    can do better. One step is taken in any case.
    """

    level: float

    def better(self, records: Sequence[Measures], kept: int) -> bool:
        reached = kept > 0 and records[kept]["typical"] <= self.level
        return not reached and records[-1]["objective"] >= records[kept]["objective"]

    def stop(self, records: Sequence[Measures]) -> StopReason | None:
        return StopReason.NOISE if len(records) > 1 and records[-1]["typical"] <= self.level else None


@dataclass(frozen=True)
class Validation(StoppingRule):
    """Keep the lowest error of rows held out, and end when it has not fallen for ``patience`` iterations.

    A fall counts from ``least_fall`` on, as a share of the error.
    """

    patience: int = 10
    least_fall: float = 0.0

    def better(self, records: Sequence[Measures], kept: int) -> bool:
        return records[-1]["validation"] < records[kept]["validation"]

    def stop(self, records: Sequence[Measures]) -> StopReason | None:
        errors = [record["validation"] for record in records]
        early, late = errors[: -self.patience], errors[-self.patience :]
        settled = early and min(late) >= (1.0 - self.least_fall) * min(early)
        return StopReason.VALIDATION if settled else None


@dataclass(frozen=True)
class Plateau(StoppingRule):
    """Go on for ``n_iter`` iterations, after which a trial has found rows held out to gain hardly more."""

    n_iter: int

    def stop(self, records: Sequence[Measures]) -> StopReason | None:
        return StopReason.PLATEAU if len(records) > self.n_iter else None
