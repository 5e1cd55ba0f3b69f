"""A picture of columns along a curve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from prinfold.plot import style
from prinfold.plot.data.trajectories import columns_along
from prinfold.plot.inputs import FittedSurface
from prinfold.validation.parameter_docs import fill_parameter_docs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INCHES_PER_COLUMN = 0.28
"""Inches for each column."""


@fill_parameter_docs
def along(model: Any, X: Any = None, *, most: int = 24, ax: Axes | None = None) -> Axes:
    """Draw what every column does along a curve, from light, its lowest there, to dark, its highest.

    Columns stand in the order in which they peak, as genes do along a path of cells: the first above.

    Parameters
    ----------
    model : fitted estimator or pipeline
        A curve, such as :class:`~prinfold.PrincipalCurve` or ``GTM(1)``.
    X : array-like of shape (n, D), default=None
        Rows to show, as ticks below at their place along the curve.
    most : int, default=24
        Columns that are drawn at most: those that change most, beside how large they are.
    {ax}

    Returns
    -------
    matplotlib.axes.Axes
    """
    fitted = FittedSurface.of(model)
    found = columns_along(fitted, most)
    n_columns = len(found.order)
    on = style.axes_for(ax, 2, (6.4, 1.4 + _INCHES_PER_COLUMN * n_columns))
    edges = np.linspace(found.places[0], found.places[-1], found.level.shape[1] + 1)
    shade = on.pcolormesh(
        edges, np.arange(n_columns + 1), found.level, cmap=style.DEEP, vmin=0, vmax=1, rasterized=True
    )
    names = [style.plain_text(str(fitted.feature_names[column])) for column in found.order]
    on.set(ylim=(n_columns + (0.9 if X is not None else 0.0), 0), xlim=(edges[0], edges[-1]))
    on.set_yticks(np.arange(n_columns) + 0.5, names)
    on.set_xlabel("arc length" if fitted.latent.unit_speed else "latent")
    for spine in on.spines.values():
        spine.set_visible(False)
    on.tick_params(length=0, axis="y")
    if X is not None:
        z = fitted.coordinates(X)[:, 0]
        on.vlines(z, n_columns + 0.15, n_columns + 0.75, color=style.INK, lw=0.5, alpha=0.5)
    style.scale_bar(on, shade, "of its range")
    return style.finish(on, settle=ax is None)
