"""Ways along a graph, against NetworkX on a fine graph."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from prinfold import PrincipalTree, datasets

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.StructureWarning")


@pytest.mark.parametrize(("shape", "topology"), [("four", "tree"), ("lasso", "graph"), ("ring", "ring")])
def test_ways_are_those_along_a_fine_graph(shape: str, topology: str) -> None:
    data = datasets.make_tree(500, 0.1, rng=3, topology=shape)
    graph = PrincipalTree(topology).fit(data.X).graph_
    latent = graph.latent
    nodes, made = latent.nodes, nx.Graph()
    for a, b in latent.faces.tolist():
        made.add_edge(a, b, weight=float(latent.steps[latent.domain.piece(nodes[[a]])[0]]))
    for number, (start, end) in enumerate(graph.ends.tolist()):
        if start >= 0:
            made.add_edge(int(latent.first[number]), ("place", start), weight=0.0)
            made.add_edge(int(latent.first[number] + latent.counts[number] - 1), ("place", end), weight=0.0)
    chosen = np.arange(0, len(nodes), max(1, len(nodes) // 15))
    found = graph.network.distances(nodes[chosen], nodes[chosen])
    for i, a in enumerate(chosen.tolist()):
        reached = nx.single_source_dijkstra_path_length(made, a)
        np.testing.assert_allclose(found[i], [reached[int(b)] for b in chosen], atol=1e-9)


def test_no_way_leads_to_another_piece() -> None:
    data = datasets.make_tree(600, 0.1, rng=3, topology="two")
    model = PrincipalTree("forest").fit(data.X)
    Z = model.transform(data.X[[int(np.argmax(data.labels == 3)), int(np.argmax(data.labels == 0))]])
    assert np.isinf(model.graph_.network.distances(Z[:1], Z[1:])).all()


def test_a_fork_has_one_name() -> None:
    """The ends of all branches that meet there have the same coordinate, and the same point."""
    graph = PrincipalTree().fit(datasets.make_tree(500, 0.1, rng=3, topology="star").X).graph_
    domain = graph.latent.domain
    for place in range(len(graph.places)):
        branch, side = np.nonzero(graph.ends == place)
        Z = np.where(side == 0, domain.low[branch], domain.high[branch])[:, None]
        named = graph.network.name_forks(Z)
        assert len(np.unique(named)) == 1
        np.testing.assert_allclose(graph.point(named), np.tile(graph.places[place], (len(Z), 1)), atol=1e-9)
    inner = domain.low[:, None] + 0.3 * graph.latent.lengths[:, None]
    np.testing.assert_array_equal(graph.network.name_forks(inner), inner)
