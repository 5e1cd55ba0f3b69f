"""What is said where there is no tree."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from prinfold import PrincipalTree, datasets
from prinfold.exceptions import DegenerateWarning, StructureWarning
from prinfold.trees.diagnosis import neighborhood_ratios
from prinfold.trees.noise import keep_all


@pytest.mark.parametrize("columns", [3, 10, 30])
def test_a_blob_is_said_to_be_one(columns: int) -> None:
    X = np.random.default_rng(0).normal(size=(600, columns))
    with pytest.warns(StructureWarning, match="No tree stands out from the noise"):
        PrincipalTree().fit(X)


@pytest.mark.parametrize("columns", [3, 10])
def test_a_sheet_is_said_to_be_one(columns: int) -> None:
    rng = np.random.default_rng(0)
    flat = np.hstack([rng.uniform(-1, 1, (1000, 2)), np.zeros((1000, columns - 2))])
    with pytest.warns(StructureWarning, match="look like a surface rather than a tree"):
        PrincipalTree().fit(flat + 0.1 * rng.normal(size=flat.shape))


@pytest.mark.parametrize("columns", [3, 10, 50])
@pytest.mark.parametrize("long", [1.0, 4.0])
def test_a_sheet_with_little_noise_is_said_to_be_one(columns: int, long: float) -> None:
    """No two strands of the dense tree over it are near in units of its noise: the neighbours of rows tell."""
    rng = np.random.default_rng(1)
    u, v = rng.uniform(0, long, 500), rng.uniform(0, 1, 500)
    bent = np.stack([np.sin(u), 1 - np.cos(u), v], axis=1)
    frame = np.linalg.qr(rng.normal(size=(columns, 3)))[0]
    with pytest.warns(StructureWarning, match="look like a surface rather than a tree"):
        PrincipalTree().fit(bent @ frame.T + 0.02 * rng.normal(size=(500, columns)))


def test_neighbors_spread_in_as_many_directions_as_the_rows_fill() -> None:
    rng = np.random.default_rng(0)
    line, plane, space = (
        np.hstack([rng.uniform(-1, 1, (2000, k)), np.zeros((2000, 5 - k))]) + 1e-3 * rng.normal(size=(2000, 5))
        for k in (1, 2, 3)
    )
    ratios = [neighborhood_ratios(keep_all(X, X.mean(axis=0)), np.ones(2000), 5) for X in (line, plane, space)]
    assert ratios[0][0] < 0.05
    assert ratios[1][0] > 0.5
    assert ratios[1][1] < 0.05
    assert min(ratios[2]) > 0.5
    assert neighborhood_ratios(keep_all(plane[:100], np.zeros(5)), np.ones(100), 5) == (0.0, np.inf)  # none are near


@pytest.mark.parametrize("shape", ["y", "four"])
@pytest.mark.parametrize("columns", [3, 10, 50])
def test_nothing_is_said_of_a_tree(shape: str, columns: int) -> None:
    data = datasets.make_tree(600, 0.1, rng=2, topology=shape, n_features=columns)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert PrincipalTree().fit(data.X).doubt_ == ""


@pytest.mark.parametrize("columns", [3, 10, 50])
def test_pieces_are_said_to_be_some(columns: int) -> None:
    data = datasets.make_tree(600, 0.1, rng=1, topology="two", n_features=columns)
    with pytest.warns(StructureWarning, match="rows lie in separate pieces.*topology='forest'"):
        PrincipalTree().fit(data.X)
    assert "pieces" not in PrincipalTree("forest").fit(data.X).doubt_


@pytest.mark.parametrize(("shape", "topology"), [("ring", "ring"), ("lasso", "graph")])
@pytest.mark.parametrize("columns", [3, 10, 50])
def test_a_loop_is_said_to_be_one(shape: str, topology: str, columns: int) -> None:
    data = datasets.make_tree(800, 0.08, rng=2, topology=shape, n_features=columns)
    with pytest.warns(StructureWarning, match=f"closed loop.*topology='{topology}'"):
        PrincipalTree().fit(data.X)
    assert "loop" not in PrincipalTree(topology).fit(data.X).doubt_


def test_equal_rows_are_a_point() -> None:
    with pytest.warns(DegenerateWarning, match="All rows are equal"):
        model = PrincipalTree().fit(np.ones((10, 3)))
    np.testing.assert_allclose(model.project(np.zeros((2, 3))), 1.0)


def test_a_ring_with_little_noise_is_told_though_its_cut_is_many_bandwidths_wide() -> None:
    rng = np.random.default_rng(0)
    angle = rng.uniform(0.0, 2.0 * np.pi, 500)
    ring = np.zeros((500, 10))
    ring[:, 0], ring[:, 1] = np.cos(angle), np.sin(angle)
    with pytest.warns(StructureWarning, match="closed loop"):
        PrincipalTree(min_support=0.0).fit(ring + rng.normal(0.0, 0.05, ring.shape))
