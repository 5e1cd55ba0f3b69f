"""Figures 9 to 14 of Chang & Ghosh: error and roughness over nodes and clamping, and how training settles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt

import matplotlib.pyplot as plt
import numpy as np
from benchmarks.papers.pps_trials import EPOCHS, LOADERS, WINDOW, Setting, n_columns, n_train, trials
from benchmarks.papers.reporting import COLORS, MARKERS, Figures, Finding, judge
from matplotlib.axes import Axes

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5)
READING = "gtm"


@dataclass(frozen=True)
class Extent:
    """How much of the paper's grid is run: shares of N for the nodes, clampings up to 1, halves."""

    shares: tuple[float, ...]
    clampings: tuple[float, ...]
    splits: range

    def aligned(self, D: int, Q: int) -> list[float]:
        """The paper's clampings, of which those beyond 1 depend on D/Q."""
        return [*self.clampings, *(1 - part + part * D / Q for part in (0.25, 0.5, 0.75))]

    def nodes(self, N: int, Q: int) -> list[int]:
        counts = [round(share * N) for share in self.shares]
        return counts if Q == 1 else sorted({isqrt(count) ** 2 for count in counts if count >= 9})


def extent(full: bool, Q: int) -> Extent:
    if full:
        return Extent(tuple(np.arange(1, 11) / 10), tuple(np.arange(1, 11) / 10), range(25))
    shares, splits = ((0.1, 0.2, 0.4, 0.7, 1.0), range(5)) if Q == 1 else ((0.2, 0.5, 1.0), range(3))
    return Extent(shares, (0.1, 0.2, 0.4, 0.7, 1.0), splits)


@dataclass(frozen=True)
class Landscape:
    """Mean error and roughness (A, M) over clampings and nodes."""

    table: str
    basis: int
    clampings: np.ndarray
    nodes: np.ndarray
    error: np.ndarray
    roughness: np.ndarray

    @property
    def name(self) -> str:
        return f"{self.table}, L={self.basis}"

    def lowest(self, values: np.ndarray) -> tuple[float, int, float]:
        """The smallest value with its number of nodes and its clamping."""
        a, m = np.unravel_index(int(np.argmin(values)), values.shape)
        return float(values[a, m]), int(self.nodes[m]), float(self.clampings[a])


def landscapes(kinds: Sequence[tuple[str, int]], Q: int, full: bool) -> list[Landscape]:
    """Errors and roughness of every table and L over the grid."""
    run, wanted = extent(full, Q), {}
    for table, L in kinds:
        alphas, nodes = run.aligned(n_columns(table), Q), run.nodes(n_train(table), Q)
        wanted[table, L] = [[Setting(table, Q, L, M, a, READING) for M in nodes] for a in alphas]
    found = trials([s for rows in wanted.values() for row in rows for s in row], run.splits)
    surfaces = []
    for (table, L), rows in wanted.items():
        error, rough = (
            np.array([[np.mean([getattr(t, what) for t in found[s]]) for s in row] for row in rows])
            for what in ("error", "roughness")
        )
        alphas, nodes = np.array([row[0].clamping for row in rows]), np.array([s.nodes for s in rows[0]])
        surfaces.append(Landscape(table, L, alphas, nodes, error, rough))
    return surfaces


def matched(surface: Landscape) -> tuple[np.ndarray, np.ndarray]:
    """Change of error in percent of the best PPS against the GTM at equal roughness, and its clamping, per level.

    The GTM is a line of (roughness, error) over the numbers of nodes; the PPS are the places on the edges of the grid
    of nodes and clampings below 1 where linear interpolation meets the level.
    """
    kept = surface.clampings <= 1
    rough, error, alpha = surface.roughness[kept], surface.error[kept], surface.clampings[kept]
    levels = rough[-1].min() + np.array(LEVELS) * np.ptp(rough[-1])
    fields = np.stack([rough, error, np.broadcast_to(alpha[:, None], rough.shape)], axis=2)
    change, best = [], []
    for level in levels:
        gtm = _crossings(fields[-1, :-1], fields[-1, 1:], level)[:, 0].min()
        over_nodes, over_clampings = (fields[:-1, :-1], fields[:-1, 1:]), (fields[:-1], fields[1:])
        pps = np.concatenate([_crossings(*pair, level) for pair in (over_nodes, over_clampings)])
        lowest = pps[pps[:, 0].argmin()] if len(pps) else np.full(2, np.nan)
        change.append(100 * (lowest[0] / gtm - 1))
        best.append(lowest[1])
    return np.array(change), np.array(best)


