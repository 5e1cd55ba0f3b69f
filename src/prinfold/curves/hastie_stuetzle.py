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
from prinfold.curves.arc_curve import ArcCurve
from prinfold.curves.smoothers import Sample, Smooth, Smoother
from prinfold.curves.starts import Start, principal_axes
from prinfold.numerics.polylines import Feet, nearest_on_polyline

_BEYOND = 1.0
"""How far an open curve reaches beyond its ends while rows are projected, in root mean squared distances."""

_FINEST = 1.3
"""Scale of the finest bends, in deviations of the noise across the curve. At 0.9 the noise of zig-zags and rings is
filled, and at 1.85 bends are flattened whose radius is three deviations, and smaller rings collapse."""

_WIDER = 0.15
"""Power of half the number of directions by which that scale grows beyond two of them. At 0.25 sines in 50 columns are
flattened."""

_LEAST_CAUTION = 1.5
"""How often degrees of freedom count at least, in however many directions the noise is. Counted (q + 1) / q times, a
sine in 50 columns of noise comes out up to eight times as long; twice, ends with few rows are cut off."""

_TRIAL = (0.9,) * 3 + (_FINEST,) * 3
"""Scales in the steps after which starts are compared. They begin gently, as what is flattened then is lost: of 48
spirals of 300 rows with noise of a sixth of the way between turns 1 is cut across, and 7 to 10 with the one scale."""

_TRIAL_ROWS = 20_000
"""Rows by which they are compared, at most."""

_TRIAL_COLUMNS = 32
"""Columns in which they are compared, at most: as many principal directions of the rows."""

_HARDLY = 0.05
"""How much longer the code of a closed curve may be than that of the best open one, for each row."""

_GAPS = 2.0
"""How many times the widest gap to be expected one may be on a closed curve."""

