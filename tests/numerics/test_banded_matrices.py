"""Matrices between neighbours on chains, beside the same written out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prinfold.numerics.banded_matrices import BandedMatrix


def band(m, closed, seed=0):
    """Σ c cᵀ of random c with three neighbours each, and the same as a matrix."""
    rng = np.random.default_rng(seed)
    entries, dense = np.zeros((3, m)), np.zeros((m, m))
    for first in range(m if closed else m - 2):
        c, at = rng.standard_normal(3), (first + np.arange(3)) % m
        whole = np.bincount(at, c, m)
        dense += np.outer(whole, whole)
        for apart in range(3):
            for one in range(3 - apart):
                entries[apart, at[one]] += c[one] * c[one + apart]
    entries[0] += 1.0
    return BandedMatrix(entries), dense + np.eye(m)


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("m", [3, 4, 5, 6, 9, 40])
def test_products_and_solutions_are_those_of_the_matrix_written_out(m, closed):
    made, dense = band(m, closed)
    right = np.random.default_rng(1).standard_normal((m, 2))
    assert_allclose(made.times(right), dense @ right, atol=1e-12)
    assert_allclose(made.solve(right), np.linalg.solve(dense, right), rtol=1e-7, atol=1e-9)
    other = band(m, closed, seed=2)
    assert_allclose(made.plus(0.3, other[0]).times(right), (dense + 0.3 * other[1]) @ right, atol=1e-12)


def test_two_vertices_and_those_that_nothing_holds():
    two = BandedMatrix(np.array([[2.0, 2.0], [1.0, 0.0], [0.0, 0.0]]))
    assert_allclose(two.solve(np.array([[3.0], [3.0]])), 1.0)
    assert_allclose(BandedMatrix(np.zeros((3, 4))).solve(np.zeros((4, 1))), 0.0)
    loose = BandedMatrix(np.array([[1.0, 0.0, 1.0], np.zeros(3), np.zeros(3)]))
    assert_allclose(loose.solve(np.array([[1.0], [0.0], [2.0]])), [[1], [0], [2]])
