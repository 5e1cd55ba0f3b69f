"""partial_fit: one step of EM, streams in any cut, what is remembered, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError

from prinfold import GTM, GaussianProcess, LowRankNoise, Online, load
from prinfold.exceptions import CorruptModelFileError, DegenerateWarning, InvalidDataError, InvalidParameterError
from prinfold.loops import StopReason
from prinfold.rows.rows import as_rows

pytestmark = [  # a few steps unfold nothing yet
    pytest.mark.filterwarnings("ignore::prinfold.exceptions.FoldWarning"),
    pytest.mark.filterwarnings("ignore::prinfold.exceptions.MultimodalWarning"),
]

RNG = np.random.default_rng(0)
_T = RNG.uniform(-1, 1, (1200, 2))
X = np.column_stack([_T, _T[:, 0] ** 2, _T[:, 0] * _T[:, 1]]) + 0.1 * RNG.standard_normal((1200, 4))
WEIGHT = RNG.uniform(0.5, 2.0, len(X))
SMALL = {"nodes": 8, "basis": 4, "random_state": 0}
BEGIN = {**SMALL, "trainer": Online(start=200), "max_iter": 5, "tol": 0.0}
NOISES = ["isotropic", "diagonal", "student", "varying", "aligned", LowRankNoise(1)]


def stream(table=X, size=200, trainer=BEGIN["trainer"], **settings):
    model = GTM(**{**BEGIN, "trainer": trainer, **settings})
    for i in range(0, len(table), size):
        model.partial_fit(table[i : i + size])
    return model


def same(one, other, **tolerances):
    tolerances = {"rtol": 1e-9, "atol": 1e-11} | tolerances
    assert_allclose(one.weights_, other.weights_, **tolerances)
    assert_allclose(one.noise_variance_, other.noise_variance_, **tolerances)


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_a_block_that_counts_for_all_is_one_step_of_em(noise):
    fitted = GTM(noise=noise, max_iter=4, tol=0.0, **SMALL).fit(X[:300])
    rows = as_rows(X[300:500], fitted.offset_, WEIGHT[300:500])
    plain = fitted._model
    expected = plain.step(rows, plain.begin(rows, fitted._parameters())).parameters
    fitted.trainer = Online(200, step=1.0 - 1e-13)  # 1 is refused: a single row would count for all then
    fitted.partial_fit(X[300:500], sample_weight=WEIGHT[300:500])
    assert_allclose(fitted.weights_, expected.weights, rtol=1e-9, atol=1e-11)
    assert_allclose(fitted.noise_variance_, 1 / expected.level, rtol=1e-9)


def test_the_first_rows_are_fitted_and_the_others_follow():
    first = GTM(max_iter=20, tol=0.0, **SMALL).fit(X[:500])
    begun = GTM(max_iter=20, tol=0.0, **SMALL).partial_fit(X[:300]).partial_fit(X[300:500])
    same(begun, first)
    assert begun.n_iter_ == 20
    assert begun.stop_reason_ is first.stop_reason_
    same(GTM(max_iter=20, tol=0.0, **SMALL).partial_fit(X), first.partial_fit(X[500:]))
    assert first.n_iter_ == 21
    assert first.stop_reason_ is StopReason.OPEN
    assert not first.converged_
    assert_allclose(begun.score(X[500:]), first.history_["log_likelihood"][-1], atol=0.3)


def test_plain_averages_add_up_all_rows():
    model = stream(trainer=Online(decay=1.0, start=200))
    assert model.n_seen_ == len(X)
    assert_allclose(model.memory_.statistics.total, len(X))
    assert_allclose(model.node_mass_.sum(), len(X))


@pytest.mark.parametrize("n", [1, 199, 200, 201, 250, 299, 301, 1000])
def test_plain_averages_are_plain_whatever_the_size_of_a_table(n):
    model = GTM(**{**BEGIN, "trainer": Online(decay=1.0, start=200)}).partial_fit(X[:200])
    model.partial_fit(X[200 : 200 + n])
    assert_allclose(model.memory_.statistics.total, 200 + n, rtol=1e-12)


@pytest.mark.parametrize("weight", [0.5, 2.0, 7.3, 50.0])
def test_plain_averages_are_plain_whatever_the_weights(weight):
    model = GTM(**{**BEGIN, "trainer": Online(decay=1.0, start=200)}).partial_fit(X[:200])
    model.partial_fit(X[200:300], sample_weight=np.full(100, weight))
    assert_allclose(model.memory_.statistics.total, 200 + 100 * weight, rtol=1e-12)


def test_one_row_does_not_wipe_out_the_rest_however_large_the_step():
    model = GTM(max_iter=20, tol=0.0, **{**SMALL, "trainer": Online(step=0.99)})
    model.partial_fit(X[:500])
    noise, score = model.noise_variance_, model.score(X)
    model.partial_fit(X[500:501])
    assert_allclose(model.noise_variance_, noise, rtol=0.1)
    assert model.score(X) > score - 0.05


def test_rows_may_come_one_by_one():
    trainer = Online(1, decay=0.9, offset=5.0, start=50)
    whole = GTM(**{**BEGIN, "trainer": trainer}).partial_fit(X[:50]).partial_fit(X[50:130])
    same(stream(X[:130], 1, trainer), whole)
    assert_allclose(whole.n_seen_, 130)


def test_until_there_are_enough_rows_nothing_is_fitted():
    settings = {**BEGIN, "trainer": Online(start=50)}
    model = GTM(**settings)
    for row in X[:49]:
        model.partial_fit(row[None])
    with pytest.raises(NotFittedError, match="gathered 49 rows of the 50 that it begins with"):
        model.transform(X)
    assert model.n_features_in_ == 4
    model.partial_fit(X[49:50])
    same(model, GTM(**settings).partial_fit(X[:50]))
    assert model.transform(X).shape == (1200, 2)


def test_rows_may_come_in_one_array_that_is_filled_again():
    settings = {**BEGIN, "trainer": Online(start=200)}
    refilled, apart = GTM(**settings), GTM(**settings)
    own = (np.empty((50, 4)), np.empty(50), np.empty((50, 4)))
    for i in range(0, 250, 50):
        part = slice(i, i + 50)
        fresh = (X[part].copy(), WEIGHT[part].copy(), 0.1 * np.abs(X[part]))
        for array, values in zip(own, fresh, strict=True):
            array[:] = values
        refilled.partial_fit(own[0], sample_weight=own[1], errors=own[2])
        apart.partial_fit(fresh[0], sample_weight=fresh[1], errors=fresh[2])
    same(refilled, apart)


def test_a_fit_forgets_what_was_gathered():
    model = GTM(max_iter=2, tol=0.0, **SMALL).partial_fit(X[:50])
    model.fit(X[:300])
    same(model, GTM(max_iter=2, tol=0.0, **SMALL).fit(X[:300]))
    assert model.n_seen_ == 300


def test_weights_are_repeats_and_nothing_counts_for_nothing():
    counts = RNG.integers(0, 3, 200)
    trainer = Online(1000, start=200)  # so that the repeats are one block, as the weights are
    rows, weights = (GTM(**{**BEGIN, "trainer": trainer}).partial_fit(X[:200]) for _ in range(2))
    rows.partial_fit(np.repeat(X[200:400], counts, axis=0))
    weights.partial_fit(X[200:400], sample_weight=counts.astype(float))
    same(rows, weights)
    before = weights.weights_
    weights.partial_fit(X[:10], sample_weight=np.zeros(10))
    assert weights.weights_ is before
    assert weights.n_seen_ == 200 + counts.sum()


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_a_stream_learns_and_goes_on_from_a_file(noise, tmp_path):
    plain = {"noise": noise, "init": "pca"}  # a start that is not trained itself leaves the learning to the stream
    model = stream(X[:600], **plain)
    first = stream(X[:200], **plain).score(X)
    model.save(tmp_path / "m.prinfold")
    loaded = load(tmp_path / "m.prinfold")
    assert loaded.n_seen_ == 600
    for i in (600, 800, 1000):
        same(loaded.partial_fit(X[i : i + 200]), model.partial_fit(X[i : i + 200]))
    assert model.score(X) > first + 0.1
    assert model.n_iter_ == 10
    assert {len(each) for each in model.history_.values()} == {11}


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_gaps_and_errors_may_begin_at_any_time(noise, tmp_path):
    table = X.copy()
    table[600:][RNG.random((600, 4)) < 0.1] = np.nan
    table[700] = np.nan
    model = stream(X[:600], noise=noise, prior_precision=0.01)
    before = model.score(X)
    with pytest.warns(DegenerateWarning, match="no value in any column"):
        model.partial_fit(table[600:800])
    assert model.n_seen_ == 799
    model.partial_fit(table[800:1000], errors=np.full(200, 0.05))
    model.save(tmp_path / "m.prinfold")
    loaded = load(tmp_path / "m.prinfold")
    same(loaded.partial_fit(X[1000:]), model.partial_fit(X[1000:]), rtol=1e-8)
    assert model.score(X) > before


def test_going_on_holds_what_was_found_at_first(tmp_path):
    begun = GTM(prior_precision="evidence", **SMALL).partial_fit(X)
    assert begun.prior_precision_ == GTM(prior_precision="evidence", **SMALL).fit(X[:500]).prior_precision_
    model = GTM(prior_precision="evidence", **SMALL).fit(X[:600])
    found = model.prior_precision_
    model.partial_fit(X[600:800])
    assert model.prior_precision_ == found
    assert len(model.history_["effective"]) == model.n_iter_ + 1
    process = GTM(nodes=8, basis=GaussianProcess(), max_iter=300).fit(X[:300])
    before = process.basis_.length_scale
    process.partial_fit(X[300:600])
    assert process.basis_.length_scale == before
    process.save(tmp_path / "m.prinfold")
    same(load(tmp_path / "m.prinfold").partial_fit(X[:100]), process.partial_fit(X[:100]))


def test_every_trainer_leaves_sums_to_go_on_from():
    for trainer in ("batch", "incremental", "online"):
        model = GTM(trainer=trainer, max_iter=3, tol=0.0, **SMALL).fit(X[:600], sample_weight=WEIGHT[:600])
        assert_allclose(model.n_seen_, WEIGHT[:600].sum())
        assert_allclose(model.memory_.statistics.total, WEIGHT[:600].sum())
        assert model.partial_fit(X[600:800]).n_seen_ > WEIGHT[:600].sum()


def test_a_constant_step_follows_data_that_drift():
    shift = np.linspace(0, 3, len(X))[:, None] * [1.0, -1.0, 0.5, 0.0]
    follows, averages = (
        stream(X + shift, 50, trainer)
        for trainer in (Online(50, step=0.2, start=200), Online(50, decay=1.0, start=200))
    )
    end = X[-100:] + shift[-100:]
    assert follows.score(end) > averages.score(end) + 0.5
    assert follows.memory_.statistics.total < 1000 < averages.memory_.statistics.total
    assert follows.projection_error(end) < averages.projection_error(end)


def test_rows_far_from_where_a_stream_began():
    model = stream(X[:200].astype(np.float32))
    with pytest.warns(DegenerateWarning, match="rounding in float32 shows"):
        model.partial_fit((X[200:400] + 1e3).astype(np.float32))


def test_kinds_of_tables():
    plain = stream(X[:600])
    same(stream(pd.DataFrame(X[:600])), plain)
    sparse = GTM(**BEGIN)
    for i in (0, 200, 400):
        sparse.partial_fit(scipy.sparse.csr_matrix(X[i : i + 200]))
    same(sparse, plain)
    single = stream(X[:600].astype(np.float32))
    same(single, plain, rtol=1e-2, atol=1e-3)
    assert single.transform(X[:5].astype(np.float32)).dtype == np.float32


def test_names_of_columns_are_those_of_the_first_block():
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = GTM(**BEGIN).partial_fit(frame[:200])
    assert list(model.feature_names_in_) == list("abcd")
    with pytest.raises(ValueError, match="feature names should match"):
        model.partial_fit(frame[200:300].rename(columns={"a": "z"}))
    with pytest.raises(ValueError, match="has 3 features, but GTM is expecting 4"):
        stream(X[:400]).partial_fit(X[:50, :3])


def test_what_a_stream_cannot_begin_with():
    with pytest.raises(InvalidParameterError, match="cannot start from given coordinates"):
        GTM(**{**BEGIN, "init": np.zeros((200, 2))}).partial_fit(X[:200])
    with pytest.raises(
        InvalidParameterError, match=r"follows the evidence needs all rows at once.*set trainer='batch'"
    ):
        GTM(prior_precision="evidence", **BEGIN).fit(X)


def test_a_stream_cannot_begin_with_rows_that_are_all_the_same():
    model = GTM(**BEGIN)
    with pytest.raises(InvalidDataError, match="the first 200 rows are all the same"):
        model.partial_fit(np.ones((200, 4)))
    same(model.partial_fit(X[:200]), GTM(**BEGIN).partial_fit(X[:200]))


def test_what_is_no_table_changes_nothing():
    model = stream(X[:400])
    before = model.weights_
    with pytest.raises(ValueError, match="inf"):
        model.partial_fit(np.full((5, 4), np.inf))
    assert model.weights_ is before


def test_the_history_of_a_long_stream_is_cut(tmp_path, monkeypatch):
    monkeypatch.setattr("prinfold.gtm.partial_fit._MOST_HISTORY_ENTRIES", 4)
    model = stream(X, 100)
    assert model.n_iter_ == 15
    assert {len(each) for each in model.history_.values()} == {4}
    assert model.history_["seconds"] == sorted(model.history_["seconds"])
    model.save(tmp_path / "m.prinfold")
    assert load(tmp_path / "m.prinfold").n_iter_ == 15


def test_files_of_earlier_versions_have_no_sums(tmp_path):
    model = stream(X[:400])
    model.memory_ = None  # as such a file is read
    assert np.isnan(model.n_seen_)
    with pytest.raises(InvalidDataError, match=r"saved by an earlier version.*fit it again"):
        model.partial_fit(X[:10])
    model.save(tmp_path / "m.prinfold")
    same(load(tmp_path / "m.prinfold"), model)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"floor": 0.0}, "memory_.floor in the file is 0.0, but must be a finite number above 0"),
        ({"floors": np.ones(3)}, "D = 3 as in floors"),
        ({"seen": -1.0}, "memory_.seen in the file is -1.0"),
        ({"gaps": True}, "statistics of its own noise"),
    ],
    ids=str,
)
def test_files_whose_sums_do_not_fit(change, words, tmp_path):
    model = stream(X[:400])
    model.memory_ = replace(model.memory_, **change)
    model.save(tmp_path / "m.prinfold")
    with pytest.raises(CorruptModelFileError, match=words):
        load(tmp_path / "m.prinfold")


def test_files_whose_sums_have_other_shapes(tmp_path):
    model = stream(X[:400])
    sums = model.memory_.statistics
    model.memory_ = replace(model.memory_, statistics=replace(sums, mass=sums.mass[:5]))
    model.save(tmp_path / "m.prinfold")
    with pytest.raises(CorruptModelFileError, match=r"statistics\.moment in the file .*K = 5 as in mass"):
        load(tmp_path / "m.prinfold")
