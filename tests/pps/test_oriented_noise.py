"""Leaving out nodes under oriented noise: the bound holds, nothing is lost beyond it, and passes are really shorter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from tests.gtm.test_node_selection import sheet

from prinfold import PPS
from prinfold.gtm import model as gtm
from prinfold.gtm import node_selection as pruning
from prinfold.gtm import posterior as posteriors
from prinfold.gtm.node_bounds import Balls, split_radii
from prinfold.gtm.noise.tangents import Tangents
from prinfold.pps import oriented_bounds
from prinfold.pps.oriented_model import OrientedParameters
from prinfold.pps.oriented_sums import OrientedNodes
from prinfold.rows.rows import as_rows

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")


@pytest.fixture
def always(monkeypatch):
    """Plan even the smallest pass."""
    monkeypatch.setattr(pruning, "_PLAN_FROM", 0)
    monkeypatch.setattr(pruning, "_NODES_ONCE", 0)


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
    nodes = noise.at_nodes(model._model.surface, parameters)
    center = rng.standard_normal(6)
    inside = rng.standard_normal((50, 6))
    inside *= radius * rng.uniform(0, 1, (50, 1)) / np.linalg.norm(inside, axis=1, keepdims=True)
    frame = np.linalg.qr(rng.standard_normal((6, int(rng.integers(1, 5)))))[0]
    radii = split_radii(inside, np.array([0]), frame)
    whole = Balls(center[None], np.array([radius]), frame[:, :0], *radii[1:])
    bound = oriented_bounds.log_responsibility_bounds(nodes, whole)[0]
    log_weight = log_joint(model, parameters, center + inside)
    rounding = 1e-10 * (1 + np.abs(log_weight).max())
    log_weight -= logsumexp(log_weight, axis=1, keepdims=True)
    assert (log_weight <= bound + rounding).all()
    framed = oriented_bounds.log_responsibility_bounds(nodes, whole._replace(radius=radii[0], frame=frame))[0]
    assert (log_weight <= framed + rounding).all()
    assert (
        framed <= oriented_bounds.log_responsibility_bounds(nodes, whole._replace(radius=radii[0]))[0] + rounding
    ).all()


def hand_made(rng, K, D, Q):
    """Nodes of any noise, with tangents of any rank that lie together or apart; and axes of which some hold them."""
    close = 10.0 ** rng.uniform(-3, 1)
    E = np.linalg.qr(rng.standard_normal((D, Q)) + close * rng.standard_normal((K, D, Q)))[0]
    rank = np.where(rng.random(K) < 0.3, rng.integers(0, Q + 1, K), Q)
    E *= np.arange(Q) < rank[:, None, None]
    inverse_across, inverse_along = 10.0 ** rng.uniform(-1, 1, (2, K))
    if rng.random() < 0.5:
        inverse_across, inverse_along = np.full(K, inverse_across[0]), np.full(K, inverse_along[0])
    tangents = Tangents(np.moveaxis(E, 2, 0), rank.astype(float), np.zeros((K, Q, Q)))
    normalizer = 0.5 * (rank * np.log(inverse_along) + (D - rank) * np.log(inverse_across))
    nothing = np.zeros(0)
    nodes = OrientedNodes(
        nothing, rng.standard_normal((K, D)), tangents, 1.0, nothing, inverse_across, inverse_along, normalizer, 0.0
    )
    blurred = E[0] + 10.0 ** rng.uniform(-6, 1) * rng.standard_normal((D, Q))
    return nodes, np.linalg.qr(blurred)[0]


@given(seed=st.integers(0, 100_000))
def test_what_turning_adds_is_bounded_whatever_the_tangents_and_the_axes(seed):
    """The second-order terms by themselves: beside those of first order, which are larger, an error would not show."""
    rng = np.random.default_rng(seed)
    K, D, Q = 4, int(rng.integers(2, 5)), 1 if rng.random() < 0.7 else 2
    if D == Q:
        return
    nodes, F = hand_made(rng, K, D, Q)
    E, contrast = nodes.tangents.frame, nodes.inverse_across - nodes.inverse_along
    precision = nodes.inverse_across[:, None, None] * np.eye(D)
    precision -= contrast[:, None, None] * np.einsum("qkd,qke->kde", E, E)
    within, beside = 10.0 ** rng.uniform(-2, 0, (2, 1))
    steps = rng.standard_normal((2000, D))
    inside = steps @ F @ F.T
    outside = steps - inside
    inside *= within / np.linalg.norm(inside, axis=1, keepdims=True)
    outside *= beside / np.maximum(np.linalg.norm(outside, axis=1, keepdims=True), 1e-300)
    delta, best, radius = inside + outside, np.zeros(1, dtype=int), np.hypot(within, beside)
    sine = oriented_bounds._sines(nodes, best)
    added = 0.5 * np.einsum("nd,kde,ne->nk", delta, precision[0] - precision, delta).max(axis=0)
    framed = oriented_bounds._quadratic_term_in_axes(
        nodes, best, sine, Balls(np.zeros((1, D)), radius, F, within, beside)
    )
    largest = np.linalg.eigvalsh(precision[0] - precision)[:, -1]
    assert (added <= framed[0] * (1 + 1e-9) + 1e-9).all()
    assert (largest <= oriented_bounds._largest_precision_difference(nodes, best, sine)[0] * (1 + 1e-9) + 1e-9).all()


@given(seed=st.integers(0, 100_000))
def test_what_moving_adds_is_bounded_whatever_the_tangents_and_the_axes(seed):
    """A step so short that the terms of second order vanish, in the direction that favours each node most."""
    rng = np.random.default_rng(seed)
    K, D, Q = 4, int(rng.integers(3, 6)), int(rng.integers(1, 3))
    nodes, F = hand_made(rng, K, D, Q)
    E, contrast = nodes.tangents.frame, nodes.inverse_across - nodes.inverse_along
    x, step = rng.standard_normal(D), 1e-4

    def log_density(t):
        d = t[:, None] - nodes.centers
        inside = np.square(np.einsum("qkd,nkd->qnk", E, d)).sum(axis=0)
        return nodes.log_normalizer - 0.5 * (nodes.inverse_across * np.square(d).sum(axis=2) - contrast * inside)

    best = log_density(x[None])[0].argmax()
    d = x - nodes.centers
    pull = nodes.inverse_across[:, None] * d
    pull -= contrast[:, None] * np.einsum("qkd,qk->kd", E, np.einsum("qkd,kd->qk", E, d))
    towards = pull[best] - pull
    inside = towards @ F @ F.T
    outside = towards - inside
    unit = [part / np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-300) for part in (inside, outside)]
    rows = x + step * unit[0] + 2 * step * unit[1]
    reached = np.diagonal(log_density(rows)) - log_density(rows)[:, best]
    balls = Balls(x[None], np.array([np.sqrt(5) * step]), F, np.array([step]), np.array([2 * step]))
    bound = oriented_bounds.log_responsibility_bounds(nodes, balls)[0]
    assert (reached <= bound + 1e-9 * (1 + np.abs(bound))).all()


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
    nodes = wanted.noise.at_nodes(wanted.surface, p)
    parts, hint = pruning.plan(wanted.surface, wanted.noise, nodes, rows, p.weights, pruning.Hint())
    assert hint.groups is not None
    assert isinstance(parts[0], pruning.RowBatch) == compiled
    pairs = sum(part.n_entries(K) for part in parts)
    assert pairs < 0.5 * len(X) * K, "nothing was pruned: the comparison would say nothing"
    planned, _ = gtm.e_step(wanted, rows, p, pruning.Hint())
    dense = gtm.summarize(wanted, rows, p)
    assert abs(dense.log_likelihood - planned.log_likelihood) < 1e-9 * len(X)
    for name in ("mass", "moment", "square", "tangential", *(["cross"] if crossed else [])):
        expected = getattr(dense, name)
        assert_allclose(getattr(planned, name), expected, atol=1e-6 * np.abs(expected).max())


def test_a_fit_with_plans_is_the_fit_without(always, monkeypatch):
    X = sheet(noise=0.01)
    with_plans = trained(X, 15)
    monkeypatch.setattr(pruning, "_PLAN_FROM", np.inf)
    without = trained(X, 15)
    assert_allclose(with_plans.history_["objective"], without.history_["objective"], rtol=1e-8)
    assert_allclose(with_plans.transform(X), without.transform(X), atol=1e-5)


@pytest.mark.parametrize("crossed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_compiled_dense_pass_is_the_plain_one(monkeypatch, crossed, weighted, dtype):
    X = sheet(700, noise=0.05).astype(dtype)
    model = trained(X, 4, nodes=8, basis=4)
    X[3] += 20  # one row far from every node, which training would have drawn a node to
    wanted, p = replace(model._model, noise=replace(model._model.noise, crossed=crossed)), model._parameters()
    weight = np.random.default_rng(0).integers(0, 4, len(X)).astype(float) if weighted else None
    rows = as_rows(X, model.offset_, weight, width=64, block_rows=100)
    nodes = wanted.noise.at_nodes(wanted.surface, p, dtype)
    batches = pruning._dense(nodes, rows, True)
    assert isinstance(batches[0], pruning.RowBatch)
    far = posteriors.log_likelihood(wanted, rows, p)[3] - nodes.constant
    assert far < -1000
    found, expected = gtm.sum_parts(wanted, rows, nodes, batches), gtm.summarize(wanted, rows, p)
    eps = 1e-11 if dtype is np.float64 else 1e-4
    for name in ("mass", "moment", "square", "tangential", "log_likelihood", "total", *(["cross"] if crossed else [])):
        value = np.asarray(getattr(expected, name))
        assert_allclose(getattr(found, name), value, rtol=0, atol=eps * max(1.0, np.abs(value).max()))


@pytest.mark.parametrize(("scale", "away"), [(1e-8, 1e12), (1e-4, 1e17)])
def test_rows_beyond_single_precision_still_have_a_place_and_a_likelihood(scale, away):
    X = (scale * sheet(300, noise=0.05)).astype(np.float32)
    model = trained(X, 5, nodes=6, basis=3)
    far = np.array([[away, 0, 0, 0, 0, 0], [0, 0, -away, away, 0, 0]], dtype=np.float32)
    assert np.isfinite(model.transform(far)).all()
    assert not np.isnan(model.score_samples(far)).any()
