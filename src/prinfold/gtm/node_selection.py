"""Nodes that matter for rows: the plan of a pass over the data.

Once a map has unfolded, a row has a dozen nodes with any responsibility to speak of. Rows are gathered
into groups that lie close together in data space, and a noise that can ``bound`` tells for each group which nodes
can matter to any of its rows; the rest are left out. Groups are balls of rows, so they stay valid whatever
the parameters do: only how tight they are depends on when they were made.

Small groups need fewer nodes but cost more calls. A noise with ``compiled`` sums takes many groups in one
call; groups are then made smaller, in jobs that are large enough to wait for the compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import inf
from typing import Any, NamedTuple, TypeAlias, cast, overload

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.gtm.node_bounds import ROUNDING, Balls, NodesOfBalls, leading_axes, split_radii
from prinfold.gtm.noise.protocol import AnyNodes, AnyNoise
from prinfold.rows.rows import Rows, Selection, fill_gaps, for_each_block, row_slices

LOST = 1e-9
"""Largest share of a row's likelihood that the nodes left out may hold; so is the loss in nats."""

_PLAN_FROM = 2**22
"""Rows × nodes from which a pass is worth planning."""

_SWEEP_FROM = 2**24
_SWEEP_AFTER = 4
"""Rows × nodes, and passes, from which compiled sweeps pay: loading the compiler takes as long as a few passes."""

_COMPILE_ONCE_FROM = 2**26
"""The same of a single pass."""

_COMPILE_FROM_ROWS = 2**16
"""Rows of which passes with as many nodes as a map has by default load the compiler anyway, so that those with fewer
nodes before them may as well."""

_NODES_ONCE = 600
"""Nodes from which a single pass is worth planning."""

_PROBED_ROWS = 32
_PROMISING_SHARE = 0.1
"""Rows that are asked beforehand, and the share of nodes that may matter to each: a group needs several times it."""

_NODES_PER_ANCHOR = {False: 9, True: 4}
_ROWS_PER_GROUP = {False: 32, True: 80}
"""Of groups that are computed one by one, and of groups for sweeps."""

_BOUNDS_AT_ONCE = 2**16
"""A chunk of bounds that stays in a core's cache."""

_FEWEST_BOUNDED, _CHUNKS_OF_BOUNDS = 16, 32
"""Groups of a chunk at least, and chunks that are enough for many threads: each is a call or a few."""

_MOST_ROWS = 512
_ROWS_PER_BATCH = 1024
_MOST_BATCHES, _MOST_BATCH_ROWS = 64, 8192
"""A call for each batch is made by the interpreter, for which threads wait: of many rows there are as many batches as
a large machine has work for, and of very many rows as many as do not fill its caches."""

_DENSE_PAIRS, _FEWEST_DENSE_ROWS = 2**18, 128
"""Responsibilities of a group with every node, which fit into a core's cache, and the fewest rows of one."""

_SCATTER_LEFT_OUT = 0.005
_MOST_AXES = 16
"""Axes within which the nodes lie but for this share of their scatter; more of them would not tighten a bound."""

_USEFUL_SHARE = 0.5
"""Share of row–node pairs left from which pruning no longer pays for its smaller products."""


Bound: TypeAlias = Callable[[Any, Balls, float], FloatArray]
"""(G, K) bounds on the log responsibility of each node for any row of each ball."""


class Part(NamedTuple):
    """Some rows and the nodes that matter to them; None for all."""

    rows: Selection
    near: IntArray | None

    @property
    def n_rows(self) -> int:
        return self.rows.stop - self.rows.start if isinstance(self.rows, slice) else len(self.rows)

    def n_entries(self, n_nodes: int) -> int:
        """Number of responsibilities that it takes."""
        return self.n_rows * (n_nodes if self.near is None else len(self.near))


