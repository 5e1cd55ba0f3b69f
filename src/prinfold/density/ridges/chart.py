"""Coordinates on a ridge of two dimensions or more.

Ridge points are thinned to nodes (``chart_nodes``), these are embedded in the plane with little strain
(``chart_embedding``), and patches about them, each with the tangent plane of the ridge there, are blended to a smooth
surface over these coordinates (``chart_surface``). The three modules cite what they build on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.spatial import cKDTree

from prinfold._typing import FloatArray, IntArray, Mesh
from prinfold.density.ridges.chart_embedding import embed
from prinfold.density.ridges.chart_nodes import make_neighbor_graph
from prinfold.density.ridges.chart_surface import Patches, fit_patches
from prinfold.density.ridges.mean_shift import Flow, FlowResult
from prinfold.exceptions import Advice, DegenerateWarning, InvalidDataError, InvalidParameterError, Message, warn_caller
from prinfold.files import storable
from prinfold.files.kinds import Kinds, part, whole_numbers
from prinfold.files.latent_kinds import LATENT_SPACE
from prinfold.geometry.projection import Projection, project_to_surface
from prinfold.geometry.projection_starts import MeshStarts, graph_starts
from prinfold.latent import Cloud
from prinfold.numerics.radial_kernels import GAUSSIAN_CUT, Gaussian
from prinfold.rows.rows import for_each_block

_DOMAIN_SPACINGS, _DOMAIN_LEVEL = 0.8, 0.9
"""The domain is where Gaussians so many spacings wide at the nodes add up to this much of one at its peak.

