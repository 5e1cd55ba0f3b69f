"""How near principal curves come to the truth, and what they cost.

    python -m benchmarks.curves [--full] [--only 1,3] [--figures FOLDER]

1. Shapes whose true curve is known: distances in both directions, length and time, beside pcurvepy2 and elpigraph
   where they are installed.
2. Time by the number of rows.
3. Bias on a half circle (figure 3 of Chang & Ghosh, 2001): outwards by the noise, inwards by the smoother, and what
   the correction of Banfield and Raftery leaves of it.
4. Rules for how much to smooth: cross-validation alone, with degrees of freedom counted for places too, and with
   bends no finer than the noise.
5. Hastie and Stuetzle's curves and Kégl's line of McQueen's figures 1 and 3, zig-zag and spiral.
6. How often rows are taken to lie on a closed curve, that do and that do not.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.timing import print_table
from scipy.spatial import cKDTree

from prinfold import (
    DensityRidge,
    LocalLinear,
    OrientedPointsCurve,
    PolygonalCurve,
    PrincipalCurve,
    ProbabilisticCurve,
    SmoothingSpline,
    datasets,
)
from prinfold.curves import hastie_stuetzle
from prinfold.datasets import Dataset

SHAPES: dict[str, tuple[Callable[[int], Dataset], bool]] = {
    "spiral, 1000": (lambda seed: datasets.make_spiral(1000, rng=seed), False),
    "spiral, 300": (lambda seed: datasets.make_spiral(300, rng=seed), False),
    "zig-zag, 400": (lambda seed: datasets.make_zigzag(400, rng=seed), False),
    "half circle, 100": (lambda seed: datasets.make_half_circle(100, rng=seed), False),
    "circle, 200": (lambda seed: datasets.make_circle(200, rng=seed), True),
    "knot, 400": (lambda seed: datasets.make_knot(400, rng=seed), True),
}
_FINE = 4000


# --------------------------------------------------------------------------------------------------- contestants


def ours(**settings: Any) -> Callable[[np.ndarray, bool], np.ndarray]:
    def fit(X: np.ndarray, closed: bool) -> np.ndarray:
        model = PrincipalCurve(**settings, closed=closed).fit(X)
        return model.inverse_transform(np.linspace(0, model.length_, _FINE)[:, None])

    return fit


def probable(**settings: Any) -> Callable[[np.ndarray, bool], np.ndarray]:
    def fit(X: np.ndarray, closed: bool) -> np.ndarray:
        model = ProbabilisticCurve(**settings, closed=closed).fit(X)
        return model.inverse_transform(np.linspace(0, model.length_, _FINE)[:, None])

    return fit


def ridge(X: np.ndarray, closed: bool) -> np.ndarray:
    return np.asarray(DensityRidge().fit(X).mesh(_FINE).vertices)


def polygonal(X: np.ndarray, closed: bool) -> np.ndarray:
    return finely(PolygonalCurve(closed=closed).fit(X).vertices_, closed)


def oriented_points(X: np.ndarray, closed: bool) -> np.ndarray:
    model = OrientedPointsCurve().fit(X)  # it finds out by itself whether it closes
    return np.asarray(model.inverse_transform(np.linspace(0, model.length_, _FINE)[:, None]))


def pcurvepy2(X: np.ndarray, closed: bool) -> np.ndarray:
    from pcurvepy2 import PrincipalCurve as Theirs

    if closed:
        raise NotImplementedError
    model = Theirs()
    model.fit(X)
    return finely(np.asarray(model.points), closed=False)


def elpigraph(X: np.ndarray, closed: bool) -> np.ndarray:
    import elpigraph as theirs

    make = theirs.computeElasticPrincipalCircle if closed else theirs.computeElasticPrincipalCurve
    found = make(X, NumNodes=50)[0]
    nodes, edges = found["NodePositions"], found["Edges"][0]
    t = np.linspace(0, 1, 60)[None, :, None]
    return (nodes[edges[:, 0]][:, None] * (1 - t) + nodes[edges[:, 1]][:, None] * t).reshape(-1, X.shape[1])


CONTESTANTS: dict[str, Callable[[np.ndarray, bool], np.ndarray]] = {
    "spline": ours(),
    "spline, corrected": ours(bias_correction=True),
    "spline, from the line": ours(init="pca"),
    "local lines": ours(smoother="local_linear"),
    "kernel": ours(smoother="kernel"),
    "polygonal line": polygonal,
    "oriented points": oriented_points,
    "probabilistic": probable(),
    "probabilistic, clamping 0.5": probable(clamping=0.5),
    "probabilistic, clamping 0.1": probable(clamping=0.1),
    "density ridge": ridge,
    "pcurvepy2": pcurvepy2,
    "elpigraph": elpigraph,
}


def finely(vertices: np.ndarray, closed: bool) -> np.ndarray:
    """Points along a polyline."""
    chain = np.vstack([vertices, vertices[:1]]) if closed else vertices
    s = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(chain, axis=0), axis=1))])
    return np.stack([np.interp(np.linspace(0, s[-1], _FINE), s, column) for column in chain.T], axis=1)


def true_points(data: Dataset) -> np.ndarray:
    """Points along the true curve, all of it: where simulated rows come from."""
    domain: Any = data.surface.domain
    low, high = float(np.ravel(domain.low)[0]), float(np.ravel(domain.high)[0])
    return data.surface.point(np.linspace(low, high, _FINE)[:, None])


def distances(found: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Root mean squared distance of a curve from the truth, and of the truth from it."""
    there, back = cKDTree(truth).query(found)[0], cKDTree(found).query(truth)[0]
    return float(np.sqrt(np.mean(there**2))), float(np.sqrt(np.mean(back**2)))


