"""Rows in blocks: blocks equal the whole, memory stays bounded, BLAS gets its threads back."""

from __future__ import annotations

import multiprocessing
import os
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from time import sleep

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from prinfold.base.starting_points import principal_axes, weighted_mean
from prinfold.rows.rows import as_rows, blas_on_one_thread, for_each_block, shared_property, sum_blocks


def blas_threads() -> list[int]:
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


@pytest.fixture
def three_threads():
    """As if the machine had three cores, whatever it has."""
    with threadpool_limits(3, user_api="blas"), pytest.MonkeyPatch.context() as patch:
        patch.setattr("joblib.cpu_count", lambda: 3)
        yield


@pytest.mark.parametrize("threads", [1, 2, 3])
@given(n=st.integers(1, 50), block_rows=st.integers(1, 60))
def test_blocks_sum_to_the_whole(threads, n, block_rows):
    table = np.random.default_rng(n).normal(size=(n, 3))
    rows = as_rows(table, table.mean(axis=0), block_rows=block_rows)
    with threadpool_limits(threads, user_api="blas"), pytest.MonkeyPatch.context() as patch:
        patch.setattr("joblib.cpu_count", lambda: threads)
        total = sum_blocks(lambda part: rows.block(part).T @ rows.block(part), rows.slices)
        seen = np.zeros(n, dtype=int)

        def count(part: slice) -> None:
            seen[part] += 1

        for_each_block(count, rows.slices)
    centered = table - table.mean(axis=0)
    np.testing.assert_allclose(total, centered.T @ centered, atol=1e-12)
    np.testing.assert_array_equal(seen, 1)


def test_a_threaded_sum_repeats_itself_to_the_last_bit(three_threads, rng):
    table = rng.normal(size=(5000, 7))
    rows = as_rows(table, block_rows=17)

    def once():
        return sum_blocks(lambda part: rows.block(part).sum(axis=0), rows.slices)

    first = once()
    for _ in range(5):
        np.testing.assert_array_equal(once(), first)


def test_work_is_spread_over_the_threads_that_blas_was_allowed(three_threads):
    meet = threading.Barrier(3, timeout=20)  # breaks unless three blocks are under way at once
    for_each_block(lambda part: meet.wait() and None, [slice(i, i + 1) for i in range(3)])
    assert not meet.broken


def test_a_limit_set_by_the_caller_governs_our_threads():
    with threadpool_limits(1, user_api="blas"), blas_on_one_thread() as allowed:
        assert allowed == 1


def test_blas_is_held_to_one_thread_meanwhile_and_restored_after(three_threads):
    before = blas_threads()
    assert before
    assert set(before) == {3}
    inside = []
    for_each_block(lambda part: inside.append(blas_threads()), [slice(0, 1), slice(1, 2)])
    assert all(set(threads) == {1} for threads in inside)
    assert blas_threads() == before


@pytest.mark.parametrize("driver", [sum_blocks, for_each_block])
@pytest.mark.parametrize("n_blocks", [1, 5])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_passes_through_and_blas_is_restored(three_threads, driver, n_blocks, error):
    before = blas_threads()

    def fail(part: slice) -> float:
        if part.start == n_blocks - 1:
            raise error("the last block is bad")
        return 0.0

    with pytest.raises(error, match="the last block is bad"):
        driver(fail, [slice(i, i + 1) for i in range(n_blocks)])
    assert blas_threads() == before


def test_overlapping_passes_restore_blas_whoever_ends_last(three_threads):
    """The first to enter leaves first: what the second found was already the lowered limit."""
    before = blas_threads()
    second_in, first_out = threading.Event(), threading.Event()
    allowed = []

    def second() -> None:
        with blas_on_one_thread() as threads:
            allowed.append(threads)
            second_in.set()
            first_out.wait(20)

    with blas_on_one_thread() as threads:
        allowed.append(threads)
        thread = threading.Thread(target=second)
        thread.start()
        assert second_in.wait(20)
        assert set(blas_threads()) == {1}
    first_out.set()
    thread.join()
    assert blas_threads() == before
    assert allowed == [3, 3]
    with blas_on_one_thread():
        assert set(blas_threads()) == {1}


