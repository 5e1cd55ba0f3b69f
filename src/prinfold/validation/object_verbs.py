"""A gate on the verbs of objects that are no estimators: latent spaces, densities, true surfaces, results.

Inside the package the same verbs are called many times over with arrays that are right. These pass after a look at
their shape; whatever else comes is turned into one, or refused by the name of the argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from sys import _getframe
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from prinfold.exceptions import InvalidDataError, NotEnoughMemoryError, PrinfoldError, quantity, shown
from prinfold.validation.settings import Constraint, check_setting
from prinfold.validation.tables import as_numbers

C = TypeVar("C", bound=type)
Width = Callable[[Any], int]
"""How many columns the table of an argument has, by the object that is asked."""

_UNFIT = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""Errors of Python and NumPy for arguments that do not go together."""


def check_verbs(tables: Mapping[str, Width | None] | None = None, /, **settings: Constraint) -> Callable[[C], C]:
    """Class decorator: public verbs of a class, and of its subclasses, check their arguments by name.

    ``tables`` says which arguments are tables, and of how many columns; None is any number.
    """

    def decorate(cls: C) -> C:
        base: Any = cls

        def gate_subclass(subclass: Any, /, **options: Any) -> None:
            super(base, subclass).__init_subclass__(**options)
            _gate(subclass, tables or {}, settings)

        _gate(cls, tables or {}, settings)
        base.__init_subclass__ = classmethod(gate_subclass)
        return cls

    return decorate


def _gate(cls: type, tables: Mapping[str, Width | None], settings: Mapping[str, Constraint]) -> None:
    for name, member in list(vars(cls).items()):
        if isinstance(member, FunctionType) and not name.startswith("_"):
            setattr(cls, name, _checked(member, tables, settings))


def _checked(verb: FunctionType, tables: Mapping[str, Width | None], settings: Mapping[str, Constraint]) -> Any:
    parameters = dict(list(signature(verb).parameters.items())[1:])
    own = [(name, settings[name]) for name in parameters if name in settings]
    widths = [(name, tables[name], each.default is None) for name, each in parameters.items() if name in tables]
    names = [name for name, each in parameters.items() if each.kind is Parameter.POSITIONAL_OR_KEYWORD]

    @wraps(verb)
    def checked(self: Any, *args: Any, **options: Any) -> Any:
        given = dict(zip(names, args, strict=False)) | options
        for name, constraint in own:
            if name in given:
                check_setting(name, given[name], constraint)
        for name, width, optional in widths:
            if name in given and not (optional and given[name] is None):
                given[name] = _table(name, given[name], None if width is None else width(self))
        try:
            return verb(self, *args[len(names) :], **given)
        except PrinfoldError:
            raise
        except MemoryError as error:
            raise NotEnoughMemoryError(f"{verb.__name__} ran out of memory: {error}; ask for less") from error
        except _UNFIT as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is None:  # no such call: Python says why
                raise
            if _getframe(1).f_globals["__name__"].startswith("prinfold."):  # the verb that called names it
                raise
            raise InvalidDataError(_refusal(self, verb, given, error)) from error

    return checked


def _refusal(owner: Any, verb: FunctionType, given: Mapping[str, Any], error: Exception) -> str:
    """A refusal that names the arguments given, arrays by their shapes, and why they do not go together."""
    words = (f"{name} {getattr(each, 'shape', None) or shown(each)}" for name, each in given.items())
    return f"{type(owner).__name__}.{verb.__name__} cannot use these together: {', '.join(words)} ({error})"


def _table(name: str, value: Any, n_columns: int | None) -> Any:
    """A table of so many columns."""
    if type(value) is np.ndarray and _fits(value, n_columns):
        return value
    found = as_numbers(name, value)
    if not _fits(found, n_columns):
        columns = "rows and columns" if n_columns is None else f"rows of {quantity(n_columns, 'column')}"
        raise InvalidDataError(f"{name} must have {columns}, got an array of shape {found.shape}")
    return found


def _fits(array: Any, n_columns: int | None) -> bool:
    return array.dtype.kind in "fiu" and array.ndim == 2 and n_columns in (None, array.shape[1])
