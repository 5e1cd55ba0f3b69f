"""Origins and weights that outliers do not decide on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from tests.properties.cases import random_rotation

from prinfold.base.starting_points import column_variances
from prinfold.gtm.starts.outliers import distances, downweight_outliers, spatial_median
from prinfold.rows.rows import as_rows

RNG = np.random.default_rng(1)
X = RNG.standard_normal((80, 3)) * [3.0, 1.0, 0.5] + 5.0


def median_of(table, weight=None, **options):
    return spatial_median(as_rows(table, np.nanmean(table, axis=0), weight, **options))


def test_the_median_has_the_least_sum_of_distances():
    weight = RNG.uniform(0.5, 2, len(X))
    found = median_of(X, weight)
    best = minimize(lambda m: weight @ np.linalg.norm(X - m, axis=1), found + 0.1, tol=1e-12).x
    assert_allclose(found, best, atol=1e-5)


def test_outliers_do_not_move_it():
    wild = X.copy()
    wild[:20] = 1e8
    assert np.linalg.norm(median_of(wild) - X[20:].mean(axis=0)) < 1.5
    rows = as_rows(wild, median_of(wild))
    assert column_variances(downweight_outliers(rows)).mean() < 50


def test_it_turns_with_the_data_and_repeats_are_weights():
    turn = random_rotation(3)
    assert_allclose(median_of(X @ turn), median_of(X) @ turn, atol=1e-6)
    count = RNG.integers(0, 4, len(X))
    repeated = np.repeat(X, count, axis=0)
    assert_allclose(median_of(repeated), median_of(X, count.astype(float)), atol=1e-6)
    rows, again = as_rows(X, X.mean(axis=0), count.astype(float)), as_rows(repeated, X.mean(axis=0))
    weight, each = downweight_outliers(rows).weight, downweight_outliers(again).weight
    some = np.flatnonzero(count)
    assert_allclose(weight[some] / count[some], each[np.cumsum(count)[some] - 1], rtol=1e-12)


def test_no_row_adds_more_than_one_at_twice_the_median():
    wild = X.copy()
    wild[:5] *= 1e3
    rows = as_rows(wild, median_of(wild))
    distance, weight = distances(rows), downweight_outliers(rows).weight
    reach = 2 * np.sort(distance)[39]
    near, gone = distance <= reach, distance > 2.5 * reach
    assert gone.sum() == 5
    assert (weight[near] == 1).all()
    assert (weight[gone] == 0).all()
    assert_allclose((weight * distance**2)[~near & ~gone], reach**2)


def test_gaps_and_units_are_taken_as_they_come():
    table = X.copy()
    table[::3, 1] = np.nan
    found = median_of(table, gaps=True)
    assert_allclose(found, median_of(X), atol=0.3)
    scale = np.array([10.0, 1e-3, 1.0])
    rows = as_rows(X, X.mean(axis=0))
    unit = X.std(axis=0)
    one = spatial_median(replace(rows, scale=unit))
    two = spatial_median(replace(as_rows(X * scale, (X * scale).mean(axis=0)), scale=unit * scale))
    assert_allclose(two, one * scale, rtol=1e-9)


def test_equal_rows_are_their_own_median():
    same = np.full((6, 2), 3.0)
    assert_allclose(median_of(same), 3.0)
    most = np.concatenate([same, [[9.0, 9.0]]])
    assert_allclose(median_of(most), 3.0, atol=1e-6)
    rows = as_rows(most, np.array([3.0, 3.0]))
    assert downweight_outliers(rows) is rows
