"""How an iteration grows with rows, nodes and columns, and the figures of the benchmark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from benchmarks.gtm.late_iterations import CYCLE, kept_by, late, sheet
from benchmarks.timing import print_table, take_turns
from threadpoolctl import threadpool_limits

BASE = {"rows": 12_000, "nodes": 900, "columns": 20}
AXES = {
    "rows": (6000, 12_000, 24_000),
    "nodes": (400, 900, 1600),
    "columns": (5, 10, 20, 40, 80),
}
"""All large enough to be planned."""

MORE = {"rows": (48_000, 96_000, 192_000), "nodes": (3600, 6400, 10_000), "columns": (160,)}
COLORS = {"dense": "#b3541e", "planned": "#1f5f8b"}
NOISE = 0.05

Growth = dict[str, tuple[list[int], dict[str, list[float]], list[float]]]


def seconds_at(rows: int, nodes: int, columns: int) -> tuple[dict[str, float], float]:
    """Median seconds of a late iteration, dense and planned, and the share of pairs that the plan keeps."""
    at = late(sheet(rows, columns, noise=NOISE), round(nodes**0.5), 7, 10)
    renewal = at.steps(1, True)[0]
    took = take_turns({"dense": lambda: at.steps(1, False), "planned": lambda: at.steps(3, True)}, 3)
    dense, planned = took["dense"].median, took["planned"].median
    # A renewal now and then belongs to the price.
    return {"dense": dense, "planned": planned + max(renewal - planned, 0.0) / CYCLE}, kept_by(at)


def bench_growth(full: bool) -> Growth:
    growth: Growth = {}
    with threadpool_limits(1):
        for axis, values in AXES.items():
            chosen = [*values, *MORE[axis]] if full else list(values)
            points = [seconds_at(**{**BASE, axis: value}) for value in chosen]
            seconds = {kind: [point[0][kind] for point in points] for kind in COLORS}
            growth[axis] = (chosen, seconds, [point[1] for point in points])
    rows = []
    for axis, (chosen, seconds, kept) in growth.items():
        rows += [
            (f"{axis} {value}", 1e3 * seconds["dense"][i], 1e3 * seconds["planned"][i], kept[i])
            for i, value in enumerate(chosen)
        ]
        slopes = (exponent(chosen, seconds[kind]) for kind in COLORS)
        rows.append((f"  exponent in {axis}", *slopes, ""))
    about = ", ".join(f"{value} {axis}" for axis, value in BASE.items())
    print_table(
        f"7. Growth of a late iteration: milliseconds on one thread, about {about} (sheet, noise {NOISE})",
        ("size", "dense", "planned", "share kept"),
        rows,
    )
    return growth


def exponent(x: list[int], y: list[float]) -> float:
    """Slope of the upper half on logarithmic axes: the lower half is overhead."""
    half = max(0, len(x) - max(3, (len(x) + 1) // 2))
    return float(np.polyfit(np.log(x[half:]), np.log(y[half:]), 1)[0])


def draw_growth(growth: Growth, folder: Path) -> None:
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 3, figsize=(9, 3.1), sharey=True, layout="constrained")
    for ax, (axis, (chosen, seconds, _)) in zip(panels, growth.items(), strict=True):
        for kind, color in COLORS.items():
            label = f"{kind}: {axis} to the {exponent(chosen, seconds[kind]):.2f}"
            ax.loglog(chosen, 1e3 * np.array(seconds[kind]), "o-", color=color, label=label, markersize=4)
        ax.set_xlabel(axis)
        ax.set_xticks(chosen[::2], [f"{value:,}".replace(",", " ") for value in chosen[::2]], minor=False)
        ax.minorticks_off()
        ax.grid(alpha=0.3)
        ax.legend(fontsize=8, frameon=False)
    panels[0].set_ylabel("ms per late iteration")
    save(figure, folder / "gtm_growth.png")


def draw_peers(ratios: Mapping[str, Mapping[str, float]], folder: Path) -> None:
    """Bars: seconds per iteration over the two products, for each size."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(ratios), figsize=(9, 2.6), layout="constrained")
    for ax, (size, bars) in zip(np.atleast_1d(panels), ratios.items(), strict=True):
        ordered = sorted(bars.items(), key=lambda item: -item[1])
        colors = [COLORS["planned"] if name.startswith("prinfold") else "#9a9a9a" for name, _ in ordered]
        ax.barh([name for name, _ in ordered], [value for _, value in ordered], color=colors)
        for i, (_, value) in enumerate(ordered):
            ax.annotate(f" {value:.2g}", (value, i), va="center", fontsize=8)
        ax.axvline(1.0, color="black", linewidth=0.8)
        ax.set_xscale("log")
        ax.set_xlim(0.1, 4 * max(bars.values()))
        ax.set_title(size, fontsize=9)
        ax.set_xlabel("time per iteration / two matrix products")
        ax.tick_params(labelsize=8)
    save(figure, folder / "gtm_speed.png")


def save(figure: object, path: Path) -> None:
    import matplotlib.pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)  # type: ignore[attr-defined]
    plt.close(figure)  # type: ignore[arg-type]
    print(f"  figure: {path}")
