"""Diagnostics of folds and strong warps of a fitted surface (GTM thesis, 4.6 and 7.3.2).

Between neighbouring nodes of a smooth surface the tangent space tilts little and the main direction of
stretch keeps its course. Where it does not, the map of the data can mislead.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.exceptions import Advice, InvalidDataError, Message

# The thesis expects inner products between neighbours to be positive: beyond a right angle is a fold.
_FOLD_ANGLE = 0.5 * np.pi
# An axis has no sign, so it turns by a right angle at most; three quarters of that, weighted, is a warp.
_WARP_TURN = 0.375 * np.pi
# A direction shorter than this fraction of the longest is flattened.
_RANK_TOLERANCE = 1e-8


class Folds(NamedTuple):
    """Fold and warp diagnostics at K nodes.

    ``angle`` largest oriented angle in radians, 0 to π, between a node's tangent space and a neighbour's;
    ``turn`` largest angle between main directions of stretch in data space, weighted by anisotropy;
    ``anisotropy`` longest over shortest stretch (inf where flattened); ``log_factor`` natural logarithm of
    the magnification; ``folded`` where the angle exceeds a right angle.
    """

    angle: FloatArray
    turn: FloatArray
    anisotropy: FloatArray
    log_factor: FloatArray
    folded: BoolArray


def find_folds(J: FloatArray, frame: FloatArray | None, edges: IntArray) -> Folds:
    """Compare each node's stretch with its neighbours'; J (K, D, Q), frame (K, Q, q) or None, edges (E, 2).

    With A = J·frame = U·diag(ℓ)·Vᵀ at each node, the tangent spaces of neighbours meet at principal angles
    whose cosines are the singular values of UᵃᵀUᵇ. The largest is the tilt θ; where the orientation is
    reversed, det(VᵃUᵃᵀUᵇVᵇᵀ) < 0, the angle is π − θ. In as many dimensions as the latent space has,
    θ is 0 and a fold shows as the sign of det J. The main directions u₁ turn by arccos|u₁ᵃ·u₁ᵇ|, which
    says nothing under uniform stretch: it is weighted by 1 − ℓ_last/ℓ₁, the smaller of the two ends.
    """
    A = np.asarray(J if frame is None else np.matmul(J, frame), dtype=float)
    edges = np.asarray(edges)
    if edges.ndim != 2 or edges.shape[1] != 2:
        raise InvalidDataError(f"edges must have two columns of node indices, got shape {edges.shape}.")
    if A.shape[1] < A.shape[2]:
        raise InvalidDataError(
            f"folds need at least as many data columns as latent directions, got {A.shape[1]} and {A.shape[2]}."
        )
    U, lengths, Vt = np.linalg.svd(A, full_matrices=False)
    flat = lengths[:, -1] <= _RANK_TOLERANCE * np.maximum(lengths[:, 0], np.finfo(float).tiny)
    a, b = edges.T
    angle, turn = _edge_angles(U, Vt, lengths, a, b)
    # A flattened node has no tangent space to compare.
    comparable = ~(flat[a] | flat[b])
    angle, turn = np.where(comparable, angle, 0.0), np.where(comparable, turn, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        anisotropy = np.where(flat, np.inf, lengths[:, 0] / lengths[:, -1])
        log_factor = np.log(lengths).sum(axis=1)
    node_angle, node_turn = _worst(angle, edges, len(A)), _worst(turn, edges, len(A))
    return Folds(node_angle, node_turn, anisotropy, log_factor, node_angle > _FOLD_ANGLE)


def _edge_angles(
    U: FloatArray, Vt: FloatArray, lengths: FloatArray, a: IntArray, b: IntArray
) -> tuple[FloatArray, FloatArray]:
    """(E,) oriented tilt and weighted turn along each edge."""
    overlap = np.einsum("edi,edj->eij", U[a], U[b])
    tilt = np.arccos(np.clip(np.linalg.svd(overlap, compute_uv=False)[:, -1], 0.0, 1.0))
    # Singular vectors have arbitrary signs: undo them with V before asking for the orientation.
    oriented = np.linalg.det(overlap) * np.linalg.det(Vt[a]) * np.linalg.det(Vt[b])
    angle = np.where(oriented < 0, np.pi - tilt, tilt)
    weight = 1.0 - lengths[:, -1] / np.where(lengths[:, 0] > 0, lengths[:, 0], 1.0)
    cosine = np.abs(np.einsum("ed,ed->e", U[a, :, 0], U[b, :, 0]))
    return angle, np.minimum(weight[a], weight[b]) * np.arccos(np.clip(cosine, 0.0, 1.0))


def _worst(value: FloatArray, edges: IntArray, n_nodes: int) -> FloatArray:
    """Largest value over the edges of each node, 0 for a node without."""
    worst = np.zeros(n_nodes)
    for end in edges.T:
        np.maximum.at(worst, end, value)
    return worst


def describe(folds: Folds) -> Message | None:
    """One sentence for a warning, or None when nothing is wrong."""
    total, found = len(folds.folded), []
    folded = int(folds.folded.sum())
    if folded:
        worst = np.degrees(folds.angle.max())
        found.append(
            f"is folded at {folded} of {total} nodes (its tangent space turns by up to {worst:.0f}° between neighbours)"
        )
    warped = int(((folds.turn > _WARP_TURN) & ~folds.folded).sum())
    if warped:
        found.append(f"is badly warped at {warped} of {total} nodes (the main direction of stretch swings round)")
    flat = int(np.isinf(folds.anisotropy).sum())
    if flat:
        found.append(f"is flattened to fewer dimensions at {flat} of {total} nodes")
    if not found:
        return None
    return Message(
        f"The surface {' and '.join(found)}: latent coordinates there can be misleading.",
        Advice("width", 2, "use a stiffer surface (wider basis functions, such as {})"),
        "another start",
    )
