"""Nodes on the unit sphere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial import ConvexHull

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import InvalidParameterError
from prinfold.geometry.domain import UnitSphere
from prinfold.latent.base import LatentSpace, SphereEmbedding, edges_of, is_count, refuse_too_many
from prinfold.latent.drawing import Plane


@dataclass(frozen=True)
class Sphere(LatentSpace):
    """n nodes spread evenly over the unit sphere on a golden-angle spiral."""

    n: int

    def __post_init__(self) -> None:
        if not is_count(self.n) or self.n < 4:
            raise InvalidParameterError(f"a sphere needs at least 4 nodes, got {self.n}")
        refuse_too_many(self.n)

    @cached_property
    def domain(self) -> UnitSphere:
        return UnitSphere()

    @cached_property
    def nodes(self) -> FloatArray:
        rank = np.arange(self.n)
        height = 1.0 - (2 * rank + 1) / self.n
        longitude = rank * np.pi * (3.0 - np.sqrt(5.0))
        radius = np.sqrt(1.0 - height**2)
        return np.stack([radius * np.cos(longitude), radius * np.sin(longitude), height], axis=1)

    @cached_property
    def spacing(self) -> float:
        return float(self._edge_lengths.min())

    @cached_property
    def edges(self) -> IntArray:
        return edges_of(self.faces)

    @cached_property
    def faces(self) -> IntArray:
        faces = np.asarray(ConvexHull(self.nodes).simplices, dtype=np.intp)
        a, b, c = (self.nodes[faces[:, i]] for i in range(3))
        inward = np.einsum("ij,ij->i", np.cross(b - a, c - a), a) < 0
        faces[inward] = faces[inward][:, ::-1]
        return faces

    def refined(self, resolution: int) -> Sphere:
        # As many nodes as a square lattice of that resolution would have.
        return Sphere(max(resolution**2, 4))

    def thinned(self) -> Sphere:
        return Sphere(max(self.n // 4, 4))

    def doubled(self, axes: Sequence[int], most: int) -> Sphere:
        n_nodes = min(4 * self.n, most)
        return Sphere(n_nodes) if len(axes) and n_nodes > self.n else self

    @cached_property
    def embedding(self) -> SphereEmbedding:
        return SphereEmbedding(self.domain, (False,) * 3)

    def distance(self, A: FloatArray, B: FloatArray) -> FloatArray:
        # 2 atan2 of half-chord and half-sum: exact for near and for opposite points alike.
        return np.asarray(2.0 * np.arctan2(np.linalg.norm(A - B, axis=1), np.linalg.norm(A + B, axis=1)))

    def chart(self, Z: FloatArray) -> FloatArray:
        """Longitude and height: a cylinder wrapped round the sphere keeps areas (Lambert)."""
        return np.stack([np.arctan2(Z[:, 1], Z[:, 0]), Z[:, 2]], axis=1)

    @property
    def chart_labels(self) -> tuple[str, ...]:
        return ("longitude", "height")

    @property
    def drawing(self) -> SphereDrawing:
        return SphereDrawing(self)


@dataclass(frozen=True, eq=False)
class SphereDrawing:
    """The sphere on Lambert's cylinder, unrolled: longitude and height."""

    latent: Sphere
    n_lines: tuple[int, ...] = (8, 5)
    box: None = None
    contour: None = None
    pieces: None = None
    grid: None = None

    def layout(self, flat: bool) -> Plane:
        labels = self.latent.chart_labels
        return Plane((-np.pi, -1.0), (np.pi, 1.0), (True, False), labels, self.latent.chart, _from_lambert)

    def directions(self, Z: FloatArray) -> FloatArray:
        """East and north, so that marks keep their true shape where the chart would stretch them towards the poles."""
        longitude = np.arctan2(Z[:, 1], Z[:, 0])
        east = np.stack([-np.sin(longitude), np.cos(longitude), np.zeros(len(Z))], axis=1)
        return np.stack([east, np.cross(Z, east)], axis=1)

    def spread(self, most: int) -> FloatArray:
        """Nodes, or a new spiral where they are too many."""
        return self.latent.nodes if self.latent.n_nodes <= most**2 else self.latent.refined(most).nodes


def _from_lambert(place: FloatArray) -> FloatArray:
    longitude, height = place.T
    radius = np.sqrt(np.maximum(1.0 - height**2, 0.0))
    return np.stack([radius * np.cos(longitude), radius * np.sin(longitude), height], axis=1)
