"""Student noise: against brute force, against the plain noise, and against outliers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import gamma, multivariate_t, norm
from tests.gtm.noise.test_per_cell import ERRORS, SMALL, X, gappy

import prinfold
from prinfold import GTM, StudentNoise, datasets
from prinfold.exceptions import CorruptModelFileError, DegenerateWarning, InvalidParameterError
from prinfold.gtm import model as gtm
from prinfold.gtm.noise.student import MOST_DF, best_df

pytestmark = [
    pytest.mark.filterwarnings("ignore::prinfold.exceptions.FoldWarning"),  # 49 nodes are few for this sheet
    pytest.mark.filterwarnings("ignore::prinfold.exceptions.MultimodalWarning"),  # outliers lie near every node
]


def wild(table=X, share=0.1, seed=5, size=10.0):
    """A table in which some rows lie anywhere, about ``size`` times as far out as the others."""
    rng = np.random.default_rng(seed)
    out = np.array(table)
    some = rng.permutation(len(out))[: int(share * len(out))]
    spread = size * np.sqrt(np.mean(np.nanvar(table, axis=0)))
    out[some] = np.where(np.isnan(out[some]), np.nan, spread * rng.standard_normal(out[some].shape))
    return out, some


W = wild()[0]


def fitted(table=W, errors=None, noise="student", **settings):
    return GTM(**{**SMALL, "noise": noise, **settings}).fit(table, errors=errors)


def brute_log_densities(model, table, errors=None):
    """(n, K) log p(t | node) by the density of a multivariate t over what was measured of each row."""
    centers = model.inverse_transform(model.latent_.nodes)
    variance = np.broadcast_to(model.noise_parameters_.get("variances", model.noise_variance_), table.shape[1])
    e = np.zeros_like(table) if errors is None else np.broadcast_to(errors, table.shape)
    out = np.zeros((len(table), len(centers)))
    for n, row in enumerate(table):
        seen = ~np.isnan(row)
        t = multivariate_t(
            np.zeros(seen.sum()), np.diag((variance + e[n] ** 2)[seen]), df=model.noise_parameters_["df"]
        )
        out[n] = t.logpdf(row[seen] - centers[:, seen])
    return out


KINDS = {
    "plain": (W, None, "student"),
    "cauchy": (W, None, StudentNoise(df=1.0)),
    "gaps": (gappy(W), None, "student"),
    "errors": (W, ERRORS, StudentNoise(df=3)),
    "errors of rows, gaps": (gappy(W), ERRORS[:, 0], "student"),
    "own": (gappy(W), ERRORS, StudentNoise(columns="own")),
}
kinds = pytest.mark.parametrize(("table", "errors", "noise"), KINDS.values(), ids=KINDS)


@kinds
def test_likelihood_and_posterior_are_those_of_brute_force(table, errors, noise):
    model = fitted(table, errors, noise)
    e = errors[:, None] if errors is not None and errors.ndim == 1 else errors
    expected = brute_log_densities(model, table, e)
    whole = logsumexp(expected, axis=1)
    assert_allclose(model.score_samples(table, errors=errors), whole - np.log(49), rtol=1e-9, atol=1e-9)
    assert_allclose(model.responsibilities(table, errors=errors), np.exp(expected - whole[:, None]), atol=1e-8)


def test_known_errors_share_the_scale_of_their_row():
    """The density with errors, and the expected scale, by integrating a row's scale out numerically."""
    model = fitted(noise=StudentNoise(df=3))
    row, errors = W[:1], ERRORS[:1]
    center, v = model.inverse_transform(model.latent_.nodes), model.noise_variance_
    log_density = brute_log_densities(model, row, errors)[0]
    k = int(np.argmax(log_density))

    def integrand(u, power):
        cells = norm.logpdf(row[0], center[k], np.sqrt((v + errors[0] ** 2) / u)).sum()
        return u**power * np.exp(cells - log_density[k]) * gamma.pdf(u, 1.5, scale=1 / 1.5)

    assert quad(integrand, 0, np.inf, args=(0,))[0] == pytest.approx(1.0, rel=1e-6)
    shares = model.responsibilities(row, errors=errors)[0]
    delta = (np.square(row - center) / (v + errors**2)).sum(axis=1)
    scales = (3 + row.shape[1]) / (3 + delta)
    assert quad(integrand, 0, np.inf, args=(1,))[0] == pytest.approx(scales[k], rel=1e-6)
    assert model.outlier_weights(row, errors=errors)[0] == pytest.approx(shares @ scales, rel=1e-9)


