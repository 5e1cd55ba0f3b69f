"""What denoising of signals costs and leaves: time by length, and errors on signals and noises of several kinds.

    python -m benchmarks.density.signals [--only 1,3] [--full]

Errors are the mean squared error of the estimate as a share of the samples' own, in per cent: 100 is no better than the
samples as they are. Every contestant sees the same draws. Times are those of this run. Wavelets come from PyWavelets
(``pip install --group bench``).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from benchmarks.timing import print_table
from papers.wavelets import WaveletSignal, denoise_by_wavelets

from prinfold import DenoisedSignal, denoise_signal

Denoise = Callable[[np.ndarray], DenoisedSignal | WaveletSignal]

WAYS: dict[str, Denoise] = {
    "ridge, prediction": denoise_signal,
    "ridge, likelihood": partial(denoise_signal, bandwidth="likelihood"),
    "wavelets, hard": denoise_by_wavelets,
    "wavelets, soft": partial(denoise_by_wavelets, threshold="soft"),
    "wavelets, periodic": partial(denoise_by_wavelets, boundary="periodic"),
}


# Signals on [0, 1]. The last four have the shapes on which Donoho & Johnstone (1994) tried wavelets.


def waves(u: np.ndarray) -> np.ndarray:
    return np.sin(2 * np.pi * u) + 0.5 * np.sin(5 * np.pi * u)


def trend(u: np.ndarray) -> np.ndarray:
    return 3.0 * u**2 + 0.3 * np.sin(6 * np.pi * u)


def corners(u: np.ndarray) -> np.ndarray:
    return np.interp(u, [0.0, 0.2, 0.45, 0.6, 0.8, 1.0], [0.0, 1.5, -1.0, -0.5, 1.0, -1.0])


PLACES = np.array([0.1, 0.13, 0.15, 0.23, 0.25, 0.40, 0.44, 0.65, 0.76, 0.78, 0.81])


def blocks(u: np.ndarray) -> np.ndarray:
    jumps = np.array([4.0, -5.0, 3.0, -4.0, 5.0, -4.2, 2.1, 4.3, -3.1, 2.1, -4.2])
    return np.asarray((jumps * (u[:, None] >= PLACES)).sum(axis=1))


def bumps(u: np.ndarray) -> np.ndarray:
    heights = np.array([4.0, 5.0, 3.0, 4.0, 5.0, 4.2, 2.1, 4.3, 3.1, 5.1, 4.2])
    widths = np.array([0.005, 0.005, 0.006, 0.01, 0.01, 0.03, 0.01, 0.01, 0.005, 0.008, 0.005])
    return np.asarray((heights / (1.0 + np.abs((u[:, None] - PLACES) / widths)) ** 4).sum(axis=1))


def heavisine(u: np.ndarray) -> np.ndarray:
    return 4.0 * np.sin(4 * np.pi * u) - np.sign(u - 0.3) - np.sign(0.72 - u)


def doppler(u: np.ndarray) -> np.ndarray:
    return np.sqrt(u * (1.0 - u)) * np.sin(2.1 * np.pi / (u + 0.05))


SIGNALS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    each.__name__: each for each in (waves, trend, corners, heavisine, doppler, blocks, bumps)
}


# Noises of unit variance.


def white(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=n)


def heavy(n: int, rng: np.random.Generator) -> np.ndarray:
    """Student's t with three degrees of freedom."""
    return rng.standard_t(3, size=n) / np.sqrt(3.0)


def spikes(n: int, rng: np.random.Generator) -> np.ndarray:
    """Every fiftieth or so ten times as large."""
    return rng.normal(size=n) * np.where(rng.uniform(size=n) < 0.02, 10.0, 1.0) / np.sqrt(0.98 + 0.02 * 100)


def lasting(n: int, rng: np.random.Generator) -> np.ndarray:
    """Half of what was goes on: a first-order autoregression."""
    noise = rng.normal(size=n)
    for i in range(1, n):
        noise[i] = 0.5 * noise[i - 1] + np.sqrt(0.75) * noise[i]
    return noise


NOISES: dict[str, Callable[[int, np.random.Generator], np.ndarray]] = {
    each.__name__: each for each in (white, heavy, spikes, lasting)
}


