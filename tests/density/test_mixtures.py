"""Mixtures of a few normal densities, and ratios of two densities."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.mixture import GaussianMixture
from tests.densities import kernel_density, mixture_density, near, rows, slopes

from prinfold.density.densities import KernelDensity
from prinfold.density.mixtures import MixtureDensity, RatioDensity
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.files import _decode, _encode, _Source


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("D", [1, 2, 5])
def test_a_mixture_is_what_scikit_learn_says(kind, D):
    X, _ = rows(D)
    fitted = GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
    density = MixtureDensity.of(fitted)
    assert_allclose(density.log_density(X), fitted.score_samples(X), rtol=1e-9, atol=1e-9)


def test_mean_shift_of_one_normal_density_goes_to_its_mean_at_once():
    density = mixture_density(3, 1)
    X = near(density)
    at = density.derivatives(X)
    assert_allclose(X + density.shift(X, at), np.broadcast_to(density.means, X.shape), atol=1e-9)
    assert_allclose(at.hessian, np.broadcast_to(-np.linalg.inv(density.covariances[0]), at.hessian.shape), atol=1e-8)
    trace = np.trace(np.linalg.inv(density.covariances[0]))
    assert_allclose(density.length(X), (trace / 3) ** -0.5)


def test_mean_shift_of_a_mixture_climbs_and_ends_where_the_gradient_does():
    density = mixture_density(2)
    X = near(density, 8)
    for _ in range(3000):
        before = density.log_density(X)
        X = X + density.shift(X, density.derivatives(X))
        assert (density.log_density(X) >= before - 1e-12).all()
    assert_allclose(density.derivatives(X).gradient, 0.0, atol=1e-6)


def test_blocks_of_a_mixture_are_the_whole(monkeypatch):
    density = mixture_density(3)
    X = near(density, 40)
    expected = density.derivatives(X)
    monkeypatch.setattr("prinfold.density.mixtures._NUMBERS_AT_ONCE", 90)
    for one, two in zip(density.derivatives(X), expected, strict=True):
        assert_allclose(one, two, rtol=1e-12, atol=1e-12)
    assert density.derivatives(X[:0]).hessian.shape == (0, 3, 3)


def test_a_ratio_is_the_difference_of_logarithms():
    top, bottom = kernel_density(2, "number", accuracy="exact"), mixture_density(2)
    ratio = RatioDensity(top, bottom)
    X = near(top)
    at = ratio.derivatives(X)
    assert_allclose(ratio.log_density(X), top.log_density(X) - bottom.log_density(X))
    assert_allclose(at.gradient, slopes(ratio.log_density, X, 1e-5), atol=1e-6)
    assert_allclose(at.hessian, slopes(lambda x: ratio.derivatives(x).gradient, X, 1e-5), atol=1e-5)
    assert_allclose(ratio.shift(X, at), 0.09 * at.gradient)
    assert_array_equal(ratio.length(X), top.length(X))
    arrays = {}
    assert_array_equal(
        _decode(_encode(ratio, "ratio", arrays), _Source(arrays), "ratio").log_density(X), ratio.log_density(X)
    )


def test_the_edge_of_a_mask_is_no_ridge_of_a_ratio():
    """Uniform rows in a square: the density bends most at the edges, but relative to the mask it is flat throughout."""
    rng = np.random.default_rng(0)
    X, mask = rng.uniform(0, 1, (4000, 2)), rng.uniform(0, 1, (40_000, 2))
    density = KernelDensity(X, np.ones(4000), 0.1)
    ratio = RatioDensity(density, KernelDensity(mask, np.ones(40_000), 0.1))
    edge = np.column_stack([np.full(20, 0.02), np.linspace(0.3, 0.7, 20)])
    assert (
        0.1 * np.abs(ratio.derivatives(edge).gradient).max()
        < 0.3
        < 0.1 * density.derivatives(edge).gradient[:, 0].min()
    )


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"means": np.zeros(3)}, r"means must be finite numbers \(K, D\), got an array of shape \(3,\)"),
        ({"weights": np.ones(3)}, "expected 2 weights"),
        ({"weights": np.array([1.0, -1.0])}, "none negative"),
        ({"covariances": np.ones((2, 3))}, r"expected covariances \(2, 3, 3\), got shape \(2, 3\)"),
        ({"covariances": np.zeros((2, 3, 3))}, "positive definite"),
    ],
)
def test_mixtures_that_cannot_be_are_refused(given, match):
    right = {"weights": np.ones(2), "means": np.zeros((2, 3)), "covariances": np.stack([np.eye(3)] * 2)}
    with pytest.raises(InvalidDataError, match=match):
        MixtureDensity(**{**right, **given})


def test_what_is_no_mixture_and_no_density_is_refused():
    with pytest.raises(
        InvalidParameterError, match="fitted GaussianMixture of scikit-learn, got GaussianMixture; call"
    ):
        MixtureDensity.of(GaussianMixture())
    with pytest.raises(InvalidParameterError, match=r"bottom must be a density with .* got str"):
        RatioDensity(mixture_density(2), "mask")


def test_a_ratio_of_long_kernels_takes_their_steps():
    """H ∇ log p: the square of one length would be too long a step across the kernels, and too short along them."""
    X, H = np.random.default_rng(0).normal(size=(50, 2)), np.array([[1.0, 0.04], [0.04, 0.0025]])
    ratio = RatioDensity(KernelDensity(X, np.ones(50), H), KernelDensity(2 * X, np.ones(50), H))
    at = ratio.derivatives(X[:9])
    assert_allclose(ratio.shift(X[:9], at), at.gradient @ H)
