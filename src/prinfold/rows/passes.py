"""Who hears how far a pass over a source has come: a bar, for example."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Hear = Callable[[int, int | None], None]
"""Told how many rows of a pass have been read, and how many there are where that is known; a pass begins with none."""

_HEARING: ContextVar[Hear | None] = ContextVar("hearing", default=None)


@contextmanager
def passes_heard_by(hear: Hear) -> Iterator[None]:
    """Tell of all passes meanwhile."""
    token = _HEARING.set(hear)
    try:
        yield
    finally:
        _HEARING.reset(token)


def listener() -> Hear | None:
    """Whoever listens."""
    return _HEARING.get()
