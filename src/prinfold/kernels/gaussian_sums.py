"""Sums of Gaussian kernels of bandwidth 1 at many places: what a density, its gradient and its Hessian are made of.

With centres c_j of weight w_j, d_j = c_j − x and k_j = exp(−‖d_j‖²/2), each place x has

    log_sum = log Σ w k / Σ w,    shift m = Σ w k d / Σ w k,    spread C = Σ w k d dᵀ / Σ w k − m mᵀ,

so that m is the gradient of log Σ w k and C − I its Hessian. What is left out or put together, and what that changes:

* *Out of reach.* Centres farther than R are left out. With R² = 2 log(Σ w / (ε w_min)) they make up less than ε of any
  sum Σ w k that is no less than w_min, as it is wherever there is a centre, and less than ε R² of Σ w k ‖d‖². A place
  with a smaller sum, on the outskirts or far away, is done again: with t its distance from the nearest centre, those
  within √(t² + R²) count, and the same holds relative to its own sum. So it does everywhere.
* *Crowds.* Points of a cell that is small beside the bandwidth count by their weight, mean and second moment, to second
  order: one smooth function with the gradient and Hessian that are given. With T = Σ w ‖δ‖³ over points that are off
  the mean of their cell by δ, Taylor's remainder is at most

      |Δ Σ w k| ≤ 1.3802 T/6,    ‖Δ ∇Σ w k‖ ≤ 3 T/6,    ‖Δ ∇²Σ w k‖ ≤ 5.7833 T/6,

  since the third, fourth and fifth derivatives of k in any direction, He₃, He₄ and He₅ times a Gaussian, never exceed
  these numbers. T ≤ Σ w (√D c/2)³ for cells of side c. Relative to Σ w k the change grows with the distance of what
  counts, so that a place more than three bandwidths from the mean of that is done again without crowds.

Results for a place do not depend on the others: in balls to the last bit, by products of matrices to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import inf, log
from typing import NamedTuple, Protocol

import numpy as np
from scipy.spatial import cKDTree

from prinfold._arrays import for_each_block
from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.kernels.ball_lists import (
    Crowds,
    Groups,
    Strips,
    compress,
    group_places,
    make_strips,
    reach_within,
    widest_last,
)
from prinfold.kernels.cells import share_within

_SIDE = 1.0
"""Bandwidths across a strip and across a group of places. Half as wide, a tenth fewer pairs are looked at in vain, but
groups of ten thousand rows on a curve hold too few places for what is copied."""

_LEAST_CROWD = 3
"""Points that a crowd stands for at least: it costs as much as about 1.7 of them."""

_WORTH = 0.8
"""Crowds are made where they leave less to do than this."""

_OUTSKIRTS = 3.0
"""Bandwidths from the mean of what counts at a place beyond which crowds are undone."""

_FAR, _FARTHEST = 1e6, 1e150
"""Bandwidths from all centres, or from their middle, from which on places go one by one; and where they are held, since
squares would be infinite."""

_FLOOR = -600.0
"""Log sums below this come from exponents at the end of their range."""

_WIDE = 1e4
"""Bandwidths from the middle of the centres beyond which products of matrices lose too many digits."""

_PAIRS = 2**18
"""Pairs of a place and a centre that products of matrices hold at once."""

_COMPILED_FROM = 256
"""Centres from which on loading the compiler pays."""

_MANY_COLUMNS, _MOST_IN_REACH = 8, 0.25
"""Columns, and share of the centres in reach, from which on products of matrices are faster than sums in balls.

