"""Smoothers of rows along a curve: each coordinate as a function of the place on it.

A place u runs from 0 to 1, and round again where the curve is closed. Every smoother is linear in the rows, with a hat
matrix of trace ``df``, so that free settings are chosen by generalised cross-validation (Craven and Wahba 1979),

    V = (Σ w ‖x − f(u)‖² / Σ w) / (1 − γ df / n)²,

the same for all coordinates, so that the choice does not depend on rotations of the data. Alone it would let curves
wiggle, for two reasons, and two rules of ours prevent that.

Places are found by projection on the very curve that is judged: of the q + 1 numbers of a row, q of which are noise
across the curve, one is spent on its place, so that degrees of freedom count γ = (q + 1) / q times, or 3/2 where that
is more. And a curve that bends often enough to fill the band of noise about it is near to any row, new ones included:
with many rows no cross-validation is against it. Therefore no curve may bend on a scale finer than the noise is wide;
``CurveSample.finest`` is that scale, and each smoother has the degrees of freedom that a spline has there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import InvalidParameterError
from prinfold.files import storable
from prinfold.numerics.penalized_splines import FEWEST_RING_CELLS, SplineSpace
from prinfold.validation.object_verbs import check_verbs
from prinfold.validation.settings import real

_MOST_CELLS = 150
"""Most cells of a curve: enough for forty bends."""

_ROWS_PER_CELL = 4
_POINTS_PER_CELL = 2
_MOST_BINS = 512
"""Most places that local smoothers tell apart; fewer rows are not binned."""


def n_effective(weight: FloatArray) -> float:
    """Number of rows that weights (n,) stand for: their sum, or (Σ w)² / Σ w² where that is more."""
    total = float(weight.sum())
    return max(total, total**2 / float(np.square(weight).sum()))


class CurveSample(NamedTuple):
    """Rows (n, D) at places (n,) in [0, 1] with weights (n,), on a curve that is ``closed`` or not.

    ``finest`` is the scale below which a curve chosen by cross-validation must not bend, as a share of its length, and
    ``df_factor`` the γ of V.
    """

    place: FloatArray
    rows: FloatArray
    weight: FloatArray
    closed: bool
    finest: float = 0.0
    df_factor: float = 2.0

    @property
    def n_effective(self) -> float:
        """Number of rows that the weights stand for."""
        return n_effective(self.weight)


class SmoothedCurve(NamedTuple):
    """A smoothed curve: ``vertices`` (m, D) at even places, ``df`` and V; ``setting`` gives the same smoother again."""

    vertices: FloatArray
    df: float
    score: float
    setting: float


class Smoother(Protocol):
    """A smoother of rows along a curve."""

    def smooth(self, sample: CurveSample, step: int, setting: float | None = None) -> SmoothedCurve:
        """Smooth rows; ``step`` counts the iterations, ``setting`` repeats an earlier one of the same places."""


def even_places(n_cells: int, closed: bool) -> FloatArray:
    """(m,) even places, one at each end of every cell; a ring does not repeat its beginning."""
    return np.arange(n_cells if closed else n_cells + 1) / n_cells


def count_cells(sample: CurveSample) -> int:
    """Number of cells that the rows can fill."""
    return int(np.clip(len(sample.rows) // _ROWS_PER_CELL, FEWEST_RING_CELLS, _MOST_CELLS))


def validation_score(sample: CurveSample, mean_square: FloatArray | float, df: FloatArray | float) -> FloatArray:
    """V, infinite where no degrees of freedom are left."""
    left = 1.0 - sample.df_factor * np.asarray(df, dtype=float) / sample.n_effective
    return np.where(left > 0, np.asarray(mean_square) / np.square(np.where(left > 0, left, 1.0)), np.inf)


# ------------------------------------------------------------------------------------------------------- splines


@storable
@check_verbs()
@dataclass(frozen=True)
class SmoothingSpline:
    """Cubic smoothing spline, by the penalty λ on ∫ ‖f''(u)‖² du.

    Parameters
    ----------
    penalty : float, default=None
        λ, relative to the mean squared distance and with the length of the curve as unit of u; None chooses it by
        cross-validation at every step.
    df : float, default=None
        Degrees of freedom per coordinate to choose λ by, instead.
    """

    penalty: float | None = None
    df: float | None = None

    def __post_init__(self) -> None:
        if self.penalty is not None and self.df is not None:
            raise InvalidParameterError("a smoothing spline has a penalty or df=, not both; leave one of them out")
        _require(self.penalty is None or real(0, above=True).test(self.penalty), "penalty", self.penalty, "above 0")
        _require(self.df is None or real(2, above=True).test(self.df), "df", self.df, "above 2, as a line has")

    def smooth(self, sample: CurveSample, step: int, setting: float | None = None) -> SmoothedCurve:
        """Smooth rows; see :class:`Smoother`."""
        space = SplineSpace(count_cells(sample), sample.closed)
        moments = space.moments(sample.place, sample.rows, sample.weight)

        def judge(log_penalty: FloatArray) -> tuple[FloatArray, FloatArray]:
            square, df = space.traces(moments, np.exp(log_penalty))
            return validation_score(sample, square, df), df

        log_penalty = self._log_penalty(sample, space, judge, self.penalty if setting is None else setting)
        score, df = judge(np.array([log_penalty]))
        penalty = float(np.exp(log_penalty))
        u = even_places(_POINTS_PER_CELL * space.n_cells, sample.closed)
        vertices = space.values(u, space.coefficients(moments, penalty))
        return SmoothedCurve(vertices, float(df[0]), float(score[0]), penalty)

    def _log_penalty(self, sample: CurveSample, space: SplineSpace, judge: _Judge, given: float | None) -> float:
        """ln λ: given, or by the degrees of freedom, or where V is lowest."""
        if given is not None:
            return min(float(np.log(given)), _LARGEST_LOG_PENALTY - 2.0 * float(np.log(space.n_cells)))
        lowest = -4.0 * np.log(np.pi * space.n_functions)  # where every B-spline has its own way
        if self.df is not None:
            wanted = min(self.df, 0.9 * min(space.n_functions, sample.n_effective))
            return _minimize(lambda p: np.square(judge(p)[1] - wanted), lowest, _STRAIGHT_LOG_PENALTY)
        if sample.finest > 0:
            lowest = min(max(lowest, 4.0 * np.log(sample.finest)), _STRAIGHT_LOG_PENALTY - 1.0)
        return _minimize(lambda p: judge(p)[0], lowest, _STRAIGHT_LOG_PENALTY)


_Judge = Callable[[FloatArray], tuple[FloatArray, FloatArray]]

_STRAIGHT_LOG_PENALTY = float(np.log(10.0))
"""ln λ at which a curve is straight: the first bend has an eigenvalue of 500, to which one is added."""

_LARGEST_LOG_PENALTY = float(np.log(2.5e6))
"""ln λK² on K cells at which penalties are held. Of a bend 1 / 700 λ is left, and rounding adds ε λ K⁴: there both are
the same, and beyond, the line would come out less straight until nothing of it is a number."""


def _minimize(function: Callable[[FloatArray], FloatArray], low: float, high: float) -> float:
    """ln λ at which a function is lowest, the largest of equals: on a grid, and about that on two finer ones."""
    begin, end = high, low
    for count in (17, 9, 9):
        grid = np.linspace(begin, end, count)
        values = function(grid)
        best = int(np.argmin(values))
        begin, end = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, count - 1)])
    return _parabola(grid, values, best)


def _parabola(grid: FloatArray, values: FloatArray, best: int) -> float:
    """The lowest point of the parabola through the lowest of the values and its neighbours."""
    if best in (0, len(grid) - 1) or not np.isfinite(values[best - 1 : best + 2]).all():
        return float(grid[best])
    before, here, after = values[best - 1 : best + 2]
    bend = before - 2 * here + after
    shift = 0.5 * (before - after) / bend if bend > 0 else 0.0
    return float(grid[best] + np.clip(shift, -1, 1) * (grid[1] - grid[0]))


# ----------------------------------------------------------------------------------------------- local smoothers


@storable
@check_verbs()
@dataclass(frozen=True)
class LocalLinear:
    """Locally weighted straight lines (tricube weights), as Hastie and Stuetzle smoothed, with a span that shrinks.

    Parameters
    ----------
    span : float, default=None
        Share of the rows that a line is fitted to; None chooses it by cross-validation at every step.
    widest : float, default=None
        Share to begin with, for a curve that has yet to unfold from a line; None begins with ``span``.
    shrink : float, default=0.8
        What it is multiplied by at every step, until ``span`` is reached.
    """

    span: float | None = None
    widest: float | None = None
    shrink: float = 0.8

    def __post_init__(self) -> None:
        for name in ("span", "widest", "shrink"):
            value = getattr(self, name)
            fine = (name != "shrink" and value is None) or (real(0, above=True).test(value) and value <= 1)
            _require(fine, name, value, "above 0 and at most 1")

    def smooth(self, sample: CurveSample, step: int, setting: float | None = None) -> SmoothedCurve:
        """Smooth rows; see :class:`Smoother`."""
        given = self.span if setting is None else setting
        floor = 0.0 if setting is not None or self.widest is None else self.widest * self.shrink**step
        spans = np.maximum(_SPANS, _SPAN_OF_SCALE * sample.finest) if given is None else np.array([given])
        return _choose_local(sample, np.unique(np.clip(spans, floor, 1.0)), _line_weights)


@storable
@check_verbs()
@dataclass(frozen=True)
class KernelSmoother:
    """Weighted means with a Gaussian kernel (Nadaraya and Watson), which pull the ends of an open curve inwards.

    Parameters
    ----------
    bandwidth : float, default=None
        Standard deviation of the kernel, as a share of the length of the curve; None chooses it by cross-validation at
        every step.
    """

    bandwidth: float | None = None

    def __post_init__(self) -> None:
        fine = self.bandwidth is None or real(0, above=True).test(self.bandwidth)
        _require(fine, "bandwidth", self.bandwidth, "above 0")

    def smooth(self, sample: CurveSample, step: int, setting: float | None = None) -> SmoothedCurve:
        """Smooth rows; see :class:`Smoother`."""
        given = self.bandwidth if setting is None else setting
        widths = np.maximum(_BANDWIDTHS, _BANDWIDTH_OF_SCALE * sample.finest) if given is None else np.array([given])
        return _choose_local(sample, np.unique(widths), _mean_weights)


_BANDWIDTH_OF_SCALE, _SPAN_OF_SCALE = 0.8, 4.9
"""Settings, in units of h, at which local smoothers have the degrees of freedom 1 / (2√2 h) of a spline with λ = h⁴.

