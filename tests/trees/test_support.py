"""Support of branches under rows drawn anew."""

from __future__ import annotations

import numpy as np
import pytest

from prinfold import PrincipalTree, datasets
from prinfold.exceptions import InvalidParameterError
from prinfold.trees.support import found_again


def test_a_graph_finds_itself_again_and_not_one_elsewhere() -> None:
    data = datasets.make_tree(400, 0.1, rng=0)
    one = PrincipalTree().fit(data.X).graph_
    other = PrincipalTree().fit(data.X + 5.0).graph_
    np.testing.assert_array_equal(found_again(one, one, 0.1), 1.0)
    np.testing.assert_array_equal(found_again(one, other, 0.1), 0.0)


def test_branches_of_a_clear_tree_are_always_found_again() -> None:
    data = datasets.make_tree(400, 0.05, rng=0)
    model = PrincipalTree().fit(data.X)
    np.testing.assert_array_equal(model.support(data.X, n_samples=5, random_state=0), 1.0)


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.StructureWarning")
def test_branches_over_a_sheet_are_not() -> None:
    X = np.random.default_rng(0).uniform(-1, 1, (400, 3)) * [1.0, 1.0, 0.02]
    model = PrincipalTree().fit(X)
    assert model.support(X, n_samples=5, random_state=0).mean() < 0.8


def test_a_number_of_draws_is_wanted() -> None:
    data = datasets.make_tree(200, rng=0)
    with pytest.raises(InvalidParameterError, match="n_samples"):
        PrincipalTree().fit(data.X).support(data.X, n_samples=0)


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.StructureWarning")
def test_branches_without_support_are_left_out_and_those_with_it_stay() -> None:
    """A narrow kernel grows branches by chance; the three true ones are what is left of them."""
    data = datasets.make_tree(300, 0.1, rng=21)
    grown = PrincipalTree(bandwidth=0.08, min_support=0.0).fit(data.X)
    assert grown.graph_.latent.n_branches > 3
    pruned = PrincipalTree(bandwidth=0.08).fit(data.X)
    assert sorted(pruned.graph_.degrees.tolist()) == [1, 1, 1, 3]


def test_nothing_is_drawn_where_no_branch_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    data = datasets.make_tree(300, 0.05, rng=0)
    monkeypatch.setattr(PrincipalTree, "_fit_again", lambda *_: pytest.fail("rows were drawn anew"))
    one, other = PrincipalTree(min_support=0.0).fit(data.X), PrincipalTree(min_support=1.0).fit(data.X)
    np.testing.assert_array_equal(one.graph_.points, other.graph_.points)
