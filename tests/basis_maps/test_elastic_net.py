"""The generalised elastic net held to the formulas of thesis 3.4.2 written out with dense matrices."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from prinfold import GTM, PPS, ElasticNetBasis, datasets, load
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.basis_maps.lattice_interpolation import hermite
from prinfold.exceptions import InvalidParameterError
from prinfold.latent import Sphere, circle, cylinder, grid, hexagons, line, torus

LATENTS = {
    "line": line(9),
    "grid": grid(5, 4),
    "grid 3-D": grid(3, 4, 3),
    "circle": circle(7),
    "cylinder": cylinder(6, 4),
    "torus": torus(4, 5),
    "one node wide": grid(6, 1),
}
SLIT = ((0.1, -0.4), (0.1, 3.0))
"""From the middle of a plane over its upper edge."""
SLANT = ((-0.77, -0.61), (0.83, 0.9))
"""Across many steps of both axes, and ending between nodes."""
OVER = ((2.4, -0.3), (4.6, 3.9))
"""Over the seams of angles."""
every = pytest.mark.parametrize("name", LATENTS)
orders = pytest.mark.parametrize("order", [1, 2])


def differences(latent, order, cuts=(), tear=0.0):
    """Δ by its definition, node by node, from the coordinates of the nodes."""
    shape, periodic, first = latent.shape, latent.periodic, latent.nodes[0]
    rows = []

    def node(place):
        inside = [closed or 0 <= i < n for i, n, closed in zip(place, shape, periodic, strict=True)]
        return np.ravel_multi_index(tuple(np.mod(place, shape)), shape) if all(inside) else None

    def left(*places):
        """The tear where the step between any two neighbours among the places is cut, else 1."""
        unit = np.array(
            [2 * np.pi / n if closed else 2 / max(n - 1, 1) for n, closed in zip(shape, periodic, strict=True)]
        )
        torn = False
        for a, b in itertools.combinations(places, 2):
            if np.abs(np.subtract(a, b)).sum() == 1:
                torn |= any(cut_between(first + a * unit, first + b * unit, cut, periodic) for cut in cuts)
        return tear if torn else 1.0

    def row(stencil):
        places = [np.array(place) for place, _ in stencil]
        nodes = [node(place) for place in places]
        if None not in nodes:
            entry = np.zeros(latent.n_nodes)
            for k, (_, factor) in zip(nodes, stencil, strict=True):
                entry[k] += factor * left(*places)
            rows.append(entry)

    axes = [e for e, n in zip(np.eye(len(shape), dtype=int), shape, strict=True) if n > 1]
    for place in itertools.product(*map(range, shape)):
        p = np.array(place)
        for e in axes:
            row([(p, -1), (p + e, 1)] if order == 1 else [(p, 1), (p + e, -2), (p + 2 * e, 1)])
        for e, f in itertools.combinations(axes, 2) if order == 2 else ():
            row([(p, 2**0.5), (p + e, -(2**0.5)), (p + f, -(2**0.5)), (p + e + f, 2**0.5)])
    return np.array(rows)


def cut_between(a, b, cut, periodic):
    """Whether the step crosses the cut, in any turn: a + s (b − a) = p + t (q − p) with s and t from 0 to 1."""
    turns = itertools.product(*[(-1, 0, 1) if closed else (0,) for closed in periodic])
    for shift in 2 * np.pi * np.array(list(turns), dtype=float):
        if len(a) == 1:
            if min(a[0], b[0]) < cut + shift[0] <= max(a[0], b[0]):
                return True
            continue
        p, q = np.array(cut) + shift
        both = np.column_stack([b - a, p - q])
        if (
            abs(np.linalg.det(both)) > 1e-12
            and ((share := np.linalg.solve(both, p - a)) >= 0).all()
            and (share <= 1).all()
        ):
            return True
    return False


def bound(name, order=2, **settings):
    return ElasticNetBasis(order, **settings).bind(LATENTS[name])


@every
@orders
def test_the_operator_takes_every_difference_once(name, order):
    found, wanted = bound(name, order).operator.toarray(), differences(LATENTS[name], order)
    np.testing.assert_allclose(found.T @ found, wanted.T @ wanted, atol=1e-12)


@pytest.mark.parametrize("tear", [0.0, 0.3])
@orders
@pytest.mark.parametrize(
    ("name", "cut"),
    [
        ("line", 0.1),
        ("line", 0.9),
        ("circle", 0.2),
        ("circle", 3.1),
        ("grid", SLIT),
        ("grid", SLANT),
        ("cylinder", SLIT),
        ("cylinder", OVER),
        ("torus", SLANT),
        ("torus", OVER),
    ],
)
def test_differences_across_a_cut_count_less(name, cut, order, tear):
    """Against all differences written out node by node, open and closed, straight and slanting, over seams."""
    found = bound(name, order, cuts=[cut], tear=tear).operator.toarray()
    wanted, whole = differences(LATENTS[name], order, [cut], tear), differences(LATENTS[name], order)
    assert (np.abs(wanted).sum(axis=1) < np.abs(whole).sum(axis=1)).any()
    np.testing.assert_allclose(found.T @ found, wanted.T @ wanted, atol=1e-12)


def test_a_cut_on_an_angle_may_be_given_in_any_turn():
    angles = np.pi - 0.1, -np.pi - 0.1, 3 * np.pi - 0.1
    one, other, third = (bound("circle", cuts=[angle]).operator.toarray() for angle in angles)
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(one, third)
    assert len(one[np.any(one, axis=1)]) == 7 - 2


@every
@orders
def test_weights_are_the_differences(name, order):
    """‖ΔΦW‖² = ‖W₊‖², with as many weights as nodes, and the constant last."""
    net = bound(name, order)
    np.testing.assert_allclose(
        net.node_features.T @ net.operator.T @ net.operator @ net.node_features,
        np.diag(net.penalized.astype(float)),
        atol=1e-10,
    )
    assert np.linalg.matrix_rank(net.node_features) == LATENTS[name].n_nodes
    assert (net.node_features[:, -1] == 1).all()
    assert not net.penalized[-1]


@every
@orders
def test_the_m_step_is_the_one_of_the_thesis(name, order, rng):
    """(G + λΔᵀΔ) Y = RT, with a node that has no responsibility."""
    latent = LATENTS[name]
    surface, delta = BasisMap(latent, bound(name, order)), differences(latent, order)
    mass, moment = rng.uniform(0.5, 2.0, latent.n_nodes), rng.normal(size=(latent.n_nodes, 3))
    mass[1], moment[1] = 0.0, 0.0
    weights = surface.solve(mass, moment, 0.3, np.zeros((latent.n_nodes, 3)))
    wanted = np.linalg.solve(np.diag(mass) + 0.3 * delta.T @ delta, moment)
    np.testing.assert_allclose(surface.nodes(weights), wanted, atol=1e-9)
    assert surface.roughness(weights) == pytest.approx(np.square(delta @ wanted).sum(), rel=1e-8)


def anywhere(latent, rng, n=20):
    """Places all over the latent space, over the seams of angles as well."""
    return rng.uniform(-1, 1, (n, latent.n_columns)) * np.where(latent.periodic, 1.5 * np.pi, 1.0)


def through(values, t, closed):
    """Catmull and Rom's cubic through values at 0, 1, 2, … as it is written, at one place."""
    n = len(values)
    if n == 1:
        return values[0]

    def slope(k):
        ahead, behind = values[(k + 1) % n] - values[k], values[k] - values[k - 1]
        if closed or 0 < k < n - 1:
            return (ahead + behind) / 2
        return ahead if k == 0 else behind

    i = int(np.floor(t)) if closed else min(int(np.floor(t)), n - 2)
    s, k, m = t - i, i % n, (i + 1) % n
    return (
        (1 - 3 * s**2 + 2 * s**3) * values[k]
        + (s - 2 * s**2 + s**3) * slope(k)
        + (3 * s**2 - 2 * s**3) * values[m]
        + (s**3 - s**2) * slope(m)
    )


