"""Nearest points on smooth surfaces: theorems that hold for every map, domain and row."""

from __future__ import annotations

import numpy as np
import pytest

from prinfold._typing import Mesh
from prinfold.exceptions import InvalidParameterError
from prinfold.geometry import projection
from prinfold.geometry.domain import Box, UnitSphere
from prinfold.geometry.projection import nearest_on_surface, project_to_surface
from prinfold.geometry.projection_starts import surface_starts


def stack(*rows):
    return np.stack([np.stack(np.broadcast_arrays(*row), axis=-1) for row in rows], axis=1)


def grid_mesh(point, axes, wrap):
    """A mesh of the map over a grid; periodic axes are joined, so that some faces cross the seam."""
    shape = [len(a) for a in axes]
    latent = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    number = np.arange(len(latent)).reshape(shape)
    for axis, joined in enumerate(wrap):
        if joined:
            number = np.concatenate([number, np.take(number, [0], axis=axis)], axis=axis)
    if len(axes) == 1:
        faces = np.stack([number[:-1], number[1:]], axis=1)
    elif len(axes) == 2:
        a, b, c, d = number[:-1, :-1], number[1:, :-1], number[:-1, 1:], number[1:, 1:]
        faces = np.concatenate([np.stack([a, b, d], -1).reshape(-1, 3), np.stack([a, d, c], -1).reshape(-1, 3)])
    else:
        faces = []
        for order in ([0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]):
            steps, at = [np.zeros(3, int)], np.zeros(3, int)
            for axis in order:
                at = at.copy()
                at[axis] = 1
                steps.append(at)
            cut = [number[tuple(slice(s[k], number.shape[k] - 1 + s[k]) for k in range(3))] for s in steps]
            faces.append(np.stack(cut, -1).reshape(-1, 4))
        faces = np.concatenate(faces)
    return Mesh(point(latent), latent, faces)


def circle():
    def point(Z):
        return np.stack([np.cos(Z[:, 0]), np.sin(Z[:, 0])], axis=1)

    def jacobian(Z):
        return stack([-np.sin(Z[:, 0])], [np.cos(Z[:, 0])])

    domain = Box.of((-np.pi, np.pi), periodic=(True,))
    return point, jacobian, domain, grid_mesh(point, [np.linspace(-np.pi, np.pi, 20, endpoint=False)], [True])


def torus():
    def point(Z):
        u, v = Z.T
        return np.stack([(2 + np.cos(v)) * np.cos(u), (2 + np.cos(v)) * np.sin(u), np.sin(v)], axis=1)

    def jacobian(Z):
        u, v = Z.T
        return stack(
            [-(2 + np.cos(v)) * np.sin(u), -np.sin(v) * np.cos(u)],
            [(2 + np.cos(v)) * np.cos(u), -np.sin(v) * np.sin(u)],
            [0 * u, np.cos(v)],
        )

    domain = Box.of((0, 2 * np.pi), (0, 2 * np.pi), periodic=(True, True))
    angles = np.linspace(0, 2 * np.pi, 16, endpoint=False)
    return point, jacobian, domain, grid_mesh(point, [angles, angles], [True, True])


def sphere():
    """The unit sphere squeezed to an ellipsoid, in three latent columns."""
    axes = np.array([1.0, 1.5, 0.7])

    def point(Z):
        return Z * axes

    def jacobian(Z):
        return np.tile(np.diag(axes), (len(Z), 1, 1))

    golden = np.pi * (3 - np.sqrt(5)) * np.arange(200)
    height = 1 - 2 * (np.arange(200) + 0.5) / 200
    ring = np.sqrt(1 - height**2)
    latent = np.stack([ring * np.cos(golden), ring * np.sin(golden), height], axis=1)
    from scipy.spatial import ConvexHull

    return point, jacobian, UnitSphere(), Mesh(point(latent), latent, ConvexHull(latent).simplices)


def wave(Q):
    """A curve, sheet or block bent into Q + 2 dimensions over [−1, 1]^Q."""

    def point(Z):
        bend = np.stack([np.sin(2 * Z.sum(axis=1)), np.cos(3 * Z[:, 0])], axis=1)
        return np.hstack([Z, bend])

    def jacobian(Z):
        J = np.zeros((len(Z), Q + 2, Q))
        J[:, :Q] = np.eye(Q)
        J[:, Q] = 2 * np.cos(2 * Z.sum(axis=1))[:, None]
        J[:, Q + 1, 0] = -3 * np.sin(3 * Z[:, 0])
        return J

    grid = np.linspace(-1, 1, {1: 30, 2: 15, 3: 7}[Q])
    return point, jacobian, Box.of(*[(-1, 1)] * Q), grid_mesh(point, [grid] * Q, [False] * Q)


SURFACES = {
    "circle": circle(),
    "torus": torus(),
    "ellipsoid": sphere(),
    "curve": wave(1),
    "sheet": wave(2),
    "block": wave(3),
}


