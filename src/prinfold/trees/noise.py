"""Noise of rows about a tree, the columns to look for it in, and the bandwidth that follows from the noise.

The bandwidth decides what a branch is. It has to follow the noise in each column: distances of rows from centres grow
with the number of columns, but what tells one centre from another does not. With s² the mean squared distance of rows
from the tree over the D − 1 directions across it,

    h = 1.1 s (1 + ½ √(D/n)):

with less, noise grows branches; with more, those five deviations long are lost. The second factor stands for the noise
that n rows leave in the directions that are found from them (``benchmarks/trees.py`` has trials).

Centres are means of few rows. In many columns their own noise, which no row pulls back, is longer than the way from
one to the next. So the tree is looked for in the principal components that stand out of the noise: those whose variance
is above the edge s² (1 + √((D − k)/n))² of the spectrum of noise alone (Marchenko & Pastur; Kritchman & Nadler). A
branch of few rows can stay below that edge, so that trees in a component or two more are tried (``held_out``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.base.starting_points import evenly_by_radius
from prinfold.geometry.column_span import ColumnSpan
from prinfold.numerics.polylines import nearest_on_segments
from prinfold.trees.soft_tree import TreeProblem, TreeState, first_centers, spanning_tree

DEVIATIONS, DIRECTIONS = 1.1, 0.5
"""Bandwidth in deviations of the noise, and the factor of √(D/n) in what is added to it."""

_FIRST_BANDWIDTHS = 1.14
"""Bandwidth of the first tree, in bandwidths: a wide one finds its long branches."""

_FEWEST_COMPONENTS, _ALL_COMPONENTS_UP_TO = 2, 4
"""Components that are kept at the least, and columns up to which all are: a spectrum of so few has no flat end."""

_ROUNDS, _STEPS_PER_ROUND, _ROUND_TOL = 6, 15, 1e-6
"""Times that the noise is measured anew, and steps of the centres between."""

_MOST_ROWS = 4000
"""Rows from which noise and first centres are taken."""

_ROWS_PER_CENTER = 3

_LEAST_SPACINGS = 0.5
"""Bandwidth, in mean lengths of an edge, that is the least: rows without noise have none, and kernels need some."""


_GAP_EDGES = 5.0
"""Length of an edge between pieces, in units of what is usual."""


class RowsInFrame(NamedTuple):
    """Rows (n, q) in the components that are kept, ``rest`` (n,), their squared distances from these, the frame."""

    rows: FloatArray
    rest: FloatArray
    span: ColumnSpan


def keep_all(rows: FloatArray, offset: FloatArray) -> RowsInFrame:
    """Rows about their mean, ``offset``, in all columns."""
    n, D = rows.shape
    return RowsInFrame(rows, np.zeros(n), ColumnSpan(np.eye(D), offset))


def keep_components(rows: FloatArray, weight: FloatArray, offset: FloatArray, count: int | None = None) -> RowsInFrame:
    """Rows about their mean, ``offset``, in so many principal components, or in those that stand out of the noise."""
    D = rows.shape[1]
    values, frame = principal_components(rows, weight)
    kept = count_components(values, float(weight.sum()), D) if count is None else count
    if kept == D:
        return keep_all(rows, offset)
    inside = rows @ frame[:, :kept]
    rest = np.maximum(np.einsum("nd,nd->n", rows, rows) - np.einsum("nd,nd->n", inside, inside), 0.0)
    return RowsInFrame(inside, rest, ColumnSpan(frame[:, :kept], offset))


def principal_components(rows: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Variances (r,), falling, and directions (D, r) of rows about their mean."""
    root = np.sqrt(weight / weight.sum())[:, None] * rows
    n, D = rows.shape
    if n >= D:
        values, frame = np.linalg.eigh(root.T @ root)
        return np.maximum(values[::-1], 0.0), frame[:, ::-1]
    _, deviations, directions = np.linalg.svd(root, full_matrices=False)
    return np.square(deviations), directions.T


