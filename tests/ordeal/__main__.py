"""The ordeal at length: ``python -m tests.ordeal --minutes 10``, or ``make ordeal MINUTES=10``."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from functools import partial
from itertools import count
from pathlib import Path

from prinfold.methods import METHODS
from tests.ordeal.corpus import Entry, entries, known_faults
from tests.ordeal.hunt import DRAWS, STRATEGIES, Hunt, methods_of, single_changes
from tests.ordeal.tally import add_line, package_digest, sum_lines
from tests.ordeal.worker import Worker

SHARES = {
    "table": 25,
    "settings": 8,
    "verb": 30,
    "function": 10,
    "file": 250,
    "checkpoint": 10,
    "page": 1,
    "full disk": 1,
    "kill": 1,
}
"""Cases of each kind that a method has in a round."""

NOUNS = {
    "table": "tables × estimators",
    "verb": "calls of verbs",
    "function": "calls of functions",
    "file": "files",
    "checkpoint": "checkpoints",
    "page": "pages",
    "full disk": "full disks",
    "kill": "kills",
}

GOOD = {"fine", "refused"}
"""Ends that are as they should be."""


def main() -> None:
    """Draw cases until the time is over, print how they ended, and keep what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.ordeal", description=main.__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long to draw cases (default 10)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="another seed draws other cases")
    parser.add_argument("--kinds", nargs="+", choices=list(STRATEGIES), default=list(STRATEGIES), help="kinds of cases")
    parser.add_argument("--tally", type=Path, help="a file to which the counts of each round are added, run after run")
    words = "cases that are enough, such as table=10000 file=100000; the run ends when there are as many of every kind"
    parser.add_argument("--enough", nargs="+", type=_count, default=[], metavar="KIND=N", help=words)
    words = "try every setting of every method and every argument of every function by itself, with every value"
    parser.add_argument("--one-by-one", action="store_true", help=words)
    parser.add_argument("--settle", action="store_true", help="only try what is known, and unmark what is mended")
    arguments = parser.parse_args()
    worker, new = Worker(), 0
    try:
        if arguments.settle:
            settle(worker)
        else:
            hunt = Hunt(worker, known_faults(), time.monotonic() + 60 * arguments.minutes)
            enough = dict.fromkeys(arguments.kinds, float("inf")) | dict(arguments.enough)
            print(f"{len(METHODS)} methods, seed {arguments.seed}, package {package_digest()}", flush=True)
            if arguments.one_by_one:
                run_one_by_one(hunt)
            else:
                run(hunt, enough, arguments.seed, arguments.tally)
            new = len(set(hunt.met) - set(hunt.known))
    finally:
        worker.close()
    sys.exit(1 if new else 0)


def _count(text: str) -> tuple[str, float]:
    kind, _, n = text.partition("=")
    if kind not in STRATEGIES:
        raise argparse.ArgumentTypeError(f"there are no cases of the kind {kind!r}, but of {', '.join(STRATEGIES)}")
    return kind, float(n)


def run(hunt: Hunt, enough: dict[str, float], seed: int, tally: Path | None) -> None:
    """Rounds over kinds and methods, until time is over or there are cases enough; findings go into the corpus."""
    for i in count():
        before, wanted = hunt.ends.copy(), [kind for kind, n in enough.items() if hunt.tried[kind] < n]
        for kind in wanted:
            _one_round(hunt, kind, f"{seed} {i}")
        if tally:
            add_line(tally, f"{seed} {i}", hunt.ends - before)
        if not wanted or time.monotonic() > hunt.deadline:
            break
    show(hunt.ends)
    show_faults(hunt)
    if tally:
        ends, n_rounds = sum_lines(tally)
        print(f"All {n_rounds} rounds of {tally} that tried the package as it is now:")
        show(ends)


def run_one_by_one(hunt: Hunt) -> None:
    """Change settings and arguments one at a time; findings go into the corpus."""
    for cases in single_changes():
        if time.monotonic() > hunt.deadline:
            print("The time was over before all were tried.")
            break
        _keep(hunt.try_cases(cases))
    show(hunt.ends)
    show_faults(hunt)


def _one_round(hunt: Hunt, kind: str, seed: str) -> None:
    search = partial(hunt.sweep if kind in DRAWS else hunt.search, kind)
    for method in methods_of(kind):
        if time.monotonic() > hunt.deadline:
            return
        _keep(search(method, seed, SHARES[kind]))


def _keep(found: list[Entry]) -> None:
    for each in found:
        each.written()
        print(f"found: {each.outcome.verdict} in {each.name}: {each.outcome.detail}", flush=True)


def show(ends: Counter[tuple[str, str]]) -> None:
    """Print how many cases of each kind ended how."""
    verdicts = sorted({verdict for _, verdict in ends}, key=lambda verdict: (verdict not in GOOD, verdict))
    print(" | ".join(["", f"{'':20}", f"{'tried':>7}", *(f"{verdict:>14}" for verdict in verdicts), ""]).strip())
    for kind in dict.fromkeys(kind for kind, _ in ends):
        tried = sum(n for (each, verdict), n in ends.items() if each == kind and verdict != "void")
        cells = [f"{tried:7}", *(f"{ends[kind, verdict]:14}" for verdict in verdicts)]
        print(" | ".join(["", f"{NOUNS.get(kind, kind):20}", *cells, ""]).strip())


def show_faults(hunt: Hunt) -> None:
    """Print which faults were met, and which of them are known."""
    print(f"{hunt.worker.spent:.0f} s of processor time")
    new = set(hunt.met) - set(hunt.known)
    print(f"{len(new)} new faults, written to the corpus; {len(set(hunt.met) & set(hunt.known))} known ones met again:")
    for fault, n in hunt.met.most_common():
        print(f"{n:7} {' | '.join(filter(None, fault))} | {hunt.known.get(fault, 'new')}")


def settle(worker: Worker) -> None:
    """Take the mark off every known finding that is mended."""
    for each in entries():
        if each.known and not worker(each.case).is_finding:
            each._replace(known=None).written()
            print(f"mended: {each.name} ({each.known})", flush=True)


if __name__ == "__main__":
    main()
