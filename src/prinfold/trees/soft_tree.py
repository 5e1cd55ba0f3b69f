"""SimplePPT: centres that rows are softly assigned to, held together by a minimum spanning tree (Mao et al. 2015).

With rows x_i of weight w_i, centres v_k and edges (a, b) of a graph on these, the objective to be made small is

    f(V) = −σ Σ_i w_i log( Σ_k exp(−‖x_i − v_k‖²/σ) + exp(−ρ²/σ) ) + λ Σ_(a,b) ‖v_a − v_b‖²,

in which the edges are those of the minimum spanning tree of the centres, or are given and stay. σ = 2h² is the scale
of a Gaussian kernel of bandwidth h, λ the stiffness. ρ is the trimming radius: rows farther from all centres pull at
none of them; without one its term is left out. With r_ik ∝ exp(−‖x_i − v_k‖²/σ), the share of row i that belongs to
centre k, the sum of logarithms is bounded by a quadratic in V that touches it, and a step solves

    (diag(Σ_i w_i r_ik) + λ L) V = (Σ_i w_i r_ik x_i)_k,

L being the Laplacian of the edges. Neither this nor a new tree raises f. With a ``reach`` the tree is a forest: an edge
that is longer is none, and costs λ reach² whatever its length.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import minimum_spanning_tree

from prinfold._typing import FloatArray, IntArray
from prinfold.base.starting_points import evenly_by_radius
from prinfold.numerics.distances import squared_distances

_BLOCK_ROWS = 4096

_STAY_SHARE = 1e-10
"""Pull of a centre towards where it is, as a share of the mean pull of rows and neighbours."""

_START_MOVES = 5
"""Times that first centres move to the mean of the rows nearest to them."""


class Assignments(NamedTuple):
    """Sums over softly assigned rows: ``mass`` (K,) and ``sums`` (K, q) of centres, and ``energy``, the first of f."""

    mass: FloatArray
    sums: FloatArray
    energy: float


class TreeState(NamedTuple):
    """Centres (K, q), edges (E, 2) between them, the rows assigned to them, and f."""

    centers: FloatArray
    edges: IntArray
    assigned: Assignments
    objective: float


@dataclass(frozen=True)
class TreeProblem:
    """Rows (n, q) with weights (n,), the bandwidth h, the stiffness λ and the trimming radius ρ.

    With ``edges`` (E, 2) the graph stays as it is; without, it is the minimum spanning tree, of pieces that are farther
    apart than ``reach``.
    """

    rows: FloatArray
    weight: FloatArray
    bandwidth: float
    stiffness: float
    trim: float = np.inf
    edges: IntArray | None = None
    reach: float = np.inf

    def begin(self, centers: FloatArray) -> TreeState:
        """The state at centres (K, q)."""
        edges = spanning_tree(centers, self.reach) if self.edges is None else self.edges
        scale = 2.0 * self.bandwidth**2
        assigned = assign_rows(self.rows, self.weight, centers, scale, self.trim)
        stretch = float(np.square(centers[edges[:, 0]] - centers[edges[:, 1]]).sum())
        if self.edges is None and len(edges) < len(centers) - 1:
            stretch += (len(centers) - 1 - len(edges)) * self.reach**2
        return TreeState(centers, edges, assigned, assigned.energy + self.stiffness * stretch)

    def step(self, state: TreeState) -> TreeState:
        """The next state, whose objective is no larger."""
        matrix = self.stiffness * laplacian(state.edges, len(state.centers))
        matrix[np.diag_indices(len(matrix))] += state.assigned.mass
        return self.begin(_solve(matrix, state.assigned.sums, state.centers))

    def run(self, centers: FloatArray, max_iter: int, tol: float) -> TreeState:
        """The state after steps that lower the objective by ``tol`` of the spread of the rows or more."""
        least = tol * float(self.weight @ np.square(self.rows).sum(axis=1))
        state = self.begin(centers)
        for _ in range(max_iter):
            before, state = state, self.step(state)
            if before.objective - state.objective < least:
                break
        return state

    def on(self, part: IntArray) -> TreeProblem:
        """The same problem with some of the rows."""
        return replace(self, rows=self.rows[part], weight=self.weight[part])

    def with_bandwidth(self, bandwidth: float) -> TreeProblem:
        """The same problem with another bandwidth."""
        return replace(self, bandwidth=bandwidth)


def assign_rows(X: FloatArray, weight: FloatArray, centers: FloatArray, scale: float, trim: float) -> Assignments:
    """Soft assignments of rows to centres, block by block."""

    def one(part: slice) -> Assignments:
        return _assign_block(X[part], weight[part], centers, scale, trim)

    parts = [one(slice(i, i + _BLOCK_ROWS)) for i in range(0, len(X), _BLOCK_ROWS)]
    mass, sums, energy = (sum(each) for each in zip(*parts, strict=True))
    return Assignments(np.asarray(mass), np.asarray(sums), float(energy))


def _assign_block(X: FloatArray, weight: FloatArray, centers: FloatArray, scale: float, trim: float) -> Assignments:
    exponent = squared_distances(X, centers)
    exponent /= -scale
    top = exponent.max(axis=1)
    apart = -(trim**2) / scale
    top = np.maximum(top, apart)
    exponent -= top[:, None]
    share = np.exp(exponent, out=exponent)
    total = share.sum(axis=1) + np.exp(apart - top)
    energy = -scale * float(weight @ (top + np.log(total)))
    share *= (weight / total)[:, None]
    return Assignments(share.sum(axis=0), share.T @ X, energy)


def spanning_tree(centers: FloatArray, reach: float = np.inf) -> IntArray:
    """(≤ K − 1, 2) edges of the minimum spanning tree by distance, but for those longer than ``reach``."""
    if len(centers) < 2:
        return np.empty((0, 2), dtype=np.int64)
    # SciPy takes lengths next to zero for no edge at all; a tree is the same for lengths that are all raised alike.
    gaps, K = squared_distances(centers, centers), len(centers)
    a, b = np.triu_indices(K, 1)
    lengths, cuts = 1.0 + gaps[a, b] / (gaps.max() or 1.0), np.cumsum(np.arange(K, -1, -1)) - K
    found = minimum_spanning_tree(
        csr_matrix((lengths, b, cuts), shape=(K, K))
    )  # of a full table it takes twice as long
    edges = np.stack([np.repeat(np.arange(K), np.diff(found.indptr)), found.indices], axis=1).astype(np.int64)
    return edges[gaps[edges[:, 0], edges[:, 1]] <= reach**2]


def laplacian(edges: IntArray, n: int) -> FloatArray:
    """(n, n) degrees less adjacency of a graph."""
    a, b = edges.T
    matrix = np.zeros((n, n))
    np.add.at(matrix, (a, a), 1.0)
    np.add.at(matrix, (b, b), 1.0)
    np.add.at(matrix, (a, b), -1.0)
    np.add.at(matrix, (b, a), -1.0)
    return matrix


def _solve(matrix: FloatArray, sums: FloatArray, centers: FloatArray) -> FloatArray:
    """Centres that make the bound smallest; a little is added to it, so that those that nothing pulls at stay."""
    stay = _STAY_SHARE * float(np.trace(matrix)) / len(matrix)
    return np.asarray(cho_solve(cho_factor(matrix + stay * np.eye(len(matrix))), sums + stay * centers))


def first_centers(X: FloatArray, weight: FloatArray, count: int) -> FloatArray:
    """(≤ count, q) centres: rows even steps apart by distance from the mean, moved to the mean of those nearest."""
    found = X[evenly_by_radius(X, weight, count)]
    for _ in range(_START_MOVES):
        nearest = squared_distances(X, found).argmin(axis=1)
        total = np.bincount(nearest, weight, minlength=len(found))
        sums = np.stack([np.bincount(nearest, weight * column, minlength=len(found)) for column in X.T], axis=1)
        found = sums[total > 0] / total[total > 0, None]
    return np.asarray(found)


def log_mixture(points: FloatArray, centers: FloatArray, mass: FloatArray, bandwidth: float, D: int) -> FloatArray:
    """(m,) log density in D columns of Gaussians about centres (K, q), as heavy as the rows on each."""
    exponent = squared_distances(points, centers) / (-2.0 * bandwidth**2)
    top = exponent.max(axis=1)
    heavy = np.exp(exponent - top[:, None]) @ (mass / mass.sum())
    volume = D * (0.5 * np.log(2.0 * np.pi) + np.log(bandwidth))
    return np.asarray(top + np.log(np.maximum(heavy, np.finfo(float).tiny)) - volume)
