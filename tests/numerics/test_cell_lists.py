"""Cells find exactly the pairs within reach, whatever the points look like."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from prinfold.numerics import cell_lists as cells
from prinfold.numerics.cell_lists import PairBuffers, cut_by_count, share_within, sort_into_cells


def found_pairs(X, reach, about=50):
    sorted_points = sort_into_cells(X, reach)
    parts, most = cut_by_count(sorted_points.counts, about)
    found, room = [], PairBuffers(most)
    for part in parts:
        (rows, cuts, near), s = sorted_points.pairs(part, room)
        found += list(zip(np.repeat(rows, np.diff(cuts)).tolist(), near.tolist(), s.tolist(), strict=True))
    return sorted(found)


def defined_pairs(X, reach):
    s = np.square(X[:, None] - X).sum(axis=2)
    i, j = np.nonzero((s < reach**2) & ~np.eye(len(X), dtype=bool))
    return sorted(zip(i.tolist(), j.tolist(), s[i, j].tolist(), strict=True))


@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 60),
    Q=st.integers(1, 6),
    spread=st.sampled_from([0.0, 0.3, 1.0, 5.0, 1e4]),
    reach=st.sampled_from([0.5, 1.0, 6.0]),
    lattice=st.booleans(),
)
def test_pairs_are_those_within_reach(seed, n, Q, spread, reach, lattice):
    X = spread * np.random.default_rng(seed).normal(size=(n, Q))
    if lattice:  # many coincide, and many lie on the rims of cells and of the reach
        X = np.round(X)
    found, expected = found_pairs(X, reach), defined_pairs(X, reach)
    assert [pair[:2] for pair in found] == [pair[:2] for pair in expected]
    assert_allclose([pair[2] for pair in found], [pair[2] for pair in expected], rtol=1e-13)


@pytest.mark.parametrize("away", [1e6, 1e12, 1e18])
@pytest.mark.parametrize("Q", [1, 2, 3, 4])
def test_points_far_away_do_not_run_out_of_cells(away, Q):
    X = np.random.default_rng(0).normal(size=(40, Q))
    X[7], X[8], X[9] = away, -away, away  # two of them together
    assert [pair[:2] for pair in found_pairs(X, 1.0)] == [pair[:2] for pair in defined_pairs(X, 1.0)]


def test_gaps_are_closed_to_one_empty_cell():
    assert cells._close_gaps(np.array([0.0, 1.0, 5.0, 1e15, 5.0])).tolist() == [0, 1, 3, 5, 3]


def test_parts_hold_about_as_many_pairs_as_asked_and_every_row_once():
    counts = np.random.default_rng(0).integers(0, 20, 300)
    parts, most = cut_by_count(counts, 100)
    assert [part.start for part in parts[1:]] == [part.stop for part in parts[:-1]]
    assert (parts[0].start, parts[-1].stop) == (0, 300)
    sums = [counts[part].sum() for part in parts]
    assert most == max(sums) < 120
    assert cut_by_count(np.zeros(3, dtype=int), 100) == ([slice(0, 3)], 0)


def test_the_share_of_pairs_is_about_right():
    X = np.random.default_rng(0).uniform(0, 10, (20_000, 2))
    assert_allclose(share_within(X, 1.0), np.pi / 100, rtol=0.1)
    assert share_within(X, 100.0) == 1.0
