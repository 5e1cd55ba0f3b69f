"""F tests of many genes along given times: sizes of cells, splines of counts or numbers, and which genes count."""

from __future__ import annotations

import numpy as np
from scipy.stats import f as f_distribution

from prinfold._typing import BoolArray, FloatArray
from prinfold.expression.spline_models import (
    FTests,
    design_of,
    estimate_dispersions,
    f_tests,
    fit_splines,
    natural_spline,
)

_STABLE_SHARE = 0.5
"""Share of the genes, those that change least along time, by which the sizes of cells are told."""

FEWEST_CELLS = 30
"""Cells below which a lineage is not tested."""

COUNTS_PER_COEFFICIENT = 10
"""Counts for each coefficient of a gene's spline below which it is not tested.

Of null genes, Poisson or with dispersions up to 2, in 200 to 1500 cells, 5 % had p < 0.05 at 10 counts for each
coefficient, 8 % at 4, 17 % at 2 and 42 % at 1.
"""


def size_factors(counts: FloatArray, change: FloatArray) -> FloatArray:
    """(n,) sizes of cells, of mean 1: totals of the half of the genes whose fitted mean changes least (G,).

    Totals of all genes would make those that stay the same fall where others rise.
    """
    order = np.argsort(change, kind="stable")
    return relative_totals(counts[:, order[: int(np.ceil(_STABLE_SHARE * len(order)))]], counts)


def relative_totals(counts: FloatArray, every: FloatArray | None = None) -> FloatArray:
    """(n,) totals over their mean; cells of which no chosen gene is seen take a part of the total of ``every`` gene."""
    total = counts.sum(axis=1)
    if every is not None:
        share = total.sum() / max(every.sum(), 1.0)
        total = np.where(total > 0, total, share * every.sum(axis=1))
    mean = float(total.mean())
    return np.asarray(np.maximum(total, 0.05 * mean) / mean) if mean > 0 else np.ones(len(total))


def f_tests_of_counts(
    table: FloatArray, times: FloatArray, cells: BoolArray, df: int, stable_of: FloatArray | None = None
) -> FTests:
    """F tests of genes along the times of some cells; ``stable_of`` are counts that tell which genes are stable."""
    t, n = times[cells], int(cells.sum())
    if n < FEWEST_CELLS or len(np.unique(t)) < 2:
        return untested(table.shape[1])
    design, one = design_of(natural_spline(t, df), t), np.ones((n, 1))
    size = _sizes(table[cells], table[cells] if stable_of is None else stable_of[cells], design)
    phi = estimate_dispersions(table[cells], design, size)
    full, null = (fit_splines(table[cells], each, size, phi) for each in (design, one))
    tests = f_tests(full, null, n, design.shape[1], 1)
    return _without_rare_genes(tests, table[cells].sum(axis=0), design.shape[1])


def f_tests_of_sides(table: FloatArray, times: FloatArray, sides: BoolArray, df: int, stable_of: FloatArray) -> FTests:
    """F tests of a spline for each of two sides against one for both."""
    cells = sides.any(axis=0)
    t, n = times[cells], int(cells.sum())
    if min(sides.sum(axis=1)) < FEWEST_CELLS:
        return untested(table.shape[1])
    null = design_of(natural_spline(t, df), t)
    full = np.hstack([null, null * (sides[0, cells] - 0.5)[:, None]])
    size = _sizes(table[cells], stable_of[cells], full)
    phi = estimate_dispersions(table[cells], full, size)
    one, two = (fit_splines(table[cells], each, size, phi) for each in (null, full))
    free = int(np.linalg.matrix_rank(full))  # less than its columns where a side has no cells at some times
    if free == null.shape[1]:
        return untested(table.shape[1])
    # What the smaller side would have of the counts if there were no difference, twice: a gene may be off on one side.
    expected = table[cells].sum(axis=0) * 2.0 * min(sides.sum(axis=1)) / n
    return _without_rare_genes(f_tests(two, one, n, free, null.shape[1]), expected, free)


def f_tests_of_values(table: FloatArray, times: FloatArray, cells: BoolArray, df: int) -> FTests:
    """F tests of numbers that are no counts, by least squares."""
    t, Y = times[cells], table[cells]
    design = design_of(natural_spline(t, df), t)
    left = Y - design @ np.linalg.lstsq(design, Y, rcond=None)[0]
    n, p = design.shape
    within, total = np.square(left).sum(axis=0), np.square(Y - Y.mean(axis=0)).sum(axis=0)
    F = np.where(within > 0, (total - within) / (p - 1) / np.where(within > 0, within / (n - p), 1.0), 0.0)
    return FTests(F, np.asarray(f_distribution.sf(F, p - 1, n - p)))


def untested(n_genes: int) -> FTests:
    """No tests: NaN for each gene."""
    return FTests(np.full(n_genes, np.nan), np.full(n_genes, np.nan))


def _without_rare_genes(tests: FTests, counts: FloatArray, n_coefficients: int) -> FTests:
    """Tests of the genes that have counts (G,) enough for the F distribution to hold, NaN for the others."""
    seen = counts >= COUNTS_PER_COEFFICIENT * n_coefficients
    return FTests(np.where(seen, tests.statistic, np.nan), np.where(seen, tests.p_value, np.nan))


def _sizes(table: FloatArray, other: FloatArray, design: FloatArray) -> FloatArray:
    """(n,) sizes of cells by the genes whose mean, fitted to ``other`` counts, changes least.

    Means of genes that are hardly seen are fitted badly, so that these change and do not count.
    """
    fits = fit_splines(other, design, relative_totals(other), np.zeros(other.shape[1]))
    return size_factors(table, np.var(design @ fits.coefficients, axis=0))


def fitted_means(
    table: FloatArray, times: FloatArray, cells: BoolArray, df: int, whole: bool, at: FloatArray
) -> FloatArray:
    """(G, m) fitted means of genes at times ``at`` (m,)."""
    t = times[cells]
    knots = natural_spline(t, df)
    design, places = design_of(knots, t), design_of(knots, at)
    if not whole:
        return np.asarray((places @ np.linalg.lstsq(design, table[cells], rcond=None)[0]).T)
    size = _sizes(table[cells], table[cells], design)
    beta = fit_splines(table[cells], design, size, np.full(table.shape[1], 0.1)).coefficients
    return np.asarray(np.exp(np.clip(places @ beta, -30.0, 30.0)).T)
