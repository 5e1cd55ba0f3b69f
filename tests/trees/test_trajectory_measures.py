"""The measures of ``benchmarks/trees.py``, on networks small enough to do by hand."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from tests.house import ROOT


@pytest.fixture(scope="module")
def trees() -> Any:
    folder = str(ROOT / "benchmarks")
    sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location("benchmarks_trees", ROOT / "benchmarks" / "trees.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.path.remove(folder)
    return module


def path(trees: Any) -> Any:
    """One branch of length 1, rows at 0, ¼, ½, ¾ and 1."""
    return trees.Trajectory(np.array([[0, 1]]), np.array([1.0]), np.zeros(5, dtype=int), np.arange(5) / 4)


def fork(trees: Any) -> Any:
    """Three branches of length ½ from place 1, with rows at both ends of the first and at the tips of the others."""
    ends = np.array([[0, 1], [1, 2], [1, 3]])
    return trees.Trajectory(ends, np.full(3, 0.5), np.array([0, 0, 0, 1, 2]), np.array([0.0, 0.25, 0.5, 0.5, 0.5]))


def test_him_by_hand(trees: Any) -> None:
    """A path counts as two branches: weights ¼ in its adjacency; a fork has 1/6. Laplacians of stars are known."""
    # |¼ − 1/6| on two edges and 1/6 on the third, each twice, over 4 · 3
    hamming = (4 * (1 / 4 - 1 / 6) + 2 / 6) / 12
    roots = {"path": np.sqrt([0.0, 1 / 4, 3 / 4]), "fork": np.sqrt([1 / 6, 1 / 6, 4 / 6])}
    gamma = 0.1

    def density(omega: float, name: str) -> float:
        area = sum(np.pi / 2 + np.arctan(root / gamma) for root in roots[name])
        return float(sum(gamma / ((omega - root) ** 2 + gamma**2) for root in roots[name]) / area)

    spectral = quad(lambda omega: (density(omega, "path") - density(omega, "fork")) ** 2, 0, np.inf, limit=500)[0]
    wanted = 1 - np.sqrt((hamming**2 + spectral) / 2)
    assert trees.him(path(trees), fork(trees)) == pytest.approx(wanted, abs=1e-4)
    assert trees.him(fork(trees), fork(trees)) == pytest.approx(1.0)


def test_f1_by_hand(trees: Any) -> None:
    """True branches share 3/5, 1/5 and 1/5 with the only one found; the best of these is its relevance."""
    recovery, relevance = (3 / 5 + 1 / 5 + 1 / 5) / 3, 3 / 5
    wanted = 2 * recovery * relevance / (recovery + relevance)
    assert trees.f1_of_branches(fork(trees), path(trees)) == pytest.approx(wanted)
    assert trees.f1_of_branches(fork(trees), fork(trees)) == pytest.approx(1.0)


def test_distances_by_hand(trees: Any) -> None:
    found = trees.distances_along(fork(trees), np.array([0, 3]))
    np.testing.assert_allclose(found, [[0.0, 0.25, 0.5, 1.0, 1.0], [1.0, 0.75, 0.5, 0.0, 1.0]])


def test_rows_are_placed_on_straight_edges(trees: Any) -> None:
    """Nodes 0 – 1 – 2 along a line, with 3 beside: one fork at 1 joins three branches."""
    nodes = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    edges = np.array([[0, 1], [2, 1], [1, 3], [3, 4]])
    rows = np.array([[0.25, 0.1], [1.75, -0.1], [1.1, 1.5]])
    found = trees.of_edges(rows, nodes, edges)
    assert sorted(found.lengths.tolist()) == [1.0, 1.0, 2.0]
    from_first = trees.distances_along(found, np.array([0]))[0]
    np.testing.assert_allclose(from_first, [0.0, 1.5, 0.75 + 1.5])
