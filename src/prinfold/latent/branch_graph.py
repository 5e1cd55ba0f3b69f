"""A graph of branches: its ends and forks, shortest paths along it, and times and lineages from a root.

A place is an end, where one branch begins or ends, or a fork, where three or more do. Distances are lengths of the
shortest way along branches. Time from a root is the distance from it; round a closed branch it goes on in one
direction to a full turn, as the phase of a cycle does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, dijkstra

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.exceptions import quantity
from prinfold.latent.branches import Branches

_DETOUR_TOLERANCE = 1e-6
"""Share of the length of a graph by which a detour may be longer than a way and still be one."""


@dataclass(frozen=True, eq=False)
class BranchGraph:
    """Branches laid end to end by ``latent``, and the places ``ends`` (B, 2) that each leads from and to.

    A closed branch leads from no place to none, which is −1.
    """

    latent: Branches
    ends: IntArray

    @property
    def n_places(self) -> int:
        """Number of ends and forks."""
        return int(self.ends.max()) + 1

    @property
    def degrees(self) -> IntArray:
        """(V,) how many branches begin or end at each place: 1 at an end, 3 or more at a fork."""
        return np.bincount(self.ends[self.ends >= 0], minlength=self.n_places)

    @property
    def n_ends(self) -> int:
        """Number of free ends."""
        return int((self.degrees == 1).sum())

    @property
    def n_forks(self) -> int:
        """Number of places where three or more branches meet."""
        return int((self.degrees > 2).sum())

    @property
    def words(self) -> str:
        """``3 branches, 3 ends, 1 fork``, and the components where there are several."""
        parts = [(len(self.ends), "branch"), (self.n_ends, "end"), (self.n_forks, "fork")]
        apart = f", in {self.n_components} separate pieces" if self.n_components > 1 else ""
        return ", ".join(quantity(n, noun) for n, noun in parts) + apart

    @cached_property
    def places(self) -> FloatArray:
        """(V, 1) the coordinate of each place, by the first branch that meets there."""
        found = np.full(self.n_places, np.inf)
        joined = self.ends >= 0
        np.minimum.at(found, self.ends[joined], self._edges[joined])
        return found[:, None]

    @cached_property
    def components(self) -> IntArray:
        """(B,) number of the connected component of each branch, in the order of the first branch of each."""
        B, V, joined = len(self.ends), self.n_places, self.ends[:, 0] >= 0
        number = np.arange(B)
        a = np.concatenate([number[joined], number[joined]])
        b = B + np.concatenate([self.ends[joined, 0], self.ends[joined, 1]])
        links = coo_array((np.ones(len(a)), (a, b)), shape=(B + V, B + V))
        label = connected_components(links, directed=False)[1][:B]
        first = {each: i for i, each in enumerate(dict.fromkeys(label.tolist()))}
        return np.array([first[each] for each in label.tolist()], dtype=np.int64)

    @property
    def n_components(self) -> int:
        """Number of connected components."""
        return int(self.components.max()) + 1

    def component(self, Z: FloatArray) -> IntArray:
        """(n,) number of the component that coordinates (n, 1) lie in."""
        return np.asarray(self.components[self.latent.domain.piece(Z)])

    def periods(self, Z: FloatArray) -> FloatArray:
        """(n,) length of a full turn at coordinates (n, 1) on closed branches; inf on open ones."""
        return np.asarray(np.where(self.latent.closed, self.latent.lengths, np.inf)[self.latent.domain.piece(Z)])

    def distances(self, A: FloatArray, B: FloatArray) -> FloatArray:
        """(m, n) shortest ways along the graph from coordinates (m, 1) to others (n, 1); inf where none leads."""
        (a, from_start), (b, to_start) = self._locate(A), self._locate(B)
        length, closed = self.latent.lengths, self.latent.closed
        apart = np.abs(from_start[:, None] - to_start)
        round_it = np.where(closed[b], np.minimum(apart, length[b] - apart), apart)
        found = np.where(a[:, None] == b, round_it, np.inf)
        for i in (0, 1):
            for j in (0, 1):
                start, end = self.ends[a, i], self.ends[b, j]
                out = from_start if i == 0 else length[a] - from_start
                back = to_start if j == 0 else length[b] - to_start
                # The place of a closed branch, −1, is the last of the table: no way leads there.
                found = np.minimum(found, out[:, None] + back + self._place_distances[start][:, end])
        return np.asarray(found)

    def name_forks(self, Z: FloatArray) -> FloatArray:
        """Coordinates (n, 1) with every fork named by the first branch that meets there, not by the one to it."""
        branch = self.latent.domain.piece(Z)
        found = Z[:, 0].copy()
        for side in (0, 1):
            place = self.ends[branch, side]
            here = (place >= 0) & (Z[:, 0] == self._edges[branch, side])
            found[here] = self.places[place[here], 0]
        return found[:, None]

    @cached_property
    def _edges(self) -> FloatArray:
        """(B, 2) coordinates of the two ends of each branch."""
        return np.stack([self.latent.domain.low, self.latent.domain.high], axis=1)

    def _locate(self, Z: FloatArray) -> tuple[IntArray, FloatArray]:
        """Branch (n,) and arc length on it (n,)."""
        branch = self.latent.domain.piece(Z)
        return branch, Z[:, 0] - self.latent.domain.low[branch]

    @cached_property
    def _place_distances(self) -> FloatArray:
        """(V + 1, V + 1) shortest ways between places; none to the last, which stands for a closed branch."""
        V, joined = self.n_places, self.ends[:, 0] >= 0
        ways = np.full((V + 1, V + 1), np.inf)
        length = np.maximum(self.latent.lengths[joined], np.finfo(float).tiny)
        pair = np.sort(self.ends[joined], axis=1)
        shortest = np.full((V, V), np.inf)
        np.minimum.at(shortest, (pair[:, 0], pair[:, 1]), length)  # of two branches between the same places
        matrix = np.where(np.isfinite(shortest), shortest, 0.0)
        ways[:V, :V] = dijkstra(coo_array(matrix).tocsr(), directed=False)
        return ways


class Milestones(NamedTuple):
    """The root, forks and leaves of a graph: ``names``, coordinates ``Z`` (M, 1) and ``times`` (M,), in that order."""

    names: tuple[str, ...]
    Z: FloatArray
    times: FloatArray


@dataclass(frozen=True, eq=False)
class RootedGraph:
    """A graph with a root in each of its components, ``roots`` (C, 1), from which time is counted."""

    graph: BranchGraph
    roots: FloatArray

    def times(self, Z: FloatArray) -> FloatArray:
        """(n,) time at coordinates (n, 1), from the root of the component that each lies in."""
        component, period = self.graph.component(Z), self.graph.periods(Z)
        found = self.graph.distances(self.roots, Z)[component, np.arange(len(Z))]
        ring = np.isfinite(period)
        turn = np.mod(Z[:, 0] - self.roots[component, 0], np.where(ring, period, 1.0))
        return np.asarray(np.maximum(np.where(ring, turn, found), 0.0))  # rounding aside

    @cached_property
    def leaves(self) -> IntArray:
        """(L,) ends at which no root is, those that are reached first in front."""
        graph = self.graph
        free = np.flatnonzero(graph.degrees == 1)
        free = free[~np.isclose(self.times(graph.places[free]), 0.0)] if len(free) else free
        return free[np.argsort(self.times(graph.places[free]), kind="stable")] if len(free) else free

    @cached_property
    def milestones(self) -> Milestones:
        """The root, forks and leaves, each kind in the order of time."""
        graph = self.graph
        forks = np.flatnonzero(graph.degrees > 2)
        forks = forks[np.argsort(self.times(graph.places[forks]), kind="stable")] if len(forks) else forks
        at_fork = np.isclose(graph.distances(self.roots, graph.places[forks]), 0.0).any(axis=0)
        kinds = {"root": self.roots, "fork": graph.places[forks[~at_fork]], "leaf": graph.places[self.leaves]}
        names = [name for kind, Z in kinds.items() for name in _number_names(kind, len(Z))]
        Z = np.concatenate(list(kinds.values()))
        return Milestones(tuple(names), Z, self.times(Z))

    @property
    def lineages(self) -> tuple[str, ...]:
        """Names of the ways from a root: the leaf that each leads to, then the closed branches."""
        rings = int(self.graph.latent.closed.sum())
        return (*_number_names("leaf", len(self.leaves)), *_number_names("ring", rings))

    def on_lineages(self, Z: FloatArray) -> BoolArray:
        """(n, L) whether coordinates lie on the way from a root to each leaf, or on each closed branch.

        A place lies on a way where the way to it and the way on from there add up to the whole.
        """
        graph, leaves = self.graph, self.graph.places[self.leaves]
        rings = np.flatnonzero(graph.latent.closed)
        slack = _DETOUR_TOLERANCE * float(graph.latent.lengths.sum())
        detour = self.times(Z)[:, None] + graph.distances(Z, leaves) - self.times(leaves)
        return np.hstack([detour <= slack, graph.latent.domain.piece(Z)[:, None] == rings])


def _number_names(kind: str, count: int) -> list[str]:
    """``root`` where there is one, ``root 1`` and so on where there are several; leaves and forks always count."""
    return [kind] if kind == "root" and count == 1 else [f"{kind} {i + 1}" for i in range(count)]


def snap_to_end(graph: BranchGraph, Z: FloatArray, share: float) -> FloatArray:
    """Coordinates (n, 1), moved to the free end of their branch where that is nearer than a ``share`` of its length."""
    branch = graph.latent.domain.piece(Z)
    found = Z[:, 0].copy()
    for side, edge in enumerate((graph.latent.domain.low, graph.latent.domain.high)):
        place = graph.ends[branch, side]
        free = (place >= 0) & (graph.degrees[place] == 1) if graph.n_places else np.zeros(len(Z), dtype=bool)
        near = np.abs(Z[:, 0] - edge[branch]) <= share * graph.latent.lengths[branch]
        found = np.where(free & near, edge[branch], found)
    return found[:, None]
