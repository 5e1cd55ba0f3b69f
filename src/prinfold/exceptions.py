"""Named errors and warnings. Each message says what was got, what was expected and what to do.

Advice to change a setting is data in a :class:`Message`, so that Python and the command line each say it in their way.
"""

from __future__ import annotations

import errno
import sys
import warnings
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, Final, NamedTuple, Self

ANY_VALUE: Final = ...
"""The value of a setting that is to be changed, where nobody knows to what; a pickle knows it as well."""


class Advice(NamedTuple):
    """A setting to change, the value to try, and the words around them: the setting stands at ``{}``.

    A method of the model, such as ``posterior_mode``, or another name may stand in place of a setting, without a value.
    """

    setting: str
    value: Any = ANY_VALUE
    words: str = "set {}"

    def in_python(self) -> str:
        """``set n_components=2``."""
        given = self.setting if self.value is ANY_VALUE else f"{self.setting}={self.value!r}"
        return self.words.format(given)


class Message(str):
    """A text as Python shows it, made of what was found and of what to do about it.

    Advice that is a plain string is the same on the command line.

    >>> Message("a harmonic basis lives on a circle", Advice("latent", "circle"))
    "a harmonic basis lives on a circle; set latent='circle'"
    """

    found: str
    advice: tuple[Advice | str, ...]

    def __new__(cls, found: str, *advice: Advice | str) -> Self:
        """The text as Python says it."""
        made = super().__new__(cls, _sentence(found, [_in_python(each) for each in advice]))
        made.found, made.advice = found, advice
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        """The parts of which a copy or a pickle is made again."""
        return self.found, *self.advice

    def written(self, write: Callable[[Advice], str]) -> str:
        """The text with each piece of advice as ``write`` says it."""
        return _sentence(self.found, [each if isinstance(each, str) else write(each) for each in self.advice])

    @classmethod
    def after(cls, prefix: str, words: object) -> Message:
        """A text, or that of a warning, behind a prefix; its advice is kept."""
        text = words.args[0] if isinstance(words, Warning) and words.args else words
        return cls(prefix + text.found, *text.advice) if isinstance(text, Message) else cls(f"{prefix}{text}")


def _in_python(advice: Advice | str) -> str:
    return advice if isinstance(advice, str) else advice.in_python()


def _sentence(found: str, advice: list[str]) -> str:
    """``found; a, b, or c``; where ``found`` is a whole sentence the advice is another."""
    if not advice:
        return found
    *others, last = advice
    listed = f"{', '.join(others)}, or {last}" if others else last
    return f"{found} {listed[0].upper()}{listed[1:]}." if found.endswith(".") else f"{found}; {listed}"


def join_names(names: Iterable[Any], most: int = 6) -> str:
    """``a, b, c``; of many the first few, and how many more there are."""
    found = list(names)
    return ", ".join(map(str, found[:most])) + (f" and {len(found) - most} more" if len(found) > most else "")


def shown(value: Any, most: int = 200) -> str:
    """A value as Python writes it, cut where that is long; its type where it cannot be written at all."""
    try:
        text = repr(value)
    except Exception:  # a whole number of thousands of digits, or an object of others that is broken
        return f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= most else f"{text[:most]}…"


def quantity(n: int, noun: str) -> str:
    """``3 rows``, ``1 row``, ``2 branches``."""
    return f"{n} {noun}{'' if n == 1 else 'es' if noun.endswith('ch') else 's'}"


_MANY_DIGITS = 1e9
"""Numbers from here on are not written to the unit."""


def rounded(value: float, digits: int = 3) -> str:
    """A number in so many digits, or to the unit where it has more: 2680 rather than 2.68e+03."""
    return f"{value:.0f}" if 10**digits <= abs(value) < _MANY_DIGITS else f"{value:.{digits}g}"


def percent(share: float, decimals: int = 0) -> str:
    """A share in words: 0.24 is 24 %."""
    return f"{100 * share:.{decimals}f} %"


class PrinfoldError(Exception):
    """Base of every error that prinfold raises on its own account."""


class InvalidParameterError(PrinfoldError, ValueError):
    """A constructor parameter has a value that cannot work."""


class InvalidDataError(PrinfoldError, ValueError):
    """The table handed in cannot be used as it is."""


class UnsupportedInputError(PrinfoldError, TypeError):
    """The container handed in (lazy frame, sparse matrix, …) has to be converted first."""


class OutOfDomainError(PrinfoldError, ValueError):
    """Latent coordinates lie outside the latent space."""


