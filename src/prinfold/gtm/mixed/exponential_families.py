"""Kinds of columns beside numbers with Gaussian noise: levels and counts, thesis 6.8.

Each kind is an exponential family with the linear predictors η of its column as natural parameters,

    ln p(t | η) = t·η − s A(η) + what does not depend on η,

t being the cell (one predictor for each level of a categorical column, of which t marks one) and s its exposure: the
size factor of a count, else 1. Where a node has the sums S = Σ r t and G = Σ r s over rows, its share of the
log-likelihood is S·η − G A(η), which is concave. Negative binomial counts are Poisson counts whose rates scatter by a
gamma variable, so that given that variable they are Poisson.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import expit, logsumexp, softmax

from prinfold._typing import FloatArray, IntArray
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.files import storable
from prinfold.files.kinds import Kinds, sequence_of
from prinfold.validation.settings import integer, one_of

_MOST_NEWTON_STEPS = 3
_MOST_HALVINGS = 30
_ARMIJO = 1e-4
"""Share of the gain promised by the slope that a step must achieve (Armijo, 1966)."""

_LEAST_GAIN = 1e-10
"""Promised gain per unit of mass below which a column has converged."""


class Family(NamedTuple):
    """An exponential family: A(η) (K,), its gradient (K, L), which is the mean, and the curvature for Newton steps."""

    log_partition: Callable[[FloatArray], FloatArray]
    mean: Callable[[FloatArray], FloatArray]
    curvature: Callable[[FloatArray], FloatArray]


def _rates(eta: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):  # an endless rate is one that no step of ours is let go to
        return np.asarray(np.exp(eta))


def _total_rate(eta: FloatArray) -> FloatArray:
    return np.asarray(_rates(eta).sum(axis=1))


def _softplus(eta: FloatArray) -> FloatArray:
    return np.asarray(np.logaddexp(0.0, eta).sum(axis=1))


def _sigmoid(eta: FloatArray) -> FloatArray:
    return np.asarray(expit(eta))


def _sigmoid_slope(eta: FloatArray) -> FloatArray:
    return np.asarray(expit(eta) * expit(-eta))


def _log_sum(eta: FloatArray) -> FloatArray:
    return np.asarray(logsumexp(eta, axis=1))


def _shares(eta: FloatArray) -> FloatArray:
    return np.asarray(softmax(eta, axis=1))


BERNOULLI = Family(_softplus, _sigmoid, _sigmoid_slope)
POISSON = Family(_total_rate, _rates, _rates)
# The Hessian of the log partition is diag(p) − ppᵀ. A gradient g over levels sums to zero, and for such a one
# diag(p) gives the same step g/p at each node: so levels can be solved for one by one.
CATEGORICAL = Family(_log_sum, _shares, _shares)


class ColumnKind(NamedTuple):
    """A kind of column: its family (None of Gaussian noise), whether its cells are levels, and whether counts."""

    family: Family | None
    levels: bool = False
    counts: bool = False


KINDS: dict[str, ColumnKind] = {
    "gaussian": ColumnKind(None),
    "bernoulli": ColumnKind(BERNOULLI, levels=True),
    "categorical": ColumnKind(CATEGORICAL, levels=True),
    "poisson": ColumnKind(POISSON, counts=True),
    "negative_binomial": ColumnKind(POISSON, counts=True),
}
SIZE_FACTOR = "size_factor"
"""A column that is not modelled, but says how much was looked at for the counts of its row."""


@storable
@dataclass(frozen=True)
class Layout:
    """The predictors of each column: its kind, in ``kinds``, and how many predictors it has, in ``widths``."""

    _kinds: ClassVar[Kinds] = {
        "kinds": sequence_of(one_of((*KINDS, SIZE_FACTOR)), "D"),
        "widths": sequence_of(integer(0), "D"),
    }

    kinds: tuple[str, ...]
    widths: tuple[int, ...]

    @cached_property
    def source(self) -> IntArray:
        """(D',) the column of each predictor."""
        return np.repeat(np.arange(len(self.kinds)), self.widths)

    @cached_property
    def starts(self) -> IntArray:
        """(D,) the first predictor of each column."""
        return np.concatenate([[0], np.cumsum(self.widths)[:-1]]).astype(np.int64)

    @property
    def n_predictors(self) -> int:
        return int(sum(self.widths))

    @cached_property
    def factor_column(self) -> int | None:
        """The column of size factors, if there is one."""
        return self.kinds.index(SIZE_FACTOR) if SIZE_FACTOR in self.kinds else None

    def columns(self, *kinds: str) -> IntArray:
        """Columns of some kinds."""
        return np.flatnonzero([kind in kinds for kind in self.kinds])

    def predictors(self, *kinds: str) -> IntArray:
        """Predictors of some kinds."""
        return np.flatnonzero([self.kinds[column] in kinds for column in self.source])

    def part(self, column: int) -> slice:
        """The predictors of a column."""
        return slice(int(self.starts[column]), int(self.starts[column]) + self.widths[column])

    @cached_property
    def counted(self) -> IntArray:
        """Columns of counts."""
        return self.columns(*(name for name, kind in KINDS.items() if kind.counts))

    @cached_property
    def with_family(self) -> list[tuple[int, slice, Family]]:
        """Columns of which an exponential family is fitted, with their predictors."""
        return [
            (j, self.part(j), family)
            for j, kind in enumerate(self.kinds)
            if kind in KINDS and (family := KINDS[kind].family) is not None
        ]


def log_likelihood(family: Family, mass: FloatArray, moment: FloatArray, eta: FloatArray) -> float:
    """Σ_k S_k·η_k − G_k A(η_k), of masses (K,) and moments (K, L)."""
    with np.errstate(invalid="ignore"):
        return float(np.vdot(moment, eta) - mass @ family.log_partition(eta))


def climb(
    surface: BasisMap, family: Family, mass: FloatArray, moment: FloatArray, strength: float, weights: FloatArray
) -> FloatArray:
    """Better weights (M, L) of a column for Σ_k S_k·η_k − G_k A(η_k) − ½ λ ‖W‖², with η = Φ W.

    A few Newton steps, each of which is one weighted least-squares problem for each predictor and is halved until it
    is uphill: a generalised M-step. Levels have only differences; what they have in common is taken off, which the
    likelihood does not see and the penalty welcomes.
    """
    Phi = surface.node_features

    def value(at: FloatArray) -> float:
        return log_likelihood(family, mass, moment, Phi @ at) - 0.5 * strength * surface.roughness(at)

    if family == CATEGORICAL:
        weights = weights - weights.mean(axis=1, keepdims=True)
    present = value(weights)
    for _ in range(_MOST_NEWTON_STEPS):
        eta = Phi @ weights
        gap = moment - mass[:, None] * family.mean(eta)
        bend = mass[:, None] * family.curvature(eta)
        step = _newton(surface, bend, bend * eta + gap, strength, weights) - weights
        penalty = strength * surface.penalty_mask[:, None] * weights
        promise = float(np.vdot(Phi.T @ gap - penalty, step))
        if not promise > _LEAST_GAIN * mass.sum():
            break
        factor = _step_share(value, weights, step, present, promise)
        if factor == 0.0:
            break
        weights = weights + factor * step
        present = value(weights)
    return weights


def _newton(
    surface: BasisMap, bend: FloatArray, target: FloatArray, strength: float, weights: FloatArray
) -> FloatArray:
    """Weighted least squares for each predictor."""
    each = (
        surface.solve(bend[:, [j]].ravel(), target[:, [j]], strength, weights[:, [j]]) for j in range(weights.shape[1])
    )
    return np.hstack(list(each))


def _step_share(
    value: Callable[[FloatArray], float], weights: FloatArray, step: FloatArray, present: float, promise: float
) -> float:
    """How much of a step to take, 0 where none of it is uphill."""
    factor = 1.0
    for _ in range(_MOST_HALVINGS):
        there = value(weights + factor * step)
        if np.isfinite(there) and there >= present + _ARMIJO * factor * promise:
            return factor
        factor *= 0.5
    return 0.0
