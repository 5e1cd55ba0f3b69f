"""The GTM against its definitions at toy size: explicit sums over nodes, explicit maximisation, finite differences.

Nothing here uses the library's own E- or M-step to check itself: densities come from
``scipy.stats.multivariate_normal``, maxima from ``scipy.optimize``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from prinfold import GTM, GaussianBasis
from prinfold.gtm import lattice_refinement as refinement
from prinfold.gtm import model as gtm
from prinfold.gtm.lattice_refinement import refinement_of
from prinfold.latent import Points, Sphere, circle, cylinder, grid, line, torus
from prinfold.rows.rows import as_rows

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")

SPACES = {
    "line": lambda: line(9),
    "grid": lambda: grid(4, 3),
    "circle": lambda: circle(8),
    "cylinder": lambda: cylinder(5, 3),
    "torus": lambda: torus(4, 4),
    "sphere": lambda: Sphere(12),
    "points": lambda: Points(np.random.default_rng(3).uniform(-1, 1, (11, 2))),
}
PENALTIES = [
    {"regularization": 0.3},
    {"regularization": 0.3, "penalize_bias": True},
    {"prior_precision": 0.7},
    {"prior_precision": 0.7, "penalize_bias": True},
]


def toy(n: int = 23, D: int = 3, seed: int = 0) -> np.ndarray:
    """A few rows near a bent sheet, away from the origin."""
    rng = np.random.default_rng(seed)
    u, v = rng.uniform(-1, 1, (2, n))
    columns = [u, v, np.sin(2 * u) + 0.5 * v**2, u * v][:D]
    return np.stack(columns, axis=1) + 0.1 * rng.normal(size=(n, D)) + np.arange(1, D + 1)


def fitted(X: np.ndarray, max_iter: int, space: str = "grid", sample_weight: Any = None, **options: Any) -> GTM:
    latent = SPACES[space]()
    n_basis = {"sphere": 6}.get(space, 3)
    # A given basis object carries its own setting for the bias.
    basis = GaussianBasis(n_basis, 1.0, penalize_bias=options.pop("penalize_bias", False))
    model = GTM(
        latent.dimension,
        nodes=latent,
        basis=basis,
        init="random",
        random_state=5,
        tol=0,
        max_iter=max_iter,
        **{"relaxation": 1.0, **options},  # the oracles are of plain EM
    )
    return model.fit(X, sample_weight=sample_weight)


class Definition:
    """The model written out: everything below follows from Φ, W, β and the rows."""

    def __init__(
        self, model: GTM, X: np.ndarray, weight: np.ndarray | None = None, nodes: np.ndarray | None = None
    ) -> None:
        bound = model.basis_.bind(model.latent_)
        self.nodes, self.T = model.latent_.nodes if nodes is None else nodes, X - model.offset_
        self.Phi, self.mask = bound.features(self.nodes), bound.penalized.astype(float)
        self.weight = np.ones(len(X)) if weight is None else weight
        self.penalty = (model.regularization, model.prior_precision)

    def log_joint(self, W: np.ndarray, beta: float) -> np.ndarray:
        """(n, K) log of p(t | node) / K, one call of scipy's density for each node."""
        K, D = len(self.Phi), self.T.shape[1]
        columns = [multivariate_normal(y, np.eye(D) / beta).logpdf(self.T) for y in self.Phi @ W]
        return np.stack(columns, axis=1) - np.log(K)

    def log_likelihood(self, W: np.ndarray, beta: float) -> np.ndarray:
        return logsumexp(self.log_joint(W, beta), axis=1)

    def responsibilities(self, W: np.ndarray, beta: float) -> np.ndarray:
        joint = np.exp(self.log_joint(W, beta))
        return joint / joint.sum(axis=1, keepdims=True)

    def cost(self, W: np.ndarray, beta: float) -> float:
        square = float(self.mask @ (W**2).sum(axis=1))
        constant, prior = self.penalty
        return 0.5 * prior * square if prior is not None else 0.5 * constant * beta * square

    def objective(self, W: np.ndarray, beta: float) -> float:
        return float(self.weight @ self.log_likelihood(W, beta)) - self.cost(W, beta)

    def expected(self, R: np.ndarray, W: np.ndarray, beta: float) -> float:
        """Expected penalised complete-data log-likelihood under responsibilities R, up to a constant."""
        return float((self.weight[:, None] * R * self.log_joint(W, beta)).sum()) - self.cost(W, beta)


