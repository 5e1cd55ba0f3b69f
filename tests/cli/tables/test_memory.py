"""What large arrays took goes back to the system, and not to a heap that keeps it."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from prinfold.cli.tables import memory

FREED = """
import numpy as np
from prinfold.cli.tables.memory import save_memory
{begin}
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6
for _ in range(2):  # glibc keeps what it is given back after the first time
    arrays = [np.ones(2**21) for _ in range(8)]  # 17 MB each
    before = resident()
    last = arrays.pop()
    del arrays
print(before - resident())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries give back what is freed by themselves")
def test_large_arrays_are_given_back_when_they_are_freed() -> None:
    def freed(begin: str) -> float:
        call = [sys.executable, "-c", FREED.format(begin=begin)]
        return float(subprocess.run(call, capture_output=True, text=True, check=True).stdout)

    assert freed("save_memory()") > 100
    assert freed("") < 20, "or there is nothing to save any more"


def test_where_the_c_library_has_no_such_function_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(memory, "_c_function", lambda name: None)
    memory.save_memory()
    memory.release_memory()


@pytest.mark.parametrize("error", [OSError, TypeError])
def test_where_there_is_no_c_library_it_has_no_function(error: type, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: object) -> None:
        raise error

    monkeypatch.setattr(memory.ctypes, "CDLL", refuse)
    assert memory._c_function("mallopt") is None
