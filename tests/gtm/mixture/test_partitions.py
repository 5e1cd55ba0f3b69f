"""Parts to begin with: what they minimise, and what they do not depend on."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal
from tests.properties.cases import random_rotation

from prinfold.gtm.mixture import partitions
from prinfold.gtm.mixture.partitions import Flats, distinct_rows, find_centers, find_clouds, find_flats, parts_of
from prinfold.rows.rows import as_rows


def blobs(n: int = 60, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(size=(n, 3)) + middle for middle in ([0, 0, 0], [9, 0, 0], [0, 9, 0])])


def rows_of(X: np.ndarray, weight: np.ndarray | None = None, **options: bool):
    middle = np.nanmean(X, axis=0) if weight is None else weight @ X / weight.sum()
    return as_rows(X, middle, weight, **options)


def found(X: np.ndarray, weight: np.ndarray | None = None, dimension: int = 0, n_parts: int = 3) -> np.ndarray:
    rows = rows_of(X, weight)
    return parts_of(rows, find_flats(distinct_rows(rows), n_parts, dimension, np.random.default_rng(1)))


def same(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two partitions are the same but for the numbers of their parts."""
    return bool(((a[:, None] == a) == (b[:, None] == b)).all())


def test_clusters_far_apart_are_found():
    assert same(found(blobs()), np.repeat([0, 1, 2], 60))


def test_crossing_planes_are_told_apart_by_flats_and_not_by_centres():
    rng = np.random.default_rng(3)
    flat = np.pad(rng.uniform(-1, 1, (80, 2)), ((0, 0), (0, 1)))
    X = np.concatenate([flat, flat[:, [0, 2, 1]] + [0, 0, 0.5]]) + 0.01 * rng.normal(size=(160, 3))
    truth = np.repeat([0, 1], 80)
    away = np.abs(X[:, 1:]).max(axis=1) > 0.1  # from where they cross
    agrees = [max((found(X, dimension=q, n_parts=2) == t)[away].mean() for t in (truth, 1 - truth)) for q in (0, 2)]
    assert agrees[1] > 0.99
    assert agrees[0] < 0.9


def test_every_part_is_nearest_to_its_own_flat_and_every_flat_in_the_middle_of_its_part():
    rows = rows_of(np.random.default_rng(0).normal(size=(200, 4)))
    among = distinct_rows(rows)
    for q in (0, 2):
        flats = find_flats(among, 4, q, np.random.default_rng(0))
        part = flats.parts(among.rows)
        for j in range(4):
            own = among.rows[part == j]
            assert_allclose(flats.centers[j], own.mean(axis=0), atol=1e-12)
            assert_allclose(flats.axes[j] @ flats.axes[j].T, np.eye(q), atol=1e-12)
            beside = (own - own.mean(axis=0)) @ flats.axes[j].T
            principal = np.linalg.svd(own - own.mean(axis=0))[1][:q]
            assert_allclose(np.square(beside).sum(), np.square(principal).sum())


@pytest.mark.parametrize("q", [0, 1, 2])
def test_distance_to_a_flat_is_what_is_left_of_a_least_squares_fit(q: int):
    rng = np.random.default_rng(q)
    axes = np.linalg.qr(rng.normal(size=(4, q)))[0].T if q else np.empty((0, 4))
    center, X = rng.normal(size=4), rng.normal(size=(7, 4))
    left = [np.linalg.norm(x - center - axes.T @ np.linalg.lstsq(axes.T, x - center, rcond=None)[0]) for x in X]
    assert_allclose(Flats(center[None], axes[None]).squared_distances(X)[:, 0], np.square(left), atol=1e-12)


def test_neither_order_nor_rotation_move_clouds():
    X, rng = np.random.default_rng(5).normal(size=(90, 3)), np.random.default_rng(6)

    def clouds_of(X: np.ndarray) -> np.ndarray:
        rows = rows_of(X)
        return parts_of(rows, find_clouds(distinct_rows(rows), 3, 2, np.random.default_rng(1)))

    part, order = clouds_of(X), rng.permutation(90)
    assert_array_equal(clouds_of(X[order]), part[order])
    assert_array_equal(clouds_of(X @ random_rotation(3).T + 7.0), part)


