"""Oriented noise against its definitions at toy size: explicit covariances, explicit sums, explicit maximisation.

Densities come from ``scipy.stats.multivariate_normal`` with the D×D covariance that the library never forms, maxima
from ``scipy.optimize``, slopes from finite differences.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit, logsumexp
from scipy.stats import multivariate_normal

from prinfold import GaussianBasis
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.gtm import model as gtm
from prinfold.gtm import posterior as posteriors
from prinfold.gtm.node_selection import Hint
from prinfold.gtm.noise.isotropic import IsotropicNoise
from prinfold.gtm.noise.tangents import tangents
from prinfold.gtm.penalties import ConstantPenalty, Penalty, PriorPenalty
from prinfold.latent import Sphere, circle, grid, line, torus
from prinfold.pps import clamping
from prinfold.pps import model as pps
from prinfold.pps.clamping import Learned, TangentMoments
from prinfold.pps.oriented_model import OrientedParameters
from prinfold.pps.oriented_noise import OrientedNoise
from prinfold.rows.rows import Rows, as_rows

D = 4
SPACES = {
    "line": lambda: line(9),
    "circle": lambda: circle(8),
    "grid": lambda: grid(4, 3),
    "grid3": lambda: grid(2, 3, 2),
    "torus": lambda: torus(4, 4),
    "sphere": lambda: Sphere(14),
}
CLAMPINGS = {
    "across": lambda Q: clamping.unified_covariance(0.3, D, Q),
    "along": lambda Q: clamping.unified_covariance(0.5 + 0.5 * D / Q, D, Q),
    "early": lambda Q: clamping.early(0.4, 1.3),
    "round": lambda Q: clamping.Fixed(1.0, 1.0),
}


class Toy(NamedTuple):
    model: pps.PPSModel
    rows: Rows
    parameters: OrientedParameters

    def statistics(self, crossed: bool = True, **options: Any) -> Any:
        wanted = replace(self.model, noise=replace(self.model.noise, crossed=crossed))
        return gtm.summarize(wanted, self.rows, options.get("parameters", self.parameters))

    def objective(self, parameters: OrientedParameters) -> float:
        after = gtm.GTMState(parameters, self.statistics(False, parameters=parameters))
        return gtm.measure(self.model, after)["objective"] * after.statistics.total


def toy(
    space: str = "grid",
    kind: str = "across",
    penalty: Penalty | None = None,
    per_node: bool = False,
    weighted: bool = False,
    seed: int = 0,
) -> Toy:
    """A surface with random weights, rows scattered about it, and a noise."""
    rng = np.random.default_rng(seed)
    latent = SPACES[space]()
    surface = BasisMap(latent, GaussianBasis(6 if space == "sphere" else 2, 1.0).bind(latent))
    Q = latent.dimension
    weights = rng.standard_normal((len(surface.penalty_mask), D))
    rows = surface.nodes(weights)[rng.integers(latent.n_nodes, size=25)] + 0.4 * rng.standard_normal((25, D))
    weight = rng.integers(1, 4, 25).astype(float) if weighted else None
    noise = OrientedNoise(1e-9, CLAMPINGS[kind](Q), Q)
    parameters = noise.initial(weights, 5.0)
    if per_node:
        along = rng.uniform(0.1, 0.9 * D / Q, latent.n_nodes)
        parameters = OrientedParameters(weights, rng.uniform(2, 9, latent.n_nodes), along, (D - along * Q) / (D - Q))
    model = pps.PPSModel(surface, noise, penalty or ConstantPenalty(0.3), pps.PPS_STEPS["gem"])
    return Toy(model, as_rows(rows, weight=weight, width=latent.n_nodes), parameters)


def covariances(toy: Toy) -> np.ndarray:
    """(K, D, D) by (17), from a QR decomposition of the Jacobian."""
    p, surface = toy.parameters, toy.model.surface
    J = surface.node_jacobian(p.weights)
    K = len(J)
    S = np.broadcast_to(np.asarray(p.along) / p.precision, K)
    B = np.broadcast_to(np.asarray(p.across) / p.precision, K)
    E = np.linalg.qr(J)[0]
    P = E @ np.swapaxes(E, 1, 2)
    return S[:, None, None] * P + B[:, None, None] * (np.eye(D) - P)


def log_joint(toy: Toy) -> np.ndarray:
    """(n, K) log p(t | node)."""
    X, Y = toy.rows.block(slice(None)), toy.model.surface.nodes(toy.parameters.weights)
    pairs = zip(Y, covariances(toy), strict=True)
    return np.stack([multivariate_normal(y, Sigma).logpdf(X) for y, Sigma in pairs], axis=1)


every_space = pytest.mark.parametrize("space", SPACES)
every_kind = pytest.mark.parametrize("kind", CLAMPINGS)


# --------------------------------------------------------------------------------------------- density


@every_space
@every_kind
@pytest.mark.parametrize("per_node", [False, True])
def test_the_density_is_the_mixture_of_full_covariances(space, kind, per_node):
    case = toy(space, kind, per_node=per_node)
    expected = logsumexp(log_joint(case), axis=1) - np.log(case.model.surface.latent.n_nodes)
    assert_allclose(posteriors.log_likelihood(case.model, case.rows, case.parameters), expected, rtol=1e-11, atol=1e-11)


@every_space
def test_the_variance_of_all_columns_together_does_not_depend_on_the_clamping(space):
    for kind in ("across", "along"):
        case = toy(space, kind)
        assert_allclose(np.trace(covariances(case), axis1=1, axis2=2), D / case.parameters.precision, rtol=1e-12)


def test_equal_variances_are_the_isotropic_noise():
    case = toy(kind="round")
    round_model = gtm.GTMModel(case.model.surface, IsotropicNoise(1e-9), case.model.penalty)
    expected = gtm.summarize(round_model, case.rows, case.parameters)
    found = case.statistics()
    assert_allclose(found.mass, expected.mass, rtol=1e-11)
    assert_allclose(found.moment, expected.moment, atol=1e-11)
    assert_allclose(found.square.sum(), expected.square, rtol=1e-11)
    assert_allclose(found.log_likelihood, expected.log_likelihood, rtol=1e-12)
    new = case.model.noise.m_step(case.model.surface, found, case.model.penalty, case.parameters)
    same = round_model.noise.m_step(case.model.surface, expected, case.model.penalty, case.parameters)
    assert_allclose(new.weights, same.weights, atol=1e-10)
    assert_allclose(new.precision, same.precision, rtol=1e-10)


def test_a_direction_in_which_the_map_stands_still_counts_as_across():
    case = toy("grid")
    surface, weights = case.model.surface, case.parameters.weights.copy()
    weights[:] = 0.0
    weights[-3] = [1.0, 0.0, 0.0, 0.0]  # the linear term of the first latent axis alone
    found = tangents(surface, weights)
    assert_allclose(found.rank, 1.0)
    assert_allclose(np.abs(found.frame).sum(axis=0), np.tile([1.0, 0, 0, 0], (12, 1)), atol=1e-12)
    p = replace(case.parameters, weights=weights)
    S, B = p.along / p.precision, p.across / p.precision
    Y, X = surface.nodes(weights), case.rows.block(slice(None))
    terms = [multivariate_normal(y, np.diag([S, B, B, B])).logpdf(X) for y in Y]
    expected = logsumexp(terms, axis=0) - np.log(len(Y))
    assert_allclose(posteriors.log_likelihood(case.model, case.rows, p), expected, rtol=1e-11)


def test_a_direction_in_which_the_map_hardly_moves_counts_as_across():
    case = toy("grid")
    weights = np.zeros_like(case.parameters.weights)
    weights[-3:-1] = [[1.0, 0.0, 0.0, 0.0], [0.0, 1e-5, 0.0, 0.0]]  # the linear terms
    assert_allclose(tangents(case.model.surface, weights).rank, 1.0)
    weights[-2] *= 1e3
    assert_allclose(tangents(case.model.surface, weights).rank, 2.0)


def test_pooled_noise_has_the_mean_of_the_variances():
    along, precision = np.array([0.2, 1.0, 1.4]), np.array([1.0, 4.0, 10.0])
    own = OrientedParameters(np.zeros((1, D)), precision, along, (D - 2 * along) / (D - 2))
    found = own.pooled()
    assert_allclose(1 / found.precision, (1 / precision).mean())
    assert_allclose(found.along / found.precision, (along / precision).mean())
    assert_allclose(found.across / found.precision, (own.across / precision).mean())
    assert_allclose(2 * found.along + (D - 2) * found.across, D)


def test_draws_have_the_covariance_of_their_node():
    case = toy("grid", "across")
    node = np.full(200_000, 5)
    nodes = case.model.noise.at_nodes(case.model.surface, case.parameters)
    rows = nodes.draw(node, np.random.default_rng(1))
    assert_allclose(rows.mean(axis=0), case.model.surface.nodes(case.parameters.weights)[5], atol=0.01)
    assert_allclose(np.cov(rows.T), covariances(case)[5], atol=0.005)


# ------------------------------------------------------------------------------------------ statistics


@every_space
@every_kind
@pytest.mark.parametrize("weighted", [False, True])
def test_statistics_are_the_sums_they_say(space, kind, weighted):
    case = toy(space, kind, weighted=weighted)
    log_weight = log_joint(case)
    R = np.exp(log_weight - logsumexp(log_weight, axis=1, keepdims=True))
    if weighted:
        R *= case.rows.weight[:, None]
    T, Y = case.rows.block(slice(None)), case.model.surface.nodes(case.parameters.weights)
    E = tangents(case.model.surface, case.parameters.weights).frame
    d = T[:, None] - Y
    u = np.einsum("qkd,nkd->nkq", E, d)
    found = case.statistics(crossed=True)
    assert_allclose(found.mass, R.sum(axis=0), rtol=1e-9, atol=1e-12)
    assert_allclose(found.moment, R.T @ T, atol=1e-10)
    assert_allclose(found.square, R.T @ np.square(T).sum(axis=1), rtol=1e-9, atol=1e-12)
    assert_allclose(found.tangential, np.einsum("nk,nkq,nkq->k", R, u, u), rtol=1e-8, atol=1e-11)
    assert_allclose(found.cross, np.einsum("nk,nkd,nkq->kdq", R, d, u), atol=1e-10)
    light = case.statistics(crossed=False)
    assert light.cross is None
    assert_allclose(light.tangential, found.tangential, rtol=1e-8, atol=1e-11)
    assert_allclose(light.log_likelihood, found.log_likelihood, rtol=1e-12)


def test_statistics_form_a_vector_space():
    case = toy()
    table = case.rows.table
    halves = [case._replace(rows=as_rows(part, width=12)).statistics() for part in (table[:10], table[10:])]
    for found, expected in ((halves[0] + halves[1], case.statistics()), (halves[0].scale(2.0), halves[0] + halves[0])):
        for name in ("mass", "moment", "square", "tangential", "cross", "log_likelihood", "total"):
            assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("crossed", [False, True])
def test_moments_of_moved_centres_are_the_sums_over_rows(crossed):
    case = toy("grid", "along")
    log_weight = log_joint(case)
    R = np.exp(log_weight - logsumexp(log_weight, axis=1, keepdims=True))
    surface, old = case.model.surface, case.parameters.weights
    new = old + 0.1 * np.random.default_rng(4).standard_normal(old.shape)
    E = tangents(surface, old).frame
    d = case.rows.block(slice(None))[:, None] - surface.nodes(new)
    found = case.model.noise.moments(surface, case.statistics(crossed), new, old)
    assert_allclose(found.square, np.einsum("nk,nkd,nkd->k", R, d, d), rtol=1e-9)
    u = np.einsum("qkd,nkd->nkq", E, d)
    assert_allclose(found.tangential, np.einsum("nk,nkq,nkq->k", R, u, u), rtol=1e-9)


# --------------------------------------------------------------------------------------------- gradient


@every_space
@every_kind
@pytest.mark.parametrize("penalty", [ConstantPenalty(0.3), PriorPenalty(0.7)], ids=["constant", "prior"])
def test_the_gradient_agrees_with_finite_differences(space, kind, penalty):
    case = toy(space, kind, penalty)
    _assert_gradient(case)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_gradient_agrees_with_finite_differences_where_nodes_have_their_own_noise(weighted):
    _assert_gradient(toy("grid", per_node=True, weighted=weighted))


def _assert_gradient(case: Toy) -> None:
    p, surface = case.parameters, case.model.surface
    nodes = case.model.noise.at_nodes(surface, p)
    slope = pps.weight_gradient(surface, nodes, case.statistics(), case.model.penalty, p)
    rng, h = np.random.default_rng(2), 1e-5
    for _ in range(4):
        way = rng.standard_normal(p.weights.shape)
        up, down = (case.objective(replace(p, weights=p.weights + sign * h * way)) for sign in (1, -1))
        assert_allclose(np.vdot(slope, way), (up - down) / (2 * h), rtol=1e-5, atol=1e-4)


@every_space
@pytest.mark.parametrize("kind", ["across", "along"])
def test_the_metric_is_the_curvature_of_the_divergence_between_models(space, kind):
    """Σ g KL(now ‖ now + hX) → ½h² ⟨X, F X⟩, where the stiffness is the expected one and there is no penalty."""
    case = toy(space, kind)
    p, surface, h = case.parameters, case.model.surface, 1e-4
    nodes = case.model.noise.at_nodes(surface, p)
    mass = np.random.default_rng(3).uniform(0, 2, len(nodes.centers))
    contrast = nodes.inverse_across - nodes.inverse_along
    stiffness = mass * contrast**2 / (nodes.inverse_across * nodes.inverse_along)
    metric = pps.FisherMetric(surface, nodes, mass, stiffness, decay=0.0, n_columns=nodes.centers.shape[1])
    X = np.random.default_rng(5).standard_normal(p.weights.shape)
    here = covariances(case)

    def divergence(step: float) -> float:
        there = case._replace(parameters=replace(p, weights=p.weights + step * X))
        inverse = np.linalg.inv(covariances(there))
        moved = surface.nodes(step * X)
        trace = np.trace(inverse @ here, axis1=1, axis2=2) - D  # determinants are equal
        return float(mass @ (0.5 * trace + 0.5 * np.einsum("kd,kde,ke->k", moved, inverse, moved)))

    expected = (divergence(h) + divergence(-h)) / h**2
    assert_allclose(np.vdot(X, metric.apply(X)), expected, rtol=1e-4)


def test_the_metric_is_symmetric_and_its_preconditioner_solves_the_isotropic_one():
    case = toy("grid", "round")
    nodes = case.model.noise.at_nodes(case.model.surface, case.parameters)
    metric = pps.FisherMetric(case.model.surface, nodes, np.ones(12), np.zeros(12), 0.5, nodes.centers.shape[1])
    A, B = np.random.default_rng(6).standard_normal((2, *case.parameters.weights.shape))
    assert_allclose(np.vdot(A, metric.apply(B)), np.vdot(B, metric.apply(A)), rtol=1e-10)
    assert_allclose(metric.apply(metric.solve_roughly(A)), A, atol=1e-8)


# --------------------------------------------------------------------------------------------- clamping


def random_moments(seed: int, K: int = 7, Q: int = 2) -> TangentMoments:
    rng = np.random.default_rng(seed)
    mass = rng.uniform(0.5, 20, K)
    tangential, normal = mass * rng.gamma(2, 0.3, K), mass * rng.gamma(2, 0.2, K)
    return TangentMoments(mass, np.full(K, float(Q)), tangential + normal, tangential, D)


def expected_log_likelihood(moments: TangentMoments, precision: Any, along: Any, tie: float, Q: int = 2) -> float:
    """Σ_k of the terms of the expected log-likelihood and of the penalty that depend on the noise."""
    K = len(moments.mass)
    beta, alpha = np.broadcast_to(precision, K), np.broadcast_to(along, K)
    S, B = alpha / beta, (D - alpha * Q) / (D - Q) / beta
    normal = moments.square - moments.tangential
    terms = -moments.mass * (Q * np.log(S) + (D - Q) * np.log(B)) - moments.tangential / S - normal / B
    return float(0.5 * terms.sum() - 0.5 * tie * np.mean(beta))


def best_by_search(moments: TangentMoments, tie: float, n_precisions: int, n_alongs: int) -> float:
    def loss(x: np.ndarray) -> float:
        x = np.clip(x, -30, 30)
        return -expected_log_likelihood(moments, np.exp(x[:n_precisions]), 2 * expit(x[n_precisions:]), tie)

    starts = [np.r_[np.zeros(n_precisions), np.full(n_alongs, odds)] for odds in (0.0, -5.0, 5.0)]
    return -min(float(minimize(loss, start, method="BFGS", options={"gtol": 1e-9}).fun) for start in starts)


@given(seed=st.integers(0, 10_000), tie=st.sampled_from([0.0, 0.5, 30.0, 1000.0]))
def test_one_clamping_and_noise_for_all_nodes_are_the_best_there_are(seed, tie):
    moments = random_moments(seed)
    found = clamping.share_both(Learned(D, 2, clamping.share_both), moments, tie, 1e-12, None)
    reached = expected_log_likelihood(moments, found.precision, found.along, tie)
    assert_allclose(reached, best_by_search(moments, tie, 1, 1), rtol=1e-7, atol=1e-7)


@given(seed=st.integers(0, 10_000))
def test_without_a_tie_the_best_noise_is_in_closed_form(seed):
    moments = random_moments(seed)
    V1, V2, N = moments.square.sum(), moments.tangential.sum(), moments.mass.sum()
    found = clamping.share_both(Learned(D, 2, clamping.share_both), moments, 0.0, 1e-12, None)
    assert_allclose(1 / found.precision, V1 / (N * D), rtol=1e-12)
    assert_allclose(found.along, D * V2 / (2 * V1), rtol=1e-12)
    # The bisection that a tie needs finds the same where the tie is nearly nil.
    nearly = clamping.share_both(Learned(D, 2, clamping.share_both), moments, 1e-9, 1e-12, None)
    assert_allclose([nearly.precision, nearly.along], [found.precision, found.along], rtol=1e-7)


@pytest.mark.parametrize("tie", [0.0, 5.0])
@pytest.mark.parametrize("pooling", [clamping.share_neither, clamping.share_noise])
def test_noise_of_each_nodes_own_is_the_best_there_is(monkeypatch, pooling, tie):
    monkeypatch.setattr(clamping, "_PSEUDO_ROWS", 0.0)
    monkeypatch.setattr(clamping, "_ALTERNATIONS", 1000)
    moments = random_moments(1)
    found = pooling(Learned(D, 2, pooling), moments, tie, 1e-12, 1.0)
    reached = expected_log_likelihood(moments, found.precision, found.along, tie)
    n_precisions = len(moments.mass) if pooling is clamping.share_neither else 1
    assert np.size(found.precision) == n_precisions
    assert_allclose(reached, best_by_search(moments, tie, n_precisions, 7), rtol=1e-6, atol=1e-6)


_ODDS = np.linspace(-27, 27, 20_001)
"""Log odds of αQ/D over all that is admissible, close together."""

SCATTERS = st.tuples(st.integers(2, 9), st.integers(1, 8), *(st.floats(-3, 3) for _ in range(3)))
"""Columns, dimensions, and logarithms of the variance along, the variance across and the tie or precision."""


def heights(n_columns: int, Q: int, along: Any, precision: Any, squares: tuple[float, float], tie: float) -> Any:
    """The part of the expected log-likelihood of 100 rows that depends on the noise, for each α."""
    across = (n_columns - along * Q) / (n_columns - Q)
    log_size = Q * np.log(along) + (n_columns - Q) * np.log(across) - n_columns * np.log(precision)
    return -50 * log_size - 0.5 * precision * (squares[0] / along + squares[1] / across + tie)


@given(case=SCATTERS.filter(lambda case: case[1] < case[0]))
@example(case=(7, 4, 1.0, -2.6, 2.8))
def test_of_several_maxima_under_a_strong_penalty_the_highest_is_found(case):
    n_columns, Q, (V2, V3, tie) = *case[:2], 10.0 ** np.array(case[2:])
    counts, squares = (100.0 * Q, 100.0 * (n_columns - Q)), (V2 * Q, V3 * (n_columns - Q))
    learned = Learned(n_columns, Q, clamping.share_both)
    entries = (np.array([each]) for each in (*counts, *squares, tie))
    found = clamping._joint(learned, *entries, 1e-12)
    along = n_columns / Q * expit(_ODDS)
    across = (n_columns - along * Q) / (n_columns - Q)
    precision = sum(counts) / (squares[0] / along + squares[1] / across + tie)
    best = heights(n_columns, Q, along, precision, squares, tie).max()
    assert heights(n_columns, Q, found.along[0], found.precision[0], squares, tie) >= best - 1e-3


@given(case=SCATTERS.filter(lambda case: case[1] < case[0]))
@example(case=(9, 5, 2.4, -2.5, -1.3))
def test_of_several_roots_of_the_cubic_the_best_is_found(case):
    n_columns, Q, (V2, V3, beta) = *case[:2], 10.0 ** np.array(case[2:])
    counts, squares = (100.0 * Q, 100.0 * (n_columns - Q)), (V2 * Q, V3 * (n_columns - Q))
    entries = (np.array([each]) for each in (*counts, *squares))
    found = clamping._cubic(Learned(n_columns, Q, clamping.share_noise), *entries, beta)[0]
    best = heights(n_columns, Q, n_columns / Q * expit(_ODDS), beta, squares, 0.0).max()
    assert heights(n_columns, Q, found, beta, squares, 0.0) >= best - 1e-3


@given(seed=st.integers(0, 10_000), beta=st.floats(0.1, 50))
def test_the_corrected_cubic_has_the_clamping_that_is_found_as_a_root(seed, beta):
    """N Q D α(1−α)(D−αQ) = −α²βQ(D−Q)V₁ + βD(D−2αQ+α²Q)V₂, the misprinted sign of V₁ put right."""
    moments = random_moments(seed, K=1)
    learned, Q = Learned(D, 2, clamping.share_noise), 2
    freedom = (moments.mass * Q, moments.mass * (D - Q))
    a = clamping._cubic(learned, *freedom, moments.tangential, moments.square - moments.tangential, beta)
    V1, V2, N = moments.square, moments.tangential, moments.mass
    left = N * Q * D * a * (1 - a) * (D - a * Q)
    right = -(a**2) * beta * Q * (D - Q) * V1 + beta * D * (D - 2 * a * Q + a**2 * Q) * V2
    assert 0 < a < D / Q
    size = beta * D * D * V2 + a**2 * beta * Q * (D - Q) * V1 + np.abs(left)
    assert (np.abs(left - right) < 1e-9 * size).all()


@pytest.mark.parametrize("kind", ["across", "along", "early"])
@pytest.mark.parametrize("tie", [0.0, 5.0])
def test_the_noise_for_a_given_clamping_is_the_best_there_is(kind, tie):
    moments, fixed = random_moments(2), CLAMPINGS[kind](2)
    found = fixed.update(moments, tie, 1e-12, None)

    def value(beta: float) -> float:
        S, B = fixed.s / beta, fixed.b / beta
        normal = moments.square.sum() - moments.tangential.sum()
        logs = moments.mass.sum() * (2 * np.log(S) + (D - 2) * np.log(B))
        return float(-0.5 * (logs + moments.tangential.sum() / S + normal / B + tie * beta))

    assert value(found.precision) > max(value(1.001 * found.precision), value(0.999 * found.precision))


def test_a_node_without_rows_takes_the_noise_that_is_common():
    moments = random_moments(3)
    empty = moments._replace(**{name: getattr(moments, name).copy() for name in ("mass", "square", "tangential")})
    for name in ("mass", "square", "tangential"):
        getattr(empty, name)[0] = 0.0
    learned = Learned(D, 2, clamping.share_neither)
    own = clamping.share_neither(learned, empty, 0.0, 1e-12, None)
    shared = clamping.share_both(learned, empty, 0.0, 1e-12, None)
    assert_allclose([own.precision[0], own.along[0]], [shared.precision, shared.along], rtol=1e-9)


# ------------------------------------------------------------------------------------------------ steps


def test_a_scoring_step_at_clamping_one_is_the_gtms_m_step():
    case = toy("grid", "round")
    state = pps.PPSState(case.parameters, case.statistics(), Hint())
    found = pps._scoring_step(case.model, state)
    expected = case.model.noise.m_step(case.model.surface, state.statistics, case.model.penalty, case.parameters)
    assert_allclose(found.weights, expected.weights, atol=1e-8)
    assert_allclose(found.precision, expected.precision, rtol=1e-8)


def weights_moved(case: Toy) -> tuple[OrientedParameters, Any]:
    """The GTM's new weights with the noise as it was, and the sums under them."""
    model, now = case.model, case.parameters
    moved = model.noise.with_weights(model.surface, case.statistics(), model.penalty, now)
    return moved, case.statistics(parameters=moved)


