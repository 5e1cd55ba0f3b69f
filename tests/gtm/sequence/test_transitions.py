"""Rules by which a chain learns its steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from prinfold.gtm.sequence.transitions import LEAST_JUMP, ChainRecipe, FreeRule, SharedRule, Visits, shared_steps
from prinfold.latent import Sphere, circle, grid, line

RULES = pytest.mark.parametrize("rule", [SharedRule(), FreeRule(3.0)], ids=["shared", "free"])
SPACES = pytest.mark.parametrize("latent", [line(9), circle(9), grid(4, 5), Sphere(20)], ids=repr)


def visits(chain, seed: int = 0, scale: float = 5.0) -> Visits:
    rng = np.random.default_rng(seed)
    return Visits(scale * rng.gamma(0.5, size=len(chain.local)), 2.0, rng.random(chain.moves.n_nodes))


def expected(chain, seen: Visits) -> float:
    """The expected log probability of all steps: what an M-step is to raise, less the cost."""
    jump = chain.jump
    inner = seen.moves @ np.log((1 - jump) * chain.local) + seen.jumps * np.log(jump / chain.moves.n_nodes)
    return float(inner + seen.first @ np.log(chain.initial))


@RULES
@SPACES
def test_probabilities_are_probabilities(rule, latent):
    recipe = ChainRecipe(rule, reach=2)
    chain = recipe.first(latent)
    chain = recipe.update(chain, visits(chain))
    steps = chain.steps
    assert_allclose((steps.matrix().toarray() + steps.leap).sum(axis=1), 1.0, rtol=1e-13)
    assert_allclose(chain.moves.per_node(chain.local), 1.0, rtol=1e-13)
    assert_allclose(chain.kinds.sum(), 1.0)
    share = np.random.default_rng(0).dirichlet(np.ones(latent.n_nodes), size=3)
    assert_allclose(chain.ahead(share), share @ (steps.matrix().toarray() + steps.leap), atol=1e-14)


@RULES
@SPACES
@pytest.mark.parametrize("initial", [False, True])
def test_a_step_never_lowers_what_it_is_to_raise(rule, latent, initial: bool):
    recipe = ChainRecipe(rule, reach=2, learn_initial=initial)
    chain = recipe.first(latent)
    for seed in range(4):  # other counts each time, from wherever the last ones led
        seen = visits(chain, seed)
        before = expected(chain, seen) - recipe.cost(chain)
        chain = recipe.update(chain, seen)
        assert expected(chain, seen) - recipe.cost(chain) >= before


def test_shared_steps_are_the_best_there_are():
    """Beside a general optimiser, on a line, whose ends have fewer steps."""
    recipe = ChainRecipe(SharedRule(), reach=2)
    chain = recipe.first(line(6))
    seen = visits(chain)

    def lost(u: np.ndarray) -> float:
        kinds = np.exp(u) / np.exp(u).sum()
        other = replace(chain, kinds=kinds, local=shared_steps(chain.moves, kinds))
        return recipe.cost(other) - float(seen.moves @ np.log(other.local))

    best = minimize(lost, np.zeros(5), options={"gtol": 1e-8})
    assert_allclose(np.exp(best.x) / np.exp(best.x).sum(), recipe.update(chain, seen).kinds, rtol=1e-4)
    assert lost(np.log(recipe.update(chain, seen).kinds)) <= best.fun + 1e-9


def test_on_a_circle_shared_steps_are_the_shares_of_the_counts():
    recipe = ChainRecipe(SharedRule(), reach=1)
    chain = recipe.first(circle(8))
    seen = visits(chain)
    counts = chain.moves.per_kind(seen.moves) + 0.5
    assert_allclose(recipe.update(chain, seen).kinds, counts / counts.sum())


def test_free_steps_go_from_shared_ones_to_the_counts():
    chain = ChainRecipe(FreeRule(), reach=1).first(circle(8))
    seen = visits(chain, scale=100.0)
    of_nodes = seen.moves / chain.moves.per_node(seen.moves)[chain.moves.source]
    loose, tight = (FreeRule(s).update(chain, seen.moves) for s in (1e-6, 1e9))
    assert_allclose(loose.local, of_nodes, atol=1e-6)
    assert_allclose(tight.local, shared_steps(tight.moves, tight.kinds), atol=1e-6)


def test_the_share_of_jumps_is_learned_down_to_a_floor_or_kept():
    learned, kept = ChainRecipe(SharedRule(), reach=1), ChainRecipe(SharedRule(), reach=1, jump=0.2)
    chain = learned.first(circle(8))
    seen = visits(chain)
    assert_allclose(learned.update(chain, seen).jump, 2.0 / (2.0 + seen.moves.sum()))
    assert learned.update(chain, seen._replace(jumps=0.0)).jump == LEAST_JUMP
    assert kept.update(kept.first(circle(8)), seen).jump == 0.2


@SPACES
def test_costs_are_what_they_are_said_to_be(latent):
    """Written out step by step: −½ Σ log u, s Σ_j KL(q_j ‖ a_j), and −Σ log π / K for one more sequence."""
    recipe = ChainRecipe(FreeRule(3.0), reach=2, learn_initial=True)
    chain = recipe.first(latent)
    for seed in range(2):
        chain = recipe.update(chain, visits(chain, seed))
    moves, u = chain.moves, chain.kinds
    kinds = -0.5 * sum(np.log(each) for each in u)
    apart = 0.0
    for j in range(moves.n_nodes):
        own = range(moves.cuts[j], moves.cuts[j + 1])
        total = sum(u[moves.kind[p]] for p in own)
        apart += sum(u[moves.kind[p]] / total * np.log(u[moves.kind[p]] / total / chain.local[p]) for p in own)
    begins = -sum(np.log(each) / latent.n_nodes for each in chain.initial)
    assert apart > 0.1
    assert_allclose(SharedRule().cost(chain), kinds)
    assert_allclose(FreeRule(3.0).cost(chain), kinds + 3.0 * apart)
    assert_allclose(recipe.cost(chain), kinds + 3.0 * apart + begins)
    assert_allclose(ChainRecipe(None, learn_initial=True).cost(chain), begins)


@SPACES
def test_nothing_near_free_steps_and_beginnings_is_better(latent):
    """For the shared steps that they are drawn to, and counts that are given."""
    recipe = ChainRecipe(FreeRule(3.0), reach=2, learn_initial=True)
    chain = recipe.first(latent)
    seen = visits(chain)
    best = recipe.update(chain, seen)
    reached = expected(best, seen) - recipe.cost(best)
    rng = np.random.default_rng(1)
    for scale in (0.01, 0.1, 1.0):
        for _ in range(5):
            local = best.local * np.exp(scale * rng.standard_normal(len(best.local)))
            local /= best.moves.per_node(local)[best.moves.source]
            initial = best.initial * np.exp(scale * rng.standard_normal(len(best.initial)))
            for other in (replace(best, local=local), replace(best, initial=initial / initial.sum())):
                assert expected(other, seen) - recipe.cost(other) < reached


def test_without_steps_nothing_is_learned_of_them():
    recipe = ChainRecipe(SharedRule(), reach=1)
    chain = recipe.first(line(4))
    none = Visits(np.zeros(len(chain.local)), 0.0, np.ones(4))
    assert recipe.update(chain, none) is chain


def test_where_every_step_may_go_anywhere():
    recipe = ChainRecipe(None)
    chain = recipe.first(grid(3, 3))
    assert (chain.jump, chain.independent_rows) == (1.0, True)
    assert_allclose(chain.ahead(np.eye(9)), 1 / 9)
    assert recipe.update(chain, visits(chain)) is chain
    assert recipe.cost(chain) == 0.0
    assert not ChainRecipe(SharedRule()).first(grid(3, 3)).independent_rows