That h is the width of the spline's equivalent kernel (Silverman 1984)."""

_LARGEST_BANDWIDTH = 1e150
"""Bandwidths between places, at which they are held: the square of that is finite."""

_SPANS = np.geomspace(0.02, 0.6, 11)
_BANDWIDTHS = np.geomspace(0.005, 0.2, 11)
"""Spans and bandwidths to choose from."""

SMOOTHERS: dict[str, type] = {"spline": SmoothingSpline, "local_linear": LocalLinear, "kernel": KernelSmoother}
"""Smoothers by name, as they come."""


class _BinnedRows(NamedTuple):
    """Rows averaged in bins along the curve: places (b,), mean rows (b, D), shares of weight (b,), spread within."""

    place: FloatArray
    rows: FloatArray
    share: FloatArray
    spread: float


class _Lags(NamedTuple):
    """Lags of bins from each of k even places: ``lag`` (k, b), its size ``away``, their order, shares of the weight."""

    lag: FloatArray
    away: FloatArray
    order: IntArray
    share: FloatArray

    @classmethod
    def of(cls, binned: _BinnedRows, nodes: FloatArray, closed: bool) -> _Lags:
        lag = binned.place[None, :] - nodes[:, None]
        if closed:
            lag -= np.round(lag)
        away = np.abs(lag)
        return cls(lag, away, np.argsort(away, axis=1), binned.share)


