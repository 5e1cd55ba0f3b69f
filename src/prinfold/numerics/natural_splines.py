"""Natural and closed cubic splines by their values at knots: second derivatives and bending energy.

A cubic spline through values y at knots x₁ < … < x_K, natural at its ends or closed over a period, has second
derivatives T⁻¹ Qᵀ y at the knots, with Q and T of the distances between them, and

    ∫ f″(x)² dx = yᵀ Q T⁻¹ Qᵀ y,

which no other function through the same values goes below (Reinsch).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve

from prinfold._typing import FloatArray


class Knots(NamedTuple):
    """K knots at ``places`` (K,), increasing; ``period`` is nil for an open curve, whose ends are natural."""

    places: FloatArray
    period: float = 0.0

    @property
    def closed(self) -> bool:
        """Whether the last knot is followed by the first."""
        return self.period > 0

    @property
    def steps(self) -> FloatArray:
        """Distances between neighbouring knots: K − 1 on an open curve, K on a closed one."""
        ends = np.append(self.places, self.places[0] + self.period) if self.closed else self.places
        return np.diff(ends)


def second_derivatives(knots: Knots) -> FloatArray:
    """(K, K) T⁻¹ Qᵀ, from values at the knots to second derivatives there, with zero rows at natural ends."""
    n, h = len(knots.places), knots.steps
    out = np.zeros((n, n))
    if n < 3:
        return out
    inner = np.arange(n) if knots.closed else np.arange(1, n - 1)
    before, after = h[inner - 1], h[inner % len(h)]
    row = np.arange(len(inner))
    Q, T = np.zeros((len(inner), n)), np.zeros((len(inner), n))
    for column, divided, mass in (
        (inner - 1, 1.0 / before, before / 6.0),
        (inner, -1.0 / before - 1.0 / after, (before + after) / 3.0),
        (inner + 1, 1.0 / after, after / 6.0),
    ):
        np.add.at(Q, (row, column % n), divided)
        np.add.at(T, (row, column % n), mass)
    out[inner] = solve(T[:, inner], Q)
    return out


def bending(knots: Knots) -> FloatArray:
    """(K, K) P with ∫ f″² = yᵀ P y: second derivatives are straight between knots, so that Simpson's rule is exact."""
    n, h, curvature = len(knots.places), knots.steps, second_derivatives(knots)
    mass = np.zeros((n, n))
    first = np.arange(len(h))
    second = (first + 1) % n
    for i, j, weight in ((first, first, 2.0), (second, second, 2.0), (first, second, 1.0), (second, first, 1.0)):
        np.add.at(mass, (i, j), weight * h / 6.0)
    return np.asarray(curvature.T @ mass @ curvature)


def spline_at(knots: Knots, values: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(m, D) the spline through ``values`` (K, D) at places x (m,), and its derivative; open ones go straight on."""
    n, h = len(knots.places), knots.steps
    curvature = second_derivatives(knots) @ values
    x = np.mod(x - knots.places[0], knots.period) + knots.places[0] if knots.closed else x
    cell = np.clip(np.searchsorted(knots.places, x, side="right") - 1, 0, len(h) - 1)
    width, after = h[cell][:, None], (cell + 1) % n
    past = np.zeros_like(x) if knots.closed else x - np.clip(x, knots.places[0], knots.places[-1])
    t = ((x - past - knots.places[cell]) / h[cell])[:, None]
    y0, y1, c0, c1 = values[cell], values[after], curvature[cell], curvature[after]
    value = (1 - t) * y0 + t * y1 + width**2 / 6.0 * (((1 - t) ** 3 - (1 - t)) * c0 + (t**3 - t) * c1)
    slope = (y1 - y0) / width + width / 6.0 * ((1 - 3 * (1 - t) ** 2) * c0 + (3 * t**2 - 1) * c1)
    return np.asarray(value + past[:, None] * slope), np.asarray(slope)
