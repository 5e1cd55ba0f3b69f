"""Radial profiles k(s) of the squared distance s in bandwidths, scaled so that k(0) = 1, as in UKR (25), (33) and (34).

A profile is used for density estimates and for regression on latent points alike, so that it must have a continuous
first derivative; the Epanechnikov kernel has none at its rim and is not here.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gamma, inf, pi
from typing import ClassVar, Protocol

import numpy as np

from prinfold._typing import FloatArray

GAUSSIAN_CUT = 6.0
"""Bandwidths beyond which a truncated Gaussian is 0: each value left out is less than exp(−18) = 1.5e-8."""

FARTHEST = 1200.0
"""Squared distances in bandwidths are held there: exp(−600) changes no sum that is not computed anew, and subnormal
numbers, which come soon after, make products several times slower."""


class PairwiseKernel(Protocol):
    """A radial kernel and its slope for all pairs of a block, written over the arrays that it is given."""

    @property
    def decay(self) -> float | None:
        """c where dk/ds = c k as far as the kernel reaches, which a Gaussian alone has; else None."""

    @property
    def line(self) -> tuple[float, float]:
        """(a, b) of a + b s, the argument of :meth:`split`: it costs no more to compute than s."""

    def split(self, u: FloatArray, room: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """(k, g, c) with k = k(s) and c·g = dk/ds at u = a + b s, written over ``u`` and ``room``; k may be g."""

    def between(
        self, X: FloatArray, points: FloatArray, rows: slice, u: FloatArray, room: FloatArray
    ) -> tuple[FloatArray, FloatArray, float]:
        """Compiled :meth:`split` for the squared distances of some rows of X (n, Q) with all; ``points`` is Xᵀ."""


class Profile(Protocol):
    """A radial kernel k(s); s is any array of squared distances in bandwidths."""

    @property
    def reach(self) -> float:
        """Distance in bandwidths from which on the kernel is exactly 0; inf where it never is."""

    @property
    def width(self) -> float:
        """Standard deviation of the Gaussian that the kernel resembles, in bandwidths."""

    def value(self, s: FloatArray) -> FloatArray:
        """k(s)."""

    def slope(self, s: FloatArray) -> FloatArray:
        """dk/ds."""

    def curvature(self, s: FloatArray) -> FloatArray:
        """d²k/ds²; one-sided at the rim of a compact kernel."""

    def volume(self, dimension: int) -> float:
        """∫ k(‖u‖²) du over space, the normalisation of a density."""

    def draw(self, rng: np.random.Generator, n: int, dimension: int) -> FloatArray:
        """(n, dimension) draws from the density k(‖u‖²) / volume."""

    @property
    def pairwise(self) -> PairwiseKernel:
        """The kernel for all pairs of a block at once."""


@dataclass(frozen=True)
class GaussianPairs:
    """exp(−s/2) of all pairs of a block, 0 beyond ``reach``."""

    reach: float
    decay: float | None = -0.5
    line: tuple[float, float] = (0.0, -0.5)

    def split(self, u: FloatArray, room: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        if self.reach < inf:
            np.greater(u, -0.5 * self.reach**2, out=room, casting="unsafe")
        np.exp(u, out=u)
        if self.reach < inf:
            u *= room
        return u, u, -0.5

    def between(
        self, X: FloatArray, points: FloatArray, rows: slice, u: FloatArray, room: FloatArray
    ) -> tuple[FloatArray, FloatArray, float]:
        from prinfold.numerics._radial_kernels_jit import exponentials

        exponentials(X, rows.start, points, -0.5, -0.5 * FARTHEST, u)
        if self.reach < inf:
            np.greater(u, np.exp(-0.5 * self.reach**2), out=room, casting="unsafe")
            u *= room
        return u, u, -0.5


@dataclass(frozen=True)
class PowerPairs:
    """(1 − s)₊ᵖ of all pairs of a block."""

    power: int
    decay: float | None = None
    line: tuple[float, float] = (1.0, -1.0)

    def split(self, u: FloatArray, room: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        np.maximum(u, 0.0, out=u)
        if self.power == 2:
            np.copyto(room, u)
        else:
            np.multiply(u, u, out=room)
        for _ in range(self.power - 3):  # a general power would take ten times as long
            room *= u
        u *= room
        return u, room, -float(self.power)

    def between(
        self, X: FloatArray, points: FloatArray, rows: slice, u: FloatArray, room: FloatArray
    ) -> tuple[FloatArray, FloatArray, float]:
        from prinfold.numerics._radial_kernels_jit import powers

        powers(X, rows.start, points, self.power, u, room)
        return u, room, -float(self.power)


@dataclass(frozen=True)
class Gaussian:
    """k(s) = exp(−s/2); with a finite ``reach`` 0 beyond it."""

    reach: float = inf
    name: str = "gaussian"
    width: ClassVar[float] = 1.0
    power: ClassVar[int] = 0
    """No power: a Gaussian is the limit of the powers p → ∞."""

    def value(self, s: FloatArray) -> FloatArray:
        k = np.exp(-0.5 * s)
        return k if self.reach == inf else np.where(s < self.reach**2, k, 0.0)

    def slope(self, s: FloatArray) -> FloatArray:
        return -0.5 * self.value(s)

    def curvature(self, s: FloatArray) -> FloatArray:
        return 0.25 * self.value(s)

    def volume(self, dimension: int) -> float:
        return float((2 * pi) ** (dimension / 2))

    def draw(self, rng: np.random.Generator, n: int, dimension: int) -> FloatArray:
        return rng.standard_normal((n, dimension))

    @property
    def pairwise(self) -> GaussianPairs:
        return GaussianPairs(self.reach)


@dataclass(frozen=True)
class Power:
    """k(s) = (1 − s)₊ᵖ, 0 from one bandwidth on: p = 2 is the quartic kernel, p = 3 the triweight."""

    power: int
    name: str
    reach: float = 1.0
    width: ClassVar[float] = 0.4

    def value(self, s: FloatArray) -> FloatArray:
        return np.asarray(np.maximum(1.0 - s, 0.0) ** self.power)

    def slope(self, s: FloatArray) -> FloatArray:
        return np.asarray(-self.power * np.maximum(1.0 - s, 0.0) ** (self.power - 1))

    def curvature(self, s: FloatArray) -> FloatArray:
        inside = np.maximum(1.0 - s, 0.0) ** (self.power - 2) * (s < 1.0)
        return np.asarray(self.power * (self.power - 1) * inside)

    def volume(self, dimension: int) -> float:
        # Surface of the unit sphere times a beta integral.
        d, p = dimension, self.power
        return float(pi ** (d / 2) * gamma(p + 1) / gamma(p + 1 + d / 2))

    def draw(self, rng: np.random.Generator, n: int, dimension: int) -> FloatArray:
        # With t = r² the density t^(d/2 − 1) (1 − t)^p of the squared radius is a beta density.
        direction = rng.standard_normal((n, dimension))
        direction /= np.linalg.norm(direction, axis=1, keepdims=True)
        return np.asarray(direction * np.sqrt(rng.beta(dimension / 2, self.power + 1, (n, 1))))

    @property
    def pairwise(self) -> PowerPairs:
        return PowerPairs(self.power)


PROFILES: dict[str, Gaussian | Power] = {
    "gaussian": Gaussian(),
    "quartic": Power(2, "quartic"),
    "triweight": Power(3, "triweight"),
}
