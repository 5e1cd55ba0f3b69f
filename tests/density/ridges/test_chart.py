"""Charts of ridges of two dimensions and more, on data whose true surfaces are known."""

from __future__ import annotations

import pickle
import warnings
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial import cKDTree
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr
from tests.properties.cases import cloud, random_rotation

from prinfold import datasets
from prinfold.density.densities import KernelDensity
from prinfold.density.ridges import chart_embedding, chart_nodes
from prinfold.density.ridges.chart import RidgeChart
from prinfold.density.ridges.chart_surface import Patches, monomial_gradients, monomial_hessians, monomials
from prinfold.density.ridges.mean_shift import Flow, Status
from prinfold.exceptions import DegenerateWarning, InvalidDataError, InvalidParameterError
from prinfold.files import _decode, _encode, _Source
from prinfold.latent import Cloud
from prinfold.numerics.radial_kernels import Gaussian


def ridge(X, bandwidth, dimension=2):
    X = np.asarray(X, dtype=float)
    flow = Flow(KernelDensity(X, np.ones(len(X)), bandwidth), dimension)
    found = flow(X)
    return flow, found.only(found.status == Status.CONVERGED)


def chart(X, bandwidth, dimension=2):
    return RidgeChart.of(*ridge(X, bandwidth, dimension))


def placed(points, tangent, bandwidth=0.5):
    """A chart of given points with one tangent plane for all, with a flow that finds no others."""
    points, tangent = np.asarray(points, dtype=float), np.asarray(tangent, dtype=float)
    flow = Flow(KernelDensity(points, np.ones(len(points)), bandwidth), tangent.shape[1])
    found = flow(points)
    return RidgeChart.of(flow, found._replace(points=points, tangent=np.repeat(tangent[None], len(points), axis=0)))


def dome(n=1200, noise=0.04, seed=0):
    """Half a sphere of radius 1, with noise along its normals."""
    rng = np.random.default_rng(seed)
    up, turn = rng.uniform(0, 1, n), rng.uniform(0, 2 * np.pi, n)
    flat = np.sqrt(1 - up**2)
    return np.stack([flat * np.cos(turn), flat * np.sin(turn), up], axis=1) * (1 + noise * rng.normal(size=(n, 1)))


def wave(n=1500, noise=0.05, seed=0):
    """An S-shaped sheet two wide and 3π long; rows, the length along it and the width."""
    rng = np.random.default_rng(seed)
    t, w = rng.uniform(-1.5 * np.pi, 1.5 * np.pi, n), rng.uniform(0, 2, n)
    off = 1 + noise * rng.normal(size=n) * np.sign(t)
    return np.stack([np.sin(t) * off, w, np.sign(t) * (np.cos(t) * off - 1)], axis=1), t, w


def cylinder(n=900, noise=0.03, seed=0):
    rng = np.random.default_rng(seed)
    turn, height = rng.uniform(0, 2 * np.pi, n), rng.uniform(-0.8, 0.8, n)
    return np.stack([np.cos(turn), np.sin(turn), height], axis=1) + noise * rng.normal(size=(n, 3))


SURFACES = {
    "dome": lambda: (dome(), 0.2),
    "wave": lambda: (wave()[0], 0.2),
    "five columns": lambda: (cloud(300), 0.3),
    "pieces": lambda: (np.concatenate([cloud(200, 3), cloud(150, 3, seed=4) + [7.0, 0.0, 0.0]]), 0.35),
    "cylinder": lambda: (cylinder(), 0.25),
}


@pytest.fixture(scope="module", params=SURFACES)
def known(request):
    X, bandwidth = SURFACES[request.param]()
    return X, chart(X, bandwidth), bandwidth


def strain(c):
    """Principal stretches at the nodes, largest and least."""
    stretch = np.linalg.svd(c.jacobian(c.latent.nodes), compute_uv=False)
    return float(stretch.max()), float(stretch.min())


# ------------------------------------------------------------------------------------------- what it should be


