"""Penalised splines: banded sweeps against dense linear algebra."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.interpolate import BSpline

from prinfold.numerics.penalized_splines import SplineSpace

spaces = pytest.mark.parametrize("space", [SplineSpace(9, False), SplineSpace(9, True), SplineSpace(14, True)])


def sample(n=40, D=3):
    rng = np.random.default_rng(0)
    return rng.uniform(size=n), rng.normal(size=(n, D)), rng.integers(1, 4, n).astype(float)


def matrix(space, u):
    """(n, m) B, by SciPy; on a ring the last three B-splines are the first."""
    knots = np.arange(-3, space.n_cells + 4) / space.n_cells
    wide = BSpline(knots, np.eye(space.n_cells + 3), 3, extrapolate=True)(u)
    out = wide[:, : space.n_functions].copy()
    out[:, : wide.shape[1] - space.n_functions] += wide[:, space.n_functions :]
    return out


def dense_of(band):
    """The symmetric matrix of a lower band (p + 1, m)."""
    lower = sum(np.diag(diagonal[: band.shape[1] - k], -k) for k, diagonal in enumerate(band))
    return lower + np.tril(lower, -1).T


def penalty_by_quadrature(space):
    """∫ B''B''ᵀ by differences of the dense basis: exact in each cell but for rounding, since B'' is straight there."""
    K, step = space.n_cells, 1e-3
    nodes, weights = np.polynomial.legendre.leggauss(2)
    u = ((np.arange(K)[:, None] + 0.5 + 0.5 * nodes) / K).ravel()
    h = step / K
    second = (matrix(space, u + h) - 2 * matrix(space, u) + matrix(space, u - h)) / h**2
    return second.T @ (np.tile(weights / (2 * K), K)[:, None] * second)


@spaces
def test_the_penalty_is_the_integral_of_squared_second_derivatives(space):
    full = dense_of(space.penalty)[np.ix_(space.place, space.place)]
    assert_allclose(full, penalty_by_quadrature(space), rtol=1e-5, atol=1e-5 * full.max())


@spaces
def test_splines_sum_to_one_and_join_on_a_ring(space):
    u = np.linspace(0, 1, 50)
    assert_allclose(matrix(space, u).sum(axis=1), 1.0)
    gap = np.abs(matrix(space, np.array([0.0])) - matrix(space, np.array([1.0]))).max()
    assert (gap < 1e-12) == space.closed


@spaces
@pytest.mark.parametrize(("penalty", "D"), [(1e-6, 3), (1e-2, 3), (10.0, 3), (1e-2, 30)])
def test_the_sweeps_are_dense_linear_algebra(space, penalty, D):
    u, X, weight = sample(D=D)
    moments = space.moments(u, X, weight)
    B, W = matrix(space, u), np.diag(weight / weight.sum())
    A = B.T @ W @ B + penalty * dense_of(space.penalty)[np.ix_(space.place, space.place)]
    C = np.linalg.solve(A, B.T @ W @ X)
    hat = B @ np.linalg.solve(A, B.T @ W)
    assert_allclose(space.coefficients(moments, penalty), C, rtol=1e-8, atol=1e-10)
    assert_allclose(space.values(u, C), B @ C, atol=1e-12)
    residual, trace = space.traces(moments, np.array([penalty]))
    assert_allclose(trace, np.trace(hat), rtol=1e-8)
    assert_allclose(residual, np.average(np.square(X - hat @ X).sum(axis=1), weights=weight), rtol=1e-8)


def test_without_bends_a_spline_is_the_straight_line_of_regression():
    u, X, weight = sample()
    space = SplineSpace(9, False)
    C = space.coefficients(space.moments(u, X, weight), 1e6)
    design, root = np.stack([np.ones_like(u), u], axis=1), np.sqrt(weight)[:, None]
    line = np.linalg.lstsq(root * design, root * X, rcond=None)[0]
    assert_allclose(space.values(u, C), design @ line, atol=1e-5)
