"""The loop that persists in rows, as a start of a closed curve (de Silva, Morozov & Vejdemo-Johansson, 2011)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from prinfold._typing import FloatArray
from prinfold.geometry.persistent_loops import circular_coordinates, persistent_loops

_VERTICES = 48
"""Vertices of the ring."""

_CONCENTRATION = 12.0
"""Of the von Mises weights by which points are averaged along the ring: they reach 17 degrees to either side."""


class PersistentRing(NamedTuple):
    """Vertices (m, D) along a loop of the rows, and its ``persistence``.

    That is the scale at which the loop is filled over the scale at which it closes.
    """

    vertices: FloatArray
    persistence: float


def persistent_ring(points: FloatArray) -> PersistentRing | None:
    """The loop that persists longest among points (k, D), which cover the rows evenly; None where there is none.

    Each of its vertices is the mean of the points with about the same angle round the loop.
    """
    distance = cdist(points, points)
    loops = persistent_loops(distance) if len(points) > 3 else []
    found = circular_coordinates(distance, loops[:1]) if loops else None
    if found is None:
        return None
    angle = 2.0 * np.pi * np.arange(_VERTICES) / _VERTICES
    weight = np.exp(_CONCENTRATION * (np.cos(angle[:, None] - found.angles[:, 0]) - 1.0))
    vertices = (weight / weight.sum(axis=1, keepdims=True)) @ points[found.kept]
    return PersistentRing(np.asarray(vertices), loops[0].death / loops[0].birth)
