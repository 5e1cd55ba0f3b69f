"""Whether a ridge could be chance: seldom said of a curve, and seldom denied of blobs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prinfold import DensityRidge, datasets
from prinfold.density.bandwidths import BANDWIDTHS
from prinfold.density.densities import KernelDensity
from prinfold.density.mixtures import RatioDensity
from prinfold.density.ridges.mean_shift import Flow, FlowResult, Status
from prinfold.density.ridges.significance import RidgeSignificance, chain_points, ridge_significance, strength
from prinfold.density.sphere import SphereDensity
from prinfold.exceptions import InvalidDataError, InvalidParameterError


def judged(rows, branch=None, n_samples=25, **options):
    weight = np.ones(len(rows))
    h = float(BANDWIDTHS["wide_likelihood"](rows, weight, 1, np.random.default_rng(0)))

    def make_flow(rows, weight):
        return Flow(KernelDensity(rows, weight, h), 1, tol=1e-4)

    found = make_flow(rows, weight)(rows)
    found = found.only(found.status == Status.CONVERGED)
    return ridge_significance(found, branch, rows, weight, make_flow, n_samples=n_samples, rng=0, **options)


def test_a_curve_is_no_chance():
    result = judged(datasets.make_half_circle(150, 0.1, rng=0).X)
    assert (result.p_value <= 0.05).mean() > 0.6
    assert result.branch_p_value.min() == pytest.approx(1 / 26)
    assert "branches, 1 of them" in repr(result)


@pytest.mark.parametrize("kind", ["normal", "uniform"])
def test_blobs_have_no_ridge_to_speak_of(kind):
    points, branches = [], []
    for seed in range(6):
        result = judged(getattr(np.random.default_rng(seed), kind)(size=(100, 2)), n_samples=15)
        points.append((result.p_value <= 0.07).mean())
        branches.append(result.branch_p_value.min())
    assert np.mean(points) < 0.1
    assert np.mean(np.array(branches) <= 0.07) <= 1 / 3
    assert np.median(branches) > 0.2


def test_strength_is_ridgeness_by_the_root_of_the_number_of_rows():
    """√N bends as a kernel sum does: (Σ k)² / Σ k² rows where the density is flat."""
    rng = np.random.default_rng(0)
    rows, h = rng.uniform(-1, 1, size=(4000, 2)), 0.1
    flow = Flow(KernelDensity(rows, np.ones(4000), h), 1)
    found = flow(np.zeros((1, 2)))
    k = np.exp(-0.5 * ((rows - found.points[0]) ** 2).sum(axis=1) / h**2)
    number = k.sum() ** 2 / (k**2).sum()
    expected = max(found.ridgeness[0], 0.0) * np.sqrt(number)
    assert strength(found, flow, 4000.0)[0] == pytest.approx(expected, rel=0.1, abs=1e-6)


def test_p_values_are_shares():
    result = RidgeSignificance(
        np.array([0.5, 2.5, 9.0]),
        np.array([0, 0, -1]),
        (np.array([1.0, 2.0, 3.0, 4.0]), np.array([])),
        np.array([2.0, 1.0]),
    )
    assert_allclose(result.p_value, [(1 + 1) / 3, (1 + 0.5) / 3, 1 / 3])
    assert_allclose(result.branch_strength, [1.5])
    assert_allclose(result.branch_p_value, [2 / 3])


def test_points_are_chained_by_steps_of_a_bandwidth():
    points = np.array([[0.0, 0.0], [0.9, 0.0], [1.8, 0.0], [5.0, 0.0]])
    assert_array_equal(chain_points(points, np.ones(4)), [0, 0, 0, 1])
    crowd = np.repeat(points, 500, axis=0) + np.random.default_rng(0).uniform(-0.01, 0.01, size=(2000, 2))
    assert_array_equal(chain_points(crowd, np.ones(2000)), np.repeat([0, 0, 0, 1], 500))
    assert len(chain_points(points[:0], np.ones(0))) == 0


def test_number_counts_rows_in_two_dimensions_on_a_sphere_and_beside_a_mask():
    """Where the density is flat, N is (Σ k)² / Σ k² as in the plane, with kernels of the chord."""
    X = np.random.default_rng(0).normal(size=(6000, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    h, kernels = 0.2, KernelDensity(X, np.ones(6000), 0.2)
    k = np.exp(-0.5 * ((X - X[0]) ** 2).sum(axis=1) / h**2)
    number = k.sum() ** 2 / (k**2).sum()
    found = FlowResult(X[:1], np.zeros((1, 3, 1)), np.array([[0.0, -1.0]]), np.zeros(1), np.zeros(1), np.zeros(1))
    even = KernelDensity(X[::2], np.ones(3000), h)
    for density in (SphereDensity(kernels, h, 1.0), RatioDensity(SphereDensity(kernels, h, 1.0), even)):
        assert strength(found, Flow(density, 1), 6000.0)[0] == pytest.approx(np.sqrt(number), rel=0.03)


def test_samples_stay_where_rows_could_be_seen():
    rng = np.random.default_rng(0)
    rows = rng.uniform(0, 1, size=(150, 2))
    rows[:60] = np.column_stack([rng.uniform(0, 1, 60), rng.normal(0.5, 0.03, 60)])
    model = DensityRidge(mask=lambda X: ((X > 0) & (X < 1)).all(axis=1)).fit(rows)
    result = model.significance(10, random_state=0)
    assert result.branch_p_value.min() == pytest.approx(1 / 11)
    assert np.median(np.concatenate(result.chance)) < 2.0


def test_what_cannot_be_is_refused():
    rows = datasets.make_half_circle(40, 0.1, rng=0).X
    with pytest.raises(InvalidParameterError, match="n_samples must be a whole number of at least 1, got 0"):
        judged(rows, n_samples=0)
    with pytest.raises(InvalidDataError, match=r"a branch for each of the .* points, got shape"):
        judged(rows, branch=np.zeros(3, dtype=int))


def test_the_same_seed_gives_the_same_samples_whatever_the_order():
    rows = datasets.make_half_circle(60, 0.1, rng=0).X
    one, other = judged(rows, n_samples=3), judged(rows[::-1], n_samples=3)
    assert_allclose(one.chance_branches, other.chance_branches, rtol=1e-3)
