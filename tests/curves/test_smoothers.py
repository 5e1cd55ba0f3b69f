"""Smoothers along a curve: against dense linear algebra, and what their settings mean."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prinfold import KernelSmoother, LocalLinear, SmoothingSpline
from prinfold.curves import smoothers
from prinfold.curves.smoothers import CurveSample, even_places
from prinfold.exceptions import InvalidParameterError

ALL = [SmoothingSpline(df=6), LocalLinear(0.3), KernelSmoother(0.05)]
every = pytest.mark.parametrize("smoother", ALL, ids=lambda each: type(each).__name__)
rings = pytest.mark.parametrize("closed", [False, True])


def sample(n=60, closed=False, D=2, noise=0.1, **more):
    rng = np.random.default_rng(0)
    u = rng.uniform(size=n)
    wave = np.stack([np.sin(2 * np.pi * u), np.cos(2 * np.pi * u)], axis=1)[:, :D]
    return CurveSample(
        u, wave + noise * rng.normal(size=wave.shape), rng.integers(1, 3, n).astype(float), closed, **more
    )


def hat_matrix(smoother, given):
    """(m, n) how vertices depend on rows, by smoothing unit vectors with the setting that was found for all."""
    setting = smoother.smooth(given, 0).setting
    unit = given._replace(rows=np.eye(len(given.rows)))
    return smoother.smooth(unit, 0, setting)


@rings
@pytest.mark.parametrize("penalty", [1e12, 1e14, 1e155, 1.7e308])
@pytest.mark.parametrize("n", [40, 600])
def test_the_stiffest_spline_is_a_line(penalty, n, closed):
    """A ring that cannot bend is a point. Rounding must not bend what a larger penalty makes straighter."""
    given = sample(n, closed)
    smooth = SmoothingSpline(penalty).smooth(given, 0)
    design = np.stack([np.ones(n), given.place], axis=1)[:, : 1 if closed else 2]
    root = np.sqrt(given.weight)[:, None]
    line = np.linalg.lstsq(root * design, root * given.rows, rcond=None)[0]
    places = np.arange(len(smooth.vertices)) / (len(smooth.vertices) - 1)
    expected = np.stack([np.ones_like(places), places], axis=1)[:, : len(line)] @ line
    assert_allclose(smooth.vertices, expected, atol=1e-4)
    assert_allclose(smooth.df, len(line), atol=1e-3)


@rings
@pytest.mark.parametrize("bandwidth", [5e-324, 1e-300, 1e-160, 1e-9])
def test_the_narrowest_kernel_takes_the_nearest_row(bandwidth, closed):
    given = sample(closed=closed)
    smooth = KernelSmoother(bandwidth).smooth(given, 0)
    lag = given.place - even_places(len(smooth.vertices) - (not closed), closed)[:, None]
    away = np.abs(lag - np.round(lag) if closed else lag)
    assert_allclose(smooth.vertices, given.rows[away.argmin(axis=1)], atol=1e-12)


@rings
@pytest.mark.parametrize("bandwidth", [1e155, 1.7e308])
def test_the_widest_kernel_takes_the_mean(bandwidth, closed):
    given = sample(closed=closed)
    mean = np.average(given.rows, axis=0, weights=given.weight)
    assert_allclose(KernelSmoother(bandwidth).smooth(given, 0).vertices - mean, 0.0, atol=1e-12)


@rings
@every
def test_vertices_are_linear_in_the_rows_and_keep_what_is_constant(smoother, closed):
    given = sample(closed=closed)
    hat = hat_matrix(smoother, given).vertices
    assert_allclose(hat @ given.rows, smoother.smooth(given, 0).vertices, atol=1e-8)
    assert_allclose(hat.sum(axis=1), 1.0, atol=1e-8)


@rings
@every
def test_df_is_the_trace_of_the_hat_matrix(smoother, closed):
    """Local fits at rows lie on chords between vertices; those of a spline on the spline, which its own twin checks."""
    given = sample(closed=closed)
    found = smoother.smooth(given, 0)
    hat = hat_matrix(smoother, given).vertices
    cells = len(hat) if closed else len(hat) - 1
    cell = np.minimum((given.place * cells).astype(int), cells - 1)
    t, after, row = given.place * cells - cell, np.mod(cell + 1, len(hat)), np.arange(len(cell))
    trace = ((1 - t) * hat[cell, row] + t * hat[after, row]).sum()
    assert_allclose(found.df, trace, rtol=0.02 if isinstance(smoother, SmoothingSpline) else 1e-9)


def test_kernel_means_and_local_lines_are_weighted_least_squares():
    given = sample()
    for smoother, slopes in ((KernelSmoother(0.05), False), (LocalLinear(0.3), True)):
        vertices = smoother.smooth(given, 0).vertices
        for place, vertex in zip(even_places(len(vertices) - 1, False), vertices, strict=True):
            lag = given.place - place
            if slopes:
                order = np.argsort(np.abs(lag))
                enough = (np.cumsum(given.weight[order]) / given.weight.sum() < 0.3).sum()
                weight = given.weight * np.clip(1 - np.abs(lag / (lag[order[enough]] * (1 + 1e-9))) ** 3, 0, None) ** 3
            else:
                weight = given.weight * np.exp(-0.5 * (lag / 0.05) ** 2)
            design = np.stack([np.ones_like(lag), lag], axis=1)[:, : 1 + slopes]
            root = np.sqrt(weight)[:, None]
            assert_allclose(vertex, np.linalg.lstsq(root * design, root * given.rows, rcond=None)[0][0], atol=1e-8)


@rings
@pytest.mark.parametrize("name", list(smoothers.SMOOTHERS))
def test_repeats_are_weights_whatever_is_chosen(name, closed):
    given, smoother = sample(closed=closed), smoothers.make_smoother(name)
    twice = np.repeat(np.arange(len(given.place)), given.weight.astype(int))
    repeated = CurveSample(given.place[twice], given.rows[twice], np.ones(len(twice)), closed)
    cells = smoothers.count_cells(given)
    assert smoothers.count_cells(repeated) != cells  # which rows without repeats keep the same
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(smoothers, "count_cells", lambda _: cells)
        assert_allclose(smoother.smooth(repeated, 0).vertices, smoother.smooth(given, 0).vertices, atol=1e-6)


def test_bins_are_as_good_as_rows(monkeypatch):
    given = sample(4000)
    whole = LocalLinear(0.1).smooth(given, 0)
    monkeypatch.setattr(smoothers, "_MOST_BINS", 10_000)
    one_by_one = LocalLinear(0.1).smooth(given, 0)
    assert_allclose(whole.vertices, one_by_one.vertices, atol=2e-3)
    assert_allclose([whole.df, whole.score], [one_by_one.df, one_by_one.score], rtol=0.01)


@pytest.mark.parametrize("df", [3.0, 7.5])
def test_a_spline_has_the_degrees_of_freedom_asked_for(df):
    assert_allclose(SmoothingSpline(df=df).smooth(sample(), 0).df, df, rtol=1e-2)


@pytest.mark.parametrize("name", list(smoothers.SMOOTHERS))
def test_what_is_chosen_has_the_lowest_score(name):
    given, smoother = sample(200), smoothers.make_smoother(name)
    chosen = smoother.smooth(given, 0)
    others = [smoother.smooth(given, 0, chosen.setting * factor).score for factor in (0.2, 0.5, 2.0, 5.0)]
    assert chosen.score <= min(others) * (1 + 1e-3)
    coarse = smoother.smooth(given._replace(finest=0.2), 0)
    assert coarse.setting > chosen.setting
    assert coarse.df < 1.3 / (2 * np.sqrt(2) * 0.2) + 1.5  # that of a spline of this scale, and its line


def test_a_span_shrinks_to_what_was_asked_for():
    smoother = LocalLinear(0.2, widest=0.6, shrink=0.5)
    assert [smoother.smooth(sample(), step).setting for step in range(4)] == pytest.approx([0.6, 0.3, 0.2, 0.2])


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: SmoothingSpline(1.0, df=4), "a penalty or df=, not both"),
        (lambda: SmoothingSpline(0.0), "penalty must be above 0"),
        (lambda: SmoothingSpline(df=2), "df must be above 2"),
        (lambda: LocalLinear(1.5), "span must be above 0 and at most 1"),
        (lambda: LocalLinear(shrink=None), "shrink must be above 0 and at most 1"),
        (lambda: KernelSmoother(-1.0), "bandwidth must be above 0"),
    ],
)
def test_settings_that_mean_nothing_are_refused(make, match):
    with pytest.raises(InvalidParameterError, match=match):
        make()
