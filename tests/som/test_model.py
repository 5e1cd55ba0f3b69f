"""Self-organising maps: each step against a loop over rows and nodes, and what follows from the formulas."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from tests.properties.test_threads import SMALL, threads

from prinfold import SOM
from prinfold.exceptions import InvalidParameterError
from prinfold.latent import Hexagons, Sphere, grid, hexagons, line, torus
from prinfold.rows.rows import as_rows
from prinfold.som import model
from prinfold.som._online_jit import COMPILED_KINDS, sweep, sweep_reference
from prinfold.som.neighborhoods import NEIGHBORHOODS
from prinfold.som.node_surface import NodeMap, NodeWins, places_of, update
from prinfold.som.schedules import Schedule

SPACES = {
    "line": line(9),
    "grid": grid(5, 4),
    "hexagons": hexagons(4, 5),
    "torus": torus(5, 4),
    "hexagonal torus": Hexagons((4, 4), (True, True)),
    "sphere": Sphere(30),
}
every_space = pytest.mark.parametrize("latent", SPACES.values(), ids=SPACES)
every_neighborhood = pytest.mark.parametrize("name", NEIGHBORHOODS)
WIDTH = 1.7


def sheet(n=80, gaps=False, seed=0):
    rng = np.random.default_rng(seed)
    u, v = rng.uniform(-1, 1, (2, n))
    X = np.stack([2 * u, v, u * v], axis=1) + 0.05 * rng.normal(size=(n, 3))
    if gaps:
        X[rng.random(X.shape) < 0.3] = np.nan
        X[:, 0] = np.where(np.isnan(X).all(axis=1), 0.1, X[:, 0])
    return X


def rows_of(X, weight=None, block_rows=None):
    return as_rows(X, np.zeros(X.shape[1]), weight, block_rows=block_rows, gaps=bool(np.isnan(X).any()))


def problem_of(X, latent, name, weight=None, rate=0.3):
    return model.SOMProblem(
        rows_of(X, weight), latent, NEIGHBORHOODS[name], Schedule(WIDTH, WIDTH), Schedule(rate, rate), 1.0
    )


def start(latent, D=3, seed=1):
    return np.random.default_rng(seed).normal(size=(latent.n_nodes, D))


def winner_of(x, codebook):
    return int(np.argmin([sum((a - b) ** 2 for a, b in zip(x, w, strict=True) if not np.isnan(a)) for w in codebook]))


def height(name, places, k, c, width=WIDTH):
    s = sum((a - b) ** 2 for a, b in zip(places[k], places[c], strict=True)) / width**2
    return {"gaussian": np.exp(-s / 2), "bubble": float(s <= 1 + 1e-9), "epanechnikov": max(0.0, 1 - s)}[name]


def batch_by_hand(X, weight, codebook, places, name):
    """The update (2.23) as it is written, cell by cell."""
    won = [winner_of(x, codebook) for x in X]
    out = codebook.copy()
    for k in range(len(codebook)):
        for d in range(X.shape[1]):
            pairs = ((w * height(name, places, k, c), x[d]) for x, w, c in zip(X, weight, won, strict=True))
            seen = [(h, value) for h, value in pairs if not np.isnan(value)]
            total = sum(h for h, _ in seen)
            if total > 0:
                out[k, d] = sum(h * value for h, value in seen) / total
    return out


def online_by_hand(X, order, codebook, places, name, widths, rates):
    """Steps as they are written, node by node and cell by cell."""
    codebook = codebook.copy()
    for n, width, rate in zip(order, widths, rates, strict=True):
        c = winner_of(X[n], codebook)
        for k in range(len(codebook)):
            for d in range(X.shape[1]):
                if not np.isnan(X[n, d]):
                    codebook[k, d] += rate * height(name, places, k, c, width) * (X[n, d] - codebook[k, d])
    return codebook


# ----------------------------------------------------------------------------------------------- one epoch by hand


@every_space
@every_neighborhood
@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "missing"])
def test_a_batch_epoch_is_the_formula(latent, name, gaps):
    X, weight = sheet(40, gaps), np.random.default_rng(2).uniform(0.5, 2, 40)
    problem, codebook = problem_of(X, latent, name, weight), start(latent)
    state = model.BatchTraining().epoch(problem, np.random.default_rng(0))(model.initial_state(problem, codebook))
    expected = batch_by_hand(X, weight, codebook, places_of(latent), name)
    assert_allclose(state.codebook, expected, atol=1e-12)
    gap = [np.nansum((x - state.codebook[winner_of(x, state.codebook)]) ** 2) for x in X]
    assert_allclose(state.error, np.average(gap, weights=weight), atol=1e-12)


@every_space
@every_neighborhood
@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "missing"])
def test_an_online_epoch_is_the_formula(latent, name, gaps):
    """Heavy rows come more often, and width and rate fall from row to row, half their way in the first of 3 epochs."""
    X, codebook = sheet(25, gaps), start(latent)
    width, rate = (Schedule(first, last, epochs=3, shape="linear") for first, last in ((2.0, 0.8), (0.4, 0.2)))
    weight = np.random.default_rng(2).integers(1, 5, 25).astype(float)
    problem = replace(problem_of(X, latent, name, weight), width=width, rate=rate)
    state = model.OnlineTraining().epoch(problem, np.random.default_rng(5))(model.initial_state(problem, codebook))
    distinct, weight = model.sorted_rows(problem.rows)
    first_epoch = np.random.default_rng([int(np.random.default_rng(5).integers(2**63)), 0])
    order, way = model.draw_order(weight, first_epoch), np.arange(25) / 25 / 2
    assert not np.array_equal(np.sort(order), np.arange(25))
    widths, rates = 2.0 - 1.2 * way, 0.4 - 0.2 * way
    expected = online_by_hand(distinct, order, codebook, places_of(latent), name, widths, rates)
    assert_allclose(state.codebook, expected, atol=1e-12)
    made, won = model.final_wins(problem, state)
    assert_array_equal(won.mass, model.assign(problem.rows, expected)[0].mass)
    assert made is won


@every_neighborhood
def test_compiled_steps_are_the_plain_ones(name):
    latent, X = hexagons(6, 6), sheet(60, gaps=True)
    order = np.random.default_rng(3).permutation(60)
    width, rate, places = np.linspace(3, 0.4, 60), np.linspace(0.5, 0.1, 60), np.ascontiguousarray(places_of(latent).T)
    fast, slow = start(latent).T.copy(), start(latent).T.copy()
    error = sweep(X, order, places, fast, width, rate, COMPILED_KINDS[name])
    assert_allclose(error, sweep_reference(X, order, places, slow, width, rate, NEIGHBORHOODS[name]))
    assert_allclose(fast, slow, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_won_in_compiled_code_are_those_of_the_definition(dtype, weighted, monkeypatch):
    rng = np.random.default_rng(0)
    table, codebook = (rng.normal(size=(150, 4)) + 5.0).astype(dtype), rng.normal(size=(37, 4))
    weight = rng.integers(0, 3, 150).astype(float) if weighted else None
    rows = as_rows(table, table.mean(axis=0, dtype=np.float64), weight)
    plain, plain_error = model.assign(rows, codebook)
    monkeypatch.setattr(model, "_COMPILE_FROM", 0)
    won, error = model.assign(rows, codebook)
    eps = float(np.finfo(dtype).eps)
    assert_allclose(won.mass, plain.mass)
    assert_allclose(won.sums, plain.sums, atol=2000 * eps)
    assert error == pytest.approx(plain_error, rel=200 * eps)
    assert won.mass.sum() == (150 if weight is None else weight.sum())


def test_compiled_passes_are_the_same_on_any_number_of_threads():
    table, found = np.random.default_rng(0).normal(size=(600, 4)), []
    for n in (1, 2, 5):
        with threads(n, {**SMALL, "prinfold.som.model._COMPILE_FROM": 0}):
            found.append(model.assign(as_rows(table, block_rows=64), table[:40]))
    for won, error in found[1:]:
        assert_array_equal(won.sums, found[0][0].sums)
        assert error == found[0][1]


@pytest.mark.parametrize("trainer", ["online", "batch"])
@pytest.mark.parametrize("name", sorted(COMPILED_KINDS))
def test_widths_whose_squares_are_nil_or_infinite_are_those_at_the_ends(name, trainer):
    """So narrow a neighbourhood is the winner alone, and so wide a one is every node."""
    X = np.random.default_rng(0).normal(size=(60, 3))

    def fitted(width):
        schedule = Schedule(width, width, epochs=3)
        made = SOM(1, nodes=5, neighborhood=name, width=schedule, trainer=trainer, max_iter=3, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return made.fit(X).codebook_

    for extreme in (5e-324, 1e-300, 1e-160):
        assert_allclose(fitted(extreme), fitted(1e-3), atol=1e-12)
    for extreme in (1e155, 1.7e308):
        assert_allclose(fitted(extreme), fitted(1e9), atol=1e-8)


def test_a_neighbourhood_that_nobody_compiled_trains_online_too():
    class Cone:
        name = "cone"

        def value(self, s):
            return np.maximum(1 - np.sqrt(s), 0)

    latent, X = grid(4, 4), sheet(30)
    problem = replace(problem_of(X, latent, "bubble"), neighborhood=Cone())
    begun = model.initial_state(problem, start(latent))
    state = model.OnlineTraining().epoch(problem, np.random.default_rng(0))(begun)
    assert model.assign(problem.rows, state.codebook)[1] < begun.error


# ------------------------------------------------------------------------------------------------- what follows


@every_neighborhood
def test_with_no_neighbourhood_a_batch_step_is_one_of_k_means(name):
    latent, X, codebook = grid(5, 4), sheet(), start(grid(5, 4))
    won, _ = model.assign(rows_of(X), codebook)
    moved = update(places_of(latent), won, NEIGHBORHOODS[name], 1e-3, codebook)
    winner = np.array([winner_of(x, codebook) for x in X])
    for k in np.unique(winner):
        assert_allclose(moved[k], X[winner == k].mean(axis=0), atol=1e-12)
    alone = np.setdiff1d(np.arange(20), winner)
    assert len(alone)
    if name == "gaussian":  # whose kernel reaches everywhere: the nearest nodes that have won anything
        gap = np.square(places_of(latent)[alone][:, None] - places_of(latent)[winner]).sum(axis=2)
        nearest = [X[each == each.min()].mean(axis=0) for each in gap.round(9)]
        assert_allclose(moved[alone], nearest, atol=1e-12)
    else:
        assert_array_equal(moved[alone], codebook[alone])


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "missing"])
def test_blocks_are_the_whole_and_float32_is_float64(gaps):
    X, weight, codebook = sheet(90, gaps), np.random.default_rng(1).uniform(0, 2, 90), start(grid(5, 4))
    (mass, sums), error = model.assign(rows_of(X, weight), codebook)
    for rows in (rows_of(X, weight, 7), rows_of(X.astype(np.float32), weight)):
        found, other = model.assign(rows, codebook)
        tolerance = 1e-12 if rows.table.dtype == np.float64 else 1e-5
        assert_allclose(found.mass, mass, atol=tolerance)
        assert_allclose(found.sums, sums, atol=tolerance)
        assert_allclose(other, error, atol=tolerance)


def test_weights_are_repeats_whatever_the_order():
    X, weight = sheet(40), np.random.default_rng(6).integers(1, 4, 40).astype(float)
    again = np.random.default_rng(7).permutation(np.repeat(np.arange(40), weight.astype(int)))
    (a, heavy), (b, repeated) = model.sorted_rows(rows_of(X, weight)), model.sorted_rows(rows_of(X[again]))
    assert_array_equal(a, b)
    assert_array_equal(heavy, repeated)
    order = model.draw_order(heavy, np.random.default_rng(0))
    assert np.abs(np.bincount(order, minlength=40) - 40 * heavy / heavy.sum()).max() < 1
    assert_array_equal(np.sort(model.draw_order(np.full(40, 0.7), np.random.default_rng(1))), np.arange(40))


def test_a_random_start_draws_rows_by_their_weight():
    X, weight = sheet(40), np.where(np.arange(40) == 7, 1e9, 1.0)
    found = model.random_start(rows_of(X, weight), grid(5, 4), np.random.default_rng(0))
    assert_array_equal(found, np.tile(X[7], (20, 1)))


def test_a_map_round_a_torus_has_no_seam():
    # Turning the nodes and the codebook alike turns the step: no node is first.
    X, latent = sheet(), torus(6, 5)
    codebook = start(latent).reshape(6, 5, 3)
    turned = np.roll(codebook, (2, 3), axis=(0, 1))

    def step(vectors):
        problem = problem_of(X, latent, "gaussian")
        begun = model.initial_state(problem, vectors.reshape(-1, 3))
        return model.BatchTraining().epoch(problem, np.random.default_rng(0))(begun).codebook.reshape(6, 5, 3)

    assert_allclose(step(turned), np.roll(step(codebook), (2, 3), axis=(0, 1)), atol=1e-12)


def test_winners_and_distances_are_those_of_all_pairs():
    X, codebook = sheet(50, gaps=True), start(grid(5, 4))
    gap = np.sqrt(np.nansum(np.square(X[:, None] - codebook), axis=2))
    found = model.winners(rows_of(X, block_rows=8), codebook, n_best=3)
    assert_array_equal(found, np.argsort(gap, axis=1)[:, :3])
    assert_allclose(model.distances(rows_of(X), codebook, found[:, 0]), gap.min(axis=1), atol=1e-12)


# ------------------------------------------------------------------------------------------------- the surface


def surface_of(latent, gaps=False):
    X = sheet(60, gaps)
    return NodeMap(latent, model.assign(rows_of(X), start(latent))[0], 1.3)


@every_space
@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "missing"])
def test_the_surface_at_the_nodes_is_the_batch_update(latent, gaps):
    surface = surface_of(latent, gaps)
    expected = update(places_of(latent), surface.won, NEIGHBORHOODS["gaussian"], 1.3, start(latent))
    assert_allclose(surface.point(latent.nodes), expected, atol=1e-12)


@every_space
@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "missing"])
def test_the_jacobian_is_that_of_finite_differences(latent, gaps):
    surface, rng, step = surface_of(latent, gaps), np.random.default_rng(8), 1e-5
    Z = latent.domain.retract(rng.uniform(-0.8, 0.8, (12, latent.n_columns)))
    frame = latent.domain.frame(Z)
    for axis in range(latent.dimension):
        way = frame[:, :, axis]
        moved = [latent.domain.retract(Z + sign * step * way) for sign in (1, -1)]
        slope = (surface.point(moved[0]) - surface.point(moved[1])) / (2 * step)
        assert_allclose(np.einsum("ndq,nq->nd", surface.jacobian(Z), way), slope, atol=2e-8)


def test_a_column_that_was_seen_far_away_only_is_that_of_the_nearest_who_saw_it():
    latent = line(60)
    mass, sums = np.ones((60, 2)), np.ones((60, 2))
    mass[:50, 1], sums[:50, 1] = 0.0, 0.0
    sums[50:, 1] = np.linspace(5, 6, 10)
    surface = NodeMap(latent, NodeWins(mass, sums), 0.7)
    assert_allclose(surface.point(np.array([[-1.0]])), [[1.0, 5.0]], atol=1e-6)
    Z, step = np.array([[-1.0], [0.2], [0.71]]), 1e-6
    slope = (surface.point(Z + step) - surface.point(Z - step)) / (2 * step)
    assert_allclose(surface.jacobian(Z)[:, :, 0], slope, atol=1e-6)


def test_points_far_from_all_that_nodes_have_won_are_finite():
    latent = grid(40, 40)
    won = NodeWins(np.zeros((1600, 1)), np.zeros((1600, 3)))
    won.mass[0], won.sums[0] = 2.0, [2.0, 4.0, 6.0]
    surface = NodeMap(latent, won, 0.5)
    assert_allclose(surface.point(latent.nodes), np.tile([1.0, 2.0, 3.0], (1600, 1)))
    assert_array_equal(surface.jacobian(latent.nodes[-3:]), 0.0)


# --------------------------------------------------------------------------------------------------- schedules


@pytest.mark.parametrize("shape", ["exponential", "linear", "inverse"])
def test_a_schedule_goes_from_its_first_to_its_last_and_stays(shape):
    schedule = Schedule(5.0, 1.0, epochs=11, shape=shape)
    way = schedule.at(np.arange(14))
    assert_allclose(way[[0, 10, 13]], [5.0, 1.0, 1.0])
    assert (np.diff(way[:11]) < 0).all()
    middle = {"exponential": np.sqrt(5.0), "linear": 3.0, "inverse": 5 / 3}[shape]
    assert_allclose(schedule.at(5), middle)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"first": 0.0}, "first of a schedule must be a finite number above 0, got 0.0"),
        ({"last": np.inf}, "last of a schedule must be a finite number above 0"),
        ({"epochs": 0}, "epochs of a schedule must be a whole number above 0"),
        ({"shape": "steep"}, "shape of a schedule must be one of exponential, linear, inverse, got 'steep'"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(settings, words):
    with pytest.raises(InvalidParameterError, match=words):
        Schedule(**settings)


# ---------------------------------------------------------------------------------------------------- hexagons


def test_a_node_within_hexagons_has_six_neighbours_at_one_step():
    latent = hexagons(6, 7)
    ends = np.bincount(latent.edges.ravel())
    i, j = np.divmod(np.arange(42), 7)
    inner = (i > 0) & (i < 5) & (j > 0) & (j < 6)
    assert (ends[inner] == 6).all()
    assert (ends[~inner] < 6).all()
    places = places_of(latent)
    gap = np.linalg.norm(places[:, None] - places, axis=2)
    near = np.argwhere(np.triu((gap < 1.2) & (gap > 0)))
    assert_allclose(gap[tuple(near.T)], 1.0)
    assert_array_equal(near, latent.edges)


def test_hexagons_round_a_torus_all_have_six_neighbours():
    latent = Hexagons((7, 8), (True, True))
    assert (np.bincount(latent.edges.ravel()) == 6).all()
    places = places_of(latent)
    length = np.linalg.norm(places[latent.edges[:, 0]] - places[latent.edges[:, 1]], axis=1)
    # Chords, a little shorter than the arcs; the row is shorter than the arc by 7/π sin(π/7).
    assert length.min() > 0.96
    assert length.max() < 1.0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: hexagons(5), "a hexagonal lattice has two axes"),
        (lambda: Hexagons((4, 5), (True, True)), "even number of nodes there.* got 5, take 6"),
    ],
)
def test_hexagons_that_do_not_fit_are_refused(make, words):
    with pytest.raises(InvalidParameterError, match=words):
        make()


# ----------------------------------------------------------------------------------------------------- looking


def test_the_u_matrix_is_the_lengths_of_edges():
    latent, codebook = grid(3, 2), start(grid(3, 2))
    found = model.u_matrix(latent, codebook)
    for k in range(6):
        own = [np.linalg.norm(codebook[i] - codebook[j]) for i, j in latent.edges if k in (i, j)]
        assert_allclose(found.nodes[k], np.mean(own))
    assert_allclose(found.lengths, [np.linalg.norm(codebook[i] - codebook[j]) for i, j in latent.edges])


def test_valleys_of_the_distance_have_one_start_each():
    """On a line of six nodes: 3 and 2 lie beside each other, 0 is a valley of its own, 1 is beside two of them."""
    near = np.array([[3, 2, 0, 1], [5, 3, 4, 0]])
    assert_array_equal(model.basin_nodes(line(6), near, 1), [[3, 3, 0, 3], [5, 3, 5, 0]])
    assert_array_equal(model.basin_nodes(line(6), near), [[3, 2, 0, 3], [5, 3, 5, 0]])
