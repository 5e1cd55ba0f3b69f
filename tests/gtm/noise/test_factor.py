"""Noise with factors, along the surface or along directions of its own: against dense normals; gaps and errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from tests.properties.cases import random_rotation

import prinfold
from prinfold import GTM, AlignedNoise, LowRankNoise, datasets
from prinfold.exceptions import InvalidParameterError
from prinfold.gtm import model as gtm

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")  # few nodes, few iterations

X = datasets.make_pipe_flow(90, rng=2).X[:, :6]
ERRORS = 0.1 * np.random.default_rng(8).uniform(0.1, 2, X.shape)
SMALL = {"nodes": 5, "basis": 3, "max_iter": 15, "tol": 0.0}


def gappy(table=X, share=0.25, seed=0):
    holes = np.random.default_rng(seed).uniform(size=table.shape) < share
    holes[np.arange(len(table)), np.arange(len(table)) % table.shape[1]] = False  # something of every row
    return np.where(holes, np.nan, table)


def fitted(table=X, errors=None, **settings):
    return GTM(**{**SMALL, **settings}).fit(table, errors=errors)


def curve(n, seed=6):
    """A bent line in four columns with noise across it and along a fixed direction."""
    rng = np.random.default_rng(seed)
    u = rng.uniform(-1, 1, n)
    bent = np.stack([3 * u, u**2, np.sin(2 * u), 0.5 * u], axis=1)
    return bent + 0.3 * rng.standard_normal((n, 1)) * [0, 1, 0, 1] + 0.1 * rng.standard_normal((n, 4))


NOISES = {
    "aligned": "aligned",
    "aligned, given": AlignedNoise(0.7),
    "low rank": LowRankNoise(1, (0, 1)),
    "low rank 2": LowRankNoise(2, (0, 1)),
}
TABLES = {
    "plain": (X, None),
    "gaps": (gappy(), None),
    "errors": (X, ERRORS),
    "errors of rows": (X, ERRORS[:, 0]),
    "gaps, errors": (gappy(), ERRORS),
}
noises = pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
tables = pytest.mark.parametrize(("table", "errors"), TABLES.values(), ids=TABLES)


def dense_covariances(model):
    """(K, D, D) I/β + U Uᵀ, spelled out from what the model keeps."""
    D, nodes, kept = model.n_features_in_, model.latent_.nodes, model.noise_parameters_
    if "loadings" in kept:
        U = np.broadcast_to(kept["loadings"].T, (len(nodes), D, len(kept["loadings"])))
    else:
        U = kept["reach"] * model.latent_.spacing * model.jacobian(nodes) @ model.latent_.domain.frame(nodes)
    return model.noise_variance_ * np.eye(D) + U @ np.swapaxes(U, 1, 2)


def brute_force(model, table, errors=None):
    """(n, K) log p(t | node); (n, K, D) and (n, K, D, D) mean and covariance of cells given what was measured."""
    centers, covariances = model.inverse_transform(model.latent_.nodes), dense_covariances(model)
    e = (
        np.zeros_like(table)
        if errors is None
        else np.broadcast_to(errors if errors.ndim == 2 else errors[:, None], table.shape)
    )
    (n, D), K = table.shape, len(centers)
    density, mean, spread = np.empty((n, K)), np.empty((n, K, D)), np.empty((n, K, D, D))
    for i, row in enumerate(table):
        seen = ~np.isnan(row)
        for k in range(K):
            total = covariances[k][np.ix_(seen, seen)] + np.diag(e[i, seen] ** 2)
            gap, precision = row[seen] - centers[k, seen], np.linalg.inv(total)
            density[i, k] = -0.5 * (gap @ precision @ gap + np.linalg.slogdet(2 * np.pi * total)[1])
            gain = covariances[k][:, seen] @ precision
            mean[i, k] = centers[k] + gain @ gap
            spread[i, k] = covariances[k] - gain @ covariances[k][seen]
    return density, mean, spread


@noises
@tables
def test_likelihood_and_posterior_are_those_of_dense_normals(table, errors, noise):
    model = fitted(table, errors, noise=noise)
    expected = brute_force(model, table, errors)[0]
    whole = logsumexp(expected, axis=1)
    assert_allclose(model.score_samples(table, errors=errors), whole - np.log(25), rtol=1e-8, atol=1e-8)
    assert_allclose(model.responsibilities(table, errors=errors), np.exp(expected - whole[:, None]), atol=1e-8)


@noises
@pytest.mark.parametrize("errors", [None, ERRORS], ids=["gaps", "gaps, errors"])
def test_gaps_are_filled_by_their_conditional_expectation(noise, errors):
    table = gappy()
    model = fitted(table, errors, noise=noise)
    found, spread = model.impute(table, errors=errors, return_std=True)
    density, mean, within = brute_force(model, table, errors)
    share = np.exp(density - logsumexp(density, axis=1, keepdims=True))
    expected = np.einsum("nk,nkd->nd", share, mean)
    own = np.einsum("nkdd->nkd", within) + np.square(mean - expected[:, None])
    missing = np.isnan(table)
    assert_allclose(found[missing], expected[missing], atol=1e-7)
    assert_allclose(spread[missing], np.sqrt(np.einsum("nk,nkd->nd", share, own)[missing]), rtol=1e-6)
    assert np.array_equal(found[~missing], table[~missing])


def test_what_is_measured_tells_of_what_is_not():
    """Where columns depend on each other beside the surface, their dependence fills gaps better than the surface."""
    rng = np.random.default_rng(1)
    u, f = rng.uniform(-1, 1, 1500), rng.standard_normal((1500, 1))
    clean = np.stack([2 * u, u**2, 0 * u, 0 * u, 0 * u], axis=1) + f * [0, 0, 0.6, 0.6, -0.6]
    table = clean + 0.05 * rng.standard_normal(clean.shape)
    holed = gappy(table, 0.2)
    missing = np.isnan(holed)
    models = [
        GTM(1, nodes=20, basis=4, noise=noise, max_iter=100).fit(holed) for noise in ("isotropic", LowRankNoise(1))
    ]
    missing[:, :2] = False  # of these the curve alone tells
    off = [np.square(model.impute(holed) - table)[missing].mean() for model in models]
    assert off[1] < 0.4 * off[0]


@noises
@tables
@pytest.mark.parametrize("penalty", [{"regularization": 0.5}, {"prior_precision": 0.3}], ids=str)
def test_training_never_lowers_the_objective(table, errors, noise, penalty):
    for relaxation in (1.0, 1.8):
        model = fitted(table, errors, noise=noise, relaxation=relaxation, **penalty)
        objective = np.array(model.history_["objective"])
        assert len(objective) == 16
        assert np.diff(objective).min() >= -1e-12 * abs(objective).max()
        assert objective[-1] > objective[0] + 0.1


@noises
@pytest.mark.parametrize("errors", [None, 0.2 * ERRORS[:50, :4]], ids=["plain", "gaps, errors"])
def test_training_ends_where_the_objective_is_flat(noise, errors):
    table = curve(50) if errors is None else gappy(curve(50))
    chosen = replace(noise, axes=(0,)) if isinstance(noise, LowRankNoise) else noise
    settings = {"n_components": 1, "nodes": 6, "basis": 3, "regularization": 0.05}
    model = fitted(table, errors, noise=chosen, max_iter=1500, **settings)
    rows = model._rows(table, errors)
    trained, now = model._model_for(rows, model._model), model._parameters()
    given = isinstance(noise, AlignedNoise)

    def objective(h, weights, log_precision, factors):
        there = replace(
            now,
            weights=now.weights + h * weights,
            precision=now.precision * np.exp(h * log_precision),
            factors=now.factors + (0.0 if given else h * factors),
        )
        return gtm.measure(trained, trained.begin(rows, there))["objective"]

    rng, h = np.random.default_rng(1), 1e-5
    for _ in range(6):
        way = rng.standard_normal(now.weights.shape), rng.standard_normal(), rng.standard_normal(np.shape(now.factors))
        assert abs(objective(h, *way) - objective(-h, *way)) / (2 * h) < 2e-5


@tables
def test_without_factors_it_is_the_plain_noise(table, errors):
    plain = fitted(table, errors)
    for noise in (AlignedNoise(0.0), AlignedNoise(0)):
        model = fitted(table, errors, noise=noise)
        assert_allclose(model.weights_, plain.weights_, rtol=1e-6, atol=1e-8)
        assert_allclose(model.score_samples(table, errors=errors), plain.score_samples(table, errors=errors), rtol=1e-8)
    model = fitted(table, errors, noise=LowRankNoise(1, (0, 1)))
    model.weights_, model.noise_variance_ = plain.weights_, plain.noise_variance_
    model.noise_parameters_ = {"loadings": np.zeros((1, X.shape[1]))}
    assert_allclose(model.transform(table, errors=errors), plain.transform(table, errors=errors), atol=1e-9)


@noises
def test_complete_rows_are_the_same_by_either_way(noise):
    model = fitted(noise=noise)
    rows, parameters = model._rows(X), model._parameters()
    cells = replace(model._model, noise=model._model.noise.with_gaps())
    assert type(cells.noise) is not type(model._model.noise)
    one, two = (each.step(rows, each.begin(rows, parameters)) for each in (model._model, cells))
    assert_allclose(two.parameters.weights, one.parameters.weights, rtol=1e-7, atol=1e-9)
    assert_allclose(two.parameters.factors, one.parameters.factors, rtol=1e-7, atol=1e-9)
    assert two.parameters.precision == pytest.approx(one.parameters.precision, rel=1e-9)
    assert two.statistics.log_likelihood == pytest.approx(one.statistics.log_likelihood, rel=1e-11)


def test_errors_of_nothing_change_nothing_and_endless_errors_are_gaps():
    model = fitted(noise="aligned")
    assert_allclose(model.score_samples(X, errors=np.zeros(len(X))), model.score_samples(X), rtol=1e-9)
    huge = np.where(np.isnan(gappy()), 1e7, 0.0)
    assert_allclose(model.transform(X, errors=huge), model.transform(gappy()), atol=1e-6)


@noises
@tables
def test_a_row_alone_is_the_row_among_others(table, errors, noise):
    model = fitted(table, errors, noise=noise)
    whole = model.transform(table, errors=errors)
    for i in (0, 7, 80):
        some = None if errors is None else errors[i : i + 1]
        assert_allclose(model.transform(table[i : i + 1], errors=some)[0], whole[i], atol=1e-9)


@noises
@tables
def test_repeats_are_weights(table, errors, noise):
    count = np.random.default_rng(3).integers(0, 3, len(table))
    weighted = GTM(**{**SMALL, "noise": noise}).fit(table, sample_weight=count, errors=errors)
    more = None if errors is None else np.repeat(errors, count, axis=0)
    repeated = fitted(np.repeat(table, count, axis=0), more, noise=noise)
    assert_allclose(weighted.weights_, repeated.weights_, rtol=1e-5, atol=1e-7)
    assert weighted.noise_variance_ == pytest.approx(repeated.noise_variance_, rel=1e-7)


@noises
@pytest.mark.parametrize(
    ("table", "errors"), [(X, None), (gappy(), None), (gappy(), ERRORS)], ids=["plain", "gaps", "errors"]
)
def test_blocks_are_the_whole(noise, table, errors):
    model = fitted(table, errors, noise=noise)
    parameters, trained = model._parameters(), model._model
    whole = gtm.summarize(trained, model._rows(table, errors), parameters)
    cut = [slice(i, i + 37) for i in range(0, len(table), 37)]
    parts = [model._rows(table[c], None if errors is None else errors[c]) for c in cut]
    first, *rest = (gtm.summarize(trained, part, parameters) for part in parts)
    joined = sum(rest, first)
    for name in ("moments", "second", "first", "square", "seen", "trusted", "log_likelihood", "total"):
        assert_allclose(getattr(joined, name), getattr(whole, name), rtol=1e-8, atol=1e-10)
        assert_allclose(getattr(whole.scale(0.5), name), 0.5 * np.asarray(getattr(whole, name)), rtol=1e-14)


@noises
def test_turning_the_data_turns_the_model(noise):
    R = random_rotation(X.shape[1])
    here, there = fitted(noise=noise), fitted(X @ R.T, noise=noise)
    assert_allclose(there.noise_variance_, here.noise_variance_, rtol=1e-6)
    assert_allclose(there.score_samples(X @ R.T), here.score_samples(X), rtol=1e-6, atol=1e-6)
    if "loadings" in here.noise_parameters_:
        turned, V = there.noise_parameters_["loadings"], here.noise_parameters_["loadings"] @ R.T
        assert_allclose(turned.T @ turned, V.T @ V, atol=1e-6)


@noises
@pytest.mark.parametrize("errors", [None, ERRORS], ids=["plain", "errors"])
def test_single_precision_is_double_precision_but_for_rounding(noise, errors):
    model, narrow = fitted(X, errors, noise=noise), X.astype(np.float32)
    assert model.transform(narrow, errors=errors).dtype == np.float32
    assert_allclose(model.transform(narrow, errors=errors), model.transform(X, errors=errors), atol=2e-4)
    again = fitted(narrow, errors, noise=noise)
    assert again.noise_variance_ == pytest.approx(model.noise_variance_, rel=1e-3)


@noises
def test_more_columns_than_rows(noise):
    rng = np.random.default_rng(0)
    wide = X[:30, :3] @ rng.standard_normal((3, 80)) + 0.1 * rng.standard_normal((30, 80))
    model = fitted(wide, noise=noise, nodes=4)
    assert np.isfinite(model.transform(wide)).all()
    assert np.diff(model.history_["objective"]).min() > -1e-9


@noises
@pytest.mark.parametrize("table", [X, gappy()], ids=["plain", "gaps"])
def test_files_keep_the_noise(tmp_path, noise, table):
    model = fitted(table, noise=noise)
    model.save(tmp_path / "model.prinfold")
    again = prinfold.load(tmp_path / "model.prinfold")
    for name, value in model.noise_parameters_.items():
        assert np.array_equal(again.noise_parameters_[name], value)
    assert_allclose(again.transform(table), model.transform(table), atol=1e-12)
    broken = {"reach": -1.0} if "reach" in model.noise_parameters_ else {"loadings": np.ones((7, 2))}
    model.noise_parameters_ = broken
    model.save(tmp_path / "bad.prinfold")
    with pytest.raises(prinfold.exceptions.CorruptModelFileError, match=r"the reach of the noise|finite loadings"):
        prinfold.load(tmp_path / "bad.prinfold")


@noises
def test_samples_scatter_as_the_noise_says(noise):
    model = fitted(noise=noise)
    assert_allclose(model.noise_covariance(), dense_covariances(model), atol=1e-10)
    nodes = model._model.noise.at_nodes(model._model.surface, model._parameters())
    drawn = nodes.draw(np.full(60_000, 7), np.random.default_rng(0))
    expected = dense_covariances(model)[7]
    assert_allclose(np.cov(drawn.T), expected, atol=0.03 * np.abs(expected).max())


# --------------------------------------------------------------------------------------- what is found


def test_the_reach_is_found_where_nodes_are_far_apart():
    """Rows uniform between nodes scatter by 1/√12 of their distance along the curve, and hardly across it."""
    rng = np.random.default_rng(3)
    u = rng.uniform(-1, 1, 4000)
    table = np.stack([3 * u, u**2], axis=1) + 0.02 * rng.standard_normal((4000, 2))
    settings = {"nodes": 12, "basis": 4, "regularization": 1e-3, "max_iter": 300}
    aligned, plain = (GTM(1, noise=noise, **settings).fit(table) for noise in ("aligned", "isotropic"))
    assert 0.2 < aligned.noise_parameters_["reach"] < 0.5
    assert np.sqrt(aligned.noise_variance_) == pytest.approx(0.02, rel=0.3)
    assert np.sqrt(plain.noise_variance_) > 0.05
    assert aligned.score(table) > plain.score(table) + 0.5


def test_straight_directions_are_found_beside_a_curve():
    rng = np.random.default_rng(5)
    u, f = rng.uniform(-1, 1, 3000), rng.standard_normal((3000, 2))
    V = np.array([[0, 0, 0.5, 0.5, 0, 0], [0, 0, 0, 0, 0.3, -0.3]])
    clean = np.stack([2 * u, 2 * u**2, 0 * u, 0 * u, 0 * u, 0 * u], axis=1) + f @ V
    table = clean + 0.05 * rng.standard_normal(clean.shape)
    model = GTM(1, nodes=40, basis=6, noise=LowRankNoise(2), regularization=1e-3, max_iter=300, tol=1e-6).fit(table)
    found = model.noise_parameters_["loadings"]
    assert_allclose(found.T @ found, V.T @ V, atol=0.03)
    assert np.sqrt(model.noise_variance_) == pytest.approx(0.05, rel=0.1)


def test_of_the_ways_to_begin_the_best_is_taken():
    table = datasets.make_semilinear_sheet(196).X
    settings = {"n_components": 1, "nodes": 10, "basis": 5, "max_iter": 40, "tol": 0.0, "regularization": 1e-3}
    along, across, best = (GTM(noise=LowRankNoise(1, axes), **settings).fit(table) for axes in ((0,), (1,), None))
    assert along.score(table) > across.score(table) + 0.5
    assert_allclose(best.weights_, along.weights_)
    turned = table[:, [1, 0, 2]] * [1.0, 0.45, 1.0]  # the curved direction is now the shorter one
    assert GTM(noise=LowRankNoise(1), **settings).fit(turned).score(turned) == pytest.approx(
        max(GTM(noise=LowRankNoise(1, axes), **settings).fit(turned).score(turned) for axes in ((0,), (1,), (2,))[:2])
    )


@pytest.mark.parametrize("init", ["random", "semi-random", "isomap"])
def test_every_start_takes_directions(init):
    model = fitted(noise=LowRankNoise(2), init=init, random_state=0)
    assert np.linalg.norm(model.noise_parameters_["loadings"], axis=1).min() > 0
    assert np.diff(model.history_["objective"]).min() > -1e-9


@pytest.mark.parametrize("noise", ["aligned", LowRankNoise(1)], ids=str)
@pytest.mark.parametrize(
    "table",
    [X[:2], np.ones((10, 4)), np.column_stack([X, np.ones(90)]), np.concatenate([X, np.full((1, 6), 1e8)]), X + 1e6],
    ids=["two rows", "equal rows", "a constant column", "an outlier", "far from the origin"],
)
def test_tables_that_have_little_to_say(noise, table):
    model = fitted(table, noise=noise)
    assert np.isfinite(model.transform(table)).all()
    assert np.isfinite(model.score_samples(table)).all()
    objective = np.array(model.history_["objective"])
    assert np.diff(objective).min() > -1e-9 * max(1.0, np.abs(objective).max())  # rounding goes with its size


# -------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: AlignedNoise(-1.0), "AlignedNoise: reach must be"),
        (lambda: LowRankNoise(0), "LowRankNoise: rank must be"),
        (lambda: LowRankNoise(1, (0, 0)), "LowRankNoise: axes must be .*different integers"),
        (lambda: fitted(noise=LowRankNoise(6)), "leaves nothing over where n_features = 6"),
        (lambda: fitted(noise=LowRankNoise(1, (0,))), "name 1 axes, but the surface has 2"),
        (lambda: fitted(noise=LowRankNoise(1, (0, 9))), "6 columns have 6 axes"),
        (lambda: fitted(noise=LowRankNoise(1, (0, 1)), init="random"), "go with one start only.*init='pca'"),
    ],
)
def test_what_cannot_be_is_refused(make, words):
    with pytest.raises(InvalidParameterError, match=words):
        make()
