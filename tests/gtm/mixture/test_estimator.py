"""The mixture of GTMs: what it is of its maps, what it makes of odd tables, and closer looks into a map."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix, issparse
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from prinfold import (
    GTM,
    PPS,
    Blocks,
    GaussianProcess,
    GTMClassifier,
    GTMHierarchy,
    GTMMixture,
    LowRankNoise,
    NearestSurfaceClassifier,
    choose,
    datasets,
    load,
)
from prinfold.exceptions import (
    CorruptModelFileError,
    DegenerateWarning,
    FoldWarning,
    InvalidDataError,
    InvalidParameterError,
    MultimodalWarning,
    NotStorableError,
    UnsupportedInputError,
)
from prinfold.latent import Atlas, grid

pytestmark = [
    pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

SMALL = GTM(nodes=6, basis=3)
CURVE = GTM(1, nodes=12, basis=4)


def two_sheets(n: int = 120, apart: float = 4.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Bent sheets one above the other, a third of the rows on the second; and which sheet each row is on."""
    rng = np.random.default_rng(seed)
    u, v = rng.uniform(-1, 1, (2, n))
    which = (np.arange(n) >= 2 * n // 3).astype(int)
    X = np.stack([2 * u, v, 0.5 * u**2 + apart * which], axis=1) + 0.05 * rng.normal(size=(n, 3))
    return X, which


def said_by(model: Any, X: Any, **options: Any) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, **options)
    return caught


def words(caught: list[warnings.WarningMessage], category: type[Warning]) -> list[str]:
    return [str(each.message) for each in caught if issubclass(each.category, category)]


# ------------------------------------------------------------------------------------ what it is made of


@pytest.mark.parametrize("noise", ["isotropic", "diagonal", "aligned", "student", "varying", LowRankNoise(1)])
@pytest.mark.parametrize("gaps", [False, True])
def test_one_map_is_the_gtm(noise: Any, gaps: bool):
    X, _ = two_sheets()
    X[5, 1] = np.nan if gaps else 0.3
    recipe = GTM(1, nodes=8, basis=3, noise=noise, max_iter=6, tol=0)
    weight = np.random.default_rng(1).uniform(0.5, 2, len(X))
    alone = recipe.fit(X, sample_weight=weight)
    mixture = GTMMixture(1, recipe, max_iter=6, tol=0).fit(X, sample_weight=weight)
    assert_array_equal(mixture.mixing_, [1.0])
    assert_allclose(mixture.history_["objective"], alone.history_["objective"], rtol=1e-10)
    assert_allclose(mixture.transform(X)[:, 1:], alone.transform(X), atol=1e-9)
    assert_allclose(mixture.score_samples(X), alone.score_samples(X), atol=1e-9)
    assert_allclose(mixture.responsibilities(X), alone.responsibilities(X), atol=1e-9)
    assert_allclose(mixture.noise_variance_, alone.noise_variance_, rtol=1e-9)
    mass = np.asarray(alone.node_mass_)
    assert_allclose(mixture.node_mass_, mass if mass.ndim == 1 else mass.mean(axis=1), atol=1e-8)


def test_the_density_is_that_of_its_maps():
    X, _ = two_sheets()
    model = GTMMixture(3, SMALL, random_state=0, max_iter=20).fit(X)
    each = np.stack([model.component(j).score_samples(X) for j in range(3)], axis=1) + np.log(model.mixing_)
    assert_allclose(model.score_samples(X), logsumexp(each, axis=1), rtol=1e-12)
    assert_allclose(model.score(X), model.score_samples(X).mean())
    held = np.exp(each - logsumexp(each, axis=1, keepdims=True))
    assert_allclose(model.memberships(X), held, atol=1e-12)
    assert (np.diff(model.mixing_) <= 0).all(), "the largest first"
    own = np.argmax(held, axis=1)
    Z = model.transform(X)
    assert_array_equal(Z[:, 0], own)
    for j in range(3):
        assert_allclose(Z[own == j, 1:], model.component(j).transform(X[own == j]), atol=1e-12)
        spread = model.posterior_covariance(X)[own == j][:, 1:, 1:]
        assert_allclose(spread, model.component(j).posterior_covariance(X[own == j]), atol=1e-12)
        assert_allclose(model.mode_distance(X)[own == j], model.component(j).mode_distance(X[own == j]), atol=1e-12)
    assert_allclose(model.node_mass_.sum(), len(X))
    assert isinstance(model.latent_, Atlas)
    assert_allclose(model.inverse_transform(Z[:5]), model.reconstruct(X)[:5])


