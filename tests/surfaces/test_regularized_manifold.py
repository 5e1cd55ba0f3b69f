"""Regularised principal manifolds; what they share with principal surfaces is in test_principal_surface.py."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prinfold import RegularizedManifold, datasets
from prinfold.exceptions import InvalidParameterError
from prinfold.explorer.decoders import decoder_of


@pytest.fixture(scope="module")
def ridge() -> datasets.Dataset:
    return datasets.make_ridge(300, noise=0.1, sampling="parameter", rng=0)


@pytest.fixture(scope="module")
def model(ridge) -> RegularizedManifold:
    return RegularizedManifold(max_iter=6, tol=0).fit(ridge.X)


def test_the_surface_is_nearer_to_the_truth_than_the_rows(model, ridge):
    of_rows, of_surface = (np.mean(ridge.surface.distance(Y) ** 2) for Y in (ridge.X, model.project(ridge.X)))
    assert of_surface < 0.6 * of_rows


def test_the_history_adds_up_to_an_objective_that_never_falls(model, ridge):
    past, variance = model.history_, ridge.X.var(axis=0).sum()
    risk = np.array(past["error"]) + model.regularization * np.array(past["norm"])
    assert_allclose(past["objective"], -risk / variance, rtol=1e-9)
    assert (np.diff(past["objective"]) >= 0).all()
    assert past["error"][-1] == pytest.approx(model.projection_error(ridge.X), rel=1e-4)


def test_the_more_it_is_regularised_the_smaller_the_norm(ridge):
    norms = [
        RegularizedManifold(1, regularization=each, nodes=8, max_iter=3, tol=0).fit(ridge.X).history_["norm"][-1]
        for each in (1e-4, 1e-2, 1.0)
    ]
    assert norms[0] > norms[1] > norms[2]


def test_a_page_evaluates_the_same_surface(model):
    assert decoder_of(model)["kind"] == "radial"


def test_a_regularisation_of_nothing_is_refused():
    with pytest.raises(InvalidParameterError, match="regularization"):
        RegularizedManifold(regularization=0.0).fit(np.eye(4))
