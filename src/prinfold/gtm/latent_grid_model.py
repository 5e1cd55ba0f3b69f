"""The GTM family: a mixture on a grid of latent nodes, fitted by EM, and the verbs that all its members share.

``fit`` is here, and what a posterior over latent space says of rows. A member says what it is made of: ``_recipe``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prinfold._typing import FloatArray, RandomState
from prinfold.base.block_surveys import refuse_blocks, survey_table
from prinfold.base.callbacks import fit_method
from prinfold.base.file_requirements import explain_misfits, require_parts
from prinfold.base.principal_manifold import PrincipalManifold
from prinfold.base.surface_geometry import SurfaceGeometry
from prinfold.basis_maps.bases import BASIS, carries_prior
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.basis_maps.default_sizes import LATENTS
from prinfold.basis_maps.linear_geometry import linear_geometry
from prinfold.devices import Device
from prinfold.exceptions import InvalidParameterError
from prinfold.files.kinds import Kinds, numbers, positive
from prinfold.geometry.folds import Folds
from prinfold.gtm import fitting
from prinfold.gtm import model as gtm
from prinfold.gtm import posterior as posteriors
from prinfold.gtm.block_input import refuse_arrays_beside, score_blocks
from prinfold.gtm.fitting import FEWEST_ROWS, GivenRows
from prinfold.gtm.gaussian_process_training import with_process_prior
from prinfold.gtm.noise.protocol import AnyNodes, Parameters
from prinfold.gtm.noise.recipes import ColumnSpread, spread_of_model
from prinfold.gtm.recipe import FittedMap, Recipe, TrainingJob
from prinfold.gtm.starts.first_parameters import STARTS
from prinfold.gtm.trainers.trainers import BATCH
from prinfold.gtm.warnings import Check, about_device, about_fit, node_folds, warn_about_empty_rows, warn_all
from prinfold.latent import LatentSpace
from prinfold.rows.blocks import Blocks
from prinfold.rows.rows import Rows, as_rows
from prinfold.validation.memory_limits import check_draws
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.refusals import refuse_containers, refuse_empty_columns
from prinfold.validation.settings import (
    Constraint,
    as_generator,
    axis_counts,
    check_parameters,
    flag,
    instance_of,
    integer,
    nothing,
    one_of,
    random_state,
    real,
)
from prinfold.validation.tables import as_numbers, check_errors, check_table, check_weight, forget, has_gaps

R = TypeVar("R")

_MOST_FEATURES = 2**28
"""Largest number of nodes × basis functions that a file may have: no trained model has more."""


@fill_parameter_docs
class LatentGridModel(PrincipalManifold):
    """A mixture on a grid of latent nodes: fitted, it has ``_model``, ``weights_``, ``offset_`` and the noise."""

    _stored: ClassVar[Kinds] = {
        **PrincipalManifold._stored,
        "basis_": BASIS,
        "weights_": numbers("M", "n_features_in_"),
        "offset_": numbers("n_features_in_"),
        "noise_variance_": positive,
        "node_mass_": nothing
        | numbers("latent_.n_nodes", least=0)
        | numbers("latent_.n_nodes", "n_features_in_", least=0),
    }
    _added: ClassVar[dict[str, Any]] = {"node_mass_": None}
    _follows_far_rows: ClassVar[bool] = True
    _constraints: ClassVar[dict[str, Constraint]] = {
        "n_components": integer(1, 32),
        "nodes": nothing | axis_counts | instance_of(LatentSpace, np.ndarray, words="an array or latent space"),
        "basis": nothing | axis_counts | BASIS,
        "width": real(0, above=True),
        "latent": nothing | one_of(LATENTS) | instance_of(LatentSpace, words="a latent space"),
        "regularization": nothing | real(0),
        "prior_precision": nothing | real(0),
        "penalize_bias": flag,
        "noise_floor": real(0, above=True),
        "init": one_of(STARTS) | instance_of(np.ndarray, words="an array of latent coordinates"),
        "max_iter": integer(0),
        "tol": real(0),
        "relaxation": real(1),
        "random_state": random_state,
        "verbose": integer(0) | flag,
    }
    _checks: ClassVar[tuple[Check, ...]] = ()
    """Further checks of a fitted model, each of which may warn, that a member of the family adds."""
    _accept_sparse: ClassVar[bool] = True
    _takes_blocks: ClassVar[bool] = False
    _numbers_per_node: ClassVar[int] = 1
    """Numbers per row and node for which a block is cut to size."""
    _model: gtm.GTMModel
    weights_: FloatArray
    offset_: FloatArray
    noise_variance_: float
    node_mass_: FloatArray | None

    # ---------------------------------------------------------------------------------------- fitting

    @fit_method
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, errors: Any = None) -> Self:
        """Fit the surface by expectation maximisation.

        Parameters
        ----------
        X : array-like of shape (n, D) or Blocks
            Rows of numbers; a frame, Arrow table, array, memory map or sparse matrix, which is filled in block by
            block only. Cells that are missing are NaN. :class:`~prinfold.Blocks` are read once for each iteration,
            and never held.
        y : ignored
        {sample_weight}
        {errors.added}

        Returns
        -------
        self
        """
        check_parameters(self, self._constraints)
        forget(self)
        assemble = self._assemble_blocks if isinstance(X, Blocks) else self._assemble_table
        self._train_and_warn(*assemble(X, sample_weight, errors))
        return self

    def transform(self, X: Any, *, errors: Any = None) -> FloatArray:
        """Posterior mean of each row in latent space.

        On a line, grid, circle, cylinder or torus whose nodes lie far apart for the noise, the posterior is taken
        between the nodes too, in the cells that matter to a row. The mean of the nodes alone is
        ``responsibilities(X) @ latent_.nodes``.

        Parameters
        ----------
        X : array-like of shape (n, D)
        {errors}

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
        {errors}

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
        {errors}

        Returns
        -------
        float
        """
        if isinstance(X, Blocks):
            check_is_fitted(self)
            return score_blocks(self, self._encode_blocks(X), errors)
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
        {errors}

        Returns
        -------
        ndarray or csr_matrix of shape (n, K)
        """
        if threshold is None:
            return self._ask(posteriors.responsibilities, X, errors)
        return self._ask(partial(posteriors.sparse_responsibilities, threshold=threshold), X, errors)

    def posterior_mode(self, X: Any, *, errors: Any = None) -> FloatArray:
        """The place with the largest posterior weight for each row.

        It is a node, or where nodes lie far apart for the noise one of the points between them that
        :meth:`transform` takes.

        Parameters
        ----------
        X : array-like of shape (n, D)
        {errors}

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
        {errors}

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
        {errors}

        Returns
        -------
        ndarray of shape (n,)
        """
        distance = self._ask(posteriors.mode_distance, X, errors)
        return distance / distance.dtype.type(self.latent_.spacing)

    def impute(self, X: Any, *, errors: Any = None, return_std: bool = False) -> Any:
        """Rows with missing cells filled in: the expectation of each cell given what was measured of its row.

        Parameters
        ----------
        {X.gaps}
        {errors}
        {return_std}

        Returns
        -------
        ndarray of shape (n, D)
            The rows; what was measured stays as it is.
        ndarray of shape (n, D)
            Standard deviation of each cell about its expectation, 0 where it was measured. Only with
            ``return_std``.
        """
        table = self._table(X)
        complete = lambda: self._completion(self._rows(table, check_errors(errors, table, self)))  # noqa: E731
        found, deviation = posteriors.fill_missing_cells(table, complete)
        return (found, deviation) if return_std else found

    def _completion(self, rows: Rows) -> posteriors.Completion:
        mean, variance = self._ask_rows(posteriors.completion, rows)
        return mean + self.offset_, variance

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None, *, errors: Any = None) -> FloatArray:
        """Fit the surface, then give the posterior mean of each row in latent space.

        Parameters
        ----------
        X : array-like of shape (n, D)
        y : ignored
        {sample_weight.of_fit}
        {errors}

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
        {n}
        {random_state}

        Returns
        -------
        ndarray of shape (n, D)
        """
        check_is_fitted(self)
        check_draws(n, self.n_features_in_)
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
        seen = np.eye(self.n_features_in_) if axes is None else as_numbers("axes", axes)
        if seen.ndim != 2 or len(seen) != self.n_features_in_ or not np.isfinite(seen).all():
            raise InvalidParameterError(
                f"axes must be finite and of shape ({self.n_features_in_}, a), one row for each column of the data; "
                f"got shape {seen.shape}"
            )
        return self._nodes_with_noise().covariance(seen)

    @property
    def folds_(self) -> Folds:
        """Fold and warp diagnostics at the nodes."""
        check_is_fitted(self)
        return node_folds(self._model, self._parameters())

    # ------------------------------------------------------------------------------------------------ rows

    def _ask(self, question: Callable[[gtm.GTMModel, Rows, Parameters], R], X: Any, errors: Any = None) -> R:
        """The result of ``question``, a function of model, rows and parameters, for checked rows."""
        table = self._table(X)
        return self._ask_rows(question, self._rows(table, check_errors(errors, table, self)))

    def _ask_rows(self, question: Callable[[gtm.GTMModel, Rows, Parameters], R], rows: Rows) -> R:
        if rows.gaps:
            self._warn_about_empty_rows(rows.table)
        return question(self._model_for(rows, self._model), rows, self._parameters())

    def _rows(self, table: FloatArray, errors: FloatArray | None = None) -> Rows:
        width = self._numbers_per_node * self.latent_.n_nodes
        return as_rows(
            table, self.offset_, None, width=width, gaps=has_gaps(table), errors=errors, device=self._device()
        )

    def _device(self) -> Device | None:
        """The device on which passes over rows are computed; None for the processor."""
        return None

    def _encode_blocks(self, blocks: Blocks) -> Blocks:
        """Blocks as numbers, whatever their columns hold."""
        return blocks

    _model_for = staticmethod(fitting.model_for_gaps)

    def _warn_about_empty_rows(self, table: FloatArray) -> None:
        warn_about_empty_rows(table)

    # ------------------------------------------------------------------------------------------------- map

    def _latent_of(self, table: FloatArray) -> FloatArray:
        return self._ask_rows(posteriors.posterior_mean, self._rows(table))

    def _geometry(self) -> SurfaceGeometry:
        return linear_geometry(self._model.surface, self.weights_, self.offset_)

    def _point(self, Z: FloatArray) -> FloatArray:
        return self._model.surface.point(Z, self.weights_) + self.offset_

    def _jacobian(self, Z: FloatArray) -> FloatArray:
        return self._model.surface.jacobian(Z, self.weights_)

    def _parameters(self) -> Parameters:
        return self._model.noise.restore(self.weights_, self.noise_variance_, {})

    def _nodes_with_noise(self) -> AnyNodes:
        """The nodes with the noise about each."""
        return self._model.noise.at_nodes(self._model.surface, self._parameters())

    def _node_prior(self) -> FloatArray:
        """(K,) prior probability of each node: 1/K (3.3), unless the noise has others."""
        K, noise = self.latent_.n_nodes, self._model.noise
        if (shares := noise.capabilities.node_shares) is not None:
            return shares.of(noise.at_nodes(self._model.surface, self._parameters()))
        return np.full(K, 1.0 / K)

    # ---------------------------------------------------------------------------------------------- training

    @abstractmethod
    def _recipe(self, places: FloatArray | None = None, **parts: Any) -> Recipe:
        """The recipe of a fit, with ``parts`` put in place of others.

        ``places`` are latent coordinates of the rows to begin with, if given.
        """

    def _assemble_table(self, X: Any, sample_weight: Any, errors: Any) -> tuple[Recipe, TrainingJob]:
        """Check a table; returns the recipe of a fit and its job on the rows that count."""
        table = self._training_table(X, sample_weight)
        weight, known = check_weight(sample_weight, table), check_errors(errors, table, self)
        given = GivenRows(table, weight, known, fitting.given_places(self.init, table.shape[0]))
        gaps = has_gaps(table)
        if gaps:
            self._warn_about_empty_rows(table)
        kept = fitting.rows_that_count(table, weight, gaps=gaps)
        if kept is not None and not isinstance(table, np.memmap):  # picking rows of a map would read them all
            given = given.choose(kept)
        if gaps and has_gaps(given.table):
            refuse_empty_columns(given.table, getattr(self, "feature_names_in_", None))
        recipe = self._recipe(given.places)
        return recipe, fitting.assemble(recipe, *given[:3])

    def _training_table(self, X: Any, sample_weight: Any) -> FloatArray:
        """The rows to be fitted, checked."""
        accepted = {"accept_sparse": self._accept_sparse, "accept_missing": self._accept_missing}
        return check_table(self, X, reset=True, min_rows=FEWEST_ROWS, **accepted)

    def _assemble_blocks(self, blocks: Blocks, sample_weight: Any, errors: Any) -> tuple[Recipe, TrainingJob]:
        """Make a first pass over rows that are read once for each iteration; returns recipe and job of a fit."""
        refuse_blocks(self, blocks)
        refuse_arrays_beside(self.init, errors)
        survey = survey_table(self, blocks, sample_weight, FEWEST_ROWS)
        recipe = self._recipe()
        return recipe, fitting.assemble_blocks(recipe, survey)

    def _train(self, recipe: Recipe, job: TrainingJob) -> FittedMap:
        """Train by a recipe, and set the fitted attributes."""
        found = recipe.fit(recipe, job, self._run_with_callbacks)
        self._keep(found.attributes, found.outcome)
        return found

    def _train_and_warn(self, recipe: Recipe, job: TrainingJob) -> None:
        warn_all(about_device(job.model.noise, job.rows))
        found = self._train(recipe, job)
        warn_all(about_fit(self, fitting.on_rows(recipe, found, job.rows.sample)))

    # ------------------------------------------------------------------------------------------- model files

    def _restore(self) -> None:
        """Rebuild the attributes that files leave out; an error for parts that do not fit together."""
        check_parameters(self, self._constraints)
        with explain_misfits("latent_ and basis_"):
            surface = BasisMap(self.latent_, self.basis_.bind(self.latent_))
        require_parts(self._map_parts(len(surface.penalty_mask)))
        require_parts({"weights_ of a finite surface": bool(np.isfinite(surface.nodes(self.weights_)).all())})
        self._model = self._remake_model(surface, self._stored_spread())
        if carries_prior(self.basis_):
            require_parts({"a basis_ with a length_scale": self.basis_.length_scale is not None})
            self._model = with_process_prior(self._model, self.basis_, 1.0, penalized=self.basis_.variance is None)

    def _map_parts(self, n_weights: int) -> dict[str, bool]:
        """Whether weights and history suit the basis, of ``n_weights`` functions, and the training."""
        entries = {len(each) for each in self.history_.values()}
        return {
            f"weights_ with {n_weights} rows, as basis_ has functions on latent_": len(self.weights_) == n_weights,
            # Of a stream only what came last is kept.
            "a history_ no longer than n_iter_": bool(entries) and 0 < max(entries) <= self.n_iter_ + 1,
            "latent_ and basis_ that fit in memory": self.latent_.n_nodes * n_weights <= _MOST_FEATURES,
        }

    def _remake_model(self, surface: BasisMap, spread: ColumnSpread) -> gtm.GTMModel:
        """The model rebuilt from fitted attributes, on reading a file."""
        return fitting.model_of_spread(self._recipe(trainer=BATCH), surface, spread)

    def _stored_spread(self) -> ColumnSpread:
        """Spread of the data, as far as the model or its file tells it."""
        return spread_of_model(float(np.min(self.noise_variance_)), self.n_features_in_)
