"""Exact feet on simplices: against every-face brute force, an independent solver, and the plane's own geometry."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from prinfold.exceptions import InvalidDataError
from prinfold.geometry import simplices
from prinfold.geometry.simplices import foot_on_each, nearest_on_simplices, nearest_on_simplices_reference


def soup(seed: int, q: int, D: int, n: int = 60, V: int = 40, F: int = 70):
    rng = np.random.default_rng(seed)
    vertices = rng.normal(size=(V, D))
    faces = np.array([rng.choice(V, q + 1, replace=False) for _ in range(F)])
    return 1.5 * rng.normal(size=(n, D)), vertices, faces


def same_feet(a, b, tol=1e-10):
    np.testing.assert_allclose(a.squared_distance, b.squared_distance, rtol=tol, atol=tol**2)
    np.testing.assert_allclose(a.points, b.points, atol=1e-7)


@pytest.mark.parametrize("D", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("q", [0, 1, 2, 3, 4])
def test_pruned_search_equals_every_face_tried(q, D):
    X, vertices, faces = soup(10 * q + D, q, D)
    same_feet(nearest_on_simplices(X, vertices, faces), nearest_on_simplices_reference(X, vertices, faces))


@pytest.mark.parametrize("D", [3, 24])
def test_faces_of_very_different_sizes(D):
    X, vertices, faces = soup(3, 2, D, V=300, F=400)
    vertices[:200] = 0.01 * vertices[:200] + vertices[200 + np.arange(200) % 100]
    same_feet(nearest_on_simplices(X, vertices, faces), nearest_on_simplices_reference(X, vertices, faces))


@pytest.mark.parametrize("q", [1, 2, 3])
def test_one_simplex_equals_constrained_least_squares(q):
    rng = np.random.default_rng(q)
    corners, x = rng.normal(size=(50, q + 1, 5)), 2 * rng.normal(size=(50, 5))
    weights, points, squared = foot_on_each(x, corners)
    for i in range(50):
        # min ‖x − Cᵀλ‖² with λ ≥ 0 and a heavily weighted row for Σλ = 1: another algorithm altogether.
        A = np.vstack([corners[i].T, np.full(q + 1, 1e6)])
        expected, _ = nnls(A, np.append(x[i], 1e6))
        np.testing.assert_allclose(weights[i], expected, atol=1e-6)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-12)
    assert (weights >= 0).all()
    np.testing.assert_allclose(points, np.einsum("nj,njd->nd", weights, corners), atol=1e-12)
    np.testing.assert_allclose(squared, ((x - points) ** 2).sum(axis=1), atol=1e-12)


def test_the_seven_regions_of_a_triangle():
    triangle = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])
    x = np.array([[0.2, 0.3, 5], [-1, -1, 1], [2, -0.5, 0], [-0.5, 2, 0], [0.5, -1, 0], [-1, 0.5, 0], [1, 1, 0]])
    foot = nearest_on_simplices(x, triangle, np.array([[0, 1, 2]]))
    expected = [[0.2, 0.3, 0], [0, 0, 0], [1, 0, 0], [0, 1, 0], [0.5, 0, 0], [0, 0.5, 0], [0.5, 0.5, 0]]
    np.testing.assert_allclose(foot.points, expected, atol=1e-15)


@pytest.mark.parametrize(
    "corners",
    [
        [[0.0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]],
        [[0.0, 0, 0], [1, 0, 0], [1, 0, 0], [0, 0, 0]],
        [[0.0, 0, 0], [1, 1, 1], [2, 2, 2], [3, 3, 3]],
        [[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0.3, 0.3, 0]],
    ],
)
def test_degenerate_simplices_equal_the_hull_of_their_corners(corners):
    rng = np.random.default_rng(0)
    X, vertices = 2 * rng.normal(size=(40, 3)), np.array(corners)
    foot = nearest_on_simplices(X, vertices, np.array([[0, 1, 2, 3]]))
    grid = rng.dirichlet(np.full(4, 0.3), size=20000) @ vertices
    brute = ((X[:, None] - grid) ** 2).sum(axis=2).min(axis=1)
    assert np.isfinite(foot.points).all()
    assert (foot.squared_distance <= brute + 1e-12).all()
    np.testing.assert_allclose(foot.squared_distance, brute, atol=0.02, rtol=0.02)


@given(st.integers(0, 10_000), st.floats(0.01, 100))
@settings(max_examples=25, deadline=None)
def test_rigid_motion_and_scale_carry_through(seed, scale):
    X, vertices, faces = soup(seed, 2, 4, n=15, V=12, F=15)
    rng = np.random.default_rng(seed)
    Q, shift = np.linalg.qr(rng.normal(size=(4, 4)))[0], rng.normal(size=4)
    plain = nearest_on_simplices(X, vertices, faces)
    moved = nearest_on_simplices(scale * X @ Q + shift, scale * vertices @ Q + shift, faces)
    np.testing.assert_allclose(moved.points, scale * plain.points @ Q + shift, atol=1e-9 * max(1, scale))
    np.testing.assert_allclose(moved.squared_distance, scale**2 * plain.squared_distance, rtol=1e-9, atol=1e-18)


@pytest.mark.parametrize("D", [3, 20])
def test_far_from_the_origin_nothing_is_lost(D):
    X, vertices, faces = soup(5, 2, D)
    near, far = nearest_on_simplices(X, vertices, faces), nearest_on_simplices(X + 1e6, vertices + 1e6, faces)
    np.testing.assert_allclose(far.squared_distance, near.squared_distance, atol=1e-8)
    np.testing.assert_allclose(far.points - 1e6, near.points, atol=1e-8)


@pytest.mark.parametrize("D", [3, 30])
def test_points_of_the_soup_are_their_own_feet(D):
    rng = np.random.default_rng(1)
    _, vertices, faces = soup(6, 2, D)
    X = np.einsum("nj,njd->nd", rng.dirichlet(np.ones(3), size=len(faces)), vertices[faces])
    np.testing.assert_allclose(nearest_on_simplices(X, vertices, faces).points, X, atol=1e-13)


@pytest.mark.parametrize("D", [2, 20])
def test_small_blocks_change_nothing(D, monkeypatch):
    X, vertices, faces = soup(7, 2, D)
    whole = nearest_on_simplices(X, vertices, faces)
    monkeypatch.setattr(simplices, "_PAIR_NUMBERS", 200)
    monkeypatch.setattr(simplices, "_DISTANCE_NUMBERS", 200)
    same_feet(nearest_on_simplices(X, vertices, faces), whole, tol=1e-12)


@pytest.mark.parametrize("height", [0.0, 1e-12, 1e-7, 1e-4])
def test_thin_and_degenerate_faces_in_many_dimensions(height):
    X, vertices, faces = soup(11, 2, 30)
    a, b, _ = faces[::3].T
    faces[::3, 2] = len(vertices) + np.arange(len(a))
    off = height * np.random.default_rng(12).normal(size=(len(a), 30))
    vertices = np.vstack([vertices, 0.3 * vertices[a] + 0.7 * vertices[b] + off])
    same_feet(nearest_on_simplices(X, vertices, faces), nearest_on_simplices_reference(X, vertices, faces))


@pytest.mark.parametrize("D", [3, 30])
def test_vertices_of_no_face_are_not_there(D):
    X, vertices, faces = soup(13, 2, D)
    crowded = np.vstack([vertices, X])
    same_feet(nearest_on_simplices(X, crowded, faces), nearest_on_simplices(X, vertices, faces), tol=1e-9)


@pytest.mark.parametrize("D", [3, 40])
def test_a_soup_that_is_a_single_point_is_the_foot_of_every_row(D):
    rng = np.random.default_rng(D)
    X, vertices, faces = rng.normal(size=(20, D)), np.tile(rng.normal(size=D), (9, 1)), rng.integers(9, size=(14, 3))
    foot, slow = nearest_on_simplices(X, vertices, faces), nearest_on_simplices_reference(X, vertices, faces)
    np.testing.assert_allclose(foot.points, np.tile(vertices[:1], (20, 1)), rtol=1e-14)
    np.testing.assert_allclose(foot.squared_distance, slow.squared_distance, rtol=1e-12)


def test_no_rows_give_no_feet():
    _, vertices, faces = soup(8, 1, 3)
    foot = nearest_on_simplices(np.empty((0, 3)), vertices, faces)
    assert foot.points.shape == (0, 3)
    assert foot.barycentric.shape == (0, 2)


def test_what_cannot_work_is_named():
    X, vertices, faces = soup(9, 1, 3)
    with pytest.raises(InvalidDataError, match="at least one row"):
        nearest_on_simplices(X, vertices, faces[:0])
    with pytest.raises(InvalidDataError, match="equally many columns"):
        nearest_on_simplices(X[:, :2], vertices, faces)
    with pytest.raises(InvalidDataError, match="finite"):
        nearest_on_simplices(np.full_like(X, np.nan), vertices, faces)