_Weights = Callable[[_Lags, float], FloatArray]


def _bin_rows(sample: CurveSample) -> _BinnedRows:
    share = sample.weight / sample.weight.sum()
    if len(share) <= _MOST_BINS:
        order = np.argsort(sample.place, kind="stable")
        return _BinnedRows(sample.place[order], sample.rows[order], share[order], 0.0)
    bins = np.clip((sample.place * _MOST_BINS).astype(np.int64), 0, _MOST_BINS - 1)
    total: FloatArray = np.bincount(bins, share, minlength=_MOST_BINS).astype(np.float64)
    kept = np.flatnonzero(total)
    sums = [np.bincount(bins, share * column, minlength=_MOST_BINS)[kept] for column in (sample.place, *sample.rows.T)]
    means = np.stack(sums, axis=1) / total[kept, None]
    square = float(share @ np.einsum("nd,nd->n", sample.rows, sample.rows))
    spread = square - float(total[kept] @ np.square(means[:, 1:]).sum(axis=1))
    return _BinnedRows(means[:, 0], means[:, 1:], total[kept], max(spread, 0.0))


def _choose_local(sample: CurveSample, settings: FloatArray, weights_of: _Weights) -> SmoothedCurve:
    """The smoother of lowest V among settings; ``weights_of`` gives the weights of rows at even places."""
    binned = _bin_rows(sample)
    cells = count_cells(sample)
    nodes = even_places(cells, sample.closed)
    lags = _Lags.of(binned, nodes, sample.closed)
    # Fits at rows are straight between those at even places.
    cell = np.clip((binned.place * cells).astype(np.int64), 0, cells - 1)
    t, after, column = binned.place * cells - cell, np.mod(cell + 1, len(nodes)), np.arange(len(cell))
    found = list[SmoothedCurve]()
    for setting in settings.tolist():
        L = weights_of(lags, setting)
        vertices = L @ binned.rows
        df = float(((1 - t) * L[cell, column] + t * L[after, column]).sum())
        fitted = (1 - t)[:, None] * vertices[cell] + t[:, None] * vertices[after]
        square = float(binned.share @ np.square(binned.rows - fitted).sum(axis=1)) + binned.spread
        found.append(SmoothedCurve(vertices, df, float(validation_score(sample, square, df)), setting))
    return min(found, key=lambda each: (each.score, -each.setting))


