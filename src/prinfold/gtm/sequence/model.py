"""The generative topographic mapping through time: nodes are the states of a hidden Markov chain, thesis 7.4.

    p(t_1 … t_T) = Σ over paths k_1 … k_T of  π(k_1) Π p(k_s | k_{s−1}) Π p(t_s | k_s)

Map, noise and penalty are those of :mod:`prinfold.gtm.model`, the chain that of
:mod:`prinfold.gtm.sequence.transitions`. All that changes is where responsibilities come from: a forward and a backward
pass over each sequence instead of a look at each row. Where the chain goes anywhere with every step, rows tell nothing
of each other, and this is the GTM.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from prinfold._typing import BoolArray, FloatArray, IntArray
from prinfold.gtm import model as gtm
from prinfold.gtm import posterior as posteriors
from prinfold.gtm.e_step import Take, TakeGroups
from prinfold.gtm.node_selection import Hint
from prinfold.gtm.noise.protocol import Parameters, Posterior, require
from prinfold.gtm.sequence.hidden_markov import ChainSteps
from prinfold.gtm.sequence.sequence_passes import (
    FilteringWalk,
    PathWalk,
    SmoothingWalk,
    empty_counts,
    marks,
    portions,
)
from prinfold.gtm.sequence.transitions import Chain, ChainRecipe, Visits
from prinfold.rows.rows import Rows, blas_on_one_thread, sum_through, work_through
from prinfold.validation.memory_limits import check_draws


@dataclass(frozen=True)
class SequenceRows(Rows):
    """Rows in sequences: sequence s has rows ``cuts[s]`` to ``cuts[s + 1]``, and the weight of its first row."""

    cuts: IntArray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))


def in_sequences(rows: Rows, cuts: IntArray) -> SequenceRows:
    """The rows, and where their sequences begin and end."""
    return SequenceRows(**{each.name: getattr(rows, each.name) for each in fields(Rows)}, cuts=cuts)


@dataclass(frozen=True)
class SequenceModel(gtm.GTMModel):
    """A GTM whose rows come from a chain; once trained, ``chain`` is the one that was learned."""

    recipe: ChainRecipe
    chain: Chain | None = None
    rows_stand_alone: ClassVar[bool] = False

    def begin(self, rows: Rows, parameters: Any) -> SequenceState:
        """State after a first E-step, with the chain there is or a first one."""
        chain = self.present_chain()
        return SequenceState(parameters, chain, *e_step(self, rows, parameters, chain, Hint()))

    def step(self, rows: Rows, state: Any, relaxation: float = 1.0) -> SequenceState:
        """State after one more iteration of training; as in :func:`prinfold.gtm.model.relaxed`."""
        proposed = self.noise.m_step(self.surface, state.statistics, self.penalty, state.parameters)
        chain = self.recipe.update(state.chain, state.visits)

        def look(at: Any, stretch: float) -> SequenceState:
            return SequenceState(at, chain, *e_step(self, rows, at, chain, state.hint), stretch)

        found: SequenceState = gtm.relaxed(state, proposed, relaxation, look, self.measure)
        return found

    def measure(self, state: Any) -> dict[str, float]:
        """Entries of the history for a state: per row the penalised log-likelihood, and the log-likelihood alone."""
        found = gtm.measure(self, state)
        found["objective"] -= self.recipe.cost(state.chain) / state.statistics.total
        return found | {"jump": state.chain.jump}

    def visit(self, rows: Rows, parameters: Any, take: Take, take_groups: TakeGroups | None = None) -> None:
        """Hand all rows to ``take`` with their posterior given their whole sequences (smoothing)."""
        chain = self.present_chain()
        if stand_alone(rows, chain):
            gtm.visit_each(self, rows, parameters, take, take_groups)
        else:
            _visit_sequences(self, rows, parameters, chain, partial(_Visitor, hand_over=take))

    def filter(self, rows: Rows, parameters: Any, take: Take) -> None:
        """Hand all rows to ``take`` with their posterior given the rows of their sequence up to each (filtering)."""
        _visit_sequences(self, rows, parameters, self.present_chain(), partial(_Filter, hand_over=take))

    def present_chain(self) -> Chain:
        """The chain that training came to, or a first one."""
        return self.recipe.first(self.surface.latent) if self.chain is None else self.chain


class SequenceState(NamedTuple):
    """Parameters and chain, statistics of the data under them, expected steps, hint for the E-step, and stretch."""

    parameters: Parameters
    chain: Chain
    statistics: Any
    visits: Visits
    hint: Hint = Hint()
    stretch: float = 1.0


def stand_alone(rows: Rows, chain: Chain) -> bool:
    """Whether rows are independent of each other, with all nodes equally likely before a row is seen."""
    return chain.independent_rows or (chain.flat_start and len(_cuts(rows)) == rows.n_rows + 1)


def e_step(model: SequenceModel, rows: Rows, parameters: Any, chain: Chain, hint: Hint) -> tuple[Any, Visits, Hint]:
    """The sums over all sequences that an M-step needs, of rows and of steps. No posterior of all rows ever exists.

    Sequences that come in portions are gone after each.
    """
    if not rows.at_hand:
        plain = SequenceModel(model.surface, model.noise, model.penalty, model.recipe)
        total = rows.sum_portions(_PortionSums(plain, parameters, chain))
        return total.statistics, total.visits, hint.without_rows()
    if stand_alone(rows, chain) and not model.recipe.learn_initial:  # else it counts where sequences begin
        statistics, hint = gtm.e_step(model, rows, parameters, hint)
        return statistics, Visits(np.zeros(len(chain.local)), 0.0, np.zeros(len(chain.initial))), hint
    make, parts = _sequence_workers(model, rows, parameters, chain, _Summer)
    n_nodes = len(chain.initial)
    found = sum_through(make, parts, [(part.stop - part.start) * n_nodes for part in parts])
    return found.statistics, found.visits, hint


@dataclass(frozen=True)
class _PortionSums:
    """The sums of a portion of sequences under given parameters; it can be sent to where they are."""

    model: SequenceModel
    parameters: Any
    chain: Chain

    def __call__(self, rows: Rows) -> _SequenceSums:
        return _SequenceSums(*e_step(self.model, rows, self.parameters, self.chain, Hint())[:2])


def log_likelihood(model: SequenceModel, rows: Rows, parameters: Any) -> FloatArray:
    """(n,) log p(t | those before it in its sequence)."""
    if stand_alone(rows, model.present_chain()):
        return posteriors.log_likelihood(model, rows, parameters)
    out = np.empty(rows.n_rows, dtype=rows.table.dtype)
    least = float(np.finfo(out.dtype).min)

    def write(some: Any, loaded: Any, posterior: Posterior, near: Any, nodes: Any) -> None:
        out[some] = np.maximum(posterior.log_likelihood, least)

    model.filter(rows, parameters, write)
    return out


def filtered_mean(model: SequenceModel, rows: Rows, parameters: Any) -> FloatArray:
    """(n, Q) mean of the posterior over latent space, given the rows up to the present."""
    latent = model.surface.latent
    out = np.empty((rows.n_rows, latent.n_columns), dtype=rows.table.dtype)

    def write(some: Any, loaded: Any, posterior: Posterior, near: Any, nodes: Any) -> None:
        out[some] = latent.mean(posterior.relative)

    model.filter(rows, parameters, write)
    return out


@blas_on_one_thread()
def forecast(model: SequenceModel, rows: Rows, parameters: Any, n_steps: int) -> tuple[FloatArray, FloatArray]:
    """(S, n_steps, D) expectation of the rows after each sequence, about the data's centre; and their variance.

    The noise of ``model`` must be one that takes gaps.
    """
    share, chain = last_states(model, rows, parameters), model.present_chain()
    check_draws(n_steps, len(share) * rows.n_columns, "n_steps", least=1)
    impute = require(model.noise.capabilities.impute, model.noise, "tell what is missing")
    nodes = model.noise.at_nodes(model.surface, parameters)
    nothing = model.noise.load(np.full((len(share), rows.n_columns), np.nan))
    work = np.empty((nodes.n_layers, len(share), len(nodes.centers)))
    log_density = nodes.log_density(nothing, None, work)
    found = np.empty((2, len(share), n_steps, rows.n_columns))
    for t in range(n_steps):
        share = chain.ahead(share)
        posterior = Posterior(share, share.sum(axis=1), log_density, work[1:])
        found[0, :, t], found[1, :, t] = impute(nodes, nothing, posterior, None)
    return found[0], found[1]


def likeliest_paths(model: SequenceModel, rows: Rows, parameters: Any) -> IntArray:
    """(n,) nodes of the likeliest path through each sequence, by Viterbi's algorithm."""
    path = np.empty(rows.n_rows, dtype=np.intp)
    _visit_sequences(model, rows, parameters, model.present_chain(), partial(PathWalk, path=path))
    return path


