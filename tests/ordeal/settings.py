"""Hostile settings: values for every parameter of a constructor, valid ones from its declared constraint and others."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st
from sklearn.base import BaseEstimator

from tests.house import public_objects

NUMBERS: dict[str, Any] = {
    "0": 0,
    "1": 1,
    "2": 2,
    "-1": -1,
    "7": 7,
    "3000": 3000,
    "10**6": 10**6,
    "10**9": 10**9,
    "10**12": 10**12,
    "10**400": 10**400,
    "0.5": 0.5,
    "0.0": 0.0,
    "-0.5": -0.5,
    "1.5": 1.5,
    "1e-8": 1e-8,
    "1e8": 1e8,
    "1e-300": 1e-300,
    "1e300": 1e300,
    "5e-324": 5e-324,
    "just below 1": float(np.nextafter(1.0, 0.0)),
    "just above 1": float(np.nextafter(1.0, 2.0)),
    "nan": np.nan,
    "inf": np.inf,
    "-inf": -np.inf,
    "float32": np.float32(0.3),
    "int8": np.int8(3),
}

MAKERS: dict[str, Callable[[], Any]] = {
    **{name: lambda value=value: value for name, value in NUMBERS.items()},
    "None": lambda: None,
    "True": lambda: True,
    "False": lambda: False,
    "complex": lambda: 1j,
    "empty text": lambda: "",
    "text": lambda: "sideways",
    "surrogate": lambda: "\ud800",
    "empty tuple": tuple,
    "pair": lambda: (3, 3),
    "pair of 0": lambda: (0, 3),
    "pair of 1": lambda: (1, 1),
    "pair of gaps": lambda: (np.nan, 1.0),
    "tiny pair": lambda: (1e-300, 1e300),
    "many": lambda: (2,) * 40,
    "list": lambda: [2, 2],
    "empty list": list,
    "nested": lambda: [[1], [2, 3]],
    "dict": dict,
    "dict of numbers": lambda: {0: 0.5, 1: 0.5},
    "set": lambda: {1},
    "object": object,
    "class": lambda: dict,
    "function": lambda: abs,
    "array": lambda: np.linspace(-1, 1, 6).reshape(3, 2),
    "array of text": lambda: np.array([["a", "b"]]),
    "array of complex numbers": lambda: np.ones((16, 2), dtype=complex),
    "places": lambda: np.random.default_rng(0).normal(size=(16, 2)),
    "places far out": lambda: np.full((16, 2), 1e300),
    "list of objects": lambda: [object(), None],
    "list of 10**400": lambda: [10**400, 1],
    "empty array": lambda: np.zeros((0, 2)),
    "array of gaps": lambda: np.full((3, 2), np.nan),
    "vector": lambda: np.arange(3.0),
    "true for all rows": lambda: np.ones(16, dtype=bool),
    "generator": lambda: np.random.default_rng(0),
}
"""Values by name; each is made anew, so that no case changes another's."""


def value_of(name: str) -> Any:
    """The value that a name stands for: ``=spline`` is text, ``KernelSmoother(bandwidth=1e-300)`` a public recipe."""
    if name.startswith("="):
        return name[1:]
    if "(" in name:
        kind, _, inner = name.removesuffix(")").partition("(")
        field, _, value = inner.partition("=")
        return recipes()[kind](**({field: MAKERS[value]()} if field else {}))
    return MAKERS[name]()


@cache
def recipes() -> dict[str, Any]:
    """Public classes that are no estimators: noises, bases, smoothers, kernels and so on."""
    return {
        each.__name__: each
        for _, each in public_objects()
        if inspect.isclass(each) and not issubclass(each, BaseEstimator | Exception) and each.__name__ != "Blocks"
    }


@cache
def _recipe_names(constraint: Any) -> tuple[str, ...]:
    """Recipes that a parameter takes, plain and with a hostile number in each of their fields."""
    return tuple(
        name for kind, each in recipes().items() if _is_taken(constraint, each) for name in _variants(kind, each)
    )


