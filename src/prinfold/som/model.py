"""Training of self-organising maps: winners of rows, and batch and online steps (Kohonen).

A node k at place p_k of latent space has a codebook vector w_k in data space. A row is won by the node whose vector is
nearest, over the columns that the row has. Batch training moves every vector to the kernel mean of what its
neighbourhood has won (:func:`prinfold.som.node_surface.update`); online training moves vectors after every row
(:mod:`prinfold.som._online_jit`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, cast

import numpy as np
import scipy.sparse

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.base.starting_points import distinct_rows, principal_axes, principal_nodes
from prinfold.devices.nearest_nodes import nearest_sums
from prinfold.devices.softmax_sums import NodeLoading
from prinfold.latent import LatentSpace
from prinfold.rows.device_rows import DeviceRows, copy_to_device
from prinfold.rows.rows import Rows, blas_on_one_thread, for_each_block, sum_through
from prinfold.som.neighborhoods import Neighborhood
from prinfold.som.node_surface import NodeWins, places_of, update
from prinfold.som.schedules import Schedule

_WORTH_SENDING = 2**20
"""Rows × nodes from which an epoch is faster on a device than it takes to get there and back."""

_COMPILE_FROM = 2**24
"""Rows × nodes from which compiled passes pay: loading the compiler takes as long as some epochs."""

_NO_WEIGHTS = np.empty(0)
"""Of rows that all count once."""

_LAST_WIDTH = 0.5
"""Node spacings that a neighbourhood has in the end, as a standard deviation. Wider ones leave the map stiffer than the
rows that nodes win ask for; with narrower ones the surface between nodes is a stair."""

_NARROWEST_WIDTH = 1e-100
"""Node spacings within which a node is alone, as it is within anything less."""


@dataclass(frozen=True, eq=False)
class SOMProblem:
    """Fixed parts of a training: centred rows, latent space, neighbourhood, schedules of width and rate."""

    rows: Rows
    latent: LatentSpace
    neighborhood: Neighborhood
    width: Schedule
    rate: Schedule
    spread: float
    """Mean squared distance of the rows from their mean, the unit of errors."""

    @cached_property
    def places(self) -> FloatArray:
        """(K, e) places of the nodes, in node spacings."""
        return places_of(self.latent)


class SOMState(NamedTuple):
    """A map in training.

    A batch step made ``codebook`` (K, D) from the wins ``made_from`` with a neighbourhood of ``width``; ``wins`` are
    those of that codebook. Online steps keep neither. ``error`` is the mean squared distance of the rows from their
    winners, in online steps at the time each row is visited.
    """

    codebook: FloatArray
    made_from: NodeWins | None
    width: float
    wins: NodeWins | None
    error: float
    epoch: int


# ------------------------------------------------------------------------------------------------------- winners


class _Assignment:
    """One thread's share of a pass in which every row goes to the nearest node."""

    def __init__(self, rows: Rows, codebook: FloatArray) -> None:
        K, D = codebook.shape
        self.rows, self.shapes = rows, ((K, D if rows.gaps else 1), (K, D))
        self.search = NodeSearch(codebook, rows)
        self.compiled = rows.plain and rows.n_rows * K >= _COMPILE_FROM
        self._begin()

    def _begin(self) -> None:
        self.won, self.error = NodeWins(*map(np.zeros, self.shapes)), 0.0

    def add(self, part: slice) -> None:
        if self.compiled:
            from prinfold.som._batch_jit import add_rows_won  # loads numba, which small jobs never need

            weight = self.rows.block_weight(part)
            given = self.rows.table[part], self.rows.offset, _NO_WEIGHTS if weight is None else weight
            self.error += add_rows_won(*given, self.search.loading, *self.won)
            return
        block, weight = self.rows.block(part), self.rows.block_weight(part)
        n, (mass, sums) = len(block), self.won
        w = np.ones(n) if weight is None else weight
        seen, block = self.search.split(block)
        scores = self.search.scores(block, seen)
        winner = scores.argmax(axis=1)
        # A row has a one in the column of its winner; the product adds up the rows of each node.
        belongs = scipy.sparse.csr_matrix((w, winner, np.arange(n + 1)), shape=(n, len(sums))).T
        sums += belongs @ block
        mass += belongs @ (np.ones((n, 1)) if seen is None else seen.astype(np.float64))
        squares = np.einsum("nd,nd->n", block, block, dtype=np.float64)
        self.error += float(w @ np.maximum(squares - 2.0 * scores[np.arange(n), winner], 0.0))

    def take_sum(self) -> _WonRows:
        found = _WonRows(self.won, self.error)
        self._begin()
        return found


