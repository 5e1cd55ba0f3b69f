"""Points between the nodes of a lattice: a finer grid than that of thesis (3.3), by a scheme of ours."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.geometry.domain import Box
from prinfold.latent.base import LatentEmbedding, LatentSpace
from prinfold.latent.lattice import Lattice


class LatticePoints(LatentSpace):
    """Points in the space of a lattice that stand for parts of equal weight; they have no neighbours of their own."""

    lattice: Lattice

    @property
    def domain(self) -> Box:
        return self.lattice.domain

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


@dataclass(frozen=True)
class EvenParts(LatticePoints):
    """The space of a lattice cut into so many parts of equal weight along each axis, with a point in each.

    Cells about nodes weigh the same, those at an edge too, of which half lies outside: parts are half as wide there.
    """

    lattice: Lattice
    parts: tuple[int, ...]

    @cached_property
    def nodes(self) -> FloatArray:
        axes = [_middles(axis, n) for axis, n in zip(self.lattice.axes, self.parts, strict=True)]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))

    @property
    def spacing(self) -> float:
        shares = zip(self.lattice.axes, self.parts, strict=True)
        return min(axis.spacing * axis.n_nodes / n for axis, n in shares)


@dataclass(frozen=True)
class Subdivision(LatticePoints):
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


def _points(axis: LatentSpace, m: int) -> FloatArray:
    """(n, m) points of the cells of one axis: the middles of m equal parts of each, or the nodes themselves."""
    return axis.nodes if m == 1 else _middles(axis, m * axis.n_nodes).reshape(-1, m)


def _middles(axis: LatentSpace, n: int) -> FloatArray:
    """(n,) middles of parts of equal weight of one axis, whose nodes weigh the same."""
    at = axis.nodes[:, 0]
    steps = (np.arange(n) + 0.5) / n * len(at) - 0.5  # in spacings from the first node
    extent = axis.domain.extent
    if np.isfinite(extent.upper[0]):  # not on a circle: cells at the ends have all of their weight within
        steps = np.where(steps < 0.5, 0.5 * (steps + 0.5), steps)
        last = len(at) - 1.0
        steps = np.where(steps > last - 0.5, last - 0.5 * (last + 0.5 - steps), steps)
    return np.asarray(at[0] + axis.spacing * steps)
