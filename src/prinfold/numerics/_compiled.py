"""Compilation by numba, and small functions that compiled code of several modules calls.

This module imports numba, which takes as long as a small fit: import it only where there is much to do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, wraps
from hashlib import sha256
from pathlib import Path
from threading import current_thread, main_thread
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numba.core import event
from numba.extending import overload, register_jitable

from prinfold._typing import FloatArray, IntArray
from prinfold.numerics._compiler_process_jit import COMPILER_PROCESS, NotOnDiskError

F = TypeVar("F", bound=Callable[..., Any])

RUN = 32
"""Weights that are compared together; few runs hold one that matters."""

_KEPT = set[Any]()
"""Compiled functions that are kept on disk."""

_LANES = 16
"""Weights side by side of which the largest are kept."""


def compiled(function: F) -> F:
    """Compile on first call, without the interpreter's lock; kept on disk where a folder can be written to."""
    plain = _with_interrupts(njit(nogil=True)(function))
    try:
        kept = _with_interrupts(njit(nogil=True, cache=True)(_named_after_helpers(function)))
    except RuntimeError:  # "no locator available": nowhere to keep it
        return cast(F, plain)
    _KEPT.add(kept)

    @wraps(function)
    def call(*given: Any) -> Any:
        try:
            try:
                return kept(*given)
            except NotOnDiskError as missing:
                COMPILER_PROCESS.compile(missing)
                return kept(*given)
        except OSError:  # a folder that is full or gone by now, which shows before anything is computed
            return plain(*given)

    vars(call)["dispatcher"] = kept
    return cast(F, call)


def _with_interrupts(dispatcher: Any) -> Any:
    """A function of numba's that passes on an interrupt which strikes while it is compiled, helpers included.

    LLVM hands compiled code over by a callback. An interrupt that strikes there Python can only print, and goes on
    without it; numba then ends in an error that it has no code, or, of a helper, goes on as well.
    """
    compile_for = getattr(dispatcher, "_compile_for_args", None)  # which numba calls for arguments of new types
    if compile_for is None:  # numba is told to compile nothing
        return dispatcher

    def compile_or_stop(*given: Any, **options: Any) -> Any:
        if current_thread() is not main_thread():  # no interrupt strikes here
            return compile_for(*given, **options)
        lost, show = list[type](), sys.unraisablehook

        def note(unraised: Any) -> None:
            if issubclass(unraised.exc_type, KeyboardInterrupt):
                lost.append(unraised.exc_type)
            else:
                show(unraised)

        sys.unraisablehook = note
        try:
            return compile_for(*given, **options)
        finally:
            sys.unraisablehook = show
            if lost:
                raise KeyboardInterrupt

    dispatcher._compile_for_args = compile_or_stop
    return dispatcher


class _AskBeforeCompiling(event.Listener):
    """Raise an error instead of compiling a function that is kept on disk, where another process is to compile it."""

    def on_start(self, found: Any) -> None:
        dispatcher = found.data["dispatcher"]
        if COMPILER_PROCESS.is_on and dispatcher in _KEPT:
            missing = NotOnDiskError(dispatcher.py_func, tuple(found.data["args"]))
            if COMPILER_PROCESS.is_wanted(missing):
                raise missing

    def on_end(self, found: Any) -> None:
        pass


event.register("numba:compile", _AskBeforeCompiling())


