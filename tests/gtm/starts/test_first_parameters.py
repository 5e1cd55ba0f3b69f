"""First parameters: near the plane where they say so, wide enough to reach their neighbours, fair to weights."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError
from tests.properties.cases import cloud

from prinfold import GTM
from prinfold.exceptions import InvalidDataError
from prinfold.numerics.distances import squared_distances_reference

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")


def started(X, weight=None, **settings):
    """A model as training finds it."""
    return GTM(**{"nodes": 8, "basis": 4, "max_iter": 0, "tol": 0.0, **settings}).fit(X, sample_weight=weight)


def nodes_of(model):
    return model.inverse_transform(model.latent_.nodes)


# -------------------------------------------------------------------------------------- semi-random


def test_a_semi_random_start_is_near_the_plane_but_not_in_it():
    X = cloud(300)
    plane, scale = nodes_of(started(X)), np.sqrt(X.var(axis=0).mean())
    apart = []
    for seed in range(20):
        model = started(X, init="semi-random", random_state=seed)
        apart.append(np.sqrt(np.square(nodes_of(model) - plane).mean()) / scale)
        assert not np.array_equal(model.weights_, started(X).weights_)
    # A tenth of a random start, whose nodes vary as much as the data do.
    assert 0.07 < np.mean(apart) < 0.14
    assert max(apart) < 0.3


def test_semi_random_starts_differ_by_their_seed_and_by_nothing_else():
    X = cloud()
    one, same, other = (started(X, init="semi-random", random_state=seed) for seed in (1, 1, 2))
    assert_array_equal(one.weights_, same.weights_)
    assert np.abs(one.weights_ - other.weights_).max() > 1e-3


# ------------------------------------------------------------------------------------- the first noise


def in_a_plane(n=200):
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.standard_normal((5, 2)))[0]
    return rng.uniform(-1, 1, (n, 2)) * [3.0, 2.0] @ axes.T + 7.0


@pytest.mark.parametrize("nodes", [3, 8])
@pytest.mark.parametrize("init", ["pca", "semi-random", "isomap", "given"])
def test_the_first_noise_reaches_from_node_to_node(init, nodes):
    X = in_a_plane()
    start = started(X).transform(X) if init == "given" else init
    model = started(X, nodes=nodes, basis=3, init=start, random_state=0)
    # The random part of a semi-random start comes after its noise.
    placed = nodes_of(started(X, nodes=nodes, basis=3) if init == "semi-random" else model)
    squared = squared_distances_reference(placed, placed)
    np.fill_diagonal(squared, np.inf)
    between = 0.5 * squared.min(axis=1).mean()
    assert between > 1e-3
    assert model.noise_variance_ >= between * (1 - 1e-9)


def test_in_an_exact_plane_the_first_noise_is_half_the_squared_distance_of_neighbours_and_no_more():
    model = started(in_a_plane())
    squared = squared_distances_reference(nodes_of(model), nodes_of(model))
    np.fill_diagonal(squared, np.inf)
    assert model.noise_variance_ == pytest.approx(0.5 * squared.min(axis=1).mean())


# ---------------------------------------------------------------------------------------- spectral starts


@pytest.mark.parametrize("init", ["isomap", "laplacian", "lle"])
def test_weights_are_repeated_rows_for_a_spectral_start(init):
    X = cloud(70)
    weight = np.random.default_rng(4).integers(0, 6, len(X))
    weighted = started(X, weight, init=init, random_state=0)
    repeated = started(np.repeat(X, weight, axis=0), init=init, random_state=0)
    unweighted = started(X[weight > 0], init=init, random_state=0)
    scale = np.abs(repeated.weights_).max()
    assert_allclose(weighted.weights_, repeated.weights_, atol=1e-5 * scale)
    assert weighted.noise_variance_ == pytest.approx(repeated.noise_variance_, rel=1e-5)
    assert np.abs(weighted.weights_ - unweighted.weights_).max() > 1e-3 * scale, "the weights make no difference"


@pytest.mark.parametrize("init", ["isomap", "laplacian"])
def test_a_spectral_start_joins_islands(init):
    rng = np.random.default_rng(0)
    X = 0.3 * rng.standard_normal((60, 3)) + np.where(np.arange(60) < 30, -50.0, 50.0)[:, None] * [1.0, 0.0, 0.0]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = started(X, init=init, random_state=0)
    assert [str(each.message) for each in caught if not each.category.__module__.startswith("prinfold")] == []
    assert np.isfinite(model.weights_).all()
    assert np.isfinite(model.noise_variance_)
    nodes, Z = nodes_of(model), model.transform(X)
    assert np.isfinite(Z).all()
    # Both clumps have nodes of their own, and places of their own on the map.
    assert nodes[:, 0].min() < -25.0
    assert nodes[:, 0].max() > 25.0
    first, second = Z[:30], Z[30:]
    within = max(first.std(axis=0).max(), second.std(axis=0).max())
    assert np.linalg.norm(first.mean(axis=0) - second.mean(axis=0)) > max(1.0, within)


def test_a_refit_that_fails_leaves_the_old_model_or_none():
    X, new = cloud(), np.repeat(cloud(2, n_columns=4) + 100.0, 20, axis=0)
    model = GTM(nodes=6, basis=3, max_iter=5, tol=0).fit(X)
    before = {name: np.array(value) for name, value in everything(model, X).items()}
    model.set_params(init="isomap", nodes=4)
    with pytest.raises(InvalidDataError, match="different rows"):
        model.fit(new)
    verbs = {
        "transform": lambda: model.transform(X),
        "score_samples": lambda: model.score_samples(X),
        "project": lambda: model.project(X),
        "mesh": lambda: model.mesh(5).vertices,
        "sample": lambda: model.sample(3, random_state=0),
        "names": model.get_feature_names_out,
    }
    try:
        model.transform(X)
    except NotFittedError:
        for ask in verbs.values():
            with pytest.raises(NotFittedError):
                ask()
        left = [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
        assert left in ([], ["n_features_in_"]), "remains of a model that is no more"
        return
    for name, value in everything(model, X).items():
        assert_array_equal(value, before[name], err_msg=name)


def everything(model, X):
    return {
        "transform": model.transform(X),
        "score_samples": model.score_samples(X),
        "project": model.project(X),
        "mesh": model.mesh(5).vertices,
        "sample": model.sample(3, random_state=0),
        "offset": model.offset_,
        "nodes": model.latent_.nodes,
    }


def test_after_a_failed_refit_a_good_one_is_as_if_nothing_had_been():
    X = cloud()
    model = GTM(nodes=6, basis=3, max_iter=5, tol=0).fit(X[:, :4])
    model.set_params(init="isomap")
    with pytest.raises(InvalidDataError):
        model.fit(np.repeat(X[:2, :3], 20, axis=0))
    model.set_params(init="pca").fit(X)
    assert_array_equal(model.weights_, GTM(nodes=6, basis=3, max_iter=5, tol=0).fit(X).weights_)
    assert model.n_features_in_ == 5


# ------------------------------------------------------------------------------------ coordinates given


def test_coordinates_are_given_for_every_row_whether_or_not_it_has_weight():
    X = cloud()
    Z = np.random.default_rng(0).uniform(-1, 1, (len(X), 2))
    weight = (np.arange(len(X)) % 3 > 0).astype(float)
    weighted = started(X, weight, init=Z)
    assert_allclose(weighted.weights_, started(X[weight > 0], init=Z[weight > 0]).weights_, atol=1e-9)
