"""Splines by values at knots: where they go beyond them, and what they bend."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from prinfold.numerics.natural_splines import Knots, bending, bending_energy, spline_at

PLACES = np.array([0.0, 0.3, 0.4, 1.1, 1.5, 2.4])
KNOTS = {"open": Knots(PLACES), "closed": Knots(PLACES, 3.0)}
every = pytest.mark.parametrize("name", KNOTS)


@every
def test_values_at_the_knots_are_kept_and_slopes_are_those_of_differences(name, rng):
    knots, values, h = KNOTS[name], rng.normal(size=(6, 2)), 1e-6
    np.testing.assert_allclose(spline_at(knots, values, PLACES)[0], values, atol=1e-12)
    x = rng.uniform(-4, 7, 50)
    ahead, behind = (spline_at(knots, values, x + step)[0] for step in (h, -h))
    np.testing.assert_allclose(spline_at(knots, values, x)[1], (ahead - behind) / (2 * h), atol=1e-7)


def test_a_closed_spline_repeats_itself(rng):
    values, x = rng.normal(size=(6, 2)), rng.uniform(0, 3, 20)
    for shift in (-3.0, 6.0):
        np.testing.assert_allclose(
            spline_at(KNOTS["closed"], values, x + shift), spline_at(KNOTS["closed"], values, x), atol=1e-12
        )


@every
def test_bending_is_the_integral_of_the_squared_second_derivative(name, rng):
    knots, values = KNOTS[name], rng.normal(size=(6, 1))
    node, weight = np.polynomial.legendre.leggauss(3)  # squares of straight lines are exact
    whole = 0.0
    for a, b in itertools.pairwise(knots.ends):
        x = (a + b) / 2 + (b - a) / 2 * node
        whole += (b - a) / 2 * float(weight @ knots.spline(values)(x, 2)[:, 0] ** 2)
    assert float((values.T @ bending(knots) @ values)[0, 0]) == pytest.approx(whole, rel=1e-10)


@pytest.mark.parametrize("n", [2, 3, 4, 40])
@pytest.mark.parametrize("closed", [False, True])
def test_places_slopes_and_bends_are_those_of_scipy(n, closed, rng):
    places, values = np.sort(rng.uniform(0, 5, n)), rng.normal(size=(n, 4))
    knots = Knots(places, 6.0 if closed else 0.0)
    x = rng.uniform(places[0], knots.ends[-1], 50)
    spline, (place, slope) = knots.spline(values), spline_at(knots, values, x)
    np.testing.assert_allclose(place, spline(x), atol=1e-10 * np.abs(values).max())
    np.testing.assert_allclose(slope, spline(x, 1), atol=1e-10 * np.abs(spline(knots.ends, 1)).max())
    energy = float((values * (bending(knots) @ values)).sum())
    assert bending_energy(knots, values) == pytest.approx(energy, rel=1e-9)


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
