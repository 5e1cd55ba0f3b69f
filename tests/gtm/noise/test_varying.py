"""Noise and mixing weights that vary over latent space: against brute force, the plain noise and the truth."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from scipy.stats import norm
from tests.gtm.noise.test_per_cell import ERRORS, SMALL, X, gappy

import prinfold
from prinfold import GTM, GaussianBasis, VaryingNoise, datasets
from prinfold.exceptions import CorruptModelFileError, DegenerateWarning, InvalidParameterError
from prinfold.gtm import model as gtm
from prinfold.gtm import posterior as posteriors

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.FoldWarning")  # 49 nodes are few for this sheet


def fitted(table=X, errors=None, noise="varying", **settings):
    return GTM(**{**SMALL, "noise": noise, **settings}).fit(table, errors=errors)


def brute_log_densities(model, table, errors=None):
    """(n, K) log π p(t | node), cell by cell."""
    centers, kept = model.inverse_transform(model.latent_.nodes), model.noise_parameters_
    variance = 1.0 / kept["node_precisions"]
    e = np.zeros_like(table) if errors is None else np.broadcast_to(errors, table.shape)
    out = np.tile(np.log(kept["node_shares"]), (len(table), 1))
    for n, d in np.argwhere(~np.isnan(table)):
        out[n] += norm.logpdf(table[n, d], centers[:, d], np.sqrt(variance + e[n, d] ** 2))
    return out


KINDS = {
    "plain": (X, None, "varying"),
    "precision": (X, None, VaryingNoise(mixing=False)),
    "mixing": (X, None, VaryingNoise(precision=False)),
    "gaps": (gappy(), None, VaryingNoise(basis=2, ridge=1.0)),
    "errors": (X, ERRORS, "varying"),
    "errors of rows, gaps": (gappy(), ERRORS[:, 0], VaryingNoise(basis=GaussianBasis((2, 3), 1.5))),
}
kinds = pytest.mark.parametrize(("table", "errors", "noise"), KINDS.values(), ids=KINDS)


@kinds
def test_likelihood_and_posterior_are_those_of_brute_force(table, errors, noise):
    model = fitted(table, errors, noise)
    e = errors[:, None] if errors is not None and errors.ndim == 1 else errors
    expected = brute_log_densities(model, table, e)
    whole = logsumexp(expected, axis=1)
    assert_allclose(model.score_samples(table, errors=errors), whole, rtol=1e-9, atol=1e-9)
    assert_allclose(model.responsibilities(table, errors=errors), np.exp(expected - whole[:, None]), atol=1e-9)
    assert model.noise_parameters_["node_shares"].sum() == pytest.approx(1.0)
    mean = np.mean(np.log(model.noise_parameters_["node_precisions"]))
    assert model.noise_variance_ == pytest.approx(np.exp(-mean))


@kinds
@pytest.mark.parametrize("penalty", [{"regularization": 0.5}, {"prior_precision": 0.3}], ids=str)
@pytest.mark.parametrize("relaxation", [1.0, 1.8])
def test_training_never_lowers_the_objective(table, errors, noise, penalty, relaxation):
    model = fitted(table, errors, noise, relaxation=relaxation, **penalty)
    objective = np.array(model.history_["objective"])
    assert len(objective) == 26
    assert np.diff(objective).min() >= -1e-12 * abs(objective).max()
    assert objective[-1] > objective[0] + 0.1


def test_the_objective_holds_the_ridge():
    model = fitted(noise=VaryingNoise(ridge=0.7), regularization=0.5)
    kept, total = model.noise_parameters_, len(X)
    rough = np.square(model.weights_[:-1]).sum()
    squares = np.square(kept["precision_weights"][:-1]).sum() + np.square(kept["mixing_weights"]).sum()
    cost = 0.5 * 0.5 / model.noise_variance_ * rough + 0.5 * 0.7 * squares
    assert model.history_["objective"][-1] == pytest.approx(model.score(X) - cost / total, rel=1e-9)


@pytest.mark.parametrize(
    ("with_errors", "penalty"),
    [
        (True, {"regularization": 0.5}),
        # Thousands of steps each: the others are left to ``make test-slow``.
        pytest.param(False, {"regularization": 0.5}, marks=pytest.mark.slow),
        pytest.param(False, {"prior_precision": 0.3}, marks=pytest.mark.slow),
        pytest.param(True, {"prior_precision": 0.3}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_training_ends_where_the_objective_is_flat(with_errors, penalty):
    table, errors = gappy(X[:60, :4]), 0.2 * ERRORS[:60, :4] if with_errors else None
    noise = VaryingNoise(basis=2, ridge=1.0)
    model = fitted(table, errors, noise, max_iter=9000, n_components=1, nodes=6, basis=2, **penalty)
    rows = model._rows(table, errors)
    trained, parameters = model._model_for(rows, model._model), model._parameters()
    names = ("weights", "precision_weights", "mixing_weights")

    def objective(*there):
        found = trained.noise._make_parameters(*there, parameters.ceiling)
        return gtm.measure(trained, trained.begin(rows, found))["objective"]

    at, h = [getattr(parameters, name) for name in names], 1e-5
    rng = np.random.default_rng(1)
    for _ in range(6):
        along = [rng.standard_normal(each.shape) for each in at]
        ahead, behind = (objective(*(a + s * h * d for a, d in zip(at, along, strict=True))) for s in (1, -1))
        assert abs(ahead - behind) / (2 * h) < 2e-5


@pytest.mark.parametrize("noise", [VaryingNoise(precision=False, mixing=False), VaryingNoise(ridge=1e12)], ids=str)
@pytest.mark.parametrize("penalty", [{"regularization": 0.5}, {"prior_precision": 0.3}], ids=str)
def test_what_does_not_vary_is_the_plain_noise(noise, penalty):
    plain, constant = fitted(noise="isotropic", **penalty), fitted(noise=noise, **penalty)
    assert_allclose(constant.transform(X), plain.transform(X), atol=1e-6)
    assert constant.noise_variance_ == pytest.approx(plain.noise_variance_, rel=1e-6)
    assert_allclose(constant.history_["log_likelihood"], plain.history_["log_likelihood"], rtol=1e-6)


# ---------------------------------------------------------------------------------------------- truths


def tapered(n=3000, seed=0):
    """A curve in four columns about which the noise grows from 0.03 to 0.33 along the way."""
    rng = np.random.default_rng(seed)
    u = rng.uniform(-1, 1, n)
    clean = np.stack([2 * u, u**2, np.sin(2 * u), -u], axis=1)
    return clean + 0.03 * np.exp(1.2 * (u + 1))[:, None] * rng.standard_normal(clean.shape), clean


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.MultimodalWarning")  # nodes are close where the noise is wide
def test_noise_that_grows_along_a_curve_is_recovered():
    table, clean = tapered()
    settings = {"n_components": 1, "nodes": 60, "basis": 8, "max_iter": 500, "tol": 1e-5}
    model = GTM(**settings, noise="varying").fit(table)
    place = model.inverse_transform(model.latent_.nodes)[:, 0] / 2
    found = 1.0 / np.sqrt(model.noise_parameters_["node_precisions"])
    inside = np.abs(place) < 1
    assert_allclose(found[inside], 0.03 * np.exp(1.2 * (place[inside] + 1)), rtol=0.1)
    plain = GTM(**settings).fit(table)
    assert model.score(table) > plain.score(table) + 1.0
    off = [np.square(m.reconstruct(table) - clean).sum(axis=1).mean() for m in (model, plain)]
    assert off[0] < off[1]


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.MultimodalWarning")  # nodes crowd in the middle
def test_mixing_weights_follow_the_data():
    rng = np.random.default_rng(3)
    u = np.clip(rng.normal(0.0, 0.4, 4000), -1, 1)
    table = np.stack([2 * u, u**2], axis=1) + 0.05 * rng.standard_normal((4000, 2))
    noise = VaryingNoise(precision=False)
    model = GTM(1, nodes=30, basis=4, noise=noise, max_iter=1000, tol=1e-5).fit(table)
    shares = model.noise_parameters_["node_shares"]
    assert_allclose(shares, model.node_mass_ / len(table), atol=0.01)
    drawn = model.sample(40_000, random_state=0)
    assert_allclose(np.quantile(drawn[:, 0], [0.1, 0.5, 0.9]), np.quantile(table[:, 0], [0.1, 0.5, 0.9]), atol=0.06)


def test_rows_drawn_come_from_nodes_by_their_shares():
    model = fitted()
    rows, node = posteriors.sample(model._model, model._parameters(), 200_000, np.random.default_rng(1))
    count = np.bincount(node, minlength=49) / len(node)
    assert_allclose(count, model.noise_parameters_["node_shares"], atol=4e-3)
    k = int(np.argmax(count))
    center = model.inverse_transform(model.latent_.nodes[k : k + 1]) - model.offset_
    spread = np.square(rows[node == k] - center).mean()
    assert spread == pytest.approx(1 / model.noise_parameters_["node_precisions"][k], rel=0.05)


# ---------------------------------------------------------------------------------------- gaps and theorems


def test_gaps_are_filled_by_their_expectation():
    table = gappy()
    model = fitted(table)
    found, spread = model.impute(table, return_std=True)
    log_density = brute_log_densities(model, table)
    share = np.exp(log_density - logsumexp(log_density, axis=1, keepdims=True))
    centers, variances = model.inverse_transform(model.latent_.nodes), 1 / model.noise_parameters_["node_precisions"]
    mean, missing = share @ centers, np.isnan(table)
    each = np.square(centers[None] - mean[:, None]) + variances[:, None]
    assert_allclose(found[missing], mean[missing], atol=1e-8)
    assert_allclose(spread[missing], np.sqrt((share[:, :, None] * each).sum(axis=1))[missing], rtol=1e-6)


def test_rows_of_nothing_have_the_prior():
    model = fitted()
    shares = model.noise_parameters_["node_shares"]
    nothing = np.full((1, X.shape[1]), np.nan)
    with pytest.warns(DegenerateWarning, match="no value"):
        assert_allclose(model.responsibilities(nothing)[0], shares, atol=1e-12)
    with pytest.warns(DegenerateWarning, match="no value"):
        assert model.score_samples(nothing)[0] == pytest.approx(0.0, abs=1e-12)
    with pytest.warns(DegenerateWarning, match="no value"):
        assert_allclose(model.impute(nothing)[0], shares @ model.inverse_transform(model.latent_.nodes))


def test_the_covariance_is_that_of_each_node():
    model = fitted()
    variance = 1 / model.noise_parameters_["node_precisions"]
    assert np.ptp(np.log(variance)) > 0.1
    assert_allclose(model.noise_covariance(), variance[:, None, None] * np.eye(X.shape[1]))


@kinds
def test_a_row_alone_is_the_row_among_others(table, errors, noise):
    model = fitted(table, errors, noise)
    whole = model.transform(table, errors=errors)
    for i in (0, 7, 80):
        some = None if errors is None else errors[i : i + 1]
        assert_allclose(model.transform(table[i : i + 1], errors=some)[0], whole[i], atol=1e-10)


@kinds
def test_repeats_are_weights(table, errors, noise):
    count = np.random.default_rng(3).integers(0, 3, len(table))
    weighted = GTM(**{**SMALL, "noise": noise}).fit(table, sample_weight=count, errors=errors)
    again = None if errors is None else np.repeat(errors, count, axis=0)
    repeated = fitted(np.repeat(table, count, axis=0), again, noise)
    assert_allclose(weighted.weights_, repeated.weights_, rtol=1e-5, atol=1e-6)
    for name, each in weighted.noise_parameters_.items():
        assert_allclose(each, repeated.noise_parameters_[name], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("errors", [None, ERRORS])
@pytest.mark.parametrize("table", [X, gappy()], ids=["whole", "gaps"])
def test_blocks_are_the_whole(table, errors):
    model = fitted(table, errors)
    parameters = model._parameters()
    whole = gtm.summarize(model._model, model._rows(table, errors), parameters)
    cuts = [slice(i, i + 37) for i in range(0, 150, 37)]
    parts = [model._rows(table[cut], None if errors is None else errors[cut]) for cut in cuts]
    first, *rest = (gtm.summarize(model._model, part, parameters) for part in parts)
    joined = sum(rest, first)
    for name in vars(whole):
        assert_allclose(getattr(joined, name), getattr(whole, name), rtol=1e-9, atol=1e-12)
        assert_allclose(getattr(whole.scale(0.5), name), 0.5 * np.asarray(getattr(whole, name)), rtol=1e-15)


def test_errors_of_nothing_change_nothing():
    model = fitted()
    rows, again = model._rows(gappy()), model._rows(gappy(), np.zeros(X.shape))
    one, two = (gtm.summarize(model._model, each, model._parameters()) for each in (rows, again))
    for name in vars(one):
        assert_allclose(getattr(two, name), getattr(one, name), rtol=1e-9, atol=1e-9)


def test_single_precision_is_double_precision_but_for_rounding():
    model = fitted()
    narrow = X.astype(np.float32)
    assert model.transform(narrow).dtype == np.float32
    assert_allclose(model.transform(narrow), model.transform(X), atol=1e-3)
    far = np.full((1, X.shape[1]), 1e15, dtype=np.float32)
    assert np.isfinite(model.transform(far)).all()
    assert fitted(narrow).noise_variance_ == pytest.approx(model.noise_variance_, rel=1e-2)


@pytest.mark.parametrize("init", ["pca", "random", "semi-random", "isomap", "lle", "laplacian"])
def test_every_start_will_do(init):
    model = fitted(gappy(), init=init, random_state=0)
    assert np.isfinite(model.transform(gappy())).all()


@pytest.mark.parametrize(
    "latent",
    [
        {"latent": "circle", "nodes": 16, "basis": 5},
        {"latent": "sphere", "nodes": 40, "basis": 8},
        {"n_components": 4, "nodes": 3, "basis": 2},
        {"latent": "torus", "nodes": 6, "basis": 3},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::prinfold.exceptions.DegenerateWarning")
@pytest.mark.filterwarnings("ignore::prinfold.exceptions.MultimodalWarning")
def test_every_latent_space_will_do(latent):
    model = GTM(**{**SMALL, **latent}, noise="varying").fit(X)
    assert np.diff(model.history_["objective"]).min() >= -1e-10


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.MultimodalWarning")  # three iterations are few
def test_large_jobs_warm_up():
    table = datasets.make_pipe_flow(5000, rng=3).X
    model = GTM(nodes=30, basis=4, max_iter=3, tol=0.0, noise="varying").fit(table)
    objective = np.array(model.history_["objective"])
    assert np.diff(objective).min() >= 0
    assert np.ptp(model.noise_parameters_["node_precisions"]) > 0


def test_a_node_has_no_less_noise_than_the_floor():
    table = np.repeat(X[:12, :3], 3, axis=0)
    with pytest.warns(DegenerateWarning, match="noise has shrunk to its floor"):
        model = GTM(1, nodes=40, basis=12, noise="varying", noise_floor=1e-4, regularization=0.0, max_iter=300).fit(
            table
        )
    assert (1 / model.noise_parameters_["node_precisions"]).min() >= model._model.noise.floor * (1 - 1e-9)
    assert np.diff(model.history_["objective"]).min() >= -1e-10
    assert np.isfinite(model.transform(table)).all()


def test_files_keep_what_varies(tmp_path):
    for noise in ("varying", VaryingNoise(mixing=False, basis=GaussianBasis((2, 2)))):
        model = fitted(noise=noise)
        model.save(tmp_path / "model.prinfold")
        again = prinfold.load(tmp_path / "model.prinfold")
        assert again.noise == model.noise
        assert_allclose(again.transform(X), model.transform(X), atol=1e-12)
        assert_allclose(again.score_samples(X), model.score_samples(X), rtol=1e-12)
    for name, bad, words in (
        ("precision_weights", np.zeros(3), "precision_weights of the noise, finite and of shape"),
        ("ceiling", -1.0, "ceiling of the noise, finite and above zero"),
        ("node_shares", np.full(49, 0.5), "node_shares of the noise that follow from their weights"),
    ):
        broken = fitted(noise="varying")
        broken.noise_parameters_ = broken.noise_parameters_ | {name: bad}
        broken.save(tmp_path / "bad.prinfold")
        with pytest.raises(CorruptModelFileError, match=words):
            prinfold.load(tmp_path / "bad.prinfold")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"precision": "yes"}, "VaryingNoise: precision.*True or False"),
        ({"basis": 0}, "VaryingNoise: basis"),
        ({"ridge": 0.0}, "VaryingNoise: ridge.*above 0"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, words):
    with pytest.raises(InvalidParameterError, match=words):
        VaryingNoise(**settings)