class RowBatch(NamedTuple):
    """Groups for one sweep: ``rows[cuts[g]:cuts[g + 1]]`` with nodes ``near[near_cuts[g]:near_cuts[g + 1]]``.

    ``n_pairs`` is how many responsibilities it takes.
    """

    rows: Selection
    cuts: IntArray
    near: IntArray
    near_cuts: IntArray
    n_pairs: int

    def n_entries(self, n_nodes: int) -> int:
        """Number of responsibilities that it takes."""
        return self.n_pairs


@dataclass(frozen=True)
class RowGroups:
    """Rows in balls: group g holds rows ``order[starts[g]:starts[g + 1]]``; ``fine`` groups are for sweeps."""

    order: IntArray
    starts: IntArray
    balls: Balls
    fine: bool = False

    def __len__(self) -> int:
        return len(self.starts) - 1

    def rows(self, g: int) -> IntArray:
        return self.order[self.starts[g] : self.starts[g + 1]]

    @cached_property
    def runs(self) -> list[slice]:
        """Groups that are swept in one call; they serve many passes."""
        return _runs(self.starts)


class Near(NamedTuple):
    """Nodes that matter to each group: ``nodes[cuts[g]:cuts[g + 1]]``."""

    nodes: IntArray
    cuts: IntArray


@dataclass(frozen=True)
class RowBatches(Sequence[RowBatch]):
    """Groups that follow each other, some at a time; a slice of them is one batch.

    A batch is put together by the thread that takes it: all other threads would wait for one that made all of them.
    """

    groups: RowGroups
    near: Near

    def __len__(self) -> int:
        return len(self.groups.runs)

    @overload
    def __getitem__(self, index: int) -> RowBatch: ...
    @overload
    def __getitem__(self, index: slice) -> list[RowBatch]: ...
    def __getitem__(self, index: int | slice) -> RowBatch | list[RowBatch]:
        if isinstance(index, slice):
            begin, end, _ = index.indices(len(self))
            return [self._joined(begin, end)] if begin < end else []
        return self._joined(index, index + 1)

    def _joined(self, begin: int, end: int) -> RowBatch:
        runs, n_pairs = self.groups.runs, int(self.n_pairs[begin:end].sum())
        some = slice(runs[begin].start, runs[end - 1].stop)
        starts, cuts = self.groups.starts[some.start : some.stop + 1], self.near.cuts[some.start : some.stop + 1]
        rows, nodes = self.groups.order[starts[0] : starts[-1]], self.near.nodes[cuts[0] : cuts[-1]]
        return RowBatch(rows, starts - starts[0], nodes, cuts - cuts[0], n_pairs)

    @cached_property
    def n_pairs(self) -> IntArray:
        """Number of responsibilities that each batch takes."""
        before = np.append(0, np.cumsum(np.diff(self.groups.starts) * np.diff(self.near.cuts)))
        return np.diff(before[[0, *(some.stop for some in self.groups.runs)]])


def entries(parts: Sequence[Part | RowBatch], n_nodes: int) -> Sequence[int] | IntArray:
    """Numbers of responsibilities that parts take."""
    return parts.n_pairs if isinstance(parts, RowBatches) else [part.n_entries(n_nodes) for part in parts]


class Hint(NamedTuple):
    """A hint from one pass to the next: the groups, if any were made, and how many passes there were."""

    groups: RowGroups | None = None
    age: int = 0

    def for_new_rows(self) -> Hint:
        """A hint for rows that were never at hand: groups are made anew, for sweeps once these pay."""
        return Hint(None, _SWEEP_AFTER if self.age >= _SWEEP_AFTER else 0)

    def without_rows(self) -> Hint:
        """The hint that is left of a pass whose rows are gone."""
        return Hint(None, self.age + 1)


def whole(rows: Rows) -> list[Part]:
    """Every row with every node."""
    return [Part(part, None) for part in rows.slices]


def plan_every_node(noise: AnyNoise, nodes: AnyNodes, rows: Rows) -> Sequence[Part | RowBatch]:
    """Every row with every node for a pass of sums, compiled where that pays."""
    large = rows.n_rows * len(nodes.centers) >= _COMPILE_ONCE_FROM
    return _dense(nodes, rows, large and _sums_at_once(noise))


