"""Verbs that take many groups of rows in one compiled call are those that take them one by one."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from prinfold import GTM
from prinfold.gtm import lattice_refinement as refinement
from prinfold.gtm import model as gtm
from prinfold.gtm import node_selection as pruning
from prinfold.gtm._node_bounds_jit import measure_balls, nearest_anchors
from prinfold.gtm.lattice_refinement import EveryPoint, Refinement, refinement_of
from prinfold.gtm.node_bounds import ROUNDING, split_radii
from prinfold.gtm.node_selection import Hint

pytestmark = pytest.mark.filterwarnings("ignore")

NEVER = 10**18


def sheet(n=1500, D=6, noise=0.01, seed=0):
    rng = np.random.default_rng(seed)
    t = rng.uniform(-1, 1, (n, 2))
    bent = np.stack([2 * t[:, 0], t[:, 1], np.sin(2 * t[:, 0]), t[:, 0] * t[:, 1]], axis=1)
    return bent @ rng.standard_normal((4, D)) + noise * rng.standard_normal((n, D))


def tube(n=1500, noise=0.01, seed=0):
    rng = np.random.default_rng(seed)
    a, z = rng.uniform(-np.pi, np.pi, n), rng.uniform(-1, 1, n)
    return np.stack([np.cos(a), np.sin(a), z], axis=1) + noise * rng.standard_normal((n, 3))


CASES = {
    "cells": (sheet(), {"nodes": 14}, 0, Refinement),
    "cells, many columns": (sheet(D=40), {"nodes": 14}, 0, Refinement),
    "cells, a closed axis": (tube(), {"nodes": (18, 7), "latent": "cylinder"}, 0, Refinement),
    "points": (sheet(), {"nodes": 14}, 10**9, EveryPoint),
    "points, a closed axis": (tube(), {"nodes": (18, 7), "latent": "cylinder"}, 10**9, EveryPoint),
    "nodes": (sheet(noise=0.5), {"nodes": 14}, 10**9, type(None)),
}
VERBS = ("transform", "posterior_mode", "posterior_covariance", "score_samples")


def settle(monkeypatch, few_points, *, at_once, planned=False):
    monkeypatch.setattr(refinement, "_FEW_POINTS", few_points)
    monkeypatch.setattr(pruning, "_COMPILE_ONCE_FROM", 0 if at_once else NEVER)
    monkeypatch.setattr(pruning, "_PLAN_FROM", 0 if planned else NEVER)
    for name in ("_NODES_ONCE", "_SWEEP_FROM"):
        monkeypatch.setattr(pruning, name, 0)


@pytest.mark.parametrize("planned", [False, True], ids=["dense", "planned"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", CASES)
def test_many_groups_at_once_are_one_after_the_other(monkeypatch, name, dtype, planned):
    X, settings, few_points, kind = CASES[name]
    settle(monkeypatch, few_points, at_once=False)
    model = GTM(basis=6, max_iter=12, tol=0.0, init="pca", **settings).fit(X)
    rows = X.astype(dtype)
    rows[:3] += np.array([[3.0], [30.0], [1e4]], dtype=dtype)  # so far off that weights have to be found again
    assert type(refinement_of(model._model, model._parameters())) is kind
    one_by_one = {verb: getattr(model, verb)(rows) for verb in VERBS}
    settle(monkeypatch, few_points, at_once=True, planned=planned)
    for verb, wanted in one_by_one.items():
        found, exact = getattr(model, verb)(rows), dtype is np.float64 and not planned
        assert found.dtype == wanted.dtype
        if verb == "posterior_mode":  # of two places that weigh nearly the same either may be the first
            assert (np.abs(found - wanted).max(axis=1) > 1e-6).mean() < (0.0 if exact else 0.01) + 1e-9
            continue
        usual = slice(None) if dtype is np.float64 else slice(3, None)
        atol = 1e-9 if exact else 1e-6 if dtype is np.float64 else 2e-2
        assert_allclose(found[usual], wanted[usual], rtol=1e-7 if exact else 1e-5, atol=atol)


def calls_of(work: Callable[[], object]) -> int:
    """How many functions the interpreter calls: each holds up the other threads, however long it takes itself."""
    found = 0

    def count(frame, event, arg):
        nonlocal found
        found += event in ("call", "c_call")

    with threadpool_limits(1):
        work()  # what is made or compiled once is not counted
        before = sys.getprofile()
        sys.setprofile(count)
        try:
            work()
        finally:
            sys.setprofile(before)
    return found


JOBS = {
    "dense pass": lambda model, X: gtm.summarize(model._model, model._rows(X), model._parameters()),
    "transform": lambda model, X: model.transform(X),
    "score_samples": lambda model, X: model.score_samples(X),
}
MOST_CALLS = {"dense pass": 120, "transform": 120, "score_samples": 120}


@pytest.mark.parametrize("few_points", [0, 10**9], ids=["cells", "points"])
@pytest.mark.parametrize("job", JOBS)
def test_a_batch_takes_a_fixed_number_of_calls_whatever_its_rows_and_groups(monkeypatch, job, few_points):
    X = sheet(8 * 1024)
    settle(monkeypatch, few_points, at_once=True)
    model = GTM(nodes=14, basis=6, max_iter=12, tol=0.0, init="pca").fit(X)
    batches = len(pruning.plan_every_node(model._model.noise, gtm_nodes(model), model._rows(X)))
    more = calls_of(lambda: JOBS[job](model, X)) - calls_of(lambda: JOBS[job](model, X[: len(X) // 2]))
    assert batches == 8
    assert more <= MOST_CALLS[job] * batches / 2


def gtm_nodes(model):
    return model._model.noise.at_nodes(model._model.surface, model._parameters())


def test_a_planned_pass_takes_a_fixed_number_of_calls_for_each_batch(monkeypatch):
    settle(monkeypatch, 0, at_once=True, planned=True)
    found = []
    for n in (4, 8):
        X = sheet(n * 1024)
        model = GTM(nodes=24, basis=6, max_iter=12, tol=0.0, init="pca").fit(X)
        rows, parameters = model._rows(X), model._parameters()
        hint = gtm.e_step(model._model, rows, parameters, Hint(None, 4))[1]._replace(age=5)
        assert hint.groups.fine
        work = lambda m=model._model, r=rows, p=parameters, h=hint: gtm.e_step(m, r, p, h)  # noqa: E731
        found.append((len(hint.groups.runs), calls_of(work)))
    (few, before), (many, after) = found
    assert many >= 2 * few - 1
    assert (after - before) / (many - few) <= 200


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("q", [0, 2])
def test_middles_radii_and_nearest_anchors_are_those_of_the_definition(q, dtype):
    rng = np.random.default_rng(0)
    table, offset = (rng.standard_normal((80, 5)) + 3.0).astype(dtype), rng.standard_normal(5)
    chosen, cuts = rng.permutation(80)[:60].astype(np.int32), np.array([0, 1, 20, 60])
    block = table[chosen].astype(np.float64) - offset
    frame = np.linalg.qr(rng.standard_normal((5, 5)))[0][:, :q].copy()
    middle = np.add.reduceat(block, cuts[:-1], axis=0) / np.diff(cuts)[:, None]
    delta = block - np.repeat(middle, np.diff(cuts), axis=0)
    wanted = middle, split_radii(delta, cuts[:-1], frame), delta @ frame / 2.0
    found = np.empty((3, 5)), np.empty((3, 3)), np.empty((60, q), dtype=np.float32)
    measure_balls(table, chosen, offset, cuts, frame, ROUNDING, 2.0, *found)
    for one, other in zip(found, wanted, strict=True):
        assert_allclose(one, other, rtol=1e-6, atol=1e-6)

    # Anchors that lie along the axes: what a row has beside them is the same for all.
    anchors = rng.standard_normal((70, q)) @ frame.T if q else rng.standard_normal((70, 5))
    block = table.astype(np.float64) - offset
    apart = np.square(block[:, None] - anchors).sum(axis=2)
    label, distance = np.empty(80, dtype=np.int32), np.empty(80, dtype=np.float32)
    nearest_anchors(table, offset, frame, anchors @ frame if q else anchors, 2.0, label, distance)
    assert_array_equal(label, apart.argmin(axis=1))
    assert_allclose(4 * distance, apart.min(axis=1), rtol=1e-5)
