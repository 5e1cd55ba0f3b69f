"""More basis functions where rows are rolled up: a roll that is laid out flat is longer, and bends more often.

The usual number goes by the number of rows. Of 300 rows five functions along an axis are enough for a cap and too few
for a roll, and with more of them everywhere caps would follow their noise. Once rows have places by distances along the
data, a regression on those tells: each row is predicted from the others, with the usual number and with more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from prinfold._typing import FloatArray
from prinfold.base.starting_points import EmbeddedRows, distinct_rows, fit_to_domain, principal_coordinates
from prinfold.basis_maps.bases import BoundBasis, GaussianBasis
from prinfold.gtm.starts.unrolling import unrolled_placements
from prinfold.latent import LatentSpace
from prinfold.rows.rows import Rows

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


@dataclass(frozen=True)
class Placements:
    """At most so many different rows of a table, and where they lie in a latent space."""

    latent: LatentSpace
    table: Rows
    most: int

    @cached_property
    def rows(self) -> tuple[FloatArray, FloatArray]:
        """Different rows (m, D), sorted, and their weights (m,)."""
        return distinct_rows(self.table, np.random.default_rng(0), self.most)

    @cached_property
    def unrolled(self) -> list[EmbeddedRows]:
        """Places by distances along the data, one set for each graph of neighbours."""
        return unrolled_placements(self.latent, *self.rows)

    @cached_property
    def flat(self) -> EmbeddedRows:
        """Places in the principal plane."""
        plane = principal_coordinates(*self.rows, self.latent.n_embedded)
        return EmbeddedRows(fit_to_domain(self.latent, plane), *self.rows)


@dataclass
class Unroller:
    """Placements of rows; the last are kept, for whoever asks for the same again."""

    last: Placements | None = None

    def __call__(self, latent: LatentSpace, rows: Rows, most: int) -> Placements:
        """Where at most so many of the rows lie."""
        last = self.last
        if last is None or (last.latent, last.most) != (latent, most) or last.table is not rows:
            last = self.last = Placements(latent, rows, most)
        return last


def enough_functions(
    unroll: Unroller, most_rows: int, basis: GaussianBasis, latent: LatentSpace, rows: Rows
) -> GaussianBasis:
    """The basis, or one with more functions where rows are rolled up and these follow them much better."""
    more = _with_more(basis, latent)
    if more is None or not rows.at_hand or rows.gaps or rows.n_columns <= latent.dimension:
        return basis
    places = unroll(latent, rows, most_rows)
    if len(places.rows[0]) < _ROWS_PER_FUNCTION * _MORE**latent.dimension:
        return basis
    few = basis.bind(latent)
    usual = min(left_out_error(few, each) for each in places.unrolled)
    if usual > _ROLLED * left_out_error(few, places.flat):
        return basis
    many = more.bind(latent)
    return more if min(left_out_error(many, each) for each in places.unrolled) < _BETTER * usual else basis


def _with_more(basis: GaussianBasis, latent: LatentSpace) -> GaussianBasis | None:
    """The basis with more functions along each axis, if it has fewer and the space is an open grid of two axes."""
    grid = latent.node_grid
    if grid is None or len(latent.axes) != 2 or any(grid.periodic):
        return None
    return replace(basis, shape=(_MORE, _MORE)) if max(cast(tuple[int, ...], basis.shape)) < _MORE else None


def left_out_error(basis: BoundBasis, placed: EmbeddedRows) -> float:
    """Mean squared error of rows that a ridge regression of the others on their places predicts."""
    Phi, weight = basis.features(placed.latent), placed.weight / placed.weight.sum()
    weighted = weight[:, None] * Phi
    factor = cho_factor(weighted.T @ Phi + _RIDGE * np.eye(Phi.shape[1]))
    residual = placed.rows - Phi @ cho_solve(factor, weighted.T @ placed.rows)
    leverage = np.einsum("nm,mn->n", Phi, cho_solve(factor, weighted.T))
    return float(weight @ np.square(residual / np.maximum(1.0 - leverage, 0.01)[:, None]).sum(axis=1))
