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
from tests.conftest import FULL_ONLY

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


def functions(path: Path) -> dict[str, ast.FunctionDef]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}


def needs_a_browser(path: str, name: str) -> bool:
    """Whether a test asks for the browser, itself or by a fixture of its file or of the folders above."""
    file = ROOT / path
    beside = (folder / "conftest.py" for folder in file.parents if folder.is_relative_to(ROOT / "tests"))
    known = functions(file) | {k: v for each in beside if each.exists() for k, v in functions(each).items()}
    asked, seen = [name], set[str]()
    while asked:
        one = asked.pop()
        if one not in seen and one in known:
            asked += [each.arg for each in known[one].args.args]
        seen.add(one)
    return "browser" in seen


def runs_quickly(path: str, name: str) -> bool:
    """Whether ``make test`` tries a test, in one case or more."""
    marks = (ast.unparse(each) for each in functions(ROOT / path)[name].decorator_list)
    left_out = FULL_ONLY.get(f"{path}::{name}") == "" or any(each.startswith("pytest.mark.full") for each in marks)
    return not left_out and not needs_a_browser(path, name)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[2:42])
def test_a_promise_without_a_quick_test_says_so(row: str) -> None:
    quick = [runs_quickly(path, name) for path, name in re.findall(r"`(tests/[^`]+)::(\w+)`", row)]
    assert any(quick) or "(*full*)" in row


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
