"""Devices that compute passes over rows in place of this machine's processor: a library of arrays, and one of its own.

A device holds rows in single precision. What comes back are NumPy arrays, and sums are added up in double precision
here, so that fitted models are the same objects wherever they were trained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from prinfold._typing import FloatArray
from prinfold.devices.fused_sums import fused_sums, has_triton
from prinfold.devices.softmax_sums import NodeLoading, SoftmaxSums, softmax_sums
from prinfold.exceptions import (
    Advice,
    InvalidParameterError,
    Message,
    NotEnoughMemoryError,
    import_optional,
)

SumsOfRows = Callable[[Any, Any, Any | None, NodeLoading], SoftmaxSums]


@dataclass(frozen=True)
class Device:
    """A device by its name, with the array library that computes on it and what that library calls it.

    ``dtype`` is the precision in which rows are held; ``sums`` is the fastest way to the sums of an E-step there.
    ``free_bytes`` tells how much of its memory is free; none where nobody knows.
    """

    name: str
    xp: Any
    place: Any
    sums: SumsOfRows = softmax_sums
    dtype: str = "float32"
    free_bytes: Callable[[], int] = int
    beside_others: Callable[[], AbstractContextManager[Any]] = nullcontext
    """Within, what a thread begins there does not wait for what others have begun, and has ended at the end."""

    @property
    def has_double(self) -> bool:
        """Whether it computes in double precision too."""
        return "mps" not in self.name

    def center(self, table: FloatArray, offset: FloatArray) -> Any:
        """Rows less an offset, by double precision on the device."""
        xp, double = self.xp, self.xp.float64
        there = xp.astype(self.put_as_is(np.ascontiguousarray(table)), double)
        centered = there - xp.asarray(offset, dtype=double, device=self.place)
        return xp.astype(centered, getattr(xp, self.dtype))

    def put_as_is(self, array: FloatArray) -> Any:
        """An array on the device, in the precision that it has."""
        if "cuda" in self.name and type(self.place).__module__ == "torch":
            # Through memory that the device reads by itself, which is faster than that of a plain array.
            return self.xp.asarray(array).pin_memory().to(self.place, non_blocking=True)
        return self.xp.asarray(array, device=self.place)

    def put(self, array: FloatArray) -> Any:
        """An array on the device, in its precision."""
        return self.put_as_is(np.ascontiguousarray(array, dtype=self.dtype))

    def total(self, parts: Any) -> FloatArray:
        """Sums that were found in parts (p, …), added up in double precision, there if it can, and brought here."""
        if self.has_double:
            parts = self.xp.sum(self.xp.astype(parts, self.xp.float64), axis=0)
            return to_numpy(parts)
        return np.asarray(to_numpy(parts).astype(np.float64).sum(axis=0))

    @contextmanager
    def memory_named(self) -> Iterator[None]:
        """Within, a device that runs out of memory is an error of prinfold."""
        try:
            yield
        except Exception as error:
            if type(error).__name__ not in ("OutOfMemoryError", "CUDARuntimeError"):
                raise
            words = f"the memory of {self.name} is full: {str(error).splitlines()[0]}"
            advice = Advice("device", None), "pass Blocks, which are sent there one by one"
            raise NotEnoughMemoryError(Message(words, *advice)) from error


def to_numpy(array: Any) -> FloatArray:
    """An array of any library and device as one of NumPy."""
    library = type(array).__module__.partition(".")[0]
    return np.asarray(_BRING.get(library, np.asarray)(array))


_BRING: dict[str, Callable[[Any], Any]] = {
    "torch": lambda array: array.detach().cpu(),
    "cupy": lambda array: array.get(),
    "array_api_strict": lambda array: array.to_device(type(array.device)("CPU_DEVICE")),
}
"""How an array of a library is brought here, where NumPy cannot do so by itself."""


def find_device(name: str | Device | None) -> Device | None:
    """The device that torch knows by a name such as ``"cuda"``; None for the processor.

    An error where torch is not installed, or knows no such device here.
    """
    if name is None or isinstance(name, Device):
        return name
    return None if name == "cpu" else _find_torch_device(name)


@cache
def _find_torch_device(name: str) -> Device:
    use = f"device={name!r}"
    torch = import_optional("torch", "gpu", use, "leave device at None")
    xp = import_optional("array_api_compat.torch", "gpu", use, "leave device at None")
    try:
        place = torch.device(name)
        torch.empty(1, device=place)
    except Exception as error:  # each kind of device has errors of its own
        known = ", ".join(repr(each) for each in _torch_devices(torch)) or "none"
        words = f"device={name!r} is not to be had here: {str(error).splitlines()[0]}"
        raise InvalidParameterError(
            Message(f"{words}. Devices that torch finds: {known}", Advice("device", None))
        ) from error
    return _torch_device(torch, xp, place)


def _torch_device(torch: Any, xp: Any, place: Any) -> Device:
    if place.type != "cuda":
        return Device(str(place), xp, place)
    sums = fused_sums if has_triton() else softmax_sums
    own = torch.cuda.Stream(place)

    @contextmanager
    def beside_others() -> Iterator[None]:
        with torch.cuda.stream(own):
            yield
            own.synchronize()

    def free_bytes() -> int:
        return int(torch.cuda.mem_get_info(place)[0])

    return Device(str(place), xp, place, sums, free_bytes=free_bytes, beside_others=beside_others)


def _torch_devices(torch: Any) -> list[str]:
    found = [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    return found + (["mps"] if torch.backends.mps.is_available() else [])


_CURRENT: ContextVar[Device | None] = ContextVar("device", default=None)
"""Where the rows lie that the verb under way was asked about, if not in this machine's memory."""


def current_device() -> Device | None:
    """Device that the rows of the verb under way came from; None for NumPy and all else in this machine's memory."""
    return _CURRENT.get()


@contextmanager
def rows_from(device: Device | None) -> Iterator[None]:
    """Within, rows are those of a verb that was asked about an array on a device."""
    token = _CURRENT.set(device)
    try:
        yield
    finally:
        _CURRENT.reset(token)
