"""Rules for the bandwidth of kernels, by name: how wide they should be for the ridges of a density.

A rule takes rows (n, D) that are all different, positive weights (n,), the dimension d of the ridge and a random
generator, and gives one bandwidth, or one for every row. All are equivariant under shifts, turns and changes of unit,
do not depend on the order of rows, and read weights up to a common factor: where n stands in a formula,

    n = (Σ w)² / Σ w²,

the effective number of rows, is meant.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi, prod
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import eval_genlaguerre, factorial

from prinfold._typing import FloatArray
from prinfold.base.starting_points import evenly_by_radius
from prinfold.density.kernel_widths import Bandwidth, check_bandwidth
from prinfold.density.leave_one_out import LeaveOneOutLikelihood
from prinfold.density.ring_counts import Rings, make_rings
from prinfold.density.split_bandwidth import LEAST_ROWS, split_bandwidth
from prinfold.exceptions import Advice, InvalidDataError, InvalidParameterError, Message

BandwidthRule: TypeAlias = Callable[[FloatArray, FloatArray, int, np.random.Generator], Bandwidth]

_RIDGE_FACTOR = 1.25
"""Factor by which kernels should be wider for a ridge than for the Hessian, by the study in the guide."""

_MOST_AGREEMENT_ROWS = 10_000
"""Most rows whose halves are compared by default; the guide has the cost."""

_MOST_SAMPLED_ROWS = 2048
"""Most rows whose distances to all others stand for those of all rows."""

_MOST_UNEVEN_FACTOR = 4.0
"""Most times that the kernel of a row is wider or narrower than usual: that of an outlier would cover all others."""


def choose_bandwidth(
    given: str | Bandwidth, rows: FloatArray, weight: FloatArray, dimension: int, rng: np.random.Generator
) -> Bandwidth:
    """The bandwidth that a parameter stands for: a rule's name, a number, one for each column, or a matrix.

    ``rows`` (n, D) are all different and ``weight`` (n,) positive.
    """
    if isinstance(given, str):
        if given not in BANDWIDTHS:
            raise InvalidParameterError(f"bandwidth={given!r} is not one of {sorted(BANDWIDTHS)}, nor a number")
        return BANDWIDTHS[given](rows, weight, dimension, rng)
    return check_bandwidth(given, rows.shape[1])


# -------------------------------------------------------------------------------------------------------- rules


class _ScaledRows(NamedTuple):
    """Rows about their mean in units of their root mean squared distance from it, and that ``unit``."""

    rows: FloatArray
    unit: float

    @classmethod
    def of(cls, rows: FloatArray, weight: FloatArray) -> _ScaledRows:
        if len(rows) < 2:
            words = f"a bandwidth is found from at least two different rows, got n_samples = {len(rows)}"
            raise InvalidDataError(Message(words, Advice("bandwidth", words="give a number as {}")))
        rows = np.asarray(rows, dtype=np.float64)
        # Twice, so that neither squares nor sums overflow.
        size = float(np.abs(rows - rows[0]).max())
        centered = (rows - rows[0]) / size
        centered -= np.average(centered, axis=0, weights=weight)
        unit = float(np.sqrt(np.average(np.einsum("nd,nd->n", centered, centered), weights=weight)))
        return cls(centered / unit, unit * size)


def effective_number(weight: FloatArray) -> float:
    """(Σ w)² / Σ w²."""
    share = weight / weight.max()
    return float(share.sum() ** 2 / (share @ share))


def silverman(rows: FloatArray, weight: FloatArray, dimension: int, rng: np.random.Generator) -> float:
    """h = σ (4 / ((D + 2) n))^(1/(D + 4)), σ² the mean column variance (Silverman 1986): best for round normal data."""
    scaled, D = _ScaledRows.of(rows, weight), rows.shape[1]
    return scaled.unit * _normal_scale(effective_number(weight), D, 0)


def _normal_scale(n: float, D: int, order: int) -> float:
    """Silverman's h for derivatives of some order (Chacón, Duong & Wand 2011), of rows of unit mean squared radius."""
    return float(D**-0.5 * (4.0 / ((D + 2 * order + 2) * n)) ** (1.0 / (D + 2 * order + 4)))


