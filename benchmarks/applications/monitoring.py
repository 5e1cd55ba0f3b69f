"""False alarms and faults found by a monitor on a surface, beside T² and SPE on a principal plane.

    python -m benchmarks.applications.monitoring [--full]

1. False alarms on new rows at nominal rates, by rows held out and by the model itself, with light and heavy tails; of
   the density, by which alarms go, and of the charts along the surface and off it.
2. Faults found at the same rate of false alarms: limits of all contestants are set by the same rows held out.
3. What a fit and a row cost.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.timing import print_table
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.exceptions import ConvergenceWarning

from prinfold import GTM, SurfaceMonitor, datasets
from prinfold.exceptions import DataNotFoundError, PrinfoldWarning

CHARTS = ("density", "along", "off")
RATES = (0.01, 0.05)
WAYS = {"in turn": "cross", "held out": "split", "model": "model"}

Rows = np.ndarray
Draw = Callable[[int, int], Rows]
"""n and a seed → rows."""


def bent(noise: Callable[[np.random.Generator, tuple[int, int]], Rows]) -> Draw:
    """A bent sheet in eight columns, with noise of one's choice."""

    def draw(n: int, seed: int) -> Rows:
        rng = np.random.default_rng([seed, 7])
        u, v = rng.uniform(-1, 1, (2, n))
        sheet = np.stack([2 * u, 2 * v, u**2, u * v, np.sin(2 * v), np.cos(2 * u), u + v**2, v - u**2], axis=1)
        return sheet + noise(rng, sheet.shape)

    return draw


def pipes(n: int, seed: int) -> Rows:
    return datasets.make_pipe_flow(n, rng=[seed, 3]).X


