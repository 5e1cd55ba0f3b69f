"""Turning and bending against closed forms."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from prinfold._typing import Mesh
from prinfold.exceptions import InvalidDataError
from prinfold.geometry.domain import Box, UnitSphere
from prinfold.geometry.roughness import (
    Roughness,
    angle_sum,
    angles_between,
    bending,
    graph_roughness,
    quadrature,
    surface_roughness,
)


def curve_roughness(vertices, closed=False):
    """Turns of a chain from step to step, by the definition."""
    chain = np.vstack([vertices, vertices[:1]]) if closed else vertices
    steps = np.diff(chain, axis=0)
    turns = angles_between(steps, np.roll(steps, -1, axis=0))
    total, size = turns[: None if closed else -1].sum(), np.linalg.norm(steps, axis=1).sum()
    return Roughness(total, total / size, size)


def polygon(n, radius=1.0):
    t = 2 * np.pi * np.arange(n) / n
    return radius * np.stack([np.cos(t), np.sin(t)], axis=1)


def grid_mesh(u, v, wrap_u=False, wrap_v=False):
    latent = np.stack(np.meshgrid(u, v, indexing="ij"), axis=-1).reshape(-1, 2)
    number = np.arange(len(latent)).reshape(len(u), len(v))
    number = np.vstack([number, number[:1]]) if wrap_u else number
    number = np.hstack([number, number[:, :1]]) if wrap_v else number
    a, b, c, d = number[:-1, :-1], number[1:, :-1], number[:-1, 1:], number[1:, 1:]
    faces = np.concatenate([np.stack([a, b, d], -1).reshape(-1, 3), np.stack([a, d, c], -1).reshape(-1, 3)])
    return Mesh(np.zeros((len(latent), 3)), latent, faces)


def stack(*rows):
    return np.stack([np.stack(np.broadcast_arrays(*row), axis=-1) for row in rows], axis=1)


def cylinder(Z):
    return stack([-2 * np.sin(Z[:, 0]), 0 * Z[:, 1]], [2 * np.cos(Z[:, 0]), 0 * Z[:, 1]], [0 * Z[:, 0], 1.0])


def torus(Z, R=3.0, r=1.0):
    u, v = Z.T
    w = R + r * np.cos(v)
    return stack(
        [-w * np.sin(u), -r * np.sin(v) * np.cos(u)],
        [w * np.cos(u), -r * np.sin(v) * np.sin(u)],
        [0 * u, r * np.cos(v)],
    )


def clifford(Z):
    """The flat torus of two unit circles in four dimensions: κ = 1 both ways, in different normals."""
    u, v = Z.T
    return stack([-np.sin(u), 0 * v], [np.cos(u), 0 * v], [0 * u, -np.sin(v)], [0 * u, np.cos(v)])


def chain_roughness(vertices, closed=False):
    """Roughness of the polyline through vertices in order, by its segments."""
    index = np.arange(len(vertices))
    segments = np.stack([index, np.roll(index, -1)], axis=1)
    return graph_roughness(vertices, segments if closed else segments[:-1])


def turning(chain):
    """The sum of the angles between steps, one after the other."""
    steps = np.diff(chain, axis=0)
    steps /= np.linalg.norm(steps, axis=1, keepdims=True)
    return sum(float(np.arccos(a @ b)) for a, b in itertools.pairwise(steps))


ANGLES = np.linspace(0, 2 * np.pi, 24, endpoint=False)
RING = Box.of((0, 2 * np.pi), (0, 2 * np.pi), periodic=(True, True))


@pytest.mark.parametrize("n", [3, 7, 50])
def test_a_closed_convex_curve_turns_once(n):
    rough = chain_roughness(polygon(n), closed=True)
    side = 2 * np.sin(np.pi / n)
    assert rough.total == pytest.approx(2 * np.pi, rel=1e-12)
    assert rough.size == pytest.approx(n * side)
    assert rough.mean == pytest.approx(2 * np.pi / (n * side))


def test_a_right_angle_is_a_right_angle_with_any_number_of_nodes():
    # PPS figure 7 (a)-(c): R = 90 whatever the number of nodes.
    for m in (1, 2, 5):
        leg = np.arange(m + 1)[:, None] / m
        path = np.vstack([leg * [1, 0], [1, 0] + leg[1:] * [0, 1]])
        assert np.degrees(chain_roughness(path).total) == pytest.approx(90)
        assert angle_sum(np.diff(path, axis=0)) == pytest.approx(90)


def test_repeated_points_and_points_alone_do_not_turn():
    bent = np.array([[0.0, 0], [1, 0], [1, 0], [1, 1]])
    assert chain_roughness(bent).total == pytest.approx(np.pi / 2)
    assert chain_roughness(np.zeros((4, 3))) == (0.0, 0.0, 0.0)
    assert chain_roughness(np.zeros((1, 3)), closed=True) == (0.0, 0.0, 0.0)


@given(st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_segments_in_any_order_turn_like_the_chain(seed):
    rng = np.random.default_rng(seed)
    chain = rng.normal(size=(9, 3))
    segments = np.stack([np.arange(8), np.arange(1, 9)], axis=1)[rng.permutation(8)]
    flip = rng.random(8) < 0.5
    segments[flip] = segments[flip, ::-1]
    assert graph_roughness(chain, segments).total == pytest.approx(turning(chain), rel=1e-9)
    closed = np.vstack([chain, chain[:1]])  # ends that coincide close the curve
    segments = np.vstack([segments, [8, 9]])
    around = turning(np.vstack([closed, chain[1:2]]))
    assert graph_roughness(closed, segments).total == pytest.approx(around, rel=1e-9)


def test_scale_leaves_turning_alone_and_divides_turning_per_length():
    chain = np.random.default_rng(0).normal(size=(20, 4))
    plain, large = chain_roughness(chain), chain_roughness(5 * chain)
    assert large.total == pytest.approx(plain.total)
    assert large.mean == pytest.approx(plain.mean / 5)


def test_angle_sum_of_a_grid_averages_over_grid_lines():
    # A half cylinder of 5 × 3 nodes: each of 3 lines turns 180°, each of 5 rulings 0°.
    u = np.linspace(0, np.pi, 5)
    Z = np.stack(np.meshgrid(u, [0.0, 0.5, 1.0], indexing="ij"), axis=-1).reshape(-1, 2)
    J = cylinder(Z).reshape(5, 3, 3, 2)
    assert angle_sum(J) == pytest.approx(3 * 180 / 8)
    assert angle_sum(J, degrees=False) == pytest.approx(3 * np.pi / 8)


def test_angle_sum_passes_over_zero_tangents_and_names_bad_shapes():
    assert angle_sum(np.array([[1.0, 0], [0, 0], [0, 1]])) == pytest.approx(90)
    with pytest.raises(InvalidDataError, match="tangents must be"):
        angle_sum(np.zeros((4, 4, 3, 3)))
    with pytest.raises(InvalidDataError, match="two columns"):
        graph_roughness(np.zeros((3, 2)), np.zeros((1, 3), dtype=int))


def test_the_sphere_bends_by_eight_pi_whatever_its_radius():
    points = np.random.default_rng(1).normal(size=(150, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    mesh = Mesh(points, points, ConvexHull(points).simplices)
    for radius in (1.0, 3.0):
        rough = surface_roughness(lambda Z, r=radius: np.tile(r * np.eye(3), (len(Z), 1, 1)), UnitSphere(), mesh)
        assert rough.total == pytest.approx(8 * np.pi, rel=1e-4)
        assert rough.size == pytest.approx(4 * np.pi * radius**2, rel=1e-4)
        assert rough.mean == pytest.approx(2 / radius**2, rel=1e-4)


def test_cylinder_torus_and_clifford_torus():
    box = Box.of((0, 2 * np.pi), (0, 3), periodic=(True, False))
    rough = surface_roughness(cylinder, box, grid_mesh(ANGLES, np.linspace(0, 3, 4), wrap_u=True))
    assert rough.total == pytest.approx(0.25 * 2 * np.pi * 2 * 3, rel=1e-6)
    mesh = grid_mesh(ANGLES, ANGLES, True, True)
    rough = surface_roughness(torus, RING, mesh)
    v = np.linspace(0, 2 * np.pi, 4000, endpoint=False)
    # κ₁ = 1/r, κ₂ = cos v / (R + r cos v), dA = r (R + r cos v) du dv.
    exact = 2 * np.pi * 2 * np.pi * np.mean((3 + np.cos(v)) + np.cos(v) ** 2 / (3 + np.cos(v)))
    assert rough.total == pytest.approx(exact, rel=1e-4)
    assert rough.size == pytest.approx(4 * np.pi**2 * 3, rel=1e-4)
    flat = surface_roughness(clifford, RING, mesh._replace(vertices=np.zeros((len(mesh.latent), 4))))
    assert flat.mean == pytest.approx(2.0, rel=1e-6)


def test_a_plane_does_not_bend_however_it_is_parametrised():
    def jacobian(Z):  # (u, v) ↦ (u + u³, v + u v, 2u + 2u³) lies in a plane
        u, v = Z.T
        return stack([1 + 3 * u**2, 0 * v], [v, 1 + u], [2 + 6 * u**2, 0 * v])

    Z = np.random.default_rng(2).uniform(-0.9, 0.9, size=(40, 2))
    np.testing.assert_allclose(bending(jacobian, Box.of((-1, 1), (-1, 1)), Z), 0.0, atol=1e-8)


def test_bending_does_not_depend_on_the_parametrisation():
    # The unit sphere by latitude and longitude, away from its poles, is still κ₁² + κ₂² = 2.
    def jacobian(Z):
        u, v = Z.T
        return stack(
            [-np.sin(u) * np.cos(v), -np.cos(u) * np.sin(v)],
            [np.cos(u) * np.cos(v), -np.sin(u) * np.sin(v)],
            [0 * u, np.cos(v)],
        )

    Z = np.random.default_rng(3).uniform(-1.2, 1.2, size=(40, 2))
    np.testing.assert_allclose(bending(jacobian, Box.of((-1.5, 1.5), (-1.5, 1.5)), Z), 2.0, rtol=1e-5)


def test_a_curve_in_space_bends_by_its_squared_curvature():
    def helix(Z):
        t = Z[:, 0]
        return stack([-np.sin(t)], [np.cos(t)], [0 * t + 1.0])

    t = np.linspace(0, 4, 20)
    mesh = Mesh(np.zeros((20, 3)), t[:, None], np.stack([np.arange(19), np.arange(1, 20)], axis=1))
    rough = surface_roughness(helix, Box.of((0, 4)), mesh)
    assert rough.size == pytest.approx(4 * np.sqrt(2))
    assert rough.mean == pytest.approx(0.25, rel=1e-6)  # κ = a / (a² + b²) = ½


@pytest.mark.parametrize(("q", "degree"), [(1, 5), (2, 4), (3, 2)])
def test_quadrature_is_exact_to_its_degree(q, degree):
    corners = np.vstack([np.zeros(q), np.eye(q)])[None]
    Z, T, weights = quadrature(Box.of(*[(-1, 2)] * q), corners)
    np.testing.assert_allclose(T, np.tile(np.eye(q), (len(Z), 1, 1)), atol=1e-9)
    from math import factorial

    for power in range(degree + 1):  # ∫ x^p over the unit simplex = p! / (p + q)!
        assert (weights * Z[:, 0] ** power).sum() == pytest.approx(factorial(power) / factorial(power + q), rel=1e-9)


def test_faces_of_too_many_corners_are_named():
    mesh = Mesh(np.zeros((5, 4)), np.zeros((5, 4)), np.arange(5)[None])
    with pytest.raises(InvalidDataError, match="2, 3 or 4 corners"):
        surface_roughness(lambda Z: np.tile(np.eye(4), (len(Z), 1, 1)), Box.of(*[(0, 1)] * 4), mesh)
