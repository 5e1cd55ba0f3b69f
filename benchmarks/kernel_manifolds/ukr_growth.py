"""What UKR costs as rows grow many, and what landmarks lose.

    python -m benchmarks.kernel_manifolds.ukr_growth [--full] [--only 1,2]

Swiss rolls in 20 columns, with noise in all of them. Only times of the same run are compared, because machines are
shared. Kernels and solvers side by side are in ``ukr.py``, and where training should end in ``ukr_stopping.py``.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import joblib
import numpy as np
from benchmarks.timing import clocked, peak_mb, print_table
from sklearn.exceptions import ConvergenceWarning

from prinfold import UKR, datasets
from prinfold.exceptions import PrinfoldWarning

CORES = joblib.cpu_count()
COLUMNS = 20
NOISE = 0.3
N_NEW = 2000


class Roll(NamedTuple):
    """Rows about a swiss roll in 20 columns, new rows, and what they would be without noise."""

    X: np.ndarray
    new: np.ndarray
    clean: np.ndarray


def roll(n: int, seed: int = 0) -> Roll:
    turn = np.linalg.qr(np.random.default_rng(7).standard_normal((COLUMNS, COLUMNS)))[0]

    def rows(n: int, seed: int, noise: float) -> np.ndarray:
        clean = datasets.make_swiss_roll(n, noise=0.0, rng=seed).X
        wide = np.pad(clean, ((0, 0), (0, COLUMNS - clean.shape[1])))
        return (wide + noise * np.random.default_rng(seed).standard_normal(wide.shape)) @ turn

    return Roll(rows(n, seed, NOISE), rows(N_NEW, seed + 1, NOISE), rows(N_NEW, seed + 1, 0.0))


def exponents(sizes: list[int], seconds: list[float]) -> list[float]:
    """Growth between each size and the one before: 1 where time is proportional to rows."""
    steps = np.diff(np.log(seconds)) / np.diff(np.log(sizes))
    return [float("nan"), *steps.tolist()]


# ---------------------------------------------------------------------------------------------------- 1. time


def bench_time(full: bool) -> None:
    sizes = [1000, 3000, 10_000, 30_000, 100_000] if full else [1000, 3000]
    ways = [("gaussian", "auto"), ("quartic", "auto"), *([("gaussian", None), ("quartic", None)] if full else [])]
    warm_up()
    lines = []
    for kernel, landmarks in ways:
        fits, places, found = [], [], []
        for n in sizes:
            data = roll(n)
            clock = time.perf_counter()
            model = UKR(kernel=kernel, landmarks=landmarks).fit(data.X)
            fits.append(time.perf_counter() - clock)
            model.transform(data.new[:1])  # makes the mesh
            places.append(clocked(lambda model=model, data=data: model.transform(data.new))[0] / N_NEW)
            found.append(len(model.latent_.centers))
        for n, m, fit, by, place in zip(sizes, found, fits, exponents(sizes, fits), places, strict=True):
            lines.append((f"{kernel}, {landmarks or 'all rows'}", n, m, fit, by, 1e3 * place))
    heads = ("kernel, landmarks", "rows", "latent points", "fit s", "exponent", "transform ms/row")
    print_table("1. Time of a fit, and of placing a row that it has not seen", heads, lines)
    if sys.platform != "win32":
        print(f"  peak memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def warm_up() -> None:
    """Compile and load what is loaded on first use."""
    for kernel in ("gaussian", "quartic"):
        UKR(kernel=kernel, init="pca", landmarks=300).fit(roll(600).X)


# ----------------------------------------------------------------------------------------- 2. landmarks: the loss


def bench_landmarks(full: bool) -> None:
    """New rows against the surface, and what their projections are against what the rows would be without noise."""
    ways: list[int | None] = [250, 500, 1000, 2000, *([4000, None] if full else [])]
    n = 8000 if full else 4000
    lines = []
    for seed in (0, 10) if full else (0,):
        data = roll(n, seed)
        for landmarks in ways:
            clock = time.perf_counter()
            model = UKR(landmarks=landmarks).fit(data.X)
            fit = time.perf_counter() - clock
            points = model.project(data.new)
            error, off = (float(np.square(points - rows).sum(axis=1).mean()) for rows in (data.new, data.clean))
            lines.append((seed, landmarks or f"all {n}", len(model.latent_.centers), fit, error, off))
    heads = ("seed", "landmarks", "latent points", "fit s", "new rows to surface", "projections to truth")
    noise = f"noise alone: {NOISE**2 * (COLUMNS - 2):.3g} and {NOISE**2 * 2:.3g}"
    print_table(f"2. What landmarks lose, {n} rows, mean squares ({noise})", heads, lines)


# --------------------------------------------------------------------------------------------------- 3. memory


def bench_memory(full: bool) -> None:
    lines = []
    for n in (2000, 20_000, 100_000) if full else (1000, 4000):
        X = roll(n).X
        peak = peak_mb(lambda X=X: UKR(landmarks=500, init="pca").fit(X))
        lines.append((n, X.nbytes / 1e6, peak, peak / (X.nbytes / 1e6)))
    heads = ("rows", "data MB", "peak MB", "ratio")
    print_table("3. Memory of a fit with 500 landmarks beyond the data, from the principal plane", heads, lines)


SECTIONS: dict[str, Callable[[bool], Any]] = {"1": bench_time, "2": bench_landmarks, "3": bench_memory}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="up to 100 000 rows, and all of them where landmarks stop")
    parser.add_argument("--only", default=",".join(SECTIONS), help="numbers of sections, with commas between")
    arguments = parser.parse_args()
    for category in (PrinfoldWarning, ConvergenceWarning):
        warnings.simplefilter("ignore", category)
    clock = time.perf_counter()
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    print(f"UKR benchmark, {CORES} cores{load}, NumPy {np.__version__}, {'full' if arguments.full else 'quick'}")
    for number in arguments.only.split(","):
        SECTIONS[number](arguments.full)
    print(f"\n{time.perf_counter() - clock:.0f} s in all")


if __name__ == "__main__":
    main()
