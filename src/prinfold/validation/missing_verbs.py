"""Refusals of objects of a user's own that lack what a part of a model is asked for, by the names of what is missing.

A noise makes nodes, nodes make sums, a basis is bound to a latent space: what such parts can do is known when they are
asked. Python then raises an AttributeError, from which these errors are made.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from prinfold.exceptions import InvalidParameterError

_PACKAGE = __name__.partition(".")[0]


def refuse_missing_verb(error: AttributeError) -> None:
    """Raise an error that names what an object of a user's own lacks, if this package asked it and got no answer.

    Attributes that code of the user's own looks for are none of ours, and built-in objects are no parts of a model.
    """
    owner, name = error.obj, error.name
    if owner is None or name is None or _root(type(owner).__module__) in {_PACKAGE, *sys.stdlib_module_names}:
        return
    asking = _asking_module(error)
    if _root(asking) != _PACKAGE:
        return
    kind, has = type(owner).__name__, set(dir(owner))
    known = ((len(verbs & has), protocol, verbs) for protocol, verbs in _protocols() if name in verbs)
    alike = [each for each in known if 2 * each[0] >= len(each[2])]  # with half of the verbs it is meant to be one
    if not alike:
        words = f"{kind} lacks {name}, which {asking} asks it for; write it, or derive {kind} from a class that has it"
        raise InvalidParameterError(words) from error
    _, protocol, verbs = max(alike, key=lambda each: (each[0], each[1].__name__))
    raise InvalidParameterError(
        f"{kind} lacks {', '.join(sorted(verbs - has))}, but stands where {protocol.__name__} of {protocol.__module__} "
        f"is needed, which has {', '.join(sorted(verbs))}; write what is missing"
    ) from error


def _root(module: str) -> str:
    return module.partition(".")[0] if module != "__main__" else ""  # a script is one of a user's


def _asking_module(error: AttributeError) -> str:
    """The module in which the error was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))


def _protocols() -> Iterator[tuple[type, set[str]]]:
    """Protocols of this package that are loaded, which those are whose verbs have been asked for; with their verbs."""
    modules = [module for name, module in sys.modules.items() if _root(name) == _PACKAGE]
    values: list[Any] = [value for module in modules for value in list(vars(module).values())]
    for each in {value for value in values if isinstance(value, type)}:
        if vars(each).get("_is_protocol"):
            yield each, {name for base in each.__mro__ for name in _public(base)}


def _public(base: type) -> set[str]:
    return {name for name in (*vars(base), *vars(base).get("__annotations__", {})) if not name.startswith("_")}
