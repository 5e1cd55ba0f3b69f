"""What a map of mixed columns is worth: cells left out of new rows, beside one-hot columns and the columns alone.

    python -m benchmarks.gtm.mixed_gtm [--full]

A fifth of all cells is taken away at random. Each contestant is fitted to the rest of two thirds of the rows, and tells
what the missing cells of the others were. Levels are judged by how many are right and by the log loss of their
probabilities, numbers and counts by the error relative to that of the column's mean (of counts on the scale ln(1 + t)).
The last column is the log-likelihood per new row under the map of mixed columns, less that of the columns on their own.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from benchmarks.timing import print_table
from sklearn.exceptions import ConvergenceWarning

from prinfold import GTM, MixedGTM
from prinfold.datasets.files import find
from prinfold.exceptions import PrinfoldWarning

MISSING, TEST = 0.2, 1 / 3
SETTINGS: dict[str, Any] = {"nodes": 12, "basis": 5, "max_iter": 100, "random_state": 0}
LEAST = 0.01
"""Probability that every level gets at least, or one miss would decide the log loss of what knows no probabilities."""


def simulated(n: int = 600, seed: int = 0) -> pd.DataFrame:
    """A sheet seen through columns of every kind."""
    rng = np.random.default_rng(seed)
    u, v = rng.uniform(-1, 1, (2, n))
    utility = np.stack([3 * u, 3 * v, np.zeros(n), -3 * u * v], axis=1) + rng.gumbel(size=(n, 4))
    return pd.DataFrame(
        {
            "x": 2 * u + 0.3 * rng.standard_normal(n),
            "y": u**2 + v + 0.3 * rng.standard_normal(n),
            "flag": rng.uniform(size=n) < 1 / (1 + np.exp(-4 * v)),
            "other": rng.uniform(size=n) < 1 / (1 + np.exp(-4 * u)),
            "town": np.array(["ash", "elm", "oak", "yew"])[utility.argmax(axis=1)],
            "calls": rng.poisson(np.exp(1 + u)),
            "reads": rng.negative_binomial(3, 3 / (3 + np.exp(2 + v))),
        }
    )


def crabs() -> pd.DataFrame | None:
    path = find("crabs.csv.gz", None)
    return None if path is None else pd.read_csv(path).drop(columns="index")


def pima() -> pd.DataFrame | None:
    """Noughts that stand for not measured are gaps; the class is a level."""
    path = find("pima.csv.gz", None)
    if path is None:
        return None
    table = pd.read_csv(path)
    gaps = ["glucose", "pressure", "triceps", "insulin", "mass"]
    table[gaps] = table[gaps].astype(float).replace(0.0, np.nan)
    return table.assign(diabetes=table["diabetes"].map({0: "no", 1: "yes"}))


def paul15() -> pd.DataFrame | None:
    """The 40 genes that vary most, and the type of each cell."""
    path = find("paul15_tradeseq.npz", None)
    if path is None:
        return None
    data = np.load(path)
    some = np.random.default_rng(0).choice(len(data["counts"]), 800, replace=False)
    genes = np.argsort(data["counts"].var(axis=0))[-40:]
    table = pd.DataFrame(data["counts"][some][:, genes].astype(int), columns=data["genes"][genes])
    return table.assign(celltype=data["celltype"][some])


TABLES: dict[str, Callable[[], pd.DataFrame | None]] = {
    "simulated": simulated,
    "crabs": crabs,
    "pima": pima,
    "paul15": paul15,
}


# ------------------------------------------------------------------------------------------- contestants


class Told:
    """What a contestant says of every cell: an expectation, or the probabilities of levels."""

    def __init__(self, numbers: dict[str, np.ndarray], levels: dict[str, np.ndarray]) -> None:
        self.numbers, self.levels = numbers, levels


def mixed(train: pd.DataFrame, test: pd.DataFrame, kinds: Any) -> Told:
    counts = sum(column.kind in {"poisson", "negative_binomial"} for column in kinds)
    factors = "auto" if counts > 10 else None
    chosen = {column.name: column.kind for column in kinds}
    model = MixedGTM(**SETTINGS, columns=chosen, size_factors=factors, unseen="missing").fit(train)
    share = model.responsibilities(test)
    values = dict(zip(model.value_names(), (share @ model.inverse_transform(model.latent_.nodes)).T, strict=True))
    filled = model.impute(test)
    numbers, levels = {}, {}
    for column in model.columns_:
        if not column.levels:
            numbers[column.name] = filled[column.name].to_numpy(float)
        elif column.kind == "bernoulli":
            p = values[f"{column.name}={column.levels[1]}"]
            levels[column.name] = np.stack([1 - p, p], axis=1)
        else:
            levels[column.name] = np.stack([values[f"{column.name}={level}"] for level in column.levels], axis=1)
    return Told(numbers, levels)


def one_hot(train: pd.DataFrame, test: pd.DataFrame, kinds: Any) -> Told:
    """A column for each level, ln(1 + t) of counts, all standardised, and noise alike in all."""
    parts = []
    for table in (train, test):
        columns = []
        for column in kinds:
            if column.levels:
                known = table[column.name].notna().to_numpy()
                marks = np.stack([(table[column.name] == level).to_numpy(float) for level in column.levels], axis=1)
                columns.append(np.where(known[:, None], marks, np.nan))
            else:
                values = table[column.name].to_numpy(float)[:, None]
                columns.append(values if column.kind == "gaussian" else np.log1p(values))
        parts.append(np.hstack(columns))
    mean, spread = np.nanmean(parts[0], axis=0), np.nanstd(parts[0], axis=0) + 1e-12
    model = GTM(**SETTINGS).fit((parts[0] - mean) / spread)
    found = model.responsibilities((parts[1] - mean) / spread) @ model.inverse_transform(model.latent_.nodes)
    found = found * spread + mean
    numbers, levels, at = {}, {}, 0
    for column in kinds:
        if column.levels:
            shares = np.clip(found[:, at : at + len(column.levels)], LEAST, 1.0)
            levels[column.name] = shares / shares.sum(axis=1, keepdims=True)
            at += len(column.levels)
        else:
            numbers[column.name] = found[:, at] if column.kind == "gaussian" else np.expm1(found[:, at])
            at += 1
    return Told(numbers, levels)


def alone(train: pd.DataFrame, test: pd.DataFrame, kinds: Any) -> Told:
    numbers, levels = {}, {}
    for column in kinds:
        if column.levels:
            counts = np.array([(train[column.name] == level).sum() for level in column.levels]) + 0.5
            levels[column.name] = np.tile(counts / counts.sum(), (len(test), 1))
        else:
            numbers[column.name] = np.full(len(test), train[column.name].astype(float).mean())
    return Told(numbers, levels)


CONTESTANTS = {"MixedGTM": mixed, "one-hot GTM": one_hot, "column alone": alone}


# ------------------------------------------------------------------------------------------------ judging


def trial(table: pd.DataFrame, seed: int) -> dict[str, list[float]]:
    """Accuracy, log loss and relative error of each contestant."""
    rng = np.random.default_rng([seed, 1])  # not the numbers that the simulated table was made of
    kinds = MixedGTM(max_iter=0, nodes=4, basis=2).fit(table).columns_
    holes = (rng.uniform(size=table.shape) < MISSING) & table.notna().to_numpy()
    holed = table.astype(object).mask(holes)
    for column in kinds:
        holed[column.name] = holed[column.name].astype(object if column.levels else float)
    test = rng.uniform(size=len(table)) < TEST
    out = {}
    for name, contestant in CONTESTANTS.items():
        told = contestant(holed[~test], holed[test], kinds)
        out[name] = judged(told, table[test], holes[test], kinds, holed[~test])
    return out


def judged(told: Told, truth: pd.DataFrame, holes: np.ndarray, kinds: Any, train: pd.DataFrame) -> list[float]:
    right, loss, errors = [], [], []
    for j, column in enumerate(kinds):
        gaps = holes[:, j]
        if column.levels:
            code = np.array([column.levels.index(value) for value in truth[column.name][gaps]])
            shares = np.clip(told.levels[column.name][gaps], LEAST, 1.0)
            right.append(shares.argmax(axis=1) == code)
            loss.append(-np.log(shares[np.arange(len(code)), code] / shares.sum(axis=1)))
            continue
        scale = np.log1p if KINDS_OF_COUNTS & {column.kind} else np.asarray
        target = scale(truth[column.name][gaps].to_numpy(float))
        middle = scale(np.full(len(target), train[column.name].astype(float).mean()))
        found = told.numbers[column.name][gaps]
        found = scale(np.maximum(found, 0.0) if scale is np.log1p else found)
        errors.append(np.square(found - target).mean() / np.square(middle - target).mean())
    return [float(np.concatenate(right).mean()), float(np.concatenate(loss).mean()), float(np.sqrt(np.mean(errors)))]


KINDS_OF_COUNTS = {"poisson", "negative_binomial"}


def gain(table: pd.DataFrame, seed: int) -> float:
    """Nats per new row that the map gains over columns on their own, which is a map of one node."""
    test = np.random.default_rng([seed, 2]).uniform(size=len(table)) < TEST
    kinds = {column.name: column.kind for column in MixedGTM(max_iter=0, nodes=4, basis=2).fit(table).columns_}
    model = MixedGTM(**SETTINGS, columns=kinds, unseen="missing").fit(table[~test])
    single = MixedGTM(1, nodes=1, basis=1, max_iter=300, columns=kinds, unseen="missing").fit(table[~test])
    return float(model.score(table[test]) - single.score(table[test]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="ten splits instead of two")
    parser.add_argument("--only", default="", help="names of tables, separated by commas")
    options = parser.parse_args()
    warnings.simplefilter("ignore", PrinfoldWarning)
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows = []
    for name, make in TABLES.items():
        if options.only and name not in options.only.split(","):
            continue
        table = make()
        if table is None:
            print(f"{name}: left out (PRINFOLD_DATA names no folder that has it)")
            continue
        seeds = range(10 if options.full else 2)
        trials = [trial(table, seed) for seed in seeds]
        nats = np.mean([gain(table, seed) for seed in seeds])
        for contestant in CONTESTANTS:
            right, loss, error = np.mean([each[contestant] for each in trials], axis=0)
            shown = f"{nats:+.2f}" if contestant == "MixedGTM" else ""
            rows.append([name, contestant, f"{right:.1%}", f"{loss:.3f}", f"{error:.3f}", shown])
    heads = ["table", "contestant", "levels right", "log loss", "error of numbers", "nats per row"]
    print_table("Cells told of new rows", heads, rows)


if __name__ == "__main__":
    main()
