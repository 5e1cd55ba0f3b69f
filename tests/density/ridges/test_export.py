"""Graphs of ridges handed to other programs."""

from __future__ import annotations

import csv
import json
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prinfold.base.roots import default_roots
from prinfold.base.trajectories import to_networkx
from prinfold.density.ridges.export import branch_lines, to_csv, to_geojson
from prinfold.density.ridges.graph import RidgeGraph
from prinfold.density.row_spaces import Globe
from prinfold.exceptions import InvalidParameterError, MissingExtraError
from prinfold.latent import Branches
from prinfold.latent.branch_graph import RootedGraph


def made(D: int = 2) -> RidgeGraph:
    """A straight stroke that ends where a second begins and a third too, and a ring on its own."""
    latent = Branches([2.0, 1.0, 1.0, 4.0], [False, False, False, True], [3, 2, 2, 8], 0.5)
    angle = np.arange(8) / 8 * 2 * np.pi
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    turned = np.stack([-np.sin(angle), np.cos(angle)], axis=1)
    points = np.array([[-2.0, 0], [-1, 0], [0, 0], [0, 0], [1, 0], [0, 0], [0, 1]])
    tangents = np.array([[1.0, 0]] * 5 + [[0, 1.0]] * 2)
    wide = np.eye(2, D)
    return RidgeGraph(
        latent,
        np.vstack([points, [5, 0] + ring * 2 / np.pi]) @ wide,
        np.vstack([tangents, turned]) @ wide,
        -np.arange(15.0),
        np.array([[-2.0, 0], [0, 0], [1, 0], [0, 1]]) @ wide,
        np.array([[0, 1], [1, 2], [1, 3], [-1, -1]]),
    )


def networkx_of(graph: RidgeGraph):
    rooted = RootedGraph(graph.network, default_roots(graph.network, graph.log_density))
    return to_networkx(rooted, graph.mesh(), graph.places, {"log_density": graph.log_density})


def test_lines_are_the_branches():
    graph = made()
    for b, line in enumerate(branch_lines(graph)):
        assert line.branch == b
        assert_allclose(line.arc_length[[0, -1]], [0.0, graph.latent.lengths[b]])
        Z = graph.latent.domain.low[b] + line.arc_length
        assert_allclose(graph.point(Z[:, None]), line.points, atol=1e-12)
        assert len(line.log_density) == len(line.points)
    assert_allclose(line.points[-1], line.points[0])
    assert line.closed


def test_a_networkx_graph_has_places_for_nodes_and_branches_for_edges():
    networkx = pytest.importorskip("networkx")
    graph = networkx_of(made())
    kinds = networkx.get_node_attributes(graph, "kind")
    assert kinds == {0: "end", 1: "junction", 2: "end", 3: "end", 4: "loop"}
    assert dict(graph.degree()) == {0: 1, 1: 3, 2: 1, 3: 1, 4: 2}
    assert networkx.number_connected_components(graph) == 2
    for a, b, edge in graph.edges(data=True):
        assert {a, b} == set(edge["ends"])
        for node, point in zip(edge["ends"], edge["points"][[0, -1]], strict=True):
            assert_allclose(graph.nodes[node]["position"], point)
        assert_allclose(edge["arc_length"][-1], edge["length"])
    assert networkx.shortest_path_length(graph, 0, 3, weight="length") == 3.0


def test_without_networkx_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(MissingExtraError, match=r"prinfold\[graph\]"):
        networkx_of(made())


def test_geojson_is_a_collection_of_lines(tmp_path):
    collection = to_geojson(made(), ["east", "north"], tmp_path / "lines.geojson")
    assert json.loads((tmp_path / "lines.geojson").read_text()) == collection
    assert collection["type"] == "FeatureCollection"
    assert [feature["geometry"]["type"] for feature in collection["features"]] == ["LineString"] * 4
    first, *_, ring = collection["features"]
    assert first["geometry"]["coordinates"] == [[-2.0, 0.0], [-1.0, 0.0], [0.0, 0.0]]
    assert first["properties"] == {
        "branch": 0,
        "length": 2.0,
        "closed": False,
        "start": 0,
        "end": 1,
        "mean_log_density": -1.0,
        "columns": ["east", "north"],
    }
    assert ring["geometry"]["coordinates"][0] == ring["geometry"]["coordinates"][-1]


