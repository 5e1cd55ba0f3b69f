"""Symmetric solves that survive rank deficiency."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve, eigh, lapack

from prinfold._typing import FloatArray


def solve_symmetric(A: FloatArray, B: FloatArray) -> FloatArray:
    """Solve A X = B for symmetric positive semi-definite A.

    Cholesky where A is well conditioned. Wide basis functions drive cond(A) to 1e20, where Cholesky
    may succeed and return noise; the minimum-norm solution on the eigenvectors above rounding level
    is taken there instead.
    """
    factor, failed = lapack.dpotrf(A, lower=True)
    if not failed:
        reciprocal_condition, _ = lapack.dpocon(factor, np.linalg.norm(A, 1), uplo="L")
        if reciprocal_condition > _rounding(A):
            return np.asarray(cho_solve((factor, True), B, check_finite=False))
    return _solve_truncated(A, B)


def _solve_truncated(A: FloatArray, B: FloatArray) -> FloatArray:
    # The default driver leaves eigenvalues that should be nil twenty times larger than this one does.
    value, vector = eigh(A, check_finite=False, driver="evd")
    keep = value > _rounding(A) * max(value[-1], 0.0)
    vector = vector[:, keep]
    return np.asarray(vector @ ((vector.T @ B) / value[keep][:, None]))


def _rounding(A: FloatArray) -> float:
    """Size, relative to the largest, of eigenvalues that rounding alone can make."""
    return float(10 * len(A) * np.finfo(float).eps)
