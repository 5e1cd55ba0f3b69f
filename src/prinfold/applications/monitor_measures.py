"""Measures of a monitor: the map, the shares of rows at its nodes, and the distance of rows from the surface.

The formulas are those of ``monitor_statistics``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from prinfold._typing import FloatArray
from prinfold.applications import monitor_statistics
from prinfold.applications.base import accepts, fitted_map, without_column_names
from prinfold.applications.landscape_sums import blocks_of
from prinfold.applications.monitor_blocks import SourceInParts
from prinfold.applications.monitor_statistics import Contributions, Measures, MonitoredSurface
from prinfold.base.stored_estimator import StoredEstimator
from prinfold.numerics.distances import squared_distances
from prinfold.validation.tables import check_table

_BLOCK_ROWS = 4096
"""Rows whose nearest points are found at once."""

_COVARIANCE_NUMBERS = 2**18
"""Entries of covariances, one matrix for each node, that are held at once."""


class MonitorMeasures(StoredEstimator):
    """A map with the shares of the rows at its nodes, and the noise of each column."""

    estimator: Any
    surface_: Any
    node_shares_: FloatArray
    noise_scale_: FloatArray
    n_features_in_: int

    def _fit_map(self, table: FloatArray, pairs: int | None = None) -> int:
        """Fit the map and the shares of rows at its nodes; returns the smoothing, chosen where ``pairs`` is None."""
        self.surface_ = fitted_map(self.estimator, table, None)
        return self._find_shares([table], len(table), pairs)

    def _fit_map_to_blocks(self, found: SourceInParts) -> None:
        """The same for blocks of rows, of which only sums are kept."""
        self.surface_ = without_column_names(fitted_map(self.estimator, found.rest, None))
        self._find_shares((np.asarray(block) for block in found.rest), found.n_rest, None)

    def _find_shares(self, tables: Iterable[FloatArray], n_rows: int, pairs: int | None) -> int:
        """Find the shares of the rows of several tables at the nodes."""
        latent = self.surface_.latent_
        mass, some, start = np.zeros(latent.n_nodes), [], 0
        chosen = monitor_statistics.smoothing_rows(n_rows)
        for table in tables:
            for part in blocks_of(len(table), latent.n_nodes):
                mass += np.asarray(self.surface_.responsibilities(table[part]), dtype=np.float64).sum(axis=0)
            here = chosen[(chosen >= start) & (chosen < start + len(table))] - start
            if pairs is None and len(here):
                some.append(np.asarray(self.surface_.responsibilities(table[here]), dtype=np.float64))
            start += len(table)
        step = monitor_statistics.diffusion_step(latent.edges, latent.n_nodes)
        if pairs is None:
            pairs = monitor_statistics.choose_smoothing(mass, np.concatenate(some), step)
        self.node_shares_ = monitor_statistics.node_shares(mass, float(n_rows), step, pairs)
        self.noise_scale_ = self._noise_scale()
        return pairs

    def _noise_scale(self) -> FloatArray:
        """(D,) root of the noise variance of each column, averaged over the nodes; a few columns at once, for memory.

        Where tails are so heavy that there is no variance, the noise level stands in.
        """
        axes, level = np.eye(self.n_features_in_), float(np.mean(self.surface_.noise_variance_))
        nodes = self.surface_._nodes_with_noise()
        at_once = max(1, int(np.sqrt(_COVARIANCE_NUMBERS / self.surface_.latent_.n_nodes)))
        parts = [axes[:, i : i + at_once] for i in range(0, self.n_features_in_, at_once)]
        covariance = (nodes.covariance(part).mean(axis=0) for part in parts)
        variance = np.concatenate([np.diagonal(each) for each in covariance])
        return np.sqrt(np.where(np.isfinite(variance), variance, level))

    def _table(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        return check_table(self, X, reset=False, accept_missing=accepts("missing", self.surface_))

    def _measure_rows(self, table: FloatArray) -> Measures:
        density, along = self._densities(table)
        off, missing, surface = np.empty(len(table)), np.empty(len(table), dtype=np.int64), self._surface()
        for part, block in self._blocks(table):
            gap = block - monitor_statistics.nearest_points(block, self.noise_scale_, surface)
            off[part] = monitor_statistics.squared_parts(gap, self.noise_scale_).sum(axis=1)
            missing[part] = np.isnan(block).sum(axis=1)
        return Measures(density, along, off, missing)

    def _densities(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(n,) log density ln Σ_k q_k p(t | k) of rows, and (n,) the along part."""
        density, along = np.empty((2, len(table)))
        cell, prior = monitor_statistics.mean_cell_log_density(self.noise_scale_), self.surface_._node_prior()
        for part in blocks_of(len(table), len(self.node_shares_)):
            along[part] = monitor_statistics.rarity(
                self.surface_.responsibilities(table[part]), self.node_shares_, prior
            )
            density[part] = np.isnan(table[part]) @ cell - along[part]
        return density + np.asarray(self.surface_.score_samples(table), dtype=np.float64), along

    @staticmethod
    def _blocks(table: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
        """Rows in double precision, block by block."""
        for i in range(0, len(table), _BLOCK_ROWS):
            part = slice(i, min(i + _BLOCK_ROWS, len(table)))
            yield part, np.asarray(table[part], dtype=np.float64)

    def _surface(self) -> MonitoredSurface:
        model, latent = self.surface_, self.surface_.latent_
        return MonitoredSurface(
            latent.nodes,
            np.asarray(model.inverse_transform(latent.nodes), dtype=np.float64),
            latent.domain,
            lambda Z: np.asarray(model.inverse_transform(Z, extrapolate=True), dtype=np.float64),
            lambda Z: np.asarray(model.jacobian(Z, extrapolate=True), dtype=np.float64),
        )

    def _column_contributions(self, table: FloatArray) -> Contributions:
        """Contributions of the columns to the off and along parts of checked rows."""
        residual, shift = np.empty(table.shape), np.zeros(table.shape)
        usual, surface = monitor_statistics.usual_nodes(self.node_shares_), self._surface()
        images = surface.images[usual]
        for part, block in self._blocks(table):
            y = monitor_statistics.nearest_points(block, self.noise_scale_, surface)
            residual[part] = np.nan_to_num(block - y)
            rare = ~usual[np.asarray(self.surface_.responsibilities(block)).argmax(axis=1)]
            near = squared_distances(y[rare] / self.noise_scale_, images / self.noise_scale_).argmin(axis=1)
            shift[part][rare] = y[rare] - images[near]
        off, along = (monitor_statistics.squared_parts(each, self.noise_scale_) for each in (residual, shift))
        return Contributions(off, along, residual, shift)
