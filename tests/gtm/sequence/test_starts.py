"""Slow directions: what a start of sequences looks for."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prinfold.gtm.sequence.starts import lagged_covariance, slow_axes
from prinfold.rows.rows import as_rows


def turning(n: int, noise: float = 0.0, seed: int = 0) -> np.ndarray:
    """A slow turn in columns 0 and 1, a faster and wider one in 2 and 3, and noise."""
    rng = np.random.default_rng(seed)
    phase = 0.2 * np.arange(n)
    slow, fast = np.stack([np.cos(phase), np.sin(phase)]), 1.5 * np.stack([np.cos(3 * phase), np.sin(3 * phase)])
    return np.concatenate([slow, fast]).T + noise * rng.standard_normal((n, 4))


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_the_slow_turn_is_found_under_a_wider_one_and_noise(noise: float):
    X = turning(2000, noise)
    axes, beside = slow_axes(as_rows(X, X.mean(axis=0)), np.array([0, 800, 2000]), 2)
    assert np.square(axes.directions[:, :2]).sum(axis=1).min() > 0.95
    assert_allclose(axes.variances, 0.5, rtol=0.15)
    assert_allclose(beside, 1.125 + noise**2, rtol=0.1)


def test_covariances_never_reach_over_the_end_of_a_sequence():
    rng = np.random.default_rng(0)
    X, cuts, weight = rng.standard_normal((60, 3)), np.array([0, 1, 25, 26, 60]), rng.random(60)
    for lag in (1, 2, 30):
        pairs = [(t, t - lag) for a, b in pairwise(cuts) for t in range(a + lag, b)]
        late, early = np.array(pairs).T
        expected = (X[late] * weight[late][:, None]).T @ X[early] / weight[late].sum()
        rows = as_rows(X, weight=weight, block_rows=7)
        found = lagged_covariance(rows, cuts, lag, np.eye(3))
        assert_allclose(found, 0.5 * (expected + expected.T), atol=1e-13)
    assert lagged_covariance(as_rows(X), cuts, 34, np.eye(3)) is None


def test_nothing_is_found_in_noise_alone_or_in_too_few_steps():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 6))
    assert slow_axes(as_rows(X), np.array([0, 500]), 3) is None
    assert slow_axes(as_rows(turning(20)), np.arange(0, 21, 2), 2) is None
    assert slow_axes(as_rows(np.zeros((20, 3))), np.array([0, 20]), 1) is None
