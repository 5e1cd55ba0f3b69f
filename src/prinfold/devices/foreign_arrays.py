"""Arrays of other libraries, wherever they lie: what comes in is read as NumPy, and answers go back to where it was.

scikit-learn's switch says whether to: ``sklearn.set_config(array_api_dispatch=True)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from sklearn import get_config

from prinfold.devices.device import Device, find_device, rows_from, to_numpy
from prinfold.exceptions import DegenerateWarning, UnsupportedInputError, import_optional, warn_caller

_LIBRARIES = ("torch", "cupy", "array_api_strict")
_PROCESSOR = ("cpu", "CPU_DEVICE")
"""What libraries call the processor, whose arrays NumPy reads as they are."""


def home_of(X: Any) -> Device | None:
    """Place of answers about an array of another library; None for NumPy and whatever else is a table."""
    library = type(X).__module__.partition(".")[0]
    if library not in _LIBRARIES or not hasattr(X, "device"):
        return None
    if get_config().get("array_api_dispatch"):
        return _home(library, X.device)
    if _on_processor(X.device):
        return None
    raise UnsupportedInputError(
        f"the rows lie on {X.device}, where NumPy cannot read them; to have answers there, call "
        "sklearn.set_config(array_api_dispatch=True), or pass rows that were brought to the processor"
    )


@cache
def _home(library: str, place: Any) -> Device:
    if library == "torch":
        found = find_device(str(place))
        if found is not None:
            return found
    module = library if library == "array_api_strict" else f"array_api_compat.{library}"
    xp = import_optional(module, "gpu", f"an array of {library}")
    return Device(f"{library}:{place}", xp, place)


def _on_processor(place: Any) -> bool:
    return str(place) in _PROCESSOR or "CPU_DEVICE" in str(place)


def answer_at_home(
    verb: Callable[..., Any], estimator: Any, home: Device, args: tuple[Any, ...], options: Mapping[str, Any]
) -> Any:
    """The answer of a verb asked about arrays at ``home``, whose arrays lie there too.

    Passes are computed there by estimators that have such passes; others compute on the processor, and say so.
    """
    away = not _on_processor(home.place)
    if away and verb.__name__ == "fit" and not getattr(estimator, "_uses_devices", False):
        words = f"{type(estimator).__name__} computes on the processor: its rows are brought here from {home.name}"
        warn_caller(f"{words}, and answers are sent back there", DegenerateWarning)
    with rows_from(home if away else None):
        given = {name: _bring(value) for name, value in options.items()}
        found = verb(estimator, *map(_bring, args), **given)
    return found if found is estimator else _send(home, found)


def _bring(value: Any) -> Any:
    return to_numpy(value) if type(value).__module__.partition(".")[0] in _LIBRARIES else value


def _send(home: Device, answer: Any) -> Any:
    """An answer with every array in it sent home."""
    if isinstance(answer, np.ndarray) and answer.dtype.kind in "fiub":
        return home.put_as_is(np.ascontiguousarray(answer))
    if isinstance(answer, tuple):
        sent = [_send(home, each) for each in answer]
        return type(answer)(*sent) if hasattr(answer, "_fields") else tuple(sent)
    if is_dataclass(answer) and not isinstance(answer, type):
        return replace(answer, **{each.name: _send(home, getattr(answer, each.name)) for each in fields(answer)})
    return answer
