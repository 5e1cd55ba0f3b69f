"""Modes of a density, which are ridges of dimension 0, and the rows that mean shift carries to each.

Clustering by mean shift is due to Fukunaga and Hostetler (1975) and Comaniciu and Meer (2002).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from prinfold._typing import FloatArray, IntArray
from prinfold.density.ridges.mean_shift import FlowResult, Status

SAME_MODE_BANDWIDTHS = 0.1
"""Bandwidths within which two end points are the same mode: rows converge to within a millionth, and two maxima of
Gaussian kernels are not so near each other."""


class Modes(NamedTuple):
    """``points`` (k, D) of modes, their ``log_density`` (k,), and the ``weight`` (k,) of the rows that go there.

    The heaviest comes first; of equally heavy ones the densest, and then the first by its coordinates.
    """

    points: FloatArray
    log_density: FloatArray
    weight: FloatArray


def find_modes(found: FlowResult, weight: FloatArray, length: FloatArray, min_weight: float) -> Modes:
    """The modes that rows with ``weight`` (n,) have come to rest at; ``length`` (n,) is the bandwidth there.

    A mode with less weight than ``min_weight`` is left out, but never the heaviest.
    """
    rest = np.flatnonzero(found.status == Status.CONVERGED)
    if len(rest) == 0:  # none is a maximum, of a density that has none
        rest = np.flatnonzero(np.isfinite(found.points).all(axis=1))
    points, heights = found.points[rest], found.log_density[rest]
    group = _group_ends(points, SAME_MODE_BANDWIDTHS * length[rest])
    total = np.bincount(group, weights=weight[rest]).astype(np.float64)
    # The densest row of a group stands for it; the first by its coordinates where several are as dense.
    order = np.lexsort((*points.T[::-1], -heights, group))
    first = order[np.searchsorted(group[order], np.arange(len(total)))]
    modes = Modes(points[first], heights[first], total)
    kept = np.flatnonzero(total >= min(min_weight, total.max()))
    rank = np.lexsort((*modes.points[kept].T[::-1], -modes.log_density[kept], -modes.weight[kept]))
    return Modes._make(part[kept[rank]] for part in modes)


def _group_ends(points: FloatArray, radius: FloatArray) -> IntArray:
    """(n,) groups of points that are chained by steps within the larger of their radii."""
    # Nearly all ends of a mode agree to many digits, and all pairs among them would be too many: one of each is enough.
    cells, inverse = np.unique(np.floor(points / (0.25 * float(radius.min()))), axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    stand = np.zeros(len(cells), dtype=np.intp)
    stand[inverse[::-1]] = np.arange(len(points))[::-1]
    pairs = cKDTree(points[stand]).query_pairs(float(radius.max()), output_type="ndarray")
    ends = stand[pairs]
    apart = np.linalg.norm(points[ends[:, 0]] - points[ends[:, 1]], axis=1)
    pairs = pairs[apart <= radius[ends].max(axis=1)]
    joined = coo_matrix((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(cells), len(cells)))
    return np.asarray(connected_components(joined, directed=False)[1])[inverse]


def label_rows(found: FlowResult, modes: Modes, length: FloatArray) -> IntArray:
    """(n,) which mode each row has come to rest at, −1 where that is none of them."""
    finite = np.asarray(np.isfinite(found.points).all(axis=1))
    distance, near = cKDTree(modes.points).query(np.where(finite[:, None], found.points, 0.0))
    arrived = finite & (np.asarray(distance) <= 2.0 * SAME_MODE_BANDWIDTHS * length)
    return np.where(arrived, near, -1).astype(np.intp)
