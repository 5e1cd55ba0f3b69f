"""Error of a kernel regression on latent points and its gradient, over all pairs of rows in blocks.

With k_ij = k(‖x_i − x_j‖²), S_i = Σ_j w_j k_ij and r_i = ŷ_i − y_i the error is R = (1/W) Σ_i w_i ‖r_i‖², and a term
(1/W) Σ_i w_i φ(m_i) may be added on the mass m_i = Σ_{j≠i} w_j k_ij of neighbours. By the squared distance s_ij
(Meinicke et al. 2005, (23) to (36))

    V_ij = ∂R/∂s_ij = k'_ij (w_i w_j / W) [(2/S_i) r_i·(y_j − ŷ_i) + φ'(m_i)],
    ∂R/∂x_a = 2 Σ_j V_aj (x_a − x_j) + 2 Σ_i V_ia (x_a − x_i).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import NamedTuple, TypeAlias

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.kernel_manifolds.regression_targets import RowPredictions, Target, inverse
from prinfold.numerics.cell_lists import CellList, PairBuffers
from prinfold.numerics.radial_kernels import FARTHEST, Profile

MassTerm: TypeAlias = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
"""φ and φ' at each of some masses, given the weights of the rows too; called for blocks, from several threads."""

_CANCELLING_SQUARE = 1e7
"""Squares of latent points above which differences of squares, exact to 1e-16 of these, are no longer exact to 1e-9."""

_FAR_MASS = 1e-230
"""A row with less than this share of all weight about it is far: its kernel values are computed relative to the
largest of them. What was held at the farthest distance is below 1e-30 of any larger mass."""

_LEAST_EXPONENT = -60.0


class RowSums(NamedTuple):
    """Error, mass Σ_{j≠i} w_j k_ij, total S_i and penalty φ(m_i) of each row, (n,) each; a pass fills them in."""

    error: FloatArray
    mass: FloatArray
    total: FloatArray
    penalty: FloatArray

    @classmethod
    def of(cls, n: int) -> RowSums:
        return cls(np.empty(n), np.empty(n), np.empty(n), np.zeros(n))


@dataclass(frozen=True)
class RegressionPass:
    """Inputs and row sums of one evaluation, shared by its threads; ``X`` (n, Q) is in bandwidths."""

    X: FloatArray
    target: Target
    weight: FloatArray
    profile: Profile
    alone: bool
    term: MassTerm | None
    wanted: bool
    """Whether the gradient is wanted."""
    compiled: bool
    """Whether there is enough to do for loading a compiler."""
    outcome: RowSums

    @cached_property
    def total_weight(self) -> float:
        return float(self.weight.sum())

    @cached_property
    def even(self) -> bool:
        """Whether all weights are one."""
        return bool((self.weight == 1.0).all())

    def scales(
        self, rows: slice | IntArray, total: FloatArray, mass: FloatArray, level: FloatArray
    ) -> tuple[FloatArray, ...]:
        """Outer derivatives by r_i·(y_j − ŷ_i) k_ij w_j and by k_ij w_j, where k_i· are relative to a level."""
        share = self.weight[rows] / self.total_weight
        shift = np.zeros(len(share))
        if self.term is not None:
            self.outcome.penalty[rows], slope = self.term(mass, self.weight[rows])
            shift = share * slope * level
        return 2.0 * share * inverse(total), shift