def test_a_plane_is_reproduced_as_it_is():
    rng = np.random.default_rng(0)
    axes, shift = np.linalg.qr(rng.standard_normal((6, 2)))[0], rng.normal(size=6)
    flat = rng.uniform(-1, 1, (400, 2)) * [2.0, 1.0]
    c = chart(flat @ axes.T + shift, 0.3)
    points = c.mesh(12).vertices - shift
    assert_allclose(points, points @ axes @ axes.T, atol=1e-9)
    # Without any stretching: the distances of nodes in the plane are those of their coordinates.
    nodes = c.latent.nodes
    assert_allclose(pdist(c.point(nodes)), pdist(nodes), rtol=1e-3, atol=1e-3)
    assert_allclose(strain(c), 1.0, atol=1e-2)


def test_a_swiss_roll_is_unrolled():
    data = datasets.make_swiss_roll(3000, noise=0.3, rng=0, sampling="area")
    c = chart(data.X, 1.2)
    U = data.latent
    r = U[:, 0]
    length = 0.5 * (r * np.sqrt(1 + r**2) + np.arcsinh(r))  # arc length of the spiral
    found = c.nearest(data.X)
    assert abs(spearmanr(found.latent[:, 0], length)[0]) > 0.999
    assert abs(spearmanr(found.latent[:, 1], U[:, 1])[0]) > 0.99
    # Lengths are those of the roll, to a few per cent.
    assert_allclose(abs(np.polyfit(length, found.latent[:, 0], 1)[0]), 1.0, atol=0.05)
    assert_allclose(abs(np.polyfit(U[:, 1], found.latent[:, 1], 1)[0]), 1.0, atol=0.05)
    vertices = c.mesh().vertices[::5]
    off = data.surface.distance(vertices)
    assert np.sqrt(np.mean(off**2)) < 0.25
    # The ridge itself is as near.
    points = ridge(data.X, 1.2)[1].points
    assert np.sqrt(np.mean(off**2)) < 1.2 * np.sqrt(np.mean(data.surface.distance(points) ** 2))


def test_the_surface_is_the_ridge(known):
    X, c, bandwidth = known
    flow, points = ridge(X, bandwidth)
    off = np.sqrt(c.nearest(points.points).squared_distance)
    assert np.sqrt(np.mean(off**2)) < 0.02 * bandwidth
    assert off.max() < 0.3 * bandwidth
    vertices = c.mesh().vertices
    back = flow(vertices)
    there = back.status == Status.CONVERGED
    assert there.mean() > 0.98
    off = np.linalg.norm(back.points - vertices, axis=1)[there]
    assert np.sqrt(np.mean(off**2)) < 0.06 * bandwidth


def test_a_sheet_that_can_be_laid_flat_is_not_stretched():
    X, t, w = wave()
    c = chart(X, 0.2)
    longest, shortest = strain(c)
    assert 0.95 < shortest < longest < 1.06
    Z = c.nearest(X).latent
    assert abs(spearmanr(Z[:, 0], t)[0]) > 0.999
    assert abs(spearmanr(Z[:, 1], w)[0]) > 0.98


def test_classical_scaling_alone_stretches_more():
    """Why nodes are moved after it: short ways around gaps and zigzags between nodes make up lengths that are not."""
    flow, points = ridge(wave(600)[0], 0.2)
    sheet = chart_nodes.make_neighbor_graph(flow, points)
    pieces = chart_embedding._lay_pieces_flat(sheet, np.arange(len(sheet.points)))
    nodes, laid = max(pieces, key=lambda each: len(each[0]))
    sheet = sheet.only(nodes)
    first, second = sheet.pairs.T
    true = np.linalg.norm(sheet.points[first] - sheet.points[second], axis=1)

    def spread(Z):
        return np.std(np.linalg.norm(Z[first] - Z[second], axis=1) / true)

    assert spread(laid.placed.latent) < 0.2 * spread(laid.start[:, :2])


