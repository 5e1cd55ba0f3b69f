"""Densities on a sphere, and what rows are there."""

from __future__ import annotations

import numpy as np
import pytest
from tests.densities import mixture_density

from prinfold.density.densities import KernelDensity
from prinfold.density.mixtures import MixtureDensity
from prinfold.density.ridges.mean_shift import Flow, Status
from prinfold.density.row_spaces import SPACES, Flat, Globe, globe_of
from prinfold.density.sphere import Restricted, SphereDensity
from prinfold.exceptions import InvalidDataError

GLOBE = Globe()


def places(n: int = 60, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack([rng.uniform(-180, 180, n), np.degrees(np.arcsin(rng.uniform(-1, 1, n)))], axis=1)


def density(h: float, n: int = 60) -> SphereDensity:
    return SphereDensity(KernelDensity(GLOBE.enter(places(n)), np.ones(n), h), h, GLOBE.radius)


# -------------------------------------------------------------------------------------------------------- spaces


@pytest.mark.parametrize("west", [-180.0, 0.0])
def test_entering_and_leaving_is_nothing(west):
    X = places()
    X[:, 0] = west + np.mod(X[:, 0] - west, 360.0)
    globe = Globe(west)
    np.testing.assert_allclose(globe.leave(globe.enter(X)), X, atol=1e-11)
    np.testing.assert_allclose(np.linalg.norm(globe.enter(X), axis=1), 180 / np.pi)


def test_longitudes_are_written_as_they_came():
    assert globe_of(np.array([[10.0, 0.0], [350.0, 0.0]])).west == 0.0
    assert globe_of(np.array([[-10.0, 0.0], [170.0, 0.0]])).west == -180.0
    assert globe_of(np.array([[10.0, 0.0], [170.0, 0.0]])).west == -180.0
    assert isinstance(SPACES["flat"](np.zeros((2, 2))), Flat)


def test_a_degree_has_length_one():
    X = np.array([[0.0, 0.0], [0.0, 30.0], [90.0, 0.0], [180.0, 0.0]])
    P = GLOBE.enter(X)
    arcs = np.sqrt(GLOBE.squared_length(np.square(P - P[0]).sum(axis=1)))
    np.testing.assert_allclose(arcs, [0, 30, 90, 180], atol=1e-6)


def test_the_jacobian_of_leaving_is_its_derivative():
    P = GLOBE.enter(places(20))
    got, eps = GLOBE.leave_jacobian(P), 1e-5
    for j in range(3):
        step = eps * np.eye(3)[j]
        difference = (GLOBE.leave(P + step) - GLOBE.leave(P - step)) / (2 * eps)
        np.testing.assert_allclose(got[:, :, j], difference, rtol=1e-5, atol=1e-7)


def test_poles_and_latitudes_beyond():
    assert np.isfinite(GLOBE.leave_jacobian(GLOBE.enter(np.array([[0.0, 90.0], [0.0, -90.0]])))).all()
    with pytest.raises(InvalidDataError, match=r"beyond ±90 degrees, the first being row 1: 120"):
        GLOBE.enter(np.array([[0.0, 0.0], [10.0, 120.0]]))
    with pytest.raises(InvalidDataError, match=r"two columns.*n_features = 3"):
        GLOBE.dimension(3)


# ------------------------------------------------------------------------------------------------------- density


@pytest.mark.parametrize("h", [8.0, 40.0, 200.0])
def test_the_density_integrates_to_one(h):
    sines, longitudes = (np.arange(400) + 0.5) / 200 - 1, (np.arange(400) + 0.5) * 0.9
    grid = np.stack(np.meshgrid(longitudes, np.degrees(np.arcsin(sines)), indexing="ij"), axis=-1).reshape(-1, 2)
    p = np.exp(density(h).log_density(GLOBE.enter(grid)))
    np.testing.assert_allclose(p.mean() * 4 * np.pi * GLOBE.radius**2, 1.0, rtol=2e-3)


def test_derivatives_are_those_along_great_circles():
    """f(exp(t v)) = f + t gᵀv + ½ t² vᵀHv + …, along the great circle that leaves in direction v."""
    model, P = density(25.0), GLOBE.enter(places(15, seed=5))
    at = model.derivatives(P)
    R, t = GLOBE.radius, 0.05
    for v in np.moveaxis(GLOBE.frame(P), 2, 0):
        ahead, behind = (np.cos(t / R) * P + s * R * np.sin(t / R) * v for s in (1, -1))
        up, down = model.log_density(ahead), model.log_density(behind)
        np.testing.assert_allclose(np.einsum("ni,ni->n", at.gradient, v), (up - down) / (2 * t), atol=1e-6)
        bend = (up - 2 * at.log_density + down) / t**2
        np.testing.assert_allclose(np.einsum("ni,nij,nj->n", v, at.hessian, v), bend, atol=1e-6)
    np.testing.assert_allclose(np.einsum("ni,ni->n", at.gradient, P), 0.0, atol=1e-12)


def test_turning_the_globe_turns_the_ridge():
    rng = np.random.default_rng(1)
    X = np.stack([rng.uniform(0, 90, 150), rng.normal(60, 3, 150)], axis=1)
    turn = np.linalg.qr(rng.standard_normal((3, 3)))[0]

    def ridge(P):
        model = SphereDensity(KernelDensity(P, np.ones(150), 6.0), 6.0, GLOBE.radius)
        return Flow(model, 1, sphere=GLOBE)(P)

    here, there = ridge(GLOBE.enter(X)), ridge(GLOBE.enter(X) @ turn.T)
    np.testing.assert_array_equal(here.status, there.status)
    np.testing.assert_allclose(there.points, here.points @ turn.T, atol=1e-5)


def test_a_belt_round_the_pole_is_a_circle_of_latitude():
    """In the plane of longitude and latitude a ring at 80 degrees would be torn at its seam and stretched."""
    rng = np.random.default_rng(2)
    X = np.stack([rng.uniform(-180, 180, 400), rng.normal(80, 1.0, 400)], axis=1)
    P = GLOBE.enter(X)
    found = Flow(SphereDensity(KernelDensity(P, np.ones(400), 2.0), 2.0, GLOBE.radius), 1, sphere=GLOBE)(P)
    kept = GLOBE.leave(found.points[found.status == Status.CONVERGED])
    assert (found.status == Status.CONVERGED).mean() > 0.97
    assert np.abs(kept[:, 1] - 80.0).mean() < 0.4
    assert np.diff(np.sort(kept[:, 0])).max() < 30.0


def test_any_density_in_space_has_derivatives_along_a_sphere():
    """Along great circles, by differences; and those of a density on the sphere stay as they are."""
    X, inner = GLOBE.enter(places(20, 3)), mixture_density(3)
    scaled = MixtureDensity(inner.weights, 40 * inner.means, 1600 * inner.covariances)
    restricted = Restricted(scaled, GLOBE.radius)
    at, frame = restricted.derivatives(X), GLOBE.frame(X)
    for direction in np.moveaxis(frame @ np.array([[1.0, 0.0, 0.6], [0.0, 1.0, 0.8]]), 2, 0):

        def along(s, direction=direction):
            turn = s / GLOBE.radius
            return restricted.log_density(np.cos(turn) * X + np.sin(turn) * GLOBE.radius * direction)

        slope, bend = (along(0.01) - along(-0.01)) / 0.02, (along(0.1) - 2 * along(0.0) + along(-0.1)) / 0.01
        np.testing.assert_allclose(np.einsum("ni,ni->n", at.gradient, direction), slope, atol=1e-6)
        np.testing.assert_allclose(np.einsum("nij,ni,nj->n", at.hessian, direction, direction), bend, atol=1e-5)
    own = density(20.0)
    for once, twice in zip(own.derivatives(X), Restricted(own, GLOBE.radius).derivatives(X), strict=True):
        np.testing.assert_allclose(twice, once, atol=1e-12)
