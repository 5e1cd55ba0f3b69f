"""Sums over a mixture of kernels at many places, from the centres that count there alone.

The sums are those of :mod:`prinfold.numerics.kernel_mixtures`.

A kernel of finite reach counts centres within it, found in cells. The Gaussian, which reaches everywhere, counts those
whose squared distance exceeds that of the nearest, t, by no more than

    2 (40 + log m + log w_max − log w_min),

since all m others together are then less than exp(−40) times the term of the nearest, which double precision does not
see (a bound of ours). A place far from all centres still has its nearest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import inf, log
from typing import NamedTuple, Protocol

import numpy as np
from scipy.spatial import cKDTree

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.numerics.cell_lists import Grid, cut_by_count, make_grid
from prinfold.numerics.finite_checks import LARGEST, require_finite
from prinfold.numerics.radial_kernels import Profile

_PART_PAIRS = 2**16
"""Pairs of a place and a centre that are looked at between two calls."""

_NEGLIGIBLE_NATS = 40.0
"""Nats below the nearest centre's term from which on all others together are left out."""


class PairList(NamedTuple):
    """Pairs of n places with centres: ``cuts`` (n + 1,), ``near`` (P,), and squared distances ``s`` beyond ``base``."""

    cuts: IntArray
    near: IntArray
    s: FloatArray
    base: FloatArray | float
    lonely: BoolArray
    """(n,) places that no centre is in reach of, and that are paired with the nearest."""


class CenterSearch(Protocol):
    """A search for the centres that count at places."""

    def parts(self, Z: FloatArray) -> list[tuple[slice, PairLister]]:
        """Places cut into parts of bounded memory, each with the function that lists its pairs."""


class PairLister(Protocol):
    """A function that lists the pairs of a part."""

    def __call__(self) -> PairList: ...


