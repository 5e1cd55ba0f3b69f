"""Online EM: the step rule, sums that forget, and where passes over a table end."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from prinfold import GTM, Blocks, Online
from prinfold.exceptions import InvalidParameterError
from prinfold.gtm.noise.per_cell import CellNoise
from prinfold.gtm.noise.protocol import Statistics
from prinfold.gtm.trainers.online import OnlineStream, after_block, blend, in_blocks
from prinfold.gtm.trainers.stream_memory import with_gaps
from prinfold.rows.rows import as_rows

RNG = np.random.default_rng(0)
_T = RNG.uniform(-1, 1, (3000, 2))
X = np.column_stack([_T, _T[:, 0] ** 2, _T[:, 0] * _T[:, 1]]) + 0.1 * RNG.standard_normal((3000, 4))
SMALL = {"nodes": 8, "basis": 4, "random_state": 0}


def test_the_step_rule_is_that_of_cappe_and_moulines_for_blocks_of_its_unit():
    rule = Online(50, decay=0.6, offset=2.0)
    for t in range(20):
        assert_allclose(rule.gain(50.0 * t, 50.0), max(1 / (t + 1), (t + 3) ** -0.6), rtol=1e-12)
    assert_allclose(Online(50, step=0.1).gain(1e6, 50.0), 0.1)
    assert_allclose([Online(decay=1.0).gain(200.0 * t, 200.0) for t in range(5)], 1 / np.arange(1, 6))


def test_the_first_block_counts_for_all_and_many_small_ones_count_as_one_large():
    assert Online().gain(0.0, 1.0) == 1.0
    rule = Online(100, step=0.3)
    kept = [1 - rule.gain(1e9 + i, 10.0) for i in range(10)]
    assert_allclose(np.prod(kept), 1 - rule.gain(1e9, 100.0), rtol=1e-6)
    # No row counts less than one before it.
    assert all(Online(decay=0.9).gain(n, 1.0) >= 1 / (n + 1) for n in (1.0, 10.0, 1e3, 1e6))


@pytest.mark.parametrize("rule", [Online(100), Online(100, decay=0.9, offset=3.0), Online(100, step=0.3)], ids=str)
def test_what_weighs_more_than_a_block_counts_as_blocks_one_after_the_other(rule):
    kept = [1 - rule.gain(1000.0 + 100.0 * i, 100.0) for i in range(5)]
    assert_allclose(1 - rule.gain(1000.0, 500.0), np.prod(kept), rtol=1e-12)
    assert_allclose(rule.gain(1000.0, 100.0 + 1e-9), rule.gain(1000.0, 100.0), rtol=1e-9)  # no jump
    assert rule.gain(1000.0, 1e300) == 1.0


@pytest.mark.parametrize("new", [1.0, 99.0, 150.0, 12345.6])
def test_a_decay_of_one_is_the_plain_average(new):
    assert_allclose(Online(100, decay=1.0).gain(730.0, new), new / (730.0 + new), rtol=1e-12)


def test_what_is_older_than_a_pass_has_come_again():
    """However many rows went by, a block counts at least its share of the table."""
    model = GTM(max_iter=2, tol=0.0, **SMALL).fit(X[:400])
    rows, parameters = as_rows(X[:100], model.offset_), model._parameters()
    old = model._model.begin(as_rows(X[:400], model.offset_), parameters).statistics
    after, found = after_block(
        model._model, rows, OnlineStream(parameters, old, 1e9), Online(100, decay=1.0), most=400.0
    )
    expected = blend(old, found, 100 / 400, most=400.0)
    assert_allclose(after.statistics.mass, expected.mass, rtol=1e-12)
    assert_allclose(after.statistics.total, 400.0)
    heavy, found = after_block(
        model._model, rows, OnlineStream(parameters, old, 1e9), Online(100, decay=1.0), most=50.0
    )
    assert_allclose(heavy.statistics.mass, found.mass, rtol=1e-12)  # a share is at most all


def _sums(total, value):
    return Statistics(np.array([value]), np.array([[value]]), value, value, total)


def test_sums_stand_for_the_rows_that_their_average_is_as_good_as():
    old, new = _sums(30.0, 3.0), _sums(10.0, 4.0)
    plain = blend(old, new, 10 / 40)
    assert_allclose([plain.total, plain.square], [40.0, 7.0])
    weight = np.array([0.5 / 30] * 30 + [0.5 / 10] * 10)  # of each row in the average
    half = blend(old, new, 0.5)
    assert_allclose(half.total, 1 / np.sum(weight**2))
    assert_allclose(half.square / half.total, 0.5 * 3 / 30 + 0.5 * 4 / 10)
    assert blend(old, new, 1.0) is new
    assert_allclose(blend(old, new, 0.25, most=20.0).total, 20.0)


def test_blocks_are_all_rows_once():
    rows = as_rows(X[:103], None, np.arange(103.0))
    for rng in (None, np.random.default_rng(0)):
        blocks = list(in_blocks(rows, 20, rng))
        assert [each.n_rows for each in blocks] == [18, 17, 17, 17, 17, 17]
        assert_allclose(np.sort(np.concatenate([each.weight for each in blocks])), np.arange(103.0))
    assert [each.n_rows for each in in_blocks(rows, 1000)] == [103]
    assert [each.n_rows for each in in_blocks(rows, 103)] == [103]
    assert all(each.n_rows <= size for size in range(1, 110) for each in in_blocks(rows, size))


@pytest.mark.parametrize("noise", ["isotropic", "student"])
def test_a_few_passes_do_what_takes_em_more(noise):
    settings = {**SMALL, "noise": noise, "tol": 0.0}
    online = GTM(trainer="online", max_iter=3, **settings).fit(X)
    assert online.score(X) > GTM(max_iter=6, relaxation=1.0, **settings).fit(X).score(X)


@pytest.mark.parametrize("noise", ["isotropic", "student"])
def test_twenty_passes_come_within_a_hundredth_of_the_end_of_em(noise):
    settings = {**SMALL, "noise": noise, "regularization": 1.0, "tol": 0.0}
    # An oblong sheet and more noise: of this, unlike of X, all trainers come to one optimum.
    rows = X[:1000] * [2, 1, 1, 1] + 0.2 * np.random.default_rng(1).standard_normal((1000, 4))
    online = GTM(trainer="online", max_iter=20, **settings).fit(rows)
    assert_allclose(online.score(rows), GTM(max_iter=300, **settings).fit(rows).score(rows), rtol=1e-2)
    assert online.n_iter_ == 20
    assert online.n_seen_ == len(rows)
    assert_allclose(online.history_["log_likelihood"][-1], online.score(rows), rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("whole", [True, False], ids=["memory", "blocks"])
def test_three_passes_over_a_large_table_come_within_half_a_percent_of_the_end_of_em(whole, seed):
    rng = np.random.default_rng(seed)
    u, v = rng.uniform(-1, 1, (2, 5000))
    rows = np.stack([2 * u, v, u**2, u * v], axis=1) + 0.2 * rng.standard_normal((5000, 4))
    settings = {"nodes": 10, "basis": 4, "init": "pca", "random_state": 0, "tol": 0.0}
    best = GTM(max_iter=150, **settings).fit(rows).score(rows)
    online = GTM(trainer="online", max_iter=3, **settings).fit(rows if whole else Blocks(rows, rows=500))
    assert_allclose(online.score(rows), best, rtol=5e-3)


def test_the_same_seed_makes_the_same_passes_and_scaled_weights_too():
    settings = {**SMALL, "trainer": Online(100), "tol": 0.0, "max_iter": 3}
    one, two = GTM(**settings).fit(X), GTM(**settings).fit(X)
    np.testing.assert_array_equal(one.weights_, two.weights_)
    other = GTM(**{**settings, "random_state": 1}).fit(X)
    assert np.abs(one.weights_ - other.weights_).max() > 1e-6
    settings |= {"regularization": 0.0}
    heavy = GTM(**settings).fit(X, sample_weight=np.full(len(X), 8.0))
    assert_allclose(heavy.weights_, GTM(**settings).fit(X).weights_, rtol=1e-6, atol=1e-8)


def test_sums_without_gaps_lead_to_the_same_parameters_as_sums_with():
    model = GTM(max_iter=3, tol=0.0, **SMALL).fit(X[:200])
    rows = as_rows(X[:200], model.offset_)
    sums = model._model.begin(rows, model._parameters()).statistics
    plain, cells = model._model.noise, CellNoise(model._model.noise.floor)
    surface, penalty = model._model.surface, model._model.penalty
    expected = plain.m_step(surface, sums, penalty, model._parameters())
    found = cells.m_step(surface, with_gaps(sums), penalty, model._parameters())
    assert_allclose(found.weights, expected.weights, rtol=1e-9, atol=1e-11)
    assert_allclose(found.precision, expected.precision, rtol=1e-9)
    assert with_gaps(with_gaps(sums)).total == sums.total


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"rows": 0}, "rows must be .*whole number of at least 1"),
        ({"decay": 0.5}, "decay must be a number above 0.5 and at most 1"),
        ({"decay": 1.1}, "decay must be a number above 0.5 and at most 1"),
        ({"offset": -1.0}, "offset must be"),
        ({"step": 0.0}, "step must be .*a number above 0 and below 1"),
        ({"step": 1.0}, "step must be .*a number above 0 and below 1"),
        ({"start": 1}, "start must be a whole number of at least 2"),
    ],
    ids=str,
)
def test_settings_that_cannot_be(settings, words):
    with pytest.raises(InvalidParameterError, match=f"Online: {words}"):
        Online(**settings)
