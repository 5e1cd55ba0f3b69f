"""Support of ridge branches: how often they are found again in samples from densities up to twice as smooth.

The measure is ours. A row drawn from kernels of width √(f² − 1) h on the rows, smoothed by kernels of width h, has on
average the density of kernels of width f h on the rows. So a ridge of such a sample near a branch says two things at
once: the branch is still there when kernels are f times as wide, and other rows would show it too. Clumps of noise are
one bandwidth wide, and are gone before kernels are twice as wide.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from prinfold._typing import BoolArray, FloatArray
from prinfold.density.densities import resampled
from prinfold.density.ridges.bands import FromDensity, ResampledRows, coarse_flow, observed_rows
from prinfold.density.ridges.graph import RidgeGraph, make_branches
from prinfold.density.ridges.graph_branches import Path, find_branches, path_steps, simplify
from prinfold.density.ridges.graph_nodes import RidgeNodes, make_nodes, spread_nodes
from prinfold.density.ridges.mean_shift import Flow, FlowResult, Status
from prinfold.exceptions import InvalidDataError

WIDTH_FACTORS = np.linspace(1.0, 2.0, 10)
"""Bandwidths of the densities that samples are drawn from, in units of the ridge's."""

PERSISTENT = 0.2
"""Support from which on a branch counts as one that persists. Of 300 rows of wound and closed curves in two or three
columns all branches have twice as much, and of a closed curve in six columns most have it; of the 169 branches that the
default finds in glass, diabetes and oil flow 3 have."""

_LEAST_COSINE = 0.5
"""Cosine of the widest angle between a branch and the ridge that counts as the same."""

_SAMPLED_STEPS = 2.0
"""Steps between the nodes that are carried to the ridges of samples: half a bandwidth."""

_SEED = 0
"""Samples are the same in every fit and after a file was read, so that a graph can be made anew when it is needed."""


class SupportedGraph(NamedTuple):
    """A graph, and the ``support`` (B,) of its branches (NaN where rows cannot be drawn anew).

    ``n_found`` counts the branches before any was left out, and ``pieces`` holds the lengths of the pieces that these
    make up, the longest first.
    """

    graph: RidgeGraph
    support: FloatArray
    n_found: int
    pieces: FloatArray


def supported_graph(flow: Flow, ridge: FlowResult, shortest: float, min_support: float) -> SupportedGraph:
    """The graph of ridge points, without branches whose support is below ``min_support`` times that of all.

    Support falls with the noise and the number of columns for true branches as well, so that it is compared with what
    is usual in the table.
    """
    if len(ridge.points) == 0:
        raise InvalidDataError("a graph needs at least one ridge point, got none; use a larger bandwidth")
    nodes = make_nodes(flow, ridge)
    paths = find_branches(flow, nodes, shortest)
    share = node_support(flow, nodes)
    least = min_support * mean_support(nodes, paths, share)
    branches = make_branches(nodes, drop_weak(paths, nodes, share, shortest, least))
    support = np.array([path_support(nodes, each.path, share) for each in branches])
    graph = RidgeGraph.joined(nodes, branches, flow.density.log_density, flow.sphere)
    return SupportedGraph(graph, support, len(paths), _piece_lengths(nodes, paths))


def persistent(support: FloatArray) -> BoolArray:
    """(B,) whether branches with such ``support`` persist; yes where nobody knows."""
    return np.asarray(np.isnan(support) | (support >= PERSISTENT - 1e-12))


def _piece_lengths(nodes: RidgeNodes, paths: list[Path]) -> FloatArray:
    """Lengths of the connected components, the longest first."""
    start, end = (np.array([path[i] for path in paths]) for i in (0, -1))
    m = len(nodes.points)
    piece = connected_components(coo_matrix((np.ones(len(paths)), (start, end)), shape=(m, m)), directed=False)[1]
    total = np.bincount(piece[start], [path_steps(nodes, path).sum() for path in paths])
    return np.sort(total[np.unique(piece[start])])[::-1]


