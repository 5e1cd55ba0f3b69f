"""Noise that is independent from cell to cell: against brute force, against the plain noise; gaps and errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from scipy.stats import norm

import prinfold
from prinfold import GTM, DiagonalNoise, datasets
from prinfold.exceptions import DegenerateWarning, InvalidDataError, UnsupportedInputError
from prinfold.gtm import model as gtm
from prinfold.gtm import posterior as posteriors

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.FoldWarning")  # 49 nodes are few for this sheet

RNG = np.random.default_rng(8)
X = datasets.make_pipe_flow(150, rng=2).X
SMALL = {"nodes": 7, "basis": 3, "max_iter": 25, "tol": 0.0}


def gappy(table=X, share=0.2, seed=0):
    holes = np.random.default_rng(seed).uniform(size=table.shape) < share
    holes[np.arange(len(table)), np.arange(len(table)) % table.shape[1]] = False  # something of every row
    return np.where(holes, np.nan, table)


def fitted(table=X, errors=None, **settings):
    return GTM(**{**SMALL, **settings}).fit(table, errors=errors)


def brute_log_densities(model, table, errors=None):
    """(n, K) log p(t | node), cell by cell."""
    centers = model.inverse_transform(model.latent_.nodes)
    variance = np.broadcast_to(model.noise_parameters_.get("variances", model.noise_variance_), table.shape[1])
    e = np.zeros_like(table) if errors is None else np.broadcast_to(errors, table.shape)
    out = np.zeros((len(table), len(centers)))
    for n, d in np.argwhere(~np.isnan(table)):
        out[n] += norm.logpdf(table[n, d], centers[:, d], np.sqrt(variance[d] + e[n, d] ** 2))
    return out


ERRORS = 0.1 * RNG.uniform(0.1, 2, X.shape)
KINDS = {
    "gaps": (gappy(), None, "isotropic"),
    "errors": (X, ERRORS, "isotropic"),
    "errors of rows": (X, ERRORS[:, 0], "isotropic"),
    "diagonal": (X, None, "diagonal"),
    "diagonal, gaps": (gappy(), None, DiagonalNoise()),
    "diagonal, gaps, errors": (gappy(), ERRORS, "diagonal"),
}
kinds = pytest.mark.parametrize(("table", "errors", "noise"), KINDS.values(), ids=KINDS)


@kinds
def test_likelihood_and_posterior_are_those_of_brute_force(table, errors, noise):
    model = fitted(table, errors, noise=noise)
    e = errors[:, None] if errors is not None and errors.ndim == 1 else errors
    expected = brute_log_densities(model, table, e)
    whole = logsumexp(expected, axis=1)
    assert_allclose(model.score_samples(table, errors=errors), whole - np.log(49), rtol=1e-9, atol=1e-9)
    assert_allclose(model.responsibilities(table, errors=errors), np.exp(expected - whole[:, None]), atol=1e-9)


@kinds
@pytest.mark.parametrize("penalty", [{"regularization": 0.5}, {"prior_precision": 0.3}], ids=str)
@pytest.mark.parametrize("relaxation", [1.0, 1.8])
def test_training_never_lowers_the_objective(table, errors, noise, penalty, relaxation):
    model = fitted(table, errors, noise=noise, relaxation=relaxation, **penalty)
    objective = np.array(model.history_["objective"])
    assert len(objective) == 26
    assert np.diff(objective).min() >= -1e-12 * abs(objective).max()
    assert objective[-1] > objective[0] + 0.1


@pytest.mark.parametrize("noise", ["isotropic", "diagonal"])
@pytest.mark.parametrize("with_errors", [False, True])
def test_sums_hold_the_gradient_of_the_likelihood(noise, with_errors):
    """By Fisher's identity; where it is nil the M-step stays, so that training ends at a maximum or nowhere."""
    table, errors = gappy(X[:60, :4]), ERRORS[:60, :4] if with_errors else None
    model = fitted(table, errors, noise=noise, max_iter=5, n_components=1, nodes=6, basis=2)
    rows = model._rows(table, errors)
    trained, now = model._model_for(rows, model._model), model._parameters()
    sums, surface = gtm.summarize(trained, rows, now), trained.surface
    variance = np.broadcast_to(1.0 / np.asarray(now.precision), 4)
    y = surface.nodes(now.weights)
    on_weights = surface.node_features.T @ ((sums.moment - sums.masses * y) / variance)
    residual = sums.square + np.einsum("kd,kd->d", y, y * sums.squares - 2 * sums.products)
    on_log_precision = 0.5 * (sums.trusted - residual / variance)  # of each column

    rng, h = np.random.default_rng(1), 1e-6
    for _ in range(5):
        along, across = rng.standard_normal(now.weights.shape), rng.standard_normal(np.shape(now.precision))

        def log_likelihood(step, along=along, across=across):
            there = replace(now, weights=now.weights + step * along, precision=now.precision * np.exp(step * across))
            return gtm.summarize(trained, rows, there).log_likelihood

        slope = (log_likelihood(h) - log_likelihood(-h)) / (2 * h)
        expected = np.vdot(on_weights, along) + np.sum(on_log_precision * across)
        assert slope == pytest.approx(expected, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("penalty", [{"regularization": 0.5}, {"prior_precision": 0.3}], ids=str)
@pytest.mark.parametrize("noise", ["isotropic", "diagonal"])
def test_the_m_step_leaves_no_slope_in_the_weights(noise, penalty):
    table, errors = gappy(X[:60, :4]), ERRORS[:60, :4]
    model = fitted(table, errors, noise=noise, max_iter=5, n_components=1, nodes=6, basis=2, **penalty)
    rows = model._rows(table, errors)
    trained, now = model._model_for(rows, model._model), model._parameters()
    sums, surface = gtm.summarize(trained, rows, now), trained.surface
    new = trained.noise.m_step(surface, sums, trained.penalty, now)
    variance = np.broadcast_to(1.0 / np.asarray(now.precision), 4)
    slope = surface.node_features.T @ ((sums.moment - sums.masses * surface.nodes(new.weights)) / variance)
    held = np.array([trained.penalty.strength(1 / v) / v for v in variance]) * surface.penalty_mask[:, None]
    assert_allclose(slope, held * new.weights, atol=1e-7 * np.abs(sums.moment / variance).max())


def test_without_gaps_it_is_the_plain_noise():
    plain = fitted()
    cells = replace(plain._model, noise=plain._model.noise.with_gaps())
    rows, parameters = plain._rows(X), plain._parameters()
    assert type(cells.noise) is not type(plain._model.noise)
    assert_allclose(
        posteriors.responsibilities(cells, rows, parameters),
        posteriors.responsibilities(plain._model, rows, parameters),
        atol=1e-12,
    )
    one, two = (model.step(rows, model.begin(rows, parameters)) for model in (plain._model, cells))
    assert_allclose(two.parameters.weights, one.parameters.weights, rtol=1e-8, atol=1e-10)
    assert two.parameters.precision == pytest.approx(one.parameters.precision, rel=1e-10)
    assert two.statistics.log_likelihood == pytest.approx(one.statistics.log_likelihood, rel=1e-12)


def test_errors_of_nothing_change_nothing_and_endless_errors_are_gaps():
    model = fitted()
    assert_allclose(model.score_samples(X, errors=np.zeros(len(X))), model.score_samples(X), rtol=1e-10)
    table, huge = gappy(), np.where(np.isnan(gappy()), 1e7, 0.0)
    assert_allclose(model.transform(X, errors=huge), model.transform(table), atol=1e-6)


def test_equal_errors_are_noise():
    model = fitted()
    louder = fitted()
    louder.noise_variance_ = model.noise_variance_ + 0.3**2
    assert_allclose(model.score_samples(X, errors=np.full(len(X), 0.3)), louder.score_samples(X), rtol=1e-10)


def test_known_errors_are_told_from_the_noise():
    rng = np.random.default_rng(4)
    u = rng.uniform(-1, 1, 3000)
    errors = rng.choice([0.02, 0.3], (3000, 4))
    clean = np.stack([2 * u, u**2, np.sin(2 * u), 0.5 * u], axis=1)
    table = clean + 0.08 * rng.standard_normal(clean.shape) + errors * rng.standard_normal(clean.shape)
    settings = {"n_components": 1, "nodes": 40, "basis": 8, "max_iter": 500, "tol": 1e-7}
    told = GTM(**settings).fit(table, errors=errors)
    untold = GTM(**settings).fit(table)
    assert np.sqrt(told.noise_variance_) == pytest.approx(0.08, rel=0.05)
    assert np.sqrt(untold.noise_variance_) > 0.2
    off = [
        np.square(m.inverse_transform(m.transform(table, **e)) - clean).mean()
        for m, e in ((told, {"errors": errors}), (untold, {}))
    ]
    assert off[0] < 0.6 * off[1]


def test_diagonal_noise_knows_no_units():
    unit = np.array([1e-3, 10.0, 1.0, 500.0, 0.2, 1, 1, 3, 1, 1, 1e4, 1])
    one, two = fitted(gappy(), noise="diagonal"), fitted(gappy() * unit, noise="diagonal")
    assert_allclose(two.noise_parameters_["variances"], one.noise_parameters_["variances"] * unit**2, rtol=1e-6)
    assert_allclose(two.transform(gappy() * unit), one.transform(gappy()), atol=1e-6)


def test_diagonal_noise_finds_the_noise_of_each_column():
    rng = np.random.default_rng(2)
    u = rng.uniform(-1, 1, 4000)
    truth = np.array([0.1, 0.3, 0.2, 0.1, 0.15, 0.2])
    clean = np.stack([2 * u, u**2 + u, np.sin(2 * u), 1.5 * u, -u, u**3], axis=1)
    table = clean + truth * rng.standard_normal(clean.shape)
    model = GTM(1, nodes=100, basis=8, noise="diagonal", regularization=1e-4, max_iter=500, tol=1e-7).fit(table)
    assert_allclose(np.sqrt(model.noise_parameters_["variances"]), truth, rtol=0.06)
    assert model.noise_variance_ == pytest.approx(np.mean(model.noise_parameters_["variances"]))


@kinds
def test_a_row_alone_is_the_row_among_others(table, errors, noise):
    model = fitted(table, errors, noise=noise)
    whole = model.transform(table, errors=errors)
    for i in (0, 7, 80):
        some = None if errors is None else errors[i : i + 1]
        assert_allclose(model.transform(table[i : i + 1], errors=some)[0], whole[i], atol=1e-10)


@kinds
def test_repeats_are_weights(table, errors, noise):
    count = np.random.default_rng(3).integers(0, 3, len(table))
    weighted = GTM(**{**SMALL, "noise": noise}).fit(table, sample_weight=count, errors=errors)
    repeated = fitted(
        np.repeat(table, count, axis=0), None if errors is None else np.repeat(errors, count, axis=0), noise=noise
    )
    assert_allclose(weighted.weights_, repeated.weights_, rtol=1e-6, atol=1e-8)
    assert weighted.noise_variance_ == pytest.approx(repeated.noise_variance_, rel=1e-8)


def test_blocks_and_threads_are_the_whole():
    model = fitted(gappy(), ERRORS, noise="diagonal")
    rows, parameters = model._rows(gappy(), ERRORS), model._parameters()
    whole = gtm.summarize(model._model, rows, parameters)
    parts = [model._rows(gappy()[i : i + 37], ERRORS[i : i + 37]) for i in range(0, 150, 37)]
    first, *rest = (gtm.summarize(model._model, part, parameters) for part in parts)
    joined = sum(rest, first)
    for name in ("mass", "masses", "moment", "squares", "products", "square", "seen", "trusted", "log_likelihood"):
        assert_allclose(getattr(joined, name), getattr(whole, name), rtol=1e-9, atol=1e-12)
        assert_allclose(getattr(whole.scale(0.5), name), 0.5 * np.asarray(getattr(whole, name)), rtol=1e-15)


def test_single_precision_is_double_precision_but_for_rounding():
    table = gappy()
    model = fitted(table, ERRORS)
    narrow = table.astype(np.float32)
    assert model.transform(narrow, errors=ERRORS).dtype == np.float32
    assert_allclose(model.transform(narrow, errors=ERRORS), model.transform(table, errors=ERRORS), atol=2e-3)
    again = fitted(narrow, ERRORS)
    assert again.noise_variance_ == pytest.approx(model.noise_variance_, rel=1e-3)


# ------------------------------------------------------------------------------------------------- gaps


def test_gaps_are_filled_by_their_expectation():
    table = gappy()
    model = fitted(table, noise="diagonal")
    found, spread = model.impute(table, return_std=True)
    log_density = brute_log_densities(model, table)
    share = np.exp(log_density - logsumexp(log_density, axis=1, keepdims=True))
    centers, variances = model.inverse_transform(model.latent_.nodes), model.noise_parameters_["variances"]
    mean = share @ centers
    variance = (share[:, :, None] * (np.square(centers[None] - mean[:, None]) + variances)).sum(axis=1)
    missing = np.isnan(table)
    assert_allclose(found[missing], mean[missing], atol=1e-8)
    assert_allclose(spread[missing], np.sqrt(variance)[missing], rtol=1e-6)
    assert np.array_equal(found[~missing], table[~missing])
    assert (spread[~missing] == 0).all()
    assert np.array_equal(model.impute(table), found)


def test_the_spread_of_what_is_filled_in_is_honest():
    model = fitted()
    rows = model.sample(4000, random_state=1)
    holes = np.random.default_rng(5).uniform(size=rows.shape) < 0.25
    found, spread = model.impute(np.where(holes, np.nan, rows), return_std=True)
    missed = ((found - rows) / np.where(holes, spread, 1.0))[holes]
    assert np.mean(missed**2) == pytest.approx(1.0, abs=0.06)
    assert abs(missed.mean()) < 0.03


def test_what_gaps_leave_is_better_than_the_column_mean():
    table = gappy(share=0.3)
    model = fitted(table, nodes=15, basis=5, max_iter=60)
    missing = np.isnan(table)
    off = np.square(model.impute(table) - X)[missing].mean()
    assert off < 0.3 * np.square(np.nanmean(table, axis=0) - X)[missing].mean()


def test_complete_rows_have_nothing_to_fill_in():
    model = fitted()
    found, spread = model.impute(X, return_std=True)
    assert np.array_equal(found, X)
    assert found is not X
    assert not spread.any()


def test_rows_of_nothing_are_where_any_row_may_be():
    model = fitted()
    table = X[:3].copy()
    table[1] = np.nan
    with pytest.warns(DegenerateWarning, match=r"1 row\(s\) have no value in any column, the first being row 1"):
        shares = model.responsibilities(table)
    assert_allclose(shares[1], 1 / 49)
    with pytest.warns(DegenerateWarning, match="no value"):
        assert_allclose(model.transform(table)[1], 0.0, atol=1e-12)
    with pytest.warns(DegenerateWarning, match="no value"):
        assert model.score_samples(table)[1] == 0.0
    with pytest.warns(DegenerateWarning, match="no value"):
        filled_in = model.impute(table)
    assert_allclose(filled_in[1], model.inverse_transform(model.latent_.nodes).mean(axis=0))


def test_rows_of_nothing_teach_nothing():
    empty = np.full((5, X.shape[1]), np.nan)
    with pytest.warns(DegenerateWarning, match=r"5 row\(s\) have no value"):
        model = fitted(np.concatenate([gappy(), empty]), nodes=7)
    assert_allclose(model.weights_, fitted(gappy()).weights_, rtol=1e-6, atol=1e-8)


def test_a_column_of_nothing_is_refused():
    table = gappy()
    table[:, 3] = np.nan
    with pytest.raises(InvalidDataError, match=r"column\(s\) 3 hold no value .*drop them"):
        GTM(**SMALL).fit(table)
    weight = np.ones(len(X))
    weight[0] = 0
    table = gappy()
    table[1:, 3] = np.nan
    with pytest.raises(InvalidDataError, match=r"column\(s\) 3 hold no value in any row that counts"):
        GTM(**SMALL).fit(table, sample_weight=weight)


def test_projection_goes_by_the_cells_that_are_there():
    model = fitted()
    whole = ~np.isnan(gappy()).any(axis=1)
    assert_allclose(model.project(gappy())[whole], model.project(X)[whole], atol=1e-12)
    # Over those cells no point is nearer, that of the filled rows included.
    filled = model.project(model.impute(gappy()))
    squared = [np.nansum(np.square(gappy() - each), axis=1) for each in (model.project(gappy()), filled)]
    assert (squared[0] <= squared[1] + 1e-12).all()
    assert model.project(model.impute(gappy())).shape == X.shape
    assert np.isfinite(model.reconstruct(gappy())).all()


@pytest.mark.parametrize("init", ["pca", "random", "semi-random", "isomap", "lle", "laplacian"])
def test_every_start_takes_gaps(init):
    model = fitted(gappy(), init=init, random_state=0)
    assert np.isfinite(model.transform(gappy())).all()


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.MultimodalWarning")  # three iterations are few
@pytest.mark.parametrize("noise", ["isotropic", "diagonal"])
def test_large_jobs_warm_up_with_gaps_too(noise):
    table = gappy(datasets.make_pipe_flow(5000, rng=3).X, seed=1)
    model = GTM(nodes=30, basis=4, max_iter=3, tol=0.0, noise=noise, random_state=0).fit(table)
    objective = np.array(model.history_["objective"])
    assert np.isfinite(objective).all()
    assert np.diff(objective).min() >= 0


# ----------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("errors", "words"),
    [
        (np.ones(3), r"errors has shape \(3,\); give a standard deviation for each cell, \(150, 12\), or for each row"),
        (np.full(150, -1.0), r"finite and not negative, got -1.0 in row 0, column 0"),
        (np.full(X.shape, np.nan), "finite and not negative, got nan"),
        ([["a"] * 12] * 150, "errors must be numbers"),
    ],
    ids=["shape", "negative", "nan", "text"],
)
def test_errors_that_cannot_be_are_refused(errors, words):
    with pytest.raises(InvalidDataError, match=words):
        GTM(**SMALL).fit(X, errors=errors)
    with pytest.raises(InvalidDataError, match=words):
        fitted().transform(X, errors=errors)


