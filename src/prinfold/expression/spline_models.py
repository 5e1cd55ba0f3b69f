"""Regression splines of counts on time, for many genes at once: log-linear means, quasi-likelihood F tests.

For a gene with counts y and dispersion φ, cells of size s and a design of p columns,

    log μ = Xβ + log s,    var y = σ² (μ + φμ²),

β is found by iteratively reweighted least squares. With D the negative binomial deviance and D₀ that of a smaller
design with p₀ columns,

    F = (D₀ − D) / ((p − p₀) σ²),    σ² = Σ (y − μ)² / (μ + φμ²) / (n − p),

has nearly an F distribution with p − p₀ and n − p degrees of freedom (McCullagh & Nelder 1989, section 9.2).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.stats import f as f_distribution

from prinfold._typing import FloatArray
from prinfold.numerics.natural_splines import Knots

_GENES_AT_ONCE = 256

_MOST_STEPS, _TOL = 25, 1e-6
"""Steps of reweighted least squares, and the change of deviance, as a share of it, at which they end."""

_LONGEST_STEP = 2.0
"""Most that a coefficient, the logarithm of a rate, changes in one step."""

_RIDGE = 1e-6
"""Penalty on changes of coefficients, as a share of the weights: none runs off where a gene has no counts."""

_TREND_GENES = 50
"""Genes of similar mean that a dispersion is drawn towards."""

_PRIOR_SHARE = 0.5
"""Spread of dispersions between genes of one mean, as a share of their trend."""


class SplineFits(NamedTuple):
    """Coefficients (p, G), deviances (G,) and Pearson's χ² (G,) of genes."""

    coefficients: FloatArray
    deviance: FloatArray
    pearson: FloatArray


class FTests(NamedTuple):
    """F statistics (G,) and their p-values (G,)."""

    statistic: FloatArray
    p_value: FloatArray


def natural_spline(times: FloatArray, df: int) -> Knots:
    """Knots of a natural cubic spline with ``df`` degrees of freedom beside a constant: at quantiles of the times.

    Where there are no more than ``df`` + 1 different times each is a knot, and the spline has a free mean at each.
    """
    different = np.unique(times)
    if len(different) <= df + 1:
        return Knots(different, 0.0)
    shares = np.linspace(0.0, 1.0, df + 1)
    places = np.unique(np.quantile(times, shares))
    return Knots(places if len(places) == df + 1 else np.quantile(different, shares), 0.0)


def design_of(knots: Knots, times: FloatArray) -> FloatArray:
    """(n, k) values at times of the splines that are 1 at one of k knots and 0 at the others; each row sums to 1."""
    if len(knots.places) == 1:
        return np.ones((len(times), 1))
    inside = np.clip(times, knots.places[0], knots.places[-1])
    return np.asarray(knots.spline(np.eye(len(knots.places)))(inside))


def fit_splines(counts: FloatArray, design: FloatArray, size: FloatArray, dispersion: FloatArray) -> SplineFits:
    """Fits of genes (n, G) in blocks."""
    parts = [
        _fit_block(counts[:, genes], design, np.log(size)[:, None], dispersion[genes])
        for genes in _gene_blocks(counts.shape[1])
    ]
    return SplineFits(
        np.concatenate([part.coefficients for part in parts], axis=1),
        np.concatenate([part.deviance for part in parts]),
        np.concatenate([part.pearson for part in parts]),
    )


def _gene_blocks(n_genes: int) -> Iterator[slice]:
    yield from (slice(i, i + _GENES_AT_ONCE) for i in range(0, n_genes, _GENES_AT_ONCE))


