"""The polygonal line algorithm: what corners cost, the two steps, growth, and bounded length."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime, minimize

from prinfold.curves import polygonal_curve_training
from prinfold.curves.bounded_length import LimitedLength, chain_length
from prinfold.curves.polygonal_curve_training import (
    CurvaturePenalty,
    FeetQuadratic,
    PolygonalProblem,
    add_vertex,
    count_segments,
    principal_ring,
    principal_segment,
    project,
    step,
    train,
)
from prinfold.curves.polygonal_penalty import bending, bending_value
from prinfold.curves.polygonal_starts import is_straight, smooth_curve, supported_part, vertices_along
from prinfold.loops import Listeners
from prinfold.numerics.polylines import nearest_on_polyline_reference

closing = pytest.mark.parametrize("closed", [False, True])


def chain(m=6, D=3, seed=0):
    return np.random.default_rng(seed).standard_normal((m, D))


def problem(n=120, closed=False, seed=1):
    """Rows about an arc, heavier on one side."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 4.0, n)
    X = np.stack([2 * np.cos(angle), np.sin(angle), 0.3 * angle], axis=1) + 0.1 * rng.standard_normal((n, 3))
    weight = rng.integers(1, 4, n).astype(float)
    return PolygonalProblem(X - np.average(X, axis=0, weights=weight), weight, closed)


# ------------------------------------------------------------------------------------------------------ penalty


