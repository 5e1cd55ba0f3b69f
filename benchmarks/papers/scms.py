"""McQueen on density ridges, sections 5.1 and 5.2, and ridges of real data: galaxies and GPS traces.

    python -m benchmarks.papers.scms [--only shapes galaxies roads] [--full] [--out folder]

The report shows its curves in pictures only, over bandwidths that it does not name, and advises the likeliest by
leave-one-out; ours are beside the true curves, over multiples of that. Section 5.3, signals, is in ``scms_signals.py``.
"""

from __future__ import annotations

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
from benchmarks.papers.reporting import Figures, Finding, judge, run

from prinfold import DensityRidge, datasets, plot
from prinfold.density.ridges.mean_shift import Status

SHAPES = {
    "zig-zag": partial(datasets.make_zigzag, 400),
    "spiral": partial(datasets.make_spiral, 500, noise=0.04),
    "star": partial(datasets.make_star, 800),
    "epitrochoid": partial(datasets.make_epitrochoid, 1000),
}
MULTIPLES = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
SHOWN = (0.5, 1.0, 2.0, 4.0)


def errors(data: datasets.Dataset, model: DensityRidge) -> tuple[float, float]:
    """Root mean squared distance of the ridge from the true curve, and of that from the ridge."""
    there = data.surface.distance(model.mesh().vertices)
    back = np.linalg.norm(model.project(truth := data.surface.mesh().vertices) - truth, axis=1)
    return float(np.sqrt(np.mean(there**2))), float(np.sqrt(np.mean(back**2)))


def shapes(figures: Figures) -> list[Finding]:
    """Figures 2, 4 and 5: ridges over bandwidths, beside the truth."""
    seeds = range(10 if figures.full else 3)
    figure, axes = plt.subplots(len(SHAPES), len(SHOWN), figsize=(15, 13), layout="constrained")
    findings = []
    for row, (name, make) in zip(axes, SHAPES.items(), strict=True):
        table = np.empty((len(seeds), len(MULTIPLES), 2))
        for seed in seeds:
            data = make(rng=seed)
            likeliest = DensityRidge(bandwidth="likelihood").fit(data.X).bandwidth_
            for k, multiple in enumerate(MULTIPLES):
                model = DensityRidge(bandwidth=multiple * likeliest).fit(data.X)
                table[seed, k] = errors(data, model)
                if seed == 0 and multiple in SHOWN:
                    ax = plot.ridge(model, data.X, ax=row[SHOWN.index(multiple)])
                    ax.set_title(f"{name}, {multiple:g} × likeliest: {len(model.graph_.ends)} branches")
        both = np.sqrt(np.square(table).sum(axis=2)).mean(axis=0)
        best = MULTIPLES[int(both.argmin())]
        print(f"  {name}: {'  '.join(f'{m:g}: {e:.4f}' for m, e in zip(MULTIPLES, both, strict=True))}")
        findings.append(
            Finding(
                f"{name}: distance from the true curve and back, by multiple of the likeliest bandwidth",
                "1 × (advised)",
                f"{best:g} × best: {both.min():.4f}; 1 ×: {both[MULTIPLES.index(1.0)]:.4f}",
                judge(best == 1.0, f"{best:g} times the likeliest is better"),
            )
        )
    figures.save(figure, "scms_shapes")
    return findings


def roads(figures: Figures) -> list[Finding]:
    """GPS traces as roads, with the distance to the true road map."""
    data = datasets.load_gps_traces()
    findings, lines = [], []
    usual = DensityRidge(bandwidth="auto").fit(data.X)
    for h in (float(usual.bandwidth_), 15.0, 25.0, 40.0):
        model = DensityRidge(bandwidth=h).fit(data.X)
        kept = model.mesh().vertices
        away, rows = data.surface.distance(kept), data.surface.distance(data.X)
        share = (model.status_ == Status.CONVERGED).mean()
        words = f"{away.mean():.1f} m (rows {rows.mean():.1f} m), {len(model.graph_.ends)} branches"
        lines.append(f"  bandwidth {h:5.1f} m: mean distance {words}, {share:.0%} of rows on a ridge")
        if h == 25.0:
            figure, ax = plt.subplots(figsize=(9, 9), layout="constrained")
            for segment in data.surface.segments:
                ax.plot(*segment.T, color="0.8", lw=0.8, zorder=0)
            plot.ridge(model, data.X, show_density=False, ax=ax)
            ax.set(xlim=(data.X[:, 0].min(), data.X[:, 0].max()), ylim=(data.X[:, 1].min(), data.X[:, 1].max()))
            figures.save(figure, "scms_roads")
            findings.append(
                Finding(
                    "GPS traces: mean distance of the ridge from the road map, bandwidth 25 m",
                    "",
                    words,
                    "nearer than the rows" if away.mean() < rows.mean() else "no nearer than the rows",
                )
            )
    print("\n".join(lines))
    return findings


def galaxies(figures: Figures) -> list[Finding]:
    """Galaxies traced as filaments, on the sphere, with the survey's footprint as a mask."""
    data = datasets.load_galaxies()
    sky = data.X[:, :2]
    # The large piece of the survey in the north, all of it or a window.
    low, high = ((110.0, 0.0), (260.0, 65.0)) if figures.full else ((150.0, 5.0), (220.0, 45.0))
    X = sky[((sky >= low) & (sky <= high)).all(axis=1)]

    def seen(rows: np.ndarray) -> np.ndarray:
        return np.asarray(((rows >= low) & (rows <= high)).all(axis=1))

    model = DensityRidge(bandwidth=0.9, space="sphere", mask=seen, min_gap=0.15, min_length=4.0).fit(X)
    figure, ax = plt.subplots(figsize=(14, 9), layout="constrained")
    plot.ridge(model, X, ax=ax)
    figures.save(figure, "scms_galaxies")
    distance = np.abs(model.locate(X).distance)
    rng = np.random.default_rng(0)
    sine = rng.uniform(*np.sin(np.radians([low[1], high[1]])), 20_000)
    even = np.stack([rng.uniform(low[0], high[0], 20_000), np.degrees(np.arcsin(sine))], axis=1)
    chance = np.abs(model.locate(even).distance)
    length = float(model.graph_.latent.lengths.sum())
    words = f"median {np.median(distance):.2f}° of {len(X)} galaxies, {np.median(chance):.2f}° of even points"
    return [
        Finding(
            f"galaxies: distance from {len(model.graph_.ends)} filaments, {length:.0f}° in all",
            "",
            words,
            judge(
                bool(np.median(distance) < np.median(chance)), "no nearer than even points", "nearer than even points"
            ),
        )
    ]


if __name__ == "__main__":
    run(
        "McQueen, An analysis of locally defined principal curves and surfaces",
        {"shapes": shapes, "roads": roads, "galaxies": galaxies},
        "benchmarks/results/scms",
        full="ten seeds, and all of the northern sky",
    )
