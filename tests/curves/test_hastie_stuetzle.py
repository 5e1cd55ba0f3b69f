"""Starts and steps of principal curves."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse.csgraph import minimum_spanning_tree, shortest_path
from scipy.spatial.distance import cdist

from prinfold import SmoothingSpline, datasets
from prinfold.curves import hastie_stuetzle, starts
from prinfold.curves.smoothers import SmoothedCurve
from prinfold.exceptions import InvalidDataError


def rows_of(X):
    return hastie_stuetzle.SmoothingRows.of(X - X.mean(axis=0), np.ones(len(X)))


def test_the_longest_path_is_the_longest_of_all():
    points = np.random.default_rng(0).normal(size=(30, 3))
    tree = minimum_spanning_tree(cdist(points, points))
    every = shortest_path(tree, directed=False)
    path = starts.longest_path(points)
    length = np.linalg.norm(np.diff(points[path], axis=0), axis=1).sum()
    assert_allclose(length, every.max())
    assert len(set(path.tolist())) == len(path)


def test_a_tree_follows_a_spiral_where_a_line_cannot():
    data = datasets.make_spiral(600, noise=0.03, rng=0)
    offset = data.X.mean(axis=0)
    made = {each.name: each for each in starts.trees(data.X - offset, np.ones(600))}
    path = made["tree of 50"].vertices + offset
    assert data.surface.distance(path).max() < 0.1
    assert np.linalg.norm(np.diff(path, axis=0), axis=1).sum() > 7.0


@pytest.mark.parametrize("make", [starts.ellipse, starts.circle])
def test_round_starts_lie_in_the_principal_plane(make):
    X = np.random.default_rng(1).normal(size=(50, 4)) * [3.0, 2.0, 0.1, 0.1]
    X -= X.mean(axis=0)
    axes, deviations = starts.principal_axes(X, np.ones(50))
    ring = make(X, np.ones(50))
    assert_allclose(ring, ring @ axes.T @ axes, atol=1e-12)
    if make is starts.ellipse:
        assert_allclose(np.abs(ring @ axes.T).max(axis=0), np.sqrt(2) * deviations, rtol=1e-9)


def test_starts_that_do_not_fit_are_refused():
    X, weight, offset = np.random.default_rng(0).normal(size=(20, 2)), np.ones(20), np.zeros(2)
    with pytest.raises(InvalidDataError, match="for closed curves; set closed=True"):
        starts.make_starts(X, weight, "circle", False, offset)
    with pytest.raises(InvalidDataError, match="at least two finite vertices"):
        starts.make_starts(X, weight, np.zeros((1, 2)), False, offset)


@pytest.mark.parametrize("closed", [False, True])
def test_places_are_arc_length(closed):
    data = datasets.make_circle(40, noise=0.1, rng=0)
    rows = rows_of(data.X)
    angle = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    curve = hastie_stuetzle.project_rows(rows, ring, closed)
    assert_allclose(curve.at(curve.place), rows.X - curve.residual, atol=1e-9)
    if closed:
        expected = np.mod(np.arctan2(rows.X[:, 1], rows.X[:, 0]) / (2 * np.pi), 1.0)
        assert_allclose(curve.place, expected, atol=2e-3)
    else:
        assert (curve.place.min(), curve.place.max()) == (0.0, 1.0)


def test_an_open_curve_may_grow():
    X = np.stack([np.linspace(-1, 1, 50), 0.1 * (-1.0) ** np.arange(50)], axis=1)
    rows = rows_of(X)
    short = np.array([[-0.5, 0.0], [0.5, 0.0]])
    bounded, free = (
        hastie_stuetzle.project_rows(rows, short, False),
        hastie_stuetzle.project_rows(rows, short, False, beyond=10.0),
    )
    assert (bounded.place == 0.0).sum() > 10
    assert (free.place == 0.0).sum() == 1
    assert bounded.longest == pytest.approx(1.0)
    assert free.longest == pytest.approx(free.length) == pytest.approx(2.0)


def test_the_noise_says_how_finely_a_curve_may_bend():
    """On a straight curve of length 2 with noise 0.1 across it, in one direction and in more.

    As a straight curve leaves nothing along it, one direction fewer is seen. Beyond two the scale grows, and degrees of
    freedom count no less than with two.
    """
    rng = np.random.default_rng(0)
    for D, across in ((2, 1.0), (4, 2.0), (12, 10.0)):
        X = np.column_stack([np.linspace(-1, 1, 4000), 0.1 * rng.normal(size=(4000, D - 1))])
        line = np.zeros((2, D))
        line[:, 0] = -1.0, 1.0
        sample = hastie_stuetzle.curve_sample(rows_of(X), hastie_stuetzle.project_rows(rows_of(X), line, False))
        wider = max(1.0, across / 2) ** 0.15
        assert_allclose(sample.finest, 1.3 * wider * 0.1 * np.sqrt((D - 1) / across) / 2, rtol=0.02)
        assert_allclose(sample.df_factor, 2.0 if across == 1 else 1.5, rtol=0.02)


def test_rows_on_a_ring_leave_gaps_no_wider_than_chance():
    place = np.random.default_rng(0).uniform(size=200)
    assert hastie_stuetzle.widest_gap(place) < 1.0
    assert hastie_stuetzle.widest_gap(0.7 * place) > 1.0


def test_a_correction_takes_away_most_of_the_bias():
    """On a circle without noise the smoother draws a stiff curve inwards; smoothing residuals brings it back."""
    angle = 2 * np.pi * np.arange(200) / 200
    rows = rows_of(np.stack([np.cos(angle), np.sin(angle)], axis=1))
    start = starts.CurveStart("given", rows.X[::4])
    smoother = SmoothingSpline(penalty=2e-4)
    curve = hastie_stuetzle.step(rows, smoother, hastie_stuetzle.begin(rows, start, True))
    flat = 1 - np.linalg.norm(curve.vertices, axis=1).mean()
    mended = hastie_stuetzle.correct_bias(rows, smoother, curve)
    assert flat > 0.1
    assert abs(1 - np.linalg.norm(mended.vertices, axis=1).mean()) < 0.1 * flat
    assert hastie_stuetzle.correct_bias(rows, smoother, hastie_stuetzle.begin(rows, start, True)).step == 0


def test_winding_through_the_noise_makes_codes_no_shorter():
    """Half the distance for twice the length: as good, and worse for what it takes to say how the curve winds."""

    def curve(length, V, q=1.0):
        ends = np.array([[0.0, 0.0], [length, 0.0]])
        smooth = SmoothedCurve(ends, 2.0, V, 1.0)
        return hastie_stuetzle.CurveState(
            ends, False, ends, (0.0, length), np.zeros(1), ends, np.sqrt(V / q), q, length, 1, smooth
        )

    plain, winding, cut = hastie_stuetzle.code_lengths([curve(1e3, 1.0), curve(2e3, 0.25), curve(500.0, 9.0)])
    assert_allclose(plain, winding, atol=1e-5)
    assert cut > plain + 0.4
    # A curve without length says as much as a normal distribution in q + 1 directions, in place of q.
    dot = hastie_stuetzle.code_lengths([curve(0.0, 4.0)])[0]
    assert_allclose(dot + 0.5 * np.log(2 * np.pi * np.e), np.log(2 * np.pi * np.e) + 0.5 * np.log(4.0) * 2)
    # What is compared does not depend on the unit, nor on the order.
    pair = [curve(3.0, 0.5, 2.0), curve(4.0, 0.3, 1.5)]
    far = [curve(3e80, 0.5e160, 2.0), curve(4e80, 0.3e160, 1.5)]
    assert_allclose(np.diff(hastie_stuetzle.code_lengths(far)), np.diff(hastie_stuetzle.code_lengths(pair)), rtol=1e-9)
    assert_allclose(hastie_stuetzle.code_lengths(pair[::-1])[::-1], hastie_stuetzle.code_lengths(pair))


def test_starts_are_compared_in_as_many_directions_as_rows_have():
    data = datasets.make_spiral(200, noise=0.03, rng=0)
    rows = rows_of(data.X)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(60, 2)))[0].T
    wide = rows_of(rows.X @ turn)
    some, other = (starts.start_candidates("auto", False, each.X, each.weight, 0.0) for each in (rows, wide))
    assert hastie_stuetzle.best_start(wide, SmoothingSpline(), other)[0].name == (
        hastie_stuetzle.best_start(rows, SmoothingSpline(), some)[0].name
    )


def test_the_noise_of_large_numbers_is_as_large():
    X = datasets.make_half_circle(40, rng=0).X
    (small, q), (large, same) = (
        hastie_stuetzle.noise_across(rows, hastie_stuetzle.project_rows(rows, rows.X[:2], False).residual)
        for rows in (rows_of(X), rows_of(1e100 * X))
    )
    assert_allclose([large / 1e100, same], [small, q])


def test_a_correction_smooths_as_the_curve_was():
    """Chosen anew, how much to smooth residuals would be that of a straight line."""
    told = []

    class Told:
        def smooth(self, sample, step, setting=None):
            told.append(setting)
            return SmoothingSpline().smooth(sample, step, setting)

    rows = rows_of(datasets.make_half_circle(80, rng=0).X)
    curve = hastie_stuetzle.begin(rows, starts.CurveStart("given", starts.principal_line(rows.X, rows.weight)), False)
    for _ in range(3):
        curve = hastie_stuetzle.step(rows, Told(), curve)
    assert told == [None] * 3
    hastie_stuetzle.correct_bias(rows, Told(), curve)
    assert len(told) > 3
    assert set(told[3:]) == {curve.smooth.setting}
