"""The graph of a one-dimensional ridge: smooth branches between ends and junctions, with arc length as coordinate.

Its making is ours: ``graph_nodes`` finds nodes on the ridge, ``graph_branches`` joins them to branches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.density.ridges.graph_branches import SHORTEST_BRANCH, Path, degrees, find_branches
from prinfold.density.ridges.graph_nodes import STEP, RidgeNodes, make_nodes
from prinfold.density.ridges.mean_shift import Flow, FlowResult
from prinfold.density.row_spaces import Globe
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.files import storable
from prinfold.files.kinds import Kinds, numbers, part, whole_numbers
from prinfold.geometry.curves import EvenCurve, by_arc_length
from prinfold.geometry.projection import Projection
from prinfold.latent import Branches
from prinfold.latent.arc_length_curves import BranchCurves
from prinfold.latent.branch_graph import BranchGraph
from prinfold.validation.settings import nothing

_KNOT_STEPS = 0.5
"""Distance between knots of a branch, in steps between nodes: an eighth of a bandwidth."""

_EQUAL_NATS = 1e-9
"""Difference in log density between two halves of a branch below which they count as equally dense."""


class GraphLocation(NamedTuple):
    """Branch, arc length and distance of rows with respect to a graph.

    ``branch`` (n,) is the number of the branch that each is nearest to, ``arc_length`` (n,) how far along it the
    nearest point is, ``distance`` (n,) how far away. In two columns, and on a globe, where it is that along the great
    circle, the distance is signed: positive to the left of the branch, seen in the direction in which its arc length
    grows, and from outside the globe.
    """

    branch: IntArray
    arc_length: FloatArray
    distance: FloatArray


class RidgeLocation(NamedTuple):
    """The same for a density ridge, and whether the branch of each row ``persists`` (n,): others would show it too."""

    branch: IntArray
    arc_length: FloatArray
    distance: FloatArray
    persists: BoolArray


@storable
@dataclass(frozen=True, eq=False)
class RidgeGraph(BranchCurves):
    """Branches of a ridge, each a smooth curve by arc length.

    ``latent`` lays them end to end, longest first; ``points`` (K, D) and unit ``tangents`` (K, D) are at its nodes,
    ``log_density`` (K,) too. ``places`` (V, D) are the ends and junctions, and ``ends`` (B, 2) the numbers of those
    where each branch begins and ends, −1 for a closed one. A branch begins at its denser half; a closed one at its
    densest node, towards the denser half. Where rows are places on a ``globe``, points are such too.
    """

    _kinds: ClassVar[Kinds] = {
        "latent": part("Branches"),
        "points": numbers("latent.n_nodes", "D"),
        "tangents": numbers("latent.n_nodes", "D"),
        "log_density": numbers("latent.n_nodes"),
        "places": numbers("V", "D"),
        "ends": whole_numbers("latent.n_branches", 2, least=-1),
        "globe": nothing | part("Globe"),
    }

    log_density: FloatArray
    places: FloatArray
    ends: IntArray
    globe: Globe | None = None
    chart: ClassVar[None] = None

    @property
    def graph(self) -> RidgeGraph:
        return self

    def __post_init__(self) -> None:
        K, B, V = self.latent.n_nodes, self.latent.n_branches, len(self.places)
        D = np.shape(self.points)[-1] if np.ndim(self.points) == 2 else 0
        parts = (self.points, self.tangents, self.log_density, self.places, self.ends)
        wanted = ((K, D), (K, D), (K,), (V, D), (B, 2))
        if tuple(map(np.shape, parts)) != wanted or (self.ends >= V).any() or (self.ends < -1).any():
            raise InvalidParameterError(
                f"a graph of {B} branches with {K} nodes needs points, tangents and log densities at these, and the "
                f"numbers of the places where each branch begins and ends; got shapes {tuple(map(np.shape, parts))}"
            )

    @classmethod
    def of(cls, flow: Flow, ridge: FlowResult, shortest: float = SHORTEST_BRANCH) -> RidgeGraph:
        """The graph of ridge points; ``flow`` carries points to the ridge where more of them are needed.

        No branch is shorter than ``shortest`` bandwidths, unless it is the only one.
        """
        if len(ridge.points) == 0:
            raise InvalidDataError("a graph needs at least one ridge point, got none; use a larger bandwidth")
        nodes = make_nodes(flow, ridge)
        return cls.along(nodes, find_branches(flow, nodes, shortest), flow.density.log_density, flow.sphere)

    @classmethod
    def along(
        cls,
        nodes: RidgeNodes,
        paths: list[Path],
        log_density: Callable[[FloatArray], FloatArray],
        globe: Globe | None = None,
    ) -> RidgeGraph:
        """The graph whose branches are smooth curves along paths of nodes, which meet in the nodes that they share."""
        return cls.joined(nodes, make_branches(nodes, paths), log_density, globe)

    @classmethod
    def joined(
        cls,
        nodes: RidgeNodes,
        branches: list[Branch],
        log_density: Callable[[FloatArray], FloatArray],
        globe: Globe | None = None,
    ) -> RidgeGraph:
        """The graph of branches, which meet in the nodes that their paths share."""
        places, ends = _end_points(nodes, branches)
        latent = Branches(
            np.array([branch.curve.length for branch in branches]),
            np.array([branch.closed for branch in branches]),
            np.array([len(branch.curve.points) for branch in branches]),
            float(np.median(nodes.length)),
        )
        points = np.concatenate([branch.curve.points for branch in branches])
        tangents = np.concatenate([branch.curve.tangents for branch in branches])
        return cls(latent, points, tangents, log_density(points), places, ends, globe)

    # ------------------------------------------------------------------------------- from data

    def locate(self, X: FloatArray) -> GraphLocation:
        """Branch, arc length along it and distance of each row."""
        return self.located(self.nearest(X), X)

    def located(self, found: Projection, X: FloatArray) -> GraphLocation:
        """Branch, arc length along it and distance of rows whose nearest points are known."""
        branch = self.latent.domain.piece(found.latent)
        arc_length = found.latent[:, 0] - self.latent.domain.low[branch]
        squared = found.squared_distance if self.globe is None else self.globe.squared_length(found.squared_distance)
        return GraphLocation(branch, arc_length, self._side(found, X) * np.sqrt(squared))

    @property
    def degrees(self) -> IntArray:
        """(V,) how many branches begin or end at each place: 1 at an end, 3 or more at a junction."""
        return self.network.degrees

    @cached_property
    def network(self) -> BranchGraph:
        """The branches and the places that they join, with ways along them."""
        return BranchGraph(self.latent, self.ends)

    # ------------------------------------------------------------------------------- plumbing

    def _side(self, found: Projection, X: FloatArray) -> FloatArray:
        """(n,) −1 for rows to the right of their branch, else 1."""
        if self.globe is None and X.shape[1] != 2:
            return np.ones(len(X))
        tangent, residual = self.jacobian(found.latent)[:, :, 0], X - found.points
        if self.globe is None:
            left = tangent[:, 0] * residual[:, 1] - tangent[:, 1] * residual[:, 0]
        else:
            left = np.einsum("nd,nd->n", found.points, np.cross(tangent, residual))
        return np.where(left < 0, -1.0, 1.0)


# ------------------------------------------------------------------------------------ from paths to branches


class Branch(NamedTuple):
    """A path of nodes, whether it is closed, and the smooth curve through it."""

    path: Path
    closed: bool
    curve: EvenCurve


def make_branches(nodes: RidgeNodes, paths: list[Path]) -> list[Branch]:
    """Branches with direction and smooth curve, longest first."""
    count, found = degrees(paths), list[Branch]()
    for path in paths:
        closed = len(path) > 1 and path[0] == path[-1] and count[path[0]] == 2
        way = _orient_path(nodes, path, closed)
        found.append(Branch(way, closed, _curve(nodes, way, closed)))
    return sorted(found, key=lambda branch: (-branch.curve.length, branch.path))


def _orient_path(nodes: RidgeNodes, path: Path, closed: bool) -> Path:
    """The path with the beginning and direction of :class:`RidgeGraph`; by the coordinates of equally dense halves."""
    if closed:
        start = max(range(len(path) - 1), key=lambda i: (nodes.log_density[path[i]], -path[i]))
        path = [*path[start:-1], *path[: start + 1]]
    if len(path) == 1:
        return path
    step = np.linalg.norm(np.diff(nodes.points[path], axis=0), axis=1)
    place, height = np.concatenate([[0.0], np.cumsum(step)]), nodes.log_density[path]
    middle = 0.5 * (place[1:] + place[:-1]) / place[-1] - 0.5
    tilt = float((step * middle * (height[1:] + height[:-1])).sum() / place[-1])
    if abs(tilt) > _EQUAL_NATS:
        return path[::-1] if tilt > 0 else path
    return min(path, path[::-1], key=lambda way: nodes.points[way].tolist())


def _curve(nodes: RidgeNodes, path: Path, closed: bool) -> EvenCurve:
    """The smooth curve through a path; that of a single node has no length, but a direction."""
    if len(path) == 1:
        return EvenCurve(nodes.points[[*path, *path]], nodes.tangent[[*path, *path]], 0.0)
    points = nodes.points[path[:-1] if closed else path]
    return by_arc_length(points, _KNOT_STEPS * STEP * float(np.median(nodes.length[path])), closed)


def _end_points(nodes: RidgeNodes, branches: list[Branch]) -> tuple[FloatArray, IntArray]:
    """(V, D) places where branches begin and end, and (B, 2) which of these are the ends of each branch."""
    ends = [(path[0], path[-1]) for path, closed, _ in branches if not closed]
    number = {node: i for i, node in enumerate(sorted({end for pair in ends for end in pair}))}
    names = [(-1, -1) if closed else (number[path[0]], number[path[-1]]) for path, closed, _ in branches]
    return nodes.points[list(number)], np.asarray(names, dtype=np.int64)
