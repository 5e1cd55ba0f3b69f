"""Penalised cubic splines on [0, 1], open or closed to a ring, in time that grows with rows and cells alone.

With B the (n, m) values of m cubic B-splines on K even cells, the coefficients C (m, D) minimise

    Σ_i w_i ‖x_i − B_i C‖² / Σ_i w_i + λ ∫ ‖f''(u)‖² du,    f(u) = B(u) C,

(O'Sullivan, 1986), so that (G + λΩ) C = R with G = BᵀWB, R = BᵀWX, W = diag(w) / Σw and Ω = ∫ B''B''ᵀ. The matrices are
banded; on a ring they are so too once nodes are numbered from both ends, 0, m − 1, 1, m − 2, … . The trace of the hat
matrix is that of (G + λΩ)⁻¹G, which only needs the inverse within the band.

SciPy's ``make_smoothing_spline`` has a knot at every row, no rings and no weights in its choice of λ: for one λ and
three columns it takes 25 times (300 rows) to 100 times (2000 rows) as long as forty of them take here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.numerics.banded_matrices import fold_order
from prinfold.numerics.finite_checks import LARGEST, require_finite

FEWEST_RING_CELLS = 8
"""Cells that a ring needs so that no two B-splines meet twice."""


@dataclass(frozen=True, eq=False)
class SplineMoments:
    """Sufficient sums of rows for smoothing: the band of G (p + 1, m), R (m, D), and Σ w‖x‖² / Σw."""

    gram: FloatArray
    products: FloatArray
    square: float


@dataclass(frozen=True)
class SplineSpace:
    """Cubic splines on ``n_cells`` even cells of [0, 1]; those of a ``closed`` one agree at 0 and 1."""

    n_cells: int
    closed: bool

    @property
    def n_functions(self) -> int:
        """m, how many B-splines there are."""
        return self.n_cells if self.closed else self.n_cells + 3

    @property
    def reach(self) -> int:
        """p, the half width of the band."""
        return 6 if self.closed else 3

    @property
    def place(self) -> IntArray:
        """(m,) row of the band that each B-spline has."""
        return fold_order(self.n_functions) if self.closed else np.arange(self.n_functions)

    @property
    def penalty(self) -> FloatArray:
        """(p + 1, m) band of Ω."""
        return _penalty(self.n_cells, self.closed)

    def moments(self, u: FloatArray, X: FloatArray, weight: FloatArray) -> SplineMoments:
        """Sums over rows X (n, D) at places u (n,) in [0, 1]."""
        from prinfold.numerics._penalized_splines_jit import add_moments

        require_finite("places along a curve", np.asarray(u), "rescale the columns of X", LARGEST)
        X, share = np.ascontiguousarray(X, dtype=np.float64), np.asarray(weight / weight.sum(), dtype=np.float64)
        gram, products = np.zeros((self.reach + 1, self.n_functions)), np.zeros((self.n_functions, X.shape[1]))
        add_moments(np.asarray(u, dtype=np.float64), X, share, self.n_cells, self.place, gram, products)
        return SplineMoments(gram, products, float(share @ np.einsum("nd,nd->n", X, X)))

    def traces(self, moments: SplineMoments, penalties: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean squared residual (k,) and trace of the hat matrix (k,) at each of k penalties λ."""
        from prinfold.numerics._penalized_splines_jit import score_penalties

        residual, trace = np.empty(len(penalties)), np.empty(len(penalties))
        products = moments.products
        if products.shape[1] > len(products):  # what is judged depends on RRᵀ alone, for which m columns are enough
            products = np.ascontiguousarray(np.linalg.qr(products.T)[1].T)
        score_penalties(moments.gram, self.penalty, products, np.asarray(penalties, dtype=np.float64), residual, trace)
        return np.maximum(moments.square + residual, 0.0), trace

    def coefficients(self, moments: SplineMoments, penalty: float) -> FloatArray:
        """(m, D) C at one penalty λ."""
        from prinfold.numerics._penalized_splines_jit import solve_band

        return solve_band(moments.gram + penalty * self.penalty, moments.products)[self.place]

    def values(self, u: FloatArray, coefficients: FloatArray) -> FloatArray:
        """(n, D) f at places u (n,), from C in the order of the B-splines."""
        cell = np.clip((u * self.n_cells).astype(np.int64), 0, self.n_cells - 1)
        t = u * self.n_cells - cell
        parts = (1 - t) ** 3, 3 * t**3 - 6 * t**2 + 4, -3 * t**3 + 3 * t**2 + 3 * t + 1, t**3
        names = np.mod(cell[:, None] + np.arange(4), self.n_functions)
        return np.asarray(np.einsum("kn,nkd->nd", parts, coefficients[names]) / 6.0)


@lru_cache(maxsize=64)
def _penalty(n_cells: int, closed: bool) -> FloatArray:
    """Cell by cell: second derivatives there are straight, from (1, −2, 1, 0) to (0, 1, −2, 1) times K²."""
    space = SplineSpace(n_cells, closed)
    begin, end = np.array([1.0, -2.0, 1.0, 0.0]), np.array([0.0, 1.0, -2.0, 1.0])
    cross = np.outer(begin, end)
    cell = (2 * np.outer(begin, begin) + cross + cross.T + 2 * np.outer(end, end)) / 6.0 * float(n_cells) ** 3
    band = np.zeros((space.reach + 1, space.n_functions))
    first = np.arange(n_cells)
    for a in range(4):
        for b in range(4):
            i = space.place[np.mod(first + a, space.n_functions)]
            j = space.place[np.mod(first + b, space.n_functions)]
            lower = i >= j
            np.add.at(band, (np.abs(i - j)[lower], j[lower]), cell[a, b])
    band.setflags(write=False)
    return band
