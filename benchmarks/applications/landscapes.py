"""What landscapes over a map are worth: classes and numbers of held-out rows, beside neighbours on the map and off it.

    python -m benchmarks.applications.landscapes [--full]

Columns are standardised; every contestant sees the same rows (cross-validation), and all on the map use the same map.
Times are those of this run, as ratios to neighbours in data space. Compares with ugtm where it is installed.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from benchmarks.timing import print_table
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import StandardScaler

from prinfold import GTM, GTMClassifier, GTMRegressor, datasets
from prinfold.exceptions import DataNotFoundError, PrinfoldWarning

Told = dict[str, dict[str, list[float]]]

REFERENCE = "5 neighbours in data space"
COVERAGE, REACH = 0.9, 1.645
"""Share of rows that so many deviations should hold."""


def tables() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Rows and classes of each data set that can be had."""
    makers: dict[str, Callable[[], datasets.Dataset]] = {
        "pipe flow": lambda: datasets.make_pipe_flow(1000, rng=0),
        "oil flow": datasets.load_oil_flow,
        "iris": datasets.load_iris,
        "crabs": datasets.load_crabs,
        "glass": datasets.load_glass,
    }
    found = {}
    for name, make in makers.items():
        try:
            data = make()
        except DataNotFoundError as error:
            print(f"{name}: left out ({error})")
            continue
        found[name] = StandardScaler().fit_transform(data.X), np.asarray(data.names)
    return found


def classifiers(surface: GTM) -> dict[str, Callable[[], Any]]:
    frozen = FrozenEstimator(surface)
    return {
        "landscape": lambda: GTMClassifier(frozen),
        "landscape, balanced": lambda: GTMClassifier(frozen, priors="balanced"),
        "landscape, no pseudo-count": lambda: GTMClassifier(frozen, pseudo_count=0.0),
        "5 neighbours on the map": lambda: OnMap(surface, KNeighborsClassifier(5)),
        REFERENCE: lambda: KNeighborsClassifier(5),
    }


def regressors(surface: GTM) -> dict[str, Callable[[], Any]]:
    return {
        "landscape": lambda: GTMRegressor(FrozenEstimator(surface)),
        "5 neighbours on the map": lambda: OnMap(surface, KNeighborsRegressor(5)),
        REFERENCE: lambda: KNeighborsRegressor(5),
    }


class OnMap:
    """Any method on the coordinates of a map."""

    def __init__(self, surface: GTM, inner: Any) -> None:
        self.surface, self.inner = surface, inner

    def fit(self, X: np.ndarray, y: np.ndarray) -> OnMap:
        self.inner.fit(self.surface.transform(X), y)
        self.classes_ = getattr(self.inner, "classes_", None)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.inner.predict(self.surface.transform(X))

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self.inner.predict_proba(self.surface.transform(X))


def peer() -> dict[str, Callable[[], Any]]:
    """ugtm's classifier with a map of its own, where it can be imported."""
    if find_spec("ugtm") is None:
        return {}
    from ugtm import eGTC

    return {"ugtm eGTC, a map of its own": lambda: eGTC(k=20, m=6)}


def try_classes(X: np.ndarray, y: np.ndarray, seeds: int) -> Told:
    told: Told = defaultdict(lambda: defaultdict(list))
    for seed in range(seeds):
        for seen, new in StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y):
            surface = GTM(random_state=0).fit(X[seen])
            for name, make in {**classifiers(surface), **peer()}.items():
                clock = time.perf_counter()
                model = make().fit(X[seen], y[seen])
                labels = np.asarray(model.predict(X[new]))
                told[name]["seconds"].append(time.perf_counter() - clock)
                told[name]["wrong"].append(100 * float(np.mean(labels != y[new])))
                if hasattr(model, "predict_proba"):
                    chances = np.clip(model.predict_proba(X[new]), 1e-12, 1)
                    chances /= chances.sum(axis=1, keepdims=True)
                    told[name]["loss"].append(float(log_loss(y[new], chances, labels=model.classes_)))
    return told


def try_numbers(X: np.ndarray, seeds: int) -> Told:
    """The first column by all others."""
    told: Told = defaultdict(lambda: defaultdict(list))
    X, y = X[:, 1:], X[:, 0]
    for seed in range(seeds):
        for seen, new in KFold(5, shuffle=True, random_state=seed).split(X):
            surface = GTM(random_state=0).fit(X[seen])
            for name, make in regressors(surface).items():
                model = make().fit(X[seen], y[seen])
                told[name]["r2"].append(float(r2_score(y[new], model.predict(X[new]))))
                if isinstance(model, GTMRegressor):
                    mean, deviation = model.predict(X[new], return_std=True)
                    told[name]["held"].append(100 * float(np.mean(np.abs(y[new] - mean) < REACH * deviation)))
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="five seeds rather than one")
    seeds = 5 if parser.parse_args().full else 1
    warnings.simplefilter("ignore", PrinfoldWarning)
    warnings.simplefilter("ignore", ConvergenceWarning)
    if not peer():
        print("ugtm is not installed, so that it is left out")
    data = tables()
    classes = {name: try_classes(X, y, seeds) for name, (X, y) in data.items()}
    numbers = {name: try_numbers(X, seeds) for name, (X, _) in data.items()}

    names, heads = list(next(iter(classes.values()))), ("", *data)

    def of(told: dict[str, Told], name: str, what: str) -> list[float]:
        return [float(np.mean(told[each][name][what])) if told[each][name][what] else np.nan for each in data]

    rows = [(name, *of(classes, name, "wrong")) for name in names]
    print_table("1. Held-out rows whose class is wrong, per cent", heads, rows)
    base = np.array(of(classes, REFERENCE, "wrong"))
    rows = [(name, *(np.array(of(classes, name, "wrong")) / np.maximum(base, 1e-9)).tolist()) for name in names]
    print_table(f"2. The same as multiples of {REFERENCE}", heads, rows)
    rows = [(name, *of(classes, name, "loss")) for name in names]
    print_table("3. Log loss of held-out rows", heads, rows)
    clock = np.array(of(classes, REFERENCE, "seconds"))
    rows = [(name, *(np.array(of(classes, name, "seconds")) / clock).tolist()) for name in names]
    print_table(f"4. Time to fit and predict, the map being there, as multiples of {REFERENCE}", heads, rows)
    rows = [(name, *of(numbers, name, "r2")) for name in next(iter(numbers.values()))]
    print_table("5. R² of the first column by the others, on held-out rows", heads, rows)
    rows = [("landscape", *of(numbers, "landscape", "held"))]
    print_table(f"6. Held-out rows within {REACH} deviations, per cent; {100 * COVERAGE:.0f} are promised", heads, rows)


if __name__ == "__main__":
    main()
