"""A signal freed of white noise: as the principal curve of its samples, or by wavelets (McQueen, section 5.3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from prinfold._typing import FloatArray
from prinfold.density.ridges import wavelets as kernel
from prinfold.density.ridges.signal_curve import BANDWIDTHS, Points, carry, height, noise_of_differences
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.validation.settings import Constraint, integer, nothing, one_of, real

_EVEN = 1e-3
"""Share of a step by which steps may differ and still count as even."""


@dataclass(frozen=True, eq=False, repr=False)
class DenoisedSignal:
    """What :func:`denoise_signal` found.

    Attributes
    ----------
    signal : (n,) array
        The signal without noise, in the order of the samples.
    noise : float
        Standard deviation of the noise, in the units of the signal: median / 0.6745 of the finest details, or for the
        ridge of what is off the line between neighbours. NaN where samples are too few, below 8 or 3.
    method : str
        ``"ridge"`` or ``"wavelet"``.
    bandwidth : float or None
        Of the kernels, as it may be handed to :func:`denoise_signal`: in standard deviations of the signal, or divided
        by ``time_step`` in samples. None for wavelets, and for a signal that never changes.
    points : (n, 2) array or None
        Where each sample (t, x) was carried; None where no ridge was sought.
    threshold : float or None
        Size, in the units of the signal, below which details are taken for noise; None for the ridge, and for signals
        shorter than the filter, 8 samples, which are left as they are.
    levels : int or None
        Levels of details; None where there is no threshold.
    """

    signal: FloatArray
    noise: float
    method: str
    bandwidth: float | None = None
    points: FloatArray | None = None
    threshold: float | None = None
    levels: int | None = None

    def __repr__(self) -> str:
        parts = [f"{len(self.signal)} values by {self.method}", f"noise={self.noise:.4g}"]
        told = {name: getattr(self, name) for name in ("bandwidth", "threshold", "levels")}
        parts += [f"{name}={value:.4g}" for name, value in told.items() if value is not None]
        return f"DenoisedSignal({', '.join(parts)})"


class Units(NamedTuple):
    """Of a signal: its mean and standard deviation, its first moment and the median step from sample to sample."""

    mean: float
    deviation: float
    first: float
    step: float

    @classmethod
    def of(cls, time: FloatArray, value: FloatArray) -> Units:
        """Of values that are not all the same, at no fewer than two different times, in order."""
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
        """And back."""
        return np.asarray(self.mean + self.deviation * deviations)

    def of_time(self, time: FloatArray) -> FloatArray:
        """Times in steps from the first."""
        return np.asarray((time - self.first) / self.step)

    def time(self, steps: FloatArray) -> FloatArray:
        """And back."""
        return np.asarray(self.first + self.step * steps)


class Settings(NamedTuple):
    """The options of :func:`denoise_signal`."""

    bandwidth: str | float
    time_step: float
    threshold: str
    boundary: str
    levels: int | None


def denoise_signal(
    x: Any,
    *,
    method: str = "ridge",
    time: Any = None,
    bandwidth: str | float = "prediction",
    time_step: float = 1.0,
    threshold: str = "hard",
    boundary: str = "reflection",
    levels: int | None = None,
) -> DenoisedSignal:
    """Free a signal of white noise, by its principal curve or by wavelets.

    Neither the units of ``x`` nor those of ``time`` matter: both methods see values in standard deviations of the
    signal and times in steps between samples.

    Parameters
    ----------
    x : (n,) array-like
        The signal, without NaN. Where values are missing, leave them out and hand the times of the others.
    method : {"ridge", "wavelet"}, default="ridge"
        The principal curve of the points (t, x), or wavelets (LA8) whose small details are taken for noise.
    time : (n,) array-like, optional
        When the samples were taken: numbers or dates, in any order; for wavelets in even steps. None counts samples.
    bandwidth : {"prediction", "likelihood"} or float, default="prediction"
        Ridge only, in standard deviations of the signal. ``"likelihood"`` is the paper's: points, each left out in
        turn, are likeliest; it stays near one sample however many there are. ``"prediction"`` is the one, no smaller
        than that, with which local linear regression predicts each value best from the others.
    time_step : float, default=1.0
        Ridge only. Standard deviations of the signal that a step from sample to sample counts for.
    threshold : {"hard", "soft"}, default="hard"
        Wavelets only. Details above σ √(2 log n) stay as they are, or are drawn to zero by as much.
    boundary : {"reflection", "periodic"}, default="reflection"
        Wavelets only. What follows the end: the signal backwards, or its beginning, which is right only where the two
        meet. Before that, a length that is no multiple of 2^levels is extended to one by reflection.
    levels : int, optional
        Wavelets only. Levels of details; None takes as many as have wavelets no longer than the signal.

    Returns
    -------
    DenoisedSignal
        The signal, the size of the noise, and the bandwidth or threshold used.
    """
    value = _check_values(x)
    settings = Settings(bandwidth, time_step, threshold, boundary, levels)
    _check_options(method, settings, len(value))
    moment = np.arange(float(len(value))) if time is None else _check_time(time, len(value))
    if (value == value[0]).all():
        return DenoisedSignal(value, 0.0, method)
    # Equal moments are told apart by their values, so that the order in which samples come changes nothing.
    order = np.lexsort((value, moment))
    found, back = METHODS[method](moment[order], value[order], settings), np.argsort(order)
    return replace(found, signal=found.signal[back], points=None if found.points is None else found.points[back])


def _by_ridge(time: FloatArray, value: FloatArray, settings: Settings) -> DenoisedSignal:
    units = Units.of(time, value)
    points = Points(settings.time_step * units.of_time(time), units.of_value(value))
    rule = settings.bandwidth
    bandwidth = BANDWIDTHS[rule](points) if isinstance(rule, str) else float(rule)
    flowed = carry(points, bandwidth)
    arrived = np.column_stack([units.time(flowed.points[:, 0] / settings.time_step), units.value(flowed.points[:, 1])])
    noise = units.deviation * noise_of_differences(*points)
    return DenoisedSignal(units.value(height(flowed, points.time)), noise, "ridge", bandwidth, arrived)


def _by_wavelets(time: FloatArray, value: FloatArray, settings: Settings) -> DenoisedSignal:
    units, n = Units.of(time, value), len(value)
    _refuse_uneven(units.of_time(time))
    if n < len(kernel.SCALING_FILTER):
        return DenoisedSignal(value, float("nan"), "wavelet")
    levels = kernel.most_levels(n) if settings.levels is None else settings.levels
    extended = BOUNDARIES[settings.boundary](_to_multiple(units.of_value(value), 2**levels))
    parts = kernel.wavelet_transform(extended, levels)
    noise = kernel.noise_scale(parts)
    threshold = noise * kernel.universal_threshold(n)
    kept = tuple(THRESHOLDS[settings.threshold](detail, threshold) for detail in parts.details)
    signal = kernel.inverse_wavelet_transform(kernel.Wavelets(kept, parts.smooth))[:n]
    return DenoisedSignal(
        units.value(signal),
        float(units.deviation * noise),
        "wavelet",
        threshold=float(units.deviation * threshold),
        levels=levels,
    )


def _to_multiple(x: FloatArray, of: int) -> FloatArray:
    return np.pad(x, (0, -len(x) % of), mode="symmetric")


def _mirrored(x: FloatArray) -> FloatArray:
    return np.concatenate([x, x[::-1]])


Method: TypeAlias = Callable[[FloatArray, FloatArray, Settings], DenoisedSignal]

#: How noise may be taken away; :func:`denoise_signal` says what the names mean.
METHODS: dict[str, Method] = {"ridge": _by_ridge, "wavelet": _by_wavelets}
THRESHOLDS = {"hard": kernel.hard, "soft": kernel.soft}
BOUNDARIES: dict[str, Callable[[FloatArray], FloatArray]] = {"reflection": _mirrored, "periodic": np.asarray}


# ------------------------------------------------------------------------------------------------- what comes in


def _check_options(method: str, settings: Settings, n: int) -> None:
    options: dict[str, Constraint] = {
        "method": one_of(METHODS),
        "bandwidth": one_of(BANDWIDTHS) | real(0, above=True),
        "time_step": real(0, above=True),
        "threshold": one_of(THRESHOLDS),
        "boundary": one_of(BOUNDARIES),
        # With so many levels a single smooth value is left.
        "levels": nothing | integer(1, max(1, (n - 1).bit_length())),
    }
    for name, value in {"method": method, **settings._asdict()}.items():
        if not options[name].test(value):
            raise InvalidParameterError(f"denoise_signal: {options[name].refusal(name, value)}")


def _check_values(x: Any) -> FloatArray:
    try:
        value = np.array(x, dtype=float)
    except (TypeError, ValueError) as error:
        raise InvalidDataError(f"x should be a sequence of numbers: {error}.") from error
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
    moment = np.asarray(time)
    if moment.ndim != 1 or len(moment) != n:
        raise InvalidDataError(f"time should be of shape ({n},), a moment for each value; got shape {moment.shape}.")
    if moment.dtype.kind == "M":
        moment = np.where(np.isnat(moment), np.nan, (moment - moment.min()).astype(float))
    try:
        moment = np.array(moment, dtype=float)
    except (TypeError, ValueError) as error:
        raise InvalidDataError(f"time should be numbers or dates (datetime64): {error}.") from error
    if not np.isfinite(moment).all() or 0.5 * moment.max() - 0.5 * moment.min() > 0.5 * np.finfo(float).max:
        raise InvalidDataError("time holds NaN or infinity, or spans more than a number can hold.")
    if n > 1 and (moment == moment[0]).all():
        raise InvalidDataError(f"time has one value only, {moment[0]:g}, for {n} samples; a signal goes on in time.")
    return moment


def _refuse_uneven(steps: FloatArray) -> None:
    least, most = np.diff(steps).min(), np.diff(steps).max()
    if most - least > _EVEN:
        raise InvalidDataError(
            f"Wavelets need samples in even steps; these are from {least:.4g} to {most:.4g} times the median step. "
            "Use method='ridge', or interpolate the signal at even steps first."
        )