@pytest.fixture(params=list(SURFACES))
def surface(request):
    return SURFACES[request.param]


def rows_about(mesh, n=80, seed=0):
    rng = np.random.default_rng(seed)
    D = mesh.vertices.shape[1]
    return mesh.vertices[rng.integers(len(mesh.vertices), size=n)] + 0.4 * rng.normal(size=(n, D))


def test_projecting_twice_is_projecting_once(surface):
    mesh = surface[3]
    once = nearest_on_surface(rows_about(mesh), *surface)
    twice = nearest_on_surface(once.points, *surface)
    assert once.converged.all()
    np.testing.assert_allclose(twice.points, once.points, atol=1e-9)
    np.testing.assert_allclose(twice.squared_distance, 0.0, atol=1e-16)


def test_no_start_no_vertex_and_no_dense_sample_is_nearer(surface):
    point, _, domain, mesh = surface
    X = rows_about(mesh, seed=1)
    found = nearest_on_surface(X, *surface)
    starts = surface_starts(X, mesh, domain, 4)
    rng = np.random.default_rng(2)
    cloud = domain.retract(
        mesh.latent[rng.integers(len(mesh.latent), size=4000)] + 0.3 * rng.normal(size=(4000, mesh.latent.shape[1]))
    )
    slack = 1e-12
    for places in (starts[:, 0], starts[:, -1]):
        assert (found.squared_distance <= ((X - point(places)) ** 2).sum(axis=1) + slack).all()
    for others in (mesh.vertices, point(cloud)):
        brute = ((X[:, None] - others) ** 2).sum(axis=2).min(axis=1)
        assert (found.squared_distance <= brute + slack).all()


def test_residuals_stand_upright_except_at_the_boundary(surface):
    _, jacobian, domain, mesh = surface
    X = rows_about(mesh, seed=3)
    found = nearest_on_surface(X, *surface)
    A = jacobian(found.latent) @ domain.frame(found.latent)
    slope = np.einsum("nd,ndj->nj", X - found.points, A)
    edge = np.zeros(slope.shape, dtype=bool)
    if np.isfinite(domain.extent.lower).all():
        low, high = found.latent <= domain.extent.lower, found.latent >= domain.extent.upper
        # At a bound the distance may only fall outwards.
        assert (slope[low] <= 1e-8).all()
        assert (slope[high] >= -1e-8).all()
        edge = low | high
        assert edge.any(), "the boundary case went untested"
    np.testing.assert_allclose(slope[~edge], 0.0, atol=1e-8)
    assert domain.contains(found.latent).all()


def test_a_row_alone_is_a_row_in_a_batch(surface):
    mesh = surface[3]
    X = rows_about(mesh, n=12, seed=4)
    batch = nearest_on_surface(X, *surface)
    alone = [nearest_on_surface(X[i : i + 1], *surface) for i in range(12)]
    np.testing.assert_allclose(np.vstack([a.points for a in alone]), batch.points, atol=1e-12)
    np.testing.assert_allclose(np.vstack([a.latent for a in alone]), batch.latent, atol=1e-10)


def test_small_blocks_change_nothing(surface, monkeypatch):
    mesh = surface[3]
    X = rows_about(mesh, n=15, seed=5)
    whole = nearest_on_surface(X, *surface)
    monkeypatch.setattr(projection, "_BLOCK_NUMBERS", 500)
    np.testing.assert_allclose(nearest_on_surface(X, *surface).points, whole.points, atol=1e-12)


def test_rigid_motion_and_a_far_shift_carry_through(surface):
    point, jacobian, domain, mesh = surface
    D = mesh.vertices.shape[1]
    Q, shift = np.linalg.qr(np.random.default_rng(6).normal(size=(D, D)))[0], np.full(D, 1e5)
    X = rows_about(mesh, seed=6)
    plain = nearest_on_surface(X, *surface)
    moved = nearest_on_surface(
        X @ Q + shift,
        lambda Z: point(Z) @ Q + shift,
        lambda Z: np.einsum("ndq,de->neq", jacobian(Z), Q),
        domain,
        mesh._replace(vertices=mesh.vertices @ Q + shift),
    )
    np.testing.assert_allclose(moved.points, plain.points @ Q + shift, atol=1e-6)
    np.testing.assert_allclose(moved.squared_distance, plain.squared_distance, atol=1e-8)
    assert moved.converged.all()


def test_a_map_in_single_precision_converges_to_single_precision(surface):
    point, jacobian, domain, mesh = surface
    X = rows_about(mesh, seed=9)
    plain = nearest_on_surface(X, *surface)
    single = nearest_on_surface(
        X, lambda Z: point(Z).astype(np.float32), lambda Z: jacobian(Z).astype(np.float32), domain, mesh
    )
    np.testing.assert_allclose(single.squared_distance, plain.squared_distance, atol=1e-5)
    assert single.converged.mean() > 0.95


