"""How near the polygonal line comes to true curves, where it cuts across turns, and what it costs.

    python -m benchmarks.curves.polygonal_curve [--only 2] [--full]

Zig-zag and spiral are those that McQueen's figures 1 and 3 show of Kégl's own program; those samples are given by
pictures only, so that shapes and noise here are ours. Distances are root mean squares in both directions: from the line
to the true curve, which short cuts and wiggles make large, and from that to the line, which parts left out make large.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.timing import print_table

from prinfold import PolygonalCurve, datasets
from prinfold._typing import FloatArray
from prinfold.datasets import Dataset
from prinfold.geometry.simplices import nearest_on_simplices
from prinfold.metrics import length

SHAPES: dict[str, tuple[Callable[..., Dataset], dict[str, Any]]] = {
    "half circle": (datasets.make_half_circle, {}),
    "zig-zag": (datasets.make_zigzag, {}),
    "spiral, one whorl": (datasets.make_spiral, {"whorls": 1.0}),
    "spiral, two whorls": (datasets.make_spiral, {}),
    "bent line": (datasets.make_thesis_curve, {"noise": 0.1}),
    "circle, closed": (datasets.make_circle, {}),
    "epitrochoid, closed": (datasets.make_epitrochoid, {}),
    "knot, closed": (datasets.make_knot, {}),
}


def apart(model: PolygonalCurve, data: Dataset) -> tuple[float, float]:
    """Root mean squared distance of the line from the true curve, and the other way round."""
    mesh, truth = model.mesh(1000), data.surface.mesh(1000).vertices
    there = np.square(mesh.vertices - data.surface.project(mesh.vertices)).sum(axis=1)
    back = nearest_on_simplices(truth, mesh.vertices, mesh.faces).squared_distance
    return float(np.sqrt(there.mean())), float(np.sqrt(back.mean()))


def settings_of(name: str, data: Dataset) -> dict[str, PolygonalCurve]:
    """As it comes, from the published start, with the length of the true curve, and begun along it."""
    closed = name.endswith("closed")
    truth: FloatArray = data.surface.mesh(400).vertices
    return {
        "as it comes": PolygonalCurve(closed=closed),
        "published start": PolygonalCurve(closed=closed, init="pca"),
        "length": PolygonalCurve(closed=closed, length=length(truth, closed)),
        "length, 40 segments": PolygonalCurve(closed=closed, length=length(truth, closed), n_segments=40),
        "begun along the truth": PolygonalCurve(closed=closed, init=truth[::20]),
    }


def table_1(seeds: int) -> None:
    lines = []
    for name, (make, options) in SHAPES.items():
        found: dict[str, list[tuple[float, float, int]]] = {}
        for seed in range(seeds):
            data = make(500, rng=seed, **options)
            for setting, model in settings_of(name, data).items():
                model.fit(data.X)
                found.setdefault(setting, []).append((*apart(model, data), model.n_segments_))
        for setting, rows in found.items():
            there, back, segments = np.median(rows, axis=0)
            worst = np.max(np.array(rows)[:, :2])
            lines.append([name, setting, f"{there:.3f}", f"{back:.3f}", f"{worst:.3f}", f"{segments:.0f}"])
    head = ["500 rows about", "line", "to the truth", "from the truth", "worst of both", "segments"]
    print_table(f"1. distance between line and true curve, median of {seeds} samples", head, lines)


def table_2(seeds: int) -> None:
    lines = []
    for whorls in (0.5, 1.0, 1.5, 2.0, 3.0):
        right = {"pca": 0, "auto": 0}
        for seed in range(seeds):
            data = datasets.make_spiral(1000, noise=0.03, rng=seed, whorls=whorls)
            for init in right:
                right[init] += max(apart(PolygonalCurve(init=init).fit(data.X), data)) < 0.03
        lines.append([f"{whorls:g}", f"{right['pca']} of {seeds}", f"{right['auto']} of {seeds}"])
    head = ["whorls", "from the published start", "as it comes"]
    print_table("2. spirals of 1000 rows, noise 0.03, found to within the noise in both directions", head, lines)


def table_3(full: bool) -> None:
    lines = []
    for n in (1000, 10_000, 30_000, 100_000, *((1_000_000,) if full else ())):
        for shape, make in (("zig-zag", datasets.make_zigzag), ("spiral", datasets.make_spiral)):
            data = make(n, rng=0)
            clock = time.process_time()
            model = PolygonalCurve().fit(data.X)
            seconds = time.process_time() - clock
            there, back = apart(model, data)
            cost = [f"{seconds:.2f}", f"{model.n_iter_}", f"{model.n_segments_}"]
            lines.append([f"{n}", shape, *cost, f"{there:.4f}", f"{back:.4f}"])
    head = ["rows", "about", "seconds of the processor", "rounds", "segments", "to the truth", "from the truth"]
    print_table("3. cost by the number of rows", head, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=int, help="one of the tables")
    parser.add_argument("--full", action="store_true", help="twenty samples, and a million rows")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    PolygonalCurve().fit(datasets.make_zigzag(100, rng=0).X)  # compiles what is to be compiled
    seeds = 20 if given.full else 5
    tables = {1: lambda: table_1(seeds), 2: lambda: table_2(seeds), 3: lambda: table_3(given.full)}
    for number, table in tables.items():
        if given.only in (None, number):
            table()


if __name__ == "__main__":
    main()
