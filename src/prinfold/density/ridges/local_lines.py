"""Leave-one-out prediction errors of local linear regression on time (Cleveland 1979; Fan 1992).

At time t, with lags d_j = (t_j − t) / h, weights k_j = exp(−d_j²/2) and sums S_m = Σ k_j d_j^m, T_m = Σ k_j d_j^m x_j,

    x̂(t) = (S₂ T₀ − S₁ T₁) / (S₀ S₂ − S₁²).

A value left out of its own prediction is off by (x̂_i − x_i) / (1 − S_ii) with S_ii = S₂ / (S₀ S₂ − S₁²), the share
that it has in x̂_i. Where kernels reach over many samples, those are first gathered in bins of a tenth of a bandwidth.
"""

from __future__ import annotations

import numpy as np

from prinfold._typing import BoolArray, FloatArray, IntArray

_REACH_BANDWIDTHS = 7.0
"""Bandwidths beyond which a sample counts for nothing: exp(−24) of one nearby."""

_PAIRS_AT_ONCE = 2**18
"""Pairs of samples within reach up to which they are summed one by one, and pairs held at once."""

_BINS_PER_BANDWIDTH = 10
"""Bins to a bandwidth: variances of lags are then off by a quarter of a hundredth of h² at the most."""

_NO_SLOPE_SHARE = 1e-6
"""Share of the weighted mean square of the lags below which their weighted variance allows no slope."""

_ALONE_SHARE = 1e-3
"""Value of 1 − S_ii below which a sample counts as isolated: its prediction is lost to rounding and binning."""


def prediction_errors(time: FloatArray, value: FloatArray, bandwidth: float) -> FloatArray:
    """(n,) predicted minus true values of samples in order of time, each left out of its own prediction; n ≥ 2."""
    everyone = np.arange(len(time))
    start, stop = _within_reach(time, everyone, bandwidth)
    if int((stop - start).max()) * len(time) <= _PAIRS_AT_ONCE:
        return errors_one_by_one(time, value, bandwidth, everyone)
    return errors_by_bins(time, value, bandwidth)


def errors_one_by_one(time: FloatArray, value: FloatArray, bandwidth: float, sampled: IntArray) -> FloatArray:
    """(m,) prediction errors of the ``sampled`` values, from sums over all others within reach.

    One that is alone there is predicted by the next on either side, however far they are.
    """
    start, stop = _within_reach(time, sampled, bandwidth)
    window = np.arange(int((stop - start).max(initial=0)))
    errors = np.empty(len(sampled))
    size = max(1, _PAIRS_AT_ONCE // max(1, len(window)))
    for part in (slice(i, i + size) for i in range(0, len(sampled), size)):
        near = start[part, None] + window
        nothing = (near >= stop[part, None]) | (near == sampled[part, None])
        errors[part] = _errors(time, value, bandwidth, np.minimum(near, len(time) - 1), nothing, sampled[part])
    return errors


def _within_reach(time: FloatArray, sampled: IntArray, bandwidth: float) -> tuple[IntArray, IntArray]:
    start = np.searchsorted(time, time[sampled] - _REACH_BANDWIDTHS * bandwidth)
    stop = np.searchsorted(time, time[sampled] + _REACH_BANDWIDTHS * bandwidth, side="right")
    return np.minimum(start, np.maximum(sampled - 1, 0)), np.maximum(stop, np.minimum(sampled + 2, len(time)))


def _errors(
    time: FloatArray, value: FloatArray, bandwidth: float, near: IntArray, nothing: BoolArray, sampled: IntArray
) -> FloatArray:
    """(m,) prediction errors of ``sampled`` values from those ``near`` (m, k), but for those marked ``nothing``."""
    lag, known = (time[near] - time[sampled, None]) / bandwidth, value[near]
    square = np.where(nothing, np.inf, lag**2)
    # Relative to the nearest: after a long pause the weights are those of the few that are left.
    weight = np.exp(-0.5 * (square - square.min(axis=1, keepdims=True)))
    s0, t0 = weight.sum(axis=1), (weight * known).sum(axis=1)
    weight *= lag
    s1, t1 = weight.sum(axis=1), (weight * known).sum(axis=1)
    return _line(s0, s1, (weight * lag).sum(axis=1), t0, t1)[0] - value[sampled]


def errors_by_bins(time: FloatArray, value: FloatArray, bandwidth: float) -> FloatArray:
    """(n,) prediction errors of all samples, at a cost that does not depend on how many are within reach of each other.

    A sample between two bins is shared by them, in inverse proportion to its distances.
    """
    place = (time - time[0]) * (_BINS_PER_BANDWIDTH / bandwidth)
    reach = int(_REACH_BANDWIDTHS * _BINS_PER_BANDWIDTH)
    cell, at = np.unique(np.floor(place), return_inverse=True)
    # No kernel reaches over a pause of two reaches, so that a longer one need not be longer.
    below = np.concatenate([[0], np.cumsum(np.minimum(np.diff(cell), 2 * reach + 2))]).astype(np.intp)[at]
    share = place - cell[at]
    n_bins = int(below[-1]) + 2
    lag = np.arange(-reach, reach + 1) / _BINS_PER_BANDWIDTH

    def bin_sums(amount: FloatArray, power: int) -> FloatArray:
        total = np.bincount(below, (1.0 - share) * amount, n_bins) + np.bincount(below + 1, share * amount, n_bins)
        # Convolution turns kernels round, and lags with them.
        kernel = np.exp(-0.5 * lag**2) * (-lag) ** power
        return np.asarray(np.convolve(total, kernel)[reach : reach + n_bins])

    one = np.ones_like(value)
    sums = (bin_sums(one, 0), bin_sums(one, 1), bin_sums(one, 2), bin_sums(value, 0), bin_sums(value, 1))
    line, own = (np.interp(below + share, np.arange(n_bins), each) for each in _line(*sums))
    alone = 1.0 - own < _ALONE_SHARE
    errors = np.asarray((line - value) / np.where(alone, 1.0, 1.0 - own))
    errors[alone] = errors_one_by_one(time, value, bandwidth, np.flatnonzero(alone))
    return errors


def _line(
    s0: FloatArray, s1: FloatArray, s2: FloatArray, t0: FloatArray, t1: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """x̂ and S_ii; a weighted mean where lags allow no slope, and nothing where there are no samples."""
    variance = s0 * s2 - s1**2
    sloped = variance > _NO_SLOPE_SHARE * s0 * s2
    whole, divisor = np.where(s0 > 0, s0, 1.0), np.where(sloped, variance, 1.0)
    line = np.where(sloped, (s2 * t0 - s1 * t1) / divisor, t0 / whole)
    return np.asarray(line), np.where(sloped, s2 / divisor, 1.0 / whole)
