"""Incremental EM: the M-step after every block of rows, from the newest sums of all blocks (thesis 6.6).

With S_b what the E-step last found of block b, a visit of that block is

    Θ ← M-step(Σ_j S_j),        S_b ← E-step(block b; Θ).

Neal & Hinton's view of EM: both steps raise one free energy F(q, Θ) = E_q[ln p(t, node | Θ)] + H(q), the first in Θ,
the second in the responsibilities q of the rows of a block, so that F never falls whatever the order of the visits,
and where it has its maxima so has the likelihood. The surface moves as often in a sweep as there are blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import ClassVar, NamedTuple

from prinfold._typing import RandomState
from prinfold.exceptions import UnsupportedInputError
from prinfold.files import storable
from prinfold.gtm import model as gtm
from prinfold.gtm.node_selection import Hint
from prinfold.gtm.noise.protocol import AnyStatistics, Parameters
from prinfold.gtm.noise.recipes import check_recipe
from prinfold.gtm.trainers.blockwise import BlockedModel, blocks_of, sum_statistics
from prinfold.gtm.trainers.frozen_responsibilities import Frozen, freeze, refuse_unsplit, sum_with_frozen
from prinfold.rows.rows import Rows
from prinfold.validation.object_verbs import check_verbs
from prinfold.validation.settings import Constraint, integer, real


@storable
@check_verbs()
@dataclass(frozen=True)
class Incremental:
    """Incremental EM: an M-step after every block of rows, with the newest sums of all blocks.

    Parameters
    ----------
    n_blocks : int, default=10
        Blocks into which the rows are cut; at most one for each row. The sums of each are kept, n_blocks × K × D
        numbers twice over. The blocks of :class:`~prinfold.Blocks` are those that it reads.
    freeze : float, default=0.0
        Share of the responsibilities of a row that may be frozen, below 1: the smallest ones are found anew only every
        so many sweeps. What is kept for it is two numbers for each row. Not with noise that has factors, nor with
        :class:`~prinfold.Blocks`.
    every : int, default=5
        Sweeps from one that finds all responsibilities to the next, where some are frozen.
    """

    n_blocks: int = 10
    freeze: float = 0.0
    every: int = 5
    whole: ClassVar[bool] = False

    def __post_init__(self) -> None:
        share = Constraint(lambda v: real(0).test(v) and v < 1, "a number of at least 0 and below 1")
        check_recipe(self, n_blocks=integer(1), freeze=share, every=integer(1))

    def training(self, model: gtm.GTMModel, seed: RandomState = None) -> IncrementalModel:
        """The model as it is trained this way."""
        if self.freeze > 0:
            refuse_unsplit(model.noise)
        return IncrementalModel(model.surface, model.noise, model.penalty, self)


class Visit(NamedTuple):
    """A block as it was last visited: its sums, the hint for its next E-step, and its frozen responsibilities."""

    statistics: AnyStatistics
    hint: Hint
    frozen: Frozen | None = None


class IncrementalState(NamedTuple):
    """Parameters, the sums of all blocks as each was found at its last visit, those visits, and how many sweeps."""

    parameters: Parameters
    statistics: AnyStatistics
    visits: tuple[Visit, ...]
    age: int = 0


@dataclass(frozen=True)
class IncrementalModel(BlockedModel):
    """A GTM under incremental EM."""

    trainer: Incremental = Incremental()

    def begin(self, rows: Rows, parameters: Parameters) -> IncrementalState:
        """A first E-step of every block, all under the same parameters."""
        if self.trainer.freeze > 0 and not rows.at_hand:
            raise UnsupportedInputError(
                "Incremental(freeze=…) remembers something of every row, and rows of Blocks are not held; leave freeze "
                "at 0"
            )
        return self._visit_all(rows, parameters, repeat(Hint()))

    def step(self, rows: Rows, state: IncrementalState, relaxation: float = 1.0) -> IncrementalState:
        """One sweep: a visit of every block. Steps are not stretched.

        The sums of the blocks before and after the one that is visited are kept apart, so that nothing is ever
        subtracted: what rounding leaves does not add up over the sweeps, and no mass sinks below zero.
        """
        parameters, visits, before = state.parameters, [], None
        after = _sums_after([visit.statistics for visit in state.visits])
        for block, visit in zip(self._blocks(rows), state.visits, strict=True):
            others = [each for each in (before, after.pop()) if each is not None]
            parameters = self._m_step(sum_statistics([*others, visit.statistics]), parameters)
            found = self._visit(block, parameters, visit, state.age, rows.at_hand)
            visits.append(found)
            before = found.statistics if before is None else before + found.statistics
        assert before is not None  # there is a block at least
        return IncrementalState(parameters, before, tuple(visits), state.age + 1)

    def finish(self, rows: Rows, state: IncrementalState) -> IncrementalState:
        """The state with the same parameters and the sums of all rows under them."""
        return self._visit_all(rows, state.parameters, (visit.hint for visit in state.visits))

    def _blocks(self, rows: Rows) -> Iterator[Rows]:
        return blocks_of(rows, self.trainer.n_blocks)

    def _m_step(self, statistics: AnyStatistics, parameters: Parameters) -> Parameters:
        found: Parameters = self.noise.m_step(self.surface, statistics, self.penalty, parameters)
        return found

    def _visit(self, block: Rows, parameters: Parameters, visit: Visit, age: int, at_hand: bool) -> Visit:
        """The newest sums of a block; of one that is not at hand nothing about its rows is remembered."""
        if self.trainer.freeze > 0:
            if visit.frozen is None or age % self.trainer.every == 0:
                found, frozen = freeze(self, block, parameters, self.trainer.freeze)
                return Visit(found, visit.hint, frozen)
            return visit._replace(statistics=sum_with_frozen(self, block, parameters, visit.frozen))
        if at_hand:
            return Visit(*gtm.e_step(self, block, parameters, visit.hint))
        found, _ = gtm.e_step(self, block, parameters, visit.hint.for_new_rows())
        return Visit(found, visit.hint.without_rows())

    def _visit_all(self, rows: Rows, parameters: Parameters, hints: Iterable[Hint]) -> IncrementalState:
        visits = []
        for block, hint in zip(self._blocks(rows), hints, strict=False):
            found, after = gtm.e_step(self, block, parameters, hint)
            visits.append(Visit(found, after if rows.at_hand else hint.without_rows()))
        return IncrementalState(parameters, sum_statistics([visit.statistics for visit in visits]), tuple(visits))


def _sums_after(statistics: list[AnyStatistics]) -> list[AnyStatistics | None]:
    """The sums of all blocks after each, the last of them first; None after the last."""
    found: list[AnyStatistics | None] = [None]
    for each in reversed(statistics[1:]):
        found.append(each if found[-1] is None else each + found[-1])
    return found
