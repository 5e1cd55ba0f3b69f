"""Errors for failures of arithmetic and memory in a public verb, which name the columns or settings at fault.

A verb checks its table and settings before it begins. Numbers that pass may still lead out of double precision
together: columns in units that are 1e100 apart, a setting at the far end of its range, a row far from all that the
model knows. Every public verb of an estimator goes through one gate, :func:`name_failures`, so that nothing leaves it
that has no name and no remedy, and no answer is NaN in silence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from inspect import signature
from types import FunctionType
from typing import Any, TypeVar

import narwhals.stable.v1 as nw
import numpy as np

from prinfold.devices.foreign_arrays import answer_at_home, home_of
from prinfold.exceptions import (
    CheckpointError,
    DegenerateWarning,
    InvalidDataError,
    ModelFileError,
    NotEnoughMemoryError,
    PrinfoldError,
    warn_caller,
)
from prinfold.validation.dask_verbs import ask_partitions, is_dask
from prinfold.validation.missing_verbs import refuse_missing_verb
from prinfold.validation.refusals import column_labels
from prinfold.validation.settings import check_arguments
from prinfold.validation.table_warnings import warn_about_table
from prinfold.validation.tables import forget


@dataclass
class _Fit:
    """A fit that is under way: its arguments by name, and the checkpoint that it goes on from, if there is one.

    ``require_sound`` refuses a model that no fit leaves.
    """

    arguments: Mapping[str, Any]
    checkpoint: str | None = None
    require_sound: Callable[[Any], None] | None = None


_FITTING: ContextVar[_Fit | None] = ContextVar("fitting", default=None)
"""The fit that is under way, the outermost of several; None where there is none."""


def fit_arguments() -> Mapping[str, Any]:
    """Arguments by name that the outermost fit under way was called with."""
    fit = _FITTING.get()
    return {} if fit is None else fit.arguments


def record_resumption(path: str, require_sound: Callable[[Any], None]) -> None:
    """Record that the fit under way resumes from a file: errors that no other fit raises are then laid to that file."""
    if (fit := _FITTING.get()) is not None:
        fit.checkpoint, fit.require_sound = path, require_sound


class _VerbContext:
    """Holds the maker of context managers in which verbs run: empty ones, until :func:`show_verbs` sets another."""

    within: Callable[[str], AbstractContextManager[object]] = staticmethod(lambda name: nullcontext())


def show_verbs(within: Callable[[str], AbstractContextManager[object]]) -> None:
    """Run every public verb in the context manager ``within(name)``, such as a line that shows the time it takes."""
    _VerbContext.within = staticmethod(within)


F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

_UNLIKE_RANGES = 1e6
"""How many times as wide as another a column may spread before the two are named."""

_NOT_FINITE = re.compile(r"\b(finite|nan|infs?|infinity)\b", re.IGNORECASE)
"""Words in the messages of libraries that raise a plain error where numbers are not finite."""

_ERRORS_AFTER_OVERFLOW = (TypeError, ValueError, LookupError, RecursionError, AssertionError)
"""Errors that have causes of their own, unless numbers overflowed before: then they are consequences of that."""


def gate_verbs(cls: C) -> C:
    """The class with every public verb wrapped by :func:`name_failures`, and those of its subclasses too."""
    base: Any = cls

    def gate_subclass(subclass: Any, /, **options: Any) -> None:
        _gate_own_verbs(subclass)
        super(base, subclass).__init_subclass__(**options)

    _gate_own_verbs(cls)
    base.__init_subclass__ = classmethod(gate_subclass)
    return cls


def _gate_own_verbs(cls: type) -> None:
    for name, member in list(vars(cls).items()):
        if isinstance(member, FunctionType) and not name.startswith("_"):
            setattr(cls, name, name_failures(member))


def may_have_gaps(verb: F) -> F:
    """A verb whose answer says by NaN which cells of its rows are missing."""
    vars(verb)[_GAPS_ATTRIBUTE] = True
    return verb


_GAPS_ATTRIBUTE = "_may_have_gaps"


def name_failures(verb: F) -> F:
    """A verb whose failures of arithmetic and memory are errors of prinfold, which say what to change.

    Floating-point warnings of NumPy become an error where the answer is not finite, and one warning where it is. The
    answer of a verb that returns its estimator is what that has learned. Arguments that mean the same in every verb are
    checked before.
    """
    names = tuple(signature(verb).parameters)[1:]

    @wraps(verb)
    def named(self: Any, *args: Any, **options: Any) -> Any:
        left: set[str] = set()
        X = args[0] if args else options.get("X")
        given = dict(zip(names, args, strict=False)) | options
        if names and (home := home_of(X)) is not None:
            return answer_at_home(named, self, home, args, options)
        check_arguments(given)
        dask = is_dask(X)
        if dask and names and not verb.__name__.startswith(("fit", "partial_fit")):
            return ask_partitions(named, self, X, {name: each for name, each in given.items() if name != names[0]})
        outer = _FITTING.get()  # of fits within a fit the outermost knows the user's table
        token = _FITTING.set(_Fit(given) if outer is None and verb.__name__ == "fit" else outer)
        try:
            errors = _named_errors(left, verb.__name__, _name(self), lambda reason: _refusal(self, verb, X, reason))
            with _VerbContext.within(f"{_name(self)}.{verb.__name__}"), errors:
                found = verb(self, *args, **options)
                if outer is None and (fit := _FITTING.get()) is not None and fit.require_sound is not None:
                    fit.require_sound(self)
        except InvalidDataError as error:
            if outer is None and (words := _words_about_weights(given)) and words not in str(error):
                raise InvalidDataError(f"{str(error).rstrip('.')}. {words}") from error
            raise
        finally:
            _FITTING.reset(token)
        _check_answer(self, verb, X, found, left)
        if verb.__name__ == "fit" and outer is None and not dask:
            warn_about_table(self, X, given.get("sample_weight"))
        return found

    return named  # type: ignore[return-value]


_MOST_WEIGHT_RATIO = 1e15
"""Of the largest weight to the smallest; beyond it the light rows are rounding where the heavy ones count too."""


def _words_about_weights(given: Mapping[str, Any]) -> str:
    """Advice where weights of rows are so far apart that they may be what went wrong; none otherwise."""
    try:
        weight = np.asarray(given["sample_weight"])
        if weight.dtype.kind not in "fiu":
            return ""
        with np.errstate(all="ignore"):
            weight = weight[(weight > 0) & (weight < np.inf)].astype(np.float64)
            ratio = weight.max() / weight.min()
    except Exception:  # each library of tables has its own; why the fit failed is known already
        return ""
    if not ratio > _MOST_WEIGHT_RATIO:
        return ""
    return f"sample_weight has weights that differ by a factor of {ratio:.0e}; bring them nearer to each other"


def name_call_failures(function: F) -> F:
    """A public function whose failures of arithmetic and memory are errors of prinfold, as those of verbs are.

    Of a function that declares gaps, :func:`may_have_gaps`, NaN and infinity in the answer say that there is no number.
    """

    def refusal(reason: str) -> str:
        return f"{function.__name__} has no finite answer here: {reason.rstrip('.')}. {_RANGE_ADVICE}"

    @wraps(function)
    def named(*args: Any, **options: Any) -> Any:
        left: set[str] = set()
        with _named_errors(left, function.__name__, function.__name__, refusal):
            found = function(*args, **options)
        if not vars(function).get(_GAPS_ATTRIBUTE):
            numbers = list(_numbers(found))
            if any(np.isnan(each).any() for each in numbers):
                raise InvalidDataError(refusal(_reason(left) or "some of its numbers would be NaN"))
            if left and not all(np.isfinite(each).all() for each in numbers):
                raise InvalidDataError(refusal(_reason(left)))
        if left:
            words = f"{function.__name__}: {_reason(left)}, and rows that are far from the others may count for nothing"
            warn_caller(f"{words}. {_RANGE_ADVICE}", DegenerateWarning)
        return found

    return named  # type: ignore[return-value]


@contextmanager
def _named_errors(left: set[str], verb: str, owner: str, refusal: Callable[[str], str]) -> Iterator[None]:
    """Failures within are named by ``refusal``; kinds of events that left double precision are added to ``left``."""
    try:
        with np.errstate(over="call", invalid="call", divide="call", call=lambda kind, flag: left.add(kind)):
            yield
    except PrinfoldError as error:
        if isinstance(error, ModelFileError):
            _refuse_checkpoint(owner, error)
        raise
    except MemoryError as error:
        raise NotEnoughMemoryError(f"{owner} ran out of memory in {verb}: {error}; {_MEMORY_ADVICE}") from error
    except np.linalg.LinAlgError as error:
        raise InvalidDataError(refusal(_reason(left) or _NO_DECOMPOSITION)) from error
    except ArithmeticError as error:
        raise InvalidDataError(refusal(str(error))) from error
    except Exception as error:
        _refuse_checkpoint(owner, error)
        if isinstance(error, AttributeError):
            refuse_missing_verb(error)
        follows = isinstance(error, _ERRORS_AFTER_OVERFLOW) and bool(left)
        if not follows and not (type(error) is ValueError and _NOT_FINITE.search(str(error))):
            raise
        raise InvalidDataError(refusal(_reason(left) or str(error))) from error


def _refuse_checkpoint(owner: str, error: Exception) -> None:
    """Raise an error about the checkpoint, if the fit resumes from one, for errors that no other fit raises."""
    fit = _FITTING.get()
    if fit is not None and fit.checkpoint is not None:
        raise CheckpointError(
            f"{owner} cannot go on from {fit.checkpoint} ({type(error).__name__}: {error}): it is not what was written "
            "there. Delete it to begin anew"
        ) from error


_NO_DECOMPOSITION = "a matrix cannot be solved or decomposed in double precision"
"""What is told in place of LAPACK's words, which are about rows and columns of a matrix that nobody has seen."""

