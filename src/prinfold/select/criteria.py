"""Ways to score the candidates of a comparison: the evidence for them, or the likelihood of rows held out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, Protocol

import numpy as np

from prinfold._typing import IntArray
from prinfold.exceptions import InvalidParameterError
from prinfold.select.samples import SelectionRows, SelectionSequences

_MOST_WEIGHTS = 10_000
"""Weights beyond which the exact Hessian is refused: it would take a gigabyte, and its eigenvalues an hour."""


Rows = SelectionRows | SelectionSequences


class SettingCriterion(Protocol):
    """A way to score candidates: the rows that each fit sees and is scored on, and what to call it."""

    @property
    def words(self) -> str:
        """Its name in a sentence."""

    def parts(self, rows: Rows, rng: np.random.Generator) -> list[tuple[IntArray | None, IntArray | None]]:
        """Rows or sequences to fit and to score, for each fit of a candidate; None is all of them."""

    def score(self, model: Any, rows: Rows) -> float:
        """Nats per row."""


@dataclass(frozen=True)
class Evidence:
    """Log evidence per row of the rows that a model was fitted to, by a Hessian of so many weights at most."""

    hessian: str
    most_weights: float = inf

    @property
    def words(self) -> str:
        return f"the evidence with the {self.hessian} Hessian"

    def parts(self, rows: Rows, rng: np.random.Generator) -> list[tuple[IntArray | None, IntArray | None]]:
        if not rows.stand_alone:
            raise InvalidParameterError(
                f"by={self.hessian!r} takes each row for itself, which sequences are not; use by='held-out'"
            )
        return [(None, None)]

    def score(self, model: Any, rows: Rows) -> float:
        if not hasattr(model, "log_evidence"):
            name = type(model).__name__
            raise InvalidParameterError(f"{name} has no log_evidence; choose its settings with by='held-out'")
        if model.weights_.size > self.most_weights:
            raise InvalidParameterError(
                f"the {self.hessian} Hessian of {model.weights_.size} weights is too large (the most is "
                f"{self.most_weights}); use by='approximate' or by='held-out', or fewer basis functions"
            )
        found = model.log_evidence(rows.X, self.hessian, sample_weight=rows.weight, **rows.options)
        return float(found) / rows.total


@dataclass(frozen=True)
class HeldOut:
    """Mean log-likelihood of rows or sequences that a model was not fitted to, in so many folds, per row."""

    folds: int
    unit: str = "rows"

    @property
    def words(self) -> str:
        return f"the likelihood of {self.unit} held out, in {self.folds} folds"

    def parts(self, rows: Rows, rng: np.random.Generator) -> list[tuple[IntArray | None, IntArray | None]]:
        fold = rows.folds(self.folds, rng)
        return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(self.folds)]

    def score(self, model: Any, rows: Rows) -> float:
        if hasattr(model, "unseen"):  # a level that only rows held out have says nothing for or against a candidate
            model.set_params(unseen="missing")
        return float(np.average(model.score_samples(rows.X, **rows.options), weights=rows.row_weight))


CRITERIA: dict[str, Callable[[int, str], SettingCriterion]] = {
    "exact": lambda folds, unit: Evidence("exact", _MOST_WEIGHTS),
    "approximate": lambda folds, unit: Evidence("approximate"),
    "held-out": HeldOut,
}
"""Name → how candidates are scored, given a number of folds and what is held out."""