def likelihood(rows: FloatArray, weight: FloatArray, dimension: int, rng: np.random.Generator) -> float:
    """Bandwidth of maximum leave-one-out likelihood, with a share of the rows allowed to be outliers."""
    scaled = _ScaledRows.of(rows, weight)
    return scaled.unit * LeaveOneOutLikelihood.of(scaled.rows, weight).bandwidth()


def plain_likelihood(rows: FloatArray, weight: FloatArray, dimension: int, rng: np.random.Generator) -> float:
    """Bandwidth of maximum leave-one-out likelihood, without outliers."""
    scaled = _ScaledRows.of(rows, weight)
    return scaled.unit * LeaveOneOutLikelihood.of(scaled.rows, weight, robust=False).bandwidth()


def plugin(rows: FloatArray, weight: FloatArray, dimension: int, rng: np.random.Generator) -> float:
    """The bandwidth that is best on average for the gradient, with the density's roughness estimated in two stages.

    For kernels of one bandwidth, ∫ ‖∇p̂ − ∇p‖² is on average, to leading order (Chacón, Duong & Wand 2011, r = 1),

        R₁ / (n h^(D+2)) + h⁴ Ψ₃ / 4,    Ψ_m = (−1)^m E Δ^m p(x),    R_r = (4π)^(−D/2) 2^(−r) D (D + 2) … (D + 2r − 2),

    least where h^(D+6) = (D + 2) R₁ / (n Ψ₃). Ψ_m is estimated by (−1)^m Σ_ij w_i w_j Δ^m φ_g(x_i − x_j) / (Σ w)²,
    φ_g normal densities, with the g at which its two leading errors cancel,

        g^(D+2m+2) = 2 (2π)^(−D/2) D (D + 2) … (D + 2m − 2) / (n Ψ_{m+1});

    Ψ₅ is that of a normal density, and gives Ψ₄, which gives Ψ₃.
    """
    scaled, D, n = _ScaledRows.of(rows, weight), rows.shape[1], effective_number(weight)
    some = evenly_by_radius(scaled.rows, weight, _MOST_SAMPLED_ROWS)
    rings = make_rings(scaled.rows, weight / weight.sum(), some)
    sampled = weight[some] / weight[some].sum()
    psi = _normal_functional(5, D)
    for m in (4, 3):
        pilot = (2.0 * (2.0 * pi) ** (-0.5 * D) * _rising_product(D, m) / (n * psi)) ** (1.0 / (D + 2 * m + 2))
        psi = _functional(m, D, rings, sampled, n, float(pilot)) or _normal_functional(m, D)
    roughness = (4.0 * pi) ** (-0.5 * D) * 0.5 * D
    return scaled.unit * float(((D + 2) * roughness / (n * psi)) ** (1.0 / (D + 6)))


def _rising_product(D: int, m: int) -> float:
    """D (D + 2) … (D + 2m − 2)."""
    return float(prod(D + 2 * i for i in range(m)))


def _normal_functional(m: int, D: int) -> float:
    """Ψ_m of the normal density of variance 1/D: (4π/D)^(−D/2) (2/D)^(−m) D (D + 2) … (D + 2m − 2)."""
    return float((4.0 * pi / D) ** (-0.5 * D) * (0.5 * D) ** m * _rising_product(D, m))


def _functional(m: int, D: int, rings: Rings, sampled: FloatArray, n: float, g: float) -> float:
    """Ψ_m estimated with kernels of width g; 0 where rows that stand for others leave nothing positive.

    (−1)^m Δ^m φ(x) = 2^m m! L_m(‖x‖²/2) φ(x), with L_m the Laguerre polynomial of parameter D/2 − 1.
    """

    def kernel(s: FloatArray) -> FloatArray:
        return np.asarray(eval_genlaguerre(m, 0.5 * D - 1.0, 0.5 * s) * np.exp(-0.5 * s))

    others = sampled @ (rings.weight * kernel(rings.squared / g**2)).sum(axis=1)
    itself = float(kernel(np.zeros(1))[0]) / n
    scale = 2.0**m * factorial(m) * (2.0 * pi) ** (-0.5 * D) * g ** (-D - 2 * m)
    return max(float(scale * (others + itself)), 0.0)


