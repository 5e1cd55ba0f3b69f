"""What sums of Gaussian kernels with gradient and Hessian cost: per pair, per place, and as rows grow in number.

    python -m benchmarks.density.kernel_sums [--full] [--only 1,4]

Rows lie about a spiral, as they would about a ridge: noise .04, bandwidth .08. Times are seconds of this process's own
work on one thread, contestants take turns, the least of each is reported, and only times of the same run are compared,
because machines are shared.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.timing import peak_mb, print_table
from numba import njit
from scipy.spatial import cKDTree
from threadpoolctl import threadpool_limits

from prinfold import datasets
from prinfold.density import _kernel_sums_jit
from prinfold.density.adaptive import AdaptiveDensity
from prinfold.density.dense_kernel_sums import DenseSums
from prinfold.density.densities import KernelDensity
from prinfold.density.kernel_sums import Accuracy, BallSums
from prinfold.density.patches import make_patched_sums
from prinfold.numerics.cell_lists import share_within

NOISE, BANDWIDTH = 0.04, 0.08
EXPONENTS = {2: 1.15, 3: 1.2}
"""How rows may grow dearer, at most."""

PLAIN = Accuracy(patches=False)


def curve(n: int, D: int) -> np.ndarray:
    """Rows about a spiral of two turns; in three columns it rises."""
    rng = np.random.default_rng(0)
    flat = datasets.make_spiral(n, noise=0.0, rng=0).X
    if D > 2:
        flat = np.column_stack([flat, np.linalg.norm(flat, axis=1)])
    return flat + NOISE * rng.standard_normal(flat.shape)


def least(runs: dict[str, Callable[[], Any]], turns: int) -> dict[str, float]:
    """Seconds of this process, the least of some turns."""
    took: dict[str, float] = {}
    for work in runs.values():
        work()  # compiles, and makes what is made once
    for _ in range(turns):
        for name, work in runs.items():
            clock = time.process_time()
            work()
            took[name] = min(took.get(name, np.inf), time.process_time() - clock)
    return took


def once(work: Callable[[], Any]) -> float:
    clock = time.process_time()
    work()
    return time.process_time() - clock


# ---------------------------------------------------------------------------------- 1. per pair, against the floor


@njit(nogil=True)
def exponentials(x: np.ndarray, out: np.ndarray, times: int) -> None:
    for _ in range(times):
        for j in range(len(x)):
            out[j] = _kernel_sums_jit.exp64(x[j])


@njit(nogil=True)
def chunks(chunk: np.ndarray, Y: np.ndarray, merged: bool, into: np.ndarray, room: np.ndarray) -> None:
    _kernel_sums_jit.add_chunk(chunk, chunk.shape[1], Y, merged, True, into, room)


def bench_pairs(full: bool) -> None:
    lines = []
    for D in (2, 3):
        for n in (10_000, 100_000):
            rows = curve(n, D) / BANDWIDTH
            sums, some = BallSums(rows, np.ones(n), PLAIN), rows[:: n // 2000]
            n_sums = 1 + D + D * (D + 1) // 2
            chunk, Y = np.full((n_sums, 1024), -0.5), np.zeros((1000, D))
            into, room, x = np.zeros((1000, n_sums)), np.empty((2, 1024)), np.full(1024, -0.5)
            runs = {
                "exp": lambda x=x: exponentials(x, np.empty_like(x), 1000),
                "floor": lambda chunk=chunk, Y=Y, into=into, room=room: chunks(chunk, Y, False, into, room),
                "merged": lambda chunk=chunk, Y=Y, into=into, room=room: chunks(chunk, Y, True, into, room),
                "sums": lambda sums=sums, rows=rows: sums.moments(rows if len(rows) < 2e4 else rows[:20_000]),
            }
            took = least(runs, 7 if full else 3)
            places = min(n, 20_000)
            Z = sums._reorder(rows[:places])
            out = sums.moments(rows[:places])
            looked = (
                _kernel_sums_jit.sum_balls(Z, sums._group(Z, np.arange(places)), *sums._plain, sums._axes, *out)
                / places
            )
            near = np.mean(cKDTree(rows).query_ball_point(some, sums.reach, return_length=True))
            floor = took["floor"] / (1000 * 1024)
            each = took["sums"] / places
            lines.append(
                (
                    f"{D} columns, {n}",
                    1e9 * took["exp"] / (1000 * 1024),
                    1e9 * floor,
                    1e9 * took["merged"] / (1000 * 1024),
                )
                + (float(near), float(looked / near), 1e9 * each / looked, 1e9 * each / near, each / looked / floor)
            )
    heads = ("rows", "exp ns", "floor ns", "merged ns", "in reach", "looked at /", "ns a look", "ns in reach", "ratio")
    print_table(
        "1. Per pair: exp, exp with all products (the floor), a merged point's; and sums in balls over it", heads, lines
    )


# --------------------------------------------------------------------------------- 2. which way for which columns


def bench_ways(full: bool) -> None:
    lines, rng, n = [], np.random.default_rng(0), 500
    for m in (3000, 30_000) if full else (10_000,):
        for D in (2, 3, 4, 6, 8, 12, 16):
            t = rng.uniform(-1, 1, (m, 2))
            surface = np.column_stack([t, np.sin(3 * t[:, 0]), t[:, 0] * t[:, 1]]) @ rng.standard_normal((4, D))
            X = surface / surface.std() + 0.05 * rng.standard_normal((m, D))
            for h in (0.05, 0.2, 1.0):
                rows, weight = X / h, np.ones(m)
                balls, products, tree = BallSums(rows, weight, PLAIN), DenseSums(rows, weight), cKDTree(rows)
                Z = rows[:n]
                runs = {
                    "balls": lambda balls=balls, Z=Z: balls.moments(Z),
                    "products": lambda products=products, Z=Z: products.moments(Z),
                    "tree": lambda t=tree, Z=Z, r=balls.reach: t.query_ball_point(Z, r, return_length=True),
                }
                took = {name: 1e6 * each / n for name, each in least(runs, 3 if full else 1).items()}
                faster = "balls" if took["balls"] < took["products"] else "products"
                share = share_within(rows, balls.reach)
                lines.append((f"{m}, {D} columns", h, share, took["balls"], took["products"], took["tree"], faster))
    heads = ("rows", "bandwidth", "in reach", "balls µs", "products µs", "counting by tree µs", "faster")
    print_table("2. A place with many columns: sums in balls, by products of matrices, and only counting", heads, lines)


# ----------------------------------------------------------------------------- 3. what merging and patches are off


def bench_accuracy(full: bool) -> None:
    lines = []
    n = 200_000 if full else 50_000
    for D in (2, 3):
        rows = curve(n, D) / BANDWIDTH
        Z, weight = rows[:1000], np.ones(n)
        exact = BallSums(rows, weight, Accuracy(0.0)).moments(Z)
        ways: dict[str, Any] = {f"reach, ε = {e:g}": BallSums(rows, weight, Accuracy(e)) for e in (1e-3, 1e-6)}
        ways |= {f"merged in cells of {c:g}": BallSums(rows, weight, Accuracy(side=c)) for c in (0.5, 0.25, 0.125)}
        ways["patches"] = make_patched_sums(ways["reach, ε = 1e-06"], rows)
        took = least({name: lambda sums=sums, Z=Z: sums.moments(Z) for name, sums in ways.items()}, 3)
        for name, sums in ways.items():
            at = sums.moments(Z)
            off = [float(np.abs(a - b).max()) for a, b in zip(at, exact, strict=True)]
            lines.append((f"{D} columns, {n}", name, 1e6 * took[name] / len(Z), *off))
    heads = ("rows", "way", "µs a place", "log p off", "shift off", "spread off")
    print_table("3. What is left out, at rows: against sums over all of them, in bandwidths", heads, lines)


# ------------------------------------------------------------------------------------- 4. growth at one bandwidth


def bench_growth(full: bool) -> None:
    sizes = (10_000, 100_000, 1_000_000) if full else (10_000, 30_000, 100_000, 300_000)
    lines = []
    for D in (2, 3):
        rows = curve(3000, D)
        KernelDensity(rows, np.ones(3000), 5 * BANDWIDTH, "compressed").derivatives(rows)  # compiles
        for accuracy in ("truncated", "compressed"):
            spent: list[list[float]] = []
            for n in sizes:
                rows = curve(n, D)
                density = KernelDensity(rows, np.ones(n), BANDWIDTH, accuracy)
                first = once(lambda density=density, rows=rows: density.derivatives(rows))
                again = once(lambda density=density, rows=rows: density.derivatives(rows))
                spent.append([first, first + 4 * again])
                lines.append((f"{D} columns, {accuracy}", n, 1e6 * first / n, 1e6 * again / n, "–", "–"))
            slopes = np.polyfit(np.log(sizes), np.log(spent), 1)[0]
            verdict = "yes" if slopes[1] <= EXPONENTS[D] else "NO"
            lines.append(("  exponent, first and five times", "", *map(float, slopes), f"≤ {EXPONENTS[D]}", verdict))
    heads = ("sums", "rows", "first, µs a row", "again, µs a row", "wanted", "met")
    print_table("4. All rows' densities with derivatives, at one bandwidth however many rows", heads, lines)
    rows = curve(sizes[-1] // 2, 2)
    density = KernelDensity(rows, np.ones(len(rows)), BANDWIDTH)
    used = peak_mb(lambda: density.derivatives(rows)) / (rows.nbytes / 1e6)
    print(f"  memory at the peak, {len(rows)} rows in two columns: {used:.0f} times what the rows take")


# --------------------------------------------------------------------------------------------- 5. many widths


def bench_widths(full: bool) -> None:
    lines, rng = [], np.random.default_rng(0)
    for D in (2, 3):
        for n in (10_000, 100_000) if full else (10_000, 30_000):
            rows = curve(n, D)
            widths = BANDWIDTH * np.exp(rng.uniform(-1, 0, n))
            one = KernelDensity(rows, np.ones(n), BANDWIDTH)
            plain = BallSums(rows / BANDWIDTH, np.ones(n), PLAIN)
            many = AdaptiveDensity(rows, np.ones(n), widths)
            runs = {
                "one": lambda one=one, rows=rows: one.derivatives(rows),
                "plain": lambda plain=plain, rows=rows: plain.moments(rows / BANDWIDTH),
                "many": lambda many=many, rows=rows: many.derivatives(rows),
            }
            took = {name: 1e6 * each / n for name, each in least(runs, 1).items()}
            ratio = took["many"] / took["plain"]
            lines.append((f"{D} columns, {n}", took["one"], took["plain"], took["many"], ratio))
    heads = ("rows", "one width µs", "without patches µs", "a width for each row µs", "ratio")
    print_table("5. Kernels of many widths, up to a factor e apart", heads, lines)


BENCHES = {1: bench_pairs, 2: bench_ways, 3: bench_accuracy, 4: bench_growth, 5: bench_widths}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="up to a million rows")
    parser.add_argument("--only", default="1,2,3,4,5", help="numbers of tables, with commas between")
    given = parser.parse_args()
    with threadpool_limits(1):
        for number in map(int, given.only.split(",")):
            BENCHES[number](given.full)


if __name__ == "__main__":
    main()
