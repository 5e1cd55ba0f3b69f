"""Rows without repeats, with their weights: leaving one out then leaves out all its copies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import InvalidDataError
from prinfold.validation.tables import as_numbers, check_table, check_weight


class Unique(NamedTuple):
    """Rows (u, D) that all differ, sorted, with their weights (u,).

    ``unique_index`` (n,) is the place of each row of the table among them, −1 for rows without weight, and ``own`` (n,)
    the weight of each.
    """

    rows: FloatArray
    weight: FloatArray
    unique_index: IntArray
    own: FloatArray

    def positions(self, chosen: IntArray) -> IntArray:
        """(n,) position among the ``chosen`` of these that each row of the table has; −1 for rows that have none."""
        place = np.full(len(self.rows) + 1, -1)
        place[chosen] = np.arange(len(chosen))
        return np.asarray(place[self.unique_index])


def unique_rows(table: FloatArray, weight: FloatArray | None) -> Unique:
    """Distinct rows with the weights of all their copies, so that leaving one out leaves out its copies."""
    weight = np.ones(len(table)) if weight is None else np.asarray(weight, dtype=np.float64)
    kept = np.flatnonzero(weight > 0)
    rows, place = np.unique(table[kept], axis=0, return_inverse=True)
    index = np.full(len(table), -1)
    index[kept] = place.reshape(-1)
    total: FloatArray = np.bincount(index[kept], weights=weight[kept]).astype(np.float64)
    return Unique(rows, total, index, weight)


class Centered(NamedTuple):
    """A checked table, its rows without repeats, their mean ``offset`` (D,), and ``rows`` (u, D) about it."""

    table: FloatArray
    unique: Unique
    offset: FloatArray
    rows: FloatArray


def centered_rows(estimator: Any, X: Any, sample_weight: Any) -> Centered:
    """Checked rows without repeats and about their mean, for methods that project their rows."""
    table = check_table(estimator, X, reset=True, min_rows=2)
    unique = unique_rows(table.astype(np.float64, copy=False), check_weight(sample_weight, table))
    offset = np.average(unique.rows, axis=0, weights=unique.weight)
    return Centered(table, unique, offset, unique.rows - offset)


def keep_every_row(table: FloatArray, weight: FloatArray | None) -> Unique:
    """Rows with repeats kept, for a kernel matrix, whose columns belong to its rows."""
    weight = np.ones(len(table)) if weight is None else np.asarray(weight, dtype=np.float64)
    if not (weight > 0).all():
        n = int((weight <= 0).sum())
        raise InvalidDataError(f"{n} row(s) of a precomputed kernel have no weight. Leave out their rows and columns")
    return Unique(table, weight, np.arange(len(table)), weight)


def weighted_places(given: Any, rows: Unique, n_components: int) -> FloatArray:
    """(u, Q) latent coordinates of unique rows, the means of those ``given`` for each row of the table."""
    places = as_numbers("init", given)
    n = len(rows.unique_index)
    if places.shape != (n, n_components) or not np.isfinite(places).all():
        raise InvalidDataError(
            f"init must hold finite latent coordinates of shape {(n, n_components)}, one row for each of the "
            f"data, got shape {places.shape}"
        )
    seen = rows.unique_index >= 0
    sums = [np.bincount(rows.unique_index[seen], weights=(rows.own * column)[seen]) for column in places.T]
    return np.asarray(np.stack(sums, axis=1) / rows.weight[:, None])


def draw_weights(weight: FloatArray, n_samples: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Weights of rows drawn with replacement: each times how often its row was drawn."""
    n = len(weight)
    for _ in range(n_samples):
        yield weight * rng.multinomial(n, np.full(n, 1.0 / n))