def test_two_maps_far_apart_are_two_gtms():
    X, which = two_sheets(apart=1000.0)
    mixture = GTMMixture(2, SMALL, random_state=0, max_iter=30, tol=0, relaxation=1.0).fit(X)
    assert_allclose(mixture.mixing_, [2 / 3, 1 / 3])
    for j in (0, 1):
        n_trial = 0  # one partition only is found, so that there are no trials
        alone = clone(SMALL).set_params(max_iter=30 + n_trial, tol=0, relaxation=1.0).fit(X[which == j])
        assert_allclose(mixture.component(j).noise_variance_, alone.noise_variance_, rtol=1e-6)
        assert_allclose(mixture.component(j).transform(X[which == j]), alone.transform(X[which == j]), atol=1e-6)


def test_maps_given_in_another_order_are_the_same_maps():
    X, which = two_sheets()
    here, there = (GTMMixture(2, SMALL, partition=part, max_iter=10, tol=0).fit(X) for part in (which, 1 - which))
    assert_allclose(here.mixing_, there.mixing_[::-1])
    assert_allclose(here.memberships(X), there.memberships(X)[:, ::-1], atol=1e-12)
    assert_allclose(here.score_samples(X), there.score_samples(X), atol=1e-10)
    soft = GTMMixture(2, SMALL, partition=3.0 * np.eye(2)[which], max_iter=10, tol=0).fit(X)
    assert_allclose(soft.score_samples(X), here.score_samples(X), atol=1e-10)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("noise", ["isotropic", "diagonal", "student", "aligned", "varying"])
def test_the_objective_never_gets_worse(noise: str, shared: bool):
    if shared and noise not in {"isotropic", "diagonal"}:
        with pytest.raises(InvalidParameterError, match=f"'isotropic' or 'diagonal', got '{noise}'"):
            GTMMixture(2, GTM(noise=noise), shared_noise=True).fit(two_sheets()[0])
        return
    X, _ = two_sheets(80, apart=0.6)
    X[::7, 2] = np.nan
    recipe = GTM(nodes=5, basis=3, noise=noise)
    model = GTMMixture(3, recipe, shared_noise=shared, random_state=0, max_iter=40, tol=0).fit(X)
    objective = model.history_["objective"]
    assert all(after >= before - 1e-9 * abs(before) for before, after in pairwise(objective))


def test_one_noise_for_all_is_one_noise():
    X, which = two_sheets()
    X[which == 1] += 0.6 * np.random.default_rng(0).normal(size=(40, 3))
    own = GTMMixture(2, SMALL, partition=which).fit(X)
    shared = GTMMixture(2, SMALL, partition=which, shared_noise=True).fit(X)
    assert own.noise_variance_[1] > 5 * own.noise_variance_[0]
    assert shared.noise_variance_[0] == shared.noise_variance_[1]
    assert own.noise_variance_[0] < shared.noise_variance_[0] < own.noise_variance_[1]
    assert own.score(X) > shared.score(X)
    columns = GTMMixture(2, GTM(nodes=6, basis=3, noise="diagonal"), partition=which, shared_noise=True).fit(X)
    first, second = (each.noise_parameters_["variances"] for each in columns.maps_)
    assert_array_equal(first, second)


def test_maps_of_their_own_kinds():
    rng = np.random.default_rng(0)
    t = np.linspace(-np.pi, np.pi, 100, endpoint=False)
    ring, path = np.stack([np.cos(t), np.sin(t)], axis=1), np.stack([6 + t, 0.3 * t**2], axis=1)
    X = np.concatenate([path, ring]) + 0.03 * rng.normal(size=(200, 2))
    model = GTMMixture(2, [GTM(1, latent="circle"), GTM(1)], random_state=0).fit(X)
    assert [each.latent_.periodic for each in model.maps_] == [(True,), (False,)]
    assert_array_equal(model.memberships(X).argmax(axis=1), np.repeat([1, 0], 100))
    assert_array_equal(model.transform(X)[:, 0], np.repeat([1, 0], 100))
    planes = GTMMixture(2, (GTM(nodes=20, latent="sphere"), SMALL), random_state=0, max_iter=3).fit(two_sheets()[0])
    assert planes.latent_.n_columns == 4


