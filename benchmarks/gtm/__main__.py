"""What a GTM costs, as ratios to the two matrix products that no EM iteration does without.

    python -m benchmarks.gtm [--full] [--only 1,5] [--figures FOLDER]

All in one run: dense and planned iterations, a large map, the verbs, iterations to the goal, other libraries
where they are installed, growth, imports and memory. Contestants take turns, medians and minima are
reported, and only times of the same run are compared, because machines are shared.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from benchmarks.gtm.growth import bench_growth, draw_growth, draw_peers
from benchmarks.gtm.late_iterations import CYCLE, dense_parts, fingerprints, fit, late, parts_of, sheet, switched
from benchmarks.gtm.peers import available
from benchmarks.gtm.start_up import bench_start_up
from benchmarks.timing import Times, clocked, floor, peak_mb, print_table, take_turns
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from prinfold import GTM, datasets
from prinfold.exceptions import PrinfoldWarning

CORES = joblib.cpu_count()
LARGE, SMALL = "N=20000 D=50 K=900", "N=1000 D=12 K=400"
SIZES: dict[str, dict[str, Any]] = {
    LARGE: {"n": 20_000, "D": 50, "nodes": 30, "basis": 10, "wanted": 1.5},
    SMALL: {"n": 1000, "D": 12, "nodes": 20, "basis": 9, "wanted": 3.0},
}


def pipe(n: int) -> np.ndarray:
    return datasets.make_pipe_flow(n, rng=0).X


def verdict(got: float, wanted: float) -> str:
    return f"≤ {wanted:g} {'yes' if got <= wanted else 'NO'}"


# ------------------------------------------------------------------------------- 1. dense, against the floor


def bench_dense(full: bool) -> None:
    lines = []
    for label, size in SIZES.items():
        large = size["n"] > 5000
        turns, at_once = ((8, 4) if full else (2, 3)) if large else ((20, 40) if full else (8, 25))
        for dtype in (np.float64, np.float32):
            X = sheet(size["n"], size["D"], dtype)
            at = late(X, size["nodes"], size["basis"], 5)
            single = float("nan")
            for threads in sorted({1, CORES}):
                with threadpool_limits(threads):
                    runs = {"floor": floor(X, size["nodes"] ** 2, at_once), "dense": partial(at.steps, at_once, False)}
                    took = take_turns(runs, turns)
                ours, products = took["dense"].median, took["floor"].median
                single = single if threads > 1 else ours
                # What is wanted was said of one thread; on more of them what counts is how much they gain.
                reached = verdict(ours / products, size["wanted"]) if threads == 1 else f"{single / ours:.2f} × faster"
                minima = took["dense"].least / took["floor"].least
                cells = (1e3 * products, 1e3 * ours, ours / products, minima, reached)
                lines.append((label, dtype.__name__, threads, *cells))
    heads = ("size", "type", "threads", "products ms", "iteration ms", "ratio", "of minima", "wanted")
    print_table("1. Dense E-step and M-step, planning off, against the two products", heads, lines)
    bench_dense_parts(full)
    lines = []
    for dtype in (np.float64, np.float32):
        X = sheet(20_000, 50, dtype)
        for planned in (False, True):
            with switched(planned):
                peak = peak_mb(partial(fit, X))
            lines.append((dtype.__name__, "planned" if planned else "dense", X.nbytes / 1e6, peak, verdict(peak, 100)))
    print_table(f"   Memory of a fit beyond the data, {LARGE}", ("type", "", "data MB", "peak MB", "wanted"), lines)


def bench_dense_parts(full: bool) -> None:
    lines = []
    for label, size in SIZES.items():
        X = sheet(size["n"], size["D"])
        with threadpool_limits(1):
            at = late(X, size["nodes"], size["basis"], 5)
            repeats = (9 if full else 3) if size["n"] > 5000 else 100  # short ones need a warm cache
            products = Times(floor(X, size["nodes"] ** 2, repeats)()).median
            parts = dense_parts(at, repeats)
        lines.append((label, *(seconds / products for seconds in parts.values())))
    print_table("   … and its parts, one thread, as shares of the two products", ("size", *parts), lines)


# -------------------------------------------------------------------------------------- 2. planned, late


def bench_planned(full: bool) -> None:
    n = 20_000
    tables = {f"sheet, noise {noise:g}, {n} × 50": sheet(n, 50, noise=noise) for noise in (0.02, 0.05, 0.1)}
    tables[f"pipe flow, {n} × 12"] = pipe(n)
    lines, anatomy = [], []
    for label, X in tables.items():
        for threads in sorted({1, CORES}):
            with threadpool_limits(threads):
                at = late(X, 30, 10, 40 if full else 10)
                at.renew()
                # A whole cycle from one renewal of the groups to the next.
                cycles = [CYCLE // 4] * 4 if full else [8]
                runs = {
                    "floor": floor(X, 900, 2),
                    "planned": partial(at.steps, 8, True),
                    "dense": partial(at.steps, 1, False),
                }
                took = take_turns(runs, len(cycles))
                planned, products = took["planned"], took["floor"].median
                renewal = max(planned[0] - planned.median, 0.0)
                ratio = (planned.median + renewal / CYCLE) / products
                parts = parts_of(at, 5 if full else 3)
            lines.append(
                (label, threads, 1e3 * products, took["dense"].median / products, ratio)
                + (planned.least / took["floor"].least, parts.kept, parts.lost, parts.path, verdict(ratio, 0.3))
            )
            shares = (parts.grouping, parts.bound, parts.sums, parts.m_step)
            anatomy.append((label, threads, *(each / products for each in shares)))
    heads = (
        "data, K=900",
        "threads",
        "products ms",
        "dense",
        "planned",
        "of minima",
        "share kept",
        "lost nats/row",
        "path",
        "wanted",
    )
    print_table(
        f"2. Planned iterations late in training, a renewal every {CYCLE} included, over the products", heads, lines
    )
    heads = ("data, K=900", "threads", "grouping", "bound", "sums over pairs kept", "M-step")
    print_table("   … and their parts", heads, anatomy)


# ------------------------------------------------------------------------------------------ 3. a large map


def bench_large(full: bool) -> None:
    n, nodes, noise = (100_000, 100, 0.03) if full else (20_000, 50, 0.03)
    X = sheet(n, 20, noise=noise)
    clock = time.perf_counter()
    model = GTM(nodes=nodes, basis=10, max_iter=200 if full else 30).fit(X)
    total = time.perf_counter() - clock
    at = late(X, nodes, 10, 10)
    at.renew()
    steps = Times(at.steps(8, True))
    late_seconds = steps.median + max(steps[0] - steps.median, 0.0) / CYCLE
    parts = parts_of(at, 1)
    title = f"3. A map of {nodes} × {nodes} nodes, {n} × 20 rows (sheet, noise {noise:g}), {CORES} threads"
    lines = [
        (
            "prinfold",
            f"{nodes} × {nodes}",
            late_seconds,
            model.n_iter_,
            total,
            "converged" if model.converged_ else "stopped at max_iter",
        )
    ]
    found, missing = available(X, 20, 10)
    for name, once in found.items():
        seconds = Times(once()).median
        lines.append(
            (name, "20 × 20", seconds, model.n_iter_, seconds * model.n_iter_, "total: as many of one iteration")
        )
    lines += [(name, "20 × 20", "–", "–", "–", why) for name, why in missing.items()]
    print_table(title, ("", "nodes", "s/iteration", "iterations", "total s", ""), lines)
    print(f"  share of pairs kept {parts.kept:.3f}, lost {parts.lost:.1e} nats per row")
    if full:
        peak = peak_mb(partial(fit, X, nodes=nodes, max_iter=2))
        whole = 8 * n * nodes**2 / 1e6
        print(f"  peak memory of a fit beyond the data {peak:.0f} MB; all responsibilities would be {whole:.0f} MB")


# ---------------------------------------------------------------------------------------------- 4. verbs


def bench_verbs(full: bool) -> None:
    n, turns = 20_000, 5 if full else 2
    tables = {
        f"sheet, noise 0.05, {n} × 50, K=900": (sheet(n, 50, noise=0.05), 30),
        f"sheet, noise 0.05, {n} × 50, K=2500": (sheet(n, 50, noise=0.05), 50),
        f"pipe flow, {n} × 12, K=2500": (pipe(n), 50),
        f"sheet, noise 0.03, {n // 2} × 20, K=10000": (sheet(n // 2, 20, noise=0.03), 100),
    }
    lines = []
    for label, (X, nodes) in tables.items():
        model = fit(X, nodes=nodes, max_iter=8)
        verbs: dict[str, Callable[[], Any]] = {
            "transform": partial(model.transform, X),
            "score_samples": partial(model.score_samples, X),
            "responsibilities(threshold=1e-6)": partial(model.responsibilities, X, threshold=1e-6),
        }
        for threads in sorted({1, CORES}):
            with threadpool_limits(threads):
                products = Times(floor(X, nodes**2, 3)()).median
                for name, verb in verbs.items():
                    runs = {kind: partial(off, verb, kind == "planned") for kind in ("dense", "planned")}
                    took = take_turns(runs, turns)
                    dense, planned = took["dense"].median, took["planned"].median
                    lines.append((label, threads, name, dense / products, planned / products, planned / dense))
        seconds = Times(clocked(partial(model.project, X[:1000]), 3)).median
        lines.append((label, CORES, f"project: {1e3 * seconds:.0f} ms per 1000 rows", "–", "–", "–"))
    heads = ("data", "threads", "verb", "dense/products", "planned/products", "planned/dense")
    print_table("4. Questions to a fitted map (the first product alone is half of the two)", heads, lines)
    bench_sparse_out(full)
    bench_sparse_in(full)


def off(verb: Callable[[], Any], planned: bool) -> list[float]:
    """The first run after another contestant's is not counted: it finds neither caches nor threads ready."""
    with switched(planned):
        return clocked(verb, 3)[1:]


