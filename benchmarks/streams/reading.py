"""Tables larger than memory: what training from files takes, in memory and in time, beside rows in memory.

Part of ``streams.py``. Each fit runs in a process of its own, whose peak memory is what the system saw (``VmHWM``);
times are those of the processor, so that other jobs do not count.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.timing import print_table

N_COLUMNS = 20
AT_ONCE = 250_000
SETTINGS = {"nodes": 20, "basis": 7, "max_iter": 8, "tol": 0.0, "random_state": 0}


def sheet(n: int, seed: int) -> np.ndarray:
    """Rows of a bent sheet in 20 columns, in single precision."""
    rng = np.random.default_rng(seed)
    u, v = rng.uniform(-1, 1, (2, n))
    curved = np.stack([2 * u, v, np.sin(2 * u), u * v], axis=1)
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((N_COLUMNS, 4)))[0]
    return (curved @ turn.T + 0.05 * rng.standard_normal((n, N_COLUMNS))).astype(np.float32)


def write(folder: Path, n_rows: int) -> dict[str, Path]:
    """The same rows as a NumPy, a Parquet and a Zarr file, written piece by piece."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    import zarr

    names = [f"c{j}" for j in range(N_COLUMNS)]
    paths = {kind: folder / f"rows.{kind}" for kind in ("npy", "parquet", "zarr")}
    mapped = np.lib.format.open_memmap(paths["npy"], mode="w+", dtype=np.float32, shape=(n_rows, N_COLUMNS))
    chunked = zarr.create_array(
        str(paths["zarr"]), shape=mapped.shape, chunks=(min(AT_ONCE, n_rows), N_COLUMNS), dtype=np.float32
    )
    schema = pa.schema([(name, pa.float32()) for name in names])
    with pq.ParquetWriter(paths["parquet"], schema) as writer:
        for seed, start in enumerate(range(0, n_rows, AT_ONCE)):
            part = slice(start, min(start + AT_ONCE, n_rows))
            rows = sheet(part.stop - part.start, seed)
            mapped[part], chunked[part] = rows, rows
            writer.write_table(pa.table(list(rows.T.copy()), schema=schema))
    mapped.flush()
    return paths


def peak() -> float:
    """Most megabytes that this process has had in memory so far."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def child(kind: str, path: str) -> None:
    """One fit; prints what it took."""
    from prinfold import GTM, Blocks
    from prinfold.loops import fixed_point

    warnings.simplefilter("ignore")
    fixed_point.perf_counter = time.process_time  # what other jobs on the machine take does not count
    before = peak()
    source = np.load(path) if kind == "in memory" else Blocks(path)
    model = GTM(**SETTINGS).fit(source)
    seconds, reading = model.history_["seconds"], None
    if kind != "in memory":
        clock = time.process_time()
        for _ in source:
            pass
        reading = time.process_time() - clock
    print(
        json.dumps(
            {
                "before": before,
                "peak": peak(),
                "pass": float(np.median(np.diff(seconds)[-4:])),
                "reading": reading,
                "objective": model.history_["objective"][-1],
            }
        )
    )


def measured(kind: str, path: Path) -> dict[str, float]:
    """A fit in a process of its own."""
    program = "import sys; from benchmarks.streams.reading import child; child(*sys.argv[1:])"
    command = [sys.executable, "-c", program, kind, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def growth(sizes: tuple[int, ...]) -> None:
    """What reading costs, and where training from blocks ends."""
    peaks(sizes)
    ending(max(sizes) // 10)


def peaks(sizes: tuple[int, ...]) -> None:
    """Peak memory and time of a pass by the number of rows and by where they are."""
    table = []
    for n_rows in sizes:
        with tempfile.TemporaryDirectory() as folder:
            paths = write(Path(folder), n_rows)
            runs = {"in memory": paths["npy"], **paths}
            found = {kind: measured(kind, path) for kind, path in runs.items()}
            for kind, each in found.items():
                size = sum(file.stat().st_size for file in [runs[kind], *runs[kind].rglob("*")] if file.is_file())
                ratio = each["pass"] / found["in memory"]["pass"]
                reading = "" if each["reading"] is None else f"{each['reading'] / each['pass']:.0%}"
                table.append(
                    [f"{n_rows:,}", kind, f"{size / 2**20:.0f}", f"{each['before']:.0f}", f"{each['peak']:.0f}"]
                    + [f"{each['pass']:.2f}", f"{ratio:.2f}", reading, f"{each['objective']:.6f}"]
                )
    print_table(
        f"Rows × {N_COLUMNS} columns in single precision, {SETTINGS['nodes']} × {SETTINGS['nodes']} nodes, late passes",
        [
            "rows",
            "from",
            "file, MB",
            "MB after imports",
            "peak MB",
            "CPU s/pass",
            "beside memory",
            "reading",
            "objective",
        ],
        table,
    )


def ending(n_rows: int) -> None:
    """Where training from blocks comes to rest, beside training on the same rows in memory.

    A start from a sample may lead to another stationary point than one from all rows, so that training in memory is
    begun where that from blocks begins, too.
    """
    from prinfold import GTM, Blocks, datasets

    warnings.simplefilter("ignore")
    settings = {"nodes": 15, "basis": 6, "tol": 1e-5, "max_iter": 500, "random_state": 0}
    tables = {
        "pipe flow": datasets.make_pipe_flow(1000, rng=0).X,
        "pipe flow, many rows": datasets.make_pipe_flow(n_rows, rng=1).X.astype(np.float32),
        "bent sheet": sheet(n_rows, 1),
    }
    table = []
    for name, X in tables.items():
        fits = [GTM(**settings).fit(X), begun_as_blocks(GTM(**settings), X), GTM(**settings).fit(Blocks(X))]
        own, same, found = (model.history_["log_likelihood"][-1] for model in fits)
        steps = " / ".join(str(model.n_iter_) for model in fits)
        ends = [f"{each:.5f}" for each in (own, same, found)]
        table.append([name, f"{len(X):,}", *ends, f"{abs(found - same) / abs(same):.1e}", steps])
    print_table(
        "Log-likelihood per row where training ends",
        ["data", "rows", "in memory", "begun as blocks", "from blocks", "relative difference", "iterations"],
        table,
    )


def begun_as_blocks(model: Any, X: np.ndarray) -> Any:
    """The model trained on rows in memory from where training from blocks would begin."""
    from prinfold import Blocks
    from prinfold.gtm.fitting import train_map
    from prinfold.rows.rows import as_rows

    recipe, job = model._assemble_blocks(Blocks(X), None, None)
    rows = as_rows(X, job.rows.offset, width=job.model.surface.latent.n_nodes)
    found = train_map(recipe, job._replace(rows=rows), recipe.begin(recipe, job), model._run_with_callbacks)
    model._keep(found.attributes, found.outcome)
    return model
