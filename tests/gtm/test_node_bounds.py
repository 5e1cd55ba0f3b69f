"""Bounds that hold for every row of a ball, whatever the axes along which its radius is split."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from prinfold.gtm.node_bounds import Balls, leading_axes, rise_bounds, split_radii

SEEDS = st.integers(0, 2**32 - 1)


def ball(center, delta, frame):
    """One ball about a centre that holds rows, with what is known of them along some axes."""
    radius, within, beside = split_radii(delta, np.array([0]), frame)
    seen, starts = (delta @ frame).astype(np.float32), np.array([0, len(delta)])
    return Balls(np.reshape(center, (1, -1)), radius, frame, within, beside, seen, starts)


def plain(known):
    """The same ball with its radius alone."""
    return known._replace(frame=known.frame[:, :0], seen=None)


def framed(known):
    """The same with radii along and across the axes."""
    return known._replace(seen=None)


@given(
    seed=SEEDS,
    D=st.integers(1, 8),
    q=st.integers(0, 8),
    spread=st.sampled_from([0.0, 0.1, 3.0]),
    shift=st.floats(-9, 9),
)
def test_no_row_of_a_ball_rises_above_the_bound(seed, D, q, spread, shift):
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(12, D)) * rng.uniform(0.01, 2, D)
    frame = np.linalg.qr(rng.normal(size=(D, D)))[0][:, : min(q, D)]
    center = rng.normal(size=D) + shift
    delta = rng.normal(size=(40, D)) * spread * rng.uniform(0, 1, D)
    known = ball(center, delta, frame)
    f = (center + delta) @ Y.T - 0.5 * np.square(Y).sum(axis=1)
    rise = (f - f.max(axis=1, keepdims=True)).max(axis=0)
    rounding = 1e-12 * (1 + np.abs(f).max())
    loose, tighter, tightest = (rise_bounds(Y, each)[0] for each in (plain(known), framed(known), known))
    assert (rise <= loose + rounding).all()
    assert (rise <= tighter + rounding).all()
    assert (rise <= tightest + rounding).all()
    assert (tighter <= loose + rounding).all()
    assert (tightest <= tighter + rounding).all()
    if spread == 0.0:
        assert_allclose(tightest, rise, atol=1e-6, err_msg="a ball of one point leaves nothing open")


@given(seed=SEEDS, D=st.integers(1, 8))
def test_rows_known_along_all_axes_leave_open_which_component_is_best_and_no_more(seed, D):
    rng = np.random.default_rng(seed)
    Y, center, delta = rng.normal(size=(12, D)), rng.normal(size=D), 0.5 * rng.normal(size=(9, D))
    f = (center + delta) @ Y.T - 0.5 * np.square(Y).sum(axis=1)
    best = (center @ Y.T - 0.5 * np.square(Y).sum(axis=1)).argmax()
    found = rise_bounds(Y, ball(center, delta, np.eye(D)))[0]
    assert_allclose(found, (f - f[:, [best]]).max(axis=0), atol=1e-3)


@given(seed=SEEDS)
def test_bounds_that_are_low_enough_are_not_looked_at_again(seed):
    rng = np.random.default_rng(seed)
    Y, frame = rng.normal(size=(30, 6)), np.linalg.qr(rng.normal(size=(6, 3)))[0]
    known = ball(rng.normal(size=6), 0.3 * rng.normal(size=(9, 6)), frame)
    before, after = rise_bounds(Y, framed(known)), rise_bounds(Y, known, least=-2.0)
    low = before < -2.0 - 1e-9
    assert_allclose(after[low], before[low], rtol=1e-9)
    assert_allclose(after[~low], rise_bounds(Y, known)[~low], rtol=1e-9)


@given(seed=SEEDS)
def test_components_that_differ_by_little_more_than_rounding_are_not_taken_for_one(seed):
    rng = np.random.default_rng(seed)
    Y = 1e6 + 1e-3 * rng.normal(size=(12, 5))
    delta = 1e6 * rng.normal(size=(40, 5))
    frame = np.linalg.qr(rng.normal(size=(5, 2)))[0]
    away = Y - Y[0]  # f about the first component, where nothing cancels
    center = Y[:1] + 1e6 * rng.normal(size=(1, 5))
    f = (center - Y[0] + delta) @ away.T - 0.5 * np.square(away).sum(axis=1)
    rise = (f - f.max(axis=1, keepdims=True)).max(axis=0)
    known = ball(center, delta, frame)
    for each in (plain(known), framed(known), known):
        assert (rise <= rise_bounds(Y, each)[0] + 1.0).all()


@given(seed=SEEDS, q=st.integers(0, 5))
def test_radii_are_those_of_the_parts(seed, q):
    rng = np.random.default_rng(seed)
    delta, frame = rng.normal(size=(9, 5)), np.linalg.qr(rng.normal(size=(5, 5)))[0][:, :q]
    inside = delta @ frame @ frame.T
    expected = [np.linalg.norm(each, axis=1).max() for each in (delta, inside, delta - inside)]
    assert_allclose(split_radii(delta, np.array([0]), frame)[:, 0], expected, atol=1e-6)


def test_a_split_pays_where_rows_scatter_beside_the_components():
    rng = np.random.default_rng(0)
    Y = np.zeros((50, 30))
    Y[:, :2] = rng.uniform(-1, 1, (50, 2))
    delta = 0.1 * rng.normal(size=(20, 30))
    frame = leading_axes(Y, 0.005, 15)
    assert frame.shape == (30, 2)
    known = ball(np.zeros(30), delta, frame)
    loose, tighter, tightest = ((rise_bounds(Y, each) < -0.05).sum() for each in (plain(known), framed(known), known))
    assert tighter > 1.2 * loose
    assert tightest > 1.1 * tighter


def test_axes_hold_all_but_the_remainder_or_there_are_none():
    rng = np.random.default_rng(1)
    points = rng.normal(size=(200, 4)) * [5, 1, 0.01, 0.01]
    axes = leading_axes(points, 0.005, 2)
    assert_allclose(axes.T @ axes, np.eye(2), atol=1e-12)
    centered = points - points.mean(axis=0)
    assert np.square(centered - centered @ axes @ axes.T).sum() < 0.005 * np.square(centered).sum()
    assert leading_axes(rng.normal(size=(200, 4)), 0.005, 2).shape == (4, 0)
    assert leading_axes(np.zeros((3, 4)), 0.005, 2).shape[0] == 4
