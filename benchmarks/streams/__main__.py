"""Streams and large data: what training from files costs, in memory and in time.

    python -m benchmarks.streams [--full] [--only 1]

1. Peak memory of a process that trains a GTM from Parquet, NumPy and Zarr files, by the number of rows, and the time of
   a pass beside one over the same rows in memory; up to ten million rows with ``--full``.
2. Passes and seconds that batch, incremental and online EM take to a stationary point.
3. How far from batch EM they end where there is one optimum to come to.
"""

from __future__ import annotations

import argparse

from benchmarks.streams import reading, training

SIZES = {False: (100_000, 1_000_000), True: (100_000, 1_000_000, 10_000_000)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="up to ten million rows")
    parser.add_argument("--only", default="1,2,3", help="numbers of the tables to print, such as 1")
    options = parser.parse_args()
    tables = {
        "1": lambda: reading.growth(SIZES[options.full]),
        "2": lambda: training.growth(options.full),
        "3": lambda: training.ends(options.full),
    }
    for number in options.only.split(","):
        tables[number]()


if __name__ == "__main__":
    main()
