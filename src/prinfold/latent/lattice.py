"""Rectangular lattices whose axes may each be closed to a circle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from math import factorial, prod

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import InvalidParameterError
from prinfold.geometry.domain import Box
from prinfold.latent.base import AxisEmbedding, LatentSpace, is_count, refuse_too_many, unique_edges
from prinfold.latent.drawing import FlatDrawing, NodeGrid, cell_middles

_MOST_FACES = 2**21
"""A lattice has q! simplices per cell; where that makes more than this it has no faces."""


@dataclass(frozen=True)
class Lattice(LatentSpace):
    """A rectangular lattice of ``shape`` nodes whose axes may each be closed to a circle."""

    shape: tuple[int, ...]
    periodic: tuple[bool, ...]

    def __post_init__(self) -> None:
        if not self.shape or not is_count(*self.shape):
            raise InvalidParameterError(f"a lattice needs at least one node along each axis, got shape {self.shape}")
        if len(self.periodic) != len(self.shape) or not all(isinstance(closed, bool) for closed in self.periodic):
            raise InvalidParameterError(
                f"a lattice needs True or False for each of its {len(self.shape)} axes, got periodic={self.periodic}"
            )
        refuse_too_many(prod(map(int, self.shape)))

    @cached_property
    def domain(self) -> Box:
        ends = [(-np.pi, np.pi) if closed else (-1.0, 1.0) for closed in self.periodic]
        return Box.of(*ends, periodic=self.periodic)

    @cached_property
    def nodes(self) -> FloatArray:
        grid = np.meshgrid(*map(_axis, self.shape, self.periodic), indexing="ij")
        return np.stack(grid, axis=-1).reshape(-1, len(self.shape))

    @property
    def spacing(self) -> float:
        steps = [
            2 * np.pi / n if closed else 2.0 / max(n - 1, 1)
            for n, closed in zip(self.shape, self.periodic, strict=True)
        ]
        return float(min(steps))

    @property
    def node_units(self) -> FloatArray:
        columns: list[float] = []
        for n, closed in zip(self.shape, self.periodic, strict=True):
            columns += [n / (2 * np.pi)] * 2 if closed else [max(n - 1, 1) / 2]
        return np.array(columns)

    @cached_property
    def axes(self) -> tuple[LatentSpace, ...]:
        return tuple(Lattice((n,), (closed,)) for n, closed in zip(self.shape, self.periodic, strict=True))

    @property
    def node_grid(self) -> NodeGrid:
        return NodeGrid(self.shape, self.periodic)

    @cached_property
    def edges(self) -> IntArray:
        index = np.arange(np.prod(self.shape)).reshape(self.shape)
        pairs = [
            np.stack([index, np.roll(index, -1, axis)], axis=-1)[self._inner(axis)].reshape(-1, 2)
            for axis in range(len(self.shape))
        ]
        return unique_edges(np.concatenate(pairs))

    @cached_property
    def faces(self) -> IntArray:
        """Kuhn's triangulation: each cell is cut into q! simplices that share its main diagonal."""
        if factorial(len(self.shape)) * self.n_nodes > _MOST_FACES:
            return np.empty((0, len(self.shape) + 1), dtype=np.intp)
        index = np.arange(np.prod(self.shape)).reshape(self.shape)
        corner = np.ix_(*(range(n if closed else n - 1) for n, closed in zip(self.shape, self.periodic, strict=True)))
        simplices = []
        for order in permutations(range(len(self.shape))):
            walk, corners = index, [index[corner]]
            for axis in order:
                walk = np.roll(walk, -1, axis)
                corners.append(walk[corner])
            simplices.append(np.stack(corners, axis=-1).reshape(-1, len(self.shape) + 1))
        faces = np.concatenate(simplices)
        # A closed axis of one or two nodes would name a corner twice.
        distinct = (np.diff(np.sort(faces, axis=1), axis=1) > 0).all(axis=1)
        return np.asarray(faces[distinct])

    def refined(self, resolution: int) -> Lattice:
        return Lattice((resolution,) * len(self.shape), self.periodic)

    def thinned(self) -> Lattice:
        return Lattice(tuple((n + 1) // 2 for n in self.shape), self.periodic)

    def doubled(self, axes: Sequence[int], most: int) -> Lattice:
        shape = list(self.shape)
        for axis in axes:
            if 2 * prod(shape) <= most:
                shape[axis] *= 2
        return self if tuple(shape) == self.shape else Lattice(tuple(shape), self.periodic)

    @cached_property
    def embedding(self) -> AxisEmbedding:
        return AxisEmbedding(self.domain, self.periodic)

    @property
    def drawing(self) -> FlatDrawing:
        box, grid = self.domain, self.node_grid
        return FlatDrawing(box, self.chart_labels, self._spread, self.shape, box=box, grid=grid)

    @property
    def chart_labels(self) -> tuple[str, ...]:
        return tuple(f"angle {i + 1}" if closed else f"latent {i + 1}" for i, closed in enumerate(self.periodic[:3]))

    def _spread(self, most: int) -> FloatArray:
        """Middles of equal cells, which keeps them off open edges."""
        return cell_middles(self.domain.low, self.domain.high, [min(n, most) for n in self.shape])

    def _inner(self, axis: int) -> tuple[slice, ...]:
        """All nodes that have a next one along ``axis``."""
        stop = None if self.periodic[axis] else -1
        return tuple(slice(None, stop) if i == axis else slice(None) for i in range(len(self.shape)))


def line(n: int) -> Lattice:
    """A line: nodes evenly spaced on [−1, 1].

    Parameters
    ----------
    n : int
        Number of nodes.

    Returns
    -------
    Lattice
    """
    return Lattice((n,), (False,))


def grid(*shape: int) -> Lattice:
    """A rectangular grid on [−1, 1]^q, of any dimension.

    Parameters
    ----------
    *shape : int
        Nodes along each axis.

    Returns
    -------
    Lattice
    """
    return Lattice(tuple(shape), (False,) * len(shape))


def circle(n: int) -> Lattice:
    """A circle: nodes evenly spaced round it; the coordinate is an angle.

    Parameters
    ----------
    n : int
        Number of nodes.

    Returns
    -------
    Lattice
    """
    return Lattice((n,), (True,))


def cylinder(around: int, along: int) -> Lattice:
    """A cylinder: an angle and a height in [−1, 1].

    Parameters
    ----------
    around : int
        Nodes round the circle.
    along : int
        Nodes along the height.

    Returns
    -------
    Lattice
    """
    return Lattice((around, along), (True, False))


def torus(*shape: int) -> Lattice:
    """A torus: a product of circles; the coordinates are angles.

    Parameters
    ----------
    *shape : int
        Nodes round each circle.

    Returns
    -------
    Lattice
    """
    return Lattice(tuple(shape), (True,) * len(shape))


def _axis(n: int, closed: bool) -> FloatArray:
    if closed:
        return -np.pi + 2 * np.pi * np.arange(n) / n
    return np.linspace(-1.0, 1.0, n) if n > 1 else np.zeros(1)