def bench_sparse_out(full: bool) -> None:
    n = 50_000 if full else 10_000
    lines = []
    for noise in (0.03, 0.1):
        X = sheet(n, 20, noise=noise)
        model = fit(X[:10_000], nodes=100, max_iter=15)
        found = model.responsibilities(X, threshold=1e-6)
        per_row = found.nnz / n
        held = (found.data.nbytes + found.indices.nbytes + found.indptr.nbytes) / n
        lines.append((f"sheet, noise {noise:g}", per_row, held, held * 1e6 / 1e9, 8 * 1e10 / 1e9))
    heads = ("data", "weights per row", "bytes per row", "10⁶ × 10⁴ GB", "dense GB")
    print_table(
        f"   responsibilities(threshold=1e-6) of a 100 × 100 map, {n} rows, and what a million would take", heads, lines
    )


def bench_sparse_in(full: bool) -> None:
    n = 20_000 if full else 2000
    S = fingerprints(n, 2048)
    lines = []
    for name, X in {"CSR": S, "dense": S.toarray()}.items():
        held = (S.data.nbytes + S.indices.nbytes + S.indptr.nbytes if name == "CSR" else X.nbytes) / 1e6
        model = fit(X, nodes=20, basis=6, max_iter=6)
        seconds = Times(np.diff(model.history_["seconds"])).median
        peak = peak_mb(partial(fit, X, nodes=20, basis=6, max_iter=1))
        lines.append((name, held, peak, seconds, model.history_["objective"][-1]))
    heads = ("table", "data MB", "peak beyond it MB", "s/iteration", "objective")
    print_table(f"   Fingerprints, {n} × 2048 bits, {S.nnz / S.shape[0] / 2048:.1%} set, K=400", heads, lines)