@every_space
@every_kind
def test_the_noise_of_a_step_is_the_best_for_the_tangents_of_its_weights(space, kind):
    """No higher expected log-likelihood, from explicit sums: by (33) with the tangents from before, or nearby."""
    case = toy(space, kind)
    model, now = case.model, case.parameters
    moved, _ = weights_moved(case)
    state = gtm.GTMState(now, case.statistics())
    after = pps._weights_then_noise(
        replace(model, steps=pps.PPS_STEPS["gtm"]), case.rows, pps.PPSState(*state)
    ).parameters
    assert_allclose(after.weights, moved.weights)
    joint = log_joint(Toy(model, case.rows, moved))
    R = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))

    def expected(precision: float) -> float:
        trial = replace(moved, precision=precision)
        return float((R * log_joint(Toy(model, case.rows, trial))).sum()) - trial.cost(model.surface, model.penalty)

    mixed = model.noise.m_step(model.surface, case.statistics(), model.penalty, now)
    reached = expected(after.precision)
    slack = 1e-10 * abs(reached)
    assert reached >= expected(mixed.precision) - slack
    assert reached >= max(expected(factor * after.precision) for factor in (0.99, 1.01)) - slack
    assert case.objective(after) >= case.objective(moved) - slack


@pytest.mark.parametrize("penalty", [ConstantPenalty(0.3), PriorPenalty(2.0)])
@pytest.mark.parametrize("space", ["line", "grid", "sphere"])
@pytest.mark.parametrize("pooling", [clamping.share_both, clamping.share_neither, clamping.share_noise])
def test_learning_the_noise_for_weights_as_they_are_never_lowers_the_objective(monkeypatch, space, penalty, pooling):
    """Clampings and noise, of all nodes or of each, where nodes do not borrow rows from each other."""
    monkeypatch.setattr(clamping, "_PSEUDO_ROWS", 0.0)
    case = toy(space, penalty=penalty)
    noise = replace(case.model.noise, clamping=Learned(D, case.model.surface.latent.dimension, pooling))
    model = replace(case.model, noise=noise, steps=pps.PPS_STEPS["gtm"])
    case = Toy(model, case.rows, noise.initial(case.parameters.weights, 5.0))
    moved, sums = weights_moved(case)
    after = noise.with_noise(model.surface, sums, penalty, moved, moved)
    assert case.objective(after) >= case.objective(moved) - 1e-9


