"""How far it goes: what fits cost by the number of rows, in memory and from disk, and what an iteration moves.

    python -m benchmarks.how_far [--fits 1000 10000 100000 1000000] [--passes 1000000 10000000] [--columns 20]

Every point is a process of its own on one thread; its seconds are those of the processor, so that they do not depend on
what else the machine does, and its peak memory is what the system saw. Files are made in a temporary folder and
deleted. A last table has the numbers that an estimate for a cluster needs: bytes that travel in one iteration, and
seconds of the step that only one process takes.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.scale import sheet
from benchmarks.timing import print_table

from prinfold import GTM, Blocks

_PIECE = 100_000
_NODES = {"nodes": 20, "basis": 8}
"""Of maps for online passes."""

_M_STEPS = 20

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def fit_in_memory(n_rows: int, n_columns: int, folder: str) -> dict[str, Any]:
    """A default fit to rows in memory."""
    X = sheet(n_rows, n_columns)
    model, seconds = timed(lambda: GTM(random_state=0).fit(X))
    return {"seconds": seconds, "iterations": model.n_iter_, "nodes": model.latent_.n_nodes}


def pass_from_disk(n_rows: int, n_columns: int, folder: str) -> dict[str, Any]:
    """One online pass over a Parquet file in single precision, the first look and the last pass included."""
    path = write_parquet(n_rows, n_columns, Path(folder))
    blocks = Blocks(str(path))
    _, reading = timed(lambda: sum(len(block.table) for block in blocks.weighted()))
    model = GTM(**_NODES, init="pca", trainer="online", max_iter=1, tol=0, random_state=0)
    _, seconds = timed(lambda: model.fit(blocks))
    return {"seconds": seconds, "reading": reading, "file": path.stat().st_size}


def write_parquet(n_rows: int, n_columns: int, folder: Path) -> Path:
    """A file of rows of a sheet, a piece at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path, names = folder / "rows.parquet", [f"x{j}" for j in range(n_columns)]
    schema = pa.schema([(name, pa.float32()) for name in names])
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(2, 2, n_columns))
    with pq.ParquetWriter(path, schema) as writer:
        for begin in range(0, n_rows, _PIECE):
            t = rng.uniform(-1, 1, (min(_PIECE, n_rows - begin), 2))
            X = t @ A + 0.5 * t**2 @ B + 0.1 * rng.normal(size=(len(t), n_columns))
            writer.write_table(pa.table(list(X.T.astype(np.float32)), schema=schema))
    return path


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What work gives, and its seconds of the processor."""
    began = time.process_time()
    found = work()
    return found, time.process_time() - began


POINTS = {"fit": fit_in_memory, "pass": pass_from_disk}


def measure(kind: str, n_rows: int, n_columns: int) -> dict[str, Any]:
    """A point in a process of its own."""
    alone = os.environ | dict.fromkeys(_THREADS, "1")
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "benchmarks.how_far", "--point", kind, str(n_rows), str(n_columns), folder]
        said = subprocess.run(words, env=alone, check=True, capture_output=True, text=True).stdout
    found: dict[str, Any] = json.loads(said)
    return found


def point(kind: str, n_rows: str, n_columns: str, folder: str) -> None:
    """Print a point and the peak memory of this process, after what is compiled once has been loaded."""
    import resource

    GTM(random_state=0, max_iter=8).fit(sheet(20_000, int(n_columns)))
    found = POINTS[kind](int(n_rows), int(n_columns), folder)
    print(json.dumps(found | {"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


def take_m_steps(model: Any, sums: Any, parameters: Any) -> None:
    """The same M-step several times over."""
    for _ in range(_M_STEPS):
        model.noise.m_step(model.surface, sums, model.penalty, parameters)


def moved(n_columns: int) -> list[tuple[Any, ...]]:
    """Bytes of one iteration on a cluster, and seconds of its M-step, by the nodes of an axis."""
    from prinfold.gtm import model as gtm
    from prinfold.gtm.node_selection import Hint

    X, found = sheet(5000, n_columns), []
    for per_axis in (20, 30, 60):
        model = GTM(nodes=per_axis, basis=10, init="pca", max_iter=2, tol=0).fit(X)
        own, rows, parameters = model._model, model._rows(X), model._parameters()
        work = gtm.PortionSums(gtm.GTMModel(own.surface, own.noise, own.penalty), parameters, Hint(), np.float64)
        sent = len(pickle.dumps(work))
        sums = work(rows)
        _, seconds = timed(partial(take_m_steps, own, sums, parameters))
        found.append((per_axis**2, sent / 1e3, len(pickle.dumps(sums)) / 1e3, seconds / _M_STEPS))
    return found


def sheet_part(block_info: Any, n_columns: int) -> np.ndarray:
    """Rows of a sheet for one partition, made where it lies."""
    ((begin, end), _) = block_info[None]["array-location"]
    return sheet(end - begin, n_columns, seed=begin)


def per_iteration(rows: Any, clock: Callable[[], Any]) -> Any:
    """What a clock tells of one iteration of training, the start and the first pass left out."""
    found = []
    for n_iter in (2, 12):
        began = clock()
        GTM(**_NODES, init="pca", max_iter=n_iter, tol=0, relaxation=1, random_state=0).fit(rows)
        found.append(clock() - began)
    return (found[1] - found[0]) / 10


def clusters(n_rows: int, n_columns: int) -> list[tuple[Any, ...]]:
    """An iteration over partitions that workers hold, and over blocks of the same cuts in this process."""
    import dask.array as da
    from distributed import Client, LocalCluster

    table, found = None, []
    chunks = ((_PIECE,) * (n_rows // _PIECE), (n_columns,))
    for n_workers in (1, 2):
        options = {"n_workers": n_workers, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
        with LocalCluster(**options) as cluster, Client(cluster) as client:
            lazy = da.map_blocks(sheet_part, chunks=chunks, dtype=float, meta=np.empty((0, 0)), n_columns=n_columns)
            rows = client.persist(lazy)

            def clock(client: Any = client) -> np.ndarray:
                workers = sum(client.run(time.process_time).values())
                return np.array([time.perf_counter(), time.process_time(), workers])

            table = rows.compute() if table is None else table
            per_iteration(rows, clock)  # what is compiled once is loaded
            found.append((f"{n_workers} worker(s)", *per_iteration(rows, clock)))
    blocks = Blocks(table, rows=_PIECE)
    here = lambda: np.array([time.perf_counter(), time.process_time()])  # noqa: E731
    return [("blocks in this process", *per_iteration(blocks, here), 0.0), *found]


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fits", type=int, nargs="*", default=[1000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--passes", type=int, nargs="*", default=[1_000_000, 10_000_000])
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--cluster", type=int, default=1_000_000, help="rows on a small Dask cluster; 0 for none")
    parser.add_argument("--point", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.point:
        point(*options.point)
        return
    fits = [(n, measure("fit", n, options.columns)) for n in options.fits]
    heads = ("rows", "processor s", "iterations", "nodes", "peak, MB", "us a row and iteration")
    rows = [
        (
            n,
            p["seconds"],
            p["iterations"],
            p["nodes"],
            p["peak"] / 1e6,
            1e6 * p["seconds"] / n / max(p["iterations"], 1),
        )
        for n, p in fits
    ]
    print_table(f"default fits in memory, {options.columns} columns, one thread", heads, rows)
    passes = [(n, measure("pass", n, options.columns)) for n in options.passes]
    heads = ("rows", "file, MB", "processor s", "us a row", "reading alone, s", "peak, MB")
    rows = [
        (n, p["file"] / 1e6, p["seconds"], 1e6 * p["seconds"] / n, p["reading"], p["peak"] / 1e6) for n, p in passes
    ]
    print_table("one online pass over Parquet in single precision, 400 nodes, one thread", heads, rows)
    heads = ("nodes", "work sent, kB", "sums of a block, kB", "M-step, s")
    print_table(f"an iteration on a cluster, {options.columns} columns", heads, moved(options.columns))
    if options.cluster:
        heads = ("", "seconds by the wall clock", "processor s here", "processor s of workers")
        found = clusters(options.cluster, options.columns)
        print_table(f"an iteration over {options.cluster} rows, 400 nodes, on a small Dask cluster", heads, found)


if __name__ == "__main__":
    main()
