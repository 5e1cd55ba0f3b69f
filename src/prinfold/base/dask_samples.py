"""Fits to a sample of a Dask collection, for methods that need all rows at once, and the error of other rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from prinfold._typing import FloatArray
from prinfold.exceptions import DegenerateWarning, UnsupportedInputError, warn_caller
from prinfold.rows.dask_partitions import DaskPartitions

_SAMPLE_ROWS = 5000
"""Rows that are fitted; as many others are used to estimate the error."""


@dataclass(frozen=True)
class _DrawnRows:
    """Rows with the smallest numbers drawn, in the order of these, and how many rows there were in all."""

    rows: Any
    draws: FloatArray
    n_rows: int
    most: int

    def __add__(self, other: _DrawnRows) -> _DrawnRows:
        draws = np.concatenate([self.draws, other.draws])
        kept = np.argsort(draws, kind="stable")[: self.most]
        joined = _take(_join(self.rows, other.rows), kept)
        return _DrawnRows(joined, draws[kept], self.n_rows + other.n_rows, self.most)


@dataclass(frozen=True)
class _Draw:
    """Draws rows of a partition by numbers of its own, which its number decides."""

    seed: int
    most: int

    def __call__(self, numbered: tuple[int, Any]) -> _DrawnRows:
        i, piece = numbered
        draws = np.random.default_rng([self.seed, i]).random(len(piece))
        kept = np.argsort(draws, kind="stable")[: self.most]
        return _DrawnRows(_take(piece, kept), draws[kept], len(piece), self.most)


def _take(rows: Any, chosen: Any) -> Any:
    return rows.iloc[chosen] if hasattr(rows, "iloc") else rows[chosen]


def _join(first: Any, second: Any) -> Any:
    if not hasattr(first, "iloc"):
        return np.concatenate([first, second])
    import pandas as pd

    return pd.concat([first, second], ignore_index=True)


def fit_to_sample(estimator: Any, X: Any, fit: Callable[[Any], Any], options: dict[str, Any]) -> Any:
    """Fit an estimator to rows drawn at random from a Dask collection, and warn with the error of rows not seen.

    Rows are drawn where they lie, with the same numbers whatever the workers; a few thousand come here.
    """
    beside = [name for name, value in options.items() if value is not None]
    if beside:
        raise UnsupportedInputError(
            f"{beside[0]} does not go with Dask collections, of which nothing says which row it belongs to; fit a part "
            "of the rows that fits in memory: X[:10000].compute()"
        )
    drawn: _DrawnRows = DaskPartitions(X).sum_numbered(_Draw(0, 2 * _SAMPLE_ROWS))
    found = fit(_take(drawn.rows, np.arange(min(_SAMPLE_ROWS, len(drawn.draws)))))
    others = np.arange(_SAMPLE_ROWS, len(drawn.draws))
    if len(others):
        near, far = (
            float(estimator.projection_error(_take(drawn.rows, some))) for some in (np.arange(_SAMPLE_ROWS), others)
        )
        warn_caller(
            f"{type(estimator).__name__} needs all of its rows at once, so that it was fitted to {_SAMPLE_ROWS} of "
            f"{drawn.n_rows} rows, drawn at random. The mean squared distance of these from the surface is {near:.4g}, "
            f"and that of {len(others)} others {far:.4g}; if the second is much larger, use GTM, which takes all rows",
            DegenerateWarning,
        )
    return found
