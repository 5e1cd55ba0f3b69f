"""Each fast kernel against its slow twin, and where twins would lose digits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from prinfold.basis_maps.bases import (
    gaussian_features,
    gaussian_features_gradient,
    harmonic_features,
    harmonic_features_gradient,
)
from prinfold.gtm.softmax import NATURAL, Exponential, leveled_weights, relative_weights
from prinfold.numerics.distances import nearest_squared_distance, squared_distances, squared_distances_reference
from prinfold.numerics.linalg import largest_eigenpairs, solve_symmetric

SEEDS = st.integers(0, 2**32 - 1)


def shares_and_log_sums(log_weight):
    """Weights that sum to one along each row, and the log of each row's sum, by the definition."""
    total = logsumexp(log_weight, axis=1)
    return np.exp(log_weight - total[:, None]), total


@given(seed=SEEDS, n=st.integers(1, 12), m=st.integers(1, 12), d=st.integers(1, 6), far=st.sampled_from([0.0, 1e6]))
def test_squared_distances_equal_their_definition(seed, n, m, d, far):
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(n, d)) + far, rng.normal(size=(m, d)) + far
    fast = squared_distances(A, B)
    np.testing.assert_allclose(fast, squared_distances_reference(A, B), rtol=1e-7, atol=1e-8 if far else 1e-12)
    assert (fast >= 0).all()


def test_squared_distances_leave_their_arguments_alone(rng):
    A, B = rng.normal(size=(5, 2)), rng.normal(size=(4, 2))
    kept = A.copy(), B.copy()
    squared_distances(A, B)
    np.testing.assert_array_equal(A, kept[0])
    np.testing.assert_array_equal(B, kept[1])


@given(seed=SEEDS, n=st.integers(2, 20))
def test_nearest_other_row(seed, n):
    A = np.random.default_rng(seed).normal(size=(n, 3))
    table = squared_distances_reference(A, A)
    np.fill_diagonal(table, np.inf)
    np.testing.assert_allclose(nearest_squared_distance(A), table.min(axis=1))


def test_nearest_other_row_of_few_or_equal_rows():
    np.testing.assert_array_equal(nearest_squared_distance(np.ones((1, 2))), [0.0])
    np.testing.assert_array_equal(nearest_squared_distance(np.ones((3, 2))), np.zeros(3))


@given(seed=SEEDS, spread=st.sampled_from([1.0, 1e3, 1e8]), shift=st.sampled_from([0.0, 1e6, -1e12]))
def test_responsibilities_equal_their_definition(seed, spread, shift):
    log_weight = np.random.default_rng(seed).normal(size=(7, 9)) * spread + shift
    expected, expected_sum = shares_and_log_sums(log_weight.copy())
    largest, total = relative_weights(log_weight)
    np.testing.assert_allclose(largest + np.log(total), expected_sum, rtol=1e-14)
    np.testing.assert_allclose(log_weight / total[:, None], expected, atol=1e-3 if abs(shift) > 1e9 else 1e-9)
    np.testing.assert_array_equal(log_weight.max(axis=1), 1.0)


def test_a_row_far_from_everything_still_has_weights_and_no_subnormal_numbers():
    log_weight = np.array([[-1e300, -2e300, -3e300], [0.0, -700.0, -745.0]])
    largest, total = relative_weights(log_weight)
    np.testing.assert_allclose(log_weight, [[1, 0, 0], [1, 0, 0]], atol=1e-25)
    np.testing.assert_array_equal(largest, [-1e300, 0.0])
    np.testing.assert_array_equal(total, 1.0)
    assert (log_weight > np.finfo(float).tiny).all()


def test_float32_responsibilities_stay_float32_and_normal():
    log_weight = np.array([[0.0, -50.0, -500.0]], dtype=np.float32)
    relative_weights(log_weight)
    assert log_weight.dtype == np.float32
    assert (log_weight > np.finfo(np.float32).tiny).all()


@given(seed=SEEDS, m=st.integers(1, 8))
def test_symmetric_solve(seed, m):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(m + 3, m))
    A, B = root.T @ root + 0.1 * np.eye(m), rng.normal(size=(m, 2))
    kept = A.copy()
    np.testing.assert_allclose(solve_symmetric(A, B), np.linalg.inv(A) @ B, rtol=1e-8, atol=1e-9)
    np.testing.assert_array_equal(A, kept)


@given(seed=SEEDS, rank=st.integers(0, 4))
def test_a_rank_deficient_solve_is_the_pseudo_inverse(seed, rank):
    rng = np.random.default_rng(seed)
    span = np.linalg.qr(rng.normal(size=(5, 5)))[0][:, :rank]
    A = span * rng.uniform(0.1, 1, rank) @ span.T
    truth = rng.normal(size=(5, 3))
    X = solve_symmetric(A, A @ truth)
    np.testing.assert_allclose(X, span @ (span.T @ truth), atol=1e-10)  # no part outside what A determines


