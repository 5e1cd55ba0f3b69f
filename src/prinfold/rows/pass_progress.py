"""Progress of a pass over a source, reported to a callback such as a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

ProgressCallback = Callable[[int, int | None], None]
"""Called with the rows of a pass read so far, and with their total where that is known; first with no rows read."""

_CALLBACK: ContextVar[ProgressCallback | None] = ContextVar("progress_callback", default=None)


@contextmanager
def report_passes_to(callback: ProgressCallback) -> Iterator[None]:
    """Call ``callback`` during every pass over a source made within the ``with`` block."""
    token = _CALLBACK.set(callback)
    try:
        yield
    finally:
        _CALLBACK.reset(token)


def progress_callback() -> ProgressCallback | None:
    """The callback of the innermost ``report_passes_to``, or None."""
    return _CALLBACK.get()
