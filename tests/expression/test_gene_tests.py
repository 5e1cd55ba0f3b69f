"""Genes along trajectories: thinned halves are independent, and tests have the level that they claim."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import gammaln
from scipy.stats import kstest

from prinfold import PrincipalTree, plot
from prinfold.exceptions import InvalidDataError, InvalidParameterError
from prinfold.expression import TreeOfCounts, association, condition_difference, fork_difference
from prinfold.expression.count_tests import size_factors
from prinfold.expression.gene_tests import combine_p_values
from prinfold.expression.spline_models import design_of, estimate_dispersions, f_tests, fit_splines, natural_spline
from prinfold.expression.thinning import thin_counts

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")


def draw(rate: Any, phi: Any, rng: np.random.Generator) -> Any:
    return rng.poisson(rng.gamma(1.0 / phi, phi * rate)).astype(float)


@pytest.fixture(scope="module")
def simulated() -> tuple[Any, Any, Any]:
    """Counts of 250 cells, of 80 genes of which the first 40 rise or fall with time; the times."""
    rng = np.random.default_rng(1)
    times, mean = rng.uniform(size=250), np.exp(rng.uniform(1.0, 3.0, 80))
    slope = np.where(np.arange(80) < 40, rng.choice([-3.0, 3.0], 80), 0.0)
    counts = draw(rng.lognormal(0, 0.3, 250)[:, None] * mean * np.exp(slope * (times[:, None] - 0.5)), 0.2, rng)
    return counts, times, slope != 0


def test_halves_are_independent_and_have_the_moments_of_their_distribution() -> None:
    rng = np.random.default_rng(0)
    counts = draw(np.full((20_000, 2), 6.0), np.array([0.5, 1e-9]), rng)
    one, other = thin_counts(counts, np.array([0.5, 0.0]), rng)
    np.testing.assert_array_equal(one + other, counts)
    for gene, phi in enumerate((0.5, 0.0)):
        assert abs(np.corrcoef(one[:, gene], other[:, gene])[0, 1]) < 0.03
        assert one[:, gene].mean() == pytest.approx(3.0, rel=0.03)
        assert one[:, gene].var() == pytest.approx(3.0 + 2.0 * phi * 9.0, rel=0.06)
    naive = rng.binomial(counts.astype(int), 0.5)
    assert np.corrcoef(naive[:, 0], counts[:, 0] - naive[:, 0])[0, 1] > 0.3, "a binomial half would not be independent"


def test_splines_are_the_maximum_of_the_likelihood() -> None:
    rng = np.random.default_rng(2)
    times, size = rng.uniform(size=80), rng.lognormal(0, 0.3, 80)
    y, phi = draw(size * np.exp(1.0 + np.sin(4 * times)), 0.3, rng), 0.3
    X = design_of(natural_spline(times, 3), times)
    np.testing.assert_allclose(X.sum(axis=1), 1.0)

    def minus(beta: Any) -> float:
        mu = size * np.exp(X @ beta)
        log = gammaln(y + 1 / phi) + y * np.log(phi * mu) - (y + 1 / phi) * np.log1p(phi * mu)
        return -float(log.sum())

    best = minimize(minus, np.ones(4), tol=1e-10).x
    found = fit_splines(y[:, None], X, size, np.array([phi]))
    np.testing.assert_allclose(found.coefficients[:, 0], best, atol=1e-3)


def test_dispersions_are_found_about_the_fitted_means() -> None:
    rng = np.random.default_rng(3)
    times, true = rng.uniform(size=800), np.repeat([0.05, 0.5], 60)
    rate = np.exp(1.5 + 1.5 * np.sin(5 * times))[:, None] * np.ones(120)
    X = design_of(natural_spline(times, 4), times)
    found = estimate_dispersions(draw(rate, true, rng), X, np.ones(800))
    for phi in (0.05, 0.5):
        assert np.median(found[true == phi]) == pytest.approx(phi, rel=0.2)


def test_p_values_of_genes_without_a_trend_are_uniform_at_known_times() -> None:
    rng = np.random.default_rng(4)
    times, size = rng.uniform(size=300), rng.lognormal(0, 0.3, 300)
    phi = rng.choice([0.05, 0.5], 400)
    counts = draw(size[:, None] * np.exp(rng.uniform(-1, 2, 400)), phi, rng)
    X, one = design_of(natural_spline(times, 4), times), np.ones((300, 1))
    dispersion = estimate_dispersions(counts, X, size)
    fits = [fit_splines(counts, each, size, dispersion) for each in (X, one)]
    p = f_tests(*fits, 300, 5, 1).p_value
    assert kstest(p, "uniform").pvalue > 0.01
    assert 0.02 < (p < 0.05).mean() < 0.085


@pytest.mark.parametrize("thinned", [False, pytest.param(True, marks=pytest.mark.full)])
def test_genes_that_are_hardly_seen_are_not_tested(thinned: bool) -> None:
    """Ten counts in all have no F distribution: 17 % of such genes without a trend had p < 0.05."""
    rng = np.random.default_rng(9)
    times = rng.uniform(size=500)
    counts = rng.poisson(np.repeat([0.02, 0.3, 3.0], [150, 250, 50]) * np.ones((500, 1))).astype(float)
    ways: dict[str, Any] = {"recipe": lambda part: times} if thinned else {"pseudotime": times}
    found = association(counts, **ways, random_state=0)
    np.testing.assert_array_equal(found.p_value[:150], 1.0)
    assert 0.02 < (found.p_value[150:] < 0.05).mean() < 0.08
    assert "150 of 450 genes were seen too rarely to be tested" in found.note


def test_a_gene_that_is_off_on_one_side_of_a_fork_is_tested() -> None:
    rng = np.random.default_rng(10)
    times, side = rng.uniform(size=300), rng.integers(0, 2, 300)
    counts = rng.poisson(np.where(side == 0, 2.0, 0.0)[:, None] * [1, 0, 0] + np.array([0.0, 2.0, 0.02])).astype(float)
    found = fork_difference(counts, lambda part: Split(times, np.eye(2)[side]), random_state=0)
    assert found.p_value[0] < 1e-10
    assert found.p_value[2] == 1.0
    assert "1 of 3 genes were seen too rarely" in found.note


@pytest.mark.parametrize("days", [2, 3, 4, 6])
def test_few_sampling_days_are_times_as_others_are(days: int) -> None:
    """A gene that rises as exp(day) is found; of 300 that do not about one in twenty is, also where a day has most."""
    rng = np.random.default_rng(8)
    day = rng.choice(days, 300, p=np.r_[0.7, np.full(days - 1, 0.3 / (days - 1))]).astype(float)
    counts = rng.poisson(np.hstack([np.exp(day)[:, None], np.full((300, 300), 3.0)])).astype(float)
    for table in (counts, counts + 0.5):
        found = association(table, pseudotime=day)
        assert found.p_value[0] < 1e-10
        assert 0.02 < (found.p_value[1:] < 0.05).mean() < 0.085
    truth = np.log2(np.e) * (days - 1)
    assert association(counts, pseudotime=day).effect[0] == pytest.approx(truth, rel=0.1)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.full)])
def test_times_found_from_the_counts_themselves_leave_the_level_as_it_is(seed: int) -> None:
    """Without any trajectory a naive test calls far more genes than its level."""
    rng = np.random.default_rng(seed)
    counts = draw(np.exp(rng.uniform(0, 2, 200)) * np.ones((250, 1)), 0.2, rng)

    def recipe(part: Any) -> Any:
        levels = np.log1p(part)
        return np.linalg.svd(levels - levels.mean(axis=0), full_matrices=False)[0][:, 0]

    honest = association(counts, recipe, random_state=0).p_value
    naive = association(counts, pseudotime=recipe(counts)).p_value
    assert (honest < 0.05).mean() < 0.1
    assert (naive < 0.05).mean() > 0.1
    assert kstest(honest, "uniform").pvalue > 0.005


def test_genes_that_follow_time_are_found(simulated: Any) -> None:
    counts, times, true = simulated
    recipe = TreeOfCounts(times < 0.1, 5, PrincipalTree("path"))
    found = association(sparse.csr_matrix(counts), recipe, random_state=0)
    assert (found.q_value[true] < 0.05).mean() > 0.8
    assert found.effect[true].min() > np.median(found.effect[~true])
    assert found.level.shape == (80, len(found.times))
    ax = plot.gene_curves(found, most=8)
    assert len(ax.get_yticklabels()) == 8


def test_without_raw_counts_there_are_effects_and_no_p_values(simulated: Any) -> None:
    counts, times, true = simulated
    levels = np.log1p(counts)
    found = association(levels, lambda part: times)
    assert np.isnan(found.p_value).all()
    assert "no raw counts" in found.note
    assert np.median(found.effect[true]) > 2 * np.median(found.effect[~true])
    elsewhere = association(levels, pseudotime=times)
    assert (elsewhere.p_value[true] < 0.01).mean() > 0.9
    assert elsewhere.note == ""


def test_a_fork_is_told_from_genes_that_differ_after_it() -> None:
    rng = np.random.default_rng(5)
    times, side = rng.uniform(size=400), rng.integers(0, 2, 400)
    late = np.clip(times - 0.4, 0, None)[:, None]
    turn = np.where(np.arange(150) < 10, 4.0, 0.0) * np.where(side == 0, 1.0, -1.0)[:, None]
    counts = draw(np.exp(1.5 + turn * late + np.where(np.arange(150) >= 100, 2 * times[:, None], 0.0)), 0.1, rng)
    weights = np.where(times[:, None] < 0.4, 1.0, (side[:, None] == [0, 1]).astype(float))
    found = fork_difference(counts, lambda part: Split(times, weights), random_state=0)
    assert (found.p_value[:10] < 1e-4).all()
    assert (found.effect[:10] > 1).all()
    assert 0.02 < (found.p_value[10:] < 0.05).mean() < 0.08


def test_effects_of_other_numbers_are_differences_as_their_note_says() -> None:
    """Adding a constant changes no difference, and would change a ratio."""
    rng = np.random.default_rng(13)
    times, side = rng.uniform(size=200), rng.integers(0, 2, 200)
    levels = rng.uniform(1.0, 1.5, (200, 3)) + 3.0 * (side == 0)[:, None] * [1, 0, 0]
    effects = [
        fork_difference(levels + more, lambda part: Split(times, np.eye(2)[side])).effect for more in (0.0, -9.0)
    ]
    np.testing.assert_allclose(effects[0], effects[1], rtol=1e-6)
    assert effects[0][0] == pytest.approx(3.0, abs=0.3)


def test_a_recipe_leaves_the_estimator_that_it_was_given_as_it_is(simulated: Any) -> None:
    model = PrincipalTree("path")
    TreeOfCounts(simulated[1] < 0.1, 5, model)(simulated[0])
    assert model.root is None
    assert "n_features_in_" not in vars(model)


class Split:
    """Times and weights of lineages, as a trajectory has them."""

    def __init__(self, pseudotime: Any, lineage_weights: Any) -> None:
        self.pseudotime, self.lineage_weights = pseudotime, lineage_weights


def test_conditions_have_the_sample_as_their_unit() -> None:
    """Samples differ whatever their condition is; more cells do not make that a difference between conditions."""
    rng = np.random.default_rng(6)
    sample, times = rng.integers(0, 6, 600), rng.uniform(size=600)
    own = np.exp(0.4 * rng.normal(size=(6, 300)))
    own[::2, :10] *= 8.0
    counts = draw(4.0 * own[sample], 0.1, rng)
    found = condition_difference(counts, times, np.where(sample % 2, "b", "a"), sample)
    assert (found.p_value[10:] < 0.05).mean() < 0.1
    assert (found.p_value[:10] < 0.05).mean() > 0.8
    assert (found.effect[:10] > 1).all()


@pytest.mark.parametrize("fewer", [False, True])
def test_more_early_cells_are_no_difference_between_conditions(fewer: bool) -> None:
    """Genes rise or fall with time, which one condition covers in part, or by fewer cells."""
    rng = np.random.default_rng(12)
    sample = np.repeat(np.arange(8), np.where(np.arange(8) % 2, 100, 30 if fewer else 100))
    times = rng.uniform(size=len(sample)) * np.where(sample % 2, 1.0, 0.6)
    slope = rng.choice([-2.0, 2.0], 300)
    own = np.exp(0.2 * rng.normal(size=(8, 300)))
    own[::2, 290:] *= 4.0
    counts = draw(1.5 * np.exp(slope * (times[:, None] - 0.5)) * own[sample], 0.2, rng)
    found = condition_difference(counts, times, sample % 2, sample)
    assert 0.01 < (found.p_value[:290] < 0.05).mean() < 0.08
    np.testing.assert_allclose(found.effect[290:].mean(), 2.0, atol=0.25)
    assert re.search(r"compared in [34] of 5 parts of the time, with \d\d % of the cells", found.note)


def test_conditions_at_other_times_cannot_be_compared() -> None:
    sample = np.repeat(np.arange(4), 20)
    with pytest.raises(InvalidDataError, match="in none of 5 parts of the time all 4 samples have cells"):
        condition_difference(np.ones((80, 2)), np.arange(80.0), sample // 2, sample)


@pytest.mark.parametrize(
    ("sample", "words"),
    [
        ([0, 1] * 20, r"condition 0 has 1 sample. Without replicates"),
        ([0, 0, 1, 2] * 10, r"sample 0 has cells of both conditions"),
    ],
)
def test_conditions_without_replicates_are_refused(sample: list[int], words: str) -> None:
    with pytest.raises(InvalidDataError, match=words):
        condition_difference(np.ones((40, 2)), np.arange(40.0), np.arange(40) % 2, np.array(sample))


def test_wrong_calls_are_told() -> None:
    counts = np.ones((40, 2))
    with pytest.raises(InvalidParameterError, match="give either a recipe"):
        association(counts)
    with pytest.raises(InvalidDataError, match="at least 30 cells"):
        association(counts[:5], pseudotime=np.arange(5.0))
    with pytest.raises(InvalidDataError, match="one finite number for each of the 40 cells"):
        association(counts, pseudotime=np.full(40, np.nan))
    with pytest.raises(InvalidParameterError, match="lineage must be a number from 0 to 0"):
        association(counts, lambda part: np.arange(40.0), lineage=3)
    with pytest.raises(InvalidDataError, match="two or more different times, and there are 40 cells at 1"):
        association(counts, lambda part: np.zeros(40))
    with pytest.raises(InvalidParameterError, match=r"two different numbers, those that are compared, got \(0, 0\)"):
        fork_difference(counts, lambda part: np.arange(40.0), lineages=(0, 0))
    for table in (counts, counts + 0.5):
        with pytest.raises(InvalidDataError, match="two or more different times"):
            association(table, pseudotime=np.zeros(40))
    with pytest.raises(InvalidDataError, match="names has 1 entries for 2 genes"):
        association(counts, pseudotime=np.arange(40.0), names=["one"])


def test_p_values_are_combined_as_cauchy_does() -> None:
    rng = np.random.default_rng(7)
    both = rng.uniform(size=(2, 4000))
    assert kstest(combine_p_values(both), "uniform").pvalue > 0.01
    np.testing.assert_allclose(combine_p_values(np.array([[0.03], [0.03]])), 0.03)
    np.testing.assert_allclose(combine_p_values(np.array([[1e-40], [0.5]])), 2e-40, rtol=1e-6)


def test_a_half_that_sees_nothing_does_not_erase_one_that_is_clear() -> None:
    clear = np.array([1e-12, 1e-6, 1e-3])
    np.testing.assert_allclose(combine_p_values(np.array([clear, np.ones(3)])), 2.0 * clear, rtol=0.12)
    np.testing.assert_allclose(combine_p_values(np.array([clear, np.full(3, np.nan)])), clear, rtol=1e-6)
    assert combine_p_values(np.full((2, 1), np.nan)) == 1.0
    pairs = combine_p_values(np.random.default_rng(11).uniform(size=(2, 200_000)))
    for level in (0.05, 0.001):
        assert (pairs < level).mean() == pytest.approx(level, abs=4.0 * np.sqrt(level / 200_000))


def test_sizes_of_cells_are_told_by_genes_that_stay_the_same() -> None:
    counts = np.array([[5.0, 100.0], [10.0, 10.0], [15.0, 1.0]])
    np.testing.assert_allclose(size_factors(counts, np.array([0.1, 9.0])), [0.5, 1.0, 1.5])
