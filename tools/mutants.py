"""Sixty seeded mistakes, and how many of them the quick tests notice.

    python tools/mutants.py [m01 m02 …] [--marker "not slow and not full"] [--limit 300]

Each mutant of ``tools/mutants.json`` changes one line of one function: a sign, an operator, a term that is dropped,
an axis, an index, a bound. They were drawn at random, some from each family of methods, before the tests of the quick
run were chosen. A mutant is put into a copy of the package; its tests run until one fails.

killed    a test fails, and passes without the mutant
survived  all tests pass
timeout   the tests take longer than the limit, in seconds of processor time
broken    the test that fails does so without the mutant too
lost      the line is not found: write its new place into ``tools/mutants.json``

Results are printed and stored in ``.mutants/results.json``. The exit status is 1 where fewer than 95 % are killed.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / ".mutants"
# Read when the libraries are imported, which is below.
os.environ |= {"SCIPY_ARRAY_API": "1", "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
os.environ["NUMBA_CACHE_DIR"] = str(WORK / "numba")
WANTED = 0.95


def main() -> None:
    """Run the mutants that are named, or all, and count them by what became of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="numbers of mutants, as in m01; all of them if none is given")
    parser.add_argument("--marker", default="not slow and not full", help="which tests run, as for pytest -m")
    parser.add_argument("--limit", type=int, default=300, help="seconds of processor time for the tests of one mutant")
    options = parser.parse_args()
    mutants = json.loads((ROOT / "tools" / "mutants.json").read_text(encoding="utf-8"))
    _import_libraries()
    chosen = [each for each in mutants if each["id"] in options.names or not options.names]
    results = {}
    for mutant in chosen:
        results[mutant["id"]] = found = try_mutant(mutant, options.marker, options.limit)
        print(mutant["id"], found["verdict"], f"{found['seconds']:.0f} s", found["words"], flush=True)
        (WORK / "results.json").write_text(json.dumps(results, indent=1), encoding="utf-8")
    counts = Counter(each["verdict"] for each in results.values())
    print(", ".join(f"{number} {verdict}" for verdict, number in counts.most_common()))
    sys.exit(counts["killed"] < WANTED * len(chosen))


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
    """The file with the mutant's line changed; None where that line does not stand in its function just once."""
    lines, name = text.splitlines(keepends=True), mutant["symbol"].split(".")[-1]
    spans = [
        range(node.lineno - 1, node.end_lineno or node.lineno)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.name == name
    ]
    places = [n for span in spans for n in span if lines[n].strip() == mutant["before"]]
    if len(places) != 1:
        return None
    lines[places[0]] = lines[places[0]].replace(mutant["before"], mutant["after"])
    return "".join(lines)


def run_tests(tests: list[str], marker: str, limit: int) -> tuple[str, str]:
    """Whether tests of the package in ``WORK`` notice something, and the first that does."""
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
    for name in ("hypothesis", "matplotlib.pyplot", "numba", "pandas", "polars", "pytest", "scipy.stats", "sklearn"):
        importlib.import_module(name)


if __name__ == "__main__":
    main()
