"""UKR beyond the contract: what it chooses, where it ends, feature space, landmarks, and rows that are not easy."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import rbf_kernel

from prinfold import UKR, Contour, datasets, load
from prinfold.exceptions import (
    CorruptModelFileError,
    DegenerateWarning,
    InvalidDataError,
    InvalidParameterError,
    NoPreimageError,
    NotStorableError,
    OutOfDomainError,
)
from prinfold.kernel_manifolds import ukr as estimator
from prinfold.kernel_manifolds.feature_kernels import l1_kernel
from prinfold.loops import StopReason

ignore = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")


def spiral(n=200, seed=0, **settings):
    return datasets.make_spiral(n, rng=seed, **settings)


def bend(n=150, seed=0, noise=0.05):
    return datasets.make_half_circle(n, noise=noise, rng=seed)


def curve(**settings):
    return UKR(**{"n_components": 1, "init": "isomap", "n_neighbors": 8, **settings})


# ------------------------------------------------------------------------------------------------------- training


def test_a_spiral_is_followed_from_end_to_end():
    data = spiral(300)
    model = UKR(1).fit(data.X)
    order = np.abs(
        np.corrcoef(np.argsort(np.argsort(model.embedding_[:, 0])), np.argsort(np.argsort(data.latent[:, 0])))
    )
    assert order[0, 1] > 0.99
    fitted = model.project(data.X)
    assert np.mean(data.surface.distance(fitted) ** 2) < 0.2 * 0.05**2
    ends = data.surface.point(np.array(data.surface.domain.low + data.surface.domain.high)[:, None])
    assert cdist(ends, model.mesh().vertices).min(axis=1).max() < 0.2


def test_the_default_ends_at_the_noise_and_says_so():
    model = UKR(1).fit(spiral(300).X)
    assert model.stop_reason_ is StopReason.NOISE
    assert model.converged_
    assert model.history_["typical"][-1] <= model.noise_level_
    # 1.4 times the noise across the curve.
    assert_allclose(model.noise_level_, 1.4 * 0.05**2, rtol=0.3)


@pytest.mark.parametrize("solver", ["lbfgs", "rprop", "gradient"])
def test_the_minimum_has_the_lower_error_and_the_default_the_better_curve(solver):
    data = bend(200, noise=0.1)
    near, low = (curve(stop=stop, solver=solver, max_iter=80, tol=1e-9) for stop in ("noise", "minimum"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        near.fit(data.X), low.fit(data.X)
    assert low.history_["error"][-1] < 0.8 * near.history_["error"][-1]
    truth = [np.mean(data.surface.distance(model.mesh().vertices) ** 2) for model in (near, low)]
    assert truth[0] < 0.7 * truth[1]
    assert low.noise_level_ == 0


def test_the_table_of_candidates_is_kept_and_the_lowest_error_chosen():
    model = UKR(1).fit(spiral().X)
    table = model.candidates_
    assert set(table.names) == {"pca", "lle", "isomap", "loop"}
    assert table.errors[table.chosen] == table.errors.min()
    assert_allclose(model.history_["error"][0], table.errors.min(), rtol=1e-9)
    assert "← chosen" in str(table)


@pytest.mark.parametrize("init", ["pca", "lle", "isomap", "laplacian", "kernel_pca", "loop", ("pca", "laplacian")])
def test_every_start_can_be_asked_for(init):
    model = UKR(1, init=init, n_neighbors=10, max_iter=3, tol=0).fit(bend().X)
    assert set(model.candidates_.names) <= ({init} if isinstance(init, str) else set(init))
    assert np.isfinite(model.embedding_).all()


def test_coordinates_that_are_given_are_the_start():
    data = spiral()
    model = curve(init=data.latent, max_iter=0, tol=0).fit(data.X)
    assert model.candidates_.names == ("given",)
    assert abs(np.corrcoef(model.embedding_[:, 0], data.latent[:, 0])[0, 1]) > 1 - 1e-9
    with pytest.raises(InvalidDataError, match=r"shape \(200, 1\)"):
        curve(init=data.latent[:-1]).fit(data.X)


def test_a_bandwidth_that_is_given_is_the_scale():
    model = curve(bandwidth=0.25, max_iter=0, tol=0).fit(bend().X)
    assert_allclose(model.embedding_.std(), 4.0, rtol=1e-9)


@ignore
def test_the_homotopy_opens_a_circle_that_starts_folded_flat():
    far = {False: [], True: []}
    for seed in range(2):
        data = datasets.make_circle(200, noise=0.1, rng=seed)
        for homotopy, found in far.items():
            model = UKR(1, init="pca", homotopy=homotopy).fit(data.X)
            assert (model.homotopy_ is not None) is homotopy
            found.append(np.mean(data.surface.distance(model.mesh().vertices) ** 2))
    assert np.mean(far[True]) < 0.6 * np.mean(far[False])


def test_straight_data_stay_straight():
    """Surface points are means of several rows, and so nearer to the plane than the rows are."""
    rng = np.random.default_rng(1)
    axes = np.linalg.qr(rng.standard_normal((6, 2)))[0]
    X = rng.uniform(-1, 1, (300, 2)) * [2, 3] @ axes.T + 0.01 * rng.standard_normal((300, 6))
    vertices = UKR().fit(X).mesh(12).vertices
    off = np.linalg.norm(vertices - vertices @ axes @ axes.T, axis=1)
    assert np.sqrt(np.mean(off**2)) < 0.7 * np.sqrt(4) * 0.01


# ----------------------------------------------------------------------------------------------- latent domain


def test_the_domain_ends_at_the_least_density_of_a_latent_point():
    model = curve().fit(bend().X)
    K0 = model.latent_density(model.embedding_).max() / 1.0
    assert K0 > 0
    assert model.latent_.domain.contains(model.embedding_).all()
    density = model._model.density(model.embedding_)
    assert_allclose(model.threshold_, density.min(), rtol=1e-6)
    assert model.threshold_ >= 1 / 150
    with pytest.raises(OutOfDomainError):
        model.inverse_transform([[model.embedding_.max() + 50]])


def test_a_contour_holds_its_share_of_the_rows():
    model = curve(threshold=Contour(0.8)).fit(bend().X)
    inside = model._model.density(model.latent_.centers) >= model.threshold_
    assert 0.8 <= inside.mean() < 0.83
    assert model.latent_.domain.contains(model.embedding_).all()


@ignore
def test_a_number_is_held_while_training():
    model = curve(threshold=0.1, max_iter=60).fit(bend().X)
    assert model._model.density(model.embedding_).min() >= 0.1 * (1 - 1e-6)
    assert model.threshold_ == 0.1
    k = np.exp(-0.5 * cdist(model.embedding_, model.embedding_, "sqeuclidean"))
    predicted = k @ bend().X / k.sum(axis=1, keepdims=True)
    plain = np.square(predicted - bend().X).sum(axis=1).mean()
    assert_allclose(model.history_["error"][-1], plain, rtol=1e-3, err_msg="rows are not left out where density holds")
    with pytest.raises(InvalidParameterError, match="threshold"):
        curve(threshold=-1.0).fit(bend().X)
    with pytest.raises(InvalidParameterError, match="can be kept by no row"):
        curve(threshold=2.0).fit(bend().X)


def test_two_clusters_have_a_domain_in_two_pieces():
    rng = np.random.default_rng(0)
    t = np.concatenate([np.linspace(0, 1, 80), np.linspace(3, 4, 80)])
    X = np.stack([t, 0.2 * t], axis=1) + 0.01 * rng.standard_normal((160, 2))
    model = UKR(1, init="pca").fit(X)
    between = np.linspace(model.embedding_.min(), model.embedding_.max(), 400)[:, None]
    assert not model.latent_.domain.contains(between).all()
    pieces = np.diff(model.latent_.domain.contains(between).astype(int))
    assert (pieces != 0).sum() >= 2
    assert np.linalg.norm(model.project([[2.0, 0.4]]) - [[2.0, 0.4]]) > 0.5, "there is no surface between the two"


def test_the_latent_density_integrates_to_one_and_samples_follow_it():
    model = curve().fit(bend().X)
    low, high = model.embedding_.min() - 8, model.embedding_.max() + 8
    Z = np.linspace(low, high, 4000)[:, None]
    assert_allclose(np.trapezoid(model.latent_density(Z), Z[:, 0]), 1.0, rtol=1e-6)
    points, latent = model.sample(2000, random_state=0, return_latent=True)
    assert model.latent_.domain.contains(latent).all()
    assert_allclose(points, model.inverse_transform(latent), atol=1e-10)
    assert_allclose(np.median(latent), np.median(model.embedding_), atol=0.1 * np.ptp(model.embedding_))


# ------------------------------------------------------------------------------------------------ feature space


def test_the_linear_kernel_is_data_space():
    data = spiral()
    plain, linear = curve().fit(data.X), curve(feature_kernel="linear").fit(data.X)
    assert_allclose(np.abs(linear.embedding_), np.abs(plain.embedding_), rtol=1e-4, atol=1e-4)
    new = spiral(seed=1).X
    assert_allclose(linear.projection_error(new), plain.projection_error(new), rtol=1e-4)


def test_a_precomputed_kernel_is_the_kernel_evaluated():
    data, new = bend(), bend(seed=1)
    asked = curve(feature_kernel="rbf", feature_params={"gamma": 0.5}).fit(data.X)
    given = curve(feature_kernel="precomputed").fit(rbf_kernel(data.X, gamma=0.5))
    # Eigenvectors have no signs of their own, and so neither has the latent axis.
    sign = np.sign(np.vdot(given.embedding_, asked.embedding_))
    assert_allclose(sign * given.embedding_, asked.embedding_, atol=1e-5)
    Z = given.transform(rbf_kernel(new.X, data.X, gamma=0.5))
    assert_allclose(sign * Z, asked.transform(new.X), atol=1e-4)


def test_a_function_and_a_conditionally_positive_definite_one_serve_like_the_l1_kernel_by_name():
    data = bend()
    by_name = curve(feature_kernel="l1").fit(data.X)
    for kernel in (l1_kernel, lambda A, B: -0.5 * cdist(A, B, "cityblock")):
        model = curve(feature_kernel=kernel).fit(data.X)
        assert_allclose(model.transform(data.X[:20]), by_name.transform(data.X[:20]), atol=1e-5)
        assert_allclose(model.projection_error(data.X), by_name.projection_error(data.X), rtol=1e-6)


def test_errors_in_feature_space_count_what_lies_beyond_the_span_of_the_training_rows():
    """With the L1 kernel the squared distance of a row from one training row is the L1 distance of the data."""
    data = bend()
    model = curve(feature_kernel="l1").fit(data.X)
    far = np.array([[50.0, 50.0]])
    nearest = np.abs(far - data.X).sum(axis=1).min()
    assert 0.9 * nearest < model.projection_error(far) < 1.05 * nearest
    assert model._nearest(far).squared_distance[0] < 0.2 * nearest, "nearly all of it lies beyond the span"


def test_approximate_points_of_feature_space_are_weighted_means_of_the_rows():
    data, weight = bend(60), np.random.default_rng(0).integers(1, 5, 60).astype(float)
    model = curve(feature_kernel="rbf", preimage=True).fit(data.X, sample_weight=weight)
    order = np.lexsort(data.X.T[::-1])
    k = weight[order] * np.exp(-0.5 * np.square(model.embedding_[order] - model.embedding_[3]).sum(axis=1))
    assert_allclose(model.inverse_transform(model.embedding_[3:4])[0], k @ data.X[order] / k.sum(), atol=1e-9)


def test_points_of_feature_space_are_refused_unless_approximate_ones_are_asked_for():
    data = bend()
    model = curve(feature_kernel="l1").fit(data.X)
    Z = model.transform(data.X[:5])
    for ask in (
        lambda: model.inverse_transform(Z),
        lambda: model.project(data.X),
        lambda: model.reconstruct(data.X),
        lambda: model.jacobian(Z),
        lambda: model.sample(3),
        model.mesh,
    ):
        with pytest.raises(NoPreimageError, match="preimage=True"):
            ask()
    assert np.isfinite(model.score(data.X))
    assert model.magnification(Z).factor.shape == (5,)
    near = curve(feature_kernel="l1", preimage=True).fit(data.X)
    assert_allclose(near.inverse_transform(Z), near.reconstruct(data.X[:5]), atol=1e-6)
    assert np.mean(data.surface.distance(near.project(data.X)) ** 2) < 0.05**2
    assert near.mesh().vertices.shape[1] == 2
    matrix = curve(feature_kernel="precomputed", preimage=True).fit(l1_kernel(data.X, data.X))
    with pytest.raises(NoPreimageError, match="precomputed"):
        matrix.project(l1_kernel(data.X, data.X))


def test_kernels_that_cannot_serve_are_refused():
    with pytest.raises(InvalidDataError, match="not conditionally positive definite"):
        curve(feature_kernel=lambda A, B: -(A @ B.T)).fit(bend().X)
    with pytest.raises(InvalidParameterError, match="cannot be chosen from a precomputed kernel"):
        curve(feature_kernel="precomputed", landmarks=20).fit(rbf_kernel(bend().X))
    with pytest.raises(InvalidDataError, match=r"shape \(n, n\), got \(150, 2\)"):
        curve(feature_kernel="precomputed").fit(bend().X)
    with pytest.raises(InvalidParameterError, match="feature_kernel"):
        curve(feature_kernel="nonsense").fit(bend().X)


# --------------------------------------------------------------------------------------------------- landmarks


def test_landmarks_stand_for_all_rows_and_lose_little():
    data, new = bend(600, noise=0.1), bend(600, seed=1, noise=0.1)
    whole, few = curve().fit(data.X), curve(landmarks=100).fit(data.X)
    assert len(few.latent_.centers) <= 100
    assert_allclose(few.latent_.weight.sum(), 600)
    assert few.embedding_.shape == (600, 1)
    assert few.projection_error(new.X) < 1.15 * whole.projection_error(new.X)
    truth = [np.mean(data.surface.distance(model.mesh().vertices) ** 2) for model in (whole, few)]
    assert truth[1] < 2 * truth[0] + 0.1 * 0.1**2


def test_of_many_rows_some_become_landmarks_unless_all_are_asked_for(monkeypatch):
    monkeypatch.setattr(estimator, "_MOST_ROWS_WITHOUT_LANDMARKS", 150)
    monkeypatch.setattr(estimator, "_DEFAULT_LANDMARKS", 40)
    few, many = bend(150), bend(151)
    by_choice, asked = curve().fit(many.X), curve(landmarks=40).fit(many.X)
    assert len(by_choice.latent_.centers) <= 40
    assert_array_equal(by_choice.embedding_, asked.embedding_)
    assert len(curve().fit(few.X).latent_.centers) == 150
    assert len(curve(landmarks=None).fit(many.X).latent_.centers) == 151
    kernel = rbf_kernel(many.X)
    assert len(curve(feature_kernel="precomputed").fit(kernel).latent_.centers) == 151


# ----------------------------------------------------------------------------------------------- rows that are not easy


def test_rows_without_weight_have_a_place_but_no_say():
    data = bend()
    weight = np.ones(150)
    weight[:30] = 0
    model, without = curve().fit(data.X, sample_weight=weight), curve().fit(data.X[30:])
    assert_allclose(model.embedding_[30:], without.embedding_, atol=1e-9)
    assert_allclose(model.embedding_[:30], without.transform(data.X[:30]), atol=1e-9)


@pytest.mark.parametrize("kernel", ["gaussian", "quartic"])
def test_repeats_and_outliers(kernel):
    data = bend()
    X = np.concatenate([data.X, data.X[:20], [[30.0, -40.0]]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        model = curve(kernel=kernel).fit(X)
    assert np.isfinite(model.embedding_).all()
    assert_allclose(model.embedding_[:20], model.embedding_[150:170], atol=0)
    assert np.mean(data.surface.distance(model.project(data.X)) ** 2) < 0.1**2


def test_equal_rows_have_no_surface_and_say_so():
    with pytest.warns(DegenerateWarning, match="All rows are equal"):
        model = UKR().fit(np.full((10, 3), 2.5))
    assert_allclose(model.project([[0.0, 0.0, 0.0]]), [[2.5, 2.5, 2.5]])
    assert model.transform([[1.0, 2.0, 3.0]]).shape == (1, 2)


@ignore
@pytest.mark.parametrize("n", [2, 3, 4, 6])
@pytest.mark.parametrize("kernel", ["gaussian", "quartic"])
def test_a_few_rows(n, kernel):
    X = np.random.default_rng(n).normal(size=(n, 3))
    model = UKR(kernel=kernel).fit(X)
    assert np.isfinite(model.transform(X)).all()
    assert np.isfinite(model.project(X)).all()


def test_latent_points_that_predict_nothing_or_stand_alone_are_told_of():
    X = bend().X
    with pytest.warns(DegenerateWarning, match="no better than their mean"):
        UKR(1, init=np.zeros((150, 1))).fit(X)
    with pytest.warns(DegenerateWarning, match="no neighbours"):
        UKR(1, init="pca", bandwidth=1e-6).fit(X)


def test_noise_is_judged_before_the_homotopy_follows_it():
    data = bend(noise=0.1)
    plain, parted = (curve(homotopy=homotopy).fit(data.X) for homotopy in (False, True))
    assert_allclose(parted.noise_level_, plain.noise_level_, rtol=1e-9)
    assert np.mean(data.surface.distance(parted.mesh().vertices) ** 2) < 0.5 * 0.1**2


def test_one_column_warns_of_the_dimension():
    X = np.random.default_rng(0).normal(size=(40, 1))
    with pytest.warns(DegenerateWarning, match="Set n_components=1"):
        model = UKR().fit(X)
    assert model.projection_error(X) < X.var()


def test_a_compact_kernel_that_loses_points_fetches_them_back_and_says_so():
    data = bend(noise=0.02)
    given = 3 * data.latent.copy()
    given[7] = 400.0
    with pytest.warns(DegenerateWarning, match="were moved back"):
        model = curve(kernel="quartic", init=given, bandwidth=0.02, max_iter=50).fit(data.X)
    assert sum(model.history_["fetched"]) >= 1
    assert np.isfinite(model.embedding_).all()


# -------------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"kernel": "triweight"},
        {"threshold": Contour(0.9)},
        {"feature_kernel": "l1", "preimage": True},
        {"landmarks": 60},
    ],
)
@ignore
def test_files_bring_back_the_model(tmp_path, settings):
    data = bend()
    model = curve(**settings).fit(data.X)
    model.save(tmp_path / "curve.prinfold")
    read = load(tmp_path / "curve.prinfold")
    assert_allclose(read.transform(data.X), model.transform(data.X), atol=0)
    assert_allclose(read.project(data.X), model.project(data.X), atol=0)
    assert str(read.candidates_) == str(model.candidates_)
    assert read.threshold_ == model.threshold_


def test_a_function_cannot_be_written_to_a_file(tmp_path):
    model = curve(feature_kernel=l1_kernel).fit(bend().X)
    with pytest.raises(NotStorableError, match="feature_kernel"):
        model.save(tmp_path / "curve.prinfold")


def test_a_file_whose_parts_do_not_fit_is_refused(tmp_path):
    model = curve().fit(bend().X)
    model.values_ = model.values_[:-1]
    model.save(tmp_path / "curve.prinfold")
    with pytest.raises(CorruptModelFileError, match=r"UKR\.values_ in the file"):
        load(tmp_path / "curve.prinfold")


# ---------------------------------------------------------------------------------------------------- parameters


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"kernel": "epanechnikov"}, "kernel"),
        ({"init": "umap"}, "init"),
        ({"init": ("pca", "umap")}, "init"),
        ({"n_neighbors": 0}, "n_neighbors"),
        ({"bandwidth": 0.0}, "bandwidth"),
        ({"stop": "never"}, "stop"),
        ({"solver": "adam"}, "solver"),
        ({"landmarks": 3}, "landmarks"),
        ({"threshold": "high"}, "threshold"),
    ],
)
def test_parameters_that_make_no_sense_are_named(settings, match):
    with pytest.raises(InvalidParameterError, match=match):
        UKR(**settings).fit(bend().X)
