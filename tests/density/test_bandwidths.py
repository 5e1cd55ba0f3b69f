"""Rules for the bandwidth: what they are equivariant to, what disturbs them, and what they say of degenerate rows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prinfold import datasets
from prinfold.density.bandwidths import BANDWIDTHS, choose_bandwidth, effective_number, ridge_width_factor
from prinfold.density.kernel_widths import check_bandwidth
from prinfold.exceptions import InvalidDataError, InvalidParameterError

rules = pytest.mark.parametrize("rule", BANDWIDTHS.values(), ids=BANDWIDTHS.keys())
CURVE = np.unique(datasets.make_half_circle(80, 0.1, rng=0).X, axis=0)
WEIGHT = np.random.default_rng(1).integers(1, 4, len(CURVE)).astype(float)


def of(rule, rows, weight=None, dimension=1):
    rows = np.asarray(rows, dtype=float)
    return np.asarray(rule(rows, np.ones(len(rows)) if weight is None else weight, dimension, np.random.default_rng(0)))


# -------------------------------------------------------------------------------------------------- every rule


@rules
def test_bandwidths_follow_units_and_ignore_place_turn_and_order(rule):
    angle = 0.7
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    order = np.random.default_rng(2).permutation(len(CURVE))
    expected = of(rule, CURVE, WEIGHT)
    found = of(rule, (1e3 * CURVE @ turn + [5.0, -9.0])[order], 7.0 * WEIGHT[order])
    assert_allclose(found, 1e3 * (expected[order] if expected.ndim else expected), rtol=2e-3)


@rules
def test_rows_at_the_ends_of_the_number_line(rule):
    tiny, huge = of(rule, 1e-150 * CURVE), of(rule, 1e150 * CURVE)
    assert_allclose(tiny * 1e150, of(rule, CURVE), rtol=2e-3)
    assert_allclose(huge * 1e-150, of(rule, CURVE), rtol=2e-3)


@rules
@pytest.mark.parametrize(
    "rows",
    [
        [[0.0, 0.0], [3.0, 4.0]],
        [[0.0, 1.0], [1.0, 1.0], [5.0, 1.0]],
        np.column_stack([np.arange(30.0), 2.0 * np.arange(30.0)]),
        np.column_stack([np.linspace(0, 1, 20), np.full(20, 1e9)]),
        [[0.0, 0.0], [0.0, 1e-15], [1.0, 1.0], [1.0, 1.0 + 1e-15]],
        np.random.default_rng(0).normal(size=(6, 40)),
        [[0.0], [1.0], [1e6]],
    ],
    ids=["two", "constant column", "collinear", "far constant", "twins", "wide", "one column"],
)
def test_degenerate_rows_have_a_bandwidth(rule, rows):
    found = of(rule, rows)
    assert (found > 0).all()
    assert np.isfinite(found).all()
    assert (found <= 10 * np.ptp(np.asarray(rows), axis=0).max()).all()


@rules
def test_one_row_has_none(rule):
    with pytest.raises(
        InvalidDataError, match="at least two different rows, got n_samples = 1; give a number as bandwidth"
    ):
        of(rule, [[1.0, 2.0]])


# --------------------------------------------------------------------------------------------------- one by one


def test_silverman_is_the_formula():
    X = np.random.default_rng(0).normal(size=(400, 3)) * 2.5
    sigma = np.sqrt(X.var(axis=0).mean())
    assert of(BANDWIDTHS["silverman"], X) == pytest.approx(sigma * (4 / (5 * 400)) ** (1 / 7))


def test_the_plugin_is_near_the_best_for_the_gradient_of_a_normal_density():
    X = np.random.default_rng(0).normal(size=(1500, 2))
    assert of(BANDWIDTHS["plugin"], X) == pytest.approx((4 / (6 * 1500)) ** (1 / 8), rel=0.1)


def test_the_functionals_of_the_plugin_are_sums_of_derivatives():
    """Ψ₃ with given kernels, by finite differences of the Laplacian along each axis."""
    from prinfold.density.bandwidths import _functional
    from prinfold.density.ring_counts import make_rings

    X, g, D = np.random.default_rng(3).normal(size=(25, 2)), 0.9, 2
    apart = (X[:, None] - X).reshape(-1, 2)

    def phi(x):
        return np.exp(-0.5 * (x**2).sum(axis=1) / g**2) / (2 * np.pi * g**2)

    step = 0.05

    def laplacian(f):
        return lambda x: sum(f(x + e) + f(x - e) - 2 * f(x) for e in step * np.eye(2)) / step**2

    expected = -laplacian(laplacian(laplacian(phi)))(apart).mean()
    rings = make_rings(X, np.full(25, 1 / 25), np.arange(25))
    assert _functional(3, D, rings, np.full(25, 1 / 25), 25.0, g) == pytest.approx(expected, rel=0.02)


def test_plain_likelihood_is_moved_by_three_outliers_and_the_robust_one_hardly():
    curve = datasets.make_spiral(500, 0.04, "normal", 0).X
    worse = np.concatenate([curve, [[4.0, 4.0], [-3.0, 5.0], [5.0, -2.0]]])
    for name, least, most in (
        ("plain_likelihood", 3.0, np.inf),
        ("likelihood", 0.95, 1.05),
        ("wide_likelihood", 0.9, 1.1),
    ):
        assert least < of(BANDWIDTHS[name], worse) / of(BANDWIDTHS[name], curve) < most


def test_a_tenth_of_clutter_moves_the_robust_likelihood_little():
    curve = datasets.make_zigzag(500, 0.05, "normal", 0).X
    clutter = np.random.default_rng(1).uniform(-2, 2, size=(50, 2))
    worse = np.concatenate([curve, clutter])
    moved = [of(BANDWIDTHS[name], worse) / of(BANDWIDTHS[name], curve) for name in ("likelihood", "plain_likelihood")]
    assert moved[0] < 1.25
    assert moved[1] > 1.6


def test_kernels_are_wider_where_rows_are_sparse():
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(size=(200, 2)) * 0.1, rng.normal(size=(200, 2)) + 5.0])
    found = of(BANDWIDTHS["neighbors"], rows)
    assert found.shape == (400,)
    assert np.median(found[200:]) / np.median(found[:200]) == pytest.approx(10**0.5, rel=0.2)


def test_no_kernel_covers_all_others():
    rows = np.concatenate([np.random.default_rng(0).normal(size=(100, 2)), [[1e6, 0.0]]])
    found = of(BANDWIDTHS["neighbors"], rows)
    assert found[-1] == pytest.approx(4 * of(BANDWIDTHS["wide_likelihood"], rows))


def test_ridges_want_wider_kernels_the_more_rows_there_are():
    found = [ridge_width_factor(n, 2) for n in (100, 500, 3000, 1e6)]
    assert_allclose(found, [1.59, 1.77, 1.99, 2.93], atol=0.01)


# ------------------------------------------------------------------------------------------------ what is given


def test_repeats_in_equal_numbers_are_no_new_rows():
    assert effective_number(np.full(30, 4.0)) == pytest.approx(30)
    assert effective_number(np.array([1e300, 1e300])) == pytest.approx(2)


def test_numbers_arrays_and_matrices_pass():
    rng = np.random.default_rng(0)
    assert choose_bandwidth(0.3, CURVE, WEIGHT, 1, rng) == 0.3
    assert_allclose(choose_bandwidth([0.1, 0.2], CURVE, WEIGHT, 1, rng), [0.1, 0.2])
    matrix = np.array([[2.0, 1.0], [1.0, 3.0]])
    assert_allclose(choose_bandwidth(matrix, CURVE, WEIGHT, 1, rng), matrix)
    assert choose_bandwidth("silverman", CURVE, WEIGHT, 1, rng) == of(BANDWIDTHS["silverman"], CURVE, WEIGHT)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("best", r"bandwidth='best' is not one of \['"),
        (0.0, "must be positive and finite, got 0.0"),
        (np.nan, "must be positive and finite, got nan"),
        ([1.0, -1.0], "must be positive and finite"),
        ([1.0, 2.0, 3.0], r"2 numbers, one for each column, or a matrix of 2 × 2; got shape \(3,\)"),
        ([[1.0, 2.0], [2.0, 1.0]], "symmetric and positive definite"),
        ([[1.0, 0.5], [0.0, 1.0]], "symmetric and positive definite"),
    ],
)
def test_what_cannot_be_a_bandwidth_is_refused(given, words):
    with pytest.raises(InvalidParameterError, match=words):
        choose_bandwidth(given, CURVE, WEIGHT, 1, np.random.default_rng(0))


def test_a_matrix_with_nan_is_refused():
    with pytest.raises(InvalidParameterError, match="finite, symmetric"):
        check_bandwidth(np.full((2, 2), np.nan), 2)
