"""SimplePPT: the objective never rises, soft assignments are what the formula says, trees are spanning trees."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import approx_fprime

from prinfold import datasets
from prinfold.trees.soft_tree import TreeProblem, assign_rows, first_centers, laplacian, log_mixture, spanning_tree


def problem(trim: float = np.inf, edges: object = None) -> tuple[TreeProblem, np.ndarray]:
    data = datasets.make_tree(300, 0.15, rng=1, topology="four", n_features=4)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 300)
    return TreeProblem(data.X, weight, 0.2, 5.0, trim, edges), first_centers(data.X, weight, 25)


@pytest.mark.parametrize("trim", [np.inf, 0.4])
def test_no_step_raises_the_objective(trim: float) -> None:
    of, centers = problem(trim)
    state = of.begin(centers)
    for _ in range(60):
        after = of.step(state)
        assert after.objective <= state.objective + 1e-9 * abs(state.objective)
        state = after


def test_no_step_along_edges_that_stay_raises_the_objective() -> None:
    ring = np.stack([np.arange(25), np.mod(np.arange(25) + 1, 25)], axis=1)
    of, centers = problem(edges=ring)
    state = of.begin(centers)
    for _ in range(60):
        after = of.step(state)
        assert after.objective <= state.objective + 1e-9 * abs(state.objective)
        np.testing.assert_array_equal(after.edges, ring)
        state = after


def test_no_step_of_a_forest_raises_the_objective() -> None:
    of, centers = problem()
    of = replace(of, reach=0.3)
    state = of.begin(np.vstack([centers, centers + 4.0]))
    assert len(state.edges) < 49
    for _ in range(60):
        after = of.step(state)
        assert after.objective <= state.objective + 1e-9 * abs(state.objective)
        state = after


def test_a_step_stands_still_where_the_gradient_is_nil() -> None:
    """At a fixed point of the step, the derivative of the objective by finite differences is nought."""
    rows = np.random.default_rng(0).normal(size=(40, 2))
    chain = np.array([[0, 1], [1, 2]])
    of = TreeProblem(rows, np.ones(40), 0.8, 3.0, edges=chain)
    state = of.run(rows[:3], 5000, 0.0)
    slope = approx_fprime(state.centers.ravel(), lambda v: of.begin(v.reshape(3, 2)).objective, 1e-6)
    assert np.abs(slope).max() < 1e-3


def test_assignments_are_those_of_the_formula() -> None:
    of, centers = problem(0.5)
    scale = 2 * 0.2**2
    kernel = np.exp(-np.square(of.rows[:, None] - centers).sum(axis=2) / scale)
    total = kernel.sum(axis=1) + np.exp(-(0.5**2) / scale)
    share = of.weight[:, None] * kernel / total[:, None]
    found = assign_rows(of.rows, of.weight, centers, scale, 0.5)
    np.testing.assert_allclose(found.mass, share.sum(axis=0), rtol=1e-10)
    np.testing.assert_allclose(found.sums, share.T @ of.rows, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.energy, -scale * of.weight @ np.log(total), rtol=1e-10)


def test_blocks_are_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    of, centers = problem()
    whole = assign_rows(of.rows, of.weight, centers, 0.1, np.inf)
    monkeypatch.setattr("prinfold.trees.soft_tree._BLOCK_ROWS", 7)
    for one, other in zip(whole, assign_rows(of.rows, of.weight, centers, 0.1, np.inf), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)


def test_a_row_far_from_everything_leaves_no_nan() -> None:
    found = assign_rows(np.array([[1e6, 0.0], [0.0, 0.0]]), np.ones(2), np.zeros((3, 2)), 1e-6, np.inf)
    assert all(np.isfinite(part).all() for part in found)
    assert found.mass.sum() == pytest.approx(2.0)


def test_background_beyond_the_trimming_radius_pulls_at_nothing() -> None:
    """Rows at 50 radii change neither masses nor sums."""
    of, centers = problem(0.6)
    far = np.vstack([of.rows, np.full((30, 4), 30.0)])
    one = assign_rows(of.rows, of.weight, centers, 0.08, 0.6)
    other = assign_rows(far, np.concatenate([of.weight, np.ones(30)]), centers, 0.08, 0.6)
    np.testing.assert_allclose(other.mass, one.mass, rtol=1e-12)
    np.testing.assert_allclose(other.sums, one.sums, rtol=1e-12)


def test_the_spanning_tree_is_that_of_networkx() -> None:
    points = np.random.default_rng(3).normal(size=(30, 5))
    points[7] = points[3]  # a length of nought is an edge too
    graph = nx.Graph()
    for i in range(30):
        for j in range(i):
            graph.add_edge(i, j, weight=float(np.linalg.norm(points[i] - points[j])))
    wanted = sum(each["weight"] for *_, each in nx.minimum_spanning_edges(graph))
    edges = spanning_tree(points)
    assert len(edges) == 29
    assert nx.is_connected(nx.Graph(edges.tolist()))
    assert np.linalg.norm(points[edges[:, 0]] - points[edges[:, 1]], axis=1).sum() == pytest.approx(wanted)


def test_the_laplacian_is_that_of_networkx() -> None:
    edges = np.array([[0, 1], [1, 2], [1, 3], [3, 4]])
    wanted = nx.laplacian_matrix(nx.Graph(edges.tolist()), nodelist=range(5)).toarray()
    np.testing.assert_array_equal(laplacian(edges, 5), wanted)


def test_the_mixture_is_a_density() -> None:
    centers, mass = np.array([[0.0], [1.5]]), np.array([1.0, 3.0])
    x = np.linspace(-8, 9, 4001)[:, None]
    assert np.trapezoid(np.exp(log_mixture(x, centers, mass, 0.5, 1)), x[:, 0]) == pytest.approx(1.0)