def draws(
    signal: str, n: int, decibels: float, seeds: int, noise: str = "white", even: bool = True
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Times, clean values and samples."""
    for seed in range(seeds):
        rng = np.random.default_rng([seed, n, round(decibels), list(SIGNALS).index(signal), even])
        u = (np.arange(n) + 0.5) / n if even else np.sort(rng.uniform(size=n))
        clean = SIGNALS[signal](u)
        scale = np.std(clean) / 10 ** (decibels / 20)
        yield u, clean, clean + scale * NOISES[noise](n, rng)


def left(estimate: np.ndarray, clean: np.ndarray, x: np.ndarray) -> float:
    return float(100 * np.square(estimate - clean).mean() / np.square(x - clean).mean())


def told(values: list[float]) -> str:
    """Geometric mean."""
    return f"{np.exp(np.mean(np.log(values))):.1f}"


# --------------------------------------------------------------------------------------------------------- tables


def table_1(full: bool) -> None:
    """Seconds by number of samples."""
    sizes = [2**k for k in range(8, 17 if full else 14, 1 if full else 2)]
    rows, any_signal = [], next(draws("waves", 512, 10, 1))[2]
    for name, denoise in WAYS.items():
        denoise(any_signal)  # what is compiled is compiled before the clock runs
        seconds = []
        for n in sizes:
            x = next(draws("waves", n, 10, 1))[2]
            best = np.inf
            for _ in range(3):
                clock = time.perf_counter()
                denoise(x)
                best = min(best, time.perf_counter() - clock)
            seconds.append(best)
        growth = np.log2(seconds[-1] / seconds[-2]) / np.log2(sizes[-1] / sizes[-2])
        rows.append((name, *(f"{1e3 * s:.1f}" for s in seconds), f"{growth:.2f}"))
    heads = ("milliseconds, N =", *map(str, sizes), "growth at the end")
    print_table("1. Time of one signal, the shortest of three runs", heads, rows)


def table_2(full: bool) -> None:
    """Which method for which signal."""
    seeds = 20 if full else 8
    for n, decibels in ((128, 10), (1024, 10), (1024, 20)):

        def cell(signal: str, denoise: Denoise, n: int = n, decibels: float = decibels) -> str:
            drawn = draws(signal, n, decibels, seeds)
            return told([left(denoise(x).signal, clean, x) for _, clean, x in drawn])

        rows = [(name, *(cell(signal, denoise) for signal in SIGNALS)) for name, denoise in WAYS.items()]
        title = f"2. Noise left, per cent, N = {n}, {decibels} dB, geometric mean of {seeds} draws"
        print_table(title, ("method", *SIGNALS), rows)


def table_3(full: bool) -> None:
    """Uneven times: the ridge as it comes, wavelets after interpolation at even steps and back."""
    seeds, n = (20 if full else 8), 256
    found: dict[str, list[str]] = {"ridge, prediction": [], "ridge, likelihood": [], "wavelets, interpolated": []}
    for signal in SIGNALS:
        errors: dict[str, list[float]] = {name: [] for name in found}
        for u, clean, x in draws(signal, n, 10, seeds, even=False):
            grid = np.linspace(u[0], u[-1], n)
            even = denoise_by_wavelets(np.interp(grid, u, x)).signal
            errors["wavelets, interpolated"].append(left(np.interp(u, grid, even), clean, x))
            for bandwidth in ("prediction", "likelihood"):
                curve = denoise_signal(x, time=u, bandwidth=bandwidth).signal
                errors[f"ridge, {bandwidth}"].append(left(curve, clean, x))
        for name, values in errors.items():
            found[name].append(told(values))
    rows = [(name, *values) for name, values in found.items()]
    print_table(f"3. Noise left, per cent, at uneven times, N = {n}, 10 dB, {seeds} draws", ("method", *SIGNALS), rows)


def table_4(full: bool) -> None:
    """Noise that is not white and normal."""
    seeds, n = (20 if full else 8), 512
    rows = []
    for name, denoise in WAYS.items():
        cells = []
        for noise in NOISES:
            found = [(denoise(x), d, x) for _, d, x in draws("waves", n, 10, seeds, noise)]
            errors = told([left(each.signal, d, x) for each, d, x in found])
            size = np.mean([each.noise / (np.std(d) / 10**0.5) for each, d, _ in found])
            cells.append(f"{errors} (σ × {size:.2f})")
        rows.append((name, *cells))
    title = (
        f"4. Noise left, per cent, and the estimated size of the noise as a multiple of the true; waves, N = {n}, 10 dB"
    )
    print_table(title, ("method", *NOISES), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="twenty draws rather than eight, longer signals")
    parser.add_argument("--only", default="1,2,3,4", help="tables to run, such as 1,3")
    options = parser.parse_args()
    tables = {"1": table_1, "2": table_2, "3": table_3, "4": table_4}
    for number in options.only.split(","):
        tables[number](options.full)


if __name__ == "__main__":
    main()
