"""Kinds of values in a file: each class declares the types and shapes of its fields, which are checked on reading.

A kind is a test and its description in words. Shapes are given by numbers and by names: ``numbers("m",
"n_features_in_")`` has as many rows as every other field of the object with an ``m``, and as many columns as the field
``n_features_in_`` says; ``"latent_.n_nodes"`` is an attribute of a part. Constraints of settings
(``prinfold.validation.settings``) are kinds as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from prinfold.exceptions import CorruptModelFileError
from prinfold.validation.settings import Constraint, real

Size: TypeAlias = int | str
ANY = "*"
"""A size that is left open, and may be another in each array."""

_NO_SIZE = (AttributeError, TypeError, ValueError)
"""Errors that are raised where the size of a value is asked for and it has none."""

_MOST_SHOWN = 60


class Sizes:
    """Sizes shared by the fields of one object; a name that is no field has the size found in the first array."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields, self._met = fields, dict[str, tuple[int, str]]()
        self.field = ""
        """The field that is being looked at."""

    def known(self, size: Size) -> int | None:
        """A size, or None where no field has determined it yet."""
        if isinstance(size, int):
            return size
        first, *rest = size.split(".")
        if first in self._fields:
            return _size_of(reduce(getattr, rest, self._fields[first]))
        return self._met[size][0] if size in self._met else None

    def agree(self, shape: tuple[Size, ...], found: tuple[int, ...]) -> bool:
        """Whether a shape is the declared one; the sizes that new names in it stand for are recorded."""
        if len(shape) != len(found) or any(self.known(a) not in (None, b) for a, b in zip(shape, found, strict=True)):
            return False
        new = {a: (b, self.field) for a, b in zip(shape, found, strict=True) if isinstance(a, str) and a != ANY}
        self._met = new | self._met  # the last line checks a name that occurs twice in the shape
        return all(self.known(a) in (None, b) for a, b in zip(shape, found, strict=True))

    def shown(self, size: Size) -> str:
        """A size with what is known of it, and from which field."""
        try:
            known = self.known(size)
        except _NO_SIZE:
            known = None
        if known is None or known == size:
            return str(size)
        is_field = str(size).split(".")[0] in self._fields
        told = "" if is_field else f" as in {self._met[str(size)][1]}"
        return f"{size} = {known}{told}"


def _size_of(found: Any) -> int:
    """A number itself, and the length of anything else."""
    return found if isinstance(found, int) else len(found)


@dataclass(frozen=True)
class Kind:
    """Values that a field may have: a test, given the sizes of the object, and the words that describe it."""

    test: Callable[[Any, Sizes], bool]
    words: Callable[[Sizes], str]

    def __or__(self, other: AnyKind) -> Kind:
        return _either(self, as_kind(other))

    def __ror__(self, other: Constraint) -> Kind:
        return _either(as_kind(other), self)


AnyKind: TypeAlias = Kind | Constraint
Kinds: TypeAlias = Mapping[str, AnyKind]


def as_kind(kind: AnyKind) -> Kind:
    """A kind, or a constraint as a kind that ignores sizes."""
    if isinstance(kind, Kind):
        return kind
    return Kind(lambda value, _: kind.test(value), lambda _: kind.words)


def _either(one: Kind, other: Kind) -> Kind:
    return Kind(
        lambda value, sizes: one.test(value, sizes) or other.test(value, sizes),
        lambda sizes: f"{one.words(sizes)} or {other.words(sizes)}",
    )


def _array(dtypes: str, words: str, shape: tuple[Size, ...], also: Callable[[Any], bool]) -> Kind:
    def test(value: Any, sizes: Sizes) -> bool:
        is_array = isinstance(value, np.ndarray) and value.dtype.kind in dtypes
        return is_array and sizes.agree(shape, value.shape) and also(value)

    return Kind(test, lambda sizes: f"{words} of shape ({', '.join(map(sizes.shown, shape))})")


def numbers(*shape: Size, least: float = -np.inf, above: float = -np.inf) -> Kind:
    """An array of finite floating-point numbers, at least (or above) a bound."""
    bound = f" of at least {least:g}," if least > -np.inf else f" above {above:g}," if above > -np.inf else ""
    return _array(
        "f",
        f"an array of finite numbers{bound}",
        shape,
        lambda v: bool(np.isfinite(v).all() and (v >= least).all() and (v > above).all()),
    )


def whole_numbers(*shape: Size, least: int = -(2**62)) -> Kind:
    """An array of whole numbers of at least a bound."""
    return _array("iu", "an array of whole numbers", shape, lambda v: bool((v >= least).all()))