@pytest.mark.parametrize("q", [0, 2])
def test_neither_order_nor_repeats_nor_rotation_lead_to_other_parts(q: int):
    X, rng = np.random.default_rng(5).normal(size=(90, 3)), np.random.default_rng(6)
    part, order = found(X, dimension=q), rng.permutation(90)
    assert_array_equal(found(X[order], dimension=q), part[order])
    weight = rng.integers(1, 4, 90)
    weighted = found(X, weight.astype(float), dimension=q)
    assert_array_equal(found(np.repeat(X, weight, axis=0), dimension=q), np.repeat(weighted, weight))
    assert_array_equal(found(X @ random_rotation(3).T + 7.0, dimension=q), part)


def test_clouds_are_told_apart_by_their_density():
    """A dense cloud at the edge of a wide one: k-means cuts the wide one, Gaussians do not."""
    rng = np.random.default_rng(4)
    X = np.concatenate([rng.normal(size=(300, 2)), [1.2, 1.2] + 0.05 * rng.normal(size=(100, 2))])
    truth = np.repeat([0, 1], [300, 100])
    rows = rows_of(X)
    agrees = {}
    for find in (find_centers, find_clouds):
        part = parts_of(rows, find(distinct_rows(rows), 2, 1, np.random.default_rng(0)))
        agrees[find] = max((part == t).mean() for t in (truth, 1 - truth))
    assert agrees[find_clouds] > 0.98
    assert agrees[find_centers] < 0.95


def test_a_cloud_is_a_gaussian_with_a_share():
    rng = np.random.default_rng(1)
    X, share = rng.normal(size=(80, 3)) * [3.0, 1.0, 0.2], rng.dirichlet([1.0, 2.0], size=80)
    clouds = partitions._clouds(X, share, 0.01)
    for j, found in enumerate(clouds.log_densities(X).T):
        own = share[:, j]
        center, spread = own @ X / own.sum(), np.cov(X.T, aweights=own, bias=True) + 0.01 * np.eye(3)
        assert_allclose(clouds.centers[j], center)
        wanted = np.log(own.sum()) + multivariate_normal(center, spread).logpdf(X)
        assert_allclose(found - 1.5 * np.log(2 * np.pi), wanted, atol=1e-10)


def test_clouds_of_many_columns_or_of_few_rows():
    wide = rows_of(np.random.default_rng(0).normal(size=(30, 80)))
    assert isinstance(find_clouds(distinct_rows(wide), 2, 2, np.random.default_rng(0)), Flats)
    for X in (np.ones((5, 2)), np.array([[0.0, 0.0], [1.0, 0.0]])):
        rows = rows_of(X)
        clouds = find_clouds(distinct_rows(rows), 3, 1, np.random.default_rng(0))
        assert len(np.unique(parts_of(rows, clouds))) == len(np.unique(X, axis=0))


def test_fewer_distinct_rows_than_parts_make_fewer_parts():
    X = np.repeat([[0.0, 0.0], [1.0, 0.0]], 5, axis=0)
    flats = find_flats(distinct_rows(rows_of(X)), 4, 1, np.random.default_rng(0))
    assert len(flats.centers) == 2
    assert len(find_flats(distinct_rows(rows_of(np.ones((4, 2)))), 3, 0, np.random.default_rng(0)).centers) == 1


def test_a_part_that_loses_its_rows_stays_where_it_was():
    """Along a line two flats of one dimension are the same flat, so that one of them takes all rows."""
    X = np.linspace(0, 1, 30)[:, None] * [1.0, 2.0]
    flats = find_flats(distinct_rows(rows_of(X)), 2, 1, np.random.default_rng(0))
    assert np.isfinite(flats.centers).all()
    assert np.isfinite(flats.squared_distances(X)).all()


def test_missing_cells_stand_in_the_middle_and_many_rows_are_looked_at_in_part(monkeypatch: pytest.MonkeyPatch):
    X = blobs()
    X[5, 1] = np.nan
    rows = rows_of(X, gaps=True)
    assert np.isfinite(distinct_rows(rows).rows).all()
    monkeypatch.setattr(partitions, "_MOST_ROWS", 50)
    few = distinct_rows(rows_of(blobs()))
    assert len(few.rows) == 45
    assert same(found(blobs()), np.repeat([0, 1, 2], 60)), "all rows get their part all the same"
