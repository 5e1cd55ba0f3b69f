"""Trials of Chang & Ghosh's experiments: half of a whitened table, trained as they did, measured on the other half.

Their program was the GTM toolbox with the E-step changed: the M-step stays the GTM's, whether the likelihood rises or
falls, from the principal plane. Here that is ``trainer="paper"``; what the library does when left alone, from a fitted
GTM, is a further way to train.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import isqrt
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits

from prinfold import PPS, GaussianBasis, datasets
from prinfold.basis_maps.basis_map import BasisMap
from prinfold.gtm.penalties import PriorPenalty
from prinfold.gtm.starts.first_parameters import pca_start
from prinfold.latent import Lattice, grid
from prinfold.metrics import angle_sum
from prinfold.pps.clamping import ClampedNoise, Fixed, TangentMoments, unified_covariance
from prinfold.pps.model import PPS_STEPS, PPSModel
from prinfold.pps.oriented_noise import OrientedNoise
from prinfold.rows.rows import Rows, as_rows

LOADERS = {"iris": datasets.load_iris, "glass": datasets.load_glass, "diabetes": datasets.load_diabetes}

REGULARIZATION = 0.01
EPOCHS, WINDOW, TOLERANCE = 200, 5, 1e-3
FLOOR = 1e-6

#: How training goes: β of fixed α by (33), the GTM's own β, or PPS as it comes, from a fitted GTM to its best surface.
READINGS = ("exact", "gtm", "library")


@dataclass(frozen=True)
class Setting:
    """A table, Q, L basis functions and M nodes in all, the clamping, and how to train."""

    table: str
    dimension: int
    basis: int
    nodes: int
    clamping: float = 1.0
    reading: str = "exact"


class Trial(NamedTuple):
    """Error on the other half in the paper's unit, roughness, epochs, training error at every fifth of them.

    ``objective`` is the penalised log-likelihood per training row at the end.
    """

    error: float
    roughness: float
    epochs: int
    history: list[float]
    objective: float


# ------------------------------------------------------------------------------------------------------- data


@cache
def whitened(table: str) -> np.ndarray:
    """The whole table with zero mean and unit covariance; in which axes makes no difference to anything measured.

    The covariance is divided by n − 1, as their program's own function does.
    """
    X = LOADERS[table]().X
    U, _, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    return U * np.sqrt(len(X) - 1)


def halves(table: str, split: int) -> tuple[np.ndarray, np.ndarray]:
    """Training and test rows; the same for every model, so that they can be compared split by split."""
    X = whitened(table)
    order = np.random.default_rng([split, len(X)]).permutation(len(X))
    return X[order[: len(X) // 2]], X[order[len(X) // 2 :]]


def n_train(table: str) -> int:
    return len(whitened(table)) // 2


def n_columns(table: str) -> int:
    return whitened(table).shape[1]


# ------------------------------------------------------------------------------------------------------ models


@dataclass(frozen=True)
class GTMNoiseLevel(Fixed):
    """Fixed factors with the GTM's own update of β: 1/β = V₁/(N D), which takes the noise for isotropic."""

    def update(self, moments: TangentMoments, tie: float, floor: float, old: Any) -> ClampedNoise:
        n_values = float(moments.mass.sum()) * moments.n_columns
        return ClampedNoise(min(n_values / (float(moments.square.sum()) + tie), 1.0 / floor), self.s, self.b)


def lattice(setting: Setting) -> Lattice:
    return grid(*(setting.nodes,) if setting.dimension == 1 else (isqrt(setting.nodes),) * 2)


def basis(setting: Setting) -> GaussianBasis:
    """L Gaussians, no linear functions, the outermost beyond the edge, each two spacings wide: the toolbox's."""
    n = setting.basis if setting.dimension == 1 else isqrt(setting.basis)
    return GaussianBasis(n, width=2.0, linear=False, scale=n / (n - 1))


def published(setting: Setting, D: int) -> PPSModel:
    latent, Q = lattice(setting), setting.dimension
    shape = unified_covariance(setting.clamping, D, Q)
    if setting.reading == "gtm":
        shape = GTMNoiseLevel(shape.s, shape.b)
    noise = OrientedNoise(FLOOR, shape, Q)
    surface = BasisMap(latent, basis(setting).bind(latent))
    return PPSModel(surface, noise, PriorPenalty(REGULARIZATION), PPS_STEPS["paper"])


# ------------------------------------------------------------------------------------------------- measurements


class Patches(NamedTuple):
    """Segments (E, 2) of a grid and the triangles (T, 3) between them, for both ways to cut each square in two."""

    segments: np.ndarray
    triangles: np.ndarray


@cache
def patches(latent: Lattice) -> Patches:
    if latent.dimension == 1:
        return Patches(latent.edges, np.empty((0, 3), dtype=int))
    number = np.arange(latent.n_nodes).reshape(latent.shape)
    p, q, r, s = (cut.ravel() for cut in (number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]))
    triangles = np.concatenate([np.stack(three, axis=1) for three in ((p, q, r), (p, r, s), (q, r, s), (q, s, p))])
    segments = np.sort(np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]]), axis=1)
    return Patches(np.unique(segments, axis=0), triangles)


def squared_distance(X: np.ndarray, vertices: np.ndarray, parts: Patches) -> np.ndarray:
    """(n,) squared distance to the nearest point of all patches.

    What ``prinfold.metrics`` measures, for every row and patch at once: these grids are so small that looking for the
    near patches first, as the library does, costs more than it saves, and training asks every few epochs.
    """
    found = [_block_distance(X[i : i + 64], vertices, parts) for i in range(0, len(X), 64)]
    return np.maximum(np.concatenate(found), 0.0)


