"""Hexagonal lattices: every inner node has six neighbours, all at the same distance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import InvalidParameterError
from prinfold.latent.base import LatentSpace, unique_edges
from prinfold.latent.drawing import NodeGrid
from prinfold.latent.lattice import Lattice

_ROW_HEIGHT = np.sqrt(0.75)
"""Height of a row of nodes that are 1 apart: that of an equilateral triangle."""


@dataclass(frozen=True)
class Hexagons(Lattice):
    """A lattice of ``shape`` nodes in which every other row along the second axis is moved by half a step.

    Each axis spans what a rectangular lattice's would, so that hexagons are regular in node spacings (``node_units``)
    rather than in latent coordinates.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.shape) != 2:
            raise InvalidParameterError(
                f"a hexagonal lattice has two axes, got shape {self.shape}; use a rectangular one"
            )
        if self.periodic[1] and self.shape[1] % 2:
            raise InvalidParameterError(
                f"a hexagonal lattice that closes along its second axis needs an even number of nodes there, or rows "
                f"would not fit together; got {self.shape[1]}, take {self.shape[1] + 1}"
            )

    @cached_property
    def nodes(self) -> FloatArray:
        place, extent = self._places, self._extents
        low = np.where(self.periodic, -np.pi, np.where(extent > 0, -1.0, 0.0))
        high = np.where(self.periodic, np.pi, np.where(extent > 0, 1.0, 0.0))
        return np.asarray(low + (high - low) * place / np.where(extent > 0, extent, 1.0))

    @property
    def axes(self) -> tuple[LatentSpace, ...]:
        return ()  # where a node lies along its row depends on the row

    def doubled(self, axes: Sequence[int], most: int) -> Hexagons:
        return self

    @property
    def node_units(self) -> FloatArray:
        columns: list[float] = []
        for extent, closed in zip(self._extents, self.periodic, strict=True):
            columns += [extent / (2 * np.pi)] * 2 if closed else [extent / 2 if extent > 0 else 1.0]
        return np.array(columns)

    @property
    def spacing(self) -> float:
        return float(self._edge_lengths.min()) if len(self.edges) else 2.0

    @cached_property
    def edges(self) -> IntArray:
        i, j = self._grid
        odd = j % 2
        ends = (i + 1, j), (i + odd - 1, j + 1), (i + odd, j + 1)  # the other three see the node as one of these
        return unique_edges(np.concatenate([self._existing_nodes((i, j), end) for end in ends]))

    @cached_property
    def faces(self) -> IntArray:
        """Two triangles over and under each step along a row."""
        i, j = self._grid
        odd = j % 2
        over = self._existing_nodes((i, j), (i + 1, j), (i + odd, j + 1))
        under = self._existing_nodes((i, j + 1), (i + 1, j + 1), (i + 1 - odd, j))
        faces = np.concatenate([over, under])
        distinct = (np.diff(np.sort(faces, axis=1), axis=1) > 0).all(axis=1)
        return np.asarray(faces[distinct])

    def refined(self, resolution: int) -> Lattice:
        return Lattice((resolution,) * 2, self.periodic)  # the same domain, cut more finely

    def thinned(self) -> Hexagons:
        across, rows = ((n + 1) // 2 for n in self.shape)
        return Hexagons((across, rows + (rows % 2 if self.periodic[1] else 0)), self.periodic)

    @property
    def node_grid(self) -> NodeGrid:
        return super().node_grid._replace(hexagonal=True)

    @property
    def _grid(self) -> tuple[IntArray, IntArray]:
        """(K,) which node of its row each is, and which row that is."""
        i, j = np.meshgrid(*map(np.arange, self.shape), indexing="ij")
        return i.ravel(), j.ravel()

    @property
    def _places(self) -> FloatArray:
        """(K, 2) nodes in node spacings."""
        i, j = self._grid
        return np.stack([i + 0.5 * (j % 2), _ROW_HEIGHT * j], axis=1)

    @property
    def _extents(self) -> FloatArray:
        """(2,) length of each axis in node spacings: round it where it is closed, else from end to end."""
        across, rows = self.shape
        open_ = np.array([across - 1 + (0.5 if rows > 1 else 0.0), _ROW_HEIGHT * (rows - 1)])
        return np.where(self.periodic, [across, _ROW_HEIGHT * rows], open_)

    def _existing_nodes(self, *corners: tuple[IntArray, IntArray]) -> IntArray:
        """(m, corners) numbers of those that exist, round closed axes where there are any."""
        numbers, there = [], np.full(self.n_nodes, True)
        for place in corners:
            parts = []
            for at, n, closed in zip(place, self.shape, self.periodic, strict=True):
                parts.append(at % n if closed else np.clip(at, 0, n - 1))
                there &= np.True_ if closed else (at >= 0) & (at < n)
            numbers.append(parts[0] * self.shape[1] + parts[1])
        return np.asarray(np.stack(numbers, axis=1)[there])


def hexagons(*shape: int) -> Hexagons:
    """A hexagonal lattice on [−1, 1]².

    Parameters
    ----------
    *shape : int
        Nodes in each row, and rows.

    Returns
    -------
    Hexagons
    """
    return Hexagons(tuple(shape), (False,) * len(shape))
