"""Pictures of columns along a curve, and of genes along a lineage, in the order in which they peak."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from prinfold._typing import FloatArray
from prinfold.plot import style
from prinfold.plot.arguments import check_picture
from prinfold.plot.data.trajectories import columns_along, gene_levels
from prinfold.plot.inputs import FittedSurface
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.settings import check_setting, integer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INCHES_PER_COLUMN = 0.28
"""Inches for each column."""


@check_picture
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
    names = [str(fitted.feature_names[column]) for column in found.order]
    on = _draw_levels(ax, found.places, found.level, names)
    on.set_xlabel("arc length" if fitted.latent.unit_speed else "latent")
    if X is not None:
        n_columns, z = len(names), fitted.coordinates(X)[:, 0]
        on.set_ylim(n_columns + 0.9, 0)
        on.vlines(z, n_columns + 0.15, n_columns + 0.75, color=style.INK, lw=0.5, alpha=0.5)
    return style.finish(on, settle=ax is None, heading="Columns along the curve, each from its lowest to its highest")


@check_picture
@fill_parameter_docs
def gene_curves(tests: Any, *, most: int = 40, ax: Axes | None = None) -> Axes:
    """Draw fitted means of genes along a lineage, from light, its lowest there, to dark, its highest.

    Genes stand in the order in which they peak: the first above.

    Parameters
    ----------
    tests : GeneTests
        What :func:`prinfold.expression.association` returns.
    most : int, default=40
        Genes that are drawn at most: those of the smallest p-values, or of the largest effects where there are none.
    {ax}

    Returns
    -------
    matplotlib.axes.Axes
    """
    check_setting("most", most, integer(1))
    found = gene_levels(tests, most)
    on = _draw_levels(ax, found.places, found.level, [tests.names[j] for j in found.order])
    on.set_xlabel("pseudotime")
    return style.finish(on, settle=ax is None, heading="Genes along the lineage, each from its lowest to its highest")


def _draw_levels(ax: Axes | None, places: FloatArray, level: FloatArray, names: list[str]) -> Any:
    """A row of shades for each column, with its name."""
    n = len(names)
    on = style.axes_for(ax, 2, (6.4, 1.4 + _INCHES_PER_COLUMN * n))
    edges = np.linspace(places[0], places[-1], level.shape[1] + 1)
    shade = on.pcolormesh(edges, np.arange(n + 1), level, cmap=style.DEEP, vmin=0, vmax=1, rasterized=True)
    on.set(ylim=(n, 0), xlim=(edges[0], edges[-1]))
    on.set_yticks(np.arange(n) + 0.5, [style.plain_text(name) for name in names])
    for spine in on.spines.values():
        spine.set_visible(False)
    on.tick_params(length=0, axis="y")
    style.scale_bar(on, shade, "of its range")
    return on
