"""Log sum, shift and spread of Gaussian kernels of bandwidth 1, and the same at a single place by the definition.

With centres c_j of weight w_j, d_j = c_j − x and k_j = exp(−‖d_j‖²/2), each place x has

    log_sum = log Σ w k / Σ w,    shift m = Σ w k d / Σ w k,    spread C = Σ w k d dᵀ / Σ w k − m mᵀ,

so that m is the gradient of log Σ w k and C − I its Hessian. m is the mean shift of McQueen, section 4.2, and I − C the
local inverse covariance of step 5 of its algorithm (section 4.4), in units of the bandwidth.
"""

from __future__ import annotations

from math import log
from typing import NamedTuple, Protocol

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.numerics.finite_checks import require_finite

_FARTHEST_COORDINATE = 1e150
"""Coordinates are clipped to this: their squares would be infinite."""


class KernelMoments(NamedTuple):
    """``log_sum`` (n,), ``shift`` (n, D) and ``spread`` (n, D, D); the last two are empty where they are not needed."""

    log_sum: FloatArray
    shift: FloatArray
    spread: FloatArray

    @classmethod
    def empty(cls, n: int, n_moments: int, D: int) -> KernelMoments:
        """Arrays to be filled, with room for shift and spread of ``n_moments`` places."""
        return cls(np.empty(n), np.empty((n_moments, D)), np.empty((n_moments, D, D)))

    def put(self, rows: IntArray | int, found: KernelMoments) -> None:
        """Fill in some rows."""
        for whole, part in zip(self, found, strict=True):
            if len(whole):
                whole[rows] = part


class KernelSums(Protocol):
    """Sums over kernels at points Z (n, D)."""

    def log_sum(self, Z: FloatArray) -> FloatArray:
        """(n,) log Σ w k / Σ w, finite everywhere."""

    def moments(self, Z: FloatArray) -> KernelMoments:
        """The log sum with shift and spread."""


def clip_coordinates(Z: FloatArray) -> FloatArray:
    """Z in double precision, no coordinate so large that its square is infinite."""
    clipped = np.clip(np.ascontiguousarray(Z, dtype=np.float64), -_FARTHEST_COORDINATE, _FARTHEST_COORDINATE)
    require_finite("places of a density", clipped, "leave out the rows that have no place")
    return clipped


def moments_at_place(x: FloatArray, points: FloatArray, log_weight: FloatArray) -> KernelMoments:
    """Moments at a single place (D,), with as many digits as there are wherever it is.

    All is relative to the nearest of the points: with y = x − o and e = c − o, exponents are y·e − ‖e‖²/2.
    """
    origin = points[0]
    for _ in range(2):
        e, y = points - origin, x - origin
        exponent = e @ y - 0.5 * np.einsum("ij,ij->i", e, e)
        origin = points[int(exponent.argmax())]
    exponent += log_weight
    most = float(exponent.max())
    share = np.exp(np.maximum(exponent - most, -700.0))
    total = float(share.sum())
    share /= total
    mean = share @ e
    e -= mean
    log_sum = most + log(total) - 0.5 * float(y @ y)
    return KernelMoments(np.asarray(log_sum), mean - y, (share[:, None] * e).T @ e)
