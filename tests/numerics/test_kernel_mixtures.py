"""Kernel sums at many places, held against their definitions and against differences."""

from __future__ import annotations

import subprocess
import sys
from math import inf

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prinfold.numerics.kernel_mixtures import Mixture
from prinfold.numerics.radial_kernels import GAUSSIAN_CUT, PROFILES, Gaussian

KERNELS = {**PROFILES, "truncated": Gaussian(GAUSSIAN_CUT)}
kernels = pytest.mark.parametrize("profile", KERNELS.values(), ids=KERNELS.keys())
dimensions = pytest.mark.parametrize("Q", [1, 2, 3])
NUMPY, COMPILED = 10**9, 1


@pytest.fixture(autouse=True, params=[NUMPY, COMPILED], ids=["numpy", "compiled"])
def way(request, monkeypatch):
    """Everything here holds for sums over all pairs by NumPy and for compiled ones over near pairs."""
    monkeypatch.setattr("prinfold.numerics.kernel_mixtures._COMPILED_FROM", request.param)


def mixture(profile, Q, m=40, seed=0):
    rng = np.random.default_rng(seed)
    return Mixture(rng.uniform(-1.2, 1.2, (m, Q)), rng.uniform(0.2, 3.0, m), profile)


def reference(mix, Z):
    """The density by its definition, a place and a centre at a time."""
    total = [
        sum(
            w * float(mix.profile.value(np.array(((z - c) ** 2).sum())))
            for c, w in zip(mix.centers, mix.weight, strict=True)
        )
        for z in Z
    ]
    return np.array(total) / mix.weight.sum()


def slopes(function, Z, h=1e-5):
    """(n, …, Q) central differences."""
    steps = h * np.eye(Z.shape[1])
    return np.stack([(function(Z + e) - function(Z - e)) / (2 * h) for e in steps], axis=-1)


@kernels
@dimensions
def test_the_density_is_its_definition(profile, Q):
    mix = mixture(profile, Q)
    Z = np.random.default_rng(1).uniform(-2, 2, (50, Q))
    assert_allclose(np.exp(mix.log_density(Z)), reference(mix, Z), rtol=1e-12, atol=1e-300)


@kernels
@dimensions
def test_gradient_and_hessian_are_derivatives(profile, Q):
    mix = mixture(profile, Q)
    Z = np.random.default_rng(2).uniform(-1, 1, (30, Q))
    value, gradient, hessian = mix.log_density_hessian(Z)
    assert_allclose(gradient, slopes(mix.log_density, Z), rtol=1e-6, atol=1e-7)
    # The quartic kernel's second derivative jumps at its rim, which differences straddle for a pair in 10⁴.
    difference = slopes(lambda at: mix.log_density_gradient(at)[1], Z, 1e-6)
    assert_allclose(np.median(np.abs(hessian - difference)), 0.0, atol=1e-7)
    assert (np.abs(hessian - difference).max(axis=(1, 2)) < 1e-5).mean() > 0.9
    assert_array_equal(mix.log_density_gradient(Z)[0], value)
    assert_array_equal(mix.log_density_gradient(Z)[1], gradient)


@kernels
@dimensions
def test_the_mean_is_its_definition_and_its_jacobian_the_derivative(profile, Q):
    mix, Y = mixture(profile, Q), np.random.default_rng(3).normal(size=(40, 4))
    Z = np.random.default_rng(4).uniform(-1, 1, (20, Q))
    weight = mix.weight * profile.value(((Z[:, None] - mix.centers) ** 2).sum(axis=2))
    assert_allclose(mix.mean(Z, Y), weight @ Y / weight.sum(axis=1, keepdims=True), rtol=1e-12, atol=1e-13)
    assert_allclose(mix.mean_jacobian(Z, Y), slopes(lambda at: mix.mean(at, Y), Z), rtol=1e-5, atol=1e-6)


@kernels
@dimensions
def test_the_bend_of_the_mean_is_the_derivative_of_its_jacobian(profile, Q):
    mix, Y = mixture(profile, Q), np.random.default_rng(3).normal(size=(40, 4))
    rng = np.random.default_rng(11)
    Z, R = rng.uniform(-1, 1, (20, Q)), rng.normal(size=(20, 4))
    difference = slopes(lambda at: np.einsum("ndq,nd->nq", mix.mean_jacobian(at, Y), R), Z, 1e-6)
    off = np.abs(mix.mean_bend(Z, Y, R) - difference).max(axis=(1, 2))
    # As above: a rim may fall between the places of a difference.
    assert (off < 1e-5 * (1 + np.abs(difference).max(axis=(1, 2)))).mean() > 0.9


@kernels
def test_constant_values_have_no_slope_however_far_from_zero(profile):
    mix = mixture(profile, 2)
    Z = np.random.default_rng(5).uniform(-1, 1, (20, 2))
    Y = np.full((40, 1), 1e6)
    assert_allclose(mix.mean(Z, Y), 1e6, rtol=1e-14)
    assert_allclose(mix.mean_jacobian(Z, Y), 0.0, atol=1e-7)