@every
def test_between_nodes_it_runs_by_cubics_along_one_axis_after_the_other(name, rng):
    latent, net = LATENTS[name], bound(name)
    images, Z = rng.normal(size=latent.n_nodes), anywhere(latent, rng)
    wanted = []
    for place in (Z - latent.nodes[0]) / net.step:
        values = images.reshape(latent.shape)
        for t, closed in zip(place, latent.periodic, strict=True):
            values = through(values, t, closed)
        wanted.append(values)
    np.testing.assert_allclose(net.cardinals(Z) @ images, wanted, atol=1e-12)


@every
def test_the_surface_runs_through_the_nodes_and_its_jacobian_is_its_derivative(name, rng):
    latent, net = LATENTS[name], bound(name)
    np.testing.assert_allclose(net.features(latent.nodes), net.node_features, atol=1e-12)
    Z, weights, h = anywhere(latent, rng), rng.normal(size=(latent.n_nodes, 2)), 1e-6
    slope, gradient = net.jacobian(Z, weights), net.gradient(Z)
    np.testing.assert_allclose(np.einsum("nmq,md->ndq", gradient, weights), slope, atol=1e-9)
    point = net.evaluator(weights)
    for axis, step in enumerate(h * np.eye(latent.n_columns)):
        np.testing.assert_allclose(
            (point(Z + step) - point(Z - step)) / (2 * h), slope[:, :, axis], rtol=1e-5, atol=1e-6
        )


