"""Signs that rows do not lie along a tree, from the one that was fitted.

The method does not fail where there is no tree: it returns a branch of no length in a blob, and many side by side over
a sheet. The signs of that are measured here. The limits were set on simulated rows, in 2 to 50 columns. Of the length
of trees with three to five leaves 0 to 0.3 lies beside another branch, now and then 0.5 where two come near each other;
of that of trees over sheets 0.3 to 0.9. The limit of 0.5 spares a tree of blood cells with 0.4.

Over a sheet with little noise the tree is dense, and no two strands of it lie near in units of that noise. There the
neighbours of a row tell: they spread in two directions alike, and in a third by the noise alone. About a tree the
second and the third direction are both of noise, or the second is short: variances in the third are 0.8 to 3 times
those in the second (0.5 to 0.7 in three columns), over sheets 0.03 to 0.5. Where noise is so wide that neither sign is
clear, a sheet is not told.

Pieces and loops are no trees either. Where rows lie in pieces, a stretch of the tree has none: 23 bandwidths and more
between two pieces, 43 times what is usual, against at most 5 bandwidths and 3 times about trees. Rows lie along a
loop where an end comes back to the tree, near it, after a long way, and with rows between (``shapes``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from prinfold._typing import FloatArray
from prinfold.base.starting_points import evenly_by_radius
from prinfold.density.ridges.graph import RidgeGraph
from prinfold.exceptions import Advice, Message, percent
from prinfold.latent.arc_length_curves import BranchCurves
from prinfold.numerics.distances import squared_distances
from prinfold.trees.noise import RowsInFrame

_LEAST_BANDWIDTHS = 2.0
"""Length of all branches, in bandwidths, below which there is no tree."""

_WIDE_SPREADS, _WIDE_COLUMNS = 2.6, 3
"""Spread of rows in deviations across, below which they are no curves, and columns up to which that says something."""

_STRAND_DEVIATIONS, _ELSEWHERE_RATIO, _DOUBLED_SHARE = 7.0, 2.4, 0.5
"""Distance between two parts of a tree, in deviations of the noise, at which they lie side by side; way along the tree
over distance, from which on they are different parts of it; and share of the length from which on that is a surface."""

_PLACES = 200
"""Places on the tree at which it is compared with itself, and rows whose neighbours are looked at."""

_NEIGHBOR_SHARE, _FEWEST_NEIGHBORS, _LARGEST_SHARE, _MOST_ROWS = 0.05, 15, 0.1, 4000
"""Neighbours of a row, as a share of all and at the least; share of all above which they are not near; and rows among
which they are looked for."""

_LEAST_DIRECTIONS = 3
"""Directions without which a surface cannot be told from a blob."""

_ALIKE_RATIO, _FLAT_RATIO, _FLAT_RATIO_FEW, _FLAT_RATIO_FEW_COLUMNS = 0.45, 0.6, 0.4, 4
"""Variance of neighbours in a second direction over that in the first, from which on there are two; that in a third
over the second, up to which there is no third, and the same in few columns, where noise has no other direction."""


_GAP_BANDWIDTHS, _GAP_USUAL = 6.0, 6.0
"""Length of a stretch of the tree without rows, in bandwidths and in units of what is usual, from which on it is a gap
between pieces."""

_FEW_LOOP_BRANCHES = 2
"""Branches with a loop up to which they are a loop and no surface: over a surface there are many."""


class FittedTree(NamedTuple):
    """A tree among its rows: the graph, its branches and the rows in their components, noise and bandwidth.

    ``loop`` is how many branches there are where a clear loop is closed, and 0 where there is none.
    """

    graph: RidgeGraph
    strands: BranchCurves
    inside: RowsInFrame
    weight: FloatArray
    noise: float
    bandwidth: float
    loop: int = 0


def doubt(topology: str, fit: FittedTree) -> str:
    """Reasons against the shape that was asked for, in words; "" if nothing does."""
    first = _check_blob(fit) or _check_pieces(topology, fit)
    loop = _check_loop(topology, fit)
    if fit.loop <= _FEW_LOOP_BRANCHES:  # both sides of a narrow loop run side by side as well
        return first or loop or _check_sheet(fit) or _check_path(topology, fit)
    return first or _check_sheet(fit) or loop or _check_path(topology, fit)


def _check_blob(fit: FittedTree) -> str:
    """Words about rows that scatter about one place."""
    length = float(fit.graph.latent.lengths.sum())
    if length < _LEAST_BANDWIDTHS * fit.bandwidth:
        return (
            f"no tree stands out from the noise: it is {length:.3g} long, and rows scatter by {fit.noise:.3g} in each "
            f"direction. They lie about one place, or the noise is as large as the structure"
        )
    squared = np.einsum("nq,nq->n", fit.inside.rows, fit.inside.rows) + fit.inside.rest
    spread = float(np.sqrt(np.average(squared, weights=fit.weight)))
    if fit.graph.points.shape[1] <= _WIDE_COLUMNS and spread < _WIDE_SPREADS * fit.noise:
        return (
            f"rows scatter by {fit.noise:.3g} across the tree and by {spread:.3g} in all: they fill a blob or a "
            "surface rather than lie along branches. Take GTM(2) for a surface"
        )
    return ""


def _check_pieces(topology: str, fit: FittedTree) -> str:
    """Words about a stretch of the tree that no row is near to."""
    n, length = min(len(fit.inside.rows), _MOST_ROWS), float(fit.graph.latent.lengths.sum())
    gap, usual = widest_gap(fit), length * float(np.log(n)) / n
    if topology == "forest" or gap < max(_GAP_BANDWIDTHS * fit.bandwidth, _GAP_USUAL * usual):
        return ""
    words = (
        f"no row is nearest to a stretch of the tree {gap:.3g} long ({gap / fit.bandwidth:.0f} bandwidths), so that "
        f"rows lie in separate pieces, and times across the gap mean nothing"
    )
    return str(Message(words, Advice("topology", "forest")))


def _check_sheet(fit: FittedTree) -> str:
    """Words about branches that lie side by side."""
    doubled = doubled_share(fit)
    if doubled < _DOUBLED_SHARE:
        return _check_flat_neighborhoods(fit)
    return (
        f"branches run side by side over {percent(doubled)} of the length of the tree, within {_STRAND_DEVIATIONS:g} "
        f"times the scatter of the rows ({fit.noise:.3g}). The data look like a surface rather than a tree. Try GTM(2)"
    )


def _check_flat_neighborhoods(fit: FittedTree) -> str:
    """Words about rows whose neighbours spread in two directions."""
    D = fit.graph.points.shape[1]
    second, third = neighborhood_ratios(fit.inside, fit.weight, D)
    if second < _ALIKE_RATIO or third > (_FLAT_RATIO_FEW if D <= _FLAT_RATIO_FEW_COLUMNS else _FLAT_RATIO):
        return ""
    return (
        f"the neighbours of a row spread in two directions: the variance in the second is {percent(second)} of that in "
        f"the first, and in a third {percent(third)} of that in the second. The data look like a surface rather than a "
        "tree. Try GTM(2)"
    )


def _check_loop(topology: str, fit: FittedTree) -> str:
    """Words about a loop that a tree has to cut."""
    if topology not in ("tree", "path") or not fit.loop:
        return ""
    words = "the rows lie along a closed loop, which a tree has to cut somewhere: times on both sides of the cut differ"
    return str(Message(words, Advice("topology", "ring" if fit.loop == 1 else "graph")))


def _check_path(topology: str, fit: FittedTree) -> str:
    """Words about a tree without forks."""
    if topology not in ("tree", "graph") or fit.graph.latent.n_branches > 1:
        return ""
    if fit.graph.latent.closed[0]:
        return str(Message("the rows lie along one ring, without forks", Advice("topology", "ring")))
    words = "no fork stands out from the noise: the rows lie along one path. PrincipalCurve draws it smoothly"
    return str(Message(words, Advice("topology", "path")))


def widest_gap(fit: FittedTree) -> float:
    """Length of the longest stretch of a branch, between rows or a fork, that no row is nearest to."""
    some, latent = evenly_by_radius(fit.inside.rows, fit.weight, _MOST_ROWS), fit.graph.latent
    places = fit.strands.nearest(fit.inside.rows[some]).latent
    branch, widest = latent.domain.piece(places), 0.0
    for b, (first, last) in enumerate(fit.graph.ends.tolist()):
        low, high = latent.domain.low[b], latent.domain.high[b]
        forks = [z for end, z in ((first, low), (last, high)) if end >= 0 and fit.graph.degrees[end] > 2]
        stops = np.sort(np.concatenate([places[branch == b, 0], forks]))
        widest = max(widest, float(np.diff(stops).max(initial=0.0)))
    return widest


def doubled_share(fit: FittedTree) -> float:
    """Share of the tree that another part of it lies beside: near in space, far along the tree."""
    places = fit.graph.latent.refined(_PLACES).nodes
    points = fit.strands.point(places)
    apart = np.sqrt(squared_distances(points, points))
    way = fit.graph.network.distances(places, places)
    beside = (way > _ELSEWHERE_RATIO * apart) & (apart < _STRAND_DEVIATIONS * fit.noise)
    return float(beside.any(axis=1).mean())


def neighborhood_ratios(inside: RowsInFrame, weight: FloatArray, D: int) -> tuple[float, float]:
    """Variance of the neighbours of a row in their second direction over the first, and third over second: medians.

    In two columns there is no third, and of few rows neighbours are not near: (0, inf).
    """
    some = evenly_by_radius(inside.rows, weight, _MOST_ROWS)
    rows, rest, share = inside.rows[some], inside.rest[some], weight[some]
    count = max(_FEWEST_NEIGHBORS, int(_NEIGHBOR_SHARE * len(rows)))
    if D < _LEAST_DIRECTIONS or count > _LARGEST_SHARE * len(rows):
        return 0.0, np.inf
    about = np.unique(np.linspace(0, len(rows) - 1, _PLACES).astype(np.int64))
    near = np.argpartition(squared_distances(rows[about], rows), count, axis=1)[:, :count]
    spread = np.array([_three_variances(rows[each], rest[each], share[each], D) for each in near])
    spread = np.maximum(spread, np.finfo(float).tiny)
    return float(np.median(spread[:, 1] / spread[:, 0])), float(np.median(spread[:, 2] / spread[:, 1]))


def _three_variances(rows: FloatArray, rest: FloatArray, weight: FloatArray, D: int) -> tuple[float, float, float]:
    """The three largest variances of rows (k, q) in any direction; that of the columns left out counts as one."""
    q = rows.shape[1]
    about = rows - np.average(rows, axis=0, weights=weight)
    values = np.linalg.eigvalsh((weight[:, None] * about).T @ about / weight.sum())[::-1]
    outside = float(np.average(rest, weights=weight)) / (D - q) if q < D else 0.0
    return float(values[0]), float(values[1]), max(outside, float(values[2]) if q > 2 else 0.0)
