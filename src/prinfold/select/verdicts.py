"""Verdict of a comparison: losses of all rows by candidate, the best of them, and how sure that is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.select.trials import MethodComparison, MethodTrial

_RESAMPLES = 500
_BLIND_WIDTH = 2.0
"""How many times wider than the noise kernels may be that still see it."""

_ROUNDING = 1e-12
"""Differences that rounding makes, in units of the variance of the rows, or in nats."""


class MethodLosses(NamedTuple):
    """Losses of C candidates on n rows held out; NaN where one of them failed or has no such number.

    ``errors``, ``level``, ``slope`` and ``log_likelihood`` are (C, n), ``spread`` is (C, n, H); see
    :class:`~prinfold.select.trials.MethodTrial`. ``sigma`` is the noise of the rows as their neighbourhoods show it,
    ``across`` the number of directions across the surface, ``widths`` (H,) are those of ``spread``, and ``variance`` is
    that of the rows, all columns together.
    """

    errors: FloatArray
    level: FloatArray
    slope: FloatArray
    spread: FloatArray
    log_likelihood: FloatArray
    sigma: float
    across: int
    widths: FloatArray
    variance: float


def collect_measures(
    trials: Sequence[Sequence[MethodTrial]], job: MethodComparison, sigma: float, across: int
) -> MethodLosses:
    """Trials, one for each candidate and fold, put together in the order of the rows."""
    fold = job.fold
    shapes = [part.shape[1:] for part in next((one[0][:5] for one in trials if not _any_failed(one)), trials[0][0][:5])]
    columns = [np.full((len(trials), len(fold), *shape), np.nan) for shape in shapes]
    for c, one in enumerate(trials):
        if not _any_failed(one):
            for f, trial in enumerate(one):
                for column, part in zip(columns, trial[:5], strict=True):
                    column[c, fold == f] = part
    errors, level, slope, spread, log_likelihood = columns
    return MethodLosses(
        errors, level, slope, spread, log_likelihood, sigma, across, job.widths, float(np.nanvar(job.X, axis=0).sum())
    )


def _any_failed(trials: Sequence[MethodTrial]) -> bool:
    return any(trial.failure for trial in trials)


class MethodCriterion(NamedTuple):
    """A way to judge: ``losses`` takes what was measured to losses (C, n), lowest at best.

    ``words`` name the loss; ``record`` says how its choices fared on simulators that it was not designed on;
    ``choose`` takes (roughness, mean losses) to the best where it does not go by the lowest loss. Losses are squared
    lengths, or ``nats``.
    """

    words: str
    losses: Callable[[MethodLosses], FloatArray]
    record: str
    choose: Callable[[FloatArray, FloatArray], int] | None = None
    nats: bool = False

    def least_gap(self, variance: float) -> float:
        """Losses of rows with such a variance that differ by less are the same."""
        return _ROUNDING if self.nats else _ROUNDING * variance


def noise_left_by_best(found: MethodLosses) -> float:
    """Variance σ² of the noise in each direction across the surface, equal to what the best surface leaves.

    Neighbourhoods that bend look noisier than they are. Beginning with what they show, the best surface by thinned
    errors says what the noise is, and so on until it says what was said before; it never rises.
    """
    error, level, slope = (part.mean(axis=1) for part in (found.errors, found.level, found.slope))
    variance = found.sigma**2
    while found.across and np.isfinite(level).any():
        lower = min(variance, float(error[np.nanargmin(level + variance * slope)]) / found.across)
        if lower == variance:
            break
        variance = lower
    return variance


def _thinned_losses(found: MethodLosses) -> FloatArray:
    return np.asarray(found.level + noise_left_by_best(found) * found.slope)


def _spread_choice(found: MethodLosses) -> IntArray:
    """(C,) which width is best for all rows together."""
    return np.asarray(np.nan_to_num(found.spread.mean(axis=1), nan=-np.inf).argmax(axis=1))


def _best_spread(found: MethodLosses) -> FloatArray:
    """Minus the log-likelihood, for each candidate with the width that is best for all rows together."""
    return np.asarray(-np.take_along_axis(found.spread, _spread_choice(found)[:, None, None], axis=2)[:, :, 0])


def why_likelihood_is_blind(found: MethodLosses) -> str:
    """Reason for which the likelihood about the surface cannot tell surfaces apart, or nothing where it can.

    Kernels have to be as wide as feet are apart, and as rows are off the surface. Where the likeliest surface needs
    them much wider than the noise is, what is seen is how its feet lie, or its misfit, and not what waves cost.
    """
    if not found.across:
        return "surfaces of as many dimensions as there are columns leave nothing across them; compare fewer dimensions"
    best = int(np.nanargmin(_best_spread(found).mean(axis=1)))
    width = float(found.widths[_spread_choice(found)[best]])
    if width <= _BLIND_WIDTH * found.sigma:
        return ""
    return (
        f"it wants kernels of {width:.2g} where neighbouring rows show a noise of {found.sigma:.2g} in each direction, "
        "so that rows are too far apart, or all surfaces too stiff, for the noise to be seen"
    )


def elbow(roughness: FloatArray, loss: FloatArray) -> int:
    """The candidate on the Pareto front that lies deepest below the line between its ends, both axes logarithmic."""
    front = np.flatnonzero(pareto(roughness, loss))
    if not len(front):
        return int(np.nanargmin(loss))
    front = front[np.argsort(roughness[front], kind="stable")]
    x = np.log(np.maximum(roughness[front], 1e-2))
    y = np.log(np.maximum(loss[front], np.finfo(float).tiny))
    if len(front) < 3 or x[-1] == x[0] or y[-1] == y[0]:
        return int(front[-1])
    depth = 1.0 - (x - x[0]) / (x[-1] - x[0]) - (y - y[-1]) / (y[0] - y[-1])
    return int(front[depth.argmax()])


def _record(regret: str, worst: str, near: int) -> str:
    far = f"{regret} times as far from the truth as the best contestant on average, and {worst} times at worst"
    return f"{far}; in {near} of the 16 tables it was within a quarter of the best"


CRITERIA: dict[str, MethodCriterion] = {
    "likelihood": MethodCriterion(
        "minus log-likelihood about the surface", _best_spread, _record("1.08", "1.4", 15), nats=True
    ),
    "thinned": MethodCriterion("thinned error", _thinned_losses, _record("1.20", "2.5", 13)),
    "error": MethodCriterion("held-out error", lambda found: found.errors, _record("1.27", "1.9", 8)),
    "elbow": MethodCriterion("held-out error", lambda found: found.errors, _record("2.5", "30", 8), elbow),
    "density": MethodCriterion(
        "minus the model's own log-likelihood",
        lambda found: -found.log_likelihood,
        _record("1.28", "2.9", 12),
        nats=True,
    ),
}
"""Name → how candidates are judged."""


def pareto(roughness: FloatArray, loss: FloatArray) -> BoolArray:
    """(C,) which candidates no other is at once smoother and better than; those without numbers are not."""
    known = np.isfinite(roughness) & np.isfinite(loss)
    no_worse = (roughness[None] <= roughness[:, None]) & (loss[None] <= loss[:, None]) & known[None]
    better = no_worse & ((roughness[None] < roughness[:, None]) | (loss[None] < loss[:, None]))
    return np.asarray(known & ~better.any(axis=1))


class Verdict(NamedTuple):
    """Mean losses (C,) with standard errors, who was chosen, who is as good, and how often each would be chosen.

    ``tied`` are those that one standard error of the paired difference does not set apart from the lowest loss, or from
    the chosen one where the criterion does not go by the lowest; ``smoothest`` is the least rough of them.
    """

    loss: FloatArray
    standard_error: FloatArray
    chosen: int
    tied: BoolArray
    wins: FloatArray
    smoothest: int


def judge(
    criterion: MethodCriterion,
    losses: FloatArray,
    roughness: FloatArray,
    rng: np.random.Generator,
    least_gap: float = _ROUNDING,
) -> Verdict:
    """A verdict from losses (C, n), rows of NaN where a candidate has none; at least one must have some.

    The lowest loss is chosen, unless the criterion has a way of its own. Rows are drawn again and again with repeats,
    and the share of draws in which a candidate would be chosen says how much hangs on the rows at hand.
    Surfaces are not fitted again for it, so that it is sure of more than it knows. Losses that differ by less than
    ``least_gap`` are the same.
    """
    n = losses.shape[1]
    mean, error = losses.mean(axis=1), losses.std(axis=1, ddof=1) / np.sqrt(n)
    gaps = np.maximum(_paired_errors(losses), least_gap)

    def pick(loss: FloatArray) -> int:
        return int(np.nanargmin(loss)) if criterion.choose is None else criterion.choose(roughness, loss)

    chosen = pick(mean)
    tied = np.abs(mean - mean[chosen]) <= gaps[chosen]
    counts = np.asarray(rng.multinomial(n, np.full(n, 1.0 / n), size=_RESAMPLES), dtype=float)
    first: IntArray = np.array([pick(draw) for draw in counts @ losses.T / n])
    wins = np.bincount(first, minlength=len(mean)) / _RESAMPLES
    return Verdict(mean, error, chosen, tied, wins, smoothest(roughness, mean, tied, chosen))


def _paired_errors(losses: FloatArray) -> FloatArray:
    """(C, C) standard errors of the differences between mean losses, row by row."""
    n = losses.shape[1]
    return np.asarray(np.stack([(losses - each).std(axis=1, ddof=1) for each in losses]) / np.sqrt(n))


def smoothest(roughness: FloatArray, loss: FloatArray, tied: BoolArray, chosen: int) -> int:
    """The least rough of those that are tied, of equals the better; the chosen one where its roughness is unknown."""
    if not np.isfinite(roughness[chosen]):
        return chosen
    known = np.flatnonzero(tied & np.isfinite(roughness))
    return int(known[np.lexsort((loss[known], roughness[known]))[0]])
