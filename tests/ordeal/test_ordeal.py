"""A few hundred cases of the ordeal, the same in every run, and all that it has ever found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from prinfold import GTM
from prinfold.methods import METHODS, Method
from tests.ordeal.corpus import entries, known_faults
from tests.ordeal.hunt import Hunt, methods_of
from tests.ordeal.trial import PROBES, Outcome
from tests.ordeal.worker import Worker

# (cases for each method, methods); `make ordeal` has them all.
QUICK = {"table": (4, 99), "settings": (6, 99), "file": (8, 99), "page": (2, 2), "full disk": (3, 3), "kill": (3, 3)}


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


@pytest.mark.parametrize("what", PROBES)
def test_the_worker_survives_and_names_every_fault(what: str) -> None:
    worker = Worker(seconds=1)
    try:
        assert worker({"kind": "probe", "method": "GTM", "what": what}).verdict == what
        assert worker({"kind": "probe", "method": "GTM", "what": "fine"}) == Outcome("fine")
    finally:
        worker.close()


class Sash(GTM):
    """A toy method with a fault: rows of constant columns have no coordinates."""

    def __init__(self, nodes: Any = 9, *, max_iter: int = 5, random_state: Any = 0) -> None:
        super().__init__(1, nodes=nodes, max_iter=max_iter, random_state=random_state)

    def transform(self, X: Any) -> Any:
        Z = super().transform(X)
        return np.where(np.ptp(np.asarray(X, dtype=float), axis=0).min() == 0, np.nan, Z)


def test_a_new_method_is_tried_from_its_entry_alone(monkeypatch: pytest.MonkeyPatch, worker: Worker) -> None:
    entry = Method("Sash", __name__, noun="sash", cites=(), surface="basis")
    monkeypatch.setitem(METHODS, "Sash", entry)
    assert entry in methods_of("table")
    assert entry in methods_of("kill")
    hunt = Hunt(worker, known_faults())
    found = [each.outcome for each in hunt.search("table", entry, "quick", 60)]
    assert Outcome("silent NaN", "transform returns NaN or infinity", "Sash.transform") in found
    assert hunt.search("file", entry, "quick", 5) == []
    assert hunt.tried["file"] == 5
