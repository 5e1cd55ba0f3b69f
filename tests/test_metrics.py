"""Metrics against the paper's figures, scikit-learn, closed forms and brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull
from sklearn import manifold

from prinfold import metrics
from prinfold._typing import Mesh
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.geometry import neighbor_ranks as neighbors
from prinfold.geometry.domain import UnitSphere


def patch():
    """Four nodes of a square patch, its grid lines, and a point whose three errors are those of PPS figure 8."""
    nodes = np.array([[0.0, 0, 0], [0, 2, 0], [2, 0, 0], [2, 2, 0]])
    edges = np.array([[0, 1], [2, 3], [0, 2], [1, 3]])
    return np.array([[0.3, np.sqrt(0.32), np.sqrt(0.08)]]), nodes, edges


def lattice(a, b):
    number = np.arange(a * b).reshape(a, b)
    return np.vstack(
        [
            np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1),
            np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1),
        ]
    )


def test_the_three_errors_of_pps_figure_8():
    # The text prints the errors but not the coordinates: this flat patch was made to have those errors.
    x, nodes, edges = patch()
    assert metrics.nearest_node_error(x, nodes) == pytest.approx(0.4900)
    assert metrics.grid_error(x, nodes, edges) == pytest.approx(0.1700)
    assert metrics.triangle_error(x, nodes, (2, 2)) == pytest.approx(0.0800)


@given(st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_finer_approximations_are_never_worse(seed):
    rng = np.random.default_rng(seed)
    nodes, X = rng.normal(size=(12, 4)), rng.normal(size=(30, 4))
    nn, grid = metrics.nearest_node_error(X, nodes), metrics.grid_error(X, nodes, lattice(3, 4))
    assert metrics.triangle_error(X, nodes, (3, 4)) <= grid <= nn


def test_both_diagonals_count():
    # A patch bent along one diagonal: the point lies on the other cut's triangles, above and below.
    nodes = np.array([[0.0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]])
    low, high = np.array([[0.5, 0.5, 0.0]]), np.array([[0.5, 0.5, 1.0]])
    for x in (low, high):
        assert metrics.triangle_error(x, nodes, (2, 2)) == pytest.approx(0.0, abs=1e-15)


def test_node_error_is_brute_force_and_weights_are_repeats():
    rng = np.random.default_rng(0)
    X, nodes, weight = rng.normal(size=(40, 5)), rng.normal(size=(15, 5)), rng.integers(0, 4, size=40)
    brute = ((X[:, None] - nodes) ** 2).sum(axis=2).min(axis=1)
    assert metrics.nearest_node_error(X, nodes) == pytest.approx(brute.mean())
    repeated = np.repeat(X, weight, axis=0)
    for error in (
        lambda X, w=None: metrics.nearest_node_error(X, nodes, w),
        lambda X, w=None: metrics.grid_error(X, nodes, lattice(3, 5), w),
        lambda X, w=None: metrics.triangle_error(X, nodes, (3, 5), w),
        lambda X, w=None: metrics.projection_error(X, 0 * X, w),
    ):
        assert error(X, weight) == pytest.approx(error(repeated))


def test_projection_error_is_the_mean_square():
    X = np.array([[0.0, 0], [3, 4]])
    assert metrics.projection_error(X, np.zeros((2, 2))) == 12.5
    assert metrics.projection_error(X, np.zeros((2, 2)), np.array([3, 1])) == 6.25


def test_sizes():
    square = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]])
    assert metrics.length(square) == pytest.approx(3)
    assert metrics.length(square, closed=True) == pytest.approx(4)
    assert metrics.area(square, np.array([[0, 1, 2], [0, 2, 3]])) == pytest.approx(1)


def test_roughness_of_curves_and_surfaces():
    t = np.linspace(0, 2 * np.pi, 41)
    circle = np.stack([np.cos(t), np.sin(t)], axis=1)
    circle[-1] = circle[0]
    chain = np.stack([np.arange(40), np.arange(1, 41)], axis=1)
    assert metrics.roughness(Mesh(circle, t[:, None], chain)).total == pytest.approx(2 * np.pi)
    ball = np.random.default_rng(1).normal(size=(120, 3))
    ball /= np.linalg.norm(ball, axis=1, keepdims=True)
    mesh = Mesh(ball, ball, ConvexHull(ball).simplices)
    identity = np.eye(3)
    rough = metrics.roughness(mesh, lambda Z: np.broadcast_to(identity, (len(Z), 3, 3)), UnitSphere())
    assert rough.total == pytest.approx(8 * np.pi, rel=1e-3)
    with pytest.raises(InvalidParameterError, match="pass jacobian= and domain="):
        metrics.roughness(mesh)
    assert metrics.angle_sum(np.diff(circle[:11], axis=0)) == pytest.approx(81)


@pytest.mark.parametrize("k", [1, 5, 12])
def test_trustworthiness_is_that_of_scikit_learn(k, monkeypatch):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 4))
    Z = X[:, :2] + 0.5 * rng.normal(size=(60, 2))
    expected = manifold.trustworthiness(X, Z, n_neighbors=k), manifold.trustworthiness(Z, X, n_neighbors=k)
    assert metrics.trustworthiness(X, Z, k) == pytest.approx(expected[0])
    assert metrics.continuity(X, Z, k) == pytest.approx(expected[1])
    monkeypatch.setattr(neighbors, "_BLOCK_NUMBERS", 60 * 7)
    assert metrics.trustworthiness(X, Z, k) == pytest.approx(expected[0])


def test_keeping_every_neighbour_is_perfect():
    X = np.random.default_rng(3).normal(size=(40, 3))
    assert metrics.trustworthiness(X, 2 * X + 1, 5) == 1.0
    assert metrics.continuity(X, 2 * X + 1, 5) == 1.0


def test_a_circle_is_continuous_only_the_short_way_round():
    angle = np.sort(np.random.default_rng(4).uniform(0, 2 * np.pi, size=(80, 1)), axis=0)
    X = np.hstack([np.cos(angle), np.sin(angle)])

    def around(A, B):
        gap = np.abs(A - B.T)
        return np.minimum(gap, 2 * np.pi - gap)

    assert metrics.continuity(X, angle, 5) < 0.999
    assert metrics.continuity(X, angle, 5, latent_distance=around) == 1.0
    assert metrics.trustworthiness(X, angle, 5, latent_distance=around) == 1.0


def line_sample(seed, n=400, offset=0.0):
    rng = np.random.default_rng(seed)
    z = rng.uniform(-1, 1, size=(n, 1))
    X = np.hstack([z, 0.2 * rng.normal(size=(n, 2)) + offset])
    return X, z, np.hstack([z, np.zeros((n, 2))])


@pytest.mark.parametrize("how", [{"n_bins": 10}, {"bandwidth": 0.1}, {}])
def test_a_line_through_symmetric_noise_is_self_consistent(how):
    values = np.array([metrics.self_consistency(*line_sample(seed, n=150), **how) for seed in range(60)])
    # Unbiased: the mean over samples is nil within four standard errors, and both signs occur.
    assert abs(values.mean()) < 4 * values.std() / np.sqrt(60)
    assert values.min() < 0 < values.max()
    assert values.std() < 0.1


@pytest.mark.parametrize("how", [{"n_bins": 10}, {"bandwidth": 0.1}])
def test_a_shifted_line_shows_the_share_of_bias(how):
    # Bias b in two columns against noise σ: E S = b² / (b² + σ²).
    value = metrics.self_consistency(*line_sample(1, n=3000, offset=0.3), **how)
    assert value == pytest.approx(0.09 / (0.09 + 0.04), abs=0.03)
    _, z, projected = line_sample(1)
    assert metrics.self_consistency(projected + [0, 1, 0], z, projected, **how) == pytest.approx(1.0)


@pytest.mark.parametrize("how", [{"n_bins": 7}, {"bandwidth": 0.15}])
def test_self_consistency_equals_its_formula_and_weights_are_repeats(how):
    X, z, projected = line_sample(2, n=60, offset=0.1)
    weight = np.random.default_rng(5).integers(0, 4, size=60).astype(float)
    residual, top, bottom = X - projected, 0.0, 0.0
    cell = np.minimum(np.floor(7 * (z - z[weight > 0].min()) / np.ptp(z[weight > 0])), 6)
    for i in range(60):
        if "n_bins" in how:
            kernel = (cell == cell[i])[:, 0].astype(float)
        else:
            kernel = np.exp(-((z - z[i])[:, 0] ** 2) / (2 * 0.15**2))
        kernel = kernel * weight
        kernel[i] = 0
        if kernel.sum() > 0:
            top += weight[i] * residual[i] @ (kernel @ residual / kernel.sum())
            bottom += weight[i] * residual[i] @ residual[i]
    assert metrics.self_consistency(X, z, projected, sample_weight=weight, **how) == pytest.approx(top / bottom)
    again = [np.repeat(a, weight.astype(int), axis=0) for a in (X, z, projected)]
    assert metrics.self_consistency(*again, **how) == pytest.approx(top / bottom)


def test_self_consistency_of_degenerate_inputs():
    X, z, projected = line_sample(3, n=20)
    assert metrics.self_consistency(projected, z, projected) == 0.0
    assert metrics.self_consistency(X[:1], z[:1], projected[:1]) == 0.0
    assert np.isfinite(metrics.self_consistency(X, 0 * z, projected))
    with pytest.raises(InvalidParameterError, match="not both"):
        metrics.self_consistency(X, z, projected, n_bins=3, bandwidth=0.1)
    with pytest.raises(InvalidParameterError, match="bandwidth must be None or a finite number above 0"):
        metrics.self_consistency(X, z, projected, bandwidth=0.0)
    with pytest.raises(InvalidParameterError, match="n_bins must be None or a whole number of at least 1"):
        metrics.self_consistency(X, z, projected, n_bins=0)
    with pytest.raises(InvalidDataError, match="equal rows"):
        metrics.self_consistency(X, z[:5], projected)


def test_upright_residuals_have_no_cosine_and_slanted_ones_theirs():
    J = np.tile(np.array([[1.0], [0], [0]]), (4, 1, 1))
    residual = np.array([[0.0, 1, 1], [3, 0, 4], [5, 0, 0], [0, 0, 0]])
    result = metrics.orthogonality(residual, np.zeros((4, 3)), J)
    np.testing.assert_allclose(result.cosines, [0, 0.6, 1, 0], atol=1e-15)
    assert result.mean == pytest.approx(0.4)
    assert (result.median, result.upper, result.worst) == pytest.approx((0.0, 1.0, 1.0))
    masked = metrics.orthogonality(residual, np.zeros((4, 3)), J, interior=np.array([True, True, False, True]))
    assert masked.mean == pytest.approx(0.2)
    assert masked.worst == pytest.approx(0.6)
    weighted = metrics.orthogonality(residual, np.zeros((4, 3)), J, sample_weight=np.array([0, 3.0, 1.0, 0]))
    assert weighted.mean == pytest.approx(0.7)
    assert weighted.median == pytest.approx(0.6)


def test_orthogonality_does_not_depend_on_the_parametrisation():
    rng = np.random.default_rng(6)
    X, projected, J = rng.normal(size=(30, 5)), rng.normal(size=(30, 5)), rng.normal(size=(30, 5, 2))
    plain = metrics.orthogonality(X, projected, J)
    other = metrics.orthogonality(X, projected, J @ rng.normal(size=(30, 2, 2)))
    np.testing.assert_allclose(other.cosines, plain.cosines, atol=1e-10)
    # A repeated tangent column is one tangent; a zero Jacobian has no tangent at all.
    double = np.repeat(J[:, :, :1], 2, axis=2)
    single = metrics.orthogonality(X, projected, J[:, :, :1])
    np.testing.assert_allclose(metrics.orthogonality(X, projected, double).cosines, single.cosines, atol=1e-10)
    assert metrics.orthogonality(X, projected, 0 * J).worst == 0.0


def test_what_cannot_work_is_named():
    X, nodes = np.zeros((3, 2)), np.zeros((4, 2))
    with pytest.raises(InvalidDataError, match="X must be a table"):
        metrics.nearest_node_error(X[:0], nodes)
    with pytest.raises(InvalidDataError, match="X holds NaN"):
        metrics.nearest_node_error(np.full((3, 2), np.nan), nodes)
    with pytest.raises(InvalidDataError, match="same shape"):
        metrics.projection_error(X, nodes)
    with pytest.raises(InvalidDataError, match="sample_weight must be 3"):
        metrics.projection_error(X, X, np.zeros(3))
    with pytest.raises(InvalidParameterError, match="shape must have two axes"):
        metrics.triangle_error(X, nodes, (1, 4))
    with pytest.raises(InvalidParameterError, match="less than n / 2"):
        metrics.trustworthiness(X, X, 2)
    with pytest.raises(InvalidDataError, match="equal rows"):
        metrics.trustworthiness(X, nodes, 1)
    with pytest.raises(InvalidDataError, match=r"must be \(n, D\), \(n, D\) and \(n, D, Q\)"):
        metrics.orthogonality(X, X, np.zeros((3, 2)))
    with pytest.raises(InvalidDataError, match="at least one row inside"):
        metrics.orthogonality(X, X, np.zeros((3, 2, 1)), interior=np.zeros(3, dtype=bool))
