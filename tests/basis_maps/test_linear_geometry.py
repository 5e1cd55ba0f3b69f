"""Nearest points of wide tables are found within the span of the surface, and are those of all columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose

from prinfold import GTM, PPS, GTMSequence, PrincipalSurface, RegularizedManifold
from prinfold.geometry.column_span import ColumnSpan
from prinfold.geometry.metric import stretch

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")

QUICK = {"max_iter": 4, "tol": 0.0}
MODELS = {
    "GTM": GTM(nodes=6, basis=3, **QUICK),
    "GTM-circle": GTM(nodes=12, basis=5, latent="circle", **QUICK),
    "GTM-sphere": GTM(nodes=40, basis=8, latent="sphere", **QUICK),
    "PPS": PPS(nodes=6, basis=3, **QUICK),
    "GTMSequence": GTMSequence(nodes=6, basis=3, **QUICK),
    "PrincipalSurface": PrincipalSurface(n_components=1, nodes=10, **QUICK),
    "RegularizedManifold": RegularizedManifold(n_components=1, nodes=10, **QUICK),
}


def wide(n=40, n_columns=70, seed=0):
    """A bent sheet in many columns with noise in all of them, far from the origin."""
    rng = np.random.default_rng(seed)
    u, v = rng.uniform(-1, 1, (2, n))
    flat = np.stack([2 * u, v, u**2, np.sin(2 * v)], axis=1)
    return flat @ rng.normal(size=(4, n_columns)) + 0.3 * rng.normal(size=(n, n_columns)) + 5.0


@pytest.mark.parametrize("name", MODELS)
def test_nearest_points_are_those_of_all_columns(name):
    X, new = wide(), wide(25, seed=1)
    model = MODELS[name].fit(X)
    assert model.weights_.shape[0] < X.shape[1]
    geometry = model._geometry()
    assert geometry.inside is not None
    assert geometry.inside.point(model.latent_.nodes).shape[1] < X.shape[1]
    found = model._nearest(new)
    plain = replace(geometry, inside=None, span=ColumnSpan(None)).nearest(new)
    assert_allclose(found.squared_distance, plain.squared_distance, rtol=1e-9)
    assert_allclose(found.points, plain.points, atol=1e-6)
    assert_allclose(found.latent, plain.latent, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_stretches_are_those_of_the_jacobian_in_all_columns(name):
    model = MODELS[name].fit(wide())
    Z = model.latent_.nodes
    found, plain = model.magnification(Z), stretch(model.jacobian(Z), model.latent_.domain.frame(Z))
    assert_allclose(found.factor, plain.factor, rtol=1e-9)
    assert_allclose(found.lengths, plain.lengths, rtol=1e-9)
    assert_allclose(found.directions, plain.directions, atol=1e-6)


def test_sparse_tables_are_projected_as_dense_ones_are():
    X = scipy.sparse.random(60, 90, density=0.1, format="csr", random_state=0)
    model = GTM(nodes=6, basis=3, **QUICK).fit(X)
    assert_allclose(model.project(X), model.project(X.toarray()), atol=1e-12)


def test_tables_with_more_functions_than_columns_are_left_as_they_are():
    model = GTM(nodes=6, basis=3, **QUICK).fit(wide(n_columns=6))
    assert model._geometry().inside is None