# ------------------------------------------------------------------------------------------- drawn and filled


def test_samples_come_from_the_density():
    X, _ = two_sheets()
    model = GTMMixture(2, SMALL, random_state=0).fit(X)
    drawn = model.sample(4000, random_state=1)
    assert_allclose(model.memberships(drawn).mean(axis=0), model.mixing_, atol=0.03)
    nodes = [each.inverse_transform(each.latent_.nodes).mean(axis=0) for each in model.maps_]
    assert_allclose(drawn.mean(axis=0), model.mixing_ @ nodes, atol=0.1)
    assert model.sample(0).shape == (0, 3)
    with pytest.raises(InvalidParameterError, match="n must be"):
        model.sample(-1)


def test_what_is_missing_is_filled_in_by_the_map_a_row_belongs_to():
    X, _ = two_sheets()
    model = GTMMixture(2, SMALL, random_state=0).fit(X)
    hidden = X.copy()
    hidden[:, 0] = np.nan
    hidden[::2, 0] = X[::2, 0]
    hidden[::2, 1] = np.nan
    hidden[::3, 2] = np.nan  # which of the sheets such a row is on is all but unknown
    filled, std = model.impute(hidden, return_std=True)
    assert_array_equal(filled[~np.isnan(hidden)], X[~np.isnan(hidden)])
    assert_array_equal(std[~np.isnan(hidden)], 0.0)
    held = model.memberships(hidden)
    assert held[::3].min() > 0.05
    each = [model.component(j).impute(hidden, return_std=True) for j in (0, 1)]
    mean = held[:, :1] * each[0][0] + held[:, 1:] * each[1][0]
    assert_allclose(filled, mean, atol=1e-10)
    second = sum(held[:, j : j + 1] * (each[j][1] ** 2 + each[j][0] ** 2) for j in (0, 1))
    assert_allclose(std**2, np.where(np.isnan(hidden), second - mean**2, 0.0), atol=1e-8)
    unknown = np.full((1, 3), np.nan)
    with pytest.warns(DegenerateWarning, match="no value in any column"):
        assert_allclose(model.memberships(unknown)[0], model.mixing_)
    assert_array_equal(model.impute(X), X)
    assert_array_equal(model.impute(X, return_std=True)[1], 0.0)
    with pytest.raises(UnsupportedInputError, match="nothing to impute"):
        model.impute(csr_matrix(X))


def test_gaps_in_training_and_a_column_that_one_map_never_sees():
    X, which = two_sheets(200)
    X[which == 1, 1] = np.nan
    X[::9, 0] = np.nan
    model = GTMMixture(2, SMALL, random_state=0, max_iter=50).fit(X)
    assert_array_equal(model.memberships(X).argmax(axis=1), which)
    assert np.isfinite(model.impute(X)).all()


def test_known_errors_reach_every_map():
    X, which = two_sheets(apart=1000.0)
    X[::7, 1] = np.nan
    errors = np.random.default_rng(0).uniform(0.0, 0.3, X.shape)
    steps = {"max_iter": 15, "tol": 0, "relaxation": 1.0}
    model = GTMMixture(2, SMALL, partition=which, **steps).fit(X, errors=errors)
    for j in (0, 1):
        own = X[which == j], errors[which == j]
        alone = clone(SMALL).set_params(**steps).fit(own[0], errors=own[1])
        assert_allclose(model.noise_variance_[j], alone.noise_variance_, rtol=1e-6)
        Z = model.transform(own[0], errors=own[1])
        assert_allclose(Z[:, 1:], alone.transform(own[0], errors=own[1]), atol=1e-6)
    assert_allclose(model.transform(X, errors=np.zeros(len(X))), model.transform(X), atol=1e-9)
    assert not np.allclose(model.score_samples(X, errors=errors), model.score_samples(X))


def test_sparse_tables_and_fingerprints():
    X, _ = two_sheets()
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    dense, sparse = (GTMMixture(2, SMALL, random_state=0, max_iter=5).fit(each) for each in (X, csr_matrix(X)))
    assert_allclose(sparse.transform(csr_matrix(X)), dense.transform(X), atol=1e-9)
    full, few = dense.responsibilities(X), dense.responsibilities(X, threshold=1e-3)
    assert issparse(few)
    assert_allclose(few.toarray(), np.where(full >= 1e-3, full, 0.0), atol=1e-12)
    with pytest.raises(InvalidParameterError, match="threshold must be None or a number above 0 and below 1, got 2"):
        dense.responsibilities(X, threshold=2)