@kernels
@pytest.mark.parametrize("far", [30.0, 1e6, 1e200])
def test_far_from_everything_the_nearest_centre_stands_for_all(profile, far):
    mix, Y = Mixture(np.array([[0.0], [1.0], [2.0]]), np.ones(3), profile), np.array([[5.0], [6.0], [9.0]])
    Z = np.array([[far], [-far]])
    log_p, gradient, hessian = mix.log_density_hessian(Z)
    assert (log_p < -10).all()
    assert np.isfinite(gradient).all()
    assert np.isfinite(hessian).all()
    assert np.isfinite(mix.mean_jacobian(Z, Y)).all()
    if far < 1e100:
        assert_allclose(mix.mean(Z, Y), [[9.0], [5.0]], atol=1e-10)
    assert np.isfinite(mix.mean(Z, Y)).all()
    if profile.reach < inf:
        assert (log_p == -inf).all()
        assert (gradient == 0).all()


@kernels
def test_blocks_and_threads_change_nothing(profile, monkeypatch):
    mix, Y = mixture(profile, 2), np.random.default_rng(6).normal(size=(40, 3))
    Z = np.random.default_rng(7).uniform(-3, 3, (100, 2))
    whole = (*mix.log_density_hessian(Z), mix.mean(Z, Y), mix.mean_jacobian(Z, Y))
    monkeypatch.setattr("prinfold.numerics.kernel_mixtures._BLOCK_PAIRS", 1)
    monkeypatch.setattr("prinfold.numerics.kernel_mixtures_truncated._PART_PAIRS", 64)
    monkeypatch.setattr("prinfold.numerics.kernel_mixtures._ROWS_ON_THREADS", 2)
    cut = (*mix.log_density_hessian(Z), mix.mean(Z, Y), mix.mean_jacobian(Z, Y))
    for a, b in zip(whole, cut, strict=True):
        assert_allclose(a, b, rtol=1e-13, atol=1e-14)


@kernels
def test_the_density_of_a_row_is_the_same_alone_to_the_last_bit(profile):
    mix = mixture(profile, 2)
    Z = np.random.default_rng(8).uniform(-2, 2, (60, 2))
    assert_array_equal(mix.log_density(Z), np.concatenate([mix.log_density(z[None]) for z in Z]))


@kernels
@pytest.mark.parametrize("Q", [1, 2, 3, 5])
@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0, 1e7])
@pytest.mark.parametrize("uneven", [0.0, 20.0])
def test_compiled_sums_are_those_over_all_pairs(profile, Q, spread, uneven, monkeypatch):
    """Whatever the shape of the cloud, however uneven its weights, and for places inside, at rims and far away."""
    rng = np.random.default_rng(12)
    mix = Mixture(spread * rng.normal(size=(60, Q)), np.exp(uneven * rng.uniform(-1, 1, 60)), profile)
    near = mix.centers + rng.normal(size=(60, Q))
    rim = mix.centers + 0.999 * min(profile.reach, 9.0) * np.eye(Q)[0]
    Z = np.concatenate([mix.centers, near, rim, 10.0 * spread * rng.normal(size=(20, Q)), np.full((1, Q), 1e60)])
    Y, R = rng.normal(size=(60, 3)), rng.normal(size=(len(Z), 3))

    def sums(compiled_from):
        monkeypatch.setattr("prinfold.numerics.kernel_mixtures._COMPILED_FROM", compiled_from)
        twin = Mixture(mix.centers, mix.weight, profile)
        return *twin.log_density_hessian(Z), twin.mean(Z, Y), twin.mean_jacobian(Z, Y), twin.mean_bend(Z, Y, R)

    plain, fast = sums(NUMPY), sums(COMPILED)
    assert_allclose(fast[0], plain[0], rtol=1e-12, atol=1e-12)
    assert_allclose(fast[3], plain[3], rtol=1e-12, atol=1e-12)
    # Derivatives are sums of products of slopes that cancel, and are off by rounding of these.
    steep = 1.0 + np.square(plain[1]).sum(axis=1) + np.abs(plain[2]).max(axis=(1, 2))
    for by_numpy, compiled in zip(plain[1:], fast[1:], strict=True):
        off = np.abs(compiled - by_numpy).reshape(len(Z), -1).max(axis=1)
        assert (off <= 1e-12 * steep).all()


def test_few_centres_do_not_load_the_compiler():
    code = (
        "import sys, numpy as np; from prinfold.numerics.kernel_mixtures import Mixture; "
        "from prinfold.numerics.radial_kernels import PROFILES; "
        "Mixture(np.zeros((200, 2)), np.ones(200), PROFILES['quartic']).log_density(np.zeros((50, 2))); "
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@kernels
def test_a_weight_is_a_centre_repeated(profile):
    mix = mixture(profile, 2)
    count = np.random.default_rng(9).integers(1, 4, len(mix.centers))
    weighted = Mixture(mix.centers, count.astype(float), profile)
    repeated = Mixture(np.repeat(mix.centers, count, axis=0), np.ones(count.sum()), profile)
    Z = np.random.default_rng(10).uniform(-1.5, 1.5, (40, 2))
    assert_allclose(np.exp(weighted.log_density(Z)), np.exp(repeated.log_density(Z)), rtol=1e-12, atol=1e-300)


def test_no_rows_give_no_rows():
    mix = mixture(PROFILES["quartic"], 2)
    assert mix.log_density(np.empty((0, 2))).shape == (0,)
    assert mix.mean_jacobian(np.empty((0, 2)), np.ones((40, 3))).shape == (0, 3, 2)
