"""Simulators: the numbers of the papers, the noise, the seeds."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import i0, i1

from prinfold import datasets
from prinfold.exceptions import InvalidParameterError

ALL = [name for name in datasets.__all__ if name.startswith("make_")]
WITH_SURFACE = [name for name in ALL if name not in {"make_pipe_flow", "make_two_gaussians"}]


def simulator(name: str) -> object:
    return getattr(datasets, name)


@pytest.mark.parametrize("name", ALL)
def test_same_seed_same_rows_and_other_seed_others(name: str) -> None:
    first, again, other = (simulator(name)(rng=seed) for seed in (5, np.random.default_rng(5), 6))
    np.testing.assert_array_equal(first.X, again.X)
    if np.any(first.clean != first.X):  # the semi-linear sheet is a grid without noise
        assert np.any(first.X != other.X)


@pytest.mark.parametrize("name", ALL)
def test_shapes_and_names_fit_together(name: str) -> None:
    n = inspect.signature(simulator(name)).parameters["n_samples"].default
    data = simulator(name)(rng=0)
    assert data.X.shape == data.clean.shape == (n, len(data.feature_names))
    assert data.latent is None or len(data.latent) == n
    assert np.isfinite(data.X).all()
    assert f"{n} × {data.X.shape[1]}" in repr(data)
    assert data.description in repr(data)


@pytest.mark.parametrize("name", WITH_SURFACE)
@pytest.mark.parametrize("kind", ["normal", "isotropic"])
def test_noise_has_the_size_asked_for(name: str, kind: str) -> None:
    """Squared noise over σ² is χ² with one degree of freedom per normal direction or per column."""
    data = simulator(name)(n_samples=900, noise=0.01, noise_kind=kind, rng=1)
    D, q = data.X.shape[1], data.surface.domain.extent.dimension
    freedom = {"normal": D - q, "isotropic": D}[kind]
    total = (((data.X - data.clean) / 0.01) ** 2).sum()
    assert abs(total - 900 * freedom) < 5 * np.sqrt(2 * 900 * freedom)


@pytest.mark.parametrize("name", WITH_SURFACE)
def test_no_noise_is_no_noise(name: str) -> None:
    data = simulator(name)(noise=0.0, rng=1)
    np.testing.assert_array_equal(data.X, data.clean)


def test_spiral_runs_from_radius_one_fifth_to_six_fifths_in_two_whorls() -> None:
    data = datasets.make_spiral(rng=0)
    assert data.X.shape == (300, 2)
    ends = data.surface.point(np.array([[0.0], [4 * np.pi]]))
    np.testing.assert_allclose(ends, [[0.2, 0.0], [1.2, 0.0]], atol=1e-12)
    assert np.std(data.X - data.clean) == pytest.approx(0.05, rel=0.1)


def test_thesis_curve_is_example_3_1() -> None:
    data = datasets.make_thesis_curve(rng=0)
    x = np.linspace(0.15, 3.05, 59)
    np.testing.assert_allclose(data.clean, np.column_stack([x, x + 1.25 * np.sin(2 * x)]))


def test_grids_of_the_thesis() -> None:
    ridge = datasets.make_ridge(rng=0).clean
    assert [len(np.unique(column)) for column in ridge.T[:2]] == [20, 20]
    np.testing.assert_allclose(ridge[:, 2], np.tanh(6 * ridge[:, 0]))
    x, y, z = datasets.make_thesis_surface(1024, rng=0).clean.T
    assert (x.min(), x.max(), y.min(), y.max()) == (-1, 1, -2, 2)
    np.testing.assert_allclose(z, (1.5 * x**3 - x) + 0.25 * np.cos(2 * y))
    x, y, z = datasets.make_semilinear_sheet(rng=0).X.T
    assert (x.min(), x.max(), y.min(), y.max()) == (-2, 2, -1, 1)
    np.testing.assert_allclose(z, 0.5 * np.sin(0.5 * np.pi * x) + y)


def test_corkscrew_and_roll_have_both_readings() -> None:
    for reading, low, high, twist in (("printed", 0, 40, 1 / 20), ("conjectured", -20, 20, 1 / 40)):
        data = datasets.make_corkscrew(4000, rng=0, reading=reading)
        l, h = data.latent.T
        assert (h.min(), h.max()) == (pytest.approx(low, abs=0.1), pytest.approx(high, abs=0.1))
        angle = twist * np.pi * l
        np.testing.assert_allclose(data.clean, np.column_stack([l, np.sin(angle) * h, np.cos(angle) * h]))
    for reading, height in (("printed", 20), ("conjectured", 40)):
        r, h = datasets.make_swiss_roll(4000, rng=0, reading=reading).latent.T
        assert h.max() == pytest.approx(height, abs=0.1)
        assert (r.min(), r.max()) == (pytest.approx(1, abs=0.02), pytest.approx(4 * np.pi, abs=0.02))


def test_normal_noise_of_the_corkscrew_is_along_the_cross_product() -> None:
    """Equation (14) of the paper."""
    data = datasets.make_corkscrew(rng=0, noise=2.0)
    J = data.surface.jacobian(data.latent)
    normal = np.cross(J[:, :, 0], J[:, :, 1])
    np.testing.assert_allclose(np.cross(data.X - data.clean, normal), 0.0, atol=1e-10)


def test_two_gaussians_have_the_stated_entropy() -> None:
    data = datasets.make_two_gaussians(20000, rng=0)
    means = np.array([[-0.8, 0.8], [0.8, -0.8]])
    precision = np.linalg.inv(0.59**2 * np.array([[1, 0.8], [0.8, 1]]))
    shift = data.X[:, None] - means
    squared = np.einsum("nki,ij,nkj->nk", shift, precision, shift)
    density = (0.5 * np.exp(-0.5 * squared) * np.sqrt(np.linalg.det(precision)) / (2 * np.pi)).sum(axis=1)
    assert 1000 * np.mean(np.log(density)) == pytest.approx(-1965, abs=30)
    assert abs(np.mean(data.labels) - 0.5) < 4 * 0.5 / np.sqrt(20000)


def test_an_uneven_circle_has_the_density_of_von_mises() -> None:
    """The mean of cos φ under exp(κ cos φ) is the ratio of Bessel functions I₁(κ) / I₀(κ)."""
    angle = datasets.make_circle(4000, concentration=1.5, rng=0).latent[:, 0]
    wanted = i1(1.5) / i0(1.5)
    assert abs(np.cos(angle).mean() - wanted) < 4 * np.cos(angle).std() / np.sqrt(4000)


def test_a_trefoil_crosses_itself_in_every_plane_but_not_in_space() -> None:
    knot = datasets.make_knot(400, noise=0.0, sampling="grid")
    gap = np.abs(knot.latent - knot.latent.T)
    far = np.minimum(gap, 2 * np.pi - gap) > 0.5
    assert cdist(knot.X, knot.X)[far].min() > 0.5
    for angle in np.linspace(0.0, np.pi, 7):
        flat = knot.X @ [[np.cos(angle), 0.0], [0.0, 1.0], [np.sin(angle), 0.0]]
        assert cdist(flat, flat)[far].min() < 0.02


def test_closed_curves_differ_by_seed_and_are_about_a_unit_from_the_middle() -> None:
    size = [np.linalg.norm(datasets.make_closed_curve(rng=seed).clean, axis=1) for seed in range(20)]
    assert np.mean(np.square(size)) == pytest.approx(1.0, rel=0.15)


def test_a_pass_goes_round_once_and_differs_from_the_others() -> None:
    data = datasets.make_cycles(200, noise=0.0, n_cycles=4, variation=0.2, rng=0)
    ends = np.cumsum(data.lengths)
    for end, n in zip(ends, data.lengths, strict=True):
        step = np.diff(data.latent[end - n : end, 0]) % (2 * np.pi)
        np.testing.assert_allclose(step, 2 * np.pi / n)
    means = np.array([part.mean(axis=0) for part in np.split(data.X, ends[:-1])])  # the shifts
    assert np.sqrt(np.square(means).sum(axis=1)).mean() == pytest.approx(0.2, rel=0.3)
    same = datasets.make_cycles(200, noise=0.0, variation=0.0, rng=0)
    np.testing.assert_allclose(same.X, same.surface.point(same.latent))


def test_a_function_may_choose_the_latent_coordinates() -> None:
    surface = datasets.make_circle(5, rng=0).surface
    data = datasets.simulate(surface, 4, 0.0, "normal", 0, sampling=lambda n, rng: np.arange(n)[:, None] / 2)
    np.testing.assert_array_equal(data.latent[:, 0], [0.0, 0.5, 1.0, 1.5])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: datasets.make_spiral(0), "n_samples must be at least 1"),
        (lambda: datasets.make_spiral(noise=-1.0), "noise is a standard deviation"),
        (lambda: datasets.make_spiral(noise_kind="loud"), r"noise_kind='loud' is not one of \['isotropic', 'normal'\]"),
        (
            lambda: datasets.make_ridge(401),
            "sampling='grid' needs a number of samples that fills a 2-D grid, such as 400",
        ),
        (lambda: datasets.make_corkscrew(reading="aloud"), "reading='aloud' is not one of"),
        (lambda: datasets.make_torus(kind="square"), "kind='square' is not one of"),
        (lambda: datasets.make_torus(n_features=2), "n_features must be at least 3; got 2"),
        (lambda: datasets.make_torus(radii=(0.4, 0.4)), "needs radii R > r"),
        (lambda: datasets.make_sphere(radius=-1.0), "radius must be positive and finite; got -1"),
        (lambda: datasets.make_sphere(radius=(1.0, 2.0)), "radius must be one number or three; got"),
        (lambda: datasets.make_sphere(radius=(1.0, 2.0, 0.0)), "radius must be positive and finite; got 0"),
        (lambda: datasets.make_circle(radius=0.0), "radius must be positive"),
        (lambda: datasets.make_circle(concentration=-1.0), "concentration must be finite and at least 0; got -1"),
        (lambda: datasets.make_cylinder(height=0.0), "height must be positive and finite; got 0"),
        (lambda: datasets.make_knot(windings=(2, 4)), r"without a common divisor; got .* windings=\(2, 4\)"),
        (lambda: datasets.make_knot(radii=(0.5, 0.5)), r"needs radii R > r .* got radii=\(0.5, 0.5\)"),
        (lambda: datasets.make_knot(n_features=2), "n_features must be at least 3; got 2"),
        (lambda: datasets.make_closed_curve(n_features=1), "needs two columns and one harmonic at least; got 1 and 4"),
        (lambda: datasets.make_cycles(5, n_cycles=6), "a row for each pass; got .* n_cycles=6, n_samples=5"),
        (lambda: datasets.make_cycles(variation=-1.0), "finite and at least 0; got noise=0.02, variation=-1"),
        (lambda: datasets.make_half_circle(radius=np.inf), "radius must be positive and finite"),
        (lambda: datasets.make_zigzag(n_teeth=0), "n_teeth must be positive"),
        (lambda: datasets.make_epitrochoid(rolling=0.0), "rolling must be positive"),
        (lambda: datasets.polyline("dot", np.zeros((2, 2))), "no two alike in a row"),
        (lambda: datasets.make_star(n_points=6), "odd number of points"),
        (lambda: datasets.make_epitrochoid(fixed=0.5), "must be a whole number; got 2.5"),
    ],
)
def test_wrong_settings_are_named(call: object, message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        call()
