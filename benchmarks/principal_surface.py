"""How near principal surfaces and regularised principal manifolds come to true surfaces, beside GTM and KMM.

    python benchmarks/principal_surface.py [--seeds 3]

Root mean squared distances, each the median over samples. From the truth: from points of the true surface to the fitted
one, which parts left out or cut across make large. To the truth: from the places on the fitted surface to which rows
project to the true one, which bias and wrinkles make large. Of all: the same from points all over latent space, which
corners that no row holds make large. Every contestant sees the same rows, as it comes from the box.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from timing import print_table

from prinfold import GTM, KMM, PrincipalSurface, RegularizedManifold, datasets
from prinfold.datasets import Dataset

SHAPES: dict[str, tuple[Callable[..., Dataset], int, dict[str, Any]]] = {
    "thesis surface": (datasets.make_thesis_surface, 400, {"noise": 0.15, "sampling": "parameter"}),
    "ridge": (datasets.make_ridge, 400, {"noise": 0.1, "sampling": "parameter"}),
    "swiss roll": (datasets.make_swiss_roll, 800, {"noise": 0.5}),
}

CONTESTANTS: dict[str, Callable[[], Any]] = {
    "PrincipalSurface": PrincipalSurface,
    "RegularizedManifold": RegularizedManifold,
    "RegularizedManifold, λ = 1e-4": lambda: RegularizedManifold(regularization=1e-4),
    "GTM": GTM,
    "GTM from Isomap": lambda: GTM(init="isomap"),
    "KMM": KMM,
}


def apart(model: Any, data: Dataset) -> tuple[float, float, float]:
    """Distances from the truth, to it from where rows project, and to it from all of the surface."""
    back = model.projection_error(data.surface.mesh(25).vertices)
    there = np.mean(data.surface.distance(model.project(data.X)) ** 2)
    everywhere = np.mean(data.surface.distance(model.mesh(25).vertices) ** 2)
    return float(np.sqrt(back)), float(np.sqrt(there)), float(np.sqrt(everywhere))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="samples of each shape")
    seeds = parser.parse_args().seeds
    warnings.simplefilter("ignore")
    head = ["surface", "from the truth", "to the truth", "of all", "s of CPU"]
    for shape, (make, n, options) in SHAPES.items():
        samples, lines = [make(n, rng=seed, **options) for seed in range(seeds)], []
        for name, recipe in CONTESTANTS.items():
            found = []
            for data in samples:
                clock = time.process_time()
                model = recipe().fit(data.X)
                found.append((time.process_time() - clock, *apart(model, data)))
            seconds, back, there, everywhere = np.median(found, axis=0)
            lines.append([name, f"{back:.3f}", f"{there:.3f}", f"{everywhere:.3f}", f"{seconds:.1f}"])
        print_table(f"{shape}, {n} rows: distance between fitted and true surface, median of {seeds}", head, lines)


if __name__ == "__main__":
    main()