def plan_every_node_once(noise: AnyNoise, nodes: AnyNodes, rows: Rows) -> Sequence[Part | RowBatch]:
    """Every row with every node for a single pass that asks for weights, compiled where that pays."""
    large = rows.n_rows * len(nodes.centers) >= _COMPILE_ONCE_FROM
    return _dense(nodes, rows, large and noise.capabilities.compiled_weights is not None)


def plan(
    surface: BasisMap,
    noise: AnyNoise,
    nodes: AnyNodes,
    rows: Rows,
    weights: FloatArray,
    hint: Hint,
    sweeps: bool = True,
) -> tuple[Sequence[Part | RowBatch], Hint]:
    """The parts of a pass, and what to remember. The first are in parts, later ones with ``sweeps`` may be in batches.

    Groups are made anew at passes 1, 2, 4, 8, …: early on the surface still moves through the data, later it
    hardly does, and making them costs about a tenth of a pass.
    """
    n_pairs = rows.n_rows * surface.latent.n_nodes
    bound = _bound_for(noise, rows, n_pairs)
    if bound is None:
        return (plan_every_node(noise, nodes, rows) if sweeps else whole(rows)), hint
    compiled = sweeps and _pays_to_compile(rows, n_pairs, hint) and noise.capabilities.compiled is not None
    groups = hint.groups
    if hint.age & (hint.age - 1) == 0:  # zero or a power of two
        groups = make_groups(surface, rows, weights, compiled)
    after = Hint(groups, hint.age + 1)
    if groups is None:
        return _dense(nodes, rows, compiled and _sums_at_once(noise)), after
    near = near_nodes(noise, nodes, groups)
    if np.diff(groups.starts) @ np.diff(near.cuts) > _USEFUL_SHARE * n_pairs:
        # Dense for now; not even a bound is computed again before the groups are renewed.
        return _dense(nodes, rows, compiled and _sums_at_once(noise)), Hint(None, hint.age + 1)
    return RowBatches(groups, near) if groups.fine else _parts(groups, near), after


def _pays_to_compile(rows: Rows, n_pairs: int, hint: Hint) -> bool:
    """Whether a pass of a training is worth the compiler, which is loaded once."""
    small = n_pairs < _SWEEP_FROM and rows.n_rows < _COMPILE_FROM_ROWS
    return n_pairs >= _COMPILE_ONCE_FROM or (
        not small and (hint.age >= _SWEEP_AFTER or rows.n_rows >= _COMPILE_FROM_ROWS)
    )


def _bound_for(noise: AnyNoise, rows: Rows, n_pairs: int) -> Bound | None:
    """The bound to go by; None where it leaves out little, or rows cannot be picked without reading them all."""
    return noise.capabilities.bound if n_pairs >= _PLAN_FROM and not isinstance(rows.table, np.memmap) else None


def plan_once(
    surface: BasisMap, noise: AnyNoise, nodes: AnyNodes, rows: Rows, weights: FloatArray
) -> Sequence[Part | RowBatch]:
    """The parts of a single pass, whose groups serve no other, so that it takes more nodes to be worth them."""
    n_nodes = surface.latent.n_nodes
    n_pairs = rows.n_rows * n_nodes
    bound = _bound_for(noise, rows, n_pairs)
    if bound is None or n_nodes < _NODES_ONCE or _share_of_nodes(bound, nodes, rows) > _PROMISING_SHARE:
        return plan_every_node_once(noise, nodes, rows)
    compiled = noise.capabilities.compiled_weights is not None and n_pairs >= _COMPILE_ONCE_FROM
    return plan(surface, noise, nodes, rows, weights, Hint(None, _SWEEP_AFTER if compiled else 0), compiled)[0]


def _share_of_nodes(bound: Bound, nodes: AnyNodes, rows: Rows) -> float:
    """Share of the nodes that matters to a row, by the mean of a few: bounds of balls without a radius are exact."""
    some = np.unique(np.linspace(0, rows.n_rows - 1, _PROBED_ROWS).astype(np.intp))
    center = rows.block(some).astype(np.float64, copy=False)
    nil, none = np.zeros(len(some)), np.empty((rows.n_columns, 0))
    found = bound(nodes, Balls(center, nil, none, nil, nil), -inf)
    return float((~(found <= np.log(LOST / found.shape[1]))).mean())


