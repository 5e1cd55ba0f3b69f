"""What a probabilistic principal surface costs, as ratios to the matrix products that its E-step cannot do without.

    python -m benchmarks.pps [--full] [--only 1,3]

An E-step is one product with the centres, one with each of Q tangents and one that sums up: 2 + Q in blocks of rows, of
rows × nodes × columns each. The gradient of generalised EM needs Q more. Contestants take turns, medians and minima are
reported, and only times of the same run are compared, because machines are shared. No other library that fits this
model was found to compare with.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import joblib
import numpy as np
from benchmarks.gtm.late_iterations import sheet
from benchmarks.timing import clocked, print_table, take_turns
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from prinfold import GTM, PPS, datasets
from prinfold.exceptions import PrinfoldWarning
from prinfold.gtm import e_step as passes
from prinfold.gtm import model as gtm
from prinfold.gtm import node_selection as pruning
from prinfold.rows.rows import blas_on_one_thread

LARGE, SMALL = "N=20000 D=50 K=900", "N=1000 D=12 K=400"
SIZES: dict[str, dict[str, Any]] = {
    LARGE: {"n": 20_000, "D": 50, "nodes": 30, "basis": 10},
    SMALL: {"n": 1000, "D": 12, "nodes": 20, "basis": 9},
}
WANTED = 1.3
ROUNDS = 16
"""Passes of which a planned iteration is the mean: groups are made anew once in as many late in training."""


def products(X: np.ndarray, n_nodes: int, block: int, first: int, second: int) -> Callable[[], None]:
    """``first`` products of rows with nodes and ``second`` that sum up, block by block, and nothing else."""
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((first, X.shape[1], n_nodes)).astype(X.dtype)
    R = rng.random((first, block, n_nodes)).astype(X.dtype)
    moment = np.empty((X.shape[1], n_nodes), dtype=X.dtype)

    def run() -> None:
        for i in range(0, len(X), block):
            rows = X[i : i + block]
            for q in range(first):
                np.dot(rows, Y[q], out=R[q, : len(rows)])
            for q in range(second):
                np.dot(rows.T, R[q, : len(rows)], out=moment)

    run()
    return run


def late(X: np.ndarray, size: dict[str, Any], **options: Any) -> PPS:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrinfoldWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        return PPS(nodes=size["nodes"], basis=size["basis"], max_iter=12, tol=0, **options).fit(X)


def dense_pass(model: Any, rows: Any, parameters: Any, compiled: bool) -> None:
    """An E-step with every node, as training does it: compiled in large jobs, after the first passes."""
    with blas_on_one_thread():  # as ``fit`` holds it for the whole of training
        nodes = model.noise.at_nodes(model.surface, parameters, rows.table.dtype.type)
        gtm.sum_parts(model, rows, nodes, pruning._dense(model.noise, nodes, rows, compiled))


def with_sums(model: PPS, crossed: bool) -> Any:
    return replace(model._model, noise=replace(model._model.noise, crossed=crossed))


# --------------------------------------------------------------------------------- 1. dense, against the floor


def bench_dense(full: bool) -> None:
    lines = []
    for label, size in SIZES.items():
        turns, at_once = (10 if full else 4, 2) if size["n"] > 5000 else (60 if full else 20, 10)
        for dtype in (np.float64, np.float32):
            X = sheet(size["n"], size["D"], dtype, noise=0.02)
            model = late(X, size)
            rows, parameters, K = model._rows(X), model._parameters(), size["nodes"] ** 2
            for crossed in (False, True):
                wanted, floor = with_sums(model, crossed), products(X, K, rows.block_rows, 3, 3 if crossed else 1)
                compiled = rows.n_rows * K >= pruning._SWEEP_FROM
                for threads in sorted({1, min(4, joblib.cpu_count())}):
                    with threadpool_limits(threads):
                        runs: dict[str, Any] = {
                            "floor": partial(clocked, floor, at_once),
                            "dense": partial(clocked, partial(dense_pass, wanted, rows, parameters, compiled), at_once),
                        }
                        took = take_turns(runs, turns)
                    ratio = took["dense"].median / took["floor"].median
                    least = took["dense"].least / took["floor"].least
                    name, path = "with gradient" if crossed else "plain", "compiled" if compiled else "NumPy"
                    cells = (1e3 * took["floor"].median, 1e3 * took["dense"].median, ratio, least)
                    lines.append(
                        (label, dtype.__name__, name, path, threads, *cells, "yes" if ratio <= WANTED else "NO")
                    )
    heads = (
        "size",
        "type",
        "sums",
        "path",
        "threads",
        "products ms",
        "E-step ms",
        "ratio",
        "of minima",
        f"≤ {WANTED:g}",
    )
    print_table("1. Dense E-step against its own products (4, or 6 with the gradient)", heads, lines)


# ------------------------------------------------------------------------------------------- 2. planned, late


def bench_planned(full: bool) -> None:
    size, lines = SIZES[LARGE], []
    for noise in (0.02, 0.05):
        X = sheet(size["n"], size["D"], noise=noise)
        for clamping in (0.2, 0.5, 1.5) if full else (0.5,):
            model = late(X, size, clamping=clamping)
            rows, parameters, wanted = model._rows(X), model._parameters(), with_sums(model, False)
            floor = products(X, 900, rows.block_rows, 3, 1)
            nodes = wanted.noise.at_nodes(wanted.surface, parameters)
            planned = partial(_planned, wanted, rows, parameters)
            with threadpool_limits(1):
                took = take_turns({"floor": partial(clocked, floor), "planned": planned}, 3)
            parts, _ = pruning.plan(wanted.surface, wanted.noise, nodes, rows, parameters.weights, pruning.Hint(age=1))
            kept = sum(passes.entries(parts, nodes)) / (size["n"] * 900)
            planned_sum = gtm.e_step(wanted, rows, parameters, pruning.Hint(age=1))[0].log_likelihood
            lost = (gtm.summarize(wanted, rows, parameters).log_likelihood - planned_sum) / size["n"]
            ratio = took["planned"].median / took["floor"].median
            lines.append((noise, clamping, 1e3 * took["floor"].median, 1e3 * took["planned"].median, ratio, kept, lost))
    heads = ("noise", "clamping", "products ms", "E-step ms", "ratio", "pairs kept", "nats lost per row")
    print_table(f"2. Planned E-step late in training, {LARGE}, one thread, bookkeeping included", heads, lines)


def _planned(model: Any, rows: Any, parameters: Any) -> list[float]:
    hint, clock = pruning.Hint(age=ROUNDS), time.perf_counter()
    with blas_on_one_thread():
        for _ in range(ROUNDS):
            _, hint = gtm.e_step(model, rows, parameters, hint)
    return [(time.perf_counter() - clock) / ROUNDS]


# ------------------------------------------------------------------------------- 3. an iteration over the GTM's


def bench_iteration(full: bool) -> None:
    lines = []
    for label, size in SIZES.items():
        X = sheet(size["n"], size["D"], noise=0.02)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plain = GTM(nodes=size["nodes"], basis=size["basis"], max_iter=12, tol=0).fit(X)
        models = {"GTM": plain, "PPS, GTM's steps": late(X, size), "PPS, gradient": late(X, size, trainer="gem")}
        runs = {name: partial(_one_iteration, model, X) for name, model in models.items()}
        with threadpool_limits(1):
            took = take_turns(runs, 8 if full else 3)
        lines += [(label, name, 1e3 * each.median, each.median / took["GTM"].median) for name, each in took.items()]
    heads = ("size", "iteration", "ms", "over the GTM's")
    print_table("3. One iteration late in training, plans on, M-step included, one thread", heads, lines)


def _one_iteration(model: Any, X: np.ndarray) -> list[float]:
    rows = model._rows(X)
    state = model._model.begin(rows, model._parameters())
    clock = time.perf_counter()
    with blas_on_one_thread():
        model._model.step(rows, state, 1.0)
    return [time.perf_counter() - clock]


# ---------------------------------------------------------------------------------------------- 4. the trainers

SHAPES: dict[str, tuple[Callable[..., datasets.Dataset], dict[str, Any]]] = {
    "half circle": (datasets.make_half_circle, {"n_components": 1}),
    "spiral": (datasets.make_spiral, {"n_components": 1, "init": "isomap"}),
    "ridge": (datasets.make_ridge, {}),
    "sphere": (datasets.make_sphere, {"latent": "sphere"}),
    "swiss roll": (datasets.make_swiss_roll, {"init": "isomap"}),
    "pipe flow": (datasets.make_pipe_flow, {}),
}
APART = ("swiss roll",)
"""Not in the means: where a fit goes astray its distance outweighs all others."""


def bench_trainers(full: bool) -> None:
    kinds, sizes, seeds = ("normal", "isotropic"), (400, 900), range(8 if full else 2)
    tables = [(name, kind, n) for name in SHAPES for kind in kinds for n in sizes]
    tables = [each for each in tables if each[:2] != ("pipe flow", "isotropic")]  # it has noise of its own
    ways = [(clamping, trainer) for clamping in (0.2, 0.5, 0.7) for trainer in ("gtm", "gem", "paper")]
    work = joblib.Parallel(n_jobs=-1)(joblib.delayed(_compared)(*each, s, ways) for each in tables for s in seeds)
    found = np.reshape(work, (len(tables), len(seeds), len(ways) + 1, 3)).mean(axis=1)
    relative = found[:, 1:, :2] / found[:, :1, :2]
    lines = [
        (*table, clamping, trainer, *ratio, seconds)
        for table, ratios, took in zip(tables, relative, found[:, 1:, 2], strict=True)
        for (clamping, trainer), ratio, seconds in zip(ways, ratios, took, strict=True)
    ]
    heads = ("shape", "noise", "rows", "clamping", "trainer", "rms to truth", "new rows' error", "s")
    print_table("4. Where the trainers end, relative to the GTM on the same rows; means over seeds", heads, lines)
    kept = np.array([table[0] not in APART for table in tables])
    means = np.exp(np.nanmean(np.log(relative[kept]), axis=0))
    lines = [(*way, *mean) for way, mean in zip(ways, means, strict=True)]
    print_table("   … geometric means over shapes, kinds of noise and sizes", heads[3:7], lines)


def _compared(name: str, kind: str, n: int, seed: int, ways: list[tuple[float, str]]) -> list[tuple[float, ...]]:
    """For the GTM and each way: distance of the surface from the true one, error of new rows, seconds."""
    make, options = SHAPES[name]
    data = make(n, rng=seed) if name == "pipe flow" else make(n, rng=seed, noise_kind=kind)
    found = []
    for clamping, trainer in [(1.0, "gtm"), *ways]:
        clock = time.perf_counter()
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            model = PPS(clamping=clamping, trainer=trainer, random_state=0, **options).fit(data.X[::2])
        seconds = time.perf_counter() - clock
        off = np.nan
        if data.surface is not None:
            off = np.sqrt(np.mean(np.square(data.surface.distance(model.project(data.X[::2])))))
        found.append((float(off), model.projection_error(data.X[1::2]), seconds))
    return found


TABLES = {"1": bench_dense, "2": bench_planned, "3": bench_iteration, "4": bench_trainers}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="more repetitions, clampings and seeds")
    parser.add_argument("--only", default=",".join(TABLES), help="tables to print, as 1,3")
    arguments = parser.parse_args()
    for name in arguments.only.split(","):
        TABLES[name](arguments.full)


if __name__ == "__main__":
    main()
