"""A few hundred cases of the ordeal, the same in every run, and all that it has ever found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from prinfold import GTM
from prinfold.methods import METHODS, Method
from tests.ordeal.corpus import entries, known_faults
from tests.ordeal.functions import functions, plain_call
from tests.ordeal.hunt import Hunt, methods_of
from tests.ordeal.tally import add_line, package_digest, sum_lines
from tests.ordeal.trial import PROBES, Outcome
from tests.ordeal.worker import Worker

# (cases for each method, methods); `make ordeal` has them all.
QUICK = {"table": (2, 99), "settings": (3, 99), "verb": (4, 99), "function": (4, 99), "file": (4, 99)}
QUICK |= {"checkpoint": (4, 6), "page": (2, 2), "full disk": (3, 3), "kill": (3, 3)}


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    found = Worker(seconds=20)
    yield found
    found.close()


@pytest.mark.parametrize("kind", QUICK)
def test_hostile_cases_end_well(kind: str, worker: Worker) -> None:
    n_cases, n_methods = QUICK[kind]
    hunt = Hunt(worker, known_faults())
    found = [each for method in methods_of(kind)[:n_methods] for each in hunt.search(kind, method, "quick", n_cases)]
    assert [(each.case, each.outcome) for each in found] == []
    assert hunt.tried[kind] > 0


_LONG = {"hang", "out of memory"}


def _replayed() -> list[Any]:
    marks = {
        each.name: [
            *([pytest.mark.xfail(reason=each.known, strict=True)] if each.known else []),
            *([pytest.mark.full] if each.outcome.verdict in _LONG else []),
        ]
        for each in entries()
    }
    return [pytest.param(each, id=each.name, marks=marks[each.name]) for each in entries()]


@pytest.mark.parametrize("entry", _replayed())
def test_what_was_found_once_is_mended(entry: Any, worker: Worker) -> None:
    outcome = worker(entry.case)
    assert not outcome.is_finding, outcome


@pytest.mark.parametrize("name", functions())
def test_a_plain_call_of_every_function_is_answered(name: str, worker: Worker) -> None:
    # Otherwise changes of its arguments would be refused for what was wrong before.
    assert worker({"kind": "function", "method": "GTM", "call": plain_call(name)}) == Outcome("fine")


@pytest.mark.parametrize("what", PROBES)
def test_the_worker_survives_and_names_every_fault(what: str) -> None:
    worker = Worker(seconds=1)
    try:
        assert worker({"kind": "probe", "method": "GTM", "what": what}).verdict == what.replace("sleep", "hang")
        assert worker({"kind": "probe", "method": "GTM", "what": "fine"}) == Outcome("fine")
    finally:
        worker.close()


class Sash(GTM):
    """A toy method with a fault: rows of constant columns have no coordinates, and nobody says why."""

    def __init__(self, nodes: Any = 9, *, max_iter: int = 5, random_state: Any = 0) -> None:
        super().__init__(1, nodes=nodes, max_iter=max_iter, random_state=random_state)

    def transform(self, X: Any) -> Any:
        return {False: super().transform(X)}[bool(np.ptp(np.asarray(X, dtype=float), axis=0).min() == 0)]


def test_a_new_method_is_tried_from_its_entry_alone(monkeypatch: pytest.MonkeyPatch, worker: Worker) -> None:
    entry = Method("Sash", __name__, noun="sash", cites=(), surface="basis")
    monkeypatch.setitem(METHODS, "Sash", entry)
    assert entry in methods_of("table")
    assert entry in methods_of("kill")
    hunt = Hunt(worker, known_faults())
    found = [each.outcome for each in hunt.search("table", entry, "quick", 60)]
    assert "raw error: KeyError" in {f"{each.verdict}: {each.detail.partition(':')[0]}" for each in found}
    assert hunt.search("file", entry, "quick", 5) == []
    assert hunt.tried["file"] == 5
    assert hunt.sweep("file", entry, "quick", 5) == []
    assert hunt.tried["file"] == 10


def test_cases_that_are_tried_at_once_end_as_they_do_one_by_one(worker: Worker) -> None:
    cases = [{"kind": "probe", "method": "GTM", "what": what} for what in ("fine", "raw error", "crash", "fine")]
    assert [each.verdict for each in worker.try_all(cases)] == ["fine", "raw error", "crash", "fine"]


def test_a_tally_sums_the_rounds_of_this_package_and_each_once(tmp_path: Path) -> None:
    tally = tmp_path / "tally.jsonl"
    for name, n in [("7 0", 5), ("7 1", 3), ("7 1", 3)]:
        add_line(tally, name, Counter({("file", "refused"): n, ("table", "fine"): 1}))
    other = tally.read_text(encoding="utf-8").replace(package_digest(), "0" * 12).replace("7 ", "8 ")
    tally.write_text(tally.read_text(encoding="utf-8") + other, encoding="utf-8")
    assert sum_lines(tally) == (Counter({("file", "refused"): 8, ("table", "fine"): 2}), 2)
