"""Classifier and regressor on a map: what decides, what is told of it, what is kept and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.files.test_files import dismantle, forge

from prinfold import GTM, PPS, GTMClassifier, GTMRegressor, MixedGTM, datasets, load
from prinfold.applications import landscape_sums
from prinfold.exceptions import CorruptModelFileError, InvalidDataError, InvalidParameterError, NotStorableError

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")

MAP = GTM(nodes=10, basis=4, regularization=0.1, max_iter=15, tol=0)


@pytest.fixture(scope="module")
def pipes():
    data = datasets.make_pipe_flow(240, rng=0)
    return data.X, data.names


@pytest.fixture(scope="module")
def classifier(pipes):
    return GTMClassifier(MAP).fit(*pipes)


@pytest.fixture(scope="module")
def regressor(pipes):
    X = pipes[0]
    return GTMRegressor(MAP).fit(X[:, 2:], X[:, :2])


class Whole(GTM):
    """A map that takes no rows with gaps."""

    _accept_missing = False


class Unweighted(BaseEstimator):
    """A map whose fit takes no weights."""

    def fit(self, X, y=None):
        return self

    def transform(self, X): ...

    def responsibilities(self, X): ...

    def score_samples(self, X): ...


# ---------------------------------------------------------------------------------------------- what decides


def test_probabilities_are_those_of_the_nodes_by_responsibility(classifier, pipes):
    X, y = pipes
    R = clone(MAP).fit(X).responsibilities(X)
    mass = np.stack([R[y == name].sum(axis=0) for name in classifier.classes_], axis=1)
    prior = np.array([np.mean(y == name) for name in classifier.classes_])
    node = (mass + 0.001 * prior) / (mass.sum(axis=1, keepdims=True) + 0.001)
    assert_allclose(classifier.predict_proba(X), R @ node, atol=1e-12)
    assert_array_equal(classifier.predict(X), classifier.classes_[(R @ node).argmax(axis=1)])
    assert_allclose(classifier.landscape_.mass, R.sum(axis=0))


def test_a_map_knows_most_of_the_flow_regimes(pipes):
    new = datasets.make_pipe_flow(400, rng=1)
    model = GTMClassifier(GTM(random_state=0)).fit(*pipes)
    assert model.score(new.X, new.names) > 0.9
    neighbors = KNeighborsClassifier(5).fit(model.transform(pipes[0]), pipes[1])
    assert model.score(new.X, new.names) > neighbors.score(model.transform(new.X), new.names) - 0.03


def test_deviations_hold_the_share_they_promise():
    """A property that the map does not determine: of new rows 90 % lie within 1.645 deviations, more or less."""
    rng = np.random.default_rng(0)
    data, new = (datasets.make_swiss_roll(800, rng=seed) for seed in (0, 1))
    model = GTMRegressor(GTM(nodes=12, basis=4)).fit(data.X, data.X[:, 0] + rng.normal(size=800))
    mean, deviation = model.predict(new.X, return_std=True)
    z = (new.X[:, 0] + rng.normal(size=800) - mean) / deviation
    assert 0.87 < np.mean(np.abs(z) < 1.645) < 0.96


def test_a_smooth_property_is_found(pipes):
    X = pipes[0]
    new = datasets.make_pipe_flow(300, rng=1).X
    model = GTMRegressor(GTM(random_state=0)).fit(X[:, 1:], X[:, 0])
    assert model.score(new[:, 1:], new[:, 0]) > 0.7


def test_targets_come_back_in_the_shape_they_were_given(pipes, regressor):
    X = pipes[0]
    mean, deviation = regressor.predict(X[:, 2:], return_std=True)
    assert mean.shape == deviation.shape == regressor.support(X[:, 2:]).shape == (240, 2)
    alone = GTMRegressor(MAP).fit(X[:, 2:], X[:, 0])
    assert_allclose(alone.predict(X[:, 2:]), mean[:, 0])
    assert alone.support(X[:, 2:]).shape == (240,)
    assert GTMRegressor(MAP).fit(X[:, 2:], X[:, [0]]).predict(X[:, 2:]).shape == (240, 1)


@pytest.mark.parametrize(
    "surface", [PPS(nodes=8, basis=3, max_iter=5, tol=0), GTM(1, latent="circle"), GTM(latent="sphere", nodes=60)]
)
def test_any_member_of_the_family_serves(pipes, surface):
    X, y = pipes
    assert GTMClassifier(surface).fit(X, y).score(X, y) > 0.6


def test_weights_are_repeated_rows(pipes):
    X, y = pipes
    times = np.random.default_rng(0).integers(0, 3, len(X))
    one = GTMClassifier(MAP, priors="balanced").fit(X, y, sample_weight=times)
    other = GTMClassifier(MAP, priors="balanced").fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-6)


def test_a_frozen_map_is_used_as_it_is(pipes):
    """Rows without a class or a target have shaped it."""
    X, y = pipes
    surface = clone(MAP).fit(X)
    model = GTMClassifier(FrozenEstimator(surface)).fit(X[:100], y[:100])
    assert model.surface_ is surface
    R = surface.responsibilities(X[:100])
    assert_allclose(model.landscape_.mass, R.sum(axis=0))
    targets = np.where(np.arange(len(X)) < 100, X[:, 0], np.nan)
    whole = GTMRegressor(MAP).fit(X, targets)
    part = GTMRegressor(FrozenEstimator(surface)).fit(X[:100], X[:100, 0])
    assert_allclose(whole.predict(X), part.predict(X))
    with pytest.raises(NotStorableError, match="FrozenEstimator"):
        model.save("nowhere.prinfold")


def test_a_frozen_map_knows_its_columns(pipes):
    X, y = pipes
    frame = pd.DataFrame(X, columns=[f"beam {j}" for j in range(12)])
    surface = clone(MAP).fit(frame)
    model = GTMClassifier(FrozenEstimator(surface)).fit(frame, y)
    assert_array_equal(model.surface_.weights_, surface.weights_)
    assert_allclose(model.predict_proba(frame), GTMClassifier(MAP).fit(X, y).predict_proba(X))
    assert hasattr(surface, "feature_names_in_")
    with pytest.raises(InvalidDataError, match=r"was fitted to the columns beam 0, .*, …, but got beam 11"):
        GTMClassifier(FrozenEstimator(surface)).fit(frame.iloc[:, ::-1], y)


def test_sparse_tables_give_the_same(classifier, pipes):
    X, y = pipes
    sparse = GTMClassifier(MAP).fit(scipy.sparse.csr_matrix(X), y)
    assert_allclose(sparse.predict_proba(scipy.sparse.csr_matrix(X)), classifier.predict_proba(X), atol=1e-6)


def test_it_works_in_pipelines_and_searches(pipes):
    X, y = pipes
    pipe = make_pipeline(StandardScaler(), GTMClassifier(MAP))
    search = GridSearchCV(pipe, {"gtmclassifier__estimator__nodes": [6, 8]}, cv=2).fit(X, y)
    assert search.best_params_["gtmclassifier__estimator__nodes"] in (6, 8)
    assert not hasattr(MAP, "weights_")


# ----------------------------------------------------------------------------------------------- how sure it is


def test_rows_far_away_have_an_answer_and_little_likelihood(classifier, regressor, pipes):
    X = pipes[0]
    far = X[:2] + 1e5
    assert_allclose(classifier.predict_proba(far).sum(axis=1), 1.0)
    assert (classifier.score_samples(far) < classifier.score_samples(X).min()).all()
    assert np.isfinite(regressor.predict(far[:, 2:], return_std=True)).all()


def test_support_is_the_mass_behind_an_answer(classifier, pipes):
    X = pipes[0]
    R = classifier.surface_.responsibilities(X)
    assert_allclose(classifier.support(X), R @ R.sum(axis=0))


def test_nodes_without_rows_are_told(classifier):
    found = classifier.landscape_
    assert found.empty.any()
    assert_array_equal(np.isnan(found.probability).all(axis=1), found.empty)
    assert_allclose(found.probability[~found.empty].sum(axis=1), 1.0)


# ------------------------------------------------------------------------------------------------ kept and refused


def test_models_come_back_from_files(classifier, regressor, pipes, tmp_path):
    X = pipes[0]
    classifier.save(tmp_path / "c.prinfold")
    regressor.save(tmp_path / "r.prinfold")
    back, numbers = load(tmp_path / "c.prinfold"), load(tmp_path / "r.prinfold")
    assert_array_equal(back.predict_proba(X), classifier.predict_proba(X))
    assert_array_equal(back.predict(X), classifier.predict(X))
    assert_array_equal(numbers.predict(X[:, 2:], return_std=True), regressor.predict(X[:, 2:], return_std=True))
    assert_array_equal(pickle.loads(pickle.dumps(classifier)).predict(X), classifier.predict(X))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (
            lambda fitted: fitted.update(classes_={"$strings": ["a", "a", "b"]}),
            "different classes",
        ),
        (lambda fitted: fitted.update(classes_={"$strings": ["a", "b", "c"]}), "a landscape_ of its classes_"),
        (
            lambda fitted: fitted.update(n_features_in_=3),
            "surface_ in the file is a GTM, but must be",
        ),
    ],
)
def test_parts_of_a_file_that_do_not_fit_are_refused(classifier, tmp_path, change, match):
    classifier.save(tmp_path / "c.prinfold")
    body, arrays = dismantle(tmp_path / "c.prinfold")
    change(body["model"]["fitted"]["$dict"])
    with pytest.raises(CorruptModelFileError, match=match):
        load(forge(tmp_path / "c.prinfold", body, arrays))


def test_a_landscape_of_other_targets_is_refused(regressor, tmp_path):
    regressor.save(tmp_path / "r.prinfold")
    body, arrays = dismantle(tmp_path / "r.prinfold")
    body["model"]["fitted"]["$dict"]["n_outputs_"] = 3
    with pytest.raises(CorruptModelFileError, match="a landscape_ of n_outputs_ targets"):
        load(forge(tmp_path / "r.prinfold", body, arrays))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"estimator": StandardScaler()}, "estimator must be None or an estimator with fit, transform, resp"),
        ({"priors": "equal"}, "priors must be 'empirical', 'balanced' or a list of probabilities"),
        ({"priors": [0.5, 0.5]}, "one probability for each of the 3 classes"),
        ({"pseudo_count": -1.0}, "pseudo_count must be a finite number of at least 0"),
    ],
)
def test_wrong_settings_are_named(pipes, options, match):
    with pytest.raises(InvalidParameterError, match=match):
        GTMClassifier(**{"estimator": MAP, **options}).fit(*pipes)


def test_wrong_targets_are_named(pipes):
    X, y = pipes
    with pytest.raises(InvalidDataError, match="give the class of each row"):
        GTMClassifier(MAP).fit(X, None)
    with pytest.raises(InvalidDataError, match="give a number for each row"):
        GTMRegressor(MAP).fit(X, None)
    with pytest.raises(InvalidDataError, match="y contains NaN only"):
        GTMRegressor(MAP).fit(X, np.full(len(X), np.nan))
    with pytest.raises(InvalidDataError, match="y contains infinity"):
        GTMRegressor(MAP).fit(X, np.full(len(X), np.inf))
    with pytest.raises(InvalidDataError, match="dim 3"):
        GTMRegressor(MAP).fit(X, np.zeros((240, 1, 1)))
    with pytest.raises(InvalidParameterError, match="Unweighted takes no sample_weight"):
        GTMClassifier(Unweighted()).fit(X, y, sample_weight=np.ones(len(X)))


# ----------------------------------------------------------------------------------------------------- missing cells


def test_missing_cells_are_taken_where_the_map_takes_them(classifier, pipes):
    X, y = pipes
    gone = X.copy()
    gone[np.random.default_rng(0).uniform(size=X.shape) < 0.2] = np.nan
    share = classifier.surface_.responsibilities(gone)
    assert_allclose(classifier.predict_proba(gone), classifier.landscape_.probabilities(share))
    assert np.mean(classifier.predict(gone) == y) > 0.75
    learned = GTMClassifier(MAP).fit(gone, y)
    assert np.mean(learned.predict(X) == y) > 0.75
    numbers = GTMRegressor(MAP).fit(gone[:, 1:], X[:, 0])
    assert np.isfinite(numbers.predict(gone[:, 1:], return_std=True)).all()


def test_maps_that_take_no_gaps_say_so(pipes):
    X, y = pipes
    gone = np.where(np.arange(X.size).reshape(X.shape) == 7, np.nan, X)
    with pytest.raises(InvalidDataError, match="contains NaN"):
        GTMClassifier(Whole()).fit(gone, y)
    with pytest.raises(InvalidDataError, match=r"contains infinity \(inf\)"):
        GTMClassifier(MAP).fit(np.where(np.isnan(gone), np.inf, gone), y)


# --------------------------------------------------------------------------------------------------- other tables


@pytest.fixture(scope="module")
def mixed(pipes):
    """Numbers with a gap, a column of text with one, and counts."""
    X = pipes[0]
    size, count = np.where(X[:, 6] > 0.5, "large", "small"), np.round(10 * np.abs(X[:, 7])).astype(int)
    frame = pd.DataFrame(X[:, :5], columns=list("abcde")).assign(size=size, count=count)
    frame.loc[3, "a"] = np.nan
    frame.loc[5, "size"] = None
    return frame


@pytest.mark.parametrize("library", [lambda frame: frame, pl.from_pandas], ids=["pandas", "polars"])
def test_maps_that_read_frames_are_given_frames(pipes, mixed, library, monkeypatch, tmp_path):
    X, y = pipes
    frame, surface = library(mixed), MixedGTM(nodes=7, basis=3, max_iter=10, tol=0)
    model = GTMClassifier(surface).fit(frame, y)
    R = clone(surface).fit(frame).responsibilities(frame)
    assert_allclose(model.predict_proba(frame), model.landscape_.probabilities(R))
    assert model.n_features_in_ == 7
    monkeypatch.setattr(landscape_sums, "_BLOCK_RESPONSIBILITIES", 49 * 7)
    assert_allclose(model.predict_proba(frame), model.landscape_.probabilities(R))
    half = GTMRegressor(surface).fit(frame, X[:, 8], sample_weight=np.arange(len(y)) % 2)
    assert_allclose(half.predict(frame), GTMRegressor(surface).fit(frame[1::2], X[1::2, 8]).predict(frame))
    frozen = GTMClassifier(FrozenEstimator(model.surface_)).fit(frame, y)
    assert_allclose(frozen.predict_proba(frame), model.predict_proba(frame))
    model.save(tmp_path / "m.prinfold")
    assert_array_equal(load(tmp_path / "m.prinfold").predict(frame), model.predict(frame))


def test_other_columns_than_those_of_the_fit_are_refused(pipes, mixed):
    model = GTMClassifier(MixedGTM(nodes=5, basis=2, max_iter=2, tol=0)).fit(mixed, pipes[1])
    with pytest.raises(InvalidDataError, match="feature names"):
        model.predict(mixed.rename(columns={"a": "z"}))
    rows = mixed.to_numpy().tolist()
    listed = GTMClassifier(MixedGTM(nodes=5, basis=2, max_iter=2, tol=0)).fit(rows, pipes[1])
    assert_allclose(listed.predict_proba(rows[:9]), listed.predict_proba(rows)[:9])
