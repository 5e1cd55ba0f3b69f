"""What an epoch of a self-organising map costs and leaves, beside somoclu and MiniSom where they are installed.

    python -m benchmarks.som [--peers FOLDER] [--rows 10000] [--epochs 10] [--turns 3] [--tables 20] [--only 1,2,3]

All begin with the same vectors and go through the same widths, linear from 5 node spacings towards 1, as standard
deviations of a Gaussian; somoclu has half its radius for one, and MiniSom's rate is held at 1 in batches. All return
the vectors after the last update. Online our width falls within epochs too and rows come in another order than
MiniSom's. The quantisation error is the mean distance of rows to the nearest vector, computed alike for all, in float64
from differences. ``--peers`` names a folder with packages, which is looked into last.

1. An epoch. Times are those of a whole call, its checks and its start included, over its epochs, the least of several
   turns: by the clock, and of the processor, all threads together, which others on the machine disturb less. The floor
   is the product K×D·D×N with the sums of rows by node, N×D additions.
2. Errors at one schedule, on several tables of 2000 rows, relative to ours. Beside the packages stand plain loops over
   rows and nodes: in float64, and in float32 with the factors that somoclu multiplies its kernels with, which would
   cancel but for rounding.
3. Thesis figures 4.6 to 4.11 in numbers: rank correlations of the U-matrix with the magnification of the batch SOM at
   its nodes, and of the SOM's with the GTM's and, on the ridge, with the true one, at the rows. The second table, of
   crabs, does not come with prinfold and is left out where it is not found.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Callable

import numpy as np
import scipy.sparse
from benchmarks.timing import print_table, take_turns
from numba import njit
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr
from threadpoolctl import threadpool_limits

from prinfold import GTM, SOM, Schedule, datasets
from prinfold.exceptions import DataNotFoundError

SIDE, COLUMNS, FIRST = 20, 50, 5.0
_SAME = 1e-12  # errors as near as that differ by the rounding of float64
Run = Callable[[], float]


class Clock:
    """Seconds by the clock, returned, and of the processor, of which the least is kept for each name."""

    def __init__(self) -> None:
        self.busy: dict[str, float] = {}

    def time(self, name: str, work: Callable[[], object], epochs: int) -> float:
        wall, busy = time.perf_counter(), time.process_time()
        work()
        busy, wall = time.process_time() - busy, time.perf_counter() - wall
        self.busy[name] = min(busy / epochs, self.busy.get(name, np.inf))
        return wall / epochs


def sheet(n: int, seed: int = 0) -> np.ndarray:
    """A bent sheet in many columns, with noise."""
    rng = np.random.default_rng(seed)
    u, v = rng.uniform(-1, 1, (2, n))
    waves = np.stack([u, v, np.sin(3 * u), np.cos(3 * v), u * v], axis=1)
    return waves @ rng.normal(size=(5, COLUMNS)) + 0.3 * rng.normal(size=(n, COLUMNS))


def quantization_error(X: np.ndarray, codebook: np.ndarray) -> float:
    nearest = [cdist(X[i : i + 1000], codebook).min(axis=1) for i in range(0, len(X), 1000)]
    return float(np.concatenate(nearest).mean())


class Contest:
    """One start and one schedule for all; each contestant leaves the vectors that it came to."""

    def __init__(self, X: np.ndarray, epochs: int) -> None:
        self.X, self.epochs, self.clock = X, epochs, Clock()
        self.start = SOM(nodes=SIDE, max_iter=0, tol=0).fit(X).codebook_
        self.last = FIRST + (epochs - 1) * (1.0 - FIRST) / epochs  # where MiniSom's line ends
        self.found: dict[str, np.ndarray] = {}

    def ours(self, name: str, dtype: type, **settings: object) -> Run:
        X = self.X.astype(dtype)
        width = Schedule(FIRST, self.last, epochs=self.epochs, shape="linear")

        def run() -> float:
            model = SOM(
                nodes=SIDE, init=self.start, width=width, max_iter=self.epochs, tol=0, random_state=0, **settings
            )
            seconds = self.clock.time(name, lambda: model.fit(X), self.epochs)
            self.found[name] = model.codebook_
            return seconds

        return run

    def somoclu(self) -> Run:
        from somoclu import Somoclu

        def run() -> float:
            start = self.start.astype(np.float32).reshape(SIDE, SIDE, COLUMNS)
            model = Somoclu(SIDE, SIDE, compactsupport=False, initialcodebook=start)
            data, name = self.X.astype(np.float32), "somoclu, batch"
            settings = {"epochs": self.epochs, "radius0": 2 * FIRST, "radiusN": 2 * self.last}
            seconds = self.clock.time(name, lambda: model.train(data, **settings), self.epochs)
            self.found[name] = model.codebook.reshape(-1, COLUMNS).astype(float)
            return seconds

        return run

    def minisom(self, name: str, rate: float, train: Callable[..., None]) -> Run:
        from minisom import MiniSom

        def run() -> float:
            model = MiniSom(
                SIDE,
                SIDE,
                COLUMNS,
                sigma=FIRST,
                learning_rate=rate,
                decay_function=lambda rate, t, most: rate,
                sigma_decay_function="linear_decay_to_one",
                random_seed=0,
            )
            model._weights = self.start.reshape(SIDE, SIDE, COLUMNS).copy()
            seconds = self.clock.time(name, lambda: train(model, self.X, self.epochs), self.epochs)
            self.found[name] = model.get_weights().reshape(-1, COLUMNS)
            return seconds

        return run

    def minisom_batch(self) -> Run:
        return self.minisom("MiniSom, batch", 1.0, lambda model, X, n: model.train_batch_offline(X, n))

    def runs(self) -> dict[str, Run]:
        """All contestants that are installed."""
        rate = 0.1
        runs: dict[str, Run] = {
            "prinfold, batch": self.ours("prinfold, batch", np.float64),
            "prinfold, batch, float32": self.ours("prinfold, batch, float32", np.float32),
            "prinfold, online": self.ours("prinfold, online", np.float64, trainer="online", rate=rate),
        }
        peers = {
            "somoclu, batch": self.somoclu,
            "MiniSom, batch": self.minisom_batch,
            "MiniSom, online": lambda: self.minisom(
                "MiniSom, online", rate, lambda model, X, n: model.train(X, n, random_order=True, use_epochs=True)
            ),
        }
        for name, make in peers.items():
            try:
                runs[name] = make()
            except ImportError as error:
                print(f"left out: {name} ({error})")
        return runs


def floor(X: np.ndarray, codebook: np.ndarray, clock: Clock) -> Run:
    """Seconds of the product of rows and vectors, and of adding up rows by node."""
    winner = np.random.default_rng(0).integers(0, len(codebook), len(X))
    belongs = scipy.sparse.csr_matrix((np.ones(len(X)), winner, np.arange(len(X) + 1))).T.tocsr()
    room = np.empty((len(X), len(codebook)))

    def work() -> None:
        np.dot(X, codebook.T, out=room)
        belongs @ X

    work()  # pages in what it writes to
    return lambda: clock.time("floor", work, 1)


# --------------------------------------------------------------------------------------- errors at one schedule


@njit(cache=False)
def nearest_nodes(X: np.ndarray, codebook: np.ndarray) -> np.ndarray:
    """Winners by roots of sums of squares, one number after the other in the type of X; the first of equals."""
    found = np.empty(len(X), dtype=np.int64)
    now, least = np.zeros(1, X.dtype), np.zeros(1, X.dtype)
    for n in range(len(X)):
        for k in range(len(codebook)):
            now[0] = 0
            for d in range(X.shape[1]):
                now[0] += (codebook[k, d] - X[n, d]) * (codebook[k, d] - X[n, d])
            now[0] = np.sqrt(now[0])
            if k == 0 or now[0] < least[0]:
                least[0], found[n] = now[0], k
    return found


@njit(cache=False)
def kernel_means(X: np.ndarray, winner: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Kernel means at the nodes, one row after the other in the type of X."""
    sums, total = np.zeros((len(kernel), X.shape[1]), X.dtype), np.zeros(len(kernel), X.dtype)
    for k in range(len(kernel)):
        for n in range(len(X)):
            h = kernel[k, winner[n]]
            total[k] += h
            for d in range(X.shape[1]):
                sums[k, d] += h * X[n, d]
    return sums / total.reshape(-1, 1)


