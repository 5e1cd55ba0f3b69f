"""Covariance functions of a Gaussian process, by squared distance in units of the squared length scale.

Each is positive definite in ordinary space of any dimension, so that on a circle or a sphere, embedded in such a
space, the distance is the chord. The Matérn functions are those of Rasmussen and Williams (2006, section 4.2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from prinfold._typing import FloatArray, IntArray


class Covariance(NamedTuple):
    """``value`` c(s), with c(0) = 1, and ``slope`` dc/ds, of s = ‖a − b‖²/ℓ²."""

    value: Callable[[FloatArray], FloatArray]
    slope: Callable[[FloatArray], FloatArray]


def _gaussian(s: FloatArray) -> FloatArray:
    """exp(−s/2), thesis (6.5) without its variance: infinitely differentiable."""
    return np.asarray(np.exp(-0.5 * s))


def _gaussian_slope(s: FloatArray) -> FloatArray:
    return np.asarray(-0.5 * np.exp(-0.5 * s))


def _matern_three(s: FloatArray) -> FloatArray:
    """(1 + r) exp(−r) with r = √(3s): one derivative."""
    r = np.sqrt(3.0 * s)
    return np.asarray((1.0 + r) * np.exp(-r))


def _matern_three_slope(s: FloatArray) -> FloatArray:
    return np.asarray(-1.5 * np.exp(-np.sqrt(3.0 * s)))


def _matern_five(s: FloatArray) -> FloatArray:
    """(1 + r + r²/3) exp(−r) with r = √(5s): two derivatives."""
    r = np.sqrt(5.0 * s)
    return np.asarray((1.0 + r + r * r / 3.0) * np.exp(-r))


def _matern_five_slope(s: FloatArray) -> FloatArray:
    r = np.sqrt(5.0 * s)
    return np.asarray(-5.0 / 6.0 * (1.0 + r) * np.exp(-r))


COVARIANCES = {
    "gaussian": Covariance(_gaussian, _gaussian_slope),
    "matern32": Covariance(_matern_three, _matern_three_slope),
    "matern52": Covariance(_matern_five, _matern_five_slope),
}
"""Covariance functions by name."""


def leading_pivots(gram: FloatArray, tolerance: float) -> IntArray:
    """Rows of a covariance matrix that determine all others, the most informative first.

    Cholesky's factorisation with pivots takes, each time, the row of which the earlier ones leave most variance
    unexplained, and ends where none has more than ``tolerance`` left.
    """
    _, order, rank, _ = lapack.dpstrf(gram, tol=tolerance, lower=True)
    return np.asarray(order[: max(int(rank), 1)] - 1, dtype=np.intp)
