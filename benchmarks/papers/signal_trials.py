"""One cell of McQueen's section 5.3: a signal, its length and its noise; the contestants, and how far each is off."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from os import cpu_count

import numpy as np
from benchmarks.papers.wavelets import denoise_by_wavelets

from prinfold.density.bandwidths import plain_likelihood
from prinfold.density.ridges.signal_curve import SignalPoints, by_prediction, carry, height

SIZES = (32, 64, 128, 256, 512, 1024)
RATIOS = (0, 5, 10, 15, 20, 25)
"""Signal to noise in dB, 10 log₁₀ ‖D‖² / E‖ε‖²."""

NOISY, WAVELETS, SOFT = "samples as they are", "wavelets, hard", "wavelets, soft"
CURVE, TWICE, PREDICTING = "curve, likelihood", "curve, twice that", "curve, prediction"
UNIT, UNIT_TWICE = "curve in [0, 1]", "curve in [0, 1], twice"
CONTESTANTS = (NOISY, WAVELETS, SOFT, CURVE, TWICE, PREDICTING, UNIT, UNIT_TWICE)


def sinusoids(u: np.ndarray, cycles: float = 1.0) -> np.ndarray:
    """Two waves; the paper says "a function of sinusoids" and shows pictures. The faster has 2½ times the cycles."""
    return np.sin(2 * np.pi * cycles * u) + 0.5 * np.sin(5 * np.pi * cycles * u)


def corners(u: np.ndarray) -> np.ndarray:
    """A chain of straight lines; the paper gives neither formula nor picture."""
    return np.interp(u, [0.0, 0.2, 0.45, 0.6, 0.8, 1.0], [0.0, 1.5, -1.0, -0.5, 1.0, -1.0])


SIGNALS: dict[str, Callable[[np.ndarray], np.ndarray]] = {"sinusoids": sinusoids, "piecewise linear": corners}


@dataclass(frozen=True)
class Cell:
    """What is held fixed over the draws: which signal, how many samples, how much noise; ``cycles`` of sinusoids."""

    signal: str
    n: int
    ratio: float
    cycles: float = 1.0

    @property
    def clean(self) -> np.ndarray:
        u = np.arange(self.n) / self.n
        return sinusoids(u, self.cycles) if self.signal == "sinusoids" else SIGNALS[self.signal](u)

    @property
    def noise(self) -> float:
        return float(np.sqrt(np.square(self.clean).mean() / 10 ** (self.ratio / 10)))

    def draw(self, seed: int) -> np.ndarray:
        key = [seed, self.n, round(self.ratio), list(SIGNALS).index(self.signal), round(10 * self.cycles)]
        return self.clean + self.noise * np.random.default_rng(key).normal(size=self.n)


def likeliest(points: SignalPoints) -> float:
    """The paper's rule to the letter: every point has to be explained by the others."""
    return plain_likelihood(*points.unique, 1, np.random.default_rng(0))


def trial(job: tuple[Cell, int, tuple[str, ...]]) -> dict[str, float]:
    """Mean squared errors of the contestants asked for on one draw, and the bandwidths of the curves in samples."""
    cell, seed, asked = job
    x, clean = cell.draw(seed), cell.clean
    out = {NOISY: error(x, clean)}
    for name, kind in ((WAVELETS, "hard"), (SOFT, "soft")):
        out[name] = error(denoise_by_wavelets(x, kind, "periodic").signal, clean)
    value = (x - x.mean()) / x.std()
    if CURVE in asked:
        points = SignalPoints(np.arange(float(cell.n)), value)
        likely = likeliest(points)
        out["bandwidth"] = likely
        for name, bandwidth in ((CURVE, likely), (TWICE, 2.0 * likely)):
            out[name] = error(x.mean() + x.std() * height(carry(points, bandwidth), points.time), clean)
        if PREDICTING in asked:
            out["predicting bandwidth"] = by_prediction(points, likely)
            curve = height(carry(points, out["predicting bandwidth"]), points.time)
            out[PREDICTING] = error(x.mean() + x.std() * curve, clean)
    if UNIT in asked:
        points = SignalPoints(np.arange(cell.n) / (cell.n - 1), value)
        likely = likeliest(points)
        out["unit bandwidth"] = likely * (cell.n - 1)
        for name, bandwidth in ((UNIT, likely), (UNIT_TWICE, 2.0 * likely)):
            flowed = carry(points, bandwidth)
            # Where samples were carried, or the ridge at their times: whichever is nearer to the truth.
            readings = (flowed.points[:, 1], height(flowed, points.time))
            out[name] = min(error(x.mean() + x.std() * y, clean) for y in readings)
    return out


def error(estimate: np.ndarray, clean: np.ndarray) -> float:
    return float(np.square(estimate - clean).mean())


def trials(
    cells: Iterable[Cell], seeds: Sequence[int], asked: tuple[str, ...] = CONTESTANTS
) -> dict[Cell, dict[str, np.ndarray]]:
    """All cells on all seeds, over the processors there are: (seeds,) of each number that a trial gives."""
    cells = list(cells)
    jobs = [(cell, seed, asked) for cell in cells for seed in seeds]
    # Long ones first, so that no processor is left with one at the end.
    order = np.argsort([-job[0].n for job in jobs], kind="stable")
    found: dict[tuple[Cell, int], dict[str, float]] = {}
    with ProcessPoolExecutor(min(len(jobs), cpu_count() or 1)) as pool:
        results = pool.map(trial, [jobs[i] for i in order], chunksize=5)
        for i, result in zip(order, results, strict=True):
            found[jobs[i][:2]] = result
    return {
        cell: {name: np.array([found[cell, seed][name] for seed in seeds]) for name in found[cell, seeds[0]]}
        for cell in cells
    }