# -------------------------------------------------------------------------------------------------------- tables


def shapes(full: bool) -> None:
    """1. Distance to the true curve in both directions, and time."""
    missing = [name for name in ("pcurvepy2", "elpigraph") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"not installed: {', '.join(missing)}")
    entrants = {name: fit for name, fit in CONTESTANTS.items() if name not in missing}
    table = []
    for shape, (make, closed) in SHAPES.items():
        found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in entrants}
        for seed in range(10 if full else 3):
            data = make(seed)
            rows = data.X[np.random.default_rng(seed).permutation(len(data.X))]
            for name, fit in entrants.items():
                clock = time.process_time()
                try:
                    points = fit(rows, closed)
                except NotImplementedError:
                    continue
                found[name].append((*distances(points, true_points(data)), time.process_time() - clock))
        for name, runs in found.items():
            if runs:
                there, back, seconds = np.median(runs, axis=0)
                worst = max(max(run[:2]) for run in runs)
                table.append([shape, name, f"{there:.4f}", f"{back:.4f}", f"{worst:.3f}", f"{seconds:.2f}"])
    print_table(
        "Distance to true curves, medians",
        ["shape", "method", "to the truth", "from the truth", "worst", "CPU s"],
        table,
    )


def growth(full: bool) -> None:
    """2. Time by the number of rows."""
    table = []
    for n in (1000, 10_000, 100_000, *((1_000_000,) if full else ())):
        data = datasets.make_spiral(n, rng=0)
        for model in (PrincipalCurve(), PolygonalCurve()):
            clock = time.process_time()
            model.fit(data.X)
            fitted = time.process_time() - clock
            some = data.X[:10_000]
            clock = time.process_time()
            model.transform(some)
            project_rows = (time.process_time() - clock) / len(some)
            points = model.inverse_transform(np.linspace(0, model.length_, _FINE)[:, None])
            there, back = distances(points, true_points(data))
            cost = [f"{fitted:.2f}", model.n_iter_, f"{1e6 * project_rows:.0f}"]
            table.append([n, type(model).__name__, *cost, f"{there:.4f}", f"{back:.4f}"])
    print_table(
        "A spiral by the number of rows",
        ["rows", "curve", "CPU s", "steps", "µs to place a row", "to the truth", "from the truth"],
        table,
    )


