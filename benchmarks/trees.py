"""Principal trees against ElPiGraph and a plain spanning tree of means, in the manner of dynverse.

Simulated tables (``datasets.make_tree``): a Y and trees of four and five leaves, straight and curved branches, unequal
densities, noise of 0.1 and 0.2 of a branch, 10 and 50 columns, 300 and 1000 rows. Measures, each between 0 and 1 but
the last, higher being better:

- ``him``: 1 − the distance of Hamming, Ipsen and Mikhailov between the networks, edges weighted by length over the sum
  of lengths, γ = 0.1 (Jurman et al. 2015; dyneval's ``calculate_him``). Nodes are matched by weighted degree;
- ``f1``: harmonic mean of recovery and relevance of branches, the means of the best Jaccard index of each true and of
  each found branch (dyneval's ``calculate_mapping_branches``);
- ``distances``: Spearman's correlation of distances along the network between 100 rows and all others;
- ``time``: Spearman's correlation of pseudotime from the true root with the true one;
- ``seconds`` of CPU.

``right`` says whether there are as many ends and forks as there should be. Seeds below 80 were tuned on; the default,
500 on, were not. ElPiGraph (``pip install elpigraph-python``) stands at its defaults, at STREAM's settings
(λ = α = 0.02), and at its defaults with branches shorter than a fifth of a true one collapsed, which a person could not
know. The last has both, in five principal components.

Run as ``python -m benchmarks.trees`` for the comparison (``--tables 48``), ``--right 20`` for how many of 20 seeds are
right in each cell, ``--growth`` for time and memory against size, ``--real`` for cells.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import tracemalloc
import warnings
from collections.abc import Callable
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks.timing import print_table
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra
from scipy.stats import spearmanr, wilcoxon
from sklearn.decomposition import PCA

from prinfold import PrincipalTree, datasets
from prinfold.datasets import TreeDataset
from prinfold.density.ridges.graph_branches import paths
from prinfold.numerics.polylines import nearest_on_segments
from prinfold.trees.soft_tree import first_centers, spanning_tree

FIRST_SEED = 500
WAYPOINTS = 100
DENSITIES = {"y": (1.0, 0.5, 1.5), "four": (1.0, 0.5, 1.5, 1.0, 0.6), "five": (1.0, 0.5, 1.5, 1.0, 0.6, 1.2, 0.8)}


class Trajectory(NamedTuple):
    """A network, by ``ends`` (B, 2) and ``lengths`` (B,) of branches, and the ``branch`` and ``place`` of rows (n,)."""

    ends: np.ndarray
    lengths: np.ndarray
    branch: np.ndarray
    place: np.ndarray


# ------------------------------------------------------------------------------------------------------ measures


def adjacency(one: Trajectory) -> np.ndarray:
    """(V, V) lengths of branches between nodes over their sum; a single branch counts as two."""
    ends, lengths = one.ends, one.lengths
    if len(lengths) == 1:
        ends, lengths = np.array([[0, 1], [1, 2]]), np.repeat(lengths / 2, 2)
    matrix = np.zeros((ends.max() + 1, ends.max() + 1))
    for (a, b), length in zip(ends, lengths, strict=True):
        matrix[a, b] += length
        matrix[b, a] += length
    order = np.argsort(-matrix.sum(axis=1), kind="stable")
    return matrix[order][:, order] / matrix.sum()


def hamming(A: np.ndarray, B: np.ndarray) -> float:
    """Σ |A − B| / (N (N − 1))."""
    return float(np.abs(A - B).sum() / (len(A) * (len(A) - 1)))


def ipsen_mikhailov(A: np.ndarray, B: np.ndarray, gamma: float = 0.1) -> float:
    """Root of the integral of (ρ_A − ρ_B)², ρ being Lorentz bells about the roots of the Laplacian's eigenvalues."""
    omega = np.linspace(0.0, 50.0, 500_001)
    density = []
    for matrix in (A, B):
        values = np.linalg.eigvalsh(np.diag(matrix.sum(axis=1)) - matrix)
        bells = sum(gamma / ((omega - root) ** 2 + gamma**2) for root in np.sqrt(np.maximum(values[1:], 0.0)))
        area = sum(np.pi / 2 + np.arctan(root / gamma) for root in np.sqrt(np.maximum(values[1:], 0.0)))
        density.append(bells / area)
    return float(np.sqrt(np.trapezoid((density[0] - density[1]) ** 2, omega)))