def flags(*shape: Size) -> Kind:
    """An array of True and False."""
    return _array("b", "an array of True and False", shape, lambda _: True)


def texts(*shape: Size) -> Kind:
    """An array of words."""
    return _array("OU", "an array of text", shape, lambda v: all(isinstance(each, str) for each in v.ravel()))


def array() -> Kind:
    """An array of finite numbers of any shape, which the class itself looks into."""
    return Kind(
        lambda v, _: isinstance(v, np.ndarray) and v.dtype.kind == "f" and bool(np.isfinite(v).all()),
        lambda _: "an array of finite numbers",
    )


def class_names(size: Size) -> Kind:
    """Names of classes, each once: text or numbers."""
    return _array("OUfiub", "an array of different classes", (size,), lambda v: 0 < len(v) == len(set(v.tolist())))


def sequence_of(kind: AnyKind, size: Size | None = None) -> Kind:
    """A list or tuple of what ``kind`` allows, of a given length if any."""
    inner = as_kind(kind)

    def test(value: Any, sizes: Sizes) -> bool:
        if not isinstance(value, list | tuple) or not all(inner.test(each, sizes) for each in value):
            return False
        return size is None or sizes.agree((size,), (len(value),))

    def words(sizes: Sizes) -> str:
        length = "" if size is None else f" of length {sizes.shown(size)}"
        return f"a list or tuple{length} in which each is {inner.words(sizes)}"

    return Kind(test, words)


def record_of(*kinds: AnyKind) -> Kind:
    """A tuple of fixed length, with a kind for each entry."""
    inner = [as_kind(kind) for kind in kinds]

    def test(value: Any, sizes: Sizes) -> bool:
        fits = isinstance(value, tuple) and len(value) == len(inner)
        return fits and all(kind.test(each, sizes) for kind, each in zip(inner, value, strict=True))

    return Kind(test, lambda sizes: f"a tuple of {', '.join(kind.words(sizes) for kind in inner)}")


def mapping_of(kind: AnyKind) -> Kind:
    """A dictionary from text to what ``kind`` allows."""
    inner = as_kind(kind)
    return Kind(
        lambda value, sizes: isinstance(value, dict) and all(inner.test(each, sizes) for each in value.values()),
        lambda sizes: f"a dictionary in which each is {inner.words(sizes)}",
    )


def part(*names: str, **sizes_of: Size) -> Kind:
    """An object of one of the classes named; keywords are sizes of its own that must be those given."""

    def agrees(value: Any, sizes: Sizes) -> bool:
        found = {own: reduce(getattr, own.split("__"), value) for own in sizes_of}
        return all(sizes.agree((sizes_of[own],), (_size_of(size),)) for own, size in found.items())

    def words(sizes: Sizes) -> str:
        told = "".join(f" with {own.replace('__', '.')} of {sizes.shown(s)}" for own, s in sizes_of.items())
        return f"a {' or '.join(names)}{told}"

    return Kind(lambda value, sizes: type(value).__name__ in names and agrees(value, sizes), words)


def kind_of(base: type, words: str) -> Kind:
    """An object of any class that extends ``base``, those of users among them, which the owner looks into."""
    return Kind(lambda value, _: isinstance(value, base), lambda _: words)


positive = real(0, above=True)
number = Constraint(lambda v: _is_real(v) and -np.inf < v < np.inf, "a finite number")
any_float = Constraint(lambda v: _is_real(v) and not np.isnan(v), "a number, which may be infinite")
text = Constraint(lambda v: isinstance(v, str), "text")


def _is_real(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_fields(owner: str, fields: Mapping[str, Any], kinds: Kinds) -> None:
    """Refuse a field that is not of its kind, by name, with what was got and what was expected."""
    sizes = Sizes(fields)
    for name in (each for each in kinds if each in fields):
        sizes.field, value, kind = name, fields[name], as_kind(kinds[name])
        try:
            holds = kind.test(value, sizes)
        except _NO_SIZE:
            holds = False
        if not holds:
            got, expected = describe(value), kind.words(sizes)
            raise CorruptModelFileError(f"{owner}.{name} in the file is {got}, but must be {expected}")


def describe(value: Any) -> str:
    """Contents of a field, in few words."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    if value is None or isinstance(value, bool | int | float | str):
        shown = repr(value)
        return shown if len(shown) <= _MOST_SHOWN else f"{shown[:_MOST_SHOWN]}…"
    if isinstance(value, list | tuple | dict):
        return f"a {type(value).__name__} of length {len(value)}"
    return f"a {type(value).__name__}"
