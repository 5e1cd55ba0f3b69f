"""Signs that rows do not lie along a tree, from the one that was fitted.

The method does not fail where there is no tree: it returns a branch of no length in a blob, and many side by side over
a sheet. The signs of that are measured here. The limits were set on simulated rows, in 2 to 50 columns. Of the length
of trees with three to five leaves 0 to 0.3 lies beside another branch, now and then 0.5 where two come near each other;
of that of trees over sheets 0.3 to 0.9. The limit of 0.5 spares a tree of blood cells with 0.4. So a sheet is mostly
told, not always.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from prinfold._typing import FloatArray
from prinfold.density.ridges.graph import RidgeGraph
from prinfold.exceptions import Advice, Message
from prinfold.latent.arc_length_curves import Strands
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
"""Places on the tree at which it is compared with itself."""


class FittedTree(NamedTuple):
    """A tree among its rows: the graph, its branches and the rows in their components, noise and bandwidth."""

    graph: RidgeGraph
    strands: Strands
    inside: RowsInFrame
    weight: FloatArray
    noise: float
    bandwidth: float


def doubt(topology: str, fit: FittedTree) -> str:
    """Reasons against the shape that was asked for, in words; "" if nothing does."""
    return _check_blob(fit) or _check_sheet(fit) or _check_path(topology, fit)


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
            f"surface rather than lie along branches; take GTM(2) for a surface"
        )
    return ""


def _check_sheet(fit: FittedTree) -> str:
    """Words about branches that lie side by side."""
    doubled = doubled_share(fit)
    if doubled < _DOUBLED_SHARE:
        return ""
    return (
        f"branches run side by side over {doubled:.0%} of the length of the tree, nearer than "
        f"{_STRAND_DEVIATIONS:g} times the scatter of the rows across it ({fit.noise:.3g}), so that the data look like "
        f"a surface rather than a tree; try GTM(2)"
    )


def _check_path(topology: str, fit: FittedTree) -> str:
    """Words about a tree without forks."""
    if topology not in ("tree", "graph") or fit.graph.latent.n_branches > 1:
        return ""
    if fit.graph.latent.closed[0]:
        return str(Message("the rows lie along one ring, without forks", Advice("topology", "ring")))
    words = "no fork stands out from the noise: the rows lie along one path. PrincipalCurve draws it smoothly"
    return str(Message(words, Advice("topology", "path")))


def doubled_share(fit: FittedTree) -> float:
    """Share of the tree that another part of it lies beside: near in space, far along the tree."""
    places = fit.graph.latent.refined(_PLACES).nodes
    points = fit.strands.point(places)
    apart = np.sqrt(squared_distances(points, points))
    way = fit.graph.network.distances(places, places)
    beside = (way > _ELSEWHERE_RATIO * apart) & (apart < _STRAND_DEVIATIONS * fit.noise)
    return float(beside.any(axis=1).mean())
