"""Sums of kernels and bandwidths by likelihood, against loops that follow the definition."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prinfold.density.class_densities import (
    LeaveOneOut,
    class_bandwidths,
    class_rows,
    likelihood_bandwidth,
    log_joint,
    log_kernel_sums,
    log_posterior,
    nearest_squared,
)
from prinfold.numerics.radial_kernels import PROFILES, Gaussian

profiles = pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES.keys())
RNG = np.random.default_rng(0)
ROWS, WEIGHT = RNG.normal(size=(40, 3)), RNG.uniform(0.5, 3.0, 40)


def gaps(X, rows):
    return np.array([[((x - row) ** 2).sum() for row in rows] for x in X])


# -------------------------------------------------------------------------------------------------------- sums


@profiles
def test_sums_are_those_of_the_definition(profile):
    X = np.random.default_rng(1).normal(size=(30, 3))
    expected = (WEIGHT * profile.value(gaps(X, ROWS) / 2.5**2)).sum(axis=1)
    assert_allclose(np.exp(log_kernel_sums(X, ROWS, WEIGHT, 2.5, profile)), expected, rtol=1e-9)


def test_a_gaussian_is_felt_at_any_distance():
    far = np.array([[1e4, 0.0, 0.0], [0.0, -1e8, 0.0]])
    nearest = gaps(far, ROWS).min(axis=1)
    found = log_kernel_sums(far, ROWS, WEIGHT, 0.1, Gaussian())
    assert_allclose(found, -0.5 * nearest / 0.1**2, rtol=1e-6)


def test_out_of_reach_there_is_nothing():
    far = np.array([[1e4, 0.0, 0.0]])
    for profile in (PROFILES["quartic"], PROFILES["triweight"], Gaussian(6.0)):
        assert_array_equal(log_kernel_sums(far, ROWS, WEIGHT, 0.1, profile), -np.inf)
    assert_array_equal(log_kernel_sums(np.full((1, 3), 1e140), ROWS, WEIGHT, 1e-60, Gaussian()), -np.inf)


def test_blocks_are_the_whole():
    X, rows = RNG.normal(size=(700, 2)), RNG.normal(size=(900, 2))
    whole = log_kernel_sums(X, rows, np.ones(900), 0.3, Gaussian())
    alone = [log_kernel_sums(x[None], rows, np.ones(900), 0.3, Gaussian())[0] for x in X[:20]]
    assert_allclose(whole[:20], alone, rtol=1e-9)
    assert_allclose(nearest_squared(X, rows), gaps(X, rows).min(axis=1), atol=1e-12)


# --------------------------------------------------------------------------------------------- leaving one out


@profiles
def test_each_row_is_judged_by_the_others(profile):
    h, told = 2.0, LeaveOneOut.of(ROWS, WEIGHT)
    k = profile.value(gaps(ROWS, ROWS) / h**2)
    for i in range(len(ROWS)):
        others = np.arange(len(ROWS)) != i
        mine = WEIGHT[others] * k[i, others]
        density = mine.sum() / (h**3 * WEIGHT[others].sum())
        assert_allclose(told.log_density(h, profile)[i], np.log(density), rtol=1e-9)
        assert_allclose(told.neighbors(h, profile)[i], mine.sum() ** 2 / (mine**2).sum(), rtol=1e-9)


def test_a_row_that_nothing_reaches_counts_as_low_and_not_as_impossible():
    X = np.array([[0.0], [0.1], [100.0]])
    told = LeaveOneOut.of(X, np.ones(3))
    found = told.log_density(1.0, PROFILES["quartic"])
    assert_allclose(found[2], -50 - np.log(2))
    assert found[0] == pytest.approx(2 * np.log(1 - 0.01) - np.log(2))
    assert_array_equal(told.neighbors(1.0, PROFILES["quartic"]), [1, 1, 0])


@profiles
def test_no_other_bandwidth_is_likelier(profile):
    told = LeaveOneOut.of(ROWS, WEIGHT)
    best = likelihood_bandwidth([told], profile)
    at_best = told.log_likelihood(best, profile)
    for h in np.geomspace(*told.range(), 400):
        assert told.log_likelihood(h, profile) <= at_best + 1e-6


def test_a_known_width_is_found():
    """Of n normal rows the likeliest bandwidth is near that of the mean integrated squared error, 1.06 σ n^(−1/5)."""
    X = 3.0 * np.random.default_rng(2).normal(size=(1500, 1))
    found = likelihood_bandwidth([LeaveOneOut.of(X, np.ones(1500))], Gaussian())
    assert found == pytest.approx(1.06 * 3.0 * 1500**-0.2, rel=0.4)


@profiles
def test_bandwidths_follow_units_and_ignore_place_order_and_turn(profile):
    def of(X, w):
        return likelihood_bandwidth([LeaveOneOut.of(X, w)], profile)

    order, turn = RNG.permutation(40), np.linalg.qr(RNG.normal(size=(3, 3)))[0]
    assert_allclose(of(7 * ROWS[order] @ turn + 4, 5 * WEIGHT[order]), 7 * of(ROWS, WEIGHT), rtol=1e-3)


def test_a_least_bandwidth_is_kept():
    told = LeaveOneOut.of(ROWS, WEIGHT)
    free = likelihood_bandwidth([told], Gaussian())
    assert likelihood_bandwidth([told], Gaussian(), least=0.5 * free) == pytest.approx(free, rel=2e-3)
    assert likelihood_bandwidth([told], Gaussian(), least=3 * free) == pytest.approx(3 * free)
    assert likelihood_bandwidth([told], Gaussian(), least=1e6) == pytest.approx(1e6)


def test_some_rows_asked_speak_for_all():
    X = np.random.default_rng(3).normal(size=(1200, 2))
    whole, part = (LeaveOneOut.of(X, np.ones(1200), pairs) for pairs in (2**23, 1200 * 300))
    assert whole.squared.shape == (1200, 1200)
    assert part.squared.shape == (300, 1200)
    assert likelihood_bandwidth([part], Gaussian()) == pytest.approx(likelihood_bandwidth([whole], Gaussian()), rel=0.1)


# ------------------------------------------------------------------------------------------------------ classes


def test_the_common_bandwidth_weighs_classes_by_their_rows():
    groups = class_rows(ROWS, np.arange(40) % 3, WEIGHT)
    told = [LeaveOneOut.of(group.rows, group.weight) for group in groups]
    common = class_bandwidths(groups, Gaussian(), per_class=False)
    assert len(set(common)) == 1

    def likelihood(h):
        return sum(g.weight @ t.log_density(h, Gaussian()) for g, t in zip(groups, told, strict=True))

    assert all(likelihood(h) <= likelihood(common[0]) + 1e-6 for h in np.geomspace(0.1, 10, 200))
    own = class_bandwidths(groups, Gaussian(), per_class=True)
    assert_allclose(own, [likelihood_bandwidth([t], Gaussian()) for t in told])


@pytest.mark.parametrize("per_class", [False, True])
def test_a_class_of_one_row_takes_the_common_bandwidth(per_class):
    groups = class_rows(ROWS, np.append(np.zeros(39, dtype=int), 1), None)
    found = class_bandwidths(groups, Gaussian(), per_class)
    assert found[0] == pytest.approx(found[1])


def test_classes_of_one_row_each_have_some_bandwidth():
    pair = class_rows(np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([0, 1]), None)
    assert_allclose(class_bandwidths(pair, Gaussian(), per_class=False), 5.0 / np.sqrt(2))
    same = class_rows(np.ones((2, 2)), np.array([0, 1]), None)
    assert_allclose(class_bandwidths(same, Gaussian(), per_class=True), 1.0)


def test_repeats_become_weights():
    X = np.array([[1.0], [0.0], [1.0], [5.0]])
    first, second = class_rows(X, np.array([0, 0, 0, 1]), None)
    assert_array_equal(first.rows, [[0.0], [1.0]])
    assert_array_equal(first.weight, [1.0, 2.0])
    assert_array_equal(second.weight, [1.0])
    assert_array_equal(class_rows(X, np.array([0, 0, 0, 1]), np.array([1.0, 2.0, 3.0, 4.0]))[0].weight, [2.0, 4.0])


def test_where_nothing_reaches_the_nearest_class_has_all_of_it():
    groups = class_rows(np.array([[0.0], [10.0], [10.5]]), np.array([0, 1, 1]), None)
    X = np.array([[4.0], [7.0], [5.0], [0.2]])
    joint = log_joint(X, groups, np.array([1.0, 1.0]), np.array([0.3, 0.7]), PROFILES["quartic"])
    assert_array_equal(np.exp(log_posterior(joint)), [[1, 0], [0, 1], [0, 1], [1, 0]])  # the third is a tie
    none = log_joint(X, groups, np.array([1.0, 1.0]), np.array([1.0, 0.0]), PROFILES["quartic"])
    assert_array_equal(np.exp(log_posterior(none))[:, 1], 0.0)


def test_the_posterior_adds_up():
    joint = np.array([[-1e5, -1e5 - 1, -np.inf], [0.0, -2.0, 3.0]])
    found = np.exp(log_posterior(joint))
    assert_allclose(found.sum(axis=1), 1.0)
    assert_allclose(found[0, 0] / found[0, 1], np.e)