def plain_loop(contest: Contest, dtype: type, factors: tuple[float, float]) -> np.ndarray:
    """The vectors that the definition comes to; ``factors`` on the kernels in the first and the last epoch."""
    X, codebook, last = contest.X.astype(dtype), contest.start.astype(dtype), dtype(contest.epochs - 1)
    i, j = np.divmod(np.arange(SIDE**2), SIDE)
    gap = np.sqrt((np.square(i[:, None] - i) + np.square(j[:, None] - j)).astype(dtype))
    (r, q), (f, g) = ((dtype(first), dtype(end)) for first, end in ((2 * FIRST, 2 * contest.last), factors))
    for epoch in map(dtype, range(contest.epochs)):
        width, factor = (r - epoch * ((r - q) / last)) * dtype(0.5), f - epoch * ((f - g) / last)
        kernel = factor * np.exp(-gap * gap / (dtype(2) * width * width))
        codebook = kernel_means(X, nearest_nodes(X, codebook), kernel)
    return codebook.astype(np.float64)


def agreement(epochs: int, tables: int) -> None:
    """How far others end from ours, over several tables."""
    gaps: dict[str, list[tuple[float, float]]] = {}
    for seed in range(tables):
        contest = Contest(sheet(2000, seed), epochs)
        contest.ours("prinfold, batch", np.float64)()
        contest.found["plain loop"] = plain_loop(contest, np.float64, (1.0, 1.0))
        contest.found["plain loop, float32 with factors"] = plain_loop(contest, np.float32, (0.1, 0.01))
        for peer in (contest.somoclu, contest.minisom_batch):
            with contextlib.suppress(ImportError):
                peer()()
        ours = contest.found.pop("prinfold, batch")
        error = quantization_error(contest.X, ours)
        for name, found in contest.found.items():
            apart = quantization_error(contest.X, found) / error - 1.0
            gaps.setdefault(name, []).append((apart, float(np.abs(found - ours).max())))
    lines = []
    for name, pairs in gaps.items():
        error, vectors = np.array(pairs).T
        cells = [f"{value:+.1e}" for value in (error.mean(), error.min(), error.max())]
        lines.append([name, *cells, f"{(error < -_SAME).sum()}", f"{(error > _SAME).sum()}", f"{vectors.max():.1e}"])
    print_table(
        f"quantisation error over ours, less 1: {tables} tables of 2000 rows, {epochs} epochs",
        ["", "mean", "least", "most", "lower", "higher", "vectors apart"],
        lines,
    )


