"""Evenly spaced nodes on a one-dimensional ridge: thinned where rows came to rest close together, added in gaps.

The method is ours. Nodes are a quarter of a bandwidth apart. They are chosen by falling density, an order that no
motion of the data changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.density.ridges.mean_shift import Flow, FlowResult, Status

STEP = 0.25
"""Distance between nodes, in bandwidths."""

_REACH_STEPS = 2.2
"""Steps within which the next node of a curve lies: where every point is within a step of one, gaps are up to two."""

AHEAD_COSINE = 0.5
"""Cosine of the widest angle to the ridge at which a node is still ahead."""

BRIDGE_DENSITY_SHARE = 0.25
"""Share of the density at its sparser end that a bridge between two nodes must have all along."""

_MOST_BRIDGE_STEPS = 32
"""Most steps of a bridge: eight bandwidths, which the share above allows only where the density is flat."""

_MOST_CORRECTIONS = 100
"""Most steps of the flow from a place one step ahead; one that needs more was not near the ridge."""

_MOST_NEIGHBORS = 24
"""Most neighbours searched. Nodes a step apart have about five within reach on one ridge, ten where two cross."""


@dataclass(frozen=True)
class RidgeNodes:
    """Nodes of a ridge: ``points`` (m, D), unit ``tangent`` (m, D), ``log_density`` (m,) and bandwidth ``length`` (m,).

    ``given`` (m,) says which are ridge points of rows; the others were found by following the ridge.
    """

    points: FloatArray
    tangent: FloatArray
    log_density: FloatArray
    length: FloatArray
    given: BoolArray

    def __add__(self, other: RidgeNodes) -> RidgeNodes:
        parts = zip(vars(self).values(), vars(other).values(), strict=True)
        return RidgeNodes(*(np.concatenate(part) for part in parts))

    def only(self, nodes: IntArray | BoolArray) -> RidgeNodes:
        """Some of the nodes."""
        return RidgeNodes(*(part[nodes] for part in vars(self).values()))


def make_nodes(flow: Flow, ridge: FlowResult) -> RidgeNodes:
    """Nodes on the ridge with gaps bridged; every ridge point of a row is within a step of one."""
    return grow_nodes(flow, thin_nodes(_nodes_at(flow, ridge, given=True)))


def thin_nodes(nodes: RidgeNodes) -> RidgeNodes:
    """Nodes at least a step from one another, densest first, none of the others farther from one of them."""
    return nodes.only(spread_nodes(nodes, 1.0))


def grow_nodes(flow: Flow, nodes: RidgeNodes) -> RidgeNodes:
    """Add nodes where the ridge goes on from one that has none ahead.

    From each such front one step is taken along the ridge and corrected by the flow, again and again, until the ridge
    ends, the density falls below a share of that where the growth began, or another node comes into reach.
    """
    flow, m = replace(flow, max_iter=min(flow.max_iter, _MOST_CORRECTIONS)), len(nodes.points)
    fronts = _Fronts(
        np.tile(np.arange(m), 2), np.concatenate([nodes.tangent, -nodes.tangent]), np.tile(nodes.log_density, 2)
    )
    for _ in range(_MOST_BRIDGE_STEPS):
        fronts = fronts.only(nearest_ahead(nodes, fronts.node, fronts.direction) < 0)
        if len(fronts.node) == 0:
            break
        nodes, fronts = _advance(flow, nodes, fronts)
    return nodes


def nearest_ahead(nodes: RidgeNodes, node: IntArray, direction: FloatArray) -> IntArray:
    """(k,) the nearest node ahead in a direction (k, D) from a node (k,), within reach; −1 where there is none."""
    step = STEP * nodes.length
    distance, near = _neighbors(nodes.points, node, _REACH_STEPS * float(step.max(initial=0.0)))
    beside = np.where(near < len(nodes.points), near, 0)
    delta = nodes.points[beside] - nodes.points[node][:, None]
    along = np.einsum("kjd,kd->kj", delta, direction)
    reach = _REACH_STEPS * np.maximum(step[node][:, None], step[beside])
    right = (near < len(nodes.points)) & (beside != node[:, None])
    right &= (distance <= reach) & (along > AHEAD_COSINE * distance)
    first = np.where(right, distance, np.inf).argmin(axis=1)  # sorted by distance, so that the first of equals wins
    rows = np.arange(len(node))
    return np.where(right[rows, first], beside[rows, first], -1)


class _Fronts(NamedTuple):
    """Ends at which nodes are added: ``node`` (k,), unit ``direction`` (k, D), and log p ``began`` (k,) at first."""

    node: IntArray
    direction: FloatArray
    began: FloatArray

    def only(self, fronts: BoolArray | IntArray) -> _Fronts:
        return _Fronts._make(part[fronts] for part in self)


def _advance(flow: Flow, nodes: RidgeNodes, fronts: _Fronts) -> tuple[RidgeNodes, _Fronts]:
    """One step along the ridge from every front: the nodes with those found, and the fronts from there."""
    base, step = nodes.points[fronts.node], STEP * nodes.length[fronts.node]
    trial = base + step[:, None] * fronts.direction
    found = flow(trial if flow.sphere is None else flow.sphere.retract(trial))
    delta = found.points - base
    distance = np.linalg.norm(delta, axis=1)
    right = (found.status == Status.CONVERGED) & (distance > 0.5 * step) & (distance < 1.5 * step)
    right &= np.einsum("kd,kd->k", delta, fronts.direction) > AHEAD_COSINE * distance
    right &= found.log_density > fronts.began + log(BRIDGE_DENSITY_SHARE)
    right[right] = _are_apart(nodes, found.points[right], 0.5 * step[right])
    new, delta, began = _nodes_at(flow, found.only(right), given=False), delta[right], fronts.began[right]
    kept = spread_nodes(new, 0.5)  # two fronts may have met
    direction = delta[kept] / np.linalg.norm(delta[kept], axis=1, keepdims=True)
    return nodes + new.only(kept), _Fronts(len(nodes.points) + np.arange(len(kept)), direction, began[kept])


def _are_apart(nodes: RidgeNodes, points: FloatArray, radius: FloatArray) -> BoolArray:
    """(k,) whether points are at least ``radius`` (k,) from all nodes."""
    if len(points) == 0:
        return np.zeros(0, dtype=bool)
    return np.asarray(cKDTree(nodes.points).query(points)[0]) >= radius


def spread_nodes(nodes: RidgeNodes, apart: float) -> IntArray:
    """Indices of nodes that are ``apart`` steps from one another, densest first.

    Each covers a ball around it. A point lies in few of them, so that the work is about linear in all points.
    """
    covered, kept = np.zeros(len(nodes.points), dtype=bool), list[int]()
    if len(covered) == 0:
        return np.zeros(0, dtype=np.intp)
    tree, radius = cKDTree(nodes.points), apart * STEP * nodes.length
    for i in _density_order(nodes):
        if not covered[i]:
            kept.append(int(i))
            covered[tree.query_ball_point(nodes.points[i], radius[i])] = True
    return np.asarray(kept, dtype=np.intp)


def _nodes_at(flow: Flow, ridge: FlowResult, given: bool) -> RidgeNodes:
    length = np.asarray(flow.density.length(ridge.points), dtype=float)
    return RidgeNodes(
        ridge.points, ridge.tangent[:, :, 0], ridge.log_density, length, np.full(len(ridge.points), given, dtype=bool)
    )


def _density_order(nodes: RidgeNodes) -> IntArray:
    """Indices of nodes, densest first; of equals the one with smaller coordinates."""
    return np.lexsort((*nodes.points.T[::-1], -nodes.log_density))


def _neighbors(points: FloatArray, node: IntArray, radius: float) -> tuple[FloatArray, IntArray]:
    """Distances (k, j) and indices (k, j) of the nearest points; indices beyond ``radius`` are past the end."""
    k = min(_MOST_NEIGHBORS, len(points))
    found = cKDTree(points).query(points[node], k=np.arange(1, k + 1), distance_upper_bound=radius * (1.0 + 1e-12))
    return np.asarray(found[0]), np.asarray(found[1])
