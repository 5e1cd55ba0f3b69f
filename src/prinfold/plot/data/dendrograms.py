"""A rooted graph laid out as a dendrogram, computed: time to the right, a lane for each branch."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import InvalidParameterError
from prinfold.latent.branch_graph import RootedGraph

_LANE_SHARE = 0.4
"""Share of a lane on either side of its branch that rows are spread over."""

_FAR_QUANTILE = 0.98
"""Share of the rows within that, by their distance across; the others lie on its edge."""


class Dendrogram(NamedTuple):
    """S stretches of branches, cut at the root: times ``start`` and ``end``, the ``lane``, and ``begin``, that before.

    ``branch`` (S,) is the branch of each, and ``low`` and ``high`` (S,) the coordinates that it reaches from and to.
    """

    branch: IntArray
    low: FloatArray
    high: FloatArray
    start: FloatArray
    end: FloatArray
    lane: FloatArray
    begin: FloatArray

    def stretch(self, branch: IntArray, Z: FloatArray) -> IntArray:
        """(n,) the stretch that coordinates (n, 1) on branches (n,) lie on."""
        inside = (self.low <= Z) & (self.high >= Z) & (self.branch == branch[:, None])
        return np.asarray(inside.argmax(axis=1))


class _Stretch(NamedTuple):
    branch: int
    low: float
    high: float
    near: Any
    far: Any
    start: float
    end: float


def lay_out(rooted: RootedGraph) -> Dendrogram:
    """Lanes for all branches: leaves take one after another, and a branch the middle of those that it leads to."""
    pieces = [piece for b in range(rooted.graph.latent.n_branches) for piece in _pieces(rooted, b)]
    children: dict[Any, list[int]] = {}
    for i, piece in enumerate(pieces):
        children.setdefault(piece.near, []).append(i)
    lane, begin, free = np.full(len(pieces), np.nan), np.full(len(pieces), np.nan), [0]

    def place(i: int) -> float:
        lane[i] = 0.0  # taken, should a loop lead back here
        onward = [] if pieces[i].far == pieces[i].near else children.get(pieces[i].far, [])
        below = [j for j in onward if np.isnan(lane[j])]
        found = [place(j) for j in below]
        if not found:
            found, free[0] = [float(free[0])], free[0] + 1
        lane[i] = begin[below] = float(np.mean(found))
        return float(lane[i])

    for c, root in enumerate(rooted.roots):
        first = children.get(_node(rooted, root, c), [])
        begin[first] = np.mean([place(i) for i in first]) if first else 0.0
    columns = list(zip(*pieces, strict=True))
    branch, low, high, start, end = (np.array(columns[k]) for k in (0, 1, 2, 5, 6))
    return Dendrogram(branch, low, high, start, end, lane, begin)


def _node(rooted: RootedGraph, Z: FloatArray, component: int) -> Any:
    """The place that a root is at, or a name of its own within a branch."""
    places = rooted.graph.places
    if not len(places):
        return ("root", component)
    at = np.flatnonzero(np.isclose(rooted.graph.distances(Z[None], places)[0], 0.0))
    return int(at[0]) if len(at) else ("root", component)


def _pieces(rooted: RootedGraph, b: int) -> list[_Stretch]:
    """The stretches of a branch: two where a root lies within it."""
    graph = rooted.graph
    low, high = float(graph.latent.domain.low[b]), float(graph.latent.domain.high[b])
    c = int(graph.components[b])
    root, own = float(rooted.roots[c, 0]), _node(rooted, rooted.roots[c], c)
    if graph.latent.closed[b]:
        return [_Stretch(b, low, high, own, ("end", b), 0.0, high - low)]
    ends: list[tuple[float, Any]] = [(low, int(graph.ends[b, 0])), (high, int(graph.ends[b, 1]))]
    if isinstance(own, tuple) and low < root < high:
        ends.insert(1, (root, own))
    found = []
    for (z0, one), (z1, other) in pairwise(ends):
        t0, t1 = rooted.times(np.array([[z0], [z1]]))
        near, far = (one, other) if t0 <= t1 else (other, one)
        # A way that is reached from both ends, as in a loop, is latest within.
        latest = 0.5 * float(t0 + t1 + z1 - z0)
        found.append(_Stretch(b, z0, z1, near, far, float(min(t0, t1)), latest))
    return found


def place_rows(model: Any, table: Any) -> tuple[Dendrogram, FloatArray]:
    """The layout of a fitted curve or graph, and places (n, 2) of rows: time, and lane with the offset across.

    The offset is the component of residuals in which they spread most.
    """
    refuse_other_models(model)
    rooted, layout = model.rooted_, lay_out(model.rooted_)
    Z = rooted.graph.latent.domain.retract(np.asarray(model.transform(table), dtype=float))
    residual = np.asarray(table, dtype=float) - np.asarray(model.project(table), dtype=float)
    offset = residual @ widest_direction(residual)
    far = float(np.quantile(np.abs(offset), _FAR_QUANTILE)) or 1.0
    lane = layout.lane[layout.stretch(rooted.graph.latent.domain.piece(Z), Z)]
    spread = _LANE_SHARE * np.clip(offset / far, -1.0, 1.0)
    return layout, np.stack([rooted.times(Z), lane + spread], axis=1)


def widest_direction(residual: FloatArray) -> FloatArray:
    """(D,) the direction in which residuals (n, D) spread most, its largest component positive."""
    n, D = residual.shape
    if n < D:  # the smaller of the two products
        weight = np.linalg.svd(residual @ residual.T)[0][:, 0] @ residual
        across = weight / max(float(np.linalg.norm(weight)), np.finfo(float).tiny)
    else:
        across = np.linalg.svd(residual.T @ residual)[0][:, 0]
    return np.asarray(across * (1.0 if across[np.abs(across).argmax()] > 0 else -1.0))


def refuse_other_models(model: Any) -> None:
    """Refuse models that are neither a curve nor a graph of branches."""
    if not hasattr(model, "rooted_"):
        raise InvalidParameterError(
            f"a dendrogram needs a model with branches, such as PrincipalTree; got {type(model).__name__}"
        )
