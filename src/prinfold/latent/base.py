"""The interface of every latent space, and its embeddings in ordinary coordinates without a seam."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import ClassVar, Protocol

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import InvalidParameterError
from prinfold.geometry.domain import Domain
from prinfold.latent.drawing import Drawing, NodeGrid
from prinfold.validation.object_verbs import check_verbs
from prinfold.validation.settings import Constraint, instance_of, integer, nothing, several

NO_RESULTANT = 1e-9
"""Length of a mean of directions below which it has no direction."""

_MOST_NODES = 2**24
"""Largest number of nodes that is accepted; more is a typing error, or a malicious model file."""


class LatentEmbedding(Protocol):
    """A smooth map from latent coordinates (n, Q) to ordinary ones (n, e), and back."""

    def embed(self, Z: FloatArray) -> FloatArray:
        """(n, e) embedded coordinates."""

    def jacobian(self, Z: FloatArray) -> FloatArray:
        """(n, e, Q) derivative of :meth:`embed`."""

    def unembed(self, E: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Coordinates (n, Q) nearest to embedded points, and (n,) how well defined they are.

        The latter is the shortest resultant of any angle: 0 where a mean direction points nowhere, inf
        without angles.
        """


@dataclass(frozen=True)
class AxisEmbedding:
    """An angle θ as (cos θ, sin θ), coordinates along other axes as they are; ``angles`` (Q,) tells which is which."""

    domain: Domain
    angles: tuple[bool, ...]

    def embed(self, Z: FloatArray) -> FloatArray:
        columns: list[FloatArray] = []
        for axis, closed in enumerate(self.angles):
            columns += [np.cos(Z[:, axis]), np.sin(Z[:, axis])] if closed else [Z[:, axis]]
        return np.stack(columns, axis=1) if any(self.angles) else Z

    def jacobian(self, Z: FloatArray) -> FloatArray:
        out = np.zeros((len(Z), len(self.angles) + sum(self.angles), len(self.angles)))
        row = 0
        for axis, closed in enumerate(self.angles):
            if closed:
                out[:, row, axis], out[:, row + 1, axis] = -np.sin(Z[:, axis]), np.cos(Z[:, axis])
            else:
                out[:, row, axis] = 1.0
            row += 2 if closed else 1
        return out

    def unembed(self, E: FloatArray) -> tuple[FloatArray, FloatArray]:
        Z, resultant, row = np.empty((len(E), len(self.angles))), np.full(len(E), np.inf), 0
        for axis, closed in enumerate(self.angles):
            if closed:
                Z[:, axis] = np.arctan2(E[:, row + 1], E[:, row])
                resultant = np.minimum(resultant, np.hypot(E[:, row], E[:, row + 1]))
            else:
                Z[:, axis] = E[:, row]
            row += 2 if closed else 1
        return self.domain.retract(Z), resultant


