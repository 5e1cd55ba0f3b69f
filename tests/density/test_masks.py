"""Points spread evenly over what was observed: their density is flat wherever a mask lets it be."""

from __future__ import annotations

import numpy as np
import pytest

from prinfold.density.densities import KernelDensity
from prinfold.density.masks import even_points
from prinfold.density.row_spaces import FLAT, Globe


def everywhere(rows: np.ndarray) -> np.ndarray:
    return np.ones(len(rows), dtype=bool)


def unevenness(density: KernelDensity, X: np.ndarray) -> float:
    return float(np.ptp(density.log_density(X)))


@pytest.mark.parametrize(
    "bandwidth", [0.3, np.array([0.1, 1.5]), np.array([[1.0, 0.8], [0.8, 0.7]])], ids=["number", "columns", "matrix"]
)
def test_even_points_are_flat_up_to_the_outermost_row(bandwidth):
    """Two bandwidths past the box, whatever the shape of kernels, they have lost 2.3 % at a side of it."""
    rows = np.random.default_rng(0).uniform([0, 0], [2, 10], (200, 2))
    points, weight = even_points(everywhere, rows, bandwidth, FLAT)
    density = KernelDensity(points, weight, bandwidth, "exact")
    middle = np.array([[1.0, 5.0], [0.9, 5.1], [1.05, 4.9]])
    assert unevenness(density, middle) < 1e-3
    low, high = rows.min(axis=0), rows.max(axis=0)
    sides = np.array([[low[0], 5.0], [high[0], 5.0], [1.0, low[1]], [1.0, high[1]]])
    assert unevenness(density, np.concatenate([middle, sides])) < 0.03


@pytest.mark.parametrize("south", [-90.0, -50.3])
@pytest.mark.parametrize("h", [5.0, 7.3, 11.0])
def test_even_points_are_flat_on_a_globe_and_at_its_poles(h, south):
    rows = np.array([[0.0, south], [0.0, 90.0]])
    globe = Globe()
    points, weight = even_points(everywhere, rows, h, globe)
    density = KernelDensity(globe.enter(points), weight, h, "exact")
    latitude = np.array([-90.0, -85.0, 0.0, 10.0, 33.0, 71.0, 84.0, 88.0, 90.0])
    latitude = latitude[latitude >= south + 0.0]
    asked = np.stack([np.linspace(-170, 120, len(latitude)), latitude], axis=1)
    assert unevenness(density, globe.enter(asked)) < 1e-3