def parameters(model: GTM) -> tuple[np.ndarray, float]:
    return model.weights_, 1.0 / model.noise_variance_


def points(model: GTM) -> np.ndarray:
    """Where the posterior of a row is weighed: the nodes, or the points of their cells where these are wide."""
    refined = refinement_of(model._model, model._parameters())
    return model.latent_.nodes if refined is None else refined.fine.latent.nodes


# ------------------------------------------------------------------------------------- density and posterior


@pytest.mark.parametrize("space", SPACES)
def test_log_likelihood_is_the_log_of_a_sum_over_nodes(space: str) -> None:
    X = toy()
    model = fitted(X, 4, space, regularization=0.1)
    expected = Definition(model, X).log_likelihood(*parameters(model))
    np.testing.assert_allclose(model.score_samples(X), expected, rtol=1e-10)
    np.testing.assert_allclose(model.score(X), expected.mean(), rtol=1e-12)
    np.testing.assert_allclose(model.history_["log_likelihood"][-1], expected.mean(), rtol=1e-10)


def test_the_density_integrates_to_one() -> None:
    X = toy(D=2)
    model = fitted(X, 6, regularization=0.1)
    pad = 6 * np.sqrt(model.noise_variance_)
    centers = model.inverse_transform(model.latent_.nodes)
    axes = [np.linspace(a - pad, b + pad, 300) for a, b in zip(centers.min(0), centers.max(0), strict=True)]
    cells = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    area = np.prod([axis[1] - axis[0] for axis in axes])
    assert np.exp(model.score_samples(cells)).sum() * area == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("space", SPACES)
