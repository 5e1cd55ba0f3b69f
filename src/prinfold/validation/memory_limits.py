"""Checks before large work begins that it fits in memory: an estimate, compared with what this process may still take.

An estimate counts the large arrays of the work and nothing else. Work that is refused would have failed later, or been
ended by the system without a word.
"""

from __future__ import annotations

import os
from math import inf
from pathlib import Path
from typing import Any

from prinfold.exceptions import Advice, Message, NotEnoughMemoryError
from prinfold.validation.settings import check_setting, integer

_NEVER_REFUSED_BYTES = 2**26
"""Work of at most so many bytes (64 MiB) is never refused, so that free memory need not be looked up."""

_MEMINFO = Path("/proc/meminfo")
_SIZES = Path("/proc/self/statm")
_CGROUP = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")
_GROUP_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
"""Files of a group with its limit and what it takes, and what of that it may drop, in both versions of the system."""


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
    """Bytes that this process may still take, by the machine and by the limits set to it; infinite if unknown."""
    return max(0.0, min(_free_on_machine(), _free_in_control_groups(), _free_in_address_space()))


def _free_on_machine() -> float:
    try:
        lines = dict(line.split(":", 1) for line in _MEMINFO.read_text(encoding="ascii").splitlines())
        return 1024.0 * float(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):  # not Linux: all the memory that the machine has
        pass
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # no POSIX either
        return inf


def _free_in_control_groups() -> float:
    """Bytes that containers and batch systems leave, by this process's group and those above it.

    Pages of files that a group may drop count as free.
    """
    return min((_free_in_group(folder, *names) for folder in _control_groups() for names in _GROUP_FILES), default=inf)


def _free_in_group(folder: Path, most: str, taken: str, droppable: str) -> float:
    try:
        limit, used = (float((folder / name).read_text(encoding="ascii")) for name in (most, taken))
        held = (folder / "memory.stat").read_text(encoding="ascii").split()
        return limit - used + float(dict(zip(held[::2], held[1::2], strict=True))[droppable])
    except (OSError, KeyError, ValueError):  # no such group, or one without a limit ("max")
        return inf


def _control_groups() -> set[Path]:
    """Folders of this process's groups and those above, as the system tells them, and as a container sees its own."""
    found = {_CGROUP, _CGROUP / "memory"}
    try:
        lines = _OWN_CGROUPS.read_text(encoding="utf-8").splitlines()
    except OSError:
        return found
    for line in lines:
        _, controllers, path = line.split(":", 2)
        top = _CGROUP / "memory" if "memory" in controllers.split(",") else _CGROUP
        own = top / path.lstrip("/")
        found |= {each for each in (own, *own.parents) if each.is_relative_to(top)}
    return found


def _free_in_address_space() -> float:
    """Bytes that ``ulimit -v`` leaves."""
    try:
        import resource  # which Windows has not

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return inf
        return limit - float(_SIZES.read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    except (ImportError, OSError, ValueError):
        return inf


def _size(n_bytes: float) -> str:
    """``5.4 GiB``."""
    value, unit = n_bytes, "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.3g} {unit}"
