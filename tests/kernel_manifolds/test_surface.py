"""The surface of kernel methods as a map of latent space."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prinfold.kernel_manifolds.surface import KernelMap
from prinfold.numerics.radial_kernels import GAUSSIAN_CUT, PROFILES, Gaussian

KERNELS = {**PROFILES, "truncated": Gaussian(GAUSSIAN_CUT)}
kernels = pytest.mark.parametrize("profile", KERNELS.values(), ids=KERNELS.keys())


def curve(profile, m=60):
    t = np.linspace(0, 6, m)[:, None]
    return KernelMap(t, np.hstack([np.cos(t), np.sin(t), t]), np.ones(m), profile)


@kernels
def test_points_lie_in_the_hull_of_the_values(profile):
    surface = curve(profile)
    Y = surface.point(np.random.default_rng(0).uniform(-20, 30, (200, 1)))
    assert (surface.values.min(axis=0) - 1e-12 <= Y).all()
    assert (surface.values.max(axis=0) + 1e-12 >= Y).all()


@kernels
def test_the_density_at_a_centre_is_at_least_its_share(profile):
    surface = curve(profile)
    density = surface.density(surface.centers)
    assert (density >= 1 / 60 - 1e-15).all()
    assert (density <= 1 + 1e-15).all()
    assert_allclose(np.exp(surface.log_density(surface.centers)[0]), density)


@kernels
def test_shifting_and_turning_the_values_carries_through(profile):
    surface, rng = curve(profile), np.random.default_rng(1)
    turn, shift = np.linalg.qr(rng.normal(size=(3, 3)))[0], rng.normal(size=3)
    moved = KernelMap(surface.centers, surface.values @ turn.T + shift, surface.weight, profile)
    Z = rng.uniform(0, 6, (30, 1))
    assert_allclose(moved.point(Z), surface.point(Z) @ turn.T + shift, atol=1e-12)
    assert_allclose(moved.jacobian(Z), turn @ surface.jacobian(Z), atol=1e-11)


@kernels
def test_a_single_centre_is_a_single_point(profile):
    surface = KernelMap(np.zeros((1, 2)), np.array([[3.0, 4.0]]), np.array([0.5]), profile)
    Z = np.array([[0.0, 0.0], [0.3, 0.1], [9.0, 9.0]])
    assert_allclose(surface.point(Z), [[3.0, 4.0]] * 3)
    assert_allclose(surface.jacobian(Z), 0.0, atol=1e-15)
    assert surface.density(Z)[0] == 1.0


def test_latent_points_far_apart_in_bandwidths_interpolate():
    surface = KernelMap(100.0 * np.arange(5.0)[:, None], np.arange(5.0)[:, None] ** 2, np.ones(5), Gaussian())
    assert_allclose(surface.point(surface.centers), surface.values, atol=1e-12)