def test_closed_surfaces_are_cut_into_pieces_that_lie_flat():
    c = chart(cylinder(), 0.25)
    assert c.piece.max() == 1
    longest, shortest = strain(c)
    assert 0.9 < shortest < longest < 1.15
    ball = dome(1500)
    whole = chart(np.concatenate([ball, -dome(1500, seed=1)]), 0.25)
    assert whole.piece.max() == 1
    # No part of the surface is lost at the cuts.
    probe = np.random.default_rng(0).standard_normal((500, 3))
    probe /= np.linalg.norm(probe, axis=1, keepdims=True)
    assert np.sqrt(whole.nearest(probe).squared_distance).max() < 0.2


def test_patches_with_tangents_and_curvature_beat_plain_regression():
    """Distance of the surface from the ridge within it; plain regression is drawn inwards by what bends."""
    flow, points = ridge(dome(), 0.2)
    c = RidgeChart.of(flow, points)
    inner = c.latent.nodes[np.linalg.norm(c.latent.nodes, axis=1) < 1.0]
    Z = inner + 0.03
    flat = np.zeros_like(c.patches.coefficients)
    flat[:, :3] = c.patches.coefficients[:, :3]
    plain = np.zeros_like(flat)
    plain[:, 0] = flat[:, 0]

    def off(coefficients):
        y = Patches(c.patches.centers, coefficients, c.patches.bandwidth).point(Z)
        return np.sqrt(np.mean(np.square(flow(y).points - y).sum(axis=1)))

    bent = off(c.patches.coefficients)
    assert bent < 0.25 * off(flat)
    assert bent < 0.25 * off(plain)
    assert bent < 0.02 * 0.2


# ---------------------------------------------------------------------------------------------------- theorems


def test_the_jacobian_is_the_derivative_and_the_bend_that_of_the_jacobian(known):
    X, c, _ = known
    Z = c.nearest(X[:40]).latent
    R = np.random.default_rng(0).standard_normal((len(Z), X.shape[1]))
    J, bend = c.jacobian(Z), c.bend(Z, R)
    for axis in range(2):
        step = 1e-6 * np.eye(2)[axis]
        assert_allclose(J[:, :, axis], (c.point(Z + step) - c.point(Z - step)) / 2e-6, atol=1e-7)
        slope = np.einsum("ndq,nd->nq", c.jacobian(Z + step) - c.jacobian(Z - step), R) / 2e-6
        assert_allclose(bend[:, axis], slope, atol=1e-5 * max(1.0, np.abs(slope).max()))


def test_projection(known):
    X, c, _ = known
    found = c.nearest(X)
    assert found.converged.all()
    assert c.latent.domain.contains(found.latent).all()
    assert_allclose(c.point(found.latent), found.points, atol=1e-12)
    assert_allclose(c.nearest(found.points).points, found.points, atol=1e-8)
    for others in (c.point(c.latent.nodes), c.mesh(12).vertices, c.mesh().vertices):
        nearest, _ = cKDTree(others).query(X)
        assert (np.sqrt(found.squared_distance) <= nearest + 1e-9).all()
    inside = ~c.latent.domain.boundary(found.latent)
    assert inside.sum() > 0.5 * len(X)
    J, residual = c.jacobian(found.latent), X - found.points
    along = np.abs(np.einsum("ndq,nd->nq", J, residual)) / np.linalg.norm(J, axis=1)
    assert (along / np.linalg.norm(residual, axis=1)[:, None])[inside].max() < 1e-5


def test_row_by_row_is_the_batch(known):
    X, c, _ = known
    batch = c.nearest(X[:10])
    for i in range(10):
        for whole, one in zip(batch, c.nearest(X[i : i + 1]), strict=True):
            assert_array_equal(whole[i : i + 1], one)
    Z = batch.latent
    assert_array_equal(c.point(Z), np.concatenate([c.point(Z[i : i + 1]) for i in range(10)]))


def test_rows_far_away_have_a_nearest_point_too(known):
    X, c, _ = known
    far = c.nearest(1e3 * X[:20])
    assert np.isfinite(far.points).all()
    nearest, _ = cKDTree(c.mesh().vertices).query(1e3 * X[:20])
    assert (np.sqrt(far.squared_distance) <= nearest + 1e-6).all()


