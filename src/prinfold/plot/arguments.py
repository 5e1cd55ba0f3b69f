"""Arguments of pictures, held to their kinds before anything is drawn, and a gate on what fails on the way."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any, TypeVar

from prinfold.validation.failures import may_have_gaps, name_call_failures
from prinfold.validation.settings import (
    Constraint,
    check_call,
    flag,
    fraction,
    instance_of,
    integer,
    nothing,
    real,
)

F = TypeVar("F", bound=Callable[..., Any])

_TEXT = instance_of(str, words="a text")


def _is_colormap(value: Any) -> bool:
    from matplotlib import colormaps
    from matplotlib.colors import Colormap

    return isinstance(value, Colormap) or (isinstance(value, str) and value in colormaps)


_MOST_PLACES = 4000
"""Places along an axis at which a picture is computed: more than any paper shows."""

_KINDS: dict[str, Constraint] = {
    "ax": nothing | Constraint(lambda v: hasattr(v, "transAxes"), "an axes of matplotlib"),
    "resolution": integer(2, _MOST_PLACES),
    "n": integer(1, 200),
    "most": integer(1),
    "target": integer(0),
    "cmap": nothing | Constraint(_is_colormap, "a colormap of matplotlib or the name of one"),
    "show_nodes": nothing | flag,
    "min_mass": nothing | real(0),
    "level": fraction,
    **dict.fromkeys(("along", "kind", "value_name"), nothing | _TEXT),
}
"""What an argument is wherever it stands; flags and texts are known by their defaults."""


def check_picture(draw: F) -> F:
    """A function that draws, whose arguments are checked first and whose failures have a name."""
    kinds = {name: kind for name, each in signature(draw).parameters.items() if (kind := _kind(name, each))}
    return name_call_failures(may_have_gaps(check_call(**kinds)(draw)))


def _kind(name: str, parameter: Parameter) -> Constraint | None:
    if name in _KINDS:
        return _KINDS[name]
    if isinstance(parameter.default, bool):
        return flag
    return _TEXT if parameter.annotation == "str" else None