# ---------------------------------------------------------------------------------- what comes out of odd tables


def test_clusters_of_very_different_scale_keep_their_shapes():
    rng = np.random.default_rng(0)
    flat = np.array([1.0, 1.0, 0.05])
    X = np.concatenate([rng.normal(size=(300, 3)) * flat, [50.0, 0, 0] + 1e-3 * rng.normal(size=(80, 3)) * flat])
    model = GTMMixture(2, SMALL, random_state=0).fit(X)
    assert_array_equal(model.memberships(X).argmax(axis=1), np.repeat([0, 1], [300, 80]))
    assert model.noise_variance_[1] < 1e-6
    assert model.noise_variance_[0] > 1e-3


@pytest.mark.parametrize("distance", [1e3, 1e6, 1e9])
def test_clusters_far_apart_are_as_sharp_as_alone(distance: float):
    """Each map sees the rows about an origin of its own: the distance between maps costs no digits of theirs."""
    rng = np.random.default_rng(1)
    one = rng.normal(size=(150, 3)) * [1.0, 0.5, 0.02]
    X = np.concatenate([one, np.round(one[:100] + distance, 6)])
    alone = GTM(nodes=6, basis=3, max_iter=20, tol=0, relaxation=1.0).fit(one)
    model = GTMMixture(2, SMALL, random_state=0, max_iter=20, tol=0, relaxation=1.0).fit(X)
    assert_allclose(model.noise_variance_[0], alone.noise_variance_, rtol=1e-6)
    assert_allclose(model.component(0).score_samples(one), alone.score_samples(one), atol=1e-5)


def test_fewer_distinct_rows_than_maps():
    for X in (np.repeat([[0.0, 1.0], [3.0, 1.0]], 6, axis=0), np.array([[0.0, 1.0], [3.0, 1.0]])):
        caught = said_by(model := GTMMixture(3, SMALL, random_state=0), X)
        assert_allclose(model.mixing_, [0.5, 0.5, 0.0])
        assert any("map(s) 2 hold less than one row" in each for each in words(caught, DegenerateWarning))
        assert np.isfinite(model.score_samples(X)).all()
        assert_allclose(model.reconstruct(X), X, atol=1e-6)
    caught = said_by(model := GTMMixture(2, SMALL, random_state=0), np.ones((8, 2)))
    assert_allclose(model.mixing_, [1.0, 0.0])
    assert any("All rows are equal" in each for each in words(caught, DegenerateWarning))
    assert_allclose(model.project(np.ones((3, 2))), 1.0)


def test_a_few_rows_that_lie_close_do_not_make_a_noise_as_small_as_they_like():
    rng = np.random.default_rng(2)
    X = np.concatenate([rng.normal(size=(60, 3)), np.array([[9.0, 9, 9]] * 4) + 1e-9 * rng.normal(size=(4, 3))])
    model = GTMMixture(2, SMALL, random_state=0).fit(X)
    floor = 1e-6 * X.var(axis=0).mean()
    assert (model.noise_variance_ >= 0.9 * floor).all()


def test_a_map_that_dies_is_named_and_harms_nobody():
    X, which = two_sheets()
    held = np.where(np.arange(3) == which[:, None], 1.0, 0.0)  # nothing for the third to begin with
    caught = said_by(model := GTMMixture(3, SMALL, partition=held), X)
    assert any(
        "map(s) 2 hold less than one row" in each and "n_maps=2" in each for each in words(caught, DegenerateWarning)
    )
    two = GTMMixture(2, SMALL, partition=which).fit(X)
    assert_allclose(model.score_samples(X), two.score_samples(X), atol=1e-9)
    assert_array_equal(model.memberships(X)[:, 2], 0.0)
    assert np.isfinite(model.project(X)).all()
    assert len(model.sample(50, random_state=0)) == 50


def test_an_outlier_far_away():
    X, _ = two_sheets()
    X[0] = 1e6
    model = GTMMixture(2, SMALL, random_state=0).fit(X)
    assert np.isfinite(model.transform(X)).all()
    assert np.isfinite(model.history_["objective"]).all()


