"""The likelihood of rows by the others, and where EM leads on it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prinfold import datasets
from prinfold.density.leave_one_out import LeaveOneOutLikelihood

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(120, 2)) * [1.0, 0.3]
ROWS -= ROWS.mean(axis=0)
WEIGHT = RNG.uniform(0.5, 3.0, 120)


def em_step(of: LeaveOneOutLikelihood, h: float, outlier_share: float) -> tuple[float, float]:
    """As the module states it, written out row by row."""
    each = of.log_density(h)
    r = of.shares(each, outlier_share)
    s = np.where(of.rings.weight > 0, of.rings.squared, np.inf)
    k = of.rings.weight * np.exp(-0.5 * (s - s.min(axis=1, keepdims=True)) / h**2)
    mean_square = (k * of.rings.squared).sum(axis=1) / k.sum(axis=1)
    held = of.weight * r
    return float(np.sqrt(held @ mean_square / (of.dimension * held.sum()))), min(float(of.weight @ (1 - r)), 0.5)


def test_densities_are_those_of_the_definition():
    of, h = LeaveOneOutLikelihood.of(ROWS, WEIGHT), 0.3
    for i in range(0, 120, 11):
        others = np.arange(120) != i
        s = ((ROWS[others] - ROWS[i]) ** 2).sum(axis=1)
        p = WEIGHT[others] @ np.exp(-0.5 * s / h**2) / (2 * np.pi * h**2 * WEIGHT[others].sum())
        assert_allclose(of.log_density(h)[i], np.log(p), atol=2e-3)


@pytest.mark.parametrize("robust", [True, False])
def test_no_step_of_em_lowers_the_likelihood(robust):
    rows = np.concatenate([ROWS, [[4.0, 4.0], [-6.0, 1.0]]])
    of = LeaveOneOutLikelihood.of(rows, np.append(WEIGHT, [1.0, 1.0]), robust=robust)
    for start in (0.05, 0.5, 3.0):
        h, outlier_share, last = start, 0.1 if robust else 0.0, -np.inf
        for _ in range(40):
            now = of.log_likelihood(h, outlier_share)
            assert now >= last - 1e-12
            (h, outlier_share), last = em_step(of, h, outlier_share), now


@pytest.mark.parametrize("robust", [True, False])
def test_the_bandwidth_is_the_fixed_point_of_em(robust):
    of = LeaveOneOutLikelihood.of(ROWS, WEIGHT, robust=robust)
    h = of.bandwidth()
    assert em_step(of, h, of.outlier_share(of.log_density(h)))[0] == pytest.approx(h, rel=1e-3)


def test_no_other_bandwidth_is_likelier():
    of = LeaveOneOutLikelihood.of(ROWS, WEIGHT)
    best = of.log_likelihood(of.bandwidth())
    for h in np.geomspace(of.least, of.most, 300):
        assert of.log_likelihood(float(h)) <= best + 1e-6


def test_the_share_apart_is_the_best_one():
    rows = np.concatenate([ROWS, RNG.uniform(-8, 8, size=(12, 2))])
    of = LeaveOneOutLikelihood.of(rows, np.ones(132))
    h = of.bandwidth()
    best = of.log_likelihood(h)
    assert 0.03 < of.outlier_share(of.log_density(h)) < 0.2
    for outlier_share in np.linspace(1e-6, 0.5, 60):
        assert of.log_likelihood(h, float(outlier_share)) <= best + 1e-4


def test_a_row_far_away_costs_the_same_at_every_narrow_bandwidth():
    rows = np.concatenate([ROWS, [[1e4, 0.0]]])
    of = LeaveOneOutLikelihood.of(rows, np.ones(121))
    assert of.shares(of.log_density(0.3), 0.01)[-1] < 1e-200
    assert np.isfinite(of.log_likelihood(1e-3))


def test_many_rows_are_judged_by_some():
    X = datasets.make_spiral(6000, 0.04, "normal", 0).X
    X, w = X - X.mean(axis=0), np.ones(6000)
    some = LeaveOneOutLikelihood.of(X, w)
    assert len(some.weight) == 2048
    every = LeaveOneOutLikelihood.of(X, w, sampled=6000)
    assert some.bandwidth() == pytest.approx(every.bandwidth(), rel=0.15)


def test_weights_beyond_rounding_leave_something_beside_the_heaviest_row():
    weight = np.ones(120)
    weight[0] = 1e30
    of = LeaveOneOutLikelihood.of(ROWS, weight)
    assert np.isfinite(of.log_density(0.3)).all()
    assert of.bandwidth() > 0
