"""Pictures of mixtures: all maps side by side with the rows that belong to them, and hierarchies of maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from prinfold._typing import FloatArray
from prinfold.exceptions import InvalidParameterError, percent
from prinfold.plot import style
from prinfold.plot.arguments import check_picture
from prinfold.plot.data.mixtures import Panel, PanelBox, boxes, hierarchy_panels, lines_of, mixture_panels, shading
from prinfold.plot.data.surfaces import limits
from prinfold.plot.inputs import RowClasses, n_rows_of, row_marks
from prinfold.validation.parameter_docs import fill_parameter_docs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_ON_A_LINE = 4
_SIDE = 3.1
"""Inches that a panel takes."""


@check_picture
@fill_parameter_docs
def mixture(
    model: Any,
    X: Any = None,
    *,
    labels: Any = None,
    values: Any = None,
    background: bool = True,
    value_name: str = "value",
    ax: Axes | None = None,
) -> Axes:
    """Draw all maps of a mixture side by side, each with the rows that belong to it, the fainter the less they do.

    A row that belongs to several maps is drawn on each of them. The shading is the magnification factor, on one scale
    for all maps.

    Parameters
    ----------
    model : fitted GTMMixture, or a pipeline that ends in one
        The model.
    X : array-like of shape (n, D), default=None
        Rows to show; None shows the maps alone.
    {labels.legend}
    values : array-like of shape (n,), default=None
        A number for each row, shown by colour; rows without one are drawn grey.
    background : bool, default=True
        Whether maps are shaded by the magnification factor.
    {value_name}
    ax : matplotlib.axes.Axes, default=None
        Where to draw: the maps become axes within it. None makes a figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes that hold those of the maps, which are its ``child_axes``.
    """
    groups, numbers = row_marks(labels, values, None if X is None else n_rows_of(X))
    panels = mixture_panels(model, X, groups, shaded=background)
    counts = lines_of(len(panels), _MOST_ON_A_LINE)
    on = _sheet(ax, max(counts), len(counts))
    places = [box for line in boxes(counts) for box in line]
    colors = _colors(groups, numbers, 0 if X is None else n_rows_of(X))
    for panel, box in zip(panels, places, strict=True):
        _draw_panel(on, panel, box, groups, colors, shading(panels), style.INK)
    return _add_legends(on, panels, groups, numbers, value_name, settle=ax is None)


@check_picture
@fill_parameter_docs
def hierarchy(
    model: Any,
    X: Any = None,
    *,
    labels: Any = None,
    values: Any = None,
    background: bool = True,
    value_name: str = "value",
    ax: Axes | None = None,
) -> Axes:
    """Draw a hierarchy of mixtures, level by level: below each map what was found in it, framed in its colour.

    Parameters
    ----------
    model : fitted GTMHierarchy
        The hierarchy.
    X : array-like of shape (n, D), default=None
        Rows to show; None shows the maps alone. Each is drawn the fainter the less of it reaches a map.
    {labels.legend}
    values : array-like of shape (n,), default=None
        A number for each row, shown by colour; rows without one are drawn grey.
    background : bool, default=True
        Whether maps are shaded by the magnification factor.
    {value_name}
    ax : matplotlib.axes.Axes, default=None
        Where to draw: the maps become axes within it. None makes a figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes that hold those of the maps, which are its ``child_axes``.
    """
    groups, numbers = row_marks(labels, values, None if X is None else n_rows_of(X))
    levels = hierarchy_panels(model, X, groups, shaded=background)
    on = _sheet(ax, max(map(len, levels)), len(levels))
    panels, places = (
        [p for level in levels for p in level],
        [b for line in boxes([len(l) for l in levels]) for b in line],
    )
    colors, frames = _colors(groups, numbers, 0 if X is None else n_rows_of(X)), _frames(levels)
    at = {panel.path: box for panel, box in zip(panels, places, strict=True)}
    for panel, box in zip(panels, places, strict=True):
        above = panel.path[:-1]
        frame = frames.get(above, style.SOFT)
        if above in at:
            _join(on, at[above], box, frame)
        _draw_panel(on, panel, box, groups, colors, shading(panels), frame)
    return _add_legends(on, panels, groups, numbers, value_name, settle=ax is None)


def _sheet(ax: Axes | None, n_across: int, n_down: int) -> Any:
    on = style.axes_for(ax, 2, (_SIDE * max(n_across, 1.6) + 1.0, _SIDE * n_down + 0.5))
    if style.is_solid(on):
        raise InvalidParameterError("maps side by side need axes of two dimensions; make them without projection='3d'")
    on.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0))
    on.set_axis_off()
    return on


def _frames(levels: list[list[Panel]]) -> dict[tuple[int, ...], str]:
    """A colour for every map that something lies below."""
    parents = sorted({panel.path[:-1] for level in levels[1:] for panel in level}, key=lambda path: (len(path), path))
    return {path: style.color(i) for i, path in enumerate(parents)}


def _colors(groups: RowClasses | None, values: FloatArray | None, n_rows: int) -> FloatArray:
    """(n, 4) colour of every row, without regard to memberships."""
    from matplotlib import colormaps
    from matplotlib.colors import Normalize, to_rgba

    if groups is not None:
        each = np.array([to_rgba(style.color(i)) for i in range(len(groups.names))] + [to_rgba(style.SOFT)])
        return np.asarray(each[groups.index])
    if values is None:
        return np.tile(to_rgba(style.ACCENT), (n_rows, 1))
    known = ~np.isnan(values)
    out = np.tile(to_rgba(style.SOFT), (n_rows, 1))
    out[known] = colormaps["viridis"](Normalize(*limits(values))(values[known]))
    return out


def _draw_panel(
    on: Any,
    panel: Panel,
    box: PanelBox,
    groups: RowClasses | None,
    colors: FloatArray,
    ends: tuple[float, float] | None,
    frame: str,
) -> None:
    own = on.inset_axes(box)
    style.tidy(own)
    style.frame(own, panel.layout)
    own.set(xlabel="", ylabel="")
    if panel.field is not None and ends is not None:
        style.draw_field(own, panel.field, ends=ends)
    index = np.zeros(len(panel.rows), dtype=int) if groups is None else groups.index[panel.rows]
    paint = colors[panel.rows] * np.stack([*[np.ones(len(panel.rows))] * 3, panel.weight], axis=1)
    for each in np.unique(index):
        some = index == each
        marker = style.marker(each) if each >= 0 else "o"
        common = {"linewidths": 0.0, "zorder": 3, "clip_on": False, "s": style.marker_area(len(colors))}
        style.dots(own, panel.place[some], c=paint[some], marker=marker, **common)
    plain = frame == style.INK
    words = f"map {'.'.join(map(str, panel.path))} · {percent(panel.share)}"
    own.set_title(words, loc="left", fontsize=9.5, color=frame, pad=5)
    line = {"color": style.PALE, "linewidth": 0.8} if plain else {"color": frame, "linewidth": 1.4}
    for spine in own.spines.values():
        spine.set(visible=True, **line)


def _join(on: Any, above: PanelBox, below: PanelBox, color: str) -> None:
    """A line from a map to what was found in it, through the gap between their levels."""
    (x0, y0), (x1, y1) = above.foot, below.top
    # Clear of tick labels above and of the title below.
    y0, y1 = y0 - 0.3 * (y0 - y1), y1 + 0.34 * (y0 - y1)
    style.lines(on, [np.array([[x0, y0], [x1, y1]])], colors=color, linewidths=1.2, zorder=1)


def _add_legends(
    on: Any, panels: list[Panel], groups: RowClasses | None, values: FloatArray | None, value_name: str, *, settle: bool
) -> Axes:
    """Add the legend and colour scales for all maps together."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    for i, name in enumerate(() if groups is None else groups.names):
        on.scatter([], [], marker=style.marker(i), color=style.color(i), label=style.legend_text(name))
    style.legend(on)
    ends = shading(panels)
    slim = 0.12 / on.figure.get_figwidth()
    if ends is not None:
        style.scale_bar(
            on, ScalarMappable(Normalize(*ends), style.PAPER), "magnification factor", factors=True, width=slim
        )
    if values is not None:
        scale = ScalarMappable(Normalize(*limits(values)), "viridis")
        style.scale_bar(on, scale, value_name, top=ends is not None, width=slim)
    return style.finish(on, settle=settle, heading="The maps, each with the rows that belong to it")
