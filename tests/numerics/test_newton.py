"""Newton's steps up a concave function."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from prinfold.numerics.newton import newton_ascent

RNG = np.random.default_rng(2)
A, Y = RNG.standard_normal((30, 3)), RNG.poisson(3.0, 30).astype(float)


def value(b):
    return float(Y @ (A @ b) - np.exp(A @ b).sum())


def slopes(b):
    fit = np.exp(A @ b)
    return A.T @ (Y - fit), (A.T * fit) @ A


def test_it_ends_at_the_top_from_anywhere():
    for start in (np.zeros(3), np.array([3.0, -3.0, 2.0]), np.array([-5.0, 5.0, 0.0])):
        found = newton_ascent(start, value, slopes, A)
        assert_allclose(slopes(found)[0], 0.0, atol=1e-6)
        assert value(found) >= value(start)


def test_it_never_goes_down_even_where_slopes_mislead():
    def wrong(b):
        return -slopes(b)[0], slopes(b)[1]

    start = np.array([0.3, -0.2, 0.1])
    assert value(newton_ascent(start, value, wrong, A)) >= value(start)


def test_where_nothing_bends_it_takes_steps_of_bounded_length():
    found = newton_ascent(
        np.zeros(1), lambda b: float(b[0]), lambda b: (np.ones(1), np.array([[1e-30]])), np.ones((1, 1))
    )
    assert 0 < found[0] <= 60