So every node is inside with a third of a spacing around it, gaps up to two spacings between nodes are closed, and the
edge lies two thirds of a spacing beyond the outermost nodes, about as far as ridge points may be from these."""

_MESH_SPACINGS = {1: 0.25, 2: 0.5, 3: 1.0}
"""Spacings between the vertices of the mesh that projection starts from, by dimension; there is none beyond three."""

_MOST_PER_AXIS = {1: 20_000, 2: 400, 3: 40}
_FEWEST_PER_AXIS = 4

_N_STARTS = 6
_BLOCK_ROWS = 1024


@storable
@dataclass(frozen=True, eq=False)
class RidgeChart:
    """A ridge as a surface over flat coordinates, in which lengths are about those in the data.

    Parameters
    ----------
    latent : Cloud
        Coordinates of the nodes, and the domain around them. Pieces of the ridge that do not hang together, or
        that cannot be laid flat as one, lie side by side along the first axis.
    patches : Patches
        The map from there to the data.
    piece : array of shape (m,)
        Which piece each node belongs to, the largest first.
    """

    _kinds: ClassVar[Kinds] = {"latent": LATENT_SPACE, "patches": part("Patches"), "piece": whole_numbers("m", least=0)}

    latent: Cloud
    patches: Patches
    piece: IntArray
    graph: ClassVar[None] = None

    @property
    def chart(self) -> RidgeChart:
        return self

    def __post_init__(self) -> None:
        m, d = self.latent.centers.shape
        if np.shape(self.patches.centers) != (m, d) or np.shape(self.piece) != (m,):
            raise InvalidParameterError(f"a chart of {m} nodes in {d} dimensions needs a patch and a piece for each")

    @classmethod
    def of(cls, flow: Flow, ridge: FlowResult) -> RidgeChart:
        """The chart of kept ridge points (n, D) with their tangents."""
        if len(ridge.points) == 0:
            raise InvalidDataError(
                Message(
                    f"no row came to rest on a ridge of dimension {flow.dimension}, so that there is no surface",
                    Advice("bandwidth", words="use a larger {}"),
                    Advice("n_components", words="another {}"),
                )
            )
        graph = make_neighbor_graph(flow, ridge)
        (Z, frame), node, piece = embed(graph)
        graph, m = graph.only(node), len(node)
        _warn_about_flat_piece(Z[piece == 0], graph.spacing)
        latent = Cloud(
            Z, np.ones(m), Gaussian(GAUSSIAN_CUT), _DOMAIN_LEVEL / m, bandwidth=_DOMAIN_SPACINGS * graph.spacing
        )
        return cls(latent, fit_patches(graph, Z, frame), piece)

    # ---------------------------------------------------------------------------------------------- the surface

    def point(self, Z: FloatArray) -> FloatArray:
        """(n, D) points of the surface at coordinates (n, d)."""
        return self.patches.point(Z)

    def jacobian(self, Z: FloatArray) -> FloatArray:
        """(n, D, d) derivative of the surface."""
        return self.patches.jacobian(Z)

    def bend(self, Z: FloatArray, R: FloatArray) -> FloatArray:
        """(n, d, d) second derivatives of r·y along directions R (n, D)."""
        return self.patches.bend(Z, R)

    def mesh(self, resolution: int | None = None) -> Mesh:
        """The surface cut into simplices, with ``resolution`` vertices along the longest side of the longest piece."""
        if resolution is None:
            return self._mesh
        longest = max(cloud.domain.extent.length for cloud in self._pieces)
        return self._cut_mesh(longest / max(resolution - 1, 1), resolution)

    def nearest(self, X: FloatArray) -> Projection:
        """The nearest point of the surface to each row (n, D)."""
        n, (D, d) = len(X), (X.shape[1], self.latent.n_columns)
        _ = self._mesh_starts, self._node_tree  # made once, not in every thread
        found = Projection(np.empty((n, d)), np.empty((n, D)), np.empty(n), np.empty(n, dtype=bool))

        def one(part: slice) -> None:
            block = self._nearest_block(np.asarray(X[part], dtype=np.float64))
            for whole, rows in zip(found, block, strict=True):
                whole[part] = rows

        for_each_block(one, [slice(i, min(i + _BLOCK_ROWS, n)) for i in range(0, n, _BLOCK_ROWS)])
        return found

    # ------------------------------------------------------------------------------------------------- plumbing

    @cached_property
    def _pieces(self) -> list[Cloud]:
        """The domain of each piece; as no kernel reaches from one to another, together they are the whole domain."""
        latent, m = self.latent, len(self.piece)
        found = list[Cloud]()
        for name in range(int(self.piece.max()) + 1):
            mine = self.piece == name
            level = latent.threshold * m / int(mine.sum())
            parts = latent.centers[mine], latent.weight[mine], latent.profile, level
            found.append(Cloud(*parts, bandwidth=latent.bandwidth))
        return found

    @cached_property
    def _mesh(self) -> Mesh:
        d = self.latent.n_columns
        if d not in _MESH_SPACINGS:
            nodes = self.latent.nodes
            return Mesh(self.point(nodes), nodes, np.empty((0, d + 1), dtype=np.intp))
        return self._cut_mesh(_MESH_SPACINGS[d] * self.latent.bandwidth / _DOMAIN_SPACINGS, _MOST_PER_AXIS[d])

    def _cut_mesh(self, step: float, most: int) -> Mesh:
        """Cut all pieces by lattices of about one step."""
        latent, faces, count = list[FloatArray](), list[IntArray](), 0
        for cloud in self._pieces:
            extent = cloud.domain.extent.upper - cloud.domain.extent.lower
            shape = np.clip(1 + np.ceil(extent / step - 1e-9), _FEWEST_PER_AXIS, max(most, _FEWEST_PER_AXIS))
            tiles = cloud.tiled(tuple(int(n) for n in shape))
            latent.append(tiles.nodes)
            faces.append(tiles.faces + count)
            count += len(tiles.nodes)
        Z = np.concatenate(latent)
        return Mesh(self.point(Z), Z, np.concatenate(faces))

    @cached_property
    def _mesh_starts(self) -> MeshStarts | None:
        return MeshStarts(self._mesh) if len(self._mesh.faces) else None

    @cached_property
    def _node_points(self) -> FloatArray:
        return self.point(self.latent.nodes)

    @cached_property
    def _node_tree(self) -> cKDTree:
        return cKDTree(self._node_points)

    def _nearest_block(self, rows: FloatArray) -> Projection:
        latent = self.latent
        if self._mesh_starts is None:
            return self._descend(rows, graph_starts(rows, self._node_points, latent.nodes, latent.edges, _N_STARTS))
        found = self._descend(rows, self._mesh_starts.starts(rows, latent.domain, _N_STARTS))
        distance, node = map(np.asarray, self._node_tree.query(rows))
        missed = np.flatnonzero(distance**2 < found.squared_distance)
        if len(missed):  # a mesh may overlook a narrow fold
            again = self._descend(rows[missed], latent.nodes[node[missed]][:, None])
            for whole, better in zip(found, again, strict=True):
                whole[missed] = better
        return found

    def _descend(self, rows: FloatArray, starts: FloatArray) -> Projection:
        return project_to_surface(rows, self.point, self.jacobian, self.latent.domain, starts, bend=self.bend)


def _warn_about_flat_piece(Z: FloatArray, spacing: float) -> None:
    """Warn where the largest piece is narrower than a spacing along some dimension."""
    wide = int((np.ptp(Z, axis=0) > spacing).sum())
    if wide < Z.shape[1]:
        warn_caller(
            Message(
                f"the largest piece of the ridge, of {len(Z)} nodes, extends along {wide} of {Z.shape[1]} dimensions "
                "only; across the others the surface is what the tangent planes show within a bandwidth.",
                Advice("bandwidth", words="to join pieces take a larger {}"),
                Advice("n_components", words="a smaller {}"),
            ),
            DegenerateWarning,
        )
