"""Probabilistic principal curves: a mixture of Gaussians whose centres are smoothed by a cubic spline.

Tibshirani's curve (thesis 2.2.4, PPS 2.3) is a mixture of K Gaussians with centres f(x_k), shares π_k and one variance
σ², of the largest

    ℓ = Σₙ ln Σ_k π_k N(tₙ; f(x_k), σ²I) − ½ μ ∫ ‖f″(x)‖² dx.

A step takes responsibilities R and then, in this order, none of which lowers ℓ: slides places x_k along the curve
towards the mean of the rows that they answer for (Gauss and Newton's step, kept where it brings them nearer); solves
for the values of the spline with knots at the new places, (G/σ² + μP) Y = RT/σ², P being what splines bend; and sets π
and σ².
The sliding keeps the curve as it is, and the spline through its values at the new knots bends no more than it does.

With a ``clamping`` α other than 1 the Gaussians are oriented, as PPS (17): the variance is α/β along the curve and
(D − α)/(β(D − 1)) across. The same step is then no longer sure to raise the likelihood.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from prinfold._typing import FloatArray
from prinfold.curves.arc_curve import ArcCurve
from prinfold.curves.winding import WOUND_RATIO, winds
from prinfold.geometry.column_span import ColumnSpan
from prinfold.numerics.distances import squared_distances
from prinfold.numerics.linalg import solve_symmetric
from prinfold.numerics.natural_splines import Knots, bending, bending_energy, spline_at

_BLOCK_ROWS = 2048
_POINTS_PER_CELL = 4
"""Points of the curve for each cell between knots, where it is measured and drawn."""

_LEAST_GAP = 0.25
"""Least distance between neighbouring knots, in units of the mean one: equations of knots that meet are
singular, and rows between knots so close do not determine the curve any better."""

_FEWEST_BENDS = 1e-3
"""Least number of bends that rows determine: with none, a straight curve could not bend again."""

_MOST_ROUNDS, _STEPS_PER_ROUND, _LARGEST_FACTOR, _CONVERGED_CHANGE = 20, 10, 30.0, 0.02
"""Search for the penalty: most rounds, steps in each, largest factor in one round, and change of ln μ that ends it."""

_COLLAPSED_SHARE = 0.2
"""Share of its first length below which a curve has collapsed."""

_LARGEST_PENALTY = 1e4
"""Largest penalty, in units of the length of the curve: the curve is then straight."""

_MOST_DOUBLINGS, _RING_STEPS, _RING_RATIO = 12, 30, 1.05
"""Search for a penalty with which a ring stays one: most doublings, steps with each, and how much longer it may get."""

_LEAST_POSITIVE = np.finfo(float).tiny
"""Where a logarithm or a quotient is taken of what may be zero."""


class CurveNodeSums(NamedTuple):
    """Sums of the E-step: masses (K,) and moments (K, D) of the nodes, and the log-likelihood of the rows."""

    mass: FloatArray
    moment: FloatArray
    log_likelihood: float


class CurveNodes(NamedTuple):
    """The mixture: centres and unit tangents (K, D), shares (K,), and the noise variance 1/β."""

    centers: FloatArray
    tangents: FloatArray
    shares: FloatArray
    variance: float


class ProbabilisticState(NamedTuple):
    """A curve in training: its spline, by knots and values (K, D), shares (K,), 1/β, and the sums of its E-step."""

    knots: Knots
    values: FloatArray
    shares: FloatArray
    variance: float
    sums: CurveNodeSums | None = None

    @property
    def nodes(self) -> CurveNodes:
        """The mixture of Gaussians at the knots."""
        _, slope = spline_at(self.knots, self.values, self.knots.places)
        length = np.linalg.norm(slope, axis=1, keepdims=True)
        return CurveNodes(self.values, slope / np.where(length > 0, length, 1.0), self.shares, self.variance)


@dataclass(frozen=True)
class WeightedRows:
    """Rows (n, D) that all differ, about their mean, with weights (n,)."""

    rows: FloatArray
    weight: FloatArray

    @cached_property
    def total(self) -> float:
        """Σ w."""
        return float(self.weight.sum())

    @cached_property
    def square(self) -> float:
        """Σ w ‖t‖²."""
        return float(self.weight @ np.einsum("nd,nd->n", self.rows, self.rows))

    def blocks(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Rows and weights, some thousands at a time."""
        for i in range(0, len(self.rows), _BLOCK_ROWS):
            yield self.rows[i : i + _BLOCK_ROWS], self.weight[i : i + _BLOCK_ROWS]


