"""Denoising: what units, order and repetition must not change, the limits of the ridge, and odd signals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.density.ridges.test_local_lines import line_by_least_squares

from prinfold import DenoisedSignal, denoise_signal
from prinfold.density.ridges.local_lines import prediction_errors
from prinfold.density.ridges.signal_curve import (
    SignalPoints,
    by_likelihood,
    by_prediction,
    carry,
    height,
    noise_of_differences,
)
from prinfold.exceptions import InvalidDataError, InvalidParameterError

WAYS: dict[str, dict[str, Any]] = {
    "prediction": {},
    "likelihood": {"bandwidth": "likelihood"},
    "given": {"bandwidth": 2.5},
    "short steps": {"bandwidth": 0.3, "time_step": 0.02},
}
ways = pytest.mark.parametrize("way", sorted(WAYS))


def wave(n: int = 100, noise: float = 0.3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A clean signal and the same with noise."""
    clean = np.sin(np.linspace(0.0, 9.0, n)) + 2.0
    return clean, clean + noise * np.random.default_rng(seed).normal(size=n)


# ------------------------------------------------------------------------------------------------------ theorems


@ways
@pytest.mark.parametrize(("factor", "shift"), [(4.0, 0.0), (-0.5, 0.0), (1e6, -3e6), (-1e-5, 1.0)])
def test_the_units_of_the_signal_change_nothing_else(way: str, factor: float, shift: float) -> None:
    _, x = wave()
    plain, other = denoise_signal(x, **WAYS[way]), denoise_signal(factor * x + shift, **WAYS[way])
    size = abs(factor) + abs(shift)
    np.testing.assert_allclose(other.signal, factor * plain.signal + shift, atol=1e-7 * abs(factor) + 1e-14 * size)
    assert other.noise == pytest.approx(abs(factor) * plain.noise, rel=1e-7)
    assert (other.bandwidth or 0.0) == pytest.approx(plain.bandwidth or 0.0, rel=1e-7)


@ways
def test_the_units_of_time_change_nothing(way: str) -> None:
    _, x = wave()
    plain, other = denoise_signal(x, **WAYS[way]), denoise_signal(x, time=1e5 + 0.25 * np.arange(100), **WAYS[way])
    np.testing.assert_allclose(other.signal, plain.signal, atol=1e-9)
    np.testing.assert_allclose((other.points[:, 0] - 1e5) / 0.25, plain.points[:, 0], atol=1e-6)


@ways
def test_the_order_of_the_samples_does_not_matter(way: str, rng: np.random.Generator) -> None:
    _, x = wave()
    time, mixed = np.arange(100.0), rng.permutation(100)
    plain, other = denoise_signal(x, **WAYS[way]), denoise_signal(x[mixed], time=time[mixed], **WAYS[way])
    np.testing.assert_array_equal(other.signal, plain.signal[mixed])


@pytest.mark.parametrize("way", ["prediction", "likelihood", "given"])
def test_time_may_run_backwards(way: str) -> None:
    _, x = wave()
    np.testing.assert_allclose(
        denoise_signal(x[::-1], **WAYS[way]).signal[::-1], denoise_signal(x, **WAYS[way]).signal, atol=1e-5
    )


def test_samples_taken_twice_change_nothing_at_a_given_bandwidth(rng: np.random.Generator) -> None:
    _, x = wave()
    time = np.sort(rng.uniform(0.0, 100.0, 100))
    once, twice = (denoise_signal(np.tile(x, k), time=np.tile(time, k), bandwidth=2.0) for k in (1, 2))
    np.testing.assert_allclose(twice.signal, np.tile(once.signal, 2), atol=1e-8)


@ways
def test_a_straight_line_is_left_alone(way: str) -> None:
    x = 3.0 - 0.7 * np.arange(64.0)
    found = denoise_signal(x, **WAYS[way])
    np.testing.assert_allclose(found.signal, x, atol=1e-9)
    assert found.noise == pytest.approx(0.0, abs=1e-9)


def test_an_uneven_straight_line_is_left_alone_too(rng: np.random.Generator) -> None:
    time = np.sort(rng.exponential(size=50)).cumsum()
    np.testing.assert_allclose(denoise_signal(2.0 * time - 5.0, time=time).signal, 2.0 * time - 5.0, atol=1e-6)


@pytest.mark.parametrize("even", [True, False])
def test_with_long_steps_and_wide_kernels_the_ridge_is_local_linear_regression(
    even: bool, rng: np.random.Generator
) -> None:
    """Kernels that reach over all values weigh by time alone, and the ridge runs along the line fitted with them."""
    _, x = wave(60)
    time = np.arange(60.0) if even else np.sort(rng.uniform(0.0, 60.0, 60))
    step = float(np.median(np.diff(time)))
    found = denoise_signal(x, time=time, time_step=1e4, bandwidth=3e4).signal
    np.testing.assert_allclose(found, [line_by_least_squares(time, x, t, 3.0 * step) for t in time], atol=1e-5)