@kinds
@pytest.mark.parametrize("penalty", [{"regularization": 0.5}, {"prior_precision": 0.3}], ids=str)
@pytest.mark.parametrize("relaxation", [1.0, 1.8])
def test_training_never_lowers_the_objective(table, errors, noise, penalty, relaxation):
    model = fitted(table, errors, noise, relaxation=relaxation, **penalty)
    objective = np.array(model.history_["objective"])
    assert len(objective) == 26
    assert np.diff(objective).min() >= -1e-12 * abs(objective).max()
    assert objective[-1] > objective[0] + 0.1


@pytest.mark.parametrize(
    ("columns", "with_errors"),
    [
        ("own", True),
        # Thousands of steps each: the others are left to ``make test-slow``.
        pytest.param("own", False, marks=pytest.mark.slow),
        pytest.param("shared", False, marks=pytest.mark.slow),
        pytest.param("shared", True, marks=pytest.mark.slow),
    ],
)
def test_training_ends_where_the_objective_is_flat(columns, with_errors):
    table = gappy(wild(X[:60, :4], 0.2, size=3.0)[0])
    errors = 0.2 * ERRORS[:60, :4] if with_errors else None
    noise = StudentNoise(columns=columns)
    model = fitted(table, errors, noise, max_iter=9000, n_components=1, nodes=6, basis=2, regularization=0.5)
    rows = model._rows(table, errors)
    trained, parameters = model._model_for(rows, model._model), model._parameters()
    assert 1 < parameters.df < MOST_DF

    def objective(weights, log_precision, log_df):
        there = replace(parameters, weights=weights, precision=np.exp(log_precision), df=float(np.exp(log_df)))
        return gtm.measure(trained, trained.begin(rows, there))["objective"]

    at, h = (parameters.weights, np.log(parameters.precision), np.log(parameters.df)), 1e-5
    rng = np.random.default_rng(1)
    for _ in range(6):
        along = [rng.standard_normal(np.shape(each)) for each in at]
        ahead, behind = (objective(*(a + s * h * d for a, d in zip(at, along, strict=True))) for s in (1, -1))
        assert abs(ahead - behind) / (2 * h) < 2e-5


def test_with_many_degrees_of_freedom_it_is_the_plain_noise():
    plain, student = fitted(X, noise="isotropic"), fitted(X, noise=StudentNoise(df=1e8))
    rows = plain._rows(X)
    parameters = plain._parameters()
    tailed = student._model.noise.initial(parameters.weights, parameters.precision)
    one = plain._model.step(rows, plain._model.begin(rows, parameters))
    two = student._model.step(rows, student._model.begin(rows, tailed))
    assert_allclose(two.parameters.weights, one.parameters.weights, rtol=1e-5, atol=1e-6)
    assert two.parameters.precision == pytest.approx(one.parameters.precision, rel=1e-5)
    assert two.statistics.log_likelihood == pytest.approx(one.statistics.log_likelihood, rel=1e-6)
    assert_allclose(student.outlier_weights(X), 1.0, atol=1e-5)


