"""Failures of arithmetic and memory inside a fit, told in words: which columns or settings they come from.

A fit checks its table and settings before it begins. Numbers that pass may still lead out of double precision together:
columns in units that are 1e100 apart, or a setting at the far end of its range. Every ``fit`` goes through one gate,
:func:`name_failures`, so that nothing leaves it that has no name and no remedy.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from prinfold.exceptions import DegenerateWarning, InvalidDataError, NotEnoughMemoryError, PrinfoldError, warn_caller
from prinfold.validation.refusals import column_labels
from prinfold.validation.tables import forget

F = TypeVar("F", bound=Callable[..., Any])

_FAR_APART = 1e6
"""How many times as wide as another a column may spread before the two are named."""

_NOT_FINITE = re.compile(r"\b(finite|nan|infs?|infinity)\b", re.IGNORECASE)
"""Words by which libraries tell that numbers were not finite, in errors of no kind of their own."""


def name_failures(fit: F) -> F:
    """A ``fit`` whose failures of arithmetic and memory are errors of prinfold, which say what to change.

    Floating-point warnings of NumPy become an error where the model is not finite, and one warning where it is.
    """

    @wraps(fit)
    def named(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        left: set[str] = set()
        try:
            with np.errstate(over="call", invalid="call", divide="call", call=lambda kind, flag: left.add(kind)):
                found = fit(self, X, *args, **options)
        except PrinfoldError:
            raise
        except MemoryError as error:
            raise NotEnoughMemoryError(f"{_name(self)} ran out of memory in the fit: {error}; {_SMALLER}") from error
        except (ArithmeticError, np.linalg.LinAlgError, ValueError) as error:
            if type(error) is ValueError and not _NOT_FINITE.search(str(error)):
                raise
            raise InvalidDataError(_refusal(self, X, str(error))) from error
        if left:
            _judge(self, X, " and ".join(sorted(left)))
        return found

    return named  # type: ignore[return-value]


_SMALLER = "fit fewer rows or columns, or ask for less: fewer nodes, basis functions or maps"


def _name(estimator: Any) -> str:
    return type(estimator).__name__


def _judge(estimator: Any, X: Any, events: str) -> None:
    """Refuse a model that is not finite after arithmetic left double precision; warn of one that is."""
    held = [value for name, value in vars(estimator).items() if name.endswith("_")]
    numbers = [value for value in held if isinstance(value, float | np.ndarray) and np.asarray(value).dtype.kind == "f"]
    if all(np.isfinite(value).all() for value in numbers):
        words = f"{_name(estimator)}: numbers left double precision in the fit ({events}), and rows that are far "
        return warn_caller(f"{words}from the others may count for nothing. {_remedy(estimator, X)}", DegenerateWarning)
    forget(estimator)
    raise InvalidDataError(_refusal(estimator, X, f"numbers left double precision ({events})"))


def _refusal(estimator: Any, X: Any, reason: str) -> str:
    return f"{_name(estimator)} cannot be fitted to these rows: {reason.rstrip('.')}. {_remedy(estimator, X)}"


def _remedy(estimator: Any, X: Any) -> str:
    """Advice: columns that are far apart, by name, or else the settings."""
    spreads = _column_spreads(X)
    if len(spreads) and spreads.max() > _FAR_APART * spreads.min():
        labels = column_labels(estimator, len(spreads))
        wide, narrow = int(spreads.argmax()), int(spreads.argmin())
        return (
            f"{labels[wide]} spreads over {spreads[wide]:.3g} and {labels[narrow]} over {spreads[narrow]:.3g}; look "
            "for rows that were mistyped, or scale the columns first, for example with "
            "sklearn.preprocessing.StandardScaler."
        )
    return "Bring settings that are very small or very large nearer to their defaults, or scale the columns first."


def _column_spreads(X: Any) -> Any:
    """(D,) ranges of the columns of a table; empty where it is no plain one."""
    try:
        table = np.asarray(X, dtype=np.float64)
        return np.ptp(table, axis=0) if table.ndim == 2 else np.empty(0)
    except Exception:  # whatever went wrong with the table before goes wrong again
        return np.empty(0)
