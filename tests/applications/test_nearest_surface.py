"""The nearest-surface classifier: what decides, what it says of a row, and what it refuses."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import orthogonal_procrustes
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.files.test_files import dismantle, forge
from tests.properties.cases import random_rotation

from prinfold import GTM, PPS, NearestSurfaceClassifier, datasets, load, save
from prinfold.exceptions import (
    CorruptModelFileError,
    InvalidDataError,
    InvalidParameterError,
    NotStorableError,
    UnknownModelError,
)

pytestmark = pytest.mark.filterwarnings("ignore:class .*:prinfold.exceptions.PrinfoldWarning")


class Flat(BaseEstimator):
    """A principal plane with the three verbs that a surface needs, and no density."""

    def __init__(self, n_components: int = 1) -> None:
        self.n_components = n_components

    def fit(self, X, y=None):
        self.pca_ = PCA(self.n_components).fit(X)
        return self

    def transform(self, X):
        return self.pca_.transform(X)

    def project(self, X):
        return self.pca_.inverse_transform(self.pca_.transform(X))


LINE = GTM(1, latent="line", nodes=12, basis=4, max_iter=20, tol=0)
RING = GTM(1, latent="circle", nodes=30, basis=10, max_iter=60)


def rings(n: int = 160, noise: float = 0.05, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two rings of radius 1 and 2 about the same centre."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    angle = rng.uniform(0, 2 * np.pi, n)
    X = (1 + y)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return X + noise * rng.standard_normal((n, 2)), y


def clouds(n: int = 90, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three bent strips in four columns that overlap a little."""
    rng = np.random.default_rng(seed)
    y, u = np.arange(n) % 3, rng.uniform(-1, 1, n)
    X = np.stack([u, u**2 + 0.5 * y, 0.3 * y * u, np.zeros(n)], axis=1)
    return X + 0.15 * rng.standard_normal(X.shape), y


@pytest.fixture(scope="module")
def strips():
    X, y = clouds()
    return NearestSurfaceClassifier(LINE, by="likelihood").fit(X, y), X, y


# ---------------------------------------------------------------------------------------- what decides


def test_between_parallel_segments_the_perpendicular_distance_decides():
    """Rows exactly on a segment give that segment, so that distances are known in closed form."""
    t = np.linspace(-3, 3, 25)
    X = np.concatenate([np.stack([t, np.full_like(t, height)], axis=1) for height in (0.0, 1.0)])
    model = NearestSurfaceClassifier(LINE).fit(X, np.repeat(["low", "high"], 25))
    new = np.random.default_rng(0).uniform([-1.5, -2], [1.5, 3], (200, 2))
    assert_allclose(model.distances(new), np.abs(new[:, [1, 1]] - [1.0, 0.0]), atol=1e-6)  # "high" sorts first
    assert_array_equal(model.predict(new), np.where(new[:, 1] > 0.5, "high", "low"))


def test_between_rings_the_nearer_radius_decides():
    X, y = rings()
    model = NearestSurfaceClassifier(RING).fit(X, y)
    new = np.random.default_rng(1).uniform(-2.5, 2.5, (400, 2))
    radius = np.linalg.norm(new, axis=1)
    clear = np.abs(radius - 1.5) > 0.1
    assert_array_equal(model.predict(new[clear]), (radius[clear] > 1.5).astype(int))
    assert_allclose(model.distances(new), np.abs(radius[:, None] - [1.0, 2.0]), atol=0.1)


def test_planes_for_surfaces_make_the_nearest_subspace_classifier():
    """With anything that projects: here the oldest of such classifiers, computed by hand."""
    X, y = clouds()
    model = NearestSurfaceClassifier(Flat(2)).fit(X, y)
    squared = []
    for label in range(3):
        center = X[y == label].mean(axis=0)
        axes = np.linalg.svd(X[y == label] - center)[2][:2]
        squared.append((((X - center) - (X - center) @ axes.T @ axes) ** 2).sum(axis=1))
    assert_allclose(model.distances(X) ** 2, np.transpose(squared), atol=1e-12)
    assert_array_equal(model.predict(X), np.argmin(squared, axis=0))
    assert_allclose(model.decision_function(X), -np.transpose(squared), atol=1e-12)


