"""The script that measures the layout of the package, on a small made-up package with known numbers."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from tools import house

FILES = {
    "__init__.py": '"""Doors."""\nfrom prinfold.maps.gtm import GTM\n',
    "maps/gtm.py": (
        '"""What a map is."""\nfrom typing import TYPE_CHECKING\nfrom prinfold.maps import noise\n'
        "if TYPE_CHECKING:\n    from prinfold.curves.line import Line\n\n\n"
        "class State:\n    pass\n\n\n"
        "class GTM:\n    def fit(self, noise):\n"
        "        return hasattr(self.noise, 'bound') or getattr(noise, 'words', 0)\n"
    ),
    "maps/noise.py": (
        "from typing import Protocol\n\n\n"
        "class Noise(Protocol):\n    floor: float\n\n"
        '    def draw(self):\n        """Rows."""\n\n    def _own(self): ...\n\n\n'
        'class Bounded(Noise, Protocol):\n    def bound(self):\n        """A bound."""\n\n\n'
        "class Parameters:\n    weights: float\n\n    def cost(self): ...\n\n\n"
        "class Capabilities:\n    words: str\n    bound: Bound | None = None\n"
    ),
    "curves/line.py": (
        "def f(x):\n    from prinfold.shared import g\n\n    return g(x)\n\n\n"
        "class State:\n    def same(self, x):\n        return x\n"
    ),
    "shared.py": "def g(x):\n    return isinstance(x, int) + 1\n",
}


@pytest.fixture
def sources(tmp_path: Path) -> list[house.Source]:
    for name, text in FILES.items():
        path = tmp_path / "src" / "prinfold" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return house.read_sources(tmp_path / "src" / "prinfold")


def found(rows: list[house.Row]) -> dict[str, house.Row]:
    return {row.what: row for row in rows}


def test_imports_are_followed_into_functions_but_not_into_types(sources: list[house.Source]) -> None:
    graph = house.import_graph(sources)
    assert graph["prinfold.curves.line"] == {"prinfold.shared"}
    assert graph["prinfold.maps.gtm"] == {"prinfold.maps.noise"}


def test_own_files_are_those_that_no_other_family_imports(sources: list[house.Source]) -> None:
    homes = {"GTM": "prinfold.maps.gtm", "Line": "prinfold.curves.line"}
    assert house.own_files(sources, homes)[0].detail == ["prinfold.maps.gtm", "prinfold.maps.noise"]


def test_a_walk_is_counted_in_files_hops_and_changes(sources: list[house.Source]) -> None:
    calls = [
        ("maps/gtm.py", 12, "fit"),
        ("curves/line.py", 1, "f"),
        ("maps/gtm.py", 12, "fit"),
        ("curves/line.py", 8, "same"),
    ]
    rows = found(house.walk_rows(sources, calls, calls[:2]))
    assert rows["walk of a row, `GTM(max_iter=1).fit(X)`"].found == "2 files, 2 hops, 3 changes of file in 4 calls"
    assert rows['the same with `init="pca"`'].found == "2 files, 1 hops, 1 changes of file in 2 calls"
    assert rows["functions on the walk that do nothing"].detail == ["curves/line.py: same"]


def test_a_tower_is_counted_without_its_top() -> None:
    classes = {"GTM": ["fit", "_start"], "Family": ["fit", "_start", "_end", "__len__"], "Base": ["__len__"]}
    rows = found(house.tower_rows({name: {"module": "", "classes": classes} for name in ("GTM", "GTMSequence")}))
    assert rows["classes of ours above `GTM`"].found == "2"
    assert rows["methods of the classes above `GTM`"].found.startswith("5 ")
    assert rows["hooks overridden in `GTM` and above"].detail == ["_start"]


def test_verbs_words_and_questions(sources: list[house.Source]) -> None:
    rows = found([*house.seam_rows(sources), *house.word_rows(sources), *house.question_rows(sources)])
    assert sorted(rows["verbs of a noise"].detail) == ["draw", "floor"]
    assert rows["verbs of its parameters, nodes and sums"].detail == {"Nodes": [], "Sums": [], "Parameters": ["cost"]}
    assert rows["declared capabilities of a noise"].detail == ["bound"]
    assert rows["more verbs in protocols that extend it"].detail == ["bound"]
    assert rows["names asked of a noise by `hasattr` or `getattr`"].detail == ["bound", "words"]
    assert rows["class names with several meanings"].detail == {"State": 2}
    assert rows["… of them docstrings, and imports"].found == "4 and 6"
    assert rows["docstrings that open with “What”"].found == "1"
    assert [rows[f"`{name}`"].found for name in ("isinstance", "getattr", "hasattr")] == ["1", "1", "1"]


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("a == 'b'", True),
        ("a in ('b', c)", True),
        ("a == b", False),
        ("a == ''", False),
        ("__name__ == '__main__'", False),
    ],
)
def test_comparisons_with_a_word_are_seen(text: str, held: bool) -> None:
    assert house._compares_words(ast.parse(text, mode="eval").body) is held


def test_older_numbers_stand_in_a_column_of_their_own() -> None:
    table = house.markdown([house.Row("files", "3", "2"), house.Row("new", "1")], {"files": {"found": "9"}})
    assert "| files | 9 | 3 | 2 |" in table
    assert "| new | – | 1 |" in table
