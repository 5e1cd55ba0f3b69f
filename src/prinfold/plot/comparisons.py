"""Pictures of comparisons: held-out error against roughness, and the front of those that nobody beats in both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from prinfold._typing import FloatArray
from prinfold.plot import style
from prinfold.plot.arguments import check_picture
from prinfold.plot.data.comparisons import Front, comparison_points
from prinfold.validation.parameter_docs import fill_parameter_docs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FAR_APART = 4.0
"""How many times as large the largest error is as the least where a logarithmic axis tells the others apart."""

_FLATTEST = 0.1
"""Roughness below which surfaces are drawn as flat: a turn of six degrees is none."""


@check_picture
@fill_parameter_docs
def comparison_front(comparison: Any, *, ax: Axes | None = None) -> Axes:
    """Draw held-out error against roughness, with the Pareto front and a ring round what is recommended.

    Filled marks cannot be told from the recommended one by the criterion of the comparison. That the front goes on
    falling towards rough surfaces does not mean that they are better: the nearest point of a wavy surface is nearer.

    Parameters
    ----------
    comparison : Comparison
        What :func:`prinfold.compare` returned.
    {ax}

    Returns
    -------
    matplotlib.axes.Axes
    """
    shown = comparison_points(comparison)
    on = style.axes_for(ax, 2, (6.8, 4.2))
    x = np.maximum(shown.roughness, _FLATTEST)
    on.plot(x[shown.front], shown.error[shown.front], color=style.PALE, lw=1.6, zorder=1, label="_front")
    for i, name in enumerate(dict.fromkeys(shown.method)):
        _draw_method(on, shown, x, name, i)
    if shown.chosen >= 0:
        _ring(on, shown, x)
    on.set_xscale("symlog", linthresh=1.0)
    on.xaxis.set_major_formatter("{x:g}")
    if 0 < _FAR_APART * shown.error.min() < shown.error.max():
        on.set_yscale("log")
        style.plain_log(on.yaxis)
    on.set_xlim(left=0)
    on.set(xlabel="roughness (total turning or bending)", ylabel="held-out error")
    style.legend(on, loc="upper left", bbox_to_anchor=(1.0, 1.0), ncols=1)
    return style.finish(on, settle=ax is None, heading="Methods by held-out error and roughness")


def _draw_method(on: Any, shown: Front, x: FloatArray, name: str, index: int) -> None:
    marker, color = style.marker(index), style.color(index)
    own = np.array([each == name for each in shown.method])
    on.errorbar(
        x[own], shown.error[own], yerr=shown.standard_error[own], fmt="none", ecolor=color, elinewidth=0.8, zorder=2
    )
    near = shown.tied | (np.arange(len(own)) == shown.chosen)
    for group, face, label in (
        (own & near, color, name),
        (own & ~near, "white", name if not (own & near).any() else ""),
    ):
        if group.any():
            on.plot(
                x[group], shown.error[group], marker, mfc=face, mec=color, ms=6.5, mew=1.3, label=label or f"_{name}"
            )


def _ring(on: Any, shown: Front, x: FloatArray) -> None:
    """Mark the one that is recommended, with its word on the side where there is room."""
    place = float(x[shown.chosen]), float(shown.error[shown.chosen])
    on.plot(*place, "o", mfc="none", mec=style.SIGNAL, ms=14, mew=1.6, label="_recommended", zorder=5)
    right = place[0] > np.sqrt(x.min() * x.max())
    side, step = ("right", -10) if right else ("left", 10)
    on.annotate("recommended", place, (step, -14), textcoords="offset points", ha=side, color=style.SIGNAL, size=9)
