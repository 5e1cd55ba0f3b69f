"""How near principal surfaces and regularised principal manifolds come to true surfaces, beside PCA, GTM, PPS and KMM.

    python -m benchmarks.principal_surface [--seeds 3]

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
from benchmarks.timing import print_table

from prinfold import GTM, KMM, PPS, PrincipalSurface, RegularizedManifold, datasets
from prinfold._typing import FloatArray, Mesh
from prinfold.datasets import Dataset
from prinfold.latent import grid

SHAPES: dict[str, tuple[Callable[..., Dataset], int, dict[str, Any]]] = {
    "thesis surface": (datasets.make_thesis_surface, 400, {"noise": 0.15, "sampling": "parameter"}),
    "ridge": (datasets.make_ridge, 400, {"noise": 0.1, "sampling": "parameter"}),
    "swiss roll": (datasets.make_swiss_roll, 800, {"noise": 0.5}),
    "thesis surface, many rows": (datasets.make_thesis_surface, 4000, {"noise": 0.15, "sampling": "parameter"}),
}


class Plane:
    """The principal plane, as far as rows reach."""

    def fit(self, X: FloatArray) -> Plane:
        self.middle = X.mean(axis=0)
        self.axes = np.linalg.svd(X - self.middle, full_matrices=False)[2][:2]
        self.ends = np.sort((X - self.middle) @ self.axes.T, axis=0)[[0, -1]]
        return self

    def project(self, X: FloatArray) -> FloatArray:
        return np.clip((X - self.middle) @ self.axes.T, *self.ends) @ self.axes + self.middle

    def projection_error(self, X: FloatArray) -> float:
        return float(np.square(X - self.project(X)).sum(axis=1).mean())

    def mesh(self, resolution: int) -> Mesh:
        net = grid(resolution, resolution)
        Z = self.ends[0] + (net.nodes + 1.0) / 2.0 * (self.ends[1] - self.ends[0])
        return Mesh(Z @ self.axes + self.middle, Z, net.faces)


CONTESTANTS: dict[str, Callable[[], Any]] = {
    "PCA": Plane,
    "PrincipalSurface": PrincipalSurface,
    "RegularizedManifold": RegularizedManifold,
    "RegularizedManifold, λ = 1e-4": lambda: RegularizedManifold(regularization=1e-4),
    "GTM": GTM,
    "GTM from Isomap": lambda: GTM(init="isomap"),
    "PPS": PPS,
    "KMM": KMM,
}

SMALL_ONLY = {"KMM"}
"""Contestants that take minutes for thousands of rows."""


def apart(model: Any, data: Dataset) -> tuple[float, float, float]:
    """Distances from the truth, to it from where rows project, and to it from all of the surface."""
    back = model.projection_error(data.surface.mesh(25).vertices)
    there = np.mean(data.surface.distance(model.project(data.X)) ** 2)
    everywhere = np.mean(data.surface.distance(model.mesh(25).vertices) ** 2)
    return float(np.sqrt(back)), float(np.sqrt(there)), float(np.sqrt(everywhere))


def limits() -> None:
    """What is left of the variance where a surface cannot be had: a roll from its plane, and a round cloud."""
    roll, cloud = datasets.make_swiss_roll(800, noise=0.5, rng=0).X, np.random.default_rng(0).standard_normal((300, 3))
    tries: dict[str, tuple[Any, FloatArray]] = {
        "swiss roll, PrincipalSurface from the plane": (PrincipalSurface(init="pca"), roll),
        "swiss roll, PrincipalSurface": (PrincipalSurface(), roll),
        "round cloud, PCA": (Plane(), cloud),
        "round cloud, PrincipalSurface": (PrincipalSurface(), cloud),
        "round cloud, RegularizedManifold": (RegularizedManifold(), cloud),
    }
    lines = [
        [name, f"{100.0 * model.fit(X).projection_error(X) / X.var(axis=0).sum():.1f}"]
        for name, (model, X) in tries.items()
    ]
    print_table("Share of the variance that is left", ["rows and surface", "%"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3, help="samples of each shape")
    seeds = parser.parse_args().seeds
    warnings.simplefilter("ignore")
    head = ["surface", "from the truth", "to the truth", "of all", "s of CPU"]
    limits()
    for shape, (make, n, options) in SHAPES.items():
        samples, lines = [make(n, rng=seed, **options) for seed in range(seeds)], []
        for name, recipe in CONTESTANTS.items():
            if name in SMALL_ONLY and n > 1000:
                continue
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
