"""A map of a fitted model small enough for a cell of a notebook: SVG, without a drawing library."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import PrinfoldError
from prinfold.latent.drawing import LatentLayout
from prinfold.plot.data.surfaces import limits, log_factor
from prinfold.plot.inputs import lanes, layout_of

_SIZE, _MARGIN = 200.0, 6.0
_CELLS = 28
_MOST_POINTS = 600
_MOST_KERNELS = 4000
"""Kernels up to which the stretch of a map that is made of them is worth the wait."""

_SHADE = (127, 138, 152)
_POINT = "#2f86c1"
"""Grey and blue that stand out on white as on black."""


def small_map(model: Any) -> str:
    """The magnification as shading, and rows, or how much of them each node stands for; empty where nothing is kept."""
    try:
        places, layout = _places(model), layout_of(model.latent_)
        if places is None or layout.depth > 2:
            return ""
        return _draw(model, layout, *places)
    except PrinfoldError:  # a model of several maps has none to show
        return ""


def _draw(model: Any, layout: LatentLayout, Z: FloatArray, weight: FloatArray | None) -> str:
    low, high = _bounds(layout)
    span = high - low
    width = height = _SIZE
    if layout.plane is not None:
        height *= float(np.clip(span[1] / span[0], 0.4, 1.6))
    elif not _is_ring(layout):
        height *= 0.3
    spread = lanes(Z, None) if Z.shape[1] == 1 and weight is None else np.full(len(Z), 0.5)
    xy = (layout.place(Z, spread) - low) / span * [width, -height] + [_MARGIN, height + _MARGIN]
    frame = f'viewBox="0 0 {width + 2 * _MARGIN:g} {height + 2 * _MARGIN:g}" width="{width + 2 * _MARGIN:g}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {frame} role="img" aria-label="small map of the fitted model">'
        f"{_field(model, layout, width, height)}{_dots(xy, weight)}</svg>"
    )


def _places(model: Any) -> tuple[FloatArray, FloatArray | None] | None:
    """Latent points of rows where a model keeps them, else its nodes with how much of the rows each stands for."""
    embedding = getattr(model, "embedding_", None)
    if embedding is not None:
        some = np.unique(np.linspace(0, len(embedding) - 1, min(len(embedding), _MOST_POINTS)).astype(int))
        return np.asarray(embedding, dtype=float)[some], None
    mass = getattr(model, "node_mass_", None)
    if mass is None or len(mass) != model.latent_.n_nodes:
        return None
    weight = np.asarray(mass, dtype=float)
    weight = weight if weight.ndim == 1 else weight.mean(axis=1)
    heavy: IntArray = np.flatnonzero(weight > 0.02 * weight.max(initial=0.0))
    return np.asarray(model.latent_.nodes, dtype=float)[heavy], weight[heavy]


def _bounds(layout: LatentLayout) -> tuple[FloatArray, FloatArray]:
    if layout.plane is not None:
        return np.array(layout.plane.low), np.array(layout.plane.high)
    if layout.axis is None or layout.axis.closed:
        return np.array([-1.0, -1.0]), np.array([1.0, 1.0])
    return np.array([layout.axis.low, 0.0]), np.array([layout.axis.high, 1.0])


def _is_ring(layout: LatentLayout) -> bool:
    return layout.axis is not None and layout.axis.closed


def _field(model: Any, layout: LatentLayout, width: float, height: float) -> str:
    """The log magnification as a picture of one pixel for each cell, smoothed when it is drawn."""
    kernels = getattr(model, "embedding_", ())
    cells = None if _is_ring(layout) or len(kernels) > _MOST_KERNELS else layout.cells(_CELLS)
    if cells is None:
        return ""
    value = log_factor(model, cells.Z).reshape(cells.shape)[::-1]
    low, high = limits(value)
    level = np.clip((np.nan_to_num(value, nan=low, neginf=low, posinf=high) - low) / (high - low), 0.0, 1.0)
    alpha = np.where(np.isnan(value), 0.0, 0.08 + 0.72 * level)
    pixels = np.empty((*value.shape, 4), dtype=np.uint8)
    pixels[..., :3] = _SHADE
    pixels[..., 3] = np.round(255 * alpha)
    data = base64.b64encode(png(pixels)).decode("ascii")
    place = f'x="{_MARGIN:g}" y="{_MARGIN:g}" width="{width:g}" height="{height:g}"'
    return f'<image {place} preserveAspectRatio="none" href="data:image/png;base64,{data}"/>'


def _dots(xy: FloatArray, weight: FloatArray | None) -> str:
    """Points as round ends of strokes of no length, one path for each of a few sizes."""
    size = np.full(len(xy), 3) if weight is None else 1 + np.floor(5.999 * np.sqrt(weight / weight.max(initial=1e-300)))
    paths = []
    for each in np.unique(size):
        moves = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in xy[size == each])
        paths.append(f'<path d="{moves}" stroke-width="{each:g}"/>')
    return f'<g stroke="{_POINT}" stroke-opacity="0.8" stroke-linecap="round">{"".join(paths)}</g>'


def png(pixels: Any) -> bytes:
    """A picture (r, c, 4) of bytes, red, green, blue and opacity, as a PNG file."""
    rows, columns, _ = pixels.shape
    # Each line begins with its filter, 0 for none.
    lines = np.concatenate([np.zeros((rows, 1), np.uint8), pixels.reshape(rows, -1)], axis=1).tobytes()

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = struct.pack(">IIBBBBB", columns, rows, 8, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")
