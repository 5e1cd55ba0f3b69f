"""Branches between ends and junctions, from nodes on a ridge; the rules are ours.

1. Each node looks for the nearest one ahead and behind; two that look at each other are linked. No node has more than
   two links, so that they form chains and rings.
2. Ridges of a density seldom meet: one passes, the others end near by. The end of a chain is joined to the nearest node
   ahead of it within two bandwidths, if the density on the way is nowhere below a quarter of that at the sparser of the
   two. Three wires at a node make it a junction.
3. Nodes that were added by growth at a free end are removed, back to the last ridge point of a row.
4. A loop no longer than a circle with the bandwidth as its radius is removed: the side with the lowest density goes.
   Junctions less than two bandwidths apart along a branch are one at its densest node, so that a crossing, where ridges
   share a part of their way, has one junction. A branch with a free end that hangs on a junction and is shorter than
   three bandwidths goes, the shortest first, and so do fragments, but for the last. What then meets two by two is one.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import log, pi
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.density.ridges.graph_nodes import AHEAD_COSINE, BRIDGE_DENSITY_SHARE, RidgeNodes, nearest_ahead
from prinfold.density.ridges.mean_shift import Flow

_JOIN_BANDWIDTHS = 2.0
"""Bandwidths within which the end of a chain is joined to a node ahead."""

_DENSITY_CHECKS = 7
"""Places on the straight way between two nodes at which the density is checked."""

_LEAST_DETOUR = 3.0
"""Least length of a chain that is joined to itself, in units of the straight way."""

_LEAST_LOOP = 2.0 * pi
"""Bandwidths that a loop must be long: smaller rings than one of radius 1.6 have so small a ridge, or none."""

_MERGE_BANDWIDTHS = 2.0
"""Bandwidths that the way between two junctions must be long for them not to be one."""

SHORTEST_BRANCH = 3.0
"""Bandwidths that a branch with a free end, or a fragment, must be long to be kept."""

Path = list[int]
Adjacency = list[list[int]]


def find_branches(flow: Flow, nodes: RidgeNodes, shortest: float = SHORTEST_BRANCH) -> list[Path]:
    """Branches as lists of nodes; a closed one ends with the node that it begins with."""
    links = link_chains(nodes)
    for a, b in joints(flow, nodes, links):
        if b not in links[a]:
            links[a].append(b)
            links[b].append(a)
    _remove_dead_ends(nodes, links)
    return simplify(paths(links, np.flatnonzero(_used_nodes(nodes, links))), nodes, shortest)


def link_chains(nodes: RidgeNodes) -> Adjacency:
    """Links between nodes that are the nearest ahead of, or behind, each other."""
    m = len(nodes.points)
    every = np.arange(m)
    sides = np.stack([nearest_ahead(nodes, every, nodes.tangent), nearest_ahead(nodes, every, -nodes.tangent)], axis=1)
    links: Adjacency = [[] for _ in range(m)]
    for i in range(m):
        for j in sides[i]:
            if j > i and i in sides[j]:
                links[i].append(int(j))
                links[int(j)].append(i)
    return links


class _Ends(NamedTuple):
    """Loose ends: their node (k,), the direction (k, D) outwards."""

    node: IntArray
    outwards: FloatArray


def joints(flow: Flow, nodes: RidgeNodes, links: Adjacency) -> list[tuple[int, int]]:
    """Pairs of a loose end and the nearest node ahead of it to which the density leads."""
    ends = _loose_ends(nodes, links)
    if len(ends.node) == 0:
        return []
    chain, place = _along_chains(nodes, links)
    tree = cKDTree(nodes.points)
    near = tree.query_ball_point(nodes.points[ends.node], _JOIN_BANDWIDTHS * nodes.length[ends.node])
    row = np.repeat(np.arange(len(near)), [len(each) for each in near])
    node = np.concatenate([np.sort(np.asarray(each, dtype=np.intp)) for each in near])
    a = ends.node[row]
    delta = nodes.points[node] - nodes.points[a]
    distance = np.linalg.norm(delta, axis=1)
    right = (distance > 0) & (np.einsum("kd,kd->k", delta, ends.outwards[row]) > AHEAD_COSINE * distance)
    right &= (chain[node] != chain[a]) | (_chain_distance(chain, place, a, node) > _LEAST_DETOUR * distance)
    right[right] = _density_holds(flow, nodes, a[right], node[right])
    row, node, distance = row[right], node[right], distance[right]
    order = np.lexsort((node, distance, row))
    row, node = row[order], node[order]
    first = np.flatnonzero(np.diff(row, prepend=-1))
    return [(int(ends.node[row[i]]), int(node[i])) for i in first]


def _loose_ends(nodes: RidgeNodes, links: Adjacency) -> _Ends:
    """Ends of chains; a node without links has two, along its tangent."""
    node, outwards = list[int](), list[FloatArray]()
    for i, beside in enumerate(links):
        if len(beside) == 0:
            node += [i, i]
            outwards += [nodes.tangent[i], -nodes.tangent[i]]
        elif len(beside) == 1:
            j = beside[0]
            # From two nodes back: the last step alone may have been bent by what lies ahead.
            back = next((k for k in links[j] if k != i), j)
            delta = nodes.points[i] - nodes.points[back]
            node.append(i)
            outwards.append(delta / np.linalg.norm(delta))
    D = nodes.points.shape[1]
    return _Ends(np.asarray(node, dtype=np.intp), np.asarray(outwards).reshape(-1, D))


def _along_chains(nodes: RidgeNodes, links: Adjacency) -> tuple[IntArray, FloatArray]:
    """(m,) number of the chain that each node is on, and how far along it."""
    chain, place = np.full(len(links), -1), np.zeros(len(links))
    for number, path in enumerate(paths(links, np.arange(len(links)))):
        inner = path[:-1] if len(path) > 1 and path[0] == path[-1] else path
        chain[inner] = number
        place[inner] = np.concatenate([[0.0], np.cumsum(path_steps(nodes, inner))])
    return chain, place


def _chain_distance(chain: IntArray, place: FloatArray, a: IntArray, b: IntArray) -> FloatArray:
    """(k,) distance of two nodes along the chain that both are on; inf for two chains."""
    return np.where(chain[a] == chain[b], np.abs(place[a] - place[b]), np.inf)


def _density_holds(flow: Flow, nodes: RidgeNodes, a: IntArray, b: IntArray) -> BoolArray:
    """(k,) whether the density on the straight way is nowhere below a share of that at the sparser end."""
    if len(a) == 0:
        return np.zeros(0, dtype=bool)
    share = np.arange(1, _DENSITY_CHECKS + 1) / (_DENSITY_CHECKS + 1.0)
    start, end = nodes.points[a], nodes.points[b]
    way = start[:, None] + share[:, None] * (end - start)[:, None]
    way = way.reshape(-1, start.shape[1])
    height = flow.density.log_density(way if flow.sphere is None else flow.sphere.retract(way)).reshape(
        -1, _DENSITY_CHECKS
    )
    floor = np.minimum(nodes.log_density[a], nodes.log_density[b]) + log(BRIDGE_DENSITY_SHARE)
    return np.asarray(height.min(axis=1) >= floor)


def _remove_dead_ends(nodes: RidgeNodes, links: Adjacency) -> None:
    """Remove the links of nodes added by growth at free ends, one after another."""
    loose = [i for i, beside in enumerate(links) if len(beside) == 1 and not nodes.given[i]]
    while loose:
        i = loose.pop()
        for j in links[i]:
            links[j].remove(i)
            if len(links[j]) == 1 and not nodes.given[j]:
                loose.append(j)
        links[i].clear()


def _used_nodes(nodes: RidgeNodes, links: Adjacency) -> BoolArray:
    """(m,) which nodes have links, or are ridge points of rows."""
    return np.asarray([bool(beside) or bool(given) for beside, given in zip(links, nodes.given, strict=True)])


def paths(links: Adjacency, wanted: IntArray) -> list[Path]:
    """All paths between nodes that have other than two links, then the rings, which begin with their first node."""
    seen: set[tuple[int, int]] = set()
    found: list[Path] = []

    def walk(i: int, j: int) -> Path:
        path = [i, j]
        seen.add((i, j))
        while len(links[path[-1]]) == 2 and path[-1] != i:
            first, second = links[path[-1]]
            path.append(second if first == path[-2] else first)
            seen.add((path[-2], path[-1]))
        seen.update(zip(path[1:], path[:-1], strict=True))
        return path

    for i in wanted.tolist():
        if len(links[i]) == 0:
            found.append([i])
        elif len(links[i]) != 2:
            found += [walk(i, j) for j in sorted(links[i]) if (i, j) not in seen]
    for i in wanted.tolist():
        if len(links[i]) == 2 and (i, min(links[i])) not in seen:
            found.append(walk(i, min(links[i])))
    return found


def path_steps(nodes: RidgeNodes, path: Path) -> FloatArray:
    """Distances between the nodes of a path, one after another."""
    return np.asarray(np.linalg.norm(np.diff(nodes.points[path], axis=0), axis=1))


def path_length(nodes: RidgeNodes, path: Path) -> float:
    """Length of a path in bandwidths, step by step."""
    if len(path) < 2:
        return 0.0
    length = nodes.length[path]
    return float((path_steps(nodes, path) / (0.5 * (length[1:] + length[:-1]))).sum())


def simplify(
    branches: list[Path], nodes: RidgeNodes, shortest: float = SHORTEST_BRANCH, merge: float = _MERGE_BANDWIDTHS
) -> list[Path]:
    """Remove small loops, ways between junctions shorter than ``merge`` bandwidths, spurs and fragments."""
    while True:
        before = len(branches)
        branches = _merge_pairs(_remove_loops(branches, nodes))
        branches = _merge_pairs(_contract_junctions(branches, nodes, merge))
        branches = _merge_pairs(_remove_spurs(branches, nodes, shortest))
        if len(branches) == before:
            return _remove_fragments(branches, nodes, shortest)


def degrees(branches: list[Path]) -> dict[int, int]:
    """Number of branch ends at each node; a ring that touches nothing has two at its beginning."""
    count: dict[int, int] = {}
    for path in branches:
        for end in (path[0], path[-1]):
            count[end] = count.get(end, 0) + 1
    return count


def _remove_loops(branches: list[Path], nodes: RidgeNodes) -> list[Path]:
    """Open small loops where they are sparsest."""
    length = [path_length(nodes, path) for path in branches]
    around: dict[int, list[int]] = {}
    for number, path in enumerate(branches):
        for end in {path[0], path[-1]}:
            around.setdefault(end, []).append(number)
    count, gone = degrees(branches), set[int]()
    for number in sorted(range(len(branches)), key=lambda i: (nodes.log_density[branches[i]].min(), i)):
        a, b = branches[number][0], branches[number][-1]
        if length[number] >= _LEAST_LOOP or (count[a] < 3 and count[b] < 3):
            continue
        if _detour(branches, length, around, gone | {number}, a, b, _LEAST_LOOP - length[number]):
            gone.add(number)
    return [path for number, path in enumerate(branches) if number not in gone]


def _detour(
    branches: list[Path],
    length: list[float],
    around: dict[int, list[int]],
    barred: set[int],
    a: int,
    b: int,
    longest: float,
) -> bool:
    """Whether a path from a to b without the barred branches is shorter than ``longest``, by Dijkstra's search."""
    heap, done = [(0.0, a)], set[int]()
    while heap:
        way, node = heappop(heap)
        if node == b:
            return True
        if node in done:
            continue
        done.add(node)
        for number in around[node]:
            path = branches[number]
            other = path[-1] if path[0] == node else path[0]
            if number not in barred and way + length[number] < longest:
                heappush(heap, (way + length[number], other))
    return False


