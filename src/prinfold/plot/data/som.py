"""Data of pictures of a self-organising map's nodes, as plain arrays: cells with distances in them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import InvalidParameterError
from prinfold.latent import LatentSpace
from prinfold.latent.drawing import NodeGrid
from prinfold.plot.inputs import FittedSurface, RowClasses

_ROW_HEIGHT = np.sqrt(0.75)

_SQUARE = 0.25 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
_TURNS = np.pi * (1 + 2 * np.arange(6)) / 6
_HEXAGON = 0.5 / np.sqrt(3) * np.stack([np.cos(_TURNS), np.sin(_TURNS)], axis=1)


class NodeCells(NamedTuple):
    """Cells of half a node spacing: ``corners`` (c, 4 or 6, 2), ``value`` (c,), and the places (K, 2) of the nodes."""

    corners: FloatArray
    value: FloatArray
    nodes: FloatArray


def u_matrix_cells(fitted: FittedSurface) -> NodeCells:
    """A cell on every node, with its mean distance to its neighbours, and one between any two neighbours, with theirs.

    On rectangular grids there is one between any four nodes as well, with the mean of the two diagonals over √2. What
    lies beyond the last node of a closed axis joins it to the first.
    """
    latent = fitted.latent
    grid = None if latent.drawing is None else latent.drawing.grid
    if grid is None or len(grid.shape) > 2 or not hasattr(fitted.model, "u_matrix"):
        raise InvalidParameterError(
            "plot.u_matrix shows the nodes of a self-organising map on a grid of one or two axes, got "
            f"{type(fitted.model).__name__} on {type(latent).__name__}; plot.magnification shows any surface"
        )
    found = fitted.model.u_matrix()
    place = _places(grid)
    start, step = _steps(grid, place, found.edges)
    centers, value = [place, start + 0.5 * step], [found.nodes, found.lengths]
    if not grid.hexagonal and len(grid.shape) == 2:
        middle, across = _diagonals(grid, fitted.model.codebook_)
        centers.append(middle)
        value.append(across)
    cell = _HEXAGON if grid.hexagonal else _SQUARE
    return NodeCells(np.concatenate(centers)[:, None] + cell, np.concatenate(value), place)


def _places(grid: NodeGrid) -> FloatArray:
    """(K, 2) nodes on paper, one apart."""
    shape = (*grid.shape, 1)[:2]
    i, j = (each.ravel() for each in np.meshgrid(*map(np.arange, shape), indexing="ij"))
    return np.stack([i + 0.5 * (j % 2), _ROW_HEIGHT * j] if grid.hexagonal else [i, j], axis=1).astype(float)


def _steps(grid: NodeGrid, place: FloatArray, edges: IntArray) -> tuple[FloatArray, FloatArray]:
    """Start of each edge on paper and its direction; over a seam it goes beyond the last node."""
    step = place[edges[:, 1]] - place[edges[:, 0]]
    unit = np.array([1.0, _ROW_HEIGHT if grid.hexagonal else 1.0])
    for axis, (n, closed) in enumerate(zip(grid.shape, grid.periodic, strict=True)):
        over = np.flatnonzero(closed & (np.abs(step[:, axis]) > 1.5 * unit[axis]))
        step[over, axis] -= np.sign(step[over, axis]) * n * unit[axis]
    backward = np.asarray((step < -1e-9).any(axis=1) & ~(step > 1e-9).any(axis=1))
    start = np.where(backward[:, None], place[edges[:, 1]], place[edges[:, 0]])
    return start, np.where(backward[:, None], -step, step)


def _diagonals(grid: NodeGrid, codebook: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Middles of the squares of four nodes, and the mean of their two diagonals over √2."""
    index = np.arange(np.prod(grid.shape)).reshape(grid.shape)
    corner = np.ix_(*(range(n if closed else n - 1) for n, closed in zip(grid.shape, grid.periodic, strict=True)))
    a, b, c, d = (np.roll(index, shift, axis=(0, 1))[corner].ravel() for shift in ((0, 0), (-1, 0), (0, -1), (-1, -1)))
    length = sum(np.linalg.norm(codebook[p] - codebook[q], axis=1) for p, q in ((a, d), (b, c)))
    return _places(grid)[a] + 0.5, np.asarray(length / (2 * np.sqrt(2)))


def majorities(winner: IntArray, groups: RowClasses, n_nodes: int) -> IntArray:
    """(K,) the class that most rows of each node have, −1 where there are none; the first of several."""
    counts = np.zeros((n_nodes, len(groups.names)), dtype=int)
    known = groups.index >= 0
    np.add.at(counts, (winner[known], groups.index[known]), 1)
    return np.where(counts.any(axis=1), counts.argmax(axis=1), -1)


def row_counts(winner: IntArray, latent: LatentSpace) -> IntArray:
    """(K,) how many rows each node wins."""
    return np.bincount(winner, minlength=latent.n_nodes)


def winners_of(fitted: FittedSurface, X: Any) -> IntArray:
    """(n,) the node that wins each row."""
    return np.asarray(fitted.model.winners(fitted.rows(X)))
