"""Cells of a lattice, each with points of its own: the lattice as a finer quadrature of the space between its nodes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.geometry.domain import Box
from prinfold.latent.base import LatentEmbedding, LatentSpace
from prinfold.latent.lattice import Lattice


@dataclass(frozen=True)
class Subdivision(LatentSpace):
    """The cells about the nodes of a lattice, cut into ``counts`` parts along each axis, with a point in each part.

    Points are numbered cell by cell. A cell reaches half way to the neighbours of its node; at an edge it ends there,
    so that every point, and every mean of points, lies in the domain.
    """

    lattice: Lattice
    counts: tuple[int, ...]

    @property
    def per_cell(self) -> int:
        """Points of a cell."""
        return prod(self.counts)

    @property
    def domain(self) -> Box:
        return self.lattice.domain

    @cached_property
    def nodes(self) -> FloatArray:
        axes = [_points(axis, m) for axis, m in zip(self.lattice.axes, self.counts, strict=True)]
        Q = len(axes)
        columns = [  # (n_1, …, n_Q, m_1, …, m_Q) of each axis
            each.reshape([len(each) if i == q else 1 for i in range(Q)] + [m if i == q else 1 for i in range(Q)])
            for q, (each, m) in enumerate(zip(axes, self.counts, strict=True))
        ]
        return np.stack(np.broadcast_arrays(*columns), axis=-1).reshape(-1, Q)

    @cached_property
    def embedded(self) -> FloatArray:
        """(K, M, e) the points of each cell where means are taken."""
        return self.embed(self.nodes).reshape(self.lattice.n_nodes, self.per_cell, -1)

    @property
    def spacing(self) -> float:
        return self.lattice.spacing / max(self.counts)

    @property
    def edges(self) -> IntArray:
        return np.empty((0, 2), dtype=np.intp)

    @property
    def faces(self) -> IntArray:
        return np.empty((0, self.dimension + 1), dtype=np.intp)

    def refined(self, resolution: int) -> LatentSpace:
        return self.lattice.refined(resolution)

    def thinned(self) -> LatentSpace:
        return self.lattice

    @property
    def embedding(self) -> LatentEmbedding:
        return self.lattice.embedding


def _points(axis: LatentSpace, m: int) -> FloatArray:
    """(n, m) points of the cells of one axis: the middles of m equal parts of each."""
    at, width = axis.nodes[:, 0], axis.spacing
    low, high = at - 0.5 * width, at + 0.5 * width
    extent = axis.domain.extent  # which has no bounds on a circle
    low, high = np.maximum(low, extent.lower[0]), np.minimum(high, extent.upper[0])
    if m == 1:
        return at[:, None]
    return np.asarray(low[:, None] + (high - low)[:, None] * (np.arange(m) + 0.5) / m)
