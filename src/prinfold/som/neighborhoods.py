"""Neighbourhood functions of self-organising maps: the weight of a row at nodes other than its winner.

The Gaussian and the bubble are those of the GTM thesis, section 2.3.1 (Kohonen 1995). Each is a function h(s) of the
squared distance s between two nodes, in widths, with h(0) = 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Protocol

import numpy as np

from prinfold._typing import FloatArray

_FARTHEST_SQUARE = 1200.0
"""Squared distances are clipped to this: exp(−600) is negligible, and no subnormal number, which would be slow."""

_BUBBLE_EDGE = 1.0 + 1e-9
"""A node at one width is within it, whatever the rounding."""


class Neighborhood(Protocol):
    """A neighbourhood function h(s)."""

    @property
    def name(self) -> str:
        """The name that the parameter ``neighborhood`` has for it."""

    def value(self, s: FloatArray) -> FloatArray:
        """h(s)."""

    def relative(self, s: FloatArray) -> FloatArray:
        """h(s) for rows of s (n, m), each up to a factor of its own, so that no row underflows to zero."""

    def spread(self, dimension: int) -> float:
        """Standard deviation along an axis of what h weighs, in widths."""


@dataclass(frozen=True)
class GaussianNeighborhood:
    """h(s) = exp(−s/2); the width is its standard deviation."""

    name: str = "gaussian"

    def value(self, s: FloatArray) -> FloatArray:
        return np.asarray(np.exp(-0.5 * np.minimum(s, _FARTHEST_SQUARE)))

    def relative(self, s: FloatArray) -> FloatArray:
        return self.value(s - s.min(axis=1, keepdims=True))

    def spread(self, dimension: int) -> float:
        return 1.0


@dataclass(frozen=True)
class BubbleNeighborhood:
    """h(s) = 1 for s ≤ 1, else 0: all nodes within the width learn alike."""

    name: str = "bubble"

    def value(self, s: FloatArray) -> FloatArray:
        return (s <= _BUBBLE_EDGE).astype(np.float64)

    def relative(self, s: FloatArray) -> FloatArray:
        return self.value(s)

    def spread(self, dimension: int) -> float:
        return 1.0 / sqrt(dimension + 2.0)


@dataclass(frozen=True)
class EpanechnikovNeighborhood:
    """h(s) = (1 − s)₊: falling to zero at the width."""

    name: str = "epanechnikov"

    def value(self, s: FloatArray) -> FloatArray:
        return np.asarray(np.maximum(1.0 - s, 0.0))

    def relative(self, s: FloatArray) -> FloatArray:
        return self.value(s)

    def spread(self, dimension: int) -> float:
        return 1.0 / sqrt(dimension + 4.0)


NEIGHBORHOODS: dict[str, Neighborhood] = {
    each.name: each for each in (GaussianNeighborhood(), BubbleNeighborhood(), EpanechnikovNeighborhood())
}
"""Neighbourhood functions by name."""
