"""Passes over the rows of a table: some rows at a time, with the nodes that matter to them, for sums or a callback."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.gtm.node_selection import Part, RowBatch
from prinfold.gtm.noise.protocol import AnyNodes, AnyNoise, AnyStatistics, Groups, GroupWeights, Posterior
from prinfold.gtm.softmax import leveled_weights, relative_weights
from prinfold.rows.rows import Rows, Selection, numbers_of, some_of

Take = Callable[[Selection, Any, Posterior, IntArray | None, Any], None]
"""Takes some rows, as they are and as loaded, their posterior, the nodes it is about or None for all, and all nodes."""


TakeGroups = Callable[[Selection, Any, Groups, Any], None]
"""Takes many groups of rows at once, as they are and as loaded, the nodes of each group, and all nodes."""


class Pass:
    """One thread's share of a pass over rows, with buffers of its own: fresh ones would be paged in every time."""

    def __init__(self, noise: AnyNoise, rows: Rows, nodes: AnyNodes) -> None:
        self.noise, self.rows, self.nodes, self.can = noise, rows, nodes, noise.capabilities
        self.buffer = np.empty(0, dtype=rows.table.dtype)

    def load(self, chosen: Selection) -> Any:
        """Rows in the form that the noise uses."""
        return self.noise.load(self.rows.block(chosen), self.rows.block_errors(chosen))

    def _load_once(self, chosen: Selection) -> Any:
        """Rows in the form that the noise uses, read-only; a table of one block is loaded once for all passes."""
        if isinstance(chosen, slice) and chosen == slice(0, self.rows.n_rows):
            return self.rows.get_or_make(self.noise, lambda: self.load(chosen))
        return self.load(chosen)

    def _load_batch(self, chosen: Selection) -> Any:
        """Rows loaded by compiled code where there is some, which releases the interpreter's lock; else as ``load``."""
        if self.can.load_chosen is not None and self.rows.plain:
            return self.can.load_chosen(self.rows, numbers_of(chosen))
        return self.load(chosen)

    def posterior(self, part: Part) -> tuple[Any, Posterior]:
        """Loaded rows, and their responsibilities by (3.7), up to the division by the sum."""
        loaded = self._load_once(part.rows)
        n_nodes = len(self.nodes.centers)
        work = self._work(self.nodes.n_layers, len(loaded), n_nodes if part.near is None else len(part.near))
        total, log_sum = self._weigh(loaded, part.near, work)
        return loaded, Posterior(work[0], total, log_sum - np.log(n_nodes), work[1:])

    def _work(self, *shape: int) -> FloatArray:
        size = prod(shape)
        if self.buffer.size < size:
            self.buffer = np.empty(size, dtype=self.buffer.dtype)
        return self.buffer[:size].reshape(shape)

    def _weigh(self, loaded: Any, near: IntArray | None, work: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Fill ``work[0]`` with weights; returns their sums and log Σ p(t | node), (n,) each."""
        scaled = self.can.scaled
        if scaled is None:
            own = self.nodes.log_density(loaded, near, work)
            largest, total = relative_weights(work[0])
            return total, own + largest + np.log(total)
        with np.errstate(over="ignore", invalid="ignore"):  # rows of which this comes true are found and computed anew
            constant = scaled.log_density(self.nodes, loaded, near, work)
            total, far = leveled_weights(work[0], scaled.exponential(work.dtype))
            log_sum = constant + np.log(total, dtype=np.float64)
        if len(far):  # rows far from every node, or much nearer to one than the noise would have them
            # In double precision: squares of what is so far away may be too large for single.
            again = np.empty((len(work), len(far), work.shape[2]))
            own = self.nodes.log_density(loaded[far].astype(np.float64), near, again)
            largest, total[far] = relative_weights(again[0])
            log_sum[far] = own + largest + np.log(total[far])
            most = float(np.finfo(work.dtype).max)
            work[:, far] = np.clip(again, -most, most)
        return total, log_sum


class Summer(Pass):
    """Adds parts to the sums of an E-step."""

    def __init__(self, noise: AnyNoise, rows: Rows, nodes: AnyNodes) -> None:
        super().__init__(noise, rows, nodes)
        self._begin()

    def _begin(self) -> None:
        self.compiled = None if self.can.compiled is None else self.can.compiled.empty_sums(self.nodes)
        self.sums = self.nodes.empty_sums() if self.compiled is None else self.compiled

    def add(self, part: Part | RowBatch) -> None:
        if isinstance(part, RowBatch):
            self._add_groups(part.rows, (part.cuts, part.near, part.near_cuts))
            return
        loaded, posterior = self.posterior(part)
        self.sums.add(loaded, self.rows.block_weight(part.rows), posterior, part.near)

    def _add_groups(self, chosen: Selection, groups: Groups) -> None:
        assert self.can.compiled is not None
        assert self.compiled is not None
        add_rows = self.can.compiled.add_rows
        if add_rows is not None and self.rows.plain:
            add_rows(self.compiled, self.rows, numbers_of(chosen), groups)
            return
        self.compiled.add_groups(self._load_batch(chosen), self.rows.block_weight(chosen), groups)

    def take_sum(self) -> AnyStatistics:
        found: AnyStatistics = self.sums.statistics()
        self._begin()
        return found


class Visitor(Pass):
    """Hands the posterior of each part to ``take``; batches of groups go whole to ``take_groups``, if there is one."""

    def __init__(
        self, noise: AnyNoise, rows: Rows, nodes: AnyNodes, take: Take, take_groups: TakeGroups | None = None
    ) -> None:
        super().__init__(noise, rows, nodes)
        self.take, self.take_groups = take, take_groups

    def add(self, part: Part | RowBatch) -> None:
        if isinstance(part, RowBatch):
            self._visit_groups(part)
            return
        self.take(part.rows, *self.posterior(part), part.near, self.nodes)

    @cached_property
    def _group_weights(self) -> GroupWeights[Any]:
        assert self.can.compiled_weights is not None
        return self.can.compiled_weights(self.nodes)

    def _visit_groups(self, batch: RowBatch) -> None:
        """Hand over a batch, whose groups were weighed together, group by group."""
        loaded, groups = self._load_batch(batch.rows), (batch.cuts, batch.near, batch.near_cuts)
        if self.take_groups is not None:
            self.take_groups(batch.rows, loaded, groups, self.nodes)
            return
        weights, total, log_sum = self._group_weights(loaded, groups)
        log_likelihood, end = log_sum - np.log(len(self.nodes.centers)), 0
        for some, (a, b) in zip(pairwise(batch.cuts), pairwise(batch.near_cuts), strict=True):
            rows = slice(*some)
            begin, end = end, end + (rows.stop - rows.start) * (b - a)
            posterior = Posterior(weights[begin:end].reshape(-1, b - a), total[rows], log_likelihood[rows])
            self.take(some_of(batch.rows, rows), loaded[rows], posterior, batch.near[a:b], self.nodes)
