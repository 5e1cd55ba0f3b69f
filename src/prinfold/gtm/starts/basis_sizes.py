"""More basis functions where rows are rolled up: a roll that is laid out flat is longer, and bends more often.

The usual number goes by the number of rows. Of 300 rows five functions along an axis are enough for a cap and too few
for a roll, and with more of them everywhere caps would follow their noise. Once rows have places by distances along the
data, a regression on those tells: each row is predicted from the others, with the usual number and with more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from prinfold._typing import FloatArray
from prinfold.base.starting_points import EmbeddedRows, distinct_rows, fit_to_domain, principal_coordinates
from prinfold.basis_maps.bases import Basis, GaussianBasis
from prinfold.gtm.starts.unrolling import unrolled_placements
from prinfold.latent import LatentSpace, Lattice
from prinfold.rows.rows import Rows, blas_on_one_thread

_MORE = 8
"""Functions along each of two axes that are tried: as many as 600 rows have by default."""

_ROWS_PER_FUNCTION = 2
"""Rows for each function that there must be, at least."""

_RIDGE = 1e-6
"""Regularisation per row: only enough to be well posed."""

_ROLLED = 0.6
"""Share of the squared error of places in the principal plane that unrolled ones leave, to be worth more functions."""

_BETTER = 0.75
"""Share of the squared error with the usual functions that more of them leave, at most. On swiss rolls and S-sheets of
300 rows in little noise it is 0.3 to 0.75, on other shapes 0.7 to 1.5."""


class Placements(NamedTuple):
    """Different rows, and where they lie by distances along the data."""

    rows: FloatArray
    places: list[EmbeddedRows]


@dataclass
class Unroller:
    """Placements of rows by distances along the data; the last are kept, for whoever asks for the same again."""

    last: Placements | None = None

    def __call__(self, latent: LatentSpace, unique: FloatArray, weight: FloatArray) -> list[EmbeddedRows]:
        """Latent coordinates of different rows, one set for each graph of neighbours."""
        if self.last is None or not np.array_equal(self.last.rows, unique):
            with blas_on_one_thread():
                self.last = Placements(unique, unrolled_placements(latent, unique, weight))
        return self.last.places


def enough_functions(
    unroll: Unroller, most_rows: int, basis: GaussianBasis, latent: LatentSpace, rows: Rows
) -> GaussianBasis:
    """The basis, or one with more functions where rows are rolled up and these follow them much better."""
    more = _with_more(basis, latent)
    if more is None or not rows.at_hand or rows.gaps or rows.n_columns <= latent.dimension:
        return basis
    unique, weight = distinct_rows(rows, np.random.default_rng(0), most_rows)
    if len(unique) < _ROWS_PER_FUNCTION * _MORE**latent.dimension:
        return basis
    places = unroll(latent, unique, weight)
    flat = EmbeddedRows(fit_to_domain(latent, principal_coordinates(unique, weight, latent.dimension)), unique, weight)
    usual = min(left_out_error(basis, latent, each) for each in places)
    if usual > _ROLLED * left_out_error(basis, latent, flat):
        return basis
    return more if min(left_out_error(more, latent, each) for each in places) < _BETTER * usual else basis


def _with_more(basis: GaussianBasis, latent: LatentSpace) -> GaussianBasis | None:
    """The basis with more functions along each axis, if it has fewer and the space is an open grid of two axes."""
    if len(latent.axes) != 2 or any(cast(Lattice, latent).periodic):
        return None
    return replace(basis, shape=(_MORE, _MORE)) if max(cast(tuple[int, ...], basis.shape)) < _MORE else None


def left_out_error(basis: Basis, latent: LatentSpace, placed: EmbeddedRows) -> float:
    """Mean squared error of rows that a ridge regression of the others on their places predicts."""
    Phi, weight = basis.bind(latent).features(placed.latent), placed.weight / placed.weight.sum()
    weighted = weight[:, None] * Phi
    factor = cho_factor(weighted.T @ Phi + _RIDGE * np.eye(Phi.shape[1]))
    residual = placed.rows - Phi @ cho_solve(factor, weighted.T @ placed.rows)
    leverage = np.einsum("nm,mn->n", Phi, cho_solve(factor, weighted.T))
    return float(weight @ np.square(residual / np.maximum(1.0 - leverage, 0.01)[:, None]).sum(axis=1))
