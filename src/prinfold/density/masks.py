"""Edge correction of a density by a mask: edges and holes of a survey must not look like ridges.

Near an edge kernels reach out to where nothing was observed, and the density falls off as if there were less to see.
Dividing by the density of points spread evenly over what was observed, with the same kernels, corrects that, as in
Diggle (1985), where an integral over the observed region takes the place of the points:

    log p(x) = log Σ_j w_j k(x − x_j) − log Σ_i v_i k(x − m_i) + constant.

What is left bends at an edge only where the rows themselves do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import Any, ClassVar

import numpy as np

from prinfold._typing import BoolArray, FloatArray
from prinfold.density.densities import STORED_DENSITY, Density
from prinfold.density.row_spaces import RowSpace
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.files import storable
from prinfold.files.kinds import Kinds, number
from prinfold.validation.tables import as_numbers

_STEP_BANDWIDTHS = 0.5
"""Bandwidths between even points over what was observed: their density is flat to one part in 10⁹."""

_MARGIN_BANDWIDTHS = 2.0
"""Bandwidths around the box of all rows that even points cover: a mask may go on there."""

_MOST_COLUMNS, _MOST_POINTS = 3, 4_000_000

_EDGE_SHARE = 0.4
"""Share of the usual density of even points below which a place counts as not observed: half of it is left at a
straight edge, a quarter in a corner."""


@storable
@dataclass(frozen=True, eq=False)
class Edge:
    """The edge of what was observed: where the log ``density`` of even points falls to ``level``."""

    _kinds: ClassVar[Kinds] = {"density": STORED_DENSITY, "level": number}

    density: Density
    level: float

    @classmethod
    def of(cls, density: Density, places: FloatArray) -> Edge:
        """The edge at 0.4 of the median density at ``places`` where rows were seen."""
        return cls(density, float(np.median(density.log_density(places))) + log(_EDGE_SHARE))

    def outside(self, X: FloatArray) -> BoolArray:
        """(n,) whether points lie outside of what was observed."""
        return np.asarray(self.density.log_density(X) < self.level)


def even_points(mask: Any, rows: FloatArray, bandwidth: Any, space: RowSpace) -> tuple[FloatArray, FloatArray]:
    """Points (m, D) spread evenly over what was observed, and their weights (m,).

    ``mask`` is such points itself, or a function that tells of rows (n, D) which could have been seen.
    """
    if callable(mask):
        return _observed_points(mask, rows, bandwidth, space)
    points = as_numbers("mask", mask)
    D = rows.shape[1]
    if points.ndim != 2 or points.shape[1] != D or len(points) == 0 or not np.isfinite(points).all():
        raise InvalidDataError(
            f"mask must be a function, or finite points of shape (m, {D}) spread evenly over what was observed; got "
            f"shape {points.shape}"
        )
    return points, np.ones(len(points))


def _widths(bandwidth: Any, n_columns: int) -> tuple[FloatArray, FloatArray]:
    """(D,) least widths of kernels that a lattice along columns has to resolve, and (D,) how far they reach there."""
    value = np.asarray(bandwidth, dtype=np.float64)
    if value.ndim == 2:
        least = np.sqrt(np.linalg.eigvalsh(value)[0])
        return np.full(n_columns, least), np.sqrt(np.diag(value))
    widths = np.broadcast_to(value, n_columns)
    return widths, widths


def _observed_points(
    mask: Callable[[FloatArray], Any], rows: FloatArray, bandwidth: Any, space: RowSpace
) -> tuple[FloatArray, FloatArray]:
    """Points of a lattice over the rows, those that a function says were observed, and their weights."""
    if rows.shape[1] > _MOST_COLUMNS:
        raise InvalidParameterError(
            f"a mask that is a function is for up to {_MOST_COLUMNS} columns, got {rows.shape[1]}; give points spread "
            "evenly over what was observed instead"
        )
    if space.round is None:
        points, weight = _box_lattice(rows, *_widths(bandwidth, rows.shape[1]))
    else:
        points, weight = _globe_lattice(rows, float(bandwidth), space.round.west)
    seen = np.asarray(mask(points))
    if seen.shape != (len(points),):
        raise InvalidParameterError(
            f"mask must return one value for each of {len(points)} rows, whether it could have been seen; "
            f"got shape {seen.shape}"
        )
    seen = seen.astype(bool)
    if not seen.any():
        raise InvalidParameterError("mask says that nothing near the rows was observed; is it the other way round?")
    return points[seen], weight[seen]


def _box_lattice(rows: FloatArray, least: FloatArray, reach: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A lattice as fine as kernels are narrow, which goes on past the rows as far as they are wide."""
    low, high = rows.min(axis=0) - _MARGIN_BANDWIDTHS * reach, rows.max(axis=0) + _MARGIN_BANDWIDTHS * reach
    counts = np.ceil((high - low) / (_STEP_BANDWIDTHS * least)) + 1.0
    _check_size(float(counts.prod()), float(least.min()))
    axes = [np.linspace(a, b, int(k)) for a, b, k in zip(low, high, counts, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, rows.shape[1])
    return points, np.ones(len(points))


def _globe_lattice(rows: FloatArray, width: float, west: float) -> tuple[FloatArray, FloatArray]:
    """Rings of latitude, each with as many points as its length asks for; the weights make up for what is left over.

    Along a meridian they are those of the midpoint rule. The length of rings has a kink at a pole, where that rule is
    too large by a twelfth of the last ring.
    """
    low = max(-90.0, float(rows[:, 1].min()) - _MARGIN_BANDWIDTHS * width)
    high = min(90.0, float(rows[:, 1].max()) + _MARGIN_BANDWIDTHS * width)
    _check_size(360.0 * (high - low) / (_STEP_BANDWIDTHS * width) ** 2, width)
    count = max(1, int(np.ceil((high - low) / (_STEP_BANDWIDTHS * width))))
    step = (high - low) / count
    rings = low + (np.arange(count) + 0.5) * step
    points, weights = list[FloatArray](), list[FloatArray]()
    for latitude in rings.tolist():
        length = 360.0 * np.cos(np.radians(latitude))
        n = max(1, int(np.ceil(length / (_STEP_BANDWIDTHS * width))))
        longitude = west + (np.arange(n) + 0.5) * 360.0 / n
        points.append(np.stack([longitude, np.full(n, latitude)], axis=1))
        last = abs(latitude) + 0.75 * step > 90.0
        weights.append(np.full(n, (11.0 / 12.0 if last else 1.0) * length / n))
    return np.concatenate(points), np.concatenate(weights)


def _check_size(n: float, width: float) -> None:
    if n > _MOST_POINTS:
        raise InvalidParameterError(
            f"a lattice half a bandwidth ({width:.3g}) wide over these rows would have {n:.3g} points, more than the "
            f"{_MOST_POINTS} allowed; use a larger bandwidth, or give points spread evenly over what was observed"
        )