def him(one: Trajectory, other: Trajectory) -> float:
    """1 − √((H² + IM²) / 2), the smaller network filled up with nodes that nothing leads to."""
    A, B = adjacency(one), adjacency(other)
    n = max(len(A), len(B))
    A, B = (np.pad(each, (0, n - len(each))) for each in (A, B))
    return 1.0 - float(np.sqrt((hamming(A, B) ** 2 + ipsen_mikhailov(A, B) ** 2) / 2.0))


def f1_of_branches(true: Trajectory, found: Trajectory) -> float:
    """Harmonic mean of how well true branches are recovered and of how relevant found ones are."""
    both = np.zeros((true.branch.max() + 1, found.branch.max() + 1))
    np.add.at(both, (true.branch, found.branch), 1.0)
    jaccard = both / np.maximum(both.sum(axis=1)[:, None] + both.sum(axis=0) - both, 1.0)
    recovery = float(jaccard[both.sum(axis=1) > 0].max(axis=1).mean())
    relevance = float(jaccard[:, both.sum(axis=0) > 0].max(axis=0).mean())
    return 2.0 * recovery * relevance / (recovery + relevance)


def distances_along(one: Trajectory, rows: np.ndarray) -> np.ndarray:
    """(r, n) distances along the network between some rows and all; between components the longest there is."""
    V = int(one.ends.max()) + 1
    length = np.maximum(one.lengths, 1e-12)
    graph = coo_array((length, (one.ends[:, 0], one.ends[:, 1])), shape=(V, V)).tocsr()
    between = dijkstra(graph, directed=False)
    found = np.full((len(rows), len(one.branch)), np.inf)
    for i, j in product((0, 1), (0, 1)):
        here, there = (
            (one.place if side == 0 else length[one.branch] - one.place, one.ends[one.branch, side]) for side in (i, j)
        )
        found = np.minimum(found, here[0][rows, None] + there[0] + between[here[1][rows]][:, there[1]])
    same = one.branch[rows, None] == one.branch
    found = np.where(same, np.minimum(found, np.abs(one.place[rows, None] - one.place)), found)
    return np.where(np.isfinite(found), found, found[np.isfinite(found)].max())


def measures(data: TreeDataset, true: Trajectory, found: Trajectory) -> dict[str, float]:
    """All measures of one trajectory."""
    rows = np.random.default_rng(0).choice(len(data.X), min(WAYPOINTS, len(data.X)), replace=False)
    root = np.array([int(data.pseudotime.argmin())])
    degree, wanted = (np.sort(np.bincount(each.ends.ravel())) for each in (found, true))
    return {
        "him": him(true, found),
        "f1": f1_of_branches(true, found),
        "distances": _spearman(distances_along(true, rows), distances_along(found, rows)),
        "time": _spearman(data.pseudotime, distances_along(found, root)[0]),
        "right": float(_ends_and_forks(degree) == _ends_and_forks(wanted)),
    }


def _ends_and_forks(degree: np.ndarray) -> tuple[int, int]:
    return int((degree == 1).sum()), int((degree > 2).sum())


def _spearman(a: np.ndarray, b: np.ndarray) -> float:
    found = spearmanr(a.ravel(), b.ravel())[0]
    return float(found) if np.isfinite(found) else 0.0


# --------------------------------------------------------------------------------------------------- contestants


def truth(data: TreeDataset) -> Trajectory:
    return Trajectory(data.ends, data.lengths_of_branches, data.labels, data.arc_length)


def of_model(X: np.ndarray, **settings: Any) -> Trajectory:
    model = PrincipalTree(**settings).fit(X)
    graph, place = model.graph_, model.locate(X)
    return Trajectory(graph.ends, graph.latent.lengths, place.branch, place.arc_length)


