"""Support of the branches of a tree: how often they are found again in trees of rows drawn anew."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from prinfold._typing import FloatArray
from prinfold.base.trajectories import draw_weights
from prinfold.density.ridges.graph import RidgeGraph
from prinfold.loops import Meter
from prinfold.validation.settings import check_setting, refits

_TIP_SHARE = 0.5
"""Distance within which an end or a fork is the same, in lengths of the branch, but one bandwidth at the least."""

_SURE_LENGTH, _MOST_DRAWS = 2.0, 20
"""Length of a branch, in bandwidths or deviations of the noise, whichever is more, from which on noise alone does not
grow it; and times that rows are drawn anew where one is shorter."""


def branch_support(
    model: Any, table: FloatArray, weight: FloatArray, n_samples: int, rng: np.random.Generator
) -> FloatArray:
    """(B,) share of the trees of rows drawn anew in which each branch of a fitted tree is found again."""
    check_setting("n_samples", n_samples, refits(1))
    found = np.zeros(model.graph_.latent.n_branches)
    with Meter("Fitting bootstrap samples", n_samples) as meter:
        for i, drawn in enumerate(draw_weights(weight, n_samples, rng), 1):
            found += found_again(model.graph_, _tree_again(model, table, drawn).graph_, model.bandwidth_)
            meter.tell(i)
    return np.asarray(found / n_samples)


def weak_tips(model: Any, table: FloatArray, weight: FloatArray, least: float, rng: np.random.Generator) -> FloatArray:
    """(t, D) free ends of short branches that trees of rows drawn anew have in less than a share of the draws.

    Rows are drawn until it is clear of each whether it reaches that share. They are numbered by their distance from the
    mean, so that the same rows are drawn wherever the axes point.
    """
    graph = model.graph_
    from_mean = np.square(table - np.average(table, axis=0, weights=weight)).sum(axis=1)
    order = np.argsort(from_mean, kind="stable")
    table, weight = table[order], weight[order]
    closed = graph.ends[:, 0] < 0
    free = np.zeros(graph.ends.shape, dtype=bool)
    free[~closed] = graph.degrees[graph.ends[~closed]] == 1
    short = graph.latent.lengths < _SURE_LENGTH * max(model.bandwidth_, model.noise_)
    doubtful = short & (free.sum(axis=1) == 1)
    found, wanted = np.zeros(len(short)), least * _MOST_DRAWS
    for n, drawn in enumerate(draw_weights(weight, _MOST_DRAWS, rng), 1):
        if not np.any(doubtful & (found < wanted) & (found + _MOST_DRAWS - n + 1 >= wanted)):
            break
        found += found_again(graph, _tree_again(model, table, drawn).graph_, model.bandwidth_)
    weak = doubtful & (found < wanted)
    return np.asarray(graph.places[graph.ends[weak][free[weak]]])


def _tree_again(model: Any, table: FloatArray, weight: FloatArray) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a tree of rows drawn anew is doubtful is what is asked
        return model._fit_again(table, weight)


def found_again(graph: RidgeGraph, again: RidgeGraph, nearest: float) -> FloatArray:
    """(B,) 1 for branches of a graph that another has: both ends have one of their kind within half its length.

    Ends nearer than ``nearest`` are the same, however short the branch.
    """
    kind, other = _kinds(graph), _kinds(again)
    has = np.ones(graph.latent.n_branches)
    for b, (start, end) in enumerate(graph.ends.tolist()):
        reach = max(_TIP_SHARE * float(graph.latent.lengths[b]), nearest)
        if start < 0:
            has[b] = float((again.ends[:, 0] < 0).any())
            continue
        for place in (start, end):
            alike = again.places[other == kind[place]]
            apart = cKDTree(alike).query(graph.places[place])[0] if len(alike) else np.inf
            has[b] = min(has[b], float(apart <= reach))
    return has


def _kinds(graph: RidgeGraph) -> FloatArray:
    """(V,) whether places are forks."""
    return np.asarray(graph.degrees > 2, dtype=float)