_SETTLING, _COLLAPSED = 10, 0.2
"""Steps after which a curve is good enough for another method to begin along, unless it has shrunk below that share of
its length: about no loop a closed one is smoothed to a point, from where there is no way back."""

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
    what takes them there, ``across`` the number of directions that it has across the curve, and ``noise`` its deviation
    in each of them, both the least so far; ``longest`` is the length, of a ring the greatest so far.
    ``smooth`` is what the smoother said of the curve, None at the start, which had a ``name``; it may have been
    ``smoothed`` before.
    """

    vertices: FloatArray
    closed: bool
    chain: FloatArray
    covered: tuple[float, float]
    place: FloatArray
    residual: FloatArray
    noise: float
    across: float
    longest: float
    step: int = 0
    smooth: Smooth | None = None
    smoothed: bool = False
    name: str = "given"

    @property
    def score(self) -> float:
        """V, by which curves are compared; that of one that nothing was smoothed for is unknown."""
        return np.inf if self.smooth is None else self.smooth.score

    @property
    def length(self) -> float:
        """How far rows reach along it; that of a closed curve is all of it."""
        return float(self.covered[1] - self.covered[0])

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
    residual = _residual(rows.X, chain, feet)
    return Curve(vertices, closed, chain, (low, high), place, residual, *noise_of(rows, residual), high - low)


def begin(rows: Rows, start: Start, closed: bool) -> Curve:
    """The curve that a start gives."""
    curve = replace(placed(rows, start.vertices, closed), name=start.name)
    return curve if start.noise is None else replace(curve, noise=min(curve.noise, start.noise), smoothed=True)


def step(rows: Rows, smoother: Smoother, curve: Curve, scale: float = _FINEST) -> Curve:
    """Smooth rows along the curve, and project them on what comes out."""
    smooth = smoother.smooth(sample_of(rows, curve, scale), curve.step)
    after = placed(rows, smooth.vertices, curve.closed, _BEYOND * np.sqrt(rows.mean(curve.squared)))
    # A curve that flattens must not take its own bias for noise, nor a ring that shrinks its scale for a larger share,
    # and go on with it to a point; nor may one that fills the noise where that is widest call it narrow. What a start
    # wound through is no measure.
    after = replace(after, step=curve.step + 1, smooth=smooth, smoothed=True, name=curve.name)
    if not curve.smoothed:
        return after
    across = min(curve.across, after.across)
    noise = min(curve.noise, after.noise * float(np.sqrt(after.across / across)))
    longest = max(curve.longest, after.longest) if curve.closed else after.longest
    return replace(after, noise=noise, across=across, longest=longest)


def sample_of(rows: Rows, curve: Curve, scale: float = _FINEST) -> Sample:
    """Rows along a curve, with what their noise σ in q directions says about how finely it may bend.

    No finer than ``scale`` σ max(1, q/2)^0.15.
    """
    wide = scale * max(1.0, 0.5 * curve.across) ** _WIDER * curve.noise
    finest = wide / curve.longest if curve.longest > 0 else 0.0
    return Sample(curve.place, rows.X, rows.weight, curve.closed, finest, caution_of(curve.across))


def caution_of(across: float) -> float:
    """How often degrees of freedom count where noise has q directions across the curve: max((q + 1) / q, 3/2).

    One number in q + 1 is spent on the place of a row. In many directions that is next to nothing, but a curve leans
    towards rows in each of them, and rows move to where it leans towards them.
    """
    return max((across + 1.0) / across, _LEAST_CAUTION)


def noise_of(rows: Rows, residual: FloatArray) -> tuple[float, float]:
    """The deviation of the noise across a curve in each direction, √(tr C / q), and q, the number of directions.

    q = max(1, p − 1) with p = (tr C)² / tr C², the number of directions that the residuals (n, D) have, C being their
    second moments; a curve that turns has one more of them than there are across it.
    """
    root = residual * np.sqrt(rows.weight / rows.weight.sum())[:, None]
    # tr C² is that of the smaller of RᵀR and RRᵀ.
    moments = root.T @ root if root.shape[1] <= len(root) else root @ root.T
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
    """Where a few steps lead from starts, each open or closed, of that from which they lead to the shortest code.

    Open and closed curves are no equals. A closed one may return where no rows are: it is taken if its code is hardly
    longer than that of the best open one, and no part of it is without rows.
    """
    if len(candidates) == 1:
        return candidates[0]
    axes = _few_axes(rows)
    some = Rows.of(rows.X @ axes.T, rows.weight)
    begun = [begin(some, Start(start.name, start.vertices @ axes.T), closed) for start, closed in candidates]
    ends = [_tried(some, smoother, each) for each in begun]
    lengths = code_lengths(ends)
    order: list[int] = np.argsort(lengths, kind="stable").tolist()
    shortest = {ends[i].closed: i for i in reversed(order)}  # of either shape
    best = order[0]
    if len(shortest) == 2:
        line, ring = shortest[False], shortest[True]
        # Scores are not finite where rows are too few to say.
        known = np.isfinite(lengths[ring]) and np.isfinite(lengths[line])
        closes = known and widest_gap(ends[ring].place) <= 1.0 and lengths[ring] <= lengths[line] + _HARDLY
        best = ring if closes else line
    return Start(ends[best].name, ends[best].vertices @ axes, ends[best].noise), ends[best].closed


def settled(rows: Rows, smoother: Smoother, candidates: Sequence[Candidate]) -> ArcCurve:
    """The curve that a few steps lead to from the best of starts, for other methods to begin along."""
    first = curve = begin(rows, *best_start(rows.thinned(), smoother, candidates))
    for _ in range(_SETTLING):
        curve = step(rows, smoother, curve)
    begun, smoothed = (ArcCurve.through(each.vertices, each.closed) for each in (first, curve))
    return begun if smoothed.length < _COLLAPSED * begun.length else smoothed


def code_lengths(curves: Sequence[Curve]) -> FloatArray:
    """(k,) what it takes to say where a row is, by each of k curves: its place, and what it lies beside it.

    In nats, but for what is the same for all,

        ln √(ℓ² + 2πe V/q) + (q/2) ln V,

    with rows evenly along the length ℓ, or where noise is wider than that as far as it reaches, and Gaussian noise in q
    directions across, the fewest that any of the curves leaves: one that fills the noise where it is widest leaves
    more. V alone would have a curve wind through the noise about it: that halves distances, and doubles the length.
    """
    V = np.maximum([each.score for each in curves], np.finfo(float).tiny)
    length = np.array([each.length for each in curves])
    q = min(each.across for each in curves)
    root = np.sqrt(V / q)  # before squares, which large numbers do not have
    return np.asarray(np.log(np.hypot(length, np.sqrt(2.0 * np.pi * np.e) * root)) + 0.5 * q * np.log(V))


def widest_gap(place: FloatArray) -> float:
    """The widest gap between neighbours on a ring, in units of twice that which even chances leave, (ln n + 3) / n."""
    place, n = np.sort(place), len(place)
    gaps = np.diff(place, append=place[0] + 1.0)
    return float(gaps.max() * n / (_GAPS * (np.log(n) + 3.0)))


def _few_axes(rows: Rows) -> FloatArray:
    """(k, D) what starts are compared in: all columns, or the principal directions of the rows where those are many."""
    n_columns = rows.X.shape[1]
    return np.eye(n_columns) if n_columns <= _TRIAL_COLUMNS else principal_axes(rows.X, rows.weight, _TRIAL_COLUMNS)[0]


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


def _tried(rows: Rows, smoother: Smoother, curve: Curve) -> Curve:
    for scale in _TRIAL:
        curve = step(rows, smoother, curve, scale)
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
