"""Oriented noise with gaps and errors: against dense normals, against complete rows, and as a step uphill."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp

import prinfold
from prinfold import PPS, datasets
from prinfold.exceptions import DegenerateWarning, InvalidDataError, UnsupportedInputError
from prinfold.gtm import model as gtm
from prinfold.pps import model as pps

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")  # few nodes, few iterations

X = datasets.make_pipe_flow(90, rng=2).X[:, :6]
ERRORS = 0.1 * np.random.default_rng(8).uniform(0.1, 2, X.shape)
SMALL = {"nodes": 5, "basis": 3, "max_iter": 12, "tol": 0.0}
HOLES = np.random.default_rng(0).uniform(size=X.shape) < 0.25
HOLES[np.arange(90), np.arange(90) % 6] = False
GAPPY = np.where(HOLES, np.nan, X)

KINDS = {
    "across": {"clamping": 0.4},
    "along": {"clamping": 1.7},
    "early": {"clamping": 0.5, "amplification": 1.0},
    "learned": {"clamping": "learn"},
    "of each node": {"clamping": "learn-per-node"},
}
kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
TABLES = {"gaps": (GAPPY, None), "errors": (X, ERRORS), "gaps, errors": (GAPPY, ERRORS)}
tables = pytest.mark.parametrize(("table", "errors"), TABLES.values(), ids=TABLES)


def fitted(table=GAPPY, errors=None, **settings):
    return PPS(**{**SMALL, **settings}).fit(table, errors=errors)


def refuses(kind, errors):
    return errors is not None and kind["clamping"] == "learn-per-node"


def brute_force(model, table, errors=None):
    """(n, K) log p(t | node); (n, K, D) and (n, K, D, D) mean and covariance of cells given what was measured."""
    centers, covariances = model.inverse_transform(model.latent_.nodes), model.noise_covariance()
    e = np.zeros_like(table) if errors is None else errors
    (n, D), K = table.shape, len(centers)
    density, mean, spread = np.empty((n, K)), np.empty((n, K, D)), np.empty((n, K, D, D))
    for i, row in enumerate(table):
        seen = ~np.isnan(row)
        for k in range(K):
            total = covariances[k][np.ix_(seen, seen)] + np.diag(e[i, seen] ** 2)
            gap, precision = row[seen] - centers[k, seen], np.linalg.inv(total)
            density[i, k] = -0.5 * (gap @ precision @ gap + np.linalg.slogdet(2 * np.pi * total)[1])
            gain = covariances[k][:, seen] @ precision
            mean[i, k] = centers[k] + gain @ gap
            spread[i, k] = covariances[k] - gain @ covariances[k][seen]
    return density, mean, spread


@kinds
@tables
def test_likelihood_posterior_and_gaps_are_those_of_dense_normals(kind, table, errors):
    if refuses(kind, errors):
        return
    model = fitted(table, errors, **kind)
    density, mean, within = brute_force(model, table, errors)
    whole = logsumexp(density, axis=1)
    assert_allclose(model.score_samples(table, errors=errors), whole - np.log(25), rtol=1e-8, atol=1e-8)
    share = np.exp(density - whole[:, None])
    assert_allclose(model.responsibilities(table, errors=errors), share, atol=1e-8)
    found, spread = model.impute(table, errors=errors, return_std=True)
    expected = np.einsum("nk,nkd->nd", share, mean)
    own = np.einsum("nkdd->nkd", within) + np.square(mean - expected[:, None])
    missing = np.isnan(table)
    assert_allclose(found[missing], expected[missing], atol=1e-7)
    assert_allclose(spread[missing], np.sqrt(np.einsum("nk,nkd->nd", share, own)[missing]), rtol=1e-6)


@kinds
@tables
def test_sums_are_those_of_rows_completed_in_expectation(kind, table, errors):
    if refuses(kind, errors):
        return
    model = fitted(table, errors, **kind)
    rows, parameters = model._rows(table, errors), model._parameters()
    found = gtm.summarize(model._model_for(rows, model._model), rows, parameters)
    density, mean, within = brute_force(model, table, errors)
    share = np.exp(density - logsumexp(density, axis=1, keepdims=True))
    x, y = mean - model.offset_, model.inverse_transform(model.latent_.nodes) - model.offset_
    E = found.tangents.frame  # (Q, K, D)
    assert_allclose(found.mass, share.sum(axis=0), atol=1e-8)
    assert_allclose(found.moment, np.einsum("nk,nkd->kd", share, x), atol=1e-8)
    square = np.square(x).sum(axis=2) + np.einsum("nkdd->nk", within)
    assert_allclose(found.square, np.einsum("nk,nk->k", share, square), atol=1e-7)
    d = x - y
    outer = np.einsum("nkd,nke->nkde", d, d) + within
    cross = np.einsum("nk,nkde,qke->kdq", share, outer, E)
    assert_allclose(found.cross, cross, atol=1e-7)
    assert_allclose(found.tangential, np.einsum("kdq,qkd->k", cross, E), atol=1e-7)


@kinds
def test_complete_rows_are_the_same_by_either_way(kind):
    model = fitted(X, **kind)
    rows, parameters = model._rows(X), model._parameters()
    noise = replace(model._model.noise, crossed=True)
    cells = noise.with_gaps()
    assert type(cells) is not type(noise)
    one, two = (gtm.summarize(replace(model._model, noise=each), rows, parameters) for each in (noise, cells))
    for name in ("mass", "moment", "square", "tangential", "cross", "log_likelihood", "total"):
        assert_allclose(getattr(two, name), getattr(one, name), rtol=1e-7, atol=1e-8, err_msg=name)


@kinds
@tables
@pytest.mark.parametrize("trainer", ["gtm", "gem"])
def test_training_never_lowers_the_objective(kind, table, errors, trainer):
    if refuses(kind, errors):
        with pytest.raises(UnsupportedInputError, match="errors of cells need noise that all nodes share"):
            fitted(table, errors, trainer=trainer, **kind)
        return
    objective = np.array(fitted(table, errors, trainer=trainer, **kind).history_["objective"])
    assert np.diff(objective).min() >= -1e-12 * abs(objective).max()
    if trainer == "gem":  # the steps of the GTM may find nothing better than the GTM that they begin with
        assert objective[-1] > objective[0] + 0.01


@pytest.mark.parametrize("clamping", [0.4, 1.7])
def test_the_sums_hold_the_gradient_of_the_likelihood(clamping):
    """Fisher's identity, by finite differences of the log-likelihood of rows with gaps and errors."""
    model = fitted(GAPPY, ERRORS, clamping=clamping)
    rows, now = model._rows(GAPPY, ERRORS), model._parameters()
    trained = model._model_for(rows, model._model)
    nodes = trained.noise.oriented_nodes(trained.surface, now)
    sums = gtm.summarize(trained, rows, now)
    slope = pps.weight_gradient(trained.surface, nodes, sums, trained.penalty, now)
    rng, h = np.random.default_rng(1), 1e-6
    for _ in range(4):
        way = rng.standard_normal(now.weights.shape)

        def value(step, way=way):
            there = replace(now, weights=now.weights + step * way)
            return gtm.measure(trained, trained.begin(rows, there))["objective"] * len(GAPPY)

        assert (value(h) - value(-h)) / (2 * h) == pytest.approx(np.vdot(slope, way), rel=1e-4, abs=1e-4)