# ------------------------------------------------------------------------------------- stretch, as in the thesis


def true_stretch(X: np.ndarray) -> np.ndarray:
    """Area of z = tanh(6x) over that of its shadow."""
    return np.asarray(np.sqrt(1.0 + 36.0 / np.cosh(6.0 * X[:, 0]) ** 4))


def stretches() -> None:
    tables = {"ridge": (lambda: datasets.make_ridge(400, rng=0), 6), "crabs": (datasets.load_crabs, 4)}
    lines = []
    for name, (make, basis) in tables.items():
        try:
            X = make().X
        except DataNotFoundError as error:
            print(f"left out: {name} ({error})")
            continue
        gtm, som = GTM(nodes=10, basis=basis).fit(X), SOM(nodes=10).fit(X)
        at_nodes = som.magnification(som.latent_.nodes).factor
        ours, theirs = (model.magnification(model.transform(X)).factor for model in (som, gtm))
        pairs = [(som.u_matrix().nodes, at_nodes), (ours, theirs)]
        pairs += [(each, true_stretch(X)) for each in (ours, theirs)] if name == "ridge" else []
        found = [f"{spearmanr(*pair).statistic:.2f}" for pair in pairs]
        lines.append([name, *found, *["–"] * (4 - len(found))])
    print_table("rank correlations", ["", "U-matrix, SOM", "SOM, GTM", "SOM, truth", "GTM, truth"], lines)


def epochs_of_all(n_rows: int, epochs: int, turns: int) -> None:
    """What an epoch costs, on one thread and on two."""
    X = sheet(n_rows)
    contest = Contest(X, epochs)
    runs = contest.runs() | {"floor": floor(X, contest.start, contest.clock)}
    contest.ours("warm", np.float64, trainer="online", rate=0.1)()  # compiles what is to be compiled
    for threads in (1, 2):
        contest.clock.busy.clear()
        with threadpool_limits(threads):
            seconds = take_turns(runs, turns, {name: 1 for name in runs if name.startswith("MiniSom")})
        least, busy = {name: times.least for name, times in seconds.items()}, contest.clock.busy
        lines = []
        for name in runs:
            ours = "prinfold, online" if "online" in name else "prinfold, batch"
            error = f"{quantization_error(X, contest.found[name]):.5f}" if name in contest.found else "–"
            ratios = [busy[name] / busy["floor"], least[name] / least[ours], busy[name] / busy[ours]]
            lines.append([name, 1e3 * least[name], 1e3 * busy[name], *ratios, error])
        print_table(
            f"an epoch: {n_rows} rows, {COLUMNS} columns, {SIDE} × {SIDE} nodes, {threads} thread(s)",
            ["", "ms", "ms busy", "busy over the floor", "over ours", "busy over ours", "quantisation error"],
            lines,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", help="a folder with packages")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--only", default="1,2,3", help="which parts, such as 2")
    given = parser.parse_args()
    if given.peers:
        sys.path.append(given.peers)
    parts = {
        "1": lambda: epochs_of_all(given.rows, given.epochs, given.turns),
        "2": lambda: agreement(given.epochs, given.tables),
        "3": stretches,
    }
    for part in given.only.split(","):
        parts[part]()


if __name__ == "__main__":
    main()