def test_passes_within_passes_restore_blas(three_threads):
    before = blas_threads()
    with blas_on_one_thread(), blas_on_one_thread():
        pass
    assert blas_threads() == before


def test_memory_of_a_pass_does_not_grow_with_the_rows(tmp_path):
    def peak(n: int) -> int:
        path = tmp_path / f"{n}.npy"
        np.save(path, np.zeros((n, 8), dtype=np.float32))
        table = np.load(path, mmap_mode="r")
        rows = as_rows(table, np.ones(8), width=512)
        tracemalloc.start()
        sum_blocks(lambda part: (rows.block(part) @ np.ones((8, 512), np.float32)).sum(axis=0), rows.slices)
        weighted_mean(table, None)
        principal_axes(rows, 2)
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    with threadpool_limits(1, user_api="blas"):  # each thread has a block of its own
        peak(1000)  # what the first call imports and caches
        small, large = peak(20_000), peak(200_000)
    assert large < small + 2e5  # the extra rows alone are 5.8 MB
    assert large < 200_000 * 8 * 4 / 2


def variants(table, folder):
    path = folder / "table.npy"
    np.save(path, table)
    wide = np.empty((2 * len(table), 2 * table.shape[1]), table.dtype)
    wide[::2, ::2] = table
    frozen = table.copy()
    frozen.setflags(write=False)
    np.save(folder / "f.npy", np.asfortranarray(table))
    return {
        "map": np.load(path, mmap_mode="r"),
        "map in F order": np.load(folder / "f.npy", mmap_mode="r"),
        "F order": np.asfortranarray(table),
        "strided": wide[::2, ::2],
        "backwards": np.ascontiguousarray(table[::-1])[::-1],
        "read-only": frozen,
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_however_the_table_lies_in_memory_its_blocks_are_the_same(tmp_path, rng, dtype):
    table = rng.normal(size=(101, 4)).astype(dtype)
    offset = table.mean(axis=0, dtype=float)
    plain = as_rows(table, offset, block_rows=13)
    for name, same in variants(table, tmp_path).items():
        rows = as_rows(same, offset, block_rows=13)
        for part in rows.slices:
            block = rows.block(part)
            np.testing.assert_array_equal(block, plain.block(part), err_msg=name)
            assert block.dtype == dtype
            assert block.flags.c_contiguous
    np.testing.assert_array_equal(table, plain.table)  # and none of it was written to


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_data_far_from_the_origin_keep_their_digits(rng, dtype):
    near = rng.integers(-64, 64, size=(500, 3)) / 8.0
    far = (near + 1e6).astype(dtype)  # eighths survive even in float32 at 1e6
    np.testing.assert_array_equal(far.astype(float) - 1e6, near)
    mean = weighted_mean(far, None)
    np.testing.assert_allclose(mean - 1e6, near.mean(axis=0), atol=1e-9)
    rows = as_rows(far, mean)
    np.testing.assert_allclose(rows.block(slice(None)), near - near.mean(axis=0), atol=2e-7 * 8)
    axes, truth = principal_axes(rows, 3), np.linalg.eigvalsh(np.cov(near.T, bias=True))[::-1]
    np.testing.assert_allclose(axes.variances, truth, rtol=1e-6)


def test_weights_are_cut_with_the_rows(rng):
    table, weight = rng.normal(size=(50, 2)), rng.uniform(size=50)
    rows = as_rows(table, weight=weight, block_rows=7)
    total = sum_blocks(lambda part: rows.block_weight(part) @ rows.block(part), rows.slices)
    np.testing.assert_allclose(total, weight @ table)
    assert rows.total_weight == pytest.approx(weight.sum())
    assert as_rows(table).total_weight == 50
    assert as_rows(table).block_weight(slice(0, 3)) is None


@given(n=st.integers(1, 300), block_rows=st.integers(1, 400))
def test_slices_partition_the_rows(n, block_rows):
    parts = as_rows(np.empty((n, 1)), block_rows=block_rows).slices
    np.testing.assert_array_equal(np.concatenate([np.arange(n)[part] for part in parts]), np.arange(n))
    assert max(part.stop - part.start for part in parts) <= block_rows


@given(width=st.integers(0, 10**9))
def test_a_block_is_never_too_small_to_be_worth_it_nor_too_large_for_a_cache(width):
    rows = as_rows(np.empty((1, 1)), width=width)
    assert 64 <= rows.block_rows <= 1024
    assert rows.block_rows * width <= 2**19 or rows.block_rows == 64


def test_what_is_shared_is_found_once_however_many_ask():
    asked = []

    class Slow:
        @shared_property
        def answer(self):
            """Of a long search."""
            asked.append(1)
            sleep(0.05)
            return object()

    one, other = Slow(), Slow()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda slow: slow.answer, [one] * 8))
    assert len(asked) == 1
    assert len(set(map(id, found))) == 1
    assert other.answer is not found[0]
    assert Slow.answer.__doc__ == "Of a long search."


