"""What several maps are worth, how often the right parts are found, and what they cost.

    python -m benchmarks.gtm.gtm_mixture [--full] [--only 1,3]

1. Pipe flow, real (where the file is) and simulated: log-likelihood of held-out rows with one map and more, with a
   noise for each and with one for all; how pure the maps are, beside k-means and a mixture of Gaussians with as many.
2. Sheets whose truth is known: how often a mixture ends no lower than one that began with the truth, by kind of start.
3. An iteration of a mixture beside that of one GTM with as many nodes.

``--full`` takes more seeds and more rows.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.timing import clocked, print_table, take_turns
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from prinfold import GTM, GTMMixture, datasets

warnings.simplefilter("ignore")


def purity(part: np.ndarray, truth: np.ndarray) -> float:
    """Share of rows that are of the commonest class of their part."""
    return sum(np.bincount(truth[part == j]).max() for j in np.unique(part)) / len(truth)


# ------------------------------------------------------------------------------------------------ pipe flow


def pipe_flow(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows to learn from with their configurations, and others."""
    train, test = datasets.make_pipe_flow(1000, rng=seed), datasets.make_pipe_flow(1000, rng=1000 + seed)
    return train.X, np.asarray(train.labels), test.X


def oil_flow() -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    try:
        train, test = datasets.load_oil_flow(part="train"), datasets.load_oil_flow(part="valid")
    except Exception:  # the file is not part of the project
        return None
    return train.X, np.asarray(train.labels), test.X


def worth(seeds: int, most: int) -> None:
    real = oil_flow()
    tables = {"simulated pipe flow": [pipe_flow(seed) for seed in range(seeds)]}
    if real is not None:
        tables["oil flow"] = [real]
    for name, samples in tables.items():
        rows = [_row(n_maps, samples) for n_maps in range(1, most + 1)]
        head = ["maps", "held out", "one noise", "purity", "k-means", "Gaussians, held out", "their purity"]
        print_table(f"{name}, {len(samples[0][0])} rows, {len(samples)} sample(s): nats a held-out row", head, rows)


def _row(n_maps: int, samples: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> list[Any]:
    found = []
    for seed, (X, truth, new) in enumerate(samples):
        own = GTMMixture(n_maps, random_state=seed).fit(X)
        shared = GTMMixture(n_maps, shared_noise=True, random_state=seed).fit(X)
        means = KMeans(n_maps, n_init=10, random_state=seed).fit_predict(X)
        clouds = GaussianMixture(n_maps, n_init=5, reg_covar=1e-5, random_state=seed).fit(X)
        pure = [purity(part, truth) for part in (own.memberships(X).argmax(axis=1), means, clouds.predict(X))]
        found.append([own.score(new), shared.score(new), pure[0], pure[1], clouds.score(new), pure[2]])
    return [n_maps, *np.mean(found, axis=0)]


# -------------------------------------------------------------------------------------------- starts and truths


def sheets(kind: str, seed: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Rows, the sheet that each is on, and the dimension of the sheets."""
    rng = np.random.default_rng(seed)
    U, which = rng.uniform(-1, 1, (600, 2)), (np.arange(600) >= 300).astype(int)
    noise = 0.03 * rng.standard_normal((600, 3))
    if kind == "beside each other":
        return np.column_stack([U[:, 0] + 4 * which, U[:, 1], 0.4 * U[:, 0] ** 2]) + noise, which, 2
    if kind == "one above the other":
        return np.column_stack([U, 0.3 * U[:, 0] ** 2 + 0.4 * which]) + noise, which, 2
    if kind == "one a tenth as large":
        near = np.column_stack([U, 0.3 * U[:, 0] ** 2]) * np.where(which, 0.1, 1.0)[:, None]
        return near + which[:, None] * [1.6, 1.6, 0.0] + noise * np.where(which, 0.1, 1.0)[:, None], which, 2
    t = np.pi * U[:, 0]
    rings = np.where(which[:, None] == 0, np.c_[np.cos(t), np.sin(t), 0 * t], np.c_[1 + np.cos(t), 0 * t, np.sin(t)])
    return rings + noise, which, 1  # linked rings


def starts(seeds: int) -> None:
    kinds = ["beside each other", "one above the other", "one a tenth as large", "linked rings"]
    ways: dict[str, dict[str, Any]] = {
        "centres, 1": {"partition": "centers", "n_init": 1},
        "flats, 1": {"partition": "flats", "n_init": 1},
        "clouds, 1": {"partition": "clouds", "n_init": 1},
        "auto, 4": {"n_init": 4},
        "auto, 8 (default)": {},
        "auto, 16": {"n_init": 16},
    }
    rows = []
    for kind in kinds:
        good: dict[str, list[bool]] = {way: [] for way in ways}
        for seed in range(seeds):
            X, which, dimension = sheets(kind, seed)
            recipe = GTM(1, nodes=24, latent="circle") if dimension == 1 else GTM(nodes=10, basis=4)
            truth = GTMMixture(2, recipe, partition=which).fit(X).history_["objective"][-1]
            for way, options in ways.items():
                found = GTMMixture(2, recipe, random_state=seed, **options).fit(X).history_["objective"][-1]
                good[way].append(found > truth - 0.05)
        rows.append([kind, *(f"{sum(each)}/{seeds}" for each in good.values())])
    title = "Two sheets of 300 rows: how often the objective ends within 0.05 nats a row of one begun with the truth"
    print_table(title, ["sheets", *ways], rows)


# ------------------------------------------------------------------------------------------------------ cost


def _iteration(n_maps: int, X: np.ndarray) -> Callable[[], Any]:
    """One more iteration of a mixture of n_maps, or of a GTM where that is nil; 900 nodes in all."""
    side = round(np.sqrt(900 / max(n_maps, 1)))
    gtm = GTM(nodes=side, basis=5, max_iter=12, tol=0)
    if n_maps == 0:
        model = gtm.fit(X)
        rows = model._rows(X)
        state = model._model.begin(rows, model._parameters())
        return lambda: model._model.step(rows, state)
    mixture, kept = GTMMixture(n_maps, gtm, n_init=1, random_state=0, max_iter=12, tol=0), []
    train = mixture._train

    def keep(begun: Any) -> Any:
        kept.append(train(begun))
        return kept[0]

    mixture._train = keep  # type: ignore[method-assign]
    mixture.fit(X)
    rows, model, state = kept[0]
    return lambda: model.step(rows, state)


def costs(sizes: tuple[int, ...], turns: int) -> None:
    rows = []
    for n in sizes:
        X = datasets.make_pipe_flow(n, rng=0).X
        calls = {n_maps: _iteration(n_maps, X) for n_maps in (0, 1, 2, 4)}
        with threadpool_limits(1):
            took = take_turns({key: (lambda call=call: clocked(call)) for key, call in calls.items()}, turns)
        base = took[0].least
        rows.append([n, base, *(took[n_maps].least / base for n_maps in (1, 2, 4))])
    head = ["rows", "GTM, seconds", "1 map", "2 maps", "4 maps"]
    print_table("An iteration with 900 nodes in all, as ratios to that of a GTM, on one thread", head, rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="more seeds and more rows")
    parser.add_argument("--only", default="1,2,3", help="which tables")
    given = parser.parse_args()
    if "1" in given.only:
        worth(5 if given.full else 1, 6 if given.full else 5)
    if "2" in given.only:
        starts(10 if given.full else 4)
    if "3" in given.only:
        costs((1000, 10_000, 100_000) if given.full else (1000, 10_000), 5 if given.full else 3)
