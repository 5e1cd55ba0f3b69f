"""Functions are compiled by another process where that was asked for, and here where it cannot be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from prinfold.numerics import _compiler_process_jit
from prinfold.numerics._compiler_process_jit import CompilerProcess, NotOnDiskError

CALL = """
import sys
from prinfold.numerics._compiler_process_jit import COMPILER_PROCESS
from prinfold.numerics._compiled import cleared
COMPILER_PROCESS.is_on = "on" in sys.argv
if "broken" in sys.argv:
    sys.executable = "/there/is/no/such/python"
found = cleared((3, 2))
cleared((2, 2))
print([each.tolist() for each in found], sum(cleared.dispatcher.stats.cache_hits.values()))
"""
NOUGHTS = [[[0.0, 0.0]] * 3, [0.0] * 3]


@pytest.mark.parametrize(("words", "from_disk"), [(["on"], 1), (["off"], 0), (["on", "broken"], 0)])
def test_what_another_process_has_compiled_comes_from_disk(words: list[str], from_disk: int, tmp_path: Path) -> None:
    call, kept = [sys.executable, "-c", CALL, *words], {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(call, capture_output=True, text=True, check=True, env=kept)
    assert done.stdout == f"{NOUGHTS} {from_disk}\n"
    assert len(list(tmp_path.rglob("*.nbi"))) == 1


def test_each_function_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []
    monkeypatch.setattr(_compiler_process_jit.subprocess, "run", lambda *call, **options: begun.append(call))
    process, missing = CompilerProcess(), NotOnDiskError(test_each_function_is_asked_for_once, ("int",))
    process.compile(missing)
    assert not begun, "it is not on"
    process.is_on = True
    assert process.is_wanted(missing)
    for _ in range(2):
        process.compile(missing)
    assert len(begun) == 1
    assert not process.is_wanted(missing)
