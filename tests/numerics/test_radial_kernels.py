"""Radial profiles: derivatives against differences, volumes against quadrature."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import gamma

from prinfold.numerics.radial_kernels import GAUSSIAN_CUT, PROFILES, Gaussian

profiles = pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES.keys())


@profiles
def test_value_is_one_at_the_centre_and_falls(profile):
    s = np.linspace(0, 4, 101)
    k = profile.value(s)
    assert k[0] == 1.0
    assert (np.diff(k) <= 0).all()
    assert (k[s >= profile.reach**2] == 0).all()


@profiles
def test_slope_and_curvature_are_derivatives(profile):
    s, h = np.linspace(0.01, 0.98, 50), 1e-6
    assert_allclose(profile.slope(s), (profile.value(s + h) - profile.value(s - h)) / (2 * h), rtol=1e-6)
    assert_allclose(profile.curvature(s), (profile.slope(s + h) - profile.slope(s - h)) / (2 * h), rtol=1e-6)


@profiles
def test_slope_has_no_jump_at_the_rim(profile):
    rim = np.array([profile.reach**2]) if np.isfinite(profile.reach) else np.array([1500.0])
    assert_allclose(profile.slope(rim - 1e-9), profile.slope(rim + 1e-9), atol=1e-8)


@profiles
@pytest.mark.parametrize("dimension", [1, 2, 3, 5])
def test_volume_is_the_integral(profile, dimension):
    sphere = 2 * np.pi ** (dimension / 2) / gamma(dimension / 2)
    end = min(profile.reach, 40.0)
    integral, _ = quad(lambda r: sphere * r ** (dimension - 1) * profile.value(np.array(r * r)), 0, end)
    assert_allclose(profile.volume(dimension), integral, rtol=1e-7)


def test_a_truncated_gaussian_differs_by_less_than_its_stated_bound():
    s = np.linspace(0, 100, 2001)
    lost = Gaussian().value(s) - Gaussian(GAUSSIAN_CUT).value(s)
    assert 0 < lost.max() <= np.exp(-18.0)


@profiles
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_draws_have_the_second_moment_of_the_kernel(profile, dimension):
    """∫ r² k / ∫ k by quadrature, within five standard errors; and the mean is nil."""
    draws = profile.draw(np.random.default_rng(0), 20_000, dimension)
    end = min(profile.reach, 40.0)
    mass, moment = (
        quad(lambda r, e=e: r ** (dimension - 1 + e) * profile.value(np.array(r * r)), 0, end)[0] for e in (0, 2)
    )
    square = (draws**2).sum(axis=1)
    assert abs(square.mean() - moment / mass) < 5 * square.std() / np.sqrt(len(square))
    assert (np.abs(draws.mean(axis=0)) < 5 * draws.std(axis=0) / np.sqrt(len(draws))).all()
    assert (square < profile.reach**2).all()
