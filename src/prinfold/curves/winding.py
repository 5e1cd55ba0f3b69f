"""Whether a curve winds: whether it runs repeatedly beside itself through rows of one loop; the test is ours.

Several passes round one loop, each a little shifted, are nearer to a curve that follows them one after the other than
to the loop that they share. Such a curve is told from a helix or a spiral by the distance between its strands. Turns of
a helix stay apart all the way. A pass that returns to its own beginning does not: before the curve leaves it for the
next, it has run into itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from prinfold._typing import FloatArray

ELSEWHERE_RATIO = 0.75 * np.pi
"""Way along the curve over distance, from which on two points are on different parts of it; π/2 across a circle."""

_PARALLEL_COSINE = 0.8
"""Cosine of the angle between two parts of a curve from which on they run side by side, and do not cross."""

_BESIDE_SHARE = 0.5
"""Share of a curve with another part of it beside it, from which on it may wind."""

_NEAR_SHARE = 1.0
"""Distance between parts that run side by side at most, in root mean squared distances of rows from their mean."""

_TOUCHING_RATIO = 0.55
"""Least distance between strands within a turn over the usual one, below which they touch. Of wound passes it is mostly
0.07 to 0.5, of helices and spirals 0.8 to 0.98."""

_NOISE_DEVIATIONS = 3.0
"""Usual distance between strands, in deviations of the noise across, below which all of them lie within it."""

WOUND_RATIO = 1.4
"""Length of a curve that winds at least, in units of that of the ring that it winds about."""

_MOST_COMPARED_POINTS = 300
"""Points along a curve at which distances to its other parts are measured."""


class StrandDistances(NamedTuple):
    """Distances (k,) from points along a curve to the nearest other part beside it, inf where there is none.

    ``way`` (k,) is how far it is to that part along the curve, and ``length`` that of the curve.
    """

    distance: FloatArray
    way: FloatArray
    length: float


def winds(vertices: FloatArray, closed: bool, noise: float, spread: float) -> bool:
    """Whether a curve runs beside itself along most of its length, through strands that touch or lie within the noise.

    ``noise`` is the deviation across the curve in each direction, and ``spread`` that of all rows about their mean.
    """
    strands = find_strands(vertices, closed, _NEAR_SHARE * spread)
    beside = np.isfinite(strands.distance)
    if beside.mean() < _BESIDE_SHARE:
        return False
    usual = float(np.median(strands.distance[beside]))
    turn = float(np.median(strands.way[beside]))
    n_turns = max(1, round(strands.length / turn)) if turn > 0 else 1
    least = np.array([turn.min() for turn in np.array_split(strands.distance, min(n_turns, _MOST_COMPARED_POINTS))])
    touching = float(np.median(least[np.isfinite(least)])) < _TOUCHING_RATIO * usual
    return touching or usual < _NOISE_DEVIATIONS * noise


def find_strands(vertices: FloatArray, closed: bool, near: float) -> StrandDistances:
    """For points along a curve, the nearest other part of it that runs side by side and no farther than ``near``."""
    chain = np.vstack([vertices, vertices[:1]]) if closed else vertices
    knots = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(chain, axis=0), axis=1))])
    z = np.linspace(0.0, knots[-1], _MOST_COMPARED_POINTS, endpoint=not closed)
    points = np.stack([np.interp(z, knots, column) for column in chain.T], axis=1)
    way = np.abs(z[:, None] - z)
    way = np.minimum(way, knots[-1] - way) if closed else way
    apart, tangent = cdist(points, points), np.gradient(points, axis=0)
    tangent /= np.maximum(np.linalg.norm(tangent, axis=1, keepdims=True), np.finfo(float).tiny)
    beside = (way > ELSEWHERE_RATIO * apart) & (np.abs(tangent @ tangent.T) > _PARALLEL_COSINE) & (apart < near)
    distance = np.where(beside, apart, np.inf)
    nearest = distance.argmin(axis=1)
    each = np.arange(_MOST_COMPARED_POINTS)
    return StrandDistances(distance[each, nearest], way[each, nearest], float(knots[-1]))
