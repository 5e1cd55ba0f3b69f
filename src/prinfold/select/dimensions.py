"""How many dimensions a surface through some rows should have, by the likelihood of rows held out."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.estimators.gtm import GTM
from prinfold.exceptions import InvalidDataError

_MOST = 3
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
        return f"{self.suggested} {noun}, by the likelihood of rows held out ({parts} nats per row)"


def suggest_dimension(X: FloatArray, fold: IntArray, most: int = _MOST) -> Dimension:
    """Compare GTMs of 1, 2, … dimensions, always fewer than columns, on rows held out."""
    tried = np.arange(1, max(1, min(most, X.shape[1] - 1)) + 1)
    rows = np.stack([_held_out(X, fold, int(q)) for q in tried])
    if not np.isfinite(rows).any():
        raise InvalidDataError("no GTM could be fitted to suggest a dimension; give n_components")
    mean = rows.mean(axis=1)
    best = int(mean.argmax())
    with np.errstate(invalid="ignore"):
        short = rows[best] - rows
        error = np.where(np.isfinite(mean), short.std(axis=1, ddof=1) / np.sqrt(len(X)), np.inf)
    near = np.isfinite(mean) & (mean[best] - mean <= error)
    return Dimension(tried, mean, error, int(tried[near].min()))


def _held_out(X: FloatArray, fold: IntArray, q: int) -> FloatArray:
    """(n,) log-likelihood of each row by a model that has not seen it; −inf if one cannot be fitted."""
    found = np.full(len(X), -np.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fits that only serve to compare
        try:
            for f in np.unique(fold):
                model = GTM(q, prior_precision="evidence", random_state=0).fit(X[fold != f])
                found[fold == f] = model.score_samples(X[fold == f])
        except Exception:  # a dimension that cannot be fitted is no candidate
            return np.full(len(X), -np.inf)
    return found