class SphereEmbedding(AxisEmbedding):
    """Unit vectors as they are, the nearest one to a point in space along its ray."""

    def unembed(self, E: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.domain.retract(E), np.asarray(np.linalg.norm(E, axis=1))


_AXES = Constraint(lambda v: all(integer(0).test(each) for each in v), "numbers of axes, counted from 0")
_NODE_NUMBERS = nothing | Constraint(lambda v: v.ndim <= 2 and v.dtype.kind in "iu", "an array of node numbers")
_SHAPE = several(integer(1), "numbers of nodes, one for each axis")
_TOTALS = nothing | Constraint(lambda v: v.ndim == 1 and v.dtype.kind == "f", "an array of a number for each row")


@check_verbs(
    {
        **dict.fromkeys(("Z", "A", "B", "mean"), attrgetter("n_columns")),
        "E": attrgetter("n_embedded"),
        **dict.fromkeys(("weight", "places")),
    },
    resolution=integer(1),
    most=integer(0),
    axes=_AXES,
    near=_NODE_NUMBERS,
    total=_TOTALS,
    shape=_SHAPE,
    j=integer(0),
)
class LatentSpace(ABC):
    """A latent domain with K nodes in it.

    A kind of latent space has the seven verbs that are abstract here, and an ``embedding`` unless it is flat; what else
    may be asked is made of those. The embedding places the space in ordinary coordinates without a seam: an angle
    becomes (cos θ, sin θ), everything else stands for itself. Means and basis functions are taken there.
    """

    charts: tuple[LatentSpace, ...] = ()
    """Latent spaces beside each other that this one is made of; none where it is one itself."""

    unit_speed: ClassVar[bool] = False
    """Whether coordinates are lengths along the surface, which is then stretched nowhere."""

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """The domain of valid coordinates, with its moves."""

    @property
    @abstractmethod
    def nodes(self) -> FloatArray:
        """(K, Q) latent coordinates of the nodes."""

    @property
    @abstractmethod
    def spacing(self) -> float:
        """Shortest distance between neighbouring nodes, along the space."""

    @property
    def widest_spacing(self) -> float:
        """Largest spacing of nodes over the axes."""
        return max((axis.spacing for axis in self.axes if axis.n_nodes > 1), default=self.spacing)

    @property
    def node_units(self) -> FloatArray:
        """(e,) node spacings in a unit of each embedded column: multiplied by it, neighbours are about 1 apart."""
        return np.full(self.n_embedded, 1.0 / self.spacing if self.n_nodes > 1 else 1.0)

    @property
    def axes(self) -> tuple[LatentSpace, ...]:
        """Spaces of one dimension of which this is the product, nodes and all, the last varying fastest; or none."""
        return ()

    @property
    def node_grid(self) -> NodeGrid | None:
        """Nodes along each axis and which axes close, where nodes stand in rows and columns."""
        return None

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
    def thinned(self) -> LatentSpace:
        """The same space with about half as many nodes along each axis."""

    def doubled(self, axes: Sequence[int], most: int) -> LatentSpace:
        """With twice the nodes along some axes, one after the other, as long as these are at most ``most``; or itself.

        Only spaces that can be cut more finely override this.
        """
        return self

    @cached_property
    def embedding(self) -> LatentEmbedding:
        """The space in ordinary coordinates without a seam; here its coordinates as they are."""
        return AxisEmbedding(self.domain, (False,) * self.n_columns)

    def embed(self, Z: FloatArray) -> FloatArray:
        """(n, e) embedded coordinates."""
        return self.embedding.embed(Z)

    def embed_jacobian(self, Z: FloatArray) -> FloatArray:
        """(n, e, Q) derivative of :meth:`embed`."""
        return self.embedding.jacobian(Z)

    def unembed(self, E: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Coordinates (n, Q) nearest to embedded points, and (n,) the shortest resultant of any angle."""
        return self.embedding.unembed(E)

    @property
    def drawing(self) -> Drawing | None:
        """The drawing of the space; None where there is no one picture of it."""
        return None

    def chart(self, Z: FloatArray) -> FloatArray:
        """(n, ≤ 3) plotting coordinates."""
        return Z[:, :3]

    @property
    def chart_labels(self) -> tuple[str, ...]:
        """Names of the chart's axes."""
        return tuple(f"latent {i + 1}" for i in range(min(self.n_columns, 3)))

    @cached_property
    def n_nodes(self) -> int:
        return len(self.nodes)

    @cached_property
    def n_embedded(self) -> int:
        """Embedded coordinates e of a place."""
        return int(self.embed(self.nodes[:1]).shape[1])

    @cached_property
    def n_columns(self) -> int:
        return self.domain.extent.n_columns

    @cached_property
    def dimension(self) -> int:
        return self.domain.extent.dimension

    def distance(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """(n,) distance along the space between matching rows."""
        return np.asarray(np.linalg.norm(self.domain.difference(A, B), axis=1))

    def mean(self, weight: FloatArray, near: IntArray | None = None, total: FloatArray | None = None) -> FloatArray:
        """(n, Q) mean of the nodes under weights (n, K): the embedded mean, projected back.

        With ``near`` the weights are (n, m) and those of the nodes it names; the others weigh nothing. They sum to one
        in each row, or to its ``total`` (n,).

        Where that mean points nowhere (weight spread evenly round a circle, say), the heaviest node
        stands in for it.
        """
        embedded, nodes = self._embedded_nodes, self.nodes
        if near is not None:
            embedded, nodes = embedded[near], nodes[near]
        mean = weight @ embedded
        Z, resultant = self.unembed(mean if total is None else mean / total[:, None])
        lost = resultant < NO_RESULTANT
        if lost.any():
            Z[lost] = nodes[np.argmax(weight[lost], axis=1)]
        return Z

    def covariance(self, weight: FloatArray, mean: FloatArray, near: IntArray | None = None) -> FloatArray:
        """(n, Q, Q) spread of the nodes about ``mean`` under weights (n, K), the short way round."""
        nodes = self.nodes if near is None else self.nodes[near]
        delta = self.domain.difference(nodes[None], mean[:, None])
        return np.asarray(np.swapaxes(delta * weight[:, :, None], 1, 2) @ delta)

    def __getstate__(self) -> dict[str, object]:
        """State for pickling, without anything that can be derived again."""
        derived = {
            name for kind in type(self).__mro__ for name, each in vars(kind).items() if type(each) is cached_property
        }
        return {name: value for name, value in vars(self).items() if name not in derived}

    @property
    def _edge_lengths(self) -> FloatArray:
        return self.distance(self.nodes[self.edges[:, 0]], self.nodes[self.edges[:, 1]])

    @cached_property
    def _embedded_nodes(self) -> FloatArray:
        return self.embed(self.nodes)


IS_LATENT = instance_of(LatentSpace, words="a latent space, such as prinfold.latent.line(9)")
"""What a setting or an argument that stands for a space must be."""


def is_count(*numbers: object) -> bool:
    """Whether all are whole numbers of at least one."""
    return all(isinstance(n, int | np.integer) and not isinstance(n, bool) and bool(n >= 1) for n in numbers)


def refuse_too_many(n_nodes: int) -> None:
    """Raise where the nodes could not be held."""
    if n_nodes > _MOST_NODES:
        raise InvalidParameterError(f"{n_nodes} latent nodes are more than the {_MOST_NODES} allowed; ask for fewer")


def edges_of(faces: IntArray) -> IntArray:
    """(E, 2) sides of the faces, each once."""
    corners = faces.shape[1]
    pairs = [faces[:, [i, j]] for i in range(corners) for j in range(i + 1, corners)]
    return unique_edges(np.concatenate(pairs))


def median_spacing(space: LatentSpace) -> float:
    """Median distance between neighbours, for scattered points, whose shortest distance says nothing."""
    distance = space._edge_lengths
    distance = distance[distance > 0]  # the same place twice has no spacing
    return float(np.median(distance)) if len(distance) else 2.0


def unique_edges(pairs: IntArray) -> IntArray:
    """(E, 2) pairs of different nodes, each once, smaller index first."""
    pairs = np.sort(pairs, axis=1)
    return np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
