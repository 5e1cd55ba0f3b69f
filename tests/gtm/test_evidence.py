"""The evidence against its definition: brute force at toy size, finite differences, integrals that are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from prinfold import GTM, HarmonicBasis, datasets
from prinfold.exceptions import InvalidParameterError
from prinfold.gtm import evidence
from prinfold.gtm import model as gtm
from prinfold.gtm import posterior as posteriors
from prinfold.gtm.evidence_training import EvidenceModel, EvidencePenalty, EvidenceState
from prinfold.gtm.noise.protocol import Capabilities, Parameters
from prinfold.gtm.penalties import ConstantPenalty, PriorPenalty
from prinfold.rows.rows import as_rows

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")

SPACES: dict[str, dict[str, Any]] = {
    "grid": {"nodes": 5, "basis": 3},
    "biased": {"nodes": 5, "basis": 3, "penalize_bias": True},
    "line": {"n_components": 1, "nodes": 9, "basis": 4, "latent": "line"},
    "circle": {"n_components": 1, "nodes": 9, "latent": "circle"},
    "harmonics": {"n_components": 1, "nodes": 9, "latent": "circle", "basis": HarmonicBasis(2)},
    "torus": {"nodes": 5, "basis": 3, "latent": "torus"},
    "sphere": {"nodes": 20, "basis": 8, "latent": "sphere"},
    "fewer rows than nodes": {"nodes": 9, "basis": 3},
}


def bent(n: int = 25, n_columns: int = 3, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    u, v = rng.uniform(-1, 1, (2, n))
    columns = np.stack([2 * u, v, u**2, u * v, np.sin(2 * v)], axis=1)[:, :n_columns]
    return columns + 0.2 * rng.standard_normal((n, n_columns)) + 3.0


def trained(space: str, X: np.ndarray, weight: np.ndarray | None = None, **more: Any) -> tuple[Any, Any, Parameters]:
    """A model away from its optimum, its rows and its parameters."""
    model = GTM(max_iter=4, tol=0, **{**SPACES[space], **more}).fit(X, sample_weight=weight)
    return model._model, as_rows(X, model.offset_, weight), model._parameters()


def brute_force(model: Any, rows: Any, parameters: Parameters) -> np.ndarray:
    """(A.9) written out, in one array over rows, nodes, columns and basis functions: the twin of the blockwise sums."""
    T, Phi, beta = rows.block(slice(None)), model.surface.node_features, parameters.level
    w = np.ones(len(T)) if rows.weight is None else rows.weight
    R = posteriors.responsibilities(model, rows, parameters)
    gap = T[:, None, :] - (Phi @ parameters.weights)[None]
    eta = (beta * gap[:, :, :, None] * Phi[None, :, None, :]).reshape(len(T), len(Phi), -1)
    mean = np.einsum("nk,nki->ni", R, eta)
    second = np.einsum("n,nk,nki,nkj->ij", w, R, eta, eta) - np.einsum("n,ni,nj->ij", w, mean, mean)
    return np.kron(np.eye(T.shape[1]), beta * Phi.T @ ((w @ R)[:, None] * Phi)) - second


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_exact_hessian_is_its_definition(space: str, weighted: bool) -> None:
    X = bent()
    weight = np.random.default_rng(1).uniform(0.2, 3, len(X)) if weighted else None
    model, rows, parameters = trained(space, X, weight)
    expected = brute_force(model, rows, parameters)
    found = evidence.exact_hessian(model, rows, parameters)
    np.testing.assert_allclose(found, expected, atol=1e-11 * np.abs(expected).max())
    np.testing.assert_array_equal(found, found.T)


@settings(max_examples=15, deadline=None)
@given(n=st.integers(2, 40), n_columns=st.integers(1, 5), seed=st.integers(0, 99))
def test_the_exact_hessian_is_its_definition_for_any_table(n: int, n_columns: int, seed: int) -> None:
    model, rows, parameters = trained("line", bent(n, n_columns, seed))
    expected = brute_force(model, rows, parameters)
    found = evidence.exact_hessian(model, rows, parameters)
    np.testing.assert_allclose(found, expected, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("space", ["grid", "circle", "sphere"])
def test_the_exact_hessian_is_the_derivative_of_the_gradient(space: str) -> None:
    X = bent(15)
    model, rows, parameters = trained(space, X)
    shape = parameters.weights.T.shape  # column after column

    def gradient(flat: np.ndarray) -> np.ndarray:
        """−∂ ln p(T | W)/∂W by (A.4)."""
        there = Parameters(flat.reshape(shape).T, parameters.level)
        R, Phi = posteriors.responsibilities(model, rows, there), model.surface.node_features
        moment, mass = R.T @ rows.block(slice(None)), R.sum(axis=0)
        return -parameters.level * (Phi.T @ (moment - mass[:, None] * (Phi @ there.weights))).T.ravel()

    here, step = parameters.weights.T.ravel(), 1e-5
    numeric = np.stack(
        [(gradient(here + e) - gradient(here - e)) / (2 * step) for e in step * np.eye(len(here))], axis=1
    )
    scale = np.abs(numeric).max()
    np.testing.assert_allclose(evidence.exact_hessian(model, rows, parameters), numeric, atol=1e-7 * scale)

    def cost(flat: np.ndarray) -> float:
        there = Parameters(flat.reshape(shape).T, parameters.level)
        return -float(posteriors.log_likelihood(model, rows, there).sum())

    np.testing.assert_allclose(gradient(here), approx_fprime(here, cost, 1e-7), atol=1e-5 * scale)


def test_the_approximate_hessian_is_that_of_given_responsibilities() -> None:
    model, rows, parameters = trained("grid", bent())
    R, Phi, beta = posteriors.responsibilities(model, rows, parameters), model.surface.node_features, parameters.level
    expected = beta * Phi.T @ np.diag(R.sum(axis=0)) @ Phi
    found = evidence.approximate_block(model.surface, R.sum(axis=0), beta)
    np.testing.assert_allclose(found, expected, atol=1e-12 * expected.max())


def test_both_hessians_agree_where_every_row_belongs_to_one_node() -> None:
    """Little noise on nodes that are far apart: the responsibilities are given, as the approximation has it."""
    nodes = np.array([[-1.0], [0.0], [1.0]])
    X = np.repeat(np.array([[0.0, 0.0], [5.0, 1.0], [10.0, -1.0]]), 10, axis=0)
    X += 0.05 * np.random.default_rng(0).standard_normal(X.shape)
    model = GTM(1, nodes=nodes, basis=2, regularization=0.01, max_iter=50).fit(X)
    rows, parameters = as_rows(X, model.offset_), model._parameters()
    exact = evidence.exact_hessian(model._model, rows, parameters)
    mass = posteriors.responsibilities(model._model, rows, parameters).sum(axis=0)
    block = evidence.approximate_block(model._model.surface, mass, parameters.level)
    np.testing.assert_allclose(exact, np.kron(np.eye(2), block), atol=1e-9 * block.max())


def test_blocks_of_rows_add_up_to_the_whole() -> None:
    X = bent(1500, 5)
    model, rows, parameters = trained("grid", X, nodes=30, basis=4)
    assert len(as_rows(X, width=30 * 30).slices) == 3
    parts = [as_rows(X[part], rows.offset) for part in (slice(0, 150), slice(150, 700), slice(700, 1500))]
    total = sum(evidence.exact_hessian(model, part, parameters) for part in parts)
    whole = evidence.exact_hessian(model, rows, parameters)
    np.testing.assert_allclose(whole, total, atol=1e-11 * np.abs(whole).max())


def test_repeats_are_whole_weights() -> None:
    X = bent(20)
    counts = np.arange(20) % 3 + 1
    model, rows, parameters = trained("grid", X, counts.astype(float))
    repeated = as_rows(np.repeat(X, counts, axis=0), rows.offset)
    weighted = evidence.exact_hessian(model, rows, parameters)
    np.testing.assert_allclose(
        weighted, evidence.exact_hessian(model, repeated, parameters), atol=1e-12 * np.abs(weighted).max()
    )


def test_single_precision_is_computed_in_double() -> None:
    X = bent(60).astype(np.float32)
    model, rows, parameters = trained("grid", X)
    double = as_rows(X.astype(np.float64), rows.offset)
    expected = evidence.exact_hessian(model, double, parameters)
    found = evidence.exact_hessian(model, rows, parameters)
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


def test_fifty_columns_and_thirty_functions() -> None:
    """A matrix of 1500 × 1500, of which a few entries are held to the definition."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 2)) @ rng.standard_normal((2, 50)) + 0.3 * rng.standard_normal((120, 50))
    model, rows, parameters = trained("grid", X, nodes=12, basis=(9, 3))
    Phi, beta, T = model.surface.node_features, parameters.level, rows.block(slice(None))
    found = evidence.exact_hessian(model, rows, parameters)
    assert found.shape == (1500, 1500)
    R, Y = posteriors.responsibilities(model, rows, parameters), Phi @ parameters.weights
    for j, q in ((0, 0), (3, 41), (49, 49), (49, 2)):
        e, f = (T[:, [c]] - Y[:, c] for c in (j, q))
        second = Phi.T @ (np.einsum("nk,nk,nk->k", R, e, f)[:, None] * Phi) - ((R * e) @ Phi).T @ ((R * f) @ Phi)
        block = (j == q) * beta * Phi.T @ (R.sum(axis=0)[:, None] * Phi) - beta**2 * second
        M = len(block)
        np.testing.assert_allclose(
            found[j * M : (j + 1) * M, q * M : (q + 1) * M], block, atol=1e-10 * np.abs(found).max()
        )


