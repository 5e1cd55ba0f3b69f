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
"""Distance within which an end or a fork is the same, in lengths of the branch."""


def branch_support(
    model: Any, table: FloatArray, weight: FloatArray, n_samples: int, rng: np.random.Generator
) -> FloatArray:
    """(B,) share of the trees of rows drawn anew in which each branch of a fitted tree is found again."""
    check_setting("n_samples", n_samples, refits(1))
    found = np.zeros(model.graph_.latent.n_branches)
    with Meter("Fitting bootstrap samples", n_samples) as meter:
        for i, drawn in enumerate(draw_weights(weight, n_samples, rng), 1):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that a tree of rows drawn anew is doubtful is what is asked
                again = model._fit_again(table, drawn)
            found += found_again(model.graph_, again.graph_)
            meter.tell(i)
    return np.asarray(found / n_samples)


def weak_tips(graph: RidgeGraph, support: FloatArray, least: float) -> FloatArray:
    """(t, D) free ends of branches that lead to a fork and have less support."""
    free = graph.degrees[graph.ends] == 1
    weak = (support < least) & (graph.ends[:, 0] >= 0) & (free.sum(axis=1) == 1)
    return np.asarray(graph.places[graph.ends[weak][free[weak]]])


def found_again(graph: RidgeGraph, again: RidgeGraph) -> FloatArray:
    """(B,) 1 for branches of a graph that another has: both ends have one of their kind within half its length."""
    kind, other = _kinds(graph), _kinds(again)
    has = np.ones(graph.latent.n_branches)
    for b, (start, end) in enumerate(graph.ends.tolist()):
        reach = _TIP_SHARE * float(graph.latent.lengths[b])
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
