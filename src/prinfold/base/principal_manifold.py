"""Base of every principal manifold: methods that need only its map and Jacobian."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

from prinfold._typing import BoolArray, FloatArray, Mesh, Stretch
from prinfold.base.callbacks import CallbackSupportMixin, forward_to_callbacks
from prinfold.base.checkpoint import open_log
from prinfold.base.file_requirements import TRAINING
from prinfold.base.stored_estimator import StoredEstimator
from prinfold.base.surface_geometry import SurfaceGeometry, over_all_columns
from prinfold.citations import Citations, cite
from prinfold.exceptions import (
    Advice,
    InterruptedWarning,
    InvalidDataError,
    Message,
    OutOfDomainError,
    quantity,
)
from prinfold.files.kinds import Kinds
from prinfold.files.latent_kinds import LATENT_SPACE
from prinfold.geometry.metric import stretch
from prinfold.geometry.projection import Projection
from prinfold.latent import LatentSpace
from prinfold.latent.cloud import clip_mesh
from prinfold.latent.occupied_region import has_open_corners, occupied_region
from prinfold.loops import Listeners, Outcome, StopReason, progress_for
from prinfold.validation.failures import gate_verbs
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.settings import Constraint, check_parameters
from prinfold.validation.tables import check_latent, check_table, has_gaps


@gate_verbs
@fill_parameter_docs
class PrincipalManifold(CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of all estimators: a fitted one has ``latent_``, a map ``_point`` and its ``_jacobian``."""

    _constraints: ClassVar[dict[str, Constraint]]
    """What each parameter may be; every method says it for all of its own."""
    _stored: ClassVar[Kinds] = {
        "latent_": LATENT_SPACE,
        **TRAINING,
    }
    _accept_sparse: ClassVar[bool] = False
    _accept_missing: ClassVar[bool] = False
    _follows_far_rows: ClassVar[bool] = False
    """Whether a row far from all others is given a part of the map."""
    _scales_columns: ClassVar[bool] = False
    """Whether columns are scaled in the fit, so that their units do not matter."""
    _dimension: ClassVar[int | None] = None
    """Dimension of the surface where the method has but one, such as 1 for curves; None where ``n_components`` says."""
    latent_: LatentSpace
    max_iter: int
    tol: float
    verbose: int
    """Parameters of every method, also of one that finds its surface in a single step."""

    _takes_blocks: ClassVar[bool] = False
    """Whether a fit reads rows block by block, and so takes all rows of a Dask collection."""

    _takes_sequences: ClassVar[bool] = False
    """Whether rows may belong together in sequences, which ``lengths`` or ``groups`` tell apart."""

    # ------------------------------------------------------------------ what a method must provide

    @abstractmethod
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit the surface."""

    @abstractmethod
    def transform(self, X: Any) -> FloatArray:
        """Latent coordinates of rows."""

    @abstractmethod
    def _point(self, Z: FloatArray) -> FloatArray:
        """Points of the surface at valid latent coordinates, float64."""

    @abstractmethod
    def _jacobian(self, Z: FloatArray) -> FloatArray:
        """Derivative of :meth:`_point`, float64."""

    def _restore(self) -> None:
        """Make of ``_stored`` what a file does not hold, and refuse parts that do not fit; ``load`` calls it."""
        check_parameters(self, self._constraints)

    # ------------------------------------------------------------------------------- between spaces

    def inverse_transform(self, Z: Any, *, extrapolate: bool = False) -> FloatArray:
        """Points of the surface at latent coordinates.

        Parameters
        ----------
        Z : array-like of shape (n, Q)
            Latent coordinates; angles, and arc length round a closed curve, may be given in any turn.
        {extrapolate.refused}

        Returns
        -------
        ndarray of shape (n, D)
        """
        return self._data_points(self._valid_latent(Z, extrapolate))

    def project(self, X: Any) -> FloatArray:
        """Nearest point of the continuous surface to each row; over the cells that it has, where a model takes gaps.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n, D)
        """
        table = self._table_with_distances(X)
        found = self._nearest_of_all(table)
        return self._data_points(found.latent, found.points).astype(table.dtype, copy=False)

    def reconstruct(self, X: Any) -> FloatArray:
        """``inverse_transform(transform(X))``: the model's own round trip.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n, D)
        """
        table = self._table(X)
        Z = np.asarray(self._latent_of(table), dtype=np.float64)
        return self._data_points(self.latent_.domain.retract(Z)).astype(table.dtype, copy=False)

    def projection_error(self, X: Any) -> float:
        """Mean squared distance from rows to the surface; comparable between methods.

        Where a model takes gaps, the squared distance of a row over the m cells that it has counts
        (D − q) / (m − q) times, for a surface of q dimensions in D columns. Rows with q cells or fewer are left out.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        float
        """
        table = self._table_with_distances(X)
        squared = self._nearest_of_all(table).squared_distance
        if not has_gaps(table):
            return float(squared.mean())
        squared = over_all_columns(squared, ~np.isnan(table), self.latent_.dimension)
        if np.isnan(squared).all():
            raise InvalidDataError(
                f"no row has more than {quantity(self.latent_.dimension, 'known cell')}, but a distance from a surface "
                f"of {quantity(self.latent_.dimension, 'dimension')} needs more; give rows with fewer gaps"
            )
        return float(np.nanmean(squared))

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the projection error, so that higher is better.

        Parameters
        ----------
        X : array-like of shape (n, D)
        y : ignored

        Returns
        -------
        float
        """
        return -self.projection_error(X)

    # -------------------------------------------------------------------------- shape of the surface

    def jacobian(self, Z: Any, *, extrapolate: bool = False) -> FloatArray:
        """Derivative ∂x/∂z of the map at latent coordinates.

        Parameters
        ----------
        Z : array-like of shape (n, Q)
        {extrapolate}

        Returns
        -------
        ndarray of shape (n, D, Q)
        """
        return self._data_jacobian(self._valid_latent(Z, extrapolate))

    def magnification(self, Z: Any, *, extrapolate: bool = False) -> Stretch:
        """Stretch of latent space by the map: the volume factor √det(JᵀJ), and along which axes.

        Parameters
        ----------
        Z : array-like of shape (n, Q)
        {extrapolate}

        Returns
        -------
        Stretch
            ``factor`` (n,), ``directions`` (n, Q, q) as columns, longest first, ``lengths`` (n, q).
        """
        Z = self._valid_latent(Z, extrapolate)
        inside = self._geometry().inside  # lengths are the same in the few columns that a surface in wide tables spans
        jacobian = self._jacobian if inside is None else inside.jacobian
        return stretch(jacobian(Z), self.latent_.domain.frame(Z))

    def mesh(self, resolution: int | None = None, *, X: Any = None) -> Mesh:
        """The surface cut into simplices: segments of a curve, triangles of a surface.

        Parameters
        ----------
        resolution : int, default=None
            Vertices along each latent axis; None takes a fine mesh up to three dimensions and the
            nodes themselves beyond.
        X : array-like of shape (n, D), default=None
            Rows; a surface on an open lattice of two dimensions is cut where they end. None takes all of it.

        Returns
        -------
        Mesh
            ``vertices`` (V, D), ``latent`` (V, Q), ``faces`` (F, q + 1).
        """
        check_is_fitted(self)
        found = self._mesh(resolution)
        if X is None or not has_open_corners(self.latent_):
            return found._replace(vertices=self._data_points(found.latent, found.vertices))
        latent, faces = clip_mesh(occupied_region(self._latent_of(self._table(X))).domain, found.latent, found.faces)
        return Mesh(self._data_points(latent), latent, faces)

    # ------------------------------------------------------------------------------------ outer layers

    def plot(self, X: Any = None, **options: Any) -> Any:
        """Draw the most telling picture of the model; see :func:`prinfold.plot.model`.

        Parameters
        ----------
        {X.shown}
        **options
            Passed on, such as ``labels=``, ``values=`` and ``ax=``.

        Returns
        -------
        matplotlib.axes.Axes
        """
        from prinfold.plot import model  # lazy: plotting is an outer layer and an optional extra

        return model(self, X, **options)

    def explore(self, X: Any = None, path: str | os.PathLike[str] | None = "map.html", **options: Any) -> Any:
        """Write a page on which to move over the map and see the surface live; see :func:`prinfold.explore`.

        Parameters
        ----------
        {X.shown}
        path : str, path or None, default="map.html"
            Where to write the page; None writes nothing.
        **options
            Passed on, such as ``labels=``, ``values=`` and ``image_shape=``.

        Returns
        -------
        prinfold.explorer.Page
        """
        from prinfold.explorer import explore  # lazy: pages are an outer layer

        return explore(self, X, path, **options)

    def _repr_html_inner(self) -> str:
        """HTML for a notebook: scikit-learn's diagram and, once fitted, a summary with a small map."""
        return str(super()._repr_html_inner()) + self._summary()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """HTML and plain text, for notebooks that ask for all forms at once."""
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:  # left out where the diagram is switched off
            bundle["text/html"] += self._summary()
        return bundle

    def _summary(self) -> str:
        try:
            check_is_fitted(self)
        except NotFittedError:
            return ""
        from prinfold.notebook import summary  # lazy: pictures are an outer layer

        return summary(self)

    save = StoredEstimator.save

    def cite(self) -> Citations:
        """Citations for this model; see :func:`prinfold.cite`.

        Returns
        -------
        Citations
            Prints as plain text; ``.bibtex`` holds the entries for a ``.bib`` file.
        """
        return cite(self)

    # --------------------------------------------------------------------------------------- plumbing

    def _geometry(self) -> SurfaceGeometry:
        """The surface for meshes and nearest points; subclasses add detail, curvature and starts."""
        return SurfaceGeometry(self.latent_, self._point, self._jacobian)

    def _latent_of(self, table: FloatArray) -> FloatArray:
        """Latent coordinates of checked rows: those of the nearest points, unless a method has others."""
        return self._nearest(table).latent.astype(table.dtype, copy=False)

    def _mesh(self, resolution: int | None = None) -> Mesh:
        """The surface cut into simplices, where ``_point`` has it."""
        return self._geometry().mesh(resolution)

    def _nearest(self, table: FloatArray) -> Projection:
        """Nearest points of the surface to rows."""
        return self._geometry().nearest(table)

    def _nearest_measured(self, table: FloatArray) -> Projection:
        """Nearest points of the surface to rows with gaps, over the cells that they have."""
        return self._geometry().nearest_measured(table)

    def _nearest_of_all(self, table: FloatArray) -> Projection:
        """Nearest points of the surface to rows with gaps and to those without."""
        if not has_gaps(table):
            return self._nearest(table)
        gaps = np.isnan(table).any(axis=1)
        n, (Q, D) = len(table), (self.latent_.n_columns, table.shape[1])
        found = Projection(np.empty((n, Q)), np.empty((n, D)), np.empty(n), np.empty(n, dtype=bool))
        for some, nearest in ((gaps, self._nearest_measured), (~gaps, self._nearest)):
            if some.any():
                for whole, own in zip(found, nearest(table[some]), strict=True):
                    whole[some] = own
        return found

    def _data_points(self, Z: FloatArray, points: FloatArray | None = None) -> FloatArray:
        """Points in data space at latent coordinates; ``points`` are those of ``_point``, if known already."""
        return self._point(Z) if points is None else points

    def _data_jacobian(self, Z: FloatArray) -> FloatArray:
        """Derivative of :meth:`_data_points`."""
        return self._jacobian(Z)

    def _train_with_callbacks(
        self, table: FloatArray, attributes: Callable[[Any], dict[str, Any]], loop: Callable[..., Outcome[Any]]
    ) -> Outcome[Any]:
        """Run the training loop with progress and callbacks, and set the fitted attributes of its outcome.

        ``attributes`` makes fitted attributes from a state. They are set together at the end, so that a fit that fails
        leaves none behind.
        """
        outcome = self._run_with_callbacks(table, attributes, loop)
        self._keep(attributes(outcome.state), outcome)
        return outcome

    def _run_with_callbacks(
        self,
        table: FloatArray,
        attributes: Callable[[Any], dict[str, Any]],
        loop: Callable[..., Outcome[Any]],
        *,
        callbacks: bool = True,
    ) -> Outcome[Any]:
        """Run a training loop with progress, and with callbacks unless they are to hear of another one."""
        each: list[Any] = progress_for(int(self.verbose), type(self).__name__) if self.verbose else []
        heard, log = getattr(self, "_skl_callbacks", ()) if callbacks else (), None
        if heard:
            each += forward_to_callbacks(self, table, self.max_iter, attributes)
            log = open_log(heard, self, table)
        listeners = Listeners(tuple(each), log)
        outcome = loop(max_iter=self.max_iter, tol=self.tol, listeners=listeners)
        for listener in each:
            listener.close(str(outcome.reason))
        return outcome

    def _keep(self, attributes: dict[str, Any], outcome: Outcome[Any]) -> None:
        """Set the fitted attributes, and how training went; what ended it before its time is raised after that."""
        self._set(attributes)
        self.n_iter_ = outcome.n_iter
        self.converged_ = outcome.converged
        self.stop_reason_ = outcome.reason
        self.history_ = outcome.history
        if outcome.failure is not None:
            raise outcome.failure

    def _set(self, attributes: dict[str, Any]) -> None:
        for name, value in attributes.items():
            setattr(self, name, value)

    def _stopping_warnings(self) -> list[tuple[str, type[Warning]]]:
        """Warnings about the end of training: interrupted, or stopped at ``max_iter``."""
        if self.stop_reason_ is StopReason.INTERRUPTED:
            after = f"interrupted after {quantity(self.n_iter_, 'iteration')}"
            return [(str(self.stop_reason_).replace("interrupted", after, 1), InterruptedWarning)]
        if self.stop_reason_ is StopReason.MAX_ITER and self.tol > 0:
            more = Advice("max_iter", words=f"raise {{}} (now {self.max_iter})")
            coarser = Advice("tol", words=f"raise {{}} (now {self.tol:g})")
            return [(Message(self.stop_reason_.plain, more, coarser), ConvergenceWarning)]
        return []

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "latent_")

    def _table(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        return check_table(self, X, reset=False, accept_sparse=self._accept_sparse, accept_missing=self._accept_missing)

    def _table_with_distances(self, X: Any) -> FloatArray:
        """Checked rows of which all columns have distances."""
        return self._table(X)

    def _valid_latent(self, Z: Any, extrapolate: bool) -> FloatArray:
        check_is_fitted(self)
        latent = check_latent(Z, self.latent_.n_columns)
        outside: BoolArray = ~self.latent_.domain.contains(latent)
        if outside.any() and not extrapolate:
            row = int(np.flatnonzero(outside)[0])
            raise OutOfDomainError(
                f"{int(outside.sum())} latent coordinate(s) lie outside the domain of the model, the first being "
                f"row {row}: {latent[row]}; bring them inside, or pass extrapolate=True to evaluate the map there"
            )
        return latent

    @property
    def _column_kinds(self) -> Any:
        """Columns with their kinds, where they may be levels and counts; None where all are numbers."""
        return None

    @property
    def _n_features_out(self) -> int:
        return self.latent_.n_columns

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = self._accept_sparse
        tags.input_tags.allow_nan = self._accept_missing
        return tags
