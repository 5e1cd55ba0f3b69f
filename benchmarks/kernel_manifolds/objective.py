"""What the objective of kernel regression on latent points costs, as ratios to its products and to plain NumPy.

    python -m benchmarks.kernel_manifolds.objective [--full] [--only 1,3]

Over all pairs an evaluation with gradient is two products of rows × rows × columns, and everything else is work on each
pair. Over pairs within reach it should grow as the number of rows does, at a fixed number of neighbours. Contestants
take turns on one thread, medians are reported, and only times of the same run are compared, because machines are
shared.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from benchmarks.timing import Times, clocked, print_table, take_turns
from threadpoolctl import threadpool_limits

from prinfold.kernel_manifolds import objective as kernel_regression
from prinfold.kernel_manifolds.objective import DataTarget, GramTarget, KernelRegression, Target
from prinfold.kernel_manifolds.objective_sums import distance_factors
from prinfold.numerics._radial_kernels_jit import exponentials
from prinfold.numerics.radial_kernels import PROFILES, Profile

WANTED = 2.0
NEIGHBORS = 30
ROWS = 4000
QUARTIC = PROFILES["quartic"]


def sheet(n: int, D: int) -> tuple[np.ndarray, np.ndarray]:
    """Latent points with a fixed number of neighbours within one bandwidth, and data to predict."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, np.sqrt(n * np.pi / NEIGHBORS), (n, 2))
    Y = np.sin(X @ rng.standard_normal((2, D))) + 0.1 * rng.standard_normal((n, D))
    return X, Y - Y.mean(axis=0)


def on(target: Target, profile: Profile) -> KernelRegression:
    return KernelRegression(target, np.ones(target.n_rows), profile)


def through_all_pairs(work: Callable[[], Any]) -> Callable[[], list[float]]:
    """The same with no pair left out, whatever the kernel reaches."""

    def run() -> list[float]:
        kept, kernel_regression._SPARSE_SHARE = kernel_regression._SPARSE_SHARE, -1.0
        try:
            return clocked(work)
        finally:
            kernel_regression._SPARSE_SHARE = kept

    return run


def timed(runs: dict[str, Callable[[], Any]], turns: int) -> dict[str, Times]:
    with threadpool_limits(1):
        for once in runs.values():
            once()  # compiles, and pages in what it writes to
        return take_turns(runs, turns)


