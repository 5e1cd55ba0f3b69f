"""Training in the span of the rows, where a table has many more columns than rows.

EM keeps a surface in the span of the rows, and with F (D, r) an orthonormal frame of it no distance and no angle
changes when rows x and weights W become xF and WF. Across the frame there are D − r directions more, in which neither
rows nor surface have anything and every node has the variance B: they count in |Σ| = S^Q B^(D−Q) and in the number of
values that (33) divides by, both of which keep D. The rest is found in r columns instead of D.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np

from prinfold._typing import FloatArray, RandomState
from prinfold.geometry.column_span import ColumnSpan
from prinfold.gtm.model import GTMModel
from prinfold.pps.model import PPSModel, PPSState
from prinfold.pps.oriented_model import OrientedParameters, in_frame
from prinfold.pps.oriented_sums import OrientedStatistics
from prinfold.rows.rows import Rows

_COLUMNS_PER_ROW = 2
"""Columns for each row from which on the span is worth while."""

_MOST_NUMBERS = 2**25
"""Numbers of the rows that are held as a frame of their span."""

_OUTSIDE = 1e-12
"""Share of a surface outside of the span that is put down to rounding."""


def is_wide(rows: Rows) -> bool:
    """Whether rows at hand, complete and known without error, have many more columns than there are of them."""
    if not rows.at_hand or rows.device is not None or rows.errors is not None or rows.gaps:
        return False
    return rows.n_columns >= _COLUMNS_PER_ROW * rows.n_rows and rows.n_rows * rows.n_columns <= _MOST_NUMBERS


@dataclass(frozen=True)
class SpanState:
    """The state of training in a frame (D, r), with parameters and statistics in all columns."""

    inside: PPSState
    frame: FloatArray

    @property
    def parameters(self) -> OrientedParameters:
        parameters = self.inside.parameters
        return replace(parameters, weights=parameters.weights @ self.frame.T)

    @property
    def statistics(self) -> OrientedStatistics:
        found, back = self.inside.statistics, self.frame.T
        cross = None if found.cross is None else np.einsum("krq,rd->kdq", found.cross, back, optimize=True)
        tangents = found.tangents._replace(frame=found.tangents.frame @ back)
        return replace(found, tangents=tangents, moment=found.moment @ back, cross=cross)


@dataclass(frozen=True)
class SpanTrainer:
    """Trains an oriented model in the span of the rows."""

    whole: ClassVar[bool] = True

    def training(self, model: GTMModel, seed: RandomState = None) -> SpanTraining:
        """The model as it is trained in the span."""
        return SpanTraining(cast(PPSModel, model))


@dataclass(frozen=True)
class SpanTraining:
    """An oriented model under training in the span of the rows."""

    model: PPSModel

    @property
    def monotone(self) -> bool:
        """Whether training never lowers the objective."""
        return self.model.monotone

    def begin(self, rows: Rows, parameters: Any) -> SpanState:
        """State after a first E-step."""
        frame = _frame_of(rows, parameters.weights)
        inside = self._inside(rows.n_columns)
        return SpanState(inside.begin(self._narrow(rows, frame), in_frame(parameters, frame)), frame)

    def step(self, rows: Rows, state: SpanState, relaxation: float = 1.0) -> SpanState:
        """State after one more iteration."""
        inside = self._inside(rows.n_columns)
        return replace(state, inside=inside.step(self._narrow(rows, state.frame), state.inside, relaxation))

    def measure(self, state: SpanState) -> dict[str, float]:
        """Entries of the history for a state: lengths are the same in the frame."""
        return self.model.measure(state.inside)

    def finish(self, rows: Rows, state: SpanState) -> SpanState:
        """State that training ends with."""
        return state

    def _inside(self, n_columns: int) -> PPSModel:
        """The model in the frame, which knows of the columns that it does not see."""
        return replace(self.model, noise=replace(self.model.noise, n_columns=n_columns))

    def _narrow(self, rows: Rows, frame: FloatArray) -> Rows:
        """The rows in the coordinates of the frame; made once."""
        return rows.get_or_make(self, lambda: _rows_in_frame(rows, frame))


def _frame_of(rows: Rows, weights: FloatArray) -> FloatArray:
    """(D, r) an orthonormal frame of the span of all rows, and of the weights where they are not in it."""
    table = rows.block(slice(0, rows.n_rows)).astype(np.float64, copy=False)
    frame = ColumnSpan(np.linalg.qr(table.T)[0])
    outside = weights - frame.from_coordinates(frame.inside(weights))
    if np.abs(outside).max() <= _OUTSIDE * np.abs(weights).max():
        return np.asarray(frame.frame)
    return np.linalg.qr(np.concatenate([table, weights]).T)[0]


def _rows_in_frame(rows: Rows, frame: FloatArray) -> Rows:
    table = rows.block(slice(0, rows.n_rows)).astype(np.float64, copy=False) @ frame
    return Rows(table.astype(rows.table.dtype), np.zeros(frame.shape[1]), rows.weight, rows.block_rows)
