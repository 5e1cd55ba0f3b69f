"""Pictures of how sure a ridge is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from prinfold._typing import BoolArray, FloatArray
from prinfold.density.ridges.bands import RidgeBands
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.plot import style
from prinfold.plot.arguments import check_picture
from prinfold.plot.inputs import columns_of
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.tables import as_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARGIN = 0.04
"""Space around everything, of its longer side."""


class DrawnBand(NamedTuple):
    """A band to draw: ``points`` (m, D) with ``radius`` (m,) and a ``value`` (m,) each, and its corners."""

    points: FloatArray
    radius: FloatArray
    endless: BoolArray
    """(m,) points that too few samples have a ridge for; their radius is 0."""
    value: FloatArray
    low: FloatArray
    high: FloatArray


def band_of(bands: RidgeBands, X: FloatArray | None = None, p_value: Any = None) -> DrawnBand:
    """The discs of a band, coloured by how often a point is found again, or by p-values."""
    points, D = bands.points, bands.points.shape[1]
    if D not in (2, 3):
        raise InvalidParameterError(f"a band is drawn in two or three columns, got {D}; choose some of them for a fit")
    value = bands.found if p_value is None else as_numbers("p_value", p_value)
    if value.shape != (len(points),):
        raise InvalidDataError(f"there must be a p-value for each of the {len(points)} points, got shape {value.shape}")
    endless = ~np.isfinite(bands.radius)
    radius = np.where(endless, 0.0, bands.radius)
    corners = [points - radius[:, None], points + radius[:, None]] + ([] if X is None else [X])
    every = np.concatenate(corners)
    low, high = every.min(axis=0), every.max(axis=0)
    margin = _MARGIN * float((high - low).max() or 1.0)
    return DrawnBand(points, radius, endless, value, low - margin, high + margin)


@check_picture
@fill_parameter_docs
def ridge_bands(bands: RidgeBands, X: Any = None, *, p_value: Any = None, ax: Axes | None = None) -> Axes:
    """Draw the points of a ridge, and around each how far away the ridge would be with other rows.

    Points are coloured by the share of samples that have the ridge within a bandwidth, or by ``p_value``. Crosses are
    points that fewer samples have a ridge for than the level of the band. In three columns the points alone are drawn.

    Parameters
    ----------
    bands : RidgeBands
        What ``bands()`` of a :class:`~prinfold.DensityRidge` returns.
    {X.shown}
    p_value : array-like of shape (m,), default=None
        p-values of the points, ``significance().p_value`` of the model.
    {ax}

    Returns
    -------
    matplotlib.axes.Axes
    """
    if not isinstance(bands, RidgeBands):
        raise InvalidParameterError(f"got a {type(bands).__name__}; pass what model.bands() returns")
    rows = None if X is None else columns_of(X, bands.points.shape[1])
    band = band_of(bands, rows, p_value)
    depth = band.points.shape[1]
    on = style.axes_for(ax, depth, (6.4, 5.2))
    if rows is not None:
        style.dots(on, rows, s=4, c=style.SOFT, linewidths=0, alpha=0.5, zorder=2)
    if depth == 2:
        # Opaque, so that discs that overlap make one band.
        width = 2.0 * band.radius
        style.ellipses(on, band.points, width, width, np.zeros(len(width)), color="#c6dbec", zorder=1)
        on.set(xlim=(band.low[0], band.high[0]), ylim=(band.low[1], band.high[1]), aspect="equal")
    top = {"vmin": 0.0, "vmax": 1.0, "cmap": "viridis" if p_value is None else "viridis_r"}
    firm = ~band.endless
    found = style.dots(on, band.points[firm], s=9, c=band.value[firm], linewidths=0, zorder=4, **top)
    if band.endless.any():
        style.dots(
            on, band.points[band.endless], s=12, c=style.SIGNAL, marker="x", linewidths=0.8, zorder=3, label="lost"
        )
        style.legend(on)
    style.scale_bar(on, found, "found again" if p_value is None else "p-value")
    return style.finish(on, settle=ax is None, heading="The ridge with its confidence band")
