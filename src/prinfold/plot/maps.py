"""Pictures of latent space: the map of the rows, one row's posterior, stretch and folds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from prinfold._typing import FloatArray
from prinfold.exceptions import InvalidDataError, InvalidParameterError, quantity
from prinfold.latent.drawing import LatentLayout, Plane
from prinfold.numerics.finite_checks import LARGEST
from prinfold.plot import style
from prinfold.plot.arguments import check_picture
from prinfold.plot.data.surfaces import (
    Field,
    curve_magnification,
    given_field,
    layout_for,
    limits,
    log_factor,
    magnification_field,
    node_field,
    node_folds,
    repeat_over_seams,
    row_posterior,
    smooth_field,
    stretch_ellipses,
)
from prinfold.plot.inputs import FittedSurface, lanes, layout_of, row_marks
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.tables import as_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_SEAM_WIDTH = 0.02
"""Share of the span of a closed axis from its seam at which the mean and mode of a row are marked on both sides."""


@check_picture
@fill_parameter_docs
def latent_map(
    model: Any,
    X: Any = None,
    *,
    labels: Any = None,
    values: Any = None,
    background: Any = "magnification",
    show_nodes: bool | None = None,
    mode_lines: bool = False,
    value_name: str = "value",
    ax: Axes | None = None,
) -> Axes:
    """Draw where rows lie in latent space, over the magnification factor of the surface.

    Planes, cylinders and tori are drawn as they are, spheres on an equal-area chart, curves as a strip or a
    ring whose width only keeps the rows apart, spaces of three and more axes as a box.

    Parameters
    ----------
    model : fitted estimator, pipeline, or array of shape (n, Q)
        The model; or latent coordinates themselves, which are then drawn without a background.
    X : array-like of shape (n, D), default=None
        Rows to show, at ``model.transform(X)``; None shows the nodes.
    {labels.legend}
    values : array-like of shape (n,), default=None
        A number for each row, shown by colour; NaN is drawn hollow.
    background : {"magnification"}, array or None, default="magnification"
        Shading behind the rows: the magnification factor, dark where the surface is stretched; values at the
        nodes (K,) of a grid; or an image (r, c) over the chart, its first row at the bottom.
    show_nodes : bool, default=None
        Whether nodes are dotted in; None does so when there are no rows.
    mode_lines : bool, default=False
        Whether a line joins each row's posterior mean to its posterior mode: long ones warn of several modes.
    {value_name}
    {ax}

    Returns
    -------
    matplotlib.axes.Axes
    """
    fitted, Z = _coordinates(model, X)
    groups, numbers = row_marks(labels, values, None if Z is None else len(Z))
    flat = ax is not None and not style.is_solid(ax)
    layout = layout_for(fitted.model if fitted else Z, flat=flat)
    shade = _background(background, fitted, layout)
    on = style.axes_for(ax, layout.depth, _size(layout))
    style.frame(on, layout)
    filled = None if shade is None else style.draw_field(on, shade)
    if fitted and (show_nodes or (show_nodes is None and Z is None)):
        _draw_nodes(on, layout, fitted)
    scale = None
    if Z is not None:
        place = layout.place(Z, lanes(Z, groups))
        scale = style.draw_rows(on, place, groups, numbers)
        if mode_lines:
            _join_modes(on, layout, fitted, X, place, lanes(Z, groups))
    if scale is not None:
        style.scale_bar(on, scale, value_name)
    if filled is not None:
        words = "magnification factor" if isinstance(background, str) else "values given"
        style.scale_bar(on, filled, f"shading: {words}", factors=isinstance(background, str), top=scale is not None)
    return style.finish(on, settle=ax is None, heading=_heading(fitted, Z))


def _heading(fitted: FittedSurface | None, Z: FloatArray | None) -> str:
    """Title of a map, such as "300 rows on the GTM map"."""
    shown = "Nodes" if Z is None else quantity(len(Z), "row")
    return f"{shown} on the {type(fitted.model).__name__} map" if fitted else f"{shown} in latent space"


@check_picture
@fill_parameter_docs
def posterior(model: Any, x: Any, ax: Axes | None = None) -> Axes:
    """Draw the posterior of one row over latent space, with its mean and mode.

    Parameters
    ----------
    model : fitted estimator or pipeline
        A model with a posterior, such as :class:`~prinfold.GTM`.
    x : array-like of shape (D,) or (1, D)
        The row.
    {ax}

    Returns
    -------
    matplotlib.axes.Axes
    """
    fitted = FittedSurface.of(model)
    found = row_posterior(fitted, x)
    latent, layout = fitted.latent, _layout(fitted, ax)
    on = style.axes_for(ax, layout.depth, (6.4, 3.2) if latent.n_columns == 1 else _size(layout))
    if latent.n_columns == 1:
        _stems(on, layout, found.places[:, 0], found.weight, "posterior probability of the node")
        for name, at, dashes in (("mean", found.mean, "-"), ("mode", found.mode, (0, (2, 2)))):
            on.axvline(float(at[0, 0]), color=style.SIGNAL, lw=1.2, ls=dashes, label=name, zorder=3)
        style.legend(on)
        return style.finish(on, settle=ax is None, heading="Where one row may lie on the map")
    style.frame(on, layout)
    scale = _node_colors(on, fitted, layout, found.weight, (0.0, float(found.weight.max())))
    style.scale_bar(on, scale, "posterior probability of the node")
    pen: dict[str, Any] = {"linewidths": 1.4, "edgecolors": style.SIGNAL, "zorder": 4, "clip_on": False}
    middle = np.full(1, 0.5)
    mode, mean = (_repeat_at_seam(layout, layout.place(at, middle)) for at in (found.mode, found.mean))
    style.dots(on, mode, s=80, marker="D", facecolors="none", label="mode", **pen)
    style.dots(on, mean, s=34, marker="o", facecolors="white", label="mean", **pen)
    style.legend(on)
    return style.finish(on, settle=ax is None, heading="Where one row may lie on the map")


@check_picture
@fill_parameter_docs
def magnification(model: Any, *, ellipses: bool = True, resolution: int = 200, ax: Axes | None = None) -> Axes:
    """Draw how the map stretches latent space: the factor as shading, size and direction as ellipses.

    An ellipse shows what becomes of a small latent disc, up to one scale for the whole picture, the largest
    at which they do not overlap. Along a curve the factor is drawn as a line.

    Parameters
    ----------
    {model}
    ellipses : bool, default=True
        Whether ellipses are drawn, spread evenly over the map.
    {resolution.shading}
    {ax}

    Returns
    -------
    matplotlib.axes.Axes
    """
    fitted = FittedSurface.of(model)
    latent, layout = fitted.latent, _layout(fitted, ax)
    on = style.axes_for(ax, layout.depth, (6.4, 3.2) if latent.n_columns == 1 else _size(layout))
    words, heading = "magnification factor", f"Where the {type(fitted.model).__name__} map is stretched"
    if latent.n_columns == 1:
        _curve_axis(on, layout)
        z, factor = curve_magnification(fitted.model)
        on.plot(z, factor, color=style.ACCENT, lw=1.8)
        on.set(ylabel="length in data space\nper unit of latent space")
        if (np.asarray(factor) > 0).any():  # a curve of one point has no length
            on.set(yscale="log")
            style.plain_log(on.yaxis)
        return style.finish(on, settle=ax is None, heading=heading)
    style.frame(on, layout)
    field = magnification_field(fitted.model, layout, resolution)
    if field is None:
        value = log_factor(fitted.model, latent.nodes)
        style.scale_bar(on, _node_colors(on, fitted, layout, value, limits(value), smooth=True), words, factors=True)
        return style.finish(on, settle=ax is None, heading=heading)
    style.scale_bar(on, style.draw_field(on, field), words, factors=True)
    if ellipses:
        _draw_ellipses(on, fitted, layout)
    return style.finish(on, settle=ax is None, heading=heading)


@check_picture
@fill_parameter_docs
def folds(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw where the surface folds: the largest angle between a node's tangent space and a neighbour's.

    Parameters
    ----------
    {model}
    {ax}

    Returns
    -------
    matplotlib.axes.Axes
    """
    fitted = FittedSurface.of(model)
    latent, layout, found = fitted.latent, _layout(fitted, ax), node_folds(fitted.model)
    angle, words = np.degrees(found.angle), "angle to the next node's tangent"
    on = style.axes_for(ax, layout.depth, (6.4, 3.2) if latent.n_columns == 1 else _size(layout))
    top = max(90.0, float(angle.max(initial=0.0)))
    if latent.n_columns == 1:
        _stems(on, layout, latent.nodes[:, 0], angle, words)
        on.axhline(90.0, color=style.SOFT, lw=0.8, ls=(0, (4, 3)))
        on.set(ylim=(0.0, 1.05 * top))
        on.yaxis.set_major_formatter("{x:.0f}°")
        on.plot(
            latent.nodes[found.folded, 0], angle[found.folded], "x", color=style.SIGNAL, label="folded", clip_on=False
        )
    else:
        style.frame(on, layout)
        bar = style.scale_bar(on, _node_colors(on, fitted, layout, angle, (0.0, top), smooth=True), words)
        bar.ax.yaxis.set_major_formatter("{x:.0f}°")
        place = layout.place(latent.nodes[found.folded], np.full(int(found.folded.sum()), 0.5))
        style.dots(on, place, s=26, marker="x", c=style.SIGNAL, linewidths=1.3, label="folded")
    if found.folded.any():
        style.legend(on)
    n = int(np.count_nonzero(found.folded))
    style.title(on, f"Folded at {quantity(n, 'node')}" if n else "No folds")
    return style.finish(on, settle=ax is None)


