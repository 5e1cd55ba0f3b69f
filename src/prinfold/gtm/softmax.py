"""Posterior weights of mixture components, thesis (3.7), in place and in log space."""

from __future__ import annotations

from collections.abc import Callable
from math import e, log2
from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import FloatArray, IntArray

_SMALLEST_EXPONENT = -60.0
"""Weights below e⁻⁶⁰ of a row's largest are held there: they change no sum, and letting them run on
into the subnormal numbers makes ``exp`` and the products that follow several times slower."""

_EXPONENT_LIMIT = {np.dtype(np.float64): 600.0, np.dtype(np.float32): 80.0}
"""Exponents are clipped to plus and minus this: far enough from the subnormal and
from the largest numbers to leave room for sums over nodes and for products with rows and their weights."""

_SUM_MARGIN = {np.dtype(np.float64): 60.0, np.dtype(np.float32): 35.0}
"""A row whose sum comes nearer than this, in its logarithm, to either limit is computed anew. In all others a weight
clipped at the lower limit is below e⁻⁶⁰ (e⁻³⁵) of it, which double (single) precision does not see."""


class Exponential(NamedTuple):
    """An exponential function: ``function(per_e * x)`` is eˣ."""

    function: Callable[..., Any]
    per_e: float


NATURAL = Exponential(np.exp, 1.0)


def _fastest(kind: str) -> Exponential:
    """Powers of two where NumPy has vector instructions for them, which are faster then, in single precision by half.

    Without such instructions they are many times slower than powers of e.
    """
    try:
        from numpy.lib.introspect import opt_func_info
    except ImportError:  # before NumPy 2
        return NATURAL
    found = opt_func_info(func_name="^exp2$").get("exp2", {}).get(2 * kind, {}).get("current", "baseline")
    return NATURAL if found.startswith("baseline") else Exponential(np.exp2, log2(e))


FASTEST = {np.dtype(np.float64): _fastest("d"), np.dtype(np.float32): _fastest("f")}


def relative_weights(log_weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Turn log weights (n, K) into weights relative to each row's largest, **in place**.

    Returns (n,) the log of each row's largest weight and (n,) the sum of the relative ones. Dividing by
    that sum is left to the caller, who can often divide something smaller than an (n, K) array. A row
    far from every component still has a largest relative weight of one.
    """
    largest = log_weight.max(axis=1)
    log_weight -= largest[:, None]
    np.clip(log_weight, _SMALLEST_EXPONENT, 0.0, out=log_weight)  # twice as fast as ``maximum`` with a number
    np.exp(log_weight, out=log_weight)
    return largest, _row_sums(log_weight)


def leveled_weights(log_weight: FloatArray, exponential: Exponential = NATURAL) -> tuple[FloatArray, IntArray]:
    """Turn log weights (n, K) that are already near zero for the best component into weights, **in place**.

    They are in the unit that ``exponential`` takes.
    Returns (n,) their sums, and the rows that were not near enough to zero: the weights in those are not valid, and
    :func:`relative_weights` has to be given their log weights anew. For all others this is the same
    up to a factor of the row, without looking for its largest weight and subtracting it.
    """
    span = _EXPONENT_LIMIT[log_weight.dtype] * exponential.per_e
    np.clip(log_weight, -span, span, out=log_weight)
    exponential.function(log_weight, out=log_weight)
    total = _row_sums(log_weight)
    # Sums that are too small or too large come of clipped weights; the comparison is False for NaN too.
    low, high = sound_sums(log_weight.dtype)
    return total, np.flatnonzero(~((total > low) & (total < high)))


def sound_sums(dtype: np.dtype[Any]) -> tuple[float, float]:
    """Bounds between which the sums of levelled weights are valid."""
    reach = _EXPONENT_LIMIT[dtype] - _SUM_MARGIN[dtype]
    return float(np.exp(-reach)), float(np.exp(reach))


def _row_sums(weight: FloatArray) -> FloatArray:
    # As a product, which adds several numbers at once.
    return np.asarray(weight @ np.ones(weight.shape[1], dtype=weight.dtype))
