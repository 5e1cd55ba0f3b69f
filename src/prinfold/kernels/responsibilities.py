"""Posterior weights of mixture components, in place and in log space."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from prinfold._typing import FloatArray

_SMALLEST_EXPONENT = -60.0
"""Weights below e⁻⁶⁰ of a row's largest are held there: they change no sum, and letting them run on
into the subnormal numbers makes ``exp`` and the products that follow several times slower."""


def relative_weights(log_weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Turn log weights (n, K) into weights relative to each row's largest, **in place**.

    Returns (n,) the log of each row's largest weight and (n,) the sum of the relative ones. Dividing by
    that sum is left to the caller, who can often divide something smaller than an (n, K) array. A row
    far from every component still has a largest relative weight of one.
    """
    largest = log_weight.max(axis=1)
    log_weight -= largest[:, None]
    np.maximum(log_weight, _SMALLEST_EXPONENT, out=log_weight)
    np.exp(log_weight, out=log_weight)
    return largest, log_weight.sum(axis=1)


def normalise_log_weights(log_weight: FloatArray) -> FloatArray:
    """Turn log weights (n, K) into weights that sum to one along each row, **in place**.

    Returns (n,) the log of each row's sum, log Σ_k exp(log_weight).
    """
    largest, total = relative_weights(log_weight)
    log_weight /= total[:, None]
    return np.asarray(largest + np.log(total))


def normalise_log_weights_reference(log_weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same, out of place and straight from the definition."""
    total = logsumexp(log_weight, axis=1)
    return np.exp(log_weight - total[:, None]), total
