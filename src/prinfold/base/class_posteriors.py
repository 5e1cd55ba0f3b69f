"""Scores of classes with one surface each: distances, class shares and posteriors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import InvalidParameterError
from prinfold.validation.tables import check_labels, rows_of, rows_with_weight


class LabeledRows(NamedTuple):
    """Rows that have a weight: the table, weights (n,) if any, names of the classes (C,) and which is each row's."""

    table: Any
    weight: FloatArray | None
    classes: Any
    codes: IntArray


def labeled_rows(estimator: Any, table: Any, y: Any, weight: FloatArray | None, *, min_rows: int) -> LabeledRows:
    """The rows of a checked table that have a weight, with the classes that ``y`` names."""
    labels, kept = check_labels(estimator, y, table), rows_with_weight(weight, min_rows=min_rows)
    if weight is not None and kept is not None:
        table, labels, weight = rows_of(table, kept), labels[kept], weight[kept]
    return LabeledRows(table, weight, *np.unique(labels, return_inverse=True))


def squared_gaps(X: FloatArray, feet: FloatArray) -> FloatArray:
    """(n,) ‖x − y‖² of rows and their nearest points, in float64."""
    gap = np.asarray(X, dtype=np.float64) - np.asarray(feet, dtype=np.float64)
    return np.asarray(np.einsum("nd,nd->n", gap, gap))


def class_shares(codes: IntArray, weight: FloatArray | None, n_classes: int) -> FloatArray:
    """(C,) share of the weight that each class has: P(c)."""
    total = np.bincount(codes, weights=weight, minlength=n_classes)
    return np.asarray(total / total.sum())


def class_priors(priors: Any, shares: FloatArray) -> FloatArray:
    """(C,) P(c) that the parameter ``priors`` stands for: the shares of the classes, equal ones, or those given."""
    if isinstance(priors, str):
        return shares if priors == "empirical" else np.full(len(shares), 1.0 / len(shares))
    given = np.asarray(priors, dtype=np.float64)
    if len(given) != len(shares) or not np.isclose(given.sum(), 1.0):
        raise InvalidParameterError(
            f"priors must be one probability for each of the {len(shares)} classes and add up to 1, got {priors!r}"
        )
    return given


def posterior(log_joint: FloatArray) -> FloatArray:
    """(n, C) P(c | x) ∝ exp(ln p(x | c) + ln P(c)); a row far from everything still gets shares that sum to 1."""
    share = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
    return np.asarray(share / share.sum(axis=1, keepdims=True))


def decision(scores: FloatArray) -> FloatArray:
    """Scores in scikit-learn's form: (n, C), or for two classes (n,), the second less the first."""
    return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores
