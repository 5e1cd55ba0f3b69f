"""Transitions of a chain between nodes (thesis 7.4): a short step, or with a small probability a jump to anywhere.

    p(k | j) = (1 − ε) a_jk + ε / K,        Σ_k a_jk = 1,        a_jk = 0 unless k is near j

There are two rules for a. ``SharedRule`` has one weight u for each kind of step, and leaves out what would
lead over an edge of the space: a_jk = u_kind(j→k) / Σ_l u_kind(j→l). ``FreeRule`` gives every node probabilities of its
own, drawn towards shared ones q with a strength of s steps, by −s Σ_j KL(q_j ‖ a_j). Each has two verbs, ``update``,
which never lowers Σ N log a less the cost, for expected numbers N of steps, and ``cost``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from prinfold._typing import FloatArray
from prinfold.gtm.sequence.hidden_markov import ChainSteps
from prinfold.gtm.sequence.node_steps import Moves, default_reach, moves_on
from prinfold.latent import LatentSpace

LEAST_JUMP = 1e-6
"""Probability of a jump below which none is learned: what never happened so far may happen yet."""

_FIRST_JUMP = 0.1
"""Probability of a jump to begin learning with, while the surface still lies in the wrong place."""

_KIND_COUNT = 0.5
"""Steps of each kind that are added to those expected, so that none is ruled out for good."""

_MOST_ROUNDS = 100
_LEAST_WEIGHT_CHANGE = 1e-10
"""Most rounds in which shared weights are found, and the change of them below which these end."""


@dataclass(frozen=True, eq=False)
class Chain:
    """A chain on the nodes: ``kinds`` (C,) shared weights, adding up to 1, ``local`` (P,) a, ``jump`` ε."""

    moves: Moves
    kinds: FloatArray
    local: FloatArray
    jump: float
    initial: FloatArray

    @cached_property
    def steps(self) -> ChainSteps:
        """The transition probabilities in the form that passes over rows use."""
        share = (1.0 - self.jump) * self.local
        return ChainSteps(self.initial, self.moves.cuts, self.moves.node, share, self.jump / self.moves.n_nodes)

    @property
    def independent_rows(self) -> bool:
        """Whether rows are independent: every step is a jump to any node, and sequences begin anywhere."""
        return self.jump == 1.0 and self.flat_start

    @property
    def flat_start(self) -> bool:
        """Whether all nodes are as likely to begin with."""
        return bool((self.initial == self.initial[0]).all())

    def ahead(self, share: FloatArray) -> FloatArray:
        """(n, K) where the chain is one step on from (n, K) shares of the nodes."""
        steps = self.steps
        moved = (steps.matrix().T @ share.T).T
        return np.asarray(moved + steps.leap * share.sum(axis=1, keepdims=True))


class Visits(NamedTuple):
    """Expected numbers, which add up over sequences.

    Of steps from node to node ``moves`` (P,), of ``jumps``, and of sequences that begin at each node, ``first`` (K,).
    """

    moves: FloatArray
    jumps: float
    first: FloatArray

    def plus(self, other: Visits) -> Visits:
        """The expected numbers of both added up."""
        return Visits(self.moves + other.moves, self.jumps + other.jumps, self.first + other.first)


class TransitionRule(Protocol):
    """A rule for the short steps from all nodes; see the head of this file."""

    def update(self, chain: Chain, counts: FloatArray) -> Chain:
        """The chain with better kinds and local steps, for expected numbers of steps (P,)."""

    def cost(self, chain: Chain) -> float:
        """Penalty of the steps, to be taken off the log-likelihood."""


@dataclass(frozen=True)
class SharedRule:
    """Transitions with the same weights of the kinds of steps at all nodes."""

    def update(self, chain: Chain, counts: FloatArray) -> Chain:
        kinds = _best_kinds(chain.moves, counts, chain.kinds)
        return replace(chain, kinds=kinds, local=shared_steps(chain.moves, kinds))

    def cost(self, chain: Chain) -> float:
        return -_KIND_COUNT * float(np.log(chain.kinds).sum())


@dataclass(frozen=True)
class FreeRule:
    """Steps of each node's own, drawn to shared ones as if ``strength`` such steps had been seen from it."""

    strength: float = 10.0

    def update(self, chain: Chain, counts: FloatArray) -> Chain:
        # The best for the shared steps there are, and for those that would be best if nodes had none of their own: the
        # former never lowers what is sought, and the better of the two is taken.
        moves = chain.moves
        tried = [
            self._shrink_to_shared(chain, counts, kinds)
            for kinds in (chain.kinds, _best_kinds(moves, counts, chain.kinds))
        ]
        return max(tried, key=lambda each: float(counts @ np.log(each.local)) - self.cost(each))

    def cost(self, chain: Chain) -> float:
        shared = shared_steps(chain.moves, chain.kinds)
        apart = float(shared @ np.log(shared / chain.local))
        return self.strength * apart + SharedRule().cost(chain)

    def _shrink_to_shared(self, chain: Chain, counts: FloatArray, kinds: FloatArray) -> Chain:
        moves, shared = chain.moves, shared_steps(chain.moves, kinds)
        total = moves.per_node(counts) + self.strength
        return replace(chain, kinds=kinds, local=(counts + self.strength * shared) / total[moves.source])


