"""Which nodes matter for which rows: the plan of a pass over the data.

Once a map has unfolded, a row has a dozen nodes with any responsibility to speak of. Rows are gathered
into groups that lie close together in data space, and a noise with a ``bound`` tells for each group which nodes
can matter to any of its rows; the rest are left out. Groups are balls of rows, so they stay valid whatever
the parameters do: only how tight they are depends on when they were made.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, cast

import numpy as np

from prinfold._arrays import Rows, Selection, for_each_block
from prinfold._typing import FloatArray, IntArray
from prinfold.algorithms.maps import BasisMap
from prinfold.algorithms.noise import BoundedNoise, Nodes, Noise

LOST = 1e-9
"""Largest share of a row's likelihood that the nodes left out may hold; so is the loss in nats."""

_WORTH_IT = 2**22
"""Rows × nodes from which a pass is worth planning."""

_NODES_PER_ANCHOR = 9
_ROWS_PER_GROUP = 32
_MOST_ROWS = 512
_USEFUL_SHARE = 0.5
"""Share of row–node pairs left from which pruning no longer pays for its smaller products."""


class Part(NamedTuple):
    """Some rows and the nodes that matter to them; None for all."""

    rows: Selection
    near: IntArray | None

    @property
    def n_rows(self) -> int:
        return self.rows.stop - self.rows.start if isinstance(self.rows, slice) else len(self.rows)


@dataclass(frozen=True)
class Groups:
    """Rows in balls: group g holds rows ``order[starts[g]:starts[g + 1]]``, within ``radius[g]`` of ``centre[g]``."""

    order: IntArray
    starts: IntArray
    centre: FloatArray
    radius: FloatArray

    def rows(self, g: int) -> IntArray:
        return self.order[self.starts[g] : self.starts[g + 1]]


class Hint(NamedTuple):
    """What a pass remembers for the next: the groups, if any were made, and how many passes there were."""

    groups: Groups | None = None
    age: int = 0


def whole(rows: Rows) -> list[Part]:
    """Every row with every node."""
    return [Part(part, None) for part in rows.slices]


def plan(
    surface: BasisMap, noise: Noise, nodes: Nodes, rows: Rows, weights: FloatArray, hint: Hint
) -> tuple[list[Part], Hint]:
    """The parts of a pass, and what to remember.

    Groups are made anew at passes 1, 2, 4, 8, …: early on the surface still moves through the data, later it
    hardly does, and making them costs about a tenth of a pass.
    """
    n_pairs = rows.n_rows * surface.latent.n_nodes
    if n_pairs < _WORTH_IT or not hasattr(noise, "bound") or isinstance(rows.table, np.memmap):
        return whole(rows), hint
    groups = hint.groups
    if hint.age & (hint.age - 1) == 0:  # zero or a power of two
        groups = make_groups(surface, rows, weights)
    after = Hint(groups, hint.age + 1)
    if groups is None:
        return whole(rows), after
    near = near_nodes(cast(BoundedNoise, noise), nodes, groups)
    pairs = np.diff(groups.starts) @ np.array([len(each) for each in near])
    if pairs > _USEFUL_SHARE * n_pairs:
        # Dense for now; not even a bound is computed again before the groups are renewed.
        return whole(rows), Hint(None, hint.age + 1)
    return [Part(groups.rows(g), each) for g, each in enumerate(near)], after


def make_groups(surface: BasisMap, rows: Rows, weights: FloatArray) -> Groups:
    """Gather rows by the nearest of a few anchors on the surface, and within those by distance from it.

    Sorting by distance puts outliers into balls of their own, where they do not swell those of others.
    """
    anchors = _anchors(surface, weights, rows.n_rows)
    half_square = 0.5 * np.einsum("kd,kd->k", anchors, anchors)
    # Single precision for what only sorts rows: these are the only arrays as long as the table.
    label, distance = np.empty(rows.n_rows, dtype=np.int32), np.empty(rows.n_rows, dtype=np.float32)

    def one_block(part: slice) -> None:
        block = rows.block(part).astype(np.float64, copy=False)
        closeness = block @ anchors.T - half_square
        label[part] = closeness.argmax(axis=1)
        distance[part] = np.einsum("nd,nd->n", block, block) - 2 * closeness.max(axis=1)

    for_each_block(one_block, rows.slices)
    order: IntArray = np.asarray(np.lexsort((distance, label)), dtype=np.int32 if rows.n_rows < 2**31 else np.int64)
    starts = _cut(label[order])
    centre, radius = np.empty((len(starts) - 1, rows.n_columns)), np.empty(len(starts) - 1)

    def one_group(g: int) -> None:
        block = rows.block(order[starts[g] : starts[g + 1]]).astype(np.float64, copy=False)
        centre[g] = block.mean(axis=0)
        delta = block - centre[g]
        radius[g] = np.sqrt(np.einsum("nd,nd->n", delta, delta).max())

    for_each_block(one_group, range(len(radius)))
    return Groups(order, starts, centre, radius)


def near_nodes(noise: BoundedNoise, nodes: Nodes, groups: Groups) -> list[IntArray]:
    """For each group, the nodes that may hold more than their share of ``LOST`` of some row's likelihood.

    A node left out has log r_k(t) below log(LOST / K) for every row of the group, so all that are left out
    hold less than LOST together, and the log-likelihood loses less than −log(1 − LOST) of it.
    """
    n_nodes = len(nodes.centres)
    at_once = max(1, 2**20 // n_nodes)
    near: list[IntArray] = []
    for i in range(0, len(groups.radius), at_once):
        bound = noise.bound(nodes, groups.centre[i : i + at_once], groups.radius[i : i + at_once])
        near += [np.flatnonzero(row) for row in bound > np.log(LOST / n_nodes)]
    return near


def _anchors(surface: BasisMap, weights: FloatArray, n_rows: int) -> FloatArray:
    """Images of a coarse lattice over the latent space, fewer than nodes and than groups of rows."""
    wanted = min(surface.latent.n_nodes // _NODES_PER_ANCHOR, n_rows // _ROWS_PER_GROUP)
    per_axis = int(np.ceil(max(wanted, 1) ** (1 / surface.latent.dimension)))
    return surface.point(surface.latent.refined(max(per_axis, 2)).nodes, weights)


def _cut(label: IntArray) -> IntArray:
    """Where groups begin and end among sorted labels; runs longer than the most are cut evenly."""
    edges = np.flatnonzero(np.r_[True, label[1:] != label[:-1], True])
    cuts = [
        np.linspace(a, b, int(np.ceil((b - a) / _MOST_ROWS)) + 1).round().astype(np.intp)[:-1]
        for a, b in pairwise(edges)
    ]
    return np.append(np.concatenate(cuts), len(label))
