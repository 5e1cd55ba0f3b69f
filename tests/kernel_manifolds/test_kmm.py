"""What is particular to kernel map manifolds: two maps for any row, where training ends, and what it starts from."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from tests.properties.cases import cloud

from prinfold import GTM, KMM, Contour, datasets, load, metrics, plot, select_kmm
from prinfold.exceptions import CorruptModelFileError, DegenerateWarning, InvalidDataError, InvalidParameterError
from prinfold.files import save
from prinfold.loops import StopReason

QUICK = {"n_neighbors": 8, "max_iter": 10, "tol": 0.0}


def distance_to_truth(model, data) -> float:
    """Mean squared distance between g(f(y)) and the point of the true surface that y was drawn from."""
    return float(np.square(model.reconstruct(data.X) - data.clean).sum(axis=1).mean())


# ------------------------------------------------------------------------------------------------ the two maps


def test_transform_is_the_formula_of_f():
    X, new = cloud(), cloud(20, seed=9)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    model = KMM(**QUICK, truncation=50.0).fit(X, sample_weight=weight)
    rows, order = np.unique(X, axis=0, return_index=True)
    k = weight[order] * np.exp(-0.5 * np.square(new[:, None] - rows).sum(axis=2) / model.data_bandwidth_**2)
    f = k @ model.parameters_ / k.sum(axis=1, keepdims=True)
    inside = model.latent_.domain.contains(f)
    assert inside.sum() > 10
    assert_allclose(model.transform(new)[inside], f[inside], atol=1e-9)


def test_inverse_transform_is_the_formula_of_g():
    X = cloud()
    model = KMM(**QUICK).fit(X)
    Z = model.transform(X)
    k = np.exp(-0.5 * np.square(Z[:, None] - Z).sum(axis=2))
    assert_allclose(model.inverse_transform(Z), k @ X / k.sum(axis=1, keepdims=True), atol=1e-9)
    assert_allclose(model.embedding_, Z, atol=1e-12)


@pytest.mark.parametrize("threshold", ["auto", Contour(0.7)])
def test_every_row_has_a_place_in_the_domain(threshold):
    """Far rows take the nearest parameter, and what f puts between pieces of the domain comes to its edge."""
    X = np.concatenate([cloud(60), cloud(60, seed=8) + 6.0])
    model = KMM(**QUICK, threshold=threshold, init="pca").fit(X)
    new = np.concatenate([X, X * 0.5 + 1.5, 1e6 * X, [np.full(5, 3.0)], [np.full(5, -1e12)]])
    Z = model.transform(new)
    assert np.isfinite(Z).all()
    assert model.latent_.domain.contains(Z).all()
    assert_allclose(model.reconstruct(new), model.inverse_transform(Z), atol=1e-9)


def test_the_round_trip_is_nearer_to_the_truth_than_noisy_rows_are():
    data = datasets.make_swiss_roll(900, noise=0.5, rng=0)
    model = KMM().fit(data.X)
    new = datasets.make_swiss_roll(900, noise=0.5, rng=1)
    noise = float(np.square(new.X - new.clean).sum(axis=1).mean())
    assert noise > 0.2
    assert distance_to_truth(model, data) < 0.7 * noise


# ------------------------------------------------------------------------------------------------ where it ends


def test_training_ends_at_the_noise_and_short_of_the_minimum():
    data = datasets.make_corkscrew(300, noise=2.0, rng=1, reading="conjectured")
    early, late = KMM(n_neighbors=8).fit(data.X), KMM(n_neighbors=8, stop="minimum").fit(data.X)
    assert early.stop_reason_ is StopReason.NOISE
    assert early.history_["error"][-1] <= early.noise_level_ < early.history_["error"][-2]
    assert early.n_iter_ < late.n_iter_
    assert late.history_["error"][-1] < early.history_["error"][-1]
    assert distance_to_truth(early, data) < distance_to_truth(late, data)


def test_a_bandwidth_shorter_than_the_noise_is_wide_does_not_hide_the_noise():
    """Ten of 1800 neighbours along a half circle are a hundredth of the noise apart."""
    X = datasets.make_half_circle(1800, noise=0.1, rng=0).X
    model = KMM(1, n_neighbors=10).fit(X)
    assert 0.01 < model.noise_level_ < 0.02, "1.4 times the variance of the noise is 0.014"
    assert model.n_iter_ <= 3, "the start is about at the level of the noise"


@pytest.mark.parametrize("seed", range(3))
def test_much_noise_does_not_make_the_curve_long(seed):
    """Few neighbours leave the lowest residual, because coordinates then follow the noise."""
    data = datasets.make_half_circle(400, noise=0.2, rng=seed)
    model = KMM(1).fit(data.X)
    assert_allclose(model.noise_level_, 1.4 * 0.2**2, rtol=0.3)
    assert metrics.length(model.mesh().vertices[np.argsort(model.mesh().latent[:, 0])]) < 2 * np.pi


def test_annealing_does_not_go_past_the_noise():
    data = datasets.make_half_circle(120, noise=0.1, rng=0)
    model = KMM(1, n_neighbors=8, annealing=1000.0).fit(data.X)
    assert model.history_["error"][0] > 0.5 * model.noise_level_
    assert np.mean(data.surface.distance(model.mesh().vertices) ** 2) < 0.5 * 0.1**2


def test_neighbours_that_leave_rows_in_pieces_are_more_than_were_asked_for():
    X = np.random.default_rng(0).normal(size=(60, 3)) * 0.1 + np.repeat([[0.0], [5.0]], 30, axis=0)
    with pytest.warns(DegenerateWarning, match="n_neighbors=5 leaves the rows in separate pieces"):
        KMM(n_neighbors=5).fit(X)


def test_validation_keeps_the_best_of_rows_it_never_moves():
    data = datasets.make_corkscrew(300, noise=2.0, rng=0, reading="conjectured")
    model = KMM(n_neighbors=8, stop="validation", validation=0.25).fit(data.X)
    assert model.stop_reason_ is StopReason.VALIDATION
    errors = model.history_["validation"]
    assert len(model.parameters_) == 225
    assert model.embedding_.shape == (300, 2)
    seen = {tuple(row) for row in np.round(model.values_ + model.offset_, 9)}
    held = np.array([tuple(row) not in seen for row in np.round(data.X, 9)])
    assert held.sum() == 75
    left = np.square(model.reconstruct(data.X[held]) - data.X[held]).sum(axis=1).mean()
    assert_allclose(left, min(errors), rtol=0.02)  # but for rows that f puts outside the domain
    assert errors.index(min(errors)) < model.n_iter_


def test_without_leaving_one_out_the_residual_vanishes():
    """Section 4.3: coordinates part until every row stands alone."""
    X = cloud(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        plain, safe = (
            KMM(n_neighbors=5, stop="minimum", leave_one_out=loo, max_iter=300, data_bandwidth=0.05).fit(X)
            for loo in (False, True)
        )
    assert plain.history_["error"][-1] < 1e-3 * safe.history_["error"][-1]


def test_residuals_stand_more_upright_as_rows_grow_in_number():
    """Theorem 5.1: with the rows the bandwidths of a number of neighbours shrink."""
    cosines = []
    for n in (200, 600, 1800):
        X = datasets.make_swiss_roll(n, noise=0.3, rng=0).X
        model = KMM(n_neighbors=8).fit(X)
        Z = model.transform(X)
        interior = ~model.latent_.domain.boundary(Z)
        cosines.append(metrics.orthogonality(X, model.inverse_transform(Z), model.jacobian(Z), interior=interior).mean)
    assert cosines[0] > cosines[1] > cosines[2]


# ------------------------------------------------------------------------------------------------ where it starts


def test_coordinates_that_are_given_are_where_it_starts():
    X = cloud()
    Z = X[:, :2]
    model = KMM(init=Z, n_neighbors=8, max_iter=0, tol=0.0).fit(X)
    assert model.candidates_.names == ("given",)
    # Neither turned nor bent: centred, and in units of the bandwidth.
    order = np.unique(X, axis=0, return_index=True)[1]
    gap = np.abs(model.parameters_ * model.latent_bandwidth_) - np.abs((Z - Z.mean(axis=0))[order])
    assert_allclose(gap, 0.0, atol=1e-9)
    with pytest.raises(InvalidDataError, match="init must hold finite latent coordinates"):
        KMM(init=Z[:5]).fit(X)


def test_the_number_of_neighbours_is_chosen_by_the_residual():
    X = datasets.make_swiss_roll(400, noise=0.2, rng=0).X
    model = KMM(max_iter=0, tol=0.0).fit(X)
    table = model.candidates_
    assert {6, 10, 15, 25} <= set(table.neighbors)
    for k, residual in zip(table.neighbors, table.residuals, strict=True):
        alone = KMM(n_neighbors=int(k), max_iter=0, tol=0.0).fit(X)
        assert_allclose(alone.history_["error"][0], residual, rtol=1e-9)
    assert model.data_bandwidth_ == table.data_bandwidths[table.chosen]


@pytest.mark.parametrize("Q", [1, 2, 3])
def test_images_with_hundreds_of_columns(Q):
    X = datasets.make_poses(80, n_pixels=16, rng=0).X
    assert X.shape[1] == 256
    model = KMM(Q, n_neighbors=6, max_iter=5, tol=0.0).fit(X)
    assert model.reconstruct(X).shape == X.shape
    assert model.projection_error(X) < X.var(axis=0).sum()


def test_annealing_is_another_start():
    X = cloud()
    plain, annealed = KMM(**QUICK).fit(X), KMM(**QUICK, annealing=3.0).fit(X)
    assert not np.allclose(plain.parameters_, annealed.parameters_)
    assert annealed.history_["error"][0] != plain.history_["error"][0]


# ------------------------------------------------------------------------------------------------ the table of figure 1


def test_the_table_of_dimensions_and_its_picture():
    X = datasets.make_half_circle(150, noise=0.05, rng=0).X
    table = select_kmm(X, dimensions=(1, 2), n_neighbors=(6, 10))
    assert sorted(table.lowest) == [1, 2]
    assert table.lowest[1] < 0.1 * table.variance
    held = select_kmm(X, dimensions=(1,), n_neighbors=(6,), model=KMM(stop="validation"))
    assert held.residuals[0] != table.residuals[0]
    ax = plot.residuals(table)
    lines = [line for line in ax.lines if line.get_label() in {"6", "10"}]
    assert len(lines) == 2
    assert_array_equal(lines[0].get_xdata(), [1, 2])
    assert_allclose(lines[0].get_ydata(), table.residuals[table.neighbors == 6])
    plot.residuals(KMM(**QUICK).fit(X))
    with pytest.raises(InvalidParameterError, match="no table of residuals"):
        plot.residuals(GTM(nodes=4, basis=2, max_iter=20, tol=0.0).fit(cloud()))


# ------------------------------------------------------------------------------------------------ odd input


def test_rows_that_are_all_the_same_are_one_point():
    with pytest.warns(DegenerateWarning, match="All rows are equal"):
        model = KMM().fit(np.ones((5, 3)))
    assert_allclose(model.reconstruct(np.ones((2, 3))), 1.0)
    assert np.isfinite(model.transform(np.zeros((2, 3)))).all()


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
@pytest.mark.parametrize("n", [2, 3, 4])
@pytest.mark.parametrize("stop", ["noise", "validation", "minimum"])
def test_very_few_rows(n, stop):
    X = cloud(n)
    model = KMM(stop=stop, max_iter=5, tol=0.0).fit(X)
    assert np.isfinite(model.reconstruct(X)).all()


def test_steps_that_ran_out_are_told():
    with pytest.warns(ConvergenceWarning, match="Raise max_iter"):
        KMM(n_neighbors=8, max_iter=1, stop="minimum").fit(cloud())


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"validation": 1.0}, "validation must be a number between 0 and 1"),
        ({"truncation": 0.0}, "truncation must be"),
        ({"annealing": 0.5}, "annealing must be"),
        ({"stop": "never"}, "stop must be"),
        ({"init": "umap"}, "init must be"),
        ({"bandwidth_rule": "median"}, "bandwidth_rule must be"),
        ({"data_bandwidth": 0}, "data_bandwidth must be"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, match):
    with pytest.raises(InvalidParameterError, match=match):
        KMM(**settings).fit(cloud())


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("parameters_", np.zeros((3, 2)), "KMM.parameters_ in the file"),
        ("data_bandwidth_", 0.0, "KMM.data_bandwidth_ in the file is 0.0, but must be a finite number above 0"),
    ],
)
def test_a_file_whose_parts_do_not_fit_is_refused(tmp_path, name, value, match):
    model = KMM(**QUICK).fit(cloud())
    setattr(model, name, value)
    save(model, tmp_path / "model.prinfold")
    with pytest.raises(CorruptModelFileError, match=match):
        load(tmp_path / "model.prinfold")


@pytest.mark.filterwarnings("ignore:.*were moved back:prinfold.exceptions.DegenerateWarning")
def test_coordinates_that_stay_without_neighbours_are_counted():
    X = datasets.make_half_circle(60, noise=0.05, rng=0).X
    with pytest.warns(DegenerateWarning, match=r"\d+ of 60 latent points have no neighbours within reach"):
        model = KMM(2, kernel="quartic", latent_bandwidth=0.1).fit(X)
    apart = np.linalg.norm(model.latent_.centers[:, None] - model.latent_.centers, axis=2) / model.latent_bandwidth_
    assert ((apart < 1).sum(axis=1) == 1).any()
