"""What a GTM fit costs, as ratios to things measured in the same run.

    python benchmarks/gtm.py [--full]

Seconds per EM iteration against the two matrix products it cannot do without, against EM written plainly
with whole matrices, and against scikit-learn's spherical Gaussian mixture; memory beyond the data as rows
grow; time to import; the first fit of a fresh process against its second. Repetitions of all contestants
take turns and medians are reported, because machines are shared.
"""

from __future__ import annotations

import argparse
import gc
import subprocess
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import joblib
import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from prinfold import GTM
from prinfold.exceptions import PrinfoldWarning
from prinfold.latent import grid

SIZES = {
    "N=20000 D=50 K=900 M=103": {"n": 20_000, "D": 50, "nodes": 30, "basis": 10},
    "N=1000 D=12 K=400 M=84": {"n": 1000, "D": 12, "nodes": 20, "basis": 9},
}


def sheet(n: int, D: int, dtype: Any = np.float64, seed: int = 0) -> np.ndarray:
    """A bent sheet in D columns with noise of 0.1, which a GTM unfolds on."""
    rng = np.random.default_rng(seed)
    u = rng.uniform(-1, 1, (n, 2))
    curved = np.column_stack([u, np.sin(2 * u[:, 0]), u[:, 0] * u[:, 1], np.cos(3 * u[:, 1])])
    frame = np.linalg.qr(rng.normal(size=(D, 5)))[0]
    return (curved @ frame.T + 0.1 * rng.normal(size=(n, D))).astype(dtype)


# ------------------------------------------------------------------------------------- time per iteration


def plain_em(X: np.ndarray, Phi: np.ndarray, W: np.ndarray, beta: float, iterations: int, lam: float = 0.01) -> float:
    """EM as the thesis writes it, one whole N × K matrix after another; returns the log-likelihood."""
    T = X - X.mean(axis=0)
    n, D = T.shape
    mask = np.append(np.ones(Phi.shape[1] - 1), 0.0)
    for _ in range(iterations):
        Y = Phi @ W
        distance = (T**2).sum(axis=1)[:, None] - 2 * T @ Y.T + (Y**2).sum(axis=1)
        log_p = -0.5 * beta * distance
        total = logsumexp(log_p, axis=1)
        R = np.exp(log_p - total[:, None])
        mass = R.sum(axis=0)
        W = cho_solve(cho_factor(Phi.T @ (mass[:, None] * Phi) + lam * np.diag(mask)), Phi.T @ (R.T @ T))
        Y = Phi @ W
        distance = (T**2).sum(axis=1)[:, None] - 2 * T @ Y.T + (Y**2).sum(axis=1)
        beta = n * D / ((R * distance).sum() + lam * (mask @ (W**2).sum(axis=1)))
    return float(total.sum() + n * (0.5 * D * np.log(beta / (2 * np.pi)) - np.log(len(Phi))))


