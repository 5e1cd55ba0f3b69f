"""The objective that unsupervised kernel regression and kernel map manifolds share.

    R(X) = (1/W) Σ_i w_i ‖y_i − ŷ_i‖² + (1/W) Σ_i w_i φ(m_i),    ŷ_i = Σ_j w_j k_ij y_j / Σ_j w_j k_ij,

with k_ij = k(‖x_i − x_j‖²) of latent points in bandwidths and the mass m_i = Σ_{j≠i} w_j k_ij of a row's neighbours;
leaving one out, j = i is not among those that predict row i (Meinicke et al. (8) and (10)).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from typing import NamedTuple

import numpy as np

from prinfold._arrays import as_rows, work_through
from prinfold._typing import BoolArray, FloatArray
from prinfold.kernels.kernel_regression import DensePass, Job, MassTerm, Outcome
from prinfold.kernels.profiles import Profile
from prinfold.kernels.targets import DataTarget, GramTarget, Target

__all__ = ["DataTarget", "Evaluation", "GramTarget", "KernelRegression", "MassTerm", "Target", "make_target"]

_BLOCK_ENTRIES = 2**18
"""Pairs of a block, twice 2 MB of numbers: with blocks of twice that a pass over 4000 rows took a fifth longer. With
fewer than 32 rows products become slow, so that blocks of more than 8000 rows grow with them."""


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

    def _evaluate(self, X: FloatArray, term: MassTerm | None, wanted: bool) -> Evaluation:
        X = np.ascontiguousarray(X, dtype=np.float64)
        outcome = Outcome.of(len(X))
        job = Job(X, self.target, self._loaded, self.weight, self.profile, self.leave_one_out, term, wanted, outcome)
        gradient = _dense(job)
        value = float(self.weight @ (outcome.error + outcome.penalty)) / job.total_weight
        return Evaluation(value, gradient if wanted else None, outcome.error, outcome.mass, outcome.total <= 0)


def _dense(job: Job) -> FloatArray:
    """Over all pairs."""
    n = len(job.X)
    block_rows = int(np.clip(_BLOCK_ENTRIES // n, 32, 512))
    parts = as_rows(job.X, block_rows=block_rows).slices
    workers = work_through(lambda: DensePass(job, min(n, block_rows)), parts, n * n)
    return reduce(np.add, (worker.gradient() for worker in workers))


def make_target(Y: FloatArray) -> Target:
    """The form of a table (n, D) that costs less: inner products where 2 D > n.

    Those take n² numbers, which is then at most twice what the table takes.
    """
    Y = np.asarray(Y, dtype=np.float64)
    n, D = Y.shape
    return GramTarget(Y @ Y.T) if n < 2 * D else DataTarget(Y)
