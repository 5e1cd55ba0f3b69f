"""Closed latent spaces tried for real: circles, cylinders, tori and spheres on data that they fit.

    python -m benchmarks.gtm.topologies [--full] [--only 1,3]

1. Where training begins: the median error in degrees of the coordinates found, up to symmetry, by start and shape, and
   how often the latent space went round the data the right way (a median below 20°).
2. Generating coordinates recovered: the median error by number of rows, laid out evenly or drawn at random, and the
   distance of neighbouring nodes beside it.
3. Which latent space rows held out choose among those of the right dimension, for shapes of each kind.
4. What the starts cost, as a share of the time of a fit that begins from the principal plane, in this run.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from benchmarks.timing import print_table
from sklearn.exceptions import ConvergenceWarning

from prinfold import GTM, choose, datasets
from prinfold.exceptions import PrinfoldWarning
from prinfold.metrics import align

Make = Callable[..., datasets.Dataset]


def uneven_circle(rng: int) -> datasets.Dataset:
    """A circle with most of its rows on one side; nodes are all as likely, so that what can be recovered is a rank."""
    data = datasets.make_circle(300, concentration=2.0, rng=rng)
    rank = np.argsort(np.argsort(data.latent[:, 0]))
    return replace(data, latent=2.0 * np.pi * rank[:, None] / len(rank))


SHAPES: dict[str, tuple[str, Make]] = {
    "circle": ("circle", partial(datasets.make_circle, 300)),
    "uneven circle, κ = 2": ("circle", uneven_circle),
    "epitrochoid, crosses itself": ("circle", datasets.make_epitrochoid),
    "trefoil": ("circle", datasets.make_knot),
    "trefoil in 10-D": ("circle", partial(datasets.make_knot, n_features=10)),
    "(3, 4) knot": ("circle", partial(datasets.make_knot, 600, windings=(3, 4), radii=(2.0, 1.0))),
    "closed curve in 6-D": ("circle", datasets.make_closed_curve),
    "closed curve in 12-D": ("circle", partial(datasets.make_closed_curve, n_features=12)),
    "cylinder": ("cylinder", datasets.make_cylinder),
    "tall cylinder": ("cylinder", partial(datasets.make_cylinder, height=8.0)),
    "low cylinder": ("cylinder", partial(datasets.make_cylinder, height=0.7)),
    "ring torus": ("torus", partial(datasets.make_torus, 800)),
    "flat torus, 1 and 0.4": ("torus", partial(datasets.make_torus, 800, kind="flat")),
    "flat torus, equal radii": ("torus", partial(datasets.make_torus, 800, kind="flat", radii=(1.0, 1.0))),
    "sphere in 10-D": ("sphere", partial(datasets.make_sphere, n_features=10)),
    "squashed sphere in 10-D": ("sphere", partial(datasets.make_sphere, n_features=10, radius=(1.0, 1.0, 0.3))),
    "long sphere in 10-D": ("sphere", partial(datasets.make_sphere, n_features=10, radius=(2.0, 0.5, 0.5))),
}
STARTS = ("pca", "isomap", "laplacian", "cycles", "auto")

EVEN: dict[str, tuple[str, Make]] = {
    "circle": ("circle", partial(datasets.make_circle, noise=0.05)),
    "cylinder": ("cylinder", datasets.make_cylinder),
    "flat torus, equal radii": ("torus", partial(datasets.make_torus, kind="flat", radii=(1.0, 1.0))),
    "sphere in 10-D": ("sphere", partial(datasets.make_sphere, n_features=10)),
}

CHOICES: dict[str, tuple[str, Make]] = {
    "half circle": ("line", partial(datasets.make_half_circle, 300)),
    "circle": ("circle", partial(datasets.make_circle, 300)),
    "trefoil": ("circle", partial(datasets.make_knot, 400)),
    "sheet": ("grid", partial(datasets.make_thesis_surface, 400, noise=0.1)),
    "cylinder": ("cylinder", partial(datasets.make_cylinder, 500)),
    "ring torus": ("torus", partial(datasets.make_torus, 600)),
    "flat torus in 4-D": ("torus", partial(datasets.make_torus, 600, kind="flat", radii=(1.0, 1.0))),
    "sphere in 10-D": ("sphere", partial(datasets.make_sphere, 500, n_features=10)),
    "squashed sphere in 10-D": ("sphere", partial(datasets.make_sphere, 500, n_features=10, radius=(1.0, 1.0, 0.4))),
}
LATENTS = {1: ("line", "circle"), 2: ("grid", "cylinder", "torus", "sphere")}


def error(data: datasets.Dataset, latent: str, **settings: object) -> float:
    """Median error in degrees."""
    model = GTM(latent=latent, random_state=0, **settings).fit(data.X)
    return float(np.median(align(model.transform(data.X), data.latent, model.latent_.domain).degrees))


def starts(seeds: int) -> None:
    rows = []
    for name, (latent, make) in SHAPES.items():
        cells: list[str] = []
        for init in STARTS:
            if latent == "sphere" and init == "cycles":
                cells.append("")
                continue
            found = [error(make(rng=seed), latent, init=init) for seed in range(seeds)]
            cells.append(f"{np.median(found):.0f}° {sum(each < 20 for each in found)}/{seeds}")
        rows.append((name, *cells))
    print_table(f"1. Median error by start, and fits of {seeds} that went round rightly", ("shape", *STARTS), rows)


def recovery(seeds: int) -> None:
    sizes = (225, 900, 3600)
    rows = []
    for name, (latent, make) in EVEN.items():
        for sampling, words in (("grid", "even"), ("parameter", "drawn")):
            cells = []
            for n in sizes:
                data = [make(n, rng=seed, sampling=sampling) for seed in range(seeds)]
                cells.append(f"{np.mean([error(each, latent, max_iter=300) for each in data]):.1f}°")
            rows.append((f"{name}, {words}", *cells))
        spaces = [GTM(latent=latent, init="pca", max_iter=0, tol=0.0).fit(make(n, rng=0).X).latent_ for n in sizes]
        rows.append(("  nodes apart by", *(f"{np.degrees(space.spacing):.1f}°" for space in spaces)))
    heads = ("shape", *(f"{n} rows" for n in sizes))
    print_table(f"2. Median error of the generating coordinates, mean over {seeds} seeds", heads, rows)


def choices(seeds: int) -> None:
    for dimension, latents in LATENTS.items():
        rows = []
        for name, (right, make) in CHOICES.items():
            if right not in latents:
                continue
            compare = partial(choose, grid={"latent": latents}, model=GTM(random_state=0), by="held-out", folds=3)
            found = [compare(make(rng=seed).X) for seed in range(seeds)]
            score = np.mean([each.table["score"] for each in found], axis=0)
            hits = sum(each.settings["latent"] == right for each in found)
            cells = [f"{gap:.2f}" if gap < 0 else "best" for gap in score - np.nanmax(score)]
            rows.append((name, *cells, right, f"{hits}/{seeds}"))
        words = f"3. Nats per row held out, short of the best, mean of {seeds} seeds; choices that were right"
        print_table(f"{words} ({dimension} latent dimensions)", ("shape", *latents, "truly", "chosen"), rows)


def cost(seeds: int) -> None:
    rows = []
    for name in ("trefoil", "tall cylinder", "ring torus", "flat torus, equal radii"):
        latent, make = SHAPES[name]
        data = make(rng=0)
        taken: dict[str, list[float]] = {init: [] for init in STARTS}
        for _ in range(max(seeds, 3)):
            for init in STARTS:
                begin = time.perf_counter()
                GTM(latent=latent, init=init, random_state=0, max_iter=0, tol=0.0).fit(data.X)
                taken[init].append(time.perf_counter() - begin)
        whole = []
        for _ in range(3):
            begin = time.perf_counter()
            GTM(latent=latent, init="pca", random_state=0).fit(data.X)
            whole.append(time.perf_counter() - begin)
        rows.append((name, *(f"{np.median(taken[init]) / np.median(whole):.2f}" for init in STARTS)))
    print_table("4. Time of a start as a share of a whole fit from the plane", ("shape", *STARTS), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="ten seeds rather than three")
    parser.add_argument("--only", default="1,2,3,4", help="numbers of the tables to print")
    options = parser.parse_args()
    warnings.simplefilter("ignore", PrinfoldWarning)
    warnings.simplefilter("ignore", ConvergenceWarning)
    for number, table in enumerate((starts, recovery, choices, cost), 1):
        if str(number) in options.only.split(","):
            table(10 if options.full else 3)


if __name__ == "__main__":
    main()