# ---------------------------------------------------------------------------------- cells of their own precision

CELLS: dict[str, dict[str, Any]] = {
    "columns": {"noise": "diagonal"},
    "gaps": {"gaps": True},
    "errors": {"errors": True},
    "all": {"noise": "diagonal", "gaps": True, "errors": True},
}


def with_cells(kind: str) -> tuple[GTM, np.ndarray, np.ndarray | None, np.ndarray]:
    """A fitted model, its rows, their errors and weights."""
    how, rng, X = dict(CELLS[kind]), np.random.default_rng(4), bent(30) * [1.0, 3.0, 0.5]
    if how.pop("gaps", False):
        X[rng.uniform(size=X.shape) < 0.2] = np.nan
        X[0] = 3.0  # seen in full
    errors = rng.uniform(0.05, 0.6, X.shape) if how.pop("errors", False) else None
    weight = rng.uniform(0.5, 2.0, len(X))
    options = {"nodes": 4, "basis": 2, "max_iter": 4, "tol": 0, **how}
    return GTM(**options).fit(X, sample_weight=weight, errors=errors), X, errors, weight


@pytest.mark.parametrize("kind", CELLS)
def test_the_exact_hessian_of_cells_is_the_second_derivative(kind: str) -> None:
    model, X, errors, weight = with_cells(kind)
    rows = as_rows(X, model.offset_, weight, gaps=bool(np.isnan(X).any()), errors=errors)
    inner, parameters = model._model_for(rows, model._model), model._parameters()
    shape, Phi = parameters.weights.T.shape, inner.surface.node_features
    variance = np.broadcast_to(1.0 / parameters.precision, 3) + (0.0 if errors is None else errors**2)
    p, T = np.where(np.isnan(X), 0.0, 1.0 / variance), np.nan_to_num(X - model.offset_)

    def gradient(flat: np.ndarray) -> np.ndarray:
        """−∂ ln p(T | W)/∂W, with log densities written out."""
        gap = T[:, None, :] - (Phi @ flat.reshape(shape).T)[None]
        log = -0.5 * np.einsum("nd,nkd->nk", p, gap**2)
        R = np.exp(log - log.max(axis=1, keepdims=True))
        R *= (weight / R.sum(axis=1))[:, None]
        return -np.einsum("nk,nd,nkd,km->dm", R, p, gap, Phi).ravel()

    here, step = parameters.weights.T.ravel(), 1e-5
    numeric = np.stack(
        [(gradient(here + e) - gradient(here - e)) / (2 * step) for e in step * np.eye(len(here))], axis=1
    )
    found = evidence.exact_hessian(inner, rows, parameters)
    np.testing.assert_allclose(found, numeric, atol=1e-7 * np.abs(numeric).max())


