"""Kernel densities with bandwidths by leave-one-out likelihood, and posterior probabilities of classes from them.

The estimator and its bandwidth are those of Habbema, Hermans and van den Broek (1974) and Duin (1976); Bayes' rule
makes a classifier of the densities of the classes.

    p(x) = Σ_j w_j k(‖x − x_j‖² / h²) / (h^D V Σ_j w_j)

The volume V of the kernel is the same wherever densities are compared here, and left out. Distances come from matrix
products over blocks of rows, which for many columns costs a fraction of forming every difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.base.starting_points import evenly_by_radius
from prinfold.density.kernel_widths import least_loss_bandwidth
from prinfold.numerics.distances import squared_distances
from prinfold.numerics.radial_kernels import Profile
from prinfold.rows.rows import as_rows, for_each_block

_PAIRS_PER_BLOCK = 2**18
"""Pairs of rows in a block: a few arrays of 2 MB."""

_MOST_PAIRS = 2**23
_LEAST_SAMPLED_ROWS = 50
"""Pairs whose distances are kept while a bandwidth is looked for (64 MB), and the least number of sampled rows.

All of n rows are sampled while n² is within the first, and otherwise so many that their pairs with all rows are; one
number is well determined by a few hundred rows."""

_OUT_OF_REACH_NATS = 50.0
"""Nats below a kernel's peak that a row out of reach of all kernels counts for: about ten bandwidths of a Gaussian.

