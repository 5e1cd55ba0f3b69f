"""Rows about trees: lengths, places, pseudotime and densities are what was asked for."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from prinfold import datasets
from prinfold.datasets.tree import TOPOLOGIES
from prinfold.exceptions import InvalidParameterError


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_rows_lie_where_they_are_said_to(topology: str) -> None:
    data = datasets.make_tree(200, 0.0, rng=0, topology=topology, n_features=6)
    start = np.cumsum(data.lengths_of_branches) - data.lengths_of_branches
    np.testing.assert_allclose(start[data.labels] + data.arc_length, data.latent[:, 0])
    np.testing.assert_allclose(data.surface.distance(data.X), 0, atol=1e-12)
    for branch, (a, b) in enumerate(data.ends):
        ends = start[branch] + np.array([[1e-9], [data.lengths_of_branches[branch] - 1e-9]])
        np.testing.assert_allclose(data.surface.point(ends), data.places[[a, b]], atol=1e-8)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_pseudotime_is_the_shortest_way_of_networkx(topology: str) -> None:
    data = datasets.make_tree(60, 0.1, rng=1, topology=topology)
    graph = nx.Graph()
    for (a, b), length in zip(data.ends.tolist(), data.lengths_of_branches, strict=True):
        graph.add_edge(a, b, weight=length)
    for row in range(60):
        a, b = data.ends[data.labels[row]].tolist()
        one = nx.Graph(graph)
        one.remove_edge(a, b)
        one.add_edge(a, "row", weight=data.arc_length[row])
        one.add_edge("row", b, weight=data.lengths_of_branches[data.labels[row]] - data.arc_length[row])
        root = min(place for place in nx.node_connected_component(graph, a))
        wanted = nx.dijkstra_path_length(one, root, "row")
        assert data.pseudotime[row] == pytest.approx(wanted)


def test_lengths_and_densities_are_those_asked_for() -> None:
    data = datasets.make_tree(20_000, rng=0, lengths=(1.0, 2.0, 0.5), densities=(1.0, 2.0, 4.0))
    np.testing.assert_allclose(data.lengths_of_branches, (1.0, 2.0, 0.5), rtol=1e-3)
    share = np.bincount(data.labels) / 20_000
    np.testing.assert_allclose(share, np.array([1.0, 4.0, 2.0]) / 7.0, atol=0.015)


def test_straight_branches_are_straight_and_curved_ones_turn() -> None:
    straight = datasets.make_tree(10, rng=0, bend=0.0)
    way = np.linalg.norm(straight.places[straight.ends[:, 1]] - straight.places[straight.ends[:, 0]], axis=1)
    np.testing.assert_allclose(way, 1.0)
    curved = datasets.make_tree(10, rng=0, bend=2.0)
    way = np.linalg.norm(curved.places[curved.ends[:, 1]] - curved.places[curved.ends[:, 0]], axis=1)
    assert (way < 0.97).all()
    assert (way > 2 * np.sin(1.0) / 2.0 - 1e-3).all()  # the chord of an arc of length 1 that turns by 2


def test_counts_have_the_mean_and_the_dispersion_asked_for() -> None:
    data = datasets.make_tree(20_000, 0.0, rng=0, counts=50.0, dispersion=0.2, bend=0.0, n_features=4)
    mean = 50.0 * np.exp(data.clean)
    assert (data.X >= 0).all()
    np.testing.assert_array_equal(data.X, np.round(data.X))
    assert (data.X / mean).mean() == pytest.approx(1.0, abs=0.01)
    assert (np.square(data.X - mean) / (mean + 0.2 * mean**2)).mean() == pytest.approx(1.0, abs=0.05)


def test_any_graph_can_be_given() -> None:
    data = datasets.make_tree(50, rng=0, topology=[(0, 1), (1, 2), (2, 3), (2, 4)])
    assert data.ends.tolist() == [[0, 1], [1, 2], [2, 3], [2, 4]]


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"topology": "bush"}, "topology must be one of"),
        ({"topology": [(0, 2)]}, "without gaps"),
        ({"lengths": (1.0, 2.0)}, "3 of them"),
        ({"densities": 0.0}, "densities must be"),
        ({"n_features": 1}, "n_features must be"),
        ({"bend": 4.0}, "bend must be"),
        ({"counts": 0.0}, "counts must be"),
        ({"noise": -1.0}, "noise"),
    ],
)
def test_what_cannot_be_drawn_is_named(settings: dict[str, object], match: str) -> None:
    with pytest.raises(InvalidParameterError, match=match):
        datasets.make_tree(**settings)
