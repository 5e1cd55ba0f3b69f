"""One cell of Gerber et al.'s table 1: data, the five contestants, and their distance from the truth."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from os import cpu_count
from typing import Any

import numpy as np
from sklearn.manifold import Isomap
from sklearn.neighbors import NearestNeighbors

from prinfold import KMM, PPS, datasets

COLUMNS = ("IM", "IM-CV", "PPS", "PPS-I", "KMM", "KMM as it comes")
SHAPES = {"corkscrew": datasets.make_corkscrew, "swiss roll": datasets.make_swiss_roll}
SIZES = (4, 6, 10, 15)
INTERPOLATION = (1, 2, 3, 5, 8, 12)
BASES = (5, 8, 14)


@dataclass(frozen=True)
class Cell:
    """A row of the table: its shape, how many rows it is learned from, and the noise."""

    number: int
    shape: str
    n: int
    noise: float
    reading: str
    published: tuple[float, ...]

    @property
    def name(self) -> str:
        return f"{self.number}. {self.shape}, n = {self.n}, σ = {self.noise:g}"

    def data(self, seed: int) -> Split:
        """Training, validation and test rows, the last with the places they were drawn from."""
        parts = np.random.SeedSequence([seed, self.number]).generate_state(3)
        sizes = (self.n, self.n // 2, self.n)
        train, held, test = (
            SHAPES[self.shape](size, self.noise, "normal", int(part), reading=self.reading)
            for size, part in zip(sizes, parts, strict=True)
        )
        return Split(train.X, held.X, test.X, test.clean)


@dataclass(frozen=True)
class Split:
    """Rows of one draw, and the places on the surface that the test rows were drawn from."""

    train: np.ndarray
    held: np.ndarray
    test: np.ndarray
    truth: np.ndarray

    def error(self, project: Callable[[np.ndarray], np.ndarray]) -> float:
        """Mean squared distance between projected test rows and the truth."""
        return float(np.square(project(self.test) - self.truth).sum(axis=1).mean())


@dataclass(frozen=True)
class Interpolation:
    """Isomap for new rows: coordinates are the mean of the k nearest rows', rows that of the k nearest coordinates'."""

    X: np.ndarray
    Z: np.ndarray
    k: int

    def __call__(self, Y: np.ndarray) -> np.ndarray:
        near = NearestNeighbors(n_neighbors=self.k).fit(self.X).kneighbors(Y, return_distance=False)
        back = (
            NearestNeighbors(n_neighbors=self.k)
            .fit(self.Z)
            .kneighbors(self.Z[near].mean(axis=1), return_distance=False)
        )
        return np.asarray(self.X[back].mean(axis=1))


def residual_variance(made: Isomap, Z: np.ndarray) -> float:
    """1 − r² between geodesic distances and those of the embedding."""
    some = np.linspace(0, len(Z) - 1, min(400, len(Z))).astype(int)
    apart = np.linalg.norm(Z[some][:, None] - Z[some], axis=2)
    first, second = np.triu_indices(len(some), 1)
    return float(1 - np.corrcoef(made.dist_matrix_[np.ix_(some, some)][first, second], apart[first, second])[0, 1] ** 2)


def isomaps(X: np.ndarray, sizes: Iterable[int], Q: int = 2) -> dict[int, tuple[np.ndarray, float]]:
    """Embeddings and their residual variances, by number of neighbours."""
    found = {}
    for k in sizes:
        made = Isomap(n_components=Q, n_neighbors=k, eigen_solver="dense")
        Z = made.fit_transform(X)
        found[k] = Z, residual_variance(made, Z)
    return found


def trial(job: tuple[Cell, int]) -> dict[str, float]:
    """Errors of all contestants on one draw."""
    cell, seed = job
    split = cell.data(seed)
    out: dict[str, float] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = isomaps(split.train, SIZES)
        k, (Z, _) = min(found.items(), key=lambda item: item[1][1])
        out["IM"] = split.error(Interpolation(split.train, Z, k))
        judged = {
            i: float(np.square(Interpolation(split.train, Z, i)(split.held) - split.held).sum(axis=1).mean())
            for i in INTERPOLATION
        }
        out["k of IM-CV"] = float(min(judged, key=lambda i: judged[i]))
        out["IM-CV"] = split.error(Interpolation(split.train, Z, int(out["k of IM-CV"])))
        for column, init in (("PPS", "pca"), ("PPS-I", "isomap")):
            out[column] = min(split.error(pps(split.train, init, basis).project) for basis in BASES)
        both = np.concatenate([split.train, split.held])
        model = KMM(stop="validation", validation=1 / 3, n_neighbors=SIZES).fit(both)
        out["KMM"] = split.error(model.reconstruct)
        out["k of KMM"] = float(model.candidates_.neighbors[model.candidates_.chosen])
        out["KMM as it comes"] = split.error(KMM(n_neighbors=SIZES).fit(split.train).reconstruct)
    return out


def pps(X: np.ndarray, init: str, basis: int) -> Any:
    """A surface of 20 × 20 nodes, as a rule upright; the paper gives the best of several numbers of basis functions."""
    return PPS(nodes=20, basis=basis, clamping=0.5, init=init, max_iter=100, random_state=0).fit(X)


def trials(cells: Sequence[Cell], seeds: Sequence[int]) -> dict[Cell, list[dict[str, float]]]:
    """All cells on all seeds, over the processors there are."""
    jobs = [(cell, seed) for cell in cells for seed in seeds]
    found: dict[Cell, list[dict[str, float]]] = {cell: [] for cell in cells}
    with ProcessPoolExecutor(min(len(jobs), cpu_count() or 1)) as pool:
        for (cell, seed), result in zip(jobs, pool.map(trial, jobs), strict=True):
            found[cell].append(result)
            numbers = ", ".join(f"{name} {value:.2f}" for name, value in result.items())
            print(f"  {cell.reading}, {cell.name}, draw {seed}: {numbers}", flush=True)
    return found