@pytest.mark.parametrize("kind", CELLS)
def test_the_approximate_curvature_of_cells_is_that_of_its_blocks(kind: str) -> None:
    model, X, errors, weight = with_cells(kind)
    rows = as_rows(X, model.offset_, weight, gaps=bool(np.isnan(X).any()), errors=errors)
    inner, parameters = model._model_for(rows, model._model), model._parameters()
    Phi, R = inner.surface.node_features, weight[:, None] * posteriors.responsibilities(inner, rows, parameters)
    beta = np.broadcast_to(parameters.precision, 3)
    variance = 1.0 / beta + (0.0 if errors is None else errors**2)
    masses = R.T @ np.where(np.isnan(X), 0.0, 1.0 / variance)
    alphas = 0.1 * beta  # the default penalty, of every column by its own noise
    M = np.diag(inner.surface.penalty_mask)
    full = [Phi.T @ (masses[:, [d]] * Phi) + alphas[d] * M for d in range(3)]
    determinant = sum(np.linalg.slogdet(block)[1] for block in full)
    held = int(M.sum())
    size = alphas @ inner.surface.column_roughness(parameters.weights)
    total = weight @ posteriors.log_likelihood(inner, rows, parameters)
    expected = total - 0.5 * size - 0.5 * determinant + 0.5 * held * np.log(alphas).sum()
    assert model.log_evidence(X, sample_weight=weight, errors=errors) == pytest.approx(expected, rel=1e-8)
    trace = sum(np.trace((b - a * M) @ np.linalg.inv(b)) for a, b in zip(alphas, full, strict=True))
    assert model.effective_weights(X, sample_weight=weight, errors=errors) == pytest.approx(trace, rel=1e-8)


