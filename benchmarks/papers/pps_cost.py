"""Figure 15 of Chang & Ghosh: what an epoch of a PPS costs, in epochs of the GTM."""

from __future__ import annotations

from math import isqrt
from time import perf_counter
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from benchmarks.papers.pps_trials import FLOOR, LOADERS, REGULARIZATION, Setting, halves, n_columns, n_train, published
from benchmarks.papers.reporting import COLORS, MARKERS, Figures, Finding, judge
from threadpoolctl import threadpool_limits

from prinfold.gtm.model import GTMModel
from prinfold.gtm.noise.isotropic import IsotropicNoise
from prinfold.gtm.penalties import PriorPenalty
from prinfold.gtm.starts.first_parameters import pca_start
from prinfold.rows.rows import as_rows

LARGER = 4096


def operations(N: int, M: int, L: int, D: int, Q: int) -> tuple[float, float]:
    """Floating-point operations of an epoch of the GTM and of what the PPS adds, a product and a sum counting two.

    The GTM: products of rows with centres and of responsibilities with rows, a handful of operations for each
    responsibility, the system for L + 1 weights, the centres. The PPS: a product and a square for each tangent, the
    tangents themselves, and their share in the noise.
    """
    W = L + 1
    responsibilities = N * M * (2 * (D + 1) + 2 * (D + 1) + 5)
    system = M * W * (W + 1) + W**3 / 3 + 2 * W**2 * D + 4 * M * W * D
    gtm = responsibilities + system
    along = N * M * Q * (2 * (D + 1) + 4)
    frames = 2 * M * W * D * Q + 6 * M * D * Q**2
    return gtm, along + frames


def ratio_of_operations(setting: Setting, N: int | None = None) -> float:
    """The same as one ratio, for half of the table or for N rows."""
    size = setting.nodes, setting.basis, n_columns(setting.table), setting.dimension
    gtm, more = operations(N or n_train(setting.table), *size)
    return 1 + more / gtm


def ratio_of_times(setting: Setting, repeats: int, rows_wanted: int | None = None) -> float:
    """Median of the ratios of times of a step, the two taking turns; rows are repeated up to ``rows_wanted``."""
    train, _ = halves(setting.table, 0)
    if rows_wanted:
        train = np.resize(train, (rows_wanted, train.shape[1]))
    rows = as_rows(train, train.mean(axis=0), width=setting.nodes)
    pps = published(setting, train.shape[1])
    gtm = GTMModel(pps.surface, IsotropicNoise(FLOOR), PriorPenalty(REGULARIZATION))
    states = [model.begin(rows, pca_start(model, rows, np.random.default_rng(0))) for model in (gtm, pps)]
    ratios = []
    for _ in range(repeats):
        seconds = []
        for i, model in enumerate((gtm, pps)):
            states[i], took = _timed(model, rows, states[i])
            seconds.append(took)
        ratios.append(seconds[1] / seconds[0])
    return float(np.median(ratios[2:]))


def _timed(model: GTMModel, rows: Any, state: Any) -> tuple[Any, float]:
    clock = perf_counter()
    state = model.step(rows, state)
    return state, perf_counter() - clock


def figure_15(figures: Figures) -> list[Finding]:
    fig, axes = plt.subplots(2, 3, figsize=(11, 6.2), layout="constrained", sharey=True)
    repeats, measured = 60 if figures.full else 25, {}
    with threadpool_limits(1):
        for column, table in zip(axes.T, LOADERS, strict=True):
            for ax, Q, bases in zip(column, (1, 2), ((4,), (4, 9, 16)), strict=True):
                for i, L in enumerate(bases):
                    settings = [Setting(table, Q, L, M, 0.5) for M in _nodes(table, Q)]
                    ratios = [ratio_of_times(s, repeats) for s in settings]
                    measured |= dict(zip(settings, ratios, strict=True))
                    _draw(ax, settings, ratios, i)
                ax.set(title=f"{table}, Q={Q}", xlabel="nodes M")
                ax.legend(fontsize=7)
    for ax in axes[:, 0]:
        ax.set_ylabel("an epoch of PPS over one of the GTM")
    fig.suptitle("Figure 15: cost of an epoch; lines: times of this run, dashed: operations by formula")
    figures.save(fig, "pps-15-cost")
    return [*_findings(measured), _large()]


def _nodes(table: str, Q: int) -> list[int]:
    counts = [round(share * n_train(table)) for share in (0.2, 0.4, 0.7, 1.0)]
    return counts if Q == 1 else sorted({isqrt(count) ** 2 for count in counts})


def _draw(ax: Any, settings: list[Setting], ratios: list[float], i: int) -> None:
    nodes = [s.nodes for s in settings]
    ax.plot(nodes, ratios, f"{MARKERS[i]}-", color=COLORS[i], mfc="none", label=f"L={settings[0].basis}")
    ax.plot(nodes, [ratio_of_operations(s) for s in settings], "--", color=COLORS[i], lw=1)


def _findings(measured: dict[Setting, float]) -> list[Finding]:
    found = []
    for L, most, words in ((4, 3.0, "as much as 3"), (16, 1.4, "1.3 to 1.4")):
        chosen = [s for s in measured if s.basis == L]
        times, counts = [measured[s] for s in chosen], [ratio_of_operations(s) for s in chosen]
        found.append(
            Finding(
                f"fig 15: an epoch of PPS over one of the GTM, L={L}",
                f"{words}, in operations",
                f"times {min(times):.1f} to {max(times):.1f}, operations {min(counts):.2f} to {max(counts):.2f}",
                judge(max(counts) <= most, "the products with tangents grow with N·M, as do the GTM's, not with L"),
            )
        )
    return found


def _large() -> Finding:
    """Beyond the paper: many rows, where the products decide and not the calls around them."""
    setting = Setting("diabetes", 2, 16, 361, 0.5)
    with threadpool_limits(1):
        ratio = ratio_of_times(setting, 12, LARGER)
    return Finding(
        f"fig 15: the same for {LARGER} rows of diabetes, Q=2, L=16, M=361",
        "not given",
        f"time {ratio:.2f}, operations {ratio_of_operations(setting, LARGER):.2f}",
        "ours alone",
    )
