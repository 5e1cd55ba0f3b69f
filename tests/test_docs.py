"""What the documentation says is what the code does."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import os
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from matplotlib import pyplot as plt
from numpydoc.docscrape import ClassDoc, FunctionDoc, NumpyDocString

import prinfold
from tests.house import (
    ROOT,
    code_fences,
    public_estimators,
    public_functions,
    public_manifolds,
    public_objects,
    run_fences,
)

DEFAULT = re.compile(r"\bdefault(?:\s*[=:]\s*|\s+)(.+)$")
PUBLIC_MODULES = [name for name in prinfold.__all__ if inspect.ismodule(getattr(prinfold, name))]
INDICES = [ROOT / "docs" / kind / "index.md" for kind in ("tutorials", "how_to", "explanation")]
PAGES = sorted(
    page
    for folder in ("guide", "tutorials", "explanation", "how_to")
    for page in (ROOT / "docs" / folder).glob("*.md")
    if page not in INDICES
)


def parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    kinds = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    found = inspect.signature(function).parameters
    return {name: p for name, p in found.items() if name not in {"self", "cls"} and p.kind not in kinds}


def documented(doc: NumpyDocString) -> dict[str, str]:
    """Parameter name to the text behind its colon; `a, b : int` documents both."""
    return {
        name.strip().lstrip("*"): entry.type
        for entry in (*doc["Parameters"], *doc["Other Parameters"])
        for name in entry.name.split(",")
    }


def same(written: str, default: object) -> bool:
    written = written.strip().strip("`").removesuffix(".").strip()
    try:
        value = ast.literal_eval(written)
    except (ValueError, SyntaxError):
        return written in {str(default), repr(default), getattr(default, "__name__", ""), getattr(default, "name", "")}
    return value == default and type(value) is type(default)


def disagreements(function: Callable[..., Any], doc: NumpyDocString, *, partial: bool = False) -> list[str]:
    """Where docstring and signature differ; ``partial`` forgives a docstring with no parameter section at all."""
    taken, said = parameters(function), documented(doc)
    if partial and not said:
        return []
    wrong = [f"{name} is not documented" for name in taken if name not in said]
    known = inspect.signature(function).parameters  # with *args and **kwargs, which may be documented
    wrong += [f"{name} is documented but not a parameter" for name in said if name not in known]
    both = [name for name in taken if name in said]
    if both != [name for name in said if name in taken]:
        wrong.append("parameters are documented in another order than they are taken")
    for name in both:
        default, match = taken[name].default, DEFAULT.search(said[name])
        if default is inspect.Parameter.empty:
            if match or "optional" in said[name]:
                wrong.append(f"{name} has no default, but its docstring speaks of one")
        elif match is None:
            if default is not None or not re.search(r"\b(optional|None|[Ii]gnored)\b", said[name]):
                wrong.append(f"{name} has the default {default!r}, but its docstring does not say so")
        elif not same(match.group(1), default):
            wrong.append(f"{name} has the default {default!r}, but its docstring says {match.group(1)}")
    return wrong


def test_public_modules_say_what_they_export() -> None:
    modules = [name for name in prinfold.__all__ if inspect.ismodule(getattr(prinfold, name)) and name != "exceptions"]
    assert [name for name in modules if not hasattr(getattr(prinfold, name), "__all__")] == []


@pytest.mark.parametrize("name", sorted(public_estimators()))
def test_estimator_parameters_are_documented_as_they_are(name: str) -> None:
    estimator = public_estimators()[name]
    assert disagreements(estimator.__init__, ClassDoc(estimator)) == []


@pytest.mark.parametrize("name", sorted(public_estimators()))
def test_fitted_attributes_are_documented(name: str) -> None:
    said = {entry.name for entry in ClassDoc(public_estimators()[name])["Attributes"]}
    trained = {"n_iter_", "converged_", "stop_reason_", "history_"} if name in public_manifolds() else set()
    assert trained | set(public_estimators()[name]._stored) | {"n_features_in_"} <= said


@pytest.mark.parametrize("name", sorted(public_estimators()))
def test_verbs_are_documented(name: str) -> None:
    wrong = []
    for verb, method in inspect.getmembers(public_estimators()[name], inspect.isfunction):
        if verb.startswith("_") or not method.__module__.startswith("prinfold"):
            continue
        if not inspect.getdoc(method):
            wrong.append(f"{verb} has no docstring")
        else:
            wrong += [f"{verb}: {each}" for each in disagreements(method, FunctionDoc(method), partial=True)]
    assert wrong == []


@pytest.mark.parametrize("name", sorted(public_functions()))
def test_function_parameters_are_documented_as_they_are(name: str) -> None:
    function = public_functions()[name]
    assert inspect.getdoc(function), "no docstring"
    assert disagreements(function, FunctionDoc(function)) == []


@pytest.mark.full
@pytest.mark.parametrize("page", [page for page in PAGES if code_fences(page)], ids=lambda page: page.stem)
def test_the_guide_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    with mpl.rc_context({"figure.max_open_warning": 0}):  # a page may show as many pictures as it likes
        run_fences(page)
    plt.close("all")


@pytest.mark.parametrize("module", ["prinfold", *(f"prinfold.{name}" for name in PUBLIC_MODULES)])
def test_the_reference_names_what_is_public(module: str) -> None:
    sections = dict(re.findall(r"(?ms)^## (\S+)$(.*?)(?=^## |\Z)", (ROOT / "docs/api/index.md").read_text("utf-8")))
    public = {name.rpartition(".")[2] for name, _ in public_objects() if name.rpartition(".")[0] == module}
    if module == "prinfold.exceptions":
        things = vars(prinfold.exceptions).items()
        public = {name for name, thing in things if inspect.isclass(thing) and thing.__module__ == module}
    assert set(re.findall(r"`(\w+)`", sections[module])) == public


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*/index.md")), ids=lambda page: page.parent.name)
def test_the_indices_can_be_followed_without_building_them(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:\s]+)\)", page.read_text(encoding="utf-8"))
    assert len(links) >= 5
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_is_in_one_of_the_indices(page: Path) -> None:
    """So that each is two clicks from the README, and has one place in the navigation."""
    entries = {each: each.read_text(encoding="utf-8") for each in INDICES}
    path = {each: os.path.relpath(page, each.parent).replace(os.sep, "/") for each in INDICES}
    listed = [each for each in INDICES if f"]({path[each]})" in entries[each]]
    in_navigation = [each for each in INDICES if f"\n{path[each].removesuffix('.md')}\n" in entries[each]]
    assert len(listed) == 1
    assert in_navigation == listed


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_links_to_headings_lead_to_one(page: Path) -> None:
    """As the documentation names them: in small letters, without punctuation, with hyphens for blanks."""
    words = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\(((?!https?:)[^()#\s]*)#([^()\s]+)\)", words)
    lost = [f"{where}#{name}" for where, name in links if name not in _headings(page.parent / where if where else page)]
    assert lost == []


def _headings(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_readme_leads_to_every_index() -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert {f"docs/{each.parent.name}/index.md" for each in INDICES} <= set(links)
    assert len(links) <= 15, "the rest belongs to the documentation"


# The tester, tested.


def sample(X: list[float], width: float = 2.0, *, kind: str = "plane", seed: int | None = None) -> None:
    """Draw.

    Parameters
    ----------
    X : list of float
        Rows.
    width : float, default=2.0
        Width.
    kind : {"plane", "circle"}, default="plane"
        Kind.
    seed : int, optional
        Seed.
    """


def test_agreement_is_seen() -> None:
    assert disagreements(sample, FunctionDoc(sample)) == []


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ("default=2.0", "default=3.0", "has the default 2.0, but its docstring says 3.0"),
        ("default=2.0", "default: 1e-3", "has the default 2.0, but its docstring says 1e-3"),
        ("default=2.0", "optional", "has the default 2.0, but its docstring does not say so"),
        ('default="plane"', 'default="circle"', "kind has the default 'plane'"),
        ("X : list of float", "X : list of float, default=0", "X has no default"),
        ("seed : int", "sead : int", "seed is not documented"),
        ("seed : int", "sead : int", "sead is documented but not a parameter"),
    ],
)
def test_disagreement_is_seen(old: str, new: str, match: str) -> None:
    doc = inspect.getdoc(sample)
    assert doc is not None
    assert old in doc
    wrong = "\n".join(disagreements(sample, NumpyDocString(doc.replace(old, new))))
    assert re.search(match, wrong)


def test_broken_code_in_a_page_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Text.\n\n```python\na = 1\n```\n\n```pycon\n>>> a + 1\n2\n```\n\n```python\nassert a == 2\n```\n")
    assert len(code_fences(page)) == 3
    with pytest.raises(AssertionError):
        run_fences(page)
    page.write_text("```python\na = 1\n```\n\n```pycon\n>>> a + 1\n3\n```\n")
    with pytest.raises(AssertionError, match="Expected"):
        run_fences(page)


def test_examples_import_what_the_documentation_is_built_with() -> None:
    """`make docs` installs prinfold, its pictures and the group `docs`, and runs every example with that."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed = [*project["project"]["dependencies"], *project["project"]["optional-dependencies"]["plot"]]
    listed += project["dependency-groups"]["docs"]
    there = {re.match(r"[\w.-]+", each).group().lower() for each in listed if isinstance(each, str)}  # type: ignore[union-attr]
    modules = set()
    for path in (ROOT / "examples").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules |= {each.name.partition(".")[0] for each in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                modules.add(node.module.partition(".")[0])
    assert "pandas" in modules
    names = {"sklearn": "scikit-learn"}
    missing = {each for each in modules - sys.stdlib_module_names - {"prinfold"} if names.get(each, each) not in there}
    assert missing == set()


def test_the_gallery_has_a_place_for_every_example() -> None:
    spec = importlib.util.spec_from_file_location("gallery", ROOT / "docs" / "gallery.py")
    assert spec is not None
    assert spec.loader is not None
    gallery = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gallery)
    assert sorted(gallery.ORDER) == sorted(each.stem for each in (ROOT / "examples").glob("*/plot_*.py"))
