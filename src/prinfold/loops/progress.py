"""Progress on standard error, where ``verbose`` asks for it: a bar, or a line for each iteration."""

from __future__ import annotations

import shutil
import sys
from typing import Any, Protocol, TextIO

from prinfold.loops.fixed_point import Iteration
from prinfold.loops.stopping_rules import StopReason

_BAR_WIDTH = 28


class Progress(Protocol):
    """A listener that also says why the loop ended."""

    def __call__(self, iteration: Iteration[Any], /) -> bool: ...

    def close(self, message: str) -> None: ...


def progress_for(verbose: int, label: str, stream: TextIO | None = None) -> list[Progress]:
    """Listeners for a verbosity: 0 none, 1 a bar (on a terminal), 2 a line for each iteration."""
    if not verbose:
        return []
    stream = stream or sys.stderr
    if stream is None:  # a program without a console
        return []
    if verbose == 1:
        return [ProgressBar(label, stream)] if stream.isatty() else []
    return [LineLog(label, stream)]


_FINISHED_REASONS = {
    str(reason) for reason in StopReason if reason.name in ("CONVERGED", "REFINED", "GROWN", "CAPPED", "WALKED")
}
"""Reasons for stopping after which the bar is drawn full."""


class ProgressBar:
    """One line, redrawn in place."""

    def __init__(self, label: str, stream: TextIO) -> None:
        self.label, self.stream = label, stream
        self.last: Iteration[Any] | None = None

    def __call__(self, iteration: Iteration[Any]) -> bool:
        self.last = iteration
        self._draw(iteration.index / max(iteration.max_iter, 1), f"{iteration.index}/{iteration.max_iter}")
        return False

    def close(self, message: str) -> None:
        """Leave the line behind with the reason for stopping; a loop that settled is done, however early."""
        if self.last is not None and message in _FINISHED_REASONS:
            self._draw(1.0, f"{self.last.index} iterations")
        self.stream.write(f"\n{self.label} {message}\n")
        self.stream.flush()

    def _draw(self, done: float, count: str) -> None:
        bar = ("█" * round(_BAR_WIDTH * done)).ljust(_BAR_WIDTH, "░")
        objective = self.last.measures["objective"] if self.last else float("nan")
        # A line as wide as the terminal would wrap, and each redrawing would then leave one behind.
        room = max(shutil.get_terminal_size().columns - 1, 1)
        self.stream.write(f"\r{f'{self.label} {bar} {count}  objective {objective:.5g}'[:room]}\x1b[K")
        self.stream.flush()


class LineLog:
    """One line per iteration."""

    def __init__(self, label: str, stream: TextIO) -> None:
        self.label, self.stream = label, stream

    def __call__(self, iteration: Iteration[Any]) -> bool:
        shown = "  ".join(f"{name} {value:.6g}" for name, value in iteration.measures.items())
        self.stream.write(f"{self.label} {iteration.index}/{iteration.max_iter}  {shown}\n")
        return False

    def close(self, message: str) -> None:
        """Write the reason for stopping."""
        self.stream.write(f"{self.label} {message}\n")