def test_responsibilities_are_bayes_rule(space: str) -> None:
    X = toy()
    model = fitted(X, 4, space, regularization=0.1)
    expected = Definition(model, X).responsibilities(*parameters(model))
    np.testing.assert_allclose(model.responsibilities(X), expected, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("space", ["line", "grid", "points"])
def test_posterior_moments_are_sums_over_points(space: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refinement, "_CELLS_WITHIN", 10.0)  # all cells
    X = toy()
    model = fitted(X, 4, space, regularization=0.1)
    definition = Definition(model, X, nodes=points(model))
    R, nodes = definition.responsibilities(*parameters(model)), definition.nodes
    mean = np.stack([sum(r * z for r, z in zip(row, nodes, strict=True)) for row in R])
    outer = [[np.outer(z - m, z - m) for z in nodes] for m in mean]
    spread = np.stack([sum(r * o for r, o in zip(*pair, strict=True)) for pair in zip(R, outer, strict=True)])
    np.testing.assert_allclose(model.transform(X), mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.posterior_covariance(X), spread, rtol=1e-8, atol=1e-12)
    np.testing.assert_array_equal(model.posterior_mode(X), nodes[R.argmax(axis=1)])
    distance = np.linalg.norm(mean - nodes[R.argmax(axis=1)], axis=1) / model.latent_.spacing
    np.testing.assert_allclose(model.mode_distance(X), distance, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("space", ["circle", "torus", "cylinder", "sphere"])
def test_posterior_mean_on_closed_spaces_is_the_nearest_point_to_the_extrinsic_mean(
    space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refinement, "_CELLS_WITHIN", 10.0)  # all cells
    X = toy()
    model = fitted(X, 6, space, regularization=0.1)
    places = points(model)
    R = Definition(model, X, nodes=places).responsibilities(*parameters(model))
    extrinsic = R @ model.latent_.embed(places)

    def distance(Z: np.ndarray) -> np.ndarray:
        return np.linalg.norm(model.latent_.embed(Z) - extrinsic, axis=1)

    best = distance(model.transform(X))
    rng, Z = np.random.default_rng(0), model.transform(X)
    for scale in np.geomspace(1e-3, 1, 100):
        other = model.latent_.domain.retract(Z + rng.normal(scale=scale, size=Z.shape))
        assert (distance(other) >= best - 1e-9).all()


def test_one_far_row_has_a_finite_density_and_a_posterior() -> None:
    X = toy()
    model = fitted(X, 4, regularization=0.1)
    far = X[:1] + 1e4
    centers = model.inverse_transform(model.latent_.nodes)
    # −½β‖t − y‖² of the nearest node alone, to which the others add nothing at this distance but a count.
    exponent = -((far - centers) ** 2).sum(axis=1) / (2 * model.noise_variance_)
    expected = logsumexp(exponent) - np.log(len(centers)) - 1.5 * np.log(2 * np.pi * model.noise_variance_)
    np.testing.assert_allclose(model.score_samples(far), expected, rtol=1e-9)
    assert model.responsibilities(far).sum() == pytest.approx(1.0)


# ----------------------------------------------------------------------------------------------- the M-step


@pytest.mark.parametrize("weighted", [False, True], ids=["equal", "weighted"])
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_one_em_step_maximises_the_expected_objective(penalty: dict[str, Any], weighted: bool) -> None:
    X = toy(15, 2)
    weight = np.random.default_rng(1).integers(0, 4, len(X)).astype(float) if weighted else None
    before, after = (fitted(X, k, "line", sample_weight=weight, **penalty) for k in (2, 3))
    definition = Definition(before, X, weight)
    (W0, beta0), (W1, beta1) = parameters(before), parameters(after)
    R = definition.responsibilities(W0, beta0)

    # Weights first, at the old noise; for a constant λ that is the joint maximum, since W does not depend on β.
    def loss(flat: np.ndarray) -> float:
        return -definition.expected(R, flat.reshape(W0.shape), beta0)

    found = minimize(loss, np.zeros(W0.size), method="BFGS", options={"gtol": 1e-6, "maxiter": 2000})
    assert loss(W1.ravel()) <= found.fun + 1e-9 * abs(found.fun)
    np.testing.assert_allclose(definition.Phi @ W1, definition.Phi @ found.x.reshape(W0.shape), atol=2e-4)
    # Then the noise, at the new weights.
    best = minimize_scalar(lambda s: -definition.expected(R, W1, np.exp(s)), bracket=(-2, 3), tol=1e-10)
    assert np.log(beta1) == pytest.approx(best.x, abs=1e-5)


@pytest.mark.parametrize("penalize_bias", [False, True])
def test_one_em_step_with_constant_penalty_is_the_joint_maximum(penalize_bias: bool) -> None:
    X, penalty = toy(15, 2), {"regularization": 0.3, "penalize_bias": penalize_bias}
    before, after = (fitted(X, k, "line", **penalty) for k in (2, 3))
    definition = Definition(before, X)
    R = definition.responsibilities(*parameters(before))
    W1, beta1 = parameters(after)

    def loss(flat: np.ndarray) -> float:
        return -definition.expected(R, flat[1:].reshape(W1.shape), np.exp(flat[0]))

    found = minimize(loss, np.zeros(W1.size + 1), method="BFGS", options={"gtol": 1e-6, "maxiter": 5000})
    ours = np.append(np.log(beta1), W1.ravel())
    assert loss(ours) <= found.fun + 1e-7 * abs(found.fun)
    assert np.log(beta1) == pytest.approx(found.x[0], abs=1e-3)


@pytest.mark.parametrize("space", ["line", "circle", "sphere"])
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_the_gradient_vanishes_at_convergence(penalty: dict[str, Any], space: str) -> None:
    X = toy(25, 3)
    model = fitted(X, 1500, space, **penalty)
    definition, (W, beta) = Definition(model, X), parameters(model)
    point = np.append(np.log(beta), W.ravel())
    step = 1e-5

    def objective(flat: np.ndarray) -> float:
        return definition.objective(flat[1:].reshape(W.shape), np.exp(flat[0]))

    unit = np.eye(len(point)) * step
    gradient = np.array([(objective(point + e) - objective(point - e)) / (2 * step) for e in unit])
    # Away from the maximum, by a hundredth of the size of W, the gradient is thousands of times larger.
    nudged = point + 0.01
    there = np.array([(objective(nudged + e) - objective(nudged - e)) / (2 * step) for e in unit])
    assert np.abs(gradient).max() < 1e-4
    assert np.abs(there).max() > 0.1


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_history_holds_the_penalised_objective(penalty: dict[str, Any]) -> None:
    X = toy()
    model = fitted(X, 5, **penalty)
    expected = Definition(model, X).objective(*parameters(model)) / len(X)
    assert model.history_["objective"][-1] == pytest.approx(expected, rel=1e-10)


@settings(max_examples=60)
@given(
    space=st.sampled_from(sorted(SPACES)),
    D=st.integers(2, 4),
    n=st.integers(4, 30),
    seed=st.integers(0, 1000),
    strength=st.sampled_from([0.0, 1e-6, 1e-3, 0.1, 3.0]),
    prior=st.booleans(),
    penalize_bias=st.booleans(),
    weighted=st.booleans(),
    relaxation=st.sampled_from([1.0, 1.8, 6.0]),
)
def test_training_never_lowers_the_objective(
    space: str,
    D: int,
    n: int,
    seed: int,
    strength: float,
    prior: bool,
    penalize_bias: bool,
    weighted: bool,
    relaxation: float,
) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D)) * rng.uniform(0.1, 10, D)
    weight = rng.integers(1, 5, n).astype(float) if weighted else None
    penalty = {"prior_precision" if prior else "regularization": strength, "penalize_bias": penalize_bias}
    model = fitted(X, 25, space, sample_weight=weight, relaxation=relaxation, **penalty)
    objective = np.array(model.history_["objective"])
    assert np.isfinite(objective).all()
    assert (np.diff(objective) >= -1e-8 * (1 + np.abs(objective[1:]))).all(), np.diff(objective).min()


