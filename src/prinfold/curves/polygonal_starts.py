"""Starts of a polygonal line along a smooth curve, which itself is the best of several; the method is ours.

From a piece of the first principal component a line does not find its way round more than one turn of a spiral: a short
cut across turns is a local minimum. A smooth curve of Hastie and Stuetzle is begun in several ways, of which the one
with the shortest code is taken, and a line that begins along it stays there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from prinfold._typing import FloatArray
from prinfold.curves import hastie_stuetzle
from prinfold.curves.arc_curve import ArcCurve, arc_lengths
from prinfold.curves.polygonal_curve_training import ChainRestraint, PolygonalProblem, principal_segment
from prinfold.curves.smoothers import SmoothingSpline
from prinfold.curves.starts import start_candidates
from prinfold.numerics.polylines import nearest_on_polyline

_SPARSE_SHARE, _END_SHARE = 0.1, 0.1
"""Share of the usual number of rows below which a stretch has hardly any, and share of the curve that is its end."""

_START_SHARE = 0.5
"""Share of the segments that a line begins with: the others are put where rows are."""


def smooth_curve(X: FloatArray, weight: FloatArray, init: Any, closed: Any, offset: FloatArray) -> ArcCurve:
    """Hastie and Stuetzle's curve after a few steps from the best of the starts that ``init`` and ``closed`` name."""
    rows = hastie_stuetzle.SmoothingRows.of(X, weight).thin()
    return hastie_stuetzle.preliminary_curve(
        rows, SmoothingSpline(), start_candidates(init, closed, rows.X, rows.weight, offset)
    )


def is_straight(problem: PolygonalProblem) -> bool:
    """Whether all rows lie on a line, which nothing smooth comes nearer to than by rounding."""
    squared = nearest_on_polyline(problem.X, principal_segment(problem)).squared
    return float(problem.weight @ squared) / problem.total <= problem.rounding_error


def vertices_along(curve: ArcCurve, problem: PolygonalProblem, restraint: ChainRestraint) -> FloatArray:
    """(m, D) vertices at even steps along a curve, half as many as a line through it is to have."""
    feet = nearest_on_polyline(problem.X, curve.vertices, curve.closed)
    error = float(problem.weight @ feet.squared) / problem.total
    k = 1
    while not restraint.is_enough(problem, k, error):
        k += 1
    k = max(int(np.ceil(_START_SHARE * k)), 3 if curve.closed else 1)
    if curve.closed:
        return curve.point(np.linspace(0.0, curve.length, k, endpoint=False)[:, None])
    low, high = supported_part(arc_lengths(curve, feet) / curve.length, problem.weight / problem.total, k)
    return curve.point(curve.length * np.linspace(low, high, k + 1)[:, None])


def supported_part(place: FloatArray, share: FloatArray, k: int) -> tuple[float, float]:
    """The part of an open curve that rows at places (n,) in [0, 1] with shares (n,) of the weight lie along.

    A smooth curve reaches as far as any row does, and may run on to those of the next turn. At either end half as many
    rows as a segment has, of k, are left beyond the part, and so is what comes after a stretch with hardly any.
    """
    order = np.argsort(place)
    passed = np.cumsum(share[order])
    at = np.minimum(np.searchsorted(passed, [0.5 / (k + 1), 1.0 - 0.5 / (k + 1)]), len(order) - 1)
    low, high = (float(each) for each in place[order][at])
    rows = k * np.bincount(np.minimum((k * place).astype(int), k - 1), share, k)
    bare, reach = np.flatnonzero(rows < _SPARSE_SHARE), int(_END_SHARE * k)
    before, after = bare[bare < reach], bare[bare >= k - reach]
    low = max(low, (before[-1] + 1) / k) if len(before) else low
    return low, min(high, after[0] / k) if len(after) else high
