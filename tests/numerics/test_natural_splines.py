"""Splines by values at knots, held to SciPy's and to integrals of their own."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from prinfold.numerics.natural_splines import Knots, bending, second_derivatives, spline_at

PLACES = np.array([0.0, 0.3, 0.4, 1.1, 1.5, 2.4])
KNOTS = {"open": Knots(PLACES), "closed": Knots(PLACES, 3.0)}
every = pytest.mark.parametrize("name", KNOTS)


def peer(knots, values):
    """The same spline by SciPy."""
    if not knots.closed:
        return CubicSpline(knots.places, values, bc_type="natural")
    ends = np.append(knots.places, knots.places[0] + knots.period)
    return CubicSpline(ends, np.vstack([values, values[:1]]), bc_type="periodic")


@every
def test_values_and_slopes_are_those_of_scipy(name, rng):
    knots, values = KNOTS[name], rng.normal(size=(6, 2))
    x = rng.uniform(-4, 7, 50) if knots.closed else rng.uniform(0, 2.4, 50)
    inside = np.mod(x, 3.0) if knots.closed else x
    value, slope = spline_at(knots, values, x)
    np.testing.assert_allclose(value, peer(knots, values)(inside), atol=1e-12)
    np.testing.assert_allclose(slope, peer(knots, values)(inside, 1), atol=1e-11)
    np.testing.assert_allclose(second_derivatives(knots) @ values, peer(knots, values)(PLACES, 2), atol=1e-10)


@every
def test_bending_is_the_integral_of_the_squared_second_derivative(name, rng):
    knots, values = KNOTS[name], rng.normal(size=(6, 1))
    edges = np.append(PLACES, 3.0) if knots.closed else PLACES
    node, weight = np.polynomial.legendre.leggauss(3)  # squares of straight lines are exact
    whole = 0.0
    for a, b in itertools.pairwise(edges):
        x = (a + b) / 2 + (b - a) / 2 * node
        whole += (b - a) / 2 * float(weight @ peer(knots, values)(x, 2)[:, 0] ** 2)
    assert float((values.T @ bending(knots) @ values)[0, 0]) == pytest.approx(whole, rel=1e-10)


def test_an_open_spline_goes_straight_on(rng):
    values = rng.normal(size=(6, 2))
    ends, slopes = spline_at(KNOTS["open"], values, np.array([0.0, 2.4]))
    beyond, same = spline_at(KNOTS["open"], values, np.array([-1.0, 4.4]))
    np.testing.assert_allclose(beyond, ends + np.array([[-1.0], [2.0]]) * slopes, atol=1e-12)
    np.testing.assert_allclose(same, slopes)


@pytest.mark.parametrize("n", [1, 2])
def test_so_few_knots_bend_nothing(n):
    assert (bending(Knots(np.arange(float(n)))) == 0).all()


def test_no_other_function_through_the_values_bends_less(rng):
    """With a knot more, and any value there, a spline bends at least as much."""
    knots, values = KNOTS["open"], rng.normal(size=(6, 1))
    least = float((values.T @ bending(knots) @ values)[0, 0])
    more = Knots(np.sort(np.append(PLACES, 0.7)))
    for value in rng.normal(size=5):
        with_it = np.insert(values, 3, value, axis=0)
        assert float((with_it.T @ bending(more) @ with_it)[0, 0]) >= least - 1e-9
