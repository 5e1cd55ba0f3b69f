"""Landscapes: sums over nodes against plain loops, Bayes' rule, effective rows, and what empty nodes say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prinfold.applications import landscape_sums, landscapes
from prinfold.applications.landscape_sums import kish_count
from prinfold.applications.landscapes import ClassLandscape, class_landscape, property_landscape

N, K = 40, 7


def posterior(n: int = N, n_nodes: int = K, seed: int = 0) -> np.ndarray:
    """Responsibilities in general position; the last node has none."""
    weight = np.random.default_rng(seed).dirichlet(np.full(n_nodes - 1, 0.3), n)
    return np.concatenate([weight, np.zeros((n, 1))], axis=1)


@pytest.fixture
def share() -> np.ndarray:
    return posterior()


@pytest.fixture
def codes() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 3, N)


@pytest.fixture
def y() -> np.ndarray:
    return np.random.default_rng(2).normal(3.0, 5.0, (N, 2))


def of_classes(share: np.ndarray, codes: np.ndarray, weight: Any = None, **options: Any) -> ClassLandscape:
    return class_landscape(
        lambda part: share[part], share.shape[1], codes, np.array(["a", "b", "c"]), weight, **options
    )


def of_numbers(share: np.ndarray, y: np.ndarray, weight: Any = None, **options: Any) -> Any:
    return property_landscape(lambda part: share[part], share.shape[1], y, weight, **options)


# ------------------------------------------------------------------------------------------- sums and rows


def test_class_probabilities_are_the_loops_of_the_definition(share, codes):
    found = of_classes(share, codes, pseudo_count=0.3)
    prior = np.bincount(codes) / N
    for k in range(K):
        mass = [sum(share[n, k] for n in range(N) if codes[n] == c) for c in range(3)]
        wanted = (np.array(mass) + 0.3 * prior) / (sum(mass) + 0.3)
        assert_allclose(found.belief[k], wanted)
    assert_allclose(found.mass, share.sum(axis=0))
    assert_allclose(found.probabilities(share), share @ found.belief)


def test_balanced_priors_are_rows_weighted_to_equal_classes(share, codes):
    """The same as giving each class the same total weight."""
    weight = (1.0 / np.bincount(codes))[codes] * N / 3
    balanced = of_classes(share, codes, prior=np.full(3, 1 / 3), pseudo_count=0.2)
    weighted = of_classes(share, codes, weight, pseudo_count=0.2)
    assert_allclose(balanced.belief, weighted.belief)
    assert_allclose(balanced.probabilities(share), weighted.probabilities(share))


def test_bayes_rule_turns_densities_of_nodes_into_classes(share, codes):
    """P(c | k) ∝ P(k | c) P(c), for any P(c)."""
    prior = np.array([0.7, 0.2, 0.1])
    given_class = np.stack([share[codes == c].mean(axis=0) for c in range(3)], axis=1)
    joint = given_class[:-1] * prior
    found = of_classes(share, codes, prior=prior)
    assert_allclose(found.belief[:-1], joint / joint.sum(axis=1, keepdims=True))


def test_means_and_spreads_of_a_single_node_are_those_of_the_textbook(y):
    """One node that holds every row: mean, unbiased standard deviation, standard error."""
    found = of_numbers(np.ones((N, 1)), y)
    assert_allclose(found.mean[0], y.mean(axis=0))
    assert_allclose(found.spread[0], y.std(axis=0, ddof=1))
    assert_allclose(found.error[0], y.std(axis=0, ddof=1) / np.sqrt(N))
    assert_allclose(found.count[0], N)
    assert_allclose(found.deviations(np.ones((1, 1)))[0], y.std(axis=0) * N / (N - 1))


def test_means_are_posterior_weighted(share, y):
    found = of_numbers(share, y)
    wanted = (share.T @ y)[:-1] / share.sum(axis=0)[:-1, None]
    assert_allclose(found.belief[:-1], wanted)
    assert_allclose(found.predictions(share), share @ np.concatenate([wanted, y[:1]]))


@pytest.mark.parametrize("count", [0.0, 0.4])
def test_deviations_are_the_errors_of_rows_left_out(share, y, count):
    """Each row predicted by a landscape made without it, about the same centre."""
    share[0] = np.eye(K)[-2]  # and a node of which other rows have their shares
    found = of_numbers(share, y, pseudo_count=count)
    error = np.empty_like(y)
    for n in range(N):
        others = np.delete(np.arange(N), n)
        mass = share[others].sum(axis=0)[:-1, None] + count
        mean = (share[others].T @ (y[others] - y.mean(axis=0)))[:-1] / mass
        error[n] = y[n] - y.mean(axis=0) - share[n, :-1] @ mean
    assert_allclose(found.left_out * found.scale**2, share.T @ error**2, atol=1e-9)
    usual, own = (error**2).mean(axis=0), np.append(np.ones(K - 1), 0.0)[:, None]
    mass = share.sum(axis=0)[:, None]
    own = mass / (mass + count) if count else own
    with np.errstate(invalid="ignore"):
        node = (share.T @ error**2 + own * usual + count * y.var(axis=0)) / (mass + own + count)
    said = np.nan_to_num(found.belief)
    between = share @ said**2 - (share @ said) ** 2
    usually = np.nan_to_num(share.T @ between / np.where(mass > 0, mass, np.nan))
    excess = np.maximum(between - share @ usually, 0.0)
    assert (excess > 0).any()
    assert_allclose(found.deviations(share), np.sqrt(share @ np.nan_to_num(node) + excess))


def test_a_constant_spread_is_found_whatever_the_number_of_rows_at_a_node():
    """Means that differ between nodes and noise of one size: spreads at nodes of 2 to 50 rows are right on average."""
    rng = np.random.default_rng(0)
    counts = np.repeat([2, 5, 50], 300)
    node = np.repeat(np.arange(len(counts)), counts)
    share = np.zeros((len(node), len(counts)))
    share[np.arange(len(node)), node] = 1.0
    y = 10.0 * rng.normal(size=len(counts))[node] + 0.5 * rng.normal(size=len(node))
    squared = of_numbers(share, y[:, None]).spread[:, 0] ** 2
    for count in (2, 5, 50):
        assert_allclose(squared[counts == count].mean(), 0.25, rtol=0.1)


# ------------------------------------------------------------------------------------------------ invariances


def test_weights_are_repeated_rows(share, codes, y):
    times = np.random.default_rng(3).integers(0, 4, N)
    again = np.repeat(np.arange(N), times)
    one, other = of_classes(share, codes, times * 1.0), of_classes(share[again], codes[again])
    for name in ("belief", "mass", "count", "prior"):
        assert_allclose(getattr(one, name), getattr(other, name))
    one, other = of_numbers(share, y, times * 1.0), of_numbers(share[again], y[again])
    for name in ("belief", "mass", "count", "spread", "error", "left_out", "apart"):
        assert_allclose(getattr(one, name), getattr(other, name))


def test_blocks_make_no_difference(share, codes, y, monkeypatch):
    whole, numbers = of_classes(share, codes), of_numbers(share, y)
    monkeypatch.setattr(landscape_sums, "_BLOCK_RESPONSIBILITIES", 3 * K)
    assert len(landscape_sums.blocks_of(N, K)) == 14
    assert_allclose(of_classes(share, codes).belief, whole.belief)
    assert_allclose(of_numbers(share, y).spread, numbers.spread)


def test_targets_may_be_in_any_units(share, y):
    one, other = of_numbers(share, y, pseudo_count=0.1), of_numbers(share, 1e160 * y - 3e160, pseudo_count=0.1)
    assert_allclose(other.mean, 1e160 * one.mean - 3e160, rtol=1e-9)
    assert_allclose(other.deviations(share), 1e160 * one.deviations(share), rtol=1e-9)


def test_targets_are_told_apart_column_by_column(share, y):
    both = of_numbers(share, y, pseudo_count=0.1)
    for j in range(2):
        alone = of_numbers(share, y[:, [j]], pseudo_count=0.1)
        assert_allclose(both.mean[:, [j]], alone.mean)
        assert_allclose(both.deviations(share)[:, [j]], alone.deviations(share))


def test_targets_that_are_not_known_are_rows_left_out(share, y):
    gone = y.copy()
    gone[:15, 1] = np.nan
    found, fewer = of_numbers(share, gone), of_numbers(share[15:], y[15:])
    assert_allclose(found.mean[:, 1], fewer.mean[:, 1])
    assert_allclose(found.spread[:, 1], fewer.spread[:, 1])
    assert_allclose(found.mean[:, 0], of_numbers(share, y).mean[:, 0])


@pytest.mark.parametrize("count", [0.0, 0.1])
def test_a_target_that_no_row_knows_does_no_harm_to_others(share, y, count):
    gone = np.column_stack([y[:, 0], np.full(N, np.nan)])
    found, alone = (of_numbers(share, each, pseudo_count=count) for each in (gone, gone[:, :1]))
    assert_allclose(found.predictions(share)[:, :1], alone.predictions(share))
    assert_allclose(found.deviations(share)[:, :1], alone.deviations(share))
    assert np.isfinite(found.deviations(share)).all()


# ------------------------------------------------------------------------------------------- nodes that know little


def test_empty_nodes_say_so(share, codes, y):
    classes, numbers = of_classes(share, codes), of_numbers(share, y)
    assert_array_equal(np.flatnonzero(classes.empty), [K - 1])
    for value in (classes.probability, classes.error, numbers.mean, numbers.spread, numbers.error):
        assert np.isnan(value[-1]).all()
        assert np.isfinite(value[:-1]).all()
    assert_array_equal(classes.belief[-1], classes.prior)
    assert repr(classes) == "ClassLandscape(3 classes, 7 nodes, 1 of them empty)"
    assert repr(numbers) == "PropertyLandscape(2 targets, 7 nodes, 1 of them empty)"


def test_rows_at_empty_nodes_get_what_is_known_of_all(share, codes, y):
    there = np.eye(K)[[-1]]
    for count in (0.0, 0.5):
        classes, numbers = of_classes(share, codes, pseudo_count=count), of_numbers(share, y, pseudo_count=count)
        assert_allclose(classes.probabilities(there)[0], classes.prior)
        assert_allclose(numbers.predictions(there)[0], y.mean(axis=0))
        assert_allclose(numbers.deviations(there)[0], y.std(axis=0))


def test_without_a_pseudo_count_empty_nodes_have_no_say(share, codes, y):
    half = 0.5 * np.eye(K)[[0]] + 0.5 * np.eye(K)[[-1]]
    classes, numbers = of_classes(share, codes), of_numbers(share, y)
    assert_allclose(classes.probabilities(half), classes.belief[[0]])
    assert_allclose(numbers.predictions(half), numbers.mean[[0]])
    shy = of_classes(share, codes, pseudo_count=1e-3)
    assert_allclose(shy.probabilities(half), 0.5 * (shy.belief[[0]] + shy.prior))


def test_a_pseudo_count_draws_nodes_towards_the_whole(share, codes, y):
    strong = 1e9
    assert_allclose(of_classes(share, codes, pseudo_count=strong).belief, np.tile(np.bincount(codes) / N, (K, 1)))
    numbers = of_numbers(share, y, pseudo_count=strong)
    assert_allclose(numbers.belief, np.tile(y.mean(axis=0), (K, 1)))
    assert_allclose(numbers.deviations(share), np.tile(y.std(axis=0), (N, 1)), rtol=1e-6)


def test_a_constant_target_has_no_spread(share):
    found = of_numbers(share, np.full((N, 1), 7.0), pseudo_count=0.1)
    assert_array_equal(found.predictions(share), 7.0)
    assert_array_equal(found.deviations(share), 0.0)


def test_effective_rows_count_equal_shares():
    """m rows of share 1/2 each are m rows; one row is one, however little of it lies there."""
    assert_allclose(kish_count(np.array([5 * 0.5]), np.array([5 * 0.25])), [5.0])
    assert_allclose(kish_count(np.array([1e-150]), np.array([1e-300])), [1.0])
    assert_array_equal(kish_count(np.zeros(1), np.zeros(1)), [0.0])


def test_one_row_makes_no_certainty():
    """A class seen once: its probability is 1 and far from sure; seen a hundred times, it is."""
    once = of_classes(np.ones((1, 1)), np.array([0]))
    often = of_classes(np.ones((100, 1)), np.zeros(100, dtype=int))
    assert once.probability[0, 0] == often.probability[0, 0] == 1.0
    assert once.error[0, 0] > 0.2
    assert often.error[0, 0] < 0.02


def test_parts_that_do_not_fit_are_refused(share, codes, y):
    whole, numbers = of_classes(share, codes), of_numbers(share, y)
    with pytest.raises(ValueError, match="parts of a class landscape do not fit together"):
        ClassLandscape(whole.classes[:2], whole.prior, whole.class_mass, whole.class_squares, 0.0, 0.1)
    with pytest.raises(ValueError, match="parts of a property landscape do not fit together"):
        type(numbers)(*(numbers.node_mass,) * 6, numbers.center[:1], numbers.scale, 0.0, 0.1)


def test_a_row_that_may_be_anywhere_may_be_anything():
    rng = np.random.default_rng(0)
    share = np.eye(4)[rng.integers(4, size=400)]
    y = share @ np.array([0.0, 10.0, 20.0, 30.0]) + rng.standard_normal(400)
    found = landscapes.property_landscape(lambda part: share[part], 4, y[:, None])
    sure, unsure = found.deviations(np.eye(4)), found.deviations(np.full((1, 4), 0.25))
    assert_allclose(sure, 1.0, atol=0.2)
    assert_allclose(unsure, np.sqrt(1.0 + np.var([0.0, 10.0, 20.0, 30.0])), rtol=0.03)


def test_rows_of_a_rare_class_that_weigh_more_count_as_few():
    """With equal priors nine rows of one class and one of another are (9 + 9)²/(9 + 81) = 3.6 rows."""
    codes = np.array([0] * 9 + [1])
    found = landscapes.class_landscape(
        lambda part: np.ones((10, 1))[part], 1, codes, np.array(["a", "b"]), prior=np.full(2, 0.5)
    )
    assert_allclose(found.count, 3.6)


def test_the_error_of_a_mean_is_that_of_as_many_rows_as_it_counts_for():
    rng = np.random.default_rng(0)
    share = np.concatenate([np.full((4, 1), 1.0), np.full((60, 1), 0.1)])
    share = np.concatenate([share, 1 - share], axis=1)
    y = rng.standard_normal(64)
    found = landscapes.property_landscape(lambda part: share[part], 2, y[:, None])
    count = share[:, 0].sum() ** 2 / (share[:, 0] ** 2).sum()
    assert_allclose(found.error[0], found.spread[0] / np.sqrt(count))
    assert abs(count - share[:, 0].sum()) > 10
