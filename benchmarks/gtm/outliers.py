"""What heavy tails are worth against outliers, and how well noise that varies is found.

    python -m benchmarks.gtm.outliers [--full] [--only 1,3]

1. Distance from the true surface by the share of rows that are wrong, with normal and with Student noise.
2. The same share of wrong rows, farther and farther off; and how well weights tell wrong rows from right ones.
3. Noise that grows along a curve: error of its standard deviation by the number of rows, and nats gained on new rows.
4. What an iteration costs beside one with isotropic noise.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from benchmarks.timing import print_table

from prinfold import GTM, VaryingNoise, datasets

SHAPES: dict[str, tuple[Callable[..., datasets.Dataset], int]] = {
    "half circle": (datasets.make_half_circle, 1),
    "spiral": (datasets.make_spiral, 1),
    "ridge": (datasets.make_ridge, 2),
    "swiss roll": (datasets.make_swiss_roll, 2),
}
NOISES = ("isotropic", "student")


def contaminated(data: datasets.Dataset, share: float, size: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of which a share lies anywhere about the mean, ``size`` standard deviations far, and which those are."""
    rng = np.random.default_rng(seed)
    X, wrong = data.X.copy(), rng.permutation(len(data.X)) < round(share * len(data.X))
    spread = size * np.sqrt(data.X.var(axis=0).mean())
    X[wrong] = data.X.mean(axis=0) + spread * rng.standard_normal((int(wrong.sum()), X.shape[1]))
    return X, wrong


def off(model: GTM, data: datasets.Dataset) -> float:
    """Root mean square distance between the surfaces, from rows without noise to the fitted one and back."""
    clean = data.surface.project(data.X)
    there = model.project(clean)
    back = data.surface.distance(there)
    return float(np.sqrt(0.5 * (np.mean(np.square(there - clean).sum(axis=1)) + np.mean(np.square(back)))))


def fitted(X: np.ndarray, dimension: int, noise: object, init: str) -> GTM:
    return GTM(dimension, noise=noise, init=init, random_state=0).fit(X)


def by_share(seeds: int, n: int) -> None:
    shares = (0.0, 0.02, 0.05, 0.1, 0.2)
    rows = []
    for name, (make, dimension) in SHAPES.items():
        init = "isomap" if name == "swiss roll" else "pca"
        for noise in NOISES:
            found = []
            for share in shares:
                each = []
                for seed in range(seeds):
                    data = make(n, rng=seed)
                    each.append(off(fitted(contaminated(data, share, 5.0, seed)[0], dimension, noise, init), data))
                found.append(float(np.median(each)))
            rows.append([name, noise, *(f"{value:.3f}" for value in found)])
    title = f"distance from the true surface by the share of wrong rows, 5 standard deviations far; {n} rows"
    print_table(title, ["shape", "noise", *(f"{share:.0%}" for share in shares)], rows)


def by_size(seeds: int, n: int) -> None:
    sizes = (1.0, 3.0, 10.0, 100.0, 1e8)
    rows = []
    for name in ("half circle", "ridge"):
        make, dimension = SHAPES[name]
        told: dict[str, list[str]] = {noise: [] for noise in (*NOISES, "pairs told apart")}
        for size in sizes:
            each: dict[str, list[float]] = {kind: [] for kind in told}
            for seed in range(seeds):
                data = make(n, rng=seed)
                X, wrong = contaminated(data, 0.1, size, seed)
                for noise in NOISES:
                    model = fitted(X, dimension, noise, "pca")
                    each[noise].append(off(model, data))
                weight = model.outlier_weights(X)
                each["pairs told apart"].append(float(np.mean(weight[~wrong][:, None] > weight[wrong])))
            for kind, values in each.items():
                told[kind].append(f"{np.median(values):.3g}" if kind in NOISES else f"{np.median(values):.1%}")
        rows += [[name, kind, *values] for kind, values in told.items()]
    title = f"distance from the true surface by how far off a tenth of the rows is (standard deviations); {n} rows"
    print_table(title, ["shape", "", *(f"{size:g}" for size in sizes)], rows)


def tapered(n: int, seed: int) -> np.ndarray:
    """A curve in four columns about which the noise grows from 0.03 to 0.33 along the way."""
    rng = np.random.default_rng(seed)
    u = rng.uniform(-1, 1, n)
    clean = np.stack([2 * u, u**2, np.sin(2 * u), -u], axis=1)
    return clean + level(u)[:, None] * rng.standard_normal(clean.shape)


def level(u: np.ndarray) -> np.ndarray:
    return np.asarray(0.03 * np.exp(1.2 * (u + 1)))


def growing_noise(seeds: int) -> None:
    rows = []
    for n in (200, 1000, 5000):
        for name, noise in (("varying", "varying"), ("varying, equal shares", VaryingNoise(mixing=False))):
            errors, gains, steps = [], [], []
            for seed in range(seeds):
                X, new = tapered(n, seed), tapered(2000, 1000 + seed)
                settings = {"n_components": 1, "nodes": 60, "basis": 8, "max_iter": 1000}
                model, plain = GTM(**settings, noise=noise).fit(X), GTM(**settings).fit(X)
                place = model.inverse_transform(model.latent_.nodes)[:, 0] / 2
                kept = np.abs(place) < 1
                found = model.noise_parameters_["node_precisions"][kept] ** -0.5
                errors.append(float(np.sqrt(np.mean(np.square(np.log(found / level(place[kept])))))))
                gains.append(model.score(new) - plain.score(new))
                steps.append(model.n_iter_)
            rows.append([n, name, f"{np.median(errors):.1%}", f"{np.median(gains):.2f}", int(np.median(steps))])
    header = ["rows", "noise", "error of its deviation", "nats per new row gained", "iterations"]
    print_table("noise that grows elevenfold along a curve", header, rows)


def cost(n: int) -> None:
    X = datasets.make_pipe_flow(n, rng=0).X
    rows, reference = [], 0.0
    for noise in ("isotropic", "diagonal", "student", "varying"):
        seconds = []
        for _ in range(3):
            model = GTM(nodes=20, noise=noise, max_iter=10, tol=0.0).fit(X)
            clock = np.diff(model.history_["seconds"])
            seconds.append(float(np.median(clock)))
        seconds.sort()
        reference = reference or seconds[1]
        rows.append([noise, f"{seconds[1] / reference:.1f}"])
    print_table(f"time of an iteration beside isotropic noise; {n} rows of 12 columns, 400 nodes", ["noise", "×"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="ten seeds and more rows")
    parser.add_argument("--only", default="1,2,3,4", help="tables to print")
    given = parser.parse_args()
    seeds, n = (10, 1000) if given.full else (3, 400)
    tables: dict[str, Callable[[], None]] = {
        "1": lambda: by_share(seeds, n),
        "2": lambda: by_size(seeds, n),
        "3": lambda: growing_noise(seeds),
        "4": lambda: cost(20_000 if given.full else 4000),
    }
    clock = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # surfaces bent by outliers are warned of
        for name in given.only.split(","):
            tables[name.strip()]()
    print(f"\n{time.perf_counter() - clock:.0f} s")


if __name__ == "__main__":
    main()