def _is_taken(constraint: Any, kind: Any) -> bool:
    try:
        return bool(constraint.test(kind()))
    except Exception:  # it has arguments that it cannot do without
        return False


def _variants(kind: str, each: Any) -> Iterator[str]:
    yield f"{kind}()"
    yield from (f"{kind}({field}={value})" for field in inspect.signature(each).parameters for value in NUMBERS)


def _values(constraint: Any) -> list[str]:
    """Values that may go wrong by the package's fault: a function that a parameter takes runs as the user's code."""
    own = {name for name in OWN_CODE if constraint is not None and constraint.test(MAKERS[name]())}
    return [name for name in MAKERS if name not in own]


OWN_CODE = {"function", "class"}
"""What is called as the user's own function, and may then raise what it likes."""


def values_for(estimator: Any, parameter: str) -> st.SearchStrategy[str]:
    """Names of values for a parameter: its own words, public recipes that it takes, and what fits or does not."""
    constraint = getattr(estimator, "_constraints", {}).get(parameter)
    drawn = st.sampled_from(_values(constraint))
    if constraint is None:
        return drawn
    if constraint.names:
        drawn |= st.sampled_from([f"={name}" for name in dict.fromkeys(constraint.names)])
    own = _recipe_names(constraint)
    return drawn | st.sampled_from(own) if own else drawn


def single_choices(estimator: Any) -> Iterator[dict[str, str]]:
    """Every setting of an estimator by itself, with every value that could be drawn for it."""
    for parameter in sorted(estimator.get_params(deep=False)):
        constraint = getattr(estimator, "_constraints", {}).get(parameter)
        own = () if constraint is None else (*(f"={name}" for name in dict.fromkeys(constraint.names)),)
        recipes = () if constraint is None else _recipe_names(constraint)
        yield from ({parameter: value} for value in (*_values(constraint), *own, *recipes))


def choices(estimator: Any) -> st.SearchStrategy[dict[str, str]]:
    """One or two settings of an estimator, by the names of their values."""
    pairs = st.sampled_from(sorted(estimator.get_params(deep=False))).flatmap(
        lambda parameter: st.tuples(st.just(parameter), values_for(estimator, parameter))
    )
    return st.lists(pairs, min_size=1, max_size=2).map(dict)


# --------------------------------------------------------------------------------------------------------------- verbs

_OUTWARD = {"save", "explore"}
"""Verbs that have cases of other kinds."""


@cache
def verbs_of(cls: Any) -> dict[str, list[str]]:
    """Public verbs of a class that are the package's own, each with its parameters."""
    members = inspect.getmembers(cls, inspect.isfunction)
    found = {name: _parameters(each) for name, each in members if _is_own(name, each)}
    return {name: parameters for name, parameters in found.items() if parameters}


def _is_own(name: str, member: Any) -> bool:
    return str(member.__module__).startswith("prinfold") and not (
        name in _OUTWARD or name.startswith(("_", "get_", "set_"))
    )


def _parameters(verb: Any) -> list[str]:
    return [each.name for each in list(inspect.signature(verb).parameters.values())[1:] if is_plain(each)]


def is_plain(parameter: inspect.Parameter) -> bool:
    """Whether a parameter can be given by its name."""
    return parameter.kind not in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}


def calls(cls: Any, tables: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A verb of a class with hostile arguments: tables for rows and coordinates, values by name for the others."""
    return st.sampled_from(sorted(verbs_of(cls))).flatmap(lambda verb: _call(cls, verb, tables))


def _call(cls: Any, verb: str, tables: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    parameters = inspect.signature(getattr(cls, verb)).parameters
    drawn = {name: tables if name in {"X", "Z"} else st.sampled_from(list(MAKERS)) for name in verbs_of(cls)[verb]}
    needed = {name: drawn.pop(name) for name in list(drawn) if parameters[name].default is inspect.Parameter.empty}
    more = st.fixed_dictionaries({}, optional=drawn)
    return st.fixed_dictionaries(
        {"verb": st.just(verb), "arguments": st.builds(lambda a, b: a | b, st.fixed_dictionaries(needed), more)}
    )
