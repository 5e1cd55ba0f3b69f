"""Smooth curves through given points, and their arc length.

A curve is made of cubic cells: with ends P₀, P₁, slopes T₀, T₁ and length c of its parameter a cell runs through

    P(t) = h₀₀ P₀ + h₁₀ c T₀ + h₀₁ P₁ + h₁₁ c T₁,    0 ≤ t ≤ 1,

h being Hermite's polynomials, so that value and slope carry on from cell to cell.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from prinfold._typing import BoolArray, FloatArray, IntArray

_PARTS_PER_CELL = 8
"""Parts of a cell, the lengths of which are summed by three-point Gauss rules."""

_MOST_LENGTH_ERROR = 1e-4
"""Share of the length of a curve by which its coordinate may differ from the length travelled along it."""

_MOST_SPEED_ERROR = 0.02
"""Largest difference from 1 of the speed along a curve by arc length; it is largest in corners."""

_MOST_STEPS = 100_000
"""Steps of a curve at first, however small the spacing is beside its length, as in columns that are 1e50 apart."""

_MOST_DOUBLINGS = 4
"""How often the number of steps may be doubled to keep to these errors."""


class EvenCurve(NamedTuple):
    """A curve by arc length: ``points`` (k, D) and unit ``tangents`` (k, D) at even steps, its ``length``.

    A closed one does not repeat its beginning.
    """

    points: FloatArray
    tangents: FloatArray
    length: float


class Cells(NamedTuple):
    """m cells of a curve: ends and slopes (m, D), lengths of the parameter (m,).

    SciPy's ``CubicHermiteSpline`` looks for the cell of each place, which is known here, and takes twice as long.
    """

    start: FloatArray
    end: FloatArray
    slope_start: FloatArray
    slope_end: FloatArray
    width: FloatArray

    def only(self, cells: IntArray | BoolArray) -> Cells:
        """Some of the cells."""
        return Cells._make(part[cells] for part in self)

    def at(self, t: FloatArray) -> FloatArray:
        """(m, D) P at t (m,)."""
        t, c = t[:, None], self.width[:, None]
        chord = self.end - self.start
        # About the start, so that far from the origin no digits are lost.
        inner = (t * (t - 1.0) ** 2) * c * self.slope_start + (t * t * (t - 1.0)) * c * self.slope_end
        return np.asarray(self.start + t * t * (3.0 - 2.0 * t) * chord + inner)

    def slope(self, t: FloatArray) -> FloatArray:
        """(m, D) dP/du at t (m,), with u = c·t."""
        t, c = t[:, None], self.width[:, None]
        chord = (self.end - self.start) / c
        ends = (1.0 - t) * (1.0 - 3.0 * t) * self.slope_start + t * (3.0 * t - 2.0) * self.slope_end
        return np.asarray(6.0 * t * (1.0 - t) * chord + ends)

    def bend(self, t: FloatArray) -> FloatArray:
        """(m, D) d²P/du² at t (m,)."""
        t, c = t[:, None], self.width[:, None]
        chord = (self.end - self.start) / c
        ends = (6.0 * t - 4.0) * self.slope_start + (6.0 * t - 2.0) * self.slope_end
        return np.asarray(((6.0 - 12.0 * t) * chord + ends) / c)


def through(points: FloatArray, closed: bool) -> Cells:
    """Cells through points (m, D), at least two and no neighbours equal, with chord length as the parameter.

    The slope at a point is that of the parabola through it and its two neighbours (Bessel's slopes; de Boor, 1978); at
    an open end that of the last parabola.
    """
    chain = np.vstack([points[-1:], points, points[:2]]) if closed else points
    width = np.linalg.norm(np.diff(chain, axis=0), axis=1)
    # About the first point, so that far from the origin no digits are lost.
    slopes = np.gradient(
        chain - chain[0], np.append(0.0, np.cumsum(width)), axis=0, edge_order=2 if len(chain) > 2 else 1
    )
    if closed:
        chain, width, slopes = chain[1:-1], width[1:-1], slopes[1:-1]
    return Cells(chain[:-1], chain[1:], slopes[:-1], slopes[1:], width)


def by_arc_length(points: FloatArray, spacing: float, closed: bool) -> EvenCurve:
    """The smooth curve through points (m, D) at even steps of arc length, about ``spacing`` or as fine as it takes.

    Along the cells made of what comes back the length travelled is the coordinate, to 1e-4 of the whole.
    """
    cells = through(points, closed)
    traveled, length = _lengths(cells)
    steps = int(np.clip(np.ceil(length / spacing), 3 if closed else 1, _MOST_STEPS))
    curve = _even_curve(cells, traveled, length, steps, closed)
    for _ in range(_MOST_DOUBLINGS):
        if _is_even(curve, closed):
            break
        steps *= 2
        curve = _even_curve(cells, traveled, length, steps, closed)
    return curve


def _lengths(cells: Cells) -> tuple[FloatArray, float]:
    """Length travelled at the end of each part of each cell, flat, and in all."""
    m = len(cells.width)
    nodes, weights = np.polynomial.legendre.leggauss(3)
    piece = np.repeat(np.arange(m), _PARTS_PER_CELL)
    begin = np.tile(np.arange(_PARTS_PER_CELL) / _PARTS_PER_CELL, m)
    total = np.zeros(m * _PARTS_PER_CELL)
    inside = cells.only(piece)
    for node, weight in zip(nodes, weights, strict=True):
        speed = np.linalg.norm(inside.slope(begin + 0.5 * (1.0 + node) / _PARTS_PER_CELL), axis=1)
        total += 0.5 * weight * speed * inside.width / _PARTS_PER_CELL
    traveled = np.cumsum(total)
    return traveled, float(traveled[-1])


def _even_curve(cells: Cells, traveled: FloatArray, length: float, steps: int, closed: bool) -> EvenCurve:
    wanted = np.arange(steps if closed else steps + 1) * (length / steps)
    before = np.concatenate([[0.0], traveled])
    piece = np.minimum(np.searchsorted(traveled, wanted, side="left"), len(traveled) - 1)
    cell, part = np.divmod(piece, _PARTS_PER_CELL)
    size = before[piece + 1] - before[piece]
    share = (wanted - before[piece]) / np.where(size > 0, size, 1.0)
    here = cells.only(cell)
    t = (part + np.clip(share, 0.0, 1.0)) / _PARTS_PER_CELL
    # The speed varies little within a part: two corrections leave nothing to see.
    for _ in range(2):
        done = _length_in_part(here, part, t)
        speed = np.linalg.norm(here.slope(t), axis=1) * here.width
        t = t + np.where(speed > 0, (wanted - before[piece] - done) / np.where(speed > 0, speed, 1.0), 0.0)
        t = np.clip(t, part / _PARTS_PER_CELL, (part + 1) / _PARTS_PER_CELL)
    slope = here.slope(t)
    speed = np.linalg.norm(slope, axis=1, keepdims=True)
    chord = (here.end - here.start) / here.width[:, None]
    tangents = np.where(speed > 1e-9, slope / np.where(speed > 0, speed, 1.0), chord)  # at a cusp there is no slope
    return EvenCurve(here.at(t), tangents, length)


def _length_in_part(cells: Cells, part: IntArray, t: FloatArray) -> FloatArray:
    """Length travelled within a cell from the beginning of a part of it to t."""
    nodes, weights = np.polynomial.legendre.leggauss(3)
    begin = part / _PARTS_PER_CELL
    total = np.zeros(len(t))
    for node, weight in zip(nodes, weights, strict=True):
        speed = np.linalg.norm(cells.slope(begin + 0.5 * (1.0 + node) * (t - begin)), axis=1)
        total += 0.5 * weight * speed
    return np.asarray(total * (t - begin) * cells.width)


def _is_even(curve: EvenCurve, closed: bool) -> bool:
    """Whether the length travelled along the cells between even steps is the coordinate."""
    last = np.roll(np.arange(len(curve.points)), -1) if closed else np.arange(1, len(curve.points))
    first, steps = np.arange(len(last)), len(last)
    width = np.full(steps, curve.length / steps)
    cells = Cells(curve.points[first], curve.points[last], curve.tangents[first], curve.tangents[last], width)
    nodes, weights = np.polynomial.legendre.leggauss(5)
    ahead = np.stack([np.linalg.norm(cells.slope(np.full(steps, 0.5 * (1.0 + t))), axis=1) for t in nodes]) - 1.0
    whole = float(np.abs(np.cumsum(0.5 * weights @ ahead)).max()) / steps
    return whole <= _MOST_LENGTH_ERROR and float(np.abs(ahead).max()) <= _MOST_SPEED_ERROR
