"""Rules for the density threshold of a latent domain."""

from __future__ import annotations

import numpy as np
import pytest

from prinfold.exceptions import InvalidParameterError
from prinfold.kernel_manifolds.domain_thresholds import Contour, make_threshold

DENSITY = np.array([0.5, 0.1, 0.3, 0.2, 0.4])
WEIGHT = np.array([1.0, 1.0, 1.0, 1.0, 6.0])


def test_auto_is_the_least_density_and_keeps_its_row():
    eta = make_threshold("auto").level(DENSITY, WEIGHT)
    assert eta == pytest.approx(0.1)
    assert eta < 0.1


@pytest.mark.parametrize(("share", "expected"), [(1.0, 0.1), (0.9, 0.2), (0.7, 0.4), (0.71, 0.3), (0.01, 0.5)])
def test_a_contour_keeps_its_share_of_the_weight_and_no_row_more_than_it_must(share, expected):
    eta = make_threshold(Contour(share)).level(DENSITY, WEIGHT)
    inside = eta <= DENSITY
    assert WEIGHT[inside].sum() >= share * WEIGHT.sum() - 1e-9
    assert eta == pytest.approx(expected)


def test_equal_densities_are_all_inside():
    assert (np.full(4, 0.25) >= make_threshold(Contour(0.5)).level(np.full(4, 0.25), np.ones(4))).all()


def test_a_number_is_taken_as_it_is():
    assert make_threshold(0.25).level(DENSITY, WEIGHT) == 0.25
    assert make_threshold(np.float32(0.25)).level(DENSITY, WEIGHT) == 0.25


@pytest.mark.parametrize("eta", [0.51, 3.0, 0.0, -1.0])
def test_a_number_that_leaves_no_row_is_refused_with_the_range(eta):
    with pytest.raises(InvalidParameterError, match=r"no row inside.*from 0.1 to 0.5"):
        make_threshold(eta).level(DENSITY, WEIGHT)


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1, float("nan")])
def test_shares_are_shares(share):
    with pytest.raises(InvalidParameterError, match="share must be"):
        Contour(share)
