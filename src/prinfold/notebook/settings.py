"""Settings of a model: those that were changed, and the values that a fit gave to those left open."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

_LONGEST = 70


class ShownSetting(NamedTuple):
    """A parameter: its value, whether that is the default, and what the fit made of it, if that differs."""

    name: str
    value: str
    is_default: bool
    became: str


def settings_of(model: Any) -> list[ShownSetting]:
    """Every parameter of an estimator; those that were changed come first."""
    defaults = {name: each.default for name, each in inspect.signature(type(model).__init__).parameters.items()}
    found = []
    for name, value in model.get_params(deep=False).items():
        words, became = short_value(value), _fitted_value(model, name)
        found.append(ShownSetting(name, words, _same(value, defaults.get(name)), "" if became == words else became))
    return sorted(found, key=lambda each: each.is_default)


def reasons(model: Any) -> list[str]:
    """Tables of what was compared where a fit chose something, as the objects print themselves."""
    found = (getattr(model, name, None) for name in ("selection_", "candidates_"))
    return [str(each) for each in found if each is not None]


def short_value(value: Any) -> str:
    """The ``repr`` of a value, shortened."""
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}"
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    words = " ".join(repr(value.item() if isinstance(value, np.generic) else value).split())
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"


def _fitted_value(model: Any, name: str) -> str:
    if name in _FOUND:
        return _FOUND[name](model)
    value = getattr(model, f"{name}_", None)
    if value is None or isinstance(value, dict | list | tuple):
        return ""
    if isinstance(value, np.ndarray) and value.size > 1:
        return f"{value.min():.4g} to {value.max():.4g}" if value.dtype.kind == "f" else ""
    return short_value(value)


def _nodes(model: Any) -> str:
    latent = model.latent_
    grid = None if latent.drawing is None else latent.drawing.grid
    return " × ".join(map(str, grid.shape)) if grid else str(latent.n_nodes)


def _basis(model: Any) -> str:
    shape = getattr(model.basis_, "shape", None)
    if shape is None:
        return short_value(model.basis_)
    return f"{' × '.join(map(str, np.atleast_1d(shape)))} functions"


def _start(model: Any) -> str:
    """The start that was taken, where the model keeps its name and was not told it."""
    taken = getattr(model, "start_", "")
    return "" if isinstance(model.init, str) and model.init == taken else str(taken)


def _kinds(model: Any) -> str:
    """Numbers of columns of each kind, in words."""
    counts = Counter(column.kind for column in model._column_kinds or ())
    return ", ".join(f"{n} {kind}" for kind, n in counts.items())


_FOUND: dict[str, Callable[[Any], str]] = {
    "nodes": _nodes,
    "basis": _basis,
    "columns": _kinds,
    "init": _start,
    "latent": lambda model: "",
    "noise": lambda model: "",
}
"""Parameters whose outcome is told in another way than by the attribute of their name."""


def _same(value: Any, default: Any) -> bool:
    if value is default:
        return True
    return type(value) is type(default) and np.ndim(value) == 0 and bool(value == default)
