"""A progress line on standard error that stays quiet when nobody asked for it."""

from __future__ import annotations

import sys
from typing import Any, Protocol, TextIO

from prinfold.loops.fixed_point import Iteration

_WIDTH = 28


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


class ProgressBar:
    """One line, redrawn in place."""

    def __init__(self, label: str, stream: TextIO) -> None:
        self.label, self.stream = label, stream

    def __call__(self, iteration: Iteration[Any]) -> bool:
        done = iteration.index / max(iteration.max_iter, 1)
        bar = ("█" * round(_WIDTH * done)).ljust(_WIDTH, "░")
        objective = iteration.measures["objective"]
        self.stream.write(
            f"\r{self.label} {bar} {iteration.index}/{iteration.max_iter}  objective {objective:.5g}\x1b[K"
        )
        self.stream.flush()
        return False

    def close(self, message: str) -> None:
        """Leave the line behind with the reason for stopping."""
        self.stream.write(f"\n{self.label} {message}\n")
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