@closing
def test_penalty_is_its_definition(closed):
    v, r = chain(), 1.7
    m, total = len(v), 0.0
    for i in range(m) if closed else range(1, m - 1):
        a, b = v[i - 1] - v[i], v[(i + 1) % m] - v[i]
        total += r**2 * (1 + a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    if not closed:
        total += ((v[0] - v[1]) ** 2).sum() + ((v[-1] - v[-2]) ** 2).sum()
    assert_allclose(bending(v, r, closed).value, total / m)
    assert_allclose(bending_value(v, r, closed), total / m)


@closing
@pytest.mark.parametrize("m", [3, 7])
def test_penalty_gradient_by_finite_differences(m, closed):
    v = chain(m)
    numeric = approx_fprime(v.ravel(), lambda flat: bending_value(flat.reshape(v.shape), 1.3, closed), 1e-7)
    assert_allclose(bending(v, 1.3, closed).gradient.ravel(), numeric, atol=2e-6)


@closing
def test_penalty_matrix_is_never_indefinite_and_vertices_that_meet_cost_no_gradient(closed):
    v = chain()
    assert np.linalg.eigvalsh(bending(v, 1.0, closed).hessian.times(np.eye(len(v)))).min() > -1e-12
    v[3] = v[2]
    assert np.isfinite(bending(v, 1.0, closed).gradient).all()


def test_straight_chains_pay_for_their_ends_alone():
    v = np.linspace([0.0, 0.0], [3.0, 4.0], 6)
    assert_allclose(bending_value(v, 10.0), 2 * 1.0 / 6)
    turned_back = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    assert_allclose(bending_value(turned_back, 10.0), (2 * 100 + 2) / 3)


# ---------------------------------------------------------------------------------------------------- two steps


@closing
def test_held_feet_give_the_distances_where_they_are_and_no_less_elsewhere(closed):
    data, v = problem(closed=closed), chain(5)
    feet = nearest_on_polyline_reference(data.X, v, closed)
    held = FeetQuadratic.of(data, feet, len(v))
    constant = data.weight @ np.square(data.X).sum(axis=1) / data.total

    def phi(chain):
        return constant + np.vdot(chain, held.A.times(chain)) - 2 * np.vdot(chain, held.B)

    assert_allclose(phi(v), project(data, v, 0.0).error)
    for seed in range(5):
        other = v + 0.3 * chain(5, seed=seed)
        assert phi(other) >= project(data, other, 0.0).error
        assert_allclose(held.change(held.slope(v), other - v), phi(other) - phi(v), atol=1e-12)


@closing
def test_gradient_of_held_feet_is_that_of_the_distance_itself(closed):
    data, v, c = problem(closed=closed), chain(5), 0.2
    held = FeetQuadratic.of(data, nearest_on_polyline_reference(data.X, v, closed), len(v))
    numeric = approx_fprime(v.ravel(), lambda flat: project(data, flat.reshape(v.shape), c).objective, 1e-7)
    ours = held.slope(v) + c * bending(v, data.radius, closed).gradient
    assert_allclose(ours.ravel(), numeric, atol=5e-5)


@closing
def test_objective_never_rises_while_segments_stay_as_many(closed):
    data = problem(closed=closed)
    start = (principal_ring if closed else principal_segment)(data)
    history = train(data, CurvaturePenalty(), start, max_iter=400, tol=1e-3).history
    same = np.diff(history["segments"]) == 0
    assert same.sum() > 20
    assert (np.diff(history["objective"])[same] >= 0).all()
    assert_array_equal(np.unique(np.diff(history["segments"])), [0, 1])


def test_every_vertex_rests_where_its_own_objective_is_lowest():
    """The local objectives of the paper, which moves one vertex at a time: none of them has a slope at the end."""
    data = problem()
    state = project(data, principal_segment(data), 0.0)
    for _ in range(3):
        state = add_vertex(data, CurvaturePenalty(), state)
    state = project(data, state.vertices, 0.05)
    for _ in range(3000):
        state = step(data, CurvaturePenalty(n_segments=1), state, 1e-14)
        if state.done:
            break
    for i in range(len(state.vertices)):

        def own(v, i=i):
            return project(data, np.vstack([state.vertices[:i], v, state.vertices[i + 1 :]]), 0.05).objective

        assert np.abs(approx_fprime(state.vertices[i], own, 1e-6)).max() < 1e-3
        assert minimize(own, state.vertices[i], method="Nelder-Mead").fun > state.objective * (1 - 1e-3)


# ------------------------------------------------------------------------------------------------------- growth


def test_start_is_the_shortest_piece_of_the_first_component_with_all_feet():
    data = problem()
    ends = principal_segment(data)
    axis = (ends[1] - ends[0]) / np.linalg.norm(ends[1] - ends[0])
    scatter = (data.X * data.weight[:, None]).T @ data.X
    assert_allclose(scatter @ axis, np.linalg.eigvalsh(scatter)[-1] * axis, rtol=1e-9, atol=1e-9)
    along = data.X @ axis
    assert_allclose(np.sort(ends @ axis), [along.min(), along.max()])


def test_a_vertex_is_added_in_the_middle_of_the_segment_with_most_rows():
    X = np.array([[-2.0, 1], [-1, 1], [0.5, 1], [1, -1], [1.5, 1], [2.5, 0], [5, 0]])
    vertices = np.array([[-3.0, 0], [0, 0], [2, 0], [3, 0]])
    found = add_vertex(
        PolygonalProblem(X, np.ones(7)), CurvaturePenalty(), project(PolygonalProblem(X, np.ones(7)), vertices, 0.0)
    )
    assert_allclose(found.vertices[2], [1, 0])
    heavy = PolygonalProblem(X, np.array([4.0, 1, 1, 1, 1, 1, 1]))
    assert_allclose(add_vertex(heavy, CurvaturePenalty(), project(heavy, vertices, 0.0)).vertices[1], [-1.5, 0])
    tied = PolygonalProblem(X, np.array([1.5, 1.5, 1, 1, 1, 1, 9]))
    assert_allclose(add_vertex(tied, CurvaturePenalty(), project(tied, vertices, 0.0)).vertices[1], [-1.5, 0])


def test_growth_ends_by_the_published_rule():
    data = problem()
    outcome = train(data, CurvaturePenalty(), principal_segment(data), max_iter=2000, tol=1e-3)
    k, error = np.array(outcome.history["segments"]), np.array(outcome.history["error"])
    enough = 0.3 * data.total ** (1 / 3) * data.radius / np.sqrt(error)
    assert outcome.converged
    assert k[-1] > enough[-1]
    last = np.flatnonzero(np.diff(k))  # rounds after which a vertex was added: there were too few
    assert (k[last] <= enough[last]).all()
    coefficient = 0.13 * k[-1] * data.total ** (-1 / 3) * np.sqrt(error[last[-1] + 1]) / data.radius
    assert_allclose(outcome.history["penalty"][-1], coefficient)


def test_a_number_of_segments_that_is_asked_for():
    data = problem()
    outcome = train(data, CurvaturePenalty(n_segments=5), principal_segment(data), max_iter=2000, tol=1e-3)
    assert count_segments(outcome.state.vertices, False) == 5
    longer = train(data, CurvaturePenalty(n_segments=5), principal_segment(data), max_iter=300, tol=0.0)
    assert longer.n_iter == 300
    assert count_segments(longer.state.vertices, False) == 5


def test_rows_on_a_line_need_one_segment():
    t = np.linspace(-1, 1, 30)[:, None]
    data = PolygonalProblem(t * np.array([[3.0, 4.0]]), np.ones(30))
    outcome = train(data, CurvaturePenalty(), principal_segment(data), max_iter=50, tol=1e-3)
    assert outcome.converged
    assert len(outcome.state.vertices) == 2
    assert_allclose(np.sort(outcome.state.vertices, axis=0), [[-3, -4], [3, 4]], atol=1e-9)


# ------------------------------------------------------------------------------------------------ bounded length


@closing
@pytest.mark.parametrize("limit", [2.0, 4.0])
def test_no_chain_on_the_way_is_longer_than_it_may_be(limit, closed):
    data = problem(closed=closed)
    feature = LimitedLength(limit)
    lengths = []
    start = feature.adapt_start(data, (principal_ring if closed else principal_segment)(data))
    outcome = train(
        data,
        feature,
        start,
        max_iter=200,
        tol=1e-3,
        listeners=Listeners((lambda at: lengths.append(chain_length(at.state.vertices, closed)),)),
    )
    assert max(lengths) <= limit * (1 + 1e-12)
    assert lengths[-1] > 0.99 * limit, "as long as it may be, since rows are far away"
    assert (np.diff(outcome.history["error"]) <= 1e-15).all()
    assert outcome.history["segments"][-1] == np.ceil(data.total ** (1 / 3))


def test_a_limit_that_is_not_reached_is_none():
    data = problem()
    held = LimitedLength(1e6, n_segments=3).move_vertices(data, project(data, chain(4), 0.0))
    free = CurvaturePenalty(penalty=0.0).move_vertices(data, project(data, chain(4), 0.0))
    assert_allclose(held, free, atol=1e-6)


def test_there_is_at_most_one_segment_for_two_rows():
    """However far a row is, which makes the rule ask for ever more of them."""
    far = PolygonalProblem(np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [1e6, 0.0]]), np.ones(4))
    assert [CurvaturePenalty().is_enough(far, k, 1.0) for k in (1, 2)] == [False, True]
    assert LimitedLength(1.0).is_enough(PolygonalProblem(far.X[:3], np.ones(3)), 1, 1.0), "n^(1/3) would be two"


