"""Checks of the arguments that simulators share: wrong ones are refused by name before anything is drawn."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from inspect import signature
from typing import Any, TypeVar

import numpy as np

from prinfold.validation.failures import name_call_failures
from prinfold.validation.settings import Constraint, check_call, flag, instance_of, is_number, nothing, several

F = TypeVar("F", bound=Callable[..., Any])


_LARGEST_SIZE = 100_000
"""Columns, harmonics, pixels and so on that a data set has at most."""

_WHOLE = Constraint(lambda v: is_number(v, numbers.Integral), "a whole number")
_SIZE = Constraint(lambda v: _WHOLE.test(v) and v <= _LARGEST_SIZE, f"a whole number of at most {_LARGEST_SIZE}")
_NUMBER = Constraint(lambda v: is_number(v, numbers.Real) and not np.isnan(float(v)), "a number")
_NUMBERS = several(_NUMBER, "numbers")
_PAIR = Constraint(lambda v: _NUMBERS.test(v) and len(v) == 2, "a pair of numbers")
_TEXT = instance_of(str, words="a name")
_SEED = Constraint(lambda v: np.random.default_rng(v) is not None, "None, a whole number of at least 0 or a Generator")

_KINDS: dict[str, Constraint] = {
    **dict.fromkeys(("n_harmonics", "n_cycles", "n_sequences", "n_points", "n_pixels", "n_teeth"), _SIZE),
    **dict.fromkeys(("noise", "variation", "height", "concentration", "fixed", "rolling", "arm", "bend"), _NUMBER),
    **dict.fromkeys(("fog", "frames", "whorls", "dispersion", "integration_time"), _NUMBER),
    "n_samples": _WHOLE,
    **dict.fromkeys(("noise_kind", "reading", "kind", "gait", "name", "flow", "description"), _TEXT),
    "n_features": nothing | _SIZE,
    "counts": nothing | _NUMBER,
    "radius": _NUMBER | _NUMBERS,
    "radii": _PAIR,
    "windings": Constraint(lambda v: _PAIR.test(v) and all(map(_SIZE.test, v)), "a pair of whole numbers"),
    "lengths": _NUMBER | _NUMBERS,
    "densities": _NUMBER | _NUMBERS,
    "body": _TEXT | Constraint(lambda v: isinstance(v, tuple | list) and all(map(_TEXT.test, v)), "a tuple of names"),
    "closed": flag,
    "rng": _SEED,
    "sampling": _TEXT | Constraint(callable, "a function of the number of rows and a generator"),
}
"""Type of each argument by its name, in every simulator; ranges are checked by the simulators."""


def check_kinds(maker: F) -> F:
    """Wrap a simulator so that its arguments are checked first and rows of NaN are refused."""
    parameters = signature(maker).parameters
    own = {} if "n_features" not in parameters or parameters["n_features"].default is None else {"n_features": _SIZE}
    return name_call_failures(check_call(**_KINDS | own)(maker))
