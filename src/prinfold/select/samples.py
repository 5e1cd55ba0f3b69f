"""Rows or sequences to compare by: parts of any table, with weights and known errors, and folds by what is in them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
from sklearn.base import clone

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import InvalidDataError
from prinfold.gtm.sequence.sequence_input import Arranged, sequence_weight
from prinfold.rows.rows import dense
from prinfold.validation.refusals import to_narwhals
from prinfold.validation.tables import check_errors, check_table, check_weight, rows_with_weight


class SelectionRows(NamedTuple):
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
    def row_weight(self) -> FloatArray | None:
        """(n,) weights of the rows, or None for equal ones."""
        return self.weight

    @property
    def unit(self) -> str:
        """The noun for what is held out."""
        return "rows"

    @property
    def stand_alone(self) -> bool:
        """Whether each row says all there is to know of it."""
        return True

    @property
    def options(self) -> dict[str, Any]:
        """Further arguments for the methods of a model, besides rows and weights."""
        return {} if self.errors is None else {"errors": self.errors}

    def folds(self, n_folds: int, rng: np.random.Generator) -> IntArray:
        """(n,) fold of each row."""
        return split_rows(self.X, n_folds, rng)

    def part(self, rows: IntArray | None) -> SelectionRows:
        """Some of the rows; None is all of them."""
        if rows is None:
            return self
        weight, errors = (None if each is None else each[rows] for each in (self.weight, self.errors))
        return SelectionRows(take(self.X, rows), weight, errors)


class SelectionSequences(NamedTuple):
    """Some sequences, one after another in a table: ``cuts`` (S + 1,) of its rows, with a weight for each sequence."""

    X: Any
    cuts: IntArray
    weight: FloatArray | None = None
    errors: FloatArray | None = None

    @property
    def total(self) -> float:
        """Weight of all rows together."""
        each = self.row_weight
        return float(self.cuts[-1] if each is None else each.sum())

    @property
    def row_weight(self) -> FloatArray | None:
        """(n,) weights of the rows, or None for equal ones."""
        return None if self.weight is None else np.repeat(self.weight, np.diff(self.cuts))

    @property
    def unit(self) -> str:
        """The noun for what is held out."""
        return "sequences"

    @property
    def stand_alone(self) -> bool:
        """Whether each row says all there is to know of it."""
        return False

    @property
    def options(self) -> dict[str, Any]:
        """Further arguments for the methods of a model, besides rows and weights."""
        return {"lengths": np.diff(self.cuts)} | ({} if self.errors is None else {"errors": self.errors})

    def part(self, sequences: IntArray | None) -> SelectionSequences:
        """Some of the sequences; None is all of them."""
        if sequences is None:
            return self
        spans = [np.arange(self.cuts[s], self.cuts[s + 1]) for s in sequences]
        rows = np.concatenate(spans) if spans else np.zeros(0, dtype=np.int64)
        weight = None if self.weight is None else self.weight[sequences]
        errors = None if self.errors is None else self.errors[rows]
        return SelectionSequences(take(self.X, rows), np.append(0, np.cumsum([*map(len, spans)])), weight, errors)

    def folds(self, n_folds: int, rng: np.random.Generator) -> IntArray:
        """(S,) fold of each sequence, by what is in it: order does not matter, and equal sequences share a fold."""
        of_rows = _keys(self.X)
        keys = [b"|".join(of_rows[a:b]) for a, b in pairwise(self.cuts.tolist())]
        if len(set(keys)) < n_folds:
            raise InvalidDataError(
                f"{n_folds} folds need at least {n_folds} different sequences, got {len(set(keys))}; use fewer folds, "
                "or cut long sequences in two"
            )
        return _folds_of(keys, n_folds, rng)


def sample_of(X: Any, model: Any, sample_weight: Any, errors: Any) -> SelectionRows:
    """All rows that have a weight; numbers are checked once, data frames are left to the model."""
    table = _check_rows(X, model)
    weight = check_weight(sample_weight, table)
    whole = SelectionRows(table, weight, None if errors is None else check_errors(errors, table))
    return whole.part(rows_with_weight(weight, min_rows=2))


def sequences_of(given: Arranged, model: Any, sample_weight: Any, errors: Any) -> SelectionSequences:
    """All sequences that have a weight, one after another."""
    table = _check_rows(given.X, model)
    order = given.order(table.shape[0])
    weight, known = sequence_weight(sample_weight, order), given.stacked(errors)
    known = None if known is None else order.sorted(check_errors(known, table))
    whole = SelectionSequences(table if order.rows is None else take(table, order.rows), order.cuts, weight, known)
    return whole if weight is None else whole.part(np.flatnonzero(weight > 0))


def _check_rows(X: Any, model: Any) -> Any:
    if frame_of(X) is not None:
        return X
    missing = bool(getattr(model, "_accept_missing", False))
    return check_table(clone(model), X, reset=True, min_rows=2, accept_sparse=True, accept_missing=missing)


def frame_of(X: Any) -> Any:
    """A data frame as narwhals sees it, or None for anything else."""
    frame = to_narwhals(X, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def take(X: Any, rows: IntArray) -> Any:
    """Some rows of a table of any kind."""
    frame = frame_of(X)
    return X[rows] if frame is None else frame[rows.tolist()].to_native()


def split_rows(X: Any, n_folds: int, rng: np.random.Generator) -> IntArray:
    """(n,) fold of each row, by what is in it: order does not matter, and equal rows share a fold."""
    keys = _keys(X)
    n_different = len(set(keys))
    if n_different < 2 * n_folds:
        raise InvalidDataError(
            f"{n_folds} folds need at least {2 * n_folds} different rows, got {n_different}; use fewer folds, "
            "or choose by the evidence"
        )
    return _folds_of(keys, n_folds, rng)


def _keys(X: Any) -> list[bytes]:
    """A key of each row, equal for equal rows."""
    frame = frame_of(X)
    if frame is None:
        return [dense(X[i : i + 1]).tobytes() for i in range(X.shape[0])]
    return [repr(row).encode() for row in frame.rows()]


def _folds_of(keys: list[bytes], n_folds: int, rng: np.random.Generator) -> IntArray:
    rank = {key: i for i, key in enumerate(sorted(set(keys)))}
    fold = rng.permutation(len(rank)) % n_folds
    return np.asarray(fold[[rank[key] for key in keys]])
