"""Pictures of landscapes: classes and numbers over a map."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from prinfold._typing import FloatArray
from prinfold.exceptions import InvalidParameterError
from prinfold.latent.drawing import LatentLayout
from prinfold.plot import style
from prinfold.plot.arguments import check_picture
from prinfold.plot.data.landscapes import (
    KINDS,
    NodeValues,
    ShownLandscape,
    class_index,
    landscape_of,
    mix_with_white,
    node_values,
    pixel_values,
)
from prinfold.plot.data.surfaces import limits
from prinfold.plot.inputs import FittedSurface, layout_of
from prinfold.plot.maps import _curve_axis, _reach, _size
from prinfold.validation.parameter_docs import fill_parameter_docs

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@check_picture
@fill_parameter_docs
def landscape(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    show: Any = None,
    kind: str | None = None,
    target: int = 0,
    fade: bool = True,
    min_mass: float | None = None,
    show_rows: bool = False,
    value_name: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw what is known of classes or numbers at each node of a map; nodes without rows stay blank.

    Classes are shown by the most likely one, numbers by their mean. Colours fade where a node is not sure: where other
    classes are as likely, or where the standard error of the mean is as large as the spread of all rows. Along a curve,
    lines are drawn with bands: one standard error, and for numbers the spread between rows too.

    Parameters
    ----------
    model : GTMClassifier, GTMRegressor, or a fitted map with responsibilities, or a pipeline that ends in one
        What to draw the landscape of.
    X : array-like of shape (n, D), default=None
        Rows; a map needs them, with ``y``.
    y : array-like of shape (n,) or (n, m), default=None
        Classes or numbers of the rows, for a map; what is missing is not known.
    show : str, class or None, default=None
        Instead of the most likely class: the class whose probability to show. Instead of the mean: ``"spread"`` between
        rows or ``"error"`` of the mean. For either ``"mass"``, the number of rows at each node.
    kind : {"class", "property"}, default=None
        Whether ``y`` are classes or numbers; None takes text, and up to 20 different whole numbers, for classes.
    target : int, default=0
        Which of several targets is drawn.
    fade : bool, default=True
        Whether colours fade where a node is not sure.
    min_mass : float, default=None
        Rows' worth of posterior below which a node is left blank; None takes the landscape's own (0.1 for a map).
    show_rows : bool, default=False
        Whether the rows ``X`` are dotted in.
    value_name : str, default=None
        What the colour scale is called; None names what is shown.
    {ax}

    Returns
    -------
    matplotlib.axes.Axes
    """
    if kind not in (None, *KINDS):
        raise InvalidParameterError(f"kind must be 'class', 'property' or None, got {kind!r}")
    shown = landscape_of(model, X, y, kind, min_mass)
    if shown.latent.dimension > 2:
        raise InvalidParameterError(
            f"landscapes are drawn over one or two latent dimensions, but the map has {shown.latent.dimension}; "
            "its numbers are in landscape_"
        )
    layout = layout_of(shown.latent, flat=True)
    curve = shown.latent.n_columns == 1
    on = style.axes_for(ax, layout.depth, (6.4, 3.4) if curve else _size(layout))
    if curve:
        _draw_curve(on, layout, shown, show, target, value_name)
    else:
        _draw_plane(on, layout, shown, show, target, fade, value_name)
        if show_rows and X is not None:
            _draw_rows(on, layout, model, X)
    what = value_name or node_values(shown, show, target).words
    paler = "" if curve or not fade else "; paler where less certain"
    words = f"Landscape of {'the most likely class' if what == 'class' else what}{paler}"
    return style.finish(on, settle=ax is None, heading=words)


# ------------------------------------------------------------------------------------------------ two dimensions


def _draw_plane(
    ax: Any, layout: LatentLayout, shown: ShownLandscape, show: Any, target: int, fade: bool, name: str | None
) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize, to_rgb

    style.frame(ax, layout)
    found = node_values(shown, show, target)
    if found.words == "class":
        table = np.array([to_rgb(style.color(i)) for i in range(len(shown.names))])
        _color_map(ax, layout, shown, show, target, lambda value: table[value.astype(int)], fade)
        for i, each in enumerate(shown.names):
            ax.scatter([], [], marker="s", c=[table[i]], s=34, label=style.legend_text(each))
        style.legend(ax)
        return
    known = found.value[np.isfinite(found.value)]
    low, high = (0.0, 1.0) if found.words.startswith("probability") else limits(known, 1e-9)
    scale = ScalarMappable(Normalize(low, high), style.DEEP if found.words.startswith("rows") else "viridis")
    _color_map(ax, layout, shown, show, target, lambda value: np.asarray(scale.to_rgba(value))[:, :3], fade)
    style.scale_bar(ax, scale, name or found.words)


