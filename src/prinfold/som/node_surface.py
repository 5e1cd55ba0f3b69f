"""The batch SOM as a surface: kernel regression, on the nodes, of the rows that each has won.

With N_k the weight of the rows that node k has won and m_k their mean, the batch update (2.23) of the GTM thesis is the
value at the node of

    y(x) = Σ_k F_k m_k,   F_k = N_k h(x, x_k) / Σ_j N_j h(x, x_j)                                (3.18), (3.19)

which is defined between nodes as well. For a Gaussian h of width σ

    ∂F_k/∂x = F_k (x_k − Σ_j F_j x_j) / σ²                                              ((4.19), corrected).

Where cells are missing every column has an N_k of its own. All distances are in node spacings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import BoolArray, FloatArray
from prinfold.geometry.column_span import ColumnSpan
from prinfold.latent import LatentSpace
from prinfold.rows.rows import as_rows, blas_on_one_thread
from prinfold.som.neighborhoods import GaussianNeighborhood, Neighborhood

_GAUSSIAN = GaussianNeighborhood()

_LEAST_KERNEL_SUM = 1e-250
"""Kernel sums below this are rounding: no node near has the column, and only nodes that have it are used."""


class NodeWins(NamedTuple):
    """Rows that nodes have won: their ``mass`` (K, 1), or (K, D) where cells are missing, and ``sums`` (K, D)."""

    mass: FloatArray
    sums: FloatArray

    @property
    def means(self) -> FloatArray:
        """(K, D) mean of the rows of each node, zero where there are none (3.17)."""
        return np.asarray(self.sums / np.where(self.mass > 0, self.mass, 1.0))

    @property
    def occupied(self) -> BoolArray:
        """(K,) which nodes have won anything."""
        return np.asarray((self.mass > 0).any(axis=1))

    def only(self, nodes: BoolArray) -> NodeWins:
        """The wins of some nodes."""
        return NodeWins(self.mass[nodes], self.sums[nodes])


def places_of(latent: LatentSpace) -> FloatArray:
    """(K, e) nodes in node spacings."""
    return latent.embed(latent.nodes) * latent.node_units


def squared_place_distances(A: FloatArray, B: FloatArray) -> FloatArray:
    """(n, m) squared distances of a few columns, by the definition: without cancellation."""
    out = np.zeros((len(A), len(B)))
    for a, b in zip(A.T, B.T, strict=True):
        out += np.square(a[:, None] - b)
    return out


def update(
    places: FloatArray, won: NodeWins, neighborhood: Neighborhood, width: float, codebook: FloatArray
) -> FloatArray:
    """(K, D) the batch update (2.23): kernel means at the nodes; a node that no kernel reaches stays where it is."""
    occupied = won.occupied
    seen, held = places[occupied], won.only(occupied)
    out = codebook.copy()
    for part in as_rows(places, width=len(seen)).slices:
        h = neighborhood.relative(squared_place_distances(places[part], seen) / width**2)
        total, sums = h @ held.mass, h @ held.sums
        np.divide(sums, total, out=out[part], where=np.broadcast_to(total > _LEAST_KERNEL_SUM, sums.shape))
    return out


NARROWEST = 1e-9
"""Least width of the Gaussians of a surface: narrower ones make the same steps, and their derivatives overflow."""


@dataclass(frozen=True, eq=False)
class NodeMap:
    """y(z) of the module's header, with a Gaussian of ``width`` node spacings, on what nodes have ``won``."""

    latent: LatentSpace
    won: NodeWins
    width: float
    remembered: dict[str, Any] = field(default_factory=dict, repr=False)
    """Meshes and the like, kept because they take long to make."""

    def __getstate__(self) -> dict[str, Any]:
        """State for pickling, without anything that can be derived again."""
        return {"latent": self.latent, "won": self.won, "width": self.width, "remembered": {}}

    def point(self, Z: FloatArray) -> FloatArray:
        """(n, D) the surface at latent coordinates."""
        return self._in_blocks(Z, lambda part: self._sums(part)[0])

    def jacobian(self, Z: FloatArray) -> FloatArray:
        """(n, D, Q) its derivative."""
        return self._in_blocks(Z, self._derivative)

    @blas_on_one_thread()
    def _in_blocks(self, Z: FloatArray, ask: Callable[[FloatArray], FloatArray]) -> FloatArray:
        D = self.won.sums.shape[1]
        parts = as_rows(Z, width=max(self.latent.n_nodes, D * Z.shape[1])).slices
        return np.concatenate([ask(Z[part]) for part in parts]) if parts else ask(Z)

    def _sums(self, Z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
        """Points (n, D), kernels (n, k), their totals (n, 1) or (n, D), and where those are zero."""
        centers, held = self._occupied_nodes
        places = self.latent.embed(Z) * self.latent.node_units
        h = _GAUSSIAN.relative(squared_place_distances(places, centers) / self.width**2)
        total = h @ held.mass
        lost = total <= (_LEAST_KERNEL_SUM if total.shape[1] > 1 else 0.0)  # of one column there is no other map
        total = np.where(lost, 1.0, total)
        points = h @ held.sums / total
        for column in np.flatnonzero(lost.any(axis=0)):
            rows = lost[:, column]
            points[rows, column] = self._column_map(int(column)).point(Z[rows])[:, 0]
        return points, h, total, lost

    def _derivative(self, Z: FloatArray) -> FloatArray:
        points, h, total, lost = self._sums(Z)
        centers, held = self._occupied_nodes
        by_place = np.empty((*points.shape, centers.shape[1]))
        for axis, center in enumerate(centers.T):
            moved = h * center
            by_place[..., axis] = (moved @ held.sums - points * (moved @ held.mass)) / (total * self.width**2)
        found = np.asarray(by_place @ (self.latent.node_units[:, None] * self.latent.embed_jacobian(Z)))
        for column in np.flatnonzero(lost.any(axis=0)):
            rows = lost[:, column]
            found[rows, column] = self._column_map(int(column)).jacobian(Z[rows])[:, 0]
        return found

    @cached_property
    def _occupied_nodes(self) -> tuple[FloatArray, NodeWins]:
        """Places of the nodes that have won rows, and their wins."""
        occupied = self.won.occupied
        return places_of(self.latent)[occupied], self.won.only(occupied)

    @cached_property
    def in_span(self) -> tuple[ColumnSpan, NodeMap]:
        """The span of what nodes have won, and the map in its coordinates; with missing cells, all columns.

        y(z) is a mean of the rows that nodes have won, of which wide tables have fewer than columns.
        """
        span = ColumnSpan(None) if self.won.mass.shape[1] > 1 else ColumnSpan.of(self.won.only(self.won.occupied).sums)
        if span.frame is None:
            return span, self
        return span, NodeMap(self.latent, NodeWins(self.won.mass, span.inside(self.won.sums)), self.width)

    def _column_map(self, column: int) -> NodeMap:
        """The map of one column alone, on the nodes that saw it."""
        return NodeMap(self.latent, NodeWins(self.won.mass[:, [column]], self.won.sums[:, [column]]), self.width)
