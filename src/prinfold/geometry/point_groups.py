"""Points in groups of near ones, so that those within some distance are found without looking at all of them.

With ρ the radius of a group about its middle c, and e the largest extent of its points, none of them is within d + e of
x unless ‖x − c‖ ≤ d + e + ρ, by the triangle inequality. Distances to the middles are one matrix product, in any number
of columns.
"""

from __future__ import annotations

from itertools import chain

import numpy as np
from scipy.spatial import cKDTree

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.numerics.distances import squared_norms
from prinfold.rows.rows import row_slices

# Points of a group.
_GROUP_SIZE = 32
# Numbers held at once.
_BLOCK_NUMBERS = 2**21
# In few columns a tree finds the points near a row, unless there are too many of them.
_TREE_DIMENSIONS, _TREE_POINTS, _TREE_FOUND = 8, 4096, 128
# Distances to the middles, being products, are good to this share of the squares.
_ROUNDING_SHARE = 1e-12

Pairs = tuple[IntArray, IntArray, FloatArray]
"""Rows, points, and the squares of the distances between them."""


class Groups:
    """Points (V, D), not far from the origin, each with an ``extent`` (V,)."""

    def __init__(self, points: FloatArray, extent: FloatArray) -> None:
        self.points, self.extent = points, extent
        self.tree = cKDTree(points, leafsize=_GROUP_SIZE)
        order = np.asarray(self.tree.indices)
        n_short = -len(order) % _GROUP_SIZE
        self.members = np.pad(order, (0, n_short), mode="edge").reshape(-1, _GROUP_SIZE)
        self.fresh = np.ones(self.members.shape, dtype=bool)
        self.fresh[-1, _GROUP_SIZE - n_short :] = False  # the last group is filled up with its last member
        self.middle = points[self.members].mean(axis=1)
        radius = np.sqrt(squared_norms(points[self.members] - self.middle[:, None]).max(axis=1))
        self.reach = radius + extent[self.members].max(axis=1)
        self.squares = squared_norms(self.middle)

    def bound(self, X: FloatArray) -> FloatArray:
        """(n,) bound on the distance of each row to its nearest point: that to the nearest one of the nearest group."""
        out = np.empty(len(X))
        for part in _slices(len(X), len(self.middle) + _GROUP_SIZE * X.shape[1]):
            nearest = self._apart(X[part]).argmin(axis=1)
            out[part] = np.sqrt(squared_norms(X[part][:, None] - self.points[self.members[nearest]]).min(axis=1))
        return out

    def share(self, X: FloatArray, distance: FloatArray) -> FloatArray:
        """(n,) the share of all groups that :meth:`within` has to look at."""
        out = np.empty(len(X))
        for part in _slices(len(X), len(self.middle)):
            out[part] = self._possible(X[part], distance[part]).mean(axis=1)
        return out

    def within(self, X: FloatArray, distance: FloatArray) -> Pairs:
        """Rows and points nearer than the row's ``distance`` (n,) and the point's extent together, and the squares.

        Rows rise.
        """
        few = self._has_few(X, distance)
        if not few.any():
            return self._by_groups(X, distance)
        ways = ((self._by_tree, np.flatnonzero(few)), (self._by_groups, np.flatnonzero(~few)))
        found = [(rows, *way(X[rows], distance[rows])) for way, rows in ways]
        row = np.concatenate([rows[local] for rows, local, _, _ in found])
        member, squared = (np.concatenate([each[part] for each in found]) for part in (2, 3))
        order = np.argsort(row, kind="stable")
        return row[order], member[order], squared[order]

    def _has_few(self, X: FloatArray, distance: FloatArray) -> BoolArray:
        """(n,) which rows have so few points near that a tree finds them faster."""
        if X.shape[1] > _TREE_DIMENSIONS or len(self.points) < _TREE_POINTS or len(X) == 0:
            return np.zeros(len(X), dtype=bool)
        count = self.tree.query_ball_point(X, self._radius(distance), return_length=True)
        return np.asarray(np.asarray(count) <= _TREE_FOUND)

    def _radius(self, distance: FloatArray) -> FloatArray:
        return np.asarray((distance + self.extent.max()) * (1.0 + 1e-12))

    def _by_tree(self, X: FloatArray, distance: FloatArray) -> Pairs:
        near = self.tree.query_ball_point(X, self._radius(distance))
        row = np.repeat(np.arange(len(X)), [len(each) for each in near])
        member = np.fromiter(chain.from_iterable(near), dtype=np.intp, count=len(row))
        return self._near(X, distance, row, member)

    def _by_groups(self, X: FloatArray, distance: FloatArray) -> Pairs:
        found: list[Pairs] = [(np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp), np.empty(0))]
        for part in _slices(len(X), len(self.middle)):
            row, group = np.nonzero(self._possible(X[part], distance[part]))
            for pairs in _slices(len(row), _GROUP_SIZE * X.shape[1]):
                fresh = self.fresh[group[pairs]].ravel()
                rows, member = np.repeat(row[pairs] + part.start, _GROUP_SIZE), self.members[group[pairs]].ravel()
                found.append(self._near(X, distance, rows[fresh], member[fresh]))
        rows, members, squares = (np.concatenate(part) for part in zip(*found, strict=True))
        return rows, members, squares

    def _near(self, X: FloatArray, distance: FloatArray, row: IntArray, member: IntArray) -> Pairs:
        """Pairs among those given that are near enough, and their squared distances."""
        squared = self.squared(X, row, member)
        near = squared <= np.square(distance[row] + self.extent[member])
        return row[near], member[near], squared[near]

    def squared(self, X: FloatArray, row: IntArray, member: IntArray) -> FloatArray:
        """Squared distances of pairs by differences: the same to the last bit wherever a pair comes up."""
        out = np.empty(len(row))
        for part in _slices(len(row), X.shape[1]):
            out[part] = squared_norms(X[row[part]] - self.points[member[part]])
        return out

    def _apart(self, X: FloatArray) -> FloatArray:
        """(n, G) squared distances to the middles, by products."""
        apart = X @ (-2.0 * self.middle.T)
        apart += squared_norms(X)[:, None]
        apart += self.squares
        return np.asarray(apart)

    def _possible(self, X: FloatArray, distance: FloatArray) -> BoolArray:
        """(n, G) groups that may hold a point near enough."""
        limit = np.square(distance[:, None] + self.reach)
        limit += _ROUNDING_SHARE * (squared_norms(X)[:, None] + self.squares)
        return np.asarray(self._apart(X) <= limit)


def _slices(n: int, width: int) -> list[slice]:
    """Slices of rows with a bounded number of numbers each."""
    return row_slices(n, max(1, _BLOCK_NUMBERS // max(1, width)))
