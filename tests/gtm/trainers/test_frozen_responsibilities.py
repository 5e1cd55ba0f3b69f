"""Frozen responsibilities: sums that add up, a free energy that never falls, and where training ends."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.gtm.trainers.test_incremental import WEIGHT, X, _Dense, _model

from prinfold import GTM, Blocks, Incremental, LowRankNoise
from prinfold.exceptions import InvalidParameterError, UnsupportedInputError
from prinfold.gtm import model as gtm
from prinfold.gtm.noise.protocol import Posterior
from prinfold.gtm.starts.first_parameters import pca_start
from prinfold.gtm.trainers.frozen_responsibilities import _large, freeze, sum_with_frozen
from prinfold.gtm.trainers.incremental import IncrementalModel
from prinfold.rows.rows import as_rows

SPLIT = ["isotropic", "diagonal", "student", "varying"]


def _fitted(noise="isotropic", table=X, **settings):
    return GTM(nodes=6, basis=3, noise=noise, regularization=1.0, **settings).fit(table, sample_weight=WEIGHT)


def _same_sums(found, expected, **tolerances):
    for name in vars(expected):
        assert_allclose(getattr(found, name), getattr(expected, name), err_msg=name, **tolerances)


@pytest.mark.parametrize("most", [0.01, 0.3])
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("noise", SPLIT)
def test_what_is_frozen_and_what_is_not_add_up_to_all(noise, gaps, most):
    table = X.copy()
    if gaps:
        table[::3, 2] = np.nan
    model = _fitted(noise, table, max_iter=5, tol=0.0)
    rows, parameters = as_rows(table, model.offset_, WEIGHT, gaps=gaps), model._parameters()
    expected = gtm.summarize(model._model, rows, parameters)
    sums, frozen = freeze(model._model, rows, parameters, most)
    _same_sums(sums, expected, rtol=1e-9, atol=1e-10)
    # Nothing moves as long as the parameters do not.
    _same_sums(sum_with_frozen(model._model, rows, parameters, frozen), expected, rtol=1e-9, atol=1e-10)
    assert frozen.share.min() >= 1 - most
    assert frozen.share.min() < 1
    assert any(len(part.near) < 36 for part in frozen.parts)


def test_no_more_nodes_are_found_anew_than_must_be():
    posterior = Posterior(np.array([[0.5, 0.3, 0.15, 0.05]]), np.ones(1), np.zeros(1))
    assert_array_equal(_large(posterior, 0.25), [0, 1])
    assert_array_equal(_large(posterior, 0.1), [0, 1, 2])


def _responsibilities(frozen, now, before):
    """What the responsibilities are while some are frozen: those of the parts found anew, the others as before."""
    R = before.copy()
    for part in frozen.parts:
        at = np.ix_(part.rows, part.near)
        R[at] = now[at] / now[at].sum(axis=1, keepdims=True) * frozen.share[part.rows, None]
    return R


def test_sums_are_those_of_the_frozen_matrix_and_the_free_energy_never_falls():
    model, rows = _model(), as_rows(X, X.mean(axis=0), WEIGHT)
    dense = _Dense(model, X - X.mean(axis=0), WEIGHT)
    parameters = pca_start(model, rows, np.random.default_rng(0))
    for _ in range(3):
        parameters = model.noise.m_step(
            model.surface, gtm.summarize(model, rows, parameters), model.penalty, parameters
        )
    _, frozen = freeze(model, rows, parameters, 0.2)
    R = before = dense.posterior(parameters)
    energies = [dense.free_energy(R, parameters)]
    for _ in range(6):
        parameters = dense.solved(R, parameters)
        energies.append(dense.free_energy(R, parameters))
        R = _responsibilities(frozen, dense.posterior(parameters), before)
        energies.append(dense.free_energy(R, parameters))
        sums = sum_with_frozen(model, rows, parameters, frozen)
        assert_allclose(sums.mass, WEIGHT @ R, rtol=1e-9, atol=1e-12)
        assert_allclose(sums.moment, (WEIGHT[:, None] * R).T @ dense.table, rtol=1e-9, atol=1e-12)
        assert_allclose([sums.total, sums.square], [WEIGHT.sum(), WEIGHT @ np.square(dense.table).sum(axis=1)])
    assert np.diff(energies).min() > -1e-9
    assert energies[-1] > energies[0] + 0.1


def test_sweeps_compiled_or_not(monkeypatch):
    monkeypatch.setattr("prinfold.gtm.node_selection._SWEEP_FROM", 1)
    model = _fitted(max_iter=5, tol=0.0)
    rows, parameters = as_rows(X, model.offset_, WEIGHT), model._parameters()
    sums, frozen = freeze(model._model, rows, parameters, 0.1)
    assert not hasattr(frozen.parts[0], "n_rows")  # a batch of groups
    moved = model._model.noise.m_step(model._model.surface, sums, model._model.penalty, parameters)
    swept = sum_with_frozen(model._model, rows, moved, frozen)
    monkeypatch.undo()
    _, apart = freeze(model._model, rows, parameters, 0.1)
    assert_allclose(apart.share.sum(), frozen.share.sum(), rtol=0.05)
    assert_allclose(swept.total, WEIGHT.sum())
    assert_allclose(swept.log_likelihood, sum_with_frozen(model._model, rows, moved, apart).log_likelihood, rtol=1e-2)


@pytest.mark.parametrize("noise", SPLIT)
def test_training_ends_where_em_does(noise):
    model = _fitted(noise, trainer=Incremental(3, freeze=0.1, every=4), tol=1e-9, max_iter=400)
    rows = as_rows(X, model.offset_, WEIGHT)
    state = model._model.begin(rows, model._parameters())
    first = model._model.measure(state)["objective"]
    assert_allclose(model.history_["objective"][-1], first, rtol=1e-9)
    for _ in range(5):
        state = model._model.step(rows, state)
    assert abs(model._model.measure(state)["objective"] - first) < 1e-5


def test_every_sweep_a_full_one_is_incremental_em():
    plain = _fitted(trainer=Incremental(4), max_iter=10, tol=0.0)
    full = _fitted(trainer=Incremental(4, freeze=0.3, every=1), max_iter=10, tol=0.0)
    assert_allclose(full.weights_, plain.weights_, rtol=1e-9, atol=1e-11)


def test_what_is_frozen_stays_for_as_many_sweeps_as_was_said():
    model = _model(IncrementalModel, trainer=Incremental(2, freeze=0.1, every=3))
    rows = as_rows(X, X.mean(axis=0))
    state = model.begin(rows, pca_start(model, rows, np.random.default_rng(0)))
    kept = []
    for _ in range(7):
        state = model.step(rows, state)
        kept.append(id(state.visits[0].frozen.share))
    assert [kept[i] == kept[i + 1] for i in range(6)] == [True, True, False, True, True, False]


@pytest.mark.parametrize("noise", ["aligned", LowRankNoise(1)], ids=str)
def test_factors_cannot_be_frozen(noise):
    with pytest.raises(InvalidParameterError, match="does not go with noise with factors"):
        GTM(noise=noise, trainer=Incremental(freeze=0.1)).fit(X)


def test_blocks_cannot_be_frozen():
    with pytest.raises(UnsupportedInputError, match="rows of Blocks are not held; leave freeze at 0"):
        GTM(nodes=6, basis=3, trainer=Incremental(freeze=0.1)).fit(Blocks(X))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"freeze": 1.0}, "freeze must be a number of at least 0 and below 1"),
        ({"freeze": -0.1}, "freeze must be a number of at least 0 and below 1"),
        ({"every": 0}, "every must be a whole number of at least 1"),
    ],
    ids=str,
)
def test_settings_that_cannot_be(settings, words):
    with pytest.raises(InvalidParameterError, match=words):
        Incremental(**settings)
