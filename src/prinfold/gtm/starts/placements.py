"""Places of rows in latent space before anything is trained: laid out flat, and in the principal plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from prinfold._typing import FloatArray
from prinfold.base.starting_points import EmbeddedRows, distinct_rows, fit_to_domain, principal_coordinates
from prinfold.basis_maps.bases import BoundBasis, GaussianBasis
from prinfold.gtm.starts.unrolling import ALONG_PLANES, OTHERS, Graphs, LinkedRows, link_rows
from prinfold.latent import LatentSpace
from prinfold.rows.rows import Rows

_USUAL = GaussianBasis((5, 5))
"""The functions that 300 rows of a sheet have, by which graphs are judged."""

_FEWEST_ROWS, _MOST_ROWS = 100, 600
"""Rows from which, and up to which, more graphs are tried. Of more rows the usual ones mostly lie flat."""

_CUT_SHORT_ERROR_SHARE = 1.1
"""Share of the error of the graph with more neighbours that the one with fewer leaves, by few landmarks, below which
links may cut from arm to arm. Above it fewer neighbours were better in none of 54 tables."""

_MOST_UNROLLED_ERROR_SHARE = 0.8
"""Share of the squared error of places in the principal plane that unrolled ones leave, to be worth more graphs."""

_FIRST_LANDMARKS = 40
"""Landmarks of a look at some hundred rows of a sheet: a comparison with the plane needs no more."""

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
        """Places by distances along the data, one set for each graph of neighbours; more graphs for short cuts.

        More neighbours make smoother distances, and places from which rows are better predicted, on sheets that no link
        cuts short. Where it is the other way round few rows are tried with neighbours along their local planes, and if
        that pays with others.
        """
        found = [each.places(self.latent) for each in self._linked]
        if not self._few_of_a_sheet or self.table.n_rows > _MOST_ROWS:
            return found
        fewer, more = map(self._error, found)
        if fewer < more:
            found += self._by_graphs(ALONG_PLANES)
            if min(map(self._error, found)) < _MOST_UNROLLED_ERROR_SHARE * self._error(self.flat):
                found += self._by_graphs(OTHERS)
        return found

    @cached_property
    def looks(self) -> list[EmbeddedRows]:
        """Places that are good enough to tell whether rows are rolled up at all.

        Of some hundred rows of a sheet those by ways from a few landmarks, unless links may cut short.
        """
        if not self._few_of_a_sheet:
            return self.unrolled
        found = [each.places(self.latent, _FIRST_LANDMARKS) for each in self._linked]
        fewer, more = map(self._error, found)
        cut_short = self.table.n_rows <= _MOST_ROWS and fewer < _CUT_SHORT_ERROR_SHARE * more
        return self.unrolled if cut_short else found

    @cached_property
    def _few_of_a_sheet(self) -> bool:
        sheet = is_open_rectangle(self.latent) and self.table.n_columns > self.latent.dimension
        return sheet and _FEWEST_ROWS <= len(self.rows[0]) <= _MOST_ROWS

    @cached_property
    def _linked(self) -> list[LinkedRows]:
        return link_rows(self.latent.dimension, *self.rows)

    def _by_graphs(self, several: Sequence[Graphs]) -> list[EmbeddedRows]:
        return [each.places(self.latent) for each in link_rows(self.latent.dimension, *self.rows, several)]

    def _error(self, placed: EmbeddedRows) -> float:
        """Mean squared error of rows left out, with as many functions as 300 rows of a sheet have."""
        return left_out_error(_USUAL.bind(self.latent), placed)

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
        """Places of at most so many of the rows."""
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