def test_one_column():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(60, 1)), 9 + rng.normal(size=(40, 1))])
    model = GTMMixture(2, CURVE, random_state=0).fit(X)
    assert_array_equal(model.memberships(X).argmax(axis=1), np.repeat([0, 1], [60, 40]))
    caught = said_by(GTMMixture(2, SMALL, random_state=0, max_iter=3), X)
    assert any("Set n_components=1" in each for each in words(caught, DegenerateWarning))


def test_warnings_of_the_maps_say_which_map():
    X, which = two_sheets()
    X[which == 1] = [0.0, 0.0, 4.0] + np.random.default_rng(0).normal(size=(40, 3))  # a ball, of no two dimensions
    caught = said_by(GTMMixture(2, GTM(nodes=12, basis=6), partition=which), X)
    own = words(caught, MultimodalWarning) + words(caught, FoldWarning)
    assert own
    assert all(each.startswith("map(s) 1: ") for each in own)
    caught = said_by(GTMMixture(2, SMALL, partition=which, max_iter=2), X)
    assert len(words(caught, ConvergenceWarning)) == 1, "said once, not for every map"


# --------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"n_maps": 0}, "n_maps"),
        ({"n_maps": 3, "gtm": [GTM(), GTM()]}, "gtm lists 2 recipes for n_maps=3"),
        ({"gtm": PPS()}, "gtm"),
        ({"gtm": [GTM(), PPS()]}, "the maps of a mixture are GTMs, got PPS"),
        ({"gtm": GTM(prior_precision="evidence")}, "a number, got 'evidence'"),
        ({"gtm": GTM(init=np.zeros((120, 2)))}, "init by name"),
        ({"gtm": GTM(basis=GaussianProcess())}, "need a Gaussian process with its length_scale"),
        ({"gtm": GTM(basis=GaussianProcess(0.5))}, "its variance or a"),
        ({"gtm": GTM(width=-1)}, "width"),
        (
            {"gtm": GTM(trainer="incremental")},
            "so trainer='incremental' cannot be used; leave it at 'batch'",
        ),
        ({"gtm": [GTM(), GTM(noise="diagonal")], "shared_noise": True}, "the same noise for all maps"),
        ({"gtm": [GTM(), GTM(1)]}, "one dimension"),
        ({"partition": "kmeans"}, "partition"),
    ],
)
def test_settings_that_make_no_mixture(settings: dict[str, Any], match: str):
    with pytest.raises(InvalidParameterError, match=match):
        GTMMixture(**settings).fit(two_sheets()[0])


@pytest.mark.parametrize(
    ("partition", "match"),
    [
        (np.arange(120), "partition has maps 0 to 119, but n_maps=2"),
        (np.zeros(120), "must hold the number of a map for each of 120 rows"),
        (np.zeros(7, dtype=int), r"got shape \(7,\) of int"),
        (np.zeros((120, 2)), "not all zero"),
        (-np.ones((120, 2)), "not negative"),
    ],
)
def test_partitions_that_are_none(partition: np.ndarray, match: str):
    with pytest.raises(InvalidDataError, match=match):
        GTMMixture(2, partition=partition).fit(two_sheets()[0])


def test_a_process_of_known_numbers_serves_as_a_map():
    X, _ = two_sheets()
    model = GTMMixture(2, GTM(nodes=6, basis=GaussianProcess(0.6, 0.5)), random_state=0, max_iter=10).fit(X)
    objective = model.history_["objective"]
    assert all(after >= before - 1e-9 for before, after in pairwise(objective))


# ------------------------------------------------------------------------------------- files and composition


def test_files_hold_recipes_lists_and_names(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, which = two_sheets()
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = GTMMixture(2, [SMALL, GTM(nodes=5, basis=3, noise="diagonal")], partition=which, max_iter=5).fit(frame)
    model.save(tmp_path / "m.prinfold")
    read = load(tmp_path / "m.prinfold")
    assert_array_equal(read.score_samples(frame), model.score_samples(frame))
    assert [each.get_params()["nodes"] for each in read.gtm] == [6, 5]
    assert list(read.component(1).feature_names_in_) == ["a", "b", "c"]
    assert_array_equal(read.component(1).transform(frame), model.component(1).transform(frame))
    assert_array_equal(read.partition, which)
    with pytest.raises(NotStorableError, match="call fit before save"):
        GTMMixture().save(tmp_path / "n.prinfold")


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("mixing_", np.array([0.5, 0.6]), "a mixing_ that adds up to 1"),
        ("mixing_", np.array([1.0]), r"mixing_ .* shape \(latent_.charts = 2\)"),
        ("maps_", [], "maps_ .* of length latent_.charts = 2"),
        ("latent_", Atlas((grid(6, 6),)), "maps_ .* of length latent_.charts = 1"),
    ],
)
def test_files_that_do_not_fit_together(tmp_path, name: str, value: Any, match: str):
    model = GTMMixture(2, SMALL, random_state=0, max_iter=2).fit(two_sheets()[0])
    setattr(model, name, value)
    model.save(tmp_path / "m.prinfold")
    with pytest.raises(CorruptModelFileError, match=match):
        load(tmp_path / "m.prinfold")


