"""Principal curves by projection and smoothing in turn (Hastie and Stuetzle, 1989).

A step projects each row on the curve, and smooths the rows as a function of the arc length there; at convergence every
point of the curve is the mean of the rows that project there, as far as the smoother can tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from prinfold._typing import FloatArray
from prinfold.curves.arc_curve import ArcCurve
from prinfold.curves.smoothers import CurveSample, SmoothedCurve, Smoother
from prinfold.curves.starts import CurveStart, principal_axes
from prinfold.curves.winding import WOUND_RATIO, winds
from prinfold.numerics.polylines import Feet, nearest_on_polyline

_EXTENSION_DEVIATIONS = 1.0
"""Root mean squared distances by which an open curve is extended beyond its ends while rows are projected."""

_FINEST_DEVIATIONS = 1.3
"""Scale of the finest bends, in deviations of the noise across the curve. At 0.9 the noise of zig-zags and rings is
filled, and at 1.85 bends are flattened whose radius is three deviations, and smaller rings collapse."""

_WIDER_POWER = 0.15
"""Power of half the number of directions by which that scale grows beyond two of them. At 0.25 sines in 50 columns are
flattened."""

_LEAST_DF_FACTOR = 1.5
"""Least factor of degrees of freedom, for noise in any number of directions. Counted (q + 1) / q times, a
sine in 50 columns of noise comes out up to eight times as long; twice, ends with few rows are cut off."""

_TRIAL_SCALES = (0.9,) * 3 + (_FINEST_DEVIATIONS,) * 3
"""Scales in the steps after which starts are compared. They begin gently, as what is flattened then is lost: of 48
spirals of 300 rows with noise of a sixth of the way between turns 1 is cut across, and 7 to 10 with the one scale."""

_MOST_TRIAL_ROWS = 20_000
"""Most rows by which starts are compared."""

_MOST_TRIAL_COLUMNS = 32
"""Most columns in which starts are compared: as many principal directions of the rows."""

_CLOSED_ALLOWANCE_NATS = 0.05
"""Nats for each row by which the code of a closed curve may be longer than that of the best open one."""

_LEAST_RING_PERSISTENCE = 2.0
"""Persistence of a loop of the rows from which on a ring needs no shorter code than a line: of rings with noise it is
2.3 to 3.9, of spirals and blobs 1.4 to 1.7."""

_MOST_RING_ERRORS = 1.5, 3.0
"""Most that V of a closed curve with a longer code, and with a shorter one, may be in units of that of the best open
one: a ring through the middle of a helix has a code of about the same length, but is far from all rows."""

_MOST_UNEXPLAINED_SHARE = 0.2
"""Most of the variance that a ring may leave for curves to wind about it: passes round a loop leave it 0.04 to 0.15,
turns of a helix 0.3."""

_MOST_GAP_FACTOR = 2.0
"""Widest gap allowed on a closed curve, in units of the widest that chance leaves."""

_PRELIMINARY_STEPS, _COLLAPSED_SHARE = 10, 0.2
"""Steps after which a curve is good enough for another method to begin along, unless it has shrunk below that share of
its length: about no loop a closed one is smoothed to a point, from where there is no way back."""

_LEAST_BIAS_SHARE = 0.01
"""Share of the mean squared distance below which the mean squared bias is not worth another correction."""

_MOST_CORRECTIONS = 10
"""Most corrections of bias: beyond, the curve begins to follow the noise."""


Candidate = tuple[CurveStart, bool]
"""A start, and whether its curve is closed."""


class SmoothingRows(NamedTuple):
    """Rows (n, D) about their mean with weights (n,), and their total variance."""

    X: FloatArray
    weight: FloatArray
    variance: float

    @classmethod
    def of(cls, X: FloatArray, weight: FloatArray) -> SmoothingRows:
        return cls(X, weight, float(np.average(np.square(X).sum(axis=1), weights=weight)))

    def thin(self) -> SmoothingRows:
        """Some of the rows, where there are many: enough to compare starts."""
        every = -(-len(self.X) // _MOST_TRIAL_ROWS)
        return self if every == 1 else SmoothingRows.of(self.X[::every], self.weight[::every])

    def mean(self, values: FloatArray) -> float:
        """Weighted mean of a number for each row."""
        return float(np.average(values, weights=self.weight))


@dataclass(frozen=True, eq=False)
class CurveState:
    """A curve in training: ``vertices`` (m, D), open or ``closed``, after ``step`` steps.

    ``place`` (n,) is where rows are on it, by arc length and as shares of what they cover: the ``covered`` part of the
    ``chain`` (k, D), which reaches beyond open ends and round to the beginning of closed ones. ``residual`` (n, D) is
    what takes them there, ``across`` the number of directions that it has across the curve, and ``noise`` its deviation
    in each of them, both the least so far; ``longest`` is the length, of a ring the greatest so far.
    ``smooth`` is the result of the smoother, None at the start, which had a ``name``; it may have been ``smoothed``
    before, and then ``start_length`` is the length that it had.
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
    smooth: SmoothedCurve | None = None
    smoothed: bool = False
    name: str = "given"
    start_length: float = np.inf

    @property
    def score(self) -> float:
        """V, by which curves are compared; inf before the first smoothing."""
        return np.inf if self.smooth is None else self.smooth.score

    @property
    def length(self) -> float:
        """Length of the part that rows cover; of a closed curve, of all of it."""
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


