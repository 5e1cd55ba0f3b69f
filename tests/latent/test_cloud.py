"""Latent points with a density: nodes, meshes and tilings of a region of any shape."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prinfold.exceptions import InvalidParameterError
from prinfold.geometry.metric import face_volumes, mesh_volume
from prinfold.latent import Cloud
from prinfold.numerics.radial_kernels import PROFILES, Gaussian, Power

GAUSSIAN = PROFILES["gaussian"]


def ring(n=120, threshold=0.02):
    """A ring with an islet in its middle, and one point far from all."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, n)
    around = 6 * np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.5 * rng.normal(size=(n, 2))
    centers = np.concatenate([around, 0.4 * rng.normal(size=(20, 2)), [[40.0, 0.0]]])
    return Cloud(centers, np.ones(n + 21), GAUSSIAN, threshold)


def clouds():
    rng = np.random.default_rng(1)
    two_pieces = np.concatenate([rng.uniform(0, 5, (30, 1)), rng.uniform(20, 22, (20, 1))])
    return {
        "ring": ring(),
        "line": Cloud(two_pieces, np.ones(50), GAUSSIAN, 0.05),
        "quartic": Cloud(rng.uniform(-1, 1, (60, 2)), rng.uniform(0.5, 2, 60), PROFILES["quartic"], 0.08),
        "solid": Cloud(rng.uniform(-1, 1, (60, 3)), np.ones(60), PROFILES["triweight"], 0.05),
        "flat": Cloud(np.zeros((5, 2)), np.ones(5), GAUSSIAN, 0.3),
    }


every = pytest.mark.parametrize("space", clouds().values(), ids=clouds().keys())


@every
def test_nodes_are_the_centres_inside(space):
    kernel = space.profile.value(((space.centers[:, None] - space.centers) ** 2).sum(axis=2))
    density = (space.weight * kernel).sum(axis=1)
    inside = density / space.weight.sum() >= space.threshold
    assert_array_equal(space.nodes, space.centers[inside])
    assert space.domain.contains(space.nodes).all()
    assert_array_equal(space.domain.retract(space.nodes), space.nodes)


def test_a_point_on_its_own_is_outside():
    assert 130 < len(ring().nodes) < 141
    assert not ring().domain.contains(np.array([[40.0, 0.0]]))[0]


@every
def test_faces_and_edges_lie_in_the_region(space):
    for one in (space, space.refined(24)):
        faces = one.faces
        assert faces.shape[1] == space.dimension + 1
        for i, j in combinations(range(faces.shape[1]), 2):
            middle = 0.5 * (one.nodes[faces[:, i]] + one.nodes[faces[:, j]])
            # A lattice cuts the corners of a bay; by a quarter of a step it may.
            assert space.domain.height(middle).min(initial=0.0) > (-1e-12 if one is space else -0.7)
        a, b = one.edges.T
        assert (a < b).all()


@every
def test_tilings_lie_inside_with_their_rim_on_the_contour(space):
    tiles = space.refined(24)
    height = space.domain.height(tiles.nodes)
    assert (height >= 0).all()
    assert_array_equal(np.unique(tiles.faces), np.arange(len(tiles.nodes)))
    # Facets of one face only are the rim; no facet belongs to more than two.
    facets = np.sort(np.concatenate([np.delete(tiles.faces, k, axis=1) for k in range(tiles.faces.shape[1])]), axis=1)
    facet, count = np.unique(facets, axis=0, return_counts=True)
    assert set(count) <= {1, 2}
    rim = np.unique(facet[count == 1])
    assert (height[rim] < 1e-4).all()


@every
def test_tilings_cover_the_region(space):
    """Their volume is that of the region by a fine count: no overlaps, no gaps but those of the rim's curvature."""
    domain, tiles = space.domain, space.refined({1: 400, 2: 80, 3: 26}[space.dimension])
    low, high = domain.extent.lower, domain.extent.upper
    Z = np.random.default_rng(2).uniform(low, high, (60_000, space.dimension))
    share = (domain.height(Z) >= 0).mean()
    error = 4 * np.sqrt(share * (1 - share) / len(Z)) / share
    assert mesh_volume(tiles.nodes, tiles.faces) == pytest.approx(share * np.prod(high - low), rel=error + 0.02)


@every
def test_the_box_holds_what_is_seen_of_the_region(space):
    domain, rng = space.domain, np.random.default_rng(3)
    start = space.nodes[rng.integers(space.n_nodes, size=2000)]
    Z = domain.retract(start + rng.normal(size=start.shape))
    assert (domain.extent.lower <= Z).all()
    assert (domain.extent.upper >= Z).all()


