"""What kernel densities are worth as a classifier: accuracy and time beside others, in a plane and in all columns.

    python -m benchmarks.density.kernel_density [--full]

Simulated pipe flow, real oil flow where the data are there, and handwritten digits; every contestant sees the same
rows. Times are those of this run, as ratios to the nearest-neighbour classifier.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from benchmarks.timing import print_table
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KernelDensity, KNeighborsClassifier
from sklearn.svm import SVC

from prinfold import KernelDensityClassifier, datasets
from prinfold.exceptions import DataNotFoundError

Split = tuple[str, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class DensityPerClass(ClassifierMixin, BaseEstimator):
    """Bayes' rule on scikit-learn's KernelDensity, one for each class; the bandwidth is left to a search."""

    def __init__(self, bandwidth: float = 1.0) -> None:
        self.bandwidth = bandwidth

    def fit(self, X: np.ndarray, y: np.ndarray) -> DensityPerClass:
        self.classes_, counts = np.unique(y, return_counts=True)
        self.log_prior_ = np.log(counts / len(y))
        self.densities_ = [KernelDensity(bandwidth=self.bandwidth).fit(X[y == each]) for each in self.classes_]
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        joint = np.stack([each.score_samples(X) for each in self.densities_], axis=1) + self.log_prior_
        return self.classes_[joint.argmax(axis=1)]


def bandwidths(X: np.ndarray) -> np.ndarray:
    """Bandwidths for a search, relative to the spread of the rows."""
    return np.sqrt(X.var(axis=0).sum()) * np.geomspace(0.01, 1, 12)


CONTESTANTS: dict[str, Callable[[np.ndarray], Any]] = {
    "kernel densities": lambda X: KernelDensityClassifier(),
    "the same, per class": lambda X: KernelDensityClassifier(per_class=True),
    "the same, quartic": lambda X: KernelDensityClassifier(kernel="quartic"),
    "KernelDensity, searched": lambda X: GridSearchCV(DensityPerClass(), {"bandwidth": bandwidths(X)}, cv=3),
    "nearest neighbour": lambda X: KNeighborsClassifier(1),
    "support vectors, searched": lambda X: GridSearchCV(
        SVC(), {"C": [1, 10, 100], "gamma": [0.1, 1, 10, "scale"]}, cv=3
    ),
}
REFERENCE = "nearest neighbour"


def tables(seeds: int) -> Iterator[Split]:
    """Training and held-out rows with their classes."""
    for seed in range(seeds):
        seen, new = (datasets.make_pipe_flow(1000, rng=[seed, n_th]) for n_th in range(2))
        yield from in_both("pipe flow", seen.X, seen.labels, new.X, new.labels)
        digits = datasets.load_digits()
        X, X_new, y, y_new = train_test_split(digits.X, digits.labels, random_state=seed)
        yield from in_both("digits", X, y, X_new, y_new)
    try:
        seen, new = (datasets.load_oil_flow(part=part) for part in ("train", "valid"))
    except DataNotFoundError as error:
        print(f"left out: {error}")
        return
    yield from in_both("oil flow", seen.X, seen.labels, new.X, new.labels)


def in_both(name: str, X: np.ndarray, y: np.ndarray, X_new: np.ndarray, y_new: np.ndarray) -> Iterator[Split]:
    plane = PCA(2).fit(X)
    yield f"{name}, plane", plane.transform(X), y, plane.transform(X_new), y_new
    yield name, X, y, X_new, y_new


def seconds_of(work: Callable[..., Any], *given: Any) -> tuple[float, Any]:
    clock = time.perf_counter()
    result = work(*given)
    return time.perf_counter() - clock, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="five seeds rather than two")
    seeds = 5 if parser.parse_args().full else 2
    told: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for name, X, y, X_new, y_new in tables(seeds):
        for who, make in CONTESTANTS.items():
            fit, model = seconds_of(make(X).fit, X, y)
            predict, labels = seconds_of(model.predict, X_new)
            for what, value in (("wrong", float(np.mean(labels != y_new))), ("fit", fit), ("predict", predict)):
                told[who, name][what].append(value)
    names = list(dict.fromkeys(name for _, name in told))
    rows = [(who, *(f"{100 * np.mean(told[who, name]['wrong']):.1f}" for name in names)) for who in CONTESTANTS]
    print_table(f"1. Held-out rows wrong, per cent, mean over {seeds} seeds", ("classifier", *names), rows)
    for n_th, what in ((2, "fit"), (3, "predict")):
        rows = [
            (who, *(float(np.median(told[who, n][what]) / np.median(told[REFERENCE, n][what])) for n in names))
            for who in CONTESTANTS
        ]
        print_table(f"{n_th}. Time to {what}, as a multiple of the {REFERENCE}'s", ("classifier", *names), rows)


if __name__ == "__main__":
    main()
