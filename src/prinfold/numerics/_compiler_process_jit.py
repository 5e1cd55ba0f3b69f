"""Compiling in a process of its own, where this one is to take little memory.

To compile at all takes numba 100 MB, each function 30 MB more, and none of it is given back. What another process has
compiled and left on disk takes a part of that. This module is part of what compiles, but does not import numba.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from threading import Lock
from typing import Any

_CHILD = """
import pickle, sys
from importlib import import_module
sys.path[:] = pickle.load(sys.stdin.buffer)
module, name, types = pickle.load(sys.stdin.buffer)
getattr(import_module(module), name).dispatcher.compile(types)
"""


class NotOnDiskError(Exception):
    """A function that is to be compiled elsewhere first, and the types of its arguments."""

    def __init__(self, function: Any, types: tuple[Any, ...]) -> None:
        super().__init__(f"{function.__name__} is not on disk")
        self.module, self.name, self.types = function.__module__, function.__name__, types

    @property
    def key(self) -> tuple[Any, ...]:
        return self.module, self.name, self.types


class CompilerProcess:
    """A compiler of functions in processes of their own, one at a time, each once; it does nothing until it is on."""

    def __init__(self) -> None:
        self.is_on = False
        self._lock, self._asked = Lock(), set[tuple[Any, ...]]()

    def is_wanted(self, missing: NotOnDiskError) -> bool:
        """Whether that function is still to be compiled there."""
        return self.is_on and missing.key not in self._asked

    def compile(self, missing: NotOnDiskError) -> None:
        """Compile and leave the result on disk; whatever fails there is left to this process."""
        with self._lock:
            if not self.is_wanted(missing):
                return
            try:
                told = pickle.dumps(sys.path) + pickle.dumps(missing.key)
                subprocess.run([sys.executable, "-c", _CHILD], input=told, capture_output=True, check=False)
            except (OSError, pickle.PicklingError, TypeError, AttributeError):
                pass  # no other process can be begun, or types cannot be told
            self._asked.add(missing.key)


COMPILER_PROCESS = CompilerProcess()
