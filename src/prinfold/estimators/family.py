"""The verbs that every member of the GTM family shares: what the posterior over latent space says of rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prinfold._arrays import Rows, as_rows
from prinfold._typing import FloatArray, RandomState
from prinfold._validate import as_generator, integer
from prinfold.algorithms import gtm
from prinfold.algorithms.noise import Parameters
from prinfold.estimators.base import PrincipalManifold
from prinfold.exceptions import InvalidParameterError
from prinfold.geometry.folds import Folds, find_folds

R = TypeVar("R")


class GTMFamily(PrincipalManifold):
    """A mixture on a grid of latent nodes: fitted, it has ``_model``, ``weights_``, ``offset_`` and the noise."""

    _stored: ClassVar[tuple[str, ...]] = (
        *PrincipalManifold._stored,
        "basis_",
        "weights_",
        "offset_",
        "noise_variance_",
        "node_mass_",
    )
    _added: ClassVar[dict[str, Any]] = {"node_mass_": None}
    _accept_sparse: ClassVar[bool] = True
    _room: ClassVar[int] = 1
    """Numbers per row and node for which a block is cut to size."""
    _model: gtm.GTMModel
    weights_: FloatArray
    offset_: FloatArray
    noise_variance_: float
    node_mass_: FloatArray | None

    def transform(self, X: Any) -> FloatArray:
        """Posterior mean of each row in latent space.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n, Q)
        """
        return self._latent_of(self._table(X))

    def score_samples(self, X: Any) -> FloatArray:
        """Log-likelihood of each row.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._ask(gtm.log_likelihood, X)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of the rows.

        Parameters
        ----------
        X : array-like of shape (n, D)
        y : ignored

        Returns
        -------
        float
        """
        return float(np.mean(self.score_samples(X), dtype=np.float64))

    def responsibilities(self, X: Any, threshold: float | None = None) -> Any:
        """Posterior weight of every node for each row.

        Parameters
        ----------
        X : array-like of shape (n, D)
        threshold : float, default=None
            Weights below it are left out, and a sparse matrix is returned: with 1e-6 a row keeps about a
            dozen nodes, so that millions of rows serve as fingerprints.

        Returns
        -------
        ndarray or csr_matrix of shape (n, K)
        """
        if threshold is None:
            return self._ask(gtm.responsibilities, X)
        if not 0 < threshold < 1:
            raise InvalidParameterError(f"threshold={threshold!r} is not a number between 0 and 1")
        return self._ask(partial(gtm.sparse_responsibilities, threshold=threshold), X)

    def posterior_mode(self, X: Any) -> FloatArray:
        """The node with the largest posterior weight for each row.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n, Q)
        """
        return self._ask(gtm.posterior_mode, X)

    def posterior_covariance(self, X: Any) -> FloatArray:
        """Spread of the posterior about its mean in latent space.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n, Q, Q)
        """
        return self._ask(gtm.posterior_covariance, X)

    def mode_distance(self, X: Any) -> FloatArray:
        """Distance in latent space from posterior mean to posterior mode, in units of the node spacing.

        A row whose posterior has one narrow mode scores below 1; a score of several means that the
        posterior has several modes, or a long tail, and that its mean may lie between them.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n,)
        """
        distance = self._ask(gtm.mode_distance, X)
        return distance / distance.dtype.type(self.latent_.spacing)

    def sample(self, n: int = 1, *, random_state: RandomState = None) -> FloatArray:
        """Rows drawn from the density.

        Parameters
        ----------
        n : int, default=1
            How many.
        random_state : int, RandomState or Generator, default=None
            Seed.

        Returns
        -------
        ndarray of shape (n, D)
        """
        check_is_fitted(self)
        if not integer(0).test(n):
            raise InvalidParameterError(f"n must be {integer(0).words}, got {n!r}")
        model = self._model
        rows, _ = gtm.sample(model, self._parameters(), n, as_generator(random_state))
        return rows + self.offset_

    def noise_covariance(self, axes: Any = None) -> FloatArray:
        """Covariance of the noise at each node.

        Parameters
        ----------
        axes : array-like of shape (D, a), default=None
            Directions along which to see it, as columns; None is all columns of the data, which takes D² numbers
            for each node.

        Returns
        -------
        ndarray of shape (K, a, a)
        """
        check_is_fitted(self)
        seen = np.eye(self.n_features_in_) if axes is None else np.asarray(axes, dtype=np.float64)
        if seen.ndim != 2 or len(seen) != self.n_features_in_ or not np.isfinite(seen).all():
            raise InvalidParameterError(
                f"axes must be finite and of shape ({self.n_features_in_}, a), one row for each column of the data; "
                f"got shape {seen.shape}"
            )
        return self._model.noise.covariance(self._model.surface, self._parameters(), seen)

    @property
    def folds_(self) -> Folds:
        """Fold and warp diagnostics at the nodes."""
        check_is_fitted(self)
        nodes, domain = self.latent_.nodes, self.latent_.domain
        return find_folds(self._jacobian(nodes), domain.frame(nodes), self.latent_.edges)

    # --------------------------------------------------------------------------------------- plumbing

    def _ask(self, question: Callable[[gtm.GTMModel, Rows, Parameters], R], X: Any) -> R:
        """Put a question about the posterior to each row."""
        table = self._table(X)
        return question(self._model, self._rows(table), self._parameters())

    def _latent_of(self, table: FloatArray) -> FloatArray:
        return gtm.posterior_mean(self._model, self._rows(table), self._parameters())

    def _detail(self) -> float:
        return self._model.surface.basis.detail

    def _point(self, Z: FloatArray) -> FloatArray:
        return self._model.surface.point(Z, self.weights_) + self.offset_

    def _jacobian(self, Z: FloatArray) -> FloatArray:
        return self._model.surface.jacobian(Z, self.weights_)

    def _parameters(self) -> Parameters:
        return Parameters(self.weights_, 1.0 / self.noise_variance_)

    def _rows(self, table: FloatArray) -> Rows:
        return as_rows(table, self.offset_, None, width=self._room * self.latent_.n_nodes)
