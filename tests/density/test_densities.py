"""Densities held against their definitions, against differences and against what must not change them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.densities import (
    CASES,
    DIMENSIONS,
    adaptive_density,
    components,
    kernel_density,
    mixture_density,
    near,
    reference,
    rows,
    slopes,
)

from prinfold.density.dense_kernel_sums import DenseSums
from prinfold.density.densities import Density, KernelDensity
from prinfold.density.mixtures import MixtureDensity
from prinfold.density.patches import PatchedSums
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.files import _decode, _encode, _Source

cases = pytest.mark.parametrize("make", CASES.values(), ids=CASES.keys())


# ------------------------------------------------------------------------------------------- the definition


@cases
def test_the_density_is_its_definition(make):
    density = make()
    for off in (0.0, 0.5, 5.0):
        X = near(density, off=off)
        expected = reference(components(density), X)
        assert_allclose(density.log_density(X), expected, rtol=1e-12, atol=2e-6)
        assert_allclose(density.derivatives(X).log_density, expected, rtol=1e-12, atol=2e-6)


@cases
def test_gradient_and_hessian_are_derivatives(make):
    density = make()
    X = near(density, 15)
    at = density.derivatives(X)
    scale = density.length(X)[0]
    # What is out of reach changes from place to place, by less than differences are off.
    assert_allclose(at.gradient * scale, scale * slopes(density.log_density, X, 1e-4 * scale), atol=1e-4)
    bend = slopes(lambda x: density.derivatives(x).gradient, X, 1e-4 * scale)
    assert_allclose(at.hessian * scale**2, bend * scale**2, atol=1e-3)
    assert_allclose(at.hessian, np.swapaxes(at.hessian, 1, 2), rtol=1e-9, atol=1e-9)


@cases
def test_mean_shift_is_a_positive_definite_matrix_times_the_gradient(make):
    density = make()
    X = near(density)
    at = density.derivatives(X)
    shift = density.shift(X, at)
    assert (np.einsum("ni,ni->n", shift, at.gradient) > 0).all()


@cases
def test_a_row_does_not_depend_on_the_others(make):
    density = make()
    X = np.concatenate([near(density, 10), near(density, 2, off=50.0)])
    together, exact = density.derivatives(X), not isinstance(density, MixtureDensity)
    exact = exact and not isinstance(density._sums, DenseSums)
    for i in range(len(X)):
        for one, all_ in zip(density.derivatives(X[i : i + 1]), together, strict=True):
            if exact:
                assert_array_equal(one[0], all_[i])
            else:
                assert_allclose(one[0], all_[i], rtol=1e-10, atol=1e-10)


@cases
@pytest.mark.parametrize("far", [1e3, 1e8, 1e150])
def test_far_rows_have_finite_densities_that_fall_off(make, far):
    density = make()
    D = components(density)[1].shape[1]
    X = np.stack([np.full(D, far), np.full(D, 2 * far)])
    at = density.derivatives(X)
    assert all(np.isfinite(part).all() for part in at)
    assert np.isfinite(density.log_density(X)).all()
    assert np.isfinite(density.shift(X, at)).all()
    if far < 1e100:
        assert at.log_density[0] > at.log_density[1]


@cases
def test_a_density_can_be_written_to_a_file_and_pickled(make):
    density = make()
    arrays = {}
    X = near(density, 5)
    expected = density.derivatives(X).hessian
    for again in (
        _decode(_encode(density, "density", arrays), _Source(arrays), "density"),
        pickle.loads(pickle.dumps(density)),
    ):
        assert_array_equal(again.derivatives(X).hessian, expected)
    assert isinstance(density, Density)


@pytest.mark.parametrize(
    "make",
    [
        *(lambda s=s: kernel_density(2, s) for s in ("number", "columns", "matrix")),
        lambda: adaptive_density(2),
        lambda: mixture_density(2),
    ],
)
def test_densities_integrate_to_one(make):
    assert_allclose(integral(make()), 1.0, rtol=1e-5)


def integral(density):
    """Over a plane, by a grid finer than the kernels."""
    low, high = (f(components(density)[1], axis=0) for f in (np.min, np.max))
    axes = [np.linspace(a - 4, b + 4, 400) for a, b in zip(low, high, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    cell = (axes[0][1] - axes[0][0]) * (axes[1][1] - axes[1][0])
    return np.exp(density.log_density(grid)).sum() * cell


# ----------------------------------------------------------------------------------------- kernels of one shape


@pytest.mark.parametrize("D", DIMENSIONS)
def test_shapes_that_are_the_same_give_the_same(D):
    X, w = rows(D)
    same = [KernelDensity(X, w, each, "exact") for each in (0.3, np.full(D, 0.3), 0.09 * np.eye(D))]
    places = near(same[0])
    expected = same[0].derivatives(places)
    for other in same[1:]:
        at = other.derivatives(places)
        for one, two in zip(at, expected, strict=True):
            assert_allclose(one, two, rtol=1e-9, atol=1e-9)
        assert_allclose(other.shift(places, at), same[0].shift(places, expected), rtol=1e-9, atol=1e-11)
        assert_allclose(other.length(places), 0.3)


@pytest.mark.parametrize("shape", ["number", "columns", "matrix"])
def test_mean_shift_leads_to_the_mean_of_what_counts(shape):
    density = kernel_density(3, shape, accuracy="exact")
    X = near(density)
    _, mean, covariance = components(density)
    d = mean - X[:, None]
    share = density.weight * np.exp(-0.5 * np.einsum("nmi,ij,nmj->nm", d, np.linalg.inv(covariance[0]), d))
    share /= share.sum(axis=1, keepdims=True)
    assert_allclose(density.shift(X, density.derivatives(X)), share @ mean - X, atol=1e-9)


@pytest.mark.parametrize("D", [2, 3, 5, 12])
@pytest.mark.parametrize("shape", ["number", "matrix"])
def test_rigid_motions_carry_through(D, shape):
    density = kernel_density(D, shape, accuracy="exact")
    rng = np.random.default_rng(3)
    Q, b = np.linalg.qr(rng.normal(size=(D, D)))[0], rng.normal(size=D)
    H = components(density)[2][0]
    with_gradient = KernelDensity(density.rows @ Q.T + b, density.weight, Q @ H @ Q.T, "exact")
    X = near(density)
    before, after = density.derivatives(X), with_gradient.derivatives(X @ Q.T + b)
    assert_allclose(after.log_density, before.log_density, rtol=1e-9)
    assert_allclose(after.gradient, before.gradient @ Q.T, atol=1e-7)
    assert_allclose(after.hessian, Q @ before.hessian @ Q.T, atol=1e-6)


@pytest.mark.parametrize("D", DIMENSIONS)
def test_repeats_are_weights_and_rows_of_no_weight_are_none(D):
    X, _ = rows(D, 60)
    times = np.random.default_rng(0).integers(0, 4, 60)
    one, two = (
        KernelDensity(X, times, 0.3, "exact"),
        KernelDensity(np.repeat(X, times, axis=0), np.ones(times.sum()), 0.3),
    )
    places = near(one)
    for a, b in zip(one.derivatives(places), two.derivatives(places), strict=True):
        assert_allclose(a, b, rtol=1e-6, atol=1e-5)


def test_a_scale_of_weights_changes_nothing_and_of_rows_what_it_must():
    density = kernel_density(2, "number", accuracy="exact")
    X, s = near(density), 1e-30
    heavy = KernelDensity(density.rows, 1e40 * density.weight, 0.3, "exact")
    assert_allclose(heavy.log_density(X), density.log_density(X), rtol=1e-10)
    small = KernelDensity(s * density.rows, density.weight, s * 0.3, "exact")
    assert_allclose(small.log_density(s * X), density.log_density(X) - 2 * np.log(s), rtol=1e-9)


def test_data_far_from_zero_keep_their_digits():
    X, w = rows(2)
    X = np.round((X - 100.0) * 2**20) / 2**20
    places = np.round(near(KernelDensity(X, w, 0.3)) * 2**20) / 2**20
    here, there = KernelDensity(X, w, 0.3, "exact"), KernelDensity(X + 2.0**30, w, 0.3, "exact")
    for one, two in zip(here.derivatives(places), there.derivatives(places + 2.0**30), strict=True):
        assert_allclose(one, two, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("D", [1, 2])
def test_crowds_put_together_stay_near_the_exact_density(D):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, D))
    exact, fast = (KernelDensity(X, np.ones(5000), 0.8, each) for each in ("exact", "compressed"))
    assert isinstance(fast._sums, PatchedSums)
    assert fast._sums.sums._compressed is not None
    places = X[::50]
    for one, two, atol in zip(fast.derivatives(places), exact.derivatives(places), (1e-4, 3e-4, 1e-3), strict=True):
        assert_allclose(one, two, atol=atol)


def test_one_row_and_one_column():
    density = KernelDensity(np.array([[2.0]]), np.array([3.0]), 0.5)
    at = density.derivatives(np.array([[3.0]]))
    assert_allclose(at.log_density, -0.5 * 4.0 - np.log(0.5 * np.sqrt(2 * np.pi)))
    assert_allclose(at.gradient, [[-4.0]])
    assert_allclose(at.hessian, [[[-4.0]]])
    assert_allclose(density.shift(np.array([[3.0]]), at), [[-1.0]])


# --------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({"bandwidth": 0.0}, InvalidParameterError, "bandwidth must be positive and finite, got 0.0"),
        ({"bandwidth": np.nan}, InvalidParameterError, "positive and finite"),
        ({"bandwidth": np.array([1.0, -1.0])}, InvalidParameterError, "bandwidths must be positive"),
        ({"bandwidth": np.ones(3)}, InvalidParameterError, r"one for each column.*got shape \(3,\)"),
        ({"bandwidth": np.array([[1.0, 2.0], [2.0, 1.0]])}, InvalidParameterError, "positive definite"),
        ({"bandwidth": np.array([[1.0, 0.5], [0.0, 1.0]])}, InvalidParameterError, "symmetric"),
        ({"accuracy": "quick"}, InvalidParameterError, "accuracy='quick' is not one of"),
        ({"rows": np.zeros(4)}, InvalidDataError, r"rows \(m, D\) of numbers, got an array of shape \(4,\)"),
        ({"rows": np.empty((0, 2))}, InvalidDataError, r"got an array of shape \(0, 2\)"),
        ({"rows": np.full((4, 2), np.nan)}, InvalidDataError, "must be finite; drop"),
        ({"weight": np.ones(3)}, InvalidDataError, r"one weight for each of 4 rows, got shape \(3,\)"),
        ({"weight": np.zeros(4)}, InvalidDataError, "not all of them zero"),
        ({"weight": np.array([1.0, 1.0, 1.0, -1.0])}, InvalidDataError, "none of them negative"),
    ],
)
def test_what_cannot_be_is_refused(given, error, match):
    right = {"rows": np.arange(8.0).reshape(4, 2), "weight": np.ones(4), "bandwidth": 1.0}
    with pytest.raises(error, match=match):
        KernelDensity(**{**right, **given})
