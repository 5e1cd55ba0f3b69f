"""Sixty seeded mistakes, and how many of them the quick tests notice.

    python tools/mutants.py [m01 m02 …] [--marker "not slow and not full"] [--limit 300]

Each mutant of ``tools/mutants.json`` changes one line of one function: a sign, an operator, a term that is dropped,
an axis, an index, a bound. A mutant is put into a copy of the package; its tests run until one fails.

killed      a test fails, and passes without the mutant
survived    all tests pass
timeout     the tests take longer than the limit, in seconds of processor time
broken      the test that fails does so without the mutant too
lost        the line is not found: write its new place into ``tools/mutants.json``
equivalent  nothing but rounding can differ, by the reason written there: it is run only where it is named

The list was drawn at random at commit 2b03a51, some from each family of methods, before the tests of the quick run were
chosen. It is no blind sample any more: some tests were written after mutants had survived. What the former tests
killed is known of m01 to m08 only, which was all of them; so the share is one of all mutants that are not equivalent,
and not of those that were killed before. A line is found again if up to two names in it change; where more changed, its
new place was written down by hand. ``verdict`` and ``words`` of a mutant are what was last seen, and by which test.
That is 59 killed and one that is equivalent; m09 and m24 survived until they got tests of their own, and m60 got one
before it was run. Of a fresh draw of twenty other lines the first eight were run: seven were killed, and one survived
that only changes how faces are grouped by size, which is a matter of speed.

Results are printed and stored in ``.mutants/results.json``. The exit status is 1 where fewer than 95 % are killed
of those that are not equivalent.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import re
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / ".mutants"
# Read when the libraries are imported.
SETTINGS = {"SCIPY_ARRAY_API": "1", "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
WANTED = 0.95
NAME = re.compile(r"\b([^\W\d]\w*)")


def main() -> None:
    """Run the mutants that are named, or all, and count them by what became of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="numbers of mutants, as in m01; all of them if none is given")
    parser.add_argument("--marker", default="not slow and not full", help="which tests run, as for pytest -m")
    parser.add_argument("--limit", type=int, default=300, help="seconds of processor time for the tests of one mutant")
    options = parser.parse_args()
    mutants = json.loads((ROOT / "tools" / "mutants.json").read_text(encoding="utf-8"))
    _import_libraries()
    wanted = options.names or [each["id"] for each in mutants if each["verdict"] != "equivalent"]
    chosen = [each for each in mutants if each["id"] in wanted]
    results = {}
    for mutant in chosen:
        results[mutant["id"]] = found = try_mutant(mutant, options.marker, options.limit)
        print(mutant["id"], found["verdict"], f"{found['seconds']:.0f} s", found["words"], flush=True)
        (WORK / "results.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    counts = Counter(each["verdict"] for each in results.values())
    print(", ".join(f"{number} {verdict}" for verdict, number in counts.most_common()))
    n_different = sum(each["verdict"] != "equivalent" for each in chosen)
    sys.exit(counts["killed"] < WANTED * n_different)


def try_mutant(mutant: dict[str, Any], marker: str, limit: int) -> dict[str, Any]:
    """Verdict on one mutant, the seconds it took and the words of the first test that failed."""
    begun = time.perf_counter()
    package = WORK / "src"
    # Copied with its times, by which numba knows what it has compiled already.
    shutil.copytree(ROOT / "src", package, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    path = package / Path(mutant["file"]).relative_to("src")
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    changed = with_mutant(text, mutant)
    if changed is None:
        return {"verdict": "lost", "seconds": 0.0, "words": mutant["file"]}
    path.write_text(changed, encoding="utf-8")
    try:
        verdict, failed = run_tests(mutant["tests"], marker, limit)
    finally:
        shutil.copy2(ROOT / mutant["file"], path)
    if verdict == "killed" and run_tests([failed], marker, limit)[0] == "killed":
        verdict = "broken"
    return {"verdict": verdict, "seconds": time.perf_counter() - begun, "words": failed}


def with_mutant(text: str, mutant: dict[str, Any]) -> str | None:
    """The file with the mutant's line changed; None where no line, or more than one, could be meant.

    Of all lines that are the mutant's but for names, the one with the fewest other names is meant; of equal ones, that
    in the function of the mutant. Names that are new in the line are new in the mutant too.
    """
    lines, name = text.splitlines(keepends=True), mutant["symbol"].split(".")[-1]
    home = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.name == name
        for line in range(node.lineno - 1, node.end_lineno or node.lineno)
    }
    renames = {n: renamed(mutant["before"], line.strip()) for n, line in enumerate(lines)}
    distance = {n: (len(found), n not in home) for n, found in renames.items() if found is not None}
    places = [n for n in distance if distance[n] == min(distance.values())]
    if len(places) != 1:
        return None
    place, names = places[0], renames[places[0]] or {}
    after = NAME.sub(lambda name: names.get(name[0], name[0]), mutant["after"])
    lines[place] = lines[place].replace(lines[place].strip(), after)
    return "".join(lines)


def renamed(before: str, now: str) -> dict[str, str] | None:
    """New names by old ones; None where more than names differ, more than two of them, or more than half."""
    old, new = NAME.split(before), NAME.split(now)  # names are at odd places, what is between them at even ones
    if old[::2] != new[::2]:
        return None
    pairs = set(zip(old[1::2], new[1::2], strict=True))
    changed = {each: name for each, name in pairs if each != name}
    one_to_one = len(pairs) == len(set(old[1::2])) == len(set(new[1::2]))
    return changed if one_to_one and len(changed) <= min(2, len(pairs) // 2) else None


def run_tests(tests: list[str], marker: str, limit: int) -> tuple[str, str]:
    """Whether tests of the package in ``WORK`` notice something, and the first that does."""
    import resource  # which Windows has not, where the lines of mutants can be looked up all the same

    notes = WORK / "failed.txt"
    notes.unlink(missing_ok=True)
    child = os.fork()  # with the libraries that are imported already, which take longer than most tests
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        with (WORK / "log.txt").open("w", encoding="utf-8") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            os._exit(_pytest(tests, marker, notes))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code in {-signal.SIGXCPU, -signal.SIGKILL}:
        return "timeout", ""
    if code in {1, 2}:  # a test failed, or a file could not be imported
        return "killed", notes.read_text(encoding="utf-8")
    return ("survived", "") if code == 0 else ("broken", f"pytest ended with status {code}")


def _pytest(tests: list[str], marker: str, notes: Path) -> int:
    """Exit status of the tests on the package in ``WORK``; the first that fails is noted."""
    import pytest

    class Noted:
        """Writes down the first test that fails."""

        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.failed and not notes.exists():
                notes.write_text(report.nodeid, encoding="utf-8")

        pytest_collectreport = pytest_runtest_logreport

    sys.path.insert(0, str(WORK / "src"))
    os.chdir(ROOT)
    # Of plugins that are imported already pytest would say that it can no longer rewrite them.
    settings = ["-x", "-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning", "-m", marker]
    return int(pytest.main([*settings, *tests], plugins=[Noted()]))


def _import_libraries() -> None:
    """Import what nearly every test needs, before any process is started for a mutant."""
    os.environ |= SETTINGS | {"NUMBA_CACHE_DIR": str(WORK / "numba")}
    for name in ("hypothesis", "matplotlib.pyplot", "numba", "pandas", "polars", "pytest", "scipy.stats", "sklearn"):
        importlib.import_module(name)


if __name__ == "__main__":
    main()