def test_each_class_has_the_surface_that_its_rows_alone_give(strips):
    model, X, y = strips
    assert len(model.surfaces_) == 3
    for label, surface in zip(model.classes_, model.surfaces_, strict=True):
        alone = clone(LINE).fit(X[y == label])
        assert_array_equal(surface.weights_, alone.weights_)
    assert not hasattr(LINE, "weights_")
    assert model.estimator is LINE


def test_the_posterior_is_bayes_rule(strips):
    model, X, y = strips
    joint = np.stack([np.exp(s.score_samples(X)) for s in model.surfaces_], axis=1) * np.bincount(y) / len(y)
    assert_allclose(model.predict_proba(X), joint / joint.sum(axis=1, keepdims=True), atol=1e-12)
    assert_allclose(model.decision_function(X), np.log(joint), atol=1e-9)
    assert_array_equal(model.predict(X), joint.argmax(axis=1))
    assert_array_equal(model.predict(X) == y, model.predict_proba(X).argmax(axis=1) == y)


def test_the_more_frequent_class_wins_where_likelihoods_are_equal():
    """The same rows under both labels, three times as many under one: the odds are three to one everywhere."""
    X = clouds()[0]
    y = np.repeat([0, 1], len(X))
    weight = np.repeat([1.0, 3.0], len(X))
    model = NearestSurfaceClassifier(GTM(1, nodes=12, basis=4, regularization=0.0, max_iter=20, tol=0), by="likelihood")
    model.fit(np.concatenate([X, X]), y, weight)
    assert_allclose(model.class_prior_, [0.25, 0.75])
    assert_allclose(model.predict_proba(X), np.broadcast_to([0.25, 0.75], (len(X), 2)), atol=1e-6)
    assert_allclose(model.decision_function(X), np.log(3), atol=1e-5)


@pytest.mark.parametrize("by", ["distance", "likelihood"])
def test_rows_far_from_everything_have_an_answer(by):
    X, y = rings()
    model = NearestSurfaceClassifier(RING, by=by).fit(X, y)
    far = np.array([[1e6, 0.0], [0.0, -1e6]])
    assert_array_equal(model.predict(far), [1, 1])  # the outer ring is nearer
    assert np.isfinite(model.decision_function(far)).all()
    if by == "likelihood":
        assert_allclose(model.predict_proba(far).sum(axis=1), 1.0)


def test_two_classes_have_one_score_and_three_have_three(strips):
    model, X, _ = strips
    assert model.decision_function(X).shape == (len(X), 3)
    assert_array_equal(model.decision_function(X).argmax(axis=1), model.predict(X))
    X, y = rings()
    two = NearestSurfaceClassifier(RING).fit(X, y)
    squared = two.distances(X) ** 2
    assert_allclose(two.decision_function(X), squared[:, 0] - squared[:, 1], atol=1e-12)
    assert_array_equal(two.decision_function(X) > 0, two.predict(X) == 1)


def test_one_class_is_always_right():
    X, _ = rings()
    model = NearestSurfaceClassifier(RING, by="likelihood").fit(X, np.full(len(X), "only"))
    assert set(model.predict(X)) == {"only"}
    assert_array_equal(model.predict_proba(X), np.ones((len(X), 1)))


# ------------------------------------------------------------------------------------------ symmetries


def test_rigid_motions_and_the_order_of_rows_change_nothing():
    X, y = clouds()
    model = NearestSurfaceClassifier(LINE).fit(X, y)
    order = np.random.default_rng(3).permutation(len(X))
    assert_allclose(NearestSurfaceClassifier(LINE).fit(X[order], y[order]).distances(X), model.distances(X), atol=1e-6)
    moved = 2.0 * X @ random_rotation(4) + 5.0
    assert_allclose(NearestSurfaceClassifier(LINE).fit(moved, y).distances(moved), 2.0 * model.distances(X), atol=1e-6)


@pytest.mark.parametrize("names", [[7, -1, 3], ["b", "c", "a"], [2.0, 1.0, 0.0]])
def test_classes_may_have_any_names(names):
    X, y = clouds()
    plain = NearestSurfaceClassifier(LINE).fit(X, y)
    named = NearestSurfaceClassifier(LINE).fit(X, np.array(names)[y])
    assert_array_equal(named.classes_, sorted(names))
    assert_array_equal(named.predict(X), np.array(names)[plain.predict(X)])
    assert_array_equal(named.distances(X), plain.distances(X)[:, np.argsort(names)])