def bias(full: bool) -> list[list[Any]]:
    """3. How far outside a half circle of radius 1 its curve runs at the top: model and estimation bias."""
    table = []
    for noise in (0.1, 0.2, 0.3):
        for df in (2.5, 3.0, 4.0, 6.0, 10.0):
            row: list[Any] = [noise, f"{noise**2 / 2:.4f}", df]
            for corrected in (False, True):
                found = [_outside(noise, df, corrected, seed) for seed in range(20 if full else 5)]
                row.append(f"{np.mean(found):+.4f} ± {np.std(found) / np.sqrt(len(found)):.4f}")
            table.append(row)
    title = "Mean radius − 1 of a half circle between 60° and 120°, n = 2000; without a smoother it would be σ²/2"
    print_table(title, ["noise σ", "σ²/2", "df", "outside by", "corrected"], table)
    makes = {"hs": PrincipalCurve, "tibshirani": ProbabilisticCurve, "0.1": partial(ProbabilisticCurve, clamping=0.1)}
    whole = []
    for noise in (0.1, 0.2, 0.3):
        row = [noise, f"{noise**2 / 2:.4f}"]
        for make in makes.values():
            found = [_outside_of(make(), _half_circle(noise, seed)) for seed in range(20 if full else 5)]
            row.append(f"{np.mean(found):+.4f} ± {np.std(found) / np.sqrt(len(found)):.4f}")
        whole.append(row)
    heads = ["noise σ", "σ²/2", "PrincipalCurve()", "ProbabilisticCurve()", "clamping=0.1"]
    print_table("The same of curves as they come", heads, whole)
    return table


def _outside(noise: float, df: float, corrected: bool, seed: int) -> float:
    data = _half_circle(noise, seed)
    model = PrincipalCurve(SmoothingSpline(df=df), init=data.surface.point(np.linspace(0, np.pi, 50)[:, None]))
    return _outside_of(model.set_params(bias_correction=corrected), data)


def _half_circle(noise: float, seed: int) -> Dataset:
    return datasets.make_half_circle(2000, noise=noise, noise_kind="isotropic", rng=seed)


def _outside_of(model: Any, data: Dataset) -> float:
    model.fit(data.X)
    points = model.inverse_transform(np.linspace(0, model.length_, _FINE)[:, None])
    angle = np.degrees(np.arctan2(points[:, 1], points[:, 0]))
    return float(np.linalg.norm(points[(angle > 60) & (angle < 120)], axis=1).mean() - 1)


@contextmanager
def rule(finest: float, df_factor: float | None) -> Iterator[None]:
    """Samples that are told another scale and another γ."""
    plain = hastie_stuetzle.curve_sample

    def told(rows: Any, curve: Any, scale: float = hastie_stuetzle._FINEST_DEVIATIONS) -> Any:
        sample = plain(rows, curve, scale * finest / hastie_stuetzle._FINEST_DEVIATIONS)
        return sample._replace(df_factor=sample.df_factor if df_factor is None else df_factor)

    hastie_stuetzle.curve_sample = told
    try:
        yield
    finally:
        hastie_stuetzle.curve_sample = plain


def rules(full: bool) -> None:
    """4. Distance to the truth, the larger of both directions, by the rule for how much to smooth."""
    ways = {
        "γ = 1": (0.0, 1.0),
        "γ = (q + 1)/q": (0.0, None),
        "scale 1.3 σ, γ = 1": (1.3, 1.0),
        "scale 0.9 σ": (0.9, None),
        "scale 1.3 σ (as it is)": (1.3, None),
        "scale 1.85 σ": (1.85, None),
        "scale 3 σ": (3.0, None),
    }
    wider: dict[str, tuple[Callable[[int], Dataset], bool]] = {
        "spiral, 5000": (lambda seed: datasets.make_spiral(5000, rng=seed), False),
        "half circle, σ = 0.2": (lambda seed: datasets.make_half_circle(1000, noise=0.2, rng=seed), False),
    }
    table = []
    for shape, (make, closed) in {**SHAPES, **wider}.items():
        row = [shape]
        for finest, df_factor in ways.values():
            found = []
            for seed in range(10 if full else 3):
                data = make(seed)
                with rule(finest, df_factor):
                    found.append(max(distances(ours()(data.X, closed), true_points(data))))
            row.append(f"{np.median(found):.4f}")
        table.append(row)
    print_table("The larger distance of both directions, medians, by rule", ["shape", *ways], table)


