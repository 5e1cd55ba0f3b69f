"""Data of a picture of a choice: scores along one setting, a line for each value of the others."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import FloatArray
from prinfold.exceptions import InvalidParameterError

WORDS = {
    "score": "score in nats per row",
    "log_likelihood": "log-likelihood of training rows, per row",
    "noise_variance": "noise variance 1/β",
    "precision": "noise precision β",
    "prior_precision": "prior precision α",
    "effective": "weights that the rows determine",
    "n_weights": "weights",
    "seconds": "seconds",
}
"""What can be drawn of a choice, and what to write beside it."""


class ChoiceLine(NamedTuple):
    """One line of a choice: places, heights and standard errors (NaN where there are none), each (m,)."""

    label: str
    x: FloatArray
    y: FloatArray
    error: FloatArray


class ChoiceLines(NamedTuple):
    """All lines of a choice; ``ticks`` are (place, words), ``chosen`` is where the candidate stands that was taken."""

    lines: tuple[ChoiceLine, ...]
    along: str
    others: tuple[str, ...]
    ticks: tuple[tuple[float, str], ...]
    numeric: bool
    chosen: tuple[float, float]
    words: str


def choice_lines(choice: Any, along: str | None = None, values: str = "score") -> ChoiceLines:
    """Lines of what :func:`prinfold.choose` returned."""
    if not hasattr(choice, "candidates") or not hasattr(choice, "table"):
        raise InvalidParameterError(
            f"got {type(choice).__name__}, but a Choice is needed: what prinfold.choose returns"
        )
    if values not in WORDS:
        raise InvalidParameterError(f"values must be one of {', '.join(map(repr, WORDS))}, got {values!r}")
    axis = _axis(choice, along)
    place, ticks, numeric = _places(choice.values(axis))
    height = _column(choice, values)
    error = choice.table["standard_error"] if values == "score" else np.full(len(height), np.nan)
    others = tuple(name for name in choice.varied if name != axis)
    keys = [", ".join(str(each.get(name)) for name in others) for each in choice.candidates]
    lines = []
    for key in dict.fromkeys(keys):
        own = np.array([i for i, each in enumerate(keys) if each == key and np.isfinite(height[i])], dtype=int)
        own = own[np.argsort(place[own], kind="stable")]
        if len(own):
            lines.append(ChoiceLine(key, place[own], height[own], error[own]))
    there = float(place[choice.chosen]), float(height[choice.chosen])
    return ChoiceLines(tuple(lines), axis, others, ticks, numeric, there, WORDS[values])


def _axis(choice: Any, along: str | None) -> str:
    """The setting to draw along: the one asked for, else the first that varies."""
    if along is None:
        return str((choice.varied or choice.names or ("candidate",))[0])
    if along not in choice.names:
        raise InvalidParameterError(f"along must be one of {', '.join(map(repr, choice.names))}, got {along!r}")
    return along


def _column(choice: Any, values: str) -> FloatArray:
    if values == "precision":
        return np.asarray(1.0 / choice.table["noise_variance"])
    return np.asarray(choice.table[values], dtype=float)


def _places(values: list[Any]) -> tuple[FloatArray, tuple[tuple[float, str], ...], bool]:
    """Places of values on an axis: numbers at themselves, anything else side by side."""
    if all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in values):
        place = np.array(values, dtype=float)
        return place, tuple((float(v), f"{v:g}") for v in np.unique(place)), True
    names = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
    order = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return np.array([order[name] for name in names], float), tuple((float(i), n) for n, i in order.items()), False
