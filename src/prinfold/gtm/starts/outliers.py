"""Robust location and scatter of rows with outliers, so that these do not decide on the start of a fit.

One row far enough away moves a mean anywhere and turns a principal axis towards itself. The spatial median, the place
whose distances to all rows have the least sum, stays among the rest as long as more than half of them do; and rows
farther from it than twice the median distance count for so much less that none adds more to a scatter than one there.
Both turn with the data.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from prinfold._typing import FloatArray
from prinfold.base.starting_points import column_variances
from prinfold.gtm.model import GTMModel
from prinfold.gtm.noise.protocol import Parameters
from prinfold.gtm.noise.recipes import ColumnSpread
from prinfold.gtm.posterior import row_scales
from prinfold.gtm.recipe import Recipe
from prinfold.gtm.starts.first_parameters import Start
from prinfold.rows.rows import Rows, Selection, sum_blocks

_MOST_PASSES = 60
_LEAST_MOVE = 1e-7
"""Most passes for a median, and the move, in units of the distance of the rows, below which they end."""

_DOWNWEIGHT_BEYOND = 2.0
_DROP_BEYOND = 5.0
"""Median distances from which rows count for less, and from which they do not count: an embedding by neighbours takes
rows as they come, and a few of those are enough to join what lies apart."""

_COINCIDENT_SHARE = 1e-12
"""Share of the typical distance below which a row lies on the median itself."""


def spatial_median(rows: Rows) -> FloatArray:
    """(D,) the spatial median of rows, in the units of the table, by weights 1/distance (Weiszfeld, 1937)."""
    unit = 1.0 if rows.scale is None else rows.scale
    for _ in range(_MOST_PASSES):
        distance = distances(rows)
        weight = _weights(rows)
        typical = float(weight @ distance) / max(float(weight.sum()), np.finfo(float).tiny)
        if typical == 0:
            return rows.offset
        closeness = weight / np.maximum(distance, _COINCIDENT_SHARE * typical)
        moved = _mean(rows, closeness)
        rows = replace(rows, offset=rows.offset + unit * moved)
        if np.linalg.norm(moved) <= _LEAST_MOVE * float(closeness @ distance) / float(closeness.sum()):
            break
    return rows.offset


def distances(rows: Rows) -> FloatArray:
    """(n,) distance of each row from the offset; missing cells count as the mean of those measured."""
    out = np.empty(rows.n_rows)
    for part in rows.slices:
        block = rows.block(part).astype(np.float64, copy=False)
        seen = ~np.isnan(block)
        square = np.square(np.where(seen, block, 0.0)).sum(axis=1)
        out[part] = np.sqrt(square * rows.n_columns / np.maximum(seen.sum(axis=1), 1))
    return out


def downweight_outliers(rows: Rows) -> Rows:
    """The rows with weights such that none adds more to a scatter about the offset than one at two median distances.

    Rows beyond five median distances have no weight. The two limits are ours.
    """
    distance, weight = distances(rows), _weights(rows)
    order = np.argsort(distance, kind="stable")
    total = np.cumsum(weight[order])
    middle = float(distance[order][np.searchsorted(total, 0.5 * total[-1])])
    if middle == 0:  # more than half of the rows are the same
        return rows
    far = np.maximum(distance / (_DOWNWEIGHT_BEYOND * middle), 1.0)
    return replace(rows, weight=np.where(distance > _DROP_BEYOND * middle, 0.0, weight / np.square(far)))


def robust_start(start: Start) -> Start:
    """The start with rows that lie far from all others held back."""
    return lambda model, rows, rng: start(model, downweight_outliers(rows), rng)


def robust(recipe: Recipe, *, own_units: bool) -> Recipe:
    """The recipe where outliers decide neither on the origin, nor on how far data spread, nor on the start.

    With ``own_units`` distances are in units of the columns.
    """

    def distances_of(rows: Rows) -> Rows:
        if not own_units:
            return rows
        unit = np.sqrt(column_variances(rows))
        return replace(rows, scale=np.where(unit > 0, unit, 1.0))

    def about_median(rows: Rows) -> Rows:
        return replace(rows, offset=spatial_median(distances_of(rows)), variances=None)

    def spread(rows: Rows) -> ColumnSpread:
        return recipe.spread(replace(rows, weight=downweight_outliers(distances_of(rows)).weight))

    return replace(
        recipe,
        spread=spread,
        row_steps=(*recipe.row_steps, about_median),
        start_steps=(*recipe.start_steps, robust_start),
        row_weights=outlier_row_weights,
    )


def outlier_row_weights(model: GTMModel, rows: Rows, parameters: Parameters) -> FloatArray:
    """(n,) how much each row counted in the end: its weight, and little of an outlier."""
    scale = np.minimum(row_scales(model, rows, parameters), 1.0)
    return np.asarray(scale if rows.weight is None else scale * rows.weight)


def _weights(rows: Rows) -> FloatArray:
    return np.ones(rows.n_rows) if rows.weight is None else rows.weight


def _mean(rows: Rows, weight: FloatArray) -> FloatArray:
    """(D,) mean of the measured cells of each column about the offset, in units of the blocks."""

    def total(part: Selection) -> FloatArray:
        block = rows.block(part).astype(np.float64, copy=False)
        seen = ~np.isnan(block)
        return np.stack([weight[part] @ np.where(seen, block, 0.0), weight[part] @ seen])

    sums, counts = sum_blocks(total, rows.slices)
    return np.asarray(sums / np.where(counts > 0, counts, 1.0))
