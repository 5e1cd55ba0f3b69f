"""A dimension for surfaces through some rows, suggested by the likelihood of rows held out."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import joblib
import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.exceptions import Advice, InvalidDataError, Message
from prinfold.gtm.estimator import GTM
from prinfold.loops import Meter

_MOST_DIMENSIONS = 3
"""Dimensions beyond which a map is no longer looked at."""


class Dimension(NamedTuple):
    """Dimensions compared.

    Parameters
    ----------
    tried : array of shape (K,)
        Dimensions.
    log_likelihood : array of shape (K,)
        Of rows held out, by a GTM of so many dimensions, in nats per row; −inf where it could not be fitted.
    standard_error : array of shape (K,)
        Of the difference from the best.
    suggested : int
        The fewest dimensions that fall short of the best by no more than one standard error.
    """

    tried: IntArray
    log_likelihood: FloatArray
    standard_error: FloatArray
    suggested: int

    def __str__(self) -> str:
        parts = ", ".join(f"{q}: {value:.3f}" for q, value in zip(self.tried, self.log_likelihood, strict=True))
        noun = "dimension" if self.suggested == 1 else "dimensions"
        best = int(self.log_likelihood.argmax())
        why = (
            ""
            if self.tried[best] == self.suggested
            else f"; {self.tried[best]} come out ahead, but by no more than one standard error of the difference "
            f"({self.standard_error[list(self.tried).index(self.suggested)]:.2g}), so that the fewer are taken"
        )
        return f"{self.suggested} {noun}, by the likelihood of rows held out ({parts} nats per row{why})"


def suggest_dimension(X: FloatArray, fold: IntArray, n_jobs: int | None = None) -> Dimension:
    """Compare GTMs of 1, 2, … dimensions, always fewer than columns, on rows held out."""
    tried = np.arange(1, max(1, min(_MOST_DIMENSIONS, X.shape[1] - 1)) + 1)
    parts = np.unique(fold)
    tasks = [(X[fold != f], X[fold == f], int(q)) for q in tried for f in parts]
    fits = joblib.Parallel(n_jobs=n_jobs, return_as="generator")(joblib.delayed(_held_out)(*task) for task in tasks)
    found = []
    with Meter("Finding the dimension", len(tasks)) as meter:
        for each in fits:
            found.append(each)
            meter.tell(len(found))
    rows = np.empty((len(tried), len(X)))
    for i in range(len(tried)):
        for f, part in zip(parts, found[i * len(parts) : (i + 1) * len(parts)], strict=True):
            rows[i, fold == f] = part
    rows[np.isneginf(rows).any(axis=1)] = -np.inf  # what cannot be fitted to some rows is no candidate
    return fewest_dimensions(tried, rows)


def fewest_dimensions(tried: IntArray, rows: FloatArray) -> Dimension:
    """The verdict on dimensions (K,) with log-likelihoods (K, n) of rows held out, −inf where there is none."""
    if not np.isfinite(rows).any():
        words = "no GTM could be fitted to suggest a dimension"
        raise InvalidDataError(Message(words, Advice("n_components", words="give {}")))
    mean = rows.mean(axis=1)
    best = int(mean.argmax())
    with np.errstate(invalid="ignore"):
        short = rows[best] - rows
        error = np.where(np.isfinite(mean), short.std(axis=1, ddof=1) / np.sqrt(rows.shape[1]), np.inf)
    near = np.isfinite(mean) & (mean[best] - mean <= error)
    return Dimension(tried, mean, error, int(tried[near].min()))


def _held_out(seen: FloatArray, X: FloatArray, q: int) -> FloatArray:
    """(n,) log-likelihoods of rows by a model that has not seen them; −inf if it cannot be fitted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits that only serve to compare
        try:
            model = GTM(q, prior_precision="evidence", random_state=0).fit(seen)
            return np.asarray(model.score_samples(X), dtype=float)
        except Exception:  # a dimension that cannot be fitted is no candidate
            return np.full(len(X), -np.inf)
