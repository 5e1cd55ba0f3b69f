"""Search for the centres of a mixture that count at each place, and sums over them, compiled.

Pairs are listed place by place: ``near[cuts[i]:cuts[i + 1]]`` are the centres that count at the i-th. The formulas are
those of :mod:`prinfold.numerics.kernel_mixtures`. This module imports numba: import it only where there is much to do.
"""

from __future__ import annotations

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.numerics._cell_lists_jit import near_dots, near_products
from prinfold.numerics._compiled import compiled

__all__ = ["bend_sums", "density_sums", "list_relative", "list_within", "near_dots", "near_products"]


@compiled
def list_within(
    Z: FloatArray,
    points: FloatArray,
    order: IntArray,
    starts: IntArray,
    stops: IntArray,
    reach: float,
    cuts: IntArray,
    near: IntArray,
    s: FloatArray,
) -> None:
    """List the centres within reach of places Z (n, Q), each in its runs of the sorted ``points`` (Q, m).

    ``order`` holds their original indices. Fills ``cuts``, and as much of ``near`` and of the squared distances ``s``
    as there are pairs; both must have room for one more than all centres of all runs.
    """
    longest = 0
    for i in range(len(Z)):
        for r in range(starts.shape[1]):
            longest = max(longest, stops[i, r] - starts[i, r])
    apart, square, at = np.empty(longest), reach * reach, 0
    cuts[0] = 0
    for i in range(len(Z)):
        for r in range(starts.shape[1]):
            start, stop = starts[i, r], stops[i, r]
            for j in range(stop - start):
                apart[j] = (Z[i, 0] - points[0, start + j]) ** 2
            for q in range(1, len(points)):
                for j in range(stop - start):
                    apart[j] += (Z[i, q] - points[q, start + j]) ** 2
            for j in range(stop - start):
                # Written in any case, and kept by advancing the index: a branch could not be predicted.
                near[at], s[at] = order[start + j], apart[j]
                at += int(apart[j] < square)
        cuts[i + 1] = at


@compiled
def list_relative(
    Z: FloatArray, points: FloatArray, most: float, cuts: IntArray, near: IntArray, s: FloatArray, base: FloatArray
) -> None:
    """List the centres whose squared distance exceeds that of the nearest, ``base`` (n,), by no more than ``most``.

    ``s`` holds the excess. Room is needed for one more than all pairs.
    """
    m, at = points.shape[1], 0
    apart = np.empty(m)
    cuts[0] = 0
    for i in range(len(Z)):
        for j in range(m):
            apart[j] = (Z[i, 0] - points[0, j]) ** 2
        for q in range(1, len(points)):
            for j in range(m):
                apart[j] += (Z[i, q] - points[q, j]) ** 2
        least = np.inf
        for j in range(m):
            least = min(least, apart[j])
        base[i] = least
        for j in range(m):
            near[at], s[at] = j, apart[j] - least
            at += int(apart[j] - least <= most)
        cuts[i + 1] = at


@compiled
def density_sums(
    Z: FloatArray,
    centers: FloatArray,
    cuts: IntArray,
    near: IntArray,
    slope: FloatArray,
    curvature: FloatArray,
    gradient: FloatArray,
    hessian: FloatArray,
) -> None:
    """(n, Q) Σ 2 u_j d_j and, if there is room for it, (n, Q, Q) Σ (4 v_j d_j d_jᵀ + 2 u_j I), with d_j = z − c_j."""
    Q = Z.shape[1]
    for i in range(len(Z)):
        trace = 0.0
        for q in range(Q):
            total = 0.0
            for p in range(cuts[i], cuts[i + 1]):
                total += 2.0 * slope[p] * (Z[i, q] - centers[near[p], q])
            gradient[i, q] = total
        if len(hessian) == 0:
            continue
        for p in range(cuts[i], cuts[i + 1]):
            trace += 2.0 * slope[p]
        for q in range(Q):
            for r in range(q + 1):
                total = trace if q == r else 0.0
                for p in range(cuts[i], cuts[i + 1]):
                    c = near[p]
                    total += 4.0 * curvature[p] * (Z[i, q] - centers[c, q]) * (Z[i, r] - centers[c, r])
                hessian[i, q, r] = hessian[i, r, q] = total


@compiled
def share_gradients(
    Z: FloatArray,
    centers: FloatArray,
    cuts: IntArray,
    near: IntArray,
    value: FloatArray,
    slope: FloatArray,
    gradient: FloatArray,
    out: FloatArray,
) -> None:
    """(Q, P) ∂b_j/∂z = 2 u_j d_j − b_j g of every pair."""
    for i in range(len(Z)):
        for q in range(Z.shape[1]):
            here, g = Z[i, q], gradient[i, q]
            for p in range(cuts[i], cuts[i + 1]):
                out[q, p] = 2.0 * slope[p] * (here - centers[near[p], q]) - value[p] * g


@compiled
def bend_sums(
    Z: FloatArray,
    centers: FloatArray,
    cuts: IntArray,
    near: IntArray,
    value: FloatArray,
    slope: FloatArray,
    curvature: FloatArray,
    along: FloatArray,
    gradient: FloatArray,
    hessian: FloatArray,
    out: FloatArray,
) -> None:
    """(n, Q, Q) Σ_j (M_j − b_j Σ_i M_i − a_j gᵀ − g a_jᵀ) r·y_j, with the a and M below.

    Both are of :mod:`prinfold.numerics.kernel_mixtures`. ``along`` (P,) are the products r·y_j.
    """
    Q = Z.shape[1]
    for i in range(len(Z)):
        for q in range(Q):
            for r in range(q + 1):
                g, h, whole, total = gradient[i, q], gradient[i, r], hessian[i, q, r], 0.0
                for p in range(cuts[i], cuts[i + 1]):
                    d, e = Z[i, q] - centers[near[p], q], Z[i, r] - centers[near[p], r]
                    u, b = 2.0 * slope[p], value[p]
                    x = 4.0 * curvature[p] * d * e - b * whole - (u * d - b * g) * h - (u * e - b * h) * g
                    if q == r:
                        x += u
                    total += x * along[p]
                out[i, q, r] = out[i, r, q] = total
