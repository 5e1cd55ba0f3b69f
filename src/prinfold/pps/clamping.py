"""Clampings: the shares of the noise variance along a surface and across it.

The variance is S = s/β along the surface and B = b/β across it, over D columns and Q dimensions. In the unified model
(17) of Chang & Ghosh (2001) s is the clamping α and b = (D − αQ)/(D − Q), so that the variance of all columns together
is D/β whatever α is. In the earlier one (16) s = α and b = α + γ.

A clamping has three verbs: ``first`` gives (s, b) to begin with, ``update`` the noise that maximises the expected
log-likelihood for given weighted squares of the residuals, and ``extrapolate`` a longer step of the same kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from prinfold._typing import FloatArray
from prinfold.gtm.noise.protocol import Precision

_BISECTIONS = 60
_GRID_POINTS = 129
"""Grid points, even in the log odds of αQ/D, from which the highest of several maxima is found."""

_ALTERNATIONS = 10
_PSEUDO_ROWS = 5.0
"""Weight, in rows, of the common noise in the estimate of a node with noise of its own (pseudo-rows)."""

_SHARE_MARGIN = 1e-12
"""Least distance of learned shares αQ/D from 0 and 1."""


class TangentMoments(NamedTuple):
    """Per node: Σ r, tangents, Σ r‖d‖² and Σ r‖Eᵀd‖²; and the number of columns."""

    mass: FloatArray
    rank: FloatArray
    square: FloatArray
    tangential: FloatArray
    n_columns: int


class ClampedNoise(NamedTuple):
    """Precision β and the factors (s, b); numbers, or arrays over the nodes."""

    precision: Precision
    along: Precision
    across: Precision


Factors: TypeAlias = tuple[Precision, Precision]
"""The factors (s, b)."""


class Clamping(Protocol):
    """The verbs of a clamping; see the head of this file."""

    @property
    def shared(self) -> bool:
        """Whether all nodes have the same noise."""

    def first(self) -> Factors:
        """(s, b) to begin with."""

    def update(self, moments: TangentMoments, tie: float, floor: float, before: Precision) -> ClampedNoise:
        """The best noise; ``tie`` is what the weight penalty multiplies β/2 by, ``before`` the precision so far."""

    def extrapolate(self, old: Factors, new: Factors, factor: float) -> Factors:
        """(s, b) ``factor`` times as far from ``old`` as ``new``."""


@dataclass(frozen=True)
class Fixed:
    """Factors given once and for all; only β is learned, by (33)."""

    s: float
    b: float
    by_total: bool = False
    """Whether β is taken from the residuals in all directions alike, as the GTM takes it."""

    @property
    def shared(self) -> bool:
        return np.ndim(self.s) == np.ndim(self.b) == 0

    def first(self) -> Factors:
        return self.s, self.b

    def update(self, moments: TangentMoments, tie: float, floor: float, before: Precision) -> ClampedNoise:
        """1/β = (Σ r‖d‖²/b + (1/s − 1/b) Σ r‖Eᵀd‖²)/(N D), with the penalty's share added."""
        whole, tangential = float(moments.square.sum()), float(moments.tangential.sum())
        error = whole if self.by_total else whole / self.b + (1 / self.s - 1 / self.b) * tangential
        n_values = float(moments.mass.sum()) * moments.n_columns
        return ClampedNoise(_precision(n_values, error + tie, floor), self.s, self.b)

    def extrapolate(self, old: Factors, new: Factors, factor: float) -> Factors:
        return new


def unified_covariance(clamping: float, n_columns: int, dimension: int, by_total: bool = False) -> Fixed:
    """The unified covariance (17) for a clamping α in (0, D/Q)."""
    return Fixed(clamping, float(_across(clamping, n_columns, dimension)), by_total)


def early(clamping: float, amplification: float, by_total: bool = False) -> Fixed:
    """The earlier covariance (16): α I plus γ in the directions across the surface."""
    return Fixed(clamping, clamping + amplification, by_total)


