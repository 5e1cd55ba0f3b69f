"""Bounds on the responsibilities of nodes with oriented noise for all rows in a ball; the bounds are ours.

Let f_k(t) = log p(t | k) and Λ_k = Σ_k⁻¹ = I/B_k − c_k P_k with P = EEᵀ, and let j be the likeliest node at the centre
x of a ball of radius ρ. With t = x + δ, ‖δ‖ ≤ ρ and h_k = Λ_k(x − y_k), Taylor's formula is exact to second order:

    f_k(t) − f_j(t) = f_k(x) − f_j(x) − δ·(h_k − h_j) + ½ δᵀ(Λ_j − Λ_k)δ.

The sum over all nodes is at least its term j, so that log r_k(t) is no larger. What δ adds is bounded in two ways, and
the smaller taken.

1. By Cauchy and Schwarz the second term is at most ρ‖h_k − h_j‖, and the third at most ½ρ² λmax(Λ_j − Λ_k). Now

       Λ_j − Λ_k = (1/B_j − 1/B_k) I + c_k(P_k − P_j) + (c_k − c_j) P_j,

   and ‖P_k − P_j‖ is s, the sine of the largest angle between the tangents.
2. Rows scatter in all columns, but nodes and tangents nearly lie in a few axes F. Let δ be at most ρ_w within and ρ_b
   beside them. Then −δ·(h_k − h_j) ≤ ρ_w‖Fᵀ(h_k − h_j)‖ + ρ_b‖(h_k − h_j) beside F‖. With l the length of the tangents
   beside F, l² = ‖E‖² − ‖FᵀE‖², the blocks of P_k − P_j within, across and beside F have norms of at most s,
   l_k + l_j and max(l_k, l_j)², and ‖E_jᵀδ‖ ≤ ρ_w + l_jρ_b.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.gtm.node_bounds import Balls
from prinfold.pps.oriented_sums import OrientedNodes

_ROUNDING = 1e-13
"""Squared lengths as differences of products are off by this share of the terms, so much is added."""


class _WeightedGaps(NamedTuple):
    """h_k = (x − y_k)/B_k − c_k E_k u_k for all balls and nodes, in full space or on some axes, for its norms."""

    center: FloatArray
    centers: FloatArray
    frame: FloatArray

    def squared_differences(self, nodes: OrientedNodes, coordinate: FloatArray, best: IntArray) -> FloatArray:
        """(G, K) ‖h_k − h_j‖² in units of :func:`_unit`, never too small.

        ``coordinate`` (Q, G, K) is u_k = E_kᵀ(x − y_k) in full space.
        """
        inverse = nodes.inverse_across / _unit(nodes)
        contrast = inverse - nodes.inverse_along / _unit(nodes)
        x, Y, E = self
        u = coordinate[:, np.arange(len(x)), best]
        force = inverse[best][:, None] * (x - Y[best])
        force -= contrast[best][:, None] * np.einsum("qg,qgd->gd", u, E[:, best])
        seen = x @ np.swapaxes(E, 1, 2) - np.einsum("qkd,kd->qk", E, Y)[:, None]
        squared = np.einsum("gd,gd->g", x, x)[:, None] + np.einsum("kd,kd->k", Y, Y) - 2 * (x @ Y.T)
        gram = np.einsum("pkd,qkd->kpq", E, E)
        own = inverse**2 * np.maximum(squared, 0.0)
        own -= 2 * inverse * contrast * np.einsum("qgk,qgk->gk", seen, coordinate)
        own += contrast**2 * np.einsum("pgk,kpq,qgk->gk", coordinate, gram, coordinate, optimize=True)
        aligned = inverse * (np.einsum("gd,gd->g", force, x)[:, None] - force @ Y.T)
        aligned -= contrast * np.einsum("qgk,qgk->gk", force @ np.swapaxes(E, 1, 2), coordinate)
        whole = own + np.einsum("gd,gd->g", force, force)[:, None]
        return np.asarray(np.maximum(whole - 2 * aligned, 0.0) + _ROUNDING * np.abs(whole))


def _unit(nodes: OrientedNodes) -> float:
    """Largest precision, a unit that keeps squares of precisions in the range of floating point."""
    return float(max(nodes.inverse_across.max(), nodes.inverse_along.max()))


def log_responsibility_bounds(nodes: OrientedNodes, balls: Balls, least: float = -inf) -> FloatArray:
    """(G, K) bounds on log r_k(t) over the rows t of each ball, all of them tight; see the head of this file."""
    center, frame, Y = balls.center, nodes.tangents.frame, nodes.centers
    contrast = nodes.inverse_across - nodes.inverse_along
    squared = np.einsum("gd,gd->g", center, center)[:, None] + np.einsum("kd,kd->k", Y, Y) - 2 * (center @ Y.T)
    coordinate = center @ np.swapaxes(frame, 1, 2) - np.einsum("qkd,kd->qk", frame, Y)[:, None]
    tangential = np.einsum("qgk,qgk->gk", coordinate, coordinate)
    log_density = nodes.log_normalizer - 0.5 * nodes.inverse_across * squared + 0.5 * contrast * tangential
    best = log_density.argmax(axis=1)
    apart = _WeightedGaps(center, Y, frame).squared_differences(nodes, coordinate, best)
    sine = _sines(nodes, best)
    rho, unit = balls.radius[:, None], _unit(nodes)
    change = unit * rho * np.sqrt(apart) + 0.5 * rho**2 * _largest_precision_difference(nodes, best, sine)
    if balls.frame.shape[1]:
        F = balls.frame
        inside = _WeightedGaps(center @ F, Y @ F, frame @ F).squared_differences(nodes, coordinate, best)
        beside = np.maximum(apart - inside, 0.0) + _ROUNDING * (apart + inside)
        linear = balls.within[:, None] * np.sqrt(inside) + balls.beside[:, None] * np.sqrt(beside)
        change = np.minimum(change, unit * linear + _quadratic_term_in_axes(nodes, best, sine, balls))
    return np.asarray(log_density - log_density[np.arange(len(best)), best][:, None] + change)


def _sines(nodes: OrientedNodes, best: IntArray) -> FloatArray:
    """(G, K) upper bounds on ‖P_k − P_j‖.

    Differences of projections of equal rank have eigenvalues in pairs ±, sines of angles: the largest is at most
    the root of half the sum of their squares, and never above 1.
    """
    frame, rank = nodes.tangents.frame, nodes.tangents.rank
    seen, where = np.unique(best, return_inverse=True)
    overlap = sum(np.square(one @ other.T) for one in frame[:, seen] for other in frame)
    sine = np.sqrt(np.clip(rank[seen][:, None] - overlap + _ROUNDING, 0.0, 1.0))
    return np.asarray(np.where(rank[seen][:, None] == rank, sine, 1.0)[where])


def _largest_precision_difference(nodes: OrientedNodes, best: IntArray, sine: FloatArray) -> FloatArray:
    """(G, K) upper bounds on the largest eigenvalue of Λ_j − Λ_k."""
    inverse, contrast = nodes.inverse_across, nodes.inverse_across - nodes.inverse_along
    turn = inverse[best][:, None] - inverse + np.abs(contrast) * sine
    return np.asarray(np.maximum(turn + np.maximum(contrast - contrast[best][:, None], 0.0), 0.0))


def _quadratic_term_in_axes(nodes: OrientedNodes, best: IntArray, sine: FloatArray, balls: Balls) -> FloatArray:
    """(G, K) upper bounds on ½ δᵀ(Λ_j − Λ_k)δ by what lies within and beside the axes."""
    inverse, contrast = nodes.inverse_across, nodes.inverse_across - nodes.inverse_along
    inside = np.square(nodes.tangents.frame @ balls.frame).sum(axis=(0, 2))
    leak = np.sqrt(np.maximum(nodes.tangents.rank - inside, 0.0) + _ROUNDING)
    within, beside = balls.within[:, None], balls.beside[:, None]
    of_best = leak[best][:, None]
    turn = sine * within**2 + 2 * within * beside * (leak + of_best) + (beside * np.maximum(leak, of_best)) ** 2
    total = np.abs(contrast) * turn + np.maximum(inverse[best][:, None] - inverse, 0.0) * balls.radius[:, None] ** 2
    total += np.maximum(contrast - contrast[best][:, None], 0.0) * (within + of_best * beside) ** 2
    return np.asarray(0.5 * total)
