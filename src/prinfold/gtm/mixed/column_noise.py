"""Noise of a table whose columns are of different kinds, thesis 6.8: each has the density of its kind at each node.

Given the node columns are independent, so that the log density of a row is the sum over the cells that are there. But
for negative binomial counts it is one product of [t, s] with the nodes, s being the exposure of a cell and 0 where it
is missing; mass and moment of a node are one number for each predictor, and each column is fitted on its own.

A level that was never seen, or a column of nothing but zeros, would send its predictors to infinity. One row more,
spread evenly over the nodes and like the average of all rows with half a cell of each level added, keeps them finite.
Its counts are those of a size factor of 1: where all factors are larger it weighs a little less beside the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import digamma, gammaln, softmax

from prinfold._typing import FloatArray, IntArray
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.gtm.mixed.column_kinds import KINDS, Layout, climb, log_likelihood
from prinfold.gtm.mixed.column_sums import (
    LEAST_DISPERSION,
    MOST_DISPERSION,
    MixedBlock,
    MixedNodes,
    MixedStatistics,
    MixedSums,
    best_dispersion,
)
from prinfold.gtm.noise.per_cell import CellNoise, CellParameters, CellStatistics
from prinfold.gtm.noise.protocol import Parameters, Posterior, largest_weight, positive_array
from prinfold.gtm.penalties import Penalty

_SMALL = 0.1
"""Share of a step by which second differences are taken."""


@dataclass(frozen=True)
class MixedParameters(Parameters):
    """Weights (M, D') of the predictors, a precision for each Gaussian column, a dispersion for each of NB counts.

    ``noise`` says which predictors are whose.
    """

    dispersion: FloatArray
    noise: MixedNoise

    @property
    def level(self) -> float:
        """By the mean of the Gaussian variances; 1 where there are none."""
        return float(1.0 / np.mean(1.0 / self.precision)) if len(self.precision) else 1.0

    @property
    def cells(self) -> CellParameters:
        """Those of the Gaussian columns."""
        return CellParameters(self.weights[:, self.noise.gaussian], self.precision)

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


@dataclass(frozen=True)
class MixedNoise:
    """Columns of different kinds.

    ``cells`` is the noise of the Gaussian columns; ``prior`` and ``prior_mass`` (D',) are cells and exposure of the
    row added, see the head of this file;
    ``dispersion`` is "column", "shared" or a number; ``reference`` (D,) are the counts to expect of each column, by
    which size factors are found, or None where they are given or all 1.
    """

    words: ClassVar[str] = "mixed columns"

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
    def n_layers(self) -> int:
        return 1

    @property
    def gaussian(self) -> IntArray:
        """Predictors of Gaussian columns."""
        return self.layout.predictors("gaussian")

    @property
    def scattered(self) -> IntArray:
        """Predictors of negative binomial columns."""
        return self.layout.predictors("negative_binomial")

    def with_gaps(self) -> MixedNoise:
        return self

    def first(self, weights: FloatArray, precision: Any) -> MixedParameters:
        """Parameters to begin with, ``precision`` being that of the Gaussian columns, or of each."""
        cells = self.cells.first(weights[:, self.gaussian], precision)
        return MixedParameters(weights, np.asarray(cells.precision), self._first_dispersion(), self)

    def _first_dispersion(self) -> FloatArray:
        n = len(self.scattered)
        if isinstance(self.dispersion, str):
            return np.ones(n) if self.first_dispersion is None else self.first_dispersion
        return np.full(n, float(self.dispersion))

    def pooled(self, parameters: MixedParameters) -> MixedParameters:
        return parameters

    def floored(self, parameters: MixedParameters) -> bool:
        return len(self.gaussian) > 0 and self.cells.floored(parameters.cells)

    def keep(self, parameters: MixedParameters) -> dict[str, Any]:
        found = {"variances": 1.0 / parameters.precision, "dispersions": parameters.dispersion}
        return found if self.reference is None else found | {"reference": self.reference}

    def recall(self, weights: FloatArray, variance: float, kept: dict[str, Any]) -> MixedParameters:
        variances = positive_array(kept, "variances", (len(self.gaussian),))
        dispersions = positive_array(kept, "dispersions", (len(self.scattered),))
        if self.reference is not None:
            positive_array({"reference": 1.0 + np.asarray(self.reference)}, "reference", (len(self.layout.kinds),))
        return MixedParameters(weights, 1.0 / variances, dispersions, self)

    def prepare(self, surface: BasisMap, parameters: MixedParameters, dtype: type = np.float64) -> MixedNodes:
        """Predictors of the nodes, and what cells are multiplied with."""
        eta = surface.nodes(parameters.weights)
        with_value, with_exposure = eta.copy(), np.zeros_like(eta)
        g = self.gaussian
        with_value[:, g] *= parameters.precision
        with_exposure[:, g] = -0.5 * parameters.precision * np.square(eta[:, g])
        for column, part, family in self.layout.with_family:
            if self.layout.kinds[column] == "categorical":
                with_value[:, part] -= family.log_partition(eta[:, part])[:, None]
            elif self.layout.kinds[column] != "negative_binomial":
                with_exposure[:, part] = -family.log_partition(eta[:, part])[:, None]
        loading: FloatArray = np.concatenate([with_value.T, with_exposure.T]).astype(dtype, copy=False)
        return MixedNodes(loading, eta, parameters.precision, parameters.dispersion)

    def load(self, block: FloatArray, errors: FloatArray | None = None) -> MixedBlock:
        """A block with a column for each predictor, and its gaps apart."""
        layout, dtype = self.layout, block.dtype
        seen = ~np.isnan(block)
        cells = np.where(seen, block, dtype.type(0))
        values = cells[:, layout.source]
        for column in layout.columns("categorical"):
            marks = np.arange(layout.widths[column]) == cells[:, column, None]
            values[:, layout.part(column)] = marks & seen[:, column, None]
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

    def log_density(self, loaded: MixedBlock, nodes: MixedNodes, near: IntArray | None, work: FloatArray) -> FloatArray:
        """log p(t | node) split in two: into ``work[0]`` (n, K) what differs between nodes; returns (n,) the rest."""
        loading = nodes.loading if near is None else nodes.loading[:, near]
        np.dot(np.concatenate([loaded.values, loaded.exposure], axis=1), loading, out=work[0])
        own, g = loaded.own.copy(), self.gaussian
        seen = loaded.exposure[:, g].astype(np.float64, copy=False)
        own += seen @ (0.5 * np.log(nodes.precision / (2 * np.pi)))
        own -= 0.5 * np.square(loaded.values[:, g], dtype=np.float64) @ nodes.precision
        for i, d in enumerate(self.scattered):
            r, total = nodes.dispersion[i], self._rates(loaded, nodes, near, i, d)
            counts, shape = self._shapes(loaded, d, r)
            np.log(total, out=total)
            total *= shape[:, None]
            work[0] -= total
            there = shape > 0
            own += np.where(there, gammaln(counts + r) - gammaln(r) + r * np.log(r), 0.0)
        return own

    def cell_widths(self, nodes: MixedNodes, steps: FloatArray) -> FloatArray:
        """(K, Q) how far apart densities are that differ by steps (K, D', Q) of the predictors, in noise deviations.

        The root of δᵀFδ, F being Fisher's information: the precision of Gaussian columns, A″ of a family, and
        μ r / (r + μ) of negative binomial counts.
        """
        g = self.gaussian
        found = np.einsum("d,kdq->kq", nodes.precision, np.square(steps[:, g]))
        for column, part, family in self.layout.with_family:
            eta, delta = nodes.centres[:, part], _SMALL * steps[:, part]
            if self.layout.kinds[column] == "negative_binomial":
                continue
            for q in range(steps.shape[2]):
                both = (eta + delta[:, :, q], eta - delta[:, :, q])
                bend = sum(family.log_partition(each) for each in both) - 2 * family.log_partition(eta)
                found[:, q] += np.maximum(bend, 0.0) / _SMALL**2
        for r, d in zip(nodes.dispersion, self.scattered, strict=True):
            rate = np.exp(nodes.centres[:, d])
            found += (rate * r / (r + rate))[:, None] * np.square(steps[:, d])
        return np.asarray(np.sqrt(found))

    @staticmethod
    def _rates(loaded: MixedBlock, nodes: MixedNodes, near: IntArray | None, i: int, d: int) -> FloatArray:
        """(n, K) s μ + r of negative binomial counts: the rate of the gamma variable that scatters them."""
        rate = np.exp(nodes.centres[:, d] if near is None else nodes.centres[near, d])
        found: FloatArray = np.multiply.outer(loaded.factor, rate)
        found += nodes.dispersion[i]
        return found

    @staticmethod
    def _shapes(loaded: MixedBlock, d: int, r: float) -> tuple[FloatArray, FloatArray]:
        """(n,) negative binomial counts t, and t + r: the shape of that gamma variable, nil where there is no count."""
        counts = loaded.values[:, d].astype(np.float64, copy=False)
        return counts, np.where(loaded.exposure[:, d] > 0, counts + r, 0.0)

    def sums(self, nodes: MixedNodes) -> MixedSums:
        """Empty sums."""
        (K, D), layout = nodes.centres.shape, self.layout
        n_scattered, n_gaussian = len(self.scattered), len(self.gaussian)
        of_columns = np.zeros(n_gaussian), np.zeros(len(layout.kinds)), np.zeros(n_scattered)
        return MixedSums(nodes, layout, np.zeros((2 * D + 1, K)), np.zeros((K, n_scattered)), *of_columns)

    def statistics(
        self,
        sums: MixedSums,
        loaded: MixedBlock,
        weight: FloatArray | None,
        posterior: Posterior,
        near: IntArray | None,
    ) -> None:
        """Add a block to the sums. Rows are divided by the sums of their relative weights, not the weights."""
        ones = np.ones(len(loaded)) if weight is None else weight
        largest, chosen = largest_weight(ones), slice(None) if near is None else near
        share = ((ones / largest) / posterior.total).astype(loaded.values.dtype)[:, None]
        parts = np.concatenate([loaded.values, loaded.exposure, np.ones_like(share)], axis=1) * share
        sums.products[:, chosen] += largest * (parts.T @ posterior.relative).astype(np.float64, copy=False)
        sums.square += ones @ np.square(loaded.values[:, self.gaussian], dtype=np.float64)
        sums.seen += ones @ loaded.seen
        sums.log_likelihood += float(ones @ posterior.log_likelihood)
        sums.total += float(ones.sum())
        if len(self.scattered):
            self._add_scattered(sums, loaded, ones, posterior, near)

    def _add_scattered(
        self, sums: MixedSums, loaded: MixedBlock, ones: FloatArray, posterior: Posterior, near: IntArray | None
    ) -> None:
        """Given a count and its node the rate is scattered by g ~ Gamma(t + r, s μ + r)."""
        share = posterior.relative * (ones / posterior.total)[:, None]
        chosen, learned = slice(None) if near is None else near, isinstance(self.dispersion, str)
        for i, d in enumerate(self.scattered):
            r, rates = sums.nodes.dispersion[i], self._rates(loaded, sums.nodes, near, i, d)
            _, shape = self._shapes(loaded, d, r)
            held = share * shape[:, None]
            held /= rates
            sums.scattered[chosen, i] += loaded.factor @ held
            if learned:
                there = shape > 0
                np.log(rates, out=rates)
                logs = np.einsum("nk,nk->n", share, rates)
                known = ones[there] @ digamma(shape[there]) - logs[there].sum()
                sums.slack[i] += known - held.sum()

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
        return MixedParameters(weights, np.asarray(cells.precision), self._dispersion(sums, parameters), self)

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

    def stretched(self, old: MixedParameters, new: MixedParameters, factor: float) -> MixedParameters:
        """The step from ``old`` to ``new``, ``factor`` times as far; variances and dispersions by their logarithms."""
        weights = old.weights + factor * (new.weights - old.weights)
        precision = np.asarray(self.cells.stretched(old.cells, new.cells, factor).precision)
        dispersion = old.dispersion * (new.dispersion / old.dispersion) ** factor
        return MixedParameters(weights, precision, np.clip(dispersion, LEAST_DISPERSION, MOST_DISPERSION), self)

    def means(self, eta: FloatArray) -> FloatArray:
        """(K, D') what to expect where predictors are η: numbers, shares of levels, counts at a size factor of 1."""
        found = eta.copy()
        for _, part, family in self.layout.with_family:
            found[:, part] = family.mean(eta[:, part])
        return found

    def mean_jacobian(self, eta: FloatArray, jacobian: FloatArray) -> FloatArray:
        """(K, D', Q) derivative of :meth:`means`, of that of the predictors."""
        found, means = jacobian.copy(), self.means(eta)[:, :, None]
        for column, part, _ in self.layout.with_family:
            if self.layout.kinds[column] == "bernoulli":
                found[:, part] *= 1.0 - means[:, part]
            elif self.layout.kinds[column] == "categorical":
                found[:, part] -= (means[:, part] * found[:, part]).sum(axis=1, keepdims=True)
            found[:, part] *= means[:, part]
        return found

    def variances(self, eta: FloatArray, parameters: MixedParameters | MixedNodes) -> FloatArray:
        """(K, D') how far cells scatter about that."""
        found = self.means(eta)
        found[:, self.gaussian] = 1.0 / parameters.precision
        levels = self.layout.predictors("bernoulli", "categorical")
        found[:, levels] *= 1.0 - found[:, levels]
        found[:, self.scattered] += np.square(found[:, self.scattered]) / parameters.dispersion
        return found

    def draw(
        self, surface: BasisMap, parameters: MixedParameters, node: IntArray, rng: np.random.Generator
    ) -> FloatArray:
        """(n, D) one row from each node named, levels by their number; counts for a size factor of 1, which it gets."""
        eta = surface.nodes(parameters.weights)[node]
        out = np.ones((len(node), len(self.layout.kinds)))
        g, scattered = self.layout.columns("gaussian"), self.layout.columns("negative_binomial")
        out[:, g] = eta[:, self.gaussian] + rng.standard_normal((len(node), len(g))) / np.sqrt(parameters.precision)
        rates = np.exp(eta)
        r = parameters.dispersion
        rates[:, self.scattered] *= rng.gamma(r, 1.0 / r, (len(node), len(scattered)))
        for column, part, _ in self.layout.with_family:
            if KINDS[self.layout.kinds[column]].counts:
                out[:, column] = rng.poisson(rates[:, part.start])
                continue
            uniform = rng.uniform(size=len(node))
            shares = (
                two_sided(eta[:, part]) if self.layout.kinds[column] == "bernoulli" else softmax(eta[:, part], axis=1)
            )
            out[:, column] = (uniform[:, None] > np.cumsum(shares, axis=1)[:, :-1]).sum(axis=1)
        return out

    def covariance(self, surface: BasisMap, parameters: MixedParameters, axes: FloatArray) -> FloatArray:
        """(K, a, a) covariance of the noise at each node, seen along axes (D', a), levels taken for independent."""
        each = self.variances(surface.nodes(parameters.weights), parameters)
        return np.asarray(axes.T @ (each[:, :, None] * axes))

    def complete(
        self, loaded: MixedBlock, posterior: Posterior, nodes: MixedNodes, near: IntArray | None
    ) -> tuple[FloatArray, FloatArray]:
        """(n, D) the expectation of every number and its variance; the likeliest level and the square of its share."""
        eta = nodes.centres if near is None else nodes.centres[near]
        share = (posterior.relative / posterior.total[:, None]).astype(np.float64, copy=False)
        means, exposed = self.means(eta), np.ones((len(loaded), len(self.layout.kinds)))
        expected = share @ means
        square = share @ np.square(means)
        within = share @ self.variances(eta, nodes)
        mean, variance = np.ones((2, len(loaded), len(self.layout.kinds)))
        exposed[:, self.layout.counted] = loaded.factor[:, None]
        for column, kind in enumerate(self.layout.kinds):
            part = self.layout.part(column)
            if part.stop == part.start:
                continue
            if KINDS[kind].levels:
                shares = (
                    np.hstack([1 - expected[:, part], expected[:, part]]) if kind == "bernoulli" else expected[:, part]
                )
                mean[:, column], variance[:, column] = shares.argmax(axis=1), np.square(shares.max(axis=1))
                continue
            d, s = part.start, exposed[:, column]
            between = np.maximum(square[:, d] - np.square(expected[:, d]), 0.0)
            mean[:, column] = s * expected[:, d]
            variance[:, column] = np.square(s) * between + _rescaled(
                kind, s, within[:, d], square[:, d], expected[:, d]
            )
        return mean, variance


def _rescaled(kind: str, s: FloatArray, within: FloatArray, square: FloatArray, expected: FloatArray) -> FloatArray:
    """The variance within nodes at size factors s: of counts μ s + μ² s² / r, that at 1 being μ + μ² / r."""
    return within if kind == "gaussian" else s * expected + np.square(s) * np.maximum(within - expected, 0.0)


def two_sided(eta: FloatArray) -> FloatArray:
    """(n, 2) shares of the two levels of a Bernoulli column, each by itself so that neither is lost to rounding."""
    return np.asarray(softmax(np.hstack([np.zeros_like(eta), eta]), axis=1))