def project_rows(rows: SmoothingRows, vertices: FloatArray, closed: bool, beyond: float = 0.0) -> CurveState:
    """The curve through vertices with rows projected on it, ``beyond`` the ends of an open one too."""
    chain = np.vstack([vertices, vertices[:1]]) if closed else _extend_ends(vertices, beyond)
    feet, knots = nearest_on_polyline(rows.X, chain), _knots(chain)
    s = knots[feet.segment] + feet.share * (knots[feet.segment + 1] - knots[feet.segment])
    low, high = (0.0, float(knots[-1])) if closed else (float(s.min()), float(s.max()))
    place = np.clip((s - low) / (high - low), 0.0, 1.0) if high > low else np.zeros(len(s))
    residual = _residual(rows.X, chain, feet)
    return CurveState(vertices, closed, chain, (low, high), place, residual, *noise_across(rows, residual), high - low)


def begin(rows: SmoothingRows, start: CurveStart, closed: bool) -> CurveState:
    """The first state, from a start with rows projected on it."""
    curve = replace(project_rows(rows, start.vertices, closed), name=start.name)
    if start.noise is None:
        return curve
    return replace(curve, noise=min(curve.noise, start.noise), smoothed=True, start_length=curve.length)


def step(rows: SmoothingRows, smoother: Smoother, curve: CurveState, scale: float = _FINEST_DEVIATIONS) -> CurveState:
    """Smooth rows along the curve, and project them on the smoothed curve."""
    smooth = smoother.smooth(curve_sample(rows, curve, scale), curve.step)
    after = project_rows(rows, smooth.vertices, curve.closed, _EXTENSION_DEVIATIONS * np.sqrt(rows.mean(curve.squared)))
    # For the scale of bends, noise and its directions never rise and the length of a ring never falls: else a curve
    # would take the bias of its flattening for noise, a ring that shrinks would be smoothed at a growing share of its
    # length, to a point, and a curve that fills the noise where it is widest would take it for narrow. The start does
    # not count, since it may wind through the noise.
    after = replace(
        after, step=curve.step + 1, smooth=smooth, smoothed=True, name=curve.name, start_length=curve.start_length
    )
    if not curve.smoothed:
        return after
    if curve.closed and after.length > WOUND_RATIO * curve.start_length and _winds(rows, after):
        return replace(curve, step=after.step)  # a ring about several strands stays one
    across = min(curve.across, after.across)
    noise = min(curve.noise, after.noise * float(np.sqrt(after.across / across)))
    longest = max(curve.longest, after.longest) if curve.closed else after.longest
    return replace(after, noise=noise, across=across, longest=longest)


