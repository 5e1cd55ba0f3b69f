"""Projection and regression in turn: each step against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prinfold import ElasticNetBasis
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.geometry.column_span import ColumnSpan
from prinfold.latent import grid, line
from prinfold.surfaces import principal_surface_training, projected_regression, regularized_manifold_training
from prinfold.surfaces.projected_regression import (
    RegressionSums,
    SurfaceRows,
    SurfaceState,
    fill_latent_space,
    starting_places,
)


@pytest.fixture(scope="module")
def net() -> BasisMap:
    latent = grid(4, 5)
    return BasisMap(latent, ElasticNetBasis().bind(latent))


@pytest.fixture(scope="module")
def sample() -> SurfaceRows:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((60, 3)) * [3.0, 2.0, 0.3]
    weight = rng.integers(1, 4, 60).astype(float)
    return SurfaceRows(rows - np.average(rows, axis=0, weights=weight), weight)


@pytest.fixture(scope="module")
def places() -> np.ndarray:
    return np.random.default_rng(1).uniform(-1, 1, (60, 2))


def hat(net: BasisMap, sample: SurfaceRows, Z: np.ndarray, penalty: float) -> np.ndarray:
    """(n, n) what makes fitted rows of rows, without any short cut."""
    Phi, G = net.basis.features(Z), np.diag(sample.weight / sample.weight.sum())
    return Phi @ np.linalg.solve(Phi.T @ G @ Phi + penalty * np.diag(net.penalty_mask), Phi.T @ G)


@pytest.mark.parametrize("penalty", [1e-3, 1.0])
def test_a_regression_is_that_of_the_normal_equations(net, sample, places, penalty):
    sums, H = RegressionSums.of(net, sample, places), hat(net, sample, places, penalty)
    weights = sums.weights(penalty)
    assert_allclose(net.point(places, weights), H @ sample.rows, atol=1e-9)
    assert_allclose(sums.freedom(penalty), np.trace(H), rtol=1e-9)
    squared = np.square(sample.rows - H @ sample.rows).sum(axis=1)
    assert_allclose(sums.error(weights), np.average(squared, weights=sample.weight), rtol=1e-9)


def test_no_other_weights_have_a_lower_risk(net, sample, places):
    sums, rng = RegressionSums.of(net, sample, places), np.random.default_rng(2)
    best, least = sums.weights(0.1), sums.risk(0.1)
    for _ in range(5):
        other = best + 1e-3 * rng.standard_normal(best.shape)
        assert sums.error(other) + 0.1 * net.roughness(other) > least


def test_rows_in_parts_give_the_sums_of_all(net, sample, places, monkeypatch):
    whole = RegressionSums.of(net, sample, places)
    monkeypatch.setattr(projected_regression, "_ROWS_AT_ONCE", 7)
    parts = RegressionSums.of(net, sample, places)
    assert_allclose(parts.gram, whole.gram, atol=1e-14)
    assert_allclose(parts.moment, whole.moment, atol=1e-14)


def test_cross_validation_takes_the_lowest_score_of_the_dense_formula(net, sample, places):
    n, scores = sample.weight.sum(), []
    for penalty in principal_surface_training.PENALTIES:
        H = hat(net, sample, places, penalty)
        error = np.average(np.square(sample.rows - H @ sample.rows).sum(axis=1), weights=sample.weight)
        scores.append(error / (1.0 - principal_surface_training.DF_FACTOR * np.trace(H) / n) ** 2)
    assert (
        principal_surface_training.cross_validation_penalty(RegressionSums.of(net, sample, places))
        == principal_surface_training.PENALTIES[np.argmin(scores)]
    )


def test_of_penalties_that_do_as_well_the_largest_is_taken(net, places):
    flat = SurfaceRows(places - places.mean(axis=0), np.ones(60))  # a plane costs nothing at any penalty
    assert (
        principal_surface_training.cross_validation_penalty(RegressionSums.of(net, flat, places))
        == principal_surface_training.PENALTIES[-1]
    )


def test_too_few_rows_for_any_freedom_are_smoothed_most(net):
    few = SurfaceRows(np.array([[-1.0, 0.0], [1.0, 0.0]]), np.ones(2))
    assert (
        principal_surface_training.cross_validation_penalty(RegressionSums.of(net, few, np.array([[-1.0, 0], [1, 0]])))
        == principal_surface_training.PENALTIES[-1]
    )


def test_a_penalty_never_falls(net, sample, places):
    sums = RegressionSums.of(net, sample, places)
    assert principal_surface_training.choose_penalty(net, sums, 1e3) == 1e3
    assert principal_surface_training.choose_penalty(
        net, sums, 0.0
    ) == principal_surface_training.cross_validation_penalty(sums)


def test_no_surface_bends_more_finely_than_its_noise_is_wide():
    latent = grid(11, 11)
    net, rng = BasisMap(latent, ElasticNetBasis().bind(latent)), np.random.default_rng(0)
    Z = rng.uniform(-1, 1, (4000, 2))
    rows = np.c_[3.0 * Z, 0.2 * rng.standard_normal((4000, 2))]  # nodes are 0.6 apart
    sums = RegressionSums.of(net, SurfaceRows(rows, np.ones(4000)), Z)
    assert principal_surface_training.least_penalty(net, sums, 1e-3) == pytest.approx(
        (principal_surface_training.FINEST_DEVIATIONS * 0.2 / 0.6) ** 4 / 121, rel=0.1
    )
    # Waves that so many rows tell from noise ask for less of a penalty, and get it at the start alone.
    waves = rows + np.c_[np.zeros((4000, 2)), 0.6 * np.sin(6.0 * Z)]
    sums = RegressionSums.of(net, SurfaceRows(waves, np.ones(4000)), Z)
    best = principal_surface_training.cross_validation_penalty(sums)
    assert principal_surface_training.choose_penalty(net, sums, 0.0) == best
    assert (
        principal_surface_training.choose_penalty(net, sums, best)
        == principal_surface_training.least_penalty(net, sums, best)
        > 3.0 * best
    )


def test_weights_stand_for_rows_and_small_ones_for_no_fewer():
    assert SurfaceRows(np.zeros((3, 1)), np.array([1.0, 2.0, 3.0])).size == 6.0
    assert SurfaceRows(np.zeros((3, 1)), np.full(3, 0.1)).size == pytest.approx(3.0)


def test_places_fill_the_latent_space_and_a_single_one_is_its_middle():
    Z = fill_latent_space(np.array([[3.0, 5.0], [4.0, 5.0], [7.0, 5.0]]))
    assert_allclose(Z, [[-1.0, 0.0], [-0.5, 0.0], [1.0, 0.0]])


@pytest.mark.parametrize("method", [principal_surface_training, regularized_manifold_training])
def test_a_step_is_a_regression_on_where_rows_are_and_then_a_projection(net, sample, places, method):
    alternation = method.alternation(net, 0.1)
    before = alternation.begin(sample, {"given": places})
    after = alternation.step(sample, before)
    where = fill_latent_space(before.latent) if method is principal_surface_training else before.latent
    expected = RegressionSums.of(net, sample, where).weights(0.1)
    assert_allclose(after.weights, expected, atol=1e-12)
    squared = np.square(sample.rows - net.point(after.latent, expected)).sum(axis=1)
    assert after.error == pytest.approx(np.average(squared, weights=sample.weight))
    assert after.error < before.error


def test_projection_finds_the_nearest_of_many_points(net, sample, places):
    alternation = principal_surface_training.alternation(net, 0.1)
    weights = RegressionSums.of(net, sample, places).weights(0.1)
    found = alternation.project(sample, SurfaceState(places, weights, 0.1, np.inf))
    assert alternation.domain.contains(found.latent).all()
    edge = 1.0 + principal_surface_training.REACH
    dense = net.point(grid(80, 80).nodes * edge, weights)
    nearest = np.square(sample.rows[:, None] - dense[None]).sum(axis=2).min(axis=1)
    own = np.square(sample.rows - net.point(found.latent, weights)).sum(axis=1)
    assert (own <= nearest + 1e-9).all()
    assert found.error == pytest.approx(np.average(own, weights=sample.weight))


@pytest.mark.parametrize("penalty", [None, 0.1])
def test_columns_that_the_surface_does_not_move_in_only_add_to_the_error(net, sample, places, penalty):
    rng = np.random.default_rng(3)
    frame = np.linalg.qr(rng.standard_normal((40, 40)))[0]
    wide = SurfaceRows(np.c_[sample.rows, np.zeros((60, 37))] @ frame.T, sample.weight)
    assert wide.rows.shape[1] > len(net.penalty_mask)  # so that distances are taken within a span
    states = []
    for each in (sample, wide):
        alternation = principal_surface_training.alternation(net, penalty)
        states.append(alternation.step(each, alternation.begin(each, {"given": places})))
    assert_allclose(states[1].latent, states[0].latent, atol=1e-5)
    assert states[1].error == pytest.approx(states[0].error)
    weights, off = states[1].weights, wide.rows + rng.standard_normal((60, 40))
    found = principal_surface_training.alternation(net, 0.1).project(SurfaceRows(off, wide.weight), states[1])
    squared = np.square(off - net.point(found.latent, weights)).sum(axis=1)
    assert found.error == pytest.approx(np.average(squared, weights=wide.weight))
    within, images = ColumnSpan.of(weights), net.point(places, weights)
    inside = np.square(within.inside(off) - within.inside(images)).sum(axis=1)
    assert_allclose(inside + within.outside(off), np.square(off - images).sum(axis=1))
    assert_allclose(within.from_coordinates(within.inside(images)), images, atol=1e-12)


def test_rows_go_no_farther_than_they_are_whatever_the_mesh_overlooks(monkeypatch):
    monkeypatch.setattr(projected_regression, "_MESH_PER_AXIS", {1: 2})
    latent, t = line(30), np.linspace(-1, 1, 40)
    net = BasisMap(latent, ElasticNetBasis().bind(latent))
    sample = SurfaceRows(np.stack([np.cos(6.0 * t), np.sin(6.0 * t) + t], axis=1), np.ones(40))  # nearly two turns
    weights = RegressionSums.of(net, sample, t[:, None]).weights(1e-9)
    found = principal_surface_training.alternation(net, 1e-9).project(
        sample, SurfaceState(t[:, None], weights, 1e-9, np.inf)
    )
    assert found.error <= np.square(sample.rows - net.point(t[:, None], weights)).sum(axis=1).mean()


def test_a_surface_that_begins_too_small_grows():
    latent, t = line(6), np.linspace(-1, 1, 30)[:, None]
    net = BasisMap(latent, ElasticNetBasis().bind(latent))
    alternation, sample = principal_surface_training.alternation(net, 1e-3), SurfaceRows(t @ [[3.0, 4.0]], np.ones(30))
    small = 0.95 * RegressionSums.of(net, sample, t).weights(1e-3)
    begun = alternation.project(sample, SurfaceState(t, small, 1e-3, np.inf))
    assert_allclose(begun.latent, t / 0.95, atol=1e-6)  # beyond the edges, where the surface is followed
    assert_allclose(net.point(t, alternation.step(sample, begun).weights), sample.rows, atol=1e-6)


def test_the_start_that_tells_more_is_taken():
    t = np.linspace(-1, 1, 50)
    latent = line(8)
    net = BasisMap(latent, ElasticNetBasis().bind(latent))
    sample = SurfaceRows(np.stack([t, t**2 - np.mean(t**2)], axis=1), np.ones(50))
    shuffled = np.random.default_rng(0).permutation(t)
    alternation = principal_surface_training.alternation(net, None)
    begun = alternation.begin(sample, {"shuffled": shuffled[:, None], "right": t[:, None]})
    assert begun.start == "right"
    assert begun.error < 1e-3


@pytest.mark.parametrize("name", ["auto", "pca", "isomap", "lle", "laplacian"])
def test_every_start_fills_the_latent_space(name, sample):
    for Z in starting_places(name, sample, 2).values():
        assert_allclose(Z.min(axis=0), -1.0)
        assert_allclose(Z.max(axis=0), 1.0)
