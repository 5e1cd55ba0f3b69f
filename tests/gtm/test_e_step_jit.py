"""The compiled sweep over groups of rows against its definition, and what it takes to have it compiled."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from prinfold.gtm import _e_step_jit as sweeps
from prinfold.gtm import _node_bounds_jit as ball_bounds
from prinfold.gtm.noise.isotropic import IsotropicNoise
from prinfold.gtm.softmax import _EXPONENT_LIMIT, sound_sums
from prinfold.rows.rows import as_rows


def job(seed, sizes, n_near, C, dtype, away=0.0, steep=1.0):
    """Random rows in groups, each with its own components; row 0 may lie far from all of them."""
    rng = np.random.default_rng(seed)
    K, n = 30, sum(sizes)
    T, Y = rng.normal(size=(n, C - 2)), rng.normal(size=(K, C - 2))
    T[0] += away
    loaded = np.column_stack([-0.5 * np.square(T).sum(axis=1), T, np.ones(n)]).astype(dtype)
    loading = steep * np.column_stack([np.ones(K), Y, -0.5 * np.square(Y).sum(axis=1)])
    near = [np.sort(rng.choice(K, size=n_near, replace=False)) for _ in sizes]
    return loaded, loading.astype(dtype), near, np.append(0, np.cumsum(sizes)), rng.uniform(0, 2, n)


def swept(loaded, loading, near, cuts, share, scale=1.0):
    (K, C), log_sum = loading.shape, np.empty(len(loaded))
    moment, mass = np.zeros((K, C - 2)), np.zeros(K)
    near_cuts = np.append(0, np.cumsum([len(each) for each in near]))
    groups = cuts, np.concatenate(near), near_cuts
    sweeps.sweep(loaded.copy(), share, *groups, scale, sound_sums(loaded.dtype), loading, moment, mass, log_sum)
    return np.column_stack([moment, mass]), log_sum


def defined(loaded, loading, near, cuts, share):
    groups = [(slice(a, b), nodes) for a, b, nodes in zip(cuts[:-1], cuts[1:], near, strict=True)]
    moment, mass, log_sum = sweeps.sweep_reference(loaded, share, groups, loading)
    return np.column_stack([moment, mass]), log_sum


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    n_near=st.integers(1, 30),
    C=st.integers(3, 9),
    away=st.sampled_from([0.0, 10.0, 1e3, 1e6]),
    steep=st.sampled_from([1e-3, 1.0, 100.0]),
)
def test_a_sweep_is_what_it_is_defined_to_be(dtype, seed, sizes, n_near, C, away, steep):
    given_job = job(seed, sizes, n_near, C, dtype, away, steep)
    products, log_sum = swept(*given_job)
    expected, expected_sum = defined(*given_job)
    eps = float(np.finfo(dtype).eps)
    # Exponents are as large as the row is far, and rounded so.
    rounding = 50 * eps * (1 + steep * (10 + away) * 10)
    assert_allclose(log_sum, expected_sum, rtol=50 * eps, atol=rounding + 50 * eps * steep * 100)
    largest = np.abs(given_job[0][:, 1:]).max(axis=0)
    if rounding < 1:
        assert_allclose(products / largest, expected / largest, rtol=0, atol=sum(sizes) * 2 * rounding)
    assert np.isfinite(products).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    n_near=st.integers(1, 30),
    away=st.sampled_from([0.0, 10.0, 1e3]),
)
def test_weights_are_those_that_a_sweep_sums_up(dtype, seed, sizes, n_near, away):
    loaded, loading, near, cuts, share = job(seed, sizes, n_near, 5, dtype, away)
    near_cuts = np.append(0, np.cumsum([len(each) for each in near]))
    weights, (total, log_sum) = np.empty(len(loaded) * n_near, dtype=dtype), np.empty((2, len(loaded)))
    groups = cuts, np.concatenate(near), near_cuts
    sweeps.weigh_groups(loaded, *groups, sound_sums(loaded.dtype), loading, weights, total, log_sum)
    products, expected_sum = swept(loaded, loading, near, cuts, share)
    assert_array_equal(log_sum, expected_sum)
    found, weight = np.zeros(loading.shape), weights.reshape(-1, n_near).astype(np.float64)
    eps = float(np.finfo(dtype).eps)
    assert_allclose(weight.sum(axis=1), total, rtol=40 * eps)
    for nodes, a, b in zip(near, cuts[:-1], cuts[1:], strict=True):
        found[nodes] += (weight[a:b] / total[a:b, None]).T @ (share[a:b, None] * loaded[a:b].astype(np.float64))
    assert_allclose(products, found[:, 1:], rtol=200 * eps, atol=200 * eps * np.abs(loaded).max())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_weights_scale_the_sums(dtype):
    loaded, loading, near, cuts, share = job(0, [5, 3], 7, 5, dtype)
    once, _ = swept(loaded, loading, near, cuts, share)
    twice, _ = swept(loaded, loading, near, cuts, share, 2.0)
    assert_array_equal(twice, 2.0 * once)
    none, _ = swept(loaded, loading, near, cuts, np.zeros_like(share))
    assert_array_equal(none, 0.0)


def test_exponents_are_held_within_the_span_that_sums_are_judged_by():
    for dtype in (np.float64, np.float32):
        loaded, loading = np.array([[0.0, 1.0]], dtype), np.array([[1.0, -1e3], [1.0, -1e3]], dtype)
        sums, log_sum = (np.zeros((2, 0)), np.zeros(2)), np.empty(1)
        groups = np.array([0, 1]), np.array([0, 1]), np.array([0, 2])
        # With every sum judged sound, what was held at the end of the span shows.
        sweeps.sweep(loaded, np.ones(1), *groups, 1.0, (0.0, np.inf), loading, *sums, log_sum)
        assert log_sum[0] == pytest.approx(np.log(2) - _EXPONENT_LIMIT[np.dtype(dtype)])


def test_small_fits_never_load_the_compiler():
    program = (
        "import sys, warnings; warnings.simplefilter('ignore'); import numpy as np; from prinfold import GTM; "
        "X = np.random.default_rng(0).normal(size=(300, 5)); GTM(max_iter=20).fit(X).transform(X); "
        "sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@given(seed=st.integers(0, 2**32 - 1), K=st.integers(1, 40), spread=st.sampled_from([1.0, 10.0, 100.0]))
def test_what_is_left_out_cannot_hold_more_than_may_be_lost(seed, K, spread):
    rng = np.random.default_rng(seed)
    lost = 1e-9
    bound = np.log(lost) + spread * rng.normal(size=(5, K))
    kept, counts = ball_bounds.keep_near(bound, lost)
    ends = np.cumsum(counts)
    for row, end, count in zip(bound, ends, counts, strict=True):
        mine = kept[end - count : end]
        assert (np.diff(mine) > 0).all()
        others = np.setdiff1d(np.arange(K), mine)
        assert np.exp(np.minimum(row[others], 0.0)).sum() <= lost * (1 + 1e-12)
        assert (row[mine] >= np.log(lost / (2 * K))).all(), "nothing is kept that could not matter"
        if len(others) and count:
            assert row[others].max() <= row[mine].min()
        # One bin more would have been too much, by half of what may be lost at most.
        if count:
            bin_width = np.log(2 * K) / 64
            next_bin = row[mine] <= row[mine].min() + bin_width
            above = np.exp(np.minimum(row[others][row[others] >= np.log(lost / (2 * K))], 0.0)).sum()
            assert above + np.exp(np.minimum(row[mine][next_bin], 0.0)).sum() > 0.5 * lost


def test_a_bound_that_is_no_number_leaves_nothing_out_that_matters():
    kept, counts = ball_bounds.keep_near(np.array([[0.0, np.inf, -np.inf, -1e300], [np.nan, 1e300, -1e300, 0.0]]), 1e-9)
    assert_array_equal(kept, [0, 1, 0, 1, 3])
    assert_array_equal(counts, [2, 3])


# ------------------------------------------------------------------------------------- noise that turns


def turned_job(seed, sizes, n_near, Q, C, dtype, away=0.0, own=False):
    """As :func:`job`, with tangents; ‖t‖² is in the last column, which components share unless they are ``own``."""
    rng = np.random.default_rng(seed)
    K, n = 30, sum(sizes)
    T, Y, E = rng.normal(size=(n, C - 2)), rng.normal(size=(K, C - 2)), rng.normal(size=(Q, K, C - 2))
    T[0] += away
    inverse = rng.uniform(0.5, 2, K) if own else np.ones(K)
    loaded = np.column_stack([T, np.ones(n), np.square(T).sum(axis=1)]).astype(dtype)
    first = np.column_stack([inverse[:, None] * Y, -0.5 * inverse * np.square(Y).sum(axis=1), -0.5 * inverse])
    E *= np.sqrt(0.4 * inverse.min() / np.square(E).sum(axis=(0, 2)).max())  # so that nothing runs off to infinity
    others = np.concatenate([E, -np.einsum("qkd,kd->qk", E, Y)[:, :, None], np.zeros((Q, K, 1))], axis=2)
    near = [np.sort(rng.choice(K, size=n_near, replace=False)) for _ in sizes]
    signs = np.where(rng.uniform(size=K) < 0.5, -1.0, 1.0) if own else np.full(K, rng.choice([-1.0, 1.0]))
    loading = np.concatenate([first[None], others]).astype(dtype)
    return loaded, loading, signs.astype(dtype), near, np.append(0, np.cumsum(sizes)), rng.uniform(0, 2, n)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("crossed", [False, True])
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    n_near=st.integers(1, 30),
    Q=st.integers(1, 3),
    C=st.integers(4, 9),
    away=st.sampled_from([0.0, 10.0, 1e3]),
    own=st.booleans(),
)
def test_a_sweep_of_turning_noise_is_what_it_is_defined_to_be(dtype, crossed, seed, sizes, n_near, Q, C, away, own):
    loaded, loading, signs, near, cuts, share = turned_job(seed, sizes, n_near, Q, C, dtype, away, own)
    near_cuts = np.append(0, np.cumsum([len(each) for each in near]))
    products, tangential = np.zeros(loading.shape[1:]), np.zeros(30)
    cross, log_sum = np.zeros((Q if crossed else 0, *loading.shape[1:])), np.empty(len(loaded))
    groups = cuts, np.concatenate(near), near_cuts
    sound = sound_sums(loaded.dtype)
    sweeps.sweep_turned(loaded.copy(), share, *groups, 2.0, sound, loading, signs, products, tangential, cross, log_sum)
    pairs = [(slice(a, b), nodes) for a, b, nodes in zip(cuts[:-1], cuts[1:], near, strict=True)]
    expected = sweeps.sweep_turned_reference(loaded, share, pairs, loading, signs)
    eps = float(np.finfo(dtype).eps)
    rounding = 100 * eps * (10 + away) ** 2  # exponents are as large as the squares of the rows
    assert_allclose(log_sum, expected[3], rtol=50 * eps, atol=rounding)
    assert np.isfinite(products).all()
    if rounding < 0.1:
        largest = np.abs(loaded).max(axis=0)
        tolerance = {"rtol": 0, "atol": 4 * sum(sizes) * rounding}
        assert_allclose(products / largest, 2 * expected[0] / largest, **tolerance)
        reach = (10 + away) ** 2
        assert_allclose(tangential / reach, 2 * expected[1] / reach, **tolerance)
        if crossed:
            assert_allclose(cross / largest / reach, 2 * expected[2] / largest / reach, **tolerance)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_chosen_are_loaded_as_blocks_are(dtype, rng):
    table = (rng.normal(size=(40, 5)) + 1e4).astype(dtype)
    rows, noise = as_rows(table, table.mean(axis=0, dtype=np.float64)), IsotropicNoise(1e-9)
    chosen = rng.permutation(40)[:17].astype(np.int32)
    assert rows.plain
    found = noise.capabilities.load_chosen(rows, chosen)
    assert_allclose(found, noise.load(rows.block(chosen)), rtol=4 * np.finfo(dtype).eps)


def test_tables_that_are_more_than_rows_in_memory_are_not_plain(rng, tmp_path):
    table = rng.normal(size=(8, 3))
    np.save(tmp_path / "x.npy", table)
    others = [
        as_rows(np.load(tmp_path / "x.npy", mmap_mode="r")),
        as_rows(np.asfortranarray(table)),
        as_rows(scipy.sparse.csr_matrix(table)),
        as_rows(table, gaps=True),
        replace(as_rows(table), scale=np.ones(3)),
    ]
    assert not any(rows.plain for rows in others)
