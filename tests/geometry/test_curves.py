"""Smooth curves through points, by arc length."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prinfold.geometry.curves import Cells, by_arc_length, through


def ring(n=40, radius=2.0, jitter=0.0):
    angle = 2 * np.pi * np.arange(n) / n + jitter * np.random.default_rng(0).uniform(size=n)
    return radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def cells(curve, closed):
    last = np.roll(np.arange(len(curve.points)), -1) if closed else np.arange(1, len(curve.points))
    first, width = np.arange(len(last)), np.full(len(last), curve.length / len(last))
    return Cells(curve.points[first], curve.points[last], curve.tangents[first], curve.tangents[last], width)


@pytest.mark.parametrize("closed", [False, True])
def test_the_curve_passes_through_its_points_with_one_slope(closed):
    points = np.random.default_rng(0).normal(size=(9, 3)).cumsum(axis=0)
    made = through(points, closed)
    zero, one = np.zeros(len(made.width)), np.ones(len(made.width))
    assert_allclose(made.at(zero), points[: len(zero)], atol=1e-12)
    assert_allclose(made.at(one)[:-1], made.at(zero)[1:], atol=1e-12)
    assert_allclose(made.slope(one)[:-1], made.slope(zero)[1:], atol=1e-12)
    if closed:
        assert_allclose(made.at(one)[-1], points[0], atol=1e-12)
        assert_allclose(made.slope(one)[-1], made.slope(zero)[0], atol=1e-12)


def test_slope_and_bend_are_derivatives():
    made = through(np.random.default_rng(0).normal(size=(9, 3)).cumsum(axis=0), False)
    t, step = np.linspace(0.1, 0.9, 8), 1e-5
    du = step * made.width[:, None]
    assert_allclose(made.slope(t), (made.at(t + step) - made.at(t - step)) / (2 * du), atol=1e-8)
    assert_allclose(made.bend(t), (made.slope(t + step) - made.slope(t - step)) / (2 * du), atol=1e-7)


def test_a_straight_line_is_met_exactly():
    line = np.stack([np.linspace(0, 1, 5), np.zeros(5)], axis=1)
    curve = by_arc_length(line, 0.05, False)
    assert_allclose(curve.length, 1.0, rtol=1e-12)
    assert_allclose(curve.points[:, 0], np.linspace(0, 1, len(curve.points)), atol=1e-12)
    assert_allclose(curve.tangents, np.tile([1.0, 0.0], (len(curve.points), 1)), atol=1e-12)


@pytest.mark.parametrize("jitter", [0.0, 0.1])
def test_a_ring_has_its_length_and_lies_on_the_circle(jitter):
    curve = by_arc_length(ring(jitter=jitter), 0.15, True)
    assert_allclose(curve.length, 4 * np.pi, rtol=3e-4)
    assert_allclose(np.linalg.norm(curve.points, axis=1), 2.0, rtol=3e-4)
    assert_allclose(np.linalg.norm(curve.tangents, axis=1), 1.0, atol=1e-12)


@pytest.mark.parametrize("closed", [False, True])
def test_steps_are_even_and_the_speed_is_one(closed):
    points = np.random.default_rng(1).normal(size=(12, 2)).cumsum(axis=0)
    made = cells(by_arc_length(points, 0.1, closed), closed)
    t = np.linspace(0, 1, 200)
    traveled = 0.0
    for i, width in enumerate(made.width):
        line = made.only(np.full(len(t), i)).at(t)
        traveled += np.linalg.norm(np.diff(line, axis=0), axis=1).sum()
        assert_allclose(traveled, (i + 1) * width, atol=1.2e-4 * made.width.sum())
        speed = np.linalg.norm(made.only(np.full(len(t), i)).slope(t), axis=1)
        assert np.abs(speed - 1).max() < 0.025


def test_two_points_make_a_straight_line():
    curve = by_arc_length(np.array([[0.0, 0.0], [3.0, 4.0]]), 100.0, False)
    assert_allclose(curve.points, [[0, 0], [3, 4]], atol=1e-12)
    assert_allclose(curve.length, 5.0)


def test_far_from_the_origin_no_digits_are_lost():
    here, there = by_arc_length(ring(), 0.15, True), by_arc_length(ring() + 1e6, 0.15, True)
    assert_allclose(there.points - 1e6, here.points, atol=1e-8)
    assert_allclose(there.length, here.length, rtol=1e-8)


def test_the_spacing_is_kept():
    curve = by_arc_length(ring(200), 0.15, True)
    step = np.linalg.norm(np.diff(curve.points, axis=0), axis=1)
    assert step.max() <= 0.15
    assert step.min() > 0.13
