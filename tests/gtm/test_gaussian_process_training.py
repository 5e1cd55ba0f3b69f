"""GTM and PPS on a Gaussian process: training, choosing its numbers, files, straight data."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from prinfold import GTM, PPS, GaussianBasis, GaussianProcess, load
from prinfold.exceptions import CorruptModelFileError, DegenerateWarning, InvalidParameterError
from prinfold.gtm import gaussian_process_training as tuning
from prinfold.gtm.starts import first_parameters as starts

WAVE_NOISE = 0.05

crowded = pytest.mark.filterwarnings(
    "ignore:For .* of the rows:prinfold.exceptions.MultimodalWarning", "ignore:The surface is folded:UserWarning"
)
"""Noise may span many nodes here, and a surface from random weights may fold."""


def wave(n=150, seed=0):
    rng = np.random.default_rng(seed)
    t = rng.uniform(-1, 1, n)
    return np.stack([2 * t, np.sin(4 * t)], axis=1) + WAVE_NOISE * rng.normal(size=(n, 2))


def sheet(n=150, seed=0):
    rng = np.random.default_rng(seed)
    u, v = rng.uniform(-1, 1, (2, n))
    return np.stack([2 * u, v, 0.6 * u**2 + 0.3 * v], axis=1) + 0.1 * rng.normal(size=(n, 3))


def ball(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X / np.linalg.norm(X, axis=1, keepdims=True) + 0.1 * rng.normal(size=(n, 3))


def within(history):
    """Steps (objective after minus before) under which the numbers of the process stayed as they were."""
    same = (np.diff(history["length_scale"]) == 0) & (np.diff(history["variance"]) == 0)
    return np.diff(history["objective"])[same], ~same


@pytest.mark.parametrize("covariance", ["gaussian", "matern32", "matern52"])
@pytest.mark.parametrize("relaxation", [1.0, 1.8])
def test_with_numbers_given_the_objective_never_falls(covariance, relaxation):
    basis = GaussianProcess(0.4, 1.0, covariance)
    model = GTM(1, basis=basis, relaxation=relaxation, tol=0.0, max_iter=40).fit(wave())
    steps, changed = within(model.history_)
    assert not changed.any()
    assert len(steps) == 40
    assert steps.min() > -1e-12
    assert (model.basis_.length_scale, model.basis_.variance) == (0.4, 1.0)


def test_between_two_choices_the_objective_never_falls_and_the_history_says_where_they_were():
    model = GTM(1, basis=GaussianProcess(), tol=0.0, max_iter=60).fit(wave())
    steps, changed = within(model.history_)
    assert 2 <= changed.sum() <= 6  # once in ten steps
    assert steps.min() > -1e-12
    assert model.history_["length_scale"][-1] == model.basis_.length_scale
    assert model.history_["variance"][-1] == model.basis_.variance


def test_choices_raise_the_evidence_until_there_is_nothing_to_gain(monkeypatch):
    seen = []
    whole = tuning._Search.best_length

    def spied(search):
        best = whole(search)
        seen.append(best.log_evidence - search.at(np.log(tuning._length(search.model))).log_evidence)
        return best

    monkeypatch.setattr(tuning._Search, "best_length", spied)
    model = GTM(1, basis=GaussianProcess(), tol=1e-6, max_iter=500).fit(wave())
    assert min(seen) >= -1e-9
    assert model.converged_


def test_at_the_end_no_length_scale_nearby_has_higher_evidence():
    X = wave()
    model = GTM(1, basis=GaussianProcess(), tol=1e-7, max_iter=1000).fit(X)
    state = model._model.begin(model._rows(X), model._parameters())
    sums = tuning.regression(model._model, state.parameters, state.statistics)
    search = tuning._Search(model._model, *sums, state.parameters, True)
    length = model.basis_.length_scale
    here, *around = (search.at(np.log(each * length)).log_evidence for each in (1.0, 0.8, 1.25))
    assert here > max(around)


@crowded
def test_the_noise_is_not_fitted_away():
    """Weights that the data decide are not counted twice: (5.24) against (3.12)."""
    wide = {"nodes": 120, "max_iter": 500}
    chosen = [GTM(1, basis=GaussianProcess(), **wide).fit(wave(80, seed)).noise_variance_ for seed in range(5)]
    fitted = [
        GTM(1, basis=GaussianBasis(20), regularization=1e-3, **wide).fit(wave(80, seed)).noise_variance_
        for seed in range(5)
    ]
    truth = WAVE_NOISE**2
    assert abs(np.log(np.mean(chosen) / truth)) < 0.25
    assert abs(np.log(np.mean(chosen) / truth)) < abs(np.log(np.mean(fitted) / truth))


def test_straight_data_get_a_plane(rng):
    flat = rng.uniform(-1, 1, (400, 2)) * [2.0, 1.0]
    X = np.column_stack([flat, np.zeros(400)]) + 0.1 * rng.normal(size=(400, 3))
    model = GTM(nodes=(30, 15), basis=GaussianProcess(), max_iter=500).fit(X)
    centered = X - X.mean(axis=0)
    normal = np.linalg.svd(centered, full_matrices=False)[2][2]
    off = (model.inverse_transform(model.latent_.nodes) - X.mean(axis=0)) @ normal
    assert np.sqrt(np.mean(off**2)) < 0.02  # a fifth of the noise
    assert abs(np.sqrt(model.noise_variance_) - 0.1) < 0.01


def test_the_surface_turns_and_grows_with_the_data(rng):
    X = wave()
    turn = np.array([[np.cos(0.7), -np.sin(0.7)], [np.sin(0.7), np.cos(0.7)]])
    plain = GTM(1, basis=GaussianProcess(), max_iter=30, tol=0.0).fit(X)
    moved = GTM(1, basis=GaussianProcess(), max_iter=30, tol=0.0).fit(3.0 * X @ turn + 5.0)
    assert_allclose(moved.basis_.length_scale, plain.basis_.length_scale, rtol=1e-6)
    assert_allclose(moved.basis_.variance, 9.0 * plain.basis_.variance, rtol=1e-6)
    Z = plain.transform(X)
    there = moved.transform(3.0 * X @ turn + 5.0)
    sign = np.sign(Z.ravel() @ there.ravel())
    assert_allclose(there, sign * Z, atol=1e-6)
    wanted = 3.0 * plain.inverse_transform(Z) @ turn + 5.0
    assert_allclose(moved.inverse_transform(sign * Z), wanted, atol=1e-5)


@pytest.mark.parametrize("covariance", ["gaussian", "matern52"])
def test_files_give_back_the_same_surface(tmp_path, covariance):
    model = GTM(nodes=7, basis=GaussianProcess(covariance=covariance), max_iter=25, tol=0.0).fit(sheet())
    model.save(tmp_path / "m.prinfold")
    again = load(tmp_path / "m.prinfold")
    Z = np.random.default_rng(0).uniform(-1, 1, (20, 2))
    assert_array_equal(again.inverse_transform(Z), model.inverse_transform(Z))
    assert_array_equal(again.jacobian(Z), model.jacobian(Z))
    assert again.basis_ == model.basis_
    assert again._model.penalty.prior_precision == model._model.penalty.prior_precision
    assert again.history_ == model.history_


def test_a_file_with_pivots_of_another_grid_is_refused(tmp_path):
    model = GTM(1, nodes=20, basis=GaussianProcess(0.4, 1.0), max_iter=2, tol=0.0).fit(wave())
    model.basis_ = GaussianProcess(0.4, 1.0, pivots=(0, 400))
    model.save(tmp_path / "m.prinfold")
    with pytest.raises(CorruptModelFileError, match="must name some of the 20 nodes"):
        load(tmp_path / "m.prinfold")


def test_single_precision_is_close_to_double():
    X = wave()
    double, single = (
        GTM(1, basis=GaussianProcess(0.4, 1.0), max_iter=30, tol=0.0).fit(each) for each in (X, X.astype("f"))
    )
    assert single.transform(X.astype("f")).dtype == np.float32
    assert_allclose(single.inverse_transform([[0.3]]), double.inverse_transform([[0.3]]), atol=1e-3)


@crowded
def test_a_coarse_grid_to_begin_with_carries_over(monkeypatch):
    """Weights belong to the process, not to the nodes of the grid that it is seen on."""
    settings = {"nodes": 60, "basis": GaussianProcess(0.4, 1.0), "tol": 0.0, "init": "pca"}
    cold = GTM(1, max_iter=8, **settings).fit(wave())
    monkeypatch.setattr(starts, "_WARM_UP_FROM", 0)
    warm = GTM(1, max_iter=8, **settings).fit(wave())
    assert warm.weights_.shape == cold.weights_.shape
    assert warm.history_["objective"][0] > cold.history_["objective"][0] + 0.1


@crowded
@pytest.mark.parametrize("init", ["random", "semi-random", "isomap"])
def test_every_start_leads_to_a_surface(init):
    model = GTM(1, basis=GaussianProcess(0.4), init=init, random_state=0, max_iter=300).fit(wave())
    steps, _ = within(model.history_)
    assert steps.min() > -1e-12
    assert np.isfinite(model.score(wave(seed=1)))


@pytest.mark.parametrize(("latent", "nodes"), [("circle", 36), ("torus", 6), ("cylinder", 6), ("sphere", 36)])
def test_every_latent_space_takes_a_process(latent, nodes):
    with warnings.catch_warnings():  # a torus does not lie flat on a ball
        warnings.simplefilter("ignore")
        model = GTM(latent=latent, nodes=nodes, basis=GaussianProcess(), max_iter=15, tol=0.0).fit(ball())
    Z = model.transform(ball())
    assert np.isfinite(model.inverse_transform(Z)).all()
    once = model.project(ball())
    assert_allclose(model.project(once), once, atol=1e-6)


def test_magnification_between_nodes_is_that_of_the_surface():
    model = GTM(1, basis=GaussianProcess(), max_iter=50, tol=0.0).fit(wave())
    z, h = np.linspace(-0.9, 0.9, 31)[:, None], 1e-6
    length = np.linalg.norm(model.inverse_transform(z + h) - model.inverse_transform(z - h), axis=1) / (2 * h)
    assert_allclose(model.magnification(z).factor, length, rtol=1e-5)


def test_a_penalty_of_the_user_takes_the_place_of_the_variance():
    X = wave()
    prior = GTM(1, basis=GaussianProcess(0.4), prior_precision=2.0, max_iter=20, tol=0.0).fit(X)
    given = GTM(1, basis=GaussianProcess(0.4, 0.5), max_iter=20, tol=0.0).fit(X)
    assert_allclose(prior.weights_, given.weights_, atol=1e-9)
    assert prior.basis_.variance is None
    assert_allclose(given.prior_precision_, 2.0)
    constant = GTM(1, basis=GaussianProcess(0.4), regularization=0.2, max_iter=20, tol=0.0).fit(X)
    assert_allclose(constant.history_["variance"][-1], constant.noise_variance_ / 0.2)
    with pytest.raises(InvalidParameterError, match="has its penalty already"):
        GTM(1, basis=GaussianProcess(0.4, 0.5), regularization=0.2).fit(X)


def test_oriented_noise_takes_a_process():
    X = wave()
    round_noise = GTM(1, basis=GaussianProcess(), max_iter=40, tol=0.0).fit(X)
    clamped = PPS(1, clamping=1.0, basis=GaussianProcess(), max_iter=40, tol=0.0).fit(X)
    assert_array_equal(clamped.weights_, round_noise.weights_)
    across = PPS(1, clamping=0.5, basis=GaussianProcess(), max_iter=40, tol=0.0).fit(X)
    steps, _ = within(across.history_)
    assert steps.min() > -1e-10
    assert_allclose(across.history_["length_scale"][0], round_noise.history_["length_scale"][-1])  # the GTM's
    assert across.basis_.length_scale == across.history_["length_scale"][-1]


@crowded
def test_degenerate_tables_have_an_answer():
    with pytest.warns(DegenerateWarning, match="All rows are equal"):
        same = GTM(1, basis=GaussianProcess(), max_iter=15).fit(np.ones((10, 2)))
    assert_allclose(same.inverse_transform(same.latent_.nodes), 1.0)
    few = GTM(1, basis=GaussianProcess(), max_iter=40, tol=0.0)
    with warnings.catch_warnings():  # five rows are many things at once
        warnings.simplefilter("ignore")
        few.fit(wave(5))
    assert np.isfinite(few.weights_).all()
    constant = np.column_stack([wave(), np.full(150, 7.0)])
    found = GTM(1, basis=GaussianProcess(), max_iter=30, tol=0.0).fit(constant)
    assert_allclose(found.inverse_transform([[0.0]])[:, 2], 7.0)


def test_the_recipe_survives_clone_and_stays_as_it_was():
    recipe = GaussianProcess()
    model = GTM(1, basis=recipe, max_iter=15, tol=0.0).fit(wave())
    assert model.basis is recipe
    assert recipe == GaussianProcess()
    assert clone(model).basis == recipe


def test_asking_for_evidence_twice_is_asking_once():
    once = GTM(1, basis=GaussianProcess(), max_iter=25, tol=0.0).fit(wave())
    twice = GTM(1, basis=GaussianProcess(), prior_precision="evidence", max_iter=25, tol=0.0).fit(wave())
    assert_array_equal(twice.weights_, once.weights_)
    assert_allclose(once.prior_precision_ * once.basis_.variance, 1.0)


@crowded
def test_the_log_evidence_prefers_what_the_process_found():
    X = wave()
    found = GTM(1, nodes=80, basis=GaussianProcess(), tol=1e-6, max_iter=500).fit(X)
    length, variance = found.basis_.length_scale, found.basis_.variance
    others = [
        GTM(1, nodes=80, basis=GaussianProcess(length * a, variance * b), tol=1e-6, max_iter=500).fit(X)
        for a, b in ((0.4, 1.0), (2.5, 1.0), (1.0, 0.01))
    ]
    assert found.log_evidence(X) > max(each.log_evidence(X) for each in others)


def with_gaps(X, share=0.2, seed=3):
    missing = np.random.default_rng(seed).random(X.shape) < share
    missing[missing.all(axis=1)] = False
    return np.where(missing, np.nan, X)


@crowded
def test_rows_with_gaps_choose_nearly_the_same_numbers():
    X = sheet(300)
    whole = GTM(nodes=10, basis=GaussianProcess(), max_iter=300).fit(X)
    holed = GTM(nodes=10, basis=GaussianProcess(), max_iter=300).fit(with_gaps(X))
    assert abs(np.log(holed.basis_.length_scale / whole.basis_.length_scale)) < 0.5
    steps, changed = within(holed.history_)
    assert changed.any()
    assert steps.min() > -1e-10


@crowded
def test_without_gaps_what_is_regressed_is_what_the_rows_say():
    X = sheet()
    model = GTM(nodes=8, basis=GaussianProcess(0.5, 1.0), max_iter=5, tol=0.0).fit(X)
    parameters, rows = model._parameters(), model._rows(X)
    plain = model._model.begin(rows, parameters).statistics
    cells = replace(model._model, noise=model._model.noise.with_gaps())
    mass, moment = tuning.regression(cells, parameters, cells.begin(rows, parameters).statistics)
    assert_allclose(mass, plain.mass, atol=1e-9)
    assert_allclose(moment, plain.moment, atol=1e-9)


@crowded
def test_columns_with_units_of_their_own_get_the_same_surface():
    X, units = sheet(), np.array([1.0, 1e3, 1e-2])
    settings = {"nodes": 8, "noise": "diagonal", "max_iter": 30, "tol": 0.0}
    plain = GTM(basis=GaussianProcess(), **settings).fit(X)
    scaled = GTM(basis=GaussianProcess(), **settings).fit(X * units)
    assert len(set(plain.history_["length_scale"])) > 1
    assert_allclose(scaled.basis_.length_scale, plain.basis_.length_scale, rtol=1e-6)
    Z = plain.latent_.nodes[::5]
    assert_allclose(scaled.inverse_transform(Z) / units, plain.inverse_transform(Z), atol=1e-4)


def test_a_noise_with_factors_needs_both_numbers():
    with pytest.raises(InvalidParameterError, match=r"noise with factors .*give both as numbers"):
        GTM(1, nodes=8, basis=GaussianProcess(), noise="aligned", max_iter=2).fit(wave())


@crowded
def test_tails_leave_the_length_scale_of_rows_that_need_none():
    plain = GTM(1, nodes=60, basis=GaussianProcess(), max_iter=500).fit(wave())
    tailed = GTM(1, nodes=60, basis=GaussianProcess(), noise="student", max_iter=500).fit(wave())
    assert abs(np.log(tailed.basis_.length_scale / plain.basis_.length_scale)) < 0.3
    assert tailed._model.penalty.freedom > 0
    steps, changed = within(tailed.history_)
    assert changed.any()
    assert steps.min() > -1e-10


@crowded
def test_with_tails_outliers_do_not_lead_the_length_scale():
    X = wave()
    X[::15] += np.random.default_rng(0).normal(size=X[::15].shape)
    clean = GTM(1, nodes=60, basis=GaussianProcess(), max_iter=500).fit(wave()).basis_.length_scale
    tailed = GTM(1, nodes=60, basis=GaussianProcess(), noise="student", max_iter=500).fit(X).basis_.length_scale
    assert abs(np.log(tailed / clean)) < 0.5


def test_the_noise_loses_a_degree_of_freedom_for_each_weight_that_the_rows_decide():
    """1/β = E/(ND − γ), γ counting the weights of the mean too, which no prior holds down."""
    rng = np.random.default_rng(0)
    u = rng.uniform(-1, 1, 40)
    X = np.stack([2 * u, np.sin(3 * u), u**2], axis=1) + 0.15 * rng.standard_normal((40, 3))
    model = GTM(1, nodes=30, basis=GaussianProcess(), max_iter=3000, tol=1e-9).fit(X)
    apart = np.square(X[:, None] - model.inverse_transform(model.latent_.nodes)).sum(axis=2)
    error = np.sum(model.responsibilities(X) * apart)
    freedom = model.effective_weights(X)
    assert freedom > 6  # two weights of the mean for each column among them
    assert model.noise_variance_ == pytest.approx(error / (X.size - freedom), rel=1e-3)