@dataclass(frozen=True)
class Learned:
    """Clamping and noise both maximise the expected log-likelihood, together, for all nodes or for each.

    ``pooling`` says what the nodes have in common: one of the three functions below.
    """

    n_columns: int
    dimension: int
    pooling: Callable[[Learned, TangentMoments, float, float, Precision], ClampedNoise]

    @property
    def shared(self) -> bool:
        return self.pooling is share_both

    def first(self) -> Factors:
        return 1.0, 1.0

    def update(self, moments: TangentMoments, tie: float, floor: float, before: Precision) -> ClampedNoise:
        return self.pooling(self, moments, tie, floor, before)

    def extrapolate(self, old: Factors, new: Factors, factor: float) -> Factors:
        """The share αQ/D of the variance that lies along the surface, by its log odds."""
        before, after = (self._log_odds(along) for along in (old[0], new[0]))
        share = 1.0 / (1.0 + np.exp(-(before + factor * (after - before))))
        along = np.clip(share, _SHARE_MARGIN, 1 - _SHARE_MARGIN) * self.n_columns / self.dimension
        return _plain(along), _plain(self.across(along))

    def across(self, along: Precision) -> Precision:
        """b that belongs to s."""
        return _across(along, self.n_columns, self.dimension)

    def _log_odds(self, along: Precision) -> FloatArray:
        share = np.clip(np.asarray(along) * self.dimension / self.n_columns, _SHARE_MARGIN, 1 - _SHARE_MARGIN)
        return np.asarray(np.log(share) - np.log1p(-share))


def share_both(learned: Learned, moments: TangentMoments, tie: float, floor: float, before: Precision) -> ClampedNoise:
    """One α and one β for all nodes: 1/β = V₁/(N D), α = D V₂/(Q V₁) where no penalty is tied to β."""
    freedom = _freedom(moments)
    n_along, n_across = (part.sum(keepdims=True) for part in freedom)
    tangential, whole = moments.tangential.sum(keepdims=True), moments.square.sum(keepdims=True)
    found = _joint(learned, n_along, n_across, tangential, whole - tangential, np.array([tie]), floor)
    return ClampedNoise(*(float(np.ravel(part)[0]) for part in found))


def share_neither(
    learned: Learned, moments: TangentMoments, tie: float, floor: float, before: Precision
) -> ClampedNoise:
    """α and β of each node's own, by the same closed form.

    A node without rows has no estimate, and that of a node with a single row would shrink to zero. So a few pseudo-rows
    with the common noise are added to each.
    """
    freedom, squares = _add_pseudo_rows(moments)
    ties = np.full(len(moments.mass), tie / len(moments.mass))
    return _joint(learned, *freedom, *squares, ties, floor)


def share_noise(learned: Learned, moments: TangentMoments, tie: float, floor: float, before: Precision) -> ClampedNoise:
    """α of each node's own and one β: the corrected cubic (34) and (33) in turn, each the best for the other."""
    freedom, (tangential, normal) = _add_pseudo_rows(moments)
    n_values = float(sum(part.sum() for part in freedom))
    precision = float(np.mean(before))
    along: FloatArray = np.ones(len(moments.mass))
    for _ in range(_ALTERNATIONS):
        last = precision
        along = _cubic(learned, *freedom, tangential, normal, precision)
        error = float((tangential / along + normal / learned.across(along)).sum())
        precision = _precision(n_values, error + tie, floor)
        if abs(precision - last) <= 1e-10 * last:  # the next EM step goes on from here in any case
            break
    return ClampedNoise(precision, along, learned.across(along))


def _freedom(moments: TangentMoments) -> tuple[FloatArray, FloatArray]:
    """(K,) squared residuals counted along and across: g r and g (D − r), r being the rank of the tangents."""
    along = moments.mass * moments.rank
    return along, moments.mass * moments.n_columns - along


def _add_pseudo_rows(moments: TangentMoments) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
    """Degrees of freedom and squares along and across, with the borrowed rows added."""
    freedom = _freedom(moments)
    squares = (moments.tangential, moments.square - moments.tangential)
    common = [
        square.sum() / max(count.sum(), np.finfo(float).tiny) for square, count in zip(squares, freedom, strict=True)
    ]
    extra = (_PSEUDO_ROWS * moments.rank, _PSEUDO_ROWS * (moments.n_columns - moments.rank))
    counts = (freedom[0] + extra[0], freedom[1] + extra[1])
    return counts, (squares[0] + common[0] * extra[0], squares[1] + common[1] * extra[1])


