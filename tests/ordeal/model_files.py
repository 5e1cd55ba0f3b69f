"""Altered model files and checkpoints: bytes that are flipped or lost, and files that are consistent but wrong."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
from hypothesis import strategies as st
from safetensors.numpy import load as unpack
from safetensors.numpy import save as pack

from prinfold import files
from prinfold.files.container import to_container

Edit = Callable[[bytes, int, int], bytes]


def _flip(data: bytes, place: int, detail: int) -> bytes:
    at = place % len(data)
    return data[:at] + bytes([data[at] ^ (1 << detail % 8)]) + data[at + 1 :]


def _lengthen(data: bytes, place: int, detail: int) -> bytes:
    at = place % len(data)
    return data[:at] + bytes(1 + detail) + data[at:]


BYTES: dict[str, Edit] = {
    "flip": _flip,
    "cut": lambda data, place, detail: data[: place % len(data)],
    "cut in front": lambda data, place, detail: data[place % len(data) :],
    "leave out": lambda data, place, detail: data[: place % len(data)] + data[place % len(data) + 1 + detail :],
    "lengthen": _lengthen,
    "append": lambda data, place, detail: data + data[: place % len(data)],
    "flip the header": lambda data, place, detail: _flip(data, place % 64, detail),
    "zeros": lambda data, place, detail: data[: place % len(data)] + bytes(len(data) - place % len(data)),
}
"""Changes that the digest tells."""


class Content:
    """A model file taken apart: its JSON and its arrays."""

    key = "prinfold"

    def __init__(self, data: bytes) -> None:
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + length])
        self.body = json.loads(header["__metadata__"][self.key])
        self.arrays = unpack(data)

    @property
    def changed(self) -> Any:
        """The part of the JSON of which fields are changed."""
        return self.body["model"]

    def packed(self) -> bytes:
        """The file again, with the digest of what it holds now."""
        body = {key: value for key, value in self.body.items() if key != "digest"}
        arrays = {name: np.ascontiguousarray(array) for name, array in self.arrays.items()}
        body["digest"] = files._digest(body, arrays)
        return pack(arrays, metadata={"prinfold": files._dump(body)})

    def name(self, place: int) -> str | None:
        """One of the arrays."""
        names = sorted(self.arrays)
        return names[place % len(names)] if names else None

    def change_array(self, place: int, change: Callable[[Any], Any]) -> None:
        """Put another array in the place of one."""
        if name := self.name(place):
            self.arrays[name] = np.asarray(change(self.arrays[name]))

    def change_field(self, place: int, change: Callable[[Any, Any], None]) -> None:
        """Change one of all the fields of the JSON, however deep; ``change`` has what holds it, and its key."""
        fields = list(_fields(self.changed))
        if fields:
            change(*fields[place % len(fields)])


class CheckpointContent(Content):
    """A checkpoint taken apart."""

    key = "prinfold checkpoint"

    @property
    def changed(self) -> Any:
        """All that a checkpoint holds."""
        return self.body

    def packed(self) -> bytes:
        """The file again, with the digest of what it holds now."""
        arrays = {name: np.ascontiguousarray(array) for name, array in self.arrays.items()}
        return to_container(self.key, self.body, arrays)


def _fields(value: Any) -> Iterator[tuple[Any, Any]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(pairs):
        yield value, key
        yield from _fields(inner)


_JSON: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    3,
    10**9,
    10**30,
    0.5,
    -0.5,
    1e-300,
    1e300,
    "",
    "sideways",
    [],
    {},
)
_SHAPES: tuple[Callable[[Any], Any], ...] = (
    np.ravel,
    lambda a: a[None],
    lambda a: a[..., None],
    lambda a: a[:-1] if a.ndim else a,
    lambda a: a[..., :-1] if a.ndim else a,
    lambda a: a[:0] if a.ndim else a,
    lambda a: a.T,
    lambda a: np.repeat(a, 2, axis=0) if a.ndim else a,
    lambda a: np.repeat(a, 2, axis=-1) if a.ndim else a,
    lambda a: a.ravel()[0] if a.size else a,
    np.flip,
)
_TYPES = (np.float32, np.int64, np.int8, np.uint8, np.bool_)
_FILLS = (0.0, 1.0, -1.0, 1e300, -1e300, 1e-300, np.nan, np.inf)


def _rename(content: Content, place: int, detail: int) -> None:
    if name := content.name(place):
        content.arrays[f"{name}{detail}"] = content.arrays.pop(name)


def _put(content: Content, place: int, detail: int) -> None:
    value = copy.deepcopy(_JSON[detail % len(_JSON)])
    content.change_field(place, lambda holder, key: holder.__setitem__(key, value))


def _swap(content: Content, place: int, detail: int) -> None:
    fields = list(_fields(content.changed))
    (a, i), (b, j) = fields[place % len(fields)], fields[(place + 1 + detail) % len(fields)]
    a[i], b[j] = copy.deepcopy(b[j]), copy.deepcopy(a[i])


MEMBERS: dict[str, Callable[[Content, int, int], Any]] = {
    "array removed": lambda content, place, detail: content.arrays.pop(content.name(place), None),
    "array renamed": _rename,
    "array reshaped": lambda content, place, detail: content.change_array(place, _SHAPES[detail % len(_SHAPES)]),
    "array retyped": lambda content, place, detail: content.change_array(
        place, lambda a: a.astype(_TYPES[detail % len(_TYPES)])
    ),
    "array filled": lambda content, place, detail: content.change_array(
        place, lambda a: np.full_like(a, _FILLS[detail % len(_FILLS)]) if a.dtype.kind == "f" else np.zeros_like(a)
    ),
    "field removed": lambda content, place, detail: content.change_field(
        place, lambda holder, key: holder.__delitem__(key)
    ),
    "field changed": _put,
    "fields swapped": _swap,
}
"""Changes that leave a file consistent: the digest is computed anew."""


def alterations() -> st.SearchStrategy[list[list[Any]]]:
    """One or two changes of bytes, or of members with the right digest."""
    place = st.integers(0, 2**20)
    detail = st.integers(0, 40)

    def edits(table: dict[str, Any]) -> st.SearchStrategy[list[list[Any]]]:
        return st.lists(st.tuples(st.sampled_from(list(table)), place, detail).map(list), min_size=1, max_size=2)

    return edits(BYTES) | edits(MEMBERS)


def draw_alterations(rng: Random) -> list[list[Any]]:
    """What :func:`alterations` draws, in microseconds, where many are wanted."""
    names = list(rng.choice((BYTES, MEMBERS)))
    return [[rng.choice(names), rng.randint(0, 2**20), rng.randint(0, 40)] for _ in range(rng.randint(1, 2))]


def altered(data: bytes, edits: list[list[Any]], kind: type[Content] = Content) -> bytes:
    """The bytes of a file after the changes."""
    content = kind(data) if edits[0][0] in MEMBERS else None
    for name, place, detail in edits:
        if content is None:
            data = BYTES[name](data, place, detail) or b"\0"
        else:
            with np.errstate(all="ignore"):
                MEMBERS[name](content, place, detail)
    return data if content is None else content.packed()
