"""Sums over a mixture of equal kernels: log-density with its derivatives, and the coefficients of kernel regression.

At places z with d_j = z − c_j and s_j = ‖d_j‖², every sum here is one over the shares

    b_j = w_j k(s_j) / Σ w k,    u_j = w_j k'(s_j) / Σ w k,    v_j = w_j k''(s_j) / Σ w k.

A kernel of finite reach is summed over the centres within it only, found by a tree; one that reaches everywhere over
all centres, relative to the nearest, so that a place far from all of them has shares too. Sums run along each row in
the same order whatever else is in the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import NamedTuple, Protocol, cast

import numpy as np
from scipy.sparse import csr_matrix
from scipy.spatial import cKDTree

from prinfold._arrays import for_each_block
from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.kernels.profiles import Profile

_PAIRS = 2**18
"""Pairs of a place and a centre held at once."""

_ROWS_ON_THREADS = 2**14
"""Places from which blocks go to threads: fewer come from a pass that is on threads itself."""

_FARTHEST = 1e100
"""Coordinates beyond this are held there: their squares would be infinite."""


class Pairs(Protocol):
    """Which centres count at each of n places: ``delta`` (P, Q) = z − c of every pair, one place after the other."""

    @property
    def delta(self) -> FloatArray:
        """Differences of each pair."""

    def total(self, x: FloatArray) -> FloatArray:
        """Σ x over the pairs of each place; x (P, …)."""

    def least(self, x: FloatArray) -> FloatArray:
        """(n,) smallest x (P,) of each place."""

    def spread(self, a: FloatArray) -> FloatArray:
        """What each place has, (n, …), handed to its pairs."""

    def of_centres(self, a: FloatArray) -> FloatArray:
        """What each centre has, (m,), handed to its pairs."""

    def apply(self, x: FloatArray, Y: FloatArray) -> FloatArray:
        """(n, D) Σ x_j y_j over the pairs of each place."""


class _AllPairs(NamedTuple):
    """Every place with every centre."""

    delta: FloatArray
    n: int
    m: int

    def total(self, x: FloatArray) -> FloatArray:
        return np.asarray(x.reshape(self.n, self.m, *x.shape[1:]).sum(axis=1))

    def least(self, x: FloatArray) -> FloatArray:
        return np.asarray(x.reshape(self.n, self.m).min(axis=1))

    def spread(self, a: FloatArray) -> FloatArray:
        return np.repeat(a, self.m, axis=0)

    def of_centres(self, a: FloatArray) -> FloatArray:
        return np.tile(a, self.n)

    def apply(self, x: FloatArray, Y: FloatArray) -> FloatArray:
        return np.asarray(x.reshape(self.n, self.m) @ Y)


class _NearPairs(NamedTuple):
    """The pairs within reach, sorted; ``cuts`` (n + 1,) are where each place begins, and none is without a pair."""

    delta: FloatArray
    centre: IntArray
    cuts: IntArray
    m: int

    def total(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.add.reduceat(x, self.cuts[:-1], axis=0))

    def least(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.minimum.reduceat(x, self.cuts[:-1]))

    def spread(self, a: FloatArray) -> FloatArray:
        return np.repeat(a, np.diff(self.cuts), axis=0)

    def of_centres(self, a: FloatArray) -> FloatArray:
        return np.asarray(a[self.centre])

    def apply(self, x: FloatArray, Y: FloatArray) -> FloatArray:
        return np.asarray(csr_matrix((x, self.centre, self.cuts), shape=(len(self.cuts) - 1, self.m)) @ Y)


class Shares(NamedTuple):
    """What a block of places has of each centre: ``log_sum`` (n,) log Σ w k, −inf where nothing is in reach.

    ``value`` (P,) is b of the module's formulas; where nothing is in reach the nearest centre has all of it.
    ``weight`` (P,) is w / Σ w k, or nil there, and ``s`` (P,) the squared distances, less a constant for each place
    that both have been relieved of.
    """

    pairs: Pairs
    profile: Profile
    log_sum: FloatArray
    value: FloatArray
    weight: FloatArray
    s: FloatArray

    @property
    def slope(self) -> FloatArray:
        """(P,) u."""
        return self.weight * self.profile.slope(self.s)

    @property
    def curvature(self) -> FloatArray:
        """(P,) v."""
        return self.weight * self.profile.curvature(self.s)

    def gradient(self) -> FloatArray:
        """(n, Q) ∇ log Σ w k = Σ 2 u_j d_j."""
        return self.pairs.total(2.0 * self.slope[:, None] * self.pairs.delta)

    def hessian(self, gradient: FloatArray) -> FloatArray:
        """(n, Q, Q) ∇² log Σ w k = Σ (4 v_j d_j d_jᵀ + 2 u_j I) − g gᵀ."""
        delta = self.pairs.delta
        outer = self.pairs.total(4.0 * self.curvature[:, None, None] * delta[:, :, None] * delta[:, None, :])
        outer += 2.0 * self.pairs.total(self.slope)[:, None, None] * np.eye(delta.shape[1])
        return np.asarray(outer - gradient[:, :, None] * gradient[:, None, :])

    def mean(self, Y: FloatArray) -> FloatArray:
        """(n, D) Σ b_j y_j, the estimator of Nadaraya and Watson."""
        return self.pairs.apply(self.value, Y)

    def mean_jacobian(self, Y: FloatArray) -> FloatArray:
        """(n, D, Q) ∂/∂z Σ b_j y_j = Σ_j (2 u_j d_j − b_j g) y_j; the coefficients add up to nothing."""
        gradient = self.pairs.spread(self.gradient())
        coefficient = 2.0 * self.slope[:, None] * self.pairs.delta - self.value[:, None] * gradient
        return np.stack([self.pairs.apply(column, Y) for column in coefficient.T], axis=2)


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of kernels of bandwidth 1 at ``centres`` (m, Q) with positive ``weight`` (m,)."""

    centres: FloatArray
    weight: FloatArray
    profile: Profile

    def log_density(self, Z: FloatArray) -> FloatArray:
        """(n,) log of Σ w_j k(‖z − c_j‖²) / Σ w_j, at most 0; −inf where no kernel reaches."""
        out = np.empty(len(Z))

        def one(part: slice, shares: Shares) -> None:
            out[part] = shares.log_sum - self._log_weight

        self._each_block(Z, one, width=1)
        return out

    def log_density_gradient(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same with its gradient (n, Q), which is nil where no kernel reaches."""
        value, gradient = np.empty(len(Z)), np.empty(np.shape(Z))

        def one(part: slice, shares: Shares) -> None:
            value[part], gradient[part] = shares.log_sum - self._log_weight, shares.gradient()

        self._each_block(Z, one, width=2)
        return value, gradient

    def log_density_hessian(self, Z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The same with its gradient (n, Q) and Hessian (n, Q, Q)."""
        n, Q = np.shape(Z)
        value, gradient, hessian = np.empty(n), np.empty((n, Q)), np.empty((n, Q, Q))

        def one(part: slice, shares: Shares) -> None:
            value[part], gradient[part] = shares.log_sum - self._log_weight, shares.gradient()
            hessian[part] = shares.hessian(gradient[part])

        self._each_block(Z, one, width=2 + Q)
        return value, gradient, hessian

    def mean(self, Z: FloatArray, Y: FloatArray) -> FloatArray:
        """(n, D) kernel regression of the values Y (m, D) of the centres; the nearest centre's out of all reach."""
        out = np.empty((len(Z), Y.shape[1]))

        def one(part: slice, shares: Shares) -> None:
            out[part] = shares.mean(Y)

        self._each_block(Z, one, width=1)
        return out

    def mean_jacobian(self, Z: FloatArray, Y: FloatArray) -> FloatArray:
        """(n, D, Q) its derivative."""
        out = np.empty((len(Z), Y.shape[1], self.centres.shape[1]))

        def one(part: slice, shares: Shares) -> None:
            out[part] = shares.mean_jacobian(Y)

        self._each_block(Z, one, width=2)
        return out

    @cached_property
    def _log_weight(self) -> float:
        return float(np.log(self.weight.sum()))

    @cached_property
    def _tree(self) -> cKDTree:
        return cKDTree(self.centres)

    @cached_property
    def _crowd(self) -> float:
        """Centres in reach of a centre, on average."""
        if self.profile.reach == inf:
            return float(len(self.centres))
        return float(self._tree.count_neighbors(self._tree, self.profile.reach) / len(self.centres))

    def _each_block(self, Z: FloatArray, use: Callable[[slice, Shares], None], width: int) -> None:
        """Hand out shares in blocks of rows whose derived numbers are ``width`` × Q for each pair."""
        Z = np.clip(np.asarray(Z, dtype=np.float64), -_FARTHEST, _FARTHEST)
        size = max(16, int(_PAIRS / (self._crowd * width * Z.shape[1])))
        parts = list(_slices(len(Z), size))
        run = for_each_block if len(Z) >= _ROWS_ON_THREADS else _one_by_one
        run(lambda part: use(part, self._shares(Z[part])), parts)

    def _shares(self, Z: FloatArray) -> Shares:
        pairs, lonely = self._pairs(Z)
        s = np.einsum("pq,pq->p", pairs.delta, pairs.delta)
        base: FloatArray = np.zeros(len(Z))
        if self.profile.reach == inf:
            # Only the Gaussian reaches everywhere, and k(s) / k(t) = k(s − t) holds for it.
            base = pairs.least(s)
            s -= pairs.spread(base)
        weight = pairs.of_centres(self.weight)
        value = weight * self.profile.value(s)
        total = pairs.total(value)
        lonely = lonely | (total == 0.0)
        scale = np.where(lonely, 1.0, total)
        weight /= pairs.spread(scale)
        value /= pairs.spread(scale)
        log_sum = np.log(scale) - 0.5 * base
        if lonely.any():
            alone = pairs.spread(lonely)
            value[alone] = s[alone] == pairs.spread(pairs.least(s))[alone]
            weight[alone] = 0.0
            # Ties at the same distance share what there is.
            value /= pairs.spread(np.where(lonely, pairs.total(value), 1.0))
            log_sum[lonely] = -inf
        return Shares(pairs, self.profile, log_sum, value, weight, s)

    def _pairs(self, Z: FloatArray) -> tuple[Pairs, BoolArray]:
        """The pairs of a block, and which places have no centre in reach; these are paired with the nearest."""
        n, m = len(Z), len(self.centres)
        if self.profile.reach == inf:
            delta = (Z[:, None, :] - self.centres).reshape(n * m, -1)
            return cast(Pairs, _AllPairs(delta, n, m)), np.zeros(n, dtype=bool)
        near = cKDTree(Z).sparse_distance_matrix(self._tree, self.profile.reach, output_type="ndarray")
        place, centre = near["i"], near["j"]
        lonely = np.bincount(place, minlength=n) == 0
        if lonely.any():
            alone = np.flatnonzero(lonely)
            place = np.concatenate([place, alone])
            centre = np.concatenate([centre, np.asarray(self._tree.query(Z[alone])[1])])
        sorted_ = csr_matrix((np.ones(len(place), dtype=np.int8), (place, centre)), shape=(n, m))
        sorted_.sort_indices()
        centre, cuts = sorted_.indices, sorted_.indptr
        delta = np.repeat(Z, np.diff(cuts), axis=0) - self.centres[centre]
        return cast(Pairs, _NearPairs(delta, centre, cuts, m)), lonely


def _slices(n: int, size: int) -> Iterator[slice]:
    return (slice(i, min(i + size, n)) for i in range(0, n, size))


def _one_by_one(work: Callable[[slice], None], parts: list[slice]) -> None:
    for part in parts:
        work(part)
