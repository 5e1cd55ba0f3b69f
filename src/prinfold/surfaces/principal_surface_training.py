"""Principal surfaces of Hastie and Stuetzle: every column smoothed as a function of where rows project to.

The smoother is a thin plate on a net of nodes: a piecewise cubic surface whose squared second differences are
penalised. The penalty is chosen by generalised cross-validation at every step (Craven and Wahba 1979). The factor on
degrees of freedom and the least penalty are ours.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from prinfold._typing import FloatArray
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.surfaces.projected_regression import (
    Alternation,
    RegressionSums,
    SurfaceRows,
    SurfaceState,
    variance_share,
)

DF_FACTOR = 2.0
"""Factor γ of degrees of freedom in cross-validation: coordinates found by projection on the surface that is evaluated
hide a part of the noise, and with γ = 1 a surface would wrinkle."""

REACH = 0.1
"""Half widths of the latent space by which the surface is followed beyond its edges while rows are projected."""

PENALTIES = np.geomspace(1e-6, 1e2, 25)
"""Penalties that are compared."""

FINEST_DEVIATIONS = 1.85
"""Scale of the finest bends, in deviations of the noise across the surface. At 1.3, where curves have
it, surfaces come no nearer to the true one."""

_ROUNDING_SHARE = 1e-12
"""Share of the variance below which an error is rounding."""


def alternation(surface: BasisMap, penalty: float | None) -> Alternation:
    """Smoothing with a penalty that is given, or chosen at every step and then never less than before."""
    choose = partial(choose_penalty, surface) if penalty is None else lambda sums, last: penalty
    return Alternation(surface, choose, score, REACH)


def choose_penalty(surface: BasisMap, sums: RegressionSums, last: float) -> float:
    """The penalty of cross-validation, or the last one where that is larger, so that steps cannot go round.

    For rows that were projected it is no less than :func:`least_penalty`; places to begin with, where ``last`` is zero,
    hide no noise.
    """
    best = cross_validation_penalty(sums)
    # By what cross-validation leaves: a surface that flattens must not take its own bias for noise and flatten further.
    return best if last == 0 else max(best, last, least_penalty(surface, sums, best))


def least_penalty(surface: BasisMap, sums: RegressionSums, penalty: float) -> float:
    """Least λ = (c σ/s)⁴ / K: below it the surface would bend on a scale finer than c deviations σ of the noise.

    On K nodes, steps of length s apart, λ‖ΔY‖² is as much as (λ K s⁴) ∫|Y''|² beside the mean squared error, and the
    fourth root of that factor is how far a smoother looks. σ² is the error of each direction across the surface.
    """
    weights = sums.weights(penalty)
    across, step = weights.shape[1] - surface.latent.dimension, _step_length(surface, weights)
    if across < 1 or step == 0:
        return 0.0
    noise = np.sqrt(sums.error(weights) / across)
    return float((FINEST_DEVIATIONS * noise / step) ** 4 / surface.latent.n_nodes)


def _step_length(surface: BasisMap, weights: FloatArray) -> float:
    """Distance between the images of neighbouring nodes: their median along each axis, of which the geometric mean."""
    shape = [axis.n_nodes for axis in surface.latent.axes]
    net = surface.nodes(weights).reshape(*shape, -1)
    along = [np.linalg.norm(np.diff(net, axis=axis), axis=-1) for axis, n in enumerate(shape) if n > 1]
    return float(np.prod([np.median(lengths) for lengths in along]) ** (1.0 / len(along))) if along else 0.0


def cross_validation_penalty(sums: RegressionSums) -> float:
    """λ of the lowest score E / (1 − γ df/n)², E the mean squared error and γ ``DF_FACTOR``; of equals the largest.

    Where every λ has more degrees of freedom than the rows can pay for, all scores are infinite.
    """
    scores = [score(sums, float(penalty)) for penalty in PENALTIES]
    return float(PENALTIES[len(scores) - 1 - int(np.argmin(scores[::-1]))])


def score(sums: RegressionSums, penalty: float) -> float:
    """Generalised cross-validation score of one penalty."""
    left = 1.0 - DF_FACTOR * sums.freedom(penalty) / sums.size
    error = max(sums.error(sums.weights(penalty)), _ROUNDING_SHARE * sums.variance)
    return error / left**2 if left > 0 else np.inf


def measure(sample: SurfaceRows, state: SurfaceState) -> dict[str, float]:
    """Minus the share of the variance that is left, mean squared error and penalty."""
    return {"objective": -variance_share(sample, state.error), "error": state.error, "penalty": state.penalty}
