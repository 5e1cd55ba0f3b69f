"""Support of the branches of a tree: how often they are found again in trees of rows drawn anew.

One fit can miss a branch that most trees of rows drawn anew have. Their shapes are then better than its own: see
:func:`common_tree`.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from prinfold._typing import FloatArray
from prinfold.base.unique_rows import draw_weights
from prinfold.density.ridges.graph import RidgeGraph
from prinfold.loops import Meter
from prinfold.validation.settings import check_setting, refits

_TIP_SHARE = 0.5
"""Distance within which an end or a fork is the same, in lengths of the branch, but one bandwidth at the least."""

_SURE_LENGTH, _MOST_DRAWS = 2.0, 20
"""Length of a branch, in bandwidths or deviations of the noise, whichever is more, from which on noise alone does not
grow it; and times that rows are drawn anew where one is shorter."""

_FEWEST_ROWS = 10
"""Rows of which few may be drawn again and again, and no tree is left: they are not drawn anew for a common tree."""

_FIRST_DRAWS, _FIRST_ALIKE, _COMMON_SHARE = 5, 2, 0.5
"""Times that rows are drawn anew to see whether trees of them have more ends, how many of these have to be of one shape
for rows to be drawn further, and share of all draws from which on their shape is taken."""


def branch_support(
    model: Any, table: FloatArray, weight: FloatArray, n_samples: int, rng: np.random.Generator
) -> FloatArray:
    """(B,) share of the trees of rows drawn anew in which each branch of a fitted tree is found again."""
    check_setting("n_samples", n_samples, refits(1))
    found = np.zeros(model.graph_.latent.n_branches)
    with Meter("Fitting bootstrap samples", n_samples) as meter:
        for i, drawn in enumerate(draw_weights(weight, n_samples, rng), 1):
            found += found_branches(model.graph_, _tree_again(model, table, drawn).graph_, model.bandwidth_)
            meter.tell(i)
    return np.asarray(found / n_samples)


class RedrawnTrees:
    """Trees of rows drawn anew, up to 20 of them, in the components and with the bandwidth of a fitted tree.

    Each is fitted when it is first asked for, and kept: whoever asks next has the same.
    """

    def __init__(self, model: Any, table: FloatArray, weight: FloatArray, rng: np.random.Generator) -> None:
        self._model, self._kept = model, list[RidgeGraph]()
        self._table, weight = _in_order(table, weight)
        self.n_rows = len(table)
        self._draws = draw_weights(weight, _MOST_DRAWS, rng)

    def __iter__(self) -> Iterator[RidgeGraph]:
        for i in range(_MOST_DRAWS):
            if i == len(self._kept):
                self._kept.append(_tree_again(self._model, self._table, next(self._draws)).graph_)
            yield self._kept[i]


def weak_tips(model: Any, redrawn: RedrawnTrees, least: float) -> FloatArray:
    """(t, D) free ends of short branches that trees of rows drawn anew have in less than a share of the draws.

    Rows are drawn until it is clear of each whether it reaches that share.
    """
    graph = model.graph_
    closed = graph.ends[:, 0] < 0
    free = np.zeros(graph.ends.shape, dtype=bool)
    free[~closed] = graph.degrees[graph.ends[~closed]] == 1
    short = graph.latent.lengths < _SURE_LENGTH * max(model.bandwidth_, model.noise_)
    doubtful = short & (free.sum(axis=1) == 1)
    found, wanted = np.zeros(len(short)), least * _MOST_DRAWS
    again = iter(redrawn)
    for left in range(_MOST_DRAWS, 0, -1):
        if not np.any(doubtful & (found < wanted) & (found + left >= wanted)):
            break
        found += found_branches(graph, next(again), model.bandwidth_)
    weak = doubtful & (found < wanted)
    return np.asarray(graph.places[graph.ends[weak][free[weak]]])


def common_tree(model: Any, redrawn: RedrawnTrees) -> RidgeGraph | None:
    """The tree in the middle of those of rows drawn anew, where half of them have one shape, with more ends than ours.

    A shape is the number of ends and that of forks. In the middle is the tree whose branches the others of its shape
    have most often. None where there is no such shape.
    """
    if redrawn.n_rows < _FEWEST_ROWS:
        return None
    own, found = ends_and_forks(model.graph_), list[RidgeGraph]()
    common: tuple[int, int] = own
    for n, graph in enumerate(redrawn, 1):
        found.append(graph)
        richer = Counter(shape for shape in map(ends_and_forks, found) if shape[0] > own[0])
        common, count = richer.most_common(1)[0] if richer else (own, 0)
        if (n == _FIRST_DRAWS and count < _FIRST_ALIKE) or count + _MOST_DRAWS - n < _COMMON_SHARE * _MOST_DRAWS:
            return None
    alike = [graph for graph in found if ends_and_forks(graph) == common]
    agreement = [sum(found_branches(one, other, model.bandwidth_).min() for other in alike) for one in alike]
    return alike[int(np.argmax(agreement))]


def ends_and_forks(graph: RidgeGraph) -> tuple[int, int]:
    """Number of places of a graph that are free ends, and of those that are forks."""
    return int((graph.degrees == 1).sum()), int((graph.degrees > 2).sum())


def _in_order(table: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rows by their distance from the mean, so that the same are drawn wherever the axes point."""
    from_mean = np.square(table - np.average(table, axis=0, weights=weight)).sum(axis=1)
    order = np.argsort(from_mean, kind="stable")
    return table[order], weight[order]


def _tree_again(model: Any, table: FloatArray, weight: FloatArray) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a tree of rows drawn anew is doubtful is what is asked
        return model._fit_again(table, weight)


def found_branches(graph: RidgeGraph, again: RidgeGraph, nearest: float) -> FloatArray:
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