_MEMORY_ADVICE = "give fewer rows or columns, or ask for less: fewer nodes, basis functions or maps"


def _name(estimator: Any) -> str:
    return type(estimator).__name__


def _reason(left: set[str], place: str = "") -> str:
    return f"numbers left double precision{place} ({' and '.join(sorted(left))})" if left else ""


def _check_answer(estimator: Any, verb: Callable[..., Any], X: Any, found: Any, left: set[str]) -> None:
    """Refuse an answer that is not finite after arithmetic left double precision, and NaN always; warn of a finite one.

    Without such an event infinity is an answer: the logarithm of a density that is zero. So is NaN in a verb that says
    by it which cells are missing.
    """
    learned = found is estimator
    if learned and not left:
        return None
    numbers = list(_numbers(_attributes(estimator) if learned else found))
    if left and all(np.isfinite(each).all() for each in numbers):
        words = _reason(left, " in the fit" if learned else f" in {verb.__name__}")
        words = f"{_name(estimator)}: {words}, and outlying rows may have been ignored"
        return warn_caller(f"{words}. {_remedy(estimator, X)}", DegenerateWarning)
    is_whole = not learned and not vars(verb).get(_GAPS_ATTRIBUTE)
    if left or (is_whole and any(np.isnan(each).any() for each in numbers)):
        if learned:
            forget(estimator)
        raise InvalidDataError(_refusal(estimator, verb, X, _reason(left) or "some of its numbers would be NaN"))
    return None


