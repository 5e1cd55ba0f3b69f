"""The generative topographic mapping: a grid of latent nodes mapped to Gaussians on a smooth surface.

    p(t) = 1/K Σ_k p(t | y(x_k)),        y(x) = φ(x) W                      (3.4), (3.8)

The model is a product of choices made elsewhere: a map (which carries its latent space), a noise and a
penalty. Here is what remains: the E-step in blocks of rows, the EM step, and what the posterior says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise
from math import prod
from operator import add
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
from scipy.sparse import csr_matrix

from prinfold._arrays import Rows, Selection, blas_on_one_thread, work_through
from prinfold._typing import FloatArray, IntArray
from prinfold.algorithms.maps import BasisMap
from prinfold.algorithms.noise import (
    FactoredNoise,
    GappyNoise,
    LevelledNoise,
    Nodes,
    Noise,
    Parameters,
    Posterior,
    Statistics,
    SweepingNoise,
    WeighingNoise,
)
from prinfold.algorithms.penalties import Penalty
from prinfold.algorithms.pruning import Batch, Hint, Part, plan, plan_once, whole
from prinfold.kernels.responsibilities import levelled_weights, relative_weights
from prinfold.latent import LatentSpace

_GROWTH = 1.1
"""Factor by which steps are stretched further after each that went well."""


@dataclass(frozen=True)
class GTMModel:
    """What stays fixed during training."""

    surface: BasisMap
    noise: Noise
    penalty: Penalty

    @property
    def monotone(self) -> bool:
        """Whether training never lowers the objective."""
        return True

    def begin(self, rows: Rows, parameters: Any) -> Any:
        """State after a first look at the rows."""
        return begin(self, rows, parameters)

    def step(self, rows: Rows, state: Any, relaxation: float = 1.0) -> Any:
        """State after one more iteration of training."""
        return step(self, rows, state, relaxation)

    def measure(self, state: Any) -> dict[str, float]:
        """What the history records of a state."""
        return measure(self, state)

    def visit(self, rows: Rows, parameters: Any, take: Take) -> None:
        """Hand all rows to ``take`` with what the posterior says of them; here each stands for itself."""
        visit_each(self, rows, parameters, take)

    def finish(self, rows: Rows, state: Any) -> Any:
        """The state that training ends with, its sums those of all rows under its parameters."""
        return state


class State(NamedTuple):
    """Parameters, the statistics of the data under them, what the E-step remembers, and how far to stretch a step."""

    parameters: Parameters
    statistics: Statistics
    hint: Hint = Hint()
    stretch: float = 1.0


def begin(model: GTMModel, rows: Rows, parameters: Parameters) -> State:
    """First E-step."""
    return State(parameters, *e_step(model, rows, parameters, Hint()))


def step(model: GTMModel, rows: Rows, state: State, relaxation: float = 1.0) -> State:
    """One EM iteration: new parameters from the sums, then the sums under those parameters; see :func:`relaxed`."""
    with blas_on_one_thread():  # the systems are small: threads would cost more than they give
        proposed = model.noise.m_step(model.surface, state.statistics, model.penalty, state.parameters)

    def look(parameters: Parameters, stretch: float) -> State:
        return State(parameters, *e_step(model, rows, parameters, state.hint), stretch)

    found: State = relaxed(state, proposed, relaxation, model.noise.stretched, look, partial(measure, model))
    return found


def relaxed(
    state: Any,
    proposed: Any,
    relaxation: float,
    stretched: Callable[[Any, Any, float], Any],
    look: Callable[[Any, float], Any],
    measured: Callable[[Any], dict[str, float]],
) -> Any:
    """The state that ``look`` finds at the parameters ``proposed`` by EM, or further on, by ``stretched``.

    EM creeps along flat ridges of the likelihood in small steps of steady direction. With ``relaxation`` above 1
    a step is stretched, by a tenth more each time up to that factor, for as long as the objective does not
    fall; if it would, the step is taken again as EM proposes it, and stretching starts over
    (Salakhutdinov & Roweis, 2003). The objective therefore never gets worse, with or without.
    """
    growing = min(_GROWTH * state.stretch, relaxation)
    if state.stretch > 1.0:
        ahead = look(stretched(state.parameters, proposed, state.stretch), growing)
        if measured(ahead)["objective"] >= measured(state)["objective"]:
            return ahead
        growing = min(_GROWTH, relaxation)
    return look(proposed, growing)


class Fitted(Protocol):
    """Parameters with the statistics of the data under them."""

    @property
    def parameters(self) -> Parameters: ...
    @property
    def statistics(self) -> Any: ...


def measure(model: GTMModel, state: Fitted) -> dict[str, float]:
    """Penalised log-likelihood per row, which EM never lowers; the log-likelihood alone; the noise variance."""
    parameters, sums = state.parameters, state.statistics
    cost = parameters.cost(model.surface, model.penalty)
    return {
        "objective": (sums.log_likelihood - cost) / sums.total,
        "log_likelihood": sums.log_likelihood / sums.total,
        "noise": 1.0 / parameters.level,
    }


def e_step(model: GTMModel, rows: Rows, parameters: Parameters, hint: Hint) -> tuple[Statistics, Hint]:
    """The sums over all rows, part by part. The full matrix of responsibilities never exists.

    Rows that come in portions are gone after each: their sums are what is left, and each portion is planned by itself.
    """
    nodes = model.noise.prepare(model.surface, parameters, rows.table.dtype.type)
    if rows.at_hand:
        return _planned_sums(model, rows, nodes, parameters, hint)
    anew = hint.for_new_rows()
    total = reduce(add, (_planned_sums(model, each, nodes, parameters, anew)[0] for each in rows.portions()))
    return total, hint.without_rows()


def _planned_sums(
    model: GTMModel, rows: Rows, nodes: Nodes, parameters: Parameters, hint: Hint
) -> tuple[Statistics, Hint]:
    parts, hint = plan(model.surface, model.noise, nodes, rows, parameters.weights, hint)
    return sum_parts(model, rows, nodes, parts), hint


def summarise(model: GTMModel, rows: Rows, parameters: Parameters) -> Statistics:
    """The sums over all rows with every node: the dense E-step, to which the planned one is held."""
    nodes = model.noise.prepare(model.surface, parameters, rows.table.dtype.type)
    return sum_parts(model, rows, nodes, whole(rows))


def sum_parts(model: GTMModel, rows: Rows, nodes: Nodes, parts: Sequence[Part | Batch]) -> Statistics:
    """The sums over some parts."""
    workers = work_through(lambda: _Summer(model, rows, nodes), parts, _n_entries(parts, nodes))
    first, *rest = (worker.sums.statistics() for worker in workers)
    total: Statistics = sum(rest, first)
    return total


class _Pass:
    """One thread's share of a pass over rows, with buffers of its own: fresh ones would be paged in every time."""

    def __init__(self, model: GTMModel, rows: Rows, nodes: Nodes) -> None:
        self.model, self.rows, self.nodes = model, rows, nodes
        self.buffer = np.empty(0, dtype=rows.table.dtype)

    def load(self, chosen: Selection) -> Any:
        """Rows as the noise wants them."""
        return self.model.noise.load(self.rows.block(chosen), self.rows.block_errors(chosen))

    def _loaded(self, chosen: Selection) -> Any:
        """The same for those who change nothing; a table of one block is made ready once for all passes."""
        if isinstance(chosen, slice) and chosen == slice(0, self.rows.n_rows):
            return self.rows.remembered(self.model.noise, lambda: self.load(chosen))
        return self.load(chosen)

    def _loaded_batch(self, chosen: Selection) -> Any:
        """The same as ``load``; by compiled code where there is some, which other threads need not wait for."""
        noise, rows = self.model.noise, self.rows
        if hasattr(noise, "load_chosen") and rows.plain and not isinstance(chosen, slice):
            return noise.load_chosen(rows, chosen)
        return self.load(chosen)

    def posterior(self, part: Part) -> tuple[Any, Posterior]:
        """Rows as the noise wants them, and their responsibilities by (3.7), up to the division by the sum."""
        loaded = self._loaded(part.rows)
        n_nodes = len(self.nodes.centres)
        work = self._room(self.model.noise.n_layers, len(loaded), n_nodes if part.near is None else len(part.near))
        total, log_sum = self._weigh(loaded, part.near, work)
        return loaded, Posterior(work[0], total, log_sum - np.log(n_nodes), work[1:])

    def _room(self, *shape: int) -> FloatArray:
        size = prod(shape)
        if self.buffer.size < size:
            self.buffer = np.empty(size, dtype=self.buffer.dtype)
        return self.buffer[:size].reshape(shape)

    def _weigh(self, loaded: Any, near: IntArray | None, work: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Fill ``work[0]`` with weights; returns their sums and log Σ p(t | node), (n,) each."""
        if not hasattr(self.model.noise, "levelled_log_density"):
            own = self.model.noise.log_density(loaded, self.nodes, near, work)
            largest, total = relative_weights(work[0])
            return total, own + largest + np.log(total)
        noise = cast(LevelledNoise, self.model.noise)
        with np.errstate(over="ignore", invalid="ignore"):  # rows of which this comes true are found and computed anew
            constant = noise.levelled_log_density(loaded, self.nodes, near, work)
            total, far = levelled_weights(work[0], noise.exponential(work.dtype))
            log_sum = constant + np.log(total, dtype=np.float64)
        if len(far):  # rows far from every node, or much nearer to one than the noise would have them
            # In double precision: squares of what is so far away may be too large for single.
            again = np.empty((len(work), len(far), work.shape[2]))
            own = noise.log_density(loaded[far].astype(np.float64), self.nodes, near, again)
            largest, total[far] = relative_weights(again[0])
            log_sum[far] = own + largest + np.log(total[far])
            most = float(np.finfo(work.dtype).max)
            work[:, far] = np.clip(again, -most, most)
        return total, log_sum


class _Summer(_Pass):
    """Adds parts to the sums of an E-step."""

    def __init__(self, model: GTMModel, rows: Rows, nodes: Nodes) -> None:
        super().__init__(model, rows, nodes)
        self.sums = model.noise.sums(nodes)

    def add(self, part: Part | Batch) -> None:
        if isinstance(part, Batch):
            loaded, weight = self._loaded_batch(part.rows), self.rows.block_weight(part.rows)
            groups = part.cuts, part.near, part.near_cuts
            cast(SweepingNoise, self.model.noise).sweep(self.sums, loaded, weight, self.nodes, groups)
            return
        loaded, posterior = self.posterior(part)
        self.model.noise.statistics(self.sums, loaded, self.rows.block_weight(part.rows), posterior, part.near)


class _Visitor(_Pass):
    """Hands over what it finds of each part."""

    def __init__(self, model: GTMModel, rows: Rows, nodes: Nodes, take: Take) -> None:
        super().__init__(model, rows, nodes)
        self.take = take

    def add(self, part: Part | Batch) -> None:
        if isinstance(part, Batch):
            self._hand_over(part)
            return
        self.take(part.rows, *self.posterior(part), part.near, self.nodes)

    def _hand_over(self, batch: Batch) -> None:
        """Group by group, of what was weighed together."""
        loaded, groups = self._loaded_batch(batch.rows), (batch.cuts, batch.near, batch.near_cuts)
        weights, total, log_sum = cast(WeighingNoise, self.model.noise).weigh(loaded, self.nodes, groups)
        log_likelihood, end = log_sum - np.log(len(self.nodes.centres)), 0
        for some, (a, b) in zip(pairwise(batch.cuts), pairwise(batch.near_cuts), strict=True):
            rows = slice(*some)
            begin, end = end, end + (rows.stop - rows.start) * (b - a)
            posterior = Posterior(weights[begin:end].reshape(-1, b - a), total[rows], log_likelihood[rows])
            self.take(cast(IntArray, batch.rows)[rows], loaded[rows], posterior, batch.near[a:b], self.nodes)


Take = Callable[[Selection, Any, Posterior, IntArray | None, Any], None]
"""Takes some rows, as they are and as loaded, their posterior, the nodes it is about or None for all, and all nodes."""

Reduction = Callable[[Posterior, IntArray | None], FloatArray]


def log_likelihood(model: GTMModel, rows: Rows, parameters: Parameters, dtype: Any = None) -> FloatArray:
    """(n,) log p(t), in the precision of the rows or the one named."""
    kind = rows.table.dtype if dtype is None else np.dtype(dtype)
    least = float(np.finfo(kind).min)  # single precision may not reach as low as a row lies far
    return _per_row(model, rows, parameters, lambda posterior, _: np.maximum(posterior.log_likelihood, least), (), kind)


def responsibilities(model: GTMModel, rows: Rows, parameters: Parameters) -> FloatArray:
    """(n, K) posterior weight of each node for each row."""
    n_nodes = model.surface.latent.n_nodes

    def spread(posterior: Posterior, near: IntArray | None) -> FloatArray:
        if near is None:
            return _weights(posterior)
        out = np.zeros((len(posterior.total), n_nodes), dtype=posterior.relative.dtype)
        out[:, near] = _weights(posterior)
        return out

    return _per_row(model, rows, parameters, spread, (n_nodes,))


def sparse_responsibilities(model: GTMModel, rows: Rows, parameters: Parameters, threshold: float) -> csr_matrix:
    """(n, K) posterior weights of at least ``threshold``, as a sparse matrix."""
    found: list[tuple[Selection, IntArray, IntArray, FloatArray]] = []

    def collect(some: Selection, loaded: Any, posterior: Posterior, near: IntArray | None, nodes: Nodes) -> None:
        weight = _weights(posterior)
        large = weight >= threshold
        column = np.nonzero(large)[1]
        column = (column if near is None else near[column]).astype(np.int32)
        found.append((some, large.sum(axis=1), column, weight[large]))

    model.visit(rows, parameters, collect)
    return _joined(found, (rows.n_rows, model.surface.latent.n_nodes), rows.table.dtype)


def _joined(
    found: list[tuple[Selection, IntArray, IntArray, FloatArray]], shape: tuple[int, int], dtype: Any
) -> csr_matrix:
    """One sparse matrix of rows, how many entries each has, their columns and values; ``found`` is used up.

    Entries go straight to their places: by way of triplets all of this would take more than twice the memory.
    """
    ends = np.zeros(shape[0] + 1, dtype=np.int64)
    for rows, counts, _, _ in found:
        ends[1:][rows] = counts
    np.cumsum(ends, out=ends)
    index = np.int32 if ends[-1] < 2**31 else np.int64
    columns, values = np.empty(ends[-1], dtype=index), np.empty(ends[-1], dtype=dtype)
    while found:
        rows, counts, column, value = found.pop()
        at = np.repeat(ends[:-1][rows] - (np.cumsum(counts) - counts), counts) + np.arange(len(column))
        columns[at], values[at] = column, value
    return csr_matrix((values, columns, ends.astype(index)), shape=shape)


def posterior_mean(model: GTMModel, rows: Rows, parameters: Parameters) -> FloatArray:
    """(n, Q) mean of the posterior over latent space."""
    latent = model.surface.latent
    return _per_row(
        model, rows, parameters, lambda p, near: latent.mean(p.relative, near, p.total), (latent.n_columns,)
    )


def posterior_mode(model: GTMModel, rows: Rows, parameters: Parameters) -> FloatArray:
    """(n, Q) the node with the largest responsibility."""
    latent = model.surface.latent
    return _per_row(model, rows, parameters, lambda p, near: _mode(latent, p, near), (latent.n_columns,))


def heaviest_nodes(model: GTMModel, rows: Rows, parameters: Parameters) -> FloatArray:
    """(n, 2) number of the node with the largest responsibility, and that responsibility, in double precision."""

    def heaviest(posterior: Posterior, near: IntArray | None) -> FloatArray:
        at = posterior.relative.argmax(axis=1)
        largest = posterior.relative[np.arange(len(at)), at] / posterior.total
        return np.stack([at if near is None else near[at], largest], axis=1)

    return _per_row(model, rows, parameters, heaviest, (2,), np.float64)


def posterior_covariance(model: GTMModel, rows: Rows, parameters: Parameters) -> FloatArray:
    """(n, Q, Q) spread of the posterior about its mean."""
    latent = model.surface.latent

    def spread(posterior: Posterior, near: IntArray | None) -> FloatArray:
        weight = _weights(posterior)
        return latent.covariance(weight, latent.mean(weight, near), near)

    return _per_row(model, rows, parameters, spread, (latent.n_columns, latent.n_columns))


def mode_distance(model: GTMModel, rows: Rows, parameters: Parameters) -> FloatArray:
    """(n,) distance along latent space from posterior mean to posterior mode: large for several modes (3.3)."""
    latent = model.surface.latent

    def apart(posterior: Posterior, near: IntArray | None) -> FloatArray:
        return latent.distance(latent.mean(posterior.relative, near, posterior.total), _mode(latent, posterior, near))

    return _per_row(model, rows, parameters, apart, ())


def row_scales(model: GTMModel, rows: Rows, parameters: Parameters) -> FloatArray:
    """(n,) posterior mean of what a noise with tails multiplies the precision of each row by, its first layer."""

    def expected(posterior: Posterior, near: IntArray | None) -> FloatArray:
        assert posterior.layers is not None
        scale: FloatArray = posterior.layers[0]
        return np.asarray(np.einsum("nk,nk->n", posterior.relative, scale) / posterior.total)

    return _per_row(model, rows, parameters, expected, ())


def _weights(posterior: Posterior) -> FloatArray:
    return posterior.relative / posterior.total[:, None]


def _mode(latent: LatentSpace, posterior: Posterior, near: IntArray | None) -> FloatArray:
    nodes = latent.nodes if near is None else latent.nodes[near]
    return np.asarray(nodes[posterior.relative.argmax(axis=1)])


def completion(model: GTMModel, rows: Rows, parameters: Parameters) -> tuple[FloatArray, FloatArray]:
    """(n, D) expectation of every cell given what was measured of its row, about the data's centre; and its variance.

    The noise of ``model`` must be one that takes gaps.
    """
    noise = cast(GappyNoise, model.noise)
    mean, variance = np.empty((2, *rows.table.shape))

    def complete(some: Selection, loaded: Any, posterior: Posterior, near: IntArray | None, nodes: Nodes) -> None:
        mean[some], variance[some] = noise.complete(loaded, posterior, nodes, near)

    model.visit(rows, parameters, complete)
    return mean, variance


def factor_means(model: GTMModel, rows: Rows, parameters: Parameters) -> FloatArray:
    """(n, q) expectation of the factors of each row. The noise of ``model`` must be one that has factors."""
    noise = cast(FactoredNoise, model.noise)
    found = np.empty((rows.n_rows, noise.n_factors), dtype=rows.table.dtype)

    def find(some: Selection, loaded: Any, posterior: Posterior, near: IntArray | None, nodes: Nodes) -> None:
        found[some] = noise.factor_means(loaded, posterior, nodes)

    model.visit(rows, parameters, find)
    return found


def sample(model: GTMModel, parameters: Parameters, n: int, rng: np.random.Generator) -> tuple[FloatArray, IntArray]:
    """n rows drawn from the density, about the data's centre, with the node each came from."""
    node = rng.integers(model.surface.latent.n_nodes, size=n)
    if hasattr(model.noise, "node_shares"):  # nodes that are not alike
        shares = model.noise.node_shares(model.surface, parameters)
        node = rng.choice(len(shares), size=n, p=shares)
    return model.noise.draw(model.surface, parameters, node, rng), node


def _per_row(
    model: GTMModel,
    rows: Rows,
    parameters: Parameters,
    reduce_part: Reduction,
    shape: tuple[int, ...],
    kind: Any = None,
) -> FloatArray:
    """Fill an (n, *shape) array with what ``reduce_part`` makes of each part's posterior."""
    out = np.empty((rows.n_rows, *shape), dtype=rows.table.dtype if kind is None else kind)

    def write(some: Selection, loaded: Any, posterior: Posterior, near: IntArray | None, nodes: Nodes) -> None:
        out[some] = reduce_part(posterior, near)

    model.visit(rows, parameters, write)
    return out


def visit_each(model: GTMModel, rows: Rows, parameters: Parameters, take: Take) -> None:
    """Hand all rows to ``take``, some at a time and on several threads; each row stands for itself."""
    visit_parts(model, rows, *_prepared(model, rows, parameters), take)


def visit_parts(model: GTMModel, rows: Rows, nodes: Nodes, parts: Sequence[Part | Batch], take: Take) -> None:
    """Hand some parts to ``take``, on several threads."""
    work_through(lambda: _Visitor(model, rows, nodes, take), parts, _n_entries(parts, nodes))


def _prepared(model: GTMModel, rows: Rows, parameters: Parameters) -> tuple[Nodes, Sequence[Part | Batch]]:
    nodes = model.noise.prepare(model.surface, parameters, rows.table.dtype.type)
    return nodes, plan_once(model.surface, model.noise, nodes, rows, parameters.weights)


def _n_entries(parts: Sequence[Part | Batch], nodes: Nodes) -> int:
    """About how many responsibilities a pass computes."""
    return sum(part.n_entries(len(nodes.centres)) for part in parts)