def test_the_circle_has_a_closed_form():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(200, 2)) + 0.01
    found = nearest_on_surface(X, *SURFACES["circle"])
    np.testing.assert_allclose(found.points, X / np.linalg.norm(X, axis=1, keepdims=True), atol=1e-9)
    np.testing.assert_allclose(found.latent[:, 0], np.arctan2(X[:, 1], X[:, 0]), atol=1e-9)


def test_the_centre_of_a_circle_is_everywhere_as_far():
    found = nearest_on_surface(np.zeros((1, 2)), *SURFACES["circle"])
    assert found.converged.all()
    np.testing.assert_allclose(found.squared_distance, 1.0)


def test_a_start_on_the_far_side_does_not_stay_there():
    point, jacobian, domain, _ = SURFACES["circle"]
    found = project_to_surface(np.array([[0.5, 0.0]]), point, jacobian, domain, np.array([[[-np.pi]]]))
    np.testing.assert_allclose(found.points, [[1.0, 0.0]], atol=1e-9)
    assert found.converged.all()


def test_several_starts_find_the_nearer_fold():
    # A hairpin: the mesh is so coarse that its own foot is on the wrong branch.
    def point(Z):
        return np.stack([4 * Z[:, 0] ** 2, 0.3 * Z[:, 0] ** 3 + 0.4 * np.sin(5 * Z[:, 0])], axis=1)

    def jacobian(Z):
        return stack([8 * Z[:, 0]], [0.9 * Z[:, 0] ** 2 + 2 * np.cos(5 * Z[:, 0])])

    domain = Box.of((-1, 1))
    mesh = grid_mesh(point, [np.linspace(-1, 1, 12)], [False])
    X = np.random.default_rng(8).uniform([0, -1], [4, 1], size=(300, 2))
    found = nearest_on_surface(X, point, jacobian, domain, mesh)
    dense = point(np.linspace(-1, 1, 20001)[:, None])
    brute = ((X[:, None] - dense) ** 2).sum(axis=2).min(axis=1)
    assert (found.squared_distance <= brute + 1e-7).mean() > 0.97
    single = nearest_on_surface(X, point, jacobian, domain, mesh, n_starts=1)
    assert (found.squared_distance <= single.squared_distance + 1e-12).all()
    assert (found.squared_distance < single.squared_distance - 1e-3).any()


def test_starts_across_the_seam_are_interpolated_the_short_way():
    point, _, domain, mesh = SURFACES["circle"]
    angle = np.array([np.pi - 0.05, -np.pi + 0.02, 3.1])
    starts = surface_starts(1.3 * point(angle[:, None]), mesh, domain, 1)[:, 0]
    assert (np.abs(domain.difference(starts, angle[:, None])) < 0.05).all()


@pytest.mark.parametrize("name", ["torus", "ellipsoid"])
def test_columns_that_do_not_count_are_columns_left_out(name):
    """Each row by its own columns, against the surface in those columns alone; the others may hold anything."""
    point, jacobian, domain, mesh = SURFACES[name]
    rng = np.random.default_rng(3)
    X, seen = (
        rng.normal(size=(30, 3)),
        np.array([[True, True, False], [False, True, True], [True, True, True]])[np.arange(30) % 3],
    )
    starts = np.stack([mesh.latent[rng.integers(0, len(mesh.latent), 30)] for _ in range(2)], axis=1)
    found = project_to_surface(np.where(seen, X, np.nan), point, jacobian, domain, starts, seen=seen)
    assert found.converged.all()
    for kind in range(3):
        rows, columns = np.arange(kind, 30, 3), seen[kind]
        alone = project_to_surface(
            X[np.ix_(rows, columns)],
            lambda Z, c=columns: point(Z)[:, c],
            lambda Z, c=columns: jacobian(Z)[:, c],
            domain,
            starts[rows],
        )
        np.testing.assert_allclose(found.squared_distance[rows], alone.squared_distance, atol=1e-9)
        np.testing.assert_allclose(found.points[np.ix_(rows, columns)], alone.points, atol=1e-5)


def test_a_collapsed_map_still_answers():
    found = project_to_surface(
        np.ones((3, 2)),
        lambda Z: np.zeros((len(Z), 2)),
        lambda Z: np.zeros((len(Z), 2, 1)),
        Box.of((-1, 1)),
        np.zeros((3, 2, 1)),
    )
    np.testing.assert_allclose(found.squared_distance, 2.0)
    assert np.isfinite(found.latent).all()


def test_no_rows_and_wrong_starts():
    point, jacobian, domain, mesh = SURFACES["torus"]
    assert nearest_on_surface(np.empty((0, 3)), point, jacobian, domain, mesh).points.shape == (0, 3)
    with pytest.raises(InvalidParameterError, match=r"starts must be \(n, S, Q\)"):
        project_to_surface(np.zeros((2, 3)), point, jacobian, domain, np.zeros((2, 2)))
    with pytest.raises(InvalidParameterError, match="n_starts must be at least 1"):
        surface_starts(np.zeros((2, 3)), mesh, domain, 0)