# ---------------------------------------------------------------------------------------------------- many rows


@closing
def test_feet_stay_where_they_are_when_a_segment_is_cut_in_two(closed):
    data, v = problem(closed=closed), chain(5)
    state = project(data, v, 0.0)
    more = add_vertex(data, CurvaturePenalty(), state)
    assert_array_equal(more.feet.squared, state.feet.squared)
    again = nearest_on_polyline_reference(data.X, more.vertices, closed)
    assert_allclose(more.feet.squared, again.squared, atol=1e-12)
    inner = (again.share > 1e-9) & (again.share < 1 - 1e-9)
    assert_array_equal(more.feet.segment[inner], again.segment[inner])
    assert_allclose(more.feet.share[inner], again.share[inner], atol=1e-9)


def test_a_line_grows_among_some_rows_and_ends_among_all(monkeypatch):
    data = problem(n=600)
    feature = CurvaturePenalty(n_segments=6)
    whole = train(data, feature, principal_segment(data), max_iter=2000, tol=1e-5)
    assert set(whole.history["rows"]) == {600.0}
    monkeypatch.setattr(polygonal_curve_training, "_MOST_GROWING_ROWS", 250)
    some = train(data, feature, principal_segment(data), max_iter=2000, tol=1e-5)
    assert_array_equal(np.unique(some.history["rows"]), [200.0, 600.0])
    assert np.diff(some.history["rows"]).min() == 0, "never back to fewer"
    assert_allclose(some.state.error, project(data, some.state.vertices, 0.0).error)
    assert_allclose(some.state.objective, whole.state.objective, rtol=0.01)


def test_more_rows_than_the_rates_are_for_count_as_so_many(monkeypatch):
    data = problem()
    monkeypatch.setattr(polygonal_curve_training, "MOST_RATE_ROWS", 50)
    few = PolygonalProblem(data.X[:50], np.ones(50))
    assert data.n == few.n == 50
    assert_allclose(
        CurvaturePenalty().coefficient(data, 4, 0.3) * data.radius,
        CurvaturePenalty().coefficient(few, 4, 0.3) * few.radius,
    )


def test_rows_of_a_problem_are_ordered_with_their_weights():
    X = np.random.default_rng(0).standard_normal((50, 2))
    made = PolygonalProblem.of(X, X[:, 0] ** 2, False)
    assert_array_equal(made.weight, made.X[:, 0] ** 2)
    assert_array_equal(np.sort(made.X[:, 1]), np.sort(X[:, 1]))


# ------------------------------------------------------------------------------------------------------- starts


def test_a_start_leaves_out_what_is_beyond_a_stretch_without_rows():
    even = (np.arange(1000) + 0.5) / 1000
    assert_allclose(supported_part(even, np.full(1000, 1e-3), 10), [0.5 / 11, 1 - 0.5 / 11], atol=2e-3)
    tail = np.append(0.08 + 0.92 * even, np.linspace(0.0, 0.005, 20))  # and a few that belong to another turn
    low, high = supported_part(tail, np.full(1020, 1 / 1020), 40)
    assert low == 0.075
    assert high > 0.97
    assert supported_part(1 - tail, np.full(1020, 1 / 1020), 40)[1] == 0.925
    assert supported_part(np.array([0.1, 0.9]), np.full(2, 0.5), 1) == (0.1, 0.9)


def test_a_start_has_half_of_the_segments():
    data = problem()
    curve = smooth_curve(data.X, data.weight, "auto", False, np.zeros(3))
    error = project(data, curve.vertices, 0.0).error
    asked = 0.3 * data.n ** (1 / 3) * data.radius / np.sqrt(error)
    start = vertices_along(curve, data, CurvaturePenalty())
    assert len(start) - 1 == np.ceil((np.floor(asked) + 1) / 2)
    assert_allclose(curve.nearest(start).squared_distance, 0, atol=1e-9)
    assert not is_straight(data)
    assert is_straight(PolygonalProblem(data.X[:1] * np.linspace(-1, 1, 30)[:, None], np.ones(30)))
