"""Tests of genes along a trajectory that was itself found from their counts.

Times from the same counts that are tested follow the noise of these, and call far too many genes. So counts are thinned
into two independent halves: a trajectory is found from one, genes are tested on the other, and the other way round. The
two p-values of a gene are combined by Cauchy's statistic, which is uniform for independent ones and nearly so for
others (Liu & Xie 2020, Journal of the American Statistical Association 115).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import f as f_distribution
from scipy.stats import false_discovery_control

from prinfold._typing import BoolArray, FloatArray, IntArray, RandomState
from prinfold.exceptions import InvalidDataError, InvalidParameterError, percent, shown
from prinfold.expression.count_tests import (
    COUNTS_PER_COEFFICIENT,
    FEWEST_CELLS,
    f_tests_of_counts,
    f_tests_of_sides,
    f_tests_of_values,
    fitted_means,
    relative_totals,
    untested,
)
from prinfold.expression.lineages import (
    Recipe,
    as_lineages,
    call_recipe,
    cells_after_fork,
    cells_of,
    check_times,
    longest_lineage,
    matching_lineage,
)
from prinfold.expression.spline_models import (
    design_of,
    estimate_dispersions,
    fit_splines,
    natural_spline,
)
from prinfold.expression.thinning import thin_counts
from prinfold.loops import while_working
from prinfold.validation.failures import may_have_gaps, name_call_failures
from prinfold.validation.settings import Constraint, as_generator, check_setting, integer
from prinfold.validation.sparse_structure import refuse_broken_structure
from prinfold.validation.tables import as_entries, as_numbers

_MOST_P = 0.99
"""P-value at which larger ones are cut before two are combined: Cauchy's score of 1 is minus infinity, and would erase
any other. No more than one in a hundred is cut, so that the level rises by less than a hundredth of itself."""

_LEAST_MEAN = 0.01
"""Mean count below which effects see no difference: nothing is not infinitely less than little."""

_CURVE_PLACES = 60

_TIME_BINS = 5
"""Parts of the time in which samples are compared, so that unequal numbers of cells along it do not matter."""

_CONDITION_DF = 3
"""Degrees of freedom of the trend that is taken out of the counts before samples are compared."""


@dataclass(frozen=True, eq=False)
class GeneTests:
    """Genes along a lineage, after a fork or between conditions.

    Attributes
    ----------
    names : tuple of str
        Genes.
    p_value, q_value : (G,) arrays
        P-values, and the same by Benjamini and Hochberg. 1 for genes that were seen too rarely to be tested; NaN where
        there were no raw counts to tell them from.
    effect : (G,) array
        Logarithm to base 2 of how many times the highest fitted mean is the lowest along time. After a fork, that of
        the ratio of two lineages at the time where it is farthest from 1; between conditions, its mean over time. Of
        numbers that are no raw counts, differences of fitted means in place of logarithms of ratios.
    peak : (G,) array
        Time of the highest mean.
    times : (m,) array
        Times of ``level``.
    level : (G, m) array
        Fitted mean of a cell of size 1 at these times, on all cells of the lineage.
    note : str
        Why there are no p-values, or why they say less than they might, if so.
    """

    names: tuple[str, ...]
    p_value: FloatArray
    q_value: FloatArray
    effect: FloatArray
    peak: FloatArray
    times: FloatArray
    level: FloatArray
    note: str = ""


@name_call_failures
@may_have_gaps
@while_working("Testing the genes")
def association(
    counts: Any,
    recipe: Recipe | None = None,
    *,
    pseudotime: Any = None,
    lineage: int | None = None,
    names: Sequence[str] | None = None,
    df: int = 4,
    random_state: RandomState = None,
) -> GeneTests:
    """Test which genes change along a lineage, from the root to a leaf.

    Genes with fewer than 10 counts for each coefficient of the spline (50 at ``df=4``) in the cells that are tested
    are too rare for the F test: their p-value is 1, and ``note`` says how many they are. Of thinned counts each half
    is judged by itself.

    Parameters
    ----------
    counts : array-like of shape (n, G)
        Raw counts. Of other numbers effects are told and no p-values, unless ``pseudotime`` is given.
    recipe : callable, default=None
        From counts to a trajectory, such as :class:`TreeOfCounts`; it is called with each half of the thinned counts.
    pseudotime : array-like of shape (n,), default=None
        Times that were *not* found from these counts, such as those of the sampling or of another assay. They are
        taken as they are, in place of a recipe.
    lineage : int, default=None
        Number of the lineage in the trajectory of all counts; halves have the one that shares most cells with it. None
        is that of most cells.
    names : sequence of str, default=None
        Names of the genes.
    df : int, default=4
        Degrees of freedom of the splines; at few different times, such as sampling days, one fewer than these.
    random_state : int, RandomState or Generator, default=None
        Seed of the thinning.

    Returns
    -------
    GeneTests
    """
    table, whole = _check_counts(counts)
    check_setting("df", df, integer(1))
    labels = _check_names(names, table.shape[1])
    if (recipe is None) == (pseudotime is None):
        raise InvalidParameterError("give either a recipe, which finds times from counts, or pseudotime from elsewhere")
    if pseudotime is not None:
        times = check_times(pseudotime, len(table))
        cells = _check_cells(np.ones(len(table), dtype=bool), times)
        tests = (f_tests_of_counts if whole else f_tests_of_values)(table, times, cells, df)
        p_value = np.where(np.isnan(tests.p_value), 1.0, tests.p_value)
        made = _result(labels, p_value, table, times, cells, df, whole)
        return replace(made, note=_untested_note([tests.p_value]))
    found = as_lineages(call_recipe(recipe, table), len(table))
    cells = _check_cells(cells_of(found, longest_lineage(found) if lineage is None else lineage), found.pseudotime)
    if not whole:
        nothing = np.full(table.shape[1], np.nan)
        return _result(labels, nothing, table, found.pseudotime, cells, df, whole)
    p_values = []
    for tree, tested in _halves(table, found.pseudotime, cells, df, random_state):
        half = as_lineages(call_recipe(recipe, tree), len(table))
        here = cells_of(half, matching_lineage(half, cells))
        p_values.append(f_tests_of_counts(tested, half.pseudotime, here, df, stable_of=tree).p_value)
    made = _result(labels, combine_p_values(np.array(p_values)), table, found.pseudotime, cells, df, whole)
    return replace(made, note=_untested_note(p_values))


_TWO_LINEAGES = Constraint(
    lambda v: len(v) == 2 and all(map(integer(0).test, v)) and v[0] != v[1],
    "two different numbers, those that are compared",
)


@name_call_failures
@may_have_gaps
@while_working("Testing the genes")
def fork_difference(
    counts: Any,
    recipe: Recipe,
    *,
    lineages: tuple[int, int] = (0, 1),
    names: Sequence[str] | None = None,
    df: int = 3,
    random_state: RandomState = None,
) -> GeneTests:
    """Test which genes differ between two lineages after the fork where they part.

    Genes that are seen too rarely are not tested, as in :func:`association`: 80 counts are needed at ``df=3``, and more
    where one side has fewer cells than the other.

    Parameters
    ----------
    counts : array-like of shape (n, G)
        Raw counts. Of other numbers effects are told and no p-values.
    recipe : callable
        From counts to a trajectory, such as :class:`TreeOfCounts`; it is called with each half of the thinned counts.
    lineages : tuple of two int, default=(0, 1)
        Numbers of the lineages in the trajectory of all counts.
    names : sequence of str, default=None
        Names of the genes.
    df : int, default=3
        Degrees of freedom of the splines; at few different times, such as sampling days, one fewer than these.
    random_state : int, RandomState or Generator, default=None
        Seed of the thinning.

    Returns
    -------
    GeneTests
        ``effect`` is positive where the first lineage is higher.
    """
    table, whole = _check_counts(counts)
    check_setting("df", df, integer(1))
    labels = _check_names(names, table.shape[1])
    check_setting("lineages", lineages, _TWO_LINEAGES)
    found = as_lineages(call_recipe(recipe, table), len(table))
    after = _check_cells(cells_after_fork(found, *lineages), found.pseudotime)
    groups = np.array([cells_of(found, number) & after for number in lineages])
    p_value, parts = np.full(table.shape[1], np.nan), list[FloatArray]()
    if whole:
        for tree, tested in _halves(table, found.pseudotime, after, df, random_state):
            half = as_lineages(call_recipe(recipe, tree), len(table))
            pair = [matching_lineage(half, cells_of(found, number)) for number in lineages]
            if pair[0] == pair[1]:  # this half has no such fork
                parts.append(untested(table.shape[1]).p_value)
                continue
            parted = cells_after_fork(half, *pair)
            sides = np.array([cells_of(half, number) & parted for number in pair])
            parts.append(f_tests_of_sides(tested, half.pseudotime, sides, df, tree).p_value)
        p_value = combine_p_values(np.array(parts))
    made = _result(labels, p_value, table, found.pseudotime, after, df, whole)
    note = made.note or _untested_note(parts)
    return replace(made, effect=_largest_difference(table, found.pseudotime, groups, df, whole), note=note)


@name_call_failures
@may_have_gaps
@while_working("Testing the genes")
def condition_difference(
    counts: Any, pseudotime: Any, condition: Any, sample: Any, *, names: Sequence[str] | None = None
) -> GeneTests:
    """Test which genes differ between two conditions along time, with the sample as the unit.

    Cells of one sample are not replicates: they share whatever happened to it. So each sample has one number for a
    gene, the mean over parts of the time of the logarithm of its rate there, and conditions are compared by a t-test.
    Only parts in which every sample has cells count, and a trend that conditions share is taken out within them, so
    that more early cells in one condition do not pass for a difference. ``note`` says how much of the time is left.
    No thinning is needed: where conditions make no difference samples can be swapped, whatever the times were found
    from.

    Parameters
    ----------
    counts : array-like of shape (n, G)
        Raw counts of the cells of one lineage.
    pseudotime : array-like of shape (n,)
    condition : array-like of shape (n,)
        One of two names for each cell.
    sample : array-like of shape (n,)
        Name of the sample, such as the donor, that each cell came from. At least two of each condition.
    names : sequence of str, default=None
        Names of the genes.

    Returns
    -------
    GeneTests
        ``effect`` is positive where the first condition by name is higher.
    """
    table, whole = _check_counts(counts)
    if not whole:
        raise InvalidDataError("conditions are compared by raw counts; these numbers are not whole or below zero")
    labels, times = _check_names(names, table.shape[1]), check_times(pseudotime, len(table))
    groups, members = _check_samples(as_entries("condition", condition), as_entries("sample", sample), len(table))
    part, note = _shared_parts(times, members)
    first = groups == groups.min()
    own = np.array(members)[first].any(axis=0)
    rates = _rates_over_time(table, _expected_counts(table, times, own, part >= 0), part, members)
    n = len(groups)
    gap = rates[first].mean(axis=0) - rates[~first].mean(axis=0)
    left = np.where(first[:, None], rates - rates[first].mean(axis=0), rates - rates[~first].mean(axis=0))
    variance = np.square(left).sum(axis=0) / (n - 2) * (1.0 / first.sum() + 1.0 / (~first).sum())
    F = np.where(variance > 0, np.square(gap) / np.where(variance > 0, variance, 1.0), 0.0)
    made = _result(
        labels, f_distribution.sf(F, 1, n - 2), table, times, np.ones(len(table), dtype=bool), _CONDITION_DF, True
    )
    return replace(made, effect=gap / np.log(2.0), note=note)


def combine_p_values(p_values: FloatArray) -> FloatArray:
    """(G,) Cauchy's combination of p-values (k, G): that of the mean of tan(π(½ − p)).

    NaN stands for no test and is left out; where there is none at all the result is 1. Values above 0.99 are cut
    there, so that a test that sees nothing does not erase one that is clear.
    """
    tested = np.isfinite(p_values)
    inside = np.clip(np.where(tested, p_values, 0.5), 1e-300, _MOST_P)
    score = 1.0 / np.tan(np.pi * inside)  # tan(π(½ − p)), without the rounding of ½ − p near 0
    mean = np.where(tested, score, 0.0).sum(axis=0) / np.maximum(tested.sum(axis=0), 1)
    return np.asarray(np.where(tested.any(axis=0), np.arctan2(1.0, mean) / np.pi, 1.0))


def _halves(
    table: FloatArray, times: FloatArray, cells: BoolArray, df: int, random_state: RandomState
) -> list[tuple[FloatArray, FloatArray]]:
    """The two halves of thinned counts, each with the other: one for a trajectory, one for tests."""
    size = relative_totals(table)
    design = design_of(natural_spline(times[cells], df), times[cells])
    dispersion = estimate_dispersions(table[cells], design, size[cells])
    one, other = thin_counts(table, dispersion, as_generator(random_state))
    return [(one, other), (other, one)]


def _result(
    names: tuple[str, ...],
    p_value: FloatArray,
    table: FloatArray,
    times: FloatArray,
    cells: BoolArray,
    df: int,
    whole: bool,
) -> GeneTests:
    at = np.linspace(float(times[cells].min()), float(times[cells].max()), _CURVE_PLACES)
    level = fitted_means(table, times, cells, df, whole, at)
    known = np.isfinite(p_value)
    q_value = np.where(known, 1.0, np.nan)
    if known.all():
        q_value = false_discovery_control(np.clip(p_value, 0.0, 1.0))
    if whole:
        seen = np.maximum(level, _LEAST_MEAN)
        effect = np.log2(seen.max(axis=1) / seen.min(axis=1))
        note = ""
    else:
        effect = np.ptp(level, axis=1)
        note = "" if known.all() else _NO_COUNTS
    return GeneTests(names, p_value, q_value, effect, at[level.argmax(axis=1)], at, level, note)


_NO_COUNTS = (
    "these numbers are no raw counts, so that they cannot be thinned: times were found from the numbers that would be "
    "tested, and p-values would be far too small. Effects are differences of fitted means. Give raw counts, or "
    "pseudotime= from elsewhere"
)


def _untested_note(p_values: Sequence[FloatArray]) -> str:
    """Words about halves of the counts, and genes, that could not be tested, which have NaN in place of p-values."""
    missing = np.isnan(p_values)
    silent, never = int(missing.all(axis=1).sum()), int(missing.all(axis=0).sum())
    words = []
    if len(p_values) == 2 and silent:
        rest = "p-values are those of the other half" if silent == 1 else "nothing was tested: every p-value is 1"
        words.append(
            f"in {silent} of the two halves of the counts no such lineage was found, or no gene was seen often enough, "
            f"so that {rest}. There may be too few counts for a trajectory of half of them"
        )
    if never and not (len(p_values) == 2 and silent == 2):
        words.append(
            f"{never} of {missing.shape[1]} genes were seen too rarely to be tested, with fewer than "
            f"{COUNTS_PER_COEFFICIENT} counts for each coefficient of their splines: their p-values are 1"
        )
    return ". ".join(words)


def _largest_difference(table: FloatArray, times: FloatArray, groups: BoolArray, df: int, whole: bool) -> FloatArray:
    """(G,) logarithm to base 2 of the ratio of two lineages where it is farthest from 1, after the fork.

    Of numbers that are no counts, the difference where it is largest.
    """
    if min(groups.sum(axis=1)) < FEWEST_CELLS:
        return np.zeros(table.shape[1])
    low = max(times[cells].min() for cells in groups)
    high = min(times[cells].max() for cells in groups)
    at = np.linspace(low, max(high, low), _CURVE_PLACES)
    one, other = (fitted_means(table, times, cells, df, whole, at) for cells in groups)
    gap = np.log2(np.maximum(one, _LEAST_MEAN) / np.maximum(other, _LEAST_MEAN)) if whole else one - other
    return np.asarray(gap[np.arange(len(gap)), np.abs(gap).argmax(axis=1)])


def _shared_parts(times: FloatArray, members: Sequence[BoolArray]) -> tuple[IntArray, str]:
    """(n,) number of the part of the time of each cell, -1 where a sample has no cells in it; words about these."""
    edges = np.unique(np.quantile(times, np.linspace(0.0, 1.0, _TIME_BINS + 1))[1:-1])
    part = np.unique(np.searchsorted(edges, times, side="right"), return_inverse=True)[1]
    n_parts = int(part.max()) + 1
    shared = np.all([np.bincount(part[cells], minlength=n_parts) > 0 for cells in members], axis=0)
    if not shared.any():
        raise InvalidDataError(
            f"in none of {n_parts} parts of the time all {len(members)} samples have cells, so that a difference "
            "between conditions cannot be told from one along time. Leave out samples that cover little of the time"
        )
    if shared.all():
        return part, ""
    kept = shared[part]
    note = (
        f"conditions were compared in {int(shared.sum())} of {n_parts} parts of the time, with "
        f"{percent(kept.mean())} of the cells, at times from {times[kept].min():.3g} to {times[kept].max():.3g}: "
        "elsewhere a sample has no cells"
    )
    return np.where(kept, part, -1), note


def _expected_counts(table: FloatArray, times: FloatArray, first: BoolArray, kept: BoolArray) -> FloatArray:
    """(n, G) counts of cells by their size and time alone, from a trend of those ``kept`` that conditions share.

    The trend is fitted beside a difference between the ``first`` condition and the other, so that it does not take
    that in where one has more early cells.
    """
    knots = natural_spline(times[kept], _CONDITION_DF)
    trend, size = design_of(knots, times), relative_totals(table)
    side = np.where(first, 0.5, -0.5)[:, None]
    fits = fit_splines(table[kept], np.hstack([trend, side])[kept], size[kept], np.zeros(table.shape[1]))
    return np.asarray(size[:, None] * np.exp(np.clip(trend @ fits.coefficients[:-1], -30.0, 30.0)))


def _rates_over_time(
    table: FloatArray, expected: FloatArray, part: IntArray, members: Sequence[BoolArray]
) -> FloatArray:
    """(S, G) mean over shared parts of the time of the log rate of each sample, as a share of expected counts.

    Of a Poisson count y with mean m, log(y + ½) has a mean of log(m + ½ exp(−m)) to within 0.02: with this in the place
    of log m, samples of few cells have no other mean than those of many.
    """
    found = np.zeros((len(members), table.shape[1]))
    shared = np.unique(part[part >= 0])
    for number, cells in enumerate(members):
        for b in shared:
            here = cells & (part == b)
            seen, mean = table[here].sum(axis=0), expected[here].sum(axis=0)
            found[number] += np.log((seen + 0.5) / (mean + 0.5 * np.exp(-mean)))
    return found / len(shared)


def _check_cells(cells: BoolArray, times: FloatArray) -> BoolArray:
    """Cells of a lineage, refused where they are too few for a test."""
    n, different = int(cells.sum()), len(np.unique(times[cells]))
    if n < FEWEST_CELLS or different < 2:
        raise InvalidDataError(
            f"a test needs at least {FEWEST_CELLS} cells at two or more different times, and there are {n} cells at "
            f"{different}. Choose another lineage, or look at the times: they may follow nothing"
        )
    return cells


# ------------------------------------------------------------------------------------------------------- checks


def _check_counts(counts: Any) -> tuple[FloatArray, bool]:
    """Counts as numbers, and whether they are whole and not negative."""
    refuse_broken_structure(counts)
    table = as_numbers("counts", counts.toarray() if hasattr(counts, "toarray") else counts)
    if table.ndim != 2 or len(table) < FEWEST_CELLS or table.shape[1] == 0 or not np.isfinite(table).all():
        raise InvalidDataError(
            f"counts must be a finite table of at least {FEWEST_CELLS} cells and one gene; got shape {table.shape}"
        )
    return table, bool((table >= 0).all() and (table == np.round(table)).all())


def _check_names(names: Sequence[str] | None, n: int) -> tuple[str, ...]:
    if names is not None and not isinstance(names, Iterable):
        raise InvalidDataError(f"names must be a sequence of {n} names, got {shown(names)}")
    found = tuple(f"gene {j}" for j in range(n)) if names is None else tuple(str(name) for name in names)
    if len(found) != n:
        raise InvalidDataError(f"names has {len(found)} entries for {n} genes; give one for each")
    return found


def _check_samples(condition: Any, sample: Any, n: int) -> tuple[FloatArray, list[BoolArray]]:
    """The condition (S,) of each sample and its cells; refused where a condition has no replicates."""
    if condition.shape != (n,) or sample.shape != (n,):
        raise InvalidDataError(
            f"condition and sample need one name for each of the {n} cells; got {condition.shape} and {sample.shape}"
        )
    kinds = np.unique(condition)
    if len(kinds) != 2:
        raise InvalidDataError(f"two conditions are compared, got {len(kinds)}")
    samples = np.unique(sample)
    members = [sample == each for each in samples]
    groups = []
    for name, cells in zip(samples, members, strict=True):
        own = np.unique(condition[cells])
        if len(own) > 1:
            raise InvalidDataError(f"sample {name} has cells of both conditions; each sample belongs to one")
        groups.append(int(own[0] == kinds[1]))
    found = np.array(groups)
    for kind, count in zip(kinds, np.bincount(found, minlength=2), strict=True):
        if count < 2:
            raise InvalidDataError(
                f"condition {kind} has {count} sample. Without replicates a difference between samples cannot be "
                "told from one between conditions, however many cells there are; at least two samples of each are "
                "needed"
            )
    return found, members
