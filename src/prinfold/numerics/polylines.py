"""Nearest points on a polyline for many rows, as alternating methods need them at every step.

With segments a_j + t (b_j − a_j), 0 ≤ t ≤ 1, a row x has on each of them the foot t = (x − a)·(b − a) / ‖b − a‖², cut
to [0, 1]; the nearest of all counts, and of several as near the first (Hastie & Stuetzle, 1989, take the last).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import InvalidDataError
from prinfold.numerics.finite_checks import LARGEST, require_finite
from prinfold.rows.rows import for_each_block, row_slices

_BLOCK_ROWS = 4096

_MOST_COLUMNS_SWEPT = 16
"""Columns up to which segments are passed over one by one; beyond, matrix products with all of them are quicker."""


class Feet(NamedTuple):
    """Nearest points of rows: number of the ``segment`` (n,), ``share`` (n,) of it, ``squared`` distance (n,)."""

    segment: IntArray
    share: FloatArray
    squared: FloatArray


def segments_of(vertices: FloatArray, closed: bool) -> tuple[FloatArray, FloatArray]:
    """(s, D) where segments between vertices (m, D) begin, and the steps along them."""
    chain = np.vstack([vertices, vertices[:1]]) if closed else vertices
    return chain[:-1], np.diff(chain, axis=0)


def nearest_on_polyline(X: FloatArray, vertices: FloatArray, closed: bool = False) -> Feet:
    """Feet of rows (n, D) on the polyline through at least two vertices (m, D)."""
    X, vertices = (np.ascontiguousarray(part, dtype=np.float64) for part in (X, vertices))
    _require_polyline(X, vertices)
    return nearest_on_segments(X, *segments_of(vertices, closed))


def nearest_on_segments(X: FloatArray, begin: FloatArray, step: FloatArray) -> Feet:
    """Feet of rows (n, D) on segments that begin at points (s, D), with steps (s, D) along them; all finite."""
    from prinfold.numerics._polylines_jit import sweep

    X, begin, step = (np.ascontiguousarray(part, dtype=np.float64) for part in (X, begin, step))
    if len(begin) == 0 or begin.shape != step.shape or begin.shape[1:] != X.shape[1:]:
        raise InvalidDataError(
            f"nearest points need at least one segment in the columns of the rows, got rows of shape {X.shape}, "
            f"beginnings of shape {begin.shape} and steps of shape {step.shape}"
        )
    feet = Feet(np.empty(len(X), dtype=np.int64), np.empty(len(X)), np.empty(len(X)))

    def one(part: slice) -> None:
        if X.shape[1] > _MOST_COLUMNS_SWEPT:
            feet.segment[part], feet.share[part], feet.squared[part] = _by_products(X[part], begin, step)
            return
        sweep(X[part], begin, step, feet.segment[part], feet.share[part], feet.squared[part])

    for_each_block(one, row_slices(len(X), _BLOCK_ROWS))
    return feet


def _require_polyline(X: FloatArray, vertices: FloatArray) -> None:
    """Raise an error for rows or vertices that have no feet."""
    if X.ndim != 2 or vertices.ndim != 2 or len(vertices) < 2 or X.shape[1] != vertices.shape[1]:
        raise InvalidDataError(
            f"a polyline needs at least two vertices with as many columns as the rows have, got vertices of shape "
            f"{vertices.shape} and rows of shape {X.shape}"
        )
    require_finite("rows", X, "rescale their columns", LARGEST)
    remedy = "take another width or penalty of the smoother, or rescale the columns of X"
    require_finite("vertices of a curve", vertices, remedy, LARGEST)


def _by_products(X: FloatArray, begin: FloatArray, step: FloatArray) -> Feet:
    """Feet of rows by products of rows with vertices and steps, computed exactly once the segment is known."""
    center = begin.mean(axis=0)  # so that few digits cancel where rows are far from the origin
    rows, begins = X - center, begin - center
    size = np.einsum("sd,sd->s", step, step)
    size = np.where(size > 0, size, 1.0)
    along = rows @ step.T - np.einsum("sd,sd->s", begins, step)
    share = np.clip(along / size, 0.0, 1.0)
    # ‖x − b − t d‖² less ‖x‖², which is the same for all segments.
    squared = share * (share * size - 2.0 * along)
    squared -= 2.0 * (rows @ begins.T)
    squared += np.einsum("sd,sd->s", begins, begins)
    segment = squared.argmin(axis=1)
    away, way = X - begin[segment], step[segment]
    t = np.clip(np.einsum("nd,nd->n", away, way) / size[segment], 0.0, 1.0)
    return Feet(segment, t, np.square(away - t[:, None] * way).sum(axis=1))


def nearest_on_polyline_reference(X: FloatArray, vertices: FloatArray, closed: bool = False) -> Feet:
    """The slow obvious twin of :func:`nearest_on_polyline`: every row against every segment."""
    begin, step = segments_of(vertices, closed)
    size = np.square(step).sum(axis=1)
    away = X[:, None] - begin
    t = np.clip(np.einsum("nsd,sd->ns", away, step) / np.where(size > 0, size, 1.0), 0.0, 1.0)
    squared = np.square(away - t[:, :, None] * step).sum(axis=2)
    segment = squared.argmin(axis=1)
    row = np.arange(len(X))
    return Feet(segment, t[row, segment], squared[row, segment])
