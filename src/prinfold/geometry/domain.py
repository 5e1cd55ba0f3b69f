"""Latent domains: a box whose axes may be periodic, and the unit sphere.

The operations of a domain are those that moving in it needs: which valid coordinate is nearest
(``retract``), how far is it from here to there the short way round (``difference``), in which directions
may one step (``frame``), and how a descent continues at the boundary (``restrain``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from prinfold._typing import BoolArray, FloatArray

_EDGE_TOLERANCE = 1e-9
"""Distance from a bound within which a coordinate lies on it."""


class Restrained(NamedTuple):
    """A quadratic model of m rows, in the frame, without what leads out of the domain.

    ``gradient`` (m, q) and ``hessian`` (m, q, q) are those of the directions along the edge; ``frozen`` (m, q) marks
    axes of the frame that must not move at all; ``drift`` (m, q) is a step back onto the edge that goes with any other.
    """

    gradient: FloatArray
    hessian: FloatArray
    frozen: BoolArray
    drift: FloatArray


@dataclass(frozen=True, eq=False)
class Extent:
    """Reach of latent coordinates.

    ``lower`` and ``upper`` (Q,) are bounds, infinite where an axis is periodic or curved; ``dimension`` is q ≤ Q, the
    degrees of freedom; ``length`` that of the longest axis, round it where it closes.
    """

    lower: FloatArray
    upper: FloatArray
    dimension: int
    length: float

    @cached_property
    def n_columns(self) -> int:
        """Columns Q of a latent coordinate."""
        return len(self.lower)


class Domain(Protocol):
    """The operations of a latent domain; Z is (n, Q), q the degrees of freedom."""

    @property
    def extent(self) -> Extent:
        """Bounds, columns and degrees of freedom."""

    def contains(self, Z: FloatArray) -> BoolArray:
        """(n,) which coordinates are valid as they are."""

    def retract(self, Z: FloatArray) -> FloatArray:
        """Nearest valid coordinates: clipped to the box, angles wrapped, vectors normalised."""

    def difference(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """A − B the short way round."""

    def frame(self, Z: FloatArray) -> FloatArray:
        """(n, Q, q) orthonormal directions in which one may move from Z."""

    def boundary(self, Z: FloatArray) -> BoolArray:
        """(n,) which coordinates lie on the edge."""

    def beyond(self, Z: FloatArray) -> FloatArray:
        """Coordinates at which to evaluate a map for Z a little outside: retracted, unless the map extends there."""

    def restrain(self, Z: FloatArray, gradient: FloatArray, hessian: FloatArray, size: FloatArray) -> Restrained:
        """A quadratic model at Z without the part that leads out of the domain; its curvature there is ``size``²."""


@dataclass(frozen=True)
class Box:
    """A product of intervals ``[low, high]``; an axis flagged periodic has its two ends glued together."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    periodic: tuple[bool, ...]

    @classmethod
    def of(cls, *intervals: tuple[float, float], periodic: tuple[bool, ...] | None = None) -> Box:
        """A box from its intervals, as in ``Box.of((0, 1), (-1, 1))``."""
        low, high = zip(*intervals, strict=True)
        return cls(tuple(map(float, low)), tuple(map(float, high)), periodic or (False,) * len(intervals))

    @cached_property
    def extent(self) -> Extent:
        lower, upper = np.where(self.periodic, -np.inf, self.low), np.where(self.periodic, np.inf, self.high)
        return Extent(lower, upper, len(self.low), float(np.subtract(self.high, self.low).max()))

    def contains(self, Z: FloatArray) -> BoolArray:
        # A rounding error past the edge is the edge: latent means are weighted sums of edge nodes.
        slack = 1e-6 * (np.asarray(self.high) - np.asarray(self.low))
        inside = (self.extent.lower - slack <= Z) & (self.extent.upper + slack >= Z)
        return np.asarray(inside.all(axis=1) & np.isfinite(Z).all(axis=1))

    def retract(self, Z: FloatArray) -> FloatArray:
        if not any(self.periodic):  # remainders take twenty times as long as all else
            return np.clip(Z, self.low, self.high)
        low, period = np.asarray(self.low), self._period
        wrapped = low + np.mod(Z - low, period)
        # np.mod may round up to the period itself, but each place has one coordinate: the lower end stands for both.
        wrapped = np.where(wrapped >= self.high, low, wrapped)
        return np.asarray(np.where(self.periodic, wrapped, np.clip(Z, self.low, self.high)))

    def difference(self, A: FloatArray, B: FloatArray) -> FloatArray:
        delta = np.asarray(A - B, dtype=np.float64)
        if not any(self.periodic):
            return delta
        period = self._period
        return np.asarray(np.where(self.periodic, delta - period * np.round(delta / period), delta))

    def frame(self, Z: FloatArray) -> FloatArray:
        eye = np.eye(len(self.low))
        return np.broadcast_to(eye, (len(Z), *eye.shape))

    def boundary(self, Z: FloatArray) -> BoolArray:
        return np.asarray(
            ((self.extent.lower + _EDGE_TOLERANCE >= Z) | (self.extent.upper - _EDGE_TOLERANCE <= Z)).any(axis=1)
        )

    def beyond(self, Z: FloatArray) -> FloatArray:
        return self.retract(Z)

    def restrain(self, Z: FloatArray, gradient: FloatArray, hessian: FloatArray, size: FloatArray) -> Restrained:
        lower, upper = self.extent.lower, self.extent.upper
        frozen = np.asarray(((lower >= Z) & (gradient > 0)) | ((upper <= Z) & (gradient < 0)))
        # A frozen direction is decoupled: its own step is 0 and it does not bend the others.
        free = ~frozen
        alone = np.eye(len(self.low)) * (size**2)[:, None, None]
        hessian = np.where(free[:, :, None] & free[:, None, :], hessian, alone)
        return Restrained(np.where(frozen, 0.0, gradient), hessian, frozen, np.zeros_like(gradient))

    @property
    def _period(self) -> FloatArray:
        # An open axis has none, and may have no length either.
        return np.where(self.periodic, np.asarray(self.high) - np.asarray(self.low), 1.0)


