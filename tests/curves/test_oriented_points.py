"""Principal oriented points: variance through hyperplanes, the points, and the walk along them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime
from scipy.stats import norm

from prinfold.curves.oriented_points import (
    HyperplaneRows,
    OrientedWalk,
    WalkEnd,
    best_walk,
    conditional_mean,
    least_direction,
    oriented_point,
    reference_width,
    rows_near_hyperplane,
    total_variance,
    train,
)


def seen(n=60, D=3, seed=0):
    rng = np.random.default_rng(seed)
    return HyperplaneRows(rng.standard_normal((n, D)), rng.uniform(1, 2, n))


def unit(D=3, seed=1):
    b = np.random.default_rng(seed).standard_normal(D)
    return b / np.linalg.norm(b)


def test_total_variance_and_mean_are_their_definitions():
    rows, b, h = seen(), unit(), 1.2
    k = np.array([w * max(1 - (gap @ b / h) ** 2, 0) ** 2 for gap, w in zip(*rows, strict=True)])
    flat = rows.gap - np.outer(rows.gap @ b, b)
    mean = (k[:, None] * flat).sum(axis=0) / k.sum()
    assert_allclose(conditional_mean(rows, b, h), mean)
    assert_allclose(mean @ b, 0, atol=1e-12)
    value = (k * ((flat - mean) ** 2).sum(axis=1)).sum() / k.sum()
    assert_allclose(total_variance(rows, 7.0 * b, h)[0], value)


def test_gradient_of_the_total_variance_by_finite_differences():
    rows = seen()
    for seed in range(3):
        b = 1.7 * unit(seed=seed)
        numeric = approx_fprime(b, lambda v: total_variance(rows, v, 1.2)[0], 1e-7)
        assert_allclose(total_variance(rows, b, 1.2)[1], numeric, atol=1e-6)


def test_out_of_reach_there_is_no_slope():
    far = HyperplaneRows(np.array([[5.0, 0.0], [6.0, 1.0]]), np.ones(2))
    value, slope = total_variance(far, np.array([1.0, 0.0]), 1.0)
    assert np.isfinite(value)
    assert not slope.any()
    assert not conditional_mean(far, np.array([1.0, 0.0]), 1.0).any()


def test_in_a_normal_distribution_the_direction_is_the_first_component():
    quantiles = norm.ppf((np.arange(21) + 0.5) / 21)
    rows = np.stack(np.meshgrid(quantiles, quantiles, quantiles), axis=-1).reshape(-1, 3) * np.array([3.0, 1.0, 0.5])
    found, variance = least_direction(HyperplaneRows(rows, np.ones(len(rows))), np.array([1.0, 0.3, -0.2]), 2.0)
    assert_allclose(found, [1, 0, 0], atol=1e-4)
    assert_allclose(variance, 1.25 * quantiles.var(), rtol=1e-6)


def test_an_oriented_point_is_its_own_mean_and_has_the_least_variance():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, np.pi, 500)
    X = (1 + 0.1 * rng.standard_normal(500))[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    walk = OrientedWalk(X, np.ones(500), 0.2, 0.06)
    found = oriented_point(walk, np.array([0.1, 0.9]), np.array([0.9, 0.3]))
    rows = rows_near_hyperplane(walk, found.point, found.direction)
    assert np.linalg.norm(conditional_mean(rows, found.direction, 0.2)) < 1e-3
    for turn in (-0.2, 0.2):
        other = found.direction + turn * np.array([-found.direction[1], found.direction[0]])
        assert total_variance(rows, other, 0.2)[0] > found.variance


def test_rows_on_another_turn_are_not_seen():
    t = np.linspace(-1, 1, 101)
    X = np.concatenate([np.stack([t, 0 * t], axis=1), np.stack([t, 0 * t + 0.7], axis=1)])
    rows = rows_near_hyperplane(OrientedWalk(X, np.ones(202), 0.5, 0.1), np.array([0.0, 0.05]), np.array([1.0, 0.0]))
    assert_allclose(rows.gap[:, 1], -0.05)


@pytest.mark.parametrize(("turn", "closed"), [(np.pi, False), (2 * np.pi, True)])
def test_a_walk_goes_to_both_ends_or_round(turn, closed):
    angle = np.linspace(0, turn, 100, endpoint=False)
    X = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    X = X - X.mean(axis=0)
    h = 0.7 * reference_width(X, np.ones(100))
    walk = OrientedWalk(X, np.ones(100), h, 0.5 * h)
    outcome = train([walk], max_iter=500, tol=1e-3)
    found = best_walk(outcome.state)
    assert outcome.converged
    assert found.closed == closed
    assert (found.ends == (WalkEnd.ROUND, WalkEnd.ROUND)) == closed
    assert found.error < 2e-3
    points, directions = np.array([each[:2] for each in found.points]).transpose(1, 0, 2)
    assert (np.einsum("pd,pd->p", np.diff(points, axis=0), directions[:-1]) > 0).all(), "in order, and that way"


def test_rows_that_are_far_from_each_other_are_joined_in_steps_as_long():
    X = np.random.default_rng(0).standard_normal((80, 10))
    near, wide = OrientedWalk(X, np.ones(80), 0.5, 0.1), OrientedWalk(X, np.ones(80), 50.0, 1.0)
    apart = np.linalg.norm(X[:, None] - X, axis=2)
    np.fill_diagonal(apart, np.inf)
    assert_allclose(near.reach, 1.5 * np.median(apart.min(axis=1)))
    assert wide.reach == 25.0


def test_a_walk_says_why_it_ended_and_takes_a_wider_kernel_where_rows_are_left_out():
    """Two strokes that meet at 40 degrees: a corner for the narrow kernel, none for the wide one."""
    t, turn = np.linspace(0, 1, 60), np.radians(40)
    X = np.stack([np.append(t, 1 - t[1:] * np.cos(turn)), np.append(0 * t, t[1:] * np.sin(turn))], axis=1)
    X += 0.02 * np.random.default_rng(0).standard_normal(X.shape)
    X = X - X.mean(axis=0)
    narrow, wide = (OrientedWalk(X, np.ones(119), h, 0.3 * h) for h in (0.1, 0.3))
    cut = best_walk(train([narrow], max_iter=500, tol=1e-3).state)
    assert set(cut.ends) == {WalkEnd.ROWS, WalkEnd.BACK}
    whole = best_walk(train([narrow, wide], max_iter=500, tol=1e-3).state)
    assert whole.width == 0.3
    assert whole.error < 0.2 * cut.error
    assert whole.ends == (WalkEnd.ROWS, WalkEnd.ROWS)
    short = best_walk(train([narrow], max_iter=1, tol=1e-3).state)
    assert short.ends == (WalkEnd.GOING, WalkEnd.GOING)