def block_rows(n: int) -> int:
    return int(np.clip(kernel_regression._BLOCK_ENTRIES // n, 32, 512))


# ------------------------------------------------------------------------------- 1. all pairs, against the floor


def products(Y: np.ndarray) -> Callable[[], None]:
    """Both products of every block, and nothing else."""
    n, b = len(Y), block_rows(len(Y))
    loaded, k, out = np.column_stack([Y, np.ones(n)]), np.full((b, n), 1 / n), np.empty((b, n))
    sums = np.empty((b, loaded.shape[1]))

    def run() -> None:
        for i in range(0, n, b):
            m = min(b, n - i)
            np.dot(k[:m], loaded, out=sums[:m])
            np.dot(sums[:m], loaded.T, out=out[:m])

    return run


def bench_dense(full: bool) -> None:
    lines = []
    for D in (12, 50, 256):
        X, Y = sheet(ROWS, D)
        runs: dict[str, Callable[[], Any]] = {"products": partial(clocked, products(Y))}
        for name in PROFILES:
            objective = on(DataTarget(Y), PROFILES[name])
            runs[name] = through_all_pairs(partial(objective.gradient, X))
            runs[f"{name}, value"] = through_all_pairs(partial(objective.value, X))
        took = timed(runs, 15 if full else 5)
        floor = took.pop("products").median
        for name, each in took.items():
            rest = 1e9 * (each.median - floor) / ROWS**2
            verdict = "–" if "value" in name else "yes" if each.median <= WANTED * floor else "NO"
            lines.append((f"D={D}", name, 1e3 * floor, 1e3 * each.median, each.median / floor, rest, verdict))
    heads = ("size", "evaluation", "products ms", "ms", "ratio", "rest, ns per pair", f"≤ {WANTED:g}")
    print_table(f"1. All pairs of {ROWS} rows, against the two products of the gradient", heads, lines)
    bench_rest(full)


def bench_rest(full: bool) -> None:
    """What is done to each pair beside the products, step by step on one block."""
    X, _ = sheet(ROWS, 1)
    b = block_rows(ROWS)
    left, right = distance_factors(X)
    points = np.ascontiguousarray(X.T)
    ends, s, room = np.column_stack([X, np.ones(ROWS)]), np.empty((b, ROWS)), np.empty((b, ROWS))
    apart = np.clip(left[:b] @ right, 0, 1200)
    halved, inside = -0.5 * apart, 1.0 - apart
    steps: dict[str, Callable[[], Any]] = {
        "distances": partial(np.dot, left[:b], right, out=s),
        "distances and gaussian, compiled": partial(exponentials, X, 0, points, -0.5, -600.0, s),
        "gaussian of arrays, with a copy": lambda: (np.copyto(s, halved), PROFILES["gaussian"].split(s, room)),
        "quartic, with a copy": lambda: (np.copyto(s, inside), QUARTIC.split(s, room)),
        "a copy": partial(np.copyto, s, apart),
        "times the slope": partial(np.multiply, apart, room, out=s),
        "thin product by rows": lambda: apart @ ends,
        "thin product by columns": lambda: ends[:b].T @ apart,
    }
    took = timed({name: partial(clocked, step, 20) for name, step in steps.items()}, 10 if full else 3)
    lines = [(name, 1e9 * each.median / (b * ROWS)) for name, each in took.items()]
    print_table("   … what the rest consists of", ("step", "ns per pair"), lines)


# ------------------------------------------------------------------------- 2. pairs within reach, against all pairs


def bench_sparse(full: bool) -> None:
    lines = []
    for n in (1000, 2000, 4000) if full else (1000, 4000):
        for D in (12, 50, 256):
            X, Y = sheet(n, D)
            data, gram = on(DataTarget(Y), QUARTIC), on(GramTarget(Y @ Y.T), QUARTIC)
            runs: dict[str, Callable[[], Any]] = {
                "sparse": partial(clocked, partial(data.gradient, X)),
                "gram": partial(clocked, partial(gram.gradient, X)),
                "dense": through_all_pairs(partial(data.gradient, X)),
            }
            took = timed(runs, 15 if full else 5)
            sparse = took["sparse"].median
            off = np.abs(data.gradient(X).gradient - gram.gradient(X).gradient).max()
            cells = (1e3 * took["dense"].median, 1e3 * sparse, 1e3 * took["gram"].median)
            lines.append((n, D, *cells, took["dense"].median / sparse, took["gram"].median / sparse, off))
    heads = (
        "rows",
        "D",
        "all pairs ms",
        "within reach ms",
        "… inner products ms",
        "all / reach",
        "inner / reach",
        "off by",
    )
    print_table(f"2. Pairs within reach of a quartic kernel, about {NEIGHBORS} for each row", heads, lines)


# --------------------------------------------------------------------------------------------------- 3. growth


def bench_growth(full: bool) -> None:
    sizes = (1000, 3000, 10_000, 30_000, 100_000)
    lines = []
    for D in (12, 50):
        runs: dict[str, Callable[[], Any]] = {}
        for n in sizes:
            X, Y = sheet(n, D)
            runs[str(n)] = partial(clocked, partial(on(DataTarget(Y), QUARTIC).gradient, X))
        took = [each.median for each in timed(runs, 9 if full else 3).values()]
        exponent = np.polyfit(np.log(sizes), np.log(took), 1)[0]
        per_pair = [1e9 * each / (NEIGHBORS * n) for n, each in zip(sizes, took, strict=True)]
        lines += [(D, n, 1e3 * t, p, "") for n, t, p in zip(sizes, took, per_pair, strict=True)]
        lines.append((D, "all", "", "", float(exponent)))
    heads = ("D", "rows", "ms", "ns per pair", "exponent")
    print_table(f"3. Growth with the number of rows, about {NEIGHBORS} neighbours each", heads, lines)


# --------------------------------------------------------------------------------------------- 4. plain NumPy


def whole_matrices(X: np.ndarray, Y: np.ndarray, profile: Profile) -> np.ndarray:
    """The gradient as one would write it down, (31) and (32) of Meinicke et al. with rows for columns."""
    n = len(X)
    s = np.square(X[:, None] - X[None]).sum(axis=2)
    K, slope = profile.value(s), profile.slope(s)
    np.fill_diagonal(K, 0.0)
    total = K.sum(axis=1, keepdims=True)
    total[total == 0] = 1.0
    B, P = K / total, -2 * slope / total
    M = (B @ Y - Y) @ Y.T
    Q = P * (M - (M * B).sum(axis=1, keepdims=True))
    both = Q + Q.T
    return np.asarray(2 / n * (both @ X - both.sum(axis=1)[:, None] * X))


def bench_plain(full: bool) -> None:
    lines = []
    for n in (300, 1000, 3000) if full else (300, 1000):
        for D in (12, 50):
            X, Y = sheet(n, D)
            for name in ("gaussian", "quartic"):
                objective = on(DataTarget(Y), PROFILES[name])
                runs: dict[str, Callable[[], Any]] = {
                    "plain": partial(clocked, partial(whole_matrices, X, Y, PROFILES[name])),
                    "ours": partial(clocked, partial(objective.gradient, X)),
                }
                took = timed(runs, 15 if full else 5)
                plain, ours = took["plain"].median, took["ours"].median
                off = np.abs(whole_matrices(X, Y, PROFILES[name]) - objective.gradient(X).gradient).max()
                lines.append((n, D, name, 1e3 * plain, 1e3 * ours, plain / ours, off))
    heads = ("rows", "D", "kernel", "plain ms", "ours ms", "plain / ours", "off by")
    print_table("4. Against whole matrices in NumPy", heads, lines)


TABLES = {"1": bench_dense, "2": bench_sparse, "3": bench_growth, "4": bench_plain}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="more repetitions and sizes")
    parser.add_argument("--only", default=",".join(TABLES), help="tables to print, as 1,3")
    arguments = parser.parse_args()
    for name in arguments.only.split(","):
        TABLES[name](arguments.full)


if __name__ == "__main__":
    main()
