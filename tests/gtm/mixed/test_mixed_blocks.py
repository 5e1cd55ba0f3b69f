"""Tables of mixed columns read block by block, and where Dask has them: the fit to the whole table, kinds included."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from prinfold import Blocks, MixedGTM
from prinfold.exceptions import InvalidDataError, InvalidParameterError, UnsupportedInputError
from prinfold.gtm.mixed.column_kinds import choose_columns, choose_kinds, read_columns
from prinfold.gtm.mixed.column_summaries import RawColumn, summarize
from prinfold.rows.tree_sums import tree_sum

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")

N = 400
QUICK = {"n_components": 1, "nodes": 10, "basis": 4, "max_iter": 6, "tol": 0.0, "random_state": 0}


def table(seed=0, n=N):
    """Numbers with gaps, counts of two kinds, two levels, three levels with gaps, and truth values along a line."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(-1, 1, n)
    frame = pd.DataFrame(
        {
            "length": 5 + t + 0.1 * rng.normal(size=n),
            "eggs": rng.poisson(np.exp(1 + t)),
            "scattered": rng.negative_binomial(1, 0.1, n),
            "sex": np.where(rng.random(n) < (t + 1) / 2, "f", "m"),
            "site": np.array(list("xyz"))[np.clip((1.5 * (t + 1)).astype(int), 0, 2)],
            "seen": t > 0.2,
        }
    )
    frame.loc[::17, "length"] = np.nan
    frame.loc[5:9, "site"] = None
    return frame


FRAME = table()


def assert_same_fit(found, expected):
    assert repr(found.columns_) == repr(expected.columns_)
    assert_allclose(found.weights_, expected.weights_, atol=1e-9 * np.abs(expected.weights_).max())
    assert_allclose(found.history_["objective"], expected.history_["objective"], rtol=1e-9)
    assert_allclose(found.offset_, expected.offset_, rtol=1e-12)
    assert_array_equal(found.offset_ == 0, expected.offset_ == 0)


@pytest.mark.parametrize("rows", [60, 399, 1000])
@pytest.mark.parametrize("settings", [{}, {"dispersion": "shared"}, {"size_factors": "auto"}], ids=str)
def test_a_fit_to_blocks_is_that_to_the_whole_table(rows, settings):
    found = MixedGTM(**QUICK, **settings).fit(Blocks(FRAME, rows=rows))
    assert_same_fit(found, MixedGTM(**QUICK, **settings).fit(FRAME))
    assert list(found.feature_names_in_) == list(FRAME.columns)
    assert found.score(Blocks(FRAME, rows=77)) == pytest.approx(found.score(FRAME), rel=1e-12)
    assert_array_equal(found.impute(FRAME)["site"].notna(), True)


def test_weights_are_a_column_and_rows_without_any_are_not_looked_at():
    weight = np.random.default_rng(1).integers(0, 3, N).astype(float)
    frame = FRAME.copy()
    frame.loc[weight == 0, "site"] = "nowhere"
    found = MixedGTM(**QUICK).fit(Blocks(frame.assign(w=weight), rows=90, weight="w"))
    assert_same_fit(found, MixedGTM(**QUICK).fit(frame, sample_weight=weight))
    assert found.columns_["site"].levels == ("x", "y", "z")


@pytest.mark.parametrize("make", [pa.table, lambda frame: [frame[:100], frame[100:]]], ids=["Arrow", "list"])
def test_other_sources(make):
    source = make(FRAME)
    expected = MixedGTM(**QUICK).fit(FRAME)
    found = MixedGTM(**QUICK).fit(Blocks(source, rows=150))
    assert_allclose(found.weights_, expected.weights_, atol=1e-9)
    assert [each.levels for each in found.columns_] == [each.levels for each in expected.columns_]


def test_some_columns_of_arrays():
    X = FRAME[["length", "eggs", "scattered"]].to_numpy()
    settings = QUICK | {"columns": {1: "poisson"}}
    found = MixedGTM(**settings).fit(Blocks(X, rows=90))
    assert_same_fit(found, MixedGTM(**settings).fit(X))
    fewer = MixedGTM(**settings).fit(Blocks(X, rows=90, columns=[0, 1]))
    assert_same_fit(fewer, MixedGTM(**settings).fit(X[:, :2]))


@pytest.mark.parametrize("cuts", [[7], [100, 101, 350], list(range(10, N, 10))])
def test_kinds_of_blocks_are_those_of_the_whole(cuts):
    blocks = [list(read_columns(FRAME[a:b])) for a, b in pairwise([0, *cuts, N])]
    summaries = [tree_sum(map(summarize, parts)) for parts in zip(*blocks, strict=True)]
    assert repr(choose_kinds(summaries, "auto")) == repr(choose_columns(list(read_columns(FRAME)), "auto"))


