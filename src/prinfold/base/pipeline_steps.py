"""Inverse of the steps before a surface in a pipeline, so that it can be shown in the user's own columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from prinfold._typing import FloatArray
from prinfold.exceptions import InvalidParameterError

_LINEARITY_TOL = 1e-8
"""Relative error up to which the inverse of the steps counts as linear."""


def undo(steps: Iterable[tuple[str, Any]], Y: FloatArray, advice: str) -> FloatArray:
    """Rows as they were before the steps; ``advice`` ends the error about a step without an inverse."""
    for name, step in reversed(list(steps)):
        if step in {None, "passthrough"} or type(step).__name__ == "SimpleImputer":  # which changes no units
            continue
        if not hasattr(step, "inverse_transform"):
            raise InvalidParameterError(
                f"the step {name} cannot be undone: it has no inverse_transform, and the surface lies in its columns; "
                f"{advice}"
            )
        Y = step.inverse_transform(Y)
    return np.asarray(Y, dtype=float)


def linear_form(back: Callable[[FloatArray], FloatArray], D: int) -> tuple[FloatArray, FloatArray] | None:
    """The inverse ``back`` of D columns as y·matrix (D, D') + shift (D',); None where it is not linear."""
    shift = back(np.zeros((1, D)))[0]
    matrix = back(np.eye(D)) - shift
    trial = np.random.default_rng(0).normal(size=(8, D))
    undone = back(trial)
    same = np.allclose(undone, trial @ matrix + shift, rtol=_LINEARITY_TOL, atol=_LINEARITY_TOL * np.abs(undone).max())
    return (matrix, shift) if same else None
