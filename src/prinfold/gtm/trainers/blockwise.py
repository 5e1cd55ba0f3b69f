"""Training block by block, thesis 6.6: blocks of rows, the model under training, and its last pass.

The parameters move between one block and the next, so that no two blocks are seen under the same ones. What a state
has of each block is what was found when it was last visited: ``log_likelihood`` adds up what every block scored just
then, under the parameters that the visit began with. As the parameters come to rest this comes to the
log-likelihood itself, and where training ends a last E-step over all rows puts the true one in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from prinfold._typing import IntArray
from prinfold.gtm import model as gtm
from prinfold.gtm.noise.protocol import AnyStatistics
from prinfold.loops import Outcome
from prinfold.rows.rows import Rows
from prinfold.rows.tree_sums import tree_sum

T = TypeVar("T")


@dataclass(frozen=True)
class BlockedModel(gtm.GTMModel):
    """A GTM that is trained block by block; its objective lags behind and may fall."""

    @property
    def monotone(self) -> bool:
        return False


def blocks_of(rows: Rows, n_blocks: int) -> Iterator[Rows]:
    """Rows b, b + B, b + 2B, … make block b, so that each has something of all, even where rows are sorted.

    They are views. What lies on disk is read in one piece instead, and what is read block by block comes as it does.
    """
    if not rows.at_hand:
        yield from rows.portions()
        return
    n = min(n_blocks, rows.n_rows)
    cuts = np.linspace(0, rows.n_rows, n + 1).round().astype(int)
    for b in range(n):
        yield some_rows(rows, slice(cuts[b], cuts[b + 1]) if isinstance(rows.table, np.memmap) else slice(b, None, n))


def some_rows(rows: Rows, chosen: slice | IntArray) -> Rows:
    """The rows chosen, with their weights and errors."""
    of_rows = {name: getattr(rows, name) for name in ("weight", "errors")}
    kept = {name: each[chosen] for name, each in of_rows.items() if each is not None}
    return replace(rows, table=rows.table[chosen], **kept)


def sum_statistics(statistics: Iterable[AnyStatistics]) -> AnyStatistics:
    """The sum of the statistics of several blocks."""
    return tree_sum(statistics)


def with_final_pass(
    loop: Callable[..., Outcome[T]], finish: Callable[[T], T], measure: Callable[[T], dict[str, float]]
) -> Callable[..., Outcome[T]]:
    """The loop followed by ``finish``; the last entry of the history is then of the state that this gives."""

    def run(**settings: Any) -> Outcome[T]:
        outcome = loop(**settings)
        if outcome.failure is not None:  # another pass would fail as well
            return outcome
        clock = perf_counter()
        state = finish(outcome.state)
        measured = dict(measure(state))
        measured["seconds"] = outcome.history["seconds"][-1] + perf_counter() - clock
        history = {name: [*values[:-1], float(measured[name])] for name, values in outcome.history.items()}
        return replace(outcome, state=state, history=history)

    return run
