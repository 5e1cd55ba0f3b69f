"""The steps before a surface in a pipeline, and how they are undone, so that it lies among the user's own rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from prinfold._typing import FloatArray
from prinfold.exceptions import InvalidParameterError

_STRAIGHT = 1e-8
"""How far, relative to their size, steps before a model may be from straight."""


def undo(steps: Iterable[tuple[str, Any]], Y: FloatArray, advice: str) -> FloatArray:
    """Rows as they were before the steps, of which the last is undone first; ``advice`` is for one that cannot be."""
    for name, step in reversed(list(steps)):
        if step in {None, "passthrough"} or type(step).__name__ == "SimpleImputer":  # which changes no units
            continue
        if not hasattr(step, "inverse_transform"):
            raise InvalidParameterError(
                f"the step {name} cannot be undone, so the surface has no place among the rows; {advice}"
            )
        Y = step.inverse_transform(Y)
    return np.asarray(Y, dtype=float)


def straight(back: Callable[[FloatArray], FloatArray], D: int) -> tuple[FloatArray, FloatArray] | None:
    """A way back from D columns as y·matrix (D, D') + shift (D',); None where it bends them."""
    shift = back(np.zeros((1, D)))[0]
    matrix = back(np.eye(D)) - shift
    trial = np.random.default_rng(0).normal(size=(8, D))
    undone = back(trial)
    same = np.allclose(undone, trial @ matrix + shift, rtol=_STRAIGHT, atol=_STRAIGHT * np.abs(undone).max())
    return (matrix, shift) if same else None