def _contract_junctions(branches: list[Path], nodes: RidgeNodes, merge: float) -> list[Path]:
    """Make one junction of two that a short branch joins, at its densest node; the shortest branches come first."""
    count = degrees(branches)
    inner = [len(path) > 1 and min(count[path[0]], count[path[-1]]) >= 3 for path in branches]
    short = [
        (length, number)
        for number, path in enumerate(branches)
        if inner[number] and (length := path_length(nodes, path)) < merge
    ]
    name: dict[int, int] = {}
    gone = set[int]()
    for _, number in sorted(short):
        a, b = branches[number][0], branches[number][-1]
        if a not in name and b not in name:
            gone.add(number)
            name[a] = name[b] = max(branches[number], key=lambda i: (nodes.log_density[i], -i))
    kept = [path for number, path in enumerate(branches) if number not in gone]
    return [path if len(path) == 1 else _rename_ends(path, name) for path in kept]


def _rename_ends(path: Path, name: dict[int, int]) -> Path:
    return [name.get(path[0], path[0]), *path[1:-1], name.get(path[-1], path[-1])]


def _merge_pairs(branches: list[Path]) -> list[Path]:
    """Join branches that meet in pairs to one."""
    links: dict[int, list[tuple[int, bool]]] = {}
    for number, path in enumerate(branches):
        if len(path) > 1:
            links.setdefault(path[0], []).append((number, True))
            links.setdefault(path[-1], []).append((number, False))
    alive = dict(enumerate(branches))
    for node in list(links):
        if len(links[node]) != 2:
            continue
        (p, p_first), (q, q_first) = links[node]
        if p == q:
            continue  # a ring
        head = alive[p][::-1] if p_first else alive[p]
        tail = alive[q] if q_first else alive[q][::-1]
        alive[p] = head + tail[1:]
        del alive[q]
        del links[node]
        for end, first in ((alive[p][0], True), (alive[p][-1], False)):
            old = {p, q}
            links[end] = [entry for entry in links[end] if entry[0] not in old]
            links[end].append((p, first))
        if alive[p][0] == alive[p][-1]:
            end = alive[p][0]
            links[end] = [e for e in links[end] if e[0] != p] + [(p, True), (p, False)]
    return list(alive.values())


