"""Histograms of distances about a sample of rows: one pass over pairs that serves kernels of every bandwidth.

The method is ours. About each sampled row all others are counted in rings of distance, sixteen to every doubling of the
squared distance. A sum of a function f of squared distances is then one over rings,

    Σ_j w_j f(s_ij) ≈ Σ_b W_ib f(s̄_ib),

with W the weight in a ring and s̄ its mean squared distance, so that f's slope is accounted for. For a Gaussian kernel
of bandwidth h, and with rings that are at most a 16th of s wide, the error of a ring's part is below
(s/16h²)²/32 of it: 0.2 % at four bandwidths, where a kernel is 3e-4 of its peak.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.numerics.finite_checks import LARGEST, require_finite
from prinfold.rows.rows import for_each_block

RINGS = 16
"""Rings to every doubling of the squared distance."""

LOWEST, HIGHEST = -100, 60
"""Range of powers of two of squared distances; nearer or farther rows are counted in the first or last ring."""

_DROPPED_BITS = 48
"""Bits of a double below the exponent and the first four of the mantissa, which number the rings."""

_FIRST_RING = (1023 + LOWEST) * RINGS
_N_RINGS = (HIGHEST - LOWEST) * RINGS

_COMPILED_FROM = 2**21
"""Pairs from which on loading the compiler pays."""

_BLOCK_PAIRS = 2**18
_BLOCK_ROWS = 16


class Rings(NamedTuple):
    """Weight (m, B) of other rows in rings about m rows, and their mean squared distance (m, B), 0 where none are."""

    weight: FloatArray
    squared: FloatArray


def ring_of(squared: FloatArray) -> IntArray:
    """The number of the ring that squared distances belong to."""
    bits = np.ascontiguousarray(squared, dtype=np.float64).view(np.int64) >> _DROPPED_BITS
    return np.asarray(np.clip(bits - _FIRST_RING, 0, _N_RINGS - 1))


def make_rings(X: FloatArray, weight: FloatArray, sampled: IntArray) -> Rings:
    """The rings about rows ``sampled`` (m,) of X (n, D) with weights (n,); no row is in its own.

    Rings that are empty about all rows are left out. X should have distances of order 1.
    """
    X = np.ascontiguousarray(X, dtype=np.float64)
    require_finite("rows", X, "rescale their columns", LARGEST)
    total = np.zeros((2, len(sampled), _N_RINGS))
    if len(X) * len(sampled) < _COMPILED_FROM:
        count, size = count_rings_reference, max(1, _BLOCK_PAIRS // len(X))
    else:
        from prinfold.density._ring_counts_jit import count_rings

        count, size = count_rings, _BLOCK_ROWS
    columns = np.ascontiguousarray(X.T)

    def one(part: slice) -> None:
        count(columns, weight, sampled[part], _FIRST_RING, total[0, part], total[1, part])

    for_each_block(one, [slice(i, min(i + size, len(sampled))) for i in range(0, len(sampled), size)])
    met = total[0].any(axis=0)
    mass, squares = total[0][:, met], total[1][:, met]
    return Rings(mass, np.divide(squares, mass, out=np.zeros_like(mass), where=mass > 0))


def count_rings_reference(
    columns: FloatArray, weight: FloatArray, sampled: IntArray, first: int, mass: FloatArray, squares: FloatArray
) -> None:
    """Add to ``mass`` and ``squares`` (m, B) the Σ w and Σ w s of every ring; ``columns`` (D, n) are the rows."""
    s = np.zeros((len(sampled), columns.shape[1]))
    for column in columns:
        s += np.square(column[sampled][:, None] - column)
    w = np.broadcast_to(weight, s.shape).copy()
    w[np.arange(len(sampled)), sampled] = 0.0
    n_rings = mass.shape[1]
    ring = (
        np.clip((s.view(np.int64) >> _DROPPED_BITS) - first, 0, n_rings - 1)
        + n_rings * np.arange(len(sampled))[:, None]
    )
    mass += np.bincount(ring.ravel(), w.ravel(), minlength=mass.size).reshape(mass.shape)
    squares += np.bincount(ring.ravel(), (w * s).ravel(), minlength=mass.size).reshape(mass.shape)
