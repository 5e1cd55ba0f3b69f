"""Checks of settings: the values that each may have, and the message that refuses others."""

from __future__ import annotations

import difflib
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from inspect import signature
from typing import Any, TypeVar

import numpy as np

from prinfold._typing import RandomState
from prinfold.devices import Device
from prinfold.exceptions import InvalidParameterError, shown

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Constraint:
    """Values that a parameter may have: a test, the words that describe it, and the names among its values."""

    test: Callable[[Any], bool]
    words: str
    names: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    """The words of each alternative, where there are several."""

    def __post_init__(self) -> None:
        # A value that a test cannot even look at does not pass it.
        object.__setattr__(self, "test", partial(_holds, self.test))

    def __or__(self, other: Constraint) -> Constraint:
        if not isinstance(other, Constraint):
            return NotImplemented
        parts = (*(self.parts or (self.words,)), *(other.parts or (other.words,)))
        return Constraint(lambda v: self.test(v) or other.test(v), _either(parts), self.names + other.names, parts)

    def refusal(self, name: str, value: Any) -> str:
        """The message that refuses a value, with the name that was probably meant."""
        near = difflib.get_close_matches(value.lower(), self.names, 1) if isinstance(value, str) else []
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"{name} must be {self.words}, got {shown(value)}{hint}"


def _holds(test: Callable[[Any], bool], value: Any) -> bool:
    try:
        return bool(test(value))
    except (TypeError, ValueError, OverflowError, AttributeError):
        return False


def _either(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}"


def is_number(value: Any, kind: type) -> bool:
    """Whether a value is a number of some kind; booleans are not numbers here."""
    return isinstance(value, kind) and not isinstance(value, bool)


_LARGEST = float(np.finfo(float).max)
"""A whole number beyond this, of which Python has more, becomes no float."""


def integer(minimum: int, maximum: int | None = None) -> Constraint:
    """A whole number, at least ``minimum`` and at most ``maximum``."""
    words = f"of at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
    return Constraint(
        lambda v: is_number(v, numbers.Integral) and minimum <= v <= (v if maximum is None else maximum),
        f"a whole number {words}",
    )


def real(minimum: float, *, above: bool = False, maximum: float = _LARGEST) -> Constraint:
    """A finite number, at least (or above) ``minimum`` and at most ``maximum``."""

    def test(value: Any) -> bool:
        # Compared rather than asked whether finite: a whole number may be too large to become a float. NumPy would
        # compare in single precision, which has no such limit.
        value = value.item() if isinstance(value, np.generic) else value
        if not is_number(value, numbers.Real) or not -_LARGEST <= value <= maximum:
            return False
        return bool(value > minimum if above else value >= minimum)

    most = "" if maximum == _LARGEST else f" and at most {maximum:g}"
    return Constraint(test, f"a finite number {'above' if above else 'of at least'} {minimum:g}{most}")


def one_of(options: Mapping[str, Any] | Sequence[str]) -> Constraint:
    """One of a few names."""
    shown = tuple(map(repr, options))
    return Constraint(lambda v: isinstance(v, str) and v in options, _either(shown), tuple(options), shown)


def several(each: Constraint, words: str) -> Constraint:
    """A tuple or list, not empty, of what ``each`` allows."""
    return Constraint(
        lambda value: isinstance(value, tuple | list) and len(value) > 0 and all(map(each.test, value)),
        f"a tuple of {words}",
    )


def instance_of(*types: type, words: str) -> Constraint:
    """An instance of a class."""
    return Constraint(lambda v: isinstance(v, types), words)


fraction = Constraint(lambda v: is_number(v, numbers.Real) and 0 < v < 1, "a number above 0 and below 1")
nothing = Constraint(lambda v: v is None, "None")

flag = Constraint(lambda v: isinstance(v, bool | np.bool_), "True or False")

device_name = nothing | Constraint(lambda v: isinstance(v, str | Device), "the name of a device, such as 'cuda'")

axis_counts = integer(1) | Constraint(
    lambda v: isinstance(v, tuple | list) and len(v) > 0 and all(integer(1).test(i) for i in v),
    "a tuple of such numbers (one per latent axis)",
)

random_state = Constraint(
    lambda v: v is None or integer(0).test(v) or isinstance(v, np.random.RandomState | np.random.Generator),
    "None, a whole number of at least 0, a RandomState or a Generator",
)


n_processes = nothing | Constraint(
    lambda v: is_number(v, numbers.Integral) and v != 0 and -(2**15) <= v < 2**15, "a whole number of processes, not 0"
)

seeds = random_state | Constraint(
    lambda v: np.random.default_rng(v) is not None, "whatever else NumPy takes for a seed"
)


_MOST_REFITS = 100_000
"""Fits to rows drawn anew that a verb makes at most: any share of them is then known to a sixth of a per cent."""


def refits(minimum: int) -> Constraint:
    """Number of times that a model is fitted to rows drawn anew."""
    return integer(minimum, _MOST_REFITS)


_ARGUMENTS = {
    "extrapolate": flag,
    "return_latent": flag,
    "return_std": flag,
    "random_state": random_state,
    "resolution": nothing | integer(2),
    "threshold": nothing | fraction,
    "level": fraction,
    "length": nothing | integer(1),
    "n_samples": refits(1),
    "n_steps": integer(1),
    "n_columns": integer(1),
}
"""Settings of verbs that mean the same wherever they stand."""


def check_arguments(given: Mapping[str, Any]) -> None:
    """Check those of a verb's arguments that mean the same in every verb."""
    for name in given.keys() & _ARGUMENTS.keys():
        check_setting(name, given[name], _ARGUMENTS[name])


def check_setting(name: str, value: Any, constraint: Constraint) -> None:
    """Check one setting of a verb."""
    if not constraint.test(value):
        raise InvalidParameterError(constraint.refusal(name, value))


def check_call(**constraints: Constraint) -> Callable[[F], F]:
    """Decorator of a function that checks those of its arguments that constraints are given for, before it begins."""

    def decorate(function: F) -> F:
        names = tuple(signature(function).parameters)

        @wraps(function)
        def checked(*args: Any, **options: Any) -> Any:
            given = dict(zip(names, args, strict=False)) | options
            for name in given.keys() & constraints.keys():
                check_setting(name, given[name], constraints[name])
            return function(*args, **options)

        return checked  # type: ignore[return-value]

    return decorate


def check_settings(recipe: Any, constraints: Mapping[str, Constraint]) -> None:
    """Check settings of a recipe that constraints are given for."""
    for name, constraint in constraints.items():
        if not constraint.test(value := getattr(recipe, name)):
            raise InvalidParameterError(f"{type(recipe).__name__}: {constraint.refusal(name, value)}")


def check_parameters(estimator: Any, constraints: Mapping[str, Constraint]) -> None:
    """Check every parameter of an estimator against its table."""
    names = estimator.get_params(deep=False)
    if missing := [name for name in names if name not in constraints]:
        raise NotImplementedError(f"{type(estimator).__name__} has no constraint for {missing}: add it to _constraints")
    check_settings(estimator, {name: constraints[name] for name in names})


def as_generator(random_state: RandomState) -> np.random.Generator:
    """A NumPy generator from whatever scikit-learn's users pass as ``random_state``."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1))
    check_setting("random_state", random_state, seeds)
    return np.random.default_rng(random_state)
