"""Wavelets: the filter solves its equations, the transform is the orthonormal matrix, thresholds do what they say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prinfold.density.ridges.wavelets import (
    MAD,
    SCALING_FILTER,
    WAVELET_FILTER,
    Wavelets,
    hard,
    inverse_wavelet_transform,
    most_levels,
    noise_scale,
    soft,
    universal_threshold,
    wavelet_matrix_reference,
    wavelet_transform,
)
from prinfold.exceptions import InvalidParameterError

SIZES = [(2, 1), (6, 1), (8, 3), (12, 2), (32, 2), (40, 3), (64, 6)]


def flat(wavelets: Wavelets) -> np.ndarray:
    return np.concatenate([*wavelets.details, wavelets.smooth], axis=-1)


def test_the_filter_solves_its_eight_equations() -> None:
    """Orthonormal to its even shifts, and blind to polynomials of degree three."""
    for shift in range(4):
        product = SCALING_FILTER[2 * shift :] @ SCALING_FILTER[: 8 - 2 * shift]
        assert product == pytest.approx(float(shift == 0), abs=4e-16)
    for degree in range(4):
        # Powers about the middle keep the terms, and so their rounding, small.
        assert WAVELET_FILTER @ (np.arange(8) - 3.5) ** degree == pytest.approx(0.0, abs=1e-14)
    assert SCALING_FILTER.sum() == pytest.approx(np.sqrt(2.0), abs=1e-15)


def test_of_all_filters_with_these_equations_it_is_the_least_asymmetric() -> None:
    """Roots of the squared response come in reciprocal pairs; each choice of one of a pair makes a filter."""
    pairs = [np.roots([1.0, 4.0 * y - 2.0, 1.0]) for y in np.roots([20.0, 10.0, 4.0, 1.0])]
    conjugate = [k for k, pair in enumerate(pairs) if abs(pair[0].imag) > 1e-9]
    real = next(k for k in range(3) if k not in conjugate)

    def filter_of(a: int, b: int) -> np.ndarray:
        first = pairs[conjugate[0]][a]
        roots = [-1.0] * 4 + [pairs[real][b], first, first.conjugate()]
        g = np.real(np.poly(roots))
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
    assert min(np.abs(g - SCALING_FILTER).max() for g in best) < 1e-6
    assert max(bend(g) for g in filters) > 2 * straight


@pytest.mark.parametrize(("n", "levels"), SIZES)
def test_the_matrix_is_orthonormal(n: int, levels: int) -> None:
    W = wavelet_matrix_reference(n, levels)
    np.testing.assert_allclose(W @ W.T, np.eye(n), atol=1e-14)


@pytest.mark.parametrize(("n", "levels"), SIZES)
def test_the_transform_is_the_matrix_and_its_inverse_the_transpose(
    n: int, levels: int, rng: np.random.Generator
) -> None:
    W, X = wavelet_matrix_reference(n, levels), rng.normal(size=(3, n))
    there = wavelet_transform(X, levels)
    assert [d.shape for d in there.details] == [(3, n >> j) for j in range(1, levels + 1)]
    np.testing.assert_allclose(flat(there), X @ W.T, atol=1e-14)
    anything = [rng.normal(size=d.shape) for d in there.details]
    any_wavelets = Wavelets(tuple(anything), rng.normal(size=there.smooth.shape))
    np.testing.assert_allclose(inverse_wavelet_transform(any_wavelets), flat(any_wavelets) @ W, atol=1e-14)


@given(st.integers(1, 12), st.integers(0, 5), st.integers(0, 2**32 - 1))
def test_nothing_is_lost(odd: int, levels: int, seed: int) -> None:
    x = np.random.default_rng(seed).normal(size=odd * 2**levels)
    wavelets = wavelet_transform(x, levels)
    assert np.square(flat(wavelets)).sum() == pytest.approx(np.square(x).sum(), rel=1e-12)
    np.testing.assert_allclose(inverse_wavelet_transform(wavelets), x, atol=1e-12)


@pytest.mark.parametrize("degree", range(4))
def test_details_of_a_polynomial_vanish_away_from_the_ends(degree: int) -> None:
    x = np.linspace(-1.0, 1.0, 256) ** degree
    for level, detail in enumerate(wavelet_transform(x, 3).details, start=1):
        # The wavelet of place t reaches back 7 (2^j − 1) values from 2^j (t + 1) − 1.
        whole = int(np.ceil((7 * (2**level - 1) + 1) / 2**level))
        np.testing.assert_allclose(detail[whole:], 0.0, atol=1e-12)
        assert degree == 0 or np.abs(detail[:whole]).max() > 1e-3


def test_degree_four_is_seen() -> None:
    x = np.linspace(-1.0, 1.0, 64) ** 4
    assert np.abs(wavelet_transform(x, 1).details[0][8:]).min() > 1e-8


@pytest.mark.parametrize("n", [2, 7, 8, 31, 32, 63, 64, 1000, 1024])
def test_levels_end_where_wavelets_would_meet_themselves(n: int) -> None:
    J = most_levels(n)
    assert n < 7 * (2 ** (J + 1) - 1) + 1
    assert J == 1 or n >= 7 * (2**J - 1) + 1


def test_the_noise_scale_is_that_of_white_noise_whatever_polynomial_is_under_it(rng: np.random.Generator) -> None:
    noise = 0.3 * rng.normal(size=4096)
    plain = wavelet_transform(noise, 1)
    assert noise_scale(plain) == pytest.approx(0.3, rel=0.05)
    bent = noise_scale(wavelet_transform(noise + 40.0 * np.linspace(-1.0, 1.0, 4096) ** 3, 1))
    # Only the three differences across the ends are not blind to it, so that the median moves three ranks at most.
    ranked = np.sort(np.abs(plain.details[0])) / MAD
    assert ranked[1023 - 3] <= bent <= ranked[1024 + 3]
    assert pytest.approx(0.6745, abs=5e-5) == MAD


def test_the_universal_threshold_is_hardly_exceeded_by_noise(rng: np.random.Generator) -> None:
    n = 1024
    beyond = np.abs(rng.normal(size=(400, n))).max(axis=1) > universal_threshold(n)
    # P = 1 − (1 − 2Φ(−δ))^n, which falls to nil as 1/√(π log n).
    assert beyond.mean() == pytest.approx(0.182, abs=0.05)


def test_hard_keeps_or_kills_and_soft_draws_in(rng: np.random.Generator) -> None:
    w, delta = rng.normal(size=200), np.array(0.7)
    big = np.abs(w) >= 0.7
    np.testing.assert_array_equal(hard(w, delta), w * big)
    # Soft is the minimum of ½(u − w)² + δ|u|: its slope is within δ of nil at zero, and nil elsewhere.
    u = soft(w, delta)
    np.testing.assert_allclose((u - w + 0.7 * np.sign(u))[u != 0], 0.0, atol=1e-15)
    assert (np.abs(w[u == 0]) <= 0.7).all()


@pytest.mark.parametrize(("n", "levels"), [(10, 2), (7, 1), (8, 4)])
def test_lengths_that_do_not_divide_are_refused(n: int, levels: int) -> None:
    with pytest.raises(InvalidParameterError, match=f"{levels} levels need a length that is a multiple of .*; got {n}"):
        wavelet_transform(np.zeros(n), levels)
