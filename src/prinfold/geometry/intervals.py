"""A latent domain in pieces: intervals one after another with gaps between, each open or closed to a ring."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.geometry.domain import Extent, Restrained

_EDGE_TOLERANCE = 1e-9
"""Share of the extent within which a coordinate lies on the end of an interval."""

_INSIDE_TOLERANCE = 1e-6
"""Share of the extent by which coordinates may have been rounded and still count as inside, as for a box."""


@dataclass(frozen=True, eq=False)
class Intervals:
    """Intervals ``[low_b, high_b]`` (B,) in rising order; the two ends of a ``closed`` one are the same place.

    A coordinate in the gap between two belongs to the nearer one: it is outside, and retracts to its end, or round a
    ring to the other side of the seam. A single ring has no outside.
    """

    low: FloatArray
    high: FloatArray
    closed: BoolArray

    @cached_property
    def extent(self) -> Extent:
        return Extent(self.low[:1], self.high[-1:], 1, float(self.high[-1] - self.low[0]))

    def piece(self, Z: FloatArray) -> IntArray:
        """(...) number of the interval that coordinates (..., 1) lie in, or nearest to."""
        return np.searchsorted(self._middles, Z[..., 0])

    def contains(self, Z: FloatArray) -> BoolArray:
        finite = np.isfinite(Z[:, 0])
        z = np.where(finite, Z[:, 0], 0.0)
        if len(self.closed) == 1 and self.closed[0]:  # arc length round a single ring goes on in any turn, as angles do
            return finite
        b = self.piece(z[:, None])
        return np.asarray(finite & (z >= self.low[b] - self._end_tolerance) & (z <= self.high[b] + self._end_tolerance))

    def retract(self, Z: FloatArray) -> FloatArray:
        b, z = self.piece(Z), Z[..., 0]
        low, high = self.low[b], self.high[b]
        wrapped = low + np.mod(z - low, self._period[b])
        # np.mod may round up to the period itself, but each place has one coordinate: the lower end stands for both.
        wrapped = np.where(wrapped >= high, low, wrapped)
        return np.asarray(np.where(self.closed[b], wrapped, np.clip(z, low, high))[..., None])

    def difference(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """A − B, the short way round where both lie on the same ring."""
        A, B = np.broadcast_arrays(A, B)
        delta, a, b = (A - B)[..., 0], self.piece(A), self.piece(B)
        period = self._period[a]
        ring = (a == b) & self.closed[a]
        return np.asarray(np.where(ring, delta - period * np.round(delta / period), delta)[..., None])

    def frame(self, Z: FloatArray) -> FloatArray:
        return np.ones((len(Z), 1, 1))

    def boundary(self, Z: FloatArray) -> BoolArray:
        b, z, slack = self.piece(Z), Z[:, 0], _EDGE_TOLERANCE * self.extent.length
        return np.asarray(~self.closed[b] & ((z <= self.low[b] + slack) | (z >= self.high[b] - slack)))

    def beyond(self, Z: FloatArray) -> FloatArray:
        """Coordinates wrapped round a ring; elsewhere unchanged, since a curve goes on straight beyond its ends."""
        return np.where(self.closed[self.piece(Z)][:, None], self.retract(Z), Z)

    def restrain(self, Z: FloatArray, gradient: FloatArray, hessian: FloatArray, size: FloatArray) -> Restrained:
        b = self.piece(Z)
        ends = ((self.low[b, None] >= Z) & (gradient > 0)) | ((self.high[b, None] <= Z) & (gradient < 0))
        frozen = np.asarray(ends & ~self.closed[b, None])
        hessian = np.where(frozen[:, :, None], (size**2)[:, None, None], hessian)
        return Restrained(np.where(frozen, 0.0, gradient), hessian, frozen, np.zeros_like(gradient))

    @cached_property
    def _middles(self) -> FloatArray:
        return np.asarray(0.5 * (self.high[:-1] + self.low[1:]))

    @cached_property
    def _period(self) -> FloatArray:
        # An open interval has none, and may have no length either.
        return np.where(self.closed, self.high - self.low, 1.0)

    @cached_property
    def _end_tolerance(self) -> float:
        """Distance past an end that still counts as the end; never as far as the middle of a gap."""
        gaps = self.low[1:] - self.high[:-1]
        return min(_INSIDE_TOLERANCE * self.extent.length, 0.25 * float(gaps.min(initial=np.inf)))