def _sums_at_once(noise: AnyNoise) -> bool:
    """Whether the noise gains by compiled sums over every node too."""
    sums = noise.capabilities.compiled
    return sums is not None and sums.dense


def _dense(nodes: AnyNodes, rows: Rows, compiled: bool) -> Sequence[Part | RowBatch]:
    """Every row with every node; compiled in groups whose responsibilities stay in a core's cache."""
    if not compiled:
        return whole(rows)
    n_nodes, known = len(nodes.centers), dict[int, tuple[IntArray, IntArray, IntArray]]()
    at_once = max(_FEWEST_DENSE_ROWS, _DENSE_PAIRS // n_nodes)
    batches = []
    for part in rows.slices:
        n = part.stop - part.start
        if n not in known:
            cuts = np.append(np.arange(0, n, at_once), n)
            near = np.tile(np.arange(n_nodes), len(cuts) - 1)
            known[n] = cuts, near, np.arange(len(cuts)) * n_nodes
        batches.append(RowBatch(part, *known[n], n * n_nodes))
    return batches


def grouped(
    surface: BasisMap, noise: AnyNoise, nodes: AnyNodes, rows: Rows, weights: FloatArray
) -> tuple[RowGroups, list[Part]]:
    """Rows in groups whatever their number, with the nodes that matter to each; fine ones where sweeps would pay.

    Rows with gaps are gathered as if those were filled, and keep all nodes, as those of a noise without bounds do.
    """
    can = noise.capabilities
    fine = can.compiled is not None and rows.n_rows * surface.latent.n_nodes >= _SWEEP_FROM
    groups = make_groups(surface, fill_gaps(rows), weights, fine)
    if can.bound is not None and not rows.gaps:
        return groups, _parts(groups, near_nodes(noise, nodes, groups))
    every = np.arange(surface.latent.n_nodes)
    return groups, [Part(groups.rows(g), every) for g in range(len(groups))]


def fastest_parts(groups: RowGroups, parts: Sequence[Part]) -> Sequence[Part | RowBatch]:
    """The parts of groups as they are computed fastest."""
    if not groups.fine:
        return parts
    near = [cast(IntArray, part.near) for part in parts]
    return RowBatches(groups, Near(np.concatenate(near), np.append(0, np.cumsum([len(each) for each in near]))))


def _parts(groups: RowGroups, near: Near) -> list[Part]:
    return [Part(groups.rows(g), near.nodes[a:b]) for g, (a, b) in enumerate(pairwise(near.cuts))]


def make_groups(surface: BasisMap, rows: Rows, weights: FloatArray, fine: bool = False) -> RowGroups:
    """Gather rows by the nearest of a few anchors on the surface, and within those by distance from it.

    Sorting by distance puts outliers into balls of their own, where they do not swell those of others.
    """
    anchors = _anchors(surface, weights, rows.n_rows, fine)
    frame = _axes_of(anchors, fine)
    # Single precision for what only sorts rows: these are the only arrays as long as the table.
    label, distance = np.empty(rows.n_rows, dtype=np.int32), np.empty(rows.n_rows, dtype=np.float32)
    find_nearest = (_nearest_compiled if fine else _nearest)(rows, anchors, frame)
    parts = row_slices(rows.n_rows, _rows_at_once(rows.n_rows)) if fine and rows.plain else rows.slices
    for_each_block(lambda part: find_nearest(part, label[part], distance[part]), parts)
    order = _sort_by_label(label, distance)
    starts = _cut(label[order])
    n_groups = len(starts) - 1
    center, radii = np.empty((n_groups, rows.n_columns)), np.empty((3, n_groups))
    seen = np.empty((rows.n_rows, frame.shape[1]), dtype=np.float32) if fine else None
    unit = float(np.abs(anchors).max()) or 1.0

    def some_groups(part: slice) -> None:
        cuts = starts[part.start : part.stop + 1]
        chosen = order[cuts[0] : cuts[-1]]
        if seen is not None:
            from prinfold.gtm._node_bounds_jit import measure_balls  # compiled, as the sweep that follows will be

            found = center[part], radii[:, part], seen[cuts[0] : cuts[-1]]
            measure_balls(*_read_by_number(rows, chosen), cuts - cuts[0], frame, ROUNDING, unit, *found)
            return
        block = rows.block(chosen).astype(np.float64, copy=False)
        sizes, begin = np.diff(cuts), cuts[:-1] - cuts[0]
        center[part] = np.add.reduceat(block, begin, axis=0) / sizes[:, None]
        delta = block - np.repeat(center[part], sizes, axis=0)
        radii[:, part] = split_radii(delta, begin, frame)

    for_each_block(some_groups, _runs(starts))
    return RowGroups(order, starts, Balls(center, radii[0], frame, radii[1], radii[2], seen, starts, unit), fine)


NearestAnchor = Callable[[slice, IntArray, FloatArray], None]
"""Writes for rows of a slice which anchor is nearest, and the square of its distance."""


def _nearest(rows: Rows, anchors: FloatArray, frame: FloatArray) -> NearestAnchor:
    half_square = 0.5 * np.einsum("kd,kd->k", anchors, anchors)

    def find(part: slice, label: IntArray, distance: FloatArray) -> None:
        block = rows.block(part).astype(np.float64, copy=False)
        closeness = block @ anchors.T - half_square
        label[:] = closeness.argmax(axis=1)
        with np.errstate(over="ignore"):  # the farthest may well be infinitely far
            distance[:] = np.einsum("nd,nd->n", block, block) - 2 * closeness.max(axis=1)

    return find


def _nearest_compiled(rows: Rows, anchors: FloatArray, frame: FloatArray) -> NearestAnchor:
    """The same along the axes within which anchors lie: which of two is the nearer hardly depends on the others."""
    from prinfold.gtm._node_bounds_jit import nearest_anchors  # compiled, as the sweep that follows will be

    middle = anchors.mean(axis=0)
    places = (anchors - middle) @ frame if frame.shape[1] else anchors - middle
    offset, unit = rows.offset + middle, float(np.abs(places).max()) or 1.0

    def find(part: slice, label: IntArray, distance: FloatArray) -> None:
        given = (rows.table[part], offset) if rows.plain else (rows.block(part), middle)
        nearest_anchors(*given, frame, places, unit, label, distance)

    return find


def _read_by_number(rows: Rows, chosen: IntArray) -> tuple[FloatArray, IntArray, FloatArray]:
    """A table, the numbers of some of its rows, and what is to be taken off them: the table itself if it is plain."""
    if rows.plain:
        return rows.table, chosen, rows.offset
    return rows.block(chosen), np.arange(len(chosen), dtype=chosen.dtype), np.zeros(rows.n_columns)


def near_nodes(noise: AnyNoise, nodes: AnyNodes, groups: RowGroups) -> Near:
    """For each group, the nodes that may hold more than their share of ``LOST`` of some row's likelihood.

    A node left out has log r_k(t) below its bound for every row of the group. Those left out have bounds below
    log(LOST / K) each, or bounds whose exponentials sum to less than LOST, so that they hold less than LOST
    together, and the log-likelihood loses less than −log(1 − LOST) of it.
    """
    at_once = max(1, min(_BOUNDS_AT_ONCE // len(nodes.centers), max(_FEWEST_BOUNDED, len(groups) // _CHUNKS_OF_BOUNDS)))
    chunks = [slice(i, min(i + at_once, len(groups))) for i in range(0, len(groups), at_once)]
    found: dict[int, tuple[IntArray, IntArray]] = {}
    find = _finder(noise, nodes, groups)

    def one_chunk(some: slice) -> None:
        found[some.start] = find(some)

    for_each_block(one_chunk, chunks)
    near, counts = zip(*(found[some.start] for some in chunks), strict=True)
    return Near(np.concatenate(near), np.append(0, np.cumsum(np.concatenate(counts))))


def _finder(noise: AnyNoise, nodes: AnyNodes, groups: RowGroups) -> NodesOfBalls:
    """How nodes that matter are found: in one compiled call for many groups where the noise can, or by its bounds."""
    can, negligible = noise.capabilities, float(np.log(LOST / (2 * len(nodes.centers))))
    if groups.balls.seen is not None and can.near is not None:
        return can.near(nodes, groups.balls, LOST)
    bound = can.bound
    assert bound is not None
    return lambda some: _keep(bound(nodes, groups.balls.select(some), negligible), groups.fine)


def _keep(bound: FloatArray, fine: bool) -> tuple[IntArray, IntArray]:
    """Nodes that groups keep, given bounds (G, K) on their log shares, and how many each keeps."""
    if fine:
        from prinfold.gtm._node_bounds_jit import keep_near  # compiled, as the sweep that follows will be

        return keep_near(bound, LOST)
    of_group, node = np.nonzero(~(bound <= np.log(LOST / bound.shape[1])))  # what is no number bounds nothing
    return node, np.bincount(of_group, minlength=len(bound))


def _axes_of(points: FloatArray, fine: bool) -> FloatArray:
    """The few axes along which a surface extends; none where it takes too many.

    Where rows are known by radii alone, half of all columns are too many: radii within and beside them gain nothing.
    """
    some, D = points[:: max(1, len(points) // 256)], points.shape[1]
    return leading_axes(some, _SCATTER_LEFT_OUT, min(_MOST_AXES, D if fine else D // 2))


def _anchors(surface: BasisMap, weights: FloatArray, n_rows: int, fine: bool) -> FloatArray:
    """Images of a coarse lattice over the latent space, fewer than nodes and than groups of rows."""
    wanted = min(surface.latent.n_nodes // _NODES_PER_ANCHOR[fine], n_rows // _ROWS_PER_GROUP[fine])
    per_axis = int(np.ceil(max(wanted, 1) ** (1 / surface.latent.dimension)))
    return surface.point(surface.latent.refined(max(per_axis, 2)).nodes, weights)


def _sort_by_label(label: IntArray, distance: FloatArray) -> IntArray:
    """(n,) the order of rows by label, and of those with the same one by distance.

    Both go into one whole number, which is sorted ten times as fast as two keys are: no thread can help meanwhile.
    """
    bits = distance.view(np.uint32)
    negative = bits >> 31 == 1  # numbers below zero have the first bit, and the larger the nearer to zero
    ordered = np.where(negative, ~bits, bits | np.uint32(2**31)).astype(np.uint64)
    order = np.argsort(label.astype(np.uint64) << np.uint64(32) | ordered)
    return order.astype(np.int32 if len(order) < 2**31 else np.int64)


def _runs(starts: IntArray) -> list[slice]:
    """Groups that follow each other, about as many rows at a time as a block has; of very many rows, more."""
    n_rows = int(starts[-1])
    wanted = np.linspace(0, n_rows, max(1, -(-n_rows // _rows_at_once(n_rows))) + 1)
    return [slice(int(a), int(b)) for a, b in pairwise(np.unique(np.searchsorted(starts, wanted)))]


def _rows_at_once(n_rows: int) -> int:
    return int(np.clip(n_rows / _MOST_BATCHES, _ROWS_PER_BATCH, _MOST_BATCH_ROWS))


def _cut(label: IntArray) -> IntArray:
    """Bounds of groups among sorted labels; runs longer than the most are cut evenly."""
    edges = np.flatnonzero(np.r_[True, label[1:] != label[:-1], True])
    first, length = edges[:-1], np.diff(edges)
    pieces = -(-length // _MOST_ROWS)
    which = np.repeat(np.arange(len(first)), pieces)
    place = np.arange(len(which)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    cuts = (first[which] + place * (length / pieces)[which]).round().astype(np.intp)
    return np.append(cuts, len(label))
