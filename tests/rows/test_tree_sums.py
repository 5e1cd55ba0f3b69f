"""Sums by a fixed tree: the same to the last bit in whichever order they come, with little held at any time."""

from __future__ import annotations

import operator
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from prinfold.rows.rows import sum_blocks, sum_through
from prinfold.rows.tree_sums import TreeSum, cut_into_leaves, tree_sum


def by_the_definition(values):
    """Neighbours are added, level by level; one without a neighbour goes up as it is."""
    while len(values) > 1:
        pairs = [values[i] + values[i + 1] for i in range(0, len(values) - 1, 2)]
        values = pairs + values[2 * len(pairs) :]
    return values[0]


class Term(str):
    """A sum that remembers how it was made: addition that is neither commutative nor associative."""

    def __add__(self, other):
        return Term(f"({self!s}{other!s})")


def terms(n):
    return [Term(chr(97 + i)) for i in range(n)]


@given(st.integers(1, 26), st.randoms(use_true_random=False))
def test_the_order_in_which_values_come_changes_nothing(n, random):
    tree, order = TreeSum(), list(range(n))
    random.shuffle(order)
    values = terms(n)
    for index in order:
        tree.put(index, values[index])
    assert tree.total() == by_the_definition(values) == tree_sum(values)


def test_seven_leaves():
    assert tree_sum(terms(7)) == "(((ab)(cd))((ef)g))"


@given(st.integers(1, 2000))
def test_what_waits_is_logarithmic_where_values_come_in_order(n):
    tree = TreeSum()
    for index in range(n):
        tree.put(index, 1)
        assert tree.n_waiting <= np.log2(index + 1) + 1
    assert tree.total() == n


@given(st.integers(1, 26), st.randoms(use_true_random=False))
def test_sums_that_belong_to_nobody_are_added_in_their_own_memory(n, random):
    values, order = list(np.random.default_rng(n).normal(size=(n, 5))), list(range(n))
    random.shuffle(order)
    wanted, tree = by_the_definition(values), TreeSum(operator.iadd)
    own = [value.copy() for value in values]
    for index in order:
        tree.put(index, own[index])
    found = tree.total()
    np.testing.assert_array_equal(found, wanted)
    assert any(found is each for each in own)


def test_threads_put_in_what_they_like():
    values = np.random.default_rng(0).normal(size=1001)
    tree = TreeSum()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(tree.put, range(1001), values))
    assert tree.total() == by_the_definition(list(values))


@given(st.lists(st.integers(0, 1000), max_size=60), st.floats(0, 3000))
def test_leaves_are_runs_that_cover_all_parts(sizes, least):
    leaves = cut_into_leaves(sizes, least)
    assert [i for leaf in leaves for i in range(leaf.start, leaf.stop)] == list(range(len(sizes)))
    assert all(leaf.stop > leaf.start for leaf in leaves)
    assert len(leaves) <= max(1, sum(sizes) // max(least, 1))


def test_many_parts_make_a_bounded_number_of_leaves():
    leaves = cut_into_leaves([1] * 100_000)
    assert len(leaves) == 256
    assert {leaf.stop - leaf.start for leaf in leaves} <= {390, 391}


class Adding:
    """Adds up numbers, and says how many of its kind there are."""

    made = 0

    def __init__(self):
        self.sum = 0.0
        type(self).made += 1

    def add(self, part):
        self.sum += part

    def take_sum(self):
        found, self.sum = self.sum, 0.0
        return found


@pytest.mark.parametrize("n_parts", [0, 1, 7, 1000])
def test_sums_are_the_same_on_any_number_of_threads(n_parts, monkeypatch):
    monkeypatch.setattr("prinfold.rows.rows._ENTRIES_PER_THREAD", 1)
    parts = list(np.random.default_rng(1).normal(size=n_parts))
    found = set()
    for n in (1, 2, 3, 5):
        monkeypatch.setattr("joblib.cpu_count", lambda n=n: n)
        Adding.made = 0
        with threadpool_limits(n):
            found.add(sum_through(Adding, parts, [1] * n_parts))
            if n_parts:
                assert sum_blocks(lambda part: part, parts) == by_the_definition(parts)
        assert Adding.made == max(1, min(n, n_parts))
    assert len(found) == 1


def test_memory_is_logarithmic_for_each_thread(monkeypatch):
    """Sums that are held at the same time, one thread being so slow that the others do nearly all of the work."""
    monkeypatch.setattr("prinfold.rows.rows._ENTRIES_PER_THREAD", 1)
    monkeypatch.setattr("joblib.cpu_count", lambda: 3)
    held, most, lock, last = [0], [0], threading.Lock(), threading.Event()

    class Counted:
        def __init__(self):
            with lock:
                held[0] += 1
                most[0] = max(most[0], held[0])

        def __add__(self, other):
            found = Counted()
            with lock:
                held[0] -= 2
            return found

    class Slow(Adding):
        def add(self, part):
            if part == 0:
                last.wait(20)
            if part == 255:
                last.set()

        def take_sum(self):
            return Counted()

    with threadpool_limits(3):
        sum_through(Slow, list(range(256)), [1] * 256)
    assert held[0] == 1
    assert most[0] <= 3 * (np.log2(256) + 1)