def last_states(model: SequenceModel, rows: Rows, parameters: Any) -> FloatArray:
    """(S, K) p(node | sequence) at the end of each sequence."""
    cuts = _cuts(rows)
    found = np.empty((len(cuts) - 1, model.surface.latent.n_nodes))

    def take(some: Any, loaded: Any, posterior: Posterior, near: Any, nodes: Any) -> None:
        ending = np.searchsorted(cuts[1:], [some.start + 1, some.stop + 1])
        found[slice(*ending)] = posterior.relative[cuts[1:][slice(*ending)] - 1 - some.start]

    model.filter(rows, parameters, take)
    return found


def sample_nodes(chain: Chain, n: int, length: int, rng: np.random.Generator) -> IntArray:
    """(n, length) nodes of n sequences drawn from a chain."""
    moves, K = chain.moves, chain.moves.n_nodes
    ends = np.cumsum(chain.local)  # the steps from node j take up the unit from j to j + 1, but for rounding
    path = np.empty((n, length), dtype=np.intp)
    path[:, 0] = rng.choice(K, size=n, p=chain.initial)
    for t in range(1, length):
        here = path[:, t - 1]
        step = np.searchsorted(ends, here + rng.random(n), side="right")
        step = np.clip(step, moves.cuts[here], moves.cuts[here + 1] - 1)
        path[:, t] = np.where(rng.random(n) < chain.jump, rng.integers(K, size=n), moves.node[step])
    return path


