"""Data of pictures of kernel methods, as plain arrays: starts, latent density, its contour, images."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.kernel_manifolds.kmm_table import Residuals
from prinfold.kernel_manifolds.starts import Candidates
from prinfold.latent import LatentSpace
from prinfold.latent.drawing import KernelContour, LatentLayout
from prinfold.plot.data.surfaces import Field
from prinfold.plot.inputs import FittedSurface, drawing_of, layout_of

_STRETCHED = 4.0
"""How many times as many rows as columns of images there may be, or the other way round."""

_TABLES = (Candidates, Residuals)

_CURVE_POINTS = 600
"""Points at which a density along a curve is drawn."""

_MARGIN = 1 / 16
"""Space around an image, of its shorter side."""

# ---------------------------------------------------------------------------------------------- candidates


class StartAttempts(NamedTuple):
    """Candidates of one kind: their numbers of neighbours (k,), in order, and errors (k,); (0,) where none count."""

    name: str
    neighbors: IntArray
    errors: FloatArray


class StartComparison(NamedTuple):
    """Starts that were compared, by kind, and the ``chosen`` one: name, neighbours, error."""

    kinds: tuple[StartAttempts, ...]
    chosen: tuple[str, int, float]


def start_comparison(model: Any) -> StartComparison:
    """Data of :func:`candidates`, from a fitted model or from its ``candidates_``."""
    table = model if isinstance(model, _TABLES) else getattr(FittedSurface.of(model).model, "candidates_", None)
    if table is None:
        raise InvalidParameterError("the model has compared no starts; fit a UKR or a KMM")
    errors = table.residuals if isinstance(table, Residuals) else table.errors
    labels, best = np.array(_kinds(table)), table.chosen
    kinds = []
    for name in dict.fromkeys(labels.tolist()):
        rows = np.flatnonzero(labels == name)
        rows = rows[np.argsort(table.neighbors[rows], kind="stable")]
        kinds.append(StartAttempts(name, table.neighbors[rows], errors[rows]))
    return StartComparison(tuple(kinds), (str(labels[best]), int(table.neighbors[best]), float(errors[best])))


def _kinds(table: Candidates | Residuals) -> list[str]:
    """Names of the embeddings, with their dimension where several were tried."""
    if isinstance(table, Candidates) or len(set(table.dimensions.tolist())) == 1:
        return list(table.names)
    return [f"{name} in {d}" for name, d in zip(table.names, table.dimensions, strict=True)]


# ------------------------------------------------------------------------------------------------- density


def contour_of(fitted: FittedSurface) -> KernelContour:
    """The latent density of a kernel method, refused where a model has none."""
    contour = drawing_of(fitted.latent).contour
    if contour is None:
        raise InvalidParameterError(
            f"{type(fitted.model).__name__} has no density over latent space; kernel methods such as UKR have"
        )
    return contour


def latent_level(fitted: FittedSurface) -> float:
    """The threshold of the latent domain as a density that integrates to 1."""
    contour = contour_of(fitted)
    return contour.threshold / contour.profile.volume(fitted.latent.n_columns)


def density_field(fitted: FittedSurface, layout: LatentLayout, resolution: int = 200) -> Field | None:
    """Log-density at the middles of fine cells, NaN outside the domain; None where there is nothing to fill."""
    cells = layout.cells(resolution)
    if cells is None:
        return None
    density = np.asarray(fitted.model.latent_density(cells.Z), dtype=float)
    inside = np.where(density >= latent_level(fitted), density, np.nan)
    return Field(cells.x, cells.y, np.log(inside).reshape(cells.shape))


def density_curve(fitted: FittedSurface) -> tuple[FloatArray, FloatArray]:
    """Coordinates (r,) along a curve, a little beyond both ends, and the density there."""
    extent = fitted.latent.domain.extent
    margin = 0.03 * extent.length or 0.5
    z = np.linspace(extent.lower[0] - margin, extent.upper[0] + margin, _CURVE_POINTS)
    return z, np.asarray(fitted.model.latent_density(z[:, None]), dtype=float)


def contour_segments(latent: LatentSpace, resolution: int = 200) -> FloatArray:
    """(E, 2, 2) short segments along the contour that bounds a domain of two dimensions, holes and pieces included.

    Triangles that fill the domain share their sides with others, all but those along the contour.
    """
    tiles = latent.refined(resolution)
    sides = np.sort(tiles.faces[:, [[0, 1], [1, 2], [0, 2]]].reshape(-1, 2), axis=1)
    once, count = np.unique(sides, axis=0, return_counts=True)
    return np.asarray(tiles.nodes[once[count == 1]])


# -------------------------------------------------------------------------------------------------- images


class Mosaic(NamedTuple):
    """Images side by side: ``pixels`` (r·H, c·W), first row on top, their ``opacity``, and (left, right, bottom, top).

    ``shape`` (r, c) says how many there are; around each is a ``margin`` of so many clear pixels, which H and W count.
    """

    pixels: FloatArray
    opacity: FloatArray
    extent: tuple[float, float, float, float]
    shape: tuple[int, int]
    margin: int


def mosaic(fitted: FittedSurface, shape: Any = None, n: int = 15) -> Mosaic:
    """Points of the surface as images, ``n`` of them across latent space, at the middles of the cells they fill.

    Where the model has a latent density, opacity grows with it up to the median over the latent points, also beyond
    the domain, as in figure 4 of Meinicke et al. (2005); elsewhere it is nil outside the domain.
    """
    height, width = image_shape(shape, len(fitted.feature_names))
    low, high, invert = _paper(layout_of(fitted.latent))
    columns, rows = _counts(low, high, n, height / width)
    x = low[0] + (high[0] - low[0]) * (np.arange(columns) + 0.5) / columns
    y = high[1] - (high[1] - low[1]) * (np.arange(rows) + 0.5) / rows
    place = np.stack([each.ravel() for each in np.meshgrid(x, y)], axis=1)
    Z = invert(place)
    opacity = _opacity(fitted, Z)
    images = np.zeros((len(Z), height * width))
    images[opacity > 0] = fitted.points(Z[opacity > 0])
    margin = max(round(_MARGIN * min(height, width)), 1)
    faded = np.broadcast_to(opacity[:, None, None], (len(Z), height, width))
    pixels, clear = (_tile(each, (rows, columns), margin) for each in (images.reshape(-1, height, width), faded))
    return Mosaic(pixels, clear, (low[0], high[0], low[1], high[1]), (rows, columns), margin)


def _tile(images: FloatArray, shape: tuple[int, int], margin: int) -> FloatArray:
    """(r·c, h, w) images as one, row by row, with a margin of zeros around each."""
    padded = np.pad(images, ((0, 0), (margin, margin), (margin, margin)))
    height, width = padded.shape[1:]
    return padded.reshape(*shape, height, width).swapaxes(1, 2).reshape(shape[0] * height, shape[1] * width)


def image_shape(shape: Any, n_columns: int) -> tuple[int, int]:
    """Height and width of images of so many pixels; None is square."""
    if shape is None:
        side = round(n_columns**0.5)
        if side**2 != n_columns:
            raise InvalidParameterError(f"{n_columns} columns make no square image; pass shape=(height, width)")
        return side, side
    try:
        height, width = (int(each) for each in shape)
    except (TypeError, ValueError) as error:
        raise InvalidParameterError(f"shape must be (height, width), got {shape!r}") from error
    if min(height, width) < 1 or height * width != n_columns:
        raise InvalidDataError(f"images of {height} × {width} pixels need {height * width} columns, got {n_columns}")
    return height, width


def _paper(layout: LatentLayout) -> Any:
    """Corners of the paper that images are laid out on, and what turns places there into latent coordinates."""
    if layout.plane is not None:
        return layout.plane.low, layout.plane.high, layout.plane.invert
    if layout.axis is None:
        raise InvalidParameterError("images are laid out over one or two latent axes; the model has more")
    return (layout.axis.low, 0.0), (layout.axis.high, 0.0), lambda place: place[:, :1]


def _counts(low: Any, high: Any, n: int, ratio: float) -> tuple[int, int]:
    """Columns and rows of images that are ``ratio`` times as tall as wide, ``n`` along the longer side."""
    across, up = high[0] - low[0], (high[1] - low[1]) / ratio
    if up == 0:
        return n, 1
    shape = float(np.clip(up / across, 1 / _STRETCHED, _STRETCHED))
    return (n, max(round(n * shape), 1)) if shape <= 1 else (max(round(n / shape), 1), n)


def _opacity(fitted: FittedSurface, Z: FloatArray) -> FloatArray:
    if drawing_of(fitted.latent).contour is None:
        return np.asarray(fitted.latent.domain.contains(Z), dtype=float)
    usual = float(np.median(fitted.model.latent_density(fitted.latent.nodes)))
    return np.asarray(np.minimum(fitted.model.latent_density(Z) / usual, 1.0))
