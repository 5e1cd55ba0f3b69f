"""Graphs of ridges: whether branches, junctions and ends are those of the true curves, their lengths, their cost.

    python -m benchmarks.density.ridge_graphs [--full] [--only 1,3]

1. Of ten draws, how many have the true number of branches, rings, junctions and ends, by the least length of a branch
   with a free end, in bandwidths; the bandwidth is "wide_likelihood".
2. Length of all branches over that of the true curve.
3. Seconds of the processor for the graph of ridge points, and to project every row on it, with the number of rows.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from benchmarks.timing import print_table

from prinfold import DensityRidge, datasets
from prinfold._typing import FloatArray
from prinfold.density.densities import KernelDensity
from prinfold.density.ridges.graph import RidgeGraph
from prinfold.density.ridges.mean_shift import Flow, Status

LENGTHS = (2.0, 3.0, 4.0, 6.0)


class Shape(NamedTuple):
    """Rows of a shape by their number and a seed; its branches, rings, junctions and ends; its length."""

    make: Callable[[int, int], FloatArray]
    counts: tuple[int, int, int, int]
    length: float


def strokes(*segments: tuple[tuple[float, float], tuple[float, float]], noise: float = 0.03) -> Callable:
    """Rows along straight strokes, as many on each as its length asks for."""
    ends = np.asarray(segments, dtype=float)
    length = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)

    def make(n: int, seed: int) -> FloatArray:
        rng = np.random.default_rng(seed)
        k, t = rng.choice(len(ends), n, p=length / length.sum()), rng.uniform(size=(n, 1))
        return ends[k, 0] + t * (ends[k, 1] - ends[k, 0]) + noise * rng.standard_normal((n, 2))

    return make


def length_of(data: datasets.Dataset) -> float:
    mesh = data.surface.mesh(4000)
    return float(np.linalg.norm(np.diff(mesh.vertices[mesh.faces], axis=1)[:, 0], axis=1).sum())


SHAPES = {
    "circle": Shape(lambda n, s: datasets.make_circle(n, noise=0.05, rng=s).X, (1, 1, 0, 0), 2 * np.pi),
    "spiral": Shape(
        lambda n, s: datasets.make_spiral(n, noise=0.04, rng=s).X, (1, 0, 0, 2), length_of(datasets.make_spiral(9))
    ),
    "zig-zag": Shape(lambda n, s: datasets.make_zigzag(n, rng=s).X, (1, 0, 0, 2), length_of(datasets.make_zigzag(9))),
    "epitrochoid": Shape(
        lambda n, s: datasets.make_epitrochoid(n, rng=s).X, (6, 0, 3, 0), length_of(datasets.make_epitrochoid(9))
    ),
    "line": Shape(strokes(((-1, 0), (1, 0))), (1, 0, 0, 2), 2.0),
    "T": Shape(strokes(((-1, 0), (1, 0)), ((0, 0), (0, -1))), (3, 0, 1, 3), 3.0),
    "Y": Shape(strokes(((0, 0), (0, -1)), ((0, 0), (0.8, 0.6)), ((0, 0), (-0.8, 0.6))), (3, 0, 1, 3), 3.0),
    "X": Shape(strokes(((-1, -0.75), (1, 0.75)), ((-1, 0.75), (1, -0.75))), (4, 0, 1, 4), 5.0),
    "two lines": Shape(strokes(((-1, 0), (1, 0)), ((-1, 0.5), (1, 0.5))), (2, 0, 0, 4), 4.0),
}


def counts(graph: RidgeGraph) -> tuple[int, int, int, int]:
    degrees = graph.degrees
    rings = int(graph.latent.closed.sum())
    return graph.latent.n_branches, rings, int((degrees > 2).sum()), int((degrees == 1).sum())


def shapes(sizes: tuple[int, ...], draws: int) -> None:
    for n in sizes:
        rows = []
        for name, shape in SHAPES.items():
            right, length = np.zeros(len(LENGTHS), dtype=int), []
            for seed in range(draws):
                model = DensityRidge(bandwidth="wide_likelihood").fit(shape.make(n, seed))
                graphs = [RidgeGraph.of(model.flow_, model.places_, least) for least in LENGTHS]
                right += [counts(graph) == shape.counts for graph in graphs]
                length.append(graphs[1].latent.lengths.sum() / shape.length)
            rows.append([name, *map(int, right), f"{np.mean(length):.3f}", f"{np.std(length):.3f}"])
        heads = [f"least {least:g}" for least in LENGTHS]
        print_table(f"{n} rows, {draws} draws", ["shape", *heads, "length / true", "±"], rows)


def network(n: int, roads: int, seed: int = 0) -> FloatArray:
    """Rows on straight roads that cross one another."""
    rng = np.random.default_rng(seed)
    start, angle = rng.uniform(0, np.sqrt(roads), (roads, 2)), rng.uniform(0, 2 * np.pi, roads)
    end = start + 2 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.unique(strokes(*np.stack([start, end], axis=1))(n, seed), axis=0)


def cost(sizes: tuple[int, ...]) -> None:
    rows = []
    for n in sizes:
        X = network(n, n // 250)
        flow = Flow(KernelDensity(X, np.ones(len(X)), 0.08), 1)
        found = flow(X)
        clock = time.process_time()
        graph = RidgeGraph.of(flow, found.only(found.status == Status.CONVERGED))
        made = time.process_time() - clock
        graph.nearest(X[:1])  # what is made ready once
        clock = time.process_time()
        graph.nearest(X)
        projected = time.process_time() - clock
        rows.append([str(n), graph.latent.n_branches, len(graph.points), f"{made:.1f}", f"{projected:.1f}"])
    print_table("roads, 250 rows to each", ["rows", "branches", "knots", "graph, s", "projection, s"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", default="1,2,3")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if {"1", "2"} & set(args.only.split(",")):
        shapes((300, 1000, 3000) if args.full else (300, 1000), 10)
    if "3" in args.only.split(","):
        cost((10_000, 30_000, 100_000) if args.full else (10_000, 30_000))


if __name__ == "__main__":
    main()
