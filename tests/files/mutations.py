"""Model files that are consistent but wrong: every stored part altered in turn, under a digest that is right."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save as pack

from prinfold import files

Body = dict[str, Any]
Arrays = dict[str, Any]


class Mutant(NamedTuple):
    """A file with one part altered."""

    field: str
    """Where the part stands, outermost first, with dots between."""
    change: str
    body: Body
    arrays: Arrays

    @property
    def names(self) -> list[str]:
        """Names of the part and of what it is in."""
        return self.field.split(".")


MISSING = object()


def dismantle(path: Path) -> tuple[Body, Arrays]:
    with safe_open(path, framework="numpy") as stream:
        body = json.loads(stream.metadata()["prinfold"])
        return body, {name: stream.get_tensor(name) for name in list(stream.keys())}


def forge(path: Path, body: Any, arrays: Arrays) -> Path:
    """A file whose digest is right whatever it says: the digest guards against accidents, not malice."""
    if isinstance(body, dict):
        body.pop("digest", None)
        body["digest"] = files._digest(body, arrays)
    path.write_bytes(pack(arrays, metadata={"prinfold": json.dumps(body)}))
    return path


def mutants(body: Body, arrays: Arrays) -> Iterator[Mutant]:
    """Every part of a file, altered in every way that makes it wrong, one at a time."""
    for route, field in _places(body["model"], [], "", "model"):
        old = _at(body["model"], route)
        for change, new in _changes(old, arrays):
            altered, kept = copy.deepcopy(body), dict(arrays)
            if isinstance(new, np.ndarray):
                kept[old["$array"]] = new
            elif new is MISSING:
                inside = _at(altered["model"], route[:-1])
                if not isinstance(inside, dict):
                    continue
                del inside[route[-1]]
            else:
                _at(altered["model"], route[:-1])[route[-1]] = new
            yield Mutant(field, change, altered, kept)


def _at(tree: Any, route: list[Any]) -> Any:
    for step in route:
        tree = tree[step]
    return tree


def _places(tree: Any, route: list[Any], field: str, kind: str) -> Iterator[tuple[list[Any], str]]:
    """Every part of an object and of what is in it; recipes are settings that nothing is computed with."""
    if route and kind != "part":
        yield route, field
    if isinstance(tree, list):
        for i, each in enumerate(tree[:2]):
            yield from _places(each, [*route, i], field, "item")
    if not isinstance(tree, dict):
        return
    if "$dict" in tree:
        for name, each in tree["$dict"].items():
            yield from _places(each, [*route, "$dict", name], f"{field}.{name}".strip("."), "field")
    elif "$tuple" in tree:
        for i, each in enumerate(tree["$tuple"][:2]):
            yield from _places(each, [*route, "$tuple", i], field, "item")
    elif "$object" in tree:
        for part in ("init", "fitted"):
            if part in tree:
                yield from _places(tree[part], [*route, part], field, "part")
    elif "$pipeline" in tree:
        for i, (label, step) in enumerate(tree["$pipeline"]):
            yield from _places(step, [*route, "$pipeline", i, 1], f"{field}.{label}".strip("."), "item")


def _changes(value: Any, arrays: Arrays) -> Iterator[tuple[str, Any]]:
    yield "missing", MISSING
    if isinstance(value, dict) and "$array" in value:
        yield from _array_changes(arrays[value["$array"]])
        yield "type: number", -3.5
    elif isinstance(value, dict) and "$strings" in value:
        yield "shape: shorter", {"$strings": value["$strings"][:-1]}
        yield "type: numbers", {"$tuple": [1, 2]}
    elif isinstance(value, dict) and "$tuple" in value:
        yield "shape: shorter", {"$tuple": value["$tuple"][:-1]}
        yield "shape: longer", {"$tuple": value["$tuple"] + value["$tuple"][-1:]}
    elif isinstance(value, list):
        yield "shape: shorter", value[:-1]
        yield "shape: longer", value + value[-1:]
    elif isinstance(value, bool):
        yield "type: number", 3
    elif isinstance(value, int):
        yield "type: fraction", value + 0.5
    if isinstance(value, float | int) and not isinstance(value, bool):
        yield "NaN", {"$float": "nan"}
    if not isinstance(value, str):
        yield "type: text", "zzz"
    else:
        yield "type: number", 3
        yield "unknown text", "zzz"
    yield "type: mapping", {"$dict": {"zzz": 1}}
    if value is not None:
        yield "type: nothing", None


def _array_changes(array: Any) -> Iterator[tuple[str, Any]]:
    if array.ndim and len(array):
        yield "shape: shorter", array[:-1]
        yield "shape: longer", np.concatenate([array, array[-1:]])
        yield "shape: empty", array[:0]
    if array.ndim > 1:
        yield "shape: narrower", array[..., :-1].copy()
        yield "shape: flat", array.ravel()
    yield "shape: one axis more", array[..., None].copy()
    yield "shape: none", np.zeros((), array.dtype)
    if array.dtype.kind == "f":
        yield "dtype: whole numbers", array.astype(np.int64)
        broken = array.copy()
        broken.flat[:1] = np.nan
        yield "NaN", broken
    else:
        yield "dtype: fractions", array + 0.5
    if array.dtype.kind != "b":
        yield "dtype: flags", array > 0
