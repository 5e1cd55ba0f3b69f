"""Coordinates from kernels: inner products and distances are the kernel's own, for training rows and for others."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import rbf_kernel

from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.kernel_manifolds.feature_kernels import (
    KERNEL_NAMES,
    PlainFeatures,
    kernel_features,
    l1_kernel,
    make_kernel,
)

rng = np.random.default_rng(0)
ROWS, OTHERS = rng.uniform(0.1, 1, (25, 4)), rng.uniform(0.1, 1, (7, 4))
WEIGHT = rng.uniform(0.5, 2, 25)


def squared(features, A, B):
    """Squared distances in feature space, B among the training rows."""
    return cdist(features.coordinates(A), features.coordinates(B), "sqeuclidean") + features.beyond(A)[:, None]


@pytest.mark.parametrize("name", [name for name in KERNEL_NAMES if name != "sigmoid"])
def test_distances_are_the_kernels_own(name):
    kernel = make_kernel(name, None)
    features = kernel_features(kernel, ROWS, WEIGHT)
    for A in (ROWS, OTHERS):
        own = np.array([kernel(row, row)[0, 0] for row in A[:, None]])
        theirs = np.array([kernel(row, row)[0, 0] for row in ROWS[:, None]])
        expected = own[:, None] + theirs - 2 * kernel(A, ROWS)
        assert_allclose(squared(features, A, ROWS), expected, atol=1e-8)


def test_l1_distances_become_squared_distances():
    features = kernel_features(l1_kernel, ROWS, WEIGHT)
    assert_allclose(squared(features, OTHERS, ROWS), cdist(OTHERS, ROWS, "cityblock"), atol=1e-9)


def test_the_mean_of_the_training_rows_is_the_origin():
    Z = kernel_features(make_kernel("rbf", {"gamma": 2.0}), ROWS, WEIGHT).coordinates(ROWS)
    assert_allclose(WEIGHT @ Z, 0, atol=1e-10)


def test_a_conditionally_positive_definite_kernel_serves_and_gives_what_its_definite_twin_gives():
    minus = kernel_features(lambda A, B: -0.5 * cdist(A, B, "cityblock"), ROWS, WEIGHT)
    definite = kernel_features(l1_kernel, ROWS, WEIGHT)
    assert_allclose(squared(minus, OTHERS, ROWS), squared(definite, OTHERS, ROWS), atol=1e-9)


def test_the_linear_kernel_is_the_data_themselves():
    features = kernel_features(make_kernel("linear", None), ROWS, np.ones(25))
    plain = PlainFeatures(ROWS.mean(axis=0))
    assert features.span.basis.shape[1] == 4
    assert_allclose(
        cdist(features.coordinates(OTHERS), features.coordinates(ROWS)),
        cdist(plain.coordinates(OTHERS), plain.coordinates(ROWS)),
        atol=1e-10,
    )


def test_a_given_matrix_is_the_kernel_evaluated():
    kernel = make_kernel("rbf", {"gamma": 1.0})
    evaluated, given = kernel_features(kernel, ROWS, WEIGHT), kernel_features(None, kernel(ROWS, ROWS), WEIGHT)
    assert_allclose(given.coordinates(kernel(OTHERS, ROWS)), evaluated.coordinates(OTHERS), atol=1e-9)


def test_options_reach_the_kernel():
    assert_allclose(make_kernel("rbf", {"gamma": 3.0})(ROWS, OTHERS), rbf_kernel(ROWS, OTHERS, gamma=3.0))
    assert_allclose(
        make_kernel(lambda A, B, power: (A @ B.T) ** power, {"power": 2})(ROWS, OTHERS), (ROWS @ OTHERS.T) ** 2
    )


def test_kernels_that_cannot_serve_are_refused():
    with pytest.raises(InvalidDataError, match="not conditionally positive definite"):
        kernel_features(lambda A, B: -(A @ B.T), ROWS, WEIGHT)
    with pytest.raises(InvalidDataError, match="not symmetric"):
        kernel_features(None, rng.normal(size=(5, 5)), np.ones(5))
    with pytest.raises(InvalidParameterError, match=r"returned shape \(25,\)"):
        kernel_features(lambda A, B: np.ones(len(A)), ROWS, WEIGHT)
    with pytest.raises(InvalidParameterError, match="finite"):
        kernel_features(lambda A, B: np.full((len(A), len(B)), np.nan), ROWS, WEIGHT)
