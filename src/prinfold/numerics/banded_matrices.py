"""Symmetric matrices that join each vertex of a chain with the next two alone, and linear equations with them.

A chain that is closed joins its last vertices with the first. Taken in the order 0, m − 1, 1, m − 2, … neighbours on a
ring are at most twice as far from each other as on the ring itself, so that its matrix is a band as well.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solveh_banded

from prinfold._typing import FloatArray, IntArray

_RIDGE = 1e-12
"""Share of the largest entry that is added to the diagonal where vertices without rows leave a matrix singular."""


class BandedMatrix(NamedTuple):
    """The matrix Σ_i Σ_d of ``entries[d, i]`` (3, m) at (i, i + d) and at (i + d, i), indices modulo m, d = 0 once.

    That of an open chain has zeros where an index would come round.
    """

    entries: FloatArray

    def times(self, v: FloatArray) -> FloatArray:
        """(m, D) the matrix times v."""
        own, next_one, next_two = self.entries[:, :, None]
        out = own * v
        for apart, joint in ((1, next_one), (2, next_two)):
            out += joint * np.roll(v, -apart, axis=0) + np.roll(joint * v, apart, axis=0)
        return np.asarray(out)

    def plus(self, share: float, other: BandedMatrix) -> BandedMatrix:
        """The matrix plus ``share`` times another."""
        return BandedMatrix(self.entries + share * other.entries)

    def solve(self, right: FloatArray) -> FloatArray:
        """(m, D) x of A x = ``right``; the matrix must not be indefinite."""
        m = self.entries.shape[1]
        closed = bool(self.entries[1, -1] or self.entries[2, -2:].any())
        place = fold_order(m) if closed else np.arange(m)
        lower = np.zeros((5 if closed else 3, m))
        for apart, joint in enumerate(self.entries):
            one, other = place, np.roll(place, -apart)
            used = slice(None) if closed else slice(max(m - apart, 0))
            np.add.at(lower, (np.abs(one - other)[used], np.minimum(one, other)[used]), joint[used])
        lower[0] += _RIDGE * float(lower[0].max()) or 1.0
        found = np.empty_like(right)
        found[place] = right
        return np.asarray(solveh_banded(lower, found, lower=True, overwrite_ab=True)[place])


def fold_order(m: int) -> IntArray:
    """(m,) position of each vertex in the order 0, m − 1, 1, m − 2 and so on."""
    vertex = np.arange(m)
    return np.minimum(2 * vertex, 2 * (m - vertex) - 1)
