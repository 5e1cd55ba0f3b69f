"""What each noise of a GTM costs and is worth.

    python -m benchmarks.gtm.noise_models [--full]

Seconds of an E-step and of an iteration as ratios to those of isotropic noise in the same run, on one thread: rows that
are complete, and rows with a tenth of their cells missing. Then what the noise is worth to rows held out: nats a row
more than isotropic noise gives. ``--full`` takes more rows and columns, and more seeds.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.timing import clocked, print_table, take_turns
from threadpoolctl import threadpool_limits

from prinfold import GTM, PPS, LowRankNoise, datasets
from prinfold.gtm import model as gtm

warnings.simplefilter("ignore")

NOISES: dict[str, Callable[..., Any]] = {
    "isotropic": GTM,
    "diagonal": lambda **options: GTM(noise="diagonal", **options),
    "student": lambda **options: GTM(noise="student", **options),
    "aligned": lambda **options: GTM(noise="aligned", **options),
    "low rank, 1": lambda **options: GTM(noise=LowRankNoise(1, (0, 1)), **options),
    "low rank, 3": lambda **options: GTM(noise=LowRankNoise(3, (0, 1)), **options),
    "PPS, clamping 0.7": lambda **options: PPS(clamping=0.7, **options),
}


def sheet(n: int, D: int, rng: np.random.Generator) -> np.ndarray:
    """A bent sheet in D columns with a little noise."""
    u, v = rng.uniform(-1, 1, (2, n))
    bent = np.stack([2 * u, v, u**2, u * v, np.sin(2 * v)], axis=1)
    return np.asarray(bent @ rng.standard_normal((5, D)) + 0.3 * rng.standard_normal((n, D)))


def with_gaps(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.uniform(size=X.shape) < 0.1, np.nan, X)


def ready(make: Callable[..., Any], X: np.ndarray) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """An E-step and an iteration, to be called."""
    model = make(nodes=15, basis=5, max_iter=3, tol=0).fit(X)
    rows = model._rows(X)
    trained, parameters = model._model_for(rows, model._model), model._parameters()
    state = trained.begin(rows, parameters)
    return lambda: gtm.summarize(trained, rows, parameters), lambda: trained.step(rows, state)


def costs(n: int, D: int, turns: int) -> None:
    rng = np.random.default_rng(0)
    X = sheet(n, D, rng)
    for words, table in (("complete rows", X), ("a tenth of the cells missing", with_gaps(X, rng))):
        calls = {name: ready(make, table) for name, make in NOISES.items()}
        runs = {(name, i): pair[i] for name, pair in calls.items() for i in (0, 1)}
        with threadpool_limits(1):
            took = take_turns({key: (lambda call=call: clocked(call)) for key, call in runs.items()}, turns)
        base = [took["isotropic", i].least for i in (0, 1)]
        rows = [[name, *(took[name, i].least / base[i] for i in (0, 1))] for name in NOISES]
        title = f"{n} rows, {D} columns, 15 × 15 nodes, {words}; isotropic: {base[0]:.3f} s and {base[1]:.3f} s"
        print_table(title, ["times isotropic", "E-step", "iteration"], rows)


def curves(seed: int) -> dict[str, tuple[np.ndarray, np.ndarray, dict[str, Any]]]:
    """Rows to learn from, new rows, and settings, of tables of different kinds."""
    made: dict[str, tuple[Callable[[int], np.ndarray], dict[str, Any]]] = {
        "thesis curve, 10 nodes": (lambda s: datasets.make_thesis_curve(200, rng=s).X, {"nodes": 10, "basis": 5}),
        "thesis curve, 40 nodes": (lambda s: datasets.make_thesis_curve(200, rng=s).X, {"nodes": 40, "basis": 5}),
        "semi-linear sheet": (
            lambda s: datasets.make_semilinear_sheet(300, 0.05, rng=s, sampling="parameter").X,
            {"nodes": 20, "basis": 5},
        ),
        "half circle": (lambda s: datasets.make_half_circle(300, rng=s).X, {"nodes": 20, "basis": 5}),
    }
    return {name: (make(seed), make(seed + 1000), settings) for name, (make, settings) in made.items()}


def worth(n_seeds: int) -> None:
    noises = {"diagonal": "diagonal", "student": "student", "aligned": "aligned", "low rank, 1": LowRankNoise(1)}
    gains: dict[str, dict[str, list[float]]] = {}
    for seed in range(n_seeds):
        for table, (X, new, settings) in curves(seed).items():
            plain = GTM(1, **settings).fit(X).score(new)
            for name, noise in noises.items():
                gain = GTM(1, noise=noise, **settings).fit(X).score(new) - plain
                gains.setdefault(table, {}).setdefault(name, []).append(gain)
    rows = [
        [table, *(f"{np.mean(v):+.2f} ± {np.std(v, ddof=1):.2f}" for v in each.values())]
        for table, each in gains.items()
    ]
    print_table(f"Nats a new row over isotropic noise, {n_seeds} seeds", ["table", *noises], rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="more rows, columns and seeds")
    full = parser.parse_args().full
    costs(20_000 if full else 4000, 12, 7 if full else 4)
    if full:
        costs(5000, 100, 7)
    worth(20 if full else 5)