def _cuts(rows: Rows) -> IntArray:
    """Bounds of the sequences; rows without any are sequences of one."""
    return rows.cuts if isinstance(rows, SequenceRows) else np.arange(rows.n_rows + 1)


def _visit_sequences(model: gtm.GTMModel, rows: Rows, parameters: Any, chain: Chain, make: Callable[..., Any]) -> None:
    """Make a pass over all sequences, with workers from ``make``."""
    walker, parts = _sequence_workers(model, rows, parameters, chain, make)
    work_through(walker, parts, rows.n_rows * len(chain.initial))


@blas_on_one_thread()
def _sequence_workers(
    model: gtm.GTMModel, rows: Rows, parameters: Any, chain: Chain, make: Callable[..., Any]
) -> tuple[Callable[[], Any], list[slice]]:
    """A maker of the workers of a pass, and the parts that they take: whole sequences."""
    # In double precision throughout: a step multiplies what the last one left.
    nodes = model.noise.at_nodes(model.surface, parameters)
    begins, parts = marks(_cuts(rows)), portions(_cuts(rows), rows.block_rows)
    return lambda: make(model.noise, rows, nodes, begins, chain.steps), parts


@dataclass(frozen=True)
class _SequenceSums:
    """Sums over some sequences: those of their rows, and the numbers of steps."""

    statistics: Any
    visits: Visits

    def __add__(self, other: _SequenceSums) -> _SequenceSums:
        return _SequenceSums(self.statistics + other.statistics, self.visits.plus(other.visits))


class _Summer(SmoothingWalk):
    """Adds sequences to the sums of an E-step."""

    def __init__(self, noise: Any, rows: Rows, nodes: Any, begins: BoolArray, steps: ChainSteps) -> None:
        super().__init__(noise, rows, nodes, begins, steps)
        self._begin()

    def _begin(self) -> None:
        self.sums, self.first = self.nodes.empty_sums(), np.zeros(len(self.steps.initial))
        self.counts = empty_counts(self.steps)

    def take(self, some: slice, loaded: Any, posterior: Posterior) -> None:
        weight, begins = self.rows.block_weight(some), np.flatnonzero(self.begins[some])
        share = np.ones(len(begins)) if weight is None else weight[begins]
        self.first += share @ posterior.relative[begins]
        self.sums.add(loaded, weight, posterior, None)

    def take_sum(self) -> _SequenceSums:
        visits = Visits(self.counts.moves, float(self.counts.jumps[0]), self.first)
        found = _SequenceSums(self.sums.statistics(), visits)
        self._begin()
        return found


class _Visitor(SmoothingWalk):
    """Hands the posterior of rows given whole sequences (smoothing) to a callback."""

    def __init__(
        self, noise: Any, rows: Rows, nodes: Any, begins: BoolArray, steps: ChainSteps, *, hand_over: Take
    ) -> None:
        super().__init__(noise, rows, nodes, begins, steps)
        self.hand_over = hand_over

    def take(self, some: slice, loaded: Any, posterior: Posterior) -> None:
        self.hand_over(some, loaded, posterior, None, self.nodes)


class _Filter(FilteringWalk):
    """Hands the posterior of rows given those up to each (filtering) to a callback."""

    def __init__(
        self, noise: Any, rows: Rows, nodes: Any, begins: BoolArray, steps: ChainSteps, *, hand_over: Take
    ) -> None:
        super().__init__(noise, rows, nodes, begins, steps)
        self.hand_over = hand_over

    def take(self, some: slice, loaded: Any, posterior: Posterior) -> None:
        self.hand_over(some, loaded, posterior, None, self.nodes)