def _crossings(first: np.ndarray, second: np.ndarray, level: float) -> np.ndarray:
    """(n, 2) error and clamping where the roughness meets the level between two neighbours (…, 3) of the grid."""
    first, second = first.reshape(-1, 3), second.reshape(-1, 3)
    meets = (first[:, 0] - level) * (second[:, 0] - level) <= 0
    first, second = first[meets], second[meets]
    span = second[:, :1] - first[:, :1]
    share = (level - first[:, :1]) / np.where(span == 0, 1.0, span)
    return (first + share * (second - first))[:, 1:]


# ------------------------------------------------------------------------------------------------------ drawing


def draw_lines(ax: Axes, surface: Landscape, values: np.ndarray, label: str) -> None:
    """One line per number of nodes over the clampings; the GTM's clamping is marked, and the least value."""
    colors = plt.get_cmap("viridis")(np.linspace(0, 0.9, len(surface.nodes)))
    for m, color in enumerate(colors):
        ax.plot(surface.clampings, values[:, m], ".-", color=color, lw=1, ms=4, label=f"M={surface.nodes[m]}")
    least, _, alpha = surface.lowest(values)
    ax.axvline(1, color="0.6", lw=0.8, ls=":")
    ax.plot(alpha, least, "o", mfc="none", mec=COLORS[1], ms=10, mew=1.3)
    ax.set(xscale="log", title=surface.name, xlabel="clamping α", ylabel=label)
    ticks = [0.1, 0.3, 1, 3]
    ax.set_xticks(ticks, labels=[f"{t:g}" for t in ticks])
    ax.minorticks_off()


def legend_below(ax: Axes, n_columns: int) -> None:
    """Lines fill these panels: there is no empty corner for a legend."""
    style = {"fontsize": 7, "frameon": False, "columnspacing": 1.0, "handlelength": 1.2}
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=n_columns, **style)


def draw_landscapes(panels: Sequence[tuple[Landscape, str]], title: str, figures: Figures, name: str) -> None:
    """Six panels, each a landscape and which of its values to show."""
    curves = {"roughness": "roughness R in degrees", "error": "mean squared distance, test"}
    surfaces = {"roughness": "roughness R in degrees", "error": "mean distance, test"}
    labels = curves if len({surface.basis for surface, _ in panels}) == 1 else surfaces
    fig, axes = plt.subplots(2, 3, figsize=(10.5, 6), layout="constrained")
    for ax, (surface, what) in zip(axes.flat, panels, strict=True):
        draw_lines(ax, surface, getattr(surface, what), labels[what])
        legend_below(ax, 5)
    fig.suptitle(f"{title}; dotted: the GTM; circle: least value")
    figures.save(fig, name)


def draw_matched(ax: Axes, surfaces: Sequence[Landscape], title: str, by_table: bool) -> None:
    for i, surface in enumerate(surfaces):
        change, alpha = matched(surface)
        name = surface.table if by_table else f"L={surface.basis}"
        label = f"{name}, α {np.nanmin(alpha):.2g} to {np.nanmax(alpha):.2g}"
        ax.plot(LEVELS, change, f"{MARKERS[i]}-", color=COLORS[i], label=label, mfc="none")
    ax.axhline(0, color="0.6", lw=0.8)
    ax.set(title=title, xlabel="share of the GTM's range of roughness", xticks=LEVELS)
    legend_below(ax, 1)


# --------------------------------------------------------------------------------------------- figures 9 and 10


PUBLISHED_9 = {
    "iris": ("R 121 at (53, 1.75)", "2.579 at (75, 0.3)"),
    "glass": ("R 146 at (97, 5)", "7.947 at (11, 0.1)"),
    "diabetes": ("R 149 at (39, 4.5)", "6.551 at (346, 0.2)"),
}