def test_degrees_of_freedom_are_found_between_their_bounds():
    rng = np.random.default_rng(3)
    for truth in (1.5, 6.0):
        u = rng.gamma(truth / 2, 2 / truth, 200_000)
        assert best_df(float(np.mean(np.log(u) - u)), (0.1, 200.0)) == pytest.approx(truth, rel=0.03)
    assert best_df(-1.0, (1.0, 200.0)) == 200.0
    assert best_df(-1e9, (1.0, 200.0)) == 1.0


def test_tails_are_recovered():
    rng = np.random.default_rng(4)
    u = rng.uniform(-1, 1, 4000)
    clean = np.stack([2 * u, u**2, np.sin(2 * u), 0.5 * u, -u], axis=1)
    scale = rng.gamma(1.5, 1 / 1.5, (4000, 1))
    table = clean + 0.1 * rng.standard_normal(clean.shape) / np.sqrt(scale)
    model = GTM(1, nodes=60, basis=8, noise="student", max_iter=500, tol=1e-7).fit(table)
    assert model.noise_parameters_["df"] == pytest.approx(3.0, rel=0.15)
    assert np.sqrt(model.noise_variance_) == pytest.approx(0.1, rel=0.05)
    drawn = model.sample(100_000, random_state=0)
    assert np.mean(np.abs(drawn - drawn.mean(axis=0)) > 1.0) == pytest.approx(
        np.mean(np.abs(table - table.mean(axis=0)) > 1.0), rel=0.1
    )


# ------------------------------------------------------------------------------------------------ outliers


@pytest.mark.parametrize(
    ("make", "dimension"), [(datasets.make_half_circle, 1), (datasets.make_ridge, 2), (datasets.make_spiral, 1)]
)
@pytest.mark.parametrize("size", [3.0, 10.0, 1e8])
def test_a_tenth_of_gross_outliers_does_not_bend_the_surface(make, dimension, size):
    data = make(400, rng=1)
    table, some = wild(data.X - data.X.mean(axis=0), 0.1, size=size)
    table += data.X.mean(axis=0)
    good = np.setdiff1d(np.arange(400), some)
    # From one start: which one is found among outliers is another matter than the noise.
    settings = {"n_components": dimension, "init": "pca", "max_iter": 1000, "random_state": 0}

    def off(model):
        """Root mean square distance of the places of the good rows on the surface from the true surface."""
        found = model.project(data.X[good])
        return float(np.sqrt(np.mean(np.square(found - data.surface.project(found)).sum(axis=1))))

    clean, bent = off(GTM(**settings).fit(data.X[good])), off(GTM(**settings).fit(table))
    student = GTM(**settings, noise="student").fit(table)
    assert off(student) < 1.7 * clean
    assert bent > 2 * off(student)
    assert student.noise_variance_ < 0.015  # of 0.01
    weight = student.outlier_weights(table)
    above = weight[good][:, None] > weight[some]
    assert above.mean() > (0.93 if size < 10 else 0.97)


def test_outlier_weights_are_those_of_student_noise_alone():
    with pytest.raises(InvalidParameterError, match=r"noise='isotropic' has no outlier weights.*noise='student'"):
        fitted(X, noise="isotropic").outlier_weights(X)


def test_a_row_counts_less_the_farther_it_is():
    model = fitted(noise=StudentNoise(df=4))
    direction = np.ones(X.shape[1])
    weight = model.outlier_weights(np.array([X[0] + s * direction for s in (0, 10, 100, 1e4)]))
    assert (np.diff(weight) < 0).all()
    assert weight[3] == pytest.approx(1e-4 * weight[2], rel=0.01)
    assert (weight <= 1 + X.shape[1] / 4).all()


# ---------------------------------------------------------------------------------------- gaps and theorems