def test_a_step_that_does_not_come_back_leaves_the_best_there_was():
    """From a summit of the objective the GTM's steps lead down: the state stays, and says that nothing is left."""
    case = toy("grid", "across", seed=3)
    state = case.model.begin(case.rows, case.parameters)
    for _ in range(200):
        state = case.model.step(case.rows, state, 1.8)
    summit = replace(case.model, steps=pps.PPS_STEPS["gtm"])
    below = pps._weights_then_noise(summit, case.rows, state._replace(settled=False))
    assert case.objective(below.parameters) < case.objective(state.parameters) - 1e-3
    after = summit.step(case.rows, state._replace(settled=False))
    assert after.settled
    assert after.parameters is state.parameters
    assert summit.step(case.rows, after) is after


@every_space
@every_kind
@pytest.mark.parametrize("way", ["gtm", "gem"])
def test_training_never_lowers_the_objective(space, kind, way):
    case = toy(space, kind)
    model = replace(case.model, steps=pps.PPS_STEPS[way])
    state, objective = model.begin(case.rows, case.parameters), []
    for _ in range(60):
        objective.append(gtm.measure(model, state)["objective"])
        state = model.step(case.rows, state, 1.8)
    assert (np.diff(objective) >= -1e-12 * np.abs(objective[1:])).all()
    assert objective[-1] > objective[0] + 0.01


