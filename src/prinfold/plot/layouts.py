"""Layouts of latent coordinates on paper: a plane, a strip, a ring or a box in space."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from prinfold._typing import FloatArray
from prinfold.exceptions import InvalidParameterError
from prinfold.geometry.domain import Box
from prinfold.geometry.intervals import Intervals
from prinfold.geometry.region import Region
from prinfold.latent import LatentSpace

_INNER_RADIUS = 0.6
"""Inner radius of a ring whose outer radius is 1."""


class PaperCells(NamedTuple):
    """A lattice of cells on paper: corners ``x``, ``y`` (r + 1, c + 1), and ``Z`` (r·c, Q) at the middles."""

    x: FloatArray
    y: FloatArray
    Z: FloatArray

    @property
    def shape(self) -> tuple[int, int]:
        return self.x.shape[0] - 1, self.x.shape[1] - 1


class LatentLayout(ABC):
    """Layout of one kind of latent space."""

    labels: tuple[str, ...]
    depth: int = 2
    """Axes of the paper: 2, or 3 for a box in space."""

    @abstractmethod
    def place(self, Z: FloatArray, lane: FloatArray) -> FloatArray:
        """(n, depth) places of coordinates; ``lane`` in [0, 1] spreads the rows where there is width to spare."""

    @abstractmethod
    def cells(self, resolution: int) -> PaperCells | None:
        """Cells that cover the space, or None where it has no area to fill."""


@dataclass(frozen=True)
class Plane(LatentLayout):
    """Two axes of a chart; ``invert`` turns places back into coordinates, where that can be done."""

    low: tuple[float, float]
    high: tuple[float, float]
    periodic: tuple[bool, bool]
    labels: tuple[str, ...]
    chart: Callable[[FloatArray], FloatArray]
    invert: Callable[[FloatArray], FloatArray] | None

    @property
    def span(self) -> tuple[float, float]:
        return self.high[0] - self.low[0], self.high[1] - self.low[1]

    def place(self, Z: FloatArray, lane: FloatArray) -> FloatArray:
        return self.chart(Z)[:, :2]

    def cells(self, resolution: int) -> PaperCells | None:
        if self.invert is None:
            return None
        counts = _counts(self.span, resolution)
        edges = [np.linspace(a, b, n + 1) for a, b, n in zip(self.low, self.high, counts, strict=True)]
        middle = np.meshgrid(*((e[:-1] + e[1:]) / 2 for e in edges))
        x, y = np.meshgrid(*edges)
        return PaperCells(x, y, self.invert(np.stack([m.ravel() for m in middle], axis=1)))

    def difference(self, to: FloatArray, start: FloatArray) -> FloatArray:
        """Steps on paper from ``start`` to ``to``, the short way round."""
        step, span = to - start, np.asarray(self.span)
        return np.asarray(np.where(self.periodic, step - span * np.round(step / span), step))


@dataclass(frozen=True)
class Strip(LatentLayout):
    """One open axis; lanes run side by side above it."""

    low: float
    high: float
    labels: tuple[str, ...]

    def place(self, Z: FloatArray, lane: FloatArray) -> FloatArray:
        return np.stack([Z[:, 0], lane], axis=1)

    def cells(self, resolution: int) -> PaperCells:
        edges = np.linspace(self.low, self.high, 3 * resolution + 1)
        x, y = np.meshgrid(edges, [0.0, 1.0])
        return PaperCells(x, y, ((edges[:-1] + edges[1:]) / 2)[:, None])


@dataclass(frozen=True)
class Ring(LatentLayout):
    """One closed axis drawn as a ring; lanes run round it from the inside out."""

    labels: tuple[str, ...]

    def place(self, Z: FloatArray, lane: FloatArray) -> FloatArray:
        radius = _INNER_RADIUS + (1.0 - _INNER_RADIUS) * lane
        return np.stack([radius * np.cos(Z[:, 0]), radius * np.sin(Z[:, 0])], axis=1)

    def cells(self, resolution: int) -> PaperCells:
        edges = np.linspace(-np.pi, np.pi, 3 * resolution + 1)
        angle, radius = np.meshgrid(edges, [_INNER_RADIUS, 1.0])
        return PaperCells(radius * np.cos(angle), radius * np.sin(angle), ((edges[:-1] + edges[1:]) / 2)[:, None])


@dataclass(frozen=True)
class SpaceLayout(LatentLayout):
    """The first three axes of a space with three or more."""

    labels: tuple[str, ...]
    depth: int = 3

    def place(self, Z: FloatArray, lane: FloatArray) -> FloatArray:
        return Z[:, :3]

    def cells(self, resolution: int) -> None:
        return None


def layout_of(latent: LatentSpace, *, flat: bool = False) -> LatentLayout:
    """The layout that suits a latent space; ``flat`` keeps to the first two axes of three or more."""
    domain, labels = latent.domain, latent.chart_labels
    if latent.charts:
        raise InvalidParameterError(
            "a mixture has several maps; draw them all with plot.mixture, or one of them, model.component(j)"
        )
    if isinstance(domain, Intervals):
        return Strip(*_widen(float(domain.low[0]), float(domain.high[-1])), labels)
    if not isinstance(domain, Box | Region):  # the sphere, on Lambert's cylinder
        return Plane((-np.pi, -1.0), (np.pi, 1.0), (True, False), labels, latent.chart, _from_lambert)
    if latent.n_columns == 1:
        return Ring(labels) if domain.periodic[0] else Strip(*_widen(domain.low[0], domain.high[0]), labels)
    if latent.n_columns > 2 and not flat:
        return SpaceLayout(labels)
    (a, b), (c, d) = (_widen(domain.low[i], domain.high[i]) for i in range(2))
    invert = None if latent.n_columns > 2 else np.asarray
    return Plane((a, c), (b, d), (domain.periodic[0], domain.periodic[1]), labels[:2], latent.chart, invert)


def local_frame(latent: LatentSpace, Z: FloatArray) -> FloatArray:
    """(n, 2, Q) what turns latent directions at Z into directions on paper.

    On a plane these are the axes; on the sphere east and north, so that a glyph keeps its true shape
    where the chart itself would stretch it towards the poles.
    """
    if isinstance(latent.domain, Box | Region):
        return np.broadcast_to(np.eye(latent.n_columns)[:2], (len(Z), 2, latent.n_columns))
    longitude = np.arctan2(Z[:, 1], Z[:, 0])
    east = np.stack([-np.sin(longitude), np.cos(longitude), np.zeros(len(Z))], axis=1)
    return np.stack([east, np.cross(Z, east)], axis=1)


def _from_lambert(place: FloatArray) -> FloatArray:
    longitude, height = place.T
    radius = np.sqrt(np.maximum(1.0 - height**2, 0.0))
    return np.stack([radius * np.cos(longitude), radius * np.sin(longitude), height], axis=1)


def _widen(low: float, high: float) -> tuple[float, float]:
    """An interval of no length gets some, or nothing could be drawn on it."""
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _counts(span: tuple[float, float], resolution: int) -> tuple[int, int]:
    """Cells along each axis, near enough square, about resolution² in all."""
    ratio = float(np.clip(np.sqrt(span[0] / span[1]), 0.25, 4.0))
    return max(round(resolution * ratio), 1), max(round(resolution / ratio), 1)
