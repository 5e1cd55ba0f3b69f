"""Which criterion ranks surfaces as their distance to the truth does, on shapes that it was not designed on.

Simulators with a known surface; thirteen contestants on each (eleven of sheets: density ridges and KMM are left
out there, which take long). For each contestant, fitted to all rows, the squared distance to the truth both ways: from
where fresh rows project to, and from the places that they came from. Then, by five folds, every criterion that a person
without the truth could compute. Two numbers for each criterion:

- ``tau``: Kendall's rank correlation of the criterion with the distance to the truth, over the contestants;
- ``regret``: distance of the contestant that it recommends over that of the best there is, both as roots.

The criteria of the library are ``likelihood``, ``thinned``, ``error``, ``elbow`` and ``density``; beside them stand
``stability``, how far the surfaces of two folds are from each other; ``consistency``, the part of residuals that rows
held out share with their neighbours along the surface (its size); and sums of these.

``DESIGN`` shapes are those that the criteria were chosen on, ``JUDGE`` shapes those that they were judged on, once. A
second table says how often the dimension is suggested right.

Run as ``python benchmarks/comparing.py`` (shapes ``JUDGE``), with ``--design`` for the others, ``--only 2`` for one
table, ``--shapes circle,zigzag`` for some shapes; Ctrl-C ends it early, with what there is so far.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import cKDTree
from scipy.stats import kendalltau
from sklearn.base import clone
from timing import print_table

from prinfold import GTM, KMM, PPS, UKR, DensityRidge, datasets
from prinfold.datasets import Dataset
from prinfold.datasets.dataset import random_frame
from prinfold.select.contestants import BASELINES
from prinfold.select.dimensions import suggest_dimension
from prinfold.select.samples import split_rows
from prinfold.select.surfaces import Surface, surface_of
from prinfold.select.verdicts import CRITERIA, Measured, elbow
from prinfold.select.yardsticks import Thinning, noise_of, spread_likelihoods, thinned_errors, widths_of

FOLDS, FRESH = 5, 150


class Shape(NamedTuple):
    """A simulator, the dimension of its surface, and two levels of noise."""

    make: Callable[..., Dataset]
    dimension: int
    noises: tuple[float, float]

    def draw(self, n: int, level: int, seed: int) -> Dataset:
        """Rows with isotropic noise for even seeds, and noise across the surface for odd ones."""
        kind = "normal" if seed % 2 else "isotropic"
        return self.make(n, self.noises[level], kind, seed, sampling="parameter")

    @property
    def n(self) -> int:
        return 150


DESIGN = {
    "half circle": Shape(datasets.make_half_circle, 1, (0.1, 0.2)),
    "thesis surface": Shape(datasets.make_thesis_surface, 2, (0.1, 0.25)),
    "spiral": Shape(datasets.make_spiral, 1, (0.02, 0.05)),
    "ridge": Shape(datasets.make_ridge, 2, (0.1, 0.2)),
    "thesis curve": Shape(datasets.make_thesis_curve, 1, (0.1, 0.2)),
}
JUDGE = {
    "circle": Shape(datasets.make_circle, 1, (0.1, 0.2)),
    "swiss roll": Shape(datasets.make_swiss_roll, 2, (0.3, 0.8)),
    "zigzag": Shape(datasets.make_zigzag, 1, (0.05, 0.1)),
    "sphere": Shape(datasets.make_sphere, 2, (0.05, 0.15)),
    "star": Shape(datasets.make_star, 1, (0.03, 0.06)),
    "corkscrew": Shape(datasets.make_corkscrew, 2, (1.0, 2.0)),
    "epitrochoid": Shape(datasets.make_epitrochoid, 1, (0.03, 0.06)),
    "torus": Shape(datasets.make_torus, 2, (0.05, 0.1)),
}


def contestants(X: Any, q: int) -> dict[str, Any]:
    """Smooth and wild ones; UKR from one start and for few iterations, so that a table takes half a minute."""
    evidence: dict[str, Any] = {"prior_precision": "evidence"}
    everyone = {
        "GTM": GTM(q),
        "GTM evidence": GTM(q, **evidence),
        "GTM evidence isomap": GTM(q, **evidence, init="isomap"),
        "GTM loose": GTM(q, width=0.5, regularization=1e-3),
        "GTM stiff": GTM(q, width=2.0, regularization=1.0),
        "PPS": PPS(q),
        "PPS isomap": PPS(q, init="isomap"),
        "UKR minimum": UKR(q, init="isomap", stop="minimum", max_iter=50),
        "KMM": KMM(q),
        "DensityRidge": DensityRidge(q),
        **{name: make(q, X) for name, make in BASELINES.items()},
    }
    if q > 1:
        del everyone["DensityRidge"], everyone["KMM"]
    return everyone


# ------------------------------------------------------------------------------------------------ one contestant


class Held:
    """The surfaces of all folds as one: each row is projected by the surface that has not seen it."""

    def __init__(self, surfaces: list[Surface], fold: Any) -> None:
        self.surfaces, self.fold = surfaces, fold

    def project(self, X: Any, shift: int = 0) -> Any:
        found = np.empty_like(X)
        for f in range(FOLDS):
            found[self.fold == f] = self.surfaces[(f + shift) % FOLDS].project(X[self.fold == f])
        return found


class Score(NamedTuple):
    """What one contestant comes to: distances to the truth both ways, and what the criteria need."""

    truth: float
    roughness: float
    errors: Any
    level: Any
    slope: Any
    spread: Any
    log_likelihood: Any
    stability: float
    consistency: float


def score(model: Any, X: Any, fold: Any, fresh: Dataset, thinning: Thinning, widths: Any) -> Score:
    assert fresh.surface is not None
    assert fresh.clean is not None
    full = surface_of(clone(model).fit(X), X)
    truth = np.square(fresh.surface.distance(full.project(fresh.X))).mean()
    truth += np.square(fresh.clean - full.project(fresh.clean)).sum(axis=1).mean()
    parts = [surface_of(clone(model).fit(X[fold != f]), X[fold != f]) for f in range(FOLDS)]
    held = Held(parts, fold)
    feet = held.project(X)
    residual = X - feet
    near = np.asarray(cKDTree(feet).query(feet, k=11)[1])[:, 1:]
    spread, density = [], np.full(len(X), np.nan)
    for f, part in enumerate(parts):
        spread.append(spread_likelihoods(part, X[fold == f], X[fold != f], widths))
        own = part.log_likelihood(X[fold == f])
        density[fold == f] = np.nan if own is None else own
    ordered = np.empty((len(X), spread[0].shape[1]))
    for f in range(FOLDS):
        ordered[fold == f] = spread[f]
    return Score(
        float(truth),
        full.roughness(),
        np.square(residual).sum(axis=1),
        *thinned_errors(held, X, thinning),  # type: ignore[arg-type]
        ordered,
        density,
        float(np.square(feet - held.project(feet, 1)).sum(axis=1).mean()),
        float(abs(np.einsum("nd,nd->n", residual, residual[near].mean(axis=1)).mean())),
    )


# ------------------------------------------------------------------------------------------------ one table


class Result(NamedTuple):
    """Rank correlation and regret of each criterion on one table, and whether two criteria recommend the same."""

    tau: dict[str, float]
    regret: dict[str, float]
    chosen: dict[str, str]
    agreed: bool


def one(shape: Shape, level: int, seed: int) -> Result:
    data, fresh = shape.draw(shape.n, level, seed), shape.draw(FRESH, level, 10_000 + seed)
    X, q = data.X, shape.dimension
    fold, sigma = split_rows(X, FOLDS, np.random.default_rng(0)), noise_of(X, q)
    tau, widths = 0.5 * sigma, widths_of(X, sigma)
    thinning = Thinning(np.random.default_rng(5).normal(size=X.shape) * tau, tau)
    scores: dict[str, Score] = {}
    for name, model in contestants(X, q).items():
        try:
            scores[name] = score(model, X, fold, fresh, thinning, widths)
        except Exception as error:  # one of many
            print(f"  {name}: {type(error).__name__}: {error}")
    return judged(scores, sigma, X.shape[1] - q, widths)


def judged(scores: dict[str, Score], sigma: float, across: int, widths: Any) -> Result:
    names = list(scores)
    columns = [np.array([getattr(each, part) for each in scores.values()]) for part in Measured._fields[:5]]
    found = Measured(*columns, sigma, across, widths)
    truth, rough, stable, consistent = (
        np.array([getattr(each, part) for each in scores.values()])
        for part in ("truth", "roughness", "stability", "consistency")
    )
    error = found.errors.mean(axis=1)
    losses = {name: CRITERIA[name].losses(found).mean(axis=1) for name in ("likelihood", "thinned", "error", "density")}
    losses |= {
        "stability": stable,
        "consistency": consistent,
        "error + stability": error + stable,
        "consistency + stability": consistent + stable,
        "roughness": rough,
    }
    picks = {name: int(np.nanargmin(loss)) for name, loss in losses.items()} | {"elbow": elbow(rough, error)}
    ranks = {name: float(kendalltau(loss, truth, nan_policy="omit")[0]) for name, loss in losses.items()}
    regret = {name: float(np.sqrt(truth[i] / truth.min())) for name, i in picks.items()}
    chosen = {name: names[i] for name, i in picks.items()} | {"truth": names[int(truth.argmin())]}
    return Result(ranks | {"elbow": np.nan}, regret, chosen, picks["likelihood"] == picks["thinned"])


def criteria(shapes: dict[str, Shape], first: int, n_seeds: int) -> None:
    results: list[Result] = []
    each: list[list[Any]] = []
    jobs = [(name, (i + shift) % 2, first + shift) for shift in range(n_seeds) for i, name in enumerate(shapes)]
    try:
        for name, level, seed in jobs:
            found = one(shapes[name], level, seed)
            results.append(found)
            words = [found.chosen["truth"], found.chosen["likelihood"], found.regret["likelihood"]]
            each.append([name, seed, *words, found.chosen["thinned"], found.regret["thinned"], found.regret["error"]])
            print(
                f"{len(results)} of {len(jobs)}: {name}", {k: round(v, 3) for k, v in found.regret.items()}, flush=True
            )
    except KeyboardInterrupt:
        print("ended early")
    heads = ["shape", "seed", "nearest", "by likelihood", "regret", "thinned", "regret", "of lowest error"]
    print_table("1a. What is recommended, table by table", heads, each)
    order = sorted(results[0].regret, key=lambda name: np.mean([np.log(r.regret[name]) for r in results]))
    rows = [[name, *_summary([r.tau[name] for r in results], [r.regret[name] for r in results])] for name in order]
    heads = ["criterion", "tau", "± ", "regret", "from", "to", "within 1.25", "worst"]
    print_table(f"1b. Criteria over {len(results)} tables", heads, rows)
    for agreed in (True, False):
        some = [r.regret["likelihood"] for r in results if r.agreed is agreed]
        words = "agree" if agreed else "differ"
        if some:
            mean = np.exp(np.mean(np.log(some)))
            print(
                f"where likelihood and thinning {words} ({len(some)} tables): regret {mean:.2f}, worst {max(some):.2f}"
            )


def _summary(tau: list[float], regret: list[float]) -> list[float]:
    """Mean and standard error of tau; geometric mean of the regret, one standard error either way, and extremes."""
    logs, n = np.log(regret), len(regret)
    spread = float(logs.std(ddof=1) / np.sqrt(n))
    known = np.array(tau)[np.isfinite(tau)]
    ranks = [float(known.mean()), float(known.std(ddof=1) / np.sqrt(n))] if len(known) > 1 else [np.nan, np.nan]
    low, middle, high = (float(np.exp(logs.mean() + side * spread)) for side in (-1, 0, 1))
    return [*ranks, middle, low, high, float(np.mean(np.array(regret) <= 1.25)), max(regret)]


# ------------------------------------------------------------------------------------------------ the dimension


def dimension(shapes: dict[str, Shape], first: int, n_seeds: int) -> None:
    """Curves are turned into a space of three dimensions with noise in all, so that two would be possible."""
    rows = []
    for name, shape in shapes.items():
        found = []
        for seed in range(first, first + 2 * n_seeds):
            data = shape.draw(shape.n, seed % 2, seed)
            rng = np.random.default_rng(seed)
            X, missing = data.X, 3 - data.X.shape[1]
            if missing > 0:
                X = X @ random_frame(3, 2, rng).T + rng.normal(scale=shape.noises[seed % 2], size=(len(X), 3))
            found.append(suggest_dimension(X, split_rows(X, FOLDS, rng)).suggested)
        rows.append([name, shape.dimension, *found, f"{np.mean(np.array(found) == shape.dimension):.0%}"])
    print_table(
        "2. The dimension that is suggested",
        ["shape", "true", *(f"{i + 1}" for i in range(2 * n_seeds)), "right"],
        rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--design", action="store_true", help="the shapes that criteria were chosen on")
    parser.add_argument("--only", default="1,2", help="which tables")
    parser.add_argument("--shapes", default="", help="some shapes only")
    parser.add_argument("--seeds", type=int, default=1, help="how many for each shape")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    table, first = (DESIGN, 0) if given.design else (JUDGE, 100)
    shapes = {name: shape for name, shape in table.items() if not given.shapes or name in given.shapes.split(",")}
    for number, work in (("1", criteria), ("2", dimension)):
        if number in given.only.split(","):
            work(shapes, first, given.seeds)


if __name__ == "__main__":
    main()