def _mean_weights(lags: _Lags, bandwidth: float) -> FloatArray:
    """(k, b) shares of rows in a mean about each of k places."""
    # a² − m² as (a − m)(a + m): for the nearest row that is zero however narrow the kernel, where a² / h² is infinite.
    nearest = lags.away.min(axis=1, keepdims=True)
    with np.errstate(over="ignore"):
        farther, both = (
            (part / bandwidth).clip(max=_LARGEST_BANDWIDTH) for part in (lags.away - nearest, lags.away + nearest)
        )
    weight = lags.share * np.exp(-0.5 * farther * both)
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _line_weights(lags: _Lags, span: float) -> FloatArray:
    """(k, b) parts of rows in the value of a line fitted about each of k places, to the nearest ``span`` of them."""
    reached = np.cumsum(lags.share[lags.order], axis=1)
    enough = np.clip((reached < span).sum(axis=1), 1, len(lags.share) - 1)
    last = np.take_along_axis(lags.order, enough[:, None], axis=1)
    width = np.maximum(np.take_along_axis(lags.away, last, axis=1) * (1 + 1e-9), 1e-12)
    ratio = lags.away / width
    weight = lags.share * np.clip(1.0 - ratio * ratio * ratio, 0.0, None) ** 3
    total = weight.sum(axis=1, keepdims=True)
    # Where all that is near lies on the very edge of the span, the nearest alone counts.
    nearest = (lags.away == lags.away.min(axis=1, keepdims=True)) * lags.share
    weight = np.where(total > 0, weight, nearest)
    weight = weight / weight.sum(axis=1, keepdims=True)
    mean = (weight * lags.lag).sum(axis=1, keepdims=True)
    around = lags.lag - mean
    variance = (weight * around**2).sum(axis=1, keepdims=True)
    straight = variance > 1e-6 * width**2
    slope = np.where(straight, -mean * around / np.where(straight, variance, 1.0), 0.0)
    return np.asarray(weight * (1.0 + slope))


def _require(fine: bool, name: str, value: object, words: str) -> None:
    if not fine:
        raise InvalidParameterError(f"{name} must be {words}, or None to be chosen, got {value!r}")


def make_smoother(given: object) -> Smoother:
    """The smoother that a setting names or is."""
    made: Smoother = SMOOTHERS[given]() if isinstance(given, str) else given  # type: ignore[assignment]
    return made
