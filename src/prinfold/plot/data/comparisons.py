"""Data of a picture of a comparison: places of the candidates, and the front of the best of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.exceptions import InvalidDataError, InvalidParameterError


class Front(NamedTuple):
    """Contestants that have numbers, by roughness and held-out error.

    ``roughness``, ``error`` and ``standard_error`` are (m,); ``method`` has m names; ``labels`` say more where a method
    takes part more than once; ``front`` are places on the Pareto front, the smoothest first; ``tied`` (m,) cannot be
    told from the ``chosen`` one, which is −1 where it has no roughness.
    """

    roughness: FloatArray
    error: FloatArray
    standard_error: FloatArray
    method: tuple[str, ...]
    labels: tuple[str, ...]
    front: IntArray
    tied: BoolArray
    chosen: int


def comparison_points(comparison: Any) -> Front:
    """Places of what :func:`prinfold.compare` returned."""
    if not hasattr(comparison, "candidates") or not hasattr(comparison, "table"):
        raise InvalidParameterError(
            f"got {type(comparison).__name__}, but a Comparison is needed: what prinfold.compare returns"
        )
    table = comparison.table
    kept = np.flatnonzero(np.isfinite(table["roughness"]) & np.isfinite(table["error"]))
    if not len(kept):
        raise InvalidDataError(
            "none of the methods has both a held-out error and a roughness; there is nothing to draw"
        )
    rough, error = table["roughness"][kept], table["error"][kept]
    front = np.flatnonzero(table["front"][kept])
    where = np.flatnonzero(kept == comparison.chosen)
    return Front(
        rough,
        error,
        table["standard_error"][kept],
        tuple(table["method"][i] for i in kept),
        tuple(comparison.names[i] for i in kept),
        front[np.argsort(rough[front], kind="stable")],
        table["tied"][kept],
        int(where[0]) if len(where) else -1,
    )
