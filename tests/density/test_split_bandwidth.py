"""Agreement of ridges of halves, and the distance of places to a ridge known by its points."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prinfold import datasets
from prinfold.density.bandwidths import BANDWIDTHS
from prinfold.density.ridges.mean_shift import FlowResult
from prinfold.density.split_bandwidth import distance_to_ridge, split_bandwidth, squared_ridge_distance


def straight(x, height=0.0):
    """Points of a level line."""
    n = len(x)
    points = np.column_stack([x, np.full(n, height)])
    tangent = np.tile([[1.0], [0.0]], (n, 1, 1))
    return FlowResult(points, tangent, np.zeros((n, 2)), np.zeros(n), np.zeros(n, np.int8), np.zeros(n, np.int64))


LINE = straight(np.linspace(0, 10, 101))


def test_between_two_points_there_is_ridge_and_beyond_the_end_there_is_none():
    places = np.array([[5.05, 0.3], [5.0, -0.3], [12.0, 0.0], [-2.0, 0.0]])
    assert_allclose(distance_to_ridge(places, LINE), [0.3, 0.3, 1.8, 1.8], atol=1e-9)


def test_one_point_is_a_ridge_and_none_is_infinitely_far():
    places = np.array([[0.0, 2.0]])
    assert_allclose(distance_to_ridge(places, straight(np.zeros(1))), 2.0)
    assert np.isinf(distance_to_ridge(places, straight(np.zeros(0)))).all()


def test_what_is_missing_counts_as_much_as_what_is_too_much():
    half = straight(np.linspace(0, 5, 51))
    assert squared_ridge_distance(LINE, half) == pytest.approx(squared_ridge_distance(half, LINE))
    assert squared_ridge_distance(LINE, half) > 1.0
    assert squared_ridge_distance(LINE, straight(np.linspace(0, 10, 64), height=0.2)) == pytest.approx(0.04)
    assert squared_ridge_distance(LINE, straight(np.zeros(0)), farthest=3.0) == pytest.approx(9.0)


@pytest.mark.parametrize("make", [datasets.make_half_circle, datasets.make_zigzag])
def test_narrow_kernels_are_not_rewarded_nor_wide_ones(make):
    X = make(120, rng=0).X
    usual, found = (
        float(BANDWIDTHS[name](X, np.ones(120), 1, np.random.default_rng(0)))
        for name in ("wide_likelihood", "agreement")
    )
    assert 0.4 * usual < found < 2.5 * usual


def test_a_usual_bandwidth_that_is_too_wide_is_put_right():
    X = datasets.make_half_circle(120, 0.1, rng=0).X
    assert split_bandwidth(X, np.ones(120), 1, 0.4, np.random.default_rng(0)) < 0.4


def test_few_rows_and_ridges_of_all_columns_have_the_usual_bandwidth():
    rng = np.random.default_rng(0)
    few, many = rng.normal(size=(19, 2)), rng.normal(size=(40, 2))
    for rows, dimension in ((few, 1), (many, 2)):
        one, other = (
            BANDWIDTHS[name](rows, np.ones(len(rows)), dimension, rng) for name in ("agreement", "wide_likelihood")
        )
        assert one == other
