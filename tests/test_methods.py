"""The register of methods: complete, in step with the package and the documentation, and enough to add a method."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import prinfold
from prinfold import GTM, cite, compare, explore, files, load, save
from prinfold.base.principal_manifold import PrincipalManifold
from prinfold.cli.methods import methods as typed_names
from prinfold.explorer.decoders import SURFACES
from prinfold.methods import METHODS, Method, manifolds, method_of
from tests.house import ROOT, public_objects
from tests.properties.cases import CASES

NAMES = sorted(METHODS)


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_every_public_estimator_is_registered() -> None:
    found = {each.__name__ for _, each in public_objects() if inspect.isclass(each) and issubclass(each, BaseEstimator)}
    assert found == set(METHODS)


@pytest.mark.parametrize("name", NAMES)
def test_an_entry_says_what_its_class_is(name: str) -> None:
    method = METHODS[name]
    assert getattr(prinfold, name) is method.cls
    assert method.cls.__module__ == method.module
    assert issubclass(method.cls, PrincipalManifold) == method.is_manifold
    assert not method.is_manifold or method.surface in SURFACES
    for settings in method.compared_settings:
        method.cls().set_params(**settings)


def test_type_checkers_see_every_method_where_the_register_has_it() -> None:
    tree = ast.parse(text("src/prinfold/__init__.py"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    shown = {alias.name: node.module for node in imports for alias in node.names}
    assert {name: shown.get(name) for name in METHODS} == {name: each.module for name, each in METHODS.items()}


def test_short_names_are_nobody_elses() -> None:
    short = [each.short for each in METHODS.values() if each.short]
    assert len({*short, *(name.lower() for name in METHODS)}) == len(short) + len(METHODS)


def test_every_manifold_has_a_case_for_the_theorems() -> None:
    assert {each.name for each in manifolds()} <= {type(case.make()).__name__ for case in CASES}


@pytest.mark.parametrize("name", NAMES)
def test_a_method_is_whole(name: str) -> None:
    method = METHODS[name]
    folder, _, leaf = method.module.removeprefix("prinfold.").replace(".", "/").rpartition("/")
    parts = {
        "tests": f"tests/{folder}/test_{leaf}.py",
        "guide": f"docs/guide/{method.page}.md",
        "example": f"examples/*/plot_{method.noun}.py",
        "benchmark": f"benchmarks/**/{method.page}.py",
        "benchmark in a folder": f"benchmarks/{method.page}/__main__.py",
    }
    found = {what for what, place in parts.items() if any(ROOT.glob(place))}
    assert found >= {"tests", "guide", "example"}, f"{name} is not complete; CONTRIBUTING.md says what a method needs"
    assert found & {"benchmark", "benchmark in a folder"}, f"{name} has no benchmark: {parts['benchmark']}"
    for page in ("CHANGELOG.md", "docs/guide/which.md"):
        assert f"`{name}`" in text(page), f"{page} does not mention `{name}`"


def test_the_readme_lists_methods_and_nothing_else() -> None:
    table = re.search(r"^## Which method when\n(.*?)^\[", text("README.md"), re.MULTILINE | re.DOTALL)
    assert table is not None
    listed = {
        name for row in re.findall(r"^\| (`.*?) \|", table[1], re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    assert listed <= set(METHODS)
    assert {each.name for each in manifolds()} <= listed


# What adding a method takes: a class, and one entry.


class Ribbon(GTM):
    """A toy method: a GTM along a line, under another name."""

    def __init__(self, nodes: Any = 20, *, max_iter: int = 30, random_state: Any = 0) -> None:
        super().__init__(1, nodes=nodes, max_iter=max_iter, random_state=random_state)


@pytest.fixture
def ribbon(monkeypatch: pytest.MonkeyPatch) -> Method:
    method = Method("Ribbon", __name__, noun="ribbon", cites=("svensen1998",), surface="basis", short="rib")
    monkeypatch.setitem(METHODS, "Ribbon", method)
    monkeypatch.setitem(files._classes, "Ribbon", Ribbon)  # as @storable does, for the time of a test
    return method


@pytest.fixture(scope="module")
def rows() -> Any:
    t = np.random.default_rng(0).uniform(-1, 1, 80)
    return np.stack([t, t**2, 0.1 * np.random.default_rng(1).normal(size=80)], axis=1)


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
def test_a_new_method_is_known_everywhere_from_its_entry_alone(ribbon: Method, rows: Any, tmp_path: Path) -> None:
    assert ribbon.cls is Ribbon
    assert method_of(Ribbon) is ribbon
    assert sys.modules["prinfold"].__getattr__("Ribbon") is Ribbon
    vars(prinfold).pop("Ribbon")
    model = Ribbon().fit(rows)
    assert [each.key for each in cite(model).references] == ["prinfold", "svensen1998"]
    assert typed_names()["ribbon"] is Ribbon
    save(model, tmp_path / "ribbon.prinfold")
    np.testing.assert_array_equal(load(tmp_path / "ribbon.prinfold").transform(rows), model.transform(rows))
    explore(model, rows, tmp_path / "map.html")
    assert "radial" in (tmp_path / "map.html").read_text(encoding="utf-8")
    assert "Ribbon" in str(compare(rows, methods=["Ribbon", "PCA"], n_components=1, folds=2))
