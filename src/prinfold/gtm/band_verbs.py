"""How sure the surface of a GTM is: what the posterior of its weights says at any place."""

from __future__ import annotations

from typing import Any

import numpy as np

from prinfold._typing import FloatArray
from prinfold.exceptions import Advice, InvalidParameterError, Message
from prinfold.gtm import evidence
from prinfold.gtm import model as gtm
from prinfold.gtm import weight_posterior as bands
from prinfold.gtm.evidence_verbs import EvidenceVerbs
from prinfold.gtm.node_selection import Hint
from prinfold.gtm.noise.isotropic import IsotropicNoise
from prinfold.gtm.noise.per_cell import CellNoise, node_masses
from prinfold.gtm.noise.protocol import in_words
from prinfold.rows.rows import as_rows
from prinfold.validation.tables import check_errors, check_weight, has_gaps, weighty_rows

_ROWS_AT_ONCE = 512
"""Places for which the covariance is found at once."""


class BandVerbs(EvidenceVerbs):
    """A member of the family whose surface has a posterior."""

    def surface_std(
        self,
        Z: Any,
        *,
        X: Any = None,
        hessian: str = "approximate",
        sample_weight: Any = None,
        errors: Any = None,
        extrapolate: bool = False,
    ) -> FloatArray:
        """Posterior standard deviation of the surface, in every column, by Laplace's approximation.

        Two of them on either side make a band that holds the surface with a probability of about 95 % at each place,
        as far as the model, its penalty and its latent space are the right ones.

        Parameters
        ----------
        Z : array-like of shape (n, Q)
            Latent coordinates.
        X : array-like of shape (m, D), default=None
            The rows that the model was fitted to, which the exact Hessian needs. None is enough for the approximate
            one: the model keeps ``node_mass_``, which knows of errors given to ``fit`` too.
        hessian : {"approximate", "exact"}, default="approximate"
            How the posterior of the weights is found: as if each row belonged to one node (A.11), or exactly (A.13),
            which is wider, the more the nearer nodes are to each other beside the noise, and takes a matrix of as many
            rows and columns as the model has weights.
        sample_weight : array-like of shape (m,), default=None
            Weights of the rows ``X``.
        errors : array-like of shape (m, D) or (m,), default=None
            Errors of the rows ``X``, where the model was fitted with them.
        extrapolate : bool, default=False
            Whether coordinates outside the latent domain are allowed.

        Returns
        -------
        ndarray of shape (n, D)
        """
        places = self._valid_latent(Z, extrapolate)
        posterior = self._weight_posterior(X, hessian, sample_weight, errors)
        found = np.empty((len(places), self.n_features_in_))
        for part, features, beyond in self._seen_from(places):
            found[part] = np.sqrt(posterior.variance(features) + beyond)
        return found

    def surface_covariance(
        self,
        Z: Any,
        *,
        X: Any = None,
        hessian: str = "approximate",
        sample_weight: Any = None,
        errors: Any = None,
        extrapolate: bool = False,
    ) -> FloatArray:
        """Posterior covariance of the surface between columns, by Laplace's approximation.

        Parameters
        ----------
        Z : array-like of shape (n, Q)
            Latent coordinates.
        X : array-like of shape (m, D), default=None
            As in :meth:`surface_std`.
        hessian : {"approximate", "exact"}, default="approximate"
            As in :meth:`surface_std`. By the approximate Hessian columns are independent and alike.
        sample_weight : array-like of shape (m,), default=None
            Weights of the rows ``X``.
        errors : array-like of shape (m, D) or (m,), default=None
            Errors of the rows ``X``, where the model was fitted with them.
        extrapolate : bool, default=False
            Whether coordinates outside the latent domain are allowed.

        Returns
        -------
        ndarray of shape (n, D, D)
        """
        places = self._valid_latent(Z, extrapolate)
        posterior = self._weight_posterior(X, hessian, sample_weight, errors)
        found = np.empty((len(places), self.n_features_in_, self.n_features_in_))
        for part, features, beyond in self._seen_from(places):
            found[part] = posterior.covariance(features) + beyond[:, :, None] * np.eye(self.n_features_in_)
        return found

    # --------------------------------------------------------------------------------------- plumbing

    def _seen_from(self, places: FloatArray) -> Any:
        """Blocks of places with their features, and the variance that a process has beyond its nodes."""
        surface = self._model.surface
        for i in range(0, len(places), _ROWS_AT_ONCE):
            part = slice(i, i + _ROWS_AT_ONCE)
            beyond = bands.left_by_nodes(self._with_prior_found(), self._parameters(), places[part])
            yield part, surface.basis.features(places[part]), beyond

    def _weight_posterior(self, X: Any, hessian: str, sample_weight: Any, errors: Any) -> bands.WeightPosterior:
        if hessian not in evidence.HESSIANS:
            raise InvalidParameterError(f"hessian must be one of {', '.join(evidence.HESSIANS)}, got {hessian!r}")
        if hessian == "exact":
            evidence.refuse_dependent_cells(self._model, "the exact Hessian", 'hessian="approximate"')
        elif not isinstance(self._model.noise, IsotropicNoise | CellNoise):
            raise InvalidParameterError(
                Message(
                    f"the posterior of a surface is not known for {in_words(self._model.noise)}",
                    Advice("noise", "isotropic", "fit with {}"),
                    Advice("noise", "diagonal", "{}"),
                    Advice("noise", "student", "{}"),
                )
            )
        model, parameters = self._with_prior_found(), self._parameters()
        if X is None:
            return bands.approximate_posterior(model, self._kept_mass(hessian), parameters)
        table = self._table(X)
        weight, known = check_weight(sample_weight, table), check_errors(errors, table, self)
        kept = weighty_rows(weight, min_rows=1)
        if kept is not None:
            table, weight = table[kept], np.asarray(weight)[kept]
            known = None if known is None else known[kept]
        width = self._room * self.latent_.n_nodes
        rows = as_rows(table, self.offset_, weight, width=width, gaps=has_gaps(table), errors=known)
        model = self._for(rows, model)
        if hessian == "exact":
            return bands.exact_posterior(model, rows, parameters)
        sums = gtm.e_step(model, rows, parameters, Hint())[0]
        return bands.approximate_posterior(model, node_masses(sums), parameters)

    def _kept_mass(self, hessian: str) -> FloatArray:
        if hessian == "exact":
            raise InvalidParameterError("the exact Hessian is a sum over rows; pass those of the fit as X=")
        if self.node_mass_ is None:
            raise InvalidParameterError(
                "the model comes from a file of an older prinfold, which kept no masses of its nodes; pass the "
                "rows of the fit as X="
            )
        return self.node_mass_
