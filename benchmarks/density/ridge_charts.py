"""Charts of ridges that are surfaces: how flat, how near the ridge, how near the truth, at what cost.

    python -m benchmarks.density.ridge_charts [--full] [--only 2]

Rows of three surfaces, with noise along the normals: half a sphere, which cannot be laid flat without stretching, an
S-shaped sheet and a roll, which can. Bandwidths are set by hand; ``--full`` takes three seeds in place of one.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from benchmarks.timing import print_table

from prinfold import datasets
from prinfold.density.densities import KernelDensity
from prinfold.density.ridges import chart_embedding
from prinfold.density.ridges.chart import RidgeChart
from prinfold.density.ridges.chart_nodes import make_neighbor_graph
from prinfold.density.ridges.chart_surface import Patches
from prinfold.density.ridges.mean_shift import Flow, FlowResult, Status

Rows = tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]
"""Rows, and the distance of points from the true surface."""


def dome(n: int, seed: int) -> Rows:
    """Half a sphere of radius 1."""
    rng = np.random.default_rng(seed)
    up, turn = rng.uniform(0, 1, n), rng.uniform(0, 2 * np.pi, n)
    flat = np.sqrt(1 - up**2)
    points = np.stack([flat * np.cos(turn), flat * np.sin(turn), up], axis=1)

    def away(X: np.ndarray) -> np.ndarray:
        wide, below = np.hypot(X[:, 0], X[:, 1]), X[:, 2] < 0
        return np.where(below, np.hypot(wide - 1, X[:, 2]), np.abs(np.linalg.norm(X, axis=1) - 1))

    return points * (1 + 0.1 * rng.normal(size=(n, 1))), away


def sheet(n: int, seed: int) -> Rows:
    """Two arcs of radius 1 that make an S, two wide."""
    rng = np.random.default_rng(seed)
    t, w = rng.uniform(-1.5 * np.pi, 1.5 * np.pi, n), rng.uniform(0, 2, n)
    off = 1 + 0.1 * rng.normal(size=n) * np.sign(t)
    grid = np.linspace(-1.5 * np.pi, 1.5 * np.pi, 4000)

    def away(X: np.ndarray) -> np.ndarray:
        curve = np.stack([np.sin(grid), np.sign(grid) * (np.cos(grid) - 1)], axis=1)
        beside = np.sqrt(np.square(X[:, None, [0, 2]] - curve).sum(axis=2).min(axis=1))
        return np.hypot(beside, np.maximum(np.abs(X[:, 1] - 1) - 1, 0))

    return np.stack([np.sin(t) * off, w, np.sign(t) * (np.cos(t) * off - 1)], axis=1), away


def roll(n: int, seed: int) -> Rows:
    """The swiss roll, uniform by area."""
    data = datasets.make_swiss_roll(n, noise=0.5, rng=seed, sampling="area")
    return data.X, data.surface.distance


SURFACES = {"half sphere": (dome, 0.25), "S sheet": (sheet, 0.25), "roll": (roll, 1.2)}
N = 1500


def ridge(X: np.ndarray, bandwidth: float) -> tuple[Flow, FlowResult]:
    flow = Flow(KernelDensity(X, np.ones(len(X)), bandwidth), 2)
    found = flow(X)
    return flow, found.only(found.status == Status.CONVERGED)


def rms(x: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(x))))


def layouts(seeds: range) -> None:
    rows = []
    for name, (make, bandwidth) in SURFACES.items():
        for seed in seeds:
            nodes = make_neighbor_graph(*ridge(make(N, seed)[0], bandwidth))
            pieces = chart_embedding._lay_pieces_flat(nodes, np.arange(len(nodes.points)))
            whole, laid = max(pieces, key=lambda each: len(each[0]))
            nodes = nodes.only(whole)
            first, second = nodes.pairs.T
            true = np.linalg.norm(nodes.points[first] - nodes.points[second], axis=1)
            for way, Z in (("Isomap", laid.start[:, :2]), ("tangent planes agree", laid.placed.latent)):
                ratio = np.linalg.norm(Z[first] - Z[second], axis=1) / true
                rows.append([name, seed, len(whole), way, *(f"{q:.3f}" for q in np.quantile(ratio, [0.01, 0.5, 0.99]))])
    print_table("1  distance of neighbours in the chart over that on the ridge", HEAD_1, rows)


HEAD_1 = ["surface", "seed", "nodes", "layout", "1 %", "median", "99 %"]


def patches(seeds: range) -> None:
    rows = []
    for name, (make, bandwidth) in SURFACES.items():
        for seed in seeds:
            X, away = make(N, seed)
            flow, points = ridge(X, bandwidth)
            chart = RidgeChart.of(flow, points)
            Z = chart.mesh().latent
            height = np.exp(chart.latent.domain.height(Z)) * 0.9
            parts = height >= 2.0, height < 1.2  # well inside, and next to the edge
            whole = chart.patches.coefficients
            for words, kept in (("points", 1), ("and tangent planes", 3), ("and curvature", 6)):
                coefficients = np.where(np.arange(6)[:, None] < kept, whole, 0.0)
                y = Patches(chart.patches.centers, coefficients, chart.patches.bandwidth).point(Z)
                back = flow(y)
                there = back.status == Status.CONVERGED
                off = np.linalg.norm(back.points - y, axis=1) / bandwidth
                inside, edge = (rms(off[part & there]) for part in parts)
                true = [f"{rms(away(p)) / bandwidth:.3f}" for p in (y[parts[0]], points.points)]
                rows.append([name, seed, words, f"{inside:.4f}", f"{edge:.4f}", *true])
    print_table("2  rms distances in bandwidths", HEAD_2, rows)


HEAD_2 = ["surface", "seed", "patches of", "inside to ridge", "edge to ridge", "inside to truth", "ridge to truth"]


def costs(seeds: range) -> None:
    rows = []
    for n in (1000, 4000, 16_000, *((64_000,) if len(seeds) > 1 else ())):
        X, _ = roll(n, 0)
        flow, points = ridge(X, 1.2)
        clock = time.perf_counter()
        chart = RidgeChart.of(flow, points)
        made = time.perf_counter()
        chart.nearest(X[:10])
        started = time.perf_counter()
        chart.nearest(X)
        each = 1e3 * (time.perf_counter() - started) / n
        rows.append([n, len(chart.piece), f"{made - clock:.1f}", f"{started - made:.1f}", f"{each:.2f}"])
    print_table("3  the roll: seconds for the chart and its mesh, milliseconds to project a row", HEAD_3, rows)


HEAD_3 = ["rows", "nodes", "chart", "mesh", "each row"]
TABLES = {"1": layouts, "2": patches, "3": costs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", default="1,2,3")
    given = parser.parse_args()
    for number in given.only.split(","):
        TABLES[number](range(3 if given.full else 1))


if __name__ == "__main__":
    main()