@dataclass(frozen=True)
class _WonRows:
    """Sums of the rows that each node wins, and of their squared distances from their winners."""

    won: NodeWins
    error: float

    def __add__(self, other: _WonRows) -> _WonRows:
        mass, sums = (a + b for a, b in zip(self.won, other.won, strict=True))
        return _WonRows(NodeWins(mass, sums), self.error + other.error)


class NodeSearch:
    """Scores of nodes for rows: x·w_k − ½‖w_k‖² over the columns seen, the highest being that of the nearest node."""

    def __init__(self, codebook: FloatArray, rows: Rows) -> None:
        self.columns = np.ascontiguousarray(codebook.T, dtype=rows.table.dtype)
        self.half = 0.5 * np.square(self.columns)
        self.total = self.half.sum(axis=0)
        self.gaps = rows.gaps
        self.room = np.empty((rows.block_rows, codebook.shape[0]), dtype=rows.table.dtype)

    @cached_property
    def loading(self) -> FloatArray:
        """(K, D + 1) nodes and −½‖w_k‖², as compiled code reads them."""
        return np.column_stack([self.columns.T, -self.total])

    def split(self, block: FloatArray) -> tuple[FloatArray | None, FloatArray]:
        """(n, D) mask of the cells that have values, None if all have, and the rows with 0 in missing cells."""
        if not self.gaps:
            return None, block
        seen = ~np.isnan(block)
        return seen.astype(block.dtype), np.where(seen, block, 0.0).astype(block.dtype, copy=False)

    def scores(self, block: FloatArray, seen: FloatArray | None) -> FloatArray:
        """(n, K) scores of the nodes, in memory that the next call overwrites."""
        out = np.dot(block, self.columns, out=self.room[: len(block)])
        out -= self.total if seen is None else seen @ self.half
        return out


def assign(rows: Rows, codebook: FloatArray) -> tuple[NodeWins, float]:
    """Sums of the rows that each node wins, and the mean squared distance of rows from their winners."""
    found = rows.sum_portions(PortionWins(codebook))
    return found.won, found.error / rows.total_weight


@dataclass(frozen=True)
class PortionWins:
    """The sums of a portion of rows under a codebook; it can be sent to where the rows are."""

    codebook: FloatArray

    @blas_on_one_thread()
    def __call__(self, rows: Rows) -> _WonRows:
        if rows.device is not None and not rows.gaps and rows.n_rows * len(self.codebook) >= _WORTH_SENDING:
            return _sums_on_device(copy_to_device(rows), self.codebook)
        sizes = [(part.stop - part.start) * len(self.codebook) for part in rows.slices]
        return sum_through(lambda: _Assignment(rows, self.codebook), rows.slices, sizes)


def _sums_on_device(there: DeviceRows, codebook: FloatArray) -> _WonRows:
    """Sums of rows that lie on a device, computed there."""
    device = there.device
    nodes = NodeLoading(device.put(codebook.T), device.put(-0.5 * np.square(codebook).sum(axis=1)))
    with device.memory_named():
        found = nearest_sums(device.xp, there.table, there.weight, nodes)
        mass, moment, score = map(device.total, found)
    won = NodeWins(mass[:, None], np.ascontiguousarray(moment.T))
    return _WonRows(won, max(float(there.squares.sum()) - 2.0 * float(score), 0.0))


def winners(rows: Rows, codebook: FloatArray, n_best: int = 1) -> IntArray:
    """(n, n_best) the nearest nodes of each row, the nearest first."""
    n_best = min(n_best, len(codebook))
    found = np.empty((rows.n_rows, n_best), dtype=np.intp)

    def of_block(part: slice) -> None:
        search = NodeSearch(codebook, rows)
        seen, block = search.split(rows.block(part))
        scores = search.scores(block, seen)
        for place in range(n_best):
            best = scores.argmax(axis=1)
            found[part, place] = best
            scores[np.arange(len(best)), best] = -np.inf

    for_each_block(of_block, rows.slices)
    return found


