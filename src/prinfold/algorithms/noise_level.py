"""How much of the data is noise, as seen from latent points that do not follow it yet.

A surface fitted by moving latent points can follow noise as far as one likes, and neither leaving one out nor new rows
show it: both errors go on falling. What stops it is an estimate of the noise that was made before. Local linear
regression of the rows on the latent coordinates they start from gives one: it has no bias where the surface is straight
within a bandwidth, and what is left of a row *across* the surface does not depend on where along it the row was put.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from prinfold._typing import FloatArray, IntArray
from prinfold.kernels.profiles import Profile

_MOST_ROWS = 2000
"""Rows whose residuals are averaged: the mean of so many is known to a few per cent."""

_MOST_NEIGHBORS = 256
"""A straight piece is known well enough from so many."""

_BLOCK_NUMBERS = 2**21


def noise_level(X: FloatArray, Y: FloatArray, weight: FloatArray, profile: Profile) -> float:
    """Mean squared distance of rows Y (n, D) from the surface across it, given latent points X (n, Q) in bandwidths.

    Row i is predicted, itself left out, by ŷ_i = Σ_j p_ij y_j, the value at x_i of the plane that fits its neighbours
    best with weights w_j k(‖x_i − x_j‖²). With e_i the part of y_i − ŷ_i that is orthogonal to the plane, noise of
    variance σ² in each direction across leaves E‖e_i‖² = (D − Q) σ² (1 + Σ_j p_ij²), by which e_i is divided.
    """
    n, Q = X.shape
    few = Q + 3  # neighbours without which a plane of Q + 1 coefficients would pass through them all
    if n <= few or Y.shape[1] <= Q:
        return 0.0
    rows = np.unique(np.linspace(0, n - 1, min(n, _MOST_ROWS)).astype(np.intp))
    n_near = min(n, _MOST_NEIGHBORS + 1)
    distance, near = map(np.asarray, cKDTree(X).query(X[rows], k=n_near))
    size = max(1, _BLOCK_NUMBERS // (n_near * (Y.shape[1] + Q + 1)))
    total = 0.0
    for i in range(0, len(rows), size):
        part = slice(i, i + size)
        k = _kernel(distance[part], near[part], rows[part], profile, few) * weight[near[part]]
        total += float(weight[rows[part]] @ _across(X, Y, rows[part], near[part], k))
    return total / float(weight[rows].sum())


def _kernel(distance: FloatArray, near: IntArray, rows: IntArray, profile: Profile, few: int) -> FloatArray:
    """(b, k) kernel values with the row itself left out; a row in too empty a place takes its nearest few alike."""
    k = np.where(near == rows[:, None], 0.0, profile.value(np.minimum(distance, 1e100) ** 2))
    # A neighbour that weighs a millionth of the nearest one is none.
    alone = (k > 1e-6 * k.max(axis=1, keepdims=True)).sum(axis=1) < few
    others = near != rows[:, None]
    among = others & (others.cumsum(axis=1) <= few)
    return np.where(alone[:, None], among, k)


def _across(X: FloatArray, Y: FloatArray, rows: IntArray, near: IntArray, k: FloatArray) -> FloatArray:
    """(b,) squared residuals of rows across the planes that their neighbours lie on, corrected for the planes' own."""
    offset = X[near] - X[rows][:, None]
    A = np.concatenate([np.ones((*near.shape, 1)), offset], axis=2)
    kA = k[:, :, None] * A
    # Latent points on one line leave a plane undetermined: the shortest of all solutions will do.
    solve = np.linalg.pinv(np.swapaxes(A, 1, 2) @ kA, rcond=1e-10, hermitian=True) @ np.swapaxes(kA, 1, 2)
    planes = solve @ Y[near]
    left = Y[rows] - planes[:, 0]
    _, size, tangents = np.linalg.svd(planes[:, 1:], full_matrices=False)
    real = size > 1e-10 * np.maximum(size[:, :1], np.finfo(float).tiny)
    along = np.where(real, np.einsum("bqd,bd->bq", tangents, left), 0.0)
    squared = np.einsum("bd,bd->b", left, left) - np.einsum("bq,bq->b", along, along)
    return np.asarray(np.maximum(squared, 0.0) / (1.0 + np.square(solve[:, 0]).sum(axis=1)))


def neighborhood_noise(Y: FloatArray, weight: FloatArray, n_components: int) -> float:
    """Mean squared distance of rows Y (n, D) from the Q-dimensional plane through their neighbours in data space.

    It needs no latent points, so that a surface which is folded where it should not be has no part in it. Where
    the noise is wider than the distance between rows it comes out too small: neighbours are then chosen by their noise.
    """
    n, D = Y.shape
    n_near = min(n - 1, 6 + 3 * n_components)
    if n_near < n_components + 2 or n_components >= D:
        return 0.0
    rows = np.unique(np.linspace(0, n - 1, min(n, _MOST_ROWS)).astype(np.intp))
    near = np.asarray(cKDTree(Y).query(Y[rows], k=n_near + 1)[1])
    # Where a row has twins it may not be the first of its own neighbours; one of the twins is left out for it.
    itself = np.where((near == rows[:, None]).any(axis=1), (near == rows[:, None]).argmax(axis=1), 0)
    near = near[np.arange(n_near + 1) != itself[:, None]].reshape(len(rows), n_near)
    size = max(1, _BLOCK_NUMBERS // (n_near * D))
    parts = [slice(i, i + size) for i in range(0, len(rows), size)]
    squared = np.concatenate([_off_plane(Y, rows[part], near[part], weight, n_components) for part in parts])
    return float(np.average(squared, weights=weight[rows]))


def _off_plane(Y: FloatArray, rows: IntArray, near: IntArray, weight: FloatArray, n_components: int) -> FloatArray:
    """(b,) squared distances of rows from the principal planes of their neighbours, corrected for the means' own."""
    share = weight[near] / weight[near].sum(axis=1, keepdims=True)
    mean = np.einsum("bk,bkd->bd", share, Y[near])
    _, _, directions = np.linalg.svd(np.sqrt(share)[:, :, None] * (Y[near] - mean[:, None]), full_matrices=False)
    left = Y[rows] - mean
    along = np.einsum("bqd,bd->bq", directions[:, :n_components], left)
    squared = np.einsum("bd,bd->b", left, left) - np.einsum("bq,bq->b", along, along)
    return np.asarray(np.maximum(squared, 0.0) / (1.0 + np.square(share).sum(axis=1)))
