"""The objective that unsupervised kernel regression and kernel map manifolds share.

    R(X) = (1/W) Σ_i w_i ‖y_i − ŷ_i‖² + (1/W) Σ_i w_i φ(m_i),    ŷ_i = Σ_j w_j k_ij y_j / Σ_j w_j k_ij,

with k_ij = k(‖x_i − x_j‖²) of latent points in bandwidths and the mass m_i = Σ_{j≠i} w_j k_ij of a row's neighbours;
leaving one out, j = i is not among those that predict row i (Meinicke et al. (8) and (10)).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from math import inf
from typing import NamedTuple

import numpy as np

from prinfold._arrays import as_rows, work_through
from prinfold._typing import BoolArray, FloatArray
from prinfold.kernels.cells import cut_by_count, share_within, sort_into_cells
from prinfold.kernels.kernel_regression import DensePass, Job, MassTerm, NearPass, Outcome
from prinfold.kernels.profiles import Profile
from prinfold.kernels.targets import DataTarget, GramTarget, Target

__all__ = ["DataTarget", "Evaluation", "GramTarget", "KernelRegression", "MassTerm", "Target", "make_target"]

_BLOCK_ENTRIES = 2**18
"""Pairs of a block, twice 2 MB of numbers: with blocks of twice that a pass over 4000 rows took a fifth longer. With
fewer than 32 rows products become slow, so that blocks of more than 8000 rows grow with them."""

_SPARSE_FROM = 500
"""Rows from which on looking for pairs within reach pays for loading the compiler within some hundred evaluations."""

_SPARSE_SHARE = 0.17
"""Share of pairs within reach above which products over all pairs are faster: between 0.15 with inner products
or few columns and 0.25 with 256 columns."""

_PART_PAIRS = 2**16
"""Pairs that a thread looks at between two calls, most of which are out of reach."""

_GRAM_ROWS = 2**13
"""Rows up to which inner products, half a gigabyte then, are held whatever the size of the table."""

_GRAM_COLUMNS = 8
"""Columns for each neighbour from which on inner products cost less: there every pair of a row's neighbours costs as
much as so many columns do, being gathered from all over a matrix."""


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

    ``weight`` (n,) is positive. A Gaussian that is nowhere nil predicts even a row far from all others, by the
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

    @cached_property
    def _loaded(self) -> FloatArray:
        return self.target.load(self.weight)

    def _is_sparse(self, X: FloatArray) -> bool:
        """Whether so few pairs are within reach that looking for them pays."""
        reach = self.profile.reach
        return reach < inf and len(X) >= _SPARSE_FROM and share_within(X, reach) < _SPARSE_SHARE

    def _evaluate(self, X: FloatArray, term: MassTerm | None, wanted: bool) -> Evaluation:
        X = np.ascontiguousarray(X, dtype=np.float64)
        X = X - np.median(X, axis=0)  # which one row far away does not carry off, as it would the mean
        outcome = Outcome.of(len(X))
        job = Job(X, self.target, self._loaded, self.weight, self.profile, self.leave_one_out, term, wanted, outcome)
        gradient = _near(job) if self._is_sparse(X) else _dense(job)
        value = float(self.weight @ (outcome.error + outcome.penalty)) / job.total_weight
        return Evaluation(value, gradient if wanted else None, outcome.error, outcome.mass, outcome.total <= 0)


def _near(job: Job) -> FloatArray:
    """Over pairs within reach."""
    cells = sort_into_cells(job.X, job.profile.reach)
    parts, most = cut_by_count(cells.counts, _PART_PAIRS)
    workers = work_through(lambda: NearPass(job, cells, most), parts)
    return reduce(np.add, (worker.gradient() for worker in workers))


def _dense(job: Job) -> FloatArray:
    """Over all pairs."""
    n = len(job.X)
    block_rows = int(np.clip(_BLOCK_ENTRIES // n, 32, 512))
    parts = as_rows(job.X, block_rows=block_rows).slices
    workers = work_through(lambda: DensePass(job, min(n, block_rows)), parts, n * n)
    return reduce(np.add, (worker.gradient() for worker in workers))


def make_target(Y: FloatArray, neighbours: float | None = None) -> Target:
    """The form of a table (n, D), centred by the caller, that costs less: itself or its inner products.

    Over all pairs the latter cost n against 2 D columns. Where a compact kernel will have few rows within reach, and
    ``neighbours`` says about how many, they cost a number of neighbours squared for each row, and pay from some D
    that does not depend on n. They are taken only where n ≤ 8192, or where they are no larger than the table.
    """
    Y = np.asarray(Y, dtype=np.float64)
    n, D = Y.shape
    enough = n / 2 if neighbours is None else min(n / 2, _GRAM_COLUMNS * neighbours)
    return GramTarget(Y @ Y.T) if enough < D and n <= max(_GRAM_ROWS, D) else DataTarget(Y)
