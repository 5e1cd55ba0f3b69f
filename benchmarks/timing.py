"""What the benchmarks share: turns, tables, memory, and the floor that times are held against."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

_PAUSE = 0.05
"""Seconds between contestants: threads of BLAS wait busily for a while after a product, at the next one's cost."""


class Times(list[float]):
    """Seconds of several repetitions."""

    @property
    def median(self) -> float:
        return float(np.median(self)) if self else float("nan")

    @property
    def least(self) -> float:
        return min(self, default=float("nan"))

    @property
    def mean(self) -> float:
        return float(np.mean(self)) if self else float("nan")


def clocked(work: Callable[[], Any], repeats: int = 1) -> list[float]:
    """Seconds of each repetition."""
    seconds = []
    for _ in range(repeats):
        clock = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - clock)
    return seconds


def take_turns(
    runs: Mapping[str, Callable[[], float | Iterable[float]]], turns: int, seldom: Mapping[str, int] | None = None
) -> dict[str, Times]:
    """Repetitions that take turns, because machines are shared; ``seldom`` names those that run only so many times.

    A run returns its seconds itself, once or several times over, so that what it prepares is not counted.
    """
    seconds = {name: Times() for name in runs}
    for turn in range(turns):
        for name, once in runs.items():
            if turn < (seldom or {}).get(name, turns):
                time.sleep(_PAUSE)
                took = once()
                seconds[name].extend(took if isinstance(took, Iterable) else [took])
    return seconds


def floor(X: np.ndarray, n_nodes: int, repeats: int = 1) -> Callable[[], list[float]]:
    """The two matrix products that no EM iteration does without, K×D·D×N and K×N·N×D, in the type of X."""
    n, D = X.shape
    Y, R = np.ones((n_nodes, D), X.dtype), np.full((n, n_nodes), 1 / n_nodes, X.dtype)
    moment = np.empty((n_nodes, D), X.dtype)

    def products() -> None:
        np.dot(X, Y.T, out=R)
        np.dot(R.T, X, out=moment)

    products()  # pages in what it writes to
    return lambda: clocked(products, repeats)


def peak_mb(work: Callable[[], Any]) -> float:
    """MB allocated at the peak of some work, what was there before not counted."""
    gc.collect()
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def print_table(title: str, heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Columns as wide as what is in them; numbers to three figures."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(len(line[i]) for line in [heads, *cells]) for i in range(len(heads))]
    print(f"\n{title}")
    for line in [heads, *cells]:
        fitted = [cell.rjust(width) for cell, width in zip(line, widths, strict=True)]
        fitted[0] = line[0].ljust(widths[0])
        print("  " + "  ".join(fitted).rstrip())
    print(flush=True, end="")


def _cell(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    if not np.isfinite(value):
        return "–"
    size = abs(value)
    if size and not 1e-3 <= size < 1e6:
        return f"{value:.1e}"
    return (
        f"{value:.0f}"
        if size >= 100
        else f"{value:.1f}"
        if size >= 10
        else f"{value:.2f}"
        if size >= 0.1
        else f"{value:.3f}"
    )
