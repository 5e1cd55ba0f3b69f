"""Stretch and size against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prinfold.exceptions import InvalidDataError
from prinfold.geometry.domain import Box, UnitSphere
from prinfold.geometry.metric import curve_length, face_volumes, mesh_volume, second_derivatives, stretch


@pytest.mark.parametrize(("D", "Q"), [(5, 2), (3, 1), (2, 2), (6, 3)])
def test_stretch_is_the_eigensystem_of_the_metric(D, Q):
    J = np.random.default_rng(D).normal(size=(20, D, Q))
    factor, directions, lengths = stretch(J)
    metric = np.swapaxes(J, 1, 2) @ J
    np.testing.assert_allclose(factor**2, np.linalg.det(metric), rtol=1e-10)
    np.testing.assert_allclose(metric @ directions, directions * (lengths**2)[:, None], atol=1e-10)
    np.testing.assert_allclose(np.swapaxes(directions, 1, 2) @ directions, np.tile(np.eye(Q), (20, 1, 1)), atol=1e-12)
    assert (np.diff(lengths, axis=1) <= 0).all()


def test_the_sign_of_a_direction_is_fixed():
    J = np.random.default_rng(0).normal(size=(50, 4, 3))
    directions = stretch(J).directions
    np.testing.assert_array_equal(directions, stretch(-J).directions)
    largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=1)[:, None], axis=1)
    assert (largest > 0).all()


def test_in_a_frame_the_radial_direction_does_not_count():
    Z = np.random.default_rng(1).normal(size=(30, 3))
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    J = np.tile(np.diag([2.0, 2.0, 2.0]), (30, 1, 1)) + 7 * Z[:, :, None] * Z[:, None, :]
    factor, directions, lengths = stretch(J, UnitSphere().frame(Z))
    np.testing.assert_allclose(factor, 4.0)
    np.testing.assert_allclose(lengths, 2.0)
    np.testing.assert_allclose(np.einsum("nqj,nq->nj", directions, Z), 0.0, atol=1e-12)


def test_a_map_to_fewer_dimensions_flattens():
    factor, directions, lengths = stretch(np.array([[[3.0, 4.0]]]))
    np.testing.assert_allclose(factor, 0.0, atol=1e-15)
    np.testing.assert_allclose(lengths, [[5.0, 0.0]], atol=1e-14)
    np.testing.assert_allclose(directions[0], [[0.6, 0.8], [0.8, -0.6]], atol=1e-14)


def test_lengths_and_areas_known_by_heart():
    square = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
    assert curve_length(square) == pytest.approx(3)
    assert curve_length(square, closed=True) == pytest.approx(4)
    assert mesh_volume(square, np.array([[0, 1, 2], [0, 2, 3]])) == pytest.approx(1)
    assert mesh_volume(np.vstack([np.zeros(3), np.eye(3)]), np.array([[0, 1, 2, 3]])) == pytest.approx(1 / 6)
    assert mesh_volume(square, np.array([[0, 1], [1, 2]])) == pytest.approx(2)
    assert mesh_volume(square[:, :1], np.array([[0, 1, 2]])) == 0.0
    with pytest.raises(InvalidDataError, match="table of corner indices"):
        face_volumes(square, np.array([0, 1, 2]))


@given(st.integers(0, 1000), st.floats(0.01, 100))
@settings(max_examples=20, deadline=None)
def test_volumes_are_rigid_and_scale_with_their_dimension(seed, scale):
    rng = np.random.default_rng(seed)
    Q, vertices = np.linalg.qr(rng.normal(size=(4, 4)))[0], rng.normal(size=(6, 4))
    for q in (1, 2, 3):
        faces = np.array([rng.choice(6, q + 1, replace=False) for _ in range(4)])
        expected = scale**q * mesh_volume(vertices, faces)
        assert mesh_volume(scale * vertices @ Q + 3.0, faces) == pytest.approx(expected, rel=1e-9)


def test_second_derivatives_of_a_polynomial_are_exact_up_to_the_edge():
    def jacobian(Z):
        u, v = Z.T
        return np.stack([np.stack([2 * u, 0 * v], 1), np.stack([v, u], 1), np.stack([3 * u**2, 1 + 0 * v], 1)], 1)

    Z = np.array([[0.3, 0.2], [1.0, -1.0], [-1.0, 0.5]])
    second = second_derivatives(jacobian, Box.of((-1, 1), (-1, 1)), Z)
    expected = np.zeros((3, 3, 2, 2))
    expected[:, 0, 0, 0], expected[:, 1, 0, 1], expected[:, 1, 1, 0], expected[:, 2, 0, 0] = 2, 1, 1, 6 * Z[:, 0]
    # One-sided at the edge of the cubic: an error of the order of the step.
    np.testing.assert_allclose(second, expected, atol=1e-4)
    np.testing.assert_allclose(second[0], expected[0], atol=1e-8)


@pytest.mark.parametrize("radial", [0.0, 1.0, -2.0])
def test_second_derivatives_on_the_sphere_do_not_depend_on_the_extension(radial):
    # y(z) = z for unit z, extended off the sphere as |z|^(radial − 1) z: same surface, other radial derivative.
    Z = np.random.default_rng(2).normal(size=(10, 3))
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)

    def jacobian(U):
        return np.eye(3) + (radial - 1) * U[:, :, None] * U[:, None, :]

    second = second_derivatives(jacobian, UnitSphere(), Z)
    np.testing.assert_allclose(second, -Z[:, :, None, None] * np.eye(2), atol=1e-6)