# ----------------------------------------------------------------------------------------------- what to draw


def _coordinates(model: Any, X: Any) -> tuple[FittedSurface | None, FloatArray | None]:
    if isinstance(model, np.ndarray):
        if X is not None:
            raise InvalidParameterError("X needs a fitted model; latent coordinates alone are drawn as they are")
        places = as_numbers("latent coordinates", model)
        if places.ndim != 2 or not places.shape[1] or not (np.abs(places) < LARGEST).all():
            raise InvalidDataError(f"latent coordinates must be a finite (n, Q) array, got shape {model.shape}")
        return None, places
    fitted = FittedSurface.of(model)
    fitted.require_map()
    return fitted, None if X is None else fitted.coordinates(X)


def _background(background: Any, fitted: FittedSurface | None, layout: LatentLayout) -> Field | None:
    if background is None or fitted is None:
        return None
    if not isinstance(background, str):
        return given_field(background, fitted.model, layout)
    if background != "magnification":
        hint = "; plot.u_matrix draws distances between nodes" if background == "u_matrix" else ""
        raise InvalidParameterError(f"background must be 'magnification', None or an array, got {background!r}{hint}")
    return magnification_field(fitted.model, layout)


def _layout(fitted: FittedSurface, ax: Axes | None) -> LatentLayout:
    return layout_of(fitted.latent, flat=ax is not None and not style.is_solid(ax))


