"""Progress on standard error, where ``verbose`` asks for it: a bar, or a line for each iteration."""

from __future__ import annotations

import shutil
import sys
from time import monotonic
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


_SILENT_SECONDS, _REDRAW_SECONDS = 2.0, 0.1
"""Work that takes no longer shows nothing; a bar is drawn anew so often."""


class Meter:
    """How much of some work is done, on one line of a terminal; nothing elsewhere, nor for work of two seconds."""

    def __init__(self, label: str, total: float, stream: TextIO | None = None) -> None:
        self.label, self.total, self.stream = label, max(total, 1.0), stream or sys.stderr
        self._began = self._drawn = monotonic()
        self._shown = False

    def __enter__(self) -> Meter:
        return self

    def tell(self, done: float) -> None:
        """Say how much is done."""
        now = monotonic()
        soon = now - self._began < _SILENT_SECONDS or now - self._drawn < _REDRAW_SECONDS
        if soon or self.stream is None or not self.stream.isatty():
            return
        share = min(done / self.total, 1.0)
        left = (now - self._began) * (1.0 - share) / share if share > 0 else float("nan")
        draw_bar(self.stream, self.label, share, f"{100 * share:.0f} %  about {left:.0f} s left")
        self._drawn, self._shown = now, True

    def __exit__(self, *error: object) -> None:
        if self._shown:
            self.stream.write("\r\x1b[K")
            self.stream.flush()


def draw_bar(stream: TextIO, label: str, share: float, words: str) -> None:
    """Draw a bar in place of the line before."""
    bar = ("█" * round(_BAR_WIDTH * share)).ljust(_BAR_WIDTH, "░")
    # A line as wide as the terminal would wrap, and each redrawing would then leave one behind.
    room = max(shutil.get_terminal_size().columns - 1, 1)
    stream.write(f"\r{f'{label} {bar} {words}'[:room]}\x1b[K")
    stream.flush()


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
        objective = self.last.measures["objective"] if self.last else float("nan")
        draw_bar(self.stream, self.label, done, f"{count}  objective {objective:.5g}")


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
