"""Comparing methods: numbers are what they are said to be, waves are not rewarded, failures are rows."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from typing import Any, NamedTuple
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.stats
from scipy.spatial import cKDTree
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA, KernelPCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, PowerTransformer, StandardScaler

from prinfold import GTM, PPS, SOM, Comparison, GTMMixture, PolygonalCurve, PrincipalTree, compare, datasets
from prinfold.exceptions import DegenerateWarning, InvalidDataError, InvalidParameterError
from prinfold.loops import StopReason
from prinfold.methods import METHODS, Method, manifolds
from prinfold.select import (
    candidates,
    comparing,
    dimensions,
    measures,
    missing_cells,
    samples,
    surfaces,
    trials,
    verdicts,
    wording,
)
from prinfold.select.branching import branching_note

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")

X = comparing._sort_rows(datasets.make_half_circle(90, 0.1, rng=0).X)
SMALL = GTM(1, nodes=12, basis=4)
STIFF = GTM(1, nodes=12, basis=3, width=2.0, regularization=1.0)
FEW = {"small": SMALL, "stiff": STIFF, "plane": PCA(1)}


class Broken(TransformerMixin, BaseEstimator):
    """Cannot be fitted where the rows it is given have the smallest of ``least`` among them, or ever."""

    def __init__(self, least: float = np.inf) -> None:
        self.least = least

    def fit(self, X: Any, y: Any = None) -> Broken:
        if X.min() <= self.least:
            raise RuntimeError("no luck today")
        return self

    def transform(self, X: Any) -> Any:
        return X[:, :1]

    def inverse_transform(self, Z: Any) -> Any:
        return np.repeat(Z, 2, axis=1)


class Waves:
    """The x axis of a plane with waves, as a surface; what it projects to is sought on a fine polyline."""

    def __init__(self, height: float) -> None:
        t = np.linspace(-4.0, 4.0, 4001)
        self.points = np.column_stack([t, height * np.sin(12.0 * t)])
        self.tree = cKDTree(self.points)

    def project(self, X: Any) -> Any:
        return self.points[self.tree.query(X)[1]]


@pytest.fixture(scope="module")
def found() -> Comparison:
    return compare(X, FEW, n_components=1, folds=3)


# ------------------------------------------------------------------------------------------------ the numbers


class Brute(NamedTuple):
    """One contestant over all folds, by plain NumPy."""

    errors: Any
    level: Any
    slope: Any
    spread: Any
    density: Any
    turning: float
    ranks: Any


def _turning(points: Any) -> float:
    steps = np.diff(points, axis=0)
    angle = np.arctan2(steps[:, 1], steps[:, 0])
    return float(np.abs(np.angle(np.exp(1j * np.diff(angle)))).sum())


def _intrusion(A: Any, B: Any, k: int = 5) -> float:
    """1 − 2/(n k (2n − 3k − 1)) Σ (r − k) over the k nearest in B that are not among the k nearest in A."""
    n, total = len(A), 0
    for i in range(n):
        order = [np.argsort(np.square(Y - Y[i]).sum(axis=1), kind="stable") for Y in (A, B)]
        order = [each[each != i] for each in order]
        for j in set(order[1][:k]) - set(order[0][:k]):
            total += int(np.flatnonzero(order[0] == j)[0]) + 1 - k
    return 1.0 - 2.0 * total / (n * k * (2 * n - 3 * k - 1))


def _by_hand(model: Any, fold: Any, noise: Any, widths: Any) -> Brute:
    n, is_plane = len(X), isinstance(model, PCA)
    errors, level, slope, density, spread = *np.zeros((4, n)), np.empty((n, len(widths)))
    turning, ranks = 0.0, [0.0, 0.0]
    for f in range(3):
        held = fold == f
        one = clone(model).set_params(random_state=0).fit(X[~held])
        project = (lambda Y, one=one: one.inverse_transform(one.transform(Y))) if is_plane else one.project
        errors[held] = np.square(X[held] - project(X[held])).sum(axis=1)
        density[held] = one.score_samples(X[held])
        for e in (noise[held], -noise[held]):
            off = X[held] - project(X[held] + e)
            level[held] += 0.5 * np.square(off).sum(axis=1)
            slope[held] -= (off * e).sum(axis=1)
        feet = project(X[~held])
        d2 = np.square(X[held][:, None] - feet[None]).sum(axis=2)
        for j, h in enumerate(widths):
            spread[held, j] = np.log((np.exp(-d2 / (2 * h**2)) / (2 * np.pi * h**2)).mean(axis=1) + 1e-300)
        if f == 0:  # the map is measured in the first fold only
            turning = 0.0 if is_plane else _turning(one.mesh(4000).vertices)
            Z = one.transform(X[~held])
            ranks = [_intrusion(X[~held], Z), _intrusion(Z, X[~held])]
    return Brute(errors, level, slope, spread, density, turning, ranks)


def test_the_table_is_what_the_folds_come_to(found: Comparison) -> None:
    """Every column of every contestant, from the folds, the noise and the draws that the seed makes."""
    rng = np.random.default_rng(0)
    fold = rng.permutation(len(X)) % 3  # no two rows are equal
    rng.integers(2**31)  # the seed of the methods
    sigma = measures.noise_of(X, 1)
    noise = rng.normal(scale=0.5 * sigma, size=X.shape)  # rows are sorted
    apart = np.median(np.sort(np.linalg.norm(X[:, None] - X[None], axis=2), axis=1)[:, 1])
    widths = np.geomspace(0.15 * min(sigma, apart), 3.0 * max(sigma, apart), 24)
    each = [_by_hand(model, fold, noise, widths) for model in FEW.values()]

    table, root = found.table, np.sqrt(len(X))
    np.testing.assert_allclose(table["error"], [b.errors.mean() for b in each], rtol=1e-6)
    np.testing.assert_allclose(table["standard_error"], [b.errors.std(ddof=1) / root for b in each], rtol=1e-6)
    np.testing.assert_allclose(table["log_likelihood"], [b.density.mean() for b in each], rtol=1e-6)
    np.testing.assert_allclose(table["roughness"], [b.turning for b in each], rtol=2e-3, atol=1e-6)
    ranks = np.array([b.ranks for b in each])
    np.testing.assert_allclose(np.column_stack([table["trustworthiness"], table["continuity"]]), ranks, rtol=1e-9)

    losses = np.stack([-b.spread[:, b.spread.mean(axis=0).argmax()] for b in each])  # the width that is best for all
    np.testing.assert_allclose(table["surface_likelihood"], -losses.mean(axis=1), rtol=1e-6)
    np.testing.assert_allclose(table["criterion"], losses.mean(axis=1), rtol=1e-6)
    np.testing.assert_allclose(table["criterion_standard_error"], losses.std(axis=1, ddof=1) / root, rtol=1e-6)
    per_tau = (0.5 * sigma) ** 2
    thinned = [(b.level + found.sigma**2 * b.slope / per_tau).mean() for b in each]
    np.testing.assert_allclose(table["thinned_error"], thinned, rtol=1e-6)
    best = int(np.argmin(thinned))
    assert found.sigma**2 == pytest.approx(min(sigma**2, each[best].errors.mean()))  # one direction is across

    apart = np.array([[(a - b).std(ddof=1) / root for b in losses] for a in losses])
    draws = rng.multinomial(len(X), np.full(len(X), 1 / len(X)), size=500)
    picked = [int(np.argmin(losses @ count)) for count in draws]
    np.testing.assert_allclose(table["wins"], np.bincount(picked, minlength=3) / 500)
    low = int(losses.mean(axis=1).argmin())
    assert found.chosen == low
    np.testing.assert_array_equal(table["tied"], losses.mean(axis=1) - losses.mean(axis=1)[low] <= apart[low])


def test_what_else_the_table_holds(found: Comparison) -> None:
    table = found.table
    assert table["method"] == ["small", "stiff", "plane"]
    assert table["roughness"][2] == pytest.approx(0.0, abs=1e-8)  # a straight line does not turn
    assert table["roughness"][0] > table["roughness"][1] > 0.1
    for name in ("trustworthiness", "continuity"):
        assert (table[name] > 0.5).all()
        assert (table[name] <= 1.0).all()
    assert (table["seconds"] >= 0).all()
    assert (table["memory"] > 0).all()
    assert table["wins"].sum() == pytest.approx(1.0)
    assert table["tied"][found.chosen]
    assert table["failure"] == ["", "", ""]
    np.testing.assert_array_equal(found.ranking(), np.argsort(table["criterion"]))


def test_the_recommended_model_is_fitted_to_all_rows(found: Comparison) -> None:
    assert found.recommended.method in found.names
    again = GTM(**found.model.get_params()).fit(X)
    np.testing.assert_allclose(found.recommended.model.project(X), again.project(X), rtol=1e-9)


def test_processes_change_nothing(found: Comparison) -> None:
    other = compare(X, FEW, folds=3, n_jobs=2)
    alone = dimensions.suggest_dimension(X, comparing._folds(X, 3, np.random.default_rng(0)))
    assert other.dimension is not None
    np.testing.assert_array_equal(other.dimension.log_likelihood, alone.log_likelihood)
    assert other.chosen == found.chosen
    for name in ("surface_likelihood", "thinned_error", "error", "roughness", "wins"):
        np.testing.assert_array_equal(other.table[name], found.table[name])


def test_the_order_of_rows_changes_nothing() -> None:
    """To the last bit, and above the number of rows that distances and neighbourhoods are taken from."""
    many = datasets.make_half_circle(900, 0.1, rng=4).X
    many[:3] = many[3]
    order = np.random.default_rng(3).permutation(len(many))
    methods = ["KernelPCA", PCA(1)]
    one, two = (compare(rows, methods, n_components=1, folds=2, max_rows=700) for rows in (many, many[order]))
    assert two.reason == one.reason
    for name in set(one.table) - {"seconds", "memory"}:
        np.testing.assert_array_equal(two.table[name], one.table[name])


@pytest.mark.parametrize("digits", [0, 12])
def test_folds_go_by_the_rank_of_a_row(digits: int) -> None:
    """Permuted, or in units that differ by a power of two, rows are held out with the same others."""
    rows = np.vstack([X.round(digits), X[:7].round(digits), -X[:5].round(digits)])
    order = np.random.default_rng(1).permutation(len(rows))
    tables = [rows, rows[order], 2.0**9 * rows, 2.0**-40 * rows[order]]
    there = [comparing._sort_rows(table) for table in tables]
    folds = [comparing._folds(each, 2, np.random.default_rng(5)) for each in there]
    for each, fold, scale in zip(there, folds, (1.0, 1.0, 2.0**9, 2.0**-40), strict=True):
        np.testing.assert_array_equal(each, scale * there[0])
        np.testing.assert_array_equal(fold, folds[0])
    different = {}
    for row, fold in zip(map(tuple, there[0]), folds[0], strict=True):
        assert different.setdefault(row, fold) == fold  # equal rows share a fold
    sizes = np.bincount(list(different.values()))
    assert len(sizes) == 2
    assert np.ptp(sizes) <= 1


def test_of_many_rows_those_that_take_part_are_spread_evenly() -> None:
    rows = np.column_stack([np.arange(101.0), np.zeros(101)])
    np.testing.assert_array_equal(comparing._evenly_spaced_rows(rows, 11), rows[::10])
    assert comparing._evenly_spaced_rows(rows, 101) is comparing._evenly_spaced_rows(rows, None) is rows
    np.testing.assert_array_equal(np.diff(comparing._evenly_spaced_rows(rows, 60)[:, 0]) > 0, True)


# -------------------------------------------------------------------------------------------- the yardsticks


@pytest.mark.parametrize("height", [0.0, 0.15, 0.6])
@pytest.mark.parametrize("tau", [0.1, 0.3])
def test_thinning_measures_how_well_rows_are_denoised(height: float, tau: float) -> None:
    """Whatever the surface, the mean of thinned errors is that of ‖s − P(x′)‖² but for Dσ²."""
    rng, sigma, n = np.random.default_rng(0), 0.2, 6000
    true = np.column_stack([rng.uniform(-2, 2, n), np.zeros(n)])
    rows = true + rng.normal(scale=sigma, size=true.shape)
    noise, surface = rng.normal(scale=tau, size=true.shape), Waves(height)
    thinning = measures.Thinning(noise, tau)
    feet = measures.feet_of(surface, rows, rows[:1], thinning)  # type: ignore[arg-type]
    level, slope = measures.thinned_errors(rows, feet, thinning)
    off = 0.5 * sum(np.square(true - surface.project(rows + s * noise)).sum(axis=1) for s in (1, -1))
    apart = level + sigma**2 * slope - 2 * sigma**2 - off
    assert abs(apart.mean()) < 4.0 * apart.std() / np.sqrt(n)


def test_waves_pass_for_accuracy_in_held_out_errors_but_not_when_thinned() -> None:
    rng, sigma = np.random.default_rng(1), 0.2
    rows = np.column_stack([rng.uniform(-2, 2, 1000), np.zeros(1000)]) + rng.normal(scale=sigma, size=(1000, 2))
    thinning = measures.thinning_of(rows, sigma, rng)
    flat, wavy = [], []
    for surface, seen in ((Waves(0.0), flat), (Waves(0.4), wavy)):
        feet = measures.feet_of(surface, rows, rows[:1], thinning)  # type: ignore[arg-type]
        level, slope = measures.thinned_errors(rows, feet, thinning)
        seen += [measures.errors(rows, feet).mean(), (level + sigma**2 * slope).mean()]
    assert wavy[0] < 0.5 * flat[0]
    assert wavy[1] > 1.2 * flat[1]


def test_without_noise_thinned_errors_are_plain_ones() -> None:
    surface = surfaces.surface_of(PCA(1).fit(X), X)
    thinning = measures.thinning_of(X, 0.0, np.random.default_rng(0))
    feet = measures.feet_of(surface, X, X[:1], thinning)
    level, slope = measures.thinned_errors(X, feet, thinning)
    np.testing.assert_allclose(level, measures.errors(X, feet))
    np.testing.assert_array_equal(slope, 0.0)


def test_the_noise_settles_at_what_the_best_surface_leaves() -> None:
    level, slope = np.array([[0.5], [1.0], [4.0]]), np.array([[2.0], [1.0], [0.5]])
    given = {"spread": level, "log_likelihood": level, "sigma": 3.0, "across": 2, "widths": np.ones(1), "variance": 1.0}
    found = verdicts.MethodLosses(level, level, slope, **given)
    # At 9 the last is best and leaves 2; then the second, 3 against 4.5 and 5; it leaves 0.5; the first leaves 0.25.
    assert verdicts.noise_left_by_best(found) == 0.25
    assert verdicts.noise_left_by_best(found._replace(sigma=0.1)) == pytest.approx(0.01)  # it never rises
    assert verdicts.noise_left_by_best(found._replace(across=0)) == 9.0


def test_spread_likelihoods_are_those_of_a_mixture() -> None:
    surface = surfaces.surface_of(PCA(1).fit(X[:60]), X[:60])
    widths = np.array([0.05, 0.2])
    thinning = measures.thinning_of(X[60:], 0.1, np.random.default_rng(0))
    found = measures.spread_likelihoods(X[60:], measures.feet_of(surface, X[60:], X[:60], thinning), widths)
    feet = surface.project(X[:60])
    for j, h in enumerate(widths):
        kernels = np.exp(-np.square(X[60:, None] - feet[None]).sum(axis=2) / (2 * h**2)) / (2 * np.pi * h**2)
        np.testing.assert_allclose(found[:, j], np.log(kernels.mean(axis=1)), rtol=1e-9)


def test_widths_reach_from_below_the_noise_to_above_the_gaps_between_rows() -> None:
    grid = np.column_stack([np.arange(30.0), np.zeros(30)])  # neighbours are a unit apart
    rows = np.repeat(grid, 4, axis=0)  # repeats are no neighbours
    for sigma, low, high in ((5.0, 0.15, 15.0), (0.5, 0.075, 3.0), (0.0, 0.015, 3.0)):
        widths = measures.widths_of(rows, sigma)
        assert widths[[0, -1]] == pytest.approx([low, high])
        np.testing.assert_allclose(widths[1:] / widths[:-1], (high / low) ** (1 / 23))


def test_repeated_rows_are_as_noisy_as_they_are_once() -> None:
    for q in (1, 2):
        rows = datasets.make_thesis_surface(120, 0.1, rng=0, sampling="parameter").X
        assert measures.noise_of(np.repeat(rows, 30, axis=0), q) == pytest.approx(measures.noise_of(rows, q))


def test_the_noise_is_found_and_has_an_answer_for_every_table() -> None:
    assert measures.noise_of(datasets.make_half_circle(400, 0.1, rng=1).X, 1) == pytest.approx(0.1, rel=0.25)
    cloud = np.random.default_rng(0).normal(scale=2.0, size=(200, 3))  # neighbourhoods are never longer than wide
    assert measures.noise_of(cloud, 2) == pytest.approx(2.0, rel=0.15)
    assert measures.noise_of(X[:, :1], 1) == 0.0
    assert measures.noise_of(np.ones((20, 2)), 1) == 0.0


def test_noise_for_thinning_goes_with_its_row() -> None:
    order = np.random.default_rng(0).permutation(len(X))
    thinning = measures.thinning_of(X, 0.1, np.random.default_rng(5))
    again = measures.thinning_of(X[order], 0.1, np.random.default_rng(5))
    np.testing.assert_array_equal(again.noise, thinning.part(order).noise)
    assert again.tau == 0.05


# ------------------------------------------------------------------------------------------------ the verdict


def test_the_front_holds_those_that_nobody_beats_in_both() -> None:
    rng = np.random.default_rng(0)
    rough, loss = rng.integers(0, 6, (2, 30)).astype(float)
    rough[3], loss[7] = np.nan, np.nan
    front = verdicts.pareto(rough, loss)
    for i in range(30):
        beaten = any(
            rough[j] <= rough[i] and loss[j] <= loss[i] and (rough[j] < rough[i] or loss[j] < loss[i])
            for j in range(30)
        )
        assert front[i] == (np.isfinite(rough[i] + loss[i]) and not beaten)


def test_the_elbow_is_where_the_front_bends() -> None:
    rough = np.array([1.0, 10.0, 100.0, 1000.0, 50.0])
    loss = np.array([1.0, 0.02, 0.015, 0.01, 5.0])
    assert verdicts.elbow(rough, loss) == 1
    assert verdicts.elbow(rough[[0, 3]], loss[[0, 3]]) == 1  # of a straight front the end with the lower loss
    assert verdicts.elbow(np.full(2, np.nan), np.array([2.0, 1.0])) == 1


def test_a_verdict_is_the_lowest_loss_and_knows_ties_and_the_smoothest_of_them() -> None:
    rng = np.random.default_rng(0)
    base = rng.normal(5.0, 1.0, 200)
    near = rng.normal(0.0, 0.01, 200)
    near -= near.mean()
    losses = np.stack([base, base + near + 0.0005, base + near + 0.001, base + 1.0, np.full(200, np.nan)])
    gap = near.std(ddof=1) / np.sqrt(200)
    assert 0.0005 < gap < 0.001
    rough = np.array([3.0, 2.0, 1.0, 0.0, 0.0])
    verdict = verdicts.judge(verdicts.CRITERIA["error"], losses, rough, np.random.default_rng(0))
    assert verdict.chosen == 0
    assert verdict.smoothest == 1  # the next is smoother still, but more than one standard error away
    assert verdict.tied.tolist() == [True, True, False, False, False]
    assert verdict.wins[3] == verdict.wins[4] == 0.0
    assert verdict.wins.sum() == 1.0
    np.testing.assert_allclose(verdict.standard_error[:4], losses[:4].std(axis=1, ddof=1) / np.sqrt(200))
    counts = np.random.default_rng(0).multinomial(200, np.full(200, 1 / 200), size=500)
    picked = [int(np.argmin([np.repeat(each, count).mean() for each in losses[:4]])) for count in counts]
    np.testing.assert_allclose(verdict.wins[:4], np.bincount(picked, minlength=4) / 500)


def test_who_is_smoothest() -> None:
    rough, loss, tied = np.array([2.0, 1.0, np.nan, 1.0]), np.array([1.0, 1.2, 0.9, 1.1]), np.full(4, True)
    assert verdicts.smoothest(rough, loss, tied, 2) == 2  # nobody knows how rough the chosen one is
    assert verdicts.smoothest(rough, loss, tied, 0) == 3  # of two as smooth the better
    assert verdicts.smoothest(rough, loss, np.array([True, True, True, False]), 0) == 1
    assert verdicts.smoothest(rough, loss, np.array([True, False, True, False]), 0) == 0


def test_what_rounding_makes_is_no_difference() -> None:
    losses = 1e-14 * np.arange(40.0).reshape(2, 20)
    for variance, tied in ((1.0, True), (1e-6, False)):
        least_gap = verdicts.CRITERIA["error"].least_gap(variance)
        found = verdicts.judge(verdicts.CRITERIA["error"], losses, np.zeros(2), np.random.default_rng(0), least_gap)
        assert found.chosen == 0
        assert found.tied[1] == tied
    assert verdicts.CRITERIA["likelihood"].least_gap(1e9) == 1e-12


THREE = candidates.candidates_of({"a": PCA(1), "b": PCA(1), "c": PCA(1)}, 1, X, 0)


def _said(wins: Any, tied: Any, *, smoothest: int = 0, name: str = "likelihood", **more: Any) -> list[str]:
    """What is said where the first of three has the lowest loss."""
    verdict = verdicts.Verdict(np.array([1.0, 1.1, 2.0]), np.ones(3), 0, np.array(tied), np.array(wins), smoothest)
    return wording.reasons(THREE, {"failure": [""] * 3}, verdict, name, **more)


def test_ties_are_said_in_words() -> None:
    said = _said([0.8, 0.2, 0.0], [True, True, False], smoothest=1, name="error")
    assert said[:3] == [
        "a is recommended: of 3 surfaces it has the lowest loss on rows held out (held-out error 1 ± 1).",
        "That is likely: it would be chosen in 80 % of resamples of the rows; within one standard error of it: b.",
        "The smoothest of those tied is b, for those who want a smooth map.",
    ]
    assert said[3].startswith(
        "± is one standard error of the mean over rows; ties are decided by that of the paired difference"
    )
    assert "smoothest" not in " ".join(_said([0.8, 0.2, 0.0], [True, True, False]))
    verdict = verdicts.Verdict(np.array([1.0, 1.1, 2.0]), np.ones(3), 1, np.full(3, True), np.full(3, 1 / 3), 1)
    balanced = wording.reasons(THREE, {"failure": [""] * 3}, verdict, "elbow")[0]
    assert balanced.startswith("b is recommended: of 3 surfaces it has the best balance of error and roughness")


def test_a_record_is_of_a_field_and_of_tables_like_these() -> None:
    (words,) = [line for line in _said([0.9, 0.1, 0.0], [True, False, False]) if "simulated" in line]
    assert "16 tables of 150 rows, eleven to thirteen of the GTM, PPS, UKR" in words
    blind = " ".join(_said([0.9, 0.1, 0.0], [True, False, False], name="error", why_not="no noise"))
    assert "which says little here: no noise." in blind
    assert "simulated" not in blind
    one = verdicts.Verdict(np.array([1.0, np.nan, np.nan]), np.ones(3), 0, np.eye(3)[0] > 0, np.eye(3)[0], 0)
    assert "simulated" not in " ".join(wording.reasons(THREE, {"failure": ["", "x", "x"]}, one, "likelihood"))


def test_a_column_that_spreads_much_farther_is_named() -> None:
    frame = pd.DataFrame({"weight": 12.0 * X[:, 0], "height": X[:, 1], "same": 1.0})
    words = r"standard deviation of 'weight' is [\d.]+ times that of 'height'.*standardise them first"
    with pytest.warns(DegenerateWarning, match=words):
        other = compare(frame, {"plane": PCA(1)}, n_components=1, folds=2)
    assert "standard deviation of 'weight'" in other.reason
    for fair in (X, np.column_stack([X[:, 0], np.ones(len(X))])):  # the only one that varies has nobody beside it
        assert "times that of" not in compare(fair, {"plane": PCA(1)}, n_components=1, folds=2).reason
    with pytest.warns(DegenerateWarning, match="standard deviation of 'column 2'"):
        compare(X * [1.0, 60.0], {"plane": PCA(1)}, n_components=1, folds=2)


@pytest.mark.parametrize("criterion", verdicts.CRITERIA)
def test_every_criterion_has_a_verdict(criterion: str) -> None:
    other = compare(X, {"small": SMALL, "plane": PCA(1)}, n_components=1, folds=2, criterion=criterion)
    assert other.criterion == criterion
    sign, column = {
        "likelihood": (-1.0, "surface_likelihood"),
        "thinned": (1.0, "thinned_error"),
        "error": (1.0, "error"),
        "elbow": (1.0, "error"),
        "density": (-1.0, "log_likelihood"),
    }[criterion]
    np.testing.assert_allclose(other.table["criterion"], sign * other.table[column])
    if criterion == "elbow":
        assert other.table["front"][other.chosen]
    else:
        assert other.recommended.method == "small"
        assert other.table["tied"][other.chosen]


def test_a_method_without_a_density_is_not_judged_by_it() -> None:
    other = compare(
        X,
        {"small": SMALL, "kernels": KernelPCA(1, fit_inverse_transform=True)},
        n_components=1,
        folds=3,
        criterion="density",
    )
    assert np.isnan(other.table["criterion"][1])
    assert other.table["log_likelihood"][0] == pytest.approx(-other.table["criterion"][0])
    with pytest.raises(
        InvalidParameterError, match="the criterion 'density' says nothing of these methods; use criterion='likelihood'"
    ):
        compare(X, KernelPCA(1, fit_inverse_transform=True), n_components=1, criterion="density")


# ------------------------------------------------------------------------------------------------ who takes part


def test_every_manifold_takes_part_by_itself() -> None:
    names = {each.name for each in manifolds()}
    assert {"GTM", "PPS", "UKR", "KMM", "DensityRidge"} <= names
    everyone = candidates.candidates_of("all", 1, X, 7)
    listed = {one.method for one in everyone}
    assert listed == {each.name for each in manifolds() if each.compared} | {"PCA", "KernelPCA", "Isomap"}
    assert all(one.model.get_params().get("n_components", 1) == 1 for one in everyone)
    assert all(one.model.get_params().get("random_state", 7) is not None for one in everyone)
    assert len({one.name for one in everyone}) == len(everyone)


def test_curves_are_no_sheets() -> None:
    for q in (1, 2):
        assert ("PolygonalCurve" in {one.method for one in candidates.candidates_of("all", q, X, 0)}) == (q == 1)


def registered(cls: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The class, known as a method for the time of a test."""
    monkeypatch.setattr(sys.modules[__name__], cls.__name__, cls, raising=False)
    method = Method(cls.__name__, __name__, noun="novelty", cites=(), surface="basis")
    monkeypatch.setitem(METHODS, method.name, method)
    return cls


