"""Section 5.3 of McQueen: where a principal curve denoises better than wavelets, and why it stops."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from prinfold import denoise_signal

pytestmark = pytest.mark.slow

DRAWS = 20
WAYS = {
    "wavelets": {"method": "wavelet", "boundary": "periodic"},
    "curve": {"bandwidth": "likelihood"},
    "prediction": {"bandwidth": "prediction"},
}


@cache
def logs(way: str, n: int, decibels: int) -> np.ndarray:
    """(draws,) log of the error as a share of the samples' own."""
    u = np.arange(n) / n
    clean = np.sin(2 * np.pi * u) + 0.5 * np.sin(5 * np.pi * u)
    scale = np.sqrt(np.square(clean).mean() / 10 ** (decibels / 10))
    found = []
    for seed in range(DRAWS):
        x = clean + scale * np.random.default_rng([seed, n, decibels]).normal(size=n)
        if way == "twice":
            options = {"bandwidth": 2.0 * denoise_signal(x, bandwidth="likelihood").bandwidth}
        elif way == "unit":
            options = {"bandwidth": "likelihood", "time_step": 1.0 / (n - 1)}
        else:
            options = WAYS[way]
        left = np.square(denoise_signal(x, **options).signal - clean).mean()
        found.append(np.log(left / np.square(x - clean).mean()))
    return np.array(found)


def gain(one: str, other: str, n: int, decibels: int) -> tuple[float, float]:
    """By how much the log error of ``one`` is lower, and two standard errors of that."""
    apart = logs(other, n, decibels) - logs(one, n, decibels)
    return float(apart.mean()), float(2.0 * apart.std(ddof=1) / np.sqrt(DRAWS))


@pytest.mark.parametrize("decibels", [10, 15, 20])
def test_with_few_samples_the_curve_is_better(decibels: int) -> None:
    """Figure 6, N = 32; at 0 and 5 dB it is not."""
    better, slack = gain("curve", "wavelets", 32, decibels)
    assert better > slack


@pytest.mark.parametrize("decibels", [0, 10, 20])
@pytest.mark.parametrize("n", [256, 1024])
def test_with_many_samples_wavelets_are_better(n: int, decibels: int) -> None:
    """Figures 7 and 8."""
    better, slack = gain("wavelets", "curve", n, decibels)
    assert better > slack


@pytest.mark.parametrize("decibels", [0, 10, 20])
def test_the_curve_stagnates_and_twice_its_bandwidth_does_too(decibels: int) -> None:
    for way, share in (("curve", 0.33), ("twice", 0.16)):
        few, many = (np.exp(logs(way, n, decibels).mean()) for n in (256, 1024))
        assert many == pytest.approx(few, rel=0.2)
        assert many == pytest.approx(share, rel=0.25)


@pytest.mark.parametrize("n", [32, 64, 256, 1024])
def test_with_time_from_0_to_1_the_curve_is_never_better(n: int) -> None:
    for decibels in (0, 10, 20):
        better, slack = gain("unit", "wavelets", n, decibels)
        assert better < slack


@pytest.mark.parametrize("decibels", [5, 10, 20])
@pytest.mark.parametrize("n", [128, 1024])
def test_a_bandwidth_made_for_signals_is_better_than_both(n: int, decibels: int) -> None:
    for other in ("wavelets", "curve", "twice"):
        better, slack = gain("prediction", other, n, decibels)
        assert better > (-slack if other == "twice" and n == 128 else slack)
