"""How far more cores carry: what fits and verbs gain from threads, beside what two matrix products gain.

    python -m benchmarks.scale [--rows 100000] [--columns 20] [--threads 2] [--turns 3]

Every job runs on one thread and on several, in turns, in one process. The yardstick is the pair of matrix products that
no EM iteration does without, cut into blocks and shared out among threads as passes are. On a machine that others use
only the ratio of a job's gain to that of the products says something. A first table says which share of each job is
outside of passes over the rows, by processor time on one thread: that part gains nothing from any number of cores, and
the share does not depend on what else the machine does. A second one counts the calls of the interpreter, each of which
other threads may have to wait for: what a job calls for each row is to become less where rows become more.
``--turns 0`` leaves it at these two.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from benchmarks.timing import clocked, print_table, take_turns
from threadpoolctl import threadpool_limits

from prinfold import GTM, SOM, UKR, DensityRidge
from prinfold.gtm import model as gtm
from prinfold.gtm.node_selection import Hint
from prinfold.gtm.sequence import model as sequences
from prinfold.rows import rows
from prinfold.rows.rows import for_each_block, row_slices

_NODES = 30
"""Nodes of an axis of the map whose passes are timed."""

_PASSES = (rows, gtm, sequences)
"""Modules that begin passes."""


def sheet(n: int, D: int, seed: int = 0) -> np.ndarray:
    """A curved sheet with noise."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(-1, 1, (n, 2))
    A, B = rng.normal(size=(2, 2, D))
    return t @ A + 0.5 * t**2 @ B + 0.1 * rng.normal(size=(n, D))


def blocked_products(X: np.ndarray, n_nodes: int) -> Callable[[], None]:
    """The two products of an EM iteration, block by block on threads."""
    Y, rows = np.ones((n_nodes, X.shape[1])), 512

    def one(part: slice) -> None:
        R = X[part] @ Y.T
        R.T @ X[part]

    return lambda: for_each_block(one, row_slices(len(X), rows))


def jobs_of(X: np.ndarray) -> dict[str, Callable[[], object]]:
    """What is timed, by name."""
    fixed = {"nodes": _NODES, "basis": 10, "init": "pca", "tol": 0.0}
    fitted = GTM(max_iter=12, **fixed).fit(X)
    model, table, parameters = fitted._model, fitted._rows(X), fitted._parameters()
    planned = gtm.e_step(model, table, parameters, Hint(None, 4))[1]._replace(age=5)
    small, plane = X[:2000], sheet(5000, 2)
    return {
        "GTM, default fit": lambda: GTM(random_state=0).fit(X),
        "GTM, dense pass": lambda: gtm.summarize(model, table, parameters),
        "GTM, planned pass": lambda: gtm.e_step(model, table, parameters, planned),
        "GTM, groups made": lambda: gtm.e_step(model, table, parameters, Hint(None, 4)),
        "GTM.transform": lambda: fitted.transform(X),
        "GTM.project": lambda: fitted.project(X[: len(X) // 20]),
        "SOM, batch": lambda: SOM(nodes=_NODES, init="pca", max_iter=5, tol=0).fit(X),
        "UKR": lambda: UKR(init="pca", max_iter=20, tol=0, stop="minimum").fit(small),
        "DensityRidge": lambda: DensityRidge(bandwidth=0.3, max_iter=30).fit(plane),
    }


def gains(X: np.ndarray, jobs: dict[str, Callable[[], object]], n_threads: int, turns: int) -> None:
    """Print the seconds of every job on one thread and on several."""
    jobs = {"two products in blocks": blocked_products(X, _NODES**2), **jobs}

    def on(threads: int, work: Callable[[], object]) -> list[float]:
        with threadpool_limits(threads):
            return clocked(work)

    for work in jobs.values():
        work()  # what is compiled or paged in once is not counted
    runs = {(name, n): partial(on, n, work) for name, work in jobs.items() for n in (1, n_threads)}
    took = take_turns({f"{name}|{n}": run for (name, n), run in runs.items()}, turns)
    least = {key: took[f"{key[0]}|{key[1]}"].least for key in runs}
    rows, yardstick = [], None
    for name in jobs:
        gain = least[name, 1] / least[name, n_threads]
        yardstick = yardstick or gain
        rows.append((name, least[name, 1], least[name, n_threads], gain, gain / yardstick))
    heads = ("", "1 thread, s", f"{n_threads} threads, s", "gain", "of the products'")
    print_table(f"{len(X)} x {X.shape[1]}: gain from threads, least of {turns} turns", heads, rows)


class TimeInPasses:
    """Processor time inside of passes that several threads would share, while it is in force."""

    def __init__(self, n_threads: int) -> None:
        self.n_threads, self.seconds = n_threads, 0.0

    def __enter__(self) -> TimeInPasses:
        self.before = [module.work_through for module in _PASSES]
        for module in _PASSES:
            module.work_through = self._work_through
        return self

    def __exit__(self, *_: object) -> None:
        for module, before in zip(_PASSES, self.before, strict=True):
            module.work_through = before

    def _work_through(self, make: Callable[[], Any], parts: Sequence[Any], n_entries: int | None = None) -> Any:
        work = self.before[0]
        if rows._busy.here or rows._threads_for(len(parts), n_entries, self.n_threads) < 2:
            return work(make, parts, n_entries)
        began = time.process_time()
        try:
            return work(make, parts, n_entries)
        finally:
            self.seconds += time.process_time() - began


def serial_shares(jobs: dict[str, Callable[[], object]], n_threads: int) -> None:
    """Print which share of each job's processor time lies outside of passes, and what gain it leaves at most."""
    found = []
    for name, work in jobs.items():
        work()  # compiled code is loaded
        with threadpool_limits(1), TimeInPasses(n_threads) as passes:
            began = time.process_time()
            work()
            total = time.process_time() - began
        serial = 1.0 - passes.seconds / total
        found.append((name, total, serial, *(1 / (serial + (1 - serial) / n) for n in (2, 16))))
    heads = ("", "processor s", "serial share", "gain on 2 at most", "on 16 at most")
    print_table("processor time outside of passes that threads share, on one thread", heads, found)


def calls_of(work: Callable[[], object]) -> int:
    """How many functions the interpreter calls on one thread, its own and compiled ones."""
    found = 0

    def count(frame: Any, event: str, arg: Any) -> None:
        nonlocal found
        found += event in ("call", "c_call")

    with threadpool_limits(1):
        before = sys.getprofile()
        sys.setprofile(count)
        try:
            work()
        finally:
            sys.setprofile(before)
    return found


def interpreter_calls(jobs: dict[str, Callable[[], object]], n_rows: int) -> None:
    """Print how many calls each job takes, and how many for a thousand rows."""
    found = [(name, calls, 1000 * calls / n_rows) for name, work in jobs.items() for calls in [calls_of(work)]]
    print_table("calls of the interpreter, on one thread", ("", "calls", "for 1000 rows"), found)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    X = sheet(options.rows, options.columns)
    jobs = jobs_of(X)
    serial_shares(jobs, options.threads)
    interpreter_calls(jobs, len(X))
    if options.turns:
        gains(X, jobs, options.threads, options.turns)


if __name__ == "__main__":
    main()
