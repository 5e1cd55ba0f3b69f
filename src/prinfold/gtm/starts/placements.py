"""Where rows of a table lie in latent space before anything is trained: laid out flat, and in the principal plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from prinfold._typing import FloatArray
from prinfold.base.starting_points import EmbeddedRows, distinct_rows, fit_to_domain, principal_coordinates
from prinfold.basis_maps.bases import BoundBasis, GaussianBasis
from prinfold.gtm.starts.unrolling import placements_against_short_cuts, unrolled_placements
from prinfold.latent import LatentSpace
from prinfold.rows.rows import Rows

_USUAL = GaussianBasis((5, 5))
"""The functions that 300 rows of a sheet have, by which its places are judged."""

_FEWEST_ROWS, _FEW_ROWS = 100, 600
"""Rows from which, and up to which, more graphs are tried. Of more rows the usual ones have lain flat."""

_ROLLED = 0.8
"""Share of the squared error of places in the principal plane that unrolled ones leave, to be worth more graphs."""

_RIDGE = 1e-6
"""Regularisation per row: only enough to be well posed."""


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
        """Places by distances along the data, one set for each graph of neighbours; more graphs for short cuts."""
        found = unrolled_placements(self.latent, *self.rows)
        if self._short_cuts(found):
            found += placements_against_short_cuts(self.latent, *self.rows)
        return found

    def _short_cuts(self, found: Sequence[EmbeddedRows]) -> bool:
        """Whether few rows of a sheet are better described by places of a graph with fewer neighbours than with more.

        More neighbours make smoother distances, and are better by 5 to 900 % on sheets that no link cuts short.
        """
        few = len(self.rows[0]) >= _FEWEST_ROWS and self.table.n_rows <= _FEW_ROWS
        if not few or not is_open_rectangle(self.latent) or self.table.n_columns <= self.latent.dimension:
            return False
        basis = _USUAL.bind(self.latent)
        fewer, more = (left_out_error(basis, each) for each in found)
        return fewer < more and fewer < _ROLLED * left_out_error(basis, self.flat)

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


def is_open_rectangle(latent: LatentSpace) -> bool:
    """Whether a latent space is a grid of two axes, neither of which is closed."""
    grid = latent.node_grid
    return grid is not None and len(latent.axes) == 2 and not any(grid.periodic)


def left_out_error(basis: BoundBasis, placed: EmbeddedRows) -> float:
    """Mean squared error of rows that a ridge regression of the others on their places predicts."""
    Phi, weight = basis.features(placed.latent), placed.weight / placed.weight.sum()
    weighted = weight[:, None] * Phi
    factor = cho_factor(weighted.T @ Phi + _RIDGE * np.eye(Phi.shape[1]))
    residual = placed.rows - Phi @ cho_solve(factor, weighted.T @ placed.rows)
    leverage = np.einsum("nm,mn->n", Phi, cho_solve(factor, weighted.T))
    return float(weight @ np.square(residual / np.maximum(1.0 - leverage, 0.01)[:, None]).sum(axis=1))
