"""The polygonal line algorithm (Kégl, Krzyżak, Linder & Zeger 2000): a chain that gains one vertex after another.

With Δ_n the weighted mean squared distance of rows to the chain of k segments and P its penalty (see ``bending``),

    G(v) = Δ_n(v) + λ P(v),    λ = λ' k n^(−1/3) √Δ_n / r,

is brought down by two steps in turn. The projection step finds the foot (1 − t) v_s + t v_{s+1} of every row. The
vertex step then lowers

    Φ(v) = Σ_i w_i ‖x_i − (1 − t_i) v_{s_i} − t_i v_{s_i + 1}‖² / Σ w + λ P(v),

with feet held where they are on their segments. Φ is G where the step begins, and nowhere below G, since the nearest
point is no farther than the one held: whatever lowers Φ lowers G by at least as much, and G never rises while λ and k
stay. The gradients of Φ and G agree there too, so that both come to rest at the same chains.

When G falls by less than a share ``tol`` a vertex is put in the middle of the segment with most rows, the longest of
these, and λ is renewed. This ends when

    k > β n^(1/3) r / √Δ_n.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple, Protocol

import numpy as np
from scipy.spatial import cKDTree

from prinfold._typing import FloatArray
from prinfold.curves.polygonal_penalty import bending, bending_value
from prinfold.curves.smoothers import n_effective
from prinfold.curves.starts import principal_axes, principal_line
from prinfold.loops import NO_LISTENERS, Done, Listeners, Outcome, StopReason, run_fixed_point
from prinfold.loops.stopping_rules import Measures
from prinfold.numerics.banded_matrices import BandedMatrix
from prinfold.numerics.polylines import Feet, nearest_on_polyline, segments_of

PENALTY, STOPPING = 0.13, 0.3
"""λ' and β as published."""

TOL = 1e-3
"""Share of G by which it has to fall in a step for the same vertices to be moved again."""

_MOST_HALVINGS = 30
_ARMIJO = 1e-4
_EXACT_SHARE = 1e-9
"""Share of the radius of the data: rows that are on average no farther away lie on the chain but for rounding."""


_LEAF_ROWS = 16
"""Rows in a leaf of the tree that sorts rows by neighbourhood."""

MOST_RATE_ROWS = 10_000
"""Largest n in λ and in the rule, both of which go by n^(1/3).

With more rows segments would become much shorter than the noise, and the penalty on corners so weak that the line folds
to and fro across it, which shortens distances and asks for ever more of them.
"""

_MOST_GROWING_ROWS = 20_000
"""Most rows that a line grows among, before it is fitted to all; so many have the same n as all."""

MOST_SEGMENTS_FACTOR = 20.0
"""Segments over n^(1/3) at which a line stops growing; clean tables need a third of them.

The rule grows with r, the distance of the farthest row: a single outlier would ask for ever more.
"""