def test_cells_without_gaps_or_errors_are_rows() -> None:
    X = bent()
    model, rows, parameters = trained("grid", X)
    cells = GTM._model_for(as_rows(X, gaps=True), model)
    same = as_rows(X, rows.offset, gaps=True)
    plain, found = (evidence.exact_hessian(*each, parameters) for each in ((model, rows), (cells, same)))
    np.testing.assert_allclose(found, plain, atol=1e-10 * np.abs(plain).max())
    for find in evidence.HESSIANS.values():
        one, other = find(model, rows, parameters), find(cells, same, parameters)
        assert one.log_determinant(0.7) == pytest.approx(other.log_determinant(0.7), rel=1e-8)
        assert one.effective(0.7) == pytest.approx(other.effective(0.7), rel=1e-8)


def test_units_of_columns_change_nothing_of_a_diagonal_choice() -> None:
    """Rows in other units have the same evidence but for the change of volume, of all values but the free weights."""
    X, units = bent(60), np.array([1.0, 10.0, 0.01])
    gain = []
    for regularization in (0.05, 0.5):
        one, other = (
            GTM(nodes=6, basis=3, noise="diagonal", regularization=regularization, max_iter=30, tol=0).fit(s * X)
            for s in (np.ones(3), units)
        )
        for hessian in ("approximate", "exact"):
            shift = other.log_evidence(units * X, hessian) - one.log_evidence(X, hessian)
            assert shift == pytest.approx(-59 * np.log(units).sum(), rel=1e-6)
        gain.append(one.log_evidence(X))
    assert gain[0] != gain[1]