def curve_sample(rows: SmoothingRows, curve: CurveState, scale: float = _FINEST_DEVIATIONS) -> CurveSample:
    """Rows along a curve, with the finest scale on which it may bend and the factor of degrees of freedom.

    The scale is ``scale`` σ max(1, q/2)^0.15, with noise σ in q directions across.
    """
    wide = scale * max(1.0, 0.5 * curve.across) ** _WIDER_POWER * curve.noise
    finest = wide / curve.longest if curve.longest > 0 else 0.0
    return CurveSample(curve.place, rows.X, rows.weight, curve.closed, finest, df_factor_across(curve.across))


def df_factor_across(across: float) -> float:
    """Factor γ of degrees of freedom where noise has q directions across the curve: max((q + 1) / q, 3/2).

    One number in q + 1 is spent on the place of a row. In many directions that is next to nothing, but a curve leans
    towards rows in each of them, and rows move to where it leans towards them.
    """
    return max((across + 1.0) / across, _LEAST_DF_FACTOR)


def noise_across(rows: SmoothingRows, residual: FloatArray) -> tuple[float, float]:
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


def measures(rows: SmoothingRows, curve: CurveState) -> dict[str, float]:
    """Entries of the history: minus the share of the variance that is left, degrees of freedom, and V."""
    error, smooth = rows.mean(curve.squared), curve.smooth
    return {
        "objective": -error / rows.variance if rows.variance > 0 else 0.0,
        "error": error,
        "df": 0.0 if smooth is None else smooth.df,
        "score": error if smooth is None else smooth.score,
    }


def best_start(rows: SmoothingRows, smoother: Smoother, candidates: Sequence[Candidate]) -> Candidate:
    """The start from which a few steps lead to the shortest code, with its vertices after these steps.

    Curves that wind again and again round a ring that explains the rows are left out.
    """
    if len(candidates) == 1:
        return candidates[0]
    axes = _comparison_axes(rows)
    some = SmoothingRows.of(rows.X @ axes.T, rows.weight)
    begun = [begin(some, CurveStart(start.name, start.vertices @ axes.T), closed) for start, closed in candidates]
    ends = _leave_out_winding(some, [_take_trial_steps(some, smoother, each) for each in begun])
    lengths = code_lengths(ends)
    order: list[int] = np.argsort(lengths, kind="stable").tolist()
    shortest = {ends[i].closed: i for i in reversed(order)}  # of either shape
    best = order[0]
    if len(shortest) == 2:
        line, ring = shortest[False], shortest[True]
        persistent = {start.name for start, _ in candidates if start.persistence >= _LEAST_RING_PERSISTENCE}
        loop = max((each.length for each in ends if each.name in persistent), default=0.0)
        best = ring if _closes(ends[ring], ends[line], lengths[[ring, line]], loop) else line
    return CurveStart(ends[best].name, ends[best].vertices @ axes, ends[best].noise), ends[best].closed


def _closes(ring: CurveState, line: CurveState, codes: FloatArray, loop: float) -> bool:
    """Whether a closed curve is to be taken before the best open one; ``codes`` (2,) are the lengths of theirs.

    They are no equals: a closed curve may return where no rows are, so that none of it may be without them, and it
    has to be about as near to them as the line. Its code may be a little longer, and by any number of nats where it
    goes once round a loop of length ``loop`` that persists in the rows.
    """
    if not np.isfinite(codes).all() or widest_gap(ring.place) > 1.0:  # not finite where rows are too few to say
        return False
    longer = float(codes[0] - codes[1])
    near = ring.score <= _MOST_RING_ERRORS[int(longer <= 0)] * line.score
    return bool(near and (longer <= _CLOSED_ALLOWANCE_NATS or ring.length <= WOUND_RATIO * loop))


