"""McQueen, section 5.3: signals freed of noise by principal curve and by wavelets, figures 6 to 8 and the crossover.

    python -m benchmarks.papers.scms_signals [--only figures time crossover] [--full] [--out folder]

Eight draws of every cell, or with ``--full`` the paper's hundred. The paper shows its signals in pictures only; ours
are two sinusoids, of 1 and 2½ cycles, and a chain of five straight lines.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from benchmarks.papers.reporting import COLORS, MARKERS, Figures, Finding, judge, run
from benchmarks.papers.signal_trials import (
    CONTESTANTS,
    CURVE,
    NOISY,
    PREDICTING,
    RATIOS,
    SIGNALS,
    SIZES,
    TWICE,
    UNIT,
    UNIT_TWICE,
    WAVELETS,
    Cell,
    trials,
)

from prinfold import denoise_signal

Results = dict[Cell, dict[str, np.ndarray]]

LINES = (WAVELETS, CURVE, TWICE, PREDICTING)
IN_SAMPLES = tuple(name for name in CONTESTANTS if name not in {UNIT, UNIT_TWICE})
CYCLES = (0.5, 1.0, 2.0, 4.0)


@cache
def results(full: bool) -> Results:
    """Every signal, length and ratio with time in samples."""
    cells = [Cell(signal, n, ratio) for signal in SIGNALS for n in SIZES for ratio in RATIOS]
    found = trials(cells, range(100 if full else 8), IN_SAMPLES)
    for signal in SIGNALS:
        print_errors(found, signal, IN_SAMPLES)
    return found


def print_errors(found: Results, signal: str, names: tuple[str, ...]) -> None:
    """Mean log errors with the standard deviation of a draw, by length and ratio."""
    print(f"  {signal}: mean of log MSE over {len(next(iter(found.values()))[NOISY])} draws ± deviation of one")
    print("  " + "n".rjust(5) + "dB".rjust(4) + "".join(name.rjust(26) for name in names))
    for cell, errors in found.items():
        if cell.signal == signal:
            logs = [np.log(errors[name]) for name in names]
            cells = "".join(f"{log.mean():.2f} ± {log.std(ddof=1):.2f}".rjust(26) for log in logs)
            print(f"  {cell.n:5d}{cell.ratio:4.0f}{cells}")


def compared(found: Results, signal: str, n: int, one: str, other: str) -> list[int]:
    """For each ratio 1 where ``one`` is better by two standard errors of the paired differences, −1 worse, else 0."""
    verdicts = []
    for cell, errors in found.items():
        if (cell.signal, cell.n) == (signal, n):
            gain = np.log(errors[other]) - np.log(errors[one])
            slack = 2.0 * gain.std(ddof=1) / np.sqrt(len(gain))
            verdicts.append(int(gain.mean() > slack) - int(gain.mean() < -slack))
    return verdicts


def said(verdicts: list[int]) -> str:
    words = {1: "better", 0: "level", -1: "worse"}
    return ", ".join(
        f"{words[v]} at " + " ".join(str(r) for r, each in zip(RATIOS, verdicts, strict=True) if each == v) + " dB"
        for v in (1, 0, -1)
        if v in verdicts
    )


# ------------------------------------------------------------------------------------------------------- figures


def figures_6_to_8(figures: Figures) -> list[Finding]:
    """Errors by ratio for every length, the principal curve beside wavelets."""
    found, findings = results(figures.full), []
    pages = {"6": (32, 64), "7": (128, 256), "8": (512, 1024)}
    for signal, name in (("sinusoids", "scms-fig"), ("piecewise linear", "scms-appendix")):
        for number, sizes in pages.items():
            draw_page(figures, found, signal, sizes, f"{name}-{number}")
        findings += [claim(found, signal, n) for n in SIZES]
    return [*findings, *stagnation(found)]


def claim(found: Results, signal: str, n: int) -> Finding:
    """Who is better at one length: the curve up to the first of two lengths, wavelets beyond the second."""
    verdicts = compared(found, signal, n, CURVE, WAVELETS)
    few, many = (64, 64) if signal == "sinusoids" else (32, 64)
    sign = int(n <= few) - int(n > many)
    published = {1: "the curve, at any ratio", 0: "— (changes hands)", -1: "the wavelets"}[sign]
    mostly = "in part: it depends on the ratio" if sign * sum(verdicts) > 0 else "not so with this signal"
    holds = judge(all(v == sign for v in verdicts), mostly) if sign else ""
    return Finding(f"{signal}, N = {n}: which is better?", published, f"the curve is {said(verdicts)}", holds)


def mean_log(found: Results, signal: str, n: int, name: str) -> float:
    """Mean log error relative to the variance of the noise, over ratios."""
    return float(
        np.mean(
            [
                np.log(errors[name]).mean() - 2.0 * np.log(cell.noise)
                for cell, errors in found.items()
                if (cell.signal, cell.n) == (signal, n)
            ]
        )
    )


def stagnation(found: Results) -> list[Finding]:
    """What more samples do: to the errors as a share of the noise's variance, and to the bandwidths."""
    shares = {
        name: [100 * np.exp(mean_log(found, "sinusoids", n, name)) for n in (128, 1024)] for name in (*LINES, NOISY)
    }
    widths = {
        what: [np.mean([e[what].mean() for c, e in found.items() if c.n == n]) for n in SIZES]
        for what in ("bandwidth", "predicting bandwidth")
    }
    listed = {name: f"{a:.0f} % at N = 128, {b:.1f} % at 1024" for name, (a, b) in shares.items()}
    return [
        Finding(
            "sinusoids: noise left by the curve",
            "stagnates regardless of sample size",
            listed[CURVE],
            judge(shares[CURVE][1] > 0.85 * shares[CURVE][0], "it falls", "wavelets: " + listed[WAVELETS]),
        ),
        Finding(
            "likeliest bandwidth in samples, N = 32 to 1024",
            "—",
            ", ".join(f"{h:.2f}" for h in widths["bandwidth"]),
            "this is why: more samples of the same curve are smoothed no more",
        ),
        Finding(
            "sinusoids: noise left with twice that bandwidth",
            "—",
            listed[TWICE],
            f"stagnates too; at N = 32 it is {said(compared(found, 'sinusoids', 32, TWICE, CURVE))} than the likeliest",
        ),
        Finding(
            "sinusoids: noise left with the predicting bandwidth",
            "— (a bandwidth made for signals is wished for)",
            listed[PREDICTING],
            "bandwidth in samples " + ", ".join(f"{h:.1f}" for h in widths["predicting bandwidth"]),
        ),
        *(
            Finding(
                f"{signal}: the curve with the predicting bandwidth beside wavelets",
                "—",
                "; ".join(f"N = {n}: {said(compared(found, signal, n, PREDICTING, WAVELETS))}" for n in SIZES),
                "",
            )
            for signal in SIGNALS
        ),
    ]


