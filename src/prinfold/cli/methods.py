"""Methods by name, their settings as words, and the scaling before them, chosen where nobody asked for one."""

from __future__ import annotations

import ast
import difflib
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import FloatArray
from prinfold.cli.usage import WrongCallError, did_you_mean
from prinfold.exceptions import InvalidDataError, join_names, rounded
from prinfold.methods import METHODS, manifolds
from prinfold.validation.data_notes import one_unit, unlike_spreads

_HUGE_NUMBER = 1e150
"""Numbers beyond it have no squares."""


def methods() -> dict[str, Any]:
    """Every estimator that fits one surface, by its name in small letters."""
    return {each.name.lower(): each.cls for each in sorted(manifolds(), key=lambda each: each.name)}


def aliases() -> dict[str, str]:
    """Names of methods in small letters, by their shorter names."""
    return {each.short: each.name.lower() for each in METHODS.values() if each.short}


def settings() -> frozenset[str]:
    """Names of the settings of all methods."""
    return frozenset(name for cls in methods().values() for name in inspect.signature(cls).parameters)


def method_name(word: str) -> str:
    """The name of the method that a word stands for, found without loading any method."""
    known = {each.name.lower(): each.name for each in manifolds()}
    name = aliases().get(word.lower(), word.lower().replace("_", "").replace("-", ""))
    if name not in known:
        hint = did_you_mean(name, sorted(known)) or f"--method takes {join_names(sorted(known), 20)}"
        raise WrongCallError(f"there is no method {word!r}; {hint}")
    return known[name]


def make_model(cls: Any, width: int, dimensions: int | None, seed: int, words: Sequence[str], *, verbose: bool) -> Any:
    """An estimator with the settings that words such as ``nodes=20`` say.

    Parameters
    ----------
    cls : type
        Its class.
    width : int
        Columns that vary: a surface has fewer dimensions, where nobody asks for them, as it fills the space otherwise.
    dimensions : int or None
        Dimensions of the surface.
    seed : int
        For what is random.
    words : sequence of str
        Settings, each ``NAME=VALUE``.
    verbose : bool
        Whether to show progress.

    Returns
    -------
    estimator
    """
    defaults = {name: each.default for name, each in inspect.signature(cls).parameters.items()}
    settings: dict[str, Any] = {"random_state": seed, "verbose": int(verbose)}
    settings |= _dimension_setting(cls, defaults, dimensions, max(width - 1, 1))
    settings |= dict(_setting(word, defaults, cls.__name__) for word in words)
    return cls(**{name: value for name, value in settings.items() if name in defaults})


def _dimension_setting(cls: Any, known: dict[str, Any], asked: int | None, most: int) -> dict[str, Any]:
    """The setting that makes a surface have so many dimensions; some methods have no choice."""
    if "n_components" in known:
        return {"n_components": asked or min(known["n_components"], most)}
    if "gtm" in known:  # maps of several GTMs, each of which has them
        from prinfold import GTM

        usual = GTM().n_components
        return {} if (asked or min(usual, most)) == usual else {"gtm": GTM(n_components=asked or most)}
    only = getattr(cls, "_dimension", None)
    if asked not in {None, only}:
        has = "no choice of dimensions" if only is None else f"{only} dimension{'s' * (only > 1)}, whatever the table"
        raise WrongCallError(f"{cls.__name__} has {has}; leave --dimensions out")
    return {}


def _setting(word: str, known: dict[str, Any], method: str) -> tuple[str, Any]:
    name, equals, value = word.partition("=")
    name = name.strip().replace("-", "_")
    if not equals:
        raise WrongCallError(f"--set takes NAME=VALUE, such as --set max_iter=200; got {word!r}")
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {join_names(sorted(known), 40)}"
        raise WrongCallError(f"{method} has no setting {name!r}; {hint}")
    return name, _value(value.strip())


def _value(word: str) -> Any:
    """A number, a list or a word."""
    plain = {"none": None, "true": True, "false": False}
    if word.lower() in plain:
        return plain[word.lower()]
    try:
        return ast.literal_eval(word)
    except (ValueError, SyntaxError):
        return word


def changed_settings(model: Any) -> dict[str, Any]:
    """Settings of a model that are not the usual ones."""
    usual = {name: each.default for name, each in inspect.signature(type(model)).parameters.items()}
    own = model.get_params(deep=False)
    quiet = {"verbose", "random_state"}
    return {name: value for name, value in own.items() if name not in quiet and repr(value) != repr(usual.get(name))}


# -------------------------------------------------------------------------------------------------------------- scaling


class Scaling(NamedTuple):
    """A scaling of columns before a method: ``words`` for what is done, the step that does it, and the unit after it.

    Where it is done ``column_by_column`` each is divided by its own spread; one that ``mixes`` columns needs every cell
    of a row, and all rows at once.
    """

    name: str
    words: str
    step: Callable[[], Any] = lambda: None
    unit: str = ""
    column_by_column: bool = False
    mixes: bool = False


def _standardize() -> Any:
    from sklearn.preprocessing import StandardScaler

    return StandardScaler()


def _whiten() -> Any:
    from sklearn.decomposition import PCA

    return PCA(whiten=True)


RAW = Scaling("raw", "as they are")
SCALINGS = {
    each.name: each
    for each in (
        RAW,
        Scaling("standardize", "standardised", _standardize, " SD", column_by_column=True),
        Scaling("whiten", "whitened", _whiten, " SD", mixes=True),
    )
}


def choose_scaling(
    asked: str | None,
    matrix: FloatArray | None,
    names: Sequence[str],
    *,
    embedding: bool = False,
    spoken: Sequence[str] | None = None,
) -> tuple[Scaling, str]:
    """The scaling to use, and the reason in words.

    Columns in different units differ in their spreads by orders of magnitude, and a surface then sees the largest only.
    Where the largest spread is more than ten times that of a column at the lower quartile they are put on one scale.
    An ``embedding``, such as principal components, has a scale of its own, in which spreads are meant to differ, and
    columns in one unit, by their names or as counts, can be compared as they are. ``spoken`` are names with units below
    them.
    """
    if matrix is not None:
        _refuse_huge(matrix, names)
    if asked is not None:
        return SCALINGS[asked], "as asked for"
    if matrix is None:
        return RAW, "each kind of column has its own noise model"
    if embedding:
        return RAW, "the columns are an embedding, whose scales are meaningful"
    spreads = np.array([np.nanstd(column) for column in matrix.T])  # one at a time takes no copies of all
    there = np.flatnonzero(spreads > 0)
    if len(there) < 2:
        return RAW, "there is one column that varies" if len(there) else "no column varies"
    found = unlike_spreads(spreads)
    if found is None:
        return RAW, "the columns have similar standard deviations"
    shared = one_unit(names if spoken is None else spoken, matrix)
    if shared is not None:
        return RAW, shared
    wide, narrow = names[found.widest], names[found.narrow]
    return SCALINGS["standardize"], f"the standard deviation of {wide} is {rounded(found.ratio)} times that of {narrow}"


def _refuse_huge(matrix: FloatArray, names: Sequence[str]) -> None:
    """Name the column whose squares overflow, before any scaling turns it into missing cells."""
    highest = np.array([np.abs(each[np.isfinite(each)]).max(initial=0.0) for each in matrix.T])
    if highest.max(initial=0.0) > _HUGE_NUMBER:
        column = int(np.argmax(highest))
        raise InvalidDataError(
            f"column {names[column]} holds values up to {highest[column]:.3g}, whose squares overflow; if they stand "
            f"for missing cells name them with --na, else leave the column out with --drop {names[column]}"
        )
