"""The command line: what it takes to start and to read a table, by kind of file, beside pandas.

    python -m benchmarks.command_line [--full] [--only 1,2]

1. Seconds until a command answers: the help, a table looked at, a small fit.
2. Seconds and peak memory of reading a table of ten columns, by kind of file, as ratios to the table itself in memory.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from benchmarks.timing import clocked, peak_mb, print_table

from prinfold.cli.tables.reading import read_table

COLUMNS = 10


def starts(folder: Path) -> None:
    np.savetxt(folder / "small.csv", _rows(200), delimiter=",", fmt="%.6g", header=_names(), comments="")
    rows = []
    for words in (["--help"], ["info", "small.csv"], ["fit", "small.csv", "--force"]):
        times = []
        for _ in range(3):
            clock = time.perf_counter()
            subprocess.run([sys.executable, "-m", "prinfold", *words], cwd=folder, capture_output=True, check=True)
            times.append(time.perf_counter() - clock)
        rows.append((f"prinfold {' '.join(words)}", min(times)))
    print_table("Seconds until a command is done, the least of three", ("command", "seconds"), rows)


def reading(folder: Path, n: int) -> None:
    import pandas as pd
    import pyarrow as pa
    from pyarrow import feather, parquet

    X = _rows(n)
    text = folder / "data.csv"
    np.savetxt(text, X, delimiter=",", fmt="%.9g", header=_names(), comments="")
    (folder / "comma.csv").write_text(text.read_text().replace(",", ";").replace(".", ","))
    table = pa.table(dict(zip(_names().split(","), X.T, strict=True)))
    parquet.write_table(table, folder / "data.parquet")
    feather.write_feather(table, folder / "data.feather")
    np.save(folder / "data.npy", X)
    readers = {
        name: lambda name=name: read_table(folder / name)
        for name in ("data.csv", "comma.csv", "data.parquet", "data.feather", "data.npy")
    }
    readers["data.csv by pandas"] = lambda: pd.read_csv(text)
    rows = [
        (name, (folder / name.split()[0]).stat().st_size / 1e6, min(clocked(read, 3)), peak_mb(read) / (X.nbytes / 1e6))
        for name, read in readers.items()
    ]
    heads = ("file", "MB", "seconds", "peak memory / table (without Arrow's own)")
    print_table(f"Reading {n} rows × {COLUMNS} columns ({X.nbytes / 1e6:.0f} MB in memory)", heads, rows)


def _rows(n: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, COLUMNS))


def _names() -> str:
    return ",".join(f"x{j}" for j in range(COLUMNS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="a million rows")
    parser.add_argument("--only", default="1,2", help="numbers of the tables to print, such as 1")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if "1" in options.only:
            starts(Path(name))
        if "2" in options.only:
            reading(Path(name), 1_000_000 if options.full else 100_000)


if __name__ == "__main__":
    main()
