"""Noise, components and bandwidth of a tree."""

from __future__ import annotations

import numpy as np
import pytest

from prinfold import datasets
from prinfold.trees.noise import choose_bandwidth, count_components, first_tree, keep_components, variance_across
from prinfold.trees.soft_tree import TreeProblem


def centered(data: datasets.TreeDataset) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    offset = data.X.mean(axis=0)
    return data.X - offset, np.ones(len(data.X)), offset


@pytest.mark.parametrize("columns", [10, 50])
def test_noise_is_that_of_one_column(columns: int) -> None:
    rows, weight, offset = centered(datasets.make_tree(2000, 0.1, rng=0, n_features=columns))
    inside = keep_components(rows, weight, offset)
    assert first_tree(inside, weight, columns, 60, None, 1.0, np.inf).noise == pytest.approx(0.1, rel=0.05)


def test_components_of_noise_alone_are_left_out_and_those_of_a_plane_kept() -> None:
    rng = np.random.default_rng(0)
    flat = np.hstack([rng.normal(size=(2000, 2)) * [3, 2], np.zeros((2000, 28))])
    rows = flat + 0.1 * rng.normal(size=(2000, 30))
    rows -= rows.mean(axis=0)
    inside = keep_components(rows, np.ones(2000), np.zeros(30))
    assert inside.rows.shape == (2000, 2)
    whole = np.square(inside.rows).sum(axis=1) + inside.rest
    np.testing.assert_allclose(whole, np.square(rows).sum(axis=1))


def test_a_flat_spectrum_has_no_noise_to_leave_out() -> None:
    assert count_components(np.ones(20), 1000.0, 20) == 20
    assert count_components(np.array([5.0, 1.0, 1.0]), 1000.0, 3) == 3  # three columns have no flat end


def test_variance_across_is_the_mean_squared_distance_over_the_directions_across() -> None:
    rows, weight, offset = centered(datasets.make_tree(50, 0.1, rng=0, n_features=3))
    inside = keep_components(rows, weight, offset)
    centers, edges = np.array([[-1.0, 0, 0], [1.0, 0, 0]]), np.array([[0, 1]])
    t = np.clip(rows[:, 0], -1, 1)
    wanted = np.square(rows - np.stack([t, 0 * t, 0 * t], axis=1)).sum() / (50 * 2)
    assert variance_across(inside, weight, centers, edges, 3) == pytest.approx(wanted)


def test_rows_without_noise_still_have_a_bandwidth() -> None:
    rows = np.linspace(-1, 1, 50)[:, None] * np.array([[1.0, 2.0]])
    state = TreeProblem(rows, np.ones(50), 1.0, 1.0).begin(rows[::10])
    assert choose_bandwidth(0.0, state, 50.0, 2) > 0
