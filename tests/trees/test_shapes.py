"""Shapes: spurs go, ends of a ring meet, pieces come apart, and paths have no forks."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from prinfold import PrincipalTree, datasets
from prinfold.density.ridges.graph import RidgeGraph
from prinfold.exceptions import StructureWarning
from prinfold.trees.shapes import TreeShape, longest_way

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.StructureWarning")


def fitted(shape: str, topology: str, seed: int = 3, **settings: object) -> tuple[PrincipalTree, datasets.TreeDataset]:
    data = datasets.make_tree(600, 0.1, rng=seed, topology=shape, n_features=10)
    return PrincipalTree(topology, **settings).fit(data.X), data


def degrees(graph: RidgeGraph) -> list[int]:
    return sorted(graph.degrees.tolist())


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [("y", [1, 1, 1, 3]), ("four", [1, 1, 1, 1, 3, 3]), ("five", [1, 1, 1, 1, 1, 3, 3, 3])],
)
@pytest.mark.parametrize("seed", [20, 21, 22])
def test_trees_have_the_ends_and_forks_that_they_were_drawn_with(shape: str, wanted: list[int], seed: int) -> None:
    model, data = fitted(shape, "tree", seed)
    assert degrees(model.graph_) == wanted
    assert np.sqrt(model.projection_error(data.clean)) < 0.1


def test_a_path_of_a_tree_has_two_ends() -> None:
    model, _ = fitted("y", "path")
    assert degrees(model.graph_) == [1, 1]


def test_a_ring_closes_and_is_as_long_as_the_true_one() -> None:
    model, data = fitted("ring", "ring")
    assert model.graph_.latent.closed.tolist() == [True]
    assert model.graph_.latent.lengths[0] == pytest.approx(data.lengths_of_branches.sum(), rel=0.2)


def test_a_lasso_is_a_graph_with_a_loop_and_no_tree() -> None:
    model, _ = fitted("lasso", "graph")
    made = model.to_networkx()
    assert made.number_of_edges() - made.number_of_nodes() + nx.number_connected_components(made) == 1
    assert sum(degree == 1 for _, degree in made.degree) == 1
    tree, _ = fitted("lasso", "tree")
    assert nx.is_forest(nx.Graph(tree.to_networkx()))


def test_a_tree_has_no_loops_to_close() -> None:
    model, _ = fitted("y", "graph")
    assert degrees(model.graph_) == [1, 1, 1, 3]


def test_pieces_far_apart_are_a_forest() -> None:
    model, _ = fitted("two", "forest")
    assert nx.number_connected_components(nx.Graph(model.to_networkx())) == 2
    whole, _ = fitted("two", "tree")
    assert nx.number_connected_components(nx.Graph(whole.to_networkx())) == 1


def test_short_branches_go_with_min_length() -> None:
    longest = fitted("four", "tree", min_length=1e3)[0]
    assert longest.graph_.latent.n_branches == 1


def test_a_path_is_said_to_be_one() -> None:
    data = datasets.make_tree(600, 0.1, rng=0, topology="path")
    with pytest.warns(StructureWarning, match="along one path"):
        model = PrincipalTree().fit(data.X)
    assert "one path" in model.doubt_
    assert PrincipalTree("path").fit(data.X).doubt_ == ""


def test_the_longest_way_is_that_of_networkx() -> None:
    rng = np.random.default_rng(0)
    tree = nx.random_labeled_tree(20, seed=0)
    points = rng.normal(size=(20, 3))
    paths = [[a, b] for a, b in tree.edges]
    for a, b in tree.edges:
        tree.edges[a, b]["weight"] = float(np.linalg.norm(points[a] - points[b]))
    wanted = max(max(each.values()) for _, each in nx.all_pairs_dijkstra_path_length(tree))
    way = points[longest_way(TreeShape(points, paths))]
    assert np.linalg.norm(np.diff(way, axis=0), axis=1).sum() == pytest.approx(wanted)
