"""Noise variance across a surface, estimated from initial latent points or from neighbours in data space.

A surface fitted by moving latent points can follow noise as far as one likes, and neither leaving one out nor new rows
show it: both errors go on falling. An estimate of the noise made before can stop it; this one is ours. Local linear
regression of the rows on the latent coordinates they start from gives one: it has no bias where the surface is straight
within a bandwidth, and what is left of a row *across* the surface does not depend on where along it the row was put.
"""

from __future__ import annotations

from math import inf

import numpy as np
from scipy.spatial import cKDTree

from prinfold._typing import FloatArray, IntArray
from prinfold.numerics.finite_checks import LARGEST, require_finite
from prinfold.numerics.radial_kernels import Profile

_MOST_ROWS = 2000
"""Rows whose residuals are averaged: the mean of so many is known to a few per cent."""

_MOST_NEIGHBORS = 256
"""Most neighbours of a local plane, which so many determine well enough."""

_ROWS_WITH_PLANES = 500
"""Most rows with planes through neighbours in data space, each of which takes an eigendecomposition."""

_LEAST_VARIANCE_RATIO = 3.0
"""Least ratio of the variance along a neighbourhood to that which chance gives where it is equal in all directions."""

_LEAST_CLEAR_RATIO = 1.35
"""The same where no neighbourhood has as much: noise alone had up to 1.3. On noisy spirals, knots and rolls the longest
neighbourhoods gave 0.6 to 1.8 times the true noise, where those of 72 rows gave 4 to 10 times."""

_MOST_MEDIANS = 20.0

_BLOCK_NUMBERS = 2**21