def draw_page(figures: Figures, found: Results, signal: str, sizes: tuple[int, ...], name: str) -> None:
    figure, axes = plt.subplots(
        2, len(sizes), figsize=(9, 6), height_ratios=(1, 2.4), sharex="row", sharey="row", layout="constrained"
    )
    for column, n in enumerate(sizes):
        top, bottom = axes[:, column]
        cell = Cell(signal, n, RATIOS[2])
        u = np.arange(n) / n
        top.plot(u, cell.draw(0), ".", color="0.7", ms=2 if n > 200 else 4)
        top.plot(u, cell.clean, color="black", lw=1.2)
        top.set(title=f"{signal}, N = {n}: truth, and samples at {RATIOS[2]} dB", xlabel="time")
        draw_errors(bottom, {c.ratio: e for c, e in found.items() if (c.signal, c.n) == (signal, n)})
    axes[1, 0].set_ylabel("log mean squared error")
    axes[1, 0].legend(frameon=False, fontsize=8)
    figures.save(figure, name)
    plt.close(figure)


def draw_errors(ax: Any, errors: dict[float, dict[str, np.ndarray]]) -> None:
    ratios = list(errors)
    noisy = [np.log(errors[r][NOISY]).mean() for r in ratios]
    ax.plot(ratios, noisy, color="0.5", ls=":", label=NOISY)
    for name, color, marker in zip(LINES, COLORS, MARKERS, strict=True):
        logs = np.array([np.log(errors[r][name]) for r in ratios])
        mean, deviation = logs.mean(axis=1), logs.std(axis=1, ddof=1)
        ax.plot(ratios, mean, color=color, marker=marker, ms=4, label=name)
        ax.fill_between(ratios, mean - deviation, mean + deviation, color=color, alpha=0.15, lw=0)
    ax.set(xlabel="signal to noise, dB")


# ---------------------------------------------------------------------------------------------------- time scaling


def time_in_unit_interval(figures: Figures) -> list[Finding]:
    """The same with time from 0 to 1 instead of in samples."""
    cells = [Cell(signal, n, ratio) for signal in SIGNALS for n in SIZES for ratio in RATIOS]
    found = trials(cells, range(20 if figures.full else 4), (UNIT,))
    for signal in SIGNALS:
        print_errors(found, signal, (NOISY, WAVELETS, UNIT, UNIT_TWICE))
    findings = []
    for name in (UNIT, UNIT_TWICE):
        wins = [
            (signal, n, said(verdicts))
            for signal in SIGNALS
            for n in SIZES
            if 1 in (verdicts := compared(found, signal, n, name, WAVELETS))
        ]
        gains = [float((np.log(e[name]) - np.log(e[NOISY])).mean()) for e in found.values()]
        findings.append(
            Finding(
                f"{name}: where is it better than wavelets?",
                "unit of time not given",
                "; ".join(f"{s}, N = {n}: {words}" for s, n, words in wins) or "nowhere",
                f"errors are {100 * np.exp(np.median(gains)):.0f} % of the samples' own in the median cell, "
                f"{100 * np.exp(min(gains)):.0f} % in the best, {100 * np.exp(max(gains)):.0f} % in the worst",
            )
        )
    draw_time(figures)
    return findings


