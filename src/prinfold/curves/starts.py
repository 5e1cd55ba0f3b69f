"""Starts of a principal curve: a line, an ellipse, the longest path in a tree of centres, or a persistent loop.

The choice of starts is ours. Training ends in the nearest local optimum, and from the principal component of a spiral
that is a short cut through its turns. A minimum spanning tree of centres follows the rows wherever they are closer
along the curve than across it, which depends on how many centres there are: several numbers of them are tried.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree
from scipy.spatial import cKDTree
from scipy.spatial.distance import pdist, squareform

from prinfold._typing import FloatArray, IntArray
from prinfold.curves.loop_start import persistent_ring
from prinfold.density.ridges.longest_branch import ridge_path
from prinfold.exceptions import Advice, InvalidDataError, Message
from prinfold.validation.tables import as_numbers

CENTERS = (12, 25, 50, 100)
"""Numbers of centres that trees are made of."""

_ROWS_PER_CENTER = 3
_CENTER_MOVES = 3
"""Times that centres move to the mean of the rows nearest to them."""

_LEAST_CENTER_SHARE = 0.1
"""Share of the mean weight of a centre below which it is left out: a few far rows are not on the curve."""

_ELLIPSE_VERTICES = 48
"""Vertices of an ellipse."""

_LOOP_CENTERS = 60
"""Centres among which a loop of the rows is sought."""


class CurveStart(NamedTuple):
    """Vertices (m, D) of a curve to begin with, about the mean of the rows, and its name.

    One that was smoothed before has the ``noise`` that was seen across it, in each direction. One along a loop of the
    rows has its ``persistence``.
    """

    name: str
    vertices: FloatArray
    noise: float | None = None
    persistence: float = 0.0


def principal_line(X: FloatArray, weight: FloatArray) -> FloatArray:
    """(2, D) the first principal component, as far as rows reach."""
    axis, _ = principal_axes(X, weight)
    along = X @ axis[0]
    return np.stack([along.min() * axis[0], along.max() * axis[0]])


def ellipse(X: FloatArray, weight: FloatArray) -> FloatArray:
    """(m, D) vertices of an ellipse in the first two principal components, √2 standard deviations wide in each."""
    axes, deviations = principal_axes(X, weight)
    return _ring_vertices(np.sqrt(2.0) * deviations[:, None] * axes)


def circle(X: FloatArray, weight: FloatArray) -> FloatArray:
    """(m, D) vertices of a circle in the first two principal components, as wide as rows are away on average there."""
    axes, _ = principal_axes(X, weight)
    radius = float(np.average(np.linalg.norm(X @ axes.T, axis=1), weights=weight))
    return _ring_vertices(radius * axes)


def trees(X: FloatArray, weight: FloatArray) -> list[CurveStart]:
    """The longest paths in minimum spanning trees of several numbers of centres."""
    sizes = [k for k in CENTERS if _ROWS_PER_CENTER * k <= len(X)] or [max(2, len(X) // _ROWS_PER_CENTER)]
    seeds, found = farthest_rows(X, sizes[-1]), list[CurveStart]()
    for k in sizes:
        points = centers(X, weight, X[seeds[:k]])
        found.append(CurveStart(f"tree of {k}", points[longest_path(points)]))
    return found


def loop(X: FloatArray, weight: FloatArray) -> list[CurveStart]:
    """A ring along the loop that persists longest among centres of the rows; none where they have no loop."""
    size = min(_LOOP_CENTERS, max(2, len(X) // _ROWS_PER_CENTER))
    ring = persistent_ring(centers(X, weight, X[farthest_rows(X, size)]))
    return [] if ring is None else [CurveStart("loop", ring.vertices, persistence=ring.persistence)]


def principal_axes(X: FloatArray, weight: FloatArray, count: int = 2) -> tuple[FloatArray, FloatArray]:
    """(k, D) the first principal directions of rows about their mean, and deviations (k,) along them.

    They point where rows reach farther, Σ w (x·a)³ > 0, so that a ring begins in the same place in whatever columns.
    """
    root = np.sqrt(weight / weight.sum())[:, None] * X
    if X.shape[1] <= len(X):
        _, values, directions = np.linalg.svd(root.T @ root, hermitian=True)
        deviations = np.sqrt(values)
    else:  # the scatter matrix would be larger than the data
        _, deviations, directions = np.linalg.svd(root, full_matrices=False)
    if len(directions) == 1 < count:
        return np.vstack([directions, np.zeros_like(directions)]), np.array([deviations[0], 0.0])
    directions = directions[:count]
    along = X @ directions.T
    skew = np.power(along / np.maximum(np.abs(along).max(axis=0), np.finfo(float).tiny), 3).T @ weight
    return np.where(skew < 0, -1.0, 1.0)[:, None] * directions, deviations[:count]


def centers(X: FloatArray, weight: FloatArray, seeds: FloatArray) -> FloatArray:
    """(k, D) centres: ``seeds`` moved to the mean of the rows that are nearest to them, a few times."""
    found = seeds
    for _ in range(_CENTER_MOVES):
        nearest = np.asarray(cKDTree(found).query(X)[1])
        total = np.bincount(nearest, weight, minlength=len(found))
        kept = total > _LEAST_CENTER_SHARE * total.mean()  # so that at least one is
        sums = np.stack([np.bincount(nearest, weight * column, minlength=len(found)) for column in X.T], axis=1)
        found = sums[kept] / total[kept, None]
    return np.asarray(found)


def farthest_rows(X: FloatArray, count: int) -> IntArray:
    """Rows of which each is the farthest from all before it; the first is the farthest from the mean."""
    chosen = np.empty(count, dtype=np.int64)
    away = np.einsum("nd,nd->n", X, X)
    least = np.full(len(X), np.inf)
    for i in range(count):
        chosen[i] = int(np.argmax(away if i == 0 else least))
        np.minimum(least, np.square(X - X[chosen[i]]).sum(axis=1), out=least)
    return chosen


def longest_path(points: FloatArray) -> IntArray:
    """Indices of the points along the longest path in their minimum spanning tree."""
    if len(points) < 2:
        return np.arange(len(points))
    # SciPy takes lengths next to zero for no edge at all; a tree is the same for lengths that are all raised alike.
    gaps = pdist(points)
    graph = minimum_spanning_tree(squareform(1.0 + gaps / (gaps.max() or 1.0)))
    one, _ = _farthest(graph, points, 0)
    other, before = _farthest(graph, points, one)
    path = [other]
    while path[-1] != one:
        path.append(int(before[path[-1]]))
    return np.array(path[::-1])


def _farthest(graph: Any, points: FloatArray, start: int) -> tuple[int, IntArray]:
    """The point farthest from one along a tree, and the point before each on the way there."""
    order, before = breadth_first_order(graph, start, directed=False)
    distance = np.zeros(len(points))
    for i in order[1:]:
        distance[i] = distance[before[i]] + np.linalg.norm(points[i] - points[before[i]])
    return int(np.argmax(distance)), before


def _ring_vertices(axes: FloatArray) -> FloatArray:
    angle = 2 * np.pi * np.arange(_ELLIPSE_VERTICES) / _ELLIPSE_VERTICES
    return np.asarray(np.cos(angle)[:, None] * axes[0] + np.sin(angle)[:, None] * axes[1])


MakeStarts = Callable[[FloatArray, FloatArray], list[CurveStart]]

_OPEN: dict[str, MakeStarts] = {
    "pca": lambda X, weight: [CurveStart("pca", principal_line(X, weight))],
    "tree": trees,
    "ridge": lambda X, weight: [CurveStart("ridge", ridge_path(X, weight))],
}
_CLOSED: dict[str, MakeStarts] = {
    "pca": lambda X, weight: [CurveStart("pca", ellipse(X, weight))],
    "circle": lambda X, weight: [CurveStart("circle", circle(X, weight))],
    "loop": loop,
    "tree": trees,
    "ridge": _OPEN["ridge"],
}

START_TABLES: dict[bool, dict[str, MakeStarts]] = {False: _OPEN, True: _CLOSED}
"""Starts of open and of closed curves by name."""

_SLOW_STARTS = {"ridge"}
"""Starts that take longer than all others together, and are made only where ``init`` names them."""

START_NAMES = ("auto", *_CLOSED)


def make_starts(X: FloatArray, weight: FloatArray, init: Any, closed: bool, offset: FloatArray) -> list[CurveStart]:
    """Starts that ``init`` names, or the one that it gives as vertices; all about the ``offset`` of the rows."""
    table = START_TABLES[closed]
    if not isinstance(init, str):
        return [CurveStart("given", _given_vertices(init, X.shape[1]) - offset)]
    if init != "auto" and init not in table:
        words = f"init={init!r} is for closed curves"
        raise InvalidDataError(Message(words, Advice("closed", True), f"set init to one of {list(table)}"))
    made = [start for name, make in table.items() if _is_wanted(name, init) for start in make(X, weight)]
    made = made or table["pca"](X, weight)  # rows may have no loop
    # Rows in a few clusters may have a single centre, which is no path.
    return [each if len(each.vertices) > 1 else CurveStart(each.name, principal_line(X, weight)) for each in made]


def _is_wanted(name: str, init: str) -> bool:
    return init == name or (init == "auto" and name not in _SLOW_STARTS)


def start_candidates(
    init: Any, closed: Any, X: FloatArray, weight: FloatArray, offset: FloatArray
) -> list[tuple[CurveStart, bool]]:
    """All starts that ``init`` names, and whether each is closed: as given, or both (``"auto"``)."""
    shapes = [False, True] if closed == "auto" else [bool(closed)]
    if closed is True and X.shape[1] == 1:
        raise InvalidDataError(
            Message(
                "a closed curve needs two columns or more, but the table has n_features = 1", Advice("closed", False)
            )
        )
    if closed == "auto":  # of which some starts are for one shape only, and a line is never closed
        named = [shape for shape in shapes if not isinstance(init, str) or init in ("auto", *START_TABLES[shape])]
        shapes = named if X.shape[1] > 1 else [False]
    return [(start, shape) for shape in shapes for start in make_starts(X, weight, init, shape, offset)]


def _given_vertices(init: Any, n_columns: int) -> FloatArray:
    vertices = as_numbers("init", init)
    if vertices.ndim != 2 or vertices.shape[1] != n_columns or len(vertices) < 2 or not np.isfinite(vertices).all():
        raise InvalidDataError(
            f"init must hold at least two finite vertices of shape (m, {n_columns}), got shape {vertices.shape}"
        )
    if (vertices == vertices[0]).all():
        raise InvalidDataError(
            f"init holds {len(vertices)} vertices that are all equal, a curve without length; give two that differ"
        )
    return vertices
