"""The verbs that every member of the GTM family shares: what the posterior over latent space says of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_is_fitted

from prinfold._typing import FloatArray, RandomState
from prinfold.base.nearest_point import SurfaceGeometry
from prinfold.base.principal_manifold import PrincipalManifold
from prinfold.basis_maps.linear_geometry import linear_geometry
from prinfold.exceptions import DegenerateWarning, InvalidParameterError, UnsupportedInputError, warn_caller
from prinfold.geometry.folds import Folds, find_folds
from prinfold.gtm import model as gtm
from prinfold.gtm import posterior as posteriors
from prinfold.gtm.block_input import mean_over_blocks
from prinfold.gtm.noise.protocol import Parameters
from prinfold.rows.blocks import Blocks
from prinfold.rows.rows import Rows, as_rows
from prinfold.validation.refusals import refuse_containers
from prinfold.validation.settings import as_generator, check_setting, fraction, integer
from prinfold.validation.tables import check_errors, has_gaps

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
    _takes_blocks: ClassVar[bool] = False
    _room: ClassVar[int] = 1
    """Numbers per row and node for which a block is cut to size."""
    _model: gtm.GTMModel
    weights_: FloatArray
    offset_: FloatArray
    noise_variance_: float
    node_mass_: FloatArray | None

    def transform(self, X: Any, *, errors: Any = None) -> FloatArray:
        """Posterior mean of each row in latent space.

        On a line, grid, circle, cylinder or torus whose nodes lie far apart for the noise, the posterior is taken
        between the nodes too, in the cells that matter to a row. The mean of the nodes alone is
        ``responsibilities(X) @ latent_.nodes``.

        Parameters
        ----------
        X : array-like of shape (n, D)
        errors : array-like of shape (n, D) or (n,), default=None
            Standard deviations of the cells, or of all cells of a row, where they are known.

        Returns
        -------
        ndarray of shape (n, Q)
        """
        return self._ask(posteriors.posterior_mean, X, errors)

    def score_samples(self, X: Any, *, errors: Any = None) -> FloatArray:
        """Log-likelihood of each row.

        Parameters
        ----------
        X : array-like of shape (n, D)
        errors : array-like of shape (n, D) or (n,), default=None
            Standard deviations of the cells, or of all cells of a row, where they are known.

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._ask(posteriors.log_likelihood, X, errors)

    def score(self, X: Any, y: Any = None, *, errors: Any = None) -> float:
        """Mean log-likelihood of the rows.

        Parameters
        ----------
        X : array-like of shape (n, D) or Blocks
        y : ignored
        errors : array-like of shape (n, D) or (n,), default=None
            Standard deviations of the cells, or of all cells of a row, where they are known.

        Returns
        -------
        float
        """
        if isinstance(X, Blocks):
            return self._score_blocks(X, errors)
        return float(np.mean(self.score_samples(X, errors=errors), dtype=np.float64))

    def responsibilities(self, X: Any, threshold: float | None = None, *, errors: Any = None) -> Any:
        """Posterior weight of every node for each row.

        Parameters
        ----------
        X : array-like of shape (n, D)
        threshold : float, default=None
            Weights below it are left out, and a sparse matrix is returned: with 1e-6 a row keeps some dozens of
            nodes, so that millions of rows serve as fingerprints. What is left is not scaled up, and a row none of
            whose weights is so large keeps nothing. Of maps of many nodes weights below 1e-9 may be left out in any
            case.
        errors : array-like of shape (n, D) or (n,), default=None
            Standard deviations of the cells, or of all cells of a row, where they are known.

        Returns
        -------
        ndarray or csr_matrix of shape (n, K)
        """
        if threshold is None:
            return self._ask(posteriors.responsibilities, X, errors)
        check_setting("threshold", threshold, fraction)
        return self._ask(partial(posteriors.sparse_responsibilities, threshold=threshold), X, errors)

    def posterior_mode(self, X: Any, *, errors: Any = None) -> FloatArray:
        """The place with the largest posterior weight for each row.

        It is a node, or where nodes lie far apart for the noise one of the points between them that
        :meth:`transform` takes.

        Parameters
        ----------
        X : array-like of shape (n, D)
        errors : array-like of shape (n, D) or (n,), default=None
            Standard deviations of the cells, or of all cells of a row, where they are known.

        Returns
        -------
        ndarray of shape (n, Q)
        """
        return self._ask(posteriors.posterior_mode, X, errors)

    def posterior_covariance(self, X: Any, *, errors: Any = None) -> FloatArray:
        """Spread of the posterior about its mean in latent space, between the nodes too as in :meth:`transform`.

        Parameters
        ----------
        X : array-like of shape (n, D)
        errors : array-like of shape (n, D) or (n,), default=None
            Standard deviations of the cells, or of all cells of a row, where they are known.

        Returns
        -------
        ndarray of shape (n, Q, Q)
        """
        return self._ask(posteriors.posterior_covariance, X, errors)

    def mode_distance(self, X: Any, *, errors: Any = None) -> FloatArray:
        """Distance in latent space from posterior mean to posterior mode, in units of the node spacing.

        A row whose posterior has one narrow mode scores below 1; a score of several means that the
        posterior has several modes, or a long tail, and that its mean may lie between them.

        Parameters
        ----------
        X : array-like of shape (n, D)
        errors : array-like of shape (n, D) or (n,), default=None
            Standard deviations of the cells, or of all cells of a row, where they are known.

        Returns
        -------
        ndarray of shape (n,)
        """
        distance = self._ask(posteriors.mode_distance, X, errors)
        return distance / distance.dtype.type(self.latent_.spacing)

    def impute(self, X: Any, *, errors: Any = None, return_std: bool = False) -> Any:
        """Rows with what is missing filled in: the expectation of each cell given what was measured of its row.

        Parameters
        ----------
        X : array-like of shape (n, D)
            Rows whose missing cells are NaN.
        errors : array-like of shape (n, D) or (n,), default=None
            Standard deviations of the cells, or of all cells of a row, where they are known.
        return_std : bool, default=False
            Whether to return the spread of what was filled in as well.

        Returns
        -------
        ndarray of shape (n, D)
            The rows; what was measured stays as it is.
        ndarray of shape (n, D)
            Standard deviation of each cell about its expectation, nil where it was measured. Only with
            ``return_std``.
        """
        table = self._table(X)
        if scipy.sparse.issparse(table):
            raise UnsupportedInputError("a sparse table has no missing cells; there is nothing to impute")
        missing = np.isnan(table)
        if not missing.any():
            return (table.copy(), np.zeros_like(table)) if return_std else table.copy()
        mean, variance = self._ask_rows(posteriors.completion, self._rows(table, check_errors(errors, table, self)))
        found = np.where(missing, mean + self.offset_, table).astype(table.dtype, copy=False)
        if not return_std:
            return found
        return found, np.where(missing, np.sqrt(variance), 0.0).astype(table.dtype, copy=False)

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None, *, errors: Any = None) -> FloatArray:
        """Fit the surface, then give the posterior mean of each row in latent space.

        Parameters
        ----------
        X : array-like of shape (n, D)
        y : ignored
        sample_weight : array-like of shape (n,), default=None
            Weights of the rows in the fit.
        errors : array-like of shape (n, D) or (n,), default=None
            Standard deviations of the cells, or of all cells of a row, where they are known.

        Returns
        -------
        ndarray of shape (n, Q)
        """
        if isinstance(X, Blocks):
            refuse_containers(X)  # before a long fit rather than after it
        options = {} if errors is None else {"errors": errors}
        fitted: Any = self.fit(X, y, sample_weight=sample_weight, **options)
        found: FloatArray = fitted.transform(X, **options)
        return found

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
        check_setting("n", n, integer(0))
        model = self._model
        rows, _ = posteriors.sample(model, self._parameters(), n, as_generator(random_state))
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

    def _ask(self, question: Callable[[gtm.GTMModel, Rows, Parameters], R], X: Any, errors: Any = None) -> R:
        """Put a question about the posterior to each row."""
        table = self._table(X)
        return self._ask_rows(question, self._rows(table, check_errors(errors, table, self)))

    def _ask_rows(self, question: Callable[[gtm.GTMModel, Rows, Parameters], R], rows: Rows) -> R:
        if rows.gaps:
            self._warn_of_the_unseen(rows.table)
        return question(self._for(rows, self._model), rows, self._parameters())

    def _score_blocks(self, blocks: Blocks, errors: Any) -> float:
        check_is_fitted(self)
        if errors is not None:
            raise UnsupportedInputError("errors do not go with Blocks: nothing says which block they belong to")

        def of_rows(table: FloatArray) -> FloatArray:
            rows = self._rows(table)
            return posteriors.log_likelihood(self._for(rows, self._model), rows, self._parameters())

        return mean_over_blocks(self, blocks, of_rows)

    def _latent_of(self, table: FloatArray) -> FloatArray:
        return self._ask_rows(posteriors.posterior_mean, self._rows(table))

    @staticmethod
    def _for(rows: Rows, model: gtm.GTMModel) -> gtm.GTMModel:
        """The model for those rows: where they have gaps or errors of their own, with a noise that takes them."""
        return replace(model, noise=model.noise.with_gaps()) if rows.gaps or rows.errors is not None else model

    def _warn_of_the_unseen(self, table: FloatArray) -> None:
        """Say which rows have no value at all."""
        unseen = np.flatnonzero(np.isnan(table).all(axis=1))
        if len(unseen):
            warn_caller(
                f"{len(unseen)} row(s) have no value in any column, the first being row {unseen[0]}; they teach "
                "nothing, and all that can be said of them is what the model expects of any row",
                DegenerateWarning,
            )

    def _geometry(self) -> SurfaceGeometry:
        return linear_geometry(self._model.surface, self.weights_, self.offset_)

    def _point(self, Z: FloatArray) -> FloatArray:
        return self._model.surface.point(Z, self.weights_) + self.offset_

    def _jacobian(self, Z: FloatArray) -> FloatArray:
        return self._model.surface.jacobian(Z, self.weights_)

    def _parameters(self) -> Parameters:
        return Parameters(self.weights_, 1.0 / self.noise_variance_)

    def _node_prior(self) -> FloatArray:
        """(K,) how much of the mixture each node makes up: all alike, unless the noise says otherwise."""
        K, noise = self.latent_.n_nodes, self._model.noise
        if hasattr(noise, "node_shares"):
            return np.asarray(noise.node_shares(self._model.surface, self._parameters()))
        return np.full(K, 1.0 / K)

    def _rows(self, table: FloatArray, errors: FloatArray | None = None) -> Rows:
        width = self._room * self.latent_.n_nodes
        return as_rows(table, self.offset_, None, width=width, gaps=has_gaps(table), errors=errors)
