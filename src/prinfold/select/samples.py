"""Rows of a comparison: parts of any kind of table, with weights and known errors, and folds by what is in them."""

from __future__ import annotations

from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
from sklearn.base import clone

from prinfold._arrays import dense
from prinfold._typing import FloatArray, IntArray
from prinfold._validate import check_errors, check_table, check_weight, weighty_rows
from prinfold.exceptions import InvalidDataError


class Sample(NamedTuple):
    """Some rows: an array, sparse matrix or data frame, with weights and errors where there are any."""

    X: Any
    weight: FloatArray | None = None
    errors: FloatArray | None = None

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def total(self) -> float:
        """Weight of all rows together."""
        return float(self.n_rows if self.weight is None else self.weight.sum())

    @property
    def options(self) -> dict[str, Any]:
        """What the verbs of a model are told besides the rows and their weights."""
        return {} if self.errors is None else {"errors": self.errors}

    def part(self, rows: IntArray | None) -> Sample:
        """Some of the rows; None is all of them."""
        if rows is None:
            return self
        weight, errors = (None if each is None else each[rows] for each in (self.weight, self.errors))
        return Sample(take(self.X, rows), weight, errors)


def sample_of(X: Any, model: Any, sample_weight: Any, errors: Any) -> Sample:
    """All rows that have a weight; numbers are checked once, data frames are left to the model."""
    table = X
    if frame_of(X) is None:
        missing = bool(getattr(model, "_accept_missing", False))
        table = check_table(clone(model), X, reset=True, min_rows=2, accept_sparse=True, accept_missing=missing)
    weight = check_weight(sample_weight, table)
    whole = Sample(table, weight, None if errors is None else check_errors(errors, table))
    return whole.part(weighty_rows(weight, min_rows=2))


def frame_of(X: Any) -> Any:
    """A data frame as narwhals sees it, or None for anything else."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def take(X: Any, rows: IntArray) -> Any:
    """Some rows of a table of any kind."""
    frame = frame_of(X)
    return X[rows] if frame is None else frame[rows.tolist()].to_native()


def split_rows(X: Any, n_folds: int, rng: np.random.Generator) -> IntArray:
    """(n,) fold of each row, by what is in it: order does not matter, and equal rows share a fold."""
    frame = frame_of(X)
    if frame is None:
        keys = [dense(X[i : i + 1]).tobytes() for i in range(X.shape[0])]
    else:
        keys = [repr(row).encode() for row in frame.rows()]
    rank = {key: i for i, key in enumerate(sorted(set(keys)))}
    if len(rank) < 2 * n_folds:
        raise InvalidDataError(
            f"{n_folds} folds need at least {2 * n_folds} different rows, got {len(rank)}; use fewer folds, "
            "or choose by the evidence"
        )
    fold = rng.permutation(len(rank)) % n_folds
    return np.asarray(fold[[rank[key] for key in keys]])