def basin_nodes(latent: LatentSpace, near: IntArray, kept: int = 2) -> IntArray:
    """(n, s) nodes ``near`` rows, the nearest first, with neighbours of a nearer one replaced by the nearest.

    Those that remain are local minima of the distance, from which descents differ. Descents from two neighbours may
    differ as well, so that the first ``kept`` always remain.
    """
    found = near.copy()
    for j in range(kept, near.shape[1]):
        beside = np.zeros(len(near), dtype=bool)
        for nearer in near[:, :j].T:
            beside |= are_neighbors(latent, near[:, j], nearer)
        found[beside, j] = near[beside, 0]
    return found


def distances(rows: Rows, codebook: FloatArray, node: IntArray) -> FloatArray:
    """(n,) distance of each row from a node's vector, over the columns that it has."""
    out = np.empty(rows.n_rows)

    def of_block(part: slice) -> None:
        out[part] = np.sqrt(np.nansum(np.square(rows.block(part) - codebook[node[part]]), axis=1))

    for_each_block(of_block, rows.slices)
    return out


# ----------------------------------------------------------------------------------------------------- training


def initial_state(problem: SOMProblem, codebook: FloatArray) -> SOMState:
    """State before the first epoch; its surface is that of a batch step from the initial codebook."""
    won, error = assign(problem.rows, codebook)
    return SOMState(codebook, won, float(problem.width.at(0)), won, error, 0)


def measure(problem: SOMProblem, state: SOMState) -> dict[str, float]:
    """Entries of the history: minus the error as a share of the variance, the error, and the width."""
    share = state.error / problem.spread if problem.spread > 0 else 0.0
    return {"objective": -share, "error": state.error, "width": state.width}


def final_wins(problem: SOMProblem, state: SOMState) -> tuple[NodeWins, NodeWins]:
    """Wins that the surface is made of, and wins of the final codebook.

    After online steps both are the same: the surface is that of a batch step from the final codebook.
    """
    won = assign(problem.rows, state.codebook)[0] if state.wins is None else state.wins
    return won if state.made_from is None else state.made_from, won


class SOMTrainer(Protocol):
    """A way to train: batch or online."""

    @property
    def settles(self) -> bool:
        """Whether epochs at the last width converge, so that training goes on until they do."""

    @property
    def in_passes(self) -> bool:
        """Whether an epoch is a pass in which all rows are alike, as devices and blocks have them."""

    def epoch(self, problem: SOMProblem, rng: np.random.Generator) -> Callable[[SOMState], SOMState]:
        """The step of one epoch, a pass over all rows."""


@dataclass(frozen=True)
class BatchTraining:
    """Every vector becomes the kernel mean of the rows that its neighbourhood has won, GTM thesis (2.23)."""

    settles: bool = True
    in_passes: bool = True

    def epoch(self, problem: SOMProblem, rng: np.random.Generator) -> Callable[[SOMState], SOMState]:
        def step(state: SOMState) -> SOMState:
            width = float(_width_at(problem, state.epoch))
            assert state.wins is not None
            codebook = update(problem.places, state.wins, problem.neighborhood, width, state.codebook)
            won, error = assign(problem.rows, codebook)
            return SOMState(codebook, state.wins, width, won, error, state.epoch + 1)

        return step


@dataclass(frozen=True)
class OnlineTraining:
    """Vectors move after every row. Rows come in random order, each in proportion to its weight."""

    settles: bool = False
    in_passes: bool = False

    def epoch(self, problem: SOMProblem, rng: np.random.Generator) -> Callable[[SOMState], SOMState]:
        X, weight = sorted_rows(problem.rows)
        places = np.ascontiguousarray(problem.places.T)
        sweep = _make_sweep(problem.neighborhood)
        seed = int(rng.integers(2**63))

        def step(state: SOMState) -> SOMState:
            # Each epoch has numbers of its own, so that a step depends on its state alone and training may go on later.
            order = draw_order(weight, np.random.default_rng([seed, state.epoch]))
            now = state.epoch + np.arange(len(order)) / len(order)
            columns, width = np.ascontiguousarray(state.codebook.T), _width_at(problem, now)
            error = sweep(X, order, places, columns, width, problem.rate.at(now)) / len(order)
            return SOMState(np.ascontiguousarray(columns.T), None, float(width[-1]), None, error, state.epoch + 1)

        return step


TRAINERS: dict[str, SOMTrainer] = {"batch": BatchTraining(), "online": OnlineTraining()}
"""Ways to train by name."""


def _width_at(problem: SOMProblem, epoch: float | FloatArray) -> FloatArray:
    """Width of the neighbourhood in an epoch, clipped so that its square neither underflows nor overflows."""
    return np.asarray(np.clip(problem.width.at(epoch), _NARROWEST_WIDTH, 1.0 / _NARROWEST_WIDTH))


