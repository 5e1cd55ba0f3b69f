"""Principal curves by projection and smoothing in turn (Hastie and Stuetzle, 1989).

A step takes each row to its place on the curve, by arc length, and smooths the rows as a function of it; at rest every
point of the curve is the mean of the rows that project there, as far as the smoother can tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from prinfold._typing import FloatArray
from prinfold.algorithms.curve_starts import Start
from prinfold.algorithms.smoothers import Sample, Smooth, Smoother
from prinfold.kernels.polylines import Feet, nearest_on_polyline

_BEYOND = 1.0
"""How far an open curve reaches beyond its ends while rows are projected, in root mean squared distances."""

_TRIAL = 6
"""Steps after which starts are compared."""

_TRIAL_ROWS = 20_000
"""Rows by which they are compared, at most."""

_FINEST = 1.85
"""Scale of the finest bends, in deviations of the noise across the curve. Of half circles, zig-zags and spirals, the
noise of some is filled at 1.5 and corners are cut at 3; in between the distance to the truth hardly depends on it."""

_HARDLY = 1.05
"""How many times the V of the best open curve that of a closed one may be."""

_WINDING = 1.3
"""How many times the degrees of freedom of a closed curve an open one may have before that is looked into."""

_GAPS = 2.0
"""How many times the widest gap to be expected one may be on a closed curve."""

_CORRECTED = 0.01
"""Share of the mean squared distance below which the mean squared bias is not worth another correction."""

_CORRECTIONS = 10
"""Most of them: beyond, the curve begins to follow the noise."""


Candidate = tuple[Start, bool]
"""A start, and whether its curve is closed."""


class Rows(NamedTuple):
    """Rows (n, D) about their mean with weights (n,), and their total variance."""

    X: FloatArray
    weight: FloatArray
    variance: float

    @classmethod
    def of(cls, X: FloatArray, weight: FloatArray) -> Rows:
        return cls(X, weight, float(np.average(np.square(X).sum(axis=1), weights=weight)))

    def thinned(self) -> Rows:
        """Some of them, where there are many: enough to tell which start is best."""
        every = -(-len(self.X) // _TRIAL_ROWS)
        return self if every == 1 else Rows.of(self.X[::every], self.weight[::every])

    def mean(self, values: FloatArray) -> float:
        """Weighted mean of a number for each row."""
        return float(np.average(values, weights=self.weight))


@dataclass(frozen=True, eq=False)
class Curve:
    """A curve on its way: ``vertices`` (m, D), open or ``closed``, after ``step`` steps.

    ``place`` (n,) is where rows are on it, by arc length and as shares of what they cover: the ``covered`` part of the
    ``chain`` (k, D), which reaches beyond open ends and round to the beginning of closed ones. ``residual`` (n, D) is
    what takes them there, and ``noise`` the least deviation of theirs that was seen so far. ``smooth`` is what the
    smoother said of the curve, None at the start, which had a ``name``.
    """

    vertices: FloatArray
    closed: bool
    chain: FloatArray
    covered: tuple[float, float]
    place: FloatArray
    residual: FloatArray
    step: int = 0
    noise: float = np.inf
    smooth: Smooth | None = None
    name: str = "given"

    @property
    def score(self) -> float:
        """V, by which curves are compared; that of one that nothing was smoothed for is unknown."""
        return np.inf if self.smooth is None else self.smooth.score

    @property
    def squared(self) -> FloatArray:
        """(n,) squared distances of rows."""
        return np.asarray(np.einsum("nd,nd->n", self.residual, self.residual))

    def at(self, places: FloatArray) -> FloatArray:
        """(m, D) points of the curve at places (m,)."""
        low, high = self.covered
        knots = _knots(self.chain)
        return np.stack([np.interp(low + places * (high - low), knots, column) for column in self.chain.T], axis=1)


def placed(rows: Rows, vertices: FloatArray, closed: bool, beyond: float = 0.0) -> Curve:
    """The curve through vertices with rows projected on it, ``beyond`` the ends of an open one too."""
    chain = np.vstack([vertices, vertices[:1]]) if closed else _lengthened(vertices, beyond)
    feet, knots = nearest_on_polyline(rows.X, chain), _knots(chain)
    s = knots[feet.segment] + feet.share * (knots[feet.segment + 1] - knots[feet.segment])
    low, high = (0.0, float(knots[-1])) if closed else (float(s.min()), float(s.max()))
    place = np.clip((s - low) / (high - low), 0.0, 1.0) if high > low else np.zeros(len(s))
    return Curve(vertices, closed, chain, (low, high), place, _residual(rows.X, chain, feet))


def begin(rows: Rows, start: Start, closed: bool) -> Curve:
    """The curve that a start gives."""
    return replace(placed(rows, start.vertices, closed), name=start.name)


def step(rows: Rows, smoother: Smoother, curve: Curve, setting: float | None = None) -> Curve:
    """Smooth rows along the curve, with the ``setting`` if one is given, and project them on what comes out."""
    smooth = smoother.smooth(sample_of(rows, curve), curve.step, setting)
    after = placed(rows, smooth.vertices, curve.closed, _BEYOND * np.sqrt(rows.mean(curve.squared)))
    noise = min(curve.noise, noise_of(rows, after)[0])
    return replace(after, step=curve.step + 1, noise=noise, smooth=smooth, name=curve.name)


def sample_of(rows: Rows, curve: Curve) -> Sample:
    """Rows along a curve, with what their noise says about how finely it may bend."""
    noise, across = noise_of(rows, curve)
    length = float(_knots(curve.chain)[-1]) if curve.closed else curve.covered[1] - curve.covered[0]
    # A curve that flattens must not take its own bias for noise, and flatten further.
    finest = _FINEST * min(noise, curve.noise) / length if length > 0 else 0.0
    return Sample(curve.place, rows.X, rows.weight, curve.closed, finest, (across + 1.0) / across)


def noise_of(rows: Rows, curve: Curve) -> tuple[float, float]:
    """The deviation of the noise across a curve in each direction, √(tr C / q), and q, the number of directions.

    q = max(1, p − 1) with p = (tr C)² / tr C², the number of directions that the residuals have, C being their second
    moments; a curve that turns has one more of them than there are across it.
    """
    moments = curve.residual.T @ (curve.residual * (rows.weight / rows.weight.sum())[:, None])
    total = float(np.trace(moments))
    # Moments are divided by their trace before they are squared, as squares of large ones are beyond all numbers.
    across = max(1.0, 1.0 / float(np.square(moments / total).sum()) - 1.0) if total > 0 else 1.0
    return float(np.sqrt(total / across)), across


def measures(rows: Rows, curve: Curve) -> dict[str, float]:
    """What the history keeps: minus the share of the variance that is left, degrees of freedom, and V."""
    error, smooth = rows.mean(curve.squared), curve.smooth
    return {
        "objective": -error / rows.variance if rows.variance > 0 else 0.0,
        "error": error,
        "df": 0.0 if smooth is None else smooth.df,
        "score": error if smooth is None else smooth.score,
    }


def best_start(rows: Rows, smoother: Smoother, candidates: Sequence[Candidate]) -> Candidate:
    """Of starts, each open or closed, the one whose curve has the lowest V after a few steps.

    Open and closed curves are no equals. A closed one may return where no rows are: it is taken if its V is hardly
    higher than that of the best open one, and no part of it is without rows. An open one may wind more than once
    through the noise of a ring: one that has many more degrees of freedom is tried again, smoothed as the ring is.
    """
    if len(candidates) == 1:
        return candidates[0]
    best = {shape: _best(rows, smoother, [each for each in candidates if each[1] == shape]) for shape in (False, True)}
    found = [each for each in best.values() if each is not None]
    if len(found) == 1:
        return found[0][0]
    (is_open, line), (is_closed, ring) = found
    rival = line.score
    # Scores are not finite where rows are too few to say.
    if not np.isfinite(ring.score) or not np.isfinite(rival) or widest_gap(ring.place) > 1.0:
        return is_open
    if _df(line) > _WINDING * _df(ring):
        again = [_tried(rows, smoother, begin(rows, *each), _setting(ring)) for each in candidates if not each[1]]
        rival = min(each.score for each in again)
    return is_closed if ring.score <= _HARDLY * rival else is_open


def widest_gap(place: FloatArray) -> float:
    """The widest gap between neighbours on a ring, in units of twice that which even chances leave, (ln n + 3) / n."""
    place, n = np.sort(place), len(place)
    gaps = np.diff(place, append=place[0] + 1.0)
    return float(gaps.max() * n / (_GAPS * (np.log(n) + 3.0)))


def _best(rows: Rows, smoother: Smoother, candidates: list[Candidate]) -> tuple[Candidate, Curve] | None:
    """The start that leads to the lowest V, and where it leads; None where there are none."""
    ends = [_tried(rows, smoother, begin(rows, *each)) for each in candidates]
    return min(zip(candidates, ends, strict=True), key=lambda pair: pair[1].score) if ends else None


def corrected(rows: Rows, smoother: Smoother, curve: Curve) -> Curve:
    """The curve without the bias of its smoother (Banfield and Raftery, 1992).

    A smoother draws bends inwards. What it does to rows it does not do to their residuals about the curve, once the
    curve has the bends: f + S(x − f), with the same S, is repeated until S(x − f) is small.
    """
    if curve.smooth is None:
        return curve
    for _ in range(_CORRECTIONS):
        sample = sample_of(rows, curve)._replace(rows=curve.residual)
        bias = smoother.smooth(sample, curve.step, curve.smooth.setting).vertices
        places = np.arange(len(bias)) / (len(bias) if curve.closed else len(bias) - 1)
        after = placed(rows, curve.at(places) + bias, curve.closed)
        small = float(np.square(bias).sum(axis=1).mean()) < _CORRECTED * rows.mean(curve.squared)
        curve = replace(after, step=curve.step, smooth=curve.smooth, name=curve.name)
        if small:
            break
    return curve


def _setting(curve: Curve) -> float | None:
    return None if curve.smooth is None else curve.smooth.setting


def _df(curve: Curve) -> float:
    return 0.0 if curve.smooth is None else curve.smooth.df


def _tried(rows: Rows, smoother: Smoother, curve: Curve, setting: float | None = None) -> Curve:
    for _ in range(_TRIAL):
        curve = step(rows, smoother, curve, setting)
    return curve


def _knots(chain: FloatArray) -> FloatArray:
    return np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(chain, axis=0), axis=1))])


def _residual(X: FloatArray, chain: FloatArray, feet: Feet) -> FloatArray:
    begins = chain[feet.segment]
    return np.asarray(X - begins - feet.share[:, None] * (chain[feet.segment + 1] - begins))


def _lengthened(vertices: FloatArray, reach: float) -> FloatArray:
    """The chain with a straight piece at either end."""
    if reach == 0.0:
        return vertices
    ends = vertices[[0, -1]] - vertices[[1, -2]]
    size = np.linalg.norm(ends, axis=1, keepdims=True)
    ends = reach * ends / np.where(size > 0, size, 1.0)
    return np.vstack([vertices[0] + ends[0], vertices, vertices[-1] + ends[1]])
