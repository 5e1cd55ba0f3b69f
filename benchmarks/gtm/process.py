"""What a Gaussian-process map is worth and what it costs, beside maps of basis functions.

    python -m benchmarks.gtm.process [--full] [--only 1,2]

1. New rows and the true surface: log-likelihood of fresh rows, and mean squared distance from the fitted surface to
   the true one at the places to which fresh rows project, relative to the GTM's. Every contestant sees the same rows.
2. What a step costs: rank of the covariance, seconds of an EM step and of a choice of the length scale, by the
   number of nodes and the length scale. Seconds are those of this machine, on one thread.
3. Real tables, standardised: log-likelihood of the rows of five folds, each left out in turn.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.timing import print_table
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from prinfold import GTM, GaussianProcess, datasets
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.exceptions import PrinfoldError
from prinfold.gtm import model as gtm
from prinfold.gtm.gaussian_process_training import TunedModel, TunedState, with_process_prior
from prinfold.gtm.noise.isotropic import IsotropicNoise
from prinfold.gtm.starts.first_parameters import pca_start
from prinfold.latent import grid
from prinfold.rows.rows import as_rows, blas_on_one_thread

SHAPES: dict[str, tuple[Callable[..., Any], int, dict[str, Any], dict[str, Any]]] = {
    "half circle": (datasets.make_half_circle, 120, {"noise": 0.15}, {"n_components": 1}),
    "circle": (datasets.make_circle, 120, {"noise": 0.2}, {"latent": "circle"}),
    "spiral": (datasets.make_spiral, 250, {"noise": 0.03}, {"n_components": 1, "init": "isomap"}),
    "ridge": (datasets.make_ridge, 300, {"noise": 0.1, "sampling": "parameter"}, {}),
    "thesis surface": (datasets.make_thesis_surface, 300, {"noise": 0.2, "sampling": "parameter"}, {}),
    "sphere": (datasets.make_sphere, 300, {"noise": 0.1}, {"latent": "sphere"}),
    "swiss roll": (datasets.make_swiss_roll, 400, {"noise": 0.5}, {"init": "isomap"}),
    "pipe flow": (datasets.make_pipe_flow, 500, {}, {}),
}
"""Simulator, number of rows, its noise, and the settings that suit it."""

CONTESTANTS: dict[str, dict[str, Any]] = {
    "GTM": {},
    "GTM, evidence": {"prior_precision": "evidence"},
    "process": {"basis": GaussianProcess()},
    "process, Matérn 5/2": {"basis": GaussianProcess(covariance="matern52")},
}


def worth(seeds: int) -> None:
    rows = []
    for name, (make, n, noise, settings) in SHAPES.items():
        score: dict[str, list[float]] = {each: [] for each in CONTESTANTS}
        distance: dict[str, list[float]] = {each: [] for each in CONTESTANTS}
        length = []
        for seed in range(seeds):
            seen, fresh = make(n, **noise, rng=seed), make(1000, **noise, rng=1000 + seed)
            for each, options in CONTESTANTS.items():
                model = GTM(max_iter=500, random_state=0, **settings, **options).fit(seen.X)
                score[each].append(model.score(fresh.X))
                if fresh.surface is not None:
                    distance[each].append(float(np.mean(fresh.surface.distance(model.project(fresh.X)) ** 2)))
                if each == "process":
                    length.append(model.basis_.length_scale)
        line = [name, f"{np.mean(score['GTM']):.3f}"]
        for each in list(CONTESTANTS)[1:]:
            gain = np.subtract(score[each], score["GTM"])
            near = "—"
            if distance[each]:
                near = f"{np.exp(np.mean(np.log(np.divide(distance[each], distance['GTM'])))):.2f}"
            line += [f"{gain.mean():+.3f}", near]
        rows.append([*line, f"{np.median(length):.2f}"])
    header = ["shape", "GTM, nats a row"]
    for each in list(CONTESTANTS)[1:]:
        header += [each, "distance"]
    print_table(f"1. New rows and the true surface beside the GTM ({seeds} seeds)", [*header, "length scale"], rows)


def cost(sides: tuple[int, ...]) -> None:
    X = datasets.make_pipe_flow(1000, rng=0).X
    rows = []
    for side in sides:
        for length in (0.5, 0.25, 0.1):
            latent, data = grid(side, side), as_rows(X, X.mean(axis=0), None, width=side**2)
            recipe = GaussianProcess(length)
            clock = time.perf_counter()
            surface = BasisMap(latent, recipe.bind(latent))
            rank = surface.node_features.shape[1]
            bound = time.perf_counter() - clock
            model = with_process_prior(
                gtm.GTMModel(surface, IsotropicNoise(1e-6), None), recipe, float(X.var()), penalized=False
            )
            with blas_on_one_thread():
                state = model.begin(data, pca_start(model, data, np.random.default_rng(0)))
                clock = time.perf_counter()
                for _ in range(2):
                    state = model.step(data, state)
                step = (time.perf_counter() - clock) / 2
                clock = time.perf_counter()
                TunedModel(model, 0.0, True, True)._choose(TunedState(model, state))
                choice = time.perf_counter() - clock
            rows.append([f"{side}²", side**2, f"{length:g}", rank, f"{bound:.2f}", f"{step:.2f}", f"{choice:.2f}"])
    heads = ["grid", "nodes", "length scale", "numbers per column", "bind, s", "EM step, s", "choice, s"]
    print_table("2. What it costs on 1000 rows of 12 columns, one thread", heads, rows)


TABLES: dict[str, Callable[[], Any]] = {
    "iris": datasets.load_iris,
    "crabs": datasets.load_crabs,
    "glass": datasets.load_glass,
    "diabetes": datasets.load_diabetes,
    "oil flow": datasets.load_oil_flow,
}


TAILED = {"Student": {"noise": "student"}, "process, Student": {"noise": "student", "basis": GaussianProcess()}}
"""Real tables have outliers, and a surface that comes nearer to most rows pays more for them."""


def real() -> None:
    contestants = {**CONTESTANTS, **TAILED}
    rows = []
    for name, load in TABLES.items():
        try:
            X = StandardScaler().fit_transform(load().X)
        except (OSError, PrinfoldError) as error:
            print(f"{name} is left out: {error}")
            continue
        folds = list(KFold(5, shuffle=True, random_state=0).split(X))
        score = {
            each: [GTM(max_iter=500, random_state=0, **options).fit(X[a]).score(X[b]) for a, b in folds]
            for each, options in contestants.items()
        }
        gains = [np.subtract(score[each], score["GTM"]) for each in list(contestants)[1:]]
        spread = [f"{gain.mean():+.2f} ± {gain.std(ddof=1) / np.sqrt(5):.2f}" for gain in gains]
        rows.append([name, len(X), X.shape[1], f"{np.mean(score['GTM']):.2f}", *spread])
    heads = ["table", "rows", "columns", "GTM, nats a row", *list(contestants)[1:]]
    print_table("3. Real tables: what is gained per row left out", heads, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="more seeds and larger grids")
    parser.add_argument("--only", default="1,2,3", help="which tables")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if "1" in options.only:
        worth(10 if options.full else 3)
    if "2" in options.only:
        cost((20, 30, 50, 70) if options.full else (20, 30, 50))
    if "3" in options.only:
        real()


if __name__ == "__main__":
    main()
