"""Trees and ridges on the command line: branches and places on them, and words that fit what was fitted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import prinfold
from prinfold import PrincipalTree, ProbabilisticCurve
from prinfold.cli.tables.reading import read_table
from prinfold.reporting.sections import _farthest
from prinfold.validation.named_block import NamedBlock
from tests.cli.conftest import Said, csv_text

Call = Callable[..., Said]
TREE = ("--method", "tree", "--set", "nodes=20", "--set", "min_support=0", "--set", "tol=1e-3")


def three_rays() -> Any:
    """Rows about three straight branches that meet at the origin."""
    rng = np.random.default_rng(0)
    angle = np.repeat(np.radians([90.0, 210.0, 330.0]), 40)
    along = np.tile(np.linspace(0.0, 3.0, 40), 3)[:, None]
    return along * np.stack([np.cos(angle), np.sin(angle)], axis=1) + 0.05 * rng.normal(size=(120, 2))


@pytest.fixture
def rows(folder: Path) -> Any:
    """Rows about a tree of three branches that meet at one fork, as a table."""
    X = np.round(three_rays(), 6)
    (folder / "cells.csv").write_text(csv_text(X, "a,b"))
    return X


@pytest.mark.parametrize("root", [None, 3])
def test_a_tree_writes_branch_position_and_time(root: int | None, rows: Any, call: Call) -> None:
    set_root = [] if root is None else ["--set", f"root={root}"]
    said = call("fit", "cells.csv", *TREE, *set_root, "--json").json
    assert (said["branches"], said["ends"], said["forks"]) == (3, 3, 1)
    found = call("transform", "cells.prinfold", "cells.csv", "--json").json
    model, columns = prinfold.load("cells.prinfold"), read_table(Path("cells-latent.csv")).columns
    names = ["branch", "position", *(["time"] if root is not None else []), "latent_1"]
    assert found["columns"][1:] == names
    named = NamedBlock.of(rows, ("a", "b"))
    place = model.locate(named)
    np.testing.assert_array_equal(columns["branch"], place.branch)
    np.testing.assert_allclose(columns["position"], place.arc_length, atol=1e-6)
    assert any("is no time" in note for note in found["notes"]) == (root is None)
    if root is not None:
        np.testing.assert_allclose(columns["time"], model.pseudotime(named), atol=1e-6)


def test_a_tree_is_called_one(rows: Any, call: Call) -> None:
    """No page or line of a tree calls it a surface, rounding passes for no value, and no clock contradicts another."""
    said = call("fit", "cells.csv", *TREE).out
    assert " to the tree (" in said
    assert "3 branches, 3 ends, 1 fork" in said
    assert "3 branches, 3 ends, 1 fork" in call("info", "cells.prinfold").out
    assert call("report", "cells.prinfold", "cells.csv", "-q").code == 0
    page = Path("cells-report.html").read_text(encoding="utf-8")
    body = page[page.index('<section id="map">') : page.index('<section id="settings">')]
    assert "The tree has 3 branches, 3 ends, 1 fork." in body
    assert "a straight line explains" in page
    assert "The tree in data space" in body
    assert "less than tol" not in body
    assert " seconds. " not in body
    assert "surface" not in body


def test_a_curve_has_no_branches(rows: Any, call: Call) -> None:
    ProbabilisticCurve(max_iter=2, tol=0).fit(rows[:80]).save("bent.prinfold")
    found = call("transform", "bent.prinfold", "cells.csv", "--json").json
    assert found["columns"] == ["row", "latent_1", "log_likelihood"]
    assert "branch" not in call("info", "bent.prinfold").out


def test_what_is_0_but_for_rounding_is_written_as_0() -> None:
    """Beside a column of ones 4.7e-16 is rounding; beside one of its own size it is a number."""
    rows, there = np.array([[1.0, 3e-16], [-1.0, -3e-16]]), np.array([[4.7e-16, 2e-16], [0.5, 2e-16]])
    found: Any = SimpleNamespace(rows_and_surface=(rows, there, ["a", "b"]), fitted=SimpleNamespace(word="tree"))
    assert _farthest(found, np.array([2.0, 1.0]), 0) == "a: 1, tree 0<br>b: 3e-16, tree 2e-16"


def test_branches_in_words() -> None:
    graph = PrincipalTree(nodes=20, min_support=0, tol=1e-3).fit(three_rays()).graph_
    assert graph.network.words == "3 branches, 3 ends, 1 fork"
