"""Progress of work that takes longer than a moment: bars, lines, and what is being done."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from threading import Event, Thread, current_thread, main_thread
from time import monotonic
from typing import Any, ClassVar, ParamSpec, Protocol, TextIO, TypeVar

from prinfold.exceptions import quantity
from prinfold.loops.bars import Bar, bar_for, is_watched, write_line, write_over
from prinfold.loops.fixed_point import Iteration
from prinfold.rows.pass_progress import report_passes_to
from prinfold.validation.failures import show_verbs

_SILENT_SECONDS, _REDRAW_SECONDS = 2.0, 0.1
"""Work that takes no longer shows nothing; a bar is drawn anew so often."""


P = ParamSpec("P")
R = TypeVar("R")


class _Screen:
    """The one place that progress is drawn on: when that last was, what is being worked on, and whether to be quiet."""

    drawn = float("-inf")
    working: ClassVar[list[Working]] = []
    muted = False


def _visible(stream: TextIO | None) -> bool:
    return not _Screen.muted and is_watched(stream)


@contextmanager
def hide_progress(quiet: bool = True) -> Iterator[None]:
    """Show no progress meanwhile, if ``quiet``."""
    before, _Screen.muted = _Screen.muted, _Screen.muted or quiet
    try:
        yield
    finally:
        _Screen.muted = before


class Progress(Protocol):
    """A listener that also says why the loop ended."""

    def __call__(self, iteration: Iteration[Any], /) -> bool: ...

    def close(self, message: str) -> None: ...


def progress_for(verbose: int, label: str, stream: TextIO | None = None) -> list[Progress]:
    """Listeners for a verbosity: 0 none, 1 a bar (on a terminal or in a notebook), 2 a line for each iteration."""
    stream = stream or sys.stderr
    if not verbose or stream is None:  # None is a program without a console
        return []
    if verbose == 1:
        return [ProgressBar(label, stream)] if is_watched(stream) else []
    return [LineLog(label, stream)]


class ProgressBar:
    """A bar over the iterations of a training, which leaves behind a line that says how it ended.

    Where a source is read the bar is that of the passes through it.
    """

    def __init__(self, label: str, stream: TextIO) -> None:
        self.label, self.stream = label, stream
        self._bar: Bar | None = None
        self._iterations = 0
        self._passes = PassBar.shown

    def __call__(self, iteration: Iteration[Any]) -> bool:
        self._iterations = iteration.index
        words = f"{iteration.index}/{iteration.max_iter}  objective {iteration.measures['objective']:.5g}"
        if self._passes is not None:
            self._passes.note(iteration.index, iteration.max_iter, words)
            return False
        now = monotonic()
        if self._bar is None:
            self._bar = _bar_in_place(self.label, self.stream)
        elif now - _Screen.drawn < _REDRAW_SECONDS:
            return False
        if self._bar is not None:
            self._bar.show(iteration.index / max(iteration.max_iter, 1), words)
            _Screen.drawn = now
        return False

    def close(self, message: str) -> None:
        """Take the bar away, and say after how many iterations training ended and why."""
        bar = self._bar if self._passes is None else self._passes
        if bar is not None:
            bar.close()
        write_line(self.stream, f"{self.label}: {quantity(self._iterations, 'iteration')}. {message}")


class PassBar:
    """A bar over passes through a source, each of which may take minutes: how far this one is, and how long it takes.

    ``note`` says what iteration the passes belong to, of how many at most; before that they are a first look.
    """

    shown: ClassVar[PassBar | None] = None

    def __init__(self, label: str, stream: TextIO) -> None:
        self.label, self.stream = label, stream
        self._bar: Bar | None = None
        self._began = self._pass_began = monotonic()
        self._done, self._most, self._words = -1, 0, "a first look"

    def __enter__(self) -> PassBar:
        self._outer, PassBar.shown = PassBar.shown, self
        return self

    def __exit__(self, *error: object) -> None:
        PassBar.shown = self._outer
        self.close()

    def note(self, index: int, most: int, words: str) -> None:
        """Say how many iterations are done."""
        self._done, self._most, self._words = index, most, words

    def hear(self, n_read: int, total: int | None) -> None:
        """Draw how far a pass has come."""
        now = monotonic()
        if n_read == 0:
            self._pass_began = now
        if now - self._began < _SILENT_SECONDS or now - _Screen.drawn < _REDRAW_SECONDS or n_read == 0:
            return
        if self._bar is None and _visible(self.stream):
            self._bar = _bar_in_place(self.label, self.stream)
        if self._bar is not None:
            share = 0.0 if not total else min(n_read / total, 1.0)
            self._bar.show(self._share(share), f"{self._time(share, n_read, now - self._pass_began)}  {self._words}")
            _Screen.drawn = now

    def _share(self, of_pass: float) -> float:
        """The share of all iterations that are done; of the pass before them and after them."""
        if 0 <= self._done < self._most:
            return (self._done + of_pass) / self._most
        return of_pass

    def _time(self, share: float, n_read: int, seconds: float) -> str:
        """Time of this pass, and at most of all that may follow: it comes first, since a terminal may cut lines."""
        if share <= 0.0:
            return f"{n_read} rows read"
        left = seconds * (1.0 - share) / share
        words = f"pass {100 * share:.0f} %, {_in_words(left)} left"
        more = self._most - self._done - 1 if self._done >= 0 else 0
        return f"{words}, at most {_in_words(left + more * seconds / share)} in all" if more > 0 else words

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _in_words(seconds: float) -> str:
    """A time to wait, in the unit that suits it."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


