"""Nearest points on polylines: the compiled sweep and its slow twin."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prinfold.exceptions import InvalidDataError
from prinfold.numerics.polylines import nearest_on_polyline, nearest_on_polyline_reference, nearest_on_segments


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("D", [1, 2, 7, 40])
def test_the_sweep_is_its_twin(closed, D):
    rng = np.random.default_rng(D)
    vertices, X = rng.normal(size=(12, D)).cumsum(axis=0), 3 * rng.normal(size=(60, D))
    vertices[5] = vertices[4]  # a segment of no length
    fast, slow = nearest_on_polyline(X, vertices, closed), nearest_on_polyline_reference(X, vertices, closed)
    assert_allclose(fast.squared, slow.squared, atol=1e-12)
    tied = np.isclose(slow.share, 0.0) | np.isclose(slow.share, 1.0)  # a vertex belongs to two segments
    assert_array_equal(fast.segment[~tied], slow.segment[~tied])
    assert_allclose(fast.share[~tied], slow.share[~tied], atol=1e-12)


def test_of_several_as_near_the_first_counts():
    square = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
    feet = nearest_on_polyline(np.zeros((2, 2)), square, closed=True)
    assert_array_equal(feet.segment, [0, 0])
    assert_allclose(feet.share, 0.5)


@pytest.mark.parametrize("closed", [False, True])
def test_rows_with_their_neighbours_pass_over_segments_that_are_far(closed):
    """Groups of rows that are near each other, on a chain of short segments: hardly any is looked at."""
    angle = np.linspace(0, 6, 300)
    vertices = np.stack([np.cos(angle), np.sin(angle)], axis=1) * (1 + angle)[:, None]
    X = np.sort(np.random.default_rng(0).uniform(0, 6, 500))
    X = np.stack([np.cos(X), np.sin(X)], axis=1) * (0.9 + X)[:, None]
    fast, slow = nearest_on_polyline(X, vertices, closed), nearest_on_polyline_reference(X, vertices, closed)
    assert_allclose(fast.squared, slow.squared, atol=1e-12)


@pytest.mark.parametrize("columns", [3, 20])
def test_feet_on_segments_that_are_no_chain_are_those_of_each_alone(columns: int) -> None:
    """With few columns and with many, beside every segment as a polyline of its own."""
    rng = np.random.default_rng(0)
    X, begin, step = (rng.normal(size=(size, columns)) for size in (60, 9, 9))
    feet = nearest_on_segments(X, begin, step)
    alone = [nearest_on_polyline_reference(X, np.stack([a, a + d])) for a, d in zip(begin, step, strict=True)]
    squared = np.stack([each.squared for each in alone])
    np.testing.assert_array_equal(feet.segment, squared.argmin(axis=0))
    np.testing.assert_allclose(feet.squared, squared.min(axis=0))


def test_no_segments_have_no_feet() -> None:
    with pytest.raises(InvalidDataError, match="at least one segment"):
        nearest_on_segments(np.zeros((3, 2)), np.zeros((0, 2)), np.zeros((0, 2)))
