"""Pictures of kernel methods: the starts compared, the latent density with its contour, images from the surface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from prinfold._typing import FloatArray
from prinfold.latent.drawing import LatentLayout
from prinfold.plot import style
from prinfold.plot.arguments import check_picture
from prinfold.plot.data.kernel_manifolds import (
    contour_segments,
    density_curve,
    density_field,
    latent_level,
    mosaic,
    start_comparison,
)
from prinfold.plot.inputs import FittedSurface, RowClasses, lanes, layout_of, row_marks
from prinfold.validation.parameter_docs import fill_parameter_docs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BAND = 0.16
"""Share of the height below a density curve that its latent points take."""


_LEVELS = (0.08, 0.995)
"""Shares of the pixels of a mosaic that are as light and as dark as can be."""


@check_picture
@fill_parameter_docs
def candidates(model: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the embeddings that training could have begun with: their errors by the number of neighbours.

    Embeddings that know no neighbours are level lines. The one chosen has a ring.

    Parameters
    ----------
    model : fitted estimator, pipeline, or table of candidates
        A :class:`~prinfold.UKR` or :class:`~prinfold.KMM`, or its ``candidates_``.
    {ax}

    Returns
    -------
    matplotlib.axes.Axes
    """
    shown = start_comparison(model)
    on = style.axes_for(ax, 2, (6.4, 3.8))
    sizes = np.concatenate([kind.neighbors[kind.neighbors > 0] for kind in shown.kinds])
    for i, kind in enumerate(shown.kinds):
        color = style.color(i)
        if kind.neighbors.any():
            pen = {"color": color, "marker": style.marker(i), "ms": 4.5, "lw": 1.5, "zorder": 3}
            on.plot(kind.neighbors, kind.errors, label=kind.name, **pen)
        else:
            on.axhline(float(kind.errors[0]), color=color, lw=1.3, ls=(0, (4, 3)), label=kind.name, zorder=2)
    name, size, error = shown.chosen
    place = size or (float(sizes.mean()) if len(sizes) else 0.5)
    on.plot(
        place, error, "o", ms=12, mfc="none", mec=style.INK, mew=1.4, label=f"chosen: {_words(name, size)}", zorder=5
    )
    errors = np.concatenate([kind.errors for kind in shown.kinds])
    on.set(xlabel="neighbours", ylabel="squared error before training", yscale=style.scale_of(errors))
    if on.get_yscale() == "log":
        style.plain_log(on.yaxis)
    if len(sizes):
        on.set_xticks(np.unique(sizes))
    else:
        on.set(xticks=[], xlabel="")
    style.legend(on)
    return style.finish(on, settle=ax is None, heading="Embeddings to start from, by their error")


@check_picture
@fill_parameter_docs
def latent_density(
    model: Any,
    X: Any = None,
    *,
    labels: Any = None,
    values: Any = None,
    value_name: str = "value",
    resolution: int = 200,
    ax: Axes | None = None,
) -> Axes:
    """Draw the density of the latent points, and the contour that bounds the latent domain.

    The domain may have holes and several pieces; outside it there is no surface. A density over one latent axis is
    drawn as a curve with the latent points below it. Of three axes and more the points alone are drawn, by density
    where they have no other colour.

    Parameters
    ----------
    model : fitted estimator or pipeline
        A kernel method: :class:`~prinfold.UKR` or :class:`~prinfold.KMM`.
    X : array-like of shape (n, D), default=None
        Rows to show, at ``model.transform(X)``; None shows the training rows where training has put them.
    {labels}
    {values}
    {value_name}
    {resolution.shading}
    {ax}

    Returns
    -------
    matplotlib.axes.Axes
    """
    fitted = FittedSurface.of(model)
    latent, level = fitted.latent, latent_level(fitted)
    Z = np.asarray(fitted.model.embedding_, dtype=float) if X is None else fitted.coordinates(X)
    groups, numbers = row_marks(labels, values, len(Z))
    layout = layout_of(latent, flat=ax is not None and not style.is_solid(ax))
    on = style.axes_for(ax, layout.depth, (6.4, 3.4) if latent.n_columns == 1 else (6.4, 5.2))
    filled = None
    if latent.n_columns == 1:
        place = _draw_curve(on, fitted, level, Z, groups)
    else:
        style.frame(on, layout)
        place = layout.place(Z, np.zeros(len(Z)))
        filled = _draw_shade(on, fitted, layout, resolution)
    if filled is None and latent.n_columns > 1 and groups is None and numbers is None:
        numbers, value_name = np.asarray(fitted.model.latent_density(Z)), "latent density"
    scale = style.draw_rows(on, place, groups, numbers)
    if scale is not None:
        style.scale_bar(on, scale, value_name)
    if filled is not None:
        style.scale_bar(on, filled, "latent density", factors=True, top=scale is not None)
    return style.finish(on, settle=ax is None, heading="Density of the latent points; the contour bounds the map")