# ------------------------------------------------------------------------- 5. how soon it gets there

VARIANTS = {
    "plain dense EM": (False, 1.0, False),
    "+ planned": (True, 1.0, False),
    "+ over-relaxed": (True, 1.8, False),
    "+ warm-up": (True, 1.8, True),
}


def timed_apart(X: np.ndarray, settings: dict[str, Any]) -> tuple[dict[str, list[float]], float]:
    """The history of a fit, and seconds that are not in it."""
    clock = time.perf_counter()
    history = fit(X, **settings).history_
    return history, time.perf_counter() - clock - history["seconds"][-1]


def bench_iterations(full: bool) -> None:
    n, most = (20_000, 200) if full else (8000, 100)
    tables = {
        f"sheet, noise 0.05, {n} × 50, K=900": (sheet(n, 50, noise=0.05), 30, 10),
        f"pipe flow, {n} × 12, K=900": (pipe(n), 30, 10),
        "pipe flow, 1000 × 12, K=400": (pipe(1000), 20, 7),
    }
    lines = []
    for label, (X, nodes, basis) in tables.items():
        target = base = None
        for name, (planned, relaxation, warm) in VARIANTS.items():
            settings = {"nodes": nodes, "basis": basis, "relaxation": relaxation}
            with switched(planned, warm):
                # The history begins after the warm-up, which is what a fit takes besides, less what it does without.
                history, besides = timed_apart(X, {**settings, "max_iter": most})
            with switched(planned, False):
                ahead = besides - timed_apart(X, {**settings, "max_iter": 0})[1] if warm else 0.0
            objective = np.array(history["objective"])
            if target is None:
                target = objective[0] + 0.999 * (objective[-1] - objective[0])
            reached = int(np.argmax(objective >= target)) if (objective >= target).any() else None
            seconds = float("nan") if reached is None else max(ahead, 0.0) + history["seconds"][reached]
            base = base or seconds
            lines.append((label, name, "–" if reached is None else reached, seconds, base / seconds, objective[-1]))
    title = f"5. To 99.9 % of what plain EM gains in {most} iterations, {CORES} threads, warm-up included"
    print_table(title, ("data", "how", "iterations", "seconds", "times faster", "objective at the end"), lines)


