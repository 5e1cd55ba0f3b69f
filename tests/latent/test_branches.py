"""Branches laid end to end: nodes, segments, meshes of any resolution."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prinfold.exceptions import InvalidParameterError
from prinfold.latent import Branches


def three() -> Branches:
    """An open branch, a ring, and one of no length."""
    return Branches([4.0, 3.0, 0.0], [False, True, False], [5, 6, 2], 0.5)


def test_nodes_are_even_and_inside():
    space = three()
    assert_allclose(space.nodes[:, 0], [0, 1, 2, 3, 4, 4.5, 5, 5.5, 6, 6.5, 7, 8, 8])
    assert space.domain.contains(space.nodes).all()
    assert_array_equal(space.domain.retract(space.nodes), space.nodes)
    assert (space.n_nodes, space.n_columns, space.dimension, space.n_branches) == (13, 1, 1, 3)


def test_segments_join_neighbours_and_close_rings():
    space = three()
    expected = [[0, 1], [1, 2], [2, 3], [3, 4], [5, 6], [6, 7], [7, 8], [8, 9], [9, 10], [10, 5], [11, 12]]
    assert_array_equal(space.faces, expected)
    assert len(space.edges) == len(expected)
    a, b = space.nodes[space.faces].swapaxes(0, 1)
    assert_allclose(space.distance(a, b), [1] * 4 + [0.5] * 6 + [0])
    assert space.spacing == 0.5


@pytest.mark.parametrize("resolution", [2, 6, 50, 1000])
def test_refined_is_the_same_space_with_nodes_shared_out_by_length(resolution):
    fine = three().refined(resolution)
    assert_array_equal(fine.domain.high, three().domain.high)
    assert_array_equal(fine.counts, np.maximum([round(resolution * 4 / 7), round(resolution * 3 / 7), 0], [2, 3, 2]))
    assert fine.domain.contains(fine.nodes).all()


def test_thinned_has_half_the_nodes():
    assert_array_equal(three().thinned().counts, [3, 3, 2])


def test_all_of_no_length():
    space = Branches([0.0], [False], [2], 0.5)
    assert_allclose(space.nodes, 0.0)
    assert space.spacing == 0.5
    assert_array_equal(space.refined(9).counts, [2])


def test_the_chart_is_arc_length():
    assert three().chart_labels == ("arc length",)
    assert_array_equal(three().chart(three().nodes), three().nodes)


def test_what_is_given_is_copied_and_kept():
    lengths = np.array([1.0])
    space = Branches(lengths, [False], [2], 0.5)
    lengths[0] = 9.0
    assert space.lengths[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        space.lengths[0] = 2.0


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (([], [], [], 1.0), "lengths of at least zero"),
        (([-1.0], [False], [2], 1.0), "lengths of at least zero"),
        (([np.nan], [False], [2], 1.0), "lengths of at least zero"),
        (([1.0], [False, True], [2], 1.0), "each of the 1 branches needs"),
        (([1.0], [False], [2, 2], 1.0), "each of the 1 branches needs"),
        (([0.0], [True], [3], 1.0), "one of no length cannot be"),
        (([1.0], [False], [1], 1.0), "two nodes, a closed one three"),
        (([1.0], [True], [2], 1.0), "two nodes, a closed one three"),
        (([1.0], [False], [2], 0.0), "gap between branches must be above zero"),
        (([1.0], [False], [2**30], 1.0), "latent nodes are more than"),
    ],
)
def test_what_makes_no_branches_is_refused(arguments, match):
    with pytest.raises(InvalidParameterError, match=match):
        Branches(*arguments)