def test_weights_count_rows_down_to_a_class_of_one():
    X, y = clouds(30)
    X, y = np.concatenate([X, [[3.0, 3.0, 3.0, 3.0]]]), np.append(y, 3)
    weight = np.append(np.arange(30) % 3, 2).astype(int)
    repeated = NearestSurfaceClassifier(LINE).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    weighted = NearestSurfaceClassifier(LINE).fit(X, y, weight)
    assert_allclose(weighted.distances(X), repeated.distances(X), atol=1e-6)
    assert_allclose(weighted.class_prior_, repeated.class_prior_)
    assert_array_equal(NearestSurfaceClassifier(LINE).fit(X, y, np.append(np.ones(30), 0)).classes_, [0, 1, 2])


def test_weights_of_any_sum_will_do():
    X, y = rings()
    model = NearestSurfaceClassifier(RING).fit(X, y, np.full(len(X), 1 / len(X)))
    assert_allclose(model.class_prior_, [0.5, 0.5])


# --------------------------------------------------------------------------------------------- places


@pytest.mark.parametrize("form", ["default", "pandas"])
def test_a_place_is_that_on_the_surface_of_the_predicted_class(form, strips):
    if form == "pandas":
        pytest.importorskip("pandas")
    _, X, y = strips
    model = NearestSurfaceClassifier(clone(LINE).set_output(transform=form), by="likelihood").fit(X, y)
    new = clouds(40, seed=5)[0]
    found = model.locate(new)
    assert_array_equal(found.labels, model.predict(new))
    assert set(found.labels) == {0, 1, 2}
    for row, label, place in zip(new, *found, strict=True):
        assert_allclose(np.asarray(model.surfaces_[label].transform(row[None]))[0], place, atol=1e-12)


def test_on_poses_surfaces_beat_planes_and_neighbours_and_the_pose_is_found():
    """What a nearest-subspace classifier and nearest neighbours miss by, a sphere for each body does not."""
    bodies = ("bottle", "mushroom", "shuttlecock")
    seen = datasets.make_poses(600, noise=0.15, body=bodies, rng=0)
    new = datasets.make_poses(300, noise=0.15, body=bodies, rng=1)
    model = NearestSurfaceClassifier(GTM(latent="sphere")).fit(seen.X, seen.labels)
    planes = NearestSurfaceClassifier(Flat(9)).fit(seen.X, seen.labels)
    neighbor = KNeighborsClassifier(1).fit(seen.X, seen.labels)
    best = max(rival.score(new.X, new.labels) for rival in (planes, neighbor))
    # Three standard errors of a difference between two shares of 300 rows, near one half at worst.
    assert model.score(new.X, new.labels) > best + 0.05
    labels, latent = model.locate(new.X)
    for label in range(3):
        rows = (labels == label) & (new.labels == label)
        turn, _ = orthogonal_procrustes(latent[rows], new.latent[rows])
        cosine = np.clip(np.einsum("ij,ij->i", latent[rows] @ turn, new.latent[rows]), -1, 1)
        # Without knowledge half of all directions lie beyond 90°.
        assert np.degrees(np.median(np.arccos(cosine))) < 20


# -------------------------------------------------------------------------------- at home in scikit-learn