# ---------------------------------------------------------------------------------------------- 6. peers


def bench_peers(full: bool) -> dict[str, dict[str, float]]:
    lines, ratios = [], {}
    for label, size in SIZES.items():
        large = size["n"] > 5000
        X = sheet(size["n"], size["D"], noise=0.02)
        with threadpool_limits(1):
            at = late(X, size["nodes"], size["basis"])
            at.renew()
            runs: dict[str, Callable[[], Any]] = {
                "two products": floor(X, size["nodes"] ** 2, 1 if large else 10),
                "prinfold dense": partial(at.steps, 1 if large else 10, False),
                "prinfold planned": partial(at.steps, 4 if large else 10, True),
            }
            found, missing = available(X, size["nodes"], size["basis"])
            few = dict.fromkeys(found, 2 if full else 1) if large else {}
            took = take_turns({**runs, **found}, (8 if full else 3) if large else (10 if full else 4), few)
        base = took["two products"].median
        if not large:
            took.pop("prinfold planned")  # too small a job to be planned
        ratios[label] = {name: times.median / base for name, times in took.items() if name != "two products"}
        lines += [(label, name, 1e3 * times.median, times.median / base, "") for name, times in took.items()]
        lines += [(label, name, "–", "–", why) for name, why in missing.items()]
    heads = ("size", "what", "ms/iteration", "/ products", "")
    print_table(
        "6. One EM iteration on one thread, float64 (sheet, noise 0.02; planned: between renewals)", heads, lines
    )
    return ratios


SECTIONS: dict[str, Callable[[bool], Any]] = {
    "1": bench_dense,
    "2": bench_planned,
    "3": bench_large,
    "4": bench_verbs,
    "5": bench_iterations,
    "6": bench_peers,
    "7": bench_growth,
    "8": bench_start_up,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--quick", action="store_true", help="smaller sizes, under three minutes on two cores (default)")
    how.add_argument("--full", action="store_true", help="the sizes and repetitions that are published")
    parser.add_argument("--only", default=",".join(SECTIONS), help="numbers of sections, with commas between")
    parser.add_argument(
        "--figures", type=Path, default=Path(__file__).parents[1] / "results", help="folder for the figures"
    )
    arguments = parser.parse_args()
    for category in (PrinfoldWarning, ConvergenceWarning):
        warnings.simplefilter("ignore", category)
    clock = time.perf_counter()
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    print(f"GTM benchmark, {CORES} cores{load}, NumPy {np.__version__}, {'full' if arguments.full else 'quick'}")
    done = {number: SECTIONS[number](arguments.full) for number in arguments.only.split(",")}
    if "6" in done:
        draw_peers(done["6"], arguments.figures)
    if "7" in done:
        draw_growth(done["7"], arguments.figures)
    print(f"\n{time.perf_counter() - clock:.0f} s in all")


if __name__ == "__main__":
    main()
