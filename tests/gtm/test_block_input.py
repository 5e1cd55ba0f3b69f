"""Fits to tables that are read block by block: the same as fits to the whole, and refusals in words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import kstest

from prinfold import (
    GTM,
    KMM,
    PPS,
    UKR,
    Blocks,
    GaussianProcess,
    LowRankNoise,
    SemiLinearGTM,
    choose,
)
from prinfold.exceptions import (
    DegenerateWarning,
    FoldWarning,
    InvalidDataError,
    InvalidParameterError,
    MultimodalWarning,
    UnsupportedInputError,
)
from prinfold.gtm import fitting as training
from prinfold.rows import streams
from prinfold.rows.rows import as_rows

quiet = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")


def sheet(n=300, seed=0, noise=0.05):
    rng = np.random.default_rng(seed)
    u, v = rng.uniform(-1, 1, (2, n))
    return np.stack([2 * u, v, np.sin(2 * u), u * v], axis=1) + noise * rng.standard_normal((n, 4))


X = sheet()
QUICK = {"nodes": 7, "basis": 3, "max_iter": 8, "tol": 0.0, "random_state": 0}


def assert_same_fit(found, expected, rtol=1e-6):
    scale = np.abs(expected.weights_).max()
    assert_allclose(found.weights_, expected.weights_, rtol=rtol, atol=rtol * scale)
    assert_allclose(found.noise_variance_, expected.noise_variance_, rtol=rtol)
    assert_allclose(found.offset_, expected.offset_, rtol=rtol, atol=1e-10)
    assert_allclose(found.history_["objective"], expected.history_["objective"], rtol=rtol, atol=rtol)
    assert_allclose(found.node_mass_, expected.node_mass_, rtol=rtol, atol=rtol * expected.node_mass_.max())
    assert found.n_iter_ == expected.n_iter_
    assert found.latent_.n_nodes == expected.latent_.n_nodes


SETTINGS = {
    "isotropic": GTM(**QUICK),
    "sizes from the rows": GTM(max_iter=2, tol=0.0),
    "diagonal": GTM(noise="diagonal", **QUICK),
    "student": GTM(noise="student", **QUICK),
    "aligned": GTM(noise="aligned", **QUICK),
    "varying": GTM(noise="varying", **QUICK),
    "low rank": GTM(1, noise=LowRankNoise(1), **QUICK),
    "random start": GTM(init="random", **QUICK),
    "isomap start": GTM(init="isomap", **QUICK),
    "evidence": GTM(prior_precision="evidence", **QUICK),
    "process": GTM(**(QUICK | {"basis": GaussianProcess()})),
    "circle": GTM(latent="circle", init="pca", **QUICK),  # of rows in memory a second start may be tried
    "PPS": PPS(clamping=0.5, **QUICK),
    "PPS, learned": PPS(clamping="learn", **QUICK),
}


@quiet
@pytest.mark.parametrize("name", SETTINGS)
def test_a_fit_to_blocks_is_a_fit_to_the_rows(name):
    model = SETTINGS[name]
    expected = type(model)(**model.get_params(deep=False)).fit(X)
    found = model.fit(Blocks(X, rows=70))
    assert_same_fit(found, expected)
    assert_allclose(found.transform(X), expected.transform(X), atol=1e-5)


@quiet
@pytest.mark.parametrize("noise", ["isotropic", "diagonal", "student"])
def test_gaps_and_weights(noise):
    rng = np.random.default_rng(0)
    gappy = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    gappy[11] = np.nan
    w = rng.integers(0, 3, len(X)).astype(float)
    expected = GTM(noise=noise, **QUICK).fit(gappy, sample_weight=w)
    found = GTM(noise=noise, **QUICK).fit(Blocks(np.c_[gappy, w], weight=4, rows=64))
    assert_same_fit(found, expected)


def test_the_semi_linear_model_too():
    blocks = Blocks(frame := pd.DataFrame(X, columns=list("abcd")), rows=64)
    recipe = GTM(1, **QUICK)
    found, expected = SemiLinearGTM(recipe).fit(blocks), SemiLinearGTM(recipe).fit(frame)
    assert_same_fit(found.gtm_, expected.gtm_)
    assert_array_equal(found.feature_names_in_, expected.feature_names_in_)
    assert_allclose(found.transform(frame), expected.transform(frame), atol=1e-5)
    assert found.score(blocks) == pytest.approx(found.score(frame), rel=1e-12)
    with pytest.raises(InvalidDataError, match="column 0 is 'd', but was 'a'"):
        found.score(Blocks(frame, list("dcba")))
    with pytest.raises(UnsupportedInputError, match="call it for each block"):
        found.fit_transform(blocks)


def test_rows_of_nothing_are_told_of():
    gappy = X.copy()
    gappy[[30, 211]] = np.nan
    with pytest.warns(DegenerateWarning, match=r"2 row\(s\) have no value in any column, the first being row 30"):
        GTM(**QUICK).fit(Blocks(gappy, rows=100))


@pytest.mark.parametrize("rows", [1, 299, 300])
def test_any_size_of_block_will_do(rows):
    few = GTM(nodes=5, basis=3, max_iter=2, tol=0.0)
    assert_same_fit(few.fit(Blocks(X, rows=rows)), GTM(**few.get_params()).fit(X))


def test_one_column_and_one_dimension():
    line = np.random.default_rng(0).standard_normal((60, 1))
    settings = {"nodes": 6, "basis": 3, "max_iter": 4, "tol": 0.0}
    assert_same_fit(GTM(1, **settings).fit(Blocks(line, rows=16)), GTM(1, **settings).fit(line))


def test_single_precision_stays():
    single = X.astype(np.float32)
    found = GTM(**QUICK).fit(Blocks(single, rows=64))
    assert_same_fit(found, GTM(**QUICK).fit(single), rtol=1e-3)


@quiet
def test_rows_that_are_all_the_same_and_columns_that_do_not_vary():
    with pytest.warns(DegenerateWarning, match="All rows are equal"):
        GTM(**QUICK).fit(Blocks(np.ones((40, 3)), rows=16))
    flat = np.c_[X, np.full(len(X), 5.0)]
    assert_same_fit(GTM(**QUICK).fit(Blocks(flat, rows=64)), GTM(**QUICK).fit(flat))


def test_files_give_the_names_of_their_columns(tmp_path):
    columns = {name: X[:, j] for j, name in enumerate("abcd")} | {"w": np.ones(len(X)), "text": ["x"] * len(X)}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet", row_group_size=64)
    blocks = Blocks(tmp_path / "x.parquet", columns=list("abcd"), weight="w", rows=100)
    model = GTM(**QUICK).fit(blocks)
    assert_array_equal(model.feature_names_in_, list("abcd"))
    assert model.n_features_in_ == 4
    assert_same_fit(model, GTM(**QUICK).fit(X))
    assert model.score(blocks) == pytest.approx(model.score(pd.DataFrame(X, columns=list("abcd"))))
    again = GTM(**QUICK).fit(Blocks(X))
    assert not hasattr(again, "feature_names_in_")


@quiet
def test_a_fit_to_more_rows_than_a_sample_comes_to_rest_where_all_rows_do(monkeypatch):
    monkeypatch.setattr(streams, "_SAMPLE_ROWS", 200)
    monkeypatch.setattr(streams, "_FEWEST_IN_SAMPLE", 100)
    many = sheet(1000)
    settings = {"nodes": 8, "basis": 3, "max_iter": 300, "tol": 1e-6, "random_state": 0}
    found = GTM(**settings).fit(Blocks(many, rows=300))
    assert_allclose(found.offset_, many.mean(axis=0), atol=1e-12)
    assert (np.diff(found.history_["objective"]) > -1e-9).all()
    rows, model = as_rows(many, found.offset_, width=64), found._model
    at_rest = model.begin(rows, found._parameters())
    after = model.measure(model.step(rows, at_rest))["objective"]
    assert abs(after - model.measure(at_rest)["objective"]) < 1e-6
    assert_same_fit(GTM(**settings).fit(Blocks(many, rows=77)), found)  # the same sample, however it is cut


def test_the_seed_that_made_the_rows_may_be_that_of_the_model(monkeypatch):
    monkeypatch.setattr(streams, "_SAMPLE_ROWS", 500)
    monkeypatch.setattr(streams, "_FEWEST_IN_SAMPLE", 100)
    rows = np.random.default_rng(3).random((5000, 1))
    seen = []
    monkeypatch.setattr(training, "stream_of", lambda *args: seen.append(streams.stream_of(*args)) or seen[-1])
    GTM(1, nodes=5, basis=2, max_iter=1, tol=0.0, random_state=3).fit(Blocks(rows))
    assert seen[0].n_rows == 500
    assert kstest(seen[0].table[:, 0], "uniform").pvalue > 1e-3


def test_no_more_than_a_block_is_asked_for_at_a_time():
    alive = []

    class Watched(np.ndarray):
        def __del__(self):
            alive.remove(id(self))

    def make():
        for part in np.split(X, 10):
            block = part.copy().view(Watched)
            alive.append(id(block))
            assert len(alive) <= 3
            yield block

    GTM(**QUICK).fit(Blocks(make, rows=30))


def test_a_pass_for_each_iteration():
    passes = []

    def make():
        passes.append(1)
        return iter(np.split(X, 5))

    model = GTM(**QUICK, relaxation=1.0).fit(Blocks(make, rows=60))
    assert len(passes) == 1 + 1 + model.n_iter_  # a survey, the start, and one for each iteration


def test_folds_and_posteriors_with_several_modes_are_told_of():
    with pytest.warns(FoldWarning), pytest.warns(MultimodalWarning):
        GTM(nodes=10, basis=6, init="random", random_state=1, max_iter=30, tol=0.0, regularization=1e-6).fit(
            Blocks(sheet(noise=0.01), rows=64)
        )


# --------------------------------------------------------------------------------------------------- score


@quiet
def test_a_score_is_the_mean_over_all_blocks():
    model = GTM(**QUICK).fit(X)
    assert model.score(Blocks(X, rows=64)) == pytest.approx(model.score(X), rel=1e-12)
    gappy = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    assert model.score(Blocks(gappy, rows=64)) == pytest.approx(model.score(gappy), rel=1e-12)
    w = np.random.default_rng(1).integers(0, 4, len(X))
    weighted = Blocks(np.c_[X, w], weight=4, rows=64)
    assert model.score(weighted) == pytest.approx(model.score(np.repeat(X, w, axis=0)), rel=1e-12)


@pytest.mark.parametrize(
    ("source", "options", "error", "words"),
    [
        (X[:, :3], {}, InvalidDataError, "blocks have 3 features, but GTM is expecting 4"),
        (np.where(X[8, 2] == X, np.inf, X), {"rows": 5}, InvalidDataError, r"infinity.* row\(s\) 8 and column\(s\) 2"),
        (np.c_[X, np.zeros(len(X))], {"weight": 4}, InvalidDataError, "none of which has a weight"),
        ([X[:0]], {}, InvalidDataError, r"0 row\(s\)"),
    ],
)
def test_scores_of_other_rows_are_refused(source, options, error, words):
    model = GTM(**QUICK).fit(X)
    with pytest.raises(error, match=words):
        model.score(Blocks(source, **options))


def test_scores_of_other_columns_are_refused():
    model = GTM(**QUICK).fit(pd.DataFrame(X, columns=list("abcd")))
    with pytest.raises(InvalidDataError, match=r"The feature names should match.* column 3 is 'e', but was 'd'"):
        model.score(Blocks(pl.DataFrame(X, schema=list("abce"))))


def test_blocks_of_a_file_know_the_names_of_their_columns():
    frame = pd.DataFrame(X, columns=list("abcd"))
    blocks = Blocks(frame, rows=70)
    model = GTM(**QUICK).fit(blocks)
    found = [model.transform(block) for block in blocks]  # no warning that names are missing
    assert_allclose(np.concatenate(found), model.transform(frame), atol=1e-12)
    first = next(iter(blocks))
    assert_array_equal(GTM(**QUICK).fit(first).feature_names_in_, list("abcd"))
    with pytest.raises(InvalidDataError, match="column 0 is 'd', but was 'a'"):
        model.transform(next(iter(Blocks(frame, list("dcba")))))
    with pytest.raises(InvalidDataError, match="column 3 is missing, but was 'd'"):
        model.transform(next(iter(Blocks(frame, list("abc")))))
    with pytest.raises(InvalidDataError, match="X has 2 features, but GTM is expecting 4"):
        GTM(**QUICK).fit(X).transform(next(iter(Blocks(frame, ["a", "b"]))))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.transform(first[:, ::-1])  # other columns, as far as anyone can tell


# ------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    "verb", ["transform", "score_samples", "responsibilities", "posterior_mode", "project", "impute", "log_evidence"]
)
def test_verbs_of_each_row_are_called_for_each_block(verb):
    model = GTM(**QUICK).fit(X)
    with pytest.raises(UnsupportedInputError, match="call it for each block"):
        getattr(model, verb)(Blocks(X))
    found = [getattr(model, verb)(block) for block in Blocks(X, rows=70)]
    if verb != "log_evidence":
        assert_allclose(np.concatenate(found), getattr(model, verb)(X), atol=1e-10)


def test_fit_transform_is_refused_before_the_fit():
    model = GTM(**QUICK)
    with pytest.raises(UnsupportedInputError, match="call it for each block"):
        model.fit_transform(Blocks(X))
    assert not hasattr(model, "latent_")


@pytest.mark.parametrize(
    "fit",
    [
        lambda blocks: UKR().fit(blocks),
        lambda blocks: KMM().fit(blocks),
        lambda blocks: PPS(clamping="select").fit(blocks),
        lambda blocks: choose(blocks, {"width": [1.0, 2.0]}),
    ],
)
def test_those_who_need_all_rows_say_so(fit):
    with pytest.raises(UnsupportedInputError, match=r"call it for each block.* or join the blocks"):
        fit(Blocks(X))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"sample_weight": np.ones(len(X))}, UnsupportedInputError, r"Blocks\(source, weight=...\)"),
        ({"errors": np.ones(len(X))}, UnsupportedInputError, "errors do not go with Blocks"),
    ],
)
def test_what_belongs_to_rows_does_not_go_with_blocks(options, error, words):
    with pytest.raises(error, match=words):
        GTM(**QUICK).fit(Blocks(X), **options)
    with pytest.raises(UnsupportedInputError, match="errors do not go with Blocks"):
        GTM(**QUICK).fit(X).score(Blocks(X), errors=np.ones(len(X)))


def test_blocks_are_handed_to_partial_fit_one_by_one():
    with pytest.raises(UnsupportedInputError, match="for each block"):
        GTM(**QUICK).partial_fit(Blocks(X))


def test_places_do_not_go_with_blocks():
    with pytest.raises(InvalidParameterError, match="init holds a place for each row, which does not go with Blocks"):
        GTM(init=np.zeros((len(X), 2))).fit(Blocks(X))


def test_a_fit_that_fails_leaves_nothing():
    model = GTM(**QUICK).fit(X)
    calls = []

    def make():
        calls.append(1)
        return iter([X if len(calls) < 4 else X[:-1]])

    with pytest.raises(InvalidDataError, match="300 rows at first and 299 now"):
        model.fit(Blocks(make))
    assert not hasattr(model, "latent_")
