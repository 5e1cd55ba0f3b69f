"""Polynomials in up to three variables, each on a patch of its own, with their derivatives at many places; compiled.

A patch holds coefficients c_ijk of t₀ⁱ t₁ʲ t₂ᵏ with i + j + k ≤ p, the last power fastest. With fewer variables the
first powers are zero. This module imports numba: import it only where there is much to do.
"""

from __future__ import annotations

from math import log

import numpy as np
from numba import njit
from numba.extending import register_jitable

from prinfold._typing import FloatArray, IntArray
from prinfold.numerics._compiled import compiled


@compiled
def find_patches(
    Y: FloatArray, middle: FloatArray, side: float, low: FloatArray, high: FloatArray, keys: IntArray, patch: IntArray
) -> None:
    """Write (n,) which of the sorted ``keys`` is that of a place's cell, −1 for none; cells run from low to high."""
    for i in range(len(Y)):
        key, inside = 0, True
        for q in range(Y.shape[1]):
            at = np.floor((Y[i, q] - middle[q]) / side)
            inside = inside and low[q] <= at <= high[q]
            if inside:
                key = key * int(high[q] - low[q] + 1.0) + int(at - low[q])
        first, last = 0, len(keys)
        while inside and first < last:
            half = (first + last) // 2
            if keys[half] < key:
                first = half + 1
            else:
                last = half
        patch[i] = first if inside and first < len(keys) and keys[first] == key else -1


@compiled
def fit_patches(data: FloatArray, fit: FloatArray, coefficients: FloatArray) -> None:
    """Write (n, K) ``data`` (n, d) times ``fit`` (d, K), each row as if it came alone, unlike a matrix product."""
    for i in range(len(data)):
        for k in range(fit.shape[1]):
            coefficients[i, k] = 0.0
        for j in range(fit.shape[0]):
            value = data[i, j]
            for k in range(fit.shape[1]):
                coefficients[i, k] += value * fit[j, k]


# Fused products, but no other order of sums.
@njit(nogil=True, fastmath={"contract"})
def _evaluate(c: FloatArray, p: int, D: int, t0: float, t1: float, t2: float) -> tuple[float, ...]:
    """Value, gradient and upper triangle of the Hessian, with half its diagonal, by Horner's rule.

    h is a polynomial in the last variable, g one in the last two, and f that in all.
    """
    at = len(c)
    f = f0 = f1 = f2 = f00 = f01 = f02 = f11 = f12 = f22 = 0.0
    for i in range(p if D > 2 else 0, -1, -1):
        g = g1 = g2 = g11 = g12 = g22 = 0.0
        for j in range(p - i if D > 1 else 0, -1, -1):
            h = h2 = h22 = 0.0
            for _ in range(p - i - j + 1):
                at -= 1
                h22 = h22 * t2 + h2
                h2 = h2 * t2 + h
                h = h * t2 + c[at]
            g11 = g11 * t1 + g1
            g12 = g12 * t1 + g2
            g1 = g1 * t1 + g
            g22 = g22 * t1 + h22
            g2 = g2 * t1 + h2
            g = g * t1 + h
        f00 = f00 * t0 + f0
        f01 = f01 * t0 + f1
        f02 = f02 * t0 + f2
        f0 = f0 * t0 + f
        f1 = f1 * t0 + g1
        f2 = f2 * t0 + g2
        f11 = f11 * t0 + g11
        f12 = f12 * t0 + g12
        f22 = f22 * t0 + g22
        f = f * t0 + g
    return f, f0, f1, f2, f00, f01, f02, f11, f12, f22


def _write_moments(
    value: tuple[float, ...],
    y: FloatArray,
    base: float,
    half: float,
    row: int,
    log_sum: FloatArray,
    shift: FloatArray,
    spread: FloatArray,
) -> None:
    """Write the moments at one place from a polynomial's value and derivatives; formulas in ``density.patches``."""
    D, first, total, level = len(y), 3 - len(y), value[0], base
    for q in range(D):
        level -= 0.5 * y[q] * y[q]
    log_sum[row] = level + log(total)
    if len(shift) == 0:
        return
    for q in range(D):
        shift[row, q] = value[1 + first + q] / (total * half)
    for q in range(D):
        at = (4, 7, 9)[first + q]
        for r in range(q, D):
            second = value[at + r - q] * (2.0 if q == r else 1.0) / (total * half * half)
            second -= shift[row, q] * shift[row, r]
            spread[row, q, r] = second
            spread[row, r, q] = second
    for q in range(D):
        shift[row, q] -= y[q]


write_moments = register_jitable(_write_moments)


@compiled
def sum_patches(
    Y: FloatArray,
    patch: IntArray,
    first: int,
    last: int,
    coefficients: FloatArray,
    base: FloatArray,
    center: FloatArray,
    half: float,
    degree: int,
    log_sum: FloatArray,
    shift: FloatArray,
    spread: FloatArray,
) -> None:
    """Write the moments at rows ``first`` to ``last`` of Y (n, D), but for those on no patch."""
    D = Y.shape[1]
    y, t = np.empty(D), np.zeros(3)
    for i in range(first, last):
        here = patch[i]
        if here >= 0:
            for q in range(D):
                y[q] = Y[i, q] - center[here, q]
                t[3 - D + q] = y[q] / half
            value = _evaluate(coefficients[here], degree, D, t[0], t[1], t[2])
            write_moments(value, y, base[here], half, i, log_sum, shift, spread)
