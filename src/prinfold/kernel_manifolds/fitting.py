"""The ``fit`` that UKR and KMM share: checks, rows without repeats, latent points, warnings."""

from __future__ import annotations

from abc import abstractmethod
from math import inf
from typing import Any, ClassVar, Self

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.base.callbacks import fit_method
from prinfold.base.unique_rows import Unique, unique_rows, weighted_places
from prinfold.exceptions import Advice, DegenerateWarning, Message, warn_caller
from prinfold.kernel_manifolds.base import KernelManifold
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.refusals import refuse_fourth_powers
from prinfold.validation.settings import Constraint, check_parameters, flag, integer, real
from prinfold.validation.tables import check_table, check_weight, forget

_UNPREDICTED_SHARE = 0.99
"""Unpredicted share of the variance from which on the surface is no better than the mean."""

_LOST_NEIGHBOR_WEIGHT = 1e-9
_LONELY_NEIGHBOR_WEIGHT = 1e-3
"""Weight of a latent point's neighbours, in units of its own, below which it has none but for rounding, and below which
those it has do not count."""


@fill_parameter_docs
class TrainedKernelManifold(KernelManifold):
    """A kernel surface whose latent points are found by descent; a method says how, in :meth:`_find_latent_points`."""

    _constraints: ClassVar[dict[str, Constraint]] = {
        **KernelManifold._constraints,
        "n_components": integer(1, 32),
        "max_iter": integer(0),
        "tol": real(0),
        "verbose": integer(0) | flag,
    }
    n_components: int
    init: Any
    stop: str
    n_neighbors: Any
    candidates_: Any

    @fit_method
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the surface.

        Parameters
        ----------
        {X}
        y : ignored
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows; a weight of 2 is the same as the row given twice.

        Returns
        -------
        self
        """
        check_parameters(self, self._constraints)
        forget(self)
        table = check_table(self, X, reset=True, min_rows=2)
        refuse_fourth_powers(table)
        weight = check_weight(sample_weight, table)
        rows = self._collapse(table, weight)
        self._place_left_out_rows(table, self._find_latent_points(table, rows))
        for words, category in self._fit_warnings():
            warn_caller(words, category)
        return self

    def _collapse(self, table: FloatArray, weight: FloatArray | None) -> Unique:
        return unique_rows(table, weight)

    @abstractmethod
    def _find_latent_points(self, table: FloatArray, rows: Unique) -> IntArray:
        """Find latent points of checked rows and keep the surface; returns (n,) the point of each row, −1 for none."""

    def _initial_coordinates(self, rows: Unique) -> FloatArray | None:
        """(u, Q) latent coordinates given as ``init``; None where embeddings are named."""
        if isinstance(self.init, str | tuple | list):
            return None
        return weighted_places(self.init, rows, self.n_components)

    def _asks_for_structure(self) -> bool:
        """Whether a setting depends on what lies across the surface, noise or structure."""
        return self.stop == "auto" or (isinstance(self.init, str) and self.init == "auto")

    def _place_left_out_rows(self, table: FloatArray, name: IntArray) -> None:
        """Add the rows that took no part in the fit to ``embedding_``, by ``transform``."""
        left_out = name < 0
        if left_out.any():
            embedding = np.empty((len(name), self.latent_.n_columns))
            embedding[~left_out] = self.embedding_
            embedding[left_out] = self._latent_of(table[left_out])
            self.embedding_ = embedding

    def _fit_warnings(self) -> list[tuple[str, type[Warning]]]:
        """Warnings to give after a fit, each with its category."""
        found = self._stopping_warnings()
        if self.n_features_in_ < self.n_components:
            words = f"a surface of {self.n_components} dimensions in {self.n_features_in_} column(s) is not determined"
            found.append((Message(words, Advice("n_components", self.n_features_in_)), DegenerateWarning))
        if len(self.latent_.centers) == 1:
            words = "all rows are equal, so that the surface is a single point. Give rows that differ"
            found.append((words, DegenerateWarning))
        found += [(words, DegenerateWarning) for words in self._latent_warnings()]
        fetched = sum(self.history_.get("fetched", []))
        if fetched:
            words = f"latent points lost all their neighbours {fetched:.0f} time(s) and were moved back to them"
            gaussian = Advice("kernel", "gaussian", "{}, to keep them together")
            found.append((Message(words, Advice("bandwidth", words="take a wider {}"), gaussian), DegenerateWarning))
        return found

    def _latent_warnings(self) -> list[str]:
        """Warnings about the fitted latent points."""
        found, centers = list[str](), self.latent_.centers
        if len(centers) > 1 and self.history_["objective"][-1] < -_UNPREDICTED_SHARE:
            change = Advice("init", words="try another start ({})"), Advice("bandwidth", words="another {}")
            found.append(Message("the surface predicts rows no better than their mean does", *change))
        others = (
            np.exp(self._model.mixture.log_density(centers)) * self.latent_.weight.sum() / self.latent_.weight - 1.0
        )
        lost = int((others < _LOST_NEIGHBOR_WEIGHT).sum()) if self._model.mixture.profile.reach < inf else 0
        if len(centers) > 1 and np.median(others) < _LONELY_NEIGHBOR_WEIGHT:
            words = "most latent points have no neighbours, so that the surface passes through every row"
            found.append(Message(words, Advice("bandwidth", words="take a wider {}")))
        elif lost:
            words = f"{lost} of {len(centers)} latent points have no neighbours within reach of the kernel"
            advice = Advice("bandwidth", words="take a wider {}"), Advice("kernel", "gaussian", "{}")
            found.append(Message(f"{words}, so that nothing predicts their rows", *advice))
        used = self.candidates_.neighbors[self.candidates_.neighbors > 0].tolist()
        asked = [] if self.n_neighbors is None else np.atleast_1d(self.n_neighbors).tolist()
        if asked and used and not set(used) <= set(asked):
            words = f"n_neighbors={self.n_neighbors!r} leaves the rows in separate pieces, or exceeds their number"
            found.append(f"{words}. Used {', '.join(map(str, sorted(set(used))))} instead")
        return found
