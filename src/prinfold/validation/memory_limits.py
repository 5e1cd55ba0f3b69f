"""Checks before large work begins that it fits in memory: an estimate, compared with what this process may still take.

An estimate counts the large arrays of the work and nothing else. Work that is refused would have failed later, or been
ended by the system without a word.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from prinfold.exceptions import Advice, Message, NotEnoughMemoryError
from prinfold.validation.settings import check_setting, integer

_NEVER_REFUSED_BYTES = 2**26
"""Work of at most so many bytes (64 MiB) is never refused, so that free memory need not be looked up."""

_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")


def require_memory(what: str, n_numbers: float, advice: Advice | str) -> None:
    """Raise an error with ``advice`` where ``n_numbers`` of eight bytes do not fit; ``what`` is made of them."""
    needed = 8.0 * n_numbers
    if needed <= _NEVER_REFUSED_BYTES or needed <= (free := available_memory()):
        return
    raise NotEnoughMemoryError(
        Message(f"{what} would take about {_size(needed)} of memory, and there are {_size(free)} left", advice)
    )


def check_draws(n: Any, n_columns: float, name: str = "n", least: int = 0) -> None:
    """Check a number of rows to be drawn: a whole number, and so many rows fit in memory with temporary arrays."""
    check_setting(name, n, integer(least))
    rows = float(min(n, 10**200))  # a whole number may be too large to become a float
    require_memory(f"{rows:.3g} rows", _ARRAYS_PER_DRAW * rows * n_columns, Advice(name, words="lower {}"))


_ARRAYS_PER_DRAW = 3
"""Arrays as large as the rows that are drawn: nodes and noise, their sum, and the rows themselves."""


def available_memory() -> float:
    """Bytes that this process may still take, by the machine and by the group that holds it; infinite if unknown."""
    return min(_free_on_machine(), _free_in_control_group())


def _free_on_machine() -> float:
    try:
        lines = dict(line.split(":", 1) for line in _MEMINFO.read_text(encoding="ascii").splitlines())
        return 1024.0 * float(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):  # not Linux: all the memory that the machine has
        pass
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # no POSIX either
        return float("inf")


def _free_in_control_group() -> float:
    """Bytes that the control group of a container leaves; pages of files that it may drop count as free."""
    try:
        most, taken = (float((_CGROUP / f"memory.{name}").read_text(encoding="ascii")) for name in ("max", "current"))
        held = (_CGROUP / "memory.stat").read_text(encoding="ascii").split()
        return most - taken + float(dict(zip(held[::2], held[1::2], strict=True))["inactive_file"])
    except (OSError, KeyError, ValueError):  # no such group, or one without a limit ("max")
        return float("inf")


def _size(n_bytes: float) -> str:
    """``5.4 GiB``."""
    value, unit = n_bytes, "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.3g} {unit}"