def test_repeats_are_weights_and_a_row_alone_is_the_row_among_others():
    count = np.random.default_rng(3).integers(0, 3, len(X))
    weighted = PPS(**SMALL, clamping=0.5).fit(GAPPY, sample_weight=count)
    repeated = fitted(np.repeat(GAPPY, count, axis=0), clamping=0.5)
    assert_allclose(weighted.weights_, repeated.weights_, rtol=1e-5, atol=1e-7)
    whole = weighted.transform(GAPPY)
    assert_allclose(np.concatenate([weighted.transform(GAPPY[i : i + 1]) for i in range(9)]), whole[:9], atol=1e-9)
    narrow = weighted.transform(GAPPY.astype(np.float32))
    assert narrow.dtype == np.float32
    assert_allclose(narrow, whole, atol=1e-3)


def test_a_model_of_complete_rows_takes_gaps_later(tmp_path):
    model = fitted(X, clamping=0.5)
    found = model.impute(GAPPY)
    missing = np.isnan(GAPPY)
    assert np.square(found - X)[missing].mean() < 0.5 * np.square(X - X.mean(axis=0))[missing].mean()
    model = fitted(clamping=0.5)
    model.save(tmp_path / "model.prinfold")
    again = prinfold.load(tmp_path / "model.prinfold")
    assert_allclose(again.transform(GAPPY), model.transform(GAPPY), atol=1e-12)
    assert_allclose(again.transform(X), model.transform(X), atol=1e-9)
    table = GAPPY.copy()
    table[1] = np.nan
    with pytest.warns(DegenerateWarning, match="no value in any column"):
        assert_allclose(model.responsibilities(table)[1], 1 / 25)


def test_selection_needs_every_cell():
    with pytest.raises(InvalidDataError, match="contains NaN"):
        fitted(n_components=1, clamping="select")
    with pytest.raises(UnsupportedInputError, match="knows nothing of errors"):
        fitted(X, ERRORS, n_components=1, clamping="select")
