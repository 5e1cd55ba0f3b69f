"""Pictures of how sure a model is: of where rows lie on the map, and of where the surface lies among the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from prinfold._typing import FloatArray
from prinfold.exceptions import InvalidParameterError
from prinfold.latent.drawing import LatentLayout
from prinfold.plot import style
from prinfold.plot.arguments import check_picture
from prinfold.plot.data.surfaces import choose_view, repeat_over_seams
from prinfold.plot.data.uncertainties import (
    PosteriorEllipses,
    bars,
    coordinate_spread,
    half_width,
    posterior_ellipses,
    refuse_solid,
    spread_field,
    tube,
)
from prinfold.plot.inputs import FittedSurface, lanes, numbers_of, row_marks
from prinfold.plot.lines import wires
from prinfold.plot.maps import _layout, _size
from prinfold.plot.surfaces import _filled_rows, _frame
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.settings import check_setting, integer

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@check_picture
@fill_parameter_docs
def uncertainty(
    model: Any, X: Any, *, labels: Any = None, level: float = 0.68, most: int = 100, ax: Axes | None = None
) -> Axes:
    """Draw how sure the places of rows on the map are: the spread of each row's posterior.

    Over two latent axes the spread is an ellipse, along a curve a bar. Its half-axes hold the ``level`` of a normal
    posterior along themselves; a posterior of several modes is not normal, and its ellipse is large.

    Parameters
    ----------
    model : fitted estimator or pipeline
        A model with a posterior, such as :class:`~prinfold.GTM`.
    X : array-like of shape (n, D)
        Rows to show.
    {labels}
    level : float, default=0.68
        Share that the half-axes hold: 0.68 is one standard deviation, 0.95 two.
    most : int, default=100
        Most rows whose spread is drawn, evenly spaced among all; the others are points only.
    {ax}

    Returns
    -------
    matplotlib.axes.Axes
    """
    fitted, scale = FittedSurface.of(model), half_width(level)
    check_setting("most", most, integer(1))
    layout = _layout(fitted, ax)
    refuse_solid(layout)
    spread = coordinate_spread(fitted, X, int(most))
    groups, _ = row_marks(labels, None, len(spread.Z))
    on = style.axes_for(ax, 2, _size(layout))
    style.frame(on, layout)
    lane = lanes(spread.Z, groups)
    place = layout.place(spread.Z, lane)
    colors = np.array([style.ACCENT] * len(spread.chosen), dtype=object)
    if groups is not None:
        index = groups.index[spread.chosen].tolist()
        colors = np.array([style.SOFT if i < 0 else style.color(i) for i in index], dtype=object)
    if fitted.latent.n_columns == 1:
        style.lines(on, list(bars(layout, spread, lane, scale)), colors=list(colors), linewidths=1.0, alpha=0.45)
    else:
        _draw(on, layout, posterior_ellipses(fitted, spread, place[spread.chosen], scale), list(colors))
    style.draw_rows(on, place, groups, None)
    return style.finish(on, settle=ax is None, heading="Uncertainty of the rows' positions on the map")


@check_picture
@fill_parameter_docs
def surface_band(
    model: Any,
    X: Any = None,
    *,
    level: float = 0.95,
    hessian: str = "approximate",
    dims: Any = None,
    resolution: int = 80,
    ax: Axes | None = None,
) -> Axes:
    """Draw how sure the surface is, by the posterior of its weights.

    A curve is drawn in two columns, or the first two principal components, within the tube that holds it with
    probability ``level`` at each place. A surface is shown by the standard deviation over its map.

    Parameters
    ----------
    model : fitted estimator
        A :class:`~prinfold.GTM`.
    X : array-like of shape (n, D), default=None
        Rows to show; the exact Hessian needs those of the fit.
    level : float, default=0.95
        Probability that the tube of a curve holds it, at each place by itself.
    hessian : {"approximate", "exact"}, default="approximate"
        As in ``surface_std``.
    dims : sequence of int or str, default=None
        Two columns in which a curve is drawn, by position or name.
    resolution : int, default=80
        Cells of the map of a surface along each axis.
    {ax}

    Returns
    -------
    matplotlib.axes.Axes
    """
    fitted = FittedSurface.of(model)
    how = {"X": X if hessian == "exact" else None, "hessian": hessian}
    rows = None if X is None else _filled_rows(numbers_of(X), X, fitted)
    if fitted.latent.dimension == 1:
        return _draw_tube(fitted, rows, level, how, dims, ax)
    layout = _layout(fitted, ax)
    field = spread_field(fitted, layout, resolution, how)
    on = style.axes_for(ax, 2, _size(layout))
    style.frame(on, layout)
    shown = style.draw_field(on, field, ends=(0.0, float(np.nanquantile(field.value, 0.995))), cmap=style.DEEP)
    style.scale_bar(on, shown, "standard deviation of the surface")
    if rows is not None:
        Z = fitted.coordinates(X)
        place = layout.place(Z, np.full(len(Z), 0.5))
        style.dots(on, place, s=5, c=style.SIGNAL, linewidths=0, alpha=0.6, zorder=3, label="rows")
    return style.finish(on, settle=ax is None, heading="How sure the surface is")


def _draw_tube(
    fitted: FittedSurface, rows: FloatArray | None, level: float, how: dict[str, Any], dims: Any, ax: Axes | None
) -> Axes:
    if style.is_solid(ax):
        raise InvalidParameterError("the band of a curve is drawn in two columns; give axes without projection='3d'")
    lines = wires(fitted)
    view = choose_view(fitted.feature_names, np.concatenate(lines) if rows is None else rows, dims, 2, True)
    if len(view.labels) != 2:
        raise InvalidParameterError(f"the band of a curve is drawn in two columns, but dims names {len(view.labels)}")
    discs = tube(fitted, view, level, how)
    on = style.axes_for(ax, 2, (6.0, 5.0))
    _draw(on, None, discs, "#c6dbec", alpha=1.0, zorder=0.5)
    if rows is not None:
        style.dots(on, view(rows), s=6, c=style.SOFT, linewidths=0, alpha=0.6, zorder=2)
    seen = [view(line) for line in lines]
    style.lines(on, seen, colors=style.SIGNAL, linewidths=1.8, zorder=4)
    reach = 0.5 * discs.width[:, None]
    every = [*seen, discs.center - reach, discs.center + reach, *([] if rows is None else [view(rows)])]
    _frame(on, view, np.concatenate(every))
    return style.finish(on, settle=ax is None, heading="How sure the surface is")


def _draw(
    ax: Any,
    layout: LatentLayout | None,
    shapes: PosteriorEllipses,
    colors: Any,
    alpha: float = 0.2,
    zorder: float = 1.5,
) -> None:
    copy, shift = repeat_over_seams(layout, shapes.center)
    painted = colors if isinstance(colors, str) else [colors[i] for i in copy]
    axes = shapes.width[copy], shapes.height[copy], shapes.angle[copy]
    pen: dict[str, Any] = {"facecolors": painted, "edgecolors": "none", "alpha": alpha, "zorder": zorder}
    style.ellipses(ax, shapes.center[copy] + shift, *axes, **pen)