Without a bound one such row would make every narrow bandwidth equally impossible."""

_TRIED_BANDWIDTHS = 25
"""Bandwidths tried before the best is refined: the likelihood may have several maxima."""


# --------------------------------------------------------------------------------------------- sums of kernels


def kernel_shares(s: FloatArray, weight: FloatArray, profile: Profile) -> tuple[FloatArray, FloatArray]:
    """(m, n) w_j k(s_ij) / exp(o_i), and o (m,), chosen so that no row underflows where its kernel sum is positive."""
    base = s.min(axis=1) if profile.reach == inf else np.zeros(len(s))
    # Only the Gaussian reaches everywhere, and k(s) = k(s − t) k(t) holds for it.
    return np.asarray(weight * profile.value(s - base[:, None])), -0.5 * base


def _log_total(share: FloatArray, offset: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):  # set in each thread
        return np.asarray(np.log(share.sum(axis=1)) + offset)


def log_kernel_sums(
    X: FloatArray, rows: FloatArray, weight: FloatArray, bandwidth: float, profile: Profile
) -> FloatArray:
    """(m,) log Σ_j w_j k(‖x − x_j‖² / h²), −inf where no kernel reaches."""
    out = np.empty(len(X))

    def one(part: slice) -> None:
        s = squared_distances(X[part].astype(np.float64, copy=False), rows)
        with np.errstate(over="ignore", invalid="ignore"):
            total = _log_total(*kernel_shares(s / bandwidth**2, weight, profile))
        # A row whose distance in bandwidths overflows is as good as out of reach.
        out[part] = np.where(np.isnan(total), -inf, total)

    for_each_block(one, as_rows(X, block_rows=max(16, _PAIRS_PER_BLOCK // len(rows))).slices)
    return out


def nearest_squared(X: FloatArray, rows: FloatArray) -> FloatArray:
    """(m,) squared distance of each x to the nearest of the rows."""
    parts = as_rows(X, block_rows=max(16, _PAIRS_PER_BLOCK // len(rows))).slices
    return np.concatenate([squared_distances(X[part].astype(np.float64), rows).min(axis=1) for part in parts])


# ------------------------------------------------------------------------------------------- leaving one out


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Leave-one-out sums of kernels: ``squared`` (m, n) distances of rows ``sampled`` (m,) to all, their own inf."""

    squared: FloatArray
    sampled: IntArray
    weight: FloatArray
    dimension: int
    robust: bool = False
    """Whether sums have a lower bound even where the kernel reaches everywhere."""

    @classmethod
    def of(
        cls, X: FloatArray, weight: FloatArray, most_pairs: int = _MOST_PAIRS, *, robust: bool = False
    ) -> LeaveOneOut:
        """Sums over at least two different rows (n, D) with positive weights; which are sampled depends on the rows."""
        sampled = evenly_by_radius(X, weight, max(_LEAST_SAMPLED_ROWS, most_pairs // len(X)))
        squared = squared_distances(X[sampled].astype(np.float64, copy=False), X)
        squared[np.arange(len(sampled)), sampled] = inf
        return cls(squared, sampled, weight, X.shape[1], robust)

    @property
    def total_weight(self) -> float:
        return float(self.weight.sum())

    def log_density(self, bandwidth: float, profile: Profile) -> FloatArray:
        """(m,) log Σ_{j≠i} w_j k_ij / (h^D Σ_{j≠i} w_j), up to the volume of the kernel.

        A sum that is lower than exp(−50) times the lightest weight counts as that where the kernel is compact or the
        sums are to be robust, so that no row far from all others decides alone.
        """
        others = np.maximum(self.total_weight - self.weight[self.sampled], self.weight.min())
        total = self._by_block(_log_total, bandwidth, profile)
        if self.robust or profile.reach < inf:
            total = np.maximum(total, np.log(self.weight.min()) - _OUT_OF_REACH_NATS)
        return np.asarray(total - np.log(others) - self.dimension * np.log(bandwidth))

    def log_likelihood(self, bandwidth: float, profile: Profile) -> float:
        """Mean log density of the rows sampled, by their weights."""
        return float(np.average(self.log_density(bandwidth, profile), weights=self.weight[self.sampled]))

    def neighbors(self, bandwidth: float, profile: Profile) -> FloatArray:
        """(m,) effective number of different neighbours, (Σ w k)² / Σ (w k)² over j ≠ i; 0 where there are none."""

        def number(share: FloatArray, _: FloatArray) -> FloatArray:
            squares = np.einsum("ij,ij->i", share, share)
            return np.asarray(share.sum(axis=1) ** 2 / np.where(squares > 0, squares, 1.0))

        return self._by_block(number, bandwidth, profile)

    def range(self) -> tuple[float, float]:
        """Bandwidths to look between: a 20th of the median distance to the nearest row, twice the largest distance."""
        largest = float(np.sqrt(np.max(self.squared, where=np.isfinite(self.squared), initial=0.0)))
        nearest = float(np.sqrt(np.median(self.squared.min(axis=1))))
        return max(0.05 * nearest, 1e-6 * largest), 2.0 * largest

    def _by_block(
        self, of: Callable[[FloatArray, FloatArray], FloatArray], bandwidth: float, profile: Profile
    ) -> FloatArray:
        out = np.empty(len(self.squared))

        def one(part: slice) -> None:
            out[part] = of(*kernel_shares(self.squared[part] / bandwidth**2, self.weight, profile))

        for_each_block(one, as_rows(self.squared, block_rows=max(16, _PAIRS_PER_BLOCK // self.squared.shape[1])).slices)
        return out


def likelihood_bandwidth(groups: Sequence[LeaveOneOut], profile: Profile, least: float = 0.0) -> float:
    """The bandwidth, no less than ``least``, with the largest Σ w log p over groups, each with a density of its own."""
    ranges = [group.range() for group in groups]
    low, high = max(least, min(low for low, _ in ranges)), max(least, *(high for _, high in ranges))

    def loss(bandwidth: float) -> float:
        return -sum(group.total_weight * group.log_likelihood(bandwidth, profile) for group in groups)

    return least_loss_bandwidth(loss, low, high, _TRIED_BANDWIDTHS)


# ----------------------------------------------------------------------------------------------------- classes


class ClassRows(NamedTuple):
    """The different rows (n, D) of a class, in float64, and their weights (n,)."""

    rows: FloatArray
    weight: FloatArray


def class_rows(X: FloatArray, codes: IntArray, weight: FloatArray | None) -> list[ClassRows]:
    """The rows of each class, sorted, repeats made one with the sum of their weights."""
    found = []
    for code in range(int(codes.max()) + 1):
        mine = codes == code
        rows, index = np.unique(X[mine].astype(np.float64), axis=0, return_inverse=True)
        total = np.bincount(index.reshape(-1), weights=None if weight is None else weight[mine])
        found.append(ClassRows(rows, total.astype(np.float64)))
    return found


def class_bandwidths(groups: Sequence[ClassRows], profile: Profile, per_class: bool) -> FloatArray:
    """(C,) bandwidths by leave-one-out likelihood: one for all classes, or each its own.

    A class of one row has no bandwidth of its own and takes the common one. If all classes are so, that is the
    distance between two rows of different classes on average, and 1 if there is none.
    """
    sums = [LeaveOneOut.of(group.rows, group.weight, robust=True) if len(group.rows) > 1 else None for group in groups]
    several = [each for each in sums if each is not None]
    if not several:
        spread = np.concatenate([group.rows for group in groups]).var(axis=0).sum()
        return np.full(len(groups), np.sqrt(2.0 * spread) or 1.0)
    if per_class and len(several) == len(groups):
        return np.array([likelihood_bandwidth([each], profile) for each in several])
    common = likelihood_bandwidth(several, profile)
    if not per_class:
        return np.full(len(groups), common)
    return np.array([common if each is None else likelihood_bandwidth([each], profile) for each in sums])


def log_joint(
    X: FloatArray, groups: Sequence[ClassRows], bandwidths: FloatArray, prior: FloatArray, profile: Profile
) -> FloatArray:
    """(n, C) ln P(c) + ln p(x | c), up to a number that is the same for all classes; no row is −inf throughout.

    Where no kernel of any class reaches, 0 stands for the class of the nearest row and −inf for the others; of classes
    that are equally near, the likeliest beforehand.
    """
    with np.errstate(divide="ignore"):
        log_prior = np.log(prior)
    columns = []
    for group, bandwidth in zip(groups, bandwidths, strict=True):
        scale = np.log(group.weight.sum()) + X.shape[1] * np.log(bandwidth)
        columns.append(log_kernel_sums(X, group.rows, group.weight, bandwidth, profile) - scale)
    joint = np.stack(columns, axis=1) + log_prior
    lost = np.flatnonzero(np.isneginf(joint).all(axis=1))
    if len(lost):
        possible = np.where(prior > 0, 0.0, inf)
        apart = np.stack([nearest_squared(X[lost], group.rows) for group in groups], axis=1) + possible
        likely = np.where(apart == apart.min(axis=1, keepdims=True), prior, -1.0)
        joint[lost] = -inf
        joint[lost, likely.argmax(axis=1)] = 0.0
    return joint


def log_posterior(joint: FloatArray) -> FloatArray:
    """(n, C) ln P(c | x), of rows that are not −inf throughout."""
    shifted = joint - joint.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))
