"""Pictures of a monitor: control charts with their limits, and which columns are behind an alarm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.plot import style
from prinfold.plot.arguments import check_picture
from prinfold.plot.data.monitoring import CHARTS, PARTS, ContributionBars, ControlChart, chart_of, contribution_bars
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.tables import as_entries

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_NAMES = 40
"""Columns up to which each bar has its name."""


@check_picture
@fill_parameter_docs
def monitor(
    model: Any,
    X: Any,
    *,
    chart: str = "off",
    times: Any = None,
    show_model: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Draw a control chart: a measure of each row in turn, with the limit beyond which it is an alarm.

    Parameters
    ----------
    model : SurfaceMonitor, or a pipeline that ends in one
        What watches.
    X : array-like of shape (n, D)
        Rows in the order of time.
    chart : {"off", "along", "density"}, default="off"
        What is drawn: the squared distance from the surface in units of the noise (like SPE), how rare the place on it
        is (like T²), or minus the log density, by which ``predict`` decides.
    times : array-like of shape (n,), default=None
        Where rows stand on the horizontal axis; None counts them.
    show_model : bool, default=True
        Whether the limit that the model would set by itself is drawn too, broken.
    {ax}

    Returns
    -------
    matplotlib.axes.Axes
    """
    if chart not in CHARTS:
        raise InvalidParameterError(f"chart must be 'off', 'along' or 'density', got {chart!r}")
    found = chart_of(model, X, chart)
    at = np.arange(len(found.value)) if times is None else as_entries("times", times)
    if at.shape != found.value.shape:
        raise InvalidDataError(f"times has shape {at.shape} for {len(found.value)} rows; give one time per row")
    on = style.axes_for(ax, 2, (7.6, 3.0))
    _draw_chart(on, at, found, show_model)
    on.set(ylabel=found.words, xlabel="row" if times is None else "time")
    if found.log:
        on.set_yscale("log")
        style.plain_log(on.yaxis)
    style.legend(on)
    return style.finish(on, settle=ax is None, heading="Control chart with the limit for an alarm")


def _draw_chart(ax: Any, at: Any, found: ControlChart, show_model: bool) -> None:
    alarm = found.value > found.limit
    ax.plot(at, found.value, color=style.PALE, lw=0.8, zorder=1)
    size = 0.6 * style.marker_area(len(found.value))
    style.dots(
        ax, np.stack([at[~alarm], found.value[~alarm]], axis=1), s=size, c=style.ACCENT, linewidths=0, label="usual"
    )
    if alarm.any():
        place = np.stack([at[alarm], found.value[alarm]], axis=1)
        style.dots(ax, place, s=1.6 * size, c=style.SIGNAL, marker="D", linewidths=0, label="alarm", zorder=3)
    ax.axhline(found.limit, color=style.INK, lw=1.0, label=f"limit ({found.rate:g})")
    if show_model:
        ax.axhline(found.model_limit, color=style.SOFT, lw=1.0, ls=(0, (4, 3)), label="the model's own")


@check_picture
@fill_parameter_docs
def contributions(model: Any, X: Any, *, part: str = "off", ax: Axes | None = None) -> Axes:
    """Draw each column's part in what is unusual of a row, or of several on average.

    Parameters
    ----------
    model : SurfaceMonitor, or a pipeline that ends in one
        What watches.
    X : array-like of shape (D,) or (n, D)
        The row, or rows.
    part : {"off", "along"}, default="off"
        Whether parts of the distance from the surface are drawn, which add up to it, or of the distance along it to the
        nearest place where rows are usual.
    {ax}

    Returns
    -------
    matplotlib.axes.Axes
    """
    if part not in PARTS:
        raise InvalidParameterError(f"part must be 'off' or 'along', got {part!r}")
    found = contribution_bars(model, X, part)
    on = style.axes_for(ax, 2, (7.6, 3.0))
    _draw_bars(on, found)
    return style.finish(on, settle=ax is None, heading="What each column adds to the alarm")


def _draw_bars(ax: Any, found: ContributionBars) -> None:
    at = np.arange(len(found.value))
    for up, color, words in ((True, style.SIGNAL, "too high"), (False, style.ACCENT, "too low")):
        bars = found.raised == up
        if bars.any():
            ax.bar(at[bars], found.value[bars], width=0.8, color=color, label=words)
    ax.set(ylabel=found.words, ylim=(0.0, None))
    if len(at) <= _MOST_NAMES:
        turn = max(map(len, found.names)) * len(at) > 90
        ax.set_xticks(
            at,
            [style.plain_text(each) for each in found.names],
            rotation=45 if turn else 0,
            ha="right" if turn else "center",
        )
    else:
        ax.set_xlabel("column")
    style.legend(ax)
