"""Pictures of data space and of training, and the choice of the most telling picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from prinfold._typing import FloatArray
from prinfold.exceptions import InvalidDataError, InvalidParameterError, quantity
from prinfold.latent import Cloud
from prinfold.plot import style
from prinfold.plot.arguments import check_picture
from prinfold.plot.data.surfaces import (
    DataView,
    choose_view,
    clamping_comparison,
    noise_ellipses,
    residual_lines,
    training_course,
)
from prinfold.plot.inputs import FittedSurface, numbers_of, row_marks
from prinfold.plot.lines import drawn_region, surface_mesh, wires
from prinfold.plot.maps import latent_map
from prinfold.plot.mixtures import hierarchy, mixture
from prinfold.plot.ridges import ridge
from prinfold.plot.trajectories import along
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.refusals import refuse_non_finite

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@check_picture
@fill_parameter_docs
def surface(
    model: Any,
    X: Any = None,
    *,
    labels: Any = None,
    values: Any = None,
    dims: Any = None,
    noise: bool = False,
    show_nodes: bool = False,
    value_name: str = "value",
    ax: Axes | None = None,
) -> Axes:
    """Draw the surface in data space, with the rows around it.

    Data of two or three columns are drawn as they are. Of more columns those in ``dims`` are shown, or else
    the first principal components of the rows (of the surface, where there are no rows): two for a curve,
    three for a surface, or as many as the axes given have. A surface of two dimensions on a lattice is drawn as far as
    the rows reach on it; without rows all of it is drawn.

    Parameters
    ----------
    model : fitted estimator or pipeline
        The model; behind a pipeline's scaling steps the surface is drawn in the units of X.
    {X.shown}
    {labels}
    {values}
    dims : sequence of int or str, default=None
        Two or three columns to show, by position or name.
    noise : bool, default=False
        Whether each node of a curve in two columns gets the ellipse of two standard deviations of its noise.
    show_nodes : bool, default=False
        Whether the images of the nodes are marked.
    {value_name}
    ax : matplotlib.axes.Axes, default=None
        Where to draw; None makes a figure. Three axes need ``projection="3d"``.

    Returns
    -------
    matplotlib.axes.Axes
    """
    fitted = FittedSurface.of(model)
    fitted.refuse_levels()
    rows = None if X is None else _filled_rows(numbers_of(X), X, fitted)
    groups, numbers = row_marks(labels, values, None if rows is None else len(rows))
    region = drawn_region(fitted, X)
    lines = wires(fitted, region=region)
    curve = fitted.latent.dimension == 1
    depth = None if ax is None else (3 if style.is_solid(ax) else 2)
    view = choose_view(fitted.feature_names, np.concatenate(lines) if rows is None else rows, dims, depth, curve)
    if depth is not None and depth != len(view.labels):
        raise InvalidParameterError(
            f"dims names {len(view.labels)} columns, but the axes given have {depth} dimensions; "
            'make axes with projection="3d" for three columns, without for two'
        )
    solid = len(view.labels) == 3
    on = style.axes_for(ax, len(view.labels), (6.4, 5.6) if solid else (6.0, 5.0))
    if noise:
        _draw_noise(on, fitted, view)
    seen = [view(line) for line in lines]
    if rows is not None:
        scale = style.draw_rows(on, view(rows), groups, numbers)
        if scale is not None:
            style.scale_bar(on, scale, value_name)
    _draw_lines(on, seen, curve, colored=labels is not None or values is not None)
    if solid and fitted.latent.dimension == 2:
        _draw_sheet(on, fitted, view, region)
    if show_nodes:
        nodes = view(fitted.points(fitted.latent.nodes))
        style.dots(on, nodes, s=22, marker="+", c=style.INK, linewidths=0.9, zorder=5)
    _frame(on, view, np.concatenate([*seen, *([] if rows is None else [view(rows)])]))
    through = "" if rows is None else f" through {quantity(len(rows), 'row')}"
    return style.finish(on, settle=ax is None, heading=f"{type(fitted.model).__name__}{through}")


@check_picture
@fill_parameter_docs
def learning_curve(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw how training went: the objective by iteration, the noise on a scale of its own, why it stopped.

    Parameters
    ----------
    model : fitted estimator, pipeline, or dict
        The model, or its ``history_``.
    {ax}

    Returns
    -------
    matplotlib.axes.Axes
    """
    curve = training_course(model)
    on = style.axes_for(ax, 2, (6.4, 3.6))
    iteration = curve.first + np.arange(len(curve.objective))
    mark: dict[str, Any] = {"marker": "o", "ms": 3.0} if len(iteration) < 12 else {}
    on.plot(iteration, curve.objective, color=style.ACCENT, lw=1.8, label="objective", **mark, zorder=3)
    if curve.log_likelihood is not None:
        dash = (0, (3, 2))
        on.plot(
            iteration, curve.log_likelihood, color=style.PALETTE[5], lw=1.4, ls=dash, label="log-likelihood", zorder=2
        )
    last = curve.first + max(len(iteration) - 1, 1)
    words = "objective" if curve.log_likelihood is None else "per row, natural log"
    on.set(xlabel="iteration", ylabel=words, xlim=(curve.first, last))
    on.xaxis.get_major_locator().set_params(integer=True)
    handles, names = on.get_legend_handles_labels()
    if curve.noise is not None:
        other = on.twinx()
        style.tidy(other)
        other.spines["left"].set_visible(False)
        other.spines["right"].set(visible=True, color=style.PALE)
        line = other.plot(iteration, curve.noise, color=style.SIGNAL, lw=1.3, **mark)
        other.set(ylabel="noise, standard deviation", ylim=(0.0, None))
        on.figure.sca(on)
        on.set_zorder(other.get_zorder() + 1)
        on.patch.set_visible(False)
        handles, names = [*handles, *line], [*names, "noise"]
    # Below the axes, where no line passes.
    below = {"loc": "upper left", "bbox_to_anchor": (0.0, -0.16), "ncols": len(handles)}
    style.legend(on, handles=handles, labels=names, **below)
    if curve.ending:
        style.title(on, curve.ending)
    return style.finish(on, settle=ax is None)


