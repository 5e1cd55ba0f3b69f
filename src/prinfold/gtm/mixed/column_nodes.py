"""Nodes of a table of mixed columns: densities, means and variances of every column at each, and sums over rows.

The E-step of thesis 6.8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from prinfold._typing import FloatArray, IntArray
from prinfold.gtm.mixed.column_layout import Layout
from prinfold.gtm.mixed.column_sums import MixedBlock, MixedStatistics
from prinfold.gtm.noise.protocol import Posterior, largest_weight

_DIFFERENCE_STEP = 0.1
"""Share of a step by which second differences are taken."""


class MixedNodes(NamedTuple):
    """Nodes in the form that the E-step uses: ``loading`` (2D', K) goes with [t, s].

    ``centers`` (K, D') are predictors. ``learned`` says whether dispersions are to be learned.
    """

    layout: Layout
    loading: FloatArray
    centers: FloatArray
    precision: FloatArray
    dispersion: FloatArray
    learned: bool

    @property
    def n_layers(self) -> int:
        return 1

    def log_density(self, loaded: MixedBlock, near: IntArray | None, work: FloatArray) -> FloatArray:
        """log p(t | node): terms that differ between nodes into ``work[0]`` (n, K); returns (n,) the sum of others."""
        loading = self.loading if near is None else self.loading[:, near]
        np.dot(np.concatenate([loaded.values, loaded.exposure], axis=1), loading, out=work[0])
        own, g = loaded.own.copy(), self.layout.gaussian
        seen = loaded.exposure[:, g].astype(np.float64, copy=False)
        own += seen @ (0.5 * np.log(self.precision / (2 * np.pi)))
        own -= 0.5 * np.square(loaded.values[:, g], dtype=np.float64) @ self.precision
        for i, d in enumerate(self.layout.scattered):
            r, total = self.dispersion[i], self.rates(loaded, near, i, d)
            counts, shape = loaded.shapes(d, r)
            np.log(total, out=total)
            total *= shape[:, None]
            work[0] -= total
            there = shape > 0
            own += np.where(there, gammaln(counts + r) - gammaln(r) + r * np.log(r), 0.0)
        return own

    def rates(self, loaded: MixedBlock, near: IntArray | None, i: int, d: int) -> FloatArray:
        """(n, K) s μ + r of negative binomial counts: the rate of the gamma variable that scatters them."""
        rate = np.exp(self.centers[:, d] if near is None else self.centers[near, d])
        found: FloatArray = np.multiply.outer(loaded.factor, rate)
        found += self.dispersion[i]
        return found

    def empty_sums(self) -> MixedSums:
        (K, D), layout = self.centers.shape, self.layout
        n_scattered, n_gaussian = len(self.dispersion), len(self.precision)
        of_columns = np.zeros(n_gaussian), np.zeros(len(layout.columns)), np.zeros(n_scattered)
        return MixedSums(self, np.zeros((2 * D + 1, K)), np.zeros((K, n_scattered)), *of_columns)

    def draw(self, node: IntArray, rng: np.random.Generator) -> FloatArray:
        """(n, D) one row from each node named, levels by their number; counts for a size factor of 1, which it gets."""
        eta, layout = self.centers[node], self.layout
        out = np.ones((len(node), len(layout.columns)))
        g, scattered = layout.gaussian, layout.scattered
        scatter = rng.standard_normal((len(node), len(g))) / np.sqrt(self.precision)
        out[:, layout.gaussian_columns] = eta[:, g] + scatter
        rates = np.exp(eta)
        r = self.dispersion
        rates[:, scattered] *= rng.gamma(r, 1.0 / r, (len(node), len(scattered)))
        for column, part, _ in layout.with_family:
            coding = layout.columns[column].levels
            if coding is None:
                out[:, column] = rng.poisson(rates[:, part.start])
                continue
            uniform, shares = rng.uniform(size=len(node)), coding.shares(eta[:, part])
            out[:, column] = (uniform[:, None] > np.cumsum(shares, axis=1)[:, :-1]).sum(axis=1)
        return out

    def covariance(self, axes: FloatArray) -> FloatArray:
        """(K, a, a) covariance of the noise at each node, seen along axes (D', a), levels taken for independent."""
        return np.asarray(axes.T @ (self.variances(None)[:, :, None] * axes))

    def variances(self, near: IntArray | None) -> FloatArray:
        """(K, D') how far cells scatter about their means."""
        found = means(self.layout, self.centers if near is None else self.centers[near])
        found[:, self.layout.gaussian] = 1.0 / self.precision
        levels, scattered = self.layout.levels, self.layout.scattered
        found[:, levels] *= 1.0 - found[:, levels]
        found[:, scattered] += np.square(found[:, scattered]) / self.dispersion
        return found

    def cell_widths(self, steps: FloatArray) -> FloatArray:
        """(K, Q) how far apart densities are that differ by steps (K, D', Q) of the predictors, in noise deviations.

        The root of δᵀFδ, F being Fisher's information: the precision of Gaussian columns, A″ of a family, and
        μ r / (r + μ) of negative binomial counts.
        """
        found = np.einsum("d,kdq->kq", self.precision, np.square(steps[:, self.layout.gaussian]))
        for column, part, family in self.layout.with_family:
            eta, delta = self.centers[:, part], _DIFFERENCE_STEP * steps[:, part]
            if self.layout.columns[column].scattered:
                continue
            for q in range(steps.shape[2]):
                both = (eta + delta[:, :, q], eta - delta[:, :, q])
                bend = sum(family.log_partition(each) for each in both) - 2 * family.log_partition(eta)
                found[:, q] += np.maximum(bend, 0.0) / _DIFFERENCE_STEP**2
        for r, d in zip(self.dispersion, self.layout.scattered, strict=True):
            rate = np.exp(self.centers[:, d])
            found += (rate * r / (r + rate))[:, None] * np.square(steps[:, d])
        return np.asarray(np.sqrt(found))

    def impute(self, loaded: MixedBlock, posterior: Posterior, near: IntArray | None) -> tuple[FloatArray, FloatArray]:
        """(n, D) the expectation of every number and its variance; the likeliest level and the square of its share."""
        kinds, share = (
            self.layout.columns,
            (posterior.relative / posterior.total[:, None]).astype(np.float64, copy=False),
        )
        at_nodes = means(self.layout, self.centers if near is None else self.centers[near])
        exposed = np.ones((len(loaded), len(kinds)))
        expected, square, within = share @ at_nodes, share @ np.square(at_nodes), share @ self.variances(near)
        mean, variance = np.ones((2, len(loaded), len(kinds)))
        exposed[:, self.layout.counted] = loaded.factor[:, None]
        for column, kind in enumerate(kinds):
            part = self.layout.part(column)
            if part.stop == part.start:
                continue
            if kind.levels is not None:
                shares = kind.levels.complete(expected[:, part])
                mean[:, column], variance[:, column] = shares.argmax(axis=1), np.square(shares.max(axis=1))
                continue
            d, s = part.start, exposed[:, column]
            between = np.maximum(square[:, d] - np.square(expected[:, d]), 0.0)
            mean[:, column] = s * expected[:, d]
            of_nodes = _variance_of_counts(s, expected[:, d], within[:, d]) if kind.counts else within[:, d]
            variance[:, column] = np.square(s) * between + of_nodes
        return mean, variance


@dataclass
class MixedSums:
    """Sums of an E-step: ``products`` (2D' + 1, K) of t, s and 1; ``scattered`` (K, D'') of s g."""

    nodes: MixedNodes
    products: FloatArray
    scattered: FloatArray
    square: FloatArray
    seen: FloatArray
    slack: FloatArray
    log_likelihood: float = 0.0
    total: float = 0.0

    @property
    def layout(self) -> Layout:
        return self.nodes.layout

    def add(self, loaded: MixedBlock, weight: FloatArray | None, posterior: Posterior, near: IntArray | None) -> None:
        """Add a block. Rows are divided by the sums of their relative weights, not the weights."""
        ones = np.ones(len(loaded)) if weight is None else weight
        largest, chosen = largest_weight(ones), slice(None) if near is None else near
        share = ((ones / largest) / posterior.total).astype(loaded.values.dtype)[:, None]
        parts = np.concatenate([loaded.values, loaded.exposure, np.ones_like(share)], axis=1) * share
        self.products[:, chosen] += largest * (parts.T @ posterior.relative).astype(np.float64, copy=False)
        self.square += ones @ np.square(loaded.values[:, self.layout.gaussian], dtype=np.float64)
        self.seen += ones @ loaded.seen
        self.log_likelihood += float(ones @ posterior.log_likelihood)
        self.total += float(ones.sum())
        if len(self.slack):
            self._add_scattered(loaded, ones, posterior, near)

    def _add_scattered(self, loaded: MixedBlock, ones: FloatArray, posterior: Posterior, near: IntArray | None) -> None:
        """Given a count and its node the rate is scattered by g ~ Gamma(t + r, s μ + r)."""
        share = posterior.relative * (ones / posterior.total)[:, None]
        chosen = slice(None) if near is None else near
        for i, d in enumerate(self.layout.scattered):
            r, rates = self.nodes.dispersion[i], self.nodes.rates(loaded, near, i, d)
            _, shape = loaded.shapes(d, r)
            held = share * shape[:, None]
            held /= rates
            self.scattered[chosen, i] += loaded.factor @ held
            if self.nodes.learned:
                there = shape > 0
                np.log(rates, out=rates)
                logs = np.einsum("nk,nk->n", share, rates)
                known = ones[there] @ digamma(shape[there]) - logs[there].sum()
                self.slack[i] += known - held.sum()

    def statistics(self) -> MixedStatistics:
        D = self.layout.n_predictors
        moment, masses, mass = self.products[:D].T.copy(), self.products[D:-1].T.copy(), self.products[-1].copy()
        # Where a Gaussian column has no gaps its masses are the nodes' own to the last bit, and it shares their system.
        gaussian = self.layout.gaussian
        whole = self.seen[self.layout.gaussian_columns] >= self.total
        masses[:, gaussian] = np.where(whole, mass[:, None], masses[:, gaussian])
        masses[:, self.layout.scattered] = self.scattered
        of_columns = self.square.copy(), self.seen.copy(), self.slack.copy()
        return MixedStatistics(mass, masses, moment, *of_columns, self.log_likelihood, self.total)


def means(layout: Layout, eta: FloatArray) -> FloatArray:
    """(K, D') expectations at predictors η: numbers, shares of levels, counts at a size factor of 1."""
    found = eta.copy()
    for _, part, family in layout.with_family:
        found[:, part] = family.mean(eta[:, part])
    return found


def mean_jacobian(layout: Layout, eta: FloatArray, jacobian: FloatArray) -> FloatArray:
    """(K, D', Q) derivative of :func:`means`, of that of the predictors."""
    found, expected = jacobian.copy(), means(layout, eta)[:, :, None]
    for _, part, family in layout.with_family:
        found[:, part] = family.mean_change(expected[:, part], found[:, part])
    return found


def _variance_of_counts(s: FloatArray, expected: FloatArray, within: FloatArray) -> FloatArray:
    """(n,) variance of counts at size factors s, μ s + μ² s² / r, of that at 1, which is μ + μ² / r."""
    found: FloatArray = s * expected + np.square(s) * np.maximum(within - expected, 0.0)
    return found
