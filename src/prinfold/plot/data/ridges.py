"""Data of pictures of ridges, as plain arrays: the density around them, branches, ends and junctions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import BoolArray, FloatArray
from prinfold.exceptions import InvalidParameterError
from prinfold.plot.data.surfaces import Field
from prinfold.plot.inputs import FittedSurface

_MARGIN = 0.04
"""Space around everything, of its longer side."""

_DEPTH = 8.0
"""Nats below the highest density that are shaded."""


class RidgeLines(NamedTuple):
    """``lines`` (m, 2) each, of the branches with numbers ``branch``, ``ends`` (e, 2) and ``junctions`` (j, 2).

    ``support`` (B,) says how sure each branch is, 1 where that is unknown, and ``persists`` (B,) whether it is one that
    other rows would show too.
    """

    lines: tuple[FloatArray, ...]
    branch: tuple[int, ...]
    ends: FloatArray
    junctions: FloatArray
    support: FloatArray
    persists: BoolArray


def refuse_other_ridges(fitted: FittedSurface) -> None:
    """Refuse models whose ridge is not a curve in two columns."""
    if not hasattr(fitted.model, "graph_") or fitted.model.n_features_in_ != 2:
        raise InvalidParameterError(
            f"a ridge is drawn with its density in two columns; got {type(fitted.model).__name__} of "
            f"{fitted.model.n_features_in_} columns. plot.surface draws curves and surfaces in any number of columns"
        )


def ridge_lines(fitted: FittedSurface) -> RidgeLines:
    """The branches of a graph in units of the data, cut where longitudes begin anew."""
    model = fitted.model
    graph, mesh = model.graph_, model.mesh()
    piece = graph.latent.domain.piece(mesh.latent)
    lines, numbers = list[FloatArray](), list[int]()
    for b, closed in enumerate(graph.latent.closed.tolist()):
        line = mesh.vertices[piece == b][np.argsort(mesh.latent[piece == b, 0], kind="stable")]
        line = np.concatenate([line, line[:1]]) if closed else line
        for part in _unwrap(line, model.space_):
            lines.append(fitted.back(part))
            numbers.append(b)
    places = fitted.back(model.space_.leave(graph.places)) if len(graph.places) else np.empty((0, 2))
    support = np.nan_to_num(getattr(model, "branch_support_", np.ones(graph.latent.n_branches)), nan=1.0)
    persists = getattr(model, "persistent_branches_", np.ones(graph.latent.n_branches, dtype=bool))
    ends, junctions = places[graph.degrees == 1], places[graph.degrees > 2]
    return RidgeLines(tuple(lines), tuple(numbers), ends, junctions, support, persists)


def _unwrap(line: FloatArray, space: Any) -> list[FloatArray]:
    if space.round is None:
        return [line]
    return np.split(line, np.flatnonzero(np.abs(np.diff(line[:, 0])) > 180.0) + 1)


def density_image(fitted: FittedSurface, low: FloatArray, high: FloatArray, resolution: int) -> Field:
    """The density over a rectangle in units of the data, as a logarithm; nothing where it is next to none."""
    x, y = (np.linspace(a, b, resolution + 1) for a, b in zip(low, high, strict=True))
    middles = np.meshgrid(0.5 * (x[1:] + x[:-1]), 0.5 * (y[1:] + y[:-1]))
    rows = np.stack([each.ravel() for each in middles], axis=1)
    model = fitted.model
    log_density = model.flow_.density.log_density(model.space_.enter(np.asarray(fitted.rows(rows), dtype=float)))
    if model.flow_.edge is not None:
        outside = model.flow_.edge.outside(model.space_.enter(np.asarray(fitted.rows(rows), dtype=float)))
        log_density = np.where(outside, np.nan, log_density)
    log_density = np.where(log_density < np.nanmax(log_density) - _DEPTH, np.nan, log_density)
    return Field(x, y, log_density.reshape(resolution, resolution))


def view_of(*points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Corners of a rectangle around points, with a margin."""
    every = np.concatenate(points)
    low, high = every.min(axis=0), every.max(axis=0)
    margin = _MARGIN * float((high - low).max() or 1.0)
    return low - margin, high + margin
