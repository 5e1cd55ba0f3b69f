"""What the evidence adds to a GTM: a prior and a noise that follow it, and a number by which models compare."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prinfold._typing import FloatArray
from prinfold.basis_maps.gaussian_process import GaussianProcess
from prinfold.exceptions import Advice, InvalidParameterError, Message
from prinfold.gtm import evidence
from prinfold.gtm import model as gtm
from prinfold.gtm.evidence_training import FIRST_STRENGTH, EvidenceModel, after_plain_steps
from prinfold.gtm.fitting import Job, TrainedFamily
from prinfold.gtm.node_selection import Hint
from prinfold.gtm.penalties import ConstantPenalty, Penalty
from prinfold.gtm.starts.first_parameters import Start
from prinfold.rows.rows import as_rows
from prinfold.validation.settings import Constraint, nothing, one_of, real
from prinfold.validation.tables import check_errors, check_weight, has_gaps, weighty_rows


class EvidenceVerbs(TrainedFamily):
    """A member of the family whose weights have a prior that can be integrated out."""

    _constraints: ClassVar[dict[str, Constraint]] = {
        **TrainedFamily._constraints,
        "prior_precision": nothing | real(0) | one_of(("evidence",)),
    }
    prior_precision: Any
    regularization: Any
    basis: Any

    @property
    def prior_precision_(self) -> float:
        """Precision α of the prior on the weights, whichever way it was given or found."""
        check_is_fitted(self)
        if "prior_precision" in self.history_:
            return float(self.history_["prior_precision"][-1])
        beta = self._parameters().level
        return float(self._model.penalty.strength(beta) * beta)

    def log_evidence(
        self, X: Any, hessian: str = "approximate", sample_weight: Any = None, *, errors: Any = None
    ) -> float:
        """Log probability of the training rows with the weights integrated out, thesis (5.17).

        It trades fit against flexibility without rows held out: models fitted to the same rows compare by it,
        whatever their widths, numbers of basis functions and nodes, penalties or latent spaces, as long as the same
        weights are free of the penalty: a flat prior has a height of its own choosing. It holds for weights at their
        mode, so that training has to have converged.

        Parameters
        ----------
        X : array-like of shape (n, D)
            The rows that the model was fitted to.
        hessian : {"approximate", "exact"}, default="approximate"
            How the curvature of the log-likelihood is found: as if each row belonged to one node (A.11), which costs
            next to nothing, or exactly (A.13), a matrix of as many rows and columns as the model has weights.
        sample_weight : array-like of shape (n,), default=None
            The weights of the rows that the model was fitted with.
        errors : array-like of shape (n, D) or (n,), default=None
            The known standard deviations of cells or rows that it was fitted with.

        Returns
        -------
        float
        """
        bent, log_likelihood = self._bent(X, hessian, sample_weight, errors)
        roughness = self._prior().roughness(self._model.surface, self.weights_)
        return evidence.log_evidence(log_likelihood, self.prior_precision_, roughness, bent)

    def effective_weights(
        self, X: Any, hessian: str = "approximate", sample_weight: Any = None, *, errors: Any = None
    ) -> float:
        """How many of the weights the rows determine, thesis (5.21); the prior decides the others.

        Parameters
        ----------
        X : array-like of shape (n, D)
            The rows that the model was fitted to.
        hessian : {"approximate", "exact"}, default="approximate"
            As in :meth:`log_evidence`.
        sample_weight : array-like of shape (n,), default=None
            The weights of the rows that the model was fitted with.
        errors : array-like of shape (n, D) or (n,), default=None
            The known standard deviations of cells or rows that it was fitted with.

        Returns
        -------
        float
            Between 0 and the number of weights, M times D.
        """
        return self._bent(X, hessian, sample_weight, errors)[0].effective(self.prior_precision_)

    # --------------------------------------------------------------------------------------- plumbing

    def _prior(self) -> evidence.Prior:
        """The prior of the weights; one that was found follows the noise where columns have their own."""
        if "prior_precision" in self.history_:
            return evidence.prior_along(self.prior_precision_, self._parameters())
        return evidence.prior_of(self._model, self._parameters())

    def _bent(self, X: Any, hessian: str, sample_weight: Any, errors: Any) -> tuple[evidence.Curvature, float]:
        """Curvature of the log-likelihood of rows in the weights, and that log-likelihood."""
        if hessian not in evidence.HESSIANS:
            raise InvalidParameterError(f"hessian must be one of {', '.join(evidence.HESSIANS)}, got {hessian!r}")
        table = self._table(X)
        evidence.refuse_dependent_cells(self._model)
        weight, known = check_weight(sample_weight, table), check_errors(errors, table, self)
        kept = weighty_rows(weight, min_rows=1)
        if kept is not None:
            table, weight = table[kept], np.asarray(weight)[kept]
            known = None if known is None else known[kept]
        width = self._room * self.latent_.n_nodes
        rows = as_rows(table, self.offset_, weight, width=width, gaps=has_gaps(table), errors=known)
        model, parameters = self._for(rows, self._model), self._parameters()
        log_likelihood = gtm.e_step(model, rows, parameters, Hint())[0].log_likelihood
        return evidence.HESSIANS[hessian](model, rows, parameters), log_likelihood

    def _with_prior_found(self) -> gtm.GTMModel:
        """The model with the prior that training came to, where that was found on the way."""
        if "prior_precision" not in self.history_:
            return self._model
        strength = self.prior_precision_ / self._parameters().level
        return gtm.GTMModel(self._model.surface, self._model.noise, ConstantPenalty(strength))

    def _penalty(self) -> Penalty:
        if self.prior_precision != "evidence":
            return super()._penalty()
        if self.regularization is not None:
            raise InvalidParameterError(
                Message("the evidence finds the penalty itself", Advice("regularization", words="leave {} at None"))
            )
        return ConstantPenalty(FIRST_STRENGTH)

    def _following(self, model: gtm.GTMModel) -> gtm.GTMModel:
        """The model itself, or one that is trained by the evidence where that is asked for."""
        if self.prior_precision != "evidence":
            return model
        if isinstance(self.basis, GaussianProcess):  # which follows it anyway, where there is one
            evidence.refuse_dependent_cells(model, instead="give the process its numbers")
            return model
        return EvidenceModel(model.surface, model.noise, model.penalty)

    def _start(self, job: Job, places: FloatArray | None) -> Start:
        start = super()._start(job, places)
        return after_plain_steps(start) if isinstance(job.model, EvidenceModel) else start