def figures_9_and_10(figures: Figures) -> list[Finding]:
    surfaces = landscapes([(table, 4) for table in LOADERS], 1, figures.full)
    panels = [(s, what) for what in ("roughness", "error") for s in surfaces]
    draw_landscapes(panels, "Figure 9: curves", figures, "pps-9-curves")
    fig, ax = plt.subplots(figsize=(5, 3.8), layout="constrained")
    draw_matched(ax, surfaces, "Figure 10: curves at equal roughness", True)
    ax.set_ylabel("error of the best PPS against the GTM, %")
    figures.save(fig, "pps-10-matched-curves")
    found = [f for s in surfaces for f in minima(s, "fig 9", *PUBLISHED_9[s.table])]
    changes = np.array([matched(s)[0] for s in surfaces])
    return [*found, matched_finding("fig 10: curves", "always lower, up to 5 %", changes)]


def minima(surface: Landscape, figure: str, rough: str, error: str) -> list[Finding]:
    R, M_R, a_R = surface.lowest(surface.roughness)
    E, M_E, a_E = surface.lowest(surface.error)
    low, high = surface.clampings < 1, surface.clampings > 1
    return [
        Finding(
            f"{figure}, {surface.name}: smoothest at (M, α), with α > 1",
            rough,
            f"R {R:.0f} at ({M_R}, {a_R:g})",
            judge(a_R > 1, f"not with α > 1, where the least R is {surface.roughness[high].min():.0f}"),
        ),
        Finding(
            f"{figure}, {surface.name}: lowest error at (M, α), with α < 1",
            error,
            f"{E:.3f} at ({M_E}, {a_E:g})",
            judge(a_E < 1, f"not with α < 1, where the least is {surface.error[low].min():.3f}"),
        ),
    ]


def matched_finding(what: str, published: str, changes: np.ndarray) -> Finding:
    seen = changes[np.isfinite(changes)]
    ours = f"{np.median(seen):+.1f} % at the median, {seen.min():+.1f} to {seen.max():+.1f} %"
    note = f"lower at {int((seen < 0).sum())} of {len(seen)} levels, by {-seen.min():.1f} % at most"
    if len(seen) < changes.size:
        note += f"; PPS does not reach {changes.size - len(seen)} more"
    return Finding(f"{what}: error at the GTM's roughness", published, ours, judge(bool((seen < 0).all()), note, note))


# ------------------------------------------------------------------------------------------ figures 11 to 13


PUBLISHED_12 = {
    ("iris", 4): ("R 7 at (25, 1.25)", "1.201 at (64, 0.2)"),
    ("iris", 9): ("R 620 at (16, 1.75)", "0.876 at (64, 0.4)"),
    ("glass", 9): ("R 614 at (16, 2.75)", "2.016 at (100, 0.1)"),
    ("glass", 16): ("R 855 at (25, 2.75)", "1.862 at (100, 0.2)"),
    ("diabetes", 9): ("R 571 at (16, 1.75)", "2.019 at (324, 0.4)"),
    ("diabetes", 16): ("R 971 at (36, 2.5)", "1.820 at (361, 0.3)"),
}


def figures_11_to_13(figures: Figures) -> list[Finding]:
    surfaces = landscapes([(table, L) for table in LOADERS for L in (4, 9, 16)], 2, figures.full)
    shown = [s for s in surfaces if (s.table, s.basis) in PUBLISHED_12]
    by_row = shown[::2] + shown[1::2]
    title = "Figure 11: roughness of surfaces"
    draw_landscapes([(s, "roughness") for s in by_row], title, figures, "pps-11-roughness")
    draw_landscapes([(s, "error") for s in by_row], "Figure 12: error of surfaces", figures, "pps-12-error")
    fig, axes = plt.subplots(1, 3, figsize=(11, 4), layout="constrained", sharey=True)
    for ax, table in zip(axes, LOADERS, strict=True):
        draw_matched(ax, [s for s in surfaces if s.table == table], table, False)
    axes[0].set_ylabel("error of the best PPS against the GTM, %")
    fig.suptitle("Figure 13: surfaces at equal roughness")
    figures.save(fig, "pps-13-matched-surfaces")
    found = [f for s in shown for f in minima(s, "fig 11, 12", *PUBLISHED_12[s.table, s.basis])]
    published = {4: "7 to 10 % lower", 9: "lower", 16: "lower"}
    for L, words in published.items():
        changes = np.array([matched(s)[0] for s in surfaces if s.basis == L])
        found.append(matched_finding(f"fig 13: surfaces, L={L}", words, changes))
    return found


