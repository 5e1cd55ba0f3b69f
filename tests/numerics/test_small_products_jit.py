"""Products of small matrices in compiled code, beside those of NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from numpy.testing import assert_allclose, assert_array_equal

from prinfold.numerics import _small_products_jit as products

_SIZES = st.integers(1, 40)


@njit
def multiply(A, B, out):
    products.multiply(A, B, out)


@njit
def product(A, B, out):
    products.product(A, B, out)


@njit
def turn(table, chosen, into):
    products.turn(table, chosen, into)


def whole_lanes(n, dtype):
    return products.up_to_lanes(n, np.dtype(dtype).itemsize)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("turned", [False, True])
@given(n=_SIZES, m=_SIZES, k=_SIZES, seed=st.integers(0, 1000))
def test_a_product_is_that_of_numpy(dtype, turned, n, m, k, seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(m, n)).astype(dtype).T if turned else rng.normal(size=(n, m)).astype(dtype)
    B = rng.normal(size=(m, whole_lanes(k, dtype))).astype(dtype)
    out = np.full((n, B.shape[1]), np.nan, dtype)
    multiply(A, B, out)
    exact = A.astype(np.float64) @ B.astype(np.float64)
    size = np.abs(A).astype(np.float64) @ np.abs(B).astype(np.float64)
    assert (np.abs(out - exact) <= (m + 1) * np.finfo(dtype).eps * size).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("n", [7, 2500])
def test_large_products_are_those_of_small_ones(dtype, turned, n, rng):
    A = rng.normal(size=(40, n)).astype(dtype).T if turned else rng.normal(size=(n, 40)).astype(dtype)
    B = rng.normal(size=(40, 48)).astype(dtype)
    out, small = np.full((n, 48), np.nan, dtype), np.empty((n, 48), dtype)
    product(A, B, out)
    multiply(A, B, small)
    assert_allclose(out, small, atol=500 * np.finfo(dtype).eps)


def test_what_is_no_number_stays_in_its_row_and_column():
    A, B, out = np.ones((7, 3)), np.ones((3, 16)), np.empty((7, 16))
    A[2, 1], B[0, 5] = np.nan, np.inf
    multiply(A, B, out)
    assert_array_equal(np.isnan(out), np.isnan(A @ B))
    assert_array_equal(np.isinf(out), np.isinf(A @ B))


@pytest.mark.parametrize(
    ("rows", "columns", "out"),
    [((4, 3), (2, 8), (4, 8)), ((4, 3), (3, 8), (5, 8)), ((4, 3), (3, 7), (4, 7)), ((4, 3), (3, 16), (4, 8))],
)
def test_shapes_that_do_not_fit_are_refused(rows, columns, out):
    with pytest.raises(ValueError, match="shapes of a small product"):
        multiply(np.ones(rows), np.ones(columns), np.ones(out))


def test_columns_that_lie_apart_are_refused():
    with pytest.raises(ValueError, match="columns of a small product lie apart"):
        multiply(np.ones((4, 3)), np.ones((3, 16))[:, ::2], np.ones((4, 8)))


def test_rows_are_turned_and_followed_by_zeros(rng):
    table, chosen, into = rng.normal(size=(9, 5)), np.array([3, 0, 8]), np.full((8, 8), np.nan)
    turn(table, chosen, into)
    assert_allclose(into[:5, :3], table[chosen].T)
    assert_array_equal(into[:, 3:], 0.0)
    assert_array_equal(into[5:], 0.0)