@contextmanager
def passes_shown(verbose: int, label: str) -> Iterator[None]:
    """Show a bar over passes through sources, where a bar is asked for and somebody looks on."""
    if verbose != 1 or not is_watched(sys.stderr):
        yield
        return
    with PassBar(label, sys.stderr) as bar, report_passes_to(bar.hear):
        yield


class LineLog:
    """One line per iteration."""

    def __init__(self, label: str, stream: TextIO) -> None:
        self.label, self.stream = label, stream

    def __call__(self, iteration: Iteration[Any]) -> bool:
        shown = "  ".join(f"{name} {value:.6g}" for name, value in iteration.measures.items())
        self.stream.write(f"{self.label} {iteration.index}/{iteration.max_iter}  {shown}\n")
        _Screen.drawn = monotonic()
        return False

    def close(self, message: str) -> None:
        """Write the reason for stopping."""
        self.stream.write(f"{self.label} {message}\n")


class Meter:
    """A bar over work whose amount is known; nothing for the first two seconds, nor where nobody looks on.

    Until the first part is done, and where one takes long, a line says what is being done and for how long.
    """

    def __init__(self, label: str, total: float, stream: TextIO | None = None) -> None:
        self.label, self.total, self.stream = label, max(total, 1.0), stream or sys.stderr
        self._began = monotonic()
        self._bar: Bar | None = None
        self._working = Working(label, stream)

    def __enter__(self) -> Meter:
        self._working.__enter__()
        return self

    def tell(self, done: float) -> None:
        """Say how much is done."""
        now = monotonic()
        if now - self._began < _SILENT_SECONDS or now - _Screen.drawn < _REDRAW_SECONDS:
            return
        if self._bar is None and _visible(self.stream):
            self._bar = _bar_in_place(self.label, self.stream)
        if self._bar is not None:
            share = min(done / self.total, 1.0)
            left = (now - self._began) * (1.0 - share) / share if share > 0 else float("nan")
            self._bar.show(share, f"{100 * share:.0f} %, about {left:.0f} s left")
            _Screen.drawn = now

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.close()
        self._working.__exit__(*error)


def _bar_in_place(label: str, stream: TextIO) -> Bar | None:
    """A bar in place of the line that said for how long work has been going on, if there is one."""
    if any(each.hide() for each in _Screen.working):
        _Screen.drawn = monotonic()
    return bar_for(label, stream)


class Working:
    """A line that says what is being done and for how long, while no bar says more; taken away at the end.

    Within other work the line is that of the innermost.
    """

    def __init__(self, label: str, stream: TextIO | None = None) -> None:
        self.label, self.stream = label, stream or sys.stderr
        self._shown, self._done = False, Event()
        self._thread = Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Working:
        _Screen.working.append(self)
        if len(_Screen.working) == 1 and _visible(self.stream):
            self._thread.start()
        return self

    def _watch(self) -> None:
        began = monotonic()
        while not self._done.wait(_SILENT_SECONDS / 4):
            now = monotonic()
            if now - began >= _SILENT_SECONDS and now - _Screen.drawn >= _SILENT_SECONDS:
                words = (_Screen.working or [self])[-1].label
                write_over(self.stream, f"{words} … {now - began:.0f} s")
                self._shown = True

    def __exit__(self, *error: object) -> None:
        if self in _Screen.working:
            _Screen.working.remove(self)
        self._done.set()
        if self._thread.is_alive():
            self._thread.join()
        self.hide()

    def hide(self) -> bool:
        """Take the line away; returns whether it was there."""
        shown, self._shown = self._shown, False
        if shown:
            write_over(self.stream, "")
        return shown


def working_alone(label: str) -> AbstractContextManager[object]:
    """:class:`Working` where nothing else is under way that says so, in the main thread of the user's own process."""
    busy = _Screen.working or not _visible(sys.stderr)
    if busy or current_thread() is not main_thread() or multiprocessing.parent_process() is not None:
        return nullcontext()
    return Working(label)


def while_working(label: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function that may take longer than a moment, so that it says what is being done."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            with Working(label):
                return function(*args, **kwargs)

        return call

    return decorate


show_verbs(working_alone)