def draw_time(figures: Figures) -> None:
    """One draw with time in three units and the likeliest bandwidth, and with the predicting one: where samples go."""
    cell = Cell("sinusoids", 256, 10)
    x, u = cell.draw(0), np.arange(cell.n) / cell.n
    panels = {
        "time in [0, 1]": {"time_step": 1.0 / (cell.n - 1), "bandwidth": "likelihood"},
        "steps of 0.1": {"time_step": 0.1, "bandwidth": "likelihood"},
        "steps of 1": {"bandwidth": "likelihood"},
        "steps of 1, predicting": {"bandwidth": "prediction"},
    }
    figure, axes = plt.subplots(1, 4, figsize=(15, 3.2), sharey=True, layout="constrained")
    for ax, (name, options) in zip(axes, panels.items(), strict=True):
        found = denoise_signal(x, time=u, **options)
        left = np.square(found.signal - cell.clean).mean() / cell.noise**2
        ax.plot(u, x, ".", color="0.75", ms=3)
        ax.plot(u, cell.clean, color="black", lw=1)
        ax.plot(*found.points.T, "o", color=COLORS[1], ms=2)
        ax.set(title=f"{name}: h = {found.bandwidth:.2g}, {100 * left:.0f} % of the noise left", xlabel="time")
    figures.save(figure, "scms-time-scaling")
    plt.close(figure)


# ------------------------------------------------------------------------------------------------------- crossover


def crossover(figures: Figures) -> list[Finding]:
    """From which length on wavelets are better, by the number of cycles."""
    cells = [Cell("sinusoids", n, ratio, c) for c in CYCLES for n in SIZES for ratio in (5, 15)]
    found = trials(cells, range(30 if figures.full else 5), (CURVE, PREDICTING))
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), sharey=True, layout="constrained")
    crossings: dict[int, list[float]] = {}
    for ax, ratio in zip(axes, (5, 15), strict=True):
        for cycles, color, marker in zip(CYCLES, COLORS, MARKERS, strict=True):
            chosen = [(c, e) for c, e in found.items() if (c.cycles, c.ratio) == (cycles, ratio)]
            each = np.array([c.n / (2.5 * cycles) for c, _ in chosen])
            gain = np.array([(np.log(e[WAVELETS]) - np.log(e[CURVE])).mean() for _, e in chosen])
            ax.plot(each, gain, color=color, marker=marker, label=f"{cycles:g} and {2.5 * cycles:g} cycles")
            crossings.setdefault(ratio, []).append(crossing(each, gain))
        ax.axhline(0, color="black", lw=0.8)
        ax.set(xscale="log", xlabel="samples in a cycle of the faster wave", title=f"{ratio} dB")
    axes[0].set_ylabel("log MSE of wavelets − curve's")
    axes[1].legend(frameon=False)
    figures.save(figure, "scms-crossover")
    plt.close(figure)
    return [
        Finding(
            f"crossover at {ratio} dB, for 0.5 to 4 cycles of the slower wave",
            "between N = 64 and 128" if ratio == 15 else "",
            "N = " + ", ".join(f"{2.5 * c * s:.0f}" for c, s in zip(CYCLES, samples, strict=True)),
            "in samples of the faster wave's cycle " + ", ".join(f"{s:.0f}" for s in samples),
        )
        for ratio, samples in crossings.items()
    ]


def crossing(each: np.ndarray, gain: np.ndarray) -> float:
    """Where the gain last falls below zero, by a straight line in the logarithm of the samples; NaN if it does not."""
    falls = np.flatnonzero((gain[:-1] > 0) & (gain[1:] <= 0))
    if not len(falls):
        return float("nan")
    k = falls[-1]
    share = gain[k] / (gain[k] - gain[k + 1])
    return float(np.exp(np.log(each[k]) + share * np.log(each[k + 1] / each[k])))


if __name__ == "__main__":
    run(
        "McQueen, section 5.3: denoising of signals",
        {"figures": figures_6_to_8, "time": time_in_unit_interval, "crossover": crossover},
        "benchmarks/results/scms_signals",
        "a hundred draws of each cell rather than eight",
    )