def count_components(values: FloatArray, n: float, n_columns: int) -> int:
    """Components whose variance stands out of noise in the others; all where none does."""
    total = float(values.sum())
    for k, value in enumerate(values):
        left = n_columns - k
        edge = total / left * (1.0 + np.sqrt(left / n)) ** 2
        if value <= edge:
            break
        total -= value
    else:
        k = len(values)
    if k == 0 or n_columns <= _ALL_COMPONENTS_UP_TO:
        return len(values)
    return max(k, min(_FEWEST_COMPONENTS, len(values)))


def variance_across(
    inside: RowsInFrame, weight: FloatArray, centers: FloatArray, edges: IntArray, D: int, trim: float = np.inf
) -> float:
    """Mean squared distance of rows from the edges, for each of the D − 1 directions across them.

    Rows farther away than ``trim`` do not count, unless all are.
    """
    a, b = centers[edges[:, 0]], centers[edges[:, 1]]
    squared = nearest_on_segments(inside.rows, a, b - a).squared + inside.rest
    near = weight * (squared <= trim**2)
    near = near if near.sum() > 0 else weight
    return float(near @ squared) / (float(near.sum()) * max(D - 1, 1))


def choose_bandwidth(deviation: float, state: TreeState, n: float, n_columns: int) -> float:
    """The bandwidth for n rows with noise of a deviation about the tree."""
    a, b = state.centers[state.edges[:, 0]], state.centers[state.edges[:, 1]]
    spacing = float(np.linalg.norm(a - b, axis=1).mean())
    wanted = DEVIATIONS * (1.0 + DIRECTIONS * float(np.sqrt(n_columns / n))) * deviation
    return max(wanted, _LEAST_SPACINGS * spacing)


class FirstTree(NamedTuple):
    """Centres of a first tree, its bandwidth, the noise about it, and the longest an edge may be."""

    centers: FloatArray
    bandwidth: float
    noise: float
    reach: float = np.inf


def first_tree(
    inside: RowsInFrame,
    weight: FloatArray,
    n_columns: int,
    n_nodes: int,
    bandwidth: float | None,
    stiffness: float,
    trim: float,
    in_pieces: bool = False,
) -> FirstTree:
    """A first tree of a part of the rows, with noise and bandwidth by turns until they agree.

    Where rows are ``in_pieces``, edges several times as long as is usual between first centres are none.
    """
    part = evenly_by_radius(inside.rows, weight, _MOST_ROWS)
    some, share = RowsInFrame(inside.rows[part], inside.rest[part], inside.span), weight[part]
    count = min(n_nodes, max(2, len(part) // _ROWS_PER_CENTER))
    centers = first_centers(some.rows, share, count)
    pull = stiffness * float(share.sum()) / len(centers)
    reach = _gap_length(centers) if in_pieces else np.inf
    problem, n = TreeProblem(some.rows, share, 1.0, pull, trim, reach=reach), float(weight.sum())
    state, noise, wide = problem.begin(centers), 0.0, 1.0
    for turn in range(_ROUNDS + 1):
        noise = float(np.sqrt(variance_across(some, share, state.centers, state.edges, n_columns, trim)))
        wide = choose_bandwidth(noise, state, n, n_columns) if bandwidth is None else bandwidth
        if turn < _ROUNDS:
            state = problem.with_bandwidth(_FIRST_BANDWIDTHS * wide).run(state.centers, _STEPS_PER_ROUND, _ROUND_TOL)
    return FirstTree(state.centers, wide, noise, reach)


def _gap_length(centers: FloatArray) -> float:
    """Length from which on an edge of a spanning tree leads from one piece to another."""
    edges = spanning_tree(centers)
    return _GAP_EDGES * float(np.median(np.linalg.norm(centers[edges[:, 0]] - centers[edges[:, 1]], axis=1)))