def test_no_rows():
    c = chart(cloud(), 0.5)
    found = c.nearest(np.empty((0, 5)))
    assert found.latent.shape == (0, 2)
    assert c.point(np.empty((0, 2))).shape == (0, 5)
    assert c.jacobian(np.empty((0, 2))).shape == (0, 5, 2)


def test_the_mesh_lies_on_the_surface(known):
    _, c, _ = known
    for mesh in (c.mesh(), c.mesh(8)):
        assert_allclose(c.point(mesh.latent), mesh.vertices, atol=1e-12)
        assert mesh.faces.shape[1] == 3
        assert c.latent.domain.contains(mesh.latent).all()
    fine, coarse = c.mesh(40), c.mesh(8)
    assert len(fine.vertices) > len(coarse.vertices)
    # Every piece has its share.
    pieces = cKDTree(c.latent.centers).query(coarse.latent)[1]
    assert set(c.piece[pieces]) == set(c.piece)


def test_the_order_of_points_does_not_matter():
    flow, points = ridge(cloud(200), 0.3)
    order = np.random.default_rng(0).permutation(len(points.points))
    here, there = RidgeChart.of(flow, points), RidgeChart.of(flow, points.only(order))
    X = cloud(50, seed=5)
    assert_allclose(there.nearest(X).latent, here.nearest(X).latent, atol=1e-9)


