"""Methods of a fitted self-organising map: latent coordinates, winners, imputation, errors and the U-matrix."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_is_fitted

from prinfold._typing import FloatArray, IntArray
from prinfold.base.principal_manifold import PrincipalManifold
from prinfold.base.surface_geometry import SurfaceGeometry
from prinfold.exceptions import DegenerateWarning, InvalidDataError, UnsupportedInputError, warn_caller
from prinfold.geometry.column_span import ColumnSpan
from prinfold.geometry.projection import project_to_surface
from prinfold.rows.rows import Rows, as_rows
from prinfold.som import model
from prinfold.som.node_surface import NodeMap
from prinfold.validation.tables import has_gaps

_N_STARTS = 6

_MESH_DETAIL = {1: 1.0, 2: 2.0}
"""Kernel widths within which the surface hardly folds, by latent dimension; 4 beyond, where meshes soon grow large."""


class SOMVerbs(PrincipalManifold):
    """Methods that need a fitted ``codebook_``, its ``offset_``, and the surface ``_model``."""

    codebook_: FloatArray
    offset_: FloatArray
    _model: NodeMap

    def transform(self, X: Any) -> FloatArray:
        """Latent coordinates of the nearest point of the surface, over the columns that a row has.

        A map of winners alone would put all rows of a node on one place (:meth:`winners` gives those). The nearest
        point is between nodes as well, and ``reconstruct`` then is ``project``. A row without any value has the place
        of the mean of the training rows, with a warning.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n, Q)
        """
        table = self._table(X)
        return self._latent_of(table).astype(table.dtype, copy=False)

    def winners(self, X: Any) -> IntArray:
        """The node whose vector is nearest to each row, over the columns that the row has.

        A row without any value has the winner of the mean of the training rows, with a warning.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        ndarray of shape (n,)
            Numbers of nodes: rows of ``latent_.nodes`` and of ``codebook_``.
        """
        return model.winners(self._rows(self._fill_empty_rows(self._table(X))), self.codebook_ - self.offset_)[:, 0]

    def impute(self, X: Any) -> FloatArray:
        """Rows with missing cells filled in from the point of the surface that is nearest over the columns they have.

        Parameters
        ----------
        X : array-like of shape (n, D)
            Rows whose missing cells are NaN. Of a row without any value that is the point nearest to the mean of the
            training rows, with a warning.

        Returns
        -------
        ndarray of shape (n, D)
            The rows; what was measured stays as it is.
        """
        table = self._table(X)
        if scipy.sparse.issparse(table):
            raise UnsupportedInputError(
                "a sparse table has no missing cells, so that there is nothing to impute. Use it as it is"
            )
        found, gaps = table.copy(), np.isnan(table).any(axis=1)
        if gaps.any():
            Z = self._latent_of(self._fill_empty_rows(table)[gaps])
            found[gaps] = np.where(np.isnan(table[gaps]), self._point(Z), table[gaps])
        return found

    def quantization_error(self, X: Any) -> float:
        """Mean distance of rows from the vectors of their winners, over the columns that a row has.

        Rows without any value do not count.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        float
        """
        rows, codebook = self._measured_rows(X), self.codebook_ - self.offset_
        return float(model.distances(rows, codebook, model.winners(rows, codebook)[:, 0]).mean())

    def topographic_error(self, X: Any) -> float:
        """Share of the rows whose nearest and second nearest nodes are no neighbours on the grid.

        Neighbours are the four, or six, nodes that share an edge with a node. Rows without any value do not count.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        float
        """
        first, *second = model.winners(self._measured_rows(X), self.codebook_ - self.offset_, n_best=2).T
        return float(np.mean(~model.are_neighbors(self.latent_, first, second[0]))) if second else 0.0

    def u_matrix(self) -> model.UMatrix:
        """Distances in data space between neighbouring nodes: large ones part clusters.

        Returns
        -------
        UMatrix
            ``edges`` (E, 2) and ``lengths`` (E,) of all pairs of neighbours, ``nodes`` (K,) their mean for each node.
        """
        check_is_fitted(self)
        return model.u_matrix(self.latent_, self.codebook_)

    # --------------------------------------------------------------------------------------- plumbing

    def _fill_empty_rows(self, table: FloatArray) -> FloatArray:
        """The table with rows that have no value replaced by the mean of the training rows."""
        if not has_gaps(table):
            return table
        lost = np.asarray(np.isnan(table).all(axis=1, keepdims=True))
        if not lost.any():
            return table
        warn_caller(
            f"{lost.sum()} row(s) have no value in any column, the first being row {lost.argmax()}. They are mapped "
            "like the mean of the training rows",
            DegenerateWarning,
        )
        return np.where(lost, self.offset_.astype(table.dtype), table)

    def _measured_rows(self, X: Any) -> Rows:
        """Rows with at least one value: the others are near every node, and would count as perfect."""
        table = self._table(X)
        if has_gaps(table):
            some = ~np.isnan(table).all(axis=1)
            if not some.any():
                raise InvalidDataError("no row of X has a value in any column. Give rows with at least one value")
            table = table[some]
        return self._rows(table)

    def _rows(self, table: FloatArray) -> Rows:
        return as_rows(table, self.offset_, width=self.latent_.n_nodes, gaps=has_gaps(table))

    def _latent_of(self, table: FloatArray) -> FloatArray:
        table = self._fill_empty_rows(table)
        if not has_gaps(table):
            return self._nearest(table).latent
        gaps = np.isnan(table).any(axis=1)
        Z = np.empty((len(table), self.latent_.n_columns))
        Z[gaps] = self._nearest_with_gaps(np.asarray(table[gaps], dtype=np.float64))
        if not gaps.all():
            Z[~gaps] = self._nearest(table[~gaps]).latent
        return Z

    def _nearest_with_gaps(self, rows: FloatArray) -> FloatArray:
        """Latent coordinates of rows with missing cells: nearest points over the columns that have values."""
        points = self._model.point(self.latent_.nodes)
        near = model.basin_nodes(self.latent_, model.winners(self._rows(rows), points, _N_STARTS))
        found = project_to_surface(
            rows, self._point, self._jacobian, self.latent_.domain, self.latent_.nodes[near], seen=~np.isnan(rows)
        )
        return found.latent

    def _geometry(self) -> SurfaceGeometry:
        widths = _MESH_DETAIL.get(self.latent_.dimension, 4.0)
        detail = float(widths * self._model.width / self.latent_.node_units.max())
        whole = SurfaceGeometry(self.latent_, self._point, self._jacobian, detail, kept=self._model.remembered)
        span, narrow = self._model.in_span
        if span.frame is None:
            return whole
        inside = SurfaceGeometry(self.latent_, narrow.point, narrow.jacobian, detail, kept=narrow.remembered)
        return replace(whole, span=ColumnSpan(span.frame, self.offset_), inside=inside)

    def _point(self, Z: FloatArray) -> FloatArray:
        return self._model.point(Z) + self.offset_

    def _jacobian(self, Z: FloatArray) -> FloatArray:
        return self._model.jacobian(Z)