def test_errors_of_gaps_do_not_matter():
    table, errors = gappy(), ERRORS.copy()
    errors[np.isnan(table)] = np.nan
    model = fitted(table, ERRORS)
    assert_allclose(model.transform(table, errors=errors), model.transform(table, errors=ERRORS), atol=1e-12)


def test_sparse_tables_know_no_errors_and_no_gaps():
    from scipy.sparse import csr_matrix

    model = fitted()
    with pytest.raises(UnsupportedInputError, match="errors of a sparse table"):
        model.transform(csr_matrix(X), errors=np.ones(len(X)))
    with pytest.raises(UnsupportedInputError, match="nothing to impute"):
        model.impute(csr_matrix(X))
    with pytest.raises(InvalidDataError, match="contains NaN"):
        model.transform(csr_matrix(gappy()))


def test_fit_transform_passes_errors_on():
    one = GTM(**SMALL).fit_transform(gappy(), errors=ERRORS)
    assert_allclose(one, fitted(gappy(), ERRORS).transform(gappy(), errors=ERRORS))


def test_files_keep_the_noise_of_each_column(tmp_path):
    model = fitted(gappy(), noise=DiagonalNoise())
    model.save(tmp_path / "model.prinfold")
    again = prinfold.load(tmp_path / "model.prinfold")
    assert np.array_equal(again.noise_parameters_["variances"], model.noise_parameters_["variances"])
    assert_allclose(again.transform(gappy()), model.transform(gappy()), atol=1e-12)
    model.noise_parameters_ = {"variances": -model.noise_parameters_["variances"]}
    model.save(tmp_path / "bad.prinfold")
    with pytest.raises(
        prinfold.exceptions.CorruptModelFileError, match="variances of the noise, finite and above zero"
    ):
        prinfold.load(tmp_path / "bad.prinfold")


def test_a_constant_column_has_a_noise_of_its_own():
    table = np.column_stack([X[:, :4], np.full(len(X), 3.0)])
    model = fitted(table, noise="diagonal")
    assert np.isfinite(model.transform(table)).all()
    assert model.noise_parameters_["variances"][4] < 1e-4
    assert_allclose(model.inverse_transform(model.latent_.nodes)[:, 4], 3.0, atol=1e-3)


def test_errors_of_columns_in_another_order_are_refused():
    names = [f"c{i}" for i in range(X.shape[1])]
    frame, errors = pd.DataFrame(X, columns=names), pd.DataFrame(ERRORS, columns=names)
    model = GTM(**SMALL).fit(frame, errors=errors)
    with pytest.raises(InvalidDataError, match=r"errors has the columns c11, c10.*same names in the same order"):
        model.transform(frame, errors=errors[names[::-1]])
