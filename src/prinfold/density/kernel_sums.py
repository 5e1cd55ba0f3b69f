"""Sums of Gaussian kernels of bandwidth 1 at many points, from which a density, its gradient and its Hessian are made.

The sums are those of :mod:`prinfold.density.kernel_moments`. Three approximations save time; their bounds are ours:

* *Out of reach.* Centres farther than R are left out. With R² = 2 log(Σ w / (ε w_min)) they make up less than ε of any
  sum Σ w k that is no less than w_min, as it is wherever there is a centre, and less than ε R² of Σ w k ‖d‖². A place
  with a smaller sum, on the outskirts or far away, is done again: with t its distance from the nearest centre, those
  within √(t² + R²) count, and the same holds relative to its own sum. So it does everywhere.
* *Merged points.* Points of a cell that is small beside the bandwidth count by their weight, mean and second moment, to
  second order: one smooth function with the gradient and Hessian that are given. With T = Σ w ‖δ‖³ over points that are
  off the mean of their cell by δ, Taylor's remainder is at most

      |Δ Σ w k| ≤ 1.3802 T/6,    ‖Δ ∇Σ w k‖ ≤ 3 T/6,    ‖Δ ∇²Σ w k‖ ≤ 5.7833 T/6,

  since the third, fourth and fifth derivatives of k in any direction, He₃, He₄ and He₅ times a Gaussian, never exceed
  these numbers; in cells of side c no ‖δ‖ exceeds √D c. Relative to Σ w k the change grows with the distance of what
  counts, so that a place more than three bandwidths from the mean of that is done again without merging points.
* *Patches.* Where rows are dense, polynomials stand for the sums: :mod:`prinfold.density.patches` states how well.

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
from prinfold.density.kernel_moments import KernelMoments, KernelSums, clip_coordinates, moments_at_place
from prinfold.density.patches import make_patched_sums
from prinfold.density.strips import (
    MergedPoints,
    QueryCells,
    Strips,
    compress,
    make_query_cells,
    make_strips,
    reach_within,
    reorder_axes,
    strip_axes,
)
from prinfold.numerics.cell_lists import share_within
from prinfold.rows.rows import shared_property

_SIDE_BANDWIDTHS = 1.0
"""Bandwidths across a strip and across a group of places. Half as wide, a tenth fewer pairs are looked at in vain, but
groups of ten thousand rows on a curve hold too few places for what is copied."""

_LEAST_MERGED_POINTS = 3
"""Fewest points of a cell that are merged: the result costs as much as about 1.7 of them."""

_MOST_COMPRESSED_SHARE = 0.8
"""Points are merged where that leaves less than this share of the work."""

_OUTSKIRTS_BANDWIDTHS = 3.0
"""Bandwidths from the mean of what counts at a place beyond which merging is undone."""

_FAR_BANDWIDTHS = 1e6
"""Bandwidths from all centres, or from their middle, from which on places are summed one by one."""

_LEAST_LOG_SUM = -600.0
"""Log sums below this come from exponents at the end of their range."""

_COMPILED_FROM = 256
"""Centres from which on loading the compiler pays."""

_DENSE_COLUMNS, _DENSE_SHARE = 8, 0.25
"""Columns, and share of the centres in reach, from which on products of matrices are faster than sums in balls.

