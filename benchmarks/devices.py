"""What a device gains: E-steps, default fits, streams and verbs of a GTM on a GPU, beside the processor and the floor.

    python -m benchmarks.devices [--device cuda] [--rows 1000000]

The floor of an EM iteration is its two matrix products in single precision, rows × columns × nodes, with TF32 off. The
parity table says how far sums and likelihoods are from those in double precision on the processor.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from benchmarks.scale import sheet
from benchmarks.timing import print_table

from prinfold import GTM, SOM, Blocks
from prinfold.devices import find_device
from prinfold.devices.softmax_sums import NodeLoading, softmax_sums
from prinfold.gtm import model as gtm
from prinfold.gtm.node_selection import Hint

_SIZES = ((20, 900), (20, 1024), (32, 1024), (100, 1024))


def event_clock(torch: Any) -> Callable[[Callable[[], object]], float]:
    """A clock of device work: the median milliseconds of ten calls, after three."""

    def clock(work: Callable[[], object]) -> float:
        for _ in range(3):
            work()
        found = []
        for _ in range(10):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            work()
            end.record()
            torch.cuda.synchronize()
            found.append(begin.elapsed_time(end))
        return float(np.median(found))

    return clock


def iterations(name: str, n_rows: int) -> None:
    """Print the time of the sums of an E-step over that of the two products."""
    import torch

    device, clock, lines = find_device(name), event_clock(torch), []
    assert device is not None
    torch.backends.cuda.matmul.allow_tf32 = False
    for D, K in _SIZES:
        rows = torch.randn(n_rows, D, device=device.place)
        loading = torch.randn(D, K, device=device.place)
        nodes = NodeLoading(loading, -0.5 * loading.square().sum(dim=0))
        score, moment = rows.new_empty((n_rows, K)), rows.new_empty((D, K))

        def products(rows=rows, loading=loading, score=score, moment=moment):
            torch.mm(rows, loading, out=score)
            torch.mm(rows.T, score, out=moment)

        floor = clock(products)
        fused = clock(lambda rows=rows, nodes=nodes: device.sums(device.xp, rows, None, nodes))
        plain = clock(lambda rows=rows, nodes=nodes: softmax_sums(device.xp, rows, None, nodes))
        lines.append((f"{n_rows} × {D}, {K} nodes", floor, fused, fused / floor, plain, plain / floor))
        del score
    head = ("", "two products, ms", "sums, ms", "over the products", "by the array API alone, ms", "over the products")
    print_table(f"Sums of an E-step on {device.name}, median of ten", head, lines)


def parity(name: str) -> None:
    """Print how far likelihoods and sums are from those in double precision on the processor."""
    lines = []
    for noise in ("isotropic", "diagonal"):
        for D, spread in ((3, 1.0), (20, 1.0), (20, 100.0), (100, 1.0)):
            X = spread * sheet(20_000, D)
            fitted = GTM(nodes=30, init="pca", noise=noise, max_iter=30, tol=0).fit(X)
            there = GTM(nodes=30, init="pca", noise=noise, max_iter=30, tol=0, device=name).fit(X)
            parameters, rows = fitted._parameters(), fitted._rows(X)
            exact = gtm.summarize(fitted._model, rows, parameters)
            own = fitted.set_params(device=name)._rows(X)
            sums, _ = gtm.e_step(fitted._model, own, parameters, Hint())
            likelihood = abs(sums.log_likelihood - exact.log_likelihood) / len(X)
            moment = np.abs(sums.moment - exact.moment).max() / np.abs(exact.moment).max()
            rowwise = fitted.score_samples(X) - fitted.set_params(device=None).score_samples(X)
            trained = abs(there.set_params(device=None).score(X) - fitted.score(X))
            places = np.abs(there.transform(X) - fitted.transform(X)).max()
            worst = np.abs(rowwise).max()
            lines.append((f"{noise}, {D} columns, × {spread:g}", likelihood, worst, moment, trained, places))
    head = (
        "20 000 rows",
        "nats a row, mean",
        "nats, worst row",
        "RᵀT, relative",
        "after 30 steps, nats",
        "places, worst",
    )
    print_table("Single precision on the device beside double precision on the processor", head, lines)


def seconds(work: Callable[[], object], turns: int = 2) -> float:
    """The least seconds of a few calls, by the wall clock."""
    found = []
    for _ in range(turns):
        begin = time.perf_counter()
        work()
        found.append(time.perf_counter() - begin)
    return min(found)


def fits(name: str, n_rows: int) -> None:
    """Print default fits and verbs, starts included, on the processor with all of its cores and on the device."""
    lines = []
    for n, D in ((1000, 10), (10_000, 20), (100_000, 50), (n_rows, 20)):
        X = sheet(n, D).astype(np.float32)
        turns = 1 if n >= n_rows else 2
        here, there = GTM(random_state=0), GTM(random_state=0, device=name)
        there.fit(X)  # kernels are compiled
        t_there, t_here = seconds(lambda X=X, m=there: m.fit(X)), seconds(lambda X=X, m=here: m.fit(X), turns)
        lines.append((f"fit, {n} × {D}", t_here, t_there, t_here / t_there))
        difference = abs(here.score(X) - there.set_params(device=None).score(X))
        steps = f"{here.n_iter_} and {there.n_iter_} iterations"
        print(f"  {n} × {D}: {steps}, likelihoods differ by {difference:.1e}", flush=True)
        there.set_params(device=name)
        for verb in ("score_samples", "transform"):
            t_here, t_there = (seconds(lambda m=m, X=X, v=verb: getattr(m, v)(X), turns) for m in (here, there))
            lines.append((f"{verb}, {n} × {D}", t_here, t_there, t_here / t_there))
    X = sheet(100_000, 20)
    here, there = (SOM(nodes=30, max_iter=20, tol=0, device=d) for d in (None, name))
    there.fit(X)
    t_here, t_there = seconds(lambda: here.fit(X)), seconds(lambda: there.fit(X))
    lines.append(("SOM, 20 epochs, 100000 × 20", t_here, t_there, t_here / t_there))
    print_table("Seconds by the wall clock, start included", ("", "processor", name, "times as fast"), lines)


def streams(name: str, n_rows: int) -> None:
    """Print an iteration over blocks in memory, left on the device or sent in every pass, beside one over an array."""
    device, lines = find_device(name), []
    assert device is not None
    full = replace(device, free_bytes=lambda: 0)
    for D in (20, 100):
        X = sheet(n_rows, D).astype(np.float32)
        fixed: dict[str, Any] = {"nodes": 32, "init": "pca", "tol": 0.0}
        blocks = Blocks([X[i : i + 2**18] for i in range(0, n_rows, 2**18)])  # whole blocks, so that none is copied
        resident, left, sent = (
            _per_iteration(rows, {**fixed, "device": where})
            for rows, where in ((X, device), (blocks, device), (blocks, full))
        )
        lines.append((f"{n_rows} × {D}, 1024 nodes", 1e3 * resident, 1e3 * left, left / resident))
        lines.append(("  sent in every pass", 1e3 * resident, 1e3 * sent, sent / resident))
    print_table("An iteration, ms", ("", "an array", "blocks", "times as long"), lines)


def _per_iteration(rows: Any, fixed: dict[str, Any]) -> float:
    """Seconds of an iteration, by fits of five and of 45."""
    seconds(lambda: GTM(max_iter=2, **fixed).fit(rows), 1)  # kernels are compiled
    short, long = (seconds(lambda n=n: GTM(max_iter=n, **fixed).fit(rows), 1) for n in (5, 45))
    return (long - short) / 40


def main() -> None:
    """Run all parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--parts", default="iterations,parity,fits,streams")
    options = parser.parse_args()
    parts: dict[str, Callable[[], None]] = {
        "iterations": lambda: iterations(options.device, options.rows),
        "parity": lambda: parity(options.device),
        "fits": lambda: fits(options.device, options.rows),
        "streams": lambda: streams(options.device, options.rows),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in options.parts.split(","):
            parts[part]()


if __name__ == "__main__":
    main()
