"""How methods with kernel regression on latent points are trained: checks, rows without repeats, what a fit leaves."""

from __future__ import annotations

from abc import abstractmethod
from math import inf
from typing import Any, ClassVar, Self

import numpy as np

from prinfold._typing import FloatArray, IntArray
from prinfold.base.callbacks import with_callbacks
from prinfold.base.unique_rows import Unique, unique_rows, weighted_places
from prinfold.exceptions import Advice, DegenerateWarning, Message, warn_caller
from prinfold.kernel_manifolds.base import KernelManifold
from prinfold.validation.refusals import refuse_fourth_powers
from prinfold.validation.settings import Constraint, check_parameters, flag, integer, real
from prinfold.validation.tables import check_table, check_weight

_NOTHING = 0.99
"""Share of the variance that is not predicted from which on nothing is."""

_LOST = 1e-9
_ALONE = 1e-3
"""Weight of a latent point's neighbours, in units of its own, below which it has none but for rounding, and below which
those it has do not count."""


class TrainedKernelManifold(KernelManifold):
    """A kernel surface whose latent points are found by descent; a method says how, in :meth:`_learn`."""

    _constraints: ClassVar[dict[str, Constraint]] = {
        **KernelManifold._constraints,
        "n_components": integer(1, 32),
        "max_iter": integer(0),
        "tol": real(0),
        "verbose": integer(0) | flag,
    }
    n_components: int
    init: Any
    n_neighbors: Any
    candidates_: Any

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the surface.

        Parameters
        ----------
        X : array-like of shape (n, D)
            Rows of numbers.
        y : ignored
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows; a weight of 2 is the same as the row given twice.

        Returns
        -------
        self
        """
        check_parameters(self, self._constraints)
        self._forget()
        table = check_table(self, X, reset=True, min_rows=2)
        refuse_fourth_powers(table)
        weight = check_weight(sample_weight, table)
        rows = self._collapse(table, weight)
        self._place_the_others(table, self._learn(table, rows))
        for words, category in self._cautions():
            warn_caller(words, category)
        return self

    def _collapse(self, table: FloatArray, weight: FloatArray | None) -> Unique:
        return unique_rows(table, weight)

    @abstractmethod
    def _learn(self, table: FloatArray, rows: Unique) -> IntArray:
        """Find latent points for rows that have been checked, keep the surface, and say which rows have one (≥ 0)."""

    def _given(self, rows: Unique) -> FloatArray | None:
        """Latent coordinates that were given for the rows to begin with."""
        if isinstance(self.init, str | tuple | list):
            return None
        return weighted_places(self.init, rows, self.n_components)

    def _place_the_others(self, table: FloatArray, name: IntArray) -> None:
        """Rows that had no part in the fit have a place on the surface like any other."""
        left_out = name < 0
        if left_out.any():
            embedding = np.empty((len(name), self.latent_.n_columns))
            embedding[~left_out] = self.embedding_
            embedding[left_out] = self._latent_of(table[left_out])
            self.embedding_ = embedding

    def _cautions(self) -> list[tuple[str, type[Warning]]]:
        """What went wrong or may mislead, in words."""
        found = self._how_it_ended()
        if self.n_features_in_ < self.n_components:
            words = f"a surface of {self.n_components} dimensions in {self.n_features_in_} column(s) is not determined"
            found.append((Message(words, Advice("n_components", self.n_features_in_)), DegenerateWarning))
        if len(self.latent_.centres) == 1:
            words = "all rows are equal, so that there is no surface: every place is the same point"
            found.append((words, DegenerateWarning))
        found += [(words, DegenerateWarning) for words in self._disorders()]
        fetched = sum(self.history_.get("fetched", []))
        if fetched:
            words = f"{fetched:.0f} time(s) a latent point had lost all its neighbours and was fetched back to them"
            gaussian = Advice("kernel", "gaussian", "{}, to keep them together")
            found.append((Message(words, Advice("bandwidth", words="take a wider {}"), gaussian), DegenerateWarning))
        return found

    def _disorders(self) -> list[str]:
        """What is wrong with the latent points, if anything."""
        found, centres = list[str](), self.latent_.centres
        if len(centres) > 1 and self.history_["objective"][-1] < -_NOTHING:
            others = Advice("init", words="try another start ({})"), Advice("bandwidth", words="another {}")
            found.append(Message("the surface predicts rows no better than their mean", *others))
        others = (
            np.exp(self._model.mixture.log_density(centres)) * self.latent_.weight.sum() / self.latent_.weight - 1.0
        )
        lost = int((others < _LOST).sum()) if self._model.mixture.profile.reach < inf else 0
        if len(centres) > 1 and np.median(others) < _ALONE:
            words = "most latent points have no neighbours, so that the surface is the rows"
            found.append(Message(words, Advice("bandwidth", words="take a wider {}")))
        elif lost:
            words = f"{lost} of {len(centres)} latent points ended without neighbours within reach of the kernel"
            advice = Advice("bandwidth", words="take a wider {}"), Advice("kernel", "gaussian", "{}")
            found.append(Message(f"{words}, so that nothing predicts their rows", *advice))
        used = self.candidates_.neighbors[self.candidates_.neighbors > 0].tolist()
        asked = [] if self.n_neighbors is None else np.atleast_1d(self.n_neighbors).tolist()
        if asked and used and not set(used) <= set(asked):
            words = f"n_neighbors={self.n_neighbors!r} leaves the rows in pieces, or asks for more than there are"
            found.append(f"{words}; {', '.join(map(str, sorted(set(used))))} were taken")
        return found
