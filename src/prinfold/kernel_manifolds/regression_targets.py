"""Targets of a kernel regression on latent points: rows of numbers, or rows known by their inner products alone.

Row i is predicted by ŷ_i = Σ_j w_j k_ij y_j / S_i with S_i = Σ_j w_j k_ij, and r_i = ŷ_i − y_i. All that a gradient
needs of the target are the products r_i·y_j, so that a matrix of inner products does instead of the rows themselves
(Meinicke et al. 2005, appendix B, where M holds those products).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from prinfold._typing import FloatArray
from prinfold.numerics.cell_lists import CellPairs


class RowPredictions(NamedTuple):
    """Predictions ŷ_i of a block of b rows, by their residuals r_i = ŷ_i − y_i."""

    mass: FloatArray
    """(b,) Σ_{j≠i} w_j k_ij."""
    total: FloatArray
    """(b,) S_i, which is the mass alone where the row itself is left out."""
    error: FloatArray
    """(b,) ‖r_i‖²."""
    along: FloatArray
    """(b,) r_i·ŷ_i."""
    residual: FloatArray
    """In the target's own form: (b, D) r_i, or r_i·y_j of all pairs or of those within reach."""


class Target(Protocol):
    """A table to predict; ``k`` (b, n) are kernel values of some rows, with 0 for the row itself."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def n_columns(self) -> int:
        """Numbers in a row; 0 where rows are known by inner products alone."""

    @property
    def gram(self) -> GramTarget:
        """The same rows by their inner products."""

    def load(self, weight: FloatArray) -> FloatArray:
        """Table of summands that kernel values are multiplied with in :meth:`fit` and :meth:`pull`."""

    def fit(self, k: FloatArray, loaded: FloatArray, weight: FloatArray, rows: slice, alone: bool) -> RowPredictions:
        """Predict some rows from the others ``alone``, or from themselves too."""

    def pull(
        self,
        fit: RowPredictions,
        loaded: FloatArray,
        weight: FloatArray,
        scale: FloatArray,
        shift: FloatArray,
        out: FloatArray,
    ) -> None:
        """(b, n) ∂R/∂k_ij = w_j (scale_i (r_i·y_j − r_i·ŷ_i) + shift_i), written to ``out``."""

    def fit_near(
        self, v: FloatArray, pairs: CellPairs, own: FloatArray, products: FloatArray, wanted: bool
    ) -> RowPredictions:
        """:meth:`fit` from (P,) kernel values of some pairs times weights w_j, and (b,) the row's own weight in S_i.

        ``products`` (P,) becomes r_i·y_j of each pair where these are wanted, and is the residual of the result.
        """


@dataclass(frozen=True)
class DataTarget:
    """Rows y_i of a table (n, D), centred by the caller."""

    Y: FloatArray

    @property
    def n_rows(self) -> int:
        return len(self.Y)

    @property
    def n_columns(self) -> int:
        return int(self.Y.shape[1])

    @cached_property
    def gram(self) -> GramTarget:
        return GramTarget(self.Y @ self.Y.T)

    def load(self, weight: FloatArray) -> FloatArray:
        """(n, D + 1) w_j (y_j, 1): the sum of weights is one more column of the same product."""
        return np.column_stack([self.Y, np.ones(len(self.Y))]) * weight[:, None]

    def fit(self, k: FloatArray, loaded: FloatArray, weight: FloatArray, rows: slice, alone: bool) -> RowPredictions:
        sums = k @ loaded
        mass = sums[:, -1].copy()
        if not alone:
            sums += loaded[rows]
        total = sums[:, -1]
        predicted = sums[:, :-1] * inverse(total)[:, None]
        residual = predicted - self.Y[rows]
        error, along = _row_dots(residual, residual), _row_dots(residual, predicted)
        return RowPredictions(mass, total, error, along, residual)

    def pull(
        self,
        fit: RowPredictions,
        loaded: FloatArray,
        weight: FloatArray,
        scale: FloatArray,
        shift: FloatArray,
        out: FloatArray,
    ) -> None:
        outer = np.column_stack([fit.residual * scale[:, None], shift - scale * fit.along])
        np.dot(outer, loaded.T, out=out)  # loaded is w_j (y_j, 1)

    def fit_near(
        self, v: FloatArray, pairs: CellPairs, own: FloatArray, products: FloatArray, wanted: bool
    ) -> RowPredictions:
        from prinfold.numerics._cell_lists_jit import near_fits

        numbers = np.empty((4, len(pairs.rows)))
        near_fits(v, *pairs, self._rows, own, wanted, numbers, products)
        mass, total, error, along = numbers
        return RowPredictions(mass, total, error, along, products)

    @cached_property
    def _rows(self) -> FloatArray:
        return np.ascontiguousarray(self.Y, dtype=np.float64)


@dataclass(frozen=True)
class GramTarget:
    """Rows known by inner products G (n, n) of their centred images; as costly as a table of n/2 columns.

    Any matrix that is conditionally positive semi-definite will do, minus half of squared distances for one:
    predictions are averages, so that what they do not determine drops out. A row without neighbours is predicted by
    the origin of G, which should be the mean.
    """

    G: FloatArray
    n_columns: int = 0

    @property
    def n_rows(self) -> int:
        return len(self.G)

    @property
    def gram(self) -> GramTarget:
        return self

    def load(self, weight: FloatArray) -> FloatArray:
        """(n, n) w_j G_jl; G itself where all weights are one."""
        return self._matrix if (weight == 1.0).all() else self._matrix * weight[:, None]

    def fit(self, k: FloatArray, loaded: FloatArray, weight: FloatArray, rows: slice, alone: bool) -> RowPredictions:
        mass, products = k @ weight, k @ loaded
        total, own = mass, 0.0 if alone else weight[rows]
        if not alone:
            total = mass + own
            products += loaded[rows]
        share = inverse(total)
        products *= share[:, None]
        products -= self.G[rows]  # G (B − I), row by row: r_i·y_j
        itself = products[np.arange(len(k)), np.arange(rows.start, rows.stop)]
        along = (np.einsum("ij,ij,j->i", k, products, weight) + own * itself) * share
        return RowPredictions(mass, total, np.maximum(along - itself, 0.0), along, products)

    def pull(
        self,
        fit: RowPredictions,
        loaded: FloatArray,
        weight: FloatArray,
        scale: FloatArray,
        shift: FloatArray,
        out: FloatArray,
    ) -> None:
        np.multiply(fit.residual, scale[:, None], out=out)
        out += (shift - scale * fit.along)[:, None]
        out *= weight

    def fit_near(
        self, v: FloatArray, pairs: CellPairs, own: FloatArray, products: FloatArray, wanted: bool
    ) -> RowPredictions:
        from prinfold.numerics._cell_lists_jit import near_gram_fits

        numbers = np.empty((4, len(pairs.rows)))  # which take the products, wanted or not
        near_gram_fits(v, *pairs, self._matrix, own, numbers, products)
        mass, total, error, along = numbers
        return RowPredictions(mass, total, error, along, products)

    @cached_property
    def _matrix(self) -> FloatArray:
        return np.ascontiguousarray(self.G, dtype=np.float64)


def inverse(total: FloatArray) -> FloatArray:
    """1 / total, and 0 where there is nothing to divide by."""
    return np.divide(1.0, total, out=np.zeros(len(total)), where=total > 0)


def _row_dots(A: FloatArray, B: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->i", A, B))