@pytest.mark.parametrize("space", ["line", "grid", "sphere"])
@pytest.mark.parametrize("kind", ["across", "along", "early"])
def test_generalised_em_ends_where_the_gradient_vanishes(space, kind):
    case = toy(space, kind)
    state = case.model.begin(case.rows, case.parameters)
    sizes = []
    for _ in range(200):
        nodes = case.model.noise.at_nodes(case.model.surface, state.parameters)
        slope = pps.weight_gradient(case.model.surface, nodes, state.statistics, case.model.penalty, state.parameters)
        sizes.append(np.linalg.norm(slope))
        state = case.model.step(case.rows, state, 1.8)
    assert min(sizes[-20:]) < 1e-2 * sizes[0]


@pytest.mark.parametrize("share", [1e-12, 1e-6, 1 - 1e-6, 1 - 1e-12])
@pytest.mark.parametrize("way", pps.PPS_STEPS)
def test_clampings_at_either_end_stay_finite(share, way):
    case = toy("grid")
    noise = replace(case.model.noise, clamping=clamping.unified_covariance(share * D / 2, D, 2))
    model = replace(case.model, noise=noise, steps=pps.PPS_STEPS[way])
    state = model.begin(case.rows, noise.initial(case.parameters.weights, 5.0))
    for _ in range(10):
        state = model.step(case.rows, state, 1.8)
    measured = gtm.measure(model, state)
    assert np.isfinite(list(measured.values())).all()
    assert np.isfinite(state.parameters.weights).all()
    assert np.isfinite(posteriors.posterior_mean(model, case.rows, state.parameters)).all()
