"""Probabilistic principal curves: the step written out by brute force, and what it never does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from prinfold import datasets
from prinfold.curves.arc_curve import ArcCurve
from prinfold.curves.probabilistic_model import (
    CurveModel,
    WeightedRows,
    curve_of,
    even_knots,
    find_penalty,
    likeliest_penalty,
    roughness,
    slide_knots,
)
from prinfold.numerics.natural_splines import bending, spline_at

X = datasets.make_half_circle(120, noise=0.15, rng=0).X
X = X - X.mean(axis=0)
SAMPLE = WeightedRows(X, np.random.default_rng(1).uniform(0.5, 2.0, len(X)))
LINE = ArcCurve.through(np.array([[-1.2, 0.0], [1.2, 0.1]]))
RING = ArcCurve.through(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]), closed=True)
curves = pytest.mark.parametrize("curve", [LINE, RING], ids=["open", "closed"])


def trained(model, curve=LINE, n_steps=3, n_nodes=12):
    state = model.begin(SAMPLE, *even_knots(curve, n_nodes))
    for _ in range(n_steps):
        state = model.step(SAMPLE, state)
    return state


def covariances(model, state):
    """Σ_k of PPS (17), as matrices."""
    D = state.values.shape[1]
    along = model.clamping * state.variance
    across = (D - model.clamping) / (D - 1) * state.variance
    return [along * np.outer(u, u) + across * (np.eye(D) - np.outer(u, u)) for u in state.nodes.tangents]


@pytest.mark.parametrize("clamping", [1.0, 0.4, 1.6])
@curves
def test_the_e_step_is_that_of_the_mixture(curve, clamping):
    model = CurveModel(0.3, clamping, 1e-9)
    state = trained(model, curve)
    joint = np.stack(
        [
            share * multivariate_normal(center, cov).pdf(X)
            for share, center, cov in zip(state.shares, state.values, covariances(model, state), strict=True)
        ],
        axis=1,
    )
    share, logs = model.responsibilities(X, state.nodes)
    np.testing.assert_allclose(logs, np.log(joint.sum(axis=1)), rtol=1e-9)
    np.testing.assert_allclose(share, joint / joint.sum(axis=1, keepdims=True), atol=1e-12)
    weighted = SAMPLE.weight[:, None] * share
    np.testing.assert_allclose(state.sums.mass, weighted.sum(axis=0), rtol=1e-9)
    np.testing.assert_allclose(state.sums.moment, weighted.T @ X, atol=1e-9)


@pytest.mark.parametrize("clamping", [1.0, 0.4])
@curves
def test_the_m_step_by_brute_force(curve, clamping):
    model = CurveModel(0.3, clamping, 1e-9)
    state = trained(model, curve)
    after = model.step(SAMPLE, state)
    share = SAMPLE.weight[:, None] * model.responsibilities(X, state.nodes)[0]
    np.testing.assert_allclose(after.shares, share.sum(axis=0) / share.sum(), rtol=1e-10)
    # The values solve the printed equations at the new places …
    left = np.diag(share.sum(axis=0)) / state.variance + model.penalty * bending(after.knots)
    np.testing.assert_allclose(left @ after.values, share.T @ X / state.variance, atol=1e-7)
    # … and 1/β is the mean of dᵀ(βΣ)⁻¹d.
    shapes = covariances(model, after._replace(variance=1.0))
    away = X[:, None] - after.values[None]
    distance = np.stack(
        [np.einsum("nd,de,ne->n", away[:, k], np.linalg.inv(s), away[:, k]) for k, s in enumerate(shapes)]
    )
    assert after.variance == pytest.approx((share * distance.T).sum() / (2 * SAMPLE.total), rel=1e-8)


@curves
@pytest.mark.parametrize("penalty", [1e-3, 1.0, 100.0])
def test_no_step_lowers_the_objective(curve, penalty):
    model = CurveModel(penalty, 1.0, 1e-9)
    state = model.begin(SAMPLE, *even_knots(curve, 30))
    objective = [model.measure(SAMPLE, state)["objective"]]
    for _ in range(40):
        state = model.step(SAMPLE, state)
        objective.append(model.measure(SAMPLE, state)["objective"])
    assert np.diff(objective).min() > -1e-10
    assert objective[-1] > objective[0] + 0.01


@curves
def test_places_slide_towards_their_rows_and_never_meet(curve):
    model = CurveModel(0.01, 1.0, 1e-9)
    state = trained(model, curve, 25, 40)
    new = slide_knots(state.knots, state.values, state.sums)
    mean = state.sums.moment / state.sums.mass[:, None]
    there, _ = spline_at(state.knots, state.values, new.places)
    before, after = (np.square(mean - y).sum(axis=1) for y in (state.values, there))
    assert (after <= before + 1e-15).all()
    assert (new.places != state.knots.places).any()
    assert new.steps.min() > 0.2 * new.steps.mean()


def test_the_penalty_found_is_where_it_is_likeliest_itself():
    model, curve = find_penalty(CurveModel(2.0, 1.0, 1e-9), SAMPLE, LINE, 25)
    state = model.begin(SAMPLE, *even_knots(curve, 25))
    for _ in range(10):
        state = model.step(SAMPLE, state)
    assert likeliest_penalty(model, state) == pytest.approx(model.penalty, rel=0.05)
    # The same from far away.
    other, _ = find_penalty(CurveModel(1e3, 1.0, 1e-9), SAMPLE, LINE, 25)
    assert other.penalty == pytest.approx(model.penalty, rel=0.1)


@pytest.mark.parametrize(("curve", "free"), [(LINE, 2), (RING, 1)], ids=["open", "closed"])
def test_its_determined_bends_are_the_trace_by_eigenvalues(curve, free):
    model = CurveModel(0.5, 1.0, 1e-9)
    state = trained(model, curve)
    root = 1 / np.sqrt(state.sums.mass / state.variance)
    stiff = model.penalty * root[:, None] * bending(state.knots) * root
    determined = (1 / (1 + np.linalg.eigvalsh(stiff)[free:])).sum()  # but for those of a line, or of a point
    assert likeliest_penalty(model, state) == pytest.approx(2 * determined / roughness(state), rel=1e-6)


def test_blocks_and_weights():
    """Rows in blocks are rows at once; a weight of two is the row twice."""
    model = CurveModel(0.3, 0.7, 1e-9)
    doubled = WeightedRows(np.vstack([X, X[:40]]), np.ones(len(X) + 40))
    weight = np.where(np.arange(len(X)) < 40, 2.0, 1.0)
    one, other = (model.begin(s, *even_knots(LINE, 12)) for s in (doubled, WeightedRows(X, weight)))
    for _ in range(3):
        one, other = model.step(doubled, one), model.step(WeightedRows(X, weight), other)
    np.testing.assert_allclose(one.values, other.values, atol=1e-9)
    many = WeightedRows(np.tile(X, (40, 1)), np.ones(40 * len(X)))  # several blocks
    single = WeightedRows(X, np.full(len(X), 40.0))
    a, b = (model.step(s, model.begin(s, *even_knots(LINE, 12))) for s in (many, single))
    np.testing.assert_allclose(a.values, b.values, atol=1e-9)
    assert a.sums.log_likelihood == pytest.approx(b.sums.log_likelihood, rel=1e-10)


def test_a_stiff_curve_is_straight_and_the_floor_holds():
    model = CurveModel(1e9, 1.0, 0.05)
    state = trained(replace(model, floor=10.0), n_steps=30)
    assert state.variance == 10.0
    curve = curve_of(trained(model, n_steps=60))
    chord = np.linalg.norm(curve.vertices[-1] - curve.vertices[0])
    assert curve.length == pytest.approx(chord, rel=1e-6)
