"""Pictures of the nodes of a self-organising map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.colors import Normalize

from prinfold.exceptions import InvalidParameterError
from prinfold.plot import style
from prinfold.plot.arguments import check_picture
from prinfold.plot.data.som import majorities, row_counts, u_matrix_cells, winners_of
from prinfold.plot.data.surfaces import limits
from prinfold.plot.inputs import FittedSurface, RowClasses, row_classes
from prinfold.validation.parameter_docs import fill_parameter_docs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from prinfold._typing import IntArray

_POINTS_PER_INCH = 72.0
"""Units of a font size in an inch."""

_SIZE = 7.5
"""Points of the numbers on nodes; a digit takes about two thirds of that."""


@check_picture
@fill_parameter_docs
def u_matrix(model: Any, X: Any = None, *, labels: Any = None, ax: Axes | None = None) -> Axes:
    """Draw how far apart neighbouring nodes of a self-organising map lie in data space; dark lines part clusters.

    Every node has a cell with its mean distance to its neighbours, and between neighbours is one with the distance of
    the two. On closed axes the cells after the last node join it to the first.

    Parameters
    ----------
    model : fitted estimator or pipeline
        A :class:`~prinfold.SOM` on a grid of one or two axes, rectangular or hexagonal.
    X : array-like of shape (n, D), default=None
        Rows to show: on each node stands how many it wins, or, where the numbers of many nodes would run into each
        other, a dot whose area is that number, on a line a bar.
    labels : array-like of shape (n,), default=None
        Class of each row; on each node then stands the mark of the class that most of its rows have.
    {ax}

    Returns
    -------
    matplotlib.axes.Axes
    """
    fitted = FittedSurface.of(model)
    cells = u_matrix_cells(fitted)
    if X is None and labels is not None:
        raise InvalidParameterError("labels are those of rows; pass the rows too, as X")
    corner = cells.corners.reshape(-1, 2)
    low, high = corner.min(axis=0), corner.max(axis=0)
    line = bool(np.ptp(cells.nodes[:, 1]) == 0)
    ratio = float(np.clip((high[1] - low[1]) / (high[0] - low[0]), 0.3, 1.2))
    on = style.axes_for(ax, 2, (6.4, 2.2 if line else 5.2 * ratio + 0.6))
    shade = PolyCollection(list(cells.corners), cmap=style.PAPER, norm=Normalize(*limits(cells.value)), rasterized=True)
    shade.set(array=cells.value, edgecolor="face", linewidth=0.3, zorder=0)
    on.add_collection(shade, autolim=False)
    on.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xticks=[], yticks=[])
    on.set_aspect("auto" if line else "equal")
    for spine in on.spines.values():
        spine.set_visible(False)
    if X is not None:
        _mark_winners(on, fitted, X, labels, cells.nodes)
    style.scale_bar(on, shade, "distance between neighbours")
    return style.finish(on, settle=ax is None, heading="U-matrix: distance between neighbouring nodes")


def _mark_winners(on: Any, fitted: FittedSurface, X: Any, labels: Any, place: Any) -> None:
    """Mark nodes by what they win."""
    winner = winners_of(fitted, X)
    if labels is None:
        _draw_counts(on, row_counts(winner, fitted.latent), place)
        return
    groups = row_classes(labels, len(winner))
    most = majorities(winner, groups, fitted.latent.n_nodes)
    style.draw_rows(on, place[most >= 0], RowClasses(groups.names, most[most >= 0]), None)


def _draw_counts(on: Any, counts: IntArray, place: Any) -> None:
    """Numbers on the nodes, or dots, on a line bars, where there is no room for them."""
    some = np.flatnonzero(counts)
    low, high = on.get_xlim()
    # From one node to the next.
    room = _POINTS_PER_INCH * on.figure.get_figwidth() * on.get_position().width / (high - low)
    if room > len(f"{counts.max(initial=0)}") * 0.7 * _SIZE + 1:
        for k in some.tolist():
            on.text(*place[k], f"{counts[k]}", ha="center", va="center", size=_SIZE, color=style.INK, zorder=3)
        return
    share, words = counts[some] / counts.max(), {"label": f"rows won, up to {counts.max()}", "zorder": 3}
    if np.ptp(place[:, 1]) == 0:
        bottom, top = on.get_ylim()
        height = 0.9 * (top - bottom) * share
        on.bar(place[some, 0], height, width=0.4, bottom=bottom, color=style.INK, alpha=0.7, linewidth=0, **words)
    else:
        area = min(room, _SIZE) ** 2 * share
        style.dots(on, place[some], s=area, c=style.INK, linewidths=0, **words)
    style.legend(on)
