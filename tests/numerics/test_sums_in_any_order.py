"""Compiled sums whose order the compiler may choose do not depend on where in memory arrays happen to lie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit
from numpy.testing import assert_array_equal

from prinfold.density._kernel_sums_jit import _add_points
from prinfold.numerics._cell_lists_jit import _residual
from prinfold.numerics._compiled import centered


@njit
def center(row: Any, offset: Any, into: Any) -> float:
    return centered(row, offset, into)


@njit
def subtract(row: Any, y: Any) -> Any:
    return _residual(row, 0.7, y)


def square_of_centered(rng: np.random.Generator, n: int, lay: Callable[..., list[np.ndarray]]) -> Any:
    row, offset = rng.normal(size=n), rng.normal(size=n)
    offset, into = lay(offset, np.zeros(n))
    return [center(row, offset, into), *into]


def error_of_row(rng: np.random.Generator, n: int, lay: Callable[..., list[np.ndarray]]) -> Any:
    y, row = lay(rng.normal(size=n), rng.normal(size=n))
    return [*subtract(row, y), *row]


def sums_over_points(rng: np.random.Generator, n: int, lay: Callable[..., list[np.ndarray]]) -> Any:
    chunk, room = lay(rng.normal(size=(5, n)), np.zeros((2, n)))
    into = np.zeros((1, 15))
    _add_points(chunk, n, rng.normal(size=(1, 4)), True, into, room)
    return into


def side_by_side(*arrays: np.ndarray) -> list[np.ndarray]:
    """The same numbers, each array right behind the one before."""
    room = np.concatenate([each.ravel() for each in arrays])
    cuts = np.cumsum([0, *(each.size for each in arrays)])
    return [room[a:b].reshape(each.shape) for a, b, each in zip(cuts, cuts[1:], arrays, strict=False)]


def far_apart(*arrays: np.ndarray) -> list[np.ndarray]:
    """The same numbers, each array in room of its own."""
    return [np.append(each.ravel(), np.zeros(10_000))[: each.size].reshape(each.shape) for each in arrays]


@pytest.mark.parametrize("sums", [square_of_centered, error_of_row, sums_over_points])
def test_sums_are_the_same_to_the_last_bit_wherever_arrays_lie(sums):
    for n in range(1, 70):
        close = sums(np.random.default_rng(n), n, side_by_side)
        assert_array_equal(close, sums(np.random.default_rng(n), n, far_apart))
