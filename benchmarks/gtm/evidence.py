"""What choosing a GTM costs and what it is worth.

    python -m benchmarks.gtm.evidence [--full] [--only 1,3]

Table 1: the Hessians of the log-likelihood in the weights, as ratios to the matrix products that the exact one does
not do without: responsibilities times K × DM numbers, and the square of N × DM numbers, one half of it. Table 2:
training with the prior and the noise by their evidence beside plain EM, iteration for iteration. Table 3: where the
criteria land on simulators, by new rows and by distance to the truth. Times are of this run; contestants take turns.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.timing import clocked, peak_mb, print_table, take_turns
from scipy.linalg import eigh
from scipy.linalg.blas import dsyrk

from prinfold import GTM, choose, datasets
from prinfold.exceptions import PrinfoldWarning
from prinfold.gtm import evidence
from prinfold.gtm import model as gtm
from prinfold.gtm.node_selection import Hint
from prinfold.rows.rows import as_rows

SIZES = {
    "section 5.4": (400, 3, 15, 5),
    "pipe flow": (1000, 12, 20, 9),
    "fifty columns": (1000, 50, 20, (9, 3)),
}
"""Rows, columns, nodes along an axis, basis functions along an axis."""


def quietly(work: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """Folds and iteration limits are not the point here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrinfoldWarning)
        warnings.filterwarnings("ignore", "The iteration limit")
        return work(*given, **named)


def table_of(n: int, n_columns: int) -> np.ndarray:
    """Rows near a bent sheet in any number of columns."""
    rng = np.random.default_rng(0)
    u, v = rng.uniform(-1, 1, (2, n))
    sheet = np.stack([2 * u, v, u**2, np.sin(2 * v), u * v], axis=1)
    return sheet @ rng.standard_normal((5, n_columns)) + 0.2 * rng.standard_normal((n, n_columns))


# --------------------------------------------------------------------------------------------- 1: the Hessians


def products(n: int, n_nodes: int, n_weights: int) -> Callable[[], list[float]]:
    """The two products that the exact Hessian does not do without."""
    R, carried = np.full((n, n_nodes), 1 / n_nodes), np.ones((n_nodes, n_weights))
    z = np.empty((n, n_weights))

    def work() -> None:
        np.dot(R, carried, out=z)
        dsyrk(1.0, z.T, lower=1)

    work()
    return lambda: clocked(work)


def hessians(full: bool) -> None:
    rows_of_table = []
    for name, (n, n_columns, nodes, basis) in SIZES.items():
        X = table_of(n, n_columns)
        fitted = quietly(GTM(nodes=nodes, basis=basis, max_iter=20).fit, X)
        model, rows, parameters = fitted._model, as_rows(X, fitted.offset_), fitted._parameters()
        mass = gtm.e_step(model, rows, parameters, Hint())[0].mass
        matrix = evidence.exact_hessian(model, rows, parameters)
        runs = {
            "floor": products(n, len(mass), len(matrix)),
            "exact": timer(evidence.exact_hessian, model, rows, parameters),
            "eigenvalues": timer(eigh, matrix, eigvals_only=True),
            "approximate": timer(evidence.approximate_block, model.surface, mass, parameters.level),
            "E-step": timer(gtm.e_step, model, rows, parameters, Hint()),
        }
        seconds = {each: times.least for each, times in take_turns(runs, 7 if full else 3).items()}
        ratios = [seconds[each] / seconds["floor"] for each in ("exact", "eigenvalues", "approximate", "E-step")]
        memory = peak_mb(lambda: evidence.exact_hessian(model, rows, parameters))  # noqa: B023 - called at once
        size = f"{n} × {n_columns}, K={len(mass)}, M={len(fitted.weights_)}"
        rows_of_table.append([name, size, f"{len(matrix)}²", 1e3 * seconds["floor"], *ratios, memory])
    print_table(
        "1. Hessians: times the two products of the exact one",
        ["data", "size", "entries", "floor ms", "exact", "its eigenvalues", "approximate", "E-step", "peak MB"],
        rows_of_table,
    )


def timer(work: Callable[..., Any], *given: Any, **named: Any) -> Callable[[], list[float]]:
    return lambda: clocked(lambda: work(*given, **named))


# ---------------------------------------------------------------------------------------------- 2: the training