def of_edges(X: np.ndarray, nodes: np.ndarray, edges: np.ndarray) -> Trajectory:
    """Rows on a network of straight edges, whose branches lead from one node with other than two edges to the next."""
    links: list[list[int]] = [[] for _ in nodes]
    for a, b in np.asarray(edges).tolist():
        links[a].append(b)
        links[b].append(a)
    branches = paths(links, np.unique(edges))
    feet = nearest_on_segments(X, nodes[edges[:, 0]], nodes[edges[:, 1]] - nodes[edges[:, 0]])
    number = {node: i for i, node in enumerate(sorted({end for path in branches for end in (path[0], path[-1])}))}
    step = {(a, b): i for i, (a, b) in enumerate(np.asarray(edges).tolist())}
    branch, place, lengths = np.zeros(len(X), dtype=int), np.zeros(len(X)), []
    for b, path in enumerate(branches):
        traveled = 0.0
        for start, end in pairwise(path):
            length = float(np.linalg.norm(nodes[end] - nodes[start]))
            forwards = (start, end) in step
            here = feet.segment == step[(start, end) if forwards else (end, start)]
            share = feet.share[here] if forwards else 1.0 - feet.share[here]
            branch[here], place[here] = b, traveled + share * length
            traveled += length
        lengths.append(traveled)
    ends = np.array([[number[path[0]], number[path[-1]]] for path in branches])
    return Trajectory(ends, np.array(lengths), branch, place)


