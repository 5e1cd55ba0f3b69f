"""Numbers of Chang & Ghosh's table 4 that come out again; ``benchmarks/papers/pps.py`` prints them all with figures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.papers.pps_trials import Setting, patches, squared_distance, trial, whitened

from prinfold.latent import grid
from prinfold.metrics import grid_error, triangle_error

SPLITS = range(25)


def errors(setting: Setting) -> np.ndarray:
    return np.array([trial(setting, split).error for split in SPLITS])


def mean_roughness(setting: Setting) -> float:
    return float(np.mean([trial(setting, split).roughness for split in SPLITS]))


# ------------------------------------------------------------------------------------- what the trials stand on


def test_distances_of_the_trials_are_those_of_the_metrics(rng: np.random.Generator) -> None:
    X, line, sheet = rng.normal(size=(50, 4)), grid(20), grid(5, 6)
    nodes = rng.normal(size=(30, 4))
    curve = squared_distance(X, nodes[:20], patches(line)).mean()
    assert curve == pytest.approx(grid_error(X, nodes[:20], line.edges), rel=1e-9)
    surface = squared_distance(X, nodes, patches(sheet)).mean()
    assert surface == pytest.approx(triangle_error(X, nodes, (5, 6)), rel=1e-9)


def test_tables_are_white() -> None:
    X = whitened("iris")
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.cov(X.T), np.eye(4), atol=1e-12)


@pytest.mark.parametrize(("dimension", "basis", "nodes"), [(1, 4, 30), (2, 9, 25)])
def test_all_readings_of_beta_are_the_gtm_at_a_clamping_of_one(dimension: int, basis: int, nodes: int) -> None:
    exact = Setting("iris", dimension, basis, nodes, 1.0, "exact")
    first, second = trial(exact, 0), trial(replace(exact, reading="gtm"), 0)
    assert first.error == pytest.approx(second.error, rel=1e-9)
    assert first.epochs == second.epochs


# ------------------------------------------------------------------------------------------------------ table 4


@pytest.mark.slow
def test_iris_curve() -> None:
    gtm, pps = errors(Setting("iris", 1, 4, 75)), errors(Setting("iris", 1, 4, 75, 0.3, "gtm"))
    assert gtm.mean() == pytest.approx(2.702, rel=0.03)
    assert pps.mean() == pytest.approx(2.579, rel=0.03)
    assert (pps < gtm).sum() >= 20
    assert mean_roughness(Setting("iris", 1, 4, 75)) == pytest.approx(152, rel=0.03)


@pytest.mark.slow
@pytest.mark.data
def test_diabetes_surface() -> None:
    gtm, pps = errors(Setting("diabetes", 2, 4, 361)), errors(Setting("diabetes", 2, 4, 361, 0.1, "gtm"))
    assert (gtm.mean(), pps.mean()) == pytest.approx((2.388, 2.183), rel=0.02)
    assert (pps < gtm).all()


@pytest.mark.slow
@pytest.mark.data
def test_diabetes_curve() -> None:
    gtm, pps = errors(Setting("diabetes", 1, 4, 384)), errors(Setting("diabetes", 1, 4, 346, 0.2, "gtm"))
    assert (gtm.mean(), pps.mean()) == pytest.approx((6.710, 6.551), rel=0.02)
    assert (pps < gtm).sum() >= 20


@pytest.mark.slow
@pytest.mark.data
def test_glass_with_sixteen_functions_is_a_tie() -> None:
    change = errors(Setting("glass", 2, 16, 49, 0.2, "gtm")) - errors(Setting("glass", 2, 16, 100))
    assert abs(change.mean()) < 3 * change.std(ddof=1) / np.sqrt(len(change))
