"""A surface as lines and triangles in data space, cut where its latent domain ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from prinfold._typing import FloatArray, Mesh
from prinfold.latent import Cloud, LatentSpace
from prinfold.latent.cloud import clip_mesh
from prinfold.latent.drawing import Plane
from prinfold.latent.occupied_region import has_open_corners, occupied_region
from prinfold.plot.inputs import FittedSurface, drawing_of


def wires(
    fitted: FittedSurface, most: int = 20, resolution: int = 160, region: Cloud | None = None
) -> list[FloatArray]:
    """Lines of the surface as arrays (m, D): the curve itself, or lines along which one latent axis is constant.

    Surfaces of three and more dimensions get the segments between neighbouring nodes. Lines of a plane end where the
    ``region`` does, if one is given.
    """
    if fitted.latent.charts:
        return [line for each in fitted.model.maps_ for line in wires(replace(fitted, model=each), most, resolution)]
    latent, drawing = fitted.latent, drawing_of(fitted.latent)
    if latent.dimension == 1:
        return _pieces(fitted)
    layout = drawing.layout(flat=False).plane
    if layout is None or layout.invert is None:
        ends = fitted.points(latent.nodes)
        return list(ends[latent.edges])
    lines = []
    for axis in range(2):
        at = _levels(layout, axis, drawing.n_lines[axis], most)
        along = np.linspace(layout.low[1 - axis], layout.high[1 - axis], resolution)
        for level in at:
            place = np.empty((resolution, 2))
            place[:, axis], place[:, 1 - axis] = level, along
            lines += [fitted.points(run) for run in _inside_runs(region or latent, layout.invert(place))]
    return lines or [fitted.points(latent.nodes)]


def _pieces(fitted: FittedSurface) -> list[FloatArray]:
    """The curve as lines, one for each piece: vertices in the order of their coordinate, cut where no segment is."""
    mesh = fitted.model.mesh()
    order = np.argsort(mesh.latent[:, 0], kind="stable")
    vertices, joined = fitted.back(mesh.vertices[order]), np.zeros(len(order), dtype=bool)
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    ends = np.sort(rank[mesh.faces], axis=1)
    joined[ends[ends[:, 1] == ends[:, 0] + 1, 0]] = True
    if len(order) and len(mesh.faces) == len(order):  # closed
        return [np.concatenate([vertices, vertices[:1]])]
    return np.split(vertices, np.flatnonzero(~joined[:-1]) + 1) if len(order) else [fitted.points(fitted.latent.nodes)]


def _inside_runs(latent: LatentSpace, Z: FloatArray) -> list[FloatArray]:
    """The parts of a line of latent coordinates that lie in the domain, two coordinates or more each."""
    inside = latent.domain.contains(Z)
    runs = np.split(np.arange(len(Z)), np.flatnonzero(np.diff(inside)) + 1)
    return [latent.domain.retract(Z[run]) for run in runs if len(run) > 1 and inside[run[0]]]


def _levels(layout: Plane, axis: int, count: int, most: int) -> FloatArray:
    count = -(-count // -(-count // most))
    if layout.periodic[axis]:
        return np.linspace(layout.low[axis], layout.high[axis], count + 1)[:-1]
    return np.linspace(layout.low[axis], layout.high[axis], max(count, 2))


def surface_mesh(fitted: FittedSurface, resolution: int = 40, region: Cloud | None = None) -> Mesh:
    """Triangles of a surface in the user's own units, as far as a ``region`` of latent space reaches, if given."""
    mesh: Mesh = fitted.model.mesh(resolution)
    if region is None:
        return mesh._replace(vertices=fitted.back(mesh.vertices))
    latent, faces = clip_mesh(region.domain, mesh.latent, mesh.faces)
    return Mesh(fitted.points(latent), latent, faces)


def drawn_region(fitted: FittedSurface, X: Any) -> Cloud | None:
    """The region that rows occupy in latent space; None where all of the space is to be drawn, as without rows."""
    return None if X is None else region_of(fitted, fitted.coordinates(X))


def region_of(fitted: FittedSurface, Z: FloatArray) -> Cloud | None:
    """The region around latent coordinates Z of rows; None where all of the space is to be drawn."""
    return occupied_region(Z) if has_open_corners(fitted.latent) else None
