"""The E-step against its definition: explicit densities, explicit sums, whatever the rows and their weights are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from prinfold import GTM
from prinfold.gtm import model as gtm
from prinfold.gtm import posterior as posteriors
from prinfold.gtm.noise.protocol import Capabilities
from prinfold.latent import Points
from prinfold.rows.rows import as_rows

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")


def sheet(n=300, D=6, seed=0, noise=0.05):
    rng = np.random.default_rng(seed)
    u, v = rng.uniform(-1, 1, (2, n))
    curved = np.stack([2 * u, v, np.sin(2 * u), u * v], axis=1)
    X = curved @ np.linalg.qr(rng.normal(size=(max(D, 4), 4)))[0][:D].T
    return X + noise * rng.standard_normal(X.shape)


def trained(X, n_iter=8, **settings):
    return GTM(**{"nodes": 9, "basis": 4, "max_iter": n_iter, "tol": 0.0, **settings}).fit(X)


def by_definition(model, parameters, X, weight):
    """Mass, moment and log-likelihood of each row, from ‖t − y‖² and nothing else."""
    T = np.asarray(X, dtype=np.float64) - model.offset_
    Y = model._model.surface.nodes(parameters.weights)
    beta, D = parameters.precision, T.shape[1]
    log_p = -0.5 * beta * np.square(T[:, None] - Y).sum(axis=2)
    total = logsumexp(log_p, axis=1)
    R = weight[:, None] * np.exp(log_p - total[:, None])
    log_likelihood = total + 0.5 * D * np.log(beta / (2 * np.pi)) - np.log(len(Y))
    return R.sum(axis=0), R.T @ T, log_likelihood


def assert_same(model, X, weight=None, beta=None, rtol=1e-9):
    parameters = model._parameters()
    if beta is not None:
        parameters = replace(parameters, precision=beta)
    rows = as_rows(X, model.offset_, weight, width=model.latent_.n_nodes, block_rows=64)
    found = gtm.summarize(model._model, rows, parameters)
    given_weight = np.ones(X.shape[0]) if weight is None else weight
    table = X.toarray() if scipy.sparse.issparse(X) else X
    mass, moment, log_likelihood = by_definition(model, parameters, table, given_weight)
    largest = given_weight.max()
    reach = np.abs(np.asarray(table, dtype=float) - model.offset_).max()
    # Rounding of a log density is relative to β‖t‖‖y‖, which cancels in it.
    size = 1 + parameters.precision * np.square(np.abs(model._model.surface.nodes(parameters.weights)).max())
    assert_allclose(found.mass, mass, rtol=rtol * size, atol=rtol * size * largest)
    assert_allclose(found.moment, moment, rtol=rtol * size, atol=rtol * size * largest * reach)
    assert found.log_likelihood == pytest.approx(given_weight @ log_likelihood, rel=rtol * size)
    assert found.total == pytest.approx(given_weight.sum())
    each = posteriors.log_likelihood(model._model, rows, parameters)
    assert_allclose(each, log_likelihood, rtol=rtol * size, atol=rtol * size)


WEIGHTS = {
    "none": lambda rng, n: None,
    "ordinary": lambda rng, n: rng.uniform(0.5, 2, n),
    "some zero": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "tiny": lambda rng, n: 1e-46 * rng.uniform(0.5, 2, n),
    "huge": lambda rng, n: 1e46 * rng.uniform(0.5, 2, n),
    "one row counts": lambda rng, n: np.where(np.arange(n) == 7, 1.0, 1e-46),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_sums_are_those_of_the_definition(weights, dtype):
    X = sheet().astype(dtype)
    assert_same(
        trained(X), X, WEIGHTS[weights](np.random.default_rng(1), len(X)), rtol=1e-9 if dtype is np.float64 else 1e-5
    )


@given(log_beta=st.floats(-6, 9), away=st.sampled_from([0.0, 1.0, 30.0, 1e3, 1e6]), seed=st.integers(0, 100))
def test_neither_far_rows_nor_extreme_noise_spoil_anything(log_beta, away, seed):
    """Exponents run from nought to far below what ``exp`` can tell from zero, for one row or for all of them."""
    X = sheet(80, seed=seed)
    model = MODEL
    X[3] += away
    assert_same(model, X, beta=10.0**log_beta, rtol=1e-12 * (1 + away))


MODEL = trained(sheet(), 3)


def test_single_precision_has_no_error_that_all_rows_share():
    """β is rounded once for all rows; what that adds to −½β‖t‖² is taken out, and what is left averages out."""
    surface, noise, beta = MODEL._model.surface, MODEL._model.noise, 1.1  # between two numbers of single precision
    at_origin = replace(MODEL._parameters(), weights=np.zeros_like(MODEL.weights_), precision=beta)
    nodes = noise.at_nodes(surface, at_origin, np.float32)
    T = np.random.default_rng(0).integers(100, 200, (2000, 6))  # whose squares are exact
    square, scaled = np.square(T).sum(axis=1), noise.capabilities.scaled
    work = np.empty((1, len(T), len(nodes.centers)), dtype=np.float32)
    constant = scaled.log_density(nodes, noise.load(T.astype(np.float32)), None, work)
    found = work[0, :, 0].astype(float) / scaled.exponential(np.float32).per_e + constant
    error = found - 3 * np.log(beta / (2 * np.pi)) + 0.5 * beta * square
    assert abs(error.mean()) < 0.2 * abs(0.5 * nodes.excess[1] * square.mean())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("away", [1e6, 1e12, 1e17])
def test_a_row_far_away_changes_nothing_for_the_others(dtype, away):
    X = sheet().astype(dtype)
    model = trained(X)
    before = model.responsibilities(X)
    moved = X.copy()
    moved[5, 2] = away
    after = model.responsibilities(moved)
    assert np.isfinite(after).all()
    assert_allclose(after.sum(axis=1), 1.0, rtol=1e-5)
    others = np.arange(len(X)) != 5
    assert_allclose(after[others], before[others], rtol=1e-12 if dtype is np.float64 else 1e-4, atol=1e-6)
    scores = model.score_samples(moved)
    assert np.isfinite(scores).all()
    assert scores[5] == pytest.approx(-0.5 * away**2 / model.noise_variance_, rel=1e-3)


def test_rows_that_lie_on_their_nodes_in_many_columns_do_not_overflow():
    """A row is expected ½D nats below its node's peak; one on the peak has that much to spare, here 1500."""
    rng = np.random.default_rng(0)
    X = sheet(40, 3000, noise=0.0) + 0.01 * rng.standard_normal((40, 3000))
    model = trained(X, 3)
    nodes = model.inverse_transform(model.latent_.nodes)
    assert_same(model, np.concatenate([X, nodes]), rtol=1e-11)


