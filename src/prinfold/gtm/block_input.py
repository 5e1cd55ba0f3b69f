"""Scores of tables that are read block by block, and errors for arguments that cannot be combined with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from prinfold._typing import FloatArray
from prinfold.base.block_surveys import refuse_blocks
from prinfold.exceptions import Advice, InvalidDataError, InvalidParameterError, Message, UnsupportedInputError
from prinfold.gtm.posterior import log_likelihood
from prinfold.rows.blocks import Blocks
from prinfold.rows.column_selection import Numbers
from prinfold.rows.streams import extremes
from prinfold.validation.refusals import refuse_other_names, refuse_scale


def refuse_arrays_beside(init: Any, errors: Any) -> None:
    """Raise an error for an ``init`` or ``errors`` with an entry for each row, since blocks are never all in memory."""
    if errors is not None:
        raise UnsupportedInputError("errors do not go with Blocks: nothing says which block they belong to")
    if not isinstance(init, str):
        raise InvalidParameterError(
            Message(
                "init holds a place for each row, which does not go with Blocks",
                Advice("init", "pca", "name a start, such as {}"),
            )
        )


def score_blocks(estimator: Any, blocks: Blocks, errors: Any) -> float:
    """Mean log-likelihood of rows that are read block by block."""
    if errors is not None:
        raise UnsupportedInputError("errors do not go with Blocks: nothing says which block they belong to")

    def of_rows(table: FloatArray) -> FloatArray:
        rows = estimator._rows(table)
        return log_likelihood(estimator._model_for(rows, estimator._model), rows, estimator._parameters())

    return mean_over_blocks(estimator, blocks, of_rows)


def mean_over_blocks(estimator: Any, blocks: Blocks, of_rows: Callable[[FloatArray], FloatArray]) -> float:
    """Weighted mean over all rows of the numbers that ``of_rows`` gives for each; blocks are checked."""
    refuse_blocks(estimator, blocks)
    sums, n_read = np.zeros(2), 0
    for block in blocks.weighted():
        _check(estimator, blocks, block, n_read)
        n_read += len(block.table)
        weight = np.ones(len(block.table)) if block.weight is None else block.weight
        sums += weight @ of_rows(block.table).astype(np.float64), weight.sum()
    if not sums[1] > 0:
        raise InvalidDataError(f"the source has {n_read} row(s), none of which has a weight; there is nothing to score")
    return float(sums[0] / sums[1])


def _check(estimator: Any, blocks: Blocks, block: Numbers, first_row: int) -> None:
    """Raise an error for blocks whose columns are not those of the fit."""
    refuse_other_names(estimator, blocks.names)
    n_columns = estimator.n_features_in_
    if block.table.shape[1] != n_columns:
        raise InvalidDataError(
            f"blocks have {block.table.shape[1]} features, but {type(estimator).__name__} is expecting {n_columns} "
            "features as input; choose them by columns="
        )
    low, high = extremes(block.table, blocks.names, first_row, accept_missing=estimator._accept_missing)
    refuse_scale(block.table.dtype, min(low, high), max(low, high), fitting=False)
