"""Distances in rings, against the distances themselves."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from prinfold.density import ring_counts
from prinfold.density.ring_counts import count_rings_reference, make_rings, ring_of

RNG = np.random.default_rng(0)
X, WEIGHT = RNG.normal(size=(300, 3)), RNG.uniform(0.5, 3.0, 300)
ASKED = np.arange(0, 300, 7)


def squares():
    return ((X[ASKED][:, None] - X) ** 2).sum(axis=2)


def test_rings_are_a_sixteenth_of_their_distance_wide():
    s = np.geomspace(1e-6, 1e6, 20_001)
    ring = ring_of(s)
    assert (np.diff(ring) >= 0).all()
    for number in np.unique(ring)[1:-1]:
        inside = s[ring == number]
        assert inside[-1] / inside[0] < 1 + 1 / 16


def test_nothing_is_lost_and_no_row_is_its_own_neighbour():
    found = make_rings(X, WEIGHT, ASKED)
    assert_allclose(found.weight.sum(axis=1), WEIGHT.sum() - WEIGHT[ASKED], rtol=1e-12)
    assert_allclose((found.weight * found.squared).sum(axis=1), squares() @ WEIGHT, rtol=1e-12)


def test_a_sum_over_rings_is_that_over_rows():
    found, s = make_rings(X, WEIGHT, ASKED), squares()
    others = ASKED[:, None] != np.arange(300)
    for h in (0.3, 1.0, 5.0):
        exact = (WEIGHT * np.exp(-0.5 * s / h**2) * others).sum(axis=1)
        assert_allclose((found.weight * np.exp(-0.5 * found.squared / h**2)).sum(axis=1), exact, rtol=2e-3)


def test_the_error_of_a_ring_is_within_the_bound():
    h = 1.0
    for middle in (0.5, 4.0, 16.0):
        width = middle / 16
        s = np.linspace(middle - width / 2, middle + width / 2, 1001)
        exact, by_mean = np.exp(-0.5 * s / h**2).mean(), np.exp(-0.5 * s.mean() / h**2)
        assert abs(exact / by_mean - 1) < (middle / 16 / h**2) ** 2 / 32


def test_compiled_counts_are_those_of_the_twin(monkeypatch):
    by_numpy = make_rings(X, WEIGHT, ASKED)
    monkeypatch.setattr(ring_counts, "_COMPILED_FROM", 0)
    compiled = make_rings(X, WEIGHT, ASKED)
    assert_allclose(compiled.weight, by_numpy.weight, rtol=1e-13)
    assert_allclose(compiled.squared, by_numpy.squared, rtol=1e-13)


def test_parts_are_the_whole():
    whole, part = (np.zeros((2, len(ASKED), 64)) for _ in range(2))
    columns, first = np.ascontiguousarray(X.T), 1023 * 16
    count_rings_reference(columns, WEIGHT, ASKED, first, *whole)
    for i in range(len(ASKED)):
        count_rings_reference(columns, WEIGHT, ASKED[i : i + 1], first, part[0, i : i + 1], part[1, i : i + 1])
    assert_array_equal(whole, part)


def test_distances_out_of_range_are_counted_with_the_last():
    far = np.array([[0.0], [1e-40], [1e100], [1.0]])
    found = make_rings(far, np.ones(4), np.array([0]))
    assert found.weight.sum() == 3
    assert found.weight.shape[1] == 3
