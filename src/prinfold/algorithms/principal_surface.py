"""Principal surfaces of Hastie and Stuetzle: every column smoothed as a function of where rows project to.

The smoother is a thin plate on a net of nodes: a piecewise cubic surface whose squared second differences are
penalised. How much is chosen by generalised cross-validation at every step.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from prinfold.algorithms.maps import BasisMap
from prinfold.algorithms.projected_regression import Alternation, Sample, State, Sums, share_left

CAUTION = 2.0
"""How many times degrees of freedom count in cross-validation: places that were found by projection on the very surface
that is judged hide a part of the noise, and a surface would wrinkle."""

REACH = 0.1
"""How far the surface is followed beyond its edges while rows are projected, in half widths of the latent space."""

PENALTIES = np.geomspace(1e-6, 1e2, 25)
"""Penalties that are compared."""

_ROUNDING = 1e-12
"""Share of the variance below which an error is none."""


def alternation(surface: BasisMap, penalty: float | None) -> Alternation:
    """Smoothing with a penalty that is given, or chosen at every step and then never less than before."""
    choose: Callable[[Sums, float], float] = never_less if penalty is None else lambda sums, last: penalty
    return Alternation(surface, choose, score, REACH)


def never_less(sums: Sums, last: float) -> float:
    """The penalty of cross-validation, or the last one where that is larger, so that steps cannot go round."""
    return max(cross_validated(sums), last)


def cross_validated(sums: Sums) -> float:
    """λ of the lowest score E / (1 − γ df/n)², E being the mean squared error and γ the caution; of equals the largest.

    Where every λ has more degrees of freedom than the rows can pay for, all scores are infinite.
    """
    scores = [score(sums, float(penalty)) for penalty in PENALTIES]
    return float(PENALTIES[len(scores) - 1 - int(np.argmin(scores[::-1]))])


def score(sums: Sums, penalty: float) -> float:
    """Generalised cross-validation score of one penalty."""
    left = 1.0 - CAUTION * sums.freedom(penalty) / sums.size
    error = max(sums.error(sums.weights(penalty)), _ROUNDING * sums.variance)
    return error / left**2 if left > 0 else np.inf


def measure(sample: Sample, state: State) -> dict[str, float]:
    """Minus the share of the variance that is left, mean squared error and penalty."""
    return {"objective": -share_left(sample, state.error), "error": state.error, "penalty": state.penalty}
