"""Noise of a table whose columns are of different kinds, thesis 6.8: each has the density of its kind at each node.

Given the node columns are independent, so that the log density of a row is the sum over the cells that are there. But
for negative binomial counts it is one product of [t, s] with the nodes, s being the exposure of a cell and 0 where it
is missing; mass and moment of a node are one number for each predictor, and each column is fitted on its own.

A level that was never seen, or a column of nothing but zeros, would send its predictors to infinity. One row more,
spread evenly over the nodes and like the average of all rows with half a cell of each level added, keeps them finite.
Its counts are those of a size factor of 1: where all factors are larger it weighs a little less beside the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import numpy as np
from scipy.special import gammaln

from prinfold._typing import FloatArray, IntArray
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.gtm.mixed.column_layout import Layout
from prinfold.gtm.mixed.column_nodes import MixedNodes
from prinfold.gtm.mixed.column_sums import (
    LEAST_DISPERSION,
    MOST_DISPERSION,
    MixedBlock,
    MixedStatistics,
    best_dispersion,
)
from prinfold.gtm.mixed.exponential_families import climb, log_likelihood
from prinfold.gtm.noise.per_cell import CellNoise, CellStatistics
from prinfold.gtm.noise.protocol import Capabilities, Parameters, Precision, positive_array
from prinfold.gtm.penalties import Penalty


@dataclass(frozen=True)
class MixedParameters(Parameters):
    """Weights (M, D') of the predictors, a precision for each Gaussian column, a dispersion for each of NB counts.

    ``noise`` says which predictors are whose.
    """

    precision: FloatArray
    dispersion: FloatArray
    noise: MixedNoise

    @property
    def level(self) -> float:
        """One over the mean of the Gaussian variances; 1 where there are none."""
        return float(1.0 / np.mean(1.0 / self.precision)) if len(self.precision) else 1.0

    @property
    def cells(self) -> Parameters:
        """The parameters of the Gaussian columns."""
        return self.noise.cells.parameters(self.weights[:, self.noise.gaussian], self.precision)

    def extrapolate(self, new: Self, factor: float) -> Self:
        """The step from here to ``new``, ``factor`` times as far; variances and dispersions by their logarithms."""
        dispersion = self.dispersion * (new.dispersion / self.dispersion) ** factor
        dispersion = np.clip(dispersion, LEAST_DISPERSION, MOST_DISPERSION)
        return replace(super().extrapolate(new, factor), dispersion=dispersion)

    def at_floor(self) -> bool:
        return self.cells.at_floor()

    def to_arrays(self) -> dict[str, Any]:
        found = {"variances": 1.0 / self.precision, "dispersions": self.dispersion}
        return found if self.noise.reference is None else found | {"reference": self.noise.reference}

    def cost(self, surface: BasisMap, penalty: Penalty) -> float:
        """Penalty, with that of the row added: the weights of a family are penalised as those of noise 1."""
        total, share = self.cells.cost(surface, penalty), np.full(surface.latent.n_nodes, 1.0 / surface.latent.n_nodes)
        for _, part, family in self.noise.layout.with_family:
            weights = self.weights[:, part]
            total += penalty.value(1.0, surface.roughness(weights))
            moment = np.outer(share, self.noise.prior[part])
            mass = share * self.noise.prior_mass[part.start]
            total -= log_likelihood(family, mass, moment, surface.nodes(weights))
        return total


_Kind: TypeAlias = Capabilities[MixedParameters, MixedBlock, MixedNodes, MixedStatistics]


@dataclass(frozen=True)
class MixedNoise:
    """Columns of different kinds.

    ``cells`` is the noise of the Gaussian columns; ``prior`` and ``prior_mass`` (D',) are cells and exposure of the
    row added, see the head of this file;
    ``dispersion`` is "column", "shared" or a number; ``reference`` (D,) are the counts to expect of each column, by
    which size factors are found, or None where they are given or all 1.
    """

    layout: Layout
    cells: CellNoise
    prior: FloatArray
    prior_mass: FloatArray
    dispersion: Any = "column"
    first_dispersion: FloatArray | None = None
    reference: FloatArray | None = None

    @property
    def floor(self) -> float:
        return self.cells.floor

    @property
    def capabilities(self) -> _Kind:
        return Capabilities(words="mixed columns", cell_widths=MixedNodes.cell_widths, impute=MixedNodes.impute)

    @property
    def gaussian(self) -> IntArray:
        """Predictors of Gaussian columns."""
        return self.layout.gaussian

    @property
    def scattered(self) -> IntArray:
        """Predictors of negative binomial columns."""
        return self.layout.scattered

    def with_gaps(self) -> MixedNoise:
        return self

    def initial(self, weights: FloatArray, precision: Precision) -> MixedParameters:
        """Parameters to begin with, ``precision`` being that of the Gaussian columns, or of each."""
        cells = self.cells.initial(weights[:, self.gaussian], precision)
        return self._make_parameters(weights, cells, self._first_dispersion())

    def _make_parameters(self, weights: FloatArray, cells: Parameters, dispersion: FloatArray) -> MixedParameters:
        return MixedParameters(weights, np.asarray(cells.precision), dispersion, self, ceiling=cells.ceiling)

    def _first_dispersion(self) -> FloatArray:
        n = len(self.scattered)
        if isinstance(self.dispersion, str):
            return np.ones(n) if self.first_dispersion is None else self.first_dispersion
        return np.full(n, float(self.dispersion))

    def restore(self, weights: FloatArray, variance: float, arrays: dict[str, Any]) -> MixedParameters:
        cells = self.cells.restore(weights[:, self.gaussian], variance, arrays)
        dispersions = positive_array(arrays, "dispersions", (len(self.scattered),))
        if self.reference is not None:
            positive_array({"reference": 1.0 + np.asarray(self.reference)}, "reference", (len(self.layout.columns),))
        return self._make_parameters(weights, cells, dispersions)

    def load(self, block: FloatArray, errors: FloatArray | None = None) -> MixedBlock:
        """A block with a column for each predictor, and its gaps apart."""
        layout, dtype = self.layout, block.dtype
        seen = ~np.isnan(block)
        cells = np.where(seen, block, dtype.type(0))
        values = cells[:, layout.source]
        for column, part, family in layout.with_family:
            if family.exclusive:
                marks = np.arange(layout.widths[column]) == cells[:, column, None]
                values[:, part] = marks & seen[:, column, None]
        factor = self._factors(cells, seen)
        exposure = seen[:, layout.source].astype(dtype)
        counted = layout.counted
        exposure[:, layout.starts[counted]] *= factor[:, None].astype(dtype)
        counts = cells[:, counted].astype(np.float64)
        own = counts.sum(axis=1) * np.log(factor) - gammaln(counts + 1.0).sum(axis=1)
        return MixedBlock(values, exposure, seen.astype(dtype), factor, own)

    def _factors(self, cells: FloatArray, seen: Any) -> FloatArray:
        """(n,) size factors: given as a column, found from the counts of a row, or 1."""
        if self.layout.factor_column is not None:
            return np.asarray(cells[:, self.layout.factor_column], dtype=np.float64)
        if self.reference is None:
            return np.ones(len(cells))
        counted = self.layout.counted
        expected = seen[:, counted] @ self.reference[counted]
        found = np.maximum(cells[:, counted].sum(axis=1, dtype=np.float64), 0.5)  # none at all counts as half of one
        return np.where(expected > 0, found / np.where(expected > 0, expected, 1.0), 1.0)

    def at_nodes(self, surface: BasisMap, parameters: MixedParameters, dtype: type = np.float64) -> MixedNodes:
        eta = surface.nodes(parameters.weights)
        with_value, with_exposure = eta.copy(), np.zeros_like(eta)
        g = self.gaussian
        with_value[:, g] *= parameters.precision
        with_exposure[:, g] = -0.5 * parameters.precision * np.square(eta[:, g])
        for column, part, family in self.layout.with_family:
            if family.exclusive:  # one cell of them is 1
                with_value[:, part] -= family.log_partition(eta[:, part])[:, None]
            elif not self.layout.columns[column].scattered:
                with_exposure[:, part] = -family.log_partition(eta[:, part])[:, None]
        loading: FloatArray = np.concatenate([with_value.T, with_exposure.T]).astype(dtype, copy=False)
        learned = isinstance(self.dispersion, str)
        return MixedNodes(self.layout, loading, eta, parameters.precision, parameters.dispersion, learned)

    def m_step(
        self, surface: BasisMap, sums: MixedStatistics, penalty: Penalty, parameters: MixedParameters
    ) -> MixedParameters:
        """New weights, by least squares for Gaussian columns and a few safe Newton steps for others; then the noise."""
        weights = parameters.weights.copy()
        cells = self._gaussian_step(surface, sums, penalty, parameters)
        weights[:, self.gaussian] = cells.weights
        n_nodes, strength = surface.latent.n_nodes, penalty.strength(1.0)
        for _, part, family in self.layout.with_family:
            mass = sums.masses[:, part.start] + self.prior_mass[part.start] / n_nodes
            moment = sums.moment[:, part] + self.prior[part] / n_nodes
            weights[:, part] = climb(surface, family, mass, moment, strength, weights[:, part])
        return self._make_parameters(weights, cells, self._dispersion(sums, parameters))

    def _gaussian_step(
        self, surface: BasisMap, sums: MixedStatistics, penalty: Penalty, parameters: MixedParameters
    ) -> Parameters:
        g = self.gaussian
        if not len(g):
            return parameters.cells
        masses, moment, seen = sums.masses[:, g], sums.moment[:, g], sums.seen[self.layout.source[g]]
        of_cells = CellStatistics(
            sums.mass, masses, moment, masses, moment, sums.square, seen, seen, sums.log_likelihood, sums.total
        )
        return self.cells.m_step(surface, of_cells, penalty, parameters.cells)

    def _dispersion(self, sums: MixedStatistics, parameters: MixedParameters) -> FloatArray:
        """The best r for Σ r (ln r + ln g − g) − ln Γ(r), by column or together."""
        if not isinstance(self.dispersion, str) or not len(sums.slack):
            return parameters.dispersion
        seen = sums.seen[self.layout.source[self.scattered]]
        if self.dispersion == "shared":
            return np.full(len(seen), best_dispersion(sums.slack.sum() / seen.sum()))
        return np.asarray(best_dispersion(sums.slack / seen))
