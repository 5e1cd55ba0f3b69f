"""Passes over the rows of a table: some rows at a time, with the nodes that matter to them, to sums or to a taker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any, cast

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.gtm.node_selection import Part, RowBatch
from prinfold.gtm.noise.protocol import LevelledNoise, Nodes, Noise, Posterior, SweepingNoise, WeighingNoise
from prinfold.gtm.softmax import levelled_weights, relative_weights
from prinfold.rows.rows import Rows, Selection

Take = Callable[[Selection, Any, Posterior, IntArray | None, Any], None]
"""Takes some rows, as they are and as loaded, their posterior, the nodes it is about or None for all, and all nodes."""


class Pass:
    """One thread's share of a pass over rows, with buffers of its own: fresh ones would be paged in every time."""

    def __init__(self, noise: Noise, rows: Rows, nodes: Nodes) -> None:
        self.noise, self.rows, self.nodes = noise, rows, nodes
        self.buffer = np.empty(0, dtype=rows.table.dtype)

    def load(self, chosen: Selection) -> Any:
        """Rows as the noise wants them."""
        return self.noise.load(self.rows.block(chosen), self.rows.block_errors(chosen))

    def _loaded(self, chosen: Selection) -> Any:
        """The same for those who change nothing; a table of one block is made ready once for all passes."""
        if isinstance(chosen, slice) and chosen == slice(0, self.rows.n_rows):
            return self.rows.remembered(self.noise, lambda: self.load(chosen))
        return self.load(chosen)

    def _loaded_batch(self, chosen: Selection) -> Any:
        """The same as ``load``; by compiled code where there is some, which other threads need not wait for."""
        noise, rows = self.noise, self.rows
        if hasattr(noise, "load_chosen") and rows.plain and not isinstance(chosen, slice):
            return noise.load_chosen(rows, chosen)
        return self.load(chosen)

    def posterior(self, part: Part) -> tuple[Any, Posterior]:
        """Rows as the noise wants them, and their responsibilities by (3.7), up to the division by the sum."""
        loaded = self._loaded(part.rows)
        n_nodes = len(self.nodes.centres)
        work = self._room(self.noise.n_layers, len(loaded), n_nodes if part.near is None else len(part.near))
        total, log_sum = self._weigh(loaded, part.near, work)
        return loaded, Posterior(work[0], total, log_sum - np.log(n_nodes), work[1:])

    def _room(self, *shape: int) -> FloatArray:
        size = prod(shape)
        if self.buffer.size < size:
            self.buffer = np.empty(size, dtype=self.buffer.dtype)
        return self.buffer[:size].reshape(shape)

    def _weigh(self, loaded: Any, near: IntArray | None, work: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Fill ``work[0]`` with weights; returns their sums and log Σ p(t | node), (n,) each."""
        if not hasattr(self.noise, "levelled_log_density"):
            own = self.noise.log_density(loaded, self.nodes, near, work)
            largest, total = relative_weights(work[0])
            return total, own + largest + np.log(total)
        noise = cast(LevelledNoise, self.noise)
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


class Summer(Pass):
    """Adds parts to the sums of an E-step."""

    def __init__(self, noise: Noise, rows: Rows, nodes: Nodes) -> None:
        super().__init__(noise, rows, nodes)
        self.sums = noise.sums(nodes)

    def add(self, part: Part | RowBatch) -> None:
        if isinstance(part, RowBatch):
            loaded, weight = self._loaded_batch(part.rows), self.rows.block_weight(part.rows)
            groups = part.cuts, part.near, part.near_cuts
            cast(SweepingNoise, self.noise).sweep(self.sums, loaded, weight, self.nodes, groups)
            return
        loaded, posterior = self.posterior(part)
        self.noise.statistics(self.sums, loaded, self.rows.block_weight(part.rows), posterior, part.near)


class Visitor(Pass):
    """Hands over what it finds of each part."""

    def __init__(self, noise: Noise, rows: Rows, nodes: Nodes, take: Take) -> None:
        super().__init__(noise, rows, nodes)
        self.take = take

    def add(self, part: Part | RowBatch) -> None:
        if isinstance(part, RowBatch):
            self._hand_over(part)
            return
        self.take(part.rows, *self.posterior(part), part.near, self.nodes)

    @cached_property
    def _by_node(self) -> Any:
        return cast(WeighingNoise, self.noise).by_node(self.nodes)

    def _hand_over(self, batch: RowBatch) -> None:
        """Group by group, of what was weighed together."""
        loaded, groups = self._loaded_batch(batch.rows), (batch.cuts, batch.near, batch.near_cuts)
        noise = cast(WeighingNoise, self.noise)
        weights, total, log_sum = noise.weigh(loaded, self.nodes, self._by_node, groups)
        log_likelihood, end = log_sum - np.log(len(self.nodes.centres)), 0
        for some, (a, b) in zip(pairwise(batch.cuts), pairwise(batch.near_cuts), strict=True):
            rows = slice(*some)
            begin, end = end, end + (rows.stop - rows.start) * (b - a)
            posterior = Posterior(weights[begin:end].reshape(-1, b - a), total[rows], log_likelihood[rows])
            self.take(cast(IntArray, batch.rows)[rows], loaded[rows], posterior, batch.near[a:b], self.nodes)


def n_entries(parts: Sequence[Part | RowBatch], nodes: Nodes) -> int:
    """About how many responsibilities a pass computes."""
    return sum(part.n_entries(len(nodes.centres)) for part in parts)