def noise_level(X: FloatArray, Y: FloatArray, weight: FloatArray, profile: Profile) -> float:
    """Typical squared distance of rows Y (n, D) across the surface, given latent points X (n, Q) in bandwidths.

    Row i is predicted, itself left out, by ŷ_i = Σ_j p_ij y_j, the value at x_i of the plane that fits its neighbours
    best with weights w_j k(‖x_i − x_j‖²). With e_i the part of y_i − ŷ_i that is orthogonal to the plane, noise of
    variance σ² in each direction across leaves E‖e_i‖² = (D − Q) σ² (1 + Σ_j p_ij²), by which e_i is divided.
    """
    n, Q = X.shape
    few = Q + 3  # neighbours without which a plane of Q + 1 coefficients would pass through them all
    if n <= few or Y.shape[1] <= Q:
        return 0.0
    require_finite("latent points in bandwidths", X, "take a bandwidth nearer to the extent of the data", LARGEST)
    rows = np.unique(np.linspace(0, n - 1, min(n, _MOST_ROWS)).astype(np.intp))
    n_near = min(n, _MOST_NEIGHBORS + 1)
    distance, near = map(np.asarray, cKDTree(X).query(X[rows], k=n_near))
    size = max(1, _BLOCK_NUMBERS // (n_near * (Y.shape[1] + Q + 1)))
    squared = np.empty(len(rows))
    for i in range(0, len(rows), size):
        part = slice(i, i + size)
        k = _kernel(distance[part], near[part], rows[part], profile, few) * weight[near[part]]
        squared[part] = _squares_across(X, Y, rows[part], near[part], k)
    return typical_mean(squared, weight[rows])


def typical_mean(squared: FloatArray, weight: FloatArray) -> float:
    """Mean of squared distances, none of which counts for more than 20 times their median.

    Of normal noise in one direction that holds down one row in 400, in more directions fewer, and a row far off all
    others counts about as much in an error as in an estimate of the noise.
    """
    order = np.argsort(squared)
    before = np.cumsum(weight[order])
    median = squared[order[np.searchsorted(before, 0.5 * before[-1])]]
    most = _MOST_MEDIANS * median if median > 0 else inf
    return float(weight @ np.minimum(squared, most)) / float(before[-1])


def _kernel(distance: FloatArray, near: IntArray, rows: IntArray, profile: Profile, few: int) -> FloatArray:
    """(b, k) kernel values with the row itself left out; a row with too few neighbours weighs its nearest alike."""
    k = np.where(near == rows[:, None], 0.0, profile.value(np.minimum(distance, 1e100) ** 2))
    # A neighbour that weighs a millionth of the nearest one is none.
    alone = (k > 1e-6 * k.max(axis=1, keepdims=True)).sum(axis=1) < few
    others = near != rows[:, None]
    among = others & (others.cumsum(axis=1) <= few)
    return np.where(alone[:, None], among, k)


def _squares_across(X: FloatArray, Y: FloatArray, rows: IntArray, near: IntArray, k: FloatArray) -> FloatArray:
    """(b,) squared residuals of rows across the planes through their neighbours, divided by 1 + Σ_j p_ij²."""
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

    It needs no latent points, so that a bad start, with unrelated rows side by side, does not matter. Where rows are
    nearer to each other than the noise is wide, neighbours are chosen by their noise, and look alike in all directions.
    Neighbourhoods are therefore doubled until their variance along the plane is several times that across it in each
    direction. Where that never happens, because the surface bends or comes back to itself within its noise, those stand
    for all that are longest; inf where none is longer than chance makes them: then nothing is known.
    """
    n, D = Y.shape
    if n_components >= D or not np.ptp(Y, axis=0).any():
        return 0.0
    rows = np.unique(np.linspace(0, n - 1, min(n, _ROWS_WITH_PLANES)).astype(np.intp))
    tree, n_near, breadth = cKDTree(Y), 6 + 3 * n_components, _effective_dimensions(Y, weight)
    longest, found = _LEAST_CLEAR_RATIO, inf
    while n_near < n // 2:
        near = np.asarray(tree.query(Y[rows], k=n_near + 1)[1])
        planes = [_plane_variances(Y, i, js, weight, n_components) for i, js in zip(rows, near, strict=True)]
        along, across, squared = (typical_mean(each, weight[rows]) for each in np.array(planes).T)
        # Of n_near points that are noise in d directions the longest axis has (1 + √(d/n_near))² of the mean variance.
        chance = (1.0 + np.sqrt(breadth / n_near)) ** 2
        by_chance = chance * across / min(breadth, D - n_components)
        if along / n_components > _LEAST_VARIANCE_RATIO * by_chance:
            return squared
        if along / n_components > longest * by_chance:
            longest, found = along / n_components / by_chance, squared
        n_near *= 2
    return found


def _effective_dimensions(Y: FloatArray, weight: FloatArray) -> float:
    """(Σλ)² / Σλ² of the principal variances λ: the effective number of dimensions of the rows."""
    scaled = np.sqrt(weight / weight.sum())[:, None] * (Y - np.average(Y, axis=0, weights=weight))
    scaled = np.ldexp(scaled, -int(np.frexp(np.abs(scaled).max())[1]))  # fourth powers of large numbers overflow
    scatter = scaled @ scaled.T if len(Y) < Y.shape[1] else scaled.T @ scaled
    squares = float(np.square(scatter).sum())
    return float(np.trace(scatter) ** 2 / squares) if squares > 0 else 1.0


def _plane_variances(
    Y: FloatArray, row: int, near: IntArray, weight: FloatArray, n_components: int
) -> tuple[float, ...]:
    """Variances along and across the principal plane of a row's neighbours, and its own squared distance from it."""
    near = near[near != row][: len(near) - 1]  # where a row has twins it need not be among its own neighbours
    share = weight[near] / weight[near].sum()
    mean = share @ Y[near]
    spread = np.sqrt(share)[:, None] * (Y[near] - mean)
    left = Y[row] - mean
    # Whichever of the two products of the neighbours with themselves is the smaller has all the variances.
    wide = spread.shape[0] < spread.shape[1]
    variances, vectors = np.linalg.eigh(spread @ spread.T if wide else spread.T @ spread)
    axes = vectors[:, -n_components:]
    if wide:
        axes = spread.T @ (axes / np.sqrt(np.maximum(variances[-n_components:], np.finfo(float).tiny)))
    off = max(float(left @ left - np.square(left @ axes).sum()), 0.0)
    along = float(variances[-n_components:].sum())
    return along, float(variances.sum()) - along, off / (1.0 + float(share @ share))