def _color_map(
    ax: Any,
    layout: LatentLayout,
    shown: ShownLandscape,
    show: Any,
    target: int,
    color_of: Callable[[FloatArray], FloatArray],
    fade: bool,
) -> None:
    """Colours between the nodes of a lattice, or dots where they are none; where no rows lie, it stays blank."""

    def color(values: NodeValues) -> FloatArray:
        return mix_with_white(color_of(values.value), values.sure if fade else np.ones(len(values.sure)))

    pixels = None if layout.plane is None else pixel_values(shown, show, target)
    if pixels is not None and layout.plane is not None:
        image = np.concatenate([color(pixels.values).reshape(*pixels.shape, 3), pixels.opacity[..., None]], axis=2)
        look: dict[str, Any] = {"origin": "lower", "interpolation": "antialiased", "aspect": ax.get_aspect()}
        ax.imshow(image, extent=pixels.ends, zorder=0, **look)
        for i, set_limits in enumerate((ax.set_xlim, ax.set_ylim)):
            set_limits(_reach(np.array(pixels.ends[2 * i : 2 * i + 2]), layout.plane, i))
        return
    found, latent = node_values(shown, show, target), shown.latent
    known = np.isfinite(found.value)
    place = layout.place(latent.nodes, np.full(latent.n_nodes, 0.5))[known]
    area = float(np.clip(2.2e4 / latent.n_nodes, 8.0, 160.0))
    pen: dict[str, Any] = {"edgecolors": style.PALE, "linewidths": 0.4, "zorder": 1, "clip_on": False}
    style.dots(ax, place, s=area, c=color(NodeValues(found.value[known], found.sure[known], found.words)), **pen)


def _draw_rows(ax: Any, layout: LatentLayout, model: Any, X: Any) -> None:
    Z = FittedSurface.of(model).coordinates(X)
    place = layout.place(Z, np.full(len(Z), 0.5))
    style.dots(ax, place, s=4, c=style.INK, linewidths=0, alpha=0.6, zorder=2)


# ------------------------------------------------------------------------------------------------- one dimension


def _draw_curve(ax: Any, layout: LatentLayout, shown: ShownLandscape, show: Any, target: int, name: str | None) -> None:
    """Lines along the curve with bands of what they may be off by; gaps where nodes are empty."""
    _curve_axis(ax, layout)
    order = np.argsort(shown.latent.nodes[:, 0])
    z = shown.latent.nodes[order, 0]
    if layout.axis is not None and layout.axis.closed:  # round a circle the line comes back to its beginning
        order, z = np.append(order, order[0]), np.append(z, z[0] + 2.0 * np.pi)
    if shown.names and not (isinstance(show, str) and show == "mass"):
        found: Any = shown.landscape
        for i in range(len(shown.names)) if show is None else [class_index(shown, show)]:
            p, error = found.probability[order, i], found.error[order, i]
            color = style.color(i)
            ax.fill_between(z, np.clip(p - error, 0, 1), np.clip(p + error, 0, 1), color=color, alpha=0.2, lw=0)
            ax.plot(z, p, "o-", ms=2.5, lw=1.4, color=color, label=style.legend_text(shown.names[i]))
        ax.set(ylim=(-0.02, 1.02), ylabel=style.plain_text(name or "probability of the class"))
        style.legend(ax)
        return
    values = node_values(shown, show, target)
    line = values.value[order]
    if values.words == "mean":
        for each, alpha in (("spread", 0.15), ("error", 0.35)):
            half = node_values(shown, each, target).value[order]
            ax.fill_between(z, line - half, line + half, color=style.ACCENT, alpha=alpha, lw=0, label=each)
    ax.plot(z, line, "o-", ms=2.5, lw=1.4, color=style.ACCENT, label=values.words)
    ax.set(ylabel=style.plain_text(name or values.words))
    style.legend(ax)