@pytest.mark.parametrize("cuts", [(), (SLIT,)])
def test_the_tangent_is_continuous_across_cells_even_beside_a_cut(cuts, rng):
    latent, net = LATENTS["grid"], bound("grid", cuts=cuts)
    weights = rng.normal(size=(latent.n_nodes, 2))
    Z = rng.uniform(-1, 1, (12, 2))
    Z[:, 0] = latent.nodes[rng.integers(4, 16, 12), 0]  # on a line of nodes within the plane
    step = np.array([1e-9, 0.0])
    np.testing.assert_allclose(net.jacobian(Z - step, weights), net.jacobian(Z + step, weights), atol=1e-6)


@pytest.mark.parametrize("name", ["line", "grid", "grid 3-D"])
def test_planes_stay_planes_inside_and_beyond(name, rng):
    latent, net = LATENTS[name], bound(name)
    plane = rng.normal(size=(latent.n_columns, 2))
    weights = np.linalg.solve(net.node_features, latent.nodes @ plane)
    assert net.penalized @ np.abs(weights).max(axis=1) < 1e-9  # they cost nothing
    Z = rng.uniform(-1.5, 1.5, (20, latent.n_columns))
    np.testing.assert_allclose(net.evaluator(weights)(Z), Z @ plane, atol=1e-9)


def test_hermite_cubics_are_what_they_are_called():
    value, slope = hermite(np.array([0.0, 1.0]))
    np.testing.assert_array_equal(value.reshape(2, 4), [[1, 0, 0, 0], [0, 0, 1, 0]])
    np.testing.assert_array_equal(slope.reshape(2, 4), [[0, 1, 0, 0], [0, 0, 0, 1]])


def test_a_cut_lets_the_net_part(rng):
    """Two stripes of rows that a whole net bridges and a cut one does not."""
    t = rng.uniform(-1, 1, 200)
    X = np.column_stack([t, np.where(t < 0, -1.0, 1.0)]) + 0.02 * rng.normal(size=(200, 2))
    init = t[:, None]
    whole, cut = (
        GTM(1, nodes=20, basis=ElasticNetBasis(cuts=cuts), init=init, regularization=1e3).fit(X)
        for cuts in ((), (0.0,))
    )
    assert cut.projection_error(X) < 2 * 0.02**2
    assert whole.projection_error(X) > 20 * 0.02**2
    assert cut.magnification([[0.0]]).factor[0] > 5 * cut.magnification([[0.5]]).factor[0]


def test_a_closed_tour_shrinks_under_tension():
    """Without bending stiffness a loop among rows on a circle keeps inside it, more so the stronger the tension."""
    angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    settings = {"nodes": 24, "latent": "circle", "init": "pca"}
    radii = [
        np.linalg.norm(
            GTM(1, basis=ElasticNetBasis(1), regularization=tension, **settings).fit(X).mesh().vertices, axis=1
        ).mean()
        for tension in (0.1, 1.0)
    ]
    assert 1 > radii[0] > radii[1] > 0


def test_it_is_read_back_to_the_bit_and_serves_other_noises(tmp_path):
    X = datasets.make_swiss_roll(80, rng=0).X
    net = ElasticNetBasis(cuts=[((0.0, 0.0), (0.0, 1.0))], tear=0.5)
    model = PPS(nodes=6, basis=net, max_iter=5, tol=0).fit(X)
    model.save(tmp_path / "net.prinfold")
    again = load(tmp_path / "net.prinfold")
    assert again.basis_ == net
    np.testing.assert_array_equal(again.project(X), model.project(X))


def test_the_evidence_finds_the_stiffness_of_a_net_and_the_noise():
    """Rows about a slow wave call for a stiffer net than rows about a fast one; the noise is 0.1 about both."""
    stiffness, t = [], np.linspace(-1, 1, 300)
    for waves in (0.5, 1):
        X = np.column_stack([t, np.sin(waves * np.pi * t)]) + 0.1 * np.random.default_rng(0).normal(size=(300, 2))
        model = GTM(1, nodes=20, basis=ElasticNetBasis(), prior_precision="evidence", init=t[:, None]).fit(X)
        stiffness.append(model.prior_precision_ * model.noise_variance_)
        assert model.noise_variance_**0.5 == pytest.approx(0.1, rel=0.05)
    assert stiffness[0] > 8 * stiffness[1]


