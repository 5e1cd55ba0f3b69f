"""Data of pictures of uncertainty, as plain arrays: ellipses of posteriors, tubes about curves, fields of spread."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import InvalidParameterError
from prinfold.latent.drawing import LatentLayout
from prinfold.plot.data.surfaces import DataView, Field
from prinfold.plot.inputs import FittedSurface, drawing_of
from prinfold.validation.settings import real

_TUBE_PLACES = 400
"""Places along a curve at which its tube is measured."""

_ARC = np.linspace(-1.0, 1.0, 9)
"""Steps of a bar, which is bent where the axis is a ring."""


class PosteriorEllipses(NamedTuple):
    """Ellipses of a size: ``center`` (n, 2), full ``width`` and ``height`` (n,), ``angle`` (n,) in degrees."""

    center: FloatArray
    width: FloatArray
    height: FloatArray
    angle: FloatArray


def ellipses_of(center: FloatArray, covariance: FloatArray, scale: float) -> PosteriorEllipses:
    """Ellipses of ``scale`` standard deviations, from covariances (n, 2, 2)."""
    variance, axes = np.linalg.eigh(covariance)
    width, height = 2.0 * scale * np.sqrt(np.maximum(variance[:, ::-1], 0.0)).T
    return PosteriorEllipses(center, width, height, np.degrees(np.arctan2(axes[:, 1, 1], axes[:, 0, 1])))


# ----------------------------------------------------------------------------------------------- of coordinates


class PosteriorSpread(NamedTuple):
    """Rows of a map with the spread of their posteriors: ``chosen`` (k,) rows have one drawn."""

    Z: FloatArray
    covariance: FloatArray
    chosen: IntArray


def coordinate_spread(fitted: FittedSurface, X: Any, most: int) -> PosteriorSpread:
    """Posterior means (n, Q) of all rows, and covariances (k, Q, Q) of evenly spaced ones."""
    if not hasattr(fitted.model, "posterior_covariance"):
        raise InvalidParameterError(f"{type(fitted.model).__name__} has no posterior, so there is no spread to draw")
    rows = fitted.rows(X)
    Z = np.asarray(fitted.model.transform(rows), dtype=float)
    chosen = np.unique(np.linspace(0, len(Z) - 1, min(most, len(Z))).round().astype(np.intp))
    covariance = np.asarray(fitted.model.posterior_covariance(rows), dtype=float)[chosen]
    return PosteriorSpread(Z, covariance, chosen)


def posterior_ellipses(
    fitted: FittedSurface, spread: PosteriorSpread, place: FloatArray, scale: float
) -> PosteriorEllipses:
    """Posteriors as ellipses of ``scale`` standard deviations about ``place`` (k, 2)."""
    frame = drawing_of(fitted.latent).directions(spread.Z[spread.chosen])
    return ellipses_of(place, frame @ spread.covariance @ np.swapaxes(frame, 1, 2), scale)


def bars(layout: LatentLayout, spread: PosteriorSpread, lane: FloatArray, scale: float) -> FloatArray:
    """(k, s, 2) posteriors of coordinates along a curve, as bars that follow a ring where there is one."""
    half = scale * np.sqrt(np.maximum(spread.covariance[:, 0, 0], 0.0))
    Z = spread.Z[spread.chosen, :1] + half[:, None] * _ARC
    own = np.repeat(lane[spread.chosen], len(_ARC))
    return layout.place(Z.reshape(-1, 1), own).reshape(len(Z), len(_ARC), 2)


def refuse_solid(layout: LatentLayout) -> None:
    """Raise an error for layouts in space: spread is drawn on paper."""
    if layout.depth > 2:
        raise InvalidParameterError(
            "spread is drawn over one or two latent axes, and this model has more; pass flat axes as ax= to see the "
            "first two"
        )


# ------------------------------------------------------------------------------------------------ of the surface


def half_width(level: float) -> float:
    """Standard deviations on either side that hold a share of a normal variable."""
    if not real(0, above=True).test(level) or not level < 1:
        raise InvalidParameterError(f"level must be a share between 0 and 1, got {level!r}")
    return float(norm.ppf(0.5 + 0.5 * level))


def _model_with_band(fitted: FittedSurface) -> Any:
    if not hasattr(fitted.model, "surface_std"):
        raise InvalidParameterError(f"the surface of a {type(fitted.model).__name__} has no posterior to draw")
    if fitted.before is not None:
        raise InvalidParameterError("bands are true only in the units of the model; draw pipeline[-1] instead")
    return fitted.model


def tube(fitted: FittedSurface, view: DataView, level: float, how: dict[str, Any]) -> PosteriorEllipses:
    """Ellipses along a curve that make up a band, as ``view`` sees them in two columns."""
    model, size = _model_with_band(fitted), half_width(level)
    Z = fitted.latent.refined(_TUBE_PLACES).nodes
    if how["hessian"] == "exact":
        covariance = model.surface_covariance(Z, **how)
        seen = np.einsum("da,nde,eb->nab", view.axes, covariance, view.axes, optimize=True)
    else:  # columns are independent, and there may be many
        seen = np.einsum("da,nd,db->nab", view.axes, model.surface_std(Z, **how) ** 2, view.axes, optimize=True)
    return ellipses_of(view(fitted.points(Z)), seen, size)


def spread_field(fitted: FittedSurface, layout: LatentLayout, resolution: int, how: dict[str, Any]) -> Field:
    """Standard deviation of a surface over its map, the root of the mean square over columns; NaN outside."""
    model = _model_with_band(fitted)
    cells = layout.cells(resolution)
    if cells is None or layout.plane is None:
        raise InvalidParameterError(
            f"bands are drawn for curves and surfaces, got {fitted.latent.dimension} latent dimensions"
        )
    inside = fitted.latent.domain.contains(cells.Z)
    value = np.full(len(cells.Z), np.nan)
    value[inside] = np.sqrt(np.mean(model.surface_std(cells.Z[inside], **how) ** 2, axis=1))
    return Field(cells.x, cells.y, value.reshape(cells.shape))
