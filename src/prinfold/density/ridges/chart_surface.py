"""A surface blended from local quadratic patches at nodes, as in Franke and Nielson (1980).

    y(z) = Σ_j b_j(z) (y_j + A_j (z − z_j) + ½ B_j[z − z_j, z − z_j]),    b_j = k_j / Σ k

Kernel regression of the points alone is drawn inwards wherever nodes lie on one side only, as at an edge, or the
surface bends. With tangent planes A planes are reproduced exactly, and with second derivatives B curved surfaces to
leading order. Nodes on a ridge have no noise, so that both can be estimated; how is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.spatial import cKDTree

from prinfold._typing import FloatArray, IntArray
from prinfold.density.ridges.chart_nodes import NeighborGraph
from prinfold.exceptions import InvalidParameterError
from prinfold.files import storable
from prinfold.files.kinds import Kinds, numbers, positive
from prinfold.numerics.radial_kernels import PROFILES

_PROFILE = PROFILES["triweight"]
"""Kernel that is zero from one bandwidth on, so that few patches count, and twice differentiable there."""

_SLOPE_WEIGHT, _WITHIN_WEIGHT, _ACROSS_WEIGHT = 0.01, 1.0, 0.1
"""Weights, as shares of those of the neighbours, that draw slopes to the frame, and second derivatives within the
tangent plane and out of it to zero: nodes at an edge have few neighbours."""

_BLOCK_ROWS = 2048

_TRIED_SPACINGS = (1.5, 2.0, 2.5, 3.0, 4.0)
"""Bandwidths tried, in spacings of the nodes."""

_LEAST_NEIGHBORS = 3.0
"""Effective number of other patches that must count at a node, in the median."""


@storable
@dataclass(frozen=True, eq=False)
class Patches:
    """Patches at ``centers`` (m, d), polynomials of z − z_j with ``coefficients`` (m, P, D); see :func:`monomials`.

    Kernels are zero from ``bandwidth`` on. Where none reaches, the nearest patch goes on.
    """

    _kinds: ClassVar[Kinds] = {
        "centers": numbers("m", "d"),
        "coefficients": numbers("m", "P", "D"),
        "bandwidth": positive,
    }

    centers: FloatArray
    coefficients: FloatArray
    bandwidth: float

    def __post_init__(self) -> None:
        m, d = np.shape(self.centers)
        wanted = m, monomials(np.zeros((1, d))).shape[1]
        if self.coefficients.ndim != 3 or self.coefficients.shape[:2] != wanted or not self.bandwidth > 0:
            raise InvalidParameterError(
                f"{m} patches over {d} coordinates need coefficients of shape {wanted} and a column for each of the "
                f"data, and a bandwidth above 0; got {self.coefficients.shape} and {self.bandwidth}"
            )

    def point(self, Z: FloatArray) -> FloatArray:
        """(n, D) points of the surface."""
        return self._in_blocks(Z, lambda part, pairs: pairs.point())

    def jacobian(self, Z: FloatArray) -> FloatArray:
        """(n, D, d) derivative of the surface."""
        return self._in_blocks(Z, lambda part, pairs: pairs.jacobian())

    def bend(self, Z: FloatArray, R: FloatArray) -> FloatArray:
        """(n, d, d) second derivatives of r·y along directions R (n, D)."""
        return self._in_blocks(Z, lambda part, pairs: pairs.bend(R[part]))

    def _in_blocks(self, Z: FloatArray, of: Callable[[slice, _Blend], FloatArray]) -> FloatArray:
        Z = np.asarray(Z, dtype=np.float64)
        parts = [slice(i, i + _BLOCK_ROWS) for i in range(0, max(len(Z), 1), _BLOCK_ROWS)]
        return np.concatenate([of(part, self._blend(Z[part])) for part in parts])

    def _blend(self, Z: FloatArray) -> _Blend:
        """The patches that count at places (n, d), in an order that does not depend on other places."""
        near = cKDTree(Z).sparse_distance_matrix(self._tree, self.bandwidth, output_type="ndarray")
        place, center = near["i"].astype(np.intp), near["j"].astype(np.intp)
        inside = near["v"] < self.bandwidth
        place, center = place[inside], center[inside]
        lonely = np.flatnonzero(np.bincount(place, minlength=len(Z)) == 0)
        place = np.concatenate([place, lonely])
        center = np.concatenate([center, np.asarray(self._tree.query(Z[lonely])[1], dtype=np.intp)])
        order = np.lexsort((center, place))
        place, center = place[order], center[order]
        gap = Z[place] - self.centers[center]
        return _Blend(gap, self.coefficients[center], place, np.searchsorted(place, np.arange(len(Z))), self.bandwidth)

    @cached_property
    def _tree(self) -> cKDTree:
        return cKDTree(self.centers)


class _Blend:
    """Pairs of points and patches, sorted by point; ``cuts`` (n,) are where those of each begin, at least one each.

    With s = ‖z − z_j‖² / h², b = k / Σ k, u = k' / Σ k and v = k'' / Σ k, the derivative of b_j is
    a_j = 2 u_j d_j − b_j Σ 2 u d in units of h; see :mod:`prinfold.numerics.kernel_mixtures`.
    """

    def __init__(self, gap: FloatArray, patches: FloatArray, place: IntArray, cuts: IntArray, bandwidth: float) -> None:
        self.gap, self.patches, self.place, self.cuts, self.bandwidth = gap, patches, place, cuts, bandwidth
        self.d = gap / bandwidth
        s = np.square(self.d).sum(axis=1)
        value, slope, curvature = (part(s) for part in (_PROFILE.value, _PROFILE.slope, _PROFILE.curvature))
        value = np.where(s < 1.0, value, 1.0)  # the nearest, where none reaches; there it has no slope
        total = self.total(value)[place]
        self.b, self.u, self.v = value / total, slope / total, curvature / total
        self.height = np.einsum("ep,epd->ed", monomials(gap), patches)

    def total(self, x: FloatArray) -> FloatArray:
        """(n, …) sums over the pairs of each place."""
        return np.asarray(np.add.reduceat(x, self.cuts, axis=0)) if len(self.cuts) else x[:0]

    @property
    def share_derivatives(self) -> tuple[FloatArray, FloatArray]:
        """Derivatives a (E, d) of the shares, and g (n, d) = Σ 2 u d."""
        lean = 2.0 * self.u[:, None] * self.d
        g = self.total(lean)
        return lean - self.b[:, None] * g[self.place], g

    def point(self) -> FloatArray:
        """(n, D) Σ b y."""
        return self.total(self.b[:, None] * self.height)

    def jacobian(self) -> FloatArray:
        """(n, D, d) Σ (a y + b ∂y)."""
        a, _ = self.share_derivatives
        slopes = np.einsum("epq,epd->edq", monomial_gradients(self.gap), self.patches)
        return self.total(self.height[:, :, None] * a[:, None, :] / self.bandwidth + self.b[:, None, None] * slopes)

    def bend(self, R: FloatArray) -> FloatArray:
        """(n, d, d) Σ ((M − b Σ M − a gᵀ − g aᵀ) y + a ∂yᵀ + ∂y aᵀ + b ∂²y) along r, with M = 4 v d dᵀ + 2 u I."""
        (a, g), eye = self.share_derivatives, np.eye(self.d.shape[1])
        M = 4.0 * self.v[:, None, None] * _outer(self.d, self.d) + 2.0 * self.u[:, None, None] * eye
        lean = _outer(a, g[self.place])
        M -= self.b[:, None, None] * self.total(M)[self.place] + lean + lean.swapaxes(1, 2)
        along = np.einsum("epd,ed->ep", self.patches, R[self.place])
        mixed = _outer(a, np.einsum("epq,ep->eq", monomial_gradients(self.gap), along)) / self.bandwidth
        own = self.b[:, None, None] * np.einsum("pij,ep->eij", monomial_hessians(len(eye)), along)
        height = np.einsum("ep,ep->e", monomials(self.gap), along) / self.bandwidth**2
        return self.total(M * height[:, None, None] + mixed + mixed.swapaxes(1, 2) + own)


def _outer(A: FloatArray, B: FloatArray) -> FloatArray:
    return np.asarray(A[:, :, None] * B[:, None, :])


# ---------------------------------------------------------------------------------------------------- monomials


def monomials(Z: FloatArray) -> FloatArray:
    """(n, P) 1, all z_i, and all z_i z_j with i ≤ j."""
    first, second = _products(Z.shape[1])
    return np.concatenate([np.ones((len(Z), 1)), Z, Z[:, first] * Z[:, second]], axis=1)


def monomial_gradients(Z: FloatArray) -> FloatArray:
    """(n, P, d) derivatives of the monomials."""
    bends = monomial_hessians(Z.shape[1])
    slopes = np.einsum("pij,nj->npi", bends, Z)  # of products; they are linear in z
    slopes[:, 1 : 1 + Z.shape[1]] += np.eye(Z.shape[1])
    return np.asarray(slopes)


def monomial_hessians(d: int) -> FloatArray:
    """(P, d, d) second derivatives of the monomials."""
    first, second = _products(d)
    bends, rows = np.zeros((1 + d + len(first), d, d)), np.arange(1 + d, 1 + d + len(first))
    bends[rows, first, second] += 1.0
    bends[rows, second, first] += 1.0
    return bends


def _products(d: int) -> tuple[IntArray, IntArray]:
    first, second = np.triu_indices(d)
    return first, second


# ------------------------------------------------------------------------------------------------------ fitting


def fit_patches(graph: NeighborGraph, Z: FloatArray, frame: FloatArray) -> Patches:
    """Patches at nodes with latent coordinates (m, d), whose axes run along ``frame`` (m, D, d)."""
    local = local_patches(graph, Z, frame)
    tried = [share * graph.spacing for share in _TRIED_SPACINGS]
    return Patches(Z, local, choose_bandwidth(Z, local, tried))


def local_patches(graph: NeighborGraph, Z: FloatArray, frame: FloatArray) -> FloatArray:
    """(m, P, D) coefficients of the monomials in z − z_j, from the neighbours of each node.

    The slope lies in the tangent plane. It is found by least squares together with what bends within that plane; what
    bends out of it is found from the heights of the neighbours over it.
    """
    d, links, unit = Z.shape[1], graph.links, graph.spacing
    tangent, way = graph.tangent[links.here], links.way / unit
    gap = (Z[links.there] - Z[links.here]) / unit
    design = monomials(gap)[:, 1:]
    along = np.einsum("edq,ed->eq", tangent, way)
    above = way - np.einsum("edq,eq->ed", tangent, along)
    squares = links.collect(_outer(design, design))
    share = np.maximum(links.total, 1.0)[:, None, None]
    right = links.collect(_outer(design, along))
    right[:, :d] += _SLOPE_WEIGHT * share * (frame.swapaxes(1, 2) @ graph.tangent)
    held = share * np.diag(np.repeat([_SLOPE_WEIGHT, _WITHIN_WEIGHT], [d, design.shape[1] - d]))
    found = np.linalg.solve(squares + held, right) @ graph.tangent.swapaxes(1, 2)
    right = links.collect(_outer(design[:, d:], above))
    held = share * _ACROSS_WEIGHT * np.eye(design.shape[1] - d)
    found[:, d:] += np.linalg.solve(squares[:, d:, d:] + held, right)
    found[:, d:] /= unit
    return np.concatenate([graph.points[:, None], found], axis=1)


def choose_bandwidth(Z: FloatArray, local: FloatArray, bandwidths: Sequence[float]) -> float:
    """The bandwidth with which the patches of other nodes predict each node best.

    The effective number of others, (Σ k)² / Σ k², must not be too small in the median; where nodes are too few for
    that, the widest is taken.
    """
    pairs = cKDTree(Z).query_pairs(max(bandwidths), output_type="ndarray")
    here, there = np.concatenate([pairs, pairs[:, ::-1]]).T
    gap, m = Z[here] - Z[there], len(Z)
    told = np.einsum("ep,epd->ed", monomials(gap), local[there])
    errors = dict[float, float]()
    for bandwidth in bandwidths:
        k = _PROFILE.value(np.square(gap).sum(axis=1) / bandwidth**2)
        total, squares = np.bincount(here, k, m), np.bincount(here, k**2, m)
        seen = total > 0
        number = np.where(seen, total, 0.0) ** 2 / np.where(seen, squares, 1.0)
        share = k / np.where(seen, total, 1.0)[here]
        mean = np.stack([np.bincount(here, share * column, m) for column in told.T], axis=1)
        if np.median(number) >= _LEAST_NEIGHBORS:
            errors[bandwidth] = float(np.square(mean - local[:, 0])[seen].sum(axis=1).mean())
    return min(errors, key=lambda bandwidth: errors[bandwidth]) if errors else max(bandwidths)