# --------------------------------------------------------------------------------------------------- figure 14


NODES_14 = {"iris": (16, 36, 64), "glass": (16, 49, 100), "diabetes": (36, 169, 361)}
CLAMPINGS_14 = (0.1, 0.4, 0.7, 1.0, 1.3)


def figure_14(figures: Figures) -> list[Finding]:
    kinds = [(table, M) for table, counts in NODES_14.items() for M in counts]
    wanted = {
        (table, M): [Setting(table, 2, 9, M, a, READING) for a in (*CLAMPINGS_14, 0.25 + 0.75 * n_columns(table) / 2)]
        for table, M in kinds
    }
    every = [s for settings in wanted.values() for s in settings]
    found = trials(every, range(25 if figures.full else 3), tolerance=0.0)
    curves = {s: np.mean([t.history for t in ts], axis=0) for s, ts in found.items()}
    draw_training(wanted, curves, figures)
    settled = {s: epochs_to_settle([t.history for t in found[s]]) for s in every}
    usual = [settled[s] for s in every if 0.1 < s.clamping <= 1]
    extremes = {
        "α = 0.1": [settled[s] for s in every if s.clamping == 0.1],
        "largest α": [settled[s] for s in every if s.clamping > 1.3],
    }
    gtm = [settled[s] for s in every if s.clamping == 1.0]
    words = ", ".join(f"{np.mean(v):.0f} with {name}" for name, v in extremes.items())
    slower = min(np.mean(v) for v in extremes.values()) > np.mean(usual)
    return [
        Finding(
            "fig 14: epochs until the training error stays within 0.1 % of its last value",
            "PPS takes about as many as the GTM; the extremes of α are erratic",
            f"{np.mean(usual):.0f} with α from 0.4 to 1 (GTM {np.mean(gtm):.0f}), {words}, of {EPOCHS}",
            judge(slower, "an extreme settles as soon as the others"),
        )
    ]


def epochs_to_settle(histories: Sequence[Sequence[float]]) -> float:
    """Mean over halves; one that still moves at the last epoch counts as having taken them all."""
    count = []
    for history in np.asarray(histories):
        moving = np.flatnonzero(np.abs(history / history[-1] - 1) > 1e-3)
        count.append(WINDOW * (moving[-1] + 1 if len(moving) else 0))
    return float(np.mean(count))


def draw_training(
    wanted: dict[tuple[str, int], list[Setting]], curves: dict[Setting, np.ndarray], figures: Figures
) -> None:
    fig, axes = plt.subplots(3, 3, figsize=(11, 8.5), layout="constrained", sharex=True)
    palette = plt.get_cmap("viridis")(np.linspace(0, 0.9, 6))
    for ax, ((table, M), settings) in zip(axes.flat, wanted.items(), strict=True):
        for color, setting in zip(palette, settings, strict=True):
            round_ = setting.clamping == 1
            style = {"color": COLORS[1] if round_ else color, "lw": 1.6 if round_ else 1}
            epoch = WINDOW * np.arange(len(curves[setting]))
            ax.plot(epoch[1:], curves[setting][1:], label=f"α={setting.clamping:g}", **style)
        ax.set(title=f"{table}, L=9, M={M}")
    for ax in axes[:, -1]:
        ax.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.02, 1))
    for ax in axes[-1]:
        ax.set_xlabel("epoch")
    for ax in axes[:, 0]:
        ax.set_ylabel("mean distance, training")
    fig.suptitle("Figure 14: training error of surfaces, mean over halves (α=1 is the GTM)")
    figures.save(fig, "pps-14-training")
