"""Poses: what the pictures show, and that they form a sphere without seam, pole or crossing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from prinfold import datasets
from prinfold.datasets.poses import BODIES
from prinfold.exceptions import InvalidParameterError

each_body = pytest.mark.parametrize("body", sorted(BODIES))


def directions(n: int, seed: int = 0) -> np.ndarray:
    U = np.random.default_rng(seed).normal(size=(n, 3))
    return U / np.linalg.norm(U, axis=1, keepdims=True)


def surface_of(body: str, **settings: object) -> datasets.TrueSurface:
    return datasets.make_poses(1, body=body, rng=0, **settings).surface


@each_body
def test_a_picture_is_the_body_summed_along_the_line_of_sight(body: str) -> None:
    """A brute-force twin: blobs as densities in space, summed over depth and scaled to their light at the centre."""
    n, fog = 8, 0.7
    side = 1.2 * ((2 * np.arange(n) + 1) / n - 1)
    depth = np.linspace(-6, 6, 1201)
    for u in directions(4):
        expected = np.zeros((n, n))
        for blob in BODIES[body]:
            spread = blob.across**2 * (np.eye(3) - np.outer(u, u)) + blob.along**2 * np.outer(u, u)
            precision, center = np.linalg.inv(spread), blob.place * u

            def column(x, y, precision=precision, center=center):
                away = np.stack([np.full_like(depth, x), np.full_like(depth, y), depth], axis=1) - center
                return np.exp(-0.5 * np.einsum("ni,ij,nj->n", away, precision, away)).sum()

            light = blob.light * np.exp(fog * blob.place * u[2]) / column(*center[:2])
            expected += [[light * column(x, y) for x in side] for y in side[::-1]]
        picture = surface_of(body, n_pixels=n, fog=fog).point(u[None]).reshape(n, n)
        np.testing.assert_allclose(picture, expected, rtol=1e-9, atol=1e-12)


@each_body
def test_no_direction_about_the_camera_is_special(body: str) -> None:
    """Turning or mirroring the pose turns or mirrors the picture: nothing depends on a choice of "up"."""
    surface, U = surface_of(body), directions(50)

    def pictures(V: np.ndarray) -> np.ndarray:
        return surface.point(V).reshape(-1, 12, 12)

    upright = pictures(U)
    turned = U @ np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(pictures(turned), np.rot90(upright, axes=(1, 2)), atol=1e-12)
    np.testing.assert_allclose(pictures(U * [-1, 1, 1]), upright[:, :, ::-1], atol=1e-12)


@each_body
def test_without_fog_towards_and_away_look_the_same(body: str) -> None:
    U = directions(200)
    U = U[np.abs(U[:, 2]) > 0.5]
    towards, away = (surface_of(body, fog=0.0).point(V) for V in (U, U * [1, 1, -1]))
    np.testing.assert_allclose(towards, away, atol=1e-12)
    gap = np.linalg.norm(surface_of(body).point(U) - surface_of(body).point(U * [1, 1, -1]), axis=1)
    assert gap.min() > 1.0  # ten standard deviations of the default noise


@each_body
def test_the_sphere_of_pictures_has_no_crease_and_does_not_meet_itself(body: str) -> None:
    surface = surface_of(body)
    U = surface.mesh(30).latent
    least = 0.9
    assert np.linalg.svd(surface.tangents(U), compute_uv=False).min() > least
    # Poses 30° apart or more are never nearer than the least stretch holds neighbours at 30°.
    chord = 2 * np.sin(np.radians(15))
    assert cdist(surface.point(U), surface.point(U))[cdist(U, U) > chord].min() > least * chord


@each_body
def test_turning_to_the_camera_shows_about_as_much_as_turning_aside(body: str) -> None:
    U = directions(2000)
    towards = np.array([0.0, 0.0, 1.0]) - U[:, 2:] * U
    towards /= np.linalg.norm(towards, axis=1, keepdims=True)
    J = surface_of(body).jacobian(U)
    change = [np.mean(np.einsum("ndq,nq->nd", J, way) ** 2) for way in (towards, np.cross(U, towards))]
    assert 0.8 < np.sqrt(change[0] / change[1]) < 1.2


def test_several_bodies_come_in_equal_numbers_each_on_its_own_surface() -> None:
    names = ("shuttlecock", "bottle")
    data = datasets.make_poses(41, body=names, n_pixels=7, rng=3)
    assert data.class_names == names
    assert sorted(np.bincount(data.labels)) == [20, 21]
    assert np.any(np.diff(data.labels) < 0)  # in no order
    assert data.surface is None
    for label, name in enumerate(names):
        rows = data.labels == label
        expected = surface_of(name, n_pixels=7).point(data.latent[rows])
        np.testing.assert_array_equal(data.clean[rows], expected)
    assert np.std(data.X - data.clean) == pytest.approx(0.1, rel=0.1)
    assert datasets.make_poses(3, body=["bottle"], rng=0).class_names == ("bottle",)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"body": "teapot"}, r"body='teapot' is not one of \['bottle', 'mushroom', 'shuttlecock'\]"),
        ({"body": ()}, "must name different bodies, one or more"),
        ({"body": ("bottle", "bottle")}, r"must name different bodies.*got body=\('bottle', 'bottle'\)"),
        ({"body": ("bottle", "mushroom"), "n_samples": 1}, "n_samples be at least their number"),
        ({"n_pixels": 1}, "n_pixels must be at least 2"),
        ({"fog": -0.1}, "fog finite and at least 0"),
        ({"noise": -1.0}, "noise is a standard deviation"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        datasets.make_poses(**settings)