def test_a_manifold_that_is_new_stands_in_the_table_with_its_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    new = registered(type("Novelty", (GTM,), {"__init__": GTM.__init__}), monkeypatch)
    (one,) = [one for one in candidates.candidates_of("all", 1, X, 0) if one.method == "Novelty"]
    assert type(one.model) is new
    assert one.settings == ""
    assert one.model.n_components == 1


@pytest.mark.parametrize("fixed", [1, 2])
def test_a_manifold_of_one_dimension_only_takes_part_where_it_is_asked_for(
    fixed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A method without ``n_components``, which knows its dimension itself."""

    def start(self: Any, max_iter: int = 50) -> None:
        self.max_iter = max_iter

    rigid = registered(type(f"Rigid{fixed}", (GTM,), {"__init__": start, "_dimension": fixed}), monkeypatch)
    for q in (1, 2, 3):
        listed = [one for one in candidates.candidates_of("all", q, X, 0) if one.method == rigid.__name__]
        assert len(listed) == (q == fixed)
        (named,) = candidates.candidates_of(rigid.__name__, q, X, 0)
        assert type(named.model) is rigid
        assert candidates.candidates_of(rigid(9), q, X, 0)[0].model.max_iter == 9


def test_names_objects_and_pairs() -> None:
    everyone = candidates.candidates_of(["PPS", PCA(2), ("mine", SMALL)], 1, X, 0)
    assert [one.name for one in everyone] == ["PPS", "PCA(n_components=2)", "mine"]
    assert isinstance(everyone[0].model, PPS)
    assert everyone[1].model.n_components == 2  # what is given as an object keeps its settings
    assert [one.name for one in candidates.candidates_of("PCA", 1, X, 0)] == ["PCA"]
    assert [one.name for one in candidates.candidates_of(SMALL, 1, X, 0)] == ["GTM(basis=4, n_components=1, nodes=12)"]
    with pytest.raises(InvalidParameterError, match=r"there is no method 'TSNE' to compare; there are .*GTM.*PCA"):
        candidates.candidates_of(["TSNE"], 1, X, 0)
    with pytest.raises(InvalidParameterError, match="it takes names, estimators"):
        candidates.candidates_of([GTM], 1, X, 0)
    with pytest.raises(InvalidParameterError, match="methods is empty"):
        candidates.candidates_of([], 1, X, 0)


def test_a_failure_is_a_row_and_not_the_end() -> None:
    fold = comparing._folds(X, 3, np.random.default_rng(0))
    low = X[fold == 1].min()  # where this row is seen it fails, unless a lower one is held out with it
    n_failed = sum(X[fold != f].min() <= low for f in range(3))
    assert 0 < n_failed < 3 or low > X.min()
    given = {"small": SMALL, "broken": Broken(), "sometimes": Broken(X.min()), "clusters": KMeans(3)}
    other = compare(X, given, n_components=1, folds=3)
    assert other.recommended.method == "small"
    assert other.table["failure"][1] == "RuntimeError: no luck today"
    assert other.table["failure"][2] == "in 2 of 3 folds: RuntimeError: no luck today"
    assert "needs transform and inverse_transform" in other.table["failure"][3]
    assert np.isnan(other.table["criterion"][1:]).all()
    assert "3 of 4 could not be fitted or measured" in other.reason
    assert "no luck today" in str(other)
    with pytest.raises(InvalidDataError, match=r"no method could be fitted to these rows; b: RuntimeError: no luck"):
        compare(X, {"b": Broken()}, n_components=1)


class Fussy(PCA):  # type: ignore[misc]
    """Takes parts of a table but never all of it."""

    def fit(self, X: Any, y: Any = None) -> Fussy:
        if len(X) == len(globals()["X"]):
            raise RuntimeError("too many")
        return super().fit(X)

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        return self.fit(X).transform(X)


def test_who_cannot_be_fitted_to_all_rows_leaves_its_place_to_the_next() -> None:
    other = compare(X, {"first": make_pipeline(Fussy(2), SMALL), "plane": PCA(1)}, n_components=1, folds=2)
    assert other.recommended.method == "plane"
    assert other.model.n_samples_ == len(X)
    assert other.table["failure"][0] == "fitted to all rows: RuntimeError: too many"
    assert np.isnan(other.table["criterion"][0])
    assert other.table["wins"].tolist() == [0.0, 1.0]
    assert "first came out ahead, but could not be fitted to all rows (RuntimeError: too many)" in other.reason
    with pytest.raises(InvalidDataError, match="no method could be fitted to all rows; only came out ahead, but"):
        compare(X, {"only": Fussy(1)}, n_components=1, folds=2)


def test_names_are_told_apart() -> None:
    everyone = candidates.candidates_of([PCA(1), "PCA", ("a", PCA(1)), PCA(1), "PCA", ("a", SMALL)], 1, X, 0)
    names = ["PCA(n_components=1)", "PCA", "a", "PCA(n_components=1, no. 2)", "a(no. 2)"]
    assert [one.name for one in everyone] == names  # a method that is named twice is the same


def test_another_dimension_than_the_one_asked_for_is_said() -> None:
    given = {"two": PCA(2), "one": PCA(1), "end": make_pipeline(PCA(2), GTM(2)), "curve": PolygonalCurve()}
    everyone = candidates.candidates_of(given, 1, X, 0)
    (words,) = wording.other_dimensions(everyone, 1)
    assert words.startswith("Not of dimension 1, as was asked for: two has 2, end has 2; they keep their own")
    assert ": one has 1, curve has 1;" in wording.other_dimensions(everyone, 2)[0]
    assert wording.other_dimensions(everyone[1:2], 1) == []


def test_dimensions_are_those_of_the_latent_spaces_that_were_fitted() -> None:
    """A ring has one dimension, whatever ``n_components`` says of grids."""
    ring, plane = SOM(nodes=6, latent="circle", max_iter=2, tol=0), SOM(nodes=(3, 2), max_iter=2, tol=0)
    found = compare(X, {"ring": ring, "plane": plane}, n_components=1, folds=2)
    (said,) = [words for words in found.notes if words.startswith("Not of dimension")]
    assert ": plane has 2;" in said


def test_several_pieces_have_no_roughness_and_are_never_the_front() -> None:
    pieces = GTMMixture(2, gtm=GTM(1, nodes=6, basis=3), n_init=1)
    other = compare(X, {"pieces": pieces, "plane": PCA(1), "small": SMALL}, n_components=1, folds=2)
    assert np.isnan(other.table["roughness"][0])
    assert not other.table["front"][0]
    assert other.table["front"][1:].any()
    assert np.isfinite(other.table["criterion"][0])
    assert "GTMMixture" not in {one.method for one in candidates.candidates_of("all", 1, X, 0)}


def test_a_surface_that_is_not_finite_fails() -> None:
    class Nowhere(PCA):  # type: ignore[misc]
        def inverse_transform(self, Z: Any) -> Any:
            return np.full((len(Z), 2), np.nan)

    trial = trials.MethodComparison(
        X, np.arange(len(X)) % 2, np.ones(2), measures.Thinning(np.zeros_like(X), 0.1), 1
    ).attempt(Nowhere(1), 0)
    assert trial.failure


def test_ctrl_c_is_not_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Broken, "fit", pressed)
    with pytest.raises(KeyboardInterrupt):
        compare(X, Broken(), n_components=1)


def test_a_fit_that_was_interrupted_ends_the_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Broken, "stop_reason_", StopReason.INTERRUPTED, raising=False)
    for model in (Broken(-np.inf), make_pipeline(StandardScaler(), Broken(-np.inf))):
        with pytest.raises(KeyboardInterrupt):
            compare(X, model, n_components=1, folds=2)


def test_what_everyone_is_tried_with() -> None:
    names = {one.name for one in candidates.candidates_of(["GTM", "PPS"], 1, X, 0)}
    assert {"GTM", "GTM(prior_precision=evidence)", "PPS"} <= names
    scale = np.median(np.square(X[:, None] - X[None]).sum(axis=2)[np.triu_indices(len(X), 1)])
    assert candidates.BASELINES["KernelPCA"](1, X).gamma == pytest.approx(1.0 / scale)


@pytest.mark.parametrize(("width", "sees"), [(1.95, True), (2.05, False)])
def test_kernels_more_than_twice_as_wide_as_the_noise_are_blind(width: float, sees: bool) -> None:
    one = np.zeros((1, 4))
    given = {"log_likelihood": one, "sigma": 3.0, "across": 1, "widths": np.array([3.0 * width]), "variance": 1.0}
    found = verdicts.MethodLosses(one, one, one, np.zeros((1, 4, 1)), **given)
    assert (verdicts.why_likelihood_is_blind(found) == "") == sees


@pytest.mark.parametrize(("ratio", "said"), [(9.9, False), (10.1, True)])
def test_a_column_is_named_from_a_tenfold_spread_on(ratio: float, said: bool) -> None:
    rows = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]) * [ratio, 1.0]
    assert bool(comparing._warn_about_rows(rows, ["a", "b"])) == said


def test_three_dimensions_are_tried_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dimensions, "_held_out", lambda seen, rows, q: np.full(len(rows), float(q)))
    found = dimensions.suggest_dimension(np.zeros((8, 5)), np.arange(8) % 2)
    assert found.tried.tolist() == [1, 2, 3]


# ---------------------------------------------------------------------------------------------- the baselines


def test_transformers_project_no_farther_than_their_round_trip() -> None:
    plane = surfaces.surface_of(PCA(1).fit(X), X)
    np.testing.assert_allclose(plane.project(X), PCA(1).fit(X).inverse_transform(PCA(1).fit_transform(X)), atol=1e-9)
    model = KernelPCA(1, kernel="rbf", fit_inverse_transform=True).fit(X)
    found = np.square(X - surfaces.surface_of(model, X).project(X)).sum(axis=1)
    trip = np.square(X - model.inverse_transform(model.transform(X))).sum(axis=1)
    assert (found <= trip + 1e-12).all()
    assert found.mean() < 0.9 * trip.mean()


def test_the_roughness_of_a_transformer_is_that_of_its_surface() -> None:
    sheet = datasets.make_thesis_surface(60, rng=0, sampling="parameter").X
    assert surfaces.surface_of(PCA(2).fit(sheet), sheet).roughness() == pytest.approx(0.0, abs=1e-6)
    assert np.isnan(surfaces.surface_of(PCA(3).fit(sheet), sheet).roughness())  # nobody looks at solids
    point = np.ones((9, 2))
    assert np.isnan(surfaces.surface_of(StandardScaler().fit(point), point).roughness())


def test_isomap_has_an_inverse_without_jumps() -> None:
    model = surfaces.NeighborIsomap(1, n_neighbors=6).fit(X)
    Z = model.transform(X)
    fine = np.linspace(Z.min(), Z.max(), 4001)[:, None]
    steps = np.linalg.norm(np.diff(model.inverse_transform(fine), axis=0), axis=1)
    coarse = np.linalg.norm(np.diff(model.inverse_transform(fine[::2]), axis=0), axis=1)
    assert steps.max() < 0.75 * coarse.max()  # of a jump both would be as large
    assert np.square(X - model.inverse_transform(Z)).sum(axis=1).mean() < 0.05
    tiny = surfaces.NeighborIsomap(1).fit(X[:3])
    assert np.isfinite(tiny.inverse_transform(tiny.transform(X[:3]))).all()


# ----------------------------------------------------------------------------------------------- the dimension


def test_the_dimension_of_a_curve_and_of_a_sheet() -> None:
    rng = np.random.default_rng(0)
    t = rng.uniform(-2.0, 2.0, 150)
    curve = np.column_stack([t, np.sin(2 * t), np.cos(t)]) + rng.normal(scale=0.05, size=(150, 3))
    sheet = datasets.make_thesis_surface(200, 0.1, rng=0, sampling="parameter").X
    for rows, q in ((curve, 1), (sheet, 2)):
        fold = samples.split_rows(rows, 3, np.random.default_rng(0))
        found = dimensions.suggest_dimension(rows, fold)
        assert found.suggested == q
        assert found.tried.tolist() == [1, 2]
        held = [GTM(q, prior_precision="evidence", random_state=0).fit(rows[fold != f]) for f in range(3)]
        scores = np.concatenate([model.score_samples(rows[fold == f]) for f, model in enumerate(held)])
        assert found.log_likelihood[q - 1] == pytest.approx(scores.mean())
        assert f"{q} dimension" in str(found)


@pytest.mark.parametrize(("short", "suggested"), [(0.9, 1), (1.1, 2)])
def test_the_fewest_dimensions_within_one_standard_error_are_suggested(short: float, suggested: int) -> None:
    rng = np.random.default_rng(2)
    best, apart = rng.normal(size=80), rng.normal(scale=0.3, size=80)
    apart -= apart.mean()
    error = apart.std(ddof=1) / np.sqrt(80)  # of the paired difference, which is less than that of either
    rows = np.stack([best + apart - short * error, best, best - 5.0, np.full(80, -np.inf)])
    found = dimensions.fewest_dimensions(np.arange(1, 5), rows)
    assert found.suggested == suggested
    np.testing.assert_allclose(found.standard_error[[0, 1, 3]], [error, 0.0, np.inf], atol=1e-12)
    np.testing.assert_allclose(found.log_likelihood, rows.mean(axis=1))
    assert ("2 come out ahead, but by no more than one standard error" in str(found)) == (suggested == 1)
    worse = dimensions.fewest_dimensions(
        np.arange(1, 3), np.stack([best - 5.0, best])
    )  # a constant difference is no tie
    assert worse.suggested == 2


def test_a_dimension_is_suggested_where_none_is_given() -> None:
    other = compare(X, "PCA", folds=2)
    assert other.dimension is not None
    assert other.n_components == other.dimension.suggested == 1
    assert "Dimension: 1 dimension, by" in str(other)
    with pytest.raises(InvalidDataError, match="no GTM could be fitted to suggest a dimension; give n_components"):
        dimensions.suggest_dimension(np.full((6, 2), np.nan), np.arange(6) % 2)


# --------------------------------------------------------------------------------------------- words and tables


def test_it_prints_itself(found: Comparison) -> None:
    words = str(found)
    assert repr(found) == words
    lines = words.splitlines()
    assert lines[0] == "3 surfaces of dimension 1, by their likelihood criterion"
    assert lines[2].endswith("← recommended")
    assert sum("recommended" in line for line in lines[1:5]) == 1
    words = f"{found.recommended.name} is recommended: of 3 surfaces it has the lowest loss on rows held out"
    assert words in found.reason
    assert "of resamples of the rows" in found.reason
    assert "seconds: of one fit; the whole comparison took" in str(found)
    for heading in ("criterion: minus log-likelihood about the surface, lowest at best", "contin: ", "MB: "):
        assert sum(line.startswith(heading) for line in lines) == 1
    alone = compare(X, {"plane": PCA(1)}, n_components=1, folds=2)
    assert "is the only one that could be judged" in alone.reason
    assert str(alone).startswith("1 surface of dimension 1,")


def test_endless_roughness_is_not_printed_as_a_number(found: Comparison) -> None:
    assert ">1e+06" not in str(found)
    words = str(replace(found, table={**found.table, "roughness": np.array([4e99, 1.0, np.nan])}))
    assert ">1e+06" in words
    assert "e+99" not in words
    assert "roughness above 1e+06 is not compared further" in words


def test_notebooks_show_it_as_a_table(found: Comparison) -> None:
    everyone = (*found.candidates[:2], found.candidates[2]._replace(method="<b>&"))
    long = "ValueError: " + "x < y " * 40
    other = replace(found, candidates=everyone, table={**found.table, "failure": ["", long, ""]})
    page = ET.fromstring(other._repr_html_())  # well formed, whatever methods are called
    lines = [["".join(cell.itertext()) for cell in row] for row in page.iter("tr")]
    printed = str(other).splitlines()
    assert [line[0] for line in lines[1:]] == [other.names[i] for i in other.ranking()]
    for line, text in zip(lines, printed[1:], strict=False):
        assert " ".join(" ".join(line[:-1]).split()) in " ".join(text.split())  # the cells are those that are printed
    assert [line[-1] for line in lines].count("← recommended") == 1
    assert [row.get("style") for row in page.iter("tr")].count("font-weight: bold") == 1
    assert long in [line[-1] for line in lines]  # in full
    assert [paragraph.text for paragraph in page.iter("p")] == printed[5:]
    assert printed[5 : 5 + len(other.notes)] == list(other.notes)
    assert page.findtext("table/caption") == printed[0]


@pytest.mark.parametrize(("share", "words"), [(0.95, "certain for these rows"), (0.7, "likely"), (0.52, "close call")])
@pytest.mark.parametrize("tie", [False, True])
def test_how_sure_it_is(share: float, words: str, tie: bool) -> None:
    """Nothing is sure while another is tied, and a close call is never said to be far from all others."""
    said = _said([share, 1 - share, 0.0], [True, tie, False])[1]
    assert ("likely" if tie and share == 0.95 else words) in said
    assert ("within one standard error of it: b" in said) == tie
    assert ("every other one is more than one standard error away" in said) == (not tie and share > 0.6)
    assert (", b in 48 %" in said) == (share == 0.52)


def test_the_table_as_a_frame(found: Comparison) -> None:
    frame = found.to_frame()
    assert isinstance(frame, pd.DataFrame)
    assert frame["recommended"].tolist() == [i == found.chosen for i in range(3)]
    np.testing.assert_array_equal(frame["error"], found.table["error"])
    assert found.to_frame("polars")["method"].to_list() == found.table["method"]
    with pytest.raises(InvalidParameterError, match="backend must be 'pandas', 'polars' or 'pyarrow', got"):
        found.to_frame({})


# -------------------------------------------------------------------------------------------------- odd tables


def test_frames_go_in_and_the_model_keeps_their_names() -> None:
    frame = pl.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    other = compare(frame, {"small": SMALL}, n_components=1, folds=2)
    assert list(other.model.feature_names_in_) == ["a", "b"]


def test_of_many_rows_some_take_part_and_all_are_fitted_to() -> None:
    other = compare(X, {"plane": PCA(1)}, n_components=1, folds=2, max_rows=40)
    assert other.model.n_samples_ == len(X)
    some = compare(
        X[np.random.default_rng(0).permutation(len(X))], {"plane": PCA(1)}, n_components=1, folds=2, max_rows=40
    )
    np.testing.assert_allclose(other.table["error"], some.table["error"])
    assert "40 of 90 rows were compared (max_rows)" in other.reason
    everything = compare(X, {"plane": PCA(1)}, n_components=1, folds=2, max_rows=None)
    assert "were compared (max_rows)" not in everything.reason
    assert everything.table["error"][0] != other.table["error"][0]


@pytest.mark.parametrize(
    "rows",
    [
        X[:, :1],
        np.column_stack([X, np.ones(len(X))]),
        np.repeat(X[:30], 3, axis=0),
        np.vstack([X, [[1e6, 1e6]]]),
        X[:10],
    ],
    ids=["one column", "a constant column", "repeats", "far off", "few rows"],
)
def test_degenerate_tables_have_an_answer(rows: Any) -> None:
    other = compare(rows, {"plane": PCA(1), "small": SMALL}, n_components=1, folds=2)
    assert np.isfinite(other.table["criterion"][other.chosen])
    assert other.recommended.model is not None


FILLS = "surfaces of as many dimensions as there are columns leave nothing across them"


@pytest.mark.parametrize(
    ("rows", "q", "words"),
    [
        (X[:, :1], 1, FILLS),
        (X, 2, FILLS),
        (datasets.make_half_circle(60, 0.0, rng=0).X, 1, "rows show a noise of"),
        (np.outer(np.linspace(0, 1, 40), [3.0, 4.0]), 1, "rows show a noise of"),
    ],
    ids=["one column", "Q = D", "exact curve", "exact line"],
)
def test_without_noise_the_error_stands_in_for_the_likelihood(rows: Any, q: int, words: str) -> None:
    bent = GTM(q, nodes=30 if q == 1 else 6, basis=8 if q == 1 else 3, regularization=1e-6)
    other = compare(rows, {"bent": bent, "plane": PCA(q)}, n_components=q, folds=2)
    assert other.criterion == "error"
    assert "stands in for their likelihood" in other.reason
    assert words in other.reason
    assert other.table["criterion"][1] == pytest.approx(other.table["error"][1])
    best = "plane" if np.linalg.matrix_rank(rows - rows.mean(axis=0)) == q else "bent"  # planes through flats are exact
    assert other.recommended.method == best


def test_repeats_do_not_make_the_criterion_blind() -> None:
    once, often = (compare(rows, FEW, n_components=1, folds=2) for rows in (X, np.repeat(X, 8, axis=0)))
    for other in (once, often):
        assert other.criterion == "likelihood"
        assert other.recommended.method == "small"
    plane = [other.table["surface_likelihood"][2] for other in (once, often)]  # which is the same for repeats
    assert plane[0] == pytest.approx(plane[1])


def test_scaling_carries_through() -> None:
    other = compare(4.0 * StandardScaler().fit_transform(X), {"plane": PCA(1)}, n_components=1, folds=2)
    unit = compare(StandardScaler().fit_transform(X), {"plane": PCA(1)}, n_components=1, folds=2)
    np.testing.assert_allclose(other.table["thinned_error"], 16.0 * unit.table["thinned_error"], rtol=1e-6)
    # In two columns a density falls by the square of the scale.
    shift = 2.0 * np.log(4.0)
    np.testing.assert_allclose(other.table["surface_likelihood"], unit.table["surface_likelihood"] - shift, rtol=1e-6)
    np.testing.assert_allclose(other.table["wins"], unit.table["wins"])


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"criterion": "best"}, "criterion must be one of 'likelihood', .*got 'best'"),
        ({"folds": 1}, "folds must be .*got 1"),
        ({"folds": None}, "folds must be .*got None"),
        ({"n_components": 0}, "n_components must be .*got 0"),
        ({"max_rows": 3}, "max_rows must be .*got 3"),
    ],
)
def test_wrong_settings_are_refused(options: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidParameterError, match=match):
        compare(X, "PCA", **options)


def test_wrong_tables_are_refused() -> None:
    with pytest.raises(InvalidDataError, match="5 folds need at least 10 different rows, got 4"):
        compare(np.repeat(X[:4], 5, axis=0), "PCA")
    holes = X.copy()
    holes[3:, 1] = np.nan
    with pytest.raises(InvalidDataError, match="5 folds need at least 10 different rows without gaps, got 3"):
        compare(holes, "PCA")
    holes[3, 1] = np.inf
    with pytest.raises(InvalidDataError, match="inf"):
        compare(holes, "PCA")


# ------------------------------------------------------------------------------------------------------ rows with gaps


def _with_gaps(n: int = 90) -> np.ndarray:
    rng = np.random.default_rng(4)
    t = rng.uniform(-1, 1, n)
    rows = np.stack([t, t**2, np.sin(2 * t), t**3 - t], axis=1) + 0.05 * rng.normal(size=(n, 4))
    rows[:30][rng.random((30, 4)) < 0.25] = np.nan
    rows[0, 1:], rows[0, 0] = np.nan, 0.3  # on any curve
    return rows


def test_rows_with_gaps_are_judged_by_what_they_have() -> None:
    holes = _with_gaps()
    found = compare(holes, [GTM(1, nodes=8, basis=4, max_iter=5, tol=0), PCA(1)], n_components=1, folds=3)
    assert not any(found.table["failure"])
    count = np.sum(~np.isnan(holes), axis=1)
    assert f"{np.sum((count > 1) & (count < 4))} of 90 rows have missing cells" in str(found)
    assert "Methods that need every cell (PCA) are fitted to complete rows only" in str(found)
    assert f"{np.sum(count == 1)} of 90 rows were not judged: they have 1 known cell or fewer" in str(found)
    # By hand: a fold's errors of rows with gaps are those of projection_error.
    rows = holes[count > 1]
    fold = np.arange(len(rows)) % 3
    model = GTM(1, nodes=8, basis=4, max_iter=5, tol=0)
    job = trials.MethodComparison(rows, fold, np.ones(2), measures.Thinning(np.zeros_like(rows), 0.1), 1)
    error = job.attempt(model, 0).errors.mean()
    assert error == pytest.approx(model.fit(rows[fold != 0]).projection_error(rows[fold == 0]))


def test_points_nearest_in_measured_cells_are_found_by_turns() -> None:
    holes = _with_gaps()[1:]
    whole = holes[~np.isnan(holes).any(axis=1)]
    plane = PCA(1).fit(whole)
    found = surfaces.surface_of(plane, whole).project(holes)
    seen, line = ~np.isnan(holes), plane.components_[0]
    off = np.where(seen, holes - plane.mean_, 0.0)
    z = off @ line / (seen @ line**2)  # least squares over the cells seen
    np.testing.assert_allclose(found, plane.mean_ + z[:, None] * line, atol=1e-4)
    away = missing_cells.measured_squares(holes + 1e6, whole + 1e6)
    wanted = np.nansum(np.square(holes[:, None] - whole), axis=2)
    np.testing.assert_allclose(away, wanted, atol=1e-6)


def test_measured_cells_have_the_likelihood_that_is_left_when_others_are_summed_out() -> None:
    holes = _with_gaps()[1:]
    whole = holes[~np.isnan(holes).any(axis=1)]
    surface = surfaces.surface_of(PCA(1).fit(whole), whole)
    thinning, h = measures.Thinning(np.zeros_like(holes), 0.0), 0.3
    nearest = measures.feet_of(surface, holes, whole, thinning)
    found, feet = measures.spread_likelihoods(holes, nearest, np.array([h]))[:, 0], nearest.seen
    for x, value in zip(holes, found, strict=True):
        each = scipy.stats.norm.logpdf(x, feet, h)
        assert value == pytest.approx(np.log(np.mean(np.exp(np.nansum(each, axis=1)))))


# --------------------------------------------------------------------------------------------------- pipelines


UNEQUAL = X * [1.0, 20.0]


@pytest.mark.parametrize("steps", [StandardScaler(), PowerTransformer()], ids=["straight", "bent"])
def test_a_surface_at_the_end_of_a_pipeline_is_measured_among_the_rows(steps: Any) -> None:
    model = make_pipeline(steps, SMALL).fit(UNEQUAL)
    surface = surfaces.surface_of(model, UNEQUAL)
    fine = steps.inverse_transform(model[-1].mesh(20001).vertices)
    there = surface.project(UNEQUAL)
    off, gap = np.square(UNEQUAL - there).sum(axis=1), np.square(np.diff(fine, axis=0)).sum(axis=1).max()
    nearest = np.square(cKDTree(fine).query(UNEQUAL)[0])  # in the rows' own units
    np.testing.assert_allclose(off, nearest, atol=gap, rtol=1e-9)
    assert np.square(cKDTree(fine).query(there)[0]).max() < gap  # and on the surface
    own = np.square(UNEQUAL - steps.inverse_transform(model[-1].project(steps.transform(UNEQUAL)))).sum(axis=1)
    assert (off <= own).all()
    assert off.mean() < 0.8 * own.mean()  # which is another thing
    turns = np.diff(fine[::20], axis=0)
    angle = np.arctan2(turns[:, 1], turns[:, 0])
    assert surface.roughness() == pytest.approx(np.abs(np.angle(np.exp(1j * np.diff(angle)))).sum(), rel=0.02)
    np.testing.assert_array_equal(surface.coordinates(UNEQUAL), model.transform(UNEQUAL))


def test_the_density_of_a_pipeline_is_that_of_the_rows() -> None:
    model = make_pipeline(StandardScaler(), SMALL).fit(UNEQUAL)
    density = surfaces.surface_of(model, UNEQUAL).log_likelihood(UNEQUAL)
    assert density is not None
    scale = model[0].scale_
    np.testing.assert_allclose(density, model[-1].score_samples(model[0].transform(UNEQUAL)) - np.log(scale).sum())
    for steps in (PowerTransformer(), PCA(1)):  # bent, and with a column less
        other = make_pipeline(steps, GTM(1, nodes=5, basis=3)).fit(UNEQUAL)
        assert surfaces.surface_of(other, UNEQUAL).log_likelihood(UNEQUAL) is None


def test_pipelines_stand_in_the_table() -> None:
    given = {
        "scaled": make_pipeline(StandardScaler(), SMALL),
        "same": make_pipeline("passthrough", SMALL),
        "small": SMALL,
        "lost": make_pipeline(Normalizer(), SMALL),
        "plane": make_pipeline(StandardScaler(), PCA(1)),
    }
    other = compare(UNEQUAL, given, n_components=1, folds=2)
    assert "the step normalizer cannot be undone" in other.table["failure"][3]
    assert [bool(words) for words in other.table["failure"]] == [False, False, False, True, False]
    for name in ("error", "roughness", "log_likelihood", "surface_likelihood"):
        assert other.table[name][1] == pytest.approx(other.table[name][2], rel=1e-6)
        assert np.isfinite(other.table[name][0])


def test_parts_of_a_model_begin_alike_too() -> None:
    ours = make_pipeline(PCA(2), GTM(1, random_state=None))
    (one,) = candidates.candidates_of({"mine": ours}, 1, X, 7)
    assert one.model.get_params()["gtm__random_state"] == one.model.get_params()["pca__random_state"] == 7
    assert ours.get_params()["gtm__random_state"] is None
    (two,) = candidates.candidates_of({"mine": make_pipeline(GTM(1, random_state=3))}, 1, X, 7)
    assert two.model.get_params()["gtm__random_state"] == 3


def test_the_plane_knows_no_origin():
    """PCA among the baselines loses no digits to rows that sit far from zero."""
    X = datasets.make_half_circle(60, noise=0.1, rng=0).X
    near, far = (compare(X + offset, ["PCA"], n_components=1, folds=3) for offset in (0.0, 1e7))
    for name in ("error", "surface_likelihood"):
        assert far.table[name][0] == pytest.approx(near.table[name][0], rel=1e-5), name


# ------------------------------------------------------------------------------------------------ progress, branches


def test_progress_names_who_is_done_and_what_is_left(capsys: Any) -> None:
    compare(X, {"one": PCA(1), "two": PCA(1)}, n_components=1, folds=2, verbose=1)
    first, second = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"1 of 2  one: \d+\.\d s, about \d+ s left", first)
    assert re.fullmatch(r"2 of 2  two: \d+\.\d s", second)


def _note(rows: Any, q: int) -> list[str]:
    """The note on branches beside a GTM of so many dimensions."""
    rows = comparing._sort_rows(rows)
    fold, sigma = comparing._folds(rows, 3, np.random.default_rng(0)), measures.noise_of(rows, q)
    thinning = measures.thinning_of(rows, sigma, np.random.default_rng(0))
    job = trials.MethodComparison(rows, fold, measures.widths_of(rows, sigma), thinning, q)
    beside = [job.attempt(GTM(q, nodes=10, max_iter=30), f) for f in range(3)]
    return branching_note(job, beside, "GTM", sigma, rows.shape[1] - q)


@pytest.mark.full
def test_a_tree_is_named_where_rows_branch() -> None:
    (words,) = _note(datasets.make_tree(200, rng=2).X, 2)
    assert words.startswith("The rows branch: a tree of 3 branches describes rows held out as well as GTM does.")
    assert "PrincipalTree().fit(X)" in words
    assert "DensityRidge(1).fit(X)" in words


@pytest.mark.full
def test_no_tree_is_named_where_rows_do_not_branch() -> None:
    """A path; and a sheet, over which a tree of many branches grows that nothing speaks against but the likelihood."""
    assert _note(datasets.make_half_circle(150, 0.05, rng=0).X, 1) == []
    sheet = datasets.make_ridge(196, 0.05, rng=0).X
    assert PrincipalTree().fit(sheet).graph_.latent.n_branches >= 3
    assert _note(sheet, 2) == []
