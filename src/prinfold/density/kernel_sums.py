"""Sums of Gaussian kernels of bandwidth 1 at many places: what a density, its gradient and its Hessian are made of.

The sums are those of :mod:`prinfold.density.kernel_moments`. What is left out or put together, and what that changes:

* *Out of reach.* Centres farther than R are left out. With R² = 2 log(Σ w / (ε w_min)) they make up less than ε of any
  sum Σ w k that is no less than w_min, as it is wherever there is a centre, and less than ε R² of Σ w k ‖d‖². A place
  with a smaller sum, on the outskirts or far away, is done again: with t its distance from the nearest centre, those
  within √(t² + R²) count, and the same holds relative to its own sum. So it does everywhere.
* *Crowds.* Points of a cell that is small beside the bandwidth count by their weight, mean and second moment, to second
  order: one smooth function with the gradient and Hessian that are given. With T = Σ w ‖δ‖³ over points that are off
  the mean of their cell by δ, Taylor's remainder is at most

      |Δ Σ w k| ≤ 1.3802 T/6,    ‖Δ ∇Σ w k‖ ≤ 3 T/6,    ‖Δ ∇²Σ w k‖ ≤ 5.7833 T/6,

  since the third, fourth and fifth derivatives of k in any direction, He₃, He₄ and He₅ times a Gaussian, never exceed
  these numbers; in cells of side c no ‖δ‖ exceeds √D c. Relative to Σ w k the change grows with the distance of what
  counts, so that a place more than three bandwidths from the mean of that is done again without crowds.
* *Patches.* Where rows crowd, polynomials stand for the sums: :mod:`prinfold.density.patches` states how well.

Results for a place do not depend on the others: in balls to the last bit, by products of matrices to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.density.dense_kernel_sums import DenseSums
from prinfold.density.kernel_moments import Moments, Sums, alone, in_range
from prinfold.density.patches import patched
from prinfold.density.strips import (
    Crowds,
    Groups,
    Strips,
    compress,
    group_places,
    inward,
    make_strips,
    reach_within,
    widest_last,
)
from prinfold.numerics.cell_lists import share_within
from prinfold.rows.rows import shared_property

_SIDE = 1.0
"""Bandwidths across a strip and across a group of places. Half as wide, a tenth fewer pairs are looked at in vain, but
groups of ten thousand rows on a curve hold too few places for what is copied."""

_LEAST_CROWD = 3
"""Points that a crowd stands for at least: it costs as much as about 1.7 of them."""

_WORTH = 0.8
"""Crowds are made where they leave less to do than this."""

_OUTSKIRTS = 3.0
"""Bandwidths from the mean of what counts at a place beyond which crowds are undone."""

_FAR = 1e6
"""Bandwidths from all centres, or from their middle, from which on places go one by one."""

_FLOOR = -600.0
"""Log sums below this come from exponents at the end of their range."""

_COMPILED_FROM = 256
"""Centres from which on loading the compiler pays."""

_MANY_COLUMNS, _MOST_IN_REACH = 8, 0.25
"""Columns, and share of the centres in reach, from which on products of matrices are faster than sums in balls.

With ten thousand rows near a surface, balls take from a fifteenth of their time (one centre in a thousand in reach) to
the same (a quarter), and with eight columns or more up to twice as long when all are; with fewer columns they are
faster throughout. Counting neighbours by a k-d tree alone takes about as long as balls take in all."""

_MANY_IN_REACH = 500
"""Centres in reach from which on patches are faster than sums over them."""


class Accuracy(NamedTuple):
    """What may be left out: ``tolerance`` ε of what is out of reach, ``side`` c of the cells of crowds, ``patches``.

    ε is nil to leave out nothing, and c is None to put nothing together.
    """

    tolerance: float = 1e-6
    side: float | None = None
    patches: bool = True


ACCURACY: dict[str, Accuracy] = {
    "exact": Accuracy(0.0, patches=False),
    "truncated": Accuracy(),
    "compressed": Accuracy(side=0.25),
}
"""What is left out, by name."""


def make_sums(centres: FloatArray, weight: FloatArray, accuracy: Accuracy) -> Sums:
    """Sums over centres (m, D) with positive weights (m,), in the way that suits their number, dimension and extent."""
    centres, weight = in_range(centres), np.asarray(weight, dtype=np.float64)
    balls = BallSums(centres, weight, accuracy)
    m, columns = centres.shape
    share = share_within(centres, balls.reach)
    if m < _COMPILED_FROM or (columns >= _MANY_COLUMNS and share > _MOST_IN_REACH):
        return DenseSums(centres, weight)
    return patched(balls, centres) if accuracy.patches and share * m > _MANY_IN_REACH else balls


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

    @shared_property
    def reach(self) -> float:
        """R of the module's formulas."""
        return reach_within(self.weight, self.accuracy.tolerance) if self.accuracy.tolerance else inf

    def _sums(self, Z: FloatArray, n_moments: int) -> Moments:
        Y, D = self._inward(Z), Z.shape[1]
        n, axes = Y.shape
        out = Moments.room(n, n_moments, axes)
        wild = np.abs(Y - self._middle).max(axis=1, initial=0.0) > _FAR
        rows = np.flatnonzero(~wild)
        if self._compressed is not None:
            _, lone, crowds = self._compressed
            self._fill(Y, self._grouped(Y, rows), lone, crowds, out)
            rows = rows[~(np.square(out.shift[rows]).sum(axis=1) <= _OUTSKIRTS**2) | self._lost(out, rows)]
        self._fill(Y, self._grouped(Y, rows), *self._plain, out)
        rows = rows[self._lost(out, rows)]
        wild[rows] = self._fill_far(Y, rows, out)
        out = Moments(out.log_sum, out.shift[:, :D], out.spread[:, :D, :D])
        for i in np.flatnonzero(wild).tolist():
            out.put(i, alone(in_range(Z[i]), self.centres, self._log_weight))
        return out

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
        from prinfold.density._kernel_sums_jit import sum_balls

        groups.each_part(lambda part: sum_balls(Y, part, plain, crowds, self._axes, *out))

    def _inward(self, Z: FloatArray) -> FloatArray:
        return inward(in_range(Z), self._axes)

    @shared_property
    def _axes(self) -> IntArray:
        return widest_last(self.centres)

    @shared_property
    def _points(self) -> FloatArray:
        return self._inward(self.centres)

    @shared_property
    def _middle(self) -> FloatArray:
        return np.asarray(np.median(self._points, axis=0))

    @shared_property
    def _log_weight(self) -> FloatArray:
        return np.asarray(np.log(self.weight) - log(self.weight.sum()))

    @shared_property
    def _tree(self) -> cKDTree:
        return cKDTree(self._points)

    @shared_property
    def _plain(self) -> tuple[Strips, Strips]:
        """All centres, and no crowds."""
        none = np.zeros(0, dtype=np.int64)
        return self._strips(self._log_weight, self._points), self._strips(self._log_weight[none], self._points[none])

    @shared_property
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
        more = np.empty((len(points), 0)) if moment is None else moment
        return make_strips(log_weight, points, more, _SIDE, self._middle)
