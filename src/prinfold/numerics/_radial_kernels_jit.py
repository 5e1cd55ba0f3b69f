"""Kernel values of some latent points with all others, UKR (33) and (34), compiled.

This module imports numba: import it only where there is much to do.
"""

from __future__ import annotations

from typing import Any

from numba.extending import overload

from prinfold._typing import FloatArray
from prinfold.numerics._compiled import compiled, exp64

_CHUNK = 512
"""Points looked at before the next coordinate is: so many stay in a core's nearest cache."""


def _add_squares(x: float, at: FloatArray, slope: float, afresh: bool, u: FloatArray) -> None:
    """Add slope (x − x_j)² to each u_j, or write it."""
    raise NotImplementedError


@overload(_add_squares, jit_options={"fastmath": {"reassoc", "contract"}})
def _add_squares_jit(x: Any, at: Any, slope: Any, afresh: Any, u: Any) -> Any:
    def add_squares(x: Any, at: Any, slope: Any, afresh: Any, u: Any) -> Any:
        if afresh:
            for j in range(len(u)):
                u[j] = slope * (x - at[j]) ** 2
        else:
            for j in range(len(u)):
                u[j] += slope * (x - at[j]) ** 2

    return add_squares


def _exponentiate(u: FloatArray, least: float) -> None:
    """eᵘ in place, with u held at ``least``."""
    raise NotImplementedError


@overload(_exponentiate, jit_options={"fastmath": {"reassoc", "contract"}})
def _exponentiate_jit(u: Any, least: Any) -> Any:
    def exponentiate(u: Any, least: Any) -> Any:
        for j in range(len(u)):
            u[j] = exp64(max(u[j], least))

    return exponentiate


@compiled
def exponentials(X: FloatArray, first: int, points: FloatArray, slope: float, least: float, k: FloatArray) -> None:
    """(b, n) exp(slope ‖x_i − x_j‖²) of the points from ``first`` on with all, the exponent held at ``least``.

    ``points`` (Q, n) are those of X (n, Q). Differences are taken as such, so that nothing cancels however far from
    the origin they lie; a product of matrices would take longer for so few coordinates.
    """
    for i in range(len(k)):
        for start in range(0, k.shape[1], _CHUNK):
            part = k[i, start : start + _CHUNK]
            for q in range(X.shape[1]):
                # A row of the points is cut, not the table: cut tables are not known to lie without gaps.
                _add_squares(X[first + i, q], points[q][start : start + _CHUNK], slope, q == 0, part)
            _exponentiate(part, least)


def _raise_to_power(power: int, k: FloatArray, g: FloatArray) -> None:
    """(1 − s)₊ᵖ⁻¹ into g and (1 − s)₊ᵖ into k, which holds −s."""
    raise NotImplementedError


@overload(_raise_to_power, jit_options={"fastmath": {"reassoc", "contract"}})
def _raise_to_power_jit(power: Any, k: Any, g: Any) -> Any:
    def raise_to_power(power: Any, k: Any, g: Any) -> Any:
        for j in range(len(k)):
            k[j] = g[j] = max(1.0 + k[j], 0.0)
        for _ in range(power - 2):
            for j in range(len(k)):
                g[j] *= k[j]
        for j in range(len(k)):
            k[j] *= g[j]

    return raise_to_power


@compiled
def powers(X: FloatArray, first: int, points: FloatArray, power: int, k: FloatArray, g: FloatArray) -> None:
    """(b, n) (1 − s_ij)₊ᵖ with s_ij = ‖x_i − x_j‖² of the same points, and ``g`` with p − 1 for p ≥ 2."""
    for i in range(len(k)):
        for start in range(0, k.shape[1], _CHUNK):
            part = k[i, start : start + _CHUNK]
            for q in range(X.shape[1]):
                _add_squares(X[first + i, q], points[q][start : start + _CHUNK], -1.0, q == 0, part)
            _raise_to_power(power, part, g[i, start : start + _CHUNK])
