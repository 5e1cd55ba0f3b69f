"""Whole numbers sorted, each once."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from prinfold.numerics.distinct_numbers import distinct_numbers


@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_they_are_those_of_numpy(n: int) -> None:
    values = np.random.default_rng(n).integers(-20, 20, n)
    assert_array_equal(distinct_numbers(values), np.unique(values))
