"""When a GTM warns of posteriors with several modes: from a share of the weight on, not of the rows."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from prinfold import GTM
from prinfold.exceptions import MultimodalWarning

N_CURVE = 300


def fit_with_rows_between(n_between, weight_between=None):
    """What a fit to a horseshoe says of its posteriors, and the share of rows, by weight and by count, in doubt.

    Beside the curve there are rows between its two ends, as near to the one as to the other. Training does not
    start, so that the surface stays where the coordinates given put it.
    """
    t = np.linspace(0.3, 2 * np.pi - 0.3, N_CURVE)
    between = [0.25, 0.0] + 1e-3 * np.random.default_rng(1).standard_normal((n_between, 2))
    X = np.vstack([np.stack([np.cos(t), np.sin(t)], axis=1), between])
    Z = np.append(t / np.pi - 1, np.linspace(-0.9, 0.9, n_between))[:, None]
    weight = np.append(np.ones(N_CURVE), np.full(n_between, weight_between or 1.0))
    model = GTM(1, nodes=40, basis=12, init=Z, max_iter=0, tol=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, sample_weight=weight if weight_between else None)
    said = [str(each.message) for each in caught if issubclass(each.category, MultimodalWarning)]
    in_doubt = model.mode_distance(X) > 2
    return said, np.average(in_doubt, weights=weight), in_doubt.mean()


@pytest.mark.parametrize("n_between", [0, 9])
def test_three_in_a_hundred_rows_in_doubt_are_no_warning(n_between):
    said, share, _ = fit_with_rows_between(n_between)
    assert share < 0.03
    assert said == []


def test_eight_in_a_hundred_rows_in_doubt_are_a_warning_with_that_number():
    said, share, _ = fit_with_rows_between(26)
    assert 0.075 < share < 0.085
    assert len(said) == 1
    assert said[0].startswith("For 8 % of the rows")


@pytest.mark.parametrize("weight", [1e-6, 0.1])
def test_many_rows_in_doubt_with_little_weight_are_no_warning(weight):
    said, by_weight, by_count = fit_with_rows_between(60, weight)
    assert by_weight < 0.03
    assert by_count > 0.15
    assert said == []


def test_few_rows_in_doubt_with_much_weight_are_a_warning_with_their_share_of_it():
    said, by_weight, by_count = fit_with_rows_between(4, 6.6)
    assert 0.075 < by_weight < 0.085
    assert by_count < 0.02
    assert len(said) == 1
    assert said[0].startswith("For 8 % of the rows")
