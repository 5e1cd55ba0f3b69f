"""Places to start projections from, held against a look at every vertex."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.spatial import Delaunay

from prinfold.geometry import point_groups as groups
from prinfold.geometry.projection_starts import Basins, graph_starts


def sheet(n, D, seed=0):
    """Vertices and triangles of a crumpled sheet."""
    rng = np.random.default_rng(seed)
    flat = rng.uniform(-1, 1, (n, 2))
    waves = np.sin(3.0 * flat @ rng.normal(size=(2, D)))
    return flat, waves + 0.05 * rng.normal(size=(n, D)), Delaunay(flat).simplices


def rivals_reference(X, points, faces, distance, wanted):
    """By the definition, a row and a vertex at a time."""
    beside = [set(faces[(faces == v).any(axis=1)].ravel()) for v in range(len(points))]
    found = []
    for i, (x, most) in enumerate(zip(X, distance, strict=True)):
        apart = np.linalg.norm(x - points, axis=1)
        longest = [
            max(np.linalg.norm(points[list(near)] - p, axis=1), default=0)
            for near, p in zip(beside, points, strict=True)
        ]
        low = [
            v
            for v in range(len(points))
            if apart[v] < most + 1.2 * longest[v] and all(apart[w] >= apart[v] for w in beside[v])
        ]
        found += [(i, rank, v) for rank, v in enumerate(sorted(low, key=lambda v: apart[v])[:wanted])]
    return found


@pytest.mark.parametrize("D", [1, 3, 40])
@pytest.mark.parametrize("away", [0.0, 0.3, 5.0])
@pytest.mark.parametrize("block", [2**21, 100])
def test_rivals_are_all_that_may_lead_nearer(D, away, block, monkeypatch):
    monkeypatch.setattr(groups, "_BLOCK_NUMBERS", block)
    _, points, faces = sheet(150, D)
    rng = np.random.default_rng(1)
    X = points[rng.integers(150, size=12)] + away * rng.normal(size=(12, D)) + 1e-3
    distance = 0.8 * np.linalg.norm(X[:, None] - points, axis=2).min(axis=1)
    found = Basins(points, faces).rivals(X, distance, 3)
    assert list(zip(*(part.tolist() for part in found), strict=True)) == rivals_reference(X, points, faces, distance, 3)


def test_far_from_the_origin_the_same_are_found():
    _, points, faces = sheet(150, 3)
    X = points[:20] + 0.3
    distance = np.full(20, 0.2)
    plain, moved = (
        Basins(points, faces).rivals(X, distance, 4),
        Basins(points + 2.0**20, faces).rivals(X + 2.0**20, distance, 4),
    )
    for a, b in zip(plain, moved, strict=True):
        assert_array_equal(a, b)


def test_a_graph_starts_at_the_nearest_point_and_repeats_it_where_there_is_no_rival():
    points = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 3.0]])
    edges = np.array([[0, 1], [1, 2], [2, 3]])
    starts = graph_starts(np.array([[1.1, 0.1], [2.9, 3.0]]), points, points, edges, 3)
    assert_array_equal(starts[0], points[[1, 1, 1]])
    assert_array_equal(starts[1], points[[3, 3, 3]])


def test_no_rows_have_no_rivals():
    _, points, faces = sheet(30, 2)
    assert [len(part) for part in Basins(points, faces).rivals(np.empty((0, 2)), np.empty(0), 2)] == [0, 0, 0]
