"""Leaving out nodes that do not matter: the bound holds, nothing is lost beyond it, rows are each seen once."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits

from prinfold import GTM, PPS
from prinfold.exceptions import InvalidParameterError
from prinfold.gtm import _e_step_jit, _latent_posterior_jit
from prinfold.gtm import model as gtm
from prinfold.gtm import node_selection as pruning
from prinfold.gtm import posterior as posteriors
from prinfold.gtm.node_bounds import Balls
from prinfold.gtm.noise.protocol import Capabilities
from prinfold.rows.rows import Rows, as_rows

pytestmark = pytest.mark.filterwarnings("ignore::prinfold.exceptions.PrinfoldWarning")


@pytest.fixture
def always(monkeypatch):
    """Plan even the smallest pass."""
    monkeypatch.setattr(pruning, "_PLAN_FROM", 0)
    monkeypatch.setattr(pruning, "_NODES_ONCE", 0)


@pytest.fixture
def swept(always, monkeypatch):
    """… and sweep compiled groups from the first pass on."""
    for name in ("_SWEEP_FROM", "_SWEEP_AFTER", "_COMPILE_ONCE_FROM"):
        monkeypatch.setattr(pruning, name, 0)


def sheet(n=1500, seed=0, noise=0.02):
    rng = np.random.default_rng(seed)
    u, v = rng.uniform(-1, 1, (2, n))
    X = np.stack([2 * u, v, np.sin(2 * u), u * v, 0.3 * v**2, 0.1 * u], axis=1)
    return X + noise * rng.standard_normal(X.shape)


def trained(X, n_iter=15, **settings):
    return GTM(**{"nodes": 16, "basis": 6, "max_iter": n_iter, "tol": 0.0, **settings}).fit(X)


def prepared(model, X):
    rows = model._rows(X)
    return rows, model._model.noise.at_nodes(model._model.surface, model._parameters(), X.dtype.type)


@given(seed=st.integers(0, 10_000), log_precision=st.floats(-2, 6), radius=st.floats(0, 3), shift=st.floats(-5, 5))
def test_the_bound_holds_for_every_row_of_a_ball(seed, log_precision, radius, shift):
    rng = np.random.default_rng(seed)
    model = trained(sheet(60), 0, nodes=6, basis=3)
    parameters = replace(model._parameters(), precision=10.0**log_precision)
    noise = model._model.noise
    nodes = noise.at_nodes(model._model.surface, parameters)
    center = rng.standard_normal(6) + shift
    inside = rng.standard_normal((50, 6))
    inside *= radius * rng.uniform(0, 1, (50, 1)) / np.linalg.norm(inside, axis=1, keepdims=True)
    frame, radii = np.linalg.qr(rng.standard_normal((6, 3)))[0], np.array([radius])
    seen, starts = (inside @ frame).astype(np.float32), np.array([0, len(inside)])
    known = Balls(center[None], radii, frame, radii, radii, seen, starts)
    squares = np.square(center + inside[:, None] - nodes.centers).sum(axis=2)
    log_weight = -0.5 * parameters.precision * squares
    log_weight -= logsumexp(log_weight, axis=1, keepdims=True)
    rounding = 1e-12 * (1 + parameters.precision * squares.max())
    for balls in (known._replace(frame=frame[:, :0]), known._replace(seen=None), known):
        assert (log_weight <= nodes.bound(balls)[0] + rounding).all()


@pytest.mark.parametrize("settings", [{}, {"latent": "sphere", "nodes": 200, "basis": 40}, {"latent": "torus"}])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_planned_pass_loses_less_than_it_may(always, settings, weighted):
    X = sheet()
    model = trained(X, **settings)
    weight = np.random.default_rng(1).integers(0, 3, len(X)).astype(float) if weighted else None
    rows = as_rows(X, model.offset_, weight, width=model.latent_.n_nodes)
    parts, hint = pruning.plan(
        model._model.surface, model._model.noise, prepared(model, X)[1], rows, model.weights_, pruning.Hint()
    )
    assert hint.groups is not None
    pairs = sum(part.n_rows * len(part.near) for part in parts)
    assert pairs < 0.5 * len(X) * model.latent_.n_nodes, "nothing was pruned: the comparison would say nothing"
    planned, _ = gtm.e_step(model._model, rows, model._parameters(), pruning.Hint())
    dense = gtm.summarize(model._model, rows, model._parameters())
    lost = dense.log_likelihood - planned.log_likelihood
    rounding = 1e-12 * abs(dense.log_likelihood) + 1e-9
    assert -rounding <= lost <= pruning.LOST * dense.total + rounding
    assert_allclose(planned.mass, dense.mass, atol=2e-9 * len(X))
    assert_allclose(planned.moment, dense.moment, atol=2e-9 * len(X) * np.abs(X).max())
    assert planned.total == pytest.approx(dense.total)
    assert planned.square == pytest.approx(dense.square)


def planned_and_dense(model, X, weight=None):
    rows = as_rows(X, model.offset_, weight, width=model.latent_.n_nodes)
    nodes = model._model.noise.at_nodes(model._model.surface, model._parameters(), X.dtype.type)
    parts, _ = pruning.plan(model._model.surface, model._model.noise, nodes, rows, model.weights_, pruning.Hint())
    assert all(isinstance(part, pruning.RowBatch) for part in parts), "nothing was swept"
    planned, _ = gtm.e_step(model._model, rows, model._parameters(), pruning.Hint())
    return parts, planned, gtm.summarize(model._model, rows, model._parameters())


WEIGHTS = {
    "none": None,
    "some zero": lambda rng, n: rng.integers(0, 3, n).astype(float),
    "tiny": lambda rng, n: 1e-46 * rng.uniform(0.5, 2, n),
    "huge": lambda rng, n: 1e46 * rng.uniform(0.5, 2, n),
    "one row counts": lambda rng, n: np.where(np.arange(n) == 7, 1.0, 0.0),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("table", ["plain", "far row", "duplicates", "sparse"])
def test_a_sweep_loses_less_than_it_may(swept, weights, dtype, table):
    X = sheet()
    if table == "duplicates":
        X = np.concatenate([X[:500]] * 3)
    model = trained(X.astype(dtype))
    if table == "far row":
        X[7] += 1e6
    X = X.astype(dtype)
    weight = WEIGHTS[weights] and WEIGHTS[weights](np.random.default_rng(1), len(X))
    parts, planned, dense = planned_and_dense(model, scipy.sparse.csr_matrix(X) if table == "sparse" else X, weight)
    assert sum(part.n_entries(256) for part in parts) < 0.4 * len(X) * 256
    lost = (dense.log_likelihood - planned.log_likelihood) / dense.total
    size = abs(dense.log_likelihood / dense.total) + 1
    # Exponents are β t·y − ½ β ‖y‖², each rounded in the precision of the rows.
    square = np.average(np.square(X - model.offset_).sum(axis=1), weights=weight)
    single = np.finfo(np.float32).eps * square / model.noise_variance_
    rounding = 1e-12 * size if dtype is np.float64 else float(single)
    assert -rounding <= lost <= pruning.LOST + rounding
    digits = 2e-9 if dtype is np.float64 else 1e-4
    assert_allclose(planned.mass, dense.mass, atol=digits * dense.total)
    assert_allclose(planned.moment, dense.moment, atol=digits * dense.total * float(np.abs(X).max()))
    assert planned.total == pytest.approx(dense.total)
    assert planned.square == pytest.approx(dense.square)


def test_batches_hold_every_row_once_with_the_nodes_of_its_group(swept, monkeypatch):
    monkeypatch.setattr(pruning, "_ROWS_PER_BATCH", 100)
    X = sheet()
    model = trained(X)
    batches, _, _ = planned_and_dense(model, X)
    assert len(batches) > 5
    assert_array_equal(np.sort(np.concatenate([batch.rows for batch in batches])), np.arange(len(X)))
    weight = model.responsibilities(X)
    for batch in batches:
        assert batch.cuts[0] == batch.near_cuts[0] == 0
        assert (batch.cuts[-1], batch.near_cuts[-1]) == (len(batch.rows), len(batch.near))
        for g in range(len(batch.cuts) - 1):
            of_group = weight[batch.rows[batch.cuts[g] : batch.cuts[g + 1]]]
            near = batch.near[batch.near_cuts[g] : batch.near_cuts[g + 1]]
            assert (np.delete(of_group, near, axis=1).sum(axis=1) < pruning.LOST).all()


def test_threads_change_a_sweep_by_rounding_alone(swept, monkeypatch):
    monkeypatch.setattr("prinfold.rows.rows._ENTRIES_PER_THREAD", 1)
    monkeypatch.setattr(pruning, "_ROWS_PER_BATCH", 100)
    X = sheet()
    model = trained(X)
    found = []
    for threads in (1, 2, 3):
        with threadpool_limits(threads, user_api="blas"), pytest.MonkeyPatch.context() as patch:
            patch.setattr("joblib.cpu_count", lambda n=threads: n)
            found.append(planned_and_dense(model, X)[1])
    for other in found[1:]:
        assert_allclose(other.mass, found[0].mass, rtol=1e-12, atol=1e-12)
        assert_allclose(other.moment, found[0].moment, rtol=1e-12, atol=1e-11)
        assert other.log_likelihood == pytest.approx(found[0].log_likelihood, rel=1e-13)


def test_sweeps_wait_until_a_job_has_shown_to_be_long(always, monkeypatch):
    monkeypatch.setattr(pruning, "_SWEEP_FROM", 0)
    model = trained(sheet())
    rows, nodes = prepared(model, sheet())
    kinds, hint = [], pruning.Hint()
    for _ in range(6):
        parts, hint = pruning.plan(model._model.surface, model._model.noise, nodes, rows, model.weights_, hint)
        kinds.append(type(parts[0]))
    assert kinds == [pruning.Part] * 4 + [pruning.RowBatch] * 2
    monkeypatch.setattr(pruning, "_SWEEP_FROM", 10**9)
    parts, _ = pruning.plan(model._model.surface, model._model.noise, nodes, rows, model.weights_, pruning.Hint(age=8))
    assert isinstance(parts[0], pruning.Part)


def test_rows_are_grouped_once_each_into_balls_that_hold_them():
    X = sheet()
    X[17] += 30.0
    model = trained(X)
    rows, _ = prepared(model, X)
    groups = pruning.make_groups(model._model.surface, rows, model.weights_)
    assert_array_equal(np.sort(groups.order), np.arange(len(X)))
    assert (np.diff(groups.starts) > 0).all()
    assert np.diff(groups.starts).max() <= 512
    for g, (center, radius) in enumerate(zip(groups.balls.center, groups.balls.radius, strict=True)):
        distance = np.linalg.norm(X[groups.rows(g)] - model.offset_ - center, axis=1)
        assert distance.max() <= radius * (1 + 1e-12) + 1e-12
        offset = X[groups.rows(g)] - model.offset_ - center
        inside = offset @ groups.balls.frame @ groups.balls.frame.T
        assert np.linalg.norm(inside, axis=1).max() <= groups.balls.within[g] * (1 + 1e-12) + 1e-12
        assert np.linalg.norm(offset - inside, axis=1).max() <= groups.balls.beside[g] * (1 + 1e-12) + 1e-12
    # One outlier swells one ball, not the median one.
    assert np.median(groups.balls.radius) < 1.0


VERBS = ["transform", "score_samples", "responsibilities", "posterior_mode", "posterior_covariance", "mode_distance"]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_the_dense_one(monkeypatch, always, verb, dtype, compiled):
    X = sheet().astype(dtype)
    X[:3] += np.array([[3.0], [30.0], [1e4]], dtype=dtype)  # far from every node, where sums of weights underflow
    model = trained(X[3:])
    groups = []
    for module, name in ((_e_step_jit, "weigh_groups"), (_latent_posterior_jit, "cells_that_matter")):
        plain = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *args, plain=plain: groups.append(args[1]) or plain(*args))
    for name in ("_SWEEP_FROM", "_COMPILE_ONCE_FROM"):
        monkeypatch.setattr(pruning, name, 0 if compiled else 10**15)
    planned = getattr(model, verb)(X)
    assert bool(groups) == compiled
    for name in ("_PLAN_FROM", "_COMPILE_ONCE_FROM"):
        monkeypatch.setattr(pruning, name, 10**15)
    dense = getattr(model, verb)(X)
    rtol = 1e-7 if dtype is np.float64 else 1e-5
    assert_allclose(planned, dense, rtol=rtol, atol=1e-6 if dtype is np.float64 else 2e-2)


@pytest.mark.parametrize("compiled", [False, True])
def test_sparse_weights_of_a_plan_are_the_dense_ones(monkeypatch, always, compiled):
    X = sheet()
    model = trained(X)
    monkeypatch.setattr(pruning, "_SWEEP_FROM", 0 if compiled else 10**15)
    monkeypatch.setattr(pruning, "_COMPILE_ONCE_FROM", 0 if compiled else 10**15)
    planned = model.responsibilities(X, threshold=1e-6).toarray()
    for name in ("_PLAN_FROM", "_COMPILE_ONCE_FROM"):
        monkeypatch.setattr(pruning, name, 10**15)
    assert_allclose(planned, model.responsibilities(X, threshold=1e-6).toarray(), atol=1e-6)


def test_a_single_pass_is_planned_where_nodes_are_many_whatever_the_threads(monkeypatch):
    monkeypatch.setattr(pruning, "_PLAN_FROM", 0)
    X = sheet()
    model = trained(X)
    rows, nodes = prepared(model, X)

    def kinds(threads):
        with threadpool_limits(threads):
            parts = pruning.plan_once(model._model.surface, model._model.noise, nodes, rows, model.weights_)
        return {type(part) if part.near is not None else None for part in parts}

    monkeypatch.setattr(pruning, "_NODES_ONCE", 256)
    assert kinds(1) == kinds(2) == {pruning.Part}
    monkeypatch.setattr(pruning, "_NODES_ONCE", 257)
    assert kinds(1) == kinds(2) == {None}


def test_rows_times_nodes_decide_whether_a_pass_is_planned(monkeypatch):
    X = sheet()
    model = trained(X)
    rows, nodes = prepared(model, X)
    n_pairs = len(X) * 256

    def planned(threads):
        with threadpool_limits(threads):
            parts, _ = pruning.plan(
                model._model.surface, model._model.noise, nodes, rows, model.weights_, pruning.Hint()
            )
        return parts[0].near is not None

    monkeypatch.setattr(pruning, "_PLAN_FROM", n_pairs)
    assert planned(1)
    assert planned(2)
    monkeypatch.setattr(pruning, "_PLAN_FROM", n_pairs + 1)
    assert not planned(1)
    assert not planned(2)


def test_a_single_pass_is_not_planned_where_most_nodes_matter(monkeypatch, always):
    """Groups would be made for nothing, and at every call."""
    model = trained(sheet())
    made = []
    original = pruning.make_groups
    monkeypatch.setattr(pruning, "make_groups", lambda *args: made.append(1) or original(*args))
    model.transform(sheet(seed=1))
    assert made
    wide = trained(sheet(noise=1.0), 5)
    rows, nodes = prepared(wide, sheet(noise=1.0))
    share = pruning._share_of_nodes(wide._model.noise.capabilities.bound, nodes, rows)
    some = np.unique(np.linspace(0, rows.n_rows - 1, 32).astype(int))
    weight = wide.responsibilities(sheet(noise=1.0))[some]
    relative = weight / weight.max(axis=1, keepdims=True)
    assert share == pytest.approx((relative > pruning.LOST / 256).mean(), abs=0.01)
    assert share > 0.1
    made.clear()
    wide.transform(sheet(noise=1.0))
    assert not made


@pytest.mark.parametrize("compiled", [False, True])
def test_single_precision_is_right_to_rounding_far_from_the_origin(monkeypatch, always, compiled):
    """Rounding the precision of the noise would shift the likelihood of all rows alike, by what they are squared."""
    X = sheet(noise=0.002)
    double, single = trained(X, 30), trained(X.astype(np.float32), 30)
    single.weights_, single.offset_, single.noise_variance_ = double.weights_, double.offset_, double.noise_variance_
    for name in ("_SWEEP_FROM", "_COMPILE_ONCE_FROM"):
        monkeypatch.setattr(pruning, name, 0 if compiled else 10**15)
    monkeypatch.setattr(pruning, "_SWEEP_AFTER", 0)
    found = single.score_samples(X.astype(np.float32)).astype(float) - double.score_samples(X)
    assert abs(found.mean()) < 2e-4
    rows = single._rows(X.astype(np.float32))
    sums, _ = gtm.e_step(single._model, rows, single._parameters(), pruning.Hint())
    assert sums.log_likelihood / len(X) == pytest.approx(double.score_samples(X).mean(), abs=2e-4)


def test_a_single_pass_waits_for_the_compiler_only_where_it_is_long(monkeypatch, always):
    X = sheet()
    model = trained(X)
    rows, nodes = prepared(model, X)

    def kind():
        parts = pruning.plan_once(model._model.surface, model._model.noise, nodes, rows, model.weights_)
        return type(parts[0])

    monkeypatch.setattr(pruning, "_SWEEP_FROM", 0)
    assert kind() is pruning.Part
    monkeypatch.setattr(pruning, "_COMPILE_ONCE_FROM", 0)
    assert kind() is pruning.RowBatch


@pytest.mark.parametrize("sweep_from", [0, 10**12])
def test_training_by_plan_ends_where_dense_training_does(monkeypatch, sweep_from):
    X = sheet(4000)
    dense = trained(X, 40)
    monkeypatch.setattr(pruning, "_PLAN_FROM", 0)
    monkeypatch.setattr(pruning, "_SWEEP_FROM", sweep_from)
    planned = trained(X, 40)
    assert_allclose(planned.history_["objective"], dense.history_["objective"], rtol=1e-7)
    assert_allclose(planned.weights_, dense.weights_, atol=1e-5)
    assert (np.diff(planned.history_["objective"]) > -1e-8).all()


def test_groups_are_renewed_at_powers_of_two(always, monkeypatch):
    made = []
    original = pruning.make_groups
    monkeypatch.setattr(pruning, "make_groups", lambda *args: made.append(len(passes)) or original(*args))
    passes = []
    original_plan = gtm.plan
    monkeypatch.setattr(gtm, "plan", lambda *args, **how: passes.append(None) or original_plan(*args, **how))
    trained(sheet(), 16)
    renewed = [at - 1 for at in made if at <= 17]
    assert renewed[:6] == [0, 1, 2, 4, 8, 16]


def test_what_cannot_be_pruned_is_dense(always, monkeypatch):
    X = sheet(300)
    early = trained(X, 0)  # the noise of the first plane reaches every node
    rows, nodes = prepared(early, X)
    surface, noise = early._model.surface, early._model.noise
    parts, _ = pruning.plan(surface, noise, nodes, rows, early.weights_, pruning.Hint())
    assert all(part.near is None for part in parts)

    late = trained(sheet())
    rows, nodes = prepared(late, sheet())
    parts, _ = pruning.plan(surface, noise, nodes, rows, late.weights_, pruning.Hint())
    assert all(part.near is not None for part in parts)
    monkeypatch.setattr(type(noise), "capabilities", Capabilities())  # of which none is a bound
    parts, _ = pruning.plan(surface, noise, nodes, rows, late.weights_, pruning.Hint())
    assert all(part.near is None for part in parts)


@pytest.mark.parametrize("estimator", [GTM, PPS])
def test_rows_of_a_memory_map_are_read_in_order(swept, monkeypatch, tmp_path, estimator):
    X = sheet(3000)
    np.save(tmp_path / "x.npy", X)
    on_disk = np.load(tmp_path / "x.npy", mmap_mode="r")
    weight = np.ones(len(X))
    weight[:2048] = 0.0  # more than a block, whose rows must not be picked out either
    asked = []
    original = Rows.block
    monkeypatch.setattr(
        Rows, "block", lambda self, part: asked.append((type(self.table), part)) or original(self, part)
    )
    settings = {"nodes": 16, "basis": 5, "max_iter": 8, "tol": 0.0}
    model = estimator(**settings).fit(on_disk, sample_weight=weight)
    model.transform(on_disk)
    on_map = [part for kind, part in asked if kind is np.memmap]  # others are of the rows that a start is tried on
    assert on_map
    assert all(isinstance(part, slice) for part in on_map)
    monkeypatch.setattr(Rows, "block", original)
    in_memory = estimator(**settings).fit(X, sample_weight=weight)
    assert_allclose(model.history_["objective"], in_memory.history_["objective"], rtol=1e-7)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("sweep_from", [0, 10**12])
@pytest.mark.parametrize("estimator", [GTM, PPS])
@pytest.mark.parametrize("unit", [0.0, 1e-100, 1e-20, 1e20, 1e100])
def test_units_of_the_data_change_nothing(swept, monkeypatch, estimator, unit, sweep_from):
    """A bound works with squares of squares, which must not leave the range of numbers before the data do."""
    settings = {"nodes": 12, "basis": 4, "max_iter": 5, "tol": 0.0}
    monkeypatch.setattr(pruning, "_SWEEP_FROM", sweep_from)
    planned = estimator(**settings).fit(unit * sheet(400))
    monkeypatch.setattr(pruning, "_PLAN_FROM", 10**12)
    dense = estimator(**settings).fit(unit * sheet(400))
    assert_allclose(planned.history_["objective"], dense.history_["objective"], rtol=1e-7)
    assert_allclose(planned.transform(unit * sheet(400)), dense.transform(unit * sheet(400)), atol=1e-6)


def test_a_row_out_of_range_of_single_precision_is_sorted_without_a_word(always, recwarn):
    X = sheet(400)
    X[7] = 1e30
    assert np.isfinite(trained(X, 3).score_samples(X)).all()
    assert not [each for each in recwarn if issubclass(each.category, RuntimeWarning)]


def test_what_is_left_out_of_parts_cannot_hold_more_than_may_be_lost():
    bound = np.log(pruning.LOST) + np.random.default_rng(0).normal(-3, 6, (50, 40))
    node, counts = pruning._keep(bound, fine=False)
    kept = np.zeros(bound.shape, dtype=bool)
    kept[np.repeat(np.arange(50), counts), node] = True
    held = np.where(kept, 0.0, np.exp(bound)).sum(axis=1)
    assert (held <= pruning.LOST).all()
    assert held.max() > 0.05 * pruning.LOST, "and what is left out is not much less"


def test_a_bound_that_is_no_number_leaves_nothing_out():
    node, counts = pruning._keep(np.array([[np.nan, -100.0, 0.0], [-100.0, np.inf, -np.inf]]), fine=False)
    assert_array_equal(node, [0, 2, 1])
    assert_array_equal(counts, [2, 1])


# -------------------------------------------------------------------------------- sparse out, sparse in


@pytest.mark.parametrize("plan_from", [0, 10**12])
@pytest.mark.parametrize("threshold", [1e-6, 0.2])
def test_sparse_responsibilities_are_the_large_ones(monkeypatch, plan_from, threshold):
    monkeypatch.setattr(pruning, "_PLAN_FROM", plan_from)
    monkeypatch.setattr(pruning, "_NODES_ONCE", 0)
    X = sheet()
    model = trained(X)
    dense = model.responsibilities(X)
    found = model.responsibilities(X, threshold=threshold)
    assert scipy.sparse.issparse(found)
    assert found.format == "csr"
    assert_allclose(found.toarray(), np.where(dense >= threshold, dense, 0.0), atol=1e-8)
    assert found.nnz < 0.2 * dense.size
    assert found.has_sorted_indices
    assert found.dtype == dense.dtype


def test_sparse_responsibilities_take_little_more_than_they_hold(monkeypatch):
    monkeypatch.setattr("prinfold.rows.rows._BLOCK_BYTES", 2**16)  # so that blocks do not count
    X = sheet(6000, noise=0.2)
    model = trained(X[:500], 3, nodes=20)
    tracemalloc.start()
    found = model.responsibilities(X, threshold=1e-6)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    size = found.data.nbytes + found.indices.nbytes + found.indptr.nbytes
    assert found.nnz > 50 * len(X)
    assert peak < 2.5 * size, "once in pieces and once as a whole"


@pytest.mark.parametrize("threshold", [0, 1, -1e-3, 2])
def test_a_threshold_is_a_share(threshold):
    with pytest.raises(InvalidParameterError, match="above 0 and below 1"):
        trained(sheet(100), 1).responsibilities(sheet(100), threshold=threshold)


def fingerprints(n=400, n_bits=60, seed=0):
    rng = np.random.default_rng(seed)
    chance = 0.05 + 0.4 * np.outer(rng.uniform(size=n), rng.uniform(size=n_bits))
    return (rng.uniform(size=(n, n_bits)) < chance).astype(float)


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("init", ["pca", "isomap", "random"])
def test_sparse_tables_give_what_dense_ones_do(form, init):
    X = fingerprints()
    S = scipy.sparse.csr_matrix(X).asformat(form)
    settings = {"nodes": 8, "basis": 4, "init": init, "random_state": 0}
    dense, sparse = trained(X, 5, **settings), trained(S, 5, **settings)
    assert_allclose(sparse.weights_, dense.weights_, atol=1e-10)
    for verb in ("transform", "project", "reconstruct", "score_samples", "responsibilities"):
        assert_allclose(getattr(sparse, verb)(S), getattr(dense, verb)(X), atol=1e-8, err_msg=verb)
    assert sparse.projection_error(S) == pytest.approx(dense.projection_error(X))


def test_a_sparse_table_is_never_filled_in_whole():
    S = scipy.sparse.random(20_000, 1000, density=0.01, format="csr", random_state=0)
    tracemalloc.start()
    trained(S, 2, nodes=8, basis=3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.4 * 20_000 * 1000 * 8, "a scatter matrix and a few blocks, not the table"


@pytest.mark.parametrize("bounds_at_once", [2**16, 600, 1])
def test_rows_of_a_group_are_known_in_whichever_chunk_it_is_bounded(swept, monkeypatch, bounds_at_once):
    X = sheet(3000)
    X[5] = 1e60  # too far for single precision: known by its radius alone
    model = GTM(nodes=16, basis=5, max_iter=8, tol=0.0).fit(X[6:])
    rows, nodes = prepared(model, X)
    groups = pruning.make_groups(model._model.surface, rows, model.weights_, fine=True)
    assert len(groups) > 3
    monkeypatch.setattr(pruning, "_BOUNDS_AT_ONCE", bounds_at_once)
    near = pruning.near_nodes(model._model.noise, nodes, groups)
    weight = posteriors.responsibilities(model._model, rows, model._parameters())
    for g, (start, stop) in enumerate(pairwise(near.cuts)):
        left_out = np.delete(weight[groups.rows(g)], near.nodes[start:stop], axis=1)
        assert left_out.sum(axis=1).max() <= 1.0001 * pruning.LOST
    assert np.diff(near.cuts).mean() < 0.7 * 256


def test_nodes_found_in_one_call_are_those_that_bounds_keep(swept):
    model = GTM(nodes=16, basis=5, max_iter=8, tol=0.0).fit(sheet(3000))
    rows, nodes = prepared(model, sheet(3000))
    groups = pruning.make_groups(model._model.surface, rows, model.weights_, fine=True)
    find, negligible = nodes.near(groups.balls, pruning.LOST), np.log(pruning.LOST / (2 * len(nodes.centers)))
    for some in (slice(0, 1), slice(0, 7), slice(5, len(groups))):
        near, counts = find(some)
        expected, wanted = pruning._keep(nodes.bound(groups.balls.select(some), negligible), True)
        assert_array_equal(near, expected)
        assert_array_equal(counts, wanted)


def test_batches_that_follow_each_other_are_one(swept):
    model = GTM(nodes=16, basis=5, max_iter=8, tol=0.0).fit(sheet(3000))
    rows, nodes = prepared(model, sheet(3000))
    groups = pruning.make_groups(model._model.surface, rows, model.weights_, fine=True)
    batches = pruning.RowBatches(groups, pruning.near_nodes(model._model.noise, nodes, groups))
    assert len(batches) > 2
    (joined,) = batches[0:2]
    assert joined.n_pairs == batches[0].n_pairs + batches[1].n_pairs
    assert_array_equal(joined.rows, np.concatenate([batches[0].rows, batches[1].rows]))
    assert_array_equal(joined.near, np.concatenate([batches[0].near, batches[1].near]))
    assert_array_equal(joined.cuts[-1], len(joined.rows))
    assert batches[2:2] == []
