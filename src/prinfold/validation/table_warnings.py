"""Warnings of a fit about the table itself: unlike columns, and a row far from all others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from prinfold._typing import FloatArray
from prinfold.exceptions import DegenerateWarning, Message, warn_caller
from prinfold.validation.data_notes import heavy_row_note, spreads_note
from prinfold.validation.named_block import NamedBlock
from prinfold.validation.refusals import column_labels, column_names

_BLOCK_NUMBERS = 2**20
"""Numbers of a table that are summed together, at most: a block."""


def warn_about_table(estimator: Any, X: Any, weight: Any) -> None:
    """Warn about properties of a table of numbers that matter to the estimator that was fitted to it."""
    table = _plain_numbers(X)
    if table is None:
        return
    with np.errstate(over="ignore", invalid="ignore"):  # of numbers near the end of their range nothing is said
        found = [words for words in _notes(estimator, X, table, weight) if words is not None]
    for words in found:
        warn_caller(words, DegenerateWarning)


def _notes(estimator: Any, X: Any, table: FloatArray, weight: Any) -> Iterator[Message | None]:
    names, method = column_names(estimator), type(estimator)
    scaled = getattr(method, "_scales_columns", False)
    # Columns without names may be components, which differ in spread; in mixed tables each has a scale of its own.
    if names is not None and not scaled:
        yield spreads_note(table.astype(float), column_labels(estimator, len(names)))
    if getattr(method, "_follows_far_rows", False) and not scaled:
        yield heavy_row_note(_scatter(table, weight), row_labels(X))


def _plain_numbers(X: Any) -> FloatArray | None:
    """The table as it is, where it is a plain one of numbers with some in every column."""
    try:
        table = np.asarray(X)
        table = table if table.dtype.kind in "fiub" else table.astype(np.float64)
    except Exception:  # levels and dates, and tables of other kinds
        return None
    plain = table.ndim == 2 and len(table) > 0 and not np.isnan(table).all(axis=0).any()
    return table if plain else None


def _row_weights(table: FloatArray, weight: Any) -> FloatArray:
    """Weights of rows, (n,) or a single one; those of whole sequences are not those of rows."""
    given = np.asarray(1.0 if weight is None else weight, dtype=float).ravel()
    return given if len(given) in (1, len(table)) else np.ones(1)


def _scatter(table: FloatArray, weight: Any) -> FloatArray:
    """(n,) squared distances of rows from their mean over the cells that they have, times their weights."""
    weight = np.broadcast_to(_row_weights(table, weight), len(table))
    size = max(1, _BLOCK_NUMBERS // table.shape[1])
    parts = [slice(i, i + size) for i in range(0, len(table), size)]
    total, count = np.zeros(table.shape[1]), np.zeros(table.shape[1])
    for part in parts:
        block = table[part].astype(float)
        total += weight[part] @ np.nan_to_num(block)
        count += weight[part] @ ~np.isnan(block)
    mean = total / np.where(count > 0, count, 1.0)
    return np.asarray(weight * np.concatenate([np.nansum(np.square(table[part] - mean), axis=1) for part in parts]))


def row_labels(X: Any) -> Callable[[int], str]:
    """Words for a row of a table: its name in the index of a frame, or its number."""
    if isinstance(X, NamedBlock) and X.row_labels is not None:
        return X.row_labels
    index: Any = getattr(X, "index", None)
    counts = type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1
    if index is None or callable(index) or counts:
        return lambda row: f"row {row}"
    return lambda row: f"row {str(index[row])!r}"