def test_the_number_of_maps_by_rows_held_out():
    X, _ = two_sheets(180)
    recipe = GTMMixture(2, GTM(nodes=6, basis=3), random_state=0, max_iter=40)
    choice = choose(X, {"n_maps": (1, 2, 3)}, model=recipe, by="held-out", folds=3)
    assert choice.settings["n_maps"] >= 2
    assert choice.table["score"][1] > choice.table["score"][0] + 1.0
    assert_allclose(np.diff(choice.table["n_weights"]), choice.table["n_weights"][0])
    assert len(choice.model.maps_) == choice.settings["n_maps"]
    inner = choose(X, {"gtm__basis": (2, 3)}, model=recipe, by="held-out", folds=2)
    assert inner.model.gtm.basis == inner.settings["gtm__basis"]


def test_mixtures_serve_where_a_map_does():
    data = datasets.make_pipe_flow(150, rng=0)
    mixture = GTMMixture(2, GTM(nodes=10, basis=4), random_state=0, max_iter=20)
    assert GTMClassifier(mixture).fit(data.X, data.labels).score(data.X, data.labels) > 0.9
    assert (
        NearestSurfaceClassifier(GTMMixture(2, GTM(nodes=4, basis=2), random_state=0, max_iter=5))
        .fit(data.X, data.labels)
        .score(data.X, data.labels)
        > 0.9
    )


# --------------------------------------------------------------------------------------------- closer looks


def test_a_child_is_fitted_to_the_memberships():
    X, _ = two_sheets(apart=0.5)
    model = GTMMixture(2, SMALL, random_state=0).fit(X)
    recipe = GTMMixture(2, CURVE, random_state=1, max_iter=10)
    held = model.memberships(X)[:, 1]
    by_hand = clone(recipe).fit(X, sample_weight=np.where(held < 1e-6, 0.0, held))
    child = model.drill_down(X, 1, recipe)
    assert_allclose(child.score_samples(X), by_hand.score_samples(X), atol=1e-10)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(X))
    weighted = model.drill_down(X, 1, recipe, sample_weight=weight)
    assert not np.allclose(weighted.score_samples(X), child.score_samples(X))
    default = model.drill_down(X, 0)
    assert len(default.maps_) == 2
    assert default.gtm.nodes == 6


def test_a_child_begins_at_places_on_the_map():
    X, which = two_sheets()
    model = GTMMixture(2, SMALL, partition=which).fit(X)
    places = np.array([[-0.7, 0.0], [0.7, 0.0], [0.0, 0.0]])
    child = model.drill_down(X, 0, GTMMixture(2, CURVE, max_iter=0), places=places)
    assert len(child.maps_) == 3
    Z = model.component(0).transform(X)
    nearest = np.square(Z[:, None] - places).sum(axis=2).argmin(axis=1)
    assert_allclose(child.mixing_, np.bincount(nearest[which == 0]) / (which == 0).sum(), atol=1e-6)
    listed = GTMMixture(2, [SMALL, GTM(nodes=5, basis=3)], partition=which, max_iter=3).fit(X)
    assert listed.drill_down(X, 1).gtm.nodes == 5


