"""What unsupervised kernel regression costs and gives: kernels and landmarks by the number of rows.

    python -m benchmarks.kernel_manifolds.ukr [--full]

A swiss roll with noise. Processor seconds of the whole fit, the start included, and of placing 1000 new rows; then the
mean squared distance of points of the true roll from the surface, and of the surface from the roll. Numbers are
medians over seeds. Where training should end is the subject of ``ukr_stopping.py``, and what the objective itself costs
that of ``kernel_regression.py``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from benchmarks.timing import print_table
from sklearn.exceptions import ConvergenceWarning

from prinfold import UKR, datasets
from prinfold.exceptions import PrinfoldWarning

CONTESTANTS: dict[str, dict[str, Any]] = {
    "gaussian": {},
    "quartic": {"kernel": "quartic"},
    "400 landmarks": {"landmarks": 400},
    "1000 landmarks": {"landmarks": 1000},
    "gaussian, rprop": {"solver": "rprop"},
}


class Result(NamedTuple):
    """Seconds, steps and distances of one fit."""

    fit: float
    steps: float
    place: float
    from_truth: float
    from_surface: float


def cpu(work: Callable[[], Any]) -> float:
    clock = time.process_time()
    work()
    return time.process_time() - clock


def run(options: dict[str, Any], n: int, seed: int) -> Result:
    seen = datasets.make_swiss_roll(n, noise=0.3, rng=seed)
    new = datasets.make_swiss_roll(1000, noise=0.3, rng=seed + 1000).X
    true = datasets.make_swiss_roll(1000, noise=0.0, rng=seed + 2000).X
    model = UKR(2, **options)
    fit = cpu(lambda: model.fit(seen.X))
    place = cpu(lambda: model.transform(new))
    apart = seen.surface.distance(model.sample(1000, random_state=0)) ** 2
    return Result(fit, float(model.n_iter_), place, model.projection_error(true), float(apart.mean()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="5 seeds rather than 2, and 4000 rows")
    full = parser.parse_args().full
    warnings.simplefilter("ignore", (ConvergenceWarning, PrinfoldWarning))
    run(CONTESTANTS["quartic"], 600, 0)  # compiles what is compiled
    heads = ("way", "fit, CPU s", "steps", "place 1000 rows, CPU s", "truth to surface", "surface to truth")
    for n in (500, 1000, 4000) if full else (500, 1000):
        rows = []
        for name, options in CONTESTANTS.items():
            if options.get("landmarks", 0) >= n:
                continue
            results = [run(options, n, seed) for seed in range(5 if full else 2)]
            rows.append((name, *(float(np.median(part)) for part in zip(*results, strict=True))))
        print_table(f"swiss roll, {n} rows, noise 0.3: squared distances", heads, rows)


if __name__ == "__main__":
    main()
