"""Natural and closed cubic splines by their values at knots: places, slopes and bending energy.

Of all functions through given values, the natural spline has the least ∫ f″(x)² dx (Reinsch, 1967). The matrix of that
integral is that of Green & Silverman (1994, section 2.1), for closed splines too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline

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


def bending(knots: Knots) -> FloatArray:
    """(K, K) P with ∫ f″² = yᵀ P y: second derivatives are straight between knots, so that Simpson's rule is exact."""
    n, h = len(knots.places), knots.steps
    if n < 3:
        return np.zeros((n, n))
    cubic, square = knots.spline(np.eye(n)).c[:2]
    begin = 2.0 * square
    end = begin + 6.0 * h[:, None] * cubic
    both = begin + end
    return np.asarray((begin.T * h @ begin + end.T * h @ end + both.T * h @ both) / 6.0)


def spline_at(knots: Knots, values: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(m, D) the spline through ``values`` (K, D) at places x (m,), and its derivative; open ones go straight on."""
    spline = knots.spline(values)
    inside = x if knots.closed else np.clip(x, knots.places[0], knots.places[-1])
    slope = spline(inside, 1)
    return np.asarray(spline(inside) + (x - inside)[:, None] * slope), np.asarray(slope)