def _leave_out_winding(rows: SmoothingRows, curves: list[CurveState]) -> list[CurveState]:
    """The curves without those that wind about another of them, a ring near the rows."""
    near = [each for each in curves if each.closed and each.score <= _MOST_UNEXPLAINED_SHARE * rows.variance]
    whole = [each.length for each in near if widest_gap(each.place) <= 1.0 and not _winds(rows, each)]
    limit = WOUND_RATIO * min(whole, default=np.inf)
    return [each for each in curves if each.length <= limit or not _winds(rows, each)]


def _winds(rows: SmoothingRows, curve: CurveState) -> bool:
    return winds(curve.vertices, curve.closed, curve.noise, float(np.sqrt(rows.variance)))


def preliminary_curve(rows: SmoothingRows, smoother: Smoother, candidates: Sequence[Candidate]) -> ArcCurve:
    """The curve that a few steps lead to from the best of starts, for other methods to begin along."""
    first = curve = begin(rows, *best_start(rows.thin(), smoother, candidates))
    for _ in range(_PRELIMINARY_STEPS):
        curve = step(rows, smoother, curve)
    begun, smoothed = (ArcCurve.through(each.vertices, each.closed) for each in (first, curve))
    return begun if smoothed.length < _COLLAPSED_SHARE * begun.length else smoothed


def code_lengths(curves: Sequence[CurveState]) -> FloatArray:
    """(k,) length of the code of a row by each of k curves: its place on the curve, and its residual across.

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
    return float(gaps.max() * n / (_MOST_GAP_FACTOR * (np.log(n) + 3.0)))


def _comparison_axes(rows: SmoothingRows) -> FloatArray:
    """(k, D) axes in which starts are compared: all columns, or principal directions where columns are many."""
    n_columns = rows.X.shape[1]
    return (
        np.eye(n_columns)
        if n_columns <= _MOST_TRIAL_COLUMNS
        else principal_axes(rows.X, rows.weight, _MOST_TRIAL_COLUMNS)[0]
    )


def correct_bias(rows: SmoothingRows, smoother: Smoother, curve: CurveState) -> CurveState:
    """The curve without the bias of its smoother (Banfield and Raftery, 1992).

    A smoother draws bends inwards. What it does to rows it does not do to their residuals about the curve, once the
    curve has the bends: f + S(x − f), with the same S, is repeated until S(x − f) is small.
    """
    if curve.smooth is None:
        return curve
    for _ in range(_MOST_CORRECTIONS):
        sample = curve_sample(rows, curve)._replace(rows=curve.residual)
        bias = smoother.smooth(sample, curve.step, curve.smooth.setting).vertices
        places = np.arange(len(bias)) / (len(bias) if curve.closed else len(bias) - 1)
        after = project_rows(rows, curve.at(places) + bias, curve.closed)
        small = float(np.square(bias).sum(axis=1).mean()) < _LEAST_BIAS_SHARE * rows.mean(curve.squared)
        curve = replace(after, step=curve.step, smooth=curve.smooth, name=curve.name)
        if small:
            break
    return curve


def _take_trial_steps(rows: SmoothingRows, smoother: Smoother, curve: CurveState) -> CurveState:
    for scale in _TRIAL_SCALES:
        curve = step(rows, smoother, curve, scale)
    return curve


def _knots(chain: FloatArray) -> FloatArray:
    return np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(chain, axis=0), axis=1))])


def _residual(X: FloatArray, chain: FloatArray, feet: Feet) -> FloatArray:
    begins = chain[feet.segment]
    return np.asarray(X - begins - feet.share[:, None] * (chain[feet.segment + 1] - begins))


def _extend_ends(vertices: FloatArray, reach: float) -> FloatArray:
    """The chain with a straight piece of length ``reach`` added at either end."""
    if reach == 0.0:
        return vertices
    ends = vertices[[0, -1]] - vertices[[1, -2]]
    size = np.linalg.norm(ends, axis=1, keepdims=True)
    ends = reach * ends / np.where(size > 0, size, 1.0)
    return np.vstack([vertices[0] + ends[0], vertices, vertices[-1] + ends[1]])