def _named_after_helpers(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function under a name that changes with the files of the helpers that it may call.

    numba finds compiled code on disk by the file and name of a function, and compiles anew when that file has changed.
    It does not see changes of helpers in other files.
    """
    # No closures and no defaults: compiled functions have neither.
    same = FunctionType(function.__code__, function.__globals__, function.__name__)
    same.__module__, same.__doc__ = function.__module__, function.__doc__
    same.__qualname__ = f"{function.__qualname__}_{_helper_digest(function.__module__)}"
    return same


def _helper_digest(module: str) -> str:
    """Digest of the source files of all modules of this package whose functions a module holds, however indirectly."""
    found, waiting = set[str](), {module}
    while waiting:
        found |= waiting
        waiting = {each for name in waiting for each in _sources_of(name)} - found
    digest = sha256()
    for name in sorted(found - {module}):
        digest.update(_text_of(name))
    return digest.hexdigest()[:12]


def _sources_of(module: str) -> set[str]:
    """Modules of this package that define what a module holds."""
    held = (getattr(each, "__module__", None) for each in list(vars(sys.modules[module]).values()))
    return {name for name in held if isinstance(name, str) and name.startswith("prinfold.") and name in sys.modules}


@cache
def _text_of(module: str) -> bytes:
    path = sys.modules[module].__file__
    return Path(path).read_bytes() if path is not None else b""


def _exp64(x: Any) -> Any:
    """eˣ for |x| ≤ 700 to 1e-14, in a form that becomes vector instructions; ``math.exp`` would be a call."""
    n = np.floor(x * 1.4426950408889634 + 0.5)
    r = (x - n * 0.693145751953125) - n * 1.4286068203094173e-06
    # The polynomial through eʳ at the eleven nodes of Chebyshev in ±ln 2 / 2: Taylor's takes two degrees more.
    p = 2.7626357373278975e-07
    p = p * r + 2.764018095446885e-06
    p = p * r + 2.4801504346680997e-05
    p = p * r + 0.00019841170270059897
    p = p * r + 0.0013888888932488848
    p = p * r + 0.008333333385668083
    p = p * r + 0.04166666666657314
    p = p * r + 0.16666666666554403
    p = p * r + 0.5000000000000006
    p = p * r + 1.0000000000000067
    p = p * r + 1.0
    # 1.5 · 2⁵² + 1023 + n has n + 1023 in its last bits, which become the exponent of 2ⁿ. No vector instruction before
    # AVX-512 turns n into an integer, and there sums are a quarter faster without.
    return p * np.int64(np.float64(n + 6755399441056767.0).view(np.int64) << np.int64(52)).view(np.float64)


def _exp32(x: Any) -> Any:
    """The same in single precision, for |x| ≤ 86, to 1e-7."""
    n = np.floor(x * np.float32(1.4426950408889634) + np.float32(0.5))
    r = (x - n * np.float32(0.693359375)) - n * np.float32(-2.12194440e-4)
    p = np.float32(1.0 / 5040.0)
    p = p * r + np.float32(1.0 / 720.0)
    p = p * r + np.float32(1.0 / 120.0)
    p = p * r + np.float32(1.0 / 24.0)
    p = p * r + np.float32(1.0 / 6.0)
    p = p * r + np.float32(0.5)
    p = p * r + np.float32(1.0)
    p = p * r + np.float32(1.0)
    return p * np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)


exp64, exp32 = register_jitable(_exp64), register_jitable(_exp32)


def _longest(cuts: IntArray) -> int:
    """Longest of the runs between cuts."""
    longest = 0
    for g in range(len(cuts) - 1):
        longest = max(longest, cuts[g + 1] - cuts[g])
    return longest


longest = register_jitable(_longest)


def _with_room(found: IntArray, n: int) -> IntArray:
    """A list with room for so many entries, in twice the room that it had where that was too little."""
    if n <= len(found):
        return found
    longer = np.empty(max(n, 2 * len(found)), found.dtype)
    longer[: len(found)] = found
    return longer


with_room = register_jitable(_with_room)


def _appended(found: IntArray, n: int, value: int) -> IntArray:
    """A list of n entries with one more."""
    found = with_room(found, n + 1)
    found[n] = value
    return found


appended = register_jitable(_appended)


def _any_from(weight: FloatArray, least: float) -> bool:
    """Whether one of some weights is so large; counted, which becomes vector instructions."""
    found = 0
    for each in weight:
        found += int(each >= least)
    return found > 0


any_from = register_jitable(_any_from)


def _largest(weight: FloatArray) -> float:
    """The largest of some weights, in lanes side by side, which become vector instructions; no number is not larger."""
    n_even = len(weight) - len(weight) % _LANES
    lanes = np.full(_LANES, weight[0], weight.dtype)
    for first in range(0, n_even, _LANES):
        for lane in range(_LANES):
            each = weight[first + lane]
            lanes[lane] = max(lanes[lane], each)
    largest: float = lanes[0]
    for lane in range(1, _LANES):
        largest = max(largest, lanes[lane])
    for j in range(n_even, len(weight)):
        largest = max(largest, weight[j])
    return largest


largest_of = register_jitable(_largest)


def _heaviest(weight: FloatArray) -> int:
    """Index of the largest of some weights, the first of several; looked for in one of few runs."""
    largest = largest_of(weight)
    for first in range(0, len(weight), RUN):
        last = min(first + RUN, len(weight))
        if any_from(weight[first:last], largest):
            for j in range(first, last):
                if weight[j] >= largest:
                    return j
    return 0


heaviest = register_jitable(_heaviest)


def centered(row: FloatArray, offset: FloatArray, into: FloatArray) -> float:
    """Write row − offset, and return the square of what was written."""
    raise NotImplementedError


# A sum in any order must not stand in a loop that writes: where arrays lie close in memory such a loop goes one by one
# instead of side by side, and the last bit of the sum would depend on where an array happens to lie.
@overload(centered, jit_options={"fastmath": {"reassoc", "contract"}})
def _centered_row(row: Any, offset: Any, into: Any) -> Any:
    def write(row: Any, offset: Any, into: Any) -> Any:
        for c in range(len(row)):
            into[c] = row[c] - offset[c]
        square = 0.0
        for c in range(len(row)):  # by itself: see above
            square += np.float64(into[c]) * np.float64(into[c])
        return square

    return write


@compiled
def cleared(shape: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
    """Arrays of zeros (n, m) and (n,); NumPy keeps the interpreter's lock while it writes them."""
    return np.zeros(shape), np.zeros(shape[0])
