"""Maps that no page knows how to evaluate: read off a lattice of points, with how far off that is."""

from __future__ import annotations

from typing import Any

import numpy as np

from prinfold._typing import FloatArray
from prinfold.exceptions import Advice, Message, UnsupportedInputError
from prinfold.latent import Branches, Lattice, Points, Sphere

_CELLS = {1: (2000,), 2: (128, 128), 3: (24, 24, 24)}
"""Cells along each axis, by latent dimension."""

_CHECKS = 2000
"""Places between the points of a lattice at which it is held against the surface itself."""


def sample_map(model: Any) -> dict[str, Any]:
    """The map of a model of an unknown kind, in numbers: points of the surface, straight pieces between them.

    ``error`` is the largest distance between the two at places in between, as a share of the surface's extent.
    """
    latent = model.latent_
    if isinstance(latent, Branches):
        found = _polyline(model, latent.refined(_CELLS[1][0]))
    elif isinstance(latent, Sphere) or (isinstance(latent, Lattice | Points) and latent.n_columns in _CELLS):
        found = _grid(model, latent)
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


def _polyline(model: Any, fine: Branches) -> dict[str, Any]:
    """Branches of arc length with straight pieces between even nodes."""
    low, high, points = fine.domain.low, fine.domain.high, _points(model, fine.nodes)
    parts = {"low": low, "high": high, "steps": fine.steps}
    counts = {"cells": fine.cells, "first": fine.first, "counts": fine.counts}
    branch = np.resize(np.arange(fine.n_branches), _CHECKS)
    cell = np.floor(np.linspace(0.0, 0.999, _CHECKS) * fine.cells[branch]).astype(int)
    Z = low[branch] + (cell + 0.5) * fine.steps[branch]
    middle = points[fine.first[branch] + cell] + points[fine.first[branch] + (cell + 1) % fine.counts[branch]]
    return {
        "kind": "polyline",
        **{key: np.asarray(part, dtype=np.float64) for key, part in parts.items()},
        **{key: np.asarray(part, dtype=np.int32) for key, part in counts.items()},
        "points": points,
        "error": _share(_points(model, Z[:, None]), middle / 2, points),
    }


def _grid(model: Any, latent: Any) -> dict[str, Any]:
    """A lattice over a box, or over longitude and latitude of a sphere."""
    low, high, periodic = _box(latent)
    cells = _CELLS[len(low)]
    axes = [np.linspace(a, b, m + 1) for a, b, m in zip(low, high, cells, strict=True)]
    nodes = np.stack([each.ravel() for each in np.meshgrid(*axes, indexing="ij")], axis=1)
    points = _points(model, _coordinates(latent, nodes))
    # The farthest from all corners is the middle of a cell.
    step = (high - low) / cells
    corner = np.random.default_rng(0).integers(0, cells, size=(_CHECKS, len(low)))
    between = low + (corner + 0.5) * step
    read = np.zeros((_CHECKS, points.shape[1]))
    for ahead in np.ndindex(*(2,) * len(low)):
        read += points[np.ravel_multi_index((corner + ahead).T, [m + 1 for m in cells])] / 2 ** len(low)
    return {
        "kind": "grid",
        "sphere": isinstance(latent, Sphere),
        "low": low,
        "high": high,
        "periodic": periodic,
        "cells": list(cells),
        "points": points,
        "error": _share(_points(model, _coordinates(latent, between)), read, points),
    }


def _box(latent: Any) -> tuple[FloatArray, FloatArray, list[bool]]:
    if isinstance(latent, Sphere):
        return np.array([-np.pi, -np.pi / 2]), np.array([np.pi, np.pi / 2]), [True, False]
    domain: Any = latent.domain
    low, high = np.asarray(domain.low, dtype=float), np.asarray(domain.high, dtype=float)
    return low, np.where(high > low, high, low + 1.0), [bool(each) for each in domain.periodic]


def _coordinates(latent: Any, places: FloatArray) -> FloatArray:
    if not isinstance(latent, Sphere):
        return places
    longitude, latitude = places.T
    flat = np.cos(latitude)
    return np.stack([flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)], axis=1)


def _points(model: Any, Z: FloatArray) -> FloatArray:
    return np.asarray(model.inverse_transform(Z, extrapolate=True), dtype=np.float64)


def _share(true: FloatArray, read: FloatArray, points: FloatArray) -> float:
    """The largest distance between two answers, as a share of the surface's extent."""
    extent = float(np.linalg.norm(np.ptp(points, axis=0)))
    return float(np.linalg.norm(true - read, axis=1).max()) / (extent or 1.0)
