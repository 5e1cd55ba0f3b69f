"""Cases drawn for a method, until one goes wrong in a way that is not known yet; that one is shrunk."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random
from typing import Any

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from prinfold.methods import METHODS, Method
from tests.ordeal import model_files, tables
from tests.ordeal.corpus import Entry, entry_of, fault
from tests.ordeal.functions import changed_calls, function_calls, functions
from tests.ordeal.settings import calls, choices, single_choices
from tests.ordeal.trial import SHORT, TEXTS, WRITERS, Outcome, questions_of, variants_of
from tests.ordeal.worker import Worker


def _written(method: Method) -> dict[str, Any]:
    """What a method writes; a checkpoint where it trains step by step."""
    steps = method in methods_of("checkpoint")
    return {"what": st.sampled_from([each for each in WRITERS if steps or each != "checkpoint"])}


def _verbs(method: Method) -> st.SearchStrategy[list[str]]:
    """One or two of the verbs of a method; all of them would take most of the time."""
    return st.lists(st.sampled_from(questions_of(method.cls)), min_size=1, max_size=2, unique=True)


def _variants(method: Method) -> st.SearchStrategy[str]:
    return st.sampled_from(variants_of(method.name))


COMPILED = [False, False, False, False, True]
"""One case in five goes through compiled kernels, whatever its size."""

ITERATIONS = [*39 * [SHORT], None]
"""One table in forty is fitted until training ends by itself."""


STRATEGIES: dict[str, Callable[[Method], dict[str, st.SearchStrategy[Any]]]] = {
    "table": lambda method: {
        "variant": _variants(method),
        "compiled": st.sampled_from(COMPILED),
        "iterations": st.sampled_from(ITERATIONS),
        "table": tables.recipes(),
        "verbs": _verbs(method),
    },
    "settings": lambda method: {"settings": choices(method.cls())},
    "verb": lambda method: {
        "variant": _variants(method),
        "compiled": st.sampled_from(COMPILED),
        "call": calls(method.cls, tables.recipes()),
    },
    "function": lambda method: {"call": function_calls()},
    "file": lambda method: {"variant": _variants(method), "edits": model_files.alterations(), "verbs": _verbs(method)},
    "checkpoint": lambda method: {
        "variant": _variants(method),
        "edits": model_files.alterations(),
        "verbs": _verbs(method),
    },
    "page": lambda method: {
        "what": st.sampled_from(["explore", "report"]),
        "text": st.sampled_from(list(TEXTS)),
        "names": st.sampled_from(list(tables.NAMES)),
    },
    "full disk": lambda method: {**_written(method), "room": st.integers(0, 40_000)},
    "kill": lambda method: {**_written(method), "after_ms": st.integers(0, 40)},
}
"""What a case of each kind is drawn from, beside its method."""


def _drawn_verbs(method: Method, rng: Random) -> list[str]:
    verbs = questions_of(method.cls)
    return rng.sample(verbs, min(len(verbs), rng.randint(1, 2)))


def _draw_file(method: Method, rng: Random) -> dict[str, Any]:
    return {
        "variant": rng.choice(variants_of(method.name)),
        "edits": model_files.draw_alterations(rng),
        "verbs": _drawn_verbs(method, rng),
    }


DRAWS: dict[str, Callable[[Method, Random], dict[str, Any]]] = {
    "table": lambda method, rng: {
        "variant": rng.choice(variants_of(method.name)),
        "compiled": rng.choice(COMPILED),
        "iterations": rng.choice(ITERATIONS),
        "table": tables.draw_recipe(rng),
        "verbs": _drawn_verbs(method, rng),
    },
    "file": _draw_file,
    "checkpoint": _draw_file,
}
"""Kinds of which thousands are tried: drawn without hypothesis, which takes longer over a case than the case itself."""


def _simpler_tables(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from (case | {"variant": ""} for _ in range(bool(case["variant"])))
    yield from (case | {"compiled": False} for _ in range(bool(case["compiled"])))
    yield from (case | {"iterations": SHORT} for _ in range(case["iterations"] is None))
    yield from (case | {"table": table} for table in tables.simpler(case["table"]))


def _simpler_files(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from (case | {"variant": ""} for _ in range(bool(case["variant"])))
    yield from (case | {"edits": [edit]} for edit in case["edits"] if len(case["edits"]) > 1)


SIMPLER: dict[str, Callable[[Any], Iterator[Any]]] = {
    "table": _simpler_tables,
    "file": _simpler_files,
    "checkpoint": _simpler_files,
}
"""Cases one step nearer to a plain one."""

_LONG = {"hang", "out of memory"}
"""Verdicts that take long to reach."""


def methods_of(kind: str) -> list[Method]:
    """Methods of the register for which there are cases of a kind."""
    if kind == "checkpoint":
        return [each for each in METHODS.values() if len(variants_of(each.name)) > 1 and each.is_manifold]
    return [each for each in METHODS.values() if each.is_manifold or kind not in {"page", "full disk", "kill"}]


def single_changes() -> Iterator[list[dict[str, Any]]]:
    """Every setting of every method, and every argument of every function, changed by itself to every value."""
    for method in METHODS.values():
        about = {"kind": "settings", "method": method.name}
        yield [about | {"settings": each} for each in single_choices(method.cls())]
    for name in functions():
        about = {"kind": "function", "method": "GTM"}
        yield [about | {"call": each} for each in changed_calls(name)]


def cases(kind: str, method: Method) -> st.SearchStrategy[dict[str, Any]]:
    """Cases of a kind for a method."""
    return st.fixed_dictionaries({"kind": st.just(kind), "method": st.just(method.name), **STRATEGIES[kind](method)})


class Hunt:
    """Draws cases, counts how they end, and keeps what is found."""

    def __init__(self, worker: Worker, known: dict[tuple[str, ...], str], deadline: float = float("inf")) -> None:
        self.worker, self.known, self.deadline = worker, known, deadline
        self.tried: Counter[str] = Counter()
        self.ends: Counter[tuple[str, str]] = Counter()
        self.met: Counter[tuple[str, ...]] = Counter()
        self.faults: set[tuple[str, ...]] = set(known)

    def search(self, kind: str, method: Method, seed: str, n: int) -> list[Entry]:
        """Try ``n`` cases; new findings come back in their simplest form."""
        left = 2 * n + 60  # tries, of which shrinking has what is left
        simplest: dict[tuple[str, ...], Entry] = {}
        answers: dict[str, bool] = {}

        def is_new(case: dict[str, Any]) -> bool:
            nonlocal left
            left -= 1
            if left < 0 or time.monotonic() > self.deadline:
                return False
            outcome = self.try_case(case)
            if not outcome.is_finding or fault(case, outcome) in self.faults:
                return False
            if outcome.verdict in _LONG:
                left = min(left, 6)  # each try may take as long again
            simplest[fault(case, outcome)] = entry_of(case, outcome)
            return True

        def asked_once(case: dict[str, Any]) -> bool:
            key = json.dumps(case, sort_keys=True)
            if key not in answers:
                answers[key] = is_new(case)
            return answers[key]

        with suppress(NoSuchExample):
            find(cases(kind, method), asked_once, settings=_settings(n), random=Random(f"{kind} {method.name} {seed}"))
        self.faults |= set(simplest)
        return list(simplest.values())

    def sweep(self, kind: str, method: Method, seed: str, n: int) -> list[Entry]:
        """Try ``n`` cases, drawn for a method."""
        rng = Random(f"{kind} {method.name} {seed}")
        return self.try_cases([{"kind": kind, "method": method.name, **DRAWS[kind](method, rng)} for _ in range(n)])

    def try_cases(self, cases: list[dict[str, Any]]) -> list[Entry]:
        """Try cases that are handed over at once; new findings come back in a simple form."""
        found: dict[tuple[str, ...], Entry] = {}
        for case, outcome in zip(cases, self.worker.try_all(cases), strict=True):
            self.count(case, outcome)
            if outcome.is_finding and (mark := fault(case, outcome)) not in self.faults:
                self.faults.add(mark)
                found[mark] = self._simplest(case, outcome)
        return list(found.values())

    def _simplest(self, case: dict[str, Any], outcome: Outcome) -> Entry:
        """The case after as many steps towards a plain one as leave the fault as it is."""
        mark, left = fault(case, outcome), 4 if outcome.verdict in _LONG else 60
        simpler = SIMPLER.get(case["kind"], lambda case: iter(()))
        steps = simpler(case)
        while left > 0 and (shorter := next(steps, None)) is not None:
            left -= 1
            ended = self.worker(shorter)
            if ended.is_finding and fault(shorter, ended) == mark:
                case, outcome, steps = shorter, ended, simpler(shorter)
        return entry_of(case, outcome)

    def try_case(self, case: dict[str, Any]) -> Outcome:
        """Run one case in the worker."""
        outcome = self.worker(case)
        self.count(case, outcome)
        return outcome

    def count(self, case: dict[str, Any], outcome: Outcome) -> None:
        """Count the end of a case."""
        self.tried[case["kind"]] += outcome.verdict != "void"
        self.ends[case["kind"], outcome.verdict] += 1
        if outcome.is_finding:
            self.met[fault(case, outcome)] += 1


def _settings(n: int) -> settings:
    return settings(
        max_examples=n,
        database=None,
        deadline=None,
        derandomize=False,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
