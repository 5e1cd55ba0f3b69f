"""The root of a curve: the place in data space that its arc length begins near, such as that of a root cell."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from prinfold._typing import FloatArray
from prinfold.curves.arc_curve import ArcCurve
from prinfold.exceptions import DegenerateWarning, InvalidDataError
from prinfold.numerics.polylines import nearest_on_polyline

_REMOTE_FACTOR = 2.0
"""Distance of a root from the curve, in units of the largest of a row, from which on it is in other units."""

_NEAR_SHARE = 0.01
"""Distance of a root from the curve, as a share of its length, up to which it is near whatever rows say."""

_MIDDLE_SHARE = 1.0 / 3.0
"""Share of its length from which on a place is far from an end of a curve."""


def root_position(root: Any, table: FloatArray) -> FloatArray:
    """(D,) the root in data space: a row, or one of the ``table`` (n, D) by its number or by a mask of several."""
    if isinstance(root, numbers.Integral):
        return _numbered_row(int(root), table)
    given = np.asarray(root)
    if given.dtype == bool:
        return _middle_of_marked_rows(given, table)
    return _given_row(given, table.shape[1])


def _numbered_row(number: int, table: FloatArray) -> FloatArray:
    if number >= len(table):
        raise InvalidDataError(
            f"root must be the number of a row, from 0 to {len(table) - 1} for this table; got {number}"
        )
    return np.asarray(table[number], dtype=np.float64)


def _middle_of_marked_rows(mask: FloatArray, table: FloatArray) -> FloatArray:
    if mask.shape != (len(table),):
        raise InvalidDataError(
            f"root must be a mask with one entry for each of the {len(table)} rows; got shape {mask.shape}"
        )
    if not mask.any():
        raise InvalidDataError("root is a mask that marks no row. Mark the rows that the curve is to begin near")
    marked = np.asarray(table[mask], dtype=np.float64)
    # A row rather than the mean itself, which may lie far from a curve that bends.
    return np.asarray(marked[np.square(marked - marked.mean(axis=0)).sum(axis=1).argmin()])


def _given_row(given: Any, n_columns: int) -> FloatArray:
    try:
        row = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        row = np.array(np.nan)
    if row.shape not in ((n_columns,), (1, n_columns)) or not np.isfinite(row).all():
        raise InvalidDataError(
            f"root must be a row of {n_columns} finite numbers, one for each column of the data, such as one of its "
            f"rows; or the number of a row, or a mask of the rows; got shape {given.shape}"
        )
    return row.reshape(-1)


def root_warnings(curve: ArcCurve, root: FloatArray, rows: FloatArray) -> list[tuple[str, type[Warning]]]:
    """Warnings about a root (D,) far from both ends of an open curve, or far from the curve and its ``rows`` (n, D)."""
    if curve.length == 0:
        return []
    found = []
    place = float(curve.nearest(root[None]).latent[0, 0])
    if not curve.closed and place >= _MIDDLE_SHARE * curve.length:
        words = f"root= lies {place:.3g} from the nearer end of a curve that is {curve.length:.3g} long"
        found.append(f"{words}, at which it begins. Give a row near one of the two ends")
    off, most = _farthest(curve, root[None]), _farthest(curve, rows)
    if off > max(_REMOTE_FACTOR * most, _NEAR_SHARE * curve.length):
        words = f"root= lies {off:.3g} from the curve, and no row farther than {most:.3g}"
        found.append(
            f"{words}. Give it in the units in which the curve is fitted: scaled, where a scaler comes before the "
            "curve. The number of a row, or a mask of the rows, has no units"
        )
    return [(each, DegenerateWarning) for each in found]


def _farthest(curve: ArcCurve, rows: FloatArray) -> float:
    """The largest distance of a row from the polyline through the vertices of a curve."""
    return float(np.sqrt(nearest_on_polyline(rows, curve.vertices, curve.closed).squared.max()))
