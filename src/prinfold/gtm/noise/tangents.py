"""Tangents of a surface at its nodes, thesis 6.2 and PPS (17), and the parts of vectors along and across them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from prinfold._typing import FloatArray
from prinfold.basis_maps.basis_map import BasisMap

_SMALLEST_TANGENT = 1e-4
"""Singular values of the Jacobian below this share of the largest of all nodes name no direction."""


class Tangents(NamedTuple):
    """Orthonormal tangents E at the nodes, from the singular value decomposition J = E diag(s) Vᵀ.

    ``frame`` (Q, K, D) holds E, with zeros for directions in which the map stands still; ``rank`` (K,) counts the
    others; ``pullback`` (K, Q, Q) is diag(1/s) Vᵀ, so that J⁺ = pullbackᵀ Eᵀ.
    """

    frame: FloatArray
    rank: FloatArray
    pullback: FloatArray


def tangents(surface: BasisMap, weights: FloatArray) -> Tangents:
    """Tangents of the surface at its nodes, with a rank test."""
    left, size, right = np.linalg.svd(surface.node_jacobian(weights), full_matrices=False)
    n_missing = right.shape[1] - size.shape[1]  # more tangents than columns
    if n_missing:
        left = np.pad(left, ((0, 0), (0, 0), (0, n_missing)))
        size = np.pad(size, ((0, 0), (0, n_missing)))
    real = size > _SMALLEST_TANGENT * size.max(initial=np.finfo(float).tiny)
    inverse = np.where(real, 1.0 / np.where(real, size, 1.0), 0.0)
    frame = np.ascontiguousarray(np.moveaxis(left * real[:, None, :], 2, 0))
    return Tangents(frame, real.sum(axis=1).astype(float), inverse[:, :, None] * right)


def along(frame: FloatArray, vectors: FloatArray) -> FloatArray:
    """(K, D) the parts of vectors (K, D) that lie in the tangents."""
    return np.asarray(np.einsum("qk,qkd->kd", np.einsum("qkd,kd->qk", frame, vectors), frame))


def off(frame: FloatArray, columns: FloatArray) -> FloatArray:
    """(K, D, Q) the parts of columns that are orthogonal to the tangents."""
    inside = np.einsum("pkd,kdq->kpq", frame, columns)
    return np.asarray(columns - np.einsum("kpq,pkd->kdq", inside, frame))
