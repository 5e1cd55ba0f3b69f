"""Latent spaces: nodes, neighbours, faces, means and charts, on every topology."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prinfold.exceptions import InvalidParameterError
from prinfold.geometry.domain import Box
from prinfold.latent import (
    Hexagons,
    LatentSpace,
    Lattice,
    Points,
    Sphere,
    circle,
    cylinder,
    grid,
    hexagons,
    line,
    torus,
)

SCATTER = np.random.default_rng(3)
SPACES = {
    "line": line(7),
    "circle": circle(8),
    "grid": grid(5, 4),
    "grid 3-D": grid(3, 4, 3),
    "grid 4-D": grid(2, 3, 2, 2),
    "cylinder": cylinder(6, 4),
    "torus": torus(5, 4),
    "torus 3-D": torus(3, 4, 3),
    "hexagons": hexagons(5, 4),
    "hexagons round": Hexagons((5, 3), (True, False)),
    "hexagons torus": Hexagons((5, 4), (True, True)),
    "sphere": Sphere(60),
    "points 1-D": Points(SCATTER.uniform(-3, 5, (12, 1))),
    "points": Points(SCATTER.uniform(-1, 1, (40, 2))),
    "points 3-D": Points(SCATTER.normal(size=(30, 3))),
}
LATTICES = [name for name in SPACES if type(SPACES[name]) is Lattice]
CLOSED = ["circle", "torus", "sphere", "torus 3-D"]

every = pytest.mark.parametrize("space", SPACES.values(), ids=SPACES.keys())
every_lattice = pytest.mark.parametrize("space", [SPACES[n] for n in LATTICES], ids=LATTICES)


def anywhere(space, n=40, seed=0):
    """Valid coordinates, seams and edges included."""
    rng = np.random.default_rng(seed)
    if isinstance(space, Sphere):
        return space.domain.retract(rng.normal(size=(n, 3)))
    low, high = np.asarray(space.domain.low), np.asarray(space.domain.high)
    Z = rng.uniform(low, high, (n, space.n_columns))
    Z[0], Z[1] = low, space.domain.retract(high[None])[0]
    return Z


def unrolled(space, faces):
    """(F, q + 1, Q) corners of faces in a chart without seams, each face on its own."""
    corners = space.nodes[faces]
    first = corners[:, :1]
    return first + space.domain.difference(corners, first)


def volumes(corners):
    edges = corners[:, 1:] - corners[:, :1]
    return np.abs(np.linalg.det(edges)) / math.factorial(edges.shape[1])


# ------------------------------------------------------------------------------------------------ nodes


@every
def test_nodes_are_different_and_inside(space):
    assert space.domain.contains(space.nodes).all()
    assert len(np.unique(space.nodes.round(12), axis=0)) == space.n_nodes == len(space.nodes)
    assert space.nodes.shape[1] == space.n_columns
    np.testing.assert_allclose(space.domain.retract(space.nodes), space.nodes, atol=1e-15)


@every_lattice
def test_lattice_nodes_fill_the_axes_evenly(space):
    assert space.n_nodes == math.prod(space.shape)
    for axis, (n, closed) in enumerate(zip(space.shape, space.periodic, strict=True)):
        values = np.unique(space.nodes[:, axis])
        assert len(values) == n
        step = 2 * np.pi / n if closed else 2 / (n - 1)
        np.testing.assert_allclose(np.diff(values), step)
        assert values[0] == pytest.approx(-np.pi if closed else -1)
        assert values[-1] == pytest.approx(np.pi - step if closed else 1)


@every
def test_a_space_with_axes_is_their_product(space):
    """Lattices have them; nodes of other spaces lie where they lie."""
    assert bool(space.axes) == (type(space) is Lattice)
    if space.axes:
        product = np.meshgrid(*(axis.nodes[:, 0] for axis in space.axes), indexing="ij")
        np.testing.assert_array_equal(np.stack(product, axis=-1).reshape(-1, space.n_columns), space.nodes)
        np.testing.assert_array_equal(
            space.embed(space.nodes),
            np.hstack([axis.embed(space.nodes[:, [j]]) for j, axis in enumerate(space.axes)]),
        )


@every
def test_spacing_is_a_distance_between_neighbours(space):
    a, b = space.edges.T
    lengths = space.distance(space.nodes[a], space.nodes[b])
    expected = np.median(lengths) if isinstance(space, Points) else lengths.min()
    assert space.spacing == pytest.approx(expected)
    assert space.spacing > 0


def test_sphere_nodes_are_even():
    space = Sphere(300)
    a, b = space.edges.T
    lengths = space.distance(space.nodes[a], space.nodes[b])
    assert lengths.max() < 2.2 * lengths.min()
    np.testing.assert_allclose(space.nodes.mean(axis=0), 0, atol=0.01)
    np.testing.assert_allclose(space.nodes.T @ space.nodes / 300, np.eye(3) / 3, atol=0.01)


# ------------------------------------------------------------------------------------------- neighbours


@every
def test_edges_name_each_pair_once(space):
    edges = space.edges
    assert (edges[:, 0] < edges[:, 1]).all()
    assert len(np.unique(edges, axis=0)) == len(edges)
    assert edges.min() >= 0
    assert edges.max() < space.n_nodes
    assert len(np.unique(edges)) == space.n_nodes  # nobody is left out


@every_lattice
def test_lattice_neighbours_differ_by_one_step_along_one_axis(space):
    a, b = space.edges.T
    steps = np.array([2 * np.pi / n if c else 2 / (n - 1) for n, c in zip(space.shape, space.periodic, strict=True)])
    moved = np.abs(space.domain.difference(space.nodes[a], space.nodes[b])) / steps
    np.testing.assert_allclose(np.sort(moved, axis=1), np.eye(len(steps))[[-1] * len(moved)], atol=1e-9)
    per_axis = [
        (n if closed else n - 1) * space.n_nodes // n for n, closed in zip(space.shape, space.periodic, strict=True)
    ]
    assert len(space.edges) == sum(per_axis)


@given(shape=st.lists(st.integers(1, 4), min_size=1, max_size=3), data=st.data())
def test_edges_of_any_lattice_by_brute_force(shape, data):
    periodic = tuple(data.draw(st.booleans()) for _ in shape)
    space = Lattice(tuple(shape), periodic)
    index = {place: i for i, place in enumerate(itertools.product(*map(range, shape)))}
    expected = set()
    for place, i in index.items():
        for axis, (n, closed) in enumerate(zip(shape, periodic, strict=True)):
            after = list(place)
            after[axis] += 1
            if closed:
                after[axis] %= n
            j = index.get(tuple(after))
            if j is not None and j != i:
                expected.add((min(i, j), max(i, j)))
    assert {tuple(edge) for edge in space.edges.tolist()} == expected


# ------------------------------------------------------------------------------------------------ faces


@every
def test_faces_have_distinct_corners_and_use_every_node(space):
    faces = space.faces
    assert faces.shape[1] == space.dimension + 1
    assert (np.diff(np.sort(faces, axis=1), axis=1) > 0).all()
    np.testing.assert_array_equal(np.unique(faces), np.arange(space.n_nodes))


@every_lattice
def test_lattice_faces_cover_the_domain_exactly_once(space):
    size = np.asarray(space.domain.high) - np.asarray(space.domain.low)
    corners = unrolled(space, space.faces)
    assert volumes(corners).sum() == pytest.approx(np.prod(size))
    # Equal volumes could still overlap: every place lies in one face only.
    Z = np.random.default_rng(1).uniform(space.domain.low, space.domain.high, (50, space.n_columns))
    delta = space.domain.difference(Z[:, None], corners[None, :, 0])  # any copy of the domain near the face
    copies = np.array(list(itertools.product(*([-1, 0, 1] if closed else [0] for closed in space.periodic))))
    edges = np.linalg.inv(np.swapaxes(corners[:, 1:] - corners[:, :1], 1, 2))
    inside = np.zeros((len(Z), len(corners)), dtype=int)
    for copy in copies:
        weight = np.einsum("fij,nfj->nfi", edges, delta + copy * size)
        inside += (weight > 0).all(axis=2) & (weight.sum(axis=2) < 1)
    np.testing.assert_array_equal(inside.sum(axis=1), 1)


@pytest.mark.parametrize("name", CLOSED)
def test_closed_spaces_have_no_boundary(name):
    faces = SPACES[name].faces
    sides = np.concatenate([np.delete(faces, i, axis=1) for i in range(faces.shape[1])])
    _, count = np.unique(np.sort(sides, axis=1), axis=0, return_counts=True)
    np.testing.assert_array_equal(count, 2)


@pytest.mark.parametrize(
    ("space", "expected"),
    [(circle(5), 0), (torus(5, 4), 0), (torus(3, 3), 0), (Sphere(4), 2), (Sphere(61), 2)]
    + [(line(4), 1), (grid(4, 3), 1), (grid(3, 3, 3), 1), (cylinder(5, 3), 0), (SPACES["points"], 1)],
)
def test_euler_characteristic(space, expected):
    alternating = 0
    for size in range(1, space.dimension + 2):
        parts = {part for face in np.sort(space.faces).tolist() for part in itertools.combinations(face, size)}
        alternating += (-1) ** (size + 1) * len(parts)
    assert alternating == expected


def test_faces_cross_the_seam():
    seam = circle(6).faces
    assert {5, 0} in [set(face) for face in seam.tolist()]
    assert any({0, 4} <= set(face) for face in (cylinder(5, 2).faces // 2).tolist())


@pytest.mark.parametrize("n", [4, 5, 60, 500])
def test_the_sphere_is_wrapped_outward_side_out(n):
    space = Sphere(n)
    a, b, c = (space.nodes[space.faces[:, i]] for i in range(3))
    normal = np.cross(b - a, c - a)
    assert (np.einsum("fd,fd->f", normal, a + b + c) > 0).all()
    # Solid angles (Van Oosterom and Strackee) of faces that wrap the sphere once sum to 4π.
    triple = np.einsum("fd,fd->f", a, np.cross(b, c))
    ab, bc, ca = (np.einsum("fd,fd->f", u, v) for u, v in ((a, b), (b, c), (c, a)))
    assert 2 * np.arctan2(triple, 1 + ab + bc + ca).sum() == pytest.approx(4 * np.pi)


@pytest.mark.parametrize("name", ["points", "points 3-D"])
def test_faces_of_points_fill_their_hull_once(name):
    from scipy.spatial import ConvexHull

    space = SPACES[name]
    assert volumes(space.nodes[space.faces]).sum() == pytest.approx(ConvexHull(space.nodes).volume)


def test_faces_of_points_on_a_line_join_neighbours():
    space = Points([[3.0], [-1.0], [0.5]])
    np.testing.assert_array_equal(space.faces, [[1, 2], [2, 0]])
    np.testing.assert_array_equal(space.edges, [[0, 2], [1, 2]])


def test_points_too_many_dimensions_apart_to_be_triangulated_still_have_neighbours():
    start = time.perf_counter()
    space = Points(np.random.default_rng(0).uniform(-1, 1, (500, 8)))
    assert space.faces.shape == (0, 9)
    degree = np.bincount(space.edges.ravel(), minlength=500)
    assert degree.min() >= 16
    assert 0 < space.spacing < 2
    assert time.perf_counter() - start < 5


def test_a_lattice_of_too_many_simplices_has_none():
    start = time.perf_counter()
    space = grid(*(2,) * 10)
    assert space.faces.shape == (0, 11)
    assert len(space.edges) == 10 * 2**9
    assert time.perf_counter() - start < 5


# ------------------------------------------------------------------------------------------------ means


@every
def test_all_weight_on_one_node_gives_that_node(space):
    np.testing.assert_allclose(space.distance(space.mean(np.eye(space.n_nodes)), space.nodes), 0, atol=1e-12)
    spread = space.covariance(np.eye(space.n_nodes), space.mean(np.eye(space.n_nodes)))
    np.testing.assert_allclose(spread, 0, atol=1e-12)


@every
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_means_stay_inside(space, dtype):
    weight = np.random.default_rng(0).dirichlet(np.full(space.n_nodes, 0.05), 200).astype(dtype)
    mean = space.mean(weight)
    assert mean.shape == (200, space.n_columns)
    assert space.domain.contains(mean).all()


def test_the_mean_of_an_open_space_is_the_weighted_mean(rng):
    for name in ("line", "grid", "grid 4-D", "points"):
        space = SPACES[name]
        weight = rng.dirichlet(np.ones(space.n_nodes), 5)
        np.testing.assert_allclose(space.mean(weight), weight @ space.nodes, atol=1e-12)
        centered = space.nodes - (weight @ space.nodes)[:, None]
        expected = np.einsum("nk,nki,nkj->nij", weight, centered, centered)
        np.testing.assert_allclose(space.covariance(weight, space.mean(weight)), expected, atol=1e-12)


def test_a_mean_across_the_seam_lies_at_the_seam():
    space = circle(360)
    weight = np.zeros((2, 360))
    weight[0, [1, 359]] = 0.5  # one degree to either side of ±π
    weight[1, [179, 181]] = 0.5  # and of 0
    np.testing.assert_allclose(np.abs(space.mean(weight)[:, 0]), [np.pi, 0], atol=1e-12)
    np.testing.assert_allclose(space.covariance(weight, space.mean(weight))[:, 0, 0], np.radians(1) ** 2)


def test_each_angle_of_a_product_has_its_own_mean():
    space = cylinder(4, 3)
    weight = np.zeros((1, 12))
    weight[0, [0, 2]] = 0.5  # the same angle −π at heights −1 and 1
    np.testing.assert_allclose(space.mean(weight), [[-np.pi, 0]], atol=1e-12)
    np.testing.assert_allclose(space.covariance(weight, space.mean(weight))[0], np.diag([0.0, 1.0]), atol=1e-12)


@pytest.mark.parametrize("name", ["circle", "cylinder", "torus", "torus 3-D", "sphere"])
def test_a_mean_that_points_nowhere_falls_back_on_the_heaviest_node(name):
    space = SPACES[name]
    if name == "sphere":
        E = space.nodes
        # Weights with no resultant, found exactly: the null space of the embedded nodes.
        weight = np.ones(space.n_nodes) - np.linalg.pinv(E.T) @ E.sum(axis=0)
        weight /= weight.sum()
    else:
        weight = np.full(space.n_nodes, 1 / space.n_nodes)
    assert (weight > 0).all()
    mean = space.mean(weight[None])
    np.testing.assert_allclose(mean[0], space.nodes[weight.argmax()], atol=1e-12)


# ------------------------------------------------------------------------------- distance and embedding


@every
@given(seed=st.integers(0, 10**6))
def test_distance_is_a_metric(space, seed):
    A, B, C = (anywhere(space, 6, seed + i) for i in range(3))
    np.testing.assert_allclose(space.distance(A, A), 0, atol=1e-12)
    np.testing.assert_allclose(space.distance(A, B), space.distance(B, A), atol=1e-12)
    assert (space.distance(A, C) <= space.distance(A, B) + space.distance(B, C) + 1e-9).all()
    assert (space.distance(A[2:], B[2:]) > 0).all()


@pytest.mark.parametrize(
    ("space", "a", "b", "expected"),
    [
        (circle(5), [[-3.0]], [[3.0]], 2 * np.pi - 6),
        (torus(3, 3), [[-3.0, 3.1]], [[3.0, -3.1]], np.hypot(2 * np.pi - 6, 2 * np.pi - 6.2)),
        (cylinder(3, 3), [[3.0, -1.0]], [[-3.0, 1.0]], np.hypot(2 * np.pi - 6, 2)),
        (Sphere(9), [[0.0, 0.0, 1.0]], [[0.0, 0.0, -1.0]], np.pi),
        (Sphere(9), [[0.0, 0.0, 1.0]], [[1e-9, 0.0, 1.0]], 1e-9),
        (Sphere(9), [[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]], np.pi / 2),
    ],
)
def test_distance_goes_the_short_way(space, a, b, expected):
    assert space.distance(np.array(a), np.array(b)) == pytest.approx(expected, rel=1e-6)


@every
def test_embedding_and_back(space):
    Z = anywhere(space)
    back, defined = space.unembed(space.embed(Z))
    np.testing.assert_allclose(space.distance(back, Z), 0, atol=1e-12)
    assert (defined > 0.99).all()


@every
def test_the_embedding_has_no_seam_and_keeps_short_distances(space):
    Z = anywhere(space)
    step = 1e-6 * np.random.default_rng(0).normal(size=Z.shape)
    if isinstance(space, Sphere):
        step -= (step * Z).sum(axis=1, keepdims=True) * Z
    moved = Z + step
    moved = space.domain.retract(moved) if not isinstance(space, Points) else moved
    apart = np.linalg.norm(space.embed(moved) - space.embed(Z), axis=1)
    np.testing.assert_allclose(apart, space.distance(moved, Z), rtol=1e-3, atol=1e-12)


@every
def test_derivative_of_the_embedding(space):
    Z, h = anywhere(space), 1e-6
    numeric = np.stack([(space.embed(Z + h * e) - space.embed(Z - h * e)) / (2 * h) for e in np.eye(Z.shape[1])], 2)
    np.testing.assert_allclose(space.embed_jacobian(Z), numeric, atol=1e-8)


# ---------------------------------------------------------------------------------------- other verbs


@every
def test_refined_is_the_same_space_with_other_nodes(space):
    fine = space.refined(6)
    assert fine.dimension == space.dimension
    assert fine.n_nodes == (36 if isinstance(space, Sphere) else 6**space.dimension)
    if isinstance(space, Lattice):
        assert fine.periodic == space.periodic
        assert fine.refined(3) == space.refined(3)
    if isinstance(space.domain, Box):
        np.testing.assert_allclose(fine.domain.low, space.domain.low)
        np.testing.assert_allclose(fine.domain.high, space.domain.high)


@pytest.mark.parametrize("name", ["points 1-D", "points", "points 3-D"])
def test_refined_points_cover_their_box_once(name):
    fine = SPACES[name].refined(5)
    size = np.asarray(fine.domain.high) - np.asarray(fine.domain.low)
    assert volumes(fine.nodes[fine.faces]).sum() == pytest.approx(np.prod(size))


@every
def test_charts_are_for_plotting(space):
    Z = anywhere(space, 9)
    chart = space.chart(Z)
    assert chart.shape == (9, len(space.chart_labels))
    assert chart.shape[1] == min(space.dimension, 3)
    assert np.isfinite(chart).all()
    assert len(set(space.chart_labels)) == len(space.chart_labels)


def test_the_chart_of_the_sphere_keeps_areas():
    Z = np.random.default_rng(0).normal(size=(20000, 3))
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    count = np.histogram2d(*Sphere(9).chart(Z).T, bins=4, range=[[-np.pi, np.pi], [-1, 1]])[0]
    np.testing.assert_allclose(count / 1250, 1, atol=0.15)


def test_spaces_compare_by_value():
    assert line(3) == grid(3)
    assert circle(3) != line(3)
    assert torus(3) == circle(3)
    assert cylinder(4, 2) == Lattice((4, 2), (True, False))
    assert Points([[0.0], [1.0]]) == Points(np.array([[0], [1]]))
    assert hash(Points([[0.0], [1.0]])) == hash(Points(np.array([[0], [1]])))
    assert Points([[0.0]]) != Points([[1.0]])


def test_points_keep_a_copy_of_their_own():
    given_ = np.zeros((3, 2))
    space = Points(given_)
    given_[:] = 7
    np.testing.assert_array_equal(space.nodes, 0)
    with pytest.raises(ValueError, match="read-only"):
        space.nodes[0, 0] = 1


# -------------------------------------------------------------------------------------- degenerate sizes

TINY = {
    "line 1": (line(1), 0, 0),
    "line 2": (line(2), 1, 1),
    "circle 1": (circle(1), 0, 0),
    "circle 2": (circle(2), 1, 2),
    "grid 1x1": (grid(1, 1), 0, 0),
    "grid 1x3": (grid(1, 3), 2, 0),
    "grid 2x2": (grid(2, 2), 4, 2),
    "cylinder 1x3": (cylinder(1, 3), 2, 0),
    "torus 1x1": (torus(1, 1), 0, 0),
    "torus 2x2": (torus(2, 2), 4, 8),
    "sphere 4": (Sphere(4), 6, 4),
    "one point": (Points([[2.0, 3.0]]), 0, 0),
    "two points": (Points([[2.0, 3.0], [4.0, 3.0]]), 1, 0),
    "points on a line": (Points([[0.0, 3.0], [1.0, 3.0], [2.0, 3.0], [4.0, 3.0], [8.0, 3.0], [16.0, 3.0]]), 14, 0),
    "the same point twice": (Points([[1.0, 1.0], [1.0, 1.0]]), 1, 0),
}


@pytest.mark.parametrize(("space", "n_edges", "n_faces"), TINY.values(), ids=TINY.keys())
def test_degenerate_sizes(space, n_edges, n_faces):
    assert space.domain.contains(space.nodes).all()
    assert len(space.edges) == n_edges
    assert space.edges.shape[1] == 2
    assert space.faces.shape == (n_faces, space.dimension + 1)
    assert space.spacing > 0
    K = space.n_nodes
    mean = space.mean(np.full((3, K), 1 / K))
    assert space.domain.contains(mean).all()
    assert np.isfinite(space.covariance(np.full((3, K), 1 / K), mean)).all()
    np.testing.assert_allclose(space.distance(space.nodes, space.nodes), 0)
    assert space.refined(3).n_nodes == 3 ** (2 if isinstance(space, Sphere) else space.dimension)


# ------------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: line(0), "at least one node along each axis, got shape \\(0,\\)"),
        (grid, "at least one node along each axis"),
        (lambda: grid(3, -1), "at least one node along each axis"),
        (lambda: grid(2.5), "at least one node along each axis"),
        (lambda: line(True), "at least one node along each axis"),
        (lambda: Lattice((3, 3), (True,)), "True or False for each of its 2 axes"),
        (lambda: Lattice((3,), ("no",)), "True or False for each"),
        (lambda: grid(10**6, 10**6), "1000000000000 latent nodes are more than"),
        (lambda: grid(*(10**6,) * 4), "latent nodes are more than"),  # wraps round to 0 in 64 bits
        (lambda: Sphere(3), "at least 4 nodes, got 3"),
        (lambda: Sphere(4.5), "at least 4 nodes, got 4.5"),
        (lambda: Sphere(10**12), "latent nodes are more than"),
        (lambda: Points(np.zeros(3)), "finite \\(K, Q\\) array"),
        (lambda: Points(np.zeros((0, 2))), "finite \\(K, Q\\) array"),
        (lambda: Points(np.zeros((2, 0))), "finite \\(K, Q\\) array"),
        (lambda: Points([[np.nan, 0.0]]), "finite \\(K, Q\\) array"),
        (lambda: Points([["a", "b"]]), "array of numbers"),
        (lambda: Points([[0.0], [0.0, 1.0]]), "array of numbers"),
    ],
)
def test_spaces_that_cannot_be(make, words):
    with pytest.raises(InvalidParameterError, match=words):
        make()


def test_counts_may_be_numpy_integers():
    assert grid(np.int64(3), np.int32(4)).nodes.shape == (12, 2)
    assert Sphere(np.int64(5)).n_nodes == 5


class HomeMade(LatentSpace):
    """The seven verbs of a space of one's own, as those of another."""

    def __init__(self, other):
        self.other = other

    domain = property(lambda self: self.other.domain)
    nodes = property(lambda self: self.other.nodes)
    spacing = property(lambda self: self.other.spacing)
    edges = property(lambda self: self.other.edges)
    faces = property(lambda self: self.other.faces)

    def refined(self, resolution):
        return HomeMade(self.other.refined(resolution))

    def thinned(self):
        return HomeMade(self.other.thinned())


class HomeMadeAngles(HomeMade):
    """One that is not flat, with an embedding written out."""

    def embed(self, Z):
        return self.other.embed(Z)

    def embed_jacobian(self, Z):
        return self.other.embed_jacobian(Z)

    def unembed(self, E):
        return self.other.unembed(E)


@pytest.mark.parametrize(
    ("own", "other"),
    [(HomeMade(line(7)), line(7)), (HomeMade(grid(5, 4)), grid(5, 4)), (HomeMadeAngles(torus(5, 4)), torus(5, 4))],
    ids=["line", "grid", "torus"],
)
def test_a_space_of_ones_own_is_as_good(own, other, rng):
    share = rng.dirichlet(np.ones(own.n_nodes), 6)
    mean = own.mean(share)
    np.testing.assert_array_equal(mean, other.mean(share))
    np.testing.assert_array_equal(own.covariance(share, mean), other.covariance(share, mean))
    np.testing.assert_array_equal(own.embed_jacobian(mean), other.embed_jacobian(mean))
    assert own.chart(mean).shape == (6, len(own.chart_labels))
    assert own.charts == ()
    assert not own.unit_speed