def oil(n: int, seed: int) -> Rows:
    """Measured in a pipe; even seeds of a pair get one half of the rows, odd seeds the other."""
    X = datasets.load_oil_flow().X
    order = np.random.default_rng(seed // 2).permutation(len(X))
    return X[order[seed % 2 :: 2]]


SOURCES: dict[str, Draw] = {
    "pipe flow": pipes,
    "oil flow": oil,
    "bent sheet, normal noise": bent(lambda rng, shape: 0.1 * rng.normal(size=shape)),
    "bent sheet, Student t (3)": bent(lambda rng, shape: 0.1 * rng.standard_t(3, shape)),
    "bent sheet, Cauchy": bent(lambda rng, shape: 0.03 * rng.standard_cauchy(shape)),
}


# ------------------------------------------------------------------------------------------------- contestants


class PlaneMonitor:
    """T² and SPE on a principal plane; limits by rows held out, each for half of the alarms."""

    def __init__(self, n_components: int | float, rate: float) -> None:
        self.n_components, self.rate = n_components, rate

    def fit(self, X: Rows) -> PlaneMonitor:
        order = np.random.default_rng(0).permutation(len(X))
        cut = round(0.7 * len(X))
        seen, held = X[order[:cut]], X[order[cut:]]
        self.mean, self.scale = seen.mean(axis=0), seen.std(axis=0)
        self.pca = PCA(self.n_components).fit((seen - self.mean) / self.scale)
        found = self.charts(held)
        k = max(int(self.rate / 2 * (len(held) + 1)), 1)
        self.limits = np.sort(found, axis=0)[-k]
        return self

    def charts(self, X: Rows) -> Rows:
        U = (X - self.mean) / self.scale
        Z = self.pca.transform(U)
        rest = U - self.pca.inverse_transform(Z)
        return np.stack([(Z**2 / self.pca.explained_variance_).sum(axis=1), (rest**2).sum(axis=1)], axis=1)

    def alarms(self, X: Rows) -> Rows:
        return (self.charts(X) > self.limits).any(axis=1)


class OnSurface:
    """A monitor on a surface, by its density or by either chart."""

    def __init__(self, rate: float, either: bool = False) -> None:
        self.rate, self.either = rate, either

    def fit(self, X: Rows) -> OnSurface:
        model = SurfaceMonitor(GTM(random_state=0), alarm_rate=self.rate, calibration="split", n_simulated=200)
        self.model = model.fit(X)
        return self

    def alarms(self, X: Rows) -> Rows:
        if not self.either:
            return self.model.predict(X) == -1
        p = self.model.p_values(X)
        return np.minimum(p.along, p.off) <= self.rate / 2


class Forest:
    """scikit-learn's isolation forest with a limit by rows held out."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def fit(self, X: Rows) -> Forest:
        order = np.random.default_rng(0).permutation(len(X))
        cut = round(0.7 * len(X))
        self.model = IsolationForest(random_state=0).fit(X[order[:cut]])
        held = np.sort(self.model.score_samples(X[order[cut:]]))
        self.limit = held[max(int(self.rate * (len(held) + 1)), 1) - 1]
        return self

    def alarms(self, X: Rows) -> Rows:
        return self.model.score_samples(X) < self.limit


CONTESTANTS: dict[str, Callable[[float], Any]] = {
    "surface, density": OnSurface,
    "surface, along or off": lambda rate: OnSurface(rate, either=True),
    "plane (2 axes), T² or SPE": lambda rate: PlaneMonitor(2, rate),
    "plane (95 %), T² or SPE": lambda rate: PlaneMonitor(0.95, rate),
    "isolation forest": Forest,
}


# ------------------------------------------------------------------------------------------------------ faults


def bias(X: Rows, rng: np.random.Generator) -> Rows:
    """A sensor that reads too much, by half of its spread."""
    X = X.copy()
    X[:, 3] += 0.5 * X[:, 3].std()
    return X


def drift(X: Rows, rng: np.random.Generator) -> Rows:
    """A sensor that loses its sense little by little, down to nothing."""
    X = X.copy()
    X[:, 3] *= np.linspace(1.0, 0.0, len(X))
    return X


def broken(X: Rows, rng: np.random.Generator) -> Rows:
    """A sensor whose values belong to other rows: each is usual by itself."""
    X = X.copy()
    X[:, 3] = X[rng.permutation(len(X)), 3]
    return X


def noisy(X: Rows, rng: np.random.Generator) -> Rows:
    """Noise in all sensors, of a fifth of their spread."""
    return X + 0.2 * X.std(axis=0) * rng.normal(size=X.shape)


def between(X: Rows, rng: np.random.Generator) -> Rows:
    """Rows halfway between two usual ones: mixtures that do not occur."""
    return 0.5 * (X + X[rng.permutation(len(X))])


FAULTS = {
    "none": lambda X, rng: X,
    "bias": bias,
    "drift": drift,
    "correlation": broken,
    "noise": noisy,
    "mixture": between,
}


# ------------------------------------------------------------------------------------------------------ tables


def false_alarms(draw: Draw, seeds: int, n: int) -> dict[tuple[str, str, float], list[float]]:
    """Shares of alarms by chart, way of knowing what is usual, and nominal rate."""
    told: dict[tuple[str, str, float], list[float]] = defaultdict(list)
    for seed in range(seeds):
        X, new = draw(n, 2 * seed), draw(4 * n, 2 * seed + 1)
        for how in ("cross", "split"):
            model = SurfaceMonitor(GTM(random_state=0), calibration=how, n_simulated=2000).fit(X)
            found = {how: model.p_values(new)}
            if how == "cross":
                found["model"] = model.p_values(new, by="model")
            for way, p in found.items():
                for chart in CHARTS:
                    for rate in RATES:
                        told[chart, way, rate].append(100 * float(np.mean(getattr(p, chart) <= rate)))
    return told


def faults_found(draw: Draw, seeds: int, n: int, rate: float) -> dict[str, dict[str, list[float]]]:
    told: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for seed in range(seeds):
        X, new = draw(n, 2 * seed), draw(n, 2 * seed + 1)
        for name, make in CONTESTANTS.items():
            clock = time.perf_counter()
            model = make(rate).fit(X)
            told[name]["fit"].append(time.perf_counter() - clock)
            for fault, change in FAULTS.items():
                rows = change(new, np.random.default_rng(seed))
                clock = time.perf_counter()
                told[name][fault].append(100 * float(np.mean(model.alarms(rows))))
                told[name]["watch"].append(time.perf_counter() - clock)
    return told


def with_error(values: list[float]) -> str:
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return f"{np.mean(values):.1f} ± {error:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="twelve seeds rather than four")
    seeds = 12 if parser.parse_args().full else 4
    warnings.simplefilter("ignore", PrinfoldWarning)
    warnings.simplefilter("ignore", ConvergenceWarning)
    sources = dict(SOURCES)
    try:
        datasets.load_oil_flow()
    except DataNotFoundError as error:
        print(f"oil flow: left out ({error})")
        del sources["oil flow"]

    heads = ("rows", *(f"{way}, {rate:.0%}" for rate in RATES for way in WAYS))
    alarms = {name: false_alarms(draw, seeds, 500) for name, draw in sources.items()}
    for chart in CHARTS:
        rows = [
            (name, *(with_error(told[chart, way, rate]) for rate in RATES for way in WAYS.values()))
            for name, told in alarms.items()
        ]
        print_table(f"1. False alarms by {chart}, per cent ± standard error over {seeds} seeds", heads, rows)

    clocks: dict[str, list[float]] = defaultdict(list)
    for name in ("pipe flow", "bent sheet, normal noise"):
        told = faults_found(sources[name], seeds, 1000, 0.01)
        rows = [(each, *(with_error(told[each][fault]) for fault in FAULTS)) for each in CONTESTANTS]
        print_table(f"2. {name}: alarms at a nominal 1 %, per cent of rows by fault", ("contestant", *FAULTS), rows)
        for each in CONTESTANTS:
            clocks[each] += [float(np.median(told[each][what])) for what in ("fit", "watch")]
    base = clocks["isolation forest"]
    rows = [(each, *(np.array(clocks[each][:2]) / base[:2]).tolist()) for each in CONTESTANTS]
    print_table("3. Time as multiples of the isolation forest's, pipe flow", ("contestant", "fit", "1000 rows"), rows)


if __name__ == "__main__":
    main()
