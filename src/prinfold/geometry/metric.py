"""Sizes from Jacobians and meshes: stretch of a map, length of a curve, volume of a mesh."""

from __future__ import annotations

from collections.abc import Callable
from math import factorial

import numpy as np

from prinfold._typing import FloatArray, IntArray, Stretch
from prinfold.exceptions import InvalidDataError
from prinfold.geometry.domain import Domain

# Central differences of a Jacobian err by h² and by rounding over h; this balances the two.
_DIFFERENCE_STEP = 1e-5


def stretch(J: FloatArray, frame: FloatArray | None = None) -> Stretch:
    """Principal stretches of A = J·frame, GTM thesis 4.3: factor √det(AᵀA) (4.10), directions and lengths (4.17).

    J is (n, D, Q); ``frame`` (n, Q, q) holds orthonormal latent directions (default: the axes). With the
    singular values A v_i = ℓ_i u_i the factor is Πℓ_i and the directions are frame·v_i; of the two signs
    of a direction the one is taken whose largest component is positive.
    """
    A = np.asarray(J if frame is None else np.matmul(J, frame), dtype=float)
    n, D, q = A.shape
    if q > D:  # zero rows give the directions that the map flattens
        A = np.concatenate([A, np.zeros((n, q - D, q))], axis=1)
    _, lengths, Vt = np.linalg.svd(A, full_matrices=False)
    V = np.swapaxes(Vt, 1, 2)
    directions = V if frame is None else np.matmul(frame, V)
    main = np.take_along_axis(directions, np.abs(directions).argmax(axis=1)[:, None, :], axis=1)
    return Stretch(lengths.prod(axis=1), directions * np.where(main < 0, -1.0, 1.0), lengths)


def second_derivatives(
    jacobian: Callable[[FloatArray], FloatArray], domain: Domain, Z: FloatArray, J: FloatArray | None = None
) -> FloatArray:
    """(n, D, q, q) second derivatives at s = 0 of s ↦ y(retract(z + frame·s)), from Jacobians alone.

    ∂²y/∂s_j∂s_k = (∂_j J) f_k + J·∂²retract/∂s_j∂s_k with f the frame. The first term is a central
    difference, one-sided where a bound is in the way that the map does not go beyond; the second is 0
    in a box and −δ_jk J z on a sphere.
    """
    frame, h = domain.frame(Z), _DIFFERENCE_STEP * latent_span(domain)
    columns = []
    for j in range(frame.shape[2]):
        ahead, behind = domain.beyond(Z + h * frame[:, :, j]), domain.beyond(Z - h * frame[:, :, j])
        moved = np.einsum("nq,nq->n", domain.difference(ahead, behind), frame[:, :, j])
        moved = np.where(moved > 0, moved, np.inf)  # an interval of no length has no second derivative
        columns.append(np.matmul((jacobian(ahead) - jacobian(behind)) / moved[:, None, None], frame))
    second = np.stack(columns, axis=2)
    second = 0.5 * (second + np.swapaxes(second, 2, 3))
    if domain.extent.dimension < domain.extent.n_columns:
        bend = _retraction_curvature(domain, Z, frame)
        second += np.einsum("ndc,ncjk->ndjk", jacobian(Z) if J is None else J, bend)
    return np.asarray(second)


def _retraction_curvature(domain: Domain, Z: FloatArray, frame: FloatArray) -> FloatArray:
    """(n, Q, q, q) second derivatives of s ↦ retract(z + frame·s) by second differences and polarisation."""
    h, q = 1e-4, frame.shape[2]

    def along(direction: FloatArray) -> FloatArray:
        ahead, behind = domain.retract(Z + h * direction), domain.retract(Z - h * direction)
        return (domain.difference(ahead, Z) + domain.difference(behind, Z)) / h**2

    bend = np.empty((*Z.shape, q, q))
    for j in range(q):
        bend[:, :, j, j] = along(frame[:, :, j])
    for j in range(q):
        for k in range(j):
            mixed = along(frame[:, :, j] + frame[:, :, k]) - bend[:, :, j, j] - bend[:, :, k, k]
            bend[:, :, j, k] = bend[:, :, k, j] = 0.5 * mixed
    return bend


def latent_span(domain: Domain) -> float:
    """A typical extent of the latent coordinates: that of the bounded axes, 1 (a radian) where there are none."""
    extent = domain.extent.upper - domain.extent.lower
    bounded = extent[np.isfinite(extent) & (extent > 0)]
    return float(bounded.min()) if len(bounded) else 1.0


def curve_length(vertices: FloatArray, closed: bool = False) -> float:
    """Length Σ‖v_{i+1} − v_i‖ of the polyline through the rows, with the last joined to the first when closed."""
    vertices = np.asarray(vertices, dtype=float)
    chain = np.vstack([vertices, vertices[:1]]) if closed else vertices
    return float(np.linalg.norm(np.diff(chain, axis=0), axis=1).sum())


def face_volumes(vertices: FloatArray, faces: IntArray) -> FloatArray:
    """(F,) volumes √det(EᵀE)/q! of simplices with edges E: lengths, areas, volumes, in any D."""
    vertices, faces = np.asarray(vertices, dtype=float), np.asarray(faces)
    if faces.ndim != 2:
        raise InvalidDataError(f"faces must be a table of corner indices, got shape {faces.shape}.")
    corners = vertices[faces]
    edges = np.swapaxes(corners[:, 1:] - corners[:, :1], 1, 2)
    if edges.shape[2] > edges.shape[1]:
        return np.zeros(len(faces))
    # Products of singular values: the Gram determinant itself loses half the digits of a thin face.
    return np.asarray(np.linalg.svd(edges, compute_uv=False).prod(axis=1) / factorial(edges.shape[2]))


def mesh_volume(vertices: FloatArray, faces: IntArray) -> float:
    """Total length, area or volume of a mesh, by the dimension of its faces."""
    return float(face_volumes(vertices, faces).sum())
