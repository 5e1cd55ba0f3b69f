"""Roughness of curves and surfaces: total turning and bending.

Curves: total turning angle, and per unit length. Surfaces: ∫‖II‖² dA, which is ∫(κ₁² + κ₂²) dA in three
dimensions, and per unit area. The angle sum of the PPS paper (25) is kept apart under its own name.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial
from typing import NamedTuple

import numpy as np

from prinfold._typing import FloatArray, IntArray, Mesh
from prinfold.exceptions import InvalidDataError
from prinfold.geometry.domain import Domain
from prinfold.geometry.metric import mesh_volume, second_derivatives, stretch
from prinfold.validation.failures import name_call_failures
from prinfold.validation.settings import check_call, flag
from prinfold.validation.tables import as_numbers

Jacobian = Callable[[FloatArray], FloatArray]
_BLOCK_NUMBERS = 2**22
_RANK_TOLERANCE = 1e-8

# Barycentric quadrature: exact for polynomials of degree 5 (q = 1), 4 (q = 2) and 2 (q = 3). All nodes are
# inside, so that no derivative is ever taken on the edge of the domain.
_A, _B, _C = 0.445948490915965, 0.091576213509771, 0.5 * np.sqrt(0.6)
_P, _R = 0.5854101966249685, 0.1381966011250105
_RULES: dict[int, tuple[list[list[float]], list[float]]] = {
    1: ([[0.5 - _C, 0.5 + _C], [0.5, 0.5], [0.5 + _C, 0.5 - _C]], [5 / 18, 8 / 18, 5 / 18]),
    2: (
        [
            *([1 - 2 * _A, _A, _A], [_A, 1 - 2 * _A, _A], [_A, _A, 1 - 2 * _A]),
            *([1 - 2 * _B, _B, _B], [_B, 1 - 2 * _B, _B], [_B, _B, 1 - 2 * _B]),
        ],
        [0.223381589678011] * 3 + [0.109951743655322] * 3,
    ),
    3: ([[_P, _R, _R, _R], [_R, _P, _R, _R], [_R, _R, _P, _R], [_R, _R, _R, _P]], [0.25] * 4),
}


class Roughness(NamedTuple):
    """Total turning of a curve or bending of a surface, and its mean.

    Parameters
    ----------
    total : float
        Turning in radians, or bending.
    mean : float
        The same per unit size; 0 for something of no size.
    size : float
        Length or area.
    """

    total: float
    mean: float
    size: float


def _make_roughness(total: float, size: float) -> Roughness:
    return Roughness(total, total / size if size > 0 else 0.0, size)


def angles_between(u: FloatArray, v: FloatArray) -> FloatArray:
    """Angles in radians between rows, 2·atan2(‖û − v̂‖, ‖û + v̂‖): accurate where the arc cosine is not."""
    u, v = (a / np.linalg.norm(a, axis=-1, keepdims=True) for a in (u, v))
    return np.asarray(2 * np.arctan2(np.linalg.norm(u - v, axis=-1), np.linalg.norm(u + v, axis=-1)))


def graph_roughness(vertices: FloatArray, segments: IntArray) -> Roughness:
    """Roughness of segments (F, 2) in any order: the turn at every vertex where exactly two of them meet.

    Places with equal coordinates are one, so that a curve whose ends coincide is closed.
    """
    vertices, segments = np.asarray(vertices, dtype=float), np.asarray(segments)
    if segments.ndim != 2 or segments.shape[1] != 2:
        raise InvalidDataError(f"segments must have two columns of vertex indices, got shape {segments.shape}.")
    places, name = np.unique(vertices, axis=0, return_inverse=True)
    ends = name.reshape(-1)[segments]
    ends = np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0)
    here, there = ends.ravel(), ends[:, ::-1].ravel()
    order = np.argsort(here, kind="stable")
    count = np.bincount(here, minlength=len(places))
    first = (np.cumsum(count) - count)[count == 2]
    out, back = places[there[order[first]]], places[there[order[first + 1]]]
    middle = places[count == 2]
    return _make_roughness(float(angles_between(out - middle, middle - back).sum()), mesh_volume(places, ends))


@name_call_failures
@check_call(degrees=flag)
def angle_sum(tangents: FloatArray, *, degrees: bool = True) -> float:
    """Roughness R of Chang and Ghosh (25): Σ arccos(t·t′ / ‖t‖‖t′‖) over neighbours t, t′.

    Nodes with a zero tangent have no direction and are passed over.

    Parameters
    ----------
    tangents : array of shape (M, D) or (n_1, …, n_Q, D, Q)
        Tangents at the nodes of a curve in order, or Jacobians at the nodes of a grid; R is then averaged over
        all grid lines of all Q axes, each line using the tangent along itself.
    degrees : bool, default True
        Degrees as in the paper, or radians.

    Returns
    -------
    float
        The sum of angles.
    """
    tangents = as_numbers("tangents", tangents)
    if not np.isfinite(tangents).all():
        raise InvalidDataError("tangents hold NaN or infinity; leave those nodes out.")
    if tangents.ndim < 2 or (tangents.ndim > 2 and tangents.ndim != tangents.shape[-1] + 2):
        raise InvalidDataError(
            f"tangents must be (M, D) for a curve or (n_1, …, n_Q, D, Q) for a grid, got shape {tangents.shape}."
        )
    if not tangents.size:
        return 0.0
    grid = tangents[..., None] if tangents.ndim == 2 else tangents
    totals = []
    for axis in range(grid.shape[-1]):
        along = np.moveaxis(grid[..., axis], axis, -2)
        totals += [_line_angle(line) for line in along.reshape(-1, *along.shape[-2:])]
    mean = float(np.mean(totals)) if totals else 0.0
    return float(np.degrees(mean)) if degrees else mean


def _line_angle(tangents: FloatArray) -> float:
    largest = np.abs(tangents).max(axis=1, keepdims=True, initial=0.0)
    tangents = tangents[largest[:, 0] > 0] / largest[largest[:, 0] > 0]  # so that no square leaves double precision
    return float(angles_between(tangents[:-1], tangents[1:]).sum()) if len(tangents) > 1 else 0.0


def bending(jacobian: Jacobian, domain: Domain, Z: FloatArray) -> FloatArray:
    """(n,) ‖II‖² = g^{ik} g^{jl} ⟨II_ij, II_kl⟩, II the normal part of the second derivatives; κ₁² + κ₂² in 3-D.

    Directions that the map flattens have no curvature of their own and are left out.
    """
    Z = np.asarray(Z, dtype=float)
    J = np.asarray(jacobian(Z), dtype=float)
    U, lengths, Vt = np.linalg.svd(np.matmul(J, domain.frame(Z)), full_matrices=False)
    kept = lengths > _RANK_TOLERANCE * lengths[:, :1]
    U = U * kept[:, None, :]
    second = second_derivatives(jacobian, domain, Z, J)
    normal = second - np.einsum("nda,nea,nejk->ndjk", U, U, second, optimize=True)
    # In the singular basis the metric is diag(lengths²): contracting with its inverse divides by lengths.
    inverse = np.where(kept, 1.0 / np.where(kept, lengths, 1.0), 0.0)
    unit = np.swapaxes(Vt, 1, 2) * inverse[:, None, :]
    form = np.einsum("ndjk,nja,nkb->ndab", normal, unit, unit, optimize=True)
    return np.asarray((form**2).sum(axis=(1, 2, 3)))


def surface_roughness(jacobian: Jacobian, domain: Domain, mesh: Mesh) -> Roughness:
    """∫‖II‖² dA over the smooth surface, and per unit area, by quadrature over the mesh's latent faces."""
    faces, latent = np.asarray(mesh.faces), np.asarray(mesh.latent, dtype=float)
    q = faces.shape[1] - 1
    if q not in _RULES:
        raise InvalidDataError(f"surface roughness needs faces with 2, 3 or 4 corners, got {q + 1}.")
    per_face = len(_RULES[q][1]) * mesh.vertices.shape[1] * (q + 1) ** 2
    size = max(1, _BLOCK_NUMBERS // max(1, per_face))
    total = area = 0.0
    for i in range(0, len(faces), size):
        Z, edges, weights = quadrature(domain, latent[faces[i : i + size]])
        patch = weights * stretch(np.matmul(jacobian(Z), edges)).factor
        area += float(patch.sum())
        # A patch of no area (a pole of the chart) adds nothing, however wild its curvature looks.
        total += float(np.where(patch > 0, patch * bending(jacobian, domain, Z), 0.0).sum())
    return _make_roughness(total, area)


def quadrature(domain: Domain, corners: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Nodes for integrals over latent simplices with corners (F, q + 1, Q).

    Returns nodes Z (m, Q), the derivatives T (m, Q, q) of the latent point by the reference coordinates,
    and weights (m,), so that ∫ f dA ≈ Σ w · f(Z) · √det((JT)ᵀJT).
    """
    F, q1, Q = corners.shape
    rule, mass = (np.array(part) for part in _RULES[q1 - 1])
    base = corners[:, 0]
    edges = np.stack([domain.difference(corners[:, j], base) for j in range(1, q1)], axis=2)
    flat = base[:, None, :] + np.einsum("fQj,mj->fmQ", edges, rule[:, 1:])
    flat, edges = flat.reshape(-1, Q), np.repeat(edges, len(rule), axis=0)
    h = 1e-5
    slopes = [
        domain.difference(domain.beyond(flat + h * edges[:, :, j]), domain.beyond(flat - h * edges[:, :, j])) / (2 * h)
        for j in range(q1 - 1)
    ]
    return domain.beyond(flat), np.stack(slopes, axis=2), np.tile(mass, F) / factorial(q1 - 1)
