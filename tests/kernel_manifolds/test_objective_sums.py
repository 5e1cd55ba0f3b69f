"""Kernel regression on latent points against its definition, and the definition against differences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prinfold.kernel_manifolds.objective_sums import regression_reference, relative_gaussian
from prinfold.numerics.radial_kernels import GAUSSIAN_CUT, PROFILES, Gaussian, Power


def barrier(mass, weight):
    """Smooth, and defined for an empty neighbourhood too."""
    return 1.0 / (0.1 + mass), -1.0 / (0.1 + mass) ** 2


PROFILES_TRIED = [*PROFILES.values(), Gaussian(GAUSSIAN_CUT), Gaussian(1.5), Power(4, "power four")]
profiles = pytest.mark.parametrize("profile", PROFILES_TRIED, ids=lambda each: f"{each.name} to {each.reach:g}")
terms = pytest.mark.parametrize("term", [None, barrier], ids=["plain", "barrier"])
alone = pytest.mark.parametrize("alone", [True, False], ids=["alone", "with itself"])


def problem(seed=0, n=24, Q=2, D=3, spread=0.7):
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(n, D))
    weight = rng.uniform(0.3, 2.0, n)
    return spread * rng.normal(size=(n, Q)), Y - np.average(Y, axis=0, weights=weight), weight


@pytest.mark.parametrize("profile", [*PROFILES.values(), Gaussian(GAUSSIAN_CUT)])
@alone
@terms
@pytest.mark.parametrize("Q", [1, 2, 3, 5])
def test_the_definition_has_the_gradient_that_differences_have(profile, alone, term, Q):
    X, Y, weight = problem(Q=Q, spread=0.4)
    found = regression_reference(X, Y, weight, profile, alone, term).gradient
    step, expected = 1e-6, np.empty(X.shape)
    for at in np.ndindex(X.shape):
        nudge = np.zeros(X.shape)
        nudge[at] = step
        up, down = (regression_reference(X + sign * nudge, Y, weight, profile, alone, term).value for sign in (1, -1))
        expected[at] = (up - down) / (2 * step)
    assert_allclose(found, expected, atol=2e-8 * (1 + np.abs(expected).max()))


@profiles
def test_split_gives_value_and_slope_in_place(profile):
    s = np.random.default_rng(0).uniform(0, 3, (5, 7))
    s[0, 0] = profile.reach**2 if np.isfinite(profile.reach) else 40.0
    offset, slope = profile.pairwise.line
    k, g, factor = profile.pairwise.split(offset + slope * s, np.empty(s.shape))
    assert_allclose(k, profile.value(s), rtol=1e-13)
    assert_allclose(factor * g, profile.slope(s), rtol=1e-13)


def test_relative_values_of_far_rows_are_exact_ratios():
    X = np.array([[0.0, 0.0], [0.5, 0.0], [0.0, 2.0], [3.0, 0.0]])
    k, level = relative_gaussian(X, np.array([3]))
    s = np.square(X[3] - X).sum(axis=1)
    assert_allclose(level * k[0, :3], Gaussian().value(s[:3]), rtol=1e-12)
    assert k[0, 3] == 0
    assert k[0].max() == 1.0


@pytest.mark.parametrize("away", [1e2, 1e6, 1e9])
def test_relative_values_stay_exact_however_far_the_row_is(away):
    X = np.array([[0.0, 0.0], [0.0, 0.75], [away, 0.5]])
    k, _ = relative_gaussian(X, np.array([2]))
    assert_allclose(k[0], [np.exp(-0.5 * (0.5**2 - 0.25**2)), 1.0, 0.0], rtol=1e-12)
    assert_array_equal(k, relative_gaussian(X - X[0], np.array([2]))[0])
