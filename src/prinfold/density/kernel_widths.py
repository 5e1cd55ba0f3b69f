"""The bandwidth of kernels: a number, one for each column, or a matrix."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from prinfold._typing import FloatArray
from prinfold.exceptions import InvalidParameterError

Bandwidth: TypeAlias = float | FloatArray


def check_bandwidth(given: Bandwidth, n_columns: int) -> Bandwidth:
    """The bandwidth as a positive number, (D,) of them, or a positive definite matrix (D, D); others are refused."""
    value = np.asarray(given, dtype=np.float64)
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