def mcqueen(folder: Path) -> None:
    """5. The curves of figures 1 and 3: from the principal component, as there, and from the best of starts."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(10, 8), layout="constrained")
    table = []
    sets = {"zig-zag": datasets.make_zigzag(400, rng=0), "spiral": datasets.make_spiral(1000, noise=0.03, rng=0)}
    ways: dict[str, dict[str, Any]] = {
        "smooth curve": {
            "from the line, local lines": PrincipalCurve(LocalLinear(0.2, widest=0.6), init="pca"),
            "best of starts, spline": PrincipalCurve(),
        },
        "polygonal line": {
            "from the line, as published": PolygonalCurve(init="pca"),
            "best of starts": PolygonalCurve(),
        },
    }
    for (name, data), column in zip(sets.items(), axes.T, strict=True):
        for (kind, models), ax in zip(ways.items(), column, strict=True):
            ax.plot(*data.X.T, "x", color="#8c959f", ms=3)
            for (way, model), color in zip(models.items(), ("#D55E00", "#0072B2"), strict=True):
                model.fit(data.X)
                points = finely(model.vertices_, closed=False)
                there, back = distances(points, true_points(data))
                label = f"{way}: {there:.3f}, {back:.3f}"
                ax.plot(*points.T, color=color, lw=2, label=label)
                table.append([name, kind, way, f"{there:.4f}", f"{back:.4f}", f"{model.length_:.2f}"])
            ax.set(aspect="equal", title=f"{name}, {kind}", xticks=[], yticks=[])
            ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 0.0), fontsize=9)
    print_table("McQueen, figures 1 and 3", ["data", "curve", "way", "to the truth", "from it", "length"], table)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "curves_mcqueen.png", dpi=80)
    plt.close(figure)


def helix(seed: int) -> Dataset:
    """Three turns of a helix, a unit of height for each and one of radius."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(0.0, 3.0, 500)
    clean = np.stack([np.cos(2 * np.pi * t), np.sin(2 * np.pi * t), t], axis=1)
    return Dataset(clean + 0.05 * rng.normal(size=clean.shape), t[:, None], clean)


def closing(full: bool) -> None:
    """6. How often ``closed="auto"`` closes a curve."""
    made: dict[str, Callable[[int], Dataset]] = {
        "circle, 200 rows, σ = 0.1": lambda seed: datasets.make_circle(200, noise=0.1, rng=seed),
        "circle, 200 rows, σ = 0.2": lambda seed: datasets.make_circle(200, noise=0.2, rng=seed),
        "circle, 400 rows, σ = 0.3": lambda seed: datasets.make_circle(400, noise=0.3, rng=seed),
        "uneven circle": lambda seed: datasets.make_circle(200, concentration=1.0, rng=seed),
        "closed curve": lambda seed: datasets.make_closed_curve(300, rng=seed),
        "knot": lambda seed: datasets.make_knot(300, rng=seed),
        "ten passes, 30 columns": lambda seed: datasets.make_cycles(rng=seed),
        "three passes, 30 columns": lambda seed: datasets.make_cycles(n_cycles=3, variation=0.2, rng=seed),
        "four passes, 3 columns": lambda seed: datasets.make_cycles(n_cycles=4, n_features=3, noise=0.05, rng=seed),
        "helix of 3 turns": helix,
        "half circle, σ = 0.1": lambda seed: datasets.make_half_circle(150, rng=seed),
        "half circle, σ = 0.2": lambda seed: datasets.make_half_circle(150, noise=0.2, rng=seed),
        "spiral": lambda seed: datasets.make_spiral(300, rng=seed),
        "zig-zag": lambda seed: datasets.make_zigzag(300, rng=seed),
    }
    seeds, model = range(50 if full else 10), PrincipalCurve(closed="auto", max_iter=0, tol=0)
    table = [[name, sum(model.fit(make(seed).X).closed_ for seed in seeds)] for name, make in made.items()]
    print_table(f"Closed, of {len(seeds)} samples", ["shape", "closed"], table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="more seeds, more rows")
    parser.add_argument("--only", default="1,2,3,4,5,6", help="numbers of the tables, such as 1,3")
    parser.add_argument("--figures", default="benchmarks/results", help="where figures go")
    given = parser.parse_args()
    for name in ("spline", "local lines"):  # compilation is paid once, before the clocks run
        CONTESTANTS[name](datasets.make_circle(60, rng=0).X, True)
    parts: dict[str, Callable[[], Any]] = {
        "1": lambda: shapes(given.full),
        "2": lambda: growth(given.full),
        "3": lambda: bias(given.full),
        "4": lambda: rules(given.full),
        "5": lambda: mcqueen(Path(given.figures)),
        "6": lambda: closing(given.full),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in given.only.split(","):
            parts[number]()


if __name__ == "__main__":
    main()
