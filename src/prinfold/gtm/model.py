"""The generative topographic mapping: a grid of latent nodes mapped to Gaussians on a smooth surface.

    p(t) = 1/K Σ_k p(t | y(x_k)),        y(x) = φ(x) W                      (3.4), (3.8)

The model is a product of choices made elsewhere: a map (which carries its latent space), a noise and a
penalty. Here is what remains: the E-step in parts, the EM step, and the posterior of every row, part by part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from prinfold.basis_maps.basis_map import BasisMap
from prinfold.gtm.device_passes import device_pass
from prinfold.gtm.e_step import Summer, Take, TakeGroups, Visitor
from prinfold.gtm.node_selection import Hint, Part, RowBatch, entries, plan, plan_every_node, plan_once
from prinfold.gtm.noise.protocol import AnyNodes, AnyNoise, AnyStatistics, Parameters
from prinfold.gtm.penalties import Penalty
from prinfold.rows.rows import Rows, blas_on_one_thread, sum_through, work_through

ROWS_PER_SUM = 96
"""Rows with every node, or as many responsibilities, that have sums of their own: forming these must cost little.
With 32 of them a planned pass of 100 000 × 50 and 3600 nodes took 7 % longer on one thread."""

_GROWTH = 1.1
"""Factor by which steps are stretched further after each that went well."""


@dataclass(frozen=True)
class GTMModel:
    """Map, noise and penalty, which stay fixed during training."""

    surface: BasisMap
    noise: AnyNoise
    penalty: Penalty
    rows_stand_alone: ClassVar[bool] = True
    """Whether the posterior of a row depends on that row alone."""

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
        """Entries of the history for a state."""
        return measure(self, state)

    def finish(self, rows: Rows, state: Any) -> Any:
        """State that training ends with; here every step has seen all rows."""
        return state

    def visit(self, rows: Rows, parameters: Any, take: Take, take_groups: TakeGroups | None = None) -> None:
        """Hand all rows to ``take`` with what the posterior says of them; here each stands for itself.

        Of many rows those that are planned together are handed to ``take_groups``, if there is one.
        """
        visit_each(self, rows, parameters, take, take_groups)


class GTMState(NamedTuple):
    """Parameters, the statistics of the data under them, what the E-step remembers, and how far to stretch a step."""

    parameters: Parameters
    statistics: AnyStatistics
    hint: Hint = Hint()
    stretch: float = 1.0


def begin(model: GTMModel, rows: Rows, parameters: Parameters) -> GTMState:
    """First E-step."""
    return GTMState(parameters, *e_step(model, rows, parameters, Hint()))


def step(model: GTMModel, rows: Rows, state: GTMState, relaxation: float = 1.0) -> GTMState:
    """One EM iteration: new parameters from the sums, then the sums under those parameters; see :func:`relaxed`."""
    proposed = model.noise.m_step(model.surface, state.statistics, model.penalty, state.parameters)

    def look(parameters: Parameters, stretch: float) -> GTMState:
        return GTMState(parameters, *e_step(model, rows, parameters, state.hint), stretch)

    found: GTMState = relaxed(state, proposed, relaxation, look, partial(measure, model))
    return found


def relaxed(
    state: Any,
    proposed: Any,
    relaxation: float,
    look: Callable[[Any, float], Any],
    measured: Callable[[Any], dict[str, float]],
) -> Any:
    """The state that ``look`` finds at the parameters ``proposed`` by EM, or further on.

    EM creeps along flat ridges of the likelihood in small steps of steady direction. With ``relaxation`` above 1
    a step is stretched, by a tenth more each time up to that factor, for as long as the objective does not
    fall; if it would, the step is taken again as EM proposes it, and stretching starts over
    (Salakhutdinov & Roweis, 2003). The objective therefore never gets worse, with or without.
    """
    growing = min(_GROWTH * state.stretch, relaxation)
    if state.stretch > 1.0:
        ahead = look(state.parameters.extrapolate(proposed, state.stretch), growing)
        if measured(ahead)["objective"] >= measured(state)["objective"]:
            return ahead
        growing = min(_GROWTH, relaxation)
    return look(proposed, growing)


class FittedState(Protocol):
    """Parameters with the statistics of the data under them."""

    @property
    def parameters(self) -> Parameters: ...
    @property
    def statistics(self) -> AnyStatistics: ...


def measure(model: GTMModel, state: FittedState) -> dict[str, float]:
    """Penalised log-likelihood per row, which EM never lowers; the log-likelihood alone; the noise variance."""
    parameters, sums = state.parameters, state.statistics
    cost = parameters.cost(model.surface, model.penalty)
    return {
        "objective": (sums.log_likelihood - cost) / sums.total,
        "log_likelihood": sums.log_likelihood / sums.total,
        "noise": 1.0 / parameters.level,
    }


def e_step(model: GTMModel, rows: Rows, parameters: Parameters, hint: Hint) -> tuple[AnyStatistics, Hint]:
    """The sums over all rows, part by part. The full matrix of responsibilities never exists.

    Rows that come in portions are gone after each: their sums are what is left, and each portion is planned by itself.
    """
    if rows.at_hand:
        nodes = model.noise.at_nodes(model.surface, parameters, rows.table.dtype.type)
        return _planned_sums(model, rows, nodes, parameters, hint)
    kind = rows.table.dtype.type
    total = rows.sum_portions(PortionSums(_plain_model(model), parameters, hint.for_new_rows(), kind))
    return total, hint.without_rows()


@dataclass(frozen=True)
class PortionSums:
    """The sums of a portion of rows under given parameters; it can be sent to where the rows are."""

    model: GTMModel
    parameters: Parameters
    hint: Hint
    kind: type

    @blas_on_one_thread()
    def __call__(self, rows: Rows) -> AnyStatistics:
        return _planned_sums(self.model, rows, self._nodes, self.parameters, self.hint)[0]

    @cached_property
    def _nodes(self) -> AnyNodes:
        return self.model.noise.at_nodes(self.model.surface, self.parameters, self.kind)


def _plain_model(model: GTMModel) -> GTMModel:
    """Map, noise and penalty alone, whatever the training adds to them."""
    return GTMModel(model.surface, model.noise, model.penalty)


def _planned_sums(
    model: GTMModel, rows: Rows, nodes: AnyNodes, parameters: Parameters, hint: Hint
) -> tuple[AnyStatistics, Hint]:
    if rows.device is not None and (there := device_pass(model.noise, rows, nodes)) is not None:
        return there.sums(), hint
    parts, hint = plan(model.surface, model.noise, nodes, rows, parameters.weights, hint)
    return sum_parts(model, rows, nodes, parts), hint


@blas_on_one_thread()
def summarize(model: GTMModel, rows: Rows, parameters: Parameters) -> AnyStatistics:
    """The sums over all rows with every node: the dense E-step, to which the planned one is held."""
    nodes = model.noise.at_nodes(model.surface, parameters, rows.table.dtype.type)
    return sum_parts(model, rows, nodes, plan_every_node(model.noise, nodes, rows))


def sum_parts(model: GTMModel, rows: Rows, nodes: AnyNodes, parts: Sequence[Part | RowBatch]) -> AnyStatistics:
    """The sums over some parts."""
    K = len(nodes.centers)
    sizes, least = entries(parts, K), ROWS_PER_SUM * K
    found: AnyStatistics = sum_through(lambda: Summer(model.noise, rows, nodes), parts, sizes, least)
    return found


@blas_on_one_thread()
def visit_each(
    model: GTMModel, rows: Rows, parameters: Parameters, take: Take, take_groups: TakeGroups | None = None
) -> None:
    """Hand all rows to ``take``, some at a time and on several threads; each row stands for itself."""
    nodes = model.noise.at_nodes(model.surface, parameters, rows.table.dtype.type)
    if rows.device is not None and (there := device_pass(model.noise, rows, nodes)) is not None:
        there.visit(take)
        return
    parts = plan_once(model.surface, model.noise, nodes, rows, parameters.weights)
    visit_parts(model, rows, nodes, parts, take, take_groups)


def visit_parts(
    model: GTMModel,
    rows: Rows,
    nodes: AnyNodes,
    parts: Sequence[Part | RowBatch],
    take: Take,
    take_groups: TakeGroups | None = None,
) -> None:
    """Hand some parts to ``take``, on several threads, and batches to ``take_groups`` where that is given."""
    n_entries = int(np.sum(entries(parts, len(nodes.centers))))
    work_through(lambda: Visitor(model.noise, rows, nodes, take, take_groups), parts, n_entries)
