"""A map of mixed columns: against brute force and against plain GTM; frames in and out, gaps, levels, counts, files."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose
from scipy.stats import spearmanr

import prinfold
from prinfold import GTM, GaussianProcess, GTMClassifier, GTMRegressor, MixedGTM, choose
from prinfold.datasets.files import find
from prinfold.exceptions import (
    CorruptModelFileError,
    DegenerateWarning,
    InvalidDataError,
    InvalidParameterError,
    UnsupportedInputError,
)
from prinfold.gtm import model as gtm
from prinfold.gtm.fitting import assemble
from prinfold.gtm.starts import first_parameters as starts

pytestmark = [
    pytest.mark.filterwarnings("ignore::prinfold.exceptions.FoldWarning"),
    pytest.mark.filterwarnings("ignore::prinfold.exceptions.MultimodalWarning"),
]
SMALL = {"nodes": 6, "basis": 3, "max_iter": 25, "tol": 0.0}


def simulate(n=160, seed=0):
    """A sheet seen through columns of every kind, and where on it each row lies."""
    rng = np.random.default_rng(seed)
    u, v = rng.uniform(-1, 1, (2, n))
    utility = np.stack([2 * u, 2 * v, np.zeros(n)], axis=1) + rng.gumbel(size=(n, 3))
    table = pd.DataFrame(
        {
            "length": 2 * u + 0.2 * rng.standard_normal(n),
            "weight": u**2 + v + 0.2 * rng.standard_normal(n),
            "ill": rng.uniform(size=n) < 1 / (1 + np.exp(-4 * v)),
            "town": np.array(["ash", "elm", "oak"])[utility.argmax(axis=1)],
            "calls": rng.poisson(np.exp(1 + u)),
            "reads": rng.negative_binomial(2, 2 / (2 + np.exp(2 + v))),
        }
    )
    return table, np.stack([u, v], axis=1)


def gappy(table, share=0.15, seed=1):
    holes = np.random.default_rng(seed).uniform(size=table.shape) < share
    holes[:, 0] = False
    out = table.copy()
    for j, name in enumerate(table.columns):
        kept = table[name].astype(object).where(~holes[:, j], None)
        kind = {"ill": "boolean", "town": "string", "calls": "Int64", "reads": "Int64"}.get(name, "float64")
        out[name] = kept.astype(kind)
    return out


TABLE, PLACES = simulate()
GAPPY = gappy(TABLE)
KINDS = ["gaussian", "gaussian", "bernoulli", "categorical", "poisson", "negative_binomial"]
CALLS = {"calls": "poisson"}


def fitted(table=TABLE, **settings):
    return MixedGTM(**{**SMALL, "columns": CALLS, **settings}).fit(table)


# ------------------------------------------------------------------------------------------------- training


@pytest.mark.parametrize("table", [TABLE, GAPPY], ids=["whole", "gaps"])
@pytest.mark.parametrize("penalty", [{"regularization": 0.5}, {"prior_precision": 0.3}], ids=str)
@pytest.mark.parametrize("relaxation", [1.0, 1.8])
@pytest.mark.parametrize("init", ["pca", "random"])
def test_training_never_lowers_the_objective(table, penalty, relaxation, init):
    model = fitted(table, relaxation=relaxation, init=init, random_state=0, **penalty)
    assert [column.kind for column in model.columns_] == KINDS
    objective = np.array(model.history_["objective"])
    assert np.diff(objective).min() >= -1e-12 * abs(objective).max()
    assert objective[-1] > objective[0] + 0.1


@pytest.mark.parametrize("dispersion", ["column", "shared"])
def test_training_ends_where_the_objective_is_flat(dispersion):
    small = GAPPY.iloc[:60]
    model = MixedGTM(
        1, nodes=6, basis=2, max_iter=800, tol=0.0, columns=CALLS, dispersion=dispersion, regularization=1.0
    ).fit(small)
    start = assemble(model._recipe(), model._table(small))
    trained, rows, parameters = start.model, start.rows, replace(model._parameters(), noise=start.model.noise)

    def objective(weights, log_precision, log_dispersion):
        there = replace(parameters, weights=weights, precision=np.exp(log_precision), dispersion=np.exp(log_dispersion))
        return gtm.measure(trained, trained.begin(rows, there))["objective"]

    here = parameters.weights, np.log(parameters.precision), np.log(parameters.dispersion)
    assert objective(*here) == pytest.approx(model.history_["objective"][-1], rel=1e-12)
    rng, h = np.random.default_rng(1), 1e-5
    for _ in range(6):
        along = [rng.standard_normal(each.shape) for each in here]
        ahead = objective(*(a + h * b for a, b in zip(here, along, strict=True)))
        behind = objective(*(a - h * b for a, b in zip(here, along, strict=True)))
        assert abs(ahead - behind) / (2 * h) < 2e-5


@pytest.mark.parametrize("settings", [{}, {"prior_precision": 0.3}, {"init": "random", "random_state": 1}], ids=str)
def test_numbers_alone_are_a_gtm_of_diagonal_noise(settings):
    X = np.column_stack([TABLE["length"], TABLE["weight"], TABLE["length"] ** 2, TABLE["length"] * TABLE["weight"]])
    X[np.random.default_rng(2).uniform(size=X.shape) < 0.1] = np.nan
    mixed = MixedGTM(**SMALL, **settings).fit(X)
    plain = GTM(**SMALL, **settings, noise="diagonal").fit(X)
    assert_allclose(mixed.weights_, plain.weights_, rtol=1e-7, atol=1e-9)
    assert_allclose(mixed.noise_parameters_["variances"], plain.noise_parameters_["variances"], rtol=1e-9)
    assert mixed.noise_variance_ == pytest.approx(plain.noise_variance_, rel=1e-9)
    assert mixed.noise_variance_ == pytest.approx(mixed.noise_parameters_["variances"].mean(), rel=1e-9)
    assert_allclose(mixed.history_["objective"], plain.history_["objective"], rtol=1e-10)
    assert_allclose(mixed.transform(X), plain.transform(X), atol=1e-9)
    assert_allclose(mixed.score_samples(X), plain.score_samples(X), rtol=1e-9)
    assert_allclose(mixed.impute(X), plain.impute(X), atol=1e-9)


def test_the_map_finds_the_places():
    table, places = simulate(400)
    model = MixedGTM(nodes=10, basis=4, columns=CALLS, max_iter=300).fit(gappy(table))
    Z = np.column_stack([np.ones(400), model.transform(gappy(table))])
    left = places - Z @ np.linalg.lstsq(Z, places)[0]
    assert (left.var(axis=0) < [0.1, 0.3] * places.var(axis=0)).all()


def test_shapes_of_counts_are_found():
    rng = np.random.default_rng(0)
    u = rng.uniform(-1, 1, 4000)
    table = pd.DataFrame({"x": 2 * u + 0.1 * rng.standard_normal(4000)})
    for name, r in (("a", 2.0), ("b", 8.0)):
        table[name] = rng.negative_binomial(r, r / (r + np.exp(3 + u)))
    model = MixedGTM(1, nodes=20, basis=4, max_iter=300, tol=1e-6).fit(table)
    assert_allclose(model.noise_parameters_["dispersions"], [2.0, 8.0], rtol=0.1)
    shared = MixedGTM(1, nodes=20, basis=4, max_iter=300, tol=1e-6, dispersion="shared").fit(table)
    first, second = shared.noise_parameters_["dispersions"]
    assert first == second
    assert 2.0 < first < 8.0
    assert (MixedGTM(1, **SMALL, dispersion=5.0).fit(table).noise_parameters_["dispersions"] == 5.0).all()


def test_large_jobs_warm_up_on_a_coarser_grid(monkeypatch):
    cold = fitted(GAPPY, max_iter=8)
    monkeypatch.setattr(starts, "_WARM_UP_FROM", 1)
    warm = fitted(GAPPY, max_iter=8)
    assert warm.history_["objective"][0] > cold.history_["objective"][0] + 0.1


def test_repeats_are_weights():
    count = np.random.default_rng(3).integers(0, 3, len(GAPPY))
    weighted = MixedGTM(**SMALL).fit(GAPPY, sample_weight=count)
    repeated = MixedGTM(**SMALL).fit(GAPPY.iloc[np.repeat(np.arange(len(GAPPY)), count)])
    assert_allclose(weighted.weights_, repeated.weights_, rtol=1e-6, atol=1e-7)
    assert repr(weighted.columns_) == repr(repeated.columns_)


def test_a_row_alone_is_the_row_among_others():
    model = fitted(GAPPY, size_factors="auto")
    whole, likely = model.transform(GAPPY), model.score_samples(GAPPY)
    for i in (0, 7, 80):
        assert_allclose(model.transform(GAPPY.iloc[[i]])[0], whole[i], atol=1e-10)
        assert_allclose(model.score_samples(GAPPY.iloc[[i]])[0], likely[i], rtol=1e-10)


def test_blocks_are_the_whole():
    model = fitted(GAPPY)
    table, parameters = model._table(GAPPY), model._parameters()
    whole = gtm.summarize(model._model, model._rows(table), parameters)
    parts = [model._rows(table[i : i + 37]) for i in range(0, len(table), 37)]
    first, *rest = (gtm.summarize(model._model, part, parameters) for part in parts)
    joined = sum(rest, first)
    for name in ("mass", "masses", "moment", "square", "seen", "slack", "log_likelihood", "total"):
        assert_allclose(getattr(joined, name), getattr(whole, name), rtol=1e-9, atol=1e-12)
        assert_allclose(getattr(whole.scale(0.5), name), 0.5 * np.asarray(getattr(whole, name)), rtol=1e-15)


def test_order_of_columns_and_levels_does_not_matter():
    model = fitted(GAPPY)
    turned = fitted(GAPPY[GAPPY.columns[::-1]])
    assert_allclose(turned.score_samples(GAPPY[GAPPY.columns[::-1]]), model.score_samples(GAPPY), rtol=1e-6)
    other = GAPPY.assign(town=GAPPY["town"].map({"ash": "oak", "oak": "ash", "elm": "elm"}))
    swapped = fitted(other)
    assert_allclose(swapped.score_samples(other), model.score_samples(GAPPY), rtol=1e-6)
    levels = [list(each.columns_["town"].levels) for each in (model, swapped)]
    names = [list(each.value_names()) for each in (model, swapped)]
    Z = model.latent_.nodes
    values = [
        dict(zip(n, each.inverse_transform(Z).T, strict=True)) for n, each in zip(names, (model, swapped), strict=True)
    ]
    assert levels[0] == levels[1] == ["ash", "elm", "oak"]
    assert_allclose(values[1]["town=oak"], values[0]["town=ash"], atol=1e-6)


def test_single_precision_is_double_precision_but_for_rounding():
    X = np.column_stack([TABLE["length"], TABLE["ill"], TABLE["reads"]])
    columns = {1: "bernoulli", 2: "negative_binomial"}
    double = MixedGTM(**SMALL, columns=columns).fit(X)
    single = MixedGTM(**SMALL, columns=columns).fit(X.astype(np.float32))
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    assert_allclose(single.transform(X.astype(np.float32)), double.transform(X), atol=1e-3)


# ---------------------------------------------------------------------------------------- tables in and out


def as_polars(table):
    return pl.from_pandas(table)


def as_arrow(table):
    return pa.Table.from_pandas(table, preserve_index=False)


@pytest.mark.parametrize("convert", [as_polars, as_arrow], ids=["polars", "arrow"])
def test_frames_of_all_libraries_are_one(convert):
    ours, theirs = fitted(GAPPY), fitted(convert(GAPPY))
    assert [c.kind for c in theirs.columns_] == KINDS
    assert_allclose(theirs.transform(convert(GAPPY)), ours.transform(GAPPY), atol=1e-9)
    assert isinstance(theirs.sample(3), type(convert(GAPPY)))
    assert isinstance(theirs.impute(convert(GAPPY)), type(convert(GAPPY)))


def test_samples_are_in_the_types_of_the_table():
    drawn = fitted(TABLE).sample(5, random_state=0)
    assert list(drawn.columns) == list(TABLE.columns)
    assert (drawn.dtypes == TABLE.dtypes).all()
    assert set(drawn["town"]) <= {"ash", "elm", "oak"}


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["oak", "ash", "elm", "fir"])], ids=str)
def test_declared_levels_keep_their_order_and_come_back(kind):
    table = pl.from_pandas(TABLE).with_columns(pl.col("town").cast(kind))
    model = fitted(table)
    if isinstance(kind, pl.Enum):
        assert model.columns_["town"].levels == ("oak", "ash", "elm", "fir")
        shares = model.inverse_transform(model.latent_.nodes)[:, list(model.value_names()).index("town=fir")]
        assert 0 < shares.max() < 0.05  # never seen, and not impossible
    assert model.sample(3)["town"].dtype == table["town"].dtype


def test_pandas_categories_come_back():
    table = TABLE.assign(town=pd.Categorical(TABLE["town"], categories=["oak", "elm", "ash"]))
    model = fitted(table)
    assert model.columns_["town"].levels == ("oak", "elm", "ash")
    assert isinstance(model.sample(3)["town"].dtype, pd.CategoricalDtype)


def test_the_same_table_as_an_array_of_objects():
    ours, theirs = fitted(TABLE), fitted(TABLE.to_numpy(dtype=object), columns={4: "poisson", 5: "negative_binomial"})
    assert_allclose(theirs.transform(TABLE.to_numpy(dtype=object)), ours.transform(TABLE), atol=1e-9)
    assert theirs.sample(2).dtype == object
    listed = TABLE.to_numpy(dtype=object).tolist()
    assert_allclose(theirs.transform(listed), ours.transform(TABLE), atol=1e-9)


def test_counts_may_be_sparse():
    counts = np.random.default_rng(0).poisson(np.exp(PLACES @ np.random.default_rng(1).standard_normal((2, 8))))
    for kind in ("poisson", "negative_binomial"):
        dense = MixedGTM(**SMALL, columns=kind, size_factors="auto").fit(counts)
        sparse = MixedGTM(**SMALL, columns=kind, size_factors="auto").fit(scipy.sparse.csr_matrix(counts))
        assert_allclose(sparse.transform(scipy.sparse.csr_matrix(counts)), dense.transform(counts), atol=1e-9)
    with pytest.raises(InvalidDataError, match=r"holds 0.5 in row 0, but poisson counts"):
        MixedGTM(columns="poisson").fit(scipy.sparse.csr_matrix(0.5 * np.eye(5)))


def test_imputing_fills_gaps_and_nothing_else():
    model = fitted(GAPPY)
    found, spread = model.impute(GAPPY, return_std=True)
    missing = GAPPY.isna().to_numpy()
    assert not found.isna().to_numpy().any()
    assert list(found.columns) == list(GAPPY.columns)
    for j, name in enumerate(GAPPY.columns):
        there = ~missing[:, j]
        assert (found[name][there].astype(object) == GAPPY[name][there].astype(object)).all()
        levels = name in {"ill", "town"}
        assert (spread[there, j] == (1.0 if levels else 0.0)).all()
        assert (spread[~there, j] > 0).all()
        assert not levels or (spread[~there, j] <= 1.0).all()
    assert found["town"].dtype == GAPPY["town"].dtype
    whole = model.impute(TABLE)
    assert whole.equals(TABLE)


def test_imputing_is_the_posterior_mean_of_the_nodes():
    model = fitted(GAPPY, size_factors=None)
    found, spread = model.impute(GAPPY, return_std=True)
    share = model.responsibilities(GAPPY)
    expected = dict(zip(model.value_names(), (share @ model.inverse_transform(model.latent_.nodes)).T, strict=True))
    for name in ("weight", "calls", "reads"):
        gaps = GAPPY[name].isna().to_numpy()
        assert_allclose(found[name][gaps].astype(float), expected[name][gaps], rtol=1e-9)
    gaps = GAPPY["town"].isna().to_numpy()
    shares = np.stack([expected[f"town={level}"] for level in ("ash", "elm", "oak")], axis=1)[gaps]
    assert list(found["town"][gaps]) == [("ash", "elm", "oak")[i] for i in shares.argmax(axis=1)]
    assert_allclose(spread[gaps, 3], shares.max(axis=1), rtol=1e-9)


def test_imputing_beats_the_columns_alone():
    table, _ = simulate(600, seed=5)
    holed = gappy(table, 0.2, seed=6)
    model = MixedGTM(nodes=12, basis=4, columns=CALLS, max_iter=100, tol=1e-4).fit(holed)
    found, missing = model.impute(holed), holed.isna()
    for name in ("weight", "reads"):
        gaps, truth = missing[name], table[name]
        off = np.square(found[name][gaps].astype(float) - truth[gaps]).mean()
        assert off < 0.8 * np.square(holed[name].astype(float).mean() - truth[gaps]).mean()
    for name in ("ill", "town"):
        gaps = missing[name]
        right = (found[name][gaps].astype(object) == table[name][gaps].astype(object)).mean()
        assert right > (table[name][gaps] == holed[name].mode()[0]).mean() + 0.1


# ---------------------------------------------------------------------------------------------- size factors


def test_size_factors_take_depth_out():
    rng = np.random.default_rng(0)
    u = rng.uniform(-1, 1, 400)
    depth = np.exp(rng.normal(0, 0.8, 400))
    rates = np.exp(2 + np.outer(u, rng.standard_normal(12)))
    counts = rng.poisson(depth[:, None] * rates / rates.sum(axis=1, keepdims=True) * 60)
    settings = {"n_components": 1, "nodes": 15, "basis": 4, "columns": "poisson", "max_iter": 200}
    without = MixedGTM(**settings).fit(counts)
    totals = MixedGTM(**settings, size_factors="auto").fit(counts)
    given = MixedGTM(**settings | {"columns": dict.fromkeys(range(12), "poisson")}, size_factors=12).fit(
        np.column_stack([counts, depth])
    )
    assert abs(spearmanr(without.transform(counts)[:, 0], u)[0]) < 0.7
    assert abs(spearmanr(totals.transform(counts)[:, 0], u)[0]) > 0.9
    assert abs(spearmanr(given.transform(np.column_stack([counts, depth]))[:, 0], u)[0]) > 0.9
    assert given.columns_[12].kind == "size_factor"
    assert given.inverse_transform(given.latent_.nodes).shape == (15, 12)
    assert given.sample(3).shape == (3, 13)


def test_a_factor_multiplies_the_rates():
    table = TABLE.assign(depth=2.0)
    model, plain = fitted(table, size_factors="depth"), fitted(TABLE)
    same = fitted(TABLE.assign(depth=1.0), size_factors="depth")
    assert_allclose(same.score_samples(TABLE.assign(depth=1.0)), plain.score_samples(TABLE), rtol=1e-12)
    # The row that is added to every column has a size factor of 1, and weighs half as much beside those of 2.
    assert_allclose(model.score_samples(table), plain.score_samples(TABLE), rtol=1e-5)
    names, Z = list(plain.value_names()), plain.latent_.nodes
    halved = np.where(np.isin(names, ["calls", "reads"]), 0.5, 1.0)
    assert_allclose(model.inverse_transform(Z), halved * plain.inverse_transform(Z), rtol=1e-3)
    with pytest.raises(InvalidDataError, match="column 'depth' holds 0 in row 0, but size factors must be"):
        model.transform(table.assign(depth=0.0))


@pytest.mark.parametrize(
    ("table", "settings", "match"),
    [
        (TABLE[["length", "weight"]], {"size_factors": "auto"}, r"has 0 column\(s\) of counts"),
        (TABLE[["length", "calls"]], {"size_factors": "auto"}, "which is its own total; leave size_factors out"),
        (TABLE, {"size_factors": "deepth"}, "there is no column 'deepth'"),
        (TABLE, {"columns": {"length": "number"}}, "columns must be"),
        (TABLE, {"dispersion": 0.0}, "dispersion must be"),
        (TABLE, {"unseen": "ignore"}, "unseen must be 'error' or 'missing'"),
    ],
)
def test_settings_that_cannot_work_are_refused(table, settings, match):
    with pytest.raises(InvalidParameterError, match=match):
        MixedGTM(**settings).fit(table)


# -------------------------------------------------------------------------------------------- odd tables


def test_levels_not_seen_before():
    model = fitted(TABLE)
    strange = TABLE.assign(town="yew")
    with pytest.raises(InvalidDataError, match=r"column 'town' holds the level 'yew' in row 0.*unseen='missing'"):
        model.transform(strange)
    lenient = fitted(TABLE, unseen="missing")
    assert_allclose(lenient.transform(strange), model.transform(TABLE.assign(town=None)), atol=1e-12)


def test_columns_that_say_nothing():
    table = TABLE.assign(same="x", zero=0, never=False, one=1.0, rare=["once"] + ["often"] * (len(TABLE) - 1))
    model = fitted(table, columns={"calls": "poisson", "zero": "poisson"})
    assert_allclose(model.transform(table), fitted(TABLE).transform(TABLE), atol=0.05)
    assert np.isfinite(model.weights_).all()
    assert np.abs(model.weights_).max() < 50
    values = dict(zip(model.value_names(), model.inverse_transform(model.latent_.nodes).T, strict=True))
    assert values["zero"].max() < 0.02
    assert values["never=True"].max() < 0.02
    assert (values["same=x"] == 1.0).all()
    assert_allclose(values["one"], 1.0)
    with pytest.raises(InvalidDataError, match="column 'empty' holds no value"):
        fitted(TABLE.assign(empty=np.nan))
    with pytest.raises(InvalidDataError, match="looks like names of rows"):
        fitted(TABLE.assign(name=[f"r{i}" for i in range(len(TABLE))]))


def test_one_column_of_levels_alone():
    model = MixedGTM(1, nodes=5, basis=2).fit(TABLE[["town"]])
    frequency = TABLE["town"].value_counts(normalize=True)
    shares = model.inverse_transform(model.latent_.nodes).mean(axis=0)
    assert_allclose(shares, frequency[["ash", "elm", "oak"]], atol=0.02)


def test_rows_with_nothing_in_them():
    model = fitted(GAPPY)
    nothing = GAPPY.iloc[[0]].copy()
    for name in nothing:
        nothing[name] = pd.array([None], dtype=GAPPY[name].dtype)
    with pytest.warns(DegenerateWarning, match="no value in any column"):
        assert model.score_samples(nothing) == pytest.approx(0.0, abs=1e-9)


def test_far_rows_have_a_place():
    model = fitted(TABLE)
    far = TABLE.iloc[[0]].assign(length=1e6, calls=10**6, reads=10**7)
    assert np.isfinite(model.transform(far)).all()
    assert np.isfinite(model.score_samples(far)).all()


def test_zero_weights_do_not_count():
    table = pd.concat([TABLE, TABLE.iloc[:1].assign(town="yew", calls=10**5)])
    weight = np.r_[np.ones(len(TABLE)), 0.0]
    model = MixedGTM(**SMALL).fit(table, sample_weight=weight)
    assert repr(model.columns_) == repr(MixedGTM(**SMALL).fit(TABLE).columns_)
    assert_allclose(model.weights_, MixedGTM(**SMALL).fit(TABLE).weights_, rtol=1e-6, atol=1e-8)


def test_verbs_that_need_a_distance_say_so():
    model = fitted(TABLE)
    assert_allclose(model.reconstruct(TABLE), model.inverse_transform(model.transform(TABLE)), atol=1e-12)
    for verb in (model.project, model.projection_error):
        with pytest.raises(UnsupportedInputError, match=r"'ill' is bernoulli; ask for coordinates"):
            verb(TABLE)
    with pytest.raises(UnsupportedInputError, match="a covariance needs columns of numbers"):
        model.noise_covariance()
    for verb in (model.transform, model.fit):
        with pytest.raises(UnsupportedInputError, match="MixedGTM takes no errors of cells"):
            verb(TABLE, errors=np.ones(len(TABLE)))


def test_the_jacobian_is_the_derivative_of_what_is_expected():
    model = fitted(TABLE)
    Z = 0.9 * model.transform(TABLE)[:20]
    J = model.jacobian(Z)
    for axis in range(2):
        step = 1e-6 * np.eye(2)[axis]
        found = (model.inverse_transform(Z + step) - model.inverse_transform(Z - step)) / 2e-6
        assert_allclose(J[:, :, axis], found, rtol=1e-5, atol=1e-6)
    shares = model.inverse_transform(Z)[:, [i for i, n in enumerate(model.value_names()) if n.startswith("town")]]
    assert_allclose(shares.sum(axis=1), 1.0)


def test_typical_rows_are_rows():
    model = fitted(TABLE)
    rows = model.typical_rows(model.latent_.nodes)
    assert list(rows.columns) == list(TABLE.columns)
    values = dict(zip(model.value_names(), model.inverse_transform(model.latent_.nodes).T, strict=True))
    assert_allclose(rows["reads"], values["reads"])
    assert list(rows["ill"]) == list(values["ill=True"] > 0.5)


# ------------------------------------------------------------------------------------- what stands on a map


def test_landscapes_stand_on_a_map_of_mixed_columns():
    some = GAPPY.drop(columns="ill")
    model = GTMClassifier(MixedGTM(**SMALL)).fit(some, TABLE["ill"])
    assert model.score(some, TABLE["ill"]) > 0.7
    numbers = GTMRegressor(MixedGTM(**SMALL)).fit(some, PLACES[:, 0])
    assert numbers.score(some, PLACES[:, 0]) > 0.7


def test_settings_are_chosen_by_rows_held_out():
    recipe = MixedGTM(**{**SMALL, "max_iter": 8}, columns=CALLS, unseen="missing", random_state=0)
    found = choose(GAPPY, {"regularization": (0.3, 1e4)}, model=recipe, by="held-out", folds=3)
    assert found.settings["regularization"] == 0.3
    assert_allclose(found.model.transform(GAPPY).shape, (160, 2))


def test_a_process_has_to_be_given_its_numbers():
    assert fitted(TABLE, basis=GaussianProcess(0.6, 0.5)).converged_ is False
    assert fitted(TABLE, basis=GaussianProcess(0.6), regularization=0.1).converged_ is False
    for settings in ({"basis": GaussianProcess()}, {"basis": GaussianProcess(0.6)}):
        with pytest.raises(InvalidParameterError, match="a Gaussian process cannot estimate its length_scale"):
            fitted(TABLE, **settings)


def test_pictures_are_of_latent_space():
    model = fitted(TABLE)
    with pytest.raises(InvalidParameterError, match="column 'ill' is bernoulli, so the surface has no place among the"):
        prinfold.plot.surface(model, TABLE)
    assert prinfold.plot.latent_map(model, TABLE, labels=TABLE["town"]).get_legend() is not None
    plt.close("all")


def test_columns_that_share_a_name_are_refused():
    with pytest.raises(InvalidDataError, match="several columns are called 'length'"):
        fitted(pd.concat([TABLE, TABLE[["length"]]], axis=1))


@pytest.mark.parametrize("init", ["isomap", "given"])
@pytest.mark.parametrize("latent", ["grid", "torus"])
def test_other_starts_and_spaces(init, latent):
    start = PLACES if init == "given" else init
    model = fitted(GAPPY, init=start, latent=latent, random_state=0)
    assert np.diff(model.history_["objective"]).min() >= -1e-12
    assert model.latent_.domain.contains(model.transform(GAPPY)).all()


# ------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("table", [GAPPY, pl.from_pandas(GAPPY)], ids=["pandas", "polars"])
def test_files_keep_everything(table, tmp_path):
    model = fitted(table, size_factors="auto")
    model.save(tmp_path / "m.prinfold")
    for again in (prinfold.load(tmp_path / "m.prinfold"), pickle.loads(pickle.dumps(model))):
        assert again.columns_ == model.columns_
        assert_allclose(again.transform(table), model.transform(table), rtol=0, atol=0)
        assert again.sample(4, random_state=1).equals(model.sample(4, random_state=1))


def test_files_without_numbers_or_with_wrong_parts(tmp_path):
    model = MixedGTM(**SMALL).fit(TABLE[["town", "ill", "calls"]])
    model.save(tmp_path / "m.prinfold")
    assert_allclose(
        prinfold.load(tmp_path / "m.prinfold").transform(TABLE[["town", "ill", "calls"]]),
        model.transform(TABLE[["town", "ill", "calls"]]),
    )
    kept = model.noise_parameters_
    for name, wrong in (("dispersions", np.array([-1.0])), ("variances", np.ones(3))):
        model.noise_parameters_ = kept | {name: wrong}
        model.save(tmp_path / "m.prinfold")
        with pytest.raises(CorruptModelFileError, match=f"{name} of the noise"):
            prinfold.load(tmp_path / "m.prinfold")
    model.noise_parameters_ = kept
    columns = model.columns_.columns
    for wrong in (columns[:2], (*columns[:2], replace(columns[2], kind="gamma")), (*columns[:2], columns[0])):
        model.columns_ = replace(model.columns_, columns=wrong)
        model.save(tmp_path / "m.prinfold")
        with pytest.raises(CorruptModelFileError, match="columns"):
            prinfold.load(tmp_path / "m.prinfold")


def test_a_file_whose_counts_to_expect_are_wrong(tmp_path):
    model = fitted(TABLE, size_factors="auto")
    model.noise_parameters_ = model.noise_parameters_ | {"reference": np.ones(2)}
    model.save(tmp_path / "m.prinfold")
    with pytest.raises(CorruptModelFileError, match="reference of the noise"):
        prinfold.load(tmp_path / "m.prinfold")


# ---------------------------------------------------------------------------------------------- real counts


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_cells_are_in_order_by_their_counts():
    path = find("paul15_tradeseq.npz", None)
    if path is None:
        pytest.skip("real data: PRINFOLD_DATA names no folder with paul15_tradeseq.npz")
    data = np.load(path)
    cells = np.random.default_rng(0).choice(len(data["counts"]), 500, replace=False)
    counts = data["counts"][cells].astype(int)
    counts = counts[:, np.argsort(counts.var(axis=0))[-40:]]
    model = MixedGTM(1, nodes=20, basis=6, columns="negative_binomial", size_factors="auto", max_iter=30).fit(counts)
    time, weight = data["slingshot_pseudotime"][cells], data["slingshot_weight"][cells]
    place = model.transform(counts)[:, 0]
    # One branch against the other: a curve through both begins in the middle.
    ends = [np.median(place[(weight[:, i] > 0.9) & (weight[:, 1 - i] < 0.1)]) for i in range(2)]
    sign = np.sign(ends[0] - ends[1])
    signed = np.where(weight[:, 0] > weight[:, 1], time[:, 0], -time[:, 1])
    assert sign * spearmanr(place, signed)[0] > 0.8


@pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")
def test_a_column_of_nothing_in_new_rows_is_missing_whatever_its_type():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.standard_normal(60), "c": rng.poisson(3, 60), "s": rng.choice(["x", "y", "z"], 60)})
    model = MixedGTM(1, nodes=8, basis=3, max_iter=10, tol=0.0).fit(frame)
    wanted = model.transform(pd.DataFrame({"a": [np.nan, 0.1], "c": [2, 2], "s": ["x", "x"]}))[:1]
    for one in (pd.DataFrame({"a": [None], "c": [2], "s": ["x"]}), pl.DataFrame({"a": [None], "c": [2], "s": ["x"]})):
        np.testing.assert_allclose(model.transform(one), wanted, atol=1e-10)
    unsaid = pd.DataFrame({"a": [0.1], "c": [2], "s": [np.nan]})
    assert np.isfinite(model.transform(unsaid)).all()


def test_the_spread_of_counts_grows_with_their_size_factor():
    """Σ_k r_k (μ_k s) within nodes and s² times the variance of the μ_k between them."""
    rng = np.random.default_rng(2)
    u, depth = rng.uniform(-1, 1, 200), rng.choice([1.0, 6.0], 200)
    counts = rng.poisson(depth[:, None] * np.exp(np.stack([1 + u, 1 - u, u, -u], axis=1)))
    table = np.column_stack([counts, depth]).astype(float)
    model = MixedGTM(1, nodes=8, basis=3, columns=dict.fromkeys(range(4), "poisson"), size_factors=4).fit(table)
    holed = table.copy()
    holed[:, 0] = np.nan
    found, spread = model.impute(holed, return_std=True)
    share, rate = model.responsibilities(holed), model.inverse_transform(model.latent_.nodes)[:, 0]
    mean = share @ rate
    between = share @ rate**2 - mean**2
    factor = found[:, 0] / mean
    assert_allclose(factor / factor[0], depth / depth[0], rtol=1e-9)
    assert_allclose(spread[:, 0] ** 2, factor * mean + factor**2 * between, rtol=1e-6)


def test_indicators_are_rows_in_the_terms_of_the_surface() -> None:
    frame = pd.DataFrame(
        {"x": [0.5, np.nan, 2.0, 1.0], "kind": ["b", "a", None, "c"], "yes": [True, False, True, True]}
    )
    model = MixedGTM(1, nodes=4, basis=2, columns={"kind": "categorical"}, max_iter=2, tol=0).fit(frame)
    found = model.indicators(frame)
    assert model.value_names().tolist() == ["x", "kind=a", "kind=b", "kind=c", "yes=True"]
    nan = np.nan
    wanted = [[0.5, 0, 1, 0, 1], [nan, 1, 0, 0, 0], [2, nan, nan, nan, 1], [1, 0, 0, 1, 1]]
    np.testing.assert_array_equal(found, wanted)


def test_what_the_noise_takes_from_the_rows_is_kept_where_nodes_are_doubled():
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(0, 4, 150))
    waves = np.column_stack([np.cos(t), np.sin(t)]) + 0.005 * rng.standard_normal((150, 2))
    table = pd.DataFrame(waves, columns=["a", "b"]).assign(n=rng.poisson(np.exp(t / 2)), m=rng.poisson(5.0, 150))
    model = MixedGTM(1, columns={"n": "poisson", "m": "poisson"}, size_factors="auto", random_state=0).fit(table)
    assert model.latent_.n_nodes > MixedGTM(1, max_iter=0, tol=0, random_state=0).fit(table).latent_.n_nodes
    assert_allclose(model.noise_parameters_["reference"][2:], table[["n", "m"]].mean())
    assert (model._noise.prior[2:] > 0).all()
