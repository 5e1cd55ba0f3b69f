"""Loops in a cloud of points, and an angle round each of them: persistent cohomology and circular coordinates.

Points nearer to each other than ε are joined, and triangles of such edges are filled. A loop that no triangles fill is
a hole of that complex; one that persists over a wide range of ε is a loop of the shape that the points came from. The
dual of a loop is a cocycle, a whole number on every edge that adds up to zero round every triangle: how much the edge
advances the loop. The smoothest function of the points that differs from it by whole turns is an angle
(de Silva, Morozov & Vejdemo-Johansson, 2011). No library that prinfold needs anyway has cocycles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import lsqr
from scipy.spatial.distance import cdist

from prinfold._typing import BoolArray, FloatArray, IntArray

_PRIME = 47
"""Cocycles are found with arithmetic modulo this, as is usual: small ones lift to whole numbers as they are."""

_SHORTEST_LIFE = 1.2
"""Ratio of death to birth below which a loop is not worth keeping."""

_LEAST_TURN = 1e-6
"""Turns along an edge below which an angle does not change."""

_MOST_REDUCTIONS = 100
"""Most rounds in which a basis of loops is made shorter; a few suffice."""


class Loop(NamedTuple):
    """A hole of the complex for scales from ``birth`` to ``death``; ``cocycle`` (m, m), antisymmetric, on its edges."""

    birth: float
    death: float
    cocycle: IntArray


class Circular(NamedTuple):
    """Angles round some loops: ``angles`` (k, q) of the points ``kept`` (k,), which hang together at ``scale``."""

    angles: FloatArray
    kept: IntArray
    scale: float


def farthest_points(X: FloatArray, m: int) -> IntArray:
    """(≤ m,) rows, each the farthest from those before it: an even cover whatever the density.

    The first is the row nearest to the mean.
    """
    gap = X - X.mean(axis=0)
    found = [int(np.argmin(np.einsum("nd,nd->n", gap, gap)))]
    distance = cdist(X[found], X)[0]
    while len(found) < m and distance.max() > 0:
        found.append(int(np.argmax(distance)))
        np.minimum(distance, cdist(X[found[-1:]], X)[0], out=distance)
    return np.asarray(found)


def persistent_loops(distance: FloatArray) -> list[Loop]:
    """Loops of the complexes of all scales, the longest-lived (by death / birth) first.

    Edges enter by length. One that closes no triangle, between points that hang together already, begins a loop; one
    that closes triangles extends every cocycle by what the first of them asks for, and where another asks for something
    else the youngest cocycle concerned dies, the others being freed of the contradiction with its help.
    """
    live = _GrowingComplex(len(distance))
    radius = float(distance.max(axis=1).min())  # from there on one point is joined to all, and no loop is left
    first, second = np.triu_indices(len(distance), 1)
    length = distance[first, second]
    order = np.argsort(length, kind="stable")
    for e in order[length[order] <= radius]:
        live.enter(int(first[e]), int(second[e]), float(length[e]))
    lasting = [loop for loop in live.finish(radius) if loop.death > _SHORTEST_LIFE * loop.birth > 0]
    return sorted(lasting, key=lambda loop: -loop.death / loop.birth)


class _GrowingComplex:
    """The complex while edges enter it, with the cocycles alive.

    ``values`` has room for some; ``alive`` says where in it each lies that is alive, those born first at the front.
    """

    def __init__(self, n: int) -> None:
        self.joined: BoolArray = np.zeros((n, n), dtype=bool)
        self.component = np.arange(n)
        self.births: list[float] = []
        self.alive: list[int] = []
        self.free: list[int] = []
        self.values: IntArray = np.zeros((0, n, n), dtype=np.int16)
        self.ended: list[Loop] = []

    def enter(self, i: int, j: int, length: float) -> None:
        """Add the edge between two points and all triangles that it closes."""
        common = np.flatnonzero(self.joined[i] & self.joined[j])
        if len(common):
            self._extend(i, j, common, length)
        elif self.component[i] == self.component[j]:
            self._begin(i, j, length)
        else:
            self.component[self.component == self.component[j]] = self.component[i]
        self.joined[i, j] = self.joined[j, i] = True

    def finish(self, length: float) -> list[Loop]:
        """All loops found, once every edge has entered."""
        return [*self.ended, *(Loop(b, length, self.values[a]) for a, b in zip(self.alive, self.births, strict=True))]

    def _begin(self, i: int, j: int, length: float) -> None:
        if not self.free:
            n_old, n = self.values.shape[:2]
            self.values = np.concatenate([self.values, np.zeros((max(n_old, 8), n, n), dtype=np.int16)])
            self.free = list(range(n_old, len(self.values)))
        place = self.free.pop()
        self.values[place] = 0
        self.values[place, i, j], self.values[place, j, i] = 1, _PRIME - 1
        self.alive.append(place)
        self.births.append(length)

    def _extend(self, i: int, j: int, common: IntArray, length: float) -> None:
        if not self.alive:
            return
        at = np.asarray(self.alive)
        asked = (self.values[at[:, None], i, common] + self.values[at[:, None], common, j]) % _PRIME
        self.values[at, i, j], self.values[at, j, i] = asked[:, 0], -asked[:, 0] % _PRIME
        clash = (asked - asked[:, :1]) % _PRIME
        while clash.any():
            clash = self._end(clash, length)

    def _end(self, clash: IntArray, length: float) -> IntArray:
        """End the youngest cocycle that contradicts a triangle; returns the contradictions (L − 1, T) that are left."""
        column = clash[:, np.flatnonzero(clash.any(axis=0))[0]]
        youngest = int(np.flatnonzero(column)[-1])
        share = column * pow(int(column[youngest]), -1, _PRIME) % _PRIME
        share[youngest] = 0
        place, birth = self.alive[youngest], self.births.pop(youngest)
        dying = self.values[place].copy()
        for a in np.flatnonzero(share):
            held = self.values[self.alive[a]]
            held[:] = (held - share[a] * dying) % _PRIME
        clash = (clash - share[:, None] * clash[youngest]) % _PRIME
        if length > _SHORTEST_LIFE * birth:
            self.ended.append(Loop(birth, length, dying))
        self.free.append(self.alive.pop(youngest))
        return np.delete(clash, youngest, axis=0)


def circular_coordinates(distance: FloatArray, loops: list[Loop]) -> Circular | None:
    """An angle round each of some loops, as smooth as can be; None where they never are in one piece together.

    At the geometric mean ε of their last birth and first death each cocycle α, as whole numbers on the edges, becomes
    f that minimises Σ_edges (α − (f_j − f_i))², and 2π f is the angle. Of all ways to go round q loops, those are taken
    for which these sums of squares are least: a loop is added to or taken from another as long as that helps.
    """
    birth, death = max(loop.birth for loop in loops), min(loop.death for loop in loops)
    if not birth < death:
        return None
    scale = float(np.sqrt(birth * death))
    kept, edges = _edges_within(distance, scale)
    first, second = kept[edges].T
    alpha = np.stack([loop.cocycle[first, second] for loop in loops], axis=1).astype(float)
    alpha[alpha > _PRIME // 2] -= _PRIME
    rise = _differences(edges, len(kept))
    turns = np.stack([lsqr(rise, each, atol=1e-10, btol=1e-10)[0] for each in alpha.T], axis=1)
    steps = alpha - rise @ turns
    if (np.abs(steps).max(axis=0) < _LEAST_TURN).any() or np.linalg.matrix_rank(steps) < len(loops):
        return None  # a loop of a smaller piece, or the same one twice
    combination = _shortest_combination(steps)
    angles = np.angle(np.exp(2j * np.pi * (turns @ combination.T)))
    return Circular(np.asarray(angles), kept, scale)


def _edges_within(distance: FloatArray, scale: float) -> tuple[IntArray, IntArray]:
    """Points of the largest piece at that scale, and its edges (E, 2) as indices into them."""
    near = np.triu(distance <= scale, 1)
    _, label = connected_components(csr_matrix(near, dtype=float), directed=False)
    kept = np.flatnonzero(label == np.argmax(np.bincount(label)))
    return kept, np.argwhere(near[np.ix_(kept, kept)])


def _differences(edges: IntArray, n: int) -> csr_matrix:
    """(E, n) the operator from values at the points to their differences along each edge."""
    row = np.arange(len(edges)).repeat(2)
    return csr_matrix((np.tile([-1.0, 1.0], len(edges)), (row, edges.ravel())), shape=(len(edges), n))


def _shortest_combination(forms: FloatArray) -> FloatArray:
    """(q, q) whole numbers of determinant ±1 that make columns of ``forms`` (E, q) short, as Lagrange and Gauss did."""
    gram, change = forms.T @ forms, np.eye(forms.shape[1])
    for _ in range(_MOST_REDUCTIONS):
        times = np.round(gram / np.diag(gram)[None, :])  # how often loop b is to be taken from loop a
        np.fill_diagonal(times, 0.0)
        gain = 2.0 * times * gram - times**2 * np.diag(gram)[None, :]
        a, b = np.unravel_index(int(np.argmax(gain)), gain.shape)
        if gain[a, b] <= 1e-9 * gram[a, a]:
            break
        step = np.eye(len(gram))
        step[a, b] = -times[a, b]
        gram, change = step @ gram @ step.T, step @ change
    return change
