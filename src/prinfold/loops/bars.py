"""Progress bars: those of rich or tqdm where one is installed, else our own; in a notebook without either, lines."""

from __future__ import annotations

import shutil
import sys
import warnings
from importlib.util import find_spec
from time import monotonic
from typing import Any, Protocol, TextIO

_BAR_WIDTH = 28
_LINE_SECONDS = 10.0
"""Time between two plain lines."""


class Bar(Protocol):
    """One bar on the screen."""

    def show(self, share: float, words: str) -> None: ...

    def close(self) -> None: ...


class TextBar:
    """A bar of characters on one line of a terminal, redrawn in place."""

    def __init__(self, label: str, stream: TextIO) -> None:
        self.label, self.stream = label, stream

    def show(self, share: float, words: str) -> None:
        """Draw the bar in place of the line before."""
        bar = ("█" * round(_BAR_WIDTH * share)).ljust(_BAR_WIDTH, "░")
        write_over(self.stream, f"{self.label} {bar} {words}")

    def close(self) -> None:
        """Take the bar away."""
        write_over(self.stream, "")


class RichBar:
    """A bar of the library rich, which draws on terminals and in notebooks."""

    def __init__(self, label: str, stream: TextIO) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        console = Console() if in_notebook() else Console(file=stream, force_terminal=True)
        # Without a thread of its own and without taking over the streams, so that warnings and interrupts pass as ever.
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(_BAR_WIDTH),
            TextColumn("{task.fields[words]}", markup=False),
            console=console,
            transient=True,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._progress.add_task(label, total=1.0, words="")
        self._progress.start()

    def show(self, share: float, words: str) -> None:
        """Draw the bar anew."""
        self._progress.update(self._task, completed=share, words=words, refresh=True)

    def close(self) -> None:
        """Take the bar away."""
        self._progress.stop()


class TqdmBar:
    """A bar of the library tqdm, which draws on terminals and in notebooks."""

    def __init__(self, label: str, stream: TextIO) -> None:
        self.label = label
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of widgets that are missing: it then draws in characters
            made: Any = _tqdm()
            shape = {} if in_notebook() else {"file": stream, "bar_format": f"{{bar:{_BAR_WIDTH}}} {{desc}}"}
            self._bar = made(total=1.0, desc=label, leave=False, mininterval=0, **shape)

    def show(self, share: float, words: str) -> None:
        """Draw the bar anew."""
        self._bar.n = round(share, 4)
        self._bar.set_description_str(f"{self.label} {words}", refresh=True)

    def close(self) -> None:
        """Take the bar away."""
        self._bar.close()


class PlainLines:
    """A line now and then, where nothing can be redrawn."""

    def __init__(self, label: str, stream: TextIO) -> None:
        self.label, self.stream, self._written = label, stream, monotonic() - _LINE_SECONDS

    def show(self, share: float, words: str) -> None:
        """Write a line, unless there was one a moment ago."""
        if monotonic() - self._written >= _LINE_SECONDS:
            self._written = monotonic()
            self.stream.write(f"{self.label} {100 * share:.0f} %  {words}\n")
            self.stream.flush()

    def close(self) -> None:
        """Leave the lines where they are."""


def bar_for(label: str, stream: TextIO) -> Bar | None:
    """The bar for a notebook or a terminal; None where nobody looks on."""
    if in_notebook():
        preferred: dict[str, type[Bar]] = {"tqdm": TqdmBar, "rich": RichBar}
        otherwise: type[Bar] = PlainLines
    elif stream.isatty():
        preferred, otherwise = {"rich": RichBar, "tqdm": TqdmBar}, TextBar
    else:
        return None
    kind: Any = next((bar for library, bar in preferred.items() if installed(library)), otherwise)
    bar: Bar = kind(label, stream)
    return bar


def is_watched(stream: TextIO | None) -> bool:
    """Whether what is written now is seen now: on a terminal or in a notebook."""
    return stream is not None and (stream.isatty() or in_notebook())


def installed(library: str) -> bool:
    """Whether a library can be imported."""
    return find_spec(library) is not None


def in_notebook() -> bool:
    """Whether the code runs in a notebook, whose kernel has brought IPython with it."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and type(ipython.get_ipython()).__name__ == "ZMQInteractiveShell"


def write_over(stream: TextIO, words: str) -> None:
    """Write a line in place of the one before; a notebook has to be given blanks for what a shorter one leaves."""
    # A line as wide as the terminal would wrap, and each redrawing would then leave one behind.
    room = max(shutil.get_terminal_size().columns - 1, 1)
    stream.write(f"\r{words[:room]:<{room}}\r" if in_notebook() else f"\r{words[:room]}\x1b[K")
    stream.flush()


def write_line(stream: TextIO, words: str) -> None:
    """Write a line that stays, in place of one that does not."""
    stream.write(f"\r{words}\x1b[K\n" if stream.isatty() else f"{words}\n")
    stream.flush()


def _tqdm() -> Any:
    if in_notebook():
        from tqdm.auto import tqdm
    else:
        from tqdm import tqdm
    return tqdm
