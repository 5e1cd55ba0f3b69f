"""A process of its own for the cases, with limits of time and memory; another takes its place when it is gone."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from numba.core import event

from prinfold.methods import METHODS
from tests.ordeal.trial import Outcome, attempt

SECONDS = 60
"""Processor time that a case may take beside compiling, and how long it may wait for something other than that."""

COMPILING = 60
"""Processor time after which a case of compiled kernels, which it may be the first to compile, is ended in any case."""

MEMORY = 2 * 2**30
"""Bytes that cases may take beside what the worker has at its start."""

_PRELOADED = ["tests.ordeal.trial", "prinfold.plot", "numba"]


@cache
def _context() -> Any:
    """Workers are forked from a server that has the package and has never computed: no thread is lost by the fork."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    return context


class Worker:
    """Runs cases one by one in a forked process; ``spent`` is the processor time that they took."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.seconds, self.spent = seconds, 0.0
        self._folder = TemporaryDirectory(prefix="ordeal-", dir=_memory_disk())
        self._process: Any = None
        self._pipe: Any = None

    def __call__(self, case: dict[str, Any]) -> Outcome:
        """The outcome of a case, whatever becomes of the process."""
        return self.try_all([case])[0]

    def try_all(self, cases: list[dict[str, Any]]) -> list[Outcome]:
        """Outcomes of cases that are handed over at once; where one ends the process, another goes on with the next."""
        outcomes: list[Outcome] = []
        while len(outcomes) < len(cases):
            outcomes += self._outcomes_until_end(cases[len(outcomes) :])
        return outcomes

    def _outcomes_until_end(self, cases: list[dict[str, Any]]) -> Iterator[Outcome]:
        """Outcomes of cases in their order, the last of them that of the first case that ends the process."""
        if self._process is None:
            self._start()
        self._pipe.send([(case, METHODS[case["method"]].module, self.seconds) for case in cases])
        for _ in cases:
            # A process that sleeps takes no processor time; on a busy machine a case may wait for its turn.
            ended = self._pipe.poll(10 * self.seconds)
            try:
                outcome, seconds, is_full = self._pipe.recv() if ended else (None, 0.0, False)
            except EOFError:
                outcome = None
            if outcome is None:
                yield self._end(ended)
                return
            self.spent += seconds
            if is_full:
                self._buried("", "")
            yield Outcome(*outcome)
            if is_full:
                return

    def _end(self, ended: bool) -> Outcome:
        """Bury a process that has ended by itself, or that waits for something; what its last case has come to."""
        if not ended:
            return self._buried("hang", "it waits for something")
        self._process.join()
        code = -(self._process.exitcode or 0)
        if code in {signal.SIGXCPU, signal.SIGKILL}:
            return self._buried("hang", f"over {self.seconds:g} s of processor time")
        return self._buried("crash", signal.Signals(code).name if code > 0 else f"exit code {-code}")

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._buried("", "")
        self._folder.cleanup()

    def _start(self) -> None:
        self._pipe, theirs = _context().Pipe()
        self._process = _context().Process(target=_serve, args=(theirs, self._folder.name), daemon=False)
        self._process.start()
        theirs.close()

    def _buried(self, verdict: str, detail: str) -> Outcome:
        self._process.kill()
        self._process.join()
        self._pipe.close()
        self._process = self._pipe = None
        return Outcome(verdict, detail)


def _serve(pipe: Any, folder: str) -> None:
    """Answer cases until nobody asks any more; what is printed goes nowhere."""
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    limit = _address_space() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    place = Path(folder)
    os.chdir(place)  # names that are taken for those of files
    while True:
        try:
            cases = pipe.recv()
        except EOFError:
            return
        for case in cases:
            begun = time.process_time()
            outcome = tuple(_attempt_within_limit(*case, place))
            # What cases leave behind would count against the next; libraries that are refused memory may abort.
            is_full = _address_space() > limit - MEMORY // 2
            pipe.send((outcome, time.process_time() - begun, is_full))
            if is_full:
                return


def _attempt_within_limit(case: dict[str, Any], module: str, seconds: float, folder: Path) -> Outcome:
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    most = seconds + (COMPILING if case.get("compiled", False) else 0)
    resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time() + most) + 1, hard))
    begun, busy, compiling = time.monotonic() - _queued(), time.process_time(), _Compiling()
    with event.install_listener("numba:compile", compiling):
        outcome = attempt(case, module, folder)
    busy = time.process_time() - busy
    idle = time.monotonic() - _queued() - begun - busy
    if outcome.is_finding or max(busy - compiling.seconds, idle) <= seconds:
        return outcome
    return Outcome("hang", "it waits for something" if idle > seconds else f"over {seconds:g} s of processor time")


class _Compiling(event.Listener):
    """Processor time that numba takes to compile; what is compiled for something else belongs to that."""

    def __init__(self) -> None:
        self.seconds, self._depth = 0.0, 0

    def on_start(self, _: Any) -> None:
        self.seconds -= time.process_time() if self._depth == 0 else 0.0
        self._depth += 1

    def on_end(self, _: Any) -> None:
        self._depth -= 1
        self.seconds += time.process_time() if self._depth == 0 else 0.0


def _queued() -> float:
    """Seconds that this process has been ready to run while others did."""
    return float(Path("/proc/self/schedstat").read_text(encoding="ascii").split()[1]) * 1e-9


def _memory_disk() -> str | None:
    """A folder in memory where there is one, for files that are written, read once and forgotten."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _address_space() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return pages * resource.getpagesize()