# ------------------------------------------------------------------------------------- what follows from them


def definite(n: int, seed: int = 0) -> np.ndarray:
    A = np.random.default_rng(seed).standard_normal((n, n))
    return A @ A.T + 0.1 * np.eye(n)


@pytest.mark.parametrize("free", [(), (4,), (0, 3)])
def test_determinant_and_gamma_with_free_weights(free: tuple[int, ...]) -> None:
    H, mask, alpha = definite(5), np.ones(5), 0.7
    mask[list(free)] = 0
    full = H + alpha * np.diag(mask)
    found = evidence.curvature(H, mask, copies=3)
    assert found.n_penalized == 3 * (5 - len(free))
    assert found.log_determinant(alpha) == pytest.approx(3 * np.linalg.slogdet(full)[1])
    assert found.effective(alpha) == pytest.approx(3 * np.trace(H @ np.linalg.inv(full)))
    assert found.determined(alpha) == pytest.approx(found.effective(alpha) - 3 * len(free))


def test_directions_that_bend_the_wrong_way_count_as_flat() -> None:
    H = np.diag([2.0, 0.0, -5.0])
    found = evidence.curvature(H, np.ones(3))
    assert found.log_determinant(0.5) == pytest.approx(np.log(2.5) + 2 * np.log(0.5))
    assert found.determined(0.5) == pytest.approx(2.0 / 2.5)
    # So that a direction about which nothing is known neither adds to the evidence nor takes from it.
    plain = evidence.log_evidence(1.0, 0.5, 2.0, evidence.curvature(H[:1, :1], np.ones(1)))
    assert evidence.log_evidence(1.0, 0.5, 2.0, found) == pytest.approx(plain)


def test_a_free_weight_that_nothing_determines_leaves_a_finite_number() -> None:
    found = evidence.curvature(np.diag([2.0, 0.0]), np.array([1.0, 0.0]))
    assert np.isfinite(evidence.log_evidence(0.0, 1.0, 1.0, found))


def test_the_evidence_of_a_linear_model_is_its_integral() -> None:
    """One node: the GTM is then a Gaussian whose mean has a Gaussian prior, and Laplace's method is exact."""
    X = np.random.default_rng(2).standard_normal((12, 2)) + 1.0
    alpha, beta = 0.8, 1.7
    model = GTM(1, nodes=np.zeros((1, 1)), basis=1, prior_precision=alpha, penalize_bias=True, tol=0, max_iter=1).fit(X)
    surface = model._model.surface
    rows, phi = as_rows(X), surface.node_features[0]  # about the origin, so that the weights are not nil
    weights = surface.solve(
        np.array([12.0]), rows.block(slice(None)).sum(axis=0)[None], alpha / beta, np.zeros((len(phi), 2))
    )
    parameters = Parameters(weights, beta)
    covariance = np.eye(12) / beta + (phi @ phi / alpha) * np.ones((12, 12))
    T = rows.block(slice(None))
    expected = sum(
        -0.5 * (t @ np.linalg.solve(covariance, t) + np.linalg.slogdet(2 * np.pi * covariance)[1]) for t in T.T
    )
    log_likelihood = float(posteriors.log_likelihood(model._model, rows, parameters).sum())
    for name, find in evidence.HESSIANS.items():
        found = evidence.log_evidence(
            log_likelihood, alpha, surface.roughness(weights), find(model._model, rows, parameters)
        )
        assert found == pytest.approx(expected, rel=1e-9), name


# -------------------------------------------------------------------------------------------- α and β online