@pytest.mark.parametrize(("name", "dimension"), [("five columns", 2), ("pieces", 2), ("crumbs", 2), ("crumbs", 3)])
def test_rigid_motions_and_scaling_carry_through(name, dimension):
    """Crumbs are pieces of one or two nodes, whose axes others must tell."""
    X, bandwidth = (cloud(), 0.16) if name == "crumbs" else SURFACES[name]()
    R, shift = random_rotation(X.shape[1]), np.arange(X.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        here = chart(X, bandwidth, dimension)
        there = chart(3.0 * X @ R.T + shift, 3.0 * bandwidth, dimension)
    rows = X[::5]
    first, second = here.nearest(rows), there.nearest(3.0 * rows @ R.T + shift)
    assert_allclose(second.points, 3.0 * first.points @ R.T + shift, atol=1e-5)
    assert_allclose(pdist(second.latent), 3.0 * pdist(first.latent), atol=1e-4)


def test_axes_are_sorted_and_point_where_columns_rise():
    c = chart(cloud(300), 0.3)
    Z, points = c.latent.nodes, c.point(c.latent.nodes)
    assert Z[:, 0].std() > Z[:, 1].std()
    for z in Z.T:
        slope = (z - z.mean()) @ (points - points.mean(axis=0))
        assert slope[np.abs(slope).argmax()] > 0


def test_pickles_and_files_hold_a_chart():
    X = cloud(200)
    c = chart(X, 0.3)
    found = c.nearest(X)
    arrays = {}
    body = _encode(c, "chart", arrays)
    for again in (pickle.loads(pickle.dumps(c)), _decode(body, _Source(arrays), "chart")):
        assert_array_equal(again.nearest(X).latent, found.latent)
        assert_array_equal(again.mesh(9).vertices, c.mesh(9).vertices)


@pytest.mark.parametrize("dimension", [1, 3, 4])
def test_any_dimension(dimension):
    rng = np.random.default_rng(0)
    flat = rng.uniform(-1, 1, (300, dimension))
    X = np.concatenate([flat, 0.2 * np.square(flat[:, :1]), np.zeros((300, 1))], axis=1)
    X = X + 0.01 * rng.standard_normal(X.shape)
    c = chart(X, 0.5, dimension)
    found = c.nearest(X[:100])
    assert found.latent.shape == (100, dimension)
    assert found.converged.all()
    assert_allclose(c.nearest(found.points).points, found.points, atol=1e-8)
    assert np.sqrt(np.mean(found.squared_distance)) < 0.06
    mesh = c.mesh()
    assert mesh.faces.shape[1] == dimension + 1
    assert (len(mesh.faces) > 0) == (dimension <= 3)


# --------------------------------------------------------------------------------------------- nodes and pieces


def test_nodes_are_a_spacing_apart_and_no_ridge_point_is_farther_from_them():
    flow, points = ridge(dome(), 0.2)
    sheet = chart_nodes.make_neighbor_graph(flow, points)
    assert pdist(sheet.points).min() >= sheet.spacing
    assert cKDTree(sheet.points).query(points.points)[0].max() <= sheet.spacing
    assert sheet.spacing == 0.1


def test_there_are_never_too_many_nodes():
    flow, points = ridge(dome(), 0.2)
    sheet = chart_nodes.make_neighbor_graph(flow, points, most=60)
    assert 30 < len(sheet.points) <= 60
    assert cKDTree(sheet.points).query(points.points)[0].max() <= sheet.spacing


def test_gaps_between_rows_are_filled_with_ridge_points():
    X = wave(500)[0]
    flow, points = ridge(X, 0.3)
    kept = points.only(chart_nodes.thin(points.points, 0.25))
    sheet = chart_nodes.make_neighbor_graph(flow, kept)
    assert len(sheet.points) > 1.5 * len(kept.points)
    back = flow(sheet.points)
    assert_allclose(back.points, sheet.points, atol=1e-5)


def test_neighbours_lie_along_the_ridge_and_not_on_the_next_layer():
    flat = np.stack(np.meshgrid(np.arange(8.0), np.arange(8.0)), axis=-1).reshape(-1, 2)
    layers = np.concatenate([np.insert(flat, 2, height, axis=1) for height in (0.0, 1.2)])
    tangent = np.repeat(np.eye(3)[None, :, :2], len(layers), axis=0)
    sheet = chart_nodes.NeighborGraph(layers, tangent, np.empty((0, 2), np.intp), 1.0)
    pairs = chart_nodes.neighbors(sheet)
    across = layers[pairs[:, 0], 2] != layers[pairs[:, 1], 2]
    steep = np.linalg.norm(layers[pairs[:, 0], :2] - layers[pairs[:, 1], :2], axis=1) < 1.1
    assert not (across & steep).any()
    assert (~across).sum() > 2 * len(layers)


def test_pieces_lie_side_by_side_with_a_gap():
    X, bandwidth = SURFACES["pieces"]()
    c = chart(X, bandwidth)
    spacing = 0.5 * bandwidth
    spans = [(z.min(), z.max()) for z in (c.latent.centers[c.piece == i, 0] for i in range(c.piece.max() + 1))]
    spans.sort()
    for (_, high), (low, _) in pairwise(spans):
        assert_allclose(low - high, chart_embedding.GAP_SPACINGS * spacing, rtol=1e-9)
    between = np.array([[0.5 * (spans[0][1] + spans[1][0]), 0.0]])
    assert not c.latent.domain.contains(between).any()
    assert (np.diff(np.bincount(c.piece)) <= 0).all()


def test_a_flap_on_a_thread_lies_on_its_own_side():
    """Two squares joined by a strip: without one orientation for all, the smaller could come to lie mirrored."""
    rng = np.random.default_rng(0)
    parts = [
        rng.uniform(0, 3, (700, 2)),
        rng.uniform(0, 1, (60, 2)) * [2, 0.15] + [2.9, 1.4],
        rng.uniform(0, 1.2, (150, 2)) + [4.8, 0.6],
    ]
    flat = np.concatenate(parts)
    X = np.insert(flat, 2, 0.1 * flat[:, 0] ** 2, axis=1) + 0.01 * rng.standard_normal((len(flat), 3))
    c = chart(X, 0.25)
    J = c.jacobian(c.latent.nodes[c.piece == 0])
    assert len(set(np.sign(np.linalg.det(J[:, :2])))) == 1


# ------------------------------------------------------------------------------------------------------ corners


def test_no_ridge_point_is_an_error_that_says_what_to_do():
    flow, points = ridge(cloud(), 0.3)
    with pytest.raises(InvalidDataError, match="larger bandwidth, or another n_components"):
        RidgeChart.of(flow, points.only(np.empty(0, dtype=int)))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_few_points_are_small_plates(n):
    points = np.zeros((n, 3)) if n == 5 else np.eye(3)[:n] * 0.25
    with pytest.warns(DegenerateWarning, match=rf"{int(n == 2)} of 2 dimensions only"):
        c = placed(points, np.eye(3)[:, :2])
    found = c.nearest(np.array([[0.0, 0.0, 2.0], [5.0, 0.0, 0.0], points[0]]))
    assert np.isfinite(found.points).all()
    assert_allclose(found.points[2], points[0], atol=1e-12)
    assert_allclose(found.points[:, 2], 0.0, atol=1e-12)
    assert_allclose(c.nearest(found.points).points, found.points, atol=1e-9)
    assert len(c.mesh().faces)


def test_points_on_a_line_make_a_ribbon():
    line = np.linspace(0, 3, 11)[:, None] * [0.6, 0.0, 0.8]
    with pytest.warns(DegenerateWarning, match="1 of 2 dimensions only"):
        c = placed(line, np.array([[0.6, 0.0], [0.0, 1.0], [0.8, 0.0]]))
    assert_allclose(c.nearest(line).points, line, atol=1e-9)
    beside = line[1:-1] + [0.0, 0.1, 0.0]
    assert_allclose(c.nearest(beside).points, beside, atol=1e-9)
    wide = c.nearest(line + [0.0, 1.0, 0.0]).points[:, 1]
    assert (wide > 0.05).all()
    assert (wide < 0.3).all()


def test_points_all_over_the_place_make_as_many_plates():
    rng = np.random.default_rng(0)
    tangent = np.linalg.qr(rng.standard_normal((3, 2)))[0]
    with pytest.warns(DegenerateWarning, match="0 of 2 dimensions only"):
        c = placed(rng.uniform(-9, 9, (20, 3)), tangent)
    assert c.piece.max() == 19
    found = c.nearest(rng.uniform(-9, 9, (50, 3)))
    assert found.converged.all()


def test_what_is_well_is_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chart(cloud(300), 0.3)


def test_parts_that_do_not_fit_are_refused():
    latent = Cloud(np.zeros((2, 2)), np.ones(2), Gaussian(6.0), 0.4)
    with pytest.raises(InvalidParameterError, match=r"coefficients of shape \(2, 6\)"):
        Patches(np.zeros((2, 2)), np.zeros((2, 3, 3)), 1.0)
    with pytest.raises(InvalidParameterError, match="a bandwidth above 0"):
        Patches(np.zeros((2, 2)), np.zeros((2, 6, 3)), 0.0)
    patches = Patches(np.zeros((3, 2)), np.zeros((3, 6, 3)), 1.0)
    with pytest.raises(InvalidParameterError, match="a patch and a piece for each"):
        RidgeChart(latent, patches, np.zeros(2, dtype=int))


def test_beyond_all_kernels_the_nearest_patch_goes_on():
    coefficients = np.random.default_rng(0).standard_normal((2, 6, 3))
    patches = Patches(np.array([[0.0, 0.0], [10.0, 0.0]]), coefficients, 1.0)
    Z = np.array([[-2.0, 0.5]])
    assert_allclose(patches.point(Z)[0], monomials(Z)[0] @ coefficients[0])
    assert_allclose(patches.jacobian(Z)[0], np.einsum("pq,pd->dq", monomial_gradients(Z)[0], coefficients[0]))
    r = np.array([[1.0, -2.0, 0.5]])
    wanted = np.einsum("pij,pd,d->ij", monomial_hessians(2), coefficients[0], r[0])
    assert_allclose(patches.bend(Z, r)[0], wanted)


def test_foam_is_taken_apart():
    """A blob at a bandwidth far too small: its walls meet at edges, where no layout has room for all of them."""
    X = np.random.default_rng(4).standard_normal((300, 3)) * [1.0, 0.32, 0.1]
    flow = Flow(KernelDensity(X, np.ones(len(X)), 0.1), 2)
    points = flow(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateWarning)
        c = RidgeChart.of(flow, points)
    found = c.nearest(points.points)
    assert found.converged.all()
    assert np.sqrt(found.squared_distance).max() < 0.9 * 0.1
    assert np.sqrt(found.squared_distance.mean()) < 0.1 * 0.1
    assert_allclose(c.nearest(found.points).points, found.points, atol=1e-8)
