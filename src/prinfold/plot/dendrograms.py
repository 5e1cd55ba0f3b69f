"""A picture of a rooted tree: time to the right, forks and branches in lanes, rows along them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from prinfold.plot import style
from prinfold.plot.arguments import check_picture
from prinfold.plot.data.dendrograms import lay_out, place_rows, refuse_other_models
from prinfold.plot.inputs import FittedSurface, numbers_of, row_marks
from prinfold.validation.parameter_docs import fill_parameter_docs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INCHES_PER_LANE = 0.9


@check_picture
@fill_parameter_docs
def dendrogram(
    model: Any,
    X: Any = None,
    *,
    labels: Any = None,
    values: Any = None,
    value_name: str = "value",
    ax: Axes | None = None,
) -> Axes:
    """Draw a rooted tree, ridge or curve as a dendrogram: pseudotime to the right, every branch in a lane of its own.

    Rows lie at their time, beside their branch by how far off it they are.

    Parameters
    ----------
    model : fitted estimator or pipeline
        A curve or graph, such as :class:`~prinfold.PrincipalTree`, with ``root=``.
    X : array-like of shape (n, D), default=None
        Rows to show.
    {labels}
    {values}
    {value_name}
    {ax}

    Returns
    -------
    matplotlib.axes.Axes
    """
    fitted = FittedSurface.of(model)
    refuse_other_models(fitted.model)
    rows = None if X is None else numbers_of(fitted.rows(X))
    groups, numbers = row_marks(labels, values, None if rows is None else len(rows))
    layout, place = (lay_out(fitted.model.rooted_), None) if rows is None else place_rows(fitted.model, rows)
    n_lanes = float(np.ptp(layout.lane)) + 1.0
    on = style.axes_for(ax, 2, (7.2, 1.6 + _INCHES_PER_LANE * n_lanes))
    if place is not None:
        scale = style.draw_rows(on, place, groups, numbers)
        if scale is not None:
            style.scale_bar(on, scale, value_name)
    for i in range(len(layout.lane)):
        x = [layout.start[i], layout.start[i], layout.end[i]]
        for color, width, depth in (("white", 4.0, 3.5), (style.INK, 2.0, 4.0)):
            on.plot(x, [layout.begin[i], layout.lane[i], layout.lane[i]], color=color, lw=width, zorder=depth)
    first = layout.begin[np.isclose(layout.start, 0.0)]
    style.dots(on, np.stack([np.zeros(len(first)), first], axis=1), s=26, c=style.INK, zorder=5)
    milestones = fitted.model.rooted_.milestones
    _name_leaves(on, fitted.model.rooted_, layout)
    reach = float(max(layout.end.max(), milestones.times.max()))
    on.set(xlabel="pseudotime", yticks=[], ylim=(float(layout.lane.min()) - 0.6, float(layout.lane.max()) + 0.6))
    on.set_xlim(-0.02 * reach, 1.1 * reach)
    on.spines["left"].set_visible(False)
    return style.finish(on, settle=ax is None, heading="Branches by pseudotime")


def _name_leaves(ax: Any, rooted: Any, layout: Any) -> None:
    """Names of leaves at the ends of their lanes."""
    graph = rooted.graph
    for number, leaf in enumerate(rooted.leaves):
        Z = graph.places[[leaf]]
        here = int(layout.stretch(graph.latent.domain.piece(Z), Z)[0])
        time = float(rooted.times(Z)[0])
        ax.annotate(
            f"leaf {number + 1}",
            (time, layout.lane[here]),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            size=8.5,
            color=style.SOFT,
        )