def at_rest(penalize_bias: bool) -> tuple[EvidenceModel, Any, EvidenceState]:
    X = datasets.make_thesis_surface(100, rng=0).X
    plain = GTM(nodes=8, basis=3, penalize_bias=penalize_bias, max_iter=30).fit(X)
    model = EvidenceModel(plain._model.surface, plain._model.noise, PriorPenalty(1.0))
    rows = as_rows(X, plain.offset_)
    state = model.begin(rows, plain._parameters())
    for _ in range(3000):
        state = model.step(rows, state)
    return model, rows, state


@pytest.mark.parametrize("penalize_bias", [False, True])
def test_training_rests_where_the_evidence_is_stationary(penalize_bias: bool) -> None:
    """In α and β with the weights and responsibilities held, which is what (5.19) to (5.24) differentiate."""
    model, _, state = at_rest(penalize_bias)
    mass, sums = state.statistics.mass, state.statistics
    weights, beta, alpha = state.parameters.weights, state.parameters.level, state.prior_precision
    Y, mask = model.surface.nodes(weights), model.surface.penalty_mask
    error = mass @ (Y**2).sum(axis=1) - 2 * np.vdot(Y, sums.moment) + sums.square

    def evidence_at(log_alpha: float, log_beta: float) -> float:
        a, b = np.exp(log_alpha), np.exp(log_beta)
        bent = evidence.curvature(evidence.approximate_block(model.surface, mass, b), mask, 3)
        expected = 0.5 * sums.total * 3 * log_beta - 0.5 * b * error  # of the complete data, as (3.12) has it
        return evidence.log_evidence(expected, a, model.surface.roughness(weights), bent)

    here, step = np.log([alpha, beta]), 1e-4
    for axis in np.eye(2):
        slope = (evidence_at(*(here + step * axis)) - evidence_at(*(here - step * axis))) / (2 * step)
        assert abs(slope) < 1e-3
        for away in (-0.3, 0.3):
            assert evidence_at(*(here + away * axis)) < evidence_at(*here)


def test_the_weights_rest_at_their_mode() -> None:
    model, rows, state = at_rest(False)
    R, Phi = posteriors.responsibilities(model, rows, state.parameters), model.surface.node_features
    moment, mass = R.T @ rows.block(slice(None)), R.sum(axis=0)
    slope = state.parameters.level * Phi.T @ (moment - mass[:, None] * (Phi @ state.parameters.weights))
    held = state.prior_precision * model.surface.penalty_mask[:, None] * state.parameters.weights
    np.testing.assert_allclose(slope, held, atol=1e-3 * np.abs(held).max())


def test_with_noise_of_each_column_it_rests_where_the_evidence_is_stationary() -> None:
    """In λ and every β_d, the prior of a column being λβ_d."""
    X = datasets.make_thesis_surface(64, rng=0).X * [1.0, 10.0, 0.1]
    plain = GTM(nodes=6, basis=2, noise="diagonal", max_iter=30, tol=0).fit(X)
    model = EvidenceModel(plain._model.surface, plain._model.noise, ConstantPenalty(0.1))
    rows = as_rows(X, plain.offset_)
    state = model.begin(rows, plain._parameters())
    for _ in range(1000):
        state = model.step(rows, state)
    sums, weights, mask = state.statistics, state.parameters.weights, model.surface.penalty_mask
    Y, mass = model.surface.nodes(weights), state.statistics.mass
    error = mass @ Y**2 - 2 * np.einsum("kd,kd->d", Y, sums.moment) + sums.square

    def evidence_at(log_strength: float, *log_beta: float) -> float:
        betas, total = np.exp(log_beta), 0.0
        for d, beta in enumerate(betas):
            alpha = np.exp(log_strength) * beta
            bent = evidence.curvature(evidence.approximate_block(model.surface, mass, beta), mask)
            expected = 0.5 * sums.total * np.log(beta) - 0.5 * beta * error[d]
            total += evidence.log_evidence(expected, alpha, model.surface.column_roughness(weights)[d], bent)
        return total

    here = np.log([state.prior_precision / state.parameters.level, *state.parameters.precision])
    for axis in np.eye(4):
        slope = (evidence_at(*(here + 1e-4 * axis)) - evidence_at(*(here - 1e-4 * axis))) / 2e-4
        assert abs(slope) < 1e-3
        for away in (-0.3, 0.3):
            assert evidence_at(*(here + away * axis)) < evidence_at(*here)


