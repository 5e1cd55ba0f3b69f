"""Kernels that each have a width of their own."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.densities import adaptive_density, components, near, reference, rows

from prinfold.density.adaptive import AdaptiveDensity
from prinfold.density.adaptive_sums import ScaledSums
from prinfold.density.bandwidths import BANDWIDTHS
from prinfold.density.densities import Derivatives, KernelDensity
from prinfold.density.ridges.mean_shift import Flow
from prinfold.exceptions import InvalidParameterError


@pytest.mark.parametrize("D", [1, 2, 3, 5])
def test_kernels_of_one_width_are_a_kernel_density(D):
    X, w = rows(D)
    one, many = KernelDensity(X, w, 0.3, "exact"), AdaptiveDensity(X, w, np.full(len(X), 0.3), "exact")
    places = near(one)
    at, expected = many.derivatives(places), one.derivatives(places)
    for a, b in zip(at, expected, strict=True):
        assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    assert_allclose(many.shift(places, at), one.shift(places, expected), atol=1e-10)
    assert_allclose(many.length(places), 0.3)


@pytest.mark.parametrize("D", [1, 2, 3, 5])
def test_mean_shift_of_many_widths_is_that_of_their_precisions(D):
    density = adaptive_density(D, accuracy="exact")
    X = near(density)
    at = density.derivatives(X)
    d = density.rows - X[:, None]
    h = density.bandwidths
    share = density.weight * h**-D * np.exp(-0.5 * np.square(d).sum(axis=2) / h**2)
    share /= h**2
    mean = share @ density.rows / share.sum(axis=1, keepdims=True)
    assert_allclose(density.shift(X, at), mean - X, atol=1e-9)
    assert_array_equal(density.shift(X, Derivatives(*at)), density.shift(X, at))  # found again where it was lost


@pytest.mark.parametrize("tolerance", [1e-2, 1e-6])
@pytest.mark.parametrize("D", [1, 2, 3, 5])
def test_what_is_out_of_reach_of_many_widths_is_within_the_tolerance(D, tolerance):
    rng = np.random.default_rng(0)
    X, h = rng.uniform(-15, 15, (400, D)), np.exp(rng.uniform(-3, 0.5, 400))
    sums = ScaledSums(X, np.ones(400), h, tolerance)
    density = AdaptiveDensity(X, np.ones(400), h)
    for off in (0.0, 2.0, 60.0):
        Z = near(density, 100, off=off)
        expected = reference(components(density), Z) + 0.5 * D * np.log(2 * np.pi)
        lost = 1.0 - np.exp(sums.derivatives(Z).log_sum - expected)
        assert (np.abs(lost - 0.5 * tolerance) <= 0.5 * tolerance + 1e-9).all()


def test_widths_may_differ_by_orders_and_rows_of_no_weight_have_none():
    X, w = rows(2)
    h = 10.0 ** np.random.default_rng(0).uniform(-4, 1, len(X))
    w[::7] = 0.0
    density = AdaptiveDensity(X, w, h)
    kept = w > 0
    Z = np.concatenate([X[:40], X[:40] + 1e-3, X[:10] + 30.0])
    expected = reference((w[kept], X[kept], h[kept, None, None] ** 2 * np.eye(2)), Z)
    assert_allclose(density.log_density(Z), expected, rtol=1e-6, atol=1e-6)


def test_bandwidths_by_neighbours_follow_the_crowd_and_give_a_ridge():
    rng = np.random.default_rng(0)
    t = rng.uniform(0, 1, 1500) ** 3
    X = np.column_stack([4 * t, np.sin(6 * t)]) + (0.02 + 0.1 * t[:, None]) * rng.normal(size=(1500, 2))
    h = BANDWIDTHS["neighbors"](X, np.ones(1500), 1, rng)
    assert h[t > 0.8].mean() > 2 * h[t < 0.1].mean()
    density = AdaptiveDensity(X, np.ones(1500), h)
    found = Flow(density, 1)(X[::20])
    assert (found.status == 0).mean() > 0.9
    at = density.derivatives(found.points)
    across = at.gradient - np.einsum("nia,nja,nj->ni", found.tangent, found.tangent, at.gradient)
    settled = found.status == 0
    assert (np.linalg.norm(across, axis=1) * density.length(found.points))[settled].max() < 1e-5


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (np.ones(3), r"one bandwidth for each of 4 rows, got shape \(3,\)"),
        (np.array([1.0, 1.0, 1.0, 0.0]), "positive and finite, got 0.0 to 1.0"),
    ],
)
def test_bandwidths_that_cannot_be_are_refused(given, match):
    with pytest.raises(InvalidParameterError, match=match):
        AdaptiveDensity(np.zeros((4, 2)), np.ones(4), given)
