"""The noise as seen from latent points: right where the truth is known, and defined where there is nothing to see."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prinfold import datasets
from prinfold.exceptions import InvalidDataError
from prinfold.kernel_manifolds.noise_level import neighborhood_noise, noise_level
from prinfold.numerics.radial_kernels import PROFILES

GAUSSIAN = PROFILES["gaussian"]


def curve(n, D, noise, seed=0):
    """Rows about a gentle curve, with their true places in bandwidths of a fortieth of its length."""
    rng = np.random.default_rng(seed)
    t = np.sort(rng.uniform(0, 1, n))
    clean = np.stack([np.cos(3 * t), np.sin(3 * t), *(0.2 * t**2 for _ in range(D - 2))], axis=1)
    return 40 * t[:, None], clean + noise * rng.standard_normal((n, D)), np.ones(n)


def by_hand(X, Y, weight):
    """The definition, one row at a time, with Gaussian weights."""
    out = []
    for i in range(len(X)):
        others = np.delete(np.arange(len(X)), i)
        k = weight[others] * np.exp(-0.5 * np.square(X[others] - X[i]).sum(axis=1))
        A = np.column_stack([np.ones(len(others)), X[others] - X[i]])
        solve = np.linalg.solve(A.T @ (k[:, None] * A), (k[:, None] * A).T)
        plane = solve @ Y[others]
        tangent = np.linalg.qr(plane[1:].T)[0]
        left = Y[i] - plane[0]
        left = left - tangent @ (tangent.T @ left)
        out.append(left @ left / (1 + solve[0] @ solve[0]))
    return np.average(out, weights=weight)


@pytest.mark.parametrize("Q", [1, 2])
def test_it_is_what_the_definition_says(Q):
    rng = np.random.default_rng(1)
    X, Y, weight = rng.normal(size=(60, Q)), rng.normal(size=(60, 4)), rng.integers(1, 4, 60).astype(float)
    assert_allclose(noise_level(X, Y, weight, GAUSSIAN), by_hand(X, Y, weight), rtol=1e-8)


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize(("D", "noise"), [(2, 0.02), (2, 0.1), (10, 0.05)])
def test_it_finds_the_noise_of_a_gentle_curve(name, D, noise):
    levels = [noise_level(*curve(400, D, noise, seed), PROFILES[name]) for seed in range(5)]
    assert_allclose(np.mean(levels), (D - 1) * noise**2, rtol=0.1)


def test_it_does_not_matter_how_far_along_the_curve_a_row_was_put():
    X, Y, weight = curve(600, 3, 0.02)
    moved = X + 0.3 * np.random.default_rng(2).standard_normal(X.shape)
    assert_allclose(noise_level(moved, Y, weight, GAUSSIAN), 2 * 0.02**2, rtol=0.2)


def test_noise_goes_with_the_square_of_the_scale_and_not_with_the_place_or_the_order():
    X, Y, weight = curve(100, 3, 0.05)
    here = noise_level(X, Y, weight, GAUSSIAN)
    rotation = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    order = np.random.default_rng(4).permutation(100)
    assert_allclose(noise_level(X, 7 * Y @ rotation + 5, weight, GAUSSIAN), 49 * here, rtol=1e-8)
    assert_allclose(noise_level(X[order], Y[order], weight, GAUSSIAN), here, rtol=1e-8)


def test_straight_data_without_noise_have_none():
    X = np.linspace(0, 30, 50)[:, None]
    assert noise_level(X, X @ [[1.0, 2.0, -1.0]], np.ones(50), GAUSSIAN) < 1e-20


@pytest.mark.parametrize("name", PROFILES)
def test_defined_in_empty_places_and_for_too_few_rows(name):
    X, Y, weight = curve(50, 3, 0.05)
    X[7] += 1e4
    X[8] = X[9]
    assert 0 < noise_level(X, Y, weight, PROFILES[name]) < np.inf
    assert noise_level(np.zeros_like(X), Y, weight, PROFILES[name]) < np.inf
    assert noise_level(X[:4], Y[:4], weight[:4], PROFILES[name]) == 0.0
    assert noise_level(X, Y[:, :1], weight, PROFILES[name]) == 0.0


# ------------------------------------------------------------------------------------------ neighbours in data space


@pytest.mark.parametrize(("n", "noise"), [(300, 0.05), (300, 0.1), (300, 0.2), (1000, 0.1)])
def test_neighbours_show_the_noise_of_a_half_circle_whether_it_is_narrow_or_wide(n, noise):
    levels = []
    for seed in range(3):
        X = datasets.make_half_circle(n, noise=noise, rng=seed).X
        levels.append(neighborhood_noise(X, np.ones(n), 1))
    assert_allclose(np.mean(levels), noise**2, rtol=0.25)


@pytest.mark.parametrize("D", [3, 10, 30])
def test_neighbours_in_a_shapeless_cloud_show_nothing(D):
    X = np.random.default_rng(0).standard_normal((300, D))
    assert neighborhood_noise(X, np.ones(300), 2) == np.inf


def test_disorder_of_latent_points_has_no_part_in_what_neighbours_show():
    X, Y, weight = curve(400, 3, 0.02)
    shuffled = np.random.default_rng(5).permutation(X)
    assert noise_level(shuffled, Y, weight, GAUSSIAN) > 100 * neighborhood_noise(Y, weight, 1)


def test_neighbours_of_repeated_and_of_few_rows():
    _, Y, weight = curve(50, 3, 0.05)
    assert neighborhood_noise(np.repeat(Y, 2, axis=0), np.ones(100), 1) < np.inf
    assert neighborhood_noise(Y[:5], weight[:5], 1) == np.inf
    assert neighborhood_noise(Y[:, :1], weight, 1) == 0.0
    assert neighborhood_noise(np.full((50, 3), 0.1), weight, 1) == 0.0


@pytest.mark.parametrize("unit", [1e-300, 1e-308, 5e-324])
def test_latent_points_that_cannot_be_counted_in_bandwidths_are_refused(unit):
    X, Y, weight = curve(80, 3, 0.05)
    with (
        np.errstate(over="ignore"),
        pytest.raises(InvalidDataError, match="latent points in bandwidths must be finite"),
    ):
        noise_level(X / unit, Y, weight, GAUSSIAN)


@pytest.mark.parametrize(("noise", "seed"), [(0.05, 0), (0.05, 1), (0.07, 0), (0.07, 1)])
def test_arms_that_lie_close_do_not_hide_the_noise(noise, seed):
    """No neighbourhood on such a spiral is clearly longer than wide: larger ones hold the next arm."""
    data = datasets.make_spiral(300, noise=noise, rng=seed)
    assert 0.5 < neighborhood_noise(data.X, np.ones(300), 1) / noise**2 < 2.0
