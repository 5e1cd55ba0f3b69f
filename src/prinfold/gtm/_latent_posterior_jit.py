"""Posteriors of many groups of rows over places in latent space, in one compiled call each.

This module imports numba: import it only where there is much to do. ``gtm.lattice_refinement`` and ``latent.base`` do
the same group by group, in NumPy.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba.extending import overload, register_jitable

from prinfold._typing import FloatArray, IntArray
from prinfold.gtm._e_step_jit import rooms, weigh_near
from prinfold.numerics._compiled import RUN, any_from, appended, compiled, exp64, heaviest, longest

_MOST_NATS = 58.0
"""Nats below a row's sum of weights; farther down weights are not told apart."""


def _weighted(weight: FloatArray, values: FloatArray) -> float:
    """The sum of some values with their weights."""
    raise NotImplementedError


@overload(_weighted, jit_options={"fastmath": {"reassoc", "contract"}})
def _weighted_sum(weight: Any, values: Any) -> Any:
    def weighted(weight: Any, values: Any) -> Any:
        total = 0.0
        for k in range(len(weight)):
            total += np.float64(weight[k]) * values[k]
        return total

    return weighted


def _inner(row: FloatArray, point: FloatArray) -> float:
    """The product of a row and a point of as many columns and one more, which stands by itself."""
    raise NotImplementedError


@overload(_inner, jit_options={"fastmath": {"reassoc", "contract"}})
def _inner_of(row: Any, point: Any) -> Any:
    def inner(row: Any, point: Any) -> Any:
        total = point[len(row)]
        for c in range(len(row)):
            total += row[c] * point[c]
        return total

    return inner


def _share_out(weight: FloatArray) -> None:
    """Turn log weights (p, M) of all pieces of one row into weights that sum to one, in place."""
    largest, beyond = -np.inf, False
    for p in range(weight.shape[0]):
        for m in range(weight.shape[1]):
            beyond = beyond or math.isnan(weight[p, m])
            largest = max(largest, weight[p, m])
    total = 0.0
    for p in range(weight.shape[0]):
        for m in range(weight.shape[1]):
            relative = weight[p, m] - largest
            if beyond or math.isnan(relative):
                relative = 0.0  # rows beyond the range of the numbers are as far from every cell
            weight[p, m] = exp64(max(relative, -_MOST_NATS))
            total += weight[p, m]
    for p in range(weight.shape[0]):
        for m in range(weight.shape[1]):
            weight[p, m] /= total


share_out = register_jitable(_share_out)


@compiled
def cells_that_matter(
    loaded: FloatArray,
    cuts: IntArray,
    near: IntArray,
    near_cuts: IntArray,
    sound: tuple[float, float],
    loading: FloatArray,
    least: FloatArray,
) -> tuple[IntArray, IntArray]:
    """The cells whose nodes have at least the share ``least`` (K,) of a row's weights, of one row after the other.

    Groups of rows and nodes and how they are weighed are as in ``_e_step_jit.sweep``. Those of row i are
    ``cell[starts[i]:starts[i + 1]]``; at least the heaviest, whatever is the matter with the row.
    """
    lowest = least.min()
    turned, weights, total, _ = rooms(longest(cuts), longest(near_cuts), loading)
    log_sum = np.empty_like(total)
    starts, end = np.zeros(len(loaded) + 1, np.int64), 0
    cell: IntArray = np.empty(8 * len(loaded) + 8, np.int64)
    for g in range(len(cuts) - 1):
        rows, nodes = loaded[cuts[g] : cuts[g + 1]], near[near_cuts[g] : near_cuts[g + 1]]
        k, weight = len(nodes), weigh_near(rows, nodes, loading, sound, turned, weights, total, log_sum)
        for i in range(len(rows)):
            row, begin = weight[i, :k], end
            enough: Any = row.dtype.type(lowest * total[i])
            for first in range(0, k, RUN):
                last = min(first + RUN, k)
                if any_from(row[first:last], enough):
                    for j in range(first, last):
                        if row[j] >= least[nodes[j]] * total[i]:
                            cell = appended(cell, end, nodes[j])
                            end += 1
            if end == begin:
                cell = appended(cell, end, nodes[heaviest(row)])
                end += 1
            starts[cuts[g] + i + 1] = end
    return starts, cell[:end]


@compiled
def means_of_groups(
    loaded: FloatArray,
    cuts: IntArray,
    near: IntArray,
    near_cuts: IntArray,
    sound: tuple[float, float],
    loading: FloatArray,
    embedded: FloatArray,
) -> tuple[FloatArray, IntArray]:
    """(n, e) means of ``embedded`` (e, K) under the weights of each row, and (n,) the heaviest node of each."""
    n_values, k_most = len(embedded), longest(near_cuts)
    turned, weights, total, _ = rooms(longest(cuts), k_most, loading)
    log_sum, values = np.empty_like(total), np.empty((n_values, k_most))
    mean, best = np.empty((len(loaded), n_values)), np.empty(len(loaded), np.int64)
    for g in range(len(cuts) - 1):
        rows, nodes = loaded[cuts[g] : cuts[g + 1]], near[near_cuts[g] : near_cuts[g + 1]]
        k, weight = len(nodes), weigh_near(rows, nodes, loading, sound, turned, weights, total, log_sum)
        for e in range(n_values):
            for j in range(k):
                values[e, j] = embedded[e, nodes[j]]
        for i in range(len(rows)):
            for e in range(n_values):
                mean[cuts[g] + i, e] = _weighted(weight[i, :k], values[e, :k]) / total[i]
            best[cuts[g] + i] = nodes[heaviest(weight[i, :k])]
    return mean, best


@compiled
def weigh_points(loaded: FloatArray, starts: IntArray, cell: IntArray, points: FloatArray) -> FloatArray:
    """(P, M) weights of the points of each row's cells, which sum to one for each row.

    Log weights are the products of rows, of ``loaded`` without its first and last column, and ``points`` (K, M, D + 1),
    the last column of which is added.
    """
    D, M = loaded.shape[1] - 2, points.shape[1]
    weight, row = np.empty((len(cell), M)), np.empty(D)
    for i in range(len(loaded)):
        for c in range(D):
            row[c] = loaded[i, c + 1]
        for p in range(starts[i], starts[i + 1]):
            for m in range(M):
                weight[p, m] = _inner(row, points[cell[p], m])
        share_out(weight[starts[i] : starts[i + 1]])
    return weight


@compiled
def sum_over_pieces(starts: IntArray, cell: IntArray, weight: FloatArray, values: FloatArray) -> FloatArray:
    """(n, e) the values (K, M, e) at the points of each row's cells, added up with their weights (P, M)."""
    found = np.zeros((len(starts) - 1, values.shape[2]))
    for i in range(len(found)):
        for p in range(starts[i], starts[i + 1]):
            for m in range(weight.shape[1]):
                for e in range(values.shape[2]):
                    found[i, e] += weight[p, m] * values[cell[p], m, e]
    return found