def of_means(X: np.ndarray) -> Trajectory:
    """The plain baseline: the spanning tree of means, one for each 40 rows but between 8 and 20."""
    nodes = first_centers(X, np.ones(len(X)), int(np.clip(len(X) // 40, 8, 20)))
    return of_edges(X, nodes, spanning_tree(nodes))


def of_elpigraph(X: np.ndarray, shortest: float = 0.0, **settings: Any) -> Trajectory:
    import contextlib
    import io

    import elpigraph

    with contextlib.redirect_stdout(io.StringIO()):
        made = elpigraph.computeElasticPrincipalTree(X, 40, **settings)[0]
        nodes, edges = made["NodePositions"], made["Edges"][0]
        if shortest:
            with contextlib.suppress(ValueError):  # it fails on some trees, which then stay as they are
                pruned = elpigraph.CollapseBranches(X, made, Mode="EdgesLength", ControlPar=shortest)
                nodes, edges = pruned["Nodes"], pruned["Edges"]
    return of_edges(X, np.asarray(nodes), np.asarray(edges).astype(int))


CONTESTANTS: dict[str, Callable[[np.ndarray], Trajectory]] = {
    "PrincipalTree": of_model,
    "means": of_means,
    "ElPiGraph": of_elpigraph,
    "ElPiGraph, STREAM": lambda X: of_elpigraph(X, Lambda=0.02, Mu=0.1, alpha=0.02, FinalEnergy="Penalized"),
    "ElPiGraph, pruned": lambda X: of_elpigraph(X, 0.2),
    "ElPiGraph, STREAM, 5 components": lambda X: of_elpigraph(
        PCA(5).fit_transform(X), 0.2, Lambda=0.02, Mu=0.1, alpha=0.02, FinalEnergy="Penalized"
    ),
}
MEASURES = ("him", "f1", "distances", "time", "right", "seconds")


# --------------------------------------------------------------------------------------------------------- runs


def table(number: int, seed: int) -> TreeDataset:
    """One of the simulated tables: cells in turn, each time with other rows."""
    cells = list(product(("y", "four", "five"), (0.1, 0.2), (10, 50), (300, 1000)))
    shape, noise, D, n = cells[(7 * number) % len(cells)]
    bend = (0.0, 1.0, 1.5)[number % 3]
    even = number % 2 == 0
    return datasets.make_tree(
        n, noise, rng=seed, topology=shape, n_features=D, bend=bend, densities=1.0 if even else DENSITIES[shape]
    )


def compare(n_tables: int, names: list[str], first: int, kept: Path | None) -> None:
    """All contestants on all tables, with a paired Wilcoxon test of each against the first.

    Results of other libraries are read from the file ``kept``, where it has them, and written there.
    """
    results: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    known = json.loads(kept.read_text()) if kept is not None and kept.exists() else {}
    for number in range(n_tables):
        data = table(number, first + number)
        for name in names:
            key = f"{name} {first + number}"
            if key not in known or name == "PrincipalTree":
                known[key] = measure(name, data)
                if kept is not None:
                    kept.write_text(json.dumps(known))
            results[name].append(known[key])
    lines = [[name, *(f"{np.mean([each[m] for each in results[name]]):.3f}" for m in MEASURES)] for name in names]
    print_table("means over the tables", ["", *MEASURES], lines)
    for name in names[1:]:
        for m in MEASURES[:4]:
            own, other = (np.array([each[m] for each in results[key]]) for key in (names[0], name))
            better = wilcoxon(own, other).pvalue if np.any(own != other) else 1.0
            sign = "better" if np.median(own - other) > 0 else "worse"
            print(f"{m:10s} against {name:20s} {np.mean(own - other):+.3f}, median {sign}, p = {better:.2g}")


def measure(name: str, data: TreeDataset) -> dict[str, float]:
    """Measures of a contestant on one table, and its seconds of CPU."""
    clock = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = CONTESTANTS[name](data.X)
    seconds = time.process_time() - clock
    return measures(data, truth(data), found) | {"seconds": seconds}


def right(n_seeds: int, first: int) -> None:
    """How many seeds have the right number of ends and forks, cell by cell."""
    lines = []
    for shape, noise, D, n in product(("y", "four"), (0.1, 0.2), (10, 50), (300, 1000)):
        good = 0
        for seed in range(first, first + n_seeds):
            data = datasets.make_tree(n, noise, rng=seed, topology=shape, n_features=D, densities=DENSITIES[shape])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = of_model(data.X)
            degree, wanted = (np.bincount(each.ravel()) for each in (found.ends, data.ends))
            good += _ends_and_forks(degree) == _ends_and_forks(wanted)
        lines.append([shape, f"{noise:g}", str(D), str(n), f"{good} of {n_seeds}"])
    print_table("right number of ends and forks", ["tree", "noise", "columns", "rows", "right"], lines)


def real() -> None:
    """Myeloid progenitors (Paul et al. 2015), by the number of components, beside Slingshot's pseudotime."""
    data = np.load(Path(os.environ["PRINFOLD_DATA"]) / "paul15_tradeseq.npz")
    counts, kind = data["counts"].astype(float), data["celltype"]
    levels = np.log1p(counts * np.median(counts.sum(axis=1)) / counts.sum(axis=1, keepdims=True))
    lines = []
    for D in (10, 20, 50):
        X = PCA(D, random_state=0).fit_transform(levels)
        model = PrincipalTree().fit(X)
        Z, where = model.transform(X), model.locate(X)
        root = model.transform(np.median(X[kind == "Multipotent progenitors"], axis=0)[None])
        pseudotime = model.graph_.network.distances(root, Z)[0]
        red = np.bincount(where.branch[kind == "Erythrocyte"]).max()
        agree = [
            _spearman(pseudotime[on], data["slingshot_pseudotime"][on, k])
            for k, on in enumerate((data["slingshot_weight"] > 0.5).T)
        ]
        lines.append([str(D), str(model.latent_.n_branches), str(red), *(f"{each:.3f}" for each in agree)])
    print_table("2660 cells", ["components", "branches", "of 1095 erythrocytes", "lineage 1", "lineage 2"], lines)


def growth() -> None:
    """Seconds of CPU and peak of memory against the number of rows, at 50 columns."""
    lines = []
    of_model(datasets.make_tree(200, rng=0).X)  # compiles
    for n in (1000, 10_000, 100_000):
        data = datasets.make_tree(n, 0.1, rng=0, topology="four", n_features=50)
        clock = time.process_time()
        model = PrincipalTree().fit(data.X)
        fit = time.process_time() - clock
        clock = time.process_time()
        model.transform(data.X)
        place = time.process_time() - clock
        tracemalloc.start()
        PrincipalTree().fit(data.X).transform(data.X)
        peak = tracemalloc.get_traced_memory()[1] / 1e6
        tracemalloc.stop()
        lines.append([str(n), f"{fit:.2f}", f"{place:.2f}", f"{peak:.0f}"])
    print_table("50 columns, one thread", ["rows", "fit (s)", "transform (s)", "peak (MB)"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=48)
    parser.add_argument("--right", type=int, default=0)
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--real", action="store_true", help="cells; needs the folder PRINFOLD_DATA")
    parser.add_argument("--first", type=int, default=FIRST_SEED, help="first seed")
    parser.add_argument("--only", default="", help="contestants, by semicolons")
    parser.add_argument("--kept", type=Path, default=None, help="file of results of other libraries")
    chosen = parser.parse_args()
    if chosen.growth:
        growth()
    elif chosen.real:
        real()
    elif chosen.right:
        right(chosen.right, chosen.first)
    else:
        names = [each for each in CONTESTANTS if not chosen.only or each in chosen.only.split(";")]
        compare(chosen.tables, names, chosen.first, chosen.kept)


if __name__ == "__main__":
    main()