@dataclass(frozen=True)
class UnitSphere:
    """Unit vectors in 3-D: three columns, two degrees of freedom, no poles."""

    @property
    def extent(self) -> Extent:
        """No bounds; the length is the side of a square as large as the sphere, √(4π)."""
        return Extent(np.full(3, -np.inf), np.full(3, np.inf), 2, float(np.sqrt(4.0 * np.pi)))

    def contains(self, Z: FloatArray) -> BoolArray:
        return np.asarray(np.abs(np.linalg.norm(Z, axis=1) - 1.0) <= 1e-6)

    def retract(self, Z: FloatArray) -> FloatArray:
        norm = np.linalg.norm(Z, axis=1, keepdims=True)
        # All points of the sphere are equally near to its centre; one of them is chosen.
        return np.asarray(np.where(norm > 0, Z / np.where(norm > 0, norm, 1.0), [0.0, 0.0, 1.0]))

    def difference(self, A: FloatArray, B: FloatArray) -> FloatArray:
        return A - B

    def frame(self, Z: FloatArray) -> FloatArray:
        # Cross products with the axis least aligned with Z: well conditioned everywhere.
        axis = np.eye(3)[np.argmin(np.abs(Z), axis=1)]
        first = np.cross(Z, axis)
        first /= np.linalg.norm(first, axis=1, keepdims=True)
        return np.stack([first, np.cross(Z, first)], axis=2)

    def boundary(self, Z: FloatArray) -> BoolArray:
        return np.zeros(len(Z), dtype=bool)

    def beyond(self, Z: FloatArray) -> FloatArray:
        return self.retract(Z)

    def restrain(self, Z: FloatArray, gradient: FloatArray, hessian: FloatArray, size: FloatArray) -> Restrained:
        return Restrained(gradient, hessian, np.zeros(gradient.shape, dtype=bool), np.zeros_like(gradient))
