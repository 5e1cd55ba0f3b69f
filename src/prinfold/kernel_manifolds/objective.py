"""The objective that unsupervised kernel regression and kernel map manifolds share.

    R(X) = (1/W) Σ_i w_i ‖y_i − ŷ_i‖² + (1/W) Σ_i w_i φ(m_i),    ŷ_i = Σ_j w_j k_ij y_j / Σ_j w_j k_ij,

with k_ij = k(‖x_i − x_j‖²) of latent points in bandwidths and the mass m_i = Σ_{j≠i} w_j k_ij of a row's neighbours;
leaving one out, j = i is not among those that predict row i (Meinicke et al. 2005, (8) and (10)).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np

from prinfold._typing import BoolArray, FloatArray
from prinfold.kernel_manifolds.objective_sums import DensePass, MassTerm, NearPass, RegressionPass, RowSums
from prinfold.kernel_manifolds.regression_targets import DataTarget, GramTarget, Target
from prinfold.numerics.cell_lists import CellList, cut_by_count, sort_into_cells
from prinfold.numerics.radial_kernels import Profile
from prinfold.rows.rows import as_rows, sum_through

__all__ = ["DataTarget", "Evaluation", "GramTarget", "KernelRegression", "MassTerm", "Target", "make_target"]

_BLOCK_ENTRIES = 2**18
"""Pairs of a block, twice 2 MB of numbers: with blocks of twice that a pass over 4000 rows took a fifth longer. With
fewer than 32 rows products become slow, so that blocks of more than 8000 rows grow with them."""

_COMPILED_FROM = 500
"""Rows from which on compiled code, and looking for pairs within reach, pays for loading the compiler within some
hundred evaluations."""

_SPARSE_SHARE = 0.17
"""Share of pairs within reach above which products over all pairs are faster: between 0.15 with inner products
or few columns and 0.25 with 256 columns."""

_PART_PAIRS = 2**16
"""Pairs that a thread looks at between two calls, most of which are out of reach."""

_GRAM_ROWS = 2**13
"""Rows up to which inner products, half a gigabyte then, are held whatever the size of the table."""

_GRAM_COLUMNS = {1000: 3, 2000: 8, _GRAM_ROWS: 16}
"""Columns for each neighbour from which on inner products cost less, up to so many rows: there every pair of a row's
neighbours costs as much as so many columns do, the more where the matrix it is gathered from fits into no cache."""


class Evaluation(NamedTuple):
    """The objective at some latent points."""

    value: float
    gradient: FloatArray | None
    """(n, Q), where it was asked for."""
    error: FloatArray
    """(n,) ‖y_i − ŷ_i‖²."""
    mass: FloatArray
    """(n,) Σ_{j≠i} w_j k_ij; of a row very far from all others it may come out as 0."""
    empty: BoolArray
    """(n,) rows without neighbours: predicted by the mean, which is the origin, and drawn nowhere by their error."""


@dataclass(frozen=True)
class KernelRegression:
    """Predict each row of a target from its neighbours among latent points.

    ``weight`` (n,) is positive. A Gaussian, which is nowhere zero, predicts even a row far from all others, by the
    nearest of them.
    """

    target: Target
    weight: FloatArray
    profile: Profile
    leave_one_out: bool = True

    def value(self, X: FloatArray, mass_term: MassTerm | None = None) -> Evaluation:
        """R(X), without its gradient, for a fraction of the time."""
        return self._evaluate(X, mass_term, wanted=False)

    def gradient(self, X: FloatArray, mass_term: MassTerm | None = None) -> Evaluation:
        """R(X) and ∂R/∂X."""
        return self._evaluate(X, mass_term, wanted=True)

    def _evaluate(self, X: FloatArray, term: MassTerm | None, wanted: bool) -> Evaluation:
        X, outcome = np.ascontiguousarray(X, dtype=np.float64), RowSums.of(len(X))
        cells, share = self._cells(X)
        target = self.target if cells is None else self._near_target(share * len(X))
        compiled = len(X) >= _COMPILED_FROM
        job = RegressionPass(X, target, self.weight, self.profile, self.leave_one_out, term, wanted, compiled, outcome)
        gradient = _dense_gradient(job, self._loaded, self._buffers) if cells is None else _near_gradient(job, cells)
        value = float(self.weight @ (outcome.error + outcome.penalty)) / job.total_weight
        return Evaluation(value, gradient if wanted else None, outcome.error, outcome.mass, outcome.total <= 0)

    def _cells(self, X: FloatArray) -> tuple[CellList | None, float]:
        """Latent points in cells, where looking for pairs within reach pays, and the share of pairs that are."""
        reach = self.profile.reach
        if reach == inf or len(X) < _COMPILED_FROM or not np.isfinite(X).all():  # the rest is not to look sound
            return None, 1.0
        cells = sort_into_cells(X, reach)
        share = cells.share
        return (cells if share < _SPARSE_SHARE else None), share

    def _near_target(self, neighbors: float) -> Target:
        """The target as rows or inner products, whichever costs less with so many rows within reach of each."""
        target = self.target
        worth = (columns * neighbors for rows, columns in _GRAM_COLUMNS.items() if target.n_rows <= rows)
        return target.gram if next(worth, inf) < target.n_columns else target

    @cached_property
    def _loaded(self) -> FloatArray:
        """The target's table of summands, which kernel values are multiplied with."""
        return self.target.load(self.weight)

    @cached_property
    def _buffers(self) -> list[FloatArray]:
        """Buffers kept between evaluations: new ones would have to be paged in every time."""
        return []


