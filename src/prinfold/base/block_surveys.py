"""A first pass over a table that an estimator is to be fitted to block by block."""

from __future__ import annotations

from typing import Any

import numpy as np

from prinfold.exceptions import DegenerateWarning, UnsupportedInputError, warn_caller
from prinfold.rows.blocks import Blocks
from prinfold.rows.streams import Survey, survey
from prinfold.validation.refusals import refuse_containers
from prinfold.validation.settings import as_generator


def refuse_blocks(estimator: Any, X: Any) -> None:
    """Refuse a table that is read block by block where an estimator needs all of its rows."""
    if isinstance(X, Blocks) and not estimator._takes_blocks:
        refuse_containers(X)


def refuse_beside(sample_weight: Any) -> None:
    """Raise an error for an array of weights beside Blocks, whose rows are never all in memory."""
    if sample_weight is not None:
        raise UnsupportedInputError(
            "sample_weight does not go with Blocks, whose rows are never all there; name the column that holds the "
            "weights: Blocks(source, weight=...)"
        )


def survey_table(estimator: Any, blocks: Blocks, sample_weight: Any, min_rows: int) -> Survey:
    """A first pass over the rows to be fitted; the names of their columns go to the estimator."""
    refuse_blocks(estimator, blocks)
    refuse_beside(sample_weight)
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