def _fit_block(y: FloatArray, design: FloatArray, offset: FloatArray, phi: FloatArray) -> SplineFits:
    n, p = design.shape
    a, b = np.triu_indices(p)
    products = design[:, a] * design[:, b]
    rate = np.log(np.maximum(y.sum(axis=0), 0.5) / np.exp(offset).sum())
    beta = np.linalg.lstsq(design, np.ones(n), rcond=None)[0][:, None] * rate
    mu = np.exp(design @ beta + offset)
    deviance = _deviance(y, mu, phi)
    for _ in range(_MOST_STEPS):
        weight = mu / (1.0 + phi * mu)
        upper = products.T @ weight
        matrix = np.empty((y.shape[1], p, p))
        matrix[:, a, b] = matrix[:, b, a] = upper.T
        matrix[:, np.arange(p), np.arange(p)] += _RIDGE * weight.sum(axis=0)[:, None] + np.finfo(float).tiny
        gradient = design.T @ ((y - mu) / (1.0 + phi * mu))
        step = np.linalg.solve(matrix, gradient.T[:, :, None])[:, :, 0].T
        step *= np.minimum(1.0, _LONGEST_STEP / np.maximum(np.abs(step).max(axis=0), np.finfo(float).tiny))
        beta = beta + step
        mu = np.exp(np.minimum(design @ beta + offset, 30.0))
        before, deviance = deviance, _deviance(y, mu, phi)
        if (np.abs(before - deviance) <= _TOL * (np.abs(deviance) + 1.0)).all():
            break
    pearson = (np.square(y - mu) / np.maximum(mu * (1.0 + phi * mu), np.finfo(float).tiny)).sum(axis=0)
    return SplineFits(beta, deviance, pearson)


def _deviance(y: FloatArray, mu: FloatArray, phi: FloatArray) -> FloatArray:
    """(G,) negative binomial deviances; Poisson where there is no dispersion."""
    mu = np.maximum(mu, np.finfo(float).tiny)
    first = y * np.log(np.where(y > 0, y, mu) / mu)
    over = np.maximum(phi, 1e-8)
    return np.asarray(2.0 * (first - (y + 1.0 / over) * np.log1p((over * (y - mu)) / (1.0 + over * mu))).sum(axis=0))


def f_tests(full: SplineFits, null: SplineFits, n: int, p: int, p_null: int) -> FTests:
    """Quasi-likelihood F tests of two nested designs; a gene whose counts do not vary has a p-value of 1."""
    left = max(n - p, 1)
    sigma = full.pearson / left
    gain = np.maximum(null.deviance - full.deviance, 0.0) / (p - p_null)
    statistic = np.where(sigma > 0, gain / np.where(sigma > 0, sigma, 1.0), 0.0)
    return FTests(statistic, np.asarray(f_distribution.sf(statistic, p - p_null, left)))


def estimate_dispersions(counts: FloatArray, design: FloatArray, size: FloatArray) -> FloatArray:
    """(G,) dispersions about a fitted design, by moments, drawn towards those of genes of similar mean."""
    n, p = design.shape
    fits = fit_splines(counts, design, size, np.zeros(counts.shape[1]))
    excess, square, mean = (np.empty(counts.shape[1]) for _ in range(3))
    for genes in _gene_blocks(counts.shape[1]):
        mu = np.exp(np.minimum(design @ fits.coefficients[:, genes] + np.log(size)[:, None], 30.0))
        excess[genes] = (np.square(counts[:, genes] - mu) * n / max(n - p, 1) - mu).sum(axis=0)
        square[genes], mean[genes] = np.square(mu).sum(axis=0), mu.mean(axis=0)
    return shrink_dispersions(excess, square, mean, n)


def shrink_dispersions(excess: FloatArray, square: FloatArray, mean: FloatArray, n: int) -> FloatArray:
    """(G,) dispersions Σ((y − μ)² − μ) / Σμ², weighed against the trend of genes of similar mean by their precision."""
    tiny = np.finfo(float).tiny
    order = np.argsort(mean, kind="stable")
    width = min(_TREND_GENES, len(mean))
    own = np.maximum(excess, 0.0) / np.maximum(square, tiny)
    windows = np.clip(np.arange(len(mean)) - width // 2, 0, len(mean) - width)
    trend = np.empty(len(mean))
    for rank, first in enumerate(windows):
        near = order[first : first + width]
        trend[order[rank]] = max(float(np.median(own[near])), 0.0)
    variance = 2.0 * np.square(1.0 + trend * mean) / (n * np.maximum(np.square(mean), tiny))
    prior = np.square(_PRIOR_SHARE * trend)
    trust = prior / np.maximum(prior + variance, tiny)
    return np.asarray(trust * own + (1.0 - trust) * trend)
