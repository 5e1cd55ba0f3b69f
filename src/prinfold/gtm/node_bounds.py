"""Bounds on the densities that components of a mixture have for rows in a ball, without looking at the rows."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import NamedTuple, TypeAlias

import numpy as np

from prinfold._typing import FloatArray, IntArray

_SINGLE_PRECISION_ERROR = 1e-5
_SMALLEST_ERROR = 1e-30
"""Products of vectors of up to sixteen numbers in single precision are off by less than the first of the product of
their lengths: rounding each number, each product and each sum by 6e-8 makes (16 + 3) times that. Where numbers are too
small for single precision they are off by less than the second, in units of their own."""

ROUNDING = 1e-14
"""Squared distances as differences of products are off by this share of the largest square, so much is added."""


class Balls(NamedTuple):
    """Balls that hold rows, and what is known of how far these reach within some axes.

    ``frame`` (D, q) are orthonormal axes, and rows lie within (G,) ``within`` of their centre along those and within
    ``beside`` of it across them. ``seen`` (n, q), if there are any, are the rows less their centre along the axes in
    single precision and in a ``unit``, those of ball g from ``starts[g]`` to ``starts[g + 1]``.
    """

    center: FloatArray
    radius: FloatArray
    frame: FloatArray
    within: FloatArray
    beside: FloatArray
    seen: FloatArray | None = None
    starts: IntArray | None = None
    unit: float = 1.0

    def select(self, part: slice) -> Balls:
        """Those of a slice."""
        starts = None if self.starts is None else self.starts[part.start : part.stop + 1]
        radii = self.radius[part], self.frame, self.within[part], self.beside[part]
        return Balls(self.center[part], *radii, self.seen, starts, self.unit)


NodesOfBalls: TypeAlias = Callable[[slice], tuple[IntArray, IntArray]]
"""The nodes that the balls of a slice keep, one ball after the other, and (G,) how many those are."""


def split_radii(delta: FloatArray, begin: IntArray, frame: FloatArray) -> FloatArray:
    """(3, G) how far rows reach from the centre of their ball: in all, within the axes of ``frame`` (D, q), beside.

    ``delta`` (n, D) are the rows less that centre, those of a ball from where it ``begin``s to where the next one does.
    """
    within = delta @ frame
    square, inside = np.einsum("nd,nd->n", delta, delta), np.einsum("nq,nq->n", within, within)
    beside = np.maximum(square - inside, 0.0) + ROUNDING * square
    return np.asarray(np.sqrt(np.maximum.reduceat(np.stack([square, inside, beside]), begin, axis=1)))


def leading_axes(points: FloatArray, remainder: float, most: int) -> FloatArray:
    """(D, q) orthonormal axes that hold all but a share ``remainder`` of the scatter; none where it takes too many."""
    _, size, axes = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    scatter = np.cumsum(size**2)
    q = int(np.searchsorted(scatter, (1.0 - remainder) * scatter[-1])) + 1
    return np.ascontiguousarray(axes[: q if q <= most else 0].T)


def rise_bounds(Y: FloatArray, balls: Balls, least: float = -inf) -> FloatArray:
    """(G, K) bounds on f_k(t) − max_i f_i(t) over the rows t of each ball, where f_k(t) = t·y_k − ½‖y_k‖².

    Let j be the best at the centre c, d = y_k − y_j, and t = c + δ. f is linear in t, so

        f_k(t) − max_i f_i(t) ≤ f_k(t) − f_j(t) = f_k(c) − f_j(c) + δ·d,

    and δ·d ≤ ρ‖d‖ for ‖δ‖ ≤ ρ by Cauchy and Schwarz. With orthonormal axes F in a frame, δ and d fall into parts
    within and beside them, δ·d = Fᵀδ · Fᵀd + (δ − FFᵀδ)·(d − FFᵀd), and the same inequality for each part gives
    δ·d ≤ ρ_within‖Fᵀd‖ + ρ_beside‖d − FFᵀd‖. Where components lie along a few axes but rows scatter in all, ρ_beside is
    large, yet what it multiplies is small. Where rows are known along the axes, the largest Fᵀδ · Fᵀd of them takes
    the place of ρ_within‖Fᵀd‖; that is computed for bounds above ``least`` alone. All of this holds, whatever the axes
    are, so the smallest is taken.
    """
    if balls.seen is not None:
        return _bounds_of_known_rows(Y, balls, least)
    half_square = 0.5 * np.einsum("kd,kd->k", Y, Y)
    rise = balls.center @ Y.T
    rise -= half_square
    best = rise.argmax(axis=1)
    rise -= rise[np.arange(len(best)), best][:, None]
    rounding = ROUNDING * half_square.max(initial=0.0)
    apart = _squares_apart(Y, half_square, best, rounding)
    reach = np.sqrt(apart)
    reach *= balls.radius[:, None]
    if balls.frame.shape[1]:
        Z = Y @ balls.frame
        inside = _squares_apart(Z, 0.5 * np.einsum("kd,kd->k", Z, Z), best, rounding)
        apart -= inside
        np.clip(apart, 0.0, np.inf, out=apart)
        apart += rounding
        np.sqrt(apart, out=apart)
        apart *= balls.beside[:, None]
        np.sqrt(inside, out=inside)
        inside *= balls.within[:, None]
        apart += inside
        np.minimum(reach, apart, out=reach)
    reach += rise
    return np.asarray(reach)


def _bounds_of_known_rows(Y: FloatArray, balls: Balls, least: float) -> FloatArray:
    """The same for rows that are known along the axes, compiled: only sweeps ask for this."""
    from prinfold.gtm._node_bounds_jit import bounds_of_balls, images_of_nodes

    Y = np.ascontiguousarray(Y)
    given = Y, images_of_nodes(Y, np.ascontiguousarray(balls.frame)), *_known_rows(balls), ROUNDING, _slack(balls)
    return bounds_of_balls(*given, least, balls.unit)


def near_of_known_rows(Y: FloatArray, precision: float, balls: Balls, lost: float) -> NodesOfBalls:
    """Components that balls keep whose rows are known along the axes, by ``precision`` times :func:`rise_bounds`."""
    from prinfold.gtm._node_bounds_jit import images_of_nodes, near_of_balls

    Y = np.ascontiguousarray(Y)
    images = images_of_nodes(Y, np.ascontiguousarray(balls.frame))

    def find(some: slice) -> tuple[IntArray, IntArray]:
        known = _known_rows(balls.select(some))
        return near_of_balls(Y, images, *known, ROUNDING, _slack(balls), balls.unit, precision, lost)

    return find


def _known_rows(balls: Balls) -> tuple[FloatArray, FloatArray, FloatArray, IntArray]:
    """Centres, radii (3, G) and rows of balls, as compiled code takes them."""
    assert balls.seen is not None
    assert balls.starts is not None
    radii = np.stack([balls.radius, balls.within, balls.beside])
    return np.ascontiguousarray(balls.center), radii, balls.seen, balls.starts


def _slack(balls: Balls) -> tuple[float, float]:
    return _SINGLE_PRECISION_ERROR, _SMALLEST_ERROR * balls.unit**2


def _squares_apart(Y: FloatArray, half_square: FloatArray, chosen: FloatArray, rounding: float) -> FloatArray:
    """(G, K) ‖y_k − y_j‖² for each chosen j, never too small."""
    apart = Y[chosen] @ Y.T
    np.subtract(half_square, apart, out=apart)
    apart += half_square[chosen][:, None]
    np.clip(apart, 0.0, np.inf, out=apart)
    apart += rounding
    apart *= 2.0
    return np.asarray(apart)
