"""One interface for all models in a comparison: principal manifolds, and transformers that have an inverse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.spatial import cKDTree
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.manifold import Isomap

from prinfold._typing import FloatArray, Mesh
from prinfold.base.principal_manifold import PrincipalManifold
from prinfold.exceptions import InvalidParameterError
from prinfold.geometry.domain import Box
from prinfold.geometry.projection import project_to_surface
from prinfold.latent import grid
from prinfold.metrics import roughness
from prinfold.pps.clamping_choice import model_roughness
from prinfold.select.missing_cells import project_by_turns
from prinfold.select.pipelines import PipelineSurface, last_step
from prinfold.validation.tables import check_table, has_gaps

_STARTS = 4
"""Training rows whose images on a transformer's surface are nearest, from which its nearest point is sought."""

_STEP = 1e-4
"""Step of the differences that stand for derivatives, relative to the extent of the latent coordinates."""

_MESH = {1: 400, 2: 25}
"""Mesh vertices along each axis on which the roughness of a transformer's surface is taken, by its dimension."""


class ComparedSurface(Protocol):
    """Interface of a fitted model in a comparison."""

    def project(self, X: FloatArray) -> FloatArray:
        """(n, D) nearest points of the surface; of rows with gaps, over the cells that they have."""

    def coordinates(self, X: FloatArray) -> FloatArray:
        """(n, q) coordinates on the map in which straight distances make sense."""

    def log_likelihood(self, X: FloatArray) -> FloatArray | None:
        """(n,) log-likelihood of rows, where the model has one."""

    def roughness(self) -> float:
        """Turning of a curve or bending of a surface, in all; NaN where nobody knows."""


@dataclass(frozen=True)
class ManifoldSurface:
    """A fitted principal manifold."""

    model: PrincipalManifold

    def project(self, X: FloatArray) -> FloatArray:
        if not has_gaps(X):
            return np.asarray(self.model.project(X), dtype=float)
        # Any surface has such points, whether or not it can be fitted to rows with gaps.
        found = self.model._nearest_of_all(X)
        return np.asarray(self.model._data_points(found.latent, found.points), dtype=float)

    def coordinates(self, X: FloatArray) -> FloatArray:
        return self.model.latent_.embed(np.asarray(self.model.transform(X), dtype=float))

    def log_likelihood(self, X: FloatArray) -> FloatArray | None:
        score = getattr(self.model, "score_samples", None)
        return None if score is None else np.asarray(score(X), dtype=float)

    def roughness(self) -> float:
        return float(model_roughness(self.model))


@dataclass(frozen=True)
class TransformerSurface:
    """A fitted transformer with an inverse: the surface is what the inverse makes of the coordinates of its rows.

    The nearest point is sought from the row's own coordinates and from those of the training rows whose images are
    nearest; the round trip alone is kept where nothing nearer is found. Of a plane the round trip is the answer.
    """

    model: Any
    X: FloatArray

    @cached_property
    def latent(self) -> FloatArray:
        return _two_columns(self.model.transform(self.X))

    @cached_property
    def _images(self) -> cKDTree:
        return cKDTree(self._point(self.latent))

    @cached_property
    def _domain(self) -> Box:
        low, high = self.latent.min(axis=0), self.latent.max(axis=0)
        return Box.of(*zip(low.tolist(), np.where(high > low, high, low + 1.0).tolist(), strict=True))

    def _point(self, Z: FloatArray) -> FloatArray:
        return np.asarray(self.model.inverse_transform(Z), dtype=float)

    def _jacobian(self, Z: FloatArray) -> FloatArray:
        return _differences(self._point, Z, _STEP * np.subtract(self._domain.high, self._domain.low))

    def project(self, X: FloatArray) -> FloatArray:
        return project_by_turns(self._project_complete, X, self._point(self.latent))

    def _project_complete(self, X: FloatArray) -> FloatArray:
        own = self.coordinates(X)
        best = self._point(own)
        k = min(_STARTS, len(self.latent))
        near = self._images.query(X, k=k)[1].reshape(len(X), k)
        starts = np.concatenate([self._domain.retract(own)[:, None], self.latent[near]], axis=1)
        found = project_to_surface(X, self._point, self._jacobian, self._domain, starts, max_iter=10, tol=1e-6).points
        nearer = np.square(X - found).sum(axis=1) < np.square(X - best).sum(axis=1)
        return np.asarray(np.where(nearer[:, None], found, best))

    def coordinates(self, X: FloatArray) -> FloatArray:
        return _two_columns(self.model.transform(X))

    def log_likelihood(self, X: FloatArray) -> FloatArray | None:
        score = getattr(self.model, "score_samples", None)
        try:
            return None if score is None else np.asarray(score(X), dtype=float)
        except np.linalg.LinAlgError:  # rows in a flat have no density
            return None

    def roughness(self) -> float:
        q = self.latent.shape[1]
        if q not in _MESH or np.ptp(self.latent, axis=0).min() == 0:
            return float("nan")
        low, high = np.asarray(self._domain.low), np.asarray(self._domain.high)
        unit = grid(*(_MESH[q],) * q)
        nodes = low + 0.5 * (unit.nodes + 1.0) * (high - low)
        return roughness(Mesh(self._point(nodes), nodes, unit.faces), self._jacobian, self._domain).total