@pytest.mark.parametrize(("settings", "strength"), [({}, 0.3), ({"regularization": 0.05}, 0.05)])
def test_a_net_has_a_penalty_of_its_own_where_none_is_given(settings, strength):
    X = datasets.make_half_circle(40, rng=0).X
    model = GTM(1, nodes=12, basis=ElasticNetBasis(), max_iter=2, tol=0, **settings).fit(X)
    assert model.prior_precision_ * model.noise_variance_ == pytest.approx(strength)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"order": 3}, "order must be a whole number from 1 to 2, got 3"),
        ({"tear": 1.5}, "tear must be a number from 0 to 1, got 1.5"),
        ({"cuts": 3}, "cuts must be latent coordinates or pairs of latent points, got 3"),
        ({"cuts": ["left"]}, "cuts must be latent coordinates"),
        ({"cuts": [(1.0, 2.0, 3.0)]}, "a cut must be a latent coordinate, or a pair"),
        ({"cuts": [((0.0, 0.0), (0.0, 0.0))]}, "a pair of different latent points"),
        ({"cuts": [np.nan]}, "a cut must be a latent coordinate"),
    ],
)
def test_what_is_no_net_is_refused(settings, words):
    with pytest.raises(InvalidParameterError, match=words):
        ElasticNetBasis(**settings)


@pytest.mark.parametrize(
    ("latent", "cuts", "words"),
    [
        (Sphere(20), (), "an elastic net is a lattice of nodes.*got Sphere, for which use a GaussianBasis"),
        (hexagons(4, 4), (), "an elastic net is a lattice of nodes.*got Hexagons"),
        (grid(71, 71), (), "an elastic net of 5041 nodes has as many weights; use at most 5000"),
        (line(5), (SLIT,), "a net of 1 dimensions takes coordinates as cuts"),
        (grid(5, 5), (0.0,), "a net of 2 dimensions takes pairs of points with two coordinates as cuts"),
        (grid(3, 3, 3), (SLIT,), "a net of 3 dimensions cannot be cut"),
        (line(5), (5.0,), "the cut at 5.0 lies beyond the net and would cut nothing.*are from −1 to 1; put the cut"),
        (line(5), (0.3, -1.0), "the cut at -1.0 lies beyond the net"),
        (circle(5), (30.0,), "the cut at 30.0 lies beyond the net.*are angles in radians"),
        (grid(5, 5), (((2, 0), (3, 0)),), "lies beyond the net.*are from −1 to 1, from −1 to 1"),
        (grid(5, 5), (((0, 3), (3, 0)),), "lies beyond the net"),
        (cylinder(5, 5), (((0, 2), (1, 2)),), "lies beyond the net.*are angles in radians, from −1 to 1"),
    ],
)
def test_what_it_cannot_lie_on_is_refused(latent, cuts, words):
    with pytest.raises(InvalidParameterError, match=words):
        ElasticNetBasis(cuts=cuts).bind(latent)


def test_cuts_that_pass_over_the_net_are_taken():
    """Ends may lie beyond it, and cuts between the nodes of a coarse net."""
    for cut in [((-3, 0), (3, 0)), ((0, 1.5), (1.5, 0)), ((0.1, 0.1), (0.2, 0.1)), ((1, -2), (1, 2))]:
        assert ElasticNetBasis(cuts=[cut]).bind(grid(3, 3)).is_reached(np.array(cut))
    assert min(ElasticNetBasis(cuts=[6.5]).bind(circle(5))._strength[0]) == 0
    assert min(ElasticNetBasis(cuts=[-0.999]).bind(line(2))._strength[0]) == 0


def test_tangents_look_across_a_tear_but_not_across_a_cut(rng):
    """Nodes 3 and 4 of a line on either side of the cut: each takes the difference on its own side."""
    images = rng.normal(size=(9, 1))
    for tear, wanted in ((0.0, images[3] - images[2]), (0.5, (images[4] - images[2]) / 2)):
        net = bound("line", cuts=[-0.1], tear=tear)
        weights = np.linalg.solve(net.node_features, images)
        slope = net.jacobian(LATENTS["line"].nodes[3:4], weights)[0, :, 0]
        np.testing.assert_allclose(slope, wanted / 0.25, atol=1e-9)


def test_a_node_on_a_cut_belongs_to_its_far_side():
    on_a_node = LATENTS["line"].nodes[4, 0]
    kept = bound("line", 1, cuts=[on_a_node]).operator.toarray()
    assert (np.flatnonzero(~kept.any(axis=1)) == [3]).all()  # the step from node 3 to node 4 alone
