"""More basis functions where rows are rolled up: a roll that is laid out flat is longer, and bends more often.

The usual number goes by the number of rows. Of 300 rows five functions along an axis are enough for a cap and too few
for a roll, and with more of them everywhere caps would follow their noise. Once rows have places by distances along the
data, a regression on those tells: each row is predicted from the others, with the usual number and with more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from prinfold.base.starting_points import EmbeddedRows
from prinfold.basis_maps.bases import GaussianBasis
from prinfold.gtm.starts.placements import Unroller, is_open_rectangle, left_out_error
from prinfold.latent import LatentSpace
from prinfold.rows.rows import Rows

_FUNCTIONS_PER_AXIS = 8
"""Functions along each of two axes that are tried: as many as 600 rows have by default."""

_ROWS_PER_FUNCTION = 2
"""Rows for each function that there must be, at least."""

_MOST_UNROLLED_ERROR_SHARE = 0.6
"""Share of the squared error of places in the principal plane that unrolled ones leave, to be worth more functions."""

_MOST_ERROR_SHARE = 0.75
"""Share of the squared error with the usual functions that more of them leave, at most. On swiss rolls and S-sheets of
300 rows in little noise it is 0.3 to 0.75, on other shapes 0.7 to 1.5."""

_MOST_LOOK_ERROR_SHARE = 0.95
"""The same share by a look at the places, below which they are found more exactly."""


def enough_functions(
    unroll: Unroller, most_rows: int, basis: GaussianBasis, latent: LatentSpace, rows: Rows
) -> GaussianBasis:
    """The basis, or one with more functions where rows are rolled up and these follow them much better."""
    more = _with_more(basis, latent)
    if more is None or not rows.at_hand or rows.gaps or rows.n_columns <= latent.dimension:
        return basis
    places = unroll(latent, rows, most_rows)
    if len(places.rows[0]) < _ROWS_PER_FUNCTION * _FUNCTIONS_PER_AXIS**latent.dimension:
        return basis
    few = basis.bind(latent)
    looked = min(left_out_error(few, each) for each in places.looks)
    if looked > _MOST_UNROLLED_ERROR_SHARE * left_out_error(few, places.flat):
        return basis
    many = more.bind(latent)

    def left(several: list[EmbeddedRows]) -> float:
        """Share of the squared error with the usual functions that more of them leave."""
        return min(left_out_error(many, each) for each in several) / min(left_out_error(few, each) for each in several)

    return more if left(places.looks) < _MOST_LOOK_ERROR_SHARE and left(places.unrolled) < _MOST_ERROR_SHARE else basis


def _with_more(basis: GaussianBasis, latent: LatentSpace) -> GaussianBasis | None:
    """The basis with more functions along each axis, if it has fewer and the space is an open grid of two axes."""
    if not is_open_rectangle(latent):
        return None
    enough = max(cast(tuple[int, ...], basis.shape)) >= _FUNCTIONS_PER_AXIS
    return None if enough else replace(basis, shape=(_FUNCTIONS_PER_AXIS, _FUNCTIONS_PER_AXIS))
