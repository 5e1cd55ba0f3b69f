"""Basis functions on every latent space: derivatives, seams, symmetry, penalties."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from prinfold import GaussianBasis, HarmonicBasis
from prinfold.exceptions import InvalidParameterError
from prinfold.latent import Points, Sphere, circle, cylinder, grid, line, torus

POINTS = Points(np.random.default_rng(2).uniform([-1, 3], [2, 9], (30, 2)))
BOUND = {
    "line": (line(9), GaussianBasis(4)),
    "line, no linear terms": (line(9), GaussianBasis(4, linear=False)),
    "grid": (grid(6, 5), GaussianBasis((4, 3), width=0.7)),
    "grid, centres beyond": (grid(6, 5), GaussianBasis((4, 3), scale=4 / 3)),
    "grid 4-D": (grid(3, 3, 2, 2), GaussianBasis(2)),
    "circle": (circle(9), GaussianBasis(5)),
    "circle, harmonics": (circle(9), HarmonicBasis(3)),
    "cylinder": (cylinder(8, 4), GaussianBasis((5, 3))),
    "torus": (torus(6, 6), GaussianBasis(4)),
    "sphere": (Sphere(40), GaussianBasis(12)),
    "points": (POINTS, GaussianBasis((3, 2))),
    "one bump": (grid(3, 3), GaussianBasis(1)),
}
every = pytest.mark.parametrize(("latent", "basis"), BOUND.values(), ids=BOUND.keys())


def places(latent, n=25, seed=0):
    rng = np.random.default_rng(seed)
    if isinstance(latent, Sphere):
        return latent.domain.retract(rng.normal(size=(n, 3)))
    Z = rng.uniform(latent.domain.low, latent.domain.high, (n, latent.n_columns))
    Z[0], Z[1] = latent.domain.low, latent.domain.high
    return Z


@every
def test_shapes_and_the_bias_comes_last(latent, basis):
    bound, Z = basis.bind(latent), places(latent)
    features, gradient = bound.features(Z), bound.gradient(Z)
    assert features.shape == (len(Z), len(bound.penalized))
    assert gradient.shape == (*features.shape, latent.n_columns)
    np.testing.assert_array_equal(features[:, -1], 1)
    np.testing.assert_array_equal(gradient[:, -1], 0)
    assert np.isfinite(features).all()
    assert bound.penalized.dtype == bool


@every
def test_gradient_is_the_derivative(latent, basis):
    bound, Z, h = basis.bind(latent), places(latent), 1e-6
    numeric = np.stack(
        [(bound.features(Z + h * e) - bound.features(Z - h * e)) / (2 * h) for e in np.eye(Z.shape[1])], axis=2
    )
    np.testing.assert_allclose(bound.gradient(Z), numeric, atol=2e-8 * max(1, np.abs(numeric).max()))


@pytest.mark.parametrize(
    ("latent", "basis", "axis"),
    [
        (circle(9), GaussianBasis(5), 0),
        (circle(9), HarmonicBasis(4), 0),
        (cylinder(8, 4), GaussianBasis((5, 3)), 0),
        (torus(6, 6), GaussianBasis(4), 0),
        (torus(6, 6), GaussianBasis(4), 1),
        (torus(4, 4, 4), GaussianBasis(3), 2),
    ],
)
def test_periodic_bases_and_their_derivatives_have_no_seam(latent, basis, axis):
    bound, Z = basis.bind(latent), places(latent)
    turned = Z + 2 * np.pi * np.eye(Z.shape[1])[axis]
    np.testing.assert_allclose(bound.features(turned), bound.features(Z), atol=1e-13)
    np.testing.assert_allclose(bound.gradient(turned), bound.gradient(Z), atol=1e-12)


@pytest.mark.parametrize(
    ("latent", "basis", "n"), [(circle(9), GaussianBasis(5), 5), (torus(6, 6), GaussianBasis((4, 3)), 4)]
)
def test_bumps_round_a_circle_are_copies_of_each_other(latent, basis, n):
    """Turning by one spacing permutes the bumps: no place on the circle is special."""
    bound, Z = GaussianBasis(basis.shape, linear=False).bind(latent), places(latent)
    turned = Z + np.eye(Z.shape[1])[0] * 2 * np.pi / n
    per_row = len(bound.centers) // n
    np.testing.assert_allclose(
        np.roll(bound.features(Z)[:, :-1], per_row, axis=1), bound.features(turned)[:, :-1], atol=1e-12
    )


def test_bumps_on_the_sphere_depend_on_the_distance_alone():
    latent = Sphere(40)
    bound, Z = GaussianBasis(12, linear=False).bind(latent), places(latent)
    turn = Rotation.from_euler("xyz", [0.3, -1.1, 2.0]).as_matrix()
    turned = type(bound)(latent, bound.centers @ turn.T, bound.width, False, False)
    np.testing.assert_allclose(turned.features(Z @ turn.T), bound.features(Z), atol=1e-12)
    # and every part of the sphere is covered about equally
    cover = bound.features(places(latent, 2000))[:, :-1].sum(axis=1)
    assert cover.max() < 1.25 * cover.min()


@every
def test_width_is_in_units_of_the_spacing_of_centres(latent, basis):
    bound = basis.bind(latent)
    if isinstance(basis, HarmonicBasis):
        return
    if len(bound.centers) == 1:
        assert bound.width == 2.0 * basis.width
        return
    apart = np.linalg.norm(bound.centers[:, None] - bound.centers, axis=2)
    np.fill_diagonal(apart, np.inf)
    spacing = np.sqrt(np.mean(apart.min(axis=1) ** 2))
    assert bound.width == pytest.approx(basis.width * spacing)


def test_centres_lie_where_asked():
    bound = GaussianBasis((3, 2), scale=2.0).bind(cylinder(5, 5))
    angles = np.arctan2(bound.centers[::2, 1], bound.centers[::2, 0])
    np.testing.assert_allclose(angles, [-np.pi, -np.pi / 3, np.pi / 3], atol=1e-8)  # an angle cannot be scaled
    np.testing.assert_allclose(np.unique(bound.centers[:, 2]), [-2, 2])
    corners = GaussianBasis(2).bind(POINTS).centers
    np.testing.assert_allclose(corners.min(axis=0), POINTS.domain.low)
    np.testing.assert_allclose(corners.max(axis=0), POINTS.domain.high)


@pytest.mark.parametrize("penalize_bias", [True, False])
def test_which_weights_are_penalised(penalize_bias):
    bumps_only = GaussianBasis(3, linear=False, penalize_bias=penalize_bias).bind(grid(4, 4))
    np.testing.assert_array_equal(bumps_only.penalized, [True] * 9 + [penalize_bias])
    both = GaussianBasis(3, penalize_bias=penalize_bias).bind(cylinder(4, 4))
    np.testing.assert_array_equal(both.penalized, [True] * (9 + 3) + [penalize_bias])
    waves = HarmonicBasis(2, penalize_bias=penalize_bias).bind(circle(4))
    np.testing.assert_array_equal(waves.penalized, [True] * 4 + [penalize_bias])


@pytest.mark.parametrize("coordinates", [[[1.0, 2.0]], [[0.0, 1.0], [1.0, 1.0], [3.0, 1.0]], [[1.0, 2.0], [1.0, 2.0]]])
def test_an_axis_without_length_has_one_centre(coordinates):
    latent = Points(np.array(coordinates))
    bound = GaussianBasis(3).bind(latent)
    assert bound.width > 0
    assert len(np.unique(bound.centers, axis=0)) == len(bound.centers)
    assert np.isfinite(bound.features(latent.nodes)).all()
    assert np.isfinite(bound.gradient(latent.nodes)).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: GaussianBasis(0), "GaussianBasis: shape must be a whole number of at least 1.*got 0"),
        (lambda: GaussianBasis(()), r"shape must be .*, got \(\)"),
        (lambda: GaussianBasis((3, 2.5)), r"shape must be .*, got \(3, 2.5\)"),
        (lambda: GaussianBasis("3"), "shape must be .*, got '3'"),
        (lambda: GaussianBasis(3, width=0), "width must be a finite number above 0, got 0"),
        (lambda: GaussianBasis(3, width=float("nan")), "width must be .*, got nan"),
        (lambda: GaussianBasis(3, linear="no"), "linear must be True or False, got 'no'"),
        (lambda: GaussianBasis(3, scale=float("inf")), "scale must be .*, got inf"),
        (lambda: GaussianBasis(3, penalize_bias=1), "penalize_bias must be .*, got 1"),
        (lambda: GaussianBasis(10**9), "basis functions, more than"),
        (lambda: GaussianBasis((10**6,) * 4), "basis functions, more than"),
        (lambda: GaussianBasis(1000).bind(grid(2, 2)), "1000000 basis functions, more than"),
        (lambda: HarmonicBasis(0), "HarmonicBasis: n_harmonics must be .*, got 0"),
        (lambda: HarmonicBasis(10**12), "basis functions, more than"),
        (lambda: HarmonicBasis(2).bind(line(3)), "needs a circle"),
        (lambda: HarmonicBasis(2).bind(torus(3, 3)), "needs a circle"),
        (lambda: HarmonicBasis(2).bind(Sphere(9)), "needs a circle"),
        (lambda: GaussianBasis((3, 3)).bind(line(4)), "the basis has 2 axes but the latent space has 1"),
        (lambda: GaussianBasis((3,)).bind(POINTS), "the basis has 1 axes but the latent space has 2"),
        (lambda: GaussianBasis(3).bind(Sphere(9)), "at least 4"),
    ],
)
def test_bases_that_cannot_be(make, words):
    start = time.perf_counter()
    with pytest.raises(InvalidParameterError, match=words):
        make()
    assert time.perf_counter() - start < 1


def test_counts_may_be_numpy_integers_or_a_list():
    assert GaussianBasis(np.int64(3)) == GaussianBasis(3)
    assert GaussianBasis([3, np.int32(2)]) == GaussianBasis((3, 2))
    assert hash(GaussianBasis([3, 2])) == hash(GaussianBasis((3, 2)))
