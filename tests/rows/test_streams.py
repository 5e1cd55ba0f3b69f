"""Rows that come in blocks: what a first pass finds of them, and sums that are those of all rows at once."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import kstest

from prinfold import GTM, PPS, Blocks, LowRankNoise
from prinfold.exceptions import InvalidDataError
from prinfold.gtm import model as gtm
from prinfold.gtm import node_selection as pruning
from prinfold.gtm.node_selection import Hint
from prinfold.rows import streams
from prinfold.rows.column_selection import Numbers
from prinfold.rows.rows import Rows, as_rows
from prinfold.rows.streams import StreamMoments, StreamSample, moments_of, stream_of, survey

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")


def sheet(n=400, D=5, seed=0, noise=0.05):
    rng = np.random.default_rng(seed)
    u, v = rng.uniform(-1, 1, (2, n))
    curved = np.stack([2 * u, v, np.sin(2 * u), u * v], axis=1)
    X = curved @ np.linalg.qr(rng.normal(size=(max(D, 4), 4)))[0][:D].T
    return X + noise * rng.standard_normal(X.shape)


def surveyed(source, seed=0, accept_missing=True, min_rows=2, **options):
    blocks = source if isinstance(source, Blocks) else Blocks(source, **options)
    return survey(blocks, lambda: np.random.default_rng(seed), accept_missing=accept_missing, min_rows=min_rows)


# ------------------------------------------------------------------------------------------------ moments


@given(st.lists(st.integers(1, 6), min_size=1, max_size=8), st.booleans(), st.booleans(), st.sampled_from([0, 1e6]))
@settings(max_examples=40, deadline=None)
def test_moments_of_blocks_add_up_to_those_of_all_rows(lengths, weighted, gaps, far):
    rng = np.random.default_rng(sum(lengths))
    edges = np.cumsum([0, *lengths])
    X = far + rng.standard_normal((edges[-1], 3))
    X[rng.random(X.shape) < (0.3 if gaps else 0.0)] = np.nan
    w = rng.uniform(0.1, 2, len(X)) if weighted else np.ones(len(X))
    parts = [moments_of(X[a:b], w[a:b] if weighted else None) for a, b in pairwise(edges)]
    found = sum(parts[1:], parts[0])
    for d in range(3):
        seen = ~np.isnan(X[:, d])
        assert found.weight[d] == pytest.approx(w[seen].sum(), abs=1e-12)
        if seen.any():
            mean = np.average(X[seen, d] - far, weights=w[seen]) + far
            assert found.mean[d] == pytest.approx(mean, rel=1e-14, abs=1e-13)
            assert found.variance[d] == pytest.approx(
                np.average(np.square(X[seen, d] - mean), weights=w[seen]), rel=1e-8, abs=1e-10
            )


def test_moments_of_nothing_have_no_weight():
    nothing = moments_of(np.full((3, 2), np.nan), None)
    assert_array_equal(nothing.weight, 0)
    assert_array_equal(nothing.variance, 0)
    some = StreamMoments(np.ones(2), np.full(2, 7.0), np.zeros(2))
    assert_array_equal((nothing + some).mean, 7.0)
    assert_array_equal((some + nothing).mean, 7.0)


# ------------------------------------------------------------------------------------------------- sample


@pytest.fixture
def small_samples(monkeypatch):
    monkeypatch.setattr(streams, "_SAMPLE_ROWS", 50)
    monkeypatch.setattr(streams, "_FEWEST_IN_SAMPLE", 20)


def sampled(X, cuts, seed=0, weight=None):
    sample = StreamSample(lambda: np.random.default_rng(seed))
    for part in np.split(np.arange(len(X)), cuts):
        if len(part):
            sample.add(Numbers(X[part], None if weight is None else weight[part]))
    return sample


def test_few_rows_are_all_kept_in_order_and_nothing_is_drawn(small_samples):
    X = np.arange(50.0)[:, None]

    def never():
        raise AssertionError

    sample = StreamSample(never)
    sample.add(Numbers(X[:20], None))
    sample.add(Numbers(X[20:], None))
    assert_array_equal(sample.rows().table, X)


@given(st.lists(st.integers(1, 199), max_size=6, unique=True).map(sorted), st.integers(0, 5))
@settings(max_examples=30, deadline=None)
def test_a_sample_depends_on_the_seed_and_not_on_the_cut(cuts, seed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "_SAMPLE_ROWS", 50)
        patch.setattr(streams, "_FEWEST_IN_SAMPLE", 20)
        X, w = np.arange(200.0)[:, None], np.arange(200.0) + 1
        found = sampled(X, cuts, seed, w).rows()
        assert_array_equal(found.table, sampled(X, [], seed, w).rows().table)
        assert len(found.table) == 50
        assert (np.diff(found.table[:, 0]) > 0).all()
        assert_array_equal(found.weight, found.table[:, 0] + 1)


def test_every_row_is_as_likely_as_another(small_samples):
    X = np.arange(500.0)[:, None]
    drawn = np.concatenate([sampled(X, [3, 60, 333], seed).rows().table[:, 0] for seed in range(40)])
    assert kstest(drawn / 500, "uniform").pvalue > 1e-3


def test_wide_rows_are_fewer(monkeypatch):
    monkeypatch.setattr(streams, "_SAMPLE_BYTES", 8 * 100 * 30)
    monkeypatch.setattr(streams, "_FEWEST_IN_SAMPLE", 20)
    assert len(sampled(np.zeros((200, 100)), [100]).rows().table) == 30
    assert len(sampled(np.zeros((200, 900)), [100]).rows().table) == 20


# ------------------------------------------------------------------------------------------------- survey


def test_a_first_pass_finds_what_there_is():
    X = sheet()
    X[3, 1] = np.nan
    w = np.random.default_rng(1).integers(0, 3, len(X)).astype(float)
    found = surveyed(np.c_[X, w], rows=33, weight=5)
    assert (found.found.n_read, found.n_rows, found.found.total) == (len(X), int((w > 0).sum()), w.sum())
    assert found.found.gaps
    stream = stream_of(found, 10)
    assert_array_equal(stream.table, X[w > 0])
    assert_allclose(stream.offset, np.average(np.nan_to_num(X), axis=0, weights=w), atol=0.1)
    assert_array_equal(stream.weight, w[w > 0])
    plain = stream.sample
    assert type(plain) is Rows
    assert all(getattr(plain, each.name) is getattr(stream, each.name) for each in fields(Rows))


def test_a_sample_weighs_as_much_as_all_rows(small_samples):
    X = sheet(300)
    stream = stream_of(surveyed(X, rows=40), 10)
    assert stream.n_rows == 50
    assert stream.total_weight == pytest.approx(300)
    assert_allclose(stream.offset, X.mean(axis=0), rtol=1e-12)  # of all rows, not of the sample
    assert_allclose(stream.variances, X.var(axis=0), rtol=1e-12)


def test_rows_of_nothing_do_not_count():
    X = sheet(40)
    X[[5, 25]] = np.nan
    found = surveyed(X, rows=10)
    assert found.found.unseen == (2, 5)
    assert found.n_rows == 38
    assert sum(each.n_rows for each in stream_of(found, 10).portions()) == 38


def test_a_block_of_nothing_is_no_portion():
    X = sheet(30)
    X[10:20] = np.nan
    assert [each.n_rows for each in stream_of(surveyed(X, rows=10), 10).portions()] == [10, 10]


@pytest.mark.parametrize(
    ("change", "accept", "words"),
    [
        (lambda X: X[:1], True, "the source has 1 row.*at least 2 are needed"),
        (lambda X: X[:0], True, "the source has 0 row"),
        (lambda X: np.where(np.arange(len(X))[:, None] == 17, np.inf, X), True, r"infinity.* row\(s\) 17 and"),
        (lambda X: np.where(np.arange(len(X))[:, None] == 17, np.nan, X), False, r"NaN.* row\(s\) 17 and"),
        (lambda X: np.where(np.arange(X.shape[1]) == 2, np.nan, X), True, r"column\(s\) 2 hold no value"),
        (lambda X: X * 1e200, True, "overflow"),
    ],
)
def test_what_cannot_be_fitted_is_found_at_once(change, accept, words):
    with pytest.raises(InvalidDataError, match=words):
        surveyed(change(sheet(40)), rows=10, accept_missing=accept)


def test_weights_whose_sum_overflows():
    X = np.c_[sheet(10), np.full(10, 1e308)]
    with pytest.raises(InvalidDataError, match="sum of the weights overflows"):
        surveyed(X, rows=3, weight=5)


# --------------------------------------------------------------------------------------------------- sums


NOISES = {
    "isotropic": GTM,
    "diagonal": lambda **kw: GTM(noise="diagonal", **kw),
    "student": lambda **kw: GTM(noise="student", **kw),
    "varying": lambda **kw: GTM(noise="varying", **kw),
    "aligned": lambda **kw: GTM(noise="aligned", **kw),
    "low rank": lambda **kw: GTM(noise=LowRankNoise(1), **kw),
    "oriented": lambda **kw: PPS(clamping=0.5, **kw),
    "oriented, learned": lambda **kw: PPS(clamping="learn", **kw),
}


def assert_same_sums(found, expected, rtol):
    for each in fields(expected):
        there, here = getattr(expected, each.name), getattr(found, each.name)
        if there is None or each.name == "tangents":  # which are no sums
            assert (here is None) == (there is None)
            continue
        assert_allclose(here, there, rtol=rtol, atol=rtol * np.abs(there).max(), err_msg=each.name)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("noise", NOISES)
def test_one_step_over_blocks_is_one_step_over_all_rows(noise, weighted, gaps):
    rng = np.random.default_rng(3)
    X = sheet(150)
    X[rng.random(X.shape) < (0.1 if gaps else 0.0)] = np.nan
    w = rng.uniform(0.5, 2, len(X))
    fitted = NOISES[noise](nodes=6, basis=3, max_iter=3, tol=0).fit(X)
    parameters = fitted._parameters()
    rows = as_rows(X, fitted.offset_, w if weighted else None, width=36, gaps=gaps)
    model = fitted._model_for(rows, fitted._model)
    blocks = Blocks(np.c_[X, w], columns=range(5), weight=5 if weighted else None, rows=37)
    found = stream_of(surveyed(blocks), 36)
    counts = {"n_read": len(X), "n_counted": len(X)}
    stream = streams.BlockStream(
        found.table, fitted.offset_, found.weight, found.block_rows, gaps, blocks=blocks, **counts
    )
    one, many = model.begin(rows, parameters), model.begin(stream, parameters)
    assert_same_sums(many.statistics, one.statistics, 1e-10)
    one, many = model.step(rows, one), model.step(stream, many)
    assert_allclose(many.parameters.weights, one.parameters.weights, rtol=1e-8, atol=1e-9)
    assert many.parameters.level == pytest.approx(one.parameters.level, rel=1e-8)
    assert_same_sums(many.statistics, one.statistics, 1e-7)


def test_single_precision_stays_and_sums_agree():
    X = sheet(300).astype(np.float32)
    fitted = GTM(nodes=6, basis=3, max_iter=3, tol=0).fit(X)
    stream = stream_of(surveyed(X, rows=64), 36)
    assert stream.table.dtype == np.float32
    assert all(each.table.dtype == np.float32 for each in stream.portions())
    parameters, model = fitted._parameters(), fitted._model
    one = gtm.e_step(model, as_rows(X, stream.offset, width=36), parameters, Hint())[0]
    assert_same_sums(gtm.e_step(model, stream, parameters, Hint())[0], one, 1e-5)


@pytest.mark.parametrize("age", [0, 3, 4, 9])
def test_blocks_that_are_planned_lose_next_to_nothing(age, monkeypatch):
    monkeypatch.setattr(pruning, "_PLAN_FROM", 2**10)
    monkeypatch.setattr(pruning, "_SWEEP_FROM", 2**10)
    X = sheet(1200)
    fitted = GTM(nodes=14, basis=5, max_iter=20, tol=0).fit(X)
    stream, parameters = stream_of(surveyed(X, rows=500), 196), fitted._parameters()
    found, hint = gtm.e_step(fitted._model, stream, parameters, Hint(None, age))
    expected = gtm.summarize(fitted._model, as_rows(X, stream.offset, width=196), parameters)
    assert_same_sums(found, expected, 1e-8)
    assert hint == Hint(None, age + 1)  # no rows are remembered


# ---------------------------------------------------------------------------------------- changing sources


def changing(first, later):
    calls = []

    def make():
        calls.append(1)
        return iter([first if len(calls) == 1 else later])

    return make


@pytest.mark.parametrize(
    ("n", "words"), [(29, "30 rows at first and 29 now"), (31, "30 rows at first and more than 30")]
)
def test_a_source_that_changes_is_found_out(n, words):
    stream = stream_of(surveyed(Blocks(changing(sheet(30), sheet(n)), rows=10)), 10)
    with pytest.raises(InvalidDataError, match=words):
        list(stream.portions())


@pytest.mark.parametrize("n_lost", [1, 30])
def test_a_source_that_loses_what_was_measured_is_found_out(n_lost):
    lost = sheet(30)
    lost[:n_lost] = np.nan
    stream = stream_of(surveyed(Blocks(changing(sheet(30), lost), rows=10)), 10)
    with pytest.raises(InvalidDataError, match=f"30 rows with a value and a weight at first and {30 - n_lost} now"):
        list(stream.portions())


def test_a_source_that_grows_without_end_is_found_out():
    def later():
        while True:
            yield sheet(30)

    calls = []
    blocks = Blocks(lambda: later() if calls else iter([sheet(30)]), rows=10)
    stream = stream_of(surveyed(blocks), 10)
    calls.append(1)
    with pytest.raises(InvalidDataError, match="a function must return a fresh iterator over the same rows"):
        list(stream.portions())


def test_an_iterator_behind_a_function_is_found_out():
    once = iter([sheet(30)])
    stream = stream_of(surveyed(Blocks(lambda: once)), 10)
    with pytest.raises(InvalidDataError, match="30 rows at first and 0 now"):
        list(stream.portions())


def test_a_source_whose_columns_change_is_found_out():
    stream = stream_of(surveyed(Blocks(changing(sheet(30), sheet(30)[:, :3]))), 10)
    with pytest.raises(InvalidDataError, match="the first had 5, then a block of 3 came"):
        list(stream.portions())
