"""Bands about ridges: what they hold, what they depend on, and what is said where a ridge is lost."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prinfold import datasets
from prinfold.density.densities import KernelDensity
from prinfold.density.ridges.bands import FromDensity, RidgeBands, ridge_bands, sort_rows
from prinfold.density.ridges.mean_shift import Flow, Status
from prinfold.exceptions import InvalidParameterError

H = 0.15
ROWS = np.unique(datasets.make_half_circle(200, 0.08, rng=0).X, axis=0)
WEIGHT = np.ones(len(ROWS))


def make_flow(rows, weight):
    return Flow(KernelDensity(rows, weight, H), 1, tol=1e-5)


@pytest.fixture(scope="module")
def points():
    found = make_flow(ROWS, WEIGHT)(ROWS[::10])
    return found.points[found.status == Status.CONVERGED]


@pytest.fixture(scope="module")
def bands(points):
    return ridge_bands(points, ROWS, WEIGHT, make_flow, n_samples=40, rng=0)


# ------------------------------------------------------------------------------------------------------- drawing


def test_noise_widens_rows_and_shrinking_undoes_it():
    rows, weight = np.random.default_rng(0).normal(size=(4000, 2)) + 7.0, np.ones(4000)
    wide = FromDensity(0.8)(rows, weight, np.random.default_rng(1)).rows
    assert_allclose(wide.var(axis=0), rows.var(axis=0) + 0.64, rtol=0.08)
    shrunk = FromDensity(0.8, shrunk=True)(rows, weight, np.random.default_rng(1)).rows
    assert_allclose(shrunk.var(axis=0), rows.var(axis=0), rtol=0.08)
    assert_allclose(shrunk.mean(axis=0), 7.0, atol=0.1)


def test_sorting_forgets_the_order():
    order = np.random.default_rng(0).permutation(len(ROWS))
    for one, other in zip(sort_rows(ROWS, ROWS[:, 0]), sort_rows(ROWS[order], ROWS[order, 0]), strict=True):
        assert_array_equal(one, other)


# --------------------------------------------------------------------------------------------------------- bands


def test_a_share_of_the_samples_is_within_the_radius(bands):
    within = (bands.distance <= bands.radius).mean(axis=0)
    assert (within >= 0.9).all()
    assert (within < 0.9 + 1.5 / len(bands.distance)).all()
    assert (bands.distance <= bands.uniform_radius).all(axis=1).mean() >= 0.9
    assert bands.uniform_radius >= bands.radius.max()


def test_a_wider_level_is_a_wider_band(bands):
    narrow = RidgeBands(bands.points, bands.distance, bands.length, 0.5)
    assert (narrow.radius <= bands.radius).all()
    assert (narrow.radius < bands.radius).any()


def test_a_firm_curve_is_found_again(bands):
    assert (bands.found >= 0.95).mean() > 0.9
    assert np.median(bands.radius) < H
    assert "RidgeBands" in repr(bands)
    assert "40 samples" in repr(bands)


def test_the_band_holds_the_ridge_of_other_rows(points, bands):
    """As often as it says, of rows that it has not seen: at 90 %, of 40 tables of new rows."""
    inside = []
    for seed in range(1, 41):
        rows = datasets.make_half_circle(200, 0.08, rng=seed).X
        found = make_flow(rows, WEIGHT)(points)
        moved = np.linalg.norm(found.points - points, axis=1)
        # Two tables differ by √2 times what each differs from the truth.
        inside.append(moved / np.sqrt(2.0) <= bands.radius)
    assert 0.75 < np.mean(inside) < 0.99


def test_more_rows_make_a_narrower_band(points, bands):
    rows = datasets.make_half_circle(1600, 0.08, rng=1).X
    there = make_flow(rows, np.ones(1600))(points).points
    many = ridge_bands(there, rows, np.ones(1600), make_flow, n_samples=20, rng=0)
    assert np.median(many.radius) < 0.6 * np.median(bands.radius)


def test_bands_follow_the_data_and_not_the_order_of_rows(points, bands):
    shift = np.array([3.0, -2.0])
    order = np.random.default_rng(3).permutation(len(ROWS))
    again = ridge_bands(points, ROWS[order], WEIGHT, make_flow, n_samples=40, rng=0)
    assert_array_equal(again.distance, bands.distance)
    moved = ridge_bands(points + shift, ROWS + shift, WEIGHT, make_flow, n_samples=40, rng=0)
    assert_allclose(moved.radius, bands.radius, rtol=1e-4)


def test_where_samples_have_no_ridge_the_band_has_no_end():
    def no_ridge_is_sharp_enough(rows, weight):
        return Flow(KernelDensity(rows, weight, H), 1, min_gap=5.0)

    found = ridge_bands(ROWS[:3], ROWS, WEIGHT, no_ridge_is_sharp_enough, n_samples=5)
    assert np.isinf(found.radius).all()
    assert np.isinf(found.uniform_radius)
    assert not found.found.any()


def test_a_sample_can_be_drawn_from_the_density(points):
    found = ridge_bands(points, ROWS, WEIGHT, make_flow, draw=FromDensity(H), n_samples=10, rng=0)
    assert np.isfinite(found.radius).any()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_samples": 0}, "n_samples must be a whole number of at least 1, got 0"),
        ({"level": 1.0}, "between 0 and 1, got 1.0"),
    ],
)
def test_what_cannot_be_is_refused(options, words, points):
    with pytest.raises(InvalidParameterError, match=words):
        ridge_bands(points, ROWS, WEIGHT, make_flow, **options)