def node_support(flow: Flow, nodes: RidgeNodes) -> FloatArray:
    """(m,) share of the samples that have a ridge within a bandwidth of each node, in about its direction.

    NaN for a density that cannot be put on other rows.
    """
    try:
        kernels = resampled(flow.density).kernels()
    except ValueError:  # the user's own density, or kernels of many widths
        return np.full(len(nodes.points), np.nan)
    sampled = nodes.only(spread_nodes(nodes, _SAMPLED_STEPS))
    frame, rng = RowFrame.of(kernels.rows, kernels.weight), np.random.default_rng(_SEED)
    given, found, usual = frame.sorted_rows(), np.zeros(len(sampled.points)), float(np.median(nodes.length))
    for factor in WIDTH_FACTORS:
        drawn = FromDensity(usual * float(np.sqrt(factor**2 - 1.0)))(given.rows, given.weight, rng)
        sample = observed_rows(drawn._replace(rows=frame.back(drawn.rows)), flow)
        found += _has_ridge(coarse_flow(flow.on_rows(*sample)), sampled)
    nearest = cKDTree(sampled.points).query(nodes.points)[1]
    return np.asarray(found / len(WIDTH_FACTORS))[nearest]


class RowFrame(NamedTuple):
    """Rows (n, D) with weights (n,), their mean (D,) and principal axes (D, D), along which they are skewed upwards.

    Draws in this frame turn and shift with the rows, and do not depend on their order.
    """

    rows: FloatArray
    weight: FloatArray
    mean: FloatArray
    axes: FloatArray

    @classmethod
    def of(cls, rows: FloatArray, weight: FloatArray) -> RowFrame:
        mean = np.average(rows, axis=0, weights=weight)
        centered = rows - mean
        axes = _principal_axes(centered * np.sqrt(weight)[:, None])
        skewed = weight @ (centered @ axes) ** 3
        return cls(rows, weight, mean, axes * np.where(skewed < 0, -1.0, 1.0))

    def sorted_rows(self) -> ResampledRows:
        """The rows in their frame, from the mean outwards."""
        inside = (self.rows - self.mean) @ self.axes
        order = np.argsort(np.einsum("nd,nd->n", inside, inside), kind="stable")
        return ResampledRows(inside[order], self.weight[order])

    def back(self, inside: FloatArray) -> FloatArray:
        """Rows in data units, from rows in the frame."""
        return self.mean + inside @ self.axes.T


def _principal_axes(centered: FloatArray) -> FloatArray:
    """(D, D) eigenvectors of XᵀX by rising eigenvalues; in wide tables the span of the rows comes last."""
    n, D = centered.shape
    if n >= D:
        return np.asarray(np.linalg.eigh(centered.T @ centered)[1])
    basis = np.linalg.qr(centered.T, mode="complete")[0]
    inside = centered @ basis[:, :n]
    return np.append(basis[:, n:], basis[:, :n] @ np.linalg.eigh(inside.T @ inside)[1], axis=1)


def _has_ridge(flow: Flow, nodes: RidgeNodes) -> FloatArray:
    """(m,) 1 for nodes that are carried to a ridge within a bandwidth, in about their direction."""
    end = flow(nodes.points)
    near = np.linalg.norm(end.points - nodes.points, axis=1) <= nodes.length
    along = np.abs(np.einsum("md,md->m", end.tangent[:, :, 0], nodes.tangent)) >= _LEAST_COSINE
    return np.asarray((end.status == Status.CONVERGED) & near & along, dtype=float)


def mean_support(nodes: RidgeNodes, paths: list[Path], share: FloatArray) -> float:
    """Mean support of paths, each counted by its length."""
    length = np.array([path_steps(nodes, path).sum() for path in paths])
    support = np.array([path_support(nodes, path, share) for path in paths])
    return float(np.average(support, weights=length) if length.sum() > 0 else support.mean())


def drop_weak(paths: list[Path], nodes: RidgeNodes, share: FloatArray, shortest: float, least: float) -> list[Path]:
    """Leave out branches with too little support, until all that are left have enough; the best one stays.

    What is left of two branches that met a weak one is one branch, with the support of both.
    """
    while True:
        support = np.array([path_support(nodes, path, share) for path in paths])
        weak = support < least
        weak[np.argmax(support)] = False
        if not weak.any():
            return paths
        paths = simplify([path for path, drop in zip(paths, weak, strict=True) if not drop], nodes, shortest)


def path_support(nodes: RidgeNodes, path: Path, share: FloatArray) -> float:
    """Mean support along a path, each node counted by the length of path about it."""
    step = path_steps(nodes, path)
    length = np.concatenate([step, [0.0]]) + np.concatenate([[0.0], step])
    return float(np.average(share[path], weights=length)) if length.sum() > 0 else float(share[path].mean())
