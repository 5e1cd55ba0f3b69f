"""Inner products axis by axis are those of the functions at all nodes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prinfold.basis_maps.product_grams import Factors, ProductGram, product_gram_reference


@st.composite
def products(draw):
    """Axes of a few nodes with a few functions each, and φ that are any products of those."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_functions = draw(st.integers(1, 12))
    factors = []
    for _ in range(draw(st.integers(1, 4))):
        n, f = draw(st.integers(1, 6)), draw(st.integers(1, 5))
        factors.append(Factors(rng.normal(size=(n, f)), rng.integers(0, f, n_functions)))
    return factors, rng.exponential(size=np.prod([len(values) for values, _ in factors]))


@given(products())
def test_axis_by_axis_equals_the_whole(case):
    factors, weight = case
    found = ProductGram.of(factors)(weight)
    np.testing.assert_allclose(found, product_gram_reference(factors, weight), atol=1e-10)
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize(
    ("shape", "functions", "worth"),
    [((20, 20), 9, True), ((8, 8, 8), 4, True), ((400,), 81, False), ((5,) * 4, 3, False), ((300, 300), 50, False)],
)
def test_it_is_taken_where_it_is_less_work(shape, functions, worth):
    """A single axis has as many pairs of functions as there are pairs of φ: nothing is gained."""
    which = np.indices((functions,) * len(shape)).reshape(len(shape), -1)
    factors = [Factors(np.ones((n, functions)), chosen) for n, chosen in zip(shape, which, strict=True)]
    assert ProductGram.is_cheaper(factors) == worth
