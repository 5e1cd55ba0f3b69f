"""Genes along trajectories: uniform p-values of null genes, power, and how long it takes.

Counts are negative binomial about rates that follow a true time, or none. Cases, as asked of a test that finds its
times from the counts that it tests:

- ``none``: no trajectory at all; times are found all the same, along the first principal component;
- ``trajectory``: a fifth of the genes follow time, the others do not;
- ``modules``: as before, and null genes come in modules that share a fluctuation of their own between cells;
- ``dispersion``: as ``trajectory``, with a dispersion of its own for each gene, from 0.02 to 1.

For each: the share of null genes with p < 0.05 and < 0.01 and Kolmogorov and Smirnov's distance from uniform ones, for
tests on thinned halves and, beside them, for naive ones on the same counts; and the share of true genes with p < 0.05.
``--conditions`` has two conditions with three samples each that differ between samples, cells as the unit beside it.

Run as ``python -m benchmarks.genes`` (``--seeds 5``), ``--speed`` for 2000 genes × 5000 cells, ``--real`` for cells.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from benchmarks.timing import print_table
from scipy.stats import kstest
from sklearn.decomposition import PCA

from prinfold import PrincipalTree
from prinfold.expression import TreeOfCounts, association, condition_difference, fork_difference

CASES = ("none", "trajectory", "modules", "dispersion")


class Simulated(NamedTuple):
    """Counts (n, G), the true time of cells (n,) and which genes follow it (G,)."""

    counts: np.ndarray
    times: np.ndarray
    true: np.ndarray


def simulate(case: str, n: int, n_genes: int, seed: int) -> Simulated:
    """Counts of one case."""
    rng = np.random.default_rng(seed)
    times, size = rng.uniform(size=n), rng.lognormal(0.0, 0.3, n)
    log_mean = rng.uniform(np.log(0.3), np.log(10.0), n_genes)
    true = np.zeros(n_genes, dtype=bool)
    if case != "none":
        true[: n_genes // 5] = True
    center, width = rng.uniform(-0.2, 1.2, n_genes), rng.uniform(0.2, 0.5, n_genes)
    bump = np.exp(-0.5 * np.square((times[:, None] - center) / width))
    log_rate = log_mean + np.where(true, 2.0 * bump, 0.0)
    if case == "modules":
        module = rng.integers(0, 10, n_genes)
        log_rate += np.where(true, 0.0, 0.3 * rng.normal(size=(n, 10))[:, module])
    phi = np.exp(rng.uniform(np.log(0.02), 0.0, n_genes)) if case == "dispersion" else np.full(n_genes, 0.2)
    rate = size[:, None] * np.exp(log_rate)
    return Simulated(rng.poisson(rng.gamma(1.0 / phi, phi * rate)).astype(float), times, true)


def first_component(counts: np.ndarray) -> np.ndarray:
    """Times along the first principal component of logarithms."""
    total = np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    return PCA(1, random_state=0).fit_transform(np.log1p(counts / total * np.median(total)))[:, 0]


def recipe_of(case: str, data: Simulated) -> Callable[[np.ndarray], object]:
    """A recipe from counts to times: a path from the earliest cells; where there is none, the first component."""
    if case == "none":
        return first_component
    return TreeOfCounts(data.times < 0.05, 10, PrincipalTree("path"))


def shares(p: np.ndarray) -> list[str]:
    return [f"{(p < 0.05).mean():.3f}", f"{(p < 0.01).mean():.3f}", f"{kstest(p, 'uniform').statistic:.3f}"]


def nulls(n_seeds: int, n: int, n_genes: int) -> None:
    """Null genes and power, case by case."""
    lines = []
    for case in CASES:
        split, naive, power = [], [], []
        for seed in range(n_seeds):
            data = simulate(case, n, n_genes, seed)
            recipe = recipe_of(case, data)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = association(data.counts, recipe, random_state=seed).p_value
                times = recipe(data.counts)
                times = times if isinstance(times, np.ndarray) else times.pseudotime
                plain = association(data.counts, pseudotime=times).p_value
            split.append(found[~data.true])
            naive.append(plain[~data.true])
            power.append(found[data.true])
        true = np.concatenate(power)
        detected = f"{(true < 0.05).mean():.3f}" if len(true) else "–"
        lines.append([case, *shares(np.concatenate(split)), *shares(np.concatenate(naive)), detected])
    heads = ["case", "thinned: p < .05", "p < .01", "KS", "naive: p < .05", "p < .01", "KS", "power at .05"]
    print_table(f"null genes, {n_seeds} draws of {n_genes} genes in {n} cells", heads, lines)


def conditions(n_seeds: int) -> None:
    """Two conditions of three samples that differ between samples: samples and cells as the unit."""
    own, cells = [], []
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        data = simulate("trajectory", 600, 200, seed)
        sample = rng.integers(0, 6, 600)
        shift = np.exp(0.3 * rng.normal(size=(6, 200)))
        counts = rng.poisson(data.counts * shift[sample]).astype(float)
        own.append(condition_difference(counts, data.times, sample % 2, sample).p_value)
        cells.append(
            condition_difference(counts, data.times, sample % 2, 2 * rng.integers(0, 6, 600) + sample % 2).p_value
        )
    lines = [["samples", *shares(np.concatenate(own))], ["cells in random groups", *shares(np.concatenate(cells))]]
    print_table("conditions that make no difference", ["unit", "p < .05", "p < .01", "KS"], lines)


def speed() -> None:
    """2000 genes × 5000 cells."""
    data = simulate("trajectory", 5000, 2000, 0)
    recipe = TreeOfCounts(data.times < 0.05, 20, PrincipalTree("path"))
    clock = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        association(data.counts, recipe, random_state=0)
    print(f"association of 2000 genes in 5000 cells: {time.process_time() - clock:.1f} s of CPU")


def real() -> None:
    """Myeloid progenitors (Paul et al. 2015): genes along the lineages, and after the fork."""
    data = np.load(Path(os.environ["PRINFOLD_DATA"]) / "paul15_tradeseq.npz")
    counts, kind, genes = data["counts"].astype(float), data["celltype"], data["genes"]
    recipe = TreeOfCounts(kind == "Multipotent progenitors", 10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = recipe(counts)
        L = len(whole.lineages)
        ends = [
            kind[(whole.lineage_weights[:, k] > 0.5) & (whole.milestone == whole.milestones.names.index(name))]
            for k, name in enumerate(whole.lineages)
        ]
        for k in range(L):
            names, many = np.unique(ends[k], return_counts=True)
            found = association(counts, recipe, lineage=k, names=genes, random_state=0)
            best = [found.names[j] for j in np.lexsort((-found.effect, found.p_value))[:10]]
            last = names[many.argmax()] if len(names) else "–"
            print(
                f"{whole.lineages[k]}: mostly {last}; {int((found.q_value < 0.01).sum())} of {len(genes)} genes at "
                f"q < 0.01; first {', '.join(best)}"
            )
        if L > 1:
            order = np.argsort([-(whole.lineage_weights[:, k] > 0.5).sum() for k in range(L)])[:2]
            apart = fork_difference(counts, recipe, lineages=tuple(map(int, order)), names=genes, random_state=0)
            best = [
                f"{apart.names[j]} ({apart.effect[j]:+.1f})"
                for j in np.lexsort((-abs(apart.effect), apart.p_value))[:10]
            ]
            print(f"{whole.lineages[order[0]]} against {whole.lineages[order[1]]}: {', '.join(best)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--cells", type=int, default=500)
    parser.add_argument("--genes", type=int, default=300)
    for option in ("conditions", "speed", "real"):
        parser.add_argument(f"--{option}", action="store_true")
    asked = parser.parse_args()
    if asked.conditions:
        conditions(asked.seeds)
    elif asked.speed:
        speed()
    elif asked.real:
        real()
    else:
        nulls(asked.seeds, asked.cells, asked.genes)
