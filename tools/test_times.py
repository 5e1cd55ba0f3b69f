"""Processor time of every test, and the list of tests that the quick run leaves to the full one.

As a plugin (``pytest -p tools.test_times``) it writes a line for each test into ``.test-times``; run as a program it
makes ``tests/full_only.txt`` of them: functions that take longer, all their cases together, than ``LIMIT``. One case of
each stays in the quick run where it takes little. Oracles, which say what is right by other means, and tests of
messages are on it only where a case takes more than ``MOST``, and the theorems of ``tests/properties``, which choose
their own cases, never.
"""

from __future__ import annotations

import os
import re
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from numba.core import event

ROOT = Path(__file__).resolve().parents[1]
FOLDER, LIST = ROOT / ".test-times", ROOT / "tests" / "full_only.txt"

LIMIT, SHARE, CHEAP, MOST = 0.2, 0.5, 0.02, 1.0
"""Seconds of processor time, children included, that a function may take; share of it that one case may take; a mean of
all cases below which all of them stay, however many; and one above which none does for the sake of its name."""

KEPT = ("tests/oracles/", "tests/properties/", "tests/test_layers.py", "tests/test_methods.py", "tests/test_seams.py")
ORACLE = re.compile(
    "brute_force|definition|defined_to_be|all_pairs|best_there_is|integrals|expectation|derivative|jacobian"
    "|dense|published|either_way|is_the_batch|kernel_is|kernels_own|like_the_chain"
)
MESSAGE = re.compile("refused|_told|_named|_said|words|advice|one_line")
"""Files whose tests are never left out, and words in the names of tests that never are: those that say what is right by
other means, and those about what a message says."""


class Compilation(event.Listener):
    """Processor time that compilation has taken: it falls to whatever test comes first, and says nothing of that."""

    def __init__(self) -> None:
        self.seconds, self._depth, self._began = 0.0, 0, 0.0

    def on_start(self, _: event.Event) -> None:
        """Functions that a function calls are compiled within its time."""
        if self._depth == 0:
            self._began = time.process_time()
        self._depth += 1

    def on_end(self, _: event.Event) -> None:
        """Add the time of the outermost."""
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.process_time() - self._began


_compilation, _began, _shared = Compilation(), dict[str, float](), [0.0]


def _time() -> float:
    """Processor time of this process and its children, but for compilation here and fixtures that tests share."""
    return sum(os.times()[:4]) - _compilation.seconds - _shared[0]


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
    """A fixture of a module or session falls to the test that comes first; without that, another would make it."""
    began = _time()
    made = yield
    if fixturedef.scope != "function":
        _shared[0] += _time() - began
    return made


def pytest_configure() -> None:
    """Listen to the compiler."""
    event.register("numba:compiler_lock", _compilation)


def pytest_runtest_logstart(nodeid: str) -> None:
    """Note the time when a test begins."""
    _began[nodeid] = _time()


def pytest_runtest_logfinish(nodeid: str) -> None:
    """Write down how long it took; every process of the run has a file of its own."""
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / f"{os.getpid()}.tsv").open("a", encoding="utf-8") as file:
        file.write(f"{_time() - _began.pop(nodeid):.3f}\t{nodeid}\n")


def expensive_functions(lines: list[str], limit: float = LIMIT) -> dict[str, str]:
    """Test functions whose cases take longer than the limit together, each with the case that the quick run keeps.

    That is the one that takes least, if it takes less than a ``SHARE`` of the limit, so that some test still goes
    through the same code; no case otherwise, which is written as an empty string.
    """
    cases: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for line in lines:
        took, _, nodeid = line.partition("\t")
        name, _, case = nodeid.partition("[")
        cases[name][case.removesuffix("]")] += float(took)  # the process that hands out tests has some of it
    found = {}
    for name, each in sorted(cases.items()):
        seconds = sum(each.values())
        mean, told = seconds / len(each), ORACLE.search(name) or MESSAGE.search(name)
        kept = name.startswith(KEPT) or (told and mean < MOST) or mean < CHEAP
        if seconds >= limit and not kept:
            least = min(each, key=lambda case: (each[case], case))
            found[name] = least if each[least] < SHARE * limit else ""
    return found


def main() -> None:
    """Make the list anew from what was measured: a function and the case of it that stays, with a tab between."""
    lines = [line for path in FOLDER.glob("*.tsv") for line in path.read_text(encoding="utf-8").splitlines()]
    found = expensive_functions(lines)
    LIST.write_text("".join(f"{name}\t{case}".rstrip() + "\n" for name, case in found.items()), encoding="utf-8")


if __name__ == "__main__":
    main()