@check_picture
@fill_parameter_docs
def selection(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw how a clamping was chosen: error against roughness, one line for each, by way of the regularisation.

    Surfaces right of the dashed level are rougher than the GTM and out of the running. Points are averages over
    the folds, while the choice was made fold by fold.

    Parameters
    ----------
    model : fitted estimator, pipeline, or Selection
        A PPS with ``clamping="select"``, or its ``selection_``.
    {ax}

    Returns
    -------
    matplotlib.axes.Axes
    """
    shown = clamping_comparison(model)
    on = style.axes_for(ax, 2, (6.4, 4.4))
    for i, label in enumerate(shown.labels):
        pen = {"lw": 2.2, "zorder": 4} if i == shown.chosen else {"lw": 1.1, "alpha": 0.85, "zorder": 3}
        on.plot(
            shown.roughness[i],
            shown.error[i],
            color=style.color(i),
            marker=style.marker(i),
            ms=4.0,
            label=label,
            **pen,
        )
    on.axvline(shown.level, color=style.SOFT, lw=1.0, ls=(0, (3, 2)), zorder=2)
    on.plot(*shown.place, marker="o", ms=11, mfc="none", mec=style.INK, mew=1.4, ls="none", label="chosen", zorder=5)
    on.set(xlabel="roughness of the surface", ylabel="held-out squared distance")
    on.set(xscale=style.scale_of(shown.roughness), yscale=style.scale_of(shown.error))
    style.legend(on, loc="upper left", bbox_to_anchor=(1.0, 1.0), ncols=1, title="clamping", title_fontsize=9)
    return style.finish(on, settle=ax is None, heading="Error and roughness, by clamping")


@check_picture
@fill_parameter_docs
def residuals(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw residuals against the latent dimension, a line for each number of neighbours.

    Parameters
    ----------
    model : Residuals or fitted KMM
        What :func:`prinfold.select_kmm` returned, or a model's ``candidates_``.
    {ax}

    Returns
    -------
    matplotlib.axes.Axes
    """
    shown = residual_lines(model)
    on = style.axes_for(ax, 2, (5.6, 3.8))
    for i, line in enumerate(shown.lines):
        pen = {"color": style.color(i), "marker": style.marker(i), "ms": 5.0, "lw": 1.4}
        on.plot(line.dimensions, line.residuals, label=line.label, **pen)
    on.axhline(shown.variance, color=style.SOFT, lw=1.0, ls=(0, (3, 2)), zorder=1)
    on.annotate(
        "variance of the rows", (1.0, shown.variance), xycoords=("axes fraction", "data"), ha="right", va="bottom"
    )
    every = np.concatenate([line.residuals for line in shown.lines])
    on.set(xlabel="latent dimension", ylabel="residual per row", yscale=style.scale_of(every))
    if on.get_yscale() == "log":
        style.plain_log(on.yaxis)
    on.set_xticks(sorted({int(d) for line in shown.lines for d in line.dimensions}))
    style.legend(on, loc="upper left", bbox_to_anchor=(1.0, 1.0), ncols=1, title="neighbours", title_fontsize=9)
    return style.finish(on, settle=ax is None, heading="Residual by latent dimension")


@check_picture
@fill_parameter_docs
def model(estimator: Any, X: Any = None, **options: Any) -> Axes:
    """Draw the most telling picture of a model.

    A curve in two or three columns is drawn among its data by :func:`surface`, one by arc length in more by its columns
    (:func:`along`), unless rows are to be told apart; everything else is shown as a map of the rows by
    :func:`latent_map`, a mixture as all its maps by :func:`mixture`, and a hierarchy
    of them by :func:`hierarchy`.

    Parameters
    ----------
    estimator : fitted estimator or pipeline
        The model.
    {X.shown}
    **options
        For the picture chosen, such as ``labels=``, ``values=`` and ``ax=``.

    Returns
    -------
    matplotlib.axes.Axes
    """
    if hasattr(estimator, "levels_"):
        return hierarchy(estimator, X, **options)
    fitted = FittedSurface.of(estimator)
    if fitted.latent.unit_speed and hasattr(fitted.model, "graph_"):  # branch after branch makes no map
        in_the_plane = hasattr(fitted.model, "flow_") and fitted.model.n_features_in_ == 2
        return (ridge if in_the_plane else surface)(estimator, X, **options)
    if fitted.latent.charts:
        return (surface if _is_best_in_data_space(fitted) else mixture)(estimator, X, **options)
    if fitted.latent.unit_speed and not _is_best_in_data_space(fitted) and not _colors_rows(options):
        return along(estimator, X, **options)
    return (surface if _is_best_in_data_space(fitted) else latent_map)(estimator, X, **options)


def _colors_rows(options: dict[str, Any]) -> bool:
    """Whether rows are to be told apart, for which a map has room."""
    return any(options.get(name) is not None for name in ("labels", "values"))


def _is_best_in_data_space(fitted: FittedSurface) -> bool:
    """Whether a model is best seen among its data: a curve in two or three columns."""
    return fitted.latent.dimension == 1 and 2 <= len(fitted.feature_names) <= 3


# ------------------------------------------------------------------------------------------------ how to draw


def _filled_rows(rows: FloatArray, X: Any, fitted: FittedSurface) -> FloatArray:
    """Rows without gaps: where the pipeline or the model fills them, they are drawn as filled."""
    if rows.ndim != 2 or rows.shape[1] != len(fitted.feature_names):
        raise InvalidDataError(
            f"the rows to draw must have the {len(fitted.feature_names)} columns that the {fitted.word} was fitted to, "
            f"got an array of shape {rows.shape}"
        )
    if np.isfinite(rows).all():
        return rows
    fills = hasattr(fitted.model, "impute") and not np.isinf(rows).any()
    if fitted.before is None and not fills:
        refuse_non_finite(rows, fitted.feature_names)
    seen = fitted.rows(X)
    return fitted.back(fitted.model.impute(seen) if fills else seen)


def _draw_lines(ax: Any, lines: list[FloatArray], curve: bool, *, colored: bool) -> None:
    pen: dict[str, Any] = {"colors": "#51606f", "linewidths": 0.5, "alpha": 0.6}
    if curve:
        pen = {"colors": style.INK if colored else style.SIGNAL, "linewidths": 2.0, "capstyle": "round"}
    style.lines(ax, lines, zorder=4 if curve else 2, **pen)


def _draw_sheet(ax: Any, fitted: FittedSurface, view: DataView, region: Cloud | None) -> None:
    mesh = surface_mesh(fitted, region=region)
    if len(mesh.faces):  # a surface of scattered points has none
        style.triangles(ax, view(mesh.vertices)[mesh.faces])


def _draw_noise(ax: Any, fitted: FittedSurface, view: DataView) -> None:
    if fitted.latent.dimension != 1 or len(view.labels) != 2 or not hasattr(fitted.model, "noise_covariance"):
        raise InvalidParameterError(
            "noise discs are drawn for curves in two columns of a model with Gaussian noise, got "
            f"{fitted.latent.dimension} dimension(s) in {len(view.labels)} columns; choose two with dims="
        )
    if fitted.before is not None:
        raise InvalidParameterError("noise discs are true only in the units of the model; draw pipeline[-1] instead")
    center = view(fitted.points(fitted.latent.nodes))
    covariance = fitted.model.noise_covariance(view.axes)
    if not np.isfinite(covariance).all():
        raise InvalidParameterError(
            "noise with two degrees of freedom or fewer has no standard deviation to draw discs of; "
            "set noise=StudentNoise(min_df=3) or leave the discs out"
        )
    # One flat tint without edges, so that overlapping discs read as the tube that they make up.
    style.ellipses(ax, center, *noise_ellipses(covariance), facecolors="#e6edf4", edgecolors="none", zorder=0.5)


def _frame(ax: Any, view: DataView, shown: FloatArray) -> None:
    low, high = shown.min(axis=0), shown.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    names = ("x", "y", "z")[: len(view.labels)]
    for i, name in enumerate(names):
        getattr(ax, f"set_{name}lim")(low[i] - 0.04 * span[i], high[i] + 0.04 * span[i])
        getattr(ax, f"set_{name}label")(style.plain_text(view.labels[i]))
    # Like scales only where no axis would be squeezed out of sight by them.
    alike = bool(span.max() <= 5 * span.min())
    if len(names) == 3:
        style.box(ax, tuple(span / span.max()) if alike else (1.0, 1.0, 1.0))
    elif alike:
        ax.set_aspect("equal", adjustable="box")