def test_em_never_lowers_the_objective_of_a_rank_deficient_basis_without_penalty() -> None:
    for seed in (0, 5, 11):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(7, 2)) * rng.uniform(0.1, 10, 2)
        objective = np.array(fitted(X, 25, "torus", regularization=0.0).history_["objective"])
        assert (np.diff(objective) >= -1e-8 * (1 + np.abs(objective[1:]))).all(), np.diff(objective).min()


# --------------------------------------------------------------------------------- samples, weights, blocks


def test_samples_have_the_moments_of_the_mixture() -> None:
    X = toy()
    model = fitted(X, 6, regularization=0.1)
    n = 200_000
    rows = model.sample(n, random_state=0)
    centers = model.inverse_transform(model.latent_.nodes)
    mean = centers.mean(axis=0)
    covariance = np.cov(centers.T, bias=True) + model.noise_variance_ * np.eye(3)
    standard_error = np.sqrt(np.diag(covariance) / n)
    assert (np.abs(rows.mean(axis=0) - mean) < 4.5 * standard_error).all()
    products = (rows - mean)[:, :, None] * (rows - mean)[:, None, :]
    error = products.std(axis=0) / np.sqrt(n)
    assert (np.abs(products.mean(axis=0) - covariance) < 4.5 * error).all()
    # Minus the entropy, two ways: the mean log-density of samples barely differs between two halves.
    log_p = model.score_samples(rows)
    halves = log_p[: n // 2].mean() - log_p[n // 2 :].mean()
    assert abs(halves) < 4.5 * log_p.std() * 2 / np.sqrt(n)


def model_and_parameters(X: np.ndarray) -> tuple[gtm.GTMModel, Any]:
    model = fitted(X, 3, regularization=0.1)
    return model._model, model._parameters()


def assert_same(a: Any, b: Any, rtol: float) -> None:
    for name in ("mass", "moment", "square", "log_likelihood", "total"):
        one, other = np.asarray(getattr(a, name)), np.asarray(getattr(b, name))
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol * np.abs(other).max(), err_msg=name)


