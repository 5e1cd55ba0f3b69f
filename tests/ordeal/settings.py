"""Hostile settings: values for every parameter of a constructor, valid ones from its declared constraint and others."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st
from sklearn.base import BaseEstimator

from tests.house import public_functions, public_objects

NUMBERS: dict[str, Any] = {
    "0": 0,
    "1": 1,
    "2": 2,
    "-1": -1,
    "7": 7,
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

_MAKERS: dict[str, Callable[[], Any]] = {
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
        return _recipes()[kind](**({field: _MAKERS[value]()} if field else {}))
    return _MAKERS[name]()


@cache
def _recipes() -> dict[str, Any]:
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
        name for kind, each in _recipes().items() if _is_taken(constraint, each) for name in _variants(kind, each)
    )


def _is_taken(constraint: Any, kind: Any) -> bool:
    try:
        return bool(constraint.test(kind()))
    except Exception:  # it has arguments that it cannot do without
        return False


def _variants(kind: str, each: Any) -> Iterator[str]:
    yield f"{kind}()"
    yield from (f"{kind}({field}={value})" for field in inspect.signature(each).parameters for value in NUMBERS)


def values_for(estimator: Any, parameter: str) -> st.SearchStrategy[str]:
    """Names of values for a parameter: its own words, public recipes that it takes, and what fits or does not."""
    constraint = getattr(estimator, "_constraints", {}).get(parameter)
    drawn = st.sampled_from(list(_MAKERS))
    if constraint is None:
        return drawn
    if constraint.names:
        drawn |= st.sampled_from([f"={name}" for name in dict.fromkeys(constraint.names)])
    own = _recipe_names(constraint)
    return drawn | st.sampled_from(own) if own else drawn


def choices(estimator: Any) -> st.SearchStrategy[dict[str, str]]:
    """One or two settings of an estimator, by the names of their values."""
    pairs = st.sampled_from(sorted(estimator.get_params(deep=False))).flatmap(
        lambda parameter: st.tuples(st.just(parameter), values_for(estimator, parameter))
    )
    return st.lists(pairs, min_size=1, max_size=2).map(dict)


# --------------------------------------------------------------------------------------------------------------- verbs

_OUTWARD = {"fit", "save", "plot", "explore", "cite"}
"""Verbs that have cases of other kinds, or draw and write."""


@cache
def verbs_of(cls: Any) -> dict[str, list[str]]:
    """Public verbs of a class that are the package's own, each with its parameters."""
    members = inspect.getmembers(cls, inspect.isfunction)
    found = {name: _parameters(each) for name, each in members if _is_own(name, each)}
    return {name: parameters for name, parameters in found.items() if parameters}


def _is_own(name: str, member: Any) -> bool:
    return str(member.__module__).startswith("prinfold") and not (
        name in _OUTWARD or name.startswith(("_", "get_", "set_", "to_"))
    )


def _parameters(verb: Any) -> list[str]:
    return [each.name for each in list(inspect.signature(verb).parameters.values())[1:] if _is_plain(each)]


def _is_plain(parameter: inspect.Parameter) -> bool:
    return parameter.kind not in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}


def calls(cls: Any, tables: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A verb of a class with hostile arguments: tables for rows and coordinates, values by name for the others."""
    return st.sampled_from(sorted(verbs_of(cls))).flatmap(lambda verb: _call(cls, verb, tables))


def _call(cls: Any, verb: str, tables: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    parameters = inspect.signature(getattr(cls, verb)).parameters
    drawn = {name: tables if name in {"X", "Z"} else st.sampled_from(list(_MAKERS)) for name in verbs_of(cls)[verb]}
    needed = {name: drawn.pop(name) for name in list(drawn) if parameters[name].default is inspect.Parameter.empty}
    more = st.fixed_dictionaries({}, optional=drawn)
    return st.fixed_dictionaries(
        {"verb": st.just(verb), "arguments": st.builds(lambda a, b: a | b, st.fixed_dictionaries(needed), more)}
    )


# ----------------------------------------------------------------------------------------------------------- functions

_ELSEWHERE = ("plot.", "datasets.load_", "save", "load", "explore", "report")
"""Functions that have cases of other kinds, draw, or read files of their own."""

_TABLES = {"X", "Z", "x", "counts", "latent", "projected", "nodes", "vertices", "truth", "jacobian", "tangents"}
_MODELS = {"model", "estimator"}
_PLAIN = {"n_samples": "7", "folds": "2", "noise": "0.5", "noise_kind": "=isotropic", "rng": "0", "random_state": "0"}
_OWN_CODE = {"function", "class"}
"""What is called as the user's own function, and may then raise what it likes."""


@cache
def functions() -> dict[str, Any]:
    """Public functions by their names within the package."""
    named = {name.removeprefix("prinfold."): each for name, each in public_functions().items()}
    return {name: each for name, each in named.items() if not name.startswith(_ELSEWHERE)}


def function_calls(tables: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A public function with hostile arguments: tables, a model, values by name."""
    return st.sampled_from(sorted(functions())).flatmap(lambda name: _function_call(name, tables))


def _function_call(name: str, tables: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    parameters = {key: each for key, each in inspect.signature(functions()[name]).parameters.items() if _is_plain(each)}
    drawn = {key: _values(key, tables) for key in parameters}
    needed = {key: drawn.pop(key) for key in list(drawn) if parameters[key].default is inspect.Parameter.empty}
    some = st.lists(st.sampled_from(sorted(drawn)), max_size=2, unique=True) if drawn else st.just([])
    more = some.flatmap(lambda keys: st.fixed_dictionaries({key: drawn[key] for key in keys}))
    arguments = st.builds(lambda a, b: a | b, st.fixed_dictionaries(needed), more)
    return st.fixed_dictionaries({"function": st.just(name), "arguments": arguments})


def _values(parameter: str, tables: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    own = _OWN_CODE if parameter in {"sampling", "recipe", "latent_distance", "jacobian"} else set()
    drawn: st.SearchStrategy[Any] = st.sampled_from([each for each in _MAKERS if each not in own])
    if parameter in _TABLES:
        drawn = tables | drawn
    if parameter in _MODELS:
        drawn = st.just("a model") | drawn
    return st.just(_PLAIN[parameter]) | drawn if parameter in _PLAIN else drawn