def test_what_only_all_blocks_know_is_known():
    def kind(*blocks, what="integer", most=np.inf):
        each = [summarize(RawColumn("c", np.array(block), what), most=most) for block in blocks]
        return choose_kinds([tree_sum(each)], "auto")[0].kind

    assert kind([1.0, 1.0], [2.0]) == "bernoulli"
    assert kind([0.0, 0.0], [1.0], [2.0]) == "poisson"
    assert kind([0.0, 1.0], [3.5], what="float") == "gaussian"
    for most in (np.inf, 5):
        with pytest.raises(InvalidDataError, match="the numbers 0 to 29, each once"):
            kind(np.arange(15.0), np.arange(29.0, 14.0, -1), most=most)
        assert kind(np.arange(15.0), [*np.arange(15.0, 28.0), 28.0, 28.0], most=most) != "bernoulli"
    names = [RawColumn("c", np.array([f"row {i}" for i in part], object), "text") for part in (range(9), range(9, 18))]
    with pytest.raises(InvalidDataError, match="more than 12 different values in 18 rows"):
        choose_kinds([tree_sum(summarize(each, most=12) for each in names)], "auto")
    with pytest.raises(InvalidDataError, match="too many for levels"):
        choose_kinds([tree_sum(summarize(each, most=12) for each in names)], "categorical")


@pytest.mark.parametrize("rows", [1, 30, 1000])
def test_infinity_is_named_by_its_row_in_all_blocks(rows):
    frame = FRAME.assign(length=FRAME["length"].where(~np.isin(np.arange(N), [70, 71, 390]), -np.inf))
    frame["weight"] = np.where(np.arange(N) % 10 == 0, 0.0, 1.0)  # rows without weight are not looked at
    words = r"column 'length' contains infinity \(inf\) in row"
    with pytest.raises(InvalidDataError, match=f"{words} 70;"):
        MixedGTM(**QUICK).fit(Blocks(FRAME.assign(length=frame["length"]), rows=rows))
    with pytest.raises(InvalidDataError, match=f"{words} 71;"):
        MixedGTM(**QUICK).fit(Blocks(frame, rows=rows, weight="weight"))
    with pytest.raises(InvalidDataError, match=f"{words} 71;"):
        MixedGTM(**QUICK).fit(frame.drop(columns="weight"), sample_weight=frame["weight"])


def test_blocks_without_a_value_say_nothing_of_types():
    text, nothing = (RawColumn("c", np.array(v, object), "text") for v in (["a", "b", "c", "a"], [None, None]))
    gone = RawColumn("c", np.array([np.nan]), "float")
    for order in ([text, nothing, gone], [gone, nothing, text]):
        assert choose_kinds([tree_sum(map(summarize, order))], "auto")[0].levels == ("a", "b", "c")


@pytest.mark.parametrize(
    ("source", "error", "words"),
    [
        ([np.ones((5, 2)), np.array([["a", 1]], dtype=object)], InvalidDataError, "is float in one block.*and text"),
        (FRAME.assign(eggs=FRAME["eggs"].where(np.arange(N) != 333, -1)), InvalidDataError, "-1 in row 33 of a block"),
        ([np.zeros((0, 3))], InvalidDataError, "the source has no rows"),
        (FRAME.assign(length=np.nan), InvalidDataError, "'length' holds no value"),
    ],
)
def test_what_cannot_be_is_refused(source, error, words):
    with pytest.raises(error, match=words):
        MixedGTM(columns={1: "poisson"}, **QUICK).fit(Blocks(source, rows=100))


def test_what_belongs_to_rows_is_refused():
    with pytest.raises(UnsupportedInputError, match=r"Blocks\(source, weight=...\)"):
        MixedGTM(**QUICK).fit(Blocks(FRAME), sample_weight=np.ones(N))
    with pytest.raises(InvalidParameterError, match="there is no column 'width'"):
        MixedGTM(columns={"width": "gaussian"}).fit(Blocks(FRAME))
    model = MixedGTM(**QUICK).fit(FRAME)
    with pytest.raises(InvalidDataError, match="level 'nowhere' in row 3 of a block"):
        model.score(Blocks(FRAME.assign(site=np.where(np.arange(N) == 203, "nowhere", "x")), rows=200))


@pytest.mark.full
def test_dask_has_the_numbers_of_blocks():
    frames = pytest.importorskip("dask.dataframe", reason="needs the extra dask")
    lazy = frames.from_pandas(FRAME, npartitions=4)
    parts = [part.compute() for part in lazy.to_delayed()]
    model = MixedGTM(**QUICK).fit(lazy)
    of_blocks = MixedGTM(**QUICK).fit(Blocks(parts, rows=N // 4))
    assert_array_equal(model.weights_, of_blocks.weights_)
    assert repr(model.columns_) == repr(of_blocks.columns_)
    for verb in ("transform", "score_samples"):
        expected = np.concatenate([getattr(model, verb)(part) for part in parts])
        assert_array_equal(getattr(model, verb)(lazy).compute(), expected)
    filled = model.impute(lazy).compute()
    pd.testing.assert_frame_equal(filled, pd.concat([model.impute(part) for part in parts]))
    assert model.score(lazy) == pytest.approx(model.score(FRAME), rel=1e-12)