def test_statistics_are_the_sums_they_stand_for() -> None:
    X = toy()
    model = fitted(X, 3, regularization=0.1)
    weight = np.random.default_rng(2).uniform(0, 3, len(X))
    definition = Definition(model, X, weight)
    R, T = definition.responsibilities(*parameters(model)), definition.T
    sums = gtm.summarize(model._model, as_rows(X, model.offset_, weight), model._parameters())
    np.testing.assert_allclose(sums.mass, (weight[:, None] * R).sum(axis=0), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(sums.moment, np.einsum("n,nk,nd->kd", weight, R, T), rtol=1e-8, atol=1e-11)
    assert sums.square == pytest.approx(float(weight @ (T**2).sum(axis=1)), rel=1e-12)
    assert sums.log_likelihood == pytest.approx(weight @ definition.log_likelihood(*parameters(model)), rel=1e-10)
    assert sums.total == pytest.approx(weight.sum())


def test_repeated_rows_are_weights() -> None:
    X, counts = toy(), np.random.default_rng(4).integers(0, 4, 23)
    repeated = np.repeat(X, counts, axis=0)
    model, start = model_and_parameters(X)
    offset = X.mean(axis=0)
    weighted = gtm.summarize(model, as_rows(X, offset, counts.astype(float)), start)
    assert_same(weighted, gtm.summarize(model, as_rows(repeated, offset), start), 1e-12)
    one = fitted(X, 8, sample_weight=counts, regularization=0.1)
    two = fitted(repeated, 8, regularization=0.1)
    np.testing.assert_allclose(one.weights_, two.weights_, rtol=1e-6, atol=1e-8)
    assert one.noise_variance_ == pytest.approx(two.noise_variance_, rel=1e-8)


@settings(max_examples=25)
@given(block_rows=st.integers(1, 60), n=st.integers(2, 50), weighted=st.booleans())
def test_blocks_are_the_whole(block_rows: int, n: int, weighted: bool) -> None:
    X = toy(n)
    model, start = model_and_parameters(toy())
    weight = np.linspace(0.5, 2, n) if weighted else None
    whole = gtm.summarize(model, as_rows(X, X.mean(axis=0), weight, block_rows=n), start)
    parts = gtm.summarize(model, as_rows(X, X.mean(axis=0), weight, block_rows=block_rows), start)
    assert_same(parts, whole, 1e-12)
    # The same as the sum of the statistics of two tables.
    if n > 2:
        offset, cut = X.mean(axis=0), n // 2
        halves = [
            gtm.summarize(model, as_rows(X[p], offset, None if weight is None else weight[p]), start)
            for p in (slice(cut), slice(cut, None))
        ]
        assert_same(halves[0] + halves[1], whole, 1e-12)


def test_float32_is_close_to_float64() -> None:
    X = toy(200)
    single = X.astype(np.float32)
    model, start = model_and_parameters(X)
    offset = X.mean(axis=0)
    assert_same(
        gtm.summarize(model, as_rows(single, offset), start), gtm.summarize(model, as_rows(X, offset), start), 1e-4
    )
    a, b = (fitted(x, 10, regularization=0.1) for x in (single, X))
    assert a.transform(single).dtype == a.score_samples(single).dtype == np.float32
    np.testing.assert_allclose(a.score_samples(single), b.score_samples(X), rtol=2e-3, atol=2e-3)
    np.testing.assert_allclose(a.transform(single), b.transform(X), atol=5e-3)
    assert a.weights_.dtype == np.float64
    assert a.history_["objective"][-1] == pytest.approx(b.history_["objective"][-1], abs=1e-3)


def test_data_far_from_the_origin_lose_nothing() -> None:
    X = toy()
    here, there = fitted(X, 10, regularization=0.1), fitted(X + 1e6, 10, regularization=0.1)
    np.testing.assert_allclose(there.score_samples(X + 1e6), here.score_samples(X), atol=1e-5)
    np.testing.assert_allclose(there.transform(X + 1e6), here.transform(X), atol=1e-5)
