"""True surfaces: maps, derivatives, normals and exact distances."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from prinfold import datasets
from prinfold.datasets import TrueSurface, polyline
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.geometry.domain import UnitSphere

SIMULATORS = {
    "spiral": datasets.make_spiral,
    "circle": lambda **k: datasets.make_circle(radius=2.0, **k),
    "half circle": datasets.make_half_circle,
    "zig-zag": datasets.make_zigzag,
    "star": datasets.make_star,
    "epitrochoid": datasets.make_epitrochoid,
    "thesis curve": lambda **k: datasets.make_thesis_curve(sampling="parameter", **k),
    "corkscrew, printed": datasets.make_corkscrew,
    "corkscrew, conjectured": lambda **k: datasets.make_corkscrew(reading="conjectured", **k),
    "swiss roll": datasets.make_swiss_roll,
    "ridge": lambda **k: datasets.make_ridge(sampling="parameter", **k),
    "thesis surface": lambda **k: datasets.make_thesis_surface(sampling="parameter", **k),
    "semi-linear sheet": lambda **k: datasets.make_semilinear_sheet(sampling="parameter", **k),
    "sphere": lambda **k: datasets.make_sphere(radius=3.0, **k),
    "sphere in 6-D": lambda **k: datasets.make_sphere(n_features=6, **k),
    "ellipsoid": lambda **k: datasets.make_sphere(radius=(1.0, 0.8, 0.5), **k),
    "cylinder": datasets.make_cylinder,
    "cylinder in 5-D": lambda **k: datasets.make_cylinder(n_features=5, height=3.0, **k),
    "knot": datasets.make_knot,
    "cinquefoil in 6-D": lambda **k: datasets.make_knot(windings=(2, 5), n_features=6, **k),
    "closed curve": datasets.make_closed_curve,
    "cycles": lambda **k: datasets.make_cycles(n_features=5, variation=0.0, **k),
    "uneven circle": lambda **k: datasets.make_circle(concentration=2.0, **k),
    "poses": lambda **k: datasets.make_poses(n_pixels=6, **k),
    "ring torus": datasets.make_torus,
    "flat torus": lambda **k: datasets.make_torus(kind="flat", **k),
    "flat torus in 7-D": lambda **k: datasets.make_torus(kind="flat", n_features=7, **k),
}
each = pytest.mark.parametrize("name", sorted(SIMULATORS))


def make(name: str, n: int = 60, **settings: object) -> datasets.Dataset:
    return SIMULATORS[name](n_samples=n, rng=3, **settings)


@each
def test_jacobian_is_the_derivative_of_the_map(name: str) -> None:
    data = make(name)
    surface, U = data.surface, data.latent
    J, step = surface.jacobian(U), 1e-6
    assert J.shape == (len(U), surface.n_features, surface.domain.extent.n_columns)
    for j, e in enumerate(np.eye(U.shape[1])):
        slope = (surface.point(U + step * e) - surface.point(U - step * e)) / (2 * step)
        np.testing.assert_allclose(J[:, :, j], slope, atol=2e-7 * (1 + np.abs(J).max()))


@each
def test_clean_points_lie_on_the_surface(name: str) -> None:
    data = make(name)
    np.testing.assert_array_equal(data.surface.point(data.latent), data.clean)
    scale = np.abs(data.clean).max()
    np.testing.assert_allclose(data.surface.distance(data.clean), 0.0, atol=1e-8 * scale)
    assert data.surface.domain.contains(data.latent).all()


@each
def test_normals_are_an_orthonormal_complement_of_the_tangents(name: str) -> None:
    data = make(name)
    T, N = data.surface.tangents(data.latent), data.surface.normals(data.latent)
    n, D, q = T.shape
    assert N.shape == (n, D, D - q)
    np.testing.assert_allclose(np.swapaxes(N, 1, 2) @ N, np.broadcast_to(np.eye(D - q), (n, D - q, D - q)), atol=1e-12)
    np.testing.assert_allclose(np.swapaxes(N, 1, 2) @ T, 0.0, atol=1e-11 * (1 + np.abs(T).max()))
    assert (np.linalg.det(np.concatenate([T, N], axis=2)) > 0).all()


@each
def test_small_normal_noise_is_orthogonal_and_is_the_distance(name: str) -> None:
    clean_size = np.abs(make(name).clean).max()
    data = make(name, noise=1e-3 * clean_size, noise_kind="normal")
    shift = data.X - data.clean
    tangents = data.surface.tangents(data.latent)
    np.testing.assert_allclose(np.einsum("nd,ndq->nq", shift, tangents), 0.0, atol=1e-10 * clean_size**2)
    length = np.linalg.norm(shift, axis=1)
    distance = data.surface.distance(data.X)
    # Where another branch or a corner is nearer the distance can only be less, and that is rare.
    assert (distance <= length + 1e-9 * clean_size).all()
    assert np.mean(np.isclose(distance, length, rtol=1e-6, atol=1e-9 * clean_size)) >= 0.9


@each
def test_projection_is_no_farther_than_any_point_of_a_fine_sample(name: str) -> None:
    data = make(name, n=25)
    X = data.clean + np.random.default_rng(8).normal(scale=0.3 * data.clean.std(), size=data.clean.shape)
    surface = data.surface
    U = surface.sample_latent(20000, np.random.default_rng(9))
    nearest = np.sqrt(((X[:, None, :] - surface.point(U)[None]) ** 2).sum(axis=2).min(axis=1))
    distance = surface.distance(X)
    assert (distance <= nearest + 1e-9).all()
    # The sample is dense enough to come close as well.
    assert (nearest - distance).max() < 0.15 * data.clean.std()
    np.testing.assert_allclose(surface.distance(surface.project(X)), 0.0, atol=1e-7 * np.abs(X).max())


@each
def test_mesh_vertices_lie_on_the_surface_and_faces_are_small(name: str) -> None:
    surface = make(name).surface
    coarse, fine = surface.mesh(10), surface.mesh(40)
    np.testing.assert_array_equal(fine.vertices, surface.point(fine.latent))
    assert fine.faces.shape[1] == surface.domain.extent.dimension + 1
    assert set(fine.faces.ravel()) == set(range(len(fine.vertices)))
    assert longest_edge(fine) < 0.5 * longest_edge(coarse)


def longest_edge(mesh: object) -> float:
    corners = mesh.vertices[mesh.faces]
    return float(np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).max())


def test_closed_meshes_have_no_edge() -> None:
    for kind in ("ring", "flat"):
        faces = datasets.make_torus(10, kind=kind, rng=0).surface.mesh(8).faces
        assert_every_edge_has_two_faces(faces)
        assert len(np.unique(faces)) - n_edges(faces) + len(faces) == 0  # Euler characteristic of the torus
    faces = datasets.make_sphere(10, rng=0).surface.mesh(8).faces
    assert_every_edge_has_two_faces(faces)
    assert len(np.unique(faces)) - n_edges(faces) + len(faces) == 2


def edges(faces: np.ndarray) -> np.ndarray:
    return np.sort(np.vstack([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1)


def n_edges(faces: np.ndarray) -> int:
    return len(np.unique(edges(faces), axis=0))


def assert_every_edge_has_two_faces(faces: np.ndarray) -> None:
    assert (np.unique(edges(faces), axis=0, return_counts=True)[1] == 2).all()


def test_circle_and_sphere_distances_have_their_closed_forms(rng: np.random.Generator) -> None:
    X = rng.normal(size=(200, 2))
    circle = datasets.make_circle(5, radius=0.7, rng=0).surface
    np.testing.assert_allclose(circle.distance(X), np.abs(np.linalg.norm(X, axis=1) - 0.7), atol=1e-14)
    Y = rng.normal(size=(200, 3))
    sphere = datasets.make_sphere(5, radius=1.3, rng=0).surface
    np.testing.assert_allclose(sphere.distance(Y), np.abs(np.linalg.norm(Y, axis=1) - 1.3), atol=1e-14)


@pytest.mark.parametrize("name", ["circle", "half circle", "sphere", "ring torus", "flat torus"])
def test_closed_forms_agree_with_the_search(name: str, rng: np.random.Generator) -> None:
    surface = make(name).surface
    searched = TrueSurface(surface.name, surface.point, surface.jacobian, surface.domain)
    X = rng.normal(size=(40, surface.n_features))
    np.testing.assert_allclose(surface.distance(X), searched.distance(X), atol=1e-8)


def test_polyline_distance_is_the_least_over_its_segments(rng: np.random.Generator) -> None:
    corners = rng.normal(size=(6, 3))
    X = rng.normal(size=(50, 3))
    for closed in (False, True):
        ends = np.vstack([corners, corners[:1]]) if closed else corners
        least = np.full(len(X), np.inf)
        for a, b in itertools.pairwise(ends):
            t = np.clip((X - a) @ (b - a) / ((b - a) @ (b - a)), 0, 1)
            least = np.minimum(least, np.linalg.norm(X - a - t[:, None] * (b - a), axis=1))
        np.testing.assert_allclose(polyline("chain", corners, closed=closed).distance(X), least, rtol=1e-12)


def test_polyline_is_parametrised_by_arc_length() -> None:
    square = polyline("square", np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]]), closed=True)
    assert square.domain.high == (8.0,)
    np.testing.assert_allclose(square.point(np.array([[1.0], [3.0], [7.0]])), [[1, 0], [2, 1], [0, 1]])


def test_embedding_is_an_isometry() -> None:
    flat = datasets.make_torus(200, noise=0.0, kind="flat", rng=1)
    deep = datasets.make_torus(200, noise=0.0, kind="flat", rng=1, n_features=9)
    U = flat.latent
    A, B = flat.surface.point(U), deep.surface.point(U)
    np.testing.assert_allclose(A @ A.T, B @ B.T, atol=1e-12)
    np.testing.assert_allclose(flat.surface.area_element(U), deep.surface.area_element(U), atol=1e-12)
    assert np.linalg.matrix_rank(deep.X - deep.X.mean(axis=0), tol=1e-9) == 4
    # A step out of the span adds to the distance by Pythagoras.
    out = np.linalg.svd(B)[2][-1]
    np.testing.assert_allclose(
        deep.surface.distance(1.5 * B + 2.0 * out), np.hypot(flat.surface.distance(1.5 * A), 2.0)
    )


def test_sampling_by_area_is_uniform_over_the_torus() -> None:
    """The outer half of the ring, cos θ > 0, holds 1/2 + r/(πR) of its area but half of the parameters."""
    R, r, n = 1.0, 0.4, 20000
    share = {
        sampling: np.mean(np.cos(datasets.make_torus(n, rng=2, radii=(R, r), sampling=sampling).latent[:, 1]) > 0)
        for sampling in ("parameter", "area")
    }
    assert abs(share["area"] - (0.5 + r / (np.pi * R))) < 4 * 0.5 / np.sqrt(n)
    assert abs(share["parameter"] - 0.5) < 4 * 0.5 / np.sqrt(n)


def test_sampling_by_length_is_uniform_along_the_spiral() -> None:
    """The inner whorl (r < 0.7) is as many of the points as of the length."""
    n, turn = 20000, 2 * np.pi
    growth = 1.0 / (2 * turn)

    def length(radius: float) -> float:
        return (radius * np.hypot(radius, growth) + growth**2 * np.arcsinh(radius / growth)) / (2 * growth)

    share = (length(0.7) - length(0.2)) / (length(1.2) - length(0.2))
    latent = datasets.make_spiral(n, rng=2, sampling="area").latent
    assert abs(np.mean(latent < turn) - share) < 4 * 0.5 / np.sqrt(n)
    assert abs(np.mean(datasets.make_spiral(n, rng=2).latent < turn) - 0.5) < 4 * 0.5 / np.sqrt(n)


def test_wrong_questions_are_answered_with_what_is_wrong() -> None:
    surface = datasets.make_spiral(10, rng=0).surface
    with pytest.raises(InvalidDataError, match="spiral lives in 2 dimensions"):
        surface.distance(np.zeros((3, 3)))
    with pytest.raises(InvalidParameterError, match="sampling='often' is not one of"):
        surface.sample_latent(3, np.random.default_rng(0), "often")
    assert isinstance(datasets.make_sphere(5, rng=0).surface.domain, UnitSphere)
