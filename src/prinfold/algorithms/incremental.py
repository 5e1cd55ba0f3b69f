"""Incremental EM: the M-step after every block of rows, from the newest sums of all blocks (thesis 6.6).

With S_b what the E-step last found of block b, a visit of that block is

    Θ ← M-step(Σ_j S_j),        S_b ← E-step(block b; Θ).

Neal & Hinton's view of EM: both steps raise one free energy F(q, Θ) = E_q[ln p(t, node | Θ)] + H(q), the first in Θ,
the second in the responsibilities q of the rows of a block, so that F never falls whatever the order of the visits,
and where it has its maxima so has the likelihood. The surface moves as often in a sweep as there are blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from prinfold._arrays import Rows, blas_on_one_thread
from prinfold._validate import integer
from prinfold.algorithms import gtm
from prinfold.algorithms.blocked import BlockedModel, added, refuse_following, strided
from prinfold.algorithms.noise_models import check_recipe
from prinfold.algorithms.pruning import Hint
from prinfold.files import storable


@storable
@dataclass(frozen=True)
class Incremental:
    """Incremental EM: an M-step after every block of rows, with the newest sums of all blocks.

    Parameters
    ----------
    n_blocks : int, default=10
        Blocks into which the rows are cut; at most one for each row. The sums of each are kept, n_blocks × K × D
        numbers twice over.
    """

    n_blocks: int = 10

    def __post_init__(self) -> None:
        check_recipe(self, n_blocks=integer(1))

    def training(self, model: gtm.GTMModel, seed: Any = None) -> IncrementalModel:
        """The model as it is trained this way."""
        refuse_following(model)
        return IncrementalModel(model.surface, model.noise, model.penalty, self.n_blocks)


class Visit(NamedTuple):
    """What was found of a block when it was last visited, and what the E-step remembers of it."""

    statistics: Any
    hint: Hint


class IncrementalState(NamedTuple):
    """Parameters, the sums of all blocks as each was found at its last visit, and those visits."""

    parameters: Any
    statistics: Any
    visits: tuple[Visit, ...]


@dataclass(frozen=True)
class IncrementalModel(BlockedModel):
    """A GTM under incremental EM."""

    n_blocks: int = 10

    def begin(self, rows: Rows, parameters: Any) -> IncrementalState:
        """A first look at every block, all under the same parameters."""
        return self._look(rows, parameters, (Hint(),) * self.n_blocks)

    def step(self, rows: Rows, state: IncrementalState, relaxation: float = 1.0) -> IncrementalState:
        """One sweep: a visit of every block. Steps are not stretched.

        The sums of the blocks before and after the one that is visited are kept apart, so that nothing is ever
        subtracted: what rounding leaves does not add up over the sweeps, and no mass sinks below zero.
        """
        parameters, visits, before = state.parameters, [], None
        after = _sums_after([visit.statistics for visit in state.visits])
        for block, visit in zip(strided(rows, self.n_blocks), state.visits, strict=True):
            others = [each for each in (before, after.pop()) if each is not None]
            parameters = self._solved(added([*others, visit.statistics]), parameters)
            found = Visit(*gtm.e_step(self, block, parameters, visit.hint))
            visits.append(found)
            before = found.statistics if before is None else before + found.statistics
        return IncrementalState(parameters, before, tuple(visits))

    def finish(self, rows: Rows, state: IncrementalState) -> IncrementalState:
        """The same parameters with what all rows add up to under them."""
        return self._look(rows, state.parameters, tuple(visit.hint for visit in state.visits))

    def _solved(self, statistics: Any, parameters: Any) -> Any:
        with blas_on_one_thread():
            return self.noise.m_step(self.surface, statistics, self.penalty, parameters)

    def _look(self, rows: Rows, parameters: Any, hints: tuple[Hint, ...]) -> IncrementalState:
        blocks = zip(strided(rows, self.n_blocks), hints, strict=False)
        visits = tuple(Visit(*gtm.e_step(self, block, parameters, hint)) for block, hint in blocks)
        return IncrementalState(parameters, added([visit.statistics for visit in visits]), visits)


def _sums_after(statistics: list[Any]) -> list[Any]:
    """The sums of all blocks after each, the last of them first; None after the last."""
    found: list[Any] = [None]
    for each in reversed(statistics[1:]):
        found.append(each if found[-1] is None else each + found[-1])
    return found
