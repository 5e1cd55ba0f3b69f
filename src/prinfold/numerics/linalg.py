"""Solves with symmetric matrices that may be singular."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import eigh, lapack

from prinfold._typing import FloatArray


def solve_symmetric(A: FloatArray, B: FloatArray) -> FloatArray:
    """Solve A X = B for symmetric positive semi-definite A.

    Cholesky where A is well conditioned. Wide basis functions drive cond(A) to 1e20, where Cholesky
    may succeed and return noise; the minimum-norm solution on the eigenvectors above rounding level
    is taken there instead.
    """
    # Transposed, which is the same matrix in the order that LAPACK wants; what is above the diagonal is never read.
    factor, failed = lapack.dpotrf(A.T, lower=True, clean=False)
    if not failed:
        reciprocal_condition, _ = lapack.dpocon(factor, np.abs(A).sum(axis=0).max(), uplo="L")
        if reciprocal_condition > _rounding(A):
            return np.asarray(lapack.dpotrs(factor, B, lower=True)[0])
    return _solve_truncated(A, B)


def _solve_truncated(A: FloatArray, B: FloatArray) -> FloatArray:
    # The default driver leaves eigenvalues that should be 0 twenty times larger than this one does.
    value, vector = eigh(A, check_finite=False, driver="evd")
    keep = value > _rounding(A) * max(value[-1], 0.0)
    vector = vector[:, keep]
    return np.asarray(vector @ ((vector.T @ B) / value[keep][:, None]))


def largest_eigenpairs(A: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
    """(n,) largest eigenvalues of symmetric ``A`` (D, D), largest first, and (D, n) their vectors; D ≥ n."""
    value, vector = eigh(A, subset_by_index=[len(A) - n, len(A) - 1])
    if len(value) < n:  # LAPACK's dsyevr may find none, and says nothing, where many are equal to rounding
        value, vector = eigh(A, driver="evd")
    return value[::-1][:n], vector[:, ::-1][:, :n]


def _rounding(A: FloatArray) -> float:
    """Size, relative to the largest, of eigenvalues that rounding alone can make."""
    return float(10 * len(A) * np.finfo(float).eps)


def pseudo_inverse(A: FloatArray) -> FloatArray:
    """A⁺ of a symmetric positive semi-definite A, on the eigenvectors above rounding level."""
    return _solve_truncated(A, np.eye(len(A)))


def conjugate_gradients(
    apply: Callable[[FloatArray], FloatArray],
    right: FloatArray,
    precondition: Callable[[FloatArray], FloatArray],
    max_iter: int,
    tol: float,
) -> FloatArray:
    """X with A X = ``right`` for a symmetric positive semi-definite operator (Hestenes & Stiefel, 1952), from X = 0.

    Stops when the preconditioned residual has fallen by ``tol``. Each iterate minimises the quadratic on a growing
    subspace, so that any of them has a positive product with ``right``. SciPy's divides by a curvature of 0, which a
    semi-definite operator may have.
    """
    X, residual = np.zeros_like(right), right.copy()
    direction = step = precondition(residual)
    fit = first = float(np.vdot(residual, step))
    for _ in range(max_iter):
        image = apply(direction)
        curvature = float(np.vdot(direction, image))
        if fit <= tol**2 * first or curvature <= 0:
            break
        X += (fit / curvature) * direction
        residual -= (fit / curvature) * image
        step = precondition(residual)
        fit, before = float(np.vdot(residual, step)), fit
        direction = step + (fit / before) * direction
    return X
