"""Maps: points and Jacobians anywhere, and weights against brute-force ridge regression."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prinfold import ElasticNetBasis, GaussianBasis, GaussianProcess, HarmonicBasis
from prinfold.basis_maps import basis_map as maps
from prinfold.basis_maps.bases import BasisCapabilities
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.latent import Hexagons, Points, Sphere, circle, cylinder, grid, line, torus

CASES = {
    "line": (line(12), GaussianBasis(4)),
    "grid": (grid(6, 5), GaussianBasis((3, 3))),
    "grid 3-D": (grid(4, 4, 4), GaussianBasis(2)),
    "circle": (circle(12), HarmonicBasis(3)),
    "cylinder": (cylinder(7, 4), GaussianBasis((4, 2))),
    "torus": (torus(7, 7), GaussianBasis(4)),
    "sphere": (Sphere(50), GaussianBasis(10)),
    "points": (Points(np.random.default_rng(1).uniform(size=(40, 2))), GaussianBasis(3)),
}


def make(name):
    latent, basis = CASES[name]
    return BasisMap(latent, basis.bind(latent))


every = pytest.mark.parametrize("name", CASES)


def solved(surface, mass, moment, strength):
    """From nothing: where the equations leave weights open, these are the smallest."""
    return surface.solve(mass, moment, strength, np.zeros((surface.node_features.shape[1], moment.shape[1])))


@every
def test_points_at_the_nodes_are_the_images_of_the_nodes(name, rng):
    surface = make(name)
    W = rng.normal(size=(surface.node_features.shape[1], 3))
    np.testing.assert_allclose(surface.point(surface.latent.nodes, W), surface.nodes(W), atol=1e-12)


@every
def test_the_jacobian_is_the_derivative(name, rng):
    surface, h = make(name), 1e-6
    W = rng.normal(size=(surface.node_features.shape[1], 3))
    Z = surface.latent.nodes[:20] + 0.01
    numeric = np.stack(
        [(surface.point(Z + h * e, W) - surface.point(Z - h * e, W)) / (2 * h) for e in np.eye(Z.shape[1])], axis=2
    )
    assert surface.jacobian(Z, W).shape == (len(Z), 3, surface.latent.n_columns)
    np.testing.assert_allclose(surface.jacobian(Z, W), numeric, atol=1e-6)


def test_rows_in_parts_equal_the_whole(rng, monkeypatch):
    surface = make("grid")
    W, Z = rng.normal(size=(12, 3)), rng.uniform(-1, 1, (50, 2))
    points, slopes = surface.point(Z, W), surface.jacobian(Z, W)
    monkeypatch.setattr(maps, "_ROWS_AT_ONCE", 7)
    np.testing.assert_allclose(surface.point(Z, W), points, atol=1e-14)
    np.testing.assert_allclose(surface.jacobian(Z, W), slopes, atol=1e-14)


PRODUCTS = {
    "grid, no linear terms": (grid(9, 8), GaussianBasis((4, 5), linear=False)),
    "grid, wide": (grid(12, 12), GaussianBasis(6, scale=1.2)),
    "grid 3-D": (grid(8, 7, 6), GaussianBasis((3, 4, 2))),
    "cylinder": (cylinder(12, 9), GaussianBasis((5, 4))),
    "torus": (torus(12, 11), GaussianBasis(5)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_inner_products_axis_by_axis_are_those_of_all_nodes(name, rng):
    latent, basis = PRODUCTS[name]
    surface = BasisMap(latent, basis.bind(latent))
    mass, Phi = rng.exponential(size=latent.n_nodes), surface.node_features
    assert surface._product_gram is not None
    np.testing.assert_allclose(surface.gram(mass), Phi.T @ (mass[:, None] * Phi), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("latent", [Hexagons((9, 9), (False, False)), Sphere(60)])
def test_nodes_that_are_no_product_of_axes_have_no_shorter_way(latent, rng):
    surface = BasisMap(latent, GaussianBasis(5 if latent.n_columns == 2 else 25).bind(latent))
    mass, Phi = rng.exponential(size=latent.n_nodes), surface.node_features
    assert surface._product_gram is None
    np.testing.assert_allclose(surface.gram(mass), Phi.T @ (mass[:, None] * Phi), rtol=1e-12, atol=1e-12)


def test_masses_below_zero_count_as_none(rng):
    """Rounding makes some; as roots they would be no numbers."""
    surface, mass = make("grid"), rng.normal(size=30)
    np.testing.assert_array_equal(surface.gram(mass), surface.gram(np.maximum(mass, 0.0)))


def test_images_of_nodes_are_those_of_the_weights_given_even_if_written_over(rng):
    surface = make("grid")
    W = rng.normal(size=(surface.node_features.shape[1], 3))
    before = surface.nodes(W)
    assert surface.nodes(W.copy()) is before
    for row in (0, 5, len(W) - 1):
        W[row] += 1.0
        np.testing.assert_array_equal(surface.nodes(W), surface.node_features @ W)
    with pytest.raises(ValueError, match="read-only"):
        before[0] = 0.0


def test_images_of_nodes_are_remembered_neither_in_files_nor_where_they_are_large(rng, monkeypatch):
    surface = make("grid")
    W = rng.normal(size=(surface.node_features.shape[1], 3))
    images = surface.nodes(W)
    again = pickle.loads(pickle.dumps(surface))
    assert "_last_nodes" not in vars(again)
    np.testing.assert_array_equal(again.nodes(W), images)
    monkeypatch.setattr(maps, "_MOST_CACHED_NUMBERS", images.size - 1)
    assert again.nodes(W + 1.0) is not again.nodes(W + 1.0)


@every
@pytest.mark.parametrize("strength", [1e-3, 10.0])
@pytest.mark.parametrize("penalize_bias", [False, True])
def test_solve_is_ridge_regression(name, strength, penalize_bias, rng):
    """Against least squares on the rows themselves, with √λ times the mask as further rows."""
    latent, basis = CASES[name]
    basis = type(basis)(**{**vars(basis), "penalize_bias": penalize_bias})
    surface = BasisMap(latent, basis.bind(latent))
    K, M = surface.node_features.shape
    R, T = rng.dirichlet(np.ones(K), 80), rng.normal(size=(80, 3))
    W = solved(surface, R.sum(axis=0), R.T @ T, strength)
    # Every pair (row, node) is one observation of weight R.
    design = (np.sqrt(R)[:, :, None] * surface.node_features).reshape(-1, M)
    target = (np.sqrt(R)[:, :, None] * T[:, None]).reshape(-1, 3)
    mask = np.sqrt(strength) * np.diag(surface.basis.penalized.astype(float))
    stacked = np.vstack([design, mask]), np.vstack([target, np.zeros((M, 3))])
    expected = np.linalg.lstsq(*stacked, rcond=None)[0]
    np.testing.assert_allclose(W, expected, atol=1e-6 * max(1, np.abs(expected).max()))
    assert W.flags.c_contiguous


@given(seed=st.integers(0, 10**6))
def test_fit_is_weighted_ridge_regression_anywhere(seed):
    rng = np.random.default_rng(seed)
    surface = make("grid")
    Z, T, w = rng.uniform(-1, 1, (60, 2)), rng.normal(size=(60, 2)), rng.integers(0, 4, 60)
    repeated = surface.regress(surface.basis.features(np.repeat(Z, w, axis=0)), np.repeat(T, w, axis=0), 0.1)
    np.testing.assert_allclose(surface.regress(surface.basis.features(Z), T, 0.1, w.astype(float)), repeated, atol=1e-8)
    Phi = surface.basis.features(Z)
    A = Phi.T @ (w[:, None] * Phi) + 0.1 * np.diag(surface.penalty_mask)
    np.testing.assert_allclose(repeated, np.linalg.solve(A, Phi.T @ (w[:, None] * T)), atol=1e-6)


def test_a_free_bias_carries_a_shift_and_a_strong_penalty_leaves_only_that(rng):
    surface = make("grid")
    mass, T = rng.uniform(1, 2, 30), rng.normal(size=(30, 2))
    moment = mass[:, None] * T
    here = solved(surface, mass, moment, 1.0)
    there = solved(surface, mass, moment + mass[:, None] * 100.0, 1.0)
    np.testing.assert_allclose(surface.nodes(there), surface.nodes(here) + 100, atol=1e-8)
    stiff = surface.nodes(solved(surface, mass, moment, 1e9))
    np.testing.assert_allclose(stiff, np.tile(mass @ T / mass.sum(), (30, 1)), atol=1e-6)


@pytest.mark.parametrize(
    ("latent", "basis"),
    [
        (line(5), GaussianBasis(30)),  # more basis functions than nodes
        (line(30), GaussianBasis(15, width=100.0)),  # all of them nearly the same
        (grid(3, 3), GaussianBasis(9, width=20.0)),
        (line(1), GaussianBasis(4)),
        (circle(3), HarmonicBasis(8)),  # aliases of each other
    ],
)
@pytest.mark.parametrize("strength", [0.0, 1e-12])
def test_a_rank_deficient_basis_stays_finite_and_fits(latent, basis, strength):
    surface = BasisMap(latent, basis.bind(latent))
    K = latent.n_nodes
    target = np.stack([latent.nodes[:, 0] * 0.5 + 2, np.full(K, -1.0)], axis=1)
    W = solved(surface, np.ones(K), target, strength)
    assert np.isfinite(W).all()
    np.testing.assert_allclose(surface.nodes(W), target, atol=1e-4)
    between = surface.point(latent.domain.retract(latent.nodes + 0.05), W)
    assert np.abs(between).max() < 10  # no wild swings between the nodes


def test_nodes_without_mass_do_not_matter(rng):
    surface = make("line")
    mass, T = np.zeros(12), rng.normal(size=(12, 2))
    mass[[2, 5, 8]] = [1.0, 2.0, 3.0]
    W = solved(surface, mass, mass[:, None] * T, 1e-9)
    assert np.isfinite(W).all()
    np.testing.assert_allclose(surface.nodes(W)[[2, 5, 8]], T[[2, 5, 8]], atol=1e-5)


def test_the_present_weights_matter_only_where_the_equations_leave_them_open(rng):
    surface = make("line")
    mass, T = np.zeros(12), rng.normal(size=(12, 2))
    mass[[2, 5, 8]] = 1.0
    present = rng.normal(size=(surface.node_features.shape[1], 2))
    moment = mass[:, None] * T
    # Determined by a penalty, the free bias by the rows: forgotten.
    firm = surface.solve(mass, moment, 0.1, present), solved(surface, mass, moment, 0.1)
    np.testing.assert_allclose(*firm, atol=1e-8)
    # Without one, the fit is the same and what has no bearing on it stays.
    loose = surface.solve(mass, moment, 0.0, present)
    seen = surface.node_features[[2, 5, 8]]
    np.testing.assert_allclose(seen @ loose, T[[2, 5, 8]], atol=1e-8)
    unseen = np.eye(len(present)) - np.linalg.pinv(seen) @ seen
    np.testing.assert_allclose(unseen @ loose, unseen @ present, atol=1e-8)


def test_no_mass_at_all_gives_a_surface_that_is_a_point():
    surface = make("line")
    W = solved(surface, np.zeros(12), np.zeros((12, 2)), 0.1)
    np.testing.assert_array_equal(surface.nodes(W), 0)
    W = solved(surface, np.zeros(12), np.zeros((12, 2)), 0.0)
    np.testing.assert_array_equal(surface.nodes(W), 0)


@pytest.mark.parametrize("penalize_bias", [False, True])
def test_roughness_is_the_squared_norm_of_penalised_weights(rng, penalize_bias):
    latent = grid(4, 4)
    surface = BasisMap(latent, GaussianBasis(2, penalize_bias=penalize_bias).bind(latent))
    W = rng.normal(size=(4 + 2 + 1, 3))
    counted = W if penalize_bias else W[:-1]
    assert surface.roughness(W) == pytest.approx((counted**2).sum())


def test_weights_are_float64_whatever_comes_in(rng):
    surface = make("line")
    mass, moment = rng.uniform(1, 2, 12).astype(np.float32), rng.normal(size=(12, 2)).astype(np.float32)
    assert solved(surface, mass, moment, 0.1).dtype == np.float64


class HomeMade:
    """A bound basis of one's own: its five verbs, as those of another, and no capabilities."""

    def __init__(self, other):
        self.penalized, self.detail = other.penalized, other.detail
        self.features, self.gradient, self.jacobian = other.features, other.gradient, other.jacobian


