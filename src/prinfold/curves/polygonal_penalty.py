"""The penalty on corners and ends of a chain of points (Kégl, Krzyżak, Linder & Zeger 2000, section 5).

At an inner vertex, with γ the angle between the two segments that meet there and r the radius of the data,

    π(v_i) = r² (1 + cos γ_i) = r² ‖u_i − u_{i−1}‖² / 2,

u_i being the unit direction of segment i; at the ends of an open chain μ = ‖v_1 − v_2‖² and ‖v_k − v_{k+1}‖², which
keep them from running away. The penalty P is the mean of these over all vertices.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.numerics.banded_matrices import BandedMatrix
from prinfold.numerics.polylines import segments_of


class Bending(NamedTuple):
    """Penalty of a chain, its gradient (m, D), and a matrix near its second derivative that is never indefinite."""

    value: float
    gradient: FloatArray
    hessian: BandedMatrix


def bending(chain: FloatArray, radius: float, closed: bool = False) -> Bending:
    """P of a chain (m, D) with its derivatives; a ``closed`` chain has corners everywhere and no ends."""
    m, edge = len(chain), segments_of(chain, closed)[1]
    size = np.linalg.norm(edge, axis=1)
    inverse = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    unit = edge * inverse[:, None]
    before, after = _corners(len(edge), closed)
    cosine = np.einsum("id,id->i", unit[before], unit[after])
    scale, slope = radius**2, np.zeros_like(edge)
    # d(−u·u')/de = −(u' − (u·u') u) / ‖e‖, for either of the two segments of a corner.
    np.add.at(slope, before, -(unit[after] - cosine[:, None] * unit[before]) * (scale * inverse[before])[:, None])
    np.add.at(slope, after, -(unit[before] - cosine[:, None] * unit[after]) * (scale * inverse[after])[:, None])
    value = scale * float((1.0 - cosine).sum())
    if not closed:
        for end in (0, -1):
            value += float(edge[end] @ edge[end])
            slope[end] += 2.0 * edge[end]
    return Bending(value / m, _to_vertices(slope, closed) / m, _matrix(inverse, scale, closed, m))


def bending_value(chain: FloatArray, radius: float, closed: bool = False) -> float:
    """P of a chain (m, D)."""
    edge = segments_of(chain, closed)[1]
    size = np.linalg.norm(edge, axis=1, keepdims=True)
    unit = np.divide(edge, size, out=np.zeros_like(edge), where=size > 0)
    before, after = _corners(len(edge), closed)
    corners = radius**2 * float((1.0 - np.einsum("id,id->i", unit[before], unit[after])).sum())
    ends = 0.0 if closed else float((edge[[0, -1]] ** 2).sum())
    return (corners + ends) / len(chain)


def _corners(k: int, closed: bool) -> tuple[IntArray, IntArray]:
    """Indices of the segments before and after each corner."""
    after = np.arange(0 if closed else 1, k)
    return after - 1, after


def _matrix(inverse: FloatArray, scale: float, closed: bool, m: int) -> BandedMatrix:
    """Σ c cᵀ / m with c the coefficients of vertices in r (u_i − u_{i−1}), and in the end segments.

    c has three entries, for the vertices i − 1, i and i + 1, by lengths of segments as they are, 1 / ``inverse`` (k,).
    """
    before, after = _corners(len(inverse), closed)
    p, q = inverse[before], inverse[after]
    first = before % m
    out = np.zeros((3, m))
    for apart, entries in enumerate(((p**2, (p + q) ** 2, q**2), (-p * (p + q), -q * (p + q)), (p * q,))):
        for later, entry in enumerate(entries):
            np.add.at(out[apart], (first + later) % m, scale * entry)
    if not closed:
        for one in (0, m - 2):
            out[0, one : one + 2] += 2.0
            out[1, one] -= 2.0
    return BandedMatrix(out / m)


def _to_vertices(slope: FloatArray, closed: bool) -> FloatArray:
    """(m, D) gradient by vertices from that by segments (k, D): the transpose of taking differences."""
    if closed:
        return np.asarray(np.roll(slope, 1, axis=0) - slope)
    nothing = np.zeros((1, slope.shape[1]))
    return np.asarray(np.vstack([nothing, slope]) - np.vstack([slope, nothing]))
