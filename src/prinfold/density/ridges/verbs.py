"""Methods of ridges beyond those of every surface: location of rows, export of lines, bands and significance."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prinfold._typing import BoolArray, FloatArray, RandomState
from prinfold.base.trajectories import TrajectoryVerbs
from prinfold.density.densities import resampled
from prinfold.density.ridges import export
from prinfold.density.ridges.bands import RidgeBands, ridge_bands
from prinfold.density.ridges.chart import RidgeChart
from prinfold.density.ridges.graph import RidgeGraph, RidgeLocation
from prinfold.density.ridges.mean_shift import Flow, FlowResult
from prinfold.density.ridges.significance import RidgeSignificance, ridge_significance
from prinfold.density.ridges.support import persistent
from prinfold.density.row_spaces import RowSpace
from prinfold.exceptions import Advice, Message, NotAvailableError
from prinfold.latent.branch_graph import BranchGraph
from prinfold.validation.failures import gate_verbs
from prinfold.validation.parameter_docs import fill_parameter_docs
from prinfold.validation.refusals import column_names
from prinfold.validation.settings import as_generator


@gate_verbs
@fill_parameter_docs
class RidgeVerbs(TrajectoryVerbs):
    """Methods for an estimator with ``flow_``, ``places_``, ``space_`` and coordinates in ``_model``."""

    flow_: Flow
    places_: FlowResult
    space_: RowSpace
    _model: Any
    _table: Any

    def locate(self, X: Any) -> RidgeLocation:
        """Branch of the ridge that each row is nearest to, how far along it and how far off; for curves only.

        Parameters
        ----------
        X : array-like of shape (n, D)

        Returns
        -------
        RidgeLocation
            ``branch`` (n,), ``arc_length`` (n,) from the beginning of that branch, ``distance`` (n,), and ``persists``
            (n,), whether that branch is one of :attr:`persistent_branches_`. In two columns, and on a sphere, the
            distance is positive to the left of the branch and negative to the right.
        """
        table = self._table(X)
        found = self._graph("locate").locate(self.space_.enter(table))
        return RidgeLocation(*found, self.persistent_branches_[found.branch])

    def to_geojson(self, path: str | os.PathLike[str] | None = None) -> dict[str, Any]:
        """The branches as a GeoJSON collection of lines, written to a file where a path is given.

        Parameters
        ----------
        path : str or path, default=None

        Returns
        -------
        dict
        """
        return export.to_geojson(self._graph("to_geojson"), column_names(self), path)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the branches as a table of points: branch, arc length, the columns of the data, log density.

        Parameters
        ----------
        path : str or path
        """
        export.to_csv(self._graph("to_csv"), path, column_names(self))

    def bands(self, n_samples: int = 100, *, level: float = 0.9, random_state: RandomState = None) -> RidgeBands:
        """Bootstrap band about the ridge: how far away it would be with other rows.

        Parameters
        ----------
        n_samples : int, default=100
            How many times rows are drawn. Each costs a density on as many rows.
        level : float, default=0.9
            Share of those whose ridge the band holds.
        {random_state}

        Returns
        -------
        RidgeBands
            ``points``, the nodes of the graph where the ridge is a curve and those of ``ridge_`` else; ``radius`` of
            the band at each, ``uniform_radius`` for all at once, and ``found``, the share of draws in which the ridge
            is found again. :func:`prinfold.plot.ridge_bands` draws it.
        """
        check_is_fitted(self)
        kernels = resampled(self.flow_.density).kernels()
        points = self.graph_.points if self.flow_.dimension == 1 else self.places_.points
        made = ridge_bands(
            points,
            kernels.rows,
            kernels.weight,
            self.flow_.on_rows,
            n_samples=n_samples,
            level=level,
            rng=as_generator(random_state),
        )
        return replace(made, points=self.space_.leave(made.points))

    def significance(self, n_samples: int = 100, *, random_state: RandomState = None) -> RidgeSignificance:
        """Whether the ridge could be chance: p-values of its points and branches, against a smooth density.

        Parameters
        ----------
        n_samples : int, default=100
            Samples from that density; no p-value is below 1 / (n_samples + 1).
        {random_state}

        Returns
        -------
        RidgeSignificance
            ``p_value`` and ``strength`` of the points that :meth:`bands` stands on, ``branch_p_value`` of each branch.
        """
        check_is_fitted(self)
        kernels, ridge, branch = resampled(self.flow_.density).kernels(), self.places_, None
        if self.flow_.dimension == 1:
            ridge = self.flow_(self.graph_.points)
            branch = self.graph_.latent.domain.piece(self.graph_.latent.nodes)
        return ridge_significance(
            ridge,
            branch,
            kernels.rows,
            kernels.weight,
            self.flow_.on_rows,
            n_samples=n_samples,
            rng=as_generator(random_state),
        )

    @property
    def graph_(self) -> RidgeGraph:
        """Branches, ends and junctions of a ridge that is a curve; on a sphere, with places in space."""
        return self._graph("graph_")

    @property
    def branch_support_(self) -> FloatArray:
        """(B,) how sure each branch of a curve is, from 0 to 1."""
        self._graph("branch_support_")
        return np.asarray(self._model.made.support)

    @property
    def persistent_branches_(self) -> BoolArray:
        """(B,) whether a branch of a curve has a support of 0.2 or more; true where support is not known."""
        return persistent(self.branch_support_)

    @property
    def n_branches_found_(self) -> int:
        """Branches of a curve before those with little support were left out."""
        self._graph("n_branches_found_")
        return int(self._model.made.n_found)

    @property
    def chart_(self) -> RidgeChart:
        """Coordinates on a ridge that is a surface or more, with the patches that it is blended from."""
        check_is_fitted(self)
        found: RidgeChart | None = self._model.coordinates.chart
        if found is None:
            raise NotAvailableError("chart_ is for surfaces, but this ridge is a curve; see graph_")
        return found

    # --------------------------------------------------------------------------------------- plumbing

    def _network(self) -> BranchGraph:
        return self._graph("pseudotime").network

    def _node_columns(self) -> dict[str, FloatArray]:
        return {"log_density": self.graph_.log_density}

    def _inner_rows(self, table: FloatArray) -> FloatArray:
        return self.space_.enter(np.asarray(table, dtype=np.float64))

    def _graph(self, verb: str) -> RidgeGraph:
        check_is_fitted(self)
        found: RidgeGraph | None = self._model.coordinates.graph
        if found is None:
            words = f"{verb} is for curves, but this ridge has {self.flow_.dimension} dimensions"
            raise NotAvailableError(Message(words, Advice("n_components", 1, "fit one with {}")))
        return found