def _make_sweep(neighborhood: Neighborhood) -> Callable[..., float]:
    """The compiled sweep, or the plain one for a neighbourhood that was not compiled."""
    from prinfold.som._online_jit import COMPILED_KINDS, sweep, sweep_reference  # imports numba

    kind = COMPILED_KINDS.get(neighborhood.name)
    fast, plain = cast(Callable[..., float], sweep), cast(Callable[..., float], sweep_reference)
    return (lambda *given: plain(*given, neighborhood)) if kind is None else (lambda *given: fast(*given, kind))


def sorted_rows(rows: Rows) -> tuple[FloatArray, FloatArray]:
    """Different centred rows (u, D) in float64, sorted, and their weights (u,): order and repeats do not matter."""
    block = rows.block(slice(None)).astype(np.float64)
    key = np.concatenate([np.nan_to_num(block), np.isnan(block)], axis=1) if rows.gaps else block
    _, first, index = np.unique(key, axis=0, return_index=True, return_inverse=True)
    weight: FloatArray = np.bincount(index.ravel(), weights=rows.weight, minlength=len(first)).astype(np.float64)
    return block[first], weight


def draw_order(weight: FloatArray, rng: np.random.Generator) -> IntArray:
    """(u,) as many rows as there are, in random order, each as often as its share of the weight, to within one.

    With equal weights that is every row once.
    """
    share, n = np.cumsum(weight), len(weight)
    at = (np.arange(n) + rng.random()) / n * share[-1]
    return np.asarray(rng.permutation(np.minimum(np.searchsorted(share, at, side="right"), n - 1)))


# -------------------------------------------------------------------------------------------------------- starts


def principal_start(rows: Rows, latent: LatentSpace, rng: np.random.Generator) -> FloatArray:
    """(K, D) nodes spread over the principal plane."""
    return principal_nodes(latent, principal_axes(rows, latent.n_embedded))


def random_start(rows: Rows, latent: LatentSpace, rng: np.random.Generator) -> FloatArray:
    """(K, D) vectors that are rows, drawn by weight."""
    some, weight = distinct_rows(rows, rng)
    share = np.cumsum(weight)
    at = np.searchsorted(share, rng.random(latent.n_nodes) * share[-1], side="right")
    return np.asarray(some[np.minimum(at, len(some) - 1)], dtype=np.float64)


STARTS: dict[str, Callable[[Rows, LatentSpace, np.random.Generator], FloatArray]] = {
    "pca": principal_start,
    "random": random_start,
}
"""Initial codebooks by name; rows have no gaps."""


# ------------------------------------------------------------------------------------------------------ U-matrix


class UMatrix(NamedTuple):
    """Distances in data space between neighbouring nodes.

    ``edges`` (E, 2) pairs of neighbours, ``lengths`` (E,) the distances between their codebook vectors, ``nodes`` (K,)
    the mean over the edges of each node, nil for a node without any.
    """

    edges: IntArray
    lengths: FloatArray
    nodes: FloatArray


def u_matrix(latent: LatentSpace, codebook: FloatArray) -> UMatrix:
    """The unified distance matrix of a map."""
    edges = latent.edges
    lengths = np.linalg.norm(codebook[edges[:, 0]] - codebook[edges[:, 1]], axis=1)
    ends, both = edges.T.ravel(), np.tile(lengths, 2)
    count = np.bincount(ends, minlength=len(codebook))
    return UMatrix(edges, lengths, np.bincount(ends, both, len(codebook)) / np.maximum(count, 1))


def are_neighbors(latent: LatentSpace, first: IntArray, second: IntArray) -> BoolArray:
    """(n,) whether pairs of nodes are joined by an edge."""
    K = latent.n_nodes
    known = latent.edges[:, 0] * K + latent.edges[:, 1]
    return np.isin(np.minimum(first, second) * K + np.maximum(first, second), known)


def default_width(width: Schedule, latent: LatentSpace, neighborhood: Neighborhood) -> Schedule:
    """The schedule of widths with its defaults: from a quarter of the map to half a node spacing.

    Both are standard deviations of the neighbourhood, so that they mean the same for every kind of neighbourhood.
    """
    unit = neighborhood.spread(latent.dimension)
    extent = float(np.ptp(places_of(latent), axis=0).max())
    return width.resolved(max(0.25 * extent, _LAST_WIDTH) / unit, _LAST_WIDTH / unit)
