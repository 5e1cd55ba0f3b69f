"""Bandwidth for ridges by split halves: that at which the ridges of two halves of the rows agree best.

The rule is ours. Two ridges of the same bandwidth agree the better the wider the kernels, since all ridges of very wide
ones are one straight line. So the ridge of a half is compared, over many bandwidths h, with one of the other half that
stays the same, of a bandwidth g that is a little narrow. The halves have nothing in common, so that on average

    ‖ridge_A(h) − ridge_B(g)‖² = ‖ridge_A(h) − truth‖² + ‖ridge_B(g) − truth‖²

as far as g leaves no bias; the last term does not depend on h. Distances are taken both ways: from one ridge alone,
very narrow kernels would pass, which have rows for ridges, and very wide ones, which leave parts of it out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.spatial import cKDTree

from prinfold._typing import FloatArray, IntArray
from prinfold.base.starting_points import evenly_by_radius
from prinfold.density.densities import KernelDensity
from prinfold.density.ridges.mean_shift import Flow, FlowResult, Status

LEAST_ROWS = 20
"""Fewest rows for halves to be informative."""

_TRIED_FACTORS = np.geomspace(0.4, 2.5, 11)
"""Bandwidths tried, in units of the usual one."""

_REFERENCE_FACTOR = 0.8
"""The bandwidth that others are compared with, in units of the usual one."""

_LOG_STEP_SHARE = 0.5
"""Share of the way, on a log scale, that is gone from the usual bandwidth to the one at which halves agree best.

That one is uncertain by a factor of 1.2 or more; the mean of both is nearer to the best than either."""

_N_SPLITS = 2
_MOST_STARTS = 300
"""Ways to halve the rows, and rows of a half that are carried to its ridge."""

_FARTHEST_BANDWIDTHS = 3.0
"""Distances are clipped to this many usual bandwidths: ridges of isolated rows are in one half only."""

_NEAREST_POINTS = 8
"""Points of a ridge that can be the nearest."""


def split_bandwidth(
    rows: FloatArray, weight: FloatArray, dimension: int, usual: float, rng: np.random.Generator
) -> float:
    """The best of some bandwidths about a ``usual`` one, with halves drawn from rows ranked by their radius.

    If that would be the narrowest, the halves are not informative, and the usual one is taken.
    """
    # A half would have a bandwidth wider by this; see the rule for the gradient.
    wider = 2.0 ** (1.0 / (rows.shape[1] + 6))
    pairs = [pair for one, other in _halves(rows, weight, rng) for pair in ((one, other), (other, one))]
    fixed = [_ridge(rows[b], weight[b], dimension, _REFERENCE_FACTOR * usual * wider) for _, b in pairs]

    def disagreement(i: int) -> float:
        h = _TRIED_FACTORS[i] * usual * wider
        ridges = (_ridge(rows[a], weight[a], dimension, h) for a, _ in pairs)
        farthest = _FARTHEST_BANDWIDTHS * usual
        return sum(squared_ridge_distance(*two, farthest) for two in zip(ridges, fixed, strict=True))

    best = _least_index(disagreement, len(_TRIED_FACTORS))
    # Where rows lie close to each other on the scale of the structure, ridges that pass through every row agree, too.
    return float(usual * _TRIED_FACTORS[best] ** _LOG_STEP_SHARE) if best > 0 else usual


def _least_index(loss: Callable[[int], float], n: int) -> int:
    """The index below n with the least loss, among every other one and then the neighbours of the best of these."""
    known = {i: loss(i) for i in range(0, n, 2)}
    best = min(known, key=lambda i: known[i])
    known |= {i: loss(i) for i in (best - 1, best + 1) if 0 <= i < n}
    return min(known, key=lambda i: (known[i], i))


def _halves(rows: FloatArray, weight: FloatArray, rng: np.random.Generator) -> Iterator[tuple[IntArray, IntArray]]:
    """Random halves of the rows, the same whatever the order, place, turn or units of the rows."""
    centered = rows - np.average(rows, axis=0, weights=weight)
    ranked = np.lexsort((*rows.T, np.einsum("nd,nd->n", centered, centered)))
    for _ in range(_N_SPLITS):
        drawn = ranked[rng.permutation(len(rows))]
        yield drawn[: len(rows) // 2], drawn[len(rows) // 2 :]


def _ridge(rows: FloatArray, weight: FloatArray, dimension: int, bandwidth: float) -> FlowResult:
    """Points on the ridge of kernels on the rows, carried there from some of them."""
    flow = Flow(KernelDensity(rows, weight, bandwidth), dimension, max_iter=200, tol=1e-3)
    found = flow(rows[evenly_by_radius(rows, weight, _MOST_STARTS)])
    return found.only(found.status == Status.CONVERGED)


def squared_ridge_distance(one: FlowResult, other: FlowResult, farthest: float = np.inf) -> float:
    """Mean squared distance between two ridges: from the points of each to the other, half from either side."""
    there, back = distance_to_ridge(one.points, other), distance_to_ridge(other.points, one)
    return 0.5 * sum(
        float(np.square(np.minimum(each, farthest)).mean()) if len(each) else farthest**2 for each in (there, back)
    )


def distance_to_ridge(X: FloatArray, ridge: FlowResult) -> FloatArray:
    """(n,) distances of places to a ridge that is known by some of its points; inf where there are none.

    Each point stands for a disc along its tangent, as wide as the median distance between neighbouring points: so
    that what is between two points counts as ridge, and what is beyond an end does not.
    """
    if len(ridge.points) == 0:
        return np.full(len(X), np.inf)
    tree, k = cKDTree(ridge.points), min(_NEAREST_POINTS, len(ridge.points))
    apart = np.asarray(tree.query(ridge.points, k=[min(2, len(ridge.points))])[0])
    near = np.asarray(tree.query(X, k=np.arange(1, k + 1))[1])
    gap = X[:, None] - ridge.points[near]
    along = np.linalg.norm(np.einsum("nki,nkia->nka", gap, ridge.tangent[near]), axis=2)
    across = np.maximum(np.square(gap).sum(axis=2) - along**2, 0.0)
    beyond = np.maximum(along - 2.0 * float(np.median(apart)), 0.0)
    return np.asarray(np.sqrt((across + beyond**2).min(axis=1)))
