"""Geometry of surfaces that are linear in their weights, seen within the columns that they move in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from prinfold._typing import FloatArray
from prinfold.base.surface_geometry import SurfaceGeometry
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.geometry.column_span import ColumnSpan


def linear_geometry(surface: BasisMap, weights: FloatArray, offset: FloatArray) -> SurfaceGeometry:
    """The surface y(z) = φ(z) W about an offset; in wide tables, nearest points are found within the span of W."""
    whole, span = _geometry(surface, weights, offset), ColumnSpan.of(weights, offset)
    if span.frame is None:
        return whole
    inside = _geometry(surface, weights @ span.frame, np.zeros(span.frame.shape[1]))
    return replace(whole, span=span, inside=inside)


def _geometry(surface: BasisMap, weights: FloatArray, offset: FloatArray) -> SurfaceGeometry:
    return SurfaceGeometry(
        surface.latent,
        lambda Z: surface.point(Z, weights) + offset,
        lambda Z: surface.jacobian(Z, weights),
        float(surface.basis.detail),
    )
