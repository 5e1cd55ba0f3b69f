"""What a surface for each class is worth: accuracy, pose and time beside classifiers that know no surfaces.

    python -m benchmarks.applications.nearest [--full]

Bodies in all their poses (``datasets.make_poses``), held-out rows, several levels of noise; every contestant sees the
same rows. Times are those of this run, as ratios to the nearest-neighbour classifier.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from benchmarks.timing import print_table
from scipy.linalg import orthogonal_procrustes
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from prinfold import GTM, PPS, NearestSurfaceClassifier, datasets
from prinfold.exceptions import PrinfoldWarning

BODIES = ("bottle", "mushroom", "shuttlecock")
N_TRAIN, N_TEST = 600, 600
"""Rows in all, a third of them for each body."""


class Plane(BaseEstimator):
    """A principal plane through the rows: the surface of the nearest-subspace classifier."""

    def __init__(self, n_components: int = 3) -> None:
        self.n_components = n_components

    def fit(self, X: np.ndarray, y: Any = None) -> Plane:
        self.pca_ = PCA(self.n_components).fit(X)
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        return self.pca_.transform(X)

    def project(self, X: np.ndarray) -> np.ndarray:
        return self.pca_.inverse_transform(self.pca_.transform(X))


SEARCHED = {"pca__n_components": [5, 8, 12, 20], "svc__C": [0.3, 1, 3, 10, 100]}
"""What the strongest rival may choose from, by cross-validation on the training rows."""

CONTESTANTS: dict[str, Callable[[], Any]] = {
    "GTM sphere, distance": lambda: NearestSurfaceClassifier(GTM(latent="sphere")),
    "GTM sphere, likelihood": lambda: NearestSurfaceClassifier(GTM(latent="sphere"), by="likelihood"),
    "PPS sphere, likelihood": lambda: NearestSurfaceClassifier(PPS(latent="sphere"), by="likelihood"),
    "GTM grid, likelihood": lambda: NearestSurfaceClassifier(GTM(), by="likelihood"),
    "PCA, 3 axes": lambda: NearestSurfaceClassifier(Plane(3)),
    "PCA, 5 axes": lambda: NearestSurfaceClassifier(Plane(5)),
    "PCA, 9 axes": lambda: NearestSurfaceClassifier(Plane(9)),
    "nearest neighbour": lambda: KNeighborsClassifier(1),
    "neighbour after PCA": lambda: make_pipeline(PCA(12), KNeighborsClassifier(1)),
    "support vectors after PCA": lambda: GridSearchCV(make_pipeline(PCA(), SVC()), SEARCHED, cv=3),
}
REFERENCE = "nearest neighbour"


def angles(found: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Degrees between directions, after the turn or reflection of the sphere that fits best."""
    turn, _ = orthogonal_procrustes(found, true)
    return np.degrees(np.arccos(np.clip(np.einsum("ij,ij->i", found @ turn, true), -1, 1)))


def pose_errors(model: NearestSurfaceClassifier, new: datasets.Dataset) -> Iterable[float]:
    """Median error of each body's poses; of rows that are classified right, since others have no pose to find."""
    labels, latent = model.locate(new.X)
    for label in range(len(BODIES)):
        rows = (labels == label) & (new.labels == label)
        yield float(np.median(angles(latent[rows], new.latent[rows])))


def seconds_of(work: Callable[..., Any], *given: Any) -> tuple[float, Any]:
    clock = time.perf_counter()
    result = work(*given)
    return time.perf_counter() - clock, result


def try_all(noise: float, seeds: int) -> dict[str, dict[str, list[Any]]]:
    """Accuracy, seconds and pose errors of every contestant."""
    told: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for seed in range(seeds):
        seen, new = (
            datasets.make_poses(n, noise, body=BODIES, rng=[seed, n_th]) for n_th, n in enumerate((N_TRAIN, N_TEST))
        )
        for name, make in CONTESTANTS.items():
            fit, model = seconds_of(make().fit, seen.X, seen.labels)
            predict, labels = seconds_of(model.predict, new.X)
            told[name]["right"].append(np.mean(labels == new.labels))
            told[name]["fit"].append(fit)
            told[name]["predict"].append(predict)
            if "sphere" in name:
                told[name]["pose"].append(list(pose_errors(model, new)))
    return told


def share(values: list[float]) -> str:
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return f"{100 * np.mean(values):.1f} ± {100 * error:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="five seeds rather than two")
    seeds = 5 if parser.parse_args().full else 2
    warnings.simplefilter("ignore", PrinfoldWarning)
    warnings.simplefilter("ignore", ConvergenceWarning)
    levels = (0.05, 0.1, 0.15, 0.2, 0.3)
    told = {noise: try_all(noise, seeds) for noise in levels}

    heads = ("classifier", *(f"noise {noise:g}" for noise in levels))
    rows = [(name, *(share(told[noise][name]["right"]) for noise in levels)) for name in CONTESTANTS]
    print_table(f"1. Held-out rows classified right, per cent ± standard error over {seeds} seeds", heads, rows)

    rows = [
        (f"{name}: {body}", *(float(np.mean([e[k] for e in told[noise][name]["pose"]])) for noise in levels))
        for name in CONTESTANTS
        if "sphere" in name
        for k, body in enumerate(BODIES)
    ]
    print_table("2. Median error of the pose in degrees, mean over seeds; a guess is off by nearly 90", heads, rows)

    def ratio(name: str, what: str) -> float:
        times = [float(np.median(told[noise][each][what])) for each in (name, REFERENCE) for noise in levels]
        return float(np.sum(times[: len(levels)]) / np.sum(times[len(levels) :]))

    rows = [(name, ratio(name, "fit"), ratio(name, "predict")) for name in CONTESTANTS]
    print_table(f"3. Time as a multiple of the {REFERENCE}'s", ("classifier", "fit", "predict"), rows)


if __name__ == "__main__":
    main()