def test_looks_that_lead_nowhere():
    X, which = two_sheets()
    model = GTMMixture(3, SMALL, partition=which, max_iter=5).fit(X)
    with pytest.raises(InvalidParameterError, match="there is no map 3; the maps are 0 to 2"):
        model.drill_down(X, 3)
    with pytest.raises(InvalidParameterError, match="mixture must be a GTMMixture, got GTM"):
        model.drill_down(X, 0, GTM())
    with pytest.raises(InvalidDataError, match=r"only 0 row\(s\) belong to map 2"):
        model.drill_down(X, 2)
    with pytest.raises(InvalidParameterError, match="there is no map -1"):
        model.component(-1)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"sample_weight": -np.ones(120)}, "sample_weight cannot be used: row 0 has -1"),
        (
            {"sample_weight": np.append(-5.0, np.ones(119))},
            "sample_weight cannot be used: row 0 has -5; weights are finite numbers",
        ),
        ({"sample_weight": np.ones(3)}, r"sample_weight cannot be used: .*\(3,\)"),
        ({"sample_weight": np.zeros(120)}, "at least one non-zero"),
        ({"places": np.empty((0, 2))}, "places is empty; give a place on the map for each map of the child"),
        ({"places": [[0.0]]}, r"latent coordinates must have shape \(n, 2\)"),
    ],
)
def test_weights_and_places_that_cannot_be(options: dict, match: str):
    X, which = two_sheets()
    recipe = GTMMixture(2, SMALL, partition=which, max_iter=2)
    with pytest.raises(InvalidDataError, match=match):
        clone(recipe).fit(X).drill_down(X, 0, **options)
    tree = GTMHierarchy(recipe).fit(X)
    with pytest.raises(InvalidDataError, match=match):
        tree.drill_down(X, (0,), **options)
    assert tree.paths == [()]


def tree_of(X: np.ndarray) -> GTMHierarchy:
    tree = GTMHierarchy(GTMMixture(2, SMALL, random_state=0, max_iter=20)).fit(X)
    tree.drill_down(X, (0,), GTMMixture(3, CURVE, random_state=0, max_iter=20))
    tree.drill_down(X, (0, 1), GTMMixture(2, CURVE, random_state=0, max_iter=20))
    return tree


def test_a_hierarchy_is_the_mixture_of_its_leaves():
    X, _ = two_sheets(apart=0.6)
    tree = tree_of(X)
    assert tree.paths == [(), (0,), (0, 1)]
    assert tree.leaves == [(0, 0), (0, 1, 0), (0, 1, 1), (0, 2), (1,)]
    assert_allclose(tree.leaf_mixing.sum(), 1.0)
    assert_allclose(tree.leaf_mixing, [tree.share(path) for path in tree.leaves])
    root, child, last = (tree.node(path) for path in tree.paths)
    inner = [child.component(j).score_samples(X) for j in range(3)]
    inner[1] = last.score_samples(X)
    below = logsumexp(np.stack(inner, axis=1) + np.log(child.mixing_), axis=1)
    whole = np.stack([below, root.component(1).score_samples(X)], axis=1) + np.log(root.mixing_)
    assert_allclose(tree.score_samples(X), logsumexp(whole, axis=1), rtol=1e-10)
    assert_allclose(tree.score(X), tree.score_samples(X).mean())


def test_rows_are_handed_down_and_never_lost():
    X, _ = two_sheets(apart=0.6)
    tree = tree_of(X)
    for path in ((0,), (0, 1)):
        above = tree.memberships(X, path[:-1])[:, path[-1]]
        assert_allclose(tree.memberships(X, path).sum(axis=1), above, atol=1e-12)
    by_hand = tree.node(()).memberships(X)[:, 0] * tree.node((0,)).memberships(X)[:, 1]
    assert_allclose(tree.memberships(X, (0,))[:, 1], by_hand, atol=1e-12)
    weight = np.where(by_hand < 1e-6, 0.0, by_hand)
    last = GTMMixture(2, CURVE, random_state=0, max_iter=20).fit(X, sample_weight=weight)
    assert_allclose(tree.node((0, 1)).score_samples(X), last.score_samples(X), atol=1e-6)


def test_another_look_takes_the_place_of_what_was_below():
    X, _ = two_sheets()
    tree = tree_of(X)
    before = tree.node(()).score_samples(X)
    child = tree.drill_down(X, (0,), GTMMixture(2, CURVE, random_state=0, max_iter=5), places=[[-0.5, 0], [0.5, 0]])
    assert tree.paths == [(), (0,)]
    assert_array_equal(child.mixing_, tree.node((0,)).mixing_)
    assert_array_equal(tree.node(()).score_samples(X), before)
    tree.drill_down(X, (1,), sample_weight=np.full(len(X), 2.0))
    assert tree.paths == [(), (0,), (1,)]
    assert tree.fit(X).paths == [()]