def _remove_spurs(branches: list[Path], nodes: RidgeNodes, shortest: float) -> list[Path]:
    """Take the shortest spur off each junction that has any."""
    count = degrees(branches)
    worst: dict[int, tuple[float, int]] = {}
    for number, path in enumerate(branches):
        free = [count[path[0]] == 1, count[path[-1]] == 1]
        if len(path) > 1 and sum(free) == 1:
            junction, length = path[-1] if free[0] else path[0], path_length(nodes, path)
            if count[junction] >= 3 and length < shortest:
                worst[junction] = min(worst.get(junction, (np.inf, -1)), (length, number))
    gone = {number for _, number in worst.values()}
    return [path for number, path in enumerate(branches) if number not in gone]


def _remove_fragments(branches: list[Path], nodes: RidgeNodes, shortest: float) -> list[Path]:
    """Remove short branches free at both ends and short rings that touch nothing, but for the longest of all."""
    count = degrees(branches)
    alone = [
        count[path[0]] == 1 == count[path[-1]] or len(path) == 1 or (path[0] == path[-1] and count[path[0]] == 2)
        for path in branches
    ]
    length = [path_length(nodes, path) for path in branches]
    keep = [not free or size >= shortest for free, size in zip(alone, length, strict=True)]
    if not any(keep):
        best = min(range(len(branches)), key=lambda i: (-length[i], branches[i][0]))
        keep[best] = True
    return [path for path, stays in zip(branches, keep, strict=True) if stays]
