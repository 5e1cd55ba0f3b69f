"""Latent spaces: where the coordinates of a principal manifold live.

Each knows its nodes, their spacing and neighbours, the faces that make a mesh of them, how to take a
mean, and a chart for plots. Planes span [−1, 1] on each axis, angles are radians in [−π, π), points of
the sphere are unit vectors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from math import factorial, prod

import numpy as np
from scipy.spatial import ConvexHull, Delaunay, QhullError, cKDTree

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import InvalidParameterError
from prinfold.geometry.domain import Box, Domain, UnitSphere

__all__ = ["LatentSpace", "Lattice", "Points", "Sphere", "circle", "cylinder", "grid", "line", "torus"]

_NO_RESULTANT = 1e-9
"""A mean direction shorter than this points nowhere."""

_MOST_NODES = 2**24
"""More nodes than this is a slip of the pen, or a model file that means harm."""

_MOST_FACES = 2**21
"""A lattice has q! simplices per cell; where that makes more than this it has no faces."""

_MOST_TRIANGULATED = 3
"""Latent dimension up to which scattered points are triangulated: the cost explodes with it."""


class LatentSpace(ABC):
    """A latent domain with K nodes in it.

    The *embedding* places the space in ordinary coordinates without a seam: an angle becomes
    (cos θ, sin θ), everything else stands for itself. Means and basis functions are taken there.
    """

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """Which coordinates are valid, and how to move among them."""

    @property
    @abstractmethod
    def nodes(self) -> FloatArray:
        """(K, Q) latent coordinates of the nodes."""

    @property
    @abstractmethod
    def spacing(self) -> float:
        """Shortest distance between neighbouring nodes, along the space."""

    @property
    @abstractmethod
    def edges(self) -> IntArray:
        """(E, 2) pairs of neighbouring nodes, each once, smaller index first."""

    @property
    @abstractmethod
    def faces(self) -> IntArray:
        """(F, q + 1) corners of the simplices between nodes; none where they would be too many to be of use."""

    @abstractmethod
    def refined(self, resolution: int) -> LatentSpace:
        """The same space with ``resolution`` nodes along each axis."""

    @abstractmethod
    def embed(self, Z: FloatArray) -> FloatArray:
        """(n, e) embedded coordinates."""

    @abstractmethod
    def embed_jacobian(self, Z: FloatArray) -> FloatArray:
        """(n, e, Q) derivative of :meth:`embed`."""

    @abstractmethod
    def unembed(self, E: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Coordinates (n, Q) nearest to embedded points, and (n,) how well defined they are.

        The latter is the shortest resultant of any angle: 0 where a mean direction points nowhere, inf
        without angles.
        """

    @abstractmethod
    def chart(self, Z: FloatArray) -> FloatArray:
        """(n, ≤ 3) plotting coordinates."""

    @property
    @abstractmethod
    def chart_labels(self) -> tuple[str, ...]:
        """Names of the chart's axes."""

    @property
    def n_nodes(self) -> int:
        return len(self.nodes)

    @property
    def n_columns(self) -> int:
        return self.domain.n_columns

    @property
    def dimension(self) -> int:
        return self.domain.dimension

    def distance(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """(n,) distance along the space between matching rows."""
        return np.asarray(np.linalg.norm(self.domain.difference(A, B), axis=1))

    def mean(self, weight: FloatArray) -> FloatArray:
        """(n, Q) mean of the nodes under weights (n, K): the embedded mean, projected back.

        Where that mean points nowhere (weight spread evenly round a circle, say), the heaviest node
        stands in for it.
        """
        Z, resultant = self.unembed(weight @ self._embedded_nodes)
        lost = resultant < _NO_RESULTANT
        if lost.any():
            Z[lost] = self.nodes[np.argmax(weight[lost], axis=1)]
        return Z

    def covariance(self, weight: FloatArray, mean: FloatArray) -> FloatArray:
        """(n, Q, Q) spread of the nodes about ``mean`` under weights (n, K), the short way round."""
        delta = self.domain.difference(self.nodes[None], mean[:, None])
        return np.asarray(np.swapaxes(delta * weight[:, :, None], 1, 2) @ delta)

    @cached_property
    def _embedded_nodes(self) -> FloatArray:
        return self.embed(self.nodes)


@dataclass(frozen=True)
class Lattice(LatentSpace):
    """A rectangular lattice of ``shape`` nodes whose axes may each be closed to a circle."""

    shape: tuple[int, ...]
    periodic: tuple[bool, ...]

    def __post_init__(self) -> None:
        if not self.shape or not all(_is_count(n) for n in self.shape):
            raise InvalidParameterError(f"a lattice needs at least one node along each axis, got shape {self.shape}")
        if len(self.periodic) != len(self.shape) or not all(isinstance(closed, bool) for closed in self.periodic):
            raise InvalidParameterError(
                f"a lattice needs True or False for each of its {len(self.shape)} axes, got periodic={self.periodic}"
            )
        _refuse_too_many(prod(map(int, self.shape)))

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

    @cached_property
    def edges(self) -> IntArray:
        index = np.arange(np.prod(self.shape)).reshape(self.shape)
        pairs = [
            np.stack([index, np.roll(index, -1, axis)], axis=-1)[self._inner(axis)].reshape(-1, 2)
            for axis in range(len(self.shape))
        ]
        return _unique_edges(np.concatenate(pairs))

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

    def embed(self, Z: FloatArray) -> FloatArray:
        columns: list[FloatArray] = []
        for axis, closed in enumerate(self.periodic):
            columns += [np.cos(Z[:, axis]), np.sin(Z[:, axis])] if closed else [Z[:, axis]]
        return np.stack(columns, axis=1)

    def embed_jacobian(self, Z: FloatArray) -> FloatArray:
        out = np.zeros((len(Z), len(self.shape) + sum(self.periodic), len(self.shape)))
        row = 0
        for axis, closed in enumerate(self.periodic):
            if closed:
                out[:, row, axis], out[:, row + 1, axis] = -np.sin(Z[:, axis]), np.cos(Z[:, axis])
            else:
                out[:, row, axis] = 1.0
            row += 2 if closed else 1
        return out

    def unembed(self, E: FloatArray) -> tuple[FloatArray, FloatArray]:
        Z, resultant, row = np.empty((len(E), len(self.shape))), np.full(len(E), np.inf), 0
        for axis, closed in enumerate(self.periodic):
            if closed:
                Z[:, axis] = np.arctan2(E[:, row + 1], E[:, row])
                resultant = np.minimum(resultant, np.hypot(E[:, row], E[:, row + 1]))
            else:
                Z[:, axis] = E[:, row]
            row += 2 if closed else 1
        return self.domain.retract(Z), resultant

    def chart(self, Z: FloatArray) -> FloatArray:
        return Z[:, :3]

    @property
    def chart_labels(self) -> tuple[str, ...]:
        return tuple(f"angle {i + 1}" if closed else f"latent {i + 1}" for i, closed in enumerate(self.periodic[:3]))

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


@dataclass(frozen=True)
class Sphere(LatentSpace):
    """n nodes spread evenly over the unit sphere on a golden-angle spiral."""

    n: int

    def __post_init__(self) -> None:
        if not _is_count(self.n) or self.n < 4:
            raise InvalidParameterError(f"a sphere needs at least 4 nodes, got {self.n}")
        _refuse_too_many(self.n)

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
        first, second = self.edges.T
        return float(self.distance(self.nodes[first], self.nodes[second]).min())

    @cached_property
    def edges(self) -> IntArray:
        return _edges_of(self.faces)

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

    def embed(self, Z: FloatArray) -> FloatArray:
        return Z

    def embed_jacobian(self, Z: FloatArray) -> FloatArray:
        return np.broadcast_to(np.eye(3), (len(Z), 3, 3))

    def unembed(self, E: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.domain.retract(E), np.asarray(np.linalg.norm(E, axis=1))

    def distance(self, A: FloatArray, B: FloatArray) -> FloatArray:
        # 2 atan2 of half-chord and half-sum: exact for near and for opposite points alike.
        return np.asarray(2.0 * np.arctan2(np.linalg.norm(A - B, axis=1), np.linalg.norm(A + B, axis=1)))

    def chart(self, Z: FloatArray) -> FloatArray:
        """Longitude and height: a cylinder wrapped round the sphere keeps areas (Lambert)."""
        return np.stack([np.arctan2(Z[:, 1], Z[:, 0]), Z[:, 2]], axis=1)

    @property
    def chart_labels(self) -> tuple[str, ...]:
        return ("longitude", "height")


@dataclass(frozen=True, eq=False)
class Points(LatentSpace):
    """Any given set of nodes (K, Q), such as a Monte-Carlo sample; the domain is their bounding box."""

    coordinates: FloatArray

    def __post_init__(self) -> None:
        try:
            given = np.array(self.coordinates, dtype=float)
        except (TypeError, ValueError) as error:
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
        """Median distance between neighbours: the shortest says nothing about a random sample."""
        first, second = self.edges.T
        distance = self.distance(self.nodes[first], self.nodes[second])
        distance = distance[distance > 0]  # the same point given twice has no spacing
        return float(np.median(distance)) if len(distance) else 2.0

    @cached_property
    def edges(self) -> IntArray:
        """Sides of the faces; without faces, each node's nearest 2q others."""
        if len(self.faces):
            return _edges_of(self.faces)
        n_near = min(2 * self.n_columns, self.n_nodes - 1)
        near = np.asarray(cKDTree(self.nodes).query(self.nodes, k=n_near + 1)[1]).ravel()
        return _unique_edges(np.stack([np.repeat(np.arange(self.n_nodes), n_near + 1), near], axis=1))

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

    def embed(self, Z: FloatArray) -> FloatArray:
        return Z

    def embed_jacobian(self, Z: FloatArray) -> FloatArray:
        return np.broadcast_to(np.eye(self.n_columns), (len(Z), self.n_columns, self.n_columns))

    def unembed(self, E: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.domain.retract(E), np.full(len(E), np.inf)

    def chart(self, Z: FloatArray) -> FloatArray:
        return Z[:, :3]

    @property
    def chart_labels(self) -> tuple[str, ...]:
        return tuple(f"latent {i + 1}" for i in range(min(self.n_columns, 3)))


def _is_count(n: object) -> bool:
    return isinstance(n, int | np.integer) and not isinstance(n, bool) and bool(n >= 1)


def _refuse_too_many(n_nodes: int) -> None:
    if n_nodes > _MOST_NODES:
        raise InvalidParameterError(f"{n_nodes} latent nodes are more than the {_MOST_NODES} allowed; ask for fewer")


def _axis(n: int, closed: bool) -> FloatArray:
    if closed:
        return -np.pi + 2 * np.pi * np.arange(n) / n
    return np.linspace(-1.0, 1.0, n) if n > 1 else np.zeros(1)


def _edges_of(faces: IntArray) -> IntArray:
    corners = faces.shape[1]
    pairs = [faces[:, [i, j]] for i in range(corners) for j in range(i + 1, corners)]
    return _unique_edges(np.concatenate(pairs))


def _unique_edges(pairs: IntArray) -> IntArray:
    pairs = np.sort(pairs, axis=1)
    return np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