def test_where_nothing_reaches_over_a_step_every_sample_stays() -> None:
    _, x = wave()
    np.testing.assert_allclose(denoise_signal(x, bandwidth=0.05).signal, x, atol=1e-9)


# ---------------------------------------------------------------------------------------------------- bandwidths


def test_the_predicting_bandwidth_predicts_best_of_those_no_smaller_than_the_likeliest() -> None:
    for noise in (0.02, 0.3, 3.0):
        _, x = wave(120, noise)
        points = SignalPoints(np.arange(120.0), (x - x.mean()) / x.std())
        least, chosen = by_likelihood(points), by_prediction(points)

        def loss(h: float, points: SignalPoints = points) -> float:
            return float(np.square(prediction_errors(*points, h)).mean())

        grid = np.geomspace(least, 119 / 3, 200)
        assert least <= chosen <= grid[-1] * (1 + 1e-12)
        assert loss(chosen) <= min(map(loss, grid)) * (1 + 1e-4)


def test_with_samples_the_likeliest_bandwidth_stays_and_the_predicting_one_grows() -> None:
    """Why the principal curve of the paper stops getting better: more samples of the same curve smooth it no more."""
    few, many = (wave(n, 0.3)[1] for n in (128, 512))
    likely = [denoise_signal(x, bandwidth="likelihood").bandwidth for x in (few, many)]
    predicting = [denoise_signal(x).bandwidth for x in (few, many)]
    assert likely[1] == pytest.approx(likely[0], rel=0.1)
    assert predicting[1] > 2.0 * predicting[0]


# --------------------------------------------------------------------------------------------------- what is found


@pytest.mark.parametrize("way", sorted(set(WAYS) - {"short steps"}))
def test_noise_is_taken_away(way: str) -> None:
    clean, x = wave(256, 0.3)
    found = denoise_signal(x, **WAYS[way])
    most = {"likelihood": 0.5}.get(way, 0.3)
    assert np.square(found.signal - clean).mean() < most * np.square(x - clean).mean()
    assert found.noise == pytest.approx(0.3, rel=0.25)


def test_points_are_where_samples_were_carried(rng: np.random.Generator) -> None:
    _, x = wave(50)
    time = np.sort(rng.uniform(0.0, 5.0, 50))
    found = denoise_signal(x, time=time, bandwidth=2.0, time_step=0.5)
    step = np.median(np.diff(time))
    plane = SignalPoints(0.5 * (time - time[0]) / step, (x - x.mean()) / x.std())
    flowed = carry(plane, 2.0)
    expected = np.column_stack([time[0] + step * flowed.points[:, 0] / 0.5, x.mean() + x.std() * flowed.points[:, 1]])
    np.testing.assert_allclose(found.points, expected, atol=1e-9)
    assert found.bandwidth == 2.0
    order = np.argsort(found.points[:, 0])
    np.testing.assert_allclose(found.signal, np.interp(time, *found.points[order].T), atol=1e-9)


def test_points_that_never_arrived_are_left_out() -> None:
    _, x = wave(50)
    flowed = carry(SignalPoints(np.arange(50.0), x), 1.5)
    plain = height(flowed, np.arange(50.0))
    status, points = flowed.status.copy(), flowed.points.copy()
    status[20], points[20] = 1, [20.0, 1e9]
    assert np.abs(height(flowed._replace(status=status, points=points), np.arange(50.0)) - plain).max() < 0.2


def test_noise_is_judged_by_lines_between_neighbours(rng: np.random.Generator) -> None:
    time = np.sort(rng.uniform(0.0, 1.0, 20000))
    assert noise_of_differences(time, 0.3 * rng.normal(size=20000)) == pytest.approx(0.3, rel=0.03)
    assert noise_of_differences(time, 5.0 * time) == pytest.approx(0.0, abs=1e-12)
    # Three at the same moment: the one between is compared with the mean of the others.
    assert noise_of_differences(np.zeros(3), np.array([0.0, 3.0, 1.0])) == pytest.approx(
        2.5 / np.sqrt(1.5) / 0.6744897501960817
    )


def test_a_result_explains_itself() -> None:
    _, x = wave(32)
    assert repr(denoise_signal(x, bandwidth=2.0)).startswith("DenoisedSignal(32 values, noise=0.")
    assert repr(denoise_signal(x, bandwidth=2.0)).endswith(", bandwidth=2)")
    assert repr(DenoisedSignal(np.zeros(3), 0.0)) == "DenoisedSignal(3 values, noise=0)"


# ----------------------------------------------------------------------------------------------------- odd signals


@ways
@pytest.mark.parametrize("n", [1, 2, 3, 50])
def test_a_constant_signal_is_its_own_answer(way: str, n: int) -> None:
    found = denoise_signal(np.full(n, 0.1), **WAYS[way])
    np.testing.assert_array_equal(found.signal, np.full(n, 0.1))
    assert found.noise == 0.0
    assert found.bandwidth is None