With ten thousand rows near a surface, balls take from a fifteenth of their time (one centre in a thousand in reach) to
the same (a quarter), and with eight columns or more up to twice as long when all are; with fewer columns they are
faster throughout. Counting neighbours by a k-d tree alone takes about as long as balls take in all."""

_PATCHES_FROM_CENTERS = 500
"""Centres in reach from which on patches are faster than sums over them."""


class Accuracy(NamedTuple):
    """Approximations allowed: ``tolerance`` ε of what is out of reach, ``side`` c of the cells to merge, ``patches``.

    ε is zero to leave out nothing, and c is None to merge nothing.
    """

    tolerance: float = 1e-6
    side: float | None = None
    patches: bool = True


ACCURACY: dict[str, Accuracy] = {
    "exact": Accuracy(0.0, patches=False),
    "truncated": Accuracy(),
    "compressed": Accuracy(side=0.25),
}
"""Approximations by name."""


def make_sums(centers: FloatArray, weight: FloatArray, accuracy: Accuracy) -> KernelSums:
    """Sums over centres (m, D) with positive weights (m,), in the way that suits their number, dimension and extent."""
    centers, weight = clip_coordinates(centers), np.asarray(weight, dtype=np.float64)
    balls = BallSums(centers, weight, accuracy)
    m, columns = centers.shape
    share = share_within(centers, balls.reach)
    if m < _COMPILED_FROM or (columns >= _DENSE_COLUMNS and share > _DENSE_SHARE):
        return DenseSums(centers, weight)
    return make_patched_sums(balls, centers) if accuracy.patches and share * m > _PATCHES_FROM_CENTERS else balls


# ------------------------------------------------------------------------------------------------ in balls


@dataclass(frozen=True, eq=False)
class BallSums:
    """Sums over the centres in reach, found in strips, some of them merged."""

    centers: FloatArray
    weight: FloatArray
    accuracy: Accuracy

    def log_sum(self, Z: FloatArray) -> FloatArray:
        # Whether merging is undone depends on the shift.
        return self._sums(Z, len(Z) if self._compressed is not None else 0).log_sum

    def moments(self, Z: FloatArray) -> KernelMoments:
        return self._sums(Z, len(Z))

    @shared_property
    def reach(self) -> float:
        """R of the module's formulas."""
        return reach_within(self.weight, self.accuracy.tolerance) if self.accuracy.tolerance else inf

    def _sums(self, Z: FloatArray, n_moments: int) -> KernelMoments:
        Y, D = self._reorder(Z), Z.shape[1]
        n, axes = Y.shape
        out = KernelMoments.empty(n, n_moments, axes)
        wild = np.abs(Y - self._middle).max(axis=1, initial=0.0) > _FAR_BANDWIDTHS
        rows = np.flatnonzero(~wild)
        if self._compressed is not None:
            _, lone, merged = self._compressed
            self._fill(Y, self._group(Y, rows), lone, merged, out)
            rows = rows[
                ~(np.square(out.shift[rows]).sum(axis=1) <= _OUTSKIRTS_BANDWIDTHS**2) | self._too_small(out, rows)
            ]
        self._fill(Y, self._group(Y, rows), *self._plain, out)
        rows = rows[self._too_small(out, rows)]
        wild[rows] = self._fill_far(Y, rows, out)
        out = KernelMoments(out.log_sum, out.shift[:, :D], out.spread[:, :D, :D])
        for i in np.flatnonzero(wild).tolist():
            out.put(i, moments_at_place(clip_coordinates(Z[i]), self.centers, self._log_weight))
        return out

    def _too_small(self, out: KernelMoments, rows: IntArray) -> BoolArray:
        """Whether the sum of each row is too small for the bounds to hold relative to it."""
        least = _LEAST_LOG_SUM if self.reach == inf else max(_LEAST_LOG_SUM, float(self._log_weight.min()) - 1e-9)
        return np.asarray(~(out.log_sum[rows] >= least))

    def _fill_far(self, Y: FloatArray, rows: IntArray, out: KernelMoments) -> BoolArray:
        """Sum again at places far from all centres, relative to the nearest; returns which are too far for that."""
        if not len(rows):
            return np.zeros(0, dtype=bool)
        distance, nearest = map(np.asarray, self._tree.query(Y[rows]))
        wild = distance > _FAR_BANDWIDTHS
        rows, square = rows[~wild], np.square(distance[~wild])
        # What is nearest must not be rounded out of its own ball.
        square = square * (1.0 + 1e-9) + self.reach**2
        cuts, origin = np.arange(len(rows) + 1), self._points[nearest[~wild]]
        groups = QueryCells(rows, cuts, origin, Y[rows], np.zeros(len(rows)), square)
        self._fill(Y, groups, *self._plain, out)
        return np.asarray(wild)

    def _group(self, Y: FloatArray, rows: IntArray) -> QueryCells:
        return make_query_cells(Y, rows, _SIDE_BANDWIDTHS, self.reach**2, self._middle)

    def _fill(self, Y: FloatArray, groups: QueryCells, plain: Strips, merged: Strips, out: KernelMoments) -> None:
        from prinfold.density._kernel_sums_jit import sum_balls

        groups.for_each_part(lambda part: sum_balls(Y, part, plain, merged, self._axes, *out))

    def _reorder(self, Z: FloatArray) -> FloatArray:
        return reorder_axes(clip_coordinates(Z), self._axes)

    @shared_property
    def _axes(self) -> IntArray:
        return strip_axes(self.centers)

    @shared_property
    def _points(self) -> FloatArray:
        return self._reorder(self.centers)

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
        """All centres, and no merged ones."""
        none = np.zeros(0, dtype=np.int64)
        return self._strips(self._log_weight, self._points), self._strips(self._log_weight[none], self._points[none])

    @shared_property
    def _compressed(self) -> tuple[MergedPoints, Strips, Strips] | None:
        """Merged centres, and strips of lone and of merged ones; None where merging is not wanted or does not pay."""
        if self.accuracy.side is None or self._points.shape[1] > 3:
            return None
        made = compress(self._points, self.weight, self.accuracy.side, _LEAST_MERGED_POINTS)
        if not made.lone.sum() + 1.7 * len(made.weight) < _MOST_COMPRESSED_SHARE * len(self.weight):
            return None
        log_weight = np.log(made.weight) - log(self.weight.sum())
        lone = self._strips(self._log_weight[made.lone], self._points[made.lone])
        return made, lone, self._strips(log_weight, made.mean, made.moment)

    def _strips(self, log_weight: FloatArray, points: FloatArray, moment: FloatArray | None = None) -> Strips:
        more = np.empty((len(points), 0)) if moment is None else moment
        return make_strips(log_weight, points, more, _SIDE_BANDWIDTHS, self._middle)
