"""Where the training of ``UKR`` should end: distance to the true surface along the way down.

Latent points start from the best of several embeddings, as in ``UKR.fit``, and go down the cross-validated error to
its minimum. After each step the surface is compared with the true one, both ways: mean squared distance of the surface
from the truth where its density is in the domain, and of the truth from the surface; D is their sum. The table has
D where each rule ends over D at the best step, which nobody knows:

- ``start``: no step at all;
- ``noise``: ``stop="noise"``, where the error is down to what the noise leaves (the default);
- ``held out``: the step with the lowest projection error of as many new rows;
- ``ten``: the tenth step;
- ``mass``: the minimum under a penalty on rows with fewer neighbours than the median row had at the start, over the
  best step of the free way down;
- ``minimum``: ``stop="minimum"``, as Meinicke et al. have it.

The rule was developed on half circle, zig-zag and swiss roll (``--set develop``) and judged once on spiral, corkscrew
and epitrochoid with other seeds (``--set judge``, the default).

    python -m benchmarks.kernel_manifolds.ukr_stopping [--set develop|judge|fresh] [--seeds 100:103] [--full]
        [--figure FILE]
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.spatial import cKDTree

from prinfold import datasets
from prinfold._typing import FloatArray
from prinfold.datasets import Dataset
from prinfold.kernel_manifolds import latent_descent
from prinfold.kernel_manifolds.objective import KernelRegression, make_target
from prinfold.kernel_manifolds.starts import choose_start
from prinfold.kernel_manifolds.surface import KernelMap
from prinfold.loops import DESCENTS, Discrepancy
from prinfold.numerics.radial_kernels import PROFILES
from prinfold.rows.rows import blas_on_one_thread

STARTS = (("pca", "lle", "isomap", "loop"), ("pca", "lle", "isomap"))
"""Of curves and of surfaces, as UKR has them."""

STEPS = 200
RULES = ("start", "noise", "held out", "ten", "mass", "minimum")


class Trial(NamedTuple):
    """A simulator, its latent dimension, rows, noise, and columns to which isotropic noise extends it."""

    shape: str
    Q: int
    n: int
    noise: float
    D: int | None = None


MAKERS: dict[str, Callable[..., Dataset]] = {
    "half circle": datasets.make_half_circle,
    "zig-zag": datasets.make_zigzag,
    "swiss roll": datasets.make_swiss_roll,
    "spiral": datasets.make_spiral,
    "corkscrew": lambda *args, **options: datasets.make_corkscrew(*args, reading="conjectured", **options),
    "epitrochoid": datasets.make_epitrochoid,
    "circle": datasets.make_circle,
    "star": datasets.make_star,
    "ridge": datasets.make_ridge,
    "thesis surface": datasets.make_thesis_surface,
}

DEVELOP = [
    *(Trial("half circle", 1, n, noise) for n, noise in ((100, 0.1), (300, 0.05), (300, 0.1), (300, 0.2))),
    *(Trial("half circle", 1, 300, 0.2, D) for D in (5, 10, 30)),
    *(Trial("zig-zag", 1, 300, noise) for noise in (0.05, 0.1)),
    *(Trial("swiss roll", 2, n, noise) for n, noise in ((600, 0.5), (600, 1.0), (1000, 0.5))),
]
JUDGE = [
    *(Trial("spiral", 1, n, noise) for n, noise in ((300, 0.03), (300, 0.05), (600, 0.05), (600, 0.08))),
    *(Trial("spiral", 1, 300, 0.05, D) for D in (5, 20)),
    *(Trial("epitrochoid", 1, n, noise) for n, noise in ((300, 0.03), (500, 0.03), (500, 0.06))),
    *(Trial("corkscrew", 2, n, noise) for n, noise in ((600, 1.0), (1000, 1.0), (1000, 2.0))),
]

FRESH = [
    *(Trial("circle", 1, n, noise) for n, noise in ((200, 0.1), (300, 0.2))),
    *(Trial("star", 1, 500, noise) for noise in (0.03, 0.06)),
    *(Trial("ridge", 2, n, noise) for n, noise in ((400, 0.1), (784, 0.2))),
    *(Trial("thesis surface", 2, n, noise) for n, noise in ((400, 0.2), (784, 0.1))),
]
SETS = {"develop": DEVELOP, "judge": JUDGE, "fresh": FRESH}


class Truth:
    """The true surface, in D columns, and rows that were drawn about it."""

    def __init__(self, trial: Trial, seed: int) -> None:
        clean = MAKERS[trial.shape](trial.n, noise=0.0, rng=seed)
        assert clean.surface is not None
        self.surface, self.own = clean.surface, clean.X.shape[1]
        self.D = trial.D or self.own
        self.X = self.rows(trial, seed)
        self.new = self.rows(trial, seed + 10_000)
        rng = np.random.default_rng(1)
        self.points = self._wide(self.surface.point(self.surface.sample_latent(1500, rng, "area")))

    def rows(self, trial: Trial, seed: int) -> FloatArray:
        if trial.D is None:
            return MAKERS[trial.shape](trial.n, noise=trial.noise, noise_kind="normal", rng=seed).X
        clean = MAKERS[trial.shape](trial.n, noise=0.0, rng=seed).X
        return self._wide(clean) + trial.noise * np.random.default_rng(seed).standard_normal((trial.n, self.D))

    def _wide(self, points: FloatArray) -> FloatArray:
        return np.pad(points, ((0, 0), (0, self.D - self.own)))

    def squared_distance(self, points: FloatArray) -> FloatArray:
        beyond = np.square(points[:, self.own :]).sum(axis=1)
        return np.asarray(self.surface.distance(points[:, : self.own]) ** 2 + beyond)


def points_of(surface: KernelMap) -> tuple[FloatArray, FloatArray]:
    """Many points of a surface within its domain, and how much of it each stands for."""
    X, Q = surface.centers, surface.centers.shape[1]
    if Q == 1:
        Z = np.linspace(X.min(), X.max(), 1500)[:, None]
    else:
        rng = np.random.default_rng(5)
        Z = np.concatenate([X, *(X + 0.4 * rng.standard_normal(X.shape) for _ in range(6))])
    inside = surface.density(Z) >= surface.density(X).min() * (1 - 1e-9)
    points = surface.point(Z)
    share = np.ones(len(Z))
    if Q == 1:  # by length: where latent points crowd, the curve is not longer
        step = np.linalg.norm(np.diff(points, axis=0), axis=1)
        share = 0.5 * (np.append(step, 0) + np.insert(step, 0, 0))
    return points[inside], share[inside]


def distances(surface: KernelMap, offset: FloatArray, truth: Truth) -> tuple[float, float]:
    """D, and the mean squared distance of new rows from the surface."""
    points, share = points_of(surface)
    points = points + offset
    tree = cKDTree(points)
    there = np.average(truth.squared_distance(points), weights=share)
    back = np.mean(np.asarray(tree.query(truth.points)[0]) ** 2)
    return float(there + back), float(np.mean(np.asarray(tree.query(truth.new)[0]) ** 2))


def way_down(
    given: latent_descent.RegressionProblem, X: FloatArray, solver: str, term: Any = None
) -> Iterator[tuple[FloatArray, float]]:
    """Latent points and their error at each step."""
    walk = latent_descent.LatentDescent(given, DESCENTS[solver], term)
    place = walk.begin(X)
    for _ in range(STEPS):
        yield place.state.x, walk.measure(place)["typical"]
        place = walk.step(place)
        if place.state.settled:
            break


def keep_mass(mass: FloatArray, strength: float) -> Any:
    """A penalty on rows with less than the median mass of neighbours at the start."""
    least = float(np.median(mass))

    def term(m: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        lack = np.maximum(1.0 - m / least, 0.0)
        return strength * lack**2, -2.0 * strength * lack / least

    return term


class Path(NamedTuple):
    """Errors, distances to the truth and projection errors of new rows along a way, and the step of each rule."""

    error: FloatArray
    D: FloatArray
    new: FloatArray
    ends: dict[str, float]
    level: float
    steps: float
    """Until the level of the noise."""


def run(trial: Trial, seed: int, kernel: str, solver: str) -> Path:
    """One data set."""
    warnings.simplefilter("ignore")
    truth = Truth(trial, seed)
    offset = truth.X.mean(axis=0)
    Y, weight, profile = truth.X - offset, np.ones(trial.n), PROFILES[kernel]
    given = latent_descent.RegressionProblem(Y, KernelRegression(make_target(Y), weight, profile))
    with blas_on_one_thread():
        X = choose_start(Y, weight, trial.Q, given.error, profile, starts=STARTS[trial.Q > 1]).latent
        rule = latent_descent.noise_rule(given, X)
        assert isinstance(rule, Discrepancy)
        steps = list(way_down(given, X, solver))
        error = np.array([each for _, each in steps])
        # The truth is looked up at every step to begin with, and more rarely later, where little changes.
        seen = [i for i in range(len(steps)) if i < 30 or i % 10 == 0 or i == len(steps) - 1]
        found = np.array([distances(KernelMap(steps[i][0], Y, weight, profile), offset, truth) for i in seen])
        D, new = (
            np.interp(np.arange(len(steps)), seen, found[:, 0]),
            np.interp(np.arange(len(steps)), seen, found[:, 1]),
        )
        mass = keep_mass(given.regression.value(X).mass, 10 * error[0])
        *_, (held, _) = way_down(given, X, solver, mass)
        held_D = distances(KernelMap(held, Y, weight, profile), offset, truth)[0]
    below = np.flatnonzero(error[1:] <= rule.level) + 1  # one step is taken in any case
    ends = {
        "start": D[0],
        "noise": D[below[0] if len(below) else -1],
        "held out": D[int(np.argmin(new))],
        "ten": D[min(10, len(D) - 1)],
        "mass": held_D,
        "minimum": D[-1],
    }
    at = float(below[0] if len(below) else len(D) - 1)
    return Path(error, D, new, {name: value / D.min() for name, value in ends.items()}, rule.level, at)


def report(trials: list[Trial], found: dict[Trial, list[Path]]) -> None:
    """The table: medians over seeds, then over all."""
    print(f"{'shape':12} {'n':>5} {'noise':>6} {'D':>3}  {'best step':>9}  " + "  ".join(f"{r:>8}" for r in RULES))
    for trial in trials:
        paths = found[trial]
        best = np.median([int(np.argmin(path.D)) for path in paths])
        ratios = "  ".join(f"{np.median([path.ends[rule] for path in paths]):8.2f}" for rule in RULES)
        print(f"{trial.shape:12} {trial.n:5} {trial.noise:6g} {trial.D or '':>3}  {best:9.0f}  {ratios}")
    every = [path for trial in trials for path in found[trial]]
    for name, statistic in (("median", np.median), ("90 %", lambda v: np.quantile(v, 0.9))):
        print(f"{name:41}  " + "  ".join(f"{statistic([path.ends[rule] for path in every]):8.2f}" for rule in RULES))


def summarize(solver: str, paths: list[Path]) -> None:
    """How soon a way down is at the noise, and how near the truth it is there."""
    steps = np.median([path.steps for path in paths])
    D = np.exp(np.mean([np.log(path.ends["noise"] * path.D.min()) for path in paths]))
    print(f"{solver}: {steps:.0f} steps to the noise in the median, D there {D:.5g} in the geometric mean")


def draw(trials: list[Trial], found: dict[Trial, list[Path]], file: str) -> None:
    """Distance to the truth against the error along the way, and where rules end."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

    chosen = [trial for trial in trials if found[trial]][:12]
    columns = 4
    figure, axes = plt.subplots(-(-len(chosen) // columns), columns, figsize=(14, 3.2 * -(-len(chosen) // columns)))
    for ax, trial in zip(axes.flat, chosen, strict=False):
        path = found[trial][0]
        ax.plot(
            path.error / path.level * latent_descent.NOISE_SLACK, path.D / path.D.min(), ".-", lw=1, ms=3, color="0.4"
        )
        ax.axvline(latent_descent.NOISE_SLACK, color="tab:blue", lw=1)
        ax.plot(
            path.error[-1] / path.level * latent_descent.NOISE_SLACK, path.D[-1] / path.D.min(), "s", color="tab:red"
        )
        ax.set(xscale="log", yscale="log", xlabel="error / noise level", ylabel="D / least D")
        ax.set_title(f"{trial.shape}, n={trial.n}, noise {trial.noise:g}", fontsize=10)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_major_formatter(ScalarFormatter())
            axis.set_minor_formatter(NullFormatter())
    figure.tight_layout()
    figure.savefig(file, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=tuple(SETS), default="judge")
    parser.add_argument("--seeds", default="100:102", help="first and last-but-one seed")
    parser.add_argument("--full", action="store_true", help="all of the shapes rather than every third")
    parser.add_argument("--kernel", choices=tuple(PROFILES), default="gaussian")
    parser.add_argument("--solver", choices=tuple(DESCENTS), default="lbfgs")
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--figure", help="file to draw the ways down to")
    options = parser.parse_args()
    trials = SETS[options.set]
    trials = trials if options.full else trials[::3]
    seeds = range(*map(int, options.seeds.split(":")))
    jobs = [(trial, seed) for trial in trials for seed in seeds]
    paths = Parallel(options.jobs)(
        delayed(run)(trial, seed, options.kernel, options.solver) for trial, seed in reversed(jobs)
    )
    found: dict[Trial, list[Path]] = defaultdict(list)
    for (trial, _), path in zip(reversed(jobs), paths, strict=True):
        found[trial].insert(0, path)
    summarize(options.solver, [path for paths in found.values() for path in paths])
    print(f"UKR, {options.kernel} kernel, seeds {options.seeds}; D where a rule ends over D at the best step")
    report(trials, found)
    if options.figure:
        draw(trials, found, options.figure)


if __name__ == "__main__":
    main()