def training(full: bool) -> None:
    rows_of_table = []
    for name, (n, n_columns, nodes, basis) in SIZES.items():
        X, options = table_of(n, n_columns), {"nodes": nodes, "basis": basis, "max_iter": 30, "tol": 0.0}
        runs = {
            how: timer(quietly, GTM(**options, relaxation=1.0, prior_precision=prior).fit, X)
            for how, prior in (("given", 1.0), ("by evidence", "evidence"))
        }
        seconds = {each: times.median for each, times in take_turns(runs, 5 if full else 3).items()}
        # Ten plain steps come before the thirty.
        per_step = {"given": seconds["given"] / 30, "by evidence": seconds["by evidence"] / 40}
        rows_of_table.append([name, 1e3 * per_step["given"], per_step["by evidence"] / per_step["given"]])
    print_table(
        "2. An iteration with the prior and the noise by their evidence, times one with the prior given",
        ["data", "given ms", "by evidence"],
        rows_of_table,
    )


# ----------------------------------------------------------------------------------------------- 3: the criteria

SHAPES: dict[str, Callable[[int], datasets.Dataset]] = {
    "thesis surface": lambda seed: datasets.make_thesis_surface(rng=seed),
    "ridge": lambda seed: datasets.make_ridge(rng=seed),
    "thesis curve": lambda seed: datasets.make_thesis_curve(120, rng=seed),
    "spiral": lambda seed: datasets.make_spiral(300, rng=seed),
    "circle": lambda seed: datasets.make_circle(200, rng=seed),
}
LINES = {"thesis curve", "spiral"}
WIDTHS = (0.5, 0.7, 1.0, 1.4, 2.0, 2.8)


def criteria(full: bool) -> None:
    """Test log-likelihood short of the best candidate's, and distance to the truth beside it."""
    rows_of_table = []
    for name, make in SHAPES.items():
        losses: dict[str, list[tuple[float, float]]] = {}
        seconds: dict[str, list[float]] = {}
        for seed in range(10 if full else 4):
            for how, loss, took in landed(name, make, seed):
                losses.setdefault(how, []).append(loss)
                seconds.setdefault(how, []).append(took)
        for how, found in losses.items():
            short, ratio = np.mean(found, axis=0)
            rows_of_table.append([name, how, float(1e3 * short), float(ratio), float(np.median(seconds[how]))])
    print_table(
        "3. Widths from 0.5 to 2.8, chosen by each criterion, and the defaults",
        [
            "shape",
            "by",
            "short of the best width, millinats per new row",
            "distance, times that of the best",
            "seconds",
        ],
        rows_of_table,
    )


def landed(
    name: str, make: Callable[[int], datasets.Dataset], seed: int
) -> list[tuple[str, tuple[float, float], float]]:
    """For each criterion: what the chosen width loses on new rows, its distance to the truth, and its time."""
    data, new = make(seed), make(seed + 1000)
    shape = {"latent": "circle"} if name == "circle" else {"n_components": 1} if name in LINES else {}
    init = {"init": "isomap"} if name == "spiral" else {}
    model = GTM(**shape, **init, prior_precision="evidence", max_iter=300, random_state=0)
    fits = {width: quietly(GTM(**model.get_params() | {"width": width}).fit, data.X) for width in WIDTHS}
    scores = {width: fitted.score(new.X) for width, fitted in fits.items()}
    gaps = {width: distance(fitted, data) for width, fitted in fits.items()}
    found = []
    for by in ("exact", "approximate", "held-out"):
        clock = time.perf_counter()
        width = quietly(choose, data.X, {"width": WIDTHS}, model=model, by=by).settings["width"]
        took = time.perf_counter() - clock
        found.append((by, (max(scores.values()) - scores[width], gaps[width] / min(gaps.values())), took))
    clock = time.perf_counter()
    plain = quietly(GTM(**shape, **init, random_state=0).fit, data.X)
    lost = max(scores.values()) - plain.score(new.X), distance(plain, data) / min(gaps.values())
    return [*found, ("defaults", lost, time.perf_counter() - clock)]


def distance(model: GTM, data: datasets.Dataset) -> float:
    """Root mean squared distance of projected rows from the true surface."""
    return float(np.sqrt(np.mean(data.surface.distance(model.project(data.X)) ** 2)))


TABLES = {"1": hessians, "2": training, "3": criteria}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="more repetitions and seeds")
    parser.add_argument("--only", default=",".join(TABLES), help="numbers of tables, such as 1,3")
    options = parser.parse_args()
    for number in options.only.split(","):
        TABLES[number](options.full)
