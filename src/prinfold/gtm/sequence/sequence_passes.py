"""Passes over sequences, some rows at a time.

Short sequences are taken several at once. One that is longer than a block is walked through block by block, keeping of
each only what came out at its end; on the way back every block is computed anew from there. What a pass holds is then a
few blocks and one row of numbers for each, however long the sequence is, for half as much work again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.gtm.noise.protocol import Posterior
from prinfold.gtm.sequence import hidden_markov as chains
from prinfold.gtm.sequence.hidden_markov import ChainSteps, Counts, relative_emissions, trace
from prinfold.rows.rows import Rows

_COMPILED_FROM = 2000
"""Rows from which on loading the compiler pays."""


def portions(cuts: IntArray, most: int) -> list[slice]:
    """Sequences that follow each other, as many at a time as ``most`` rows hold, or one that is longer."""
    found, start = [], int(cuts[0])
    for end, next_end in zip(cuts[1:-1].tolist(), cuts[2:].tolist(), strict=True):
        if next_end - start > most:
            found.append(slice(start, end))
            start = end
    return [*found, slice(start, int(cuts[-1]))]


def marks(cuts: IntArray) -> BoolArray:
    """(n + 1,) rows that begin a sequence, and the one after the last."""
    found = np.zeros(int(cuts[-1]) + 1, dtype=bool)
    found[cuts] = True
    return found


def _kernels(n_rows: int) -> Any:
    """The module with ``forward``, ``backward`` and ``best_steps`` that suits a job of so many rows."""
    if n_rows < _COMPILED_FROM:
        return chains
    from prinfold.gtm.sequence import _hidden_markov_jit as chain_sweeps  # loads numba, which small jobs never need

    return chain_sweeps


def empty_counts(steps: ChainSteps) -> Counts:
    """Counts of no steps."""
    return Counts(np.zeros(len(steps.share)), np.zeros(1))


class SequenceWalk(ABC):
    """One thread's share of a pass over sequences; ``begins`` are the marks of all rows."""

    def __init__(self, noise: Any, rows: Rows, nodes: Any, begins: BoolArray, steps: ChainSteps) -> None:
        self.noise, self.rows, self.nodes = noise, rows, nodes
        self.begins, self.steps = begins, steps
        self.kernels = _kernels(rows.n_rows)

    @abstractmethod
    def add(self, part: slice) -> None:
        """Walk through whole sequences."""

    def chunks(self, part: slice) -> list[slice]:
        """The rows of a part, a block at a time."""
        at_once = self.rows.block_rows
        return [slice(i, min(i + at_once, part.stop)) for i in range(part.start, part.stop, at_once)]

    def densities(self, some: slice) -> tuple[Any, FloatArray, FloatArray]:
        """Loaded rows, log p(t | node) less a term of each row in the first layer (·, n, K), and (n,) those terms."""
        block = self.rows.block(some).astype(np.float64, copy=False)
        loaded = self.noise.load(block, self.rows.block_errors(some))
        work = np.empty((self.nodes.n_layers, len(block), len(self.nodes.centers)))
        return loaded, work, self.nodes.log_density(loaded, None, work)

    def emissions(self, some: slice) -> tuple[Any, FloatArray, FloatArray]:
        """Loaded rows, emissions relative to the largest of each row, and (n,) the logarithm of that one."""
        loaded, work, own = self.densities(some)
        return loaded, work, own + relative_emissions(work[0], self.steps.least)

    def forward(self, emission: FloatArray, some: slice, before: FloatArray) -> tuple[FloatArray, FloatArray]:
        found: tuple[FloatArray, FloatArray] = self.kernels.forward(emission, self.begins[some], before, self.steps)
        return found

    def ends(self, some: slice) -> BoolArray:
        """(n,) rows that end a sequence."""
        return self.begins[some.start + 1 : some.stop + 1]


class FilteringWalk(SequenceWalk):
    """Hands the posterior of rows given those up to each (filtering) to ``take``, in order."""

    @abstractmethod
    def take(self, some: slice, loaded: Any, posterior: Posterior) -> None:
        """Make use of some rows."""

    def add(self, part: slice) -> None:
        before = np.zeros(len(self.steps.initial))
        for some in self.chunks(part):
            loaded, work, largest = self.emissions(some)
            alpha, scale = self.forward(work[0], some, before)
            before = alpha[-1].copy()
            self.take(some, loaded, Posterior(alpha, np.ones(len(alpha)), np.log(scale) + largest, work[1:]))


class SmoothingWalk(SequenceWalk):
    """Hands the posterior of rows given whole sequences (smoothing) to ``take``, from the end on, and counts steps."""

    def __init__(self, noise: Any, rows: Rows, nodes: Any, begins: BoolArray, steps: ChainSteps) -> None:
        super().__init__(noise, rows, nodes, begins, steps)
        self.counts = empty_counts(steps)

    @abstractmethod
    def take(self, some: slice, loaded: Any, posterior: Posterior) -> None:
        """Make use of some rows."""

    def add(self, part: slice) -> None:
        chunks, after = self.chunks(part), np.zeros(len(self.steps.initial))
        before = [np.zeros(len(self.steps.initial))]
        for some in chunks[:-1]:
            before.append(self.forward(self.emissions(some)[1][0], some, before[-1])[0][-1].copy())
        for some, past in zip(reversed(chunks), reversed(before), strict=True):
            loaded, work, largest = self.emissions(some)
            alpha, scale = self.forward(work[0], some, past)
            given = self.rows.block_weight(some)
            weight = np.ones(len(alpha)) if given is None else given.astype(np.float64, copy=False)
            self.kernels.backward(work[0], self.ends(some), scale, weight, alpha, after, self.steps, self.counts)
            self.take(some, loaded, Posterior(alpha, np.ones(len(alpha)), np.log(scale) + largest, work[1:]))


class PathWalk(SequenceWalk):
    """Writes the nodes of the likeliest path through each sequence into ``path`` (n,)."""

    def __init__(
        self, noise: Any, rows: Rows, nodes: Any, begins: BoolArray, steps: ChainSteps, path: IntArray
    ) -> None:
        super().__init__(noise, rows, nodes, begins, steps)
        self.path = path

    def add(self, part: slice) -> None:
        chunks, best = self.chunks(part), np.zeros(len(self.steps.initial))
        before = []
        for some in chunks[:-1]:
            before.append(best.copy())
            self._best_origins(some, best)
        before.append(best)
        came: IntArray | None = None
        for some, past in zip(reversed(chunks), reversed(before), strict=True):
            ends, later = self.ends(some).copy(), came
            came, tops = self._best_origins(some, past)
            if later is not None and not ends[-1]:  # the path goes on, and the first row after these says from where
                ends[-1], tops[-1] = True, later[0, self.path[some.stop]]
            self.path[some] = trace(came, ends, tops)

    def _best_origins(self, some: slice, best: FloatArray) -> tuple[IntArray, IntArray]:
        """Origins and ends of the likeliest paths; ``best`` of the row before becomes that of the last row."""
        _, work, _ = self.densities(some)
        found: tuple[IntArray, IntArray] = self.kernels.best_steps(work[0], self.begins[some], best, self.steps)
        return found
