"""Rows in a few parts for a mixture of maps (thesis 6.3) to begin with: by k-means, flats or Gaussians for centres.

Whatever is drawn is drawn from distinct rows in the order of their distance from the middle, so that neither the order
of the rows, nor repeats in place of weights, nor a rotation of the data leads to another partition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from prinfold._typing import FloatArray, IntArray
from prinfold.rows.rows import Rows, fill_gaps, for_each_block

_MOST_ROWS = 20_000
"""Rows among which a partition is looked for; evenly spaced ones of more."""

_N_DRAWS = 5
_MOST_ROUNDS = 50
_EM_ROUNDS = 30

_MOST_COVARIANCE_COLUMNS = 64
"""Columns up to which parts get covariances."""

_LEAST_RELATIVE_VARIANCE = 1e-4
"""Least variance of a part in any direction, in units of the mean variance of a column."""


class Distinct(NamedTuple):
    """Distinct rows (m, D), nearest to the mean first, and the total weight (m,) of the copies of each."""

    rows: FloatArray
    weight: FloatArray


@dataclass(frozen=True)
class Flats:
    """A flat for each part: a point of it (J, D), and its directions (J, q, D); of centres there are none."""

    centers: FloatArray
    axes: FloatArray

    def squared_distances(self, rows: FloatArray) -> FloatArray:
        """(n, J) from rows to flats."""
        out = np.empty((len(rows), len(self.centers)))
        for j, (center, axes) in enumerate(zip(self.centers, self.axes, strict=True)):
            beside = rows - center
            if len(axes):
                beside = beside - (beside @ axes.T) @ axes
            out[:, j] = np.einsum("nd,nd->n", beside, beside)
        return out

    def parts(self, rows: FloatArray) -> IntArray:
        """(n,) the flat nearest to each row."""
        return np.asarray(self.squared_distances(rows).argmin(axis=1))


@dataclass(frozen=True)
class Clouds:
    """A Gaussian for each part: mean (J, D), whitening matrix (J, D, D), and logarithm of its height (J,)."""

    centers: FloatArray
    rounding: FloatArray
    log_height: FloatArray

    def log_densities(self, rows: FloatArray) -> FloatArray:
        """(n, J) log of share times density, but for a constant."""
        out = np.empty((len(rows), len(self.centers)))
        for j, (center, rounding) in enumerate(zip(self.centers, self.rounding, strict=True)):
            out[:, j] = self.log_height[j] - 0.5 * np.square((rows - center) @ rounding).sum(axis=1)
        return out

    def parts(self, rows: FloatArray) -> IntArray:
        """(n,) the Gaussian that each row most likely belongs to."""
        return np.asarray(self.log_densities(rows).argmax(axis=1))


def distinct_rows(rows: Rows) -> Distinct:
    """Rows among which partitions are looked for; missing cells are taken for the middle of their column."""
    some = np.arange(0, rows.n_rows, -(-rows.n_rows // _MOST_ROWS))
    block = fill_gaps(rows).block(some).astype(np.float64, copy=False)
    weight = np.ones(len(some)) if rows.weight is None else rows.weight[some]
    found, which = np.unique(block, axis=0, return_inverse=True)
    order = np.argsort(np.einsum("nd,nd->n", found, found), kind="stable")
    together = np.bincount(which.reshape(-1), weights=weight).astype(np.float64)
    return Distinct(found[order], together[order])


def find_flats(among: Distinct, n_parts: int, dimension: int, rng: np.random.Generator) -> Flats:
    """Flats near which the rows lie: ``n_parts`` of them, or fewer where there are fewer distinct rows.

    From centres drawn far apart (k-means++; Arthur & Vassilvitskii, 2007), rows go to the nearest flat and flats
    through the middle of their rows in turn; of a few such draws the one that leaves rows nearest to their flats
    (k-plane clustering; Bradley & Mangasarian, 2000). Flats of no dimension are k-means.
    """
    drawn = [_alternate(among, n_parts, dimension, rng) for _ in range(_N_DRAWS)]
    return min(drawn, key=lambda flats: float(among.weight @ flats.squared_distances(among.rows).min(axis=1)))


def _alternate(among: Distinct, n_parts: int, dimension: int, rng: np.random.Generator) -> Flats:
    rows, weight = among
    centers = _draw_far_apart(rows, weight, n_parts, rng)
    part = Flats(centers, np.empty((len(centers), 0, rows.shape[1]))).parts(rows)
    flats = _fit_flats(rows, weight, part, centers, dimension)
    for _ in range(_MOST_ROUNDS):
        after = flats.parts(rows)
        if (after == part).all():
            break
        part, flats = after, _fit_flats(rows, weight, after, flats.centers, dimension)
    return flats


def find_clouds(among: Distinct, n_parts: int, dimension: int, rng: np.random.Generator) -> Flats | Clouds:
    """Gaussians in place of centres, by a few rounds of EM from k-means: parts may differ in size, shape and density.

    With more columns than a covariance is worth it stays at k-means.
    """
    (rows, weight), flats = among, find_flats(among, n_parts, 0, rng)
    D = rows.shape[1]
    if D > _MOST_COVARIANCE_COLUMNS:
        return flats
    share = np.eye(len(flats.centers))[flats.parts(rows)]
    ridge = _LEAST_RELATIVE_VARIANCE * float(weight @ np.square(rows).sum(axis=1)) / (D * weight.sum())
    for _ in range(_EM_ROUNDS):
        clouds = _clouds(rows, weight[:, None] * share, ridge or 1.0)
        share = softmax(clouds.log_densities(rows), axis=1)
    return clouds


def _clouds(rows: FloatArray, share: FloatArray, ridge: float) -> Clouds:
    """Gaussians fitted to rows with weights (m, J); ``ridge`` is added to their variances."""
    mass = share.sum(axis=0)
    safe = np.where(mass > 0, mass, 1.0)
    centers = share.T @ rows / safe[:, None]
    rounding, log_height = np.empty((len(mass), rows.shape[1], rows.shape[1])), np.full(len(mass), -np.inf)
    for j, center in enumerate(centers):
        beside = rows - center
        size, axes = np.linalg.eigh((beside * share[:, j : j + 1]).T @ beside / safe[j])
        size = np.maximum(size, 0.0) + ridge
        rounding[j] = axes / np.sqrt(size)
        if mass[j] > 0:
            log_height[j] = np.log(mass[j]) - 0.5 * np.log(size).sum()
    return Clouds(centers, rounding, log_height)


def find_centers(among: Distinct, n_parts: int, dimension: int, rng: np.random.Generator) -> Flats:
    """k-means, whatever the dimension of the maps."""
    return find_flats(among, n_parts, 0, rng)


def parts_of(rows: Rows, flats: Flats | Clouds) -> IntArray:
    """(n,) the part of every row."""
    whole, part = fill_gaps(rows), np.empty(rows.n_rows, dtype=np.intp)

    def one_block(some: slice) -> None:
        part[some] = flats.parts(whole.block(some).astype(np.float64, copy=False))

    for_each_block(one_block, rows.slices)
    return part


def _draw_far_apart(rows: FloatArray, weight: FloatArray, n_parts: int, rng: np.random.Generator) -> FloatArray:
    """Rows drawn one after the other, each with a chance that goes by its squared distance from those before."""
    chosen = [_draw_index(weight, rng)]
    nearest = np.full(len(rows), np.inf)
    for _ in range(n_parts - 1):
        beside = rows - rows[chosen[-1]]
        nearest = np.minimum(nearest, np.einsum("nd,nd->n", beside, beside))
        if not (nearest * weight).any():  # no more rows that differ
            break
        chosen.append(_draw_index(nearest * weight, rng))
    return np.array(rows[chosen])


def _draw_index(chance: FloatArray, rng: np.random.Generator) -> int:
    sums = np.cumsum(chance)
    return int(np.searchsorted(sums, rng.random() * sums[-1], side="right").clip(max=len(sums) - 1))


def _fit_flats(rows: FloatArray, weight: FloatArray, part: IntArray, centers: FloatArray, dimension: int) -> Flats:
    """Flats through the middle of their rows along the longest axes; one without rows stays a point."""
    new, axes = centers.copy(), np.zeros((len(centers), dimension, rows.shape[1]))
    for j in range(len(centers)):
        own = part == j
        if not own.any():
            continue
        new[j] = weight[own] @ rows[own] / weight[own].sum()
        if dimension:
            scaled = (rows[own] - new[j]) * np.sqrt(weight[own])[:, None]
            found = np.linalg.svd(scaled, full_matrices=False)[2][:dimension]
            axes[j, : len(found)] = found
    return Flats(new, axes)
