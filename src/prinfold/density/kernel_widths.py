"""The bandwidth of kernels: a number, one for each column, or a matrix; and the search for the best number."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from scipy.optimize import minimize_scalar

from prinfold._typing import FloatArray
from prinfold.exceptions import InvalidParameterError
from prinfold.validation.tables import as_numbers

Bandwidth: TypeAlias = float | FloatArray


def check_bandwidth(given: Bandwidth, n_columns: int) -> Bandwidth:
    """The bandwidth as a positive number, (D,) of them, or a positive definite matrix (D, D); others are refused."""
    value = as_numbers("bandwidth", given)
    if value.ndim == 0:
        if not 0.0 < value < np.inf:
            raise InvalidParameterError(f"bandwidth must be positive and finite, got {given!r}")
        return float(value)
    if value.shape == (n_columns,):
        if not ((value > 0) & np.isfinite(value)).all():
            raise InvalidParameterError(f"bandwidths must be positive and finite, got {given!r}")
        return value
    if value.shape != (n_columns, n_columns):
        raise InvalidParameterError(
            f"bandwidth must be a number, {n_columns} numbers, one for each column, or a matrix of {n_columns} × "
            f"{n_columns}; got shape {value.shape}"
        )
    if not np.isfinite(value).all() or not np.allclose(value, value.T) or np.linalg.eigvalsh(value)[0] <= 0:
        raise InvalidParameterError("a bandwidth matrix must be finite, symmetric and positive definite")
    return value


def least_loss_bandwidth(
    loss: Callable[[float], float], low: float, high: float, n_tried: int, tol: float = 1e-3
) -> float:
    """The bandwidth between two of the least loss, which may have several minima.

    On a grid by ratio first, then by golden section and parabolas between the neighbours of the best, to a share
    ``tol``.
    """
    grid = np.linspace(np.log(low), np.log(high), n_tried)
    losses = [loss(float(np.exp(place))) for place in grid]
    best = int(np.argmin(losses))
    around = grid[max(best - 1, 0)], grid[min(best + 1, n_tried - 1)]
    if not around[0] < around[1]:
        return float(np.exp(grid[best]))
    fine = minimize_scalar(
        lambda place: loss(float(np.exp(place))), bounds=around, method="bounded", options={"xatol": tol}
    )
    # The search never looks at the ends of its interval, and the best may lie there.
    return float(np.exp(fine.x if fine.fun < losses[best] else grid[best]))
