"""Principal oriented points and the curve through them (Delicado 2001).

For a point x and a unit direction b, let rows be projected on the hyperplane H(x, b) = {y: b·(y − x) = 0}: with
distances s_i = b·(x_i − x) from it, rows X_i − s_i b projected on it and kernel weights k_i = w_i K(s_i / h),

    μ(x, b) = Σ k_i (x_i − s_i b) / Σ k_i,    φ(x, b) = Σ k_i ‖x_i − s_i b − μ‖² / Σ k_i

are the mean and the total variance there. b*(x) is the direction of least φ, and a principal oriented point is one that
is its own mean, x = μ(x, b*(x)). In a normal distribution those make up the first principal component, and b* is its
direction. The curve is followed by a step δ along b* from one oriented point and a search for the next there. Where
rows are left out the kernel may have been too narrow for them, and the curve is followed again with a wider one.

A hyperplane may cut a curve more than once. Only rows count that belong together with x on it: those that are joined to
the row nearest to x by steps no longer than the kernel is wide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order
from scipy.spatial import cKDTree

from prinfold._typing import FloatArray, IntArray
from prinfold.curves.smoothers import n_effective
from prinfold.curves.starts import principal_axes
from prinfold.loops import NO_LISTENERS, Done, Listeners, Outcome, StopReason, run_fixed_point
from prinfold.numerics.polylines import nearest_on_polyline

WIDTH, STEP = 0.75, 0.3
"""The kernel in units of the normal reference rule, and steps in units of the kernel."""

_LINK_WIDTHS = 0.5
"""Longest steps by which rows on a hyperplane are connected, in half widths of the kernel."""

_LINK_GAPS = 1.5
"""Longest steps by which rows on a hyperplane are connected, in median nearest-neighbour distances."""

_MOST_GAP_ROWS = 500
"""Most rows from which that median is taken."""

_CONVERGED_WIDTHS = 1e-3
"""Half widths of the kernel: a point that moves by less is its own mean."""

_MOST_MOVES = 30
_LEAST_ADVANCE = 0.25
"""Share of a step by which the next oriented point must be ahead."""

_MOST_STEPS_AWAY = 2.0
"""Steps beyond which an oriented point is on another part of the curve."""

_LEAST_TURN_COSINE = 0.3
"""Cosine of the largest turn in a step."""

_TRIED_STEPS = (1.0, 0.5, 2.0, 3.0)
"""Lengths of steps that are tried in turn, in units of δ."""

_LEAST_SHARE_AHEAD = 0.002
"""Share of the weight of all rows: with no more of it ahead a walk is over."""

_FEWEST_LOOP_POINTS = 8
"""Fewest points between two of a walk for the second to have come round to the first."""

_COVERED_VARIANCES = 1.5
"""Squared distance of rows to a curve, in units of the mean variance across it, up to which none is left out."""

_COVERED_WIDTHS = 0.1
"""Distance in half widths of the kernel that is allowed in addition: rows without noise have no variance across."""


class HyperplaneRows(NamedTuple):
    """Rows about a hyperplane, as gaps (m, D) from the point on it, with their weights (m,)."""

    gap: FloatArray
    weight: FloatArray


class OrientedPoint(NamedTuple):
    """A point (D,), its direction (D,) and the total variance across."""

    point: FloatArray
    direction: FloatArray
    variance: float


class WalkEnd(Enum):
    """Reasons for which a walk went no further; the value says it in words."""

    GOING = "it had not ended when max_iter was reached"
    ROWS = "there are no more rows straight ahead"
    TURN = "the rows ahead turn by more than 70 degrees in a step"
    BACK = "the next oriented point is hardly any farther"
    LEAP = "the next oriented point is on another part of the curve"
    ROUND = "it has come round"


class CompletedWalk(NamedTuple):
    """A whole walk: its points, why it has two ends, how far rows are from it squared, and the mean variance across.

    ``width`` is half that of its kernel. A walk that is round has no ends.
    """

    points: tuple[OrientedPoint, ...]
    ends: tuple[WalkEnd, WalkEnd]
    error: float
    variance: float
    width: float

    @property
    def closed(self) -> bool:
        """Whether the walk is round."""
        return self.ends[0] is WalkEnd.ROUND

    @classmethod
    def of(cls, walk: OrientedWalk, points: tuple[OrientedPoint, ...], ends: tuple[WalkEnd, WalkEnd]) -> CompletedWalk:
        """The walk with the mean squared distance of all rows."""
        places = np.array([each.point for each in points])
        chain = places if len(places) > 1 else np.repeat(places, 2, axis=0)
        squared = nearest_on_polyline(walk.X, chain, ends[0] is WalkEnd.ROUND).squared
        error = float(walk.weight @ squared) / float(walk.weight.sum())
        return cls(points, ends, error, float(np.mean([each.variance for each in points])), walk.width)


@dataclass(frozen=True, eq=False)
class OrientedWalk:
    """Rows X (n, D) with weights (n,), the half ``width`` h of the kernel and the length δ of a ``step``."""

    X: FloatArray
    weight: FloatArray
    width: float
    step: float

    @cached_property
    def reach(self) -> float:
        """Longest step that joins rows on a hyperplane: h/2, or 1.5 times the way to the next row if that is longer.

        In many columns rows that belong together are far from each other, though there are gaps of a hundred of them.
        """
        some = self.X[:: -(-len(self.X) // _MOST_GAP_ROWS)]
        way = np.asarray(cKDTree(self.X).query(some, k=2)[0])[:, 1]
        return max(_LINK_WIDTHS * self.width, _LINK_GAPS * float(np.median(way)))


def reference_width(X: FloatArray, weight: FloatArray) -> float:
    """1.06 σ n^(−1/5), with σ² the variance of rows about their mean along the first principal component.

    n is what the weights stand for, but no more than the rows, which all differ: repeats leave no smaller gaps.
    """
    n = min(n_effective(weight), float(len(X)))
    return float(1.06 * principal_axes(X, weight)[1][0] * n**-0.2)


# ---------------------------------------------------------------------------------------------------- hyperplanes


def total_variance(seen: HyperplaneRows, direction: FloatArray, width: float) -> tuple[float, FloatArray]:
    """φ for a direction (D,) of any length but zero, and its gradient (D,); K(t) = (1 − t²)² for |t| < 1.

    With all rows out of reach φ is the variance of the nearest, without a gradient.
    """
    size = float(np.linalg.norm(direction))
    b = direction / size
    s = seen.gap @ b
    t = 1.0 - (s / width) ** 2
    k = np.where(t > 0, seen.weight * t**2, 0.0)
    total = float(k.sum())
    if total == 0:
        return float(np.square(seen.gap).sum(axis=1).max(initial=0.0)), np.zeros_like(b)
    flat = seen.gap - s[:, None] * b
    mean = k @ flat / total
    away = flat - mean
    square = np.square(away).sum(axis=1)
    value = float(k @ square) / total
    # dφ = Σ dk (‖away‖² − φ) / Σk + 2 Σ k away·d(flat) / Σk, with d(flat) = −ds b − s db and away ⟂ b.
    change = np.where(t > 0, -4.0 * seen.weight * t * s / width**2, 0.0) * (square - value)
    slope = (change @ seen.gap - 2.0 * (k * s) @ away) / total
    return value, np.asarray((slope - (slope @ b) * b) / size)


def conditional_mean(seen: HyperplaneRows, direction: FloatArray, width: float) -> FloatArray:
    """(D,) μ − x for a unit direction; zero where all rows are out of reach."""
    s = seen.gap @ direction
    k = seen.weight * np.maximum(1.0 - (s / width) ** 2, 0.0) ** 2
    total = float(k.sum())
    return np.asarray((k @ seen.gap - (k @ s) * direction) / total) if total > 0 else np.zeros_like(direction)


def rows_near_hyperplane(walk: OrientedWalk, point: FloatArray, direction: FloatArray) -> HyperplaneRows:
    """Rows in a cylinder about the direction, twice as long as the kernel and as wide as what belongs to the point."""
    gap = walk.X - point
    s = gap @ direction
    square = np.square(gap).sum(axis=1) - s**2
    near = np.flatnonzero(np.abs(s) < walk.width)
    if not len(near):
        return HyperplaneRows(gap[near], walk.weight[near])
    own = near[_connected_rows(gap[near] - s[near, None] * direction, walk.reach)]
    kept = np.flatnonzero((np.abs(s) < 2.0 * walk.width) & (square <= square[own].max()))
    return HyperplaneRows(gap[kept], walk.weight[kept])


def _connected_rows(flat: FloatArray, reach: float) -> IntArray:
    """Indices of points (m, D) that are joined to the one nearest to zero by steps no longer than ``reach``."""
    nearest = int(np.square(flat).sum(axis=1).argmin())
    within = np.linalg.norm(flat - flat[nearest], axis=1)
    if within.max() <= reach:
        return np.arange(len(flat))
    pairs = cKDTree(flat).query_pairs(reach, output_type="ndarray")
    links = csr_matrix((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(flat),) * 2)
    return np.sort(breadth_first_order(links, nearest, directed=False, return_predecessors=False))


# ---------------------------------------------------------------------------------------------------- the walk


def oriented_point(walk: OrientedWalk, point: FloatArray, direction: FloatArray) -> OrientedPoint:
    """The principal oriented point that is found from a point, with directions sought from the one given."""
    b, variance = direction, 0.0
    for _ in range(_MOST_MOVES):
        seen = rows_near_hyperplane(walk, point, b)
        b, variance = least_direction(seen, b, walk.width)
        move = conditional_mean(seen, b, walk.width)
        point = point + move
        if float(np.linalg.norm(move)) <= _CONVERGED_WIDTHS * walk.width:
            break
    return OrientedPoint(point, b, variance)


def least_direction(seen: HyperplaneRows, direction: FloatArray, width: float) -> tuple[FloatArray, float]:
    """(D,) the unit direction of least total variance that is found from another, turned like it, and the variance."""
    if len(direction) == 1 or not len(seen.gap):
        return direction, 0.0
    scale = max(float(np.square(seen.gap).sum(axis=1).max()), np.finfo(float).tiny)

    def relative(b: FloatArray) -> tuple[float, FloatArray]:
        value, slope = total_variance(seen, b, width)
        return value / scale, slope / scale

    found = minimize(relative, direction, jac=True, method="BFGS", options={"gtol": 1e-10, "maxiter": 100})
    b = found.x / np.linalg.norm(found.x)
    return np.asarray(b if b @ direction >= 0 else -b), float(found.fun * scale)


class WalkStart(NamedTuple):
    """A row to begin at, and the walk to take from there."""

    walk: OrientedWalk
    row: int


@dataclass(frozen=True, eq=False)
class WalkState:
    """A walk: points found so far, in order along the curve, and why it went no further at its first and last.

    ``starts`` are those that others may take, and ``best`` what was found by those before this one.
    """

    walk: OrientedWalk
    points: tuple[OrientedPoint, ...]
    starts: tuple[WalkStart, ...] = ()
    best: CompletedWalk | None = None
    ends: tuple[WalkEnd, WalkEnd] = (WalkEnd.GOING, WalkEnd.GOING)
    done: bool = False


def starting_rows(walk: OrientedWalk) -> tuple[int, ...]:
    """Rows to begin at: the one nearest to the mean, then those in the middle of each quarter of the weight.

    The quarters are those along the first principal component.
    """
    along = walk.X @ principal_axes(walk.X, walk.weight)[0][0]
    # The rows say which way is up: the sign of an axis does not.
    order = np.argsort(along if walk.weight @ along**3 >= 0 else -along, kind="stable")
    passed = np.cumsum(walk.weight[order]) / walk.weight.sum()
    middles = [int(order[np.searchsorted(passed, share)]) for share in (0.375, 0.625, 0.125, 0.875)]
    return (int(np.square(walk.X).sum(axis=1).argmin()), *middles)


def begin_walk(starts: tuple[WalkStart, ...], best: CompletedWalk | None = None) -> WalkState:
    """The oriented point that is found from the first of the starts, with the direction of the rows about it."""
    walk, row = starts[0]
    gap = walk.X - walk.X[row]
    close = walk.weight * np.exp(-0.5 * np.square(gap).sum(axis=1) / walk.width**2)
    direction = principal_axes(gap, np.maximum(close, np.finfo(float).tiny))[0][0]
    return WalkState(walk, (oriented_point(walk, walk.X[row], direction),), starts[1:], best)


def extend_walk(state: WalkState) -> WalkState:
    """Add a point at each end that goes on; where none does, or the walk has come round, finish it."""
    if state.done:
        return state
    for last in (True, False):
        if state.ends[last] is WalkEnd.GOING:
            state = _extend_end(state, last)
    return state if WalkEnd.GOING in state.ends else _finish_walk(state)


def _extend_end(state: WalkState, last: bool) -> WalkState:
    """Add a point after the last or before the first, or the reason why there is none."""
    way, here = (1, state.points[-1]) if last else (-1, state.points[0])
    found = _next_point(state.walk, here.point, way * here.direction)
    if isinstance(found, WalkEnd):
        return replace(state, ends=(state.ends[0], found) if last else (found, state.ends[1]))
    found = found._replace(direction=way * found.direction)
    loop = _find_loop(state.walk, state.points, found, way)
    if loop is not None:
        return replace(state, points=loop, ends=(WalkEnd.ROUND, WalkEnd.ROUND))
    return replace(state, points=(*state.points, found) if last else (found, *state.points))


def _finish_walk(state: WalkState) -> WalkState:
    """Finish a walk: begin at the next start, unless this one has left no rows out."""
    found = CompletedWalk.of(state.walk, state.points, state.ends)
    best = found if state.best is None or found.error < state.best.error else state.best
    if not state.starts or best.error <= _COVERED_VARIANCES * best.variance + (_COVERED_WIDTHS * best.width) ** 2:
        return replace(state, points=best.points, ends=best.ends, best=best, done=True)
    return begin_walk(state.starts, best)


def _next_point(walk: OrientedWalk, point: FloatArray, ahead: FloatArray) -> OrientedPoint | WalkEnd:
    """The oriented point that a step leads to, or a longer or a shorter one; or why there is none."""
    why = WalkEnd.ROWS
    for share in _TRIED_STEPS:
        begin, step = point + share * walk.step * ahead, share * walk.step
        seen = rows_near_hyperplane(walk, begin, ahead)
        s = seen.gap @ ahead
        if float(seen.weight[(s > 0) & (s < walk.width)].sum()) <= _LEAST_SHARE_AHEAD * float(walk.weight.sum()):
            continue
        found = oriented_point(walk, begin, ahead)
        move = found.point - point
        against = {
            WalkEnd.TURN: float(found.direction @ ahead) <= _LEAST_TURN_COSINE,
            WalkEnd.BACK: float(move @ ahead) <= _LEAST_ADVANCE * step,
            WalkEnd.LEAP: float(np.linalg.norm(move)) >= _MOST_STEPS_AWAY * step,
        }
        if not any(against.values()):
            return found
        why = next(end for end, holds in against.items() if holds) if why is WalkEnd.ROWS else why
    return why


def _find_loop(
    walk: OrientedWalk, points: tuple[OrientedPoint, ...], found: OrientedPoint, way: int
) -> tuple[OrientedPoint, ...] | None:
    """The part of a walk that is round, where a point has come to another one, going the same way."""
    passed = points[:-_FEWEST_LOOP_POINTS] if way > 0 else points[_FEWEST_LOOP_POINTS:]
    if not passed:
        return None
    apart = np.linalg.norm(np.array([each.point for each in passed]) - found.point, axis=1)
    alike = np.array([each.direction for each in passed]) @ found.direction > 0.5
    met = np.flatnonzero((apart < 1.5 * walk.step) & alike)
    if not len(met):
        return None
    return points[met[0] :] if way > 0 else points[: _FEWEST_LOOP_POINTS + met[-1] + 1]


def best_walk(state: WalkState) -> CompletedWalk:
    """The best walk so far, whether the last has ended or not."""
    here = CompletedWalk.of(state.walk, state.points, state.ends)
    return here if state.best is None or here.error < state.best.error else state.best


def train(
    walks: Sequence[OrientedWalk], *, max_iter: int, tol: float, listeners: Listeners = NO_LISTENERS
) -> Outcome[WalkState]:
    """Walk until there are no more rows at either end, or it is round; from several starts where rows are left out.

    Of the ``walks``, which differ in the widths of their kernels, the next one is taken where that is not enough.
    """
    walk = walks[0]
    variance = float(walk.weight @ np.square(walk.X).sum(axis=1)) / float(walk.weight.sum()) or 1.0
    starts = tuple(WalkStart(each, row) for each in walks for row in starting_rows(each))

    def measure(state: WalkState) -> dict[str, float]:
        across = float(np.mean([each.variance for each in state.points]))
        return {"objective": -across / variance, "points": float(len(state.points)), "done": float(state.done)}

    return run_fixed_point(
        lambda: begin_walk(starts),
        extend_walk,
        measure,
        max_iter=max_iter,
        tol=tol,
        listeners=listeners,
        rule=Done(reason=StopReason.WALKED),
    )
