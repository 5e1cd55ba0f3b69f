"""Losses of rows held out, row by row, by which surfaces are judged.

The nearest point of a wavy surface is picked by looking at the row, so that waves pass for accuracy and the error of
rows held out goes down as a surface goes wild. The ways to measure here differ in how they deal with that.

- **error**: squared distances ‖x − P(x)‖² to the nearest point. Flattered by waves.
- **thinned**: the row is split in two by noise of our own, x′ = x + η and x″ = x − (σ²/τ²) η, with η ~ N(0, τ²I). If
  the noise of the rows is normal with variance σ², that of x′ and that of x″ are independent. The point is picked with
  one and judged with the other: E‖x″ − P(x′)‖² = E‖s − P(x′)‖² + const, with s the place on the true surface that the
  row came from. What is left is the error of denoising rows, and waves cost what they are worth.
- **likelihood**: rows are spread about the feet of the *training* rows on the surface,
  p(x) = 1/n Σ_j N(x; P(x_j), h²I), with h the best of a few. The row has no part in picking any point.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from prinfold._typing import FloatArray
from prinfold.kernel_manifolds.noise_level import neighborhood_noise
from prinfold.numerics.distances import squared_distances
from prinfold.select.missing_cells import measured_squares
from prinfold.select.surfaces import ComparedSurface

_SPLIT_NOISE = 0.5
"""Noise τ that rows are split with, relative to their own."""

_N_WIDTHS = 24
"""Widths h of the likelihood that are tried."""

_NARROW, _WIDE = 0.15, 3.0
"""The narrowest in units of the smaller of two lengths, and the widest in units of the larger: the noise, and the
distance between neighbouring rows."""

_LEAST_NOISE = 0.1
"""Noise that there is at least for that purpose, in units of the distance between neighbouring rows."""

_BLOCK_NUMBERS = 2**21


def noise_of(X: FloatArray, n_components: int) -> float:
    """Standard deviation σ of the rows across a surface of so many dimensions, in each direction.

    It is taken from planes through neighbouring rows; where neighbourhoods are as wide as they are long, from the
    principal plane of all rows. A row that comes several times is one neighbour with so much weight: of neighbours
    that are all the same row one would learn that there is no noise.
    """
    D = X.shape[1]
    if n_components >= D:
        return 0.0
    rows, count = np.unique(X, axis=0, return_counts=True)
    squared = neighborhood_noise(rows, count.astype(float), n_components)
    if not np.isfinite(squared):
        values = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
        squared = float(np.square(values[n_components:]).sum() / len(X))
    return float(np.sqrt(squared / (D - n_components)))


def widths_of(X: FloatArray, sigma: float) -> FloatArray:
    """(H,) widths h that are tried for the likelihood about a surface.

    However little noise there is, feet that lie apart need kernels as wide as that to pass for a surface, so that the
    distance between neighbouring rows has a say beside the noise. Much wider than both they must not be: a surface too
    stiff for the rows would pass its misfit off as noise. At least two rows must be different.
    """
    rows = np.unique(X, axis=0)
    apart = float(np.median(np.asarray(cKDTree(rows).query(rows, k=2)[0])[:, 1]))
    noise = max(sigma, _LEAST_NOISE * apart)
    return np.geomspace(_NARROW * min(noise, apart), _WIDE * max(noise, apart), _N_WIDTHS)


class Thinning(NamedTuple):
    """Noise η (n, D) of standard deviation τ, by which rows are thinned into x′ and x″."""

    noise: FloatArray
    tau: float

    def part(self, rows: Any) -> Thinning:
        """The same for some of the rows."""
        return Thinning(self.noise[rows], self.tau)


def thinning_of(X: FloatArray, sigma: float, rng: np.random.Generator) -> Thinning:
    """Noise for each row that goes with the row, in whatever order they come."""
    noise, tau = np.empty_like(X), _SPLIT_NOISE * sigma
    noise[np.lexsort(X.T[::-1])] = rng.normal(scale=tau, size=X.shape)
    return Thinning(noise, tau)


def _off(X: FloatArray, points: FloatArray) -> FloatArray:
    """(n, D) ways from points to rows, none in cells that were not measured."""
    return np.asarray(np.where(np.isnan(X), 0.0, X - points))


class HeldOutFeet(NamedTuple):
    """Nearest points of a surface.

    ``held`` (m, D) are those of rows x held out, ``plus`` and ``minus`` (m, D) those of x + η and x − η, and ``seen``
    (n, D) those of the rows that it was fitted to.
    """

    held: FloatArray
    plus: FloatArray
    minus: FloatArray
    seen: FloatArray


def feet_of(surface: ComparedSurface, X: FloatArray, seen: FloatArray, thinning: Thinning) -> HeldOutFeet:
    """All nearest points that the measures need, by one search: most of a small search is not the rows."""
    parts = X, X + thinning.noise, X - thinning.noise, seen
    ends = np.cumsum([len(part) for part in parts])[:-1]
    return HeldOutFeet(*np.split(surface.project(np.concatenate(parts)), ends))


def errors(X: FloatArray, feet: HeldOutFeet, scale: FloatArray | float = 1.0) -> FloatArray:
    """(m,) squared distances of rows from the surface, over the cells that they have and raised by ``scale`` (m,)."""
    return np.asarray(scale * np.square(_off(X, feet.held)).sum(axis=1))


class Thinned(NamedTuple):
    """Losses of thinned rows by the variance σ² of their noise: ``level`` + σ² ``slope``, (m,) each."""

    level: FloatArray
    slope: FloatArray


def thinned_errors(X: FloatArray, feet: HeldOutFeet, thinning: Thinning, scale: FloatArray | float = 1.0) -> Thinned:
    """‖x″ − P(x′)‖² − (σ²/τ²)² ‖η‖² for each row, on average over η and −η.

    Of ‖x″ − p‖² = ‖x − p‖² − 2(σ²/τ²)(x − p)·η + (σ²/τ²)² ‖η‖² the last part is the same for every surface, and is left
    out. What remains is a straight line in σ², so that the noise may be settled afterwards. Where there is none, a row
    is split in two that are the same. Of rows with gaps the measured cells count, raised by ``scale`` (n,).
    """
    level, slope = np.zeros(len(X)), np.zeros(len(X))
    for e, foot in ((thinning.noise, feet.plus), (-thinning.noise, feet.minus)):
        off = _off(X, foot)
        level += 0.5 * np.square(off).sum(axis=1)
        slope -= np.einsum("nd,nd->n", off, e)
    return Thinned(scale * level, scale * (slope / thinning.tau**2 if thinning.tau > 0 else slope))


def spread_likelihoods(X: FloatArray, feet: HeldOutFeet, widths: FloatArray) -> FloatArray:
    """(m, H) log-likelihoods of the measured cells of rows X about the feet of the rows fitted to, for each width."""
    n, count = len(feet.seen), np.sum(~np.isnan(X), axis=1)
    away = measured_squares if np.isnan(X).any() else squared_distances
    found = np.empty((len(X), len(widths)))
    size = max(1, _BLOCK_NUMBERS // n)
    for i in range(0, len(X), size):
        d2 = away(X[i : i + size], feet.seen)
        nearest = d2.min(axis=1, keepdims=True)
        for j, h in enumerate(widths):
            total = np.exp((nearest - d2) / (2.0 * h**2)).sum(axis=1)  # at least 1, by the nearest
            found[i : i + size, j] = np.log(total) - 0.5 * nearest[:, 0] / h**2
    return np.asarray(found - np.log(n) - count[:, None] * np.log(np.sqrt(2.0 * np.pi) * widths))