@dataclass(frozen=True, eq=False)
class PolygonalProblem:
    """Rows X (n, D) about their mean with weights (n,), and whether the chain through them is to be closed."""

    X: FloatArray
    weight: FloatArray
    closed: bool = False

    @classmethod
    def of(cls, X: FloatArray, weight: FloatArray, closed: bool) -> PolygonalProblem:
        """The problem of rows in any order, sorted so that neighbours are together."""
        order = cKDTree(X, leafsize=_LEAF_ROWS).indices
        return cls(np.ascontiguousarray(X[order]), weight[order], closed)

    def thin(self) -> PolygonalProblem:
        """Some of the rows, where there are many: from everywhere, since neighbours are together."""
        every = -(-len(self.X) // _MOST_GROWING_ROWS)
        if every == 1:
            return self
        return PolygonalProblem(np.ascontiguousarray(self.X[::every]), self.weight[::every], self.closed)

    @cached_property
    def total(self) -> float:
        """The weight of all rows."""
        return float(self.weight.sum())

    @cached_property
    def n(self) -> float:
        """n: as many rows as the weights stand for, up to :data:`MOST_RATE_ROWS`."""
        return min(n_effective(self.weight), MOST_RATE_ROWS)

    @property
    def enough_segments(self) -> int:
        """Most segments unless a number is asked for: one for two rows, or 20 n^(1/3) if that is less."""
        return int(min(max(len(self.X) // 2, 1), np.ceil(MOST_SEGMENTS_FACTOR * self.n ** (1 / 3))))

    @property
    def most_segments(self) -> int:
        """Most segments whatever is asked for: the rows joined one by one have no more."""
        return len(self.X)

    @cached_property
    def radius(self) -> float:
        """r: the largest distance of a row to the mean."""
        return float(np.sqrt(np.square(self.X).sum(axis=1).max(initial=0.0)))

    @property
    def rounding_error(self) -> float:
        """Mean squared distance that is zero but for rounding."""
        return (_EXACT_SHARE * self.radius) ** 2


class ChainRestraint(Protocol):
    """A restraint that keeps a chain from running through every row."""

    def adapt_start(self, problem: PolygonalProblem, start: FloatArray) -> FloatArray:
        """(m, D) vertices to begin with, such as the restraint allows."""

    def coefficient(self, problem: PolygonalProblem, k: int, error: float) -> float:
        """λ of a chain with k segments and mean squared distance ``error``."""

    def is_enough(self, problem: PolygonalProblem, k: int, error: float) -> bool:
        """Whether it needs no more segments."""

    def is_capped(self, problem: PolygonalProblem, k: int, error: float) -> bool:
        """Whether it may have no more, though it needs them."""

    def move_vertices(self, problem: PolygonalProblem, state: PolygonalLineState) -> FloatArray:
        """(m, D) vertices with Φ no higher than at the state: the vertex step."""


@dataclass(frozen=True, eq=False)
class PolygonalLineState:
    """A chain of ``vertices`` (m, D), the feet of ``n_rows`` rows on it, λ, Δ_n and G; ``done`` when training ends."""

    vertices: FloatArray
    feet: Feet
    coefficient: float
    error: float
    objective: float
    n_rows: int
    done: bool = False


def count_segments(vertices: FloatArray, closed: bool) -> int:
    """Number k of segments of a chain."""
    return len(vertices) if closed else len(vertices) - 1


# ------------------------------------------------------------------------------------------------------ projection


def project(problem: PolygonalProblem, vertices: FloatArray, coefficient: float) -> PolygonalLineState:
    """The projection step: feet of all rows on a chain, with Δ_n and G."""
    return evaluate_chain(problem, vertices, nearest_on_polyline(problem.X, vertices, problem.closed), coefficient)


def evaluate_chain(
    problem: PolygonalProblem, vertices: FloatArray, feet: Feet, coefficient: float
) -> PolygonalLineState:
    """Δ_n and G of a chain with known feet."""
    error = float(problem.weight @ feet.squared) / problem.total
    cost = coefficient * bending_value(vertices, problem.radius, problem.closed) if coefficient else 0.0
    return PolygonalLineState(vertices, feet, coefficient, error, error + cost, len(problem.X))


# -------------------------------------------------------------------------------------------------- vertex step


class FeetQuadratic(NamedTuple):
    """The first part of Φ as ⟨v, A v⟩ − 2⟨v, B⟩ and a constant, with A (m, m) and B (m, D)."""

    A: BandedMatrix
    B: FloatArray

    @classmethod
    def of(cls, problem: PolygonalProblem, feet: Feet, m: int) -> FeetQuadratic:
        """A and B from rows and their feet on a chain of m vertices."""
        s, t, w = feet.segment, feet.share, problem.weight / problem.total
        u = 1.0 - t
        A, B = np.zeros((3, m)), np.empty((m, problem.X.shape[1]))
        A[0] = np.bincount(s, w * u**2, m) + np.roll(np.bincount(s, w * t**2, m), 1)
        A[1] = np.bincount(s, w * t * u, m)
        for q, column in enumerate(problem.X.T):
            B[:, q] = np.bincount(s, w * u * column, m) + np.roll(np.bincount(s, w * t * column, m), 1)
        return cls(BandedMatrix(A), B)

    def slope(self, v: FloatArray) -> FloatArray:
        """(m, D) gradient of the quadratic function."""
        return np.asarray(2.0 * (self.A.times(v) - self.B))

    def change(self, slope: FloatArray, step: FloatArray) -> float:
        """Change of the quadratic function by a step, from the gradient before it."""
        return float(np.vdot(slope, step) + np.vdot(step, self.A.times(step)))


@dataclass(frozen=True)
class CurvaturePenalty:
    """The published restraint (section 5): λ' = ``penalty`` on corners, and growth that ends by β = ``stopping``."""

    penalty: float = PENALTY
    stopping: float = STOPPING
    n_segments: int | None = None
    """Number of segments at which growth ends instead."""

    def adapt_start(self, problem: PolygonalProblem, start: FloatArray) -> FloatArray:
        """The start as it is."""
        return start

    def coefficient(self, problem: PolygonalProblem, k: int, error: float) -> float:
        """λ = λ' k n^(−1/3) √Δ_n / r."""
        if problem.radius == 0:
            return 0.0
        return float(self.penalty * k * problem.n ** (-1 / 3) * np.sqrt(error) / problem.radius)

    def is_enough(self, problem: PolygonalProblem, k: int, error: float) -> bool:
        """Whether k > β n^(1/3) r / √Δ_n, or k is the number asked for; rows on the chain need no more either.

        Without such a number there are never more segments than :attr:`PolygonalProblem.enough_segments`: few rows
        would be joined, one after the other, since the rule asks for more the nearer the chain comes to them.
        """
        if error <= problem.rounding_error:
            return True
        if self.n_segments is not None:
            return k >= min(self.n_segments, problem.most_segments)
        return k >= problem.enough_segments or self._is_fulfilled(problem, k, error)

    def is_capped(self, problem: PolygonalProblem, k: int, error: float) -> bool:
        """Whether k is the most that there may be, and the rule asks for more."""
        if error <= problem.rounding_error:
            return False
        if self.n_segments is not None:
            return problem.most_segments <= k < self.n_segments
        return k >= problem.enough_segments and not self._is_fulfilled(problem, k, error)

    def _is_fulfilled(self, problem: PolygonalProblem, k: int, error: float) -> bool:
        return bool(k > self.stopping * problem.n ** (1 / 3) * problem.radius / np.sqrt(error))

    def move_vertices(self, problem: PolygonalProblem, state: PolygonalLineState) -> FloatArray:
        """Move all vertices at once by a step of Newton's method, halved until Φ falls by Armijo's rule.

        In place of the second derivative of P stands a matrix that is never indefinite.
        """
        held = FeetQuadratic.of(problem, state.feet, len(state.vertices))
        v, c, form = state.vertices, state.coefficient, (problem.radius, problem.closed)
        penalty, slope = bending(v, *form), held.slope(v)
        gradient = slope + c * penalty.gradient
        step = -held.A.plus(0.5 * c, penalty.hessian).solve(0.5 * gradient)
        promised = float(np.vdot(gradient, step))
        for _ in range(_MOST_HALVINGS):
            change = held.change(slope, step) + c * (bending_value(v + step, *form) - penalty.value)
            if change <= _ARMIJO * promised:
                return np.asarray(v + step)
            step, promised = 0.5 * step, 0.5 * promised
        return v


# ------------------------------------------------------------------------------------------------------- the loop


def step(
    problem: PolygonalProblem, restraint: ChainRestraint, state: PolygonalLineState, tol: float
) -> PolygonalLineState:
    """Move the vertices and project the rows; where that has come to rest, add a vertex."""
    vertices = restraint.move_vertices(problem, state)
    found = project(problem, vertices, state.coefficient)
    if found.objective > state.objective:  # by rounding alone
        found = state
    if state.objective - found.objective > tol * state.objective:
        return found
    k = count_segments(vertices, problem.closed)
    if restraint.is_enough(problem, k, found.error):
        return replace(found, done=True)
    return add_vertex(problem, restraint, found)


def add_vertex(problem: PolygonalProblem, restraint: ChainRestraint, state: PolygonalLineState) -> PolygonalLineState:
    """Add a vertex in the middle of the segment on which most rows have their feet, the longest of those."""
    inner = (state.feet.share > 0) & (state.feet.share < 1)
    edge = segments_of(state.vertices, problem.closed)[1]
    rows = np.bincount(state.feet.segment[inner], problem.weight[inner], len(edge))
    length = np.linalg.norm(edge, axis=1)
    widest = int(np.lexsort((length, rows))[-1])
    if length[widest] == 0:
        return replace(state, done=True)
    middle = state.vertices[widest] + 0.5 * edge[widest]
    vertices = np.insert(state.vertices, widest + 1, middle, axis=0)
    coefficient = restraint.coefficient(problem, len(edge) + 1, state.error)
    return evaluate_chain(problem, vertices, split_feet(state.feet, widest), coefficient)


def split_feet(feet: Feet, cut: int) -> Feet:
    """Feet after a vertex was put in the middle of the segment ``cut``, which moves none of them."""
    later = (feet.segment == cut) & (feet.share > 0.5)
    share = np.where(feet.segment == cut, 2.0 * feet.share - later, feet.share)
    return Feet(feet.segment + (later | (feet.segment > cut)), share, feet.squared)


def chain_among(problem: PolygonalProblem, restraint: ChainRestraint, vertices: FloatArray) -> PolygonalLineState:
    """The state of a chain among rows that are new to it, with the λ of its mean squared distance to them."""
    feet = nearest_on_polyline(problem.X, vertices, problem.closed)
    first = evaluate_chain(problem, vertices, feet, 0.0)
    k = count_segments(vertices, problem.closed)
    return evaluate_chain(problem, vertices, feet, restraint.coefficient(problem, k, first.error))


@dataclass(frozen=True)
class _GrowthRule(Done):
    """Stop when training is done; the reason tells whether the rule asks for more segments."""

    is_capped: Callable[[int, float], bool] = lambda k, error: False

    def stop(self, records: Sequence[Measures]) -> StopReason | None:
        last = records[-1]
        if not last["done"]:
            return None
        return StopReason.CAPPED if self.is_capped(int(last["segments"]), last["error"]) else StopReason.GROWN


def train(
    problem: PolygonalProblem,
    restraint: ChainRestraint,
    start: FloatArray,
    *,
    max_iter: int,
    tol: float,
    listeners: Listeners = NO_LISTENERS,
) -> Outcome[PolygonalLineState]:
    """Grow a chain from the vertices ``start`` (m, D): among some of the rows, where there are many, then among all.

    Every vertex takes a few rounds among the rows that it grows among, and all vertices together a few among all.
    """
    least = tol if tol > 0 else TOL
    variance = float(problem.weight @ np.square(problem.X).sum(axis=1)) / problem.total or 1.0
    some = problem.thin()

    def advance(state: PolygonalLineState) -> PolygonalLineState:
        rows = problem if state.n_rows == len(problem.X) else some
        found = step(rows, restraint, state, least)
        return chain_among(problem, restraint, found.vertices) if found.done and rows is not problem else found

    def measure(state: PolygonalLineState) -> dict[str, float]:
        return {
            "objective": -state.objective / variance,
            "error": state.error,
            "penalty": state.coefficient,
            "segments": float(count_segments(state.vertices, problem.closed)),
            "rows": float(state.n_rows),
            "done": float(state.done),
        }

    return run_fixed_point(
        lambda: chain_among(some, restraint, start),
        advance,
        measure,
        max_iter=max_iter,
        tol=tol,
        listeners=listeners,
        rule=_GrowthRule(is_capped=partial(restraint.is_capped, problem)),
    )


# ---------------------------------------------------------------------------------------------------------- starts


def principal_segment(problem: PolygonalProblem) -> FloatArray:
    """(2, D) the shortest piece of the first principal component that holds the feet of all rows, as published."""
    return principal_line(problem.X, problem.weight)


def principal_ring(problem: PolygonalProblem) -> FloatArray:
    """(4, D) corners in the first two principal directions, each as far away as rows are on average along it.

    For closed chains, which the paper does not have.
    """
    axes, deviations = principal_axes(problem.X, problem.weight)
    first, second = np.sqrt(2.0) * deviations[:, None] * axes
    return np.stack([first, second, -first, -second])


STARTS = {False: principal_segment, True: principal_ring}
"""Starts of open and of closed chains."""