def _size(layout: LatentLayout) -> tuple[float, float]:
    """Inches that suit the shape of a layout."""
    if layout.plane is not None:
        across, up = layout.plane.span
        ratio = float(np.clip(up / across, 0.3, 1.2))
        return (6.4, 5.2 * ratio + 0.35) if ratio > 0.6 else (7.6, 7.0 * ratio + 1.0)
    if layout.axis is not None:
        return (5.4, 5.4) if layout.axis.closed else (6.4, 2.6)
    return 6.4, 5.4


# ------------------------------------------------------------------------------------------------ how to draw


def _draw_nodes(ax: Any, layout: LatentLayout, fitted: FittedSurface) -> None:
    nodes = fitted.latent.nodes
    place = layout.place(nodes, np.full(len(nodes), 0.5))
    style.dots(ax, place, s=6, c=style.SOFT, linewidths=0, zorder=1, clip_on=False)


def _repeat_at_seam(layout: LatentLayout, place: FloatArray) -> FloatArray:
    """Places, and again those at a seam on the other side of it."""
    if layout.plane is None:
        return place
    copy, shift = repeat_over_seams(layout, place, _SEAM_WIDTH)
    return np.asarray(place[copy] + shift)


def _join_modes(
    ax: Any, layout: LatentLayout, fitted: FittedSurface | None, X: Any, place: FloatArray, lane: FloatArray
) -> None:
    if fitted is None:
        raise InvalidParameterError("mode_lines needs a fitted model and its rows X, not latent coordinates alone")
    style.draw_joins(ax, layout, place, layout.place(fitted.modes(X), lane))
    style.legend(ax)


