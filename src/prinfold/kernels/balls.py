"""What rows of a ball can have to do with components of a mixture, without looking at the rows."""

from __future__ import annotations

import numpy as np

from prinfold._typing import FloatArray

_ROUNDING = 1e-14
"""Squared distances as differences of products are off by this share of the largest square, so much is added."""


def split_radii(delta: FloatArray, frame: FloatArray) -> tuple[float, float, float]:
    """How far rows reach from the centre of their ball: in all, within the axes of ``frame`` (D, q), beside them."""
    within = delta @ frame
    square, inside = np.einsum("nd,nd->n", delta, delta), np.einsum("nq,nq->n", within, within)
    beside = np.maximum(square - inside, 0.0) + _ROUNDING * square
    return tuple(float(np.sqrt(each.max())) for each in (square, inside, beside))  # type: ignore[return-value]


def leading_axes(points: FloatArray, remainder: float, most: int) -> FloatArray:
    """(D, q) orthonormal axes that hold all but a share ``remainder`` of the scatter; none where it takes too many."""
    _, size, axes = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    scatter = np.cumsum(size**2)
    q = int(np.searchsorted(scatter, (1.0 - remainder) * scatter[-1])) + 1
    return np.ascontiguousarray(axes[: q if q <= most else 0].T)


def rise_bounds(
    Y: FloatArray,
    centre: FloatArray,
    radius: FloatArray,
    frame: FloatArray | None = None,
    within: FloatArray | None = None,
    beside: FloatArray | None = None,
) -> FloatArray:
    """(G, K) bounds on f_k(t) − max_i f_i(t) over the rows t of each ball, where f_k(t) = t·y_k − ½‖y_k‖².

    Let j be the best at the centre c, d = y_k − y_j, and t = c + δ. f is linear in t, so

        f_k(t) − max_i f_i(t) ≤ f_k(t) − f_j(t) = f_k(c) − f_j(c) + δ·d,

    and δ·d ≤ ρ‖d‖ for ‖δ‖ ≤ ρ by Cauchy and Schwarz. With orthonormal axes F in a ``frame``, δ and d fall into parts
    within and beside them, δ·d = Fᵀδ · Fᵀd + (δ − FFᵀδ)·(d − FFᵀd), and the same inequality for each part gives
    δ·d ≤ ρ_within‖Fᵀd‖ + ρ_beside‖d − FFᵀd‖. Where components lie along a few axes but rows scatter in all, ρ_beside is
    large, yet what it multiplies is small. Both hold, whatever the axes are, so the smaller is taken.
    """
    half_square = 0.5 * np.einsum("kd,kd->k", Y, Y)
    at_centre = centre @ Y.T
    at_centre -= half_square
    best = at_centre.argmax(axis=1)
    rounding = _ROUNDING * half_square.max(initial=0.0)
    apart = _squares_apart(Y, half_square, best, rounding)
    reach = np.sqrt(apart)
    reach *= radius[:, None]
    if frame is not None and within is not None and beside is not None and frame.shape[1]:
        Z = Y @ frame
        inside = _squares_apart(Z, 0.5 * np.einsum("kd,kd->k", Z, Z), best, rounding)
        apart -= inside
        np.clip(apart, 0.0, np.inf, out=apart)
        apart += rounding
        np.sqrt(apart, out=apart)
        apart *= beside[:, None]
        np.sqrt(inside, out=inside)
        inside *= within[:, None]
        apart += inside
        np.minimum(reach, apart, out=reach)
    reach += at_centre
    reach -= at_centre[np.arange(len(centre)), best][:, None]
    return np.asarray(reach)


def _squares_apart(Y: FloatArray, half_square: FloatArray, chosen: FloatArray, rounding: float) -> FloatArray:
    """(G, K) ‖y_k − y_j‖² for each chosen j, never too small."""
    apart = Y[chosen] @ Y.T
    np.subtract(half_square, apart, out=apart)
    apart += half_square[chosen][:, None]
    np.clip(apart, 0.0, np.inf, out=apart)
    apart += rounding
    apart *= 2.0
    return np.asarray(apart)