@pytest.mark.parametrize("latent", [grid(9, 9), circle(12)], ids=["grid", "circle"])
@pytest.mark.parametrize(
    "recipe", [GaussianBasis(4), GaussianProcess(0.5), ElasticNetBasis()], ids=lambda each: type(each).__name__
)
def test_capabilities_change_the_way_and_not_the_map(latent, recipe, rng):
    bound = recipe.bind(latent)
    declared, plain = BasisMap(latent, bound), BasisMap(latent, HomeMade(bound))
    assert plain.capabilities == BasisCapabilities() != declared.capabilities
    weights, Z = rng.normal(size=(len(bound.penalized), 2)), rng.uniform(-1, 1, (20, latent.n_columns))
    mass = rng.uniform(0, 2, latent.n_nodes)
    scale = np.abs(weights).sum()
    np.testing.assert_allclose(declared.point(Z, weights), plain.point(Z, weights), atol=1e-9 * scale)
    np.testing.assert_allclose(declared.gram(mass), plain.gram(mass), atol=1e-9 * scale)


def test_a_map_travels_without_what_can_be_computed_again():
    latent = grid(20, 20)
    surface = BasisMap(latent, GaussianBasis(6).bind(latent))
    weights = np.random.default_rng(0).normal(size=(len(surface.penalty_mask), 3))
    before = len(pickle.dumps(surface))
    images, slopes = surface.nodes(weights), surface.node_jacobian(weights)
    assert len(pickle.dumps(surface)) == before
    other = pickle.loads(pickle.dumps(surface))
    np.testing.assert_array_equal(other.nodes(weights), images)
    np.testing.assert_array_equal(other.node_jacobian(weights), slopes)