def surface_of(model: Any, X: FloatArray) -> ComparedSurface:
    """The surface of a fitted model; X are the rows it was fitted to."""
    if isinstance(model, PrincipalManifold):
        return ManifoldSurface(model)
    if isinstance(last_step(model), PrincipalManifold):
        return PipelineSurface(model)
    if hasattr(model, "transform") and hasattr(model, "inverse_transform"):
        return TransformerSurface(model, X)
    raise InvalidParameterError(
        f"{type(model).__name__} cannot be compared: it needs transform and inverse_transform, or to be one of "
        "prinfold's manifolds"
    )


def _two_columns(Z: Any) -> FloatArray:
    return np.asarray(Z, dtype=float).reshape(len(Z), -1)


def _differences(point: Callable[[FloatArray], FloatArray], Z: FloatArray, step: FloatArray) -> FloatArray:
    """(n, D, Q) central differences of a map, from one call of it: most of a small one is its checks."""
    shifts = np.diag(step)
    places = np.concatenate([Z + sign * shift for shift in shifts for sign in (1.0, -1.0)])
    ahead, behind = np.moveaxis(point(places).reshape(len(step), 2, len(Z), -1), 1, 0)
    return np.moveaxis((ahead - behind) / (2.0 * step)[:, None, None], 0, 2)


class NeighborIsomap(TransformerMixin, BaseEstimator):
    """Isomap with an inverse: a place on the map is the mean of the rows whose coordinates are nearest.

    With d_j the distances on the map to the k nearest rows and d_{k+1} that to the next, the weights are
    (1 − d_j² / d_{k+1}²)², which fall to nothing as a row ceases to be one of the k, so that the surface has no jumps.

    Parameters
    ----------
    n_components : int, default=2
        Columns of the map.
    n_neighbors : int, default=10
        Neighbours of Isomap's graph, and rows k that a place is the mean of.
    """

    def __init__(self, n_components: int = 2, n_neighbors: int = 10) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors

    def fit(self, X: Any, y: Any = None) -> NeighborIsomap:
        """Lay the rows out.

        Parameters
        ----------
        X : array-like of shape (n, D)
        y : ignored

        Returns
        -------
        NeighborIsomap
        """
        table = check_table(self, X, reset=True, min_rows=3)
        k = min(self.n_neighbors, len(table) - 1)
        self._isomap = Isomap(n_neighbors=k, n_components=self.n_components).fit(table)
        self._rows = table
        self._tree = cKDTree(self._isomap.embedding_)
        self._k = min(k + 1, len(table))
        return self

    def transform(self, X: Any) -> FloatArray:
        """Coordinates of rows, by their neighbours among the rows fitted to.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n, Q)
        """
        return np.asarray(self._isomap.transform(np.asarray(X)))

    def inverse_transform(self, Z: Any) -> FloatArray:
        """Rows that belong to places on the map.

        Parameters
        ----------
        Z : array-like of shape (n, Q)

        Returns
        -------
        ndarray of shape (n, D)
        """
        distance, near = map(np.asarray, self._tree.query(np.asarray(Z, dtype=float), k=self._k))
        reach = np.where(distance[:, -1:] > 0, distance[:, -1:], 1.0)
        weight = np.square(1.0 - np.square(distance / reach)) + 1e-12
        weight /= weight.sum(axis=1, keepdims=True)
        return np.asarray(np.einsum("nk,nkd->nd", weight, self._rows[near]))
