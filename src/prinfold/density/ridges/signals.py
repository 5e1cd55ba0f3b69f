"""A signal freed of white noise, as the principal curve of its samples (McQueen, section 5.3)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import FloatArray
from prinfold.density.ridges.signal_curve import BANDWIDTHS, SignalPoints, carry, height, noise_of_differences
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.validation.failures import may_have_gaps, name_call_failures
from prinfold.validation.settings import Constraint, one_of, real
from prinfold.validation.tables import as_entries, as_numbers


@dataclass(frozen=True, eq=False, repr=False)
class DenoisedSignal:
    """The result of :func:`denoise_signal`.

    Attributes
    ----------
    signal : (n,) array
        The signal without noise, in the order of the samples.
    noise : float
        Standard deviation of the noise, in the units of the signal: the median distance of a sample from the line
        between its neighbours, scaled to that of normal noise. NaN for fewer than three samples.
    bandwidth : float or None
        Bandwidth of the kernels, as :func:`denoise_signal` takes it: in standard deviations of the signal, or divided
        by ``time_step`` in samples. None for a signal that never changes.
    points : (n, 2) array or None
        Where each sample (t, x) was carried; None for a signal that never changes.
    """

    signal: FloatArray
    noise: float
    bandwidth: float | None = None
    points: FloatArray | None = None

    def __repr__(self) -> str:
        bandwidth = "" if self.bandwidth is None else f", bandwidth={self.bandwidth:.4g}"
        return f"DenoisedSignal({len(self.signal)} values, noise={self.noise:.4g}{bandwidth})"


class SignalUnits(NamedTuple):
    """Units of a signal: its mean and standard deviation, its first time and the median step between samples."""

    mean: float
    deviation: float
    first: float
    step: float

    @classmethod
    def of(cls, time: FloatArray, value: FloatArray) -> SignalUnits:
        """Units of values that are not all the same, at two or more different times in rising order."""
        steps = np.diff(time)
        # Halves first: the range of the largest numbers is no number.
        middle, half = 0.5 * value.min() + 0.5 * value.max(), 0.5 * value.max() - 0.5 * value.min()
        inside = (value - middle) / half
        mean, deviation = middle + half * inside.mean(), half * inside.std()
        return cls(float(mean), float(deviation), float(time[0]), float(np.median(steps[steps > 0])))

    def of_value(self, value: FloatArray) -> FloatArray:
        """Values in standard deviations from their mean."""
        return np.asarray((value - self.mean) / self.deviation)

    def value(self, deviations: FloatArray) -> FloatArray:
        """Values from standard deviations."""
        return np.asarray(self.mean + self.deviation * deviations)

    def of_time(self, time: FloatArray) -> FloatArray:
        """Times in steps from the first."""
        return np.asarray((time - self.first) / self.step)

    def time(self, steps: FloatArray) -> FloatArray:
        """Times from steps."""
        return np.asarray(self.first + self.step * steps)


@name_call_failures
@may_have_gaps
def denoise_signal(
    x: Any,
    *,
    time: Any = None,
    bandwidth: str | float = "prediction",
    time_step: float = 1.0,
) -> DenoisedSignal:
    """Free a signal of white noise: the principal curve of its samples (t, x).

    Neither the units of ``x`` nor those of ``time`` matter: values count in standard deviations of the signal, and
    times in steps between samples.

    Parameters
    ----------
    x : (n,) array-like
        The signal, without NaN. Where values are missing, leave them out and hand the times of the others.
    time : (n,) array-like, optional
        When the samples were taken: numbers or dates, in any order. None counts samples.
    bandwidth : {"prediction", "likelihood"} or float, default="prediction"
        In standard deviations of the signal. ``"likelihood"`` is the paper's: points, each left out in turn, are
        likeliest; it stays near one sample however many there are. ``"prediction"`` is the one, no smaller than that,
        with which local linear regression predicts each value best from the others.
    time_step : float, default=1.0
        Standard deviations of the signal that a step from sample to sample counts for.

    Returns
    -------
    DenoisedSignal
        The signal, the size of the noise, and the bandwidth used.
    """
    value = _check_values(x)
    _check_options({"bandwidth": bandwidth, "time_step": time_step})
    moment = np.arange(float(len(value))) if time is None else _check_time(time, len(value))
    if (value == value[0]).all():
        return DenoisedSignal(value, 0.0)
    # Samples at the same time are sorted by value, so that the order in which samples come changes nothing.
    order = np.lexsort((value, moment))
    found, back = _principal_curve(moment[order], value[order], bandwidth, time_step), np.argsort(order)
    return replace(found, signal=found.signal[back], points=None if found.points is None else found.points[back])


def _principal_curve(time: FloatArray, value: FloatArray, bandwidth: str | float, time_step: float) -> DenoisedSignal:
    """The height of the ridge at the times of the samples, in the units of the signal (section 5.3.1)."""
    units = SignalUnits.of(time, value)
    points = SignalPoints(time_step * units.of_time(time), units.of_value(value))
    width = BANDWIDTHS[bandwidth](points) if isinstance(bandwidth, str) else float(bandwidth)
    flowed = carry(points, width)
    arrived = np.column_stack([units.time(flowed.points[:, 0] / time_step), units.value(flowed.points[:, 1])])
    noise = units.deviation * noise_of_differences(*points)
    return DenoisedSignal(units.value(height(flowed, points.time)), noise, width, arrived)


# ----------------------------------------------------------------------------------------------- checks of the input


_OPTIONS: dict[str, Constraint] = {
    "bandwidth": one_of(BANDWIDTHS) | real(0, above=True),
    "time_step": real(0, above=True),
}


def _check_options(options: dict[str, Any]) -> None:
    for name, value in options.items():
        if not _OPTIONS[name].test(value):
            raise InvalidParameterError(f"denoise_signal: {_OPTIONS[name].refusal(name, value)}")


def _check_values(x: Any) -> FloatArray:
    value = as_numbers("x", x).copy()
    if value.ndim != 1 or len(value) == 0:
        raise InvalidDataError(
            f"x should be one signal of shape (n,) with at least one value; got shape {value.shape}. "
            "Several signals are denoised one by one."
        )
    wrong = np.flatnonzero(~np.isfinite(value))
    if len(wrong):
        raise InvalidDataError(
            f"x holds NaN or infinity at {len(wrong)} of {len(value)} places, the first at {wrong[0]}. "
            "Leave them out, and hand the times of the others as time=."
        )
    return value


def _check_time(time: Any, n: int) -> FloatArray:
    moment = as_entries("time", time)
    if moment.ndim != 1 or len(moment) != n:
        raise InvalidDataError(f"time should be of shape ({n},), a moment for each value; got shape {moment.shape}.")
    if moment.dtype.kind == "M":
        moment = np.where(np.isnat(moment), np.nan, (moment - moment.min()).astype(float))
    try:
        moment = as_numbers("time", moment)
    except InvalidDataError as error:
        raise InvalidDataError(f"time should be numbers or dates (datetime64): {error}.") from error
    if not np.isfinite(moment).all() or 0.5 * moment.max() - 0.5 * moment.min() > 0.5 * np.finfo(float).max:
        raise InvalidDataError("time holds NaN or infinity, or spans more than a number can hold.")
    if n > 1 and (moment == moment[0]).all():
        raise InvalidDataError(f"time has one value only, {moment[0]:g}, for {n} samples; a signal goes on in time.")
    return moment
