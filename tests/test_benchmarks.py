"""Benchmarks are listed, and what they take from the package and from each other is there; none is run here."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

FOLDER = ROOT / "benchmarks"
FILES = sorted(path.relative_to(ROOT).as_posix() for path in FOLDER.rglob("*.py"))


def names_of(path: str) -> set[str]:
    """Names that a file of benchmarks defines or imports at its top."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    found: set[str] = set()
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.ClassDef():
                found.add(node.name)
            case ast.Import() | ast.ImportFrom():
                found |= {each.asname or each.name for each in node.names}
            case ast.Assign() | ast.AnnAssign():
                found |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return found


def imports_of(path: str) -> Iterator[tuple[str, str]]:
    """Module and name of everything that a file imports from the package or from another benchmark."""
    for node in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("prinfold", "benchmarks"):
            yield from ((node.module or "", each.name) for each in node.names)


def is_there(module: str, name: str) -> bool:
    place = module.replace(".", "/")
    if module.startswith("benchmarks"):
        return (ROOT / place / f"{name}.py").exists() or name in names_of(f"{place}.py")
    owner = importlib.import_module(module)
    return hasattr(owner, name) or importlib.util.find_spec(f"{module}.{name}") is not None


@pytest.mark.parametrize("path", FILES)
def test_what_a_benchmark_imports_is_there(path: str) -> None:
    assert [each for each in imports_of(path) if not is_there(*each)] == []


def test_every_command_of_the_list_is_there_and_every_benchmark_is_listed() -> None:
    listed = set(re.findall(r"`python -m (benchmarks[.\w]+)`", (FOLDER / "README.md").read_text(encoding="utf-8")))
    run = {
        path.removesuffix(".py").removesuffix("/__main__").replace("/", ".")
        for path in FILES
        if 'if __name__ == "__main__":' in (ROOT / path).read_text(encoding="utf-8")
    }
    assert listed == run
