"""Counts of several runs that add up: one line of JSON for each round, with a digest of the package that was tried."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from functools import cache
from pathlib import Path

import prinfold

Ends = Counter[tuple[str, str]]
"""How many cases of a kind ended how."""


@cache
def package_digest() -> str:
    """A name for the code of the package as it is: a tally of other code says nothing about it."""
    root = Path(prinfold.__file__).parent
    found = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        found.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:12]


def add_line(path: Path, round_name: str, ends: Ends) -> None:
    """Add the counts of a round to a file."""
    counts = [[*key, n] for key, n in sorted(ends.items())]
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps({"package": package_digest(), "round": round_name, "ends": counts}) + "\n")


def sum_lines(path: Path) -> tuple[Ends, int]:
    """Counts of all rounds of a file that tried the package as it is now, and how many; a round counts once."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    rounds = {line["round"]: line["ends"] for line in lines if line["package"] == package_digest()}
    ends: Ends = Counter()
    for each in rounds.values():
        ends.update({(kind, verdict): n for kind, verdict, n in each})
    return ends, len(rounds)