@pytest.mark.usefixtures("three_threads")
def test_what_a_part_begins_by_itself_stays_on_its_thread():
    """Or all threads that are kept might wait for parts that none of them is left to take."""
    seen = []

    def outer(part):
        inner = []
        sleep(0.01)  # parts go to whoever is free
        for _ in range(2):  # the first must not make it forget that it is busy
            for_each_block(lambda _: inner.append(threading.get_ident()), range(6))
        seen.append((threading.get_ident(), set(inner)))

    for_each_block(outer, range(12))
    assert len(seen) == 12
    assert all(inner == {own} for own, inner in seen)
    assert len({own for own, _ in seen}) > 1


@pytest.mark.usefixtures("three_threads")
def test_an_error_is_passed_on_when_all_threads_have_come_to_an_end():
    begun, done = [], []

    def work(part):
        begun.append(part)
        if part == 1:
            raise ValueError("this part is bad")
        sleep(0.02)
        done.append(part)

    with pytest.raises(ValueError, match="this part is bad"):
        for_each_block(work, range(300))
    assert set(begun) == {1, *done}, "nobody is still at it"
    assert len(done) < 20, "the others do not go on to the end for nothing"
    for_each_block(done.append, range(3))  # and the threads are there for the next
    assert sorted(done[-3:]) == [0, 1, 2]


@pytest.mark.usefixtures("three_threads")
def test_threads_are_kept():
    seen = set()
    for _ in range(20):
        for_each_block(lambda _: (sleep(0.001), seen.add(threading.current_thread())), range(9))
    # One that has just done its work may not be free yet when the next pass begins; two new ones each time would be 41.
    assert 2 <= len(seen) < 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.usefixtures("three_threads")
def test_a_fork_has_threads_of_its_own():
    for_each_block(lambda _: None, range(6))  # begins threads that the child will not have
    child = multiprocessing.get_context("fork").Process(target=for_each_block, args=(abs, range(6)))
    child.start()
    child.join(30)
    assert child.exitcode == 0, "the child waits for threads that stayed behind"


def test_what_is_remembered_of_all_rows_is_made_once_and_kept_as_it_is():
    rows, made = as_rows(np.arange(6.0).reshape(3, 2)), []

    def make():
        made.append(1)
        return rows.block(slice(0, 3))

    first = rows.get_or_make("one", make)
    assert rows.get_or_make("one", make) is first
    with pytest.raises(ValueError, match="read-only"):
        first += 1.0
    assert rows.get_or_make("another", make) is not first
    assert len(made) == 2
