"""Maps that no page knows how to evaluate: read off a lattice of points, with how far off that is."""

from __future__ import annotations

from typing import Any

import numpy as np

from prinfold._typing import FloatArray
from prinfold.exceptions import Advice, Message, UnsupportedInputError
from prinfold.geometry.domain import Box
from prinfold.geometry.intervals import Intervals
from prinfold.latent import LatentSpace
from prinfold.plot.inputs import drawing_of

_CELLS = {1: (2000,), 2: (128, 128), 3: (24, 24, 24)}
"""Cells along each axis, by latent dimension."""

_GLOBE = Box.of((-np.pi, np.pi), (-np.pi / 2, np.pi / 2), periodic=(True, False))
"""Longitudes and latitudes."""

_CHECKS = 2000
"""Places between the points of a lattice at which it is held against the surface itself."""


def sample_map(model: Any) -> dict[str, Any]:
    """The map of a model of an unknown kind, in numbers: points of the surface, straight pieces between them.

    ``error`` is the largest distance between the two at places in between, as a share of the surface's extent.
    """
    latent = model.latent_
    drawing = drawing_of(latent)
    if drawing.pieces is not None:
        found = _polyline(model, latent, drawing.pieces)
    elif drawing.contour is None and latent.dimension in _CELLS:
        found = _grid(model, drawing.box)
    else:
        raise UnsupportedInputError(
            Message(
                f"no page can evaluate the surface of a {type(model).__name__} with {latent.n_columns} latent columns "
                f"on a {type(latent).__name__}",
                Advice("plot", words="draw it with {}"),
                "fit up to three latent dimensions",
            )
        )
    return found


def sentence(decoder: dict[str, Any], name: str) -> str:
    """A sentence on the error of a sampled map, for the reader of the page."""
    return (
        f"This page does not know how a {name} computes its surface, and reads it off "
        f"{len(decoder['points'])} points instead: between them it is off by at most "
        f"{max(100 * decoder['error'], 1e-4):.2g} % of the surface's extent at {_CHECKS} places that were tried."
    )


def _polyline(model: Any, latent: LatentSpace, pieces: Intervals) -> dict[str, Any]:
    """Branches of arc length with straight pieces between even nodes."""
    nodes = latent.refined(_CELLS[1][0]).nodes
    points, counts = _points(model, nodes), np.bincount(pieces.piece(nodes), minlength=len(pieces.low))
    first, cells = np.cumsum(counts) - counts, np.where(pieces.closed, counts, counts - 1)
    steps = (pieces.high - pieces.low) / cells
    branch = np.resize(np.arange(len(cells)), _CHECKS)
    cell = np.floor(np.linspace(0.0, 0.999, _CHECKS) * cells[branch]).astype(int)
    Z = pieces.low[branch] + (cell + 0.5) * steps[branch]
    middle = points[first[branch] + cell] + points[first[branch] + (cell + 1) % counts[branch]]
    lengths = {"low": pieces.low, "high": pieces.high, "steps": steps}
    numbers = {"cells": cells, "first": first, "counts": counts}
    return {
        "kind": "polyline",
        **{key: np.asarray(part, dtype=np.float64) for key, part in lengths.items()},
        **{key: np.asarray(part, dtype=np.int32) for key, part in numbers.items()},
        "points": points,
        "error": _share(_points(model, Z[:, None]), middle / 2, points),
    }


def _grid(model: Any, box: Box | None) -> dict[str, Any]:
    """A lattice over a box, or over longitude and latitude of a sphere, which has none."""
    low, high, periodic = _ends(_GLOBE if box is None else box)
    cells = _CELLS[len(low)]
    axes = [np.linspace(a, b, m + 1) for a, b, m in zip(low, high, cells, strict=True)]
    nodes = np.stack([each.ravel() for each in np.meshgrid(*axes, indexing="ij")], axis=1)
    points = _points(model, nodes if box else _unit_vectors(nodes))
    # The farthest from all corners is the middle of a cell.
    step = (high - low) / cells
    corner = np.random.default_rng(0).integers(0, cells, size=(_CHECKS, len(low)))
    between = low + (corner + 0.5) * step
    read = np.zeros((_CHECKS, points.shape[1]))
    for ahead in np.ndindex(*(2,) * len(low)):
        read += points[np.ravel_multi_index((corner + ahead).T, [m + 1 for m in cells])] / 2 ** len(low)
    return {
        "kind": "grid",
        "sphere": box is None,
        "low": low,
        "high": high,
        "periodic": periodic,
        "cells": list(cells),
        "points": points,
        "error": _share(_points(model, between if box else _unit_vectors(between)), read, points),
    }


def _ends(box: Box) -> tuple[FloatArray, FloatArray, list[bool]]:
    low, high = np.asarray(box.low), np.asarray(box.high)
    return low, np.where(high > low, high, low + 1.0), list(box.periodic)


def _unit_vectors(places: FloatArray) -> FloatArray:
    """(n, 3) points of the unit sphere at longitudes and latitudes."""
    longitude, latitude = places.T
    flat = np.cos(latitude)
    return np.stack([flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)], axis=1)


def _points(model: Any, Z: FloatArray) -> FloatArray:
    return np.asarray(model.inverse_transform(Z, extrapolate=True), dtype=np.float64)


def _share(true: FloatArray, read: FloatArray, points: FloatArray) -> float:
    """The largest distance between two answers, as a share of the surface's extent."""
    extent = float(np.linalg.norm(np.ptp(points, axis=0)))
    return float(np.linalg.norm(true - read, axis=1).max()) / (extent or 1.0)
