"""Local linear regression, each sample left out: least squares, sums one by one, sums by bins."""

from __future__ import annotations

import numpy as np
import pytest

from prinfold.density.ridges.local_lines import errors_by_bins, errors_one_by_one, prediction_errors


def line_by_least_squares(time: np.ndarray, value: np.ndarray, at: float, bandwidth: float) -> float:
    """The height at one time of the line fitted with Gaussian weights about it."""
    root = np.exp(-0.25 * ((time - at) / bandwidth) ** 2)
    design = np.column_stack([np.ones_like(time), time - at]) * root[:, None]
    return float(np.linalg.lstsq(design, value * root, rcond=None)[0][0])


def samples(n: int, rng: np.random.Generator, even: bool = False) -> tuple[np.ndarray, np.ndarray]:
    time = np.arange(float(n)) if even else np.sort(rng.uniform(0.0, n, n))
    return time, np.sin(time / 30.0) + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("bandwidth", [0.9, 3.0, 50.0])
@pytest.mark.parametrize("even", [True, False])
def test_errors_are_those_of_lines_fitted_without_the_sample(
    bandwidth: float, even: bool, rng: np.random.Generator
) -> None:
    time, value = samples(40, rng, even)
    others = [np.arange(40) != i for i in range(40)]
    lines = [line_by_least_squares(time[o], value[o], time[i], bandwidth) for i, o in enumerate(others)]
    near = np.array([np.sort(np.abs(time[o] - time[i]))[1] < 5 * bandwidth for i, o in enumerate(others)])
    errors = prediction_errors(time, value, bandwidth)
    np.testing.assert_allclose(errors[near], (np.array(lines) - value)[near], rtol=1e-5, atol=1e-6)
    assert near.mean() > 0.7


def test_a_sample_far_from_all_others_is_predicted_by_the_nearest(rng: np.random.Generator) -> None:
    time, value = np.append(np.arange(30.0), 900.0), rng.normal(size=31)
    for errors in (prediction_errors(time, value, 2.0), errors_by_bins(time, value, 2.0)):
        assert errors[-1] == pytest.approx(value[-2] - value[-1])


def test_samples_at_one_moment_have_their_mean_and_no_slope(rng: np.random.Generator) -> None:
    value = rng.normal(size=5)
    mean = (value.sum() - value) / 4
    np.testing.assert_allclose(prediction_errors(np.zeros(5), value, 1.0), mean - value)
    np.testing.assert_allclose(errors_by_bins(np.zeros(5), value, 1.0), mean - value)


@pytest.mark.parametrize("bandwidth", [5.0, 40.0, 300.0])
@pytest.mark.parametrize("even", [True, False])
def test_bins_are_good_to_some_thousandths(bandwidth: float, even: bool, rng: np.random.Generator) -> None:
    """Sharing samples among bins a tenth of h apart widens kernels by 1/600 of h² on average."""
    time, value = samples(1500, rng, even)
    exact = errors_one_by_one(time, value, bandwidth, np.arange(1500))
    binned = errors_by_bins(time, value, bandwidth)
    assert np.square(binned - exact).mean() < (4e-3 * 0.3) ** 2  # of the noise
    assert np.square(binned).mean() == pytest.approx(np.square(exact).mean(), rel=4e-3)


def test_bins_bridge_pauses_of_any_length(rng: np.random.Generator) -> None:
    time, value = samples(600, rng)
    paused = time + np.where(np.arange(600) >= 300, 1e12, 0.0)
    parts = [errors_by_bins(time[p] - time[p][0], value[p], 10.0) for p in (slice(300), slice(300, None))]
    np.testing.assert_allclose(errors_by_bins(paused, value, 10.0), np.concatenate(parts), atol=2e-2)


def test_many_samples_within_reach_go_to_bins_and_few_do_not(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    time, value = samples(400, rng)
    monkeypatch.setattr("prinfold.density.ridges.local_lines._PAIRS_AT_ONCE", 400 * 100)
    for bandwidth, way in ((2.0, "one by one"), (40.0, "bins")):
        expected = {
            "one by one": errors_one_by_one(time, value, bandwidth, np.arange(400)),
            "bins": errors_by_bins(time, value, bandwidth),
        }
        np.testing.assert_array_equal(prediction_errors(time, value, bandwidth), expected[way])


def test_blocks_are_the_whole(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    time, value = samples(100, rng)
    whole = errors_one_by_one(time, value, 4.0, np.arange(100))
    monkeypatch.setattr("prinfold.density.ridges.local_lines._PAIRS_AT_ONCE", 300)
    np.testing.assert_array_equal(errors_one_by_one(time, value, 4.0, np.arange(100)), whole)
    one_by_one = [errors_one_by_one(time, value, 4.0, np.array([i]))[0] for i in range(100)]
    np.testing.assert_allclose(one_by_one, whole, atol=1e-12)