class PlainValues:
    """Kernel values k of some rows with all, and g and c with c·g = dk/ds, of arrays as they are."""

    def __init__(self, job: RegressionPass) -> None:
        self.X, self.kernel = job.X, job.profile.pairwise
        self.left, self.right = distance_factors(self.X, *self.kernel.line)
        self.coarse = float(self.right[-1].max()) > _CANCELLING_SQUARE
        self.wide = float(np.square(np.ptp(job.X, axis=0)).sum()) > FARTHEST

    def __call__(self, rows: slice, u: FloatArray, room: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """(k, g, c) of a block of rows, written over ``u`` and ``room``."""
        offset, slope = self.kernel.line
        if self.coarse:
            u[:] = 0.0
            for x in self.X.T:
                np.subtract(x[rows, None], x, out=room)
                room *= room
                u += room
            u *= slope
            u += offset
        else:
            np.dot(self.left[rows], self.right, out=u)
        if self.wide:
            np.maximum(u, offset + slope * FARTHEST, out=u)
        return self.kernel.split(u, room)


class CompiledValues:
    """Compiled twin of :class:`PlainValues`, in two thirds of the time."""

    def __init__(self, job: RegressionPass) -> None:
        self.X, self.points, self.kernel = job.X, np.ascontiguousarray(job.X.T), job.profile.pairwise

    def __call__(self, rows: slice, u: FloatArray, room: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        return self.kernel.between(self.X, self.points, rows, u, room)


class DensePass:
    """One thread's share of a pass over all pairs: takes blocks of rows, with buffers and sums of its own.

    Latent points lie near the origin for the most part, so that the thin products at the end do not cancel; ``loaded``
    is the target's table of summands, and ``buffers`` (2, b, n) have room for blocks.
    """

    def __init__(self, job: RegressionPass, loaded: FloatArray, buffers: FloatArray) -> None:
        self.job, self.loaded, self.buffers = job, loaded, buffers
        self.values = (CompiledValues if job.compiled else PlainValues)(job)
        self.ends = np.column_stack([job.X, np.ones(len(job.X))])
        self._begin()

    def _begin(self) -> None:
        n, with_one = self.ends.shape
        self.by_row, self.by_column = np.zeros((n, with_one)), np.zeros((with_one, n))

    def add(self, rows: slice) -> None:
        job = self.job
        b = rows.stop - rows.start
        u, room = self.buffers[:, :b]
        k, g, factor = self.values(rows, u, room)
        itself = np.arange(b), np.arange(rows.start, rows.stop)
        k[itself] = g[itself] = 0.0
        fit, level = self._fit(k, rows)
        mass = fit.mass * level
        out = job.outcome
        out.error[rows], out.mass[rows], out.total[rows] = fit.error, mass, fit.total
        scale, shift = job.scales(rows, fit.total, mass, level)
        if not job.wanted:
            return
        pull = room if g is k else k
        job.target.pull(fit, self.loaded, job.weight, factor * scale, factor * shift, pull)
        pull *= g
        self.by_row[rows] = pull @ self.ends
        self.by_column += self.ends[rows].T @ pull

    def _fit(self, k: FloatArray, rows: slice) -> tuple[RowPredictions, FloatArray]:
        """The fit, and (b,) the level that k is relative to: 1 but for rows far from all others."""
        job, level = self.job, np.ones(len(k))
        fit = job.target.fit(k, self.loaded, job.weight, rows, job.alone)
        if job.alone and job.profile.reach == inf:
            far = np.flatnonzero(fit.mass < _FAR_MASS * job.total_weight)
            if len(far):
                k[far], level[far] = relative_gaussian(job.X, far + rows.start)
                fit = job.target.fit(k, self.loaded, job.weight, rows, job.alone)
        return fit, level

    def take_sum(self) -> FloatArray:
        """(n, Q + 1) the two thin products of V with (X, 1), added up; the gradient is made of those of all."""
        found = self.by_row + self.by_column.T
        self._begin()
        return found


class NearPass:
    """One thread's share of a pass over pairs within reach, for a kernel that is zero beyond; takes parts of cells."""

    def __init__(self, job: RegressionPass, cells: CellList, most_pairs: int) -> None:
        self.job, self.cells, self.room = job, cells, PairBuffers(most_pairs)
        self.sum = np.zeros(job.X.shape)

    def add(self, part: slice) -> None:
        from prinfold.numerics._cell_lists_jit import near_drift

        job, out = self.job, self.job.outcome
        pairs, s = self.cells.pairs(part, self.room)
        _, room, products = self.room.numbers[:, : len(s)]
        kernel = job.profile.pairwise
        offset, slope = kernel.line
        s *= slope
        s += offset
        k, g, factor = kernel.split(s, room)
        rows, weight = pairs.rows, job.weight[pairs.rows]
        v = k if job.even else k * job.weight[pairs.near]
        own = np.zeros(len(rows)) if job.alone else weight
        fit = job.target.fit_near(v, pairs, own, products, job.wanted)
        out.error[rows], out.mass[rows], out.total[rows] = fit.error, fit.mass, fit.total
        scale, shift = job.scales(rows, fit.total, fit.mass, np.ones(len(rows)))
        if job.wanted:
            shift = factor * (shift - scale * fit.along)
            near_drift(g, products, factor * scale, shift, *pairs, job.weight, job.X, self.sum)

    def take_sum(self) -> FloatArray:
        """(n, Q) the gradient."""
        found, self.sum = self.sum, np.zeros(self.job.X.shape)
        return found


def distance_factors(X: FloatArray, offset: float = 0.0, slope: float = 1.0) -> tuple[FloatArray, FloatArray]:
    """(n, Q + 2) and (Q + 2, n) whose product is a + b ‖x_i − x_j‖², offset and slope, to rounding of the squares."""
    square, one = np.einsum("ij,ij->i", X, X), np.ones(len(X))
    left = np.column_stack([-2.0 * slope * X, slope * square + offset, slope * one])
    return left, np.vstack([X.T, one, square])


def relative_gaussian(X: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
    """Gaussian kernel values of far rows relative to that of their nearest neighbour m, and the latter.

    s_ij − s_im = (x_m − x_j)·(2 x_i − x_j − x_m), which does not cancel however far x_i is.
    """
    s = np.zeros((len(rows), len(X)))
    for x in X.T:
        s += np.square(x[rows, None] - x)
    itself = np.arange(len(rows)), rows
    s[itself] = inf
    nearest = s.argmin(axis=1)
    level = np.exp(-0.5 * s[np.arange(len(rows)), nearest])
    s[:] = 0.0
    for x in X.T:
        s += (x[nearest, None] - x) * (2.0 * x[rows, None] - x - x[nearest, None])
    s[itself] = inf
    s -= np.min(s, axis=1, keepdims=True, where=s < inf, initial=0.0)  # rounding may have named another the nearest
    k = np.exp(np.maximum(-0.5 * s, _LEAST_EXPONENT))
    k[itself] = 0.0
    return k, level


class RegressionReference(NamedTuple):
    """R, ∂R/∂X (n, Q), and the error and mass of each row (n,), by :func:`regression_reference`."""

    value: float
    gradient: FloatArray
    error: FloatArray
    mass: FloatArray


def regression_reference(
    X: FloatArray, Y: FloatArray, weight: FloatArray, profile: Profile, alone: bool, term: MassTerm | None = None
) -> RegressionReference:
    """R and its gradient by the definition, row by row; a far row of a Gaussian is predicted as a double allows."""
    n, W = len(X), weight.sum()
    gradient, error, mass, penalty = np.zeros(X.shape), np.empty(n), np.empty(n), np.zeros(n)
    for i in range(n):
        s = np.square(X[i] - X).sum(axis=1)
        others = np.arange(n) != i
        mass[i] = (weight * profile.value(s))[others].sum()
        used = others if alone else np.full(n, True)
        k, slope = weight * profile.value(s) * used, weight * profile.slope(s) * used
        total = k.sum()
        predicted = k @ Y / total if total > 0 else np.zeros(Y.shape[1])
        error[i] = np.square(predicted - Y[i]).sum()
        V = 2 * slope / total * ((Y - predicted) @ (predicted - Y[i])) if total > 0 else np.zeros(n)
        if term is not None:
            (penalty[i],), (outer,) = term(mass[i : i + 1], weight[i : i + 1])
            V = V + weight * profile.slope(s) * others * outer
        by_pair = 2 * weight[i] / W * V[:, None] * (X[i] - X)
        gradient[i] += by_pair.sum(axis=0)
        gradient -= by_pair
    return RegressionReference(float(weight @ (error + penalty) / W), gradient, error, mass)
