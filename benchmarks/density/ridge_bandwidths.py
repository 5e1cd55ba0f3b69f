"""Where rules for the bandwidth land: distance of the ridge to the true curve or surface, both ways.

    python -m benchmarks.density.ridge_bandwidths [--set judge|develop] [--seeds 100:102] [--only 1,2] [--full]

The error of a ridge is √((there² + back²)/2), with ``there`` the root mean squared distance of its points to the truth
and ``back`` that of the truth to the ridge. Each rule is compared with the best of a grid of bandwidths, which nobody
knows. "wide_likelihood" was developed on zig-zag, spiral, star, epitrochoid, half circle, a helix and two sheets
(``--set develop``) and judged on a knot, a figure of eight, the bent line of the thesis, swiss roll and corkscrew with
other seeds (``--set judge``, the default).

1. Where rules land against the best, by rule and by shape.
2. Outliers and clutter: what they do to the bandwidth, and the error that is left.
3. When "wide_likelihood" fails: lines side by side, uneven density, noise wider than the gaps.
4. What rules cost by the number of rows.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from benchmarks.density.true_shapes import SETS, Shape, Truth, curve, of, ridge_of, total
from benchmarks.timing import print_table
from joblib import Parallel, delayed

from prinfold import datasets
from prinfold._typing import FloatArray
from prinfold.datasets import Dataset
from prinfold.datasets.surface import TrueSurface, polyline
from prinfold.density.bandwidths import BANDWIDTHS

GRID = np.geomspace(0.5, 6.0, 14)
"""Bandwidths tried, in units of the likeliest."""

RULES = [name for name in BANDWIDTHS if name != "plain_likelihood"]


class Landing(NamedTuple):
    """Errors at the best bandwidth of the grid and at those of rules."""

    shape: str
    kind: str
    n: int
    noise: float
    best: float
    at_best: tuple[float, float]
    bandwidth: dict[str, float]
    errors: dict[str, tuple[float, float]]


def land(
    name: str, shape: Shape, noise: float, kind: str, n: int, seed: int, rules: Sequence[str] = tuple(RULES)
) -> Landing:
    data = shape.make(n, noise, kind, seed)
    assert data.surface is not None
    truth, weight, d = Truth(data.surface), np.ones(n), shape.dimension
    rule = {key: BANDWIDTHS[key](data.X, weight, d, np.random.default_rng(seed)) for key in rules}
    tried = float(np.asarray(rule["likelihood"])) * GRID
    grid = [truth.errors(ridge_of(data.X, h, d)) for h in tried]
    best = int(np.argmin([total(each) for each in grid]))
    errors = {key: truth.errors(ridge_of(data.X, h, d)) for key, h in rule.items()}
    usual = {key: float(np.exp(np.mean(np.log(h)))) for key, h in rule.items()}
    return Landing(name, kind, n, noise, float(tried[best]), grid[best], usual, errors)


def where_rules_land(shapes: dict[str, Shape], seeds: Sequence[int], full: bool) -> None:
    sizes = (100, 300, 1000, 3000) if full else (100, 300, 1000)
    found: list[Landing] = Parallel(n_jobs=-1)(
        delayed(land)(name, shape, noise, kind, n, seed)
        for name, shape in shapes.items()
        for noise in shape.noises
        for kind in ("normal", "isotropic")
        for n in sizes
        for seed in seeds
    )
    print_rules(found, sizes)
    print_shapes(found)


def print_rules(found: list[Landing], sizes: Sequence[int]) -> None:
    rows = []
    for rule in RULES:
        ratio = np.array([total(each.errors[rule]) / total(each.at_best) for each in found])
        width = np.array([each.bandwidth[rule] / each.best for each in found])
        by_size = [_spread(ratio[[each.n == n for each in found]]) for n in sizes]
        by_kind = [_spread(ratio[[each.kind == kind for each in found]]) for kind in ("normal", "isotropic")]
        rows.append((rule, _spread(ratio), *by_size, *by_kind, _spread(width, (10, 50, 90))))
    heads = ("rule", "all", *(f"n = {n}" for n in sizes), "normal", "isotropic", "h over the best: 10, 50, 90 %")
    print_table(f"Error over that of the best bandwidth, median and 90 %, {len(found)} tables", heads, rows)


def print_shapes(found: list[Landing]) -> None:
    groups = defaultdict(list)
    for each in found:
        groups[each.shape, each.noise, each.kind].append(each)
    rows = []
    for (name, noise, kind), several in groups.items():
        for n in sorted({each.n for each in several}):
            mine = [each for each in several if each.n == n]
            factor = np.median([each.best / each.bandwidth["likelihood"] for each in mine])
            auto = np.median([each.bandwidth["wide_likelihood"] / each.bandwidth["likelihood"] for each in mine])
            errors = [e.errors["wide_likelihood"] for e in mine]
            pairs = [np.median([e.at_best for e in mine], axis=0), np.median(errors, axis=0)]
            rows.append((name, noise, kind, n, factor, auto, *(f"{a:.3g} / {b:.3g}" for a, b in pairs)))
    heads = ("shape", "noise", "kind", "n", "best / likeliest", "auto / likeliest", "there / back, best", "auto")
    print_table("By shape: bandwidths over the likeliest, and errors", heads, rows)


def _spread(values: FloatArray, at: Sequence[int] = (50, 90)) -> str:
    return " ".join(f"{each:.2f}" for each in np.percentile(values, at)) if len(values) else "–"


# -------------------------------------------------------------------------------------------- outliers, failures


OUTLIERS = (("none", 0.0, 0.0), ("3 in 500", 0.006, 4.0), ("3 in 500, far", 0.006, 1e3), ("10 %", 0.1, 2.0))
"""Words, share of the rows, and how far they are in standard deviations of a column."""


def outliers(seeds: Sequence[int]) -> None:
    rows = []
    for name in ("zig-zag", "spiral", "half circle"):
        shape = SETS["develop"][name]
        for words, share, reach in OUTLIERS:
            found = [_with_outliers(shape, share, reach, seed) for seed in seeds]
            rows.append((name, words, *(float(each) for each in np.median(found, axis=0))))
    heads = ("shape", "outliers", "plain likelihood", "likelihood", "auto", "plugin", "there, auto", "back, auto")
    print_table("Bandwidths with outliers, 500 rows, and errors within 5 bandwidths of the truth", heads, rows)


def _with_outliers(shape: Shape, share: float, reach: float, seed: int) -> list[float]:
    data, rng = shape.make(500, shape.noises[1], "normal", seed), np.random.default_rng(seed)
    assert data.surface is not None
    size = np.sqrt(data.X.var(axis=0).mean())
    far = data.X.mean(axis=0) + reach * size * rng.uniform(-1, 1, size=(round(share * 500), 2))
    X = np.concatenate([data.X, far])
    rules = ("plain_likelihood", "likelihood", "wide_likelihood", "plugin")
    widths = [float(np.asarray(BANDWIDTHS[rule](X, np.ones(len(X)), 1, rng))) for rule in rules]
    ridge = ridge_of(X, widths[2], 1)
    near = ridge.only(data.surface.distance(ridge.points) < 5 * widths[2])
    return [*widths, *Truth(data.surface).errors(near)]


def two_lines(gap: float) -> TrueSurface:
    """A bow that is so narrow that its two sides are lines side by side."""
    return polyline("two lines", np.array([[0.0, 0.0], [4.0, 0.0], [4.0, gap], [0.0, gap]]))


def failures(seeds: Sequence[int]) -> None:
    rows = []
    for gap in (2.0, 3.0, 4.0, 6.0, 10.0):
        shape = Shape(of(lambda gap=gap: two_lines(0.05 * gap)), 1, (0.05,))
        rows.append(_failure(f"sides {gap:g} σ apart", shape, 0.05, seeds))
    spiral = SETS["develop"]["spiral"]
    rows += [_failure(f"spiral, whorls 0.5 apart, σ = {noise:g}", spiral, noise, seeds) for noise in (0.04, 0.08, 0.12)]
    for growth in (1.0, 3.0, 5.0):
        shape = Shape(_uneven(growth), 1, (0.05,))
        rows.append(_failure(f"wave, e^{growth:g} times as dense at one end", shape, 0.05, seeds))
    heads = (
        "500 rows",
        "auto / best",
        "σ / h",
        "there, best",
        "back, best",
        "there, auto",
        "back, auto",
        "neighbors / best",
    )
    print_table("When auto fails", heads, rows)


def _uneven(growth: float) -> Callable[..., Dataset]:
    """A wave along which rows become rarer, by e^growth from one end to the other."""
    surface = curve(
        "wave",
        lambda u: (u, 0.4 * np.sin(3 * u)),
        lambda u: (np.ones_like(u), 1.2 * np.cos(3 * u)),
        0.0,
        4.0,
        closed=False,
    )

    def make(n: int, noise: float, kind: str, seed: int) -> Dataset:
        rng = np.random.default_rng(seed)
        share = rng.uniform(size=(n, 1))
        U = 4.0 * np.log1p(share * np.expm1(-growth)) / -growth
        X = surface.point(U) + np.einsum("nd,n->nd", surface.normals(U)[:, :, 0], rng.normal(scale=noise, size=n))
        return Dataset(X, U, surface.point(U), surface)

    return make


def _failure(words: str, shape: Shape, noise: float, seeds: Sequence[int]) -> tuple:
    rules = ("likelihood", "wide_likelihood", "neighbors")
    found = [land(words, shape, noise, "normal", 500, seed, rules) for seed in seeds]
    h = np.median([each.bandwidth["wide_likelihood"] for each in found])
    ratio = np.median([total(each.errors["wide_likelihood"]) / total(each.at_best) for each in found])
    best = np.median([each.at_best for each in found], axis=0)
    auto = np.median([each.errors["wide_likelihood"] for each in found], axis=0)
    adaptive = np.median([total(each.errors["neighbors"]) / total(each.at_best) for each in found])
    return words, float(ratio), float(noise / h), *map(float, best), *map(float, auto), float(adaptive)


# --------------------------------------------------------------------------------------------------------- cost


def cost(full: bool) -> None:
    sizes = (1000, 10_000, 100_000, 1_000_000) if full else (1000, 10_000, 100_000)
    rows = []
    for rule in ("silverman", "likelihood", "plugin", "wide_likelihood", "auto", "neighbors", "agreement"):
        seconds = []
        for n in sizes:
            X = datasets.make_spiral(n, 0.04, "normal", 0).X
            run = BANDWIDTHS[rule]
            run(X[:1000], np.ones(1000), 1, np.random.default_rng(0))
            start = time.perf_counter()
            run(X, np.ones(n), 1, np.random.default_rng(0))
            seconds.append(time.perf_counter() - start)
        growth = np.log(seconds[-1] / seconds[-2]) / np.log(sizes[-1] / sizes[-2])
        rows.append((rule, *seconds, float(growth)))
    heads = ("rule", *(f"{n:,} rows" for n in sizes), "growth exponent at the end")
    print_table("Seconds for a bandwidth, spiral", heads, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=SETS, default="judge")
    parser.add_argument("--seeds", default="100:101", help="from and below; --full takes two more")
    parser.add_argument("--only", default="1,2,3,4")
    parser.add_argument("--full", action="store_true", help="more rows, seeds and samples")
    given = parser.parse_args()
    low, high = map(int, given.seeds.split(":"))
    seeds = range(low, high + 2 if given.full else high)
    tables: dict[str, Callable[[], None]] = {
        "1": lambda: where_rules_land(SETS[given.set], seeds, given.full),
        "2": lambda: outliers(seeds),
        "3": lambda: failures(seeds),
        "4": lambda: cost(given.full),
    }
    for each in given.only.split(","):
        tables[each]()


if __name__ == "__main__":
    main()
