"""Which criterion ranks surfaces as their distance to the truth does, on shapes that it was not designed on.

Simulators with a known surface; thirteen contestants on each (eleven of sheets: density ridges and KMM are left
out there, which take long). For each contestant, fitted to all rows, the squared distance to the truth both ways: from
where fresh rows project to, and from the places that they came from. Then, by five folds, every criterion that a person
without the truth could compute. Two numbers for each criterion:

- ``tau``: Kendall's rank correlation of the criterion with the distance to the truth, over the contestants;
- ``regret``: distance of the contestant that it recommends over that of the best there is, both as roots.

The criteria of the library are ``likelihood``, ``thinned``, ``error``, ``elbow`` and ``density``; ``likelihood or
error`` is the default, which takes the error where the likelihood is blind. Beside them stand ``evidence``, that of
GTMs fitted to all rows; ``stability``, how far the surfaces of two folds are from each other; ``consistency``, the part
of residuals that rows held out share with their neighbours along the surface (its size); and sums of these.
``…, smoothest`` are what the library names beside its choice: of those that one standard error does not tell from the
lowest loss the smoothest, by roughness on average over the folds. The last columns hold regrets over those of the
default, table by table.

``DESIGN`` shapes are those that the criteria were settled on, ``JUDGE`` shapes those that they were judged on, once. A
second table says how often the dimension is suggested right, on as many tables.

Run as ``python -m benchmarks.comparing`` (shapes ``JUDGE``), with ``--design`` for the others, ``--only 2`` for one
table, ``--shapes knot,wave`` for some shapes, ``--seeds 1`` for half of it, ``--folds 3`` for fewer folds; Ctrl-C ends
it early, with what there is so far.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from benchmarks.timing import print_table
from scipy.spatial import cKDTree
from scipy.stats import kendalltau
from sklearn.base import clone

from prinfold import GTM, KMM, PPS, UKR, DensityRidge, datasets
from prinfold.datasets import Dataset
from prinfold.datasets.dataset import random_frame, simulate
from prinfold.datasets.surface import TrueSurface
from prinfold.geometry.domain import Box
from prinfold.select.candidates import BASELINES
from prinfold.select.comparing import _folds, _sort_rows
from prinfold.select.dimensions import suggest_dimension
from prinfold.select.measures import (
    Thinning,
    feet_of,
    noise_of,
    spread_likelihoods,
    thinned_errors,
    thinning_of,
    widths_of,
)
from prinfold.select.surfaces import ComparedSurface, surface_of
from prinfold.select.verdicts import CRITERIA, MethodLosses, elbow, judge, why_likelihood_is_blind

FOLDS, FRESH = 5, 150
DEFAULT = "likelihood or error"
"""The default of the library: the likelihood about the surface or, where that is blind, the error."""


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


def simulator(name: str, point: Callable[..., Any], *spans: tuple[float, float]) -> Callable[..., Dataset]:
    """Rows about the surface that a function takes a box to; its derivatives are differences."""
    step = 1e-6

    def jacobian(U: Any) -> Any:
        sides = [step * each for each in np.eye(len(spans))]
        return np.stack([(point(U + h) - point(U - h)) / (2 * step) for h in sides], axis=2)

    surface = TrueSurface(name, point, jacobian, Box.of(*spans))
    return lambda n, noise, kind, seed, sampling: simulate(surface, n, noise, kind, seed, sampling=sampling)


def helix(U: Any) -> Any:
    return np.column_stack([np.cos(U), np.sin(U), U / 6.0])


def wave(U: Any) -> Any:
    return np.column_stack([U, 0.7 * np.sin(2.5 * U)])


def saddle(U: Any) -> Any:
    return np.column_stack([U, U[:, 0] ** 2 - U[:, 1] ** 2])


def letter(U: Any) -> Any:
    """A sheet rolled to an S."""
    t, height = U.T
    return np.column_stack([np.sin(t), height, np.sign(t) * (np.cos(t) - 1.0)])


DESIGN = {
    "half circle": Shape(datasets.make_half_circle, 1, (0.1, 0.2)),
    "thesis surface": Shape(datasets.make_thesis_surface, 2, (0.1, 0.25)),
    "spiral": Shape(datasets.make_spiral, 1, (0.02, 0.05)),
    "ridge": Shape(datasets.make_ridge, 2, (0.1, 0.2)),
    "thesis curve": Shape(datasets.make_thesis_curve, 1, (0.1, 0.2)),
    "circle": Shape(datasets.make_circle, 1, (0.1, 0.2)),
    "swiss roll": Shape(datasets.make_swiss_roll, 2, (0.3, 0.8)),
    "zigzag": Shape(datasets.make_zigzag, 1, (0.05, 0.1)),
    "sphere": Shape(datasets.make_sphere, 2, (0.05, 0.15)),
    "star": Shape(datasets.make_star, 1, (0.03, 0.06)),
    "corkscrew": Shape(datasets.make_corkscrew, 2, (1.0, 2.0)),
    "epitrochoid": Shape(datasets.make_epitrochoid, 1, (0.03, 0.06)),
    "torus": Shape(datasets.make_torus, 2, (0.05, 0.1)),
}
JUDGE = {
    "knot": Shape(datasets.make_knot, 1, (0.05, 0.15)),
    "cylinder": Shape(datasets.make_cylinder, 2, (0.05, 0.15)),
    "closed curve": Shape(datasets.make_closed_curve, 1, (0.05, 0.1)),
    "semi-linear sheet": Shape(datasets.make_semilinear_sheet, 2, (0.1, 0.2)),
    "helix": Shape(simulator("helix", helix, (0.0, 4.0 * np.pi)), 1, (0.05, 0.15)),
    "saddle": Shape(simulator("saddle", saddle, (-1.0, 1.0), (-1.0, 1.0)), 2, (0.05, 0.15)),
    "wave": Shape(simulator("wave", wave, (-2.0, 2.0)), 1, (0.1, 0.2)),
    "rolled S": Shape(simulator("rolled S", letter, (-1.5 * np.pi, 1.5 * np.pi), (0.0, 2.0)), 2, (0.1, 0.25)),
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


def project_by(parts: list[ComparedSurface], fold: Any, X: Any, shift: int = 0) -> Any:
    """Each row projected by the surface that has not seen it, or by that of so many folds later."""
    found = np.empty_like(X)
    for f in range(len(parts)):
        found[fold == f] = parts[(f + shift) % len(parts)].project(X[fold == f])
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
    evidence: float


def score(model: Any, X: Any, fold: Any, fresh: Dataset, thinning: Thinning, widths: Any) -> Score:
    assert fresh.surface is not None
    assert fresh.clean is not None
    whole = clone(model).fit(X)
    full = surface_of(whole, X)
    truth = np.square(fresh.surface.distance(full.project(fresh.X))).mean()
    truth += np.square(fresh.clean - full.project(fresh.clean)).sum(axis=1).mean()
    parts = [surface_of(clone(model).fit(X[fold != f]), X[fold != f]) for f in np.unique(fold)]
    columns = [np.empty_like(X), *np.empty((2, len(X))), np.empty((len(X), len(widths))), np.full(len(X), np.nan)]
    for f, part in enumerate(parts):
        held, own = fold == f, part.log_likelihood(X[fold == f])
        thin = thinning.part(held)
        found = feet_of(part, X[held], X[~held], thin)
        likely = spread_likelihoods(X[held], found, widths)
        each = found.held, *thinned_errors(X[held], found, thin), likely, np.nan if own is None else own
        for column, numbers in zip(columns, each, strict=True):
            column[held] = numbers
    feet, level, slope, spread, density = columns
    residual = X - feet
    near = np.asarray(cKDTree(feet).query(feet, k=11)[1])[:, 1:]
    return Score(
        float(truth),
        parts[0].roughness(),
        np.square(residual).sum(axis=1),
        level,
        slope,
        spread,
        density,
        float(np.square(feet - project_by(parts, fold, feet, 1)).sum(axis=1).mean()),
        float(abs(np.einsum("nd,nd->n", residual, residual[near].mean(axis=1)).mean())),
        -whole.log_evidence(X) / len(X) if hasattr(whole, "log_evidence") else np.nan,
    )


# ------------------------------------------------------------------------------------------------ one table


class Result(NamedTuple):
    """Rank correlation and regret of each criterion on one table, and what it chose."""

    tau: dict[str, float]
    regret: dict[str, float]
    chosen: dict[str, str]


def one(shape: Shape, level: int, seed: int, folds: int = FOLDS) -> Result:
    # Shapes may be drawn by chance too, so that fresh rows have to come with the others.
    data = shape.draw(shape.n + FRESH, level, seed)
    assert data.clean is not None
    X, q = _sort_rows(data.X[: shape.n]), shape.dimension
    fresh = Dataset(data.X[shape.n :], surface=data.surface, clean=data.clean[shape.n :])
    fold, sigma = _folds(X, folds, np.random.default_rng(0)), noise_of(X, q)
    widths, thinning = widths_of(X, sigma), thinning_of(X, sigma, np.random.default_rng(5))
    scores: dict[str, Score] = {}
    for name, model in contestants(X, q).items():
        try:
            scores[name] = score(model, X, fold, fresh, thinning, widths)
        except Exception as error:  # one of many
            print(f"  {name}: {type(error).__name__}: {error}")
    columns = [np.array([getattr(each, part) for each in scores.values()]) for part in MethodLosses._fields[:5]]
    variance = float(X.var(axis=0).sum())
    return judged(scores, MethodLosses(*columns, sigma, X.shape[1] - q, widths, variance))


def judged(scores: dict[str, Score], found: MethodLosses) -> Result:
    truth, rough, stable, consistent, evidence = (
        np.array([getattr(each, part) for each in scores.values()])
        for part in ("truth", "roughness", "stability", "consistency", "evidence")
    )
    error = found.errors.mean(axis=1)
    of_rows = {name: CRITERIA[name].losses(found) for name in ("likelihood", "thinned", "error", "density")}
    of_rows[DEFAULT] = of_rows["error" if why_likelihood_is_blind(found) else "likelihood"]
    losses = {name: each.mean(axis=1) for name, each in of_rows.items()}
    losses |= {
        "evidence": evidence,
        "stability": stable,
        "consistency": consistent,
        "error + stability": error + stable,
        "consistency + stability": consistent + stable,
        "roughness": rough,
    }
    ranks = {name: float(kendalltau(loss, truth, nan_policy="omit")[0]) for name, loss in losses.items()}
    picks = {name: int(np.nanargmin(loss)) for name, loss in losses.items()} | {"elbow": elbow(rough, error)}
    for name, each in of_rows.items():
        least_gap = CRITERIA.get(name, CRITERIA["likelihood"]).least_gap(found.variance)
        verdict = judge(CRITERIA["error"], each, rough, np.random.default_rng(0), least_gap)
        picks[f"{name}, smoothest"] = verdict.smoothest
    names = list(scores)
    regret = {name: float(np.sqrt(truth[i] / truth.min())) for name, i in picks.items()}
    chosen = {name: names[i] for name, i in picks.items()} | {"truth": names[int(truth.argmin())]}
    return Result({name: ranks.get(name, np.nan) for name in picks}, regret, chosen)


def criteria(shapes: dict[str, Shape], first: int, n_seeds: int, folds: int) -> None:
    results: list[Result] = []
    each: list[list[Any]] = []
    jobs = [(name, (i + shift) % 2, first + shift) for shift in range(n_seeds) for i, name in enumerate(shapes)]
    chosen = DEFAULT
    try:
        for name, level, seed in jobs:
            found = one(shapes[name], level, seed, folds)
            results.append(found)
            words = [found.chosen["truth"], found.chosen[chosen], found.regret[chosen]]
            each.append([name, seed, *words, found.regret[f"{DEFAULT}, smoothest"], found.regret["error"]])
            print(
                f"{len(results)} of {len(jobs)}: {name}", {k: round(v, 3) for k, v in found.regret.items()}, flush=True
            )
    except KeyboardInterrupt:
        print("ended early")
    heads = ["shape", "seed", "nearest", "by default", "regret", "smoothest", "error"]
    print_table("1a. What is recommended, table by table", heads, each)
    order = sorted(results[0].regret, key=lambda name: np.mean([np.log(r.regret[name]) for r in results]))
    default = [r.regret[chosen] for r in results]
    rows = []
    for name in order:
        regret = [r.regret[name] for r in results]
        rows.append([name, *_summary([r.tau[name] for r in results], regret), *_against(regret, default)])
    heads = ["criterion", "tau", "± ", "regret", "from", "to", "within 1.25", "worst", "over default", "from", "to"]
    print_table(f"1b. Criteria over {len(results)} tables", heads, rows)


def _against(regret: list[float], default: list[float]) -> list[float]:
    """Geometric mean of the ratio of regrets, table by table, and one standard error either way."""
    logs = np.log(regret) - np.log(default)
    spread = float(logs.std(ddof=1) / np.sqrt(len(logs))) if len(logs) > 1 else np.nan
    return [float(np.exp(logs.mean() + side * spread)) for side in (0, -1, 1)]


def _summary(tau: list[float], regret: list[float]) -> list[float]:
    """Mean and standard error of tau; geometric mean of the regret, one standard error either way, and extremes."""
    logs, n = np.log(regret), len(regret)
    spread = float(logs.std(ddof=1) / np.sqrt(n))
    known = np.array(tau)[np.isfinite(tau)]
    ranks = [float(known.mean()), float(known.std(ddof=1) / np.sqrt(n))] if len(known) > 1 else [np.nan, np.nan]
    low, middle, high = (float(np.exp(logs.mean() + side * spread)) for side in (-1, 0, 1))
    return [*ranks, middle, low, high, float(np.mean(np.array(regret) <= 1.25)), max(regret)]


# ------------------------------------------------------------------------------------------------ the dimension


def dimension(shapes: dict[str, Shape], first: int, n_seeds: int, folds: int) -> None:
    """Curves are turned into a space of three dimensions with noise in all, so that two would be possible."""
    rows, right = [], 0
    for name, shape in shapes.items():
        found = []
        for seed in range(first, first + n_seeds):
            data = shape.draw(shape.n, seed % 2, seed)
            rng = np.random.default_rng(seed)
            X, missing = data.X, 3 - data.X.shape[1]
            if missing > 0:
                X = X @ random_frame(3, 2, rng).T + rng.normal(scale=shape.noises[seed % 2], size=(len(X), 3))
            X = _sort_rows(X)
            found.append(suggest_dimension(X, _folds(X, folds, rng)).suggested)
        right += found.count(shape.dimension)
        rows.append([name, shape.dimension, *found])
    heads = ["shape", "true", *(f"seed {first + i}" for i in range(n_seeds))]
    print_table(f"2. The dimension that is suggested: right in {right} of {n_seeds * len(shapes)}", heads, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--design", action="store_true", help="the shapes that criteria were chosen on")
    parser.add_argument("--only", default="1,2", help="which tables")
    parser.add_argument("--shapes", default="", help="some shapes only")
    parser.add_argument("--seeds", type=int, default=2, help="how many for each shape")
    parser.add_argument("--folds", type=int, default=FOLDS, help="parts that rows are held out in (%(default)s)")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    table, first = (DESIGN, 200) if given.design else (JUDGE, 300)
    shapes = {name: shape for name, shape in table.items() if not given.shapes or name in given.shapes.split(",")}
    for number, work in (("1", criteria), ("2", dimension)):
        if number in given.only.split(","):
            work(shapes, first, given.seeds, given.folds)


if __name__ == "__main__":
    main()