def _node_colors(
    ax: Any,
    fitted: FittedSurface,
    layout: LatentLayout,
    value: FloatArray,
    ends: tuple[float, float],
    *,
    smooth: bool = False,
) -> Any:
    """Nodes by colour: as cells, or smoothly, where they are a lattice of two axes, else as dots."""
    field = None if layout.plane is None else node_field(fitted.latent, value)
    if field is not None and layout.plane is not None:
        ax.set(xlim=_reach(field.x, layout.plane, 0), ylim=_reach(field.y, layout.plane, 1))
        field = smooth_field(field) if smooth else field
        return style.draw_field(ax, field, ends=ends, cmap=style.DEEP)
    nodes = fitted.latent.nodes
    place = layout.place(nodes, np.full(len(nodes), 0.5))
    order = np.argsort(value, kind="stable")  # what matters most lies on top
    area = float(np.clip(2.2e4 / len(nodes), 8.0, 160.0))
    shown = np.maximum(value[order], ends[0])
    pen: dict[str, Any] = {"edgecolors": style.PALE, "linewidths": 0.4, "zorder": 1, "clip_on": False}
    return style.dots(ax, place[order], s=area, c=shown, cmap=style.DEEP, vmin=ends[0], vmax=ends[1], **pen)


def _reach(edges: FloatArray, layout: Plane, axis: int) -> tuple[float, float]:
    if layout.periodic[axis]:
        return layout.low[axis], layout.high[axis]
    return float(edges.min()), float(edges.max())


def _draw_ellipses(ax: Any, fitted: FittedSurface, layout: LatentLayout) -> None:
    found = stretch_ellipses(fitted.model)
    copy, shift = repeat_over_seams(layout, found.center)
    width, height = 2.0 * found.half[copy].T
    pen = {"facecolors": style.ACCENT, "edgecolors": "white", "linewidths": 0.3, "zorder": 2}
    style.ellipses(ax, found.center[copy] + shift, width, height, np.degrees(found.angle[copy]), **pen)


def _curve_axis(ax: Any, layout: LatentLayout) -> None:
    """A horizontal axis for the coordinate of a curve."""
    assert layout.axis is not None
    if layout.axis.closed:
        style.angle_ticks(ax.xaxis)
    ax.set_xlim(layout.axis.low, layout.axis.high)
    ax.set_xlabel(layout.labels[0])


def _stems(ax: Any, layout: LatentLayout, z: FloatArray, height: FloatArray, words: str) -> None:
    _curve_axis(ax, layout)
    low, high = ax.get_xlim()
    ax.set_xlim(low - 0.015 * (high - low), high + 0.015 * (high - low))
    ax.vlines(z, 0.0, height, color=style.PALE, lw=1.2, zorder=1)
    ax.plot(z, height, "o", ms=3.2, color=style.ACCENT, zorder=2, clip_on=False)
    ax.set(ylabel=words, ylim=(0.0, None))
