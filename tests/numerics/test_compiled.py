"""Compiled code on disk belongs to the sources it was made from, helpers in other files included."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prinfold.numerics import _compiled as compiled

SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
import prinfold.numerics._compiled
import importlib.util

def load(name):
    spec = importlib.util.spec_from_file_location("prinfold." + name, {folder!r} + "/" + name + ".py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["prinfold." + name] = module
    spec.loader.exec_module(module)
    return module

load("helper")
print(load("kernel").answer(1.0))
"""

HELPER = """
from numba.extending import register_jitable

@register_jitable
def shift(x):
    return x + {shift}
"""

KERNEL = """
import sys
from prinfold.numerics._compiled import compiled
shift = sys.modules["prinfold.helper"].shift

@compiled
def answer(x):
    return shift(x)
"""


def run(folder: Path) -> tuple[str, int]:
    """What a fresh process computes, and how many compiled functions lie on disk afterwards."""
    words = [sys.executable, "-c", SCRIPT.format(folder=str(folder))]
    beside = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}  # not all in one folder
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=beside)
    return done.stdout.strip(), len(list((folder / "__pycache__").glob("kernel.answer*.nbi")))


@pytest.mark.parametrize("shift", [2.0, 5.0])
def test_a_change_of_a_helper_in_another_file_compiles_anew(tmp_path: Path, shift: float) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    (tmp_path / "helper.py").write_text(HELPER.format(shift=1.0))
    assert run(tmp_path) == ("2.0", 1)
    assert run(tmp_path) == ("2.0", 1)  # the second time from disk
    (tmp_path / "helper.py").write_text(HELPER.format(shift=shift))
    assert run(tmp_path) == (str(1.0 + shift), 2)


def length(x):
    return len(x)


def test_its_exponentials_are_right_to_rounding(rng):
    x = rng.uniform(-600, 600, 5000)
    assert_allclose([compiled._exp64(each) for each in x], np.exp(x), rtol=1e-13)
    x = rng.uniform(-80, 80, 5000).astype(np.float32)
    assert_allclose([compiled._exp32(each) for each in x], np.exp(x.astype(float)), rtol=4e-7)


def test_it_is_compiled_even_where_nothing_can_be_kept(monkeypatch):
    asked = []

    def no_folder(**options):
        asked.append(options)
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setattr(compiled, "njit", no_folder)
    assert compiled.compiled(length) is length
    assert sorted(each.get("cache", False) for each in asked) == [False, True]
    assert all(each["nogil"] for each in asked)


def test_it_is_compiled_even_where_the_folder_has_filled_up_meanwhile(monkeypatch):
    def full(*given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(compiled, "njit", lambda **options: lambda function: full if options.get("cache") else function)
    assert compiled.compiled(length)("four") == 4


INTERRUPTED = """
import sys
from numba.core.codegen import CPUCodeLibrary
sys.path.insert(0, {folder!r})

handed_over, strikes = CPUCodeLibrary._object_compiled_hook, False

def interrupt(cls, module, code):
    if strikes and {struck!r} in str(module) and not {spared!r} in str(module):
        raise KeyboardInterrupt
    return handed_over(module, code)

CPUCodeLibrary._object_compiled_hook = classmethod(interrupt)
import addition

strikes = True
try:
    addition.one_more(1.0)
except KeyboardInterrupt:
    strikes = False
    print("interrupted, then", addition.one_more(1.0))
"""


WITH_HELPER = """
import numba
from prinfold.numerics._compiled import compiled

@numba.njit
def helper_of_it(x):
    return x + 1.0

@compiled
def one_more(x):
    return helper_of_it(x)
"""


@pytest.mark.parametrize(("struck", "spared"), [("one_more", "nothing else"), ("helper_of_it", "one_more")])
def test_an_interrupt_that_strikes_while_llvm_hands_code_over_is_passed_on(
    struck: str, spared: str, tmp_path: Path
) -> None:
    """Of the function itself, whose loss numba notices, and of a helper alone, whose loss it does not."""
    (tmp_path / "addition.py").write_text(WITH_HELPER)
    beside = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    words = [sys.executable, "-c", INTERRUPTED.format(folder=str(tmp_path), struck=struck, spared=spared)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=beside)
    assert done.stdout.strip() == "interrupted, then 2.0", done.stderr
    assert "Exception ignored" not in done.stderr