def test_one_node_takes_every_row():
    X = sheet(50)
    model = trained(X, 3, nodes=Points(np.zeros((1, 2))), basis=2)
    assert_same(model, X)
    assert_allclose(model.responsibilities(X), 1.0)


def test_duplicates_count_as_weights():
    X = sheet(100)
    model = trained(X)
    times = np.random.default_rng(0).integers(1, 4, len(X))
    once = as_rows(X, model.offset_, times.astype(float), block_rows=16)
    many = as_rows(np.repeat(X, times, axis=0), model.offset_, block_rows=16)
    one, two = (gtm.summarize(model._model, rows, model._parameters()) for rows in (once, many))
    assert_allclose(one.mass, two.mass, rtol=1e-11, atol=1e-13)
    assert_allclose(one.moment, two.moment, rtol=1e-11, atol=1e-12)
    assert one.log_likelihood == pytest.approx(two.log_likelihood, rel=1e-12)
    assert one.square == pytest.approx(two.square, rel=1e-12)


def test_sparse_tables_and_memory_maps_have_the_same_sums(tmp_path):
    X = np.where(sheet() > 0.3, sheet(), 0.0)
    model = trained(X)
    assert_same(model, scipy.sparse.csr_matrix(X))
    np.save(tmp_path / "x.npy", X)
    assert_same(model, np.load(tmp_path / "x.npy", mmap_mode="r"))


def test_a_noise_without_scaled_log_densities_gets_the_same_posterior(monkeypatch):
    """The plain path, which looks for each row's largest weight, is the twin of the one that need not."""
    X = sheet()
    model = trained(X)
    rows = as_rows(X, model.offset_, width=81)
    fast = gtm.summarize(model._model, rows, model._parameters())
    monkeypatch.setattr(type(model._model.noise), "capabilities", Capabilities())
    plain = gtm.summarize(model._model, rows, model._parameters())
    assert_allclose(fast.mass, plain.mass, rtol=1e-11, atol=1e-12)
    assert_allclose(fast.moment, plain.moment, rtol=1e-11, atol=1e-12)
    assert fast.log_likelihood == pytest.approx(plain.log_likelihood, rel=1e-12)
