"""Parts of a monitor: shares of nodes, feet of rows, p-values and limits, held to their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prinfold.applications import monitor_statistics
from prinfold.applications.monitor_statistics import (
    SPLITS,
    MonitoredSurface,
    alarm_limit,
    calibration_p_values,
    nearest_points,
    simulated_limit,
    simulation_p_values,
)
from prinfold.geometry.domain import Box
from prinfold.latent import circle, grid, line


def plane(D: int = 4, seed: int = 0) -> tuple[MonitoredSurface, np.ndarray]:
    """A flat surface over [−1, 1]², and its Jacobian."""
    J = np.random.default_rng(seed).normal(size=(D, 2))
    nodes = grid(9, 9).nodes
    return MonitoredSurface(
        nodes,
        nodes @ J.T,
        Box((-1.0, -1.0), (1.0, 1.0), (False, False)),
        lambda Z: Z @ J.T,
        lambda Z: np.broadcast_to(J, (len(Z), D, 2)),
    ), J


# ------------------------------------------------------------------------------------------ shares of the nodes


@pytest.mark.parametrize("latent", [line(7), circle(8), grid(4, 5)], ids=repr)
def test_a_step_of_diffusion_is_symmetric_and_keeps_the_mass(latent):
    step = monitor_statistics.diffusion_step(latent.edges, latent.n_nodes).toarray()
    assert_array_equal(step, step.T)
    assert_allclose(step.sum(axis=1), 1.0)
    assert (step >= 0).all()
    assert_allclose(np.linalg.matrix_power(step, 500), 1.0 / latent.n_nodes, atol=1e-6)


def test_without_neighbours_nothing_spreads():
    assert_array_equal(monitor_statistics.diffusion_step(np.empty((0, 2), dtype=int), 3).toarray(), np.eye(3))


def test_shares_are_the_smoothing_that_makes_rows_left_out_most_likely():
    """Against the loop of the definition: every row left out, every number of steps."""
    rng, latent = np.random.default_rng(0), line(20)
    places = rng.normal(0, 0.4, 30).clip(-1, 1)
    R = np.exp(-0.5 * ((places[:, None] - latent.nodes[:, 0]) / 0.03) ** 2)
    R /= R.sum(axis=1, keepdims=True)
    step = monitor_statistics.diffusion_step(latent.edges, 20).toarray()
    scores = {}
    for steps in (0, 2, 4, 8, 16, 32, 64):
        S = np.linalg.matrix_power(step, steps)
        scores[steps] = np.mean([np.log(R[n] @ (S @ np.delete(R, n, 0).sum(axis=0)) + 1 / 20) for n in range(30)])
    best = max(scores, key=scores.__getitem__)
    assert 0 < best < 64
    wanted = (np.linalg.matrix_power(step, best) @ R.sum(axis=0) + 1 / 20) / 31
    sparse = monitor_statistics.diffusion_step(latent.edges, 20)
    assert 2 * monitor_statistics.choose_smoothing(R.sum(axis=0), R, sparse) == best
    found = monitor_statistics.node_shares(R.sum(axis=0), 30.0, sparse, best // 2)
    assert_allclose(found, wanted)
    assert_allclose(found.sum(), 1.0)


def test_rarity_is_nil_where_rows_are_as_dense_as_on_average():
    share = np.random.default_rng(0).dirichlet(np.ones(5), 8)
    assert_allclose(monitor_statistics.rarity(share, np.full(5, 0.2), np.full(5, 0.2)), 0.0, atol=1e-12)
    assert_allclose(
        monitor_statistics.rarity(np.eye(5), np.arange(1, 6) / 15, np.full(5, 0.2)), -np.log(np.arange(1, 6) / 3)
    )


def test_usual_nodes_are_the_fewest_that_hold_the_rows():
    assert_array_equal(
        monitor_statistics.usual_nodes(np.array([0.05, 0.6, 0.01, 0.34]), 0.9), [False, True, False, True]
    )
    assert monitor_statistics.usual_nodes(np.full(7, 1 / 7), 1.0).all()


# -------------------------------------------------------------------------------------------------- the surface


def test_feet_on_a_plane_are_weighted_least_squares():
    surface, J = plane()
    rng = np.random.default_rng(1)
    Z = rng.uniform(-0.5, 0.5, (40, 2))
    X, scale = Z @ J.T + 0.02 * rng.normal(size=(40, 4)), np.array([1.0, 0.2, 3.0, 0.7])
    weighted = J / scale[:, None]
    wanted = (X / scale) @ weighted @ np.linalg.inv(weighted.T @ weighted) @ J.T
    assert_allclose(nearest_points(X, scale, surface), wanted, atol=1e-6)


def test_what_is_missing_does_not_pull():
    surface, J = plane()
    X = np.random.default_rng(1).uniform(-0.3, 0.3, (20, 2)) @ J.T + 0.05
    gone = X.copy()
    gone[:10, 1] = np.nan
    gone[5:, 3] = np.nan
    found = nearest_points(gone, np.ones(4), surface)
    for rows, columns in (([0, 1, 2, 3, 4], [0, 2, 3]), ([5, 6, 7, 8, 9], [0, 2]), ([12, 19], [0, 1, 2])):
        part = surface._replace(
            images=surface.images[:, columns],
            point=lambda Z, c=columns: Z @ J[c].T,
            jacobian=lambda Z, c=columns: np.broadcast_to(J[c], (len(Z), len(c), 2)),
        )
        alone = nearest_points(X[np.ix_(rows, columns)], np.ones(len(columns)), part)
        assert_allclose(found[np.ix_(rows, columns)], alone, atol=1e-8)
    nowhere = nearest_points(np.full((1, 4), np.nan), np.ones(4), surface)[0]
    assert np.abs(surface.images - nowhere).sum(axis=1).min() < 1e-12  # at some node
    assert_array_equal(monitor_statistics.squared_parts(np.array([[2.0, np.nan]]), np.array([4.0, 1.0])), [[0.25, 0.0]])


# --------------------------------------------------------------------------------------------- what chance does


def test_p_values_count_rows_that_are_as_bad():
    reference = np.array([[1.0], [2.0], [2.0], [5.0]])
    found = calibration_p_values(np.array([[0.0], [1.0], [2.0], [3.0], [5.0], [6.0]]), reference)
    assert_allclose(found[:, 0], [1.0, 1.0, 0.8, 0.4, 0.4, 0.2])


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.1, 0.2, 0.5])
@pytest.mark.parametrize("n", [1, 9, 19, 99, 100, 199])
def test_limits_are_where_p_values_reach_the_rate(rate, n):
    """Beyond the limit, and only there, is the p-value at most the rate."""
    rng = np.random.default_rng(n)
    reference, new = np.round(rng.normal(size=n), 1), np.round(rng.normal(size=400), 1)
    limit, p = alarm_limit(reference, rate), calibration_p_values(new[:, None], reference[:, None])[:, 0]
    assert_array_equal(new > limit, p <= rate * (1 + 1e-12))
    assert np.isfinite(limit) == (rate * (n + 1) >= 1 - 1e-9)


def test_calibrated_p_values_are_uniform_for_any_distribution():
    """P(p ≤ α) = ⌊α(n + 1)⌋/(n + 1) exactly for continuous rows: the rank of a new row among the others is uniform."""
    rng = np.random.default_rng(0)
    draws = rng.standard_cauchy((20000, 20))
    p = np.array([calibration_p_values(row[:1, None], row[1:, None])[0, 0] for row in draws])
    for k in (1, 2, 5, 10):
        assert abs(np.mean(p <= k / 20 + 1e-12) - k / 20) < 4 * np.sqrt(k / 20 / 20000)


def test_weighted_simulation_gives_the_tail_of_what_it_is_weighted_to():
    """Normal draws weighted to another normal distribution have its tail probabilities."""
    from scipy.stats import norm

    draws = np.random.default_rng(0).normal(size=100_000)
    weight = np.exp(norm.logpdf(draws, 0.5) - norm.logpdf(draws))
    at = np.array([-1.0, 0.0, 1.0, 2.0])
    found = simulation_p_values(at[:, None], draws[:, None], weight)[:, 0]
    assert_allclose(found, norm.sf(at, 0.5), atol=0.01)
    assert_allclose(simulated_limit(draws, weight, 0.1), norm.isf(0.1, 0.5), atol=0.03)
    far = simulation_p_values(np.array([[99.0]]), draws[:, None], np.ones(len(draws)))
    assert_allclose(far, 1 / 100_001, rtol=1e-6)


# ------------------------------------------------------------------------------------------------- rows held out


@pytest.mark.parametrize("name", SPLITS)
@pytest.mark.parametrize("n", [3, 10, 101])
def test_rows_are_fitted_or_held_out(name, n):
    order = np.random.default_rng(0).permutation(n)
    pairs = SPLITS[name](order, 0.3, 5)
    for fitted, held in pairs:
        assert_array_equal(np.sort(np.concatenate([fitted, held])), np.arange(n))
        assert len(fitted) >= 2
        assert len(held) >= 1
    if name == "cross":
        assert_array_equal(np.sort(np.concatenate([held for _, held in pairs])), np.arange(n))
    if name == "last":
        assert pairs[0][0].max() < pairs[0][1].min()


def test_the_order_of_the_rows_does_not_decide():
    X = np.random.default_rng(0).normal(size=(50, 3))
    turned = np.random.default_rng(1).permutation(50)
    one = monitor_statistics.shuffle_by_content(X, np.random.default_rng(2))
    other = monitor_statistics.shuffle_by_content(X[turned], np.random.default_rng(2))
    assert_array_equal(X[one], X[turned][other])


def test_rows_that_choose_the_smoothing_are_spread_evenly(monkeypatch):
    monkeypatch.setattr(monitor_statistics, "_MOST_SMOOTHING_ROWS", 5)
    assert_array_equal(monitor_statistics.smoothing_rows(9), [0, 2, 4, 6, 8])
    assert_array_equal(monitor_statistics.smoothing_rows(3), [0, 1, 2])


def test_a_missing_cell_counts_for_a_usual_one():
    scale = np.array([0.5, 2.0])
    drawn = np.random.default_rng(0).normal(size=(200_000, 2)) * scale
    usual = (-0.5 * (drawn / scale) ** 2 - 0.5 * np.log(2 * np.pi * scale**2)).mean(axis=0)
    assert_allclose(monitor_statistics.mean_cell_log_density(scale), usual, atol=0.01)
    some = monitor_statistics.Measures(np.zeros(2), np.zeros(2), np.array([3.0, 2.0]), np.array([0, 1]))
    assert_allclose(some.unusualness[:, 2], 3.0)  # (a/s)² is 1 on average