@pytest.mark.parametrize("n", [1, 2, 3])
def test_as_many_eigenpairs_are_found_as_are_asked_for_however_many_are_equal(n):
    """LAPACK's dsyevr finds none of the equal ones of some of these matrices, and says nothing."""
    for size in range(4, 90):
        A = (np.eye(size) - 1 / size) / size
        value, vector = largest_eigenpairs(A, n)
        np.testing.assert_allclose(value, np.full(n, 1 / size))
        np.testing.assert_allclose(vector.T @ A @ vector, np.eye(n) / size, atol=1e-14)


@given(seed=SEEDS, n=st.integers(1, 5))
def test_the_largest_eigenpairs_are_those_of_the_whole(seed, n):
    A = np.random.default_rng(seed).normal(size=(6, 6))
    value, vector = largest_eigenpairs(A @ A.T, n)
    np.testing.assert_allclose(value, np.linalg.eigvalsh(A @ A.T)[::-1][:n], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(A @ A.T @ vector, vector * value, atol=1e-9)


@pytest.mark.parametrize("width", [5.0, 50.0])
def test_an_ill_conditioned_solve_gives_a_fit_not_noise(width):
    """Nearly equal basis functions: cond(A) passes 1e16, where Cholesky may succeed and return noise."""
    grid = np.linspace(-1, 1, 40)[:, None]
    Phi = gaussian_features(grid, np.linspace(-1, 1, 15)[:, None], width)
    target = 1.0 + 0.3 * grid
    W = solve_symmetric(Phi.T @ Phi, Phi.T @ target)
    assert np.isfinite(W).all()
    np.testing.assert_allclose(Phi @ W, target, atol=1e-3)


def difference(function, E, step=1e-6):
    """Central differences along each column of E: (n, M, e)."""
    moved = [step * row for row in np.eye(E.shape[1])]
    return np.stack([(function(E + d) - function(E - d)) / (2 * step) for d in moved], axis=2)


def test_gradient_of_gaussians(rng):
    E, centers = rng.normal(size=(6, 3)), rng.normal(size=(4, 3))
    numeric = difference(lambda e: gaussian_features(e, centers, 0.7), E)
    np.testing.assert_allclose(gaussian_features_gradient(E, centers, 0.7), numeric, atol=1e-8)


def test_gaussians_are_one_at_their_centres_and_fall_to_zero(rng):
    centers = rng.normal(size=(4, 3))
    np.testing.assert_allclose(np.diag(gaussian_features(centers, centers, 0.5)), 1.0)
    far = gaussian_features(centers + 1e8, centers, 0.5)
    np.testing.assert_array_equal(far, 0.0)
    np.testing.assert_array_equal(gaussian_features_gradient(centers + 1e8, centers, 0.5), 0.0)


def test_gradient_of_harmonics():
    angle = np.linspace(-4, 4, 11)
    numeric = difference(lambda e: harmonic_features(e[:, 0], 5), angle[:, None])[:, :, 0]
    np.testing.assert_allclose(harmonic_features_gradient(angle, 5), numeric, atol=1e-7)


def test_harmonics_are_orthogonal_round_the_circle():
    Phi = harmonic_features(2 * np.pi * np.arange(24) / 24, 5)
    np.testing.assert_allclose(Phi.T @ Phi, 12 * np.eye(10), atol=1e-12)


@given(seed=SEEDS, spread=st.sampled_from([1.0, 30.0, 300.0]), shift=st.floats(-800, 800), k=st.integers(1, 9))
@pytest.mark.parametrize("exponential", [NATURAL, Exponential(np.exp2, np.log2(np.e))], ids=["of e", "of two"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_levelled_weights_are_right_or_say_that_they_are_not(seed, spread, shift, k, dtype, exponential):
    log_weight = (np.random.default_rng(seed).normal(size=(20, k)) * spread + shift).astype(dtype)
    log_weight *= dtype(exponential.per_e)
    expected, expected_sum = shares_and_log_sums(log_weight.astype(np.float64) / exponential.per_e)
    total, far = leveled_weights(log_weight, exponential)
    sound = np.setdiff1d(np.arange(20), far)
    digits = 1e-12 if dtype is np.float64 else 2e-5
    np.testing.assert_allclose(np.log(total[sound], dtype=float), expected_sum[sound], rtol=digits, atol=digits)
    np.testing.assert_allclose(log_weight[sound] / total[sound, None], expected[sound], atol=digits)
    assert (log_weight >= np.finfo(dtype).tiny).all(), "subnormal numbers are slow"
    within = np.abs(expected_sum) < (500 if dtype is np.float64 else 40)
    assert not within[far].any(), "rows near enough to zero are not computed twice"


def test_what_is_not_a_number_is_never_sound():
    log_weight = np.array([[0.0, np.nan], [0.0, 0.0], [np.inf, 0.0], [-np.inf, -np.inf]])
    np.testing.assert_array_equal(leveled_weights(log_weight)[1], [0, 2, 3])
