"""Noise across a surface is the same in every direction; structure is not."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.manifold import trustworthiness

from prinfold import KMM, UKR, datasets
from prinfold.kernel_manifolds.structure_across import has_structure_across, plane_residuals
from prinfold.loops import StopReason


def cap(n=300, columns=12, noise=0.1, seed=0):
    """A piece of a sphere, turned into many columns, with noise in all of them."""
    rng = np.random.default_rng(seed)
    U = rng.uniform(-1, 1, (n, 2))
    clean = np.column_stack([U, np.sqrt(3.0 - np.square(U).sum(axis=1))])
    axes = np.linalg.qr(rng.standard_normal((columns, 3)))[0]
    return clean @ axes.T + noise * rng.standard_normal((n, columns))


def widths(n=300, seed=0):
    """Rows that vary in twelve directions, in each less than in the one before."""
    return np.random.default_rng(seed).standard_normal((n, 12)) * 0.7 ** np.arange(12)


@pytest.mark.parametrize("noise", [0.03, 0.1, 0.2])
@pytest.mark.parametrize("seed", range(3))
def test_a_surface_with_noise_is_no_structure(noise, seed):
    assert not has_structure_across(cap(noise=noise, seed=seed), np.ones(300), 2)


@pytest.mark.parametrize("seed", range(3))
def test_directions_that_differ_are_structure(seed):
    assert has_structure_across(widths(seed=seed), np.ones(300), 2)


def test_where_rows_stand_and_in_which_units_does_not_matter():
    X, rng = widths(), np.random.default_rng(1)
    turned = 1e3 * X @ np.linalg.qr(rng.standard_normal((12, 12)))[0] + 50.0
    weight = rng.uniform(0.5, 2.0, len(X))
    found, again = plane_residuals(X, weight, (3, 8)), plane_residuals(turned, 7.0 * weight, (3, 8))
    assert_allclose(again, 1e6 * found, rtol=1e-8)


def test_residuals_are_those_of_planes_without_the_row():
    """Against eigenvectors of the covariance of the neighbours, row by row."""
    X = widths(90)
    wanted = []
    for i in range(len(X)):
        others = np.delete(X, i, axis=0)
        near = others[np.argsort(np.square(others - X[i]).sum(axis=1))[:40]]
        left = X[i] - near.mean(axis=0)
        across = np.linalg.eigh(np.cov(near.T))[1][:, : 12 - 4]
        wanted.append(np.square(left @ across).sum() / (12 - 4))
    limit = 20 * np.median(wanted)
    assert_allclose(plane_residuals(X, np.ones(90), (4,)), [np.minimum(wanted, limit).mean()])


@pytest.mark.parametrize("shape", [(79, 12), (300, 5)])
def test_too_few_rows_or_columns_count_as_noise(shape):
    X = widths()[: shape[0], : shape[1]]
    assert not has_structure_across(X, np.ones(len(X)), 2)


@pytest.mark.full
@pytest.mark.parametrize("method", [UKR, KMM])
def test_digits_are_structure_and_keep_their_neighbours(method):
    X = datasets.load_digits().X[:500]
    model = method().fit(X)
    assert model.stop_reason_ is StopReason.PLATEAU
    assert trustworthiness(X, model.embedding_, n_neighbors=10) > 0.95
    assert model.candidates_.names[model.candidates_.chosen] == "tsne"
