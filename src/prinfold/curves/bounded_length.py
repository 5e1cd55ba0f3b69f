"""The principal curve of bounded length (Kégl, Krzyżak, Linder & Zeger 2000, sections 3 and 4), as a polygonal line.

Among chains of k = n^(1/3) segments, rounded up, with length Σ‖v_{i+1} − v_i‖ ≤ L the one with least Δ_n is wanted; as
n grows its Δ comes to the least of all curves so long. How to find it the paper leaves open, and takes a penalty on
corners in practice. Here it is sought by the same two steps: with feet held, Φ is a convex quadratic function, and the
chains that are short enough form a convex set. The vertex step goes towards what minimises

    Φ(v) + μ Σ‖v_{i+1} − v_i‖,

for the μ ≥ 0 at which the chain is as long as it may be, or μ = 0 if it is shorter anyway. Δ_n never rises, and no
chain on the way is longer than L; what is found is a local minimum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from prinfold._typing import FloatArray
from prinfold.curves.polygonal_curve_training import FeetQuadratic, PolygonalLineState, PolygonalProblem
from prinfold.numerics.banded_matrices import BandedMatrix
from prinfold.numerics.polylines import segments_of

_MOST_HALVINGS = 40
"""Most halvings of the interval that μ is sought in, on a logarithmic scale."""

_LEAST_MULTIPLIER, _MOST_MULTIPLIER = 1e-9, 1e3
"""Bounds of μ in units of the radius of the data: beyond the latter a chain is a point."""

_QUADRATIC_STEPS = 3
"""Steps for each μ: each minimises a quadratic function that is above the length and equals it at the last chain."""

_SHORTEST_SEGMENT = 1e-9
"""Shortest length of a segment to divide by, as a share of the radius."""


@dataclass(frozen=True)
class LimitedLength:
    """No chain may be longer than ``limit``; it has n^(1/3) segments, or as many as are asked for."""

    limit: float
    n_segments: int | None = None

    def adapt_start(self, problem: PolygonalProblem, start: FloatArray) -> FloatArray:
        """The start, shrunk about its middle where it is too long."""
        middle, length = start.mean(axis=0), chain_length(start, problem.closed)
        return np.asarray(middle + min(1.0, self.limit / length) * (start - middle)) if length > 0 else start

    def coefficient(self, problem: PolygonalProblem, k: int, error: float) -> float:
        """Zero: there is no penalty."""
        return 0.0

    def is_enough(self, problem: PolygonalProblem, k: int, error: float) -> bool:
        """Whether k ≥ n^(1/3), or k is the number asked for; rows on the chain need no more either, nor few rows."""
        by_rows = min(np.ceil(problem.n ** (1 / 3) - 1e-9), problem.enough_segments)
        wanted = by_rows if self.n_segments is None else min(self.n_segments, problem.most_segments)
        return bool(k >= wanted or error <= problem.rounding_error)

    def is_capped(self, problem: PolygonalProblem, k: int, error: float) -> bool:
        """False: k is always the number that is asked for."""
        return False

    def move_vertices(self, problem: PolygonalProblem, state: PolygonalLineState) -> FloatArray:
        """Move all vertices at once towards the solution, as far as Φ falls and the chain is not too long."""
        held, v = FeetQuadratic.of(problem, state.feet, len(state.vertices)), state.vertices
        step = self._solution(problem, held, v) - v
        slope = float(np.vdot(held.slope(v), step))
        bend = 2.0 * float(np.vdot(step, held.A.times(step)))
        share = min(1.0, -slope / bend) if bend > 0 else 0.0
        # Both ends of this search are what they are called: v is short enough, and lengths are convex along a line.
        short, long = 0.0, max(share, 0.0)
        for _ in range(_MOST_HALVINGS):
            if chain_length(v + long * step, problem.closed) <= self.limit:
                return np.asarray(v + long * step)
            middle = 0.5 * (short + long)
            fits = chain_length(v + middle * step, problem.closed) <= self.limit
            short, long = (middle, long) if fits else (short, middle)
        return np.asarray(v + short * step)

    def _solution(self, problem: PolygonalProblem, held: FeetQuadratic, v: FloatArray) -> FloatArray:
        free = v - held.A.solve(0.5 * held.slope(v))  # vertices without rows stay
        if chain_length(free, problem.closed) <= self.limit:
            return free
        low, high, found = np.log(_LEAST_MULTIPLIER * problem.radius), np.log(_MOST_MULTIPLIER * problem.radius), v
        for _ in range(_MOST_HALVINGS):
            middle = 0.5 * (low + high)
            found = _shorten(held, found, float(np.exp(middle)), problem)
            too_long = chain_length(found, problem.closed) > self.limit
            low, high = (middle, high) if too_long else (low, middle)
        return found


def chain_length(vertices: FloatArray, closed: bool) -> float:
    """Σ‖v_{i+1} − v_i‖."""
    return float(np.linalg.norm(segments_of(vertices, closed)[1], axis=1).sum())


def _shorten(held: FeetQuadratic, v: FloatArray, multiplier: float, problem: PolygonalProblem) -> FloatArray:
    """Move vertices towards the minimum of Φ + μ·length for μ = ``multiplier``, by ‖e‖ ≤ ‖e‖²/(2‖e₀‖) + ‖e₀‖/2."""
    m = len(v)
    for _ in range(_QUADRATIC_STEPS):
        size = np.linalg.norm(segments_of(v, problem.closed)[1], axis=1)
        weight = np.zeros(m)
        weight[: len(size)] = multiplier / np.maximum(size, _SHORTEST_SEGMENT * problem.radius)
        draw = BandedMatrix(np.stack([weight + np.roll(weight, 1), -weight, np.zeros(m)]))
        v = v - held.A.plus(0.5, draw).solve(0.5 * (held.slope(v) + draw.times(v)))
    return v
