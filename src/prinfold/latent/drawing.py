"""Layouts in which latent spaces are drawn: a plane, a strip, a ring or a box."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from prinfold._typing import FloatArray
from prinfold.geometry.domain import Box
from prinfold.geometry.intervals import Intervals
from prinfold.numerics.radial_kernels import Gaussian, Power

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


class CurveAxis(NamedTuple):
    """The axis of a latent space of one dimension, from ``low`` to ``high``; ``closed`` where these are one place."""

    low: float
    high: float
    closed: bool


class LatentLayout(ABC):
    """Layout of one kind of latent space."""

    labels: tuple[str, ...]
    depth: int = 2
    """Axes of the paper: 2, or 3 for a box in space."""

    @property
    def plane(self) -> Plane | None:
        """The layout itself where it has two axes; else None."""
        return None

    @property
    def axis(self) -> CurveAxis | None:
        """The axis where there is one only; else None."""
        return None

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
    def plane(self) -> Plane:
        return self

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

    @property
    def axis(self) -> CurveAxis:
        return CurveAxis(self.low, self.high, closed=False)

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

    @property
    def axis(self) -> CurveAxis:
        return CurveAxis(-np.pi, np.pi, closed=True)

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


# -------------------------------------------------------------------------------------------- what a space says of it


class NodeGrid(NamedTuple):
    """Nodes in rows and columns: how many along each axis, which axes close, and whether every other row is shifted."""

    shape: tuple[int, ...]
    periodic: tuple[bool, ...]
    hexagonal: bool = False


class KernelContour(NamedTuple):
    """Kernels at ``centers`` (m, Q) whose weighted mean, the latent density, is ``threshold`` on the contour."""

    centers: FloatArray
    weight: FloatArray
    profile: Gaussian | Power
    threshold: float
    bandwidth: float


class Drawing(Protocol):
    """The drawing of a latent space, and its parts where pictures, reports and pages show them."""

    def layout(self, flat: bool) -> LatentLayout:
        """The layout on paper; ``flat`` keeps to the first two axes of three or more."""

    def directions(self, Z: FloatArray) -> FloatArray:
        """(n, 2, Q) matrices from latent directions at Z to directions on paper; small marks keep their shape."""

    def spread(self, most: int) -> FloatArray:
        """(k, Q) places spread evenly over the space, about as many as nodes but at most ``most`` along an axis."""

    @property
    def n_lines(self) -> tuple[int, ...]:
        """Lines to draw across each axis of the paper."""

    @property
    def box(self) -> Box | None:
        """The box that the space fills, edge to edge; None where it has another shape."""

    @property
    def contour(self) -> KernelContour | None:
        """The density whose contour bounds the space; None where something else does."""

    @property
    def pieces(self) -> Intervals | None:
        """The intervals of curves that are laid end to end; None where there are none."""

    @property
    def grid(self) -> NodeGrid | None:
        """Rows and columns of the nodes; None where they have none."""


class BoxLike(Protocol):
    """Corners of a box about a domain, and which of its axes are closed."""

    @property
    def low(self) -> tuple[float, ...]:
        """(Q,) the lower corner."""

    @property
    def high(self) -> tuple[float, ...]:
        """(Q,) the upper corner."""

    @property
    def periodic(self) -> tuple[bool, ...]:
        """(Q,) whether each axis is closed."""


@dataclass(frozen=True, eq=False)
class FlatDrawing:
    """A space whose coordinates are places on paper as they are: a strip, a ring, a plane or a box in space."""

    domain: BoxLike
    labels: tuple[str, ...]
    places: Callable[[int], FloatArray]
    n_lines: tuple[int, ...]
    box: Box | None = None
    contour: KernelContour | None = None
    grid: NodeGrid | None = None
    pieces: Intervals | None = None

    def layout(self, flat: bool) -> LatentLayout:
        domain, n_columns = self.domain, len(self.domain.low)
        if n_columns == 1:
            closed = domain.periodic[0]
            return Ring(self.labels) if closed else Strip(*widen(domain.low[0], domain.high[0]), self.labels)
        if n_columns > 2 and not flat:
            return SpaceLayout(self.labels)
        (a, b), (c, d) = (widen(domain.low[i], domain.high[i]) for i in range(2))
        invert = None if n_columns > 2 else np.asarray
        return Plane((a, c), (b, d), (domain.periodic[0], domain.periodic[1]), self.labels[:2], np.asarray, invert)

    def directions(self, Z: FloatArray) -> FloatArray:
        return np.broadcast_to(np.eye(Z.shape[1])[:2], (len(Z), 2, Z.shape[1]))

    def spread(self, most: int) -> FloatArray:
        return self.places(most)


def cell_middles(low: Sequence[float], high: Sequence[float], counts: Sequence[int]) -> FloatArray:
    """(Π counts, Q) middles of equal cells of a box."""
    axes = [a + (b - a) * (np.arange(n) + 0.5) / n for a, b, n in zip(low, high, counts, strict=True)]
    return np.stack([each.ravel() for each in np.meshgrid(*axes, indexing="ij")], axis=1)


def widen(low: float, high: float) -> tuple[float, float]:
    """The interval, widened where it has no length, so that something can be drawn on it."""
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _counts(span: tuple[float, float], resolution: int) -> tuple[int, int]:
    """Cells along each axis, near enough square, about resolution² in all."""
    ratio = float(np.clip(np.sqrt(span[0] / span[1]), 0.25, 4.0))
    return max(round(resolution * ratio), 1), max(round(resolution / ratio), 1)
