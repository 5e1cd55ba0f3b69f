"""What a walk is asked as a process: what comes next, what else might have come, how it goes on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prinfold._typing import FloatArray, IntArray, RandomState
from prinfold.exceptions import InvalidParameterError
from prinfold.gtm import posterior as posteriors
from prinfold.gtm.sequence import model as gtm_sequence
from prinfold.gtm.sequence.model import SequenceModel
from prinfold.gtm.sequence.sequence_input import arrange
from prinfold.gtm.sequence.transitions import Chain
from prinfold.gtm.sequence.verbs import SequenceVerbs
from prinfold.validation.settings import as_generator, check_setting, integer


class ProcessVerbs(SequenceVerbs):
    """Forecasts, new walks and the steps of a fitted walk."""

    def forecast(
        self,
        X: Any,
        n_steps: int = 1,
        *,
        lengths: Any = None,
        groups: Any = None,
        errors: Any = None,
        return_std: bool = False,
    ) -> Any:
        """What is expected to come after each sequence.

        Parameters
        ----------
        X : array-like of shape (n, D), list of such, or array of shape (S, T, D)
            Rows, one sequence after another; or a table for each sequence.
        n_steps : int, default=1
            Rows to look ahead.
        lengths : array-like of int, default=None
            Rows of each sequence; None takes each row for a sequence of one.
        groups : array-like of shape (n,) or str, default=None
            In place of lengths, the names of the sequences that rows belong to, or the column of X that has them.
        errors : array-like of shape (n, D) or (n,), default=None
            Standard deviations of the cells, or of all cells of a row, where they are known.
        return_std : bool, default=False
            Whether to return how far rows will lie from what is expected as well.

        Returns
        -------
        ndarray of shape (S, n_steps, D)
            Expectations of the rows that follow, sequence by sequence; of named ones in the order in which their
            names turn up.
        ndarray of shape (S, n_steps, D)
            Standard deviations about them, noise and what is not known of the walk together. Only with ``return_std``.
        """
        check_setting("n_steps", n_steps, integer(1))
        rows, _ = self._arranged(arrange(X, lengths, groups), errors)
        model = replace(self._sequence_model, noise=self._model.noise.with_gaps())
        mean, variance = gtm_sequence.forecast(model, rows, self._parameters(), n_steps)
        found = (mean + self.offset_).astype(rows.table.dtype, copy=False)
        return (found, np.sqrt(variance).astype(rows.table.dtype, copy=False)) if return_std else found

    def sample(
        self, n: int = 1, *, length: int | None = None, random_state: RandomState = None, return_latent: bool = False
    ) -> Any:
        """Rows or whole sequences drawn from the model.

        Parameters
        ----------
        n : int, default=1
            How many.
        length : int, default=None
            Rows of each sequence; None draws rows, each a sequence of one.
        random_state : int, RandomState or Generator, default=None
            Seed.
        return_latent : bool, default=False
            Whether to return where each row was drawn as well.

        Returns
        -------
        ndarray of shape (n, D) or (n, length, D)
            The rows.
        ndarray of shape (n, Q) or (n, length, Q)
            Latent coordinates of the nodes that the walks went by. Only with ``return_latent``.
        """
        check_is_fitted(self)
        check_setting("n", n, integer(0))
        if length is not None and not integer(1).test(length):
            raise InvalidParameterError(f"length must be {integer(1).words}, got {length!r}")
        rng, model, parameters = as_generator(random_state), self._model, self._parameters()
        if length is None and self._chain.flat_start:
            rows, path = posteriors.sample(model, parameters, n, rng)
        else:
            path = gtm_sequence.sample_nodes(self._chain, n, length or 1, rng)
            rows = model.noise.draw(model.surface, parameters, path.ravel(), rng)
        shape = (n,) if length is None else (n, length)
        rows = (rows + self.offset_).reshape(*shape, self.n_features_in_)
        latent = self.latent_.nodes
        return (rows, latent[path].reshape(*shape, latent.shape[1])) if return_latent else rows

    def transition_matrix(self) -> FloatArray:
        """Probabilities of going from each node to each other in one step.

        Returns
        -------
        ndarray of shape (K, K)
            Rows add up to 1.
        """
        check_is_fitted(self)
        steps = self._chain.steps
        return np.asarray(steps.matrix().toarray() + steps.leap)

    @property
    def moves_(self) -> IntArray:
        """The kinds of steps."""
        check_is_fitted(self)
        return self._chain.moves.kinds

    # --------------------------------------------------------------------------------------- plumbing

    @property
    def _chain(self) -> Chain:
        return self._sequence_model.present_chain()

    @property
    def _sequence_model(self) -> SequenceModel:
        return cast(SequenceModel, self._model)
