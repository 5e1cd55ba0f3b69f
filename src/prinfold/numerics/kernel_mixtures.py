"""Sums over a mixture of equal kernels: log-density with its derivatives, and the coefficients of kernel regression.

At places z with d_j = z − c_j and s_j = ‖d_j‖², every sum here is one over the shares

    b_j = w_j k(s_j) / Σ w k,    u_j = w_j k'(s_j) / Σ w k,    v_j = w_j k''(s_j) / Σ w k.

The mean is the estimator of Nadaraya and Watson, UKR (2) and KMM (3); gradient and Hessian of the density are those of
SCMS 4.3 for any profile k.

A kernel of finite reach is summed over the centres within it only, found by a search; one that reaches everywhere over
all centres, relative to the nearest, so that a place far from all of them has shares too. Sums run along each row in
the same order whatever else is in the batch. Over many centres all this is compiled; the NumPy code here serves few,
and is the reference for the compiled code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import NamedTuple, Protocol, TypeVar, cast

import numpy as np
from scipy.sparse import csr_matrix
from scipy.spatial import cKDTree

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.numerics.finite_checks import require_finite
from prinfold.numerics.kernel_mixtures_truncated import CenterSearch, NearShares, PairLister, make_search
from prinfold.numerics.radial_kernels import Profile
from prinfold.rows.rows import for_each_block, row_slices

P = TypeVar("P")

_BLOCK_PAIRS, _BLOCK_SEARCHED = 2**16, 2**18
"""Pairs of a place and a centre held at once, and pairs that are looked at once for those within reach."""

_ROWS_ON_THREADS = 2**14
"""Places from which blocks go to threads: fewer come from a pass that is on threads itself."""

_COMPILED_FROM = 256
"""Centres from which on loading the compiler pays, which takes as long as a mesh of a surface with so many. The batch
is not asked: a row must not depend on what comes with it."""

_FARTHEST_COORDINATE = 1e100
"""Coordinates beyond this are held there: their squares would be infinite."""


class CenterPairs(Protocol):
    """Pairs of n places with the centres that count there; arrays over pairs are (n, m), or (P,) for near pairs."""

    @property
    def delta(self) -> FloatArray:
        """(Q, …) z − c of every pair."""

    def total(self, x: FloatArray) -> FloatArray:
        """(n,) Σ x over the pairs of each place."""

    def least(self, x: FloatArray) -> FloatArray:
        """(n,) smallest x of each place."""

    def repeat_places(self, a: FloatArray) -> FloatArray:
        """Values (n,) of the places, repeated for their pairs."""

    def take_centers(self, a: FloatArray) -> FloatArray:
        """Values (m,) of the centres, taken for each pair."""

    def apply(self, x: FloatArray, Y: FloatArray) -> FloatArray:
        """(n, D) Σ x_j y_j over the pairs of each place."""


class _AllPairs(NamedTuple):
    """Every place with every centre: arrays over pairs are (n, m)."""

    delta: FloatArray

    def total(self, x: FloatArray) -> FloatArray:
        return np.asarray(x.sum(axis=1))

    def least(self, x: FloatArray) -> FloatArray:
        return np.asarray(x.min(axis=1))

    def repeat_places(self, a: FloatArray) -> FloatArray:
        return a[:, None]

    def take_centers(self, a: FloatArray) -> FloatArray:
        return a

    def apply(self, x: FloatArray, Y: FloatArray) -> FloatArray:
        return np.asarray(x @ Y)


class _NearPairs(NamedTuple):
    """The pairs within reach, sorted; ``cuts`` (n + 1,) are where each place begins, and none is without a pair."""

    delta: FloatArray
    center: IntArray
    cuts: IntArray
    m: int

    def total(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.add.reduceat(x, self.cuts[:-1]))

    def least(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.minimum.reduceat(x, self.cuts[:-1]))

    def repeat_places(self, a: FloatArray) -> FloatArray:
        return np.repeat(a, np.diff(self.cuts))

    def take_centers(self, a: FloatArray) -> FloatArray:
        return np.asarray(a[self.center])

    def apply(self, x: FloatArray, Y: FloatArray) -> FloatArray:
        return np.asarray(csr_matrix((x, self.center, self.cuts), shape=(len(self.cuts) - 1, self.m)) @ Y)


class Shares(NamedTuple):
    """Shares b of the centres at a block of places, with ``log_sum`` (n,) log Σ w k, −inf where nothing is in reach.

    ``value`` is b of the module's formulas; where nothing is in reach the nearest centre has all of it. ``weight`` is
    w / Σ w k, or 0 there, and ``s`` the squared distances; a factor common to all centres of a place is left out.
    """

    pairs: CenterPairs
    profile: Profile
    log_sum: FloatArray
    value: FloatArray
    weight: FloatArray
    s: FloatArray

    @property
    def slope(self) -> FloatArray:
        """u; the Gaussian, which alone reaches everywhere, is its own derivative."""
        return -0.5 * self.value if self.profile.reach == inf else self.weight * self.profile.slope(self.s)

    @property
    def curvature(self) -> FloatArray:
        """v of the module's formulas."""
        return 0.25 * self.value if self.profile.reach == inf else self.weight * self.profile.curvature(self.s)

    def gradient(self) -> FloatArray:
        """(n, Q) ∇ log Σ w k = Σ 2 u_j d_j."""
        slope = 2.0 * self.slope
        return np.stack([self.pairs.total(slope * d) for d in self.pairs.delta], axis=1)

    def relative_hessian(self) -> FloatArray:
        """(n, Q, Q) ∇² Σ w k over Σ w k = Σ (4 v_j d_j d_jᵀ + 2 u_j I)."""
        delta, curvature = self.pairs.delta, 4.0 * self.curvature
        trace, Q = 2.0 * self.pairs.total(self.slope), len(delta)
        out = np.empty((len(trace), Q, Q))
        for i in range(Q):
            bent = curvature * delta[i]
            for j in range(i + 1):
                out[:, i, j] = out[:, j, i] = self.pairs.total(bent * delta[j]) + (trace if i == j else 0.0)
        return out

    def hessian(self, gradient: FloatArray) -> FloatArray:
        """(n, Q, Q) ∇² log Σ w k = Σ (4 v_j d_j d_jᵀ + 2 u_j I) − g gᵀ."""
        return np.asarray(self.relative_hessian() - gradient[:, :, None] * gradient[:, None, :])

    def mean(self, Y: FloatArray) -> FloatArray:
        """(n, D) Σ b_j y_j, the estimator of Nadaraya and Watson."""
        return self.pairs.apply(self.value, Y)

    def mean_jacobian(self, Y: FloatArray) -> FloatArray:
        """(n, D, Q) ∂/∂z Σ b_j y_j = Σ_j a_j y_j."""
        return np.stack([self.pairs.apply(a, Y) for a in self._share_gradients(self.gradient())], axis=2)

    def mean_bend(self, Y: FloatArray, R: FloatArray) -> FloatArray:
        """(n, Q, Q) second derivatives of r·Σ b_j y_j along directions R (n, D).

        With M_j = 4 v_j d_j d_jᵀ + 2 u_j I, that is Σ_j (M_j − b_j Σ_i M_i − a_j gᵀ − g a_jᵀ) r·y_j.
        """
        gradient, whole = self.gradient(), self.relative_hessian()
        share_gradients, delta, spread = self._share_gradients(gradient), self.pairs.delta, self.pairs.repeat_places
        curvature, slope = 4.0 * self.curvature, 2.0 * self.slope
        out = np.empty(whole.shape)
        for i in range(len(delta)):
            for j in range(i + 1):
                x = curvature * delta[i] * delta[j] - self.value * spread(whole[:, i, j])
                x -= share_gradients[i] * spread(gradient[:, j]) + share_gradients[j] * spread(gradient[:, i])
                if i == j:
                    x += slope
                out[:, i, j] = out[:, j, i] = np.einsum("nd,nd->n", self.pairs.apply(x, Y), R)
        return out

    def _share_gradients(self, gradient: FloatArray) -> list[FloatArray]:
        """∂b_j/∂z = a_j = 2 u_j d_j − b_j g, axis by axis; over all centres they add up to nothing."""
        slope = 2.0 * self.slope
        columns = zip(self.pairs.delta, gradient.T, strict=True)
        return [slope * d - self.value * self.pairs.repeat_places(g) for d, g in columns]


