"""Verbs of a GTM of sequences (thesis 7.4): smoothing, filtering, likeliest paths, forecasts and samples."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prinfold._typing import FloatArray, IntArray, RandomState
from prinfold.devices import Device
from prinfold.exceptions import InvalidParameterError, NotAvailableError
from prinfold.gtm import posterior as posteriors
from prinfold.gtm.estimator import GTM
from prinfold.gtm.noise.protocol import noise_for_gaps
from prinfold.gtm.sequence import model as gtm_sequence
from prinfold.gtm.sequence.model import SequenceModel, SequenceRows, in_sequences
from prinfold.gtm.sequence.sequence_blocks import mean_over_sequences
from prinfold.gtm.sequence.sequence_input import (
    Arranged,
    Order,
    Paths,
    arrange,
    column_of_names,
    warn_about_empty_steps,
)
from prinfold.gtm.sequence.transitions import Chain
from prinfold.gtm.weight_posterior import WeightPosterior
from prinfold.rows.blocks import Blocks
from prinfold.rows.rows import Rows
from prinfold.validation.memory_limits import check_draws
from prinfold.validation.named_block import NamedBlock
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.settings import as_generator, integer
from prinfold.validation.tables import check_errors, gives_frames


class _MissingVerb:
    """A verb that a subclass does not have, and why."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        raise NotAvailableError(f"{owner.__name__} has no {self.name}: {self.reason}")


_IGNORES_ORDER = (
    "it would take each row for itself, without the rest of its sequence; compare models by score on sequences"
)

_NEEDS_WHOLE_SEQUENCES = "a sequence is learned from as a whole; call fit with all of them"


