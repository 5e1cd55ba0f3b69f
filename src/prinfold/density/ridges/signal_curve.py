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

from prinfold._typing import FloatArray
from prinfold.density.bandwidths import likelihood
from prinfold.density.densities import KernelDensity
from prinfold.density.kernel_widths import least_loss_bandwidth
from prinfold.density.ridges.local_lines import prediction_errors
from prinfold.density.ridges.mean_shift import Flow, FlowResult, Status

_MEDIAN_OF_ABSOLUTE_NORMAL = 0.6744897501960817
"""Median of |z| for a standard normal z; 0.6745 in print."""

_TRIED_BANDWIDTHS = 25
"""Bandwidths tried before the best is refined: the error may have several minima."""

_WIDEST_SHARE = 1.0 / 3.0
"""Widest bandwidth, as a share of the time from first to last sample: wider kernels see little but a straight line."""


class SignalPoints(NamedTuple):
    """Samples in the plane of the curve: ``time`` (n,), rising, and ``value`` (n,), in units that compare."""

    time: FloatArray
    value: FloatArray

    @property
    def rows(self) -> FloatArray:
        """(n, 2) the points (t, x)."""
        return np.column_stack(self)

    @property
    def unique(self) -> tuple[FloatArray, FloatArray]:
        """(m, 2) rows that are all different, and (m,) how often each comes."""
        rows, count = np.unique(self.rows, axis=0, return_counts=True)
        return rows, count.astype(float)


def carry(points: SignalPoints, bandwidth: float) -> FlowResult:
    """Carry each point to the ridge of the density of all, by subspace-constrained mean shift."""
    return Flow(KernelDensity(*points.unique, bandwidth), 1)(points.rows)


def height(flowed: FlowResult, time: FloatArray) -> FloatArray:
    """(n,) height of the ridge at given times: linear between the points on it, level beyond the first and the last.

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
    return float(np.median(np.abs(e) / np.sqrt(a**2 + (1.0 - a) ** 2 + 1.0)) / _MEDIAN_OF_ABSOLUTE_NORMAL)


# --------------------------------------------------------------------------------------------------- bandwidths


def by_likelihood(points: SignalPoints) -> float:
    """Bandwidth of maximum leave-one-out likelihood, as in McQueen, section 5.3.1."""
    return likelihood(*points.unique, 1, np.random.default_rng(0))


def by_prediction(points: SignalPoints, least: float | None = None) -> float:
    """Bandwidth of least leave-one-out prediction error, at least ``least`` or that of maximum likelihood; ours.

    The prediction is local linear regression on time, which the ridge is for large bandwidths. Below the bandwidth
    of maximum likelihood there is no curve: points are out of reach of each other.
    """
    low = by_likelihood(points) if least is None else least
    high = max(low, _WIDEST_SHARE * float(np.ptp(points.time)))

    def loss(bandwidth: float) -> float:
        return float(np.mean(prediction_errors(*points, bandwidth) ** 2))

    return least_loss_bandwidth(loss, low, high, _TRIED_BANDWIDTHS)


#: Rules for the bandwidth, by name.
BANDWIDTHS: dict[str, Callable[[SignalPoints], float]] = {"prediction": by_prediction, "likelihood": by_likelihood}