def _attributes(estimator: Any) -> tuple[Any, ...]:
    """Arrays and numbers that an estimator has learned; its history and latent space may hold infinity."""
    learned = (value for name, value in vars(estimator).items() if name.endswith("_"))
    return tuple(value for value in learned if not (isinstance(value, list | Mapping) or is_dataclass(value)))


def _numbers(answer: Any) -> Iterator[Any]:
    """The floating-point numbers in an answer: an array, a number, a frame, or what several of them are held in."""
    if isinstance(answer, float | np.floating | np.ndarray):
        if np.asarray(answer).dtype.kind == "f":
            yield answer
    elif not isinstance(answer, int | str | None) and nw.dependencies.is_into_dataframe(answer):
        for column in nw.from_native(answer, eager_only=True).iter_columns():
            if column.dtype.is_float():  # of other columns NumPy may have no type
                yield column.to_numpy()
    else:
        for each in _parts(answer):
            yield from _numbers(each)


def _parts(answer: Any) -> Iterable[Any]:
    """Parts of an answer: entries of a tuple, list or mapping, fields of a dataclass."""
    if isinstance(answer, tuple | list):
        return answer
    if isinstance(answer, Mapping):
        return answer.values()
    if is_dataclass(answer) and not isinstance(answer, type):
        return [getattr(answer, each.name) for each in fields(answer)]
    return ()


def _refusal(estimator: Any, verb: Callable[..., Any], X: Any, reason: str) -> str:
    name = _name(estimator)
    fitting = verb.__name__ in {"fit", "partial_fit"}
    words = f"{name} cannot be fitted to these rows" if fitting else f"{name}.{verb.__name__} has no finite answer here"
    return f"{words}: {reason.rstrip('.')}. {_remedy(estimator, X)}"


def _remedy(estimator: Any, X: Any) -> str:
    """Advice: columns that are far apart, by name, or else the settings."""
    spreads = _column_spreads(X)
    if len(spreads) and spreads.max() > _UNLIKE_RANGES * spreads.min():
        labels = column_labels(estimator, len(spreads))
        wide, narrow = int(spreads.argmax()), int(spreads.argmin())
        return (
            f"{labels[wide]} spreads over {spreads[wide]:.3g} and {labels[narrow]} over {spreads[narrow]:.3g}; look "
            "for rows that were mistyped, or scale the columns first, for example with "
            "sklearn.preprocessing.StandardScaler."
        )
    return _RANGE_ADVICE


_RANGE_ADVICE = "Bring settings that are very small or very large nearer to their defaults, or scale the columns first."


def _column_spreads(X: Any) -> Any:
    """(D,) ranges of the columns of a table; empty where it is no plain one."""
    if is_dask(X):  # which would be pulled into memory
        return np.empty(0)
    try:
        table = np.asarray(X, dtype=np.float64)
        return np.ptp(table, axis=0) if table.ndim == 2 else np.empty(0)
    except Exception:  # whatever went wrong with the table before goes wrong again
        return np.empty(0)