def shared_steps(moves: Moves, kinds: FloatArray) -> FloatArray:
    """(P,) probabilities of steps from each node, given the weights of their kinds."""
    weight = kinds[moves.kind]
    return np.asarray(weight / moves.per_node(weight)[moves.source])


def _best_kinds(moves: Moves, counts: FloatArray, kinds: FloatArray) -> FloatArray:
    """(C,) weights u that maximise Σ N log a + c Σ log u, by ever better minorants.

    Σ_l u is in the logarithm only, which lies below its tangents: with Z_j = Σ_l u_kind(j→l) of the last round,
    u_c = N_c / Σ_{steps of kind c} N_j / Z_j is the maximum of what then remains. Without edges one round does it.
    """
    seen, leaving = moves.per_kind(counts) + _KIND_COUNT, moves.per_node(counts)
    added = _KIND_COUNT * len(kinds)
    for _ in range(_MOST_ROUNDS):
        total = moves.per_node(kinds[moves.kind])
        better = seen / (moves.per_kind((leaving / total)[moves.source]) + added)
        better /= better.sum()
        settled = np.abs(np.log(better / kinds)).max() < _LEAST_WEIGHT_CHANGE
        kinds = better
        if settled:
            break
    return kinds


@dataclass(frozen=True)
class ChainRecipe:
    """Settings of a chain. Without a ``rule`` every step is a jump; without a ``jump`` that is learned."""

    rule: TransitionRule | None
    reach: int | None = None
    jump: float | None = None
    learn_initial: bool = False

    def first(self, latent: LatentSpace) -> Chain:
        """A chain to begin with: every step in reach is as likely as any other, and so is every node at first."""
        moves = moves_on(latent, self.reach_on(latent))
        kinds = np.full(len(moves.kinds), 1.0 / len(moves.kinds))
        jump = _FIRST_JUMP if self.jump is None else float(self.jump)
        initial = np.full(latent.n_nodes, 1.0 / latent.n_nodes)
        return Chain(moves, kinds, shared_steps(moves, kinds), 1.0 if self.rule is None else jump, initial)

    def reach_on(self, latent: LatentSpace) -> int:
        """Nodes that a step reaches; where every step is a jump, none."""
        if self.rule is None:
            return 0
        return default_reach(latent) if self.reach is None else self.reach

    def update(self, chain: Chain, visits: Visits) -> Chain:
        """The M-step of a chain."""
        if self.learn_initial:
            one = 1.0 / len(chain.initial)  # one more sequence, which begins anywhere
            initial = (visits.first + one) / (visits.first.sum() + 1.0)
            chain = replace(chain, initial=initial)
        n_steps = float(visits.moves.sum()) + visits.jumps
        if self.rule is None or n_steps == 0:
            return chain
        if self.jump is None:
            chain = replace(chain, jump=float(np.clip(visits.jumps / n_steps, LEAST_JUMP, 1.0 - LEAST_JUMP)))
        return self.rule.update(chain, visits.moves)

    def cost(self, chain: Chain) -> float:
        """Penalty of a chain, to be taken off the log-likelihood."""
        found = 0.0 if self.rule is None else self.rule.cost(chain)
        return found - float(np.log(chain.initial).mean()) if self.learn_initial else found