def contestants(X: np.ndarray, nodes: int, basis: int, iterations: int) -> dict[str, Callable[[], float]]:
    """Name → a function that returns its seconds per iteration once."""
    n, D = X.shape
    K = nodes * nodes
    options = {"nodes": nodes, "basis": basis, "tol": 0}
    start = GTM(max_iter=0, **options).fit(X)
    Phi = start.basis_.bind(start.latent_).features(grid(nodes, nodes).nodes)
    Y, R, moment = np.ones((K, D), X.dtype), np.full((n, K), 1 / K, X.dtype), np.empty((K, D), X.dtype)

    def ours() -> float:
        # History notes the time after each iteration, so that start, checks and diagnostics do not count.
        seconds = GTM(max_iter=iterations, **options).fit(X).history_["seconds"]
        return (seconds[-1] - seconds[0]) / iterations

    def products() -> float:
        clock = time.perf_counter()
        for _ in range(iterations):
            np.dot(X, Y.T, out=R)
            np.dot(R.T, X, out=moment)
        return (time.perf_counter() - clock) / iterations

    def plain() -> float:
        clock = time.perf_counter()
        plain_em(X, Phi, start.weights_, 1 / start.noise_variance_, max(1, iterations // 2))
        return (time.perf_counter() - clock) / max(1, iterations // 2)

    centres = start.inverse_transform(start.latent_.nodes).astype(X.dtype)
    settings = {"weights_init": np.full(K, 1 / K, X.dtype), "precisions_init": np.ones(K, X.dtype)}

    def mixture() -> float:
        k = max(1, iterations - 1)
        model = GaussianMixture(
            K, covariance_type="spherical", means_init=centres, init_params="random_from_data", tol=0, max_iter=k
        )
        model.set_params(**settings)
        clock = time.perf_counter()
        model.fit(X)
        # One M-step before the k iterations and one E-step after them make one more.
        return (time.perf_counter() - clock) / (k + 1)

    return {"prinfold GTM": ours, "two products": products, "plain NumPy EM": plain, "sklearn mixture": mixture}


def take_turns(
    runs: Mapping[str, Callable[[], float]], repeats: int, seldom: Mapping[str, int] | None = None
) -> dict[str, float]:
    """Medians of repetitions that take turns; ``seldom`` names those that run only so many times."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(repeats):
        for name, once in runs.items():
            if turn < (seldom or {}).get(name, repeats):
                seconds[name].append(once())
    return {name: float(np.median(values)) for name, values in seconds.items()}


def bench_iterations(full: bool) -> None:
    print("\nOne EM iteration in milliseconds, and the time of prinfold's as a multiple of the others'")
    heads = ("size", "type", "threads", "GTM", "products", "plain", "mixture", "/products", "/plain", "/mixture")
    widths = (26, 8, 7, 8, 8, 8, 8, 9, 7, 8)
    print("  ".join(h.rjust(w) for h, w in zip(heads, widths, strict=True)))
    for label, size in SIZES.items():
        large = size["n"] > 5000
        repeats, iterations = ((9, 10) if full else (3, 2)) if large else ((25, 20) if full else (7, 10))
        for dtype in (np.float64, np.float32):
            X = sheet(size["n"], size["D"], dtype)
            for threads in sorted({1, joblib.cpu_count()}):
                with threadpool_limits(threads):
                    runs = contestants(X, size["nodes"], size["basis"], iterations)
                    # The slow ones would take most of a quick run.
                    seldom = {"plain NumPy EM": 1, "sklearn mixture": 1} if large and not full else None
                    ms = {name: 1e3 * s for name, s in take_turns(runs, repeats, seldom).items()}
                ours, products, plain, mixture = ms.values()
                cells = [label, dtype.__name__, str(threads)]
                cells += [f"{v:.2f}" for v in (ours, products, plain, mixture)]
                cells += [f"{ours / v:.2f}" if v else "-" for v in (products, plain, mixture)]
                print("  ".join(c.rjust(w) for c, w in zip(cells, widths, strict=True)), flush=True)


# ------------------------------------------------------------------------------------------------- memory


def peak_beyond_data(n: int) -> float:
    """MiB that a fit allocates at its peak, the table not counted."""
    X = sheet(n, 10)
    gc.collect()
    tracemalloc.start()
    GTM(nodes=20, basis=6, max_iter=2, tol=0).fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def bench_memory(full: bool) -> None:
    print("\nMemory of a fit beyond the data, D=10, K=400 (the whole responsibility matrix would hold N × K)")
    peak_beyond_data(1000)  # imports and caches
    for n in (3000, 30_000, 300_000) + ((3_000_000,) if full else ()):
        whole = n * 400 * 8 / 2**20
        print(f"  N={n:>8}  data {n * 80 / 2**20:7.1f} MiB   peak {peak_beyond_data(n):7.1f} MiB   R {whole:8.1f} MiB")


# ------------------------------------------------------------------------------------ imports, first fit

FIRST_FIT = """
import time, warnings
import numpy as np
from prinfold import GTM
warnings.simplefilter("ignore")
X = np.random.default_rng(0).normal(size=(300, 5))
for _ in range(2):
    clock = time.perf_counter()
    GTM(max_iter=20, tol=0).fit(X)
    print(time.perf_counter() - clock)
"""


def run_python(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout


def timed(program: str) -> float:
    clock = time.perf_counter()
    run_python(program)
    return time.perf_counter() - clock


def bench_imports(full: bool) -> None:
    repeats = 21 if full else 9
    programs = {
        "nothing": "pass",
        "import sklearn.mixture": "import sklearn.mixture",
        "from prinfold import GTM": "from prinfold import GTM",
    }
    runs = {name: lambda program=program: timed(program) for name, program in programs.items()}
    take_turns(runs, 1)  # files into the cache
    seconds = take_turns(runs, repeats)
    bare, theirs, ours = seconds.values()
    print(f"\nImport, median of {repeats} fresh processes, an empty one ({bare:.2f} s) taken off")
    print(f"  import sklearn.mixture   {theirs - bare:.2f} s")
    print(f"  from prinfold import GTM {ours - bare:.2f} s, {(ours - bare) / (theirs - bare):.2f} × (wanted ≤ 1.3)")
    pairs = np.array([[float(line) for line in run_python(FIRST_FIT).split()] for _ in range(repeats)])
    first, second = np.median(pairs, axis=0)
    print(f"First small fit of a process (300 × 5, 20 iterations) {1e3 * first:.0f} ms, second {1e3 * second:.0f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="more repetitions and sizes")
    full = parser.parse_args().full
    warnings.simplefilter("ignore", PrinfoldWarning)
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(f"GTM benchmark, {joblib.cpu_count()} cores")
    bench_imports(full)
    bench_memory(full)
    bench_iterations(full)


if __name__ == "__main__":
    main()
