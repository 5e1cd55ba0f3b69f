"""How near the truth ``PPS(clamping="select")`` comes, beside other ways of choosing a clamping.

Simulators with a known surface, at two noise levels and with both kinds of noise. For each way of choosing the
clamping the mean squared distance from the fitted surface to the true one is compared with that of the GTM, at the
places to which fresh rows project; the geometric mean of the ratio, so that 0.9 is a tenth nearer. ``found`` is the
other way round, from the true surface to the fitted one. The ways:

- ``0.5``: the default clamping;
- ``error alone``: the clamping with the lowest held-out projection error, of the same folds;
- ``select``: as the library does it;
- ``hindsight``: the clamping nearest to the truth at the user's regularisation, which nobody knows.

    python -m benchmarks.pps.clamping_choice [first seed] [number of seeds] [shapes …]

A seed takes a few minutes.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from prinfold import PPS, datasets
from prinfold.datasets import Dataset

FRESH = 500


class Shape(NamedTuple):
    """A simulator, how many rows, which noise, and the settings that suit it."""

    make: Callable[..., Dataset]
    n: int
    noises: tuple[float, float]
    settings: dict[str, Any]


SHAPES = {
    "half circle": Shape(datasets.make_half_circle, 120, (0.1, 0.2), {"n_components": 1}),
    "circle": Shape(datasets.make_circle, 120, (0.1, 0.25), {"latent": "circle"}),
    "spiral": Shape(datasets.make_spiral, 250, (0.02, 0.05), {"n_components": 1, "init": "isomap"}),
    "ridge": Shape(datasets.make_ridge, 200, (0.1, 0.2), {}),
    "thesis surface": Shape(datasets.make_thesis_surface, 200, (0.1, 0.25), {}),
    "sphere": Shape(datasets.make_sphere, 200, (0.05, 0.15), {"latent": "sphere"}),
    "swiss roll": Shape(datasets.make_swiss_roll, 300, (0.3, 0.8), {"init": "isomap"}),
}


class Distance(NamedTuple):
    """Mean squared distances from the fitted surface to the true one, and back."""

    to_truth: float
    found: float


def distance(model: PPS, fresh: Dataset) -> Distance:
    assert fresh.surface is not None
    assert fresh.clean is not None
    feet = fresh.surface.distance(model.project(fresh.X))
    return Distance(float(np.mean(feet**2)), model.projection_error(fresh.clean))


def one(name: str, noise: float, kind: str, seed: int) -> dict[str, Any]:
    """Distances by way of choosing, and the clamping that was selected."""
    warnings.simplefilter("ignore")
    shape = SHAPES[name]
    data = shape.make(shape.n, noise, kind, seed, sampling="parameter")
    fresh = shape.make(FRESH, noise, kind, 10_000 + seed, sampling="parameter")
    selected = PPS(clamping="select", random_state=0, **shape.settings).fit(data.X)
    table = selected.selection_
    assert table is not None
    plain = [
        distance(PPS(clamping=c, random_state=0, **shape.settings).fit(data.X), fresh) for c in table.clampings.tolist()
    ]
    by_clamping = dict(zip(table.clampings.tolist(), plain, strict=True))
    alone = np.average(table.projection_errors, axis=0, weights=table.weights)[:, table.own]
    return {
        "shape": name,
        "clamping": table.clamping,
        "GTM": by_clamping[1.0],
        "0.5": by_clamping[0.5],
        "select": distance(selected, fresh),
        "error alone": plain[int(alone.argmin())],
        "hindsight": min(plain),
    }


def ratios(results: list[dict[str, Any]], way: str, part: int) -> np.ndarray[Any, Any]:
    return np.array([np.log(result[way][part] / result["GTM"][part]) for result in results])


def report(title: str, results: list[dict[str, Any]]) -> None:
    print(f"{title} ({len(results)} tables)")
    for way in ("0.5", "error alone", "select", "hindsight"):
        near, found = (ratios(results, way, part) for part in (0, 1))
        spread = near.std(ddof=1) / np.sqrt(len(near))
        counts = f"nearer {np.mean(near < -0.01):4.0%}, farther {np.mean(near > 0.01):4.0%}"
        low, high = np.exp(near.mean() - spread), np.exp(near.mean() + spread)
        print(
            f"  {way:12} to truth {np.exp(near.mean()):5.2f} ({low:.2f} to {high:.2f}), "
            f"worst {np.exp(near.max()):5.2f}, found {np.exp(found.mean()):5.2f}; {counts}"
        )
    values, counts_of = np.unique([f"{result['clamping']:.2g}" for result in results], return_counts=True)
    print("  selected:", ", ".join(f"{v} × {n}" for v, n in zip(values, counts_of, strict=True)), flush=True)


def main(first: int = 100, n_seeds: int = 1, *names: str) -> None:
    everything = []
    print("squared distance to the truth relative to the GTM's, geometric mean and one standard error either way")
    for name in names or SHAPES:
        jobs = [
            delayed(one)(name, noise, kind, seed)
            for seed in range(first, first + n_seeds)
            for noise in SHAPES[name].noises
            for kind in ("normal", "isotropic")
        ]
        results = Parallel(n_jobs=2)(jobs)
        report(name, results)
        everything += results
    report("all", everything)


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:3]), *sys.argv[3:])