def _near_gradient(job: RegressionPass, cells: CellList) -> FloatArray:
    """(n, Q) ∂R/∂X over pairs within reach; the row sums of ``job`` are filled in."""
    parts, most = cut_by_count(cells.counts, _PART_PAIRS)
    sizes = [int(cells.counts[part].sum()) for part in parts]
    return sum_through(lambda: NearPass(job, cells, most), parts, sizes, len(job.X))


def _dense_gradient(job: RegressionPass, loaded: FloatArray, buffers: list[FloatArray]) -> FloatArray:
    """(n, Q) ∂R/∂X over all pairs; the row sums of ``job`` are filled in."""
    n = len(job.X)
    # The median is what one row far away does not carry off, as it would the mean.
    job = replace(job, X=job.X - np.median(job.X, axis=0))
    block_rows = int(np.clip(_BLOCK_ENTRIES // n, 32, 512))
    shape = 2, min(n, block_rows), n

    def make() -> DensePass:
        try:
            room = buffers.pop()
        except IndexError:
            room = np.empty(shape)
        in_use.append(room if room.shape == shape else np.empty(shape))
        return DensePass(job, loaded, in_use[-1])

    parts, in_use = as_rows(job.X, block_rows=block_rows).slices, list[FloatArray]()
    sums = sum_through(make, parts, [(part.stop - part.start) * n for part in parts])
    buffers.extend(in_use)
    return np.asarray(2.0 * (job.X * sums[:, -1:] - sums[:, :-1]))


def make_target(Y: FloatArray) -> Target:
    """A centred table (n, D) as rows or as inner products, whichever costs less over all pairs.

    Inner products cost n against 2 D columns. They are taken only where they fit in memory.
    """
    Y = np.asarray(Y, dtype=np.float64)
    n, D = Y.shape
    return GramTarget(Y @ Y.T) if n < 2 * D and _gram_fits_memory(Y) else DataTarget(Y)


def _gram_fits_memory(Y: FloatArray) -> bool:
    """Whether the inner products of rows take bounded memory, or no more than the rows themselves."""
    n, D = Y.shape
    return bool(n <= max(_GRAM_ROWS, D))
