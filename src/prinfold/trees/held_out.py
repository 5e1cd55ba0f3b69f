"""How likely rows are about a tree that was fitted without them: by this, one of several trees is chosen.

With branches b of length L_b, on which rows lie evenly but for noise of deviation s in each of D columns,

    p(x) = Σ_b π_b / L_b ∫ N(x; y_b(t), s² I) dt,

π_b being the share of the rows on branch b, by expectation and maximisation. Rows are divided into five parts. For
each part the branches keep their edges, and their centres move to the middle of the other rows, in the principal
components of these (``benchmarks/trees.py`` has trials).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.density.ridges.graph import RidgeGraph
from prinfold.geometry.column_span import ColumnSpan
from prinfold.numerics.distances import squared_distances
from prinfold.trees.noise import principal_components
from prinfold.trees.shapes import TreeShape, centers_along, refine, spread_evenly
from prinfold.trees.soft_tree import TreeProblem

_PARTS = 5

_STEP, _FEWEST_PLACES = 0.5, 3
"""Step of the sum that stands for the integral, in deviations of the noise, and places of a branch at the least."""

_SHARE_STEPS = 30
"""Steps of expectation and maximisation for the shares of branches."""


class RowsOfTree(NamedTuple):
    """Rows (n, D) with weights (n,), and the noise about the first tree of them in each column."""

    rows: FloatArray
    weight: FloatArray
    noise: float


class ScoredTree(NamedTuple):
    """How many free ends a tree has, and the log density (n,) of each row about it without that row."""

    ends: int
    log_density: FloatArray


def held_out_log_density(data: RowsOfTree, graph: RidgeGraph, n_components: int, problem: TreeProblem) -> FloatArray:
    """(n,) log density of each row about a tree that is fitted again without its part of the rows."""
    part = _parts(data.rows, data.weight)
    found = np.empty(len(data.rows))
    for number in range(_PARTS):
        held = part == number
        found[held] = _without(data, graph, n_components, problem, held)
    return found


def simplest_of(trees: list[ScoredTree], weight: FloatArray) -> int:
    """Which tree to take: of those within a standard error of the best, the best of those with fewest ends.

    The first tree stays where the one to take has as many ends: what it has more is noise in its components.
    """
    totals = np.array([float(weight @ tree.log_density) for tree in trees])
    best = trees[int(totals.argmax())].log_density
    gaps = [best - tree.log_density for tree in trees]
    good = [i for i, gap in enumerate(gaps) if weight @ gap <= _standard_error(gap, weight)]
    fewest = min(trees[i].ends for i in good)
    if fewest == trees[0].ends:
        return 0
    return max((i for i in good if trees[i].ends == fewest), key=lambda i: totals[i])


def _standard_error(gaps: FloatArray, weight: FloatArray) -> float:
    """Standard error of the weighted sum of differences (n,)."""
    return float(np.sqrt(weight @ np.square(gaps - np.average(gaps, weights=weight))))


def _parts(rows: FloatArray, weight: FloatArray) -> IntArray:
    """(n,) numbers of parts, dealt out in turn by distance from the mean: the same wherever the axes point."""
    from_mean = np.square(rows - np.average(rows, axis=0, weights=weight)).sum(axis=1)
    part = np.empty(len(rows), dtype=np.int64)
    part[np.argsort(from_mean, kind="stable")] = np.arange(len(rows)) % _PARTS
    return part


def _without(
    data: RowsOfTree, graph: RidgeGraph, n_components: int, problem: TreeProblem, held: BoolArray
) -> FloatArray:
    """(h,) log density of the rows that are held out."""
    rows, weight = data.rows[~held], data.weight[~held]
    mean = np.average(rows, axis=0, weights=weight)
    span = ColumnSpan(principal_components(rows - mean, weight)[1][:, :n_components], mean)
    inside = span.inside(rows)
    share = float(weight.sum() / data.weight.sum())
    own = replace(problem, rows=inside, weight=weight, stiffness=problem.stiffness * share)
    shape = refine(own, centers_along(graph, span, problem.bandwidth))
    width = max(data.noise, 0.5 * problem.bandwidth)  # rows without noise have none, and the sum needs some
    places = [spread_evenly(shape.centers[path], _count_places(shape, path, _STEP * width)) for path in shape.paths]
    shares = _branch_shares(_branch_densities(inside, places, width)[0], weight)
    density, top = _branch_densities(span.inside(data.rows[held]), places, width)
    outside = span.outside(data.rows[held]) / (2.0 * width**2)
    constant = data.rows.shape[1] * (0.5 * np.log(2.0 * np.pi) + np.log(width))
    return np.asarray(np.log(np.maximum(density @ shares, np.finfo(float).tiny)) + top - outside - constant)


def _count_places(shape: TreeShape, path: list[int], step: float) -> int:
    length = float(np.linalg.norm(np.diff(shape.centers[path], axis=0), axis=1).sum())
    return max(_FEWEST_PLACES, int(np.ceil(length / step)) + 1)


def _branch_densities(rows: FloatArray, places: list[FloatArray], width: float) -> tuple[FloatArray, FloatArray]:
    """(n, B) mean of exp(−‖x − y‖²/2s²) over places of branches, less the factor whose logarithm (n,) comes second."""
    exponents = [squared_distances(rows, each) / (-2.0 * width**2) for each in places]
    top = np.max([each.max(axis=1) for each in exponents], axis=0)
    return np.stack([np.exp(each - top[:, None]).mean(axis=1) for each in exponents], axis=1), top


def _branch_shares(density: FloatArray, weight: FloatArray) -> FloatArray:
    """(B,) shares of the rows on branches with densities (n, B); half a row is added to each, so that none is 0."""
    B = density.shape[1]
    shares = np.full(B, 1.0 / B)
    for _ in range(_SHARE_STEPS):
        own = density * shares
        count = weight @ (own / np.maximum(own.sum(axis=1), np.finfo(float).tiny)[:, None]) + 0.5
        shares = count / count.sum()
    return shares
