"""How sure ridges are: what bands hold, how often blobs are said to have a ridge, and curves none.

    python -m benchmarks.density.ridge_certainty [--only 1,2] [--full]

1. Bands of 90 %: how often they hold the ridge of the density as the kernels smooth it (that of 40 000 rows with the
   same bandwidth), and the true curve, which smoothing moves at bends.
2. Significance at 5 %: points and branches by chance, on rows without any ridge and on curves.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import numpy as np
from benchmarks.density.true_shapes import SETS, Shape, ridge_of
from benchmarks.timing import print_table
from joblib import Parallel, delayed

from prinfold import datasets
from prinfold._typing import FloatArray
from prinfold.density.bandwidths import BANDWIDTHS
from prinfold.density.densities import KernelDensity
from prinfold.density.ridges.bands import ridge_bands
from prinfold.density.ridges.mean_shift import Flow, Status
from prinfold.density.ridges.significance import ridge_significance


def bands(seeds: Sequence[int], full: bool) -> None:
    rows = []
    for name in ("half circle", "zig-zag", "spiral"):
        shape = SETS["develop"][name]
        for n in (200, 1000):
            found = [_bands(shape, n, seed, 100 if full else 40) for seed in seeds]
            rows.append((name, n, *(float(each) for each in np.mean(found, axis=0))))
    heads = ("shape", "rows", "median radius / h", "holds smoothed", "holds truth", "all at once", "found again")
    print_table("Bands of 90 %: share of the points within them", heads, rows)


def _bands(shape: Shape, n: int, seed: int, n_samples: int) -> list[float]:
    data = shape.make(n, shape.noises[1], "normal", seed)
    assert data.surface is not None
    h = float(np.asarray(BANDWIDTHS["wide_likelihood"](data.X, np.ones(n), 1, np.random.default_rng(0))))
    points = ridge_of(data.X, h, 1, 200).points

    def make_flow(rows: FloatArray, weight: FloatArray) -> Flow:
        return Flow(KernelDensity(rows, weight, h), 1, tol=1e-4)

    band = ridge_bands(points, data.X, np.ones(n), make_flow, n_samples=n_samples, rng=seed)
    many = shape.make(40_000, shape.noises[1], "normal", seed + 1000).X
    smooth = make_flow(many, np.ones(len(many)))(points)
    apart = np.linalg.norm(smooth.points - points, axis=1)
    truth = data.surface.distance(points)
    return [
        float(np.median(band.radius) / h),
        float((apart <= band.radius).mean()),
        float((truth <= band.radius).mean()),
        float((apart <= band.uniform_radius).all()),
        float(band.found.mean()),
    ]


def _disc(rng: np.random.Generator, n: int) -> FloatArray:
    X = rng.normal(size=(n, 2))
    return X / np.linalg.norm(X, axis=1, keepdims=True) * np.sqrt(rng.uniform(size=(n, 1)))


BLOBS: dict[str, Callable[[np.random.Generator, int], FloatArray]] = {
    "normal, 2 columns": lambda rng, n: rng.normal(size=(n, 2)),
    "normal, 3 columns": lambda rng, n: rng.normal(size=(n, 3)),
    "square": lambda rng, n: rng.uniform(size=(n, 2)),
    "disc": _disc,
    "oval 2 : 1": lambda rng, n: rng.normal(size=(n, 2)) * [1.0, 0.5],
    "half circle": lambda rng, n: datasets.make_half_circle(n, 0.1, rng=rng).X,
    "zig-zag": lambda rng, n: datasets.make_zigzag(n, 0.06, rng=rng).X,
    "spiral": lambda rng, n: datasets.make_spiral(n, 0.06, "normal", rng).X,
}


def significance(full: bool) -> None:
    tables, n_samples, sizes = (40, 59, (100, 400)) if full else (20, 29, (100,))
    rows = []
    for name, draw in BLOBS.items():
        for n in sizes:
            found = Parallel(n_jobs=-1)(delayed(_significant)(draw, n, seed, n_samples) for seed in range(tables))
            rows.append((name, n, *(float(each) for each in np.mean(found, axis=0))))
    heads = ("rows from", "n", "points with p ≤ 0.05", "tables with a branch, p ≤ 0.05", "median strength")
    print_table(f"Significance, {tables} tables each, beside {n_samples} samples", heads, rows)


def _significant(draw: Callable, n: int, seed: int, n_samples: int) -> list[float]:
    X = draw(np.random.default_rng(seed), n)
    h = float(np.asarray(BANDWIDTHS["wide_likelihood"](X, np.ones(n), 1, np.random.default_rng(0))))

    def make_flow(rows: FloatArray, weight: FloatArray) -> Flow:
        return Flow(KernelDensity(rows, weight, h), 1, tol=1e-3, max_iter=200)

    found = make_flow(X, np.ones(n))(X)
    found = found.only(found.status == Status.CONVERGED)
    if len(found.points) == 0:
        return [0.0, 0.0, 0.0]
    result = ridge_significance(found, None, X, np.ones(n), make_flow, n_samples=n_samples, rng=seed)
    branch = result.branch_p_value.min(initial=1.0)
    return [float((result.p_value <= 0.05).mean()), float(branch <= 0.05), float(np.median(result.strength))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="1,2")
    parser.add_argument("--full", action="store_true", help="more seeds, tables and samples")
    given = parser.parse_args()
    tables: dict[str, Callable[[], None]] = {
        "1": lambda: bands(range(12 if given.full else 3), given.full),
        "2": lambda: significance(given.full),
    }
    for each in given.only.split(","):
        tables[each]()


if __name__ == "__main__":
    main()
