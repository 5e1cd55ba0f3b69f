"""Support of branches under rows drawn anew."""

from __future__ import annotations

import numpy as np
import pytest

from prinfold import PrincipalTree, datasets
from prinfold.exceptions import InvalidParameterError
from prinfold.geometry.column_span import ColumnSpan
from prinfold.trees.support import RedrawnTrees, common_tree, ends_and_forks, found_branches


def test_a_graph_finds_itself_again_and_not_one_elsewhere() -> None:
    data = datasets.make_tree(400, 0.1, rng=0)
    one = PrincipalTree().fit(data.X).graph_
    other = PrincipalTree().fit(data.X + 5.0).graph_
    np.testing.assert_array_equal(found_branches(one, one, 0.1), 1.0)
    np.testing.assert_array_equal(found_branches(one, other, 0.1), 0.0)


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


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.StructureWarning")
def test_rows_are_drawn_five_times_where_trees_of_them_have_no_end_more(monkeypatch: pytest.MonkeyPatch) -> None:
    data = datasets.make_tree(300, 0.05, rng=0)
    plain = PrincipalTree(min_support=0.0).fit(data.X)
    draws = []
    monkeypatch.setattr(PrincipalTree, "_fit_again", lambda *_: draws.append(1) or plain)
    model = PrincipalTree().fit(data.X)
    assert len(draws) == 5
    np.testing.assert_array_equal(model.graph_.points, plain.graph_.points)
    monkeypatch.setattr(PrincipalTree, "_fit_again", lambda *_: pytest.fail("rows were drawn anew"))
    PrincipalTree(min_support=0.0).fit(data.X)
    PrincipalTree("ring").fit(data.X)  # has no ends


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.StructureWarning")
@pytest.mark.parametrize(("every", "taken"), [(1, True), (2, True), (3, False)])
def test_the_shape_with_more_ends_is_taken_from_half_of_the_draws_on(
    every: int, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = datasets.make_tree(300, 0.05, rng=0)
    y, path = (PrincipalTree(kind, min_support=0.0).fit(data.X) for kind in ("tree", "path"))
    turns = iter(range(20))
    monkeypatch.setattr(PrincipalTree, "_fit_again", lambda *_: y if next(turns) % every == 0 else path)
    found = common_tree(path, RedrawnTrees(path, data.X, np.ones(300), np.random.default_rng(0)))
    assert (found is y.graph_) == taken


@pytest.mark.full
def test_a_branch_that_one_fit_misses_and_most_trees_of_rows_drawn_anew_have_is_found() -> None:
    data = datasets.make_tree(300, 0.2, rng=2002, topology="four", n_features=10, densities=(1.0, 0.5, 1.5, 1.0, 0.6))
    plain, model = PrincipalTree(min_support=0.0).fit(data.X), PrincipalTree().fit(data.X)
    assert ends_and_forks(plain.graph_) == (3, 1)
    assert ends_and_forks(model.graph_) == (4, 2)
    span = ColumnSpan(model.components_.T, model.offset_)
    apart = np.linalg.norm(model.graph_.places - span.from_coordinates(span.inside(model.graph_.places)), axis=1)
    np.testing.assert_allclose(apart, 0.0, atol=1e-9)  # the common tree lies in the components of the fit