@fill_parameter_docs
class SequenceVerbs(GTM):
    """The verbs of a GTM of sequences, given by ``lengths`` or ``groups``; without those each row is a sequence."""

    log_evidence: ClassVar[Any] = _MissingVerb(_IGNORES_ORDER)
    effective_weights: ClassVar[Any] = _MissingVerb(_IGNORES_ORDER)
    partial_fit: ClassVar[Any] = _MissingVerb(_NEEDS_WHOLE_SEQUENCES)
    n_seen_: ClassVar[Any] = _MissingVerb(_NEEDS_WHOLE_SEQUENCES)
    memory_ = None  # of a stream, which there is none of
    _takes_blocks: ClassVar[bool] = False  # which say nothing of sequences, and may end in the midst of one

    _takes_sequences: ClassVar[bool] = True

    def _device(self) -> Device | None:
        return None

    def transform(self, X: Any, *, lengths: Any = None, groups: Any = None, errors: Any = None) -> Any:
        """Posterior mean of each row in latent space, given its whole sequence.

        Parameters
        ----------
        {X.sequences}
        {lengths}
        {groups}
        {errors}

        Returns
        -------
        ndarray of shape (n, Q), or list of such
            In the form in which X was given; where ``set_output`` asks for frames, one of all rows.
        """
        found = self._ask_sequences(posteriors.posterior_mean, X, lengths, groups, errors)
        if not gives_frames(self):
            return found
        return np.concatenate(found) if isinstance(found, list) else found.reshape(-1, found.shape[-1])

    def filter(self, X: Any, *, lengths: Any = None, groups: Any = None, errors: Any = None) -> Any:
        """Posterior mean of each row in latent space, given the rows of its sequence up to it and none after.

        What can be said while a sequence is still going on.

        Parameters
        ----------
        {X.sequences}
        {lengths}
        {groups}
        {errors}

        Returns
        -------
        ndarray of shape (n, Q), or list of such
            In the form in which X was given.
        """
        return self._ask_sequences(gtm_sequence.filtered_mean, X, lengths, groups, errors)

    def paths(self, X: Any, *, lengths: Any = None, groups: Any = None, errors: Any = None) -> Paths:
        """The likeliest path of each sequence through the nodes, by Viterbi's algorithm.

        Of all paths together the one that is likeliest as a whole: unlike :meth:`posterior_mode`, which takes the
        likeliest node of each row, it never makes a step that the chain would not.

        Parameters
        ----------
        {X.sequences}
        {lengths}
        {groups}
        {errors}

        Returns
        -------
        Paths
            ``latent`` (n, Q) coordinates and ``nodes`` (n,) numbers of the nodes, in the form in which X was given.
        """

        def question(model: Any, rows: Rows, parameters: Any) -> Paths:
            nodes = gtm_sequence.likeliest_paths(model, rows, parameters)
            return Paths(self.latent_.nodes[nodes].astype(rows.table.dtype, copy=False), nodes)

        found: Paths = self._ask_sequences(question, X, lengths, groups, errors)
        return found

    def score_samples(self, X: Any, *, lengths: Any = None, groups: Any = None, errors: Any = None) -> Any:
        """Log-likelihood of each row given those before it in its sequence.

        They add up to the log-likelihoods of the sequences. A row of which nothing was measured has none: 0.

        Parameters
        ----------
        {X.sequences}
        {lengths}
        {groups}
        {errors}

        Returns
        -------
        ndarray of shape (n,), or list of such
            In the form in which X was given.
        """
        return self._ask_sequences(gtm_sequence.log_likelihood, X, lengths, groups, errors)

    def score(self, X: Any, y: Any = None, *, lengths: Any = None, groups: Any = None, errors: Any = None) -> float:
        """Log-likelihood of the sequences, per row.

        Parameters
        ----------
        {X.sequences}
        y : ignored
        {lengths}
        {groups}
        {errors}

        Returns
        -------
        float
        """
        if isinstance(X, Blocks):
            check_is_fitted(self)
            return mean_over_sequences(self, X, column_of_names(lengths, groups), self._log_likelihood)
        found = self.score_samples(X, lengths=lengths, groups=groups, errors=errors)
        return float(np.mean(np.concatenate(found) if isinstance(found, list) else found, dtype=np.float64))

    def responsibilities(
        self, X: Any, threshold: float | None = None, *, lengths: Any = None, groups: Any = None, errors: Any = None
    ) -> Any:
        """Posterior weight of every node for each row, given its whole sequence.

        Parameters
        ----------
        {X.sequences}
        threshold : float, default=None
            Weights below it are left out, and a sparse matrix is returned, or a list of such.
        {lengths}
        {groups}
        {errors}

        Returns
        -------
        ndarray or csr_matrix of shape (n, K), or list of such
            In the form in which X was given.
        """
        if threshold is None:
            return self._ask_sequences(posteriors.responsibilities, X, lengths, groups, errors)
        question = partial(posteriors.sparse_responsibilities, threshold=threshold)
        return self._ask_sequences(question, X, lengths, groups, errors)

    def posterior_mode(self, X: Any, *, lengths: Any = None, groups: Any = None, errors: Any = None) -> Any:
        """The node with the largest posterior weight for each row, given its whole sequence.

        Parameters
        ----------
        {X.sequences}
        {lengths}
        {groups}
        {errors}

        Returns
        -------
        ndarray of shape (n, Q), or list of such
            In the form in which X was given.
        """
        return self._ask_sequences(posteriors.posterior_mode, X, lengths, groups, errors)

    def posterior_covariance(self, X: Any, *, lengths: Any = None, groups: Any = None, errors: Any = None) -> Any:
        """Spread of the posterior about its mean in latent space, given each row's whole sequence.

        Parameters
        ----------
        {X.sequences}
        {lengths}
        {groups}
        {errors}

        Returns
        -------
        ndarray of shape (n, Q, Q), or list of such
            In the form in which X was given.
        """
        return self._ask_sequences(posteriors.posterior_covariance, X, lengths, groups, errors)

    def mode_distance(self, X: Any, *, lengths: Any = None, groups: Any = None, errors: Any = None) -> Any:
        """Distance in latent space from posterior mean to posterior mode, in units of the node spacing.

        Parameters
        ----------
        {X.sequences}
        {lengths}
        {groups}
        {errors}

        Returns
        -------
        ndarray of shape (n,), or list of such
            In the form in which X was given.
        """

        def question(model: Any, rows: Rows, parameters: Any) -> FloatArray:
            distance = posteriors.mode_distance(model, rows, parameters)
            return distance / distance.dtype.type(self.latent_.spacing)

        return self._ask_sequences(question, X, lengths, groups, errors)

    def impute(
        self, X: Any, *, lengths: Any = None, groups: Any = None, errors: Any = None, return_std: bool = False
    ) -> Any:
        """Rows with missing cells filled in: the expectation of each cell given what its sequence has.

        Parameters
        ----------
        X : array-like of shape (n, D), list of such, or array of shape (S, T, D)
            Rows whose missing cells are NaN; a missing step is a row of them.
        {lengths}
        {groups}
        {errors}
        {return_std}

        Returns
        -------
        ndarray of shape (n, D), or list of such
            The rows, in the form in which X was given; what was measured stays as it is.
        ndarray of shape (n, D), or list of such
            Standard deviation of each cell about its expectation, 0 where it was measured. Only with
            ``return_std``.
        """
        given = arrange(X, lengths, groups)
        rows, order = self._ordered_rows(given, errors)
        found, deviation = posteriors.fill_missing_cells(rows.table, lambda: self._completion(rows))
        filled = given.in_given_form(found, order)
        return (filled, given.in_given_form(deviation, order)) if return_std else filled

    def outlier_weights(self, X: Any, *, lengths: Any = None, groups: Any = None, errors: Any = None) -> Any:
        """Weight of each row beside one on the surface, with Student noise: little for an outlier.

        Parameters
        ----------
        {X.sequences}
        {lengths}
        {groups}
        {errors}

        Returns
        -------
        ndarray of shape (n,), or list of such
            Above 0 and at most 1 + D/df, in the form in which X was given.
        """
        check_is_fitted(self)
        if self._model.noise.capabilities.row_scales is None:
            return super().outlier_weights(X, errors=errors)  # which says that there are none
        return self._ask_sequences(posteriors.row_scales, X, lengths, groups, errors)

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
        """Expected rows after the end of each sequence.

        Parameters
        ----------
        {X.sequences}
        n_steps : int, default=1
            Rows to look ahead.
        {lengths}
        {groups}
        {errors}
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
        rows, _ = self._ordered_rows(arrange(X, lengths, groups), errors)
        model = replace(self._sequence_model, noise=noise_for_gaps(self._model.noise))
        mean, variance = gtm_sequence.forecast(model, rows, self._parameters(), n_steps)
        found = (mean + self.offset_).astype(rows.table.dtype, copy=False)
        return (found, np.sqrt(variance).astype(rows.table.dtype, copy=False)) if return_std else found

    def sample(
        self, n: int = 1, *, length: int | None = None, random_state: RandomState = None, return_latent: bool = False
    ) -> Any:
        """Rows or whole sequences drawn from the model.

        Parameters
        ----------
        {n}
        length : int, default=None
            Rows of each sequence; None draws rows, each a sequence of one.
        {random_state}
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
        if length is not None and not integer(1).test(length):
            raise InvalidParameterError(f"length must be {integer(1).words}, got {length!r}")
        check_draws(n, self.n_features_in_ * (length or 1))
        rng, model, parameters = as_generator(random_state), self._model, self._parameters()
        if length is None and self._chain.flat_start:
            rows, path = posteriors.sample(model, parameters, n, rng)
        else:
            path = gtm_sequence.sample_nodes(self._chain, n, length or 1, rng)
            rows = model.noise.at_nodes(model.surface, parameters).draw(path.ravel(), rng)
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

    def _ask_sequences(self, question: Any, X: Any, lengths: Any, groups: Any, errors: Any) -> Any:
        """Put a question about the posterior to rows in sequences, and hand the answer back as the rows came."""
        given = arrange(X, lengths, groups)
        rows, order = self._ordered_rows(given, errors)
        return given.in_given_form(self._ask_rows(question, rows), order)

    def _ordered_rows(self, given: Arranged, errors: Any) -> tuple[Rows, Order]:
        """Rows in the order of their sequences."""
        table = self._table(given.X)
        known, order = check_errors(given.stacked(errors), table, self), given.order(table.shape[0])
        rows = self._rows(order.sorted(table), order.sorted(known))
        return rows if given.plain else in_sequences(rows, order.cuts), order

    def _log_likelihood(self, rows: Rows) -> FloatArray:
        model = cast(SequenceModel, self._model_for(rows, self._model))
        return gtm_sequence.log_likelihood(model, rows, self._parameters())

    def _some_row(self) -> Any:
        """A row that all verbs accept, from which Dask learns the shapes of results."""
        names = getattr(self, "feature_names_in_", None)
        row = np.zeros((1, self.n_features_in_))
        return row if names is None else NamedBlock.of(row, tuple(map(str, names)))

    def _weight_posterior(self, X: Any, hessian: str, sample_weight: Any, errors: Any) -> WeightPosterior:
        if X is not None:
            raise InvalidParameterError(
                "a band from rows X takes each row for itself, without the rest of its sequence; leave out X and "
                "hessian='exact', and the band comes from the masses that nodes had in the fit"
            )
        return super()._weight_posterior(X, hessian, sample_weight, errors)

    def _warn_about_empty_rows(self, table: FloatArray) -> None:
        """Rows without a value are missing steps, of which the rest of a sequence tells; see :meth:`_ask_rows`."""

    def _ask_rows(self, question: Any, rows: Rows) -> Any:
        if rows.gaps and isinstance(rows, SequenceRows):
            warn_about_empty_steps(rows.table, rows.cuts)
        elif rows.gaps:
            super()._warn_about_empty_rows(rows.table)
        return question(self._model_for(rows, self._model), rows, self._parameters())