def test_gaps_are_filled_by_their_expectation():
    table = gappy(W)
    model = fitted(table, noise=StudentNoise(df=2.5, columns="own"))
    found, spread = model.impute(table, return_std=True)
    log_density = brute_log_densities(model, table)
    share = np.exp(log_density - logsumexp(log_density, axis=1, keepdims=True))
    centers, variances = model.inverse_transform(model.latent_.nodes), model.noise_parameters_["variances"]
    missing = np.isnan(table)
    mean = share @ centers
    for n in range(0, 150, 7):
        seen = ~missing[n]
        delta = (np.square(table[n] - centers)[:, seen] / variances[seen]).sum(axis=1)
        inner = np.outer((2.5 + delta) / (2.5 + seen.sum() - 2), variances)  # variance of a t given what was measured
        variance = share[n] @ (np.square(centers - mean[n]) + inner)
        assert_allclose(found[n, ~seen], mean[n, ~seen], atol=1e-7)
        assert_allclose(spread[n, ~seen], np.sqrt(variance)[~seen], rtol=1e-6)


def test_the_spread_of_what_is_filled_in_is_honest_and_infinite_where_there_is_none():
    model = fitted(noise=StudentNoise(df=1.5))
    rows = model.sample(4000, random_state=1)
    holes = np.random.default_rng(5).uniform(size=rows.shape) < 0.25
    found, spread = model.impute(np.where(holes, np.nan, rows), return_std=True)
    missed = ((found - rows) / np.where(holes, spread, 1.0))[holes]
    assert np.mean(missed**2) == pytest.approx(1.0, abs=0.1)
    with pytest.warns(DegenerateWarning, match="no value"):
        _, spread = model.impute(np.full((1, X.shape[1]), np.nan), return_std=True)
    assert np.isinf(spread).all()


def test_rows_of_nothing_are_where_any_row_may_be():
    model = fitted()
    with pytest.warns(DegenerateWarning, match="no value"):
        assert_allclose(model.responsibilities(np.full((1, X.shape[1]), np.nan)), 1 / 49)
    with pytest.warns(DegenerateWarning, match="no value"):
        assert model.score_samples(np.full((1, X.shape[1]), np.nan))[0] == pytest.approx(0.0, abs=1e-12)
    with pytest.warns(DegenerateWarning, match="no value"):
        assert model.outlier_weights(np.full((1, X.shape[1]), np.nan))[0] == pytest.approx(1.0)


def test_the_covariance_is_that_of_a_t():
    model = fitted(noise=StudentNoise(df=5))
    assert_allclose(model.noise_covariance()[3], np.eye(X.shape[1]) * model.noise_variance_ * 5 / 3)
    endless = fitted(noise=StudentNoise(df=2)).noise_covariance(np.eye(X.shape[1])[:, :2])
    assert np.array_equal(endless[0], [[np.inf, 0.0], [0.0, np.inf]])


@kinds
def test_a_row_alone_is_the_row_among_others(table, errors, noise):
    model = fitted(table, errors, noise)
    whole, weight = model.transform(table, errors=errors), model.outlier_weights(table, errors=errors)
    for i in (0, 7, 80):
        some = None if errors is None else errors[i : i + 1]
        assert_allclose(model.transform(table[i : i + 1], errors=some)[0], whole[i], atol=1e-10)
        assert_allclose(model.outlier_weights(table[i : i + 1], errors=some)[0], weight[i], rtol=1e-10)


@kinds
def test_repeats_are_weights(table, errors, noise):
    count = np.random.default_rng(3).integers(0, 3, len(table))
    weighted = GTM(**{**SMALL, "noise": noise}).fit(table, sample_weight=count, errors=errors)
    again = None if errors is None else np.repeat(errors, count, axis=0)
    repeated = fitted(np.repeat(table, count, axis=0), again, noise)
    assert_allclose(weighted.transform(table, errors=errors), repeated.transform(table, errors=errors), atol=1e-5)
    assert weighted.noise_variance_ == pytest.approx(repeated.noise_variance_, rel=1e-5)
    assert weighted.noise_parameters_["df"] == pytest.approx(repeated.noise_parameters_["df"], rel=1e-5)