def _block_distance(X: np.ndarray, vertices: np.ndarray, parts: Patches) -> np.ndarray:
    to_vertex = cdist(X, vertices, "sqeuclidean")

    def along(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        edge = vertices[second] - vertices[first]
        return edge, X @ edge.T - np.einsum("ed,ed->e", vertices[first], edge)

    first, second = parts.segments.T
    edge, shadow = along(first, second)
    square = np.maximum(np.einsum("ed,ed->e", edge, edge), np.finfo(float).tiny)
    share = np.clip(shadow / square, 0.0, 1.0)
    nearest = (to_vertex[:, first] + share * (share * square - 2 * shadow)).min(axis=1)
    if not len(parts.triangles):
        return nearest
    p, q, r = parts.triangles.T
    (one, u), (two, v) = along(p, q), along(p, r)
    a, b, c = (np.einsum("td,td->t", *pair) for pair in ((one, one), (one, two), (two, two)))
    area = np.maximum(a * c - b * b, np.finfo(float).tiny)
    s, t = (c * u - b * v) / area, (a * v - b * u) / area
    inside = (s >= 0) & (t >= 0) & (s + t <= 1)
    over = np.where(inside, to_vertex[:, p] - s * u - t * v, np.inf).min(axis=1)
    return np.minimum(nearest, over)


def error(X: np.ndarray, centers: np.ndarray, latent: Lattice) -> float:
    """Mean squared distance to a curve, mean distance to a surface.

    The paper calls both mean squares, but a surface of four functions cannot be as near to the rows as it prints.
    """
    square = squared_distance(X, centers, patches(latent))
    return float(square.mean() if latent.dimension == 1 else np.sqrt(square).mean())


def roughness(jacobian: np.ndarray, latent: Lattice) -> float:
    """(25) in degrees along a curve; on a grid its sum over all lines of one axis, as mean of the two axes.

    The paper says "averaged over grid lines", which stays near the value of one line, 150 or so, and cannot reach the
    thousands that it prints. The sums over the lines of one axis, √M times the average, come near them in every cell.
    """
    if latent.dimension == 1:
        return angle_sum(jacobian[:, :, 0])
    return latent.shape[0] * angle_sum(jacobian.reshape(*latent.shape, -1, 2))


# ------------------------------------------------------------------------------------------------------ trials


def trial(setting: Setting, split: int, tolerance: float = TOLERANCE) -> Trial:
    """Train on one half by the paper's rule, measure on the other; BLAS on one thread, as the products are small."""
    with threadpool_limits(1):
        return _trial(setting, split, tolerance)


def _trial(setting: Setting, split: int, tolerance: float) -> Trial:
    train, test = halves(setting.table, split)
    if setting.reading == "library":
        return as_it_comes(setting, train, test)
    model, offset = published(setting, train.shape[1]), train.mean(axis=0)
    latent, rows = model.surface.latent, as_rows(train, offset, width=setting.nodes)
    state, history = epochs(model, rows, tolerance)
    weights, objective = state.parameters.weights, model.measure(state)["objective"]
    centers = model.surface.nodes(weights) + offset
    rough = roughness(model.surface.node_jacobian(weights), latent)
    return Trial(error(test, centers, latent), rough, WINDOW * (len(history) - 1), history, objective)


def epochs(model: PPSModel, rows: Rows, tolerance: float) -> tuple[Any, list[float]]:
    """State at the end, and the training error at the end of every window of five epochs, the start included."""
    latent, offset, X = model.surface.latent, rows.offset, rows.table

    def measured(weights: np.ndarray) -> float:
        return error(X, model.surface.nodes(weights) + offset, latent)

    start = pca_start(model, rows, np.random.default_rng(0))
    state = model.begin(rows, start)
    history = [measured(start.weights)]
    for _ in range(EPOCHS // WINDOW):
        for _ in range(WINDOW):
            state = model.step(rows, state)
        history.append(measured(state.parameters.weights))
        if abs(history[-1] - history[-2]) < tolerance * history[-2]:
            break
    return state, history


def as_it_comes(setting: Setting, train: np.ndarray, test: np.ndarray) -> Trial:
    """The estimator with the same map and penalty, and everything else left at its default."""
    latent = lattice(setting)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of folds and several modes, which are looked at here
        model = PPS(
            clamping=setting.clamping,
            nodes=latent,
            basis=basis(setting),
            prior_precision=REGULARIZATION,
        ).fit(train)
    rough = roughness(model.jacobian(latent.nodes), latent)
    far = error(test, model.inverse_transform(latent.nodes), latent)
    return Trial(far, rough, model.n_iter_, [], model.history_["objective"][-1])


def trials(settings: Iterable[Setting], splits: Sequence[int], **options: Any) -> dict[Setting, list[Trial]]:
    """Every setting on every split, over processes."""
    settings = list(dict.fromkeys(settings))
    for table in {setting.table for setting in settings}:
        whitened(table)  # a table that is absent should say so here, once
    jobs = (delayed(trial)(setting, split, **options) for setting in settings for split in splits)
    found = Parallel(n_jobs=-1)(jobs)
    return {s: found[i * len(splits) : (i + 1) * len(splits)] for i, s in enumerate(settings)}