@pytest.mark.parametrize("D", [1, 4])
def test_geojson_has_two_or_three_coordinates(D):
    with pytest.raises(InvalidParameterError, match=f"the data have {D} columns; use to_csv"):
        to_geojson(made(D))


def test_names_of_columns_are_no_formulas(tmp_path):
    to_csv(made(3), tmp_path / "lines.csv", ["=1+1", "@b", "-2"])
    header = (tmp_path / "lines.csv").read_text(encoding="utf-8").splitlines()[0]
    assert header == "branch,arc_length,'=1+1,'@b,-2,log_density"


def test_a_table_of_lines(tmp_path):
    to_csv(made(3), tmp_path / "lines.csv", ["a", "b", "c"])
    with (tmp_path / "lines.csv").open(newline="") as stream:
        header, *rows = csv.reader(stream)
    assert header == ["branch", "arc_length", "a", "b", "c", "log_density"]
    table = np.array(rows, dtype=float)
    assert len(table) == 3 + 2 + 2 + 9
    for line in branch_lines(made(3)):
        part = table[table[:, 0] == line.branch]
        assert_allclose(part[:, 1], line.arc_length, atol=0)
        assert_allclose(part[:, 2:5], line.points, atol=0)
        assert_allclose(part[:, 5], line.log_density, atol=0)


def test_columns_without_names_are_numbered(tmp_path):
    to_csv(made(), tmp_path / "lines.csv")
    assert (tmp_path / "lines.csv").read_text().splitlines()[0] == "branch,arc_length,x0,x1,log_density"
    with pytest.raises(InvalidParameterError, match="2 columns need as many names, got 3"):
        to_csv(made(), tmp_path / "lines.csv", ["a", "b", "c"])


def round_the_world(west: float) -> RidgeGraph:
    """The equator, closed, tilted a little, and a short stroke across the map's edge for the usual longitudes."""
    globe = Globe(west)
    longitude = np.arange(36) * 10.0
    equator = globe.enter(np.stack([longitude, 5.0 * np.sin(np.radians(longitude))], axis=1))
    stroke = globe.enter(np.array([[178.0, 40.0], [182.0, 44.0]]))
    latent = Branches([360.0, 5.0], [True, False], [36, 2], 1.0)
    points = np.vstack([equator, stroke])
    return RidgeGraph(latent, points, np.zeros_like(points), np.zeros(38), stroke, np.array([[-1, -1], [0, 1]]), globe)


def test_lines_on_a_globe_are_cut_at_the_edge_of_the_map():
    ring, stroke = (each["geometry"] for each in to_geojson(round_the_world(-180.0))["features"])
    assert stroke["type"] == ring["type"] == "MultiLineString"
    assert_allclose(stroke["coordinates"], [[[178, 40], [180, 42]], [[-180, 42], [-178, 44]]], atol=1e-9)
    for piece in ring["coordinates"]:
        assert np.abs(np.diff(np.asarray(piece)[:, 0])).max() < 11
    assert_allclose([ring["coordinates"][0][-1][0], ring["coordinates"][1][0][0]], [180, -180])
    total = sum(np.abs(np.diff(np.asarray(piece)[:, 0])).sum() for piece in ring["coordinates"])
    assert_allclose(total, 360.0)


def test_lines_on_a_globe_that_stay_on_the_map_are_whole():
    stroke = to_geojson(round_the_world(0.0))["features"][1]["geometry"]
    assert stroke["type"] == "LineString"
    assert_allclose(stroke["coordinates"], [[178, 40], [182, 44]])


def test_a_table_of_lines_on_a_globe_has_degrees(tmp_path):
    to_csv(round_the_world(0.0), tmp_path / "lines.csv", ["lon", "lat"])
    table = np.loadtxt(tmp_path / "lines.csv", delimiter=",", skiprows=1)
    assert_allclose(table[-2:, 2:4], [[178, 40], [182, 44]], atol=1e-9)
