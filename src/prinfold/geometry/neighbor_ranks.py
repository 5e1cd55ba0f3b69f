"""Neighbourhood ranks, and sums over the neighbours of each row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from prinfold._typing import FloatArray
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.rows.rows import row_slices

Distance = Callable[[FloatArray, FloatArray], FloatArray]
_BLOCK_NUMBERS = 2**22


def rank_intrusion(X: FloatArray, Z: FloatArray, k: int, data_distance: Distance, map_distance: Distance) -> float:
    """Trustworthiness of the map X ↦ Z (Venna & Kaski, 2001), in row blocks: ranks of all rows are never held at once.

    scikit-learn's holds them all, and has no distances of its own on the map, such as round a circle.
    """
    n = len(X)
    if len(Z) != n:
        raise InvalidDataError(f"data and latent coordinates must have equal rows, got {n} and {len(Z)}.")
    if not 1 <= k < n / 2:
        raise InvalidParameterError(f"n_neighbors must be at least 1 and less than n / 2 = {n / 2:g}, got {k}.")
    penalty = 0
    for block in row_slices(n, max(1, _BLOCK_NUMBERS // n)):
        rows, own = np.arange(block.stop - block.start)[:, None], np.arange(block.start, block.stop)
        apart, shown = np.array(data_distance(X[block], X)), np.array(map_distance(Z[block], Z))
        apart[rows[:, 0], own] = shown[rows[:, 0], own] = -np.inf  # a row is its own neighbour of rank 0
        order = np.argsort(apart, axis=1, kind="stable")
        rank = np.empty_like(order)
        rank[rows, order] = np.arange(n)
        near = np.argsort(shown, axis=1, kind="stable")[:, 1 : k + 1]
        penalty += int(np.maximum(rank[rows, near] - k, 0).sum())
    return 1.0 - 2.0 * penalty / (n * k * (2.0 * n - 3.0 * k - 1.0))


def merge_equal_rows(
    Z: FloatArray, residual: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """One row for each distinct pair of coordinates and residual, so that a copy of a row is not its neighbour."""
    rows, name = np.unique(np.hstack([Z, residual])[weight > 0], axis=0, return_inverse=True)
    total = np.asarray(np.bincount(name.reshape(-1), weights=weight[weight > 0]), dtype=float)
    return rows[:, : Z.shape[1]], rows[:, Z.shape[1] :], total


def bin_sums(Z: FloatArray, residual: FloatArray, weight: FloatArray, n_bins: int) -> tuple[FloatArray, FloatArray]:
    """Σ w_j and Σ w_j r_j over the other rows of each row's bin."""
    if n_bins < 1:
        raise InvalidParameterError(f"n_bins must be at least 1, got {n_bins}.")
    low, extent = Z.min(axis=0), np.ptp(Z, axis=0)
    cell = np.floor(n_bins * (Z - low) / np.where(extent > 0, extent, 1.0)).astype(np.intp)
    _, name = np.unique(np.minimum(cell, n_bins - 1), axis=0, return_inverse=True)
    name = name.reshape(-1)
    moment = np.zeros((name.max() + 1, residual.shape[1]))
    np.add.at(moment, name, weight[:, None] * residual)
    mass = np.bincount(name, weights=weight)
    return mass[name] - weight, moment[name] - weight[:, None] * residual


def kernel_sums(
    Z: FloatArray, residual: FloatArray, weight: FloatArray, bandwidth: float, distance: Distance
) -> tuple[FloatArray, FloatArray]:
    """Σ k_ij w_j and Σ k_ij w_j r_j over the other rows, Gaussian k, in row blocks."""
    if not bandwidth > 0:
        raise InvalidParameterError(f"bandwidth must be positive, got {bandwidth}.")
    mass, moment = np.empty(len(Z)), np.empty_like(residual)
    for block in row_slices(len(Z), max(1, _BLOCK_NUMBERS // len(Z))):
        kernel = np.exp(-0.5 * (np.asarray(distance(Z[block], Z)) / bandwidth) ** 2) * weight
        kernel[np.arange(block.stop - block.start), np.arange(block.start, block.stop)] = 0.0
        mass[block], moment[block] = kernel.sum(axis=1), kernel @ residual
    return mass, moment
