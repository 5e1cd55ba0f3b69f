"""Rows with missing cells in a comparison: nearest points and distances over the cells that were measured."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.base.surface_geometry import over_all_columns

_MOST_TURNS = 30
"""Rounds of three turns each in :func:`project_by_turns` at most."""

_LARGEST_SHRINKAGE = 0.999
"""Largest factor by which moves are taken to shrink from one turn to the next."""

_CONVERGED_SHARE = 1e-6
"""Way that points have to go, relative to the extent of the surface, below which they have arrived."""

_BLOCK_ROWS = 512


def project_by_turns(project: Callable[[FloatArray], FloatArray], X: FloatArray, known: FloatArray) -> FloatArray:
    """(n, D) nearest points of a surface to rows X (n, D), over the cells that they have.

    ``project`` gives nearest points to complete rows, and ``known`` (m, D) are some points of the surface. A row with
    gaps begins at the one that is nearest in the cells that it has.
    """
    gaps = np.isnan(X).any(axis=1)
    if not gaps.any():
        return project(X)
    points = np.empty_like(X)
    if not gaps.all():
        points[~gaps] = project(X[~gaps])
    first = known[_nearest_known(X[gaps], known)]
    points[gaps] = _take_turns(project, X[gaps], first, _CONVERGED_SHARE * float(np.ptp(known, axis=0).max()))
    return points


def _take_turns(
    project: Callable[[FloatArray], FloatArray], X: FloatArray, points: FloatArray, near: float
) -> FloatArray:
    """Nearest points of rows with gaps, which are filled from the nearest point again and again.

    No turn makes the distance over the measured cells longer. Moves shrink by about the same factor r each time, so
    that after two turns the point is sought where all further ones would lead, a move times r / (1 − r) ahead. It is
    taken where it is nearer. Points that have less than ``near`` to go have arrived.
    """
    left = np.arange(len(X))
    for _ in range(_MOST_TURNS):
        rows, before = X[left], points[left]
        one = project(_fill(rows, before))
        two = project(_fill(rows, one))
        first, second = one - before, two - one
        size = np.maximum(np.square(first).sum(axis=1), np.finfo(float).tiny)
        rate = np.clip((first * second).sum(axis=1) / size, 0.0, _LARGEST_SHRINKAGE)[:, None]
        ahead = project(_fill(rows, two + second * rate / (1.0 - rate)))
        nearer = _measured_square(rows, ahead) < _measured_square(rows, two)
        points[left] = np.where(nearer[:, None], ahead, two)
        left = left[np.abs(second / (1.0 - rate)).max(axis=1) > near]
        if not len(left):
            break
    return points


def _fill(X: FloatArray, points: FloatArray) -> FloatArray:
    return np.where(np.isnan(X), points, X)


def _measured_square(X: FloatArray, points: FloatArray) -> FloatArray:
    """(n,) squared distances of rows from a point each, over the cells that they have."""
    return np.asarray(np.nansum(np.square(X - points), axis=1))


def _nearest_known(X: FloatArray, known: FloatArray) -> IntArray:
    """(n,) index of the point that is nearest to each row in the cells that it has."""
    found = np.empty(len(X), dtype=np.intp)
    for i in range(0, len(X), _BLOCK_ROWS):
        found[i : i + _BLOCK_ROWS] = measured_squares(X[i : i + _BLOCK_ROWS], known).argmin(axis=1)
    return found


def measured_squares(X: FloatArray, points: FloatArray) -> FloatArray:
    """(n, m) squared distances of rows from points, over the cells that each row has."""
    center = points.mean(axis=0)  # far from zero the differences would be lost to rounding
    seen, there = ~np.isnan(X), points - center
    rows = np.where(seen, X - center, 0.0)
    crossed = np.square(rows).sum(axis=1)[:, None] - 2.0 * rows @ there.T + seen @ np.square(there).T
    return np.asarray(np.maximum(crossed, 0.0))


def raise_to_all_columns(X: FloatArray, n_components: int) -> FloatArray:
    """(n,) factors by which squared distances over measured cells count, so that rows with gaps weigh like others."""
    return over_all_columns(np.ones(len(X)), ~np.isnan(X), n_components)
