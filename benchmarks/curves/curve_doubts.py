"""How often a fitted curve says that rows do not lie along one, where they do and where they do not.

    python -m benchmarks.curves.curve_doubts [--full]

The limits in ``prinfold.curves.diagnosis`` were set on seeds 0 to 3 and 100 to 109; these are others.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.timing import print_table

from prinfold import OrientedPointsCurve, PolygonalCurve, PrincipalCurve, ProbabilisticCurve, datasets
from prinfold.exceptions import StructureWarning

Make = Callable[[np.random.Generator], np.ndarray]


def wave(rng: np.random.Generator, n: int = 400, noise: float = 0.1, columns: int = 2) -> np.ndarray:
    """A period of a sine."""
    t = rng.uniform(0, 6, size=n)
    X = np.zeros((n, columns))
    X[:, 0], X[:, 1] = t, np.sin(t)
    return X + noise * rng.normal(size=X.shape)


def arms(rng: np.random.Generator, angles: list[float], lengths: list[float], noise: float = 0.05) -> np.ndarray:
    """Straight arms from one point."""
    rows = [
        np.outer(rng.uniform(0, length, size=int(300 * length)), [np.cos(angle), np.sin(angle)])
        for angle, length in zip(angles, lengths, strict=True)
    ]
    X = np.vstack(rows)
    return X + noise * rng.normal(size=X.shape)


def clumps(rng: np.random.Generator, centers: list[tuple[float, float]]) -> np.ndarray:
    return np.vstack([0.1 * rng.normal(size=(100, 2)) + center for center in centers])


ALONG: dict[str, Make] = {
    "spiral": lambda rng: datasets.make_spiral(1000, rng=rng).X,
    "zig-zag": lambda rng: datasets.make_zigzag(400, rng=rng).X,
    "half circle, σ = 0.1": lambda rng: datasets.make_half_circle(100, noise=0.1, rng=rng).X,
    "half circle, σ = 0.2": lambda rng: datasets.make_half_circle(1000, noise=0.2, rng=rng).X,
    "wave": wave,
    "wave, 30 rows": lambda rng: wave(rng, n=30),
    "wave, 10 columns": lambda rng: wave(rng, noise=0.2, columns=10),
    "wave without noise": lambda rng: wave(rng, n=200, noise=0.0),
    "wave, tails of Student's t, 3 d.f.": lambda rng: wave(rng, noise=0) + 0.05 * rng.standard_t(3, size=(400, 2)),
    "Gaussian of 5, 1, 1": lambda rng: rng.normal(size=(300, 3)) * [5, 1, 1],
    "more and more rows to one end": lambda rng: np.c_[5 * rng.exponential(size=300), 0.3 * rng.normal(size=300)],
}

NOT_ALONG: dict[str, Make] = {
    "Y": lambda rng: arms(rng, [0, 2.1, 4.2], [1, 1, 1]),
    "T with a short stem": lambda rng: arms(rng, [0, 1.57, 3.14], [1, 0.4, 1]),
    "fork": lambda rng: arms(rng, [0, 2.8, 3.5], [1, 1, 1]),
    "star of five": lambda rng: arms(rng, [0, 1.26, 2.51, 3.77, 5.03], [1] * 5),
    "cross": lambda rng: arms(rng, [0, 1.57, 3.14, 4.71], [1] * 4),
    "blob": lambda rng: rng.normal(size=(300, 2)),
    "blob in 5 columns": lambda rng: rng.normal(size=(300, 5)),
    "square": lambda rng: rng.uniform(size=(500, 2)),
    "swiss roll": lambda rng: datasets.make_swiss_roll(600, rng=rng).X,
    "two clumps": lambda rng: clumps(rng, [(0, 0), (3, 0)]),
    "three clumps": lambda rng: clumps(rng, [(0, 0), (3, 0), (1.5, 2)]),
    "wave and one row far off": lambda rng: np.vstack([wave(rng), [[15, 15]]]),
    "wave among 20 % of rows anywhere": lambda rng: np.vstack([wave(rng), rng.uniform([-1, -3], [7, 3], (100, 2))]),
}

CURVES: dict[str, Callable[[], Any]] = {
    "PrincipalCurve": PrincipalCurve,
    "ProbabilisticCurve": ProbabilisticCurve,
    "PolygonalCurve": PolygonalCurve,
    "OrientedPointsCurve": OrientedPointsCurve,
}


def doubted(make: Make, curve: Callable[[], Any], seed: int) -> bool:
    """Whether a fit gave a :class:`~prinfold.exceptions.StructureWarning`."""
    X = make(np.random.default_rng(seed))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        curve().fit(X)
    return any(issubclass(each.category, StructureWarning) for each in caught)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="ten samples of each in place of three")
    seeds = range(200, 210 if parser.parse_args().full else 203)
    for title, shapes in (("Rows along a curve", ALONG), ("Rows that are not", NOT_ALONG)):
        table = [
            [name, *(sum(doubted(make, curve, seed) for seed in seeds) for curve in CURVES.values())]
            for name, make in shapes.items()
        ]
        print_table(f"{title}: fits of {len(seeds)} that doubt it", ["rows", *CURVES], table)


if __name__ == "__main__":
    main()