def _joint(
    learned: Learned,
    n_along: FloatArray,
    n_across: FloatArray,
    tangential: FloatArray,
    normal: FloatArray,
    tie: FloatArray,
    floor: float,
) -> ClampedNoise:
    """α and β that maximise, for each entry, what the expected log-likelihood and the penalty have of them.

        −½ n_S ln S − ½ n_B ln B − V₂/2S − V₋/2B − ½ tie β,      D/β = Q S + (D − Q) B.

    Without a tie S = V₂/n_S and B = V₋/n_B. With one, β is in closed form for any α, and what is left of the sum is
    maximised over α; where the penalty outweighs the residuals it has a maximum at either end.
    """
    D, Q = learned.n_columns, learned.dimension
    tangential, normal = np.maximum(tangential, floor * n_along), np.maximum(normal, floor * n_across)
    if not tie.any():
        S, B = _ratio(tangential, n_along, floor), _ratio(normal, n_across, floor)
        variance = (Q * S + (D - Q) * B) / D
        along = np.clip(S / variance, _SHARE_MARGIN * D / Q, (1 - _SHARE_MARGIN) * D / Q)
        return ClampedNoise(1.0 / variance, along, learned.across(along))

    def objective(along: FloatArray) -> FloatArray:
        across = learned.across(along)
        error = tangential / along + normal / across + tie
        return np.asarray(-n_along * np.log(along) - n_across * np.log(across) - (n_along + n_across) * np.log(error))

    def derivative(along: FloatArray) -> FloatArray:
        across = learned.across(along)
        error = tangential / along + normal / across + tie
        change = -tangential / along**2 + normal * Q / ((D - Q) * across**2)
        own = -n_along / along + n_across * Q / ((D - Q) * across)
        return np.asarray(own - (n_along + n_across) * change / error)

    found = _maximize(objective, derivative, learned)
    error = tangential / found + normal / learned.across(found) + tie
    return ClampedNoise(np.minimum((n_along + n_across) / error, 1.0 / floor), found, learned.across(found))


def _cubic(
    learned: Learned, n_along: FloatArray, n_across: FloatArray, tangential: FloatArray, normal: FloatArray, beta: float
) -> FloatArray:
    """The best admissible root α of (34), with the sign of V₁ put right, for a given β.

    In V₁ = V₂ + V₋ and for full rank it reads N Q D α(1−α)(D−αQ) = −α²βQ(D−Q)V₁ + βD(D−2αQ+α²Q)V₂; here as the
    derivative that it is the numerator of. At a node whose rows scatter much less than D/β there are three roots, since
    it is as good as any to have next to no variance along the surface or next to none across.
    """
    D, Q = learned.n_columns, learned.dimension

    def objective(along: FloatArray) -> FloatArray:
        across = learned.across(along)
        own = n_along * np.log(along) + n_across * np.log(across)
        return np.asarray(-own - beta * (tangential / along + normal / across))

    def derivative(along: FloatArray) -> FloatArray:
        across = learned.across(along)
        own = -n_along / along + n_across * Q / ((D - Q) * across)
        return np.asarray(own + beta * (tangential / along**2 - normal * Q / ((D - Q) * across**2)))

    return _maximize(objective, derivative, learned)


def _maximize(
    objective: Callable[[FloatArray], FloatArray], derivative: Callable[[FloatArray], FloatArray], learned: Learned
) -> FloatArray:
    """Maximum of ``objective`` for each entry: on a grid over the range, then by bisection of ``derivative``.

    Both in the log odds of αQ/D, in which maxima are at least about one wide.
    """
    edge = np.log(1 / _SHARE_MARGIN)
    odds = np.linspace(-edge, edge, _GRID_POINTS)
    largest = learned.n_columns / learned.dimension
    best = np.array([objective(np.asarray(largest / (1 + np.exp(-each)))) for each in odds]).argmax(axis=0)
    low, high = odds[np.maximum(best - 1, 0)], odds[np.minimum(best + 1, _GRID_POINTS - 1)]
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        rising = derivative(largest / (1 + np.exp(-middle))) > 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    return np.asarray(largest / (1 + np.exp(-0.5 * (low + high))))


def _across(along: Precision, n_columns: int, dimension: int) -> Precision:
    return (n_columns - along * dimension) / (n_columns - dimension)


def _precision(n_values: float, error: float, floor: float) -> float:
    return min(n_values / error, 1.0 / floor) if error > 0 else 1.0 / floor


def _ratio(square: FloatArray, count: FloatArray, floor: float) -> FloatArray:
    return np.maximum(square / np.where(count > 0, count, 1.0), floor)


def _plain(value: Precision) -> Precision:
    return float(value) if np.ndim(value) == 0 else value