@check_picture
@fill_parameter_docs
def images(model: Any, shape: Any = None, *, n: int = 15, cmap: Any = "gray_r", ax: Axes | None = None) -> Axes:
    """Draw points of the surface as images, spread evenly over latent space.

    Where a model has a density over latent space the images fade with it.

    Parameters
    ----------
    model : fitted estimator or pipeline
        A model of images, one to a row of the data and one pixel to a column.
    shape : tuple of int, default=None
        Height and width of the images; None takes them for square.
    n : int, default=15
        Images along the longer side.
    cmap : str or matplotlib colormap, default="gray_r"
        Colours of the pixels, from the lowest to the highest value.
    {ax}

    Returns
    -------
    matplotlib.axes.Axes
    """
    fitted = FittedSurface.of(model)
    found, layout = mosaic(fitted, shape, n), layout_of(fitted.latent)
    flat = layout.plane is None
    height, width = found.pixels.shape
    on = style.axes_for(ax, 2, (8.0, 1.6) if flat else (6.6, float(np.clip(6.4 * height / width, 2.0, 9.0)) + 0.3))
    left, right, bottom, top = found.extent
    if flat:  # no height of its own: as tall as its images are
        bottom, top = 0.0, (right - left) * height / width
    # A few pixels below the background or above the ink would leave all others in the middle of the scale.
    low, high = np.nanquantile(found.pixels, _LEVELS)
    look: dict[str, Any] = {"cmap": cmap, "vmin": low, "vmax": high, "interpolation": "none"}
    on.imshow(found.pixels, extent=(left, right, bottom, top), alpha=found.opacity, **look)
    on.set(xlabel=layout.labels[0], ylabel="" if flat else layout.labels[1])
    # Pixels stay square, also where the number of images had to be rounded.
    on.set_aspect(height / width * (right - left) / (top - bottom))
    for spine in on.spines.values():
        spine.set_visible(False)
    on.tick_params(length=0)
    if flat:
        on.set_yticks([])
    return style.finish(on, settle=ax is None, heading="The surface as images, at evenly spaced places of the map")


# ------------------------------------------------------------------------------------------------ how to draw


def _words(name: str, size: int) -> str:
    return f"{name}, {size} neighbours" if size else name


def _draw_shade(ax: Any, fitted: FittedSurface, layout: LatentLayout, resolution: int) -> Any:
    field = density_field(fitted, layout, resolution)
    if field is None:
        return None
    style.lines(ax, list(contour_segments(fitted.latent, resolution)), colors=style.SOFT, linewidths=0.9, zorder=1)
    return style.draw_field(ax, field)


def _draw_curve(ax: Any, fitted: FittedSurface, level: float, Z: FloatArray, groups: RowClasses | None) -> FloatArray:
    """The density over one axis, shaded where the domain is; returns places of the latent points in a band below."""
    z, density = density_curve(fitted)
    top = float(density.max())
    ax.fill_between(z, 0.0, density, where=density >= level, color="#dfe3e8", lw=0, zorder=0)
    ax.plot(z, density, color=style.INK, lw=1.5, zorder=2)
    ax.axhline(level, color=style.SOFT, lw=0.9, ls=(0, (4, 3)), label="threshold", zorder=1)
    ax.axhline(0.0, color=style.PALE, lw=0.8, zorder=1)
    ax.set(xlim=(z[0], z[-1]), ylim=(-_BAND * top * 1.1, 1.05 * top), xlabel="latent 1", ylabel="latent density")
    ax.set_yticks([tick for tick in ax.get_yticks() if 0 <= tick <= top])
    style.legend(ax)
    return np.stack([Z[:, 0], -_BAND * top * (1.0 - 0.9 * lanes(Z, groups))], axis=1)