def test_units_of_columns_change_nothing_of_what_is_found() -> None:
    X, units = bent(60), np.array([1.0, 100.0, 0.01])
    one, other = (
        GTM(nodes=6, basis=3, noise="diagonal", prior_precision="evidence", max_iter=60, tol=0).fit(s * X)
        for s in (np.ones(3), units)
    )
    variances = [model.noise_parameters_["variances"] for model in (one, other)]
    np.testing.assert_allclose(variances[1], variances[0] * units**2, rtol=1e-6)
    strengths = [model.prior_precision_ * model.noise_variance_ for model in (one, other)]
    assert strengths[1] == pytest.approx(strengths[0], rel=1e-6)
    assert one.history_["objective"][-1] == pytest.approx(one.log_evidence(X) / 60, rel=1e-9)


def test_more_weights_than_values_never_turn_the_noise_negative() -> None:
    penalty = EvidencePenalty(1.0, effective=50.0, least=2.0)
    assert penalty.precision(40.0, 1.0, 0.0) == 2.0
    assert penalty.precision(90.0, 1.0, 0.0) == 40.0
    assert penalty.precision(90.0, 0.0, 0.0) == np.inf


def test_alpha_moves_by_a_factor_at_most_and_stops_at_the_cap() -> None:
    plain = GTM(nodes=6, basis=3, max_iter=2, tol=0).fit(bent())
    model = EvidenceModel(plain._model.surface, plain._model.noise, PriorPenalty(1.0))
    state = model.begin(as_rows(bent(), plain.offset_), plain._parameters())
    still = state._replace(parameters=Parameters(np.zeros_like(plain.weights_), 1.0))
    assert model._estimate_prior(still) == pytest.approx(10 * state.prior_precision)
    largest = state.bent.eigenvalues.max()
    assert model._estimate_prior(still._replace(prior_precision=1e9 * largest)) == pytest.approx(1e3 * largest)


def test_noise_that_is_not_independent_is_refused() -> None:
    class Other:
        floor, capabilities = 1.0, Capabilities()

    plain = GTM(nodes=6, basis=3, max_iter=2, tol=0).fit(bent())._model
    with pytest.raises(InvalidParameterError, match="Gaussian noise that is independent from cell to cell, got Other"):
        evidence.refuse_dependent_cells(gtm.GTMModel(plain.surface, Other(), plain.penalty))  # type: ignore[arg-type]
    for noise in ("student", "aligned"):
        with pytest.raises(InvalidParameterError, match="choose by='held-out'"):
            GTM(prior_precision="evidence", noise=noise).fit(bent())
        with pytest.raises(InvalidParameterError, match="choose by='held-out'"):
            GTM(noise=noise, nodes=4, basis=2).fit(bent()).log_evidence(bent())


def test_gaps_at_random_leave_prior_and_noise_where_they_were() -> None:
    X = datasets.make_thesis_surface(400, rng=0).X
    holes = np.where(np.random.default_rng(0).uniform(size=X.shape) < 0.1, np.nan, X)
    whole, gappy = (GTM(nodes=12, basis=4, prior_precision="evidence").fit(each) for each in (X, holes))
    assert gappy.prior_precision_ == pytest.approx(whole.prior_precision_, rel=0.2)
    assert gappy.noise_variance_ == pytest.approx(whole.noise_variance_, rel=0.2)
    assert gappy.history_["objective"][-1] == pytest.approx(gappy.log_evidence(holes) / 400, rel=1e-9)