class NoPreimageError(PrinfoldError, ValueError):
    """A point in data space is asked of a surface that lives in the feature space of a kernel."""


class NotAvailableError(PrinfoldError, AttributeError):
    """A verb or attribute that a model of this kind, or of these settings, does not have."""


class DataNotFoundError(PrinfoldError, FileNotFoundError):
    """A real data set is neither in the local folder nor reachable."""


class ModelFileError(PrinfoldError, ValueError):
    """Base of everything that can be wrong with a model file."""


class CorruptModelFileError(ModelFileError):
    """The file is truncated, altered or not a model file at all."""


class NoModelFileError(ModelFileError, FileNotFoundError):
    """There is no file where a model was to be read."""


class UnknownModelError(ModelFileError):
    """The file names a class that this version does not have."""


class NewerModelFileError(ModelFileError):
    """The file was written by a later version of prinfold."""


class NotStorableError(ModelFileError, TypeError):
    """The model holds something that a file of numbers and JSON cannot hold, such as a function."""


class CheckpointError(PrinfoldError, ValueError):
    """The file holds the checkpoint of another training, or none."""


class NotWrittenError(PrinfoldError, OSError):
    """A file could not be written; what was there before is as it was."""

    def __str__(self) -> str:
        if self.filename is None:
            return super().__str__()
        first = _REMEDIES.get(self.errno, "")
        return f"cannot write {self.filename}: {self.strerror}; {first}choose another place"


_REMEDIES: dict[int | None, str] = {
    errno.ENOSPC: "free some, or ",
    errno.EDQUOT: "remove some files, or ",
    errno.ELOOP: "remove the link, or ",
}
"""What to do about a file that could not be written, besides writing another."""


class NoPermissionError(NotWrittenError, PermissionError):
    """The file, or the folder that it is to lie in, may not be written."""


class NoSuchFolderError(NotWrittenError, InvalidParameterError, FileNotFoundError):
    """The folder that a file is to lie in is not there."""


class TargetIsFolderError(NotWrittenError, InvalidParameterError, IsADirectoryError):
    """The file to be written is a folder."""


class NotEnoughMemoryError(PrinfoldError, MemoryError):
    """The work asked for needs more memory than there is."""


class WorkersLostError(NotEnoughMemoryError):
    """A part of the rows ended every worker of a cluster that it was given to; the last iteration's model is kept."""


class MissingExtraError(PrinfoldError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""


def import_optional(module: str, extra: str, use: str, instead: str = "") -> Any:
    """A module of an optional library, or an error that says which ``use`` needs it, and what to do ``instead``."""
    try:
        return import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        way_out = f", or {instead}" if instead else ""
        raise MissingExtraError(
            f'{use} needs {library}, which is not installed; get it with: pip install "prinfold[{extra}]"{way_out}'
        ) from error


class PrinfoldWarning(UserWarning):
    """Base of every warning that prinfold gives."""


class MultimodalWarning(PrinfoldWarning):
    """The posterior of some rows has several modes, so that its mean may lie far from all of them."""


class FoldWarning(PrinfoldWarning):
    """The fitted surface is folded or badly warped somewhere."""


class DegenerateWarning(PrinfoldWarning):
    """The data leave part of the model undetermined; the result is defined but says less than asked."""


class StructureWarning(PrinfoldWarning):
    """Rows do not lie as the model supposes: not along a single curve, for one."""


class InterruptedWarning(PrinfoldWarning):
    """Training was interrupted; the best model so far was kept."""


_OURS = {"prinfold", "sklearn", "joblib", "contextlib"}
"""Packages whose lines a warning does not point at: nobody can change those."""


def warn_caller(words: str, category: type[Warning]) -> None:
    """Warn in whole sentences, at the line that called prinfold, however deep within it the reason was found."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _OURS:
        level, frame = level + 1, frame.f_back
    warnings.warn(in_sentences(words), category, stacklevel=level)


def in_sentences(words: str) -> str:
    """A text with a capital at its beginning and a full stop at its end; its advice becomes a sentence of its own.

    A first word that is code, such as ``max_iter=3``, stays as it is.

    >>> str(in_sentences(Message("all rows are equal", "check the table")))
    'All rows are equal. Check the table.'
    """
    if isinstance(words, Message):
        return Message(in_sentences(words.found), *words.advice)
    first = words.split(" ", 1)[0].rstrip(",:;")
    capital = words[:1].upper() + words[1:] if first.isalpha() else words
    return capital if capital.endswith((".", "!", "?")) else f"{capital}."
