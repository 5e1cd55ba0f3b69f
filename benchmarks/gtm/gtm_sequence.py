"""What a walk over the nodes costs and is worth, beside a GTM that takes each row for itself.

    python -m benchmarks.gtm.gtm_sequence [--full] [--only 1,3]

1. Forward and backward pass over short steps and jumps, beside the same over a full matrix of K × K transitions.
2. An iteration of training beside one of the GTM on the same rows, by the number of rows and of nodes.
3. Joint angles of a walk: error of the phase and log-likelihood of new sequences by noise, beside the GTM; by start.
4. Frames left out of new sequences: error of what is filled in, by the length of the gap.
5. One long sequence: memory beside the table, by its length.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from benchmarks.timing import peak_mb, print_table, take_turns

from prinfold import GTM, GTMSequence, datasets
from prinfold.gtm.sequence import _hidden_markov_jit as chain_sweeps
from prinfold.gtm.sequence.hidden_markov import Counts
from prinfold.gtm.sequence.transitions import Chain, ChainRecipe, SharedRule
from prinfold.latent import grid


def dense_passes(emission: np.ndarray, chain: Chain) -> np.ndarray:
    """Forward and backward with a full matrix, by products of matrices and vectors."""
    A = chain.steps.matrix().toarray() + chain.steps.leap
    alpha, scale, counts = np.empty_like(emission), np.empty(len(emission)), np.zeros_like(A)
    ahead = chain.initial
    for t, row in enumerate(emission):
        alpha[t] = ahead * row
        scale[t] = alpha[t].sum()
        alpha[t] /= scale[t]
        ahead = alpha[t] @ A
    beta = np.ones(len(A))
    for t in range(len(emission) - 1, 0, -1):
        after = emission[t] * beta / scale[t]
        counts += np.outer(alpha[t - 1], after)
        alpha[t] *= beta
        beta = A @ after
    alpha[0] *= beta
    return alpha


def short_passes(emission: np.ndarray, chain: Chain) -> np.ndarray:
    """The same over short steps and jumps."""
    begins = np.zeros(len(emission) + 1, dtype=bool)
    begins[[0, -1]] = True
    K = len(chain.initial)
    alpha, scale = chain_sweeps.forward(emission, begins[:-1], np.zeros(K), chain.steps)
    counts = Counts(np.zeros(len(chain.local)), np.zeros(1))
    chain_sweeps.backward(emission, begins[1:], scale, np.ones(len(alpha)), alpha, np.zeros(K), chain.steps, counts)
    return alpha


def once(work: Callable[[], object]) -> Callable[[], float]:
    def run() -> float:
        clock = time.process_time()  # of this process alone, whatever else the machine does
        work()
        return time.process_time() - clock

    return run


def beside_full_matrices(full: bool) -> None:
    rows = []
    for side in (10, 20, 40) if full else (10, 20, 30):
        K, T = side * side, 200
        chain = ChainRecipe(SharedRule()).first(grid(side, side))
        rng = np.random.default_rng(0)
        # As wide as a posterior mostly is: the noise spans a tenth of half an axis.
        place, walk = grid(side, side).nodes, np.cumsum(0.1 * rng.standard_normal((T, 2)), axis=0)
        walk = np.abs((walk + 1) % 4 - 2) - 1
        emission = np.exp(-0.5 * np.square((walk[:, None] - place[None]) / 0.1).sum(axis=2))
        emission /= emission.max(axis=1, keepdims=True)
        emission[emission < chain.steps.least] = 0.0
        off = float(np.abs(short_passes(emission, chain) - dense_passes(emission, chain)).max())
        dense, short = lambda e=emission, c=chain: dense_passes(e, c), lambda e=emission, c=chain: short_passes(e, c)
        found = take_turns({"dense": once(dense), "short": once(short)}, 7)
        per = {name: times.median / T for name, times in found.items()}
        pairs = len(chain.local)
        rows.append([K, f"{pairs / K:.0f}", f"{1e6 * per['dense']:.0f}", f"{1e6 * per['short']:.0f}"])
        rows[-1] += [f"{per['dense'] / per['short']:.0f}", f"{1e9 * per['short'] / pairs:.2f}", f"{off:.0e}"]
    names = ["nodes", "steps each", "µs per row, full matrix", "µs, short steps", "ratio", "ns per pair", "difference"]
    print_table("forward and backward passes, processor time, one thread of each", names, rows)


def iterations(full: bool) -> None:
    rows = []
    sizes = [(2000, 20), (8000, 20), (8000, 30)] + ([(100_000, 20)] if full else [])
    for n, side in sizes:
        data = datasets.make_motion(n, n_sequences=max(2, n // 500), gait="changing", rng=0)
        settings = {"latent": "cylinder", "nodes": (2 * side, side // 2), "basis": (9, 3), "tol": 0.0, "init": "pca"}

        def spent(kind: type, s: dict[str, object] = settings, data: datasets.Dataset = data, **how: object) -> float:
            """Processor seconds of an iteration: five more of them beside two."""
            clocks = [time.process_time()]
            for n_iter in (2, 7):
                kind(**s, max_iter=n_iter).fit(data.X, **how)
                clocks.append(time.process_time())
            return ((clocks[2] - clocks[1]) - (clocks[1] - clocks[0])) / 5

        runs = {
            "GTM": lambda spent=spent: spent(GTM),
            "walk": lambda spent=spent, d=data: spent(GTMSequence, lengths=d.lengths),
        }
        found = take_turns(runs, 3 if full else 2)
        plain, walk = found["GTM"].median, found["walk"].median
        K = 2 * side * (side // 2)
        rows.append([n, K, f"{1e3 * plain:.0f}", f"{1e3 * walk:.0f}", f"{walk / plain:.1f}"])
        rows[-1].append(f"{1e9 * walk / (n * K):.1f}")
    names = ["rows", "nodes", "ms, GTM", "ms, GTMSequence", "ratio", "ns per row and node"]
    print_table("an iteration of training, processor time", names, rows)


def phase_error(Z: np.ndarray, phase: np.ndarray) -> float:
    """Root mean square error in degrees, after the turn or mirror image that fits best."""
    found = []
    for sign in (1, -1):
        gap = np.exp(1j * (sign * Z - phase))
        found.append(np.degrees(np.sqrt(np.mean(np.angle(gap / gap.mean()) ** 2))))
    return float(min(found))


def walking(seeds: int) -> None:
    rows = []
    for noise in (0.1, 0.2, 0.3, 0.4, 0.5):
        found: dict[str, list[tuple[float, float]]] = {}
        for seed in range(seeds):
            data, new = (datasets.make_motion(600, noise=noise, rng=s) for s in (seed, 1000 + seed))
            settings = {"latent": "circle", "nodes": 40, "random_state": 0}
            for init in ("pca", "auto"):
                plain = GTM(**settings, init=init).fit(data.X)
                each = phase_error(plain.transform(new.X)[:, 0], new.latent[:, 0]), plain.score(new.X)
                found.setdefault(f"GTM, {init}", []).append(each)
            for init in ("pca", "auto"):
                walk = GTMSequence(**settings, init=init).fit(data.X, lengths=data.lengths)
                how = {"lengths": new.lengths}
                score = walk.score(new.X, **how)
                off = phase_error(walk.transform(new.X, **how)[:, 0], new.latent[:, 0])
                found.setdefault(f"walk, {init}", []).append((off, score))
                if init == "auto":
                    off = phase_error(walk.filter(new.X, **how)[:, 0], new.latent[:, 0])
                    found.setdefault("walk, auto, filtered", []).append((off, score))
        for name, each in found.items():
            off, score = np.median(each, axis=0)
            rows.append([noise, name, f"{off:.1f}", f"{score:.2f}"])
    title = f"a walk of 600 frames, 40 nodes; new sequences; medians of {seeds} seeds"
    print_table(title, ["noise", "model", "phase off by, degrees", "nats per row"], rows)


def gaps(seeds: int) -> None:
    rows = []
    for length in (1, 3, 10, 30):
        found: dict[str, list[float]] = {"GTMSequence": [], "straight lines": [], "mean of each column": []}
        for seed in range(seeds):
            data, new = (datasets.make_motion(800, noise=0.15, n_sequences=4, rng=s) for s in (seed, 1000 + seed))
            walk = GTMSequence(latent="circle", nodes=40, random_state=0).fit(data.X, lengths=data.lengths)
            ends = np.cumsum(new.lengths)
            gappy, left_out = new.X.copy(), np.zeros(len(new.X), dtype=bool)
            for end, n in zip(ends, new.lengths, strict=True):
                left_out[end - n // 2 : end - n // 2 + length] = True
            gappy[left_out] = np.nan
            lines = np.stack(
                [np.interp(np.arange(len(gappy)), np.flatnonzero(~left_out), c[~left_out]) for c in gappy.T], axis=1
            )
            mean = np.broadcast_to(data.X.mean(axis=0), gappy.shape)
            filled = walk.impute(gappy, lengths=new.lengths)
            for name, each in zip(found, (filled, lines, mean), strict=True):
                found[name].append(float(np.sqrt(np.mean(np.square(each - new.clean)[left_out]))))
        rows.append([length, *(f"{np.median(each):.3f}" for each in found.values())])
    title = f"frames left out: root mean square error against the truth, noise 0.15; medians of {seeds} seeds"
    print_table(title, ["frames", *found], rows)


def long_sequences(full: bool) -> None:
    rows = []
    for n in (10_000, 100_000, 1_000_000) if full else (10_000, 50_000):
        data = datasets.make_motion(n, n_sequences=1, rng=0)
        walk = GTMSequence(latent="circle", nodes=100, max_iter=1, init="pca").fit(data.X[:2000], lengths=[2000])
        runs = {
            "transform": lambda w=walk, d=data: w.transform(d.X, lengths=[len(d.X)]),
            "paths": lambda w=walk, d=data: w.paths(d.X, lengths=[len(d.X)]),
        }
        took = take_turns({name: once(work) for name, work in runs.items()}, 2)
        memory = {name: peak_mb(work) for name, work in runs.items()}
        rows.append([n, f"{data.X.nbytes / 1e6:.0f}", f"{n * 100 * 8 / 1e6:.0f}"])
        rows[-1] += [f"{memory[name]:.0f}" for name in runs] + [f"{took[name].median:.2f}" for name in runs]
    names = ["rows", "table, MB", "posterior, MB", "transform, MB", "paths, MB", "transform, s", "paths, s"]
    print_table("one long sequence, 100 nodes", names, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="more sizes and seeds")
    parser.add_argument("--only", default="1,2,3,4,5", help="which tables")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    seeds = 10 if options.full else 3
    tables = {
        "1": lambda: beside_full_matrices(options.full),
        "2": lambda: iterations(options.full),
        "3": lambda: walking(seeds),
        "4": lambda: gaps(seeds),
        "5": lambda: long_sequences(options.full),
    }
    for name in options.only.split(","):
        tables[name]()


if __name__ == "__main__":
    main()