def wide_likelihood(rows: FloatArray, weight: FloatArray, dimension: int, rng: np.random.Generator) -> float:
    """Bandwidth of maximum leave-one-out likelihood times :func:`ridge_width_factor`."""
    wider = ridge_width_factor(effective_number(weight), rows.shape[1])
    return wider * likelihood(rows, weight, dimension, rng)


def ridge_width_factor(n: float, D: int) -> float:
    """Factor by which kernels should be wider for the ridge of a density than for the density, of n rows.

    A ridge lies where derivatives vanish, and these want wider kernels: for a normal density by the ratio of the
    normal scales of Hessian and density,

        (4/(D + 6))^(1/(D + 8)) / (4/(D + 2))^(1/(D + 4)) n^(1/(D + 4) − 1/(D + 8)).

    1.25 times that was best in the study on curves and surfaces: 1.6 in all for 100 rows in a plane, 2 for 3000.
    """
    return _RIDGE_FACTOR * _normal_scale(n, D, 2) / _normal_scale(n, D, 0)


def agreement(rows: FloatArray, weight: FloatArray, dimension: int, rng: np.random.Generator) -> float:
    """The bandwidth at which ridges of halves of the rows agree best; "wide_likelihood" of fewer than 20 rows."""
    scaled, usual = _ScaledRows.of(rows, weight), wide_likelihood(rows, weight, dimension, rng)
    if len(rows) < LEAST_ROWS or dimension >= rows.shape[1]:
        return usual
    return scaled.unit * split_bandwidth(scaled.rows, weight, dimension, usual / scaled.unit, rng)


def auto(rows: FloatArray, weight: FloatArray, dimension: int, rng: np.random.Generator) -> float:
    """The rule "agreement" with fixed halves for up to 10 000 rows; "wide_likelihood" for more rows, and for modes."""
    if dimension == 0 or len(rows) > _MOST_AGREEMENT_ROWS:
        return wide_likelihood(rows, weight, dimension, rng)
    return agreement(rows, weight, dimension, np.random.default_rng(0))


def neighbors(rows: FloatArray, weight: FloatArray, dimension: int, rng: np.random.Generator) -> FloatArray:
    """One bandwidth for every row: "wide_likelihood" times how far its neighbours are compared with those of others.

    h_i = h √(d_i / d̄), with d_i the distance to the k-th of the other rows, k = ⌈√n⌉ of n different rows, d̄ the
    geometric mean of all, and no h_i more than four times off h. The root keeps kernels from being so much wider that
    bends are cut short where rows are few; without it nothing was gained over one bandwidth for all.
    """
    usual = wide_likelihood(rows, weight, dimension, rng)
    scaled = _ScaledRows.of(rows, weight)
    k = min(int(np.ceil(len(rows) ** 0.5)), len(rows) - 1)
    apart = np.log(np.asarray(cKDTree(scaled.rows).query(scaled.rows, k=[k + 1])[0])[:, 0])
    uneven = 0.5 * (apart - np.average(apart, weights=weight))
    return np.asarray(usual * np.exp(np.clip(uneven, -np.log(_MOST_UNEVEN_FACTOR), np.log(_MOST_UNEVEN_FACTOR))))


BANDWIDTHS: dict[str, BandwidthRule] = {
    "agreement": agreement,
    "auto": auto,
    "likelihood": likelihood,
    "neighbors": neighbors,
    "plain_likelihood": plain_likelihood,
    "plugin": plugin,
    "silverman": silverman,
    "wide_likelihood": wide_likelihood,
}
"""Rules by name."""
