"""A signal as the principal curve of its samples (McQueen, section 5.3.1), and the bandwidth of that curve.

The curve is the ridge of a density of Gaussian kernels on the points (t_i, x_i). Every point is carried to it by
subspace-constrained mean shift, which moves it in time as well as in value; the estimate at t_i is the height of the
ridge there, linear between the points as they have arrived. One bandwidth h serves both axes. Where it is large against
all values, kernels no longer tell them apart and the ridge is local linear regression on time,

    x̂(t) = x̄ + (C_tx / C_tt) (t − t̄),    with means and covariances weighted by exp(−(t − t_i)² / 2h²).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.algorithms.bandwidths import likelihood
from prinfold.algorithms.densities import KernelDensity
from prinfold.algorithms.density_ridge import Flow, Flowed, Status
from prinfold.kernels.wavelets import MAD

_PAIRS_ASKED, _PAIRS_HELD = 2**23, 2**18
_LEAST_ASKED = 200
"""Pairs of samples that one look at a bandwidth takes, at the most; those held at once; and the samples asked at least.

Of n samples all are asked while n² is within the first, and otherwise as many, evenly spread, as make so many pairs."""

_REACH = 7.0
"""Bandwidths beyond which a sample counts for nothing: exp(−24) of one nearby."""

_GRID = 25
"""Bandwidths tried before the best is refined: the error may have several minima."""

_WIDEST = 1.0 / 3.0
"""Of the time between first and last sample: a kernel wider than that sees little but a straight line."""

_NO_SLOPE = 1e-6
"""Share of the weighted mean square of the lags below which their weighted variance allows no slope."""


class Points(NamedTuple):
    """Samples in the plane of the curve: ``time`` (n,), rising, and ``value`` (n,), in units that compare."""

    time: FloatArray
    value: FloatArray

    @property
    def rows(self) -> FloatArray:
        """(n, 2) both."""
        return np.column_stack(self)

    @property
    def different(self) -> tuple[FloatArray, FloatArray]:
        """(m, 2) rows that are all different, and (m,) how often each comes."""
        rows, count = np.unique(self.rows, axis=0, return_counts=True)
        return rows, count.astype(float)


def carry(points: Points, bandwidth: float) -> Flowed:
    """Where the ridge of the points' own density takes each of them."""
    return Flow(KernelDensity(*points.different, bandwidth), 1)(points.rows)


def height(flowed: Flowed, time: FloatArray) -> FloatArray:
    """(n,) of the ridge at given times: linear between the points on it, level beyond the first and the last.

    Points that ended elsewhere are left out. Where the ridge turns back in time, neighbours in time may lie on
    different strands, and the line between them crosses from one to the other.
    """
    arrived = flowed.status == Status.CONVERGED
    t, y = flowed.points[arrived if arrived.any() else slice(None)].T
    order = np.lexsort((y, t))
    return np.asarray(np.interp(time, t[order], y[order]))


def noise_of_differences(time: FloatArray, value: FloatArray) -> float:
    """σ = median|e| / 0.6745 with e the distance of each value from the line between its neighbours, scaled to σ.

    e_i = (a x_{i−1} + b x_{i+1} − x_i) / √(a² + b² + 1) with a = (t_{i+1} − t_i) / (t_{i+1} − t_{i−1}) and b = 1 − a.
    NaN for fewer than three samples.
    """
    if len(value) < 3:
        return float("nan")
    span = time[2:] - time[:-2]
    a = np.where(span > 0, (time[2:] - time[1:-1]) / np.where(span > 0, span, 1.0), 0.5)
    e = a * value[:-2] + (1.0 - a) * value[2:] - value[1:-1]
    return float(np.median(np.abs(e) / np.sqrt(a**2 + (1.0 - a) ** 2 + 1.0)) / MAD)


# --------------------------------------------------------------------------------------------------- bandwidths


def by_likelihood(points: Points) -> float:
    """The bandwidth with which the points, each left out in turn, are likeliest: that of section 5.3.1."""
    return likelihood(*points.different, 1, np.random.default_rng(0))


def by_prediction(points: Points, least: float | None = None) -> float:
    """The bandwidth, no smaller than the likeliest or what is given, with which each value is predicted best by others.

    The prediction is local linear regression on time, which the ridge is for large bandwidths. Below the likeliest
    bandwidth there is no curve to speak of: points are too far apart to see each other.
    """
    n, low = len(points.time), by_likelihood(points) if least is None else least
    high = max(low, _WIDEST * float(np.ptp(points.time)))
    asked = np.unique(np.linspace(0, n - 1, min(n, max(_LEAST_ASKED, _PAIRS_ASKED // n))).round().astype(np.intp))

    def loss(log_bandwidth: float) -> float:
        return float(np.mean(prediction_errors(points, float(np.exp(log_bandwidth)), asked) ** 2))

    grid = np.linspace(np.log(low), np.log(high), _GRID)
    losses = [loss(place) for place in grid]
    best = int(np.argmin(losses))
    around = grid[max(best - 1, 0)], grid[min(best + 1, _GRID - 1)]
    if not around[0] < around[1]:
        return low
    fine = minimize_scalar(loss, bounds=around, method="bounded", options={"xatol": 1e-3})
    return float(np.exp(fine.x if fine.fun < losses[best] else grid[best]))


def prediction_errors(points: Points, bandwidth: float, asked: IntArray) -> FloatArray:
    """(m,) what local linear regression is off by at the samples ``asked``, each left out of its own prediction."""
    time = points.time
    start = np.searchsorted(time, time[asked] - _REACH * bandwidth)
    stop = np.searchsorted(time, time[asked] + _REACH * bandwidth, side="right")
    # A sample alone within reach is predicted by the next on either side, however far they are.
    start, stop = np.minimum(start, np.maximum(asked - 1, 0)), np.maximum(stop, np.minimum(asked + 2, len(time)))
    window = np.arange(int((stop - start).max()))
    errors = np.empty(len(asked))
    size = max(1, _PAIRS_HELD // len(window))
    for part in (slice(i, i + size) for i in range(0, len(asked), size)):
        near = start[part, None] + window
        nothing = (near >= stop[part, None]) | (near == asked[part, None])
        errors[part] = _errors(points, np.minimum(near, len(time) - 1), nothing, asked[part], bandwidth)
    return errors


def _errors(points: Points, near: IntArray, nothing: BoolArray, asked: IntArray, bandwidth: float) -> FloatArray:
    """Of samples ``asked`` (m,) from those ``near`` (m, k), but for some that count for ``nothing``."""
    time, value = points
    lag, known = (time[near] - time[asked, None]) / bandwidth, value[near]
    square = np.where(nothing, np.inf, lag**2)
    # Relative to the nearest: after a long pause the weights are those of the few that are left.
    weight = np.exp(-0.5 * (square - square.min(axis=1, keepdims=True)))
    s0, t0 = weight.sum(axis=1), (weight * known).sum(axis=1)
    weight *= lag
    s1, t1 = weight.sum(axis=1), (weight * known).sum(axis=1)
    s2 = (weight * lag).sum(axis=1)
    variance = s0 * s2 - s1**2
    sloped = variance > _NO_SLOPE * s0 * s2
    line = (s2 * t0 - s1 * t1) / np.where(sloped, variance, 1.0)
    return np.asarray(np.where(sloped, line, t0 / s0) - value[asked])


#: How the bandwidth may be found.
BANDWIDTHS: dict[str, Callable[[Points], float]] = {"prediction": by_prediction, "likelihood": by_likelihood}
