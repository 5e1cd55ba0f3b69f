"""Leaving out nodes under oriented noise: the bound holds, nothing is lost beyond it, and passes are really shorter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from tests.algorithms.test_pruning import sheet

from prinfold import PPS
from prinfold._arrays import as_rows
from prinfold.algorithms import gtm, pruning
from prinfold.algorithms.oriented import OrientedParameters
from prinfold.kernels.balls import split_radii

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")


@pytest.fixture
def always(monkeypatch):
    """Plan even the smallest pass."""
    monkeypatch.setattr(pruning, "_WORTH_IT", 0)


def trained(X, n_iter=10, **settings):
    return PPS(**{"nodes": 14, "basis": 5, "max_iter": n_iter, "tol": 0.0, **settings}).fit(X)


def log_joint(model, parameters, X):
    """(n, K) log p(t | node) from explicit covariances."""
    surface = model._model.surface
    Y, J = surface.nodes(parameters.weights), surface.node_jacobian(parameters.weights)
    E = np.linalg.qr(J)[0]
    S = np.broadcast_to(np.asarray(parameters.along) / parameters.precision, len(Y))
    B = np.broadcast_to(np.asarray(parameters.across) / parameters.precision, len(Y))
    d = X[:, None] - Y
    u = np.einsum("kdq,nkd->nkq", E, d)
    inside = np.square(u).sum(axis=2)
    squared = np.square(d).sum(axis=2)
    Q, D = J.shape[2], X.shape[1]
    return -0.5 * ((squared - inside) / B + inside / S + Q * np.log(S) + (D - Q) * np.log(B))


@given(
    seed=st.integers(0, 10_000),
    clamping=st.sampled_from([0.05, 0.5, 0.99, 1.5, 2.9]),
    log_precision=st.floats(-1, 4),
    radius=st.floats(0, 2),
    per_node=st.booleans(),
)
def test_the_bound_holds_for_every_row_of_a_ball(seed, clamping, log_precision, radius, per_node):
    rng = np.random.default_rng(seed)
    model = trained(sheet(60), 2, nodes=6, basis=3, clamping=clamping)
    noise, parameters = model._model.noise, replace(model._parameters(), precision=10.0**log_precision)
    if per_node:
        along = rng.uniform(0.1, 2.9, 36)
        parameters = OrientedParameters(
            parameters.weights, parameters.precision * rng.uniform(0.5, 2, 36), along, (6 - 2 * along) / 4
        )
    nodes = noise.prepare(model._model.surface, parameters)
    centre = rng.standard_normal(6)
    inside = rng.standard_normal((50, 6))
    inside *= radius * rng.uniform(0, 1, (50, 1)) / np.linalg.norm(inside, axis=1, keepdims=True)
    bound = noise.bound(nodes, centre[None], np.array([radius]))[0]
    log_weight = log_joint(model, parameters, centre + inside)
    rounding = 1e-10 * (1 + np.abs(log_weight).max())
    log_weight -= logsumexp(log_weight, axis=1, keepdims=True)
    assert (log_weight <= bound + rounding).all()
    frame = np.linalg.qr(rng.standard_normal((6, int(rng.integers(1, 5)))))[0]
    radii = np.array(split_radii(inside, frame))[:, None]
    framed = noise.framed_bound(nodes, centre[None], frame, *radii)[0]
    assert (log_weight <= framed + rounding).all()
    assert (framed <= noise.bound(nodes, centre[None], radii[0])[0] + rounding).all()


@pytest.mark.parametrize(
    "settings",
    [{}, {"clamping": 2.0}, {"per_node": True}, {"latent": "sphere", "nodes": 500, "basis": 40}],
    ids=["across", "along", "per node", "sphere"],
)
@pytest.mark.parametrize("crossed", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_planned_pass_loses_less_than_it_may(always, monkeypatch, settings, crossed, compiled):
    if compiled:
        monkeypatch.setattr(pruning, "_SWEEP_FROM", 0)
        monkeypatch.setattr(pruning, "_SWEEP_AFTER", 0)
    X, per_node = sheet(3000, noise=0.01), settings.get("per_node", False)
    model = trained(X, **{"nodes": 24, **{k: v for k, v in settings.items() if k != "per_node"}})
    wanted = replace(model._model, noise=replace(model._model.noise, crossed=crossed))
    p, K = model._parameters(), model.latent_.n_nodes
    if per_node:
        rng = np.random.default_rng(0)
        along = rng.uniform(0.5, 0.6, K)
        p = OrientedParameters(p.weights, p.precision * rng.uniform(0.9, 1.1, K), along, (6 - 2 * along) / 4)
    rows = as_rows(X, model.offset_, None, width=K)
    nodes = wanted.noise.prepare(wanted.surface, p)
    parts, hint = pruning.plan(wanted.surface, wanted.noise, nodes, rows, p.weights, pruning.Hint())
    assert hint.groups is not None
    assert isinstance(parts[0], pruning.Batch) == compiled
    pairs = sum(part.n_entries(K) for part in parts)
    assert pairs < 0.5 * len(X) * K, "nothing was pruned: the comparison would say nothing"
    planned, _ = gtm.e_step(wanted, rows, p, pruning.Hint())
    dense = gtm.summarise(wanted, rows, p)
    assert abs(dense.log_likelihood - planned.log_likelihood) < 1e-9 * len(X)
    for name in ("mass", "moment", "square", "tangential", *(["cross"] if crossed else [])):
        expected = getattr(dense, name)
        assert_allclose(getattr(planned, name), expected, atol=1e-6 * np.abs(expected).max())


def test_a_fit_with_plans_is_the_fit_without(always, monkeypatch):
    X = sheet(noise=0.01)
    with_plans = trained(X, 15)
    monkeypatch.setattr(pruning, "_WORTH_IT", np.inf)
    without = trained(X, 15)
    assert_allclose(with_plans.history_["objective"], without.history_["objective"], rtol=1e-8)
    assert_allclose(with_plans.transform(X), without.transform(X), atol=1e-5)


@pytest.mark.parametrize("crossed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_compiled_dense_pass_is_the_plain_one(monkeypatch, crossed, weighted, dtype):
    X = sheet(700, noise=0.05).astype(dtype)
    X[3] += 1e3  # one row far from every node
    model = trained(X, 4, nodes=8, basis=4)
    wanted, p = replace(model._model, noise=replace(model._model.noise, crossed=crossed)), model._parameters()
    weight = np.random.default_rng(0).integers(0, 4, len(X)).astype(float) if weighted else None
    rows = as_rows(X, model.offset_, weight, width=64, block_rows=100)
    nodes = wanted.noise.prepare(wanted.surface, p, dtype)
    batches = pruning._dense(wanted.noise, nodes, rows, True)
    assert isinstance(batches[0], pruning.Batch)
    found, expected = gtm._sum_parts(wanted, rows, nodes, batches), gtm.summarise(wanted, rows, p)
    eps = 1e-11 if dtype is np.float64 else 1e-4
    for name in ("mass", "moment", "square", "tangential", "log_likelihood", "total", *(["cross"] if crossed else [])):
        value = np.asarray(getattr(expected, name))
        assert_allclose(getattr(found, name), value, rtol=0, atol=eps * max(1.0, np.abs(value).max()))
