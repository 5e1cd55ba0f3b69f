"""The page of promises: every promise names tests that are there, and is found in two clicks."""

from __future__ import annotations

import ast
import re
import socket
from pathlib import Path

import numpy as np
import pytest

from prinfold import GTM, explore, load
from prinfold.reporting import report

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/promises.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith(("| promise", "| ---"))]

TEST = r"`tests/[\w/]+\.py::test_\w+`"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[2:42])
def test_every_promise_names_tests_that_are_there(row: str) -> None:
    found = re.fullmatch(rf"\| .+ \| ({TEST}(?:, {TEST})*) \|", row)
    assert found, row
    for path, name in re.findall(r"`([^`]+)::(\w+)`", found.group(1)):
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        assert name in {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}, name


def test_all_that_a_user_may_rely_on_is_there() -> None:
    headings = re.findall(r"^## (.+)$", PAGE, re.MULTILINE)
    assert headings == ["Files", "Pages", "Data", "Determinism", "Resources", "Out of scope"]
    assert len(ROWS) >= 20


def test_the_page_is_two_clicks_away() -> None:
    assert "(docs/promises.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "(docs/promises.md)" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert "\nabout\n" in (ROOT / "docs/index.md").read_text(encoding="utf-8")
    assert "\npromises\n" in (ROOT / "docs/about.md").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
def test_no_connection_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        pytest.fail("a connection was opened")

    for verb in ("connect", "connect_ex", "bind"):
        monkeypatch.setattr(socket.socket, verb, refuse)
    X = np.random.default_rng(0).normal(size=(30, 3))
    model = GTM(nodes=4, basis=2, max_iter=2, tol=0).fit(X)
    model.save(tmp_path / "a.prinfold")
    back = load(tmp_path / "a.prinfold")
    back.plot(X)
    explore(back, X, tmp_path / "map.html")
    report(back, X, tmp_path / "report.html")
