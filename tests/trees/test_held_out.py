"""Which of several trees to take, by rows that none of them was fitted to."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import special_ortho_group

from prinfold import PrincipalTree, datasets
from prinfold.trees.held_out import (
    RowsOfTree,
    ScoredTree,
    _branch_densities,
    _branch_shares,
    _parts,
    held_out_log_density,
    simplest_of,
)
from prinfold.trees.shapes import spread_evenly
from prinfold.trees.soft_tree import TreeProblem
from prinfold.trees.support import ends_and_forks

FOUR_LEAVES = {"topology": "four", "densities": (1.0, 0.5, 1.5, 1.0, 0.6)}


def test_density_about_branches_is_their_mean_gaussian() -> None:
    rng = np.random.default_rng(0)
    ways = [np.array([[0.0, 0.0], [2.0, 0.0]]), np.array([[0.0, 0.0], [0.0, 1.0]])]
    rows, width = rng.normal(0.5, 1.0, (20, 2)), 0.3
    density, top = _branch_densities(rows, [spread_evenly(way, 4000) for way in ways], width)

    def gaussian(share: float, row: np.ndarray, way: np.ndarray) -> float:
        return float(np.exp(-np.square(row - way[0] - share * (way[1] - way[0])).sum() / (2.0 * width**2)))

    wanted = [[quad(gaussian, 0.0, 1.0, args=(row, way), points=[0.5])[0] for way in ways] for row in rows]
    np.testing.assert_allclose(density * np.exp(top)[:, None], wanted, rtol=5e-3, atol=1e-7)


def test_shares_are_those_of_the_likeliest_mixture() -> None:
    density = np.random.default_rng(1).uniform(size=(400, 2)) * [1.0, 0.7]
    shares = _branch_shares(density, np.ones(400))
    grid = np.linspace(0.001, 0.999, 999)
    best = grid[np.argmax([np.log(density @ [p, 1.0 - p]).sum() + 0.5 * np.log(p * (1.0 - p)) for p in grid])]
    assert shares.sum() == pytest.approx(1.0)
    assert shares[0] == pytest.approx(best, abs=0.01)


def test_rows_held_out_have_no_part_in_the_tree_they_are_judged_by(monkeypatch: pytest.MonkeyPatch) -> None:
    data = datasets.make_tree(200, 0.1, rng=0, n_features=8)
    model = PrincipalTree(min_support=0.0).fit(data.X)
    problem = TreeProblem(data.X, np.ones(200), model.bandwidth_, 200 / 60)
    part = np.arange(200) % 5
    monkeypatch.setattr("prinfold.trees.held_out._parts", lambda *_: part)
    moved = data.X.copy()
    moved[0] += 5.0
    one, other = (
        held_out_log_density(RowsOfTree(rows, np.ones(200), model.noise_), model.graph_, 3, problem)
        for rows in (data.X, moved)
    )
    same = part == part[0]
    same[0] = False
    np.testing.assert_allclose(one[same], other[same], rtol=1e-12)
    assert other[0] < one[0] - 100.0
    assert np.abs(one - other)[part != part[0]].max() > 1e-3


@pytest.mark.parametrize(
    ("gain", "spread", "chosen"),
    [(10.0, 0.1, 1), (10.0, 5.0, 0), (-10.0, 0.1, 0)],
    ids=["clear", "within a standard error", "worse"],
)
def test_more_ends_are_taken_only_beyond_a_standard_error(gain: float, spread: float, chosen: int) -> None:
    noise = np.random.default_rng(0).normal(size=100)
    noise -= noise.mean()
    fewer = ScoredTree(3, np.zeros(100))
    more = ScoredTree(4, gain / 100 + spread * noise)
    assert simplest_of([fewer, more], np.ones(100)) == chosen


def test_of_as_many_ends_the_first_stays_and_of_others_the_likeliest_is_taken() -> None:
    levels = (0.0, 0.2, 0.1)
    assert simplest_of([ScoredTree(3, np.full(10, level)) for level in levels], np.ones(10)) == 0
    trees = [ScoredTree(ends, np.full(10, level)) for ends, level in zip((3, 4, 4), levels, strict=True)]
    assert simplest_of(trees, np.ones(10)) == 1


def test_parts_are_the_same_however_rows_are_turned() -> None:
    rng = np.random.default_rng(0)
    rows, weight = rng.normal(size=(101, 4)), rng.uniform(0.5, 2.0, 101)
    part = _parts(rows, weight)
    turned = _parts(rows @ special_ortho_group.rvs(4, random_state=1) + 3.0, weight)
    np.testing.assert_array_equal(part, turned)
    assert np.bincount(part).tolist() == [21, 20, 20, 20, 20]


def test_a_branch_that_the_spectrum_misses_is_found_in_one_more_component() -> None:
    data = datasets.make_tree(300, 0.2, rng=3015, n_features=10, **FOUR_LEAVES)
    plain, model = PrincipalTree(min_support=0.0).fit(data.X), PrincipalTree().fit(data.X)
    assert ends_and_forks(plain.graph_) == (3, 1)
    assert ends_and_forks(model.graph_) == (4, 2)
    assert len(plain.components_) < len(model.components_) <= len(plain.components_) + 2


def test_components_stay_where_rows_held_out_are_no_likelier_in_more() -> None:
    data = datasets.make_tree(300, 0.2, rng=3014, n_features=50, **FOUR_LEAVES)
    plain, model = PrincipalTree(min_support=0.0).fit(data.X), PrincipalTree().fit(data.X)
    np.testing.assert_array_equal(plain.components_, model.components_)
    assert ends_and_forks(model.graph_) == (4, 2)
