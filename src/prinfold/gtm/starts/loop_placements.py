"""Rows placed on circles, cylinders and tori by the loops that persist in them.

A principal plane of a knot shows a curve that crosses itself, one of a torus a disc, and a start from there winds the
latent circle round the wrong way or not at all. The loops of the data themselves say where to lay it. Loops and
angles are those of :mod:`prinfold.geometry.persistent_loops` (de Silva, Morozov & Vejdemo-Johansson, 2011), the heights
are ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import cdist

from prinfold._typing import FloatArray
from prinfold.base.starting_points import EmbeddedRows
from prinfold.geometry.persistent_loops import Circular, circular_coordinates, farthest_points, persistent_loops
from prinfold.latent import Lattice

_LANDMARKS = {1: 150}
_MOST_LANDMARKS = 250
"""Points among which loops are sought, for one angle and for more: the cost grows with the cube of their number, and a
torus needs more for the short way round it to show."""

_SPARE_LOOPS = 1
"""Loops beside the longest-lived that are tried in their place: holes of chance may live as long as a thin tube."""

_HARMONICS = 3
"""Harmonics of the angles that are taken off before heights are looked for: a circle in an isometric embedding has odd
ones, the third with a ninth of the variance of the first, and a low cylinder may have less along its height."""


def cycle_placements(latent: Lattice, X: FloatArray, weight: FloatArray) -> list[EmbeddedRows]:
    """Latent coordinates of rows X (n, D), one set for each choice of loops; none where there are too few loops.

    The loops are those of an even cover of the rows; on it an angle goes round each of them as smoothly as can be, and
    open axes follow what of the distances along the cover the angles leave unexplained. Rows take the mean of the
    points of the cover near them.
    """
    n_angles = sum(latent.periodic)
    marks = X[farthest_points(X, _LANDMARKS.get(n_angles, _MOST_LANDMARKS))]
    distance = cdist(marks, marks)
    loops = persistent_loops(distance) if len(marks) > 3 else []
    placed = []
    for chosen in combinations(loops[: n_angles + _SPARE_LOOPS], n_angles):
        found = circular_coordinates(distance, list(chosen))
        if found is None:
            continue
        shares = _shares(X, marks[found.kept])
        heights = _heights(distance, found, sum(not closed for closed in latent.periodic))
        placed += [
            EmbeddedRows(_spread(latent, angles, heights, shares, weight), X, weight)
            for angles in _orders(latent, found.angles)
        ]
    return placed


def _orders(latent: Lattice, angles: FloatArray) -> Iterator[FloatArray]:
    """Assignments of angles to closed axes: all of them if the axes have different numbers of nodes."""
    counts = {n for n, closed in zip(latent.shape, latent.periodic, strict=True) if closed}
    every = permutations(range(angles.shape[1])) if len(counts) > 1 else [range(angles.shape[1])]
    for order in every:
        yield angles[:, list(order)]


def _shares(X: FloatArray, marks: FloatArray) -> FloatArray:
    """(n, k) weights of the points of the cover for each row, of a Gaussian as wide as the cover is fine."""
    square = cdist(X, marks, "sqeuclidean")
    nearest = square.min(axis=1, keepdims=True)
    share = np.exp(-0.5 * (square - nearest) / max(float(np.median(nearest)), _median_neighbor_square(marks), 1e-300))
    return np.asarray(share / share.sum(axis=1, keepdims=True))


def _median_neighbor_square(marks: FloatArray) -> float:
    """Median squared distance from a point to the nearest other."""
    square = cdist(marks, marks, "sqeuclidean")
    np.fill_diagonal(square, np.inf)
    return float(np.median(square.min(axis=1)))


def _heights(distance: FloatArray, found: Circular, n_open: int) -> FloatArray:
    """(k, n_open) coordinates of the cover along open axes: where its angles leave most of an isometric embedding."""
    if not n_open:
        return np.empty((len(found.kept), 0))
    among = distance[np.ix_(found.kept, found.kept)]
    paths = shortest_path(csr_matrix(np.where(among <= found.scale, among, 0.0)), directed=False)
    square = np.square(paths)
    centered = -0.5 * (square - square.mean(axis=0) - square.mean(axis=1)[:, None] + square.mean())
    size, vectors = np.linalg.eigh(centered)
    n_axes = min(n_open + 2 * (_HARMONICS - 1) * found.angles.shape[1], len(size))
    embedding = vectors[:, -n_axes:] * np.sqrt(np.maximum(size[-n_axes:], 0.0))
    waves = np.concatenate([h * found.angles for h in range(1, _HARMONICS + 1)], axis=1)
    design = np.concatenate([np.ones((len(waves), 1)), np.cos(waves), np.sin(waves)], axis=1)
    left = embedding - design @ np.linalg.lstsq(design, embedding, rcond=None)[0]
    # What is left points along the open axes; along those all of the embedding counts, chance correlations included.
    directions = np.linalg.svd(left, full_matrices=False)[2][:n_open]
    return np.asarray(embedding @ directions.T)


def _spread(
    latent: Lattice, angles: FloatArray, heights: FloatArray, shares: FloatArray, weight: FloatArray
) -> FloatArray:
    """(n, Q) latent coordinates of the rows: mean directions of angles, and evenly spread ranks of heights."""
    directions, heights = shares @ np.exp(1j * angles), shares @ heights
    closed, opened = iter(np.angle(directions).T), iter(heights.T)
    columns = [next(closed) if periodic else _ranks(next(opened), weight) for periodic in latent.periodic]
    return latent.domain.retract(np.stack(columns, axis=1))


def _ranks(height: FloatArray, weight: FloatArray) -> FloatArray:
    """(n,) −1 … 1, as much weight between any two places as their distance."""
    order = np.argsort(height, kind="stable")
    total = np.cumsum(weight[order])
    out = np.empty(len(height))
    out[order] = (2.0 * total - weight[order]) / total[-1] - 1.0
    return out
