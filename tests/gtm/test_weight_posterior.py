"""How sure the surface of a GTM is: against dense formulas, against known answers, against simulations."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.house import ROOT

from prinfold import GTM, PPS, GaussianBasis, GaussianProcess, load
from prinfold.exceptions import CorruptModelFileError, InvalidParameterError, OutOfDomainError
from prinfold.gtm import weight_posterior as surface_bands
from prinfold.gtm.evidence import exact_hessian
from prinfold.gtm.noise.protocol import Capabilities

NOISE = 0.15


def truth(z):
    return np.stack([2 * z, np.sin(3 * z)], axis=1)


def wave(n=120, seed=0):
    rng = np.random.default_rng(seed)
    return truth(rng.uniform(-1, 1, n)) + NOISE * rng.normal(size=(n, 2))


@pytest.fixture(scope="module")
def model():
    return GTM(1, nodes=25, basis=6, max_iter=200).fit(wave())


PLACES = np.linspace(-1, 1, 13)[:, None]


def test_by_the_approximate_hessian_it_is_the_dense_formula(model):
    beta, Phi = 1 / model.noise_variance_, model._model.surface.node_features
    mask = np.diag(model._model.surface.penalty_mask)
    H = beta * Phi.T @ np.diag(model.node_mass_) @ Phi + 0.1 * beta * mask
    phi = model._model.surface.basis.features(PLACES)
    wanted = np.sqrt(np.einsum("nm,mk,nk->n", phi, np.linalg.inv(H), phi))
    found = model.surface_std(PLACES)
    assert found.shape == (13, 2)
    assert_allclose(found, np.repeat(wanted[:, None], 2, axis=1), rtol=1e-8)
    assert_allclose(model.surface_covariance(PLACES), wanted[:, None, None] ** 2 * np.eye(2), rtol=1e-7, atol=1e-15)


def test_by_the_exact_hessian_it_is_the_dense_formula(model):
    X, beta, phi = wave(), 1 / model.noise_variance_, model._model.surface.basis.features(PLACES)
    H = exact_hessian(model._model, model._rows(X), model._parameters())
    H += 0.1 * beta * np.diag(np.tile(model._model.surface.penalty_mask, 2))
    spread = np.kron(np.eye(2), phi)  # rows: column after column, places within
    dense = (spread @ np.linalg.inv(H) @ spread.T).reshape(2, 13, 2, 13)
    wanted = np.stack([dense[:, i, :, i] for i in range(13)])
    found = model.surface_covariance(PLACES, X=X, hessian="exact")
    assert_allclose(found, wanted, rtol=1e-5, atol=1e-9)
    assert_allclose(model.surface_std(PLACES, X=X, hessian="exact") ** 2, np.einsum("ndd->nd", found), rtol=1e-9)


def test_masses_that_are_kept_are_those_of_the_rows(model):
    assert_allclose(model.node_mass_, model.responsibilities(wave()).sum(axis=0), atol=1e-6)
    assert_allclose(model.surface_std(PLACES, X=wave()), model.surface_std(PLACES), rtol=1e-6)


def test_a_point_is_as_unsure_as_a_mean():
    """One node and a bias: the surface is the mean of the rows, of variance 1/(βN)."""
    X = np.random.default_rng(0).normal(size=(50, 3))
    flat = GTM(1, nodes=1, basis=GaussianBasis(1, linear=False), regularization=1e6).fit(X)
    assert_allclose(flat.surface_std([[0.0]]), np.sqrt(flat.noise_variance_ / 50), rtol=1e-4)
    assert_allclose(flat.surface_std([[0.0]], X=X, hessian="exact"), np.sqrt(flat.noise_variance_ / 50), rtol=1e-4)


def test_where_rows_know_their_nodes_both_hessians_agree():
    """Nodes far apart beside the noise: responsibilities are ones and zeros."""
    rng = np.random.default_rng(1)
    X = np.repeat([[-1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], 30, axis=0) + 0.01 * rng.normal(size=(90, 2))
    far = GTM(1, nodes=3, basis=GaussianBasis(2, linear=False), regularization=1e-3, max_iter=300).fit(X)
    assert_allclose(
        far.surface_std(far.latent_.nodes, X=X, hessian="exact"), far.surface_std(far.latent_.nodes), rtol=1e-6
    )


def test_the_exact_band_is_the_wider_along_the_surface(model):
    X, inner = wave(), PLACES[3:-3]
    J = model.jacobian(inner)[:, :, 0]
    tangent = J / np.linalg.norm(J, axis=1, keepdims=True)
    normal = np.stack([-tangent[:, 1], tangent[:, 0]], axis=1)
    C = model.surface_covariance(inner, X=X, hessian="exact")
    along, across = (np.sqrt(np.einsum("nd,nde,ne->n", v, C, v)) for v in (tangent, normal))
    known = model.surface_std(inner)[:, 0]
    assert (along > 1.5 * known).all()
    assert (across < along).all()


def test_repeats_are_weights_and_more_rows_make_it_narrower(model):
    X = wave()
    twice = np.repeat(X, 2, axis=0)
    for hessian in ("approximate", "exact"):
        once = model.surface_std(PLACES, X=X, hessian=hessian)
        weighted = model.surface_std(PLACES, X=X, sample_weight=np.full(len(X), 2.0), hessian=hessian)
        assert_allclose(weighted, model.surface_std(PLACES, X=twice, hessian=hessian), rtol=1e-6)
        assert (weighted < once).all()
        assert (weighted > once / np.sqrt(2) - 1e-12).all()


def test_the_covariance_turns_with_the_data(model):
    X, a = wave(), 0.7
    turn = np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
    turned = GTM(1, nodes=25, basis=6, max_iter=200).fit(X @ turn.T)
    sign = np.sign(model.transform(X).ravel() @ turned.transform(X @ turn.T).ravel())
    plain = model.surface_covariance(PLACES, X=X, hessian="exact")
    found = turned.surface_covariance(sign * PLACES, X=X @ turn.T, hessian="exact")
    assert_allclose(found, turn @ plain @ turn.T, rtol=1e-3, atol=1e-7)


def test_a_process_has_the_variance_of_kriging():
    """Prior less what rows at known nodes explain, with a mean of next to no prior; more between nodes than at them."""
    model = GTM(1, nodes=15, basis=GaussianProcess(0.3, 0.5, "matern32"), max_iter=100).fit(wave())
    bound, beta, seen = model._model.surface.basis, 1 / model.noise_variance_, model.node_mass_ > 1e-9
    nodes = model.latent_.nodes[seen]

    def covariance(A, B):
        r = np.sqrt(3) * np.abs(A - B.T) / 0.3
        return 0.5 * (1 + r) * np.exp(-r) + 1e7 * (1 + A @ B.T)

    K = covariance(nodes, nodes) + np.diag(1 / (beta * model.node_mass_[seen]))
    across = covariance(PLACES, nodes)
    wanted = np.diag(covariance(PLACES, PLACES)) - np.einsum("nk,nk->n", across, np.linalg.solve(K, across.T).T)
    assert_allclose(model.surface_std(PLACES)[:, 0] ** 2, wanted, rtol=1e-3)
    middles = 0.5 * (model.latent_.nodes[1:] + model.latent_.nodes[:-1])
    assert bound.unexplained(middles).min() > 1e-3


def test_files_keep_what_bands_need(tmp_path, model):
    model.save(tmp_path / "m.prinfold")
    assert_array_equal(load(tmp_path / "m.prinfold").surface_std(PLACES), model.surface_std(PLACES))


def test_a_file_from_before_asks_for_the_rows():
    old = load(ROOT / "tests" / "fixtures" / "model_v1.prinfold")[-1]
    Z = old.latent_.nodes[:2]
    with pytest.raises(InvalidParameterError, match=r"older prinfold.*pass the rows of the fit as X="):
        old.surface_std(Z)
    X = old.inverse_transform(old.latent_.nodes)
    assert np.isfinite(old.surface_std(Z, X=X)).all()


def test_a_file_with_masses_that_make_no_sense_is_refused(tmp_path):
    model = GTM(1, nodes=5, basis=2, max_iter=2, tol=0.0).fit(wave(20))
    model.node_mass_ = model.node_mass_[:3]
    model.save(tmp_path / "m.prinfold")
    with pytest.raises(CorruptModelFileError, match=r"GTM\.node_mass_ in the file"):
        load(tmp_path / "m.prinfold")


def test_refusals_say_what_to_do(model, monkeypatch):
    with pytest.raises(InvalidParameterError, match="hessian must be one of approximate, exact"):
        model.surface_std(PLACES, hessian="fisher")
    with pytest.raises(InvalidParameterError, match="pass those of the fit as X="):
        model.surface_std(PLACES, hessian="exact")
    with pytest.raises(OutOfDomainError):
        model.surface_std([[1.5]])
    assert model.surface_std([[1.5]], extrapolate=True)[0, 0] > model.surface_std([[1.0]])[0, 0]
    monkeypatch.setattr(surface_bands, "_MOST_WEIGHTS", 10)
    with pytest.raises(InvalidParameterError, match=r'8 × 2 weights is too large.*use hessian="approximate"'):
        model.surface_std(PLACES, X=wave(), hessian="exact")
    assert not hasattr(PPS(1), "surface_std")


@pytest.mark.slow
def test_bands_hold_the_truth_as_often_as_they_say():
    """Rows drawn from the model itself: 95 % bands by the exact Hessian, and by the other one across the curve."""
    places, held, across = np.linspace(-0.9, 0.9, 19)[:, None], [], []
    true, nodes = truth(places[:, 0]), np.linspace(-1, 1, 60)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = truth(rng.choice(nodes, 300)) + NOISE * rng.normal(size=(300, 2))
        model = GTM(1, nodes=60, basis=8, regularization=0.01, max_iter=500, tol=1e-5).fit(X)
        Z = np.sign(model.inverse_transform([[0.9]])[0, 0]) * places
        error = model.inverse_transform(Z) - true
        held.append(np.abs(error) < 1.96 * model.surface_std(Z, X=X, hessian="exact"))
        J = np.stack([np.full(19, 2.0), 3 * np.cos(3 * places[:, 0])], axis=1)
        normal = np.stack([-J[:, 1], J[:, 0]], axis=1) / np.linalg.norm(J, axis=1, keepdims=True)
        across.append(np.abs(np.sum(normal * error, axis=1)) < 1.96 * model.surface_std(Z)[:, 0])
    assert 0.88 < np.mean(held) < 0.98
    assert 0.80 < np.mean(across) < 0.98


def test_curvature_that_is_rounding_or_negative_is_left_to_the_prior():
    root = surface_bands.inverse_root(np.diag([4.0, 1e-20, -1.0]), 0.25)
    assert_allclose(root @ root.T, np.diag([0.25, 4.0, 4.0]), atol=1e-12)


def column_std(model, mass, variance, column):
    """The dense formula for one column."""
    Phi, phi = model._model.surface.node_features, model._model.surface.basis.features(PLACES)
    H = Phi.T @ np.diag(mass) @ Phi / variance + np.diag(0.1 / variance * model._model.surface.penalty_mask)
    return np.sqrt(np.einsum("nm,mk,nk->n", phi, np.linalg.inv(H), phi))


def test_columns_with_noise_of_their_own_have_bands_of_their_own():
    X = wave() * [1.0, 3.0]
    model = GTM(1, nodes=25, basis=6, noise="diagonal", max_iter=200).fit(X)
    assert model.node_mass_.shape == (25,)
    found, variances = model.surface_std(PLACES), model.noise_parameters_["variances"]
    for d in range(2):
        assert_allclose(found[:, d], column_std(model, model.node_mass_, variances[d], d), rtol=1e-7)
    assert_allclose(model.surface_covariance(PLACES)[:, 0, 1], 0.0)
    tailed = GTM(1, nodes=25, basis=6, noise="student", max_iter=200).fit(wave())
    with pytest.raises(InvalidParameterError, match="independent from cell to cell"):
        tailed.surface_std(PLACES, X=X, hessian="exact")


@pytest.mark.parametrize("basis", [6, GaussianProcess(0.5, 1.0)])
def test_gaps_and_errors_widen_the_band_of_their_column(basis, tmp_path):
    X, rng = wave(), np.random.default_rng(5)
    holed = np.where((rng.random(X.shape) < 0.5) & [False, True], np.nan, X)
    model = GTM(1, nodes=25, basis=basis, max_iter=200).fit(holed)
    assert model.node_mass_.shape == (25, 2)
    found = model.surface_std(PLACES)
    assert (found[:, 1] > found[:, 0]).all()
    assert_allclose(model.surface_std(PLACES, X=holed), found, rtol=1e-5)
    if basis == 6:
        assert_allclose(found[:, 1], column_std(model, model.node_mass_[:, 1], model.noise_variance_, 1), rtol=1e-7)
    model.save(tmp_path / "m.prinfold")
    assert load(tmp_path / "m.prinfold").node_mass_.shape == (25, 2)
    noisy = GTM(1, nodes=25, basis=basis, max_iter=200).fit(X, errors=np.tile([0.0, 0.5], (len(X), 1)))
    assert (noisy.surface_std(PLACES)[:, 1] > noisy.surface_std(PLACES)[:, 0]).all()


def test_other_noise_is_refused(model, monkeypatch):
    monkeypatch.setattr(type(model._model.noise), "capabilities", Capabilities())
    with pytest.raises(InvalidParameterError, match="not known for IsotropicNoise"):
        model.surface_std(PLACES)


def test_the_prior_is_that_which_training_found():
    model = GTM(1, nodes=25, basis=6, prior_precision="evidence", max_iter=400).fit(wave())
    beta, Phi = 1 / model.noise_variance_, model._model.surface.node_features
    H = beta * Phi.T @ np.diag(model.node_mass_) @ Phi
    H += model.prior_precision_ * np.diag(model._model.surface.penalty_mask)
    assert model.prior_precision_ < 0.5 * 0.1 * beta  # far from the λ that training begins with
    phi = model._model.surface.basis.features(PLACES)
    wanted = np.sqrt(np.einsum("nm,mk,nk->n", phi, np.linalg.inv(H), phi))
    assert_allclose(model.surface_std(PLACES)[:, 0], wanted, rtol=1e-7)


def test_the_exact_hessian_takes_gaps_and_columns_of_their_own():
    X = wave()
    gappy = X.copy()
    gappy[::4, 0] = np.nan
    plain = GTM(1, nodes=25, basis=6, max_iter=200).fit(X)
    rows = plain._rows(gappy)
    H = exact_hessian(plain._model_for(rows, plain._model), rows, plain._parameters())
    H += 0.1 / plain.noise_variance_ * np.diag(np.tile(plain._model.surface.penalty_mask, 2))
    phi = np.kron([[1.0, 0.0]], plain._model.surface.basis.features(PLACES))
    whole, less = (plain.surface_std(PLACES, X=table, hessian="exact") for table in (X, gappy))
    assert_allclose(less[:, 0] ** 2, np.einsum("ni,ij,nj->n", phi, np.linalg.inv(H), phi), rtol=1e-5)
    assert not np.allclose(less, whole, rtol=0.02)
    own = GTM(1, nodes=25, basis=6, max_iter=200, noise="diagonal").fit(X)
    own.noise_parameters_ = {"variances": np.full(2, plain.noise_variance_)}
    own.weights_, own.noise_variance_ = plain.weights_, plain.noise_variance_
    assert_allclose(own.surface_std(PLACES, X=X, hessian="exact"), whole, rtol=1e-5)


def test_errors_of_the_rows_are_those_of_the_fit():
    X = wave()
    errors = np.tile([0.0, 0.5], (len(X), 1))
    model = GTM(1, nodes=25, basis=6, max_iter=200).fit(X, errors=errors)
    kept = model.surface_std(PLACES)
    assert_allclose(model.surface_std(PLACES, X=X, errors=errors), kept, rtol=1e-5)
    assert (model.surface_std(PLACES, X=X)[:, 1] < 0.8 * kept[:, 1]).all()