class ShareSums(Protocol):
    """Sums over the shares of a block of places; see :class:`Shares`."""

    log_sum: FloatArray

    def gradient(self) -> FloatArray: ...
    def hessian(self, gradient: FloatArray) -> FloatArray: ...
    def mean(self, Y: FloatArray) -> FloatArray: ...
    def mean_jacobian(self, Y: FloatArray) -> FloatArray: ...
    def mean_bend(self, Y: FloatArray, R: FloatArray) -> FloatArray: ...


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of kernels of bandwidth 1 at ``centers`` (m, Q) with positive ``weight`` (m,)."""

    centers: FloatArray
    weight: FloatArray
    profile: Profile

    def log_density(self, Z: FloatArray) -> FloatArray:
        """(n,) log of Σ w_j k(‖z − c_j‖²) / Σ w_j, at most 0; −inf where no kernel reaches."""
        out = np.empty(len(Z))

        def one(part: slice, shares: ShareSums) -> None:
            out[part] = shares.log_sum - self._log_weight

        self._each_block(Z, one, width=1)
        return out

    def log_density_gradient(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(n,) log-density with its gradient (n, Q), which is 0 where no kernel reaches."""
        value, gradient = np.empty(len(Z)), np.empty(np.shape(Z))

        def one(part: slice, shares: ShareSums) -> None:
            value[part], gradient[part] = shares.log_sum - self._log_weight, shares.gradient()

        self._each_block(Z, one, width=2)
        return value, gradient

    def log_density_hessian(self, Z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(n,) log-density with its gradient (n, Q) and Hessian (n, Q, Q)."""
        n, Q = np.shape(Z)
        value, gradient, hessian = np.empty(n), np.empty((n, Q)), np.empty((n, Q, Q))

        def one(part: slice, shares: ShareSums) -> None:
            value[part], gradient[part] = shares.log_sum - self._log_weight, shares.gradient()
            hessian[part] = shares.hessian(gradient[part])

        self._each_block(Z, one, width=2 + Q)
        return value, gradient, hessian

    def mean(self, Z: FloatArray, Y: FloatArray) -> FloatArray:
        """(n, D) kernel regression of the values Y (m, D) of the centres; the nearest centre's out of all reach."""
        out = np.empty((len(Z), Y.shape[1]))

        def one(part: slice, shares: ShareSums) -> None:
            out[part] = shares.mean(Y)

        self._each_block(Z, one, width=1)
        return out

    def mean_jacobian(self, Z: FloatArray, Y: FloatArray) -> FloatArray:
        """(n, D, Q) its derivative."""
        out = np.empty((len(Z), Y.shape[1], self.centers.shape[1]))

        def one(part: slice, shares: ShareSums) -> None:
            out[part] = shares.mean_jacobian(Y)

        self._each_block(Z, one, width=2)
        return out

    def mean_bend(self, Z: FloatArray, Y: FloatArray, R: FloatArray) -> FloatArray:
        """(n, Q, Q) second derivatives of the mean along directions R (n, D)."""
        out = np.empty((len(Z), self.centers.shape[1], self.centers.shape[1]))

        def one(part: slice, shares: ShareSums) -> None:
            out[part] = shares.mean_bend(Y, R[part])

        self._each_block(Z, one, width=3)
        return out

    @cached_property
    def _log_weight(self) -> float:
        return float(np.log(self.weight.sum()))

    @cached_property
    def _axes(self) -> FloatArray:
        """(Q, m) the centres axis by axis."""
        return np.ascontiguousarray(self.centers.T)

    @cached_property
    def _tree(self) -> cKDTree:
        return cKDTree(self.centers)

    @cached_property
    def _mean_neighbors(self) -> float:
        """Centres in reach of a centre, on average."""
        if self.profile.reach == inf:
            return float(len(self.centers))
        return float(self._tree.count_neighbors(self._tree, self.profile.reach) / len(self.centers))

    @cached_property
    def _search(self) -> CenterSearch | None:
        """The search for the centres that count, where there are many; else None."""
        return make_search(self.centers, self.weight, self.profile) if len(self.centers) >= _COMPILED_FROM else None

    def _each_block(self, Z: FloatArray, use: Callable[[slice, ShareSums], None], width: int) -> None:
        """Hand out shares in blocks of rows; by NumPy their derived numbers are ``width`` × Q for each pair."""
        Z = np.clip(np.asarray(Z, dtype=np.float64), -_FARTHEST_COORDINATE, _FARTHEST_COORDINATE)
        run = for_each_block if len(Z) >= _ROWS_ON_THREADS else _run_serially
        if self._search is not None and len(Z):
            require_finite("places of a density", Z, "leave out the rows that have no place")
            Z, centers = np.ascontiguousarray(Z), np.ascontiguousarray(self.centers, dtype=np.float64)

            def near(work: tuple[slice, PairLister]) -> None:
                part, listed = work
                use(part, NearShares(Z[part], centers, self.weight, self.profile, listed()))

            run(near, self._search.parts(Z))
        else:
            most = min(_BLOCK_PAIRS / (self._mean_neighbors * width), _BLOCK_SEARCHED / len(self.centers))
            size = max(16, int(most / Z.shape[1]))
            run(lambda part: use(part, cast(ShareSums, self._shares(Z[part]))), row_slices(len(Z), size))

    def _shares(self, Z: FloatArray) -> Shares:
        pairs, lonely = self._pairs(Z)
        s = np.square(pairs.delta).sum(axis=0)
        base: FloatArray = np.zeros(len(Z))
        if self.profile.reach == inf:
            # Only the Gaussian reaches everywhere, and k(s) / k(t) = k(s − t) holds for it.
            base = pairs.least(s)
            s -= pairs.repeat_places(base)
        value = self.profile.value(s)
        value *= pairs.take_centers(self.weight)
        total = pairs.total(value)
        lonely = lonely | (total == 0.0)
        scale = np.where(lonely, 1.0, total)
        value /= pairs.repeat_places(scale)
        weight = pairs.take_centers(self.weight) / pairs.repeat_places(scale)
        log_sum = np.log(scale) - 0.5 * base
        if lonely.any():
            alone = np.broadcast_to(pairs.repeat_places(lonely), s.shape)
            value[alone] = (s == pairs.repeat_places(pairs.least(s)))[alone]
            weight[alone] = 0.0
            # Ties at the same distance share what there is.
            value /= pairs.repeat_places(np.where(lonely, pairs.total(value), 1.0))
            log_sum[lonely] = -inf
        return Shares(pairs, self.profile, log_sum, value, weight, s)

    def _pairs(self, Z: FloatArray) -> tuple[CenterPairs, BoolArray]:
        """The pairs of a block, and which places have no centre in reach; these are paired with the nearest."""
        n, m = len(Z), len(self.centers)
        if self.profile.reach == inf:
            delta = np.ascontiguousarray(Z.T)[:, :, None] - self._axes[:, None, :]
            return cast(CenterPairs, _AllPairs(delta)), np.zeros(n, dtype=bool)
        # With so few centres all distances cost less than a search.
        delta = np.ascontiguousarray(Z.T)[:, :, None] - self._axes[:, None, :]
        near = np.square(delta).sum(axis=0) <= self.profile.reach**2
        lonely = ~near.any(axis=1)
        near[lonely, np.asarray(self._tree.query(Z[lonely])[1])] = True
        cuts = np.concatenate([[0], np.cumsum(np.count_nonzero(near, axis=1))])
        return cast(CenterPairs, _NearPairs(delta[:, near], np.nonzero(near)[1], cuts, m)), lonely


@dataclass(frozen=True, eq=False)
class WideMixture:
    """The log-density of a mixture whose kernels have a ``bandwidth``; ``mixture`` is the same in units of that."""

    mixture: Mixture
    bandwidth: float

    def log_density(self, Z: FloatArray) -> FloatArray:
        """(n,) log of Σ w_j k(‖z − c_j‖² / h²) / Σ w_j."""
        return self.mixture.log_density(Z / self.bandwidth)

    def log_density_gradient(self, Z: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(n,) log-density with its gradient (n, Q)."""
        value, gradient = self.mixture.log_density_gradient(Z / self.bandwidth)
        return value, gradient / self.bandwidth

    def log_density_hessian(self, Z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(n,) log-density with its gradient (n, Q) and Hessian (n, Q, Q)."""
        value, gradient, hessian = self.mixture.log_density_hessian(Z / self.bandwidth)
        return value, gradient / self.bandwidth, hessian / self.bandwidth**2


def _run_serially(work: Callable[[P], None], parts: Sequence[P]) -> None:
    for part in parts:
        work(part)
