"""What the tests of the house share: where it stands, what is public, how the text's code is run."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import prinfold
from prinfold.methods import METHODS, manifolds

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(prinfold.__file__).parent


@cache
def syntax_trees(package: Path) -> dict[str, ast.Module]:
    """Syntax trees of all files of a package by their path within it; parsed once, since that takes seconds."""
    paths = sorted(package.rglob("*.py"))
    return {path.relative_to(package).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def public_objects() -> Iterator[tuple[str, Any]]:
    """Every public class and function, by its full name: what the package and its public modules export."""
    for name in prinfold.__all__:
        thing = getattr(prinfold, name)
        if inspect.ismodule(thing):
            inner = {f"prinfold.{name}.{each}": getattr(thing, each) for each in getattr(thing, "__all__", ())}
        else:
            inner = {f"prinfold.{name}": thing}
        yield from ((full, each) for full, each in inner.items() if inspect.isclass(each) or inspect.isroutine(each))


def public_estimators() -> dict[str, type]:
    """Every public estimator, by class name."""
    return {name: method.cls for name, method in METHODS.items()}


def public_manifolds() -> dict[str, type]:
    """The estimators among them that fit one surface and owe the whole contract; the others are made of these."""
    return {each.name: each.cls for each in manifolds()}


def public_functions() -> dict[str, Callable[..., Any]]:
    """Every public function, by full name."""
    return {name: thing for name, thing in public_objects() if inspect.isroutine(thing)}


def code_fences(page: Path) -> list[tuple[int, str]]:
    """The Python blocks of a Markdown page, each with the line on which its code starts."""
    text = page.read_text(encoding="utf-8")
    fence = re.compile(r"^```(?:python|pycon|py)\s*\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
    return [(text.count("\n", 0, match.start(1)) + 1, match.group(1)) for match in fence.finditer(text)]


def run_fences(page: Path) -> dict[str, Any]:
    """Run a page's Python blocks in order, in one namespace; blocks with prompts are held to what they show."""
    namespace: dict[str, Any] = {"__name__": "__page__"}
    for line, code in code_fences(page):
        if ">>>" in code:
            test = doctest.DocTestParser().get_doctest(code, namespace, page.name, str(page), line - 1)
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
            report: list[str] = []
            runner.run(test, out=report.append, clear_globs=False)
            assert not report, "".join(report)
            namespace.update(test.globs)
        else:
            # Blank lines in front make tracebacks point at the line of the page.
            exec(compile("\n" * (line - 1) + code, str(page), "exec"), namespace)
    return namespace
