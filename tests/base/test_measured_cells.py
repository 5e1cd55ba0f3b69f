"""Rows with gaps have a nearest point, and a distance that is comparable with that of whole rows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prinfold import GTM, SOM, datasets
from prinfold.base.surface_geometry import over_all_columns
from prinfold.exceptions import InvalidDataError


@pytest.fixture(scope="module")
def plane():
    """A line map through rows along a plane curve in six columns, and some of the rows with gaps."""
    rng = np.random.default_rng(0)
    t = rng.uniform(-1, 1, 200)
    X = np.outer(t, [1.0, 0.5, -1.0, 0.3, 0.8, -0.2]) + 0.05 * rng.normal(size=(200, 6))
    X[:, 1] += t**2
    gaps = X.copy()
    gaps[:60, 4], gaps[30:90, 0] = np.nan, np.nan
    return GTM(1, nodes=30, basis=6, max_iter=20, tol=0).fit(X), X, gaps


def test_the_nearest_point_over_measured_cells_is_the_best_of_a_fine_search(plane):
    model, _, gaps = plane
    fine = model.inverse_transform(np.linspace(-1, 1, 20001)[:, None])
    rows = gaps[25:35]
    best = np.nanmin(np.nansum(np.square(rows[:, None] - fine), axis=2), axis=1)
    found = model.project(rows)
    assert np.isfinite(found).all()
    squared, step = np.nansum(np.square(rows - found), axis=1), np.linalg.norm(np.diff(fine, axis=0), axis=1).max()
    assert (squared <= best).all()
    assert_allclose(squared, best, rtol=0, atol=(step / 2) ** 2)  # as far as the search is fine


def test_gaps_change_nothing_for_whole_rows_and_projections_stay(plane):
    model, X, gaps = plane
    assert_allclose(model.project(gaps)[90:], model.project(X)[90:], atol=1e-12)
    assert_allclose(model.project(model.project(gaps)), model.project(gaps), atol=1e-9)


def test_the_error_of_rows_with_gaps_is_that_of_whole_rows_on_average(plane):
    model, X, gaps = plane
    assert_allclose(model.projection_error(gaps), model.projection_error(X), rtol=0.15)


def test_the_scale_is_that_of_the_directions_across():
    rng = np.random.default_rng(1)
    noise, seen = rng.normal(size=(40000, 5)), np.array([True, True, True, False, False])
    # About the plane of the first two columns: three directions across, of which one is seen.
    squared = np.square(noise[:, 2])
    found = over_all_columns(squared, np.tile(seen, (40000, 1)), dimension=2)
    assert_allclose(found.mean(), np.square(noise[:, 2:]).sum(axis=1).mean(), rtol=0.03)
    assert np.isnan(over_all_columns(np.zeros(1), np.array([[True, True, False]]), 2)).all()


def test_rows_with_too_few_cells_have_no_distance(plane):
    model, _, gaps = plane
    lone = np.full((3, 6), np.nan)
    lone[:, 2] = 0.1
    assert model.projection_error(np.vstack([gaps[:50], lone])) == model.projection_error(gaps[:50])
    with pytest.raises(
        InvalidDataError,
        match=r"more than 1 known cell, but .* 1 dimension needs more",
    ):
        model.projection_error(lone)


def test_a_map_that_organises_itself_takes_gaps_too():
    X = datasets.make_half_circle(100, rng=0).X
    model = SOM(1, nodes=10, max_iter=5, tol=0).fit(X)
    gaps = X.copy()
    gaps[::7, 0] = np.nan
    assert np.isfinite(model.project(gaps)).all()
    assert np.isfinite(model.projection_error(gaps))
