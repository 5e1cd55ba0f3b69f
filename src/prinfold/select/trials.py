"""One candidate on one fold: fitted, measured on the rows left out, and reported as numbers or as a reason."""

from __future__ import annotations

import time
import tracemalloc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from prinfold._typing import FloatArray, IntArray
from prinfold.loops import StopReason
from prinfold.metrics import continuity, trustworthiness
from prinfold.select.measures import Thinning, errors, feet_of, spread_likelihoods, thinned_errors
from prinfold.select.missing_cells import raise_to_all_columns
from prinfold.select.pipelines import last_step, takes_gaps
from prinfold.select.surfaces import ComparedSurface, surface_of
from prinfold.validation.tables import has_gaps

_NEIGHBORS = 5
"""Neighbours that trustworthiness and continuity look at."""

_MOST_ROWS = 500
"""Rows on which they are taken: they look at all pairs."""


class MethodTrial(NamedTuple):
    """The outcome of a fit: losses of the rows held out, numbers about the surface, or why it failed.

    ``errors``, ``level`` and ``slope`` of thinned rows, and ``log_likelihood`` are (m,), one for each row held out;
    ``spread`` is (m, H). ``dimension`` is that of the latent space that was fitted, where it is said.
    ``log_likelihood`` is NaN where the model has no density that is finite at all of them.
    """

    errors: FloatArray
    level: FloatArray
    slope: FloatArray
    spread: FloatArray
    log_likelihood: FloatArray
    roughness: float
    trustworthiness: float
    continuity: float
    seconds: float
    memory: float
    failure: str = ""
    dimension: int | None = None


@dataclass(frozen=True)
class MethodComparison:
    """A comparison of methods: rows X (n, D), the fold of each, widths (H,) and the noise that thins them.

    Rows may have gaps. Methods that take none are fitted to complete rows, and judged on all of them.
    """

    X: FloatArray
    fold: IntArray
    widths: FloatArray
    thinning: Thinning
    n_components: int

    def attempt(self, model: Any, fold: int, *, described: bool = True) -> MethodTrial:
        """Fit one candidate without one fold; whatever goes wrong is its own affair.

        Memory, roughness and the map are looked at in the first fold, if the model is to be ``described``.
        """
        held = self.fold == fold
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the model that is recommended says what is to be said of it
            try:
                first = described and fold == 0
                return self._measure(clone(model), self.X[~held], self.X[held], self.thinning.part(held), first=first)
            except Exception as error:  # one candidate of many: its row says what happened
                return failed_trial(f"{type(error).__name__}: {error}")

    def _measure(self, model: Any, seen: FloatArray, X: FloatArray, thinning: Thinning, *, first: bool) -> MethodTrial:
        """Numbers of one fold; memory and the map, which take long and differ little, are of the first fold only."""
        whole, gaps = ~np.isnan(seen).any(axis=1), takes_gaps(model)
        seen = seen if gaps else seen[whole]
        clock = time.perf_counter()
        with peak_memory(first) as peak:
            model.fit(seen)
        seconds = time.perf_counter() - clock
        if getattr(last_step(model), "stop_reason_", None) is StopReason.INTERRUPTED:
            raise KeyboardInterrupt
        complete = seen[whole] if gaps else seen
        surface, scale = surface_of(model, complete), raise_to_all_columns(X, self.n_components)
        density = surface.log_likelihood(X) if gaps or not has_gaps(X) else None
        feet = feet_of(surface, X, seen, thinning)
        trial = MethodTrial(
            errors(X, feet, scale),
            *thinned_errors(X, feet, thinning, scale),
            spread_likelihoods(X, feet, self.widths),
            density if density is not None and np.isfinite(density).all() else np.full(len(X), np.nan),
            *((surface.roughness(), *_neighborhoods(surface, complete)) if first else (np.nan,) * 3),
            seconds if not first else np.nan,  # watching takes time of its own
            peak[0],
            dimension=getattr(getattr(last_step(model), "latent_", None), "dimension", None),
        )
        if not all(np.isfinite(part).all() for part in trial[:4]):
            raise ArithmeticError("the surface is not finite everywhere that rows project to")
        return trial


def failed_trial(reason: str) -> MethodTrial:
    """A trial without numbers."""
    none = np.empty(0)
    return MethodTrial(none, none, none, none, none, *(np.nan,) * 5, failure=reason)


@contextmanager
def peak_memory(watched: bool) -> Iterator[list[float]]:
    """Megabytes that Python and NumPy asked for at most, as tracemalloc sees it; NaN where nobody watches."""
    found = [np.nan]
    if not watched or tracemalloc.is_tracing():  # somebody else's count is not ours to reset
        yield found
        return
    tracemalloc.start()
    try:
        yield found
        found[0] = tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def _neighborhoods(surface: ComparedSurface, X: FloatArray) -> tuple[float, float]:
    """Trustworthiness and continuity of the map on the rows that it was fitted to, or on some of them."""
    X = X[np.unique(np.linspace(0, len(X) - 1, min(len(X), _MOST_ROWS)).astype(int))]
    k = min(_NEIGHBORS, (len(X) - 1) // 2)
    if k < 1:
        return np.nan, np.nan
    Z = surface.coordinates(X)
    return trustworthiness(X, Z, k), continuity(X, Z, k)
