"""Pictures of ridges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prinfold.plot import style
from prinfold.plot.arguments import check_picture
from prinfold.plot.data.ridges import density_image, refuse_other_ridges, ridge_lines, view_of
from prinfold.plot.inputs import FittedSurface, columns_of, row_marks
from prinfold.validation.parameter_docs import fill_parameter_docs

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@check_picture
@fill_parameter_docs
def ridge(
    model: Any,
    X: Any = None,
    *,
    labels: Any = None,
    values: Any = None,
    value_name: str = "value",
    show_density: bool = True,
    resolution: int = 200,
    ax: Axes | None = None,
) -> Axes:
    """Draw the branches of a ridge in two columns, its ends and junctions, on the density that it is the ridge of.

    Every branch has a colour of its own where rows are not coloured, and is the wider the surer it is; those that other
    rows would hardly show are grey and dotted. Open circles are ends, filled ones junctions. On a sphere the axes are
    longitude and latitude.

    Parameters
    ----------
    model : fitted DensityRidge, or a pipeline that ends in one
        The model, with a ridge of one dimension in two columns; :func:`surface` draws any other.
    X : array-like of shape (n, 2), default=None
        Rows to show.
    {labels}
    {values}
    {value_name}
    show_density : bool, default=True
        Whether the density is shaded.
    {resolution.shading}
    {ax}

    Returns
    -------
    matplotlib.axes.Axes
    """
    fitted = FittedSurface.of(model)
    refuse_other_ridges(fitted)
    found = ridge_lines(fitted)
    rows = None if X is None else columns_of(X, 2)
    groups, numbers = row_marks(labels, values, None if rows is None else len(rows))
    low, high = view_of(*found.lines, *([] if rows is None else [rows]))
    on = style.axes_for(ax, 2, (6.0, 5.0))
    if show_density:
        style.draw_field(on, density_image(fitted, low, high, resolution))
    if rows is not None:
        if groups is None and numbers is None:
            style.dots(on, rows, s=4, c=style.SOFT, linewidths=0, alpha=0.5, zorder=2)
        else:
            scale = style.draw_rows(on, rows, groups, numbers)
            if scale is not None:
                style.scale_bar(on, scale, value_name)
    colored = labels is not None or values is not None
    for number, line in zip(found.branch, found.lines, strict=True):
        if not found.persists[number]:
            on.plot(*line.T, color=style.SOFT, lw=0.8, ls=":", zorder=3)
            continue
        color = style.INK if colored else style.color(number)
        # A white edge, so that no colour is lost on the shading.
        width = 2.4 * float(found.support[number])
        on.plot(*line.T, color="white", lw=width + 1.4, solid_capstyle="round", zorder=3)
        on.plot(*line.T, color=color, lw=width, solid_capstyle="round", zorder=4)
    for places, face in ((found.ends, "white"), (found.junctions, style.INK)):
        style.dots(on, places, s=22, c=face, edgecolors=style.INK, linewidths=1.1, zorder=5)
    names = ("longitude", "latitude") if fitted.model.space_.round is not None else fitted.feature_names
    on.set(
        xlabel=style.plain_text(names[0]),
        ylabel=style.plain_text(names[1]),
        xlim=(low[0], high[0]),
        ylim=(low[1], high[1]),
        aspect="equal",
    )
    style.whole_numbers(on)
    return style.finish(on, settle=ax is None, heading="Ridges of the density, shaded by density")
