"""A small table as people have it, in a folder of its own, and the command line called within the test."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from prinfold import cli
from prinfold.cli.tables.reading import FileTable
from prinfold.numerics._compiler_process_jit import COMPILER_PROCESS

QUICK = ("--set", "nodes=6", "--set", "max_iter=8", "--set", "tol=0")


class Said(NamedTuple):
    """What a call gave: its exit code, and what it wrote to both streams."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def complaint(self) -> str:
        """The one line of an error."""
        assert self.code in {1, 2}
        (line,) = self.err.splitlines()
        return line


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal on which no sentence is broken."""
    monkeypatch.setenv("COLUMNS", "2000")


@pytest.fixture(autouse=True)
def compiler_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits of large files have another process compile, for as long as this one lives; not for the tests after them."""
    monkeypatch.setattr(COMPILER_PROCESS, "is_on", False)


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    def run(*words: object) -> Said:
        try:
            code = cli.main([str(word) for word in words])
        except SystemExit as stop:
            code = int(stop.code or 0)
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def numbers(n: int = 40, seed: int = 0) -> np.ndarray:
    """Rows along a bent curve, in three columns of similar spread."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(-1, 1, n)
    return np.stack([t, t**2, np.sin(2 * t)], axis=1) + 0.05 * rng.normal(size=(n, 3))


def csv_text(X: np.ndarray, names: str = "a,b,c", separator: str = ",") -> str:
    rows = [separator.join(f"{cell:.6f}" for cell in row) for row in X]
    return "\n".join([names, *rows, ""])


def made(**columns: list) -> FileTable:
    """A table of those columns, as if it had been read from a file of text."""
    found = {
        name: np.array(each, dtype=object if isinstance(each[0], str) else float) for name, each in columns.items()
    }
    return FileTable(Path("t.csv"), found, tuple(found), True, lines=np.arange(2, 2 + len(next(iter(found.values())))))


@pytest.fixture
def table(folder: Path) -> Path:
    """A CSV file with a number of each row, a class, and three columns to fit."""
    X = numbers()
    rows = [
        f"{i},{'left' if row[0] < 0 else 'right'}," + ",".join(f"{cell:.6f}" for cell in row)
        for i, row in enumerate(X, 1)
    ]
    path = folder / "data.csv"
    path.write_text("\n".join(["id,side,a,b,c", *rows, ""]), encoding="utf-8")
    return path


@pytest.fixture
def model(table: Path, call: Callable[..., Said]) -> Path:
    """The model of that table."""
    assert call("fit", "data.csv", *QUICK).code == 0
    return table.with_name("data.prinfold")