With ten thousand rows near a surface, balls take from a fifteenth of their time (one centre in a thousand in reach) to
the same (a quarter), and with eight columns or more up to twice as long when all are; with fewer columns they are
faster throughout. Counting neighbours by a k-d tree alone takes about as long as balls take in all."""

_ROWS_ON_THREADS, _ROWS_PER_PART = 2**14, 2**12
"""Places from which parts go to threads (fewer come from a pass that is on threads itself), and places of a part."""


class Moments(NamedTuple):
    """``log_sum`` (n,), ``shift`` (n, D) and ``spread`` (n, D, D); see the formulas of the module."""

    log_sum: FloatArray
    shift: FloatArray
    spread: FloatArray


class Sums(Protocol):
    """What is asked of sums over kernels; Z is (n, D)."""

    def log_sum(self, Z: FloatArray) -> FloatArray:
        """(n,) log Σ w k / Σ w, finite everywhere."""

    def moments(self, Z: FloatArray) -> Moments:
        """The same with shift and spread."""


class Accuracy(NamedTuple):
    """``tolerance`` ε of what is out of reach, nil for none, and ``side`` c of the cells of crowds, None for none."""

    tolerance: float = 1e-6
    side: float | None = None


ACCURACY: dict[str, Accuracy] = {
    "exact": Accuracy(0.0),
    "truncated": Accuracy(),
    "compressed": Accuracy(side=0.25),
}
"""What is left out, by name; see the module for the bounds."""


def make_sums(centres: FloatArray, weight: FloatArray, accuracy: Accuracy) -> Sums:
    """Sums over centres (m, D) with positive weights (m,), in the way that suits their number, dimension and extent."""
    centres = np.clip(np.ascontiguousarray(centres, dtype=np.float64), -_FARTHEST, _FARTHEST)
    weight = np.asarray(weight, dtype=np.float64)
    balls = BallSums(centres, weight, accuracy)
    few, columns = len(centres) < _COMPILED_FROM, centres.shape[1]
    if few or (columns >= _MANY_COLUMNS and share_within(centres, balls.reach) > _MOST_IN_REACH):
        return DenseSums(centres, weight)
    return balls


# ------------------------------------------------------------------------------------------------ in balls


@dataclass(frozen=True, eq=False)
class BallSums:
    """Sums over the centres in reach, found in strips, and over crowds of them."""

    centres: FloatArray
    weight: FloatArray
    accuracy: Accuracy

    def log_sum(self, Z: FloatArray) -> FloatArray:
        # Whether crowds are undone hangs on the shift.
        return self._sums(Z, len(Z) if self._compressed is not None else 0).log_sum

    def moments(self, Z: FloatArray) -> Moments:
        return self._sums(Z, len(Z))

    @cached_property
    def reach(self) -> float:
        """R of the module's formulas."""
        return reach_within(self.weight, self.accuracy.tolerance) if self.accuracy.tolerance else inf

    def _sums(self, Z: FloatArray, n_moments: int) -> Moments:
        Y, D = self._inward(Z), Z.shape[1]
        n, axes = Y.shape
        out = Moments(np.empty(n), np.empty((n_moments, axes)), np.empty((n_moments, axes, axes)))
        wild = np.abs(Y - self._middle).max(axis=1, initial=0.0) > _FAR
        rows = np.flatnonzero(~wild)
        if self._compressed is not None:
            _, lone, crowds = self._compressed
            self._fill(Y, self._grouped(Y, rows), lone, crowds, out)
            rows = rows[~(np.square(out.shift[rows]).sum(axis=1) <= _OUTSKIRTS**2) | self._lost(out, rows)]
        self._fill(Y, self._grouped(Y, rows), *self._plain, out)
        rows = rows[self._lost(out, rows)]
        wild[rows] = self._fill_far(Y, rows, out)
        for i in np.flatnonzero(wild).tolist():
            _put(out, i, self._axes, alone(Y[i], self._points, self._log_weight))
        return Moments(out.log_sum, out.shift[:, :D], out.spread[:, :D, :D])

    def _lost(self, out: Moments, rows: IntArray) -> BoolArray:
        """Which of the rows have a sum that is too small to be bounded relative to itself."""
        least = _FLOOR if self.reach == inf else max(_FLOOR, float(self._log_weight.min()) - 1e-9)
        return np.asarray(~(out.log_sum[rows] >= least))

    def _fill_far(self, Y: FloatArray, rows: IntArray, out: Moments) -> BoolArray:
        """Do again what is far from all centres, relative to the nearest; returns which rows are too far for that."""
        if not len(rows):
            return np.zeros(0, dtype=bool)
        distance, nearest = map(np.asarray, self._tree.query(Y[rows]))
        wild = distance > _FAR
        rows, square = rows[~wild], np.square(distance[~wild])
        # What is nearest must not be rounded out of its own ball.
        square = square * (1.0 + 1e-9) + self.reach**2
        cuts, origin = np.arange(len(rows) + 1), self._points[nearest[~wild]]
        groups = Groups(rows, cuts, origin, Y[rows], np.zeros(len(rows)), square)
        self._fill(Y, groups, *self._plain, out)
        return np.asarray(wild)

    def _grouped(self, Y: FloatArray, rows: IntArray) -> Groups:
        return group_places(Y, rows, _SIDE, self.reach**2, self._middle)

    def _fill(self, Y: FloatArray, groups: Groups, plain: Strips, crowds: Strips, out: Moments) -> None:
        from prinfold.kernels.ball_sums import sum_balls

        def one(part: slice) -> None:
            sum_balls(Y, groups.part(part), plain, crowds, self._axes, *out)

        if len(groups.rows) < _ROWS_ON_THREADS:
            one(slice(0, len(groups.half)))
        else:
            for_each_block(one, _parts(groups.cuts))

    def _inward(self, Z: FloatArray) -> FloatArray:
        """Coordinates in the order of the strips; a single one gets a second beside it that is always nil."""
        Y = _in_range(Z)
        return np.ascontiguousarray(Y[:, self._axes] if Y.shape[1] > 1 else np.column_stack([np.zeros(len(Y)), Y]))

    @cached_property
    def _axes(self) -> IntArray:
        return widest_last(self.centres) if self.centres.shape[1] > 1 else np.array([1, 0])

    @cached_property
    def _points(self) -> FloatArray:
        return self._inward(self.centres)

    @cached_property
    def _middle(self) -> FloatArray:
        return np.asarray(np.median(self._points, axis=0))

    @cached_property
    def _log_weight(self) -> FloatArray:
        return np.asarray(np.log(self.weight) - log(self.weight.sum()))

    @cached_property
    def _tree(self) -> cKDTree:
        return cKDTree(self._points)

    @cached_property
    def _plain(self) -> tuple[Strips, Strips]:
        """All centres, and no crowds."""
        none = np.zeros(0, dtype=np.int64)
        return self._strips(self._log_weight, self._points), self._strips(self._log_weight[none], self._points[none])

    @cached_property
    def _compressed(self) -> tuple[Crowds, Strips, Strips] | None:
        """Crowds, and strips of lone centres and of crowds; None where they are not wanted or do not pay."""
        if self.accuracy.side is None or self._points.shape[1] > 3:
            return None
        made = compress(self._points, self.weight, self.accuracy.side, _LEAST_CROWD)
        if not made.lone.sum() + 1.7 * len(made.weight) < _WORTH * len(self.weight):
            return None
        log_weight = np.log(made.weight) - log(self.weight.sum())
        lone = self._strips(self._log_weight[made.lone], self._points[made.lone])
        return made, lone, self._strips(log_weight, made.mean, made.moment)

    def _strips(self, log_weight: FloatArray, points: FloatArray, moment: FloatArray | None = None) -> Strips:
        return make_strips(log_weight, points, moment, _SIDE, self._middle)


