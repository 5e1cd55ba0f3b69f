"""Section 4.1 of Meinicke et al.: a curve through a noisy spiral, figures 1 and 2 and table 1."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from benchmarks.papers.reporting import COLORS, Figures, Finding, judge, spread
from sklearn.exceptions import ConvergenceWarning

from prinfold import UKR, datasets

STEPS = (0, 200, 500, 1000)
CV = (0.00429, 0.00189, 0.00182, 0.00178)
PROJECTION = (0.00287, 0.00244, 0.00237, 0.00232)
GOOD = 0.006
"""Errors of the start below which a sample is as fortunate as the printed one, 0.00429."""

PAPER = {"init": ("lle", "pca"), "n_neighbors": tuple(range(4, 15)), "solver": "rprop", "stop": "minimum", "tol": 0}


NOISE_STOP = {"stop": "noise", "tol": 1e-9}
"""With a tolerance of 0 training would go on, and only keep what it had at the level of the noise."""


class Stage(NamedTuple):
    """A curve at some step: errors, squared distance from it to the true one, and its length."""

    error: float
    projection: float
    distance: float
    length: float


class Trial(NamedTuple):
    """One sample: its stages by step, and the curve where the noise says to stop."""

    stages: tuple[Stage, ...]
    stopped: Stage

    @property
    def is_good(self) -> bool:
        return self.stages[0].error < GOOD


def curve(data: datasets.Dataset, n_steps: int = 500, **options: Any) -> UKR:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the number of steps is given
        return UKR(1, max_iter=n_steps, **options).fit(data.X)


def stage(model: UKR, data: datasets.Dataset, new: np.ndarray) -> Stage:
    mesh = model.mesh()
    ends = mesh.vertices[mesh.faces]
    length = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
    apart = data.surface.distance(ends.mean(axis=1)) ** 2
    return Stage(
        model.history_["error"][-1], model.projection_error(new), float(np.average(apart, weights=length)), length.sum()
    )


@cache
def trial(seed: int) -> Trial:
    data, new = datasets.make_spiral(300, rng=seed), datasets.make_spiral(3000, rng=[seed, 1]).X
    first = curve(data, 0, **PAPER)
    # The same start again, without looking for it.
    again = PAPER | {"init": first.embedding_, "bandwidth": float(1 / first.embedding_.std())}
    models = [first, *(curve(data, n, **again) for n in STEPS[1:])]
    stopped = curve(data, STEPS[-1], **again | NOISE_STOP)
    return Trial(tuple(stage(m, data, new) for m in models), stage(stopped, data, new))


def spiral(figures: Figures) -> list[Finding]:
    trials = {seed: trial(seed) for seed in range(100 if figures.full else 20)}
    everyone, good = list(trials.values()), [found for found in trials.values() if found.is_good]
    best = min(trials, key=lambda seed: trials[seed].stages[0].error)
    figure_1(figures, best)
    figure_2(figures, best)
    told_apart = [found for found in everyone if found.stages[-1].distance < 0.004]
    return [
        *(as_printed(everyone, i) for i in range(len(STEPS))),
        *(fortunate(good, i) for i in range(len(STEPS)) if len(good) > 1),
        falling(everyone),
        *([truth(good, "that start as well")] if good else []),
        truth(told_apart, "whose arms are told apart"),
    ]


def errors(trials: list[Trial], i: int) -> tuple[list[float], list[float]]:
    """Cross-validated and projection errors at one of the steps."""
    return [t.stages[i].error for t in trials], [t.stages[i].projection for t in trials]


def as_printed(trials: list[Trial], i: int) -> Finding:
    """Table 1 over all samples: the paper has one."""
    cv, projection = errors(trials, i)
    lower = [int(np.sum(np.array(ours) <= printed)) for ours, printed in ((cv, CV[i]), (projection, PROJECTION[i]))]
    n = len(trials)
    return Finding(
        f"table 1, {STEPS[i]} steps, all {n} samples: CV error, projection error of 3000 rows",
        f"{CV[i]:.5f}, {PROJECTION[i]:.5f}",
        f"{spread(cv, 5)}, {spread(projection, 5)}; medians {np.median(cv):.5f}, {np.median(projection):.5f}",
        judge(min(lower) >= n / 4, f"{lower[0]} and {lower[1]} of {n} samples are as low as the printed"),
    )


def fortunate(trials: list[Trial], i: int) -> Finding:
    """Table 1 over samples that start as well as the printed."""
    cv, projection = errors(trials, i)
    off = [100 * (np.mean(ours) / printed - 1) for ours, printed in ((cv, CV[i]), (projection, PROJECTION[i]))]
    words = f"{off[0]:+.0f} % and {off[1]:+.0f} %"
    return Finding(
        f"table 1, {STEPS[i]} steps, the {len(trials)} samples that start below {GOOD}: the same",
        f"{CV[i]:.5f}, {PROJECTION[i]:.5f}",
        f"{spread(cv, 5)}, {spread(projection, 5)}",
        judge(max(map(abs, off)) < 10, words, words),
    )


def falling(trials: list[Trial]) -> Finding:
    last = [t.stages[-1] for t in trials]
    half = [t.stages[2] for t in trials]
    fewer = sum(a.error < b.error for a, b in zip(last, half, strict=True))
    test = sum(a.projection < b.projection for a, b in zip(last, half, strict=True))
    change = np.median([1 - a.error / b.error for a, b in zip(last, half, strict=True)])
    n = len(trials)
    return Finding(
        "section 4.1: both errors go on falling from 500 to 1000 steps, by little",
        "CV 2 %, projection 2 %",
        f"CV falls on {fewer} of {n} samples (by {100 * change:.1f} % at the median), projection on {test}",
        judge(fewer > 0.9 * n and test > 0.6 * n, "not on most samples"),
    )


def truth(trials: list[Trial], which: str) -> Finding:
    """What the paper does not look at: how far the curve is from the true one."""
    rows = [[t.stages[i] for t in trials] for i in (0, 1, 3)] + [[t.stopped for t in trials]]
    apart = [np.median([s.distance for s in row]) for row in rows]
    length = [np.median([s.length for s in row]) for row in rows]
    names = ("start", "200 steps", "1000 steps", "stop='noise'")
    parts = [f"{n} {d:.5f}, {size:.1f}" for n, d, size in zip(names, apart, length, strict=True)]
    return Finding(
        f"not in the paper: squared distance to the true spiral and length (true {true_length():.1f}), medians over "
        f"the {len(trials)} samples {which}",
        '"not over-fitting"',
        "; ".join(parts),
        judge(apart[2] <= apart[3], "curves at the minimum follow the noise; both errors fall all the same"),
    )


def true_length() -> float:
    grid = np.linspace(0, 4 * np.pi, 5000)
    radius = 0.2 + grid / (4 * np.pi)
    line = radius[:, None] * np.stack([np.cos(grid), np.sin(grid)], axis=1)
    return float(np.linalg.norm(np.diff(line, axis=0), axis=1).sum())


# ----------------------------------------------------------------------------------------------------- figures


def draw(ax: plt.Axes, model: UKR, data: datasets.Dataset) -> None:
    """A curve from the smallest to the largest latent coordinate, as the paper has it, and the rows."""
    z = np.linspace(model.latent_.centers.min(), model.latent_.centers.max(), 1000)
    ax.plot(*data.X.T, ".", color="0.6", ms=2.5)
    ax.plot(*model.inverse_transform(z[:, None], extrapolate=True).T, color="k", lw=1)
    ax.set(xticks=[], yticks=[], aspect="equal")


def figure_1(figures: Figures, seed: int) -> None:
    data = datasets.make_spiral(300, rng=seed)
    figure, axes = plt.subplots(3, 4, figsize=(9, 7), layout="constrained")
    for ax, size in zip(axes.flat, (*range(4, 15), 0), strict=True):
        try:
            start = {"n_neighbors": size, "init": "lle"} if size else {"init": "pca"}
            model = curve(data, 0, **PAPER | start)
        except ValueError as error:  # a neighbourhood graph in pieces
            ax.text(0.5, 0.5, str(error)[:60], ha="center", wrap=True, transform=ax.transAxes, size=6)
            ax.set_axis_off()
            continue
        draw(ax, model, data)
        ax.set_title(f"{f'LLE, K = {size}' if size else 'PCA'}: {model.history_['error'][0]:.4f}")
    figures.save(figure, "ukr-figure-1")
    plt.close(figure)


def figure_2(figures: Figures, seed: int) -> None:
    data = datasets.make_spiral(300, rng=seed)
    figure, axes = plt.subplots(1, 5, figsize=(13, 3), layout="constrained")
    options = [(f"{n} steps", n, PAPER) for n in STEPS] + [("stop='noise'", STEPS[-1], PAPER | NOISE_STOP)]
    for ax, (name, n_steps, settings) in zip(axes, options, strict=True):
        model = curve(data, n_steps, **settings)
        draw(ax, model, data)
        true = data.surface.point(np.linspace(0, 4 * np.pi, 500)[:, None])
        ax.plot(*true.T, color=COLORS[1], lw=0.8, ls="--")
        ax.set_title(f"{name}: {model.history_['error'][-1]:.5f}")
    figures.save(figure, "ukr-figure-2")
    plt.close(figure)
