"""Passes over hidden Markov chains: the joint of all paths at toy size, and compiled passes beside plain ones."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

from prinfold.gtm.sequence import _hidden_markov_jit as chain_sweeps
from prinfold.gtm.sequence import hidden_markov as chains
from prinfold.gtm.sequence.hidden_markov import ChainSteps, Counts

KERNELS = pytest.mark.parametrize("kernels", [chains, chain_sweeps], ids=["plain", "compiled"])


def some_steps(rng: np.random.Generator, K: int, n_near: int, jump: float) -> ChainSteps:
    """Random short steps, to the node itself and to others at random."""
    near = [np.sort(np.append(j, rng.choice(np.delete(np.arange(K), j), n_near - 1, replace=False))) for j in range(K)]
    share = (1 - jump) * np.concatenate([rng.dirichlet(np.ones(n_near)) for _ in range(K)])
    return ChainSteps(rng.dirichlet(np.ones(K)), n_near * np.arange(K + 1), np.concatenate(near), share, jump / K)


def dense(steps: ChainSteps) -> np.ndarray:
    return steps.matrix().toarray() + steps.leap


def joint(log_density: np.ndarray, steps: ChainSteps) -> tuple[np.ndarray, np.ndarray]:
    """Every path (K^T, T) of one sequence, and the log of its joint probability with the rows."""
    T, K = log_density.shape
    paths, log_A = np.array(list(product(range(K), repeat=T))), np.log(dense(steps))
    value = np.log(steps.initial)[paths[:, 0]] + log_density[np.arange(T), paths].sum(axis=1)
    return paths, value + log_A[paths[:, :-1], paths[:, 1:]].sum(axis=1)


def smoothed(kernels, log_density, begins, steps, weight=None):
    """Log-likelihoods of rows, posterior and counts of whole passes; ``begins`` is one longer than the rows."""
    emission = log_density.copy()
    largest = chains.relative_emissions(emission, steps.least)
    alpha, scale = kernels.forward(emission, begins[:-1], np.zeros(len(steps.initial)), steps)
    counts, after = Counts(np.zeros(len(steps.share)), np.zeros(1)), np.zeros(len(steps.initial))
    weight = np.ones(len(alpha)) if weight is None else weight
    kernels.backward(emission, begins[1:], scale, weight, alpha, after, steps, counts)
    return np.log(scale) + largest, alpha, counts


def one_sequence(T: int) -> np.ndarray:
    begins = np.zeros(T + 1, dtype=bool)
    begins[[0, T]] = True
    return begins


@KERNELS
@pytest.mark.parametrize(("T", "jump"), [(1, 0.1), (2, 0.3), (5, 0.05), (5, 1.0), (6, 1e-6)])
def test_all_paths_together(kernels, T: int, jump: float):
    """Likelihood, posterior of nodes and expected steps are sums over all K^T paths."""
    rng = np.random.default_rng(T)
    steps, log_density = some_steps(rng, 4, 3, jump), 3 * rng.standard_normal((T, 4))
    paths, value = joint(log_density, steps)
    log_rows, gamma, counts = smoothed(kernels, log_density, one_sequence(T), steps)
    share = np.exp(value - logsumexp(value))
    assert_allclose(log_rows.sum(), logsumexp(value), rtol=1e-12)
    for t in range(T):
        assert_allclose(gamma[t], np.bincount(paths[:, t], share, minlength=4), atol=1e-13)
        so_far = logsumexp(joint(log_density[: t + 1], steps)[1])
        assert_allclose(log_rows[: t + 1].sum(), so_far, rtol=1e-12)  # each row given those before it
    steps_taken = np.zeros((4, 4))
    for t in range(1, T):
        np.add.at(steps_taken, (paths[:, t - 1], paths[:, t]), share)
    # Of a step between near nodes, the part that was no jump.
    source = np.repeat(np.arange(4), 3)
    expected = steps_taken[source, steps.node] * steps.share / dense(steps)[source, steps.node]
    assert_allclose(counts.moves, expected, atol=1e-13)
    assert_allclose(counts.jumps[0], steps_taken.sum() - expected.sum(), atol=1e-13)


@KERNELS
@pytest.mark.parametrize("T", [1, 2, 5, 6])
def test_the_best_of_all_paths(kernels, T: int):
    rng = np.random.default_rng(10 + T)
    steps, log_density = some_steps(rng, 4, 2, 0.02), 2 * rng.standard_normal((T, 4))
    paths, value = joint(log_density, steps)
    best, begins = np.zeros(4), one_sequence(T)
    came, tops = kernels.best_steps(log_density, begins[:-1], best, steps)
    assert_array_equal(chains.trace(came, begins[1:], tops), paths[value.argmax()])
    assert_allclose(best.max(), value.max(), rtol=1e-12)


@KERNELS
def test_a_row_of_which_nothing_is_known_is_summed_over(kernels):
    rng = np.random.default_rng(1)
    steps, log_density = some_steps(rng, 4, 3, 0.1), rng.standard_normal((5, 4))
    log_density[2] = 0.0
    log_rows, gamma, _ = smoothed(kernels, log_density, one_sequence(5), steps)
    assert_allclose(log_rows.sum(), logsumexp(joint(log_density, steps)[1]), rtol=1e-12)
    assert_allclose(log_rows[2], 0.0, atol=1e-13)
    assert_allclose(gamma.sum(axis=1), 1.0)


@KERNELS
def test_time_turned_round(kernels):
    """Where the chain is in equilibrium and as likely either way, sequences may be read backwards."""
    rng = np.random.default_rng(2)
    K, share = 6, np.array([0.25, 0.5, 0.25])
    node = (np.arange(K)[:, None] + [-1, 0, 1]) % K
    steps = ChainSteps(np.full(K, 1 / K), 3 * np.arange(K + 1), node.ravel(), 0.9 * np.tile(share, K), 0.1 / K)
    log_density, begins = rng.standard_normal((9, K)), one_sequence(9)
    log_rows, gamma, _ = smoothed(kernels, log_density, begins, steps)
    back_rows, back, _ = smoothed(kernels, log_density[::-1], begins, steps)
    assert_allclose(back_rows.sum(), log_rows.sum(), rtol=1e-12)
    assert_allclose(back[::-1], gamma, atol=1e-13)


def test_compiled_passes_are_the_plain_ones():
    rng = np.random.default_rng(3)
    steps, n = some_steps(rng, 30, 5, 0.01), 400
    log_density, begins, weight = 40 * rng.standard_normal((n, 30)), rng.random(n + 1) < 0.1, rng.random(n)
    begins[[0, -1]] = True
    plain, quick = (smoothed(each, log_density, begins, steps, weight) for each in (chains, chain_sweeps))
    assert_allclose(quick[0], plain[0], rtol=1e-12)
    assert_allclose(quick[1], plain[1], atol=1e-13)
    for one, other in zip(quick[2], plain[2], strict=True):
        assert_allclose(one, other, rtol=1e-10, atol=1e-14)
    found = [each.best_steps(log_density, begins[:-1], np.zeros(30), steps) for each in (chains, chain_sweeps)]
    paths = [chains.trace(came, begins[1:], tops) for came, tops in found]
    assert_array_equal(*paths)


@KERNELS
def test_what_lies_far_from_everything_underflows_nowhere(kernels):
    """Emissions of e^-1e6 beside others, and a jump where short steps cannot follow."""
    K, T = 40, 6
    node = np.clip(np.arange(K)[:, None] + [-1, 0, 1], 0, K - 1)
    cuts, share = 3 * np.arange(K + 1), np.tile([0.3, 0.4, 0.3], K) * (1 - 1e-6)
    steps = ChainSteps(np.full(K, 1 / K), cuts, node.ravel(), share, 1e-6 / K)
    log_density = np.full((T, K), -1e6)
    log_density[[0, 1, 2, 3, 4, 5], [0, 1, 39, 39, 2, 2]] = -1e3  # to the other end and back
    log_rows, gamma, counts = smoothed(kernels, log_density, one_sequence(T), steps)
    assert np.isfinite(log_rows).all()
    assert_allclose(gamma[np.arange(T), [0, 1, 39, 39, 2, 2]], 1.0)
    assert_allclose(counts.jumps[0], 2.0, rtol=1e-4)
    assert_allclose(log_rows[2], -1e3 + np.log(1e-6 / K), rtol=1e-9)


@pytest.mark.parametrize("jump", [1.0, 0.1, 1e-6])
def test_emissions_left_out_hold_less_than_said(jump: float):
    rng = np.random.default_rng(5)
    steps = some_steps(rng, 30, 4, jump)
    log_density, begins = 60 * rng.standard_normal((200, 30)), one_sequence(200)
    cut, whole = (log_density.copy() for _ in range(2))
    largest = chains.relative_emissions(cut, steps.least)
    chains.relative_emissions(whole, 0.0)
    assert (cut == 0).mean() > 0.3
    found, exact = (chains.forward(each, begins[:-1], np.zeros(30), steps)[1] for each in (cut, whole))
    loss = np.log(exact).sum() - np.log(found).sum()
    assert -1e-11 < loss < 200 * chains.LOST + 1e-11  # but for rounding
    assert np.isfinite(largest).all()


@KERNELS
@pytest.mark.parametrize("cut", [1, 4, 7])
def test_passes_may_be_broken_off_and_taken_up_again(kernels, cut: int):
    rng = np.random.default_rng(4)
    steps, log_density, begins = some_steps(rng, 7, 3, 0.1), rng.standard_normal((9, 7)), one_sequence(9)
    begins[3] = True
    _, whole, whole_counts = smoothed(kernels, log_density, begins, steps)
    emission = log_density.copy()
    chains.relative_emissions(emission, steps.least)
    first, first_scale = kernels.forward(emission[:cut], begins[:cut], np.zeros(7), steps)
    second, second_scale = kernels.forward(emission[cut:], begins[cut:-1], first[-1].copy(), steps)
    counts, after = Counts(np.zeros(len(steps.share)), np.zeros(1)), np.zeros(7)
    ones = np.ones(9)
    kernels.backward(emission[cut:], begins[cut + 1 :], second_scale, ones[cut:], second, after, steps, counts)
    kernels.backward(emission[:cut], begins[1 : cut + 1], first_scale, ones[:cut], first, after, steps, counts)
    assert_allclose(np.concatenate([first, second]), whole, atol=1e-14)
    assert_allclose(counts.moves, whole_counts.moves, atol=1e-14)