def test_hierarchies_in_files_and_with_gaps(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, _ = two_sheets()
    X[::5, 1] = np.nan
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    tree = GTMHierarchy().set_params(mixture=GTMMixture(2, SMALL, random_state=0, max_iter=10)).fit(frame)
    child = tree.drill_down(frame, (1,), errors=np.full(frame.shape, 0.01))
    assert list(child.feature_names_in_) == ["a", "b", "c"]
    tree.save(tmp_path / "t.prinfold")
    read = load(tmp_path / "t.prinfold")
    assert read.leaves == tree.leaves
    assert_array_equal(read.score_samples(frame), tree.score_samples(frame))
    for levels in ({}, {"root": child, "0.7": child}, {"root": child, "0.0": child}):
        tree.levels_ = levels
        tree.save(tmp_path / "u.prinfold")
        with pytest.raises(CorruptModelFileError, match="each lies below a map of another"):
            load(tmp_path / "u.prinfold")


def test_a_hierarchy_of_one_map_is_the_default():
    X, _ = two_sheets()
    tree = GTMHierarchy().fit(X)
    assert tree.leaves == [(0,)]
    assert_allclose(tree.score_samples(X), GTM().fit(X).score_samples(X), atol=1e-9)


@pytest.mark.parametrize(
    ("path", "match"),
    [
        ((), r"path=\(\) leads to no map"),
        ((5,), r"path=\(5,\) leads to no map; the maps at \(\) are 0 to 1"),
        ((1, 0), r"no mixture at \(1,\); there are some at \[\(\)\]"),
        (3, "a path is a tuple"),
        ((-1,), "a path is a tuple"),
    ],
)
def test_paths_that_lead_nowhere(path: Any, match: str):
    X, _ = two_sheets()
    tree = GTMHierarchy(GTMMixture(2, SMALL, random_state=0, max_iter=2)).fit(X)
    with pytest.raises(InvalidParameterError, match=match):
        tree.drill_down(X, path)


def test_a_notebook_tells_how_many_maps_there_are():
    model = GTMMixture(2, SMALL, random_state=0, max_iter=2, n_init=1).fit(two_sheets()[0])
    assert "2 maps of 2 dimension(s) in 3 columns" in model._repr_html_()


@pytest.mark.parametrize("gaps", [False, True])
def test_blocks_come_to_the_same_mixture(gaps):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(90, 3)) * [2, 1, 0.2], rng.normal(size=(70, 3)) * [0.2, 1, 2] + 6])
    if gaps:
        X[rng.random(X.shape) < 0.05] = np.nan
    settings = {"n_init": 1, "max_iter": 10, "tol": 0, "random_state": 0}
    wanted = GTMMixture(2, GTM(nodes=6, basis=3), **settings).fit(X)
    found = GTMMixture(2, GTM(nodes=6, basis=3), **settings).fit(Blocks(X, rows=37))
    np.testing.assert_allclose(found.mixing_, wanted.mixing_, atol=1e-6)
    np.testing.assert_allclose(found.history_["objective"], wanted.history_["objective"], rtol=1e-6)
    np.testing.assert_allclose(found.transform(X), wanted.transform(X), atol=1e-4)


def test_a_gap_that_the_sample_has_not_seen(monkeypatch):
    from prinfold.rows import streams

    monkeypatch.setattr(streams, "_SAMPLE_ROWS", 60)
    monkeypatch.setattr(streams, "_FEWEST_IN_SAMPLE", 60)
    X = np.random.default_rng(0).normal(size=(300, 3)) * [3, 1, 0.3]
    settings = {"n_init": 1, "max_iter": 5, "tol": 0, "random_state": 0}
    blocks = lambda: Blocks(X, rows=50)  # noqa: E731
    model = GTMMixture(2, GTM(nodes=6, basis=3), **settings).fit(blocks())
    X[7, 1] = np.nan
    gapped = GTMMixture(2, GTM(nodes=6, basis=3), **settings).fit(blocks())
    assert gapped.history_["objective"][-1] == pytest.approx(model.history_["objective"][-1], abs=0.1)
    assert gapped.history_["log_likelihood"][-1] == pytest.approx(np.mean(gapped.score_samples(X)), abs=1e-6)


def test_a_partition_of_rows_does_not_go_with_blocks():
    with pytest.raises(InvalidParameterError, match="does not go with Blocks"):
        GTMMixture(2, partition=np.zeros(10, dtype=int)).fit(Blocks(np.zeros((10, 2))))
