"""The rules by which nodes on ridges become branches, each on a net drawn by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prinfold.density.densities import KernelDensity
from prinfold.density.ridges.graph import RidgeGraph, _orient_path
from prinfold.density.ridges.graph_branches import degrees, link_chains, path_length, paths, simplify
from prinfold.density.ridges.graph_nodes import AHEAD_COSINE, STEP, RidgeNodes, make_nodes, nearest_ahead, thin_nodes
from prinfold.density.ridges.mean_shift import Flow


def drawn(*strokes, density=None):
    """A net of bandwidth 1 with nodes a quarter apart along strokes (from, to); and the nodes of each stroke.

    A place that strokes share is one node.
    """
    points, tangents, members, known = [], [], [], {}
    for start, end in np.asarray(strokes, dtype=float):
        count = int(np.ceil(np.linalg.norm(end - start) / STEP)) + 1
        names = []
        for share in np.linspace(0, 1, count):
            point = tuple(np.round(start + share * (end - start), 9))
            if point not in known:
                known[point] = len(points)
                points.append(point)
                tangents.append((end - start) / np.linalg.norm(end - start))
            names.append(known[point])
        members.append(names)
    height = np.zeros(len(points)) if density is None else np.array([density(point) for point in points])
    ones = np.ones(len(points))
    return RidgeNodes(np.array(points), np.array(tangents), height, ones, ones.astype(bool)), members


def shapes(branches, nodes):
    """Lengths in bandwidths, rounded, longest first."""
    return sorted((round(path_length(nodes, path), 2) for path in branches), reverse=True)


def ring(length):
    """Nodes round a circle, and the closed path."""
    count = int(length / STEP)
    angle = 2 * np.pi * np.arange(count) / count
    points = length / (2 * np.pi) * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    tangent = np.stack([-np.sin(angle), np.cos(angle)], axis=1)
    ones = np.ones(count)
    return RidgeNodes(points, tangent, 0 * ones, ones, ones.astype(bool)), [*range(count), 0]


# ------------------------------------------------------------------------------------------- what is taken away


def test_short_spurs_go_and_what_is_left_is_one_branch():
    nodes, members = drawn(((0, 0), (5, 0)), ((5, 0), (10, 0)), ((5, 0), (5, 2.75)))
    assert shapes(simplify(members, nodes), nodes) == [10]


def test_long_spurs_stay():
    nodes, members = drawn(((0, 0), (5, 0)), ((5, 0), (10, 0)), ((5, 0), (5, 3.25)))
    branches = simplify(members, nodes)
    assert shapes(branches, nodes) == [5, 5, 3.25]
    assert sorted(degrees(branches).values()) == [1, 1, 1, 3]


@pytest.mark.parametrize(("shortest", "count"), [(0.0, 3), (1.0, 3), (2.0, 1)])
def test_how_short_a_spur_may_be_is_for_users_to_say(shortest, count):
    nodes, members = drawn(((0, 0), (5, 0)), ((5, 0), (10, 0)), ((5, 0), (5, 1.75)))
    assert len(simplify(members, nodes, shortest)) == count


def test_of_two_spurs_at_the_end_of_a_branch_the_longer_goes_on_with_it():
    nodes, members = drawn(((0, 0), (5, 0)), ((5, 0), (7.5, 0.5)), ((5, 0), (6, -1)))
    assert shapes(simplify(members, nodes), nodes) == [round(5 + np.hypot(2.5, 0.5), 2)]


def test_fragments_go_but_for_the_last():
    nodes, members = drawn(((0, 0), (5, 0)), ((0, 9), (2.75, 9)))
    assert shapes(simplify(members, nodes), nodes) == [5]
    nodes, members = drawn(((0, 0), (1, 0)), ((0, 9), (1.5, 9)))
    assert shapes(simplify(members, nodes), nodes) == [1.5]


def test_two_junctions_close_by_are_one_at_the_densest_place_between():
    nodes, members = drawn(
        ((-0.75, 0), (0.75, 0)),
        ((-5, 3), (-0.75, 0)),
        ((-5, -3), (-0.75, 0)),
        ((0.75, 0), (5, 3)),
        ((0.75, 0), (5, -3)),
        density=lambda p: -abs(p[0]),
    )
    branches = simplify(members, nodes)
    count = degrees(branches)
    (junction,) = (node for node, n in count.items() if n > 1)
    assert count[junction] == len(branches) == 4
    assert_allclose(nodes.points[junction], [0, 0])


def test_junctions_farther_apart_stay_two():
    nodes, members = drawn(
        ((-1.25, 0), (1.25, 0)),
        ((-5, 3), (-1.25, 0)),
        ((-5, -3), (-1.25, 0)),
        ((1.25, 0), (5, 3)),
        ((1.25, 0), (5, -3)),
    )
    assert sorted(degrees(simplify(members, nodes)).values()) == [1, 1, 1, 1, 3, 3]
    assert sorted(degrees(simplify(members, nodes, shortest=4.5)).values()) == [1, 1, 1, 1, 3, 3]


@pytest.mark.parametrize(("width", "kept"), [(1.0, False), (3.0, True)])
def test_small_loops_are_opened_where_they_are_sparsest(width, kept):
    """A rectangle between two tails; its upper side is the sparser."""
    nodes, members = drawn(
        ((-6, 0), (0, 0)),
        ((0, 0), (width, 0)),
        ((width, 0), (6 + width, 0)),
        ((0, 0), (0, 1)),
        ((0, 1), (width, 1)),
        ((width, 1), (width, 0)),
        density=lambda p: -p[1],
    )
    upper = members[3] + members[4][1:] + members[5][1:]
    branches = simplify([*members[:3], upper], nodes)
    lengths = [round(12 + width, 2)] if not kept else [6, 6, 5, 3]
    assert shapes(branches, nodes) == lengths


def test_a_ring_alone_is_a_branch_of_its_own():
    nodes, path = ring(8.0)
    (found,) = simplify([path], nodes)
    assert found[0] == found[-1]
    assert len(found) == len(path)


# ------------------------------------------------------------------------------------------- links and paths


def test_links_lead_along_a_line_and_round_a_ring():
    nodes, _ = ring(6.0)
    assert paths(link_chains(nodes), np.arange(24)) == [[*range(24), 0]]
    nodes, _ = drawn(((0, 0), (3, 0)))
    assert paths(link_chains(nodes), np.arange(13)) == [list(range(13))]


def test_links_do_not_lead_from_one_line_to_the_next():
    nodes, members = drawn(((0, 0), (5, 0)), ((0, 0.3), (5, 0.3)))
    assert sorted(paths(link_chains(nodes), np.arange(len(nodes.points)))) == sorted(members)


def test_paths_take_every_link_once():
    rng = np.random.default_rng(0)
    links = [[] for _ in range(30)]
    for a, b in {tuple(sorted(pair)) for pair in rng.integers(0, 30, (40, 2)).tolist() if pair[0] != pair[1]}:
        links[a].append(b)
        links[b].append(a)
    found = paths(links, np.arange(30))
    taken = [tuple(sorted(pair)) for path in found for pair in pairwise(path)]
    assert len(taken) == len(set(taken)) == sum(map(len, links)) // 2
    for path in found:
        assert all(len(links[node]) == 2 for node in path[1:-1])


def test_ahead_is_the_nearest_within_a_cone():
    nodes, _ = drawn(((0, 0), (2, 0)))
    found = nearest_ahead(nodes, np.array([0, 0, 4]), np.array([[1.0, 0], [-1.0, 0], [-1.0, 0]]))
    assert found.tolist() == [1, -1, 3]
    angle = np.arccos(AHEAD_COSINE)
    for off, expected in ((0.9, 1), (1.1, -1)):
        direction = np.array([[np.cos(off * angle), np.sin(off * angle)]])
        assert nearest_ahead(nodes, np.array([0]), direction).tolist() == [expected]


# ------------------------------------------------------------------------------------------- nets


def rows_on_a_line(*pieces, step=0.05):
    x = np.concatenate([np.arange(low, high + 1e-9, step) for low, high in pieces])
    return np.stack([x, np.zeros(len(x))], axis=1)


def flowed(X, bandwidth=1.0):
    flow = Flow(KernelDensity(X, np.ones(len(X)), bandwidth), 1)
    return flow, flow(X)


def test_a_net_is_spread_and_covers_all_points():
    flow, found = flowed(rows_on_a_line((0, 20)))
    nodes = make_nodes(flow, found)
    apart = np.linalg.norm(nodes.points[:, None] - nodes.points, axis=2)
    assert apart[np.triu_indices(len(apart), 1)].min() >= STEP * (1 - 1e-9)
    to_net = np.linalg.norm(found.points[:, None] - nodes.points, axis=2).min(axis=1)
    assert to_net.max() <= STEP * (1 + 1e-9)
    assert (np.diff(thin_nodes(nodes).log_density) <= 0).all()


@pytest.mark.parametrize(("gap", "branches"), [(2.0, 1), (3.0, 1), (5.0, 2)])
def test_gaps_are_bridged_where_the_density_has_a_ridge(gap, branches):
    """Between two half lines the density falls to 2Φ(−g/2) of its height, from half of it at the ends."""
    flow, found = flowed(rows_on_a_line((-10, -gap / 2), (gap / 2, 10)))
    assert RidgeGraph.of(flow, found).latent.n_branches == branches


def test_branches_end_at_the_last_ridge_point_of_a_row():
    flow, found = flowed(rows_on_a_line((0, 10)))
    g = RidgeGraph.of(flow, found)
    assert_allclose(np.sort(g.places[:, 0]), [0, 10], atol=2 * STEP)
    assert g.places[:, 0].min() >= -1e-6
    assert g.places[:, 0].max() <= 10 + 1e-6


@pytest.mark.parametrize(("gap", "joined"), [(1.0, True), (1.75, True), (4.0, False)])
def test_an_end_is_joined_to_a_branch_ahead(gap, joined):
    bar = rows_on_a_line((-10, 10))
    stem = rows_on_a_line((gap, 10))[:, ::-1]
    flow, found = flowed(np.vstack([bar, stem]))
    g = RidgeGraph.of(flow, found)
    assert int((g.degrees == 3).sum()) == joined
    assert g.latent.n_branches == (3 if joined else 2)


@pytest.mark.parametrize("level", [-3.0, 3.0])
def test_a_branch_begins_in_its_denser_half_whichever_way_it_was_walked(level):
    x = np.linspace(0.0, 1.0, 9) ** 2
    points, along = np.column_stack([x, np.zeros(9)]), np.tile([1.0, 0.0], (9, 1))
    net = RidgeNodes(points, along, level + x, np.ones(9), np.ones(9, dtype=bool))
    up = list(range(9))
    assert _orient_path(net, up, False) == _orient_path(net, up[::-1], False) == up[::-1]