@dataclass(frozen=True)
class CurveModel:
    """Settings of training: penalty μ, clamping α and the least variance.

    ``columns`` is D where rows are given in fewer that span them; the others are zero, and count as noise does.
    """

    penalty: float
    clamping: float
    floor: float
    columns: int | None = None

    def spreads(self, given: FloatArray) -> tuple[float, float]:
        """Variances along and across the curve, in units of 1/β; in one column there is no across."""
        D = self.n_columns(given)
        return (1.0, 1.0) if D == 1 else (self.clamping, (D - self.clamping) / (D - 1.0))

    def n_columns(self, given: FloatArray) -> int:
        """D, for what is ``given`` as (…, D) or less."""
        return self.columns or given.shape[1]

    def begin(self, sample: WeightedRows, knots: Knots, values: FloatArray) -> ProbabilisticState:
        """The first state: equal shares, and the variance of the rows about their nearest node."""
        shares, total = np.full(len(values), 1.0 / len(values)), 0.0
        for rows, weight in sample.blocks():
            total += float(weight @ squared_distances(rows, values).min(axis=1))
        variance = max(total / (sample.total * self.n_columns(values)), self.floor)
        return self.e_step(sample, ProbabilisticState(knots, values, shares, variance))

    def e_step(self, sample: WeightedRows, state: ProbabilisticState) -> ProbabilisticState:
        """The state with the sums of its E-step."""
        mass, moment, log_likelihood = np.zeros(len(state.values)), np.zeros_like(state.values), 0.0
        nodes = state.nodes
        for rows, weight in sample.blocks():
            share, logs = self.responsibilities(rows, nodes)
            share *= weight[:, None]
            mass += share.sum(axis=0)
            moment += share.T @ rows
            log_likelihood += float(weight @ logs)
        return state._replace(sums=CurveNodeSums(mass, moment, log_likelihood))

    def step(self, sample: WeightedRows, state: ProbabilisticState) -> ProbabilisticState:
        """One step of generalised EM, with the E-step of the new state."""
        assert state.sums is not None
        knots = slide_knots(state.knots, state.values, state.sums)
        values = self._solve_values(state, knots)
        moved = state._replace(knots=knots, values=values, shares=state.sums.mass / state.sums.mass.sum())
        spread = self._spread_about(sample, state, moved) / (sample.total * self.n_columns(values))
        return self.e_step(sample, moved._replace(variance=max(spread, self.floor)))

    def measure(self, sample: WeightedRows, state: ProbabilisticState) -> dict[str, float]:
        """ℓ and the log-likelihood, per row, and the variance of the noise."""
        assert state.sums is not None
        cost = 0.5 * self.penalty * roughness(state)
        per_row = state.sums.log_likelihood / sample.total
        return {"objective": per_row - cost / sample.total, "log_likelihood": per_row, "noise": state.variance}

    def responsibilities(self, rows: FloatArray, nodes: CurveNodes) -> tuple[FloatArray, FloatArray]:
        """(n, K) responsibilities of the nodes for rows, and (n,) ln p(t)."""
        D = self.n_columns(rows)
        along, across = self.spreads(rows)
        ln_det = D * np.log(2 * np.pi * nodes.variance) + np.log(along) + (D - 1) * np.log(across)
        logs = np.log(np.maximum(nodes.shares, _LEAST_POSITIVE)) - 0.5 * (
            self._distances(rows, nodes) / nodes.variance + ln_det
        )
        top = logs.max(axis=1, keepdims=True)
        np.exp(logs - top, out=logs)
        whole = logs.sum(axis=1, keepdims=True)
        logs /= whole
        return logs, (top + np.log(whole))[:, 0]

    def _distances(self, rows: FloatArray, nodes: CurveNodes) -> FloatArray:
        """(n, K) dᵀ (βΣ_k)⁻¹ d, squared distances along the curve and across it, each in its own unit."""
        along, across = self.spreads(rows)
        distance = squared_distances(rows, nodes.centers) / across
        if along != across:
            off = rows @ nodes.tangents.T - np.einsum("kd,kd->k", nodes.centers, nodes.tangents)
            distance += np.square(off) * (1.0 / along - 1.0 / across)
        return distance

    def _solve_values(self, state: ProbabilisticState, knots: Knots) -> FloatArray:
        """(K, D) values of (G + σ²μP) Y = RT, solved for the change so that nodes without rows stay determined."""
        assert state.sums is not None
        values, _ = spline_at(state.knots, state.values, knots.places)
        system = np.diag(state.sums.mass) + state.variance * self.penalty * bending(knots)
        return np.asarray(values + solve_symmetric(system, state.sums.moment - system @ values))

    def _spread_about(self, sample: WeightedRows, old: ProbabilisticState, new: ProbabilisticState) -> float:
        """Σ r dᵀ(βΣ)⁻¹d with the responsibilities of the ``old`` state and the nodes of the ``new`` one."""
        along, across = self.spreads(new.values)
        if along == across:
            assert old.sums is not None
            own = float(old.sums.mass @ np.einsum("kd,kd->k", new.values, new.values))
            return max(sample.square - 2.0 * float((new.values * old.sums.moment).sum()) + own, 0.0) / across
        total, before, after = 0.0, old.nodes, new.nodes
        for rows, weight in sample.blocks():
            share, _ = self.responsibilities(rows, before)
            total += float(weight @ (share * self._distances(rows, after)).sum(axis=1))
        return total


def roughness(state: ProbabilisticState) -> float:
    """∫ ‖f″(x)‖² dx."""
    return bending_energy(state.knots, state.values)


