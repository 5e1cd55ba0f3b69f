"""Pictures of choosing: candidates along one of their settings, and the one that was taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from prinfold.plot import style
from prinfold.plot.arguments import check_picture
from prinfold.plot.data.choices import ChoiceLine, ChoiceLines, choice_lines
from prinfold.validation.parameter_docs import fill_parameter_docs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LOG_AXIS_RATIO = 4.0
"""Ratio of the largest value to the smallest from which an axis is logarithmic."""

_MOST_TICKS = 12
"""Values of a setting that are all named under the axis."""


@check_picture
@fill_parameter_docs
def choice(choice: Any, along: str | None = None, *, values: str = "score", ax: Axes | None = None) -> Axes:
    """Draw what candidates scored, with a ring round the one that was chosen.

    Parameters
    ----------
    choice : Choice
        What :func:`prinfold.choose` returned.
    along : str, default=None
        The setting along the axis; None is the first that was varied. There is a line for each value of the others.
    values : str, default="score"
        What to draw: ``"score"`` with its standard errors, ``"precision"`` (β, which against ``n_components`` shows how
        many dimensions are worth having), ``"noise_variance"``, ``"prior_precision"``, ``"effective"``,
        ``"log_likelihood"``, ``"n_weights"`` or ``"seconds"``.
    {ax}

    Returns
    -------
    matplotlib.axes.Axes
    """
    shown = choice_lines(choice, along, values)
    on = style.axes_for(ax, 2, (5.6, 3.8))
    for i, line in enumerate(shown.lines):
        _draw_line(on, line, i)
    _ring(on, shown)
    on.margins(y=0.14)
    on.set(xlabel=shown.along, ylabel=shown.words)
    if shown.numeric:
        _scale(on, np.array([place for place, _ in shown.ticks]))
    if len(shown.ticks) <= _MOST_TICKS:
        on.set_xticks(*zip(*shown.ticks, strict=True))
        on.minorticks_off()
    if shown.others:
        heading = ", ".join(shown.others)
        style.legend(on, loc="upper left", bbox_to_anchor=(1.0, 1.0), ncols=1, title=heading, title_fontsize=9)
    return style.finish(on, settle=ax is None, heading=f"Candidates by their {values}; the ring marks the one chosen")


def _ring(on: Any, shown: ChoiceLines) -> None:
    """Mark the candidate that was chosen, with its word on the side where there is room."""
    on.plot(*shown.chosen, "o", mfc="none", mec=style.SIGNAL, ms=13, mew=1.6, label="_chosen", zorder=5)
    last = len(shown.ticks) > 1 and shown.chosen[0] == shown.ticks[-1][0]
    side, step = ("right", -9) if last else ("left", 9)
    place = {"textcoords": "offset points", "ha": side, "color": style.SIGNAL, "size": 9}
    on.annotate("chosen", shown.chosen, (step, 8), **place)


def _scale(on: Any, places: Any) -> None:
    """A logarithmic axis for values that differ by factors; one that begins at 0 is plain as far as the next."""
    above = places[places > 0]
    if len(above) < 3 or (places < 0).any() or above.max() < _LOG_AXIS_RATIO * above.min():
        return
    if len(above) == len(places):
        on.set_xscale("log")
    else:
        on.set_xscale("symlog", linthresh=float(above.min()))


def _draw_line(on: Any, line: ChoiceLine, index: int) -> None:
    marker, color = style.marker(index), style.color(index)
    error = np.where(np.isfinite(line.error), line.error, 0.0)
    on.errorbar(
        line.x,
        line.y,
        yerr=error if error.any() else None,
        color=color,
        marker=marker,
        ms=5.0,
        lw=1.4,
        elinewidth=0.9,
        capsize=2.0,
        label=line.label or "_candidates",
    )
