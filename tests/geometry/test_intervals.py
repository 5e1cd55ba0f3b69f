"""Intervals with gaps between, open and closed to rings."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prinfold.geometry.intervals import Intervals

THREE = Intervals(np.array([0.0, 3.0, 6.0]), np.array([2.0, 5.0, 6.0]), np.array([False, True, False]))


def column(*values):
    return np.array(values, dtype=float)[:, None]


def test_gaps_are_outside_but_for_rounding():
    Z = column(-1e-3, -1e-7, 0, 1, 2, 2 + 1e-7, 2.001, 2.5, 2.999, 3, 5, 5.001, 5.9, 6, 6 + 1e-7, 6.001, np.nan, np.inf)
    assert_array_equal(
        THREE.contains(Z)[:, None].ravel().astype(int), [0, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 0]
    )


def test_a_single_ring_has_no_outside():
    """Arc length goes on in any turn; an open interval ends, and so does a ring that others follow."""
    for closed in (True, False):
        alone = Intervals(np.array([0.0]), np.array([2.0]), np.array([closed]))
        assert_array_equal(alone.contains(column(-5, 1, 2.5, 9, np.nan, np.inf)), [closed, True, closed, closed, 0, 0])


def test_slack_never_fills_a_gap():
    tight = Intervals(np.array([0.0, 1e6 + 0.1]), np.array([1e6, 2e6]), np.array([False, False]))
    assert not tight.contains(column(1e6 + 0.04))[0]
    assert tight.contains(column(1e6 + 0.01))[0]


def test_a_coordinate_in_a_gap_belongs_to_the_nearer_interval():
    assert_array_equal(THREE.piece(column(-9, 0, 2.4, 2.6, 3, 5.4, 5.6, 9)), [0, 0, 0, 1, 1, 1, 2, 2])


def test_retraction_goes_to_an_end_or_round_the_ring():
    found = THREE.retract(column(-1, 0.5, 2.3, 2.8, 3.5, 5.0, 5.2, 5.8, 9))
    assert_allclose(found[:, 0], [0, 0.5, 2, 4.8, 3.5, 3.0, 3.2, 6, 6], atol=1e-12)
    assert THREE.contains(found).all()
    assert_array_equal(THREE.retract(found), found)


def test_differences_go_the_short_way_round_a_ring_only():
    A, B = column(1.9, 4.9, 4.9, 6), column(0.1, 3.1, 1.0, 3.5)
    assert_allclose(THREE.difference(A, B)[:, 0], [1.8, -0.2, 3.9, 2.5])
    assert_allclose(THREE.difference(B, A), -THREE.difference(A, B))
    assert THREE.difference(A[None], B[:, None]).shape == (4, 4, 1)


def test_rings_have_no_boundary():
    assert_array_equal(THREE.boundary(column(0, 1, 2, 3, 4, 5, 6)), [True, False, True, False, False, False, True])


def test_a_curve_goes_on_beyond_its_ends_but_not_off_a_ring():
    assert_allclose(THREE.beyond(column(-0.1, 2.1, 5.1))[:, 0], [-0.1, 2.1, 3.1])


@pytest.mark.parametrize(
    ("z", "slope", "held"), [(0, 1, True), (0, -1, False), (2, -1, True), (1, 1, False), (3, 1, False)]
)
def test_a_descent_is_held_at_open_ends_alone(z, slope, held):
    found = THREE.restrain(column(z), np.array([[float(slope)]]), np.array([[[7.0]]]), np.array([2.0]))
    assert found.frozen[0, 0] == held
    assert found.gradient[0, 0] == (0 if held else slope)
    assert found.hessian[0, 0, 0] == (4.0 if held else 7.0)
    assert not found.drift.any()


def test_bounds_and_frame():
    assert (THREE.extent.n_columns, THREE.extent.dimension) == (1, 1)
    assert_array_equal([THREE.extent.lower, THREE.extent.upper], [[0.0], [6.0]])
    assert_array_equal(THREE.frame(column(0, 1)), np.ones((2, 1, 1)))
