"""True curves and surfaces, and how near a ridge comes to them: parts of the benchmarks of ridges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from prinfold import datasets
from prinfold._typing import FloatArray
from prinfold.datasets import Dataset
from prinfold.datasets.dataset import simulate
from prinfold.datasets.surface import TrueSurface
from prinfold.density.adaptive import AdaptiveDensity
from prinfold.density.densities import KernelDensity
from prinfold.density.ridges.mean_shift import Flow, FlowResult, Status
from prinfold.density.split_bandwidth import distance_to_ridge
from prinfold.geometry.domain import Box

STARTS = 500
"""Points that are carried to a ridge, so that what is measured is the ridge and not how many rows there are."""


# --------------------------------------------------------------------------------------------------- true shapes


def curve(name: str, point: Callable, slope: Callable, low: float, high: float, *, closed: bool) -> TrueSurface:
    """A curve in as many columns as ``point`` gives."""
    return TrueSurface(
        name,
        lambda U: np.stack(point(U[:, 0]), axis=1),
        lambda U: np.stack(slope(U[:, 0]), axis=1)[:, :, None],
        Box.of((low, high), periodic=(closed,)),
        resolution=1000,
    )


def helix() -> TrueSurface:
    return curve(
        "helix",
        lambda u: (np.cos(u), np.sin(u), 0.15 * u),
        lambda u: (-np.sin(u), np.cos(u), np.full_like(u, 0.15)),
        0.0,
        4 * np.pi,
        closed=False,
    )


def knot() -> TrueSurface:
    return curve(
        "knot",
        lambda u: ((np.sin(u) + 2 * np.sin(2 * u)) / 3, (np.cos(u) - 2 * np.cos(2 * u)) / 3, -np.sin(3 * u) / 3),
        lambda u: ((np.cos(u) + 4 * np.cos(2 * u)) / 3, (4 * np.sin(2 * u) - np.sin(u)) / 3, -np.cos(3 * u)),
        0.0,
        2 * np.pi,
        closed=True,
    )


def eight() -> TrueSurface:
    return curve(
        "eight",
        lambda u: (np.sin(u), np.sin(u) * np.cos(u)),
        lambda u: (np.cos(u), np.cos(2 * u)),
        0.0,
        2 * np.pi,
        closed=True,
    )


def of(surface: Callable[[], TrueSurface]) -> Callable[..., Dataset]:
    return lambda n, noise, kind, rng: simulate(surface(), n, noise, kind, rng)


def sheet(make: Callable[..., Dataset], **options: Any) -> Callable[..., Dataset]:
    return lambda n, noise, kind, rng: make(n, noise, kind, rng, sampling="parameter", **options)


class Shape(NamedTuple):
    """A simulator, the dimension of its truth, and levels of noise."""

    make: Callable[..., Dataset]
    dimension: int
    noises: tuple[float, ...]


SETS = {
    "develop": {
        "zig-zag": Shape(datasets.make_zigzag, 1, (0.03, 0.06)),
        "spiral": Shape(datasets.make_spiral, 1, (0.03, 0.06)),
        "star": Shape(datasets.make_star, 1, (0.02, 0.04)),
        "epitrochoid": Shape(datasets.make_epitrochoid, 1, (0.02, 0.04)),
        "half circle": Shape(datasets.make_half_circle, 1, (0.05, 0.2)),
        "helix": Shape(of(helix), 1, (0.05, 0.12)),
        "thesis sheet": Shape(sheet(datasets.make_thesis_surface), 2, (0.1, 0.2)),
        "ridge": Shape(sheet(datasets.make_ridge), 2, (0.1, 0.2)),
    },
    "judge": {
        "knot": Shape(of(knot), 1, (0.05, 0.1)),
        "eight": Shape(of(eight), 1, (0.03, 0.08)),
        "bent line": Shape(sheet(datasets.make_thesis_curve), 1, (0.1, 0.2)),
        "swiss roll": Shape(sheet(datasets.make_swiss_roll), 2, (0.5, 1.0)),
        "corkscrew": Shape(sheet(datasets.make_corkscrew, reading="conjectured"), 2, (1.0, 2.0)),
    },
}


# ------------------------------------------------------------------------------------------------------- errors


def ridge_of(X: FloatArray, bandwidth: float | FloatArray, dimension: int, starts: int = STARTS) -> FlowResult:
    """The ridge from so many starts: the rows, and others drawn from the density."""
    rng, weight = np.random.default_rng(0), np.ones(len(X))
    if np.ndim(bandwidth):
        density: Any = AdaptiveDensity(X, weight, bandwidth)
    else:
        density = KernelDensity(X, weight, float(bandwidth))
    if len(X) >= starts:
        begin = X[rng.choice(len(X), starts, replace=False)]
    else:
        which = rng.integers(0, len(X), starts - len(X))
        noise = rng.standard_normal((len(which), X.shape[1]))
        begin = np.concatenate([X, X[which] + np.broadcast_to(bandwidth, len(X))[which][:, None] * noise])
    found = Flow(density, dimension, tol=1e-3, max_iter=300)(begin)
    return found.only(found.status == Status.CONVERGED)


class Truth:
    """A true surface with many of its points, even by length or area."""

    def __init__(self, surface: TrueSurface, n: int = 500) -> None:
        self.surface = surface
        self.points = surface.point(surface.sample_latent(n, np.random.default_rng(1), "area"))

    def errors(self, ridge: FlowResult) -> tuple[float, float]:
        """Root mean squared distances there and back."""
        if len(ridge.points) == 0:
            return np.inf, np.inf
        there, back = self.surface.distance(ridge.points), distance_to_ridge(self.points, ridge)
        return float(np.sqrt(np.mean(there**2))), float(np.sqrt(np.mean(back**2)))


def total(errors: tuple[float, float]) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))