def test_the_cut_of_a_ball_is_a_ball():
    """One kernel in three dimensions: 4πr³/3, cut off all round by every kind of corner."""
    radius = 0.6
    space = Cloud(np.array([[0.03, 0.01, 0.02]]), np.ones(1), PROFILES["quartic"], (1 - radius**2) ** 2)
    tiles = space.refined(30)
    assert mesh_volume(tiles.nodes, tiles.faces) == pytest.approx(4 / 3 * np.pi * radius**3, rel=0.02)
    assert (face_volumes(tiles.nodes, tiles.faces) >= 0).all()


def test_pieces_are_not_joined():
    """Nothing leads across the gap between the two pieces of a line."""
    space = clouds()["line"]
    for one in (space, space.refined(200)):
        ends = one.nodes[one.faces][:, :, 0]
        assert (((ends < 12).all(axis=1)) | ((ends > 12).all(axis=1))).all()
        assert (ends < 12).any()
        assert (ends > 12).any()


def test_a_region_between_all_nodes_of_a_lattice_has_an_empty_tiling():
    space = Cloud(np.array([[0.0, 0.0], [100.0, 100.0], [200.0, 0.0]]), np.ones(3), GAUSSIAN, 0.3)
    assert len(space.refined(3).faces) == 0
    assert len(space.faces) == 0
    assert space.edges.shape == (0, 2)
    assert space.spacing == 2.0


def test_means_outside_the_region_are_brought_back():
    space = ring()
    Z, sure = space.unembed(np.array([[3.0, 0.0], [0.0, 0.0]]))
    assert space.domain.contains(Z).all()
    assert (sure == np.inf).all()
    assert_allclose(space.embed(Z), Z)


def test_thinned_has_fewer_nodes_of_the_same_region():
    space = ring()
    thin = space.thinned()
    assert len(thin.nodes) == -(-len(space.nodes) // 4)
    assert thin.threshold == space.threshold
    assert_array_equal(thin.domain.height(space.nodes), space.domain.height(space.nodes))


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((np.zeros((0, 2)), np.ones(0), GAUSSIAN, 0.1), "finite"),
        ((np.full((3, 2), np.nan), np.ones(3), GAUSSIAN, 0.1), "finite"),
        ((np.zeros((3, 2)), np.ones(2), GAUSSIAN, 0.1), "weight"),
        ((np.zeros((3, 2)), np.array([1.0, 0.0, 1.0]), GAUSSIAN, 0.1), "weight"),
        ((np.zeros((3, 2)), np.ones(3), GAUSSIAN, 1.5), "threshold"),
        ((np.zeros((3, 2)), np.ones(3), GAUSSIAN, 0.0), "threshold"),
        ((np.zeros((3, 2)), np.ones(3), Power(-3, "quartic"), 0.1), "kernel"),
        ((np.zeros((3, 2)), np.ones(3), Gaussian(0.1), 0.1), "kernel"),
        ((np.zeros((3, 2)), np.ones(3), "gaussian", 0.1), "kernel"),
    ],
)
def test_what_makes_no_region_is_refused(arguments, match):
    with pytest.raises(InvalidParameterError, match=match):
        Cloud(*arguments)


def test_a_bandwidth_is_a_unit_of_the_coordinates():
    """Kernels h wide are kernels of width 1 with everything else h times as large."""
    here = ring()
    there = Cloud(3.0 * here.centers, here.weight, here.profile, here.threshold, bandwidth=3.0)
    Z = np.random.default_rng(2).uniform(-9, 9, (200, 2))
    assert_array_equal(there.domain.contains(3.0 * Z), here.domain.contains(Z))
    assert_allclose(there.domain.retract(3.0 * Z), 3.0 * here.domain.retract(Z), atol=1e-9)
    value, gradient, hessian = there.mixture.log_density_hessian(3.0 * Z)
    expected = here.mixture.log_density_hessian(Z)
    assert_allclose(value, expected[0], atol=1e-12)
    assert_allclose(gradient, expected[1] / 3.0, atol=1e-12)
    assert_allclose(hessian, expected[2] / 9.0, atol=1e-12)
    for one, other in ((here, there), (here.refined(20), there.refined(20))):
        assert_allclose(other.nodes, 3.0 * one.nodes, atol=1e-9)
        assert_array_equal(other.faces, one.faces)
        assert_allclose(other.spacing, 3.0 * one.spacing)


def test_a_lattice_may_have_other_numbers_of_nodes_along_each_axis():
    space = ring()
    wide, tall = space.tiled((30, 12)), space.tiled((12, 30))
    assert_allclose(mesh_volume(wide.nodes, wide.faces), mesh_volume(tall.nodes, tall.faces), rtol=0.05)
    assert_array_equal(space.tiled((20, 20)).nodes, space.refined(20).nodes)


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, np.inf, np.nan])
def test_a_bandwidth_that_is_none_is_refused(bandwidth):
    with pytest.raises(InvalidParameterError, match="bandwidth of a latent density must be above 0"):
        Cloud(np.zeros((2, 2)), np.ones(2), GAUSSIAN, 0.3, bandwidth=bandwidth)