def _parts(cuts: IntArray) -> list[slice]:
    """Groups in parts of about so many places each."""
    ends = np.searchsorted(cuts, np.arange(_ROWS_PER_PART, cuts[-1], _ROWS_PER_PART))
    return [slice(a, b) for a, b in pairwise([0, *np.unique(ends).tolist(), len(cuts) - 1]) if a < b]


# -------------------------------------------------------------------------------------- products of matrices


@dataclass(frozen=True, eq=False)
class DenseSums:
    """Sums over all centres by products of matrices: for many columns, or kernels that reach most of the centres.

    With x and c taken from the middle of the centres, and j the largest of the exponents x·c + log w − ‖c‖²/2,
    kernels are relative to that of c_j, so that no place is too far away.
    """

    centres: FloatArray
    weight: FloatArray

    def log_sum(self, Z: FloatArray) -> FloatArray:
        return self._sums(Z, 0).log_sum

    def moments(self, Z: FloatArray) -> Moments:
        return self._sums(Z, len(Z))

    def _sums(self, Z: FloatArray, n_moments: int) -> Moments:
        n, D = Z.shape
        Y = _in_range(Z) - self._middle
        out = Moments(np.empty(n), np.empty((n_moments, D)), np.empty((n_moments, D, D)))
        size = max(16, _PAIRS // len(self.centres))
        parts = [slice(i, min(i + size, n)) for i in range(0, n, size)]

        def one(part: slice) -> None:
            self._fill(Y, part, out)

        if n >= _ROWS_ON_THREADS:
            for_each_block(one, parts)
        else:
            for part in parts:
                one(part)
        return out

    def _fill(self, Y: FloatArray, part: slice, out: Moments) -> None:
        y, (log_sum, shift, spread) = Y[part], out
        share = y @ self._points.T
        share += self._level
        most = share.argmax(axis=1)
        share -= share[np.arange(len(y)), most][:, None]
        np.exp(np.maximum(share, -700.0, out=share), out=share)
        total = share.sum(axis=1)
        off = self._points[most] - y
        log_sum[part] = np.log(total) + self._log_weight[most] - 0.5 * np.einsum("ij,ij->i", off, off)
        wild = (np.abs(y).max(axis=1) > _WIDE) | (np.abs(self._points[most]).max(axis=1) > _WIDE)
        if len(shift):
            share /= total[:, None]
            mean, upper = share @ self._points, np.triu_indices(y.shape[1])
            shift[part] = mean - y
            second = share @ self._products - mean[:, upper[0]] * mean[:, upper[1]]
            spread[part, upper[0], upper[1]] = second
            spread[part, upper[1], upper[0]] = second
        for i in np.flatnonzero(wild).tolist():
            _put(out, part.start + i, np.arange(y.shape[1]), alone(y[i], self._points, self._log_weight))

    @cached_property
    def _middle(self) -> FloatArray:
        return np.asarray(np.median(self.centres, axis=0))

    @cached_property
    def _points(self) -> FloatArray:
        return np.asarray(self.centres - self._middle)

    @cached_property
    def _products(self) -> FloatArray:
        """(m, D (D + 1)/2) products of two coordinates of each centre."""
        first, second = np.triu_indices(self.centres.shape[1])
        return np.asarray(self._points[:, first] * self._points[:, second])

    @cached_property
    def _log_weight(self) -> FloatArray:
        return np.asarray(np.log(self.weight) - log(self.weight.sum()))

    @cached_property
    def _level(self) -> FloatArray:
        return np.asarray(self._log_weight - 0.5 * np.einsum("ij,ij->i", self._points, self._points))


# --------------------------------------------------------------------------------------------- one by one


def alone(x: FloatArray, points: FloatArray, log_weight: FloatArray) -> Moments:
    """Moments at a single place (D,), with as many digits as there are wherever it is.

    All is relative to the nearest of the points: with y = x − o and e = c − o, exponents are y·e − ‖e‖²/2.
    """
    origin = points[0]
    for _ in range(2):
        e, y = points - origin, x - origin
        exponent = e @ y - 0.5 * np.einsum("ij,ij->i", e, e)
        origin = points[int(exponent.argmax())]
    exponent += log_weight
    most = float(exponent.max())
    share = np.exp(np.maximum(exponent - most, -700.0))
    total = float(share.sum())
    share /= total
    mean = share @ e
    e -= mean
    log_sum = most + log(total) - 0.5 * float(y @ y)
    return Moments(np.asarray(log_sum), mean - y, (share[:, None] * e).T @ e)


def _put(out: Moments, row: int, axes: IntArray, found: Moments) -> None:
    out.log_sum[row] = found.log_sum
    if len(out.shift):
        out.shift[row, axes] = found.shift
        out.spread[row][np.ix_(axes, axes)] = found.spread


def _in_range(Z: FloatArray) -> FloatArray:
    return np.clip(np.asarray(Z, dtype=np.float64), -_FARTHEST, _FARTHEST)
