"""Processor time of every test, and the list of tests that the quick run leaves to the full one.

As a plugin (``pytest -p tools.test_times``) it writes a line for each test into ``.test-times``; run as a program it
makes ``tests/full_only.txt`` of them: functions that take longer, all their cases together, than ``LIMIT``. Oracles,
which say what is right, and the theorems of ``tests/properties``, which choose their own cases, are never on it.
"""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER, LIST = ROOT / ".test-times", ROOT / "tests" / "full_only.txt"

LIMIT = 0.6
"""Seconds of processor time, children included."""

KEPT = ("tests/oracles/", "tests/properties/", "tests/test_layers.py", "tests/test_methods.py")
"""Tests that are never left out."""


def pytest_runtest_logstart(nodeid: str) -> None:
    """Note the time when a test begins."""
    _began[nodeid] = sum(os.times()[:4])


def pytest_runtest_logfinish(nodeid: str) -> None:
    """Write down how long it took; every process of the run has a file of its own."""
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / f"{os.getpid()}.tsv").open("a", encoding="utf-8") as file:
        file.write(f"{sum(os.times()[:4]) - _began.pop(nodeid):.3f}\t{nodeid}\n")


_began: dict[str, float] = {}


def expensive_functions(lines: list[str], limit: float = LIMIT) -> list[str]:
    """Test functions whose cases take longer than the limit together, sorted."""
    total: dict[str, float] = defaultdict(float)
    for line in lines:
        seconds, _, nodeid = line.partition("\t")
        total[nodeid.partition("[")[0]] += float(seconds)
    return sorted(name for name, each in total.items() if each >= limit and not name.startswith(KEPT))


def main() -> None:
    """Make the list anew from what was measured."""
    lines = [line for path in FOLDER.glob("*.tsv") for line in path.read_text(encoding="utf-8").splitlines()]
    LIST.write_text("".join(f"{name}\n" for name in expensive_functions(lines)), encoding="utf-8")


if __name__ == "__main__":
    main()
