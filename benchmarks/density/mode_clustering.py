"""What clusters by modes cost and find, beside scikit-learn's mean shift.

    python -m benchmarks.density.mode_clustering [--full]

Six round clusters in a plane. Scikit-learn's kernel is flat: a ball of radius h has the variance h²/4 there, so that it
gets twice our bandwidth. Seconds are those of the processor, of all threads together; only ratios within a run count.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.timing import print_table
from sklearn.cluster import MeanShift
from sklearn.metrics import adjusted_rand_score

from prinfold import ModeClustering

BANDWIDTH = 0.8


def of_processor(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the processor, and what came out."""
    clock = time.process_time()
    found = work()
    return time.process_time() - clock, found


def clusters(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 6, n)
    centers = 5.0 * np.stack([np.cos(np.arange(6.0)), np.sin(np.arange(6.0))], axis=1)
    return centers[y] + rng.normal(0, 0.8, (n, 2)), y


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="up to 10 000 rows for the peer: minutes")
    given = parser.parse_args()
    ModeClustering(bandwidth=BANDWIDTH).fit(clusters(3000)[0])  # compiles what is to be compiled
    lines = []
    for n in (1000, 3000, 10_000) if given.full else (500, 1000):
        X, y = clusters(n)
        ours, model = of_processor(lambda X=X: ModeClustering(bandwidth=BANDWIDTH).fit(X))
        theirs, flat = of_processor(lambda X=X: MeanShift(bandwidth=2 * BANDWIDTH).fit(X))
        lines.append(
            [
                f"{n}",
                f"{ours:.3g}",
                f"{theirs / ours:.0f}",
                f"{len(model.modes_)}, {len(flat.cluster_centers_)}",
                f"{adjusted_rand_score(y, model.labels_):.3f}, {adjusted_rand_score(y, flat.labels_):.3f}",
            ]
        )
    print_table(
        "six clusters by their modes, ours and scikit-learn's mean shift",
        ["rows", "seconds", "theirs over ours", "clusters", "adjusted Rand index"],
        lines,
    )


if __name__ == "__main__":
    main()
