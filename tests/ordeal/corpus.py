"""Findings that are kept: each a file of JSON with the case, what went wrong, and why it may for now."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

from tests.ordeal.model_files import MEMBERS
from tests.ordeal.trial import Outcome

FOLDER = Path(__file__).parent / "corpus"


class Entry(NamedTuple):
    """A finding: ``known`` is the reason why it may still go wrong; without one it is mended and stays so."""

    path: Path
    case: dict[str, Any]
    outcome: Outcome
    known: str | None

    @property
    def name(self) -> str:
        """Name of its file."""
        return self.path.stem

    def written(self) -> Entry:
        """The finding itself, once it is in its file."""
        content = {"case": self.case, **self.outcome._asdict(), "known": self.known}
        self.path.write_text(json.dumps(content, indent=1, ensure_ascii=True) + "\n", encoding="utf-8")
        return self


def entries() -> list[Entry]:
    """Every finding, mended or known."""
    return [_read(path) for path in sorted(FOLDER.glob("*.json"))]


def _read(path: Path) -> Entry:
    found = json.loads(path.read_text(encoding="utf-8"))
    return Entry(path, found["case"], Outcome(found["verdict"], found["detail"], found["place"]), found["known"])


def entry_of(case: dict[str, Any], outcome: Outcome) -> Entry:
    """A new finding."""
    tag = hashlib.sha256(json.dumps(case, sort_keys=True).encode()).hexdigest()[:8]
    return Entry(FOLDER / f"{case['kind'].replace(' ', '_')}_{case['method']}_{tag}.json", case, outcome, None)


def fault(case: dict[str, Any], outcome: Outcome) -> tuple[str, ...]:
    """What two findings of the same fault share: the verdict and the place, or the method where no place is known.

    A model of wrong parts goes wrong wherever these are used first, which says little; the fault is to load it.
    """
    if case["kind"] in {"file", "checkpoint"} and case["edits"][0][0] in MEMBERS:
        return (f"consistent but wrong {case['kind']}", case["method"])
    error = outcome.detail.partition(":")[0] if outcome.verdict == "raw error" else ""
    return (outcome.verdict, error, outcome.place or f"{case['kind']} {case['method']}")


def known_faults() -> dict[tuple[str, ...], str]:
    """Faults that are in the corpus with a reason; drawn cases may meet them again."""
    return {fault(each.case, each.outcome): each.known for each in entries() if each.known}
