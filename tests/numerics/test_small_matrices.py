"""Many small symmetric matrices at once, held to LAPACK one by one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prinfold.numerics.small_matrices import (
    at,
    backward,
    cholesky,
    forward,
    inverse,
    log_determinant,
    n_packed,
    pairs,
    unpacked,
)


@pytest.mark.parametrize("q", [1, 2, 3, 6])
def test_they_are_what_lapack_makes_of_each(q):
    rng = np.random.default_rng(q)
    factor = rng.standard_normal((4, 5, q, q + 2))
    A, b = factor @ np.swapaxes(factor, 2, 3), rng.standard_normal((q, 4, 5))
    packed = np.stack([A[..., i, j] for i, j in pairs(q)])
    assert len(packed) == n_packed(q)
    L = cholesky(packed, q)
    expected = np.linalg.cholesky(A)
    assert_allclose(L, np.stack([expected[..., i, j] for i, j in pairs(q)]), atol=1e-10)
    assert_allclose(log_determinant(L, q), np.linalg.slogdet(A)[1], atol=1e-9)
    assert_allclose(inverse(L, q)[unpacked(q)], np.moveaxis(np.linalg.inv(A), (2, 3), (0, 1)), rtol=1e-6, atol=1e-8)
    solved = np.linalg.solve(A, np.moveaxis(b, 0, 2)[..., None])[..., 0]
    assert_allclose(backward(L, forward(L, b)), np.moveaxis(solved, 2, 0), rtol=1e-6, atol=1e-8)


def test_places_are_symmetric_and_in_order():
    assert [at(a, b) for a, b in pairs(4)] == list(range(10))
    assert at(1, 3) == at(3, 1)
