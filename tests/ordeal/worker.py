"""A process of its own for the cases, with limits of time and memory; another takes its place when it is gone."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import time
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from prinfold.methods import METHODS
from tests.ordeal.trial import Outcome, attempt

SECONDS = 60
"""Processor time that a case may take."""

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
        self._folder = TemporaryDirectory(prefix="ordeal-")
        self._process: Any = None
        self._pipe: Any = None

    def __call__(self, case: dict[str, Any]) -> Outcome:
        """The outcome of a case, whatever becomes of the process."""
        if self._process is None:
            self._start()
        self._pipe.send((case, METHODS[case["method"]].module, self.seconds))
        # A process that sleeps takes no processor time; on a busy machine a case may wait for its turn.
        if not self._pipe.poll(10 * self.seconds):
            return self._buried("hang", "it waits for something")
        try:
            outcome, seconds = self._pipe.recv()
            self.spent += seconds
            return Outcome(*outcome)
        except EOFError:
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
    while True:
        try:
            case, module, seconds = pipe.recv()
        except EOFError:
            return
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        begun = time.process_time()
        resource.setrlimit(resource.RLIMIT_CPU, (int(begun + seconds) + 1, hard))
        outcome = attempt(case, module, place)
        pipe.send((tuple(outcome), time.process_time() - begun))


def _address_space() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return pages * resource.getpagesize()
