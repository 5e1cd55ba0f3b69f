"""Natural and closed cubic splines by their values at knots: places, slopes and bending energy.

Of all functions through given values, the natural spline has the least ∫ f″(x)² dx (Reinsch, 1967). The matrix of that
integral is that of Green & Silverman (1994, section 2.1), for closed splines too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.linalg.lapack import dptsv

from prinfold._typing import FloatArray


class Knots(NamedTuple):
    """K knots at ``places`` (K,), increasing; ``period`` is 0 for an open curve, whose ends are natural."""

    places: FloatArray
    period: float = 0.0

    @property
    def closed(self) -> bool:
        """Whether the last knot is followed by the first."""
        return self.period > 0

    @property
    def ends(self) -> FloatArray:
        """Places of all ends of cells: K on an open curve, K + 1 on a closed one, whose last is the first again."""
        return np.append(self.places, self.places[0] + self.period) if self.closed else self.places

    @property
    def steps(self) -> FloatArray:
        """Distances between neighbouring knots: K − 1 on an open curve, K on a closed one."""
        return np.diff(self.ends)

    def spline(self, values: FloatArray) -> CubicSpline:
        """The cubic spline through ``values`` (K, D) at the knots."""
        if self.closed:
            return CubicSpline(self.ends, np.vstack([values, values[:1]]), bc_type="periodic")
        return CubicSpline(self.places, values, bc_type="natural")


def second_derivatives(knots: Knots, values: FloatArray) -> FloatArray:
    """(E, D) f″ at the ends of all cells, of the spline through ``values`` (K, D); it is straight between them."""
    if knots.closed:
        spline = knots.spline(values)
        return np.asarray(spline(knots.ends, 2))
    out, h = np.zeros(values.shape), knots.steps
    if len(h) > 1:
        turns = np.diff(np.diff(values, axis=0) / h[:, None], axis=0)
        beside = h[1:-1] / 6.0 if len(h) > 2 else np.zeros(1)  # LAPACK wants a number, which it leaves alone
        out[1:-1] = dptsv((h[:-1] + h[1:]) / 3.0, beside, turns)[2]
    return out


def bending(knots: Knots) -> FloatArray:
    """(K, K) P with ∫ f″² = yᵀ P y: second derivatives are straight between knots, so that Simpson's rule is exact."""
    n, h = len(knots.places), knots.steps
    if n < 3:
        return np.zeros((n, n))
    bend = second_derivatives(knots, np.eye(n))
    begin, end, both = bend[:-1], bend[1:], bend[:-1] + bend[1:]
    return np.asarray((begin.T * h @ begin + end.T * h @ end + both.T * h @ both) / 6.0)


def bending_energy(knots: Knots, values: FloatArray) -> float:
    """∫ ‖f″(x)‖² dx of the spline through ``values`` (K, D)."""
    if len(knots.places) < 3:
        return 0.0
    bend = second_derivatives(knots, values)
    begin, end = bend[:-1], bend[1:]
    return float(knots.steps @ (np.square(begin) + begin * end + np.square(end)).sum(axis=1)) / 3.0


def spline_at(knots: Knots, values: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(m, D) the spline through ``values`` (K, D) at places x (m,), and its derivative; open ones go straight on."""
    ends, bend = knots.ends, second_derivatives(knots, values)
    if knots.closed:
        inside, values = ends[0] + np.mod(x - ends[0], knots.period), np.vstack([values, values[:1]])
        rest = np.zeros(len(x))
    else:
        inside = np.clip(x, ends[0], ends[-1])
        rest = x - inside
    cell = np.clip(np.searchsorted(ends, inside, side="right") - 1, 0, len(ends) - 2)
    h = (ends[cell + 1] - ends[cell])[:, None]
    b = (inside - ends[cell])[:, None] / h
    a, begin, end = 1.0 - b, bend[cell], bend[cell + 1]
    slope = (values[cell + 1] - values[cell]) / h + h / 6.0 * ((3.0 * b**2 - 1.0) * end - (3.0 * a**2 - 1.0) * begin)
    place = a * values[cell] + b * values[cell + 1] + h**2 / 6.0 * ((b**3 - b) * end + (a**3 - a) * begin)
    return np.asarray(place + rest[:, None] * slope), np.asarray(slope)