@pytest.mark.parametrize("n", range(2, 12))
def test_short_signals_have_an_answer(n: int, rng: np.random.Generator) -> None:
    x = rng.normal(size=n)
    found = denoise_signal(x)
    assert np.isfinite(found.signal).all()
    assert np.isnan(found.noise) == (n < 3)
    if n == 2:
        np.testing.assert_allclose(found.signal, x, atol=1e-9)


@pytest.mark.parametrize("size", [1e-290, 1e300])
def test_very_small_and_very_large_numbers_are_numbers(size: float) -> None:
    _, x = wave(40)
    found, plain = denoise_signal(size * x), denoise_signal(x)
    np.testing.assert_allclose(found.signal / size, plain.signal, rtol=1e-7)


def test_a_spike_does_not_spoil_the_rest() -> None:
    clean, x = wave(200)
    x[77] += 1e6
    found = denoise_signal(x, bandwidth=3.0)
    far = np.abs(np.arange(200) - 77) > 60
    assert np.isfinite(found.signal).all()
    assert found.noise < 1.0
    assert np.square(found.signal - clean)[far].mean() < 0.09


def test_several_values_at_one_moment_are_allowed(rng: np.random.Generator) -> None:
    time = np.repeat(np.arange(40.0), 5)
    x = np.sin(time / 5) + 0.3 * rng.normal(size=200)
    found = denoise_signal(x, time=time)
    np.testing.assert_allclose(found.signal.reshape(40, 5), found.signal[::5, None] * np.ones(5), atol=1e-12)
    assert np.square(found.signal - np.sin(time / 5)).mean() < 0.1 * 0.09


def test_a_long_pause_is_bridged(rng: np.random.Generator) -> None:
    time = np.concatenate([np.arange(60.0), 5000.0 + np.arange(60.0)])
    x = np.concatenate([np.zeros(60), np.full(60, 7.0)]) + 0.1 * rng.normal(size=120)
    for bandwidth in ("prediction", "likelihood"):
        found = denoise_signal(x, time=time, bandwidth=bandwidth).signal
        assert np.abs(found - np.where(time < 1000, 0.0, 7.0)).max() < 0.5


def test_dates_are_times() -> None:
    _, x = wave(30)
    days = np.datetime64("2024-03-01") + np.arange(30)
    np.testing.assert_allclose(denoise_signal(x, time=days).signal, denoise_signal(x).signal, atol=1e-12)
    with pytest.raises(InvalidDataError, match="time holds NaN"):
        denoise_signal(x, time=np.append(days[:-1], np.datetime64("NaT", "D")))


def test_lists_are_welcome_and_nothing_is_changed() -> None:
    x = np.array([1.0, 3.0, 2.0, 5.0])
    kept = x.copy()
    np.testing.assert_array_equal(denoise_signal([1, 3, 2, 5]).signal, denoise_signal(x).signal)
    np.testing.assert_array_equal(x, kept)
    constant = np.ones(4)
    denoise_signal(constant).signal[0] = 7.0
    assert constant[0] == 1.0


# --------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([1.0, np.nan, 2.0], r"x holds NaN or infinity at 1 of 3 places, the first at 1.*hand the times"),
        ([np.inf, 1.0], "NaN or infinity at 1 of 2"),
        ([], r"with at least one value; got shape \(0,\)"),
        (np.ones((4, 2)), r"got shape \(4, 2\). Several signals are denoised one by one"),
        (["a", "b"], "x must be numbers"),
        ([1j, 2.0], "x must be real numbers, got complex ones"),
    ],
)
def test_signals_that_cannot_be_are_named(x: Any, message: str) -> None:
    with pytest.raises(InvalidDataError, match=message):
        denoise_signal(x)


@pytest.mark.parametrize(
    ("time", "message"),
    [
        ([0.0, 1.0], r"time should be of shape \(4,\), a moment for each value; got shape \(2,\)"),
        ([0.0, 1.0, np.nan, 3.0], "time holds NaN or infinity"),
        ([-1e308, 0.0, 1.0, 1e308], "spans more than a number can hold"),
        (["a", "b", "c", "d"], "time should be numbers or dates"),
        ([1j, 2, 3, 4], "time should be numbers or dates .*got complex ones"),
        ([2.0, 2.0, 2.0, 2.0], "time has one value only, 2, for 4 samples"),
    ],
)
def test_times_that_cannot_be_are_named(time: Any, message: str) -> None:
    with pytest.raises(InvalidDataError, match=message):
        denoise_signal([1.0, 2.0, 4.0, 3.0], time=time)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bandwidth": 0.0}, "bandwidth must be 'prediction', 'likelihood' or a finite number above 0, got 0.0"),
        ({"bandwidth": "auto"}, "bandwidth must be"),
        ({"time_step": -1.0}, "time_step must be a finite number above 0"),
    ],
)
def test_options_that_cannot_be_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameterError, match=f"denoise_signal: .*{message}"):
        denoise_signal(np.arange(8.0) ** 2, **options)
