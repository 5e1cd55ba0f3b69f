"""Measurements of a report, computed once: coordinates, distances from the surface, how well each column is kept."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import BoolArray, FloatArray
from prinfold.base.surface_geometry import over_all_columns
from prinfold.exceptions import PrinfoldError, UnsupportedInputError
from prinfold.metrics import continuity, trustworthiness
from prinfold.plot.inputs import FittedSurface, numbers_of
from prinfold.select.samples import frame_of, take

_MOST_RANKED = 1500
"""Rows among which neighbourhoods are compared; all pairs are looked at."""

_NEIGHBORS = 10


class ColumnKept(NamedTuple):
    """Share of the variance of a column that a surface explains, also in words; NaN where it does not vary."""

    name: str
    position: int
    share: float
    levels: bool = False
    words: str = ""


@dataclass(frozen=True)
class Study:
    """A fitted model and rows, with what the one says of the others.

    ``table`` (n, D) are the rows in the user's units, None where columns are no numbers; ``Z`` (n, Q) their
    coordinates. ``complete`` (n,) tells the rows that have every cell. ``distance`` (n,) is that to the surface in the
    units that the model sees, NaN for the other rows; ``feet`` (n, D) the nearest points in the user's units.
    ``variance`` is the mean squared distance from the mean in the units of the model, ``flat`` what a flat surface of
    the same dimension leaves of it. Where columns are levels or counts, ``cells`` (n, D') are the rows in the terms of
    a point of the surface, a share for each level, and ``there`` (n, D') the surface at their coordinates. Of maps
    whose nodes win rows, ``map_errors`` are the quantisation and the topographic error. What cannot be had is None, and
    ``heard`` says what was warned of on the way.
    """

    fitted: FittedSurface
    n: int
    table: FloatArray | None
    Z: FloatArray
    complete: BoolArray
    distance: FloatArray | None = None
    feet: FloatArray | None = None
    variance: float | None = None
    flat: float | None = None
    likelihood: FloatArray | None = None
    neighborhoods: tuple[float, float] | None = None
    cells: FloatArray | None = None
    there: FloatArray | None = None
    map_errors: tuple[float, float] | None = None
    heard: tuple[str, ...] = field(default=())

    @property
    def error(self) -> float | None:
        """Mean squared distance from the surface, of all rows that have one."""
        return None if self.distance is None else float(np.nanmean(self.distance**2))

    @property
    def explained(self) -> float | None:
        """Share of the variance that the surface explains."""
        if self.error is None or not self.variance:
            return None
        return 1.0 - self.error / self.variance

    @property
    def flat_word(self) -> str:
        """The flat of the same dimension, in words."""
        return {1: "a straight line", 2: "a plane"}.get(self.fitted.latent.dimension, "a flat surface")

    @property
    def rows_and_surface(self) -> tuple[FloatArray, FloatArray, list[str]] | None:
        """Rows, the surface where they belong, and the names of what is told of both; None where there is no such."""
        if self.cells is not None and self.there is not None:
            return self.cells, self.there, [str(each) for each in self.fitted.model.value_names()]
        if self.table is None or self.feet is None:
            return None
        return self.table, self.feet, list(self.fitted.feature_names)

    @property
    def kept(self) -> list[ColumnKept]:
        """Share of each column that the surface explains."""
        if self.cells is not None and self.there is not None:
            return _kept_of_kinds(self.fitted.model._column_kinds, self.cells, self.there)
        left = self.left
        if left is None:
            return []
        return [ColumnKept(name, j, 1.0 - left[j]) for j, name in enumerate(self.fitted.feature_names)]

    @property
    def left(self) -> FloatArray | None:
        """(D,) share of the variance of each column that the surface leaves; NaN for constant columns."""
        if self.feet is None or self.table is None:
            return None
        rows, feet = self.table[self.complete], self.feet[self.complete]
        spread = np.sum((rows - rows.mean(axis=0)) ** 2, axis=0)
        spread[spread <= 1e-24 * np.sum(rows**2, axis=0)] = np.nan
        return np.asarray(np.sum((rows - feet) ** 2, axis=0) / spread)


def study(model: Any, X: Any) -> Study:
    """Everything that a report says of rows, as numbers."""
    fitted = FittedSurface.of(model)
    if not hasattr(fitted.model, "latent_"):
        raise UnsupportedInputError(
            f"a report is of one surface, which {type(fitted.model).__name__} is not; report on a model it is made of, "
            "such as estimator_, gtm_ or surfaces_[0]"
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Z = fitted.coordinates(X)  # refuses what cannot be used at all
        rows, table = fitted.rows(X), _numbers(X)
        seen = _numbers(rows)
        complete: BoolArray = np.ones(len(Z), dtype=bool) if seen is None else np.asarray(np.isfinite(seen).all(axis=1))
        found = {
            **_distances(fitted, rows, seen, complete),
            "likelihood": fitted.log_likelihood(X),
            "neighborhoods": _neighborhoods(fitted, seen, Z, complete),
            **_of_kinds(fitted, rows, Z),
            "map_errors": _map_errors(fitted, rows),
        }
    said = [str(each.message) for each in caught if each.category.__module__.startswith("prinfold")]
    doubt = getattr(fitted.model, "doubt_", "")
    heard = tuple(dict.fromkeys([doubt, *said] if doubt else said))
    return Study(fitted, len(Z), table, Z, complete, heard=heard, **found)


def _numbers(X: Any) -> FloatArray | None:
    try:
        return numbers_of(X)
    except PrinfoldError:  # levels and dates are not numbers
        return None


def _of_kinds(fitted: FittedSurface, rows: Any, Z: FloatArray) -> dict[str, Any]:
    """Rows and the surface where they belong, in shares of levels, where columns are of different kinds."""
    if fitted.model._column_kinds is None:
        return {}
    there = fitted.model.inverse_transform(fitted.latent.domain.retract(Z))
    return {"cells": np.asarray(fitted.model.indicators(rows), dtype=float), "there": np.asarray(there, dtype=float)}


def _map_errors(fitted: FittedSurface, rows: Any) -> tuple[float, float] | None:
    """Quantisation and topographic error, of a model that has them."""
    model = fitted.model
    if not hasattr(model, "topographic_error"):
        return None
    return float(model.quantization_error(rows)), float(model.topographic_error(rows))


def _kept_of_kinds(columns: Any, cells: FloatArray, there: FloatArray) -> list[ColumnKept]:
    """Shares of numbers and counts, and of levels how often the likeliest is the right one."""
    found, parts = [], columns.layout
    for j, column in enumerate(columns):
        if not column.width:  # it scales others, and is not modelled itself
            continue
        part = parts.part(j)
        known = np.isfinite(cells[:, part]).all(axis=1)
        rows, surface = cells[known, part], there[known, part]
        spread = float(np.sum((rows - rows.mean(axis=0)) ** 2)) if known.any() else 0.0
        share = 1.0 - float(np.sum((rows - surface) ** 2)) / spread if spread > 0 else np.nan
        words = _level_accuracy(rows, surface) if column.levels and known.any() else ""
        found.append(ColumnKept(column.name, j, share, bool(column.levels), words))
    return found


def _level_accuracy(rows: FloatArray, surface: FloatArray) -> str:
    """Share of rows whose likeliest level is their own, and the share of the commonest level."""
    if rows.shape[1] == 1:  # two levels are told by the share of the second
        rows, surface = (np.hstack([1.0 - each, each]) for each in (rows, surface))
    hit = float(np.mean(rows.argmax(axis=1) == surface.argmax(axis=1)))
    return (
        f"level right in {100 * hit:.0f} % of the rows; the commonest is that of {100 * rows.mean(axis=0).max():.0f} %"
    )


def _distances(fitted: FittedSurface, rows: Any, seen: FloatArray | None, complete: BoolArray) -> dict[str, Any]:
    if seen is None or not complete.any():
        return {}
    dimension = fitted.latent.dimension
    whole = np.flatnonzero(complete if not fitted.model._accept_missing else ~np.isinf(seen).any(axis=1))
    try:
        given = seen[whole] if frame_of(rows) is None else take(rows, whole)  # frames keep their names
        nearest = np.asarray(fitted.model.project(given), dtype=float)
    except PrinfoldError:  # surfaces among levels, or in the feature space of a kernel
        return {}
    n, cells = len(complete), ~np.isnan(seen[whole])
    distance = np.full(n, np.nan)
    squared = np.nansum(np.square(seen[whole] - nearest), axis=1)
    distance[whole] = np.sqrt(over_all_columns(squared, cells, dimension))
    centered = seen[complete] - seen[complete].mean(axis=0)
    found = {"distance": distance, "variance": float(np.mean(np.sum(centered**2, axis=1)))}
    return found | {"flat": _flat(centered, dimension), "feet": _nearest_in_user_units(fitted, nearest, whole, n)}


def _nearest_in_user_units(fitted: FittedSurface, nearest: FloatArray, whole: Any, n: int) -> FloatArray | None:
    """Nearest points in the user's units, or None where a step before the model cannot be undone."""
    try:
        there = fitted.back(nearest)
    except PrinfoldError:
        return None
    feet = np.full((n, there.shape[1]), np.nan)
    feet[whole] = there
    return feet


def _flat(centered: FloatArray, dimension: int) -> float:
    """Mean squared distance from the best flat of the same dimension."""
    n, D = centered.shape
    gram = centered.T @ centered if n >= D else centered @ centered.T
    values = np.sort(np.linalg.eigvalsh(gram))[::-1]
    return float(np.maximum(values[dimension:], 0.0).sum() / n)


def _neighborhoods(
    fitted: FittedSurface, seen: FloatArray | None, Z: FloatArray, complete: BoolArray
) -> tuple[float, float] | None:
    """Trustworthiness and continuity over rows spread evenly through the table, or None where there are too few."""
    if seen is None or complete.sum() <= 2 * _NEIGHBORS + 1:
        return None
    whole = np.flatnonzero(complete)
    some = whole[np.unique(np.linspace(0, len(whole) - 1, min(len(whole), _MOST_RANKED)).astype(int))]
    latent = fitted.latent

    def latent_distance(A: FloatArray, B: FloatArray) -> FloatArray:
        pairs = latent.distance(np.repeat(A, len(B), axis=0), np.tile(B, (len(A), 1)))
        return pairs.reshape(len(A), len(B))

    trust, kept = (
        measure(seen[some], Z[some], _NEIGHBORS, latent_distance=latent_distance)
        for measure in (trustworthiness, continuity)
    )
    return trust, kept