def test_frames_and_names():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X, y = clouds()
    plain = NearestSurfaceClassifier(LINE).fit(X, y)
    for frame, target in (
        (pandas.DataFrame(X, columns=list("abcd")), pandas.Series(y).astype("category")),
        (polars.DataFrame(X, schema=list("abcd")), polars.Series(y)),
    ):
        model = NearestSurfaceClassifier(LINE).fit(frame, target)
        assert list(model.feature_names_in_) == list("abcd")
        assert_array_equal(model.predict(frame), plain.predict(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(polars.DataFrame(X, schema=list("abdc")))


def test_pipelines_and_grid_search(tmp_path):
    X, y = clouds()
    pipeline = make_pipeline(StandardScaler(), NearestSurfaceClassifier(LINE))
    search = GridSearchCV(pipeline, {"nearestsurfaceclassifier__estimator__basis": [2, 4]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.7
    save(search.best_estimator_, tmp_path / "pipeline.prinfold")
    assert_array_equal(load(tmp_path / "pipeline.prinfold").predict(X), search.predict(X))


def test_held_out_rows_give_distances_a_noise():
    """scikit-learn's temperature is 2 s²: probabilities from distances, calibrated on rows not seen."""
    calibration = pytest.importorskip("sklearn.calibration")
    X, y = clouds(600)
    try:
        model = calibration.CalibratedClassifierCV(NearestSurfaceClassifier(LINE), method="temperature", cv=3)
        shares = model.fit(X, y).predict_proba(X)
    except ValueError:
        pytest.skip("scikit-learn before 1.8 has no temperature")
    assert_allclose(shares.sum(axis=1), 1.0)
    inverse = [each.calibrators[0].beta_ for each in model.calibrated_classifiers_]
    assert_allclose(1 / (2 * np.array(inverse)), 0.15**2, rtol=0.5)


# -------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"estimator": GTM}, "estimator must be None or an estimator with fit, transform and project"),
        ({"estimator": PCA()}, r"estimator must be .*, such as GTM\(\), got PCA\(\)"),
        ({"by": "likelihod"}, "did you mean 'likelihood'"),
        ({"estimator": Flat(), "by": "likelihood"}, "Flat has no score_samples. Use by='distance'"),
    ],
)
def test_wrong_parameters_are_named(settings, words):
    with pytest.raises(InvalidParameterError, match=words):
        NearestSurfaceClassifier(**settings).fit(*clouds())


def test_wrong_data_are_named():
    X, y = clouds()
    with pytest.raises(InvalidDataError, match=re.escape("'rare' (1)") + ".*Leave them out, join them"):
        NearestSurfaceClassifier(LINE).fit(X, np.where(np.arange(len(X)) == 4, "rare", "other"))
    with pytest.raises(InvalidDataError, match=re.escape("1 (1.5), 2 (1)")):
        NearestSurfaceClassifier(LINE).fit(X[:4], [0, 0, 1, 2], [1, 1, 1.5, 1])
    with pytest.raises(InvalidDataError, match="requires y to be passed"):
        NearestSurfaceClassifier(LINE).fit(X, None)
    with pytest.raises(InvalidDataError, match="Unknown label type: continuous"):
        NearestSurfaceClassifier(LINE).fit(X, X[:, 0])
    with pytest.raises(InvalidDataError, match="inconsistent numbers of samples"):
        NearestSurfaceClassifier(LINE).fit(X, y[:-1])
    with pytest.raises(InvalidParameterError, match="Flat takes no sample_weight"):
        NearestSurfaceClassifier(Flat()).fit(X, y, np.ones(len(y)))


def test_what_goes_wrong_in_a_class_is_said_of_that_class():
    X, y = clouds()
    with pytest.raises(InvalidDataError, match=r"class 0 \(30 rows\): init has 5 latent"):
        NearestSurfaceClassifier(GTM(init=np.zeros((5, 2)))).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="Class 'short': .*Raise max_iter"):
        NearestSurfaceClassifier(GTM(1, max_iter=2)).fit(X, ["short"] * len(X))


def test_a_failed_fit_leaves_nothing_of_the_one_before(strips):
    X, y = clouds()
    model = NearestSurfaceClassifier(LINE).fit(X, y)
    with pytest.raises(InvalidDataError):
        model.fit(X, np.append(y[:-1], 9))
    assert not hasattr(model, "surfaces_")


def test_distances_alone_give_no_probabilities():
    model = NearestSurfaceClassifier(LINE)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba") as caught:
        model.predict_proba
    assert "CalibratedClassifierCV" in str(caught.value.__cause__)
    assert hasattr(NearestSurfaceClassifier(by="likelihood"), "predict_proba")


# --------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("by", ["distance", "likelihood"])
@pytest.mark.parametrize("names", [[0, 1, 2], ["low", "middle", "high"], [0.0, 1.0, 2.0]])
def test_files_and_pickles_give_the_same_model(by, names, tmp_path):
    X, y = clouds()
    recipe = clone(LINE).set_params(nodes=np.linspace(-1, 1, 12)[:, None], latent=None)
    model = NearestSurfaceClassifier(recipe, by=by).fit(X, np.array(names)[y])
    model.save(tmp_path / "model.prinfold")
    for back in (load(tmp_path / "model.prinfold"), pickle.loads(pickle.dumps(model))):
        for verb in ("predict", "decision_function", "distances"):
            assert_array_equal(getattr(back, verb)(X), getattr(model, verb)(X))
        assert_array_equal(back.locate(X).latent, model.locate(X).latent)
        assert_array_equal(back.estimator.nodes, recipe.nodes)
        assert back.by == by
        assert not hasattr(back.estimator, "latent_")
    again = clone(load(tmp_path / "model.prinfold"))
    assert again.get_params()["estimator__max_iter"] == 20


@pytest.mark.parametrize("by", ["distance", "likelihood"])
def test_oriented_noise_serves_as_well(by, tmp_path):
    """At clamping 1 a probabilistic principal surface is the GTM, and so is what it decides."""
    seen = datasets.make_poses(120, body=("bottle", "mushroom"), n_pixels=6, rng=0)
    settings = {"latent": "sphere", "nodes": 60, "basis": 12, "max_iter": 15, "tol": 0}
    scores = []
    for recipe in (GTM(**settings), PPS(clamping=1.0, trainer="gtm", **settings), PPS(clamping=0.5, **settings)):
        model = NearestSurfaceClassifier(recipe, by=by).fit(seen.X, seen.names)
        scores.append(model.decision_function(seen.X))
        model.save(tmp_path / "model.prinfold")
        assert_array_equal(load(tmp_path / "model.prinfold").decision_function(seen.X), scores[-1])
        assert model.locate(seen.X).latent.shape == (120, 3)
    assert_allclose(scores[1], scores[0], rtol=1e-6, atol=1e-6)
    assert not np.allclose(scores[2], scores[0], rtol=1e-3)


def test_of_a_fitted_recipe_the_file_keeps_the_recipe_only(tmp_path):
    X, y = clouds()
    recipe = clone(LINE).fit(X)
    NearestSurfaceClassifier(recipe).fit(X, y).save(tmp_path / "model.prinfold")
    assert not hasattr(load(tmp_path / "model.prinfold").estimator, "weights_")


def test_the_default_recipe_is_stored_as_none(tmp_path):
    X, y = clouds()
    NearestSurfaceClassifier().fit(X, y).save(tmp_path / "model.prinfold")
    assert load(tmp_path / "model.prinfold").estimator is None


def test_what_a_file_cannot_hold_is_named(tmp_path):
    X, y = clouds()
    with pytest.raises(NotStorableError, match=r"NearestSurfaceClassifier.*Flat"):
        NearestSurfaceClassifier(Flat()).fit(X, y).save(tmp_path / "model.prinfold")
    with pytest.raises(NotStorableError, match="not fitted"):
        NearestSurfaceClassifier().save(tmp_path / "model.prinfold")


def spoil_share(body):
    body["fitted"]["$dict"]["class_prior_"] = 0.5


def spoil_surface(body):
    body["fitted"]["$dict"]["surfaces_"][0] = body["init"]["$dict"]["estimator"]


def spoil_number(body):
    del body["fitted"]["$dict"]["surfaces_"][0]


def spoil_columns(body):
    body["fitted"]["$dict"]["n_features_in_"] = 3


def spoil_recipe(body):
    body["init"]["$dict"]["estimator"]["$recipe"] = "Lattice"


@pytest.mark.parametrize(
    ("spoil", "error", "words"),
    [
        (spoil_share, CorruptModelFileError, "class_prior_ in the file is 0.5, but must be"),
        (spoil_surface, CorruptModelFileError, "surfaces_ in the file is a list"),
        (spoil_number, CorruptModelFileError, "surfaces_ in the file is a list"),
        (spoil_columns, CorruptModelFileError, "surfaces_ in the file is a list"),
        (spoil_recipe, UnknownModelError, "'Lattice', which this version"),
    ],
)
def test_a_forged_file_is_refused(spoil, error, words, strips, tmp_path):
    strips[0].save(tmp_path / "model.prinfold")
    body, arrays = dismantle(tmp_path / "model.prinfold")
    spoil(body["model"])
    with pytest.raises(error, match=words):
        load(forge(tmp_path / "forged.prinfold", body, arrays))


def test_a_recipe_is_no_model(strips, tmp_path):
    strips[0].save(tmp_path / "model.prinfold")
    body, arrays = dismantle(tmp_path / "model.prinfold")
    body["model"] = body["model"]["init"]["$dict"]["estimator"]
    with pytest.raises(CorruptModelFileError, match="not describe a fitted model, but one that is not fitted"):
        load(forge(tmp_path / "forged.prinfold", body, arrays))
