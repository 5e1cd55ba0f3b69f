"""Tables that an estimator reads block by block: a first pass for a fit, and a score."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prinfold._typing import FloatArray
from prinfold.exceptions import (
    Advice,
    DegenerateWarning,
    InvalidDataError,
    InvalidParameterError,
    Message,
    UnsupportedInputError,
    warn_caller,
)
from prinfold.gtm.posterior import log_likelihood
from prinfold.gtm.trainers.stream import Survey, extremes, survey
from prinfold.rows.blocks import Blocks
from prinfold.rows.column_selection import Numbers
from prinfold.validation.refusals import refuse_containers, refuse_other_names, refuse_scale
from prinfold.validation.settings import as_generator


def refuse_blocks(estimator: Any, X: Any) -> None:
    """Refuse a table that is read block by block where an estimator needs all of its rows."""
    if isinstance(X, Blocks) and not estimator._takes_blocks:
        refuse_containers(X)


def survey_table(estimator: Any, blocks: Blocks, sample_weight: Any, errors: Any, min_rows: int) -> Survey:
    """A first pass over the rows to be fitted; the names of their columns go to the estimator."""
    refuse_blocks(estimator, blocks)
    if sample_weight is not None:
        raise UnsupportedInputError(
            "sample_weight does not go with Blocks, whose rows are never all there; name the column that holds the "
            "weights: Blocks(source, weight=...)"
        )
    if errors is not None:
        raise UnsupportedInputError("errors do not go with Blocks: nothing says which block they belong to")
    if not isinstance(estimator.init, str):
        raise InvalidParameterError(
            Message(
                "init holds a place for each row, which does not go with Blocks",
                Advice("init", "pca", "name a start, such as {}"),
            )
        )
    found = survey(
        blocks,
        # A child of the seed: numbers that a simulation drew from the same one would choose rows by what is in them.
        lambda: as_generator(estimator.random_state).spawn(1)[0],
        accept_missing=estimator._accept_missing,
        min_rows=min_rows,
    )
    if blocks.names is not None:
        estimator.feature_names_in_ = np.asarray(blocks.names, dtype=object)
    _warn_about_empty_rows(found)
    return found


def _warn_about_empty_rows(found: Survey) -> None:
    n_unseen, first = found.found.unseen
    if n_unseen:
        warn_caller(
            f"{n_unseen} row(s) have no value in any column, the first being row {first}; a fit ignores them",
            DegenerateWarning,
        )


def score_blocks(estimator: Any, blocks: Blocks, errors: Any) -> float:
    """Mean log-likelihood of rows that are read block by block."""
    check_is_fitted(estimator)
    if errors is not None:
        raise UnsupportedInputError("errors do not go with Blocks: nothing says which block they belong to")

    def of_rows(table: FloatArray) -> FloatArray:
        rows = estimator._rows(table)
        return log_likelihood(estimator._model_for(rows, estimator._model), rows, estimator._parameters())

    return mean_over_blocks(estimator, blocks, of_rows)


def mean_over_blocks(estimator: Any, blocks: Blocks, of_rows: Callable[[FloatArray], FloatArray]) -> float:
    """Weighted mean of what ``of_rows`` tells of each row, the blocks being checked."""
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
    """Refuse rows that are not as those of the fit."""
    refuse_other_names(estimator, blocks.names)
    n_columns = estimator.n_features_in_
    if block.table.shape[1] != n_columns:
        raise InvalidDataError(
            f"blocks have {block.table.shape[1]} features, but {type(estimator).__name__} is expecting {n_columns} "
            "features as input; choose them by columns="
        )
    low, high = extremes(block.table, blocks.names, first_row, accept_missing=estimator._accept_missing)
    refuse_scale(block.table.dtype, min(low, high), max(low, high), fitting=False)
