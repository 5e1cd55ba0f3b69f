"""Points in groups: what is near is found, whatever way it is looked for."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from prinfold.geometry.point_groups import Groups


@pytest.mark.parametrize("D", [1, 2, 5, 12])
@pytest.mark.parametrize("n", [1, 40, 6000])
def test_points_within_reach_are_those_found_by_looking_at_all(D, n):
    """Few and many points, in few and many columns, take different ways."""
    rng = np.random.default_rng(D)
    points, extent = rng.normal(size=(n, D)), rng.uniform(0, 0.2, n)
    X = np.vstack([rng.normal(size=(30, D)), 50 * rng.normal(size=(3, D)), points[:1]])
    apart = np.linalg.norm(X[:, None] - points, axis=2)
    distance = apart.min(axis=1) * rng.uniform(1, 1.5, len(X))
    row, point, squared = Groups(points, extent).within(X, distance)
    expected = np.nonzero(apart <= distance[:, None] + extent)
    order = np.lexsort((point, row))
    assert_array_equal((row[order], point[order]), expected)
    assert (np.diff(row) >= 0).all()
    np.testing.assert_allclose(np.sqrt(squared), apart[row, point])
