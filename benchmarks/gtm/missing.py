"""What gaps in a table cost a GTM, and what it makes of them, beside other ways of filling in.

    python -m benchmarks.gtm.missing [--full] [--only 1,3]

1. Pipe flow, simulated and (where the data are there) the real oil flow, with more and more cells taken out at random:
   log-likelihood of complete rows held out, rows of a class wrong on the map, error of what was filled in.
2. The same 20 % by who fills them in: the GTM itself, the column's mean, neighbours, regressions; or rows with gaps
   are left out.
3. Errors that are known, given to the fit or not: distance from the true curve.
4. What an iteration costs, as ratios to the same without gaps, in this run.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator

import numpy as np
from benchmarks.timing import print_table
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 - registers the imputer
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer

from prinfold import GTM, KernelDensityClassifier, datasets
from prinfold.exceptions import DataNotFoundError, PrinfoldWarning

SETTINGS = {"nodes": 20, "basis": 8, "max_iter": 300, "random_state": 0}
SHARES = (0.0, 0.05, 0.1, 0.2, 0.4)
FILLERS = {
    "column means": SimpleImputer,
    "neighbours": KNNImputer,
    "regressions": lambda: IterativeImputer(max_iter=20, random_state=0),
}


def tables(seeds: int) -> Iterator[tuple[str, int, datasets.Dataset, datasets.Dataset]]:
    """Rows to learn from and rows to try."""
    for seed in range(seeds):
        yield "pipe flow", seed, *(datasets.make_pipe_flow(1000, rng=[seed, part]) for part in range(2))
    try:
        seen, new = (datasets.load_oil_flow(part=part) for part in ("train", "valid"))
    except DataNotFoundError as error:
        print(f"left out: {error}")
        return
    for seed in range(seeds):
        yield "oil flow", seed, seen, new


def taken_out(X: np.ndarray, share: float, seed: int) -> np.ndarray:
    """The table with a share of its cells missing at random."""
    holes = np.random.default_rng(100 + seed).uniform(size=X.shape) < share
    holes[np.arange(len(X)), np.random.default_rng(seed).integers(X.shape[1], size=len(X))] = False
    return np.where(holes, np.nan, X)


def judged(model: GTM, table: np.ndarray, seen: datasets.Dataset, new: datasets.Dataset) -> tuple[float, float]:
    """Log-likelihood of complete rows held out, and share of them in the wrong class on the map."""
    classes = KernelDensityClassifier().fit(model.transform(table), seen.labels)
    return model.score(new.X), 1 - classes.score(model.transform(new.X), new.labels)


def filling_error(filled: np.ndarray, table: np.ndarray, X: np.ndarray) -> float:
    """Root mean square error of what was filled in, in standard deviations of the column."""
    holes = np.isnan(table)
    return float(np.sqrt(np.square((filled - X) / X.std(axis=0))[holes].mean())) if holes.any() else 0.0


def shares(seeds: int) -> None:
    """What gaps cost, by their share."""
    found: dict[tuple[str, float], list[tuple[float, ...]]] = {}
    for name, seed, seen, new in tables(seeds):
        for share in SHARES:
            table = taken_out(seen.X, share, seed)
            model = GTM(**SETTINGS).fit(table)
            filled, spread = model.impute(table, return_std=True)
            holes = np.isnan(table)
            z = ((filled - seen.X)[holes] / spread[holes]) if holes.any() else np.zeros(1)
            holding = float((np.abs(z) < 1.96).mean())
            tried = taken_out(new.X, share, seed + 50)
            apart = np.linalg.norm(model.transform(tried) - model.transform(new.X), axis=1)
            numbers = (*judged(model, table, seen, new), filling_error(filled, table, seen.X), holding)
            found.setdefault((name, share), []).append((*numbers, float(np.median(apart) / model.latent_.spacing)))
    print_table(
        "Gaps at random: what they cost (means over seeds)",
        ["data", "missing", "log-likelihood", "wrong class", "filling error", "within 1.96 s.d.", "moved (spacings)"],
        [[name, f"{share:.0%}", *_means(each)] for (name, share), each in found.items()],
    )


def _means(each: list[tuple[float, ...]]) -> list[str]:
    log_likelihood, wrong, error, holding, apart = np.mean(each, axis=0)
    return [f"{log_likelihood:.2f}", f"{wrong:.1%}", f"{error:.3f}", f"{holding:.1%}", f"{apart:.2f}"]


def fillers(seeds: int) -> None:
    """The same share of gaps by who fills them in."""
    found: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for name, seed, seen, new in tables(seeds):
        table = taken_out(seen.X, 0.2, seed)
        model = GTM(**SETTINGS).fit(table)
        error = filling_error(model.impute(table), table, seen.X)
        found.setdefault((name, "the GTM itself"), []).append((*judged(model, table, seen, new), error))
        for way, make in FILLERS.items():
            filled = make().fit_transform(table)
            model = GTM(**SETTINGS).fit(filled)
            error = filling_error(filled, table, seen.X)
            found.setdefault((name, way), []).append((*judged(model, filled, seen, new), error))
        whole = ~np.isnan(table).any(axis=1)
        model = GTM(**SETTINGS).fit(table[whole])
        error = filling_error(model.impute(table), table, seen.X)
        found.setdefault((name, "complete rows only"), []).append((*judged(model, table, seen, new), error))
        model = GTM(**SETTINGS).fit(seen.X)
        found.setdefault((name, "nothing missing"), []).append((*judged(model, seen.X, seen, new), 0.0))
    rows = []
    for (name, way), each in found.items():
        log_likelihood, wrong, error = np.mean(each, axis=0)
        rows.append([name, way, f"{log_likelihood:.2f}", f"{wrong:.1%}", f"{error:.3f}"])
    print_table(
        "20 % of the cells missing, filled in by", ["data", "by", "log-likelihood", "wrong class", "error"], rows
    )


def known_errors(seeds: int) -> None:
    """A noisy curve of which some cells are measured well and some badly."""
    rows = []
    for bad in (0.1, 0.3, 0.6):
        off = []
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            u = rng.uniform(-1, 1, 800)
            clean = np.stack([2 * u, 1.2 * u**2, np.sin(2.5 * u), 0.5 * u], axis=1)
            errors = np.where(rng.uniform(size=clean.shape) < 0.5, bad, 0.02)
            table = clean + errors * rng.standard_normal(clean.shape) + 0.03 * rng.standard_normal(clean.shape)
            told = GTM(1, nodes=40, basis=8, max_iter=500, tol=1e-6).fit(table, errors=errors)
            untold = GTM(1, nodes=40, basis=8, max_iter=500, tol=1e-6).fit(table)
            placed = told.inverse_transform(told.transform(table, errors=errors))
            guessed = untold.inverse_transform(untold.transform(table))
            off.append([_rms(placed - clean), _rms(guessed - clean), *(m.noise_variance_**0.5 for m in (told, untold))])
        rows.append([f"{bad:g}", *(f"{value:.3f}" for value in np.mean(off, axis=0))])
    print_table(
        "Half the cells measured to 0.02, half to the error given; noise of the curve itself 0.03",
        ["error", "off the truth, told", "untold", "noise found, told", "untold"],
        rows,
    )


def _rms(gap: np.ndarray) -> float:
    return float(np.sqrt(np.square(gap).sum(axis=1).mean()))


def cost(seeds: int) -> None:
    """Seconds of an iteration with gaps and with errors, over one without."""
    rows = []
    for n, D, K in ((1000, 12, 20), (20_000, 50, 30)):
        X = np.random.default_rng(0).standard_normal((n, D)) @ np.random.default_rng(1).standard_normal((D, D))
        kinds = {
            "none": ({}, X),
            "gaps": ({}, taken_out(X, 0.2, 0)),
            "errors": ({"errors": np.full(n, 0.1)}, X),
            "columns": ({"noise": "diagonal"}, X),
        }
        seconds = {}
        for _ in range(2 + seeds):
            for kind, (options, table) in kinds.items():
                settings = {"noise": options["noise"]} if "noise" in options else {}
                extra = {"errors": options["errors"]} if "errors" in options else {}
                model = GTM(nodes=K, basis=8, max_iter=4, tol=0.0, relaxation=1.0, **settings)
                model.fit(table, **extra)
                seconds.setdefault(kind, []).append(np.median(np.diff(model.history_["seconds"])))
        base = np.median(seconds["none"])
        rows.append([f"{n}×{D}, {K}×{K}", *(f"{np.median(seconds[kind]) / base:.2f}" for kind in list(kinds)[1:])])
    print_table("An iteration, over one of isotropic noise without gaps", ["table", "gaps", "errors", "diagonal"], rows)


PARTS = {"1": shares, "2": fillers, "3": known_errors, "4": cost}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="five seeds instead of one")
    parser.add_argument("--only", default=",".join(PARTS), help="parts to run, such as 1,3")
    options = parser.parse_args()
    clock = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=PrinfoldWarning)
        warnings.simplefilter("ignore", category=UserWarning)  # of iterations that run out
        for part in options.only.split(","):
            PARTS[part](5 if options.full else 1)
    print(f"{time.perf_counter() - clock:.0f} s")


if __name__ == "__main__":
    main()
