"""What ridges of a density cost, how that grows, and what each choice on the way to them changes.

    python -m benchmarks.density.density_ridge [--full] [--only 1,3]

1. Against sconce-scms, where it is installed (in an environment of its own: it brings much along): every row of a
   noisy spiral carried to the ridge, by the same rule for when it has arrived. Seconds are those of the processor, of
   all threads together.
2. Growth with the number of rows at a fixed bandwidth, with crowded cells put together, in two and three columns.
3. Steps: mean shift alone beside Newton's near the ridge, and rows that end elsewhere; what tells the directions.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.timing import peak_mb, print_table

from prinfold import KernelDensity, datasets
from prinfold.density.ridges.mean_shift import Flow, FlowResult, Status
from prinfold.density.ridges.normals import NORMALS

BANDWIDTH, NOISE, ACCURATE = 0.08, 0.04, 1e-7


def of_processor(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of the processor, and what came out."""
    clock = time.process_time()
    found = work()
    return time.process_time() - clock, found


def helix(n: int, rng: int) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """A curve in three columns with noise in all of them, and the distance of points from it."""
    draw = np.random.default_rng(rng)

    def curve(t: np.ndarray) -> np.ndarray:
        return np.stack([np.cos(2 * np.pi * t), np.sin(2 * np.pi * t), 0.5 * t], axis=-1)

    fine = curve(np.linspace(-0.1, 3.1, 20_001))
    X = curve(draw.uniform(0, 3, n)) + draw.normal(0, NOISE, (n, 3))
    from scipy.spatial import cKDTree

    tree = cKDTree(fine)
    return X, lambda points: np.asarray(tree.query(points)[0])


def spiral(n: int, rng: int) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    data = datasets.make_spiral(n, noise=NOISE, rng=rng)
    return data.X, data.surface.distance


def carried(X: np.ndarray, accuracy: str = "truncated", **settings: Any) -> FlowResult:
    """Every row at the ridge, until the part of the gradient across it is below ``ACCURATE``, as sconce has it."""
    density = KernelDensity(X, np.ones(len(X)), BANDWIDTH, accuracy)
    return Flow(density, 1, tol=ACCURATE * BANDWIDTH, **settings)(X)


def rms(distance: np.ndarray) -> float:
    return float(np.sqrt(np.mean(distance**2)))


# ------------------------------------------------------------------------------------------------- 1. sconce


def bench_peer(full: bool) -> None:
    try:
        from sconce.EucSCMS import SCMSLog
    except ImportError:
        SCMSLog = None
        print("sconce-scms is not installed; its rows are left out")
    lines = []
    for n in (1000, 3000, 10_000) if full else (300, 1000):
        X, distance = spiral(n, 0)
        carried(X[:300])  # compiles what is to be compiled
        ours, found = of_processor(lambda X=X: carried(X))
        theirs = float("nan")
        away = float("nan")
        if SCMSLog is not None:
            with contextlib.redirect_stdout(io.StringIO()):
                theirs, path = of_processor(lambda X=X: SCMSLog(X, X, d=1, h=BANDWIDTH, eps=ACCURATE, max_iter=200))
            away = rms(distance(path[:, :, -1]))
        lines.append(
            [
                f"{n}",
                f"{ours:.3g}",
                f"{theirs:.3g}",
                f"{theirs / ours:.0f}",
                f"{rms(distance(found.points)):.5f}",
                f"{away:.5f}",
            ]
        )
    print_table(
        "1. a spiral carried to its ridge, beside sconce-scms",
        ["rows", "seconds", "sconce's", "ratio", "from the true curve", "sconce's"],
        lines,
    )


# ------------------------------------------------------------------------------------------------- 2. growth


def bench_growth(full: bool) -> None:
    sizes = (10_000, 30_000, 100_000, 300_000, 1_000_000) if full else (10_000, 30_000, 100_000)
    for name, make in (("two columns (spiral)", spiral), ("three columns (helix)", helix)):
        seconds, lines = [], []
        carried(make(3000, 1)[0], "compressed")  # compiles what is to be compiled
        for n in sizes:
            X, distance = make(n, 0)
            took, found = of_processor(lambda X=X: carried(X, "compressed"))
            seconds.append(took)
            memory = peak_mb(lambda X=X: carried(X, "compressed")) if n <= 300_000 else float("nan")
            some = found.points[:: max(1, n // 10_000)]
            lines.append(
                [
                    f"{n}",
                    f"{took:.3g}",
                    f"{1e6 * took / n:.3g}",
                    "" if len(seconds) == 1 else f"{np.log(took / seconds[0]) / np.log(n / sizes[0]):.2f}",
                    f"{found.n_iter.mean():.2f}",
                    f"{memory:.0f} ({memory * 1e6 / (8 * n * X.shape[1]):.0f})",
                    f"{rms(distance(some)):.5f}",
                ]
            )
        print_table(
            f"2. growth in {name} at bandwidth {BANDWIDTH}",
            ["rows", "seconds", "µs a row", "exponent", "steps", "MB (in tables X)", "from the true curve"],
            lines,
        )


# -------------------------------------------------------------------------------------------------- 3. steps


def bench_steps(full: bool) -> None:
    shapes = {
        "spiral": datasets.make_spiral(2000 if full else 1000, noise=NOISE, rng=0).X,
        "zig-zag": datasets.make_zigzag(2000 if full else 1000, rng=0).X,
        "epitrochoid": datasets.make_epitrochoid(2000 if full else 1000, rng=0).X,
        "star": datasets.make_star(2000 if full else 1000, rng=0).X,
    }
    lines = []
    for shape, rows in shapes.items():
        X = rows / rows.std() * 0.6
        settled = carried(X, newton=False).points
        for normal in NORMALS:
            for newton in (False, True):
                seconds, found = of_processor(
                    lambda X=X, normal=normal, newton=newton: carried(X, normal=NORMALS[normal](X, 30), newton=newton)
                )
                apart = np.linalg.norm(found.points - settled, axis=1) / BANDWIDTH
                lines.append(
                    [
                        shape,
                        normal,
                        "newton" if newton else "mean shift",
                        f"{found.n_iter.mean():.1f}",
                        f"{np.quantile(found.n_iter, 0.99):.0f}",
                        f"{seconds:.2f}",
                        f"{np.mean(found.status == Status.CONVERGED):.1%}",
                        f"{np.mean(apart > 0.01):.1%}",
                        f"{np.mean(apart > 0.5):.1%}",
                    ]
                )
    print_table(
        "3. steps; apart is from where mean shift by the inverse covariance ends, in bandwidths",
        ["data", "directions", "step", "steps", "99 %", "seconds", "on a ridge", "apart > 0.01", "> 0.5"],
        lines,
    )


BENCHES = {"1": bench_peer, "2": bench_growth, "3": bench_steps}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="at the sizes of the guide: half an hour with the peer")
    parser.add_argument("--only", default=",".join(BENCHES), help="which tables, such as 1,3")
    given = parser.parse_args()
    for name in given.only.split(","):
        BENCHES[name](given.full)


if __name__ == "__main__":
    main()