def slide_knots(knots: Knots, values: FloatArray, sums: CurveNodeSums) -> Knots:
    """Move places along the curve towards the means of the rows that their nodes answer for."""
    held = sums.mass > _LEAST_POSITIVE
    mean = np.where(held[:, None], sums.moment / np.where(held, sums.mass, 1.0)[:, None], values)
    _, slope = spline_at(knots, values, knots.places)
    speed = np.einsum("kd,kd->k", slope, slope)
    step = np.einsum("kd,kd->k", mean - values, slope) / np.where(speed > 0, speed, 1.0)
    # Two neighbours may both use half of the room between them.
    room = np.maximum(knots.steps - _LEAST_GAP * knots.steps.mean(), 0.0) / 2.0
    before = np.concatenate([[room[-1] if knots.closed else 0.0], room[: len(values) - 1]])
    after = room if knots.closed else np.append(room, 0.0)
    step = np.clip(step, -before, after)
    if not knots.closed:
        step[[0, -1]] = 0.0  # the ends of the spline are the ends of the curve
    there, _ = spline_at(knots, values, knots.places + step)
    nearer = np.square(mean - there).sum(axis=1) <= np.square(mean - values).sum(axis=1)
    return knots._replace(places=knots.places + np.where(nearer, step, 0.0))


def likeliest_penalty(model: CurveModel, state: ProbabilisticState) -> float:
    """The likeliest μ with the responsibilities held: γD/∫‖f″‖², γ being the number of bends that rows determine.

    This is MacKay's fixed point, for a prior of precision μ on the second derivative of the spline.
    """
    assert state.sums is not None
    K, D = len(state.values), model.n_columns(state.values)
    stiff = state.variance * model.penalty * bending(state.knots)
    held = solve_symmetric(np.diag(state.sums.mass) + stiff, stiff)
    free = 1 if state.knots.closed else 2  # a point or a line, which bend nothing
    determined = max(K - free - float(np.trace(held)), _FEWEST_BENDS)
    with np.errstate(over="ignore"):  # what does not bend at all calls for more than any number, which is then clipped
        return float(determined * D / np.maximum(roughness(state), _LEAST_POSITIVE))


def find_penalty(model: CurveModel, sample: WeightedRows, curve: ArcCurve, n_nodes: int) -> tuple[CurveModel, ArcCurve]:
    """The model with the likeliest penalty, and the curve that it comes to; in each round places are by arc length.

    Rows about no curve in particular call for one that is ever stiffer: an open one is straight then, and a closed one
    a point. The search ends before numbers do. A ring about several strands, which the likeliest curve would follow one
    after the other, stays one.
    """
    ring, first = curve, curve.length
    for _ in range(_MOST_ROUNDS):
        state = model.begin(sample, *even_knots(curve, n_nodes))
        for _ in range(_STEPS_PER_ROUND):
            state = model.step(sample, state)
        after, likeliest = curve_of(state), likeliest_penalty(model, state)
        if after.length < _COLLAPSED_SHARE * first:
            break
        curve, before = after, model.penalty
        penalty = float(
            np.clip(likeliest, before / _LARGEST_FACTOR, min(before * _LARGEST_FACTOR, _LARGEST_PENALTY * first))
        )
        model = replace(model, penalty=penalty)
        if abs(np.log(penalty / before)) < _CONVERGED_CHANGE:
            break
    spread, noise = float(np.sqrt(sample.square / sample.total)), float(np.sqrt(state.variance))
    if ring.closed and curve.length > WOUND_RATIO * first and winds(curve.vertices, True, noise, spread):
        return _penalty_that_keeps_length(replace(model, penalty=first), sample, ring, n_nodes)
    return model, curve


def _penalty_that_keeps_length(
    model: CurveModel, sample: WeightedRows, ring: ArcCurve, n_nodes: int
) -> tuple[CurveModel, ArcCurve]:
    """The model with the least of penalties, each twice the one before, with which a ring stays as long as it is."""
    for _ in range(_MOST_DOUBLINGS):
        model = replace(model, penalty=2.0 * model.penalty)
        state = model.begin(sample, *even_knots(ring, n_nodes))
        for _ in range(_RING_STEPS):
            state = model.step(sample, state)
        curve = curve_of(state)
        if curve.length <= _RING_RATIO * ring.length:
            return model, curve
    return model, ring


def even_knots(curve: ArcCurve, n_nodes: int) -> tuple[Knots, FloatArray]:
    """Knots at even arc lengths of a curve, and (K, D) its values there."""
    x = np.linspace(0.0, curve.length, n_nodes, endpoint=not curve.closed)
    return Knots(x, curve.length if curve.closed else 0.0), curve.point(x[:, None])


def curve_of(state: ProbabilisticState, span: ColumnSpan | None = None) -> ArcCurve:
    """The spline as a curve by arc length, in all columns where rows are given in the ``span`` of themselves."""
    ends, n = state.knots.ends, _POINTS_PER_CELL * len(state.values)
    x = np.linspace(ends[0], ends[-1], n, endpoint=not state.knots.closed)
    points = spline_at(state.knots, state.values, x)[0]
    return ArcCurve.through(points if span is None else span.from_coordinates(points), state.knots.closed)
