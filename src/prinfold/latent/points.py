"""A latent space of nodes that are given as an array."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial import Delaunay, QhullError, cKDTree

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.geometry.domain import Box
from prinfold.latent.base import LatentSpace, edges_of, median_spacing, unique_edges
from prinfold.latent.drawing import FlatDrawing
from prinfold.latent.lattice import Lattice, grid
from prinfold.validation.tables import as_numbers

_MOST_TRIANGULATED = 3
"""Latent dimension up to which scattered points are triangulated: the cost explodes with it."""

_N_LINES = 5
"""Lines drawn across each axis."""


@dataclass(frozen=True, eq=False)
class Points(LatentSpace):
    """Any given set of nodes (K, Q), such as a Monte-Carlo sample; the domain is their bounding box."""

    coordinates: FloatArray

    def __post_init__(self) -> None:
        try:
            given = np.array(as_numbers("coordinates", self.coordinates))
        except InvalidDataError as error:
            raise InvalidParameterError(
                f"nodes given as points must be a finite (K, Q) array of numbers: {error}"
            ) from error
        if given.ndim != 2 or 0 in given.shape or not np.isfinite(given).all():
            raise InvalidParameterError(f"nodes given as points must be a finite (K, Q) array, got shape {given.shape}")
        given.setflags(write=False)
        object.__setattr__(self, "coordinates", given)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Points) and np.array_equal(self.coordinates, other.coordinates)

    def __hash__(self) -> int:
        return hash(self.coordinates.tobytes())

    @cached_property
    def domain(self) -> Box:
        low, high = self.nodes.min(axis=0), self.nodes.max(axis=0)
        return Box.of(*zip(low.tolist(), high.tolist(), strict=True))

    @property
    def nodes(self) -> FloatArray:
        return self.coordinates

    @cached_property
    def spacing(self) -> float:
        return median_spacing(self)

    @cached_property
    def edges(self) -> IntArray:
        """Sides of the faces; without faces, each node's nearest 2q others."""
        if len(self.faces):
            return edges_of(self.faces)
        n_near = min(2 * self.n_columns, self.n_nodes - 1)
        near = np.asarray(cKDTree(self.nodes).query(self.nodes, k=n_near + 1)[1]).ravel()
        return unique_edges(np.stack([np.repeat(np.arange(self.n_nodes), n_near + 1), near], axis=1))

    @cached_property
    def faces(self) -> IntArray:
        """Neighbours along a line, Delaunay's triangulation in two and three dimensions, none beyond."""
        dimension = self.n_columns
        if dimension == 1:
            order = np.argsort(self.nodes[:, 0], kind="stable")
            return np.stack([order[:-1], order[1:]], axis=1)
        if dimension > _MOST_TRIANGULATED:
            return np.empty((0, dimension + 1), dtype=np.intp)
        try:
            return np.asarray(Delaunay(self.nodes).simplices, dtype=np.intp)
        except (QhullError, ValueError):  # fewer than q + 1 nodes, or all on one line
            return np.empty((0, dimension + 1), dtype=np.intp)

    def refined(self, resolution: int) -> Lattice | Points:
        low, high = np.asarray(self.domain.low), np.asarray(self.domain.high)
        unit = grid(*(resolution,) * self.n_columns).nodes
        return Points(low + (unit + 1.0) / 2.0 * (high - low))

    def thinned(self) -> Points:
        return Points(self.coordinates[:: 2**self.n_columns])

    @property
    def drawing(self) -> FlatDrawing:
        lines = (_N_LINES,) * self.n_columns
        return FlatDrawing(self.domain, self.chart_labels, self._spread, lines, box=self.domain)

    def _spread(self, most: int) -> FloatArray:
        """One node for each cell of a coarse grid."""
        if self.n_nodes <= most**2:
            return self.nodes
        span = np.ptp(self.nodes, axis=0)
        cell = np.floor((self.nodes - self.nodes.min(axis=0)) / np.where(span > 0, span, 1.0) * (most - 1e-9))
        return self.nodes[np.sort(np.unique(cell, axis=0, return_index=True)[1])]
