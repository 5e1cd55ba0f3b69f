"""Memory that is free goes back to the system, where a table larger than memory is read block by block."""

from __future__ import annotations

import ctypes
from importlib import import_module
from typing import Any

from prinfold.numerics._compiler_process_jit import COMPILER_PROCESS

_LARGE_ARRAY = 2**22
"""Bytes of an array from which on it is given back when it is freed: blocks of rows are not larger, samples are."""

_M_MMAP_THRESHOLD = -3
"""The setting of glibc's malloc by that name (mallopt(3))."""


def save_memory() -> None:
    """Have large arrays given back to the system as soon as they are freed, where the C library would keep them.

    glibc keeps what arrays of up to 32 MB took, once one of them was freed; it does not do so once it was told a limit.
    What is to be compiled is compiled in another process.
    """
    COMPILER_PROCESS.is_on = True
    mallopt = _c_function("mallopt")
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE_ARRAY)


def release_memory() -> None:
    """Give memory that is free back to the system, as far as Arrow and the C library can."""
    import_module("pyarrow").default_memory_pool().release_unused()
    trim = _c_function("malloc_trim")
    if trim is not None:
        trim(0)


def _c_function(name: str) -> Any:
    """A function of the C library; None where it has none of that name."""
    try:
        return getattr(ctypes.CDLL(None), name, None)
    except (OSError, TypeError):  # Windows has no library without a name
        return None
