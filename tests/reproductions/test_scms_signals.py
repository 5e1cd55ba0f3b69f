"""Section 5.3 of McQueen: where a principal curve denoises better than wavelets, and why it stops."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from prinfold import denoise_signal

pytest.importorskip("pywt", reason="wavelets, to compare with, need PyWavelets: pip install --group bench")

import pywt
from benchmarks.papers.wavelets import (
    LA8,
    MEDIAN_OF_ABSOLUTE_NORMAL,
    denoise_by_wavelets,
    inverse_transform,
    transform,
)

DRAWS = 20
WAYS = {
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
        left = np.square(estimate(way, x) - clean).mean()
        found.append(np.log(left / np.square(x - clean).mean()))
    return np.array(found)


def estimate(way: str, x: np.ndarray) -> np.ndarray:
    if way == "wavelets":
        return denoise_by_wavelets(x, boundary="periodic").signal
    if way == "twice":
        options = {"bandwidth": 2.0 * denoise_signal(x, bandwidth="likelihood").bandwidth}
    elif way == "unit":
        options = {"bandwidth": "likelihood", "time_step": 1.0 / (len(x) - 1)}
    else:
        options = WAYS[way]
    return denoise_signal(x, **options).signal


def gain(one: str, other: str, n: int, decibels: int) -> tuple[float, float]:
    """By how much the log error of ``one`` is lower, and two standard errors of that."""
    apart = logs(other, n, decibels) - logs(one, n, decibels)
    return float(apart.mean()), float(2.0 * apart.std(ddof=1) / np.sqrt(DRAWS))


# -------------------------------------------------------------------------------------------- the wavelets themselves


def test_the_filter_solves_its_eight_equations() -> None:
    """Orthonormal to its even shifts, and blind to polynomials of degree three."""
    g = np.array(pywt.Wavelet(LA8).dec_lo)
    h = g[::-1] * (-1.0) ** np.arange(8)
    assert len(g) == 8
    for shift in range(4):
        assert g[2 * shift :] @ g[: 8 - 2 * shift] == pytest.approx(float(shift == 0), abs=1e-10)
    for degree in range(4):
        assert h @ (np.arange(8) - 3.5) ** degree == pytest.approx(0.0, abs=1e-9)


def test_of_all_filters_with_these_equations_it_is_the_least_asymmetric() -> None:
    """Roots of the squared response come in reciprocal pairs; each choice of one of a pair makes a filter."""
    pairs = [np.roots([1.0, 4.0 * y - 2.0, 1.0]) for y in np.roots([20.0, 10.0, 4.0, 1.0])]
    conjugate = [k for k, pair in enumerate(pairs) if abs(pair[0].imag) > 1e-9]
    real = next(k for k in range(3) if k not in conjugate)

    def filter_of(a: int, b: int) -> np.ndarray:
        first = pairs[conjugate[0]][a]
        g = np.real(np.poly([-1.0] * 4 + [pairs[real][b], first, first.conjugate()]))
        return g * np.sqrt(2.0) / g.sum()

    def bend(g: np.ndarray) -> float:
        """How far the phase is from any straight line, over the pass band."""
        w = np.linspace(0.05, 1.5, 200)
        phase = np.unwrap(np.angle(np.exp(-1j * np.outer(w, np.arange(8))) @ g))
        line = np.polynomial.polynomial.polyfit(w, phase, 1)
        return float(np.abs(phase - np.polynomial.polynomial.polyval(w, line)).max())

    filters = [filter_of(a, b) for a in range(2) for b in range(2)]
    straight = min(bend(g) for g in filters)
    best = [g for g in filters if bend(g) < straight * 1.001]
    assert min(np.abs(g - pywt.Wavelet(LA8).dec_lo).max() for g in best) < 1e-6
    assert max(bend(g) for g in filters) > 2 * straight


def test_one_level_is_the_sum_of_the_book() -> None:
    """V_t = Σ_l g_l v_{2t+1−l} and W_t = −Σ_l h_l v_{2t+1−l} with h_l = (−1)^l g_{7−l}."""
    v, g = np.random.default_rng(0).normal(size=32), np.array(pywt.Wavelet(LA8).dec_lo)
    h = g[::-1] * (-1.0) ** np.arange(8)
    smooth, detail = transform(v, 1)
    for t in range(16):
        around = v[(2 * t + 1 - np.arange(8)) % 32]
        assert smooth[t] == pytest.approx(g @ around, abs=1e-10)
        assert detail[t] == pytest.approx(-h @ around, abs=1e-10)


@pytest.mark.parametrize("kind", ["hard", "soft"])
def test_denoising_is_a_threshold_between_an_orthonormal_matrix_and_its_transpose(kind: str) -> None:
    n = 64
    x = np.sin(np.linspace(0.0, 9.0, n)) + 0.3 * np.random.default_rng(0).normal(size=n)
    W = np.column_stack([np.concatenate(transform(column, 3)) for column in np.eye(n)])
    np.testing.assert_allclose(W @ W.T, np.eye(n), atol=1e-10)
    np.testing.assert_allclose(inverse_transform(transform(x, 3)), x, atol=1e-10)
    w, sigma = W @ x, np.median(np.abs(W[n // 2 :] @ x)) / MEDIAN_OF_ABSOLUTE_NORMAL
    delta = sigma * np.sqrt(2.0 * np.log(n))
    w[8:] = np.where(np.abs(w) < delta, 0.0, w if kind == "hard" else w - delta * np.sign(w))[8:]
    found = denoise_by_wavelets(x, kind, "periodic")
    assert (found.noise, found.threshold) == (pytest.approx(sigma), pytest.approx(delta))
    np.testing.assert_allclose(found.signal, W.T @ w, atol=1e-10)


# ------------------------------------------------------------------------------------------------ figures of the paper


@pytest.mark.slow
@pytest.mark.parametrize("decibels", [10, 15, 20])
def test_with_few_samples_the_curve_is_better(decibels: int) -> None:
    """Figure 6, N = 32; at 0 and 5 dB it is not."""
    better, slack = gain("curve", "wavelets", 32, decibels)
    assert better > slack


@pytest.mark.slow
@pytest.mark.parametrize("decibels", [0, 10, 20])
@pytest.mark.parametrize("n", [256, 1024])
def test_with_many_samples_wavelets_are_better(n: int, decibels: int) -> None:
    """Figures 7 and 8."""
    better, slack = gain("wavelets", "curve", n, decibels)
    assert better > slack


@pytest.mark.slow
@pytest.mark.parametrize("decibels", [0, 10, 20])
def test_the_curve_stagnates_and_twice_its_bandwidth_does_too(decibels: int) -> None:
    for way, share in (("curve", 0.33), ("twice", 0.16)):
        few, many = (np.exp(logs(way, n, decibels).mean()) for n in (256, 1024))
        assert many == pytest.approx(few, rel=0.2)
        assert many == pytest.approx(share, rel=0.25)


@pytest.mark.slow
@pytest.mark.parametrize("n", [32, 64, 256, 1024])
def test_with_time_from_0_to_1_the_curve_is_never_better(n: int) -> None:
    for decibels in (0, 10, 20):
        better, slack = gain("unit", "wavelets", n, decibels)
        assert better < slack


@pytest.mark.slow
@pytest.mark.parametrize("decibels", [5, 10, 20])
@pytest.mark.parametrize("n", [128, 1024])
def test_a_bandwidth_made_for_signals_is_better_than_both(n: int, decibels: int) -> None:
    for other in ("wavelets", "curve", "twice"):
        better, slack = gain("prediction", other, n, decibels)
        assert better > (-slack if other == "twice" and n == 128 else slack)