def test_blocks_are_the_whole():
    model = fitted(gappy(W), ERRORS, StudentNoise(columns="own"))
    rows, parameters = model._rows(gappy(W), ERRORS), model._parameters()
    whole = gtm.summarize(model._model, rows, parameters)
    parts = [model._rows(gappy(W)[i : i + 37], ERRORS[i : i + 37]) for i in range(0, 150, 37)]
    first, *rest = (gtm.summarize(model._model, part, parameters) for part in parts)
    joined = sum(rest, first)
    assert type(joined) is type(whole)
    for name in vars(whole):
        assert_allclose(getattr(joined, name), getattr(whole, name), rtol=1e-9, atol=1e-12)
        assert_allclose(getattr(whole.scale(0.5), name), 0.5 * np.asarray(getattr(whole, name)), rtol=1e-15)


def test_single_precision_is_double_precision_but_for_rounding():
    model = fitted()
    narrow = W.astype(np.float32)
    assert model.transform(narrow).dtype == np.float32
    assert_allclose(model.transform(narrow), model.transform(W), atol=2e-3)
    assert model.outlier_weights(narrow).dtype == np.float32
    again = fitted(narrow)
    assert again.noise_variance_ == pytest.approx(model.noise_variance_, rel=1e-2)


@pytest.mark.parametrize("init", ["pca", "random", "semi-random", "isomap", "lle", "laplacian"])
def test_every_start_will_do(init):
    model = fitted(gappy(W), init=init, random_state=0)
    assert np.isfinite(model.transform(gappy(W))).all()


def test_large_jobs_warm_up():
    table = wild(datasets.make_pipe_flow(5000, rng=3).X)[0]
    model = GTM(nodes=30, basis=4, max_iter=3, tol=0.0, noise="student").fit(table)
    assert np.diff(model.history_["objective"]).min() >= 0


def test_own_scales_know_no_units():
    unit = np.array([1e-3, 10.0, 1.0, 500.0, 0.2, 1, 1, 3, 1, 1, 1e4, 1])
    noise = StudentNoise(columns="own")
    one, two = fitted(gappy(W), noise=noise), fitted(gappy(W) * unit, noise=noise)
    assert_allclose(two.noise_parameters_["variances"], one.noise_parameters_["variances"] * unit**2, rtol=1e-5)
    assert_allclose(two.transform(gappy(W) * unit), one.transform(gappy(W)), atol=1e-5)


def test_files_keep_the_tails(tmp_path):
    model = fitted(noise=StudentNoise(min_df=2.0))
    model.save(tmp_path / "model.prinfold")
    again = prinfold.load(tmp_path / "model.prinfold")
    assert again.noise == model.noise
    assert again.noise_parameters_ == model.noise_parameters_
    assert_allclose(again.transform(W), model.transform(W), atol=1e-12)
    assert_allclose(again.outlier_weights(W), model.outlier_weights(W), rtol=1e-12)
    model.noise_parameters_ = {"df": -1.0}
    model.save(tmp_path / "bad.prinfold")
    with pytest.raises(CorruptModelFileError, match="df of the noise, finite and above zero"):
        prinfold.load(tmp_path / "bad.prinfold")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"df": 0}, "StudentNoise: df.*above 0"),
        ({"min_df": 500.0}, "StudentNoise: min_df.*above 0 and at most 200"),
        ({"columns": "each"}, "StudentNoise: columns.*'shared' or 'own'"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, words):
    with pytest.raises(InvalidParameterError, match=words):
        StudentNoise(**settings)


def test_discs_of_no_size_are_not_drawn():
    pytest.importorskip("matplotlib")
    from prinfold import plot

    table = datasets.make_half_circle(60, rng=0).X
    model = GTM(1, nodes=10, noise=StudentNoise(df=1)).fit(table)
    with pytest.raises(InvalidParameterError, match=r"no standard deviation to draw discs of; set noise=StudentNoise"):
        plot.surface(model, table, noise=True)