@dataclass(frozen=True, eq=False)
class RelativeSearch:
    """Search among centres (Q, m) for those whose squared distance exceeds the least by at most ``most``."""

    points: FloatArray
    most: float

    @classmethod
    def of(cls, centers: FloatArray, weight: FloatArray) -> RelativeSearch:
        uneven = log(weight.max()) - log(weight.min())
        return cls(np.ascontiguousarray(centers.T), 2.0 * (_NEGLIGIBLE_NATS + log(len(centers)) + uneven))

    def parts(self, Z: FloatArray) -> list[tuple[slice, PairLister]]:
        size = max(1, _PART_PAIRS // self.points.shape[1])
        cuts = [*range(0, len(Z), size), len(Z)]
        return [(slice(a, b), lambda a=a, b=b: self._list_pairs(Z[a:b])) for a, b in pairwise(cuts)]

    def _list_pairs(self, Z: FloatArray) -> PairList:
        from prinfold.numerics._kernel_mixtures_jit import list_relative

        n, n_pairs = len(Z), len(Z) * self.points.shape[1] + 1
        cuts, base = np.empty(n + 1, np.int64), np.empty(n)
        near, s = np.empty(n_pairs, np.int64), np.empty(n_pairs)
        list_relative(Z, self.points, self.most, cuts, near, s, base)
        return PairList(cuts, near[: cuts[-1]], s[: cuts[-1]], base, np.zeros(n, dtype=bool))


@dataclass(frozen=True, eq=False)
class CellSearch:
    """Search among centres (m, Q) for those within reach, by cells as wide as the reach."""

    centers: FloatArray
    grid: Grid
    reach: float

    @cached_property
    def _tree(self) -> cKDTree:
        return cKDTree(self.centers)

    @cached_property
    def _points(self) -> FloatArray:
        return np.ascontiguousarray(self.centers[self.grid.order].T)

    def parts(self, Z: FloatArray) -> list[tuple[slice, PairLister]]:
        starts, stops = self.grid.runs(Z)
        counts = (stops - starts).sum(axis=1)
        parts, _ = cut_by_count(counts, _PART_PAIRS)
        return [
            (part, lambda part=part: self._list_pairs(Z[part], starts[part], stops[part], int(counts[part].sum())))
            for part in parts
        ]

    def _list_pairs(self, Z: FloatArray, starts: IntArray, stops: IntArray, n_pairs: int) -> PairList:
        from prinfold.numerics._kernel_mixtures_jit import list_within

        cuts, near, s = np.empty(len(Z) + 1, np.int64), np.empty(n_pairs + 1, np.int64), np.empty(n_pairs + 1)
        list_within(Z, self._points, self.grid.order, starts, stops, self.reach, cuts, near, s)
        near, s = near[: cuts[-1]], s[: cuts[-1]]
        lonely = np.diff(cuts) == 0
        if lonely.any():
            distance, nearest = map(np.asarray, self._tree.query(Z[lonely]))
            at = cuts[:-1][lonely]
            near, s = np.insert(near, at, nearest), np.insert(s, at, np.square(distance))
            cuts = cuts + np.append(0, np.cumsum(lonely))
        return PairList(cuts, near, s, 0.0, lonely)


def make_search(centers: FloatArray, weight: FloatArray, profile: Profile) -> CenterSearch | None:
    """The search that suits a kernel; None for centres so far apart that cells cannot be numbered."""
    require_finite("centres of kernels", centers, "take a larger bandwidth, or rescale the columns of X", LARGEST)
    if profile.reach == inf:
        return RelativeSearch.of(centers, weight)
    grid = make_grid(centers, profile.reach)
    return None if grid is None else CellSearch(centers, grid, profile.reach)


class NearShares:
    """Compiled twin of ``Shares``: shares of the centres that count at a part of the places."""

    def __init__(
        self, Z: FloatArray, centers: FloatArray, weight: FloatArray, profile: Profile, listed: PairList
    ) -> None:
        self.Z, self.centers, self.profile = Z, centers, profile
        self.cuts, self.near, s, base, lonely = listed
        value = profile.value(s) * weight[self.near]
        value[self.cuts[:-1][lonely]] = 1.0
        total = np.add.reduceat(value, self.cuts[:-1])
        per_pair = np.repeat(1.0 / total, np.diff(self.cuts))
        self.value = value * per_pair
        self.log_sum = np.where(lonely, -inf, np.log(total) - 0.5 * base)
        decay = profile.pairwise.decay
        if decay is not None:  # the kernel is its own derivative
            held = np.repeat(~lonely, np.diff(self.cuts)) * self.value if lonely.any() else self.value
            self.slope, self.curvature = decay * held, decay**2 * held
        else:
            per_pair *= weight[self.near]
            self.slope, self.curvature = per_pair * profile.slope(s), per_pair * profile.curvature(s)

    def gradient(self) -> FloatArray:
        """(n, Q) Σ 2 u_j d_j."""
        return self._sums(len(self.Z), 0)[0]

    def hessian(self, gradient: FloatArray) -> FloatArray:
        """(n, Q, Q) ∇² log Σ w k."""
        return np.asarray(self._sums(len(self.Z), len(self.Z))[1] - gradient[:, :, None] * gradient[:, None, :])

    def mean(self, Y: FloatArray) -> FloatArray:
        """(n, D) Σ b_j y_j."""
        return self._apply(self.value, Y)

    def mean_jacobian(self, Y: FloatArray) -> FloatArray:
        """(n, D, Q) Σ_j a_j y_j."""
        from prinfold.numerics._kernel_mixtures_jit import share_gradients

        a = np.empty((self.Z.shape[1], len(self.near)))
        share_gradients(self.Z, self.centers, self.cuts, self.near, self.value, self.slope, self.gradient(), a)
        return np.stack([self._apply(each, Y) for each in a], axis=2)

    def mean_bend(self, Y: FloatArray, R: FloatArray) -> FloatArray:
        """(n, Q, Q) second derivatives of r·Σ b_j y_j along directions R (n, D)."""
        from prinfold.numerics._kernel_mixtures_jit import bend_sums, near_dots

        along = np.empty(len(self.near))
        near_dots(np.ascontiguousarray(R), self.cuts, self.near, np.ascontiguousarray(Y), along)
        gradient, hessian = self._sums(len(self.Z), len(self.Z))
        out = np.empty(hessian.shape)
        shares = self.value, self.slope, self.curvature
        bend_sums(self.Z, self.centers, self.cuts, self.near, *shares, along, gradient, hessian, out)
        return out

    def _apply(self, x: FloatArray, Y: FloatArray) -> FloatArray:
        from prinfold.numerics._kernel_mixtures_jit import near_products

        out = np.empty((len(self.Z), Y.shape[1]))
        near_products(x, self.cuts, self.near, np.ascontiguousarray(Y), out)
        return out

    def _sums(self, n: int, n_hessians: int) -> tuple[FloatArray, FloatArray]:
        from prinfold.numerics._kernel_mixtures_jit import density_sums

        Q = self.Z.shape[1]
        gradient, hessian = np.empty((n, Q)), np.empty((n_hessians, Q, Q))
        pairs = self.cuts, self.near, self.slope, self.curvature
        density_sums(self.Z, self.centers, *pairs, gradient, hessian)
        return gradient, hessian
