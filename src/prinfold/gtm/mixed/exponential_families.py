"""Exponential families of levels and counts, and fits of their predictors (thesis 6.8).

Each column of levels or counts has an exponential family with its linear predictors η as natural parameters,

    ln p(t | η) = t·η − s A(η) + what does not depend on η,

t being the cell (one predictor for each level of a categorical column, of which t marks one) and s its exposure: the
size factor of a count, else 1. Where a node has the sums S = Σ r t and G = Σ r s over rows, its share of the
log-likelihood is S·η − G A(η), which is concave. Negative binomial counts are Poisson counts whose rates scatter by a
gamma variable, so that given that variable they are Poisson.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logsumexp, softmax

from prinfold._typing import FloatArray
from prinfold.basis_maps.basis_map import BasisMap

_MOST_NEWTON_STEPS = 3
_MOST_HALVINGS = 30
_ARMIJO = 1e-4
"""Share of the gain promised by the slope that a step must achieve (Armijo, 1966)."""

_LEAST_GAIN = 1e-10
"""Promised gain per unit of mass below which a column has converged."""


_LEAST_SHARE = 0.02
"""Shares of levels that a start may give; a rate may be as small a part of its column's mean."""


class Family(NamedTuple):
    """An exponential family with predictors η (K, L).

    ``log_partition`` is A(η) (K,), ``mean`` its gradient (K, L), and ``curvature`` that of Newton steps.
    ``mean_change`` is the change of means (K, L, 1) with that of their predictors (K, L, Q); ``link`` gives the
    predictors of shares or of square roots of rates (K, L), those too small beside the average of all rows (L,) being
    taken for the nearest that is not. Of ``exclusive`` predictors one cell of a row is 1 and the others are 0.
    """

    log_partition: Callable[[FloatArray], FloatArray]
    mean: Callable[[FloatArray], FloatArray]
    curvature: Callable[[FloatArray], FloatArray]
    mean_change: Callable[[FloatArray, FloatArray], FloatArray]
    link: Callable[[FloatArray, FloatArray], FloatArray]
    exclusive: bool = False


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


def _rate_change(rate: FloatArray, change: FloatArray) -> FloatArray:
    return change * rate


def _share_change(share: FloatArray, change: FloatArray) -> FloatArray:
    return change * (1.0 - share) * share


def _shares_change(shares: FloatArray, change: FloatArray) -> FloatArray:
    found: FloatArray = change - (shares * change).sum(axis=1, keepdims=True)
    return found * shares


def _log_rates(roots: FloatArray, average: FloatArray) -> FloatArray:
    return np.asarray(np.log(np.maximum(np.square(np.maximum(roots, 0.0)), _LEAST_SHARE * average)))


def _log_odds(share: FloatArray, average: FloatArray) -> FloatArray:
    share = np.clip(share, _LEAST_SHARE, 1.0 - _LEAST_SHARE)
    return np.asarray(np.log(share / (1.0 - share)))


def _log_shares(shares: FloatArray, average: FloatArray) -> FloatArray:
    found = np.log(np.maximum(shares, _LEAST_SHARE * average))
    return np.asarray(found - found.mean(axis=1, keepdims=True))


BERNOULLI = Family(_softplus, _sigmoid, _sigmoid_slope, _share_change, _log_odds)
POISSON = Family(_total_rate, _rates, _rates, _rate_change, _log_rates)
# The Hessian of the log partition is diag(p) − ppᵀ. A gradient g over levels sums to zero, and for such a one
# diag(p) gives the same step g/p at each node: so levels can be solved for one by one.
CATEGORICAL = Family(_log_sum, _shares, _shares, _shares_change, _log_shares, exclusive=True)


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

    if family.exclusive:
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
    """Share of a step to take, 0 where none of it is uphill."""
    factor = 1.0
    for _ in range(_MOST_HALVINGS):
        there = value(weights + factor * step)
        if np.isfinite(there) and there >= present + _ARMIJO * factor * promise:
            return factor
        factor *= 0.5
    return 0.0
