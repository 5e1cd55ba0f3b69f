"""States of training as numbers and JSON, and back again, bit for bit.

A state is data: arrays, numbers and texts in named tuples, dataclasses and other small objects of this package. Those
are taken apart by their fields. What is no data, such as the function that a step calls, stays the same while training
goes on: it is named by its place in the state that training began with, and looked up there when the state is put
together again. Nothing that is stored is ever run, and no class is imported by its name: only those of this package
that are loaded already are found, and their fields are set without a call of their constructors.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Any

import numpy as np
from scipy import sparse

from prinfold._typing import FloatArray
from prinfold.exceptions import CheckpointError, NotStorableError

Arrays = dict[str, FloatArray]

_PACKAGE = __name__.partition(".")[0]


class Snapshot:
    """Packs values one after another; an object that occurs twice is stored once, and is one object after unpacking.

    ``begun`` is the state that training began with, where what is no data is found.
    """

    def __init__(self, begun: Any = None) -> None:
        self.arrays: Arrays = {}
        self._begun = begun
        self._fixed: dict[int, list[Any]] | None = None
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no number of an object is used again while this one is packed

    def pack(self, value: Any) -> Any:
        """JSON for a value; its arrays go to ``arrays``."""
        if value is None or (isinstance(value, bool | int | str) and not isinstance(value, enum.Enum)):
            return value
        if type(value) is float:
            return value if isfinite(value) else {"$float": repr(value)}
        if id(value) in self._seen:
            return {"$same": self._seen[id(value)]}
        number = self._seen[id(value)] = len(self._kept)
        self._kept.append(value)
        return {"$number": number, **self._pack_new(value)}

    def _pack_new(self, value: Any) -> dict[str, Any]:
        if isinstance(value, np.ndarray) and value.dtype != object:
            return {"$array": self._store(value)}
        if isinstance(value, np.generic):
            return {"$scalar": self._store(np.asarray(value))}
        if sparse.issparse(value):
            return self._pack_sparse(value)
        if isinstance(value, np.random.Generator):
            state = value.bit_generator.state
            return {"$generator": self.pack(_plain(state))}
        if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
            return {"$dict": {key: self.pack(item) for key, item in value.items()}}
        if type(value) in (list, tuple):
            return {f"${type(value).__name__}": [self.pack(item) for item in value]}
        return self._pack_object(value)

    def _pack_object(self, value: Any) -> dict[str, Any]:
        if isinstance(value, enum.Enum) and _is_ours(type(value)):
            return {"$enum": type(value).__name__, "member": value.name}
        parts = _parts_of(value)
        unchanging = parts is None or (_is_frozen(value) and id(value) in self._fixed_objects())
        if unchanging:
            return {"$fixed": self._path_to(value)}
        return {"$object": type(value).__name__, "parts": {name: self.pack(part) for name, part in parts or ()}}

    def _pack_sparse(self, value: Any) -> dict[str, Any]:
        kept = value if value.format in ("csr", "csc") else value.tocsr()
        parts = [self._store(each) for each in (kept.data, kept.indices, kept.indptr)]
        return {"$sparse": parts, "format": kept.format, "shape": list(kept.shape), "matrix": sparse.isspmatrix(kept)}

    def _store(self, value: FloatArray) -> dict[str, Any]:
        # Sums and products depend on the order of numbers in memory in their last bit, so that is kept: the order of
        # the axes, and which of them repeat the same numbers.
        order = sorted(range(value.ndim), key=lambda axis: -abs(value.strides[axis]))
        once = tuple(slice(None) if stride else slice(1) for stride in value.strides)
        name = str(len(self.arrays))
        # A copy, because training goes on while this is written.
        self.arrays[name] = np.array(value[once].transpose(order), order="C")
        return {"name": name, "order": order, "shape": list(value.shape)}

    def _path_to(self, value: Any) -> list[Any]:
        path = self._fixed_objects().get(id(value))
        if path is None:
            raise NotStorableError(
                f"a {type(value).__name__} is made anew while this model is trained, and a checkpoint cannot hold it; "
                "train without a checkpoint"
            )
        return path

    def _fixed_objects(self) -> dict[int, list[Any]]:
        if self._fixed is None:
            self._fixed = {id(each): path for path, each in _walk(self._begun, [], set())}
        return self._fixed


def unpack(packed: Any, arrays: Mapping[str, FloatArray], begun: Any = None) -> Any:
    """The value that :class:`Snapshot` packed, given the arrays and the state that training begins with."""
    return _Unpacking(arrays, begun).value(packed)


def has_form_of(found: Any, begun: Any) -> bool:
    """Whether a state has the form of the one that training began with: the same classes, and arrays of as many axes.

    What is None in one of them may be anything in the other, containers may have grown, and a number may have become
    one for each row or node.
    """
    if found is None or begun is None or type(begun) in (bool, int, float, str, list, dict):
        return True
    if isinstance(begun, np.ndarray):
        alike = isinstance(found, np.ndarray) and found.dtype.kind == begun.dtype.kind and found.ndim == begun.ndim
        return alike and bool(found.size) == bool(begun.size)
    if type(found) is not type(begun):
        return False
    parts = zip(_parts_of(found) or (), _parts_of(begun) or (), strict=False)
    return all(has_form_of(part, other) for (_, part), (_, other) in parts)


class _Unpacking:
    """Values put together so far, by their numbers."""

    def __init__(self, arrays: Mapping[str, FloatArray], begun: Any) -> None:
        self.arrays, self.begun = arrays, begun
        self.made: dict[int, Any] = {}

    def value(self, packed: Any) -> Any:
        if not isinstance(packed, dict):
            return packed
        if "$same" in packed:
            return self.made[packed["$same"]]
        if "$float" in packed:
            return float(packed["$float"])
        kind = next((key for key in packed if key in _MAKERS), None)
        if kind is None:
            raise CheckpointError(f"a checkpoint holds no such thing as {sorted(packed)}")
        made = _MAKERS[kind](self, packed[kind], packed)
        self.made[packed["$number"]] = made
        return made

    def array(self, stored: Mapping[str, Any]) -> FloatArray:
        found = self.arrays[stored["name"]].copy().transpose(np.argsort(stored["order"]))
        shape = tuple(stored["shape"])
        return found if found.shape == shape else np.broadcast_to(found, shape)

    def scalar(self, stored: Mapping[str, Any]) -> Any:
        return self.array(stored)[()]

    def sparse(self, stored: list[Any], packed: Mapping[str, Any]) -> Any:
        kind = {"csr": sparse.csr_array, "csc": sparse.csc_array}[packed["format"]]
        if packed["matrix"]:
            kind = {"csr": sparse.csr_matrix, "csc": sparse.csc_matrix}[packed["format"]]
        return kind(tuple(self.array(each) for each in stored), shape=tuple(packed["shape"]))

    def generator(self, stored: Any) -> np.random.Generator:
        state = self.value(stored)
        kinds = {"PCG64": np.random.PCG64, "MT19937": np.random.MT19937, "Philox": np.random.Philox}
        bits = kinds[state["bit_generator"]]()
        bits.state = state
        return np.random.Generator(bits)

    def fixed(self, path: list[Any]) -> Any:
        found = self.begun
        for step in path:
            found = dict(_parts_of(found) or ())[step]
        return found

    def object(self, name: str, packed: Mapping[str, Any]) -> Any:
        cls = _our_classes()[name]
        parts = {key: self.value(part) for key, part in packed["parts"].items()}
        if issubclass(cls, tuple):
            return tuple.__new__(cls, parts.values())
        made = object.__new__(cls)
        for key, part in parts.items():
            object.__setattr__(made, key, part)
        return made


_MAKERS: dict[str, Callable[[_Unpacking, Any, Mapping[str, Any]], Any]] = {
    "$array": lambda at, stored, _: at.array(stored),
    "$scalar": lambda at, stored, _: at.scalar(stored),
    "$sparse": lambda at, stored, packed: at.sparse(stored, packed),
    "$generator": lambda at, stored, _: at.generator(stored),
    "$dict": lambda at, stored, _: {key: at.value(item) for key, item in stored.items()},
    "$list": lambda at, stored, _: [at.value(item) for item in stored],
    "$tuple": lambda at, stored, _: tuple(at.value(item) for item in stored),
    "$enum": lambda at, stored, packed: _our_classes()[stored][packed["member"]],
    "$fixed": lambda at, stored, _: at.fixed(stored),
    "$object": lambda at, stored, packed: at.object(stored, packed),
}
"""How each kind of value is put together: from its own part of the JSON, and from all of it."""


# ------------------------------------------------------------------------------------------------------- objects


def _parts_of(value: Any) -> list[tuple[Any, Any]] | None:
    """Names and parts of what can be taken apart: containers, and objects of this package; None of all others."""
    if isinstance(value, Mapping):
        return list(value.items())
    if type(value) in (list, tuple):
        return list(enumerate(value))
    if not _is_ours(type(value)) or isinstance(value, type):
        return None
    if isinstance(value, tuple):
        return list(zip(getattr(value, "_fields", range(len(value))), value, strict=True))
    if is_dataclass(value):
        return [(each.name, getattr(value, each.name)) for each in fields(value)]
    return list(vars(value).items())


def _is_ours(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == _PACKAGE


def _is_frozen(value: Any) -> bool:
    """Whether an object cannot be another later on while it stays the same object."""
    made_by = getattr(type(value), "__dataclass_params__", None)
    return isinstance(value, tuple) or (made_by is not None and bool(made_by.frozen))


def _walk(value: Any, path: list[Any], seen: set[int]) -> Iterator[tuple[list[Any], Any]]:
    """Every object within a state that is no plain number, text or array, with the way to it."""
    if value is None or isinstance(value, bool | int | float | str | np.ndarray | np.generic) or id(value) in seen:
        return
    seen.add(id(value))
    yield path, value
    for name, part in _parts_of(value) or ():
        yield from _walk(part, [*path, name], seen)


def _our_classes() -> dict[str, Any]:
    """Classes of this package that are loaded, by name; a name means one class in all of it."""
    loaded = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == _PACKAGE]
    return {
        found.__name__: found
        for module in loaded
        for found in list(vars(module).values())
        if isinstance(found, type) and _is_ours(found)
    }


def _plain(value: Any) -> Any:
    """The state of a generator of random numbers with plain numbers in it."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return value.item() if isinstance(value, np.generic) else value
