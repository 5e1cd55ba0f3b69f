"""Domains bounded by a contour: what is inside, how to get there, and projections that end on the contour."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from prinfold.geometry.projection import project_to_surface
from prinfold.geometry.region import Region
from prinfold.numerics.kernel_mixtures import Mixture
from prinfold.numerics.radial_kernels import PROFILES

kernels = pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES.keys())


def region(centers, threshold, profile):
    mix = Mixture(np.asarray(centers, dtype=float), np.ones(len(centers)), profile)
    inside = mix.log_density(mix.centers) >= np.log(threshold)
    low, high = mix.centers.min(axis=0) - 4, mix.centers.max(axis=0) + 4
    return Region(mix, float(np.log(threshold)), mix.centers[inside], tuple(low), tuple(high))


def disc(radius=0.8, profile=PROFILES["gaussian"], Q=2):
    """One kernel, whose contours are spheres about the origin."""
    return region(np.zeros((1, Q)), float(profile.value(np.array(radius**2))), profile)


def ring_of(profile):
    """Centres round a circle: a region with a hole."""
    angle = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    radius = 4.0 if profile.name == "gaussian" else 1.5
    return region(radius * np.stack([np.cos(angle), np.sin(angle)], axis=1), 0.06, profile)


def islands(profile):
    return region(np.array([[0.0, 0.0], [0.2, 0.1], [9.0, 0.0], [9.3, 0.2], [0.0, 30.0]]), 0.3, profile)


shapes = pytest.mark.parametrize(
    "make", [ring_of, islands, lambda profile: disc(0.7, profile)], ids=["ring", "islands", "disc"]
)


@kernels
def test_a_hole_is_outside(profile):
    ring = ring_of(profile)
    assert ring.contains(ring.anchors).all()
    assert len(ring.anchors) == 24
    assert_array_equal(ring.contains(np.array([[0.0, 0.0], [50.0, 0.0], [np.nan, 0.0], [np.inf, 0.0]])), False)


@kernels
@shapes
def test_retract_ends_inside_no_farther_than_the_nearest_anchor_and_stays_there(profile, make):
    domain, rng = make(profile), np.random.default_rng(0)
    Z = np.concatenate([rng.uniform(-12, 12, (200, 2)), 1e3 * rng.normal(size=(20, 2)), [[0.0, 0.0], [1e90, 0.0]]])
    once = domain.retract(Z)
    assert (domain.height(once) >= 0).all()
    assert domain.contains(once).all()
    nearest = np.linalg.norm(Z[:, None] - domain.anchors, axis=2).min(axis=1)
    assert (np.linalg.norm(once - Z, axis=1) <= nearest * (1 + 1e-12)).all()
    assert_array_equal(domain.retract(once), once)
    was_inside = domain.height(Z) >= 0
    assert_array_equal(once[was_inside], Z[was_inside])
    near = (nearest < 20) & ~was_inside
    assert near.any()
    assert domain.boundary(once[near]).all()


@kernels
@shapes
def test_each_row_is_retracted_on_its_own(profile, make):
    domain = make(profile)
    Z = np.random.default_rng(1).uniform(-8, 8, (40, 2))
    assert_array_equal(domain.retract(Z), np.concatenate([domain.retract(z[None]) for z in Z]))


@kernels
@pytest.mark.parametrize("Q", [1, 2, 3])
def test_the_nearest_place_of_a_ball_is_straight_ahead(profile, Q):
    Z = np.random.default_rng(2).normal(size=(30, Q))
    Z *= (0.71 + np.random.default_rng(3).uniform(0, 0.25, (30, 1))) / np.linalg.norm(Z, axis=1, keepdims=True)
    expected = 0.7 * Z / np.linalg.norm(Z, axis=1, keepdims=True)
    assert_allclose(disc(0.7, profile, Q).retract(Z), expected, atol=1e-9)


def test_a_region_of_single_points_is_those_points():
    domain = region(100.0 * np.arange(3.0)[:, None], 1 / 3, PROFILES["gaussian"])
    Z = np.array([[-7.0], [101.0], [160.0], [200.0]])
    # Within the root of the rounding error a density is as high as at its peak.
    assert_allclose(domain.retract(Z), [[0.0], [100.0], [200.0], [200.0]], atol=1e-7)
    assert_array_equal(domain.contains(np.array([[0.0], [0.1], [100.0], [150.0]])), [True, False, True, False])
    assert domain.boundary(domain.anchors).all()


# ------------------------------------------------------------------------------------------- projection


def bent(Z):
    """A sheet that bends upwards."""
    return np.stack([Z[:, 0], Z[:, 1], 0.3 * Z[:, 0] ** 2 - 0.1 * Z[:, 1] ** 2], axis=1)


def bent_jacobian(Z):
    J = np.zeros((len(Z), 3, 2))
    J[:, 0, 0] = J[:, 1, 1] = 1.0
    J[:, 2, 0], J[:, 2, 1] = 0.6 * Z[:, 0], -0.2 * Z[:, 1]
    return J


def project(domain, X, max_iter=200):
    spread = np.linalg.norm(X[:, None] - bent(domain.anchors), axis=2).argsort(axis=1)[:, :3]
    return project_to_surface(X, bent, bent_jacobian, domain, domain.anchors[spread], max_iter=max_iter)


@kernels
def test_projection_on_a_disc_is_exact(profile):
    """On a flat disc the nearest point of x is R x/‖x‖ outside, and x inside."""
    X = np.random.default_rng(4).normal(size=(60, 2))

    def jacobian(Z):
        return np.tile(np.eye(2), (len(Z), 1, 1))

    found = project_to_surface(X, lambda Z: Z, jacobian, disc(0.7, profile), np.zeros((60, 1, 2)))
    radius = np.linalg.norm(X, axis=1, keepdims=True)
    assert found.converged.all()
    assert_allclose(found.points, X * np.minimum(1.0, 0.7 / radius), atol=1e-8)


@kernels
@shapes
def test_projection_converges_to_places_where_descent_leads_out_of_the_region(profile, make):
    domain = make(profile)
    X = np.random.default_rng(5).normal(size=(80, 3)) * [5, 5, 2]
    found = project(domain, X)
    assert found.converged.all()
    assert (domain.height(found.latent) >= 0).all()
    gradient = -np.einsum("ndq,nd->nq", bent_jacobian(found.latent), X - found.points)
    edge = domain.boundary(found.latent)
    assert edge.any()
    assert_allclose(gradient[~edge], 0.0, atol=1e-8)
    slope = domain.density.log_density_gradient(found.latent)[1]
    steep = np.linalg.norm(slope, axis=1)
    sloped = edge & (steep > 1e-6)
    multiplier = np.einsum("nq,nq->n", gradient, slope) / np.where(steep > 0, steep, 1.0) ** 2
    assert (multiplier[sloped] >= -1e-7).all()
    assert_allclose((gradient - multiplier[:, None] * slope)[sloped], 0.0, atol=1e-6)


@kernels
def test_few_steps_along_the_contour_are_enough(profile):
    """Newton's method with the curvature of the contour: from starts near by, tens of steps would mean none of it."""
    domain = ring_of(profile)
    X = bent(1.6 * domain.anchors) + [0.0, 0.0, 0.4]
    exact, early = project(domain, X), project(domain, X, max_iter=9)
    assert domain.boundary(exact.latent).all()
    assert early.converged.mean() > 0.9
    assert_allclose(early.points[early.converged], exact.points[early.converged], atol=1e-7)


@shapes
def test_no_place_of_the_region_is_nearer(make):
    domain, rng = make(PROFILES["gaussian"]), np.random.default_rng(7)
    X = np.random.default_rng(6).normal(size=(40, 3)) * [4, 4, 1]
    found = project(domain, X)
    Z = domain.anchors[rng.integers(len(domain.anchors), size=4000)] + 1.5 * rng.normal(size=(4000, 2))
    brute = ((X[:, None] - bent(domain.retract(Z))) ** 2).sum(axis=2)
    assert (found.squared_distance <= brute.min(axis=1) + 1e-9).all()


def test_it_agrees_with_a_general_solver():
    domain = ring_of(PROFILES["gaussian"])
    X = np.random.default_rng(9).normal(size=(6, 3)) * [6, 6, 1]
    found = project(domain, X)
    for x, z, d in zip(X, found.latent, found.squared_distance, strict=True):
        other = minimize(
            lambda at, x=x: float(((x - bent(at[None])[0]) ** 2).sum()), z + 0.05, method="SLSQP",
            constraints={"type": "ineq", "fun": lambda at: domain.height(at[None])[0]}, tol=1e-12,
        )  # fmt: skip
        assert d <= other.fun + 1e-7
